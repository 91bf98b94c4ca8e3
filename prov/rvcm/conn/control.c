/* SPDX-License-Identifier: BSD-2-Clause */
/* The control side's turn: CM events, mail and timers, each translated into events of the table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conn/conn_impl.h"

/* -- CM events ---------------------------------------------------------------------------- */

static void established(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_contact *contact = link->contact;
	enum rvcm_wire_reason reason;
	struct rvcm_shake shake;

	if (link->claim) {
		rvcm_claim_established(link);
		return;
	}
	reason = rvcm_shake_decode(ev->private_data, ev->private_bytes, RVCM_WIRE_REPLY,
				   contact->carrier->attr.job_key, &link->request, &shake);
	if (reason != RVCM_WIRE_REASON_NONE || rvcm_seq_before(shake.epoch, contact->epoch) ||
	    !rvcm_reopen_is_answer(contact, link, &shake)) {
		rvcm_contact_failed(contact, rvcm_shake_status(reason), 0, rvcm_rail_turn(contact),
				    "its reply to our request is not valid");
		return;
	}
	memcpy(&link->reply, ev->private_data, sizeof(link->reply));
	link->peer_window = shake.window;
	/* Requests that the acceptor dropped for ours may still be in our queue: now they are
	 * stale. */
	contact->epoch = shake.epoch;
	contact->peer_epoch = shake.epoch;
	rvcm_contact_incarnation(contact, shake.incarnation);
	rvcm_link_known(link, shake.incarnation);
	rvcm_reopen_note(contact, link);
	rvcm_contact_feed(contact, RVCM_LINK_EV_EST);
}

/* The peer says that our processes have a link: true, if it has the key, and we know of one. */
static void shared(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_shake shake;
	enum rvcm_wire_reason reason =
		rvcm_shake_decode(ev->private_data, ev->private_bytes, RVCM_WIRE_REJECT,
				  contact->carrier->attr.job_key, &link->request, &shake);

	if (reason != RVCM_WIRE_REASON_NONE || contact->reopening) {
		rvcm_contact_failed(contact, rvcm_shake_status(reason), 0, rvcm_rail_turn(contact),
				    "its answer to our request is not valid");
		return;
	}
	if (!rvcm_request_has_kin(contact, shake.incarnation, false) &&
	    !rvcm_reopen_has_kin(contact, shake.incarnation)) {
		contact->misses++;
		contact->missed = shake.incarnation;
		rvcm_contact_failed(contact, RVCM_STATUS_REJECTED, 0, true,
				    "it knows of a link that is gone");
		return;
	}
	if (contact->wanted) {
		contact->conn->answer_incarnation = shake.incarnation;
		contact->conn->answer_slot = shake.slot;
	}
	rvcm_contact_feed(contact, RVCM_LINK_EV_REJ_SHARED);
}

/* By its consumer. */
static void refused(struct rvcm_link *link, const struct rvcm_dev_event *ev,
		    enum rvcm_wire_reason reason)
{
	struct rvcm_contact *contact = link->contact;
	bool again = reason == RVCM_WIRE_REASON_STALE || reason == RVCM_WIRE_REASON_RESOURCE ||
		     reason == RVCM_WIRE_REASON_BUSY;

	if (reason == RVCM_WIRE_REASON_CROSSED) {
		rvcm_contact_feed(contact, RVCM_LINK_EV_REJ_CROSSED);
		return;
	}
	if (reason == RVCM_WIRE_REASON_SHARED) {
		shared(link, ev);
		return;
	}
	if (reason == RVCM_WIRE_REASON_GONE) {
		rvcm_reopen_gone(link, ev);
		return;
	}
	if (reason == RVCM_WIRE_REASON_BUSY)
		rvcm_reopen_put_off(contact);
	rvcm_contact_failed(contact, rvcm_shake_status(reason), 0, again || rvcm_rail_turn(contact),
			    NULL);
}

static struct rvcm_cause_report report_of(const struct rvcm_link *link,
					  const struct rvcm_dev_event *ev)
{
	return (struct rvcm_cause_report) {
		.dev = link->contact->carrier->devs[link->dev].dev,
		.status = ev->status == RVCM_STATUS_OK ? RVCM_STATUS_PEER_CLOSED : ev->status,
		.err = ev->err,
		.vendor_err = ev->vendor_err,
		.words = ev->words,
		.number = ev->number,
	};
}

/* Who listens by one device is not found by another: each side may have been told which to use. */
static const char *unheard_detail(const struct rvcm_cause_report *report, char *buf)
{
	char said[RVCM_CAUSE_DETAIL_MAX / 2];
	const char *more = rvcm_cause_detail(report, buf);

	snprintf(said, sizeof(said), "%s", more ? more : "");
	snprintf(buf, RVCM_CAUSE_DETAIL_MAX, "at least not by that device%s%s", more ? ": " : "",
		 said);
	return buf;
}

/* A peer that listens only later is worth some attempts. */
static bool is_worth_more(const struct rvcm_contact *contact)
{
	return !contact->reopening &&
	       contact->attempts < RVCM_CONN_REFUSALS_MAX * contact->carrier->attr.n_devs;
}

static void rejected(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_cause_report report = report_of(link, ev);
	char detail[RVCM_CAUSE_DETAIL_MAX];
	bool by_rail;

	switch (ev->reject) {
	case RVCM_DEV_REJECT_CONSUMER:
		refused(link, ev, rvcm_shake_reason(ev->private_data, ev->private_bytes));
		break;
	case RVCM_DEV_REJECT_NOT_LISTENING:
		by_rail = rvcm_rail_turn(contact);
		rvcm_contact_failed(
			contact, by_rail ? RVCM_STATUS_UNREACHABLE : RVCM_STATUS_REFUSED, ev->err,
			by_rail || is_worth_more(contact), unheard_detail(&report, detail));
		break;
	case RVCM_DEV_REJECT_STALE:
		rvcm_contact_failed(contact, RVCM_STATUS_REJECTED_STALE, ev->err, true,
				    rvcm_cause_detail(&report, detail));
		break;
	default:
		rvcm_contact_failed(contact, RVCM_STATUS_NOT_RNIC, ev->err,
				    rvcm_rail_turn(contact) || rvcm_contact_falls_through(contact),
				    rvcm_cause_detail(&report, detail));
		break;
	}
}

static void failed(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_cause_report report = report_of(link, ev);
	char detail[RVCM_CAUSE_DETAIL_MAX];

	if (link->claim) {
		rvcm_claim_lost(link, ev->status, ev->err);
		return;
	}
	rvcm_rail_turn(link->contact);
	rvcm_contact_failed(link->contact, ev->status, ev->err, true,
			    rvcm_cause_detail(&report, detail));
}

static void disconnected(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_cause_report report = report_of(link, ev);
	bool ours = contact->state == RVCM_LINK_CLOSING;

	if (link->claim) {
		rvcm_claim_lost(link, report.status, ev->err);
		return;
	}
	if (!ours && !link->down_posted)
		rvcm_cause_of_device(&contact->cause, &contact->peer, &report);
	rvcm_contact_feed(contact, RVCM_LINK_EV_LOST);
}

/* What happened to a device as a whole; its links end by themselves. */
static void of_device(struct rvcm_carrier_dev *dev, enum rvcm_dev_event_type type)
{
	static const struct {
		enum rvcm_dev_event_type type;
		const char *text;
	} rows[] = {
		{ RVCM_DEV_EVENT_DEVICE_REMOVAL,
		  "the device was removed; its connections are lost" },
		{ RVCM_DEV_EVENT_ADDR_CHANGE, "its address has moved: connections may be lost" },
		{ RVCM_DEV_EVENT_PORT_DOWN, "the port is down: nothing is sent or received" },
		{ RVCM_DEV_EVENT_PORT_UP, "the port is up again" },
		{ RVCM_DEV_EVENT_CQ_ERROR, "a completion queue has failed" },
		{ RVCM_DEV_EVENT_QP_FATAL, "a queue pair has failed" },
		{ RVCM_DEV_EVENT_SRQ_LIMIT, "a shared receive queue runs low" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == type)
			rvcm_warn(RVCM_LOG_EP_CTRL, "%s: %s", dev->dev->attr.name, rows[i].text);
	if (type == RVCM_DEV_EVENT_DEVICE_REMOVAL)
		rvcm_removed_see(dev);
}

/* Of link 0, or of who wants to be one. */
static void of_link(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	if (link->index)
		rvcm_branch_event(link, ev);
	else if (ev->type == RVCM_DEV_EVENT_ESTABLISHED)
		established(link, ev);
	else if (ev->type == RVCM_DEV_EVENT_REJECTED)
		rejected(link, ev);
	else if (ev->type == RVCM_DEV_EVENT_DISCONNECTED)
		disconnected(link, ev);
	else
		failed(link, ev);
}

static void handle(struct rvcm_carrier_dev *dev, const struct rvcm_dev_event *ev)
{
	struct rvcm_slot_listen *listen = ev->ctx;

	switch (ev->type) {
	case RVCM_DEV_EVENT_CONNECT_REQUEST:
		rvcm_request_handle(listen->slot, listen->dev, ev);
		break;
	case RVCM_DEV_EVENT_ESTABLISHED:
	case RVCM_DEV_EVENT_REJECTED:
	case RVCM_DEV_EVENT_ADDR_ERROR:
	case RVCM_DEV_EVENT_ROUTE_ERROR:
	case RVCM_DEV_EVENT_UNREACHABLE:
	case RVCM_DEV_EVENT_CONNECT_ERROR:
	case RVCM_DEV_EVENT_DISCONNECTED:
		of_link(ev->ctx, ev);
		break;
	default: /* of the device; or how far an attempt has come */
		of_device(dev, ev->type);
		break;
	}
}

static void poll_devs(struct rvcm_carrier *carrier)
{
	for (uint32_t i = 0; i < carrier->attr.n_devs; i++) {
		struct rvcm_dev *dev = carrier->devs[i].dev;
		struct rvcm_dev_event ev;

		while (dev->ops->cm_poll(dev, &ev) > 0)
			handle(&carrier->devs[i], &ev);
	}
}

/* -- mail --------------------------------------------------------------------------------- */

static void wanted(struct rvcm_carrier *carrier, struct rvcm_conn *conn)
{
	static void (*const wishes[])(struct rvcm_contact *, struct rvcm_conn *) = {
		[RVCM_CONN_CONNECT] = rvcm_contact_want,
		[RVCM_CONN_WAKE] = rvcm_reopen_wake,
		[RVCM_CONN_FORGET] = rvcm_reopen_forget_parked,
	};
	struct rvcm_slot *slot = conn->slot;
	struct rvcm_contact *contact = NULL;

	atomic_store_explicit(&conn->want_posted, false, memory_order_release);
	if (slot->shut)
		return; /* nobody waits any more */
	contact = rvcm_contact_get(slot, &conn->peer);
	if (contact) {
		wishes[conn->wish](contact, conn);
		return;
	}
	rvcm_cause_set(&conn->answer_cause, &conn->peer, RVCM_STATUS_NO_MEMORY, 0, NULL);
	conn->answer_incarnation = 0;
	conn->answer_reopened = false;
	rvcm_carrier_mail_data(carrier, &conn->answer);
}

static void broken(struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;

	if (link->index) {
		rvcm_branch_broken(link);
		return;
	}
	if (link->claim) {
		rvcm_claim_broken(link);
		return;
	}
	if (!link->down_posted)
		contact->cause = link->failed_cause;
	rvcm_contact_feed(contact, RVCM_LINK_EV_BROKEN);
}

static void released(struct rvcm_link *link)
{
	if (link->index)
		rvcm_branch_released(link);
	else if (link->claim)
		rvcm_claim_released(link);
	else
		rvcm_contact_released(link->contact);
}

static void end_contacts(struct rvcm_slot *slot, bool all)
{
	struct rvcm_list *node, *tmp;

	rvcm_list_for_each_safe (node, tmp, &slot->contacts) {
		struct rvcm_contact *contact = rvcm_list_entry(node, struct rvcm_contact, of_slot);

		if (all || contact->state != RVCM_LINK_UP)
			rvcm_contact_feed(contact, RVCM_LINK_EV_SHUT);
		else
			rvcm_claim_drop_all(contact);
	}
}

/* Links that are up stay, for the other slots; the last one takes them along. */
static void shut(struct rvcm_slot *slot)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_list *node;

	slot->shut = true;
	carrier->shut_slots++;
	rvcm_slot_deafen(slot);
	if (!slot->last) {
		end_contacts(slot, false);
		return;
	}
	carrier->deadline_ns = slot->deadline_ns;
	for (uint16_t i = 0; i < carrier->slots_end; i++)
		if (carrier->slots[i] && carrier->slots[i]->shut)
			end_contacts(carrier->slots[i], true);
	rvcm_list_for_each (node, &carrier->retired)
		end_contacts(rvcm_list_entry(node, struct rvcm_slot, node), true);
}

static void taken(struct rvcm_link *link)
{
	if (link->index)
		rvcm_branch_taken(link);
	else
		rvcm_claim_proven(link);
}

static void read_one(struct rvcm_carrier *carrier, struct rvcm_mail *m)
{
	switch (m->kind) {
	case RVCM_MAIL_WANT:
		wanted(carrier, rvcm_container_of(m, struct rvcm_conn, want));
		break;
	case RVCM_MAIL_FAILED:
		broken(rvcm_container_of(m, struct rvcm_link, failed));
		break;
	case RVCM_MAIL_RELEASED:
		released(rvcm_container_of(m, struct rvcm_link, released));
		break;
	case RVCM_MAIL_UNNAMED:
		rvcm_contact_unname(rvcm_container_of(m, struct rvcm_link, unnamed)->contact);
		break;
	case RVCM_MAIL_BRANCH:
		rvcm_branch_want(rvcm_container_of(m, struct rvcm_link, branch_mail));
		break;
	case RVCM_MAIL_UNBRANCH:
		rvcm_branch_stop(rvcm_container_of(m, struct rvcm_link, unbranch_mail)->contact);
		break;
	case RVCM_MAIL_WATCHED:
		rvcm_claim_watched(rvcm_container_of(m, struct rvcm_link, watched));
		break;
	case RVCM_MAIL_TAKEN:
		taken(rvcm_container_of(m, struct rvcm_link, taken));
		break;
	default: /* RVCM_MAIL_SHUT */
		shut(rvcm_container_of(m, struct rvcm_slot, shut_mail));
		break;
	}
}

static void read_mail(struct rvcm_carrier *carrier)
{
	struct rvcm_list mail;
	struct rvcm_list *node;

	rvcm_list_init(&mail);
	rvcm_mailbox_take_all(&carrier->to_control, &mail);
	while ((node = rvcm_list_pop(&mail)))
		read_one(carrier, rvcm_container_of(node, struct rvcm_mail, node));
}

/* -- the end of slots --------------------------------------------------------------------- */

static void bury_retired(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node, *tmp;

	rvcm_list_for_each_safe (node, tmp, &carrier->retired) {
		struct rvcm_slot *slot = rvcm_list_entry(node, struct rvcm_slot, node);

		if (rvcm_list_empty(&slot->contacts))
			rvcm_slot_free(slot);
	}
}

static void bury(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&carrier->ended))) {
		struct rvcm_contact *contact = rvcm_list_entry(node, struct rvcm_contact, ended);

		if (rvcm_contact_is_over(contact)) /* else it came to life again */
			rvcm_contact_free(contact);
	}
	bury_retired(carrier);
	for (uint16_t i = 0; i < carrier->slots_end && carrier->shut_slots > 0; i++) {
		struct rvcm_slot *slot = carrier->slots[i];

		if (slot && slot->shut && slot->listening && rvcm_slot_is_over(slot)) {
			slot->listening = false;
			carrier->shut_slots--;
			rvcm_carrier_mail_data(carrier, &slot->closed_mail);
		}
	}
}

uint64_t rvcm_control_run(struct rvcm_carrier *carrier)
{
	uint64_t now = rvcm_carrier_now(carrier);

	read_mail(carrier);
	poll_devs(carrier);
	rvcm_timer_run(&carrier->timers, now);
	bury(carrier);
	return rvcm_mailbox_pending(&carrier->to_control) ? now : rvcm_timer_next(&carrier->timers);
}

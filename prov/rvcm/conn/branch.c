/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Side links, control's half (side.c is the data side's and has the idea). They hang on the contact
 * of their conn's first link, and are named by that: their REQUEST has its epoch (begun), both
 * incarnations, and the number of the link in the conn. Who does not have that conn says GONE.
 *
 * The side that opened the first link opens these, each by itself: an attempt that fails, or a link
 * that is lost, is followed by another after a while, doubled each time up to some seconds, as long
 * as the conn is there. Each has its own way (rail.c), some behind that of link 0, and takes others
 * while that is out; then its own is tried beside it, now and then. Like a claim (claim.c) a peer's
 * proves itself by HELLO before it is used.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

#define MS               1000000u
#define ATTEMPT_NS       (2000u * (uint64_t)MS)
#define BACKOFF_FIRST_NS (10u * (uint64_t)MS)
#define DOUBLINGS_MAX    9u /* 5 s */
#define OF_INDEX_MAX     2u /* links of the same index, of which one is about to end */
#define TRIES_OF_WAY     2u /* before another is tried */
#define HOME_NS          (5000u * (uint64_t)MS) /* that long away from its own way */
#define PATIENCE         5u /* attempts after which it is said that one is lost; 0.3 s */

/* An index of the contact that we open, and its timer: of the attempt, or of the next one. */
struct rvcm_branch {
	struct rvcm_contact *contact;
	struct rvcm_link *link;   /* the attempt, or what came of it */
	struct rvcm_link *former; /* what it is to replace: it went another way, and is of use */
	const struct rvcm_addr *to;
	struct rvcm_timer timer;
	uint32_t attempts; /* since one was last of use */
	uint8_t index;
	uint64_t lost_ns; /* when one that was of use was lost; 0: none was */
	struct rvcm_conn_cause cause;
};

/* -- opening --------------------------------------------------------------------------------- */

static void retry(struct rvcm_branch *branch)
{
	struct rvcm_carrier *carrier = branch->contact->carrier;
	uint32_t doublings = branch->attempts < DOUBLINGS_MAX ? branch->attempts : DOUBLINGS_MAX;
	uint64_t delay = BACKOFF_FIRST_NS << doublings;

	if (!branch->contact->branching)
		return;
	branch->attempts++;
	rvcm_timer_set(&carrier->timers, &branch->timer,
		       rvcm_carrier_now(carrier) + delay / 2 +
			       rvcm_rng_below(&carrier->rng, delay / 2));
}

/* Its own way: behind that of link 0. */
static uint32_t home(const struct rvcm_branch *branch)
{
	return (branch->contact->way + branch->index) % (branch->contact->n_rails + 1);
}

/* If it goes another way, its own is tried after a while. */
static void look_home(struct rvcm_branch *branch)
{
	struct rvcm_carrier *carrier = branch->contact->carrier;

	if (branch->contact->branching && branch->link->way != home(branch))
		rvcm_timer_set(&carrier->timers, &branch->timer,
			       rvcm_carrier_now(carrier) + HOME_NS / 2 +
				       rvcm_rng_below(&carrier->rng, HOME_NS / 2));
}

/* Its link is no more: there may be the former one. */
static void go_on(struct rvcm_branch *branch)
{
	branch->link = branch->former;
	branch->former = NULL;
	if (branch->link)
		look_home(branch);
	else
		retry(branch);
}

/* The data side does not have it. */
static void close_link(struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_branch *branch = link->branch;
	bool is_former = branch && branch->former == link;

	rvcm_list_del(&link->of_contact);
	rvcm_link_close(link);
	if (is_former)
		branch->former = NULL;
	else if (branch)
		go_on(branch);
	rvcm_contact_tidy(contact);
}

static const char *who_of(const struct rvcm_branch *branch, char *buf)
{
	const struct rvcm_contact *contact = branch->contact;

	return rvcm_cause_who(&contact->peer, contact->carrier->devs[contact->dev].dev,
			      branch->index, buf);
}

static unsigned long long lost_ms(const struct rvcm_branch *branch)
{
	return (rvcm_carrier_now(branch->contact->carrier) - branch->lost_ns) / MS;
}

/* What ends because the other side closes is no loss: nobody hears of that. */
static void say_lost(const struct rvcm_branch *branch)
{
	char who[RVCM_CAUSE_WHO_MAX];

	rvcm_warn(RVCM_LOG_EP_CTRL, "%s: %s; not connected again after %llu ms, the others go on",
		  who_of(branch, who), rvcm_cause_why(&branch->cause), lost_ms(branch));
}

static void say_back(const struct rvcm_branch *branch)
{
	char who[RVCM_CAUSE_WHO_MAX];

	rvcm_warn(RVCM_LOG_EP_CTRL, "%s: connected again after %llu ms, and the others went on: %s",
		  who_of(branch, who), lost_ms(branch), rvcm_cause_why(&branch->cause));
}

static void failed(struct rvcm_branch *branch, const char *why)
{
	char who[RVCM_CAUSE_WHO_MAX];

	if (branch->lost_ns && branch->attempts == PATIENCE)
		say_lost(branch);
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: attempt %u: %s", who_of(branch, who), branch->attempts + 1,
		  why);
	if (branch->link)
		close_link(branch->link);
	else
		go_on(branch);
}

static int request(struct rvcm_branch *branch)
{
	struct rvcm_contact *contact = branch->contact;
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_dev *dev = carrier->devs[contact->dev].dev;
	struct rvcm_link *link = branch->link;
	struct rvcm_shake shake;

	rvcm_contact_shake(contact, &shake, RVCM_WIRE_REQUEST);
	shake.flags |= RVCM_WIRE_OWN;
	shake.link = branch->index;
	shake.epoch = ++carrier->epoch;
	shake.peer_incarnation = contact->peer_incarnation;
	shake.begun = contact->first;
	shake.window = contact->peer_slot;
	shake.caps = (uint16_t)dev->attr.caps;
	rvcm_shake_encode(&shake, carrier->attr.job_key, NULL, &link->request);
	return dev->ops->connect(link->qp, branch->to, &link->request, sizeof(link->request));
}

/* Who does not get there by its own way takes turns with all of them. */
static uint32_t next_way(const struct rvcm_branch *branch)
{
	uint32_t n = home(branch) + branch->attempts / TRIES_OF_WAY;

	return n % (branch->contact->n_rails + 1);
}

static void open_link(struct rvcm_branch *branch, uint32_t way)
{
	struct rvcm_contact *contact = branch->contact;
	struct rvcm_carrier *carrier = contact->carrier;
	int rc;

	branch->to = rvcm_rail_addr(contact, way);
	if (branch->to == &contact->peer)
		rc = rvcm_link_open(contact, contact->dev, branch->index, true, &branch->link);
	else
		rc = rvcm_link_open_routed(contact, contact->dev, branch->index, &branch->link);
	if (!rc) {
		branch->link->branch = branch;
		branch->link->way = way;
		rvcm_list_add_tail(&contact->sides, &branch->link->of_contact);
		rc = request(branch);
	}
	if (rc)
		failed(branch, strerrordesc_np(-rc));
	else
		rvcm_timer_set(&carrier->timers, &branch->timer,
			       rvcm_carrier_now(carrier) + ATTEMPT_NS);
}

/* Beside the link that it has: the data side lets go of that when it has the new one. */
static void open_home(struct rvcm_branch *branch)
{
	if (branch->former || !rvcm_park_has_room(branch->contact->carrier, 1)) {
		look_home(branch);
		return;
	}
	branch->former = branch->link;
	branch->link = NULL;
	open_link(branch, home(branch));
}

static void expired(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_branch *branch = rvcm_container_of(timer, struct rvcm_branch, timer);
	const struct rvcm_contact *contact = branch->contact;

	(void)now_ns;
	if (branch->link && !branch->link->handed)
		failed(branch, "no answer");
	else if (contact->carrier->devs[contact->dev].removed)
		return;
	else if (!branch->link)
		open_link(branch, next_way(branch));
	else if (branch->link->way != home(branch))
		open_home(branch);
}

static bool make_branches(struct rvcm_contact *contact)
{
	uint32_t n = contact->carrier->attr.n_links - 1;

	if (!contact->branches)
		contact->branches = rvcm_mem_zalloc(n * sizeof(*contact->branches));
	if (!contact->branches)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct rvcm_branch *branch = &contact->branches[i];

		branch->contact = contact;
		branch->index = (uint8_t)(i + 1);
		branch->attempts = 0;
		if (!branch->link)
			rvcm_timer_init(&branch->timer, expired);
	}
	return true;
}

void rvcm_branch_want(const struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;

	if (contact->branching || contact->state != RVCM_LINK_UP || !make_branches(contact))
		return;
	contact->branching = true;
	memcpy(contact->rails, link->rails, sizeof(contact->rails));
	contact->n_rails = link->n_rails;
	for (uint32_t i = 0; i + 1 < contact->carrier->attr.n_links; i++)
		if (!contact->branches[i].link)
			open_link(&contact->branches[i], next_way(&contact->branches[i]));
}

void rvcm_branch_moved(struct rvcm_contact *contact)
{
	for (uint32_t i = 0; contact->branches && i + 1 < contact->carrier->attr.n_links; i++)
		if (contact->branches[i].link && contact->branches[i].link->handed)
			look_home(&contact->branches[i]);
}

/* -- ending ---------------------------------------------------------------------------------- */

/* The data side is to let go of it; RELEASED will answer. */
static void recall(struct rvcm_link *link)
{
	rvcm_timer_cancel(&link->contact->carrier->timers, &link->timer);
	rvcm_link_recall(link);
}

static void end(struct rvcm_link *link, enum rvcm_status status, int err)
{
	if (!link->handed) {
		close_link(link);
		return;
	}
	if (!link->down_posted)
		rvcm_cause_by(&link->cause, &link->peer, link->qp->dev, status, err, NULL);
	recall(link);
}

void rvcm_branch_stop(struct rvcm_contact *contact)
{
	struct rvcm_list *pos, *tmp;

	contact->branching = false;
	for (uint32_t i = 0; contact->branches && i + 1 < contact->carrier->attr.n_links; i++)
		rvcm_timer_cancel(&contact->carrier->timers, &contact->branches[i].timer);
	rvcm_list_for_each_safe (pos, tmp, &contact->sides)
		end(rvcm_list_entry(pos, struct rvcm_link, of_contact), RVCM_STATUS_CLOSED, 0);
}

/* -- a peer's -------------------------------------------------------------------------------- */

enum rvcm_wire_reason rvcm_branch_judge(const struct rvcm_contact *contact,
					const struct rvcm_slot *slot,
					const struct rvcm_shake *shake)
{
	uint32_t n = 0;
	struct rvcm_list *pos;

	if (!contact || contact->own || contact->first != shake->begun ||
	    contact->peer_incarnation != shake->incarnation ||
	    slot->carrier->incarnation != shake->peer_incarnation ||
	    slot->number != shake->window || !(shake->flags & RVCM_WIRE_OWN) ||
	    !(contact->state == RVCM_LINK_UP || contact->reopening) || contact->parked)
		return RVCM_WIRE_REASON_GONE;
	rvcm_list_for_each (pos, &contact->sides)
		n += rvcm_list_entry(pos, struct rvcm_link, of_contact)->index == shake->link;
	if (!rvcm_park_has_room(slot->carrier, 1))
		return RVCM_WIRE_REASON_RESOURCE;
	return n < OF_INDEX_MAX ? RVCM_WIRE_REASON_NONE : RVCM_WIRE_REASON_RESOURCE;
}

/* It is to be established, and then to prove itself, in time. */
static void late(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_link *link = rvcm_container_of(timer, struct rvcm_link, timer);

	(void)now_ns;
	end(link, RVCM_STATUS_CONNECT_TIMEOUT, 0);
}

static int answer(struct rvcm_link *link, struct rvcm_dev_req *req, const struct rvcm_shake *asked)
{
	struct rvcm_carrier *carrier = link->contact->carrier;
	struct rvcm_shake shake;

	rvcm_contact_shake(link->contact, &shake, RVCM_WIRE_REPLY);
	shake.link = asked->link;
	shake.epoch = asked->epoch;
	shake.peer_incarnation = asked->incarnation;
	shake.begun = asked->begun;
	shake.caps = (uint16_t)link->qp->dev->attr.caps;
	carrier->attr.env.random(carrier->attr.env.ctx, shake.nonce, sizeof(shake.nonce));
	rvcm_shake_encode(&shake, carrier->attr.job_key, &link->request, &link->reply);
	return link->qp->dev->ops->accept(req, link->qp, &link->reply, sizeof(link->reply));
}

void rvcm_branch_accept(struct rvcm_contact *contact, uint16_t dev, const struct rvcm_dev_event *ev,
			const struct rvcm_shake *shake)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_link *link;
	int rc = rvcm_link_open(contact, dev, shake->link, false, &link);

	if (rc) {
		rvcm_request_reject(contact->slot, dev, ev->req, RVCM_WIRE_REASON_RESOURCE, NULL);
		return;
	}
	memcpy(&link->request, ev->private_data, sizeof(link->request));
	rvcm_timer_init(&link->timer, late);
	rvcm_list_add_tail(&contact->sides, &link->of_contact);
	if (answer(link, ev->req, shake))
		close_link(link);
	else
		rvcm_timer_set(&carrier->timers, &link->timer,
			       rvcm_carrier_now(carrier) + ATTEMPT_NS);
}

void rvcm_branch_taken(struct rvcm_link *link)
{
	rvcm_timer_cancel(&link->contact->carrier->timers, &link->timer);
}

/* -- what happens to one --------------------------------------------------------------------- */

static bool is_answer(const struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	const struct rvcm_contact *contact = link->contact;
	struct rvcm_shake shake;

	return rvcm_shake_decode(ev->private_data, ev->private_bytes, RVCM_WIRE_REPLY,
				 contact->carrier->attr.job_key, &link->request,
				 &shake) == RVCM_WIRE_REASON_NONE &&
	       shake.link == link->index && shake.begun == rvcm_le32_get(link->request.begun) &&
	       shake.incarnation == contact->peer_incarnation;
}

static void established(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_carrier *carrier = link->contact->carrier;
	char who[RVCM_CAUSE_WHO_MAX], name[RVCM_ADDR_STRLEN];

	if (link->branch) {
		if (!is_answer(link, ev)) {
			failed(link->branch, "its reply to our request is not valid");
			return;
		}
		rvcm_timer_cancel(&carrier->timers, &link->branch->timer);
		if (link->branch->lost_ns)
			say_back(link->branch);
		link->branch->lost_ns = 0;
		rvcm_info(RVCM_LOG_EP_CTRL, "%s: goes by %s", rvcm_link_who(link, who),
			  rvcm_addr_format(link->branch->to, name, sizeof(name)));
		link->branch->attempts /= 2;
		memcpy(&link->reply, ev->private_data, sizeof(link->reply));
	}
	rvcm_timer_cancel(&carrier->timers, &link->timer);
	link->handed = true;
	if (link->branch)
		look_home(link->branch);
	rvcm_carrier_mail_data(carrier, &link->up);
}

static void refused(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	enum rvcm_status status = ev->status;

	if (ev->reject == RVCM_DEV_REJECT_CONSUMER)
		status = rvcm_shake_status(rvcm_shake_reason(ev->private_data, ev->private_bytes));
	else if (ev->reject == RVCM_DEV_REJECT_NOT_LISTENING)
		status = RVCM_STATUS_REFUSED;
	failed(link->branch, rvcm_status_text(status));
}

void rvcm_branch_event(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	if (ev->type == RVCM_DEV_EVENT_ESTABLISHED)
		established(link, ev);
	else if (ev->type == RVCM_DEV_EVENT_REJECTED && link->branch)
		refused(link, ev);
	else if (!link->handed && link->branch)
		failed(link->branch, rvcm_status_text(ev->status));
	else
		end(link, ev->status == RVCM_STATUS_OK ? RVCM_STATUS_PEER_CLOSED : ev->status,
		    ev->err);
}

void rvcm_branch_broken(struct rvcm_link *link)
{
	if (!link->down_posted)
		link->cause = link->failed_cause;
	recall(link);
}

void rvcm_branch_released(struct rvcm_link *link)
{
	if (link->branch && link->branch->link == link) {
		link->branch->lost_ns = rvcm_carrier_now(link->contact->carrier);
		link->branch->cause = link->cause;
	}
	close_link(link);
}

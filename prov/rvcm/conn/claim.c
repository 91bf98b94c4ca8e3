/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Claims: links whose opener says that it is a certain peer, and has not proved it yet. Control's
 * half; proof.c is the data side's.
 *
 * A REQUEST may be a recording, so it changes nothing that was there before: its link stands beside
 * the contact's, with a timer of its own, until HELLO, a MAC over both sides' nonces, proves that
 * the opener is alive and of this job. Only then it becomes the contact's link, and what it says of
 * incarnation and epoch is believed. Claims are limited in number, for each contact and in all; a
 * contact that never had anything else goes with its last claim.
 *
 *   accepted  -> established, handed to the data side -> PROVEN: it is the contact's link
 *             -> lost, late or shut: closed             -> lost, late, or shut: DOWN, RELEASED,
 * closed
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"

#define ESTABLISH_NS 2000000000u /* then the opener has given up too */
#define PARTING_NS   200000000u  /* for our last words to leave, and its end to come */

/* The data side does not have it. */
static void end(struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;

	rvcm_list_del(&link->of_contact);
	contact->n_claims--;
	contact->carrier->n_claims--;
	rvcm_link_close(link);
}

/* The data side is to let go of it; RELEASED will answer. */
static void recall(struct rvcm_link *link)
{
	rvcm_timer_cancel(&link->contact->carrier->timers, &link->timer);
	rvcm_link_recall(link);
}

static void drop(struct rvcm_link *link)
{
	if (link->handed)
		recall(link);
	else
		end(link);
}

static void expired(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_link *link = rvcm_container_of(timer, struct rvcm_link, timer);
	struct rvcm_contact *contact = link->contact;

	(void)now_ns;
	if (link->parting) {
		recall(link);
		return;
	}
	if (link->handed) { /* whether HELLO lies in the queue only the data side can see */
		rvcm_carrier_mail_data(contact->carrier, &link->due);
		return;
	}
	end(link);
	rvcm_contact_unclaimed(contact, RVCM_STATUS_CONNECT_TIMEOUT, 0, NULL);
}

/* While the data side computes, it lets go of nothing: what was lost meanwhile is in the way. */
enum rvcm_wire_reason rvcm_claim_judge(const struct rvcm_contact *contact,
				       const struct rvcm_shake *shake)
{
	enum rvcm_wire_reason full = RVCM_WIRE_REASON_RESOURCE;
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &contact->claims) {
		const struct rvcm_link *link = rvcm_list_entry(pos, struct rvcm_link, of_contact);

		if (link->peer_incarnation == shake->incarnation &&
		    !rvcm_seq_before(link->request_epoch, shake->epoch))
			return RVCM_WIRE_REASON_STALE;
		if (link->down_posted)
			full = RVCM_WIRE_REASON_BUSY;
	}
	if (contact->n_claims >= RVCM_CONN_CLAIMS_OF_PEER ||
	    contact->carrier->n_claims >= RVCM_CONN_CLAIMS_MAX)
		return full;
	return RVCM_WIRE_REASON_NONE;
}

/* Older attempts of the same opener, which it has abandoned itself. */
static void supersede(struct rvcm_contact *contact, const struct rvcm_link *by)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &contact->claims) {
		struct rvcm_link *link = rvcm_list_entry(pos, struct rvcm_link, of_contact);

		if (link == by || link->peer_incarnation != by->peer_incarnation)
			continue;
		/* It may have proved itself by now: what it has begun may go on. */
		rvcm_cause_set(&link->cause, &contact->peer,
			       rvcm_le32_get(by->request.begun) ? RVCM_STATUS_CONNECTION_LOST
								: RVCM_STATUS_REJECTED_STALE,
			       0, "it has opened another connection since");
		drop(link);
	}
}

/*
 * What the opener may send behind its HELLO. Nothing, where something else may have to be reaped
 * first, or a conn goes on: then the window is granted by our HELLO, with what has arrived.
 */
static uint16_t window(const struct rvcm_contact *contact, const struct rvcm_link *link)
{
	if (contact->link || contact->n_claims > 1 || rvcm_le32_get(link->request.begun) ||
	    link->request.flags & RVCM_WIRE_ANEW)
		return 0;
	return (uint16_t)link->window;
}

static int answer(struct rvcm_contact *contact, struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_dev *dev = link->qp->dev;
	struct rvcm_dev_req *req = contact->req;
	struct rvcm_shake shake;

	contact->req = NULL;
	rvcm_contact_shake(contact, &shake, RVCM_WIRE_REPLY);
	shake.peer_incarnation = link->peer_incarnation;
	shake.window = window(contact, link);
	shake.caps = (uint16_t)dev->attr.caps;
	shake.begun = rvcm_le32_get(link->request.begun);
	carrier->attr.env.random(carrier->attr.env.ctx, shake.nonce, sizeof(shake.nonce));
	rvcm_shake_encode(&shake, carrier->attr.job_key, &link->request, &link->reply);
	return dev->ops->accept(req, link->qp, &link->reply, sizeof(link->reply));
}

static void enter(struct rvcm_contact *contact, struct rvcm_link *link)
{
	link->claim = true;
	link->request = contact->req_wire;
	link->request_epoch = contact->req_shake.epoch;
	link->way = rvcm_rail_from(contact, &contact->req_from);
	/* Begun is an epoch of that incarnation's: each begins at 1. */
	link->unheard = contact->peer_incarnation != contact->req_shake.incarnation ||
			contact->begun != contact->req_shake.begun;
	rvcm_link_known(link, contact->req_shake.incarnation);
	if (contact->req_shake.begun == 0)
		link->peer_window = contact->req_shake.window;
	rvcm_timer_init(&link->timer, expired);
	rvcm_list_add_tail(&contact->claims, &link->of_contact);
	contact->n_claims++;
	contact->carrier->n_claims++;
	/* The link's epoch is the larger of the request's and of what we have used: see DESIGN.md.
	 */
	if (rvcm_seq_before(contact->epoch, link->request_epoch))
		contact->epoch = link->request_epoch;
	link->epoch = contact->epoch;
}

void rvcm_claim_accept(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_link *link;
	int rc = rvcm_link_open(contact, contact->req_dev, 0, false, &link);

	if (rc) {
		rvcm_contact_reject(contact, RVCM_WIRE_REASON_RESOURCE);
		rvcm_contact_unclaimed(contact, RVCM_STATUS_NO_MEMORY, -rc,
				       "no queue pair or receives for the peer's request");
		return;
	}
	enter(contact, link);
	supersede(contact, link);
	rc = answer(contact, link);
	if (rc) {
		end(link);
		rvcm_contact_unclaimed(contact, RVCM_STATUS_CONNECTION_LOST, -rc,
				       "the peer's request could not be accepted");
		return;
	}
	rvcm_timer_set(&carrier->timers, &link->timer, rvcm_carrier_now(carrier) + ESTABLISH_NS);
}

void rvcm_claim_established(struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = link->contact->carrier;

	link->handed = true;
	rvcm_timer_cancel(&carrier->timers, &link->timer);
	rvcm_carrier_mail_data(carrier, &link->up);
}

/* The time for HELLO counts from when the data side looks for it: until then we compute. */
void rvcm_claim_watched(struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = link->contact->carrier;
	uint64_t wait_ns = carrier->attr.hello_timeout_ns;

	if (link->down_posted)
		return;
	if (wait_ns == 0)
		wait_ns = carrier->attr.connect_timeout_ns;
	rvcm_timer_set(&carrier->timers, &link->timer, rvcm_carrier_now(carrier) + wait_ns);
}

void rvcm_claim_lost(struct rvcm_link *link, enum rvcm_status status, int err)
{
	struct rvcm_contact *contact = link->contact;

	if (link->handed) {
		if (!link->down_posted && !link->parting)
			rvcm_cause_by(&link->cause, &contact->peer, link->qp->dev, status, err,
				      NULL);
		recall(link);
		return;
	}
	end(link);
	rvcm_contact_unclaimed(contact, status, err, NULL);
}

/* Where the opener has been told why, the link ends in order behind that, or soon enough. */
void rvcm_claim_broken(struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = link->contact->carrier;

	if (!link->down_posted)
		link->cause = link->failed_cause;
	rvcm_warn(RVCM_LOG_EP_CTRL, "%s", link->failed_cause.text);
	link->parting =
		link->told && !link->down_posted && link->qp->dev->ops->disconnect(link->qp) == 0;
	if (link->parting)
		rvcm_timer_set(&carrier->timers, &link->timer,
			       rvcm_carrier_now(carrier) + PARTING_NS);
	else
		recall(link);
}

void rvcm_claim_released(struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_conn_cause cause = link->cause;

	rvcm_stat_inc(&contact->carrier->stats.unproven);
	end(link);
	rvcm_contact_unclaimed(contact, cause.status, cause.err, NULL);
}

/* The slot may have been shut meanwhile: then the link has been recalled, and stays a claim. */
void rvcm_claim_proven(struct rvcm_link *link)
{
	struct rvcm_contact *contact = link->contact;

	if (contact->state != RVCM_LINK_ACCEPTING)
		return;
	link->claim = false;
	rvcm_list_del(&link->of_contact);
	contact->n_claims--;
	contact->carrier->n_claims--;
	rvcm_timer_cancel(&contact->carrier->timers, &link->timer);
	rvcm_contact_take(contact, link);
}

void rvcm_claim_drop_all(struct rvcm_contact *contact)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &contact->claims) {
		struct rvcm_link *link = rvcm_list_entry(pos, struct rvcm_link, of_contact);

		rvcm_cause_set(&link->cause, &contact->peer, RVCM_STATUS_CLOSED, 0, NULL);
		drop(link);
	}
}

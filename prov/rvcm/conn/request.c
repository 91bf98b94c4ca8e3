/* SPDX-License-Identifier: BSD-2-Clause */
/* Judging a peer's request to connect: is it well-formed, of our job, and fresh? */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conn/conn_impl.h"

#define REFUSALS_NS 10000000000u

static const char *reason_text(enum rvcm_wire_reason reason)
{
	static const char *const text[] = {
		[RVCM_WIRE_REASON_NONE] = "accepted",
		[RVCM_WIRE_REASON_VERSION] = "it speaks another version of the wire format",
		[RVCM_WIRE_REASON_KEY] = "it has another job key",
		[RVCM_WIRE_REASON_CROSSED] = "our own request goes first",
		[RVCM_WIRE_REASON_STALE] = "its incarnation or epoch is stale",
		[RVCM_WIRE_REASON_NAME] = "its name is malformed, or ours",
		[RVCM_WIRE_REASON_RESOURCE] = "out of memory, descriptors or queue pairs",
		[RVCM_WIRE_REASON_CLOSING] = "the endpoint is being closed",
		[RVCM_WIRE_REASON_MALFORMED] = "its private data is not ours",
		[RVCM_WIRE_REASON_SHARED] = "there is a link to its process",
		[RVCM_WIRE_REASON_BUSY] = "another of its process goes first",
		[RVCM_WIRE_REASON_GONE] = "it goes on with a connection that is no more",
	};

	return text[reason];
}

/* It has consequences: so it is no recording, and comes from somebody with the key. */
static bool is_bound(enum rvcm_wire_reason reason)
{
	return reason == RVCM_WIRE_REASON_SHARED || reason == RVCM_WIRE_REASON_GONE;
}

int rvcm_request_reject(struct rvcm_slot *slot, uint16_t dev_index, struct rvcm_dev_req *req,
			enum rvcm_wire_reason reason, const struct rvcm_wire_handshake *request)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_dev *dev = carrier->devs[dev_index].dev;
	struct rvcm_wire_handshake reject;
	struct rvcm_shake shake = {
		.role = RVCM_WIRE_REJECT,
		.caps = (uint16_t)reason,
		.name = slot->name,
		.incarnation = carrier->incarnation,
		.epoch = 1,
		.slot = slot->number,
	};

	rvcm_shake_encode(&shake, carrier->attr.job_key, is_bound(reason) ? request : NULL,
			  &reject);
	return dev->ops->reject(req, &reject, sizeof(reject));
}

/* Is the request newer than what we know of that peer? */
static enum rvcm_wire_reason judge_fresh(const struct rvcm_contact *contact,
					 const struct rvcm_shake *shake)
{
	for (size_t i = 0; i < RVCM_CONN_INCARNATIONS; i++)
		if (contact->dead[i] == shake->incarnation)
			return RVCM_WIRE_REASON_STALE;
	if (shake->incarnation == contact->peer_incarnation &&
	    !rvcm_seq_before(contact->peer_epoch, shake->epoch))
		return RVCM_WIRE_REASON_STALE;
	return RVCM_WIRE_REASON_NONE;
}

struct kin_key {
	const struct rvcm_contact *not_of;
	uint32_t incarnation;
	bool claim;
};

bool rvcm_request_kin_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_link *link = rvcm_container_of(node, const struct rvcm_link, kin);
	const struct kin_key *key = arg;

	if (link->peer_incarnation != key->incarnation || link->contact == key->not_of ||
	    link->claim != key->claim || link->down_posted)
		return false;
	return link->claim || link->contact->state == RVCM_LINK_UP;
}

bool rvcm_request_has_kin(const struct rvcm_contact *contact, uint32_t incarnation, bool claim)
{
	const struct rvcm_carrier *carrier = contact->carrier;
	const struct kin_key key = {
		.not_of = contact,
		.incarnation = incarnation,
		.claim = claim,
	};

	return rvcm_hash_find(&carrier->kin, rvcm_hash_u64(carrier->hash_seed, incarnation),
			      &key) != NULL;
}

/*
 * One link joins two carriers, whatever their endpoints are. Who has lost the one that we know of
 * says ANEW. (A request of the very endpoint that has it says so too.)
 */
static enum rvcm_wire_reason judge_kin(const struct rvcm_contact *contact,
				       const struct rvcm_shake *shake)
{
	if (shake->flags & RVCM_WIRE_ANEW || shake->begun != 0 ||
	    (contact->link && contact->link->peer_incarnation == shake->incarnation))
		return RVCM_WIRE_REASON_NONE;
	if (rvcm_request_has_kin(contact, shake->incarnation, false))
		return RVCM_WIRE_REASON_SHARED;
	if (rvcm_reopen_has_parked(contact, shake->incarnation))
		return RVCM_WIRE_REASON_SHARED;
	if (rvcm_request_has_kin(contact, shake->incarnation, true) ||
	    rvcm_reopen_has_kin(contact, shake->incarnation))
		return RVCM_WIRE_REASON_BUSY;
	return RVCM_WIRE_REASON_NONE;
}

static enum rvcm_wire_reason judge(struct rvcm_slot *slot, const struct rvcm_dev_event *ev,
				   struct rvcm_shake *shake, struct rvcm_contact **contact)
{
	struct rvcm_carrier *carrier = slot->carrier;
	enum rvcm_wire_reason reason =
		rvcm_shake_decode(ev->private_data, ev->private_bytes, RVCM_WIRE_REQUEST,
				  carrier->attr.job_key, NULL, shake);

	if (reason != RVCM_WIRE_REASON_NONE)
		return reason;
	rvcm_addr_complete(&shake->name, &ev->peer);
	if (rvcm_addr_cmp(&shake->name, &slot->name) == 0)
		return RVCM_WIRE_REASON_NAME;
	if (slot->shut)
		return RVCM_WIRE_REASON_CLOSING;
	if (shake->link) {
		*contact = rvcm_contact_find(slot, &shake->name);
		return rvcm_branch_judge(*contact, slot, shake);
	}
	*contact = rvcm_contact_get(slot, &shake->name);
	if (!*contact)
		return RVCM_WIRE_REASON_RESOURCE;
	reason = judge_fresh(*contact, shake);
	if (reason == RVCM_WIRE_REASON_NONE)
		reason = rvcm_reopen_judge(*contact, shake);
	if (reason == RVCM_WIRE_REASON_NONE)
		reason = judge_kin(*contact, shake);
	return reason == RVCM_WIRE_REASON_NONE ? rvcm_claim_judge(*contact, shake) : reason;
}

/* Stale is what is left over when both sides connect at once; endpoints of a process share. */
static bool is_usual(enum rvcm_wire_reason reason)
{
	return reason == RVCM_WIRE_REASON_STALE || reason == RVCM_WIRE_REASON_SHARED ||
	       reason == RVCM_WIRE_REASON_BUSY || reason == RVCM_WIRE_REASON_GONE;
}

/*
 * Anybody who reaches the port may be refused as often as he likes: of each reason one line in a
 * while is at warn level, and says how many were not.
 */
static void say_refused(struct rvcm_carrier *carrier, const struct rvcm_dev_event *ev,
			enum rvcm_wire_reason reason)
{
	char from[RVCM_ADDR_STRLEN], more[48] = "";
	uint32_t missed = 0;
	bool loud = !is_usual(reason) &&
		    rvcm_throttle_pass(&carrier->refusals[reason], rvcm_carrier_now(carrier),
				       REFUSALS_NS, &missed);

	if (missed)
		snprintf(more, sizeof(more), " (and %u more like this before)", missed);
	rvcm_log(loud ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL,
		 "request from %s rejected: %s%s", rvcm_addr_format(&ev->peer, from, sizeof(from)),
		 reason_text(reason), more);
}

void rvcm_request_handle(struct rvcm_slot *slot, uint16_t dev, const struct rvcm_dev_event *ev)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_contact *contact = NULL;
	struct rvcm_shake shake;
	enum rvcm_wire_reason reason = judge(slot, ev, &shake, &contact);

	if (reason != RVCM_WIRE_REASON_NONE) {
		rvcm_stat_add(&carrier->stats.rejects,
			      !is_usual(reason) || reason == RVCM_WIRE_REASON_STALE);
		say_refused(carrier, ev, reason);
		rvcm_request_reject(slot, dev, ev->req, reason, ev->private_data);
		if (contact)
			rvcm_contact_tidy(contact);
		return;
	}
	if (shake.link) {
		rvcm_branch_accept(contact, dev, ev, &shake);
		return;
	}
	contact->req = ev->req;
	contact->req_dev = dev;
	contact->req_from = ev->peer;
	contact->req_shake = shake;
	memcpy(&contact->req_wire, ev->private_data, sizeof(contact->req_wire));
	rvcm_contact_feed(contact, rvcm_addr_cmp(&shake.name, &slot->name) < 0
					   ? RVCM_LINK_EV_REQ
					   : RVCM_LINK_EV_REQ_YIELD);
}

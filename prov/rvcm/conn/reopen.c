/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery, control's half (recover.c is the data side's): a contact whose conn has lost its link,
 * and goes on, is *reopening* until there is another, from our request or the peer's, or time is
 * up. All of that is as with a first contact, by the same table; but
 *
 *   - the REQUEST names the conn, by the epoch of its first link (begun), the peer's incarnation
 *     and its endpoint: who does not have it answers GONE, and then it is over at once;
 *   - the lower name opens at once, the higher a little later, so that the two seldom cross;
 *   - only the device that the lost link had is used: what is registered is so with that;
 *   - nobody listening is no reason to wait: the peer was there, and is no more;
 *   - there may be several ways to the peer: rail.c.
 */
#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

/* -- who is to be remembered ----------------------------------------------------------------- */

/* Of that process the endpoints that have closed had links here up to that epoch. */
struct former {
	struct rvcm_hash_node node; /* carrier.former */
	uint32_t incarnation;
	uint32_t taken;
};

bool rvcm_reopen_former_eq(const struct rvcm_hash_node *node, const void *incarnation)
{
	return rvcm_container_of(node, const struct former, node)->incarnation ==
	       *(const uint32_t *)incarnation;
}

static struct former *find_former(struct rvcm_carrier *carrier, uint32_t incarnation)
{
	struct rvcm_hash_node *node = rvcm_hash_find(
		&carrier->former, rvcm_hash_u64(carrier->hash_seed, incarnation), &incarnation);

	return node ? rvcm_container_of(node, struct former, node) : NULL;
}

void rvcm_reopen_forget(const struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct former *former = find_former(carrier, contact->peer_incarnation);

	if (!contact->taken)
		return;
	if (!former) {
		former = rvcm_mem_zalloc(sizeof(*former));
		if (!former)
			return;
		former->incarnation = contact->peer_incarnation;
		rvcm_hash_insert(&carrier->former, &former->node,
				 rvcm_hash_u64(carrier->hash_seed, former->incarnation));
	}
	if (rvcm_seq_before(former->taken, contact->taken))
		former->taken = contact->taken;
}

void rvcm_reopen_fini(struct rvcm_carrier *carrier)
{
	struct rvcm_hash_node *node;

	while ((node = rvcm_hash_next(&carrier->former, NULL))) {
		rvcm_hash_del(&carrier->former, node);
		rvcm_mem_free(rvcm_container_of(node, struct former, node));
	}
}

/* The newest epoch with which a link of that peer, or of who has closed there, was proven here. */
static uint32_t heard_of(const struct rvcm_contact *contact, uint32_t incarnation)
{
	const struct former *former = find_former(contact->carrier, incarnation);
	uint32_t taken = contact->peer_incarnation == incarnation ? contact->taken : 0;

	return former && rvcm_seq_before(taken, former->taken) ? former->taken : taken;
}

/* -- another link is to be opened ------------------------------------------------------------ */

void rvcm_reopen_begin(struct rvcm_contact *contact)
{
	const struct rvcm_link *link = contact->link;

	contact->reopening = link->lost_conn != NULL;
	if (!contact->reopening) {
		contact->begun = 0;
		return;
	}
	contact->conn = link->lost_conn;
	contact->parked = link->parked;
	contact->wanted = !link->parked;
	contact->deadline_ns = link->by_ns;
	contact->attempts = link->futile;
	contact->dev = link->dev;
	rvcm_rail_begin(contact, link);
	rvcm_list_del(&contact->of_reopening);
	rvcm_list_add_tail(&contact->carrier->reopening, &contact->of_reopening);
}

void rvcm_reopen_end(struct rvcm_contact *contact)
{
	contact->reopening = false;
	contact->parked = false;
	rvcm_list_del(&contact->of_reopening);
}

void rvcm_reopen_wake(struct rvcm_contact *contact, struct rvcm_conn *conn)
{
	if (!contact->parked) { /* the peer was first, and that answers it */
		rvcm_contact_want(contact, conn);
		return;
	}
	contact->parked = false;
	contact->wanted = true;
	contact->conn = conn;
	contact->attempts = 0;
	contact->deadline_ns =
		rvcm_carrier_now(contact->carrier) + contact->carrier->attr.reconnect_timeout_ns;
	rvcm_contact_feed(contact, RVCM_LINK_EV_WANT);
}

/* The answer tells the data side that nobody refers to its conn. */
void rvcm_reopen_forget_parked(struct rvcm_contact *contact, struct rvcm_conn *conn)
{
	if (contact->parked) {
		rvcm_reopen_end(contact);
		contact->begun = 0;
	}
	conn->answer_reopened = true;
	conn->answer_incarnation = 0;
	rvcm_carrier_mail_data(contact->carrier, &conn->answer);
}

bool rvcm_reopen_waits(const struct rvcm_contact *contact)
{
	return contact->reopening &&
	       (contact->attempts > 0 || rvcm_addr_cmp(&contact->peer, &contact->slot->name) < 0);
}

void rvcm_reopen_shake(const struct rvcm_contact *contact, struct rvcm_shake *shake)
{
	shake->peer_incarnation = contact->peer_incarnation;
	shake->heard = heard_of(contact, contact->peer_incarnation);
	if (!contact->reopening)
		return;
	shake->begun = contact->begun;
	shake->flags |= contact->own ? RVCM_WIRE_OWN : 0;
	shake->window = contact->peer_slot;
}

void rvcm_reopen_note(struct rvcm_contact *contact, const struct rvcm_link *link)
{
	const struct rvcm_wire_handshake *peers = link->opener ? &link->reply : &link->request;

	contact->peer_slot = rvcm_le16_get(peers->slot);
	contact->first = rvcm_link_begun(link);
	contact->begun = rvcm_link_lasts(link) ? contact->first : 0;
	contact->dev = link->dev;
	contact->way = link->way;
	contact->own = rvcm_link_own(link);
	rvcm_branch_moved(contact);
	if (!link->opener)
		contact->taken = link->epoch;
}

bool rvcm_reopen_is_answer(const struct rvcm_contact *contact, const struct rvcm_link *link,
			   const struct rvcm_shake *shake)
{
	uint32_t begun = rvcm_le32_get(link->request.begun);

	return shake->begun == begun &&
	       (begun == 0 || (shake->incarnation == contact->peer_incarnation &&
			       shake->flags & RVCM_WIRE_RECOVERY));
}

/*
 * Who has opened a conn has it when its HELLO has been sent, which may be lost with the link: who
 * has never heard that begins the conn now, for nothing of it was taken. Who has heard it, or has
 * opened the conn itself, and does not have it, has given it up.
 */
enum rvcm_wire_reason rvcm_reopen_judge(const struct rvcm_contact *contact,
					const struct rvcm_shake *shake)
{
	const struct rvcm_carrier *carrier = contact->carrier;
	bool known = contact->peer_incarnation == shake->incarnation;

	if (shake->begun == 0)
		return RVCM_WIRE_REASON_NONE;
	if (shake->peer_incarnation != carrier->incarnation ||
	    shake->window != contact->slot->number || !carrier->attr.reconnect_timeout_ns)
		return RVCM_WIRE_REASON_GONE;
	if (known && contact->begun == shake->begun)
		return RVCM_WIRE_REASON_NONE;
	if (!(shake->flags & RVCM_WIRE_OWN))
		return RVCM_WIRE_REASON_GONE;
	if (!rvcm_seq_before(heard_of(contact, shake->incarnation), shake->begun))
		return RVCM_WIRE_REASON_GONE;
	return RVCM_WIRE_REASON_NONE;
}

void rvcm_reopen_gone(struct rvcm_link *link, const struct rvcm_dev_event *ev)
{
	struct rvcm_contact *contact = link->contact;
	struct rvcm_shake shake;
	enum rvcm_wire_reason reason =
		rvcm_shake_decode(ev->private_data, ev->private_bytes, RVCM_WIRE_REJECT,
				  contact->carrier->attr.job_key, &link->request, &shake);

	if (reason != RVCM_WIRE_REASON_NONE || !contact->reopening)
		rvcm_contact_failed(contact, rvcm_shake_status(reason), 0, contact->reopening,
				    "its answer to our request is not valid");
	else if (shake.incarnation == contact->peer_incarnation)
		rvcm_contact_failed(contact, RVCM_STATUS_GIVEN_UP, 0, false, NULL);
	else
		rvcm_contact_failed(contact, RVCM_STATUS_PEER_RESTARTED, 0, rvcm_rail_turn(contact),
				    NULL);
}

void rvcm_reopen_put_off(struct rvcm_contact *contact)
{
	if (contact->reopening)
		contact->deadline_ns = rvcm_carrier_now(contact->carrier) +
				       contact->carrier->attr.reconnect_timeout_ns;
}

static bool has_kin(const struct rvcm_contact *contact, uint32_t incarnation, bool parked)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &contact->carrier->reopening) {
		const struct rvcm_contact *other =
			rvcm_list_entry(pos, struct rvcm_contact, of_reopening);

		if (other != contact && other->peer_incarnation == incarnation &&
		    (other->parked || !parked))
			return true;
	}
	return false;
}

bool rvcm_reopen_has_kin(const struct rvcm_contact *contact, uint32_t incarnation)
{
	return has_kin(contact, incarnation, false);
}

bool rvcm_reopen_has_parked(const struct rvcm_contact *contact, uint32_t incarnation)
{
	return has_kin(contact, incarnation, true);
}

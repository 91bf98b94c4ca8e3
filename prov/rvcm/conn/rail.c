/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which way link 0 is made again. Way 0 is the peer's name, from our own; then come the rails
 * that the peer's HELLO told, each from whichever of our addresses leads there; and where we have
 * rails ourselves, the name once more, likewise.
 *
 * It begins with the way that the lost link went, or where that had fallen silent, or carried
 * nothing, with the next; an attempt that does not find the peer is followed by one by the next.
 * Only who answers at the peer's name is sure to be the peer: a rail's address may be another
 * host's as well, where we are, so nothing that is heard there is final but what the peer's own
 * incarnation says.
 *
 * Of attempts that cross that of the lower name wins, on whichever way: where that does not get
 * there it fails in time, and while its side backs off the other's is taken.
 */
#include <string.h>

#include "base/log.h"
#include "conn/conn_impl.h"

static uint32_t n_ways(const struct rvcm_contact *contact)
{
	return 1 + contact->n_rails + (contact->slot->n_rails != 0);
}

static void go_on(struct rvcm_contact *contact)
{
	contact->way = (contact->way + 1) % n_ways(contact);
}

/* Nothing was heard, as of a wire that is out. */
static bool is_silence(enum rvcm_status status)
{
	return status == RVCM_STATUS_RETRY_EXCEEDED || status == RVCM_STATUS_RESPONSE_TIMEOUT ||
	       status == RVCM_STATUS_UNREACHABLE || status == RVCM_STATUS_LOCAL_QP_OP;
}

void rvcm_rail_begin(struct rvcm_contact *contact, const struct rvcm_link *link)
{
	if (link->peer_takes) { /* its HELLO has come */
		memcpy(contact->rails, link->rails, sizeof(contact->rails));
		contact->n_rails = link->n_rails;
	}
	contact->way = link->way % n_ways(contact);
	if (link->futile || is_silence(link->cause.status))
		go_on(contact);
}

bool rvcm_rail_turn(struct rvcm_contact *contact)
{
	bool by_rail = contact->reopening && contact->way != 0;

	if (contact->reopening)
		go_on(contact);
	return by_rail;
}

static bool is_at(const struct rvcm_addr *addr, const struct rvcm_addr *from)
{
	struct rvcm_addr same = *from;

	same.port = addr->port;
	return rvcm_addr_equal(&same, addr);
}

uint32_t rvcm_rail_from(const struct rvcm_contact *contact, const struct rvcm_addr *from)
{
	if (is_at(&contact->peer, from))
		return 0;
	for (uint32_t i = 0; i < contact->n_rails; i++)
		if (is_at(&contact->rails[i], from))
			return i + 1;
	return 0;
}

const struct rvcm_addr *rvcm_rail_addr(const struct rvcm_contact *contact, uint32_t way)
{
	return way && way <= contact->n_rails ? &contact->rails[way - 1] : &contact->peer;
}

int rvcm_rail_open(struct rvcm_contact *contact, uint16_t dev, struct rvcm_link **link)
{
	uint32_t way = contact->reopening ? contact->way : 0;
	char name[RVCM_ADDR_STRLEN], at[RVCM_ADDR_STRLEN];
	int rc = way ? rvcm_link_open_routed(contact, dev, 0, link)
		     : rvcm_link_open(contact, dev, 0, true, link);

	if (rc)
		return rc;
	(*link)->way = way;
	if (way)
		rvcm_info(RVCM_LOG_EP_CTRL, "peer %s: it is tried at %s",
			  rvcm_addr_format(&contact->peer, name, sizeof(name)),
			  rvcm_addr_format(rvcm_rail_addr(contact, way), at, sizeof(at)));
	return 0;
}

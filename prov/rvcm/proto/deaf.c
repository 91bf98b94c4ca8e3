/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine whose last device was removed. What was under way with peers ends when its path goes
 * down, as ever; but no path leads to whoever a posted receive waits for. So these end here, and
 * what is posted later ends in the call. A message that had arrived is still received. To ourselves
 * nothing goes either: half an endpoint would be a surprise.
 *
 * It does not pass: a device that comes back under the old name is another one, and is opened by
 * another domain.
 */
#include "proto/proto_impl.h"

static struct rvcm_why why_of(const struct rvcm_engine *engine)
{
	const struct rvcm_conn_cause *cause = &engine->deaf;

	return (struct rvcm_why) { .status = cause->status,
				   .err = cause->err,
				   .text = cause->text };
}

void rvcm_deaf_recvs(struct rvcm_ep *ep)
{
	const struct rvcm_why why = why_of(ep->engine);
	struct rvcm_list *pos, *tmp;

	for (uint32_t i = 0; i < 2; i++)
		rvcm_list_for_each_safe (pos, tmp, &ep->match[i].posted) {
			struct rvcm_match_recv *recv = rvcm_match_recv_of(pos);

			rvcm_match_unpost(&ep->match[i], recv);
			rvcm_recv_stop(ep, rvcm_recv_of(recv), &why);
		}
}

void rvcm_deaf_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_why why = why_of(ep->engine);

	rvcm_send_report(ep, tx, &why);
}

/* Sends to ourselves that wait for their receives. Who has claimed one can have it yet. */
static void end_waiting(struct rvcm_peer *self)
{
	const struct rvcm_why why = why_of(self->ep->engine);
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &self->held) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (held->kind != RVCM_HELD_SELF)
			continue;
		rvcm_match_drop(rvcm_ep_match(self->ep, held->flags), &held->match);
		rvcm_send_end(held->send, &why);
		rvcm_hold_free(held);
	}
}

static void end_all(struct rvcm_ep *ep)
{
	struct rvcm_list *pos;

	ep->short_end = 0;
	ep->rx_open = 0;
	rvcm_deaf_recvs(ep);
	rvcm_list_for_each (pos, &ep->peers)
		end_waiting(rvcm_container_of(pos, struct rvcm_peer, node));
}

void rvcm_deaf_begin(struct rvcm_engine *engine, const struct rvcm_conn_cause *cause)
{
	engine->deaf = *cause;
	for (uint32_t i = 0; i < RVCM_CONN_SLOTS_MAX; i++)
		if (engine->eps[i])
			end_all(engine->eps[i]);
}

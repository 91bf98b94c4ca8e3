/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to ourselves: the same matcher, and a copy from memory to memory. An unexpected one is
 * copied if it could have been eager; a long one waits for its receive, as it would for a FIN.
 */
#include <errno.h>

#include "proto/choose.h"
#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

static void copy(struct rvcm_recv *recv, const struct rvcm_ep_tx *tx)
{
	size_t at = 0;

	for (uint32_t i = 0; i < tx->n_iov; i++)
		at += rvcm_iov_scatter(recv->iov, recv->n_iov, at, tx->iov[i].addr,
				       tx->iov[i].length);
}

void rvcm_self_take(struct rvcm_recv *recv, struct rvcm_send *send)
{
	struct rvcm_ep *ep = send->tx.peer->ep;

	copy(recv, &send->tx);
	rvcm_send_end(send, &ok);
	rvcm_recv_end(ep, recv, &ok);
}

/* Keep the operation until a receive takes it, with a copy if the memory is not ours to keep. */
static int wait_for_receive(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length,
			    bool own)
{
	struct rvcm_send *send = rvcm_send_new(ep, tx, length);

	if (!send)
		return -EAGAIN;
	if ((own && rvcm_send_own(send)) || rvcm_hold_send(send)) {
		rvcm_send_free(send);
		return -EAGAIN;
	}
	if (!own) /* a copy costs memory, of which tx_max sets the limit */
		rvcm_send_part(send);
	return 0;
}

static int unexpected(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_choose_in in = {
		.length = length,
		.eager_max = ep->engine->eager_max,
		.pieces = rvcm_iov_pieces(tx->iov, tx->n_iov),
		.eager_off = tx->peer->off_wanted,
		.inject = tx->flags & RVCM_EP_INJECT,
		.self = true,
	};
	enum rvcm_choose how = rvcm_choose(&in);

	if (how != RVCM_CHOOSE_EAGER)
		return wait_for_receive(ep, tx, length, how == RVCM_CHOOSE_RNDV_COPY);
	if (rvcm_hold_copy(tx, length))
		return -EAGAIN;
	rvcm_send_report(ep, tx, &ok);
	return 0;
}

int rvcm_self_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	uint64_t tag = tx->tag;
	struct rvcm_match_recv *found;
	int rc = 0;

	found = rvcm_match_arrive(rvcm_ep_match(ep, tx->flags), tag, tx->peer->source);
	if (found) {
		struct rvcm_recv *recv = rvcm_recv_taker(ep, found, length);

		rvcm_recv_bind(recv, tx->peer, tx->flags & RVCM_PUT_FLAGS, tag, tx->data, length);
		copy(recv, tx);
		rvcm_send_report(ep, tx, &ok);
		rvcm_recv_end(ep, recv, &ok);
	} else {
		rc = unexpected(ep, tx, length);
	}
	if (!rc)
		rvcm_stat_inc(&ep->stats.self_msgs);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/poll.h"

static void failed(struct rvcm_link *link, const struct rvcm_dev_wc *wc)
{
	if (link->index)
		rvcm_side_failed(link, wc);
	else
		rvcm_conn_fail_completed(link->conn, wc);
}

static void sent(struct rvcm_carrier_dev *dev, struct rvcm_link *link, const struct rvcm_dev_wc *wc)
{
	uintptr_t what = (uintptr_t)(wc->wr_id & ~(uint64_t)RVCM_POLL_READ);

	if (!link->conn && !link->index)
		return; /* a claim: nothing of ours was sent on it */
	if (wc->wr_id & RVCM_POLL_READ)
		rvcm_read_completed(dev->carrier, (struct rvcm_read_piece *)what, wc->status);
	else if (wc->status == RVCM_STATUS_OK)
		rvcm_tx_completed(link, wc->wr_id >> 1);
	/* Flushed is an echo of what ends the link anyway. */
	if (wc->status != RVCM_STATUS_OK && wc->status != RVCM_STATUS_FLUSHED)
		failed(link, wc);
}

static __attribute__((cold)) void receive_failed(struct rvcm_carrier_dev *dev,
						 struct rvcm_link *link,
						 const struct rvcm_dev_wc *wc)
{
	if (wc->status == RVCM_STATUS_FLUSHED)
		return;
	if (link->conn || link->index)
		failed(link, wc);
	else
		rvcm_proof_fail(dev->carrier, link, wc->status);
}

static void received_otherwise(struct rvcm_carrier_dev *dev, struct rvcm_link *link,
			       const struct rvcm_dev_wc *wc)
{
	struct rvcm_conn *conn = link->conn;

	if (link->index && wc->op == RVCM_DEV_OP_RECV)
		rvcm_side_message(dev->carrier, link, wc->data, wc->length);
	else if (!conn && wc->op == RVCM_DEV_OP_RECV)
		rvcm_proof_message(dev->carrier, link, wc->data, wc->length);
	else if (conn && wc->op == RVCM_DEV_OP_RECV)
		rvcm_rx_bare(conn, wc->data, wc->length, (uint32_t)wc->imm);
	else if (conn && wc->op == RVCM_DEV_OP_RECV_HEAD && !conn->failing && !conn->failed)
		rvcm_rx_head(conn, wc->data, wc->length);
}

void rvcm_poll_other(struct rvcm_carrier_dev *dev, const struct rvcm_dev_wc *wc)
{
	struct rvcm_link *link = wc->qp_ctx;

	if (wc->op < RVCM_DEV_OP_RECV) {
		sent(dev, link, wc);
	} else if (wc->status != RVCM_STATUS_OK) {
		receive_failed(dev, link, wc);
	} else {
		received_otherwise(dev, link, wc);
		dev->dev->ops->rx_release(dev->pool, wc->rx);
	}
}

int rvcm_poll_dev(struct rvcm_carrier_dev *dev)
{
	return rvcm_poll_inline(dev);
}

int rvcm_poll_others(struct rvcm_carrier *carrier)
{
	int n = 0;

	for (uint32_t i = 1; i < carrier->attr.n_devs; i++)
		n += rvcm_poll_dev(&carrier->devs[i]);
	return n;
}

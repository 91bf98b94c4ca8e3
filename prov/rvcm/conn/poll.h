/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of the devices, told apart. */
#ifndef RVCM_CONN_POLL_H
#define RVCM_CONN_POLL_H

#include "conn/conn_impl.h"

#define RVCM_POLL_BATCH 16

/* Every device but the first; returns the number of events. */
int rvcm_poll_others(struct rvcm_carrier *carrier);

/* What is not a frame on the link of a conn, as nearly all are. */
void rvcm_poll_other(struct rvcm_carrier_dev *dev, const struct rvcm_dev_wc *wc);

/* rvcm_poll_dev, for where it is done once for each message. */
static inline __attribute__((always_inline)) int rvcm_poll_inline(struct rvcm_carrier_dev *dev)
{
	struct rvcm_dev_wc wc[RVCM_POLL_BATCH];
	const struct rvcm_dev_wc *w = wc;
	int n = dev->dev->ops->cq_poll(dev->cq, wc, RVCM_POLL_BATCH);

	for (int left = n; left > 0; left--, w++) {
		struct rvcm_link *link = w->qp_ctx;

		if (w->op != RVCM_DEV_OP_RECV || w->status != RVCM_STATUS_OK || !link->conn) {
			rvcm_poll_other(dev, w);
			continue;
		}
		rvcm_rx_message(link->conn, w->data, w->length);
		dev->dev->ops->rx_release(dev->pool, w->rx);
	}
	return n;
}

#endif

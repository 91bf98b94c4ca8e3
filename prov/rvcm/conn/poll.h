/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of the devices, told apart. */
#ifndef RVCM_CONN_POLL_H
#define RVCM_CONN_POLL_H

#include <string.h>

#include "conn/conn_impl.h"

#define RVCM_POLL_BATCH 16

/* Every device but the first; returns the number of events. */
int rvcm_poll_others(struct rvcm_carrier *carrier);

/* What is not a frame on the link of a conn, as nearly all are. */
void rvcm_poll_other(struct rvcm_carrier_dev *dev, const struct rvcm_dev_wc *wc);

/*
 * It ended well and has no immediate: status and flags are looked at together. Bit 31 is no flag;
 * with it the mask fits an instruction.
 */
static inline bool rvcm_poll_is_plain(const struct rvcm_dev_wc *wc)
{
	static const uint32_t otherwise[2] = { RVCM_DEV_WC_IMM | 1u << 31, UINT32_MAX };
	uint64_t both, mask;

	_Static_assert(offsetof(struct rvcm_dev_wc, status) ==
			       offsetof(struct rvcm_dev_wc, flags) + sizeof(wc->flags),
		       "one behind the other");
	_Static_assert(sizeof(wc->status) == sizeof(uint32_t) && RVCM_STATUS_OK == 0, "a number");
	memcpy(&both, (const uint8_t *)wc + offsetof(struct rvcm_dev_wc, flags), sizeof(both));
	memcpy(&mask, otherwise, sizeof(mask));
	return !(both & mask);
}

/* rvcm_poll_dev, for where it is done once for each message. */
static inline __attribute__((always_inline)) int rvcm_poll_inline(struct rvcm_carrier_dev *dev)
{
	struct rvcm_dev_wc wc[RVCM_POLL_BATCH];
	const struct rvcm_dev_wc *w = wc;
	int n = dev->dev->ops->cq_poll(dev->cq, wc, RVCM_POLL_BATCH);

	for (int left = n; left > 0; left--, w++) {
		struct rvcm_link *link = w->qp_ctx;

		if (w->op != RVCM_DEV_OP_RECV || !rvcm_poll_is_plain(w) || !link->conn) {
			rvcm_poll_other(dev, w);
			continue;
		}
		rvcm_rx_message(link->conn, w->data, w->length);
		dev->dev->ops->rx_release(dev->pool, w->rx);
	}
	return n;
}

#endif

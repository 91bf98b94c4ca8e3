/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any RDMA NIC: librdmacm for connections, libibverbs for data. InfiniBand, RoCE and iWARP, and on
 * Linux the kernel's soft devices rxe and siw.
 *
 * One device per address that rdma_cm maps to an RDMA device. There are no threads of its own but,
 * on iWARP, those that wait in rdma_connect. A completed SEND or WRITE is placed at the peer on
 * InfiniBand and RoCE (cap PLACED), and handed to the stream on iWARP.
 *
 * A device that is removed while in use (rdma_cm's DEVICE_REMOVAL, ibv's DEVICE_FATAL) is reported
 * once as DEVICE_REMOVAL, with ctx NULL; then each QP of it ends as by any other error. What the
 * kernel waits for is given back by cq_poll and cm_poll, as soon as no QP is left: objects that are
 * still open are empty from then on, calls on them fail with ENODEV, and they are closed as usual.
 */
#ifndef RVCM_DEV_VERBS_VERBS_H
#define RVCM_DEV_VERBS_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

/* What may be tuned; rvcm_verbs_tunables_init gives the defaults in brackets. */
struct rvcm_verbs_tunables {
	uint8_t tos;         /* of the packets sent: RDMA_OPTION_ID_TOS; 0 = the system's [0] */
	uint8_t ack_timeout; /* 4.096 us * 2^n without an acknowledgement: resend, 0 = for ever;
				IBTA volume 1, 9.9.2.1; where the device has it [14] */
	uint8_t retry_count; /* resends before RETRY_EXCEEDED, 0 to 6: with 7 rxe never ends [6] */
	uint32_t resolve_timeout_ms; /* for an address, and for a route [2000] */
	uint32_t connect_timeout_ms; /* for the peer's answer, then UNREACHABLE [10000] */
	uint32_t close_timeout_ms;   /* what was posted before disconnect may take so long [5000] */
	uint32_t keepalive_ms;       /* how often a peer's adapter is probed; 0 = never [10000] */
};

void rvcm_verbs_tunables_init(struct rvcm_verbs_tunables *tunables);

/* As the class's open, with tunables; NULL = defaults. Values out of range are clamped. */
int rvcm_verbs_open(const struct rvcm_dev_attr *attr, const struct rvcm_verbs_tunables *tunables,
		    struct rvcm_dev **dev);

extern const struct rvcm_dev_class rvcm_verbs_class;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager in place of librdmacm, what of libibverbs opens a device, and what this
 * host's IP stack is asked (dev/verbs/netlink.h): a program
 * that lists fake_cm.c and fake_ibv.c among its sources has both. The test says what comes, and it
 * is counted what is owed: each event is acknowledged once, each id destroyed once, after its
 * events, and not while the kernel would wait with it.
 */
#ifndef RVCM_FABTESTS_FAKE_CM_H
#define RVCM_FABTESTS_FAKE_CM_H

#include "unit/fake_ibv.h"

#include "dev/verbs/netlink.h"

/* An id, until it is destroyed. */
struct fake_cm_id {
	struct rdma_cm_id id;
	struct rvcm_list node;
	uint32_t unacked;  /* events that were taken */
	uint32_t connects; /* rdma_connect was called */
	uint32_t accepts;  /* and so on */
	uint32_t rejects;
	uint32_t disconnects;
	uint32_t notified;
	bool calling;    /* ... and has not returned */
	bool unanswered; /* an iWARP id whose destruction would wait */
};

struct fake_cm {
	bool iwarp;
	struct rvcm_list ids;
	uint32_t n_ids;
	uint32_t n_created; /* ids, ever */
	uint32_t unacked;   /* events, of rdma_cm and of the device */
	uint32_t acked;
	uint32_t contexts; /* of the device, open */
	uint32_t channels;
	enum ibv_qp_state qp_state; /* what ibv_query_qp(3) finds */
	enum ibv_port_state port_state;
	uint32_t disconnects; /* rdma_disconnect, ever */

	/* What netlink.c would ask. */
	bool unrouted;
	struct tcp_info tcp;
	int tcp_fails; /* a negative errno */

	/* What the next calls answer: an errno, 0 = success. */
	int bind_fails;
	int resolve_fails;
	int route_fails;
	int connect_fails;
	bool connect_waits; /* rdma_connect does not return before fake_cm_let_go */
};

extern struct fake_cm fake_cm;

/* A device on the fake, as rvcm_verbs_open makes it; tunables NULL: the defaults. */
struct rvcm_dev *fake_cm_open(bool iwarp, const struct rvcm_verbs_tunables *tunables);
/* Nothing is left, and nothing is owed. */
void fake_cm_close(void);

/* Something comes for the id; of a QP, *id is rvcm_verbs_qp's. CONNECT_REQUEST: with an id of its
   own, which is returned; else NULL. */
struct rdma_cm_id *fake_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
				 const void *private_data, uint8_t private_bytes);
/* ... for the device, or for the QP if there is one. */
void fake_cm_async(enum ibv_event_type type, struct ibv_qp *qp);
/* Those that wait in rdma_connect return so. */
void fake_cm_let_go(int err);
/* Until so many have begun to. */
void fake_cm_await_calls(uint32_t n);

struct fake_cm_id *fake_cm_of(struct rdma_cm_id *id);

#endif

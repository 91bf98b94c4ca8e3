/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a connection on the kernel's RDMA stack (rdma_cm(7), verbs), for programs that go
 * through a protocol step by step; the counterpart of side.h, with the same manners: every call
 * waits, and what does not go as it should ends the process.
 */
#ifndef RVCM_FABTESTS_VM_KSIDE_H
#define RVCM_FABTESTS_VM_KSIDE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define KSIDE_QUEUE      256
#define KSIDE_PRIVATE    255 /* an 8-bit length */
#define KSIDE_PATIENCE_S 240

struct kside {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_wc early[2 * KSIDE_QUEUE]; /* that came before the one that was awaited */
	uint32_t n_early;

	/* The last event, acknowledged. */
	enum rdma_cm_event_type event;
	int status;
	uint8_t private_data[256];
	size_t private_bytes;
};

void kside_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void kside_open(struct kside *k);
void kside_close(struct kside *k);

void kside_listen(struct kside *k, const char *address, uint16_t port);
/* Address and route, and a QP on what they lead to. */
void kside_resolve(struct kside *k, const char *from, const char *to, uint16_t port);
/* Starts to connect; 0, or rdma_connect's errno. */
int kside_dial(struct kside *k, const void *data, size_t bytes);
/* All of it, until ESTABLISHED. */
void kside_connect(struct kside *k, const char *from, const char *to, uint16_t port,
		   const void *data, size_t bytes);
/* Waits for a request, and makes a QP for it. */
void kside_request(struct kside *k);
void kside_accept(struct kside *k, const void *data, size_t bytes);
void kside_reject(struct kside *k, const void *data, size_t bytes);
void kside_disconnect(struct kside *k);

/* The next event; it must be of that type. */
void kside_event(struct kside *k, enum rdma_cm_event_type type);
void kside_check_private(const struct kside *k, const void *data, size_t bytes);

struct ibv_mr *kside_mr(struct kside *k, void *addr, size_t bytes, int access);
void kside_recv(struct kside *k, struct ibv_mr *mr, size_t offset, size_t bytes);
/* A signalled operation on part of mr. */
void kside_post(struct kside *k, enum ibv_wr_opcode opcode, struct ibv_mr *mr, size_t offset,
		size_t bytes, uint64_t raddr, uint32_t rkey);
/* The next completion, whatever its status. */
struct ibv_wc kside_wc(struct kside *k);
/*
 * The next of its queue must be this one, and good. Between the two queues of a QP there is no
 * order: siw may report the answer to a SEND before that SEND.
 */
struct ibv_wc kside_expect(struct kside *k, enum ibv_wc_opcode opcode);

#endif

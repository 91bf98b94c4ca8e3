/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vm/actor.h"
#include "vm/kside.h"

#define READ_WRITE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

struct siw {
	struct kside side;
	struct ibv_mr *mr;
	struct ibv_mr *guarded;
	int dial_rc;
};

static const struct {
	enum ibv_wr_opcode wr;
	enum ibv_wc_opcode wc;
} ops[] = {
	[ACTOR_SEND] = { IBV_WR_SEND, IBV_WC_SEND },
	[ACTOR_WRITE] = { IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
	[ACTOR_READ] = { IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
	[ACTOR_RECV] = { 0, IBV_WC_RECV },
};

static struct siw *siw_of(struct actor *a)
{
	return a->state;
}

static void siw_open(struct actor *a)
{
	a->state = calloc(1, sizeof(struct siw));
	kside_open(&siw_of(a)->side);
}

static void siw_close(struct actor *a)
{
	struct siw *siw = siw_of(a);

	if (siw->side.id && siw->side.id->qp)
		rdma_destroy_qp(siw->side.id);
	if ((siw->mr && ibv_dereg_mr(siw->mr)) || (siw->guarded && ibv_dereg_mr(siw->guarded)))
		kside_die("cannot deregister memory");
	kside_close(&siw->side);
	free(siw);
}

/* There is a QP now, and with it a protection domain. */
static void register_memory(struct actor *a)
{
	struct siw *siw = siw_of(a);

	siw->mr = kside_mr(&siw->side, a->buf, ACTOR_BUF_BYTES, READ_WRITE);
	a->here.addr = (uintptr_t)a->buf;
	a->here.rkey = siw->mr->rkey;
}

static void siw_listen(struct actor *a)
{
	kside_listen(&siw_of(a)->side, PEERS_SIW_ADDR, a->p->port);
}

static void siw_request(struct actor *a, const void *data, size_t bytes)
{
	kside_request(&siw_of(a)->side);
	kside_check_private(&siw_of(a)->side, data, bytes);
	register_memory(a);
}

static void siw_accept(struct actor *a, const void *data, size_t bytes)
{
	kside_accept(&siw_of(a)->side, data, bytes);
}

static void siw_reject(struct actor *a, const void *data, size_t bytes)
{
	kside_reject(&siw_of(a)->side, data, bytes);
}

/* siw connects TCP before rdma_connect returns, and that may fail already. */
static void dialled(struct actor *a)
{
	if (siw_of(a)->dial_rc)
		kside_die("rdma_connect: %s", strerror(siw_of(a)->dial_rc));
}

static void siw_dial(struct actor *a, const void *data, size_t bytes)
{
	struct siw *siw = siw_of(a);

	kside_resolve(&siw->side, PEERS_SIW_ADDR, PEERS_SOFT_ADDR, a->p->port);
	register_memory(a);
	siw->dial_rc = kside_dial(&siw->side, data, bytes);
}

static void siw_established(struct actor *a, const void *data, size_t bytes)
{
	dialled(a);
	kside_event(&siw_of(a)->side, RDMA_CM_EVENT_ESTABLISHED);
	kside_check_private(&siw_of(a)->side, data, bytes);
}

static void siw_rejected(struct actor *a, const void *data, size_t bytes)
{
	dialled(a);
	kside_event(&siw_of(a)->side, RDMA_CM_EVENT_REJECTED);
	kside_check_private(&siw_of(a)->side, data, bytes);
}

static void siw_refused(struct actor *a)
{
	if (siw_of(a)->dial_rc != ECONNREFUSED)
		kside_die("rdma_connect: %s", strerror(siw_of(a)->dial_rc));
}

static void siw_disconnect(struct actor *a)
{
	kside_disconnect(&siw_of(a)->side);
}

static void siw_disconnected(struct actor *a, enum actor_end end)
{
	(void)end;
	kside_event(&siw_of(a)->side, RDMA_CM_EVENT_DISCONNECTED);
}

static void siw_idle(struct actor *a)
{
	(void)a;
}

static void siw_guard(struct actor *a, size_t bytes, struct peers_memory *memory)
{
	struct siw *siw = siw_of(a);

	siw->guarded = kside_mr(&siw->side, a->buf, bytes, IBV_ACCESS_REMOTE_READ);
	memory->addr = (uintptr_t)a->buf;
	memory->rkey = siw->guarded->rkey;
}

static void siw_recv(struct actor *a, size_t offset, size_t bytes)
{
	kside_recv(&siw_of(a)->side, siw_of(a)->mr, offset, bytes);
}

static void siw_post(struct actor *a, enum actor_op op, size_t offset, size_t bytes, uint64_t raddr,
		     uint32_t rkey)
{
	kside_post(&siw_of(a)->side, ops[op].wr, siw_of(a)->mr, offset, bytes, raddr, rkey);
}

static size_t siw_expect(struct actor *a, enum actor_op op)
{
	return kside_expect(&siw_of(a)->side, ops[op].wc).byte_len;
}

static void siw_expect_failure(struct actor *a)
{
	if (kside_wc(&siw_of(a)->side).status == IBV_WC_SUCCESS)
		kside_die("an operation succeeded");
}

/* siw does not always report what it flushes (seen in 2 of 90 runs): its disconnect has to do. */
static void siw_expect_death(struct actor *a, unsigned int n)
{
	(void)a;
	(void)n;
}

const struct actor_ops actor_siw_ops = {
	.open = siw_open,
	.close = siw_close,
	.listen = siw_listen,
	.request = siw_request,
	.accept = siw_accept,
	.reject = siw_reject,
	.dial = siw_dial,
	.established = siw_established,
	.rejected = siw_rejected,
	.refused = siw_refused,
	.disconnect = siw_disconnect,
	.disconnected = siw_disconnected,
	.idle = siw_idle,
	.guard = siw_guard,
	.recv = siw_recv,
	.post = siw_post,
	.expect = siw_expect,
	.expect_failure = siw_expect_failure,
	.expect_death = siw_expect_death,
};

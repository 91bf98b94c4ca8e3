/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <sys/socket.h>

#include "vm/actor.h"
#include "vm/side.h"

struct soft {
	struct side side;
	struct rvcm_dev_mr *mr;
	struct rvcm_dev_mr *guarded;
};

static struct soft *soft_of(struct actor *a)
{
	return a->state;
}

static const enum rvcm_dev_op ops[] = {
	[ACTOR_SEND] = RVCM_DEV_OP_SEND,
	[ACTOR_WRITE] = RVCM_DEV_OP_WRITE,
	[ACTOR_READ] = RVCM_DEV_OP_READ,
	[ACTOR_RECV] = RVCM_DEV_OP_RECV,
};

static const enum rvcm_status ends[] = {
	[ACTOR_END_ORDERLY] = RVCM_STATUS_OK,
	[ACTOR_END_REMOTE_ABORTED] = RVCM_STATUS_REMOTE_ABORTED,
	[ACTOR_END_REMOTE_ACCESS] = RVCM_STATUS_REMOTE_ACCESS,
	[ACTOR_END_OWN_TERMINATE] = RVCM_STATUS_PROTOCOL,
};

static void soft_open(struct actor *a)
{
	struct soft *soft = calloc(1, sizeof(*soft));
	struct rvcm_soft_tunables tun;

	side_tunables(&tun, a->p->conf->crc);
	tun.peer_to_peer = a->p->conf->p2p;
	a->state = soft;
	side_open(&soft->side, PEERS_SOFT_ADDR, &tun);
	soft->mr = side_mr(&soft->side, a->buf, ACTOR_BUF_BYTES,
			   RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_READ |
				   RVCM_DEV_ACCESS_REMOTE_WRITE);
	a->here.addr = (uintptr_t)a->buf;
	a->here.rkey = soft->mr->rkey;
}

static void soft_close(struct actor *a)
{
	struct soft *soft = soft_of(a);

	side_hang_up(&soft->side);
	soft->side.ops->mr_dereg(soft->mr);
	if (soft->guarded)
		soft->side.ops->mr_dereg(soft->guarded);
	side_close(&soft->side);
	free(soft);
}

static void soft_listen(struct actor *a)
{
	side_listen(&soft_of(a)->side, a->p->port);
}

static void soft_request(struct actor *a, const void *data, size_t bytes)
{
	struct side *side = &soft_of(a)->side;

	side_event(side, RVCM_DEV_EVENT_CONNECT_REQUEST);
	side_check_private(side, data, bytes);
	side_qp(side);
}

static void soft_accept(struct actor *a, const void *data, size_t bytes)
{
	side_accept(&soft_of(a)->side, data, bytes);
}

static void soft_reject(struct actor *a, const void *data, size_t bytes)
{
	side_reject(&soft_of(a)->side, data, bytes);
}

static void soft_dial(struct actor *a, const void *data, size_t bytes)
{
	side_dial(&soft_of(a)->side, PEERS_SIW_ADDR, a->p->port, data, bytes);
}

static void soft_established(struct actor *a, const void *data, size_t bytes)
{
	struct side *side = &soft_of(a)->side;

	side_event(side, RVCM_DEV_EVENT_ESTABLISHED);
	side_check_private(side, data, bytes);
	side_attach(side);
}

static void soft_rejected(struct actor *a, const void *data, size_t bytes)
{
	struct side *side = &soft_of(a)->side;

	side_event(side, RVCM_DEV_EVENT_REJECTED);
	if (side->event.reject != RVCM_DEV_REJECT_CONSUMER)
		side_die("rejected for reason %d", side->event.reject);
	side_check_private(side, data, bytes);
}

static void soft_refused(struct actor *a)
{
	struct side *side = &soft_of(a)->side;

	side_event(side, RVCM_DEV_EVENT_REJECTED);
	if (side->event.reject != RVCM_DEV_REJECT_NOT_LISTENING)
		side_die("rejected for reason %d", side->event.reject);
}

static void soft_disconnect(struct actor *a)
{
	side_disconnect(&soft_of(a)->side);
}

static void soft_disconnected(struct actor *a, enum actor_end end)
{
	struct side *side = &soft_of(a)->side;

	side_event(side, RVCM_DEV_EVENT_DISCONNECTED);
	if (end != ACTOR_END_ANY && side->event.status != ends[end])
		side_die("disconnected with %s where %s is due",
			 rvcm_status_name(side->event.status), rvcm_status_name(ends[end]));
}

static void soft_idle(struct actor *a)
{
	struct side *side = &soft_of(a)->side;
	char c;

	side->extra_fd = a->p->fd;
	while (recv(a->p->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
		side_turn(side, SIDE_PATIENCE_S * 1000);
	side->extra_fd = -1;
	if (side->have_event)
		side_die("event %d came", side->event.type);
}

static void soft_guard(struct actor *a, size_t bytes, struct peers_memory *memory)
{
	struct soft *soft = soft_of(a);

	soft->guarded = side_mr(&soft->side, a->buf, bytes, RVCM_DEV_ACCESS_REMOTE_READ);
	memory->addr = (uintptr_t)a->buf;
	memory->rkey = soft->guarded->rkey;
}

static void soft_recv(struct actor *a, size_t offset, size_t bytes)
{
	side_recv(&soft_of(a)->side, soft_of(a)->mr, offset, bytes);
}

static void soft_post(struct actor *a, enum actor_op op, size_t offset, size_t bytes,
		      uint64_t raddr, uint32_t rkey)
{
	side_post(&soft_of(a)->side, ops[op], soft_of(a)->mr, offset, bytes, raddr, rkey);
}

static size_t soft_expect(struct actor *a, enum actor_op op)
{
	return side_expect(&soft_of(a)->side, ops[op]).length;
}

static void soft_expect_failure(struct actor *a)
{
	struct rvcm_dev_wc wc = side_wc(&soft_of(a)->side);

	if (wc.status == RVCM_STATUS_OK)
		side_die("operation %d succeeded", wc.op);
}

static void soft_expect_death(struct actor *a, unsigned int n)
{
	bool dead = false;

	for (unsigned int i = 0; i < n; i++) {
		struct rvcm_dev_wc wc = side_wc(&soft_of(a)->side);

		if (dead && wc.status == RVCM_STATUS_OK)
			side_die("operation %d succeeded behind one that failed", wc.op);
		dead |= wc.status != RVCM_STATUS_OK;
	}
	if (!dead)
		side_die("all operations succeeded");
}

const struct actor_ops actor_soft_ops = {
	.open = soft_open,
	.close = soft_close,
	.listen = soft_listen,
	.request = soft_request,
	.accept = soft_accept,
	.reject = soft_reject,
	.dial = soft_dial,
	.established = soft_established,
	.rejected = soft_rejected,
	.refused = soft_refused,
	.disconnect = soft_disconnect,
	.disconnected = soft_disconnected,
	.idle = soft_idle,
	.guard = soft_guard,
	.recv = soft_recv,
	.post = soft_post,
	.expect = soft_expect,
	.expect_failure = soft_expect_failure,
	.expect_death = soft_expect_death,
};

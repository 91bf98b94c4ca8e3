/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proto's engine between receives and sends of its own and a peer that says anything. The input is
 * a program: post receives and sends on either side, slip messages of the input's in between, break
 * the link, cancel.
 *
 * Each operation completes at most once, and with its own context; memory that is registered for a
 * peer is given back; what breaks the format ends the conn and nothing else.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdio.h>

#include "base/le.h"
#include "fuzz/fuzz.h"
#include "proto/message.h"
#include "proto/proto.h"
#include "unit/fake_conn.h"
#include "unit/sent.h"

#define STEPS_MAX 48
#define OPS_MAX   64 /* the second half are of claimed messages */
#define UNIT      6  /* a byte of the input counts so many */
#define BYTES     (255 * UNIT)

struct op {
	bool posted;
	bool done;
	uint8_t buf[BYTES];
};

struct node {
	struct rvcm_engine *engine;
	struct rvcm_ep *ep;
	struct rvcm_peer *peer; /* the other node */
	struct op ops[OPS_MAX];
	uint32_t n_ops;
};

struct run {
	struct fuzz_input in;
	struct fake_net net;
	struct node nodes[2]; /* the victim, and who is spoken for */
	uint64_t now;
};

/* -- the engine's surroundings -------------------------------------------------------------- */

static uint64_t now_ns(void *ctx)
{
	return ((struct run *)ctx)->now;
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct node *node = ctx;
	struct op *op = comp->op_context;

	fuzz_require(op >= node->ops && op < node->ops + OPS_MAX);
	fuzz_require(op->posted && !op->done);
	op->done = true;
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = sent_source,
};

static void open_node(struct run *r, struct node *node)
{
	struct rvcm_dev *devs[] = { &r->net.dev };
	struct rvcm_engine_attr attr = {
		.carrier = { .devs = devs,
			     .n_devs = 1,
			     .message_bytes_max = 1024,
			     .window_max = 16,
			     .linger_ns = 1000,
			     .env = { now_ns, fake_random, fake_wake, fake_wake, r } },
		.eager_bytes_max = 256,
		.unexpected_bytes_max = 4096,
	};
	struct rvcm_ep_attr ep_attr = {
		.tx_max = OPS_MAX,
		.rx_max = OPS_MAX,
		.inject_bytes_max = 64,
		.sink = &sink,
		.sink_ctx = node,
	};

	fuzz_require(!rvcm_engine_open(&attr, &node->engine));
	ep_attr.engine = node->engine;
	fuzz_require(!rvcm_ep_open(&ep_attr, &node->ep));
}

static void progress(struct run *r)
{
	for (int i = 0; i < 4; i++) {
		rvcm_engine_progress(r->nodes[0].engine);
		rvcm_engine_progress(r->nodes[1].engine);
	}
}

/* -- steps ---------------------------------------------------------------------------------- */

static struct op *new_op(struct node *node)
{
	return node->n_ops < OPS_MAX / 2 ? &node->ops[node->n_ops++] : NULL;
}

static void step_recv(struct run *r, struct node *node)
{
	struct op *op = new_op(node);
	struct rvcm_ep_iov iov = { .length = (size_t)fuzz_byte(&r->in) * UNIT };
	uint8_t how = fuzz_byte(&r->in);
	struct rvcm_ep_rx rx = {
		.source = how & 1 ? 100 : RVCM_EP_SOURCE_NONE,
		.iov = &iov,
		.n_iov = 1,
		.flags = (how & 2 ? 0 : (uint32_t)RVCM_EP_TAGGED) | RVCM_EP_COMPLETION,
		.tag = how & 2 ? 0 : fuzz_byte(&r->in),
		.ignore = (how & 6) == 4 ? 0xff : 0,
		.op_context = op,
	};

	if (!op)
		return;
	iov.addr = op->buf;
	op->posted = true;
	if (rvcm_ep_recv(node->ep, &rx))
		op->posted = false;
}

static void step_send(struct run *r, struct node *node)
{
	struct op *op = new_op(node);
	struct rvcm_ep_iov iov = { .length = (size_t)fuzz_byte(&r->in) * UNIT };
	uint8_t how = fuzz_byte(&r->in);
	struct rvcm_ep_tx tx = {
		.peer = node->peer,
		.iov = &iov,
		.n_iov = 1,
		.flags = (how & 2 ? 0 : (uint32_t)RVCM_EP_TAGGED) | RVCM_EP_COMPLETION |
			 (how & 8 ? (uint32_t)RVCM_EP_DELIVERED : 0),
		.tag = how & 2 ? 0 : fuzz_byte(&r->in),
		.op_context = op,
	};

	if (!op)
		return;
	iov.addr = op->buf;
	op->posted = true;
	if (rvcm_ep_send(node->ep, &tx))
		op->posted = false;
}

static struct rvcm_path *conn_of(struct run *r)
{
	return fake_conn_find(rvcm_engine_carrier(r->nodes[0].engine), 0,
			      rvcm_ep_name(r->nodes[1].ep));
}

/* Let an announcement of the input's point at memory that is there to be read, of a real key. */
static void point(struct run *r, uint8_t *message, size_t n)
{
	struct rvcm_list *first = rvcm_list_first(&r->net.mrs);
	struct node *owner = &r->nodes[1];

	if (!first || n < 48)
		return;
	rvcm_le64_put(message + 32, (uintptr_t)owner->ops[0].buf);
	rvcm_le32_put(message + 40, 77);
}

static void step_inject(struct run *r)
{
	struct rvcm_path *path = conn_of(r);
	uint8_t how = fuzz_byte(&r->in), message[256] = { 0 };
	size_t n = fuzz_bytes(&r->in, message, fuzz_byte(&r->in));

	if (!path || !path->up)
		return;
	if (how & 1)
		point(r, message, n);
	fake_conn_inject(path, message, n);
}

static void step_break(struct run *r)
{
	struct rvcm_path *path;

	progress(r); /* a conn that has ended is not up any more */
	path = conn_of(r);
	if (path && path->up)
		fake_conn_break(path, RVCM_STATUS_CONNECTION_LOST, "broken");
	progress(r);
}

static void step_cancel(struct run *r)
{
	(void)rvcm_ep_cancel(r->nodes[0].ep, &r->nodes[0].ops[fuzz_byte(&r->in) % OPS_MAX]);
}

/* Look, claim, discard, or end what was claimed. */
static void step_peek(struct run *r, uint8_t how)
{
	struct node *node = &r->nodes[0];
	struct op *op = &node->ops[OPS_MAX / 2 + fuzz_byte(&r->in) % (OPS_MAX / 2)];
	struct rvcm_ep_iov iov = { .addr = op->buf, .length = 700 };
	struct rvcm_ep_rx rx = {
		.source = RVCM_EP_SOURCE_NONE,
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = fuzz_byte(&r->in),
		.ignore = 0xff,
		.op_context = op,
	};
	struct rvcm_ep_found found;

	if (how < 3) {
		(void)rvcm_peek(node->ep, &rx, (enum rvcm_ep_look)how, &found);
		return;
	}
	if (how == 3) {
		(void)rvcm_peek_discard(node->ep, op, &found);
		return;
	}
	if (op->posted && !op->done)
		return;
	op->posted = true;
	op->done = false;
	if (rvcm_peek_take(node->ep, &rx))
		op->posted = false;
}

static void step(struct run *r)
{
	uint8_t what = fuzz_byte(&r->in);
	struct node *node = &r->nodes[what >> 7];

	switch (what & 7) {
	case 0:
	case 1:
		step_inject(r);
		break;
	case 2:
		step_recv(r, node);
		break;
	case 3:
		step_send(r, node);
		break;
	case 4:
		step_break(r);
		break;
	case 5:
		if (what & 64)
			step_peek(r, (what >> 3) % 5);
		else
			step_cancel(r);
		break;
	case 6:
		r->net.hold_reads = what & 64;
		r->net.fail_reg = what & 32 ? -ENOMEM : 0;
		r->net.fail_access =
			what & 16 ? RVCM_DEV_ACCESS_REMOTE_READ : RVCM_DEV_ACCESS_LOCAL_WRITE;
		break;
	default:
		progress(r);
	}
}

/* -- the run -------------------------------------------------------------------------------- */

static void close_node(struct run *r, struct node *node)
{
	rvcm_ep_shutdown(node->ep);
	for (int i = 0; !rvcm_ep_quiet(node->ep); i++) {
		progress(r);
		r->now++;
		fuzz_require(i < 10000);
	}
	rvcm_ep_close(node->ep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run *r = calloc(1, sizeof(*r));

	fuzz_require(r != NULL);
	r->in = (struct fuzz_input) { data, size };
	fake_net_init(&r->net);
	open_node(r, &r->nodes[0]);
	open_node(r, &r->nodes[1]);
	fuzz_require(!rvcm_ep_peer(r->nodes[0].ep, rvcm_ep_name(r->nodes[1].ep), 100,
				   &r->nodes[0].peer));
	fuzz_require(!rvcm_ep_peer(r->nodes[1].ep, rvcm_ep_name(r->nodes[0].ep), 100,
				   &r->nodes[1].peer));
	for (int i = 0; i < STEPS_MAX && r->in.left; i++)
		step(r);
	progress(r);
	r->net.hold_reads = false;
	close_node(r, &r->nodes[0]);
	close_node(r, &r->nodes[1]);
	rvcm_engine_close(r->nodes[0].engine);
	rvcm_engine_close(r->nodes[1].engine);
	fuzz_require(r->net.n_mrs == 0);
	fake_net_fini(&r->net);
	free(r);
	return 0;
}

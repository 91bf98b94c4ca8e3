/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_insns one|window [off]: how many instructions a tagged message of 8 bytes costs above the
 *device, on both sides together, with its acknowledgements. Two engines on simulated devices, so
 *that nothing depends on time. To be run by bench_insns.sh under callgrind, which counts what runs
 *in functions named inside_* and below, but not below those named outside_*.
 *
 *	one      a message there, a message back
 *	window   64 messages one way, then one back
 *	off      and what loses its link does not recover: each side is opened so
 *
 * What is counted: posting receives and sends, and progress when there is something to do, from the
 * calls of proto.h to those of dev.h and of the sink. What is not: the device, who is told of
 * completions, progress that finds nothing, and what is done here.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "proto/proto.h"
#include "sim/env.h"

#define WARM_UP  2000u
#define MESSAGES 20000u
#define WINDOW   64u

struct side {
	struct rvcm_dev *dev;
	struct rvcm_dev_ops ops; /* the device's, with what the data side calls behind outside_* */
	const struct rvcm_dev_ops *below;
	struct rvcm_engine *engine;
	struct rvcm_ep *ep;
	struct rvcm_ep_sink sink;
	struct rvcm_peer *peer;
	uint32_t received;
};

static struct sim_net *net;
static struct side sides[2];
static uint64_t calls; /* of the device */
static uint64_t others;

static void fine(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_insns: %s\n", what);
	exit(1);
}

/* -- the device is not counted ------------------------------------------------------------- */

int outside_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int outside_flush(struct rvcm_dev_qp *qp);
int outside_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
void outside_release(struct rvcm_dev_pool *pool, void *rx);

static const struct rvcm_dev_ops *below(const struct rvcm_dev *dev)
{
	return sides[dev != sides[0].dev].below;
}

__attribute__((noinline)) int outside_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr)
{
	int rc = below(qp->dev)->post(qp, wr);

	calls++; /* and no tail call, which would count the device */
	return rc;
}

__attribute__((noinline)) int outside_flush(struct rvcm_dev_qp *qp)
{
	int rc = below(qp->dev)->flush(qp);

	calls++;
	return rc;
}

__attribute__((noinline)) int outside_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n)
{
	int rc = below(cq->dev)->cq_poll(cq, wc, n);

	calls++;
	return rc;
}

__attribute__((noinline)) void outside_release(struct rvcm_dev_pool *pool, void *rx)
{
	below(pool->dev)->rx_release(pool, rx);
	calls++;
}

/* Move time on until somebody has something to do: bit i is set if sides[i] has. */
static int step(void)
{
	int busy;

	while (!(busy = sim_dev_busy(sides[0].dev) | sim_dev_busy(sides[1].dev) << 1))
		fine(sim_step(net), "nothing is left to happen");
	return busy;
}

/* -- set-up -------------------------------------------------------------------------------- */

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	fine(comp->status == RVCM_STATUS_OK, "an operation failed");
	((struct side *)ctx)->received += !(comp->flags & RVCM_EP_SEND);
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	(void)ctx;
	(void)tx;
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	(void)ctx;
	(void)name;
	return 0;
}

void outside_complete(void *ctx, const struct rvcm_ep_comp *comp);

__attribute__((noinline)) void outside_complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	complete(ctx, comp);
	others++;
}

void outside_sent(void *ctx, const struct rvcm_ep_tx *tx);

__attribute__((noinline)) void outside_sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	sent(ctx, tx);
	others++;
}

static void side_open(struct side *side, uint64_t reconnect_ns)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &side->dev,
			.n_devs = 1,
			.message_bytes_max = 4096,
			.window_max = WINDOW,
			.connect_timeout_ns = SIM_S,
			.reconnect_timeout_ns = reconnect_ns,
			.linger_ns = SIM_S,
			.rnr_timeout_ns = SIM_S,
			.env = sim_env(net),
		},
		.eager_bytes_max = 1024,
		.unexpected_bytes_max = 1 << 20,
	};
	struct rvcm_ep_attr ep = {
		.tx_max = 1024,
		.rx_max = 1024,
		.inject_bytes_max = 64,
		.sink = &side->sink,
		.sink_ctx = side,
	};

	side->sink = (struct rvcm_ep_sink) {
		.complete = complete,
		.sent = sent,
		.source = source,
	};
	side->dev = sim_dev_open(net, NULL);
	fine(!rvcm_engine_open(&attr, &side->engine), "rvcm_engine_open");
	ep.engine = side->engine;
	fine(!rvcm_ep_open(&ep, &side->ep), "rvcm_ep_open");
}

/*
 * From now on the device and the sink are behind outside_*; not before, since callgrind toggles:
 * outside of inside, these functions are what it would count.
 */
static void hide(struct side *side)
{
	side->below = side->dev->ops;
	side->ops = *side->below;
	side->ops.post = outside_post;
	side->ops.flush = outside_flush;
	side->ops.cq_poll = outside_poll;
	side->ops.rx_release = outside_release;
	side->dev->ops = &side->ops;
	side->sink.complete = outside_complete;
	side->sink.sent = outside_sent;
}

static void show(struct side *side)
{
	side->dev->ops = side->below;
	side->sink.complete = complete;
	side->sink.sent = sent;
}

/* Connecting and closing need the control side too. */
static void turn(void)
{
	for (int i = 0; i < 2; i++) {
		rvcm_engine_progress(sides[i].engine);
		rvcm_carrier_control(rvcm_engine_carrier(sides[i].engine));
	}
	sim_step_by(net, sim_now(net) + SIM_MS);
}

static void side_close(struct side *side)
{
	rvcm_ep_shutdown(side->ep);
	while (!rvcm_ep_quiet(side->ep))
		turn();
	rvcm_ep_close(side->ep);
}

/* -- what is counted ----------------------------------------------------------------------- */

int inside_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx);
int inside_recv(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx);
int inside_progress(struct rvcm_engine *engine);

__attribute__((noinline)) int inside_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	int rc = rvcm_ep_send(ep, tx);

	others++; /* and no tail call, which would not be counted */
	return rc;
}

__attribute__((noinline)) int inside_recv(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx)
{
	int rc = rvcm_ep_recv(ep, rx);

	others++;
	return rc;
}

__attribute__((noinline)) int inside_progress(struct rvcm_engine *engine)
{
	int rc = rvcm_engine_progress(engine);

	others++;
	return rc;
}

struct door {
	int (*send)(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx);
	int (*recv)(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx);
	int (*progress)(struct rvcm_engine *engine);
};

static const struct door plain = { rvcm_ep_send, rvcm_ep_recv, rvcm_engine_progress };
static const struct door counted = { inside_send, inside_recv, inside_progress };

static uint8_t buffer[8];
static const struct rvcm_ep_iov iov = { buffer, sizeof(buffer) };

static void post_send(const struct door *door, struct side *side)
{
	const struct rvcm_ep_tx tx = {
		.peer = side->peer,
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = 1,
	};

	fine(!door->send(side->ep, &tx), "rvcm_ep_send");
}

static void post_recv(const struct door *door, struct side *side)
{
	const struct rvcm_ep_rx rx = {
		.source = RVCM_EP_SOURCE_NONE,
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = 1,
	};

	fine(!door->recv(side->ep, &rx), "rvcm_ep_recv");
}

static void transfer(const struct door *door, struct side *from, struct side *to, uint32_t n)
{
	to->received = 0;
	for (uint32_t i = 0; i < n; i++)
		post_recv(door, to);
	for (uint32_t i = 0; i < n; i++)
		post_send(door, from);
	while (to->received < n) {
		int busy = step();

		for (int i = 0; i < 2; i++)
			if (busy & 1 << i)
				door->progress(sides[i].engine);
	}
}

static void run(const struct door *door, uint32_t messages, uint32_t window)
{
	for (uint32_t i = 0; i < messages; i += window + 1) {
		transfer(door, &sides[0], &sides[1], window);
		transfer(door, &sides[1], &sides[0], 1);
	}
}

int main(int argc, char **argv)
{
	struct sim_conf conf = { .seed = 1, .eager_polls = true };
	uint32_t window = argc >= 2 && !strcmp(argv[1], "window") ? WINDOW : 1;
	bool off = argc == 3 && !strcmp(argv[2], "off");

	fine(argc == 2 + off && (window > 1 || !strcmp(argv[1], "one")),
	     "usage: bench_insns one|window [off]");
	net = sim_net_open(&conf);
	side_open(&sides[0], off ? 0 : 30 * SIM_S);
	side_open(&sides[1], off ? 0 : 30 * SIM_S);
	for (int i = 0; i < 2; i++)
		fine(!rvcm_ep_peer(sides[i].ep, rvcm_ep_name(sides[!i].ep), 0, &sides[i].peer),
		     "rvcm_ep_peer");
	/* Connect, and let windows and pools grow to what they will be. */
	post_recv(&plain, &sides[1]);
	post_send(&plain, &sides[0]);
	while (!sides[1].received)
		turn();
	run(&plain, WARM_UP, window);
	hide(&sides[0]);
	hide(&sides[1]);
	run(&counted, MESSAGES, window);
	show(&sides[0]);
	show(&sides[1]);
	printf("%u %llu\n", (MESSAGES + window) / (window + 1) * (window + 1),
	       (unsigned long long)calls);
	side_close(&sides[0]);
	side_close(&sides[1]);
	for (int i = 0; i < 2; i++) {
		rvcm_engine_close(sides[i].engine);
		sides[i].dev->ops->close(sides[i].dev);
	}
	sim_net_close(net);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines over simulated devices, in virtual time: a few processes with one or two endpoints each
 * send each other messages of all kinds at random. A message's number in its stream (a pair of
 * endpoints) travels as CQ data, its length and bytes follow from it. Checked at each completion:
 * the operation had not ended before, length and bytes are right. Checked at the end: in the order
 * in which an endpoint posted its receives, each stream's numbers rise (and without faults, all are
 * there). An operation's memory is freed when it ends, so that a sanitizer sees who still uses it.
 *
 * test_sim_proto SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "proto/proto.h"
#include "sim/sim.h"

#define ENGINES_MAX 4
#define EPS_MAX     8
#define EAGER_MAX   1000u
#define INJECT_MAX  200u
#define LENGTH_MAX  20000u

struct op {
	struct rvcm_list node; /* ep.receives, in the order of posting */
	uint8_t *buf;
	size_t length; /* of buf */
	bool send;
	bool inject; /* it ends in silence, or in an error */
	bool ended;
	enum rvcm_status status;
	int to;   /* of a send */
	int from; /* of a receive that ended well: whose message */
	uint64_t number;
};

struct ep {
	struct world *world;
	int index;
	int engine;
	struct rvcm_ep *ep; /* NULL once closed */
	struct rvcm_peer *peers[EPS_MAX];
	uint64_t sent[EPS_MAX]; /* number of the next message to that one */
	struct rvcm_list receives;
	struct rvcm_list sends;
	uint32_t sends_open, receives_open;
};

struct engine {
	struct world *world;
	struct rvcm_dev *dev;
	struct rvcm_engine *engine;
};

struct world {
	struct sim_net *net;
	struct rvcm_rng *rng;
	bool faulty; /* operations may end in errors */
	int n_engines, n_eps;
	struct engine engines[ENGINES_MAX];
	struct ep eps[EPS_MAX];
	uint32_t receives_max; /* per endpoint, while talking */
	uint64_t errors;
	uint64_t tx_rndv, tx_eager, rx_unexpected;
};

static uint64_t below(struct world *w, uint64_t n)
{
	return rvcm_rng_below(w->rng, n);
}

/* -- what a message is made of ------------------------------------------------------------ */

static uint64_t seed_of(int from, int to, uint64_t number)
{
	uint64_t x = ((uint64_t)from << 56 | (uint64_t)to << 48 | number) * 0x9e3779b97f4a7c15;

	return x ^ x >> 29;
}

static size_t length_of(uint64_t seed)
{
	switch (seed >> 8 & 7) {
	case 0:
		return 0;
	case 1:
		return (seed >> 16) % LENGTH_MAX;
	case 2:
		return EAGER_MAX - 1 + (seed >> 16) % 3;
	default:
		return (seed >> 16) % 300;
	}
}

static uint8_t byte_of(uint64_t seed, size_t i)
{
	return (uint8_t)((seed >> (i % 8 * 8)) + i);
}

/* -- what the engines stand on ------------------------------------------------------------ */

static uint64_t env_now(void *ctx)
{
	return sim_now(((struct engine *)ctx)->world->net);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	struct world *w = ((struct engine *)ctx)->world;

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)rvcm_rng_next(w->rng);
}

static void env_wake(void *ctx)
{
	(void)ctx; /* every engine is looked at in every turn */
}

/* -- completions -------------------------------------------------------------------------- */

static void check_message(struct ep *ep, struct op *op, const struct rvcm_ep_comp *comp)
{
	uint64_t seed = seed_of((int)comp->tag, ep->index, comp->data);

	assert_int_equal(comp->flags, RVCM_EP_TAGGED | RVCM_EP_CQ_DATA);
	assert_in_range(comp->tag, 0, ep->world->n_eps - 1);
	assert_int_equal(comp->source, 100 + comp->tag);
	assert_int_equal(comp->length + comp->overflow, length_of(seed));
	assert_true(comp->length <= op->length);
	assert_int_equal(comp->status == RVCM_STATUS_TRUNCATED, comp->overflow != 0);
	for (size_t i = 0; i < comp->length; i++)
		if (op->buf[i] != byte_of(seed, i))
			fail_msg("byte %zu of message %llu from %d to %d", i,
				 (unsigned long long)comp->data, (int)comp->tag, ep->index);
	op->from = (int)comp->tag;
	op->number = comp->data;
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct ep *ep = ctx;
	struct op *op = comp->op_context;
	bool fine = comp->status == RVCM_STATUS_OK || comp->status == RVCM_STATUS_TRUNCATED;

	assert_non_null(ep->ep);
	assert_false(op->ended);
	assert_int_equal(op->send, !!(comp->flags & RVCM_EP_SEND));
	op->ended = true;
	op->status = comp->status;
	op->from = -1;
	if (!op->send && fine)
		check_message(ep, op, comp);
	if (!fine && comp->status != RVCM_STATUS_CANCELED) {
		if (!ep->world->faulty)
			fail_msg("%s: %s", rvcm_status_name(comp->status),
				 comp->text ? comp->text : "");
		ep->world->errors++;
	}
	if (op->send)
		ep->sends_open -= !op->inject;
	else
		ep->receives_open--;
	free(op->buf);
	op->buf = NULL;
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	struct world *w = ((struct ep *)ctx)->world;

	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep && rvcm_addr_equal(rvcm_ep_name(w->eps[i].ep), name))
			return 100 + (uint64_t)i;
	return RVCM_EP_SOURCE_NONE;
}

static const struct rvcm_ep_sink sink = { .complete = complete, .source = source };

/* -- the world ---------------------------------------------------------------------------- */

static void engine_open(struct world *w, struct engine *engine, uint64_t seed)
{
	static const uint32_t windows[] = { 1, 3, 16, 64 };
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &engine->dev,
			.n_devs = 1,
			.message_bytes_max = EAGER_MAX + 24,
			.window_max = windows[seed % 4],
			.hold = seed % 3,
			.connect_timeout_ns = 5 * SIM_S,
			.linger_ns = SIM_S,
			.rnr_timeout_ns = SIM_S,
			.env = { env_now, env_random, env_wake, env_wake, engine },
		},
		.eager_bytes_max = seed % 4 ? EAGER_MAX : EAGER_MAX / 2,
		.eager_lone_bytes_max = EAGER_MAX,
		.unexpected_bytes_max = seed % 3 ? 1 << 20 : 4000,
	};

	engine->world = w;
	engine->dev = sim_dev_open(w->net, NULL);
	assert_int_equal(rvcm_engine_open(&attr, &engine->engine), 0);
}

static void ep_open(struct world *w, int index)
{
	struct ep *ep = &w->eps[index];
	struct rvcm_ep_attr attr = {
		.tx_max = 24,
		.rx_max = 64,
		.inject_bytes_max = INJECT_MAX,
		.sink = &sink,
		.sink_ctx = ep,
	};

	ep->world = w;
	ep->index = index;
	ep->engine = index % w->n_engines;
	attr.engine = w->engines[ep->engine].engine;
	rvcm_list_init(&ep->receives);
	rvcm_list_init(&ep->sends);
	assert_int_equal(rvcm_ep_open(&attr, &ep->ep), 0);
}

static struct world *world_open(uint64_t seed, const struct sim_conf *conf)
{
	struct world *w = calloc(1, sizeof(*w));

	w->net = sim_net_open(conf);
	w->rng = sim_net_rng(w->net);
	w->receives_max = seed % 5 < 2 ? 40 : 3;
	w->n_engines = 2 + (int)(seed % 3);
	w->n_eps = w->n_engines * (seed % 2 ? 2 : 1);
	for (int i = 0; i < w->n_engines; i++)
		engine_open(w, &w->engines[i], seed);
	for (int i = 0; i < w->n_eps; i++)
		ep_open(w, i);
	for (int i = 0; i < w->n_eps; i++)
		for (int j = 0; j < w->n_eps; j++)
			assert_int_equal(rvcm_ep_peer(w->eps[i].ep, rvcm_ep_name(w->eps[j].ep),
						      100 + (uint64_t)j, &w->eps[i].peers[j]),
					 0);
	return w;
}

/* Everybody looks once (now and then somebody does not: it computes), then time goes on. */
static void turn(struct world *w)
{
	uint64_t at = sim_now(w->net) + SIM_MS;

	for (int i = 0; i < w->n_engines; i++) {
		uint64_t next;

		if (!w->engines[i].engine)
			continue;
		next = rvcm_carrier_control(rvcm_engine_carrier(w->engines[i].engine));
		if (below(w, 8))
			rvcm_engine_progress(w->engines[i].engine);
		at = next < at ? next : at;
	}
	sim_step_by(w->net, at);
}

static void free_ops(struct rvcm_list *ops)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(ops))) {
		struct op *op = rvcm_list_entry(node, struct op, node);

		free(op->buf);
		free(op);
	}
}

static void ep_close(struct ep *ep)
{
	struct world *w = ep->world;
	uint64_t limit = sim_now(w->net) + 5 * SIM_S;
	struct rvcm_ep_stats stats;

	rvcm_ep_shutdown(ep->ep);
	while (!rvcm_ep_quiet(ep->ep)) {
		turn(w);
		assert_true(sim_now(w->net) < limit);
	}
	rvcm_ep_stats(ep->ep, &stats);
	w->tx_rndv += stats.tx_rndv;
	w->tx_eager += stats.tx_eager;
	w->rx_unexpected += stats.rx_unexpected;
	assert_int_equal(stats.malformed, 0);
	rvcm_ep_close(ep->ep);
	ep->ep = NULL;
}

static void world_close(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep)
			ep_close(&w->eps[i]);
	for (int i = 0; i < w->n_engines; i++) {
		rvcm_engine_close(w->engines[i].engine);
		w->engines[i].dev->ops->close(w->engines[i].dev);
	}
	for (int i = 0; i < w->n_eps; i++) {
		free_ops(&w->eps[i].receives);
		free_ops(&w->eps[i].sends);
	}
	sim_net_close(w->net);
	free(w);
}

/* -- talking ------------------------------------------------------------------------------ */

static struct op *op_new(struct rvcm_list *list, bool send, size_t length)
{
	struct op *op = calloc(1, sizeof(*op));

	op->send = send;
	op->length = length;
	op->buf = malloc(length ? length : 1);
	rvcm_list_add_tail(list, &op->node);
	return op;
}

/* The operation was refused. */
static void op_undo(struct op *op)
{
	rvcm_list_del(&op->node);
	free(op->buf);
	free(op);
}

/* Cut a buffer into one to four pieces, some perhaps empty. */
static uint32_t cut(struct world *w, struct op *op, struct rvcm_ep_iov *iov)
{
	uint32_t n = below(w, 3) ? 1 : 1 + (uint32_t)below(w, RVCM_EP_IOV_MAX);
	size_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t part = i + 1 == n ? op->length - at : below(w, op->length - at + 1);

		iov[i].addr = op->buf + at;
		iov[i].length = part;
		at += part;
	}
	return n;
}

static void send_one(struct world *w, struct ep *from, int to)
{
	uint64_t seed = seed_of(from->index, to, from->sent[to]);
	struct op *op = op_new(&from->sends, true, length_of(seed));
	bool inject = op->length <= INJECT_MAX && below(w, 4) == 0;
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.peer = from->peers[to],
		.iov = iov,
		.flags = RVCM_EP_TAGGED | RVCM_EP_CQ_DATA |
			 (inject ? RVCM_EP_INJECT : RVCM_EP_COMPLETION),
		.tag = (uint64_t)from->index,
		.data = from->sent[to],
		.op_context = op,
	};
	int rc;

	for (size_t i = 0; i < op->length; i++)
		op->buf[i] = byte_of(seed, i);
	tx.n_iov = cut(w, op, iov);
	op->inject = inject;
	op->to = to;
	op->number = from->sent[to];
	from->sends_open += !inject;
	rc = rvcm_ep_send(from->ep, &tx);
	if (rc) {
		assert_int_equal(rc, -EAGAIN);
		from->sends_open -= !inject;
		op_undo(op);
		return;
	}
	from->sent[to]++;
	if (!inject)
		return;
	free(op->buf);
	op->buf = NULL;
}

/* from < 0: whatever comes. */
static void receive_one(struct world *w, struct ep *ep, int from, size_t room)
{
	static const uint64_t masks[] = { 0, 1ull << 60, UINT64_MAX };
	struct op *op = op_new(&ep->receives, false, room);
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = {
		.source = from < 0 || below(w, 2) ? RVCM_EP_SOURCE_NONE : 100 + (uint64_t)from,
		.iov = iov,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = (uint64_t)from,
		.ignore = from < 0 ? UINT64_MAX : masks[below(w, 3)],
		.op_context = op,
	};
	int rc;

	rx.n_iov = cut(w, op, iov);
	ep->receives_open++;
	rc = rvcm_ep_recv(ep->ep, &rx);
	if (rc) {
		assert_int_equal(rc, -EAGAIN);
		ep->receives_open--;
		op_undo(op);
	}
}

static size_t some_room(struct world *w)
{
	return below(w, 20) ? LENGTH_MAX : below(w, LENGTH_MAX);
}

static void act(struct world *w)
{
	struct ep *ep = &w->eps[below(w, (uint64_t)w->n_eps)];
	int other = (int)below(w, (uint64_t)w->n_eps);

	if (!ep->ep)
		return;
	if (below(w, 2))
		send_one(w, ep, other);
	else if (ep->receives_open < w->receives_max)
		receive_one(w, ep, other, some_room(w));
}

static void talk(struct world *w, int steps)
{
	while (steps-- > 0) {
		for (uint64_t i = below(w, 16); i > 0; i--)
			act(w);
		turn(w);
	}
}

static bool sends_open(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep && w->eps[i].sends_open)
			return true;
	return false;
}

static void say_pending(struct world *w)
{
	struct rvcm_list *pos;

	for (int i = 0; i < w->n_eps; i++)
		rvcm_list_for_each (pos, &w->eps[i].sends) {
			struct op *op = rvcm_list_entry(pos, struct op, node);

			if (!op->ended && !op->inject && w->eps[i].ep)
				print_message("# pending: %d to %d number %llu, %zu bytes\n", i,
					      op->to, (unsigned long long)op->number, op->length);
		}
}

/* Receive whatever there is until no send is pending and nothing comes for a while. */
static void drain(struct world *w)
{
	uint64_t limit = sim_now(w->net) + 120 * SIM_S, quiet = 0, received = 0;

	while (sends_open(w) || sim_now(w->net) < quiet) {
		uint64_t sum = 0;

		for (int i = 0; i < w->n_eps; i++) {
			struct ep *ep = &w->eps[i];
			struct rvcm_ep_stats stats;

			if (!ep->ep)
				continue;
			while (ep->receives_open < 60)
				receive_one(w, ep, -1, LENGTH_MAX);
			rvcm_ep_stats(ep->ep, &stats);
			sum += stats.rx_msgs + stats.rx_errors + stats.self_msgs;
		}
		if (sum != received || sends_open(w))
			quiet = sim_now(w->net) + 100 * SIM_MS;
		received = sum;
		turn(w);
		if (sim_now(w->net) < limit)
			continue;
		say_pending(w);
		fail_msg("something does not end");
	}
}

/* What is still posted is cancelled, each once. */
static void cancel_all(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++) {
		struct ep *ep = &w->eps[i];
		struct rvcm_list *pos;

		if (!ep->ep)
			continue;
		rvcm_list_for_each (pos, &ep->receives) {
			struct op *op = rvcm_list_entry(pos, struct op, node);

			if (op->ended)
				continue;
			assert_int_equal(rvcm_ep_cancel(ep->ep, op), 0);
			assert_int_equal(op->status, RVCM_STATUS_CANCELED);
			assert_int_equal(rvcm_ep_cancel(ep->ep, op), -ENOENT);
		}
		assert_int_equal(ep->receives_open, 0);
		assert_int_equal(ep->sends_open, 0);
	}
}

/* Each stream's numbers rise in the order of posting; without faults none is missing. */
static void check_order(struct world *w, struct ep *ep)
{
	uint64_t next[EPS_MAX] = { 0 };
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->receives) {
		struct op *op = rvcm_list_entry(pos, struct op, node);

		if (!op->ended || op->from < 0)
			continue;
		if (w->faulty)
			assert_true(op->number >= next[op->from]);
		else
			assert_int_equal(op->number, next[op->from]);
		next[op->from] = op->number + 1;
	}
	for (int from = 0; from < w->n_eps; from++) {
		assert_true(next[from] <= w->eps[from].sent[ep->index]);
		if (!w->faulty)
			assert_int_equal(next[from], w->eps[from].sent[ep->index]);
	}
}

static void check_all(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		check_order(w, &w->eps[i]);
}

/* -- tests -------------------------------------------------------------------------------- */

static uint64_t seed_first = 1, seed_count = 24;

static void each_seed(void (*run)(uint64_t seed))
{
	for (uint64_t s = seed_first; s < seed_first + seed_count; s++) {
		print_message("# seed %llu\n", (unsigned long long)s);
		run(s);
	}
}

/* Returned sums, to see that the schedules are worth something. */
static struct {
	uint64_t tx_eager, tx_rndv, rx_unexpected;
} totals;

static void run_clean(uint64_t seed)
{
	struct sim_conf conf = { .seed = seed };
	struct world *w = world_open(seed, &conf);

	talk(w, 3000);
	drain(w);
	cancel_all(w);
	check_all(w);
	for (int i = 0; i < w->n_eps; i++)
		ep_close(&w->eps[i]);
	totals.tx_eager += w->tx_eager;
	totals.tx_rndv += w->tx_rndv;
	totals.rx_unexpected += w->rx_unexpected;
	world_close(w);
}

static void every_byte_arrives_once_and_in_order(void **state)
{
	(void)state;
	each_seed(run_clean);
	assert_true(totals.tx_eager > 200 * seed_count);
	assert_true(totals.tx_rndv > 40 * seed_count);
	assert_true(totals.rx_unexpected > 40 * seed_count);
}

/* Links break, operations and connects fail; when that stops everything ends, and all is well. */
static void run_faulty(uint64_t seed)
{
	struct sim_conf conf = {
		.seed = seed, .break_ppm = 1500, .op_error_ppm = 1500, .connect_fail_ppm = 50000
	};
	struct world *w = world_open(seed, &conf);

	w->faulty = true;
	talk(w, 3000);
	sim_net_conf(w->net)->break_ppm = 0;
	sim_net_conf(w->net)->op_error_ppm = 0;
	sim_net_conf(w->net)->connect_fail_ppm = 0;
	drain(w);
	cancel_all(w);
	check_all(w);
	world_close(w);
}

static void every_operation_ends_once_whatever_breaks(void **state)
{
	(void)state;
	each_seed(run_faulty);
}

/* An endpoint closes in the middle: the others' operations with it end, with each other they go on.
 */
static void run_closing(uint64_t seed)
{
	struct sim_conf conf = { .seed = seed };
	struct world *w = world_open(seed, &conf);

	w->faulty = true;
	talk(w, 1500);
	ep_close(&w->eps[seed % (uint64_t)w->n_eps]);
	talk(w, 1500);
	drain(w);
	cancel_all(w);
	check_all(w);
	world_close(w);
}

static void a_closed_endpoint_is_missed_by_nobody_else(void **state)
{
	(void)state;
	each_seed(run_closing);
}

/* All close at the same time with everything pending: it ends in time and leaves nothing. */
static void run_abandoned(uint64_t seed)
{
	struct sim_conf conf = { .seed = seed };
	struct world *w = world_open(seed, &conf);

	w->faulty = true;
	talk(w, 1000);
	for (int i = 0; i < w->n_eps; i++)
		rvcm_ep_shutdown(w->eps[i].ep);
	world_close(w);
}

static void all_close_with_everything_pending(void **state)
{
	(void)state;
	each_seed(run_abandoned);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives_once_and_in_order),
		cmocka_unit_test(every_operation_ends_once_whatever_breaks),
		cmocka_unit_test(a_closed_endpoint_is_missed_by_nobody_else),
		cmocka_unit_test(all_close_with_everything_pending),
	};

	if (argc > 1) {
		seed_first = strtoull(argv[1], NULL, 0);
		seed_count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	}
	return cmocka_run_group_tests_name("sim_proto", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "fault/engines.h"

#include "unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dev/fault/fault.h"
#include "proto/proto.h"
#include "unit/sent.h"

#define N        20u /* messages each way, and RMA operations of each kind */
#define LENGTHS  5u
#define MOST     100000u
#define LIMIT_NS (60 * RVCM_CLOCK_NS_PER_S) /* longer than anything takes */
#define QUIET_NS (10 * RVCM_CLOCK_NS_PER_MS)

static const size_t lengths[LENGTHS] = { 100, 20000, 0, 1000, MOST };

enum kind {
	SENDS,
	RECEIVES,
	WRITES,
	READS,
	KINDS,
};

struct op {
	struct side *side;
	bool posted, ended;
	enum rvcm_status status;
	uint64_t data; /* RECEIVES: whose number came */
};

struct side {
	struct engines *e;
	int index;
	struct rvcm_dev *dev;
	struct rvcm_engine *engine;
	struct rvcm_ep *ep;
	struct rvcm_peer *peer; /* the other */
	struct rvcm_region *region;
	struct op ops[KINDS][N];
	uint8_t *out; /* N of MOST bytes: what is sent and written; a message's are its number's */
	uint8_t *in;  /* what is received */
	uint8_t *got; /* what is read */
	uint8_t *memory; /* the other writes to the first N of MOST bytes, and reads the others */
};

struct engines {
	const struct engines_conf *conf;
	struct side sides[2];
	uint64_t limit_ns;
	uint32_t woken;
	uint64_t errors;
};

static void give_up(const struct engines *e, const char *why)
{
	const struct engines_conf *conf = e->conf;
	const char *second = conf->plans[1] ? conf->plans[1] : "";

	fail_msg("%s, under: %s '%s' '%s' %u", why,
		 conf->all_well ? (conf->recovers ? "well" : "calm")
				: (conf->recovers ? "recovers" : "fails"),
		 conf->plans[0] ? conf->plans[0] : "", second, conf->n_links);
}

#define CHECK(e, cond)                             \
	do {                                       \
		if (!(cond))                       \
			give_up(e, "not: " #cond); \
	} while (0)

/* -- what is moved ---------------------------------------------------------------------------- */

static size_t length_of(uint64_t i)
{
	return lengths[i % LENGTHS];
}

static void fill(uint8_t *to, int side, uint32_t salt)
{
	for (uint32_t i = 0; i < N; i++)
		for (size_t k = 0; k < MOST; k++)
			to[i * MOST + k] = (uint8_t)(k * 7 + (k >> 8) * 13 + i * 31 + salt +
						     (unsigned)side * 101);
}

/* -- what the engines get --------------------------------------------------------------------- */

static uint64_t env_now(void *ctx)
{
	(void)ctx;
	return rvcm_clock_ns();
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	(void)ctx;
	assert_int_equal(rvcm_rng_secure(buf, bytes), 0);
}

static void env_wake(void *ctx)
{
	((struct engines *)ctx)->woken++;
}

/* A message in its receive, whole and right. */
static void check_message(struct side *side, struct op *op, const struct rvcm_ep_comp *comp)
{
	struct engines *e = side->e;
	const struct side *from = &e->sides[!side->index];
	size_t at = (size_t)(op - side->ops[RECEIVES]) * MOST;

	op->data = comp->data;
	CHECK(e, comp->flags & RVCM_EP_CQ_DATA);
	CHECK(e, comp->data < N);
	CHECK(e, comp->length == length_of(comp->data));
	CHECK(e, !memcmp(side->in + at, from->out + comp->data * MOST, comp->length));
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct op *op = comp->op_context;
	struct side *side = ctx;
	bool received = op >= side->ops[RECEIVES] && op < side->ops[RECEIVES] + N;

	CHECK(side->e, op->posted && !op->ended);
	op->ended = true;
	op->status = comp->status;
	if (comp->status == RVCM_STATUS_CANCELED)
		return;
	if (comp->status == RVCM_STATUS_OK && received)
		check_message(side, op, comp);
	if (comp->status == RVCM_STATUS_OK)
		return;
	side->e->errors++;
	CHECK(side->e, comp->err > 0 || rvcm_status_errno(comp->status) > 0);
	if (side->e->conf->all_well)
		give_up(side->e, comp->text ? comp->text : rvcm_status_text(comp->status));
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static const struct rvcm_ep_sink sink = { .complete = complete,
					  .sent = sent,
					  .source = sent_source };

/* -- opening and closing ---------------------------------------------------------------------- */

static int open_dev(struct side *side)
{
	const struct engines_conf *conf = side->e->conf;
	struct rvcm_dev *inner;
	int rc = conf->dev_open(side->index, &inner);

	if (rc)
		return rc;
	rc = rvcm_fault_open(inner, conf->plans[side->index], &side->dev);
	if (rc)
		inner->ops->close(inner);
	return rc;
}

static void open_memory(struct side *side)
{
	side->out = malloc(N * MOST);
	side->in = calloc(N, MOST);
	side->got = calloc(N, MOST);
	side->memory = calloc(2 * N, MOST);
	assert_true(side->out && side->in && side->got && side->memory);
	fill(side->out, side->index, 0);
	fill(side->memory + N * MOST, side->index, 50);
}

/* What may fail is tried again once. */
static int open_engine(struct side *side)
{
	const struct engines_conf *conf = side->e->conf;
	const struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &side->dev,
			.n_devs = 1,
			.message_bytes_max = 1100,
			.window_max = 8,
			.pool_count = 256,
			.n_links = conf->n_links,
			.stripe_bytes = 16384,
			.connect_timeout_ns = 10 * RVCM_CLOCK_NS_PER_S,
			.hello_timeout_ns = 5 * RVCM_CLOCK_NS_PER_S,
			.reconnect_timeout_ns = conf->recovers ? 10 * RVCM_CLOCK_NS_PER_S : 0,
			.linger_ns = RVCM_CLOCK_NS_PER_S,
			.rnr_timeout_ns = 5 * RVCM_CLOCK_NS_PER_S,
			.env = { env_now, env_random, env_wake, env_wake, side->e },
		},
		.eager_bytes_max = 1000,
		.lend_bytes_min = 500,
		.unexpected_bytes_max = 1 << 20,
	};
	int rc = rvcm_engine_open(&attr, &side->engine);

	return rc ? rvcm_engine_open(&attr, &side->engine) : 0;
}

static int open_ep(struct side *side)
{
	const struct rvcm_ep_attr ep = { .engine = side->engine,
					 .tx_max = 4 * N,
					 .rx_max = 4 * N,
					 .inject_bytes_max = 64,
					 .sink = &sink,
					 .sink_ctx = side };
	const struct rvcm_region_attr region = { .key = 7 + (uint64_t)side->index,
						 .addr = side->memory,
						 .length = 2 * N * MOST,
						 .access = RVCM_REGION_READ | RVCM_REGION_WRITE };
	int rc = rvcm_ep_open(&ep, &side->ep);

	if (rc)
		rc = rvcm_ep_open(&ep, &side->ep);
	return rc ? rc : rvcm_region_open(side->engine, &region, &side->region);
}

static void open_side(struct side *side)
{
	CHECK(side->e, open_dev(side) == 0);
	open_memory(side);
	CHECK(side->e, open_engine(side) == 0);
	CHECK(side->e, open_ep(side) == 0);
}

static void turn(struct engines *e)
{
	do {
		e->woken = 0;
		for (int i = 0; i < 2; i++) {
			if (!e->sides[i].engine)
				continue;
			(void)rvcm_carrier_control(rvcm_engine_carrier(e->sides[i].engine));
			rvcm_engine_progress(e->sides[i].engine);
		}
	} while (e->woken);
	poll(NULL, 0, 0); /* let others run */
	if (rvcm_clock_ns() > e->limit_ns)
		give_up(e, "it does not end");
}

static void add_up(struct side *side, struct engines_sums *sums)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(rvcm_engine_carrier(side->engine), &stats);
	sums->recoveries += stats.recoveries;
	sums->losses += stats.downs;
	sums->faults[side->index] = rvcm_fault_count(side->dev);
	sums->all_faults += sums->faults[side->index];
}

static void close_side(struct side *side, struct engines_sums *sums)
{
	rvcm_region_close(side->region);
	rvcm_ep_shutdown(side->ep);
	while (!rvcm_ep_quiet(side->ep))
		turn(side->e);
	rvcm_ep_close(side->ep);
	add_up(side, sums);
	rvcm_engine_close(side->engine);
	side->engine = NULL;
	side->dev->ops->close(side->dev);
	free(side->out);
	free(side->in);
	free(side->got);
	free(side->memory);
}

/* -- traffic ---------------------------------------------------------------------------------- */

static int post_send(struct side *side, uint64_t i)
{
	struct rvcm_ep_iov iov = { side->out + i * MOST, length_of(i) };
	const struct rvcm_ep_tx tx = {
		.peer = side->peer,
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION | RVCM_EP_CQ_DATA |
			 (i % 3 == 0 ? RVCM_EP_DELIVERED : 0),
		.data = i,
		.op_context = &side->ops[SENDS][i],
	};

	return rvcm_ep_send(side->ep, &tx);
}

static int post_receive(struct side *side, uint64_t i)
{
	struct rvcm_ep_iov iov = { side->in + i * MOST, MOST };
	const struct rvcm_ep_rx rx = { .source = RVCM_EP_SOURCE_NONE,
				       .iov = &iov,
				       .n_iov = 1,
				       .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
				       .op_context = &side->ops[RECEIVES][i] };

	return rvcm_ep_recv(side->ep, &rx);
}

static int post_rma(struct side *side, uint64_t i, bool read)
{
	struct rvcm_ep_iov iov = { (read ? side->got : side->out) + i * MOST, length_of(i) };
	const struct rvcm_ep_rma rma = {
		.tx = { .peer = side->peer,
			.iov = &iov,
			.n_iov = 1,
			.flags = RVCM_EP_RMA | RVCM_EP_COMPLETION | (read ? RVCM_EP_READ : 0),
			.op_context = &side->ops[read ? READS : WRITES][i] },
		.addr = (i + (read ? N : 0)) * MOST,
		.key = 7 + (uint64_t)!side->index,
	};

	return rvcm_rma_post(side->ep, &rma);
}

/* Unless it was: false: there was no room. */
static bool post(struct side *side, enum kind kind, uint64_t i)
{
	struct op *op = &side->ops[kind][i];
	int rc;

	if (op->posted)
		return true;
	op->posted = true;
	if (kind == SENDS)
		rc = post_send(side, i);
	else if (kind == RECEIVES)
		rc = post_receive(side, i);
	else
		rc = post_rma(side, i, kind == READS);
	if (rc == -EAGAIN) {
		op->posted = false;
		return false;
	}
	CHECK(side->e, rc <= 0 && !(rc && op->ended));
	if (!rc)
		return true;
	CHECK(side->e, !side->e->conf->all_well);
	op->ended = true;
	op->status = rvcm_status_from_errno(rc);
	side->e->errors++;
	return true;
}

/* Each kind in its order; some receives are there before their messages, some come behind. */
static bool post_all(struct side *side, uint64_t limit)
{
	bool all = true;

	for (int kind = 0; kind < KINDS; kind++) {
		uint64_t last = kind == RECEIVES && side->index ? limit / 2 : limit;
		uint64_t i = 0;

		while (i < last && post(side, (enum kind)kind, i))
			i++;
		all &= i == last;
	}
	return all;
}

static bool ended(const struct side *side, enum kind kind)
{
	for (uint64_t i = 0; i < N; i++)
		if (!side->ops[kind][i].ended)
			return false;
	return true;
}

static bool all_ended(const struct engines *e, bool receives)
{
	for (int i = 0; i < 2; i++)
		for (int kind = 0; kind < KINDS; kind++)
			if ((kind != RECEIVES || receives) && !ended(&e->sides[i], (enum kind)kind))
				return false;
	return true;
}

/* A message that was lost leaves its receive waiting. */
static void cancel_all(struct engines *e)
{
	uint64_t end = rvcm_clock_ns() + QUIET_NS;

	while (!all_ended(e, true) && rvcm_clock_ns() < end)
		turn(e);
	for (int s = 0; s < 2; s++)
		for (uint64_t i = 0; i < N; i++)
			(void)rvcm_ep_cancel(e->sides[s].ep, &e->sides[s].ops[RECEIVES][i]);
}

static void talk(struct engines *e)
{
	uint64_t limit = 1;
	bool all = false;

	while (!all) { /* a little more in each turn, so that faults find all kinds under way */
		bool first = post_all(&e->sides[0], limit), second = post_all(&e->sides[1], limit);

		all = first && second && limit == N;
		if (limit < N)
			limit++;
		turn(e);
	}
	for (uint64_t i = 0; i < N; i++)
		while (!post(&e->sides[1], RECEIVES, i))
			turn(e);
	while (!all_ended(e, e->conf->all_well))
		turn(e);
	if (!e->conf->all_well)
		cancel_all(e);
	while (!all_ended(e, true))
		turn(e);
}

/* -- what became of it ------------------------------------------------------------------------ */

static bool was_received(const struct side *at, uint64_t data)
{
	for (uint64_t i = 0; i < N; i++)
		if (at->ops[RECEIVES][i].status == RVCM_STATUS_OK &&
		    at->ops[RECEIVES][i].data == data)
			return true;
	return false;
}

static bool went_well(const struct side *side, enum kind kind, uint64_t i)
{
	return side->ops[kind][i].status == RVCM_STATUS_OK;
}

/* Receives take messages in order: what each got is behind what the one before it got. */
static void check_order(const struct side *side)
{
	uint64_t next = 0;

	for (uint64_t i = 0; i < N; i++) {
		const struct op *op = &side->ops[RECEIVES][i];

		if (op->status != RVCM_STATUS_OK)
			continue;
		CHECK(side->e, op->data >= next);
		CHECK(side->e, !side->e->conf->all_well || op->data == next);
		next = op->data + 1;
	}
}

static void check_side(const struct side *side, const struct side *other)
{
	struct engines *e = side->e;

	for (uint64_t i = 0; i < N; i++) {
		const uint8_t *at = other->memory + i * MOST;

		if (went_well(side, SENDS, i) && i % 3 == 0)
			CHECK(e, was_received(other, i));
		if (went_well(side, WRITES, i))
			CHECK(e, !memcmp(at, side->out + i * MOST, length_of(i)));
		if (went_well(side, READS, i))
			CHECK(e, !memcmp(side->got + i * MOST, at + N * MOST, length_of(i)));
	}
}

/* Nothing came twice: nothing is left that nobody asked for. */
static void check_nothing_left(struct side *side)
{
	const struct rvcm_ep_rx any = { .source = RVCM_EP_SOURCE_NONE,
					.flags = RVCM_EP_TAGGED,
					.ignore = UINT64_MAX,
					.op_context = side };
	struct rvcm_ep_found found;
	int rc = rvcm_peek(side->ep, &any, RVCM_EP_LOOK, &found);

	CHECK(side->e, rc == -ENOENT || rc == -ENODEV);
}

void engines_run(const struct engines_conf *conf, struct engines_sums *sums)
{
	struct engines *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->conf = conf;
	e->limit_ns = rvcm_clock_ns() + LIMIT_NS;
	for (int i = 0; i < 2; i++) {
		e->sides[i].e = e;
		e->sides[i].index = i;
		open_side(&e->sides[i]);
	}
	for (int i = 0; i < 2; i++)
		CHECK(e, rvcm_ep_peer(e->sides[i].ep, rvcm_ep_name(e->sides[!i].ep),
				      RVCM_EP_SOURCE_NONE, &e->sides[i].peer) == 0);
	talk(e);
	for (int i = 0; i < 2; i++) {
		check_order(&e->sides[i]);
		check_side(&e->sides[i], &e->sides[!i]);
		if (conf->all_well)
			check_nothing_left(&e->sides[i]);
	}
	for (int i = 0; i < 2; i++)
		close_side(&e->sides[i], sums);
	sums->runs++;
	sums->errors += e->errors;
	free(e);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on peers' memory, and the keys of it. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "base/le.h"
#include "proto/message.h"

#define DONE   RVCM_EP_COMPLETION
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK
#define BYTES  5000
#define PART   1700
#define KEY    0x1122334455667788u
#define BASE   0x4000u
#define BOTH   (RVCM_REGION_READ | RVCM_REGION_WRITE)

/* What was committed, in order: a letter each. */
struct tape {
	char ops[256];
	uint32_t n;
};

static void record(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	static const char letters[] = "?ERFofAPWgkDxxGL";
	struct tape *tape = ctx;

	(void)from;
	(void)bytes;
	assert_true(tape->n < sizeof(tape->ops) - 1);
	tape->ops[tape->n++] = letters[data[0]];
}

struct memory {
	struct world *w;
	struct tape tape;
	struct rvcm_region *region; /* node 1's, or NULL */
	uint8_t there[BYTES + 2];   /* it is what lies between its first byte and its last */
	uint8_t here[BYTES];
};

static struct rvcm_region *open_region(struct memory *m, int node, uint32_t access)
{
	const struct rvcm_region_attr attr = {
		.key = KEY, .base = BASE, .addr = m->there + 1, .length = BYTES, .access = access
	};
	struct rvcm_region *region;

	assert_int_equal(rvcm_region_open(m->w->nodes[node].engine, &attr, &region), 0);
	return region;
}

static void memory_open(struct memory *m, uint32_t access)
{
	memset(m, 0, sizeof(*m));
	memset(m->there, '.', sizeof(m->there));
	m->w = world_new();
	world_open(m->w);
	m->w->net.write_most = PART;
	world_connect(m->w, 0, 1);
	m->w->net.tap = record;
	m->w->net.tap_ctx = &m->tape;
	m->region = open_region(m, 1, access);
}

static void memory_close(struct memory *m)
{
	if (m->region)
		rvcm_region_close(m->region);
	world_run(m->w);
	world_close(m->w);
}

static int post(struct memory *m, int from, int to, struct rvcm_ep_tx tx, uint64_t addr)
{
	struct rvcm_ep_rma rma = { .tx = tx, .addr = addr, .key = KEY };

	rma.tx.peer = m->w->nodes[from].peers[to];
	rma.tx.flags |= RVCM_EP_RMA;
	return rvcm_rma_post(m->w->nodes[from].ep, &rma);
}

/* Node 0 with so many bytes of here, at an offset of node 1's memory; context n. */
static int do_rma(struct memory *m, uint32_t flags, size_t offset, size_t bytes, unsigned int n)
{
	struct rvcm_ep_iov iov = { m->here, bytes };

	return post(m, 0, 1,
		    (struct rvcm_ep_tx) { .iov = &iov,
					  .n_iov = 1,
					  .flags = flags | DONE,
					  .data = 7,
					  .op_context = CTX(n) },
		    BASE + offset);
}

static void check_there(const struct memory *m, size_t bytes)
{
	assert_int_equal(m->there[0], '.');
	world_check(m->there + 1, bytes, 1);
	assert_int_equal(m->there[1 + bytes], '.');
}

/* The key is asked for; a message behind each part; and it has ended when the last is there. */
static void it_is_written_in_parts(void **state)
{
	struct rvcm_ep_stats stats;
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	m.w->net.hold_confirms = true;
	assert_int_equal(do_rma(&m, 0, 0, BYTES, 1), 0);
	world_run(m.w);
	check_there(&m, BYTES);
	assert_string_equal(m.tape.ops, "gkDDD");
	world_none(m.w, 0); /* though all that is missing is the peer's word */
	m.w->net.hold_confirms = false;
	world_run(m.w);
	assert_int_equal(world_expect(m.w, 0, CTX(1), OK, 0)->comp.flags,
			 RVCM_EP_SEND | RVCM_EP_RMA);
	rvcm_ep_stats(m.w->nodes[0].ep, &stats);
	assert_int_equal(stats.rma_writes, 1);
	assert_int_equal(stats.rma_bytes, BYTES);
	assert_int_equal(stats.rma_keys, 1);
	memory_close(&m);
	assert_string_equal(m.tape.ops, "gkDDDGL");
}

/* Its memory may be with the device still when the peer has all: both are waited for. */
static void the_memory_is_waited_for_too(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	m.w->net.hold_tails = true;
	assert_int_equal(do_rma(&m, 0, 0, 100, 1), 0);
	world_run(m.w);
	world_none(m.w, 0);
	m.w->net.hold_tails = false;
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	memory_close(&m);
}

/* What the peer has confirmed went well, though the link is lost before the device says so. */
static void what_was_confirmed_ends_well(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	m.w->net.hold_tails = true;
	assert_int_equal(do_rma(&m, 0, 0, 100, 1), 0);
	world_run(m.w);
	m.w->net.hold_confirms = true;
	assert_int_equal(do_rma(&m, 0, 0, 100, 2), 0);
	world_run(m.w);
	fake_conn_break(world_conn(m.w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(m.w);
	assert_int_equal(world_take(m.w, 0)->comp.status, OK);
	world_expect(m.w, 0, CTX(2), RVCM_STATUS_CONNECTION_LOST, 0);
	memory_close(&m);
}

/* The data comes with the last part, once, when all is there. */
static void data_follows_the_write(void **state)
{
	const struct world_comp *got;
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	assert_int_equal(do_rma(&m, RVCM_EP_CQ_DATA, 0, BYTES, 1), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	got = world_expect(m.w, 1, NULL, OK, BYTES);
	assert_int_equal(got->comp.flags,
			 RVCM_EP_RMA | RVCM_EP_REMOTE | RVCM_EP_CQ_DATA | RVCM_EP_MULTI);
	assert_int_equal(got->comp.data, 7);
	check_there(&m, BYTES);
	/* Of nothing too. */
	assert_int_equal(do_rma(&m, RVCM_EP_CQ_DATA, BYTES, 0, 2), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(2), OK, 0);
	world_expect(m.w, 1, NULL, OK, 0);
	memory_close(&m);
}

/* There is no room to report it, and it cannot be put off: that ends the path. */
static void data_that_cannot_be_reported_ends_the_path(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	m.w->nodes[1].full = true;
	m.w->net.hold_confirms = true; /* nobody confirms what ends the path */
	assert_int_equal(do_rma(&m, RVCM_EP_CQ_DATA, 0, 1, 1), 0);
	world_run(m.w);
	assert_int_equal(m.w->net.fault_status, RVCM_STATUS_NO_MEMORY);
	world_expect(m.w, 0, CTX(1), RVCM_STATUS_PROTOCOL, 0);
	memory_close(&m);
}

static void it_is_read(void **state)
{
	struct rvcm_ep_stats stats;
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.there + 1, BYTES, 1);
	assert_int_equal(do_rma(&m, RVCM_EP_READ, 10, BYTES - 10, 1), 0);
	assert_int_equal(do_rma(&m, RVCM_EP_READ, 0, 0, 2), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(2), OK, 0);
	assert_int_equal(world_expect(m.w, 0, CTX(1), OK, 0)->comp.flags,
			 RVCM_EP_SEND | RVCM_EP_RMA | RVCM_EP_READ);
	assert_memory_equal(m.here, m.there + 11, BYTES - 10);
	assert_string_equal(m.tape.ops, "gk");
	rvcm_ep_stats(m.w->nodes[0].ep, &stats);
	assert_int_equal(stats.rma_reads, 2);
	memory_close(&m);
}

/* Into and from several pieces, of which some are empty. */
static void pieces_are_used_in_order(void **state)
{
	struct memory m;
	uint8_t back[300];

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, 300, 1);
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t *p = i ? back : m.here;
		struct rvcm_ep_iov iov[4] = {
			{ NULL, 0 }, { p, 200 }, { NULL, 0 }, { p + 200, 100 }
		};

		assert_int_equal(post(&m, 0, 1,
				      (struct rvcm_ep_tx) { .iov = iov,
							    .n_iov = 4,
							    .flags = i ? RVCM_EP_READ | DONE : DONE,
							    .op_context = CTX(i) },
				      BASE + 20),
				 0);
		world_run(m.w);
		world_expect(m.w, 0, CTX(i), OK, 0);
	}
	world_check(back, 300, 1);
	world_check(m.there + 21, 300, 1);
	assert_int_equal(m.there[20], '.');
	assert_string_equal(m.tape.ops, "gkDD");
	memory_close(&m);
}

/* An injected one leaves from a copy. */
static void injected_memory_may_be_reused(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, 64, 1);
	assert_int_equal(do_rma(&m, RVCM_EP_INJECT, 0, 65, 1), -EMSGSIZE);
	assert_int_equal(do_rma(&m, RVCM_EP_INJECT, 0, 64, 1), 0);
	memset(m.here, 'x', 64);
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	check_there(&m, 64);
	memory_close(&m);
}

/* A message behind a write is not received before the write is placed, though its key is new. */
static void what_is_sent_behind_it_comes_behind_it(void **state)
{
	struct memory m;
	char out = 's', in = 0;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	assert_int_equal(world_recv(m.w, 1, &in, 1, RVCM_EP_SOURCE_NONE, 1, 0, CTX(2)), 0);
	assert_int_equal(do_rma(&m, 0, 0, BYTES, 1), 0);
	assert_int_equal(world_send(m.w, 0, 1, &out, 1, 1, 0, CTX(3)), 0);
	world_run(m.w);
	assert_string_equal(m.tape.ops, "gkDDDE");
	check_there(&m, BYTES);
	world_expect(m.w, 1, CTX(2), OK, 1);
	world_expect(m.w, 0, CTX(3), OK, 0);
	world_expect(m.w, 0, CTX(1), OK, 0);
	memory_close(&m);
}

/* Both wait for the other's KEY: what answers does not wait behind that. */
static void two_may_ask_each_other(void **state)
{
	struct rvcm_region *own;
	struct rvcm_ep_iov iov;
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	own = open_region(&m, 0, BOTH);
	m.w->net.hold_messages = true;
	iov = (struct rvcm_ep_iov) { m.here, 10 };
	assert_int_equal(do_rma(&m, 0, 0, 10, 1), 0);
	assert_int_equal(
		post(&m, 1, 0,
		     (struct rvcm_ep_tx) {
			     .iov = &iov, .n_iov = 1, .flags = DONE, .op_context = CTX(2) },
		     BASE + 50),
		0);
	world_run(m.w);
	assert_string_equal(m.tape.ops, "gg");
	m.w->net.hold_messages = false;
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	world_expect(m.w, 1, CTX(2), OK, 0);
	rvcm_region_close(own);
	memory_close(&m);
}

/* What is not allowed ends in an error of its own, before anything is posted. */
static void bounds_and_rights_are_judged_first(void **state)
{
	static const struct {
		uint32_t access, flags;
		uint64_t offset;
		size_t bytes;
	} bad[] = {
		{ BOTH, 0, BYTES - 9, 10 },
		{ BOTH, 0, BYTES + 1, 0 },
		{ BOTH, 0, (uint64_t)-1, 1 }, /* before its base */
		{ BOTH, RVCM_EP_READ, 1, BYTES },
		{ RVCM_REGION_READ, 0, 0, 1 },
		{ RVCM_REGION_WRITE, RVCM_EP_READ, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct memory m;

		memory_open(&m, bad[i].access);
		assert_int_equal(do_rma(&m, bad[i].flags, bad[i].offset, bad[i].bytes, 1), 0);
		world_run(m.w);
		assert_true(world_expect(m.w, 0, CTX(1), RVCM_STATUS_REMOTE_ACCESS, 0)->text[0]);
		assert_string_equal(m.tape.ops, "gk");
		assert_int_equal(m.w->net.faults, 0);
		memory_close(&m);
	}
}

/* A key that nobody has costs an operation, and the next one asks again. */
static void an_unknown_key_is_refused(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	rvcm_region_close(m.region);
	assert_int_equal(do_rma(&m, 0, 0, 1, 1), 0);
	assert_int_equal(do_rma(&m, RVCM_EP_READ, 0, 1, 2), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), RVCM_STATUS_KEY_REJECTED, 0);
	world_expect(m.w, 0, CTX(2), RVCM_STATUS_KEY_REJECTED, 0);
	m.region = open_region(&m, 1, BOTH);
	assert_int_equal(do_rma(&m, 0, 0, 1, 3), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(3), OK, 0);
	assert_string_equal(m.tape.ops, "gkgkD");
	memory_close(&m);
}

/* Memory that cannot be registered, there or here, is an operation's error too. */
static void memory_that_cannot_be_registered_is_an_error(void **state)
{
	static const uint32_t access[] = { RVCM_DEV_ACCESS_REMOTE_WRITE, 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct memory m;

		memory_open(&m, BOTH);
		if (i) { /* the key is known, and so it is registered there */
			assert_int_equal(do_rma(&m, 0, 0, 0, 1), 0);
			world_run(m.w);
			world_take(m.w, 0);
		}
		m.w->net.fail_reg = -ENOMEM;
		m.w->net.fail_access = access[i];
		assert_int_equal(do_rma(&m, 0, 0, 10, 2), 0);
		world_run(m.w);
		world_expect(m.w, 0, CTX(2), RVCM_STATUS_NO_MEMORY, 0);
		m.w->net.fail_reg = 0;
		assert_int_equal(do_rma(&m, 0, 0, 10, 3), 0);
		world_run(m.w);
		world_expect(m.w, 0, CTX(3), OK, 0);
		memory_close(&m);
	}
}

/* Memory that is closed while it is read stays registered until the read has ended. */
static void closed_memory_stays_until_nobody_uses_it(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.there + 1, BYTES, 1);
	m.w->net.hold_reads = true;
	assert_int_equal(do_rma(&m, RVCM_EP_READ, 0, BYTES, 1), 0);
	world_run(m.w);
	rvcm_region_close(m.region);
	m.region = NULL;
	world_run(m.w);
	assert_string_equal(m.tape.ops, "gkG");
	assert_int_equal(m.w->net.n_mrs, 2);
	/* What begins now asks anew, and hears that there is none. */
	assert_int_equal(do_rma(&m, 0, 0, 1, 2), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(2), RVCM_STATUS_KEY_REJECTED, 0);
	m.w->net.hold_reads = false;
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	world_check(m.here, BYTES, 1);
	assert_string_equal(m.tape.ops, "gkGgkL");
	assert_int_equal(m.w->net.n_mrs, 0);
	assert_int_equal(m.w->net.faults, 0);
	memory_close(&m);
}

/* What had begun when KEY_GONE came ends well; what waits behind it, though queued before, fails.
 */
static void what_waits_when_memory_is_closed_fails(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	assert_int_equal(do_rma(&m, 0, 0, 1, 1), 0);
	world_run(m.w);
	world_expect(m.w, 0, CTX(1), OK, 0);
	m.w->net.fail_reserve = true;
	assert_int_equal(do_rma(&m, 0, 0, 1, 2), 0);
	assert_int_equal(do_rma(&m, 0, 0, 1, 3), 0);
	m.w->net.fail_reserve = false;
	rvcm_region_close(m.region);
	m.region = NULL;
	world_run(m.w);
	world_expect(m.w, 0, CTX(3), RVCM_STATUS_KEY_REJECTED, 0);
	world_expect(m.w, 0, CTX(2), OK, 0);
	assert_int_equal(m.w->net.n_mrs, 0);
	assert_int_equal(m.w->net.faults, 0);
	memory_close(&m);
}

/* The peer is lost: each operation ends once, keys are forgotten, and so is who was told ours. */
static void all_ends_with_the_peer(void **state)
{
	struct memory m;

	(void)state;
	for (int at = 0; at < 4; at++) {
		memory_open(&m, BOTH);
		if (at) {
			assert_int_equal(do_rma(&m, 0, 0, 1, 0), 0);
			world_run(m.w);
			world_expect(m.w, 0, CTX(0), OK, 0);
		}
		m.w->net.hold_messages = true;
		m.w->net.hold_reads = true;
		assert_int_equal(do_rma(&m, at == 2 ? RVCM_EP_READ : 0, 0, BYTES, 1), 0);
		assert_int_equal(do_rma(&m, 0, 0, 1, 2), 0);
		if (at == 3)
			rvcm_region_close(m.region);
		world_run(m.w);
		fake_conn_break(world_conn(m.w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
		m.w->net.hold_messages = false;
		m.w->net.hold_reads = false;
		world_run(m.w);
		world_take(m.w, 0);
		assert_int_equal(world_take(m.w, 0)->comp.status, RVCM_STATUS_CONNECTION_LOST);
		world_none(m.w, 0);
		assert_int_equal(m.w->net.n_mrs, at == 0 || at == 3 ? 0 : 1);
		if (at == 3)
			m.region = open_region(&m, 1, BOTH);
		m.tape.n = 0;
		memset(m.tape.ops, 0, sizeof(m.tape.ops));
		assert_int_equal(do_rma(&m, 0, 0, 1, 3), 0);
		world_run(m.w);
		world_expect(m.w, 0, CTX(3), OK, 0);
		assert_string_equal(m.tape.ops, "gkD");
		memory_close(&m);
	}
}

static void our_own_memory_is_copied(void **state)
{
	struct rvcm_ep_iov iov;
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	iov = (struct rvcm_ep_iov) { m.here, BYTES };
	for (uint32_t i = 0; i < 2; i++) {
		struct rvcm_ep_tx tx = { .iov = &iov,
					 .n_iov = 1,
					 .flags = DONE | (i ? RVCM_EP_READ : RVCM_EP_CQ_DATA),
					 .data = 9,
					 .op_context = CTX(1) };

		assert_int_equal(post(&m, 1, 1, tx, BASE), 0);
		world_expect(m.w, 1, CTX(1), OK, 0);
		if (!i)
			assert_int_equal(world_expect(m.w, 1, NULL, OK, BYTES)->comp.data, 9);
		check_there(&m, BYTES);
		memset(m.here, 0, BYTES);
		iov.length = i ? 0 : BYTES;
		if (i == 0)
			continue;
		iov.length = 1;
		assert_int_equal(post(&m, 1, 1, tx, BASE + BYTES), 0);
		world_expect(m.w, 1, CTX(1), RVCM_STATUS_REMOTE_ACCESS, 0);
	}
	rvcm_region_close(m.region);
	m.region = NULL;
	assert_int_equal(
		post(&m, 1, 1,
		     (struct rvcm_ep_tx) {
			     .iov = &iov, .n_iov = 1, .flags = DONE, .op_context = CTX(2) },
		     BASE),
		0);
	world_expect(m.w, 1, CTX(2), RVCM_STATUS_KEY_REJECTED, 0);
	assert_string_equal(m.tape.ops, "");
	memory_close(&m);
}

/* An endpoint that closes: what was injected arrives, what has begun ends, the rest is dropped. */
static void closing_lets_what_was_injected_arrive(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	world_fill(m.here, BYTES, 1);
	assert_int_equal(do_rma(&m, RVCM_EP_INJECT, 0, 64, 1), 0);
	assert_int_equal(do_rma(&m, 0, 100, BYTES - 100, 2), 0);
	world_close_ep(m.w, 0);
	world_run(m.w);
	check_there(&m, 64);
	memory_close(&m);
}

static int peer_says(struct memory *m, uint8_t op, uint32_t id)
{
	uint8_t bytes[24] = { [0] = op };

	rvcm_le32_put(bytes + 4, id);
	fake_conn_inject(world_conn(m->w, 0, 1), bytes, op == RVCM_MESSAGE_KEY_GET ? 24 : 16);
	return 0;
}

/* It has lost us, and begun anew, and we have not noticed: what it asked before is forgotten. */
static void who_begins_anew_asks_again(void **state)
{
	struct memory m;

	(void)state;
	memory_open(&m, BOTH);
	m.w->net.fail_reserve = true;
	for (uint32_t id = 5; id < 8; id++)
		peer_says(&m, RVCM_MESSAGE_KEY_GET, id);
	world_run(m.w);
	assert_int_equal(m.w->net.faults, 0);
	peer_says(&m, RVCM_MESSAGE_KEY_GONE, 5); /* enough of that */
	world_run(m.w);
	assert_int_equal(m.w->net.faults, 1);
	m.w->net.fail_reserve = false;
	memory_close(&m);
}

/* A peer that breaks the rules of keys. */
static void breaches_end_the_path(void **state)
{
	static const struct {
		uint8_t op;
		const char *text;
	} bad[] = {
		{ RVCM_MESSAGE_KEY_GONE, "KEY_GONE of what is not held" },
		{ RVCM_MESSAGE_KEY_LEFT, "KEY_LEFT of what is not gone" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct memory m;

		memory_open(&m, BOTH);
		m.w->net.fail_reserve = true;
		peer_says(&m, bad[i].op, 5);
		world_run(m.w);
		assert_int_equal(m.w->net.faults, 1);
		assert_string_equal(m.w->net.fault_text, bad[i].text);
		m.w->net.fail_reserve = false;
		memory_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_written_in_parts),
		cmocka_unit_test(the_memory_is_waited_for_too),
		cmocka_unit_test(what_was_confirmed_ends_well),
		cmocka_unit_test(data_follows_the_write),
		cmocka_unit_test(data_that_cannot_be_reported_ends_the_path),
		cmocka_unit_test(it_is_read),
		cmocka_unit_test(pieces_are_used_in_order),
		cmocka_unit_test(injected_memory_may_be_reused),
		cmocka_unit_test(what_is_sent_behind_it_comes_behind_it),
		cmocka_unit_test(two_may_ask_each_other),
		cmocka_unit_test(bounds_and_rights_are_judged_first),
		cmocka_unit_test(an_unknown_key_is_refused),
		cmocka_unit_test(memory_that_cannot_be_registered_is_an_error),
		cmocka_unit_test(closed_memory_stays_until_nobody_uses_it),
		cmocka_unit_test(what_waits_when_memory_is_closed_fails),
		cmocka_unit_test(all_ends_with_the_peer),
		cmocka_unit_test(our_own_memory_is_copied),
		cmocka_unit_test(closing_lets_what_was_injected_arrive),
		cmocka_unit_test(who_begins_anew_asks_again),
		cmocka_unit_test(breaches_end_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

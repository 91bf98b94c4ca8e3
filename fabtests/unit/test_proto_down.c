/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer is lost, at every stage an operation can be in: each ends exactly once, with the reason.
 */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "unit/failmem.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK
#define DEAD   RVCM_STATUS_PEER_DEAD

static struct world *open_world(void)
{
	struct world *w = world_new();

	w->inject_bytes_max = 2000;
	world_open(w);
	world_connect(w, 0, 1);
	return w;
}

static void cut(struct world *w)
{
	fake_conn_break(world_conn(w, 0, 1), DEAD, "it was killed");
	world_run(w);
}

static void expect_dead(struct world *w, int i, const void *context)
{
	const struct world_comp *got = world_expect(w, i, context, DEAD, 0);

	assert_string_equal(got->text, "it was killed");
	assert_int_equal(got->comp.err, rvcm_status_errno(DEAD));
	assert_int_equal(got->comp.vendor_err, FAKE_CONN_VENDOR);
}

/* Traffic of both kinds passes again, over a fresh conn. */
static void works_again(struct world *w)
{
	char out[1000], in[1000];

	world_none(w, 0);
	world_none(w, 1);
	assert_int_equal(w->net.n_mrs, 0);
	for (int from = 0; from < 2; from++)
		for (size_t bytes = 100; bytes <= 1000; bytes += 900) {
			world_fill(out, bytes, (uint32_t)bytes);
			assert_int_equal(world_recv(w, 1 - from, in, 1000,
						    WORLD_SOURCE((uint32_t)from), 12345, 0,
						    CTX(200)),
					 0);
			assert_int_equal(
				world_send(w, from, 1 - from, out, bytes, 12345, 0, CTX(201)), 0);
			world_run(w);
			world_expect(w, from, CTX(201), OK, 0);
			world_expect(w, 1 - from, CTX(200), OK, bytes);
			world_check(in, bytes, (uint32_t)bytes);
		}
	world_close(w);
}

static void queued_sends(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_stats stats;
	char out[1000];

	(void)state;
	w->net.fail_reserve = true;
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, TAGGED, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, TAGGED | RVCM_EP_INJECT, CTX(3)), 0);
	cut(w);
	w->net.fail_reserve = false;
	world_run(w);
	expect_dead(w, 0, CTX(1));
	expect_dead(w, 0, CTX(2));
	expect_dead(w, 0, CTX(3));
	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_errors, 3);
	works_again(w);
}

/* On one side the operation, on the other an announcement that nothing can read any more. */
static void announced_sends(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, TAGGED | RVCM_EP_INJECT, CTX(2)), 0);
	world_run(w);
	cut(w);
	expect_dead(w, 0, CTX(1));
	expect_dead(w, 0, CTX(2));
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(3)), 0);
	world_run(w);
	world_none(w, 1); /* it waits for a message that comes */
	world_fill(out, 10, 3);
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 1, CTX(3), OK, 10);
	world_check(in, 10, 3);
	works_again(w);
}

static void announcements_lost_on_the_way(void **state)
{
	struct world *w = open_world();
	char out[1000];

	(void)state;
	w->net.hold_messages = true;
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, 0, CTX(2)), 0);
	world_expect(w, 0, CTX(2), OK, 0); /* committed: eager is over, delivered or not */
	cut(w);
	w->net.hold_messages = false;
	expect_dead(w, 0, CTX(1));
	works_again(w);
}

static void reading_receives_end(enum rvcm_status cut_read)
{
	struct world *w = open_world();
	char out[1000], in[2][1000];
	struct rvcm_ep_iov iov[2] = { { in[0], 500 }, { in[1], 500 } };
	struct rvcm_ep_rx rx = { .source = ANY,
				 .iov = iov,
				 .n_iov = 2,
				 .flags = TAGGED,
				 .tag = 1,
				 .op_context = CTX(2) };

	w->net.cut_read = cut_read;
	w->net.hold_reads = true;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	world_run(w);
	assert_int_equal(w->net.n_mrs, 3);
	cut(w);
	w->net.hold_reads = false;
	expect_dead(w, 0, CTX(1));
	expect_dead(w, 1, CTX(2));
	works_again(w);
}

/* However the device calls it: the reason is the conn's. */
static void reading_receives(void **state)
{
	(void)state;
	reading_receives_end(RVCM_STATUS_FLUSHED);
	reading_receives_end(RVCM_STATUS_RETRY_EXCEEDED);
	reading_receives_end(OK);
}

/* The last bytes came in time, the news of it cannot be told any more. */
static void reads_that_end_well_after_all(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	w->net.hold_reads = true;
	w->net.finish_reads = true;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	world_run(w);
	/* Node 1 hears of it first: node 0's memory is still registered. */
	fake_conn_break(world_conn(w, 0, 1), DEAD, "it was killed");
	rvcm_engine_progress(w->nodes[1].engine);
	w->net.hold_reads = false;
	world_run(w);
	expect_dead(w, 0, CTX(1));
	world_expect(w, 1, CTX(2), OK, 1000);
	works_again(w);
}

/* The link fails under the announcement: the reason is known when it is down, and not before. */
static void a_read_that_cannot_be_posted_any_more(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	w->net.fail_post = -ENOTCONN;
	world_run(w);
	world_none(w, 1);
	w->net.fail_post = 0;
	cut(w);
	expect_dead(w, 0, CTX(1));
	expect_dead(w, 1, CTX(2));
	works_again(w);
}

/* The data is there; only the sender does not know. */
static void fin_waits_for_credit(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	w->net.fail_reserve = true;
	world_run(w);
	world_none(w, 1);
	cut(w);
	w->net.fail_reserve = false;
	world_run(w);
	world_expect(w, 1, CTX(2), OK, 1000);
	expect_dead(w, 0, CTX(1));
	works_again(w);
}

static void posted_receives(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_iov iov = { NULL, 0 };
	struct rvcm_ep_rx plain = {
		.source = WORLD_SOURCE(1), .iov = &iov, .n_iov = 1, .op_context = CTX(4)
	};
	char in[3] = { 0 };
	const struct world_comp *got;

	(void)state;
	world_connect(w, 0, 2);
	assert_int_equal(world_recv(w, 0, &in[0], 1, WORLD_SOURCE(1), 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 0, &in[1], 1, WORLD_SOURCE(2), 1, 0, CTX(2)), 0);
	assert_int_equal(world_recv(w, 0, &in[2], 1, ANY, 1, 0, CTX(3)), 0);
	assert_int_equal(rvcm_ep_recv(w->nodes[0].ep, &plain), 0);
	cut(w);
	got = world_take(w, 0);
	assert_ptr_equal(got->comp.op_context, CTX(4));
	got = world_expect(w, 0, CTX(1), DEAD, 0);
	assert_int_equal(got->comp.source, WORLD_SOURCE(1));
	assert_ptr_equal(got->comp.buf, &in[0]);
	world_none(w, 0);
	assert_int_equal(world_send(w, 2, 0, "a", 1, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 2, 0, "b", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 0, CTX(2), OK, 1);
	world_expect(w, 0, CTX(3), OK, 1);
	works_again(w);
}

static void what_has_arrived_stays(void **state)
{
	struct world *w = open_world();
	char out[100], in[100];

	(void)state;
	world_fill(out, 100, 1);
	assert_int_equal(world_send(w, 0, 1, out, 100, 1, TAGGED, NULL), 0);
	world_run(w);
	cut(w);
	assert_int_equal(world_recv(w, 1, in, 100, WORLD_SOURCE(0), 1, 0, CTX(1)), 0);
	world_expect(w, 1, CTX(1), OK, 100);
	world_check(in, 100, 1);
	works_again(w);
}

/* What is held is beyond its budget with one message. */
static struct world *open_small(void)
{
	struct world *w = world_new();

	w->unexpected_bytes_max = 100;
	world_open(w);
	world_connect(w, 0, 1);
	return w;
}

static uint64_t announced(struct world *w)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(w->nodes[0].ep, &stats);
	return stats.tx_rndv;
}

/* EAGER_OFF does not outlive the conn, in neither direction. */
static void the_budget_begins_anew(void **state)
{
	struct world *w = open_small();
	char out[256], in[256];

	(void)state;
	memset(out, 0, sizeof(out));
	assert_int_equal(world_send(w, 0, 1, out, 256, 1, TAGGED, NULL), 0);
	world_run(w);
	cut(w);
	assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(1)), 0);
	world_expect(w, 1, CTX(1), OK, 256);
	assert_int_equal(world_send(w, 0, 1, out, 256, 1, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(announced(w), 0);
	assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(1)), 0);
	world_expect(w, 1, CTX(1), OK, 256);
	works_again(w);
}

/* What is held still counts: the fresh conn hears of it when the next message is held. */
static void the_budget_is_told_again(void **state)
{
	struct world *w = open_small();
	char out[256], in[256];

	(void)state;
	memset(out, 0, sizeof(out));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(world_send(w, 0, 1, out, 256, 1, TAGGED, NULL), 0);
		world_run(w);
		assert_int_equal(announced(w), 0);
		if (i == 0)
			cut(w);
	}
	assert_int_equal(world_send(w, 0, 1, out, 256, 1, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(announced(w), 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(1)), 0);
		world_run(w);
		world_expect(w, 1, CTX(1), OK, 256);
	}
	works_again(w);
}

static void an_orderly_close_of_the_peer(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_send(w, 1, 0, out, 10, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(1)), 0);
	world_run(w);
	world_close_ep(w, 1);
	world_run(w);
	world_expect(w, 0, CTX(1), RVCM_STATUS_PEER_CLOSED, 0);
	assert_int_equal(world_recv(w, 0, in, 10, ANY, 1, 0, CTX(2)), 0);
	world_expect(w, 0, CTX(2), OK, 10);
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, 0, CTX(3)), 0);
	world_run(w);
	world_expect(w, 0, CTX(3), RVCM_STATUS_REFUSED, 0);
	world_close(w);
}

/* Whatever is under way when the endpoint closes is dropped without a word and without a leak. */
static void closing_with_everything_pending(void **state)
{
	struct world *w = open_world();
	char out[1000], in[6][1000];

	(void)state;
	w->net.hold_reads = true;
	assert_int_equal(world_recv(w, 0, in[0], 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 1, 0, out, 1000, 1, TAGGED, NULL), 0); /* reading */
	assert_int_equal(world_send(w, 1, 0, out, 1000, 2, TAGGED, NULL), 0); /* held */
	assert_int_equal(world_send(w, 1, 0, out, 10, 3, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 4, TAGGED, NULL), 0); /* announced */
	assert_int_equal(world_send(w, 0, 0, out, 1000, 5, TAGGED, NULL), 0); /* to ourselves */
	assert_int_equal(world_send(w, 0, 0, out, 10, 6, TAGGED, NULL), 0);
	world_run(w);
	w->net.fail_reserve = true;
	assert_int_equal(world_send(w, 0, 1, out, 1000, 7, TAGGED, NULL), 0);  /* queued */
	assert_int_equal(world_recv(w, 0, in[1], 1000, ANY, 8, 0, CTX(1)), 0); /* posted */
	world_close_ep(w, 0);
	w->net.fail_reserve = false;
	world_run(w);
	/* Node 1's sends fail, as their peer has gone. */
	world_expect(w, 1, NULL, RVCM_STATUS_PEER_CLOSED, 0);
	world_expect(w, 1, NULL, RVCM_STATUS_PEER_CLOSED, 0);
	world_close(w);
}

/*
 * Memory runs out anywhere in an exchange. Each operation that was taken ends once at most; without
 * a failure all do. What is pending then is dropped with its endpoint, and nothing leaks.
 */
static bool exchange(unsigned long n)
{
	struct world *w = world_new();
	char out[1000], in[1000];
	int taken = 0, ended = 0, ends[7] = { 0 };
	bool failed;

	world_open(w);
	failmem_fail_nth(n);
	taken += world_recv(w, 1, in, 1000, WORLD_SOURCE(0), 1, 0, CTX(1)) == 0;
	taken += world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)) == 0;
	taken += world_send(w, 0, 1, out, 100, 2, 0, CTX(3)) == 0;
	taken += world_send(w, 0, 0, out, 1000, 2, 0, CTX(4)) == 0;
	world_run(w);
	taken += world_recv(w, 1, in, 1000, WORLD_SOURCE(0), 2, 0, CTX(5)) == 0;
	taken += world_recv(w, 0, in, 1000, ANY, 2, 0, CTX(6)) == 0;
	world_run(w);
	failed = failmem_failed();
	failmem_fail_nth(0);
	for (int i = 0; i < 2; i++)
		for (; w->nodes[i].n_taken < w->nodes[i].n_comps; ended++) {
			void *context = world_take(w, i)->comp.op_context;

			assert_in_range((uintptr_t)context, 0x1001, 0x1006);
			assert_int_equal(ends[(uintptr_t)context - 0x1000]++, 0);
		}
	if (failed)
		assert_true(ended <= taken);
	else
		assert_int_equal(ended, 6);
	world_close(w);
	assert_int_equal(failmem_outstanding(), 0);
	return failed;
}

static void memory_runs_out(void **state)
{
	unsigned long n = 1;

	(void)state;
	while (exchange(n))
		n++;
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queued_sends),
		cmocka_unit_test(announced_sends),
		cmocka_unit_test(announcements_lost_on_the_way),
		cmocka_unit_test(reading_receives),
		cmocka_unit_test(reads_that_end_well_after_all),
		cmocka_unit_test(a_read_that_cannot_be_posted_any_more),
		cmocka_unit_test(fin_waits_for_credit),
		cmocka_unit_test(posted_receives),
		cmocka_unit_test(what_has_arrived_stays),
		cmocka_unit_test(the_budget_begins_anew),
		cmocka_unit_test(the_budget_is_told_again),
		cmocka_unit_test(an_orderly_close_of_the_peer),
		cmocka_unit_test(closing_with_everything_pending),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests_name("proto_down", tests, NULL, NULL);
}

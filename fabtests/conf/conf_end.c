/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that close with operations pending, and what their peers see of it. The peer is not
 * driven meanwhile: nothing that it could do helps.
 */
#include "conf/conf.h"

#include <stdlib.h>

static const struct conf_options sourced = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

enum {
	COUNT = 40,
	LONG_BYTES = 700000
};

struct ops {
	struct fi_context2 contexts[4 * COUNT];
	uint8_t *out;
	char in[COUNT];
};

static void connect_both(struct conf_pair *pair)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 contexts[2];
	char in;

	CONF_RETRY(pair, fi_trecv(pair->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	CONF_RETRY(pair, fi_tsend(pair->a.ep, "c", 1, NULL, pair->to_b, 1, &contexts[1]));
	conf_wait(pair, pair->b.rxcq, &entry, NULL);
	conf_wait(pair, pair->a.txcq, &entry, NULL);
}

/* Of a send: a provider may have no room for it, least of all before there is a connection. */
static bool taken(ssize_t rc)
{
	assert_true(rc == 0 || rc == -FI_EAGAIN);
	return rc == 0;
}

/*
 * Receives that nobody answers, short sends, long ones, and some that nothing is heard of. Returns
 * whether all were taken.
 */
static bool begin(struct conf_node *node, fi_addr_t peer, struct ops *ops)
{
	bool all = true;

	ops->out = calloc(1, LONG_BYTES);
	for (int i = 0; i < COUNT; i++) {
		conf_ok(fi_trecv(node->ep, &ops->in[i], 1, NULL, i % 2 ? peer : FI_ADDR_UNSPEC, 100,
				 0, &ops->contexts[i]));
		all &= taken(fi_tsend(node->ep, ops->out, 100, NULL, peer, 200,
				      &ops->contexts[COUNT + i]));
		all &= taken(fi_tsend(node->ep, ops->out, LONG_BYTES, NULL, peer, 300,
				      &ops->contexts[2 * COUNT + i]));
		all &= taken(fi_inject(node->ep, ops->out, 64, peer));
	}
	return all;
}

/* Nothing completes twice, and nothing that was not begun. */
static void no_end_is_told_twice(struct conf_node *node, struct ops *ops)
{
	int ends[4 * COUNT] = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc;

	while ((rc = fi_cq_read(node->txcq, &entry, 1)) != -FI_EAGAIN) {
		void *context = entry.op_context;
		ptrdiff_t i;

		if (rc == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(node->txcq, &error, 0), 1);
			context = error.op_context;
		} else {
			assert_int_equal(rc, 1);
		}
		i = (struct fi_context2 *)context - ops->contexts;
		assert_in_range(i, 0, 4 * COUNT - 1);
		assert_int_equal(ends[i]++, 0);
	}
	free(ops->out);
}

static void a_close_drops_what_is_pending(void **state)
{
	struct conf_pair pair;
	struct ops ops;

	(void)state;
	conf_pair_open(&pair, &sourced);
	connect_both(&pair);
	begin(&pair.a, pair.to_b, &ops);
	conf_ok(fi_close(&pair.a.ep->fid));
	no_end_is_told_twice(&pair.a, &ops);
	conf_ok(fi_close(&pair.b.ep->fid));
	conf_pair_close_rest(&pair);
}

/* Before there is a connection. */
static void a_close_gives_up_connecting(void **state)
{
	struct conf_pair pair;
	struct ops ops;

	(void)state;
	conf_pair_open(&pair, &sourced);
	begin(&pair.a, pair.to_b, &ops);
	conf_ok(fi_close(&pair.a.ep->fid));
	no_end_is_told_twice(&pair.a, &ops);
	conf_ok(fi_close(&pair.b.ep->fid));
	conf_pair_close_rest(&pair);
}

/* Every operation that needed the peer ends exactly once; others can be cancelled. */
static void the_peers_operations_end(void **state)
{
	struct conf_pair pair;
	struct ops ops;
	int ends[4 * COUNT] = { 0 }, left = 2 * COUNT + COUNT / 2;
	uint64_t deadline = conf_deadline();

	(void)state;
	conf_pair_open(&pair, &sourced);
	connect_both(&pair);
	assert_true(begin(&pair.b, pair.to_a, &ops));
	conf_ok(fi_close(&pair.a.ep->fid));
	while (left > 0) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry error = { 0 };
		ssize_t rc = fi_cq_read(pair.b.txcq, &entry, 1);
		void *context = entry.op_context;
		ptrdiff_t i;

		conf_not_late(deadline);
		if (rc == -FI_EAGAIN)
			continue;
		if (rc == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(pair.b.txcq, &error, 0), 1);
			assert_true(error.err == FI_ESHUTDOWN || error.err == FI_ECONNRESET);
			context = error.op_context;
		}
		if (rc == -FI_EAVAIL && !context)
			continue; /* an injected message was lost: no context, but no silence either
				   */
		i = (struct fi_context2 *)context - ops.contexts;
		assert_in_range(i, 0, 3 * COUNT - 1);
		assert_int_equal(ends[i]++, 0);
		/* of the receives only those that named the peer, of the long sends none went well
		 */
		assert_true(i >= COUNT || i % 2);
		assert_true(rc == -FI_EAVAIL || (i >= COUNT && i < 2 * COUNT));
		left--;
	}
	for (int i = 0; i < COUNT; i += 2) {
		struct fi_cq_err_entry error;

		conf_ok(fi_cancel(&pair.b.ep->fid, &ops.contexts[i]));
		conf_wait_error(&pair, pair.b.rxcq, &error);
		assert_ptr_equal(error.op_context, &ops.contexts[i]);
		assert_int_equal(error.err, FI_ECANCELED);
		assert_int_equal(fi_cancel(&pair.b.ep->fid, &ops.contexts[i]), -FI_ENOENT);
	}
	free(ops.out);
	conf_ok(fi_close(&pair.b.ep->fid));
	conf_pair_close_rest(&pair);
}

/* Queues and vectors outlive their endpoints and not the other way round. */
static void what_is_in_use_cannot_be_closed(void **state)
{
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &sourced);
	assert_int_equal(fi_close(&pair.a.txcq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&pair.a.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&pair.a.domain->fid), -FI_EBUSY);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_close_drops_what_is_pending),
		cmocka_unit_test(a_close_gives_up_connecting),
		cmocka_unit_test(the_peers_operations_end),
		cmocka_unit_test(what_is_in_use_cannot_be_closed),
	};

	conf_provider();
	setenv("FI_RVCM_LINGER", "300", 0); /* ms: nobody answers here */
	return conf_run_tests("end", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the simulator's device does when it is unkind, one thing at a time; and what it watches
 * then. */
#include "unit/unit.h"

#include <string.h>

#include "sim/pair.h"

#define ALWAYS 1000000u

/* Events of side 1's listener, and of side 0's QP in their order. */
struct seen {
	uint32_t requests;
	uint8_t data[64];
	size_t bytes;
	uint32_t n;
	enum rvcm_dev_event_type order[8];
};

static void look(struct pair *pair, struct seen *seen)
{
	struct rvcm_dev_event ev;

	while (pair->dev[0]->ops->cm_poll(pair->dev[0], &ev) == 1 && seen->n < 8)
		seen->order[seen->n++] = ev.type;
	while (pair->dev[1]->ops->cm_poll(pair->dev[1], &ev) == 1) {
		if (ev.type != RVCM_DEV_EVENT_CONNECT_REQUEST)
			continue;
		seen->bytes = ev.private_bytes;
		memcpy(seen->data, ev.private_data, ev.private_bytes);
		if (seen->requests++ == 0)
			pair->dev[1]->ops->accept(ev.req, pair->qp[1], "fine", 4);
		else
			pair->dev[1]->ops->reject(ev.req, NULL, 0);
	}
}

static void call(struct pair *pair, struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	assert_int_equal(pair->dev[0]->ops->connect(pair->qp[0], &pair->addr, "hello", 5), 0);
	for (int i = 0; i < 3000; i++) {
		look(pair, seen);
		sim_run(pair->net, 10 * SIM_US);
	}
}

static void a_request_may_be_seen_again(void **state)
{
	const struct pair_conf conf = {
		.sim = { .seed = 1, .replay_ppm = ALWAYS, .replay_ns_max = SIM_MS }
	};
	struct pair *pair = pair_open(&conf);
	struct seen seen;

	(void)state;
	call(pair, &seen);
	assert_int_equal(seen.requests, 2);
	assert_int_equal(seen.bytes, 5);
	assert_memory_equal(seen.data, "hello", 5);
	assert_int_equal(sim_net_stats(pair->net)->replays, 1);
	pair_close(pair);
}

static void private_data_may_be_garbled(void **state)
{
	uint32_t whole = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		const struct pair_conf conf = { .sim = { .seed = seed, .garble_ppm = ALWAYS } };
		struct pair *pair = pair_open(&conf);
		struct seen seen;

		call(pair, &seen);
		assert_int_equal(seen.requests, 1);
		assert_true(seen.bytes <= pair->dev[0]->attr.private_data_bytes);
		whole += seen.bytes == 5 && memcmp(seen.data, "hello", 5) == 0;
		assert_true(sim_net_stats(pair->net)->garbled >= 1);
		pair_close(pair);
	}
	assert_int_equal(whole, 0);
}

static void private_data_may_be_padded(void **state)
{
	static const uint8_t zero[64];
	const struct pair_conf conf = { .sim = { .seed = 1, .pad_private = true } };
	struct pair *pair = pair_open(&conf);
	struct seen seen;

	(void)state;
	call(pair, &seen);
	assert_int_equal(seen.bytes, pair->dev[0]->attr.private_data_bytes);
	assert_memory_equal(seen.data, "hello", 5);
	assert_memory_equal(seen.data + 5, zero, seen.bytes - 5);
	pair_close(pair);
}

/* However late they come. */
static void events_of_one_qp_keep_their_order(void **state)
{
	static const enum rvcm_dev_event_type order[] = {
		RVCM_DEV_EVENT_ADDR_RESOLVED,
		RVCM_DEV_EVENT_ROUTE_RESOLVED,
		RVCM_DEV_EVENT_ESTABLISHED,
		RVCM_DEV_EVENT_DISCONNECTED,
	};

	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		const struct pair_conf conf = {
			.sim = { .seed = seed, .cm_late_ns_max = 5 * SIM_MS, .replay_ppm = 0 }
		};
		struct pair *pair = pair_open(&conf);
		struct seen seen;

		call(pair, &seen);
		sim_links_break(pair->net, NULL, NULL);
		for (int i = 0; i < 100; i++) {
			look(pair, &seen);
			sim_run(pair->net, 100 * SIM_US);
		}
		assert_int_equal(seen.n, 4);
		assert_memory_equal(seen.order, order, sizeof(order));
		pair_close(pair);
	}
}

static void completions_come_in_batches(void **state)
{
	const struct pair_conf conf = { .sim = { .seed = 1, .batch_max = 2, .eager_polls = true } };
	struct pair *pair = pair_open(&conf);
	struct rvcm_dev_wc wc[8];

	(void)state;
	pair_connect(pair, true);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_SEND, 8, i, RVCM_DEV_WR_SIGNALED),
				 0);
	sim_run(pair->net, SIM_MS);
	assert_int_equal(pair->dev[0]->ops->cq_poll(pair->cq[0], wc, 8), 2);
	assert_int_equal(pair->dev[0]->ops->cq_poll(pair->cq[0], wc, 8), 2);
	assert_int_equal(pair->dev[0]->ops->cq_poll(pair->cq[0], wc, 8), 1);
	assert_int_equal(pair->dev[0]->ops->cq_poll(pair->cq[0], wc, 8), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(pair->dev[1]->ops->cq_poll(pair->cq[1], wc, 1), 1);
		pair->dev[1]->ops->rx_release(pair->pool[1], wc[0].rx);
	}
	pair_close(pair);
}

/* -- what is watched ------------------------------------------------------------------------- */

static void read_remotely(struct pair *pair, uint32_t rkey)
{
	const struct rvcm_dev_sge sge = { pair->data[0], 8, pair->mr[0] };
	const struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_READ,
		.flags = RVCM_DEV_WR_SIGNALED,
		.n_sge = 1,
		.sge = &sge,
		.raddr = (uintptr_t)pair->data[1],
		.rkey = rkey,
	};

	assert_int_equal(pair->dev[0]->ops->post(pair->qp[0], &wr), 0);
	assert_int_equal(pair_wc(pair, 0).status, RVCM_STATUS_REMOTE_ACCESS);
}

static void a_dropped_key_is_a_misuse(void **state)
{
	const struct pair_conf conf = { .watch = true, .sim.live_keys = true };
	struct pair *pair = pair_open(&conf);
	uint32_t rkey = pair->mr[1]->rkey;

	(void)state;
	pair_connect(pair, true);
	pair->dev[1]->ops->mr_dereg(pair->mr[1]);
	pair->mr[1] = NULL;
	read_remotely(pair, rkey);
	assert_int_equal(pair->seen[SIM_MISUSE_KEY], 1);
	pair_close(pair);
}

/* That is the application's doing, and no fault of whoever uses the key. */
static void an_invalidated_key_is_an_error(void **state)
{
	const struct pair_conf conf = { .watch = true, .sim.live_keys = true };
	struct pair *pair = pair_open(&conf);

	(void)state;
	pair_connect(pair, true);
	sim_dev_invalidate(pair->dev[1]);
	read_remotely(pair, pair->mr[1]->rkey);
	assert_int_equal(pair->seen[SIM_MISUSE_KEY], 0);
	pair_close(pair);
}

/* Each QP has its share of the pool: 16 here. */
static void more_messages_than_receives_is_a_misuse(void **state)
{
	const struct pair_conf conf = {
		.watch = true, .sim.no_rnr = true, .count = 64, .sq_depth = 64
	};
	struct pair *pair = pair_open(&conf);

	(void)state;
	pair_connect(pair, true);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_SEND, 8, i, 0), 0);
	sim_run(pair->net, SIM_MS);
	assert_int_equal(pair->seen[SIM_MISUSE_CREDIT], 0);
	assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_SEND, 8, 16, 0), 0);
	sim_run(pair->net, SIM_MS);
	assert_int_equal(pair->seen[SIM_MISUSE_CREDIT], 1);
	pair_close(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_may_be_seen_again),
		cmocka_unit_test(private_data_may_be_garbled),
		cmocka_unit_test(private_data_may_be_padded),
		cmocka_unit_test(events_of_one_qp_keep_their_order),
		cmocka_unit_test(completions_come_in_batches),
		cmocka_unit_test(a_dropped_key_is_a_misuse),
		cmocka_unit_test(an_invalidated_key_is_an_error),
		cmocka_unit_test(more_messages_than_receives_is_a_misuse),
	};

	return cmocka_run_group_tests_name("sim_unkind", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator's schedules and faults do what sim.h says. */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "sim/pair.h"

#define SIGNALED RVCM_DEV_WR_SIGNALED
#define SEND     RVCM_DEV_OP_SEND

static struct pair *up(const struct pair_conf *conf)
{
	struct pair *pair = pair_open(conf);

	pair_connect(pair, true);
	return pair;
}

static void detach(struct pair *pair, int side)
{
	pair->dev[side]->ops->detach(pair->qp[side]);
}

static void release(struct pair *pair, int side, struct rvcm_dev_wc wc)
{
	pair->dev[side]->ops->rx_release(pair->pool[side], wc.rx);
}

/* -- time ------------------------------------------------------------------------------------- */

static uint64_t trace(uint64_t seed)
{
	const struct pair_conf conf = { .sim.seed = seed, .sim.break_ppm = 2000, .watch = true };
	struct pair *pair = up(&conf);
	struct rvcm_dev_wc wc;
	uint64_t hash = 0;

	for (uint32_t i = 0; i < 300; i++) {
		pair_post(pair, i % 2, SEND, i, i, SIGNALED);
		sim_run(pair->net, 10 * SIM_US);
		for (int side = 0; side < 2; side++)
			while (pair->dev[side]->ops->cq_poll(pair->cq[side], &wc, 1) == 1) {
				hash = (hash ^ sim_now(pair->net) ^ wc.wr_id ^ wc.status) *
				       0x100000001b3u;
				if (wc.rx)
					release(pair, side, wc);
			}
	}
	hash ^= sim_net_stats(pair->net)->events;
	pair_close(pair);
	return hash;
}

static void a_seed_is_a_schedule(void **state)
{
	uint64_t first = trace(1);

	(void)state;
	for (uint64_t seed = 2; seed < 10; seed++) {
		assert_int_equal(trace(seed), trace(seed));
		assert_int_not_equal(trace(seed), first);
	}
}

static void note_call(void *arg)
{
	++*(uint32_t *)arg;
}

static bool called(void *arg)
{
	return *(uint32_t *)arg > 0;
}

static void time_moves_by_steps_only(void **state)
{
	struct sim_net *net = sim_net_open(NULL);
	uint32_t calls = 0;

	(void)state;
	assert_int_equal(sim_now(net), 0);
	assert_int_equal(sim_next(net), UINT64_MAX);
	assert_false(sim_step(net));
	sim_after(net, 500, note_call, &calls);
	sim_after(net, 300, note_call, &calls);
	sim_after(net, 900, note_call, &calls);
	assert_int_equal(sim_next(net), 300);
	assert_false(sim_step_by(net, 299));
	assert_int_equal(sim_now(net), 299);
	assert_int_equal(calls, 0);
	assert_true(sim_step_by(net, 1000));
	assert_int_equal(sim_now(net), 300);
	calls = 0;
	assert_true(sim_run_until(net, called, &calls, 1000));
	assert_int_equal(sim_now(net), 500);
	calls = 0;
	assert_false(sim_run_until(net, called, &calls, 100));
	assert_int_equal(sim_now(net), 600);
	sim_run(net, 1000);
	assert_int_equal(calls, 1);
	assert_int_equal(sim_now(net), 1600);
	/* What is left is dropped with the net. */
	sim_after(net, 1, note_call, &calls);
	sim_net_close(net);
}

/* -- completions ------------------------------------------------------------------------------ */

static void completions_come_early_or_late(void **state)
{
	struct pair_conf conf = { .early = SIM_EARLY_ALWAYS, .drop_caps = RVCM_DEV_CAP_PLACED };
	uint32_t early = 0;

	(void)state;
	for (int shape = 0; shape < 3; shape++) {
		struct pair *pair;

		conf.early = shape == 0   ? SIM_EARLY_ALWAYS
			     : shape == 1 ? SIM_EARLY_NEVER
					  : SIM_EARLY_RANDOM;
		pair = up(&conf);
		for (uint32_t i = 0; i < 50; i++) {
			struct rvcm_dev_wc wc;
			bool arrived;

			assert_int_equal(pair_post(pair, 0, SEND, 8, i, SIGNALED), 0);
			assert_int_equal(pair_wc(pair, 0).wr_id, i);
			arrived = pair->dev[1]->ops->cq_poll(pair->cq[1], &wc, 1) == 1;
			if (shape == 0)
				assert_false(arrived);
			if (shape == 1)
				assert_true(arrived);
			early += shape == 2 && !arrived;
			release(pair, 1, arrived ? wc : pair_wc(pair, 1));
		}
		pair_close(pair);
	}
	assert_in_range(early, 5, 45);
}

/* -- broken and silent links ------------------------------------------------------------------ */

static void both_sides_notice_a_break_on_their_own(void **state)
{
	uint32_t together = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		const struct pair_conf conf = { .sim.seed = seed };
		struct pair *pair = up(&conf);
		uint64_t at[2] = { 0, 0 };

		sim_qp_break(pair->qp[seed % 2]);
		assert_int_equal(sim_links_count(pair->net, NULL, NULL), 0);
		for (int side = 0; side < 2; side++)
			pair->events[side] = 0;
		while (!pair->events[0] || !pair->events[1]) {
			assert_true(sim_step(pair->net));
			pair_poll_cm(pair);
			for (int side = 0; side < 2; side++)
				if (!pair->events[side])
					at[side] = sim_now(pair->net);
		}
		together += at[0] == at[1];
		for (int side = 0; side < 2; side++) {
			assert_int_equal(pair->last[side].type, RVCM_DEV_EVENT_DISCONNECTED);
			assert_int_equal(pair->last[side].status, RVCM_STATUS_CONNECTION_LOST);
		}
		pair_quiet(pair);
		pair_poll_cm(pair);
		assert_int_equal(pair->events[0] + pair->events[1], 2);
		assert_int_equal(sim_net_stats(pair->net)->breaks, 1);
		pair_close(pair);
	}
	assert_true(together < 10);
}

/* Of ten messages under way when the link breaks: some, in order, may still arrive. */
static void a_broken_link_may_deliver_late(void **state)
{
	uint32_t after = 0, lost = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const struct pair_conf conf = { .sim.seed = seed, .sim.late_ns_max = 30 * SIM_US };
		struct pair *pair = up(&conf);
		struct rvcm_dev_wc wc;
		uint32_t n = 0;

		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(pair_post(pair, 0, SEND, 8 + i, i, SIGNALED), 0);
		sim_qp_break(pair->qp[0]);
		sim_run(pair->net, SIM_S);
		while (pair->dev[1]->ops->cq_poll(pair->cq[1], &wc, 1) == 1) {
			assert_int_equal(wc.length, 8 + n++);
			release(pair, 1, wc);
		}
		after += n;
		lost += 10 - n;
		/* The sender learns of each, whatever became of it. */
		detach(pair, 0);
		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(pair_wc(pair, 0).wr_id, i);
		pair_close(pair);
	}
	assert_true(after > 20);
	assert_true(lost > 20);
}

static void nothing_is_placed_after_detach(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const struct pair_conf conf = { .sim.seed = seed };
		struct pair *pair = up(&conf);

		memset(pair->data[0], 0xaa, PAIR_BYTES);
		memset(pair->data[1], 0xbb, PAIR_BYTES);
		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_WRITE, PAIR_BYTES, i, 0),
					 0);
		detach(pair, 1);
		for (uint32_t i = 0; i < PAIR_BYTES; i++)
			assert_int_equal(pair->data[1][i], 0xbb);
		sim_run(pair->net, SIM_S);
		for (uint32_t i = 0; i < PAIR_BYTES; i++)
			assert_int_equal(pair->data[1][i], 0xbb);
		pair_close(pair);
	}
}

static void silence_that_ends_in_time_only_delays(void **state)
{
	struct pair *pair = up(NULL);
	struct rvcm_dev_wc wc;

	(void)state;
	sim_qp_silence(pair->qp[0]);
	assert_int_equal(pair_post(pair, 0, SEND, 8, 1, SIGNALED), 0);
	sim_run(pair->net, 400 * SIM_MS);
	assert_int_equal(pair->dev[1]->ops->cq_poll(pair->cq[1], &wc, 1), 0);
	sim_qp_heal(pair->qp[0]);
	assert_int_equal(pair_wc(pair, 0).status, RVCM_STATUS_OK);
	release(pair, 1, pair_wc(pair, 1));
	pair_quiet(pair);
	pair_poll_cm(pair);
	assert_int_equal(pair->last[0].type, RVCM_DEV_EVENT_ESTABLISHED);
	pair_close(pair);
}

static void silence_is_noticed_by_who_waits_for_an_answer(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 8, 1, SIGNALED), 0);
	sim_links_silence(pair->net, pair->dev[0], pair->dev[1]);
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair->last[0].status, RVCM_STATUS_RETRY_EXCEEDED);
	assert_in_range(sim_now(pair->net), 500 * SIM_MS, 600 * SIM_MS);
	pair_close(pair);
}

static void silence_is_not_noticed_by_who_waits_for_nothing(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	sim_links_silence(pair->net, NULL, pair->dev[1]);
	sim_run(pair->net, 100 * SIM_S);
	pair_poll_cm(pair);
	assert_int_equal(pair->last[0].type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(pair->last[1].type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(sim_links_count(pair->net, pair->dev[0], pair->dev[1]), 1);
	pair_close(pair);
}

/* -- nodes ------------------------------------------------------------------------------------ */

static void try_connect(struct pair *pair, enum rvcm_dev_event_type want)
{
	struct rvcm_dev_qp_attr attr = {
		.cq = pair->cq[0], .pool = pair->pool[0], .sq_depth = 1, .ctx = pair
	};
	struct rvcm_dev_qp *qp;

	assert_int_equal(pair->dev[0]->ops->qp_open(pair->dev[0], &attr, &qp), 0);
	assert_int_equal(pair->dev[0]->ops->connect(qp, &pair->addr, NULL, 0), 0);
	pair->events[0] = 0;
	pair_until(pair, 0, want);
	pair->dev[0]->ops->qp_close(qp);
}

static void a_killed_process_resets_its_links(void **state)
{
	struct sim_dev_conf conf;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	struct rvcm_dev *again;
	struct pair *pair = up(NULL);

	(void)state;
	sim_dev_kill(pair->dev[1], SIM_KILL_PROCESS);
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair->last[0].status, RVCM_STATUS_CONNECTION_LOST);
	try_connect(pair, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(pair->last[0].reject, RVCM_DEV_REJECT_NOT_LISTENING);
	/* It is started again at its old address, before the remains are cleared. */
	sim_dev_conf_init(pair->net, &conf, false);
	conf.attr.addr = pair->dev[1]->attr.addr;
	again = sim_dev_open(pair->net, &conf);
	addr = pair->addr;
	assert_int_equal(again->ops->listen(again, &addr, 1, NULL, &listener), 0);
	assert_int_equal(pair->dev[0]->ops->disconnect(pair->qp[0]), 0);
	pair->dev[0]->ops->qp_close(pair->qp[0]);
	pair->qp[0] = NULL;
	pair->events[0] = 0;
	again->ops->listener_close(listener);
	again->ops->close(again);
	pair_close(pair);
}

static void a_killed_host_is_silent(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	sim_dev_kill(pair->dev[1], SIM_KILL_HOST);
	sim_run(pair->net, 10 * SIM_S);
	pair_poll_cm(pair);
	assert_int_equal(pair->last[0].type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(pair_post(pair, 0, SEND, 8, 1, SIGNALED), 0);
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair->last[0].status, RVCM_STATUS_RETRY_EXCEEDED);
	try_connect(pair, RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(pair->last[0].status, RVCM_STATUS_CONNECT_TIMEOUT);
	pair_close(pair);
}

/* Whoever is killed may leave everything open. */
static void what_the_dead_leave_is_no_leak(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	assert_int_equal(pair_post(pair, 1, SEND, 8, 1, SIGNALED), 0);
	sim_dev_kill(pair->dev[1], SIM_KILL_PROCESS);
	pair->dev[1]->ops->close(pair->dev[1]);
	pair->dev[1] = sim_dev_open(pair->net, NULL);
	pair->qp[1] = NULL;
	pair->cq[1] = NULL;
	pair->pool[1] = NULL;
	pair->mr[1] = NULL;
	pair->listener = NULL;
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	pair_close(pair);
}

static void a_paused_node_keeps_what_arrives(void **state)
{
	struct pair *pair = up(NULL);
	struct rvcm_dev_wc wc;

	(void)state;
	sim_dev_pause(pair->dev[1]);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(pair_post(pair, 0, SEND, i, i, SIGNALED), 0);
	sim_run(pair->net, 300 * SIM_MS);
	assert_int_equal(pair->dev[1]->ops->cq_poll(pair->cq[1], &wc, 1), 0);
	sim_dev_resume(pair->dev[1]);
	for (uint32_t i = 0; i < 5; i++) {
		wc = pair_wc(pair, 1);
		assert_int_equal(wc.length, i);
		release(pair, 1, wc);
		assert_int_equal(pair_wc(pair, 0).status, RVCM_STATUS_OK);
	}
	pair_quiet(pair);
	pair_close(pair);
}

static void a_paused_node_learns_of_a_break_when_resumed(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	sim_dev_pause(pair->dev[1]);
	sim_qp_break(pair->qp[0]);
	sim_run(pair->net, SIM_S);
	pair_poll_cm(pair);
	assert_int_equal(pair->last[0].type, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair->last[1].type, RVCM_DEV_EVENT_ESTABLISHED);
	sim_dev_resume(pair->dev[1]);
	pair_until(pair, 1, RVCM_DEV_EVENT_DISCONNECTED);
	pair_close(pair);
}

/* -- single operations ------------------------------------------------------------------------ */

static void the_nth_operation_fails(void **state)
{
	struct pair *pair = up(NULL);

	(void)state;
	sim_dev_fail_op(pair->dev[0], 3, RVCM_STATUS_REMOTE_OP);
	for (uint32_t i = 0; i < 5; i++)
		pair_post(pair, 0, SEND, 8, i, SIGNALED | (i < 4 ? RVCM_DEV_WR_MORE : 0));
	for (uint32_t i = 0; i < 5; i++) {
		struct rvcm_dev_wc wc = pair_wc(pair, 0);

		assert_int_equal(wc.wr_id, i);
		if (i >= 2)
			assert_int_equal(wc.status,
					 i == 2 ? RVCM_STATUS_REMOTE_OP : RVCM_STATUS_FLUSHED);
		assert_int_equal(wc.vendor_err, i == 2 ? sim_vendor(RVCM_STATUS_REMOTE_OP) : 0);
	}
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair->last[0].status, RVCM_STATUS_REMOTE_OP);
	pair_until(pair, 1, RVCM_DEV_EVENT_DISCONNECTED);
	pair_close(pair);
}

static void the_nth_call_fails(void **state)
{
	struct pair *pair = pair_open(NULL);
	struct rvcm_dev_mr_attr attr = { .addr = pair->data[0], .length = 8 };
	struct rvcm_dev_mr *mr;
	uint32_t calls = sim_dev_calls(pair->dev[0]);

	(void)state;
	sim_dev_fail_call(pair->dev[0], 2, -ENOMEM);
	assert_int_equal(pair->dev[0]->ops->mr_reg(pair->dev[0], &attr, &mr), 0);
	pair->dev[0]->ops->mr_dereg(mr);
	assert_int_equal(pair->dev[0]->ops->mr_reg(pair->dev[0], &attr, &mr), -ENOMEM);
	assert_int_equal(pair->dev[0]->ops->mr_reg(pair->dev[0], &attr, &mr), 0);
	pair->dev[0]->ops->mr_dereg(mr);
	assert_int_equal(sim_dev_calls(pair->dev[0]), calls + 3);
	pair_close(pair);
}

static void a_full_device_registers_nothing_of_that_kind(void **state)
{
	struct pair *pair = pair_open(NULL);
	struct rvcm_dev *dev = pair->dev[0];
	struct rvcm_dev_mr_attr attr = { .addr = pair->data[0], .length = 8 };
	struct rvcm_dev_mr *mr;

	(void)state;
	sim_dev_full(dev, RVCM_DEV_ACCESS_REMOTE_READ, 1000000);
	assert_int_equal(dev->ops->mr_reg(dev, &attr, &mr), 0);
	dev->ops->mr_dereg(mr);
	attr.access = RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_LOCAL_WRITE;
	assert_int_equal(dev->ops->mr_reg(dev, &attr, &mr), -ENOMEM);
	sim_dev_full(dev, 0, 0);
	assert_int_equal(dev->ops->mr_reg(dev, &attr, &mr), 0);
	dev->ops->mr_dereg(mr);
	pair_close(pair);
}

static void connects_fail_in_every_way(void **state)
{
	static const struct {
		enum sim_refuse how;
		enum rvcm_dev_event_type event;
		enum rvcm_dev_reject reject;
	} ways[] = {
		{ SIM_REFUSE_NOT_LISTENING, RVCM_DEV_EVENT_REJECTED,
		  RVCM_DEV_REJECT_NOT_LISTENING },
		{ SIM_REFUSE_STALE, RVCM_DEV_EVENT_REJECTED, RVCM_DEV_REJECT_STALE },
		{ SIM_REFUSE_PROTOCOL, RVCM_DEV_EVENT_REJECTED, RVCM_DEV_REJECT_PROTOCOL },
		{ SIM_REFUSE_LOST, RVCM_DEV_EVENT_UNREACHABLE, 0 },
		{ SIM_REFUSE_ERROR, RVCM_DEV_EVENT_CONNECT_ERROR, 0 },
		{ SIM_REFUSE_ADDR, RVCM_DEV_EVENT_ADDR_ERROR, 0 },
		{ SIM_REFUSE_ROUTE, RVCM_DEV_EVENT_ROUTE_ERROR, 0 },
	};
	struct pair *pair = pair_open(NULL);

	(void)state;
	assert_int_equal(sizeof(ways) / sizeof(ways[0]), SIM_REFUSE_COUNT);
	for (size_t i = 0; i < SIM_REFUSE_COUNT; i++) {
		sim_dev_refuse(pair->dev[1], ways[i].how, 1);
		try_connect(pair, ways[i].event);
		assert_int_equal(pair->last[0].reject, ways[i].reject);
		assert_int_not_equal(pair->last[0].status, RVCM_STATUS_OK);
	}
	pair_connect(pair, true);
	pair_close(pair);
}

static void a_read_that_is_cut_off_fails(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		const struct pair_conf conf = { .sim.seed = seed, .sim.late_ns_max = SIM_US };
		struct pair *pair = up(&conf);

		assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_READ, 64, 9, SIGNALED), 0);
		sim_qp_break(pair->qp[0]);
		sim_run(pair->net, SIM_S);
		detach(pair, 0);
		assert_int_not_equal(pair_wc(pair, 0).status, RVCM_STATUS_OK);
		pair_quiet(pair);
		pair_close(pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_is_a_schedule),
		cmocka_unit_test(time_moves_by_steps_only),
		cmocka_unit_test(completions_come_early_or_late),
		cmocka_unit_test(both_sides_notice_a_break_on_their_own),
		cmocka_unit_test(a_broken_link_may_deliver_late),
		cmocka_unit_test(nothing_is_placed_after_detach),
		cmocka_unit_test(silence_that_ends_in_time_only_delays),
		cmocka_unit_test(silence_is_noticed_by_who_waits_for_an_answer),
		cmocka_unit_test(silence_is_not_noticed_by_who_waits_for_nothing),
		cmocka_unit_test(a_killed_process_resets_its_links),
		cmocka_unit_test(a_killed_host_is_silent),
		cmocka_unit_test(what_the_dead_leave_is_no_leak),
		cmocka_unit_test(a_paused_node_keeps_what_arrives),
		cmocka_unit_test(a_paused_node_learns_of_a_break_when_resumed),
		cmocka_unit_test(the_nth_operation_fails),
		cmocka_unit_test(the_nth_call_fails),
		cmocka_unit_test(a_full_device_registers_nothing_of_that_kind),
		cmocka_unit_test(connects_fail_in_every_way),
		cmocka_unit_test(a_read_that_is_cut_off_fails),
	};

	return cmocka_run_group_tests_name("sim_fault", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages wait for company, as the device sees it: what was posted with MORE and not flushed
 * since. One carrier sends, another receives; the sender's device is behind a table that counts.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/le.h"
#include "base/rng.h"
#include "sim/talk.h"

#define FREE  4  /* hold.c: that leave at once, in a burst */
#define COUNT 16 /* that are held at most, and sent with the last */
#define BYTES 16384
#define LONG  10000u

static struct world {
	struct talk talk;
	uint32_t posts;
	uint32_t refuse;  /* so many posts more, for want of room */
	uint32_t waiting; /* posted with MORE, and nothing without it or a flush since */
	uint32_t sent;
} w;

static int counting_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr)
{
	if (w.refuse) {
		w.refuse--;
		return -EAGAIN;
	}
	w.posts++;
	w.waiting = wr->flags & RVCM_DEV_WR_MORE ? w.waiting + 1 : 0;
	return w.talk.below->post(qp, wr);
}

static int counting_flush(struct rvcm_dev_qp *qp)
{
	w.waiting = 0;
	return w.talk.below->flush(qp);
}

/* -- the world ---------------------------------------------------------------------------- */

static void got(struct talk_node *node, const uint8_t *data, size_t bytes)
{
	(void)bytes;
	assert_int_equal(rvcm_le32_get(data), node->received);
}

static void commit(size_t bytes, enum rvcm_path_when when)
{
	uint8_t *buf = rvcm_path_reserve(w.talk.nodes[0].path, bytes);

	assert_non_null(buf);
	rvcm_le32_put(buf, w.sent++);
	rvcm_path_commit(w.talk.nodes[0].path, bytes, when);
}

/* Until the receiver has all, and its acknowledgements have arrived. */
static void settle(void)
{
	uint64_t until = sim_now(w.talk.net) + SIM_S;

	while (sim_now(w.talk.net) < until)
		talk_turn(&w.talk);
	assert_int_equal(w.talk.nodes[1].received, w.sent);
}

/* Connected, the window grown to what these tests send at a time, and the sender's device counted.
 */
static void world_open(bool hold)
{
	memset(&w, 0, sizeof(w));
	w.talk.message_bytes_max = LONG;
	w.talk.window_max = 128;
	w.talk.hold = hold;
	w.talk.recv = got;
	talk_open(&w.talk);
	for (int i = 0; i < 2; i++)
		talk_node_open(&w.talk, i, NULL);
	talk_connect(&w.talk);
	while (w.sent < 400) {
		if (rvcm_path_reserve(w.talk.nodes[0].path, 4)) {
			rvcm_path_cancel(w.talk.nodes[0].path);
			commit(4, RVCM_PATH_NOW);
		} else {
			talk_turn(&w.talk);
		}
	}
	settle();
	talk_count(&w.talk, counting_post, counting_flush);
}

/* The sender first; what it held has arrived by then. */
static void world_close(void)
{
	talk_node_end(&w.talk.nodes[0]);
	assert_int_equal(w.talk.nodes[1].received, w.sent);
	talk_node_end(&w.talk.nodes[1]);
	talk_close(&w.talk);
}

/* -- tests -------------------------------------------------------------------------------- */

static void the_first_of_a_burst_leave_at_once(void **state)
{
	(void)state;
	world_open(true);
	for (uint32_t i = 1; i <= FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.posts, i);
		assert_int_equal(w.waiting, 0);
	}
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void progress_begins_a_new_burst(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < 3 * FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
		rvcm_carrier_progress(w.talk.nodes[0].carrier);
	}
	world_close();
}

static void a_flush_begins_a_new_burst(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < 3 * FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
		rvcm_carrier_flush(w.talk.nodes[0].carrier);
	}
	world_close();
}

static void hold_some(void)
{
	for (int i = 0; i < FREE + 3; i++)
		commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 3);
}

static void what_waits_leaves_with_progress(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	rvcm_carrier_progress(w.talk.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_with_a_flush(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	rvcm_carrier_flush(w.talk.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_with_what_may_not(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	commit(8, RVCM_PATH_NOW);
	assert_int_equal(w.waiting, 0);
	/* The burst goes on. */
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void so_many_are_held_and_not_more(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < FREE + COUNT - 1; i++)
		commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, COUNT - 1);
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 0);
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void so_many_bytes_are_held_and_not_more(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < FREE; i++)
		commit(8, RVCM_PATH_SOON);
	commit(LONG, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	assert_true(2 * LONG > BYTES);
	commit(LONG, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void nothing_waits_for_who_may_not_come_back(void **state)
{
	(void)state;
	world_open(false);
	for (int i = 0; i < 2 * COUNT; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
	}
	/* But for who says so himself. */
	commit(8, RVCM_PATH_MORE);
	assert_int_equal(w.waiting, 1);
	rvcm_carrier_flush(w.talk.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_before_the_end(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	world_close();
}

/* The device says that its queue is full, though by our count it is not. */
static void what_is_refused_is_not_overtaken(void **state)
{
	(void)state;
	for (uint32_t behind = 1; behind < 24; behind++) {
		world_open(false);
		for (uint32_t i = 0; i < behind; i++)
			commit(8, RVCM_PATH_NOW);
		w.refuse = 1;
		for (int i = 0; i < 3; i++)
			commit(8, RVCM_PATH_NOW);
		assert_int_equal(w.posts, behind);
		settle();
		world_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_a_burst_leave_at_once),
		cmocka_unit_test(progress_begins_a_new_burst),
		cmocka_unit_test(a_flush_begins_a_new_burst),
		cmocka_unit_test(what_waits_leaves_with_progress),
		cmocka_unit_test(what_waits_leaves_with_a_flush),
		cmocka_unit_test(what_waits_leaves_with_what_may_not),
		cmocka_unit_test(so_many_are_held_and_not_more),
		cmocka_unit_test(so_many_bytes_are_held_and_not_more),
		cmocka_unit_test(nothing_waits_for_who_may_not_come_back),
		cmocka_unit_test(what_is_refused_is_not_overtaken),
		cmocka_unit_test(what_waits_leaves_before_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

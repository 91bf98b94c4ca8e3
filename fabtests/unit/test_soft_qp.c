/* SPDX-License-Identifier: BSD-2-Clause */
/* How a QP's stream ends when its owner ends it, seen byte by byte from the other end. */
#include "unit/unit.h"
#include "unit/soft_world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dev/soft/mpa.h"

#define STREAM_BYTES (8u << 20)

struct end_world {
	struct soft_world w;
	struct rvcm_dev_mr *mr;
	uint8_t payload[60000];
	uint8_t stream[STREAM_BYTES];
};

static int setup(void **state)
{
	struct end_world *e = calloc(1, sizeof(*e));
	struct rvcm_dev_mr_attr attr = { .length = sizeof(e->payload) };

	assert_non_null(e);
	soft_world_open(&e->w, NULL, 1);
	for (size_t i = 0; i < sizeof(e->payload); i++)
		e->payload[i] = (uint8_t)(i * 13);
	attr.addr = e->payload;
	assert_int_equal(e->w.ops->mr_reg(e->w.dev, &attr, &e->mr), 0);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct end_world *e = *state;

	e->w.ops->mr_dereg(e->mr);
	soft_world_close(&e->w);
	free(e);
	return 0;
}

static void post(struct end_world *e, struct rvcm_dev_qp *qp, uint32_t n, size_t bytes)
{
	struct rvcm_dev_sge sge = { .addr = e->payload, .length = bytes, .mr = e->mr };

	for (uint32_t i = 0; i < n; i++) {
		struct rvcm_dev_wr wr = { .wr_id = i,
					  .op = RVCM_DEV_OP_SEND,
					  .flags = RVCM_DEV_WR_SIGNALED,
					  .n_sge = 1,
					  .sge = &sge };

		assert_int_equal(e->w.ops->post(qp, &wr), 0);
	}
}

/* Whole SENDs of that length, in order, at the start of what arrived. */
static uint32_t whole_sends(const struct end_world *e, size_t have, size_t bytes)
{
	size_t fpdu = rvcm_soft_mpa_fpdu_len(18 + bytes);
	uint32_t n = 0;

	for (size_t at = 0; at + fpdu <= have; at += fpdu, n++) {
		struct rvcm_soft_wire_hdr hdr;
		uint16_t term;

		assert_int_equal(rvcm_soft_mpa_header_decode(e->stream + at), 18 + bytes);
		assert_int_equal(rvcm_soft_wire_decode(e->stream + at + 2, 18, &hdr, &term), 18);
		assert_int_equal(hdr.msn, n + 1);
		assert_memory_equal(e->stream + at + 20, e->payload, bytes);
	}
	return n;
}

/* The completions of n SENDs: in order, OK ones first. Returns how many those were. */
static uint32_t ok_sends(const struct end_world *e, uint32_t n)
{
	uint32_t ok = 0;
	uint32_t sends = 0;

	for (uint32_t i = 0; i < e->w.n_wcs; i++) {
		const struct rvcm_dev_wc *wc = &e->w.wcs[i];

		if (wc->op != RVCM_DEV_OP_SEND)
			continue;
		assert_int_equal(wc->wr_id, sends++);
		assert_true(ok == sends - 1 || wc->status != RVCM_STATUS_OK);
		ok += wc->status == RVCM_STATUS_OK;
	}
	assert_int_equal(sends, n);
	return ok;
}

/* Bytes of the peer that nobody will read: two SENDs where one can be held, and much behind. */
static void leave_unread(struct end_world *e, int fd)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND, .last = true };
	uint8_t buf[9000];

	for (uint32_t i = 1; i <= 30; i++) {
		hdr.msn = i;
		soft_raw_send(fd, buf, soft_raw_fpdu(buf, &hdr, e->payload, 8000, false));
	}
}

static void end_after_disconnect(struct end_world *e, uint32_t n, size_t bytes, bool unread)
{
	struct rvcm_dev_qp *qp;
	int fd = soft_raw_up(&e->w, false, &qp);
	uint32_t ok, whole;
	bool reset;
	size_t have;

	if (unread)
		leave_unread(e, fd);
	post(e, qp, n, bytes);
	assert_int_equal(e->w.ops->disconnect(qp), 0);
	e->w.ops->detach(qp);
	soft_world_event(&e->w, RVCM_DEV_EVENT_DISCONNECTED);
	ok = ok_sends(e, n);
	assert_int_equal(e->w.ev.status, ok == n ? RVCM_STATUS_OK : RVCM_STATUS_CLOSED);
	e->w.ops->qp_close(qp);
	have = soft_raw_read_all(&e->w, fd, e->stream, sizeof(e->stream), &reset);
	assert_false(reset);
	whole = whole_sends(e, have, bytes);
	assert_true(whole >= ok);
	if (ok == n)
		assert_int_equal(have, n * rvcm_soft_mpa_fpdu_len(18 + bytes));
	close(fd);
	soft_world_no_event(&e->w);
}

static void detach_after_disconnect_sends_what_was_posted(void **state)
{
	struct end_world *e = *state;

	end_after_disconnect(e, 100, 1000, false);
	assert_int_equal(ok_sends(e, 100), 100);
}

/* More than a socket holds: what was reported as done arrives, and the end is no reset. */
static void detach_after_disconnect_keeps_what_is_done(void **state)
{
	end_after_disconnect(*state, 120, 60000, false);
}

static void closing_with_bytes_unread_loses_nothing(void **state)
{
	struct end_world *e = *state;

	end_after_disconnect(e, 100, 1000, true);
	assert_int_equal(ok_sends(e, 100), 100);
}

/* Without a disconnect, detach breaks the connection off. */
static void detach_of_a_standing_connection_resets_it(void **state)
{
	struct end_world *e = *state;
	struct rvcm_dev_qp *qp;
	int fd = soft_raw_up(&e->w, false, &qp);
	bool reset;

	e->w.ops->detach(qp);
	soft_world_event(&e->w, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(e->w.ev.status, RVCM_STATUS_CLOSED);
	e->w.ops->qp_close(qp);
	assert_int_equal(soft_raw_read_all(&e->w, fd, e->stream, sizeof(e->stream), &reset), 0);
	assert_true(reset);
	close(fd);
}

/* The orderly way: all is sent, and the end comes when the peer has ended too. */
static void disconnect_sends_all_and_waits_for_the_peer(void **state)
{
	struct end_world *e = *state;
	struct rvcm_dev_qp *qp;
	int fd = soft_raw_up(&e->w, false, &qp);
	bool reset;
	size_t have;

	post(e, qp, 120, 60000);
	assert_int_equal(e->w.ops->disconnect(qp), 0);
	have = soft_raw_read_all(&e->w, fd, e->stream, sizeof(e->stream), &reset);
	assert_false(reset);
	assert_int_equal(whole_sends(e, have, 60000), 120);
	assert_int_equal(ok_sends(e, 120), 120);
	close(fd);
	soft_world_event(&e->w, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(e->w.ev.status, RVCM_STATUS_OK);
	e->w.ops->detach(qp);
	e->w.ops->qp_close(qp);
	soft_world_no_event(&e->w);
}

/*
 * The queue begins small and grows while requests wait in it. INLINE ones that wait are the queue's
 * own copies, which move along.
 */
static void what_waits_moves_when_the_queue_grows(void **state)
{
	struct end_world *e = *state;
	size_t fpdu = rvcm_soft_mpa_fpdu_len(18 + 200), ahead;
	struct rvcm_dev_qp *qp;
	int fd = soft_raw_up(&e->w, false, &qp);
	uint8_t small[200];
	bool reset;

	post(e, qp, 100, 60000);
	for (uint32_t i = 0; i < 120; i++) {
		struct rvcm_dev_sge sge = { .addr = small, .length = sizeof(small) };
		struct rvcm_dev_wr wr = { .wr_id = 100 + i,
					  .op = RVCM_DEV_OP_SEND,
					  .flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_INLINE,
					  .n_sge = 1,
					  .sge = &sge };

		memset(small, (int)i, sizeof(small));
		assert_int_equal(e->w.ops->post(qp, &wr), 0);
	}
	assert_int_equal(e->w.ops->disconnect(qp), 0);
	ahead = 100 * rvcm_soft_mpa_fpdu_len(18 + 60000);
	assert_int_equal(soft_raw_read_all(&e->w, fd, e->stream, sizeof(e->stream), &reset),
			 ahead + 120 * fpdu);
	for (uint32_t i = 0; i < 120; i++) {
		memset(small, (int)i, sizeof(small));
		assert_memory_equal(e->stream + ahead + i * fpdu + 20, small, sizeof(small));
	}
	assert_int_equal(ok_sends(e, 220), 220);
	close(fd);
	soft_world_event(&e->w, RVCM_DEV_EVENT_DISCONNECTED);
	e->w.ops->detach(qp);
	e->w.ops->qp_close(qp);
}

#define END_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		END_TEST(detach_after_disconnect_sends_what_was_posted),
		END_TEST(detach_after_disconnect_keeps_what_is_done),
		END_TEST(closing_with_bytes_unread_loses_nothing),
		END_TEST(detach_of_a_standing_connection_resets_it),
		END_TEST(disconnect_sends_all_and_waits_for_the_peer),
		END_TEST(what_waits_moves_when_the_queue_grows),
	};

	return cmocka_run_group_tests_name("soft_qp", tests, NULL, NULL);
}

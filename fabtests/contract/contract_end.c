/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections end: in order, by force, and in any state. */
#include "contract/contract.h"

#include <errno.h>

static void both_disconnected(struct contract *c, struct contract_link *link)
{
	for (int i = 0; i < 2; i++) {
		contract_event(c, i, &link->ctx[i], RVCM_DEV_EVENT_DISCONNECTED);
		assert_int_not_equal(c->side[i].ops->qp_state(link->qp[i]), RVCM_DEV_QP_RTS);
	}
	contract_quiet(c);
}

static void disconnect_ends_both_sides_in_order(struct contract *c)
{
	for (int side = 0; side < 2; side++) {
		struct contract_link link;

		contract_link_up(c, &link, NULL);
		assert_int_equal(c->side[side].ops->disconnect(link.qp[side]), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(
				contract_event(c, i, &link.ctx[i], RVCM_DEV_EVENT_DISCONNECTED)
					->ev.status,
				RVCM_STATUS_OK);
		contract_quiet(c);
	}
}

static void disconnect_delivers_what_was_posted(struct contract *c)
{
	enum {
		N = 32,
		BYTES = 4096
	};
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, N * BYTES, 0);
	contract_fill(buf.data, buf.bytes, 5);
	for (int i = 0; i < N; i++)
		contract_send(c, link.qp[0], &buf, (size_t)i * BYTES, BYTES, (uint64_t)i);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	for (int i = 0; i < N; i++) {
		struct rvcm_dev_wc wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);

		assert_int_equal(wc.length, BYTES);
		assert_memory_equal(wc.data, buf.data + (size_t)i * BYTES, BYTES);
		contract_release(c, 1, link.pool[1], wc.rx);
	}
	for (int i = 0; i < N; i++)
		contract_wc_ok(c, 0, (uint64_t)i, RVCM_DEV_OP_SEND);
	both_disconnected(c, &link);
}

/* The acceptor's data side comes late: it still gets what was sent before the end. */
static void a_late_attach_gets_what_was_sent(struct contract *c)
{
	enum {
		N = 8,
		BYTES = 1000
	};
	struct contract_link link;
	struct contract_buf buf;

	contract_link_open(c, &link, NULL);
	contract_link_connect(c, &link);
	contract_attach(c, link.qp[0]);
	contract_buf(c, 0, &buf, BYTES, 0);
	contract_fill(buf.data, BYTES, 6);
	for (int i = 0; i < N; i++)
		contract_send(c, link.qp[0], &buf, 0, BYTES, (uint64_t)i);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	contract_settle(c);
	contract_attach(c, link.qp[1]);
	for (int i = 0; i < N; i++) {
		struct rvcm_dev_wc wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);

		contract_check(wc.data, BYTES, 6);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, (uint64_t)i, RVCM_DEV_OP_SEND);
	}
	both_disconnected(c, &link);
}

static void both_disconnect_at_once(struct contract *c)
{
	struct contract_link link;

	contract_link_up(c, &link, NULL);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	assert_int_equal(c->side[1].ops->disconnect(link.qp[1]), 0);
	both_disconnected(c, &link);
}

static void disconnect_twice_is_once(struct contract *c)
{
	struct contract_link link;

	contract_link_up(c, &link, NULL);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	c->side[0].ops->disconnect(link.qp[0]);
	both_disconnected(c, &link);
	c->side[0].ops->disconnect(link.qp[0]);
	contract_quiet(c);
}

static void disconnect_before_attach(struct contract *c)
{
	for (int side = 0; side < 2; side++) {
		struct contract_link link;

		contract_link_open(c, &link, NULL);
		contract_link_connect(c, &link);
		assert_int_equal(c->side[side].ops->disconnect(link.qp[side]), 0);
		both_disconnected(c, &link);
	}
}

static void no_post_after_disconnect(struct contract *c)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED };
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 1, 0);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 1, wr), -ENOTCONN);
	both_disconnected(c, &link);
	assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 1, wr), -ENOTCONN);
	contract_quiet(c);
}

static void close_tells_the_peer_once(struct contract *c)
{
	struct contract_link links[2];

	for (int side = 0; side < 2; side++) {
		struct contract_link *link = &links[side];
		int peer = !side;

		contract_link_open(c, link, NULL);
		contract_link_connect(c, link);
		contract_attach(c, link->qp[peer]);
		contract_close(c, link->qp[side]);
		contract_event(c, peer, &link->ctx[peer], RVCM_DEV_EVENT_DISCONNECTED);
		contract_quiet(c);
		assert_int_equal(
			contract_count(c, side, &link->ctx[side], RVCM_DEV_EVENT_DISCONNECTED), 0);
	}
}

static void detach_breaks_off_and_tells_both_once(struct contract *c)
{
	for (int side = 0; side < 2; side++) {
		struct contract_link link;

		contract_link_up(c, &link, NULL);
		contract_detach(c, link.qp[side]);
		assert_int_not_equal(c->side[side].ops->qp_state(link.qp[side]), RVCM_DEV_QP_RTS);
		both_disconnected(c, &link);
		contract_detach(c, link.qp[!side]);
		contract_quiet(c);
	}
}

static void close_device(struct contract *c, int side)
{
	struct contract_link link;
	int peer = !side;

	contract_link_up(c, &link, NULL);
	contract_side_close(c, side);
	contract_event(c, peer, &link.ctx[peer], RVCM_DEV_EVENT_DISCONNECTED);
	contract_quiet(c);
}

static void the_listening_device_closes(struct contract *c)
{
	close_device(c, 1);
}

static void the_opening_device_closes(struct contract *c)
{
	close_device(c, 0);
}

static void close_when_never_connected(struct contract *c)
{
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	contract_close(c, link.qp[0]);
	contract_close(c, link.qp[1]);
	contract_quiet(c);
}

static void accept_if_asked(struct contract *c, struct contract_link *link)
{
	const struct contract_event *event;

	if (!contract_count(c, 1, &link->listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST) ||
	    c->side[1].ops->qp_state(link->qp[1]) != RVCM_DEV_QP_INIT)
		return;
	event = contract_event(c, 1, &link->listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(c->side[1].ops->accept(event->ev.req, link->qp[1], NULL, 0), 0);
}

/* The number of turns between connect and close reaches every state on the way. */
static void close_at_every_moment(struct contract *c)
{
	struct contract_link links[12];

	for (int turns = 0; turns < 12; turns++) {
		struct contract_link *link = &links[turns];

		contract_link_open(c, link, NULL);
		assert_int_equal(c->side[0].ops->connect(link->qp[0], &link->addr, "x", 1), 0);
		for (int i = 0; i < turns; i++) {
			c->target->turn(c);
			contract_pump(c);
			accept_if_asked(c, link);
		}
		contract_close(c, link->qp[turns % 2]);
		contract_close(c, link->qp[1 - turns % 2]);
		contract_close(c, link->listener);
		contract_settle(c);
		for (int i = 0; i < 2; i++)
			assert_int_equal(
				contract_count(c, i, &link->ctx[i], RVCM_DEV_EVENT_DISCONNECTED),
				0);
	}
}

static void connect_and_end_many_times(struct contract *c)
{
	struct contract_link link;

	contract_link_up(c, &link, NULL);
	for (int i = 0; i < 60; i++) {
		switch (i % 3) {
		case 0:
			assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
			break;
		case 1:
			contract_detach(c, link.qp[1]);
			break;
		default:
			break;
		}
		if (i % 3 != 2)
			both_disconnected(c, &link);
		contract_close(c, link.qp[0]);
		contract_close(c, link.qp[1]);
		contract_settle(c);
		for (int side = 0; side < 2; side++)
			link.qp[side] = contract_qp(c, side, &link.attr[side]);
		contract_link_connect(c, &link);
		contract_attach(c, link.qp[0]);
		contract_attach(c, link.qp[1]);
	}
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(disconnect_ends_both_sides_in_order),
	CONTRACT_TEST(disconnect_delivers_what_was_posted),
	CONTRACT_TEST(a_late_attach_gets_what_was_sent),
	CONTRACT_TEST(both_disconnect_at_once),
	CONTRACT_TEST(disconnect_twice_is_once),
	CONTRACT_TEST(disconnect_before_attach),
	CONTRACT_TEST(no_post_after_disconnect),
	CONTRACT_TEST(close_tells_the_peer_once),
	CONTRACT_TEST(detach_breaks_off_and_tells_both_once),
	CONTRACT_TEST(the_listening_device_closes),
	CONTRACT_TEST(the_opening_device_closes),
	CONTRACT_TEST(close_when_never_connected),
	CONTRACT_TEST(close_at_every_moment),
	CONTRACT_TEST(connect_and_end_many_times),
};

const struct contract_list contract_end_tests = { tests, sizeof(tests) / sizeof(tests[0]) };

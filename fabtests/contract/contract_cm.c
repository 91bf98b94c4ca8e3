/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting: accept, reject, private data, and every way in which it does not come to be. */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>

static void connect_to(struct contract *c, struct contract_link *link, const void *data,
		       size_t bytes)
{
	assert_int_equal(c->side[0].ops->connect(link->qp[0], &link->addr, data, bytes), 0);
	assert_int_equal(c->side[0].ops->qp_state(link->qp[0]), RVCM_DEV_QP_CONNECTING);
}

static struct rvcm_dev_req *request(struct contract *c, struct contract_link *link)
{
	return contract_event(c, 1, &link->listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST)->ev.req;
}

/* Side 0 calls, and side 1 has heard of it. */
static struct rvcm_dev_req *call(struct contract *c, struct contract_link *link)
{
	contract_link_open(c, link, NULL);
	connect_to(c, link, NULL, 0);
	return request(c, link);
}

static void both_sides_get_established(struct contract *c)
{
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	contract_link_connect(c, &link);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(c->side[i].ops->qp_state(link.qp[i]), RVCM_DEV_QP_RTS);
		/* The link has what both devices have. */
		assert_int_equal(link.qp[i]->caps,
				 c->side[0].dev->attr.caps & c->side[1].dev->attr.caps);
	}
	contract_quiet(c);
}

static void address_and_route_come_first(struct contract *c)
{
	struct contract_link link;
	const struct contract_event *event;

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, NULL, 0);
	event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ADDR_RESOLVED);
	assert_int_equal(event->ev.status, RVCM_STATUS_OK);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ROUTE_RESOLVED);
	assert_int_equal(c->side[1].ops->accept(request(c, &link), link.qp[1], NULL, 0), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ESTABLISHED);
}

static void the_request_says_who_asks(struct contract *c)
{
	const struct rvcm_addr *from = &c->side[0].dev->attr.addr;
	const struct contract_event *event;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, "x", 1);
	event = contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->ev.peer.family, from->family);
	assert_memory_equal(event->ev.peer.ip, from->ip, sizeof(from->ip));
	assert_int_equal(c->side[1].ops->reject(event->ev.req, NULL, 0), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_REJECTED);
}

/* 56 is what conn sends, and what IB and RoCE carry. */
static const size_t private_sizes[] = { 0, 1, 54, 55, 56, SIZE_MAX };

static size_t private_size(const struct contract *c, size_t i)
{
	return private_sizes[i] == SIZE_MAX ? c->side[0].dev->attr.private_data_bytes
					    : private_sizes[i];
}

/* A device may pad private data with zeroes, as IB does. */
static void check_private(const struct contract_event *event, size_t bytes, uint32_t seed)
{
	assert_true(event->ev.private_bytes >= bytes);
	contract_check(event->data, bytes, seed);
	for (size_t i = bytes; i < event->ev.private_bytes; i++)
		assert_int_equal(event->data[i], 0);
}

static void private_data_of_request_and_reply(struct contract *c)
{
	uint8_t data[512];

	for (size_t i = 0; i < sizeof(private_sizes) / sizeof(private_sizes[0]); i++) {
		size_t bytes = private_size(c, i);
		const struct contract_event *event;
		struct rvcm_dev_req *req;
		struct contract_link link;

		contract_link_open(c, &link, NULL);
		contract_fill(data, bytes, 1);
		connect_to(c, &link, data, bytes);
		memset(data, 0, sizeof(data));
		event = contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
		check_private(event, bytes, 1);
		req = event->ev.req;
		contract_fill(data, bytes, 2);
		assert_int_equal(c->side[1].ops->accept(req, link.qp[1], data, bytes), 0);
		memset(data, 0, sizeof(data));
		event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ESTABLISHED);
		check_private(event, bytes, 2);
		contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_ESTABLISHED);
		contract_close(c, link.qp[0]);
		contract_close(c, link.qp[1]);
	}
}

static void private_data_of_reject(struct contract *c)
{
	uint8_t data[512];

	for (size_t i = 0; i < sizeof(private_sizes) / sizeof(private_sizes[0]); i++) {
		size_t bytes = private_size(c, i);
		const struct contract_event *event;
		struct contract_link link;

		contract_link_open(c, &link, NULL);
		connect_to(c, &link, NULL, 0);
		contract_fill(data, bytes, 3);
		assert_int_equal(c->side[1].ops->reject(request(c, &link), data, bytes), 0);
		event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_REJECTED);
		assert_int_equal(event->ev.reject, RVCM_DEV_REJECT_CONSUMER);
		assert_int_not_equal(event->ev.status, RVCM_STATUS_OK);
		check_private(event, bytes, 3);
		contract_quiet(c);
	}
}

static void too_much_private_data_is_refused_at_once(struct contract *c)
{
	size_t most = c->side[0].dev->attr.private_data_bytes;
	struct contract_link link;
	uint8_t data[1024] = { 0 };

	assert_true(most < sizeof(data));
	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, data, most + 1), -EINVAL);
	contract_quiet(c);
	/* It was only asked: the QP is as it was. */
	assert_int_equal(c->side[0].ops->qp_state(link.qp[0]), RVCM_DEV_QP_INIT);
	contract_link_connect(c, &link);
}

static void a_reply_with_too_much_is_refused_and_consumes(struct contract *c)
{
	size_t most = c->side[1].dev->attr.private_data_bytes;
	const struct contract_event *event;
	struct contract_link link;
	uint8_t data[1024] = { 0 };

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, NULL, 0);
	assert_int_equal(c->side[1].ops->accept(request(c, &link), link.qp[1], data, most + 1),
			 -EINVAL);
	/* The opener is not left waiting. */
	event = contract_any_event(c, 0, &link.ctx[0]);
	assert_int_not_equal(event->ev.type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(contract_count(c, 1, &link.ctx[1], RVCM_DEV_EVENT_ESTABLISHED), 0);
}

static void nobody_listens(struct contract *c)
{
	const struct contract_event *event;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	contract_close(c, link.listener);
	connect_to(c, &link, "x", 1);
	event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(event->ev.reject, RVCM_DEV_REJECT_NOT_LISTENING);
	assert_int_equal(event->ev.status, RVCM_STATUS_REFUSED);
	contract_quiet(c);
}

static void a_failed_connect_does_not_poison_the_peer(struct contract *c)
{
	struct rvcm_dev_qp *first;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, NULL, 0);
	assert_int_equal(c->side[1].ops->reject(request(c, &link), NULL, 0), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_REJECTED);
	first = link.qp[0];
	link.qp[0] = contract_qp(c, 0, &link.attr[0]);
	contract_link_connect(c, &link);
	contract_close(c, first);
	contract_quiet(c);
}

static void listener_closed_with_requests_unseen(struct contract *c)
{
	const struct contract_event *event;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, NULL, 0);
	contract_close(c, link.listener);
	event = contract_any_event(c, 0, &link.ctx[0]);
	assert_int_not_equal(event->ev.type, RVCM_DEV_EVENT_ESTABLISHED);
	contract_quiet(c);
}

static void request_answered_after_its_listener_closed(struct contract *c)
{
	struct rvcm_dev_req *req;
	struct contract_link link;

	req = call(c, &link);
	contract_close(c, link.listener);
	assert_int_equal(c->side[1].ops->accept(req, link.qp[1], NULL, 0), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ESTABLISHED);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_ESTABLISHED);
}

/* A device that is closed drops the requests it has not answered; the opener hears of it. */
static void request_dropped_by_its_device(struct contract *c)
{
	const struct contract_event *event;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	connect_to(c, &link, "bye", 3);
	request(c, &link);
	contract_side_close(c, 1);
	event = contract_any_event(c, 0, &link.ctx[0]);
	assert_int_not_equal(event->ev.type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_not_equal(event->ev.status, RVCM_STATUS_OK);
	contract_quiet(c);
}

static void request_never_answered(struct contract *c)
{
	struct contract_link link;

	/* Both devices are closed with it open: nothing leaks. */
	contract_link_open(c, &link, NULL);
	connect_to(c, &link, "bye", 3);
	request(c, &link);
	contract_quiet(c);
}

static size_t events_of(const struct contract *c, int side, const void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < c->side[side].n_events; i++)
		n += c->side[side].events[i].ev.ctx == ctx;
	return n;
}

/* However far it got, as long as ESTABLISHED was not reported. */
static void disconnect_abandons_an_attempt(struct contract *c)
{
	struct contract_link links[16];

	for (int turns = 0; turns < 16; turns++) {
		struct contract_link *link = &links[turns];
		size_t before;

		contract_link_open(c, link, NULL);
		connect_to(c, link, NULL, 0);
		/* Half of them are polled on the way; the others have events waiting. */
		for (int i = 0; i < turns; i++) {
			c->target->turn(c);
			if (turns % 2)
				contract_pump(c);
		}
		before = events_of(c, 0, &link->ctx[0]);
		assert_int_equal(c->side[0].ops->disconnect(link->qp[0]), 0);
		contract_settle(c);
		assert_int_equal(events_of(c, 0, &link->ctx[0]), before);
		assert_int_equal(contract_count(c, 0, &link->ctx[0], RVCM_DEV_EVENT_ESTABLISHED),
				 0);
	}
}

/* Whatever the acceptor is told first, it learns in the end. */
static void the_opener_is_gone(struct contract *c, struct contract_link *link)
{
	const struct contract_event *event = contract_any_event(c, 1, &link->ctx[1]);

	if (event->ev.type == RVCM_DEV_EVENT_ESTABLISHED)
		event = contract_event(c, 1, &link->ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
	else
		assert_int_equal(event->ev.type, RVCM_DEV_EVENT_CONNECT_ERROR);
	contract_quiet(c);
}

static void accept_too_late(struct contract *c, struct contract_link *link,
			    struct rvcm_dev_req *req)
{
	contract_settle(c);
	if (c->side[1].ops->accept(req, link->qp[1], NULL, 0) == 0)
		the_opener_is_gone(c, link);
}

static void accept_after_the_opener_closed(struct contract *c)
{
	struct contract_link link;
	struct rvcm_dev_req *req = call(c, &link);

	contract_close(c, link.qp[0]);
	accept_too_late(c, &link, req);
}

static void accept_after_the_opener_abandoned(struct contract *c)
{
	struct contract_link link;
	struct rvcm_dev_req *req = call(c, &link);

	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	accept_too_late(c, &link, req);
}

static void reject_after_the_opener_closed(struct contract *c)
{
	struct rvcm_dev_req *req;
	struct contract_link link;

	req = call(c, &link);
	contract_close(c, link.qp[0]);
	contract_settle(c);
	c->side[1].ops->reject(req, "late", 4);
	contract_quiet(c);
}

static void many_requests_wait_at_one_listener(struct contract *c)
{
	enum {
		N = 16
	};
	struct rvcm_dev_req *req[N];
	struct rvcm_dev_qp *qp[N];
	struct contract_link link;
	char ctx[N];

	contract_link_open(c, &link, NULL);
	for (int i = 0; i < N; i++) {
		struct rvcm_dev_qp_attr attr = link.attr[0];
		uint8_t number = (uint8_t)i;

		attr.ctx = &ctx[i];
		qp[i] = contract_qp(c, 0, &attr);
		assert_int_equal(c->side[0].ops->connect(qp[i], &link.addr, &number, 1), 0);
	}
	for (int i = 0; i < N; i++) {
		const struct contract_event *event =
			contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);

		assert_in_range(event->data[0], 0, N - 1);
		req[event->data[0]] = event->ev.req;
	}
	for (int i = N - 1; i >= 0; i--) {
		uint8_t number = (uint8_t)(i + 100);

		assert_int_equal(c->side[1].ops->reject(req[i], &number, 1), 0);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(contract_event(c, 0, &ctx[i], RVCM_DEV_EVENT_REJECTED)->data[0],
				 i + 100);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(both_sides_get_established),
	CONTRACT_TEST(address_and_route_come_first),
	CONTRACT_TEST(the_request_says_who_asks),
	CONTRACT_TEST(private_data_of_request_and_reply),
	CONTRACT_TEST(private_data_of_reject),
	CONTRACT_TEST(too_much_private_data_is_refused_at_once),
	CONTRACT_TEST(a_reply_with_too_much_is_refused_and_consumes),
	CONTRACT_TEST(nobody_listens),
	CONTRACT_TEST(a_failed_connect_does_not_poison_the_peer),
	CONTRACT_TEST(listener_closed_with_requests_unseen),
	CONTRACT_TEST(request_answered_after_its_listener_closed),
	CONTRACT_TEST(request_dropped_by_its_device),
	CONTRACT_TEST(request_never_answered),
	CONTRACT_TEST(disconnect_abandons_an_attempt),
	CONTRACT_TEST(accept_after_the_opener_closed),
	CONTRACT_TEST(accept_after_the_opener_abandoned),
	CONTRACT_TEST(reject_after_the_opener_closed),
	CONTRACT_TEST(many_requests_wait_at_one_listener),
};

const struct contract_list contract_cm_tests = { tests, sizeof(tests) / sizeof(tests[0]) };

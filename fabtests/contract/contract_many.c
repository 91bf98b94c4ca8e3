/* SPDX-License-Identifier: BSD-2-Clause */
/* Many connections at once on one CQ and one pool. */
#include "contract/contract.h"

#include <string.h>

#define N 64

struct crowd {
	struct contract_link link; /* its CQs, pools and listener serve all */
	struct rvcm_dev_qp *qp[2][N];
	uint32_t number[2][N]; /* their addresses are the QPs' ctx */
	uint32_t sent[2][N];
	uint32_t received[2][N];
	bool up[2][N];
};

static void open_all(struct contract *c, struct crowd *crowd)
{
	const struct contract_link_conf conf = { .count = 8 * N };

	contract_link_open(c, &crowd->link, &conf);
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < N; i++) {
			struct rvcm_dev_qp_attr attr = crowd->link.attr[side];

			crowd->number[side][i] = i;
			attr.ctx = &crowd->number[side][i];
			attr.sq_depth = 16;
			crowd->qp[side][i] = contract_qp(c, side, &attr);
		}
}

static void connect_all(struct contract *c, struct crowd *crowd)
{
	for (uint8_t i = 0; i < N; i++)
		assert_int_equal(c->side[0].ops->connect(crowd->qp[0][i], &crowd->link.addr, &i, 1),
				 0);
	for (uint32_t i = 0; i < N; i++) {
		const struct contract_event *event = contract_event(c, 1, &crowd->link.listener_ctx,
								    RVCM_DEV_EVENT_CONNECT_REQUEST);
		uint8_t k = event->data[0];

		assert_true(k < N);
		assert_int_equal(c->side[1].ops->accept(event->ev.req, crowd->qp[1][k], &k, 1), 0);
	}
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < N; i++) {
			contract_event(c, side, &crowd->number[side][i],
				       RVCM_DEV_EVENT_ESTABLISHED);
			contract_attach(c, crowd->qp[side][i]);
		}
}

struct note {
	uint32_t number;
	uint32_t count;
};

static void take(struct contract *c, struct crowd *crowd, int side)
{
	struct rvcm_dev_wc wc = contract_wc(c, side);
	uint32_t *number = wc.qp_ctx;
	struct note note;

	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_true(number >= crowd->number[side] && number < crowd->number[side] + N);
	if (wc.op == RVCM_DEV_OP_SEND) {
		assert_int_equal(wc.wr_id, crowd->sent[side][*number]++);
		return;
	}
	assert_int_equal(wc.length, sizeof(note));
	memcpy(&note, wc.data, sizeof(note));
	assert_int_equal(note.number, *number);
	assert_int_equal(note.count, crowd->received[side][*number]++);
	contract_release(c, side, crowd->link.pool[side], wc.rx);
}

static void each_message_comes_from_its_own_connection(struct contract *c)
{
	enum {
		ROUNDS = 8
	};
	static struct crowd crowd;
	struct contract_buf buf[2];

	memset(&crowd, 0, sizeof(crowd));
	open_all(c, &crowd);
	connect_all(c, &crowd);
	for (int side = 0; side < 2; side++)
		contract_buf(c, side, &buf[side], N * ROUNDS * sizeof(struct note), 0);
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < N; i++)
			for (int side = 0; side < 2; side++) {
				struct note note = { i, round };
				size_t at = (round * N + i) * sizeof(note);

				memcpy(buf[side].data + at, &note, sizeof(note));
				contract_send(c, crowd.qp[side][i], &buf[side], at, sizeof(note),
					      round);
				contract_pump(c);
			}
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < 2 * ROUNDS * N; i++)
			take(c, &crowd, side);
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < N; i++) {
			assert_int_equal(crowd.sent[side][i], ROUNDS);
			assert_int_equal(crowd.received[side][i], ROUNDS);
		}
	contract_quiet(c);
}

/* Half of them end; the others do not notice. */
static void one_connection_ends_alone(struct contract *c)
{
	static struct crowd crowd;
	struct contract_buf buf;

	memset(&crowd, 0, sizeof(crowd));
	open_all(c, &crowd);
	connect_all(c, &crowd);
	contract_buf(c, 0, &buf, N * sizeof(struct note), 0);
	for (uint32_t i = 0; i < N; i += 2)
		assert_int_equal(c->side[0].ops->disconnect(crowd.qp[0][i]), 0);
	for (uint32_t i = 1; i < N; i += 2) {
		struct note note = { i, 0 };

		memcpy(buf.data + i * sizeof(note), &note, sizeof(note));
		contract_send(c, crowd.qp[0][i], &buf, i * sizeof(note), sizeof(note), 0);
	}
	for (uint32_t i = 0; i < N / 2; i++) {
		take(c, &crowd, 1);
		take(c, &crowd, 0);
	}
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < N; i += 2)
			contract_event(c, side, &crowd.number[side][i],
				       RVCM_DEV_EVENT_DISCONNECTED);
	contract_quiet(c);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(each_message_comes_from_its_own_connection),
	CONTRACT_TEST(one_connection_ends_alone),
};

const struct contract_list contract_many_tests = { tests, sizeof(tests) / sizeof(tests[0]) };

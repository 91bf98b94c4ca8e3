/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer may not do to the soft device: each breach gets the TERMINATE that the RFCs ask for,
 * touches nothing, and ends the connection once, with a reason.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct soft_peer_conf pooled = { .pool = true };
static const struct soft_peer_conf posted = { .pool = false };

struct rig {
	struct soft_peer p;
	struct rvcm_dev_mr *mr;
	uint8_t data[3000]; /* the middle 1000 are registered */
};

static struct rvcm_dev_mr *reg(struct soft_peer *p, void *addr, size_t n, uint32_t access)
{
	const struct rvcm_dev_mr_attr attr = { .addr = addr, .length = n, .access = access };
	struct rvcm_dev_mr *mr;

	assert_int_equal(p->ops->mr_reg(p->dev, &attr, &mr), 0);
	return mr;
}

static void up(struct rig *r, const struct soft_peer_conf *conf, uint32_t access)
{
	soft_peer_open(&r->p, NULL);
	soft_peer_up(&r->p, conf);
	memset(r->data, 0x55, sizeof(r->data));
	r->mr = reg(&r->p, r->data + 1000, 1000, access);
}

static void down(struct rig *r, uint16_t term, enum rvcm_status status,
		 struct rvcm_soft_wire_terminate *t)
{
	soft_peer_expect_terminate(&r->p, term, t);
	assert_int_equal(soft_peer_event(&r->p, RVCM_DEV_EVENT_DISCONNECTED)->status, status);
	soft_peer_pump(&r->p);
	assert_false(r->p.have_event);
	assert_int_equal(r->p.warned.n, 1);
	for (size_t i = 0; i < sizeof(r->data); i++)
		assert_int_equal(r->data[i], 0x55);
	r->p.ops->mr_dereg(r->mr);
	soft_peer_close(&r->p);
}

#define RW (RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE)

/* -- memory --------------------------------------------------------------------------------- */

static const struct memory_breach {
	uint32_t access;
	uint32_t key_xor;
	int64_t offset; /* of the first byte from the registered ones */
	uint32_t bytes;
	uint16_t write_term;
	uint16_t read_term;
} memory_breaches[] = {
	{ RW, 1, 0, 10, RVCM_SOFT_WIRE_TERM_D_STAG, RVCM_SOFT_WIRE_TERM_R_STAG },
	{ RW, 0x100, 0, 10, RVCM_SOFT_WIRE_TERM_D_STAG, RVCM_SOFT_WIRE_TERM_R_STAG },
	{ RW, 0, -1, 10, RVCM_SOFT_WIRE_TERM_D_BOUNDS, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	{ RW, 0, 991, 10, RVCM_SOFT_WIRE_TERM_D_BOUNDS, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	{ RW, 0, 0, 1001, RVCM_SOFT_WIRE_TERM_D_BOUNDS, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	/* RFC 5041 section 8.2 has no code for access rights. */
	{ 0, 0, 0, 10, RVCM_SOFT_WIRE_TERM_D_STAG, RVCM_SOFT_WIRE_TERM_R_ACCESS },
};

static void writes_are_checked(void **state)
{
	static uint8_t payload[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(memory_breaches) / sizeof(memory_breaches[0]); i++) {
		const struct memory_breach *b = &memory_breaches[i];
		struct rvcm_soft_wire_terminate t;
		struct rvcm_soft_wire_hdr hdr, named;
		struct rig r;
		uint16_t term;

		up(&r, &pooled, b->access);
		hdr = (struct rvcm_soft_wire_hdr) {
			.opcode = RVCM_SOFT_WIRE_WRITE,
			.last = true,
			.stag = r.mr->rkey ^ b->key_xor,
			.to = (uintptr_t)(r.data + 1000) + (uint64_t)b->offset,
		};
		soft_peer_frame(&r.p, &hdr, payload, b->bytes);
		down(&r, b->write_term, RVCM_STATUS_PROTOCOL, &t);
		assert_int_equal(t.ddp_bytes, RVCM_SOFT_WIRE_TAGGED_BYTES);
		assert_true(rvcm_soft_wire_decode(t.ddp, t.ddp_bytes, &named, &term) > 0);
		assert_int_equal(named.stag, hdr.stag);
		assert_true(named.to == hdr.to);
	}
}

static void ask(struct soft_peer *p, uint32_t stag, uint64_t to, uint32_t bytes)
{
	const struct rvcm_soft_wire_read_req req = {
		.sink_stag = 1, .bytes = bytes, .source_stag = stag, .source_to = to
	};
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
						.last = true,
						.msn = p->read_msn++ };
	uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];

	rvcm_soft_wire_read_req_encode(&req, body);
	soft_peer_frame(p, &hdr, body, sizeof(body));
}

static void reads_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(memory_breaches) / sizeof(memory_breaches[0]); i++) {
		const struct memory_breach *b = &memory_breaches[i];
		struct rvcm_soft_wire_terminate t;
		struct rig r;

		up(&r, &pooled, b->access);
		ask(&r.p, r.mr->rkey ^ b->key_xor, (uintptr_t)(r.data + 1000) + (uint64_t)b->offset,
		    b->bytes);
		down(&r, b->read_term, RVCM_STATUS_PROTOCOL, &t);
		assert_true(t.has_read_req);
	}
}

/* Memory deregistered in the middle of a WRITE that goes straight to it: the rest is not placed. */
static void a_write_stops_where_its_memory_ends(void **state)
{
	enum {
		BYTES = 60000,
		FIRST = 30000
	};
	static uint8_t data[BYTES], frame[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_WRITE, .last = true };
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	uint8_t *payload;
	size_t n;

	(void)state;
	payload = frame + RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_TAGGED_BYTES;
	memset(data, 0, BYTES);
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = reg(&p, data, BYTES, RVCM_DEV_ACCESS_REMOTE_WRITE);
	hdr.stag = mr->rkey;
	hdr.to = (uintptr_t)data;
	n = soft_peer_fpdu(&p, &hdr, data, BYTES, frame);
	memset(payload, 0xaa, BYTES);
	soft_peer_write(&p, frame, FIRST + 16);
	for (int i = 0; i < 1000000 && data[FIRST - 1] != 0xaa; i++)
		soft_peer_pump(&p);
	assert_int_equal(data[FIRST - 1], 0xaa);
	p.ops->mr_dereg(mr);
	soft_peer_write(&p, frame + FIRST + 16, n - FIRST - 16);
	soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_D_STAG, NULL);
	soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
	for (size_t i = FIRST; i < BYTES; i++)
		assert_int_equal(data[i], 0);
	soft_peer_close(&p);
}

/* The same for a READ that is being served: the connection ends, with no byte from there. */
static void a_response_stops_where_its_memory_ends(void **state)
{
	enum {
		BYTES = 32 << 20
	};
	struct rvcm_dev_mr *mr;
	uint8_t *data = calloc(1, BYTES);
	uint8_t chunk[65536], changed[8];
	struct soft_peer p;
	size_t total = 0;
	bool over;
	ssize_t n;

	(void)state;
	assert_non_null(data);
	memset(changed, 0xee, sizeof(changed));
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = reg(&p, data, BYTES, RVCM_DEV_ACCESS_REMOTE_READ);
	ask(&p, mr->rkey, (uintptr_t)data, BYTES);
	for (int i = 0; i < 100; i++) /* until the socket is full: the peer does not read */
		soft_peer_pump(&p);
	p.ops->mr_dereg(mr);
	memset(data, 0xee, BYTES);
	do { /* there is room for what waits before anybody looks */
		n = read(p.fd, chunk, sizeof(chunk));
		total += n > 0 ? (size_t)n : 0;
		assert_true(n < 8 || !memmem(chunk, (size_t)n, changed, sizeof(changed)));
		over = p.have_event;
		if (n < 0 && !over)
			soft_peer_pump(&p);
	} while (n > 0 || (n < 0 && !over));
	free(data);
	assert_true(total < BYTES);
	assert_int_not_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status,
			     RVCM_STATUS_OK);
	soft_peer_close(&p);
}

/* An answer may fill what was asked for, and nothing else. */
static const struct response_breach {
	uint32_t key_xor;
	uint64_t offset;
	uint32_t bytes;
	bool last;
	uint16_t term;
} response_breaches[] = {
	{ 1, 0, 100, true, RVCM_SOFT_WIRE_TERM_D_STAG },
	{ 0, 1, 99, true, RVCM_SOFT_WIRE_TERM_D_BOUNDS },
	{ 0, 0, 101, true, RVCM_SOFT_WIRE_TERM_D_BOUNDS },
	{ 0, 0, 99, true, RVCM_SOFT_WIRE_TERM_D_BOUNDS },
	{ 0, 0, 100, false, RVCM_SOFT_WIRE_TERM_D_BOUNDS },
};

static void responses_are_checked(void **state)
{
	static const uint8_t payload[101];
	static struct soft_peer_frame frame;

	(void)state;
	for (size_t i = 0; i < sizeof(response_breaches) / sizeof(response_breaches[0]); i++) {
		const struct response_breach *b = &response_breaches[i];
		struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_RESP };
		struct rvcm_soft_wire_read_req req;
		struct rvcm_dev_sge sge;
		struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_READ, .n_sge = 1, .sge = &sge };
		struct rig r;
		uint16_t term;

		up(&r, &pooled, RVCM_DEV_ACCESS_LOCAL_WRITE);
		sge = (struct rvcm_dev_sge) { r.data + 1000, 100, r.mr };
		assert_int_equal(r.p.ops->post(r.p.qp, &wr), 0);
		soft_peer_take(&r.p, &frame);
		assert_true(rvcm_soft_wire_read_req_decode(frame.payload, frame.bytes, &req,
							   &term) > 0);
		hdr.last = b->last;
		hdr.stag = req.sink_stag ^ b->key_xor;
		hdr.to = req.sink_to + b->offset;
		soft_peer_frame(&r.p, &hdr, payload, b->bytes);
		down(&r, b->term, RVCM_STATUS_PROTOCOL, NULL);
	}
}

/* -- the protocol --------------------------------------------------------------------------- */

static void frame_ends(const struct rvcm_soft_wire_hdr *hdr, size_t bytes, uint16_t term)
{
	static const uint8_t payload[100];
	struct rig r;

	up(&r, &pooled, RW);
	soft_peer_frame(&r.p, hdr, payload, bytes);
	down(&r, term, RVCM_STATUS_PROTOCOL, NULL);
}

static void what_is_not_offered_is_an_unexpected_opcode(void **state)
{
	static const struct {
		uint8_t opcode;
		size_t bytes;
	} ops[] = {
		{ RVCM_SOFT_WIRE_IMM, RVCM_SOFT_WIRE_IMM_BYTES },
		{ RVCM_SOFT_WIRE_IMM_SE, RVCM_SOFT_WIRE_IMM_BYTES },
		{ RVCM_SOFT_WIRE_ATOMIC_REQ, RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES },
		{ RVCM_SOFT_WIRE_ATOMIC_RESP, RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES },
		{ RVCM_SOFT_WIRE_READ_RESP, 10 }, /* that nobody asked for */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const struct rvcm_soft_wire_hdr hdr = { .opcode = ops[i].opcode,
							.last = true,
							.msn = 1 };

		frame_ends(&hdr, ops[i].bytes, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	}
}

/* RFC 5040 section 5.3: our memory gives no peer the right to invalidate it. */
static void no_key_can_be_invalidated_by_a_peer(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t key_xor;
		uint16_t term;
	} rows[] = {
		{ RVCM_SOFT_WIRE_SEND_INV, 0, RVCM_SOFT_WIRE_TERM_R_PROT_INVALIDATE },
		{ RVCM_SOFT_WIRE_SEND_SE_INV, 0, RVCM_SOFT_WIRE_TERM_R_PROT_INVALIDATE },
		{ RVCM_SOFT_WIRE_SEND_INV, 1, RVCM_SOFT_WIRE_TERM_R_STAG },
		{ RVCM_SOFT_WIRE_SEND_SE_INV, 1, RVCM_SOFT_WIRE_TERM_R_STAG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rvcm_soft_wire_hdr hdr = { .opcode = rows[i].opcode,
						  .last = true,
						  .msn = 1 };
		struct rig r;

		up(&r, &pooled, RW);
		hdr.inval_stag = r.mr->rkey ^ rows[i].key_xor;
		soft_peer_frame(&r.p, &hdr, "hello", 5);
		down(&r, rows[i].term, RVCM_STATUS_PROTOCOL, NULL);
		assert_int_equal(r.p.n_wcs, 0);
	}
}

static void sequence_numbers_are_checked(void **state)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND, .last = true, .msn = 2 };

	(void)state;
	frame_ends(&hdr, 10, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
	hdr.msn = 0;
	frame_ends(&hdr, 10, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
	hdr.msn = 1;
	hdr.mo = 1;
	frame_ends(&hdr, 10, RVCM_SOFT_WIRE_TERM_D_MO);
	hdr = (struct rvcm_soft_wire_hdr) { .opcode = RVCM_SOFT_WIRE_READ_REQ,
					    .last = true,
					    .msn = 2 };
	frame_ends(&hdr, RVCM_SOFT_WIRE_READ_REQ_BYTES, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
}

static void bytes_end(const uint8_t *bytes, size_t n, uint16_t term)
{
	struct rig r;

	up(&r, &pooled, RW);
	soft_peer_write(&r.p, bytes, n);
	down(&r, term, RVCM_STATUS_PROTOCOL, NULL);
}

static void headers_are_checked(void **state)
{
	static const uint8_t short_tagged[] = { 0, 4, 0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t ddp_version[] = { 0, 18, 0x42, 0x43, 0, 0, 0, 0, 0, 0,
					       0, 0,  0,    0,    0, 1, 0, 0, 0, 0 };
	static const uint8_t rdmap_version[] = { 0, 18, 0x41, 0x03, 0, 0, 0, 0, 0, 0,
						 0, 0,  0,    0,    0, 1, 0, 0, 0, 0 };
	static const uint8_t queue[] = { 0, 18, 0x41, 0x43, 0, 0, 0, 0, 0, 0,
					 0, 9,  0,    0,    0, 1, 0, 0, 0, 0 };

	(void)state;
	bytes_end(short_tagged, sizeof(short_tagged), RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
	bytes_end(ddp_version, sizeof(ddp_version), RVCM_SOFT_WIRE_TERM_D_U_VERSION);
	bytes_end(rdmap_version, sizeof(rdmap_version), RVCM_SOFT_WIRE_TERM_R_VERSION);
	bytes_end(queue, sizeof(queue), RVCM_SOFT_WIRE_TERM_D_QN);
}

static void more_reads_than_we_offered(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;
	struct rvcm_dev_mr *mr;
	static uint8_t data[4 << 20];

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.reads_max = 2;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	mr = reg(&p, data, sizeof(data), RVCM_DEV_ACCESS_REMOTE_READ);
	for (int i = 0; i < 4; i++)
		ask(&p, mr->rkey, (uintptr_t)data, sizeof(data));
	/* Our responses fill the stream, so that the TERMINATE may be a reset. */
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status,
			 RVCM_STATUS_NO_RECEIVE);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* -- receives ------------------------------------------------------------------------------- */

static void a_send_longer_than_its_receive(void **state)
{
	const uint8_t payload[100] = { 0 };
	struct rvcm_dev_sge sge;
	struct rvcm_dev_recv recv = { .wr_id = 8, .n_sge = 1, .sge = &sge };
	struct rvcm_dev_wc wc;
	struct rig r;

	(void)state;
	up(&r, &posted, RVCM_DEV_ACCESS_LOCAL_WRITE);
	sge = (struct rvcm_dev_sge) { .addr = r.data + 1000, .length = 99, .mr = r.mr };
	assert_int_equal(r.p.ops->post_recv(r.p.qp, &recv), 0);
	recv.wr_id = 9;
	assert_int_equal(r.p.ops->post_recv(r.p.qp, &recv), 0);
	soft_peer_send(&r.p, payload, sizeof(payload));
	wc = soft_peer_wc(&r.p);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.status, RVCM_STATUS_LOCAL_LENGTH);
	wc = soft_peer_wc(&r.p);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, RVCM_STATUS_FLUSHED);
	down(&r, RVCM_SOFT_WIRE_TERM_D_TOO_LONG, RVCM_STATUS_LOCAL_LENGTH, NULL);
}

static void no_receive_for_too_long(void **state)
{
	const struct soft_peer_conf conf = { .rnr_timeout_ns = 20000000 };
	struct rig r;

	(void)state;
	up(&r, &conf, RW);
	soft_peer_send(&r.p, "hello", 5);
	down(&r, RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER, RVCM_STATUS_NO_RECEIVE, NULL);
}

/* The same when nobody polls, but sleeps on the CQ as dev.h says. */
static void no_receive_for_too_long_wakes_who_sleeps(void **state)
{
	const struct soft_peer_conf conf = { .rnr_timeout_ns = 20000000 };
	struct pollfd fd = { .events = POLLIN };
	struct rig r;

	(void)state;
	up(&r, &conf, RW);
	fd.fd = r.p.ops->cq_fd(r.p.cq);
	soft_peer_send(&r.p, "hello", 5);
	while (!r.p.have_event) {
		assert_int_equal(r.p.ops->cq_arm(r.p.cq, false), 0);
		for (int i = 0; i < 2; i++) /* what the CQ's poll finds is an event at the next */
			soft_peer_pump(&r.p);
		assert_true(r.p.have_event || poll(&fd, 1, 30000) == 1);
	}
	down(&r, RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER, RVCM_STATUS_NO_RECEIVE, NULL);
}

/* -- CRC ------------------------------------------------------------------------------------ */

/* Any one bit of a frame, its trailer too: found before anything of it is believed. */
static void a_wrong_crc(void **state)
{
	static const size_t at[] = { 5, 17, 20, 24, 28, 31 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
							.last = true,
							.msn = 1 };
		uint8_t frame[64];
		struct soft_peer p;
		size_t n;

		soft_peer_open(&p, NULL);
		p.crc = true;
		soft_peer_up(&p, &pooled);
		n = soft_peer_fpdu(&p, &hdr, "abcde", 5, frame);
		assert_int_equal(n, 32);
		frame[at[i]] ^= 0x10;
		soft_peer_write(&p, frame, n);
		if (at[i] >= 20)
			soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_L_CRC, NULL);
		soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
		assert_int_equal(p.n_wcs, 0);
		soft_peer_close(&p);
	}
}

static void a_wrong_crc_of_a_direct_payload(void **state)
{
	enum {
		BYTES = 60000
	};
	static uint8_t data[BYTES], frame[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_WRITE, .last = true };
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	size_t n;

	(void)state;
	soft_peer_open(&p, NULL);
	p.crc = true;
	soft_peer_up(&p, &pooled);
	mr = reg(&p, data, BYTES, RVCM_DEV_ACCESS_REMOTE_WRITE);
	hdr.stag = mr->rkey;
	hdr.to = (uintptr_t)data;
	n = soft_peer_fpdu(&p, &hdr, data, BYTES, frame);
	frame[50000] ^= 1;
	soft_peer_write(&p, frame, 1000);
	soft_peer_pump(&p);
	soft_peer_write(&p, frame + 1000, n - 1000);
	soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_L_CRC, NULL);
	soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_are_checked),
		cmocka_unit_test(reads_are_checked),
		cmocka_unit_test(a_write_stops_where_its_memory_ends),
		cmocka_unit_test(a_response_stops_where_its_memory_ends),
		cmocka_unit_test(responses_are_checked),
		cmocka_unit_test(what_is_not_offered_is_an_unexpected_opcode),
		cmocka_unit_test(no_key_can_be_invalidated_by_a_peer),
		cmocka_unit_test(sequence_numbers_are_checked),
		cmocka_unit_test(headers_are_checked),
		cmocka_unit_test(more_reads_than_we_offered),
		cmocka_unit_test(a_send_longer_than_its_receive),
		cmocka_unit_test(no_receive_for_too_long),
		cmocka_unit_test(no_receive_for_too_long_wakes_who_sleeps),
		cmocka_unit_test(a_wrong_crc),
		cmocka_unit_test(a_wrong_crc_of_a_direct_payload),
	};

	return cmocka_run_group_tests_name("soft_term", tests, NULL, NULL);
}

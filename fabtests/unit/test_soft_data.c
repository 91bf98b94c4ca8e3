/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream of the soft device against a foreign RNIC: its own segmentation, and what is allowed.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG 150000u

static const struct soft_peer_conf pooled = { .pool = true };
static const struct soft_peer_conf posted = { .pool = false };
static const struct soft_peer_conf shared = { .srq = true };

static void post_recv(struct soft_peer *p, uint64_t wr_id, void *addr, size_t n,
		      struct rvcm_dev_mr *mr)
{
	/* In two pieces, so that segments have to be cut. */
	const struct rvcm_dev_sge sge[] = {
		{ .addr = addr, .length = n / 3, .mr = mr },
		{ .addr = (uint8_t *)addr + n / 3, .length = n - n / 3, .mr = mr },
	};
	const struct rvcm_dev_recv recv = { .wr_id = wr_id, .n_sge = 2, .sge = sge };

	if (p->srq)
		assert_int_equal(p->ops->srq_post(p->srq, &recv), 0);
	else
		assert_int_equal(p->ops->post_recv(p->qp, &recv), 0);
}

/* The peer sends data as one message, cut in segments of so many bytes. */
static void send_cut(struct soft_peer *p, const uint8_t *data, size_t n, size_t segment)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND, .msn = p->msn++ };
	size_t part;

	for (size_t at = 0; at < n; at += part) {
		part = n - at < segment ? n - at : segment;
		hdr.mo = (uint32_t)at;
		hdr.last = at + part == n;
		soft_peer_frame(p, &hdr, data + at, part);
	}
}

/* -- SEND ----------------------------------------------------------------------------------- */

static void segments_of_any_size(const struct soft_peer_conf *conf, bool crc)
{
	static const size_t sizes[] = { 1, 3, 100, 1460, 4096, 8191, 65000, 65517 };
	static uint8_t out[BIG], in[BIG];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;

	soft_peer_open(&p, NULL);
	p.crc = crc;
	soft_peer_up(&p, conf);
	mr = soft_peer_reg(&p, in, BIG, RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i] < 100 ? 500 : BIG;
		struct rvcm_dev_wc wc;

		soft_peer_fill(out, n, (unsigned int)i);
		memset(in, 0, BIG);
		if (!conf->pool)
			post_recv(&p, i, in, n + (n < BIG), mr);
		send_cut(&p, out, n, sizes[i]);
		wc = soft_peer_wc(&p);
		assert_int_equal(wc.status, RVCM_STATUS_OK);
		assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
		assert_int_equal(wc.length, n);
		assert_memory_equal(conf->pool ? wc.data : in, out, n);
		if (conf->pool)
			p.ops->rx_release(p.pool, wc.rx);
		else
			assert_int_equal(wc.wr_id, i);
	}
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

static void segments_of_any_size_into_a_pool(void **state)
{
	(void)state;
	segments_of_any_size(&pooled, false);
	segments_of_any_size(&pooled, true);
}

static void segments_of_any_size_into_receives(void **state)
{
	(void)state;
	segments_of_any_size(&posted, false);
	segments_of_any_size(&posted, true);
}

static void segments_of_any_size_into_shared_receives(void **state)
{
	(void)state;
	segments_of_any_size(&shared, true);
}

static void a_stream_that_trickles(void **state)
{
	uint8_t frame[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	uint8_t data[300];
	struct soft_peer p;

	(void)state;
	soft_peer_fill(data, sizeof(data), 5);
	soft_peer_open(&p, NULL);
	p.crc = true;
	soft_peer_up(&p, &pooled);
	for (size_t n = 0; n < sizeof(data); n += 37) {
		const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND_SE,
							.last = true,
							.msn = p.msn++ };
		struct rvcm_dev_wc wc;

		soft_peer_trickle(&p, frame, soft_peer_fpdu(&p, &hdr, data, n, frame));
		wc = soft_peer_wc(&p);
		assert_int_equal(wc.length, n);
		assert_int_equal(wc.flags, RVCM_DEV_WC_SOLICITED);
		assert_memory_equal(wc.data, data, n);
		p.ops->rx_release(p.pool, wc.rx);
	}
	soft_peer_close(&p);
}

/* It stops in the middle of a payload that goes straight to its place, is looked at, and goes on.
 */
static void a_stream_that_pauses(void **state)
{
	static uint8_t data[60000], in[60000], frame[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
						.last = true,
						.msn = 1 };
	size_t parts[] = { 5000, 20000, 30000, 0 };
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	size_t at = 0;

	(void)state;
	soft_peer_fill(data, sizeof(data), 6);
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &posted);
	mr = soft_peer_reg(&p, in, sizeof(in), RVCM_DEV_ACCESS_LOCAL_WRITE);
	post_recv(&p, 5, in, sizeof(in), mr);
	parts[3] = soft_peer_fpdu(&p, &hdr, data, sizeof(data), frame) - 55000;
	for (size_t i = 0; i < 4; at += parts[i++]) {
		soft_peer_write(&p, frame + at, parts[i]);
		for (int k = 0; k < 4; k++)
			soft_peer_pump(&p);
		assert_true(i == 3 || p.n_wcs == 0);
	}
	assert_int_equal(soft_peer_wc(&p).length, sizeof(data));
	assert_memory_equal(in, data, sizeof(data));
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

static void many_messages_in_one_piece_are_held(void **state)
{
	enum {
		N = 64 /* what the pool has */
	};
	static uint8_t stream[N * 200];
	struct rvcm_dev_wc wcs[N];
	struct soft_peer p;
	size_t bytes = 0;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	for (uint32_t i = 0; i < N; i++) {
		const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
							.last = true,
							.msn = p.msn++ };

		bytes += soft_peer_fpdu(&p, &hdr, &i, sizeof(i), stream + bytes);
	}
	soft_peer_write(&p, stream, bytes);
	for (uint32_t i = 0; i < N; i++)
		wcs[i] = soft_peer_wc(&p);
	soft_peer_send(&p, "more", 4);
	for (int i = 0; i < 20; i++)
		soft_peer_pump(&p);
	assert_int_equal(p.n_taken, p.n_wcs); /* the pool is exhausted */
	for (uint32_t i = 0; i < N; i++) {
		assert_memory_equal(wcs[i].data, &i, sizeof(i));
		p.ops->rx_release(p.pool, wcs[i].rx);
	}
	wcs[0] = soft_peer_wc(&p);
	assert_memory_equal(wcs[0].data, "more", 4);
	p.ops->rx_release(p.pool, wcs[0].rx);
	soft_peer_close(&p);
}

/* RFC 7306 section 6: Immediate Data takes a receive, and tells of the WRITE before it. */
static void immediate_data_tells_of_the_write_before_it(void **state)
{
	const struct soft_peer_conf conf = { .pool = true, .own_kind = true };
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_WRITE };
	uint8_t data[100], imm[8];
	struct rvcm_dev_wc wc;
	struct rvcm_dev_mr *mr;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &conf);
	mr = soft_peer_reg(&p, data, sizeof(data), RVCM_DEV_ACCESS_REMOTE_WRITE);
	hdr.stag = mr->rkey;
	hdr.to = (uintptr_t)data;
	soft_peer_frame(&p, &hdr, "abcdefgh", 8);
	hdr.to += 8;
	hdr.last = true;
	soft_peer_frame(&p, &hdr, "ijkl", 4);
	hdr = (struct rvcm_soft_wire_hdr) { .opcode = RVCM_SOFT_WIRE_IMM_SE,
					    .last = true,
					    .msn = p.msn++ };
	rvcm_soft_wire_imm_encode(0x0123456789abcdef, imm);
	soft_peer_frame(&p, &hdr, imm, sizeof(imm));
	wc = soft_peer_wc(&p);
	assert_int_equal(wc.op, RVCM_DEV_OP_RECV_WRITE);
	assert_int_equal(wc.flags, RVCM_DEV_WC_IMM | RVCM_DEV_WC_SOLICITED);
	assert_true(wc.imm == 0x0123456789abcdef);
	assert_int_equal(wc.length, 12);
	assert_memory_equal(data, "abcdefghijkl", 12);
	p.ops->rx_release(p.pool, wc.rx);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* RFC 6581 section 9.1: it has no ULPDU, and says nothing but "go". */
static void a_ready_to_receive_frame_is_passed_over(void **state)
{
	static const uint8_t empty[8] = { 0 };
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	soft_peer_write(&p, empty, sizeof(empty));
	soft_peer_send(&p, "hello", 5);
	p.ops->rx_release(p.pool, soft_peer_wc(&p).rx);
	soft_peer_close(&p);
}

#define SEGMENT (65472u) /* as we cut */

/* What the device sends of a SEND in three segments, with that much in the last. */
static void three_segments(bool own_kind, uint32_t last, size_t filler)
{
	const struct soft_peer_conf conf = { .pool = true, .own_kind = own_kind };
	static const uint8_t empty[8] = { 0 };
	static uint8_t data[3 * SEGMENT], got[SEGMENT + 24];
	const size_t bytes[] = { SEGMENT, SEGMENT, last };
	struct rvcm_soft_wire_hdr hdr;
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	uint16_t term;

	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &conf);
	soft_peer_go(&p);
	soft_peer_fill(data, sizeof(data), 3);
	mr = soft_peer_reg(&p, data, sizeof(data), 0);
	assert_int_equal(soft_peer_post(&p, RVCM_DEV_OP_SEND, 1, data, 2 * SEGMENT + last, mr, 0),
			 0);
	for (uint32_t i = 0; i < 3; i++) {
		size_t before = i == 0 ? 0 : i == 1 ? own_kind * sizeof(empty) : filler;

		soft_peer_read(&p, got, before);
		assert_memory_equal(got, empty, before);
		soft_peer_read(&p, got, 2 + 18 + bytes[i] + 4);
		assert_int_equal(rvcm_soft_mpa_header_decode(got), 18 + bytes[i]);
		assert_int_equal(rvcm_soft_wire_decode(got + 2, 18, &hdr, &term), 18);
		assert_int_equal(hdr.mo, i * SEGMENT);
		assert_int_equal(hdr.last, i == 2);
		assert_memory_equal(got + 20, data + (size_t)i * SEGMENT, bytes[i]);
	}
	assert_int_equal(soft_peer_wc(&p).status, RVCM_STATUS_OK);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* To our own kind 32 bytes are between long payloads, with the help of a frame of no length. */
static void payloads_keep_their_alignment(void **state)
{
	(void)state;
	three_segments(false, SEGMENT, 0);
	three_segments(true, SEGMENT, 8);
	three_segments(true, 16384, 8);
	three_segments(true, 16380, 0);
}

/* -- parking -------------------------------------------------------------------------------- */

static void messages_are_parked_and_a_read_passes(const struct soft_peer_conf *conf)
{
	enum {
		N = 12
	};
	static uint8_t out[5000], in[5000], got[100];
	struct rvcm_soft_wire_read_req req;
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_hdr hdr;
	struct rvcm_dev_wc wc;
	struct rvcm_dev_mr *mr, *sink;
	struct soft_peer p;
	uint16_t term;

	soft_peer_fill(out, sizeof(out), 1);
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, conf);
	mr = soft_peer_reg(&p, in, sizeof(in), RVCM_DEV_ACCESS_LOCAL_WRITE);
	sink = soft_peer_reg(&p, got, sizeof(got), RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (int i = 0; i < N; i++)
		send_cut(&p, out, sizeof(out), 2000);
	assert_int_equal(soft_peer_post(&p, RVCM_DEV_OP_READ, 77, got, sizeof(got), sink, 0x1000),
			 0);
	soft_peer_take(&p, &frame);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_REQ);
	assert_true(rvcm_soft_wire_read_req_decode(frame.payload, frame.bytes, &req, &term) > 0);
	assert_int_equal(req.bytes, sizeof(got));
	assert_int_equal(req.source_stag, 0x1234);
	assert_int_equal(req.source_to, 0x1000);
	hdr = (struct rvcm_soft_wire_hdr) { .opcode = RVCM_SOFT_WIRE_READ_RESP,
					    .last = true,
					    .stag = req.sink_stag,
					    .to = req.sink_to };
	soft_peer_frame(&p, &hdr, out, sizeof(got));
	wc = soft_peer_wc(&p);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_memory_equal(got, out, sizeof(got));
	for (uint32_t i = 0; i < N; i++) {
		memset(in, 0, sizeof(in));
		post_recv(&p, i, in, sizeof(in), mr);
		wc = soft_peer_wc(&p);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.length, sizeof(in));
		assert_memory_equal(in, out, sizeof(in));
	}
	p.ops->mr_dereg(mr);
	p.ops->mr_dereg(sink);
	soft_peer_close(&p);
}

static void parked_messages_let_a_read_pass(void **state)
{
	(void)state;
	messages_are_parked_and_a_read_passes(&posted);
	messages_are_parked_and_a_read_passes(&shared);
}

/* When no more can be parked the peer is held up, and nothing is lost. */
static void a_full_park_stops_reading(void **state)
{
	enum {
		N = 40
	};
	static uint8_t out[20000], in[20000];
	struct rvcm_soft_tunables tun;
	struct rvcm_dev_mr *mr;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.park_bufs_max = 2;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &posted);
	mr = soft_peer_reg(&p, in, sizeof(in), RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < N; i++) {
		soft_peer_fill(out, sizeof(out), i);
		send_cut(&p, out, sizeof(out), 9000);
		soft_peer_pump(&p);
	}
	for (uint32_t i = 0; i < N; i++) {
		soft_peer_fill(out, sizeof(out), i);
		post_recv(&p, i, in, sizeof(in), mr);
		assert_int_equal(soft_peer_wc(&p).wr_id, i);
		assert_memory_equal(in, out, sizeof(in));
	}
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* The peer's orderly end does not overtake what it sent before. */
static void the_end_waits_for_parked_messages(void **state)
{
	uint8_t in[8];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &posted);
	mr = soft_peer_reg(&p, in, sizeof(in), RVCM_DEV_ACCESS_LOCAL_WRITE);
	soft_peer_send(&p, "last", 4);
	shutdown(p.fd, SHUT_WR);
	for (int i = 0; i < 50; i++)
		soft_peer_pump(&p);
	assert_false(p.have_event);
	post_recv(&p, 1, in, sizeof(in), mr);
	assert_int_equal(soft_peer_wc(&p).length, 4);
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status, RVCM_STATUS_OK);
	soft_peer_expect_end(&p);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* -- polling -------------------------------------------------------------------------------- */

static struct rvcm_dev_qp *own_qp(struct soft_peer *p, char *ctx)
{
	const struct rvcm_dev_qp_attr attr = {
		.cq = p->cq, .pool = p->pool, .sq_depth = 4, .sge_max = 1, .ctx = ctx
	};
	struct rvcm_dev_qp *qp;

	assert_int_equal(p->ops->qp_open(p->dev, &attr, &qp), 0);
	return qp;
}

/* A connection of the device with itself, attached to the same CQ. */
static void own_link(struct soft_peer *p, struct rvcm_dev_qp *qp[2])
{
	static char ctx[2];

	qp[0] = own_qp(p, &ctx[0]);
	qp[1] = own_qp(p, &ctx[1]);
	assert_int_equal(p->ops->connect(qp[0], &p->addr, NULL, 0), 0);
	soft_peer_event(p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(p->ops->accept(p->event.req, qp[1], NULL, 0), 0);
	for (int i = 0; i < 2; i++)
		soft_peer_event(p, RVCM_DEV_EVENT_ESTABLISHED);
	for (int i = 0; i < 2; i++)
		assert_int_equal(p->ops->attach(qp[i]), 0);
}

static void own_link_close(struct soft_peer *p, struct rvcm_dev_qp *qp[2])
{
	for (int i = 0; i < 2; i++) {
		p->ops->detach(qp[i]);
		p->ops->qp_close(qp[i]);
	}
}

/*
 * QPs are polled directly while they are few, and through epoll when there are more: who is held up
 * by a full socket at that moment goes on all the same.
 */
static void a_blocked_sender_goes_on_when_qps_become_many(void **state)
{
	enum {
		N = 12,
		BYTES = 1 << 20
	};
	static uint8_t data[BYTES];
	static struct soft_peer_frame frame;
	struct rvcm_soft_tunables tun;
	struct rvcm_dev_qp *other[2];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	size_t got = 0;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.poll_direct_max = 1;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	mr = soft_peer_reg(&p, data, BYTES, RVCM_DEV_ACCESS_REMOTE_READ);
	own_link(&p, other);
	for (int i = 0; i < 5; i++)
		soft_peer_pump(&p);
	own_link_close(&p, other);
	for (uint32_t i = 0; i < N; i++)
		soft_peer_ask(&p, BYTES, data, mr);
	for (int i = 0; i < 20; i++) /* the peer does not read */
		soft_peer_pump(&p);
	own_link(&p, other);
	while (got < (size_t)N * BYTES) {
		soft_peer_take(&p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_RESP);
		got += frame.bytes;
	}
	own_link_close(&p, other);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* -- ends ----------------------------------------------------------------------------------- */

/* A peer that is gone in the middle of something is lost; between frames it has ended in order. */
static void gone(size_t bytes, bool direct, enum rvcm_status status)
{
	static uint8_t data[50000], frame[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
						.last = true,
						.msn = 1 };
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	struct rvcm_dev_wc wc;

	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &posted);
	mr = soft_peer_reg(&p, data, sizeof(data), RVCM_DEV_ACCESS_LOCAL_WRITE);
	post_recv(&p, 5, data, sizeof(data), mr);
	soft_peer_fpdu(&p, &hdr, data, direct ? sizeof(data) : 100, frame);
	soft_peer_write(&p, frame, bytes);
	soft_peer_pump(&p);
	close(p.fd);
	p.fd = -1;
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status, status);
	wc = soft_peer_wc(&p);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, status == RVCM_STATUS_OK ? RVCM_STATUS_FLUSHED : status);
	assert_int_equal(p.qp->err, status == RVCM_STATUS_OK ? 0 : ECONNRESET);
	assert_int_equal(p.ops->qp_state(p.qp), RVCM_DEV_QP_ERROR);
	soft_peer_pump(&p);
	assert_int_equal(p.n_taken, p.n_wcs);
	assert_false(p.have_event);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

static void a_peer_that_is_gone(void **state)
{
	(void)state;
	gone(0, false, RVCM_STATUS_OK);
	gone(1, false, RVCM_STATUS_CONNECTION_LOST);
	gone(20, false, RVCM_STATUS_CONNECTION_LOST);
	gone(100, false, RVCM_STATUS_CONNECTION_LOST);
	gone(100, true, RVCM_STATUS_CONNECTION_LOST);
	gone(40000, true, RVCM_STATUS_CONNECTION_LOST);
	gone(50000 + 20, true, RVCM_STATUS_CONNECTION_LOST); /* all but the trailer */
}

/* A peer that does not answer our orderly end is given close_timeout. */
static void a_peer_that_does_not_end_its_side(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.close_timeout_ms = 20;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	assert_int_equal(p.ops->disconnect(p.qp), 0);
	assert_int_equal(p.ops->qp_state(p.qp), RVCM_DEV_QP_CLOSING);
	soft_peer_expect_end(&p);
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status,
			 RVCM_STATUS_RESPONSE_TIMEOUT);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_of_any_size_into_a_pool),
		cmocka_unit_test(segments_of_any_size_into_receives),
		cmocka_unit_test(segments_of_any_size_into_shared_receives),
		cmocka_unit_test(a_stream_that_trickles),
		cmocka_unit_test(a_stream_that_pauses),
		cmocka_unit_test(many_messages_in_one_piece_are_held),
		cmocka_unit_test(immediate_data_tells_of_the_write_before_it),
		cmocka_unit_test(a_ready_to_receive_frame_is_passed_over),
		cmocka_unit_test(payloads_keep_their_alignment),
		cmocka_unit_test(parked_messages_let_a_read_pass),
		cmocka_unit_test(a_full_park_stops_reading),
		cmocka_unit_test(the_end_waits_for_parked_messages),
		cmocka_unit_test(a_blocked_sender_goes_on_when_qps_become_many),
		cmocka_unit_test(a_peer_that_is_gone),
		cmocka_unit_test(a_peer_that_does_not_end_its_side),
	};

	return cmocka_run_group_tests_name("soft_data", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* READs of a foreign RNIC, which we serve, and ours, which it serves: how many, and how they end.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG 150000u

static const struct soft_peer_conf pooled = { .pool = true };

static void reads_are_served(void **state)
{
	static uint8_t data[BIG];
	struct soft_peer p;

	(void)state;
	soft_peer_fill(data, BIG, 9);
	for (int crc = 0; crc < 2; crc++) {
		struct rvcm_dev_mr *mr;

		soft_peer_open(&p, NULL);
		p.crc = crc;
		soft_peer_up(&p, &pooled);
		mr = soft_peer_reg(&p, data, BIG, RVCM_DEV_ACCESS_REMOTE_READ);
		soft_peer_serve(&p, 0, data, mr);
		soft_peer_serve(&p, 1, data, mr);
		soft_peer_serve(&p, 5000, data, mr);
		soft_peer_serve(&p, BIG, data, mr);
		p.ops->mr_dereg(mr);
		soft_peer_close(&p);
	}
}

/*
 * A peer that always has as many READs open as it may (16 here: its ORD) asks for the next as soon
 * as it has the last byte of one. That may have gone out with a part of the next response, the rest
 * of which waits for room in the socket.
 */
static void reads_may_follow_their_responses(void **state)
{
	enum {
		OPEN = 16,
		N = 48,
		HUGE_BYTES = 1 << 20
	};
	static uint8_t data[HUGE_BYTES];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;

	(void)state;
	soft_peer_fill(data, HUGE_BYTES, 10);
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = soft_peer_reg(&p, data, HUGE_BYTES, RVCM_DEV_ACCESS_REMOTE_READ);
	for (int i = 0; i < OPEN; i++)
		soft_peer_ask(&p, HUGE_BYTES, data, mr);
	for (int i = 0; i < N; i++) {
		soft_peer_response(&p, HUGE_BYTES, data);
		soft_peer_ask(&p, HUGE_BYTES, data, mr);
	}
	for (int i = 0; i < OPEN; i++)
		soft_peer_response(&p, HUGE_BYTES, data);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* No more READs are open than the peer's IRD (4 here); the others follow as responses come. */
static void reads_keep_to_the_peers_limit(void **state)
{
	enum {
		N = 10
	};
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_read_req req[N];
	uint8_t sink[N];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	uint16_t term;
	uint8_t c;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = soft_peer_reg(&p, sink, sizeof(sink), RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(soft_peer_post(&p, RVCM_DEV_OP_READ, i, sink + i, 1, mr, i), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_RESP,
						  .last = true };

		/* Asked: 0, 1, 2, 3, then one more for each that is answered. */
		for (uint32_t k = i ? i + 3 : 0; k < i + 4 && k < N; k++) {
			soft_peer_take(&p, &frame);
			assert_int_equal(frame.hdr.msn, k + 1);
			assert_true(rvcm_soft_wire_read_req_decode(frame.payload, frame.bytes,
								   &req[k], &term) > 0);
			assert_int_equal(req[k].source_to, k);
		}
		for (int k = 0; k < 5; k++)
			soft_peer_pump(&p);
		assert_true(recv(p.fd, &c, 1, MSG_PEEK) < 0);
		hdr.stag = req[i].sink_stag;
		hdr.to = req[i].sink_to;
		c = (uint8_t)(i + 1);
		soft_peer_frame(&p, &hdr, &c, 1);
		assert_int_equal(soft_peer_wc(&p).wr_id, i);
		assert_int_equal(sink[i], i + 1);
	}
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* RFC 5040 section 4.8: the TERMINATE names the READ that was wrong; the others are flushed. */
static void a_terminate_names_its_read(void **state)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_TERMINATE,
					  .last = true,
					  .msn = 1 };
	struct rvcm_soft_wire_terminate t;
	uint8_t sink[3], body[RVCM_SOFT_WIRE_TERM_BYTES_MAX], ulpdu[64];
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	size_t n = 0;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = soft_peer_reg(&p, sink, sizeof(sink), RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(soft_peer_post(&p, RVCM_DEV_OP_READ, i, sink + i, 1, mr, i), 0);
	for (uint32_t i = 0; i < 3; i++) {
		soft_peer_take(&p, &frame);
		if (i == 1) {
			n = rvcm_soft_wire_encode(&frame.hdr, ulpdu);
			memcpy(ulpdu + n, frame.payload, frame.bytes);
			n += frame.bytes;
		}
	}
	rvcm_soft_wire_terminate_fill(&t, RVCM_SOFT_WIRE_TERM_R_BOUNDS, ulpdu, n, n);
	n = rvcm_soft_wire_terminate_encode(&t, body);
	soft_peer_frame(&p, &hdr, body, n);
	for (uint32_t i = 0; i < 3; i++) {
		struct rvcm_dev_wc wc = soft_peer_wc(&p);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status,
				 i == 1 ? RVCM_STATUS_REMOTE_ACCESS : RVCM_STATUS_FLUSHED);
	}
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status,
			 RVCM_STATUS_REMOTE_ACCESS);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
}

/* In the middle, which is not looked at when it is registered: the kernel finds it when it copies.
 */
static void a_place_that_may_only_be_read(void **state)
{
	enum {
		BYTES = 60000, /* of the frame, and its buffer's pages are 4 KiB, or larger and two
				*/
		BEGIN = 100
	};
	static uint8_t out[BYTES], fpdu[BYTES + 64];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
	uint8_t *sink =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_RESP, .last = true };
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_read_req req;
	struct rvcm_dev_mr *mr;
	struct soft_peer p;
	struct rvcm_dev_wc wc;
	uint16_t term;
	size_t n;

	(void)state;
	assert_ptr_not_equal(sink, MAP_FAILED);
	assert_int_equal(mprotect(sink + page, page, PROT_READ), 0);
	soft_peer_fill(out, BYTES, 3);
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	mr = soft_peer_reg(&p, sink, BYTES, RVCM_DEV_ACCESS_LOCAL_WRITE);
	assert_int_equal(soft_peer_post(&p, RVCM_DEV_OP_READ, 7, sink, BYTES, mr, 0), 0);
	soft_peer_take(&p, &frame);
	assert_true(rvcm_soft_wire_read_req_decode(frame.payload, frame.bytes, &req, &term) > 0);
	hdr.stag = req.sink_stag;
	hdr.to = req.sink_to;
	n = soft_peer_fpdu(&p, &hdr, out, BYTES, fpdu);
	soft_peer_write(&p, fpdu, BEGIN);
	for (int i = 0; i < 10000 && sink[0] != out[0]; i++)
		soft_peer_pump(&p);
	assert_int_equal(sink[0], out[0]); /* it goes to its place from here on */
	soft_peer_write(&p, fpdu + BEGIN, n - BEGIN);
	wc = soft_peer_wc(&p);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, RVCM_STATUS_FLUSHED);
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->status,
			 RVCM_STATUS_LOCAL_PROTECTION);
	assert_int_equal(p.event.err, EFAULT);
	p.ops->mr_dereg(mr);
	soft_peer_close(&p);
	munmap(sink, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_served),
		cmocka_unit_test(reads_may_follow_their_responses),
		cmocka_unit_test(reads_keep_to_the_peers_limit),
		cmocka_unit_test(a_terminate_names_its_read),
		cmocka_unit_test(a_place_that_may_only_be_read),
	};

	return cmocka_run_group_tests_name("soft_read", tests, NULL, NULL);
}

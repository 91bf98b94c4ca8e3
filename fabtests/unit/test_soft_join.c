/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages in two segments, in pool mode: put together in the read buffer if both are there. */
#include "unit/unit.h"

#include "unit/soft_peer.h"

#include <string.h>

#include "dev/soft/dev_impl.h"

#define LONGEST 65472u /* of a segment of ours */

static const struct soft_peer_conf pooled = { .pool = true };

static uint8_t out[2 * LONGEST], wire[4 * LONGEST];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + i / 255);
}

/* Both segments of a message, into wire; returns their bytes. */
static size_t two(struct soft_peer *p, size_t first, size_t last)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND, .msn = p->msn++ };
	size_t n = soft_peer_fpdu(p, &hdr, out, first, wire);

	hdr.mo = (uint32_t)first;
	hdr.last = true;
	return n + soft_peer_fpdu(p, &hdr, out + first, last, wire + n);
}

static void expect(struct soft_peer *p, size_t bytes, bool joined)
{
	struct rvcm_dev_wc wc = soft_peer_wc(p);

	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_int_equal(wc.length, bytes);
	assert_memory_equal(wc.data, out, bytes);
	/* What was put together elsewhere is in a buffer of the pool. */
	assert_int_equal(((const struct rvcm_soft_buf *)wc.rx)->pool == NULL, joined);
	p->ops->rx_release(p->pool, wc.rx);
}

static void open_peer(struct soft_peer *p, bool crc)
{
	fill();
	soft_peer_open(p, NULL);
	p->crc = crc;
	soft_peer_up(p, &pooled);
}

static void both_at_once(bool crc)
{
	static const size_t sizes[][2] = { { 1, 1 },      { 7, 0 },      { 500, 20 },
					   { 500, 500 },  { 4001, 999 }, { LONGEST, 96 },
					   { LONGEST, 0 } };
	struct soft_peer p;

	open_peer(&p, crc);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = two(&p, sizes[i][0], sizes[i][1]);
		const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
							.last = true,
							.msn = p.msn++ };

		/* And what is behind them is found. */
		n += soft_peer_fpdu(&p, &hdr, out, 33, wire + n);
		soft_peer_write(&p, wire, n);
		expect(&p, sizes[i][0] + sizes[i][1], true);
		expect(&p, 33, true);
	}
	soft_peer_close(&p);
}

static void two_at_once_are_one(void **state)
{
	(void)state;
	both_at_once(false);
	both_at_once(true);
}

static void a_longer_second_one_is_not_moved(void **state)
{
	struct soft_peer p;

	(void)state;
	open_peer(&p, true);
	soft_peer_write(&p, wire, two(&p, 20, 300));
	expect(&p, 320, false);
	soft_peer_close(&p);
}

/* The first one alone, then the rest, a byte at a time. */
static void what_comes_bit_by_bit_is_whole(void **state)
{
	struct soft_peer p;
	size_t n;

	(void)state;
	open_peer(&p, true);
	n = two(&p, 200, 40);
	soft_peer_trickle(&p, wire, n);
	expect(&p, 240, false);
	soft_peer_close(&p);
}

/* wrong: which byte, counted from the end. */
static void refuses(size_t wrong)
{
	struct rvcm_soft_wire_terminate t;
	struct soft_peer p;
	size_t n;

	open_peer(&p, true);
	n = two(&p, 200, 40);
	wire[n - wrong] ^= 1;
	soft_peer_write(&p, wire, n);
	soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_L_CRC, &t);
	soft_peer_close(&p);
}

static void each_has_its_crc(void **state)
{
	(void)state;
	refuses(10);  /* in the second's payload */
	refuses(120); /* in the first's */
}

static void what_there_is_no_room_for_stays_as_it_is(void **state)
{
	enum {
		HELD = 64 /* what the pool has */
	};
	struct rvcm_dev_wc held[HELD];
	struct soft_peer p;

	(void)state;
	open_peer(&p, true);
	for (uint32_t i = 0; i < HELD; i++) {
		soft_peer_send(&p, out, 5);
		held[i] = soft_peer_wc(&p);
	}
	soft_peer_write(&p, wire, two(&p, 200, 40));
	for (int i = 0; i < 10; i++)
		soft_peer_pump(&p);
	assert_int_equal(p.n_taken, p.n_wcs);
	p.ops->rx_release(p.pool, held[0].rx);
	expect(&p, 240, true);
	for (uint32_t i = 1; i < HELD; i++)
		p.ops->rx_release(p.pool, held[i].rx);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_at_once_are_one),
		cmocka_unit_test(a_longer_second_one_is_not_moved),
		cmocka_unit_test(what_comes_bit_by_bit_is_whole),
		cmocka_unit_test(each_has_its_crc),
		cmocka_unit_test(what_there_is_no_room_for_stays_as_it_is),
	};

	return cmocka_run_group_tests_name("soft join", tests, NULL, NULL);
}

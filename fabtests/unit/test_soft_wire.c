/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "unit/exact.h"
#include <errno.h>
#include "base/rng.h"
#include "dev/soft/wire.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Headers written out from RFC 5041 figures 4 (tagged) and 5 (untagged), with RDMAP's byte from RFC
 * 5040 figures 3 and 4 and RFC 7306 figure 2. First byte: T 80, L 40, version 1; second: version 40
 * and opcode.
 */
static const struct golden {
	uint8_t bytes[18];
	size_t n;
	struct rvcm_soft_wire_hdr hdr;
} golden[] = {
	{ { 0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05 },
	  14,
	  { .opcode = RVCM_SOFT_WIRE_WRITE,
	    .last = true,
	    .stag = 0x11223344,
	    .to = 0x7f0102030405 } },
	{ { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_READ_REQ, .last = true, .qn = 1, .msn = 7 } },
	{ { 0x81, 0x42, 0xde, 0xad, 0xbe, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe },
	  14,
	  { .opcode = RVCM_SOFT_WIRE_READ_RESP, .stag = 0xdeadbeef, .to = 0xfffffffffffffffe } },
	/* RFC 5044 figure 5. */
	{ { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_SEND, .last = true, .msn = 1 } },
	{ { 0x01, 0x44, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_SEND_INV,
	    .inval_stag = 0xa1a2a3a4,
	    .msn = 256,
	    .mo = 0x10203 } },
	{ { 0x01, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 1 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_SEND_SE, .msn = 0xffffffff, .mo = 0x80000001 } },
	{ { 0x41, 0x46, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_SEND_SE_INV, .last = true, .inval_stag = 9, .msn = 2 } },
	{ { 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_TERMINATE, .last = true, .qn = 2, .msn = 1 } },
	{ { 0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_IMM, .last = true, .msn = 3 } },
	{ { 0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_IMM_SE, .last = true, .msn = 4 } },
	{ { 0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_ATOMIC_REQ, .last = true, .qn = 1, .msn = 5 } },
	{ { 0x41, 0x4b, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0, 0 },
	  18,
	  { .opcode = RVCM_SOFT_WIRE_ATOMIC_RESP, .last = true, .qn = 3, .msn = 6 } },
};

/* Wrong segments, the code each must give, and how many bytes suffice to see it. */
static const struct wrong {
	uint8_t bytes[18];
	size_t seen;
	uint16_t term;
} wrong[] = {
	/* DDP version 0 and 2, untagged and tagged. */
	{ { 0x40, 0x43 }, 1, RVCM_SOFT_WIRE_TERM_D_U_VERSION },
	{ { 0x42, 0x43 }, 1, RVCM_SOFT_WIRE_TERM_D_U_VERSION },
	{ { 0xc0, 0x40 }, 1, RVCM_SOFT_WIRE_TERM_D_T_VERSION },
	{ { 0xc3, 0x40 }, 1, RVCM_SOFT_WIRE_TERM_D_T_VERSION },
	/* RDMAP version 0, 2, 3. */
	{ { 0x41, 0x03 }, 2, RVCM_SOFT_WIRE_TERM_R_VERSION },
	{ { 0x41, 0x83 }, 2, RVCM_SOFT_WIRE_TERM_R_VERSION },
	{ { 0xc1, 0xc0 }, 2, RVCM_SOFT_WIRE_TERM_R_VERSION },
	/* Opcodes that are none. */
	{ { 0x41, 0x4c }, 2, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	{ { 0xc1, 0x4f }, 2, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	/* SEND tagged, WRITE untagged. */
	{ { 0xc1, 0x43 }, 2, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	{ { 0x41, 0x40 }, 2, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	/* A queue that is none: 4, and one that is in the high byte only. */
	{ { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 4 }, 18, RVCM_SOFT_WIRE_TERM_D_QN },
	{ { 0x41, 0x43, 0, 0, 0, 0, 1, 0, 0, 0 }, 18, RVCM_SOFT_WIRE_TERM_D_QN },
	/* SEND on the read queue, a read request on the send queue. */
	{ { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 1 }, 18, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	{ { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 0 }, 18, RVCM_SOFT_WIRE_TERM_R_OPCODE },
	/* A read request that begins in its middle, or goes on; the same of TERMINATE. */
	{ { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4 },
	  18,
	  RVCM_SOFT_WIRE_TERM_D_MO },
	{ { 0x01, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0 },
	  18,
	  RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED },
	{ { 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0 },
	  18,
	  RVCM_SOFT_WIRE_TERM_D_MO },
	{ { 0x01, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0 },
	  18,
	  RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED },
};

static void assert_same(const struct rvcm_soft_wire_hdr *a, const struct rvcm_soft_wire_hdr *b)
{
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->last, b->last);
	assert_int_equal(a->stag, b->stag);
	assert_true(a->to == b->to);
	assert_int_equal(a->inval_stag, b->inval_stag);
	assert_int_equal(a->qn, b->qn);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->mo, b->mo);
}

/* Decodes n bytes in a copy that ends there; outputs may change only as the contract says. */
static int decode(const uint8_t *bytes, size_t n, struct rvcm_soft_wire_hdr *hdr, uint16_t *term)
{
	struct rvcm_soft_wire_hdr before;
	uint8_t *p = exact_copy(bytes, n);
	int rc;

	memset(hdr, 0x5a, sizeof(*hdr));
	before = *hdr;
	*term = 0x5a5a;
	rc = rvcm_soft_wire_decode(p, n, hdr, term);
	if (rc <= 0)
		assert_memory_equal(hdr, &before, sizeof(before));
	if (rc >= 0)
		assert_int_equal(*term, 0x5a5a);
	free(p);
	return rc;
}

static void headers_decode(void **state)
{
	struct rvcm_soft_wire_hdr hdr;
	uint16_t term;

	(void)state;
	assert_int_equal(N(golden), RVCM_SOFT_WIRE_OPCODES);
	for (size_t i = 0; i < N(golden); i++) {
		for (size_t n = 0; n < golden[i].n; n++)
			assert_int_equal(decode(golden[i].bytes, n, &hdr, &term), 0);
		assert_int_equal(decode(golden[i].bytes, golden[i].n, &hdr, &term), golden[i].n);
		assert_same(&hdr, &golden[i].hdr);
	}
}

static void headers_encode(void **state)
{
	uint8_t buf[RVCM_SOFT_WIRE_HDR_BYTES_MAX + 1];

	(void)state;
	for (size_t i = 0; i < N(golden); i++) {
		memset(buf, 0xee, sizeof(buf));
		assert_int_equal(rvcm_soft_wire_encode(&golden[i].hdr, buf), golden[i].n);
		assert_memory_equal(buf, golden[i].bytes, golden[i].n);
		assert_int_equal(buf[golden[i].n], 0xee);
	}
}

/* RFC 5040 section 4.1: the invalidate STag is sent as zero where it is none. The queue is known.
 */
static void what_an_opcode_has_not_is_not_sent(void **state)
{
	uint8_t buf[RVCM_SOFT_WIRE_HDR_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < N(golden); i++) {
		struct rvcm_soft_wire_hdr h = golden[i].hdr;

		if (h.inval_stag == 0)
			h.inval_stag = 0xffffffff;
		h.qn = 77;
		assert_int_equal(rvcm_soft_wire_encode(&h, buf), golden[i].n);
		assert_memory_equal(buf, golden[i].bytes, golden[i].n);
	}
}

static void wrong_headers(void **state)
{
	struct rvcm_soft_wire_hdr hdr;
	uint16_t term;

	(void)state;
	for (size_t i = 0; i < N(wrong); i++)
		for (size_t n = 0; n <= sizeof(wrong[i].bytes); n++) {
			int rc = decode(wrong[i].bytes, n, &hdr, &term);

			assert_int_equal(rc, n < wrong[i].seen ? 0 : -EPROTO);
			if (rc < 0)
				assert_int_equal(term, wrong[i].term);
		}
}

/* Each opcode on each queue: exactly one is right. */
static void each_opcode_has_one_queue(void **state)
{
	struct rvcm_soft_wire_hdr hdr;
	uint16_t term;

	(void)state;
	for (size_t i = 0; i < N(golden); i++) {
		uint8_t bytes[18];

		if (golden[i].n == 14)
			continue;
		memcpy(bytes, golden[i].bytes, sizeof(bytes));
		for (uint8_t qn = 0; qn < 6; qn++) {
			bytes[9] = qn;
			if (qn == golden[i].hdr.qn) {
				assert_int_equal(decode(bytes, 18, &hdr, &term), 18);
				continue;
			}
			assert_int_equal(decode(bytes, 18, &hdr, &term), -EPROTO);
			assert_int_equal(term, qn < 4 ? RVCM_SOFT_WIRE_TERM_R_OPCODE
						      : RVCM_SOFT_WIRE_TERM_D_QN);
		}
	}
}

static void reserved_bits_are_ignored(void **state)
{
	struct rvcm_soft_wire_hdr hdr;
	uint16_t term;
	uint8_t bytes[18];

	(void)state;
	for (size_t i = 0; i < N(golden); i++) {
		memcpy(bytes, golden[i].bytes, sizeof(bytes));
		bytes[0] |= 0x3c;
		bytes[1] |= 0x30;
		/* The invalidate STag is reserved in messages that do not invalidate. */
		if (golden[i].n == 18 && golden[i].hdr.inval_stag == 0)
			bytes[3] = 0x77;
		assert_int_equal(decode(bytes, golden[i].n, &hdr, &term), golden[i].n);
		assert_same(&hdr, &golden[i].hdr);
	}
}

/* RFC 5040 figures 4 and 5, RFC 7306 figures 2 and 3, once more. */
static void the_opcode_table_is_the_rfcs(void **state)
{
	static const struct {
		bool tagged;
		uint8_t qn;
		uint8_t body;
		bool solicited;
		bool invalidates;
	} rows[] = {
		{ .tagged = true }, /* 0 RDMA write */
		{ .qn = 1, .body = 28 },
		{ .tagged = true },
		{ .qn = 0 },
		{ .invalidates = true },
		{ .solicited = true },
		{ .solicited = true, .invalidates = true },
		{ .qn = 2 },
		{ .body = 8 },
		{ .body = 8, .solicited = true },
		{ .qn = 1, .body = 52 },
		{ .qn = 3, .body = 12 }, /* 11 atomic response */
	};

	(void)state;
	assert_int_equal(N(rows), RVCM_SOFT_WIRE_OPCODES);
	for (unsigned int i = 0; i < N(rows); i++) {
		const struct rvcm_soft_wire_opcode_info *info = rvcm_soft_wire_opcode_info(i);

		assert_non_null(info);
		assert_non_null(info->name);
		assert_int_equal(info->tagged, rows[i].tagged);
		assert_int_equal(info->qn, rows[i].qn);
		assert_int_equal(info->body_bytes, rows[i].body);
		assert_int_equal(info->header_bytes, rows[i].tagged ? 14 : 18);
		assert_int_equal(info->solicited, rows[i].solicited);
		assert_int_equal(info->invalidates, rows[i].invalidates);
	}
	assert_null(rvcm_soft_wire_opcode_info(12));
	assert_null(rvcm_soft_wire_opcode_info(0xffffffff));
}

static void any_header_comes_back(void **state)
{
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 4);
	for (int round = 0; round < 20000; round++) {
		struct rvcm_soft_wire_hdr h = { .opcode =
							(uint8_t)(round % RVCM_SOFT_WIRE_OPCODES) };
		const struct rvcm_soft_wire_opcode_info *info =
			rvcm_soft_wire_opcode_info(h.opcode);
		bool single = info->body_bytes > 0 || h.opcode == RVCM_SOFT_WIRE_TERMINATE;
		struct rvcm_soft_wire_hdr back;
		uint8_t buf[RVCM_SOFT_WIRE_HDR_BYTES_MAX];
		uint16_t term;
		size_t n;

		h.last = single || rvcm_rng_next(&rng) & 1;
		if (info->tagged) {
			h.stag = (uint32_t)rvcm_rng_next(&rng);
			h.to = rvcm_rng_next(&rng);
		} else {
			h.qn = info->qn;
			h.msn = (uint32_t)rvcm_rng_next(&rng);
			h.mo = single ? 0 : (uint32_t)rvcm_rng_next(&rng);
			h.inval_stag = info->invalidates ? (uint32_t)rvcm_rng_next(&rng) : 0;
		}
		n = rvcm_soft_wire_encode(&h, buf);
		assert_int_equal(decode(buf, n, &back, &term), n);
		assert_same(&back, &h);
	}
}

/* Whatever decodes is, but for reserved bits, what encoding gives. */
static void any_bytes_are_decoded_faithfully(void **state)
{
	struct rvcm_soft_wire_hdr hdr;
	struct rvcm_rng rng;
	unsigned int good = 0;

	(void)state;
	rvcm_rng_init(&rng, 5);
	for (int round = 0; round < 200000; round++) {
		uint8_t bytes[18], buf[RVCM_SOFT_WIRE_HDR_BYTES_MAX];
		uint16_t term;
		int n;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rvcm_rng_next(&rng);
		bytes[0] = (uint8_t)((bytes[0] & 0xfc) | 1); /* versions and queues are right */
		bytes[1] = (uint8_t)((bytes[1] & 0x3f) | 0x40);
		if (!(bytes[0] & 0x80)) {
			memset(bytes + 6, 0, 3);
			bytes[9] &= 3;
		}
		n = decode(bytes, sizeof(bytes) - (size_t)(round % 5), &hdr, &term);
		if (n <= 0)
			continue;
		good++;
		assert_int_equal(rvcm_soft_wire_encode(&hdr, buf), n);
		assert_int_equal(buf[0], bytes[0] & 0xc3);
		assert_int_equal(buf[1], bytes[1] & 0xcf);
		if (rvcm_soft_wire_opcode_info(hdr.opcode)->tagged || hdr.inval_stag != 0)
			assert_memory_equal(buf + 2, bytes + 2, 4);
		assert_memory_equal(buf + 6, bytes + 6, (size_t)n - 6);
	}
	assert_true(good > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_decode),
		cmocka_unit_test(headers_encode),
		cmocka_unit_test(what_an_opcode_has_not_is_not_sent),
		cmocka_unit_test(wrong_headers),
		cmocka_unit_test(each_opcode_has_one_queue),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(the_opcode_table_is_the_rfcs),
		cmocka_unit_test(any_header_comes_back),
		cmocka_unit_test(any_bytes_are_decoded_faithfully),
	};

	return cmocka_run_group_tests_name("soft_wire", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows the headers: the fixed bodies and TERMINATE. */
#include "unit/unit.h"
#include "unit/exact.h"
#include <errno.h>
#include "base/rng.h"
#include "dev/soft/wire.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* RFC 5040 figure 6. */
static const uint8_t read_req_bytes[] = {
	0x01, 0x02, 0x03, 0x04,                         /* sink STag */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* sink TO */
	0x00, 0x01, 0x00, 0x00,                         /* size */
	0x21, 0x22, 0x23, 0x24,                         /* source STag */
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, /* source TO */
};
static const struct rvcm_soft_wire_read_req read_req = { .sink_stag = 0x01020304,
							 .sink_to = 0x1112131415161718,
							 .bytes = 65536,
							 .source_stag = 0x21222324,
							 .source_to = 0x3132333435363738 };

/* RFC 7306 figure 4. */
static const uint8_t cmp_swap_bytes[] = {
	0x00, 0x00, 0x00, 0x02,                         /* opcode */
	0x41, 0x42, 0x43, 0x44,                         /* request identifier */
	0x51, 0x52, 0x53, 0x54,                         /* STag */
	0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, /* TO */
	0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, /* swap data */
	0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, /* swap mask */
	0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, /* compare data */
	0x00, 0xff, 0x00, 0xff, 0x00, 0xff, 0x00, 0xff, /* compare mask */
};
static const struct rvcm_soft_wire_atomic_req cmp_swap = { .op = RVCM_SOFT_WIRE_CMP_SWAP,
							   .request_id = 0x41424344,
							   .stag = 0x51525354,
							   .to = 0x6162636465666768,
							   .data = 0x7172737475767778,
							   .data_mask = 0xffffffff00000000,
							   .compare = 0x8182838485868788,
							   .compare_mask = 0x00ff00ff00ff00ff };

/* RFC 7306 figure 6. */
static const uint8_t atomic_resp_bytes[] = {
	0x91, 0x92, 0x93, 0x94, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,
};

/* RFC 7306 figure 7. */
static const uint8_t imm_bytes[] = { 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8 };

static int any_body(unsigned int which, const void *p, size_t n, uint16_t *term)
{
	struct rvcm_soft_wire_read_req read;
	struct rvcm_soft_wire_atomic_req req;
	struct rvcm_soft_wire_atomic_resp resp;
	uint64_t imm;

	switch (which) {
	case 0:
		return rvcm_soft_wire_read_req_decode(p, n, &read, term);
	case 1:
		return rvcm_soft_wire_atomic_req_decode(p, n, &req, term);
	case 2:
		return rvcm_soft_wire_atomic_resp_decode(p, n, &resp, term);
	default:
		return rvcm_soft_wire_imm_decode(p, n, &imm, term);
	}
}

static void bodies_have_one_length(void **state)
{
	static const size_t lengths[] = { 28, 52, 12, 8 };
	static const uint8_t zeros[64];

	(void)state;
	for (unsigned int i = 0; i < N(lengths); i++)
		for (size_t n = 0; n <= sizeof(zeros); n++) {
			void *p = exact_copy(zeros, n);
			uint16_t term = 0;
			int rc = any_body(i, p, n, &term);

			assert_int_equal(rc, n == lengths[i] ? (int)n : -EPROTO);
			if (n < lengths[i])
				assert_int_equal(term, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
			if (n > lengths[i])
				assert_int_equal(term, RVCM_SOFT_WIRE_TERM_D_TOO_LONG);
			free(p);
		}
}

static void read_request(void **state)
{
	struct rvcm_soft_wire_read_req req;
	uint8_t buf[RVCM_SOFT_WIRE_READ_REQ_BYTES];
	uint16_t term;

	(void)state;
	assert_int_equal(rvcm_soft_wire_read_req_decode(read_req_bytes, 28, &req, &term), 28);
	assert_int_equal(req.sink_stag, read_req.sink_stag);
	assert_true(req.sink_to == read_req.sink_to);
	assert_int_equal(req.bytes, read_req.bytes);
	assert_int_equal(req.source_stag, read_req.source_stag);
	assert_true(req.source_to == read_req.source_to);
	assert_int_equal(rvcm_soft_wire_read_req_encode(&read_req, buf), 28);
	assert_memory_equal(buf, read_req_bytes, 28);
}

static void atomic_request(void **state)
{
	struct rvcm_soft_wire_atomic_req req;
	uint8_t buf[RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES];
	uint16_t term;

	(void)state;
	assert_int_equal(rvcm_soft_wire_atomic_req_decode(cmp_swap_bytes, 52, &req, &term), 52);
	assert_int_equal(req.op, cmp_swap.op);
	assert_int_equal(req.request_id, cmp_swap.request_id);
	assert_int_equal(req.stag, cmp_swap.stag);
	assert_true(req.to == cmp_swap.to);
	assert_true(req.data == cmp_swap.data);
	assert_true(req.data_mask == cmp_swap.data_mask);
	assert_true(req.compare == cmp_swap.compare);
	assert_true(req.compare_mask == cmp_swap.compare_mask);
	assert_int_equal(rvcm_soft_wire_atomic_req_encode(&cmp_swap, buf), 52);
	assert_memory_equal(buf, cmp_swap_bytes, 52);
}

/* RFC 7306 section 5.2.1: FetchAdd sends compare data 0 and compare mask all ones. */
static void fetch_add_has_nothing_to_compare(void **state)
{
	static const uint8_t compare[16] = { 0,   0,   0,   0,   0,   0,   0,   0,
					     255, 255, 255, 255, 255, 255, 255, 255 };
	struct rvcm_soft_wire_atomic_req add = cmp_swap;
	uint8_t buf[RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES];

	(void)state;
	add.op = RVCM_SOFT_WIRE_FETCH_ADD;
	rvcm_soft_wire_atomic_req_encode(&add, buf);
	assert_int_equal(buf[3], 0);
	assert_memory_equal(buf + 4, cmp_swap_bytes + 4, 32);
	assert_memory_equal(buf + 36, compare, 16);
}

static void atomic_opcodes(void **state)
{
	(void)state;
	for (unsigned int op = 0; op < 256; op++) {
		struct rvcm_soft_wire_atomic_req req = { .op = 77 };
		uint8_t bytes[52];
		uint16_t term = 0;
		int rc;

		memcpy(bytes, cmp_swap_bytes, sizeof(bytes));
		bytes[0] = 0xff; /* reserved, as is the high half of the fourth */
		bytes[3] = (uint8_t)op;
		rc = rvcm_soft_wire_atomic_req_decode(bytes, sizeof(bytes), &req, &term);
		if ((op & 15) == 0 || (op & 15) == 2) {
			assert_int_equal(rc, 52);
			assert_int_equal(req.op, op & 15);
		} else {
			assert_int_equal(rc, -EPROTO);
			assert_int_equal(term, RVCM_SOFT_WIRE_TERM_R_OPCODE);
			assert_int_equal(req.op, 77);
		}
	}
}

/* FetchAdd a bit at a time, after the pseudocode of RFC 7306 section 5.1.1. */
static uint64_t add_bit_by_bit(uint64_t old, uint64_t add, uint64_t mask)
{
	uint64_t result = 0, carry = 0;

	for (int bit = 0; bit < 64; bit++) {
		uint64_t sum = carry + (old >> bit & 1) + (add >> bit & 1);

		result |= (sum & 1) << bit;
		carry = sum >> 1 && !(mask >> bit & 1);
	}
	return result;
}

static void atomics_do_as_the_rfc_says(void **state)
{
	struct rvcm_soft_wire_atomic_req add = { .op = RVCM_SOFT_WIRE_FETCH_ADD };
	struct rvcm_soft_wire_atomic_req cas = { .op = RVCM_SOFT_WIRE_CMP_SWAP };
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 6);
	for (int i = 0; i < 5000; i++) {
		uint64_t old = rvcm_rng_next(&rng);
		uint64_t mask = rvcm_rng_next(&rng) & (i & 1 ? rvcm_rng_next(&rng) : 0);

		add.data = rvcm_rng_next(&rng);
		add.data_mask = mask;
		assert_true(rvcm_soft_wire_atomic_result(&add, old) ==
			    add_bit_by_bit(old, add.data, mask));
		if (mask == 0)
			assert_true(rvcm_soft_wire_atomic_result(&add, old) == old + add.data);
		cas.data = rvcm_rng_next(&rng);
		cas.data_mask = rvcm_rng_next(&rng);
		cas.compare_mask = mask;
		cas.compare = old ^ (rvcm_rng_next(&rng) & ~mask);
		assert_true(rvcm_soft_wire_atomic_result(&cas, old) ==
			    ((old & ~cas.data_mask) | (cas.data & cas.data_mask)));
		if (mask == 0)
			continue;
		cas.compare ^= mask & -mask;
		assert_true(rvcm_soft_wire_atomic_result(&cas, old) == old);
	}
}

static void atomic_response_and_immediate(void **state)
{
	struct rvcm_soft_wire_atomic_resp resp;
	uint8_t buf[12];
	uint64_t imm;
	uint16_t term;

	(void)state;
	assert_int_equal(rvcm_soft_wire_atomic_resp_decode(atomic_resp_bytes, 12, &resp, &term),
			 12);
	assert_int_equal(resp.request_id, 0x91929394);
	assert_true(resp.value == 0xa1a2a3a4a5a6a7a8);
	assert_int_equal(rvcm_soft_wire_atomic_resp_encode(&resp, buf), 12);
	assert_memory_equal(buf, atomic_resp_bytes, 12);
	assert_int_equal(rvcm_soft_wire_imm_decode(imm_bytes, 8, &imm, &term), 8);
	assert_true(imm == 0xb1b2b3b4b5b6b7b8);
	assert_int_equal(rvcm_soft_wire_imm_encode(imm, buf), 8);
	assert_memory_equal(buf, imm_bytes, 8);
}

/* RFC 5040 figures 7 and 8: layer 0, type 1, code 2; M, D and R; the segment was 46 bytes long. */
static const uint8_t term_read[] = {
	0x01, 0x02, 0xe0, 0x00,                                     /* control */
	0x00, 0x2e,                                                 /* segment length */
	0x41, 0x41, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* DDP header */
	0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00,             /* */
	0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, /* read request */
	0x17, 0x18, 0x00, 0x01, 0x00, 0x00, 0x21, 0x22, 0x23, 0x24, /* */
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,             /* */
};

/* Layer 1, type 1, code 1; M and D; a WRITE of 20 bytes. */
static const uint8_t term_write[] = {
	0x11, 0x01, 0xc0, 0x00, 0x00, 0x22, 0xc1, 0x40, 0x11, 0x22,
	0x33, 0x44, 0x00, 0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05,
};

/* Layer 2, type 0, code 2: CRC; no headers. */
static const uint8_t term_crc[] = { 0x20, 0x02, 0x00, 0x00 };

static int decode(const uint8_t *bytes, size_t n, struct rvcm_soft_wire_terminate *t)
{
	void *p = exact_copy(bytes, n);
	uint16_t term = 0;
	int rc;

	memset(t, 0x5a, sizeof(*t));
	rc = rvcm_soft_wire_terminate_decode(p, n, t, &term);
	assert_int_equal(term, rc < 0 ? RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED : 0);
	free(p);
	return rc;
}

static void terminates_decode(void **state)
{
	struct rvcm_soft_wire_terminate t;

	(void)state;
	assert_int_equal(decode(term_read, sizeof(term_read), &t), sizeof(term_read));
	assert_int_equal(t.term, RVCM_SOFT_WIRE_TERM_R_ACCESS);
	assert_int_equal(t.segment_bytes, 46);
	assert_int_equal(t.ddp_bytes, 18);
	assert_memory_equal(t.ddp, term_read + 6, 18);
	assert_true(t.has_read_req);
	assert_memory_equal(t.read_req, read_req_bytes, 28);
	assert_int_equal(decode(term_write, sizeof(term_write), &t), sizeof(term_write));
	assert_int_equal(t.term, RVCM_SOFT_WIRE_TERM_D_BOUNDS);
	assert_int_equal(t.segment_bytes, 34);
	assert_int_equal(t.ddp_bytes, 14);
	assert_memory_equal(t.ddp, term_write + 6, 14);
	assert_false(t.has_read_req);
	assert_int_equal(decode(term_crc, sizeof(term_crc), &t), 4);
	assert_int_equal(t.term, RVCM_SOFT_WIRE_TERM_L_CRC);
	assert_int_equal(t.ddp_bytes, 0);
	assert_int_equal(t.segment_bytes, 0);
	assert_false(t.has_read_req);
}

/* The code survives whatever is cut off; a header is there whole or not at all. */
static void short_terminates_keep_their_code(void **state)
{
	struct rvcm_soft_wire_terminate t;

	(void)state;
	for (size_t n = 0; n < sizeof(term_read); n++) {
		if (n < 4) {
			assert_int_equal(decode(term_read, n, &t), -EPROTO);
			continue;
		}
		assert_int_equal(decode(term_read, n, &t), n < 24 ? 4 : 24);
		assert_int_equal(t.term, RVCM_SOFT_WIRE_TERM_R_ACCESS);
		assert_int_equal(t.ddp_bytes, n < 24 ? 0 : 18);
		assert_int_equal(t.segment_bytes, n < 24 ? 0 : 46);
		assert_false(t.has_read_req);
	}
}

static void terminates_are_filled_and_encoded(void **state)
{
	struct rvcm_soft_wire_terminate t;
	uint8_t segment[46], buf[RVCM_SOFT_WIRE_TERM_BYTES_MAX];

	(void)state;
	memcpy(segment, term_read + 6, 46);
	rvcm_soft_wire_terminate_fill(&t, RVCM_SOFT_WIRE_TERM_R_ACCESS, segment, 46, 46);
	assert_int_equal(rvcm_soft_wire_terminate_encode(&t, buf), sizeof(term_read));
	assert_memory_equal(buf, term_read, sizeof(term_read));
	memcpy(segment, term_write + 6, 14);
	rvcm_soft_wire_terminate_fill(&t, RVCM_SOFT_WIRE_TERM_D_BOUNDS, segment, 14, 34);
	assert_int_equal(rvcm_soft_wire_terminate_encode(&t, buf), sizeof(term_write));
	assert_memory_equal(buf, term_write, sizeof(term_write));
	rvcm_soft_wire_terminate_fill(&t, RVCM_SOFT_WIRE_TERM_L_CRC, segment, 14, 34);
	assert_int_equal(rvcm_soft_wire_terminate_encode(&t, buf), sizeof(term_crc));
	assert_memory_equal(buf, term_crc, sizeof(term_crc));
}

/* RFC 5040 figure 10, for a read request and for a SEND. */
static void which_headers_a_terminate_takes_along(void **state)
{
	static const struct {
		uint16_t term;
		bool ddp;
		bool read_req;
	} rows[] = {
		{ RVCM_SOFT_WIRE_TERM_R_CATASTROPHIC, false, false },
		{ RVCM_SOFT_WIRE_TERM_R_CATASTROPHIC | 0xff, false, false },
		{ RVCM_SOFT_WIRE_TERM_R_STAG, true, true },
		{ RVCM_SOFT_WIRE_TERM_R_PROT_UNSPECIFIED, true, true },
		{ RVCM_SOFT_WIRE_TERM_R_OPCODE, true, false },
		{ RVCM_SOFT_WIRE_TERM_R_VERSION, true, false },
		{ RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED, true, false },
		{ RVCM_SOFT_WIRE_TERM_D_CATASTROPHIC, false, false },
		{ RVCM_SOFT_WIRE_TERM_D_QN, true, false },
		{ RVCM_SOFT_WIRE_TERM_D_TOO_LONG, true, false },
		{ RVCM_SOFT_WIRE_TERM_D_U_VERSION, false, false },
		{ RVCM_SOFT_WIRE_TERM_D_T_VERSION, false, false },
		{ RVCM_SOFT_WIRE_TERM_L_CRC, false, false },
		{ RVCM_SOFT_WIRE_TERM_L_IRD, false, false },
	};
	struct rvcm_soft_wire_terminate t;
	uint8_t send[46];

	(void)state;
	memcpy(send, term_read + 6, sizeof(send));
	send[1] = 0x43;
	for (size_t i = 0; i < N(rows); i++) {
		rvcm_soft_wire_terminate_fill(&t, rows[i].term, term_read + 6, 46, 46);
		assert_int_equal(t.term, rows[i].term);
		assert_int_equal(t.ddp_bytes, rows[i].ddp ? 18 : 0);
		assert_int_equal(t.has_read_req, rows[i].read_req);
		rvcm_soft_wire_terminate_fill(&t, rows[i].term, send, 46, 46);
		assert_int_equal(t.ddp_bytes, rows[i].ddp ? 18 : 0);
		assert_false(t.has_read_req);
	}
}

static void filling_takes_what_is_at_hand(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 46; n++) {
		struct rvcm_soft_wire_terminate t;
		void *p = exact_copy(term_read + 6, n);

		rvcm_soft_wire_terminate_fill(&t, RVCM_SOFT_WIRE_TERM_R_STAG, p, n, 46);
		assert_int_equal(t.ddp_bytes, n < 18 ? 0 : 18);
		assert_int_equal(t.has_read_req, n == 46);
		free(p);
	}
}

static void any_terminate_comes_back(void **state)
{
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 7);
	for (int round = 0; round < 5000; round++) {
		struct rvcm_soft_wire_terminate t = { .term = (uint16_t)rvcm_rng_next(&rng) }, back;
		uint8_t buf[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
		size_t n;

		t.ddp_bytes = (uint8_t[]) { 0, 14, 18 }[round % 3];
		t.has_read_req = rvcm_rng_next(&rng) & 1;
		for (size_t i = 0; i < t.ddp_bytes; i++)
			t.ddp[i] = (uint8_t)rvcm_rng_next(&rng);
		if (t.ddp_bytes > 0) {
			t.ddp[0] = (uint8_t)(t.ddp_bytes == 14 ? 0xc1 : 0x41);
			t.segment_bytes = (uint16_t)rvcm_rng_next(&rng);
		}
		for (size_t i = 0; t.has_read_req && i < sizeof(t.read_req); i++)
			t.read_req[i] = (uint8_t)rvcm_rng_next(&rng);
		n = rvcm_soft_wire_terminate_encode(&t, buf);
		assert_int_equal(decode(buf, n, &back), n);
		assert_int_equal(back.term, t.term);
		assert_int_equal(back.ddp_bytes, t.ddp_bytes);
		assert_int_equal(back.segment_bytes, t.segment_bytes);
		assert_int_equal(back.has_read_req, t.has_read_req);
		assert_memory_equal(back.ddp, t.ddp, sizeof(t.ddp));
		assert_memory_equal(back.read_req, t.read_req, sizeof(t.read_req));
	}
}

/* Exactly the codes of the IANA registry of RDDP errors have a text. */
static void codes_have_texts(void **state)
{
	static const struct {
		uint16_t first;
		uint16_t last;
	} known[] = {
		{ 0x0000, 0x00ff }, { 0x0100, 0x0104 }, { 0x0109, 0x0109 }, { 0x01ff, 0x01ff },
		{ 0x0205, 0x0209 }, { 0x02ff, 0x02ff }, { 0x1000, 0x10ff }, { 0x1100, 0x1104 },
		{ 0x1201, 0x1206 }, { 0x2001, 0x2007 },
	};
	static const char *const layers[] = { "RDMAP", "DDP", "MPA" };

	(void)state;
	for (unsigned int term = 0; term <= 0xffff; term++) {
		const char *layer = rvcm_soft_wire_term_layer_text((uint16_t)term);
		bool is_known = false;

		for (size_t i = 0; i < N(known); i++)
			is_known |= known[i].first <= term && term <= known[i].last;
		assert_int_equal(strcmp(rvcm_soft_wire_term_text((uint16_t)term), "unknown") != 0,
				 is_known);
		assert_string_equal(layer, term >> 12 < N(layers) ? layers[term >> 12] : "unknown");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_have_one_length),
		cmocka_unit_test(read_request),
		cmocka_unit_test(atomic_request),
		cmocka_unit_test(fetch_add_has_nothing_to_compare),
		cmocka_unit_test(atomic_opcodes),
		cmocka_unit_test(atomics_do_as_the_rfc_says),
		cmocka_unit_test(atomic_response_and_immediate),
		cmocka_unit_test(terminates_decode),
		cmocka_unit_test(short_terminates_keep_their_code),
		cmocka_unit_test(terminates_are_filled_and_encoded),
		cmocka_unit_test(which_headers_a_terminate_takes_along),
		cmocka_unit_test(filling_takes_what_is_at_hand),
		cmocka_unit_test(any_terminate_comes_back),
		cmocka_unit_test(codes_have_texts),
	};

	return cmocka_run_group_tests_name("soft_wire_body", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes over the wire, whole, written out by hand from the RFCs' figures: set-up frames, and
 * FPDUs from their length to their CRC (computed by another program, bit by bit). Each is taken
 * apart by the decoders alone, and made by the encoders alone.
 */
#include "unit/unit.h"

#include <string.h>

#include "dev/soft/crc.h"
#include "dev/soft/mpa.h"
#include "dev/soft/wire.h"

/* -- set-up: RFC 5044 figure 8, with RFC 6581 figures 3 and 4 -------------------------------- */

static const struct setup {
	size_t bytes;
	uint8_t frame[32];
	struct rvcm_soft_mpa_frame says;
} setups[] = {
	/* Revision 1: key; M 0, C 1, R 0; revision; private data length 3; private data. */
	{ 23,
	  { 'M', 'P', 'A', ' ', 'I',  'D',  ' ',  'R',  'e', 'q', ' ', 'F',
	    'r', 'a', 'm', 'e', 0x40, 0x01, 0x00, 0x03, 'a', 'b', 'c' },
	  { .kind = RVCM_SOFT_MPA_REQUEST,
	    .revision = 1,
	    .crc = true,
	    .private_bytes = 3,
	    .private_data = "abc" } },
	/* Its rejection: R. */
	{ 20,
	  { 'M', 'P', 'A', ' ', 'I', 'D', ' ',  'R',  'e',  'p',
	    ' ', 'F', 'r', 'a', 'm', 'e', 0x20, 0x01, 0x00, 0x00 },
	  { .kind = RVCM_SOFT_MPA_REPLY, .revision = 1, .reject = true } },
	/* Revision 2: S; the length counts the four bytes; A, B, IRD 32 (6+8 bits); C, D, ORD 300.
	 */
	{ 26,
	  { 'M', 'P', 'A', ' ',  'I',  'D',  ' ',  'R',  'e',  'q',  ' ',  'F', 'r',
	    'a', 'm', 'e', 0x10, 0x02, 0x00, 0x06, 0xc0, 0x20, 0xc1, 0x2c, 'x', 'y' },
	  { .kind = RVCM_SOFT_MPA_REQUEST,
	    .revision = 2,
	    .enhanced = true,
	    .peer_to_peer = true,
	    .rtr = RVCM_SOFT_MPA_RTR_FPDU | RVCM_SOFT_MPA_RTR_WRITE | RVCM_SOFT_MPA_RTR_READ,
	    .ird = 32,
	    .ord = 300,
	    .private_bytes = 2,
	    .private_data = "xy" } },
	/* The answer: C granted, peer-to-peer with a WRITE, and depths that are not negotiated. */
	{ 24,
	  { 'M', 'P', 'A', ' ', 'I',  'D',  ' ',  'R',  'e',  'p',  ' ',  'F',
	    'r', 'a', 'm', 'e', 0x50, 0x02, 0x00, 0x04, 0xbf, 0xff, 0xbf, 0xff },
	  { .kind = RVCM_SOFT_MPA_REPLY,
	    .revision = 2,
	    .crc = true,
	    .enhanced = true,
	    .peer_to_peer = true,
	    .rtr = RVCM_SOFT_MPA_RTR_WRITE,
	    .ird = RVCM_SOFT_MPA_IRD_ANY,
	    .ord = RVCM_SOFT_MPA_IRD_ANY } },
};

static void set_up_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
		const struct setup *s = &setups[i];
		uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
		struct rvcm_soft_mpa_frame got;

		assert_int_equal(rvcm_soft_mpa_encode(&s->says, buf), s->bytes);
		assert_memory_equal(buf, s->frame, s->bytes);
		assert_int_equal(rvcm_soft_mpa_decode(s->says.kind, s->frame, s->bytes, &got),
				 s->bytes);
		assert_int_equal(got.revision, s->says.revision);
		assert_int_equal(got.crc, s->says.crc);
		assert_int_equal(got.reject, s->says.reject);
		assert_int_equal(got.enhanced, s->says.enhanced);
		assert_int_equal(got.peer_to_peer, s->says.peer_to_peer);
		assert_int_equal(got.rtr, s->says.rtr);
		assert_int_equal(got.ird, s->says.ird);
		assert_int_equal(got.ord, s->says.ord);
		assert_int_equal(got.private_bytes, s->says.private_bytes);
		if (got.private_bytes)
			assert_memory_equal(got.private_data, s->says.private_data,
					    got.private_bytes);
	}
}

/* -- FPDUs: RFC 5044 figure 2 ---------------------------------------------------------------- */

union body {
	const char *payload; /* of SEND and WRITE */
	struct rvcm_soft_wire_read_req read;
	struct rvcm_soft_wire_atomic_req atomic;
	struct rvcm_soft_wire_atomic_resp result;
	struct rvcm_soft_wire_terminate term;
	uint64_t imm;
};

static const struct fpdu {
	const char *what;
	size_t bytes;
	struct rvcm_soft_wire_hdr hdr;
	uint8_t frame[80];
	union body body;
} fpdus[] = {
	/* RFC 5041 figure 5, untagged: T 0, L 1, DV 1; RFC 5040 figures 3, 4: RV 1, opcode 3; three
	   bytes of pad. */
	{ "SEND",
	  32,
	  { .opcode = RVCM_SOFT_WIRE_SEND, .last = true, .msn = 1 },
	  { 0x00, 0x17, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 'h',  'e',
	    'l',  'l',  'o',  0x00, 0x00, 0x00, 0xb9, 0x90, 0xb1, 0x0c },
	  { .payload = "hello" } },
	/* No payload, no pad. */
	{ "SEND_SE",
	  24,
	  { .opcode = RVCM_SOFT_WIRE_SEND_SE, .last = true, .msn = 2 },
	  { 0x00, 0x12, 0x41, 0x45, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x9f, 0x74, 0x6d, 0x49 },
	  { .payload = "" } },
	/* RFC 5041 figure 4, tagged: STag, TO; one byte of pad. */
	{ "WRITE",
	  24,
	  { .opcode = RVCM_SOFT_WIRE_WRITE,
	    .last = true,
	    .stag = 0x11223344,
	    .to = 0x7f0102030405 },
	  { 0x00, 0x11, 0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x7f, 0x01,
	    0x02, 0x03, 0x04, 0x05, 'a',  'b',  'c',  0x00, 0x76, 0xd2, 0xa2, 0x03 },
	  { .payload = "abc" } },
	/* RFC 5040 figure 6: sink STag, TO; size; source STag, TO. */
	{ "READ_REQ",
	  52,
	  { .opcode = RVCM_SOFT_WIRE_READ_REQ, .last = true, .qn = 1, .msn = 1 },
	  { 0x00, 0x2e, 0x41, 0x41, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
	    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12,
	    0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x00, 0x01, 0x00, 0x00, 0x21, 0x22, 0x23,
	    0x24, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x9e, 0x2f, 0xd1, 0xbc },
	  { .read = { .sink_stag = 0x01020304,
		      .sink_to = 0x1112131415161718,
		      .bytes = 65536,
		      .source_stag = 0x21222324,
		      .source_to = 0x3132333435363738 } } },
	/* RFC 5040 figures 7 to 10: layer DDP, type tagged, invalid STag; M, D; the segment's
	   length and header. */
	{ "TERMINATE",
	  44,
	  { .opcode = RVCM_SOFT_WIRE_TERMINATE, .last = true, .qn = 2, .msn = 1 },
	  { 0x00, 0x26, 0x41, 0x47, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x11, 0x00,
	    0xc0, 0x00, 0x00, 0x11, 0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0x00,
	    0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05, 0x43, 0x61, 0x80, 0x2d },
	  { .term = { .term = RVCM_SOFT_WIRE_TERM_D_STAG,
		      .ddp_bytes = 14,
		      .segment_bytes = 17,
		      .ddp = { 0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x7f, 0x01, 0x02,
			       0x03, 0x04, 0x05 } } } },
	/* RFC 7306 figure 7; two bytes of pad. */
	{ "IMM",
	  32,
	  { .opcode = RVCM_SOFT_WIRE_IMM, .last = true, .msn = 3 },
	  { 0x00, 0x1a, 0x41, 0x48, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01, 0x23,
	    0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x6d, 0xa2, 0x77, 0x0d },
	  { .imm = 0x0123456789abcdef } },
	/* RFC 7306 figures 4 and 5: FetchAdd; request id, STag, TO, data, mask, and nothing to
	   compare. */
	{ "ATOMIC_REQ",
	  76,
	  { .opcode = RVCM_SOFT_WIRE_ATOMIC_REQ, .last = true, .qn = 1, .msn = 2 },
	  { 0x00, 0x46, 0x41, 0x4a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
	    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x07, 0x51, 0x52, 0x53, 0x54, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x95, 0xef, 0xff, 0xbe },
	  { .atomic = { .op = RVCM_SOFT_WIRE_FETCH_ADD,
			.request_id = 7,
			.stag = 0x51525354,
			.to = 0x2000,
			.data = 5,
			.compare_mask = UINT64_MAX } } },
	/* RFC 7306 figure 6. */
	{ "ATOMIC_RESP",
	  36,
	  { .opcode = RVCM_SOFT_WIRE_ATOMIC_RESP, .last = true, .qn = 3, .msn = 1 },
	  { 0x00, 0x1e, 0x41, 0x4b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
	    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2a, 0x4d, 0x18, 0xff, 0xfb },
	  { .result = { .request_id = 7, .value = 42 } } },
};

#define FPDUS (sizeof(fpdus) / sizeof(fpdus[0]))

static size_t encode_body(const struct fpdu *f, uint8_t *buf)
{
	switch (f->hdr.opcode) {
	case RVCM_SOFT_WIRE_READ_REQ:
		return rvcm_soft_wire_read_req_encode(&f->body.read, buf);
	case RVCM_SOFT_WIRE_TERMINATE:
		return rvcm_soft_wire_terminate_encode(&f->body.term, buf);
	case RVCM_SOFT_WIRE_IMM:
		return rvcm_soft_wire_imm_encode(f->body.imm, buf);
	case RVCM_SOFT_WIRE_ATOMIC_REQ:
		return rvcm_soft_wire_atomic_req_encode(&f->body.atomic, buf);
	case RVCM_SOFT_WIRE_ATOMIC_RESP:
		return rvcm_soft_wire_atomic_resp_encode(&f->body.result, buf);
	default:
		memcpy(buf, f->body.payload, strlen(f->body.payload));
		return strlen(f->body.payload);
	}
}

static void fpdus_are_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < FPDUS; i++) {
		const struct fpdu *f = &fpdus[i];
		uint8_t buf[128];
		size_t n = rvcm_soft_wire_encode(&f->hdr, buf + 2);

		n += encode_body(f, buf + 2 + n);
		rvcm_soft_mpa_header_encode((uint16_t)n, buf);
		assert_int_equal(rvcm_soft_mpa_fpdu_len(n), f->bytes);
		rvcm_soft_mpa_trailer_encode(n, true, rvcm_soft_crc_update(0, buf, 2 + n),
					     buf + 2 + n);
		assert_memory_equal(buf, f->frame, f->bytes);
		/* Without a CRC the field is there all the same. */
		rvcm_soft_mpa_trailer_encode(n, false, 0, buf + 2 + n);
		assert_memory_equal(buf, f->frame, f->bytes - 4);
		assert_memory_equal(buf + f->bytes - 4, "\0\0\0\0", 4);
	}
}

static void check_body(const struct fpdu *f, const uint8_t *body, size_t n)
{
	union body got;
	uint16_t term;

	memset(&got, 0, sizeof(got));
	switch (f->hdr.opcode) {
	case RVCM_SOFT_WIRE_READ_REQ:
		assert_int_equal(rvcm_soft_wire_read_req_decode(body, n, &got.read, &term), n);
		assert_int_equal(got.read.sink_stag, f->body.read.sink_stag);
		assert_true(got.read.sink_to == f->body.read.sink_to);
		assert_int_equal(got.read.bytes, f->body.read.bytes);
		assert_int_equal(got.read.source_stag, f->body.read.source_stag);
		assert_true(got.read.source_to == f->body.read.source_to);
		break;
	case RVCM_SOFT_WIRE_TERMINATE:
		assert_int_equal(rvcm_soft_wire_terminate_decode(body, n, &got.term, &term), n);
		assert_int_equal(got.term.term, f->body.term.term);
		assert_int_equal(got.term.segment_bytes, f->body.term.segment_bytes);
		assert_int_equal(got.term.ddp_bytes, f->body.term.ddp_bytes);
		assert_memory_equal(got.term.ddp, f->body.term.ddp, 14);
		assert_false(got.term.has_read_req);
		break;
	case RVCM_SOFT_WIRE_IMM:
		assert_int_equal(rvcm_soft_wire_imm_decode(body, n, &got.imm, &term), n);
		assert_true(got.imm == f->body.imm);
		break;
	case RVCM_SOFT_WIRE_ATOMIC_REQ:
		assert_int_equal(rvcm_soft_wire_atomic_req_decode(body, n, &got.atomic, &term), n);
		assert_int_equal(got.atomic.op, f->body.atomic.op);
		assert_int_equal(got.atomic.request_id, f->body.atomic.request_id);
		assert_int_equal(got.atomic.stag, f->body.atomic.stag);
		assert_true(got.atomic.to == f->body.atomic.to);
		assert_true(got.atomic.data == f->body.atomic.data);
		break;
	case RVCM_SOFT_WIRE_ATOMIC_RESP:
		assert_int_equal(rvcm_soft_wire_atomic_resp_decode(body, n, &got.result, &term), n);
		assert_int_equal(got.result.request_id, f->body.result.request_id);
		assert_true(got.result.value == f->body.result.value);
		break;
	default:
		assert_int_equal(n, strlen(f->body.payload));
		assert_memory_equal(body, f->body.payload, n);
	}
}

static void fpdus_are_taken_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < FPDUS; i++) {
		const struct fpdu *f = &fpdus[i];
		size_t ulpdu = rvcm_soft_mpa_header_decode(f->frame);
		struct rvcm_soft_wire_hdr hdr;
		uint16_t term;
		int n;

		assert_int_equal(rvcm_soft_mpa_fpdu_len(ulpdu), f->bytes);
		assert_true(rvcm_soft_mpa_trailer_check(
			ulpdu, true, rvcm_soft_crc_update(0, f->frame, 2 + ulpdu),
			f->frame + 2 + ulpdu));
		n = rvcm_soft_wire_decode(f->frame + 2, ulpdu, &hdr, &term);
		assert_int_equal(n, f->hdr.stag ? 14 : 18);
		assert_string_equal(rvcm_soft_wire_opcode_info(hdr.opcode)->name, f->what);
		assert_int_equal(hdr.last, f->hdr.last);
		assert_int_equal(hdr.stag, f->hdr.stag);
		assert_true(hdr.to == f->hdr.to);
		assert_int_equal(hdr.qn, f->hdr.qn);
		assert_int_equal(hdr.msn, f->hdr.msn);
		assert_int_equal(hdr.mo, 0);
		check_body(f, f->frame + 2 + n, ulpdu - (size_t)n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_up_frames),
		cmocka_unit_test(fpdus_are_made),
		cmocka_unit_test(fpdus_are_taken_apart),
	};

	return cmocka_run_group_tests_name("soft_golden", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "unit/exact.h"
#include <errno.h>
#include "base/rng.h"
#include "dev/soft/crc.h"
#include "dev/soft/mpa.h"

/* RFC 5044 figure 8: "MPA ID Req Frame", C, revision 1, 3 bytes of private data. */
static const uint8_t request_1[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x71, 0x20, 0x46,
	0x72, 0x61, 0x6d, 0x65, 0x40, 0x01, 0x00, 0x03, 'a',  'b',  'c',
};

/* The smallest: "MPA ID Rep Frame", rejected, revision 1, no private data. */
static const uint8_t reject_1[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x70,
	0x20, 0x46, 0x72, 0x61, 0x6d, 0x65, 0x20, 0x01, 0x00, 0x00,
};

/* RFC 6581 sections 6 and 9: S, revision 2; A, IRD 0x1234; C, ORD 0x0102; "xy". */
static const uint8_t request_2[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x71, 0x20, 0x46, 0x72,
	0x61, 0x6d, 0x65, 0x10, 0x02, 0x00, 0x06, 0x92, 0x34, 0x81, 0x02, 'x',  'y',
};

/* C, R and S; A, B and IRD 0x3fff; C, D and ORD 0. */
static const uint8_t reject_2[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x70, 0x20, 0x46,
	0x72, 0x61, 0x6d, 0x65, 0x70, 0x02, 0x00, 0x04, 0xff, 0xff, 0xc0, 0x00,
};

static const struct golden {
	const uint8_t *bytes;
	size_t n;
	struct rvcm_soft_mpa_frame frame;
} golden[] = {
	{ request_1,
	  sizeof(request_1),
	  { .kind = RVCM_SOFT_MPA_REQUEST,
	    .revision = 1,
	    .crc = true,
	    .private_bytes = 3,
	    .private_data = "abc" } },
	{ reject_1,
	  sizeof(reject_1),
	  { .kind = RVCM_SOFT_MPA_REPLY, .revision = 1, .reject = true } },
	{ request_2,
	  sizeof(request_2),
	  { .kind = RVCM_SOFT_MPA_REQUEST,
	    .revision = 2,
	    .enhanced = true,
	    .peer_to_peer = true,
	    .rtr = RVCM_SOFT_MPA_RTR_WRITE,
	    .ird = 0x1234,
	    .ord = 0x0102,
	    .private_bytes = 2,
	    .private_data = "xy" } },
	{ reject_2,
	  sizeof(reject_2),
	  { .kind = RVCM_SOFT_MPA_REPLY,
	    .revision = 2,
	    .crc = true,
	    .reject = true,
	    .enhanced = true,
	    .peer_to_peer = true,
	    .rtr = RVCM_SOFT_MPA_RTR_FPDU | RVCM_SOFT_MPA_RTR_WRITE | RVCM_SOFT_MPA_RTR_READ,
	    .ird = RVCM_SOFT_MPA_IRD_ANY } },
};
#define N_GOLDEN (sizeof(golden) / sizeof(golden[0]))

static void assert_same(const struct rvcm_soft_mpa_frame *a, const struct rvcm_soft_mpa_frame *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->markers, b->markers);
	assert_int_equal(a->crc, b->crc);
	assert_int_equal(a->reject, b->reject);
	assert_int_equal(a->enhanced, b->enhanced);
	assert_int_equal(a->peer_to_peer, b->peer_to_peer);
	assert_int_equal(a->rtr, b->rtr);
	assert_int_equal(a->ird, b->ird);
	assert_int_equal(a->ord, b->ord);
	assert_int_equal(a->private_bytes, b->private_bytes);
	if (a->private_bytes > 0)
		assert_memory_equal(a->private_data, b->private_data, a->private_bytes);
}

/* Decodes the first n bytes, in a copy that ends there; *frame's data goes with the copy. */
static int decode(enum rvcm_soft_mpa_kind kind, const uint8_t *bytes, size_t n)
{
	struct rvcm_soft_mpa_frame frame, before;
	void *p = exact_copy(bytes, n);
	int rc;

	memset(&frame, 0x5a, sizeof(frame));
	before = frame;
	rc = rvcm_soft_mpa_decode(kind, p, n, &frame);
	if (rc <= 0 && rc != -EOPNOTSUPP)
		assert_memory_equal(&frame, &before, sizeof(frame));
	free(p);
	return rc;
}

static void frames_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_GOLDEN; i++) {
		const struct golden *g = &golden[i];
		struct rvcm_soft_mpa_frame frame;
		uint8_t *p = exact_copy(g->bytes, g->n);

		assert_int_equal(rvcm_soft_mpa_decode(g->frame.kind, p, g->n, &frame), g->n);
		assert_same(&frame, &g->frame);
		free(p);
	}
}

static void frames_encode(void **state)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < N_GOLDEN; i++) {
		memset(buf, 0xee, sizeof(buf));
		assert_int_equal(rvcm_soft_mpa_encode(&golden[i].frame, buf), golden[i].n);
		assert_memory_equal(buf, golden[i].bytes, golden[i].n);
		assert_int_equal(buf[golden[i].n], 0xee);
	}
}

static void a_short_frame_needs_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_GOLDEN; i++)
		for (size_t n = 0; n < golden[i].n; n++)
			assert_int_equal(decode(golden[i].frame.kind, golden[i].bytes, n), 0);
}

static void what_follows_a_frame_stays(void **state)
{
	uint8_t bytes[sizeof(request_1) + 9] = { 0 };

	(void)state;
	memcpy(bytes, request_1, sizeof(request_1));
	assert_int_equal(decode(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes)), sizeof(request_1));
}

/* Each error comes with the first byte that shows it and stays. */
static void assert_wrong(enum rvcm_soft_mpa_kind kind, const uint8_t *bytes, size_t n, size_t first,
			 int err)
{
	for (size_t i = 0; i <= n; i++)
		assert_int_equal(decode(kind, bytes, i), i < first ? 0 : err);
}

static void wrong_frames(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	uint8_t bytes[sizeof(request_2)];

	(void)state;
	assert_wrong(RVCM_SOFT_MPA_REQUEST, (const uint8_t *)http, sizeof(http) - 1, 1, -EPROTO);
	/* Two openers: the keys differ in their tenth byte, q and p. */
	assert_wrong(RVCM_SOFT_MPA_REPLY, request_1, sizeof(request_1), 10, -EPROTO);
	assert_wrong(RVCM_SOFT_MPA_REQUEST, reject_1, sizeof(reject_1), 10, -EPROTO);
	for (unsigned int revision = 0; revision < 256; revision++) {
		memcpy(bytes, request_2, sizeof(bytes));
		bytes[17] = (uint8_t)revision;
		if (revision == 1 || revision == 2)
			continue;
		assert_wrong(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), 18, -EPROTONOSUPPORT);
	}
	memcpy(bytes, request_2, sizeof(bytes));
	bytes[18] = 0x02, bytes[19] = 0x01; /* 513 */
	assert_wrong(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), 20, -EMSGSIZE);
	bytes[18] = 0xff, bytes[19] = 0xff;
	assert_wrong(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), 20, -EMSGSIZE);
	bytes[18] = 0x00, bytes[19] = 0x03; /* no room for IRD and ORD */
	assert_wrong(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), 20, -EBADMSG);
}

static void markers_are_refused_after_the_whole_frame(void **state)
{
	struct rvcm_soft_mpa_frame frame;
	uint8_t bytes[sizeof(request_1)];

	(void)state;
	memcpy(bytes, request_1, sizeof(bytes));
	bytes[16] |= 0x80;
	assert_wrong(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), sizeof(bytes), -EOPNOTSUPP);
	rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(bytes), &frame);
	assert_true(frame.markers);
	assert_int_equal(frame.revision, 1);
	assert_int_equal(frame.private_bytes, 3);
}

static void reserved_bits_are_ignored(void **state)
{
	struct rvcm_soft_mpa_frame frame;
	uint8_t bytes[sizeof(request_2)];

	(void)state;
	memcpy(bytes, request_1, sizeof(request_1));
	bytes[16] |= 0x3f; /* R in a request, S in revision 1, and the rest */
	assert_int_equal(
		rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(request_1), &frame),
		sizeof(request_1));
	assert_same(&frame, &golden[0].frame);
	memcpy(bytes, request_2, sizeof(request_2));
	bytes[16] |= 0x2f;
	bytes[20] = 0x52; /* B without A */
	assert_int_equal(
		rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REQUEST, bytes, sizeof(request_2), &frame),
		sizeof(request_2));
	assert_false(frame.peer_to_peer);
	assert_int_equal(frame.rtr, 0);
	assert_int_equal(frame.ird, 0x1234);
	assert_int_equal(frame.ord, 0x0102);
}

static void what_no_frame_may_say(void **state)
{
	static const uint8_t data[513];
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	const struct rvcm_soft_mpa_frame wrong[] = {
		{ .revision = 0 },
		{ .revision = 3 },
		{ .revision = 1, .markers = true },
		{ .revision = 1, .reject = true },
		{ .revision = 1, .enhanced = true },
		{ .revision = 2, .enhanced = true, .ird = 0x4000 },
		{ .revision = 2, .enhanced = true, .ord = 0x4000 },
		{ .revision = 2, .enhanced = true, .rtr = RVCM_SOFT_MPA_RTR_READ },
		{ .revision = 1, .private_bytes = 513, .private_data = data },
		{ .revision = 2, .enhanced = true, .private_bytes = 509, .private_data = data },
	};
	struct rvcm_soft_mpa_frame full = { .revision = 2,
					    .private_bytes = 512,
					    .private_data = data };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(rvcm_soft_mpa_encode(&wrong[i], buf), -EINVAL);
	assert_int_equal(rvcm_soft_mpa_encode(&full, buf), sizeof(buf));
	full.enhanced = true;
	full.private_bytes = 508;
	assert_int_equal(rvcm_soft_mpa_encode(&full, buf), sizeof(buf));
}

static void any_frame_comes_back(void **state)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX], data[512];
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 3);
	for (int round = 0; round < 5000; round++) {
		struct rvcm_soft_mpa_frame f = { .kind = (enum rvcm_soft_mpa_kind)(round & 1) },
					   back;
		uint64_t bits = rvcm_rng_next(&rng);
		int n;

		for (size_t i = 0; i < 16; i++)
			data[i] = (uint8_t)rvcm_rng_next(&rng);
		f.revision = (uint8_t)(1 + (bits & 1));
		f.crc = bits & 2;
		f.reject = f.kind == RVCM_SOFT_MPA_REPLY && bits & 4;
		f.enhanced = f.revision == 2 && bits & 8;
		if (f.enhanced) {
			f.peer_to_peer = bits & 16;
			f.rtr = f.peer_to_peer ? (uint8_t)(bits >> 5 & 7) : 0;
			f.ird = (uint16_t)(bits >> 16 & 0x3fff);
			f.ord = (uint16_t)(bits >> 32 & 0x3fff);
		}
		f.private_bytes = (uint16_t)rvcm_rng_below(&rng, f.enhanced ? 509 : 513);
		f.private_data = data;
		n = rvcm_soft_mpa_encode(&f, buf);
		assert_int_equal(n, 20 + (f.enhanced ? 4 : 0) + f.private_bytes);
		assert_int_equal(rvcm_soft_mpa_decode(f.kind, buf, (size_t)n, &back), n);
		assert_same(&back, &f);
	}
}

static void fpdu_lengths(void **state)
{
	static const size_t rows[][3] = {
		/* ULPDU, pad, FPDU */
		{ 0, 2, 8 },   { 1, 1, 8 },         { 2, 0, 8 },         { 3, 3, 12 },
		{ 42, 0, 48 }, { 65534, 0, 65540 }, { 65535, 3, 65544 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(rvcm_soft_mpa_pad(rows[i][0]), rows[i][1]);
		assert_int_equal(rvcm_soft_mpa_fpdu_len(rows[i][0]), rows[i][2]);
	}
	assert_int_equal(rvcm_soft_mpa_fpdu_len(RVCM_SOFT_MPA_ULPDU_BYTES_MAX),
			 RVCM_SOFT_MPA_FPDU_BYTES_MAX);
}

static void ulpdu_max_is_the_longest_that_fits(void **state)
{
	(void)state;
	for (size_t room = 0; room < 70000; room++) {
		size_t n = rvcm_soft_mpa_ulpdu_max(room);

		if (n > 0)
			assert_true(rvcm_soft_mpa_fpdu_len(n) <= room);
		if (n < RVCM_SOFT_MPA_ULPDU_BYTES_MAX)
			assert_true(rvcm_soft_mpa_fpdu_len(n + 1) > room);
	}
	/* The RFC's formula, section 4.5, for an Ethernet segment. */
	assert_int_equal(rvcm_soft_mpa_ulpdu_max(1460), 1460 - (6 + 1460 % 4));
	assert_int_equal(rvcm_soft_mpa_ulpdu_max(1447), 1447 - (6 + 1447 % 4));
}

/* RFC 5044 figure 5, which begins with the marker that we never send; it counts for the CRC. */
static const uint8_t figure_5[] = {
	0x00, 0x00, 0x00, 0x00,                         /* marker */
	0x00, 0x2a,                                     /* length: 42 */
	0x41, 0x43, 0x00, 0x00, 0x00, 0x00,             /* SEND, last */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* QN 0, MSN 1 */
	0x00, 0x00, 0x00, 0x00,                         /* MO 0 */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 24 bytes of data */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
	0x52, 0x23, 0x99, 0x83,                         /* CRC32C */
};

/* RFC 5044 figure 6, with a marker in its middle. */
static const uint8_t figure_6[] = {
	0x00, 0x2a,                                     /* length: 42 */
	0x41, 0x43, 0x00, 0x00, 0x00, 0x00,             /* SEND, last */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, /* QN 0, MSN 2 */
	0x00, 0x00, 0x00, 0x00,                         /* MO 0 */
	0x00, 0x00, 0x00, 0x14,                         /* marker */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 24 bytes of data */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
	0x84, 0x92, 0x58, 0x98,                         /* CRC32C */
};

static void trailers_of_the_rfc(void **state)
{
	uint8_t trailer[RVCM_SOFT_MPA_TRAILER_BYTES_MAX];
	uint32_t crc;

	(void)state;
	assert_int_equal(rvcm_soft_mpa_header_decode(figure_5 + 4), 42);
	crc = rvcm_soft_crc_update(0, figure_5, sizeof(figure_5) - 4);
	assert_int_equal(rvcm_soft_mpa_trailer_encode(42, true, crc, trailer), 4);
	assert_memory_equal(trailer, figure_5 + sizeof(figure_5) - 4, 4);
	assert_true(rvcm_soft_mpa_trailer_check(42, true, crc, figure_5 + sizeof(figure_5) - 4));
	crc = rvcm_soft_crc_update(0, figure_6, sizeof(figure_6) - 4);
	assert_int_equal(rvcm_soft_mpa_trailer_encode(42, true, crc, trailer), 4);
	assert_memory_equal(trailer, figure_6 + sizeof(figure_6) - 4, 4);
	assert_true(rvcm_soft_mpa_trailer_check(42, true, crc, figure_6 + sizeof(figure_6) - 4));
}

/* One FPDU for each length of pad; each single wrong bit of the trailer is found. */
static void trailers_cover_the_pad(void **state)
{
	(void)state;
	for (uint16_t n = 20; n < 24; n++) {
		uint8_t fpdu[64], *trailer = fpdu + 2 + n;
		uint32_t crc;
		size_t bytes;

		memset(fpdu, 0xab, sizeof(fpdu));
		rvcm_soft_mpa_header_encode(n, fpdu);
		crc = rvcm_soft_crc_update(0, fpdu, 2u + n);
		bytes = rvcm_soft_mpa_trailer_encode(n, true, crc, trailer);
		assert_int_equal(2 + n + bytes, rvcm_soft_mpa_fpdu_len(n));
		assert_int_equal(trailer[bytes], 0xab);
		trailer = exact_copy(trailer, bytes);
		for (size_t bit = 0; bit < 8 * bytes; bit++) {
			trailer[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(rvcm_soft_mpa_trailer_check(n, true, crc, trailer));
			assert_true(rvcm_soft_mpa_trailer_check(n, false, crc, trailer));
			trailer[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_true(rvcm_soft_mpa_trailer_check(n, true, crc, trailer));
		free(trailer);
	}
}

static void without_crc_the_field_is_zero(void **state)
{
	static const uint8_t zero[7];
	uint8_t trailer[RVCM_SOFT_MPA_TRAILER_BYTES_MAX];

	(void)state;
	memset(trailer, 0xff, sizeof(trailer));
	assert_int_equal(rvcm_soft_mpa_trailer_encode(3, false, 0x12345678, trailer), 7);
	assert_memory_equal(trailer, zero, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_decode),
		cmocka_unit_test(frames_encode),
		cmocka_unit_test(a_short_frame_needs_more),
		cmocka_unit_test(what_follows_a_frame_stays),
		cmocka_unit_test(wrong_frames),
		cmocka_unit_test(markers_are_refused_after_the_whole_frame),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(what_no_frame_may_say),
		cmocka_unit_test(any_frame_comes_back),
		cmocka_unit_test(fpdu_lengths),
		cmocka_unit_test(ulpdu_max_is_the_longest_that_fits),
		cmocka_unit_test(trailers_of_the_rfc),
		cmocka_unit_test(trailers_cover_the_pad),
		cmocka_unit_test(without_crc_the_field_is_zero),
	};

	return cmocka_run_group_tests_name("soft_mpa", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "unit/exact.h"
#include "base/rng.h"
#include "dev/soft/crc.h"

typedef uint32_t update_fn(uint32_t crc, const void *buf, size_t len);

static update_fn *const both[] = { rvcm_soft_crc_update, rvcm_soft_crc_update_table };

/* As the bytes stand in RFC 3720 B.4, which is the order of transmission: the code's low byte
 * first. */
static uint32_t wire(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return a | (uint32_t)b << 8 | (uint32_t)c << 16 | (uint32_t)d << 24;
}

static void vectors_of_rfc_3720(void **state)
{
	/* The last vector: an iSCSI SCSI Read (10) command PDU. */
	static const uint8_t pdu[48] = {
		0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
		0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	uint8_t bytes[32];

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(both[f](0, bytes, 32), wire(0xaa, 0x36, 0x91, 0x8a));
		memset(bytes, 0xff, sizeof(bytes));
		assert_int_equal(both[f](0, bytes, 32), wire(0x43, 0xab, 0xa8, 0x62));
		for (int i = 0; i < 32; i++)
			bytes[i] = (uint8_t)i;
		assert_int_equal(both[f](0, bytes, 32), wire(0x4e, 0x79, 0xdd, 0x46));
		for (int i = 0; i < 32; i++)
			bytes[i] = (uint8_t)(31 - i);
		assert_int_equal(both[f](0, bytes, 32), wire(0x5c, 0xdb, 0x3f, 0x11));
		assert_int_equal(both[f](0, pdu, sizeof(pdu)), wire(0x56, 0x3a, 0x96, 0xd9));
		assert_int_equal(both[f](0, "123456789", 9), 0xe3069283);
	}
}

/* Bit by bit, by the definition. */
static uint32_t slow(uint32_t crc, const uint8_t *p, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* Every length about which the lanes decide, at every alignment of the first byte. */
static void every_length_as_by_definition(void **state)
{
	static uint8_t bytes[2 * 3 * 2048 + 3 * 256 + 64];
	static const size_t edges[] = {
		0, 3 * 256, 6 * 256, 3 * 2048, 3 * 2048 + 3 * 256, 6 * 2048
	};
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rvcm_rng_next(&rng);
	for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++) {
		size_t first = edges[e] < 17 ? 0 : edges[e] - 17;

		for (size_t n = first; n < edges[e] + 17; n++) {
			const uint8_t *p = bytes + n % 16;
			uint32_t want = slow((uint32_t)n, p, n);

			assert_int_equal(rvcm_soft_crc_update((uint32_t)n, p, n), want);
			assert_int_equal(rvcm_soft_crc_update_table((uint32_t)n, p, n), want);
		}
	}
}

static void pieces_give_the_same(void **state)
{
	uint8_t bytes[10000];
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 2);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rvcm_rng_next(&rng);
	for (int round = 0; round < 100; round++) {
		uint32_t crc = 0;
		size_t at = 0;

		while (at < sizeof(bytes)) {
			size_t n = rvcm_rng_below(&rng, sizeof(bytes) - at) + 1;

			crc = both[round & 1](crc, bytes + at, n);
			at += n;
		}
		assert_int_equal(crc, slow(0, bytes, sizeof(bytes)));
	}
}

static void reads_nothing_beyond(void **state)
{
	uint8_t bytes[1000] = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof(bytes); n++) {
		void *p = exact_copy(bytes, n);

		assert_int_equal(rvcm_soft_crc_update(0, p, n),
				 rvcm_soft_crc_update_table(0, p, n));
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_rfc_3720),
		cmocka_unit_test(every_length_as_by_definition),
		cmocka_unit_test(pieces_give_the_same),
		cmocka_unit_test(reads_nothing_beyond),
	};

	return cmocka_run_group_tests_name("soft_crc", tests, NULL, NULL);
}

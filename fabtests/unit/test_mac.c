/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4: the vectors of its authors' reference (key 00..0f, input 00, 01, ... of n bytes). */
#include "unit/unit.h"

#include <string.h>

#include "conn/mac.h"

static void tag_of(size_t n, size_t step, uint8_t tag[RVCM_MAC_BYTES])
{
	uint8_t key[RVCM_MAC_KEY_BYTES], in[64];
	struct rvcm_mac mac;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)i;
	rvcm_mac_init(&mac, key);
	for (size_t i = 0; i < n; i += step)
		rvcm_mac_update(&mac, in + i, n - i < step ? n - i : step);
	rvcm_mac_final(&mac, tag);
}

static void reference_vectors(void **state)
{
	static const struct {
		size_t n;
		uint8_t tag[8];
	} vectors[] = {
		{ 0, { 0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72 } },
		{ 1, { 0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74 } },
		{ 7, { 0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab } },
		{ 8, { 0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93 } },
		{ 15, { 0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1 } },
		{ 63, { 0x72, 0x45, 0x06, 0xeb, 0x4c, 0x32, 0x8a, 0x95 } },
	};
	uint8_t tag[RVCM_MAC_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		tag_of(vectors[i].n, 64, tag);
		assert_memory_equal(tag, vectors[i].tag, 8);
	}
}

static void pieces_do_not_matter(void **state)
{
	uint8_t whole[RVCM_MAC_BYTES], cut[RVCM_MAC_BYTES];

	(void)state;
	tag_of(61, 64, whole);
	for (size_t step = 1; step < 20; step++) {
		tag_of(61, step, cut);
		assert_true(rvcm_mac_equal(whole, cut));
	}
}

static void one_bit_makes_unequal(void **state)
{
	uint8_t a[RVCM_MAC_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[RVCM_MAC_BYTES];

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		memcpy(b, a, sizeof(b));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(rvcm_mac_equal(a, b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reference_vectors),
		cmocka_unit_test(pieces_do_not_matter),
		cmocka_unit_test(one_bit_makes_unequal),
	};

	return cmocka_run_group_tests_name("mac", tests, NULL, NULL);
}

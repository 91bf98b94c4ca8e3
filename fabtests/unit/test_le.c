/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/le.h"

/* One byte in front: every access below is unaligned. */
static const unsigned char bytes[9] = { 0, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88 };

static void get(void **state)
{
	(void)state;
	assert_int_equal(rvcm_le16_get(bytes + 1), 0x0201);
	assert_int_equal(rvcm_le32_get(bytes + 1), 0x04030201);
	assert_int_equal(rvcm_le64_get(bytes + 1), 0x8807060504030201);
	assert_int_equal(rvcm_be16_get(bytes + 1), 0x0102);
	assert_int_equal(rvcm_be32_get(bytes + 1), 0x01020304);
	assert_int_equal(rvcm_be64_get(bytes + 1), 0x0102030405060788);
}

static void put(void **state)
{
	unsigned char buf[10] = { 0 };

	(void)state;
	rvcm_le64_put(buf + 1, 0x8807060504030201);
	assert_memory_equal(buf, bytes, 9);
	rvcm_be64_put(buf + 1, 0x0102030405060788);
	assert_memory_equal(buf, bytes, 9);
	rvcm_le32_put(buf + 1, 0xa4a3a2a1);
	assert_memory_equal(buf + 1, "\xa1\xa2\xa3\xa4\x05", 5);
	rvcm_be32_put(buf + 1, 0xb1b2b3b4);
	assert_memory_equal(buf + 1, "\xb1\xb2\xb3\xb4\x05", 5);
	rvcm_le16_put(buf + 1, 0xc2c1);
	assert_memory_equal(buf + 1, "\xc1\xc2\xb3", 3);
	rvcm_be16_put(buf + 1, 0xd1d2);
	assert_memory_equal(buf + 1, "\xd1\xd2\xb3", 3);
	assert_int_equal(buf[0], 0);
	assert_int_equal(buf[9], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get),
		cmocka_unit_test(put),
	};

	return cmocka_run_group_tests_name("le", tests, NULL, NULL);
}

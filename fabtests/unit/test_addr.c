/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/addr.h"

#include <errno.h>

static struct rvcm_addr parse(const char *text)
{
	struct rvcm_addr addr;

	if (rvcm_addr_parse(text, &addr))
		fail_msg("cannot parse %s", text);
	return addr;
}

/* What is read, and how it is written. */
static const struct {
	const char *text;
	const char *written;
	uint8_t family;
	uint16_t port;
	uint32_t scope;
} good[] = {
	{ "10.0.0.1:47", "10.0.0.1:47", 4, 47, 0 },
	{ "10.0.0.1", "10.0.0.1:0", 4, 0, 0 },
	{ "0.0.0.0:65535", "0.0.0.0:65535", 4, 65535, 0 },
	{ "255.255.255.255:1", "255.255.255.255:1", 4, 1, 0 },
	{ "[::1]:47", "[::1]:47", 6, 47, 0 },
	{ "[::1]", "[::1]:0", 6, 0, 0 },
	{ "::1", "[::1]:0", 6, 0, 0 },
	{ "::", "[::]:0", 6, 0, 0 },
	{ "[fe80::1%2]:47", "[fe80::1%2]:47", 6, 47, 2 },
	{ "fe80::1%4294967295", "[fe80::1%4294967295]:0", 6, 0, 4294967295 },
	{ "[fe80::1%0]:1", "[fe80::1]:1", 6, 1, 0 },
	{ "[2001:0db8::00ff]:080", "[2001:db8::ff]:80", 6, 80, 0 },
	{ "[::ffff:10.0.0.1]:5", "10.0.0.1:5", 4, 5, 0 },
	{ "::ffff:a00:1", "10.0.0.1:0", 4, 0, 0 },
};

static void good_text(void **state)
{
	char buf[RVCM_ADDR_STRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct rvcm_addr addr = parse(good[i].text), again;

		assert_int_equal(addr.family, good[i].family);
		assert_int_equal(addr.port, good[i].port);
		assert_int_equal(addr.scope, good[i].scope);
		assert_int_equal(addr.pad, 0);
		assert_string_equal(rvcm_addr_format(&addr, buf, sizeof(buf)), good[i].written);
		again = parse(buf);
		assert_true(rvcm_addr_equal(&addr, &again));
	}
}

static void bad_text(void **state)
{
	static const char *const bad[] = {
		"",
		":",
		":47",
		"none",
		"localhost:47",
		"10.0.0:47",
		"10.0.0.256",
		"10.0.0.1:",
		"10.0.0.1:65536",
		"10.0.0.1:-1",
		"10.0.0.1:+1",
		"10.0.0.1: 1",
		"10.0.0.1:1 ",
		"10.0.0.1:4x",
		"10.0.0.1:18446744073709551617",
		" 10.0.0.1",
		"10.0.0.1%1",
		"[10.0.0.1]:47",
		"[::1",
		"[::1]47",
		"[::1]:",
		"[::1]x:1",
		"[]:1",
		"[:]:1",
		"::1]",
		"1:2",
		"fe80::1%",
		"fe80::1%eth0",
		"fe80::1%4294967296",
		"fe80::1%-1",
		"::1%2",
		"::ffff:10.0.0.1%2",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999",
		"10.0.0.1:000000000000000000000000000000000000000000000000000000000000000000000047",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rvcm_addr addr = { .family = 77 };

		if (rvcm_addr_parse(bad[i], &addr) != -EINVAL)
			fail_msg("parsed %s", bad[i]);
		assert_int_equal(addr.family, 77);
	}
}

static void format_fits_or_is_cut(void **state)
{
	struct rvcm_addr longest = {
		.family = RVCM_ADDR_V6,
		.port = 65535,
		.scope = UINT32_MAX,
	};
	struct rvcm_addr none = { .family = RVCM_ADDR_NONE }, v4 = parse("10.0.0.1:47");
	char buf[RVCM_ADDR_STRLEN] = "x";

	(void)state;
	memset(longest.ip, 0xfe, sizeof(longest.ip));
	rvcm_addr_format(&longest, buf, sizeof(buf));
	assert_string_equal(buf, "[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe%4294967295]:65535");
	assert_string_equal(rvcm_addr_format(&none, buf, sizeof(buf)), "none");
	assert_string_equal(rvcm_addr_format(&v4, buf, 6), "10.0.");
	rvcm_addr_format(&v4, buf, 0);
	assert_string_equal(buf, "10.0.");
	assert_string_equal(rvcm_addr_format_ip(&v4, buf, sizeof(buf)), "10.0.0.1");
	assert_string_equal(rvcm_addr_format_ip(&longest, buf, sizeof(buf)),
			    "fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe%4294967295");
	assert_string_equal(rvcm_addr_format_ip(&none, buf, sizeof(buf)), "none");
}

static void kinds(void **state)
{
	static const struct {
		const char *text;
		bool any, loopback, linklocal;
	} rows[] = {
		{ "0.0.0.0:47", true, false, false },  { "[::]:47", true, false, false },
		{ "127.0.0.1", false, true, false },   { "127.255.3.4", false, true, false },
		{ "128.0.0.1", false, false, false },  { "::1", false, true, false },
		{ "::2", false, false, false },        { "7f00::1", false, false, false },
		{ "169.254.1.1", false, false, true }, { "169.253.1.1", false, false, false },
		{ "fe80::1", false, false, true },     { "febf::1", false, false, true },
		{ "fec0::1", false, false, false },    { "a9fe::1", false, false, false },
		{ "10.0.0.1", false, false, false },
	};
	const struct rvcm_addr none = { .family = RVCM_ADDR_NONE };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rvcm_addr addr = parse(rows[i].text);

		assert_int_equal(rvcm_addr_is_any(&addr), rows[i].any);
		assert_int_equal(rvcm_addr_is_loopback(&addr), rows[i].loopback);
		assert_int_equal(rvcm_addr_is_linklocal(&addr), rows[i].linklocal);
	}
	assert_true(rvcm_addr_is_any(&none));
	assert_false(rvcm_addr_is_loopback(&none));
	assert_false(rvcm_addr_is_linklocal(&none));
}

/* Sorted by hand; every pair must agree. */
static void order_is_total(void **state)
{
	static const char *const sorted[] = {
		"[::]:0",      "[::1]:5",        "[::1]:65535",   "10.0.0.1:2",
		"10.0.0.1:3",  "10.0.0.1:32768", "10.0.0.2:1",    "200.0.0.1:1",
		"[2001::1]:1", "[fe80::1]:1",    "[fe80::2%1]:1",
	};
	const int n = sizeof(sorted) / sizeof(sorted[0]);

	(void)state;
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < n; k++) {
			struct rvcm_addr a = parse(sorted[i]), b = parse(sorted[k]);
			int order = rvcm_addr_cmp(&a, &b);

			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
	}
}

static void scope_is_this_hosts(void **state)
{
	struct rvcm_addr a = parse("[fe80::1%2]:1"), b = parse("[fe80::1%3]:1");

	(void)state;
	assert_int_equal(rvcm_addr_cmp(&a, &b), 0);
	assert_false(rvcm_addr_equal(&a, &b));
}

static void hash_goes_with_equal(void **state)
{
	struct rvcm_addr a = parse("10.0.0.1:47"), b = parse("[::ffff:10.0.0.1]:47");
	struct rvcm_addr other_port = parse("10.0.0.1:48");

	(void)state;
	assert_true(rvcm_addr_equal(&a, &b));
	assert_int_equal(rvcm_addr_hash(&a, 3), rvcm_addr_hash(&b, 3));
	assert_int_not_equal(rvcm_addr_hash(&a, 3), rvcm_addr_hash(&other_port, 3));
	assert_int_not_equal(rvcm_addr_hash(&a, 3), rvcm_addr_hash(&a, 4));
}

static void as_v6_and_back(void **state)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const uint8_t zero[16] = { 0 };
	struct rvcm_addr v4 = parse("10.0.0.1:47"), v6 = parse("[2001:db8::1]:47"), back;
	struct rvcm_addr none = { .family = RVCM_ADDR_NONE };
	uint8_t ip[16];

	(void)state;
	rvcm_addr_to_v6(&v4, ip);
	assert_memory_equal(ip, mapped, 16);
	rvcm_addr_from_v6(&back, ip, 47);
	assert_true(rvcm_addr_equal(&back, &v4));
	rvcm_addr_to_v6(&v6, ip);
	rvcm_addr_from_v6(&back, ip, 47);
	assert_true(rvcm_addr_equal(&back, &v6));
	rvcm_addr_to_v6(&none, ip);
	assert_memory_equal(ip, zero, 16);
	/* ::10.0.0.1 is not v4-mapped. */
	memcpy(ip, mapped, 16);
	ip[10] = 0;
	ip[11] = 0;
	rvcm_addr_from_v6(&back, ip, 0);
	assert_int_equal(back.family, RVCM_ADDR_V6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_text),
		cmocka_unit_test(bad_text),
		cmocka_unit_test(format_fits_or_is_cut),
		cmocka_unit_test(kinds),
		cmocka_unit_test(order_is_total),
		cmocka_unit_test(scope_is_this_hosts),
		cmocka_unit_test(hash_goes_with_equal),
		cmocka_unit_test(as_v6_and_back),
	};

	return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}

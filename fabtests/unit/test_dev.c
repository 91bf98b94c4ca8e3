/* SPDX-License-Identifier: BSD-2-Clause */
/* What devices are called, and in which order they are offered. */
#include "unit/unit.h"

#include <string.h>

#include "dev/dev.h"

#define ATTRS 5

static void offer(struct rvcm_dev_attr *attrs, int *have, const char *stem, const char *address)
{
	struct rvcm_dev_attr attr;

	memset(&attr, 0, sizeof(attr));
	assert_int_equal(rvcm_addr_parse(address, &attr.addr), 0);
	rvcm_dev_offer(&attr, stem, attrs, *have, ATTRS);
	(*have)++;
}

static void each_address_has_a_name_and_the_best_come_first(void **state)
{
	/* The link-local one was named before the other. */
	static const char *const names[ATTRS] = { "rxe0", "rxe0.1", "rxe01", "rxe0-v6.1",
						  "rxe0-v6" };
	struct rvcm_dev_attr attrs[ATTRS];
	int have = 0;

	(void)state;
	offer(attrs, &have, "rxe0", "fe80::1");
	offer(attrs, &have, "rxe0", "10.0.0.1");
	offer(attrs, &have, "rxe0", "2001:db8::1");
	offer(attrs, &have, "rxe0", "10.0.0.2");
	offer(attrs, &have, "rxe01", "10.0.0.3");
	assert_int_equal(have, ATTRS);
	for (int i = 0; i < ATTRS; i++)
		assert_string_equal(attrs[i].name, names[i]);
	/* One more, and a better one: the worst has no room. */
	offer(attrs, &have, "siw0", "10.0.0.4");
	assert_string_equal(attrs[3].name, "siw0");
	assert_string_equal(attrs[4].name, "rxe0-v6.1");
	offer(attrs, &have, "siw0", "fe80::2");
	assert_string_equal(attrs[4].name, "rxe0-v6.1");
}

/* Who is only heard here comes last, though it was there first. */
static void loopback_comes_last(void **state)
{
	static const char *const names[ATTRS] = { "eth0", "eth1", "eth0-v6", "lo", "lo-v6" };
	struct rvcm_dev_attr attrs[ATTRS];
	int have = 0;

	(void)state;
	offer(attrs, &have, "lo", "127.0.0.1");
	offer(attrs, &have, "lo", "::1");
	offer(attrs, &have, "eth0", "10.0.0.1");
	offer(attrs, &have, "eth0", "fe80::1");
	offer(attrs, &have, "eth1", "169.254.0.1");
	for (int i = 0; i < ATTRS; i++)
		assert_string_equal(attrs[i].name, names[i]);
}

static void a_long_name_is_cut_for_its_number(void **state)
{
	char stem[100], numbered[64] = "";
	struct rvcm_dev_attr attrs[ATTRS];
	int have = 0;

	(void)state;
	memset(stem, 'x', sizeof(stem));
	stem[sizeof(stem) - 1] = '\0';
	for (int i = 0; i < 3; i++)
		offer(attrs, &have, stem, "10.0.0.1");
	assert_int_equal(strlen(attrs[0].name), sizeof(attrs[0].name) - 1);
	memcpy(numbered, stem, 40);
	memcpy(numbered + 40, ".1", 3);
	assert_string_equal(attrs[1].name, numbered);
	memcpy(numbered + 40, ".2", 3);
	assert_string_equal(attrs[2].name, numbered);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_a_name_and_the_best_come_first),
		cmocka_unit_test(loopback_comes_last),
		cmocka_unit_test(a_long_name_is_cut_for_its_number),
	};

	return cmocka_run_group_tests_name("dev", tests, NULL, NULL);
}

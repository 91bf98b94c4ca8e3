/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "dev/verbs/near.h"

enum {
	N = 5
};

/* Devices named by their place in the list, on these nodes. */
static void list(struct rvcm_dev_attr attrs[N], const int nodes[N])
{
	memset(attrs, 0, N * sizeof(attrs[0]));
	for (int i = 0; i < N; i++) {
		snprintf(attrs[i].name, sizeof(attrs[i].name), "%d", i);
		attrs[i].numa_node = nodes[i];
	}
}

static void expect(const struct rvcm_dev_attr attrs[N], const char *order)
{
	for (int i = 0; i < N; i++) {
		const char name[2] = { order[i], '\0' };

		assert_string_equal(attrs[i].name, name);
	}
}

static void those_of_the_node_come_first(void **state)
{
	static const struct {
		int nodes[N];
		int node;
		const char *order;
	} rows[] = {
		{ { 0, 1, 0, 1, -1 }, 1, "13024" },  { { 0, 1, 0, 1, -1 }, 0, "02134" },
		{ { 0, 1, 0, 1, -1 }, -1, "01234" }, { { 0, 1, 0, 1, -1 }, 7, "01234" },
		{ { 2, 2, 2, 2, 2 }, 2, "01234" },   { { 0, 0, 0, 0, 3 }, 3, "40123" },
	};
	struct rvcm_dev_attr attrs[N];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		list(attrs, rows[i].nodes);
		rvcm_verbs_near_sort(attrs, N, rows[i].node);
		expect(attrs, rows[i].order);
	}
}

static void where_all_are_alike_nobody_asks(void **state)
{
	static const int alike[N] = { 1, 1, 1, 1, 1 }, mixed[N] = { 1, 1, 1, 1, 0 };
	struct rvcm_dev_attr attrs[N];

	(void)state;
	list(attrs, alike);
	assert_false(rvcm_verbs_near_differ(attrs, N));
	assert_false(rvcm_verbs_near_differ(attrs, 1));
	assert_false(rvcm_verbs_near_differ(attrs, 0));
	list(attrs, mixed);
	assert_true(rvcm_verbs_near_differ(attrs, N));
}

/* Whatever this machine is like: one of its nodes, or that it cannot be said. */
static void the_node_is_one_there_is(void **state)
{
	int node = rvcm_verbs_near_node();
	char path[64];
	FILE *f;

	(void)state;
	assert_true(node >= -1);
	if (node < 0)
		return;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "r");
	assert_true(f || node == 0); /* a kernel without NUMA has no such files */
	if (f)
		fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_node_come_first),
		cmocka_unit_test(where_all_are_alike_nobody_asks),
		cmocka_unit_test(the_node_is_one_there_is),
	};

	return cmocka_run_group_tests_name("verbs_near", tests, NULL, NULL);
}

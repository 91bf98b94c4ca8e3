/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap against a search through all stamps. */
#include <stdbool.h>

#include "unit/unit.h"
#include "unit/failmem.h"
#include "mr/lru.h"

#define NODES 300u

static struct rvcm_lru_node nodes[NODES];
static bool in[NODES];

static uint64_t least(void)
{
	uint64_t stamp = UINT64_MAX;

	for (uint32_t i = 0; i < NODES; i++)
		if (in[i] && nodes[i].stamp < stamp)
			stamp = nodes[i].stamp;
	return stamp;
}

static void change(struct rvcm_lru *lru, uint32_t i, uint32_t random)
{
	if (!in[i]) {
		assert_int_equal(rvcm_lru_reserve(lru), 0);
		rvcm_lru_add(lru, &nodes[i], random % 1000);
		in[i] = true;
	} else if (random % 3) {
		rvcm_lru_later(lru, &nodes[i], nodes[i].stamp + random % 100);
	} else {
		rvcm_lru_del(lru, &nodes[i]);
		in[i] = false;
	}
}

static void the_least_is_first(void **state)
{
	struct rvcm_lru lru;
	uint32_t random = 1;

	(void)state;
	rvcm_lru_init(&lru);
	assert_null(rvcm_lru_first(&lru));
	for (int i = 0; i < 20000; i++) {
		random = random * 1664525 + 1013904223;
		change(&lru, (random >> 8) % NODES, random >> 17);
		if (lru.n)
			assert_int_equal(rvcm_lru_first(&lru)->stamp, least());
	}
	assert_true(lru.n > NODES / 2);
	rvcm_lru_fini(&lru);
	assert_int_equal(failmem_outstanding(), 0);
}

static void a_failed_reserve_changes_nothing(void **state)
{
	struct rvcm_lru_node node;
	struct rvcm_lru lru;

	(void)state;
	rvcm_lru_init(&lru);
	failmem_fail_nth(1);
	assert_int_not_equal(rvcm_lru_reserve(&lru), 0);
	assert_int_equal(rvcm_lru_reserve(&lru), 0);
	rvcm_lru_add(&lru, &node, 1);
	assert_ptr_equal(rvcm_lru_first(&lru), &node);
	rvcm_lru_fini(&lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_is_first),
		cmocka_unit_test(a_failed_reserve_changes_nothing),
	};

	return cmocka_run_group_tests_name("lru", tests, NULL, NULL);
}

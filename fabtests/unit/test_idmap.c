/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/idmap.h"

#include <errno.h>

#include "base/rng.h"
#include "unit/failmem.h"

#define MAX  100
#define DEAD 64

static void nothing_is_in_an_empty_map(void **state)
{
	struct rvcm_idmap map;
	uint32_t cursor = 0;

	(void)state;
	rvcm_idmap_init(&map, MAX);
	assert_null(rvcm_idmap_get(&map, 0));
	assert_null(rvcm_idmap_get(&map, UINT32_MAX));
	assert_null(rvcm_idmap_next(&map, &cursor));
	assert_int_equal(rvcm_idmap_count(&map), 0);
	rvcm_idmap_fini(&map);
}

static void none_can_be_the_most(void **state)
{
	struct rvcm_idmap map;
	uint32_t id = 7;

	(void)state;
	rvcm_idmap_init(&map, 0);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &id), -ENOSPC);
	assert_int_equal(id, 7);
	rvcm_idmap_fini(&map);
}

/* The naive map: a pointer per number, and its id; and the last ids that were freed. */
struct model {
	struct rvcm_idmap map;
	int things[MAX];
	uint32_t ids[MAX]; /* 0 = not in the map */
	uint32_t dead[DEAD];
	uint32_t n_dead;
	uint32_t count;
};

static void assert_same(struct model *m)
{
	uint32_t cursor = 0, walked = 0;

	for (int i = 0; i < MAX; i++)
		if (m->ids[i])
			assert_ptr_equal(rvcm_idmap_get(&m->map, m->ids[i]), &m->things[i]);
	for (int i = 0; i < DEAD; i++)
		assert_null(rvcm_idmap_get(&m->map, m->dead[i]));
	while (rvcm_idmap_next(&m->map, &cursor))
		walked++;
	assert_int_equal(walked, m->count);
	assert_int_equal(rvcm_idmap_count(&m->map), m->count);
}

static void step(struct model *m, struct rvcm_rng *rng)
{
	uint64_t k = rvcm_rng_below(rng, MAX);

	if (m->ids[k]) {
		rvcm_idmap_free(&m->map, m->ids[k]);
		m->dead[m->n_dead++ % DEAD] = m->ids[k];
		m->ids[k] = 0;
		m->count--;
		return;
	}
	assert_int_equal(rvcm_idmap_alloc(&m->map, &m->things[k], &m->ids[k]), 0);
	assert_true(rvcm_idmap_index(m->ids[k]) < MAX);
	assert_in_range(rvcm_idmap_generation(m->ids[k]), 1, 255);
	m->count++;
}

static void behaves_like_an_array(void **state)
{
	struct model m = { .count = 0 };
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 3);
	rvcm_idmap_init(&m.map, MAX);
	for (int i = 0; i < 10000; i++) {
		step(&m, &rng);
		assert_same(&m);
	}
	rvcm_idmap_fini(&m.map);
	assert_int_equal(failmem_outstanding(), 0);
}

static void max_is_exact(void **state)
{
	struct rvcm_idmap map;
	uint32_t ids[20], one_more = 7;

	(void)state;
	rvcm_idmap_init(&map, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(rvcm_idmap_alloc(&map, &ids[i], &ids[i]), 0);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &one_more), -ENOSPC);
	assert_int_equal(one_more, 7);
	rvcm_idmap_free(&map, ids[11]);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &one_more), 0);
	assert_ptr_equal(rvcm_idmap_get(&map, one_more), &map);
	assert_null(rvcm_idmap_get(&map, ids[11]));
	assert_ptr_equal(rvcm_idmap_get(&map, ids[19]), &ids[19]);
	rvcm_idmap_fini(&map);
}

static void an_id_comes_back_after_255_uses(void **state)
{
	struct rvcm_idmap map;
	uint32_t first, id;

	(void)state;
	rvcm_idmap_init(&map, 1);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &first), 0);
	rvcm_idmap_free(&map, first);
	for (int i = 1; i < 255; i++) {
		assert_int_equal(rvcm_idmap_alloc(&map, &map, &id), 0);
		assert_int_not_equal(id, first);
		assert_int_not_equal(id, 0);
		rvcm_idmap_free(&map, id);
	}
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &id), 0);
	assert_int_equal(id, first);
	rvcm_idmap_fini(&map);
}

static void freed_slots_wait_their_turn(void **state)
{
	struct rvcm_idmap map;
	uint32_t a, b, c;

	(void)state;
	rvcm_idmap_init(&map, 3);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &a), 0);
	rvcm_idmap_free(&map, a);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &b), 0);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &c), 0);
	assert_int_not_equal(rvcm_idmap_index(a), rvcm_idmap_index(b));
	assert_int_not_equal(rvcm_idmap_index(a), rvcm_idmap_index(c));
	rvcm_idmap_fini(&map);
}

static void out_of_memory_changes_nothing(void **state)
{
	struct rvcm_idmap map;
	uint32_t ids[17] = { 0 };

	(void)state;
	rvcm_idmap_init(&map, RVCM_IDMAP_MAX);
	failmem_fail_nth(1);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &ids[0]), -ENOMEM);
	for (int i = 0; i < 16; i++)
		assert_int_equal(rvcm_idmap_alloc(&map, &ids[i], &ids[i]), 0);
	failmem_fail_nth(1);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &ids[16]), -ENOMEM);
	assert_int_equal(ids[16], 0);
	assert_int_equal(rvcm_idmap_count(&map), 16);
	for (int i = 0; i < 16; i++)
		assert_ptr_equal(rvcm_idmap_get(&map, ids[i]), &ids[i]);
	assert_int_equal(rvcm_idmap_alloc(&map, &map, &ids[16]), 0);
	rvcm_idmap_fini(&map);
	assert_int_equal(failmem_outstanding(), 0);
}

static void what_was_an_id(void **state)
{
	struct rvcm_idmap map;
	uint32_t id, next = 0;
	int thing;

	(void)state;
	rvcm_idmap_init(&map, 1);
	assert_false(rvcm_idmap_was(&map, 1u << RVCM_IDMAP_INDEX_BITS));
	assert_int_equal(rvcm_idmap_alloc(&map, &thing, &id), 0);
	assert_false(rvcm_idmap_was(&map, id));
	rvcm_idmap_free(&map, id);
	assert_true(rvcm_idmap_was(&map, id));
	assert_int_equal(rvcm_idmap_alloc(&map, &thing, &next), 0);
	assert_true(rvcm_idmap_was(&map, id));
	assert_false(rvcm_idmap_was(&map, next));
	assert_false(rvcm_idmap_was(&map, rvcm_idmap_index(id))); /* generation 0 */
	assert_false(rvcm_idmap_was(&map, id + 1));
	rvcm_idmap_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_in_an_empty_map),
		cmocka_unit_test(none_can_be_the_most),
		cmocka_unit_test(behaves_like_an_array),
		cmocka_unit_test(max_is_exact),
		cmocka_unit_test(an_id_comes_back_after_255_uses),
		cmocka_unit_test(freed_slots_wait_their_turn),
		cmocka_unit_test(out_of_memory_changes_nothing),
		cmocka_unit_test(what_was_an_id),
	};

	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}

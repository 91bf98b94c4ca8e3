/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/ring.h"
#include "base/rng.h"

#define SIZE 8

/* Pushes and pops numbers at random; what comes out must be what went in, in order. */
static void run(uint32_t start, uint64_t seed)
{
	uint64_t slots[SIZE], pushed = 0, popped = 0;
	struct rvcm_ring ring;
	struct rvcm_rng rng;

	rvcm_ring_init(&ring, SIZE);
	ring.head = start;
	ring.tail = start;
	rvcm_rng_init(&rng, seed);
	for (int i = 0; i < 2000; i++) {
		uint64_t held = pushed - popped;

		assert_int_equal(rvcm_ring_count(&ring), held);
		assert_int_equal(rvcm_ring_space(&ring), SIZE - held);
		assert_int_equal(rvcm_ring_empty(&ring), held == 0);
		assert_int_equal(rvcm_ring_full(&ring), held == SIZE);
		for (uint32_t k = 0; k < held; k++)
			assert_int_equal(slots[rvcm_ring_at(&ring, k)], popped + k);
		if (rvcm_rng_below(&rng, 2) ? held < SIZE : held == 0)
			slots[rvcm_ring_push(&ring)] = pushed++;
		else if (held)
			assert_int_equal(slots[rvcm_ring_pop(&ring)], popped++);
	}
	assert_true(popped > 10 * SIZE);
}

static void first_in_first_out(void **state)
{
	(void)state;
	run(0, 1);
}

static void counters_wrap(void **state)
{
	(void)state;
	run(UINT32_MAX - 2 * SIZE, 2);
}

static void one_slot_is_a_ring(void **state)
{
	struct rvcm_ring ring;

	(void)state;
	rvcm_ring_init(&ring, 1);
	assert_int_equal(rvcm_ring_push(&ring), 0);
	assert_true(rvcm_ring_full(&ring));
	assert_int_equal(rvcm_ring_pop(&ring), 0);
	assert_true(rvcm_ring_empty(&ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_first_out),
		cmocka_unit_test(counters_wrap),
		cmocka_unit_test(one_slot_is_a_ring),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}

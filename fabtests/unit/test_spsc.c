/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/spsc.h"

#include <pthread.h>
#include <sched.h>

#define SLOTS 16

/* Larger than what a processor stores at once, so that a torn element would show. */
struct element {
	uint64_t number;
	uint64_t filler[3];
};

static struct element make(uint64_t number)
{
	return (struct element) { number, { ~number, number * 3, number ^ 0x5555 } };
}

static bool is_whole(const struct element *e, uint64_t number)
{
	struct element want = make(number);

	return memcmp(e, &want, sizeof(want)) == 0;
}

static void full_and_empty(void **state)
{
	struct element slots[SLOTS], e;
	struct rvcm_spsc ring;

	(void)state;
	rvcm_spsc_init(&ring, slots, sizeof(slots[0]), SLOTS);
	assert_false(rvcm_spsc_pop(&ring, &e));
	assert_null(rvcm_spsc_peek(&ring));
	for (uint64_t i = 0; i < SLOTS; i++) {
		e = make(i);
		assert_true(rvcm_spsc_push(&ring, &e));
	}
	assert_false(rvcm_spsc_push(&ring, &e));
	assert_null(rvcm_spsc_reserve(&ring));
	for (uint64_t i = 0; i < SLOTS; i++) {
		assert_true(rvcm_spsc_pop(&ring, &e));
		assert_true(is_whole(&e, i));
	}
	assert_false(rvcm_spsc_pop(&ring, &e));
}

static void in_place(void **state)
{
	struct element slots[SLOTS], *e;
	struct rvcm_spsc ring;

	(void)state;
	rvcm_spsc_init(&ring, slots, sizeof(slots[0]), SLOTS);
	e = rvcm_spsc_reserve(&ring);
	assert_ptr_equal(e, rvcm_spsc_reserve(&ring));
	*e = make(1);
	assert_null(rvcm_spsc_peek(&ring));
	rvcm_spsc_commit(&ring);
	assert_ptr_equal(rvcm_spsc_peek(&ring), e);
	assert_ptr_equal(rvcm_spsc_peek(&ring), e);
	rvcm_spsc_release(&ring);
	assert_null(rvcm_spsc_peek(&ring));
}

struct stream {
	struct rvcm_spsc ring;
	struct element slots[SLOTS];
	uint64_t count;
};

static void *produce(void *arg)
{
	struct stream *s = arg;

	for (uint64_t i = 0; i < s->count; i++) {
		struct element e = make(i);

		while (!rvcm_spsc_push(&s->ring, &e))
			sched_yield();
	}
	return NULL;
}

/* Returns how many elements were wrong. */
static uint64_t consume(struct stream *s)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < s->count; i++) {
		struct element e;

		while (!rvcm_spsc_pop(&s->ring, &e))
			sched_yield();
		wrong += !is_whole(&e, i);
	}
	return wrong;
}

static void two_threads(void **state)
{
	static struct stream s = { .count = 200000 };
	pthread_t producer;

	(void)state;
	rvcm_spsc_init(&s.ring, s.slots, sizeof(s.slots[0]), SLOTS);
	/* The counters wrap in mid-stream. */
	atomic_store(&s.ring.tail, UINT32_MAX - 1000);
	atomic_store(&s.ring.head, UINT32_MAX - 1000);
	s.ring.head_seen = UINT32_MAX - 1000;
	s.ring.tail_seen = UINT32_MAX - 1000;
	assert_int_equal(pthread_create(&producer, NULL, produce, &s), 0);
	assert_int_equal(consume(&s), 0);
	assert_int_equal(pthread_join(producer, NULL), 0);
	assert_null(rvcm_spsc_peek(&s.ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_and_empty),
		cmocka_unit_test(in_place),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests_name("spsc", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include "base/repeat.h"

#define S 1000000000ull

static struct rvcm_repeat *fresh(void)
{
	static struct rvcm_repeat repeat;

	repeat = (struct rvcm_repeat) { 0 };
	return &repeat;
}

static uint32_t passes(struct rvcm_repeat *repeat, uint64_t hash, uint64_t now_ns)
{
	uint32_t missed = 99;

	assert_true(rvcm_repeat_pass(repeat, hash, now_ns, &missed));
	return missed;
}

static void is_held(struct rvcm_repeat *repeat, uint64_t hash, uint64_t now_ns)
{
	uint32_t missed = 99;

	assert_false(rvcm_repeat_pass(repeat, hash, now_ns, &missed));
	assert_int_equal(missed, 99);
}

static void each_line_is_said_once(void **state)
{
	struct rvcm_repeat *repeat = fresh();

	(void)state;
	for (uint64_t line = 0; line < 4; line++)
		assert_int_equal(passes(repeat, line, line), 0);
	for (uint64_t line = 0; line < 4; line++)
		is_held(repeat, line, S);
}

/* One a second: after 10 s, then 20, 40 and so on, an hour at most. */
static void then_ever_more_rarely(void **state)
{
	struct rvcm_repeat *repeat = fresh();
	uint64_t next = 0, gap = 10, said = 0;

	(void)state;
	for (uint64_t s = 0; s < 50000; s++) {
		if (s != next) {
			is_held(repeat, 7, s * S);
			continue;
		}
		assert_int_equal(passes(repeat, 7, s * S), said ? gap - 1 : 0);
		if (said++)
			gap = gap < 1800 ? 2 * gap : 3600;
		next += gap;
	}
	assert_true(gap == 3600 && said < 30);
}

static void after_a_while_it_is_news(void **state)
{
	struct rvcm_repeat *repeat = fresh();

	(void)state;
	passes(repeat, 7, 0);
	for (uint64_t s = 1; s < 10; s++)
		is_held(repeat, 7, s * S);
	assert_int_equal(passes(repeat, 7, 10 * S), 9);
	is_held(repeat, 7, 29 * S);
	assert_int_equal(passes(repeat, 7, 60 * S), 1); /* quiet for 31 s, of 20 */
	is_held(repeat, 7, 69 * S);
	assert_int_equal(passes(repeat, 7, 70 * S), 1);
}

/* The line that came longest ago is forgotten, not the one that keeps coming. */
static void of_many_lines_the_last_are_remembered(void **state)
{
	struct rvcm_repeat *repeat = fresh();

	(void)state;
	passes(repeat, 0, 0);
	for (uint64_t line = 1; line < 3 * RVCM_REPEAT_LINES; line++) {
		passes(repeat, line, line);
		is_held(repeat, 0, line);
	}
	is_held(repeat, 3 * RVCM_REPEAT_LINES - 1, S);
	assert_int_equal(passes(repeat, 1, S), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_said_once),
		cmocka_unit_test(then_ever_more_rarely),
		cmocka_unit_test(after_a_while_it_is_news),
		cmocka_unit_test(of_many_lines_the_last_are_remembered),
	};

	return cmocka_run_group_tests_name("repeat", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/stat.h"

#include <pthread.h>

struct stats {
#define RVCM_STAT RVCM_STAT_FIELD
#include "unit/test_stat.def"
#undef RVCM_STAT
};

static const struct rvcm_stat_desc descs[] = {
#define RVCM_STAT RVCM_STAT_DESC
#include "unit/test_stat.def"
#undef RVCM_STAT
};

#define N (sizeof(descs) / sizeof(descs[0]))

_Static_assert(sizeof(struct stats) == N * sizeof(uint64_t), "one row, one field");

static void rows_describe_fields(void **state)
{
	(void)state;
	assert_string_equal(descs[1].name, "level");
	assert_int_equal(descs[1].kind, RVCM_STAT_GAUGE);
	assert_string_equal(descs[2].help, "longest message");
	assert_int_equal(offsetof(struct stats, longest), 2 * sizeof(uint64_t));
}

static void fields_count(void **state)
{
	struct stats s = { 0 };

	(void)state;
	rvcm_stat_inc(&s.messages);
	rvcm_stat_add(&s.messages, 41);
	assert_int_equal(rvcm_stat_get(&s.messages), 42);
	rvcm_stat_set(&s.level, 7);
	rvcm_stat_dec(&s.level);
	rvcm_stat_sub(&s.level, 2);
	assert_int_equal(s.level, 4);
	rvcm_stat_max(&s.longest, 9);
	rvcm_stat_max(&s.longest, 8);
	assert_int_equal(s.longest, 9);
}

static void sums(void **state)
{
	struct stats total = { 0 }, a = { 1, 2, 30 }, b = { 10, 20, 3 };

	(void)state;
	rvcm_stat_sum(&total.messages, &a.messages, descs, N);
	rvcm_stat_sum(&total.messages, &b.messages, descs, N);
	assert_int_equal(total.messages, 11);
	assert_int_equal(total.level, 22);
	assert_int_equal(total.longest, 30);
	rvcm_stat_copy(&total.messages, &b.messages, N);
	assert_memory_equal(&total, &b, sizeof(b));
}

static void formats(void **state)
{
	static const char text[] = "messages 1\nlevel 18446744073709551615\nlongest 3\n";
	struct stats s = { 1, UINT64_MAX, 3 };
	char buf[100] = "x";

	(void)state;
	assert_int_equal(rvcm_stat_format(buf, sizeof(buf), &s.messages, descs, N),
			 sizeof(text) - 1);
	assert_string_equal(buf, text);
	assert_int_equal(rvcm_stat_format(buf, 9, &s.messages, descs, N), sizeof(text) - 1);
	assert_string_equal(buf, "messages");
	assert_string_equal(buf + 9, text + 9);
	assert_int_equal(rvcm_stat_format(NULL, 0, &s.messages, descs, N), sizeof(text) - 1);
	assert_int_equal(rvcm_stat_format(buf, sizeof(buf), &s.messages, descs, 0), 0);
	assert_string_equal(buf, "");
}

static void *write_on(void *arg)
{
	struct stats *s = arg;

	for (int i = 0; i < 100000; i++)
		rvcm_stat_inc(&s->messages);
	return NULL;
}

static void may_be_read_while_written(void **state)
{
	struct stats s = { 0 };
	uint64_t seen = 0, now;
	pthread_t writer;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, write_on, &s), 0);
	for (int i = 0; i < 1000; i++) {
		now = rvcm_stat_get(&s.messages);
		assert_true(now >= seen);
		seen = now;
	}
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(s.messages, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_describe_fields),
		cmocka_unit_test(fields_count),
		cmocka_unit_test(sums),
		cmocka_unit_test(formats),
		cmocka_unit_test(may_be_read_while_written),
	};

	return cmocka_run_group_tests_name("stat", tests, NULL, NULL);
}

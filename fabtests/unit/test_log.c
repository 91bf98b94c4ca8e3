/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/log.h"

#include <errno.h>
#include <rdma/providers/fi_log.h>
#include <string.h>

/* The numbers are libfabric's. */
_Static_assert((int)RVCM_LOG_WARN == (int)FI_LOG_WARN, "level");
_Static_assert((int)RVCM_LOG_TRACE == (int)FI_LOG_TRACE, "level");
_Static_assert((int)RVCM_LOG_INFO == (int)FI_LOG_INFO, "level");
_Static_assert((int)RVCM_LOG_DEBUG == (int)FI_LOG_DEBUG, "level");
_Static_assert((int)RVCM_LOG_CORE == (int)FI_LOG_CORE, "subsystem");
_Static_assert((int)RVCM_LOG_FABRIC == (int)FI_LOG_FABRIC, "subsystem");
_Static_assert((int)RVCM_LOG_DOMAIN == (int)FI_LOG_DOMAIN, "subsystem");
_Static_assert((int)RVCM_LOG_EP_CTRL == (int)FI_LOG_EP_CTRL, "subsystem");
_Static_assert((int)RVCM_LOG_EP_DATA == (int)FI_LOG_EP_DATA, "subsystem");
_Static_assert((int)RVCM_LOG_AV == (int)FI_LOG_AV, "subsystem");
_Static_assert((int)RVCM_LOG_CQ == (int)FI_LOG_CQ, "subsystem");
_Static_assert((int)RVCM_LOG_EQ == (int)FI_LOG_EQ, "subsystem");
_Static_assert((int)RVCM_LOG_MR == (int)FI_LOG_MR, "subsystem");
_Static_assert((int)RVCM_LOG_CNTR == (int)FI_LOG_CNTR, "subsystem");

struct seen {
	int lines;
	enum rvcm_log_level level;
	enum rvcm_log_subsys subsys;
	char func[64];
	int line;
	char text[2 * RVCM_LOG_TEXT_MAX];
};

static bool up_to_info_but_not_av(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	(void)ctx;
	return level <= RVCM_LOG_INFO && subsys != RVCM_LOG_AV;
}

static void note(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		 const char *func, int line, const char *text)
{
	struct seen *seen = ctx;

	seen->lines++;
	seen->level = level;
	seen->subsys = subsys;
	strcpy(seen->func, func);
	seen->line = line;
	strcpy(seen->text, text);
	errno = EBADF;
}

static int evaluated(int *times)
{
	return ++*times;
}

static void silent_without_a_sink(void **state)
{
	int times = 0;

	(void)state;
	assert_false(rvcm_log_enabled(RVCM_LOG_WARN, RVCM_LOG_CORE));
	rvcm_warn(RVCM_LOG_CORE, "%d", evaluated(&times));
	assert_int_equal(times, 0);
	rvcm_log_write(RVCM_LOG_WARN, RVCM_LOG_CORE, __func__, __LINE__, "nobody hears this");
}

static void the_sink_gets_the_line(void **state)
{
	struct seen seen = { .lines = 0 };
	const struct rvcm_log_sink sink = { up_to_info_but_not_av, note, &seen };
	int line;

	(void)state;
	rvcm_log_set_sink(&sink);
	errno = ENOENT;
	line = __LINE__ + 1;
	rvcm_info(RVCM_LOG_CQ, "%s is %d", "x", 7);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(seen.lines, 1);
	assert_int_equal(seen.level, RVCM_LOG_INFO);
	assert_int_equal(seen.subsys, RVCM_LOG_CQ);
	assert_string_equal(seen.func, __func__);
	assert_int_equal(seen.line, line);
	assert_string_equal(seen.text, "x is 7");
	rvcm_log_set_sink(NULL);
	rvcm_info(RVCM_LOG_CQ, "too late");
	assert_int_equal(seen.lines, 1);
}

static void the_sink_chooses(void **state)
{
	struct seen seen = { .lines = 0 };
	const struct rvcm_log_sink sink = { up_to_info_but_not_av, note, &seen };
	int times = 0;

	(void)state;
	rvcm_log_set_sink(&sink);
	rvcm_debug(RVCM_LOG_CQ, "%d", evaluated(&times));
	rvcm_warn(RVCM_LOG_AV, "%d", evaluated(&times));
	assert_int_equal(seen.lines, 0);
	assert_int_equal(times, 0);
	rvcm_warn(RVCM_LOG_EQ, "%d", evaluated(&times));
	rvcm_trace(RVCM_LOG_EQ, "%d", evaluated(&times));
	assert_int_equal(seen.lines, 2);
	assert_int_equal(times, 2);
	rvcm_log_set_sink(NULL);
}

static void long_lines_are_cut(void **state)
{
	struct seen seen = { .lines = 0 };
	const struct rvcm_log_sink sink = { up_to_info_but_not_av, note, &seen };

	(void)state;
	rvcm_log_set_sink(&sink);
	rvcm_warn(RVCM_LOG_CORE, "%*d", 2 * RVCM_LOG_TEXT_MAX, 1);
	assert_int_equal(strlen(seen.text), RVCM_LOG_TEXT_MAX - 1);
	rvcm_log_set_sink(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_without_a_sink),
		cmocka_unit_test(the_sink_gets_the_line),
		cmocka_unit_test(the_sink_chooses),
		cmocka_unit_test(long_lines_are_cut),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}

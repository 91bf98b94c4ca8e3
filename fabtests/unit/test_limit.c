/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/limit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static void set_files(rlim_t soft, rlim_t hard)
{
	const struct rlimit limit = { .rlim_cur = soft, .rlim_max = hard };

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* In this order: the hard limit does not rise again. */
static void the_one_that_is_reached_is_named(void **state)
{
	char text[RVCM_LIMIT_TEXT_MAX];

	(void)state;
	set_files(20, 28);
	assert_non_null(strstr(rvcm_limit_text(EMFILE, text), "its 20 "));
	assert_non_null(strstr(text, "ulimit -n, up to 28, or close some"));
	assert_null(strstr(text, "limits.conf"));
	set_files(28, 28);
	assert_non_null(strstr(rvcm_limit_text(EMFILE, text), "its 28 "));
	assert_non_null(strstr(text, "hard limit"));
	assert_non_null(strstr(text, "limits.conf(5)"));
	assert_non_null(strstr(text, ", or close some")); /* not cut */
	assert_null(strstr(text, "ulimit"));
}

static void others_are_in_words(void **state)
{
	char text[RVCM_LIMIT_TEXT_MAX];

	(void)state;
	assert_non_null(strstr(rvcm_limit_text(ENFILE, text), "fs.file-max"));
	assert_string_equal(rvcm_limit_text(EADDRINUSE, text),
			    "no local port is free: see ip_local_port_range in ip(7) and widen it");
	assert_string_equal(rvcm_limit_text(EADDRNOTAVAIL, text),
			    "no local port is free: see ip_local_port_range in ip(7) and widen it");
	assert_string_equal(rvcm_limit_text(EINVAL, text), strerrordesc_np(EINVAL));
	assert_string_equal(rvcm_limit_text(99999, text), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_that_is_reached_is_named),
		cmocka_unit_test(others_are_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

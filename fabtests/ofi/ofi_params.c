/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tunables: values that are no values, names that are nobody's, and values that are taken.
 *
 * ofi_params ask: look for rvcm and end, for a test that wants a process of its own with another
 * environment.
 */
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ofi/caught.h"

static int ask(const struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(CONF_VERSION, NULL, NULL, 0, hints, info);
}

/* -- values -------------------------------------------------------------------------------- */

static const struct {
	const char *name, *value;
} malformed[] = {
	{ "FI_RVCM_EAGER_SIZE", "abc" },
	{ "FI_RVCM_EAGER_SIZE", "16k" },
	{ "FI_RVCM_EAGER_SIZE", "-1" },
	{ "FI_RVCM_EAGER_SIZE", " 1" },
	{ "FI_RVCM_EAGER_SIZE", "0x" },
	{ "FI_RVCM_EAGER_SIZE", "010" },
	{ "FI_RVCM_WINDOW", "00" },
	{ "FI_RVCM_EAGER_SIZE", "99999999999999999999999" },
	{ "FI_RVCM_WINDOW", "0" },
	{ "FI_RVCM_WINDOW", "" },
	{ "FI_RVCM_TX_SIZE", "0" },
	{ "FI_RVCM_RX_SIZE", "1e3" },
	{ "FI_RVCM_CONNECT_TIMEOUT", "0" },
	{ "FI_RVCM_LINGER", "forever" },
	{ "FI_RVCM_STATS", "" },
	{ "FI_RVCM_SILENCE_TIMEOUT", "99" },
	{ "FI_RVCM_HEARTBEAT", "32768" },
	{ "FI_RVCM_CRC", "2" },
	{ "FI_RVCM_MR_CACHE_MONITOR", "kernel" },
	{ "FI_RVCM_MR_CACHE_MONITOR", "" },
	{ "FI_RVCM_MR_CACHE_COUNT", "-1" },
	{ "FI_RVCM_RAILS", "nonesuch0" },
	{ "FI_RVCM_RAILS", "lo, nonesuch0" },
	{ "FI_RVCM_RAILS", "lo nonesuch0" },
	{ "FI_RVCM_RAILS", "192.0.2.77" },
	{ "FI_RVCM_RAILS", "127.0.0.1:80" },
	{ "FI_RVCM_RAILS", "," },
	{ "FI_RVCM_RAILS", "lo,," },
	{ "FI_RVCM_RAILS", "lo, ,127.0.0.1" },
	{ "FI_RVCM_RAILS", " " },
	{ "FI_RVCM_RAILS", "lo,lo,lo,lo,lo,lo,lo,lo,lo" },
};

static void malformed_values_are_named_and_refused(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		char *text;
		int rc;

		setenv(malformed[i].name, malformed[i].value, 1);
		caught_begin();
		rc = ask(hints, &info);
		text = caught_end();
		unsetenv(malformed[i].name);
		assert_int_equal(rc, -FI_ENODATA);
		assert_int_equal(caught_lines(text), 1);
		assert_non_null(strstr(text, malformed[i].name));
		assert_non_null(strstr(text, malformed[i].value));
		free(text);
	}
	conf_ok(ask(hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void good_values_are_taken(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	setenv("FI_RVCM_TX_SIZE", "0x80", 1);
	setenv("FI_RVCM_RAILS", "lo, 127.0.0.1 ,\tlo", 1);
	setenv("FI_RVCM_RX_SIZE", "77", 1);
	conf_ok(ask(hints, &info));
	assert_int_equal(info->tx_attr->size, 128);
	assert_int_equal(info->rx_attr->size, 77);
	fi_freeinfo(info);
	hints->rx_attr->size = 78;
	caught_begin();
	assert_int_equal(ask(hints, &info), -FI_ENODATA);
	free(caught_end());
	unsetenv("FI_RVCM_TX_SIZE");
	unsetenv("FI_RVCM_RX_SIZE");
	unsetenv("FI_RVCM_RAILS");
	fi_freeinfo(hints);
}

static void a_malformed_key_is_refused_and_not_shown(void **state)
{
	static const struct {
		const char *key, *why;
	} rows[] = {
		{ "00112233445566778899aabbccddeef", "has 31 characters: allowed" },
		{ "00112233445566778899aabbccddeeff0", "has 33 characters: allowed" },
		{ "00112233445566778899aabbccddeefg", "and 'g' is no hexadecimal digit" },
		{ "0x112233445566778899aabbccddeeff", "and 'x' is no hexadecimal digit" },
		{ "00112233445566778899aabbccddeef\n", "and byte 0x0a is no hexadecimal digit" },
	};
	struct fi_info *hints = conf_hints(), *info;
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text;
		int rc;

		setenv("FI_RVCM_JOB_KEY", rows[i].key, 1);
		caught_begin();
		rc = ask(hints, &info);
		text = caught_end();
		assert_int_equal(rc, -FI_ENODATA);
		assert_int_equal(caught_lines(text), 1);
		assert_non_null(strstr(text, "FI_RVCM_JOB_KEY"));
		assert_non_null(strstr(text, rows[i].why));
		assert_null(strstr(text, rows[i].key));
		free(text);
	}
	setenv("FI_RVCM_JOB_KEY", old, 1);
	free(old);
	fi_freeinfo(hints);
}

/* -- names --------------------------------------------------------------------------------- */

/* What a process of its own says with these variables, NAME=VALUE and spaces between them. */
static char *said_with(const char *variables)
{
	char command[512], *text;
	FILE *said;

	snprintf(command, sizeof(command), "env %s /proc/%d/exe ask 2>&1 1>&-", variables,
		 (int)getpid());
	said = popen(command, "r");
	text = caught_read(said);
	assert_int_equal(pclose(said), 0);
	return text;
}

static void unknown_names_are_said_once_with_a_guess(void **state)
{
	static const struct {
		const char *name, *guess;
	} cases[] = {
		{ "FI_RVCM_EAGR_SIZE", "did you mean FI_RVCM_EAGER_SIZE?" },
		{ "FI_RVCM_EAGERSIZE", "did you mean FI_RVCM_EAGER_SIZE?" },
		{ "FI_RVCM_INTERFACE", "did you mean FI_RVCM_IFACE?" },
		{ "FI_RVCM_crc", "did you mean FI_RVCM_CRC?" },
		{ "FI_RVCM_TIMEOUT", "fi_rvcm(7)" },
		{ "FI_RVCM_", "fi_rvcm(7)" },
		{ "FI_RVCM_QUITE_ANOTHER_THING", "fi_rvcm(7)" },
		{ "FI_RVCM_A_NAME_THAT_IS_LONGER_THAN_THAT_OF_ANY_TUNABLE_BY_FAR_AND_ON_AND_ON",
		  "fi_rvcm(7)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char variable[128], *text;

		snprintf(variable, sizeof(variable), "%s=1", cases[i].name);
		text = said_with(variable);
		variable[strlen(variable) - 2] = '\0';
		if (caught_lines(text) != 1 || !strstr(text, variable) ||
		    !strstr(text, cases[i].guess))
			fail_msg("with %s it says: %s", variable, text);
		free(text);
	}
}

static void known_names_are_not_said(void **state)
{
	char *text = said_with("FI_RVCM_EAGER_SIZE=0x10 FI_RVCMISH=1 FI_RVC=1");

	(void)state;
	assert_string_equal(text, "");
	free(text);
	text = said_with("FI_RVCM_WINDO=1 FI_RVCM_LINGRE=1");
	assert_int_equal(caught_lines(text), 2);
	free(text);
}

static int ask_and_end(void)
{
	struct fi_info *hints = conf_hints(), *info;
	int rc = ask(hints, &info);

	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_values_are_named_and_refused),
		cmocka_unit_test(good_values_are_taken),
		cmocka_unit_test(a_malformed_key_is_refused_and_not_shown),
		cmocka_unit_test(unknown_names_are_said_once_with_a_guess),
		cmocka_unit_test(known_names_are_not_said),
	};

	conf_provider();
	unsetenv("FI_PROVIDER");
	setenv("FI_LOG_LEVEL", "warn", 1);
	if (argc == 2 && strcmp(argv[1], "ask") == 0)
		return ask_and_end();
	return cmocka_run_group_tests_name("params", tests, caught_setup, caught_teardown);
}

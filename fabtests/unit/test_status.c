/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/status.h"

#include <errno.h>
#include <string.h>

static const enum rvcm_status all[] = {
#define RVCM_STATUS(value, name, err, text) RVCM_STATUS_##name,
#include "base/status.def"
#undef RVCM_STATUS
};

#define N (sizeof(all) / sizeof(all[0]))

/* Written down a second time, because they are on the wire and in people's scripts. */
static void numbers_are_for_ever(void **state)
{
	(void)state;
	assert_int_equal(RVCM_STATUS_OK, 0);
	assert_int_equal(RVCM_STATUS_FLUSHED, 4);
	assert_int_equal(RVCM_STATUS_REMOTE_ACCESS, 6);
	assert_int_equal(RVCM_STATUS_RETRY_EXCEEDED, 8);
	assert_int_equal(RVCM_STATUS_GENERAL, 19);
	assert_int_equal(RVCM_STATUS_CONNECTION_LOST, 20);
	assert_int_equal(RVCM_STATUS_REJECTED_CROSSED, 30);
	assert_int_equal(RVCM_STATUS_PEER_DEAD, 34);
	assert_int_equal(RVCM_STATUS_TRUNCATED, 40);
	assert_int_equal(RVCM_STATUS_CLOSED, 44);
}

static void rows_are_complete_and_distinct(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		assert_true(rvcm_status_known(all[i]));
		assert_true(strlen(rvcm_status_name(all[i])) > 0);
		assert_true(strlen(rvcm_status_text(all[i])) > 0);
		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(all[i], all[k]);
			assert_string_not_equal(rvcm_status_text(all[i]), rvcm_status_text(all[k]));
		}
	}
}

static void errnos_are_plain(void **state)
{
	(void)state;
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_OK), 0);
	for (size_t i = 1; i < N; i++)
		assert_in_range(rvcm_status_errno(all[i]), 1, EHWPOISON);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_RETRY_EXCEEDED), ETIMEDOUT);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_REFUSED), ECONNREFUSED);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_PEER_DEAD), ECONNRESET);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_TRUNCATED), EMSGSIZE);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_CANCELED), ECANCELED);
	assert_int_equal(rvcm_status_errno(RVCM_STATUS_REJECTED_KEY), EACCES);
}

static void names_are_the_table(void **state)
{
	(void)state;
	assert_string_equal(rvcm_status_name(RVCM_STATUS_OK), "OK");
	assert_string_equal(rvcm_status_text(RVCM_STATUS_OK), "success");
	assert_string_equal(rvcm_status_name(RVCM_STATUS_ADDRESS_IN_USE), "ADDRESS_IN_USE");
}

static void unknown_numbers_are_errors(void **state)
{
	static const unsigned int unknown[] = { 15, 18, 59, 99, 100, 1u << 31, -1u };

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		enum rvcm_status status = unknown[i];

		assert_false(rvcm_status_known(unknown[i]));
		assert_int_equal(rvcm_status_errno(status), EIO);
		assert_string_equal(rvcm_status_name(status), "UNKNOWN");
		assert_string_equal(rvcm_status_text(status), "unknown status");
	}
}

static void from_errno(void **state)
{
	(void)state;
	assert_int_equal(rvcm_status_from_errno(0), RVCM_STATUS_OK);
	assert_int_equal(rvcm_status_from_errno(ECONNREFUSED), RVCM_STATUS_REFUSED);
	assert_int_equal(rvcm_status_from_errno(-ECONNREFUSED), RVCM_STATUS_REFUSED);
	assert_int_equal(rvcm_status_from_errno(-EPIPE), RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(rvcm_status_from_errno(ETIMEDOUT), RVCM_STATUS_RETRY_EXCEEDED);
	assert_int_equal(rvcm_status_from_errno(ENETUNREACH), RVCM_STATUS_UNREACHABLE);
	assert_int_equal(rvcm_status_from_errno(-ENOMEM), RVCM_STATUS_NO_MEMORY);
	assert_int_equal(rvcm_status_from_errno(ENOTTY), RVCM_STATUS_GENERAL);
	assert_int_equal(rvcm_status_from_errno(100000), RVCM_STATUS_GENERAL);
	/* No failure may look like a success. */
	for (int e = 1; e < 4096; e++)
		assert_int_not_equal(rvcm_status_from_errno(e), RVCM_STATUS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_for_ever),
		cmocka_unit_test(rows_are_complete_and_distinct),
		cmocka_unit_test(errnos_are_plain),
		cmocka_unit_test(names_are_the_table),
		cmocka_unit_test(unknown_numbers_are_errors),
		cmocka_unit_test(from_errno),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}

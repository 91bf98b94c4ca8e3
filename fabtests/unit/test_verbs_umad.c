/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include <string.h>

#include "dev/verbs/umad.h"

static umad_port_t infiniband(void)
{
	umad_port_t port = { .base_lid = 5,
			     .sm_lid = 1,
			     .state = 4,
			     .phys_state = 5,
			     .rate = 100,
			     .link_layer = "InfiniBand" };

	return port;
}

static void an_active_port(void **state)
{
	umad_port_t port = infiniband();
	char text[RVCM_VERBS_UMAD_TEXT_MAX];

	(void)state;
	assert_string_equal(
		rvcm_verbs_umad_format(&port, text),
		"InfiniBand, state Active, physical state LinkUp, LID 5, SM LID 1, rate 100 Gb/s");
}

static void a_port_that_no_subnet_manager_has_found(void **state)
{
	umad_port_t port = infiniband();
	char text[RVCM_VERBS_UMAD_TEXT_MAX];

	(void)state;
	port.state = 2;
	port.base_lid = port.sm_lid = 0;
	assert_non_null(strstr(rvcm_verbs_umad_format(&port, text), "state Initialize"));
	assert_non_null(strstr(text, "no subnet manager"));
}

static void values_that_are_not_known(void **state)
{
	umad_port_t port = infiniband();
	char text[RVCM_VERBS_UMAD_TEXT_MAX];

	(void)state;
	port.state = 5;
	port.phys_state = 8;
	port.base_lid = port.sm_lid = port.rate = 4294967295u;
	assert_non_null(strstr(rvcm_verbs_umad_format(&port, text), "state ?, physical state ?"));
	assert_non_null(strstr(text, "rate 4294967295 Gb/s")); /* it has room */
}

static void a_device_that_is_not_there(void **state)
{
	char text[RVCM_VERBS_UMAD_TEXT_MAX];

	(void)state;
	assert_non_null(strstr(rvcm_verbs_umad_text("nosuch0", 1, text), "nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_active_port),
		cmocka_unit_test(a_port_that_no_subnet_manager_has_found),
		cmocka_unit_test(values_that_are_not_known),
		cmocka_unit_test(a_device_that_is_not_there),
	};

	return cmocka_run_group_tests_name("verbs_umad", tests, NULL, NULL);
}

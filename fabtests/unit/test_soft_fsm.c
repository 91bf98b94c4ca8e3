/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole product of states and events, and all short histories, against what must always hold.
 */
#include "unit/unit.h"

#include <stdbool.h>

#include "dev/soft/fsm.h"

#define EACH(s, e)                                              \
	for (unsigned int s = 0; s < RVCM_SOFT_FSM_STATES; s++) \
		for (unsigned int e = 0; e < RVCM_SOFT_FSM_EVENTS; e++)

static bool stands(enum rvcm_dev_qp_state s)
{
	return s == RVCM_DEV_QP_RTS || s == RVCM_DEV_QP_CLOSING;
}

static void nothing_leaves_error(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < RVCM_SOFT_FSM_EVENTS; e++) {
		struct rvcm_soft_fsm_step st = rvcm_soft_fsm_next(RVCM_DEV_QP_ERROR, e);

		assert_int_equal(st.next, RVCM_DEV_QP_ERROR);
		assert_true(st.action == RVCM_SOFT_FSM_IGNORE || st.action == RVCM_SOFT_FSM_REFUSE);
	}
}

static void what_is_refused_or_ignored_changes_nothing(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_soft_fsm_step st = rvcm_soft_fsm_next(s, e);

		if (st.action == RVCM_SOFT_FSM_IGNORE || st.action == RVCM_SOFT_FSM_REFUSE)
			assert_int_equal(st.next, s);
		else
			assert_int_not_equal(st.next, s);
		if (st.action == RVCM_SOFT_FSM_REFUSE)
			assert_true(e == RVCM_SOFT_FSM_CONNECT || e == RVCM_SOFT_FSM_ACCEPT);
	}
}

static void actions_go_with_the_change_of_state(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_soft_fsm_step st = rvcm_soft_fsm_next(s, e);
		bool ends = s != RVCM_DEV_QP_ERROR && st.next == RVCM_DEV_QP_ERROR;

		assert_int_equal(st.action == RVCM_SOFT_FSM_ESTABLISH,
				 !stands(s) && st.next == RVCM_DEV_QP_RTS);
		assert_int_equal(st.action == RVCM_SOFT_FSM_END, stands(s) && ends);
		assert_int_equal(st.action == RVCM_SOFT_FSM_REPORT ||
					 st.action == RVCM_SOFT_FSM_ABANDON,
				 !stands(s) && ends);
		assert_int_equal(st.action == RVCM_SOFT_FSM_FINISH,
				 s == RVCM_DEV_QP_RTS && st.next == RVCM_DEV_QP_CLOSING);
		assert_int_equal(st.action == RVCM_SOFT_FSM_DIAL,
				 s == RVCM_DEV_QP_INIT && st.next == RVCM_DEV_QP_CONNECTING);
	}
}

static void what_ends_a_connection_ends_it_in_every_state(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_soft_fsm_step st = rvcm_soft_fsm_next(s, e);

		if (stands(s) && (e == RVCM_SOFT_FSM_DETACH || e == RVCM_SOFT_FSM_LOST ||
				  e == RVCM_SOFT_FSM_PEER_CLOSED))
			assert_int_equal(st.next, RVCM_DEV_QP_ERROR);
		if (e == RVCM_SOFT_FSM_DISCONNECT)
			assert_true(st.next == RVCM_DEV_QP_ERROR || st.next == RVCM_DEV_QP_CLOSING);
	}
}

/* Every history of so many events: what its owner would be told. */
static void told(enum rvcm_dev_qp_state s, int depth, int established, int ended)
{
	assert_true(established <= 1 && ended <= established);
	if (s == RVCM_DEV_QP_ERROR && established)
		assert_int_equal(ended, 1);
	for (unsigned int e = 0; depth && e < RVCM_SOFT_FSM_EVENTS; e++) {
		struct rvcm_soft_fsm_step st = rvcm_soft_fsm_next(s, e);

		told(st.next, depth - 1, established + (st.action == RVCM_SOFT_FSM_ESTABLISH),
		     ended + (st.action == RVCM_SOFT_FSM_END));
	}
}

static void disconnected_is_told_once_to_who_was_established(void **state)
{
	(void)state;
	told(RVCM_DEV_QP_INIT, 6, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaves_error),
		cmocka_unit_test(what_is_refused_or_ignored_changes_nothing),
		cmocka_unit_test(actions_go_with_the_change_of_state),
		cmocka_unit_test(what_ends_a_connection_ends_it_in_every_state),
		cmocka_unit_test(disconnected_is_told_once_to_who_was_established),
	};

	return cmocka_run_group_tests_name("soft_fsm", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole product of states and events, against what must hold whatever the table says. */
#include "unit/unit.h"

#include <stdbool.h>

#include "conn/link_fsm.h"

static bool has_link(enum rvcm_link_state s)
{
	return s == RVCM_LINK_UP || s == RVCM_LINK_BREAKING || s == RVCM_LINK_CLOSING;
}

static bool is_request(enum rvcm_link_event e)
{
	return e == RVCM_LINK_EV_REQ || e == RVCM_LINK_EV_REQ_YIELD;
}

static bool is_release(enum rvcm_link_event e)
{
	return e == RVCM_LINK_EV_RELEASED || e == RVCM_LINK_EV_RELEASED_WANT ||
	       e == RVCM_LINK_EV_RELEASED_REQ;
}

#define EACH(s, e)                                          \
	for (unsigned int s = 0; s < RVCM_LINK_STATES; s++) \
		for (unsigned int e = 0; e < RVCM_LINK_EVENTS; e++)

static void nothing_leaves_closed(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < RVCM_LINK_EVENTS; e++) {
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(RVCM_LINK_CLOSED, e);

		assert_int_equal(st.next, RVCM_LINK_CLOSED);
		assert_int_equal(st.action, RVCM_LINK_DO_NOTHING);
	}
}

static void shut_ends_every_state(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < RVCM_LINK_STATES; s++) {
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, RVCM_LINK_EV_SHUT);

		assert_true(st.next == RVCM_LINK_CLOSED || st.next == RVCM_LINK_CLOSING);
	}
	/* and from CLOSING the end is reached by what is sure to come: the timer, then RELEASED */
	assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_CLOSING, RVCM_LINK_EV_EXPIRED).action,
			 RVCM_LINK_DO_BREAK);
	assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_CLOSING, RVCM_LINK_EV_RELEASED).next,
			 RVCM_LINK_CLOSED);
}

/* A link that the data side has may be freed only after RELEASED. */
static void a_handed_over_link_is_not_dropped(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		if (!has_link(s) || is_release(e))
			continue;
		assert_true(has_link(st.next));
		assert_true(st.action == RVCM_LINK_DO_NOTHING || st.action == RVCM_LINK_DO_BREAK ||
			    st.action == RVCM_LINK_DO_PARK || st.action == RVCM_LINK_DO_DISCONNECT);
	}
}

/* The data side gets links in one way only, and only in UP are they in use. */
static void up_is_entered_by_establishing(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		assert_int_equal(st.action == RVCM_LINK_DO_HAND_OVER,
				 s != RVCM_LINK_UP && st.next == RVCM_LINK_UP);
		if (st.action == RVCM_LINK_DO_HAND_OVER)
			assert_int_equal(e, RVCM_LINK_EV_EST);
	}
}

/* Only a CROSSED peer is answered CROSSED, and only while our own request is on its way. */
static void crossing_is_decided_in_opening(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		if (st.action == RVCM_LINK_DO_CROSS) {
			assert_int_equal(s, RVCM_LINK_OPENING);
			assert_int_equal(e, RVCM_LINK_EV_REQ_YIELD);
			assert_int_equal(st.next, RVCM_LINK_OPENING);
		}
	}
	assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_OPENING, RVCM_LINK_EV_REQ).next,
			 RVCM_LINK_ACCEPTING);
}

/* A request is taken, parked or refused by the closing, in every state. */
static void requests_are_never_forgotten(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		if (!is_request(e) || s == RVCM_LINK_CLOSING || s == RVCM_LINK_CLOSED)
			continue;
		assert_true(st.action == RVCM_LINK_DO_ACCEPT || st.action == RVCM_LINK_DO_SWITCH ||
			    st.action == RVCM_LINK_DO_CROSS || st.action == RVCM_LINK_DO_PARK);
	}
}

/* Whoever waits for something has a timer or an event that ends the waiting. */
static void no_attempt_waits_for_ever(void **state)
{
	static const enum rvcm_link_state waiting[] = { RVCM_LINK_OPENING, RVCM_LINK_BACKOFF,
							RVCM_LINK_CROSSED, RVCM_LINK_ACCEPTING };

	(void)state;
	for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(waiting[i], RVCM_LINK_EV_EXPIRED);

		assert_int_equal(st.next, RVCM_LINK_IDLE);
		assert_int_equal(st.action, RVCM_LINK_DO_GIVE_UP);
		assert_int_not_equal(rvcm_link_fsm_next(waiting[i], RVCM_LINK_EV_TIMER).next,
				     waiting[i]);
	}
}

static void everything_has_a_name(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < RVCM_LINK_STATES; s++)
		assert_non_null(rvcm_link_fsm_state_name(s));
	for (unsigned int e = 0; e < RVCM_LINK_EVENTS; e++)
		assert_non_null(rvcm_link_fsm_event_name(e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaves_closed),
		cmocka_unit_test(shut_ends_every_state),
		cmocka_unit_test(a_handed_over_link_is_not_dropped),
		cmocka_unit_test(up_is_entered_by_establishing),
		cmocka_unit_test(crossing_is_decided_in_opening),
		cmocka_unit_test(requests_are_never_forgotten),
		cmocka_unit_test(no_attempt_waits_for_ever),
		cmocka_unit_test(everything_has_a_name),
	};

	return cmocka_run_group_tests_name("link_fsm", tests, NULL, NULL);
}

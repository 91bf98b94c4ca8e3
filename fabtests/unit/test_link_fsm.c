/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole product of states and events, against what must hold whatever the table says. */
#include "unit/unit.h"

#include <stdbool.h>
#include <string.h>

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
	       e == RVCM_LINK_EV_RELEASED_LATER || e == RVCM_LINK_EV_RELEASED_CLAIM;
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
			    st.action == RVCM_LINK_DO_ACCEPT ||
			    st.action == RVCM_LINK_DO_DISCONNECT);
	}
}

/* A link of ours is used when it is established, a peer's when it has proved itself; no other is.
 */
static void up_is_entered_by_establishing(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		assert_int_equal(st.action == RVCM_LINK_DO_HAND_OVER ||
					 st.action == RVCM_LINK_DO_TAKE,
				 s != RVCM_LINK_UP && st.next == RVCM_LINK_UP);
		if (st.action == RVCM_LINK_DO_HAND_OVER)
			assert_true(s == RVCM_LINK_OPENING && e == RVCM_LINK_EV_EST);
		if (st.action == RVCM_LINK_DO_TAKE)
			assert_true(s == RVCM_LINK_ACCEPTING && e == RVCM_LINK_EV_PROVEN);
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

/* A request is accepted, crossed or refused by the closing, in every state. */
static void requests_are_never_forgotten(void **state)
{
	(void)state;
	EACH(s, e)
	{
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(s, e);

		if (!is_request(e) || s == RVCM_LINK_CLOSING || s == RVCM_LINK_CLOSED)
			continue;
		assert_true(st.action == RVCM_LINK_DO_ACCEPT || st.action == RVCM_LINK_DO_SWITCH ||
			    st.action == RVCM_LINK_DO_CROSS);
	}
}

/* It proves nothing: what stands goes on standing. */
static void a_request_ends_nothing_that_stands(void **state)
{
	(void)state;
	EACH(s, e)
	{
		if (is_request(e) && has_link(s))
			assert_int_equal(rvcm_link_fsm_next(s, e).next, s);
	}
}

/* Whoever waits for something has a timer or an event that ends the waiting. */
static void no_attempt_waits_for_ever(void **state)
{
	static const enum rvcm_link_state waiting[] = { RVCM_LINK_OPENING, RVCM_LINK_BACKOFF,
							RVCM_LINK_CROSSED };

	(void)state;
	for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
		struct rvcm_link_fsm_step st = rvcm_link_fsm_next(waiting[i], RVCM_LINK_EV_EXPIRED);

		assert_int_equal(st.next, RVCM_LINK_IDLE);
		assert_int_equal(st.action, RVCM_LINK_DO_GIVE_UP);
		assert_int_not_equal(rvcm_link_fsm_next(waiting[i], RVCM_LINK_EV_TIMER).next,
				     waiting[i]);
	}
	/* A claim has a timer of its own, and the last one's end is one of these. */
	assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_ACCEPTING, RVCM_LINK_EV_FAIL).next,
			 RVCM_LINK_BACKOFF);
	assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_ACCEPTING, RVCM_LINK_EV_FATAL).next,
			 RVCM_LINK_IDLE);
}

/* Whatever ends a link that the data side has, the data side is told, and control waits for it. */
static void the_end_of_a_link_is_told(void **state)
{
	static const enum rvcm_link_event ends[] = { RVCM_LINK_EV_LOST, RVCM_LINK_EV_BROKEN };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct rvcm_link_fsm_step up = rvcm_link_fsm_next(RVCM_LINK_UP, ends[i]);

		assert_int_equal(up.next, RVCM_LINK_BREAKING);
		assert_int_equal(up.action, RVCM_LINK_DO_BREAK);
		assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_CLOSING, ends[i]).action,
				 RVCM_LINK_DO_BREAK);
		/* Told already: it is only waited for. */
		assert_int_equal(rvcm_link_fsm_next(RVCM_LINK_BREAKING, ends[i]).next,
				 RVCM_LINK_BREAKING);
	}
}

/*
 * Every run of the machine, followed through what its actions do to the things control holds: the
 * link, the timer, claims. What the device and the data side cannot do is left out; all else may
 * happen in any order.
 */
struct held {
	enum rvcm_link_state state;
	bool link;  /* there is one: ours to open, or given */
	bool given; /* to the data side, until RELEASED */
	bool down;  /* and it has been told to let go */
	bool timer;
	bool claim; /* at least one, not proven */
};

static bool possible(const struct held *h, enum rvcm_link_event e)
{
	bool attempt = h->link && !h->given;

	switch (e) {
	case RVCM_LINK_EV_EST:
	case RVCM_LINK_EV_REJ_CROSSED:
		return attempt;
	case RVCM_LINK_EV_FAIL:
	case RVCM_LINK_EV_FATAL: /* an attempt's, or the last claim's end, which is told in
				    ACCEPTING */
		return attempt || (h->state == RVCM_LINK_ACCEPTING && h->claim);
	case RVCM_LINK_EV_PROVEN:
		return h->claim && !h->link;
	case RVCM_LINK_EV_TIMER:
	case RVCM_LINK_EV_EXPIRED:
		return h->timer;
	case RVCM_LINK_EV_LOST:
	case RVCM_LINK_EV_BROKEN:
		return h->given;
	case RVCM_LINK_EV_RELEASED:
	case RVCM_LINK_EV_RELEASED_WANT:
	case RVCM_LINK_EV_RELEASED_LATER:
		return h->given && h->down && !h->claim;
	case RVCM_LINK_EV_RELEASED_CLAIM:
		return h->given && h->down && h->claim;
	default: /* wishes, the peer's requests, and the end */
		return true;
	}
}

static void drop_link(struct held *h)
{
	assert_false(h->given);
	h->link = false;
}

static void act(struct held *h, enum rvcm_link_action action)
{
	switch (action) {
	case RVCM_LINK_DO_OPEN:
		drop_link(h);
		h->link = true;
		h->timer = true;
		break;
	case RVCM_LINK_DO_SWITCH:
		drop_link(h);
		h->claim = true;
		h->timer = false;
		break;
	case RVCM_LINK_DO_ACCEPT:
		assert_true(!h->link || h->given); /* nothing is forgotten */
		h->claim = true;
		h->timer = h->timer && h->state != RVCM_LINK_ACCEPTING;
		break;
	case RVCM_LINK_DO_WAIT:
	case RVCM_LINK_DO_RETRY:
		drop_link(h);
		h->timer = true;
		break;
	case RVCM_LINK_DO_GIVE_UP:
	case RVCM_LINK_DO_SHARE:
	case RVCM_LINK_DO_DROP:
		drop_link(h);
		h->timer = false;
		break;
	case RVCM_LINK_DO_TAKE:
		h->link = true;
		__attribute__((fallthrough));
	case RVCM_LINK_DO_HAND_OVER:
		assert_true(h->link && !h->given);
		h->given = true;
		h->down = false;
		h->timer = false;
		break;
	case RVCM_LINK_DO_BREAK:
		assert_true(h->given);
		h->down = true;
		h->timer = false;
		break;
	case RVCM_LINK_DO_DISCONNECT:
		assert_true(h->given && !h->down);
		h->timer = true;
		h->claim = false;
		break;
	case RVCM_LINK_DO_FINISH:
		drop_link(h);
		h->timer = false;
		h->claim = false;
		break;
	default: /* NOTHING; CROSS answers the request: no more */
		break;
	}
}

/* What must be true wherever the machine stands. */
static void check_held(const struct held *h)
{
	switch (h->state) {
	case RVCM_LINK_IDLE:
		assert_false(h->link || h->given || h->timer || h->claim);
		break;
	case RVCM_LINK_BACKOFF:
	case RVCM_LINK_CROSSED:
		assert_true(!h->link && h->timer && !h->claim);
		break;
	case RVCM_LINK_OPENING:
		assert_true(h->link && !h->given && h->timer && !h->claim);
		break;
	case RVCM_LINK_ACCEPTING:
		assert_true(!h->link && !h->timer && h->claim);
		break;
	case RVCM_LINK_UP:
		assert_true(h->given && !h->down && !h->timer);
		break;
	case RVCM_LINK_BREAKING:
		assert_true(h->given && h->down);
		break;
	case RVCM_LINK_CLOSING:
		/* Either it is known to let go, or the timer sees to it. */
		assert_true(h->given && (h->down || h->timer));
		break;
	default: /* CLOSED */
		assert_false(h->link || h->given || h->timer);
		break;
	}
}

static unsigned int number_of(const struct held *h)
{
	return (unsigned int)h->state << 5 | (unsigned int)h->link << 4 |
	       (unsigned int)h->given << 3 | (unsigned int)h->down << 2 |
	       (unsigned int)h->timer << 1 | (unsigned int)h->claim;
}

static struct held step_held(struct held h, enum rvcm_link_event e)
{
	struct rvcm_link_fsm_step st = rvcm_link_fsm_next(h.state, e);

	if (e == RVCM_LINK_EV_TIMER || e == RVCM_LINK_EV_EXPIRED)
		h.timer = false; /* it has fired */
	if (is_release(e))
		h.given = false;
	/* These are told of an attempt, or of the last claim. */
	if (h.state == RVCM_LINK_ACCEPTING && (e == RVCM_LINK_EV_FAIL || e == RVCM_LINK_EV_FATAL))
		h.claim = false;
	h.state = st.next;
	act(&h, st.action);
	check_held(&h);
	return h;
}

static void nothing_is_lost_on_any_way(void **state)
{
	static struct held queue[RVCM_LINK_STATES << 5];
	static bool seen[RVCM_LINK_STATES << 5];
	bool reached[RVCM_LINK_STATES] = { false };
	size_t n = 1;

	(void)state;
	memset(seen, 0, sizeof(seen));
	queue[0] = (struct held) { .state = RVCM_LINK_IDLE };
	seen[number_of(&queue[0])] = true;
	for (size_t i = 0; i < n; i++) {
		reached[queue[i].state] = true;
		for (unsigned int e = 0; e < RVCM_LINK_EVENTS; e++) {
			struct held next;

			if (!possible(&queue[i], e))
				continue;
			next = step_held(queue[i], e);
			if (seen[number_of(&next)])
				continue;
			seen[number_of(&next)] = true;
			queue[n++] = next;
		}
	}
	for (unsigned int s = 0; s < RVCM_LINK_STATES; s++)
		assert_true(reached[s]);
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
		cmocka_unit_test(a_request_ends_nothing_that_stands),
		cmocka_unit_test(no_attempt_waits_for_ever),
		cmocka_unit_test(the_end_of_a_link_is_told),
		cmocka_unit_test(nothing_is_lost_on_any_way),
		cmocka_unit_test(everything_has_a_name),
	};

	return cmocka_run_group_tests_name("link_fsm", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that have two links, for both have opened one at once, and an endpoint that closes.
 * It says END on one of them; what is sent to it, and to be confirmed, goes over the other. The
 * first may be slow, or lost: nothing is confirmed that an open endpoint has not taken, all are
 * told in the end, and nobody else is harmed.
 */
#include "unit/unit.h"

#include <string.h>

#include "conn/conn_impl.h"
#include "sim/duo.h"

struct crossed {
	struct duo duo;
	/* Node 1's ends, once it knows whose the link is: */
	struct rvcm_dev_qp *own;   /* that it has opened itself, and sends on */
	struct rvcm_dev_qp *other; /* that node 0 has opened, and sends on */
};

static void note_link(void *arg, struct rvcm_dev_qp *a, struct rvcm_dev_qp *b, bool broken)
{
	struct crossed *c = arg;

	(void)broken;
	if (a->dev == c->duo.nodes[1].devs[0])
		c->own = a;
	else if (((struct rvcm_link *)b->ctx)->conn)
		c->other = b;
}

/* Of each node the first endpoint has something for the second of the other. */
static void begin(struct crossed *c, bool placed)
{
	struct duo *w = &c->duo;

	memset(c, 0, sizeof(*c));
	duo_open(w, 2, 2, placed);
	for (int i = 0; i < 2; i++) {
		struct duo_end *first = &w->nodes[i].ends[0], *second = &w->nodes[i].ends[1];

		duo_know(first, 0);
		duo_know(first, 1);
		duo_know(second, 0);
		duo_receive(second);
		duo_send(first, 1, 1, 0);
	}
}

/*
 * Both open a link at once, and send on their own: the one which sends, to the second endpoint of
 * node 1; the one which will close, to the second of node 0. The two have not met yet.
 */
static void cross(struct crossed *c)
{
	struct duo *w = &c->duo;

	begin(c, false);
	for (int i = 0; i < 100; i++) { /* in step: what both ask crosses on its way */
		duo_look(w);
		sim_run(w->net, SIM_MS);
	}
	assert_int_equal(w->nodes[0].ends[1].received, 1);
	assert_int_equal(w->nodes[1].ends[1].received, 1);
	assert_int_equal(sim_links_count(w->net, NULL, NULL), 2);
	sim_links_each(w->net, note_link, c);
	assert_true(c->own && c->other);
}

/* The one which will close hears of the sender. */
static void meet(struct duo *w)
{
	struct duo_end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	duo_receive(closing);
	duo_deliver(w, 0);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(closing->received, 1);
	assert_int_equal(sender->sent, 1);
	sender->sent = 0;
}

/* How much it says before it closes: all is on its way, END waits for credit, memory is lent. */
static const struct said {
	int n;
	size_t bytes;
} says[] = { { 1, 1 }, { 20, 1 }, { 1, DUO_LENT } };

/*
 * It says that to the sender, and closes; nothing of it arrives for a while. What is sent to it
 * meanwhile goes nowhere, and nobody is told otherwise.
 */
static void close_unheard(struct crossed *c, const struct said *said)
{
	struct duo *w = &c->duo;
	struct duo_end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	sim_qp_silence(c->own);
	for (int i = 0; i < said->n; i++)
		duo_send(closing, 0, said->bytes, said->bytes == DUO_LENT ? 0 : RVCM_EP_INJECT);
	duo_pass(w, 100 * SIM_MS);
	rvcm_ep_shutdown(closing->ep);
	duo_pass(w, 100 * SIM_MS);
	if (said->bytes == DUO_LENT) /* which the peer may read: it is waited for */
		assert_false(rvcm_ep_quiet(closing->ep));
	else
		duo_end_close(closing);
	duo_receive(&w->nodes[1].ends[1]);
	duo_deliver(w, 1);
	duo_deliver(w, 0);
	duo_pass(w, SIM_S);
	assert_int_equal(w->nodes[1].ends[1].received, 2);
	assert_int_equal(sender->failed, 0);
	assert_int_equal(sender->sent, 1);
}

/* It is known how both have ended, and the link that was in use is in use still. */
static void check_ended(struct duo *w, uint32_t links)
{
	struct duo_end *sender = &w->nodes[0].ends[0];

	duo_pass(w, SIM_S);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 1);
	duo_receive(&w->nodes[1].ends[1]);
	duo_deliver(w, 1);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(sender->sent, 2);
	assert_int_equal(sim_links_count(w->net, NULL, NULL), links);
}

static void end_comes_late_on_another_link(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(says) / sizeof(says[0]); i++) {
		struct crossed c;

		cross(&c);
		if (i % 2)
			meet(&c.duo);
		close_unheard(&c, &says[i / 2]);
		sim_qp_heal(c.own);
		check_ended(&c.duo, 2);
		duo_close(&c.duo);
	}
}

static void end_is_lost_with_another_link(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(says) / sizeof(says[0]); i++) {
		struct crossed c;

		/* Who is there still, and has heard of the other, loses both links. */
		if (i % 2 && says[i / 2].bytes == DUO_LENT)
			continue;
		cross(&c);
		if (i % 2)
			meet(&c.duo);
		close_unheard(&c, &says[i / 2]);
		sim_qp_break(c.own);
		check_ended(&c.duo, 1);
		duo_close(&c.duo);
	}
}

/* Nobody looks after connections: what has failed has not ended yet. */
static void only_data(struct duo *w)
{
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 2; n++)
			rvcm_engine_progress(w->nodes[n].engine);
		sim_run(w->net, 100 * SIM_US);
	}
}

static void end_is_not_said_for_another_link_has_failed(void **state)
{
	struct crossed c;
	struct duo *w = &c.duo;
	struct duo_end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	(void)state;
	cross(&c);
	meet(w);
	duo_receive(sender);
	duo_send(closing, 0, 1, 0);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(sender->received, 1);
	sim_dev_fail_op(w->nodes[1].devs[0], 1, RVCM_STATUS_CONNECTION_LOST);
	duo_send(closing, 0, 1, 0);
	only_data(w);
	rvcm_ep_shutdown(closing->ep);
	duo_deliver(w, 0);
	only_data(w);
	duo_pass(w, SIM_S);
	assert_int_equal(sender->sent, 0);
	assert_int_equal(sender->lost, 1);
	duo_close(w);
}

/* And says of which link it vouches for what has come: END goes over the other one. */
static void end_vouches_over_another_link(void **state)
{
	struct crossed c;
	struct duo *w = &c.duo;
	struct duo_end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	(void)state;
	cross(&c);
	meet(w);
	for (int i = 0; i < 20; i++) { /* the numbers of the two links differ */
		duo_receive(sender);
		duo_send(closing, 0, 1, 0);
		duo_pass(w, 100 * SIM_MS);
	}
	assert_int_equal(sender->received, 20);
	duo_take_unasked(w);
	sim_qp_silence(c.other); /* the answer would come over this one */
	duo_deliver(w, 0);       /* too late */
	duo_go_unasked(w);
	sim_qp_heal(c.other);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 1);
	duo_close(w);
}

/* Only HELLO comes on the link that node 0 has opened; what is behind it does not. */
static void silence_behind_hello(struct crossed *c)
{
	struct duo *w = &c->duo;

	for (int i = 0; i < 100 && !c->other; i++) {
		uint64_t end = sim_now(w->net) + SIM_MS;

		duo_look(w);
		while (!c->other && sim_step_by(w->net, end)) {
			rvcm_engine_progress(w->nodes[1].engine);
			sim_links_each(w->net, note_link, c);
		}
	}
	assert_non_null(c->other);
	sim_qp_silence(c->other);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(w->nodes[0].ends[1].received, 1);
	assert_int_equal(w->nodes[1].ends[1].received, 0);
}

/*
 * It has not been able to say who it is on the link that is for what it says, and so says END on
 * the other, of which it knows by the handshake only; and that is lost.
 */
static void only_who_shook_hands_is_told(void **state)
{
	struct crossed c;
	struct duo *w = &c.duo;
	struct duo_end *closing = &w->nodes[1].ends[1];

	(void)state;
	begin(&c, true);
	silence_behind_hello(&c);
	sim_qp_silence(c.own);
	for (int i = 0; i < 20; i++) /* more than a window */
		duo_send(&w->nodes[1].ends[0], 1, 1, RVCM_EP_INJECT);
	duo_send(closing, 0, 1, 0);
	duo_pass(w, 10 * SIM_MS);
	rvcm_ep_shutdown(closing->ep);
	duo_pass(w, 10 * SIM_MS);
	sim_qp_break(c.other);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(sim_links_count(w->net, NULL, NULL), 1);
	rvcm_ep_quiet(closing->ep);
	duo_pass(w, 10 * SIM_MS);
	assert_true(rvcm_ep_quiet(closing->ep));
	sim_qp_heal(c.own);
	duo_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_comes_late_on_another_link),
		cmocka_unit_test(end_is_lost_with_another_link),
		cmocka_unit_test(end_is_not_said_for_another_link_has_failed),
		cmocka_unit_test(end_vouches_over_another_link),
		cmocka_unit_test(only_who_shook_hands_is_told),
	};

	return cmocka_run_group_tests_name("sim_crossed", tests, NULL, NULL);
}

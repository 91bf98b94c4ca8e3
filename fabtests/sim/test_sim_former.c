/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint closes, and another one of its process takes its name. What the former has said may
 * be on its way still when the successor's number is known, from elsewhere. It arrives all the
 * same; what we have to send may fail with it, as to one that has closed, but not once the
 * successor can have heard of it, and read our memory.
 */
#include "unit/unit.h"

#include <string.h>

#include "sim/duo.h"

#define LONG_BYTES 600u /* announced, and read */

enum who {
	US,
	KEEPER,
	NAMED,
	ENDS
};

/* We are in the first process; the keeper of the link and who has the name are in the last. */
struct world {
	struct duo duo;
	struct duo_end *ends[ENDS];
	struct rvcm_addr name;
	char out[LONG_BYTES], in[LONG_BYTES];
};

static void send_to(struct world *w, enum who from, enum who to, size_t bytes)
{
	struct duo_end *end = w->ends[from];
	struct rvcm_ep_iov iov = { w->out, bytes };
	struct rvcm_ep_tx tx = { .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION };

	assert_int_equal(rvcm_ep_peer(end->ep, rvcm_ep_name(w->ends[to]->ep), DUO_ANY, &tx.peer),
			 0);
	assert_int_equal(rvcm_ep_send(end->ep, &tx), 0);
}

static void receive(struct world *w, enum who at)
{
	struct rvcm_ep_iov iov = { w->in, sizeof(w->in) };
	struct rvcm_ep_rx rx = { .source = DUO_ANY,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION };

	assert_int_equal(rvcm_ep_recv(w->ends[at]->ep, &rx), 0);
}

static void greet(struct world *w, enum who from, enum who to)
{
	receive(w, to);
	send_to(w, from, to, 1);
	duo_pass(&w->duo, 100 * SIM_MS);
	assert_int_equal(w->ends[to]->received, 1);
}

/*
 * The processes have a link, with credit to spare in both directions. A stream: what has been
 * handed over has been sent, and may be on its way for long.
 */
static void world_open(struct world *w, int n_nodes)
{
	struct duo_node *last = &w->duo.nodes[n_nodes - 1];

	memset(w->out, 'o', sizeof(w->out));
	duo_open(&w->duo, 1, 0, false);
	duo_end_open(last, KEEPER, NULL);
	duo_end_open(last, NAMED, NULL);
	w->ends[US] = &w->duo.nodes[0].ends[US];
	w->ends[KEEPER] = &last->ends[KEEPER];
	w->ends[NAMED] = &last->ends[NAMED];
	w->name = *rvcm_ep_name(w->ends[NAMED]->ep);
	greet(w, US, KEEPER);
	greet(w, KEEPER, US);
}

/* The link delivers again: the former's message comes first, and may be all that we know of. */
static void deliver(struct world *w)
{
	struct duo_end *us = w->ends[US];

	sim_links_heal(w->duo.net, NULL, NULL);
	duo_pass(&w->duo, 100 * SIM_MS);
	assert_int_equal(us->received, 2);
	if (us->failed) {
		send_to(w, US, NAMED, LONG_BYTES);
		duo_pass(&w->duo, 100 * SIM_MS);
	}
	assert_int_equal(us->sent, 2);
	assert_in_range(us->failed, 0, 1);
	assert_int_equal(us->lost + us->other + us->unreceived, 0);
}

static void answer(struct world *w)
{
	struct duo_end *us = w->ends[US], *named = w->ends[NAMED];

	receive(w, US);
	send_to(w, NAMED, US, LONG_BYTES);
	duo_pass(&w->duo, 100 * SIM_MS);
	assert_int_equal(us->received, 3);
	assert_int_equal(us->lost + us->other + us->unreceived, 0);
	assert_int_equal(named->sent, 1);
	assert_int_equal(named->failed + named->lost + named->other + named->unreceived, 0);
}

/* The former speaks, and closes; we speak to the successor; and only then does the link deliver. */
static void successor(int n_nodes)
{
	struct world w;
	struct duo *duo = &w.duo;

	world_open(&w, n_nodes);
	sim_links_silence(duo->net, NULL, NULL);
	send_to(&w, NAMED, US, 1);
	duo_pass(duo, SIM_MS);
	assert_int_equal(w.ends[NAMED]->sent, 1);
	duo_end_close(w.ends[NAMED]);
	duo_end_open(w.ends[NAMED]->node, NAMED, &w.name);
	receive(&w, NAMED);
	send_to(&w, US, NAMED, LONG_BYTES);
	duo_pass(duo, 100 * SIM_MS);
	assert_int_equal(w.ends[US]->received, 1);
	assert_int_equal(w.ends[US]->sent, 1);
	receive(&w, US);
	deliver(&w);
	assert_int_equal(w.ends[NAMED]->received, 1);
	answer(&w);
	duo_close(duo);
}

static void of_another_process(void **state)
{
	(void)state;
	successor(2);
}

static void of_our_own_process(void **state)
{
	(void)state;
	successor(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_another_process),
		cmocka_unit_test(of_our_own_process),
	};

	return cmocka_run_group_tests_name("sim_former", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of a process with itself. There may be a second one: it was asked for when the acceptor
 * of the first was gone already, and its opener did not know yet that it had been accepted. That
 * the first is lost is noticed when the second has long been up.
 */
#include "unit/unit.h"

#include "conn/conn_impl.h"
#include "sim/duo.h"

#define NOTICE_NS (100 * SIM_S)

#define FIRST  0 /* endpoints: it opens the second link, */
#define OPENER 1 /* to the one which has opened the first, */
#define BRIEF  2 /* to one that closes at once */

static struct rvcm_carrier *carrier_of(struct duo *w)
{
	return rvcm_engine_carrier(w->nodes[0].engine);
}

/* One message from an endpoint to another of the same process. */
static void tell(struct duo *w, int from, int to)
{
	struct duo_end *ends = w->nodes[0].ends;

	assert_int_equal(rvcm_ep_peer(ends[from].ep, rvcm_ep_name(ends[to].ep), DUO_ANY,
				      &ends[from].peers[0]),
			 0);
	duo_send(&ends[from], 0, 1, RVCM_EP_INJECT);
}

/* It connects, and is accepted; that comes to its ears in so long a time. */
static void call(struct duo *w, int from, int to, uint64_t reply_ns)
{
	struct sim_conf *conf = sim_net_conf(w->net);
	const struct sim_conf usual = *conf;

	tell(w, from, to);
	duo_look(w);
	sim_run(w->net, SIM_MS);
	conf->delay_ns_min = reply_ns;
	conf->delay_ns_max = reply_ns;
	rvcm_carrier_control(carrier_of(w));
	assert_int_equal(carrier_of(w)->n_claims, 1);
	*conf = usual;
}

/*
 * OPENER calls BRIEF, which is gone when that is answered; meanwhile FIRST has called OPENER. The
 * end that comes first is used until it is lost; what is said then goes over the other link.
 */
static void the_second_outlives_the_first(void **state)
{
	struct duo w;
	struct duo_end *ends = w.nodes[0].ends;
	const struct rvcm_conn *first;

	(void)state;
	duo_open(&w, 3, 0, false);
	sim_net_conf(w.net)->notice_ns_max = NOTICE_NS;
	sim_net_conf(w.net)->late_ns_max = NOTICE_NS;
	rvcm_ep_shutdown(ends[BRIEF].ep); /* it listens yet */
	call(&w, OPENER, BRIEF, 100 * SIM_MS);
	duo_end_close(&ends[BRIEF]);
	assert_int_equal(carrier_of(&w)->n_claims, 0);
	duo_receive(&ends[OPENER]);
	call(&w, FIRST, OPENER, 200 * SIM_MS);
	duo_pass(&w, SIM_S);
	first = carrier_of(&w)->self[0];
	assert_true(first && first->slot->index == OPENER);
	assert_int_equal(ends[OPENER].received, 1); /* over the second */
	duo_pass(&w, NOTICE_NS);
	assert_ptr_not_equal(carrier_of(&w)->self[0], first);
	duo_end_open(&w.nodes[0], BRIEF, NULL);
	duo_receive(&ends[BRIEF]);
	tell(&w, FIRST, BRIEF);
	duo_pass(&w, 100 * SIM_MS);
	assert_int_equal(ends[BRIEF].received, 1);
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_outlives_the_first),
	};

	return cmocka_run_group_tests_name("sim_self", tests, NULL, NULL);
}

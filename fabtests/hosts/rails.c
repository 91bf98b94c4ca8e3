/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ways between two hosts: eth0, by which names are reached, and eth1. To be run by rails.sh and
 * bench_rails.sh, with FI_RVCM_RAILS. Messages of 1 MiB go to the other host, a few at a time, and
 * are looked at there; "rate N MB/s" is printed of them.
 */
#include "hosts/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TAG      600
#define BYTES    (1u << 20)
#define AT_ONCE  4
#define MESSAGES 64 /* of one test */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };

static int messages(void)
{
	const char *n = getenv("RAILS_MESSAGES");

	return n ? atoi(n) : MESSAGES;
}

static uint32_t seed_of(int i)
{
	return 1 + (uint32_t)i % AT_ONCE;
}

/* At a quarter of the messages something happens, if wire_goes is there. */
static void happen(int i, void (*wire_goes)(void))
{
	if (wire_goes && i == MESSAGES / 4)
		wire_goes();
}

static void take(struct conf_node *node, fi_addr_t peer, void (*wire_goes)(void))
{
	struct fi_context2 contexts[AT_ONCE];
	uint8_t *in[AT_ONCE];
	int n = messages();

	conf_exchange(node, peer, 0, 1);
	for (int i = 0; i < AT_ONCE; i++)
		in[i] = calloc(1, BYTES);
	for (int i = 0; i < n; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++)
			CONF_TRY(node, fi_trecv(node->ep, in[j], BYTES, NULL, peer, TAG, 0,
						&contexts[j]));
		happen(i, wire_goes);
		conf_wait_for(node, AT_ONCE);
		for (int j = 0; j < AT_ONCE && i < MESSAGES; j++) {
			conf_check(in[j], BYTES, seed_of(j));
			memset(in[j], 0, BYTES);
		}
	}
	conf_exchange(node, peer, 1, 2);
	for (int i = 0; i < AT_ONCE; i++)
		free(in[i]);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void give(struct conf_node *node, fi_addr_t peer, void (*wire_goes)(void))
{
	struct fi_context2 contexts[AT_ONCE];
	uint8_t *out[AT_ONCE];
	int n = messages();
	double began;

	conf_exchange(node, peer, 0, 1);
	for (int i = 0; i < AT_ONCE; i++) {
		out[i] = malloc(BYTES);
		conf_fill(out[i], BYTES, seed_of(i));
	}
	began = now_s();
	for (int i = 0; i < n; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++)
			CONF_TRY(node,
				 fi_tsend(node->ep, out[j], BYTES, NULL, peer, TAG, &contexts[j]));
		happen(i, wire_goes);
		conf_wait_for(node, AT_ONCE);
	}
	printf("# rate %.0f MB/s\n", (double)n * BYTES / 1e6 / (now_s() - began));
	conf_exchange(node, peer, 1, 2);
	for (int i = 0; i < AT_ONCE; i++)
		free(out[i]);
}

static void role_sink(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	take(node, peer, NULL);
}

static void role_source(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	give(node, peer, NULL);
}

static const struct conf_role roles[] = { { "sink", role_sink }, { "source", role_source } };

static void move(void (*wire_goes)(void))
{
	struct host_pair p;

	host_pair_open(&p, 2, "sink", &plain);
	give(&p.node, p.peer, wire_goes);
	host_pair_close(&p, 0);
}

static void fetch(void (*wire_goes)(void))
{
	struct host_pair p;

	host_pair_open(&p, 2, "source", &plain);
	take(&p.node, p.peer, wire_goes);
	host_pair_close(&p, 0);
}

static void long_messages_arrive(void **state)
{
	(void)state;
	move(NULL);
}

/* -- one of them is cut for good: the rest goes by the other -------------------------------- */

static void second_down(void)
{
	host_shell("ip -n @-1 link set eth1 down");
}

static void first_down_here(void)
{
	host_shell("ip -n @-1 link set eth0 down");
}

static void first_down_there(void)
{
	host_shell("ip -n @-2 link set eth0 down");
}

/* Between them: neither host is told. */
static void first_cut(void)
{
	host_shell("ip -n @-r link set to1 down");
}

static int mend(void **state)
{
	(void)state;
	host_shell("ip -n @-1 link set eth1 up; ip -n @-r link set to1 up; "
		   "for i in 1 2; do ip -n @-$i link set eth0 up && "
		   "ip -n @-$i route replace default via 10.77.$i.254; done");
	return 0;
}

static void a_rail_goes_down(void **state)
{
	(void)state;
	move(second_down);
}

static void the_first_goes_down(void **state)
{
	(void)state;
	move(first_down_here);
}

static void the_first_goes_down_there(void **state)
{
	(void)state;
	move(first_down_there);
}

static void the_first_is_cut(void **state)
{
	(void)state;
	move(first_cut);
}

static void the_first_goes_down_of_who_receives(void **state)
{
	(void)state;
	fetch(first_down_here);
}

static void the_first_is_cut_of_who_receives(void **state)
{
	(void)state;
	fetch(first_cut);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_messages_arrive),
		cmocka_unit_test_teardown(a_rail_goes_down, mend),
		cmocka_unit_test_teardown(the_first_goes_down, mend),
		cmocka_unit_test_teardown(the_first_goes_down_there, mend),
		cmocka_unit_test_teardown(the_first_is_cut, mend),
		cmocka_unit_test_teardown(the_first_goes_down_of_who_receives, mend),
		cmocka_unit_test_teardown(the_first_is_cut_of_who_receives, mend),
	};

	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	return host_main(argc, argv, roles, &plain, "rails", tests);
}

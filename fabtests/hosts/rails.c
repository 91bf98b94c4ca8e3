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

static void role_sink(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 contexts[AT_ONCE];
	uint8_t *in[AT_ONCE];
	int n = messages();

	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 1);
	for (int i = 0; i < AT_ONCE; i++)
		in[i] = calloc(1, BYTES);
	for (int i = 0; i < n; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++)
			CONF_TRY(node, fi_trecv(node->ep, in[j], BYTES, NULL, peer, TAG, 0,
						&contexts[j]));
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

static const struct conf_role roles[] = { { "sink", role_sink } };

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* At the message of that number the command is run, if there is one. */
static void move(int when, const char *command)
{
	struct fi_context2 contexts[AT_ONCE];
	uint8_t *out[AT_ONCE];
	int n = messages();
	struct host_pair p;
	double began;

	host_pair_open(&p, 2, "sink", &plain);
	conf_exchange(&p.node, p.peer, 0, 1);
	for (int i = 0; i < AT_ONCE; i++) {
		out[i] = malloc(BYTES);
		conf_fill(out[i], BYTES, seed_of(i));
	}
	began = now_s();
	for (int i = 0; i < n; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++)
			CONF_TRY(&p.node, fi_tsend(p.node.ep, out[j], BYTES, NULL, p.peer, TAG,
						   &contexts[j]));
		if (command && i == when)
			host_shell("%s", command);
		conf_wait_for(&p.node, AT_ONCE);
	}
	printf("# rate %.0f MB/s\n", (double)n * BYTES / 1e6 / (now_s() - began));
	conf_exchange(&p.node, p.peer, 1, 2);
	host_pair_close(&p, 0);
	for (int i = 0; i < AT_ONCE; i++)
		free(out[i]);
}

static void long_messages_arrive(void **state)
{
	(void)state;
	move(0, NULL);
}

/* For good: the rest goes by the other. */
static void a_rail_goes_down(void **state)
{
	(void)state;
	move(MESSAGES / 4, "ip -n @-1 link set eth1 down");
	host_shell("ip -n @-1 link set eth1 up");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_messages_arrive),
		cmocka_unit_test(a_rail_goes_down),
	};

	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	return host_main(argc, argv, roles, &plain, "rails", tests);
}

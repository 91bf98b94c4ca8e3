/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a lost connection keeps traffic up: a small message goes to and fro between two hosts,
 * and again and again the connection is destroyed at our end (sock_destroy(9)). To be run by
 * bench_recovery.sh, with the number of cuts in BENCH_CUTS. Prints for each
 *
 *	gap MICROSECONDS
 *
 * the longest round trip around the cut: everything is in it, from before the loss is noticed to
 * the first message that has come back.
 */
#include "hosts/host.h"
#include "hosts/wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TAG    7
#define BEFORE 200 /* round trips before a cut, and behind it */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };

/* What goes to and fro; 0 is the end. */
static char round_trip(struct conf_node *node, fi_addr_t peer, char out)
{
	struct fi_context2 contexts[2];
	char in = 0;

	CONF_TRY(node, fi_trecv(node->ep, &in, 1, NULL, peer, TAG, 0, &contexts[0]));
	CONF_TRY(node, fi_tsend(node->ep, &out, 1, NULL, peer, TAG, &contexts[1]));
	conf_wait_for(node, 2);
	return in;
}

static void role_echo(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	while (round_trip(node, peer, 'e'))
		;
}

static const struct conf_role roles[] = { { "echo", role_echo } };

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A process of its own cuts when it is told to, and says when it has. */
static int cutter_start(pid_t *pid)
{
	int ends[2];
	char c;

	conf_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	*pid = fork();
	assert_true(*pid >= 0);
	if (*pid) {
		close(ends[1]);
		return ends[0];
	}
	close(ends[0]);
	while (read(ends[1], &c, 1) == 1) {
		wire_destroy();
		conf_put(ends[1], &c, 1);
	}
	_exit(0);
}

static uint64_t longest(struct conf_node *node, fi_addr_t peer, int n)
{
	uint64_t began = now_us(), most = 0;

	for (int i = 0; i < n; i++) {
		uint64_t now;

		round_trip(node, peer, 'r');
		now = now_us();
		most = now - began > most ? now - began : most;
		began = now;
	}
	return most;
}

static uint64_t cut(struct conf_node *node, fi_addr_t peer, int cutter)
{
	struct pollfd at = { .fd = cutter, .events = POLLIN };
	uint64_t most = 0, us;
	char c = 'c';

	conf_put(cutter, &c, 1);
	while (poll(&at, 1, 0) == 0) {
		us = longest(node, peer, 1);
		most = us > most ? us : most;
	}
	conf_get(cutter, &c, 1);
	us = longest(node, peer, BEFORE);
	return us > most ? us : most;
}

static void recover_again_and_again(void **state)
{
	int cuts = atoi(getenv("BENCH_CUTS")), cutter, status;
	struct host_pair p;
	pid_t pid;

	(void)state;
	cutter = cutter_start(&pid);
	host_pair_open(&p, 2, "echo", &plain);
	longest(&p.node, p.peer, BEFORE);
	for (int i = 0; i < cuts; i++)
		printf("gap %llu\n", (unsigned long long)cut(&p.node, p.peer, cutter));
	round_trip(&p.node, p.peer, 0);
	host_pair_close(&p, 0);
	close(cutter);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recover_again_and_again),
	};

	setenv("FI_RVCM_RECONNECT_TIMEOUT", "30000", 1);
	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	return host_main(argc, argv, roles, &plain, "bench_recovery", tests);
}

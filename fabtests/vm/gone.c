/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gone LEAST COMMAND: two processes exchange long messages on one device, and COMMAND, which a
 * shell runs, takes the device away from under them. Every operation of either must end, at least
 * LEAST of each one's in an error; then the endpoints must close.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/longs.h"

#define UNTIL_GONE 2 /* completions */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };
static int least;
static const char *command;

static void end(struct longs *l, struct conf_node *node, const char *who)
{
	uint64_t deadline = conf_deadline() + CONF_TIMEOUT_MS;

	for (; l->done < LONGS_OPERATIONS; conf_not_late(deadline))
		longs_read(l, node);
	print_message("# %s: %d operations ended, %d of them in an error, the last: %s\n", who,
		      l->done, l->failed, fi_strerror(l->error));
	longs_free(l);
}

static void begin(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	uint64_t deadline;

	conf_exchange(node, peer, 0, 1);
	longs_post(l, node, peer);
	deadline = conf_deadline();
	for (; l->done < UNTIL_GONE; conf_not_late(deadline))
		longs_read(l, node);
	assert_int_equal(l->failed, 0);
}

/* It waits for us, if the kernel wants back what we have of the device: so we do not for it. */
static pid_t take_it_away(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return pid;
}

static void role_peer(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	static struct longs l;

	(void)from;
	begin(&l, node, peer);
	end(&l, node, "the peer");
	conf_put(to, &l.failed, sizeof(l.failed));
}

static const struct conf_role roles[] = { { "peer", role_peer } };

static void every_operation_ends(void **state)
{
	static struct longs l;
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
	int failed, status;
	pid_t pid;

	(void)state;
	conf_other_start(&other, NULL, "peer");
	conf_open(&node, &plain);
	peer = conf_meet(&node, other.to, other.from);
	begin(&l, &node, peer);
	assert_true(l.done < LONGS_OPERATIONS);
	pid = take_it_away();
	end(&l, &node, "we");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	conf_get(other.from, &failed, sizeof(failed));
	assert_true(l.failed >= least);
	assert_true(failed >= least);
	conf_close(&node);
	conf_other_end(&other, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_ends),
	};

	conf_provider();
	if (argc == 4)
		return conf_play(roles, sizeof(roles) / sizeof(roles[0]), &plain, argv);
	if (argc != 3) {
		fprintf(stderr, "usage: gone LEAST COMMAND\n");
		return 2;
	}
	least = atoi(argv[1]);
	command = argv[2];
	return conf_run_tests("gone", tests);
}

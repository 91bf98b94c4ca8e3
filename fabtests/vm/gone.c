/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gone LEAST COMMAND: two processes exchange long messages on one device, and COMMAND, which a
 * shell runs, takes the device away from under them. Every operation of either must end, at least
 * LEAST of each one's in an error; so must the receives that no message matches, unless LEAST is 0,
 * for then it is only the network that goes. Then the endpoints must close.
 *
 * gone stay COMMAND: the same, but another device stands in: receives from anybody stay posted, and
 * messages go through afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/longs.h"

#define UNTIL_GONE 2 /* completions */

#define NOBODYS (LONGS_TAG + LONGS)

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV };
static int least; /* -1: stay */
static const char *command;

/* Nothing matches them: of anybody, of the peer, and a buffer for many messages. */
static void post_unmatched(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	struct iovec iov = { l->room[2], sizeof(l->room[2]) };
	const struct fi_msg many = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &l->extra[2]
	};

	conf_ok(fi_trecv(node->ep, l->room[0], sizeof(l->room[0]), NULL, FI_ADDR_UNSPEC, NOBODYS, 0,
			 &l->extra[0]));
	conf_ok(fi_trecv(node->ep, l->room[1], sizeof(l->room[1]), NULL, peer, NOBODYS, 0,
			 &l->extra[1]));
	conf_ok(fi_recvmsg(node->ep, &many, FI_MULTI_RECV | FI_COMPLETION));
}

static void end(struct longs *l, struct conf_node *node, const char *who)
{
	/* What only the peer could have matched ends with its connection. */
	int extra = least > 0 ? LONGS_EXTRA : -least;
	int expected = LONGS_OPERATIONS + extra;
	uint64_t deadline = conf_deadline() + CONF_TIMEOUT_MS;

	for (; l->done < expected; conf_not_late(deadline))
		longs_read(l, node);
	print_message("# %s: %d operations ended, %d of them in an error, the last: %s\n", who,
		      l->done, l->failed, fi_strerror(l->error));
	longs_free(l);
}

/* With what stands in: nothing but these messages completes. */
static void afterwards(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	char c;

	if (least >= 0)
		return;
	conf_put(to, "!", 1);
	conf_get(from, &c, 1);
	conf_exchange(node, peer, 1, 3);
}

static void begin(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	uint64_t deadline;

	conf_exchange(node, peer, 0, 1);
	post_unmatched(l, node, peer);
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

	conf_get(from, &least, sizeof(least));
	begin(&l, node, peer);
	end(&l, node, "the peer");
	afterwards(node, peer, to, from);
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
	peer = conf_other_meet(&other, NULL, "peer", &node, &plain);
	conf_put(other.to, &least, sizeof(least));
	begin(&l, &node, peer);
	assert_true(l.done < LONGS_OPERATIONS);
	pid = take_it_away();
	end(&l, &node, "we");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	afterwards(&node, peer, other.to, other.from);
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
		fprintf(stderr, "usage: gone {LEAST|stay} COMMAND\n");
		return 2;
	}
	least = strcmp(argv[1], "stay") ? atoi(argv[1]) : -1;
	command = argv[2];
	return conf_run_tests("gone", tests);
}

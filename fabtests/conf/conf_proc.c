/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes: everything by the network, peers that end in order and peers that do not, and
 * processes that fork.
 */
#include "conf/proc.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

/* -- the other process --------------------------------------------------------------------- */

/* Exchange and end well. */
static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 20);
}

/* Get connected, and stop. What comes after never comes back. */
static void role_die(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)from;
	conf_exchange(node, peer, 0, 1);
	conf_put(to, "d", 1);
	for (;;)
		pause();
}

enum {
	MANY = 400,
	MANY_BYTES = 16000
};

/* Many messages one way: as many may be under way at once afterwards as ever. */
static void warm_up(struct conf_node *node, fi_addr_t peer, bool sender)
{
	struct fi_context2 *contexts = calloc(MANY, sizeof(*contexts));
	uint8_t *buf = calloc(1, MANY_BYTES);

	for (int i = 0; i < MANY; i++) {
		if (sender)
			CONF_TRY(node, fi_tsend(node->ep, buf, MANY_BYTES, NULL, peer, 902,
						&contexts[i]));
		else
			CONF_TRY(node, fi_trecv(node->ep, buf, MANY_BYTES, NULL, peer, 902, 0,
						&contexts[i]));
	}
	conf_wait_for(node, MANY);
	free(contexts);
	free(buf);
}

/* Call nothing until told to, then answer for all that time. */
static void role_compute(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	uint8_t byte;

	conf_put(to, "c", 1);
	conf_get(from, &byte, 1);
	conf_exchange(node, peer, 0, 2);
	warm_up(node, peer, false);
	conf_put(to, "c", 1);
	conf_get(from, &byte, 1);
	conf_exchange(node, peer, 2, 4);
}

static const struct conf_role roles[] = {
	{ "exchange", role_exchange },
	{ "die", role_die },
	{ "compute", role_compute },
};

/* -- tests --------------------------------------------------------------------------------- */

static void two_processes_exchange(void **state)
{
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;

	(void)state;
	peer = conf_other_meet(&other, NULL, "exchange", &node, &plain);
	conf_exchange(&node, peer, 0, 20);
	conf_close(&node);
	conf_other_end(&other, 0);
}

/* Its settings of rvcm's are not ours; what either calls short the other need not have room for. */
static void peers_have_limits_of_their_own(void **state)
{
	static const struct {
		const char *size, *lone, *unexpected, *window;
	} others[] = {
		{ "0", "0", "1000", "4" },
		{ "100", "0", "4194304", "64" },
		{ "1048576", "1048576", "4194304", "1024" },
		{ "16384", "100", "1000000", "16" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct conf_node node;
		struct conf_other other;
		fi_addr_t peer;

		setenv("FI_RVCM_EAGER_SIZE", others[i].size, 1);
		setenv("FI_RVCM_EAGER_LONE_SIZE", others[i].lone, 1);
		setenv("FI_RVCM_UNEXPECTED_SIZE", others[i].unexpected, 1);
		setenv("FI_RVCM_WINDOW", others[i].window, 1);
		conf_other_start(&other, NULL, "exchange");
		unsetenv("FI_RVCM_EAGER_SIZE");
		unsetenv("FI_RVCM_EAGER_LONE_SIZE");
		unsetenv("FI_RVCM_UNEXPECTED_SIZE");
		unsetenv("FI_RVCM_WINDOW");
		conf_open(&node, &plain);
		peer = conf_meet(&node, other.to, other.from);
		conf_exchange(&node, peer, 0, 20);
		conf_close(&node);
		conf_other_end(&other, 0);
	}
}

/* Every pending operation that needs the peer ends, once, and its reason is told. */
static void a_killed_peer_is_reported(void **state)
{
	struct fi_context2 sent, received;
	struct fi_cq_err_entry error;
	struct conf_node node;
	struct conf_other other;
	uint8_t *out = calloc(1, CONF_LONG_BYTES), in, byte;
	fi_addr_t peer;
	int seen = 0;

	(void)state;
	peer = conf_other_meet(&other, NULL, "die", &node, &plain);
	conf_exchange(&node, peer, 0, 1);
	conf_get(other.from, &byte, 1);
	CONF_TRY(&node, fi_trecv(node.ep, &in, 1, NULL, peer, 77, 0, &received));
	CONF_TRY(&node, fi_tsend(node.ep, out, CONF_LONG_BYTES, NULL, peer, 78, &sent));
	conf_ok(kill(other.pid, SIGKILL));
	while (seen != 3) {
		char text[256];

		conf_expect_error(&node, &error);
		assert_int_not_equal(error.err, 0);
		assert_true(strlen(fi_cq_strerror(node.txcq, error.prov_errno, error.err_data, text,
						  sizeof(text))) > 0);
		seen |= error.op_context == &sent ? 1 : 2;
	}
	conf_other_end(&other, SIGKILL);
	conf_close(&node);
	free(out);
}

/* Look at the queue for so long; nothing may have failed, and nothing come. */
static void watch(struct conf_node *node, uint64_t ms)
{
	struct fi_cq_tagged_entry entry;
	uint64_t end = conf_deadline() + ms;

	while (conf_deadline() < end)
		assert_int_equal(fi_cq_read(node->txcq, &entry, 1), -FI_EAGAIN);
}

/* The other one's half of conf_exchange() is yet to come: begin ours, which is in nobody's way. */
static void send_early(struct conf_node *node, fi_addr_t peer, struct fi_context2 *sent,
		       const uint8_t *out)
{
	/* long ones, which nobody but the peer itself can answer, and what fills every buffer */
	for (int i = 0; i < 8; i++)
		CONF_TRY(node, fi_tsend(node->ep, out, CONF_LONG_BYTES, NULL, peer, 900, &sent[i]));
	for (int i = 0; i < MANY; i++)
		CONF_TRY(node, fi_tinject(node->ep, out, 4000, peer, 901));
}

static void run_command(const char *variable)
{
	const char *command = getenv(variable);

	if (command)
		assert_int_equal(system(command), 0);
}

/*
 * A peer that computes for long calls nothing: it can be connected to, and kept waiting for, longer
 * than the time in which it has to be reached. Then again on a connection that was
 * idle, and cut off for a while (FABTEST_DOWN and FABTEST_UP, if these are set). FABTEST_BUSY_MS is
 * how long.
 */
static void a_busy_peer_is_not_dead(void **state)
{
	const char *busy = getenv("FABTEST_BUSY_MS");
	uint64_t ms = busy ? strtoull(busy, NULL, 10) : 2500;
	uint8_t *out = calloc(1, CONF_LONG_BYTES), byte;
	struct fi_context2 sent[2][8];
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;

	(void)state;
	setenv("FI_RVCM_CONNECT_TIMEOUT", "2000", 1);
	conf_other_start(&other, NULL, "compute");
	conf_open(&node, &plain);
	unsetenv("FI_RVCM_CONNECT_TIMEOUT");
	peer = conf_meet(&node, other.to, other.from);
	for (uint32_t round = 0; round < 2; round++) {
		conf_get(other.from, &byte, 1);
		if (round)
			run_command("FABTEST_DOWN");
		send_early(&node, peer, sent[round], out);
		watch(&node, ms);
		if (round)
			run_command("FABTEST_UP");
		conf_put(other.to, "g", 1);
		conf_exchange(&node, peer, 2 * round, 2 * round + 2);
		if (!round)
			warm_up(&node, peer, true);
	}
	conf_close(&node);
	conf_other_end(&other, 0);
	free(out);
}

/*
 * A name where nobody listens, and nobody will: the port is taken by a socket that does not listen.
 * One that was merely given up may be somebody else's a moment later.
 */
static int take_port(struct conf_node *node, uint8_t name[64])
{
	struct sockaddr *sa = (struct sockaddr *)name;
	socklen_t len = (socklen_t)node->name_size;
	int fd;

	memcpy(name, node->name, 64);
	((struct sockaddr_in *)sa)->sin_port = 0; /* where IPv6 has it too */
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	conf_ok(bind(fd, sa, len));
	conf_ok(getsockname(fd, sa, &len));
	return fd;
}

/* A number that nobody answers at is an error of the send, not of the provider. */
/* A node, and a peer whose port is taken by somebody who does not listen; the socket is returned.
 */
static int open_before_nobody(struct conf_node *node, fi_addr_t *peer)
{
	uint8_t name[64];
	int fd;

	conf_need_ip_names();
	conf_open(node, &plain);
	fd = take_port(node, name);
	assert_int_equal(fi_av_insert(node->av, name, 1, peer, 0, NULL), 1);
	return fd;
}

static void nobody_there_is_an_error(void **state)
{
	struct conf_node node;
	struct fi_cq_err_entry error;
	struct fi_context2 sent;
	fi_addr_t peer;
	int fd = open_before_nobody(&node, &peer);

	(void)state;
	CONF_TRY(&node, fi_tsend(node.ep, "x", 1, NULL, peer, 1, &sent));
	conf_expect_error(&node, &error);
	assert_ptr_equal(error.op_context, &sent);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	conf_close(&node);
	close(fd);
}

/* One entry for all errors: what the provider has put there is not the application's buffer. */
static void an_error_entry_is_used_again(void **state)
{
	struct conf_node node;
	struct fi_cq_err_entry error = { .err_data = NULL };
	struct fi_context2 sent[3];
	fi_addr_t peer;
	int fd = open_before_nobody(&node, &peer);

	(void)state;
	for (int i = 0; i < 3; i++) {
		char text[256];

		CONF_TRY(&node, fi_tsend(node.ep, "x", 1, NULL, peer, 1, &sent[i]));
		conf_next_error(&node, &error);
		assert_ptr_equal(error.op_context, &sent[i]);
		assert_int_equal(error.err, FI_ECONNREFUSED);
		fi_cq_strerror(node.txcq, error.prov_errno, error.err_data, text, sizeof(text));
		assert_true(text[0] != 0);
	}
	conf_close(&node);
	close(fd);
}

static int exit_of(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* system(3), popen(3), a child that does nothing: neither side notices. */
static void forks_do_no_harm(void **state)
{
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
	pid_t pid;

	(void)state;
	peer = conf_other_meet(&other, NULL, "exchange", &node, &plain);
	conf_exchange(&node, peer, 0, 10);
	assert_int_equal(system("true"), 0);
	pid = fork();
	if (pid == 0)
		_exit(3);
	assert_int_equal(exit_of(pid), 3);
	conf_exchange(&node, peer, 10, 20);
	conf_close(&node);
	conf_other_end(&other, 0);
}

/* A child closes what it inherited and opens its own; the parent goes on. */
static void a_child_may_start_anew(void **state)
{
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
	pid_t pid;

	(void)state;
	peer = conf_other_meet(&other, NULL, "exchange", &node, &plain);
	conf_exchange(&node, peer, 0, 10);
	pid = fork();
	if (pid == 0) {
		struct conf_pair pair;
		struct fi_cq_tagged_entry entry;
		struct fi_context2 contexts[2];
		char in;

		conf_close(&node);
		conf_pair_open(&pair, &plain);
		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, "y", 1, NULL, pair.to_b, 1, &contexts[1]));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		conf_pair_close(&pair);
		_exit(in == 'y' ? 5 : 6);
	}
	assert_int_equal(exit_of(pid), 5);
	conf_exchange(&node, peer, 10, 20);
	conf_close(&node);
	conf_other_end(&other, 0);
}

static atomic_bool polling;

static void *poll_queue(void *cq)
{
	while (atomic_load(&polling))
		fi_cq_read(cq, NULL, 0);
	return NULL;
}

/* While another thread, and the domain's own, are in the middle of something. */
static void a_child_can_close_what_was_busy(void **state)
{
	const struct conf_options automatic = { .progress = FI_PROGRESS_AUTO };
	struct conf_node node;
	pthread_t thread;

	(void)state;
	conf_open(&node, &automatic);
	atomic_store(&polling, true);
	conf_ok(pthread_create(&thread, NULL, poll_queue, node.txcq));
	for (int i = 0; i < 20; i++) {
		uint64_t deadline = conf_deadline();
		int status = 0;
		pid_t pid = fork(), got;

		assert_true(pid >= 0);
		if (pid == 0) {
			conf_close(&node);
			_exit(7);
		}
		while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
			sched_yield();
			conf_not_late(deadline);
		}
		assert_int_equal(got, pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 7);
	}
	atomic_store(&polling, false);
	conf_ok(pthread_join(thread, NULL));
	conf_close(&node);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_exchange),
		cmocka_unit_test(peers_have_limits_of_their_own),
		cmocka_unit_test(a_killed_peer_is_reported),
		cmocka_unit_test(a_busy_peer_is_not_dead),
		cmocka_unit_test(nobody_there_is_an_error),
		cmocka_unit_test(an_error_entry_is_used_again),
		cmocka_unit_test(forks_do_no_harm),
		cmocka_unit_test(a_child_may_start_anew),
		cmocka_unit_test(a_child_can_close_what_was_busy),
	};

	conf_provider();
	if (argc == 4)
		return conf_play(roles, sizeof(roles) / sizeof(roles[0]), &plain, argv);
	return conf_run_tests("proc", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes: everything by the network, peers that end in order and peers that do not, and
 * processes that fork. The other process is this program again, told by its arguments what to be;
 * in the network namespace FABTEST_OTHER_NETNS and at the address FABTEST_OTHER_NODE, if these are
 * set.
 */
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
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

#define LONG_BYTES (3u << 20)

/* The other process, and two pipes. */
struct other {
	pid_t pid;
	int to, from;
};

static void put(int fd, const void *buf, size_t len)
{
	assert_int_equal(write(fd, buf, len), len);
}

static void get(int fd, void *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t rc = read(fd, (char *)buf + n, len - n);

		assert_true(rc > 0);
		n += (size_t)rc;
	}
}

/* In the child: be where the other process is to be. */
static void move(void)
{
	const char *netns = getenv("FABTEST_OTHER_NETNS"), *node = getenv("FABTEST_OTHER_NODE");
	char path[256];
	int fd;

	if (node)
		setenv("FABTEST_NODE", node, 1);
	if (!netns)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		perror(path);
		_exit(126);
	}
}

static void other_start(struct other *other, const char *role)
{
	char in[16], out[16];
	int down[2], up[2];

	conf_ok(pipe(down));
	conf_ok(pipe(up));
	other->pid = fork();
	assert_true(other->pid >= 0);
	if (other->pid == 0) {
		close(down[1]);
		close(up[0]);
		move();
		snprintf(in, sizeof(in), "%d", down[0]);
		snprintf(out, sizeof(out), "%d", up[1]);
		execl("/proc/self/exe", "conf_proc", role, in, out, NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	other->to = down[1];
	other->from = up[0];
}

static void other_end(struct other *other, int status)
{
	int got;

	assert_int_equal(waitpid(other->pid, &got, 0), other->pid);
	assert_int_equal(got, status);
	close(other->to);
	close(other->from);
}

/*
 * The scope of a link-local address is the number that an interface has here: the other's means
 * nothing to us (RFC 4007, section 6).
 */
static void adopt_scope(const struct conf_node *node, struct conf_node *peer)
{
	struct sockaddr_in6 ours, theirs;

	memcpy(&ours, node->name, sizeof(ours));
	memcpy(&theirs, peer->name, sizeof(theirs));
	if (theirs.sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&theirs.sin6_addr))
		return;
	assert_int_not_equal(ours.sin6_scope_id, 0);
	assert_int_not_equal(theirs.sin6_scope_id, 0);
	theirs.sin6_scope_id = ours.sin6_scope_id;
	memcpy(peer->name, &theirs, sizeof(theirs));
}

/* Tell each other the names; returns the other's number. */
static fi_addr_t meet(struct conf_node *node, int to, int from)
{
	struct conf_node peer = { .name_size = 0 };

	put(to, node->name, sizeof(node->name));
	get(from, peer.name, sizeof(peer.name));
	adopt_scope(node, &peer);
	return conf_insert(node, &peer);
}

/* -- what one process does alone ----------------------------------------------------------- */

static void drive(struct conf_node *node)
{
	ssize_t rc = fi_cq_read(node->txcq, NULL, 0);

	assert_true(rc == 0 || rc == -FI_EAGAIN || rc == -FI_EAVAIL);
}

#define TRY(node, call)                                \
	do {                                           \
		uint64_t end_ = conf_deadline();       \
		ssize_t rc_;                           \
                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN) { \
			drive(node);                   \
			conf_not_late(end_);           \
		}                                      \
		assert_int_equal(rc_, 0);              \
	} while (0)

/* Wait for n successes. */
static void wait_for(struct conf_node *node, int n)
{
	struct fi_cq_tagged_entry entry;
	uint64_t deadline = conf_deadline();

	while (n > 0) {
		ssize_t rc = fi_cq_read(node->txcq, &entry, 1);

		conf_not_late(deadline);
		if (rc == -FI_EAGAIN)
			continue;
		assert_int_equal(rc, 1);
		n--;
	}
}

static void expect_error(struct conf_node *node, struct fi_cq_err_entry *error)
{
	struct fi_cq_tagged_entry entry;
	uint64_t deadline = conf_deadline();
	ssize_t rc;

	while ((rc = fi_cq_read(node->txcq, &entry, 1)) == -FI_EAGAIN)
		conf_not_late(deadline);
	assert_int_equal(rc, -FI_EAVAIL);
	memset(error, 0, sizeof(*error));
	assert_int_equal(fi_cq_readerr(node->txcq, error, 0), 1);
}

/* Both run this: messages of many sizes each way at once, every byte checked. */
static void exchange(struct conf_node *node, fi_addr_t peer, uint32_t first, uint32_t last)
{
	static const size_t sizes[] = { 0, 1, 900, 16384, 20000, 300000, LONG_BYTES };
	enum {
		COUNT = sizeof(sizes) / sizeof(sizes[0])
	};
	struct fi_context2 contexts[2 * COUNT];
	uint8_t *out[COUNT], *in[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) {
		out[i] = malloc(sizes[i] + 1);
		in[i] = malloc(sizes[i] + 1);
	}
	for (uint32_t r = first; r < last; r++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			conf_fill(out[i], sizes[i], r + i);
			memset(in[i], 0, sizes[i] + 1);
			TRY(node,
			    fi_trecv(node->ep, in[i], sizes[i], NULL, peer, i, 0, &contexts[i]));
		}
		for (uint32_t i = 0; i < COUNT; i++)
			TRY(node, fi_tsend(node->ep, out[i], sizes[i], NULL, peer, i,
					   &contexts[COUNT + i]));
		wait_for(node, 2 * COUNT);
		for (uint32_t i = 0; i < COUNT; i++)
			conf_check(in[i], sizes[i], r + i);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		free(out[i]);
		free(in[i]);
	}
}

/* -- the other process --------------------------------------------------------------------- */

/* Exchange and end well. */
static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	exchange(node, peer, 0, 20);
}

/* Get connected, and stop. What comes after never comes back. */
static void role_die(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)from;
	exchange(node, peer, 0, 1);
	put(to, "d", 1);
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
			TRY(node,
			    fi_tsend(node->ep, buf, MANY_BYTES, NULL, peer, 902, &contexts[i]));
		else
			TRY(node,
			    fi_trecv(node->ep, buf, MANY_BYTES, NULL, peer, 902, 0, &contexts[i]));
	}
	wait_for(node, MANY);
	free(contexts);
	free(buf);
}

/* Call nothing until told to, then answer for all that time. */
static void role_compute(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	uint8_t byte;

	put(to, "c", 1);
	get(from, &byte, 1);
	exchange(node, peer, 0, 2);
	warm_up(node, peer, false);
	put(to, "c", 1);
	get(from, &byte, 1);
	exchange(node, peer, 2, 4);
}

static const struct {
	const char *name;
	void (*run)(struct conf_node *node, fi_addr_t peer, int to, int from);
} roles[] = {
	{ "exchange", role_exchange },
	{ "die", role_die },
	{ "compute", role_compute },
};

static int play(const char *role, int from, int to)
{
	struct conf_node node;
	fi_addr_t peer;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(role, roles[i].name))
			continue;
		conf_open(&node, &plain);
		peer = meet(&node, to, from);
		roles[i].run(&node, peer, to, from);
		conf_close(&node);
		return 0;
	}
	return 126;
}

/* -- tests --------------------------------------------------------------------------------- */

static void two_processes_exchange(void **state)
{
	struct conf_node node;
	struct other other;
	fi_addr_t peer;

	(void)state;
	other_start(&other, "exchange");
	conf_open(&node, &plain);
	peer = meet(&node, other.to, other.from);
	exchange(&node, peer, 0, 20);
	conf_close(&node);
	other_end(&other, 0);
}

/* Every pending operation that needs the peer ends, once, and its reason is told. */
static void a_killed_peer_is_reported(void **state)
{
	struct fi_context2 sent, received;
	struct fi_cq_err_entry error;
	struct conf_node node;
	struct other other;
	uint8_t *out = calloc(1, LONG_BYTES), in, byte;
	fi_addr_t peer;
	int seen = 0;

	(void)state;
	conf_beyond_rxm();
	other_start(&other, "die");
	conf_open(&node, &plain);
	peer = meet(&node, other.to, other.from);
	exchange(&node, peer, 0, 1);
	get(other.from, &byte, 1);
	TRY(&node, fi_trecv(node.ep, &in, 1, NULL, peer, 77, 0, &received));
	TRY(&node, fi_tsend(node.ep, out, LONG_BYTES, NULL, peer, 78, &sent));
	conf_ok(kill(other.pid, SIGKILL));
	while (seen != 3) {
		char text[256];

		expect_error(&node, &error);
		assert_int_not_equal(error.err, 0);
		assert_true(strlen(fi_cq_strerror(node.txcq, error.prov_errno, error.err_data, text,
						  sizeof(text))) > 0);
		seen |= error.op_context == &sent ? 1 : 2;
	}
	other_end(&other, SIGKILL);
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

/* The other one's half of exchange() is yet to come: begin ours, which is in nobody's way. */
static void send_early(struct conf_node *node, fi_addr_t peer, struct fi_context2 *sent,
		       const uint8_t *out)
{
	/* long ones, which nobody but the peer itself can answer, and what fills every buffer */
	for (int i = 0; i < 8; i++)
		TRY(node, fi_tsend(node->ep, out, LONG_BYTES, NULL, peer, 900, &sent[i]));
	for (int i = 0; i < MANY; i++)
		TRY(node, fi_tinject(node->ep, out, 4000, peer, 901));
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
	uint8_t *out = calloc(1, LONG_BYTES), byte;
	struct fi_context2 sent[2][8];
	struct conf_node node;
	struct other other;
	fi_addr_t peer;

	(void)state;
	conf_beyond_rxm(); /* connects by calls only */
	setenv("FI_RVCM_CONNECT_TIMEOUT", "2000", 1);
	other_start(&other, "compute");
	conf_open(&node, &plain);
	unsetenv("FI_RVCM_CONNECT_TIMEOUT");
	peer = meet(&node, other.to, other.from);
	for (uint32_t round = 0; round < 2; round++) {
		get(other.from, &byte, 1);
		if (round)
			run_command("FABTEST_DOWN");
		send_early(&node, peer, sent[round], out);
		watch(&node, ms);
		if (round)
			run_command("FABTEST_UP");
		put(other.to, "g", 1);
		exchange(&node, peer, 2 * round, 2 * round + 2);
		if (!round)
			warm_up(&node, peer, true);
	}
	conf_close(&node);
	other_end(&other, 0);
	free(out);
}

/* A number that nobody answers at is an error of the send, not of the provider. */
static void nobody_there_is_an_error(void **state)
{
	struct conf_node node, gone;
	struct fi_cq_err_entry error;
	struct fi_context2 sent;
	fi_addr_t peer;

	(void)state;
	conf_beyond_rxm(); /* tries for ever */
	conf_open(&gone, &plain);
	conf_open(&node, &plain);
	peer = conf_insert(&node, &gone);
	conf_close(&gone);
	TRY(&node, fi_tsend(node.ep, "x", 1, NULL, peer, 1, &sent));
	expect_error(&node, &error);
	assert_ptr_equal(error.op_context, &sent);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	conf_close(&node);
}

/* system(3), popen(3), a child that does nothing: neither side notices. */
static void forks_do_no_harm(void **state)
{
	struct conf_node node;
	struct other other;
	fi_addr_t peer;
	int status;
	pid_t pid;

	(void)state;
	other_start(&other, "exchange");
	conf_open(&node, &plain);
	peer = meet(&node, other.to, other.from);
	exchange(&node, peer, 0, 10);
	assert_int_equal(system("true"), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
	exchange(&node, peer, 10, 20);
	conf_close(&node);
	other_end(&other, 0);
}

/* A child closes what it inherited and opens its own; the parent goes on. */
static void a_child_may_start_anew(void **state)
{
	struct conf_node node;
	struct other other;
	fi_addr_t peer;
	int status;
	pid_t pid;

	(void)state;
	conf_beyond_rxm(); /* its child shuts the parent's connections down */
	other_start(&other, "exchange");
	conf_open(&node, &plain);
	peer = meet(&node, other.to, other.from);
	exchange(&node, peer, 0, 10);
	pid = fork();
	assert_true(pid >= 0);
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
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	exchange(&node, peer, 10, 20);
	conf_close(&node);
	other_end(&other, 0);
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
	conf_beyond_rxm();
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
		cmocka_unit_test(a_killed_peer_is_reported),
		cmocka_unit_test(a_busy_peer_is_not_dead),
		cmocka_unit_test(nobody_there_is_an_error),
		cmocka_unit_test(forks_do_no_harm),
		cmocka_unit_test(a_child_may_start_anew),
		cmocka_unit_test(a_child_can_close_what_was_busy),
	};

	conf_provider();
	if (argc == 4)
		return play(argv[1], atoi(argv[2]), atoi(argv[3]));
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}

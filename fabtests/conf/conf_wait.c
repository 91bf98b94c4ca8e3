/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting, fi_cq(3) and fi_trywait(3): look, arm, look again, sleep; nobody sleeps through a
 * completion. Threads do not assert: they say why.
 */
#include "conf/conf.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static const struct conf_options waiting = { .wait_obj = FI_WAIT_FD };

/* -- two threads that poll descriptors ------------------------------------------------------ */

struct player {
	struct conf_node *node;
	fi_addr_t peer;
	int rounds;
	const char *why;
};

/* The next completion, by the application's own poll(2). */
static const char *poll_next(struct conf_node *node, struct fi_cq_tagged_entry *entry)
{
	struct fid *fids[] = { &node->txcq->fid };
	struct pollfd pollfd = { .events = POLLIN };
	ssize_t rc;

	if (fi_control(fids[0], FI_GETWAIT, &pollfd.fd))
		return "no descriptor";
	while ((rc = fi_cq_read(node->txcq, entry, 1)) == -FI_EAGAIN) {
		int safe = fi_trywait(node->fabric, fids, 1);

		if (safe == -FI_EAGAIN)
			continue;
		if (safe)
			return "fi_trywait failed";
		if (poll(&pollfd, 1, CONF_TIMEOUT_MS) != 1)
			return "the descriptor stayed silent";
	}
	return rc == 1 ? NULL : "an operation failed";
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct fi_cq_tagged_entry entry;
	struct fi_context2 contexts[2];
	char in;

	for (int i = 0; i < p->rounds && !p->why; i++) {
		ssize_t rc =
			fi_trecv(p->node->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]);

		while (!rc && (rc = fi_tsend(p->node->ep, "p", 1, NULL, p->peer, 1,
					     &contexts[1])) == -FI_EAGAIN) {
			fi_cq_read(p->node->txcq, NULL, 0);
			rc = 0;
		}
		if (rc)
			p->why = "a call was refused";
		for (int n = 0; n < 2 && !p->why; n++)
			p->why = poll_next(p->node, &entry);
	}
	return NULL;
}

static void descriptors_wake_each_other(void **state)
{
	struct player players[2];
	struct conf_pair pair;
	pthread_t thread;

	(void)state;
	conf_pair_open(&pair, &waiting);
	players[0] = (struct player) { &pair.a, pair.to_b, 500, NULL };
	players[1] = (struct player) { &pair.b, pair.to_a, 500, NULL };
	conf_ok(pthread_create(&thread, NULL, play, &players[1]));
	play(&players[0]);
	conf_ok(pthread_join(thread, NULL));
	if (players[0].why || players[1].why)
		fail_msg("%s", players[0].why ? players[0].why : players[1].why);
	conf_pair_close(&pair);
}

/* -- many threads asleep on one queue ------------------------------------------------------- */

enum {
	SLEEPERS = 4,
	COUNT = 400
};

struct sleeper {
	pthread_t thread;
	struct fid_cq *cq;
	atomic_int *to_come;
	const char *why;
};

static void *sleep_and_take(void *arg)
{
	struct sleeper *s = arg;

	while (atomic_load(s->to_come) > 0 && !s->why) {
		struct fi_cq_tagged_entry entry;
		ssize_t rc = fi_cq_sread(s->cq, &entry, 1, NULL, 200);

		if (rc == 1)
			atomic_fetch_sub(s->to_come, 1);
		else if (rc != -FI_EAGAIN && rc != -FI_EINTR)
			s->why = "a wait failed";
	}
	return NULL;
}

/* They drive the receiver; the sender only sends. */
static void many_sleep_on_one_queue(void **state)
{
	const struct conf_options options = { .wait_obj = FI_WAIT_FD, .separate_cqs = true };
	struct fi_context2 *contexts = calloc(COUNT, sizeof(*contexts));
	struct sleeper sleepers[SLEEPERS];
	atomic_int to_come = COUNT;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &options);
	for (int i = 0; i < COUNT; i++)
		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[i]));
	for (int i = 0; i < SLEEPERS; i++) {
		sleepers[i] = (struct sleeper) { .cq = pair.b.rxcq, .to_come = &to_come };
		conf_ok(pthread_create(&sleepers[i].thread, NULL, sleep_and_take, &sleepers[i]));
	}
	for (int i = 0; i < COUNT; i++) {
		ssize_t rc;

		while ((rc = fi_tinject(pair.a.ep, NULL, 0, pair.to_b, 1)) == -FI_EAGAIN)
			fi_cq_read(pair.a.txcq, NULL, 0);
		conf_ok(rc);
	}
	while (atomic_load(&to_come) > 0)
		fi_cq_read(pair.a.txcq, NULL, 0);
	for (int i = 0; i < SLEEPERS; i++) {
		conf_ok(pthread_join(sleepers[i].thread, NULL));
		assert_null(sleepers[i].why);
	}
	assert_int_equal(atomic_load(&to_come), 0);
	conf_pair_close(&pair);
	free(contexts);
}

/* -- signals ------------------------------------------------------------------------------- */

static void nothing(int number)
{
	(void)number;
}

struct waiter {
	struct fid_cq *cq;
	atomic_bool done;
	ssize_t rc;
};

static void *wait_for_ever(void *arg)
{
	struct waiter *waiter = arg;
	struct fi_cq_tagged_entry entry;

	waiter->rc = fi_cq_sread(waiter->cq, &entry, 1, NULL, -1);
	atomic_store(&waiter->done, true);
	return NULL;
}

static void a_signal_is_said(void **state)
{
	struct sigaction action = { .sa_handler = nothing }, old;
	struct waiter waiter = { .done = false };
	struct conf_node node;
	pthread_t thread;

	(void)state;
	conf_open(&node, &waiting);
	conf_ok(sigaction(SIGUSR1, &action, &old));
	waiter.cq = node.txcq;
	conf_ok(pthread_create(&thread, NULL, wait_for_ever, &waiter));
	while (!atomic_load(&waiter.done)) {
		struct timespec moment = { .tv_nsec = 1000000 };

		pthread_kill(thread, SIGUSR1);
		nanosleep(&moment, NULL); /* let it get there: a signal on the way there is lost */
	}
	conf_ok(pthread_join(thread, NULL));
	conf_ok(sigaction(SIGUSR1, &old, NULL));
	assert_int_equal(waiter.rc, -FI_EINTR);
	conf_close(&node);
}

/* fi_cq_signal before anybody waits. */
static void a_wake_up_call_is_kept(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_node node;

	(void)state;
	conf_open(&node, &waiting);
	conf_ok(fi_cq_signal(node.txcq));
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, -1), -FI_EAGAIN);
	/* and only once */
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, 1), -FI_EAGAIN);
	conf_close(&node);
}

/* -- kinds of wait objects ------------------------------------------------------------------ */

/* FI_WAIT_UNSPEC may be any kind. */
static void the_kind_can_be_asked_for(void **state)
{
	static const enum fi_wait_obj asked[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct conf_options options = { .wait_obj = asked[i] };
		enum fi_wait_obj kind = FI_WAIT_NONE;
		struct conf_node node;
		int fd = -1, rc;

		conf_open(&node, &options);
		rc = fi_control(&node.txcq->fid, FI_GETWAITOBJ, &kind);
		if (rc == -FI_ENOSYS)
			conf_not_offered("FI_GETWAITOBJ");
		conf_ok(rc);
		assert_int_not_equal(kind, FI_WAIT_NONE);
		if (asked[i] == FI_WAIT_FD)
			assert_int_equal(kind, FI_WAIT_FD);
		if (kind == FI_WAIT_FD) {
			conf_ok(fi_control(&node.txcq->fid, FI_GETWAIT, &fd));
			assert_true(fcntl(fd, F_GETFD) >= 0);
		}
		conf_close(&node);
	}
}

/* A completion in any queue of the set forbids to sleep. */
static void a_set_is_as_awake_as_its_members(void **state)
{
	const struct conf_options options = { .wait_obj = FI_WAIT_FD, .separate_cqs = true };
	struct fi_cq_tagged_entry entry;
	struct fi_context2 contexts[2];
	struct conf_pair pair;
	struct fid *fids[2];
	uint64_t end;
	char in = 0;

	(void)state;
	conf_pair_open(&pair, &options);
	fids[0] = &pair.b.txcq->fid;
	fids[1] = &pair.b.rxcq->fid;
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, 1, &contexts[1]));
	conf_wait(&pair, pair.a.txcq, &entry, NULL);
	/* until it is there: progress takes it in, and reading a queue's nothing leaves it */
	end = conf_deadline();
	while (in != 'x') {
		conf_progress(&pair);
		conf_not_late(end);
	}
	assert_int_equal(fi_trywait(pair.b.fabric, fids, 2), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(pair.b.rxcq, &entry, 1), 1);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_wake_each_other),
		cmocka_unit_test(many_sleep_on_one_queue),
		cmocka_unit_test(a_signal_is_said),
		cmocka_unit_test(a_wake_up_call_is_kept),
		cmocka_unit_test(the_kind_can_be_asked_for),
		cmocka_unit_test(a_set_is_as_awake_as_its_members),
	};

	conf_provider();
	return conf_run_tests("wait", tests);
}

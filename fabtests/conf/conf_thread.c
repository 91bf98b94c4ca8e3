/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_THREAD_SAFE: any thread may call anything at any time (fi_domain(3)). */
#include "conf/conf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const struct conf_options safe = { .threading = FI_THREAD_SAFE,
					  .wait_obj = FI_WAIT_FD,
					  .separate_cqs = true };

enum {
	THREADS = 4,
	COUNT = 400,
	SIZE = 3000
};

struct work {
	struct conf_pair *pair;
	uint64_t tag;
	atomic_int *to_come; /* completions that nobody has seen */
	const char *why;     /* what went wrong */
};

/* Senders and receivers post; whoever waits takes whatever completes. */
static void *send_all(void *arg)
{
	struct work *work = arg;
	struct fi_context2 *contexts = calloc(COUNT, sizeof(*contexts));
	static uint8_t out[SIZE];

	for (int i = 0; i < COUNT; i++) {
		ssize_t rc;

		while ((rc = fi_tsend(work->pair->a.ep, out, (size_t)(i * 7) % SIZE, NULL,
				      work->pair->to_b, work->tag, &contexts[i])) == -FI_EAGAIN)
			fi_cq_read(work->pair->a.txcq, NULL, 0);
		if (rc)
			work->why = "a send failed";
	}
	return contexts;
}

static void *recv_all(void *arg)
{
	struct work *work = arg;
	uint8_t *in = malloc((size_t)COUNT * SIZE);
	struct fi_context2 *contexts = calloc(COUNT, sizeof(*contexts));

	for (int i = 0; i < COUNT; i++) {
		ssize_t rc;

		while ((rc = fi_trecv(work->pair->b.ep, in + i * SIZE, SIZE, NULL, FI_ADDR_UNSPEC,
				      work->tag, 0, &contexts[i])) == -FI_EAGAIN)
			fi_cq_read(work->pair->b.rxcq, NULL, 0);
		if (rc)
			work->why = "a receive failed";
	}
	while (atomic_load(work->to_come) > 0)
		fi_cq_read(work->pair->b.rxcq, NULL, 0);
	free(in);
	return contexts;
}

static void *reap(struct work *work, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entries[8];

	while (atomic_load(work->to_come) > 0) {
		ssize_t rc = fi_cq_sread(cq, entries, 8, NULL, 50);

		if (rc == -FI_EAGAIN || rc == -FI_EINTR)
			continue;
		if (rc < 0)
			work->why = "an operation failed";
		atomic_fetch_sub(work->to_come, rc > 0 ? (int)rc : 1);
	}
	return NULL;
}

static void *reap_sends(void *arg)
{
	return reap(arg, ((struct work *)arg)->pair->a.txcq);
}

static void *reap_receives(void *arg)
{
	return reap(arg, ((struct work *)arg)->pair->b.rxcq);
}

static void many_threads_share_endpoints_and_queues(void **state)
{
	void *(*const roles[])(void *) = { send_all, recv_all, reap_sends, reap_receives };
	struct work works[THREADS][4];
	pthread_t threads[THREADS][4];
	atomic_int sends = THREADS * COUNT, receives = THREADS * COUNT;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &safe);
	for (int i = 0; i < THREADS; i++) {
		for (int r = 0; r < 4; r++) {
			works[i][r] = (struct work) { &pair, (uint64_t)i,
						      r % 2 ? &receives : &sends, NULL };
			conf_ok(pthread_create(&threads[i][r], NULL, roles[r], &works[i][r]));
		}
	}
	for (int i = 0; i < THREADS; i++) {
		for (int r = 0; r < 4; r++) {
			void *contexts;

			conf_ok(pthread_join(threads[i][r], &contexts));
			free(contexts);
			if (works[i][r].why)
				fail_msg("%s", works[i][r].why);
		}
	}
	assert_int_equal(atomic_load(&sends), 0);
	assert_int_equal(atomic_load(&receives), 0);
	conf_pair_close(&pair);
}

struct sleeper {
	struct conf_node *node;
	int count;
	atomic_int woken;
	const char *why;
};

static void *sleep_often(void *arg)
{
	struct sleeper *sleeper = arg;
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < sleeper->count; i++) {
		ssize_t rc;

		do {
			rc = fi_cq_sread(sleeper->node->rxcq, &entry, 1, NULL, CONF_TIMEOUT_MS);
		} while (rc == -FI_EINTR);
		if (rc != 1)
			sleeper->why = "nobody woke the sleeper";
		atomic_store(&sleeper->woken, i + 1);
	}
	return NULL;
}

/* What completes without anything coming from outside: only the other thread can wake us. */
static void a_completion_wakes_sleepers(void **state)
{
	struct sleeper sleeper = { .count = 100 };
	struct fi_context2 contexts[2];
	struct conf_node node;
	pthread_t thread;
	fi_addr_t self;
	char in;

	(void)state;
	conf_open(&node, &safe);
	self = conf_insert(&node, &node);
	sleeper.node = &node;
	conf_ok(pthread_create(&thread, NULL, sleep_often, &sleeper));
	for (int i = 0; i < sleeper.count; i++) {
		struct fi_cq_tagged_entry entry;

		while (fi_trecv(node.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]) ==
		       -FI_EAGAIN)
			;
		while (fi_tsend(node.ep, "w", 1, NULL, self, 1, &contexts[1]) == -FI_EAGAIN)
			;
		while (fi_cq_read(node.txcq, &entry, 1) != 1)
			;
		while (atomic_load(&sleeper.woken) <= i)
			fi_cq_read(node.txcq, NULL, 0);
		/* it goes to sleep again meanwhile, most of the time */
		for (int j = 0; j < 1000; j++)
			fi_cq_read(node.txcq, NULL, 0);
	}
	conf_ok(pthread_join(thread, NULL));
	assert_null(sleeper.why);
	conf_close(&node);
}

static void *insert_all(void *arg)
{
	struct work *work = arg;

	for (int i = 0; i < 200; i++) {
		char service[16];
		fi_addr_t addr;

		snprintf(service, sizeof(service), "%d", 2000 + (int)work->tag * 200 + i);
		if (fi_av_insertsvc(work->pair->a.av, "127.0.0.1", service, &addr, 0, NULL) != 1 ||
		    fi_av_remove(work->pair->a.av, &addr, 1, 0))
			work->why = "an insert or remove failed";
	}
	return NULL;
}

/* Control calls are always thread safe; here beside traffic. */
static void addresses_change_meanwhile(void **state)
{
	struct work works[THREADS];
	pthread_t threads[THREADS];
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &safe);
	for (int i = 0; i < THREADS; i++) {
		works[i] = (struct work) { &pair, (uint64_t)i, NULL, NULL };
		conf_ok(pthread_create(&threads[i], NULL, insert_all, &works[i]));
	}
	for (int i = 0; i < 200; i++) {
		struct fi_cq_tagged_entry entry;
		struct fi_context2 contexts[2];
		char in;

		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, "z", 1, NULL, pair.to_b, 1, &contexts[1]));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
	}
	for (int i = 0; i < THREADS; i++) {
		conf_ok(pthread_join(threads[i], NULL));
		if (works[i].why)
			fail_msg("%s", works[i].why);
	}
	conf_pair_close(&pair);
}

static void *open_and_close(void *arg)
{
	const char **why = arg;

	for (int i = 0; i < 20; i++) {
		struct fi_info *hints = conf_hints(), *info = NULL;
		struct fid_fabric *fabric;
		struct fid_domain *domain;

		if (fi_getinfo(CONF_VERSION, conf_node_name(), NULL, FI_SOURCE, hints, &info) ||
		    fi_fabric(info->fabric_attr, &fabric, NULL)) {
			*why = "fi_getinfo or fi_fabric failed";
			fi_freeinfo(hints);
			return NULL;
		}
		if (fi_domain(fabric, info, &domain, NULL))
			*why = "fi_domain failed";
		else if (fi_close(&domain->fid))
			*why = "a domain could not be closed";
		fi_close(&fabric->fid);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	return NULL;
}

static void domains_come_and_go(void **state)
{
	pthread_t threads[THREADS];
	const char *why[THREADS] = { NULL };

	(void)state;
	for (int i = 0; i < THREADS; i++)
		conf_ok(pthread_create(&threads[i], NULL, open_and_close, &why[i]));
	for (int i = 0; i < THREADS; i++) {
		conf_ok(pthread_join(threads[i], NULL));
		if (why[i])
			fail_msg("%s", why[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_share_endpoints_and_queues),
		cmocka_unit_test(a_completion_wakes_sleepers),
		cmocka_unit_test(addresses_change_meanwhile),
		cmocka_unit_test(domains_come_and_go),
	};

	conf_provider();
	return conf_run_tests("thread", tests);
}

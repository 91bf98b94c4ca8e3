/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PROGRESS_AUTO of fi_domain(3): an application that calls nothing receives, answers and sends
 * all the same. What has arrived is seen in memory; only then is a queue looked at.
 */
#include "conf/conf.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static const struct conf_options automatic = { .progress = FI_PROGRESS_AUTO,
					       .caps = FI_MULTI_RECV,
					       .wait_obj = FI_WAIT_FD };

#define LONG_BYTES (1u << 20)

/*
 * Wait for the last byte of a message to change, without a call into libfabric. Nothing orders that
 * but the test's patience; what is read in earnest is read after its completion.
 */
__attribute__((no_sanitize("thread"))) static void await_byte(const uint8_t *byte, uint8_t value)
{
	uint64_t deadline = conf_deadline();

	while (*(const volatile uint8_t *)byte != value) {
		sched_yield();
		conf_not_late(deadline);
	}
}

static void it_is_given_when_asked_for(void **state)
{
	struct conf_node node;

	(void)state;
	conf_open(&node, &automatic);
	assert_int_equal(node.info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	conf_close(&node);
}

/* First contact, short and long, expected and not: nobody calls anything. */
static void messages_arrive_by_themselves(void **state)
{
	static const size_t sizes[] = { 1, 4000, 20000, LONG_BYTES };
	struct fi_context2 sent, received;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &automatic);
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t *out = malloc(sizes[i]), *in = calloc(1, sizes[i]);
		struct fi_cq_tagged_entry entry;

		conf_fill(out, sizes[i], i);
		out[sizes[i] - 1] = 0xa5;
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in, sizes[i], NULL, FI_ADDR_UNSPEC, 1, 0,
					   &received));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, sizes[i], NULL, pair.to_b, 1, &sent));
		await_byte(&in[sizes[i] - 1], 0xa5);
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_memory_equal(in, out, sizes[i]);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		free(out);
		free(in);
	}
	conf_pair_close(&pair);
}

enum {
	MANY = 500
};

/* Send so many, one behind the other, and see them arrive in memory. */
static void burst(struct conf_pair *pair, int count, uint8_t value)
{
	struct fi_context2 *contexts = calloc(2 * MANY, sizeof(*contexts));
	uint8_t in[MANY] = { 0 };

	for (int i = 0; i < count; i++)
		CONF_RETRY(pair, fi_trecv(pair->b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0,
					  &contexts[i]));
	for (int i = 0; i < count; i++) {
		ssize_t rc;

		while ((rc = fi_tsend(pair->a.ep, &value, 1, NULL, pair->to_b, 1,
				      &contexts[MANY + i])) == -FI_EAGAIN)
			sched_yield();
		conf_ok(rc);
	}
	for (int i = 0; i < count; i++)
		await_byte(&in[i], value);
	for (int i = 0; i < count; i++) {
		struct fi_cq_tagged_entry entry;

		conf_wait(pair, pair->a.txcq, &entry, NULL);
		conf_wait(pair, pair->b.rxcq, &entry, NULL);
	}
	free(contexts);
}

/* What waits for credit is sent by the thread; what needs none waits for nobody. */
static void bursts_leave_by_themselves(void **state)
{
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &automatic);
	burst(&pair, MANY, 1);
	for (int count = 1; count < 40; count++)
		burst(&pair, count, (uint8_t)(1 + count));
	conf_pair_close(&pair);
}

/* The descriptor becomes readable though nobody progresses, for sends and receives. */
static void descriptors_speak_by_themselves(void **state)
{
	struct fi_context2 sent, received;
	struct conf_pair pair;
	uint8_t *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);

	(void)state;
	conf_pair_open(&pair, &automatic);
	for (int round = 0; round < 20; round++) {
		struct conf_node *nodes[] = { &pair.a, &pair.b };

		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in, LONG_BYTES, NULL, FI_ADDR_UNSPEC, 1, 0,
					   &received));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, LONG_BYTES, NULL, pair.to_b, 1, &sent));
		for (int i = 0; i < 2; i++) {
			struct fi_cq_tagged_entry entry;
			struct fid *fids[] = { &nodes[i]->txcq->fid };
			struct pollfd pollfd = { .events = POLLIN };

			conf_ok(fi_control(fids[0], FI_GETWAIT, &pollfd.fd));
			while (fi_cq_read(nodes[i]->txcq, &entry, 1) == -FI_EAGAIN) {
				if (fi_trywait(nodes[i]->fabric, fids, 1) == 0)
					assert_int_equal(poll(&pollfd, 1, CONF_TIMEOUT_MS), 1);
			}
		}
	}
	conf_pair_close(&pair);
	free(out);
	free(in);
}

static void sleepers_are_woken(void **state)
{
	struct fi_context2 contexts[2];
	struct conf_pair pair;
	char in;

	(void)state;
	conf_pair_open(&pair, &automatic);
	for (int i = 0; i < 300; i++) {
		struct conf_node *to = i % 2 ? &pair.a : &pair.b, *from = i % 2 ? &pair.b : &pair.a;
		fi_addr_t dest = i % 2 ? pair.to_a : pair.to_b;
		struct fi_cq_tagged_entry entry;
		ssize_t rc;

		CONF_RETRY(&pair,
			   fi_trecv(to->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
		while ((rc = fi_tsend(from->ep, "s", 1, NULL, dest, 1, &contexts[1])) == -FI_EAGAIN)
			sched_yield();
		conf_ok(rc);
		assert_int_equal(fi_cq_sread(to->rxcq, &entry, 1, NULL, CONF_TIMEOUT_MS), 1);
		assert_int_equal(fi_cq_sread(from->txcq, &entry, 1, NULL, CONF_TIMEOUT_MS), 1);
	}
	conf_pair_close(&pair);
}

/* Threads that poll beside the thread that sleeps. */
struct poller {
	struct conf_node *node;
	fi_addr_t peer;
	int count;
	const char *why;
};

static void *play(void *arg)
{
	struct poller *poller = arg;
	struct fi_context2 contexts[2];

	for (int i = 0; i < poller->count; i++) {
		struct fi_cq_tagged_entry entry;
		ssize_t rc;
		char in;

		while ((rc = fi_trecv(poller->node->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0,
				      &contexts[0])) == -FI_EAGAIN)
			sched_yield();
		if (rc)
			poller->why = "a receive failed";
		while ((rc = fi_tsend(poller->node->ep, "p", 1, NULL, poller->peer, 1,
				      &contexts[1])) == -FI_EAGAIN)
			sched_yield();
		if (rc)
			poller->why = "a send failed";
		for (int n = 0; n < 2 && !poller->why; n += rc == 1) {
			rc = fi_cq_read(poller->node->txcq, &entry, 1);
			if (rc != 1 && rc != -FI_EAGAIN)
				poller->why = "a completion is an error";
		}
	}
	return NULL;
}

static void polling_is_fine_too(void **state)
{
	struct conf_pair pair;
	struct poller pollers[2];
	pthread_t thread;

	(void)state;
	conf_pair_open(&pair, &automatic);
	pollers[0] = (struct poller) { &pair.a, pair.to_b, 2000, NULL };
	pollers[1] = (struct poller) { &pair.b, pair.to_a, 2000, NULL };
	conf_ok(pthread_create(&thread, NULL, play, &pollers[1]));
	play(&pollers[0]);
	conf_ok(pthread_join(thread, NULL));
	assert_null(pollers[0].why);
	assert_null(pollers[1].why);
	conf_pair_close(&pair);
}

static void domains_open_and_close(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		struct conf_node node;

		conf_open(&node, &automatic);
		conf_close(&node);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_given_when_asked_for),
		cmocka_unit_test(messages_arrive_by_themselves),
		cmocka_unit_test(bursts_leave_by_themselves),
		cmocka_unit_test(descriptors_speak_by_themselves),
		cmocka_unit_test(sleepers_are_woken),
		cmocka_unit_test(polling_is_fine_too),
		cmocka_unit_test(domains_open_and_close),
	};

	conf_provider();
	return conf_run_tests("auto", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads as fi_domain(3) allows them: eight that do everything at one endpoint (FI_THREAD_SAFE),
 * eight with a domain each (FI_THREAD_DOMAIN), and two with an endpoint and a queue each
 * (FI_THREAD_COMPLETION). Threads do not assert: they say why.
 */
#include "conf/conf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	THREADS = 8,
	ROUNDS = 150,
	SIZE = 40000, /* eager and not */
	ECHOES = 32
};

/* An operation, found again by its context. Whoever reads the queue marks it. */
struct op {
	struct fi_context2 context; /* first */
	atomic_int ends;
	int err;
};

static void mark(void *context, int err)
{
	struct op *op = context;

	op->err = err;
	atomic_fetch_add(&op->ends, 1);
}

/* Take what is there, ours or not; asleep for a moment if wait says so. */
static const char *reap(struct fid_cq *cq, bool wait)
{
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry error = { 0 };
	ssize_t n = wait ? fi_cq_sread(cq, entries, 4, NULL, 5) : fi_cq_read(cq, entries, 4);

	for (ssize_t i = 0; i < n; i++)
		mark(entries[i].op_context, 0);
	if (n == -FI_EAVAIL) {
		/* another thread may have taken it since */
		if (fi_cq_readerr(cq, &error, 0) == 1)
			mark(error.op_context, error.err);
		return NULL;
	}
	return n > 0 || n == -FI_EAGAIN || n == -FI_EINTR ? NULL : "reading a queue failed";
}

struct mixer {
	pthread_t thread;
	struct conf_pair *pair;
	uint32_t index;
	const char *why;
};

#define UNTIL_TAKEN(mixer, cq, call)                                  \
	do {                                                          \
		ssize_t rc_;                                          \
                                                                      \
		while ((rc_ = (call)) == -FI_EAGAIN && !(mixer)->why) \
			(mixer)->why = reap(cq, false);               \
		if (rc_ && rc_ != -FI_EAGAIN)                         \
			(mixer)->why = "a call was refused: " #call;  \
	} while (0)

static void await(struct mixer *mixer, struct fid_cq *cq, struct op *op, int err)
{
	while (!atomic_load(&op->ends) && !mixer->why)
		mixer->why = reap(cq, mixer->index % 2);
	if (!mixer->why && (atomic_load(&op->ends) != 1 || op->err != err))
		mixer->why = "an operation ended otherwise, or twice";
	atomic_store(&op->ends, 0);
}

static bool same(const uint8_t *a, const uint8_t *b, size_t size)
{
	return memcmp(a, b, size) == 0;
}

/* Tagged, there and back; and a receive that nobody answers is taken back. */
static void round_tagged(struct mixer *mixer, uint8_t *out, uint8_t *in, size_t size)
{
	struct conf_node *a = &mixer->pair->a;
	struct op sent = { .ends = 0 }, received = { .ends = 0 }, never = { .ends = 0 };
	uint64_t tag = mixer->index;

	UNTIL_TAKEN(mixer, a->txcq,
		    fi_trecv(a->ep, in, SIZE, NULL, FI_ADDR_UNSPEC, tag, 0, &received));
	UNTIL_TAKEN(mixer, a->txcq,
		    fi_trecv(a->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, tag | 0x1000, 0, &never));
	UNTIL_TAKEN(mixer, a->txcq,
		    fi_tsend(a->ep, out, size, NULL, mixer->pair->to_b, tag, &sent));
	if (!mixer->why && fi_cancel(&a->ep->fid, &never))
		mixer->why = "a receive could not be cancelled";
	await(mixer, a->txcq, &never, FI_ECANCELED);
	await(mixer, a->txcq, &sent, 0);
	await(mixer, a->txcq, &received, 0);
	if (!mixer->why && !same(in, out, size))
		mixer->why = "an echo differs";
}

/* Without tags an echo may be another thread's. */
static void round_msg(struct mixer *mixer, uint8_t *out, uint8_t *in, size_t size)
{
	struct conf_node *a = &mixer->pair->a;
	struct op sent = { .ends = 0 }, received = { .ends = 0 };

	UNTIL_TAKEN(mixer, a->txcq, fi_recv(a->ep, in, SIZE, NULL, FI_ADDR_UNSPEC, &received));
	UNTIL_TAKEN(mixer, a->txcq, fi_send(a->ep, out, size, NULL, mixer->pair->to_b, &sent));
	await(mixer, a->txcq, &sent, 0);
	await(mixer, a->txcq, &received, 0);
}

static void *mix(void *arg)
{
	struct mixer *mixer = arg;
	uint8_t *out = malloc(SIZE), *in = malloc(SIZE);

	conf_fill(out, SIZE, mixer->index);
	for (uint32_t i = 0; i < ROUNDS && !mixer->why; i++) {
		size_t size = i % 10 ? i * 7 : SIZE;

		if ((i + mixer->index) % 3)
			round_tagged(mixer, out, in, size);
		else
			round_msg(mixer, out, in, size);
	}
	free(out);
	free(in);
	return NULL;
}

/* The other end: what comes goes back, with its tag. */
struct echo {
	struct op received, sent; /* received first: its address is the echo's */
	uint8_t buf[SIZE];
	bool tagged;
};

struct echoer {
	pthread_t thread;
	struct conf_pair *pair;
	struct echo *echoes;
	atomic_bool stop;
	const char *why;
};

static const char *echo_post(struct echoer *e, struct echo *echo)
{
	struct conf_node *b = &e->pair->b;
	ssize_t rc = echo->tagged ? fi_trecv(b->ep, echo->buf, SIZE, NULL, FI_ADDR_UNSPEC, 0, ~0ull,
					     &echo->received)
				  : fi_recv(b->ep, echo->buf, SIZE, NULL, FI_ADDR_UNSPEC,
					    &echo->received);

	return rc ? "an echo could not be posted" : NULL;
}

static const char *echo_step(struct echoer *e, const struct fi_cq_tagged_entry *entry)
{
	struct conf_node *b = &e->pair->b;
	struct echo *echo = (struct echo *)entry->op_context;
	ssize_t rc;

	if (entry->flags & FI_SEND) {
		echo = (struct echo *)((char *)entry->op_context - offsetof(struct echo, sent));
		return echo_post(e, echo);
	}
	do {
		rc = entry->flags & FI_TAGGED ? fi_tsend(b->ep, echo->buf, entry->len, NULL,
							 e->pair->to_a, entry->tag, &echo->sent)
					      : fi_send(b->ep, echo->buf, entry->len, NULL,
							e->pair->to_a, &echo->sent);
		if (rc == -FI_EAGAIN)
			fi_cq_read(b->txcq, NULL, 0);
	} while (rc == -FI_EAGAIN);
	return rc ? "an echo could not be sent" : NULL;
}

static void *echo_all(void *arg)
{
	struct echoer *e = arg;
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < ECHOES && !e->why; i++) {
		e->echoes[i].tagged = i % 2;
		e->why = echo_post(e, &e->echoes[i]);
	}
	while (!atomic_load(&e->stop) && !e->why) {
		ssize_t rc = fi_cq_sread(e->pair->b.txcq, &entry, 1, NULL, 5);

		if (rc == 1)
			e->why = echo_step(e, &entry);
		else if (rc != -FI_EAGAIN && rc != -FI_EINTR)
			e->why = "an echo failed";
	}
	return NULL;
}

static void eight_threads_at_one_endpoint(void **state)
{
	const struct conf_options safe = { .threading = FI_THREAD_SAFE, .wait_obj = FI_WAIT_FD };
	struct mixer mixers[THREADS];
	struct conf_pair pair;
	struct echoer echoer = { .pair = &pair };

	(void)state;
	conf_pair_open(&pair, &safe);
	echoer.echoes = calloc(ECHOES, sizeof(*echoer.echoes));
	conf_ok(pthread_create(&echoer.thread, NULL, echo_all, &echoer));
	for (uint32_t i = 0; i < THREADS; i++) {
		mixers[i] = (struct mixer) { .pair = &pair, .index = i };
		conf_ok(pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]));
	}
	for (int i = 0; i < THREADS; i++)
		conf_ok(pthread_join(mixers[i].thread, NULL));
	atomic_store(&echoer.stop, true);
	conf_ok(pthread_join(echoer.thread, NULL));
	conf_pair_close(&pair);
	free(echoer.echoes);
	for (int i = 0; i < THREADS; i++)
		if (mixers[i].why)
			fail_msg("thread %d: %s", i, mixers[i].why);
	if (echoer.why)
		fail_msg("%s", echoer.why);
}

/* Both ends of a pair are this thread's. */
static void *bounce(void *arg)
{
	struct mixer *mixer = arg;
	struct conf_node *a = &mixer->pair->a, *b = &mixer->pair->b;
	uint8_t *out = malloc(SIZE), *in = malloc(SIZE);

	conf_fill(out, SIZE, mixer->index);
	for (uint32_t i = 0; i < ROUNDS && !mixer->why; i++) {
		struct op sent = { .ends = 0 }, received = { .ends = 0 };
		size_t size = i % 10 ? i * 7 : SIZE;

		UNTIL_TAKEN(mixer, a->txcq,
			    fi_trecv(b->ep, in, SIZE, NULL, FI_ADDR_UNSPEC, i, 0, &received));
		UNTIL_TAKEN(mixer, b->txcq,
			    fi_tsend(a->ep, out, size, NULL, mixer->pair->to_b, i, &sent));
		while (!(sent.ends && received.ends) && !mixer->why) {
			mixer->why = reap(a->txcq, false);
			if (!mixer->why)
				mixer->why = reap(b->txcq, false);
		}
		if (!mixer->why && (sent.err || received.err || !same(in, out, size)))
			mixer->why = "a message did not arrive whole";
	}
	free(out);
	free(in);
	return NULL;
}

static void a_domain_per_thread(void **state)
{
	const struct conf_options unlocked = { .threading = FI_THREAD_DOMAIN };
	struct conf_pair pairs[THREADS];
	struct mixer mixers[THREADS];

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		conf_pair_open(&pairs[i], &unlocked);
		mixers[i] = (struct mixer) { .pair = &pairs[i], .index = i };
	}
	for (int i = 0; i < THREADS; i++)
		conf_ok(pthread_create(&mixers[i].thread, NULL, bounce, &mixers[i]));
	for (int i = 0; i < THREADS; i++)
		conf_ok(pthread_join(mixers[i].thread, NULL));
	for (int i = 0; i < THREADS; i++)
		conf_pair_close(&pairs[i]);
	for (int i = 0; i < THREADS; i++)
		if (mixers[i].why)
			fail_msg("thread %d: %s", i, mixers[i].why);
}

/* Another endpoint of a node's domain, with a queue of its own. */
static void sibling(struct conf_node *of, struct conf_node *node)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	*node = *of;
	conf_ok(fi_cq_open(node->domain, &attr, &node->txcq, NULL));
	node->rxcq = node->txcq;
	conf_ok(fi_endpoint(node->domain, node->info, &node->ep, NULL));
	conf_ok(fi_ep_bind(node->ep, &node->av->fid, 0));
	conf_ok(fi_ep_bind(node->ep, &node->txcq->fid, FI_TRANSMIT | FI_RECV));
	conf_ok(fi_enable(node->ep));
	node->name_size = sizeof(node->name);
	conf_ok(fi_getname(&node->ep->fid, node->name, &node->name_size));
}

/* This thread's endpoint is a; the other's is to_b. */
static void *exchange(void *arg)
{
	struct mixer *mixer = arg;
	struct conf_node *a = &mixer->pair->a;
	uint8_t *out = malloc(SIZE), *in = malloc(SIZE);

	conf_fill(out, SIZE, 9);
	for (uint32_t i = 0; i < ROUNDS && !mixer->why; i++) {
		struct op sent = { .ends = 0 }, received = { .ends = 0 };
		size_t size = i % 10 ? i * 7 : SIZE;

		UNTIL_TAKEN(mixer, a->txcq,
			    fi_trecv(a->ep, in, SIZE, NULL, FI_ADDR_UNSPEC, i, 0, &received));
		UNTIL_TAKEN(mixer, a->txcq,
			    fi_tsend(a->ep, out, size, NULL, mixer->pair->to_b, i, &sent));
		while (!(sent.ends && received.ends) && !mixer->why)
			mixer->why = reap(a->txcq, false);
		if (!mixer->why && (sent.err || received.err || !same(in, out, size)))
			mixer->why = "a message did not arrive whole";
	}
	free(out);
	free(in);
	return NULL;
}

static void a_queue_per_thread(void **state)
{
	const struct conf_options options = { .threading = FI_THREAD_COMPLETION };
	struct conf_pair pairs[2];
	struct mixer mixers[2];

	(void)state;
	conf_open(&pairs[0].a, &options);
	sibling(&pairs[0].a, &pairs[1].a);
	pairs[0].to_b = conf_insert(&pairs[0].a, &pairs[1].a);
	pairs[1].to_b = conf_insert(&pairs[0].a, &pairs[0].a);
	for (uint32_t i = 0; i < 2; i++) {
		mixers[i] = (struct mixer) { .pair = &pairs[i] };
		conf_ok(pthread_create(&mixers[i].thread, NULL, exchange, &mixers[i]));
	}
	for (int i = 0; i < 2; i++)
		conf_ok(pthread_join(mixers[i].thread, NULL));
	conf_ok(fi_close(&pairs[1].a.ep->fid));
	conf_ok(fi_close(&pairs[1].a.txcq->fid));
	conf_close(&pairs[0].a);
	for (int i = 0; i < 2; i++)
		if (mixers[i].why)
			fail_msg("thread %d: %s", i, mixers[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight_threads_at_one_endpoint),
		cmocka_unit_test(a_domain_per_thread),
		cmocka_unit_test(a_queue_per_thread),
	};

	conf_provider();
	return conf_run_tests("mix", tests);
}

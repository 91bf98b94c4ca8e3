/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_cq(3): formats, errors, and waiting in all its ways. */
#include "conf/conf.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const struct conf_options plain;

/* Send n empty messages from a to b and wait at a; b's receives have their own addresses as
 * context. */
static void send_to_b(struct conf_pair *pair, struct fi_context2 *contexts, int n)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 sent;
	char byte = 1;

	for (int i = 0; i < n; i++)
		CONF_RETRY(pair,
			   fi_trecv(pair->b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[i]));
	for (int i = 0; i < n; i++) {
		CONF_RETRY(pair, fi_tsend(pair->a.ep, &byte, 0, NULL, pair->to_b, 7, &sent));
		conf_wait(pair, pair->a.txcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &sent);
		assert_int_equal(entry.flags & (FI_SEND | FI_TAGGED), FI_SEND | FI_TAGGED);
	}
}

/* Read entries of any format until n have come, at most four at a time. */
static void read_contexts(struct conf_pair *pair, size_t stride, struct fi_context2 *contexts,
			  int n)
{
	uint64_t deadline = conf_deadline();
	uint8_t buf[4 * sizeof(struct fi_cq_tagged_entry)];
	int got = 0;

	while (got < n) {
		ssize_t rc = fi_cq_read(pair->b.rxcq, buf, 4);

		conf_not_late(deadline);
		conf_progress(pair);
		if (rc == -FI_EAGAIN)
			continue;
		assert_in_range(rc, 1, 4);
		for (ssize_t i = 0; i < rc; i++) {
			void *context;

			memcpy(&context, buf + (size_t)i * stride, sizeof(context));
			assert_ptr_equal(context, &contexts[got++]);
		}
	}
}

static void every_format_is_written(void **state)
{
	static const struct {
		enum fi_cq_format format;
		size_t stride;
	} formats[] = {
		{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
		{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
		{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
		{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
	};
	struct fi_context2 contexts[10], sent;

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct conf_options options = { .format = formats[i].format };
		struct conf_pair pair;
		char byte = 1;

		conf_pair_open(&pair, &options);
		for (int j = 0; j < 10; j++) {
			CONF_RETRY(&pair, fi_trecv(pair.b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 7, 0,
						   &contexts[j]));
			CONF_RETRY(&pair, fi_tsend(pair.a.ep, &byte, 0, NULL, pair.to_b, 7, &sent));
		}
		read_contexts(&pair, formats[i].stride, contexts, 10);
		conf_pair_close(&pair);
	}
}

static void an_empty_queue_says_so(void **state)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(fi_cq_read(node.txcq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(node.txcq, &error, 0), -FI_EAGAIN);
	conf_close(&node);
}

static void more_completions_than_the_size_are_kept(void **state)
{
	enum {
		COUNT = 600
	};
	struct fi_context2 *contexts = calloc(COUNT, sizeof(*contexts));
	struct conf_options options = { .separate_cqs = true };
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &options);
	send_to_b(&pair, contexts, COUNT);
	read_contexts(&pair, sizeof(struct fi_cq_tagged_entry), contexts, COUNT);
	conf_pair_close(&pair);
	free(contexts);
}

static void a_wait_ends_with_its_time(void **state)
{
	struct conf_options options = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct conf_node node;

	(void)state;
	conf_open(&node, &options);
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, 20), -FI_EAGAIN);
	conf_close(&node);
}

static void *signal_queue(void *arg)
{
	fi_cq_signal(arg);
	return NULL;
}

static void a_signal_ends_a_wait(void **state)
{
	struct conf_options options = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct conf_node node;
	pthread_t thread;

	(void)state;
	conf_open(&node, &options);
	conf_ok(pthread_create(&thread, NULL, signal_queue, node.txcq));
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, CONF_TIMEOUT_MS), -FI_EAGAIN);
	conf_ok(pthread_join(thread, NULL));
	conf_close(&node);
}

struct echo {
	struct conf_node *node;
	fi_addr_t to;
	int count;
};

/* Answer each message, asleep in between. */
static void *answer(void *arg)
{
	struct echo *echo = arg;
	struct fi_cq_tagged_entry entry;
	char byte;

	for (int i = 0; i < echo->count; i++) {
		struct fi_context2 in, out;
		int ends = 0;

		while (fi_trecv(echo->node->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in) ==
		       -FI_EAGAIN)
			fi_cq_read(echo->node->txcq, NULL, 0);
		while (ends < 2) {
			ssize_t rc =
				fi_cq_sread(echo->node->txcq, &entry, 1, NULL, CONF_TIMEOUT_MS);

			if (rc == -FI_EINTR)
				continue;
			if (rc != 1)
				return "a wait failed";
			ends++;
			if (!(entry.flags & FI_RECV))
				continue;
			while (fi_tsend(echo->node->ep, &byte, 1, NULL, echo->to, 2, &out) ==
			       -FI_EAGAIN)
				fi_cq_read(echo->node->txcq, NULL, 0);
		}
	}
	return NULL;
}

/* Two threads, each asleep until the other has sent. */
static void sleepers_wake_each_other(void **state)
{
	struct conf_options options = { .wait_obj = FI_WAIT_FD };
	struct conf_pair pair;
	struct echo ping, pong;
	pthread_t thread;
	void *why;
	char byte = 1;

	(void)state;
	conf_pair_open(&pair, &options);
	ping = (struct echo) { &pair.a, pair.to_b, 200 };
	pong = (struct echo) { &pair.b, pair.to_a, 200 };
	conf_ok(pthread_create(&thread, NULL, answer, &pong));
	for (int i = 0; i < ping.count; i++) {
		struct fi_cq_tagged_entry entry;
		struct fi_context2 in, out;

		conf_ok(fi_trecv(pair.a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 2, 0, &in));
		while (fi_tsend(pair.a.ep, &byte, 1, NULL, pair.to_b, 1, &out) == -FI_EAGAIN)
			fi_cq_read(pair.a.txcq, NULL, 0);
		assert_int_equal(fi_cq_sread(pair.a.txcq, &entry, 1, NULL, CONF_TIMEOUT_MS), 1);
		assert_int_equal(fi_cq_sread(pair.a.txcq, &entry, 1, NULL, CONF_TIMEOUT_MS), 1);
	}
	conf_ok(pthread_join(thread, &why));
	assert_null(why);
	conf_pair_close(&pair);
}

static void a_descriptor_can_be_polled(void **state)
{
	struct conf_options options = { .wait_obj = FI_WAIT_FD };
	struct fi_context2 context, sent;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	struct pollfd pollfd = { .events = POLLIN };
	struct fid *fids[1];
	uint64_t deadline = conf_deadline();
	char byte = 1;

	(void)state;
	conf_pair_open(&pair, &options);
	fids[0] = &pair.b.rxcq->fid;
	conf_ok(fi_control(fids[0], FI_GETWAIT, &pollfd.fd));
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 7, 0, &context));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, &byte, 1, NULL, pair.to_b, 7, &sent));
	while (fi_cq_read(pair.b.rxcq, &entry, 1) == -FI_EAGAIN) {
		int rc = fi_trywait(pair.b.fabric, fids, 1);

		fi_cq_read(pair.a.txcq, NULL, 0);
		conf_not_late(deadline);
		if (rc == -FI_EAGAIN)
			continue;
		conf_ok(rc);
		/* a has to be driven too: not for ever */
		assert_true(poll(&pollfd, 1, 10) >= 0);
	}
	assert_ptr_equal(entry.op_context, &context);
	conf_pair_close(&pair);
}

static void errors_are_queued(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	conf_ok(fi_trecv(pair.a.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 7, 0, &context));
	conf_ok(fi_cancel(&pair.a.ep->fid, &context));
	while (fi_cq_read(pair.a.rxcq, &entry, 1) == -FI_EAGAIN)
		conf_progress(&pair);
	assert_int_equal(fi_cq_read(pair.a.rxcq, &entry, 1), -FI_EAVAIL);
	conf_wait_error(&pair, pair.a.rxcq, &error);
	assert_ptr_equal(error.op_context, &context);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_int_equal(error.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	assert_int_equal(fi_cq_read(pair.a.rxcq, &entry, 1), -FI_EAGAIN);
	conf_pair_close(&pair);
}

/* fi_cq(3): fi_cq_strerror returns a string, and copies it into a buffer if it is given one. */
static void errors_are_explained_in_words(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct conf_pair pair;
	char text[256] = "";
	const char *why;

	(void)state;
	conf_pair_open(&pair, &plain);
	conf_ok(fi_trecv(pair.a.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 7, 0, &context));
	conf_ok(fi_cancel(&pair.a.ep->fid, &context));
	conf_wait_error(&pair, pair.a.rxcq, &error);
	why = fi_cq_strerror(pair.a.rxcq, error.prov_errno, error.err_data, text, sizeof(text));
	assert_non_null(why);
	assert_true(strlen(text) > 0);
	assert_string_equal(why, text);
	why = fi_cq_strerror(pair.a.rxcq, error.prov_errno, error.err_data, NULL, 0);
	assert_string_equal(why, text);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_is_written),
		cmocka_unit_test(an_empty_queue_says_so),
		cmocka_unit_test(more_completions_than_the_size_are_kept),
		cmocka_unit_test(a_wait_ends_with_its_time),
		cmocka_unit_test(a_signal_ends_a_wait),
		cmocka_unit_test(sleepers_wake_each_other),
		cmocka_unit_test(a_descriptor_can_be_polled),
		cmocka_unit_test(errors_are_queued),
		cmocka_unit_test(errors_are_explained_in_words),
	};

	conf_provider();
	return conf_run_tests("cq", tests);
}

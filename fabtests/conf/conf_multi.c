/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MULTI_RECV of fi_msg(3): one buffer for many messages. */
#include "conf/conf.h"

#include <stdlib.h>
#include <sys/uio.h>

static const struct conf_options multi = { .caps = FI_MULTI_RECV };

static void set_min(struct conf_node *node, size_t bytes)
{
	conf_ok(fi_setopt(&node->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &bytes,
			  sizeof(bytes)));
}

static ssize_t post(struct conf_node *node, void *buf, size_t size, void *context)
{
	struct iovec iov = { buf, size };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context
	};

	return fi_recvmsg(node->ep, &msg, FI_MULTI_RECV | FI_COMPLETION);
}

static void say(struct conf_pair *pair, const void *buf, size_t size)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 sent;

	CONF_RETRY(pair, fi_send(pair->a.ep, buf, size, NULL, pair->to_b, &sent));
	conf_wait(pair, pair->a.txcq, &entry, NULL);
}

static void messages_follow_each_other(void **state)
{
	static const size_t lengths[] = { 5, 1, 100, 37 };
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct conf_pair pair;
	uint8_t out[100], in[200];
	size_t at = 0;

	(void)state;
	conf_pair_open(&pair, &multi);
	set_min(&pair.b, 64);
	CONF_RETRY(&pair, post(&pair.b, in, sizeof(in), &context));
	for (uint32_t i = 0; i < 4; i++) {
		conf_fill(out, lengths[i], i);
		say(&pair, out, lengths[i]);
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &context);
		assert_ptr_equal(entry.buf, in + at);
		assert_int_equal(entry.len, lengths[i]);
		assert_int_equal(entry.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | FI_MSG);
		/* 57 bytes are left: the buffer is ours again */
		assert_int_equal(!!(entry.flags & FI_MULTI_RECV), i == 3);
		conf_check(in + at, lengths[i], i);
		at += lengths[i];
	}
	conf_pair_close(&pair);
}

/* The room that must be left can be asked for, and set. */
static void the_least_room_is_an_option(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct conf_pair pair;
	size_t min = 0, len = sizeof(min);
	uint8_t in[1000];

	(void)state;
	conf_pair_open(&pair, &multi);
	conf_ok(fi_getopt(&pair.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	assert_int_equal(len, sizeof(min));
	assert_true(min > 0);
	set_min(&pair.b, 1000);
	conf_ok(fi_getopt(&pair.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	assert_int_equal(min, 1000);
	CONF_RETRY(&pair, post(&pair.b, in, sizeof(in), &context));
	say(&pair, "x", 1);
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_true(entry.flags & FI_MULTI_RECV);
	conf_pair_close(&pair);
}

/* As a default of the endpoint's, for fi_recv(3). */
static void the_flag_may_be_a_default(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context, tagged;
	struct conf_pair pair;
	uint64_t flags = FI_RECV | FI_MULTI_RECV;
	char in[300], tag_in;
	int rc;

	(void)state;
	conf_pair_open(&pair, &multi);
	set_min(&pair.b, 100);
	rc = fi_control(&pair.b.ep->fid, FI_SETOPSFLAG, &flags);
	if (rc == -FI_ENOSYS)
		conf_not_offered("FI_SETOPSFLAG");
	conf_ok(rc);
	CONF_RETRY(&pair, fi_recv(pair.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &context));
	for (int i = 0; i < 2; i++) {
		say(&pair, "abc", 3);
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.buf, in + 3 * i);
		assert_false(entry.flags & FI_MULTI_RECV);
	}
	/* and not for fi_trecv(3) */
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &tag_in, 1, NULL, FI_ADDR_UNSPEC, 7, 0, &tagged));
	CONF_RETRY(&pair, fi_tinject(pair.a.ep, "t", 1, pair.to_b, 7));
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &tagged);
	assert_int_equal(tag_in, 't');
	conf_pair_close(&pair);
}

enum {
	BUFFERS = 4,
	BUFFER_SIZE = 100000,
	LENGTH_MAX = 24000, /* eager and not */
	COUNT = 600
};

static size_t length_of(uint32_t i)
{
	return 4 + (i * i * 257u) % (i % 10 ? 500 : LENGTH_MAX - 4);
}

struct stream {
	uint8_t *in[BUFFERS];
	struct fi_context2 contexts[BUFFERS];
	bool seen[COUNT];
	int shares[BUFFERS];
};

/* One message is there: whole, once, inside its buffer. Repost the buffer if it is free. */
static void take(struct conf_pair *pair, struct stream *s, const struct fi_cq_tagged_entry *entry)
{
	ptrdiff_t b = (struct fi_context2 *)entry->op_context - s->contexts;
	uint8_t *at = entry->buf;
	uint32_t i;

	assert_in_range(b, 0, BUFFERS - 1);
	assert_true(at >= s->in[b] && at + entry->len <= s->in[b] + BUFFER_SIZE);
	memcpy(&i, at, sizeof(i));
	assert_in_range(i, 0, COUNT - 1);
	assert_false(s->seen[i]);
	s->seen[i] = true;
	s->shares[b]++;
	assert_int_equal(entry->len, length_of(i));
	conf_check(at + 4, entry->len - 4, i);
	if (!(entry->flags & FI_MULTI_RECV))
		return;
	assert_true(s->shares[b] > 1);
	s->shares[b] = 0;
	memset(s->in[b], 0, BUFFER_SIZE);
	CONF_RETRY(pair, post(&pair->b, s->in[b], BUFFER_SIZE, entry->op_context));
}

static void poll_stream(struct conf_pair *pair, struct stream *s, int *received, int *sent)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc;

	while ((rc = fi_cq_read(pair->b.rxcq, &entry, 1)) == 1) {
		take(pair, s, &entry);
		++*received;
	}
	assert_int_equal(rc, -FI_EAGAIN);
	while ((rc = fi_cq_read(pair->a.txcq, &entry, 1)) == 1)
		++*sent;
	assert_int_equal(rc, -FI_EAGAIN);
}

/* More than the buffers hold, of all sizes: each is given back and posted again many times. */
static void a_stream_runs_through_few_buffers(void **state)
{
	struct fi_context2 *sent_contexts = calloc(COUNT, sizeof(*sent_contexts));
	struct stream *s = calloc(1, sizeof(*s));
	uint64_t deadline = conf_deadline();
	uint8_t *out[COUNT];
	int received = 0, sent = 0;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &multi);
	set_min(&pair.b, LENGTH_MAX);
	for (int b = 0; b < BUFFERS; b++) {
		s->in[b] = calloc(1, BUFFER_SIZE);
		CONF_RETRY(&pair, post(&pair.b, s->in[b], BUFFER_SIZE, &s->contexts[b]));
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		ssize_t rc;

		out[i] = malloc(length_of(i));
		memcpy(out[i], &i, sizeof(i));
		conf_fill(out[i] + 4, length_of(i) - 4, i);
		while ((rc = fi_send(pair.a.ep, out[i], length_of(i), NULL, pair.to_b,
				     &sent_contexts[i])) == -FI_EAGAIN) {
			poll_stream(&pair, s, &received, &sent);
			conf_not_late(deadline);
		}
		conf_ok(rc);
	}
	while (received < COUNT || sent < COUNT) {
		poll_stream(&pair, s, &received, &sent);
		conf_not_late(deadline);
	}
	conf_pair_close(&pair);
	for (int i = 0; i < COUNT; i++)
		free(out[i]);
	for (int b = 0; b < BUFFERS; b++)
		free(s->in[b]);
	free(s);
	free(sent_contexts);
}

/* Before anybody has posted anything. */
static void what_waits_is_taken_in_order(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct conf_pair pair;
	char in[100];

	(void)state;
	conf_pair_open(&pair, &multi);
	set_min(&pair.b, 10);
	for (char c = 'a'; c < 'f'; c++)
		CONF_RETRY(&pair, fi_inject(pair.a.ep, &c, 1, pair.to_b));
	for (int i = 0; i < 200; i++)
		conf_progress(&pair);
	CONF_RETRY(&pair, post(&pair.b, in, sizeof(in), &context));
	for (int i = 0; i < 5; i++)
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_memory_equal(in, "abcde", 5);
	conf_pair_close(&pair);
}

/* The first of two buffers, whole or with a message in it. */
static void cancel_one_of_two(bool used)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fi_context2 one, two;
	struct conf_pair pair;
	char in[2][100];

	conf_pair_open(&pair, &multi);
	CONF_RETRY(&pair, post(&pair.b, in[0], 100, &one));
	CONF_RETRY(&pair, post(&pair.b, in[1], 100, &two));
	if (used) {
		say(&pair, "a", 1);
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &one);
	}
	conf_ok(fi_cancel(&pair.b.ep->fid, &one));
	conf_wait_error(&pair, pair.b.rxcq, &error);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, &one);
	if (used)
		assert_true(error.flags & FI_MULTI_RECV); /* the buffer is given back */
	say(&pair, "b", 1);
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &two);
	conf_pair_close(&pair);
}

static void a_buffer_can_be_cancelled(void **state)
{
	(void)state;
	cancel_one_of_two(false);
}

static void a_used_buffer_can_be_cancelled(void **state)
{
	(void)state;
	cancel_one_of_two(true);
}

/* A message that is too long ends the buffer, and is an error. */
static void what_does_not_fit_is_cut(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct conf_pair pair;
	uint8_t in[10], out[40];

	(void)state;
	conf_pair_open(&pair, &multi);
	set_min(&pair.b, 1);
	conf_fill(out, sizeof(out), 1);
	CONF_RETRY(&pair, post(&pair.b, in, sizeof(in), &context));
	say(&pair, out, sizeof(out));
	conf_wait_error(&pair, pair.b.rxcq, &error);
	assert_int_equal(error.err, FI_ETRUNC);
	assert_int_equal(error.olen, 30);
	assert_true(error.flags & FI_MULTI_RECV);
	conf_check(in, sizeof(in), 1);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_follow_each_other),
		cmocka_unit_test(the_least_room_is_an_option),
		cmocka_unit_test(the_flag_may_be_a_default),
		cmocka_unit_test(a_stream_runs_through_few_buffers),
		cmocka_unit_test(what_waits_is_taken_in_order),
		cmocka_unit_test(a_buffer_can_be_cancelled),
		cmocka_unit_test(a_used_buffer_can_be_cancelled),
		cmocka_unit_test(what_does_not_fit_is_cut),
	};

	conf_provider();
	return conf_run_tests("multi", tests);
}

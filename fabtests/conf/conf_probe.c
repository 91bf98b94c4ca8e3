/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_PEEK, FI_CLAIM and FI_DISCARD of fi_tagged(3), and completion levels of fi_cq(3). */
#include "conf/conf.h"

#include <stdlib.h>
#include <sys/uio.h>

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

/* One call with flags and no memory. */
static void look(struct conf_pair *pair, fi_addr_t source, uint64_t tag, uint64_t ignore,
		 void *context, uint64_t flags)
{
	struct fi_msg_tagged msg = {
		.addr = source,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	CONF_RETRY(pair, fi_trecvmsg(pair->b.ep, &msg, flags | FI_COMPLETION));
}

/* Is there a message? What there is to know of it is in entry. */
static bool peek(struct conf_pair *pair, fi_addr_t source, uint64_t tag, uint64_t ignore,
		 void *context, uint64_t flags, struct fi_cq_tagged_entry *entry)
{
	uint64_t deadline = conf_deadline();
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc;

	look(pair, source, tag, ignore, context, FI_PEEK | flags);
	while ((rc = fi_cq_read(pair->b.rxcq, entry, 1)) == -FI_EAGAIN) {
		conf_progress(pair);
		conf_not_late(deadline);
	}
	if (rc == 1) {
		assert_ptr_equal(entry->op_context, context);
		return true;
	}
	assert_int_equal(rc, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(pair->b.rxcq, &error, 0), 1);
	assert_int_equal(error.err, FI_ENOMSG);
	assert_ptr_equal(error.op_context, context);
	return false;
}

/* Look until there is one. */
static void peek_until(struct conf_pair *pair, uint64_t tag, void *context, uint64_t flags,
		       struct fi_cq_tagged_entry *entry)
{
	uint64_t deadline = conf_deadline();

	/* MPI_Probe does nothing else in between */
	while (!peek(pair, FI_ADDR_UNSPEC, tag, 0, context, flags, entry)) {
		fi_cq_read(pair->a.txcq, NULL, 0);
		conf_not_late(deadline);
	}
}

static const size_t sizes[] = { 0, 100, 16384, 700000 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void nothing_is_found_where_nothing_is(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	assert_false(peek(&pair, FI_ADDR_UNSPEC, 1, 0, &context, 0, &entry));
	assert_false(peek(&pair, FI_ADDR_UNSPEC, 1, ~0ull, &context, FI_CLAIM, &entry));
	conf_pair_close(&pair);
}

static void a_look_leaves_the_message(void **state)
{
	struct fi_context2 context, sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		uint8_t *out = malloc(sizes[i] + 1), *in = malloc(sizes[i] + 1);

		conf_fill(out, sizes[i], i);
		CONF_RETRY(&pair,
			   fi_tsenddata(pair.a.ep, out, sizes[i], NULL, 55, pair.to_b, i, &sent));
		for (int twice = 0; twice < 2; twice++) {
			peek_until(&pair, i, &context, 0, &entry);
			assert_int_equal(entry.len, sizes[i]);
			assert_int_equal(entry.tag, i);
		}
		assert_false(peek(&pair, FI_ADDR_UNSPEC, i + 100, 0, &context, 0, &entry));
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in, sizes[i], NULL, FI_ADDR_UNSPEC, i, 0,
					   &received));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &received);
		conf_check(in, sizes[i], i);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		free(out);
		free(in);
	}
	conf_pair_close(&pair);
}

/* fi_tagged(3), FI_PEEK: the completion has "information about the message". */
static void a_look_sees_the_data(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	CONF_RETRY(&pair, fi_tinjectdata(pair.a.ep, "d", 1, 55, pair.to_b, 1));
	peek_until(&pair, 1, &context, 0, &entry);
	assert_true(entry.flags & FI_REMOTE_CQ_DATA);
	assert_int_equal(entry.data, 55);
	conf_pair_close(&pair);
}

static void a_claimed_message_is_the_claimants(void **state)
{
	struct fi_context2 context, sent[2], other;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		uint8_t *out = malloc(sizes[i] + 1), *in = malloc(sizes[i] + 1), in2;
		struct iovec iov = { in, sizes[i] };
		struct fi_msg_tagged msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
			.tag = i,
			.context = &context,
		};

		conf_fill(out, sizes[i], i);
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, sizes[i], NULL, pair.to_b, i, &sent[0]));
		peek_until(&pair, i, &context, FI_CLAIM, &entry);
		assert_int_equal(entry.len, sizes[i]);
		assert_false(peek(&pair, FI_ADDR_UNSPEC, i, 0, &other, 0, &entry));
		/* the next one with that tag goes to the next receive */
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in2, 1, NULL, FI_ADDR_UNSPEC, i, 0, &other));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, i, &sent[1]));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &other);
		assert_int_equal(in2, 'x');
		CONF_RETRY(&pair, fi_trecvmsg(pair.b.ep, &msg, FI_CLAIM | FI_COMPLETION));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &context);
		assert_int_equal(entry.len, sizes[i]);
		conf_check(in, sizes[i], i);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		free(out);
		free(in);
	}
	conf_pair_close(&pair);
}

static void discarded_messages_are_gone(void **state)
{
	struct fi_context2 context, sent;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (int claim_first = 0; claim_first < 2; claim_first++) {
		for (uint32_t i = 0; i < SIZES; i++) {
			uint8_t *out = calloc(1, sizes[i] + 1);

			CONF_RETRY(&pair,
				   fi_tsend(pair.a.ep, out, sizes[i], NULL, pair.to_b, 9, &sent));
			if (claim_first) {
				peek_until(&pair, 9, &context, FI_CLAIM, &entry);
				look(&pair, FI_ADDR_UNSPEC, 9, 0, &context, FI_CLAIM | FI_DISCARD);
				conf_wait(&pair, pair.b.rxcq, &entry, NULL);
				assert_ptr_equal(entry.op_context, &context);
			} else {
				peek_until(&pair, 9, &context, FI_DISCARD, &entry);
			}
			/* what is gone is said as for a message that was received */
			assert_int_equal(entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV);
			assert_int_equal(entry.tag, 9);
			conf_wait(&pair, pair.a.txcq, &entry, NULL);
			assert_ptr_equal(entry.op_context, &sent);
			assert_false(peek(&pair, FI_ADDR_UNSPEC, 9, 0, &context, 0, &entry));
			free(out);
		}
	}
	conf_pair_close(&pair);
}

static void sources_are_told_apart(void **state)
{
	struct fi_context2 context, sent;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	fi_addr_t self;

	(void)state;
	conf_pair_open(&pair, &plain);
	self = conf_insert(&pair.b, &pair.b);
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, 4, &sent));
	peek_until(&pair, 4, &context, 0, &entry);
	assert_false(peek(&pair, self, 4, 0, &context, 0, &entry));
	assert_true(peek(&pair, pair.to_a, 4, 0, &context, 0, &entry));
	conf_pair_close(&pair);
}

/* Nobody takes what was claimed or left. */
static void endpoints_close_with_claims(void **state)
{
	struct fi_context2 context, sent;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	static uint8_t out[700000];

	(void)state;
	conf_pair_open(&pair, &plain);
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, 10, NULL, pair.to_b, 4, &sent));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, sizeof(out), NULL, pair.to_b, 5, &sent));
	peek_until(&pair, 4, &context, FI_CLAIM, &entry);
	peek_until(&pair, 5, &sent, FI_CLAIM, &entry);
	conf_pair_close(&pair);
}

static void levels_of_completion_are_reached(void **state)
{
	static const uint64_t levels[] = { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					   FI_DELIVERY_COMPLETE };
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < 3 * SIZES * 10; i++) {
		size_t size = sizes[i % SIZES];
		uint8_t *out = malloc(size + 1), *in = malloc(size + 1);
		struct iovec iov = { out, size };
		struct fi_msg_tagged msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = pair.to_b,
			.tag = i,
			.context = &sent,
		};

		conf_fill(out, size, i);
		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, in, size, NULL, FI_ADDR_UNSPEC, i, 0, &received));
		CONF_RETRY(&pair, fi_tsendmsg(pair.a.ep, &msg, levels[i % 3] | FI_COMPLETION));
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &sent);
		/* delivered means: it is there already */
		if (levels[i % 3] == FI_DELIVERY_COMPLETE)
			conf_check(in, size, i);
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		conf_check(in, size, i);
		free(out);
		free(in);
	}
	conf_pair_close(&pair);
}

/* Many at once: each is reported, in order, though few questions are asked. */
static void many_wait_for_delivery(void **state)
{
	enum {
		COUNT = 500
	};
	struct fi_context2 *sent = calloc(COUNT, sizeof(*sent)), *received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	char out = 1, in;
	struct iovec iov = { &out, 1 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };

	(void)state;
	received = calloc(COUNT, sizeof(*received));
	conf_pair_open(&pair, &plain);
	msg.addr = pair.to_b;
	for (int i = 0; i < COUNT; i++) {
		msg.context = &sent[i];
		CONF_RETRY(&pair, fi_tsendmsg(pair.a.ep, &msg,
					      FI_INJECT | FI_TRANSMIT_COMPLETE | FI_COMPLETION));
	}
	for (int i = 0; i < COUNT; i++) {
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &sent[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received[i]));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	}
	conf_pair_close(&pair);
	free(received);
	free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_where_nothing_is),
		cmocka_unit_test(a_look_leaves_the_message),
		cmocka_unit_test(a_look_sees_the_data),
		cmocka_unit_test(a_claimed_message_is_the_claimants),
		cmocka_unit_test(discarded_messages_are_gone),
		cmocka_unit_test(sources_are_told_apart),
		cmocka_unit_test(endpoints_close_with_claims),
		cmocka_unit_test(levels_of_completion_are_reached),
		cmocka_unit_test(many_wait_for_delivery),
	};

	conf_provider();
	return conf_run_tests("probe", tests);
}

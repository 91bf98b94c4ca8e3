/* SPDX-License-Identifier: BSD-2-Clause */
/* Which receive a message goes to, in which order, from whom; and which completions are wanted. */
#include "conf/conf.h"

#include <stdlib.h>
#include <sys/uio.h>

static const struct conf_options plain;
static const struct conf_options sourced = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

static void tags_select(void **state)
{
	struct fi_context2 contexts[3], sent;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	uint8_t in[3], out;

	(void)state;
	conf_pair_open(&pair, &plain);
	/* exact, masked, anything */
	CONF_RETRY(&pair,
		   fi_trecv(pair.b.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 0x101, 0, &contexts[0]));
	CONF_RETRY(&pair,
		   fi_trecv(pair.b.ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 0x200, 0xff, &contexts[1]));
	CONF_RETRY(&pair,
		   fi_trecv(pair.b.ep, &in[2], 1, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &contexts[2]));
	for (uint64_t tag = 0; tag < 3; tag++) {
		static const uint64_t tags[] = { 0x277, 0x999, 0x101 };
		static const int takers[] = { 1, 2, 0 };

		out = (uint8_t)tag;
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, &out, 1, NULL, pair.to_b, tags[tag], &sent));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &contexts[takers[tag]]);
		assert_int_equal(entry.tag, tags[tag]);
		assert_int_equal(in[takers[tag]], tag);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
	}
	conf_pair_close(&pair);
}

/* FI_ORDER_SAS, across sizes: matched in the order of sending. */
static void order_is_kept(void **state)
{
	static const size_t mixed[] = { 100000, 1, 20000, 0, 5000, 70000, 64, 16384 };
	enum {
		COUNT = 64
	};
	struct fi_context2 sent[COUNT], received[COUNT];
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	uint8_t *out[COUNT], *in[COUNT];
	bool seen[COUNT] = { false };

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < COUNT; i++) {
		out[i] = malloc(100000);
		in[i] = malloc(100000);
		conf_fill(out[i], mixed[i % 8], i);
		CONF_RETRY(&pair,
			   fi_tsend(pair.a.ep, out[i], mixed[i % 8], NULL, pair.to_b, 1, &sent[i]));
	}
	for (int i = 0; i < COUNT; i++)
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in[i], 100000, NULL, FI_ADDR_UNSPEC, 1, 0,
					   &received[i]));
	for (int n = 0; n < COUNT; n++) {
		uint32_t i;

		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		i = (uint32_t)((struct fi_context2 *)entry.op_context - received);
		assert_true(i < COUNT && !seen[i]);
		seen[i] = true;
		assert_int_equal(entry.len, mixed[i % 8]);
		conf_check(in[i], mixed[i % 8], i);
	}
	for (int i = 0; i < COUNT; i++) {
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		free(out[i]);
		free(in[i]);
	}
	conf_pair_close(&pair);
}

static void sources_are_reported(void **state)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	char out = 1, in;

	(void)state;
	conf_pair_open(&pair, &sourced);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, &out, 1, NULL, pair.to_b, 1, &sent));
	conf_wait(&pair, pair.b.rxcq, &entry, &source);
	assert_int_equal(source, pair.to_a);
	conf_pair_close(&pair);
}

static void receives_may_be_directed(void **state)
{
	struct fi_context2 sent, from_self, from_a;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	fi_addr_t self;
	char out = 1, in[2];

	(void)state;
	conf_pair_open(&pair, &sourced);
	self = conf_insert(&pair.b, &pair.b);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[0], 1, NULL, self, 1, 0, &from_self));
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[1], 1, NULL, pair.to_a, 1, 0, &from_a));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, &out, 1, NULL, pair.to_b, 1, &sent));
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &from_a);
	conf_ok(fi_cancel(&pair.b.ep->fid, &from_self));
	conf_pair_close(&pair);
}

/* A peer that the vector learns of after it has sent. */
static void sources_may_become_known_later(void **state)
{
	struct fi_context2 sent[3], received[3];
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	fi_addr_t source = 0, self;
	char in[3];

	(void)state;
	conf_open(&pair.a, &sourced);
	conf_open(&pair.b, &sourced);
	pair.to_b = conf_insert(&pair.a, &pair.b);
	self = conf_insert(&pair.b, &pair.b);
	for (uint64_t i = 0; i < 2; i++)
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, "s", 1, NULL, pair.to_b, i, &sent[i]));
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 0, 0, &received[0]));
	conf_wait(&pair, pair.b.rxcq, &entry, &source);
	assert_int_equal(source, FI_ADDR_NOTAVAIL);
	pair.to_a = conf_insert(&pair.b, &pair.a);
	assert_int_not_equal(pair.to_a, self);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[1], 1, NULL, pair.to_a, 1, 0, &received[1]));
	conf_wait(&pair, pair.b.rxcq, &entry, &source);
	assert_ptr_equal(entry.op_context, &received[1]);
	assert_int_equal(source, pair.to_a);
	/* and unknown again */
	conf_ok(fi_av_remove(pair.b.av, &pair.to_a, 1, 0));
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[2], 1, NULL, FI_ADDR_UNSPEC, 2, 0, &received[2]));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "s", 1, NULL, pair.to_b, 2, &sent[2]));
	conf_wait(&pair, pair.b.rxcq, &entry, &source);
	assert_int_equal(source, FI_ADDR_NOTAVAIL);
	conf_pair_close(&pair);
}

static void receives_can_be_cancelled(void **state)
{
	struct fi_context2 one, two, sent;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct conf_pair pair;
	char in[2], out = 1;

	(void)state;
	conf_pair_open(&pair, &plain);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &one));
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &two));
	conf_ok(fi_cancel(&pair.b.ep->fid, &one));
	conf_wait_error(&pair, pair.b.rxcq, &error);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, &one);
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, &out, 1, NULL, pair.to_b, 1, &sent));
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &two);
	conf_pair_close(&pair);
}

static void completions_may_be_selective(void **state)
{
	struct conf_options options = { .bind_flags = FI_SELECTIVE_COMPLETION,
					.separate_cqs = true };
	struct fi_cq_tagged_entry entry;
	struct fi_context2 quiet, loud, received[2];
	struct conf_pair pair;
	struct iovec iov;
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };
	char out = 1, in[2];

	(void)state;
	conf_pair_open(&pair, &options);
	for (int i = 0; i < 2; i++) {
		iov = (struct iovec) { &in[i], 1 };
		msg.addr = FI_ADDR_UNSPEC;
		msg.context = &received[i];
		CONF_RETRY(&pair, fi_trecvmsg(pair.b.ep, &msg, i ? FI_COMPLETION : 0));
	}
	iov = (struct iovec) { &out, 1 };
	msg.addr = pair.to_b;
	msg.context = &quiet;
	CONF_RETRY(&pair, fi_tsendmsg(pair.a.ep, &msg, 0));
	msg.context = &loud;
	CONF_RETRY(&pair, fi_tsendmsg(pair.a.ep, &msg, FI_COMPLETION));
	conf_wait(&pair, pair.a.txcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &loud);
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &received[1]);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_select),
		cmocka_unit_test(order_is_kept),
		cmocka_unit_test(sources_are_reported),
		cmocka_unit_test(receives_may_be_directed),
		cmocka_unit_test(sources_may_become_known_later),
		cmocka_unit_test(receives_can_be_cancelled),
		cmocka_unit_test(completions_may_be_selective),
	};

	conf_provider();
	return conf_run_tests("match", tests);
}

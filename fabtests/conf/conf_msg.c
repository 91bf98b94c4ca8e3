/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_msg(3) and fi_tagged(3): every call, every size, every byte. */
#include "conf/conf.h"

#include <stdlib.h>
#include <sys/uio.h>

static const struct conf_options plain;

/* Around the edges of inject, eager and rendezvous, whatever they are. */
static const size_t sizes[] = { 0,    1,     7,     8,     64,    1000,  4095,   4096,    4097,
				8192, 16000, 16384, 16385, 65536, 65537, 300001, 1 << 20, 5 << 20 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct buffers {
	uint8_t *out, *in;
	struct fi_context2 sent, received;
};

static void buffers_open(struct buffers *bufs, size_t size, uint32_t seed)
{
	bufs->out = malloc(size + 1);
	bufs->in = malloc(size + 1);
	assert_non_null(bufs->out);
	assert_non_null(bufs->in);
	conf_fill(bufs->out, size, seed);
	memset(bufs->in, 0xee, size + 1);
}

static void buffers_close(struct buffers *bufs)
{
	free(bufs->out);
	free(bufs->in);
}

/* Both ends of one message come to an end, with the data in place and nothing behind it. */
static void expect(struct conf_pair *pair, struct buffers *bufs, size_t size, uint32_t seed,
		   uint64_t kind, struct fi_cq_tagged_entry *received)
{
	struct fi_cq_tagged_entry sent;

	conf_wait(pair, pair->b.rxcq, received, NULL);
	assert_ptr_equal(received->op_context, &bufs->received);
	assert_int_equal(received->flags & (FI_RECV | FI_SEND | FI_MSG | FI_TAGGED),
			 FI_RECV | kind);
	assert_int_equal(received->len, size);
	conf_check(bufs->in, size, seed);
	assert_int_equal(bufs->in[size], 0xee);
	conf_wait(pair, pair->a.txcq, &sent, NULL);
	assert_ptr_equal(sent.op_context, &bufs->sent);
	assert_int_equal(sent.flags & (FI_RECV | FI_SEND | FI_MSG | FI_TAGGED), FI_SEND | kind);
}

static void messages_of_every_size(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		struct buffers bufs;

		buffers_open(&bufs, sizes[i], i);
		CONF_RETRY(&pair, fi_recv(pair.b.ep, bufs.in, sizes[i], NULL, FI_ADDR_UNSPEC,
					  &bufs.received));
		CONF_RETRY(&pair,
			   fi_send(pair.a.ep, bufs.out, sizes[i], NULL, pair.to_b, &bufs.sent));
		expect(&pair, &bufs, sizes[i], i, FI_MSG, &entry);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

static void tagged_messages_of_every_size(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		struct buffers bufs;

		buffers_open(&bufs, sizes[i], i);
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, bufs.in, sizes[i], NULL, FI_ADDR_UNSPEC,
					   i << 4, 0xf, &bufs.received));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, bufs.out, sizes[i], NULL, pair.to_b,
					   i << 4 | 5, &bufs.sent));
		expect(&pair, &bufs, sizes[i], i, FI_TAGGED, &entry);
		assert_int_equal(entry.tag, i << 4 | 5);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

/* Sent before the receive is posted. */
static void unexpected_messages_of_every_size(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		struct buffers bufs;

		buffers_open(&bufs, sizes[i], i);
		CONF_RETRY(&pair,
			   fi_tsend(pair.a.ep, bufs.out, sizes[i], NULL, pair.to_b, i, &bufs.sent));
		for (int j = 0; j < 200; j++)
			conf_progress(&pair);
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, bufs.in, sizes[i], NULL, FI_ADDR_UNSPEC, i, 0,
					   &bufs.received));
		expect(&pair, &bufs, sizes[i], i, FI_TAGGED, &entry);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

static void vectors_are_gathered_and_scattered(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i], third = size / 3, half = size / 2;
		struct iovec out[3], in[2];
		struct buffers bufs;

		buffers_open(&bufs, size, i);
		out[0] = (struct iovec) { bufs.out, third };
		out[1] = (struct iovec) { bufs.out + third, third };
		out[2] = (struct iovec) { bufs.out + 2 * third, size - 2 * third };
		in[0] = (struct iovec) { bufs.in, half };
		in[1] = (struct iovec) { bufs.in + half, size - half };
		CONF_RETRY(&pair,
			   fi_trecvv(pair.b.ep, in, NULL, 2, FI_ADDR_UNSPEC, 9, 0, &bufs.received));
		CONF_RETRY(&pair, fi_tsendv(pair.a.ep, out, NULL, 3, pair.to_b, 9, &bufs.sent));
		expect(&pair, &bufs, size, i, FI_TAGGED, &entry);
		memset(bufs.in, 0xee, size);
		CONF_RETRY(&pair, fi_recvv(pair.b.ep, in, NULL, 2, FI_ADDR_UNSPEC, &bufs.received));
		CONF_RETRY(&pair, fi_sendv(pair.a.ep, out, NULL, 3, pair.to_b, &bufs.sent));
		expect(&pair, &bufs, size, i, FI_MSG, &entry);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

static void data_travels_with_messages(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	for (uint32_t i = 0; i < SIZES; i++) {
		uint64_t data = 0xfedcba9800000000u | i;
		struct buffers bufs;

		buffers_open(&bufs, sizes[i], i);
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, bufs.in, sizes[i], NULL, FI_ADDR_UNSPEC, 3, 0,
					   &bufs.received));
		CONF_RETRY(&pair, fi_tsenddata(pair.a.ep, bufs.out, sizes[i], NULL, data, pair.to_b,
					       3, &bufs.sent));
		expect(&pair, &bufs, sizes[i], i, FI_TAGGED, &entry);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, data);
		CONF_RETRY(&pair, fi_recv(pair.b.ep, bufs.in, sizes[i], NULL, FI_ADDR_UNSPEC,
					  &bufs.received));
		CONF_RETRY(&pair, fi_senddata(pair.a.ep, bufs.out, sizes[i], NULL, data, pair.to_b,
					      &bufs.sent));
		expect(&pair, &bufs, sizes[i], i, FI_MSG, &entry);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, data);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

static void injected_buffers_can_be_reused_at_once(void **state)
{
	struct fi_context2 contexts[4];
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	uint8_t out[64], in[4][64];

	(void)state;
	conf_pair_open(&pair, &plain);
	for (int i = 0; i < 2; i++) {
		CONF_RETRY(&pair,
			   fi_recv(pair.b.ep, in[i], 64, NULL, FI_ADDR_UNSPEC, &contexts[i]));
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in[2 + i], 64, NULL, FI_ADDR_UNSPEC, 1, 0,
					   &contexts[2 + i]));
	}
	conf_fill(out, 64, 0);
	CONF_RETRY(&pair, fi_inject(pair.a.ep, out, 64, pair.to_b));
	conf_fill(out, 64, 1);
	CONF_RETRY(&pair, fi_injectdata(pair.a.ep, out, 64, 11, pair.to_b));
	conf_fill(out, 64, 2);
	CONF_RETRY(&pair, fi_tinject(pair.a.ep, out, 64, pair.to_b, 1));
	conf_fill(out, 64, 3);
	CONF_RETRY(&pair, fi_tinjectdata(pair.a.ep, out, 64, 13, pair.to_b, 1));
	memset(out, 0, sizeof(out));
	for (int i = 0; i < 4; i++) {
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		assert_ptr_equal(entry.op_context, &contexts[i]);
		conf_check(in[i], 64, (uint32_t)i);
		assert_int_equal(!!(entry.flags & FI_REMOTE_CQ_DATA), i & 1);
		if (i & 1)
			assert_int_equal(entry.data, 10 + i);
	}
	/* no completion for the sender */
	for (int i = 0; i < 100; i++)
		assert_int_equal(fi_cq_read(pair.a.txcq, &entry, 1), -FI_EAGAIN);
	conf_pair_close(&pair);
}

static void as_much_as_is_said_can_be_injected(void **state)
{
	size_t size;
	struct conf_pair pair;
	uint8_t *out;

	(void)state;
	conf_pair_open(&pair, &plain);
	size = pair.a.info->tx_attr->inject_size;
	assert_true(size >= 8);
	out = calloc(1, size);
	CONF_RETRY(&pair, fi_tinject(pair.a.ep, out, size, pair.to_b, 1));
	CONF_RETRY(&pair, fi_inject(pair.a.ep, out, size, pair.to_b));
	free(out);
	conf_pair_close(&pair);
}

static void msg_calls_take_flags(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	struct buffers bufs;
	struct iovec out, in;
	struct fi_msg_tagged tmsg = { .iov_count = 1, .tag = 77, .data = 99 };
	struct fi_msg msg = { .iov_count = 1, .data = 98 };

	(void)state;
	conf_pair_open(&pair, &plain);
	buffers_open(&bufs, 100, 5);
	out = (struct iovec) { bufs.out, 100 };
	in = (struct iovec) { bufs.in, 100 };
	tmsg.msg_iov = &in;
	tmsg.addr = FI_ADDR_UNSPEC;
	tmsg.context = &bufs.received;
	CONF_RETRY(&pair, fi_trecvmsg(pair.b.ep, &tmsg, FI_COMPLETION));
	tmsg.msg_iov = &out;
	tmsg.addr = pair.to_b;
	tmsg.context = &bufs.sent;
	CONF_RETRY(&pair, fi_tsendmsg(pair.a.ep, &tmsg, FI_REMOTE_CQ_DATA | FI_COMPLETION));
	expect(&pair, &bufs, 100, 5, FI_TAGGED, &entry);
	assert_int_equal(entry.data, 99);
	assert_int_equal(entry.tag, 77);
	msg.msg_iov = &in;
	msg.addr = FI_ADDR_UNSPEC;
	msg.context = &bufs.received;
	CONF_RETRY(&pair, fi_recvmsg(pair.b.ep, &msg, FI_COMPLETION));
	msg.msg_iov = &out;
	msg.addr = pair.to_b;
	msg.context = &bufs.sent;
	CONF_RETRY(&pair,
		   fi_sendmsg(pair.a.ep, &msg, FI_INJECT | FI_REMOTE_CQ_DATA | FI_COMPLETION));
	expect(&pair, &bufs, 100, 5, FI_MSG, &entry);
	assert_int_equal(entry.data, 98);
	buffers_close(&bufs);
	conf_pair_close(&pair);
}

static void messages_to_oneself_arrive(void **state)
{
	struct conf_pair pair;
	fi_addr_t self;

	(void)state;
	conf_pair_open(&pair, &plain);
	self = conf_insert(&pair.a, &pair.a);
	for (uint32_t i = 0; i < SIZES; i++) {
		struct fi_cq_tagged_entry entry;
		struct buffers bufs;
		int ends = 0;

		buffers_open(&bufs, sizes[i], i);
		if (i & 1)
			CONF_RETRY(&pair, fi_trecv(pair.a.ep, bufs.in, sizes[i], NULL,
						   FI_ADDR_UNSPEC, i, 0, &bufs.received));
		CONF_RETRY(&pair,
			   fi_tsend(pair.a.ep, bufs.out, sizes[i], NULL, self, i, &bufs.sent));
		if (!(i & 1))
			CONF_RETRY(&pair, fi_trecv(pair.a.ep, bufs.in, sizes[i], NULL,
						   FI_ADDR_UNSPEC, i, 0, &bufs.received));
		while (ends != 3) {
			conf_wait(&pair, pair.a.txcq, &entry, NULL);
			ends |= entry.op_context == &bufs.sent ? 1 : 2;
		}
		conf_check(bufs.in, sizes[i], i);
		buffers_close(&bufs);
	}
	conf_pair_close(&pair);
}

/* The receive before or after the message; olen is what did not fit (fi_cq(3)). */
static void cut_short(struct conf_pair *pair, size_t length, bool unexpected)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry sent;
	struct buffers bufs;

	buffers_open(&bufs, length, 3);
	for (int order = 0; order < 2; order++) {
		if (order == unexpected)
			CONF_RETRY(pair, fi_trecv(pair->b.ep, bufs.in, 60, NULL, FI_ADDR_UNSPEC, 1,
						  0, &bufs.received));
		else
			CONF_RETRY(pair, fi_tsend(pair->a.ep, bufs.out, length, NULL, pair->to_b, 1,
						  &bufs.sent));
	}
	conf_wait_error(pair, pair->b.rxcq, &error);
	assert_int_equal(error.err, FI_ETRUNC);
	assert_ptr_equal(error.op_context, &bufs.received);
	assert_int_equal(error.olen, length - 60);
	assert_int_equal(bufs.in[60], 0xee);
	conf_wait(pair, pair->a.txcq, &sent, NULL);
	buffers_close(&bufs);
}

static void too_long_messages_are_truncated(void **state)
{
	static const size_t lengths[] = { 100, 10000, 200000, 700000 };

	(void)state;
	for (int unexpected = 0; unexpected < 2; unexpected++) {
		struct conf_pair pair;

		conf_pair_open(&pair, &plain);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			cut_short(&pair, lengths[i], unexpected);
		conf_pair_close(&pair);
	}
}

/* Far more than any window or queue, in both directions at once. */
static void flood(const struct conf_options *options)
{
	enum {
		COUNT = 3000,
		SIZE = 256
	};
	uint8_t *out = malloc(SIZE), (*in)[SIZE] = calloc(2 * COUNT, SIZE);
	struct fi_context2 *contexts = calloc(4 * COUNT, sizeof(*contexts));
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	conf_pair_open(&pair, options);
	conf_fill(out, SIZE, 1);
	for (int i = 0; i < COUNT; i++) {
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, SIZE, NULL, pair.to_b, 1, &contexts[i]));
		CONF_RETRY(&pair, fi_tsend(pair.b.ep, out, SIZE, NULL, pair.to_a, 1,
					   &contexts[COUNT + i]));
	}
	for (int i = 0; i < COUNT; i++) {
		CONF_RETRY(&pair, fi_trecv(pair.a.ep, in[i], SIZE, NULL, FI_ADDR_UNSPEC, 1, 0,
					   &contexts[2 * COUNT + i]));
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in[COUNT + i], SIZE, NULL, FI_ADDR_UNSPEC, 1,
					   0, &contexts[3 * COUNT + i]));
	}
	for (int i = 0; i < 2 * COUNT; i++) {
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		conf_wait(&pair, pair.b.txcq, &entry, NULL);
	}
	for (int i = 0; i < 2 * COUNT; i++)
		conf_check(in[i], SIZE, 1);
	conf_pair_close(&pair);
	free(contexts);
	free(in);
	free(out);
}

static void floods_are_survived(void **state)
{
	(void)state;
	flood(&plain);
}

static void floods_are_survived_without_locks(void **state)
{
	const struct conf_options unlocked = { .threading = FI_THREAD_DOMAIN };

	(void)state;
	flood(&unlocked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_every_size),
		cmocka_unit_test(tagged_messages_of_every_size),
		cmocka_unit_test(unexpected_messages_of_every_size),
		cmocka_unit_test(vectors_are_gathered_and_scattered),
		cmocka_unit_test(data_travels_with_messages),
		cmocka_unit_test(injected_buffers_can_be_reused_at_once),
		cmocka_unit_test(as_much_as_is_said_can_be_injected),
		cmocka_unit_test(msg_calls_take_flags),
		cmocka_unit_test(messages_to_oneself_arrive),
		cmocka_unit_test(too_long_messages_are_truncated),
		cmocka_unit_test(floods_are_survived),
		cmocka_unit_test(floods_are_survived_without_locks),
	};

	conf_provider();
	return conf_run_tests("msg", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_rma(3), and what it needs of fi_mr(3): memory of a's that b registers, and the other way
 * round. */
#include "conf/conf.h"

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <sys/uio.h>

#define BYTES ((size_t)2 << 20)
#define EDGE  ((size_t)64) /* on both sides, which nobody may touch */
#define BOTH  (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* enum fi_mr_mode's old values, which later headers deprecate. */
#define BASIC    1
#define SCALABLE 2

static const struct conf_options plain = { .caps = FI_RMA };

/* Memory at b, and what a has. */
struct memory {
	struct conf_pair pair;
	struct fid_mr *mr;
	uint8_t *there; /* with its edges */
	uint8_t *here;
	uint64_t key;
	uint64_t base; /* what the first byte between the edges is called */
};

static struct fid_mr *reg(struct conf_node *node, void *buf, size_t len, uint64_t access,
			  uint64_t key)
{
	struct fid_mr *mr = NULL;

	conf_ok(fi_mr_reg(node->domain, buf, len, access, 0, key, 0, &mr, NULL));
	return mr;
}

static uint64_t base_of(const struct conf_node *node, const void *buf)
{
	int mode = node->info->domain_attr->mr_mode;

	return mode == BASIC || (mode & FI_MR_VIRT_ADDR) ? (uintptr_t)buf : 0;
}

static void memory_open(struct memory *m, const struct conf_options *options, uint64_t access)
{
	memset(m, 0, sizeof(*m));
	conf_pair_open(&m->pair, options);
	if (m->pair.a.info->domain_attr->mr_mode & FI_MR_LOCAL)
		conf_not_offered("local memory that is not registered");
	m->there = malloc(BYTES + 2 * EDGE);
	m->here = malloc(BYTES);
	memset(m->there, '.', BYTES + 2 * EDGE);
	m->mr = reg(&m->pair.b, m->there + EDGE, BYTES, access, 77);
	m->key = fi_mr_key(m->mr);
	m->base = base_of(&m->pair.b, m->there + EDGE);
}

static void memory_close(struct memory *m)
{
	if (m->mr)
		conf_ok(fi_close(&m->mr->fid));
	free(m->there);
	free(m->here);
	conf_pair_close(&m->pair);
}

/* That the initiator's operation is complete need not mean that all is there. */
static void await_there(struct memory *m, size_t offset, size_t bytes)
{
	uint64_t end = conf_deadline();

	while (memcmp(m->there + EDGE + offset, m->here, bytes) != 0) {
		conf_progress(&m->pair);
		conf_not_late(end);
	}
	for (size_t i = 0; i < EDGE; i++) {
		assert_int_equal(m->there[i], '.');
		assert_int_equal(m->there[EDGE + BYTES + i], '.');
	}
}

static void expect(struct memory *m, void *context, uint64_t flags)
{
	struct fi_cq_tagged_entry entry;

	conf_wait(&m->pair, m->pair.a.txcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.flags & (FI_RMA | FI_READ | FI_WRITE | FI_SEND | FI_RECV), flags);
}

static const size_t sizes[] = { 0, 1, 8, 100, 4096, 5000, 70000, BYTES };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct fi_msg_rma message(struct memory *m, const struct iovec *iov, size_t count,
				 const struct fi_rma_iov *to, void *context)
{
	return (struct fi_msg_rma) {
		.msg_iov = iov,
		.iov_count = count,
		.addr = m->pair.to_b,
		.rma_iov = to,
		.rma_iov_count = 1,
		.context = context,
		.data = 0x0123456789abcdef,
	};
}

/* -- writes --------------------------------------------------------------------------------- */

static void writes_are_placed(void **state)
{
	struct fi_context2 context;
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	for (uint32_t i = 0; i < N_SIZES; i++) {
		conf_fill(m.here, sizes[i], i);
		CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, sizes[i], NULL, m.pair.to_b,
					     m.base, m.key, &context));
		expect(&m, &context, FI_RMA | FI_WRITE);
		await_there(&m, 0, sizes[i]);
	}
	/* Not at the beginning. */
	conf_fill(m.here, 1000, 99);
	CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, 1000, NULL, m.pair.to_b,
				     m.base + BYTES - 1000, m.key, &context));
	expect(&m, &context, FI_RMA | FI_WRITE);
	await_there(&m, BYTES - 1000, 1000);
	memory_close(&m);
}

static void pieces_are_written(void **state)
{
	struct fi_context2 context;
	struct iovec iov[2];
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	conf_fill(m.here, BYTES, 1);
	iov[0] = (struct iovec) { m.here, 100 };
	iov[1] = (struct iovec) { m.here + 100, 300000 };
	CONF_RETRY(&m.pair,
		   fi_writev(m.pair.a.ep, iov, NULL, 2, m.pair.to_b, m.base + 7, m.key, &context));
	expect(&m, &context, FI_RMA | FI_WRITE);
	await_there(&m, 7, 300100);
	assert_int_equal(m.there[EDGE + 6], '.');
	assert_int_equal(m.there[EDGE + 7 + 300100], '.');
	memory_close(&m);
}

/* fi_inject_write: the memory may be used again at once, and there is no completion. */
static void injected_writes_are_placed(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct memory m;
	uint8_t copy[64];

	(void)state;
	memory_open(&m, &plain, BOTH);
	if (m.pair.a.info->tx_attr->inject_size < sizeof(copy))
		conf_not_offered("64 bytes to inject");
	conf_fill(m.here, sizeof(copy), 3);
	memcpy(copy, m.here, sizeof(copy));
	CONF_RETRY(&m.pair,
		   fi_inject_write(m.pair.a.ep, copy, sizeof(copy), m.pair.to_b, m.base, m.key));
	memset(copy, 'x', sizeof(copy));
	await_there(&m, 0, sizeof(copy));
	assert_int_equal(fi_cq_read(m.pair.a.txcq, &entry, 1), -FI_EAGAIN);
	memory_close(&m);
}

/* FI_DELIVERY_COMPLETE: with the completion it is there. */
static void a_delivered_write_is_there(void **state)
{
	struct fi_context2 context;
	struct fi_rma_iov to;
	struct fi_msg_rma msg;
	struct iovec iov;
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	iov = (struct iovec) { m.here, BYTES };
	to = (struct fi_rma_iov) { m.base, BYTES, m.key };
	msg = message(&m, &iov, 1, &to, &context);
	for (uint32_t i = 0; i < 5; i++) {
		conf_fill(m.here, BYTES, i);
		CONF_RETRY(&m.pair,
			   fi_writemsg(m.pair.a.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		expect(&m, &context, FI_RMA | FI_WRITE);
		conf_check(m.there + EDGE, BYTES, i);
	}
	memory_close(&m);
}

/* -- remote CQ data ------------------------------------------------------------------------- */

static int write_with_data(struct memory *m, uint32_t how, size_t bytes, void *context)
{
	const struct iovec iov = { m->here, bytes };
	const struct fi_rma_iov to = { m->base, bytes, m->key };
	const struct fi_msg_rma msg = message(m, &iov, 1, &to, context);

	switch (how) {
	case 0:
		return (int)fi_writedata(m->pair.a.ep, m->here, bytes, NULL, msg.data, m->pair.to_b,
					 m->base, m->key, context);
	case 1:
		return (int)fi_writemsg(m->pair.a.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION);
	default:
		return (int)fi_inject_writedata(m->pair.a.ep, m->here, bytes, msg.data,
						m->pair.to_b, m->base, m->key);
	}
}

/* When the data is told, all that was written is there. */
static void data_follows_the_write(void **state)
{
	static const size_t of[] = { 40, 3000, BYTES };
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	struct memory m;

	(void)state;
	memory_open(&m, &(struct conf_options) { .caps = FI_RMA, .separate_cqs = true }, BOTH);
	for (uint32_t i = 0; i < 9; i++) {
		uint32_t how = i % 3;
		size_t bytes = how == 2 ? of[0] : of[i / 3];

		conf_fill(m.here, bytes, i);
		CONF_RETRY(&m.pair, write_with_data(&m, how, bytes, &context));
		conf_wait(&m.pair, m.pair.b.rxcq, &entry, NULL);
		conf_check(m.there + EDGE, bytes, i);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA);
		assert_true(entry.flags & FI_REMOTE_WRITE);
		assert_true(entry.flags & FI_RMA);
		assert_false(entry.flags & FI_RECV);
		assert_true(entry.data == 0x0123456789abcdef);
		if (how != 2)
			expect(&m, &context, FI_RMA | FI_WRITE);
	}
	memory_close(&m);
}

/* FI_ORDER_SAW: a message behind a write is received after it. */
static void messages_follow_writes(void **state)
{
	struct fi_context2 contexts[3];
	struct fi_cq_tagged_entry entry;
	struct memory m;

	(void)state;
	memory_open(&m, &(struct conf_options) { .caps = FI_RMA, .separate_cqs = true }, BOTH);
	if (!(m.pair.a.info->tx_attr->msg_order & FI_ORDER_SAW))
		conf_not_offered("FI_ORDER_SAW");
	for (uint32_t i = 0; i < 20; i++) {
		size_t bytes = i & 1 ? BYTES : 100;
		uint8_t out = 1, in = 0;

		conf_fill(m.here, bytes, i);
		CONF_RETRY(&m.pair,
			   fi_trecv(m.pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, i, 0, &contexts[0]));
		CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, bytes, NULL, m.pair.to_b, m.base,
					     m.key, &contexts[1]));
		CONF_RETRY(&m.pair,
			   fi_tsend(m.pair.a.ep, &out, 1, NULL, m.pair.to_b, i, &contexts[2]));
		conf_wait(&m.pair, m.pair.b.rxcq, &entry, NULL);
		conf_check(m.there + EDGE, bytes, i);
		conf_wait(&m.pair, m.pair.a.txcq, &entry, NULL);
		conf_wait(&m.pair, m.pair.a.txcq, &entry, NULL);
	}
	memory_close(&m);
}

/* -- reads ---------------------------------------------------------------------------------- */

static void reads_bring_what_is_there(void **state)
{
	struct fi_context2 context;
	struct iovec iov[2];
	struct fi_rma_iov from;
	struct fi_msg_rma msg;
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	for (uint32_t i = 0; i < N_SIZES; i++) {
		size_t half = sizes[i] / 2;

		conf_fill(m.there + EDGE, sizes[i], i);
		iov[0] = (struct iovec) { m.here, half };
		iov[1] = (struct iovec) { m.here + half, sizes[i] - half };
		for (uint32_t how = 0; how < 3; how++) {
			memset(m.here, 0xee, BYTES);
			if (how == 0)
				CONF_RETRY(&m.pair, fi_read(m.pair.a.ep, m.here, sizes[i], NULL,
							    m.pair.to_b, m.base, m.key, &context));
			if (how == 1)
				CONF_RETRY(&m.pair, fi_readv(m.pair.a.ep, iov, NULL, 2, m.pair.to_b,
							     m.base, m.key, &context));
			from = (struct fi_rma_iov) { m.base, sizes[i], m.key };
			msg = message(&m, iov, 2, &from, &context);
			if (how == 2)
				CONF_RETRY(&m.pair, fi_readmsg(m.pair.a.ep, &msg, FI_COMPLETION));
			expect(&m, &context, FI_RMA | FI_READ);
			conf_check(m.here, sizes[i], i);
			if (sizes[i] < BYTES)
				assert_int_equal(m.here[sizes[i]], 0xee);
		}
	}
	memory_close(&m);
}

/* Many at once, both ways. */
static void many_are_under_way(void **state)
{
	enum {
		N = 100
	};
	static struct fi_context2 contexts[2 * N];
	struct fi_cq_tagged_entry entry;
	size_t each = BYTES / (2 * N);
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	conf_fill(m.there + EDGE + BYTES / 2, BYTES / 2, 1);
	conf_fill(m.here, BYTES / 2, 2);
	memset(m.here + BYTES / 2, 0, BYTES / 2);
	for (uint32_t i = 0; i < N; i++) {
		CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here + i * each, each, NULL,
					     m.pair.to_b, m.base + i * each, m.key, &contexts[i]));
		CONF_RETRY(&m.pair, fi_read(m.pair.a.ep, m.here + BYTES / 2 + i * each, each, NULL,
					    m.pair.to_b, m.base + BYTES / 2 + i * each, m.key,
					    &contexts[N + i]));
	}
	for (uint32_t i = 0; i < 2 * N; i++)
		conf_wait(&m.pair, m.pair.a.txcq, &entry, NULL);
	conf_check(m.here + BYTES / 2, N * each, 1);
	await_there(&m, 0, N * each);
	memory_close(&m);
}

/* Both write to each other's memory, whose keys neither knows. */
static void both_ask_at_once(void **state)
{
	struct fi_context2 contexts[2];
	struct fi_cq_tagged_entry entry;
	uint8_t byte = 1, own = 0;
	struct fid_mr *mr;
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	mr = reg(&m.pair.a, &own, 1, BOTH, 3);
	m.here[0] = 5;
	CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, 1, NULL, m.pair.to_b, m.base, m.key,
				     &contexts[0]));
	CONF_RETRY(&m.pair, fi_write(m.pair.b.ep, &byte, 1, NULL, m.pair.to_a,
				     base_of(&m.pair.a, &own), fi_mr_key(mr), &contexts[1]));
	conf_wait(&m.pair, m.pair.a.txcq, &entry, NULL);
	conf_wait(&m.pair, m.pair.b.txcq, &entry, NULL);
	await_there(&m, 0, 1);
	conf_ok(fi_close(&mr->fid));
	memory_close(&m);
}

/* -- errors --------------------------------------------------------------------------------- */

static void one_byte(struct memory *m, bool read, uint64_t addr, uint64_t key, void *context)
{
	if (read)
		CONF_RETRY(&m->pair, fi_read(m->pair.a.ep, m->here, 1, NULL, m->pair.to_b, addr,
					     key, context));
	else
		CONF_RETRY(&m->pair, fi_write(m->pair.a.ep, m->here, 1, NULL, m->pair.to_b, addr,
					      key, context));
}

static int error_of(struct memory *m, void *context)
{
	struct fi_cq_err_entry entry = { 0 };

	conf_wait_error(&m->pair, m->pair.a.txcq, &entry);
	assert_ptr_equal(entry.op_context, context);
	assert_true(entry.flags & FI_RMA);
	return entry.err;
}

/* Each is an error of its own, and the next operation goes well. */
static void what_is_not_allowed_is_an_error(void **state)
{
	struct fi_context2 context;
	struct memory m;

	(void)state;
	for (int read = 0; read < 2; read++) {
		memory_open(&m, &plain, read ? FI_REMOTE_READ : FI_REMOTE_WRITE);
		for (int i = 0; i < 4; i++) {
			uint64_t addr = i == 0 ? m.base + BYTES : m.base;
			uint64_t key = i == 1 ? m.key + 1 : m.key;
			int err;

			one_byte(&m, i == 2 ? !read : read, addr, key, &context);
			if (i == 3) {
				expect(&m, &context, FI_RMA | (read ? FI_READ : FI_WRITE));
				continue;
			}
			err = error_of(&m, &context);
			if (conf_is_rvcm())
				assert_int_equal(err, i == 1 ? FI_EKEYREJECTED : FI_EACCES);
		}
		memory_close(&m);
	}
}

/* What is closed is not there any more, and what comes in its place is. */
static void closed_memory_is_gone(void **state)
{
	struct fi_context2 context;
	struct memory m;

	(void)state;
	memory_open(&m, &plain, BOTH);
	for (uint32_t i = 0; i < 3; i++) {
		m.here[0] = (uint8_t)i;
		one_byte(&m, false, m.base, m.key, &context);
		expect(&m, &context, FI_RMA | FI_WRITE);
		await_there(&m, 0, 1);
		conf_ok(fi_close(&m.mr->fid));
		m.mr = NULL;
		for (int turn = 0; turn < 1000; turn++) /* it may be told */
			conf_progress(&m.pair);
		m.here[0] = 0xff;
		one_byte(&m, i & 1, m.base, m.key, &context);
		error_of(&m, &context);
		assert_int_equal(m.there[EDGE], i);
		m.mr = reg(&m.pair.b, m.there + EDGE, BYTES, BOTH, 77);
		m.key = fi_mr_key(m.mr);
	}
	memory_close(&m);
}

/* -- modes and oneself ---------------------------------------------------------------------- */

static void try_mode(int mode)
{
	struct conf_options options = { .caps = FI_RMA, .mr_mode_given = true, .mr_mode = mode };
	struct fi_context2 context;
	struct memory m;

	memory_open(&m, &options, BOTH);
	conf_fill(m.here, 5000, 1);
	CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, 5000, NULL, m.pair.to_b, m.base + 3,
				     m.key, &context));
	expect(&m, &context, FI_RMA | FI_WRITE);
	await_there(&m, 3, 5000);
	memory_close(&m);
}

static void offsets_are_used(void **state)
{
	(void)state;
	try_mode(0);
	try_mode(FI_MR_PROV_KEY);
	try_mode(SCALABLE);
}

static void addresses_are_used(void **state)
{
	(void)state;
	try_mode(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	try_mode(BASIC);
}

static void ones_own_memory_is_used(void **state)
{
	struct fi_context2 context;
	fi_addr_t self;
	struct fid_mr *mr;
	struct memory m;
	uint64_t base;
	uint8_t own[100], back[100];

	(void)state;
	memory_open(&m, &plain, BOTH);
	self = conf_insert(&m.pair.a, &m.pair.a);
	mr = reg(&m.pair.a, own, sizeof(own), BOTH, 5);
	base = base_of(&m.pair.a, own);
	conf_fill(m.here, sizeof(own), 1);
	CONF_RETRY(&m.pair, fi_write(m.pair.a.ep, m.here, sizeof(own), NULL, self, base,
				     fi_mr_key(mr), &context));
	expect(&m, &context, FI_RMA | FI_WRITE);
	CONF_RETRY(&m.pair, fi_read(m.pair.a.ep, back, sizeof(back), NULL, self, base,
				    fi_mr_key(mr), &context));
	expect(&m, &context, FI_RMA | FI_READ);
	conf_check(back, sizeof(back), 1);
	conf_ok(fi_close(&mr->fid));
	memory_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_are_placed),
		cmocka_unit_test(pieces_are_written),
		cmocka_unit_test(injected_writes_are_placed),
		cmocka_unit_test(a_delivered_write_is_there),
		cmocka_unit_test(data_follows_the_write),
		cmocka_unit_test(messages_follow_writes),
		cmocka_unit_test(reads_bring_what_is_there),
		cmocka_unit_test(many_are_under_way),
		cmocka_unit_test(both_ask_at_once),
		cmocka_unit_test(what_is_not_allowed_is_an_error),
		cmocka_unit_test(closed_memory_is_gone),
		cmocka_unit_test(offsets_are_used),
		cmocka_unit_test(addresses_are_used),
		cmocka_unit_test(ones_own_memory_is_used),
	};

	return conf_run_tests("conf_rma", tests);
}

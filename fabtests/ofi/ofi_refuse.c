/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rvcm does not offer is refused with the errno that says so, and never faked; what an
 * application may do in the wrong order or twice is an error and no crash.
 */
#include "conf/conf.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static const struct conf_options plain;

/* Later versions have entries that may be missing: callers ask for them (FI_CHECK_OP). */
#if FI_MAJOR_VERSION == 1
/* Every entry of an operations table that these headers know is there. */
#define assert_complete(ops)                                                    \
	do {                                                                    \
		void *const *entry_ = (void *const *)(ops);                     \
                                                                                \
		assert_int_equal((ops)->size, sizeof(*(ops)));                  \
		for (size_t i_ = 1; i_ < sizeof(*(ops)) / sizeof(void *); i_++) \
			assert_non_null(entry_[i_]);                            \
	} while (0)

static void no_operation_is_missing(void **state)
{
	struct conf_options waiting = { .wait_obj = FI_WAIT_FD };
	struct conf_node node;
	struct fid_eq *eq;
	struct fid_mr *mr;

	(void)state;
	conf_open(&node, &waiting);
	conf_ok(fi_eq_open(node.fabric, NULL, &eq, NULL));
	conf_ok(fi_mr_reg(node.domain, &node, sizeof(node), FI_SEND, 0, 0, 0, &mr, NULL));
	assert_complete(node.fabric->fid.ops);
	assert_complete(node.fabric->ops);
	assert_complete(node.domain->fid.ops);
	assert_complete(node.domain->ops);
	assert_complete(node.domain->mr);
	assert_complete(node.av->fid.ops);
	assert_complete(node.av->ops);
	assert_complete(node.txcq->fid.ops);
	assert_complete(node.txcq->ops);
	assert_complete(node.ep->fid.ops);
	assert_complete(node.ep->ops);
	assert_complete(node.ep->cm);
	assert_complete(node.ep->msg);
	assert_complete(node.ep->tagged);
	assert_complete(node.ep->rma);
	assert_complete(node.ep->atomic);
	assert_complete(eq->fid.ops);
	assert_complete(eq->ops);
	assert_complete(mr->fid.ops);
	conf_ok(fi_close(&mr->fid));
	conf_ok(fi_close(&eq->fid));
	conf_close(&node);
}
#endif

/* Who has not asked for FI_RMA has none, and nobody has atomics. */
static void only_what_was_asked_for(void **state)
{
	struct fi_context2 context;
	struct conf_node node;
	size_t count;
	char byte;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(fi_read(node.ep, &byte, 1, NULL, 0, 0, 0, &context), -FI_ENOSYS);
	assert_int_equal(fi_inject_write(node.ep, &byte, 1, 0, 0, 0), -FI_ENOSYS);
	assert_int_equal(fi_atomic(node.ep, &byte, 1, NULL, 0, 0, 0, FI_UINT8, FI_SUM, &context),
			 -FI_ENOSYS);
	assert_int_equal(fi_atomicvalid(node.ep, FI_UINT64, FI_SUM, &count), -FI_EOPNOTSUPP);
	conf_close(&node);
}

static void registrations_for_messages_are_fine(void **state)
{
	struct conf_node node;
	struct fid_mr *mrs[3];
	char bytes[3];

	(void)state;
	conf_open(&node, &plain);
	for (int i = 0; i < 3; i++)
		conf_ok(fi_mr_reg(node.domain, &bytes[i], 1, FI_SEND | FI_RECV, 0, 0, 0, &mrs[i],
				  NULL));
	assert_int_not_equal(fi_mr_key(mrs[0]), fi_mr_key(mrs[1]));
	assert_int_not_equal(fi_mr_key(mrs[1]), fi_mr_key(mrs[2]));
	assert_int_equal(fi_close(&node.domain->fid), -FI_EBUSY);
	for (int i = 0; i < 3; i++)
		conf_ok(fi_close(&mrs[i]->fid));
	conf_close(&node);
}

static int reg_key(struct fid_domain *domain, uint64_t key, struct fid_mr **mr)
{
	static char byte;

	return fi_mr_reg(domain, &byte, 1, FI_SEND, 0, key, 0, mr, NULL);
}

/* Keys that the application chooses have the size that the domain was opened with. */
static void keys_have_a_size(void **state)
{
	struct conf_options options = { .mr_mode_given = true };
	struct fid_domain *domain;
	struct conf_node node;
	struct fid_mr *mr;

	(void)state;
	conf_open(&node, &options);
	assert_int_equal(reg_key(node.domain, FI_KEY_NOTAVAIL, &mr), -FI_EKEYREJECTED);
	conf_ok(reg_key(node.domain, FI_KEY_NOTAVAIL - 1, &mr));
	assert_true(fi_mr_key(mr) == FI_KEY_NOTAVAIL - 1);
	conf_ok(fi_close(&mr->fid));
	node.info->domain_attr->mr_key_size = 2;
	conf_ok(fi_domain(node.fabric, node.info, &domain, NULL));
	assert_int_equal(reg_key(domain, 0x10000, &mr), -FI_EKEYREJECTED);
	conf_ok(reg_key(domain, 0xffff, &mr));
	assert_int_equal(fi_mr_key(mr), 0xffff);
	conf_ok(fi_close(&mr->fid));
	conf_ok(fi_close(&domain->fid));
	node.info->domain_attr->mr_key_size = 9;
	assert_int_equal(fi_domain(node.fabric, node.info, &domain, NULL), -FI_EINVAL);
	conf_close(&node);
}

/* Where they are ours, a key that was given back is not the next region's. */
static void a_key_of_ours_is_not_used_again(void **state)
{
	uint64_t keys[100];
	struct conf_node node;
	struct fid_mr *mr;

	(void)state;
	conf_open(&node, &plain);
	for (int i = 0; i < 100; i++) {
		conf_ok(reg_key(node.domain, 0, &mr));
		keys[i] = fi_mr_key(mr);
		for (int j = 0; j < i; j++)
			assert_true(keys[i] != keys[j]);
		conf_ok(fi_close(&mr->fid));
	}
	conf_close(&node);
}

static void no_counters_and_no_sharing(void **state)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .name = "shared" };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct conf_node node;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(fi_cntr_open(node.domain, &cntr_attr, &cntr, NULL), -FI_ENOSYS);
	assert_int_equal(fi_av_open(node.domain, &av_attr, &av, NULL), -FI_ENOSYS);
	av_attr.name = NULL;
	av_attr.flags = FI_EVENT;
	assert_int_equal(fi_av_open(node.domain, &av_attr, &av, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cq_open(node.domain, &cq_attr, &cq, NULL), -FI_ENOSYS);
	assert_int_equal(fi_scalable_ep(node.domain, node.info, &ep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_srx_context(node.domain, NULL, &ep, NULL), -FI_ENOSYS);
	conf_close(&node);
}

static void unknown_flags_are_refused(void **state)
{
	static const uint64_t tx[] = { FI_FENCE, FI_MULTICAST, FI_MATCH_COMPLETE,
				       FI_COMMIT_COMPLETE, FI_TRIGGER };
	static const uint64_t rx[] = { FI_INJECT, FI_FENCE, FI_TRIGGER };
	struct fi_msg msg = { .addr = 0 };
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	msg.addr = conf_insert(&node, &node);
	for (size_t i = 0; i < sizeof(tx) / sizeof(tx[0]); i++)
		assert_int_equal(fi_sendmsg(node.ep, &msg, tx[i]), -FI_EOPNOTSUPP);
	for (size_t i = 0; i < sizeof(rx) / sizeof(rx[0]); i++)
		assert_int_equal(fi_recvmsg(node.ep, &msg, rx[i]), -FI_EOPNOTSUPP);
	assert_int_equal(fi_recvmsg(node.ep, &msg, FI_PEEK), -FI_EOPNOTSUPP);
	conf_close(&node);
}

static void bad_arguments_are_refused(void **state)
{
	struct fi_context2 context;
	struct conf_node node;
	struct iovec iov[9];
	size_t size = 0;
	fi_addr_t bad;
	char byte;

	(void)state;
	memset(iov, 0, sizeof(iov));
	conf_open(&node, &plain);
	assert_int_equal(fi_tsend(node.ep, &byte, 1, NULL, 5, 0, &context), -FI_EINVAL);
	assert_int_equal(fi_tsend(node.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 0, &context),
			 -FI_EINVAL);
	assert_int_equal(fi_trecvv(node.ep, iov, NULL, 9, FI_ADDR_UNSPEC, 0, 0, &context),
			 -FI_EINVAL);
	assert_int_equal(fi_trecvv(node.ep, NULL, NULL, 2, FI_ADDR_UNSPEC, 0, 0, &context),
			 -FI_EINVAL);
	assert_int_equal(fi_cancel(&node.ep->fid, &context), -FI_ENOENT);
	bad = 17;
	assert_int_equal(fi_av_remove(node.av, &bad, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(node.av, 17, &byte, &size), -FI_EINVAL);
	assert_int_equal(fi_av_insert(node.av, node.name, 1, &bad, FI_AV_USER_ID, NULL),
			 -FI_EBADFLAGS);
	assert_int_equal(
		fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, sizeof(size)),
		-FI_ENOPROTOOPT);
	conf_close(&node);
}

/* Each address fails for itself (FI_SYNC_ERR), up to one whose length cannot be known. */
static void bad_addresses_fail_alone(void **state)
{
	struct conf_node node;
	uint8_t addrs[3][16];
	fi_addr_t numbers[3];
	int errors[3];

	(void)state;
	conf_open(&node, &plain);
	for (int i = 0; i < 3; i++)
		memcpy(addrs[i], node.name, 16);
	memset(addrs[1] + 2, 0, 2); /* port 0 */
	assert_int_equal(fi_av_insert(node.av, addrs, 3, numbers, FI_SYNC_ERR, errors), 2);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], FI_EINVAL);
	assert_int_equal(errors[2], 0);
	assert_int_equal(numbers[0], numbers[2]); /* the same address */
	assert_int_equal(numbers[1], FI_ADDR_NOTAVAIL);
	addrs[1][0] = 99; /* no such family */
	assert_int_equal(fi_av_insert(node.av, addrs, 3, numbers, FI_SYNC_ERR, errors), 1);
	assert_int_equal(errors[1], FI_EINVAL);
	assert_int_equal(errors[2], FI_ECANCELED);
	conf_close(&node);
}

static void what_is_inserted_twice_is_removed_twice(void **state)
{
	struct conf_node node;
	fi_addr_t first, second;
	size_t len = 64;
	char name[64];

	(void)state;
	conf_open(&node, &plain);
	first = conf_insert(&node, &node);
	second = conf_insert(&node, &node);
	assert_int_equal(first, second);
	conf_ok(fi_av_remove(node.av, &first, 1, 0));
	conf_ok(fi_av_lookup(node.av, first, name, &len));
	conf_ok(fi_av_remove(node.av, &first, 1, 0));
	assert_int_equal(fi_av_lookup(node.av, first, name, &len), -FI_EINVAL);
	conf_close(&node);
}

static void the_order_of_life_is_kept(void **state)
{
	struct fi_context2 context;
	struct conf_node node;
	struct fid_ep *ep;
	size_t len = 4;
	char name[64];

	(void)state;
	conf_open(&node, &plain);
	conf_ok(fi_endpoint(node.domain, node.info, &ep, NULL));
	assert_int_equal(fi_tsend(ep, "x", 1, NULL, 0, 0, &context), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(ep, name, 1, NULL, 0, &context), -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&ep->fid, &context), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	conf_ok(fi_ep_bind(ep, &node.av->fid, 0));
	assert_int_equal(fi_ep_bind(ep, &node.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &node.txcq->fid, 0), -FI_EINVAL);
	conf_ok(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT), -FI_EINVAL);
	conf_ok(fi_ep_bind(ep, &node.rxcq->fid, FI_RECV));
	conf_ok(fi_enable(ep));
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(ep, &node.av->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&ep->fid, name, &len), -FI_ETOOSMALL);
	assert_int_equal(len, 16);
	conf_ok(fi_close(&ep->fid));
	conf_close(&node);
}

/* The name that was asked for is taken, and refused when somebody has it. */
static void a_port_can_be_had_once(void **state)
{
	struct conf_node node;
	struct fi_info *info;
	struct fid_ep *ep;

	(void)state;
	conf_open(&node, &plain);
	info = fi_dupinfo(node.info);
	memcpy(info->src_addr, node.name, info->src_addrlen);
	conf_ok(fi_endpoint(node.domain, info, &ep, NULL));
	conf_ok(fi_ep_bind(ep, &node.av->fid, 0));
	conf_ok(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT | FI_RECV));
	assert_int_equal(fi_enable(ep), -FI_EADDRINUSE);
	conf_ok(fi_close(&ep->fid));
	fi_freeinfo(info);
	conf_close(&node);
}

static void many_endpoints_in_a_domain(void **state)
{
	enum {
		COUNT = 40
	};
	struct conf_node node;
	struct fid_ep *eps[COUNT];

	(void)state;
	conf_open(&node, &plain);
	for (int i = 0; i < COUNT; i++) {
		conf_ok(fi_endpoint(node.domain, node.info, &eps[i], NULL));
		conf_ok(fi_ep_bind(eps[i], &node.av->fid, 0));
		conf_ok(fi_ep_bind(eps[i], &node.txcq->fid, FI_TRANSMIT | FI_RECV));
		conf_ok(fi_enable(eps[i]));
	}
	for (int i = 0; i < COUNT; i++)
		conf_ok(fi_close(&eps[i]->fid));
	conf_close(&node);
}

/* fi_cq(3): "if FI_WAIT_NONE is specified, the application may not call fi_cq_sread". */
static void waiting_needs_a_wait_object(void **state)
{
	struct fi_cq_tagged_entry entry;
	enum fi_wait_obj kind = FI_WAIT_FD;
	struct conf_node node;
	struct fid *fids[1];
	int fd;

	(void)state;
	conf_open(&node, &plain);
	fids[0] = &node.txcq->fid;
	conf_ok(fi_control(fids[0], FI_GETWAITOBJ, &kind));
	assert_int_equal(kind, FI_WAIT_NONE);
	assert_int_equal(fi_control(fids[0], FI_GETWAIT, &fd), -FI_EINVAL);
	assert_int_equal(fi_trywait(node.fabric, fids, 1), -FI_EINVAL);
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_cq_signal(node.txcq), -FI_EINVAL);
	conf_close(&node);
}

static void nonsense_is_no_name(void **state)
{
	struct conf_node node;
	struct fid_ep *ep;
	uint8_t bad[64];

	(void)state;
	conf_open(&node, &plain);
	conf_ok(fi_endpoint(node.domain, node.info, &ep, NULL));
	memcpy(bad, node.name, sizeof(bad));
	assert_int_equal(fi_setname(&ep->fid, NULL, node.name_size), -FI_EINVAL);
	assert_int_equal(fi_setname(&ep->fid, bad, node.name_size - 1), -FI_EINVAL);
	((struct sockaddr *)bad)->sa_family = AF_UNIX;
	assert_int_equal(fi_setname(&ep->fid, bad, node.name_size), -FI_EINVAL);
	conf_ok(fi_close(&ep->fid));
	/* too late */
	assert_int_equal(fi_setname(&node.ep->fid, node.name, node.name_size), -FI_EOPBADSTATE);
	conf_close(&node);
}

static void an_option_has_its_length(void **state)
{
	size_t min = 0, len = 4;
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(
		fi_getopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len),
		-FI_ETOOSMALL);
	assert_int_equal(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, 4),
			 -FI_EINVAL);
	conf_close(&node);
}

static void a_shared_buffer_is_one_piece(void **state)
{
	struct conf_options multi = { .caps = FI_MULTI_RECV };
	struct conf_node node;
	char in[2];
	struct iovec iov[2] = { { &in[0], 1 }, { &in[1], 1 } };
	struct fi_context2 context;
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = &context
	};
	struct fi_msg_tagged tagged = {
		.msg_iov = iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context
	};

	(void)state;
	conf_open(&node, &multi);
	assert_int_equal(fi_recvmsg(node.ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(node.ep, &tagged, FI_MULTI_RECV), -FI_EOPNOTSUPP);
	conf_close(&node);
}

static void inject_has_a_limit(void **state)
{
	struct conf_node node;
	fi_addr_t self;
	uint8_t *out;
	size_t size;

	(void)state;
	conf_open(&node, &plain);
	self = conf_insert(&node, &node);
	size = node.info->tx_attr->inject_size;
	out = calloc(1, size + 1);
	assert_int_equal(fi_tinject(node.ep, out, size + 1, self, 1), -FI_EMSGSIZE);
	assert_int_equal(fi_inject(node.ep, out, size + 1, self), -FI_EMSGSIZE);
	free(out);
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if FI_MAJOR_VERSION == 1
		cmocka_unit_test(no_operation_is_missing),
#endif
		cmocka_unit_test(only_what_was_asked_for),
		cmocka_unit_test(registrations_for_messages_are_fine),
		cmocka_unit_test(keys_have_a_size),
		cmocka_unit_test(a_key_of_ours_is_not_used_again),
		cmocka_unit_test(no_counters_and_no_sharing),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(bad_addresses_fail_alone),
		cmocka_unit_test(what_is_inserted_twice_is_removed_twice),
		cmocka_unit_test(the_order_of_life_is_kept),
		cmocka_unit_test(a_port_can_be_had_once),
		cmocka_unit_test(many_endpoints_in_a_domain),
		cmocka_unit_test(waiting_needs_a_wait_object),
		cmocka_unit_test(nonsense_is_no_name),
		cmocka_unit_test(an_option_has_its_length),
		cmocka_unit_test(a_shared_buffer_is_one_piece),
		cmocka_unit_test(inject_has_a_limit),
	};

	conf_provider();
	return conf_run_tests("refuse", tests);
}

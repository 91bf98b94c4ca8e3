/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of devices and their objects; listening. */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void attributes_make_sense(struct contract *c)
{
	for (int i = 0; i < 2; i++) {
		const struct rvcm_dev_attr *attr = &c->side[i].dev->attr;

		assert_int_not_equal(attr->name[0], 0);
		assert_non_null(memchr(attr->name, 0, sizeof(attr->name)));
		assert_int_not_equal(attr->addr.family, RVCM_ADDR_NONE);
		assert_int_equal(attr->addr.port, 0);
		assert_true(attr->private_data_bytes >= 56);
		assert_true(attr->sge_max >= 1);
		assert_true(attr->sq_depth_max >= 16);
		assert_true(attr->rq_depth_max >= 16);
		assert_true(attr->cq_depth_max >= 16);
		assert_true(attr->qp_max >= 1);
		assert_true(attr->mr_max >= 1);
		assert_true(attr->message_bytes_max >= 65536);
		assert_true(attr->mtu_bytes > 0);
	}
}

static void nothing_happens_by_itself(struct contract *c)
{
	contract_quiet(c);
	assert_int_equal(c->side[0].n_events, 0);
	assert_int_equal(c->side[1].n_events, 0);
}

static void objects_open_and_close_unused(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;

	contract_link_open(c, &link, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(c->side[i].ops->qp_state(link.qp[i]), RVCM_DEV_QP_INIT);
	contract_buf(c, 0, &buf, 100, RVCM_DEV_ACCESS_LOCAL_WRITE);
	assert_ptr_equal(buf.mr->dev, c->side[0].dev);
	assert_ptr_equal(buf.mr->addr, buf.data);
	assert_int_equal(buf.mr->length, 100);
	assert_int_equal(buf.mr->access, RVCM_DEV_ACCESS_LOCAL_WRITE);
	contract_quiet(c);
}

static void queue_sizes_are_clamped_not_refused(struct contract *c)
{
	struct rvcm_dev_qp_attr attr = {
		.cq = contract_cq(c, 0, UINT32_MAX),
		.pool = contract_pool(c, 0, 1024, 4),
		.sq_depth = UINT32_MAX,
		.rq_depth = UINT32_MAX,
		.sge_max = UINT32_MAX,
	};

	contract_qp(c, 0, &attr);
	attr.pool = NULL;
	contract_qp(c, 0, &attr);
}

static void empty_memory_can_be_registered(struct contract *c)
{
	char byte = 0;
	struct rvcm_dev_mr *mr = contract_mr(c, 0, &byte, 0, RVCM_DEV_ACCESS_REMOTE_READ);

	assert_int_equal(mr->length, 0);
}

static int reg(struct contract *c, uint8_t *addr, size_t length, uint32_t access)
{
	struct rvcm_dev_mr_attr attr = { .addr = addr, .length = length, .access = access };
	struct rvcm_dev_mr *mr;
	int rc = c->side[0].ops->mr_reg(c->side[0].dev, &attr, &mr);

	if (!rc)
		c->side[0].ops->mr_dereg(mr);
	return rc;
}

/* Where nothing would be pinned, too: who uses it gets an error, and not a signal. */
static void memory_that_is_not_there_is_refused(struct contract *c)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 4 * page;
	uint8_t *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(reg(c, p, bytes, RVCM_DEV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(reg(c, p, bytes, RVCM_DEV_ACCESS_LOCAL_WRITE), -EFAULT);
	assert_int_equal(mprotect(p, bytes - page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(reg(c, p, bytes - page, RVCM_DEV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(reg(c, p, bytes, RVCM_DEV_ACCESS_LOCAL_WRITE), -EFAULT);
	assert_int_equal(munmap(p + page, page), 0);
	assert_int_equal(reg(c, p, bytes, RVCM_DEV_ACCESS_REMOTE_READ), -EFAULT);
	assert_int_equal(munmap(p, bytes), 0);
	assert_int_equal(reg(c, p, bytes, RVCM_DEV_ACCESS_REMOTE_READ), -EFAULT);
}

static void keys_differ(struct contract *c)
{
	char bytes[16];
	struct rvcm_dev_mr *mr[16];

	for (int i = 0; i < 16; i++)
		mr[i] = contract_mr(c, 0, bytes, sizeof(bytes), RVCM_DEV_ACCESS_REMOTE_READ);
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(mr[i]->rkey, mr[k]->rkey);
}

static void a_key_is_not_reused_at_once(struct contract *c)
{
	char bytes[16];
	uint32_t last = 0;

	for (int i = 0; i < 16; i++) {
		struct rvcm_dev_mr *mr =
			contract_mr(c, 0, bytes, sizeof(bytes), RVCM_DEV_ACCESS_REMOTE_READ);

		assert_true(i == 0 || mr->rkey != last);
		last = mr->rkey;
		contract_close(c, mr);
	}
}

static void many_objects_come_and_go(struct contract *c)
{
	for (int i = 0; i < 200; i++) {
		struct contract_link link;

		contract_link_open(c, &link, NULL);
		for (int side = 0; side < 2; side++) {
			contract_close(c, link.qp[side]);
			contract_close(c, link.cq[side]);
			contract_close(c, link.pool[side]);
		}
		contract_close(c, link.listener);
	}
}

/* -- listen ----------------------------------------------------------------------------------- */

static void listeners_get_ports_of_their_own(struct contract *c)
{
	struct rvcm_addr a, b;

	contract_listen(c, 1, NULL, &a);
	contract_listen(c, 1, NULL, &b);
	assert_int_not_equal(a.port, b.port);
	assert_int_equal(a.family, c->side[1].dev->attr.addr.family);
	assert_memory_equal(a.ip, c->side[1].dev->attr.addr.ip, sizeof(a.ip));
}

static void a_port_in_use_is_refused(struct contract *c)
{
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	uint16_t port;

	contract_listen(c, 1, NULL, &addr);
	port = addr.port;
	assert_int_equal(c->side[1].ops->listen(c->side[1].dev, &addr, 8, NULL, &listener),
			 -EADDRINUSE);
	assert_int_equal(addr.port, port);
}

static void a_closed_listener_frees_its_port(struct contract *c)
{
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;

	contract_close(c, contract_listen(c, 1, NULL, &addr));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(c->side[1].ops->listen(c->side[1].dev, &addr, 8, NULL, &listener),
				 0);
		c->side[1].ops->listener_close(listener);
	}
}

static void a_foreign_address_is_not_available(struct contract *c)
{
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr = c->side[1].dev->attr.addr;

	/* 192.0.2.1 and 2001:db8::1 are nobody's (RFC 5737, RFC 3849). */
	memset(addr.ip, 0, sizeof(addr.ip));
	if (addr.family == RVCM_ADDR_V4)
		memcpy(addr.ip, "\xc0\x00\x02\x01", 4);
	else
		memcpy(addr.ip, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
	assert_int_equal(c->side[1].ops->listen(c->side[1].dev, &addr, 8, NULL, &listener),
			 -EADDRNOTAVAIL);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(attributes_make_sense),
	CONTRACT_TEST(nothing_happens_by_itself),
	CONTRACT_TEST(objects_open_and_close_unused),
	CONTRACT_TEST(queue_sizes_are_clamped_not_refused),
	CONTRACT_TEST(empty_memory_can_be_registered),
	CONTRACT_TEST_REAL(memory_that_is_not_there_is_refused),
	CONTRACT_TEST(keys_differ),
	CONTRACT_TEST(a_key_is_not_reused_at_once),
	CONTRACT_TEST(many_objects_come_and_go),
	CONTRACT_TEST(listeners_get_ports_of_their_own),
	CONTRACT_TEST(a_port_in_use_is_refused),
	CONTRACT_TEST(a_closed_listener_frees_its_port),
	CONTRACT_TEST(a_foreign_address_is_not_available),
};

const struct contract_list contract_life_tests = { tests, sizeof(tests) / sizeof(tests[0]) };

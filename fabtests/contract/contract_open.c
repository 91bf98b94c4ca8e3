/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing what tests need; links; data. */
#include "contract/contract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- objects ---------------------------------------------------------------------------------- */

static void keep(struct contract *c, enum contract_kind kind, int side, void *object)
{
	c->objects = contract_grown(c->objects, c->n_objects, sizeof(*c->objects));
	c->objects[c->n_objects++] =
		(struct contract_object) { .kind = kind, .side = (uint8_t)side, .object = object };
}

static struct contract_object *find(struct contract *c, const void *object)
{
	for (size_t i = 0; i < c->n_objects; i++)
		if (c->objects[i].object == object)
			return &c->objects[i];
	fail_msg("an object that was not opened here");
	return NULL;
}

static const struct rvcm_dev_ops *ops_of(struct contract *c, const void *object)
{
	return c->side[find(c, object)->side].ops;
}

static void close_one(const struct contract *c, const struct contract_object *o)
{
	const struct rvcm_dev_ops *ops = c->side[o->side].ops;

	switch (o->kind) {
	case CONTRACT_QP:
		if (o->attached)
			ops->detach(o->object);
		ops->qp_close(o->object);
		break;
	case CONTRACT_LISTENER:
		ops->listener_close(o->object);
		break;
	case CONTRACT_CQ:
		ops->cq_close(o->object);
		break;
	case CONTRACT_POOL:
		ops->pool_close(o->object);
		break;
	case CONTRACT_SRQ:
		ops->srq_close(o->object);
		break;
	case CONTRACT_MR:
		ops->mr_dereg(o->object);
		break;
	case CONTRACT_MEMORY:
		free(o->object);
		break;
	}
}

void contract_close(struct contract *c, void *object)
{
	struct contract_object *o = find(c, object);

	close_one(c, o);
	*o = c->objects[--c->n_objects];
}

struct rvcm_dev_cq *contract_cq(struct contract *c, int side, uint32_t depth)
{
	struct rvcm_dev_cq *cq;

	assert_int_equal(c->side[side].ops->cq_open(c->side[side].dev, depth, &cq), 0);
	keep(c, CONTRACT_CQ, side, cq);
	return cq;
}

struct rvcm_dev_pool *contract_pool_open(struct contract *c, int side,
					 const struct rvcm_dev_pool_attr *attr)
{
	struct rvcm_dev_pool *pool;

	assert_int_equal(c->side[side].ops->pool_open(c->side[side].dev, attr, &pool), 0);
	keep(c, CONTRACT_POOL, side, pool);
	assert_int_equal(c->side[side].ops->pool_grow(pool, attr->count), 0);
	return pool;
}

struct rvcm_dev_pool *contract_pool(struct contract *c, int side, size_t bytes, uint32_t count)
{
	const struct rvcm_dev_pool_attr attr = { .message_bytes_max = bytes, .count = count };

	return contract_pool_open(c, side, &attr);
}

struct rvcm_dev_srq *contract_srq(struct contract *c, int side, uint32_t depth)
{
	struct rvcm_dev_srq *srq;

	assert_int_equal(c->side[side].ops->srq_open(c->side[side].dev, depth, 1, &srq), 0);
	keep(c, CONTRACT_SRQ, side, srq);
	return srq;
}

struct rvcm_dev_mr *contract_mr(struct contract *c, int side, void *addr, size_t length,
				uint32_t access)
{
	const struct rvcm_dev_mr_attr attr = {
		.addr = addr, .length = length, .access = access, .kind = RVCM_DEV_MEM_HOST
	};
	struct rvcm_dev_mr *mr;

	assert_int_equal(c->side[side].ops->mr_reg(c->side[side].dev, &attr, &mr), 0);
	keep(c, CONTRACT_MR, side, mr);
	return mr;
}

struct rvcm_dev_qp *contract_qp(struct contract *c, int side, const struct rvcm_dev_qp_attr *attr)
{
	struct rvcm_dev_qp *qp;

	assert_int_equal(c->side[side].ops->qp_open(c->side[side].dev, attr, &qp), 0);
	keep(c, CONTRACT_QP, side, qp);
	return qp;
}

struct rvcm_dev_listener *contract_listen(struct contract *c, int side, void *ctx,
					  struct rvcm_addr *addr)
{
	struct rvcm_dev_listener *listener;

	*addr = c->side[side].dev->attr.addr;
	addr->port = 0;
	assert_int_equal(c->side[side].ops->listen(c->side[side].dev, addr, 128, ctx, &listener),
			 0);
	assert_int_not_equal(addr->port, 0);
	keep(c, CONTRACT_LISTENER, side, listener);
	return listener;
}

void contract_attach(struct contract *c, struct rvcm_dev_qp *qp)
{
	assert_int_equal(ops_of(c, qp)->attach(qp), 0);
	find(c, qp)->attached = true;
}

void contract_detach(struct contract *c, struct rvcm_dev_qp *qp)
{
	ops_of(c, qp)->detach(qp);
	find(c, qp)->attached = false;
}

void contract_hold(struct contract *c, struct rvcm_dev_cq *cq, bool hold)
{
	find(c, cq)->held = hold;
}

/* -- links ------------------------------------------------------------------------------------ */

static uint64_t patience(const struct contract_link_conf *conf)
{
	if (conf->rnr_timeout_ns == CONTRACT_AT_ONCE)
		return 0;
	return conf->rnr_timeout_ns ? conf->rnr_timeout_ns : 60 * CONTRACT_S;
}

static struct rvcm_dev_qp_attr attr_of(const struct contract_link *link, int side,
				       const struct contract_link_conf *conf)
{
	return (struct rvcm_dev_qp_attr) {
		.cq = link->cq[side],
		.pool = link->pool[side],
		.srq = link->srq[side],
		.sq_depth = conf->sq_depth ? conf->sq_depth : 64,
		.rq_depth = conf->rq_depth ? conf->rq_depth : 64,
		.sge_max = 2,
		.rnr_timeout_ns = patience(conf),
		.ctx = (void *)&link->ctx[side],
	};
}

void contract_link_open(struct contract *c, struct contract_link *link,
			const struct contract_link_conf *conf)
{
	static const struct contract_link_conf standard;

	if (!conf)
		conf = &standard;
	memset(link, 0, sizeof(*link));
	for (int i = 0; i < 2; i++) {
		link->cq[i] = contract_cq(c, i, 1024);
		if (conf->receive == CONTRACT_POOLED)
			link->pool[i] = contract_pool_open(
				c, i,
				&(struct rvcm_dev_pool_attr) {
					.message_bytes_max =
						conf->message_bytes ? conf->message_bytes : 8192,
					.count = conf->count ? conf->count : 64,
					.head_bytes = conf->head_bytes,
				});
		if (conf->receive == CONTRACT_SHARED)
			link->srq[i] = contract_srq(c, i, 64);
		link->attr[i] = attr_of(link, i, conf);
		link->qp[i] = contract_qp(c, i, &link->attr[i]);
	}
	link->listener_id = &link->listener_ctx;
	link->listener = contract_listen(c, 1, &link->listener_ctx, &link->addr);
}

void contract_link_connect(struct contract *c, struct contract_link *link)
{
	const struct contract_event *event;

	assert_int_equal(c->side[0].ops->connect(link->qp[0], &link->addr, "hello", 5), 0);
	event = contract_event(c, 1, link->listener_id, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(c->side[1].ops->accept(event->ev.req, link->qp[1], "world", 5), 0);
	contract_event(c, 0, &link->ctx[0], RVCM_DEV_EVENT_ESTABLISHED);
	contract_event(c, 1, &link->ctx[1], RVCM_DEV_EVENT_ESTABLISHED);
}

void contract_link_up(struct contract *c, struct contract_link *link,
		      const struct contract_link_conf *conf)
{
	contract_link_open(c, link, conf);
	contract_link_connect(c, link);
	contract_attach(c, link->qp[0]);
	contract_attach(c, link->qp[1]);
}

/* -- data ------------------------------------------------------------------------------------- */

static uint8_t byte_at(uint32_t seed, size_t i)
{
	uint32_t x = seed * 2654435761u + (uint32_t)i * 40503u;

	return (uint8_t)(x >> 13 ^ x >> 5);
}

void contract_fill(void *data, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)data)[i] = byte_at(seed, i);
}

void contract_check(const void *data, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const uint8_t *)data)[i] != byte_at(seed, i))
			fail_msg("byte %zu of %zu is %u, not %u", i, bytes,
				 ((const uint8_t *)data)[i], byte_at(seed, i));
}

void contract_buf(struct contract *c, int side, struct contract_buf *buf, size_t bytes,
		  uint32_t access)
{
	buf->data = calloc(1, bytes ? bytes : 1);
	buf->bytes = bytes;
	assert_non_null(buf->data);
	buf->mr = contract_mr(c, side, buf->data, bytes, access);
	keep(c, CONTRACT_MEMORY, side, buf->data);
}

struct rvcm_dev_wr contract_remote(enum rvcm_dev_op op, const struct contract_buf *target,
				   size_t offset, uint64_t wr_id)
{
	return (struct rvcm_dev_wr) {
		.wr_id = wr_id,
		.op = op,
		.flags = RVCM_DEV_WR_SIGNALED,
		.raddr = (uintptr_t)target->data + offset,
		.rkey = target->mr->rkey,
	};
}

void contract_take(struct contract *c, struct contract_link *link, int side)
{
	struct rvcm_dev_wc wc = contract_wc_ok(c, side, 0, RVCM_DEV_OP_RECV);

	contract_release(c, side, link->pool[side], wc.rx);
}

int contract_post(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
		  size_t offset, size_t bytes, struct rvcm_dev_wr wr)
{
	const struct rvcm_dev_sge sge = { .addr = buf->data + offset,
					  .length = bytes,
					  .mr = buf->mr };

	wr.sge = &sge;
	wr.n_sge = 1;
	return ops_of(c, qp)->post(qp, &wr);
}

uint32_t contract_flood(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
			struct rvcm_dev_wr wr, uint32_t receives, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int rc;

		wr.wr_id = i;
		rc = contract_post(c, qp, buf, 0, buf->bytes, wr);
		if (rc == -ENOTCONN && i > receives)
			return i;
		assert_int_equal(rc, 0);
	}
	return n;
}

void contract_send(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
		   size_t offset, size_t bytes, uint64_t wr_id)
{
	const struct rvcm_dev_wr wr = { .wr_id = wr_id,
					.op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED };

	assert_int_equal(contract_post(c, qp, buf, offset, bytes, wr), 0);
}

int contract_recv(struct contract *c, struct rvcm_dev_qp *qp, struct rvcm_dev_srq *srq,
		  const struct contract_buf *buf, size_t offset, size_t bytes, uint64_t wr_id)
{
	const struct rvcm_dev_sge sge = { .addr = buf->data + offset,
					  .length = bytes,
					  .mr = buf->mr };
	const struct rvcm_dev_recv recv = { .wr_id = wr_id, .n_sge = 1, .sge = &sge };

	return srq ? ops_of(c, srq)->srq_post(srq, &recv) : ops_of(c, qp)->post_recv(qp, &recv);
}

void contract_release(struct contract *c, int side, struct rvcm_dev_pool *pool, void *rx)
{
	c->side[side].ops->rx_release(pool, rx);
}

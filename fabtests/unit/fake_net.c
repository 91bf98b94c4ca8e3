/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fake_impl.h"

#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"

struct fake_mr {
	struct rvcm_dev_mr mr;
	struct rvcm_list node;
};

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **out)
{
	struct fake_net *net = rvcm_container_of(dev, struct fake_net, dev);
	struct fake_mr *mr;

	if (net->fail_reg && (attr->access & net->fail_access) == net->fail_access)
		return net->fail_reg;
	mr = calloc(1, sizeof(*mr));
	mr->mr.dev = dev;
	mr->mr.addr = attr->addr;
	mr->mr.length = attr->length;
	mr->mr.access = attr->access;
	mr->mr.lkey = net->next_key;
	mr->mr.rkey = net->next_key++;
	rvcm_list_add_tail(&net->mrs, &mr->node);
	net->n_mrs++;
	net->regs++;
	*out = &mr->mr;
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *dev_mr)
{
	struct fake_mr *mr = rvcm_container_of(dev_mr, struct fake_mr, mr);

	rvcm_container_of(dev_mr->dev, struct fake_net, dev)->n_mrs--;
	rvcm_list_del(&mr->node);
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

void fake_random(void *ctx, void *buf, size_t bytes)
{
	(void)ctx;
	memset(buf, 0x42, bytes);
}

void fake_wake(void *ctx)
{
	(void)ctx;
}

void fake_net_init(struct fake_net *net)
{
	memset(net, 0, sizeof(*net));
	net->dev.ops = &ops;
	net->next_port = 1000;
	net->next_key = 77;
	net->credit = 4;
	net->write_most = 1 << 20;
	rvcm_list_init(&net->carriers);
	rvcm_list_init(&net->mrs);
}

void fake_net_fini(struct fake_net *net)
{
	assert_true(rvcm_list_empty(&net->carriers));
	assert_int_equal(net->n_mrs, 0);
}

bool fake_net_inside(const struct rvcm_dev_mr *mr, uint64_t addr, size_t bytes, uint32_t access)
{
	uint64_t base = (uintptr_t)mr->addr;

	return addr >= base && addr + bytes <= base + mr->length && (mr->access & access) == access;
}

/* What a peer names so; NULL: it may not. */
static void *reach(struct fake_net *net, uint32_t rkey, uint64_t addr, size_t bytes,
		   uint32_t access)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &net->mrs) {
		struct fake_mr *mr = rvcm_container_of(pos, struct fake_mr, node);

		if (mr->mr.rkey == rkey)
			return fake_net_inside(&mr->mr, addr, bytes, access)
				       ? (void *)(uintptr_t)addr
				       : NULL;
	}
	return NULL;
}

enum rvcm_status fake_net_read(struct fake_net *net, const struct rvcm_path_read *op)
{
	const void *from;

	assert_true(op->bytes > 0);
	assert_true(fake_net_inside(op->mr, (uintptr_t)op->addr, op->bytes,
				    RVCM_DEV_ACCESS_LOCAL_WRITE));
	if (net->fail_read)
		return net->fail_read;
	from = reach(net, op->rkey, op->raddr, op->bytes, RVCM_DEV_ACCESS_REMOTE_READ);
	if (!from)
		return RVCM_STATUS_REMOTE_ACCESS;
	memcpy(op->addr, from, op->bytes);
	return RVCM_STATUS_OK;
}

enum rvcm_status fake_net_write(struct fake_net *net, const struct rvcm_path_tail *op)
{
	void *to = reach(net, op->rkey, op->raddr, op->bytes, RVCM_DEV_ACCESS_REMOTE_WRITE);

	if (!to)
		return RVCM_STATUS_REMOTE_ACCESS;
	memcpy(to, op->addr, op->bytes);
	return RVCM_STATUS_OK;
}

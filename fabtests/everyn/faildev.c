/* SPDX-License-Identifier: BSD-2-Clause */
#include "everyn/faildev.h"

#include <errno.h>
#include <stddef.h>

static const struct rvcm_dev_ops *real;
static struct rvcm_dev_ops decorated;
static unsigned long calls, fail_at;
static const char *failed;

void faildev_fail_nth(unsigned long n)
{
	calls = 0;
	fail_at = n;
	failed = NULL;
}

const char *faildev_failed(void)
{
	return failed;
}

unsigned long faildev_calls(void)
{
	return calls;
}

static bool fails(const char *name)
{
	if (++calls != fail_at)
		return false;
	failed = name;
	return true;
}

static int dev_listen(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
		      struct rvcm_dev_listener **listener)
{
	return fails("listen") ? -EADDRINUSE : real->listen(dev, addr, backlog, ctx, listener);
}

static int dev_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **qp)
{
	return fails("qp_open") ? -ENOMEM : real->qp_open(dev, attr, qp);
}

static int dev_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
		       const void *private_data, size_t private_bytes)
{
	return fails("connect") ? -EADDRNOTAVAIL
				: real->connect(qp, peer, private_data, private_bytes);
}

/* dev.h: accept consumes the request even when it fails. */
static int dev_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp, const void *private_data,
		      size_t private_bytes)
{
	if (!fails("accept"))
		return real->accept(req, qp, private_data, private_bytes);
	(void)real->reject(req, NULL, 0);
	return -ECONNRESET;
}

static int dev_reject(struct rvcm_dev_req *req, const void *private_data, size_t private_bytes)
{
	if (!fails("reject"))
		return real->reject(req, private_data, private_bytes);
	(void)real->reject(req, NULL, 0);
	return -EIO;
}

static int dev_disconnect(struct rvcm_dev_qp *qp)
{
	return fails("disconnect") ? -EIO : real->disconnect(qp);
}

static int dev_mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		      struct rvcm_dev_mr **mr)
{
	return fails("mr_reg") ? -ENOMEM : real->mr_reg(dev, attr, mr);
}

static int dev_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq)
{
	return fails("cq_open") ? -EMFILE : real->cq_open(dev, depth, cq);
}

static int dev_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			 struct rvcm_dev_pool **pool)
{
	return fails("pool_open") ? -ENOMEM : real->pool_open(dev, attr, pool);
}

static int dev_pool_grow(struct rvcm_dev_pool *pool, uint32_t count)
{
	return fails("pool_grow") ? -ENOMEM : real->pool_grow(pool, count);
}

static int dev_attach(struct rvcm_dev_qp *qp)
{
	return fails("attach") ? -ENOMEM : real->attach(qp);
}

/* A queue that is full now and then, and one that fails for good. */
static int dev_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr)
{
	if (fails("post"))
		return calls % 2 ? -EAGAIN : -EIO;
	return real->post(qp, wr);
}

static int dev_flush(struct rvcm_dev_qp *qp)
{
	return fails("flush") ? -EIO : real->flush(qp);
}

void faildev_decorate(struct rvcm_dev *dev)
{
	if (dev->ops == &decorated)
		return;
	real = dev->ops;
	decorated = *real;
	decorated.listen = dev_listen;
	decorated.qp_open = dev_qp_open;
	decorated.connect = dev_connect;
	decorated.accept = dev_accept;
	decorated.reject = dev_reject;
	decorated.disconnect = dev_disconnect;
	decorated.mr_reg = dev_mr_reg;
	decorated.cq_open = dev_cq_open;
	decorated.pool_open = dev_pool_open;
	decorated.pool_grow = dev_pool_grow;
	decorated.attach = dev_attach;
	decorated.post = dev_post;
	decorated.flush = dev_flush;
	dev->ops = &decorated;
}

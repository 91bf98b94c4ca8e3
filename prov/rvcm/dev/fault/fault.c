/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/fault/fault.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static void fault_close(struct rvcm_dev *base)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);

	rvcm_fault_cm_fini(dev);
	dev->ops->close(dev->inner);
	rvcm_lock_fini(&dev->lock);
	rvcm_mem_free(dev);
}

static const struct rvcm_dev_ops fault_ops = {
	.close = fault_close,
	.cm_fd = rvcm_fault_cm_fd,
	.cm_poll = rvcm_fault_cm_poll,
	.listen = rvcm_fault_cm_listen,
	.listener_close = rvcm_fault_cm_listener_close,
	.qp_open = rvcm_fault_qp_open,
	.qp_close = rvcm_fault_qp_close,
	.qp_state = rvcm_fault_qp_state,
	.connect = rvcm_fault_cm_connect,
	.accept = rvcm_fault_cm_accept,
	.reject = rvcm_fault_cm_reject,
	.disconnect = rvcm_fault_cm_disconnect,
	.mr_reg = rvcm_fault_mem_reg,
	.mr_dereg = rvcm_fault_mem_dereg,
	.cq_open = rvcm_fault_cq_open,
	.cq_close = rvcm_fault_cq_close,
	.cq_poll = rvcm_fault_cq_poll,
	.cq_arm = rvcm_fault_cq_arm,
	.cq_fd = rvcm_fault_cq_fd,
	.pool_open = rvcm_fault_mem_pool_open,
	.pool_close = rvcm_fault_mem_pool_close,
	.pool_grow = rvcm_fault_mem_pool_grow,
	.rx_release = rvcm_fault_mem_release,
	.rx_place = rvcm_fault_qp_rx_place,
	.srq_open = rvcm_fault_mem_srq_open,
	.srq_close = rvcm_fault_mem_srq_close,
	.srq_post = rvcm_fault_mem_srq_post,
	.post_recv = rvcm_fault_qp_post_recv,
	.attach = rvcm_fault_qp_attach,
	.detach = rvcm_fault_qp_detach,
	.post = rvcm_fault_sq_post,
	.flush = rvcm_fault_sq_flush,
};

int rvcm_fault_check(const char *plan, struct rvcm_fault_complaint *complaint)
{
	struct rvcm_fault_plan parsed;

	return rvcm_fault_plan_parse(plan, &parsed, complaint);
}

int rvcm_fault_open(struct rvcm_dev *inner, const char *plan, struct rvcm_dev **out)
{
	struct rvcm_fault_dev *dev = rvcm_mem_zalloc(sizeof(*dev));
	struct rvcm_fault_complaint bad;
	int rc;

	if (!dev)
		return -ENOMEM;
	rc = rvcm_fault_plan_parse(plan, &dev->plan, &bad);
	if (rc) {
		rvcm_warn(RVCM_LOG_CORE, "fault plan \"%s\", character %zu: %s", plan, bad.at,
			  bad.text);
		goto err_free;
	}
	dev->base.ops = &fault_ops;
	dev->base.attr = inner->attr;
	dev->inner = inner;
	dev->ops = inner->ops;
	rvcm_list_init(&dev->cqs);
	rvcm_list_init(&dev->qps);
	rc = rvcm_fault_cm_init(dev);
	if (rc)
		goto err_free;
	rvcm_lock_init(&dev->lock, true);
	*out = &dev->base;
	return 0;

err_free:
	rvcm_mem_free(dev);
	return rc;
}

uint64_t rvcm_fault_count(struct rvcm_dev *base)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	uint64_t count;

	rvcm_lock_acquire(&dev->lock);
	count = dev->count;
	rvcm_lock_release(&dev->lock);
	return count;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that is removed under us. The kernel waits until everything of it is given back
 * (rdma_cma.h: "users must destroy the associated RDMA identifier and release all resources
 * allocated with the device"), and who closes our objects may take his time: so they are emptied.
 *
 *   begin     control: it is said once, every QP ends, listeners and requests lose their ids
 *   data      cq_poll, when no QP is left (reclaim.c): registrations, pools, SRQs and CQs
 *   control   then: the protection domain, the context, the anchor
 */
#include <fcntl.h>
#include <unistd.h>

#include "dev/verbs/verbs_impl.h"

static void gone_kick(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_lock_acquire(&dev->lock);
	rvcm_list_for_each (node, &dev->cqs)
		rvcm_verbs_wake_kick(rvcm_list_entry(node, struct rvcm_verbs_cq, node));
	rvcm_lock_release(&dev->lock);
}

static void gone_qps(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->qps)
		rvcm_verbs_end_removed(rvcm_list_entry(node, struct rvcm_verbs_qp, all_node));
}

void rvcm_verbs_gone_begin(struct rvcm_verbs_dev *dev)
{
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		return;
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: the device was removed", dev->base.attr.name);
	atomic_store_explicit(&dev->gone, true, memory_order_release);
	rvcm_verbs_event_device(dev, RVCM_DEV_EVENT_DEVICE_REMOVAL);
	gone_qps(dev);
	rvcm_verbs_listen_gone(dev);
	rvcm_verbs_farewell_all(dev);
	gone_kick(dev);
	rvcm_verbs_gone_control(dev);
}

static bool gone_ready(struct rvcm_verbs_dev *dev)
{
	bool ready;

	rvcm_lock_acquire(&dev->lock);
	ready = !dev->n_qps;
	rvcm_lock_release(&dev->lock);
	return ready;
}

/* Nobody will poll: there is no CQ, and nothing else of the data side. */
static bool gone_no_data(struct rvcm_verbs_dev *dev)
{
	bool none;

	rvcm_lock_acquire(&dev->lock);
	none = rvcm_list_empty(&dev->cqs) && rvcm_list_empty(&dev->pools) &&
	       rvcm_list_empty(&dev->srqs) && rvcm_list_empty(&dev->mrs);
	rvcm_lock_release(&dev->lock);
	return none;
}

void rvcm_verbs_gone_control(struct rvcm_verbs_dev *dev)
{
	if (!atomic_load_explicit(&dev->gone, memory_order_relaxed) || !gone_ready(dev))
		return;
	if (!atomic_load_explicit(&dev->data_gone, memory_order_acquire) && !gone_no_data(dev)) {
		gone_kick(dev);
		return;
	}
	rvcm_verbs_release(dev);
}

/*
 * librdmacm opens a device once, keeps it, and closes it when it finds that it is removed and finds
 * another one (cma.c, sync_devices_list): if it was the only one the kernel waits for it until the
 * process ends. So its descriptors are made to be of something else; it can close those when it
 * likes.
 */
void rvcm_verbs_gone_shared(struct rvcm_verbs_dev *dev)
{
	struct ibv_context *shared = dev->anchor->verbs;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || !shared)
		return;
	(void)dup3(fd, shared->cmd_fd, O_CLOEXEC);
	(void)dup3(fd, shared->async_fd, O_CLOEXEC);
	close(fd);
}

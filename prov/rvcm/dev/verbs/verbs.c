/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "dev/verbs/limits.h"
#include "dev/verbs/verbs_impl.h"

void rvcm_verbs_tunables_init(struct rvcm_verbs_tunables *tun)
{
	*tun = (struct rvcm_verbs_tunables) {
		.ack_timeout = 17,
		.retry_count = 6,
		.resolve_timeout_ms = 2000,
		.connect_timeout_ms = 10000,
		.close_timeout_ms = 5000,
		.keepalive_ms = 10000,
	};
}

static uint32_t verbs_clamp(uint32_t value, uint32_t min, uint32_t max)
{
	return value < min ? min : value > max ? max : value;
}

static void verbs_clamp_all(struct rvcm_verbs_tunables *tun)
{
	tun->ack_timeout = (uint8_t)verbs_clamp(tun->ack_timeout, 0, 31);
	tun->retry_count = (uint8_t)verbs_clamp(tun->retry_count, 0, 6);
	tun->resolve_timeout_ms = verbs_clamp(tun->resolve_timeout_ms, 1, 3600000);
	tun->connect_timeout_ms = verbs_clamp(tun->connect_timeout_ms, 1, 3600000);
	tun->close_timeout_ms = verbs_clamp(tun->close_timeout_ms, 1, 3600000);
}

/*
 * ibv_fork_init(3): without it a child of fork(2) takes registered pages away from its parent.
 * Kernels since 5.12 copy them for the child, and say so.
 */
void rvcm_verbs_fork_init(void)
{
	int rc;

	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
		return;
	rc = ibv_fork_init();
	if (rc)
		rvcm_info(RVCM_LOG_CORE, "verbs: fork(2) is not safe here: ibv_fork_init: errno %d",
			  rc);
}

static bool verbs_same_number(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_container_of(node, struct rvcm_verbs_qp, by_number)->number ==
	       *(const uint32_t *)key;
}

static int verbs_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static int verbs_watch(struct rvcm_verbs_dev *dev, int fd, enum rvcm_verbs_fd what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(dev->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void verbs_close_fds(struct rvcm_verbs_dev *dev)
{
	if (dev->wake >= 0)
		close(dev->wake);
	if (dev->epfd >= 0)
		close(dev->epfd);
}

static int verbs_open_fds(struct rvcm_verbs_dev *dev)
{
	int rc = rvcm_alarm_init(&dev->alarm);

	dev->epfd = epoll_create1(EPOLL_CLOEXEC);
	dev->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!rc && (dev->epfd < 0 || dev->wake < 0))
		rc = -errno;
	if (!rc)
		rc = verbs_watch(dev, dev->alarm.fd, RVCM_VERBS_FD_TIMER);
	if (!rc)
		rc = verbs_watch(dev, dev->wake, RVCM_VERBS_FD_WAKE);
	return rc;
}

static int verbs_open_channel(struct rvcm_verbs_dev *dev)
{
	struct sockaddr_storage ss;
	int rc;

	dev->channel = rdma_create_event_channel();
	if (!dev->channel)
		return -errno;
	rc = verbs_nonblocking(dev->channel->fd);
	if (!rc)
		rc = verbs_watch(dev, dev->channel->fd, RVCM_VERBS_FD_CHANNEL);
	if (rc)
		return rc;
	dev->anchor_src.kind = RVCM_VERBS_SRC_ANCHOR;
	if (rdma_create_id(dev->channel, &dev->anchor, &dev->anchor_src, RDMA_PS_TCP)) {
		dev->anchor = NULL;
		return -errno;
	}
	rvcm_verbs_sockaddr_put(&dev->base.attr.addr, &ss);
	if (rdma_bind_addr(dev->anchor, (struct sockaddr *)&ss))
		return -errno;
	return dev->anchor->verbs ? 0 : -ENODEV;
}

/* How it is used, as it turned out when it was tried. */
static void verbs_say(const struct rvcm_verbs_dev *dev)
{
	const struct rvcm_dev_attr *attr = &dev->base.attr;

	rvcm_info(RVCM_LOG_CORE,
		  "%s: posts with %s, copies up to %u bytes, takes %u pieces, %s immediates, "
		  "%u reads at a time, completion queues %s",
		  attr->name, dev->wr_api ? "ibv_wr_post" : "ibv_post_send", attr->inline_bytes_max,
		  attr->sge_max, attr->caps & RVCM_DEV_CAP_IMM32 ? "has" : "no", dev->reads_max,
		  dev->cq_resizes ? "grow" : "do not grow");
}

static int verbs_open_context(struct rvcm_verbs_dev *dev)
{
	struct ibv_port_attr port;
	int rc;

	dev->ctx = ibv_open_device(dev->anchor->verbs->device);
	if (!dev->ctx)
		return errno ? -errno : -ENODEV;
	rc = verbs_nonblocking(dev->ctx->async_fd);
	if (!rc)
		rc = verbs_watch(dev, dev->ctx->async_fd, RVCM_VERBS_FD_ASYNC);
	if (!rc)
		rc = -ibv_query_device(dev->ctx, &dev->limits);
	dev->port = dev->anchor->port_num;
	if (!rc)
		rc = -ibv_query_port(dev->ctx, dev->port, &port);
	if (rc)
		return rc;
	dev->iwarp = dev->ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	dev->reads_max = rvcm_verbs_limits_reads(&dev->limits);
	rvcm_verbs_farewell_init(dev, port.link_layer == IBV_LINK_LAYER_ETHERNET);
	rvcm_verbs_limits_attr(&dev->base.attr, &dev->limits, &port, dev->iwarp,
			       dev->base.attr.inline_bytes_max);
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd)
		return -errno;
	rc = rvcm_verbs_siw_pass(dev);
	if (!rc)
		rc = rvcm_verbs_grant_probe(dev);
	if (!rc)
		verbs_say(dev);
	return rc;
}

void rvcm_verbs_release(struct rvcm_verbs_dev *dev)
{
	if (!rvcm_list_empty(&dev->orphans)) /* see orphan.c */
		return;
	rvcm_verbs_siw_release(dev);
	if (dev->pd)
		(void)ibv_dealloc_pd(dev->pd); /* fails only for what is left of it: leaked */
	dev->pd = NULL;
	if (dev->ctx)
		(void)ibv_close_device(dev->ctx);
	dev->ctx = NULL;
	if (dev->anchor && atomic_load_explicit(&dev->gone, memory_order_relaxed))
		rvcm_verbs_gone_shared(dev);
	if (dev->anchor)
		rdma_destroy_id(dev->anchor);
	dev->anchor = NULL;
}

static void verbs_close(struct rvcm_dev *base)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);

	while (!rvcm_list_empty(&dev->reqs))
		rvcm_verbs_listen_req_free(
			rvcm_list_entry(rvcm_list_first(&dev->reqs), struct rvcm_dev_req, node));
	rvcm_verbs_orphan_settle(dev);
	rvcm_timer_cancel(&dev->alarm.timers, &dev->alive);
	rvcm_verbs_farewell_all(dev);
	if (!rvcm_verbs_caller_leave(dev))
		rvcm_verbs_close_rest(dev);
}

void rvcm_verbs_close_rest(struct rvcm_verbs_dev *dev)
{
	rvcm_verbs_caller_results(dev);
	rvcm_verbs_release(dev);
	if (dev->channel && rvcm_list_empty(&dev->orphans))
		rdma_destroy_event_channel(dev->channel);
	rvcm_alarm_fini(&dev->alarm);
	verbs_close_fds(dev);
	rvcm_hash_fini(&dev->by_number);
	rvcm_lock_fini(&dev->lock);
	rvcm_mem_free(dev);
}

static void verbs_no_place(struct rvcm_dev_qp *qp, size_t offset, const struct rvcm_dev_sge *sge,
			   uint32_t n)
{
	(void)qp; /* no CAP_HEAD: nobody is shown a head */
	(void)offset;
	(void)sge;
	(void)n;
}

static const struct rvcm_dev_ops verbs_ops = {
	.close = verbs_close,
	.cm_fd = rvcm_verbs_cm_fd,
	.cm_poll = rvcm_verbs_cm_poll,
	.listen = rvcm_verbs_listen_open,
	.listener_close = rvcm_verbs_listen_close,
	.qp_open = rvcm_verbs_qp_open,
	.qp_close = rvcm_verbs_qp_close,
	.qp_state = rvcm_verbs_qp_state,
	.connect = rvcm_verbs_dial_connect,
	.accept = rvcm_verbs_listen_accept,
	.reject = rvcm_verbs_listen_reject,
	.disconnect = rvcm_verbs_end_disconnect,
	.mr_reg = rvcm_verbs_mr_reg,
	.mr_dereg = rvcm_verbs_mr_dereg,
	.cq_open = rvcm_verbs_cq_open,
	.cq_close = rvcm_verbs_cq_close,
	.cq_poll = rvcm_verbs_cq_poll,
	.cq_arm = rvcm_verbs_wake_arm,
	.cq_fd = rvcm_verbs_wake_fd,
	.pool_open = rvcm_verbs_pool_open,
	.pool_close = rvcm_verbs_pool_close,
	.pool_grow = rvcm_verbs_pool_grow,
	.rx_release = rvcm_verbs_pool_release,
	.rx_place = verbs_no_place,
	.srq_open = rvcm_verbs_srq_open,
	.srq_close = rvcm_verbs_srq_close,
	.srq_post = rvcm_verbs_srq_post,
	.post_recv = rvcm_verbs_rq_post,
	.attach = rvcm_verbs_attach,
	.detach = rvcm_verbs_attach_end,
	.post = rvcm_verbs_sq_post,
	.flush = rvcm_verbs_sq_flush,
};

static void verbs_init(struct rvcm_verbs_dev *dev, const struct rvcm_dev_attr *attr,
		       const struct rvcm_verbs_tunables *tunables, uint64_t seed)
{
	dev->base.ops = &verbs_ops;
	dev->base.attr = *attr;
	dev->base.attr.addr.port = 0;
	if (tunables)
		dev->tun = *tunables;
	else
		rvcm_verbs_tunables_init(&dev->tun);
	verbs_clamp_all(&dev->tun);
	rvcm_timer_init(&dev->alive, NULL);
	rvcm_timer_init(&dev->farewell, NULL);
	rvcm_list_init(&dev->farewells);
	rvcm_list_init(&dev->ends);
	rvcm_list_init(&dev->listeners);
	rvcm_list_init(&dev->reqs);
	rvcm_list_init(&dev->qps);
	rvcm_list_init(&dev->orphans);
	rvcm_list_init(&dev->calls);
	rvcm_list_init(&dev->called);
	rvcm_list_init(&dev->mail);
	rvcm_list_init(&dev->mrs);
	rvcm_list_init(&dev->pools);
	rvcm_list_init(&dev->srqs);
	rvcm_list_init(&dev->cqs);
	rvcm_hash_init(&dev->by_number, verbs_same_number, seed);
	rvcm_lock_init(&dev->lock, true);
	atomic_init(&dev->gone, false);
	atomic_init(&dev->data_gone, false);
}

int rvcm_verbs_open(const struct rvcm_dev_attr *attr, const struct rvcm_verbs_tunables *tunables,
		    struct rvcm_dev **out)
{
	struct rvcm_verbs_dev *dev;
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	uint64_t seed;
	int rc = rvcm_rng_secure(&seed, sizeof(seed));

	if (rc)
		return rc;
	dev = rvcm_mem_zalloc(sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	rvcm_verbs_fork_init();
	verbs_init(dev, attr, tunables, seed);
	rc = verbs_open_fds(dev);
	if (!rc)
		rc = verbs_open_channel(dev);
	if (!rc)
		rc = verbs_open_context(dev);
	if (rc) {
		rvcm_warn(RVCM_LOG_CORE, "%s: cannot be opened: %s", attr->name,
			  rvcm_verbs_limits_text(-rc, text));
		verbs_close(&dev->base);
		return rc;
	}
	*out = &dev->base;
	return 0;
}

static int verbs_open_default(const struct rvcm_dev_attr *attr, struct rvcm_dev **dev)
{
	return rvcm_verbs_open(attr, NULL, dev);
}

const struct rvcm_dev_class rvcm_verbs_class = {
	.name = "verbs",
	.enumerate = rvcm_verbs_ports_enumerate,
	.open = verbs_open_default,
};

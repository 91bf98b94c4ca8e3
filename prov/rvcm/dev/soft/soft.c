/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "dev/soft/soft_impl.h"

void rvcm_soft_tunables_init(struct rvcm_soft_tunables *tun)
{
	*tun = (struct rvcm_soft_tunables) {
		.connect_timeout_ms = 10000,
		.handshake_timeout_ms = 5000,
		.close_timeout_ms = 5000,
		.linger_ms = 1000,
		.silence_timeout_ms = 30000,
		.keepalive_idle_s = 10,
		.keepalive_interval_s = 5,
		.mpa_revision = 2,
		.peer_to_peer = true,
		.rtr_again_ms = 1000,
		.handshakes_max = 4096,
		.reads_max = 32,
		.segment_bytes_max = 65472,
		.copy_bytes_max = 2048,
		.direct_bytes_min = 4096,
		.head_bytes_min = 16384,
		.bulk_read_bytes = 2048,
		.park_bufs_max = 8,
		.poll_direct_max = 2,
	};
}

static uint32_t soft_clamp(uint32_t value, uint32_t min, uint32_t max)
{
	return value < min ? min : value > max ? max : value;
}

/* What would break an invariant is brought into range. */
static void soft_clamp_all(struct rvcm_soft_tunables *tun)
{
	tun->silence_timeout_ms = soft_clamp(tun->silence_timeout_ms, 100, 3600000);
	tun->reads_max = soft_clamp(tun->reads_max, 1, 1024);
	tun->segment_bytes_max = soft_clamp(tun->segment_bytes_max, 512, 65472);
	tun->copy_bytes_max = soft_clamp(tun->copy_bytes_max, RVCM_SOFT_INLINE_BYTES, 32768);
	tun->direct_bytes_min = soft_clamp(tun->direct_bytes_min, 1, UINT32_MAX);
	tun->bulk_read_bytes = soft_clamp(tun->bulk_read_bytes, 64, 65536);
	tun->park_bufs_max = soft_clamp(tun->park_bufs_max, 1, 4096);
	tun->mpa_revision = soft_clamp(tun->mpa_revision, 1, 2);
	tun->dscp &= 0x3f;
	tun->rtr_again_ms = soft_clamp(tun->rtr_again_ms, 1, 3600000);
	tun->handshakes_max = soft_clamp(tun->handshakes_max, 1, UINT32_MAX);
}

static void soft_close_fds(struct rvcm_soft_dev *dev)
{
	if (dev->mail_src.fd >= 0)
		close(dev->mail_src.fd);
	rvcm_alarm_fini(&dev->alarm);
	if (dev->cm_epfd >= 0)
		close(dev->cm_epfd);
}

static int soft_open_fds(struct rvcm_soft_dev *dev)
{
	int rc = rvcm_alarm_init(&dev->alarm);

	dev->timer_src.kind = RVCM_SOFT_SRC_TIMER;
	dev->mail_src.kind = RVCM_SOFT_SRC_MAIL;
	dev->cm_epfd = epoll_create1(EPOLL_CLOEXEC);
	dev->timer_src.fd = dev->alarm.fd;
	dev->mail_src.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!rc && (dev->cm_epfd < 0 || dev->mail_src.fd < 0))
		rc = -errno;
	if (!rc)
		rc = rvcm_soft_cm_watch(dev, &dev->timer_src, EPOLLIN);
	if (!rc)
		rc = rvcm_soft_cm_watch(dev, &dev->mail_src, EPOLLIN);
	if (rc)
		soft_close_fds(dev);
	return rc;
}

static void soft_close(struct rvcm_dev *base)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);

	while (!rvcm_list_empty(&dev->reqs))
		rvcm_soft_listen_req_free(
			rvcm_list_entry(rvcm_list_first(&dev->reqs), struct rvcm_dev_req, node));
	rvcm_soft_linger_fini(dev);
	rvcm_soft_silence_fini(dev);
	soft_close_fds(dev);
	rvcm_soft_buf_trim(&dev->bufs);
	rvcm_soft_key_table_fini(&dev->keys);
	rvcm_lock_fini(&dev->lock);
	rvcm_mem_free(dev);
}

static const struct rvcm_dev_ops soft_ops = {
	.close = soft_close,
	.cm_fd = rvcm_soft_cm_fd,
	.cm_poll = rvcm_soft_cm_poll,
	.listen = rvcm_soft_listen_open,
	.listener_close = rvcm_soft_listen_close,
	.qp_open = rvcm_soft_qp_open,
	.qp_close = rvcm_soft_qp_close,
	.qp_state = rvcm_soft_qp_state,
	.connect = rvcm_soft_dial_connect,
	.accept = rvcm_soft_listen_accept,
	.reject = rvcm_soft_listen_reject,
	.disconnect = rvcm_soft_qp_disconnect,
	.mr_reg = rvcm_soft_mr_reg,
	.mr_dereg = rvcm_soft_mr_dereg,
	.cq_open = rvcm_soft_cq_open,
	.cq_close = rvcm_soft_cq_close,
	.cq_poll = rvcm_soft_cq_poll,
	.cq_arm = rvcm_soft_cq_arm,
	.cq_fd = rvcm_soft_cq_fd,
	.pool_open = rvcm_soft_pool_open,
	.pool_close = rvcm_soft_pool_close,
	.pool_grow = rvcm_soft_pool_grow,
	.rx_release = rvcm_soft_pool_release,
	.rx_place = rvcm_soft_head_place,
	.srq_open = rvcm_soft_srq_open,
	.srq_close = rvcm_soft_srq_close,
	.srq_post = rvcm_soft_srq_post,
	.post_recv = rvcm_soft_rq_post,
	.attach = rvcm_soft_qp_attach,
	.detach = rvcm_soft_qp_detach,
	.post = rvcm_soft_sq_post,
	.flush = rvcm_soft_sq_flush,
};

int rvcm_soft_open(const struct rvcm_dev_attr *attr, const struct rvcm_soft_tunables *tunables,
		   struct rvcm_dev **out)
{
	struct rvcm_soft_dev *dev;
	uint64_t seed;
	int rc = rvcm_rng_secure(&seed, sizeof(seed));

	if (rc)
		return rc;
	dev = rvcm_mem_zalloc(sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->base.ops = &soft_ops;
	dev->base.attr = *attr;
	dev->base.attr.addr.port = 0;
	if (tunables)
		dev->tun = *tunables;
	else
		rvcm_soft_tunables_init(&dev->tun);
	soft_clamp_all(&dev->tun);
	if (dev->tun.crc)
		dev->base.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_HEAD; /* see head.c */
	rvcm_list_init(&dev->listeners);
	rvcm_list_init(&dev->reqs);
	rvcm_list_init(&dev->lingering);
	rvcm_list_init(&dev->events);
	rvcm_soft_silence_init(dev);
	rc = soft_open_fds(dev);
	if (rc)
		goto err_free;
	rvcm_lock_init(&dev->lock, true);
	rvcm_soft_key_table_init(&dev->keys, seed, attr->mr_max);
	*out = &dev->base;
	return 0;

err_free:
	rvcm_mem_free(dev);
	return rc;
}

static int soft_open_default(const struct rvcm_dev_attr *attr, struct rvcm_dev **dev)
{
	return rvcm_soft_open(attr, NULL, dev);
}

const struct rvcm_dev_class rvcm_soft_class = {
	.name = "soft",
	.enumerate = rvcm_soft_ifaddr_enumerate,
	.open = soft_open_default,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket whose connection is over here and whose peer may not know yet. If it were closed while
 * the peer goes on sending, Linux would answer with a reset, and a reset makes the peer's side
 * forget what it has not read: our last words, a TERMINATE or a reject. So the sending side is shut
 * down, and what comes is thrown away until the peer ends its side too, for linger_ms at most, and
 * for LINGER_MAX sockets at most: the oldest makes room. When the device closes they all do.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

#define LINGER_MAX 256u

struct straggler {
	struct rvcm_soft_src src;
	struct rvcm_soft_dev *dev;
	struct rvcm_list node; /* dev->lingering, oldest first */
	struct rvcm_timer timer;
};

static void linger_end(struct straggler *straggler)
{
	struct rvcm_soft_dev *dev = straggler->dev;

	rvcm_timer_cancel(&dev->alarm.timers, &straggler->timer);
	rvcm_list_del(&straggler->node);
	dev->n_lingering--;
	rvcm_soft_cm_unwatch(dev, straggler->src.fd);
	close(straggler->src.fd);
	rvcm_mem_free(straggler);
}

static void linger_timeout(struct rvcm_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	linger_end(rvcm_container_of(timer, struct straggler, timer));
}

/* fd is shut down for sending. */
static int linger_begin(struct rvcm_soft_dev *dev, int fd)
{
	struct straggler *straggler = rvcm_mem_zalloc(sizeof(*straggler));
	int rc;

	if (!straggler)
		return -ENOMEM;
	straggler->src.kind = RVCM_SOFT_SRC_LINGER;
	straggler->src.fd = fd;
	straggler->dev = dev;
	rc = rvcm_soft_cm_watch(dev, &straggler->src, EPOLLIN);
	if (rc) {
		rvcm_mem_free(straggler);
		return rc;
	}
	rvcm_timer_init(&straggler->timer, linger_timeout);
	rvcm_alarm_set(&dev->alarm, &straggler->timer, dev->tun.linger_ms);
	rvcm_list_add_tail(&dev->lingering, &straggler->node);
	if (++dev->n_lingering > LINGER_MAX)
		linger_end(
			rvcm_list_entry(rvcm_list_first(&dev->lingering), struct straggler, node));
	return 0;
}

void rvcm_soft_linger_close(struct rvcm_soft_dev *dev, int fd)
{
	if (fd < 0)
		return;
	rvcm_soft_cm_unwatch(dev, fd); /* for whom it was watched before */
	if (!rvcm_soft_sock_drain(fd) || shutdown(fd, SHUT_WR) < 0 || linger_begin(dev, fd))
		close(fd);
}

void rvcm_soft_linger_ready(struct rvcm_soft_src *src)
{
	if (!rvcm_soft_sock_drain(src->fd))
		linger_end(rvcm_container_of(src, struct straggler, src));
}

void rvcm_soft_linger_fini(struct rvcm_soft_dev *dev)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&dev->lingering))) {
		struct straggler *straggler = rvcm_list_entry(node, struct straggler, node);

		(void)rvcm_soft_sock_drain(straggler->src.fd);
		linger_end(straggler);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control side's loop: one epoll set of listeners, half-open handshakes and connections that
 * are not attached, a timerfd for their time-outs, and an eventfd for what the data side reports.
 *
 * One event at a time is taken from the set: handling it may free what another one points at. Of
 * sockets that are ready again and again a call takes so many, and leaves the rest to the next.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dev/soft/soft_impl.h"

#define CM_ROUNDS_MAX 256

int rvcm_soft_cm_fd(struct rvcm_dev *dev)
{
	return rvcm_soft_dev_of(dev)->cm_epfd;
}

int rvcm_soft_cm_watch(struct rvcm_soft_dev *dev, struct rvcm_soft_src *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	int rc = epoll_ctl(dev->cm_epfd, EPOLL_CTL_ADD, src->fd, &ev);

	if (rc < 0 && errno == EEXIST) /* for another src, which could not let go of it */
		rc = epoll_ctl(dev->cm_epfd, EPOLL_CTL_MOD, src->fd, &ev);
	return rc < 0 ? -errno : 0;
}

void rvcm_soft_cm_rewatch(struct rvcm_soft_dev *dev, struct rvcm_soft_src *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	(void)epoll_ctl(dev->cm_epfd, EPOLL_CTL_MOD, src->fd, &ev);
}

void rvcm_soft_cm_unwatch(struct rvcm_soft_dev *dev, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(dev->cm_epfd, EPOLL_CTL_DEL, fd, NULL);
}

static void cm_dispatch(struct rvcm_soft_dev *dev, struct rvcm_soft_src *src)
{
	switch (src->kind) {
	case RVCM_SOFT_SRC_TIMER:
		rvcm_alarm_run(&dev->alarm);
		break;
	case RVCM_SOFT_SRC_MAIL: /* the next look at the list finds it */
		break;
	case RVCM_SOFT_SRC_LISTENER:
		rvcm_soft_listen_ready(rvcm_container_of(src, struct rvcm_dev_listener, src));
		break;
	case RVCM_SOFT_SRC_REQ:
		rvcm_soft_listen_req_ready(rvcm_container_of(src, struct rvcm_dev_req, src));
		break;
	case RVCM_SOFT_SRC_QP:
		rvcm_soft_dial_ready(rvcm_container_of(src, struct rvcm_soft_qp, src));
		break;
	case RVCM_SOFT_SRC_LINGER:
		rvcm_soft_linger_ready(src);
		break;
	}
}

int rvcm_soft_cm_poll(struct rvcm_dev *base, struct rvcm_dev_event *ev)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);
	struct epoll_event ready;

	for (int i = 0; i < CM_ROUNDS_MAX; i++) {
		if (rvcm_soft_event_next(dev, ev))
			return 1;
		if (epoll_wait(dev->cm_epfd, &ready, 1, 0) != 1)
			return 0;
		cm_dispatch(dev, ready.data.ptr);
	}
	return rvcm_soft_event_next(dev, ev);
}

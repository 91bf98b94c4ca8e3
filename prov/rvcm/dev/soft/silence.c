/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that do not answer any more: a host that is gone, a wire that is cut, a firewall that
 * drops. TCP is asked what it has heard (base/silence.h). An idle connection has nothing unanswered
 * until TCP's keepalive probes it.
 *
 * One timer serves all connections, and runs while there are any.
 */
#include <errno.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/silence.h"
#include "dev/soft/soft_impl.h"

#define SILENCE_LOOKS 4u /* in silence_timeout_ms */

/* The data side, or whoever watches the socket, sees the stream end, and that this is why. */
static void silence_end(struct rvcm_soft_qp *qp)
{
	char name[RVCM_ADDR_STRLEN];

	rvcm_complain(&qp->dev->complaints[RVCM_SOFT_COMPLAINT_SILENCE], qp->dev->base.attr.name,
		      "the host of %s has not answered for %u ms: the connection is given up",
		      rvcm_addr_format(&qp->peer, name, sizeof(name)),
		      qp->dev->tun.silence_timeout_ms);
	atomic_store_explicit(&qp->silent, true, memory_order_release);
	(void)shutdown(qp->fd, SHUT_RDWR);
}

static void silence_look(struct rvcm_soft_qp *qp, uint64_t now_ns)
{
	uint64_t limit_ns = qp->dev->tun.silence_timeout_ms * RVCM_CLOCK_NS_PER_MS;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (rvcm_soft_qp_now(qp) == RVCM_DEV_QP_ERROR ||
	    atomic_load_explicit(&qp->silent, memory_order_relaxed) ||
	    getsockopt(qp->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return;
	if (rvcm_silence_judge(&qp->unanswered_ns, rvcm_silence_attempts(&info),
			       info.tcpi_last_ack_recv * RVCM_CLOCK_NS_PER_MS, now_ns, limit_ns))
		silence_end(qp);
}

static void silence_set(struct rvcm_soft_dev *dev)
{
	rvcm_alarm_set(&dev->alarm, &dev->silence, dev->tun.silence_timeout_ms / SILENCE_LOOKS);
}

static void silence_due(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_soft_dev *dev = rvcm_container_of(timer, struct rvcm_soft_dev, silence);
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->standing)
		silence_look(rvcm_list_entry(node, struct rvcm_soft_qp, standing), now_ns);
	if (!rvcm_list_empty(&dev->standing))
		silence_set(dev);
}

void rvcm_soft_silence_init(struct rvcm_soft_dev *dev)
{
	rvcm_list_init(&dev->standing);
	rvcm_timer_init(&dev->silence, silence_due);
}

void rvcm_soft_silence_fini(struct rvcm_soft_dev *dev)
{
	rvcm_timer_cancel(&dev->alarm.timers, &dev->silence);
}

void rvcm_soft_silence_watch(struct rvcm_soft_qp *qp)
{
	rvcm_list_add_tail(&qp->dev->standing, &qp->standing);
	if (!rvcm_timer_is_set(&qp->dev->silence))
		silence_set(qp->dev);
}

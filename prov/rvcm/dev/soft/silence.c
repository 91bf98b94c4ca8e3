/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that do not answer any more: a host that is gone, a wire that is cut, a firewall that
 * drops.
 *
 * TCP itself gives up after a quarter of an hour. TCP_USER_TIMEOUT is no help: it also ends a
 * connection whose peer answers each probe but has no room (Linux counts from the first probe of a
 * window that is shut), and that is what a process that computes, or is stopped, looks like. So TCP
 * is asked every now and then what it has heard: a peer is given up if something of ours is
 * unanswered, bytes or a probe, it was tried again, and nothing at all has come from the peer for
 * silence_timeout_ms. Once is not enough: Linux answers at most one segment in 500 ms that does not
 * fit (tcp_invalid_ratelimit). Bytes that wait to be sent again because the peer had no room are
 * not unanswered: it did answer the last attempt. An idle connection has nothing unanswered until
 * TCP's keepalive probes it.
 *
 * One timer serves all connections, and runs while there are any.
 */
#include <errno.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/log.h"
#include "dev/soft/soft_impl.h"

#define SILENCE_LOOKS    4u /* in silence_timeout_ms */
#define SILENCE_ATTEMPTS 2u

bool rvcm_soft_silence_judge(uint64_t *since_ns, uint32_t attempts, uint64_t heard_ns,
			     uint64_t now_ns, uint64_t limit_ns)
{
	if (!attempts) {
		*since_ns = 0;
		return false;
	}
	if (*since_ns == 0 || now_ns - *since_ns > heard_ns) {
		*since_ns = now_ns;
		return false;
	}
	return now_ns - *since_ns >= limit_ns && attempts >= SILENCE_ATTEMPTS;
}

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

/*
 * How often was something sent that is unanswered? Times are milliseconds since then, of a clock
 * that ticks every few: what was sent and heard in the same tick was answered.
 */
static uint32_t silence_attempts(const struct tcp_info *info)
{
	if (info->tcpi_probes)
		return info->tcpi_probes;
	if (info->tcpi_unacked && info->tcpi_last_ack_recv > info->tcpi_last_data_sent)
		return 1u + info->tcpi_retransmits;
	return 0;
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
	if (rvcm_soft_silence_judge(&qp->unanswered_ns, silence_attempts(&info),
				    info.tcpi_last_ack_recv * RVCM_CLOCK_NS_PER_MS, now_ns,
				    limit_ns))
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the peer still there? A queue pair notices only when it sends: who waits for a host that has
 * lost its power, or its cable, would wait for ever. So from time to time each that is connected
 * sends a WRITE of no bytes, which the peer's adapter answers by itself, whatever its process does;
 * or, on iWARP, its TCP: nothing in iWARP answers a WRITE (RFC 5040, 5.2), siw's answer to a READ
 * of 0 bytes cannot be trusted (DESIGN, "Links on TCP"), and TCP itself waits for a quarter of an
 * hour; so it is asked now and then what it has heard. An adapter that does TCP by itself judges
 * so, too.
 *
 * Control asks the data side, which owns the send queue: who waits polls, or is woken. Whose
 * process computes is not asked, and does not wait.
 */
#include "base/clock.h"
#include "base/silence.h"
#include "dev/verbs/netlink.h"
#include "dev/verbs/verbs_impl.h"

#define ALIVE_LOOKS 4u /* at a TCP connection, in keepalive_ms */

static void alive_ask(struct rvcm_verbs_qp *qp)
{
	rvcm_lock_acquire(&qp->lock);
	if (qp->attached)
		rvcm_verbs_sq_ask(qp);
	rvcm_lock_release(&qp->lock);
}

/* What this host's TCP has heard of the peer's. */
static bool alive_is_silent(struct rvcm_verbs_qp *qp)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct tcp_info info;

	if (!qp->id ||
	    rvcm_verbs_netlink_tcp(rdma_get_local_addr(qp->id), rdma_get_peer_addr(qp->id), &info))
		return false;
	return rvcm_silence_judge(&qp->unanswered_ns, rvcm_silence_attempts(&info),
				  info.tcpi_last_ack_recv * RVCM_CLOCK_NS_PER_MS, rvcm_clock_ns(),
				  dev->tun.keepalive_ms * RVCM_CLOCK_NS_PER_MS);
}

static void alive_give_up(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	char name[RVCM_ADDR_STRLEN];

	rvcm_warn(RVCM_LOG_EP_CTRL,
		  "%s: the host of %s has not answered for %u ms: the connection is given up",
		  dev->base.attr.name, rvcm_addr_format(&qp->peer, name, sizeof(name)),
		  dev->tun.keepalive_ms);
	rvcm_verbs_end_silent(qp);
}

static void alive_set(struct rvcm_verbs_dev *dev)
{
	rvcm_alarm_set(&dev->alarm, &dev->alive,
		       dev->iwarp ? (dev->tun.keepalive_ms + ALIVE_LOOKS - 1) / ALIVE_LOOKS
				  : dev->tun.keepalive_ms);
}

static void alive_look(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_dev *dev = rvcm_container_of(timer, struct rvcm_verbs_dev, alive);
	bool ask = !dev->iwarp || ++dev->looks % ALIVE_LOOKS == 0;
	struct rvcm_list *node;
	bool any = false;

	(void)now_ns;
	rvcm_list_for_each (node, &dev->qps) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, all_node);
		enum rvcm_dev_qp_state state = rvcm_verbs_qp_state(&qp->base);

		if (state != RVCM_DEV_QP_RTS)
			continue;
		any = true;
		if (dev->iwarp && alive_is_silent(qp))
			alive_give_up(qp);
		else if (ask)
			alive_ask(qp);
	}
	if (any)
		alive_set(dev);
}

void rvcm_verbs_alive_begin(struct rvcm_verbs_dev *dev)
{
	if (!dev->tun.keepalive_ms || dev->alive.set)
		return;
	rvcm_timer_init(&dev->alive, alive_look);
	alive_set(dev);
}

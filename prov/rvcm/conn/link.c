/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and destroying a link's QP. Control's. */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

static void mail_init(struct rvcm_mail *mail, enum rvcm_mail_kind kind)
{
	mail->kind = kind;
	rvcm_list_init(&mail->node);
}

/*
 * A window, what goes beside it, and what may lie unsignalled; or HELLO and what else a side link
 * carries. Clamped to the device.
 */
static uint32_t sq_depth(const struct rvcm_carrier *carrier, const struct rvcm_dev *dev, bool side)
{
	uint32_t want = carrier->attr.window_max + RVCM_CONN_CONTROL_MAX + RVCM_CONN_READS_MAX +
			RVCM_CONN_SIGNAL_EVERY;

	if (side)
		want = RVCM_CONN_READS_MAX + 1;
	return want < dev->attr.sq_depth_max ? want : dev->attr.sq_depth_max;
}

/* There may be more the next time. */
static int refused(struct rvcm_carrier *carrier, int rc)
{
	if (rc == -ENOMEM)
		rvcm_carrier_pinch(carrier);
	return rc;
}

static void init(struct rvcm_link *link)
{
	rvcm_list_init(&link->inflight);
	rvcm_list_init(&link->of_contact);
	rvcm_list_init(&link->of_sides);
	rvcm_list_init(&link->pieces);
	rvcm_list_init(&link->work);
	rvcm_timer_init(&link->timer, NULL);
	atomic_init(&link->ended, false);
	mail_init(&link->up, RVCM_MAIL_UP);
	mail_init(&link->due, RVCM_MAIL_DUE);
	mail_init(&link->down, RVCM_MAIL_DOWN);
	mail_init(&link->watched, RVCM_MAIL_WATCHED);
	mail_init(&link->taken, RVCM_MAIL_TAKEN);
	mail_init(&link->failed, RVCM_MAIL_FAILED);
	mail_init(&link->released, RVCM_MAIL_RELEASED);
	mail_init(&link->unnamed, RVCM_MAIL_UNNAMED);
	mail_init(&link->branch_mail, RVCM_MAIL_BRANCH);
	mail_init(&link->unbranch_mail, RVCM_MAIL_UNBRANCH);
}

static int open_link(struct rvcm_contact *contact, uint16_t dev_index, uint8_t index, bool opener,
		     bool routed, struct rvcm_link **out)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_carrier_dev *dev = &carrier->devs[dev_index];
	struct rvcm_link *link = rvcm_mem_zalloc(sizeof(*link));
	struct rvcm_dev_qp_attr attr = {
		.cq = dev->cq,
		.pool = dev->pool,
		.sq_depth = sq_depth(carrier, dev->dev, index != 0),
		.rq_depth = (index ? 0 : carrier->attr.window_max) + RVCM_CONN_CONTROL_MAX,
		.sge_max = 2, /* a message, and its tail */
		.rnr_timeout_ns = carrier->attr.rnr_timeout_ns,
		.routed = routed,
		.ctx = link,
	};
	int rc;

	if (!link)
		return -ENOMEM;
	rc = rvcm_budget_open(dev, index ? 0 : rvcm_carrier_window_start(carrier), &link->window);
	if (rc) {
		if (rc == -ENOBUFS)
			rvcm_warn(RVCM_LOG_EP_CTRL,
				  "%s: all %u receive buffers are promised to peers",
				  dev->dev->attr.name, rvcm_carrier_pool_count(carrier, dev->dev));
		rvcm_mem_free(link);
		return refused(carrier, rc);
	}
	link->contact = contact;
	link->number = ++carrier->links;
	link->slot = contact->slot;
	link->peer = contact->peer;
	link->dev = dev_index;
	link->index = index;
	link->opener = opener;
	link->sq_depth = attr.sq_depth;
	link->signal_every = attr.sq_depth / 2 < RVCM_CONN_SIGNAL_EVERY ? attr.sq_depth / 2
									: RVCM_CONN_SIGNAL_EVERY;
	link->signal_due = link->signal_every;
	init(link);
	rc = dev->dev->ops->qp_open(dev->dev, &attr, &link->qp);
	if (rc) {
		rvcm_budget_close(dev, link->window);
		rvcm_mem_free(link);
		return refused(carrier, rc);
	}
	rvcm_tx_prepare(link);
	rvcm_park_count(link);
	*out = link;
	return 0;
}

int rvcm_link_open(struct rvcm_contact *contact, uint16_t dev, uint8_t index, bool opener,
		   struct rvcm_link **link)
{
	return open_link(contact, dev, index, opener, false, link);
}

int rvcm_link_open_routed(struct rvcm_contact *contact, uint16_t dev, uint8_t index,
			  struct rvcm_link **link)
{
	return open_link(contact, dev, index, true, true, link);
}

void rvcm_link_known(struct rvcm_link *link, uint32_t peer_incarnation)
{
	struct rvcm_carrier *carrier = link->contact->carrier;

	link->peer_incarnation = peer_incarnation;
	rvcm_hash_insert(&carrier->kin, &link->kin,
			 rvcm_hash_u64(carrier->hash_seed, peer_incarnation));
}

void rvcm_link_recall(struct rvcm_link *link)
{
	if (link->down_posted)
		return;
	link->down_posted = true;
	atomic_store(&link->ended, true);
	rvcm_carrier_mail_data(link->contact->carrier, &link->down);
}

const char *rvcm_link_who(const struct rvcm_link *link, char *buf)
{
	return rvcm_cause_who(&link->peer, link->qp->dev, link->index, buf);
}

void rvcm_link_close(struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = link->contact->carrier;

	rvcm_timer_cancel(&carrier->timers, &link->timer);
	if (link->peer_incarnation)
		rvcm_hash_del(&carrier->kin, &link->kin);
	rvcm_budget_close(&carrier->devs[link->dev], link->window);
	link->qp->dev->ops->qp_close(link->qp);
	rvcm_park_uncount(link);
	rvcm_mem_free(link);
}

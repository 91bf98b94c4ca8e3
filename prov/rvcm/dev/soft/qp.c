/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: made and closed by control, attached and detached by data, and between the two a
 * state (fsm.h) that changes under dev->lock.
 *
 * A QP is freed when control has closed it and no completion of it is left in its CQ: data holds a
 * reference while it is attached or has such completions.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

static uint32_t qp_clamp(uint32_t value, uint32_t max)
{
	return value < 1 ? 1 : value > max ? max : value;
}

static void qp_init(struct rvcm_soft_qp *qp, struct rvcm_soft_dev *dev,
		    const struct rvcm_dev_qp_attr *attr)
{
	qp->base.dev = &dev->base;
	qp->base.ctx = attr->ctx;
	qp->dev = dev;
	qp->fd = -1;
	qp->cq = (struct rvcm_soft_cq *)attr->cq;
	qp->pool = (struct rvcm_soft_pool *)attr->pool;
	qp->srq = (struct rvcm_soft_srq *)attr->srq;
	qp->rnr_timeout_ns = attr->rnr_timeout_ns;
	qp->routed = attr->routed;
	qp->src.kind = RVCM_SOFT_SRC_QP;
	qp->src.fd = -1;
	qp->tx.send_msn = 1;
	qp->tx.read_msn = 1;
	qp->tx.atomic_msn = 1;
	for (int i = 0; i < RVCM_SOFT_WIRE_QNS; i++)
		qp->rx.msn[i] = 1; /* RFC 5041 section 5.1 */
	rvcm_list_init(&qp->cq_node);
	rvcm_list_init(&qp->busy_node);
	rvcm_list_init(&qp->pool_node);
	rvcm_list_init(&qp->srq_node);
	rvcm_list_init(&qp->note.node);
	rvcm_list_init(&qp->asked_node);
	rvcm_list_init(&qp->standing);
	rvcm_timer_init(&qp->timer, NULL);
	atomic_init(&qp->state, RVCM_DEV_QP_INIT);
	atomic_init(&qp->refs, 1);
	atomic_init(&qp->closed, false);
	atomic_init(&qp->silent, false);
}

int rvcm_soft_qp_open(struct rvcm_dev *base, const struct rvcm_dev_qp_attr *attr,
		      struct rvcm_dev_qp **out)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);
	uint32_t sge_max = qp_clamp(attr->sge_max, base->attr.sge_max);
	bool own_rq = !attr->pool && !attr->srq;
	struct rvcm_soft_qp *qp;
	int rc;

	if (!attr->cq || (attr->pool && attr->srq))
		return -EINVAL;
	qp = rvcm_mem_zalloc(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp_init(qp, dev, attr);
	rc = rvcm_soft_sq_init(&qp->sq, qp_clamp(attr->sq_depth, base->attr.sq_depth_max), sge_max);
	if (rc)
		goto err_free;
	rc = rvcm_soft_rq_init(
		&qp->rq, own_rq ? qp_clamp(attr->rq_depth, base->attr.rq_depth_max) : 1, sge_max);
	if (rc)
		goto err_sq;
	*out = &qp->base;
	return 0;

err_sq:
	rvcm_soft_sq_fini(&qp->sq);
err_free:
	rvcm_mem_free(qp);
	return rc;
}

void rvcm_soft_qp_put(struct rvcm_soft_qp *qp)
{
	/* Release: what this side did to the QP; acquire: what the other did, before it is freed.
	 */
	if (atomic_fetch_sub_explicit(&qp->refs, 1, memory_order_acq_rel) != 1)
		return;
	rvcm_mem_free(qp->responses.ring);
	rvcm_soft_rq_fini(&qp->rq);
	rvcm_soft_sq_fini(&qp->sq);
	rvcm_mem_free(qp);
}

void rvcm_soft_qp_close(struct rvcm_dev_qp *base)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	struct rvcm_soft_dev *dev = qp->dev;
	enum rvcm_dev_qp_state state = rvcm_soft_qp_now(qp);

	if (qp->bound) /* against the rules, and cheap to survive */
		rvcm_soft_qp_detach(base);
	rvcm_timer_cancel(&dev->alarm.timers, &qp->timer);
	rvcm_list_del(&qp->standing);
	atomic_store_explicit(&qp->closed, true, memory_order_release);
	rvcm_soft_event_forget(dev, &qp->note);
	rvcm_soft_cm_unwatch(dev, qp->fd);
	if (state == RVCM_DEV_QP_RTS || state == RVCM_DEV_QP_CLOSING)
		rvcm_soft_sock_close(qp->fd, true);
	else
		rvcm_soft_linger_close(dev, qp->fd);
	rvcm_soft_qp_put(qp);
}

enum rvcm_dev_qp_state rvcm_soft_qp_state(const struct rvcm_dev_qp *base)
{
	return rvcm_soft_qp_now((const struct rvcm_soft_qp *)base);
}

enum rvcm_soft_fsm_action rvcm_soft_qp_step(struct rvcm_soft_qp *qp, enum rvcm_soft_fsm_event event,
					    const struct rvcm_soft_end *end)
{
	struct rvcm_soft_fsm_step step;
	uint32_t bit = 0;

	rvcm_lock_acquire(&qp->dev->lock);
	step = rvcm_soft_fsm_next(rvcm_soft_qp_now(qp), event);
	atomic_store_explicit(&qp->state, (uint8_t)step.next, memory_order_relaxed);
	if (step.action == RVCM_SOFT_FSM_ESTABLISH)
		bit = RVCM_SOFT_NOTE_ESTABLISHED;
	else if (step.action == RVCM_SOFT_FSM_REPORT)
		bit = RVCM_SOFT_NOTE_FAILED;
	else if (step.action == RVCM_SOFT_FSM_END)
		bit = RVCM_SOFT_NOTE_ENDED;
	if (bit & (RVCM_SOFT_NOTE_FAILED | RVCM_SOFT_NOTE_ENDED))
		qp->end = *end;
	qp->note_bits |= bit;
	if (bit)
		rvcm_soft_event_post_locked(qp->dev, &qp->note);
	rvcm_lock_release(&qp->dev->lock);
	return step.action;
}

/* The peer did not end its side in time. */
static void qp_close_timeout(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_soft_qp *qp = rvcm_container_of(timer, struct rvcm_soft_qp, timer);
	struct rvcm_soft_end end = { .status = RVCM_STATUS_RESPONSE_TIMEOUT, .err = ETIMEDOUT };

	(void)now_ns;
	(void)rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_LOST, &end);
	(void)shutdown(qp->fd, SHUT_RDWR);
}

static void qp_abandon(struct rvcm_soft_qp *qp)
{
	rvcm_timer_cancel(&qp->dev->alarm.timers, &qp->timer);
	rvcm_soft_event_forget(qp->dev, &qp->note);
	rvcm_soft_cm_unwatch(qp->dev, qp->fd);
	rvcm_soft_sock_close(qp->fd, false);
	qp->fd = -1;
}

bool rvcm_soft_qp_ask(struct rvcm_soft_qp *qp, enum rvcm_soft_ask what)
{
	bool attached;

	rvcm_lock_acquire(&qp->dev->lock);
	attached = qp->attached;
	if (attached) {
		qp->asked |= what;
		if (rvcm_list_empty(&qp->asked_node))
			rvcm_list_add_tail(&qp->cq->asked, &qp->asked_node);
	}
	rvcm_lock_release(&qp->dev->lock);
	if (attached)
		rvcm_soft_cq_kick(qp->cq);
	return attached;
}

int rvcm_soft_qp_disconnect(struct rvcm_dev_qp *base)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	enum rvcm_soft_fsm_action action = rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_DISCONNECT, NULL);

	if (action == RVCM_SOFT_FSM_ABANDON)
		qp_abandon(qp);
	if (action != RVCM_SOFT_FSM_FINISH)
		return 0;
	rvcm_timer_cancel(&qp->dev->alarm.timers, &qp->timer);
	rvcm_timer_init(&qp->timer, qp_close_timeout);
	rvcm_alarm_set(&qp->dev->alarm, &qp->timer, qp->dev->tun.close_timeout_ms);
	/* If it is attached only now, attach finds the state and finishes by itself. */
	if (!rvcm_soft_qp_ask(qp, RVCM_SOFT_ASK_FINISH))
		(void)shutdown(qp->fd, SHUT_WR);
	return 0;
}

int rvcm_soft_qp_attach(struct rvcm_dev_qp *base)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	enum rvcm_dev_qp_state state = rvcm_soft_qp_now(qp);
	int rc;

	if (qp->bound || state == RVCM_DEV_QP_INIT || state == RVCM_DEV_QP_CONNECTING)
		return -EINVAL;
	rc = rvcm_soft_cq_attach(qp->cq, qp);
	if (rc)
		return rc;
	atomic_fetch_add_explicit(&qp->refs, 1, memory_order_relaxed);
	rvcm_lock_acquire(&qp->dev->lock);
	qp->attached = true;
	state = rvcm_soft_qp_now(qp);
	rvcm_lock_release(&qp->dev->lock);
	rvcm_soft_cm_unwatch(qp->dev, qp->src.fd);
	qp->bound = true;
	if (state == RVCM_DEV_QP_CLOSING)
		qp->tx.finish = true;
	if (state == RVCM_DEV_QP_ERROR)
		rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, RVCM_STATUS_FLUSHED, 0);
	else
		rvcm_soft_cq_busy(qp);
	return 0;
}

/*
 * The end of a connection that was being ended in order already: what was handed to the socket
 * still arrives, and as much of the rest as the socket takes now. Then the stream ends, and the
 * peer sees it end: in the middle of a frame if something was left.
 */
static void qp_detach_closing(struct rvcm_soft_qp *qp)
{
	bool all;

	rvcm_soft_tx_push(qp);
	if (qp->dead)
		return;
	rvcm_soft_sq_retire(qp);
	all = !qp->tx.err && !rvcm_soft_tx_pending(qp);
	rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_DETACH, all ? RVCM_STATUS_OK : RVCM_STATUS_CLOSED, 0);
	(void)shutdown(qp->fd, SHUT_WR);
}

static void qp_detach_stream(struct rvcm_soft_qp *qp)
{
	if (qp->dead)
		return;
	if (rvcm_soft_qp_now(qp) == RVCM_DEV_QP_CLOSING) {
		qp_detach_closing(qp);
		return;
	}
	rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_DETACH, RVCM_STATUS_CLOSED, 0);
	rvcm_soft_sock_break(qp->fd);
}

void rvcm_soft_qp_detach(struct rvcm_dev_qp *base)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);

	if (!qp->bound)
		return;
	qp_detach_stream(qp);
	rvcm_soft_cq_detach(qp->cq, qp);
	rvcm_list_del(&qp->pool_node);
	rvcm_list_del(&qp->srq_node);
	rvcm_lock_acquire(&qp->dev->lock);
	qp->attached = false;
	rvcm_list_del(&qp->asked_node);
	qp->asked = 0;
	rvcm_lock_release(&qp->dev->lock);
	qp->bound = false;
	if (!qp->in_cq)
		rvcm_soft_qp_put(qp);
}

/* Receives that were posted and not used. */
static void qp_flush_receives(struct rvcm_soft_qp *qp, enum rvcm_status status)
{
	struct rvcm_soft_rq *rq = &qp->rq;

	while (!rvcm_ring_empty(&rq->index)) {
		struct rvcm_soft_recv *recv = &rq->ring[rvcm_ring_pop(&rq->index)];
		struct rvcm_dev_wc *wc = rvcm_soft_cq_push(qp->cq, qp);

		wc->wr_id = recv->wr_id;
		wc->op = RVCM_DEV_OP_RECV;
		wc->status = status;
		wc->vendor_err = qp->vendor_err;
	}
}

enum rvcm_status rvcm_soft_qp_lost_status(int err)
{
	if (err == EFAULT)
		return RVCM_STATUS_LOCAL_PROTECTION;
	return err == ETIMEDOUT ? RVCM_STATUS_RETRY_EXCEEDED : RVCM_STATUS_CONNECTION_LOST;
}

void rvcm_soft_qp_over(struct rvcm_soft_qp *qp, enum rvcm_soft_fsm_event event,
		       enum rvcm_status status, int err)
{
	struct rvcm_soft_end end = { .status = status, .err = err };
	/* A lost connection or peer hits all alike. Any other end has one cause, and the rest is
	 * flushed.
	 */
	bool all = status == RVCM_STATUS_CONNECTION_LOST || status == RVCM_STATUS_RETRY_EXCEEDED;
	enum rvcm_status flush = all ? status : RVCM_STATUS_FLUSHED;

	if (qp->dead)
		return;
	qp->dead = true;
	qp->base.err = err;
	rvcm_soft_cq_quiet(qp);
	rvcm_soft_tx_drop(qp);
	rvcm_soft_sq_abort(qp, flush);
	rvcm_soft_message_drop(qp, flush);
	rvcm_soft_rx_drop(qp);
	qp_flush_receives(qp, flush);
	(void)rvcm_soft_qp_step(qp, event, &end);
	if (event == RVCM_SOFT_FSM_PEER_CLOSED)
		(void)shutdown(qp->fd, SHUT_WR);
}

void rvcm_soft_qp_service(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	if (RVCM_SOFT_UNLIKELY(qp->dead))
		return;
	rvcm_soft_rx_service(qp);
	if (RVCM_SOFT_UNLIKELY(qp->dead))
		return;
	if (rvcm_soft_tx_pending(qp))
		rvcm_soft_tx_push(qp);
	rvcm_soft_sq_retire(qp);
	if (RVCM_SOFT_UNLIKELY(tx->finish) && !tx->finished && qp->sq.done == qp->sq.posted &&
	    tx->sent == tx->queued) {
		tx->finished = true;
		(void)shutdown(qp->fd, SHUT_WR);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How connections end, and what it is called. Whoever hears first of an end says goodbye to the
 * peer; DISCONNECTED is reported once. An error that the data side has not polled yet knows best
 * why a connection broke, so where there may be one the report waits for it, a little.
 */
#include <errno.h>

#include "dev/verbs/verbs_impl.h"

#define END_GRACE_MS 500u

static struct rvcm_verbs_dev *end_dev(const struct rvcm_verbs_qp *qp)
{
	return rvcm_verbs_dev_of(qp->base.dev);
}

static void end_timer(struct rvcm_verbs_qp *qp, rvcm_timer_fn *fn, uint32_t after_ms)
{
	rvcm_timer_cancel(&end_dev(qp)->alarm.timers, &qp->timer);
	rvcm_timer_init(&qp->timer, fn);
	rvcm_alarm_set(&end_dev(qp)->alarm, &qp->timer, after_ms);
}

/* Tell the peer, or answer it: rdma_disconnect(3). Fails where nothing is left to be ended. What
   would not arrive is said later. */
static void end_hang_up(struct rvcm_verbs_qp *qp)
{
	if (qp->hung_up || !qp->id)
		return;
	qp->hung_up = true;
	if (!end_dev(qp)->iwarp) /* there the kernel does it, in order */
		rvcm_verbs_move_error(qp);
	if (rvcm_verbs_farewell_possible(end_dev(qp), qp->id))
		(void)rdma_disconnect(qp->id);
}

static void end_now(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_verdict verdict = { .type = RVCM_DEV_EVENT_DISCONNECTED,
					      .status = qp->status,
					      .err = qp->err };

	end_hang_up(qp);
	rvcm_timer_cancel(&end_dev(qp)->alarm.timers, &qp->timer);
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_ERROR);
	if (qp->was_established)
		rvcm_verbs_event_end(qp, &verdict);
}

static void end_because(struct rvcm_verbs_qp *qp, enum rvcm_status status, int err)
{
	if (qp->status != RVCM_STATUS_OK)
		return;
	qp->status = status;
	qp->err = err;
}

static void end_late(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_qp *qp = rvcm_container_of(timer, struct rvcm_verbs_qp, timer);

	(void)now_ns;
	if (qp->ending == RVCM_VERBS_ENDING_FLUSHED)
		end_because(qp, RVCM_STATUS_CONNECTION_LOST, 0);
	end_now(qp);
}

/* What was posted did not get done, or the peer did not answer, in time. */
static void end_close_late(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_qp *qp = rvcm_container_of(timer, struct rvcm_verbs_qp, timer);

	(void)now_ns;
	end_because(qp, RVCM_STATUS_RESPONSE_TIMEOUT, ETIMEDOUT);
	rvcm_verbs_move_error(qp);
	end_now(qp);
}

/* Have the data side empty its queue. False: there is nobody who would. */
static bool end_ask(struct rvcm_verbs_qp *qp)
{
	bool attached;

	atomic_store_explicit(&qp->closing, true, memory_order_release);
	rvcm_lock_acquire(&qp->lock);
	attached = qp->attached;
	if (attached)
		rvcm_verbs_sq_ask(qp);
	rvcm_lock_release(&qp->lock);
	return attached;
}

/* The end is certain; whether the data side knows a better reason, it may still say. */
static void end_soon(struct rvcm_verbs_qp *qp, enum rvcm_verbs_ending ending)
{
	if (qp->end_reported || qp->ending)
		return;
	qp->ending = ending;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_CLOSING);
	if (end_ask(qp))
		end_timer(qp, end_late, END_GRACE_MS);
	else
		end_now(qp);
}

void rvcm_verbs_end_attempt(struct rvcm_verbs_qp *qp, const struct rvcm_verbs_verdict *verdict)
{
	char name[RVCM_ADDR_STRLEN];

	rvcm_info(RVCM_LOG_EP_CTRL, "%s: no connection with %s: %s (errno %d)",
		  end_dev(qp)->base.attr.name, rvcm_addr_format(&qp->peer, name, sizeof(name)),
		  rvcm_status_text(verdict->status), verdict->err);
	rvcm_timer_cancel(&end_dev(qp)->alarm.timers, &qp->timer);
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_ERROR);
	rvcm_verbs_event_end(qp, verdict);
}

void rvcm_verbs_end_disconnected(struct rvcm_verbs_qp *qp, const struct rvcm_verbs_verdict *verdict)
{
	struct rvcm_verbs_verdict lost = { .type = RVCM_DEV_EVENT_CONNECT_ERROR,
					   .status = RVCM_STATUS_CONNECTION_LOST,
					   .err = verdict->err,
					   .words = verdict->words,
					   .number = verdict->number };
	bool ours = qp->hung_up;
	bool failed = !ours && rvcm_verbs_move_failed(qp);

	if (!qp->was_established) {
		if (rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING)
			rvcm_verbs_end_attempt(qp, &lost);
		return;
	}
	end_hang_up(qp);
	if (ours && verdict->status != RVCM_STATUS_OK)
		end_because(qp, RVCM_STATUS_RESPONSE_TIMEOUT, verdict->err);
	else
		end_because(qp, verdict->status, verdict->err);
	if (ours || (!failed && verdict->status == RVCM_STATUS_OK)) {
		end_now(qp);
		return;
	}
	end_because(qp, RVCM_STATUS_REMOTE_ABORTED, 0);
	end_soon(qp, RVCM_VERBS_ENDING_DISCONNECTED);
}

static void end_failed(struct rvcm_verbs_qp *qp)
{
	if (qp->fail_status == RVCM_STATUS_FLUSHED) { /* something else was first */
		if (qp->ending)
			end_now(qp);
		else
			end_soon(qp, RVCM_VERBS_ENDING_FLUSHED);
		return;
	}
	qp->status = qp->fail_status;
	qp->end_vendor = qp->fail_vendor;
	end_now(qp);
}

static void end_drained(struct rvcm_verbs_qp *qp)
{
	if (qp->ending)
		end_now(qp);
	else
		end_hang_up(qp);
}

static void end_detached(struct rvcm_verbs_qp *qp, bool drained)
{
	if (!drained)
		end_because(qp, RVCM_STATUS_CLOSED, 0);
	end_now(qp);
}

/* The device says that the QP is in error. */
static void end_fatal(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_verdict verdict = { .type = RVCM_DEV_EVENT_CONNECT_ERROR,
					      .status = qp->async_status };

	if (rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING) {
		rvcm_verbs_end_attempt(qp, &verdict);
		return;
	}
	if (qp->hung_up || !qp->was_established)
		return;
	end_because(qp, qp->async_status, 0);
	end_soon(qp, RVCM_VERBS_ENDING_FATAL);
}

void rvcm_verbs_end_news(struct rvcm_verbs_qp *qp, uint32_t news)
{
	if (news & RVCM_VERBS_NEWS_TALKED &&
	    rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING)
		(void)rdma_notify(qp->id, IBV_EVENT_COMM_EST); /* late: ESTABLISHED came anyway */
	if (news & RVCM_VERBS_NEWS_FATAL)
		end_fatal(qp);
	if (qp->end_reported)
		return;
	if (news & RVCM_VERBS_NEWS_FAILED)
		end_failed(qp);
	else if (news & RVCM_VERBS_NEWS_DETACHED)
		end_detached(qp, news & RVCM_VERBS_NEWS_DRAINED);
	else if (news & RVCM_VERBS_NEWS_DRAINED)
		end_drained(qp);
}

void rvcm_verbs_end_removed(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_verdict verdict = { .type = RVCM_DEV_EVENT_CONNECT_ERROR,
					      .status = RVCM_STATUS_DEVICE_REMOVED,
					      .err = ENODEV };

	rvcm_verbs_move_error(qp);
	if (rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING) {
		rvcm_verbs_end_attempt(qp, &verdict);
		return;
	}
	qp->status = RVCM_STATUS_DEVICE_REMOVED;
	qp->err = ENODEV;
	if (qp->was_established)
		end_now(qp);
}

void rvcm_verbs_end_silent(struct rvcm_verbs_qp *qp)
{
	end_because(qp, RVCM_STATUS_RETRY_EXCEEDED, ETIMEDOUT);
	rvcm_verbs_move_error(qp);
	end_now(qp);
}

/* Of an attempt nothing is left and nothing more is said. */
static void end_abandon(struct rvcm_verbs_qp *qp)
{
	rvcm_timer_cancel(&end_dev(qp)->alarm.timers, &qp->timer);
	rvcm_list_del(&qp->end_node);
	qp->end_reported = true;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_ERROR);
	rvcm_verbs_orphan(qp);
}

int rvcm_verbs_end_disconnect(struct rvcm_dev_qp *base)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);

	switch (rvcm_verbs_qp_state(base)) {
	case RVCM_DEV_QP_INIT:
	case RVCM_DEV_QP_CONNECTING:
		end_abandon(qp);
		return 0;
	case RVCM_DEV_QP_RTS:
		break;
	default:
		return 0;
	}
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_CLOSING);
	end_timer(qp, end_close_late, end_dev(qp)->tun.close_timeout_ms);
	if (!end_ask(qp))
		end_hang_up(qp);
	return 0;
}

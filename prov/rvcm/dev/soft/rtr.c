/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ready-to-receive message, again. In peer-to-peer mode our first frame, of no payload, tells
 * the peer that it may send (RFC 6581 section 9.2), and TCP delivers it; but a peer may not look:
 * the kernel's siw begins to watch for it a moment after it has sent its reply, and what came
 * between it sees only when more comes. Its consumer waits for that, and ours perhaps for its
 * consumer. So if nothing has come from the peer after a while a WRITE of no bytes follows, which
 * is a message of its own, names no memory and means nothing to a peer that has seen the first:
 * after rtr_again_ms, then after twice as long, and so on, REPEATS times.
 *
 * Control keeps the time, data says it: between two messages, for only there a frame may begin.
 * What data has not said yet, for it computes, is not counted.
 */
#include "dev/soft/soft_impl.h"

#define RTR_REPEATS 4u

static void rtr_due(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_soft_qp *qp = rvcm_container_of(timer, struct rvcm_soft_qp, timer);
	uint8_t repeats;

	(void)now_ns;
	if (rvcm_soft_qp_now(qp) != RVCM_DEV_QP_RTS)
		return;
	rvcm_lock_acquire(&qp->dev->lock);
	repeats = qp->rtr_repeats;
	rvcm_lock_release(&qp->dev->lock);
	if (repeats == RTR_REPEATS)
		return;
	(void)rvcm_soft_qp_ask(qp, RVCM_SOFT_ASK_RTR);
	rvcm_alarm_set(&qp->dev->alarm, &qp->timer, (uint64_t)qp->dev->tun.rtr_again_ms << repeats);
}

void rvcm_soft_rtr_watch(struct rvcm_soft_qp *qp)
{
	qp->tx.awaited = RVCM_SOFT_AWAITED_AS_SIGN;
	rvcm_timer_init(&qp->timer, rtr_due);
	rvcm_alarm_set(&qp->dev->alarm, &qp->timer, qp->dev->tun.rtr_again_ms);
}

/* Who is in the middle of a message, or ends, has more to say anyway. */
void rvcm_soft_rtr_repeat(struct rvcm_soft_qp *qp)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_WRITE, .last = true };
	const struct rvcm_soft_tx *tx = &qp->tx;

	if (qp->rtr_repeats == RTR_REPEATS)
		return;
	qp->rtr_repeats++;
	if (qp->dead || tx->awaited != RVCM_SOFT_AWAITED_AS_SIGN || tx->message_open ||
	    tx->response_open || tx->finish || tx->err)
		return;
	(void)rvcm_soft_tx_frame(qp, &hdr, NULL, 0);
}

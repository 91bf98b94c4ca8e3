/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loans: where the conn lasts, the memory of a tail that the device is through with is wanted for
 * as long as the message may have to be sent again. The acknowledgement ends that, and mostly comes
 * with the peer's next message. But who has got a message may go away, to compute or to wait for us
 * by other means, and our owner is not to wait for that:
 *
 *   lent -> acknowledged
 *        -> not after ASK_NS: the peer is asked (confirm.c)
 *        -> not after COPY_NS: copied, and sent from there if need be
 *
 * Both times count from the loan, or from the last one that was acknowledged: while the peer goes
 * on, nothing is copied. Before we sleep both are over. A loan that is the only one is copied after
 * LONE_NS already, if there is nothing else to do: its owner may wait for that before it posts the
 * receive for the answer, which would else come too early, and be copied then. A written tail is
 * too long to be copied; its message says AT_ONCE if its owner waits for it.
 */
#include <string.h>

#include "base/stat.h"
#include "conn/conn_impl.h"
#include "conn/tx.h"

#define LONE_NS 5000u
#define ASK_NS  150000u
#define COPY_NS 300000u

static bool is_on_loan(const struct rvcm_buf *buf)
{
	return buf->flags & RVCM_BUF_LENT && !(buf->flags & RVCM_BUF_INUSE) && buf->tail.bytes &&
	       !buf->tail.written;
}

/* NULL: there is no memory. */
static struct rvcm_buf *copy_of(struct rvcm_conn *conn, const struct rvcm_buf *buf)
{
	size_t bytes = buf->bytes + buf->tail.bytes;
	struct rvcm_buf *copy = rvcm_buf_get(&conn->carrier->bufs, bytes);

	if (!copy)
		return NULL;
	memcpy(copy->frame, buf->frame, buf->bytes);
	memcpy(copy->frame + buf->bytes, buf->tail.addr, buf->tail.bytes);
	copy->bytes = (uint32_t)bytes;
	copy->flags = RVCM_BUF_HELD;
	return copy;
}

/* A copy takes the place of each, and the owners are told by rvcm_tx_give_back. */
static void copy_all(struct rvcm_conn *conn)
{
	struct rvcm_buf *buf, *copy, **at;

	for (at = &conn->replay.first; (buf = *at); at = &(*at)->next) {
		copy = is_on_loan(buf) ? copy_of(conn, buf) : NULL;
		if (!copy)
			continue;
		copy->next = buf->next;
		*at = copy;
		if (!copy->next)
			conn->replay.end = &copy->next;
		buf->flags &= ~(uint32_t)RVCM_BUF_HELD;
		rvcm_buf_queue_add(&conn->unlent, buf);
		conn->loans--;
		conn->loan_ns = 0;
		rvcm_stat_inc(&conn->carrier->stats.loans_copied);
	}
}

bool rvcm_loan_serve(struct rvcm_conn *conn)
{
	uint64_t now = rvcm_carrier_now(conn->carrier);
	bool sleepy = conn->carrier->sleepy, lone = conn->loans == 1 && conn->carrier->idle, some;

	if (!conn->loan_ns)
		conn->loan_ns = now;
	if (now - conn->loan_ns >= (lone ? LONE_NS : COPY_NS) || sleepy)
		copy_all(conn);
	conn->loan_late = conn->loans && (now - conn->loan_ns >= ASK_NS || sleepy);
	if (conn->loan_late)
		(void)rvcm_confirm_ask(conn); /* or in the next turn */
	some = conn->unlent.first;
	rvcm_tx_give_back(conn);
	if (some && conn->loans)
		rvcm_conn_schedule(conn);
	return some || !conn->loans;
}

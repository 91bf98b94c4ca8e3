/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active side: TCP connect, our MPA request, the peer's reply. One timer bounds all of it. Once
 * a connection stands and until it is attached, control watches it for the peer's hang-up.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/log.h"
#include "dev/soft/soft_impl.h"

/* What an errno of the attempt means; the last row is for all others. */
static const struct {
	int err;
	struct rvcm_soft_end end;
} dial_ends[] = {
	{ ECONNREFUSED,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_REFUSED,
	    .reject = RVCM_DEV_REJECT_NOT_LISTENING } },
	{ ETIMEDOUT,
	  { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_CONNECT_TIMEOUT } },
	{ EHOSTUNREACH, { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_UNREACHABLE } },
	{ ENETUNREACH, { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_UNREACHABLE } },
	{ EHOSTDOWN, { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_UNREACHABLE } },
	{ ENETDOWN, { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_UNREACHABLE } },
	/* connect(2) from a loopback address to another host */
	{ EINVAL, { .type = RVCM_DEV_EVENT_UNREACHABLE, .status = RVCM_STATUS_UNREACHABLE } },
	/* connect(2); the address itself is bound before */
	{ EADDRNOTAVAIL, { .type = RVCM_DEV_EVENT_ADDR_ERROR, .status = RVCM_STATUS_NO_PORT } },
	{ ENODEV, { .type = RVCM_DEV_EVENT_ADDR_ERROR, .status = RVCM_STATUS_DEVICE_REMOVED } },
	{ EAFNOSUPPORT, { .type = RVCM_DEV_EVENT_ADDR_ERROR, .status = RVCM_STATUS_UNREACHABLE } },
	/* rvcm_soft_mpa_decode's */
	{ EPROTO,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_NOT_RNIC,
	    .reject = RVCM_DEV_REJECT_PROTOCOL } },
	{ EPROTONOSUPPORT,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_NOT_RNIC,
	    .reject = RVCM_DEV_REJECT_PROTOCOL } },
	{ EMSGSIZE,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_NOT_RNIC,
	    .reject = RVCM_DEV_REJECT_PROTOCOL } },
	{ EBADMSG,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_NOT_RNIC,
	    .reject = RVCM_DEV_REJECT_PROTOCOL } },
	{ EOPNOTSUPP,
	  { .type = RVCM_DEV_EVENT_REJECTED,
	    .status = RVCM_STATUS_NOT_RNIC,
	    .reject = RVCM_DEV_REJECT_PROTOCOL } },
	{ 0, { .type = RVCM_DEV_EVENT_CONNECT_ERROR, .status = RVCM_STATUS_CONNECTION_LOST } },
};

static void dial_hang_up(struct rvcm_soft_qp *qp)
{
	rvcm_timer_cancel(&qp->dev->alarm.timers, &qp->timer);
	rvcm_soft_cm_unwatch(qp->dev, qp->fd);
	rvcm_soft_sock_close(qp->fd, false);
	qp->fd = -1;
	qp->src.fd = -1;
}

/* A limit of this process or host, which all attempts meet until somebody raises it. err: positive.
 */
static void dial_starve(struct rvcm_soft_dev *dev, int err)
{
	char text[RVCM_LIMIT_TEXT_MAX];

	rvcm_complain(&dev->complaints[RVCM_SOFT_COMPLAINT_CONNECT], dev->base.attr.name,
		      "cannot connect for now: %s", rvcm_limit_text(err, text));
}

/* err: positive. */
static void dial_fail(struct rvcm_soft_qp *qp, int err)
{
	struct rvcm_soft_end end;
	size_t i = 0;
	char name[RVCM_ADDR_STRLEN];

	while (dial_ends[i].err && dial_ends[i].err != err)
		i++;
	end = dial_ends[i].end;
	end.err = err;
	qp->private_bytes = 0;
	if (err == EADDRNOTAVAIL)
		dial_starve(qp->dev, err);
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: no connection to %s: %s (errno %d)",
		  qp->dev->base.attr.name, rvcm_addr_format(&qp->peer, name, sizeof(name)),
		  rvcm_status_text(end.status), err);
	dial_hang_up(qp);
	(void)rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_FAIL, &end);
}

static void dial_rejected(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_end end = {
		.type = RVCM_DEV_EVENT_REJECTED,
		.status = RVCM_STATUS_REJECTED,
		.reject = RVCM_DEV_REJECT_CONSUMER,
		.err = ECONNREFUSED,
	};

	dial_hang_up(qp);
	(void)rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_FAIL, &end);
}

static void dial_timeout(struct rvcm_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	dial_fail(rvcm_container_of(timer, struct rvcm_soft_qp, timer), ETIMEDOUT);
}

/* Start TCP's part: 0, or a negative errno. */
static int dial_start(struct rvcm_soft_qp *qp)
{
	struct rvcm_addr from = qp->dev->base.attr.addr;
	struct sockaddr_storage ss;
	socklen_t len = rvcm_soft_sock_from_addr(&from, &ss);
	int one = 1;

	/* The port is chosen when the peer is known: the same one serves many peers. */
	(void)setsockopt(qp->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (!qp->routed && bind(qp->fd, (struct sockaddr *)&ss, len) < 0)
		return errno == EADDRNOTAVAIL ? -ENODEV : -errno;
	len = rvcm_soft_sock_from_addr(&qp->peer, &ss);
	if (connect(qp->fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return -errno;
	return rvcm_soft_cm_watch(qp->dev, &qp->src, EPOLLOUT);
}

int rvcm_soft_dial_connect(struct rvcm_dev_qp *base, const struct rvcm_addr *peer,
			   const void *private_data, size_t private_bytes)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	struct rvcm_soft_dev *dev = qp->dev;
	int rc;

	if (private_bytes > dev->base.attr.private_data_bytes ||
	    rvcm_soft_qp_now(qp) != RVCM_DEV_QP_INIT)
		return -EINVAL;
	rc = rvcm_soft_sock_open(&dev->base.attr.addr);
	if (rc < 0) {
		dial_starve(dev, -rc);
		return rc;
	}
	qp->fd = rc;
	qp->src.fd = rc;
	qp->peer = *peer;
	qp->opener = true;
	if (rvcm_addr_is_linklocal(peer) && !qp->peer.scope)
		qp->peer.scope = dev->base.attr.addr.scope;
	if (private_bytes)
		memcpy(qp->shake.buf, private_data, private_bytes);
	qp->private_bytes = private_bytes;
	rvcm_soft_sock_tune(qp->fd, &dev->tun);
	rvcm_timer_init(&qp->timer, dial_timeout);
	(void)rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_CONNECT, NULL);
	rc = peer->family == dev->base.attr.addr.family ? dial_start(qp) : -EAFNOSUPPORT;
	if (rc) {
		dial_fail(qp, -rc);
		return 0;
	}
	rvcm_soft_event_note(qp, RVCM_SOFT_NOTE_ADDR);
	rvcm_alarm_set(&dev->alarm, &qp->timer, dev->tun.connect_timeout_ms);
	return 0;
}

/* TCP has connected, or not. */
static void dial_tcp(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_mpa_frame request;
	struct rvcm_addr own;
	int err = rvcm_soft_sock_error(qp->fd);

	/* RFC 9293 section 3.5: on one host a SYN to a port nobody listens on may meet itself. */
	if (!err && rvcm_soft_sock_name(qp->fd, &own) == 0 && rvcm_addr_equal(&own, &qp->peer))
		err = ECONNREFUSED;
	if (!err) {
		rvcm_soft_shake_request(&qp->dev->tun, &request);
		request.private_data = qp->shake.buf;
		request.private_bytes = (uint16_t)qp->private_bytes;
		err = -rvcm_soft_shake_write(qp->fd, &request, true);
	}
	if (err) {
		dial_fail(qp, err);
		return;
	}
	qp->tcp_up = true;
	qp->private_bytes = 0;
	rvcm_soft_cm_rewatch(qp->dev, &qp->src, EPOLLIN);
	rvcm_soft_event_note(qp, RVCM_SOFT_NOTE_ROUTE);
}

/* What the peer's reply asks for cannot be had (RFC 6581 section 9): it is told so. */
static void dial_terminate(struct rvcm_soft_qp *qp, const struct rvcm_soft_link *link)
{
	struct rvcm_soft_end end = {
		.type = RVCM_DEV_EVENT_CONNECT_ERROR,
		.status = RVCM_STATUS_REJECTED_CAPS,
		.err = EPROTO,
	};

	rvcm_warn(RVCM_LOG_EP_CTRL, "%s: terminating a connection at its set-up: %s: %s",
		  qp->dev->base.attr.name, rvcm_soft_wire_term_layer_text(link->term),
		  rvcm_soft_wire_term_text(link->term));
	rvcm_soft_linger_close(qp->dev, qp->fd);
	qp->fd = -1;
	dial_hang_up(qp);
	(void)rvcm_soft_qp_step(qp, RVCM_SOFT_FSM_FAIL, &end);
}

static void dial_reply(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_mpa_frame own, reply;
	struct rvcm_soft_link link;
	bool marked;
	int rc = rvcm_soft_shake_read(&qp->shake, qp->fd, RVCM_SOFT_MPA_REPLY, &reply, &marked);

	if (rc == 0)
		return;
	if (rc < 0) {
		dial_fail(qp, -rc);
		return;
	}
	qp->private_data = reply.private_data;
	qp->private_bytes = reply.private_bytes;
	if (reply.reject) {
		dial_rejected(qp);
		return;
	}
	rvcm_soft_shake_request(&qp->dev->tun, &own);
	rvcm_soft_shake_agree(&own, &reply, marked, &qp->dev->tun, &link);
	rvcm_timer_cancel(&qp->dev->alarm.timers, &qp->timer);
	rvcm_soft_cm_unwatch(qp->dev, qp->fd);
	rc = rvcm_soft_shake_begin(qp->fd, &link);
	if (link.term)
		dial_terminate(qp, &link);
	else if (rc)
		dial_fail(qp, -rc);
	else
		rvcm_soft_dial_established(qp, &link);
}

void rvcm_soft_dial_established(struct rvcm_soft_qp *qp, const struct rvcm_soft_link *link)
{
	uint32_t caps = qp->dev->base.attr.caps;

	if (!link->own_kind)
		caps &= ~(uint32_t)(RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64 | RVCM_DEV_CAP_ATOMIC);
	if (!link->ord)
		caps &= ~(uint32_t)(RVCM_DEV_CAP_READ | RVCM_DEV_CAP_ATOMIC);
	qp->base.caps = caps;
	qp->crc = link->crc;
	qp->own_kind = link->own_kind;
	qp->ird = link->ird;
	qp->ord = link->ord;
	if (qp->opener && link->rtr == RVCM_SOFT_MPA_RTR_READ) {
		qp->tx.read_msn++;
		qp->rx.rtr_due = true;
	}
	if (qp->opener && link->rtr)
		rvcm_soft_rtr_watch(qp);
	qp->src.fd = qp->fd;
	(void)rvcm_soft_cm_watch(qp->dev, &qp->src, EPOLLRDHUP);
	rvcm_soft_silence_watch(qp);
	(void)rvcm_soft_qp_step(qp, qp->opener ? RVCM_SOFT_FSM_REPLY : RVCM_SOFT_FSM_ACCEPT, NULL);
}

/* The peer of a connection that is not attached has hung up, or the connection broke. */
static void dial_hung_up(struct rvcm_soft_qp *qp)
{
	char c;
	ssize_t n = recv(qp->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	struct rvcm_soft_end end = { .status = RVCM_STATUS_OK };

	if (n < 0 && errno == EAGAIN)
		return;
	rvcm_soft_cm_unwatch(qp->dev, qp->fd);
	if (n > 0 && rvcm_soft_qp_now(qp) == RVCM_DEV_QP_RTS)
		return; /* what the peer sent before waits for attach, and so does its end */
	if (atomic_load_explicit(&qp->silent, memory_order_relaxed))
		end.err = ETIMEDOUT;
	else if (n < 0)
		end.err = errno;
	if (end.err)
		end.status = rvcm_soft_qp_lost_status(end.err);
	rvcm_timer_cancel(&qp->dev->alarm.timers, &qp->timer);
	(void)rvcm_soft_qp_step(qp, end.err ? RVCM_SOFT_FSM_LOST : RVCM_SOFT_FSM_PEER_CLOSED, &end);
	(void)shutdown(qp->fd, SHUT_WR);
}

void rvcm_soft_dial_ready(struct rvcm_soft_qp *qp)
{
	bool attached;

	if (rvcm_soft_qp_now(qp) == RVCM_DEV_QP_CONNECTING) {
		if (qp->tcp_up)
			dial_reply(qp);
		else
			dial_tcp(qp);
		return;
	}
	rvcm_lock_acquire(&qp->dev->lock);
	attached = qp->attached;
	rvcm_lock_release(&qp->dev->lock);
	if (attached)
		rvcm_soft_cm_unwatch(qp->dev, qp->fd); /* the data side's by now */
	else
		dial_hung_up(qp);
}

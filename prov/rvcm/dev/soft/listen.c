/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The passive side: listeners, and the requests that come in on them. A request is a connection
 * whose MPA request frame is being read (a timer bounds that), then one that is reported and waits
 * to be accepted or rejected; how long it waits is its owner's business, and the opener's patience.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "dev/soft/soft_impl.h"

#define LISTEN_RETRY_MS 100u

/*
 * Linux drops a SYN that finds the queue full, and its client comes again after 1, 3, 7 s: a burst
 * would take longer than who connects waits. handshakes_max is what bounds requests.
 */
#define LISTEN_BACKLOG_MIN 1024

static void listen_retry(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_dev_listener *listener =
		rvcm_container_of(timer, struct rvcm_dev_listener, retry);

	(void)now_ns;
	rvcm_soft_cm_rewatch(listener->dev, &listener->src, EPOLLIN);
}

static int listen_bind(struct rvcm_dev_listener *listener, struct rvcm_addr *addr, int backlog)
{
	struct sockaddr_storage ss;
	socklen_t len = rvcm_soft_sock_from_addr(addr, &ss);
	int one = 1;
	int fd = listener->src.fd;

	if (backlog < LISTEN_BACKLOG_MIN)
		backlog = LISTEN_BACKLOG_MIN;
	/* A port whose last connections are in TIME_WAIT may be had again. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	rvcm_soft_sock_mark(fd, listener->dev->tun.dscp);
	if (bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return rvcm_soft_sock_name(fd, &listener->addr);
}

int rvcm_soft_listen_open(struct rvcm_dev *base, struct rvcm_addr *addr, int backlog, void *ctx,
			  struct rvcm_dev_listener **out)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);
	struct rvcm_dev_listener *listener;
	int rc;

	if (addr->family != base->attr.addr.family)
		return -EADDRNOTAVAIL;
	listener = rvcm_mem_zalloc(sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->dev = dev;
	listener->ctx = ctx;
	rvcm_timer_init(&listener->retry, listen_retry);
	listener->src.kind = RVCM_SOFT_SRC_LISTENER;
	rc = rvcm_soft_sock_open(addr);
	if (rc < 0)
		goto err_free;
	listener->src.fd = rc;
	rc = listen_bind(listener, addr, backlog);
	if (rc)
		goto err_close;
	rc = rvcm_soft_cm_watch(dev, &listener->src, EPOLLIN);
	if (rc)
		goto err_close;
	rvcm_list_add_tail(&dev->listeners, &listener->node);
	*addr = listener->addr;
	*out = listener;
	return 0;

err_close:
	close(listener->src.fd);
err_free:
	rvcm_mem_free(listener);
	return rc;
}

void rvcm_soft_listen_close(struct rvcm_dev_listener *listener)
{
	struct rvcm_soft_dev *dev = listener->dev;
	struct rvcm_list *node, *next;

	rvcm_list_for_each_safe (node, next, &dev->reqs) {
		struct rvcm_dev_req *req = rvcm_list_entry(node, struct rvcm_dev_req, node);

		if (req->listener == listener)
			rvcm_soft_listen_req_free(req);
	}
	rvcm_timer_cancel(&dev->alarm.timers, &listener->retry);
	rvcm_list_del(&listener->node);
	rvcm_soft_cm_unwatch(dev, listener->src.fd);
	close(listener->src.fd);
	rvcm_mem_free(listener);
}

void rvcm_soft_listen_req_free(struct rvcm_dev_req *req)
{
	struct rvcm_soft_dev *dev = req->dev;

	rvcm_soft_event_forget(dev, &req->note);
	rvcm_timer_cancel(&dev->alarm.timers, &req->timer);
	rvcm_list_del(&req->node);
	dev->n_reqs--;
	rvcm_soft_cm_unwatch(dev, req->src.fd);
	rvcm_soft_sock_close(req->src.fd, false);
	rvcm_mem_free(req);
}

static void listen_req_timeout(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_dev_req *req = rvcm_container_of(timer, struct rvcm_dev_req, timer);
	char name[RVCM_ADDR_STRLEN];

	(void)now_ns;
	rvcm_complain(&req->dev->complaints[RVCM_SOFT_COMPLAINT_STRANGER], req->dev->base.attr.name,
		      "%s connected and sent %zu bytes of an MPA request in %u ms, not all",
		      rvcm_addr_format(&req->peer, name, sizeof(name)), req->shake.have,
		      req->dev->tun.handshake_timeout_ms);
	rvcm_soft_listen_req_free(req);
}

/*
 * Whoever connects first and says nothing must not keep out those who come later and do: of the
 * requests that are not whole, the oldest goes. True: one went.
 */
static bool listen_make_room(struct rvcm_soft_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->reqs) {
		struct rvcm_dev_req *req = rvcm_list_entry(node, struct rvcm_dev_req, node);

		if (!rvcm_timer_is_set(&req->timer))
			continue;
		rvcm_soft_listen_req_free(req);
		rvcm_complain(&dev->complaints[RVCM_SOFT_COMPLAINT_CROWD], dev->base.attr.name,
			      "too many connect and say nothing: the oldest is dropped");
		return true;
	}
	return false;
}

/* Takes fd. */
static void listen_req_new(struct rvcm_dev_listener *listener, int fd, const struct rvcm_addr *peer)
{
	struct rvcm_soft_dev *dev = listener->dev;
	struct rvcm_dev_req *req = NULL;

	if (dev->n_reqs < dev->tun.handshakes_max || listen_make_room(dev))
		req = rvcm_mem_zalloc(sizeof(*req));
	if (!req) {
		rvcm_complain(&dev->complaints[RVCM_SOFT_COMPLAINT_CROWD], dev->base.attr.name,
			      "%u requests wait already: one more is dropped", dev->n_reqs);
		close(fd);
		return;
	}
	req->src.kind = RVCM_SOFT_SRC_REQ;
	req->src.fd = fd;
	req->dev = dev;
	req->listener = listener;
	req->peer = *peer;
	req->note.is_req = true;
	rvcm_list_init(&req->note.node);
	rvcm_timer_init(&req->timer, listen_req_timeout);
	rvcm_list_add_tail(&dev->reqs, &req->node);
	dev->n_reqs++;
	rvcm_soft_sock_tune(fd, &dev->tun);
	if (rvcm_soft_cm_watch(dev, &req->src, EPOLLIN)) {
		rvcm_soft_listen_req_free(req);
		return;
	}
	rvcm_alarm_set(&dev->alarm, &req->timer, dev->tun.handshake_timeout_ms);
	rvcm_soft_listen_req_ready(req); /* often it is here already */
}

void rvcm_soft_listen_ready(struct rvcm_dev_listener *listener)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct rvcm_addr peer;
	int fd = accept4(listener->src.fd, (struct sockaddr *)&ss, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);
	char text[RVCM_LIMIT_TEXT_MAX];

	if (fd >= 0) {
		rvcm_soft_sock_to_addr(&ss, &peer);
		listen_req_new(listener, fd, &peer);
		return;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
		return; /* that client is gone again: accept(2) */
	if ((errno == EMFILE || errno == ENFILE) && listen_make_room(listener->dev))
		return; /* the listener is ready still */
	rvcm_complain(&listener->dev->complaints[RVCM_SOFT_COMPLAINT_ACCEPT],
		      listener->dev->base.attr.name, "a connection cannot be accepted for now: %s",
		      rvcm_limit_text(errno, text));
	rvcm_soft_cm_rewatch(listener->dev, &listener->src, 0);
	rvcm_alarm_set(&listener->dev->alarm, &listener->retry, LISTEN_RETRY_MS);
}

/* Our last words to an opener: they are to arrive. */
static void listen_req_dismiss(struct rvcm_dev_req *req)
{
	rvcm_soft_linger_close(req->dev, req->src.fd);
	req->src.fd = -1;
	rvcm_soft_listen_req_free(req);
}

/* What rvcm_soft_mpa_decode finds wrong with a request. */
static const struct {
	int err;
	const char *text;
} listen_refusals[] = {
	{ -EPROTO, "sent something else than an MPA request" },
	{ -EPROTONOSUPPORT, "sent an MPA request of a revision that is neither 1 nor 2" },
	{ -EMSGSIZE, "sent an MPA request with more than 512 bytes of private data" },
	{ -EBADMSG, "sent an MPA request that is too short for the IRD and ORD it announces" },
	{ -EOPNOTSUPP, "sent an MPA request for markers, which are not offered" },
};

/* How others than RNICs begin. */
static const struct {
	const char *bytes;
	const char *hint;
} listen_greetings[] = {
	{ "\x16\x03", ": it looks like TLS" }, /* RFC 8446 section 5.1: handshake, 3.x */
	{ "GET ", ": it looks like HTTP" },     { "HEAD ", ": it looks like HTTP" },
	{ "POST ", ": it looks like HTTP" },    { "PUT ", ": it looks like HTTP" },
	{ "OPTIONS ", ": it looks like HTTP" }, { "PRI * HTTP/2", ": it looks like HTTP" },
	{ "SSH-", ": it looks like SSH" },      { "MPA ID Rep Frame", ": it is an MPA reply" },
};

static const char *listen_hint(const struct rvcm_soft_shake *shake)
{
	for (size_t i = 0; i < sizeof(listen_greetings) / sizeof(listen_greetings[0]); i++) {
		const char *bytes = listen_greetings[i].bytes;
		size_t n = strlen(bytes);

		if (shake->have >= n && memcmp(shake->buf, bytes, n) == 0)
			return listen_greetings[i].hint;
	}
	return "";
}

/* An opener may give up, and has its reasons; what is wrong is another's business as well. */
static void listen_req_explain(struct rvcm_dev_req *req, int err)
{
	char name[RVCM_ADDR_STRLEN];

	(void)rvcm_addr_format(&req->peer, name, sizeof(name));
	for (size_t i = 0; i < sizeof(listen_refusals) / sizeof(listen_refusals[0]); i++) {
		if (listen_refusals[i].err != err)
			continue;
		rvcm_complain(&req->dev->complaints[RVCM_SOFT_COMPLAINT_STRANGER],
			      req->dev->base.attr.name, "%s %s%s", name, listen_refusals[i].text,
			      listen_hint(&req->shake));
		return;
	}
	rvcm_info(
		RVCM_LOG_EP_CTRL,
		"%s: %s hung up before its MPA request was whole: %s (does it use another device?)",
		req->dev->base.attr.name, name, strerrordesc_np(-err));
}

/* Say why, tell the peer if it speaks MPA at all, and forget it. */
static void listen_req_refuse(struct rvcm_dev_req *req, int err)
{
	struct rvcm_soft_mpa_frame reply;

	listen_req_explain(req, err);
	if (err != -EOPNOTSUPP) { /* the frame is not there */
		rvcm_soft_listen_req_free(req);
		return;
	}
	rvcm_soft_shake_answer(&req->dev->tun, &req->frame, false, &reply);
	reply.reject = true;
	(void)rvcm_soft_shake_write(req->src.fd, &reply, false);
	listen_req_dismiss(req);
}

void rvcm_soft_listen_req_ready(struct rvcm_dev_req *req)
{
	struct rvcm_soft_dev *dev = req->dev;
	int rc;

	if (!rvcm_timer_is_set(&req->timer)) { /* it is whole, and its owner's turn */
		rvcm_soft_cm_unwatch(dev, req->src.fd);
		return;
	}
	rc = rvcm_soft_shake_read(&req->shake, req->src.fd, RVCM_SOFT_MPA_REQUEST, &req->frame,
				  &req->marked);
	if (rc == 0)
		return;
	if (rc < 0) {
		listen_req_refuse(req, rc);
		return;
	}
	rvcm_timer_cancel(&dev->alarm.timers, &req->timer);
	rvcm_soft_cm_unwatch(dev, req->src.fd);
	rvcm_lock_acquire(&dev->lock);
	rvcm_soft_event_post_locked(dev, &req->note);
	rvcm_lock_release(&dev->lock);
}

/* Has the opener given up meanwhile? Negative errno if so. */
static int listen_req_alive(const struct rvcm_dev_req *req)
{
	char c;
	ssize_t n = recv(req->src.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n == 0)
		return -ECONNRESET;
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

/* own: what is said, for rvcm_soft_shake_agree. */
static int listen_reply(struct rvcm_dev_req *req, struct rvcm_soft_mpa_frame *own, bool reject,
			const void *private_data, size_t private_bytes)
{
	if (private_bytes > req->dev->base.attr.private_data_bytes)
		return -EINVAL;
	rvcm_soft_shake_answer(&req->dev->tun, &req->frame, req->marked, own);
	own->reject = reject;
	own->private_data = private_data;
	own->private_bytes = (uint16_t)private_bytes;
	return rvcm_soft_shake_write(req->src.fd, own, req->marked);
}

int rvcm_soft_listen_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *base,
			    const void *private_data, size_t private_bytes)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	struct rvcm_soft_mpa_frame own;
	struct rvcm_soft_link link;
	int rc = -EINVAL;

	if (qp->dev != req->dev || rvcm_soft_qp_now(qp) != RVCM_DEV_QP_INIT)
		goto out;
	rc = listen_req_alive(req);
	if (rc)
		goto out;
	rc = listen_reply(req, &own, false, private_data, private_bytes);
	if (rc)
		goto out;
	rvcm_soft_shake_agree(&own, &req->frame, req->marked, &req->dev->tun, &link);
	qp->fd = req->src.fd;
	qp->peer = req->peer;
	/* RFC 5044 section 7.1.2 rule 4: the first FPDU is the opener's. */
	qp->tx.awaited = link.own_kind ? RVCM_SOFT_AWAITED_NOT : RVCM_SOFT_AWAITED_TO_SEND;
	req->src.fd = -1;
	rvcm_soft_dial_established(qp, &link);
out:
	rvcm_soft_listen_req_free(req);
	return rc;
}

int rvcm_soft_listen_reject(struct rvcm_dev_req *req, const void *private_data,
			    size_t private_bytes)
{
	struct rvcm_soft_mpa_frame own;
	int rc = listen_reply(req, &own, true, private_data, private_bytes);

	listen_req_dismiss(req);
	return rc;
}

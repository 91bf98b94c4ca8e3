/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management: control's. */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dev/fault/fault_impl.h"

/* -- listeners and requests ------------------------------------------------------------------- */

int rvcm_fault_cm_listen(struct rvcm_dev *base, struct rvcm_addr *addr, int backlog, void *ctx,
			 struct rvcm_dev_listener **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc;
	struct rvcm_dev_listener *listener =
		rvcm_fault_point_new(dev, RVCM_FAULT_LISTEN, sizeof(*listener), &rc);

	if (!listener)
		return rc;
	listener->dev = dev;
	listener->ctx = ctx;
	rc = dev->ops->listen(dev->inner, addr, backlog, listener, &listener->inner);
	if (rc) {
		rvcm_mem_free(listener);
		return rc;
	}
	*out = listener;
	return 0;
}

void rvcm_fault_cm_listener_close(struct rvcm_dev_listener *listener)
{
	listener->dev->ops->listener_close(listener->inner);
	rvcm_fault_note_drop_ctx(listener->dev, listener->ctx);
	rvcm_mem_free(listener);
}

/* The request is answered: what the inner device knows it by. */
static struct rvcm_dev_req *take_req(struct rvcm_dev_req *req)
{
	struct rvcm_dev_req *inner = req->inner;

	rvcm_lock_acquire(&req->dev->lock);
	rvcm_list_del(&req->node);
	rvcm_lock_release(&req->dev->lock);
	rvcm_mem_free(req);
	return inner;
}

int rvcm_fault_cm_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp, const void *private_data,
			 size_t private_bytes)
{
	struct rvcm_fault_dev *dev = req->dev;
	int rc = rvcm_fault_point_call(dev, RVCM_FAULT_ACCEPT);
	struct rvcm_dev_req *inner = take_req(req);

	if (!rc)
		return dev->ops->accept(inner, rvcm_fault_qp_of(qp)->inner, private_data,
					private_bytes);
	(void)dev->ops->reject(inner, NULL, 0); /* dev.h: accept consumes it */
	return rc;
}

int rvcm_fault_cm_reject(struct rvcm_dev_req *req, const void *private_data, size_t private_bytes)
{
	struct rvcm_fault_dev *dev = req->dev;
	int rc = rvcm_fault_point_call(dev, RVCM_FAULT_REJECT);
	struct rvcm_dev_req *inner = take_req(req);

	if (!rc)
		return dev->ops->reject(inner, private_data, private_bytes);
	(void)dev->ops->reject(inner, NULL, 0);
	return rc;
}

/* -- connecting ------------------------------------------------------------------------------- */

static struct rvcm_dev_event refusal(const struct rvcm_fault_rule *rule)
{
	switch (rule->kind) {
	case RVCM_FAULT_REFUSE:
		return (struct rvcm_dev_event) { .type = RVCM_DEV_EVENT_REJECTED,
						 .status = RVCM_STATUS_REFUSED,
						 .err = ECONNREFUSED,
						 .reject = RVCM_DEV_REJECT_NOT_LISTENING };
	case RVCM_FAULT_STALE:
		return (struct rvcm_dev_event) { .type = RVCM_DEV_EVENT_REJECTED,
						 .status = RVCM_STATUS_REJECTED_STALE,
						 .err = ECONNREFUSED,
						 .reject = RVCM_DEV_REJECT_STALE };
	case RVCM_FAULT_TIMEOUT:
		return (struct rvcm_dev_event) { .type = RVCM_DEV_EVENT_UNREACHABLE,
						 .status = RVCM_STATUS_CONNECT_TIMEOUT,
						 .err = ETIMEDOUT };
	default:
		return (struct rvcm_dev_event) { .type = RVCM_DEV_EVENT_ADDR_ERROR,
						 .status = RVCM_STATUS_UNREACHABLE,
						 .err = EHOSTUNREACH };
	}
}

static void set_connecting(struct rvcm_fault_qp *qp, bool connecting)
{
	rvcm_lock_acquire(&qp->dev->lock);
	qp->over |= qp->connecting && !connecting;
	qp->connecting = connecting;
	rvcm_lock_release(&qp->dev->lock);
}

static int refuse(struct rvcm_fault_qp *qp, const struct rvcm_fault_rule *rule)
{
	struct rvcm_dev_event ev = refusal(rule);

	ev.ctx = qp->base.ctx;
	rvcm_fault_point_note(qp->dev, rule);
	if (!rvcm_fault_note_add(qp->dev, qp, &ev, rule->ns ? rvcm_clock_ns() + rule->ns : 0))
		return -ENOMEM;
	set_connecting(qp, true);
	return 0;
}

int rvcm_fault_cm_connect(struct rvcm_dev_qp *base, const struct rvcm_addr *peer,
			  const void *private_data, size_t private_bytes)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	struct rvcm_fault_dev *dev = qp->dev;
	const struct rvcm_fault_rule *rule = rvcm_fault_point_ask(dev, 1u << RVCM_FAULT_CONNECT);
	bool fits = private_bytes <= dev->base.attr.private_data_bytes;

	if (rvcm_fault_point_gone(dev))
		return -ENODEV;
	if (!rule || !fits || rvcm_fault_qp_state(base) != RVCM_DEV_QP_INIT)
		return dev->ops->connect(qp->inner, peer, private_data, private_bytes);
	if (rule->kind != RVCM_FAULT_ERRNO)
		return refuse(qp, rule);
	rvcm_fault_point_note(dev, rule);
	return -rule->err;
}

/* What was not told yet never will be. */
static void abandon(struct rvcm_fault_qp *qp)
{
	rvcm_fault_note_drop(qp);
	rvcm_lock_acquire(&qp->dev->lock);
	qp->ended = true;
	rvcm_lock_release(&qp->dev->lock);
}

int rvcm_fault_cm_disconnect(struct rvcm_dev_qp *base)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	int rc = rvcm_fault_point_call(qp->dev, RVCM_FAULT_DISCONNECT);
	enum rvcm_fault_mode mode;
	bool connecting;

	if (rc)
		return rc;
	rvcm_lock_acquire(&qp->dev->lock);
	mode = qp->mode;
	connecting = qp->connecting;
	rvcm_lock_release(&qp->dev->lock);
	if (!qp->established)
		abandon(qp);
	set_connecting(qp, false);
	/* It is lost as far as we know, or as far as it knows. */
	if (connecting || mode == RVCM_FAULT_MODE_LOST || mode == RVCM_FAULT_MODE_BLIND)
		return 0;
	return qp->dev->ops->disconnect(qp->inner);
}

/* -- events ----------------------------------------------------------------------------------- */

/* A request of the inner device gets our name. False: it is turned down. */
static bool wrap_request(struct rvcm_fault_dev *dev, struct rvcm_dev_event *ev)
{
	bool gone = rvcm_fault_point_gone(dev);
	struct rvcm_dev_req *req = gone ? NULL : rvcm_mem_zalloc(sizeof(*req));
	struct rvcm_dev_listener *listener = ev->ctx;

	if (!req) {
		(void)dev->ops->reject(ev->req, NULL, 0);
		return false;
	}
	req->dev = dev;
	req->inner = ev->req;
	ev->req = req;
	ev->ctx = listener->ctx;
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->reqs, &req->node);
	rvcm_lock_release(&dev->lock);
	return true;
}

static bool ends(enum rvcm_dev_event_type type)
{
	return type == RVCM_DEV_EVENT_ADDR_ERROR || type == RVCM_DEV_EVENT_ROUTE_ERROR ||
	       type == RVCM_DEV_EVENT_CONNECT_ERROR || type == RVCM_DEV_EVENT_UNREACHABLE ||
	       type == RVCM_DEV_EVENT_REJECTED || type == RVCM_DEV_EVENT_DISCONNECTED;
}

/* A QP's: false: it is not to be told, for the end was. *due_ns is no earlier than that. */
static bool adapt(struct rvcm_fault_qp *qp, struct rvcm_dev_event *ev, uint64_t *due_ns)
{
	bool told;

	ev->ctx = qp->base.ctx;
	qp->base.caps = qp->inner->caps;
	rvcm_lock_acquire(&qp->dev->lock);
	told = qp->ended && ev->type != RVCM_DEV_EVENT_TIMEWAIT_EXIT &&
	       ev->type != RVCM_DEV_EVENT_ADDR_CHANGE;
	qp->ended |= ends(ev->type);
	if (ev->type == RVCM_DEV_EVENT_DISCONNECTED && qp->mode != RVCM_FAULT_MODE_SOUND) {
		ev->status = qp->status == RVCM_STATUS_FLUSHED ? RVCM_STATUS_CONNECTION_LOST
							       : qp->status;
		ev->err = rvcm_status_errno(ev->status);
		if (qp->mode == RVCM_FAULT_MODE_BLIND)
			*due_ns = qp->blind_ns;
	}
	rvcm_lock_release(&qp->dev->lock);
	return !told;
}

/* One of the inner device's. True: it is to be told now. */
static bool pass(struct rvcm_fault_dev *dev, struct rvcm_dev_event *ev)
{
	bool request = ev->type == RVCM_DEV_EVENT_CONNECT_REQUEST;
	struct rvcm_fault_qp *qp = request ? NULL : ev->ctx;
	const struct rvcm_fault_rule *rule;
	uint64_t due = 0, last = 0;

	if (request ? !wrap_request(dev, ev) : qp && !adapt(qp, ev, &due))
		return false;
	rule = rvcm_fault_point_ask(dev, 1u << RVCM_FAULT_EVENT);
	if (rule) {
		rvcm_fault_point_note(dev, rule);
		due = rvcm_clock_ns() + rule->ns;
	}
	if (qp)
		last = rvcm_fault_note_last(qp);
	if (last > due)
		due = last;
	if (due && rvcm_fault_note_add(dev, qp, ev, due))
		return false;
	if (qp && ev->type == RVCM_DEV_EVENT_ESTABLISHED)
		qp->established = true;
	return true;
}

static void end_told(struct rvcm_fault_qp *qp)
{
	rvcm_lock_acquire(&qp->dev->lock);
	qp->over |= qp->connecting;
	qp->connecting = false;
	qp->ended = true;
	rvcm_lock_release(&qp->dev->lock);
}

static void tell_note(struct rvcm_fault_dev *dev, struct rvcm_fault_note *note,
		      struct rvcm_dev_event *ev)
{
	dev->told = note;
	*ev = note->ev;
	if (note->qp && ends(ev->type))
		end_told(note->qp);
	if (note->qp && ev->type == RVCM_DEV_EVENT_ESTABLISHED)
		note->qp->established = true;
}

static void end_removed(struct rvcm_fault_qp *qp)
{
	struct rvcm_dev_event ev = { .type = RVCM_DEV_EVENT_CONNECT_ERROR,
				     .ctx = qp->base.ctx,
				     .status = RVCM_STATUS_DEVICE_REMOVED,
				     .err = ENODEV };

	rvcm_lock_acquire(&qp->dev->lock);
	if (qp->mode == RVCM_FAULT_MODE_SOUND && !qp->ended) {
		qp->mode = RVCM_FAULT_MODE_BROKEN;
		qp->status = RVCM_STATUS_DEVICE_REMOVED;
	}
	rvcm_lock_release(&qp->dev->lock);
	if (rvcm_fault_qp_state(&qp->base) != RVCM_DEV_QP_CONNECTING) {
		(void)qp->dev->ops->disconnect(qp->inner);
		return;
	}
	if (!qp->connecting)
		(void)qp->dev->ops->disconnect(qp->inner);
	abandon(qp);
	set_connecting(qp, true);
	(void)rvcm_fault_note_add(qp->dev, qp, &ev, 0);
}

/* The QPs that are the data side's end where that looks next. */
static void tell_gone(struct rvcm_fault_dev *dev, struct rvcm_dev_event *ev)
{
	struct rvcm_list *pos;

	*ev = (struct rvcm_dev_event) { .type = RVCM_DEV_EVENT_DEVICE_REMOVAL,
					.status = RVCM_STATUS_DEVICE_REMOVED };
	dev->gone_told = true;
	rvcm_list_for_each (pos, &dev->qps) {
		struct rvcm_fault_qp *qp = rvcm_list_entry(pos, struct rvcm_fault_qp, node);
		enum rvcm_dev_qp_state state = rvcm_fault_qp_state(&qp->base);
		bool attached;

		rvcm_lock_acquire(&dev->lock);
		attached = qp->attached;
		rvcm_lock_release(&dev->lock);
		if (!attached && state != RVCM_DEV_QP_INIT && state != RVCM_DEV_QP_ERROR)
			end_removed(qp);
	}
}

static bool gone_untold(struct rvcm_fault_dev *dev)
{
	bool gone;

	rvcm_lock_acquire(&dev->lock);
	gone = dev->gone && !dev->gone_told;
	rvcm_lock_release(&dev->lock);
	return gone;
}

int rvcm_fault_cm_poll(struct rvcm_dev *base, struct rvcm_dev_event *ev)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	struct rvcm_fault_note *note;
	int rc;

	rvcm_mem_free(dev->told);
	dev->told = NULL;
	if (gone_untold(dev)) {
		tell_gone(dev, ev);
		return 1;
	}
	note = rvcm_fault_note_take(dev);
	if (note) {
		tell_note(dev, note, ev);
		return 1;
	}
	do
		rc = dev->ops->cm_poll(dev->inner, ev);
	while (rc == 1 && !pass(dev, ev));
	if (rc != 1)
		rvcm_fault_note_arm(dev);
	return rc;
}

int rvcm_fault_cm_fd(struct rvcm_dev *base)
{
	return rvcm_fault_dev_of(base)->cm_epfd;
}

int rvcm_fault_cm_init(struct rvcm_fault_dev *dev)
{
	rvcm_list_init(&dev->reqs);
	rvcm_list_init(&dev->notes);
	return rvcm_fault_wait_open(dev->ops->cm_fd(dev->inner), &dev->cm_epfd, &dev->cm_timer);
}

void rvcm_fault_cm_fini(struct rvcm_fault_dev *dev)
{
	struct rvcm_list *pos;

	while ((pos = rvcm_list_pop(&dev->reqs)))
		rvcm_mem_free(rvcm_list_entry(pos, struct rvcm_dev_req, node));
	while ((pos = rvcm_list_pop(&dev->notes)))
		rvcm_mem_free(rvcm_list_entry(pos, struct rvcm_fault_note, node));
	rvcm_mem_free(dev->told);
	rvcm_fault_wait_close(dev->cm_epfd, dev->cm_timer);
}

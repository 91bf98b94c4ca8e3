/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/cm_world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

/* Broken code makes one wait in vain after the other: the first has said it all. */
static bool in_vain;

/* What one side tells the other takes a round each. */
void cm_world_take(struct cm_world *w)
{
	struct rvcm_dev_event ev;
	struct rvcm_dev_wc wc;

	for (int quiet = 0; quiet < 3; quiet++) {
		if (w->cq && w->dev->ops->cq_poll(w->cq, &wc, 1) > 0)
			quiet = 0;
		while (w->dev->ops->cm_poll(w->dev, &ev) > 0) {
			assert_true(w->n_reports < CM_WORLD_REPORTS_MAX);
			w->reports[w->n_reports++] = ev;
			if (ev.req)
				w->req = ev.req;
			quiet = 0;
		}
	}
}

void cm_world_wait(struct cm_world *w)
{
	struct pollfd fd = { .fd = w->dev->ops->cm_fd(w->dev), .events = POLLIN };
	uint64_t since = rvcm_clock_ns();
	int woken = poll(&fd, 1, in_vain ? 0 : w->patience_ms);

	w->patience_ms -= (int)((rvcm_clock_ns() - since) / 1000000);
	in_vain |= woken != 1 || w->patience_ms <= 0;
	assert_false(in_vain);
	cm_world_take(w);
}

void cm_world_await_call(struct cm_world *w)
{
	while (w->qp->call)
		cm_world_wait(w);
}

void cm_world_inject_for(struct cm_world *w, struct rdma_cm_id *id, enum rdma_cm_event_type type,
			 int status)
{
	(void)fake_cm_event(id, type, status, NULL, 0);
	w->injected++;
	cm_world_take(w);
}

void cm_world_inject(struct cm_world *w, enum rdma_cm_event_type type, int status)
{
	cm_world_inject_for(w, w->qp->id, type, status);
	cm_world_await_call(w);
}

void cm_world_qp(struct cm_world *w)
{
	const struct rvcm_dev_qp_attr attr = {
		.cq = w->cq, .sq_depth = 8, .rq_depth = 8, .sge_max = 1, .ctx = &w->ctx
	};
	struct rvcm_dev_qp *base;

	assert_int_equal(w->dev->ops->qp_open(w->dev, &attr, &base), 0);
	w->qp = rvcm_verbs_qp_of(base);
}

void cm_world_open(struct cm_world *w, bool iwarp, const struct rvcm_verbs_tunables *tunables)
{
	struct rvcm_addr addr;

	memset(w, 0, sizeof(*w));
	w->patience_ms = CM_WORLD_PATIENCE_MS;
	w->dev = fake_cm_open(iwarp, tunables);
	addr = w->dev->attr.addr;
	assert_int_equal(w->dev->ops->cq_open(w->dev, 64, &w->cq), 0);
	assert_int_equal(w->dev->ops->listen(w->dev, &addr, 8, &w->listener_ctx, &w->listener), 0);
	cm_world_qp(w);
}

void cm_world_close(struct cm_world *w)
{
	struct rdma_cm_id *id = w->qp ? w->qp->id : NULL;
	bool owed = id && fake_cm_of(id)->unanswered;

	if (w->qp && w->qp->attached)
		w->dev->ops->detach(&w->qp->base);
	if (w->qp)
		w->dev->ops->qp_close(&w->qp->base);
	if (owed)
		cm_world_inject_for(w, id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	cm_world_take(w);
	w->dev->ops->listener_close(w->listener);
	w->dev->ops->cq_close(w->cq);
	w->dev->ops->close(w->dev);
	assert_int_equal(fake_cm.acked, w->injected);
	fake_cm_close();
}

void cm_world_dial(struct cm_world *w)
{
	struct rvcm_addr peer;

	assert_int_equal(rvcm_addr_parse("192.0.2.2:5000", &peer), 0);
	assert_int_equal(w->dev->ops->connect(&w->qp->base, &peer, "hello", 5), 0);
}

void cm_world_request(struct cm_world *w)
{
	cm_world_dial(w);
	cm_world_inject(w, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_world_inject(w, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

void cm_world_accept(struct cm_world *w)
{
	cm_world_inject_for(w, w->listener->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(w->dev->ops->accept(w->req, &w->qp->base, NULL, 0), 0);
	w->req = NULL;
}

void cm_world_up(struct cm_world *w, bool attached)
{
	cm_world_request(w);
	cm_world_inject(
		w, fake_cm.iwarp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (attached)
		assert_int_equal(w->dev->ops->attach(&w->qp->base), 0);
}

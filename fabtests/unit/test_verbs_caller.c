/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that wait: rdma_connect to a host that drops what it is sent, on an iWARP device. */
#include "unit/cm_world.h"

#include <errno.h>

/* One is under way, and does not return. */
static struct rvcm_verbs_qp *begin(struct cm_world *w, const struct rvcm_verbs_tunables *tunables)
{
	cm_world_open(w, true, tunables);
	fake_cm.connect_waits = true;
	cm_world_dial(w);
	cm_world_inject_for(w, w->qp->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_world_inject_for(w, w->qp->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_cm_await_calls(1);
	fake_cm.connect_waits = false;
	w->n_reports = 0;
	return w->qp;
}

static void close_qp(struct cm_world *w, struct rvcm_verbs_qp *qp)
{
	w->dev->ops->qp_close(&qp->base);
	if (w->qp == qp)
		w->qp = NULL;
}

/* It and its queue are closed; who makes the call has the context still. */
static void leave_to_caller(struct cm_world *w, struct rvcm_verbs_qp *qp)
{
	close_qp(w, qp);
	w->dev->ops->cq_close(w->cq);
	w->cq = NULL;
	assert_int_equal(fake_cm.contexts, 1);
}

static void remove_device(struct cm_world *w)
{
	cm_world_inject_for(w, rvcm_verbs_dev_of(w->dev)->anchor, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* What the kernel waits for. */
static void close_removed(struct cm_world *w)
{
	assert_int_equal(fake_cm.contexts, 0);
	w->dev->ops->listener_close(w->listener);
	w->dev->ops->close(w->dev);
	fake_cm_close();
}

/* Its id goes when the call is over, and not before: fake_cm sees to that. */
static void let_go(struct cm_world *w, int err)
{
	uint32_t before = fake_cm.n_ids;

	fake_cm_let_go(err);
	while (fake_cm.n_ids == before)
		cm_world_wait(w);
}

static void another_connects_meanwhile(void **state)
{
	struct rvcm_verbs_qp *stuck;
	struct cm_world w;

	(void)state;
	stuck = begin(&w, NULL);
	cm_world_qp(&w);
	cm_world_up(&w, true);
	assert_int_equal(w.reports[w.n_reports - 1].type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(w.dev->ops->qp_state(&stuck->base), RVCM_DEV_QP_CONNECTING);
	close_qp(&w, stuck);
	let_go(&w, ETIMEDOUT);
	cm_world_close(&w);
}

static void it_takes_no_longer_than_an_attempt_may(void **state)
{
	struct rvcm_verbs_tunables tunables;
	struct rvcm_verbs_qp *stuck;
	struct cm_world w;

	(void)state;
	rvcm_verbs_tunables_init(&tunables);
	tunables.connect_timeout_ms = 1;
	stuck = begin(&w, &tunables);
	while (w.n_reports == 0)
		cm_world_wait(&w);
	assert_int_equal(w.reports[0].type, RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(w.reports[0].status, RVCM_STATUS_CONNECT_TIMEOUT);
	close_qp(&w, stuck);
	let_go(&w, ETIMEDOUT);
	assert_int_equal(w.n_reports, 1);
	cm_world_close(&w);
}

static void what_it_returned_is_judged(void **state)
{
	static const struct {
		int err;
		enum rvcm_dev_event_type type;
		enum rvcm_status status;
	} rows[] = {
		{ ECONNREFUSED, RVCM_DEV_EVENT_REJECTED, RVCM_STATUS_REFUSED },
		{ ETIMEDOUT, RVCM_DEV_EVENT_UNREACHABLE, RVCM_STATUS_CONNECT_TIMEOUT },
		{ EHOSTUNREACH, RVCM_DEV_EVENT_UNREACHABLE, RVCM_STATUS_UNREACHABLE },
		{ EINVAL, RVCM_DEV_EVENT_CONNECT_ERROR, RVCM_STATUS_CONNECTION_LOST },
	};
	struct cm_world w;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&w, NULL);
		fake_cm_let_go(rows[i].err);
		while (w.n_reports == 0)
			cm_world_wait(&w);
		assert_int_equal(w.reports[0].type, rows[i].type);
		assert_int_equal(w.reports[0].status, rows[i].status);
		assert_int_equal(w.reports[0].err, rows[i].err);
		cm_world_close(&w);
	}
}

/* The answer overtakes the call. */
static void it_stands_before_the_call_is_over(void **state)
{
	struct rvcm_verbs_qp *qp;
	struct cm_world w;

	(void)state;
	qp = begin(&w, NULL);
	cm_world_inject_for(&w, qp->id, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(w.reports[0].type, RVCM_DEV_EVENT_ESTABLISHED);
	close_qp(&w, qp);
	let_go(&w, 0);
	cm_world_close(&w);
}

static void an_answer_that_nobody_waits_for(void **state)
{
	struct rvcm_verbs_qp *qp;
	struct rdma_cm_id *id;
	struct cm_world w;

	(void)state;
	qp = begin(&w, NULL);
	id = qp->id;
	close_qp(&w, qp);
	cm_world_inject_for(&w, id, RDMA_CM_EVENT_ESTABLISHED, 0);
	let_go(&w, 0);
	assert_int_equal(w.n_reports, 0);
	cm_world_close(&w);
}

/* Who makes the call closes what is left of it. */
static void the_device_is_closed_meanwhile(void **state)
{
	struct rvcm_verbs_qp *qp;
	struct cm_world w;

	(void)state;
	qp = begin(&w, NULL);
	close_qp(&w, qp);
	w.dev->ops->listener_close(w.listener);
	w.dev->ops->cq_close(w.cq);
	w.cq = NULL;
	w.dev->ops->close(w.dev);
	assert_int_equal(fake_cm.contexts, 1);
	fake_cm_let_go(ETIMEDOUT);
	fake_cm_close();
}

static void the_device_is_removed_meanwhile(void **state)
{
	struct rvcm_verbs_qp *qp;
	struct cm_world w;

	(void)state;
	qp = begin(&w, NULL);
	remove_device(&w);
	assert_int_equal(w.n_reports, 2);
	leave_to_caller(&w, qp);
	let_go(&w, ENODEV);
	close_removed(&w);
}

static void the_device_is_removed_and_the_peer_answers(void **state)
{
	struct rdma_cm_id *id;
	struct cm_world w;

	(void)state;
	id = begin(&w, NULL)->id;
	fake_cm_let_go(0);
	cm_world_await_call(&w);
	remove_device(&w);
	leave_to_caller(&w, w.qp);
	cm_world_inject_for(&w, id, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	close_removed(&w);
}

/* All threads are busy. */
static void one_that_was_not_begun_leaves_nothing(void **state)
{
	struct rvcm_verbs_dev *dev;
	struct cm_world w;
	uint32_t ids;

	(void)state;
	cm_world_open(&w, true, NULL);
	dev = rvcm_verbs_dev_of(w.dev);
	dev->callers = 32;
	cm_world_dial(&w);
	cm_world_inject_for(&w, w.qp->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_world_inject_for(&w, w.qp->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(fake_cm_of(w.qp->id)->connects, 0);
	ids = fake_cm.n_ids;
	assert_int_equal(w.dev->ops->disconnect(&w.qp->base), 0);
	assert_int_equal(fake_cm.n_ids, ids - 1);
	assert_true(rvcm_list_empty(&dev->calls));
	dev->callers = 0;
	cm_world_close(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_connects_meanwhile),
		cmocka_unit_test(it_takes_no_longer_than_an_attempt_may),
		cmocka_unit_test(what_it_returned_is_judged),
		cmocka_unit_test(it_stands_before_the_call_is_over),
		cmocka_unit_test(an_answer_that_nobody_waits_for),
		cmocka_unit_test(the_device_is_closed_meanwhile),
		cmocka_unit_test(the_device_is_removed_meanwhile),
		cmocka_unit_test(the_device_is_removed_and_the_peer_answers),
		cmocka_unit_test(one_that_was_not_begun_leaves_nothing),
	};

	return cmocka_run_group_tests_name("verbs_caller", tests, NULL, NULL);
}

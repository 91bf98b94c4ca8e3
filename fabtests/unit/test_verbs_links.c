/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces and hosts that go away: goodbyes that wait (farewell.c), and silent peers (alive.c).
 */
#include "unit/cm_world.h"

#include <errno.h>

/* Its queue pair is closed, and nobody was told. */
static void lose(struct cm_world *w)
{
	cm_world_open(w, false, NULL);
	cm_world_up(w, false);
	w->n_reports = 0;
	fake_cm.unrouted = true;
	fake_cm_async(IBV_EVENT_QP_FATAL, w->qp->qp);
	w->injected++;
	cm_world_take(w);
	assert_int_equal(w->n_reports, 1);
	w->dev->ops->qp_close(&w->qp->base);
	w->qp = NULL;
	assert_int_equal(fake_cm.disconnects, 0);
}

static void a_goodbye_waits_for_a_route(void **state)
{
	struct cm_world w;
	uint32_t ids;

	(void)state;
	lose(&w);
	ids = fake_cm.n_ids;
	cm_world_wait(&w);
	assert_int_equal(fake_cm.n_ids, ids);
	assert_int_equal(fake_cm.disconnects, 0);
	fake_cm.unrouted = false;
	cm_world_wait(&w);
	assert_int_equal(fake_cm.n_ids, ids - 1);
	assert_int_equal(fake_cm.disconnects, 1);
	cm_world_close(&w);
}

static void who_closes_does_not_wait(void **state)
{
	struct cm_world w;

	(void)state;
	lose(&w);
	cm_world_close(&w);
}

static void nor_does_who_is_removed(void **state)
{
	struct cm_world w;

	(void)state;
	lose(&w);
	cm_world_inject_for(&w, w.listener->id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	w.dev->ops->cq_close(w.cq);
	w.cq = NULL;
	w.dev->ops->listener_close(w.listener);
	assert_int_equal(fake_cm.n_ids, 0); /* the kernel waits for them */
	w.dev->ops->close(w.dev);
	fake_cm_close();
}

/* What comes for who waits changes nothing. */
static void the_peer_says_goodbye_first(void **state)
{
	struct rdma_cm_id *id;
	struct cm_world w;

	(void)state;
	cm_world_open(&w, false, NULL);
	cm_world_up(&w, false);
	id = w.qp->id;
	fake_cm.unrouted = true;
	w.dev->ops->qp_close(&w.qp->base);
	w.qp = NULL;
	w.n_reports = 0;
	cm_world_inject_for(&w, id, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_world_inject_for(&w, id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(w.n_reports, 0);
	fake_cm.unrouted = false;
	cm_world_wait(&w);
	assert_int_equal(fake_cm.disconnects, 1);
	cm_world_close(&w);
}

static void nothing_is_sent_where_no_route_leads(void **state)
{
	struct cm_world w;

	(void)state;
	cm_world_open(&w, false, NULL);
	cm_world_dial(&w);
	cm_world_inject(&w, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_cm.unrouted = true;
	cm_world_inject(&w, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(fake_cm_of(w.qp->id)->connects, 0);
	assert_int_equal(w.n_reports, 3);
	assert_int_equal(w.reports[2].type, RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(w.reports[2].status, RVCM_STATUS_UNREACHABLE);
	assert_int_equal(w.reports[2].err, ENETUNREACH);
	cm_world_close(&w);
}

/* -- silence ---------------------------------------------------------------------------------- */

static void connect_to_silence(struct cm_world *w, const struct tcp_info *info)
{
	struct rvcm_verbs_tunables tunables;

	rvcm_verbs_tunables_init(&tunables);
	tunables.keepalive_ms = 8;
	cm_world_open(w, true, &tunables);
	fake_cm.tcp = *info;
	cm_world_up(w, true);
	w->n_reports = 0;
}

static void a_host_that_answers_nothing_is_given_up(void **state)
{
	static const struct tcp_info silent = { .tcpi_unacked = 1,
						.tcpi_retransmits = 3,
						.tcpi_retrans = 1,
						.tcpi_last_ack_recv = 100000,
						.tcpi_last_data_sent = 100 };
	struct cm_world w;

	(void)state;
	connect_to_silence(&w, &silent);
	while (w.n_reports == 0)
		cm_world_wait(&w);
	assert_int_equal(w.reports[0].type, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(w.reports[0].status, RVCM_STATUS_RETRY_EXCEEDED);
	assert_int_equal(w.reports[0].err, ETIMEDOUT);
	cm_world_close(&w);
}

static void check_it_stays(const struct tcp_info *info, int err)
{
	struct cm_world w;

	connect_to_silence(&w, info);
	fake_cm.tcp_fails = err;
	for (int looks = 0; looks < 20; looks++)
		cm_world_wait(&w);
	assert_int_equal(w.n_reports, 0);
	assert_int_equal(w.dev->ops->qp_state(&w.qp->base), RVCM_DEV_QP_RTS);
	cm_world_close(&w);
}

/* Who has answered all, and who is not known to this host's TCP. */
static void others_are_not(void **state)
{
	static const struct tcp_info idle = { .tcpi_last_ack_recv = 100000 };
	static const struct tcp_info silent = { .tcpi_unacked = 1,
						.tcpi_retransmits = 3,
						.tcpi_last_ack_recv = 100000 };

	(void)state;
	check_it_stays(&idle, 0);
	check_it_stays(&silent, -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_goodbye_waits_for_a_route),
		cmocka_unit_test(who_closes_does_not_wait),
		cmocka_unit_test(nor_does_who_is_removed),
		cmocka_unit_test(the_peer_says_goodbye_first),
		cmocka_unit_test(nothing_is_sent_where_no_route_leads),
		cmocka_unit_test(a_host_that_answers_nothing_is_given_up),
		cmocka_unit_test(others_are_not),
	};

	return cmocka_run_group_tests_name("verbs_links", tests, NULL, NULL);
}

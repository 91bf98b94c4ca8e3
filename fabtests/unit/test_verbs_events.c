/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each event of rdma_cm (rdma_cma.h) and of the device (ibv_get_async_event(3)), in each state of
 * what it comes for: what is reported of it, that it is acknowledged once, that a queue pair ends
 * once, and that everything can be closed then, whatever came.
 */
#include "unit/cm_world.h"

#include <errno.h>

/* Nothing is reported; as a type. */
#define NONE 0xffu

/* What an event may find. */
enum found {
	RESOLVING, /* connect was called */
	ROUTING,   /* the address is known */
	REQUESTED, /* the request is out */
	ACCEPTING,
	UP,       /* attached */
	DETACHED, /* up, but the data side does not have it */
	CLOSING,  /* disconnect was called */
	ENDED,    /* DISCONNECTED was reported */
	FOUNDS,
};

/* -- ways into the states ---------------------------------------------------------------------- */

static void bring(struct cm_world *w, enum found found)
{
	switch (found) {
	case RESOLVING:
		cm_world_dial(w);
		break;
	case ROUTING:
		cm_world_dial(w);
		cm_world_inject(w, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		break;
	case REQUESTED:
		cm_world_request(w);
		break;
	case ACCEPTING:
		cm_world_accept(w);
		break;
	default:
		cm_world_up(w, found != DETACHED);
		break;
	}
	if (found == CLOSING)
		assert_int_equal(w->dev->ops->disconnect(&w->qp->base), 0);
	if (found == ENDED)
		cm_world_inject(w, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_world_take(w);
	w->n_reports = 0;
}

/* -- what is expected ---------------------------------------------------------------------------
 */

#define E(name) RVCM_DEV_EVENT_##name

/* What is reported of the queue pair; NONE beyond the row's end. */
static const struct row {
	enum rdma_cm_event_type event;
	uint8_t of_qp[FOUNDS];
} rows[] = {
	{ RDMA_CM_EVENT_ADDR_RESOLVED,
	  { E(ADDR_RESOLVED), E(ADDR_RESOLVED), NONE, NONE, NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_ADDR_ERROR,
	  { E(ADDR_ERROR), E(ADDR_ERROR), E(ADDR_ERROR), E(ADDR_ERROR), NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_ROUTE_RESOLVED,
	  { E(ROUTE_RESOLVED), E(ROUTE_RESOLVED), NONE, NONE, NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_ROUTE_ERROR,
	  { E(ROUTE_ERROR), E(ROUTE_ERROR), E(ROUTE_ERROR), E(ROUTE_ERROR), NONE, NONE, NONE,
	    NONE } },
	{ RDMA_CM_EVENT_CONNECT_REQUEST, { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_CONNECT_RESPONSE,
	  { E(ESTABLISHED), E(ESTABLISHED), E(ESTABLISHED), E(ESTABLISHED), NONE, NONE, NONE,
	    NONE } },
	{ RDMA_CM_EVENT_CONNECT_ERROR,
	  { E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), NONE, NONE,
	    NONE, NONE } },
	{ RDMA_CM_EVENT_UNREACHABLE,
	  { E(UNREACHABLE), E(UNREACHABLE), E(UNREACHABLE), E(CONNECT_ERROR), NONE, NONE, NONE,
	    NONE } },
	{ RDMA_CM_EVENT_REJECTED,
	  { E(REJECTED), E(REJECTED), E(REJECTED), E(CONNECT_ERROR), NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_ESTABLISHED,
	  { E(ESTABLISHED), E(ESTABLISHED), E(ESTABLISHED), E(ESTABLISHED), NONE, NONE, NONE,
	    NONE } },
	{ RDMA_CM_EVENT_DISCONNECTED,
	  { E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), E(DISCONNECTED),
	    E(DISCONNECTED), E(DISCONNECTED), NONE } },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL,
	  { E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), E(CONNECT_ERROR), E(DISCONNECTED),
	    E(DISCONNECTED), E(DISCONNECTED), NONE } },
	{ RDMA_CM_EVENT_MULTICAST_JOIN, { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_MULTICAST_ERROR, { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE } },
	{ RDMA_CM_EVENT_ADDR_CHANGE,
	  { E(ADDR_CHANGE), E(ADDR_CHANGE), E(ADDR_CHANGE), E(ADDR_CHANGE), E(ADDR_CHANGE),
	    E(ADDR_CHANGE), E(ADDR_CHANGE), E(ADDR_CHANGE) } },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT,
	  { E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT),
	    E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT), E(TIMEWAIT_EXIT) } },
	{ (enum rdma_cm_event_type)99, { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE } },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool ends(enum rvcm_dev_event_type type)
{
	return type == E(ADDR_ERROR) || type == E(ROUTE_ERROR) || type == E(CONNECT_ERROR) ||
	       type == E(UNREACHABLE) || type == E(REJECTED) || type == E(DISCONNECTED);
}

/* The one of this context, or NONE; *n: how many there are. */
static uint8_t reported(const struct cm_world *w, const void *ctx, uint32_t *n)
{
	uint8_t type = NONE;

	*n = 0;
	for (uint32_t i = 0; i < w->n_reports; i++) {
		if (w->reports[i].ctx != ctx)
			continue;
		type = (uint8_t)w->reports[i].type;
		++*n;
	}
	return type;
}

static void check_reports(const struct cm_world *w, const struct row *row, enum found found)
{
	uint8_t expected = row->of_qp[found], type;
	uint32_t n;

	type = reported(w, &w->ctx, &n);
	if (type != expected || n != (expected != NONE))
		fail_msg("event %d in state %d: reported %u times, %u", row->event, found, n, type);
	type = reported(w, NULL, &n);
	if (row->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		assert_int_equal(type, E(DEVICE_REMOVAL));
	assert_int_equal(n, row->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
	if (expected != NONE && ends(expected))
		assert_int_equal(w->dev->ops->qp_state(&w->qp->base), RVCM_DEV_QP_ERROR);
}

/* -- tests --------------------------------------------------------------------------------------
 */

/* IB's positive reasons are those of REJECTED. */
static const int statuses[] = { 0, -ETIMEDOUT, -ECONNRESET, 28 };

static void one_case(const struct row *row, enum found found, int status, bool iwarp)
{
	struct cm_world w;

	cm_world_open(&w, iwarp, NULL);
	bring(&w, found);
	cm_world_inject(&w, row->event, status);
	check_reports(&w, row, found);
	/* Whatever it was, the end of the device ends it, and once. */
	if (w.qp->id && row->event != RDMA_CM_EVENT_DEVICE_REMOVAL) {
		uint32_t before, after;

		(void)reported(&w, &w.ctx, &before);
		cm_world_inject(&w, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		(void)reported(&w, &w.ctx, &after);
		assert_int_equal(after - before, found != ENDED && !(row->of_qp[found] != NONE &&
								     ends(row->of_qp[found])));
	}
	cm_world_close(&w);
}

static void every_event_in_every_state(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS * FOUNDS * 4 * 2; i++)
		one_case(&rows[i % ROWS], (enum found)(i / ROWS % FOUNDS),
			 statuses[i / (ROWS * FOUNDS) % 4], i / (ROWS * FOUNDS * 4));
}

/* What comes for who is no queue pair: a listener, the address, a request. */
static void check_source(struct cm_world *w, struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
	uint8_t expected = event == RDMA_CM_EVENT_DEVICE_REMOVAL ? E(DEVICE_REMOVAL)
			   : event == RDMA_CM_EVENT_ADDR_CHANGE  ? E(ADDR_CHANGE)
								 : NONE;
	bool request = event == RDMA_CM_EVENT_CONNECT_REQUEST && id == w->listener->id;
	uint32_t n;

	w->n_reports = 0;
	cm_world_inject_for(w, id, event, 0);
	assert_int_equal(reported(w, NULL, &n), expected);
	assert_int_equal(n, expected != NONE);
	assert_int_equal(reported(w, &w->listener_ctx, &n),
			 request ? (uint8_t)E(CONNECT_REQUEST) : NONE);
	assert_int_equal(n, request);
	assert_int_equal(reported(w, &w->ctx, &n), NONE);
}

static void every_event_of_listeners_and_addresses(void **state)
{
	struct cm_world w;

	(void)state;
	for (size_t i = 0; i < ROWS * 2; i++) {
		cm_world_open(&w, false, NULL);
		check_source(&w, i / ROWS ? rvcm_verbs_dev_of(w.dev)->anchor : w.listener->id,
			     rows[i % ROWS].event);
		if (w.req)
			assert_int_equal(w.dev->ops->reject(w.req, NULL, 0), 0);
		cm_world_close(&w);
	}
}

static bool changes_nothing(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_MULTICAST_JOIN || event == RDMA_CM_EVENT_MULTICAST_ERROR ||
	       event == RDMA_CM_EVENT_ADDR_CHANGE || event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	       event == (enum rdma_cm_event_type)99;
}

/* Who answers a request that is no more hears so; who drops it leaves nothing. */
static void every_event_of_requests(void **state)
{
	struct cm_world w;

	(void)state;
	for (size_t i = 0; i < ROWS * 2; i++) {
		enum rdma_cm_event_type event = rows[i % ROWS].event;
		int rc;

		cm_world_open(&w, false, NULL);
		cm_world_inject_for(&w, w.listener->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		check_source(&w, w.req->id, event);
		if (i / ROWS == 0) {
			rc = w.dev->ops->accept(w.req, &w.qp->base, NULL, 0);
			assert_int_equal(rc, changes_nothing(event)                  ? 0
					     : event == RDMA_CM_EVENT_DEVICE_REMOVAL ? -ENODEV
										     : -ECONNRESET);
		}
		cm_world_close(&w);
	}
}

static const struct {
	enum ibv_event_type event;
	uint8_t of_device;      /* what is reported of it */
	enum rvcm_status of_qp; /* OK: it does not end the queue pair */
} asyncs[] = {
	{ IBV_EVENT_CQ_ERR, E(CQ_ERROR), RVCM_STATUS_OK },
	{ IBV_EVENT_QP_FATAL, NONE, RVCM_STATUS_FATAL },
	{ IBV_EVENT_QP_REQ_ERR, NONE, RVCM_STATUS_REMOTE_INVALID },
	{ IBV_EVENT_QP_ACCESS_ERR, NONE, RVCM_STATUS_REMOTE_ACCESS },
	{ IBV_EVENT_COMM_EST, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_SQ_DRAINED, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_PATH_MIG, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_PATH_MIG_ERR, NONE, RVCM_STATUS_CONNECTION_LOST },
	{ IBV_EVENT_DEVICE_FATAL, E(DEVICE_REMOVAL), RVCM_STATUS_DEVICE_REMOVED },
	{ IBV_EVENT_PORT_ACTIVE, E(PORT_UP), RVCM_STATUS_OK },
	{ IBV_EVENT_PORT_ERR, E(PORT_DOWN), RVCM_STATUS_OK },
	{ IBV_EVENT_LID_CHANGE, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_PKEY_CHANGE, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_SM_CHANGE, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_SRQ_ERR, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_SRQ_LIMIT_REACHED, E(SRQ_LIMIT), RVCM_STATUS_OK },
	{ IBV_EVENT_QP_LAST_WQE_REACHED, NONE, RVCM_STATUS_REMOTE_ABORTED },
	{ IBV_EVENT_CLIENT_REREGISTER, NONE, RVCM_STATUS_OK },
	{ IBV_EVENT_GID_CHANGE, NONE, RVCM_STATUS_OK },
	{ (enum ibv_event_type)99, NONE, RVCM_STATUS_OK },
};

#define ASYNCS (sizeof(asyncs) / sizeof(asyncs[0]))

static void one_async(size_t i, enum found found, bool iwarp)
{
	bool of_device = asyncs[i].event != IBV_EVENT_COMM_EST && asyncs[i].of_device == NONE &&
			 asyncs[i].of_qp == RVCM_STATUS_OK;
	bool over = found == ENDED || asyncs[i].of_qp == RVCM_STATUS_OK;
	enum rvcm_status of_qp = asyncs[i].of_qp;
	struct cm_world w;
	uint32_t n;

	if (iwarp && asyncs[i].event == IBV_EVENT_QP_REQ_ERR) /* siw's: an answer did not leave */
		of_qp = RVCM_STATUS_CONNECTION_LOST;
	cm_world_open(&w, iwarp, NULL);
	bring(&w, found);
	/* We have said goodbye: what the queue pair suffers from is no news. */
	over |= found == CLOSING && asyncs[i].event != IBV_EVENT_DEVICE_FATAL;
	fake_cm_async(asyncs[i].event, of_device || asyncs[i].of_device != NONE ? NULL : w.qp->qp);
	w.injected++;
	cm_world_take(&w);
	assert_int_equal(reported(&w, NULL, &n), asyncs[i].of_device);
	assert_int_equal(n, asyncs[i].of_device != NONE);
	(void)reported(&w, &w.ctx, &n);
	assert_int_equal(n, !over);
	for (uint32_t k = 0; k < w.n_reports; k++)
		if (w.reports[k].ctx == &w.ctx)
			assert_int_equal(w.reports[k].status, of_qp);
	if (asyncs[i].event == IBV_EVENT_COMM_EST && found <= ACCEPTING)
		assert_int_equal(fake_cm_of(w.qp->id)->notified, 1);
	cm_world_close(&w);
}

static void every_asynchronous_event_in_every_state(void **state)
{
	(void)state;
	for (size_t i = 0; i < ASYNCS * FOUNDS * 2; i++)
		one_async(i % ASYNCS, (enum found)(i / ASYNCS % FOUNDS), i / (ASYNCS * FOUNDS));
}

static void another_port_is_not_ours(void **state)
{
	struct cm_world w;

	(void)state;
	cm_world_open(&w, false, NULL);
	rvcm_verbs_dev_of(w.dev)->port = 2;
	fake_cm_async(IBV_EVENT_PORT_ERR, NULL);
	w.injected++;
	cm_world_take(&w);
	assert_int_equal(w.n_reports, 0);
	cm_world_close(&w);
}

/* COMM_EST before rdma_cm says so: it is told, and then it does. */
static void who_is_spoken_to_tells_the_connection_manager(void **state)
{
	struct cm_world w;
	uint32_t n;

	(void)state;
	cm_world_open(&w, false, NULL);
	bring(&w, ACCEPTING);
	fake_cm_async(IBV_EVENT_COMM_EST, w.qp->qp);
	w.injected++;
	cm_world_take(&w);
	assert_int_equal(fake_cm_of(w.qp->id)->notified, 1);
	cm_world_inject(&w, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(reported(&w, &w.ctx, &n), E(ESTABLISHED));
	cm_world_close(&w);
}

static void private_data_outlive_their_event(void **state)
{
	struct cm_world w;

	(void)state;
	cm_world_open(&w, false, NULL);
	bring(&w, REQUESTED);
	(void)fake_cm_event(w.qp->id, RDMA_CM_EVENT_REJECTED, 28, "because", 7);
	w.injected++;
	cm_world_take(&w);
	assert_int_equal(w.n_reports, 1);
	assert_int_equal(w.reports[0].private_bytes, 7);
	assert_memory_equal(w.reports[0].private_data, "because", 7);
	assert_int_equal(w.reports[0].reject, RVCM_DEV_REJECT_CONSUMER);
	cm_world_close(&w);
}

/* What an orphan is waited for, ends it; and so both can be closed. */
static void every_event_of_orphans(void **state)
{
	struct cm_world w;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		enum rdma_cm_event_type event = rows[i].event;
		struct rdma_cm_id *id;
		uint32_t ids;

		if (event <= RDMA_CM_EVENT_CONNECT_REQUEST || changes_nothing(event))
			continue; /* none of these comes for a request that is out */
		cm_world_open(&w, true, NULL);
		bring(&w, REQUESTED);
		id = w.qp->id;
		w.dev->ops->qp_close(&w.qp->base);
		w.qp = NULL;
		ids = fake_cm.n_ids;
		cm_world_inject_for(&w, id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		assert_int_equal(fake_cm.n_ids, ids);
		cm_world_inject_for(&w, id, event, 0);
		assert_true(fake_cm.n_ids < ids);
		cm_world_close(&w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_in_every_state),
		cmocka_unit_test(every_event_of_listeners_and_addresses),
		cmocka_unit_test(every_event_of_requests),
		cmocka_unit_test(every_event_of_orphans),
		cmocka_unit_test(every_asynchronous_event_in_every_state),
		cmocka_unit_test(another_port_is_not_ours),
		cmocka_unit_test(who_is_spoken_to_tells_the_connection_manager),
		cmocka_unit_test(private_data_outlive_their_event),
	};

	return cmocka_run_group_tests_name("verbs_events", tests, NULL, NULL);
}

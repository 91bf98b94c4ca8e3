/* SPDX-License-Identifier: BSD-2-Clause */
/* Every event of rdma_cm, with every status that kernels give, on both sides. */
#include "unit/unit.h"

#include <errno.h>
#include <stdbool.h>

#include "dev/verbs/verdict.h"

#define EVENTS (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)

/* IB's reasons (IBTA volume 1, 12.6.7.2: 1 to 35), errnos, and what is neither. */
static const int extra[] = { 0,       -ETIMEDOUT, -ECONNREFUSED,  -ECONNRESET,
			     -EPROTO, -EINVAL,    -EHOSTUNREACH,  -ENETUNREACH,
			     -ENODEV, -ENOMEM,    -EADDRNOTAVAIL, 36,
			     255,     -4096 };
#define STATUSES (35 + sizeof(extra) / sizeof(extra[0]))

static int status_at(size_t i)
{
	return i < 35 ? (int)i + 1 : extra[i - 35];
}

#define CASES (EVENTS * STATUSES * 2 * 2)

/* The i-th of the whole product; false: it means nothing. */
static bool nth(size_t i, struct rvcm_verbs_said *said, struct rvcm_verbs_verdict *verdict)
{
	said->event = (enum rdma_cm_event_type)(i % EVENTS);
	said->status = status_at(i / EVENTS % STATUSES);
	said->opener = i / (EVENTS * STATUSES) % 2;
	said->private_bytes = i / (EVENTS * STATUSES * 2) * 8;
	return rvcm_verbs_verdict(said, verdict);
}

static bool is_failure(enum rvcm_dev_event_type type)
{
	return type == RVCM_DEV_EVENT_ADDR_ERROR || type == RVCM_DEV_EVENT_ROUTE_ERROR ||
	       type == RVCM_DEV_EVENT_CONNECT_ERROR || type == RVCM_DEV_EVENT_UNREACHABLE ||
	       type == RVCM_DEV_EVENT_REJECTED || type == RVCM_DEV_EVENT_DEVICE_REMOVAL;
}

static void only_multicast_is_unknown(void **state)
{
	struct rvcm_verbs_verdict verdict;

	(void)state;
	for (int e = 0; e < EVENTS + 20; e++) {
		struct rvcm_verbs_said said = { .event = (enum rdma_cm_event_type)e };

		assert_int_equal(rvcm_verbs_verdict(&said, &verdict),
				 e < EVENTS && e != RDMA_CM_EVENT_MULTICAST_JOIN &&
					 e != RDMA_CM_EVENT_MULTICAST_ERROR);
	}
}

static void a_failure_has_a_status_and_nothing_else_has(void **state)
{
	struct rvcm_verbs_said said;
	struct rvcm_verbs_verdict v;

	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		if (!nth(i, &said, &v))
			continue;
		assert_true(rvcm_status_known(v.status));
		assert_true(v.err >= 0);
		if (is_failure(v.type))
			assert_int_not_equal(v.status, RVCM_STATUS_OK);
		else if (v.type != RVCM_DEV_EVENT_DISCONNECTED)
			assert_int_equal(v.status, RVCM_STATUS_OK);
	}
}

static void who_accepted_is_not_rejected(void **state)
{
	struct rvcm_verbs_said said;
	struct rvcm_verbs_verdict v;

	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		if (!nth(i, &said, &v))
			continue;
		if (said.opener)
			continue;
		assert_int_not_equal(v.type, RVCM_DEV_EVENT_REJECTED);
		assert_int_not_equal(v.type, RVCM_DEV_EVENT_UNREACHABLE);
	}
}

/* Private data that come with an errno are a peer's, whatever the errno. */
static void who_sent_private_data_is_there(void **state)
{
	struct rvcm_verbs_said said;
	struct rvcm_verbs_verdict v;

	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		if (!nth(i, &said, &v))
			continue;
		if (v.type != RVCM_DEV_EVENT_REJECTED || said.status >= 0 || !said.private_bytes)
			continue;
		assert_int_equal(v.reject, RVCM_DEV_REJECT_CONSUMER);
		assert_int_equal(v.status, RVCM_STATUS_REJECTED);
	}
}

static struct rvcm_verbs_verdict verdict_of(enum rdma_cm_event_type event, int status)
{
	const struct rvcm_verbs_said said = { .event = event, .status = status, .opener = true };
	struct rvcm_verbs_verdict verdict;

	assert_true(rvcm_verbs_verdict(&said, &verdict));
	return verdict;
}

static void reasons_are_told_apart(void **state)
{
	static const struct {
		int status;
		enum rvcm_dev_reject reject;
		enum rvcm_status means;
	} rows[] = {
		{ 8, RVCM_DEV_REJECT_NOT_LISTENING, RVCM_STATUS_REFUSED },
		{ -ECONNREFUSED, RVCM_DEV_REJECT_NOT_LISTENING, RVCM_STATUS_REFUSED },
		{ 10, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_STALE },
		{ 28, RVCM_DEV_REJECT_CONSUMER, RVCM_STATUS_REJECTED },
		{ -ECONNRESET, RVCM_DEV_REJECT_CONSUMER, RVCM_STATUS_REJECTED },
		{ 3, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_RESOURCE },
		{ 9, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },
		{ -EPROTO, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },
		{ 33, RVCM_DEV_REJECT_CONSUMER, RVCM_STATUS_REJECTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rvcm_verbs_verdict v = verdict_of(RDMA_CM_EVENT_REJECTED, rows[i].status);

		assert_int_equal(v.type, RVCM_DEV_EVENT_REJECTED);
		assert_int_equal(v.reject, rows[i].reject);
		assert_int_equal(v.status, rows[i].means);
		assert_int_not_equal(v.err, 0);
	}
}

static void errnos_say_what_failed(void **state)
{
	(void)state;
	assert_int_equal(verdict_of(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT).status,
			 RVCM_STATUS_UNREACHABLE);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT).err, ETIMEDOUT);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_ROUTE_ERROR, -ENODEV).status,
			 RVCM_STATUS_UNREACHABLE);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT).status,
			 RVCM_STATUS_CONNECT_TIMEOUT);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH).status,
			 RVCM_STATUS_UNREACHABLE);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL).status,
			 RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_DISCONNECTED, 0).status, RVCM_STATUS_OK);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_DISCONNECTED, -ECONNRESET).status,
			 RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(verdict_of(RDMA_CM_EVENT_DEVICE_REMOVAL, 0).status,
			 RVCM_STATUS_DEVICE_REMOVED);
}

static void only_errors_of_a_qp_end_it(void **state)
{
	(void)state;
	for (int e = 0; e <= IBV_EVENT_WQ_FATAL; e++) {
		enum rvcm_status status = rvcm_verbs_verdict_async((enum ibv_event_type)e);
		bool error = e == IBV_EVENT_QP_FATAL || e == IBV_EVENT_QP_REQ_ERR ||
			     e == IBV_EVENT_QP_ACCESS_ERR || e == IBV_EVENT_PATH_MIG_ERR ||
			     e == IBV_EVENT_QP_LAST_WQE_REACHED;

		assert_int_equal(status != RVCM_STATUS_OK, error);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_multicast_is_unknown),
		cmocka_unit_test(a_failure_has_a_status_and_nothing_else_has),
		cmocka_unit_test(who_accepted_is_not_rejected),
		cmocka_unit_test(who_sent_private_data_is_there),
		cmocka_unit_test(reasons_are_told_apart),
		cmocka_unit_test(errnos_say_what_failed),
		cmocka_unit_test(only_errors_of_a_qp_end_it),
	};

	return cmocka_run_group_tests_name("verbs_verdict", tests, NULL, NULL);
}

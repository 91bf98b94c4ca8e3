/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "conn/conn_impl.h"

static const struct rvcm_dev dev = { .attr.name = "soft-eth0" };

static struct rvcm_addr peer_at(const char *text)
{
	struct rvcm_addr peer;

	assert_int_equal(rvcm_addr_parse(text, &peer), 0);
	return peer;
}

static void no_fact_is_said_twice(void **state)
{
	static const struct {
		enum rvcm_status status;
		int err;
		const char *detail, *text;
	} rows[] = {
		{ RVCM_STATUS_CONNECTION_LOST, 0, NULL, "connection lost" },
		{ RVCM_STATUS_CONNECTION_LOST, ECONNRESET, NULL,
		  "connection lost: Connection reset by peer" },
		{ RVCM_STATUS_CONNECTION_LOST, 0, "the peer has lost it",
		  "connection lost: the peer has lost it" },
		{ RVCM_STATUS_REFUSED, ECONNREFUSED, "at least not by that device",
		  "connection refused: nobody listens there: at least not by that device" },
		{ RVCM_STATUS_CONNECT_TIMEOUT, ETIMEDOUT, NULL, "connection timed out" },
		{ RVCM_STATUS_ADDRESS_IN_USE, EADDRINUSE, NULL, "address already in use" },
		{ RVCM_STATUS_UNREACHABLE, EHOSTUNREACH, NULL,
		  "address unreachable: No route to host" },
		{ RVCM_STATUS_GENERAL, EMFILE, NULL,
		  "error: Too many open files (RLIMIT_NOFILE, ulimit -n)" },
	};
	struct rvcm_addr peer = peer_at("10.0.0.2:7");
	struct rvcm_conn_cause cause;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rvcm_cause_set(&cause, &peer, rows[i].status, rows[i].err, rows[i].detail);
		assert_int_equal(cause.status, rows[i].status);
		assert_int_equal(cause.err, rows[i].err);
		assert_string_equal(rvcm_cause_why(&cause), rows[i].text);
	}
}

static void who_comes_first(void **state)
{
	struct rvcm_addr peer = peer_at("10.0.0.2:7"), v6 = peer_at("[2001:db8::2]:7");
	char who[RVCM_CAUSE_WHO_MAX];
	struct rvcm_conn_cause cause;

	(void)state;
	assert_string_equal(rvcm_cause_who(&peer, NULL, 0, who), "peer 10.0.0.2:7");
	assert_string_equal(rvcm_cause_who(&peer, &dev, 0, who), "peer 10.0.0.2:7 by soft-eth0");
	assert_string_equal(rvcm_cause_who(&v6, &dev, 2, who),
			    "peer [2001:db8::2]:7 by soft-eth0, link 2");
	rvcm_cause_by(&cause, &v6, &dev, RVCM_STATUS_CONNECTION_LOST, EPIPE, NULL);
	assert_string_equal(cause.text,
			    "peer [2001:db8::2]:7 by soft-eth0: connection lost: Broken pipe");
	assert_string_equal(rvcm_cause_why(&cause), "connection lost: Broken pipe");
}

static void what_a_device_says_besides(void **state)
{
	struct rvcm_cause_report report = { .dev = &dev,
					    .status = RVCM_STATUS_UNREACHABLE,
					    .words = "rdma_resolve_addr",
					    .number = -110 };
	struct rvcm_addr peer = peer_at("10.0.0.2:7");
	struct rvcm_conn_cause cause;

	(void)state;
	rvcm_cause_of_device(&cause, &peer, &report);
	assert_string_equal(cause.text, "peer 10.0.0.2:7 by soft-eth0: address unreachable: "
					"rdma_resolve_addr -110");
	report.vendor_err = 0x81;
	rvcm_cause_of_device(&cause, &peer, &report);
	assert_string_equal(rvcm_cause_why(&cause), "address unreachable: rdma_resolve_addr -110, "
						    "the device's code is 0x81");
	assert_int_equal(cause.vendor_err, 0x81);
	report.words = NULL;
	report.vendor_err = 0;
	rvcm_cause_of_device(&cause, &peer, &report);
	assert_string_equal(rvcm_cause_why(&cause), "address unreachable");
}

static void what_came_of_trying(void **state)
{
	static const struct {
		enum rvcm_status lost;
		int lost_err;
		enum rvcm_status answer;
		int answer_err;
		enum rvcm_status status;
		int err;
		const char *text;
	} rows[] = {
		{ RVCM_STATUS_CONNECTION_LOST, ECONNRESET, RVCM_STATUS_REFUSED, ECONNREFUSED,
		  RVCM_STATUS_PEER_DEAD, 0,
		  "the peer's process is gone: connection lost: Connection reset by peer; tried for "
		  "1.002 s to connect again: connection refused: nobody listens there" },
		{ RVCM_STATUS_PEER_DEAD, 0, RVCM_STATUS_REFUSED, ECONNREFUSED,
		  RVCM_STATUS_PEER_DEAD, 0,
		  "the peer's process is gone; tried for 1.002 s to connect again: connection "
		  "refused: nobody listens there" },
		{ RVCM_STATUS_CONNECTION_LOST, ECONNRESET, RVCM_STATUS_UNREACHABLE, ENETUNREACH,
		  RVCM_STATUS_CONNECTION_LOST, ENETUNREACH,
		  "connection lost: Connection reset by peer; tried for 1.002 s to connect again: "
		  "address unreachable: Network is unreachable" },
		{ RVCM_STATUS_PEER_DEAD, 0, RVCM_STATUS_GIVEN_UP, 0, RVCM_STATUS_GIVEN_UP, 0,
		  "the peer's process is gone; tried for 1.002 s to connect again: the peer has "
		  "given the connection up" },
	};
	struct rvcm_addr peer = peer_at("10.0.0.2:7");
	struct rvcm_conn_cause cause, answer;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rvcm_cause_set(&cause, &peer, rows[i].lost, rows[i].lost_err, NULL);
		rvcm_cause_set(&answer, &peer, rows[i].answer, rows[i].answer_err, NULL);
		rvcm_cause_tried(&cause, &answer, &peer, &dev, 1002);
		assert_int_equal(cause.status, rows[i].status);
		assert_int_equal(cause.err, rows[i].err);
		assert_string_equal(rvcm_cause_why(&cause), rows[i].text);
		assert_int_equal(strncmp(cause.text, "peer 10.0.0.2:7 by soft-eth0: ", 30), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_fact_is_said_twice),
		cmocka_unit_test(who_comes_first),
		cmocka_unit_test(what_a_device_says_besides),
		cmocka_unit_test(what_came_of_trying),
	};

	return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}

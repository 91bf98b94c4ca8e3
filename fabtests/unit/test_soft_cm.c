/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management of the soft device against foreign, broken and silent peers. */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct soft_peer_conf pooled = { .pool = true };

static void open_quick(struct soft_peer *p)
{
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.handshake_timeout_ms = 50;
	tun.connect_timeout_ms = 50;
	soft_peer_open(p, &tun);
}

/* The device goes on to serve: somebody connects properly and says something. */
static void check_alive(struct soft_peer *p)
{
	p->ops->listener_close(p->listener);
	p->listener = NULL;
	close(p->fd);
	p->fd = -1;
	soft_peer_up(p, &pooled);
	soft_peer_send(p, "hello", 5);
	p->ops->rx_release(p->pool, soft_peer_wc(p).rx);
	soft_peer_close(p);
}

/* -- who comes to us ------------------------------------------------------------------------ */

static void turned_away(const void *bytes, size_t n)
{
	struct soft_peer p;

	open_quick(&p);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, bytes, n);
	soft_peer_expect_end(&p);
	assert_int_equal(p.warned.n, 1);
	assert_false(p.have_event);
	check_alive(&p);
}

static void an_http_client_is_turned_away(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

	(void)state;
	turned_away(get, sizeof(get) - 1);
}

static void one_wrong_byte_is_enough(void **state)
{
	(void)state;
	turned_away("M_", 2);
}

static void silence_is_turned_away(void **state)
{
	(void)state;
	turned_away("", 0);
}

static void half_a_request_is_turned_away(void **state)
{
	(void)state;
	turned_away("MPA ID Req Frame\x40\x01\x00", 19);
}

static void a_request_without_its_private_data_is_turned_away(void **state)
{
	(void)state;
	turned_away("MPA ID Req Frame\x40\x01\x00\x08"
		    "abc",
		    23);
}

static void an_unknown_revision_is_turned_away(void **state)
{
	(void)state;
	turned_away("MPA ID Req Frame\x00\x03\x00\x00", 20);
}

static void too_much_private_data_is_turned_away(void **state)
{
	(void)state;
	turned_away("MPA ID Req Frame\x00\x01\x02\x01", 20);
}

static void a_hang_up_is_turned_away(void **state)
{
	struct soft_peer p;

	(void)state;
	open_quick(&p);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA", 3);
	shutdown(p.fd, SHUT_WR);
	soft_peer_expect_end(&p);
	check_alive(&p);
}

/* RFC 5044 section 7.1.1: we cannot send markers, so who wants them is rejected. */
static void a_request_for_markers_is_rejected(void **state)
{
	struct rvcm_soft_mpa_frame reply;
	uint8_t buf[20];
	struct soft_peer p;

	(void)state;
	open_quick(&p);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\x80\x01\x00\x00", 20);
	soft_peer_read(&p, buf, 20);
	assert_true(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, buf, 20, &reply) > 0);
	assert_true(reply.reject);
	soft_peer_expect_end(&p);
	check_alive(&p);
}

static void many_strangers_at_once_do_no_harm(void **state)
{
	enum {
		N = 40
	};
	int fds[N];
	struct soft_peer p;

	(void)state;
	open_quick(&p);
	soft_peer_listen(&p);
	for (int i = 0; i < N; i++) {
		soft_peer_dial(&p);
		if (i % 3)
			soft_peer_write(&p, "MPA ID Req F", (size_t)(i % 13));
		soft_peer_pump(&p);
		fds[i] = p.fd;
		p.fd = -1;
	}
	for (int i = 0; i < N; i++) {
		p.fd = fds[i];
		soft_peer_expect_end(&p);
		close(p.fd);
		p.fd = -1;
	}
	soft_peer_dial(&p);
	check_alive(&p);
}

/* They are still there, saying nothing or half of something, while others are served. */
static void who_says_nothing_blocks_nobody(void **state)
{
	enum {
		N = 30
	};
	struct soft_peer p;
	int fds[N];

	(void)state;
	soft_peer_open(&p, NULL); /* they have 5 s */
	soft_peer_listen(&p);
	for (int i = 0; i < N; i++) {
		soft_peer_dial(&p);
		if (i % 2)
			soft_peer_write(&p, "MPA ID Req F", 12);
		soft_peer_pump(&p);
		fds[i] = p.fd;
		p.fd = -1;
	}
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\0\1\0\0", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(p.ops->reject(p.event.req, NULL, 0), 0);
	assert_int_equal(p.warned.n, 0);
	for (int i = 0; i < N; i++)
		close(fds[i]);
	soft_peer_close(&p);
}

/* The oldest that has said nothing goes, and who speaks is served. */
static void silence_does_not_keep_others_out(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;
	int silent[3];

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.handshakes_max = 2;
	soft_peer_open(&p, &tun);
	soft_peer_listen(&p);
	for (int i = 0; i < 3; i++) {
		soft_peer_dial(&p);
		soft_peer_pump(&p);
		silent[i] = p.fd;
		p.fd = -1;
	}
	assert_int_equal(p.warned.n, 1);
	p.fd = silent[0];
	soft_peer_expect_end(&p);
	close(p.fd);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\0\1\0\0", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(p.warned.n, 1);
	assert_int_equal(p.ops->reject(p.event.req, NULL, 0), 0);
	close(silent[1]);
	close(silent[2]);
	soft_peer_close(&p);
}

/* Requests that are whole and wait for an answer are not: one more has to go. */
static void above_the_limit_one_more_is_dropped(void **state)
{
	struct rvcm_soft_tunables tun;
	struct rvcm_dev_req *req;
	struct soft_peer p;
	int first;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.handshakes_max = 1;
	soft_peer_open(&p, &tun);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\0\1\0\0", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	req = p.event.req;
	first = p.fd;
	p.fd = -1;
	soft_peer_dial(&p);
	soft_peer_expect_end(&p);
	assert_int_equal(p.ops->reject(req, NULL, 0), 0);
	close(p.fd);
	close(first);
	p.fd = -1;
	soft_peer_close(&p);
}

/* -- what is agreed ------------------------------------------------------------------------- */

static void revision_1_is_answered_in_kind(void **state)
{
	const struct soft_peer_conf conf = { .pool = true, .foreign_v1 = true };
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &conf);
	assert_int_equal(p.qp->caps & (RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64), 0);
	assert_false(p.crc);
	soft_peer_send(&p, "hello", 5);
	p.ops->rx_release(p.pool, soft_peer_wc(&p).rx);
	soft_peer_close(&p);
}

static void crcs_are_used_if_the_peer_wants_them(void **state)
{
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	p.crc = true;
	soft_peer_up(&p, &pooled);
	assert_true(p.crc);
	soft_peer_close(&p);
}

static void crcs_are_used_if_we_want_them(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.crc = true;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	assert_true(p.crc);
	soft_peer_close(&p);
}

/* RFC 6581 section 9.1: of the ready-to-receive messages offered, the reply names one. */
static void one_ready_to_receive_message_is_chosen(void **state)
{
	static const uint8_t offers[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct rvcm_soft_mpa_frame request = {
		.kind = RVCM_SOFT_MPA_REQUEST,
		.revision = 2,
		.enhanced = true,
		.peer_to_peer = true,
		.ird = 7,
		.ord = 5,
	};
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(offers); i++) {
		struct soft_peer p;
		int n;

		request.rtr = offers[i];
		request.ird = 7;
		request.ord = 5;
		n = rvcm_soft_mpa_encode(&request, buf);
		soft_peer_open(&p, NULL);
		soft_peer_qp(&p, &pooled);
		soft_peer_listen(&p);
		soft_peer_dial(&p);
		soft_peer_write(&p, buf, (size_t)n);
		soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
		assert_int_equal(p.ops->accept(p.event.req, p.qp, "pd", 2), 0);
		soft_peer_read(&p, buf, 26);
		assert_int_equal(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, buf, 26, &request), 26);
		assert_true(request.peer_to_peer);
		assert_int_equal(request.rtr & (request.rtr - 1), 0);
		assert_int_equal(request.rtr & offers[i], request.rtr);
		assert_true(request.rtr);
		assert_true(request.ord <= 7);
		assert_memory_equal(request.private_data, "pd", 2);
		request.kind = RVCM_SOFT_MPA_REQUEST;
		request.private_bytes = 0;
		soft_peer_close(&p);
	}
}

/* -- to whom we go -------------------------------------------------------------------------- */

/* Connect to a server that reads our request and answers so; the QP then closes. */
static const struct rvcm_dev_event *answered(struct soft_peer *p, const void *answer, size_t n,
					     bool hang_up, enum rvcm_dev_event_type type)
{
	const struct rvcm_dev_event *ev;
	struct rvcm_addr addr;
	uint8_t request[24];
	int server;

	open_quick(p);
	soft_peer_qp(p, &pooled);
	server = soft_peer_server(p, &addr);
	assert_int_equal(p->ops->connect(p->qp, &addr, NULL, 0), 0);
	p->fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(p->fd >= 0);
	close(server);
	soft_peer_read(p, request, sizeof(request));
	soft_peer_write(p, answer, n);
	if (hang_up)
		shutdown(p->fd, SHUT_WR);
	ev = soft_peer_event(p, type);
	assert_ptr_equal(ev->ctx, p);
	return ev;
}

static void an_http_server_is_no_rnic(void **state)
{
	static const char bad[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	const struct rvcm_dev_event *ev;
	struct soft_peer p;

	(void)state;
	ev = answered(&p, bad, sizeof(bad) - 1, true, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(ev->reject, RVCM_DEV_REJECT_PROTOCOL);
	assert_int_equal(ev->status, RVCM_STATUS_NOT_RNIC);
	assert_int_equal(p.ops->qp_state(p.qp), RVCM_DEV_QP_ERROR);
	soft_peer_close(&p);
}

static void a_request_where_a_reply_is_due_is_no_rnic(void **state)
{
	struct soft_peer p;

	(void)state;
	assert_int_equal(
		answered(&p, "MPA ID Req Frame\x00\x02\x00\x00", 20, false, RVCM_DEV_EVENT_REJECTED)
			->reject,
		RVCM_DEV_REJECT_PROTOCOL);
	soft_peer_close(&p);
}

static void a_hang_up_is_a_connect_error(void **state)
{
	struct soft_peer p;

	(void)state;
	assert_int_equal(answered(&p, "MPA", 3, true, RVCM_DEV_EVENT_CONNECT_ERROR)->status,
			 RVCM_STATUS_CONNECTION_LOST);
	soft_peer_close(&p);
}

static void silence_is_unreachable(void **state)
{
	const struct rvcm_dev_event *ev;
	struct soft_peer p;

	(void)state;
	ev = answered(&p, "MPA", 3, false, RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(ev->status, RVCM_STATUS_CONNECT_TIMEOUT);
	assert_int_equal(ev->err, ETIMEDOUT);
	soft_peer_close(&p);
}

static void a_reject_has_its_private_data(void **state)
{
	const struct rvcm_dev_event *ev;
	struct soft_peer p;

	(void)state;
	ev = answered(&p, "MPA ID Rep Frame\x20\x01\x00\x02no", 22, true, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(ev->reject, RVCM_DEV_REJECT_CONSUMER);
	assert_int_equal(ev->private_bytes, 2);
	assert_memory_equal(p.private_data, "no", 2);
	soft_peer_close(&p);
}

/* The kernel's siw answers in the request's own header, reserved bits and all. */
static void who_echoes_our_mark_is_not_of_our_kind(void **state)
{
	struct rvcm_addr addr;
	uint8_t frame[24];
	struct soft_peer p;
	int server;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_qp(&p, &pooled);
	server = soft_peer_server(&p, &addr);
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	p.fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(server);
	soft_peer_read(&p, frame, sizeof(frame));
	memcpy(frame, "MPA ID Rep Frame", 16);
	soft_peer_write(&p, frame, sizeof(frame));
	soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(p.qp->caps & (RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64), 0);
	assert_true(p.qp->caps & RVCM_DEV_CAP_READ);
	soft_peer_close(&p);
}

static void an_address_of_another_family_is_an_address_error(void **state)
{
	struct rvcm_addr addr;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_qp(&p, &pooled);
	assert_int_equal(rvcm_addr_parse("[::1]:7", &addr), 0);
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	soft_peer_event(&p, RVCM_DEV_EVENT_ADDR_ERROR);
	soft_peer_close(&p);
}

/* 198.51.100.0/24 is for documentation (RFC 5737); from a loopback address there is no way there.
 */
static void another_host_is_unreachable_from_loopback(void **state)
{
	struct rvcm_addr addr;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_qp(&p, &pooled);
	assert_int_equal(rvcm_addr_parse("198.51.100.1:7", &addr), 0);
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	soft_peer_event(&p, RVCM_DEV_EVENT_UNREACHABLE);
	soft_peer_close(&p);
}

static void devices_are_listed_loopback_last(void **state)
{
	struct rvcm_dev_attr attrs[64], few[1];
	int n = rvcm_soft_class.enumerate(attrs, 64);
	bool loopback = false;

	(void)state;
	assert_in_range(n, 1, 64);
	for (int i = 0; i < n; i++) {
		assert_true(!loopback || rvcm_addr_is_loopback(&attrs[i].addr));
		loopback = rvcm_addr_is_loopback(&attrs[i].addr);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(attrs[i].name, attrs[k].name);
	}
	assert_int_equal(rvcm_soft_class.enumerate(few, 1), n);
	assert_string_equal(few[0].name, attrs[0].name);
	assert_int_equal(rvcm_soft_class.enumerate(NULL, 0), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_http_client_is_turned_away),
		cmocka_unit_test(one_wrong_byte_is_enough),
		cmocka_unit_test(silence_is_turned_away),
		cmocka_unit_test(half_a_request_is_turned_away),
		cmocka_unit_test(a_request_without_its_private_data_is_turned_away),
		cmocka_unit_test(an_unknown_revision_is_turned_away),
		cmocka_unit_test(too_much_private_data_is_turned_away),
		cmocka_unit_test(a_hang_up_is_turned_away),
		cmocka_unit_test(a_request_for_markers_is_rejected),
		cmocka_unit_test(many_strangers_at_once_do_no_harm),
		cmocka_unit_test(who_says_nothing_blocks_nobody),
		cmocka_unit_test(silence_does_not_keep_others_out),
		cmocka_unit_test(above_the_limit_one_more_is_dropped),
		cmocka_unit_test(revision_1_is_answered_in_kind),
		cmocka_unit_test(crcs_are_used_if_the_peer_wants_them),
		cmocka_unit_test(crcs_are_used_if_we_want_them),
		cmocka_unit_test(one_ready_to_receive_message_is_chosen),
		cmocka_unit_test(an_http_server_is_no_rnic),
		cmocka_unit_test(a_request_where_a_reply_is_due_is_no_rnic),
		cmocka_unit_test(a_hang_up_is_a_connect_error),
		cmocka_unit_test(silence_is_unreachable),
		cmocka_unit_test(a_reject_has_its_private_data),
		cmocka_unit_test(who_echoes_our_mark_is_not_of_our_kind),
		cmocka_unit_test(an_address_of_another_family_is_an_address_error),
		cmocka_unit_test(another_host_is_unreachable_from_loopback),
		cmocka_unit_test(devices_are_listed_loopback_last),
	};

	return cmocka_run_group_tests_name("soft_cm", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are gone without a word, as behind a firewall or after a power cut: nothing they sent
 * arrives any more and nothing is acknowledged. A socket filter that accepts no byte does that to
 * the peer's socket. And the other way round: our last words reach a peer that goes on talking.
 */
#include "unit/unit.h"
#include "base/clock.h"
#include "dev/soft/dev_impl.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct soft_peer_conf pooled = { .pool = true };

/* From now on the socket neither hears nor, as nothing is acknowledged, is heard for long. */
static void vanish(int fd)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &none };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
			 0);
}

/* A peer that is gone is noticed soon, and after some 3 s if nothing is under way. */
static void open_patient(struct soft_peer *p, uint32_t silence_ms)
{
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.silence_timeout_ms = silence_ms;
	tun.keepalive_idle_s = 1;
	tun.keepalive_interval_s = 1;
	tun.connect_timeout_ms = 100;
	soft_peer_open(p, &tun);
}

static void open_watchful(struct soft_peer *p)
{
	open_patient(p, 200);
}

static void check_lost(struct soft_peer *p)
{
	const struct rvcm_dev_event *ev = soft_peer_event(p, RVCM_DEV_EVENT_DISCONNECTED);

	assert_int_equal(ev->status, RVCM_STATUS_RETRY_EXCEEDED);
	assert_int_equal(ev->err, ETIMEDOUT);
	assert_int_equal(p->ops->qp_state(p->qp), RVCM_DEV_QP_ERROR);
	soft_peer_close(p);
}

static void post(struct soft_peer *p, enum rvcm_dev_op op, uint64_t wr_id)
{
	const struct rvcm_dev_wr wr = { .wr_id = wr_id, .op = op, .flags = RVCM_DEV_WR_SIGNALED };

	assert_int_equal(p->ops->post(p->qp, &wr), 0);
}

static void bytes_that_nobody_acknowledges(void **state)
{
	struct rvcm_dev_wc wc;
	struct soft_peer p;

	(void)state;
	open_watchful(&p);
	soft_peer_up(&p, &pooled);
	vanish(p.fd);
	post(&p, RVCM_DEV_OP_READ, 1);
	post(&p, RVCM_DEV_OP_SEND, 2);
	wc = soft_peer_wc(&p);
	assert_int_equal(p.warned.n, 1); /* it was us who gave up, not TCP, later */
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, RVCM_STATUS_RETRY_EXCEEDED);
	wc = soft_peer_wc(&p); /* handed to the stream, and behind a READ that has failed */
	assert_int_equal(wc.wr_id, 2);
	assert_int_not_equal(wc.status, RVCM_STATUS_OK);
	check_lost(&p);
}

/* Nothing is under way from here, and half a frame from there. */
static void a_peer_that_says_no_more(void **state)
{
	struct soft_peer p;

	(void)state;
	open_watchful(&p);
	soft_peer_up(&p, &pooled);
	soft_peer_write(&p, "\0\x20\x41\x43", 4);
	soft_peer_pump(&p);
	vanish(p.fd);
	check_lost(&p);
}

/*
 * A peer that reads nothing, be it stopped or busy, is there: its TCP answers that it has no room,
 * if not each time, and at most every 500 ms (tcp_invalid_ratelimit), which the time-out must be
 * longer than. It lasts for several times that, and then takes all.
 */
static void a_peer_that_does_not_read_is_there(void **state)
{
	enum {
		BYTES = 16 << 20
	};
	uint8_t *out = calloc(1, BYTES), *in = malloc(BYTES);
	struct rvcm_dev_mr_attr attr = { .addr = out, .length = BYTES };
	struct rvcm_dev_sge sge = { .addr = out, .length = BYTES };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .n_sge = 1, .sge = &sge };
	struct soft_peer p;
	uint64_t until;

	(void)state;
	open_patient(&p, 1000);
	soft_peer_up(&p, &pooled);
	assert_int_equal(p.ops->mr_reg(p.dev, &attr, &sge.mr), 0);
	assert_int_equal(p.ops->post(p.qp, &wr), 0);
	for (until = rvcm_clock_ns() + 4000 * RVCM_CLOCK_NS_PER_MS; rvcm_clock_ns() < until;)
		soft_peer_pump(&p);
	assert_false(p.have_event);
	soft_peer_read(&p, in, BYTES);
	assert_false(p.have_event);
	p.ops->mr_dereg(sge.mr);
	soft_peer_close(&p);
	free(in);
	free(out);
}

/* Established, and its owner has not attached it yet: control sees it. */
static void before_it_was_attached(void **state)
{
	struct rvcm_addr addr;
	uint8_t frame[24];
	struct soft_peer p;
	int server;

	(void)state;
	open_watchful(&p);
	soft_peer_qp(&p, &pooled);
	server = soft_peer_server(&p, &addr);
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	p.fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(server);
	soft_peer_read(&p, frame, sizeof(frame));
	soft_peer_write(&p, "MPA ID Rep Frame\0\1\0\0", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
	vanish(p.fd);
	check_lost(&p);
}

/* Not even TCP is answered. */
static void a_host_that_does_not_answer(void **state)
{
	const struct rvcm_dev_event *ev;
	struct rvcm_addr addr;
	struct soft_peer p;

	(void)state;
	open_watchful(&p);
	soft_peer_qp(&p, &pooled);
	p.fd = soft_peer_server(&p, &addr);
	vanish(p.fd);
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	ev = soft_peer_event(&p, RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(ev->status, RVCM_STATUS_CONNECT_TIMEOUT);
	assert_int_equal(ev->err, ETIMEDOUT);
	soft_peer_close(&p);
}

/* An orderly end that the peer does not answer. */
static void a_peer_that_does_not_end(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.close_timeout_ms = 50;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	vanish(p.fd);
	assert_int_equal(p.ops->disconnect(p.qp), 0);
	assert_int_equal(soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED)->err, ETIMEDOUT);
	soft_peer_close(&p);
}

/* Without a number of seconds it is never probed. */
static void who_is_not_to_be_probed_is_not(void **state)
{
	static const uint32_t idle_s[] = { 10, 0 };
	struct rvcm_soft_tunables tun;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	for (int i = 0; i < 2; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0), probed = -1;
		socklen_t bytes = sizeof(probed);

		assert_true(fd >= 0);
		tun.keepalive_idle_s = idle_s[i];
		rvcm_soft_sock_tune(fd, &tun);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &probed, &bytes), 0);
		assert_int_equal(probed, idle_s[i] != 0);
		close(fd);
	}
}

/* -- last words ----------------------------------------------------------------------------- */

static void detach_and_close(struct soft_peer *p)
{
	p->ops->detach(p->qp);
	p->attached = false;
	p->ops->qp_close(p->qp);
	p->qp = NULL;
}

/* The peer sends on when our end is over and closed; what we said last is there all the same. */
static void a_terminate_reaches_who_goes_on_sending(void **state)
{
	static const uint8_t more[100000];
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	soft_peer_write(&p, "\0\x12\x42\x43", 4); /* DDP version 2 */
	soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
	detach_and_close(&p);
	for (int i = 0; i < 20; i++)
		soft_peer_write(&p, more, sizeof(more));
	soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_D_U_VERSION, NULL);
	soft_peer_close(&p);
}

static void a_reject_reaches_who_goes_on_sending(void **state)
{
	static const uint8_t more[100000];
	struct soft_peer p;
	uint8_t reply[22];

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\0\1\0\0", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	soft_peer_write(&p, more, sizeof(more));
	assert_int_equal(p.ops->reject(p.event.req, "no", 2), 0);
	soft_peer_write(&p, more, sizeof(more));
	soft_peer_read(&p, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame\x20\1\0\2no", 22);
	soft_peer_expect_end(&p);
	soft_peer_close(&p);
}

/* A peer that never ends its side is waited for only so long: then sending is an error to it. */
static void lingering_is_bounded(void **state)
{
	struct rvcm_soft_tunables tun;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.linger_ms = 20;
	soft_peer_open(&p, &tun);
	soft_peer_up(&p, &pooled);
	soft_peer_write(&p, "\0\x12\x42\x43", 4);
	soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
	detach_and_close(&p);
	while (send(p.fd, "x", 1, MSG_NOSIGNAL) == 1 || errno == EAGAIN)
		soft_peer_pump(&p);
	assert_true(errno == ECONNRESET || errno == EPIPE);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_nobody_acknowledges),
		cmocka_unit_test(a_peer_that_says_no_more),
		cmocka_unit_test(a_peer_that_does_not_read_is_there),
		cmocka_unit_test(before_it_was_attached),
		cmocka_unit_test(a_host_that_does_not_answer),
		cmocka_unit_test(a_peer_that_does_not_end),
		cmocka_unit_test(who_is_not_to_be_probed_is_not),
		cmocka_unit_test(a_terminate_reaches_who_goes_on_sending),
		cmocka_unit_test(a_reject_reaches_who_goes_on_sending),
		cmocka_unit_test(lingering_is_bounded),
	};

	return cmocka_run_group_tests_name("soft_gone", tests, NULL, NULL);
}

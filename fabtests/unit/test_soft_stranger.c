/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who connects and is no peer, and limits that are met again and again: what is said of them, which
 * is the truth, and once; and that those who come meanwhile are served.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct soft_peer_conf pooled = { .pool = true };

static void open_up(struct soft_peer *p)
{
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.handshake_timeout_ms = 50;
	soft_peer_open(p, &tun);
	soft_peer_listen(p);
}

/* Somebody connects, says this and is turned away. */
static void stranger(struct soft_peer *p, const void *bytes, size_t n)
{
	soft_peer_dial(p);
	soft_peer_write(p, bytes, n);
	soft_peer_expect_end(p);
	close(p->fd);
	p->fd = -1;
}

static const struct greeting {
	const char *bytes;
	size_t n;
	const char *said;
} greetings[] = {
#define GREETING(bytes, said)                  \
	{                                      \
		bytes, sizeof(bytes) - 1, said \
	}
	/* A ClientHello as it begins: record 22, version 3.1, 512 bytes; handshake 1, 508
	   bytes, 3.3. */
	GREETING("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
	GREETING("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
	GREETING("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
	GREETING("OPTIONS * HTTP/1.1\r\n\r\n", "HTTP"),
	GREETING("SSH-2.0-OpenSSH_9.2p1\r\n", "SSH"),
	GREETING("MPA ID Rep Frame\x00\x02\x00\x00", "MPA reply"),
	GREETING("GE", "something else than an MPA request"),
	GREETING("MPA ID Req Frame\x00\x07", "revision"),
	GREETING("MPA ID Req Frame\x00\x01\x02\x01", "512 bytes of private data"),
	GREETING("MPA ID Req Frame\x10\x02\x00\x03", "IRD and ORD"),
	GREETING("MPA ID Req Frame\x80\x01\x00\x00", "markers"),
	GREETING("MPA ID Req Frame\x00\x01\x00", "19 bytes of an MPA request in 50 ms"),
	GREETING("", "0 bytes of an MPA request in 50 ms"),
};

static void what_others_speak_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(greetings) / sizeof(greetings[0]); i++) {
		const struct greeting *g = &greetings[i];
		struct soft_peer p;

		open_up(&p);
		if (strcmp(g->said, "markers") != 0) {
			stranger(&p, g->bytes, g->n);
		} else { /* who speaks MPA is answered */
			uint8_t reply[20];

			soft_peer_dial(&p);
			soft_peer_write(&p, g->bytes, g->n);
			soft_peer_read(&p, reply, sizeof(reply));
			soft_peer_expect_end(&p);
		}
		assert_int_equal(p.warned.n, 1);
		assert_non_null(strstr(p.warned.text, "127.0.0.1:"));
		if (!strstr(p.warned.text, g->said))
			fail_msg("of %s it says: %s", g->said, p.warned.text);
		soft_peer_close(&p);
	}
}

/* It happens, in jobs that are well, that an opener thinks better of it. */
static void who_hangs_up_is_not_accused(void **state)
{
	static const char request[] = "MPA ID Req Frame\x00\x01\x00\x00";
	struct soft_peer p;

	(void)state;
	open_up(&p);
	for (size_t n = 0; n < sizeof(request) - 1; n++) {
		soft_peer_dial(&p);
		soft_peer_write(&p, request, n);
		shutdown(p.fd, SHUT_WR);
		soft_peer_expect_end(&p);
		close(p.fd);
		p.fd = -1;
	}
	assert_int_equal(p.warned.n, 0);
	soft_peer_close(&p);
}

/* The connection of before goes on, and a new one is made, among a hundred strangers. */
static void a_hundred_strangers_are_one_line_and_no_harm(void **state)
{
	struct soft_peer p;
	int fd;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	fd = p.fd;
	p.fd = -1;
	for (int i = 0; i < 100; i++)
		stranger(&p, greetings[i % 6].bytes, greetings[i % 6].n);
	assert_int_equal(p.warned.n, 1);
	p.fd = fd;
	soft_peer_send(&p, "hello", 5);
	soft_peer_got(&p);
	p.fd = -1;
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\x00\x01\x00\x00", 20);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	soft_peer_close(&p);
	close(fd);
}

/* -- limits ---------------------------------------------------------------------------------- */

/* No descriptor more than there are. */
static void close_the_door(struct rlimit *before)
{
	struct rlimit now;
	int next = open("/dev/null", O_RDONLY);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	now = *before;
	now.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static void who_cannot_connect_for_want_of_descriptors_says_so_once(void **state)
{
	struct rlimit before;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_listen(&p);
	soft_peer_qp(&p, &pooled);
	close_the_door(&before);
	for (int i = 0; i < 10; i++)
		assert_int_equal(p.ops->connect(p.qp, &p.addr, NULL, 0), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(p.warned.n, 1);
	assert_non_null(strstr(p.warned.text, "RLIMIT_NOFILE"));
	assert_int_equal(p.ops->connect(p.qp, &p.addr, NULL, 0), 0);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	soft_peer_close(&p);
}

/* Who waits is served when there are descriptors again. */
static void who_cannot_accept_for_want_of_descriptors_says_so_once(void **state)
{
	struct rlimit before;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_listen(&p);
	soft_peer_dial(&p);
	soft_peer_write(&p, "MPA ID Req Frame\x00\x01\x00\x00", 20);
	close_the_door(&before);
	while (!p.warned.n)
		soft_peer_pump(&p);
	assert_non_null(strstr(p.warned.text, "RLIMIT_NOFILE"));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(p.warned.n, 1);
	soft_peer_close(&p);
}

/* -- sockets that a child keeps -----------------------------------------------------------------
 */

static pid_t child_that_keeps_all(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	_exit(0);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The one of these in all the program: the n-th end of a watch fails, and the socket is watched on.
 */
static int ends_until_failure;

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_DEL && ends_until_failure && --ends_until_failure == 0) {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

/* A socket that is the data side's has news: control, which still hears of it, lets go. */
static void a_watch_that_did_not_end_is_ended_again(void **state)
{
	(void)state;
	for (int n = 1; n <= 3; n++) {
		struct rvcm_dev_event event;
		struct soft_peer p;

		soft_peer_open(&p, NULL);
		ends_until_failure = n;
		soft_peer_up(&p, &pooled);
		ends_until_failure = 0;
		soft_peer_send(&p, "hello", 5);
		shutdown(p.fd, SHUT_WR);
		while (p.ops->cm_poll(p.dev, &event))
			fail_msg("event %d", event.type);
		assert_false(readable(p.ops->cm_fd(p.dev)));
		soft_peer_got(&p);
		soft_peer_close(&p);
	}
}

/* Closed here, open there: what happens to them is nobody's business here. */
static void what_a_child_keeps_open_is_not_heard_of(void **state)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int half, late = socket(AF_INET, SOCK_STREAM, 0);
	struct rvcm_addr addr;
	struct soft_peer p;
	pid_t child;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_qp(&p, &pooled);
	half = soft_peer_server(&p, &addr); /* says nothing to who connects */
	assert_int_equal(p.ops->connect(p.qp, &addr, NULL, 0), 0);
	soft_peer_listen(&p);
	sin.sin_port = htons(p.addr.port);
	soft_peer_dial(&p); /* and sends half a request */
	soft_peer_write(&p, "MPA", 3);
	for (int i = 0; i < 20; i++)
		soft_peer_pump(&p);
	child = child_that_keeps_all();
	p.ops->qp_close(p.qp);
	p.qp = NULL;
	p.ops->listener_close(p.listener);
	p.listener = NULL;
	/* The child's are open: a connection is made, one is fed, one is ended. */
	assert_int_equal(connect(late, (struct sockaddr *)&sin, sizeof(sin)), 0);
	soft_peer_write(&p, " ID Req Frame", 13);
	close(half);
	for (int i = 0; i < 20; i++)
		soft_peer_pump(&p);
	assert_false(readable(p.ops->cm_fd(p.dev)));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(late);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_others_speak_is_named),
		cmocka_unit_test(who_hangs_up_is_not_accused),
		cmocka_unit_test(a_hundred_strangers_are_one_line_and_no_harm),
		cmocka_unit_test(who_cannot_connect_for_want_of_descriptors_says_so_once),
		cmocka_unit_test(who_cannot_accept_for_want_of_descriptors_says_so_once),
		cmocka_unit_test(a_watch_that_did_not_end_is_ended_again),
		cmocka_unit_test(what_a_child_keeps_open_is_not_heard_of),
	};

	return cmocka_run_group_tests_name("soft_stranger", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What this host's IP stack is asked: the kernel answers itself. */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/silence.h"
#include "dev/verbs/netlink.h"

struct ends {
	int listener, fd[2];
	struct sockaddr_storage at[2]; /* where fd[i] is */
};

static void name_of(int fd, struct sockaddr_storage *at)
{
	socklen_t size = sizeof(*at);

	memset(at, 0, sizeof(*at));
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &size), 0);
}

static void ends_open(struct ends *e, int family)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *any = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	struct sockaddr_storage at;

	e->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(e->listener, any, family == AF_INET ? sizeof(v4) : sizeof(v6)))
		skip(); /* no IPv6 here */
	assert_int_equal(listen(e->listener, 1), 0);
	name_of(e->listener, &at);
	e->fd[0] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(e->fd[0], (struct sockaddr *)&at, sizeof(at)), 0);
	e->fd[1] = accept(e->listener, NULL, NULL);
	assert_true(e->fd[1] >= 0);
	name_of(e->fd[0], &e->at[0]);
	name_of(e->fd[1], &e->at[1]);
}

static void ends_close(struct ends *e)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(e->fd[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(e->fd[0]);
	close(e->fd[1]);
}

static int ask(const struct ends *e, int i, struct tcp_info *info)
{
	return rvcm_verbs_netlink_tcp((const struct sockaddr *)&e->at[i],
				      (const struct sockaddr *)&e->at[1 - i], info);
}

/* Each end is found, the accepted one beside its listener; and not when it is gone. */
static void check_family(int family)
{
	struct tcp_info info;
	struct ends e;

	ends_open(&e, family);
	assert_int_equal(write(e.fd[0], "x", 1), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(&e, i, &info), 0);
		assert_int_equal(info.tcpi_state, TCP_ESTABLISHED);
		assert_int_equal(rvcm_silence_attempts(&info), 0); /* loopback answers */
	}
	ends_close(&e);
	assert_int_equal(ask(&e, 0, &info), -ENOENT);
	assert_int_equal(ask(&e, 1, &info), -ENOENT); /* though somebody listens there */
	close(e.listener);
}

static void a_connection_over_ipv4(void **state)
{
	(void)state;
	check_family(AF_INET);
}

static void a_connection_over_ipv6(void **state)
{
	(void)state;
	check_family(AF_INET6);
}

static void put(struct sockaddr_in *at, const char *ip)
{
	*at = (struct sockaddr_in) { .sin_family = AF_INET };
	assert_int_equal(inet_pton(AF_INET, ip, &at->sin_addr), 1);
}

static bool routed(const char *from, const char *to, uint32_t interface)
{
	struct sockaddr_in local, peer;

	put(&local, from);
	put(&peer, to);
	return rvcm_verbs_netlink_routed((struct sockaddr *)&local, (struct sockaddr *)&peer,
					 interface);
}

/* 192.0.2.1 is nobody's (RFC 5737), and no interface has so high a number. */
static void what_would_leave(void **state)
{
	struct sockaddr_in own, nobodys;
	uint32_t lo;

	(void)state;
	put(&own, "127.0.0.1");
	put(&nobodys, "192.0.2.1");
	lo = rvcm_verbs_netlink_interface((struct sockaddr *)&own);
	assert_int_equal(lo, if_nametoindex("lo"));
	assert_int_equal(rvcm_verbs_netlink_interface((struct sockaddr *)&nobodys), 0);
	assert_true(routed("127.0.0.1", "127.0.0.1", lo));
	assert_false(routed("192.0.2.1", "127.0.0.1", lo));
	assert_false(routed("127.0.0.1", "127.0.0.1", 0x7ffffff0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_over_ipv4),
		cmocka_unit_test(a_connection_over_ipv6),
		cmocka_unit_test(what_would_leave),
	};

	return cmocka_run_group_tests_name("verbs_netlink", tests, NULL, NULL);
}

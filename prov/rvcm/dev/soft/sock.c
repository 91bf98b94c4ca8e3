/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "dev/soft/soft_impl.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

#define SOCK_PROBES      127 /* the most there can be: silence.c decides, and sooner */
#define SOCK_DRAINS_MAX  16
#define SOCK_DRAIN_BYTES (1u << 20)

socklen_t rvcm_soft_sock_from_addr(const struct rvcm_addr *addr, struct sockaddr_storage *ss)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (addr->family == RVCM_ADDR_V4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(addr->port);
		memcpy(&v4->sin_addr, addr->ip, sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(addr->port);
	v6->sin6_scope_id = addr->scope;
	memcpy(&v6->sin6_addr, addr->ip, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

void rvcm_soft_sock_to_addr(const struct sockaddr_storage *ss, struct rvcm_addr *addr)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;

	memset(addr, 0, sizeof(*addr));
	if (ss->ss_family == AF_INET) {
		addr->family = RVCM_ADDR_V4;
		addr->port = ntohs(v4->sin_port);
		memcpy(addr->ip, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (ss->ss_family == AF_INET6) {
		rvcm_addr_from_v6(addr, v6->sin6_addr.s6_addr, ntohs(v6->sin6_port));
		if (rvcm_addr_is_linklocal(addr))
			addr->scope = v6->sin6_scope_id;
	}
}

int rvcm_soft_sock_open(const struct rvcm_addr *addr)
{
	int family = addr->family == RVCM_ADDR_V4 ? AF_INET : AF_INET6;
	int one = 1;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd < 0)
		return -errno;
	if (family == AF_INET6) /* :: is for IPv6 alone: IPv4 has a device of its own */
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	return fd;
}

void rvcm_soft_sock_mark(int fd, uint8_t dscp)
{
	int tos = dscp << 2; /* the other two bits are ECN's, and TCP's own */

	if (!dscp)
		return;
	/* One of them is the socket's; the other does nothing. */
	(void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

void rvcm_soft_sock_tune(int fd, const struct rvcm_soft_tunables *tun)
{
	int one = 1, probed = tun->keepalive_idle_s != 0;
	int idle = (int)tun->keepalive_idle_s;
	int interval = (int)tun->keepalive_interval_s;
	int count = SOCK_PROBES;
	int rto = tun->silence_timeout_ms < 3000 ? 1000 : (int)tun->silence_timeout_ms / 3;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* Linux 6.15: TCP tries again at least so often, and hears that a peer is back. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &rto, sizeof(rto));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &probed, sizeof(probed));
	rvcm_soft_sock_mark(fd, tun->dscp);
}

void rvcm_soft_sock_break(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	/* connect(2): "dissolve the association"; on a TCP socket of Linux that is a reset. */
	if (connect(fd, &none, sizeof(none)) < 0)
		(void)shutdown(fd, SHUT_RDWR);
}

bool rvcm_soft_sock_drain(int fd)
{
	ssize_t n = 1;

	/* tcp(7): with MSG_TRUNC the bytes are discarded. */
	for (int i = 0; i < SOCK_DRAINS_MAX && n > 0; i++)
		n = recv(fd, NULL, SOCK_DRAIN_BYTES, MSG_DONTWAIT | MSG_TRUNC);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void rvcm_soft_sock_close(int fd, bool reset)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (fd < 0)
		return;
	if (reset)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	else
		(void)rvcm_soft_sock_drain(fd);
	close(fd);
}

int rvcm_soft_sock_name(int fd, struct rvcm_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	rvcm_soft_sock_to_addr(&ss, addr);
	return 0;
}

int rvcm_soft_sock_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return errno;
	return err;
}

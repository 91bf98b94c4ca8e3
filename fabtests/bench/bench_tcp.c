/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_tcp [-s BYTES] [ROW...]: the yardstick. Bare TCP on loopback as fast as it goes: no delay,
 * non-blocking calls in a busy loop, no header, one buffer for every message.
 *
 *	-s BYTES   no system call moves more than that; default: as much as the message has
 */
#include "bench/bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	int fd;
	size_t step;
} tcp = { .step = SIZE_MAX };

static void tcp_open(int first)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	in_port_t none = 0, port;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	bench_ok(fd, "socket");
	if (first) {
		bench_swap(&none, &port, sizeof(port));
		at.sin_port = port;
		bench_ok(connect(fd, (struct sockaddr *)&at, sizeof(at)), "connect");
		tcp.fd = fd;
	} else {
		bench_ok(bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
		bench_ok(listen(fd, 1), "listen");
		bench_ok(getsockname(fd, (struct sockaddr *)&at, &len), "getsockname");
		bench_swap(&at.sin_port, &port, sizeof(port));
		tcp.fd = accept(fd, NULL, NULL);
		bench_ok(tcp.fd, "accept");
		close(fd);
	}
	bench_ok(setsockopt(tcp.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
}

/* What one call is to move. */
static size_t step(size_t left)
{
	return left < tcp.step ? left : tcp.step;
}

static void tcp_send(const void *buf, size_t bytes)
{
	for (size_t n = 0; n < bytes;) {
		ssize_t rc = send(tcp.fd, (const char *)buf + n, step(bytes - n), MSG_DONTWAIT);

		if (rc > 0)
			n += (size_t)rc;
		else if (errno != EAGAIN)
			bench_ok(-1, "send");
	}
}

static void tcp_recv(void *buf, size_t bytes)
{
	for (size_t n = 0; n < bytes;) {
		ssize_t rc = recv(tcp.fd, (char *)buf + n, step(bytes - n), MSG_DONTWAIT);

		if (rc > 0)
			n += (size_t)rc;
		else if (rc == 0 || errno != EAGAIN)
			bench_die("recv: the other process is gone");
	}
}

static void tcp_stream(const void *buf, size_t bytes, int n)
{
	while (n-- > 0)
		tcp_send(buf, bytes);
}

static void tcp_sink(void *buf, size_t bytes, int n)
{
	while (n-- > 0)
		tcp_recv(buf, bytes);
}

static void tcp_close(void)
{
	close(tcp.fd);
}

static const struct bench_ops ops = {
	.open = tcp_open,
	.send = tcp_send,
	.recv = tcp_recv,
	.stream = tcp_stream,
	.sink = tcp_sink,
	.close = tcp_close,
	.meet = bench_meet,
};

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:")) != -1) {
		tcp.step = option == 's' ? strtoul(optarg, NULL, 0) : 0;
		if (!tcp.step)
			bench_die("usage: bench_tcp [-s BYTES] [ROW...]");
	}
	return bench_main(&ops, argc - optind, argv + optind);
}

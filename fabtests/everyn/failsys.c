/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No header declares the functions here: glibc's prototypes have unions for arguments that a
 * definition cannot repeat. Their types are those of POSIX, with void for the structures.
 */
#include "everyn/failsys.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shared objects are to find what is defined here. */
#pragma GCC visibility push(default)

static atomic_ulong calls, fail_at;
static _Atomic(const char *) failed;

void failsys_fail_nth(unsigned long n)
{
	atomic_store(&fail_at, 0);
	atomic_store(&calls, 0);
	atomic_store(&failed, NULL);
	atomic_store(&fail_at, n);
}

const char *failsys_failed(void)
{
	return atomic_load(&failed);
}

unsigned long failsys_calls(void)
{
	return atomic_load(&calls);
}

static bool fails(const char *name, int err)
{
	unsigned long at = atomic_load(&fail_at);

	if (!at || atomic_fetch_add(&calls, 1) + 1 != at)
		return false;
	atomic_store(&failed, name);
	errno = err;
	return true;
}

#define EPOLL_MOD 3 /* EPOLL_CTL_MOD; the other operations may fail */

/* dlsym gives what the name is defined as next: the C library's, or a sanitizer's before it. */
#define FAILSYS_IF(may, ret, name, err, params, args)                    \
	ret name params;                                                 \
	ret name params                                                  \
	{                                                                \
		static ret(*real) params;                                \
                                                                         \
		if (!real)                                               \
			*(void **)&real = dlsym(RTLD_NEXT, #name);       \
		return (may) && fails(#name, err) ? (ret)-1 : real args; \
	}
#define FAILSYS(ret, name, err, params, args) FAILSYS_IF(true, ret, name, err, params, args)

FAILSYS(int, socket, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
FAILSYS(int, bind, EADDRINUSE, (int fd, const void *addr, unsigned int len), (fd, addr, len))
FAILSYS(int, listen, EADDRINUSE, (int fd, int backlog), (fd, backlog))
FAILSYS(int, connect, EADDRNOTAVAIL, (int fd, const void *addr, unsigned int len), (fd, addr, len))
FAILSYS(int, accept4, EMFILE, (int fd, void *addr, unsigned int *len, int flags),
	(fd, addr, len, flags))
FAILSYS(int, getsockname, ENOBUFS, (int fd, void *addr, unsigned int *len), (fd, addr, len))
FAILSYS(int, getsockopt, ENOBUFS, (int fd, int level, int name, void *value, unsigned int *len),
	(fd, level, name, value, len))
FAILSYS(int, setsockopt, ENOPROTOOPT,
	(int fd, int level, int name, const void *value, unsigned int len),
	(fd, level, name, value, len))
FAILSYS(int, shutdown, ENOTCONN, (int fd, int how), (fd, how))
FAILSYS(ptrdiff_t, send, ECONNRESET, (int fd, const void *buf, size_t bytes, int flags),
	(fd, buf, bytes, flags))
FAILSYS(ptrdiff_t, sendmsg, EPIPE, (int fd, const void *msg, int flags), (fd, msg, flags))
FAILSYS(ptrdiff_t, recv, ECONNRESET, (int fd, void *buf, size_t bytes, int flags),
	(fd, buf, bytes, flags))
FAILSYS(ptrdiff_t, recvmsg, ETIMEDOUT, (int fd, void *msg, int flags), (fd, msg, flags))
FAILSYS(int, epoll_create1, EMFILE, (int flags), (flags))
FAILSYS_IF(op != EPOLL_MOD, int, epoll_ctl, ENOSPC, (int epfd, int op, int fd, void *event),
	   (epfd, op, fd, event))
FAILSYS(int, epoll_wait, EINTR, (int epfd, void *events, int max, int timeout),
	(epfd, events, max, timeout))
FAILSYS(int, eventfd, EMFILE, (unsigned int value, int flags), (value, flags))
FAILSYS(int, timerfd_create, EMFILE, (int clock, int flags), (clock, flags))
FAILSYS(int, timerfd_settime, EINVAL, (int fd, int flags, const void *value, void *old),
	(fd, flags, value, old))
FAILSYS(int, getifaddrs, ENOMEM, (void **list), (list))

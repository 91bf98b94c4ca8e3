/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/sockaddr.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

bool rvcm_sockaddr_format_known(uint32_t format)
{
	return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

bool rvcm_sockaddr_fits(uint32_t format, uint8_t family)
{
	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
		return family == RVCM_ADDR_V4 || family == RVCM_ADDR_V6;
	case FI_SOCKADDR_IN:
		return family == RVCM_ADDR_V4;
	case FI_SOCKADDR_IN6:
		return family == RVCM_ADDR_V6;
	default:
		return false;
	}
}

size_t rvcm_sockaddr_size(uint32_t format, const void *p)
{
	sa_family_t family;

	memcpy(&family, (const char *)p + offsetof(struct sockaddr, sa_family), sizeof(family));
	if (family == AF_INET && rvcm_sockaddr_fits(format, RVCM_ADDR_V4))
		return sizeof(struct sockaddr_in);
	if (family == AF_INET6 && rvcm_sockaddr_fits(format, RVCM_ADDR_V6))
		return sizeof(struct sockaddr_in6);
	return 0;
}

static void get_in(const struct sockaddr_in *in, struct rvcm_addr *addr)
{
	*addr = (struct rvcm_addr) { .family = RVCM_ADDR_V4, .port = ntohs(in->sin_port) };
	memcpy(addr->ip, &in->sin_addr, sizeof(in->sin_addr));
}

static void get_in6(const struct sockaddr_in6 *in6, struct rvcm_addr *addr)
{
	rvcm_addr_from_v6(addr, in6->sin6_addr.s6_addr, ntohs(in6->sin6_port));
	if (rvcm_addr_is_linklocal(addr))
		addr->scope = in6->sin6_scope_id;
}

int rvcm_sockaddr_get(uint32_t format, const void *p, size_t len, struct rvcm_addr *addr)
{
	union rvcm_sockaddr in; /* applications pack addresses in arrays: may be unaligned */
	size_t size;

	if (len < sizeof(struct sockaddr))
		return -EINVAL;
	size = rvcm_sockaddr_size(format, p);
	if (!size || len < size)
		return -EINVAL;
	memcpy(&in, p, size);
	if (in.any.sa_family == AF_INET)
		get_in(&in.in, addr);
	else
		get_in6(&in.in6, addr);
	return 0;
}

size_t rvcm_sockaddr_put(uint32_t format, const struct rvcm_addr *addr, union rvcm_sockaddr *out)
{
	memset(out, 0, sizeof(*out));
	if (addr->family == RVCM_ADDR_V4 && format != FI_SOCKADDR_IN6) {
		out->in.sin_family = AF_INET;
		out->in.sin_port = htons(addr->port);
		memcpy(&out->in.sin_addr, addr->ip, sizeof(out->in.sin_addr));
		return sizeof(out->in);
	}
	if (addr->family == RVCM_ADDR_NONE || format == FI_SOCKADDR_IN)
		return 0;
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = htons(addr->port);
	out->in6.sin6_scope_id = addr->scope;
	rvcm_addr_to_v6(addr, out->in6.sin6_addr.s6_addr);
	return sizeof(out->in6);
}

/* A number beyond 16 bits would be cut to some other port by getaddrinfo(3) of glibc. */
static bool port_fits(const char *service)
{
	char *end;

	if (!service || *service < '0' || *service > '9')
		return true;
	return strtoul(service, &end, 10) <= UINT16_MAX || *end;
}

int rvcm_sockaddr_resolve(const char *node, const char *service, bool numeric, bool passive,
			  struct rvcm_addr *addrs, int n, enum rvcm_log_level level)
{
	const struct addrinfo want = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (numeric ? AI_NUMERICHOST : 0) | (passive ? AI_PASSIVE : 0),
	};
	struct addrinfo *list, *ai;
	int count = 0;
	int rc;

	if (!port_fits(service)) {
		rvcm_log(level, RVCM_LOG_FABRIC, "service %s: ports end at %u", service,
			 UINT16_MAX);
		return -ENODATA;
	}
	rc = getaddrinfo(node, service, &want, &list);
	if (rc) {
		rvcm_log(level, RVCM_LOG_FABRIC, "node %s, service %s: %s", node ? node : "(none)",
			 service ? service : "(none)",
			 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return rc == EAI_MEMORY ? -ENOMEM : -ENODATA;
	}
	for (ai = list; ai && count < n; ai = ai->ai_next) {
		if (rvcm_sockaddr_get(FI_SOCKADDR, ai->ai_addr, ai->ai_addrlen, &addrs[count]) == 0)
			count++;
	}
	freeaddrinfo(list);
	return count ? count : -ENODATA;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <netinet/in.h>
#include <string.h>

#include "dev/verbs/verbs_impl.h"

void rvcm_verbs_sockaddr_put(const struct rvcm_addr *addr, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (addr->family == RVCM_ADDR_V4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(addr->port);
		memcpy(&v4->sin_addr, addr->ip, sizeof(v4->sin_addr));
		return;
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(addr->port);
	v6->sin6_scope_id = addr->scope;
	memcpy(&v6->sin6_addr, addr->ip, sizeof(v6->sin6_addr));
}

void rvcm_verbs_sockaddr_get(const struct sockaddr *sa, struct rvcm_addr *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		addr->family = RVCM_ADDR_V4;
		addr->port = ntohs(v4->sin_port);
		memcpy(addr->ip, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (sa->sa_family == AF_INET6) {
		rvcm_addr_from_v6(addr, v6->sin6_addr.s6_addr, ntohs(v6->sin6_port));
		if (rvcm_addr_is_linklocal(addr) && addr->family == RVCM_ADDR_V6)
			addr->scope = v6->sin6_scope_id;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as applications write them, FI_SOCKADDR, FI_SOCKADDR_IN and FI_SOCKADDR_IN6
 * (fi_getinfo(3), "Addressing formats"), and names and services, to and from struct rvcm_addr.
 */
#ifndef RVCM_OFI_SOCKADDR_H
#define RVCM_OFI_SOCKADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>

#include "base/addr.h"
#include "base/log.h"

union rvcm_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Is it one of the three? FI_FORMAT_UNSPEC is not. */
bool rvcm_sockaddr_format_known(uint32_t format);

/* Can addresses of this family be written in this format? */
bool rvcm_sockaddr_fits(uint32_t format, uint8_t family);

/*
 * The bytes that the address at p takes; 0 if its family is not known or not that of the format.
 * FI_FORMAT_UNSPEC reads like FI_SOCKADDR.
 */
size_t rvcm_sockaddr_size(uint32_t format, const void *p);

/* Read an address of len bytes. -EINVAL: too short, or of a family that does not fit the format. */
int rvcm_sockaddr_get(uint32_t format, const void *p, size_t len, struct rvcm_addr *addr);

/* Write one; returns its size, 0 if it does not fit the format. */
size_t rvcm_sockaddr_put(uint32_t format, const struct rvcm_addr *addr, union rvcm_sockaddr *out);

/*
 * Look up node and service (either may be NULL), at most n addresses, best first; returns how many.
 * passive: for listening, so that no node means any address and not loopback. -ENODATA if there is
 * none; a line at that level says why.
 */
int rvcm_sockaddr_resolve(const char *node, const char *service, bool numeric, bool passive,
			  struct rvcm_addr *addrs, int n, enum rvcm_log_level level);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses: IPv4 or IPv6 and a port. No hidden padding and unused bytes zero, so that memcmp and
 * hashing see the same as people do. Make one with rvcm_addr_from_v6 or rvcm_addr_parse, or from a
 * zeroed struct; a v4-mapped IPv6 address is always family 4.
 */
#ifndef RVCM_BASE_ADDR_H
#define RVCM_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum rvcm_addr_family {
	RVCM_ADDR_NONE = 0,
	RVCM_ADDR_V4 = 4,
	RVCM_ADDR_V6 = 6,
};

struct rvcm_addr {
	uint8_t family; /* enum rvcm_addr_family */
	uint8_t pad;    /* 0 */
	uint16_t port;  /* host order */
	uint32_t scope; /* IPv6 link-local: interface index of this host; else 0 */
	uint8_t ip[16]; /* network order; IPv4 in the first 4 bytes, the rest zero */
};

_Static_assert(sizeof(struct rvcm_addr) == 24, "no hidden padding");

#define RVCM_ADDR_STRLEN 72 /* "[" IPv6 "%" scope "]:" port and NUL */

/* The same in every field: one and the same place, seen from this host. */
static inline bool rvcm_addr_equal(const struct rvcm_addr *a, const struct rvcm_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * A total order of names on which two hosts agree: by IP as a v4-mapped 16-byte string, then by
 * port. Scope is left out, as it numbers interfaces and differs between hosts: so 0 does not imply
 * rvcm_addr_equal for link-local addresses.
 */
int rvcm_addr_cmp(const struct rvcm_addr *a, const struct rvcm_addr *b);

/* 0.0.0.0, ::, or no address at all. */
bool rvcm_addr_is_any(const struct rvcm_addr *addr);

/* 127.0.0.0/8 (RFC 1122, 3.2.1.3) or ::1 (RFC 4291, 2.5.3). */
bool rvcm_addr_is_loopback(const struct rvcm_addr *addr);

/* 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291, 2.5.6). */
bool rvcm_addr_is_linklocal(const struct rvcm_addr *addr);

/*
 * A name that its owner told, as it is known here: a wildcard becomes the address from (where the
 * owner is known to be), and a link-local one gets from's scope. The port stays.
 */
void rvcm_addr_complete(struct rvcm_addr *name, const struct rvcm_addr *from);

/* Goes with rvcm_addr_equal. See base/hash.h for the seed. */
uint64_t rvcm_addr_hash(const struct rvcm_addr *addr, uint64_t seed);

/* "10.0.0.1:47", "[fe80::1%2]:47", "none". Cut to len, NUL-terminated if len > 0. Returns buf. */
const char *rvcm_addr_format(const struct rvcm_addr *addr, char *buf, size_t len);

/* The same without port and brackets: "10.0.0.1", "fe80::1%2". */
const char *rvcm_addr_format_ip(const struct rvcm_addr *addr, char *buf, size_t len);

/*
 * Numeric text, as format writes it; without a port (then 0), and IPv6 without a port also without
 * brackets. -EINVAL for anything else. *addr is set on success only.
 */
int rvcm_addr_parse(const char *text, struct rvcm_addr *addr);

/* The IP as a 16-byte IPv6 address, IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2); none is ::. */
void rvcm_addr_to_v6(const struct rvcm_addr *addr, uint8_t out[16]);

/* The reverse, with a port in host order; scope 0. */
void rvcm_addr_from_v6(struct rvcm_addr *addr, const uint8_t in[16], uint16_t port);

#endif

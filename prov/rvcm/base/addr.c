/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "base/hash.h"

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

void rvcm_addr_to_v6(const struct rvcm_addr *addr, uint8_t out[16])
{
	if (addr->family == RVCM_ADDR_V4) {
		memcpy(out, v4_mapped, sizeof(v4_mapped));
		memcpy(out + sizeof(v4_mapped), addr->ip, 4);
	} else {
		memcpy(out, addr->ip, 16);
	}
}

void rvcm_addr_from_v6(struct rvcm_addr *addr, const uint8_t in[16], uint16_t port)
{
	*addr = (struct rvcm_addr) { .family = RVCM_ADDR_V6, .port = port };
	if (memcmp(in, v4_mapped, sizeof(v4_mapped)) == 0) {
		addr->family = RVCM_ADDR_V4;
		memcpy(addr->ip, in + sizeof(v4_mapped), 4);
	} else {
		memcpy(addr->ip, in, 16);
	}
}

int rvcm_addr_cmp(const struct rvcm_addr *a, const struct rvcm_addr *b)
{
	uint8_t ip_a[16], ip_b[16];
	int order;

	rvcm_addr_to_v6(a, ip_a);
	rvcm_addr_to_v6(b, ip_b);
	order = memcmp(ip_a, ip_b, sizeof(ip_a));
	return order ? order : (int)a->port - (int)b->port;
}

bool rvcm_addr_is_any(const struct rvcm_addr *addr)
{
	static const uint8_t zero[16];

	return memcmp(addr->ip, zero, sizeof(zero)) == 0;
}

bool rvcm_addr_is_loopback(const struct rvcm_addr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };

	if (addr->family == RVCM_ADDR_V4)
		return addr->ip[0] == 127;
	return addr->family == RVCM_ADDR_V6 && memcmp(addr->ip, one, sizeof(one)) == 0;
}

bool rvcm_addr_is_linklocal(const struct rvcm_addr *addr)
{
	if (addr->family == RVCM_ADDR_V4)
		return addr->ip[0] == 169 && addr->ip[1] == 254;
	return addr->family == RVCM_ADDR_V6 && addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

uint64_t rvcm_addr_hash(const struct rvcm_addr *addr, uint64_t seed)
{
	return rvcm_hash_bytes(seed, addr, sizeof(*addr));
}

const char *rvcm_addr_format_ip(const struct rvcm_addr *addr, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "none", scope[16] = "";

	if (addr->family != RVCM_ADDR_NONE)
		inet_ntop(addr->family == RVCM_ADDR_V4 ? AF_INET : AF_INET6, addr->ip, ip,
			  sizeof(ip));
	if (addr->scope)
		snprintf(scope, sizeof(scope), "%%%u", addr->scope);
	snprintf(buf, len, "%s%s", ip, scope);
	return buf;
}

const char *rvcm_addr_format(const struct rvcm_addr *addr, char *buf, size_t len)
{
	char ip[RVCM_ADDR_STRLEN];

	rvcm_addr_format_ip(addr, ip, sizeof(ip));
	if (addr->family == RVCM_ADDR_V4)
		snprintf(buf, len, "%s:%u", ip, addr->port);
	else if (addr->family == RVCM_ADDR_V6)
		snprintf(buf, len, "[%s]:%u", ip, addr->port);
	else
		snprintf(buf, len, "none");
	return buf;
}

/* All of text as a decimal number <= max; no sign, no blanks. */
static int parse_number(const char *text, uint32_t max, uint32_t *number)
{
	uint64_t n = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > max)
			return -EINVAL;
	}
	*number = (uint32_t)n;
	return 0;
}

/* An IP without port or brackets, which are gone from this copy. */
static int parse_ip(char *text, struct rvcm_addr *addr)
{
	char *percent = strchr(text, '%');
	uint8_t ip[16] = { 0 };

	if (inet_pton(AF_INET, text, ip) == 1) {
		addr->family = RVCM_ADDR_V4;
		memcpy(addr->ip, ip, sizeof(ip));
		return 0;
	}
	if (percent)
		*percent = '\0';
	if (inet_pton(AF_INET6, text, ip) != 1)
		return -EINVAL;
	rvcm_addr_from_v6(addr, ip, 0);
	if (!percent)
		return 0;
	if (addr->family != RVCM_ADDR_V6 || !rvcm_addr_is_linklocal(addr))
		return -EINVAL;
	return parse_number(percent + 1, UINT32_MAX, &addr->scope);
}

/*
 * Split "ip", "ip4:port", "[ip6]" and "[ip6]:port" in place. *port points at its digits, or is NULL
 * without a colon. Returns the IP, or NULL.
 */
static char *split(char *text, char **port)
{
	char *colon = strchr(text, ':'), *close;

	*port = NULL;
	if (*text == '[') {
		close = strchr(text, ']');
		if (!close || !memchr(text, ':', (size_t)(close - text)))
			return NULL;
		if (close[1] == ':')
			*port = close + 2;
		else if (close[1])
			return NULL;
		*close = '\0';
		return text + 1;
	}
	if (colon && !strchr(colon + 1, ':')) {
		*port = colon + 1;
		*colon = '\0';
	}
	return text;
}

int rvcm_addr_parse(const char *text, struct rvcm_addr *addr)
{
	struct rvcm_addr parsed = { 0 };
	char copy[RVCM_ADDR_STRLEN], *ip, *digits;
	uint32_t port = 0;
	int rc;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	ip = split(copy, &digits);
	if (!ip)
		return -EINVAL;
	if (digits) {
		rc = parse_number(digits, UINT16_MAX, &port);
		if (rc)
			return rc;
	}
	rc = parse_ip(ip, &parsed);
	if (rc)
		return rc;
	parsed.port = (uint16_t)port;
	*addr = parsed;
	return 0;
}

void rvcm_addr_complete(struct rvcm_addr *name, const struct rvcm_addr *from)
{
	uint16_t port = name->port;

	if (rvcm_addr_is_any(name))
		*name = *from;
	name->port = port;
	if (name->family == RVCM_ADDR_V6 && rvcm_addr_is_linklocal(name))
		name->scope = from->scope;
}

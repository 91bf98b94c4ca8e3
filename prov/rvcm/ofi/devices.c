/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

#include "base/log.h"
#include "base/mem.h"
#include "dev/soft/soft.h"
#include "dev/verbs/verbs.h"
#include "ofi/sockaddr.h"

static int open_soft(const struct rvcm_dev_attr *attr, const struct rvcm_params *params,
		     uint8_t dscp, struct rvcm_dev **dev)
{
	struct rvcm_soft_tunables tunables;

	rvcm_soft_tunables_init(&tunables);
	tunables.silence_timeout_ms = (uint32_t)params->silence_timeout;
	tunables.keepalive_idle_s = (uint32_t)params->heartbeat;
	/* Often enough that the time-out is not exceeded by much. */
	tunables.keepalive_interval_s = (tunables.keepalive_idle_s + 1) / 2;
	tunables.crc = params->crc;
	tunables.dscp = dscp;
	return rvcm_soft_open(attr, &tunables, dev);
}

static int open_verbs(const struct rvcm_dev_attr *attr, const struct rvcm_params *params,
		      uint8_t dscp, struct rvcm_dev **dev)
{
	struct rvcm_verbs_tunables tunables;

	rvcm_verbs_tunables_init(&tunables);
	tunables.tos = (uint8_t)(dscp << 2);
	if (params->tos)
		tunables.tos = (uint8_t)params->tos;
	tunables.ack_timeout = (uint8_t)params->ack_timeout;
	tunables.retry_count = (uint8_t)params->retry_count;
	tunables.resolve_timeout_ms = (uint32_t)params->resolve_timeout;
	tunables.keepalive_ms = (uint32_t)params->heartbeat * 1000;
	return rvcm_verbs_open(attr, &tunables, dev);
}

/* The kinds of device, in order of preference. */
static const struct {
	const struct rvcm_dev_class *class;
	int (*open)(const struct rvcm_dev_attr *attr, const struct rvcm_params *params,
		    uint8_t dscp, struct rvcm_dev **dev);
} kinds[] = {
	{ &rvcm_verbs_class, open_verbs },
	{ &rvcm_soft_class, open_soft },
};

#define KIND_COUNT (int)(sizeof(kinds) / sizeof(kinds[0]))

int rvcm_devices_open(const struct rvcm_device *device, const struct rvcm_params *params,
		      uint8_t dscp, struct rvcm_dev **dev)
{
	return kinds[device->kind].open(&device->attr, params, dscp, dev);
}

bool rvcm_devices_same_ip(const struct rvcm_addr *a, const struct rvcm_addr *b)
{
	struct rvcm_addr x = *a, y = *b;

	x.port = 0;
	y.port = 0;
	return rvcm_addr_equal(&x, &y);
}

static bool get_ip(const struct sockaddr *sa, struct rvcm_addr *addr)
{
	if (!sa || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return false;
	return rvcm_sockaddr_get(FI_SOCKADDR, sa, sizeof(struct sockaddr_in6), addr) == 0;
}

/* What the software RNIC speaks runs on any network; what a NIC does is a fabric of its own there.
 */
static const char *fabric_prefix(const struct rvcm_dev_attr *attr)
{
	if (!attr->nic.device[0])
		return "";
	if (attr->wire == RVCM_DEV_WIRE_IWARP)
		return "iwarp:";
	return strcmp(attr->nic.link_type, "InfiniBand") == 0 ? "ib:" : "roce:";
}

/* The network of the device's address under a netmask: "10.1.0.0/16", "roce:10.1.0.0/16". */
static void name_network(struct rvcm_device *device, const struct rvcm_addr *mask)
{
	const struct rvcm_addr *own = &device->attr.addr;
	uint8_t ip[sizeof(own->ip)];
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < sizeof(ip); i++) {
		ip[i] = own->ip[i] & mask->ip[i];
		device->prefix_bits += __builtin_popcount(mask->ip[i]);
	}
	inet_ntop(own->family == RVCM_ADDR_V4 ? AF_INET : AF_INET6, ip, text, sizeof(text));
	snprintf(device->network, sizeof(device->network), "%s%s/%d", fabric_prefix(&device->attr),
		 text, device->prefix_bits);
}

/* Which interface, and which network, does the device's address belong to? */
static void place(struct rvcm_device *device, const struct ifaddrs *ifaddrs)
{
	struct rvcm_addr addr, mask;

	snprintf(device->network, sizeof(device->network), "%s", device->attr.name);
	for (const struct ifaddrs *ifa = ifaddrs; ifa; ifa = ifa->ifa_next) {
		if (!get_ip(ifa->ifa_addr, &addr) ||
		    !rvcm_devices_same_ip(&addr, &device->attr.addr))
			continue;
		snprintf(device->iface, sizeof(device->iface), "%s", ifa->ifa_name);
		if (get_ip(ifa->ifa_netmask, &mask))
			name_network(device, &mask);
		return;
	}
}

int rvcm_devices_check(const struct rvcm_params *params)
{
	struct rvcm_addr addr;

	if (!params->iface || rvcm_addr_parse(params->iface, &addr) || !addr.port)
		return 0;
	rvcm_warn(RVCM_LOG_CORE,
		  "FI_RVCM_IFACE=%s: has a port: allowed are a network interface or an IP address",
		  params->iface);
	return -EINVAL;
}

/* The same link-local address, whose link is named as this device's interface: "fe80::1%eth0". */
static bool on_link(const struct rvcm_device *device, const char *iface)
{
	const char *link = strchr(iface, '%');
	char ip[INET6_ADDRSTRLEN];
	struct rvcm_addr addr;

	if (!link || link - iface >= (ptrdiff_t)sizeof(ip) || strcmp(link + 1, device->iface))
		return false;
	snprintf(ip, sizeof(ip), "%.*s", (int)(link - iface), iface);
	if (rvcm_addr_parse(ip, &addr) || addr.family != RVCM_ADDR_V6 ||
	    !rvcm_addr_is_linklocal(&addr))
		return false;
	addr.scope = device->attr.addr.scope;
	return rvcm_devices_same_ip(&addr, &device->attr.addr);
}

static bool on_iface(const struct rvcm_device *device, const char *iface)
{
	struct rvcm_addr addr;

	if (rvcm_addr_parse(iface, &addr))
		return strcmp(iface, device->iface) == 0 || on_link(device, iface);
	if (!addr.scope) /* whichever link it is on */
		addr.scope = device->attr.addr.scope;
	return rvcm_devices_same_ip(&addr, &device->attr.addr);
}

/* Does the user's choice leave this device out? Then it is said. */
static bool left_out(const struct rvcm_params *params, const struct rvcm_device *device)
{
	const char *name = device->attr.name;

	if (params->device && strcmp(params->device, name)) {
		rvcm_info(RVCM_LOG_FABRIC, "device %s is left out: it is not FI_RVCM_DEVICE=%s",
			  name, params->device);
		return true;
	}
	if (params->iface && !on_iface(device, params->iface)) {
		rvcm_info(RVCM_LOG_FABRIC, "device %s is left out: it is not on FI_RVCM_IFACE=%s",
			  name, params->iface);
		return true;
	}
	return false;
}

static int list_kind(int kind, const struct rvcm_params *params, const struct ifaddrs *ifaddrs,
		     struct rvcm_device *devices, int n)
{
	struct rvcm_dev_attr *attrs = rvcm_mem_calloc((size_t)n, sizeof(*attrs));
	int found = 0, count = 0;

	if (!attrs || !n)
		goto out;
	found = kinds[kind].class->enumerate(attrs, n);
	for (int i = 0; i < found && i < n; i++) {
		struct rvcm_device *device = &devices[count];

		*device = (struct rvcm_device) { .kind = kind, .attr = attrs[i] };
		place(device, ifaddrs);
		count += !left_out(params, device);
	}
out:
	rvcm_mem_free(attrs);
	return found < 0 ? found : count;
}

/* Loopback last; else as they came. */
static void loopback_last(struct rvcm_device *devices, int n)
{
	for (int i = 1; i < n; i++) {
		struct rvcm_device moved = devices[i];
		int j = i;

		if (rvcm_addr_is_loopback(&moved.attr.addr))
			continue;
		for (; j > 0 && rvcm_addr_is_loopback(&devices[j - 1].attr.addr); j--)
			devices[j] = devices[j - 1];
		devices[j] = moved;
	}
}

int rvcm_devices_list(const struct rvcm_params *params, struct rvcm_device *devices, int n)
{
	struct ifaddrs *ifaddrs = NULL;
	int count = 0, rc = 0;

	if (getifaddrs(&ifaddrs))
		rvcm_info(RVCM_LOG_FABRIC, "getifaddrs: %s", strerror(errno));
	for (int i = 0; i < KIND_COUNT; i++) {
		int more = list_kind(i, params, ifaddrs, devices + count, n - count);

		if (more < 0)
			rc = more;
		else
			count += more;
	}
	freeifaddrs(ifaddrs);
	loopback_last(devices, count);
	return count ? count : rc;
}

const struct rvcm_device *rvcm_devices_find(const struct rvcm_device *devices, int n,
					    const char *name, const struct rvcm_addr *addr)
{
	for (int i = 0; i < n; i++) {
		if (name && strcmp(name, devices[i].attr.name))
			continue;
		if (!addr || rvcm_addr_is_any(addr) ||
		    rvcm_devices_same_ip(addr, &devices[i].attr.addr))
			return &devices[i];
	}
	return NULL;
}

/*
 * One that speaks iWARP has the TCP ports of its host: nobody else can listen there, and software
 * RNICs reach it as it is.
 */
const struct rvcm_device *rvcm_devices_stand_in(const struct rvcm_device *devices, int n,
						const struct rvcm_device *device)
{
	if (device->attr.wire == RVCM_DEV_WIRE_IWARP)
		return NULL;
	for (int i = 0; i < n; i++)
		if (devices[i].attr.wire == RVCM_DEV_WIRE_IWARP &&
		    rvcm_devices_same_ip(&devices[i].attr.addr, &device->attr.addr))
			return &devices[i];
	return NULL;
}

bool rvcm_devices_reaches(const struct rvcm_device *device, const struct rvcm_addr *dest,
			  const char **why)
{
	const struct rvcm_addr *own = &device->attr.addr;

	*why = NULL;
	if (own->family != dest->family)
		*why = "the destination's address is of another IP version";
	else if (rvcm_addr_is_loopback(own) && !rvcm_addr_is_loopback(dest))
		*why = "the destination is not on the loopback network";
	else if (!rvcm_addr_is_loopback(own) && rvcm_addr_is_loopback(dest))
		*why = "the destination is on the loopback network";
	else if (rvcm_addr_is_linklocal(dest) && dest->scope && dest->scope != own->scope &&
		 rvcm_addr_is_linklocal(own))
		*why = "the destination is on another link";
	return !*why;
}

bool rvcm_devices_near(const struct rvcm_device *device, const struct rvcm_addr *dest)
{
	const uint8_t *a = device->attr.addr.ip, *b = dest->ip;
	int bits = device->prefix_bits;

	if (device->attr.addr.family != dest->family || !bits)
		return false;
	for (; bits >= 8; bits -= 8) {
		if (*a++ != *b++)
			return false;
	}
	return !bits || !((*a ^ *b) >> (8 - bits));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One device per address of an interface that is an RDMA device's. Which one is whose, is found as
 * rdma_cm finds it: RoCE's GIDs know their interface, an iWARP device's is the interface's hardware
 * address, and IPoIB's hardware address has the port's GID in it (RFC 4391, section 9.1.1). rdma_cm
 * itself is not asked: librdmacm keeps a device open that it was asked about, and a device that is
 * open cannot be removed. Loopback addresses lead to no other host and are not offered.
 *
 * Where there is no RDMA device nothing is asked of the libraries. Where there is one that is not
 * offered, it is said why.
 */
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "dev/verbs/limits.h"
#include "dev/verbs/near.h"
#include "dev/verbs/nic.h"
#include "dev/verbs/umad.h"
#include "dev/verbs/verbs_impl.h"

#define PORTS_SYS     "/sys/class/infiniband"
#define PORTS_CHANNEL "/dev/infiniband/rdma_cm"

#define PORTS_GIDS_MAX 1024 /* of a device */

/* Before it is known better (grant.c tries when a device is opened). */
#define PORTS_INLINE_BYTES 64u

struct ports {
	struct rvcm_dev_attr *attrs;
	int n;    /* room */
	int have; /* found, with those there was no room for */
	struct ifaddrs *ifas;
	struct ibv_gid_entry *gids; /* of the device at hand */
	ssize_t n_gids;
};

static bool ports_any(void)
{
	DIR *dir = opendir(PORTS_SYS);
	struct dirent *entry;
	bool any = false;

	if (!dir)
		return false;
	while (!any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	closedir(dir);
	return any;
}

/* Who may not open a device's file can be helped. */
static const char *ports_hint(int err)
{
	return err == EACCES || err == EPERM ? "; this user must be allowed to read and write it"
					     : "";
}

static void ports_no_channel(int err)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	const char *hint;

	/* librdmacm's errno is of the last that it tried, not of this file. */
	if (access(PORTS_CHANNEL, R_OK | W_OK) == 0) {
		rvcm_warn(RVCM_LOG_CORE,
			  "verbs: there are RDMA devices, and none can be used: librdmacm: %s; is "
			  "the driver of their kind installed (Debian: ibverbs-providers)?",
			  rvcm_verbs_limits_text(err, text));
		return;
	}
	err = errno;
	hint = ports_hint(err);
	if (err == ENOENT || err == ENODEV || err == ENXIO)
		hint = "; is the kernel's module loaded (modprobe rdma_ucm), and the file seen in "
		       "this container?";
	rvcm_warn(RVCM_LOG_CORE, "verbs: there are RDMA devices, and none can be used: %s: %s%s",
		  PORTS_CHANNEL, rvcm_verbs_limits_text(err, text), hint);
}

/* Can the connection manager be used at all? */
static bool ports_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel) {
		ports_no_channel(errno);
		return false;
	}
	rdma_destroy_event_channel(channel);
	return true;
}

static bool ports_usable(const struct ifaddrs *ifa, struct rvcm_addr *addr)
{
	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return false;
	if (ifa->ifa_addr->sa_family != AF_INET && ifa->ifa_addr->sa_family != AF_INET6)
		return false;
	rvcm_verbs_sockaddr_get(ifa->ifa_addr, addr);
	return !rvcm_addr_is_loopback(addr);
}

/* The hardware address of an interface; NULL if it has none. */
static const struct sockaddr_ll *ports_hardware(const struct ports *p, const char *interface)
{
	for (const struct ifaddrs *ifa = p->ifas; ifa; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_PACKET &&
		    strcmp(ifa->ifa_name, interface) == 0)
			return (const struct sockaddr_ll *)ifa->ifa_addr;
	return NULL;
}

/* Is this GID of an interface of that number and hardware address? */
static bool ports_leads(const struct ibv_gid_entry *gid, bool iwarp, unsigned int index,
			const struct sockaddr_ll *ll)
{
	const uint8_t *hw = ll ? ll->sll_addr : NULL;

	if (iwarp)
		return hw && ll->sll_halen == 6 && memcmp(gid->gid.raw, hw, 6) == 0;
	if (gid->gid_type == IBV_GID_TYPE_IB)
		return hw && ll->sll_halen == 20 && memcmp(gid->gid.raw, hw + 4, 16) == 0;
	return gid->ndev_ifindex == index;
}

/* A GID of the port that leads to the interface, RoCE version 2's if there is one; NULL = none. */
static const struct ibv_gid_entry *ports_gid(const struct ports *p, uint8_t port, bool iwarp,
					     const char *interface)
{
	const struct sockaddr_ll *ll = ports_hardware(p, interface);
	unsigned int index = if_nametoindex(interface);
	const struct ibv_gid_entry *best = NULL;

	for (ssize_t i = 0; i < p->n_gids; i++)
		if (p->gids[i].port_num == port && ports_leads(&p->gids[i], iwarp, index, ll) &&
		    (!best || p->gids[i].gid_type == IBV_GID_TYPE_ROCE_V2))
			best = &p->gids[i];
	return best;
}

static void ports_add(struct ports *p, const struct rvcm_dev_attr *found,
		      const struct rvcm_addr *addr, const struct ibv_gid_entry *gid)
{
	struct rvcm_dev_attr attr = *found;

	attr.addr = *addr;
	rvcm_verbs_nic_gid(&attr.nic, &gid->gid);
	rvcm_dev_offer(&attr, attr.nic.device, p->attrs, p->have, p->n);
	p->have++;
}

/* All addresses of a port's interfaces; returns how many there are. */
static int ports_addresses(struct ports *p, const struct rvcm_dev_attr *attr)
{
	bool iwarp = attr->wire == RVCM_DEV_WIRE_IWARP;
	const struct ibv_gid_entry *gid;
	struct rvcm_addr addr;
	int n = 0;

	for (const struct ifaddrs *ifa = p->ifas; ifa; ifa = ifa->ifa_next) {
		if (!ports_usable(ifa, &addr))
			continue;
		gid = ports_gid(p, attr->nic.port, iwarp, ifa->ifa_name);
		if (!gid)
			continue;
		ports_add(p, attr, &addr, gid);
		n++;
	}
	return n;
}

/* A network interface of the port, up or not; NULL if none is known. */
static const char *ports_interface(const struct ports *p, uint8_t port, bool iwarp)
{
	for (const struct ifaddrs *ifa = p->ifas; ifa; ifa = ifa->ifa_next)
		if (ports_gid(p, port, iwarp, ifa->ifa_name))
			return ifa->ifa_name;
	return NULL;
}

/* libibumad complains on stderr of ports that are none of its own. */
static void ports_about(const char *name, uint8_t number, const struct ibv_port_attr *port,
			char text[RVCM_VERBS_UMAD_TEXT_MAX])
{
	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
		(void)rvcm_verbs_umad_text(name, number, text);
	else
		snprintf(text, RVCM_VERBS_UMAD_TEXT_MAX, "Ethernet");
}

/* about: what is said of a port that is not active. */
static void ports_down(const struct ports *p, const char *name, uint8_t number, bool iwarp,
		       const struct ibv_port_attr *port, const char *about)
{
	char text[RVCM_VERBS_NIC_DOWN_MAX];

	if (port->link_layer != IBV_LINK_LAYER_INFINIBAND)
		about = rvcm_verbs_nic_down(ports_interface(p, number, iwarp), text);
	rvcm_warn(RVCM_LOG_CORE, "%s: not offered: port %u is %s; %s", name, number,
		  ibv_port_state_str(port->state), about);
}

static void ports_port(struct ports *p, struct ibv_context *ctx,
		       const struct ibv_device_attr *device, uint8_t number)
{
	bool iwarp = ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	const char *name = ibv_get_device_name(ctx->device);
	char umad[RVCM_VERBS_UMAD_TEXT_MAX];
	struct rvcm_dev_attr attr;
	struct ibv_port_attr port;

	if (ibv_query_port(ctx, number, &port)) {
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered: port %u does not say what it can do",
			  name, number);
		return;
	}
	ports_about(name, number, &port, umad);
	if (port.state != IBV_PORT_ACTIVE) {
		ports_down(p, name, number, iwarp, &port, umad);
		return;
	}
	rvcm_info(RVCM_LOG_CORE, "%s: port %u: %s", name, number, umad);
	memset(&attr, 0, sizeof(attr));
	attr.wire = iwarp ? RVCM_DEV_WIRE_IWARP : RVCM_DEV_WIRE_IB;
	rvcm_verbs_limits_attr(&attr, device, &port, iwarp, PORTS_INLINE_BYTES);
	rvcm_verbs_nic_fill(&attr, name, number, device, &port);
	if (ports_addresses(p, &attr) == 0)
		rvcm_warn(RVCM_LOG_CORE,
			  "%s: not offered: no address leads to it (port %u): give its network "
			  "interface an IP address, and set it up (ip addr add, ip link set up)",
			  name, number);
}

static void ports_context(struct ports *p, struct ibv_context *ctx)
{
	const char *name = ibv_get_device_name(ctx->device);
	struct ibv_device_attr device;

	if (ibv_query_device(ctx, &device)) {
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered: it does not say what it can do", name);
		return;
	}
	if (device.max_srq <= 0) {
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered: it has no shared receive queues", name);
		return;
	}
	p->n_gids = ibv_query_gid_table(ctx, p->gids, PORTS_GIDS_MAX, 0);
	for (uint8_t port = 1; port <= device.phys_port_cnt; port++)
		ports_port(p, ctx, &device, port);
}

/* libibverbs' errno is of the last that it tried, not of the device's file. */
static int ports_why(const struct ibv_device *device, int err)
{
	char path[sizeof("/dev/infiniband/") + sizeof(device->dev_name)];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	if (access(path, R_OK | W_OK) < 0)
		return errno;
	return err ? err : ENODEV;
}

/* It is open no longer than this takes. */
static void ports_device(struct ports *p, struct ibv_device *device)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	struct ibv_context *ctx;

	if (device->transport_type != IBV_TRANSPORT_IB &&
	    device->transport_type != IBV_TRANSPORT_IWARP) {
		rvcm_info(RVCM_LOG_CORE, "%s: not offered: it has no RC connections",
			  ibv_get_device_name(device));
		return;
	}
	errno = 0;
	ctx = ibv_open_device(device);
	if (!ctx) {
		int err = ports_why(device, errno);

		rvcm_warn(RVCM_LOG_CORE, "%s: not offered: /dev/infiniband/%s: %s%s",
			  ibv_get_device_name(device), device->dev_name,
			  rvcm_verbs_limits_text(err, text), ports_hint(err));
		return;
	}
	ports_context(p, ctx);
	(void)ibv_close_device(ctx);
}

/* What is near costs time to find out, and matters only where there is a choice. */
static void ports_near_first(struct rvcm_dev_attr *attrs, int n)
{
	if (rvcm_verbs_near_differ(attrs, n))
		rvcm_verbs_near_sort(attrs, n, rvcm_verbs_near_node());
}

static void ports_all(struct ports *p)
{
	struct ibv_device **list;
	int n = 0;

	if (getifaddrs(&p->ifas) < 0) {
		rvcm_warn(RVCM_LOG_CORE, "verbs: cannot list interfaces: errno %d", errno);
		return;
	}
	list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n; i++)
		ports_device(p, list[i]);
	if (list)
		ibv_free_device_list(list);
	freeifaddrs(p->ifas);
	ports_near_first(p->attrs, p->have < p->n ? p->have : p->n);
}

int rvcm_verbs_ports_enumerate(struct rvcm_dev_attr *attrs, int n)
{
	struct ports p = { .attrs = attrs, .n = n };

	if (!ports_any()) {
		rvcm_info(RVCM_LOG_CORE, "verbs: no RDMA device in " PORTS_SYS);
		return 0;
	}
	rvcm_verbs_fork_init();
	if (!ports_channel())
		return 0;
	p.gids = rvcm_mem_calloc(PORTS_GIDS_MAX, sizeof(*p.gids));
	if (!p.gids)
		return -ENOMEM;
	ports_all(&p);
	rvcm_mem_free(p.gids);
	return p.have;
}

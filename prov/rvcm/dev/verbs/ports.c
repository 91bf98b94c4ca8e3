/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One device per address that rdma_cm maps to an RDMA device: who binds an id to an address of such
 * an interface gets its device. So it does not matter whether an interface is IPoIB, RoCE or iWARP,
 * and which GIDs it has (of RoCE's the kernel takes version 2 where it may: cma's
 * default_roce_mode). Loopback addresses lead to no other host and are not offered.
 *
 * Where there is no RDMA device nothing is asked of the libraries. Where there is one that is not
 * offered, it is said why.
 */
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dev/verbs/limits.h"
#include "dev/verbs/name.h"
#include "dev/verbs/near.h"
#include "dev/verbs/nic.h"
#include "dev/verbs/umad.h"
#include "dev/verbs/verbs_impl.h"

#define PORTS_SYS     "/sys/class/infiniband"
#define PORTS_CHANNEL "/dev/infiniband/rdma_cm"

/* Before it is known better (sq.c tries when a device is opened). */
#define PORTS_INLINE_BYTES 64u

struct ports {
	struct rvcm_dev_attr *attrs;
	int n;    /* room */
	int have; /* found, with those there was no room for */
	struct rdma_event_channel *channel;
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

static void ports_no_channel(int err)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	const char *hint = "";

	/* librdmacm's errno is of the last that it tried, not of this file. */
	if (access(PORTS_CHANNEL, R_OK | W_OK) < 0)
		err = errno;
	if (err == ENOENT || err == ENODEV || err == ENXIO)
		hint = "; is the kernel's module loaded (modprobe rdma_ucm), and the file seen in "
		       "this container?";
	else if (err == EACCES || err == EPERM)
		hint = "; this user must be allowed to read and write it";
	rvcm_warn(RVCM_LOG_CORE, "verbs: there are RDMA devices, and none can be used: %s: %s%s",
		  PORTS_CHANNEL, rvcm_verbs_limits_text(err, text), hint);
}

/* Can the file of a device be opened at all? rdma_cm does not say. */
static void ports_no_access(struct ibv_device *device)
{
	char path[64 + sizeof(device->dev_name)], text[RVCM_VERBS_LIMITS_TEXT_MAX];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	if (access(path, R_OK | W_OK) < 0)
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered: %s: %s", ibv_get_device_name(device),
			  path, rvcm_verbs_limits_text(errno, text));
	else
		rvcm_warn(RVCM_LOG_CORE,
			  "%s: not offered: no address leads to it: give its network interface an "
			  "IP address, and set it up (ip addr add, ip link set up)",
			  ibv_get_device_name(device));
}

static bool ports_named(const struct ports *p, const char *device)
{
	for (int i = 0; i < p->have && i < p->n; i++)
		if (strncmp(p->attrs[i].nic.device, device, sizeof(p->attrs[i].nic.device) - 1) ==
		    0)
			return true;
	return p->have > p->n; /* it may be one of those */
}

/* Devices that no address led to. */
static void ports_explain(const struct ports *p, const struct ports *refused)
{
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n; i++) {
		const char *name = ibv_get_device_name(list[i]);

		if (!ports_named(p, name) && !ports_named(refused, name))
			ports_no_access(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
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

/* False: it is not offered, and that was said. */
static bool ports_attr(struct rdma_cm_id *id, const struct rvcm_addr *addr,
		       struct rvcm_dev_attr *attr)
{
	const char *name = ibv_get_device_name(id->verbs->device);
	bool iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	char text[RVCM_ADDR_STRLEN], umad[RVCM_VERBS_UMAD_TEXT_MAX];

	memset(attr, 0, sizeof(*attr));
	snprintf(attr->nic.device, sizeof(attr->nic.device), "%.31s", name);
	(void)rvcm_addr_format(addr, text, sizeof(text));
	if (ibv_query_device(id->verbs, &device) ||
	    ibv_query_port(id->verbs, id->port_num, &port)) {
		rvcm_warn(RVCM_LOG_CORE,
			  "%s: not offered at %s: it does not say what it can do: "
			  "errno %d",
			  name, text, errno);
		return false;
	}
	if (port.state != IBV_PORT_ACTIVE) {
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered at %s: port %u is %s; %s", name, text,
			  id->port_num, ibv_port_state_str(port.state),
			  rvcm_verbs_umad_text(name, id->port_num, umad));
		return false;
	}
	if (device.max_srq <= 0) {
		rvcm_warn(RVCM_LOG_CORE, "%s: not offered at %s: it has no shared receive queues",
			  name, text);
		return false;
	}
	attr->addr = *addr;
	attr->wire = iwarp ? RVCM_DEV_WIRE_IWARP : RVCM_DEV_WIRE_IB;
	rvcm_verbs_limits_attr(attr, &device, &port, iwarp, PORTS_INLINE_BYTES);
	rvcm_verbs_nic_fill(attr, id, &device, &port);
	rvcm_info(RVCM_LOG_CORE, "%s: port %u at %s: %s", name, id->port_num, text,
		  rvcm_verbs_umad_text(name, id->port_num, umad));
	return true;
}

/* Is an RDMA device behind this address? The id, and with it the device, is let go of at once. */
static void ports_try(struct ports *p, struct ports *refused, const struct rvcm_addr *addr)
{
	struct rvcm_dev_attr attr;
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;

	if (rdma_create_id(p->channel, &id, NULL, RDMA_PS_TCP))
		return;
	rvcm_verbs_sockaddr_put(addr, &ss);
	if (rdma_bind_addr(id, (struct sockaddr *)&ss) == 0 && id->verbs) {
		struct ports *to = ports_attr(id, addr, &attr) ? p : refused;

		rvcm_verbs_name(&attr, to->attrs, to->have < to->n ? to->have : to->n);
		rvcm_verbs_name_insert(to->attrs, to->have, to->n, &attr);
		to->have++;
	}
	rdma_destroy_id(id);
}

/* What is near costs time to find out, and matters only where there is a choice. */
static void ports_near_first(struct rvcm_dev_attr *attrs, int n)
{
	if (rvcm_verbs_near_differ(attrs, n))
		rvcm_verbs_near_sort(attrs, n, rvcm_verbs_near_node());
}

static void ports_all(struct ports *p)
{
	struct rvcm_dev_attr none[8];
	struct ports refused = { .attrs = none, .n = 8 };
	struct ifaddrs *list;
	struct rvcm_addr addr;

	if (getifaddrs(&list) < 0) {
		rvcm_warn(RVCM_LOG_CORE, "verbs: cannot list interfaces: errno %d", errno);
		return;
	}
	for (struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next)
		if (ports_usable(ifa, &addr))
			ports_try(p, &refused, &addr);
	freeifaddrs(list);
	ports_near_first(p->attrs, p->have < p->n ? p->have : p->n);
	ports_explain(p, &refused);
}

int rvcm_verbs_ports_enumerate(struct rvcm_dev_attr *attrs, int n)
{
	struct ports p = { .attrs = attrs, .n = n };

	if (!ports_any()) {
		rvcm_info(RVCM_LOG_CORE, "verbs: no RDMA device in " PORTS_SYS);
		return 0;
	}
	rvcm_verbs_fork_init();
	p.channel = rdma_create_event_channel();
	if (!p.channel) {
		ports_no_channel(errno);
		return 0;
	}
	ports_all(&p);
	rdma_destroy_event_channel(p.channel);
	return p.have;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* One device per address of an interface that is up. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/limit.h"
#include "base/log.h"
#include "dev/soft/soft_impl.h"

static bool ifaddr_usable(const struct ifaddrs *ifa, struct rvcm_addr *addr)
{
	struct sockaddr_storage ss;
	size_t len = sizeof(struct sockaddr_in);

	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return false;
	if (ifa->ifa_addr->sa_family == AF_INET6)
		len = sizeof(struct sockaddr_in6);
	else if (ifa->ifa_addr->sa_family != AF_INET)
		return false;
	memset(&ss, 0, sizeof(ss));
	memcpy(&ss, ifa->ifa_addr, len);
	rvcm_soft_sock_to_addr(&ss, addr);
	return true;
}

static void ifaddr_attr(struct rvcm_dev_attr *attr, const struct rvcm_addr *addr)
{
	memset(attr, 0, sizeof(*attr));
	attr->addr = *addr;
	attr->caps = RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_ATOMIC | RVCM_DEV_CAP_LOSSY |
		     RVCM_DEV_CAP_READ | RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64 |
		     RVCM_DEV_CAP_HEAD;
	attr->private_data_bytes = RVCM_SOFT_MPA_PRIVATE_BYTES_MAX - RVCM_SOFT_MPA_ENHANCED_BYTES;
	attr->sge_max = RVCM_SOFT_SGE_MAX;
	attr->inline_bytes_max = RVCM_SOFT_INLINE_BYTES;
	attr->sq_depth_max = 1u << 14;
	attr->rq_depth_max = 1u << 16;
	attr->cq_depth_max = 1u << 20;
	attr->qp_max = 1u << 16;
	attr->mr_free = true;
	attr->mr_max = RVCM_SOFT_KEY_REGIONS_MAX;
	attr->message_bytes_max = 1ull << 30;
	attr->lead_bytes = RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_UNTAGGED_BYTES;
	attr->mtu_bytes = 64u * 1024;
	attr->pool_waits = true;
	attr->numa_node = -1;
	attr->wire = RVCM_DEV_WIRE_IWARP;
	attr->nic.link_state = RVCM_DEV_LINK_UP;
}

int rvcm_soft_ifaddr_enumerate(struct rvcm_dev_attr *attrs, int n)
{
	char text[RVCM_LIMIT_TEXT_MAX];
	struct ifaddrs *list;
	int have = 0, rc;

	if (getifaddrs(&list) < 0) {
		rc = -errno;
		rvcm_warn(RVCM_LOG_CORE, "soft: cannot list interfaces: %s",
			  rvcm_limit_text(-rc, text));
		return rc;
	}
	for (struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		char stem[sizeof("soft-") + IF_NAMESIZE];
		struct rvcm_dev_attr attr;
		struct rvcm_addr addr;

		if (!ifaddr_usable(ifa, &addr))
			continue;
		ifaddr_attr(&attr, &addr);
		snprintf(stem, sizeof(stem), "soft-%s", ifa->ifa_name);
		rvcm_dev_offer(&attr, stem, attrs, have, n);
		have++;
	}
	freeifaddrs(list);
	return have;
}

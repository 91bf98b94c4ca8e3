/* SPDX-License-Identifier: BSD-2-Clause */
/* What this host's IP stack knows. Nothing here waits; any thread. */
#ifndef RVCM_DEV_VERBS_NETLINK_H
#define RVCM_DEV_VERBS_NETLINK_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

/* TCP_INFO (tcp(7)) of that connection; -ENOENT: there is none. Both with their ports. */
int rvcm_verbs_netlink_tcp(const struct sockaddr *local, const struct sockaddr *peer,
			   struct tcp_info *info);

/*
 * Would a packet to that peer leave from that address by that interface (its number)? No, if the
 * interface is down, the address is gone, or no route leads there. True also if it cannot be asked.
 */
bool rvcm_verbs_netlink_routed(const struct sockaddr *local, const struct sockaddr *peer,
			       uint32_t interface);

/* The number of the interface that has the address; 0: none, which as a question means any. */
uint32_t rvcm_verbs_netlink_interface(const struct sockaddr *local);

#endif

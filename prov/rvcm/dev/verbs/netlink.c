/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this host's IP stack is asked: netlink(7), one question and its answer, which does not wait.
 *
 *   tcp     what TCP has heard on a connection, also on one whose socket is the kernel's own:
 *           sock_diag(7). An adapter that does TCP by itself is not known there.
 *   routed  whether a packet would leave: the question that rxe asks for each
 */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dev/verbs/netlink.h"

#define ANSWER_MAX 4096

union answer {
	struct nlmsghdr header;
	uint8_t bytes[ANSWER_MAX];
};

struct tcp_question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 diag;
};

struct route_question {
	struct nlmsghdr header;
	struct rtmsg route;
	uint8_t attrs[128];
};

/* 0 and the answer, of that type; or a negative errno, the kernel's own if it gave one. */
static int netlink_ask(int protocol, const struct nlmsghdr *question, uint16_t type,
		       union answer *answer)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	const struct nlmsgerr *error = NLMSG_DATA(&answer->header);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = send(fd, question, question->nlmsg_len, 0);
	if (n >= 0)
		n = recv(fd, answer, sizeof(*answer), 0);
	n = n < 0 ? -errno : n;
	close(fd);
	if (n < 0)
		return (int)n;
	if (!NLMSG_OK(&answer->header, (size_t)n))
		return -EBADMSG;
	if (answer->header.nlmsg_type == NLMSG_ERROR &&
	    answer->header.nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && error->error)
		return error->error;
	return answer->header.nlmsg_type == type ? 0 : -EBADMSG;
}

static const void *address_of(const struct sockaddr *sa, uint16_t *bytes, __be16 *port)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;
	bool is_v4 = sa->sa_family == AF_INET;

	*bytes = is_v4 ? sizeof(v4->sin_addr) : sizeof(v6->sin6_addr);
	*port = is_v4 ? v4->sin_port : v6->sin6_port;
	return is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr;
}

/* -- TCP -------------------------------------------------------------------------------------- */

static void tcp_ask(struct tcp_question *q, const struct sockaddr *local,
		    const struct sockaddr *peer)
{
	uint16_t bytes;
	const void *ip;

	memset(q, 0, sizeof(*q));
	q->header.nlmsg_len = sizeof(*q);
	q->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	q->header.nlmsg_flags = NLM_F_REQUEST;
	q->diag.sdiag_family = (uint8_t)local->sa_family;
	q->diag.sdiag_protocol = IPPROTO_TCP;
	q->diag.idiag_ext = 1u << (INET_DIAG_INFO - 1);
	q->diag.idiag_states = UINT32_MAX;
	q->diag.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	q->diag.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	ip = address_of(local, &bytes, &q->diag.id.idiag_sport);
	memcpy(q->diag.id.idiag_src, ip, bytes);
	ip = address_of(peer, &bytes, &q->diag.id.idiag_dport);
	memcpy(q->diag.id.idiag_dst, ip, bytes);
	if (local->sa_family == AF_INET6)
		q->diag.id.idiag_if = ((const struct sockaddr_in6 *)local)->sin6_scope_id;
}

static int tcp_read(const struct nlmsghdr *header, struct tcp_info *info)
{
	const struct inet_diag_msg *msg = NLMSG_DATA(header);
	const struct rtattr *attr = (const struct rtattr *)(msg + 1);
	size_t left = header->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		size_t length = RTA_PAYLOAD(attr);

		if (attr->rta_type != INET_DIAG_INFO)
			continue;
		memset(info, 0, sizeof(*info));
		memcpy(info, RTA_DATA(attr), length < sizeof(*info) ? length : sizeof(*info));
		return 0;
	}
	return -ENOENT;
}

int rvcm_verbs_netlink_tcp(const struct sockaddr *local, const struct sockaddr *peer,
			   struct tcp_info *info)
{
	const struct inet_diag_msg *msg;
	struct tcp_question question;
	union answer answer;
	int rc;

	tcp_ask(&question, local, peer);
	rc = netlink_ask(NETLINK_SOCK_DIAG, &question.header, SOCK_DIAG_BY_FAMILY, &answer);
	if (rc)
		return rc;
	msg = NLMSG_DATA(&answer.header);
	if (answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(*msg)))
		return -EBADMSG;
	/* What listens at the local address is another. */
	if (msg->id.idiag_dport != question.diag.id.idiag_dport)
		return -ENOENT;
	return tcp_read(&answer.header, info);
}

/* -- routes ----------------------------------------------------------------------------------- */

static void route_put(struct route_question *q, uint16_t type, const void *value, uint16_t bytes)
{
	struct rtattr *attr = (struct rtattr *)((uint8_t *)q + NLMSG_ALIGN(q->header.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attr), value, bytes);
	q->header.nlmsg_len = NLMSG_ALIGN(q->header.nlmsg_len) + (uint32_t)RTA_ALIGN(attr->rta_len);
}

bool rvcm_verbs_netlink_routed(const struct sockaddr *local, const struct sockaddr *peer,
			       uint32_t interface)
{
	struct route_question q = { .header.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
				    .header.nlmsg_type = RTM_GETROUTE,
				    .header.nlmsg_flags = NLM_F_REQUEST,
				    .route.rtm_family = (uint8_t)local->sa_family };
	union answer answer;
	uint16_t bytes;
	__be16 port;
	const void *ip;
	int rc;

	ip = address_of(local, &bytes, &port);
	q.route.rtm_src_len = (uint8_t)(8 * bytes);
	route_put(&q, RTA_SRC, ip, bytes);
	ip = address_of(peer, &bytes, &port);
	q.route.rtm_dst_len = (uint8_t)(8 * bytes);
	route_put(&q, RTA_DST, ip, bytes);
	route_put(&q, RTA_OIF, &interface, sizeof(interface));
	rc = netlink_ask(NETLINK_ROUTE, &q.header, RTM_NEWROUTE, &answer);
	return rc == 0 || (rc != -ENETUNREACH && rc != -EHOSTUNREACH && rc != -EINVAL &&
			   rc != -ENODEV && rc != -ENETDOWN);
}

uint32_t rvcm_verbs_netlink_interface(const struct sockaddr *local)
{
	uint16_t bytes;
	__be16 port;
	const void *ip = address_of(local, &bytes, &port);
	struct ifaddrs *list;
	uint32_t found = 0;

	if (getifaddrs(&list))
		return 0;
	for (const struct ifaddrs *ifa = list; ifa && !found; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == local->sa_family &&
		    memcmp(address_of(ifa->ifa_addr, &bytes, &port), ip, bytes) == 0)
			found = if_nametoindex(ifa->ifa_name);
	freeifaddrs(list);
	return found;
}

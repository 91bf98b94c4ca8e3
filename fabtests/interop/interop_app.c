/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application of peer.py: one endpoint that talks to one peer. Public libfabric calls only.
 *
 *   interop_app ADDRESS PORT first|second|long|none
 *
 * Prints "name ADDRESS PORT", receives a short message of tag 1 and sends one of tag 2 (first: the
 * other way round), receives a long one of tag 3 and sends one of tag 4 (long: that only), or none
 * of it. Goes on making progress until its input ends, then closes in order. An operation that
 * fails ends it, with a line on its standard error that says why.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "rvcm/fi_ext_rvcm.h"

#define SHORT     100u
#define LONG      700000u
#define TIMEOUT_S 60

struct app {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint8_t buf[LONG];
};

static void check(const char *what, long rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "interop_app: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

static void open_all(struct app *a)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("rvcm");
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &a->info));
	fi_freeinfo(hints);
	check("fi_fabric", fi_fabric(a->info->fabric_attr, &a->fabric, NULL));
	check("fi_domain", fi_domain(a->fabric, a->info, &a->domain, NULL));
	check("fi_cq_open", fi_cq_open(a->domain, &cq, &a->cq, NULL));
	check("fi_av_open", fi_av_open(a->domain, &av, &a->av, NULL));
	check("fi_endpoint", fi_endpoint(a->domain, a->info, &a->ep, NULL));
	check("fi_ep_bind", fi_ep_bind(a->ep, &a->cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_ep_bind", fi_ep_bind(a->ep, &a->av->fid, 0));
	check("fi_enable", fi_enable(a->ep));
}

static void introduce(struct app *a, const char *address, const char *port)
{
	struct sockaddr_in own, peer = { .sin_family = AF_INET };
	size_t bytes = sizeof(own);
	char text[INET_ADDRSTRLEN];

	peer.sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, address, &peer.sin_addr) != 1 ||
	    fi_av_insert(a->av, &peer, 1, &a->peer, 0, NULL) != 1)
		check(address, -FI_EINVAL);
	check("fi_getname", fi_getname(&a->ep->fid, &own, &bytes));
	printf("name %s %u\n", inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text)),
	       ntohs(own.sin_port));
	fflush(stdout);
}

static void wait_one(struct app *a, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry err = { 0 };
	time_t end = time(NULL) + TIMEOUT_S;
	ssize_t rc;

	do
		rc = fi_cq_read(a->cq, entry, 1);
	while (rc == -FI_EAGAIN && time(NULL) < end);
	if (rc == -FI_EAVAIL) {
		fi_cq_readerr(a->cq, &err, 0);
		fprintf(stderr, "interop_app: %s (prov_errno: %u, of the device: 0x%x)\n",
			fi_cq_strerror(a->cq, err.prov_errno, err.err_data, NULL, 0),
			FI_RVCM_ERRNO_STATUS(err.prov_errno), FI_RVCM_ERRNO_VENDOR(err.prov_errno));
		rc = -err.err;
	}
	check("fi_cq_read", rc);
}

static uint8_t pattern(uint64_t tag, size_t i)
{
	return (uint8_t)(i * 7 + tag);
}

/* Short messages carry tag + 1 as their CQ data. */
static void send_one(struct app *a, uint64_t tag, size_t bytes)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context context;

	for (size_t i = 0; i < bytes; i++)
		a->buf[i] = pattern(tag, i);
	if (bytes == SHORT)
		check("fi_tsenddata",
		      fi_tsenddata(a->ep, a->buf, bytes, NULL, tag + 1, a->peer, tag, &context));
	else
		check("fi_tsend", fi_tsend(a->ep, a->buf, bytes, NULL, a->peer, tag, &context));
	wait_one(a, &entry);
}

static void recv_one(struct app *a, uint64_t tag, size_t bytes)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context context;
	size_t wrong = 0;

	memset(a->buf, 0xff, bytes);
	check("fi_trecv", fi_trecv(a->ep, a->buf, bytes, NULL, FI_ADDR_UNSPEC, tag, 0, &context));
	wait_one(a, &entry);
	for (size_t i = 0; i < bytes; i++)
		wrong += a->buf[i] != pattern(tag, i);
	if (wrong || entry.len != bytes || entry.tag != tag ||
	    (bytes == SHORT && entry.data != tag + 1))
		check("what was received", -FI_EIO);
}

static void converse(struct app *a, const char *who)
{
	if (!strcmp(who, "none"))
		return;
	if (!strcmp(who, "long")) {
		send_one(a, 4, LONG);
		return;
	}
	if (!strcmp(who, "first"))
		send_one(a, 2, SHORT);
	recv_one(a, 1, SHORT);
	if (strcmp(who, "first") != 0)
		send_one(a, 2, SHORT);
	recv_one(a, 3, LONG);
	send_one(a, 4, LONG);
}

static void close_all(struct app *a)
{
	check("fi_close", fi_close(&a->ep->fid));
	check("fi_close", fi_close(&a->av->fid));
	check("fi_close", fi_close(&a->cq->fid));
	check("fi_close", fi_close(&a->domain->fid));
	check("fi_close", fi_close(&a->fabric->fid));
	fi_freeinfo(a->info);
}

int main(int argc, char **argv)
{
	static struct app a;
	struct pollfd in = { .fd = 0, .events = POLLIN };

	if (argc != 4) {
		fprintf(stderr, "usage: interop_app ADDRESS PORT first|second|long|none\n");
		return 2;
	}
	open_all(&a);
	introduce(&a, argv[1], argv[2]);
	converse(&a, argv[3]);
	while (poll(&in, 1, 0) == 0)
		(void)fi_cq_read(a.cq, NULL, 0);
	close_all(&a);
	return 0;
}

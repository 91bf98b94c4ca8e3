/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_fi [-p PROVIDER] [ROW...]: tagged messages between two reliable datagram endpoints, through
 * libfabric's public calls alone, over any provider (default rvcm) that has them. Both sides poll.
 *
 * To measure another libfabric than the one it was built with, name its folder in LD_LIBRARY_PATH.
 */
#include "bench/bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define TAG       0x1234
#define NAME_MAX  256
#define BATCH_MAX 16

static struct {
	const char *provider;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	int sends; /* posted and not completed */
	int recvs;
	struct fi_context2 contexts[2 * BENCH_WINDOW_MAX + 2]; /* for mode bits; one an operation */
	unsigned int next;
} fi = { .provider = "rvcm" };

/* -- set-up -------------------------------------------------------------------------------- */

static void fi_fine(long rc, const char *what)
{
	if (rc)
		bench_die("%s over %s: %s", what, fi.provider, fi_strerror((int)-rc));
}

static void find(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		bench_die("no memory");
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = strdup(fi.provider);
	fi_fine(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &fi.info), "fi_getinfo");
	fi_freeinfo(hints);
}

static void meet(void)
{
	char mine[NAME_MAX] = { 0 }, theirs[NAME_MAX];
	size_t len = sizeof(mine);

	fi_fine(fi_getname(&fi.ep->fid, mine, &len), "fi_getname");
	bench_swap(mine, theirs, sizeof(mine));
	if (fi_av_insert(fi.av, theirs, 1, &fi.peer, 0, NULL) != 1)
		bench_die("fi_av_insert over %s failed", fi.provider);
}

static void open_all(int first)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	(void)first;
	find();
	fi_fine(fi_fabric(fi.info->fabric_attr, &fi.fabric, NULL), "fi_fabric");
	fi_fine(fi_domain(fi.fabric, fi.info, &fi.domain, NULL), "fi_domain");
	fi_fine(fi_cq_open(fi.domain, &cq_attr, &fi.cq, NULL), "fi_cq_open");
	fi_fine(fi_av_open(fi.domain, &av_attr, &fi.av, NULL), "fi_av_open");
	fi_fine(fi_endpoint(fi.domain, fi.info, &fi.ep, NULL), "fi_endpoint");
	fi_fine(fi_ep_bind(fi.ep, &fi.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	fi_fine(fi_ep_bind(fi.ep, &fi.av->fid, 0), "fi_ep_bind");
	fi_fine(fi_enable(fi.ep), "fi_enable");
	meet();
}

/* Together: an end that is gone may be an error to who polls still. */
static void close_all(void)
{
	bench_meet();
	fi_fine(fi_close(&fi.ep->fid), "fi_close");
	fi_fine(fi_close(&fi.av->fid), "fi_close");
	fi_fine(fi_close(&fi.cq->fid), "fi_close");
	fi_fine(fi_close(&fi.domain->fid), "fi_close");
	fi_fine(fi_close(&fi.fabric->fid), "fi_close");
	fi_freeinfo(fi.info);
}

/* -- messages ------------------------------------------------------------------------------ */

static void failed(void)
{
	struct fi_cq_err_entry err = { 0 };

	fi_cq_readerr(fi.cq, &err, 0);
	bench_die("an operation over %s failed: %s", fi.provider, fi_strerror(err.err));
}

static void progress(void)
{
	struct fi_cq_tagged_entry entries[BATCH_MAX];
	ssize_t n = fi_cq_read(fi.cq, entries, BATCH_MAX);

	if (n == -FI_EAGAIN) {
		bench_idle();
		return;
	}
	if (n < 0)
		failed();
	for (ssize_t i = 0; i < n; i++) {
		if (entries[i].flags & FI_RECV)
			fi.recvs--;
		else
			fi.sends--;
	}
}

static void *context(void)
{
	return &fi.contexts[fi.next++ % (sizeof(fi.contexts) / sizeof(fi.contexts[0]))];
}

static void post_send(const void *buf, size_t bytes)
{
	ssize_t rc;

	while ((rc = fi_tsend(fi.ep, buf, bytes, NULL, fi.peer, TAG, context())) == -FI_EAGAIN)
		progress();
	fi_fine(rc, "fi_tsend");
	fi.sends++;
}

static void post_recv(void *buf, size_t bytes)
{
	ssize_t rc;

	while ((rc = fi_trecv(fi.ep, buf, bytes, NULL, FI_ADDR_UNSPEC, TAG, 0, context())) ==
	       -FI_EAGAIN)
		progress();
	fi_fine(rc, "fi_trecv");
	fi.recvs++;
}

static void send_one(const void *buf, size_t bytes)
{
	post_send(buf, bytes);
	while (fi.sends)
		progress();
}

static void recv_one(void *buf, size_t bytes)
{
	post_recv(buf, bytes);
	while (fi.recvs)
		progress();
}

static void stream(const void *buf, size_t bytes, int n)
{
	while (n-- > 0)
		post_send(buf, bytes);
	while (fi.sends)
		progress();
}

static void sink(void *buf, size_t bytes, int n)
{
	while (n-- > 0)
		post_recv(buf, bytes);
	while (fi.recvs)
		progress();
}

static const struct bench_ops ops = {
	.open = open_all,
	.send = send_one,
	.recv = recv_one,
	.stream = stream,
	.sink = sink,
	.close = close_all,
	.meet = bench_meet,
};

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "p:")) != -1) {
		if (option != 'p')
			bench_die("usage: bench_fi [-p PROVIDER] [ROW...]");
		fi.provider = optarg;
	}
	return bench_main(&ops, argc - optind, argv + optind);
}

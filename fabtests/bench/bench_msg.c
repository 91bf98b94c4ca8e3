/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_msg [ROW...]: messages between two MSG endpoints of libfabric's verbs provider, the bare
 * ones, through libfabric's public calls. BENCH_NODE is the address of the RDMA device that both
 * use. Both sides poll; receives are posted before they are needed.
 */
#include "bench/bench.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define PORT  "7499"
#define MRS   4
#define BATCH 16
#define READY BENCH_WINDOW_MAX /* receives that are posted */
#define SENDS 64               /* in flight */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mrs[MRS]; /* of buffers of BENCH_BYTES_MAX */
	const void *of[MRS];
	int posted; /* receives */
	int heard;  /* messages that nobody has asked for */
	int sends;
} fi;

static void fine(long rc, const char *what)
{
	if (rc)
		bench_die("%s: %s", what, fi_strerror((int)-rc));
}

/* -- set-up ---------------------------------------------------------------------------------- */

static void find(uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs");
	fine(fi_getinfo(FI_VERSION(1, 15), getenv("BENCH_NODE"), PORT, flags, hints, &fi.info),
	     "fi_getinfo");
	fi_freeinfo(hints);
}

static void open_endpoint(struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .size = 4 * READY };

	fine(fi_domain(fi.fabric, info, &fi.domain, NULL), "fi_domain");
	fine(fi_cq_open(fi.domain, &attr, &fi.cq, NULL), "fi_cq_open");
	fine(fi_endpoint(fi.domain, info, &fi.ep, NULL), "fi_endpoint");
	fine(fi_ep_bind(fi.ep, &fi.eq->fid, 0), "fi_ep_bind");
	fine(fi_ep_bind(fi.ep, &fi.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	fine(fi_enable(fi.ep), "fi_enable");
}

static struct fi_info *expect(uint32_t due)
{
	struct fi_eq_cm_entry entry = { 0 };
	uint32_t type = 0;
	ssize_t rc = fi_eq_sread(fi.eq, &type, &entry, sizeof(entry), -1, 0);

	if (rc < 0 || type != due)
		bench_die("event %u is due: %s", due, rc < 0 ? fi_strerror((int)-rc) : "another");
	return entry.info;
}

static void listen_for_it(void)
{
	struct fi_info *info;

	fine(fi_passive_ep(fi.fabric, fi.info, &fi.pep, NULL), "fi_passive_ep");
	fine(fi_pep_bind(fi.pep, &fi.eq->fid, 0), "fi_pep_bind");
	fine(fi_listen(fi.pep), "fi_listen");
	bench_meet();
	info = expect(FI_CONNREQ);
	open_endpoint(info);
	fine(fi_accept(fi.ep, NULL, 0), "fi_accept");
	fi_freeinfo(info);
}

static void open_all(int first)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	find(first ? 0 : FI_SOURCE);
	fine(fi_fabric(fi.info->fabric_attr, &fi.fabric, NULL), "fi_fabric");
	fine(fi_eq_open(fi.fabric, &attr, &fi.eq, NULL), "fi_eq_open");
	if (first) {
		bench_meet();
		open_endpoint(fi.info);
		fine(fi_connect(fi.ep, fi.info->dest_addr, NULL, 0), "fi_connect");
	} else {
		listen_for_it();
	}
	(void)expect(FI_CONNECTED);
}

static void close_all(void)
{
	bench_meet();
	fine(fi_close(&fi.ep->fid), "fi_close");
	for (int i = 0; i < MRS; i++)
		if (fi.mrs[i])
			fine(fi_close(&fi.mrs[i]->fid), "fi_close");
	fine(fi_close(&fi.cq->fid), "fi_close");
	fine(fi_close(&fi.domain->fid), "fi_close");
	if (fi.pep)
		fine(fi_close(&fi.pep->fid), "fi_close");
	fine(fi_close(&fi.eq->fid), "fi_close");
	fine(fi_close(&fi.fabric->fid), "fi_close");
	fi_freeinfo(fi.info);
}

/* -- messages -------------------------------------------------------------------------------- */

static void *desc_of(const void *buf)
{
	int i = 0;

	while (i < MRS && fi.mrs[i] && fi.of[i] != buf)
		i++;
	if (i == MRS)
		bench_die("more buffers than were thought of");
	if (!fi.mrs[i]) {
		fine(fi_mr_reg(fi.domain, buf, BENCH_BYTES_MAX, FI_SEND | FI_RECV, 0, 0, 0,
			       &fi.mrs[i], NULL),
		     "fi_mr_reg");
		fi.of[i] = buf;
	}
	return fi_mr_desc(fi.mrs[i]);
}

static void progress(void)
{
	struct fi_cq_msg_entry entries[BATCH];
	ssize_t n = fi_cq_read(fi.cq, entries, BATCH);

	if (n == -FI_EAGAIN) {
		bench_idle();
		return;
	}
	if (n < 0)
		bench_die("an operation failed: %s", fi_strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		bool receive = entries[i].flags & FI_RECV;

		fi.heard += receive;
		fi.posted -= receive;
		fi.sends -= !receive;
	}
}

/* Every message of a row goes to the same buffer, so that its receives may wait for it. */
static void be_ready(void *buf)
{
	for (; fi.posted < READY; fi.posted++)
		fine(fi_recv(fi.ep, buf, BENCH_BYTES_MAX, desc_of(buf), 0, NULL), "fi_recv");
}

static void post_send(const void *buf, size_t bytes)
{
	ssize_t rc;

	while (fi.sends >= SENDS)
		progress();
	while ((rc = fi_send(fi.ep, buf, bytes, desc_of(buf), 0, NULL)) == -FI_EAGAIN)
		progress();
	fine(rc, "fi_send");
	fi.sends++;
}

/* It is over when the peer has answered; nothing else is written to buf before. */
static void send_one(const void *buf, size_t bytes)
{
	post_send(buf, bytes);
}

static void sink(void *buf, size_t bytes, int n)
{
	(void)bytes;
	be_ready(buf);
	while (fi.heard < n)
		progress();
	fi.heard -= n;
	be_ready(buf);
}

static void recv_one(void *buf, size_t bytes)
{
	sink(buf, bytes, 1);
}

static void stream(const void *buf, size_t bytes, int n)
{
	while (n-- > 0)
		post_send(buf, bytes);
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
	return bench_main(&ops, argc - 1, argv + 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tries WHAT [ARGUMENT...]: go as far as it is possible over rvcm, and say how far that was. Prints
 * one line, the step that failed and with what, or "ok"; the exit status is 0 if it can print it.
 *
 *   tries getinfo              fi_getinfo, of what fi_info(1) asks
 *   tries open [NODE PORT]     a reliable datagram endpoint, enabled, at that address
 *   tries send NODE PORT       and a message to that one, until it completes
 *   tries many N               N endpoints in domains of their own, each of which sends a message
 * to the first: says how many arrived, and how the others ended tries reg BYTES            and a
 * registration of so much memory
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define PATIENCE_S 120
#define NODES_MAX  1000
#define BYTES      64

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_context2 context;
	uint8_t name[64];
	size_t name_size;
	bool over;
};

static struct node nodes[NODES_MAX];
static uint8_t buf[BYTES];

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	exit(0);
}

static void step(long rc, const char *what)
{
	if (rc)
		say("%s: %ld: %s", what, rc, fi_strerror((int)-rc));
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* -- an endpoint ----------------------------------------------------------------------------- */

static int find(struct node *n, const char *node, const char *port)
{
	struct fi_info *hints = fi_allocinfo();
	int rc;

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("rvcm");
	rc = fi_getinfo(FI_VERSION(1, 15), node, port, node ? FI_SOURCE : 0, hints, &n->info);
	fi_freeinfo(hints);
	return rc;
}

static void open_node(struct node *n, const char *node, const char *port)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	step(find(n, node, port), "fi_getinfo");
	step(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	step(fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	step(fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
	step(fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	step(fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	step(fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind");
	step(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	step(fi_enable(n->ep), "fi_enable");
	n->name_size = sizeof(n->name);
	step(fi_getname(&n->ep->fid, n->name, &n->name_size), "fi_getname");
}

/* 0 while nothing has ended, 1 for a success, else the error; its text goes to text. */
static int take(struct node *n, char *text, size_t bytes)
{
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc = fi_cq_read(n->cq, &entry, 1);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc == 1)
		return 1;
	if (rc != -FI_EAVAIL || fi_cq_readerr(n->cq, &error, 0) != 1)
		step(rc, "fi_cq_read");
	snprintf(text, bytes, "%s: %s", fi_strerror(error.err),
		 fi_cq_strerror(n->cq, error.prov_errno, error.err_data, NULL, 0));
	return -error.err;
}

static void post_send(struct node *n, fi_addr_t to)
{
	time_t end = now_s() + PATIENCE_S;
	ssize_t rc;

	while ((rc = fi_send(n->ep, buf, sizeof(buf), NULL, to, &n->context)) == -FI_EAGAIN &&
	       now_s() < end)
		(void)fi_cq_read(n->cq, NULL, 0);
	step(rc, "fi_send");
}

/* -- what to try ------------------------------------------------------------------------------ */

static void try_getinfo(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	step(find(&nodes[0], NULL, NULL), "fi_getinfo");
}

static void try_open(int argc, char **argv)
{
	open_node(&nodes[0], argc == 2 ? argv[0] : NULL, argc == 2 ? argv[1] : NULL);
	step(fi_close(&nodes[0].ep->fid), "fi_close");
}

static void try_send(int argc, char **argv)
{
	struct node *n = &nodes[0];
	time_t end = now_s() + PATIENCE_S;
	char text[256];
	fi_addr_t to;
	int rc;

	if (argc != 2)
		say("usage: tries send NODE PORT");
	open_node(n, NULL, NULL);
	if (fi_av_insertsvc(n->av, argv[0], argv[1], &to, 0, NULL) != 1)
		say("fi_av_insertsvc: it did not take it");
	post_send(n, to);
	while (!(rc = take(n, text, sizeof(text))))
		if (now_s() > end)
			say("the message never ended");
	if (rc < 0)
		say("completion: %d: %s", rc, text);
	step(fi_close(&n->ep->fid), "fi_close");
}

/* How many of them arrived; the text of who did not, the last. */
static int gather(int count, char *text, size_t bytes)
{
	time_t end = now_s() + PATIENCE_S;
	int arrived = 0, over = 0;
	char ignored[256];

	while (over < count - 1 && now_s() < end) {
		(void)take(&nodes[0], ignored, sizeof(ignored));
		for (int i = 1; i < count; i++) {
			int rc = nodes[i].over ? 0 : take(&nodes[i], text, bytes);

			if (!rc)
				continue;
			nodes[i].over = true;
			over++;
			arrived += rc == 1;
		}
	}
	if (over < count - 1)
		say("%d of %d messages never ended", count - 1 - over, count - 1);
	return arrived;
}

static void try_many(int argc, char **argv)
{
	int count = argc >= 1 ? atoi(argv[0]) : 0, arrived;
	struct fi_context2 *contexts;
	char text[256] = "";

	if (count < 2 || count > NODES_MAX)
		say("usage: tries many N");
	contexts = calloc((size_t)count, sizeof(*contexts));
	for (int i = 0; i < count; i++)
		open_node(&nodes[i], NULL, NULL);
	if (argc > 1 && system(argv[1]))
		say("%s: it failed", argv[1]);
	for (int i = 1; i < count; i++) {
		fi_addr_t to;

		step(fi_recv(nodes[0].ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &contexts[i]),
		     "fi_recv");
		if (fi_av_insert(nodes[i].av, nodes[0].name, 1, &to, 0, NULL) != 1)
			say("fi_av_insert: it did not take it");
		post_send(&nodes[i], to);
	}
	arrived = gather(count, text, sizeof(text));
	if (arrived < count - 1)
		say("%d of %d arrived; another: %s", arrived, count - 1, text);
}

static void try_reg(int argc, char **argv)
{
	size_t bytes = argc == 1 ? strtoul(argv[0], NULL, 10) : 0;
	void *memory = calloc(1, bytes);
	struct fid_mr *mr;

	open_node(&nodes[0], NULL, NULL);
	step(fi_mr_reg(nodes[0].domain, memory, bytes, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL),
	     "fi_mr_reg");
}

static const struct {
	const char *name;
	void (*run)(int argc, char **argv);
} whats[] = {
	{ "getinfo", try_getinfo }, { "open", try_open }, { "send", try_send },
	{ "many", try_many },       { "reg", try_reg },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(whats) / sizeof(whats[0]); i++) {
		if (strcmp(whats[i].name, argv[1]))
			continue;
		whats[i].run(argc - 2, argv + 2);
		say("ok");
	}
	fprintf(stderr, "usage: tries getinfo|open|send|many|reg [ARGUMENT...]\n");
	return 2;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo_fi PROVIDER server|client OWN PEER PORT: echo.h's protocol on an MSG endpoint of a provider
 * of libfabric's, through its public interface.
 */
#include <poll.h>
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
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "vm/echo.h"

#define PATIENCE_S 240
#define TURN_MS    100
#define ACCESS     (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep;
	struct fid_mr *mr; /* of all of mem */
	struct {
		uint8_t in[ECHO_BYTES_MAX];
		uint8_t out[ECHO_BYTES_MAX];
		uint8_t memory[ECHO_MEMORY];
	} mem;
	unsigned int sends; /* not completed */
} fi;

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(1);
}

static void fine(long rc, const char *what)
{
	if (rc)
		die("%s: %s", what, fi_strerror((int)-rc));
}

static void check(const uint8_t *buf, size_t bytes, unsigned int fill, const char *what)
{
	size_t i = echo_differs(buf, bytes, fill);

	if (i < bytes)
		die("%s: byte %zu of %zu is wrong", what, i, bytes);
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* -- life ----------------------------------------------------------------------------------- */

static void find(const char *provider, const char *node, const char *port, uint64_t flags,
		 const char *own)
{
	struct fi_info *hints = fi_allocinfo(), *source = NULL;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	if (own) {
		fine(fi_getinfo(FI_VERSION(1, 15), own, NULL, FI_SOURCE, hints, &source),
		     "fi_getinfo of our address");
		free(hints->domain_attr->name);
		hints->domain_attr->name = strdup(source->domain_attr->name);
	}
	fine(fi_getinfo(FI_VERSION(1, 15), node, port, flags, hints, &fi.info), "fi_getinfo");
	fi_freeinfo(source);
	fi_freeinfo(hints);
}

static void open_fabric(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	fine(fi_fabric(fi.info->fabric_attr, &fi.fabric, NULL), "fi_fabric");
	fine(fi_eq_open(fi.fabric, &attr, &fi.eq, NULL), "fi_eq_open");
}

static void expect_message(void)
{
	fine(fi_recv(fi.ep, fi.mem.in, ECHO_BYTES_MAX, fi_mr_desc(fi.mr), 0, NULL), "fi_recv");
}

/* The endpoint, a receive posted. */
static void open_endpoint(struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .size = 128 };

	fine(fi_domain(fi.fabric, info, &fi.domain, NULL), "fi_domain");
	fine(fi_cq_open(fi.domain, &attr, &fi.cq, NULL), "fi_cq_open");
	fine(fi_mr_reg(fi.domain, &fi.mem, sizeof(fi.mem), ACCESS, 0, 0, 0, &fi.mr, NULL),
	     "fi_mr_reg");
	fine(fi_endpoint(fi.domain, info, &fi.ep, NULL), "fi_endpoint");
	fine(fi_ep_bind(fi.ep, &fi.eq->fid, 0), "fi_ep_bind");
	fine(fi_ep_bind(fi.ep, &fi.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	fine(fi_enable(fi.ep), "fi_enable");
	expect_message();
}

static void close_all(void)
{
	fine(fi_close(&fi.ep->fid), "fi_close");
	fine(fi_close(&fi.mr->fid), "fi_close");
	fine(fi_close(&fi.cq->fid), "fi_close");
	fine(fi_close(&fi.domain->fid), "fi_close");
	if (fi.pep)
		fine(fi_close(&fi.pep->fid), "fi_close");
	fine(fi_close(&fi.eq->fid), "fi_close");
	fine(fi_close(&fi.fabric->fid), "fi_close");
	fi_freeinfo(fi.info);
}

/* -- connection ------------------------------------------------------------------------------ */

/* The next event: its size, or a negative error. A provider may need calls to make progress. */
static ssize_t next_event(uint32_t *type, struct fi_eq_cm_entry *entry, size_t bytes)
{
	struct fi_eq_err_entry error = { 0 };
	time_t end = now_s() + PATIENCE_S;
	ssize_t rc;

	while ((rc = fi_eq_sread(fi.eq, type, entry, bytes, TURN_MS, 0)) == -FI_EAGAIN) {
		if (fi.cq)
			(void)fi_cq_read(fi.cq, NULL, 0);
		if (now_s() > end)
			return -FI_ETIMEDOUT;
	}
	if (rc != -FI_EAVAIL)
		return rc;
	(void)fi_eq_readerr(fi.eq, &error, 0);
	return -error.err;
}

/* It must be this; its private data must begin with text, if there is one. */
static struct fi_info *expect_event(uint32_t due, const char *text)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + 256]; /* for the data at its end */
	} event;
	uint32_t type = 0;
	ssize_t rc = next_event(&type, &event.entry, sizeof(event));

	if (rc < 0)
		die("event %u is due: %s", due, fi_strerror((int)-rc));
	if (type != due)
		die("event %u where %u is due", type, due);
	if (text && ((size_t)rc < sizeof(event.entry) + ECHO_PRIVATE ||
		     strncmp((char *)event.entry.data, text, ECHO_PRIVATE) != 0))
		die("the private data are not the peer's");
	return event.entry.info;
}

static void serve_connection(void)
{
	char answer[ECHO_PRIVATE] = ECHO_ANSWER;
	struct fi_info *info;

	open_fabric();
	fine(fi_passive_ep(fi.fabric, fi.info, &fi.pep, NULL), "fi_passive_ep");
	fine(fi_pep_bind(fi.pep, &fi.eq->fid, 0), "fi_pep_bind");
	fine(fi_listen(fi.pep), "fi_listen");
	printf("ready\n");
	fflush(stdout);
	info = expect_event(FI_CONNREQ, ECHO_REQUEST);
	open_endpoint(info);
	fine(fi_accept(fi.ep, answer, sizeof(answer)), "fi_accept");
	expect_event(FI_CONNECTED, NULL);
	fi_freeinfo(info);
}

/* Again while nobody listens. */
static void dial(void)
{
	char request[ECHO_PRIVATE] = ECHO_REQUEST;
	time_t end = now_s() + PATIENCE_S;
	struct fi_eq_cm_entry *entry;
	char event[sizeof(*entry) + 256];
	uint32_t type = 0;
	ssize_t rc;

	entry = (struct fi_eq_cm_entry *)event;
	open_fabric();
	for (;;) {
		open_endpoint(fi.info);
		fine(fi_connect(fi.ep, fi.info->dest_addr, request, sizeof(request)), "fi_connect");
		rc = next_event(&type, entry, sizeof(event));
		if (rc != -FI_ECONNREFUSED || now_s() > end)
			break;
		fine(fi_close(&fi.ep->fid), "fi_close");
		fine(fi_close(&fi.mr->fid), "fi_close");
		fine(fi_close(&fi.cq->fid), "fi_close");
		fi.cq = NULL;
		fine(fi_close(&fi.domain->fid), "fi_close");
		poll(NULL, 0, 100);
	}
	if (rc < 0 || type != FI_CONNECTED)
		die("not connected: event %u, %s", type, fi_strerror((int)-rc));
	if ((size_t)rc < sizeof(*entry) + ECHO_PRIVATE ||
	    strncmp((char *)entry->data, ECHO_ANSWER, ECHO_PRIVATE) != 0)
		die("the private data are not the peer's");
}

/* -- messages -------------------------------------------------------------------------------- */

static struct fi_cq_msg_entry completion(void)
{
	struct fi_cq_msg_entry entry = { 0 };
	struct fi_cq_err_entry error = { 0 };
	time_t end = now_s() + PATIENCE_S;
	ssize_t rc;

	while ((rc = fi_cq_read(fi.cq, &entry, 1)) == -FI_EAGAIN)
		if (now_s() > end)
			die("a completion did not come");
	if (rc == 1)
		return entry;
	if (rc == -FI_EAVAIL && fi_cq_readerr(fi.cq, &error, 0) == 1)
		die("an operation failed: %s", fi_strerror(error.err));
	die("fi_cq_read: %s", fi_strerror((int)-rc));
}

static size_t hear(void)
{
	struct fi_cq_msg_entry entry = completion();

	while (!(entry.flags & FI_RECV))
		entry = completion();
	return entry.len;
}

static void say(size_t bytes)
{
	ssize_t rc;

	while ((rc = fi_send(fi.ep, fi.mem.out, bytes, fi_mr_desc(fi.mr), 0, NULL)) == -FI_EAGAIN)
		(void)fi_cq_read(fi.cq, NULL, 0);
	fine(rc, "fi_send");
}

static void put(uint8_t *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint64_t get(const uint8_t *from, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | from[i];
	return value;
}

static void serve(void)
{
	uint64_t addr, key;

	if (hear() != ECHO_INFO)
		die("the first message is not where the memory lies");
	addr = get(fi.mem.in, 8);
	key = get(fi.mem.in + 8, 4);
	fine(fi_read(fi.ep, fi.mem.memory, ECHO_MEMORY, fi_mr_desc(fi.mr), 0, addr, key, NULL),
	     "fi_read");
	(void)completion();
	check(fi.mem.memory, ECHO_MEMORY, 1, "what was read");
	echo_fill(fi.mem.memory, ECHO_MEMORY, 2);
	fine(fi_write(fi.ep, fi.mem.memory, ECHO_MEMORY, fi_mr_desc(fi.mr), 0, addr, key, NULL),
	     "fi_write");
	(void)completion();
	expect_message();
	say(1);
	for (unsigned int n = 0; n < ECHO_MESSAGES; n++) {
		size_t bytes = hear();

		if (bytes != echo_size(n))
			die("message %u has %zu bytes", n, bytes);
		check(fi.mem.in, bytes, 3 + n, "a message");
		memcpy(fi.mem.out, fi.mem.in, bytes);
		expect_message();
		say(bytes);
	}
}

/* As the peer names it: fi_mr(3), FI_MR_VIRT_ADDR. */
static uint64_t memory_address(void)
{
	bool virtual = fi.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	return virtual ? (uintptr_t)fi.mem.memory : (uintptr_t)fi.mem.memory - (uintptr_t)&fi.mem;
}

static void ask(void)
{
	put(fi.mem.out, memory_address(), 8);
	put(fi.mem.out + 8, fi_mr_key(fi.mr), 4);
	say(ECHO_INFO);
	if (hear() != 1)
		die("the answer is not of 1 byte");
	check(fi.mem.memory, ECHO_MEMORY, 2, "what was written");
	for (unsigned int n = 0; n < ECHO_MESSAGES; n++) {
		echo_fill(fi.mem.out, echo_size(n), 3 + n);
		memset(fi.mem.in, 0, echo_size(n));
		expect_message();
		say(echo_size(n));
		if (hear() != echo_size(n))
			die("message %u came back with another length", n);
		check(fi.mem.in, echo_size(n), 3 + n, "what came back");
	}
}

int main(int argc, char **argv)
{
	if (argc != 6)
		die("usage: echo_fi PROVIDER server|client OWN PEER PORT");
	if (strcmp(argv[2], "server") == 0) {
		find(argv[1], argv[3], argv[5], FI_SOURCE, NULL);
		serve_connection();
		serve();
		expect_event(FI_SHUTDOWN, NULL);
	} else {
		find(argv[1], argv[4], argv[5], 0, argv[3]);
		echo_fill(fi.mem.memory, ECHO_MEMORY, 1);
		dial();
		ask();
		fine(fi_shutdown(fi.ep, 0), "fi_shutdown");
	}
	close_all();
	return 0;
}

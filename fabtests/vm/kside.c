/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/kside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS (KSIDE_PATIENCE_S * 1000)
#define READS      8 /* open at a time, each way */

void kside_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "siw: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc)
		kside_die("%s: %s", what, strerror(rc < 0 ? errno : rc));
}

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		kside_die("%s is no numeric address", text);
	return sin;
}

/* -- life ----------------------------------------------------------------------------------- */

void kside_open(struct kside *k)
{
	memset(k, 0, sizeof(*k));
	k->channel = rdma_create_event_channel();
	if (!k->channel)
		kside_die("no event channel: %s", strerror(errno));
}

void kside_close(struct kside *k)
{
	if (k->id) {
		if (k->id->qp)
			rdma_destroy_qp(k->id);
		must(rdma_destroy_id(k->id), "rdma_destroy_id");
	}
	if (k->listener)
		must(rdma_destroy_id(k->listener), "rdma_destroy_id");
	if (k->cq)
		must(ibv_destroy_cq(k->cq), "ibv_destroy_cq");
	if (k->completions)
		must(ibv_destroy_comp_channel(k->completions), "ibv_destroy_comp_channel");
	if (k->pd)
		must(ibv_dealloc_pd(k->pd), "ibv_dealloc_pd");
	rdma_destroy_event_channel(k->channel);
}

static void make_qp(struct kside *k)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = KSIDE_QUEUE,
			 .max_recv_wr = KSIDE_QUEUE,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	k->pd = ibv_alloc_pd(k->id->verbs);
	k->completions = ibv_create_comp_channel(k->id->verbs);
	if (!k->pd || !k->completions)
		kside_die("no protection domain: %s", strerror(errno));
	k->cq = ibv_create_cq(k->id->verbs, 2 * KSIDE_QUEUE, NULL, k->completions, 0);
	if (!k->cq)
		kside_die("no completion queue: %s", strerror(errno));
	attr.send_cq = attr.recv_cq = k->cq;
	must(rdma_create_qp(k->id, k->pd, &attr), "rdma_create_qp");
}

/* -- events --------------------------------------------------------------------------------- */

static void await(int fd, const char *what)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, KSIDE_PATIENCE_S * 1000) != 1)
		kside_die("%s did not come", what);
}

void kside_event(struct kside *k, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	await(k->channel->fd, rdma_event_str(type));
	must(rdma_get_cm_event(k->channel, &event), "rdma_get_cm_event");
	k->event = event->event;
	k->status = event->status;
	k->private_bytes = event->param.conn.private_data_len;
	if (k->private_bytes)
		memcpy(k->private_data, event->param.conn.private_data, k->private_bytes);
	if (k->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		k->id = event->id;
	must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	if (k->event != type)
		kside_die("%s (%d) where %s is due", rdma_event_str(k->event), k->status,
			  rdma_event_str(type));
}

void kside_check_private(const struct kside *k, const void *data, size_t bytes)
{
	if (k->private_bytes != bytes)
		kside_die("%zu bytes of private data where %zu are due", k->private_bytes, bytes);
	if (bytes && memcmp(k->private_data, data, bytes) != 0)
		kside_die("the %zu bytes of private data are not the peer's", bytes);
}

/* -- connections ---------------------------------------------------------------------------- */

void kside_listen(struct kside *k, const char *address, uint16_t port)
{
	struct sockaddr_in sin = address_of(address, port);

	must(rdma_create_id(k->channel, &k->listener, k, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(k->listener, (struct sockaddr *)&sin), "rdma_bind_addr");
	must(rdma_listen(k->listener, 16), "rdma_listen");
}

void kside_resolve(struct kside *k, const char *from, const char *to, uint16_t port)
{
	struct sockaddr_in src = address_of(from, 0), dst = address_of(to, port);

	must(rdma_create_id(k->channel, &k->id, k, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_resolve_addr(k->id, (struct sockaddr *)&src, (struct sockaddr *)&dst, RESOLVE_MS),
	     "rdma_resolve_addr");
	kside_event(k, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(k->id, RESOLVE_MS), "rdma_resolve_route");
	kside_event(k, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(k);
}

static struct rdma_conn_param parameters(const void *data, size_t bytes)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)bytes,
		.responder_resources = READS,
		.initiator_depth = READS,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	return param;
}

int kside_dial(struct kside *k, const void *data, size_t bytes)
{
	struct rdma_conn_param param = parameters(data, bytes);

	return rdma_connect(k->id, &param) ? errno : 0;
}

void kside_connect(struct kside *k, const char *from, const char *to, uint16_t port,
		   const void *data, size_t bytes)
{
	kside_resolve(k, from, to, port);
	must(kside_dial(k, data, bytes), "rdma_connect");
	kside_event(k, RDMA_CM_EVENT_ESTABLISHED);
}

void kside_request(struct kside *k)
{
	kside_event(k, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(k);
}

void kside_accept(struct kside *k, const void *data, size_t bytes)
{
	struct rdma_conn_param param = parameters(data, bytes);

	must(rdma_accept(k->id, &param), "rdma_accept");
	kside_event(k, RDMA_CM_EVENT_ESTABLISHED);
}

void kside_reject(struct kside *k, const void *data, size_t bytes)
{
	must(rdma_reject(k->id, data, (uint8_t)bytes), "rdma_reject");
}

void kside_disconnect(struct kside *k)
{
	must(rdma_disconnect(k->id), "rdma_disconnect");
}

/* -- work ----------------------------------------------------------------------------------- */

struct ibv_mr *kside_mr(struct kside *k, void *addr, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(k->pd, addr, bytes, access);

	if (!mr)
		kside_die("cannot register %zu bytes: %s", bytes, strerror(errno));
	return mr;
}

void kside_recv(struct kside *k, struct ibv_mr *mr, size_t offset, size_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + offset, (uint32_t)bytes, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = sge.addr, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(ibv_post_recv(k->id->qp, &wr, &bad), "ibv_post_recv");
}

void kside_post(struct kside *k, enum ibv_wr_opcode opcode, struct ibv_mr *mr, size_t offset,
		size_t bytes, uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + offset, (uint32_t)bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	must(ibv_post_send(k->id->qp, &wr, &bad), "ibv_post_send");
}

/* The next that the CQ has. */
static struct ibv_wc poll_wc(struct kside *k)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	int n = ibv_poll_cq(k->cq, 1, &wc);

	while (n == 0) {
		must(ibv_req_notify_cq(k->cq, 0), "ibv_req_notify_cq");
		n = ibv_poll_cq(k->cq, 1, &wc);
		if (n)
			break;
		await(k->completions->fd, "a completion");
		must(ibv_get_cq_event(k->completions, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		n = ibv_poll_cq(k->cq, 1, &wc);
	}
	if (n < 0)
		kside_die("ibv_poll_cq failed");
	return wc;
}

/* The i-th of those that came early. */
static struct ibv_wc take_early(struct kside *k, uint32_t i)
{
	struct ibv_wc wc = k->early[i];

	k->n_early--;
	memmove(k->early + i, k->early + i + 1, (k->n_early - i) * sizeof(wc));
	return wc;
}

struct ibv_wc kside_wc(struct kside *k)
{
	return k->n_early ? take_early(k, 0) : poll_wc(k);
}

/* ibv_poll_cq(3): of one that failed the opcode is not valid. */
static bool may_be(const struct ibv_wc *wc, enum ibv_wc_opcode opcode)
{
	return wc->status != IBV_WC_SUCCESS ||
	       !(wc->opcode & IBV_WC_RECV) == !(opcode & IBV_WC_RECV);
}

static struct ibv_wc next_of_queue(struct kside *k, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < k->n_early; i++)
		if (may_be(&k->early[i], opcode))
			return take_early(k, i);
	wc = poll_wc(k);
	while (!may_be(&wc, opcode)) {
		if (k->n_early == sizeof(k->early) / sizeof(k->early[0]))
			kside_die("opcode %d does not come", opcode);
		k->early[k->n_early++] = wc;
		wc = poll_wc(k);
	}
	return wc;
}

struct ibv_wc kside_expect(struct kside *k, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = next_of_queue(k, opcode);

	if (wc.status != IBV_WC_SUCCESS)
		kside_die("%s where opcode %d is due", ibv_wc_status_str(wc.status), opcode);
	if (wc.opcode != opcode)
		kside_die("opcode %d where %d is due", wc.opcode, opcode);
	return wc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "dev/soft/crc.h"
#include "unit/loopback.h"

/* Of a test that waits in vain, and would be stopped by whoever runs it; a busy host is no reason.
 */
#define PATIENCE_NS (600 * RVCM_CLOCK_NS_PER_S)

/* -- the device ----------------------------------------------------------------------------- */

void soft_peer_open(struct soft_peer *p, const struct rvcm_soft_tunables *tun)
{
	memset(p, 0, sizeof(*p));
	p->fd = -1;
	p->msn = 1;
	p->read_msn = 1;
	test_warned_begin(&p->warned);
	p->dev = test_loopback_open(tun);
	p->ops = p->dev->ops;
	assert_int_equal(p->ops->cq_open(p->dev, 256, &p->cq), 0);
}

void soft_peer_close(struct soft_peer *p)
{
	if (p->qp && p->attached)
		p->ops->detach(p->qp);
	if (p->qp)
		p->ops->qp_close(p->qp);
	if (p->listener)
		p->ops->listener_close(p->listener);
	p->ops->cq_close(p->cq);
	if (p->pool)
		p->ops->pool_close(p->pool);
	if (p->srq)
		p->ops->srq_close(p->srq);
	p->ops->close(p->dev);
	if (p->fd >= 0)
		close(p->fd);
	rvcm_log_set_sink(NULL);
}

void soft_peer_pump(struct soft_peer *p)
{
	struct rvcm_dev_event ev;

	while (!p->have_event && p->ops->cm_poll(p->dev, &ev) == 1) {
		if (ev.type == RVCM_DEV_EVENT_ADDR_RESOLVED ||
		    ev.type == RVCM_DEV_EVENT_ROUTE_RESOLVED)
			continue;
		p->event = ev;
		if (ev.private_bytes)
			memcpy(p->private_data, ev.private_data, ev.private_bytes);
		p->event.private_data = p->private_data;
		p->have_event = true;
	}
	while (p->n_wcs < SOFT_PEER_WCS && p->ops->cq_poll(p->cq, &p->wcs[p->n_wcs], 1) == 1)
		p->n_wcs++;
}

/* One turn of a wait that began at *since (0 = now). */
static void turn(struct soft_peer *p, uint64_t *since)
{
	struct pollfd fd = { .fd = p->ops->cm_fd(p->dev), .events = POLLIN };

	if (!*since)
		*since = rvcm_clock_ns();
	assert_true(rvcm_clock_ns() - *since < PATIENCE_NS);
	poll(&fd, 1, 0);
	soft_peer_pump(p);
}

const struct rvcm_dev_event *soft_peer_event(struct soft_peer *p, enum rvcm_dev_event_type type)
{
	uint64_t since = 0;

	while (!p->have_event)
		turn(p, &since);
	p->have_event = false;
	assert_int_equal(p->event.type, type);
	return &p->event;
}

struct rvcm_dev_wc soft_peer_wc(struct soft_peer *p)
{
	uint64_t since = 0;

	while (p->n_taken == p->n_wcs) {
		assert_true(p->n_wcs < SOFT_PEER_WCS);
		turn(p, &since);
	}
	return p->wcs[p->n_taken++];
}

void soft_peer_got(struct soft_peer *p)
{
	struct rvcm_dev_wc wc = soft_peer_wc(p);

	assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
	assert_int_equal(wc.status, RVCM_STATUS_OK);
	p->ops->rx_release(p->pool, wc.rx);
}

void soft_peer_drop(struct soft_peer *p)
{
	for (; p->n_taken < p->n_wcs; p->n_taken++)
		if (p->wcs[p->n_taken].rx)
			p->ops->rx_release(p->pool, p->wcs[p->n_taken].rx);
}

/* -- connections ---------------------------------------------------------------------------- */

void soft_peer_listen(struct soft_peer *p)
{
	p->addr = p->dev->attr.addr;
	assert_int_equal(p->ops->listen(p->dev, &p->addr, 16, p, &p->listener), 0);
}

static void loopback(struct sockaddr_in *sin, uint16_t port)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

void soft_peer_dial(struct soft_peer *p)
{
	struct sockaddr_in sin;
	int one = 1;

	if (p->fd >= 0)
		close(p->fd);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->fd >= 0);
	loopback(&sin, p->addr.port);
	assert_int_equal(connect(p->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(fcntl(p->fd, F_SETFL, O_NONBLOCK), 0);
}

int soft_peer_server(struct soft_peer *p, struct rvcm_addr *addr)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	loopback(&sin, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	*addr = p->dev->attr.addr;
	addr->port = ntohs(sin.sin_port);
	return fd;
}

void soft_peer_qp(struct soft_peer *p, const struct soft_peer_conf *conf)
{
	const struct rvcm_dev_pool_attr pool = { .message_bytes_max = 200000, .count = 64 };
	struct rvcm_dev_qp_attr attr = {
		.cq = p->cq,
		.sq_depth = 16,
		.rq_depth = conf->rq_depth ? conf->rq_depth : 16,
		.sge_max = 4,
		.rnr_timeout_ns = conf->rnr_timeout_ns ? conf->rnr_timeout_ns : PATIENCE_NS,
		.ctx = p,
	};

	if (conf->pool)
		assert_int_equal(p->ops->pool_open(p->dev, &pool, &p->pool), 0);
	if (conf->srq)
		assert_int_equal(p->ops->srq_open(p->dev, 16, 4, &p->srq), 0);
	attr.pool = p->pool;
	attr.srq = p->srq;
	assert_int_equal(p->ops->qp_open(p->dev, &attr, &p->qp), 0);
}

void soft_peer_up(struct soft_peer *p, const struct soft_peer_conf *conf)
{
	struct rvcm_soft_mpa_frame request = {
		.kind = RVCM_SOFT_MPA_REQUEST,
		.revision = conf->foreign_v1 ? 1 : 2,
		.enhanced = !conf->foreign_v1,
		.crc = p->crc,
		.ird = 4,
		.ord = 16,
	};
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	uint8_t reply[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	size_t bytes = conf->foreign_v1 ? 20 : 24;
	int n = rvcm_soft_mpa_encode(&request, buf);

	assert_true(n > 0);
	buf[16] |= conf->own_kind; /* shake.c */
	soft_peer_qp(p, conf);
	soft_peer_listen(p);
	soft_peer_dial(p);
	soft_peer_write(p, buf, (size_t)n);
	soft_peer_event(p, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(p->ops->accept(p->event.req, p->qp, NULL, 0), 0);
	soft_peer_event(p, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(p->ops->attach(p->qp), 0);
	p->attached = true;
	soft_peer_read(p, reply, bytes);
	assert_true(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, reply, bytes, &request) > 0);
	assert_false(request.reject);
	p->crc = request.crc;
	if (!conf->mute)
		soft_peer_go(p);
}

/* -- the peer's bytes ----------------------------------------------------------------------- */

void soft_peer_write(struct soft_peer *p, const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t since = 0;

	while (bytes) {
		ssize_t n = send(p->fd, at, bytes, MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else {
			assert_int_equal(errno, EAGAIN);
			turn(p, &since);
		}
	}
}

void soft_peer_trickle(struct soft_peer *p, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		soft_peer_write(p, (const uint8_t *)data + i, 1);
		soft_peer_pump(p);
	}
}

void soft_peer_read(struct soft_peer *p, void *data, size_t bytes)
{
	uint8_t *at = data;
	uint64_t since = 0;

	while (bytes) {
		ssize_t n = recv(p->fd, at, bytes, 0);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else {
			assert_true(n < 0 && errno == EAGAIN);
			turn(p, &since);
		}
	}
}

void soft_peer_expect_end(struct soft_peer *p)
{
	uint64_t since = 0;
	uint8_t c;
	ssize_t n;

	while ((n = recv(p->fd, &c, 1, 0)) < 0 && errno == EAGAIN)
		turn(p, &since);
	assert_true(n <= 0);
}

size_t soft_peer_fpdu(const struct soft_peer *p, const struct rvcm_soft_wire_hdr *hdr,
		      const void *payload, size_t bytes, uint8_t *buf)
{
	size_t ulpdu = rvcm_soft_wire_encode(hdr, buf + 2);
	uint32_t crc = 0;

	if (bytes)
		memcpy(buf + 2 + ulpdu, payload, bytes);
	ulpdu += bytes;
	rvcm_soft_mpa_header_encode((uint16_t)ulpdu, buf);
	if (p->crc)
		crc = rvcm_soft_crc_update(0, buf, 2 + ulpdu);
	return 2 + ulpdu + rvcm_soft_mpa_trailer_encode(ulpdu, p->crc, crc, buf + 2 + ulpdu);
}

void soft_peer_frame(struct soft_peer *p, const struct rvcm_soft_wire_hdr *hdr, const void *payload,
		     size_t bytes)
{
	uint8_t buf[RVCM_SOFT_MPA_FPDU_BYTES_MAX];

	soft_peer_write(p, buf, soft_peer_fpdu(p, hdr, payload, bytes, buf));
}

void soft_peer_go(struct soft_peer *p)
{
	uint8_t buf[RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_MPA_TRAILER_BYTES_MAX];
	uint32_t crc;

	rvcm_soft_mpa_header_encode(0, buf);
	crc = rvcm_soft_crc_update(0, buf, RVCM_SOFT_MPA_HEADER_BYTES);
	soft_peer_write(p, buf,
			RVCM_SOFT_MPA_HEADER_BYTES +
				rvcm_soft_mpa_trailer_encode(0, p->crc, crc, buf + 2));
}

void soft_peer_send(struct soft_peer *p, const void *payload, size_t bytes)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
						.last = true,
						.msn = p->msn++ };

	soft_peer_frame(p, &hdr, payload, bytes);
}

void soft_peer_take(struct soft_peer *p, struct soft_peer_frame *frame)
{
	static uint8_t buf[RVCM_SOFT_MPA_FPDU_BYTES_MAX];
	uint16_t term;
	size_t ulpdu, rest;
	int header;

	soft_peer_read(p, buf, 2);
	ulpdu = rvcm_soft_mpa_header_decode(buf);
	rest = rvcm_soft_mpa_fpdu_len(ulpdu) - 2;
	soft_peer_read(p, buf + 2, rest);
	header = rvcm_soft_wire_decode(buf + 2, ulpdu, &frame->hdr, &term);
	assert_true(header > 0);
	frame->bytes = ulpdu - (size_t)header;
	memcpy(frame->payload, buf + 2 + header, frame->bytes);
	assert_true(rvcm_soft_mpa_trailer_check(
		ulpdu, p->crc, p->crc ? rvcm_soft_crc_update(0, buf, 2 + ulpdu) : 0,
		buf + 2 + ulpdu));
}

void soft_peer_expect_terminate(struct soft_peer *p, uint16_t term,
				struct rvcm_soft_wire_terminate *t)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_terminate own;
	uint16_t wrong;

	if (!t)
		t = &own;
	do
		soft_peer_take(p, &frame);
	while (frame.hdr.opcode == RVCM_SOFT_WIRE_READ_RESP);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_TERMINATE);
	assert_true(rvcm_soft_wire_terminate_decode(frame.payload, frame.bytes, t, &wrong) > 0);
	assert_int_equal(t->term, term);
	soft_peer_expect_end(p);
}

/* -- memory, and what is asked for ------------------------------------------------------------ */

void soft_peer_fill(uint8_t *to, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

struct rvcm_dev_mr *soft_peer_reg(struct soft_peer *p, void *addr, size_t n, uint32_t access)
{
	const struct rvcm_dev_mr_attr attr = { .addr = addr, .length = n, .access = access };
	struct rvcm_dev_mr *mr;

	assert_int_equal(p->ops->mr_reg(p->dev, &attr, &mr), 0);
	return mr;
}

int soft_peer_post(struct soft_peer *p, enum rvcm_dev_op op, uint64_t wr_id, void *addr, size_t n,
		   struct rvcm_dev_mr *mr, uint64_t raddr)
{
	const struct rvcm_dev_sge sge = { .addr = addr, .length = n, .mr = mr };
	const struct rvcm_dev_wr wr = {
		.wr_id = wr_id,
		.op = op,
		.flags = RVCM_DEV_WR_SIGNALED,
		.n_sge = 1,
		.sge = &sge,
		.raddr = raddr,
		.rkey = 0x1234,
	};

	return p->ops->post(p->qp, &wr);
}

void soft_peer_ask(struct soft_peer *p, uint32_t n, const uint8_t *data, struct rvcm_dev_mr *mr)
{
	const struct rvcm_soft_wire_read_req req = {
		.sink_stag = 0xabcd,
		.sink_to = 0x7000,
		.bytes = n,
		.source_stag = mr->rkey,
		.source_to = (uintptr_t)data,
	};
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
						.last = true,
						.msn = p->read_msn++ };
	uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];

	rvcm_soft_wire_read_req_encode(&req, body);
	soft_peer_frame(p, &hdr, body, sizeof(body));
}

void soft_peer_response(struct soft_peer *p, uint32_t n, const uint8_t *data)
{
	static struct soft_peer_frame frame;
	size_t got = 0;

	do {
		soft_peer_take(p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_RESP);
		assert_int_equal(frame.hdr.stag, 0xabcd);
		assert_int_equal(frame.hdr.to, 0x7000 + got);
		assert_memory_equal(frame.payload, data + got, frame.bytes);
		got += frame.bytes;
	} while (!frame.hdr.last);
	assert_int_equal(got, n);
}

void soft_peer_serve(struct soft_peer *p, uint32_t n, const uint8_t *data, struct rvcm_dev_mr *mr)
{
	soft_peer_ask(p, n, data, mr);
	soft_peer_response(p, n, data);
}

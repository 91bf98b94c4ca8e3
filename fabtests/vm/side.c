/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/side.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "dev/verbs/verbs.h"

#define TURN_MS 100

void side_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "rvcm: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* -- log ------------------------------------------------------------------------------------ */

static bool log_enabled(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	(void)ctx;
	(void)subsys;
	return level == RVCM_LOG_WARN;
}

static void log_write(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		      const char *func, int line, const char *text)
{
	(void)ctx;
	(void)level;
	(void)subsys;
	fprintf(stderr, "rvcm: %s:%d: %s\n", func, line, text);
}

static const struct rvcm_log_sink log_sink = { .enabled = log_enabled, .write = log_write };

/* -- life ----------------------------------------------------------------------------------- */

static struct rvcm_addr address_of(const char *text, uint16_t port)
{
	struct rvcm_addr addr;

	if (rvcm_addr_parse(text, &addr))
		side_die("%s is no numeric address", text);
	addr.port = port;
	return addr;
}

void side_tunables(struct rvcm_soft_tunables *tun, bool crc)
{
	rvcm_soft_tunables_init(tun);
	tun->crc = crc;
	tun->connect_timeout_ms = SIDE_PATIENCE_S * 1000;
	tun->handshake_timeout_ms = SIDE_PATIENCE_S * 1000;
	tun->close_timeout_ms = SIDE_PATIENCE_S * 1000;
}

/* Which device a name in front of an address means; without one, soft. */
static const struct rvcm_dev_class *class_of(const char **where)
{
	static const struct rvcm_dev_class *const classes[] = {
		&rvcm_soft_class,
		&rvcm_verbs_class,
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		size_t length = strlen(classes[i]->name);

		if (strncmp(*where, classes[i]->name, length) == 0 && (*where)[length] == ':') {
			*where += length + 1;
			return classes[i];
		}
	}
	return &rvcm_soft_class;
}

static int open_device(const struct rvcm_dev_class *class, const struct rvcm_dev_attr *attr,
		       const struct rvcm_soft_tunables *tun, struct rvcm_dev **dev)
{
	return class == &rvcm_soft_class ? rvcm_soft_open(attr, tun, dev) : class->open(attr, dev);
}

void side_open(struct side *s, const char *where, const struct rvcm_soft_tunables *tun)
{
	struct rvcm_dev_attr attrs[64];
	const struct rvcm_dev_class *class = class_of(&where);
	struct rvcm_addr want = address_of(where, 0);
	int n, i = 0, rc;

	memset(s, 0, sizeof(*s));
	s->extra_fd = -1;
	rvcm_log_set_sink(&log_sink);
	n = class->enumerate(attrs, 64);
	while (i < n && i < 64 && rvcm_addr_cmp(&attrs[i].addr, &want) != 0)
		i++;
	if (i >= n || i >= 64)
		side_die("no %s device has the address %s", class->name, where);
	rc = open_device(class, &attrs[i], tun, &s->dev);
	if (rc)
		side_die("cannot open %s: %s", attrs[i].name, strerror(-rc));
	s->ops = s->dev->ops;
	rc = s->ops->cq_open(s->dev, 4 * SIDE_QUEUE, &s->cq);
	if (rc)
		side_die("no completion queue: %s", strerror(-rc));
}

void side_close(struct side *s)
{
	side_hang_up(s);
	if (s->listener)
		s->ops->listener_close(s->listener);
	s->ops->cq_close(s->cq);
	s->ops->close(s->dev);
	memset(s, 0, sizeof(*s));
}

uint16_t side_listen(struct side *s, uint16_t port)
{
	struct rvcm_addr addr = s->dev->attr.addr;
	int rc;

	addr.port = port;
	rc = s->ops->listen(s->dev, &addr, 16, s, &s->listener);
	if (rc)
		side_die("cannot listen on port %u: %s", port, strerror(-rc));
	return addr.port;
}

void side_qp(struct side *s)
{
	struct rvcm_dev_qp_attr attr = {
		.cq = s->cq,
		.sq_depth = SIDE_QUEUE,
		.rq_depth = SIDE_QUEUE,
		.sge_max = 1,
		.rnr_timeout_ns = 10ull * 1000 * 1000 * 1000,
		.ctx = s,
	};
	int rc = s->ops->qp_open(s->dev, &attr, &s->qp);

	if (rc)
		side_die("no queue pair: %s", strerror(-rc));
}

void side_hang_up(struct side *s)
{
	struct rvcm_dev_wc wc;

	if (!s->qp)
		return;
	if (s->attached)
		s->ops->detach(s->qp);
	s->attached = false;
	while (s->ops->cq_poll(s->cq, &wc, 1) > 0)
		;
	s->ops->qp_close(s->qp);
	s->qp = NULL;
	s->wc_in = s->wc_out = 0;
	s->have_event = false;
}

/* -- waiting -------------------------------------------------------------------------------- */

/* What only says how far an attempt to connect has come. */
static bool passing(enum rvcm_dev_event_type type)
{
	return type == RVCM_DEV_EVENT_ADDR_RESOLVED || type == RVCM_DEV_EVENT_ROUTE_RESOLVED;
}

/* Returns whether there was one. */
static bool take_event(struct side *s)
{
	if (s->have_event || s->ops->cm_poll(s->dev, &s->event) != 1)
		return false;
	if (passing(s->event.type))
		return true;
	s->have_event = true;
	if (s->event.private_bytes > sizeof(s->private_data))
		side_die("%zu bytes of private data", s->event.private_bytes);
	if (s->event.private_bytes)
		memcpy(s->private_data, s->event.private_data, s->event.private_bytes);
	s->event.private_data = s->private_data;
	return true;
}

/* Returns whether there was anything to do. */
static bool pump(struct side *s)
{
	struct rvcm_dev_wc *wc = &s->wcs[s->wc_in % SIDE_WCS];
	bool busy = take_event(s);

	if (s->wc_in - s->wc_out == SIDE_WCS || s->ops->cq_poll(s->cq, wc, 1) != 1)
		return busy;
	s->wc_in++;
	return true;
}

static nfds_t watch(struct side *s, struct pollfd *fds)
{
	fds[0] = (struct pollfd) { .fd = s->ops->cm_fd(s->dev), .events = POLLIN };
	if (s->ops->cq_arm(s->cq, false))
		side_die("cannot arm a completion queue");
	fds[1] = (struct pollfd) { .fd = s->ops->cq_fd(s->cq), .events = POLLIN };
	return 2;
}

void side_turn(struct side *s, int timeout_ms)
{
	struct pollfd fds[5];
	nfds_t n;
	bool busy = pump(s);

	if (s->other)
		busy |= pump(s->other);
	if (busy || !timeout_ms)
		return;
	n = watch(s, fds);
	if (s->other)
		n += watch(s->other, fds + n);
	fds[n++] = (struct pollfd) { .fd = s->extra_fd, .events = POLLIN };
	busy = pump(s);
	if (s->other)
		busy |= pump(s->other);
	if (!busy)
		(void)poll(fds, n, timeout_ms);
}

const struct rvcm_dev_event *side_event(struct side *s, enum rvcm_dev_event_type type)
{
	time_t end = now_s() + SIDE_PATIENCE_S;

	while (!s->have_event) {
		if (now_s() > end)
			side_die("event %d did not come", type);
		side_turn(s, TURN_MS);
	}
	s->have_event = false;
	if (s->event.type != type)
		side_die("event %d (%s, errno %d) where %d is due", s->event.type,
			 rvcm_status_name(s->event.status), s->event.err, type);
	return &s->event;
}

void side_check_private(const struct side *s, const void *data, size_t bytes)
{
	if (s->event.private_bytes != bytes)
		side_die("%zu bytes of private data where %zu are due", s->event.private_bytes,
			 bytes);
	if (bytes && memcmp(s->private_data, data, bytes) != 0)
		side_die("the %zu bytes of private data are not the peer's", bytes);
}

bool side_try_wc(struct side *s, struct rvcm_dev_wc *wc)
{
	if (s->wc_in == s->wc_out)
		return false;
	*wc = s->wcs[s->wc_out++ % SIDE_WCS];
	return true;
}

struct rvcm_dev_wc side_wc(struct side *s)
{
	time_t end = now_s() + SIDE_PATIENCE_S;
	struct rvcm_dev_wc wc;

	while (!side_try_wc(s, &wc)) {
		if (now_s() > end)
			side_die("a completion did not come");
		side_turn(s, TURN_MS);
	}
	return wc;
}

struct rvcm_dev_wc side_expect(struct side *s, enum rvcm_dev_op op)
{
	struct rvcm_dev_wc wc = side_wc(s);

	if (wc.status != RVCM_STATUS_OK)
		side_die("operation %d ended with %s where %d is due", wc.op,
			 rvcm_status_name(wc.status), op);
	if (wc.op != op)
		side_die("operation %d completed where %d is due", wc.op, op);
	return wc;
}

/* -- connections ---------------------------------------------------------------------------- */

void side_dial(struct side *s, const char *address, uint16_t port, const void *data, size_t bytes)
{
	side_qp(s);
	side_dial_qp(s, address, port, data, bytes);
}

void side_dial_qp(struct side *s, const char *address, uint16_t port, const void *data,
		  size_t bytes)
{
	struct rvcm_addr peer = address_of(address, port);
	int rc = s->ops->connect(s->qp, &peer, data, bytes);
	if (rc)
		side_die("cannot connect: %s", strerror(-rc));
}

void side_attach(struct side *s)
{
	int rc = s->ops->attach(s->qp);

	if (rc)
		side_die("cannot attach: %s", strerror(-rc));
	s->attached = true;
}

void side_connect(struct side *s, const char *address, uint16_t port, const void *data,
		  size_t bytes)
{
	side_dial(s, address, port, data, bytes);
	side_event(s, RVCM_DEV_EVENT_ESTABLISHED);
	side_attach(s);
}

static bool nobody_listens(const struct rvcm_dev_event *event)
{
	return event->type == RVCM_DEV_EVENT_REJECTED &&
	       event->reject == RVCM_DEV_REJECT_NOT_LISTENING;
}

void side_connect_patiently(struct side *s, const char *address, uint16_t port)
{
	time_t end = now_s() + SIDE_PATIENCE_S;

	for (;;) {
		side_dial(s, address, port, NULL, 0);
		while (!s->have_event && now_s() < end)
			side_turn(s, TURN_MS);
		if (!s->have_event || !nobody_listens(&s->event) || now_s() > end)
			break;
		side_hang_up(s);
		(void)poll(NULL, 0, TURN_MS);
	}
	side_event(s, RVCM_DEV_EVENT_ESTABLISHED);
	side_attach(s);
}

void side_say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

void side_accept(struct side *s, const void *data, size_t bytes)
{
	int rc = s->ops->accept(s->event.req, s->qp, data, bytes);

	if (rc)
		side_die("cannot accept: %s", strerror(-rc));
	side_event(s, RVCM_DEV_EVENT_ESTABLISHED);
	side_attach(s);
}

void side_reject(struct side *s, const void *data, size_t bytes)
{
	int rc = s->ops->reject(s->event.req, data, bytes);

	if (rc)
		side_die("cannot reject: %s", strerror(-rc));
}

void side_disconnect(struct side *s)
{
	int rc = s->ops->disconnect(s->qp);

	if (rc)
		side_die("cannot disconnect: %s", strerror(-rc));
}

/* -- work ----------------------------------------------------------------------------------- */

struct rvcm_dev_mr *side_mr(struct side *s, void *addr, size_t bytes, uint32_t access)
{
	struct rvcm_dev_mr_attr attr = {
		.addr = addr,
		.length = bytes,
		.access = access,
		.kind = RVCM_DEV_MEM_HOST,
		.dmabuf_fd = -1,
	};
	struct rvcm_dev_mr *mr;
	int rc = s->ops->mr_reg(s->dev, &attr, &mr);

	if (rc)
		side_die("cannot register %zu bytes: %s", bytes, strerror(-rc));
	return mr;
}

void side_recv(struct side *s, struct rvcm_dev_mr *mr, size_t offset, size_t bytes)
{
	struct rvcm_dev_sge sge = { (uint8_t *)mr->addr + offset, bytes, mr };
	struct rvcm_dev_recv recv = { .wr_id = (uintptr_t)sge.addr, .n_sge = 1, .sge = &sge };
	int rc = s->ops->post_recv(s->qp, &recv);

	if (rc)
		side_die("cannot post a receive: %s", strerror(-rc));
}

void side_post(struct side *s, enum rvcm_dev_op op, struct rvcm_dev_mr *mr, size_t offset,
	       size_t bytes, uint64_t raddr, uint32_t rkey)
{
	struct rvcm_dev_sge sge = { (uint8_t *)mr->addr + offset, bytes, mr };
	struct rvcm_dev_wr wr = {
		.op = op,
		.flags = RVCM_DEV_WR_SIGNALED,
		.n_sge = 1,
		.sge = &sge,
		.raddr = raddr,
		.rkey = rkey,
	};

	side_post_wr(s, &wr);
}

void side_post_wr(struct side *s, const struct rvcm_dev_wr *wr)
{
	time_t end = now_s() + SIDE_PATIENCE_S;
	int rc = s->ops->post(s->qp, wr);

	while (rc == -EAGAIN && now_s() < end) {
		side_turn(s, TURN_MS);
		rc = s->ops->post(s->qp, wr);
	}
	if (rc)
		side_die("cannot post operation %d: %s", wr->op, strerror(-rc));
}

/* -- data ----------------------------------------------------------------------------------- */

#define BLOCK 4096

/* Eight bytes; the 64-bit finaliser of MurmurHash3 spreads what differs. */
static uint64_t word_at(size_t i, uint32_t seed)
{
	uint64_t x = ((uint64_t)seed << 40) + i + 1;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	return x ^ x >> 33;
}

/* bytes: at most BLOCK; the block number is at's. */
static void fill_block(uint8_t *block, size_t at, size_t bytes, uint32_t seed)
{
	size_t i;

	for (i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word = word_at((at + i) / 8, seed);

		memcpy(block + i, &word, 8);
	}
	if (i < bytes) {
		uint64_t word = word_at((at + i) / 8, seed);

		memcpy(block + i, &word, bytes - i);
	}
}

void side_fill(void *buf, size_t bytes, uint32_t seed)
{
	for (size_t at = 0; at < bytes; at += BLOCK)
		fill_block((uint8_t *)buf + at, at, bytes - at < BLOCK ? bytes - at : BLOCK, seed);
}

void side_check(const void *buf, size_t bytes, uint32_t seed, const char *what)
{
	const uint8_t *p = buf;
	uint8_t want[BLOCK];

	for (size_t at = 0; at < bytes; at += BLOCK) {
		size_t n = bytes - at < BLOCK ? bytes - at : BLOCK, i = 0;

		fill_block(want, at, n, seed);
		if (memcmp(p + at, want, n) == 0)
			continue;
		while (p[at + i] == want[i])
			i++;
		side_die("%s: byte %zu of %zu is %02x, not %02x", what, at + i, bytes, p[at + i],
			 want[i]);
	}
}

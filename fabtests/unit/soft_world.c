/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/soft_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dev/soft/crc.h"
#include "dev/soft/mpa.h"
#include "unit/loopback.h"

/* So long nothing takes; whoever waits longer waits for ever. */
#define WAIT_NS (60 * RVCM_CLOCK_NS_PER_S)

void soft_world_open(struct soft_world *w, const struct rvcm_soft_tunables *tun, uint32_t count)
{
	const struct rvcm_dev_pool_attr pool = { .message_bytes_max = SOFT_WORLD_MESSAGE,
						 .count = count };

	memset(w, 0, sizeof(*w));
	w->dev = test_loopback_open(tun);
	w->ops = w->dev->ops;
	w->addr = w->dev->attr.addr;
	assert_int_equal(w->ops->cq_open(w->dev, SOFT_WORLD_WCS, &w->cq), 0);
	assert_int_equal(w->ops->pool_open(w->dev, &pool, &w->pool), 0);
	assert_int_equal(w->ops->listen(w->dev, &w->addr, 16, &w->ctx, &w->listener), 0);
}

void soft_world_close(struct soft_world *w)
{
	w->ops->listener_close(w->listener);
	w->ops->cq_close(w->cq);
	w->ops->pool_close(w->pool);
	w->ops->close(w->dev);
}

struct rvcm_dev_qp *soft_world_qp(struct soft_world *w, void *ctx)
{
	const struct rvcm_dev_qp_attr attr = {
		.cq = w->cq, .pool = w->pool, .sq_depth = 256, .sge_max = 1, .ctx = ctx
	};
	struct rvcm_dev_qp *qp;

	assert_int_equal(w->ops->qp_open(w->dev, &attr, &qp), 0);
	return qp;
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* Sleep until the device or fd (-1 = none) has something. */
static void wait_a_turn(struct soft_world *w, int fd, uint64_t since_ns)
{
	struct pollfd fds[3] = { { .fd = w->ops->cm_fd(w->dev), .events = POLLIN },
				 { .fd = w->ops->cq_fd(w->cq), .events = POLLIN },
				 { .fd = fd, .events = POLLIN } };

	if (rvcm_clock_ns() - since_ns > WAIT_NS)
		fail_msg("waited in vain");
	assert_int_equal(w->ops->cq_arm(w->cq, false), 0);
	poll(fds, 3, 20);
}

static void poll_cq(struct soft_world *w)
{
	int n;

	do {
		assert_true(w->n_wcs + 8 <= SOFT_WORLD_WCS);
		n = w->ops->cq_poll(w->cq, w->wcs + w->n_wcs, 8);
		assert_true(n >= 0);
		w->n_wcs += (uint32_t)n;
	} while (n);
}

/* Poll once; true: w->ev is news. */
static bool poll_all(struct soft_world *w)
{
	poll_cq(w);
	while (w->ops->cm_poll(w->dev, &w->ev) == 1) {
		if (w->ev.private_bytes)
			memcpy(w->data, w->ev.private_data, w->ev.private_bytes);
		if (w->ev.type != RVCM_DEV_EVENT_ADDR_RESOLVED &&
		    w->ev.type != RVCM_DEV_EVENT_ROUTE_RESOLVED)
			return true;
	}
	return false;
}

const struct rvcm_dev_event *soft_world_event(struct soft_world *w, enum rvcm_dev_event_type type)
{
	uint64_t since = rvcm_clock_ns();

	while (!poll_all(w))
		wait_a_turn(w, -1, since);
	assert_int_equal(w->ev.type, type);
	return &w->ev;
}

void soft_world_no_event(struct soft_world *w)
{
	for (int i = 0; i < 3; i++)
		assert_false(poll_all(w));
}

/* -- raw clients ------------------------------------------------------------------------------ */

int soft_raw_open(const struct soft_world *w)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(w->addr.port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(&to.sin_addr, w->addr.ip, 4);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

void soft_raw_send(int fd, const void *data, size_t bytes)
{
	assert_int_equal(send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

size_t soft_raw_read_all(struct soft_world *w, int fd, uint8_t *buf, size_t max, bool *reset)
{
	uint64_t since = rvcm_clock_ns();
	size_t have = 0;

	for (;;) {
		ssize_t n = recv(fd, buf + have, max - have, MSG_DONTWAIT);

		if (n > 0) {
			have += (size_t)n;
			assert_true(have < max);
		} else if (n < 0 && errno == EAGAIN) {
			assert_false(poll_all(w));
			wait_a_turn(w, fd, since);
		} else {
			*reset = n < 0;
			return have;
		}
	}
}

int soft_raw_up(struct soft_world *w, bool crc, struct rvcm_dev_qp **qp)
{
	const struct rvcm_soft_mpa_frame request = { .kind = RVCM_SOFT_MPA_REQUEST,
						     .revision = 1,
						     .crc = crc };
	struct rvcm_soft_mpa_frame reply;
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	int fd = soft_raw_open(w);
	ssize_t n = rvcm_soft_mpa_encode(&request, buf);

	assert_true(n > 0);
	soft_raw_send(fd, buf, (size_t)n);
	soft_world_event(w, RVCM_DEV_EVENT_CONNECT_REQUEST);
	*qp = soft_world_qp(w, NULL);
	assert_int_equal(w->ops->accept(w->ev.req, *qp, NULL, 0), 0);
	soft_world_event(w, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(w->ops->attach(*qp), 0);
	n = recv(fd, buf, RVCM_SOFT_MPA_FRAME_BYTES_MIN, MSG_WAITALL);
	assert_int_equal(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, buf, (size_t)n, &reply), n);
	assert_false(reply.reject);
	assert_int_equal(reply.crc, crc);
	/* A frame of no ULPDU: now the device may send, too (RFC 5044 section 7.1.2). */
	rvcm_soft_mpa_header_encode(0, buf);
	n = (ssize_t)rvcm_soft_mpa_trailer_encode(0, crc, rvcm_soft_crc_update(0, buf, 2), buf + 2);
	soft_raw_send(fd, buf, 2 + (size_t)n);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(poll_all(w));
	return fd;
}

size_t soft_raw_fpdu(uint8_t *buf, const struct rvcm_soft_wire_hdr *hdr, const void *payload,
		     size_t bytes, bool crc)
{
	size_t ulpdu = rvcm_soft_wire_encode(hdr, buf + RVCM_SOFT_MPA_HEADER_BYTES);
	size_t end;

	if (bytes)
		memcpy(buf + RVCM_SOFT_MPA_HEADER_BYTES + ulpdu, payload, bytes);
	ulpdu += bytes;
	rvcm_soft_mpa_header_encode((uint16_t)ulpdu, buf);
	end = RVCM_SOFT_MPA_HEADER_BYTES + ulpdu;
	return end + rvcm_soft_mpa_trailer_encode(ulpdu, crc, rvcm_soft_crc_update(0, buf, end),
						  buf + end);
}

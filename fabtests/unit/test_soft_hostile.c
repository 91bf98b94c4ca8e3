/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are connected and mean no good: streams that end or stop anywhere, keys that are
 * guessed. They harm their own connection and no other.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"
#include "unit/soft_world.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"

/* -- streams that end anywhere ---------------------------------------------------------------- */

static void drop_qp(struct soft_world *w, struct rvcm_dev_qp *qp)
{
	w->ops->detach(qp);
	for (uint32_t i = 0; i < w->n_wcs; i++)
		if (w->wcs[i].rx)
			w->ops->rx_release(w->pool, w->wcs[i].rx);
	w->n_wcs = 0;
	w->ops->qp_close(qp);
}

/* A message in two segments: where the first one ends the stream is at a frame's boundary. */
static size_t two_segments(uint8_t *buf, size_t *boundary)
{
	static const uint8_t payload[30];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND, .msn = 1 };

	*boundary = soft_raw_fpdu(buf, &hdr, payload, sizeof(payload), true);
	hdr.last = true;
	hdr.mo = sizeof(payload);
	return *boundary + soft_raw_fpdu(buf + *boundary, &hdr, payload, 3, true);
}

/* In order or with a reset; only before the first byte, or behind the last, is it no loss. */
static void cut(struct soft_world *w, size_t at, bool reset)
{
	const struct linger now = { .l_onoff = 1 };
	struct rvcm_dev_qp *qp;
	const struct rvcm_dev_event *ev;
	uint8_t buf[256];
	size_t boundary, bytes = two_segments(buf, &boundary);
	int fd = soft_raw_up(w, true, &qp);

	if (at)
		soft_raw_send(fd, buf, at);
	if (reset)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
	ev = soft_world_event(w, RVCM_DEV_EVENT_DISCONNECTED);
	if (reset || (at && at < bytes))
		assert_int_equal(ev->status, RVCM_STATUS_CONNECTION_LOST);
	else
		assert_int_equal(ev->status, RVCM_STATUS_OK);
	for (uint32_t i = 0; i < w->n_wcs; i++)
		assert_true(w->wcs[i].status != RVCM_STATUS_OK || at == bytes);
	assert_true(reset || at < bytes || w->n_wcs == 1);
	drop_qp(w, qp);
}

static void a_stream_may_be_cut_anywhere(void **state)
{
	struct soft_world w;
	uint8_t buf[256];
	size_t boundary, bytes = two_segments(buf, &boundary);

	(void)state;
	soft_world_open(&w, NULL, 4);
	for (size_t at = 0; at <= bytes; at++) {
		cut(&w, at, false);
		cut(&w, at, true);
	}
	soft_world_close(&w);
}

/* Some stop after each byte of a frame, and stay; who comes then is served all the same. */
static void half_a_frame_holds_up_nobody(void **state)
{
	struct rvcm_dev_qp *qps[128], *good;
	struct soft_world w;
	uint8_t buf[256];
	size_t boundary, bytes = two_segments(buf, &boundary);
	int fds[128], fd;

	(void)state;
	soft_world_open(&w, NULL, 4);
	for (size_t at = 0; at < bytes; at++) {
		fds[at] = soft_raw_up(&w, true, &qps[at]);
		if (at)
			soft_raw_send(fds[at], buf, at);
	}
	fd = soft_raw_up(&w, true, &good);
	soft_raw_send(fd, buf, bytes);
	shutdown(fd, SHUT_WR);
	assert_int_equal(soft_world_event(&w, RVCM_DEV_EVENT_DISCONNECTED)->status, RVCM_STATUS_OK);
	assert_int_equal(w.n_wcs, 1);
	assert_int_equal(w.wcs[0].status, RVCM_STATUS_OK);
	assert_int_equal(w.wcs[0].length, 33);
	drop_qp(&w, good);
	close(fd);
	for (size_t at = 0; at < bytes; at++) {
		assert_int_equal(w.ops->qp_state(qps[at]), RVCM_DEV_QP_RTS);
		drop_qp(&w, qps[at]);
		close(fds[at]);
	}
	soft_world_close(&w);
}

/* -- keys -------------------------------------------------------------------------------------- */

#define REGIONS     8
#define REGION_SIZE 256
#define RANDOM      200

struct keys {
	struct soft_peer p;
	uint8_t data[REGIONS][REGION_SIZE];
	struct rvcm_dev_mr *mr[REGIONS];
	uint32_t tried, live;
};

/* A connection that has not been spoilt yet; the device and its keys stay. */
static void connect_anew(struct keys *k)
{
	static const struct soft_peer_conf pooled = { .pool = true };
	struct soft_peer *p = &k->p;

	if (p->qp) {
		p->ops->detach(p->qp);
		p->attached = false;
		p->ops->qp_close(p->qp);
		p->qp = NULL;
		p->ops->pool_close(p->pool);
		p->pool = NULL;
		p->ops->listener_close(p->listener);
		p->listener = NULL;
		close(p->fd);
		p->fd = -1;
		p->msn = 1;
		p->read_msn = 1;
	}
	soft_peer_up(p, &pooled);
}

static void write_with(struct keys *k, uint32_t stag, uint32_t region)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_WRITE,
						.last = true,
						.stag = stag,
						.to = (uintptr_t)k->data[region] };
	static const uint8_t evil[16] = "got in, got in!";

	soft_peer_frame(&k->p, &hdr, evil, sizeof(evil));
}

static void read_with(struct keys *k, uint32_t stag, uint32_t region)
{
	const struct rvcm_soft_wire_read_req req = { .sink_stag = 1,
						     .bytes = 16,
						     .source_stag = stag,
						     .source_to = (uintptr_t)k->data[region] };
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
						.last = true,
						.msn = k->p.read_msn++ };
	uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];

	rvcm_soft_wire_read_req_encode(&req, body);
	soft_peer_frame(&k->p, &hdr, body, sizeof(body));
}

/* One guess, where the address is right: it costs the guesser the connection, and gets nothing. */
static void guess(struct keys *k, uint32_t stag)
{
	uint32_t region = k->tried++ % REGIONS;
	bool write = k->tried / REGIONS % 2;

	for (uint32_t i = 0; i < REGIONS; i++)
		if (k->mr[i]->rkey == stag) {
			k->live++;
			return;
		}
	connect_anew(k);
	if (write)
		write_with(k, stag, region);
	else
		read_with(k, stag, region);
	soft_peer_expect_terminate(
		&k->p, write ? RVCM_SOFT_WIRE_TERM_D_STAG : RVCM_SOFT_WIRE_TERM_R_STAG, NULL);
	soft_peer_event(&k->p, RVCM_DEV_EVENT_DISCONNECTED);
}

static void check_untouched(const struct keys *k)
{
	for (uint32_t i = 0; i < REGIONS; i++)
		for (uint32_t n = 0; n < REGION_SIZE; n++)
			assert_int_equal(k->data[i][n], 0x33);
}

/*
 * The neighbours of keys that are live, and any others. How rare a hit is among all 2^32 is in
 * test_soft_key (2^22 guesses); here is what a guess meets on the wire.
 */
static void a_guessed_key_opens_nothing(void **state)
{
	static struct keys k;
	struct rvcm_dev_mr_attr attr = { .length = REGION_SIZE,
					 .access = RVCM_DEV_ACCESS_REMOTE_READ |
						   RVCM_DEV_ACCESS_REMOTE_WRITE };
	struct rvcm_rng rng;

	(void)state;
	soft_peer_open(&k.p, NULL);
	memset(k.data, 0x33, sizeof(k.data));
	for (uint32_t i = 0; i < REGIONS; i++) {
		attr.addr = k.data[i];
		assert_int_equal(k.p.ops->mr_reg(k.p.dev, &attr, &k.mr[i]), 0);
	}
	for (uint32_t i = 0; i < REGIONS; i++) {
		guess(&k, k.mr[i]->rkey + 1);
		guess(&k, k.mr[i]->rkey - 1);
		guess(&k, ~k.mr[i]->rkey);
		guess(&k, __builtin_bswap32(k.mr[i]->rkey));
		guess(&k, i);
		guess(&k, i << 8 | 1);
		for (int bit = 0; bit < 32; bit++)
			guess(&k, k.mr[i]->rkey ^ 1u << bit);
	}
	rvcm_rng_init(&rng, 1);
	for (int i = 0; i < RANDOM; i++)
		guess(&k, (uint32_t)rvcm_rng_next(&rng));
	check_untouched(&k);
	assert_true(k.live < 4); /* a neighbour, or a guess, may be another live one, by chance */
	connect_anew(&k);
	write_with(&k, k.mr[0]->rkey, 0);
	for (uint64_t n = 0; k.data[0][0] == 0x33; n++)
		soft_peer_pump(&k.p);
	assert_string_equal((char *)k.data[0], "got in, got in!");
	for (uint32_t i = 0; i < REGIONS; i++)
		k.p.ops->mr_dereg(k.mr[i]);
	soft_peer_close(&k.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_may_be_cut_anywhere),
		cmocka_unit_test(half_a_frame_holds_up_nobody),
		cmocka_unit_test(a_guessed_key_opens_nothing),
	};

	return cmocka_run_group_tests_name("soft_hostile", tests, NULL, NULL);
}

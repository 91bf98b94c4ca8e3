/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/perftest.h"

#include <string.h>

#include "base/le.h"

#define VERSION_BYTES 16
#define VERSION       "6.06"
#define MTU           "3" /* IBV_MTU_1024 */
#define REPORTS       5   /* of 8 bytes: size, iterations, three rates */
#define TURN_MS       20

/* A handshake: big-endian; what else is in it says nothing on iWARP. */
#define KEYS_RKEY 16 /* offsets */
#define KEYS_ADDR 24

#define ALL \
	(RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE)

/* -- life ----------------------------------------------------------------------------------- */

void perftest_open(struct perftest *p, bool crc)
{
	struct rvcm_soft_tunables tun;

	side_tunables(&tun, crc);
	side_open(&p->side, p->own, &tun);
	side_open(&p->talk, p->own, &tun);
	p->mr = side_mr(&p->side, &p->mem, sizeof(p->mem), ALL);
	p->talk_mr = side_mr(&p->talk, &p->words, sizeof(p->words), ALL);
	p->side.other = &p->talk;
	p->talk.other = &p->side;
}

void perftest_close(struct perftest *p)
{
	p->side.other = p->talk.other = NULL;
	p->side.ops->mr_dereg(p->mr);
	p->talk.ops->mr_dereg(p->talk_mr);
	side_close(&p->side);
	side_close(&p->talk);
}

static void accept_next(struct side *s)
{
	side_event(s, RVCM_DEV_EVENT_CONNECT_REQUEST);
	side_qp(s);
}

/* -- what the two say to each other ---------------------------------------------------------- */

static void expect_word(struct perftest *p)
{
	side_recv(&p->talk, p->talk_mr, 0, PERFTEST_WORD_MAX);
}

static void tell(struct perftest *p, const void *data, size_t bytes)
{
	memcpy(p->words.out, data, bytes);
	side_post(&p->talk, RVCM_DEV_OP_SEND, p->talk_mr, PERFTEST_WORD_MAX, bytes, 0, 0);
}

static void hear(struct perftest *p, void *data, size_t bytes)
{
	struct rvcm_dev_wc wc = side_wc(&p->talk);

	while (wc.status == RVCM_STATUS_OK && wc.op == RVCM_DEV_OP_SEND)
		wc = side_wc(&p->talk); /* ours */
	if (wc.status != RVCM_STATUS_OK)
		side_die("the peer says nothing more: %s", rvcm_status_name(wc.status));
	if (wc.length != bytes)
		side_die("the peer says %zu bytes where %zu are due", wc.length, bytes);
	memcpy(data, p->words.in, bytes);
	expect_word(p);
}

static void exchange(struct perftest *p, const void *own, void *peers, size_t bytes)
{
	if (p->client)
		tell(p, own, bytes);
	hear(p, peers, bytes);
	if (!p->client)
		tell(p, own, bytes);
}

/* One listens for the second connection before the other can think of it. */
static void talk_connect(struct perftest *p)
{
	if (p->client) {
		side_connect_patiently(&p->talk, p->peer, p->port);
		expect_word(p);
		return;
	}
	side_listen(&p->talk, p->port);
	side_say_ready();
	accept_next(&p->talk);
	expect_word(p);
	side_accept(&p->talk, NULL, 0);
	p->talk.ops->listener_close(p->talk.listener);
	p->talk.listener = NULL;
	side_listen(&p->side, p->port);
}

void perftest_introduce(struct perftest *p)
{
	char version[VERSION_BYTES] = VERSION, peers[VERSION_BYTES + 1] = { 0 };
	char mtu[2] = MTU;
	uint8_t zero[4] = { 0 }, number[4];

	talk_connect(p);
	exchange(p, version, peers, VERSION_BYTES);
	if (strcmp(peers, VERSION) != 0)
		side_die("the peer is perftest %s, not " VERSION, peers);
	exchange(p, zero, number, sizeof(number)); /* the size of its cyclic buffer */
	exchange(p, zero, number, sizeof(number)); /* of a cache line */
	exchange(p, mtu, number, sizeof(mtu));
}

void perftest_handshake(struct perftest *p)
{
	uint8_t own[PERFTEST_WORD_MAX] = { 0 }, peers[PERFTEST_WORD_MAX];
	const uint8_t *here = p->credits ? p->mem.control : p->mem.in;

	rvcm_be32_put(own + KEYS_RKEY, p->mr->rkey);
	rvcm_be64_put(own + KEYS_ADDR, (uintptr_t)here);
	exchange(p, own, peers, sizeof(own));
	p->rkey = rvcm_be32_get(peers + KEYS_RKEY);
	p->raddr = rvcm_be64_get(peers + KEYS_ADDR);
}

void perftest_reports(struct perftest *p)
{
	uint8_t own[8] = { 0 }, peers[8];

	for (int i = 0; i < REPORTS; i++)
		exchange(p, own, peers, sizeof(own));
}

/* -- the connection that is tested ----------------------------------------------------------- */

static void post_receive(struct perftest *p)
{
	side_recv(&p->side, p->mr, 0, p->bytes);
	p->receives++;
}

void perftest_connect(struct perftest *p)
{
	if (p->client) {
		side_connect_patiently(&p->side, p->peer, p->port);
	} else {
		accept_next(&p->side);
		side_accept(&p->side, NULL, 0);
	}
	while (p->receives < PERFTEST_RX_DEPTH)
		post_receive(p);
}

static void part(struct perftest *p, struct side *s)
{
	if (p->client)
		side_disconnect(s);
	side_event(s, RVCM_DEV_EVENT_DISCONNECTED);
	if (s->event.status != RVCM_STATUS_OK)
		side_die("disconnected: %s", rvcm_status_name(s->event.status));
	side_hang_up(s);
}

void perftest_part(struct perftest *p)
{
	perftest_reap(p);
	part(p, &p->side);
	part(p, &p->talk);
}

/* -- work ----------------------------------------------------------------------------------- */

static void completed(struct perftest *p, const struct rvcm_dev_wc *wc)
{
	if (wc->op == RVCM_DEV_OP_RECV && wc->status == RVCM_STATUS_FLUSHED) {
		p->ended = true;
		return;
	}
	if (wc->status != RVCM_STATUS_OK)
		side_die("operation %d ended with %s", wc->op, rvcm_status_name(wc->status));
	if (wc->op != RVCM_DEV_OP_RECV) {
		p->posted--;
		return;
	}
	if (wc->length != p->bytes)
		side_die("a message of %zu bytes", wc->length);
	p->taken++;
}

void perftest_turn(struct perftest *p)
{
	struct rvcm_dev_wc wc;

	side_turn(&p->side, TURN_MS);
	while (side_try_wc(&p->side, &wc))
		completed(p, &wc);
}

void perftest_post(struct perftest *p, enum rvcm_dev_op op, const void *from, size_t bytes)
{
	size_t offset = (size_t)((const uint8_t *)from - (const uint8_t *)&p->mem);

	side_post(&p->side, op, p->mr, offset, bytes, p->raddr, p->rkey);
	p->posted++;
}

void perftest_reap(struct perftest *p)
{
	while (p->posted) {
		struct rvcm_dev_wc wc = side_wc(&p->side);

		completed(p, &wc);
	}
}

void perftest_take(struct perftest *p)
{
	while (!p->taken) {
		if (p->ended)
			side_die("the peer hung up before it had sent all");
		struct rvcm_dev_wc wc = side_wc(&p->side);

		completed(p, &wc);
	}
	p->taken--;
	post_receive(p);
}

void perftest_stream(struct perftest *p, enum rvcm_dev_op op)
{
	for (unsigned int n = 0; n < p->count; n++) {
		while (p->posted == SIDE_QUEUE / 2)
			perftest_turn(p);
		perftest_post(p, op, p->mem.out, p->bytes);
	}
	perftest_reap(p);
}

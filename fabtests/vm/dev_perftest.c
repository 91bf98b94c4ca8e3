/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_perftest TEST server|client OWN_ADDRESS PEER_ADDRESS PORT BYTES COUNT [crc]: the part of
 * perftest's protocol (version 6.06, option -R) that its ib_send_bw, ib_send_lat, ib_write_bw,
 * ib_write_lat, ib_read_bw and ib_read_lat need, on the software RNIC; the other side is one of
 * them. TEST is send_bw and so on. The peer must be told -r RX_DEPTH.
 *
 * There are two connections to the same port, both opened by the client. Over the first go words of
 * a fixed length, in each exchange the client's first. One kind, the handshake, carries where
 * memory lies; most are only to keep in step. The second connection is the one that is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/perftest.h"

struct test {
	const char *name;
	int handshakes; /* between the connection and the start */
	bool reports;   /* at the end */
	bool closing;   /* a last handshake */
	void (*client)(struct perftest *p);
	void (*server)(struct perftest *p);
};

/* -- SEND, one way ------------------------------------------------------------------------- */

/*
 * On iWARP a SEND that finds no receive ends the connection, so there the receiver writes how many
 * messages it has taken to where the handshake said. Elsewhere the sender's adapter tries again,
 * and what the handshake says is memory that nobody may write to: RNR is all there is.
 */
static void send_bw_client(struct perftest *p)
{
	volatile uint32_t *taken = (volatile uint32_t *)(void *)p->mem.control;

	for (unsigned int n = 1; n <= p->count; n++) {
		while (p->posted == SIDE_QUEUE / 2 ||
		       (p->credits && n - *taken >= PERFTEST_RX_DEPTH))
			perftest_turn(p);
		perftest_post(p, RVCM_DEV_OP_SEND, p->mem.out, p->bytes);
	}
	perftest_reap(p);
}

static void send_bw_server(struct perftest *p)
{
	for (unsigned int n = 1; n <= p->count; n++) {
		perftest_take(p);
		if (!p->credits || n % (PERFTEST_RX_DEPTH / 3))
			continue;
		memcpy(p->mem.control + 4, &n, sizeof(n));
		perftest_post(p, RVCM_DEV_OP_WRITE, p->mem.control + 4, 4);
	}
}

/* -- SEND, there and back ------------------------------------------------------------------- */

static void send_lat_client(struct perftest *p)
{
	for (unsigned int n = 0; n < p->count; n++) {
		perftest_post(p, RVCM_DEV_OP_SEND, p->mem.out, p->bytes);
		perftest_take(p);
	}
}

static void send_lat_server(struct perftest *p)
{
	for (unsigned int n = 0; n < p->count; n++) {
		perftest_take(p);
		perftest_post(p, RVCM_DEV_OP_SEND, p->mem.out, p->bytes);
	}
}

/* -- WRITE ---------------------------------------------------------------------------------- */

static void write_bw_client(struct perftest *p)
{
	perftest_stream(p, RVCM_DEV_OP_WRITE);
}

/*
 * The last byte of what is written counts; each waits for the other's. Here it is the server that
 * begins, which MPA allows in peer-to-peer mode only (RFC 6581 section 9).
 */
static void write_lat_post(struct perftest *p, unsigned int n)
{
	p->mem.out[p->bytes - 1] = (uint8_t)n;
	perftest_post(p, RVCM_DEV_OP_WRITE, p->mem.out, p->bytes);
	perftest_reap(p);
}

static void write_lat_await(struct perftest *p, unsigned int n)
{
	volatile uint8_t *last = &p->mem.in[p->bytes - 1];

	while (*last != (uint8_t)n) {
		if (p->ended)
			side_die("the peer hung up before it had written all");
		perftest_turn(p);
	}
}

static void write_lat_client(struct perftest *p)
{
	for (unsigned int n = 1; n <= p->count; n++) {
		write_lat_await(p, n);
		write_lat_post(p, n);
	}
}

static void write_lat_server(struct perftest *p)
{
	for (unsigned int n = 1; n <= p->count; n++) {
		write_lat_post(p, n);
		write_lat_await(p, n);
	}
}

/* -- READ ----------------------------------------------------------------------------------- */

static void read_bw_client(struct perftest *p)
{
	perftest_stream(p, RVCM_DEV_OP_READ);
}

static void read_lat_client(struct perftest *p)
{
	for (unsigned int n = 0; n < p->count; n++) {
		perftest_post(p, RVCM_DEV_OP_READ, p->mem.out, p->bytes);
		perftest_reap(p);
	}
}

/* The client does it all; we are served while we wait for its next word. */
static void passive(struct perftest *p)
{
	(void)p;
}

static const struct test tests[] = {
	{ "send_bw", 4, false, true, send_bw_client, send_bw_server },
	{ "send_lat", 4, false, true, send_lat_client, send_lat_server },
	{ "write_bw", 3, true, true, write_bw_client, passive },
	{ "write_lat", 4, false, false, write_lat_client, write_lat_server },
	{ "read_bw", 3, true, true, read_bw_client, passive },
	{ "read_lat", 4, false, true, read_lat_client, passive },
};

static void run(struct perftest *p, const struct test *test)
{
	perftest_introduce(p);
	perftest_handshake(p);
	perftest_connect(p);
	perftest_handshake(p);
	for (int i = 0; i < test->handshakes; i++)
		perftest_handshake(p);
	(p->client ? test->client : test->server)(p);
	if (test->reports) {
		perftest_handshake(p);
		perftest_reports(p);
	}
	if (test->closing)
		perftest_handshake(p);
	perftest_part(p);
}

int main(int argc, char **argv)
{
	static struct perftest p;
	const struct test *test = tests;

	if (argc < 8 || argc > 9)
		side_die("usage: dev_perftest TEST server|client OWN PEER PORT BYTES COUNT [crc]");
	while (test < tests + sizeof(tests) / sizeof(tests[0]) && strcmp(test->name, argv[1]) != 0)
		test++;
	if (test == tests + sizeof(tests) / sizeof(tests[0]))
		side_die("there is no test %s", argv[1]);
	p.client = strcmp(argv[2], "client") == 0;
	p.own = argv[3];
	p.peer = argv[4];
	p.port = (uint16_t)strtoul(argv[5], NULL, 10);
	p.bytes = strtoul(argv[6], NULL, 10);
	p.count = (unsigned int)strtoul(argv[7], NULL, 10);
	if (p.bytes == 0 || p.bytes > sizeof(p.mem.in))
		side_die("messages of 1 to %zu bytes", sizeof(p.mem.in));
	perftest_open(&p, argc == 9);
	p.credits =
		strcmp(test->name, "send_bw") == 0 && p.side.dev->attr.wire == RVCM_DEV_WIRE_IWARP;
	run(&p, test);
	perftest_close(&p);
	printf("%s: %u of %zu bytes\n", test->name, p.count, p.bytes);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_rping server|client OWN_ADDRESS PEER_ADDRESS PORT BYTES COUNT [crc]: rping(1)'s protocol on
 * the software RNIC; the other side is rping itself on another. The server connects nobody and
 * needs no peer address, but has it all the same.
 *
 * A ping: the client says where its text lies, the server reads it (RDMA READ) and says go on, the
 * client says where the echo goes, the server writes it there (RDMA WRITE) and says so. What they
 * say is a SEND of 16 bytes: address 8, rkey 4, length 4, big-endian; "go on" is any such message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "vm/side.h"

#define INFO_BYTES 16
#define TEXT_MAX   (64u << 10)
#define ACCESS \
	(RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE)

struct rping {
	struct side side;
	struct rvcm_dev_mr *mr; /* of all below */
	struct {
		uint8_t text[TEXT_MAX];
		uint8_t echo[TEXT_MAX];
		uint8_t info_out[INFO_BYTES];
		uint8_t info_in[INFO_BYTES];
	} mem;
	size_t bytes;
	unsigned int count;
};

static size_t offset_of(const struct rping *r, const void *p)
{
	return (size_t)((const uint8_t *)p - (const uint8_t *)&r->mem);
}

/* What rping's client makes of ping number n. */
static void text_make(uint8_t *text, size_t bytes, unsigned int n)
{
	int head = snprintf((char *)text, bytes, "rdma-ping-%u: ", n);
	unsigned int c = 'A' + n % 58;

	for (size_t i = (size_t)head; i < bytes; i++) {
		text[i] = (uint8_t)c;
		c = c == 'z' ? 'A' : c + 1;
	}
	text[bytes - 1] = '\0';
}

static void text_check(const struct rping *r, const uint8_t *got, unsigned int n, const char *what)
{
	static uint8_t want[TEXT_MAX];

	text_make(want, r->bytes, n);
	for (size_t i = 0; i < r->bytes; i++)
		if (got[i] != want[i])
			side_die("ping %u: byte %zu of the %s is %02x, not %02x", n, i, what,
				 got[i], want[i]);
}

/* Until a message is here; false if the connection ended, in order, instead. */
static bool hear(struct rping *r)
{
	struct rvcm_dev_wc wc = side_wc(&r->side);

	while (wc.op != RVCM_DEV_OP_RECV && wc.status == RVCM_STATUS_OK)
		wc = side_wc(&r->side); /* a SEND of ours */
	if (wc.status == RVCM_STATUS_OK && wc.length != INFO_BYTES)
		side_die("a message of %zu bytes", wc.length);
	if (wc.status == RVCM_STATUS_OK)
		return true;
	side_event(&r->side, RVCM_DEV_EVENT_DISCONNECTED);
	if (r->side.event.status != RVCM_STATUS_OK)
		side_die("disconnected: %s", rvcm_status_name(r->side.event.status));
	return false;
}

static void must_hear(struct rping *r, const char *what)
{
	if (!hear(r))
		side_die("the end came where %s is due", what);
}

static void listen_for_info(struct rping *r)
{
	side_recv(&r->side, r->mr, offset_of(r, r->mem.info_in), INFO_BYTES);
}

static void say(struct rping *r, const void *where)
{
	rvcm_be64_put(r->mem.info_out, (uintptr_t)where);
	rvcm_be32_put(r->mem.info_out + 8, r->mr->rkey);
	rvcm_be32_put(r->mem.info_out + 12, (uint32_t)r->bytes);
	side_post(&r->side, RVCM_DEV_OP_SEND, r->mr, offset_of(r, r->mem.info_out), INFO_BYTES, 0,
		  0);
}

/* The peer's memory that info names. */
static void rdma(struct rping *r, enum rvcm_dev_op op)
{
	if (rvcm_be32_get(r->mem.info_in + 12) != r->bytes)
		side_die("the peer has %u bytes", rvcm_be32_get(r->mem.info_in + 12));
	side_post(&r->side, op, r->mr, offset_of(r, r->mem.text), r->bytes,
		  rvcm_be64_get(r->mem.info_in), rvcm_be32_get(r->mem.info_in + 8));
}

static void until(struct rping *r, enum rvcm_dev_op op)
{
	struct rvcm_dev_wc wc = side_wc(&r->side);

	while (wc.status == RVCM_STATUS_OK && wc.op == RVCM_DEV_OP_SEND && op != RVCM_DEV_OP_SEND)
		wc = side_wc(&r->side);
	if (wc.status != RVCM_STATUS_OK || wc.op != op)
		side_die("operation %d ended with %s", wc.op, rvcm_status_name(wc.status));
}

static void serve(struct rping *r)
{
	unsigned int n = 0;

	for (;; n++) {
		if (!hear(r))
			break;
		rdma(r, RVCM_DEV_OP_READ);
		until(r, RVCM_DEV_OP_READ);
		text_check(r, r->mem.text, n, "text");
		listen_for_info(r);
		say(r, r->mem.text);
		must_hear(r, "the echo's place");
		rdma(r, RVCM_DEV_OP_WRITE);
		listen_for_info(r);
		say(r, r->mem.text);
	}
	if (n != r->count)
		side_die("%u pings came", n);
}

static void ping(struct rping *r)
{
	for (unsigned int n = 0; n < r->count; n++) {
		text_make(r->mem.text, r->bytes, n);
		memset(r->mem.echo, 0, r->bytes);
		listen_for_info(r);
		say(r, r->mem.text);
		must_hear(r, "the word that it was read");
		listen_for_info(r);
		say(r, r->mem.echo);
		must_hear(r, "the word that it was written");
		text_check(r, r->mem.echo, n, "echo");
	}
	side_disconnect(&r->side);
	side_event(&r->side, RVCM_DEV_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	static struct rping r;
	struct rvcm_soft_tunables tun;
	bool server = argc > 1 && strcmp(argv[1], "server") == 0;
	uint16_t port;

	if (argc < 7 || argc > 8)
		side_die("usage: dev_rping server|client OWN PEER PORT BYTES COUNT [crc]");
	port = (uint16_t)strtoul(argv[4], NULL, 10);
	r.bytes = strtoul(argv[5], NULL, 10);
	r.count = (unsigned int)strtoul(argv[6], NULL, 10);
	side_tunables(&tun, argc == 8);
	side_open(&r.side, argv[2], &tun);
	r.mr = side_mr(&r.side, &r.mem, sizeof(r.mem), ACCESS);
	if (server) {
		side_listen(&r.side, port);
		side_say_ready();
		side_event(&r.side, RVCM_DEV_EVENT_CONNECT_REQUEST);
		side_qp(&r.side);
		listen_for_info(&r);
		side_accept(&r.side, NULL, 0);
		serve(&r);
	} else {
		side_connect_patiently(&r.side, argv[3], port);
		ping(&r);
	}
	side_hang_up(&r.side);
	r.side.ops->mr_dereg(r.mr);
	side_close(&r.side);
	printf("%u pings of %zu bytes\n", r.count, r.bytes);
	return 0;
}

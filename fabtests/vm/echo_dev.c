/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo_dev server|client OWN PEER PORT: echo.h's protocol on a device of ours (OWN: see side_open);
 * the other side is echo_fi, which is an MSG endpoint of libfabric's verbs provider.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "vm/echo.h"
#include "vm/side.h"

#define ACCESS \
	(RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE)

struct echo {
	struct side side;
	struct rvcm_dev_mr *mr; /* of all of mem */
	struct {
		uint8_t in[ECHO_BYTES_MAX];
		uint8_t out[ECHO_BYTES_MAX];
		uint8_t memory[ECHO_MEMORY];
	} mem;
};

static size_t offset_of(const struct echo *e, const void *p)
{
	return (size_t)((const uint8_t *)p - (const uint8_t *)&e->mem);
}

static void check(const uint8_t *buf, size_t bytes, unsigned int fill, const char *what)
{
	size_t i = echo_differs(buf, bytes, fill);

	if (i < bytes)
		side_die("%s: byte %zu of %zu is wrong", what, i, bytes);
}

/* Private data with their length in front. */
static void wrap(uint8_t data[ECHO_PRIVATE + 1], const char *text)
{
	memset(data, 0, ECHO_PRIVATE + 1);
	data[0] = ECHO_PRIVATE;
	memcpy(data + 1, text, strlen(text));
}

/* InfiniBand's CM pads them. */
static void check_private(const struct side *s, const char *text)
{
	uint8_t data[ECHO_PRIVATE + 1];

	wrap(data, text);
	if (s->event.private_bytes < sizeof(data) ||
	    memcmp(s->private_data, data, sizeof(data)) != 0)
		side_die("the %zu bytes of private data are not the peer's",
			 s->event.private_bytes);
}

static void expect_message(struct echo *e)
{
	side_recv(&e->side, e->mr, offset_of(e, e->mem.in), ECHO_BYTES_MAX);
}

static void say(struct echo *e, size_t bytes)
{
	side_post(&e->side, RVCM_DEV_OP_SEND, e->mr, offset_of(e, e->mem.out), bytes, 0, 0);
}

/* The next message; what we sent may complete before it. */
static size_t hear(struct echo *e)
{
	struct rvcm_dev_wc wc = side_wc(&e->side);

	while (wc.status == RVCM_STATUS_OK && wc.op == RVCM_DEV_OP_SEND)
		wc = side_wc(&e->side);
	if (wc.status != RVCM_STATUS_OK || wc.op != RVCM_DEV_OP_RECV)
		side_die("operation %d ended with %s where a message is due", wc.op,
			 rvcm_status_name(wc.status));
	return wc.length;
}

static void rdma(struct echo *e, enum rvcm_dev_op op)
{
	side_post(&e->side, op, e->mr, offset_of(e, e->mem.memory), ECHO_MEMORY,
		  rvcm_be64_get(e->mem.in), rvcm_be32_get(e->mem.in + 8));
	side_expect(&e->side, op);
}

static void serve(struct echo *e)
{
	if (hear(e) != ECHO_INFO)
		side_die("the first message is not where the memory lies");
	rdma(e, RVCM_DEV_OP_READ);
	check(e->mem.memory, ECHO_MEMORY, 1, "what was read");
	echo_fill(e->mem.memory, ECHO_MEMORY, 2);
	rdma(e, RVCM_DEV_OP_WRITE);
	expect_message(e);
	say(e, 1);
	for (unsigned int n = 0; n < ECHO_MESSAGES; n++) {
		size_t bytes = hear(e);

		if (bytes != echo_size(n))
			side_die("message %u has %zu bytes", n, bytes);
		check(e->mem.in, bytes, 3 + n, "a message");
		memcpy(e->mem.out, e->mem.in, bytes);
		expect_message(e);
		say(e, bytes);
	}
}

static void ask(struct echo *e)
{
	rvcm_be64_put(e->mem.out, (uintptr_t)e->mem.memory);
	rvcm_be32_put(e->mem.out + 8, e->mr->rkey);
	say(e, ECHO_INFO);
	if (hear(e) != 1)
		side_die("the answer is not of 1 byte");
	check(e->mem.memory, ECHO_MEMORY, 2, "what was written");
	for (unsigned int n = 0; n < ECHO_MESSAGES; n++) {
		echo_fill(e->mem.out, echo_size(n), 3 + n);
		memset(e->mem.in, 0, echo_size(n));
		expect_message(e);
		say(e, echo_size(n));
		if (hear(e) != echo_size(n))
			side_die("message %u came back with another length", n);
		check(e->mem.in, echo_size(n), 3 + n, "what came back");
	}
}

static void run_server(struct echo *e, uint16_t port)
{
	uint8_t answer[ECHO_PRIVATE + 1];

	wrap(answer, ECHO_ANSWER);
	side_listen(&e->side, port);
	side_say_ready();
	side_event(&e->side, RVCM_DEV_EVENT_CONNECT_REQUEST);
	check_private(&e->side, ECHO_REQUEST);
	side_qp(&e->side);
	expect_message(e);
	side_accept(&e->side, answer, sizeof(answer));
	serve(e);
	side_event(&e->side, RVCM_DEV_EVENT_DISCONNECTED);
}

static void run_client(struct echo *e, const char *peer, uint16_t port)
{
	uint8_t request[ECHO_PRIVATE + 1];

	wrap(request, ECHO_REQUEST);
	echo_fill(e->mem.memory, ECHO_MEMORY, 1);
	side_qp(&e->side);
	expect_message(e);
	side_dial_qp(&e->side, peer, port, request, sizeof(request));
	side_event(&e->side, RVCM_DEV_EVENT_ESTABLISHED);
	check_private(&e->side, ECHO_ANSWER);
	side_attach(&e->side);
	ask(e);
	side_disconnect(&e->side);
	side_event(&e->side, RVCM_DEV_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	static struct echo e;
	uint16_t port;

	if (argc != 5)
		side_die("usage: echo_dev server|client OWN PEER PORT");
	port = (uint16_t)strtoul(argv[4], NULL, 10);
	side_open(&e.side, argv[2], NULL);
	e.mr = side_mr(&e.side, &e.mem, sizeof(e.mem), ACCESS);
	if (strcmp(argv[1], "server") == 0)
		run_server(&e, port);
	else
		run_client(&e, argv[3], port);
	side_hang_up(&e.side);
	e.side.ops->mr_dereg(e.mr);
	side_close(&e.side);
	return 0;
}

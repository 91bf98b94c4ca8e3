/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA's set-up in both roles and revisions, byte by byte: depths (RFC 6581 section 9.1), how the
 * opener begins (section 9.2), and who may send first (RFC 5044 section 7.1.2).
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct soft_peer_conf pooled = { .pool = true };

#define REQ  'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'
#define REP  'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'
#define MARK 0x01 /* shake.c: a request of our kind, in the reserved bits */

/* -- the device answers --------------------------------------------------------------------- */

static const struct answer {
	size_t bytes; /* of the request */
	uint8_t request[24];
	uint8_t reply[24];
} answers[] = {
	/* Revision 1: M, C, R and S of RFC 5044 figure 8; PD 0. C is granted. */
	{ 20, { REQ, 0x00, 1, 0, 0 }, { REP, 0x00, 1, 0, 0 } },
	{ 20, { REQ, 0x40, 1, 0, 0 }, { REP, 0x40, 1, 0, 0 } },
	/* Revision 2 without S is like revision 1, and so is S in revision 1: a reserved bit. */
	{ 20, { REQ, 0x00, 2, 0, 0 }, { REP, 0x00, 2, 0, 0 } },
	{ 20, { REQ, 0x10, 1, 0, 0 }, { REP, 0x00, 1, 0, 0 } },
	/* RFC 6581 figure 4: IRD 4, ORD 16 are answered with IRD 16, ORD 4. */
	{ 24, { REQ, 0x10, 2, 0, 4, 0, 4, 0, 16 }, { REP, 0x10, 2, 0, 4, 0, 16, 0, 4 } },
	/* Nothing is offered beyond 32. */
	{ 24, { REQ, 0x10, 2, 0, 4, 1, 0, 2, 0 }, { REP, 0x10, 2, 0, 4, 0, 32, 0, 32 } },
	{ 24, { REQ, 0x10, 2, 0, 4, 0, 0, 0, 0 }, { REP, 0x10, 2, 0, 4, 0, 0, 0, 0 } },
	/* All ones: not negotiated here. Each of the two for itself. */
	{ 24,
	  { REQ, 0x10, 2, 0, 4, 0x3f, 0xff, 0x3f, 0xff },
	  { REP, 0x10, 2, 0, 4, 0x3f, 0xff, 0x3f, 0xff } },
	{ 24, { REQ, 0x10, 2, 0, 4, 0x3f, 0xff, 0, 5 }, { REP, 0x10, 2, 0, 4, 0, 5, 0x3f, 0xff } },
	/* Peer-to-peer (A): of FPDU (B), WRITE (C) and READ (D) one is chosen, the WRITE first. */
	{ 24, { REQ, 0x10, 2, 0, 4, 0xc0, 4, 0xc0, 4 }, { REP, 0x10, 2, 0, 4, 0x80, 4, 0x80, 4 } },
	{ 24, { REQ, 0x10, 2, 0, 4, 0xc0, 4, 0x40, 4 }, { REP, 0x10, 2, 0, 4, 0xc0, 4, 0x00, 4 } },
	{ 24, { REQ, 0x10, 2, 0, 4, 0x80, 4, 0x40, 4 }, { REP, 0x10, 2, 0, 4, 0x80, 4, 0x40, 4 } },
	{ 24, { REQ, 0x10, 2, 0, 4, 0x80, 4, 0x00, 4 }, { REP, 0x10, 2, 0, 4, 0x80, 4, 0x80, 4 } },
	/* A READ that says "go" needs somebody to serve it. */
	{ 24, { REQ, 0x10, 2, 0, 4, 0x80, 4, 0x40, 0 }, { REP, 0x10, 2, 0, 4, 0x80, 1, 0x40, 4 } },
	/* B, C and D mean nothing without A. */
	{ 24, { REQ, 0x10, 2, 0, 4, 0x40, 4, 0xc0, 4 }, { REP, 0x10, 2, 0, 4, 0, 4, 0, 4 } },
	/* Our own kind waits for nobody; its reply has another mark. */
	{ 24,
	  { REQ, 0x10 | MARK, 2, 0, 4, 0xc0, 4, 0xc0, 4 },
	  { REP, 0x10 | 0x02, 2, 0, 4, 0, 4, 0, 4 } },
};

static void each_request_has_its_reply(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const struct answer *a = &answers[i];
		struct soft_peer p;
		uint8_t reply[24];

		soft_peer_open(&p, NULL);
		soft_peer_qp(&p, &pooled);
		soft_peer_listen(&p);
		soft_peer_dial(&p);
		soft_peer_write(&p, a->request, a->bytes);
		soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
		assert_int_equal(p.ops->accept(p.event.req, p.qp, NULL, 0), 0);
		soft_peer_read(&p, reply, a->bytes);
		assert_memory_equal(reply, a->reply, a->bytes);
		soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
		soft_peer_close(&p);
	}
}

/* The longest private data of each form comes through, and none of it is taken for depths. */
static void private_data_of_every_form(void **state)
{
	static const struct {
		uint8_t flags, revision;
		uint16_t pd;
		uint16_t bytes; /* of it for the consumer */
	} forms[] = {
		{ 0x00, 1, 512, 512 }, { 0x00, 2, 512, 512 }, { 0x10, 2, 512, 508 },
		{ 0x10, 2, 4, 0 },     { 0x10, 1, 4, 4 },
	};
	uint8_t frame[20 + 512] = { REQ };

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct soft_peer p;
		size_t skip = (size_t)forms[i].pd - forms[i].bytes;

		frame[16] = forms[i].flags;
		frame[17] = forms[i].revision;
		frame[18] = (uint8_t)(forms[i].pd >> 8);
		frame[19] = (uint8_t)forms[i].pd;
		for (size_t k = 0; k < 512; k++)
			frame[20 + k] = (uint8_t)(k * 7 + 1);
		soft_peer_open(&p, NULL);
		soft_peer_listen(&p);
		soft_peer_dial(&p);
		soft_peer_trickle(&p, frame, 20u + forms[i].pd);
		soft_peer_event(&p, RVCM_DEV_EVENT_CONNECT_REQUEST);
		assert_int_equal(p.event.private_bytes, forms[i].bytes);
		assert_memory_equal(p.private_data, frame + 20 + skip, forms[i].bytes);
		assert_int_equal(p.ops->reject(p.event.req, NULL, 0), 0);
		soft_peer_close(&p);
	}
}

/* -- who may send first --------------------------------------------------------------------- */

static size_t first_frame(const struct soft_peer *p, uint8_t opcode, uint8_t *buf)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = opcode, .last = true, .msn = 1 };
	const uint8_t none[RVCM_SOFT_WIRE_READ_REQ_BYTES] = { 0 };

	return soft_peer_fpdu(p, &hdr, none, opcode == RVCM_SOFT_WIRE_READ_REQ ? sizeof(none) : 0,
			      buf);
}

static void send_hello(struct soft_peer *p)
{
	const struct rvcm_dev_wr wr = { .wr_id = 1,
					.op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED };

	assert_int_equal(p->ops->post(p->qp, &wr), 0);
}

/* What the device posted before leaves it with the opener's first frame, whatever that is. */
static void a_foreign_opener_sends_first(void **state)
{
	static const uint8_t opcodes[] = { RVCM_SOFT_WIRE_WRITE, RVCM_SOFT_WIRE_READ_REQ,
					   RVCM_SOFT_WIRE_SEND };
	static struct soft_peer_frame frame;

	(void)state;
	for (size_t i = 0; i <= sizeof(opcodes); i++)
		for (int v1 = 0; v1 < 2; v1++) {
			const struct soft_peer_conf conf = { .pool = true,
							     .mute = true,
							     .foreign_v1 = v1 };
			uint8_t buf[100];
			struct soft_peer p;
			ssize_t n;

			soft_peer_open(&p, NULL);
			soft_peer_up(&p, &conf);
			send_hello(&p);
			for (int k = 0; k < 50; k++)
				soft_peer_pump(&p);
			n = recv(p.fd, buf, 1, MSG_PEEK);
			assert_int_equal(n, -1);
			assert_int_equal(p.n_wcs, 0);
			if (i == sizeof(opcodes))
				soft_peer_go(&p);
			else
				soft_peer_write(&p, buf, first_frame(&p, opcodes[i], buf));
			do
				soft_peer_take(&p, &frame);
			while (frame.hdr.opcode == RVCM_SOFT_WIRE_READ_RESP);
			assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_SEND);
			soft_peer_drop(&p);
			soft_peer_close(&p);
		}
}

static void our_own_kind_waits_for_nobody(void **state)
{
	const struct soft_peer_conf conf = { .pool = true, .mute = true, .own_kind = true };
	static struct soft_peer_frame frame;
	struct soft_peer p;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &conf);
	send_hello(&p);
	soft_peer_take(&p, &frame);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_SEND);
	soft_peer_close(&p);
}

/* -- the device opens ----------------------------------------------------------------------- */

/* The peer reads the device's request, which must be this, and has replied. */
static void dialled(struct soft_peer *p, const struct rvcm_soft_tunables *tun,
		    const uint8_t *request, size_t bytes, const uint8_t *reply, size_t reply_bytes)
{
	struct rvcm_addr addr;
	uint8_t buf[64];
	int server;

	soft_peer_open(p, tun);
	soft_peer_qp(p, &pooled);
	server = soft_peer_server(p, &addr);
	assert_int_equal(p->ops->connect(p->qp, &addr, NULL, 0), 0);
	p->fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(server);
	soft_peer_read(p, buf, bytes);
	assert_memory_equal(buf, request, bytes);
	soft_peer_write(p, reply, reply_bytes);
}

static const uint8_t request_2[] = { REQ, 0x10 | MARK, 2, 0, 4, 0xc0, 32, 0xc0, 32 };

/* Then the device begins so, and the connection stands. */
static const struct beginning {
	uint8_t reply[24];
	size_t bytes;
	uint8_t first[52];
	size_t reads; /* that it may have open */
} beginnings[] = {
	/* A client and a server: the device begins as it likes. */
	{ { REP, 0x10, 2, 0, 4, 0, 32, 0, 32 }, 0, { 0 }, 32 },
	/* Its depth is the server's, which may be less, or more, or not negotiated, or none. */
	{ { REP, 0x10, 2, 0, 4, 0, 3, 0, 32 }, 0, { 0 }, 3 },
	{ { REP, 0x10, 2, 0, 4, 2, 0, 0, 0 }, 0, { 0 }, 32 },
	{ { REP, 0x10, 2, 0, 4, 0x3f, 0xff, 0x3f, 0xff }, 0, { 0 }, 32 },
	{ { REP, 0x10, 2, 0, 4, 0, 0, 0, 0 }, 0, { 0 }, 0 },
	/* B: an FPDU of length 0, 2 bytes of pad and no CRC. */
	{ { REP, 0x10, 2, 0, 4, 0xc0, 2, 0, 32 }, 8, { 0 }, 2 },
	/* C: a WRITE (RFC 5041 figure 4) of nothing: T, L, DV 1; RV 1, opcode 0; STag, TO 0. */
	{ { REP, 0x10, 2, 0, 4, 0x80, 2, 0x80, 32 }, 20, { 0, 14, 0xc1, 0x40 }, 2 },
	/* D: a READ request (RFC 5040 figure 6) of nothing: QN 1, MSN 1; all else is 0. */
	{ { REP, 0x10, 2, 0, 4, 0x80, 2, 0x40, 32 },
	  52,
	  { 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 },
	  2 },
	/* Who answers in our own header offers all three: one is taken. */
	{ { REP, 0x10 | MARK, 2, 0, 4, 0xc0, 32, 0xc0, 32 }, 20, { 0, 14, 0xc1, 0x40 }, 32 },
};

/* How many READs the device has open when it would have 40; they are numbered from this MSN. */
static void count_reads(struct soft_peer *p, size_t want, uint32_t msn)
{
	static struct soft_peer_frame frame;
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_READ, .flags = RVCM_DEV_WR_SIGNALED };

	for (int i = 0; i < 16; i++)
		assert_int_equal(p->ops->post(p->qp, &wr), want ? 0 : -EOPNOTSUPP);
	for (size_t i = 0; i < want && i < 16; i++) {
		soft_peer_take(p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_REQ);
		assert_int_equal(frame.hdr.msn, msn + i);
	}
	for (int i = 0; i < 20; i++)
		soft_peer_pump(p);
	assert_int_equal(recv(p->fd, &frame, 1, MSG_PEEK), -1);
}

static void each_reply_has_its_beginning(void **state)
{
	static struct soft_peer_frame frame;

	(void)state;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		const struct beginning *b = &beginnings[i];
		const struct rvcm_soft_wire_hdr response = { .opcode = RVCM_SOFT_WIRE_READ_RESP,
							     .last = true };
		uint32_t msn = b->bytes == 52 ? 2 : 1;
		struct soft_peer p;
		uint8_t first[52];

		dialled(&p, NULL, request_2, sizeof(request_2), b->reply, sizeof(b->reply));
		soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
		assert_int_equal(!!(p.qp->caps & RVCM_DEV_CAP_READ), b->reads > 0);
		soft_peer_read(&p, first, b->bytes);
		assert_memory_equal(first, b->first, b->bytes);
		assert_int_equal(p.ops->attach(p.qp), 0);
		p.attached = true;
		count_reads(&p, b->reads, msn);
		if (msn == 2) { /* the response to the READ that said "go" completes nothing */
			soft_peer_frame(&p, &response, NULL, 0);
			for (int k = 0; k < 20; k++)
				soft_peer_pump(&p);
			assert_int_equal(p.n_wcs, 0);
			assert_int_equal(p.ops->qp_state(p.qp), RVCM_DEV_QP_RTS);
			soft_peer_frame(&p, &response, NULL, 0);
			soft_peer_take(&p, &frame); /* one READ is done: the next may be open */
			assert_int_equal(frame.hdr.msn, 4);
		}
		soft_peer_close(&p);
	}
}

/* -- the first frame, again ------------------------------------------------------------------ */

/* A WRITE of nothing, as above, is asked for. */
static void dialled_peer_to_peer(struct soft_peer *p, uint8_t first[20])
{
	static const uint8_t reply[] = { REP, 0x10, 2, 0, 4, 0x80, 2, 0x80, 32 };
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.rtr_again_ms = 1;
	dialled(p, &tun, request_2, sizeof(request_2), reply, sizeof(reply));
	soft_peer_event(p, RVCM_DEV_EVENT_ESTABLISHED);
	soft_peer_read(p, first, 20);
}

static void attach(struct soft_peer *p)
{
	assert_int_equal(p->ops->attach(p->qp), 0);
	p->attached = true;
}

/* It is told the same n times more. */
static void told_again(struct soft_peer *p, const uint8_t first[20], int n)
{
	uint8_t again[20];

	for (int i = 0; i < n; i++) {
		soft_peer_read(p, again, sizeof(again));
		assert_memory_equal(again, first, sizeof(again));
	}
}

/* A connection that stood before is told by now, if it is: one that stands only now has been. */
static void outlast(struct soft_peer *p)
{
	struct soft_peer later;
	uint8_t first[20];

	dialled_peer_to_peer(&later, first);
	attach(&later);
	told_again(&later, first, 4);
	soft_peer_close(&later);
	for (int i = 0; i < 20; i++)
		soft_peer_pump(p);
}

/* The next that the peer gets is this. */
static void next_is_a_send(struct soft_peer *p)
{
	static struct soft_peer_frame frame;
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED };

	assert_int_equal(p->ops->post(p->qp, &wr), 0);
	soft_peer_take(p, &frame);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_SEND);
}

/* What was told before is through with it: under load that may have been told again. */
static void send_through(struct soft_peer *p)
{
	static struct soft_peer_frame frame;
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED };

	assert_int_equal(p->ops->post(p->qp, &wr), 0);
	do
		soft_peer_take(p, &frame);
	while (frame.hdr.opcode != RVCM_SOFT_WIRE_SEND);
}

/* Four times, and not before data can say it. */
static void who_is_silent_is_told_again(void **state)
{
	struct soft_peer p;
	uint8_t first[20];

	(void)state;
	dialled_peer_to_peer(&p, first);
	outlast(&p);
	attach(&p);
	told_again(&p, first, 4);
	outlast(&p);
	next_is_a_send(&p);
	soft_peer_close(&p);
}

static void who_speaks_is_not_told_again(void **state)
{
	struct soft_peer p;
	uint8_t first[20];

	(void)state;
	dialled_peer_to_peer(&p, first);
	soft_peer_send(&p, "x", 1);
	attach(&p);
	soft_peer_got(&p);
	send_through(&p);
	outlast(&p);
	next_is_a_send(&p);
	soft_peer_close(&p);
}

/* Between the segments of a message nothing comes. */
static void a_message_is_not_interrupted(void **state)
{
	static uint8_t bytes[16 << 20];
	static struct soft_peer_frame frame;
	struct rvcm_dev_sge sge = { .addr = bytes, .length = sizeof(bytes) };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .sge = &sge, .n_sge = 1 };
	struct rvcm_dev_mr_attr attr = { .addr = bytes, .length = sizeof(bytes) };
	struct soft_peer p;
	uint8_t first[20];

	(void)state;
	dialled_peer_to_peer(&p, first);
	attach(&p);
	assert_int_equal(p.ops->mr_reg(p.dev, &attr, &sge.mr), 0);
	assert_int_equal(p.ops->post(p.qp, &wr), 0);
	outlast(&p); /* more than a socket holds: it is under way still */
	do
		soft_peer_take(&p, &frame);
	while (frame.hdr.opcode != RVCM_SOFT_WIRE_SEND); /* told again before the post */
	while (!frame.hdr.last) {
		soft_peer_take(&p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_SEND);
	}
	p.ops->mr_dereg(sge.mr);
	soft_peer_close(&p);
}

/* What the reply wants cannot be had: TERMINATE (RFC 6581 section 8), and no connection. */
static const struct refusal {
	uint8_t reply[24];
	uint8_t code;
} refusals[] = {
	/* The server means to have 33 READs open, and we serve 32. */
	{ { REP, 0x10, 2, 0, 4, 0, 32, 0, 33 }, 0x06 },
	{ { REP, 0x10, 2, 0, 4, 0, 32, 0x3f, 0xfe }, 0x06 },
	/* It asks for peer-to-peer and names no message. */
	{ { REP, 0x10, 2, 0, 4, 0x80, 32, 0, 32 }, 0x07 },
};

static void check_refused(struct soft_peer *p, uint8_t code)
{
	/* Length 22; untagged, L, DV 1; RV 1, opcode 7; QN 2, MSN 1, MO 0; layer 2, type 0; no
	 * header of any segment; CRC. */
	const uint8_t want[28] = { 0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0,    0,
				   2, 0,  0,    0,    1, 0, 0, 0, 0, 0x20, code };
	uint8_t got[28];

	soft_peer_read(p, got, sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
	soft_peer_expect_end(p);
	assert_int_equal(soft_peer_event(p, RVCM_DEV_EVENT_CONNECT_ERROR)->status,
			 RVCM_STATUS_REJECTED_CAPS);
	assert_int_equal(p->ops->qp_state(p->qp), RVCM_DEV_QP_ERROR);
	soft_peer_close(p);
}

static void what_cannot_be_had_is_terminated(void **state)
{
	struct rvcm_soft_tunables tun;
	static const uint8_t plain[] = { REQ, 0x10 | MARK, 2, 0, 4, 0, 32, 0, 32 };
	static const uint8_t wants[] = { REP, 0x10, 2, 0, 4, 0x80, 32, 0x80, 32 };
	struct soft_peer p;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		dialled(&p, NULL, request_2, sizeof(request_2), refusals[i].reply, 24);
		check_refused(&p, refusals[i].code);
	}
	/* Nobody asked for peer-to-peer. */
	rvcm_soft_tunables_init(&tun);
	tun.peer_to_peer = false;
	dialled(&p, &tun, plain, sizeof(plain), wants, sizeof(wants));
	check_refused(&p, 0x07);
}

/* RFC 5044 alone: no depths, so one READ at a time; the server may answer in revision 1 only. */
static void revision_1_opens_as_well(void **state)
{
	static const uint8_t request[] = { REQ, MARK, 1, 0, 0 };
	static const uint8_t reply[] = { REP, 0, 1, 0, 0 };
	struct rvcm_soft_tunables tun;
	struct soft_peer p;

	(void)state;
	rvcm_soft_tunables_init(&tun);
	tun.mpa_revision = 1;
	dialled(&p, &tun, request, sizeof(request), reply, sizeof(reply));
	soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(p.ops->attach(p.qp), 0);
	p.attached = true;
	count_reads(&p, 1, 1);
	soft_peer_close(&p);
	/* And so may a server that was asked in revision 2. */
	dialled(&p, NULL, request_2, sizeof(request_2), reply, sizeof(reply));
	soft_peer_event(&p, RVCM_DEV_EVENT_ESTABLISHED);
	soft_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_has_its_reply),
		cmocka_unit_test(private_data_of_every_form),
		cmocka_unit_test(a_foreign_opener_sends_first),
		cmocka_unit_test(our_own_kind_waits_for_nobody),
		cmocka_unit_test(each_reply_has_its_beginning),
		cmocka_unit_test(who_is_silent_is_told_again),
		cmocka_unit_test(who_speaks_is_not_told_again),
		cmocka_unit_test(a_message_is_not_interrupted),
		cmocka_unit_test(what_cannot_be_had_is_terminated),
		cmocka_unit_test(revision_1_opens_as_well),
	};

	return cmocka_run_group_tests_name("soft_shake", tests, NULL, NULL);
}

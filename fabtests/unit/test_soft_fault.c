/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each fault that a peer can commit, byte by byte over a bare socket, and the TERMINATE that it
 * gets, byte by byte: code, control bits, the length and headers of the segment that was wrong (RFC
 * 5040 section 4.8). And the other way: each TERMINATE that a peer can send, and what it means
 * here.
 */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <string.h>

#include "base/le.h"

#define RR RVCM_DEV_ACCESS_REMOTE_READ
#define RW RVCM_DEV_ACCESS_REMOTE_WRITE
#define RA RVCM_DEV_ACCESS_REMOTE_ATOMIC

/* Headers of RFC 5041 figures 4 and 5 with RDMAP's byte: T 80, L 40, DV 1; RV 40 and opcode. */
#define TAGGED(ddp, rdmap) ddp, rdmap, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define UNTAGGED(ddp, rdmap, qn, msn, mo) \
	ddp, rdmap, 0, 0, 0, 0, 0, 0, 0, qn, 0, 0, 0, msn, 0, 0, 0, mo

enum quote {
	NONE, /* control 00 */
	DDP,  /* M, D */
	READ, /* M, D, R */
};

/* What is put into the segment: where a memory key, an address, or both belong. */
enum patch {
	PLAIN,
	KEY_AT_2,    /* the STag of a tagged segment, or to invalidate, and its TO at 6 */
	SOURCE,      /* of a read request: STag at 34, TO at 38 */
	ATOMIC_WORD, /* STag at 26, TO at 30 */
};

static const struct fault {
	const char *what;
	uint16_t code;
	enum quote quote;
	uint32_t access; /* to the 1000 bytes */
	enum patch patch;
	uint32_t key_xor;
	int64_t offset; /* from their first */
	uint8_t ulpdu[80];
	uint16_t bytes;
	bool own_kind;
	bool posted;     /* a receive of 8 bytes, and another */
	bool no_receive; /* none, and no patience */
	bool crc;        /* which is then wrong */
	enum rvcm_status status;
} faults[] = {
#define WRONG .status = RVCM_STATUS_PROTOCOL
	/* -- RDMAP: remote protection errors ------------------------------------------------- */
	{ "a READ of an STag that is none", 0x0100, READ, RR, SOURCE, .key_xor = 1,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0), [33] = 10 }, .bytes = 46, WRONG },
	{ "an atomic on an STag that is none", 0x0100, DDP, RA, ATOMIC_WORD, .key_xor = 1,
	  .ulpdu = { UNTAGGED(0x41, 0x4a, 1, 1, 0) }, .bytes = 70, .own_kind = true, WRONG },
	{ "an invalidation of an STag that is none", 0x0100, DDP, RR, KEY_AT_2, .key_xor = 1,
	  .ulpdu = { UNTAGGED(0x41, 0x44, 0, 1, 0) }, .bytes = 20, WRONG },
	{ "a READ before the first byte", 0x0101, READ, RR, SOURCE, .offset = -1,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0), [33] = 10 }, .bytes = 46, WRONG },
	{ "a READ behind the last", 0x0101, READ, RR, SOURCE, .offset = 991,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0), [33] = 10 }, .bytes = 46, WRONG },
	{ "a READ without the right", 0x0102, READ, RW | RA, SOURCE,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0), [33] = 10 }, .bytes = 46, WRONG },
	{ "an atomic without the right", 0x0102, DDP, RW | RR, ATOMIC_WORD,
	  .ulpdu = { UNTAGGED(0x41, 0x4a, 1, 1, 0) }, .bytes = 70, .own_kind = true, WRONG },
	{ "a READ whose end wraps", 0x0104, READ, RR, SOURCE, .offset = INT64_MAX,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0), [33] = 10 }, .bytes = 46, WRONG },
	{ "an invalidation that nobody granted", 0x0109, DDP, RR | RW | RA, KEY_AT_2,
	  .ulpdu = { UNTAGGED(0x41, 0x46, 0, 1, 0) }, .bytes = 20, WRONG },
	/* -- RDMAP: remote operation errors -------------------------------------------------- */
	{ "RDMAP version 0", 0x0205, DDP, .ulpdu = { UNTAGGED(0x41, 0x03, 0, 1, 0) }, .bytes = 20,
	  WRONG },
	{ "RDMAP version 2", 0x0205, DDP, .ulpdu = { TAGGED(0xc1, 0x80) }, .bytes = 20, WRONG },
	{ "an opcode that is none", 0x0206, DDP, .ulpdu = { UNTAGGED(0x41, 0x4c, 0, 1, 0) },
	  .bytes = 18, WRONG },
	{ "a SEND in a tagged segment", 0x0206, DDP, .ulpdu = { TAGGED(0xc1, 0x43) }, .bytes = 20,
	  WRONG },
	{ "a WRITE in an untagged segment", 0x0206, DDP, .ulpdu = { UNTAGGED(0x41, 0x40, 0, 1, 0) },
	  .bytes = 20, WRONG },
	{ "a SEND on the queue of requests", 0x0206, DDP,
	  .ulpdu = { UNTAGGED(0x41, 0x43, 1, 1, 0) }, .bytes = 20, WRONG },
	{ "a READ's response that nobody asked for", 0x0206, DDP, .ulpdu = { TAGGED(0xc1, 0x42) },
	  .bytes = 20, WRONG },
	{ "an atomic's that nobody asked for", 0x0206, DDP,
	  .ulpdu = { UNTAGGED(0x41, 0x4b, 3, 1, 0) }, .bytes = 30, .own_kind = true, WRONG },
	{ "an atomic where there are none", 0x0206, DDP, RA, ATOMIC_WORD,
	  .ulpdu = { UNTAGGED(0x41, 0x4a, 1, 1, 0) }, .bytes = 70, WRONG },
	{ "an atomic of an operation that is none", 0x0206, DDP, RA, ATOMIC_WORD,
	  .ulpdu = { UNTAGGED(0x41, 0x4a, 1, 1, 0), [21] = 1 }, .bytes = 70, .own_kind = true,
	  WRONG },
	{ "immediate data where there is none", 0x0206, DDP,
	  .ulpdu = { UNTAGGED(0x41, 0x48, 0, 1, 0) }, .bytes = 26, WRONG },
	{ "an atomic between two words", 0x0207, DDP, RA, ATOMIC_WORD, .offset = 4,
	  .ulpdu = { UNTAGGED(0x41, 0x4a, 1, 1, 0) }, .bytes = 70, .own_kind = true, WRONG },
	{ "a read request that is short", 0x02ff, DDP, .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0) },
	  .bytes = 45, WRONG },
	{ "a read request that goes on", 0x02ff, DDP, .ulpdu = { UNTAGGED(0x01, 0x41, 1, 1, 0) },
	  .bytes = 46, WRONG },
	{ "a segment shorter than its header", 0x02ff, NONE, .ulpdu = { TAGGED(0xc1, 0x40) },
	  .bytes = 13, WRONG },
	/* -- DDP: tagged buffer errors ------------------------------------------------------- */
	{ "a WRITE to an STag that is none", 0x1100, DDP, RW, KEY_AT_2, .key_xor = 0x100,
	  .ulpdu = { TAGGED(0xc1, 0x40) }, .bytes = 24, WRONG },
	{ "a WRITE without the right", 0x1100, DDP, RR | RA, KEY_AT_2,
	  .ulpdu = { TAGGED(0xc1, 0x40) }, .bytes = 24, WRONG },
	{ "a WRITE before the first byte", 0x1101, DDP, RW, KEY_AT_2, .offset = -1,
	  .ulpdu = { TAGGED(0xc1, 0x40) }, .bytes = 24, WRONG },
	{ "a WRITE behind the last", 0x1101, DDP, RW, KEY_AT_2, .offset = 991,
	  .ulpdu = { TAGGED(0xc1, 0x40) }, .bytes = 24, WRONG },
	{ "a WRITE whose end wraps", 0x1103, DDP, RW, KEY_AT_2, .offset = INT64_MAX,
	  .ulpdu = { TAGGED(0xc1, 0x40) }, .bytes = 24, WRONG },
	{ "DDP version 0, tagged", 0x1104, NONE, .ulpdu = { TAGGED(0xc0, 0x40) }, .bytes = 20,
	  WRONG },
	/* -- DDP: untagged buffer errors ----------------------------------------------------- */
	{ "a queue that is none", 0x1201, DDP, .ulpdu = { UNTAGGED(0x41, 0x43, 4, 1, 0) },
	  .bytes = 20, WRONG },
	{ "a SEND that finds no receive", 0x1202, DDP, .ulpdu = { UNTAGGED(0x41, 0x43, 0, 1, 0) },
	  .bytes = 23, .no_receive = true, .status = RVCM_STATUS_NO_RECEIVE },
	{ "a SEND out of its turn", 0x1203, DDP, .ulpdu = { UNTAGGED(0x41, 0x43, 0, 2, 0) },
	  .bytes = 23, WRONG },
	{ "a read request out of its turn", 0x1203, DDP, .ulpdu = { UNTAGGED(0x41, 0x41, 1, 2, 0) },
	  .bytes = 46, WRONG },
	{ "a SEND that begins in its middle", 0x1204, DDP,
	  .ulpdu = { UNTAGGED(0x41, 0x45, 0, 1, 3) }, .bytes = 23, WRONG },
	{ "a read request that begins in its middle", 0x1204, DDP,
	  .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 1) }, .bytes = 46, WRONG },
	{ "a SEND longer than its receive", 0x1205, DDP, .ulpdu = { UNTAGGED(0x41, 0x43, 0, 1, 0) },
	  .bytes = 27, .posted = true, .status = RVCM_STATUS_LOCAL_LENGTH },
	{ "a read request that is long", 0x1205, DDP, .ulpdu = { UNTAGGED(0x41, 0x41, 1, 1, 0) },
	  .bytes = 47, .status = RVCM_STATUS_LOCAL_LENGTH },
	{ "DDP version 2, untagged", 0x1206, NONE, .ulpdu = { UNTAGGED(0x42, 0x43, 0, 1, 0) },
	  .bytes = 20, WRONG },
	/* -- MPA; 2006 and 2007 are in test_soft_shake.c -------------------------------------- */
	{ "a CRC that does not fit", 0x2002, NONE, .ulpdu = { UNTAGGED(0x41, 0x43, 0, 1, 0) },
	  .bytes = 23, .crc = true, WRONG },
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Codes that this device never sends, and why. */
static const struct unsent {
	uint16_t code;
	const char *why;
} unsent[] = {
	{ 0x0000, "nothing local makes it give up a stream that could still be told" },
	{ 0x0103, "a key is good on every connection of its device" },
	{ 0x01ff, "every protection error has a code of its own" },
	{ 0x0208, "a fault of one stream leaves the others alone" },
	{ 0x0209, "an invalidation that is not granted is a protection error: 0109" },
	{ 0x1000, "as 0000" },
	{ 0x1102, "as 0103" },
	{ 0x2001, "for local use only" },
	{ 0x2003, "markers are never agreed to" },
	{ 0x2004, "a request or reply that is wrong: there is no stream yet to send it on" },
	{ 0x2005, "as 0000" },
	{ 0x2006, "test_soft_shake.c" },
	{ 0x2007, "test_soft_shake.c" },
};

/* -- the device terminates ------------------------------------------------------------------ */

struct rig {
	struct soft_peer p;
	struct rvcm_dev_mr *mr;
	uint8_t data[3000]; /* the middle 1000 are registered */
};

static void up(struct rig *r, const struct fault *f)
{
	const struct soft_peer_conf conf = {
		.pool = !f->posted && !f->no_receive,
		.own_kind = f->own_kind,
		.rnr_timeout_ns = f->no_receive ? 1 : 0,
	};
	const struct rvcm_dev_mr_attr attr = {
		.addr = r->data + 1000,
		.length = 1000,
		.access = f->access | RVCM_DEV_ACCESS_LOCAL_WRITE,
	};
	struct rvcm_dev_sge sge = { .addr = r->data + 1000, .length = 8 };
	const struct rvcm_dev_recv recv = { .n_sge = 1, .sge = &sge };

	soft_peer_open(&r->p, NULL);
	r->p.crc = f->crc;
	soft_peer_up(&r->p, &conf);
	memset(r->data, 0x55, sizeof(r->data));
	assert_int_equal(r->p.ops->mr_reg(r->p.dev, &attr, &r->mr), 0);
	sge.mr = r->mr;
	for (int i = 0; i < 2 && f->posted; i++)
		assert_int_equal(r->p.ops->post_recv(r->p.qp, &recv), 0);
}

static void down(struct rig *r)
{
	for (size_t i = 0; i < sizeof(r->data); i++)
		assert_int_equal(r->data[i], 0x55);
	r->p.ops->mr_dereg(r->mr);
	soft_peer_close(&r->p);
}

static void patch(const struct rig *r, const struct fault *f, uint8_t *ulpdu)
{
	static const struct {
		size_t key, to;
	} at[] = { [KEY_AT_2] = { 2, 6 }, [SOURCE] = { 34, 38 }, [ATOMIC_WORD] = { 26, 30 } };
	uint64_t to = (uintptr_t)(r->data + 1000) + (uint64_t)f->offset;

	if (f->offset == INT64_MAX)
		to = UINT64_MAX - 4;
	if (f->patch == PLAIN)
		return;
	rvcm_be32_put(ulpdu + at[f->patch].key, r->mr->rkey ^ f->key_xor);
	if (f->patch != KEY_AT_2 || ulpdu[0] & 0x80)
		rvcm_be64_put(ulpdu + at[f->patch].to, to);
}

/* The whole ULPDU of the TERMINATE: RFC 5040 figures 7 to 10 over RFC 5041 figure 5. */
static size_t wanted(const struct fault *f, const uint8_t *ulpdu, uint8_t *want)
{
	static const uint8_t control[] = { [NONE] = 0x00, [DDP] = 0xc0, [READ] = 0xe0 };
	const uint8_t header[18] = { UNTAGGED(0x41, 0x47, 2, 1, 0) };
	size_t ddp = ulpdu[0] & 0x80 ? 14 : 18;
	size_t n = 22;

	memcpy(want, header, 18);
	rvcm_be16_put(want + 18, f->code);
	want[20] = control[f->quote];
	want[21] = 0;
	if (f->quote == NONE)
		return n;
	rvcm_be16_put(want + n, f->bytes);
	memcpy(want + n + 2, ulpdu, ddp);
	n += 2 + ddp;
	if (f->quote == READ) {
		memcpy(want + n, ulpdu + 18, 28);
		n += 28;
	}
	return n;
}

static void commit(const struct fault *f)
{
	uint8_t frame[100] = { 0 }, want[100], got[120];
	const struct rvcm_dev_event *ev;
	struct rig r;
	size_t n, fpdu;

	up(&r, f);
	memcpy(frame + 2, f->ulpdu, sizeof(f->ulpdu));
	patch(&r, f, frame + 2);
	rvcm_be16_put(frame, f->bytes);
	soft_peer_write(&r.p, frame, rvcm_soft_mpa_fpdu_len(f->bytes));
	n = wanted(f, frame + 2, want);
	fpdu = rvcm_soft_mpa_fpdu_len(n);
	soft_peer_read(&r.p, got, fpdu);
	assert_int_equal(rvcm_be16_get(got), n);
	assert_memory_equal(got + 2, want, n);
	soft_peer_expect_end(&r.p);
	ev = soft_peer_event(&r.p, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(ev->status, f->status);
	assert_int_equal(ev->vendor_err, 0x10000 | f->code);
	for (uint32_t i = 0; i < r.p.n_wcs; i++)
		if (!(f->status == RVCM_STATUS_LOCAL_LENGTH && i == 0))
			assert_int_equal(r.p.wcs[i].vendor_err, 0x10000 | f->code);
	down(&r);
}

static void each_fault_has_its_terminate(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAULTS; i++) {
		print_message("%04x: %s\n", faults[i].code, faults[i].what);
		commit(&faults[i]);
	}
}

/* Every code is provoked above, or there is a reason why it cannot be. */
static void no_code_is_left_out(void **state)
{
	static const uint16_t codes[] = {
#define RVCM_SOFT_TERM(name, code, quotes, here, there, text) code,
#include "dev/soft/term.def"
#undef RVCM_SOFT_TERM
	};

	(void)state;
	for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++) {
		int provoked = 0, excused = 0;

		for (size_t i = 0; i < FAULTS; i++)
			provoked += faults[i].code == codes[c];
		for (size_t i = 0; i < sizeof(unsent) / sizeof(unsent[0]); i++)
			excused += unsent[i].code == codes[c] && *unsent[i].why;
		assert_true((provoked > 0) != (excused > 0));
	}
}

/* Memory that is gone when its READ is to be answered: the request is quoted as it came. */
static void a_read_that_cannot_be_answered_any_more(void **state)
{
	enum {
		BYTES = 16 << 20
	};
	static uint8_t big[BYTES], small[8];
	static struct soft_peer_frame frame;
	static const struct soft_peer_conf pooled = { .pool = true };
	struct rvcm_dev_mr_attr attr = { .addr = big, .length = BYTES, .access = RR };
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ, .last = true };
	struct rvcm_soft_wire_terminate t;
	struct rvcm_dev_mr *mr[2];
	struct soft_peer p;
	uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];
	size_t got = 0;
	uint16_t term;

	(void)state;
	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &pooled);
	assert_int_equal(p.ops->mr_reg(p.dev, &attr, &mr[0]), 0);
	attr.addr = small;
	attr.length = sizeof(small);
	assert_int_equal(p.ops->mr_reg(p.dev, &attr, &mr[1]), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const struct rvcm_soft_wire_read_req req = {
			.bytes = i ? sizeof(small) : BYTES,
			.source_stag = mr[i]->rkey,
			.source_to = (uintptr_t)(i ? small : big),
		};

		hdr.msn = i + 1;
		rvcm_soft_wire_read_req_encode(&req, body);
		soft_peer_frame(&p, &hdr, body, sizeof(body));
	}
	for (int i = 0; i < 100; i++) /* until the socket is full: the peer does not read */
		soft_peer_pump(&p);
	p.ops->mr_dereg(mr[1]);
	while (got < BYTES) {
		soft_peer_take(&p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_RESP);
		got += frame.bytes;
	}
	soft_peer_expect_terminate(&p, RVCM_SOFT_WIRE_TERM_R_STAG, &t);
	assert_true(t.has_read_req);
	assert_memory_equal(t.read_req, body, sizeof(body));
	assert_int_equal(t.segment_bytes, 46);
	assert_true(rvcm_soft_wire_decode(t.ddp, t.ddp_bytes, &hdr, &term) > 0);
	assert_int_equal(hdr.msn, 2);
	p.ops->mr_dereg(mr[0]);
	soft_peer_close(&p);
}

/* -- the peer terminates -------------------------------------------------------------------- */

static void check_received(uint16_t code, enum rvcm_status status)
{
	static const struct soft_peer_conf posted = { .pool = false };
	const struct rvcm_dev_recv recv = { .wr_id = 9 };
	/* ULPDU of 22 bytes, and two of pad are none. */
	uint8_t frame[28] = { 0, 22, UNTAGGED(0x41, 0x47, 2, 1, 0) };
	const struct rvcm_dev_event *ev;
	struct rvcm_dev_wc wc;
	struct soft_peer p;

	soft_peer_open(&p, NULL);
	soft_peer_up(&p, &posted);
	assert_int_equal(p.ops->post_recv(p.qp, &recv), 0);
	rvcm_be16_put(frame + 20, code);
	soft_peer_write(&p, frame, sizeof(frame));
	ev = soft_peer_event(&p, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(ev->status, status);
	assert_int_equal(ev->vendor_err, 0x10000 | code);
	wc = soft_peer_wc(&p);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, RVCM_STATUS_FLUSHED);
	assert_int_equal(wc.vendor_err, 0x10000 | code);
	soft_peer_expect_end(&p); /* a TERMINATE is not answered */
	soft_peer_close(&p);
}

static void each_terminate_has_its_meaning(void **state)
{
	static const struct {
		uint16_t code;
		enum rvcm_status there;
	} rows[] = {
#define RVCM_SOFT_TERM(name, code, quotes, here, there, text) { code, RVCM_STATUS_##there },
#include "dev/soft/term.def"
#undef RVCM_SOFT_TERM
		/* In no RFC: as its type, or as none. */
		{ 0x0042, RVCM_STATUS_REMOTE_ABORTED }, { 0x01aa, RVCM_STATUS_REMOTE_ACCESS },
		{ 0x02aa, RVCM_STATUS_REMOTE_INVALID }, { 0x11aa, RVCM_STATUS_REMOTE_ACCESS },
		{ 0x12aa, RVCM_STATUS_REMOTE_INVALID }, { 0x20aa, RVCM_STATUS_REMOTE_ABORTED },
		{ 0x7777, RVCM_STATUS_REMOTE_ABORTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_received(rows[i].code, rows[i].there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_has_its_terminate),
		cmocka_unit_test(no_code_is_left_out),
		cmocka_unit_test(a_read_that_cannot_be_answered_any_more),
		cmocka_unit_test(each_terminate_has_its_meaning),
	};

	return cmocka_run_group_tests_name("soft_fault", tests, NULL, NULL);
}

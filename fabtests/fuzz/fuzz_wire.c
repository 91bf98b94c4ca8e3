/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes from a peer through every decoder of the soft device. The first byte chooses the decoder,
 * the others are its input, in memory that ends with them. Beyond not crashing: what is decoded,
 * encoded again, is what was there but for reserved bits, and each refusal has a code that is
 * known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dev/soft/mpa.h"
#include "dev/soft/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert: it must hold in every build. */
static void require(bool holds)
{
	if (!holds)
		abort();
}

static void require_known(uint16_t term)
{
	require(strcmp(rvcm_soft_wire_term_text(term), "unknown") != 0);
}

/* The headers of a segment, refused for term, in a TERMINATE and back. */
static void terminate(uint16_t term, const uint8_t *p, size_t n)
{
	struct rvcm_soft_wire_terminate t, back;
	uint8_t buf[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
	size_t bytes;

	require_known(term);
	rvcm_soft_wire_terminate_fill(&t, term, p, n, n);
	bytes = rvcm_soft_wire_terminate_encode(&t, buf);
	require(bytes <= sizeof(buf));
	require(rvcm_soft_wire_terminate_decode(buf, bytes, &back, &term) == (int)bytes);
	require(back.term == t.term && back.ddp_bytes == t.ddp_bytes);
	require(back.has_read_req == t.has_read_req && back.segment_bytes == t.segment_bytes);
}

static int fixed_body(unsigned int opcode, const uint8_t *p, size_t n, uint8_t *again,
		      uint16_t *term)
{
	struct rvcm_soft_wire_read_req read;
	struct rvcm_soft_wire_atomic_req req;
	struct rvcm_soft_wire_atomic_resp resp;
	uint64_t imm;
	int rc;

	switch (opcode) {
	case RVCM_SOFT_WIRE_READ_REQ:
		rc = rvcm_soft_wire_read_req_decode(p, n, &read, term);
		if (rc > 0)
			rvcm_soft_wire_read_req_encode(&read, again);
		return rc;
	case RVCM_SOFT_WIRE_ATOMIC_REQ:
		rc = rvcm_soft_wire_atomic_req_decode(p, n, &req, term);
		if (rc <= 0)
			return rc;
		rvcm_soft_wire_atomic_result(&req, req.compare);
		rvcm_soft_wire_atomic_req_encode(&req, again);
		memcpy(again, p, 4); /* reserved bits */
		if (req.op == RVCM_SOFT_WIRE_FETCH_ADD)
			memcpy(again + 36, p + 36, 16); /* not used */
		return rc;
	case RVCM_SOFT_WIRE_ATOMIC_RESP:
		rc = rvcm_soft_wire_atomic_resp_decode(p, n, &resp, term);
		if (rc > 0)
			rvcm_soft_wire_atomic_resp_encode(&resp, again);
		return rc;
	default:
		rc = rvcm_soft_wire_imm_decode(p, n, &imm, term);
		if (rc > 0)
			rvcm_soft_wire_imm_encode(imm, again);
		return rc;
	}
}

static void segment(const uint8_t *p, size_t n)
{
	const struct rvcm_soft_wire_opcode_info *info;
	uint8_t again[RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES];
	struct rvcm_soft_wire_hdr hdr;
	uint16_t term;
	int rc = rvcm_soft_wire_decode(p, n, &hdr, &term);

	if (rc < 0)
		terminate(term, p, n);
	if (rc <= 0)
		return;
	info = rvcm_soft_wire_opcode_info(hdr.opcode);
	require(rc == info->header_bytes && (size_t)rc <= n);
	require(rvcm_soft_wire_encode(&hdr, again) == (size_t)rc);
	require(again[0] == (p[0] & 0xc3) && again[1] == (p[1] & 0xcf));
	require(!memcmp(again + 6, p + 6, (size_t)rc - 6));
	p += rc;
	n -= (size_t)rc;
	if (info->body_bytes == 0)
		return;
	rc = fixed_body(hdr.opcode, p, n, again, &term);
	require(rc < 0 || (rc == info->body_bytes && (size_t)rc == n && !memcmp(again, p, n)));
	if (rc < 0)
		terminate(term, p - info->header_bytes, n + info->header_bytes);
}

static void mpa(enum rvcm_soft_mpa_kind kind, const uint8_t *p, size_t n)
{
	struct rvcm_soft_mpa_frame frame;
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	int rc = rvcm_soft_mpa_decode(kind, p, n, &frame);

	if (rc <= 0 && rc != -EOPNOTSUPP)
		return;
	require((rc < 0) == frame.markers);
	require(frame.private_bytes <= n);
	if (rc < 0)
		return;
	require((size_t)rc <= n);
	require(rvcm_soft_mpa_encode(&frame, buf) == rc);
	require(!memcmp(buf, p, 16) && !memcmp(buf + 17, p + 17, 3));
	require(!memcmp(buf + rc - frame.private_bytes, p + rc - frame.private_bytes,
			frame.private_bytes));
}

static void terminate_body(const uint8_t *p, size_t n)
{
	struct rvcm_soft_wire_terminate t;
	uint8_t buf[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
	uint16_t term;
	int rc = rvcm_soft_wire_terminate_decode(p, n, &t, &term);

	require((rc < 0) == (n < RVCM_SOFT_WIRE_TERM_BYTES_MIN));
	if (rc < 0)
		return;
	require((size_t)rc <= n);
	require(rvcm_soft_wire_terminate_encode(&t, buf) <= (size_t)rc);
	require(!memcmp(buf, p, 2));
	rvcm_soft_wire_term_text(t.term);
	rvcm_soft_wire_term_layer_text(t.term);
}

/* A whole FPDU with what should be its trailer. */
static void fpdu(const uint8_t *p, size_t n)
{
	size_t ulpdu;

	if (n < RVCM_SOFT_MPA_HEADER_BYTES)
		return;
	ulpdu = rvcm_soft_mpa_header_decode(p);
	if (rvcm_soft_mpa_fpdu_len(ulpdu) > n)
		return;
	p += RVCM_SOFT_MPA_HEADER_BYTES + ulpdu;
	rvcm_soft_mpa_trailer_check(ulpdu, true, 0, p);
	require(rvcm_soft_mpa_trailer_check(ulpdu, false, 0, p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 0:
		segment(data + 1, size - 1);
		break;
	case 1:
		mpa(RVCM_SOFT_MPA_REQUEST, data + 1, size - 1);
		break;
	case 2:
		mpa(RVCM_SOFT_MPA_REPLY, data + 1, size - 1);
		break;
	case 3:
		terminate_body(data + 1, size - 1);
		break;
	default:
		fpdu(data + 1, size - 1);
	}
	return 0;
}

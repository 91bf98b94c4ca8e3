/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire.h for the layouts. What an opcode is stands in one table; what a terminate code says, in
 * another. Decoders look at a byte only after comparing len with what they need.
 */
#include "dev/soft/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/le.h"

/* The control bytes. */
#define DDP_TAGGED    0x80u
#define DDP_LAST      0x40u
#define DDP_VERSION   0x03u
#define RDMAP_VERSION 0xc0u
#define RDMAP_OPCODE  0x0fu

/* The third byte of a terminate control field (RFC 5040 section 4.8). */
#define TERM_M 0x80u
#define TERM_D 0x40u
#define TERM_R 0x20u

#define TAGGED   RVCM_SOFT_WIRE_TAGGED_BYTES
#define UNTAGGED RVCM_SOFT_WIRE_UNTAGGED_BYTES

static const struct rvcm_soft_wire_opcode_info opcodes[RVCM_SOFT_WIRE_OPCODES] = {
	[RVCM_SOFT_WIRE_WRITE] = { .name = "WRITE", .tagged = true, .header_bytes = TAGGED },
	[RVCM_SOFT_WIRE_READ_REQ] = { .name = "READ_REQ",
				      .qn = RVCM_SOFT_WIRE_QN_READ,
				      .header_bytes = UNTAGGED,
				      .body_bytes = RVCM_SOFT_WIRE_READ_REQ_BYTES },
	[RVCM_SOFT_WIRE_READ_RESP] = { .name = "READ_RESP",
				       .tagged = true,
				       .header_bytes = TAGGED },
	[RVCM_SOFT_WIRE_SEND] = { .name = "SEND", .header_bytes = UNTAGGED },
	[RVCM_SOFT_WIRE_SEND_INV] = { .name = "SEND_INV",
				      .invalidates = true,
				      .header_bytes = UNTAGGED },
	[RVCM_SOFT_WIRE_SEND_SE] = { .name = "SEND_SE",
				     .solicited = true,
				     .header_bytes = UNTAGGED },
	[RVCM_SOFT_WIRE_SEND_SE_INV] = { .name = "SEND_SE_INV",
					 .solicited = true,
					 .invalidates = true,
					 .header_bytes = UNTAGGED },
	[RVCM_SOFT_WIRE_TERMINATE] = { .name = "TERMINATE",
				       .qn = RVCM_SOFT_WIRE_QN_TERM,
				       .header_bytes = UNTAGGED },
	[RVCM_SOFT_WIRE_IMM] = { .name = "IMM",
				 .header_bytes = UNTAGGED,
				 .body_bytes = RVCM_SOFT_WIRE_IMM_BYTES },
	[RVCM_SOFT_WIRE_IMM_SE] = { .name = "IMM_SE",
				    .solicited = true,
				    .header_bytes = UNTAGGED,
				    .body_bytes = RVCM_SOFT_WIRE_IMM_BYTES },
	[RVCM_SOFT_WIRE_ATOMIC_REQ] = { .name = "ATOMIC_REQ",
					.qn = RVCM_SOFT_WIRE_QN_READ,
					.header_bytes = UNTAGGED,
					.body_bytes = RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES },
	[RVCM_SOFT_WIRE_ATOMIC_RESP] = { .name = "ATOMIC_RESP",
					 .qn = RVCM_SOFT_WIRE_QN_ATOMIC_RESP,
					 .header_bytes = UNTAGGED,
					 .body_bytes = RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES },
};

const struct rvcm_soft_wire_opcode_info *rvcm_soft_wire_opcode_info(unsigned int opcode)
{
	return opcode < RVCM_SOFT_WIRE_OPCODES ? &opcodes[opcode] : NULL;
}

static const struct rvcm_soft_wire_term_info terms[] = {
#define RVCM_SOFT_TERM(name_, code_, quotes_, here_, there_, text_) \
	{ .term = (code_),                                          \
	  .quotes = RVCM_SOFT_WIRE_QUOTE_##quotes_,                 \
	  .here = RVCM_STATUS_##here_,                              \
	  .there = RVCM_STATUS_##there_,                            \
	  .text = (text_) },
#include "dev/soft/term.def"
#undef RVCM_SOFT_TERM
};

#define TERMS (sizeof(terms) / sizeof(terms[0]))

static unsigned int term_layer(uint16_t term)
{
	return term >> 12;
}

/* Layer and error type; 0x00 and 0x10 are the local catastrophic errors of RDMAP and DDP. */
static unsigned int term_type(uint16_t term)
{
	return term >> 8;
}

static bool term_is_catastrophic(uint16_t term)
{
	/* This type has no codes: any value will do (RFC 5040 figure 9). */
	return term_type(term) == term_type(RVCM_SOFT_WIRE_TERM_R_CATASTROPHIC) ||
	       term_type(term) == term_type(RVCM_SOFT_WIRE_TERM_D_CATASTROPHIC);
}

const struct rvcm_soft_wire_term_info *rvcm_soft_wire_term_info(uint16_t term)
{
	for (size_t i = 0; i < TERMS; i++)
		if (terms[i].term == term)
			return &terms[i];
	for (size_t i = 0; i < TERMS; i++)
		if (term_type(terms[i].term) == term_type(term))
			return &terms[i];
	return &terms[0];
}

const char *rvcm_soft_wire_term_text(uint16_t term)
{
	const struct rvcm_soft_wire_term_info *info = rvcm_soft_wire_term_info(term);

	return info->term == term || term_is_catastrophic(term) ? info->text : "unknown";
}

const char *rvcm_soft_wire_term_layer_text(uint16_t term)
{
	static const char *const layers[] = { "RDMAP", "DDP", "MPA" };
	unsigned int layer = term_layer(term);

	return layer < sizeof(layers) / sizeof(layers[0]) ? layers[layer] : "unknown";
}

static int refuse(uint16_t *term, uint16_t why)
{
	*term = why;
	return -EPROTO;
}

size_t rvcm_soft_wire_encode(const struct rvcm_soft_wire_hdr *hdr, void *buf)
{
	const struct rvcm_soft_wire_opcode_info *info = rvcm_soft_wire_opcode_info(hdr->opcode);
	uint8_t *p = buf;

	assert(info);
	p[0] = (uint8_t)((info->tagged ? DDP_TAGGED : 0) | (hdr->last ? DDP_LAST : 0) |
			 RVCM_SOFT_WIRE_DDP_VERSION);
	p[1] = (uint8_t)(RVCM_SOFT_WIRE_RDMAP_VERSION << 6 | hdr->opcode);
	if (info->tagged) {
		rvcm_be32_put(p + 2, hdr->stag);
		rvcm_be64_put(p + 6, hdr->to);
		return TAGGED;
	}
	rvcm_be32_put(p + 2, info->invalidates ? hdr->inval_stag : 0);
	rvcm_be32_put(p + 6, info->qn);
	rvcm_be32_put(p + 10, hdr->msn);
	rvcm_be32_put(p + 14, hdr->mo);
	return UNTAGGED;
}

/* The first two bytes: 1 and the opcode's row, 0 = more are needed, or -EPROTO and *term. */
static int decode_control(const uint8_t *p, size_t len,
			  const struct rvcm_soft_wire_opcode_info **info, uint16_t *term)
{
	uint16_t bad_ddp = RVCM_SOFT_WIRE_TERM_D_U_VERSION;
	bool tagged;

	if (len < 1)
		return 0;
	tagged = p[0] & DDP_TAGGED;
	if (tagged)
		bad_ddp = RVCM_SOFT_WIRE_TERM_D_T_VERSION;
	if ((p[0] & DDP_VERSION) != RVCM_SOFT_WIRE_DDP_VERSION)
		return refuse(term, bad_ddp);
	if (len < 2)
		return 0;
	if ((p[1] & RDMAP_VERSION) != RVCM_SOFT_WIRE_RDMAP_VERSION << 6)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_VERSION);
	*info = rvcm_soft_wire_opcode_info(p[1] & RDMAP_OPCODE);
	if (!*info || (*info)->tagged != tagged)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	return 1;
}

/* An untagged header against its opcode. */
static int check_untagged(const struct rvcm_soft_wire_hdr *hdr,
			  const struct rvcm_soft_wire_opcode_info *info, uint16_t *term)
{
	bool single = info->body_bytes > 0 || hdr->opcode == RVCM_SOFT_WIRE_TERMINATE;

	if (hdr->qn >= RVCM_SOFT_WIRE_QNS)
		return refuse(term, RVCM_SOFT_WIRE_TERM_D_QN);
	/* A queue of this stream, so DDP delivers; RDMAP finds an opcode that has no place there.
	 */
	if (hdr->qn != info->qn)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	if (single && hdr->mo != 0)
		return refuse(term, RVCM_SOFT_WIRE_TERM_D_MO);
	if (single && !hdr->last)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
	return 0;
}

int rvcm_soft_wire_decode(const void *buf, size_t len, struct rvcm_soft_wire_hdr *hdr,
			  uint16_t *term)
{
	const uint8_t *p = buf;
	const struct rvcm_soft_wire_opcode_info *info;
	struct rvcm_soft_wire_hdr h = { .opcode = 0 };
	int rc;

	rc = decode_control(p, len, &info, term);
	if (rc <= 0)
		return rc;
	if (len < info->header_bytes)
		return 0;
	h.opcode = p[1] & RDMAP_OPCODE;
	h.last = p[0] & DDP_LAST;
	if (info->tagged) {
		h.stag = rvcm_be32_get(p + 2);
		h.to = rvcm_be64_get(p + 6);
	} else {
		h.inval_stag = info->invalidates ? rvcm_be32_get(p + 2) : 0;
		h.qn = rvcm_be32_get(p + 6);
		h.msn = rvcm_be32_get(p + 10);
		h.mo = rvcm_be32_get(p + 14);
		rc = check_untagged(&h, info, term);
		if (rc < 0)
			return rc;
	}
	*hdr = h;
	return info->header_bytes;
}

/* A body of fixed length. */
static int check_body(size_t len, size_t want, uint16_t *term)
{
	if (len > want)
		return refuse(term, RVCM_SOFT_WIRE_TERM_D_TOO_LONG);
	if (len < want)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
	return (int)want;
}

size_t rvcm_soft_wire_read_req_encode(const struct rvcm_soft_wire_read_req *req, void *buf)
{
	uint8_t *p = buf;

	rvcm_be32_put(p, req->sink_stag);
	rvcm_be64_put(p + 4, req->sink_to);
	rvcm_be32_put(p + 12, req->bytes);
	rvcm_be32_put(p + 16, req->source_stag);
	rvcm_be64_put(p + 20, req->source_to);
	return RVCM_SOFT_WIRE_READ_REQ_BYTES;
}

int rvcm_soft_wire_read_req_decode(const void *buf, size_t len, struct rvcm_soft_wire_read_req *req,
				   uint16_t *term)
{
	const uint8_t *p = buf;
	int rc = check_body(len, RVCM_SOFT_WIRE_READ_REQ_BYTES, term);

	if (rc < 0)
		return rc;
	req->sink_stag = rvcm_be32_get(p);
	req->sink_to = rvcm_be64_get(p + 4);
	req->bytes = rvcm_be32_get(p + 12);
	req->source_stag = rvcm_be32_get(p + 16);
	req->source_to = rvcm_be64_get(p + 20);
	return rc;
}

size_t rvcm_soft_wire_atomic_req_encode(const struct rvcm_soft_wire_atomic_req *req, void *buf)
{
	bool compares = req->op == RVCM_SOFT_WIRE_CMP_SWAP;
	uint8_t *p = buf;

	assert(compares || req->op == RVCM_SOFT_WIRE_FETCH_ADD);
	rvcm_be32_put(p, req->op);
	rvcm_be32_put(p + 4, req->request_id);
	rvcm_be32_put(p + 8, req->stag);
	rvcm_be64_put(p + 12, req->to);
	rvcm_be64_put(p + 20, req->data);
	rvcm_be64_put(p + 28, req->data_mask);
	rvcm_be64_put(p + 36, compares ? req->compare : 0);
	rvcm_be64_put(p + 44, compares ? req->compare_mask : UINT64_MAX);
	return RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES;
}

int rvcm_soft_wire_atomic_req_decode(const void *buf, size_t len,
				     struct rvcm_soft_wire_atomic_req *req, uint16_t *term)
{
	const uint8_t *p = buf;
	int rc = check_body(len, RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES, term);
	uint8_t op;

	if (rc < 0)
		return rc;
	op = p[3] & 0xf; /* the 28 bits before it are reserved */
	if (op != RVCM_SOFT_WIRE_FETCH_ADD && op != RVCM_SOFT_WIRE_CMP_SWAP)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	req->op = op;
	req->request_id = rvcm_be32_get(p + 4);
	req->stag = rvcm_be32_get(p + 8);
	req->to = rvcm_be64_get(p + 12);
	req->data = rvcm_be64_get(p + 20);
	req->data_mask = rvcm_be64_get(p + 28);
	req->compare = rvcm_be64_get(p + 36);
	req->compare_mask = rvcm_be64_get(p + 44);
	return rc;
}

uint64_t rvcm_soft_wire_atomic_result(const struct rvcm_soft_wire_atomic_req *req, uint64_t old)
{
	uint64_t top = req->data_mask;

	if (req->op == RVCM_SOFT_WIRE_FETCH_ADD)
		/* Without the top bits no carry can leave a field; they are added without one. */
		return ((old & ~top) + (req->data & ~top)) ^ ((old ^ req->data) & top);
	if ((req->compare ^ old) & req->compare_mask)
		return old;
	return (old & ~req->data_mask) | (req->data & req->data_mask);
}

size_t rvcm_soft_wire_atomic_resp_encode(const struct rvcm_soft_wire_atomic_resp *resp, void *buf)
{
	uint8_t *p = buf;

	rvcm_be32_put(p, resp->request_id);
	rvcm_be64_put(p + 4, resp->value);
	return RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES;
}

int rvcm_soft_wire_atomic_resp_decode(const void *buf, size_t len,
				      struct rvcm_soft_wire_atomic_resp *resp, uint16_t *term)
{
	const uint8_t *p = buf;
	int rc = check_body(len, RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES, term);

	if (rc < 0)
		return rc;
	resp->request_id = rvcm_be32_get(p);
	resp->value = rvcm_be64_get(p + 4);
	return rc;
}

size_t rvcm_soft_wire_imm_encode(uint64_t imm, void *buf)
{
	rvcm_be64_put(buf, imm);
	return RVCM_SOFT_WIRE_IMM_BYTES;
}

int rvcm_soft_wire_imm_decode(const void *buf, size_t len, uint64_t *imm, uint16_t *term)
{
	int rc = check_body(len, RVCM_SOFT_WIRE_IMM_BYTES, term);

	if (rc < 0)
		return rc;
	*imm = rvcm_be64_get(buf);
	return rc;
}

size_t rvcm_soft_wire_terminate_encode(const struct rvcm_soft_wire_terminate *t, void *buf)
{
	uint8_t *p = buf;
	size_t n = RVCM_SOFT_WIRE_TERM_BYTES_MIN;
	unsigned int control = 0;

	assert(t->ddp_bytes == 0 || t->ddp_bytes == TAGGED || t->ddp_bytes == UNTAGGED);
	if (t->ddp_bytes > 0) {
		control |= TERM_D | (t->segment_bytes > 0 ? TERM_M : 0);
		rvcm_be16_put(p + n, t->segment_bytes);
		memcpy(p + n + 2, t->ddp, t->ddp_bytes);
		n += 2u + t->ddp_bytes;
	}
	if (t->has_read_req) {
		control |= TERM_R;
		memcpy(p + n, t->read_req, sizeof(t->read_req));
		n += sizeof(t->read_req);
	}
	rvcm_be16_put(p, t->term);
	rvcm_be16_put(p + 2, (uint16_t)(control << 8));
	return n;
}

int rvcm_soft_wire_terminate_decode(const void *buf, size_t len, struct rvcm_soft_wire_terminate *t,
				    uint16_t *term)
{
	const uint8_t *p = buf;
	size_t n = RVCM_SOFT_WIRE_TERM_BYTES_MIN, ddp;

	if (len < n)
		return refuse(term, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
	*t = (struct rvcm_soft_wire_terminate) { .term = rvcm_be16_get(p) };
	if (p[2] & TERM_D) {
		if (len < n + 3)
			return (int)n;
		ddp = p[n + 2] & DDP_TAGGED ? TAGGED : UNTAGGED;
		if (len < n + 2 + ddp)
			return (int)n;
		t->segment_bytes = p[2] & TERM_M ? rvcm_be16_get(p + n) : 0;
		t->ddp_bytes = (uint8_t)ddp;
		memcpy(t->ddp, p + n + 2, ddp);
		n += 2 + ddp;
	}
	if (p[2] & TERM_R && len >= n + sizeof(t->read_req)) {
		t->has_read_req = true;
		memcpy(t->read_req, p + n, sizeof(t->read_req));
		n += sizeof(t->read_req);
	}
	return (int)n;
}

void rvcm_soft_wire_terminate_fill(struct rvcm_soft_wire_terminate *t, uint16_t term,
				   const void *ulpdu, size_t len, size_t segment_bytes)
{
	enum rvcm_soft_wire_quote quotes = rvcm_soft_wire_term_info(term)->quotes;
	const uint8_t *p = ulpdu;
	size_t ddp;

	*t = (struct rvcm_soft_wire_terminate) { .term = term };
	if (len < 2 || quotes == RVCM_SOFT_WIRE_QUOTE_NONE)
		return;
	ddp = p[0] & DDP_TAGGED ? TAGGED : UNTAGGED;
	if (len < ddp)
		return;
	t->ddp_bytes = (uint8_t)ddp;
	t->segment_bytes = segment_bytes <= UINT16_MAX ? (uint16_t)segment_bytes : 0;
	memcpy(t->ddp, p, ddp);
	if (quotes != RVCM_SOFT_WIRE_QUOTE_READ || ddp != UNTAGGED ||
	    (p[1] & RDMAP_OPCODE) != RVCM_SOFT_WIRE_READ_REQ || len < ddp + sizeof(t->read_req))
		return;
	t->has_read_req = true;
	memcpy(t->read_req, p + ddp, sizeof(t->read_req));
}

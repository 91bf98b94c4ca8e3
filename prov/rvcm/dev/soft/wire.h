/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of DDP (RFC 5041) and RDMAP (RFC 5040, 7306): what an FPDU of MPA carries. All fields
 * are big-endian on the wire and in host order in the structs.
 *
 *	tagged segment (RFC 5041 figure 4)       untagged segment (RFC 5041 figure 5)
 *	 0  T L rsvd:4 DV:2 | RV:2 rsvd:2 op:4    0  T L rsvd:4 DV:2 | RV:2 rsvd:2 op:4
 *	 2  STag, 4                               2  invalidate STag, or reserved, 4
 *	 6  tagged offset (TO), 8                 6  queue number (QN), 4
 *	14  payload                              10  message sequence number (MSN), 4
 *	                                         14  message offset (MO), 4
 *	                                         18  payload, or an opcode's fixed body
 *
 * A decoder reads at most len bytes at buf and answers > 0: bytes consumed; 0: more bytes are
 *needed (never for bytes that are wrong already); -EPROTO: wrong, and *term is the code to
 *terminate the stream with. Outputs are set on success only, *term on -EPROTO only. Encoders return
 *the bytes written; the constants below say how much room they need. Nothing here allocates or
 *keeps state.
 */
#ifndef RVCM_DEV_SOFT_WIRE_H
#define RVCM_DEV_SOFT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define RVCM_SOFT_WIRE_DDP_VERSION   1u
#define RVCM_SOFT_WIRE_RDMAP_VERSION 1u

#define RVCM_SOFT_WIRE_TAGGED_BYTES      14u
#define RVCM_SOFT_WIRE_UNTAGGED_BYTES    18u
#define RVCM_SOFT_WIRE_HDR_BYTES_MAX     18u
#define RVCM_SOFT_WIRE_READ_REQ_BYTES    28u /* RFC 5040 figure 6 */
#define RVCM_SOFT_WIRE_IMM_BYTES         8u  /* RFC 7306 figure 7 */
#define RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES  52u /* RFC 7306 figure 4 */
#define RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES 12u /* RFC 7306 figure 6 */
#define RVCM_SOFT_WIRE_TERM_BYTES_MIN    4u  /* RFC 5040 figure 7 */
#define RVCM_SOFT_WIRE_TERM_BYTES_MAX    (4u + 2u + 18u + 28u)

/* RDMAP opcodes: RFC 5040 figure 4, RFC 7306 figure 3. */
enum rvcm_soft_wire_opcode {
	RVCM_SOFT_WIRE_WRITE = 0x0,
	RVCM_SOFT_WIRE_READ_REQ = 0x1,
	RVCM_SOFT_WIRE_READ_RESP = 0x2,
	RVCM_SOFT_WIRE_SEND = 0x3,
	RVCM_SOFT_WIRE_SEND_INV = 0x4,
	RVCM_SOFT_WIRE_SEND_SE = 0x5,
	RVCM_SOFT_WIRE_SEND_SE_INV = 0x6,
	RVCM_SOFT_WIRE_TERMINATE = 0x7,
	RVCM_SOFT_WIRE_IMM = 0x8,
	RVCM_SOFT_WIRE_IMM_SE = 0x9,
	RVCM_SOFT_WIRE_ATOMIC_REQ = 0xa,
	RVCM_SOFT_WIRE_ATOMIC_RESP = 0xb,
	RVCM_SOFT_WIRE_OPCODES
};

/* Untagged queues. Each has its own MSN, which begins at 1 (RFC 5041 section 4.3). */
enum rvcm_soft_wire_qn {
	RVCM_SOFT_WIRE_QN_SEND = 0, /* SENDs and immediate data */
	RVCM_SOFT_WIRE_QN_READ = 1, /* read and atomic requests */
	RVCM_SOFT_WIRE_QN_TERM = 2,
	RVCM_SOFT_WIRE_QN_ATOMIC_RESP = 3,
	RVCM_SOFT_WIRE_QNS
};

/* One row per opcode. */
struct rvcm_soft_wire_opcode_info {
	const char *name;
	bool tagged;
	bool solicited;       /* wakes a consumer that waits for solicited events */
	bool invalidates;     /* carries an STag to invalidate */
	uint8_t qn;           /* untagged: the one queue on which it may come */
	uint8_t header_bytes; /* of the DDP header with both control bytes */
	uint8_t body_bytes;   /* > 0: the message is one segment with a body of just this
				 length; 0: payload of any length in any number of segments
				 (TERMINATE: one segment, length by its own control bits) */
};

/* NULL for an opcode that is none. */
const struct rvcm_soft_wire_opcode_info *rvcm_soft_wire_opcode_info(unsigned int opcode);

/* Why a stream is terminated: RVCM_SOFT_WIRE_TERM_ and a name of term.def. */
enum rvcm_soft_wire_term {
#define RVCM_SOFT_TERM(name, code, quotes, here, there, text) RVCM_SOFT_WIRE_TERM_##name = (code),
#include "dev/soft/term.def"
#undef RVCM_SOFT_TERM
};

/* What a TERMINATE takes along of the segment that was wrong. */
enum rvcm_soft_wire_quote {
	RVCM_SOFT_WIRE_QUOTE_NONE,
	RVCM_SOFT_WIRE_QUOTE_DDP,  /* its length and DDP header */
	RVCM_SOFT_WIRE_QUOTE_READ, /* and, if it was one, the read request */
};

/* One row per code. */
struct rvcm_soft_wire_term_info {
	uint16_t term;
	enum rvcm_soft_wire_quote quotes;
	enum rvcm_status here;  /* how the connection ends at who sends it */
	enum rvcm_status there; /* and at who receives it */
	const char *text;
};

/* The code's row, or the one that stands for it (term.def). */
const struct rvcm_soft_wire_term_info *rvcm_soft_wire_term_info(uint16_t term);

/* What a code says, for people; "unknown" for one that is in no RFC. */
const char *rvcm_soft_wire_term_text(uint16_t term);
const char *rvcm_soft_wire_term_layer_text(uint16_t term); /* "RDMAP", "DDP", "MPA", "unknown" */

/* The header of one DDP segment. The fields of the other kind are 0 after decoding. */
struct rvcm_soft_wire_hdr {
	uint8_t opcode;
	bool last;           /* the segment ends its message */
	uint32_t stag;       /* tagged: where to place */
	uint64_t to;         /* tagged */
	uint32_t inval_stag; /* untagged, opcodes that invalidate */
	uint32_t qn;         /* untagged: decoding checks it, encoding takes the opcode's */
	uint32_t msn;        /* untagged */
	uint32_t mo;         /* untagged: where in the message this payload belongs */
};

/* buf: RVCM_SOFT_WIRE_HDR_BYTES_MAX. hdr->opcode must be one of the enum. */
size_t rvcm_soft_wire_encode(const struct rvcm_soft_wire_hdr *hdr, void *buf);

/*
 * Checks, in this order: DDP version (D_T_VERSION, D_U_VERSION), RDMAP version (R_VERSION), opcode,
 * and tagged or not as the opcode needs (R_OPCODE); then with the whole header: a queue number that
 * is none (D_QN) or not the opcode's (R_OPCODE); for messages of one segment MO 0 (D_MO) and the
 * last flag (R_OP_UNSPECIFIED). Reserved bits are ignored. MSN, offsets and memory are the
 * receiver's to check, and whether this link offers the opcode. RDMAP version 0, the RDMA
 * Consortium's, is refused: it goes with MPA revision 0, which is refused too (RFC 5040
 * section 4.1).
 */
int rvcm_soft_wire_decode(const void *buf, size_t len, struct rvcm_soft_wire_hdr *hdr,
			  uint16_t *term);

/*
 * The bodies below get len = the whole payload of their segment: a wrong length is an error, not a
 * need for more (too long: D_TOO_LONG, too short: R_OP_UNSPECIFIED).
 */

/* RFC 5040 section 4.4: write bytes from the source, at the peer, to the sink, at the asker's. */
struct rvcm_soft_wire_read_req {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t bytes;
	uint32_t source_stag;
	uint64_t source_to;
};

size_t rvcm_soft_wire_read_req_encode(const struct rvcm_soft_wire_read_req *req, void *buf);
int rvcm_soft_wire_read_req_decode(const void *buf, size_t len, struct rvcm_soft_wire_read_req *req,
				   uint16_t *term);

/* RFC 7306 figures 4 and 5. For FETCH_ADD compare and compare_mask are sent as 0 and all ones. */
enum rvcm_soft_wire_atomic {
	RVCM_SOFT_WIRE_FETCH_ADD = 0x0,
	RVCM_SOFT_WIRE_CMP_SWAP = 0x2,
};

struct rvcm_soft_wire_atomic_req {
	uint8_t op; /* enum rvcm_soft_wire_atomic; another: R_OPCODE */
	uint32_t request_id;
	uint32_t stag;
	uint64_t to;
	uint64_t data;      /* the addend, or what to swap in */
	uint64_t data_mask; /* FETCH_ADD: bits that end a field, 0 = one field of 64 bits;
			       CMP_SWAP: bits to replace, all ones = all */
	uint64_t compare;
	uint64_t compare_mask; /* bits to compare, all ones = all */
};

size_t rvcm_soft_wire_atomic_req_encode(const struct rvcm_soft_wire_atomic_req *req, void *buf);
int rvcm_soft_wire_atomic_req_decode(const void *buf, size_t len,
				     struct rvcm_soft_wire_atomic_req *req, uint16_t *term);

/* What the request leaves in memory that held old (RFC 7306 sections 5.1.1 and 5.1.2). */
uint64_t rvcm_soft_wire_atomic_result(const struct rvcm_soft_wire_atomic_req *req, uint64_t old);

struct rvcm_soft_wire_atomic_resp {
	uint32_t request_id;
	uint64_t value; /* what was there before */
};

size_t rvcm_soft_wire_atomic_resp_encode(const struct rvcm_soft_wire_atomic_resp *resp, void *buf);
int rvcm_soft_wire_atomic_resp_decode(const void *buf, size_t len,
				      struct rvcm_soft_wire_atomic_resp *resp, uint16_t *term);

/* Immediate data: 8 bytes; as a number they are big-endian between our peers. */
size_t rvcm_soft_wire_imm_encode(uint64_t imm, void *buf);
int rvcm_soft_wire_imm_decode(const void *buf, size_t len, uint64_t *imm, uint16_t *term);

/*
 * The body of a TERMINATE: a code, and where it applies the headers of the segment that was wrong.
 * A TERMINATE is never answered, so decoding is lenient: an error only if the code is not there
 * (R_OP_UNSPECIFIED, for the log), and a header that the control bits promise but the body has not
 * counts as absent. (The kernel's siw sets R without a read request.)
 */
struct rvcm_soft_wire_terminate {
	uint16_t term;
	bool has_read_req;      /* R bit */
	uint8_t ddp_bytes;      /* D bit: 14 tagged, 18 untagged, 0 = none */
	uint16_t segment_bytes; /* with D: ULPDU length of the segment; 0 = not known (M unset) */
	uint8_t ddp[RVCM_SOFT_WIRE_HDR_BYTES_MAX];
	uint8_t read_req[RVCM_SOFT_WIRE_READ_REQ_BYTES];
};

/* buf: RVCM_SOFT_WIRE_TERM_BYTES_MAX. */
size_t rvcm_soft_wire_terminate_encode(const struct rvcm_soft_wire_terminate *t, void *buf);
int rvcm_soft_wire_terminate_decode(const void *buf, size_t len, struct rvcm_soft_wire_terminate *t,
				    uint16_t *term);

/*
 * Fills *t for a segment that was found wrong: its ULPDU was segment_bytes long, and len bytes from
 * its start are at hand (0: the error has no segment). Includes the headers that RFC 5040 figure 10
 * asks for, as far as they are at hand.
 */
void rvcm_soft_wire_terminate_fill(struct rvcm_soft_wire_terminate *t, uint16_t term,
				   const void *ulpdu, size_t len, size_t segment_bytes);

#endif

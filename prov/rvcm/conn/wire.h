/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What conn puts on a link, wire format version 1. Everything is little-endian, fixed-size and
 * validated before use. DESIGN.md argues the format; here are the layouts.
 *
 * A connection begins with the private data of the CM request and reply (struct
 * rvcm_wire_handshake, the 56 bytes that IB and RoCE carry). Then the opener sends HELLO and
 * the acceptor answers with its HELLO; nothing else is believed before the other side's HELLO. All
 * messages begin with struct rvcm_wire_frame.
 */
#ifndef RVCM_CONN_WIRE_H
#define RVCM_CONN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/le.h"

#define RVCM_WIRE_MAGIC   0xacu /* high byte of rvcm_wire_handshake.version */
#define RVCM_WIRE_VERSION 1u    /* its low byte */

#define RVCM_WIRE_MAC_BYTES   8u
#define RVCM_WIRE_NONCE_BYTES 16u

enum rvcm_wire_role {
	RVCM_WIRE_REQUEST = 1,
	RVCM_WIRE_REPLY = 2,
	RVCM_WIRE_REJECT = 3,
};

/* rvcm_wire_handshake.flags: the role in the low two bits, then: */
enum rvcm_wire_flag {
	RVCM_WIRE_RECOVERY = 1u << 2, /* the sender can recover: the conn outlives its link */
	RVCM_WIRE_OWN = 1u << 3,      /* its sender opened the first link of the conn: see begun */
	RVCM_WIRE_ANEW = 1u << 4,     /* the sender knows of no link: do not answer SHARED, BUSY */
};

/* Why a request is rejected; in rvcm_wire_handshake.caps of a REJECT. */
enum rvcm_wire_reason {
	RVCM_WIRE_REASON_NONE = 0,
	RVCM_WIRE_REASON_VERSION = 1,  /* not this wire format */
	RVCM_WIRE_REASON_KEY = 2,      /* the MAC does not match: another job key */
	RVCM_WIRE_REASON_CROSSED = 3,  /* our own request to you goes first: wait for it */
	RVCM_WIRE_REASON_STALE = 4,    /* epoch or incarnation is behind what we know */
	RVCM_WIRE_REASON_NAME = 5,     /* your name is ours, or malformed */
	RVCM_WIRE_REASON_RESOURCE = 6, /* out of memory, descriptors or queue pairs */
	RVCM_WIRE_REASON_CLOSING = 7,  /* the endpoint is being closed */
	RVCM_WIRE_REASON_MALFORMED = 8,
	RVCM_WIRE_REASON_SHARED = 9, /* there is a link between our carriers: use it; see slot */
	RVCM_WIRE_REASON_BUSY = 10,  /* another request of yours is in the way: try again */
	RVCM_WIRE_REASON_LATE = 11,  /* of BYE: your HELLO has not come in time */
	RVCM_WIRE_REASON_GONE = 12,  /* the conn that you mean is no more */
	RVCM_WIRE_REASONS
};

/*
 * address: the opener's name in a REQUEST (IPv4 as v4-mapped); the acceptor's nonce in a REPLY, so
 * that a recorded exchange is worthless against it.
 * mac: SipHash-2-4 under the job key over the structure with mac zero; a REPLY's goes on over the
 * REQUEST it answers, and so does that of a REJECT that says SHARED or GONE; other REJECTs' do not.
 * slot: the sender's endpoint. SHARED: the endpoint that was called.
 * begun: which conn the link goes on with, by the epoch of the link that began it; 0 = one begins.
 * heard: of a REQUEST, the newest epoch with which a link of the receiver's has proved itself to
 * the sender. So who has opened a conn, and the sender does not go on with it, knows whether it was
 * given up, or never heard of.
 * window: messages that the sender grants to a conn that begins; of a REQUEST that goes on with one
 * the receiver's endpoint that this is with.
 */
struct rvcm_wire_handshake {
	uint8_t version[2]; /* RVCM_WIRE_VERSION | RVCM_WIRE_MAGIC << 8 */
	uint8_t flags;
	uint8_t link;    /* index in the conn */
	uint8_t caps[2]; /* enum rvcm_dev_cap, low 16 bits */
	uint8_t port[2]; /* of the sender's name */
	uint8_t address[16];
	uint8_t mac[RVCM_WIRE_MAC_BYTES];
	uint8_t incarnation[4];      /* of the sender's side: random, never 0 */
	uint8_t peer_incarnation[4]; /* as the sender knows it; 0 = it does not */
	uint8_t epoch[4];            /* of the attempt: above all before it; REPLY: see DESIGN.md */
	uint8_t begun[4];
	uint8_t heard[4];
	uint8_t window[2];
	uint8_t slot[2];
};

_Static_assert(sizeof(struct rvcm_wire_handshake) == 56, "fits the private data of IB and RoCE");
_Static_assert(_Alignof(struct rvcm_wire_handshake) == 1, "has no padding");

enum rvcm_wire_kind {
	RVCM_WIRE_HELLO = 1,     /* control: struct rvcm_wire_hello follows */
	RVCM_WIRE_DATA = 2,      /* takes a credit and a sequence number */
	RVCM_WIRE_ACK = 3,       /* control: window and ack; an answer: struct rvcm_wire_ack too */
	RVCM_WIRE_HEARTBEAT = 4, /* control: asks for an ACK that confirms */
	RVCM_WIRE_BYE = 5,       /* control: the sender closes; seq is its last + 1 */
	RVCM_WIRE_MARKER = 6,    /* control: evidence for RMA writes, one on each link used */
	RVCM_WIRE_PATH = 7,  /* like DATA: src_slot has that name; struct rvcm_wire_path follows */
	RVCM_WIRE_END = 8,   /* like DATA: src_slot has closed, nothing more of it comes */
	RVCM_WIRE_ENDED = 9, /* like DATA: the answer to END, nothing of it is used any more */
	RVCM_WIRE_WHO = 10,  /* like DATA: is dst_slot open? The answer is HERE, or END */
	RVCM_WIRE_HERE = 11, /* like DATA: src_slot is, behind all that others have said before */
	RVCM_WIRE_PARK = 12, /* control: may the link be closed, until one side has use for it? */
	RVCM_WIRE_PARKED = 13, /* control: the answer, yes: who has asked may close it */
	RVCM_WIRE_STAYS = 14,  /* control: the answer, no */
	RVCM_WIRE_KEPT = 15, /* control: to who has said PARKED, the link is not closed after all */
};

/*
 * The header of every message. DATA and all from PATH on: seq is its number; control: the next
 * one to be used. ack: the next sequence number expected from the receiver of this frame, so all
 * before it are accepted. window: how many messages from ack on may be outstanding. Sequence
 * numbers count from 0 modulo 2^32 and are per conn. Slots are 0 in control frames, but HELLO's:
 * see struct rvcm_wire_hello.
 */
struct rvcm_wire_frame {
	uint8_t kind;
	uint8_t flags; /* 0, or of DATA RVCM_WIRE_KEEP or _AT_ONCE */
	uint8_t window[2];
	uint8_t seq[4];
	uint8_t ack[4];
	uint8_t src_slot[2]; /* endpoint slots: which endpoint of the carrier */
	uint8_t dst_slot[2];
};

_Static_assert(sizeof(struct rvcm_wire_frame) == 16, "frame header");

#define RVCM_WIRE_KEEP    1u /* of DATA with 16 bytes or more: remember its head, for bare ones */
#define RVCM_WIRE_AT_ONCE 2u /* of DATA: its sender waits for the acknowledgement */

/*
 * A bare message (bare.h) is a SEND with an immediate of 4 bytes, and begins behind the head: the
 * frame header and 16 bytes of the body. The immediate has the low bits of ack, and above them the
 * low 21 of the number at that offset of the head.
 */
#define RVCM_WIRE_BARE_BYTES    32u
#define RVCM_WIRE_BARE_ACK_BITS 11u
#define RVCM_WIRE_BARE_VARY_AT  24u

static inline void rvcm_wire_kind_put(struct rvcm_wire_frame *frame, enum rvcm_wire_kind kind)
{
	rvcm_le16_put(&frame->kind, (uint16_t)kind); /* and no flags */
}

/* It is of that kind, and has no flags. */
static inline bool rvcm_wire_is(const struct rvcm_wire_frame *frame, enum rvcm_wire_kind kind)
{
	return rvcm_le16_get(&frame->kind) == kind;
}

/* Both numbers in one, for comparing. */
static inline uint32_t rvcm_wire_slots_of(uint16_t src, uint16_t dst)
{
	return src | (uint32_t)dst << 16;
}

static inline void rvcm_wire_slots_put(struct rvcm_wire_frame *frame, uint32_t slots)
{
	rvcm_le32_put((uint8_t *)frame + offsetof(struct rvcm_wire_frame, src_slot), slots);
}

static inline uint32_t rvcm_wire_slots(const struct rvcm_wire_frame *frame)
{
	return rvcm_wire_slots_of(rvcm_le16_get(frame->src_slot), rvcm_le16_get(frame->dst_slot));
}

/*
 * mac: SipHash-2-4 under the job key over role (one byte, REQUEST for the opener's and REPLY for
 * the acceptor's), the REQUEST, the REPLY, and the opener's nonce. rails follow: 24 bytes each
 * (address 16, port 2, reserved 2, scope 4).
 *
 * The four bytes of its frame's slots are the longest message that its sender takes, as one number
 * (low half first); 0 stands for what all take, RVCM_CONN_MESSAGE_FLOOR.
 */
struct rvcm_wire_hello {
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES]; /* fresh; the acceptor's echoes the opener's */
	uint8_t mac[RVCM_WIRE_MAC_BYTES];
	uint8_t pid[4]; /* for people: who the peer is */
	uint8_t n_rails[2];
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct rvcm_wire_hello) == 32, "hello");

struct rvcm_wire_rail {
	uint8_t address[16];
	uint8_t port[2]; /* not 0 */
	uint8_t reserved[2];
	uint8_t scope[4]; /* 0 */
};

_Static_assert(sizeof(struct rvcm_wire_rail) == 24, "rail");

/*
 * The body of an ACK that answers a HEARTBEAT, and of BYE. Every message before confirmed was taken
 * by an endpoint that was open; one behind it may have been accepted by the link, and dropped.
 */
struct rvcm_wire_ack {
	uint8_t imm_seen[4]; /* 0 in version 1 */
	uint8_t confirmed[4];
};

_Static_assert(sizeof(struct rvcm_wire_ack) == 8, "ack");

/*
 * The body of END: of what dst_slot has sent to src_slot every message before confirmed was taken.
 * The numbers are those of one conn, which that epoch began; own: the sender has opened it.
 */
struct rvcm_wire_end {
	uint8_t imm_seen[4]; /* 0 in version 1 */
	uint8_t confirmed[4];
	uint8_t begun[4];
	uint8_t own; /* 0 or 1 */
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct rvcm_wire_end) == 16, "end");

/* The body of a BYE that stands in the place of an acceptor's HELLO. */
struct rvcm_wire_bye {
	uint8_t reason[2]; /* enum rvcm_wire_reason */
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct rvcm_wire_bye) == 4, "bye");

/* The name of an endpoint: address 0 stands for that of its carrier, as known to the receiver. */
struct rvcm_wire_path {
	uint8_t address[16]; /* IPv4 as v4-mapped */
	uint8_t port[2];
	uint8_t reserved[6];
};

_Static_assert(sizeof(struct rvcm_wire_path) == 24, "path");

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What proto puts behind conn's frame header, wire format version 1 (RVCM_WIRE_VERSION covers
 * both). Little-endian, fixed-size, validated before use.
 *
 *   EAGER      hdr [data 8] [pad] payload      payload = the rest of the message
 *   RTS        hdr [data 8] rts [rail...] [payload]  the receiver reads, or asks
 *   FIN        hdr fin                         it has read, or has all; op_id is the RTS's.
 *                                              None if all was asked to be written
 *   EAGER_OFF  hdr                             receiver's budget is used up: send RTS only
 *   EAGER_ON   hdr                             eager again
 *   ASK        hdr ask [place...]              receiver: write that RTS's payload there, or
 *                                              send it in PIECEs
 *   PIECE      hdr payload                     the next bytes of the payload, at least 1
 *   WRITTEN    hdr written                     the next bytes are in their places
 *   KEY_GET    hdr key_get                     what is the memory of that key?
 *   KEY        hdr key [rail...]               this, or why it is not told
 *   KEY_GONE   hdr                             it is not used any more; op_id is the KEY_GET's
 *   KEY_LEFT   hdr                             nor is it: the answer to that
 *   WRITE_DATA hdr [data 8] write_data         the bytes of an RMA write are in their places
 */
#ifndef RVCM_PROTO_MESSAGE_H
#define RVCM_PROTO_MESSAGE_H

#include <stdint.h>

enum rvcm_message_op {
	RVCM_MESSAGE_EAGER = 1,
	RVCM_MESSAGE_RTS = 2,
	RVCM_MESSAGE_FIN = 3,
	RVCM_MESSAGE_EAGER_OFF = 4,
	RVCM_MESSAGE_EAGER_ON = 5,
	RVCM_MESSAGE_ASK = 6,
	RVCM_MESSAGE_PIECE = 7,
	RVCM_MESSAGE_WRITTEN = 8,
	RVCM_MESSAGE_KEY_GET = 9,
	RVCM_MESSAGE_KEY = 10,
	RVCM_MESSAGE_WRITE_DATA = 11,
	RVCM_MESSAGE_KEY_GONE = 14,
	RVCM_MESSAGE_KEY_LEFT = 15,
};

enum rvcm_message_flag {
	RVCM_MESSAGE_TAGGED = 1u << 0,  /* else a message for fi_recv */
	RVCM_MESSAGE_CQ_DATA = 1u << 1, /* 8 bytes of CQ data follow the header */
};

struct rvcm_message_hdr {
	uint8_t op;
	uint8_t flags;
	uint8_t pad; /* EAGER: bytes before the payload that say nothing; else 0 */
	uint8_t reserved;
	uint8_t op_id[4]; /* RTS, FIN, ASK, PIECE, WRITTEN: the sender's operation; KEY_GET, KEY,
			     KEY_GONE, KEY_LEFT: the asker's number for the key; else 0 */
	uint8_t tag[8];   /* 0 unless TAGGED */
};

_Static_assert(sizeof(struct rvcm_message_hdr) == 16, "message header");

/* A payload that is sent from where it lies begins at a multiple of this in the stream (lend.c). */
#define RVCM_MESSAGE_ALIGN   64u
#define RVCM_MESSAGE_PAD_MAX (RVCM_MESSAGE_ALIGN - 1)

/*
 * With rails and without writes nothing follows; else the beginning of the payload. With both the
 * receiver reads a part, the last one, and asks for what comes before that.
 */
struct rvcm_message_rts {
	uint8_t length[8];
	uint8_t n_rails[2]; /* of the sender, on which the data can be read; 0 = on none */
	uint8_t writes;     /* 1: the sender will write it to where an ASK says; else 0 */
	uint8_t reserved[5];
};

_Static_assert(sizeof(struct rvcm_message_rts) == 16, "rendezvous request");

/* Of a sender's RTS, so many at most are without their FIN: who has more of them breaks the rules.
 */
#define RVCM_MESSAGE_ANNOUNCED_MAX (1u << 21)

/*
 * One rail: the sender's device (index in its handshake's order), and what to read there. The first
 * is link 0's; version 1 sends no other.
 */
struct rvcm_message_rail {
	uint8_t address[8];
	uint8_t rkey[4];
	uint8_t rail[2];
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct rvcm_message_rail) == 16, "rail");

struct rvcm_message_fin {
	uint8_t status[4]; /* enum rvcm_status as the receiver saw it; 0 = all is there */
	uint8_t reserved[4];
};

_Static_assert(sizeof(struct rvcm_message_fin) == 8, "rendezvous end");

struct rvcm_message_ask {
	uint8_t bytes[8]; /* how many, from the first on: 1 to the RTS's length */
};

_Static_assert(sizeof(struct rvcm_message_ask) == 8, "rendezvous that is asked for");

/* What an ASK may have, if the RTS had writes: where the payload goes that the RTS had not. */
#define RVCM_MESSAGE_PLACES_MAX 4u

struct rvcm_message_place {
	uint8_t address[8];
	uint8_t bytes[8]; /* not 0 */
	uint8_t rkey[4];
	uint8_t rail[2]; /* the receiver's device, on which rkey is good */
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct rvcm_message_place) == 24, "place");

struct rvcm_message_written {
	uint8_t bytes[8]; /* not 0: so many more are there */
};

_Static_assert(sizeof(struct rvcm_message_written) == 8, "what has been written");

struct rvcm_message_key_get {
	uint8_t key[8]; /* the owner's: fi_mr_key(3) */
};

_Static_assert(sizeof(struct rvcm_message_key_get) == 8, "key that is asked for");

enum rvcm_message_access {
	RVCM_MESSAGE_READ = 1u << 0,  /* peers may read the memory */
	RVCM_MESSAGE_WRITE = 1u << 1, /* and write to it */
};

/* Rails follow, on which it can be used; version 1 has one, unless status says why not. */
struct rvcm_message_key {
	uint8_t status[4]; /* enum rvcm_status; if it is not 0, the rest is */
	uint8_t access;    /* enum rvcm_message_access */
	uint8_t reserved;
	uint8_t n_rails[2];
	uint8_t base[8]; /* what an operation's address is that begins with its first byte */
	uint8_t length[8];
};

_Static_assert(sizeof(struct rvcm_message_key) == 24, "memory of a key");

struct rvcm_message_write_data {
	uint8_t bytes[8]; /* of the write, until now; with CQ data: all */
};

_Static_assert(sizeof(struct rvcm_message_write_data) == 8, "what an RMA write has written");

#endif

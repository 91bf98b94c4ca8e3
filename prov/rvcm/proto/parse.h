/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a peer's message to a checked description of it. Pure, any thread, and nothing
 * but this reads a message: what it lets through may be relied on.
 */
#ifndef RVCM_PROTO_PARSE_H
#define RVCM_PROTO_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/le.h"
#include "base/status.h"
#include "proto/message.h"

/* Fields that the op does not have are 0. Pointers point into the message. */
struct rvcm_parse {
	enum rvcm_message_op op;
	uint32_t flags; /* enum rvcm_message_flag */
	uint32_t pad;
	uint32_t op_id; /* RTS, FIN, ASK, PIECE, WRITTEN, KEY_GET, KEY, KEY_GONE, KEY_LEFT: not 0 */
	uint32_t n_rails;  /* KEY: not 0 if status is OK, else 0 */
	uint32_t n_places; /* of ASK; their bytes add up to no more than length */
	uint64_t tag;
	uint64_t data;   /* the application's CQ data */
	uint64_t length; /* EAGER, RTS, PIECE: of the payload; every rail's address + length fits;
			  * ASK: bytes that are asked for; WRITTEN: that are there; PIECE, ASK,
			  * WRITTEN: not 0. KEY: of the memory; base + length and every rail's
			  * address + length fit; WRITE_DATA: that are there */
	const uint8_t *payload; /* EAGER, PIECE, RTS */
	size_t early;           /* RTS: bytes of payload, no more than length; with rails: 0 */
	bool writes;            /* RTS */
	const struct rvcm_message_rail *rails;
	const struct rvcm_message_place *places;
	enum rvcm_status status; /* FIN, KEY; GENERAL for a number not known here */
	uint64_t key;            /* KEY_GET */
	uint64_t base;           /* KEY */
	uint32_t access;         /* KEY: enum rvcm_message_access */
};

/*
 * What nearly every message is: eager, with a tag, unpadded. Of these there are two, without the
 * application's data and with it; the bytes in front of the payload tell them apart.
 */
#define RVCM_PARSE_PLAIN 16u
#define RVCM_PARSE_DATA  24u
_Static_assert(sizeof(struct rvcm_message_hdr) == RVCM_PARSE_PLAIN, "the header");
_Static_assert(RVCM_PARSE_DATA - RVCM_PARSE_PLAIN == sizeof(uint64_t), "and the data");

struct rvcm_parse_plain {
	uint32_t flags; /* enum rvcm_message_flag */
	uint64_t tag;
	uint64_t data; /* 0 = none */
	size_t length;
	const uint8_t *payload;
};

/* Is it the one with so many bytes in front, and sound? Its first 8 are op, flags, nothing else. */
static inline bool rvcm_parse_is_plain(const uint8_t *bytes, size_t n, size_t front)
{
	uint64_t word = RVCM_MESSAGE_EAGER | RVCM_MESSAGE_TAGGED << 8;

	if (front == RVCM_PARSE_DATA)
		word |= RVCM_MESSAGE_CQ_DATA << 8;
	return n >= front && rvcm_le64_get(bytes) == word;
}

static inline uint64_t rvcm_parse_tag(const uint8_t *bytes)
{
	return rvcm_le64_get(bytes + offsetof(struct rvcm_message_hdr, tag));
}

/* Then this is what it says. */
static inline void rvcm_parse_plain(const uint8_t *bytes, size_t n, size_t front,
				    struct rvcm_parse_plain *out)
{
	bool has_data = front == RVCM_PARSE_DATA;

	out->flags = RVCM_MESSAGE_TAGGED | (has_data ? RVCM_MESSAGE_CQ_DATA : 0);
	out->tag = rvcm_parse_tag(bytes);
	out->data = has_data ? rvcm_le64_get(bytes + sizeof(struct rvcm_message_hdr)) : 0;
	out->length = n - front;
	out->payload = bytes + front;
}

/* Returns NULL and fills *out, or says what is wrong with the message. */
const char *rvcm_parse_message(const uint8_t *bytes, size_t n, struct rvcm_parse *out);

#endif

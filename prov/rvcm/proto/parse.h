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
	uint32_t op_id; /* RTS, FIN: not 0 */
	uint32_t n_rails;
	uint64_t tag;
	uint64_t data;          /* the application's CQ data */
	uint64_t length;        /* EAGER, RTS: of the payload; every rail's address + length fits */
	const uint8_t *payload; /* EAGER */
	const struct rvcm_message_rail *rails;
	enum rvcm_status status; /* FIN; GENERAL for a number not known here */
};

/* What nearly every message is: eager, with a tag, with the application's data or without,
 * unpadded. */
struct rvcm_parse_plain {
	uint32_t flags; /* enum rvcm_message_flag */
	uint64_t tag;
	uint64_t data; /* 0 = none */
	size_t length;
	const uint8_t *payload;
};

/*
 * True: it is one of those, and sound, and *out is set. False: it may be anything, see below. The
 * first 8 bytes are op, flags, and nothing else.
 */
static inline bool rvcm_parse_plain(const uint8_t *bytes, size_t n, struct rvcm_parse_plain *out)
{
	const uint64_t plain = RVCM_MESSAGE_EAGER | RVCM_MESSAGE_TAGGED << 8;
	const uint64_t with_data = plain | RVCM_MESSAGE_CQ_DATA << 8;
	size_t head = sizeof(struct rvcm_message_hdr);
	uint64_t word;

	if (n < head)
		return false;
	word = rvcm_le64_get(bytes);
	out->flags = RVCM_MESSAGE_TAGGED;
	out->data = 0;
	if (word == with_data && n >= head + sizeof(out->data)) {
		out->flags |= RVCM_MESSAGE_CQ_DATA;
		out->data = rvcm_le64_get(bytes + head);
		head += sizeof(out->data);
	} else if (word != plain) {
		return false;
	}
	out->tag = rvcm_le64_get(bytes + offsetof(struct rvcm_message_hdr, tag));
	out->length = n - head;
	out->payload = bytes + head;
	return true;
}

/* Returns NULL and fills *out, or says what is wrong with the message. */
const char *rvcm_parse_message(const uint8_t *bytes, size_t n, struct rvcm_parse *out);

#endif

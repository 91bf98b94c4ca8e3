/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing message headers; parse.h is the other direction. */
#ifndef RVCM_PROTO_PUT_H
#define RVCM_PROTO_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/le.h"
#include "proto/message.h"
#include "proto/proto.h"

#define RVCM_PUT_DATA_BYTES 8u

/* A completion's flags, a message's, an operation's: the same two bits. */
#define RVCM_PUT_FLAGS ((uint32_t)RVCM_EP_TAGGED | (uint32_t)RVCM_EP_CQ_DATA)
_Static_assert((int)RVCM_EP_TAGGED == (int)RVCM_MESSAGE_TAGGED, "same bit");
_Static_assert((int)RVCM_EP_CQ_DATA == (int)RVCM_MESSAGE_CQ_DATA, "same bit");

/* The bytes before the payload or the body, with these flags of an operation. */
static inline size_t rvcm_put_bytes(uint32_t flags)
{
	return sizeof(struct rvcm_message_hdr) +
	       (flags & RVCM_EP_CQ_DATA ? RVCM_PUT_DATA_BYTES : 0);
}

/* The payload that a message of so many bytes has room for, whatever its flags. */
static inline size_t rvcm_put_room(size_t bytes)
{
	return bytes - sizeof(struct rvcm_message_hdr) - RVCM_PUT_DATA_BYTES;
}

/* Writes rvcm_put_bytes(flags); data counts only if the flags say so. Returns what follows. */
static inline uint8_t *rvcm_put_header(uint8_t *buf, enum rvcm_message_op op, uint32_t flags,
				       uint32_t op_id, uint64_t tag, uint64_t data)
{
	/* op, flags, no pad, reserved, op_id */
	rvcm_le64_put(buf, op | (uint64_t)(flags & RVCM_PUT_FLAGS) << 8 | (uint64_t)op_id << 32);
	rvcm_le64_put(buf + offsetof(struct rvcm_message_hdr, tag), tag);
	buf += sizeof(struct rvcm_message_hdr);
	if (flags & RVCM_EP_CQ_DATA) {
		rvcm_le64_put(buf, data);
		buf += RVCM_PUT_DATA_BYTES;
	}
	return buf;
}

#endif

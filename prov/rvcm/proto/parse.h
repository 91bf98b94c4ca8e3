/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a peer's message to a checked description of it. Pure, any thread, and nothing
 * but this reads a message: what it lets through may be relied on.
 */
#ifndef RVCM_PROTO_PARSE_H
#define RVCM_PROTO_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "proto/message.h"

/* Fields that the op does not have are 0. Pointers point into the message. */
struct rvcm_parse {
	enum rvcm_message_op op;
	uint32_t flags; /* enum rvcm_message_flag */
	uint32_t op_id; /* RTS, FIN: not 0 */
	uint32_t n_rails;
	uint64_t tag;
	uint64_t data;          /* the application's CQ data */
	uint64_t length;        /* EAGER, RTS: of the payload; every rail's address + length fits */
	const uint8_t *payload; /* EAGER */
	const struct rvcm_message_rail *rails;
	enum rvcm_status status; /* FIN; GENERAL for a number not known here */
};

/* Returns NULL and fills *out, or says what is wrong with the message. */
const char *rvcm_parse_message(const uint8_t *bytes, size_t n, struct rvcm_parse *out);

#endif

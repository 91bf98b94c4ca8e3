/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare messages: DATA without its head, where that saves a packet. A message of just as many bytes
 * as the network's packets hold takes two of them with a head, and a packet is what costs.
 *
 * A DATA frame with the flag KEEP is remembered by both sides. What comes later on that link and
 * has the same head, but for the numbers and a few bits of a word of the body (a tag's low ones, as
 * it happens; nobody here knows), may leave without it: the immediate says those bits and the
 * acknowledgement, and the number is the next. The receiver writes the head in front of the message
 * (RVCM_DEV_FOREROOM), and from there on it is one like any other.
 *
 * Frames that would not be shorter by a packet are neither kept nor bare: they cost nothing.
 */
#ifndef RVCM_CONN_BARE_H
#define RVCM_CONN_BARE_H

#include "conn/conn_impl.h"

enum rvcm_bare_how {
	RVCM_BARE_WHOLE,
	RVCM_BARE_KEEP, /* whole, with KEEP set: rvcm_bare_keep when it has been posted */
	RVCM_BARE_BARE, /* without its first RVCM_WIRE_BARE_BYTES, with rvcm_bare_imm */
};

/* How the frame, which is filled in and has no tail, is to be posted; its flags are set. */
enum rvcm_bare_how rvcm_bare_how(const struct rvcm_link *link, uint8_t *frame, size_t bytes);
uint32_t rvcm_bare_imm(const uint8_t *frame);

/* Do both sides of the link know of it? */
bool rvcm_bare_agreed(const struct rvcm_link *link);
/* That frame is what later ones are compared with. It has RVCM_WIRE_BARE_BYTES or more. */
void rvcm_bare_keep(struct rvcm_bare *kept, const uint8_t *frame);
/* Write the head that imm stands for, with that number. acked: what the peer is known to have. */
void rvcm_bare_restore(const struct rvcm_bare *kept, uint8_t *frame, uint32_t imm, uint32_t seq,
		       uint32_t acked);

#endif

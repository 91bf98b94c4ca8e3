/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/bare.h"

#include "base/le.h"

#define ACK_MASK  ((1u << RVCM_WIRE_BARE_ACK_BITS) - 1)
#define VARY_MASK (UINT32_MAX >> RVCM_WIRE_BARE_ACK_BITS)
#define CAPS      (RVCM_DEV_CAP_FOREROOM | RVCM_DEV_CAP_IMM32)

/* The peer acknowledges no more than a window beyond what we know of. */
_Static_assert(RVCM_CONN_WINDOW_MAX <= ACK_MASK, "the low bits of an acknowledgement say it all");
_Static_assert(sizeof(((struct rvcm_bare *)NULL)->head) == RVCM_WIRE_BARE_BYTES, "a head");

/* What is the same in all that are alike, by words: not flags, seq and ack; and of the last word of
 * the body's head not the low bits. */
static const uint64_t same[] = {
	UINT64_C(0x00000000ffff00ff),     /* kind, flags, window 2, seq 4 */
	UINT64_C(0xffffffff00000000),     /* ack 4, slots 4 */
	UINT64_MAX, ~(uint64_t)VARY_MASK, /* at RVCM_WIRE_BARE_VARY_AT */
};

#define WORDS (sizeof(same) / sizeof(same[0]))

_Static_assert(RVCM_WIRE_BARE_VARY_AT == 8 * (WORDS - 1), "which is the last");

bool rvcm_bare_agreed(const struct rvcm_link *link)
{
	const struct rvcm_wire_handshake *peer = link->opener ? &link->reply : &link->request;

	return (link->qp->dev->attr.caps & rvcm_le16_get(peer->caps) & CAPS) == CAPS;
}

void rvcm_bare_keep(struct rvcm_bare *kept, const uint8_t *frame)
{
	for (size_t i = 0; i < WORDS; i++)
		kept->head[i] = rvcm_le64_get(frame + 8 * i) & same[i];
	kept->known = true;
}

static bool is_alike(const struct rvcm_bare *kept, const uint8_t *frame)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < WORDS; i++)
		differ |= (rvcm_le64_get(frame + 8 * i) & same[i]) ^ kept->head[i];
	return kept->known && !differ;
}

/* Does it take one packet less without its head? */
static bool saves(const struct rvcm_link *link, size_t bytes)
{
	size_t packet = link->qp->dev->attr.mtu_bytes;

	return packet && bytes > RVCM_WIRE_BARE_BYTES &&
	       (bytes - 1) / packet != (bytes - RVCM_WIRE_BARE_BYTES - 1) / packet;
}

enum rvcm_bare_how rvcm_bare_how(const struct rvcm_link *link, uint8_t *frame, size_t bytes)
{
	struct rvcm_wire_frame *head = (void *)frame;

	if (head->kind != RVCM_WIRE_DATA || !saves(link, bytes) || !rvcm_bare_agreed(link))
		return RVCM_BARE_WHOLE;
	if (is_alike(&link->bare_out, frame))
		return RVCM_BARE_BARE;
	head->flags = RVCM_WIRE_KEEP;
	return RVCM_BARE_KEEP;
}

uint32_t rvcm_bare_imm(const uint8_t *frame)
{
	const struct rvcm_wire_frame *head = (const void *)frame;
	uint32_t vary = rvcm_le32_get(frame + RVCM_WIRE_BARE_VARY_AT) & VARY_MASK;

	return (rvcm_le32_get(head->ack) & ACK_MASK) | vary << RVCM_WIRE_BARE_ACK_BITS;
}

void rvcm_bare_restore(const struct rvcm_bare *kept, uint8_t *frame, uint32_t imm, uint32_t seq,
		       uint32_t acked)
{
	struct rvcm_wire_frame *head = (void *)frame;

	for (size_t i = 0; i < WORDS; i++)
		rvcm_le64_put(frame + 8 * i, kept->head[i]);
	rvcm_le64_put(frame + RVCM_WIRE_BARE_VARY_AT,
		      kept->head[WORDS - 1] | imm >> RVCM_WIRE_BARE_ACK_BITS);
	rvcm_le32_put(head->seq, seq);
	rvcm_le32_put(head->ack, acked + ((imm - acked) & ACK_MASK));
}

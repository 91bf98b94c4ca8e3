/* SPDX-License-Identifier: BSD-2-Clause */
/* See mpa.h for the layouts. */
#include "dev/soft/mpa.h"

#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "dev/soft/crc.h"

#define KEY_BYTES 16u

/* Byte 16. */
#define FLAG_M 0x80u
#define FLAG_C 0x40u
#define FLAG_R 0x20u
#define FLAG_S 0x10u

/* The two halves of the enhanced data: A, B and IRD; C, D and ORD. */
#define HALF_HIGH  0x8000u
#define HALF_LOW   0x4000u
#define HALF_DEPTH 0x3fffu

static const char keys[2][KEY_BYTES + 1] = {
	[RVCM_SOFT_MPA_REQUEST] = "MPA ID Req Frame",
	[RVCM_SOFT_MPA_REPLY] = "MPA ID Rep Frame",
};

static bool encodable(const struct rvcm_soft_mpa_frame *f)
{
	size_t room = RVCM_SOFT_MPA_PRIVATE_BYTES_MAX;

	if (f->revision < 1 || f->revision > 2 || f->markers)
		return false;
	if (f->reject && f->kind != RVCM_SOFT_MPA_REPLY)
		return false;
	if (f->enhanced) {
		room -= RVCM_SOFT_MPA_ENHANCED_BYTES;
		if (f->revision < 2 || f->ird > HALF_DEPTH || f->ord > HALF_DEPTH)
			return false;
		if (f->rtr && !f->peer_to_peer)
			return false;
	}
	return f->private_bytes <= room;
}

static void encode_enhanced(const struct rvcm_soft_mpa_frame *f, uint8_t *p)
{
	unsigned int first = f->ird, second = f->ord;

	first |= f->peer_to_peer ? HALF_HIGH : 0;
	first |= f->rtr & RVCM_SOFT_MPA_RTR_FPDU ? HALF_LOW : 0;
	second |= f->rtr & RVCM_SOFT_MPA_RTR_WRITE ? HALF_HIGH : 0;
	second |= f->rtr & RVCM_SOFT_MPA_RTR_READ ? HALF_LOW : 0;
	rvcm_be16_put(p, (uint16_t)first);
	rvcm_be16_put(p + 2, (uint16_t)second);
}

int rvcm_soft_mpa_encode(const struct rvcm_soft_mpa_frame *frame, void *buf)
{
	uint8_t *p = buf;
	size_t extra = frame->enhanced ? RVCM_SOFT_MPA_ENHANCED_BYTES : 0;
	size_t n = RVCM_SOFT_MPA_FRAME_BYTES_MIN;

	if (!encodable(frame))
		return -EINVAL;
	memcpy(p, keys[frame->kind], KEY_BYTES);
	p[16] = (uint8_t)((frame->crc ? FLAG_C : 0) | (frame->reject ? FLAG_R : 0) |
			  (frame->enhanced ? FLAG_S : 0));
	p[17] = frame->revision;
	rvcm_be16_put(p + 18, (uint16_t)(frame->private_bytes + extra));
	if (frame->enhanced)
		encode_enhanced(frame, p + n);
	n += extra;
	if (frame->private_bytes > 0)
		memcpy(p + n, frame->private_data, frame->private_bytes);
	return (int)(n + frame->private_bytes);
}

static void decode_enhanced(const uint8_t *p, struct rvcm_soft_mpa_frame *f)
{
	unsigned int first = rvcm_be16_get(p), second = rvcm_be16_get(p + 2);

	f->ird = (uint16_t)(first & HALF_DEPTH);
	f->ord = (uint16_t)(second & HALF_DEPTH);
	f->peer_to_peer = first & HALF_HIGH;
	if (!f->peer_to_peer)
		return;
	f->rtr = (uint8_t)((first & HALF_LOW ? RVCM_SOFT_MPA_RTR_FPDU : 0u) |
			   (second & HALF_HIGH ? RVCM_SOFT_MPA_RTR_WRITE : 0u) |
			   (second & HALF_LOW ? RVCM_SOFT_MPA_RTR_READ : 0u));
}

/* The first 20 bytes, each field as soon as it is there. > 0: the whole frame's length. */
static int check_fixed(enum rvcm_soft_mpa_kind kind, const uint8_t *p, size_t len)
{
	size_t private_bytes;

	if (memcmp(p, keys[kind], len < KEY_BYTES ? len : KEY_BYTES) != 0)
		return -EPROTO;
	if (len > 17 && (p[17] < 1 || p[17] > 2))
		return -EPROTONOSUPPORT;
	if (len < RVCM_SOFT_MPA_FRAME_BYTES_MIN)
		return 0;
	private_bytes = rvcm_be16_get(p + 18);
	if (private_bytes > RVCM_SOFT_MPA_PRIVATE_BYTES_MAX)
		return -EMSGSIZE;
	if (p[16] & FLAG_S && p[17] == 2 && private_bytes < RVCM_SOFT_MPA_ENHANCED_BYTES)
		return -EBADMSG;
	return (int)(RVCM_SOFT_MPA_FRAME_BYTES_MIN + private_bytes);
}

int rvcm_soft_mpa_decode(enum rvcm_soft_mpa_kind kind, const void *buf, size_t len,
			 struct rvcm_soft_mpa_frame *frame)
{
	const uint8_t *p = buf;
	struct rvcm_soft_mpa_frame f = { .kind = kind };
	size_t at = RVCM_SOFT_MPA_FRAME_BYTES_MIN;
	int n;

	if (len == 0)
		return 0;
	n = check_fixed(kind, p, len);
	if (n <= 0)
		return n;
	if (len < (size_t)n)
		return 0;
	f.revision = p[17];
	f.markers = p[16] & FLAG_M;
	f.crc = p[16] & FLAG_C;
	f.reject = kind == RVCM_SOFT_MPA_REPLY && p[16] & FLAG_R;
	f.enhanced = f.revision == 2 && p[16] & FLAG_S;
	if (f.enhanced) {
		decode_enhanced(p + at, &f);
		at += RVCM_SOFT_MPA_ENHANCED_BYTES;
	}
	f.private_bytes = (uint16_t)((size_t)n - at);
	f.private_data = f.private_bytes > 0 ? p + at : NULL;
	*frame = f;
	return f.markers ? -EOPNOTSUPP : n;
}

size_t rvcm_soft_mpa_ulpdu_max(size_t fpdu_bytes)
{
	size_t overhead = RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_MPA_CRC_BYTES;

	if (fpdu_bytes > RVCM_SOFT_MPA_FPDU_BYTES_MAX)
		fpdu_bytes = RVCM_SOFT_MPA_FPDU_BYTES_MAX;
	fpdu_bytes &= ~(size_t)3;
	if (fpdu_bytes <= overhead)
		return 0;
	fpdu_bytes -= overhead;
	return fpdu_bytes < RVCM_SOFT_MPA_ULPDU_BYTES_MAX ? fpdu_bytes
							  : RVCM_SOFT_MPA_ULPDU_BYTES_MAX;
}

void rvcm_soft_mpa_header_encode(uint16_t ulpdu_bytes, void *buf)
{
	rvcm_be16_put(buf, ulpdu_bytes);
}

uint16_t rvcm_soft_mpa_header_decode(const void *buf)
{
	return rvcm_be16_get(buf);
}

size_t rvcm_soft_mpa_trailer_encode(size_t ulpdu_bytes, bool use_crc, uint32_t crc, void *buf)
{
	uint8_t *p = buf;
	size_t pad = rvcm_soft_mpa_pad(ulpdu_bytes);

	memset(p, 0, pad);
	/* The only little-endian field: iSCSI sends the code's bits in this order. */
	rvcm_le32_put(p + pad, use_crc ? rvcm_soft_crc_update(crc, p, pad) : 0);
	return pad + RVCM_SOFT_MPA_CRC_BYTES;
}

bool rvcm_soft_mpa_trailer_check(size_t ulpdu_bytes, bool use_crc, uint32_t crc, const void *buf)
{
	const uint8_t *p = buf;
	size_t pad = rvcm_soft_mpa_pad(ulpdu_bytes);

	return !use_crc || rvcm_le32_get(p + pad) == rvcm_soft_crc_update(crc, p, pad);
}

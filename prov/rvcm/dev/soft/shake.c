/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA set-up on a socket, and how two of our own kind know each other.
 *
 * RFC 5044 has four reserved bits behind M, C and R ("sent as zero, not checked on reception"; RFC
 * 6581 took one for S). We use two of the rest, as the kernel's siw uses one: a request of ours
 * carries MARK_REQUEST, a reply of ours to such a request MARK_REPLY and not MARK_REQUEST. An
 * implementation that answers in the request's own header (siw does) echoes the request's mark,
 * which is why the reply has another.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "dev/soft/soft_impl.h"

#define SHAKE_FLAGS        16u /* offset of the byte with M, C, R, S and the reserved bits */
#define SHAKE_MARK_REQUEST 0x01u
#define SHAKE_MARK_REPLY   0x02u

static bool shake_marked(const struct rvcm_soft_shake *shake, enum rvcm_soft_mpa_kind kind)
{
	uint8_t mark = shake->buf[SHAKE_FLAGS] & (SHAKE_MARK_REQUEST | SHAKE_MARK_REPLY);

	return mark == (kind == RVCM_SOFT_MPA_REQUEST ? SHAKE_MARK_REQUEST : SHAKE_MARK_REPLY);
}

/* Bytes of the frame, as far as that is known. */
static size_t shake_due(const struct rvcm_soft_shake *shake)
{
	if (shake->have < RVCM_SOFT_MPA_FRAME_BYTES_MIN)
		return RVCM_SOFT_MPA_FRAME_BYTES_MIN;
	return RVCM_SOFT_MPA_FRAME_BYTES_MIN + rvcm_be16_get(shake->buf + 18);
}

int rvcm_soft_shake_read(struct rvcm_soft_shake *shake, int fd, enum rvcm_soft_mpa_kind kind,
			 struct rvcm_soft_mpa_frame *frame, bool *marked)
{
	for (;;) {
		size_t due = shake_due(shake);
		ssize_t n = recv(fd, shake->buf + shake->have, due - shake->have, MSG_DONTWAIT);
		int rc;

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET;
		shake->have += (size_t)n;
		rc = rvcm_soft_mpa_decode(kind, shake->buf, shake->have, frame);
		if (rc < 0)
			return rc;
		if (rc > 0) {
			*marked = shake_marked(shake, kind);
			return 1;
		}
	}
}

int rvcm_soft_shake_write(int fd, const struct rvcm_soft_mpa_frame *frame, bool mark)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	int len = rvcm_soft_mpa_encode(frame, buf);
	ssize_t n;

	if (len < 0)
		return len;
	if (mark)
		buf[SHAKE_FLAGS] |= frame->kind == RVCM_SOFT_MPA_REQUEST ? SHAKE_MARK_REQUEST
									 : SHAKE_MARK_REPLY;
	n = send(fd, buf, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return n == len ? 0 : -EIO;
}

void rvcm_soft_shake_agree(const struct rvcm_soft_mpa_frame *peer, bool marked,
			   const struct rvcm_soft_tunables *tun, struct rvcm_soft_link *link)
{
	uint32_t ird = 1; /* without the extension nobody says more */

	if (peer->enhanced)
		ird = peer->ird == RVCM_SOFT_MPA_IRD_ANY ? tun->reads_max : peer->ird;
	link->crc = tun->crc || peer->crc;
	link->own_kind = marked;
	link->ord = (uint16_t)(ird < tun->reads_max ? ird : tun->reads_max);
}

void rvcm_soft_shake_offer(const struct rvcm_soft_tunables *tun,
			   const struct rvcm_soft_mpa_frame *peer,
			   struct rvcm_soft_mpa_frame *frame)
{
	memset(frame, 0, sizeof(*frame));
	frame->kind = peer ? RVCM_SOFT_MPA_REPLY : RVCM_SOFT_MPA_REQUEST;
	frame->revision = peer ? peer->revision : 2;
	frame->enhanced = peer ? peer->enhanced : true;
	frame->crc = tun->crc || (peer && peer->crc);
	frame->ird = (uint16_t)tun->reads_max;
	frame->ord = (uint16_t)tun->reads_max;
	if (!peer || !peer->enhanced)
		return;
	if (peer->ird < frame->ord)
		frame->ord = peer->ird;
	/* RFC 6581 section 9.1: of the ready-to-receive messages offered, one is chosen. */
	frame->peer_to_peer = peer->peer_to_peer;
	for (uint8_t rtr = RVCM_SOFT_MPA_RTR_READ; rtr && peer->peer_to_peer; rtr >>= 1) {
		if (peer->rtr & rtr)
			frame->rtr = rtr;
	}
	if (frame->rtr == RVCM_SOFT_MPA_RTR_FPDU && (peer->rtr & RVCM_SOFT_MPA_RTR_WRITE))
		frame->rtr = RVCM_SOFT_MPA_RTR_WRITE;
}

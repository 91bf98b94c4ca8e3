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
#include "dev/soft/crc.h"
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

static int shake_send(int fd, const void *buf, size_t bytes)
{
	ssize_t n = send(fd, buf, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EIO;
}

int rvcm_soft_shake_write(int fd, const struct rvcm_soft_mpa_frame *frame, bool mark)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	int len = rvcm_soft_mpa_encode(frame, buf);

	if (len < 0)
		return len;
	if (mark)
		buf[SHAKE_FLAGS] |= frame->kind == RVCM_SOFT_MPA_REQUEST ? SHAKE_MARK_REQUEST
									 : SHAKE_MARK_REPLY;
	return shake_send(fd, buf, (size_t)len);
}

/* -- what is said, and what it comes to ------------------------------------------------------ */

static uint16_t shake_min(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

void rvcm_soft_shake_request(const struct rvcm_soft_tunables *tun,
			     struct rvcm_soft_mpa_frame *frame)
{
	*frame = (struct rvcm_soft_mpa_frame) {
		.kind = RVCM_SOFT_MPA_REQUEST,
		.revision = (uint8_t)tun->mpa_revision,
		.enhanced = tun->mpa_revision > 1,
		.crc = tun->crc,
	};
	if (!frame->enhanced)
		return;
	frame->ird = (uint16_t)tun->reads_max;
	frame->ord = (uint16_t)tun->reads_max;
	frame->peer_to_peer = tun->peer_to_peer;
	if (tun->peer_to_peer)
		frame->rtr =
			RVCM_SOFT_MPA_RTR_FPDU | RVCM_SOFT_MPA_RTR_WRITE | RVCM_SOFT_MPA_RTR_READ;
}

/*
 * Of those offered one is chosen, the WRITE first: it costs a peer nothing and all know it. If
 * nothing was offered a WRITE is asked for, and the opener sees whether it can.
 */
static uint8_t shake_choose(uint8_t offered)
{
	static const uint8_t order[] = { RVCM_SOFT_MPA_RTR_WRITE, RVCM_SOFT_MPA_RTR_FPDU,
					 RVCM_SOFT_MPA_RTR_READ };

	for (size_t i = 0; i < sizeof(order); i++)
		if (offered & order[i])
			return order[i];
	return order[0];
}

/*
 * One of our two depths, in answer to the peer's opposite one: what both can do. A peer that does
 * not negotiate it here (all ones) gets the same answer.
 */
static uint16_t shake_depth(const struct rvcm_soft_tunables *tun, uint16_t peer)
{
	if (peer == RVCM_SOFT_MPA_IRD_ANY)
		return RVCM_SOFT_MPA_IRD_ANY;
	return shake_min((uint16_t)tun->reads_max, peer);
}

void rvcm_soft_shake_answer(const struct rvcm_soft_tunables *tun,
			    const struct rvcm_soft_mpa_frame *peer, bool marked,
			    struct rvcm_soft_mpa_frame *frame)
{
	*frame = (struct rvcm_soft_mpa_frame) {
		.kind = RVCM_SOFT_MPA_REPLY,
		.revision = peer->revision,
		.enhanced = peer->enhanced,
		.crc = tun->crc || peer->crc,
	};
	if (!peer->enhanced)
		return;
	frame->ird = shake_depth(tun, peer->ord);
	frame->ord = shake_depth(tun, peer->ird);
	/* Our own kind waits for nobody, and needs no message for it. */
	frame->peer_to_peer = peer->peer_to_peer && !marked;
	if (frame->peer_to_peer)
		frame->rtr = shake_choose(peer->rtr);
	if (frame->rtr == RVCM_SOFT_MPA_RTR_READ && !frame->ird)
		frame->ird = 1; /* that READ is one */
}

/* Both said something of their depths. False: the peer means to ask more of us than we serve. */
static bool shake_agree_depths(const struct rvcm_soft_mpa_frame *own,
			       const struct rvcm_soft_mpa_frame *peer, uint16_t most,
			       struct rvcm_soft_link *link)
{
	link->ird = shake_min(own->ird, most);
	link->ord = shake_min(shake_min(own->ord, peer->ird), most);
	return own->kind == RVCM_SOFT_MPA_REPLY || peer->ord == RVCM_SOFT_MPA_IRD_ANY ||
	       peer->ord <= own->ird;
}

void rvcm_soft_shake_agree(const struct rvcm_soft_mpa_frame *own,
			   const struct rvcm_soft_mpa_frame *peer, bool marked,
			   const struct rvcm_soft_tunables *tun, struct rvcm_soft_link *link)
{
	const struct rvcm_soft_mpa_frame *reply = own->kind == RVCM_SOFT_MPA_REPLY ? own : peer;

	*link = (struct rvcm_soft_link) {
		.crc = own->crc || peer->crc,
		.own_kind = marked,
		/* Without the extension nobody says anything; one is what everybody can. */
		.ird = (uint16_t)tun->reads_max,
		.ord = 1,
	};
	if (!own->enhanced || !peer->enhanced)
		return;
	if (!shake_agree_depths(own, peer, (uint16_t)tun->reads_max, link))
		link->term = RVCM_SOFT_WIRE_TERM_L_IRD;
	if (!reply->peer_to_peer)
		return;
	link->rtr = own == reply ? own->rtr : shake_choose(own->rtr & peer->rtr);
	if (own != reply && !(own->rtr & peer->rtr))
		link->term = RVCM_SOFT_WIRE_TERM_L_RTR;
}

/* -- the first frame ------------------------------------------------------------------------- */

/* A ULPDU as one FPDU; buf has room behind it. */
static size_t shake_fpdu(uint8_t *buf, size_t ulpdu, bool crc)
{
	rvcm_soft_mpa_header_encode((uint16_t)ulpdu, buf);
	return RVCM_SOFT_MPA_HEADER_BYTES + ulpdu +
	       rvcm_soft_mpa_trailer_encode(
		       ulpdu, crc,
		       crc ? rvcm_soft_crc_update(0, buf, RVCM_SOFT_MPA_HEADER_BYTES + ulpdu) : 0,
		       buf + RVCM_SOFT_MPA_HEADER_BYTES + ulpdu);
}

static size_t shake_terminate(uint16_t term, uint8_t *ulpdu)
{
	const struct rvcm_soft_wire_terminate terminate = { .term = term };
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_TERMINATE,
						.last = true,
						.msn = 1 };
	size_t n = rvcm_soft_wire_encode(&hdr, ulpdu);

	return n + rvcm_soft_wire_terminate_encode(&terminate, ulpdu + n);
}

/* RFC 6581 section 9.2: each of no bytes; memory is not named (STag and TO 0). */
static size_t shake_rtr(uint8_t rtr, uint8_t *ulpdu)
{
	const struct rvcm_soft_wire_read_req req = { .bytes = 0 };
	const struct rvcm_soft_wire_hdr hdr = {
		.opcode = rtr == RVCM_SOFT_MPA_RTR_READ ? RVCM_SOFT_WIRE_READ_REQ
							: RVCM_SOFT_WIRE_WRITE,
		.last = true,
		.msn = 1,
	};
	size_t n;

	if (rtr == RVCM_SOFT_MPA_RTR_FPDU)
		return 0;
	n = rvcm_soft_wire_encode(&hdr, ulpdu);
	return rtr == RVCM_SOFT_MPA_RTR_READ ? n + rvcm_soft_wire_read_req_encode(&req, ulpdu + n)
					     : n;
}

int rvcm_soft_shake_begin(int fd, const struct rvcm_soft_link *link)
{
	uint8_t buf[RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_HDR_BYTES_MAX +
		    RVCM_SOFT_WIRE_TERM_BYTES_MAX + RVCM_SOFT_MPA_TRAILER_BYTES_MAX];
	uint8_t *ulpdu = buf + RVCM_SOFT_MPA_HEADER_BYTES;
	size_t n;

	if (!link->term && !link->rtr)
		return 0;
	n = link->term ? shake_terminate(link->term, ulpdu) : shake_rtr(link->rtr, ulpdu);
	return shake_send(fd, buf, shake_fpdu(buf, n, link->crc));
}

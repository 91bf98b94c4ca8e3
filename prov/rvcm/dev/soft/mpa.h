/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA: how a TCP stream becomes frames (RFC 5044; the set-up's extension: RFC 6581).
 *
 * Set-up, request then reply (RFC 5044 figure 8, RFC 6581 sections 6 and 9):
 *
 *	 0  key, 16: "MPA ID Req Frame" or "MPA ID Rep Frame"
 *	16  M C R S rsvd:4
 *	17  revision, 1 or 2
 *	18  private data length (PD), 2, at most 512
 *	20  with S: A B IRD:14 | C D ORD:14, 4, counted by PD
 *	    private data of the consumer
 *
 * Then FPDUs (RFC 5044 figure 2): length 2, ULPDU, 0 to 3 zero bytes up to a multiple of 4, CRC 4.
 * Without a CRC the field is there all the same; we send zero. Markers are never used: we do not
 *ask for them, and a peer that does (M) is rejected, as the kernel's siw does, though RFC 5044
 *section 7.1.1 wants them sent to who asks.
 *
 * Revision 2 with S settles how many reads may be open each way, and is what we and siw send; a
 * request with S must be answered with S, one without, without (RFC 6581 section 10). What is said
 * and what it comes to is in shake.c.
 */
#ifndef RVCM_DEV_SOFT_MPA_H
#define RVCM_DEV_SOFT_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVCM_SOFT_MPA_PRIVATE_BYTES_MAX 512u /* PD at most */
#define RVCM_SOFT_MPA_FRAME_BYTES_MIN   20u
#define RVCM_SOFT_MPA_FRAME_BYTES_MAX   (20u + 512u)
#define RVCM_SOFT_MPA_ENHANCED_BYTES    4u
#define RVCM_SOFT_MPA_IRD_MAX           0x3ffeu /* and ORD */
#define RVCM_SOFT_MPA_IRD_ANY           0x3fffu /* "not negotiated here": RFC 6581 section 9.1 */

#define RVCM_SOFT_MPA_HEADER_BYTES      2u
#define RVCM_SOFT_MPA_CRC_BYTES         4u
#define RVCM_SOFT_MPA_TRAILER_BYTES_MAX 7u /* pad and CRC */
#define RVCM_SOFT_MPA_ULPDU_BYTES_MAX   65535u
#define RVCM_SOFT_MPA_FPDU_BYTES_MAX    65544u

enum rvcm_soft_mpa_kind {
	RVCM_SOFT_MPA_REQUEST,
	RVCM_SOFT_MPA_REPLY,
};

/* Ready-to-receive messages for peer-to-peer mode (RFC 6581 section 9.2): bits B, C and D. */
enum rvcm_soft_mpa_rtr {
	RVCM_SOFT_MPA_RTR_FPDU = 1u << 0,  /* B: a zero-length FPDU */
	RVCM_SOFT_MPA_RTR_WRITE = 1u << 1, /* C: a zero-length RDMA write */
	RVCM_SOFT_MPA_RTR_READ = 1u << 2,  /* D: a zero-length RDMA read */
};

struct rvcm_soft_mpa_frame {
	enum rvcm_soft_mpa_kind kind;
	uint8_t revision;  /* 1 or 2 */
	bool markers;      /* M: its sender wants to receive markers; we never set it */
	bool crc;          /* C: in either frame = both sides generate and check CRCs */
	bool reject;       /* R, replies only */
	bool enhanced;     /* S, revision 2 only: the next four are there */
	bool peer_to_peer; /* A */
	uint8_t rtr;       /* enum rvcm_soft_mpa_rtr; 0 without A */
	uint16_t ird;      /* reads its sender is ready to serve at a time */
	uint16_t ord;      /* reads its sender wants to have open at a time */
	uint16_t private_bytes;
	const void *private_data; /* decoded: in the caller's buffer */
};

/*
 * buf: RVCM_SOFT_MPA_FRAME_BYTES_MAX. Returns the bytes written, or -EINVAL: private data longer
 * than 512 bytes (508 with enhanced), enhanced in revision 1, another revision than 1 and 2, IRD or
 * ORD beyond 14 bits, rtr without peer_to_peer, reject in a request, or markers.
 */
int rvcm_soft_mpa_encode(const struct rvcm_soft_mpa_frame *frame, void *buf);

/*
 * Reads a frame of this kind from the first len bytes of a stream. Returns > 0: bytes consumed;
 * 0: more are needed; or, as soon as the bytes that show it are there,
 *
 *	-EPROTO           not the key of this kind: no RNIC, or (a request where a reply is due) two
 *	                  openers (RFC 5044 sections 7.1.1 and 7.1.2)
 *	-EPROTONOSUPPORT  a revision other than 1 and 2 (RFC 5044 section 7.1.1)
 *	-EMSGSIZE         PD beyond 512 (RFC 5044 section 7.1.1)
 *	-EBADMSG          S in revision 2 but PD below 4 (RFC 6581 section 6)
 *	-EOPNOTSUPP       M is set
 *
 * The connection is closed on all of them, the code is L_STARTUP. With EOPNOTSUPP in a request a
 * reject goes before that; so this one comes only when the whole frame is there (closing with bytes
 * unread would reset the connection under the reject), and *frame is then set as on success. S in
 * revision 1 is a reserved bit and ignored, as are R in a request and B, C and D without A.
 */
int rvcm_soft_mpa_decode(enum rvcm_soft_mpa_kind kind, const void *buf, size_t len,
			 struct rvcm_soft_mpa_frame *frame);

/* Zero bytes between ULPDU and CRC. */
static inline size_t rvcm_soft_mpa_pad(size_t ulpdu_bytes)
{
	return -(RVCM_SOFT_MPA_HEADER_BYTES + ulpdu_bytes) & 3u;
}

/* Bytes of the whole FPDU. */
static inline size_t rvcm_soft_mpa_fpdu_len(size_t ulpdu_bytes)
{
	return RVCM_SOFT_MPA_HEADER_BYTES + ulpdu_bytes + rvcm_soft_mpa_pad(ulpdu_bytes) +
	       RVCM_SOFT_MPA_CRC_BYTES;
}

/* The longest ULPDU whose FPDU fits in fpdu_bytes (MULPDU, RFC 5044 section 4.5); 0 = none. */
size_t rvcm_soft_mpa_ulpdu_max(size_t fpdu_bytes);

/* The length field: 2 bytes. */
void rvcm_soft_mpa_header_encode(uint16_t ulpdu_bytes, void *buf);
uint16_t rvcm_soft_mpa_header_decode(const void *buf);

/*
 * The trailer: pad and CRC, rvcm_soft_mpa_fpdu_len(n) - n - 2 bytes. crc: the running CRC over
 * length field and ULPDU; the pad is added here (RFC 5044 section 4.4: it is covered). Returns the
 * bytes written to buf, of RVCM_SOFT_MPA_TRAILER_BYTES_MAX.
 */
size_t rvcm_soft_mpa_trailer_encode(size_t ulpdu_bytes, bool use_crc, uint32_t crc, void *buf);

/*
 * Does the trailer at buf fit that CRC? True without CRCs, whatever the field holds. The pad's
 * contents count for the CRC and are ignored otherwise (RFC 5044 section 4.1).
 */
bool rvcm_soft_mpa_trailer_check(size_t ulpdu_bytes, bool use_crc, uint32_t crc, const void *buf);

#endif

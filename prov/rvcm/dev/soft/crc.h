/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32C (Castagnoli, polynomial 0x1edc6f41), as MPA carries it (RFC 5044 section 4.4; the code is
 * that of iSCSI, RFC 3720 section 12.1 and appendix B.4).
 *
 * A running value is always a finished one, so a message may be fed in any pieces:
 *
 *	crc = rvcm_soft_crc_update(0, header, n);
 *	crc = rvcm_soft_crc_update(crc, payload, m);
 *
 * and crc is then the code of the n + m bytes. On the wire it is stored little-endian
 * (rvcm_soft_mpa_trailer_encode does that).
 */
#ifndef RVCM_DEV_SOFT_CRC_H
#define RVCM_DEV_SOFT_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code of what crc covers followed by len bytes at buf; crc is 0 before the first byte. */
uint32_t rvcm_soft_crc_update(uint32_t crc, const void *buf, size_t len);

/* The same, by tables and without the CPU's instructions. */
uint32_t rvcm_soft_crc_update_table(uint32_t crc, const void *buf, size_t len);

/* Does rvcm_soft_crc_update use the CPU's instructions on this machine? */
bool rvcm_soft_crc_hardware(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keyed MAC of handshakes: SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input
 * PRF"), 128-bit key, 64-bit tag. Incremental, so that a MAC can run over several structures.
 */
#ifndef RVCM_CONN_MAC_H
#define RVCM_CONN_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVCM_MAC_KEY_BYTES 16u
#define RVCM_MAC_BYTES     8u

struct rvcm_mac {
	uint64_t v[4];
	uint64_t tail; /* bytes that do not fill a word yet */
	uint64_t bytes;
};

void rvcm_mac_init(struct rvcm_mac *mac, const uint8_t key[RVCM_MAC_KEY_BYTES]);
void rvcm_mac_update(struct rvcm_mac *mac, const void *data, size_t bytes);
void rvcm_mac_final(struct rvcm_mac *mac, uint8_t tag[RVCM_MAC_BYTES]);

/* Compare in constant time. */
bool rvcm_mac_equal(const uint8_t a[RVCM_MAC_BYTES], const uint8_t b[RVCM_MAC_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/mac.h"

#include "base/le.h"
#include "base/sip.h"

void rvcm_mac_init(struct rvcm_mac *mac, const uint8_t key[RVCM_MAC_KEY_BYTES])
{
	rvcm_sip_init(mac->v, rvcm_le64_get(key), rvcm_le64_get(key + 8));
	mac->tail = 0;
	mac->bytes = 0;
}

void rvcm_mac_update(struct rvcm_mac *mac, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < bytes; i++) {
		mac->tail |= (uint64_t)p[i] << (8 * (mac->bytes % 8));
		if (++mac->bytes % 8 == 0) {
			rvcm_sip_word(mac->v, mac->tail, 2);
			mac->tail = 0;
		}
	}
}

void rvcm_mac_final(struct rvcm_mac *mac, uint8_t tag[RVCM_MAC_BYTES])
{
	rvcm_sip_word(mac->v, mac->tail | mac->bytes << 56, 2);
	rvcm_le64_put(tag, rvcm_sip_final(mac->v, 4));
}

bool rvcm_mac_equal(const uint8_t a[RVCM_MAC_BYTES], const uint8_t b[RVCM_MAC_BYTES])
{
	unsigned int diff = 0;

	for (size_t i = 0; i < RVCM_MAC_BYTES; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}

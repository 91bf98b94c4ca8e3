/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/mac.h"

#include "base/le.h"

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

void rvcm_mac_init(struct rvcm_mac *mac, const uint8_t key[RVCM_MAC_KEY_BYTES])
{
	uint64_t k0 = rvcm_le64_get(key);
	uint64_t k1 = rvcm_le64_get(key + 8);

	mac->v[0] = k0 ^ 0x736f6d6570736575u;
	mac->v[1] = k1 ^ 0x646f72616e646f6du;
	mac->v[2] = k0 ^ 0x6c7967656e657261u;
	mac->v[3] = k1 ^ 0x7465646279746573u;
	mac->tail = 0;
	mac->bytes = 0;
}

void rvcm_mac_update(struct rvcm_mac *mac, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < bytes; i++) {
		mac->tail |= (uint64_t)p[i] << (8 * (mac->bytes % 8));
		if (++mac->bytes % 8 == 0) {
			absorb(mac->v, mac->tail);
			mac->tail = 0;
		}
	}
}

void rvcm_mac_final(struct rvcm_mac *mac, uint8_t tag[RVCM_MAC_BYTES])
{
	absorb(mac->v, mac->tail | mac->bytes << 56);
	mac->v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(mac->v);
	rvcm_le64_put(tag, mac->v[0] ^ mac->v[1] ^ mac->v[2] ^ mac->v[3]);
}

bool rvcm_mac_equal(const uint8_t a[RVCM_MAC_BYTES], const uint8_t b[RVCM_MAC_BYTES])
{
	unsigned int diff = 0;

	for (size_t i = 0; i < RVCM_MAC_BYTES; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}

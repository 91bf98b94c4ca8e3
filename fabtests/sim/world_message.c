/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/world.h"

#include <string.h>

#include "base/hash.h"

uint64_t world_message_seed(int from, int to, uint64_t data)
{
	return rvcm_hash_mix(((uint64_t)from << 8 | (uint64_t)to) * 0x9e3779b97f4a7c15 + data);
}

size_t world_message_length(uint64_t seed)
{
	uint64_t x = seed >> 16;

	switch (seed & 15) {
	case 0:
		return 0;
	case 1:
		return x % WORLD_LENGTH_MAX;
	case 2:
	case 3:
		return WORLD_EAGER_MAX - 1 + x % 3;
	case 4:
	case 5:
		return WORLD_EAGER_MAX + x % (2 * WORLD_EAGER_MAX);
	default:
		return x % 300;
	}
}

uint32_t world_message_tag(uint64_t seed, int from, uint64_t *tag)
{
	bool tagged = seed >> 4 & 7;

	*tag = tagged ? (uint64_t)from | (seed >> 8 & 0xff) % WORLD_TAG_CLASSES << 8 : 0;
	return tagged ? RVCM_EP_TAGGED : 0;
}

static uint64_t word_of(uint64_t seed, size_t i)
{
	return (seed ^ i) * 0xbf58476d1ce4e5b9;
}

void world_message_fill(uint64_t seed, uint8_t *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_of(seed, i);

		memcpy(buf + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

size_t world_message_check(uint64_t seed, const uint8_t *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_of(seed, i);

		if (memcmp(buf + i, &word, bytes - i < 8 ? bytes - i : 8) != 0)
			return i;
	}
	return bytes;
}

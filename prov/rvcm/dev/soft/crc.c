/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32C in two ways. All numbers are bit-reflected: bit 31 of a state is the coefficient of x^0.
 *
 * By tables, 8 bytes a step: table s has, for each byte, what it does to the state when s zero
 * bytes follow it. That is linear in the byte, so 8 constants make a table: the polynomial,
 * stepped.
 *
 * By the CPU. Its crc32 instruction takes 3 cycles but can start each cycle, so three lanes side by
 * side cost what one does. They are joined by moving a lane's state over the bytes of the lanes
 * behind it, that is by multiplying it with x^(8 n) modulo the polynomial: a carry-less
 * multiplication with x^(8 n - 33) leaves 63 bits, and crc32 over these as 8 bytes reduces them and
 * supplies the missing x^33. The constants hold for lanes of just these lengths.
 */
#include "dev/soft/crc.h"

#include "base/le.h"

/* Eight constants, of bit 7 first, make the 256 entries of a table. */
#define BIT(b, k, c)  ((b) >> (k)&1u ? (c) : 0u)
#define ENTRY(b, ...) ENTRY_(b, __VA_ARGS__)
#define ENTRY_(b, c7, c6, c5, c4, c3, c2, c1, c0)                                        \
	(BIT(b, 7, c7) ^ BIT(b, 6, c6) ^ BIT(b, 5, c5) ^ BIT(b, 4, c4) ^ BIT(b, 3, c3) ^ \
	 BIT(b, 2, c2) ^ BIT(b, 1, c1) ^ BIT(b, 0, c0))
#define ENTRY4(b, ...)                                                                   \
	ENTRY(b, __VA_ARGS__), ENTRY((b) + 1, __VA_ARGS__), ENTRY((b) + 2, __VA_ARGS__), \
		ENTRY((b) + 3, __VA_ARGS__)
#define ENTRY16(b, ...)                                                                     \
	ENTRY4(b, __VA_ARGS__), ENTRY4((b) + 4, __VA_ARGS__), ENTRY4((b) + 8, __VA_ARGS__), \
		ENTRY4((b) + 12, __VA_ARGS__)
#define ENTRY64(b, ...)                                                                          \
	ENTRY16(b, __VA_ARGS__), ENTRY16((b) + 16, __VA_ARGS__), ENTRY16((b) + 32, __VA_ARGS__), \
		ENTRY16((b) + 48, __VA_ARGS__)
#define TABLE(...)                                                                               \
	{                                                                                        \
		ENTRY64(0u, __VA_ARGS__), ENTRY64(64u, __VA_ARGS__), ENTRY64(128u, __VA_ARGS__), \
			ENTRY64(192u, __VA_ARGS__)                                               \
	}

static const uint32_t table[8][256] = {
	TABLE(0x82f63b78u, 0x417b1dbcu, 0x20bd8edeu, 0x105ec76fu, 0x8ad958cfu, 0xc79a971fu,
	      0xe13b70f7u, 0xf26b8303u),
	TABLE(0xfbc3faf9u, 0xff17c604u, 0x7f8be302u, 0x3fc5f181u, 0x9d14c3b8u, 0x4e8a61dcu,
	      0x274530eeu, 0x13a29877u),
	TABLE(0x8b277743u, 0xc76580d9u, 0xe144fb14u, 0x70a27d8au, 0x38513ec5u, 0x9edea41au,
	      0x4f6f520du, 0xa541927eu),
	TABLE(0x52a0c93fu, 0xaba65fe7u, 0xd725148bu, 0xe964b13du, 0xf64463e6u, 0x7b2231f3u,
	      0xbf672381u, 0xdd45aab8u),
	TABLE(0x6ea2d55cu, 0x37516aaeu, 0x1ba8b557u, 0x8f2261d3u, 0xc5670b91u, 0xe045beb0u,
	      0x7022df58u, 0x38116facu),
	TABLE(0x1c08b7d6u, 0x0e045bebu, 0x85f4168du, 0xc00c303eu, 0x6006181fu, 0xb2f53777u,
	      0xdb8ca0c3u, 0xef306b19u),
	TABLE(0xf56e0ef4u, 0x7ab7077au, 0x3d5b83bdu, 0x9c5bfaa6u, 0x4e2dfd53u, 0xa5e0c5d1u,
	      0xd0065990u, 0x68032cc8u),
	TABLE(0x34019664u, 0x1a00cb32u, 0x0d006599u, 0x847609b4u, 0x423b04dau, 0x211d826du,
	      0x9278fa4eu, 0x493c7d27u),
};

uint32_t rvcm_soft_crc_update_table(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint64_t v = rvcm_le64_get(p) ^ crc;

		crc = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
		      table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^
		      table[2][v >> 40 & 0xff] ^ table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	for (; len > 0; len--, p++)
		crc = table[0][(crc ^ *p) & 0xff] ^ crc >> 8;
	return ~crc;
}

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))

/* A length of lane, and x^(8 n - 33) modulo the polynomial for n = one lane and two. */
struct lane {
	size_t bytes;
	uint32_t over_1;
	uint32_t over_2;
};

static const struct lane lane_long = { 2048, 0xa51b6135u, 0x82f89c77u };
static const struct lane lane_short = { 256, 0xb9e02b86u, 0xdd7e3b0cu };

TARGET static uint32_t shift(uint32_t crc, uint32_t over)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(crc), _mm_cvtsi64_si128(over), 0);

	return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

TARGET static uint32_t three_lanes(uint32_t crc, const uint8_t *p, const struct lane *lane)
{
	uint64_t a = crc, b = 0, c = 0;

	for (const uint8_t *end = p + lane->bytes; p < end; p += 8) {
		a = _mm_crc32_u64(a, rvcm_le64_get(p));
		b = _mm_crc32_u64(b, rvcm_le64_get(p + lane->bytes));
		c = _mm_crc32_u64(c, rvcm_le64_get(p + 2 * lane->bytes));
	}
	return shift((uint32_t)a, lane->over_2) ^ shift((uint32_t)b, lane->over_1) ^ (uint32_t)c;
}

TARGET static uint32_t update_cpu(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	crc = ~crc;
	for (; len >= 3 * lane_long.bytes; len -= 3 * lane_long.bytes, p += 3 * lane_long.bytes)
		crc = three_lanes(crc, p, &lane_long);
	for (; len >= 3 * lane_short.bytes; len -= 3 * lane_short.bytes, p += 3 * lane_short.bytes)
		crc = three_lanes(crc, p, &lane_short);
	for (; len >= 8; len -= 8, p += 8)
		crc = (uint32_t)_mm_crc32_u64(crc, rvcm_le64_get(p));
	for (; len > 0; len--, p++)
		crc = _mm_crc32_u8(crc, *p);
	return ~crc;
}

/* A flag that was set before main: cheaper than a pointer that each connection would carry. */
bool rvcm_soft_crc_hardware(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#else

static uint32_t update_cpu(uint32_t crc, const void *buf, size_t len)
{
	return rvcm_soft_crc_update_table(crc, buf, len);
}

bool rvcm_soft_crc_hardware(void)
{
	return false;
}

#endif

uint32_t rvcm_soft_crc_update(uint32_t crc, const void *buf, size_t len)
{
	if (rvcm_soft_crc_hardware())
		return update_cpu(crc, buf, len);
	return rvcm_soft_crc_update_table(crc, buf, len);
}

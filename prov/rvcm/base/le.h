/* SPDX-License-Identifier: BSD-2-Clause */
/* Little- and big-endian integers at any address: rvcm_le32_get(p), rvcm_be16_put(p, x), ... */
#ifndef RVCM_BASE_LE_H
#define RVCM_BASE_LE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* memcpy is how C reads an unaligned integer; compilers make one instruction of it. */
#define RVCM_LE_DEFINE(order, bits)                                                \
	static inline uint##bits##_t rvcm_##order##bits##_get(const void *p)       \
	{                                                                          \
		uint##bits##_t x;                                                  \
                                                                                   \
		memcpy(&x, p, sizeof(x));                                          \
		return order##bits##toh(x);                                        \
	}                                                                          \
                                                                                   \
	static inline void rvcm_##order##bits##_put(void *p, uint##bits##_t value) \
	{                                                                          \
		uint##bits##_t x = hto##order##bits(value);                        \
                                                                                   \
		memcpy(p, &x, sizeof(x));                                          \
	}

RVCM_LE_DEFINE(le, 16)
RVCM_LE_DEFINE(le, 32)
RVCM_LE_DEFINE(le, 64)
RVCM_LE_DEFINE(be, 16)
RVCM_LE_DEFINE(be, 32)
RVCM_LE_DEFINE(be, 64)

#undef RVCM_LE_DEFINE

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Scattered memory: lengths and copies. Elements may be empty; then their address means nothing. */
#ifndef RVCM_PROTO_IOV_H
#define RVCM_PROTO_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/proto.h"

/* Sum of the lengths; false if it does not fit a size_t. */
static inline bool rvcm_iov_total(const struct rvcm_ep_iov *iov, uint32_t n, size_t *total)
{
	size_t sum = 0;

	if (n == 1) {
		*total = iov->length;
		return true;
	}
	for (uint32_t i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, iov[i].length, &sum))
			return false;
	*total = sum;
	return true;
}

/* Elements that are not empty. */
static inline uint32_t rvcm_iov_pieces(const struct rvcm_ep_iov *iov, uint32_t n)
{
	uint32_t pieces = 0;

	for (uint32_t i = 0; i < n; i++)
		pieces += iov[i].length != 0;
	return pieces;
}

/* Copy all of iov to dst. */
static inline void rvcm_iov_gather(uint8_t *dst, const struct rvcm_ep_iov *iov, uint32_t n)
{
	if (n == 1 && iov->length) {
		memcpy(dst, iov->addr, iov->length);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (iov[i].length == 0)
			continue;
		memcpy(dst, iov[i].addr, iov[i].length);
		dst += iov[i].length;
	}
}

/* Copy src into iov from byte offset of it on, as far as it goes; returns the bytes copied. */
static inline size_t rvcm_iov_scatter(const struct rvcm_ep_iov *iov, uint32_t n, size_t offset,
				      const uint8_t *src, size_t bytes)
{
	size_t done = 0;

	if (n == 1 && offset == 0 && bytes && bytes <= iov->length) {
		memcpy(iov->addr, src, bytes);
		return bytes;
	}
	for (uint32_t i = 0; i < n && done < bytes; i++) {
		size_t skip = offset < iov[i].length ? offset : iov[i].length;
		size_t room = iov[i].length - skip;
		size_t part = room < bytes - done ? room : bytes - done;

		offset -= skip;
		if (part == 0)
			continue;
		memcpy((uint8_t *)iov[i].addr + skip, src + done, part);
		done += part;
	}
	return done;
}

#endif

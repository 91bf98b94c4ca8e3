/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What echo_fi, on libfabric's MSG endpoints, and echo_dev, on a device of ours, say to each other.
 * Either is a client or a server.
 *
 * Private data: ECHO_REQUEST from the client, ECHO_ANSWER from the server, as an application gives
 * them. libfabric's verbs provider puts a byte in front, their length.
 *
 *   client: a message of 12 bytes, big-endian: address 8, rkey 4, of ECHO_MEMORY bytes of fill 1
 *   server: READs these, WRITEs fill 2 in their place, answers with a message of 1 byte
 *   client: messages of ECHO_SIZES, fill 3 and on; each comes back, when the next is sent
 *   client: hangs up
 *
 * Every message has the receive for it posted beforehand. The client speaks first, as iWARP wants.
 */
#ifndef RVCM_FABTESTS_VM_ECHO_H
#define RVCM_FABTESTS_VM_ECHO_H

#include <stddef.h>
#include <stdint.h>

#define ECHO_REQUEST   "may I come in?"
#define ECHO_ANSWER    "please do"
#define ECHO_PRIVATE   16 /* bytes of either, padded with zeros */
#define ECHO_INFO      12
#define ECHO_MEMORY    (64u << 10)
#define ECHO_BYTES_MAX (1u << 20)
#define ECHO_ROUNDS    3

static const size_t echo_sizes[] = { 1, 17, 4096, 65536, 300001, ECHO_BYTES_MAX };

#define ECHO_MESSAGES (ECHO_ROUNDS * sizeof(echo_sizes) / sizeof(echo_sizes[0]))

static inline size_t echo_size(unsigned int message)
{
	return echo_sizes[message % (sizeof(echo_sizes) / sizeof(echo_sizes[0]))];
}

static inline uint8_t echo_byte(size_t i, unsigned int fill)
{
	return (uint8_t)((i * 131 + fill * 29) ^ (i >> 8) ^ (i >> 16));
}

static inline void echo_fill(uint8_t *buf, size_t bytes, unsigned int fill)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = echo_byte(i, fill);
}

/* The first byte that differs, or bytes. */
static inline size_t echo_differs(const uint8_t *buf, size_t bytes, unsigned int fill)
{
	size_t i = 0;

	while (i < bytes && buf[i] == echo_byte(i, fill))
		i++;
	return i;
}

#endif

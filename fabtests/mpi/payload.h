/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the MPI programs put into their messages, and how they look at what arrives.
 *
 * Every byte is a function of the message's key and of its place in the message, so a byte that
 * comes from another message, another offset or nowhere is seen.  A receive buffer is poisoned
 * before it is posted and is GUARD bytes longer than the message: what lies behind the message must
 * stay poison.
 */
#ifndef RVCM_FABTESTS_MPI_PAYLOAD_H
#define RVCM_FABTESTS_MPI_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_GUARD 64

/* What a message is; ranks are those of MPI_COMM_WORLD.  serial tells messages of one tag apart. */
struct payload_key {
	int source;
	int dest;
	int tag;
	unsigned int serial;
};

/* Fill size bytes at buf with the message of this key. */
void payload_fill(void *buf, size_t size, struct payload_key key);

/* Make size bytes and the guard behind them differ from every message. */
void payload_poison(void *buf, size_t size);

/*
 * Compare size bytes with the message of this key, and the guard behind them with poison.
 * On a difference: print the place and the bytes as "what", then MPI_Abort.
 */
void payload_check(const void *buf, size_t size, struct payload_key key, const char *what);

/* size bytes and the guard, aligned to a page; MPI_Abort when there is no memory.  Freed by free().
 */
void *payload_alloc(size_t size);

#endif

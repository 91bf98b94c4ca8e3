/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA inside proto/: regions are memory of our own that peers use, keys what we know of theirs, and
 * operations are sends (struct rvcm_send) that have a key.
 */
#ifndef RVCM_PROTO_RMA_H
#define RVCM_PROTO_RMA_H

#include "proto/proto_impl.h"

enum rvcm_key_state {
	RVCM_KEY_FRESH,
	RVCM_KEY_ASKED,
	RVCM_KEY_HELD,
	RVCM_KEY_REFUSED,
	RVCM_KEY_GONE,
};

/* What we know of memory of a peer's: key.c. */
struct rvcm_key {
	struct rvcm_hash_node by_name; /* ep.keys, unless it is refused or gone */
	struct rvcm_list of_peer;
	struct rvcm_list leaving; /* peer.leaving: KEY_LEFT waits for credit */
	struct rvcm_peer *peer;
	uint64_t key;
	uint32_t id;
	uint32_t uses; /* operations */
	enum rvcm_key_state state;
	enum rvcm_status status; /* refused, gone: why */
	/* held */
	uint32_t access;
	uint32_t rkey;
	uint64_t base, length, raddr;
};

/* -- region.c -- */

rvcm_hash_eq rvcm_region_eq;
/* The messages KEY_GET, KEY_LEFT. Return NULL, or what is wrong. */
const char *rvcm_region_asked(struct rvcm_peer *peer, const struct rvcm_parse *msg);
const char *rvcm_region_left(struct rvcm_peer *peer, const struct rvcm_parse *msg);
/* Send what the peer is to be told of keys. False: no credit. */
bool rvcm_region_flush(struct rvcm_peer *peer);
/* The peer is lost, or freed: it uses nothing of ours. */
void rvcm_region_forget(struct rvcm_peer *peer);
/* So many bytes of our own memory at addr of that key; NULL: *why says why not. */
void *rvcm_region_memory(const struct rvcm_engine *engine, uint64_t key, uint32_t access,
			 uint64_t addr, size_t length, struct rvcm_why *why);

/* -- key.c -- */

rvcm_hash_eq rvcm_key_eq;
/* For one more operation, which puts it. NULL: no memory. */
struct rvcm_key *rvcm_key_get(struct rvcm_peer *peer, uint64_t key);
void rvcm_key_put(struct rvcm_key *key);
/* For the first of the queue: is it to wait, for credit or a KEY? (Else it is held, or never
 * will be.)
 */
bool rvcm_key_await(struct rvcm_key *key);
/* The messages KEY, KEY_GONE. Return NULL, or what is wrong. */
const char *rvcm_key_told(struct rvcm_peer *peer, const struct rvcm_parse *msg);
const char *rvcm_key_gone(struct rvcm_peer *peer, const struct rvcm_parse *msg);
/* Send KEY_LEFTs. False: no credit. */
bool rvcm_key_flush(struct rvcm_peer *peer);
/* The peer is lost, or freed, and no operation of it is left. */
void rvcm_key_forget(struct rvcm_peer *peer);

/* -- rma.c -- */

/* May so many bytes at addr of such memory be used so? Else *why says why not. */
bool rvcm_rma_allows(uint32_t rights, uint64_t base, uint64_t bytes, uint32_t access, uint64_t addr,
		     size_t length, struct rvcm_why *why);
/* Go on with the first of the queue. False: it waits. */
bool rvcm_rma_next(struct rvcm_send *send);
/* Report, count and free. */
void rvcm_rma_end(struct rvcm_send *send, const struct rvcm_why *why);
/* Put what it has. */
void rvcm_rma_release(struct rvcm_send *send);
/* A WRITE_DATA came. */
const char *rvcm_rma_written(struct rvcm_peer *peer, const struct rvcm_parse *msg);

#endif

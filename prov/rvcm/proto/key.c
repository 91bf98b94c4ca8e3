/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of peers' memory (fi_mr_key(3)), from the side that uses them; region.c is the owner's.
 *
 *   fresh -> asked (KEY_GET) -> held (KEY) -> gone (KEY_GONE) -> KEY_LEFT sent, freed
 *                            -> refused (KEY), freed
 *
 * A key is asked for when the first operation with it is the first of its peer's queue, and kept
 * until its owner closes the memory or is lost. What is gone or was refused is found by no new
 * operation, which asks anew: the owner may have given the key to other memory.
 */
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

struct name {
	const struct rvcm_peer *peer;
	uint64_t key;
};

bool rvcm_key_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_key *key = rvcm_container_of(node, const struct rvcm_key, by_name);
	const struct name *name = arg;

	return key->peer == name->peer && key->key == name->key;
}

static uint64_t hash_of(const struct rvcm_peer *peer, uint64_t key)
{
	return rvcm_hash_pair(peer->ep->engine->seed, (uintptr_t)peer, key);
}

static struct rvcm_key *make(struct rvcm_peer *peer, uint64_t number)
{
	struct rvcm_ep *ep = peer->ep;
	struct rvcm_key *key = rvcm_mem_zalloc(sizeof(*key));

	if (!key)
		return NULL;
	if (rvcm_idmap_alloc(&ep->key_ids, key, &key->id)) {
		rvcm_mem_free(key);
		return NULL;
	}
	key->peer = peer;
	key->key = number;
	key->state = RVCM_KEY_FRESH;
	rvcm_list_init(&key->leaving);
	rvcm_list_add_tail(&peer->keys, &key->of_peer);
	rvcm_hash_insert(&ep->keys, &key->by_name, hash_of(peer, number));
	return key;
}

struct rvcm_key *rvcm_key_get(struct rvcm_peer *peer, uint64_t number)
{
	const struct name name = { .peer = peer, .key = number };
	struct rvcm_hash_node *node;
	struct rvcm_key *key;

	node = rvcm_hash_find(&peer->ep->keys, hash_of(peer, number), &name);
	key = node ? rvcm_container_of(node, struct rvcm_key, by_name) : make(peer, number);
	if (key)
		key->uses++;
	return key;
}

/* Is it found by new operations? */
static bool is_found(const struct rvcm_key *key)
{
	return key->state != RVCM_KEY_GONE && key->state != RVCM_KEY_REFUSED;
}

static void hide(struct rvcm_key *key, enum rvcm_key_state state)
{
	rvcm_hash_del(&key->peer->ep->keys, &key->by_name);
	key->state = state;
}

static void free_key(struct rvcm_key *key)
{
	if (is_found(key))
		hide(key, RVCM_KEY_REFUSED);
	rvcm_idmap_free(&key->peer->ep->key_ids, key->id);
	rvcm_list_del(&key->of_peer);
	rvcm_list_del(&key->leaving);
	rvcm_mem_free(key);
}

/* Nothing uses it; but what is held stays, and what is asked for will be answered. */
static void let_go(struct rvcm_key *key)
{
	if (key->state == RVCM_KEY_GONE)
		rvcm_list_add_tail(&key->peer->leaving, &key->leaving);
	else if (key->state == RVCM_KEY_FRESH || key->state == RVCM_KEY_REFUSED)
		free_key(key);
}

void rvcm_key_put(struct rvcm_key *key)
{
	assert(key->uses > 0);
	if (--key->uses == 0)
		let_go(key);
}

/* Ask. False: no credit. */
static bool ask(struct rvcm_key *key)
{
	size_t bytes = rvcm_put_bytes(0) + sizeof(struct rvcm_message_key_get);
	uint8_t *buf = rvcm_path_reserve(key->peer->path, bytes);

	if (!buf)
		return false;
	buf = rvcm_put_header(buf, RVCM_MESSAGE_KEY_GET, 0, key->id, 0, 0);
	rvcm_le64_put(buf, key->key);
	rvcm_path_commit(key->peer->path, bytes, RVCM_PATH_SOON);
	key->state = RVCM_KEY_ASKED;
	return true;
}

bool rvcm_key_await(struct rvcm_key *key)
{
	if (key->state == RVCM_KEY_FRESH && !ask(key))
		return true;
	if (key->state != RVCM_KEY_ASKED)
		return false;
	key->peer->keyless = true;
	return true;
}

/* -- what owners say ----------------------------------------------------------------------- */

static struct rvcm_key *find(struct rvcm_peer *peer, uint32_t id, enum rvcm_key_state state)
{
	struct rvcm_key *key = rvcm_idmap_get(&peer->ep->key_ids, id);

	return key && key->peer == peer && key->state == state ? key : NULL;
}

const char *rvcm_key_told(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_key *key = find(peer, msg->op_id, RVCM_KEY_ASKED);

	if (!key) /* it may not have noticed yet that we lost each other */
		return peer->was_down ? NULL : "KEY that was not asked for";
	if (msg->status == RVCM_STATUS_OK) {
		key->state = RVCM_KEY_HELD;
		key->access = msg->access;
		key->base = msg->base;
		key->length = msg->length;
		key->raddr = rvcm_le64_get(msg->rails[0].address);
		key->rkey = rvcm_le32_get(msg->rails[0].rkey);
		rvcm_stat_inc(&peer->ep->stats.rma_keys);
	} else {
		hide(key, RVCM_KEY_REFUSED);
		key->status = msg->status;
		if (key->uses == 0)
			let_go(key);
	}
	rvcm_peer_go(peer);
	return NULL;
}

const char *rvcm_key_gone(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_key *key = find(peer, msg->op_id, RVCM_KEY_HELD);

	if (!key)
		return peer->was_down ? NULL : "KEY_GONE of what is not held";
	hide(key, RVCM_KEY_GONE);
	key->status = RVCM_STATUS_KEY_REJECTED;
	if (key->uses == 0)
		let_go(key);
	rvcm_peer_go(peer);
	return NULL;
}

bool rvcm_key_flush(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->leaving))) {
		struct rvcm_key *key = rvcm_container_of(node, struct rvcm_key, leaving);
		uint8_t *buf = rvcm_path_reserve(peer->path, rvcm_put_bytes(0));

		if (!buf)
			return false;
		rvcm_put_header(buf, RVCM_MESSAGE_KEY_LEFT, 0, key->id, 0, 0);
		rvcm_path_commit(peer->path, rvcm_put_bytes(0), RVCM_PATH_SOON);
		free_key(key);
	}
	return true;
}

void rvcm_key_forget(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->keys))) {
		struct rvcm_key *key = rvcm_container_of(node, struct rvcm_key, of_peer);

		assert(key->uses == 0);
		free_key(key);
	}
	peer->keyless = false;
}

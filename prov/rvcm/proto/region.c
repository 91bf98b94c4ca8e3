/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of ours that peers read and write (fi_mr(3)), from the owner's side; key.c is theirs.
 *
 * A region has a key, by which peers ask for it (KEY_GET). Who is told (KEY) gets what its device
 * needs, and a *grant* says so. When the region is closed nobody is told any more, and who has been
 * is told that (KEY_GONE): he begins nothing new with it, and says KEY_LEFT when what he had begun
 * has ended. Until then, or until he is lost, the region stays registered, though the application
 * has closed it; so no device finds a key that it does not know, which would cost a connection and
 * all that is pending on it.
 *
 * A peer has one question open at a time.
 */
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

_Static_assert((int)RVCM_REGION_READ == (int)RVCM_MESSAGE_READ, "same bit");
_Static_assert((int)RVCM_REGION_WRITE == (int)RVCM_MESSAGE_WRITE, "same bit");

struct rvcm_region {
	struct rvcm_engine *engine;
	struct rvcm_hash_node by_key; /* engine.regions, until it is closed */
	struct rvcm_region_attr attr;
	struct rvcm_mr *mr;
	bool closed;
	struct rvcm_list grants; /* by grant.of_region */
};

struct grant {
	struct rvcm_region *region;
	struct rvcm_peer *peer;
	uint32_t id; /* the peer's number for it */
	struct rvcm_list of_region, of_peer;
	struct rvcm_list due; /* peer.gone: KEY_GONE waits for credit; peer.parting: it was sent */
};

bool rvcm_region_eq(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_container_of(node, const struct rvcm_region, by_key)->attr.key ==
	       *(const uint64_t *)key;
}

static struct rvcm_region *find(const struct rvcm_engine *engine, uint64_t key)
{
	struct rvcm_hash_node *node;

	node = rvcm_hash_find(&engine->regions, rvcm_hash_u64(engine->seed, key), &key);
	return node ? rvcm_container_of(node, struct rvcm_region, by_key) : NULL;
}

static uint32_t device_access(uint32_t access)
{
	uint32_t device = 0;

	if (access & RVCM_REGION_READ)
		device |= RVCM_DEV_ACCESS_REMOTE_READ;
	if (access & RVCM_REGION_WRITE)
		device |= RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_WRITE;
	return device;
}

int rvcm_region_open(struct rvcm_engine *engine, const struct rvcm_region_attr *attr,
		     struct rvcm_region **region)
{
	struct rvcm_region *r;
	int rc;

	if (find(engine, attr->key))
		return -EEXIST;
	if (attr->length > UINT64_MAX - attr->base)
		return -EINVAL;
	r = rvcm_mem_zalloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	rc = rvcm_mr_get(engine->mr, attr->addr, attr->length, device_access(attr->access), &r->mr);
	if (rc) {
		rvcm_mem_free(r);
		return rc;
	}
	r->engine = engine;
	r->attr = *attr;
	rvcm_list_init(&r->grants);
	rvcm_hash_insert(&engine->regions, &r->by_key, rvcm_hash_u64(engine->seed, attr->key));
	engine->n_regions++;
	*region = r;
	return 0;
}

/* The last who could use it is through. */
static void free_region(struct rvcm_region *region)
{
	region->engine->n_regions--;
	rvcm_mr_put(region->mr);
	rvcm_mem_free(region);
}

static void end_grant(struct grant *grant)
{
	struct rvcm_region *region = grant->region;

	rvcm_list_del(&grant->of_region);
	rvcm_list_del(&grant->of_peer);
	rvcm_list_del(&grant->due);
	grant->peer->n_grants--;
	rvcm_peer_expose(grant->peer, -1);
	rvcm_mem_free(grant);
	if (region->closed && rvcm_list_empty(&region->grants))
		free_region(region);
}

void rvcm_region_close(struct rvcm_region *region)
{
	struct rvcm_list *pos, *tmp;

	rvcm_hash_del(&region->engine->regions, &region->by_key);
	region->closed = true;
	if (rvcm_list_empty(&region->grants)) {
		free_region(region);
		return;
	}
	rvcm_list_for_each_safe (pos, tmp, &region->grants) {
		struct grant *grant = rvcm_container_of(pos, struct grant, of_region);

		rvcm_list_add_tail(&grant->peer->gone, &grant->due);
		rvcm_peer_go(grant->peer);
	}
}

void rvcm_region_forget(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->grants)))
		end_grant(rvcm_container_of(node, struct grant, of_peer));
	peer->key_id = 0;
}

/* -- what peers ask ------------------------------------------------------------------------ */

const char *rvcm_region_asked(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	if (peer->ep->closing) { /* and its memory is not told any more */
		rvcm_path_dropped(peer->path);
		return NULL;
	}
	/*
	 * One at a time; but it may have lost us, and begun anew, and we need not have noticed:
	 * then what it asked before is not waited for. Each is told once, and what is closed no
	 * more.
	 */
	if (peer->n_grants > peer->ep->engine->n_regions)
		return "KEY_GET of what it has been told";
	peer->key_id = msg->op_id;
	peer->key_asked = msg->key;
	rvcm_peer_go(peer);
	return NULL;
}

static struct grant *grant_of(struct rvcm_peer *peer, struct rvcm_region *region)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &region->grants) {
		struct grant *grant = rvcm_container_of(pos, struct grant, of_region);

		if (grant->peer == peer)
			return grant;
	}
	return NULL;
}

/* It is asked for again by who has lost us, and its number for it. */
static struct grant *new_grant(struct rvcm_peer *peer, struct rvcm_region *region)
{
	struct grant *grant = grant_of(peer, region);

	if (grant) {
		grant->id = peer->key_id;
		return grant;
	}
	grant = rvcm_mem_zalloc(sizeof(*grant));
	if (!grant)
		return NULL;
	grant->region = region;
	grant->peer = peer;
	grant->id = peer->key_id;
	rvcm_list_init(&grant->due);
	rvcm_list_add_tail(&region->grants, &grant->of_region);
	rvcm_list_add_tail(&peer->grants, &grant->of_peer);
	peer->n_grants++;
	rvcm_peer_expose(peer, 1);
	return grant;
}

/* Let the peer use what it has asked for, on the device that its messages come by. */
static int grant_region(struct rvcm_peer *peer, struct rvcm_message_key *key)
{
	struct rvcm_region *region = find(peer->ep->engine, peer->key_asked);
	struct rvcm_message_rail *rail = (void *)(key + 1);
	uint16_t dev = peer->path->read_dev;
	struct rvcm_dev_mr *dev_mr;
	int rc;

	if (!region)
		return -EKEYREJECTED;
	rc = rvcm_mr_dev(region->mr, dev, &dev_mr);
	if (rc)
		return rc;
	if (!new_grant(peer, region))
		return -ENOMEM;
	rvcm_path_bulk(peer->path, region->attr.length);
	key->access = (uint8_t)region->attr.access;
	rvcm_le16_put(key->n_rails, 1);
	rvcm_le64_put(key->base, region->attr.base);
	rvcm_le64_put(key->length, region->attr.length);
	memset(rail, 0, sizeof(*rail));
	rvcm_le64_put(rail->address, (uintptr_t)region->attr.addr);
	rvcm_le32_put(rail->rkey, dev_mr->rkey);
	rvcm_le16_put(rail->rail, dev);
	return 0;
}

static enum rvcm_status status_of(int rc)
{
	return rc == -EKEYREJECTED ? RVCM_STATUS_KEY_REJECTED : rvcm_status_from_errno(-rc);
}

/* Answer the peer's question. False: no credit. */
static bool send_key(struct rvcm_peer *peer)
{
	size_t bytes = rvcm_put_bytes(0) + sizeof(struct rvcm_message_key);
	size_t rail = sizeof(struct rvcm_message_rail);
	bool has_room = bytes + rail <= rvcm_path_message_max(peer->path);
	uint8_t *buf = rvcm_path_reserve(peer->path, bytes + (has_room ? rail : 0));
	struct rvcm_message_key *key;
	int rc;

	if (!buf)
		return false;
	key = (void *)rvcm_put_header(buf, RVCM_MESSAGE_KEY, 0, peer->key_id, 0, 0);
	memset(key, 0, sizeof(*key));
	rc = has_room ? grant_region(peer, key) : -ENOMEM;
	if (rc)
		rvcm_le32_put(key->status, status_of(rc));
	rvcm_path_commit(peer->path, bytes + (rc ? 0 : rail), RVCM_PATH_SOON);
	peer->key_id = 0;
	return true;
}

static bool send_gone(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->gone))) {
		struct grant *grant = rvcm_container_of(node, struct grant, due);
		uint8_t *buf = rvcm_path_reserve(peer->path, rvcm_put_bytes(0));

		if (!buf)
			return false;
		rvcm_put_header(buf, RVCM_MESSAGE_KEY_GONE, 0, grant->id, 0, 0);
		rvcm_path_commit(peer->path, rvcm_put_bytes(0), RVCM_PATH_SOON);
		rvcm_list_del(node);
		rvcm_list_add_tail(&peer->parting, node);
	}
	return true;
}

bool rvcm_region_flush(struct rvcm_peer *peer)
{
	return (!peer->key_id || send_key(peer)) && send_gone(peer);
}

const char *rvcm_region_left(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &peer->parting) {
		struct grant *grant = rvcm_container_of(pos, struct grant, due);

		if (grant->id != msg->op_id)
			continue;
		end_grant(grant);
		return NULL;
	}
	/* It may not have noticed yet that we lost each other. */
	return peer->was_down ? NULL : "KEY_LEFT of what is not gone";
}

/* -- and what we do ourselves -------------------------------------------------------------- */

void *rvcm_region_memory(const struct rvcm_engine *engine, uint64_t key, uint32_t access,
			 uint64_t addr, size_t length, struct rvcm_why *why)
{
	const struct rvcm_region *region = find(engine, key);

	if (!region) {
		*why = (struct rvcm_why) { .status = RVCM_STATUS_KEY_REJECTED };
		return NULL;
	}
	if (!rvcm_rma_allows(region->attr.access, region->attr.base, region->attr.length, access,
			     addr, length, why))
		return NULL;
	return (uint8_t *)region->attr.addr + (addr - region->attr.base);
}

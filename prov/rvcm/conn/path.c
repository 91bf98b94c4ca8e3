/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: their lives. Who meets whom is meet.c's; what proto asks of one, path_use.c's. */
#include <errno.h>

#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/way.h"

/* Of a written tail: other messages shall not wait long behind it, and it is to be done again if
 * the link breaks.
 */
#define WRITE_MAX ((size_t)1 << 20)

/* -- finding and making ---------------------------------------------------------------------- */

struct in_key {
	const struct rvcm_conn *conn;
	uint32_t slots;
};

bool rvcm_path_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_path_full *path =
		rvcm_container_of(node, const struct rvcm_path_full, node);
	const struct rvcm_conn_key *key = arg;

	return path->slot == key->slot && rvcm_addr_equal(&path->pub.peer, key->peer);
}

bool rvcm_path_in_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_path_full *path =
		rvcm_container_of(node, const struct rvcm_path_full, by_in);
	const struct in_key *key = arg;

	return path->in == key->conn && path->in_slots == key->slots;
}

static uint64_t in_hash(const struct rvcm_conn *conn, uint32_t slots)
{
	return rvcm_hash_pair(conn->carrier->hash_seed, conn->serial, slots);
}

struct rvcm_path_full *rvcm_path_heard(struct rvcm_conn *conn, uint32_t slots)
{
	const struct in_key key = { .conn = conn, .slots = slots };
	struct rvcm_path_full *path = conn->last_in;
	struct rvcm_hash_node *node;

	if (path && path->in_slots == slots)
		return path;
	node = rvcm_hash_find(&conn->carrier->ins, in_hash(conn, slots), &key);
	if (!node)
		return NULL;
	conn->last_in = rvcm_container_of(node, struct rvcm_path_full, by_in);
	conn->usual = false; /* and who is that? */
	return conn->last_in;
}

static struct rvcm_path_full *create(const struct rvcm_conn_key *key, uint64_t hash)
{
	struct rvcm_slot *slot = (struct rvcm_slot *)(uintptr_t)key->slot;
	struct rvcm_path_full *path = rvcm_mem_zalloc(sizeof(*path));

	if (!path)
		return NULL;
	path->pub.peer = *key->peer;
	path->pub.slot = slot->index;
	path->pub.way = &rvcm_way_none;
	path->carrier = slot->carrier;
	path->slot = slot;
	path->fresh = true;
	rvcm_list_init(&path->wait);
	rvcm_list_init(&path->of_out);
	rvcm_list_init(&path->of_blocked);
	rvcm_list_init(&path->of_confirms);
	rvcm_list_init(&path->of_in);
	rvcm_list_init(&path->of_ended);
	rvcm_list_init(&path->backlog);
	rvcm_list_init(&path->heirs);
	rvcm_list_init(&path->of_backlogs);
	rvcm_hash_insert(&slot->carrier->paths, &path->node, hash);
	rvcm_list_add_tail(&slot->paths, &path->of_slot);
	return path;
}

struct rvcm_path_full *rvcm_path_find(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	const struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_hash_node *node = rvcm_hash_find(&slot->carrier->paths,
						     rvcm_conn_key_hash(slot->carrier, &key), &key);

	return node ? rvcm_container_of(node, struct rvcm_path_full, node) : NULL;
}

struct rvcm_path_full *rvcm_path_obtain(struct rvcm_slot *slot, const struct rvcm_addr *peer,
					bool *is_new)
{
	const struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	uint64_t hash = rvcm_conn_key_hash(slot->carrier, &key);
	struct rvcm_hash_node *node = rvcm_hash_find(&slot->carrier->paths, hash, &key);

	*is_new = !node;
	return node ? rvcm_container_of(node, struct rvcm_path_full, node) : create(&key, hash);
}

int rvcm_path_get(struct rvcm_carrier *carrier, uint16_t index, const struct rvcm_addr *peer,
		  struct rvcm_path **out)
{
	struct rvcm_slot *slot = carrier->slots[index];
	struct rvcm_path_full *path;
	bool is_new;

	if (!slot || rvcm_addr_cmp(&slot->name, peer) == 0)
		return -EINVAL;
	path = rvcm_path_obtain(slot, peer, &is_new);
	if (!path)
		return -ENOMEM;
	*out = &path->pub;
	return 0;
}

/* -- who had the name when ------------------------------------------------------------------- */

void rvcm_path_meet(struct rvcm_path_full *path, uint32_t incarnation, uint64_t number)
{
	if (path->met > number)
		return;
	path->met = number;
	path->met_incarnation = incarnation;
}

bool rvcm_path_is_outlived(const struct rvcm_path_full *path, uint32_t incarnation, uint64_t number)
{
	return path && path->met_incarnation != incarnation && path->met > number;
}

/* -- the two directions ---------------------------------------------------------------------- */

static void unbind(struct rvcm_path_full *path)
{
	path->pub.up = false;
	rvcm_path_send_on(path, NULL);
	path->out = NULL;
	path->introduced = false;
	rvcm_list_del(&path->of_out);
	rvcm_list_del(&path->of_blocked);
	rvcm_list_del(&path->of_confirms);
	path->confirm = false;
}

void rvcm_path_unhear(struct rvcm_path_full *path)
{
	if (!path->in)
		return;
	if (path->in->last_in == path) {
		path->in->last_in = NULL;
		path->in->usual = false;
	}
	if (path->in->placing == path) /* it may be freed before the conn places again */
		path->in->placing = NULL;
	rvcm_hash_del(&path->carrier->ins, &path->by_in);
	rvcm_list_del(&path->of_in);
	if (path->unsaid) /* its END may still be owed, without it */
		rvcm_conn_schedule(path->in);
	path->unsaid = false;
	path->in = NULL;
}

static void stop_placing(struct rvcm_path_full *path)
{
	path->placing = false;
	if (path->in && path->in->placing == path)
		path->in->unplaced = false;
}

/* Half of it is lost, and the rest follows. */
void rvcm_path_cut(struct rvcm_path_full *path, const struct rvcm_conn *lost)
{
	rvcm_path_send_on(path, NULL);
	path->pub.up = false;
	if (path->out == lost)
		unbind(path);
	if (path->in == lost) {
		stop_placing(path);
		rvcm_path_unhear(path);
	}
	path->cut = true; /* nothing takes the place of what is left */
}

static uint8_t lead_bytes(const struct rvcm_conn *conn)
{
	uint8_t bytes = conn->carrier->devs[conn->dev].dev->attr.lead_bytes;

	return bytes ? bytes + (uint8_t)sizeof(struct rvcm_wire_frame) : 0;
}

/* A write and its message are two posts. */
static size_t write_most(const struct rvcm_conn *conn)
{
	const struct rvcm_dev_attr *attr = &conn->carrier->devs[conn->dev].dev->attr;

	if (attr->sq_depth_max < 2)
		return 0;
	return attr->message_bytes_max < WRITE_MAX ? (size_t)attr->message_bytes_max : WRITE_MAX;
}

void rvcm_path_bind(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot,
		    bool known)
{
	path->waiting = false;
	rvcm_list_del(&path->wait);
	path->fresh = false;
	path->out = conn;
	conn->is_out = true;
	path->out_slot = peer_slot;
	path->out_slots = rvcm_wire_slots_of(path->slot->number, peer_slot);
	path->introduced = known;
	path->pub.dev = conn->dev;
	path->pub.lead_bytes = lead_bytes(conn);
	path->pub.tails = conn->carrier->devs[conn->dev].dev->attr.sge_max > 1;
	path->pub.write_most = write_most(conn);
	path->pub.write_max =
		conn->carrier->devs[conn->dev].dev->attr.pushes ? path->pub.write_most : 0;
	path->pub.shares = path->pub.write_max && conn->carrier->devs[conn->dev].dev->attr.shares;
	path->pub.up = conn->up;
	rvcm_path_send_on(path, conn->up && known ? conn : NULL);
	rvcm_list_add_tail(&conn->outs, &path->of_out);
	if (!path->blocked)
		return;
	rvcm_list_add_tail(&conn->blocked, &path->of_blocked);
	conn->usual = false;
	rvcm_conn_schedule(conn);
}

void rvcm_path_hear(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot,
		    bool implied)
{
	rvcm_path_unhear(path);
	path->fresh = false;
	path->in = conn;
	path->in_slot = peer_slot;
	path->in_slots = rvcm_wire_slots_of(peer_slot, path->slot->number);
	path->implied = implied;
	path->doubted = false;
	path->pub.read_dev = conn->dev;
	rvcm_list_add_tail(&conn->ins, &path->of_in);
	rvcm_hash_insert(&path->carrier->ins, &path->by_in, in_hash(conn, path->in_slots));
}

/* -- ends ------------------------------------------------------------------------------------ */

void rvcm_path_schedule(struct rvcm_path_full *path)
{
	if (!rvcm_list_empty(&path->wait))
		path->waiting = false; /* it is taken off the list of those that do */
	rvcm_list_del(&path->wait);
	rvcm_list_add_tail(&path->carrier->path_work, &path->wait);
	path->carrier->due = true;
}

/* The answer to END, if it has not been given: nothing of the peer's is in use any more. */
static void answer_end(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->ended_conn;

	path->ended_conn = NULL;
	rvcm_list_del(&path->of_ended);
	if (conn)
		rvcm_part_owe(conn, RVCM_WIRE_ENDED, path->slot->number, path->ended_slot, NULL);
}

/* What is told at the end of a path; where the conn is lost too, its own cause is told instead. */
static void end_in_time(struct rvcm_path_full *path)
{
	struct rvcm_conn_cause cause;

	path->down_due = false;
	rvcm_cause_set(&cause, &path->pub.peer, path->down_status, 0, NULL);
	rvcm_path_down(path, &cause);
}

void rvcm_path_lose(struct rvcm_path_full *path, enum rvcm_status status)
{
	path->pub.up = false;
	rvcm_path_send_on(path, NULL);
	rvcm_list_del(&path->of_blocked);
	path->down_due = true;
	path->down_status = status;
	rvcm_path_schedule(path);
}

void rvcm_path_down(struct rvcm_path_full *path, const struct rvcm_conn_cause *cause)
{
	struct rvcm_carrier *carrier = path->carrier;

	unbind(path);
	stop_placing(path);
	rvcm_path_unhear(path);
	path->pub.exposed = false;
	path->waiting = false;
	path->blocked = false;
	path->down_due = false;
	path->cut = false;
	path->doubted = false;
	rvcm_list_del(&path->wait);
	answer_end(path);
	rvcm_part_forget(path);
	if (path->leave != RVCM_PATH_STAYS)
		path->leave = RVCM_PATH_GONE;
	if (!path->slot->closing)
		carrier->attr.sink->down(carrier->attr.sink_ctx, &path->pub, cause);
	if (!rvcm_list_empty(&path->backlog))
		rvcm_path_schedule(path);
}

void rvcm_path_free(struct rvcm_path_full *path)
{
	rvcm_part_forget(path);
	rvcm_confirm_gone(path);
	rvcm_part_freed(path);
	unbind(path);
	rvcm_path_unhear(path);
	answer_end(path);
	rvcm_backlog_drop(path);
	rvcm_list_del(&path->wait);
	rvcm_list_del(&path->of_slot);
	rvcm_hash_del(&path->carrier->paths, &path->node);
	rvcm_mem_free(path);
}

static void go_on(struct rvcm_path_full *path)
{
	rvcm_backlog_hear(path);
	if (path->blocked && !path->out)
		rvcm_meet_want(path);
}

int rvcm_path_run(struct rvcm_carrier *carrier)
{
	struct rvcm_list due;
	struct rvcm_list *node;
	int n = 0;

	rvcm_list_init(&due);
	rvcm_list_splice_tail(&due, &carrier->path_work);
	while ((node = rvcm_list_pop(&due))) {
		struct rvcm_path_full *path = rvcm_list_entry(node, struct rvcm_path_full, wait);

		n++;
		if (path->down_due && !rvcm_path_in_use(path))
			end_in_time(path);
		else if (!path->down_due)
			go_on(path);
	}
	return n;
}

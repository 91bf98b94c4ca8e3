/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: their lives, and proto's way in. Who meets whom is meet.c's. */
#include <errno.h>

#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/way.h"

/*
 * Where no memory can be locked to send from, messages are made short enough for the device to copy
 * them. The longest that cannot be made shorter is an announcement without a rail: 16 bytes, 8 of
 * data, 16.
 */
#define TIGHT_LEAST    (sizeof(struct rvcm_wire_frame) + 40)
#define TIGHT_MESSAGES 64u

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

/* -- proto's way in -------------------------------------------------------------------------- */

static void block(struct rvcm_path_full *path)
{
	path->blocked = true;
	if (path->down_due)
		return;
	if (!path->out) {
		rvcm_meet_want(path);
		return;
	}
	if (path->out->up)
		rvcm_stat_inc(&path->carrier->stats.no_credit);
	path->out->usual = false;
	if (rvcm_list_empty(&path->of_blocked))
		rvcm_list_add_tail(&path->out->blocked, &path->of_blocked);
}

static bool has_credit(const struct rvcm_conn *conn)
{
	return conn->up && !conn->failing && rvcm_seq_before(conn->tx_seq, conn->tx_limit);
}

/* The first message waits until we have introduced ourselves, which takes a credit too. */
static inline __attribute__((always_inline)) struct rvcm_conn *sender(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->out;

	if (conn && !path->down_due && !path->introduced && has_credit(conn) &&
	    !rvcm_meet_introduce(path))
		rvcm_conn_schedule(conn);
	if (path->tx && has_credit(path->tx))
		return path->tx;
	block(path);
	return NULL;
}

static bool is_tight(const struct rvcm_conn *conn)
{
	return conn->tight && conn->link && rvcm_seq_before(conn->tx_seq, conn->tight_end);
}

/* What the device copies on this conn's link. */
static size_t tight_bytes_max(const struct rvcm_conn *conn)
{
	return conn->link->inline_bytes_max - sizeof(struct rvcm_wire_frame);
}

/* Until some more messages have left only what the device copies is sent, if that is enough. */
static void tighten(struct rvcm_conn *conn, int rc)
{
	if (conn->link->inline_bytes_max < TIGHT_LEAST) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, -rc,
			       "what is to be sent cannot be registered with the device");
		return;
	}
	conn->tight = true;
	conn->tight_end = conn->tx_seq + TIGHT_MESSAGES;
}

/* A buffer that the device can send from: it is registered, or short enough to be copied. */
static struct rvcm_buf *obtain(struct rvcm_conn *conn, size_t bytes, bool copied)
{
	bool needs_mr = !copied || bytes > conn->link->inline_bytes_max;
	struct rvcm_dev_mr *mr;
	struct rvcm_buf *buf;
	int rc;

	if (needs_mr && is_tight(conn))
		return NULL;
	buf = rvcm_buf_get(&conn->carrier->bufs, bytes);
	if (!buf || !needs_mr)
		return buf;
	rc = rvcm_buf_mr(buf, conn->link->dev, &mr);
	if (!rc)
		return buf;
	rvcm_buf_put(buf);
	tighten(conn, rc);
	return NULL;
}

static void *reserve(struct rvcm_path_full *path, struct rvcm_conn *conn, size_t bytes, bool copied)
{
	rvcm_way_bend(conn); /* it comes first */
	conn->reserved = obtain(conn, bytes + sizeof(struct rvcm_wire_frame), copied);
	if (!conn->reserved) {
		rvcm_conn_schedule(conn);
		block(path);
		return NULL;
	}
	return conn->reserved->frame + sizeof(struct rvcm_wire_frame);
}

void *rvcm_path_reserve_any(struct rvcm_path *pub, size_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = sender(path);

	if (!conn)
		return NULL;
	rvcm_way_open(conn);
	if (bytes < conn->way.end)
		return conn->way.next;
	return reserve(path, conn, bytes, true);
}

void *rvcm_path_reserve_head(struct rvcm_path *pub, size_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = sender(path);

	return conn ? reserve(path, conn, bytes, false) : NULL;
}

void rvcm_path_commit(struct rvcm_path *pub, size_t bytes, enum rvcm_path_when when)
{
	rvcm_tx_send(rvcm_path_full(pub), bytes, when);
}

void rvcm_path_commit_tail(struct rvcm_path *pub, size_t bytes, const struct rvcm_path_tail *tail)
{
	rvcm_tx_send_tail(rvcm_path_full(pub), bytes, tail);
}

void rvcm_path_cancel(struct rvcm_path *pub)
{
	struct rvcm_conn *conn = rvcm_path_full(pub)->tx;

	if (conn->reserved)
		rvcm_buf_put(conn->reserved);
	conn->reserved = NULL;
}

void rvcm_path_tell_ready(struct rvcm_conn *conn)
{
	struct rvcm_list due;
	struct rvcm_list *node;

	rvcm_list_init(&due);
	rvcm_list_splice_tail(&due, &conn->blocked);
	while (has_credit(conn) && (node = rvcm_list_first(&due))) {
		struct rvcm_path_full *path =
			rvcm_list_entry(node, struct rvcm_path_full, of_blocked);

		if (!path->introduced && !rvcm_meet_introduce(path))
			break;
		if (!has_credit(conn))
			break;
		rvcm_list_del(node);
		path->blocked = false;
		if (!path->slot->closing)
			conn->carrier->attr.sink->ready(conn->carrier->attr.sink_ctx, &path->pub);
	}
	/* Who has waited longest comes first the next time. */
	rvcm_list_splice_tail(&due, &conn->blocked);
	rvcm_list_splice_tail(&conn->blocked, &due);
}

static const struct rvcm_path_full *full_const(const struct rvcm_path *pub)
{
	return rvcm_path_full((struct rvcm_path *)(uintptr_t)pub);
}

size_t rvcm_path_message_max(const struct rvcm_path *pub)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	if (!conn)
		return RVCM_CONN_MESSAGE_FLOOR;
	if (is_tight(conn))
		return tight_bytes_max(conn);
	return conn->tx_bytes_max;
}

uint32_t rvcm_path_mark(const struct rvcm_path *pub)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	return conn ? conn->tx_seq : 0;
}

bool rvcm_path_accepted(const struct rvcm_path *pub, uint32_t mark)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	return conn && !rvcm_seq_before(conn->tx_acked, mark);
}

uint32_t rvcm_path_confirm(struct rvcm_path *pub)
{
	return rvcm_confirm_want(rvcm_path_full(pub));
}

void rvcm_path_dropped(struct rvcm_path *pub)
{
	rvcm_confirm_dropped(rvcm_path_full(pub));
}

int rvcm_path_read(struct rvcm_path *pub, const struct rvcm_path_read *op)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = op->out ? path->out : path->in;

	/* What an opener sends behind its HELLO arrives before ours has left: reads wait for that.
	 */
	if (!conn || path->down_due || rvcm_conn_is_lost(conn) ||
	    !(conn->up || conn->hello_seen || conn->recovering))
		return -ENOTCONN;
	return rvcm_read_start(conn, path, op);
}

void rvcm_path_bulk(struct rvcm_path *pub, uint64_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);

	if (path->out)
		rvcm_side_want(path->out, bytes);
	if (path->in && path->in != path->out)
		rvcm_side_want(path->in, bytes);
}

void rvcm_path_fault(struct rvcm_path *pub, enum rvcm_status status, const char *why)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = path->in ? path->in : path->out;

	rvcm_stat_inc(&path->carrier->stats.protocol_errors);
	if (conn)
		rvcm_conn_fail(conn, status, 0, why);
}

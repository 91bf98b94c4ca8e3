/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that meet, over links that their processes share, and part: which conn a path takes,
 * the frames PATH, END and ENDED, and what becomes of paths when a conn is lost.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

static bool is_usable(const struct rvcm_conn *conn)
{
	return conn && conn->link && !conn->failing && !conn->failed && !conn->ending &&
	       !conn->bye_due && !conn->bye_ordinal && !conn->peer_bye;
}

/* -- which conn ------------------------------------------------------------------------------ */

static void share(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot)
{
	rvcm_stat_inc(&path->carrier->stats.shared);
	rvcm_path_bind(path, conn, peer_slot, false);
}

/*
 * Take the conn, or wait for it: who was called may close before it looks, and what was sent would
 * be lost with the link; so the others wait until HELLO has come. False: it is of no use.
 */
static bool take(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot)
{
	if (!is_usable(conn))
		return false;
	if (conn->hello_seen) {
		share(path, conn, peer_slot);
		return true;
	}
	path->waiting = true;
	rvcm_list_del(&path->wait);
	rvcm_list_add_tail(&conn->awaiting, &path->wait);
	return true;
}

static struct rvcm_conn *connect(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = rvcm_conn_obtain(path->slot, &path->pub.peer);

	if (!conn) {
		rvcm_path_schedule(path); /* there may be memory later */
		return NULL;
	}
	if (take(path, conn, conn->peer_slot))
		return NULL;
	path->waiting = true;
	rvcm_conn_want(conn);
	return conn;
}

/*
 * An endpoint of our own carrier. One link joins the carrier with itself; of its two ends one is
 * for what the lower slots send, the other for the higher.
 */
static void want_self(struct rvcm_path_full *path, const struct rvcm_slot *own)
{
	struct rvcm_carrier *carrier = path->carrier;
	struct rvcm_conn *conn = carrier->self[path->slot->index > own->index];

	if (take(path, conn, own->number))
		return;
	if (carrier->self_opening) {
		path->waiting = true;
		rvcm_list_del(&path->wait);
		rvcm_list_add_tail(&carrier->waiting_self, &path->wait);
	} else {
		carrier->self_opening = connect(path);
	}
}

void rvcm_meet_want(struct rvcm_path_full *path)
{
	const struct rvcm_route *route;
	const struct rvcm_slot *own;

	if (path->waiting || path->out || path->slot->closing || path->down_due)
		return;
	own = rvcm_route_own(path->carrier, &path->pub.peer);
	route = rvcm_route_find(path->carrier, &path->pub.peer);
	if (take(path, path->in, path->in_slot))
		return;
	if (own)
		want_self(path, own);
	else if (!route || !take(path, route->conn, route->slot))
		connect(path);
}

/* Those on the list wait no longer: each looks anew. */
static void want_again(struct rvcm_list *list)
{
	struct rvcm_list waiting;
	struct rvcm_list *node;

	rvcm_list_init(&waiting);
	rvcm_list_splice_tail(&waiting, list);
	while ((node = rvcm_list_pop(&waiting))) {
		struct rvcm_path_full *path = rvcm_list_entry(node, struct rvcm_path_full, wait);

		path->waiting = false;
		rvcm_meet_want(path);
	}
}

/* One end of the link of the carrier with itself is there. */
static void meet_self(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	bool higher = conn->slot->index > conn->peer_slot % RVCM_CONN_SLOTS_MAX;

	if (!carrier->self[higher])
		carrier->self[higher] = conn;
	if (carrier->self[0] && carrier->self[1])
		carrier->self_opening = NULL;
	want_again(&carrier->waiting_self);
}

/* -- links that come and go ------------------------------------------------------------------ */

/* Is a direction of the path, if it has it, that of the endpoint with this number over there? */
static bool agrees(const struct rvcm_conn *has, uint16_t number, const struct rvcm_conn *conn,
		   uint16_t peer_slot)
{
	return !has || (has->incarnation == conn->incarnation && number == peer_slot);
}

static void give_up(struct rvcm_conn *conn)
{
	if (conn)
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0, "the peer begins anew");
}

/*
 * The other endpoint begins anew, or is another one; so nobody reads for the former any more, and
 * it can go down. Not if the very same one begins anew on another conn: it has lost this one, where
 * reads of it may be on their way; nor where the device uses memory of ours for it. Then its conns
 * end first, and the new one with them. False: they do.
 */
static bool begin_anew(struct rvcm_path_full *path, const struct rvcm_conn *on, uint16_t number)
{
	const struct rvcm_conn *old = path->in ? path->in : path->out;
	bool restarted = old->incarnation != on->incarnation;
	bool lost = path->in && path->in != on && agrees(path->in, path->in_slot, on, number);
	struct rvcm_conn_cause cause;

	if (lost || rvcm_path_in_use(path)) {
		give_up(path->in);
		give_up(path->out);
		return false;
	}
	rvcm_cause_set(&cause, &path->pub.peer,
		       restarted ? RVCM_STATUS_PEER_RESTARTED : RVCM_STATUS_CONNECTION_LOST, 0,
		       restarted ? NULL : "the peer begins anew");
	rvcm_path_down(path, &cause);
	return true;
}

void rvcm_meet_link(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_path_full *path;
	bool is_new, is_same, fresh;

	path = rvcm_path_obtain(conn->slot, &conn->peer, &is_new);
	if (!path) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return;
	}
	is_same = agrees(path->in, path->in_slot, conn, conn->peer_slot) &&
		  agrees(path->out, path->out_slot, conn, conn->peer_slot);
	if (!is_same && !begin_anew(path, conn, conn->peer_slot)) {
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0, "the old connection ends");
		return;
	}
	fresh = path->fresh;
	if (!path->in)
		rvcm_path_hear(path, conn, conn->peer_slot, true);
	if (!path->out && !path->down_due)
		rvcm_path_bind(path, conn, conn->peer_slot, fresh);
	rvcm_route_set(conn, &conn->peer, conn->peer_slot);
	if (is_new)
		carrier->attr.sink->incoming(carrier->attr.sink_ctx, &path->pub);
	if (conn->incarnation == carrier->incarnation)
		meet_self(conn);
}

/* The path that the conn was to be made for, if it still waits for that. */
static struct rvcm_path_full *waiter(struct rvcm_conn *conn)
{
	const struct rvcm_conn_key key = { .slot = conn->slot, .peer = &conn->peer };
	struct rvcm_hash_node *node = rvcm_hash_find(&conn->carrier->paths,
						     rvcm_conn_key_hash(conn->carrier, &key), &key);
	struct rvcm_path_full *path =
		node ? rvcm_container_of(node, struct rvcm_path_full, node) : NULL;

	return path && path->waiting && conn->named ? path : NULL;
}

static void drop_owed(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->owed))) {
		struct rvcm_owed *owed = rvcm_list_entry(node, struct rvcm_owed, node);

		if (owed->path)
			owed->path->leave = RVCM_PATH_GONE;
		rvcm_mem_free(owed);
	}
	conn->n_owed = 0;
}

void rvcm_meet_no_self(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;

	for (int i = 0; i < 2; i++)
		if (carrier->self[i] == conn)
			carrier->self[i] = NULL;
	if (carrier->self_opening != conn)
		return;
	carrier->self_opening = NULL;
	want_again(&carrier->waiting_self);
}

static void lose_path(struct rvcm_path_full *path, struct rvcm_conn *lost,
		      const struct rvcm_conn_cause *cause)
{
	struct rvcm_conn *other = path->out == lost ? path->in : path->out;

	if (!other || other == lost) {
		rvcm_path_down(path, cause);
		return;
	}
	/* The peer may read our memory over it, and go on sending: it may not know of what is lost.
	 */
	rvcm_path_cut(path, lost);
	rvcm_conn_fail(other, cause->status, 0, "another connection with it was lost");
}

void rvcm_meet_proven(struct rvcm_conn *conn)
{
	want_again(&conn->awaiting);
}

void rvcm_meet_lost(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	struct rvcm_list *node;

	rvcm_route_end_all(conn);
	drop_owed(conn);
	while ((node = rvcm_list_first(&conn->ins)))
		lose_path(rvcm_list_entry(node, struct rvcm_path_full, of_in), conn, cause);
	while ((node = rvcm_list_first(&conn->outs)))
		lose_path(rvcm_list_entry(node, struct rvcm_path_full, of_out), conn, cause);
	rvcm_meet_no_self(conn);
	want_again(&conn->awaiting);
}

void rvcm_meet_again(struct rvcm_conn *conn)
{
	if (waiter(conn))
		rvcm_conn_want(conn);
}

/* There are links to that process: the path takes one; or waits until it has ended, if it does. */
static void take_shared(struct rvcm_conn *conn, struct rvcm_path_full *path)
{
	struct rvcm_conn *trunk = rvcm_route_trunk(conn->carrier, conn->answer_incarnation);

	if (is_usable(trunk)) {
		rvcm_route_set(trunk, &conn->peer, conn->answer_slot);
		if (path)
			take(path, trunk, conn->answer_slot);
	} else if (trunk && path) {
		rvcm_list_del(&path->wait);
		rvcm_list_add_tail(&trunk->awaiting, &path->wait);
	} else if (path) {
		rvcm_conn_want(conn); /* control hears of its end before this */
	}
}

void rvcm_meet_answer(struct rvcm_conn *conn)
{
	struct rvcm_path_full *path = waiter(conn);

	if (!conn->wanting)
		return;
	conn->wanting = false;
	if (conn->answer_incarnation) {
		take_shared(conn, path);
	} else if (path && path->in) {
		path->waiting = false; /* that is lost too, and then it goes down */
	} else if (path) {
		rvcm_path_down(path, &conn->answer_cause);
	}
	rvcm_meet_no_self(conn);
	if (!conn->wanting && !conn->link && !conn->successor)
		rvcm_conn_free(conn);
}

/* -- what is said ---------------------------------------------------------------------------- */

bool rvcm_meet_introduce(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->out;
	struct rvcm_wire_path *body;
	struct rvcm_buf *buf =
		rvcm_buf_get(&conn->carrier->bufs, sizeof(struct rvcm_wire_frame) + sizeof(*body));

	if (!buf)
		return false;
	body = (void *)(buf->frame + sizeof(struct rvcm_wire_frame));
	memset(body, 0, sizeof(*body));
	rvcm_addr_to_v6(&path->slot->name, body->address);
	rvcm_le16_put(body->port, path->slot->name.port);
	conn->reserved = buf;
	path->introduced = true;
	path->tx = conn->up ? conn : NULL;
	rvcm_tx_commit(conn, RVCM_WIRE_PATH, path->slot->number, path->out_slot, sizeof(*body),
		       RVCM_PATH_SOON);
	return true;
}

void rvcm_meet_owe(struct rvcm_conn *conn, enum rvcm_wire_kind kind, uint16_t src, uint16_t dst,
		   struct rvcm_path_full *path)
{
	struct rvcm_owed *owed;

	/* BYE has said it for all. */
	if (conn->bye_due || conn->bye_ordinal)
		return;
	if (!path && conn->n_owed >= RVCM_PATH_OWED_MAX) {
		rvcm_conn_fail(conn, RVCM_STATUS_PROTOCOL, 0, "it asks, and takes no answers");
		return;
	}
	owed = rvcm_mem_zalloc(sizeof(*owed));
	if (!owed) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return;
	}
	owed->kind = kind;
	owed->src = src;
	owed->dst = dst;
	owed->path = path;
	conn->n_owed += !path;
	rvcm_list_add_tail(&conn->owed, &owed->node);
	rvcm_conn_schedule(conn);
}

static void post_owed(struct rvcm_conn *conn, struct rvcm_owed *owed, struct rvcm_buf *buf)
{
	conn->reserved = buf;
	rvcm_tx_commit(conn, owed->kind, owed->src, owed->dst, 0, RVCM_PATH_SOON);
	if (owed->path)
		owed->path->leave = RVCM_PATH_LEFT;
	else
		conn->n_owed--;
	rvcm_list_del(&owed->node);
	rvcm_mem_free(owed);
}

bool rvcm_meet_send_owed(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->owed))) {
		struct rvcm_buf *buf;

		/* Credit comes with a frame that brings the conn here again. Nothing follows BYE.
		 */
		if (!conn->up || conn->bye_ordinal || conn->tx_seq == conn->tx_limit)
			return true;
		buf = rvcm_buf_get(&conn->carrier->bufs, sizeof(struct rvcm_wire_frame));
		if (!buf)
			return false;
		post_owed(conn, rvcm_list_entry(node, struct rvcm_owed, node), buf);
	}
	return true;
}

void rvcm_meet_forget(struct rvcm_path_full *path)
{
	struct rvcm_list *pos;

	if (path->leave != RVCM_PATH_LEAVING)
		return;
	rvcm_list_for_each (pos, &path->end_conn->owed) {
		struct rvcm_owed *owed = rvcm_list_entry(pos, struct rvcm_owed, node);

		if (owed->path != path)
			continue;
		owed->path = NULL;
		path->end_conn->n_owed++;
	}
}

void rvcm_meet_leave(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->introduced ? path->out : path->in;
	uint16_t slot = path->introduced ? path->out_slot : path->in_slot;

	path->leave = RVCM_PATH_GONE;
	if (!conn || !conn->link || conn->failed)
		return;
	path->end_conn = conn;
	/* It ends, and until then the peer may read. */
	if (!is_usable(conn)) {
		path->leave = RVCM_PATH_LEFT;
		return;
	}
	path->leave = RVCM_PATH_LEAVING;
	rvcm_meet_owe(conn, RVCM_WIRE_END, path->slot->number, slot, path);
}

/* -- what is heard --------------------------------------------------------------------------- */

/* We send there, whether or not it has ever answered. */
static struct rvcm_path_full *find_out(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->outs) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_out);

		if (path->out_slot == src && path->slot->number == dst)
			return path;
	}
	return NULL;
}

static struct rvcm_path_full *find(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_path_full *path = rvcm_path_heard(conn, rvcm_wire_slots_of(src, dst));

	return path ? path : find_out(conn, src, dst);
}

static const char *read_name(const struct rvcm_conn *conn, const uint8_t *body, size_t bytes,
			     struct rvcm_addr *name)
{
	static const uint8_t zero[sizeof(((struct rvcm_wire_path *)0)->reserved)];
	const struct rvcm_wire_path *wire = (const void *)body;
	uint16_t port;

	if (bytes != sizeof(*wire))
		return "PATH of a wrong length";
	port = rvcm_le16_get(wire->port);
	rvcm_addr_from_v6(name, wire->address, 0);
	if (port == 0 || memcmp(wire->reserved, zero, sizeof(zero)) != 0)
		return "PATH with a malformed name";
	rvcm_addr_complete(name, &conn->peer);
	name->port = port;
	return NULL;
}

static const char *hear_path(struct rvcm_conn *conn, uint16_t src, uint16_t dst,
			     const struct rvcm_addr *name)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_slot *slot = rvcm_slot_of(carrier, dst);
	struct rvcm_path_full *path;
	bool is_new, is_same;

	if (!slot) {
		rvcm_meet_owe(conn, RVCM_WIRE_END, dst, src, NULL);
		return NULL;
	}
	if (rvcm_addr_cmp(name, &slot->name) == 0)
		return "PATH with a name of ours";
	path = rvcm_path_obtain(slot, name, &is_new);
	if (!path) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return NULL;
	}
	if (path->in == conn && path->in_slot == src && !path->implied)
		return "PATH a second time";
	is_same = agrees(path->out, path->out_slot, conn, src) && (!path->in || path->implied);
	if (path->down_due || (!is_same && !begin_anew(path, conn, src))) {
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0, "the old path has not ended");
		return NULL;
	}
	rvcm_path_hear(path, conn, src, false);
	if (!rvcm_route_set(conn, name, src))
		return "more endpoints than a process can have";
	if (is_new)
		carrier->attr.sink->incoming(carrier->attr.sink_ctx, &path->pub);
	if (path->blocked && !path->out) {
		path->waiting = false;
		rvcm_meet_want(path);
	}
	return NULL;
}

static const char *on_path(struct rvcm_conn *conn, uint16_t src, uint16_t dst, const uint8_t *body,
			   size_t bytes)
{
	struct rvcm_addr name;
	const char *why = read_name(conn, body, bytes, &name);

	return why ? why : hear_path(conn, src, dst, &name);
}

static const char *on_end(struct rvcm_conn *conn, uint16_t src, uint16_t dst, const uint8_t *body,
			  size_t bytes)
{
	struct rvcm_path_full *path = find(conn, src, dst);
	struct rvcm_conn_cause cause;

	(void)body;
	(void)bytes;
	rvcm_route_end(conn, src);
	if (conn->named && conn->peer_slot == src)
		rvcm_conn_unname(conn);
	if (path && rvcm_path_in_use(path)) {
		path->ended_due = true;
		rvcm_path_lose(path, RVCM_STATUS_PEER_CLOSED);
		return NULL;
	}
	rvcm_meet_owe(conn, RVCM_WIRE_ENDED, dst, src, NULL);
	if (!path)
		return NULL;
	rvcm_cause_set(&cause, &path->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	rvcm_path_down(path, &cause);
	return NULL;
}

static const char *on_ended(struct rvcm_conn *conn, uint16_t src, uint16_t dst, const uint8_t *body,
			    size_t bytes)
{
	struct rvcm_path_full *path = find(conn, src, dst);

	(void)body;
	(void)bytes;
	if (path && path->leave == RVCM_PATH_LEFT)
		path->leave = RVCM_PATH_GONE;
	return NULL;
}

const char *rvcm_meet_frame(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    const uint8_t *body, size_t bytes)
{
	static const char *(*const on[])(struct rvcm_conn *, uint16_t, uint16_t, const uint8_t *,
					 size_t) = {
		[RVCM_WIRE_PATH] = on_path,
		[RVCM_WIRE_END] = on_end,
		[RVCM_WIRE_ENDED] = on_ended,
	};

	return on[frame->kind](conn, rvcm_le16_get(frame->src_slot), rvcm_le16_get(frame->dst_slot),
			       body, bytes);
}

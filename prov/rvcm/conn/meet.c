/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that meet, over links that their processes share: which conn a path takes, the frame
 * PATH, and what becomes of paths when a conn is lost.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

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
	conn = rvcm_route_out(conn);
	if (!rvcm_conn_is_usable(conn))
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

/* Has it been told on a link that the number has the name now, behind what the former has said? */
static bool is_told(const struct rvcm_path_full *path, uint16_t number)
{
	const struct rvcm_route *route = rvcm_route_find(path->carrier, &path->pub.peer);

	return route && route->slot == number;
}

/* False: it is of no use. */
static bool take_own(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t number)
{
	if (!rvcm_conn_is_usable(conn) || !conn->hello_seen || is_told(path, number))
		return take(path, conn, number);
	rvcm_who_ask(path, conn, number);
	return true;
}

/*
 * An endpoint of our own carrier. One link joins the carrier with itself; of its two ends one is
 * for what the lower slots send, the other for the higher. It may have words of the former under
 * way, as a link to another process.
 */
static void want_self(struct rvcm_path_full *path, const struct rvcm_slot *own)
{
	struct rvcm_carrier *carrier = path->carrier;
	struct rvcm_conn *conn = carrier->self[path->slot->index > own->index];

	if (take_own(path, conn, own->number))
		return;
	if (carrier->self_opening) {
		path->waiting = true;
		rvcm_list_del(&path->wait);
		rvcm_list_add_tail(&carrier->waiting_self, &path->wait);
	} else {
		carrier->self_opening = connect(path);
	}
}

static bool may_begin(const struct rvcm_path_full *path)
{
	return !path->waiting && !path->out && !path->slot->closing && !path->down_due &&
	       !path->cut && rvcm_list_empty(&path->backlog);
}

/* From what the peers' links have told. */
static bool take_known(struct rvcm_path_full *path)
{
	const struct rvcm_route *route = rvcm_route_find(path->carrier, &path->pub.peer);

	return take(path, path->in, path->in_slot) ||
	       (route && take(path, route->conn, route->slot));
}

void rvcm_meet_want(struct rvcm_path_full *path)
{
	const struct rvcm_slot *own;

	if (!may_begin(path))
		return;
	own = rvcm_route_own(path->carrier, &path->pub.peer);
	if (own && !take(path, path->in, path->in_slot))
		want_self(path, own);
	else if (!own && !take_known(path))
		connect(path);
}

void rvcm_meet_want_anew(struct rvcm_path_full *path)
{
	path->waiting = false;
	rvcm_meet_want(path);
}

/* Those on the list wait no longer: each looks anew. */
static void want_again(struct rvcm_list *list)
{
	struct rvcm_list waiting;
	struct rvcm_list *node;

	rvcm_list_init(&waiting);
	rvcm_list_splice_tail(&waiting, list);
	while ((node = rvcm_list_pop(&waiting)))
		rvcm_meet_want_anew(rvcm_list_entry(node, struct rvcm_path_full, wait));
}

/* One end of the link of the carrier with itself is there. */
static void meet_self(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	bool higher = rvcm_route_is_higher(conn);

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
 * Another process has the name. If the former one lives it says END of its endpoint, behind all
 * that it has said; if it is dead its link will be lost, as soon as something is sent there. So it
 * is asked, and one of both is waited for. False: there is nobody to wait for.
 */
static bool ask_former(struct rvcm_path_full *path)
{
	struct rvcm_conn *former = path->in ? path->in : path->out;
	uint16_t number = path->in ? path->in_slot : path->out_slot;

	if (!path->in && !path->introduced)
		return false;
	if (!path->doubted)
		rvcm_part_owe(former, RVCM_WIRE_WHO, path->slot->number, number, NULL);
	path->doubted = true;
	return true;
}

/*
 * The other endpoint begins anew, or is another one; so nobody reads for the former any more, and
 * it can go down. Not where the device uses memory of ours for it: then it does when that has
 * ended. Nor if the very same one begins anew on another conn: it has lost this one, where reads of
 * it may be on their way. Then the conns end first. False: it is not down yet.
 */
static bool begin_anew(struct rvcm_path_full *path, const struct rvcm_conn *on, uint16_t number)
{
	const struct rvcm_conn *old = path->in ? path->in : path->out;
	uint16_t old_number = path->in ? path->in_slot : path->out_slot;
	bool restarted = old->incarnation != on->incarnation;
	enum rvcm_status status = RVCM_STATUS_CONNECTION_LOST;
	struct rvcm_conn_cause cause;

	if (path->in && path->in != on && agrees(path->in, path->in_slot, on, number)) {
		give_up(path->in);
		give_up(path->out);
		return false;
	}
	if (restarted && ask_former(path))
		return false;
	if (restarted)
		status = RVCM_STATUS_PEER_RESTARTED;
	else if (old_number != number)
		status = RVCM_STATUS_PEER_CLOSED;
	if (rvcm_path_in_use(path)) {
		rvcm_path_lose(path, status);
		return false;
	}
	rvcm_cause_set(&cause, &path->pub.peer, status, 0, NULL);
	rvcm_path_down(path, &cause);
	return true;
}

/* Both know each other by the handshake, if this is where we send. */
static void bind_first(struct rvcm_path_full *path, struct rvcm_conn *conn, bool fresh)
{
	if (rvcm_route_out(conn) == conn) {
		rvcm_path_bind(path, conn, conn->peer_slot, fresh);
		return;
	}
	path->waiting = false;
	rvcm_list_del(&path->wait);
	if (path->blocked)
		rvcm_meet_want(path);
}

/*
 * The path is to another endpoint of the same process, and the link was long in coming: which of
 * them has the name now its handshake cannot tell. If it is this one a message will come.
 */
static bool may_be_late(const struct rvcm_path_full *path, const struct rvcm_conn *conn)
{
	const struct rvcm_conn *has = path->in ? path->in : path->out;

	return has && has->incarnation == conn->incarnation;
}

/* The PATH that the conn's handshake stands for. */
struct told {
	struct rvcm_wire_frame frame;
	struct rvcm_wire_path body;
};

static struct told tell(const struct rvcm_conn *conn)
{
	struct told told = { .frame = { .kind = RVCM_WIRE_PATH } };

	rvcm_le16_put(told.frame.src_slot, conn->peer_slot);
	rvcm_le16_put(told.frame.dst_slot, conn->slot->number);
	rvcm_addr_to_v6(&conn->peer, told.body.address);
	rvcm_le16_put(told.body.port, conn->peer.port);
	return told;
}

/* What it says comes when the path to the former has ended, as if PATH had told its name. */
static void keep(struct rvcm_path_full *path, struct rvcm_conn *conn)
{
	struct told told = tell(conn);

	rvcm_backlog_add(path, conn, &told.frame, sizeof(told.body));
}

static void meet_by_handshake(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_path_full *path;
	bool is_new, is_same, fresh;

	path = rvcm_path_obtain(conn->slot, &conn->peer, &is_new);
	if (!path) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return;
	}
	rvcm_path_meet(path, conn->incarnation, conn->number);
	rvcm_backlog_hear(path); /* that came before */
	is_same = agrees(path->in, path->in_slot, conn, conn->peer_slot) &&
		  agrees(path->out, path->out_slot, conn, conn->peer_slot);
	if (!is_same && may_be_late(path, conn)) {
		conn->unmet = true;
		return;
	}
	if (path->cut || (!is_same && !begin_anew(path, conn, conn->peer_slot))) {
		keep(path, conn);
		return;
	}
	fresh = path->fresh;
	if (!path->in)
		rvcm_path_hear(path, conn, conn->peer_slot, true);
	if (!path->out && !path->down_due)
		bind_first(path, conn, fresh);
	rvcm_route_set(conn, &conn->peer, conn->peer_slot);
	if (is_new)
		carrier->attr.sink->incoming(carrier->attr.sink_ctx, &path->pub);
}

void rvcm_meet_link(struct rvcm_conn *conn)
{
	meet_by_handshake(conn);
	if (conn->incarnation == conn->carrier->incarnation)
		meet_self(conn);
	else
		rvcm_meet_no_self(
			conn); /* the name that was our own's is another process's by now */
}

/* The path that the conn was to be made for, if it still waits for that. */
static struct rvcm_path_full *waiter(struct rvcm_conn *conn)
{
	struct rvcm_path_full *path = rvcm_path_find(conn->slot, &conn->peer);

	return path && path->waiting && conn->named ? path : NULL;
}

void rvcm_meet_no_self(struct rvcm_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;

	for (int i = 0; i < 2; i++)
		if (carrier->self[i] == conn)
			carrier->self[i] = rvcm_route_self(conn, i == 1);
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
	/* Nothing came there; had anything been sent, the peer would see to the rest. */
	if (path->in == lost && path->implied && !path->placing) {
		rvcm_path_unhear(path);
		return;
	}
	/* The peer may read our memory over it, and go on sending: it may not know of what is lost.
	 */
	rvcm_path_cut(path, lost);
	rvcm_conn_fail(other, cause->status, 0, "another connection with it was lost");
}

static void lose_paths(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->ins)))
		lose_path(rvcm_list_entry(node, struct rvcm_path_full, of_in), conn, cause);
	while ((node = rvcm_list_first(&conn->outs)))
		lose_path(rvcm_list_entry(node, struct rvcm_path_full, of_out), conn, cause);
}

void rvcm_meet_proven(struct rvcm_conn *conn)
{
	want_again(&conn->awaiting);
}

void rvcm_meet_lost(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	lose_paths(conn, cause);
	rvcm_backlog_lost(conn);
	lose_paths(conn, cause);
	rvcm_route_end_all(conn);
	rvcm_part_lost(conn);
	rvcm_meet_no_self(conn);
	want_again(&conn->awaiting);
	rvcm_who_lost(conn);
}

void rvcm_meet_again(struct rvcm_conn *conn)
{
	if (waiter(conn))
		rvcm_conn_want(conn);
}

/* It is our own process. */
static void take_self(struct rvcm_path_full *path)
{
	struct rvcm_conn_cause cause;

	if (path && rvcm_route_own(path->carrier, &path->pub.peer)) {
		rvcm_meet_want_anew(path);
	} else if (path) { /* it closes, and listens yet */
		rvcm_cause_set(&cause, &path->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
		rvcm_path_down(path, &cause);
	}
}

/* There are links to that process: the path takes one; or waits until it has ended, if it does. */
static void take_shared(struct rvcm_conn *conn, struct rvcm_path_full *path)
{
	struct rvcm_conn *trunk = rvcm_route_trunk(conn->carrier, conn->answer_incarnation);

	if (conn->answer_incarnation == conn->carrier->incarnation) {
		take_self(path);
	} else if (rvcm_conn_is_usable(trunk) && path) {
		path->waiting = false;
		if (may_begin(path) && !take_known(path))
			rvcm_who_ask(path, trunk, conn->answer_slot);
	} else if (trunk && path) {
		rvcm_list_del(&path->wait);
		rvcm_list_add_tail(&trunk->awaiting, &path->wait);
	} else if (path) {
		rvcm_conn_want(conn); /* control hears of its end before this */
	}
}

static void answered(struct rvcm_conn *conn)
{
	struct rvcm_path_full *path = waiter(conn);

	if (conn->answer_reopened) {
		if (path)
			rvcm_conn_want(conn); /* it has been given up before, and this is new */
	} else if (conn->answer_incarnation) {
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

void rvcm_meet_answer(struct rvcm_conn *conn)
{
	if (!conn->wanting)
		return;
	conn->wanting = false;
	if (conn->recovering)
		rvcm_recover_answered(conn);
	else if (!conn->failing) /* else it is given up anyway */
		answered(conn);
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
	path->introduced = true;
	rvcm_path_send_on(path, path->pub.up ? conn : NULL);
	rvcm_tx_commit(conn, buf, RVCM_WIRE_PATH, path->slot->number, path->out_slot,
		       sizeof(*body));
	return true;
}

/* -- what is heard --------------------------------------------------------------------------- */

static const char *read_name(const struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			     size_t bytes, struct rvcm_addr *name)
{
	static const uint8_t zero[sizeof(((struct rvcm_wire_path *)0)->reserved)];
	const struct rvcm_wire_path *wire = (const void *)(frame + 1);
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

static const char *introduced(struct rvcm_path_full *path, bool is_new, struct rvcm_conn *conn,
			      uint16_t src)
{
	struct rvcm_carrier *carrier = conn->carrier;

	rvcm_path_hear(path, conn, src, false);
	if (!rvcm_route_set(conn, &path->pub.peer, src))
		return RVCM_WHO_TOO_MANY;
	if (is_new)
		carrier->attr.sink->incoming(carrier->attr.sink_ctx, &path->pub);
	if (path->blocked && !path->out)
		rvcm_meet_want_anew(path);
	return NULL;
}

/* Is the path another's still, whose use of memory has not ended, or did another come before? */
static bool is_taken(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t src)
{
	bool free = agrees(path->out, path->out_slot, conn, src) && (!path->in || path->implied);

	if (path->down_due || path->cut)
		return true;
	if (free && path->out) /* we have met it already, though it may be a former by now */
		return false;
	if (!path->hearing && !rvcm_list_empty(&path->backlog))
		return true;
	return !free && !begin_anew(path, conn, src);
}

static const char *on_path(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			   size_t bytes)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_slot *slot = rvcm_slot_of(conn->carrier, dst);
	struct rvcm_path_full *path;
	struct rvcm_addr name;
	const char *why = read_name(conn, frame, bytes, &name);
	bool is_new;

	if (why)
		return why;
	if (!slot) {
		rvcm_part_refuse(conn, src, dst, &name);
		return NULL;
	}
	if (rvcm_addr_cmp(&name, &slot->name) == 0)
		return "PATH with a name of ours";
	path = rvcm_path_obtain(slot, &name, &is_new);
	if (!path) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return NULL;
	}
	rvcm_path_meet(path, conn->incarnation, conn->number);
	if ((path->in == conn && path->in_slot == src && !path->implied) ||
	    rvcm_backlog_of(conn, frame))
		return "PATH a second time";
	if (!is_taken(path, conn, src))
		return introduced(path, is_new, conn, src);
	rvcm_backlog_add(path, conn, frame, bytes);
	return NULL;
}

bool rvcm_meet_implied(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame)
{
	struct told told = tell(conn);

	if (!conn->unmet || rvcm_le16_get(frame->src_slot) != conn->peer_slot ||
	    rvcm_le16_get(frame->dst_slot) != conn->slot->number)
		return false;
	conn->unmet = false;
	if (rvcm_path_is_outlived(rvcm_path_find(conn->slot, &conn->peer), conn->incarnation,
				  conn->number))
		return false;
	return on_path(conn, &told.frame, sizeof(told.body)) == NULL;
}

const char *rvcm_meet_frame(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes)
{
	static const char *(*const on[])(struct rvcm_conn *, const struct rvcm_wire_frame *,
					 size_t) = {
		[RVCM_WIRE_PATH] = on_path,          [RVCM_WIRE_END] = rvcm_part_end,
		[RVCM_WIRE_ENDED] = rvcm_part_ended, [RVCM_WIRE_WHO] = rvcm_who_asked,
		[RVCM_WIRE_HERE] = rvcm_who_here,
	};

	return on[frame->kind](conn, frame, bytes);
}

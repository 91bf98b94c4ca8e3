/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that part: END, which says that one closes, and ENDED, that nothing of its memory is in
 * use any more. Both wait for credit, and an END may outlive its endpoint.
 */
#include <errno.h>

#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

/* What is owed is this long at most. */
#define OWED_BYTES (sizeof(struct rvcm_wire_frame) + sizeof(struct rvcm_wire_end))

/* An END, said or owed, whose endpoint is gone, and that has not been answered. */
struct parting {
	struct rvcm_list node; /* conn.partings, of where it was said */
	uint16_t src, dst;     /* the peer's number, and ours */
};

/* -- what is said ---------------------------------------------------------------------------- */

/* What the peer has asked for, and could ask for without end. */
static bool is_answer(enum rvcm_wire_kind kind, const struct rvcm_path_full *path)
{
	return !path && kind != RVCM_WIRE_WHO;
}

void rvcm_part_owe(struct rvcm_conn *conn, enum rvcm_wire_kind kind, uint16_t src, uint16_t dst,
		   struct rvcm_path_full *path)
{
	struct rvcm_owed *owed;

	/* BYE has said it for all. */
	if (conn->bye_due || conn->bye_ordinal)
		return;
	if (is_answer(kind, path) && conn->n_owed >= RVCM_PATH_OWED_MAX) {
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
	conn->n_owed += is_answer(kind, path);
	rvcm_list_add_tail(&conn->owed, &owed->node);
	conn->usual = false;
	rvcm_conn_schedule(conn);
}

static void post_owed(struct rvcm_conn *conn, struct rvcm_owed *owed, struct rvcm_buf *buf)
{
	size_t bytes = 0;

	if (owed->kind == RVCM_WIRE_END)
		bytes = rvcm_confirm_part(owed->path, conn, owed->dst,
					  buf->frame + sizeof(struct rvcm_wire_frame));
	rvcm_tx_commit(conn, buf, owed->kind, owed->src, owed->dst, bytes);
	if (owed->path)
		owed->path->leave = RVCM_PATH_LEFT;
	else
		conn->n_owed -= is_answer(owed->kind, NULL);
	rvcm_list_del(&owed->node);
	if (owed->kind == RVCM_WIRE_HERE)
		rvcm_who_said(conn, owed);
	else
		rvcm_mem_free(owed);
}

bool rvcm_part_send_owed(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->owed))) {
		struct rvcm_buf *buf;

		/* Credit comes with a frame that brings the conn here again. Nothing follows BYE.
		 */
		if (!conn->up || conn->bye_ordinal ||
		    !rvcm_seq_before(conn->tx_seq, conn->tx_limit))
			return true;
		buf = rvcm_buf_get(&conn->carrier->bufs, OWED_BYTES);
		if (!buf)
			return false;
		post_owed(conn, rvcm_list_entry(node, struct rvcm_owed, node), buf);
	}
	return true;
}

void rvcm_part_forget(struct rvcm_path_full *path)
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

void rvcm_part_leave(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->introduced ? path->out : path->in;
	uint16_t slot = path->introduced ? path->out_slot : path->in_slot;

	path->leave = RVCM_PATH_GONE;
	if (!conn || !rvcm_conn_is_there(conn))
		return;
	path->end_conn = conn;
	/* It ends, and until then the peer may read, and does not know. */
	if (!rvcm_conn_is_usable(conn)) {
		path->leave = RVCM_PATH_LEFT;
		return;
	}
	path->leave = RVCM_PATH_LEAVING;
	rvcm_part_owe(conn, RVCM_WIRE_END, path->slot->number, slot, path);
}

void rvcm_part_read(struct rvcm_path_full *path)
{
	const struct rvcm_slot *slot = path->slot;

	if (path->reads == 0 && slot->closing && !slot->last && path->leave == RVCM_PATH_STAYS)
		rvcm_part_leave(path);
}

/* Who said END there has nobody to wait for. (The path may not be the conn's any more.) */
static void let_leave(const struct rvcm_slot *slot, const struct rvcm_conn *lost)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &slot->paths) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_slot);

		if (path->leave != RVCM_PATH_STAYS && path->end_conn == lost)
			path->leave = RVCM_PATH_GONE;
	}
}

void rvcm_part_pause(struct rvcm_conn *conn)
{
	const struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_list *pos;

	for (uint16_t i = 0; i < carrier->slots_end; i++) {
		if (!carrier->slots[i] || !carrier->slots[i]->closing)
			continue;
		rvcm_list_for_each (pos, &carrier->slots[i]->paths) {
			struct rvcm_path_full *path =
				rvcm_list_entry(pos, struct rvcm_path_full, of_slot);

			if (path->end_conn == conn)
				path->end_ordinal = 0;
		}
	}
}

void rvcm_part_lost(struct rvcm_conn *conn)
{
	const struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_list *node;

	for (uint16_t i = 0; i < carrier->slots_end; i++)
		if (carrier->slots[i] && carrier->slots[i]->closing)
			let_leave(carrier->slots[i], conn);
	while ((node = rvcm_list_pop(&conn->enders)))
		rvcm_list_entry(node, struct rvcm_path_full, of_ended)->ended_conn = NULL;
	while ((node = rvcm_list_pop(&conn->owed))) {
		struct rvcm_owed *owed = rvcm_list_entry(node, struct rvcm_owed, node);

		if (owed->kind == RVCM_WIRE_HERE)
			rvcm_who_say_elsewhere(conn, owed);
		rvcm_mem_free(owed);
	}
	conn->n_owed = 0;
	while ((node = rvcm_list_pop(&conn->partings)))
		rvcm_mem_free(rvcm_list_entry(node, struct parting, node));
	rvcm_confirm_lost(conn);
}

void rvcm_part_freed(struct rvcm_path_full *path)
{
	struct parting *parting;

	if ((path->leave != RVCM_PATH_LEFT && path->leave != RVCM_PATH_LEAVING) ||
	    !path->introduced)
		return;
	parting = rvcm_mem_zalloc(sizeof(*parting));
	if (!parting)
		return; /* a PATH that crosses END costs a link then, at worst */
	parting->src = path->out_slot;
	parting->dst = path->slot->number;
	rvcm_list_add_tail(&path->end_conn->partings, &parting->node);
}

/* Those from our dst to the peer's src: are there any? If they have been answered: not any more. */
static bool partings_of(struct rvcm_conn *conn, uint16_t src, uint16_t dst, bool answered)
{
	struct rvcm_list *pos, *tmp;
	bool any = false;

	rvcm_list_for_each_safe (pos, tmp, &conn->partings) {
		struct parting *parting = rvcm_list_entry(pos, struct parting, node);

		if (parting->src != src || parting->dst != dst)
			continue;
		any = true;
		if (!answered)
			continue;
		rvcm_list_del(pos);
		rvcm_mem_free(parting);
	}
	return any;
}

/* -- what is heard --------------------------------------------------------------------------- */

static struct rvcm_slot *slot_of(const struct rvcm_carrier *carrier, uint16_t number)
{
	struct rvcm_slot *slot = carrier->slots[number % RVCM_CONN_SLOTS_MAX];

	return slot && slot->number == number ? slot : NULL;
}

static bool leads_to_same(const struct rvcm_conn *other, const struct rvcm_conn *conn)
{
	return rvcm_conn_is_there(other) && other->incarnation == conn->incarnation;
}

/* They have been answered, on whichever link to that process they were said. */
static void forget_partings(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (leads_to_same(other, conn))
			partings_of(other, src, dst, true);
	}
}

/* Is that the endpoint which the path's END is for, and has it heard anything of us before? */
static bool says_end_to(const struct rvcm_path_full *path, const struct rvcm_conn *conn,
			uint16_t src)
{
	return path->introduced && path->out_slot == src &&
	       path->out->incarnation == conn->incarnation;
}

/* Where END was said, if that is another link, and what came before it may be on its way there. */
static const struct rvcm_conn *under_way_on(struct rvcm_conn *conn,
					    const struct rvcm_path_full *path, uint16_t src,
					    uint16_t dst)
{
	struct rvcm_list *pos;

	if (path && path->leave == RVCM_PATH_LEFT && says_end_to(path, conn, src))
		return path->end_conn == conn ? NULL : path->end_conn;
	if (partings_of(conn, src, dst, false))
		return NULL;
	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (leads_to_same(other, conn) && partings_of(other, src, dst, false))
			return other;
	}
	return NULL;
}

/* It closes, and is yet to say END to src, where it has said what comes before. */
static bool is_to_say_end(const struct rvcm_path_full *path, const struct rvcm_conn *conn,
			  uint16_t src)
{
	return says_end_to(path, conn, src) &&
	       (path->leave == RVCM_PATH_STAYS || path->leave == RVCM_PATH_LEAVING);
}

static void say_end(struct rvcm_conn *conn, const struct rvcm_path_full *path, uint16_t src,
		    uint16_t dst)
{
	const struct rvcm_conn *end_conn = under_way_on(conn, path, src, dst);

	if (end_conn)
		rvcm_confirm_later(conn, src, dst, end_conn);
	else
		rvcm_part_owe(conn, RVCM_WIRE_END, dst, src, NULL);
}

void rvcm_part_refuse(struct rvcm_conn *conn, uint16_t src, uint16_t dst,
		      const struct rvcm_addr *name)
{
	struct rvcm_slot *slot = slot_of(conn->carrier, dst);
	struct rvcm_path_full *path = slot ? rvcm_path_find(slot, name) : NULL;

	if (path && is_to_say_end(path, conn, src)) {
		rvcm_path_hear(path, conn, src, false);
		return;
	}
	/* What comes is not for what has ended. (Reads there are only if BYE is what is said.) */
	if (path && path->in == conn && path->reads == 0)
		rvcm_path_unhear(path);
	say_end(conn, path, src, dst);
}

static bool leads_to(const struct rvcm_conn *conn, uint16_t number, const struct rvcm_conn *to,
		     uint16_t peer)
{
	return conn && conn->incarnation == to->incarnation && number == peer;
}

/* Whichever link it uses: END may come over another. */
static struct rvcm_path_full *find(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_slot *slot = slot_of(conn->carrier, dst);
	struct rvcm_list *pos;

	if (!slot)
		return NULL;
	rvcm_list_for_each (pos, &slot->paths) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_slot);

		if (leads_to(path->in, path->in_slot, conn, src) ||
		    leads_to(path->out, path->out_slot, conn, src))
			return path;
	}
	return NULL;
}

void rvcm_part_refuse_number(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_path_full *path = find(conn, src, dst);

	if (!path || !is_to_say_end(path, conn, src))
		say_end(conn, path, src, dst);
}

/* Nobody is reached under that number any more. */
static void forget_number(const struct rvcm_conn *conn, uint16_t src)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (!leads_to_same(other, conn))
			continue;
		rvcm_route_end(other, src);
		if (!other->named || other->peer_slot != src)
			continue;
		rvcm_conn_unname(other);
		if (other->recovering && !other->link)
			rvcm_conn_fail(other, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	}
}

/* It is answered when the use of memory has ended. */
static void end_later(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t src)
{
	if (!path->ended_conn) {
		path->ended_conn = conn;
		path->ended_slot = src;
		rvcm_list_add_tail(&conn->enders, &path->of_ended);
	}
	rvcm_path_lose(path, RVCM_STATUS_PEER_CLOSED);
}

const char *rvcm_part_end(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_path_full *path = rvcm_backlog_of(conn, frame);
	struct rvcm_conn_cause cause;
	const char *why = NULL;

	if (path) {
		rvcm_backlog_add(path, conn, frame, bytes);
		return NULL;
	}
	rvcm_who_gone(conn, src, dst);
	path = find(conn, src, dst);
	if (path)
		why = rvcm_confirm_parted(path, src, (const uint8_t *)(frame + 1), bytes);
	if (why)
		return why;
	forget_number(conn, src);
	if (path && rvcm_path_in_use(path)) {
		end_later(path, conn, src);
		return NULL;
	}
	rvcm_part_owe(conn, RVCM_WIRE_ENDED, dst, src, NULL);
	if (!path)
		return NULL;
	rvcm_cause_set(&cause, &path->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	rvcm_path_down(path, &cause);
	return NULL;
}

const char *rvcm_part_ended(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_path_full *path = find(conn, src, dst);

	(void)bytes;
	if (path && path->leave == RVCM_PATH_LEFT)
		path->leave = RVCM_PATH_GONE;
	forget_partings(conn, src, dst);
	rvcm_confirm_ended(conn, src, dst);
	return NULL;
}

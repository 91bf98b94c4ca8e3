/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints whose name was another's until now. Our path to that name may still be in use for the
 * former: a device sends from memory that was lent, or reads. The path ends when it is not; until
 * then what the new one says, from its PATH on, is kept here, and is then heard in order.
 *
 * A path with a backlog is in carrier.backlogs; which endpoints' frames it takes its PATH frames
 * say.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

struct frame {
	struct rvcm_list node; /* path.backlog */
	struct rvcm_list heir; /* path.heirs, of a PATH */
	struct rvcm_conn *conn;
	size_t bytes; /* of the body */
	struct rvcm_wire_frame wire;
	uint8_t body[];
};

static struct frame *first_of(struct rvcm_path_full *path)
{
	struct rvcm_list *node = rvcm_list_first(&path->backlog);

	return node ? rvcm_list_entry(node, struct frame, node) : NULL;
}

static void take_off(struct rvcm_path_full *path, struct frame *frame)
{
	rvcm_list_del(&frame->node);
	rvcm_list_del(&frame->heir);
	if (frame->wire.kind == RVCM_WIRE_DATA)
		rvcm_confirm_unkept(frame->conn);
	path->carrier->backlog_bytes -= frame->bytes + sizeof(*frame);
	if (rvcm_list_empty(&path->backlog))
		rvcm_list_del(&path->of_backlogs);
}

static bool is_heir(const struct rvcm_path_full *path, const struct rvcm_conn *conn, uint16_t src)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &path->heirs) {
		const struct frame *frame = rvcm_list_entry(pos, struct frame, heir);

		if (frame->conn == conn && rvcm_le16_get(frame->wire.src_slot) == src)
			return true;
	}
	return false;
}

struct rvcm_path_full *rvcm_backlog_of(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->backlogs) {
		struct rvcm_path_full *path =
			rvcm_list_entry(pos, struct rvcm_path_full, of_backlogs);

		if (path->slot->number == dst && is_heir(path, conn, src))
			return path;
	}
	return NULL;
}

static void add(struct rvcm_list *list, struct rvcm_list *node, bool first)
{
	if (first)
		rvcm_list_add_head(list, node);
	else
		rvcm_list_add_tail(list, node);
}

void rvcm_backlog_add(struct rvcm_path_full *path, struct rvcm_conn *conn,
		      const struct rvcm_wire_frame *wire, size_t bytes)
{
	struct rvcm_carrier *carrier = path->carrier;
	struct frame *frame;

	if (carrier->backlog_bytes + sizeof(*frame) + bytes > RVCM_BACKLOG_BYTES_MAX) {
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0,
			       "the old path has not ended in time");
		return;
	}
	frame = rvcm_mem_zalloc(sizeof(*frame) + bytes);
	if (!frame) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return;
	}
	frame->conn = conn;
	frame->bytes = bytes;
	frame->wire = *wire;
	memcpy(frame->body, wire + 1, bytes);
	rvcm_list_init(&frame->heir);
	/* What is put back goes where it was: who walks the list comes by once. */
	if (rvcm_list_empty(&path->backlog))
		add(&carrier->backlogs, &path->of_backlogs, path->hearing);
	add(&path->backlog, &frame->node, path->hearing);
	path->hearing = false;
	if (wire->kind == RVCM_WIRE_PATH)
		rvcm_list_add_tail(&path->heirs, &frame->heir);
	else if (wire->kind == RVCM_WIRE_DATA)
		rvcm_confirm_kept(conn);
	carrier->backlog_bytes += bytes + sizeof(*frame);
}

/* It was not ours to hear any more. */
static void refuse(const struct frame *frame)
{
	uint16_t src = rvcm_le16_get(frame->wire.src_slot);
	uint16_t dst = rvcm_le16_get(frame->wire.dst_slot);

	if (frame->wire.kind == RVCM_WIRE_PATH)
		rvcm_part_owe(frame->conn, RVCM_WIRE_END, dst, src, NULL);
	else if (frame->wire.kind == RVCM_WIRE_END)
		rvcm_part_owe(frame->conn, RVCM_WIRE_ENDED, dst, src, NULL);
	else
		rvcm_confirm_stray(frame->conn);
}

void rvcm_backlog_drop(struct rvcm_path_full *path)
{
	struct frame *frame;

	while ((frame = first_of(path))) {
		take_off(path, frame);
		refuse(frame);
		rvcm_mem_free(frame);
	}
}

void rvcm_backlog_hear(struct rvcm_path_full *path)
{
	struct frame *frame;

	path->hearing = true;
	while (path->hearing && !path->down_due && !path->cut && (frame = first_of(path))) {
		take_off(path, frame);
		rvcm_rx_numbered(frame->conn, &frame->wire, frame->bytes);
		rvcm_mem_free(frame);
	}
	path->hearing = false;
}

static void drop_of(struct rvcm_path_full *path, const struct rvcm_conn *conn)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &path->backlog) {
		struct frame *frame = rvcm_list_entry(pos, struct frame, node);

		if (frame->conn != conn)
			continue;
		take_off(path, frame);
		rvcm_mem_free(frame);
	}
	rvcm_path_schedule(path);
}

void rvcm_backlog_lost(struct rvcm_conn *conn)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->carrier->backlogs) {
		struct rvcm_path_full *path =
			rvcm_list_entry(pos, struct rvcm_path_full, of_backlogs);

		rvcm_backlog_hear(path);
		drop_of(path, conn);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which number has the name now? SHARED tells it outside of the link, where it may overtake PATH
 * and END of the endpoint that had the name before. So it is asked again on the link, WHO, and
 * answered, HERE, where its process says all that it says to ours: behind that.
 */
#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

void rvcm_who_ask(struct rvcm_path_full *path, struct rvcm_conn *trunk, uint16_t number)
{
	struct rvcm_conn *conn = rvcm_route_out(trunk);

	path->waiting = true;
	path->asked = number;
	rvcm_list_del(&path->wait);
	rvcm_list_add_tail(&conn->askers, &path->wait);
	rvcm_part_owe(conn, RVCM_WIRE_WHO, path->slot->number, number, NULL);
}

const char *rvcm_who_asked(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			   size_t bytes)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_conn *out = rvcm_route_out(conn);

	(void)bytes;
	if (!rvcm_slot_of(conn->carrier, dst)) {
		rvcm_part_refuse_number(conn, src, dst);
		return NULL;
	}
	out->is_out = true; /* what others say later is to come later */
	rvcm_part_owe(out, RVCM_WIRE_HERE, dst, src, NULL);
	return NULL;
}

void rvcm_who_said(struct rvcm_conn *conn, struct rvcm_owed *answer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->said))) {
		struct rvcm_owed *first = rvcm_list_entry(node, struct rvcm_owed, node);

		if (!rvcm_seq_before(first->seq, conn->tx_acked))
			break;
		rvcm_list_del(node);
		rvcm_mem_free(first);
	}
	answer->seq = conn->tx_seq - 1;
	rvcm_list_add_tail(&conn->said, &answer->node);
}

void rvcm_who_say_elsewhere(const struct rvcm_conn *lost, const struct rvcm_owed *answer)
{
	struct rvcm_conn *conn = rvcm_route_out(rvcm_route_trunk(lost->carrier, lost->incarnation));

	if (rvcm_conn_is_usable(conn))
		rvcm_part_owe(conn, RVCM_WIRE_HERE, answer->src, answer->dst, NULL);
}

/* They are answered in the order of their questions: it is the first, mostly. */
static struct rvcm_path_full *find_on(struct rvcm_conn *conn, uint16_t number, uint16_t own)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->askers) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, wait);

		if (path->asked == number && path->slot->number == own)
			return path;
	}
	return NULL;
}

/* The path that has asked for the number; by our own that its question had. */
static struct rvcm_path_full *find(struct rvcm_conn *conn, uint16_t number, uint16_t own)
{
	struct rvcm_path_full *path = NULL;
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (rvcm_conn_is_there(other) && other->incarnation == conn->incarnation)
			path = find_on(other, number, own);
		if (path)
			return path;
	}
	return NULL;
}

const char *rvcm_who_here(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes)
{
	uint16_t src = rvcm_le16_get(frame->src_slot), dst = rvcm_le16_get(frame->dst_slot);
	struct rvcm_path_full *path = find(conn, src, dst);

	(void)bytes;
	if (!path) /* it has found another way, or is gone */
		return NULL;
	if (!rvcm_route_set(conn, &path->pub.peer, src))
		return RVCM_WHO_TOO_MANY;
	rvcm_meet_want_anew(path);
	return NULL;
}

void rvcm_who_gone(struct rvcm_conn *conn, uint16_t number, uint16_t own)
{
	struct rvcm_path_full *path = find(conn, number, own);
	struct rvcm_conn_cause cause;

	if (!path)
		return;
	rvcm_cause_set(&cause, &path->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	rvcm_path_down(path, &cause);
}

void rvcm_who_lost(struct rvcm_conn *conn)
{
	struct rvcm_list *pos, *node;
	struct rvcm_list askers;

	rvcm_list_init(&askers);
	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (other->incarnation == conn->incarnation)
			rvcm_list_splice_tail(&askers, &other->askers);
	}
	while ((node = rvcm_list_pop(&askers)))
		rvcm_meet_want_anew(rvcm_list_entry(node, struct rvcm_path_full, wait));
	while ((node = rvcm_list_pop(&conn->said))) {
		struct rvcm_owed *answer = rvcm_list_entry(node, struct rvcm_owed, node);

		if (!rvcm_seq_before(answer->seq, conn->tx_acked))
			rvcm_who_say_elsewhere(conn, answer);
		rvcm_mem_free(answer);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parking: there are more links than there may be (attr.max_links), so those that were not used for
 * longest are closed, by agreement, and opened again when one side has use for them.
 *
 *   who has too many            its peer
 *     PARK      ------------>     nothing of it is under way, or waits?
 *               <------------   PARKED   yes; or STAYS
 *     closes, if that is still so and nothing has come or gone since; or KEPT
 *
 * The conn stays, as one whose link is lost and that recovers (recover.c); but nobody asks for
 * another link, and no time is up. Nobody waits meanwhile either: who has something to say says it,
 * whatever it has asked or answered. If that crosses the words, and the link goes all the same, it
 * is sent again, as after any loss. So what is asked here is only whether it is worth it, and
 * whether the end of the link is a loss.
 *
 * The limit is no wall: a link that is needed is opened, and others are closed meanwhile, as far as
 * there are some without use.
 */
#include <stdio.h>

#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

#define ON_ITS_WAY_NS 20000000u    /* an answer: if it takes longer another one is asked */
#define SPARED_NS     100000000u   /* who has said no */
#define OVERDUE_NS    200000000u   /* for a link to say BYE on */
#define CONNS_OF_TURN 4u           /* that are looked at */
#define CROWDS_NS     10000000000u /* between lines that say that none can be closed */

/* -- is it worth it? ------------------------------------------------------------------------- */

/* Can the peer, which knows our name only, make one by the device that the conn has here? */
static bool is_found_by_name(const struct rvcm_conn *conn)
{
	struct rvcm_addr at = conn->carrier->devs[conn->dev].dev->attr.addr;

	at.port = conn->slot->name.port;
	return conn->dev == 0 || rvcm_addr_equal(&at, &conn->slot->name);
}

/* By its state: is there a link that both sides could do without, and make again? */
static bool may_park(const struct rvcm_conn *conn)
{
	return conn->link && conn->up && conn->hello_seen && conn->lasts && conn->named &&
	       !conn->recovering && !conn->failing && !conn->failed && !conn->successor &&
	       !conn->park_agreed && !conn->slot->closing && rvcm_conn_is_usable(conn) &&
	       is_found_by_name(conn);
}

static bool path_is_idle(const struct rvcm_path_full *path)
{
	return !rvcm_path_in_use(path) && !path->pub.exposed && !path->blocked && !path->down_due &&
	       !path->cut && !path->doubted && !path->confirm && !path->unsaid &&
	       !path->ended_conn && path->leave == RVCM_PATH_STAYS && !path->slot->closing &&
	       rvcm_list_empty(&path->backlog);
}

static bool paths_are_idle(const struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->outs)
		if (!path_is_idle(rvcm_list_entry(pos, struct rvcm_path_full, of_out)))
			return false;
	rvcm_list_for_each (pos, &conn->ins)
		if (!path_is_idle(rvcm_list_entry(pos, struct rvcm_path_full, of_in)))
			return false;
	return true;
}

/* Words that are still to be said, or to be answered. */
static bool has_words(const struct rvcm_conn *conn)
{
	return !rvcm_list_empty(&conn->owed) || !rvcm_list_empty(&conn->partings) ||
	       !rvcm_list_empty(&conn->enders) || !rvcm_list_empty(&conn->unsaid) ||
	       !rvcm_list_empty(&conn->askers) || !rvcm_list_empty(&conn->awaiting) ||
	       !rvcm_list_empty(&conn->blocked) || !rvcm_list_empty(&conn->confirms) ||
	       conn->confirm_wanted || conn->confirm_asking || conn->answer_due ||
	       conn->answer_follows || conn->unsure || conn->n_kept;
}

/* Nothing is under way, but for what the peer may have accepted without saying so. */
static bool is_quiet(const struct rvcm_conn *conn)
{
	return may_park(conn) && !conn->pending.first && !conn->unlent.first && !conn->loans &&
	       !conn->awaited && !conn->unplaced && rvcm_list_empty(&conn->reads_open) &&
	       !has_words(conn) && paths_are_idle(conn);
}

static bool is_idle(const struct rvcm_conn *conn)
{
	return conn->tx_acked == conn->tx_seq && is_quiet(conn);
}

/*
 * Another conn with the same process: an endpoint may say that it closes on either, and a conn
 * whose endpoint has closed could not have a link again.
 */
static bool has_twin(const struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		const struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (other != conn && rvcm_conn_is_there(other) &&
		    other->incarnation == conn->incarnation)
			return true;
	}
	return false;
}

/* -- too many -------------------------------------------------------------------------------- */

bool rvcm_park_has_room(const struct rvcm_carrier *carrier, uint32_t n)
{
	uint32_t max = carrier->attr.max_links;

	return !max || atomic_load_explicit(&carrier->n_links, memory_order_relaxed) + n <= max;
}

static uint32_t excess(const struct rvcm_carrier *carrier)
{
	uint32_t n = atomic_load_explicit(&carrier->n_links, memory_order_relaxed);
	uint32_t max = carrier->attr.max_links;

	if (atomic_load_explicit(&carrier->slots_open, memory_order_relaxed) == 0)
		return 0; /* all are about to end */
	return max && n > max ? n - max : 0;
}

void rvcm_park_uncount(struct rvcm_link *link)
{
	if (link->counted)
		atomic_fetch_sub_explicit(&link->slot->carrier->n_links, 1, memory_order_relaxed);
	link->counted = false;
}

void rvcm_park_count(struct rvcm_link *link)
{
	struct rvcm_carrier *carrier = link->slot->carrier;

	link->counted = true;
	atomic_fetch_add_explicit(&carrier->n_links, 1, memory_order_relaxed);
	if (!excess(carrier))
		return;
	rvcm_mailbox_poke(&carrier->to_data);
	carrier->attr.env.wake_data(carrier->attr.env.ctx);
}

/* When was it last used? As seen at each look, which costs messages nothing. */
static void see_use(struct rvcm_conn *conn, uint64_t look)
{
	if (conn->used && conn->used_tx == conn->tx_seq && conn->used_rx == conn->rx_next &&
	    rvcm_list_empty(&conn->reads_open))
		return;
	conn->used = look;
	conn->used_tx = conn->tx_seq;
	conn->used_rx = conn->rx_next;
}

/* Its links that are about to be closed, if the answer is soon there. */
static uint32_t on_way(const struct rvcm_conn *conn, uint64_t now)
{
	bool all = conn->park_agreed || conn->park_answered || conn->failed ||
		   (conn->park_asked && now - conn->park_ns < ON_ITS_WAY_NS);

	return all || conn->link->unbranching ? all + conn->n_sides : 0;
}

/* And those of all. */
static uint32_t see_all(struct rvcm_carrier *carrier, uint64_t now)
{
	uint64_t look = ++carrier->looks;
	struct rvcm_list *pos;
	uint32_t n = 0;

	carrier->unseen = 0;
	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (!conn->link)
			continue;
		see_use(conn, look);
		n += on_way(conn, now);
	}
	return n;
}

static bool may_ask(const struct rvcm_conn *conn, uint64_t now)
{
	return !conn->park_asked && !conn->park_answered && !conn->kept_due &&
	       now >= conn->spared_ns && is_quiet(conn);
}

/* That which has not been used for longest. */
static struct rvcm_conn *oldest(struct rvcm_carrier *carrier, uint64_t now)
{
	struct rvcm_conn *best = NULL;
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (conn->link && (!best || conn->used < best->used) && may_ask(conn, now))
			best = conn;
	}
	return best;
}

static void ask(struct rvcm_conn *conn, uint64_t now)
{
	conn->spared_ns = now + SPARED_NS;
	if (has_twin(conn) || rvcm_tx_control(conn, RVCM_WIRE_PARK, NULL, 0))
		return;
	conn->park_asked = true;
	conn->park_ns = now;
}

/* Its side links can go without asking: who opened them does not make them again. */
static uint32_t drop_sides(struct rvcm_conn *conn)
{
	struct rvcm_link *link = conn->link;

	if (!link || !conn->own || !conn->n_sides || !link->branching || link->unbranching ||
	    conn->failing || conn->failed || !rvcm_list_empty(&conn->reads_open))
		return 0;
	link->unbranching = true;
	rvcm_carrier_mail_control(conn->carrier, &link->unbranch_mail);
	return conn->n_sides;
}

static uint32_t drop_all_sides(struct rvcm_carrier *carrier, uint32_t most)
{
	struct rvcm_list *pos;
	uint32_t n = 0;

	rvcm_list_for_each (pos, &carrier->all_conns)
		if (n < most)
			n += drop_sides(rvcm_list_entry(pos, struct rvcm_conn, of_carrier));
	return n;
}

static void complain(struct rvcm_carrier *carrier, uint64_t now)
{
	uint32_t missed = 0;

	if (!rvcm_throttle_pass(&carrier->crowds, now, CROWDS_NS, &missed))
		return;
	rvcm_warn(RVCM_LOG_EP_CTRL,
		  "%u links are open, %u more than there may be: all are in use, or cannot be "
		  "made again",
		  carrier->attr.max_links + excess(carrier), excess(carrier));
}

void rvcm_park_look(struct rvcm_carrier *carrier)
{
	uint64_t now = rvcm_carrier_now(carrier);
	uint32_t going = see_all(carrier, now), most = excess(carrier);
	struct rvcm_conn *conn;

	carrier->crowded = most != 0;
	if (going < most)
		going += drop_all_sides(carrier, most - going);
	while (going < most && (conn = oldest(carrier, now))) {
		ask(conn, now);
		going += on_way(conn, now);
	}
	if (going < most)
		complain(carrier, now);
}

/* A look takes a while for each conn, so it is not taken in each turn; of all turns as long. */
void rvcm_park_watch(struct rvcm_carrier *carrier)
{
	if (++carrier->unseen * CONNS_OF_TURN < rvcm_hash_count(&carrier->trunks))
		return;
	if (carrier->crowded)
		rvcm_park_look(carrier);
	else
		(void)see_all(carrier, rvcm_carrier_now(carrier));
}

/* -- words ----------------------------------------------------------------------------------- */

void rvcm_park_reset(struct rvcm_conn *conn)
{
	conn->park_asked = false;
	conn->park_answered = false;
	conn->park_due = false;
	conn->park_agreed = false;
	conn->kept_due = false;
}

const char *rvcm_park_heard(struct rvcm_conn *conn, enum rvcm_wire_kind kind)
{
	if (kind == RVCM_WIRE_PARK && conn->park_due)
		return "PARK before the answer to the last";
	if ((kind == RVCM_WIRE_PARKED || kind == RVCM_WIRE_STAYS) && !conn->park_asked)
		return "an answer to PARK, and nobody has asked";
	if (kind == RVCM_WIRE_PARK) {
		conn->park_due = true;
	} else if (kind == RVCM_WIRE_PARKED) {
		conn->park_answered = true;
		conn->park_rx = conn->rx_next;
		conn->park_tx = conn->tx_acked;
	} else {
		conn->park_agreed &= kind != RVCM_WIRE_KEPT;
	}
	if (kind == RVCM_WIRE_PARKED || kind == RVCM_WIRE_STAYS)
		conn->park_asked = false;
	conn->usual = false;
	rvcm_conn_schedule(conn);
	return NULL;
}

/*
 * The peer has agreed. It may have changed its mind, or we ours. What it had not taken by then has
 * undone that when it came (receive_numbered), even if it is acknowledged since.
 */
static void take_answer(struct rvcm_conn *conn)
{
	conn->park_answered = false;
	if (conn->park_rx != conn->rx_next || conn->park_tx != conn->tx_seq ||
	    !excess(conn->carrier) || !is_quiet(conn)) {
		conn->kept_due = true;
		return;
	}
	conn->park_agreed = true;
	rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, 0, "not used, and closed");
}

/* False: try again. */
static bool answer(struct rvcm_conn *conn)
{
	bool agrees = is_idle(conn) && !has_twin(conn);

	if (rvcm_tx_control(conn, agrees ? RVCM_WIRE_PARKED : RVCM_WIRE_STAYS, NULL, 0))
		return false;
	conn->park_due = false;
	conn->park_agreed = agrees;
	conn->usual &= !agrees;
	return true;
}

bool rvcm_park_serve(struct rvcm_conn *conn)
{
	if (conn->park_answered)
		take_answer(conn);
	if (conn->failing)
		return true;
	if (conn->kept_due && rvcm_tx_control(conn, RVCM_WIRE_KEPT, NULL, 0))
		return false;
	conn->kept_due = false;
	return !conn->park_due || answer(conn);
}

/* -- and back -------------------------------------------------------------------------------- */

static void ask_control(struct rvcm_conn *conn, enum rvcm_conn_wish wish)
{
	conn->parked = false;
	rvcm_conn_wish(conn, wish);
}

void rvcm_park_wake(struct rvcm_conn *conn)
{
	const struct rvcm_carrier *carrier = conn->carrier;

	conn->waking = true;
	conn->lost_ns = rvcm_carrier_now(carrier);
	conn->by_ns = conn->lost_ns + carrier->attr.reconnect_timeout_ns;
	ask_control(conn, RVCM_CONN_WAKE);
}

/* Is there anything to be said, or read? An endpoint that closes has that: END, or BYE. */
static bool wants(const struct rvcm_conn *conn)
{
	return conn->tx_acked != conn->tx_seq || conn->confirm_wanted || conn->slot->closing ||
	       !rvcm_list_empty(&conn->blocked) || !rvcm_list_empty(&conn->owed) ||
	       !rvcm_list_empty(&conn->reads_open);
}

void rvcm_park_rouse(struct rvcm_conn *conn)
{
	if (conn->parked && wants(conn))
		rvcm_park_wake(conn);
}

void rvcm_park_give_up(struct rvcm_conn *conn)
{
	conn->parked = false;
	if (!conn->slot->shut_posted) /* else control has forgotten it */
		ask_control(conn, RVCM_CONN_FORGET);
}

/* -- who closes ------------------------------------------------------------------------------ */

static bool others_use(const struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->outs)
		if (rvcm_list_entry(pos, struct rvcm_path_full, of_out)->slot != conn->slot)
			return true;
	rvcm_list_for_each (pos, &conn->ins)
		if (rvcm_list_entry(pos, struct rvcm_path_full, of_in)->slot != conn->slot)
			return true;
	return false;
}

bool rvcm_park_holds(const struct rvcm_slot *slot)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &slot->conns) {
		const struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_slot);

		if ((conn->parked || conn->waking || conn->park_agreed) && others_use(conn))
			return true;
	}
	return false;
}

/* The peer may compute; and what it does not hear it finds out. */
bool rvcm_park_is_overdue(const struct rvcm_conn *conn)
{
	return conn->waking && rvcm_carrier_now(conn->carrier) - conn->lost_ns >= OVERDUE_NS;
}

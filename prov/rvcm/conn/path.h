/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths: what an endpoint has with another, over a conn that their processes share. All of it is
 * the data side's.
 *
 * Each direction of a path is by itself. We send on its *out*, and have told the other endpoint our
 * name there (PATH) before; we hear on its *in*, where the other has told its own. Mostly both are
 * the same conn; where both processes connected at once there are two, and each side keeps to the
 * one that it chose. Where one of the two is lost the other is given up too, for its peer may not
 * know of the first; the path goes down, and both sides begin anew, with PATH.
 *
 * A fresh path (there was nothing on it before) that takes the link which was made for it needs no
 * PATH: the handshake has told both names. Such an in is only implied, until a message comes.
 */
#ifndef RVCM_CONN_PATH_H
#define RVCM_CONN_PATH_H

#include "base/hash.h"
#include "base/list.h"
#include "conn/conn_impl.h"

#define RVCM_BACKLOG_BYTES_MAX (16u << 20) /* in a carrier; then the link ends */
#define RVCM_PATH_OWED_MAX                                                     \
	4096u /* answers that a conn may owe: a peer that never hears is ended \
	       */

/* How far an endpoint that closes is with telling this peer. */
enum rvcm_path_leave {
	RVCM_PATH_STAYS,
	RVCM_PATH_LEAVING, /* END waits for credit */
	RVCM_PATH_LEFT,    /* END was posted, as end_ordinal */
	RVCM_PATH_GONE,    /* the peer uses nothing of ours any more, or never knew of us */
};

struct rvcm_path_full {
	struct rvcm_path pub;
	struct rvcm_conn *tx; /* out, while it is up and we are introduced; else NULL */
	struct rvcm_carrier *carrier;
	struct rvcm_slot *slot;
	struct rvcm_hash_node node; /* carrier.paths */
	struct rvcm_list of_slot;   /* slot.paths */
	/* carrier.path_work, carrier.waiting_self, conn.awaiting, conn.askers */
	struct rvcm_list wait;
	struct rvcm_list backlog;     /* backlog.c */
	struct rvcm_list heirs;       /* of those: PATH */
	struct rvcm_list of_backlogs; /* carrier.backlogs */
	bool hearing;                 /* what was in it; until a frame has to be put back */
	bool fresh;
	bool waiting;   /* for its conn to be connected */
	uint16_t asked; /* an asker: for this number */
	bool blocked;   /* ready is owed */
	bool confirm;   /* confirmed is owed */
	uint32_t mark;  /* for that */
	uint32_t reads; /* not done, on in or out */
	uint32_t tails; /* not given back, on out */
	bool placing;   /* in's device puts a message where the owner has said */
	bool doubted;   /* its peer has been asked whether it is there still */
	bool down_due;  /* down is owed, once none of these is under way */
	bool cut;       /* one direction is lost; the end of the other brings it down, and
			   nothing is begun before */
	/* And then ENDED, to that endpoint on that conn; NULL: it is lost, or nothing is owed. */
	struct rvcm_conn *ended_conn;
	uint16_t ended_slot;
	struct rvcm_list of_ended; /* ended_conn's */
	bool unsaid; /* a message was dropped since it closes, which the peer may not know yet; */
	uint32_t sure_before; /* it was not before this one, which in has counted */
	enum rvcm_status down_status;

	struct rvcm_conn *out; /* NULL: none */
	uint16_t out_slot;     /* the other endpoint's number there */
	uint32_t out_slots;    /* our own and that, as frames that go there have them */
	bool introduced;       /* it knows of us there */
	struct rvcm_list of_out, of_blocked, of_confirms; /* out's */

	struct rvcm_conn *in; /* NULL: none */
	uint16_t in_slot;
	uint32_t in_slots; /* in_slot and our own, as rvcm_wire_slots gives them */
	bool implied;
	struct rvcm_list of_in;
	struct rvcm_hash_node by_in; /* carrier.ins */

	uint64_t met; /* number of the newest link over which its peer was met; 0: none */
	uint32_t met_incarnation; /* of the process at its other end */

	enum rvcm_path_leave leave;
	struct rvcm_conn *end_conn;
	uint64_t end_ordinal;
};

/* Does a device use memory of the owner's for it? */
static inline bool rvcm_path_in_use(const struct rvcm_path_full *path)
{
	return path->reads || path->tails || path->placing;
}

/* A frame without a body that waits for credit. */
struct rvcm_owed {
	struct rvcm_list node; /* conn.owed */
	enum rvcm_wire_kind kind;
	uint16_t src, dst;
	struct rvcm_path_full *path; /* END: who leaves, or NULL */
	uint32_t seq;                /* HERE: its number, when it has been posted */
};

/* Where the endpoint of that name is reached. */
struct rvcm_route {
	struct rvcm_hash_node node; /* carrier.routes */
	struct rvcm_list of_conn;   /* conn.routes */
	struct rvcm_addr name;
	struct rvcm_conn *conn;
	uint16_t slot;
};

static inline struct rvcm_path_full *rvcm_path_full(struct rvcm_path *path)
{
	return rvcm_container_of(path, struct rvcm_path_full, pub);
}

/* Its messages may go on that conn, or, NULL, on none. */
static inline void rvcm_path_send_on(struct rvcm_path_full *path, struct rvcm_conn *conn)
{
	path->tx = conn;
	path->pub.way = conn ? &conn->way : &rvcm_way_none;
}

rvcm_hash_eq rvcm_path_eq, rvcm_path_in_eq;

/* -- path.c -- */

/* NULL: there is none. */
struct rvcm_path_full *rvcm_path_find(struct rvcm_slot *slot, const struct rvcm_addr *peer);
/* Find it, or make it, with *is_new; NULL: no memory. */
struct rvcm_path_full *rvcm_path_obtain(struct rvcm_slot *slot, const struct rvcm_addr *peer,
					bool *is_new);
void rvcm_path_free(struct rvcm_path_full *path);
/* Look at it when the stack is unwound. */
void rvcm_path_schedule(struct rvcm_path_full *path);
/* Do so. Returns how many there were. */
int rvcm_path_run(struct rvcm_carrier *carrier);
/* That process has the path's name, as is learnt over its link of that number. */
void rvcm_path_meet(struct rvcm_path_full *path, uint32_t incarnation, uint64_t number);
/*
 * The process had the name when it opened the link of that number: has another one been met since,
 * over a newer one? Then the former's endpoint is gone, and what it said comes too late. NULL: no.
 */
bool rvcm_path_is_outlived(const struct rvcm_path_full *path, uint32_t incarnation,
			   uint64_t number);
/* Send there from now on, to the endpoint of that number; known: it knows of us already. */
void rvcm_path_bind(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot,
		    bool known);
/* Hear what comes from there with that number; the path has no in. */
void rvcm_path_hear(struct rvcm_path_full *path, struct rvcm_conn *conn, uint16_t peer_slot,
		    bool implied);
/* Hear no more of it, until it is introduced anew. */
void rvcm_path_unhear(struct rvcm_path_full *path);
/* Everything of it is lost, for that reason; it is not in use. */
void rvcm_path_down(struct rvcm_path_full *path, const struct rvcm_conn_cause *cause);
/* The conn is lost, and the one of its other direction is to follow. */
void rvcm_path_cut(struct rvcm_path_full *path, const struct rvcm_conn *lost);
/* The same, as soon as it is not in use. */
void rvcm_path_lose(struct rvcm_path_full *path, enum rvcm_status status);
/* Tell those that are owed it, as far as there is credit. */
void rvcm_path_tell_ready(struct rvcm_conn *conn);
/* The path whose messages come from that conn with these numbers (rvcm_wire_slots), or NULL. */
struct rvcm_path_full *rvcm_path_heard(struct rvcm_conn *conn, uint32_t slots);

/* -- meet.c: endpoints that meet -- */

/* The path has something to send, and no out: find one, or have one made. */
void rvcm_meet_want(struct rvcm_path_full *path);
/* The conn has a proven link: the two endpoints of its handshake know each other. */
void rvcm_meet_link(struct rvcm_conn *conn);
/* The other side has proved itself too: HELLO has come. */
void rvcm_meet_proven(struct rvcm_conn *conn);
/* The conn has lost its link. */
void rvcm_meet_lost(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause);
/* The conn that was wanted could not be connected; or answer_incarnation says which to take. */
void rvcm_meet_answer(struct rvcm_conn *conn);
/* Its attempt came to nothing, without a reason: go on waiting. */
void rvcm_meet_again(struct rvcm_conn *conn);
/* Tell the path's peer our name. False: no credit, or no memory. */
bool rvcm_meet_introduce(struct rvcm_path_full *path);
/* A message of who was not met when the link came, and so is who has the name? Then it is now. */
bool rvcm_meet_implied(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame);
/* A numbered frame that is not DATA, with its body behind it. NULL, or what is wrong with it. */
const char *rvcm_meet_frame(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes);
/* The path waits no longer: look anew. */
void rvcm_meet_want_anew(struct rvcm_path_full *path);
/* The conn is no end of the carrier's link with itself (any more), and will not be. */
void rvcm_meet_no_self(struct rvcm_conn *conn);

/* -- who.c: which number has a name now -- */

#define RVCM_WHO_TOO_MANY "more endpoints than a process can have"

/* Ask on the link whether the number, which another way has told, is the path's peer. */
void rvcm_who_ask(struct rvcm_path_full *path, struct rvcm_conn *trunk, uint16_t number);
/* It is not open: who has asked for it from our own number hears that. */
void rvcm_who_gone(struct rvcm_conn *conn, uint16_t number, uint16_t own);
/* HERE was posted: until it is acknowledged the asker may not have heard it, for it may have lost
 * that link, and waits on another. The answer is who.c's from here on.
 */
void rvcm_who_said(struct rvcm_conn *conn, struct rvcm_owed *answer);
/* The link was lost with it: say it on another, if there is one. */
void rvcm_who_say_elsewhere(const struct rvcm_conn *lost, const struct rvcm_owed *answer);
/* A conn to the process of that one is lost: what was asked, or answered, may be too. */
void rvcm_who_lost(struct rvcm_conn *conn);
/* The frames WHO and HERE; NULL, or what is wrong. */
const char *rvcm_who_asked(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			   size_t bytes);
const char *rvcm_who_here(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			  size_t bytes);

/* -- part.c: endpoints that part -- */

/* Post what is owed. False: not all. */
bool rvcm_part_send_owed(struct rvcm_conn *conn);
/* Owe a frame; END for a path, or none. */
void rvcm_part_owe(struct rvcm_conn *conn, enum rvcm_wire_kind kind, uint16_t src, uint16_t dst,
		   struct rvcm_path_full *path);
/* The path's endpoint closes: say END, if anybody knows of it. */
void rvcm_part_leave(struct rvcm_path_full *path);
/* A read is done: if it closes and that was the last, say END, whoever may be looking. */
void rvcm_part_read(struct rvcm_path_full *path);
/* Nothing of the path is owed on any conn any more. */
void rvcm_part_forget(struct rvcm_path_full *path);
/* The conn has lost its link: nothing is owed there. */
void rvcm_part_lost(struct rvcm_conn *conn);
/* The conn goes on with another link: who has said END there waits for that. */
void rvcm_part_pause(struct rvcm_conn *conn);
/* The path is freed, and its END not answered, perhaps. */
void rvcm_part_freed(struct rvcm_path_full *path);
/* PATH of that name, from src to dst, which is not open. */
void rvcm_part_refuse(struct rvcm_conn *conn, uint16_t src, uint16_t dst,
		      const struct rvcm_addr *name);
/* WHO of src, for dst, which is not open: it hears END, unless it will anyway. */
void rvcm_part_refuse_number(struct rvcm_conn *conn, uint16_t src, uint16_t dst);
/* The frames; NULL. */
const char *rvcm_part_end(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			  size_t bytes);
const char *rvcm_part_ended(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes);

/* -- backlog.c: who has a name before the former is gone -- */

/* The path that keeps what this endpoint of the peer's says, or NULL. */
struct rvcm_path_full *rvcm_backlog_of(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame);
/* Keep the frame, with bytes of body behind it; the one that is being heard, for another time. */
void rvcm_backlog_add(struct rvcm_path_full *path, struct rvcm_conn *conn,
		      const struct rvcm_wire_frame *frame, size_t bytes);
/* Hear it now, until the path is in use for a former endpoint again. */
void rvcm_backlog_hear(struct rvcm_path_full *path);
/* Nobody will hear it: say so. */
void rvcm_backlog_drop(struct rvcm_path_full *path);
/* The conn has lost its link: hear what came from there, if that can be, else drop it. */
void rvcm_backlog_lost(struct rvcm_conn *conn);

/* -- route.c: who is reached where -- */

rvcm_hash_eq rvcm_route_eq;
struct rvcm_route *rvcm_route_find(struct rvcm_carrier *carrier, const struct rvcm_addr *name);
/* False: it has more endpoints than a process can have. */
bool rvcm_route_set(struct rvcm_conn *conn, const struct rvcm_addr *name, uint16_t slot);
/* The conn's endpoint of that number has closed. */
void rvcm_route_end(struct rvcm_conn *conn, uint16_t slot);
void rvcm_route_end_all(struct rvcm_conn *conn);
/*
 * Where we send to the process that the conn leads to: all on one conn, or what an endpoint says
 * could be overtaken by what its successor says. conn, which may be NULL, if none is chosen yet.
 */
struct rvcm_conn *rvcm_route_out(struct rvcm_conn *conn);
rvcm_hash_eq rvcm_route_trunk_eq;
/* A conn to the carrier of that incarnation, or NULL. */
struct rvcm_conn *rvcm_route_trunk(struct rvcm_carrier *carrier, uint32_t incarnation);
/* Of a link of the carrier with itself: is it the end of the higher slot? */
bool rvcm_route_is_higher(const struct rvcm_conn *self);
/*
 * That end of another link of the carrier with itself than the lost one, or NULL. One may have been
 * made before the loss was seen at both ends; and while it is there no further one is.
 */
struct rvcm_conn *rvcm_route_self(const struct rvcm_conn *lost, bool higher);
/* The slot of our own that has that name, or NULL. */
struct rvcm_slot *rvcm_route_own(struct rvcm_carrier *carrier, const struct rvcm_addr *name);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of conn/ do for each other, on the objects of conn_impl.h, which includes this. */
#ifndef RVCM_CONN_PARTS_H
#define RVCM_CONN_PARTS_H

#include "conn/conn_impl.h"

/* -- carrier.c: mail -- */
void rvcm_carrier_mail_data(struct rvcm_carrier *carrier, struct rvcm_mail *mail);
void rvcm_carrier_mail_control(struct rvcm_carrier *carrier, struct rvcm_mail *mail);
/* The data side's: sink->shed. */
bool rvcm_carrier_shed(struct rvcm_carrier *carrier);
/* Control's: have the data side do that, for memory could not be locked. */
void rvcm_carrier_pinch(struct rvcm_carrier *carrier);

/* Longest message that this carrier takes from a link of dev. */
size_t rvcm_carrier_takes(const struct rvcm_carrier *carrier, const struct rvcm_dev *dev);

/* -- cause.c -- */
/* Say why, for the peer of that name. detail may be NULL. */
void rvcm_cause_set(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		    enum rvcm_status status, int err, const char *detail);
/* The same of a link by that device; NULL: of none. */
void rvcm_cause_by(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		   const struct rvcm_dev *dev, enum rvcm_status status, int err,
		   const char *detail);
/* The link was lost for cause, and for ms there was no other, at last for answer: why, in all.
 * Nobody listening is the end of a process, and has its errno. */
void rvcm_cause_tried(struct rvcm_conn_cause *cause, const struct rvcm_conn_cause *answer,
		      const struct rvcm_addr *peer, const struct rvcm_dev *dev, uint64_t ms);

#define RVCM_CAUSE_WHO_MAX 192

/* How lines about a link by dev begin, before ": "; index 0 is the first, and goes without saying.
 * buf has RVCM_CAUSE_WHO_MAX bytes. Returns it. */
const char *rvcm_cause_who(const struct rvcm_addr *peer, const struct rvcm_dev *dev, uint8_t index,
			   char *buf);
/* And how they go on: the text without who it is about. */
const char *rvcm_cause_why(const struct rvcm_conn_cause *cause);

/* What a device reported of a link: the fields of rvcm_dev_event and rvcm_dev_wc. */
struct rvcm_cause_report {
	const struct rvcm_dev *dev;
	enum rvcm_status status;
	int err;
	uint32_t vendor_err;
	const char *words;
	int number;
};

#define RVCM_CAUSE_DETAIL_MAX 128

/* As detail: what it said besides; buf has RVCM_CAUSE_DETAIL_MAX bytes. Returns it; NULL: nothing.
 */
const char *rvcm_cause_detail(const struct rvcm_cause_report *report, char *buf);
void rvcm_cause_of_device(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
			  const struct rvcm_cause_report *report);

/* The same of all peers: every device of the carrier was removed. */
void rvcm_cause_deaf(struct rvcm_conn_cause *cause, const struct rvcm_carrier *carrier);

/* -- removed.c -- */

/* Control's: the device was removed. */
void rvcm_removed_see(struct rvcm_carrier_dev *dev);
/* Control's: the first device from that index on that was not; n_devs: none. */
uint16_t rvcm_removed_skip(const struct rvcm_carrier *carrier, uint16_t from);
/* The data side's mail: REMOVED. */
void rvcm_removed_hear(struct rvcm_carrier_dev *dev);

/* -- budget.c: either side's -- */

/*
 * Receives for a fresh link: its control frames', and *window messages: start, or fewer, where it
 * is not 0. -ENOBUFS: all are promised; or the device's error.
 */
int rvcm_budget_open(struct rvcm_carrier_dev *dev, uint32_t start, uint32_t *window);
/* More messages for a link; returns how many of want. */
uint32_t rvcm_budget_grow(struct rvcm_carrier_dev *dev, uint32_t want);
/* The link, which had window, is no more. */
void rvcm_budget_close(struct rvcm_carrier_dev *dev, uint32_t window);

/* -- link.c: control's -- */
int rvcm_link_open(struct rvcm_contact *contact, uint16_t dev, uint8_t index, bool opener,
		   struct rvcm_link **link);
/* The same, and we open it: from whichever address leads there. */
int rvcm_link_open_routed(struct rvcm_contact *contact, uint16_t dev, uint8_t index,
			  struct rvcm_link **link);
void rvcm_link_close(struct rvcm_link *link);
/* How lines about it begin: rvcm_cause_who. */
const char *rvcm_link_who(const struct rvcm_link *link, char *buf);
/* The peer's handshake has told its incarnation, never 0. Once. */
void rvcm_link_known(struct rvcm_link *link, uint32_t peer_incarnation);
/* The data side has it, and is to let go: DOWN, once. */
void rvcm_link_recall(struct rvcm_link *link);

/* -- contact.c: control's -- */
/* Find or make; NULL: no memory. */
struct rvcm_contact *rvcm_contact_get(struct rvcm_slot *slot, const struct rvcm_addr *peer);
/* NULL: there is none. */
struct rvcm_contact *rvcm_contact_find(struct rvcm_slot *slot, const struct rvcm_addr *peer);
/* Its peer's endpoint has closed: what comes under that name from now on is another's. */
void rvcm_contact_unname(struct rvcm_contact *contact);
void rvcm_contact_feed(struct rvcm_contact *contact, enum rvcm_link_event event);
/* Is there a device that has not had its turn in this round? */
bool rvcm_contact_falls_through(const struct rvcm_contact *contact);
/* The attempt failed: FAIL or FATAL, whichever it is. */
void rvcm_contact_failed(struct rvcm_contact *contact, enum rvcm_status status, int err, bool retry,
			 const char *detail);
/* The data side has something to send, and conn is whom to answer. */
void rvcm_contact_want(struct rvcm_contact *contact, struct rvcm_conn *conn);
void rvcm_contact_released(struct rvcm_contact *contact);
/* The peer proved to be of that incarnation; what it had before is remembered as dead. */
void rvcm_contact_incarnation(struct rvcm_contact *contact, uint32_t incarnation);
/* What our handshake says, but for caps and window. */
void rvcm_contact_shake(struct rvcm_contact *contact, struct rvcm_shake *shake,
			enum rvcm_wire_role role);
/* Answer the request that is being judged. */
void rvcm_contact_reject(struct rvcm_contact *contact, enum rvcm_wire_reason reason);
/* A claim was proven: it is the contact's link. */
void rvcm_contact_take(struct rvcm_contact *contact, struct rvcm_link *link);
/* A claim ended unproven, for that reason. */
void rvcm_contact_unclaimed(struct rvcm_contact *contact, enum rvcm_status status, int err,
			    const char *detail);
/* There is nothing to remember, and nothing to wait for. */
bool rvcm_contact_is_over(const struct rvcm_contact *contact);
/* Have it freed when the stack is unwound, if there is nothing to remember. */
void rvcm_contact_tidy(struct rvcm_contact *contact);
void rvcm_contact_free(struct rvcm_contact *contact);

/* -- reopen.c: control's -- */

/* The link is let go: if its conn waits for another, this is to be opened. */
void rvcm_reopen_begin(struct rvcm_contact *contact);
/* It has come, or is given up. */
void rvcm_reopen_end(struct rvcm_contact *contact);
/* May the peer go first? */
bool rvcm_reopen_waits(const struct rvcm_contact *contact);
/* What our request says of the conn that it goes on with. */
void rvcm_reopen_shake(const struct rvcm_contact *contact, struct rvcm_shake *shake);
/* The link is up: which conn is it? */
void rvcm_reopen_note(struct rvcm_contact *contact, const struct rvcm_link *link);
/* Is it an answer to our request, as to the conn? */
bool rvcm_reopen_is_answer(const struct rvcm_contact *contact, const struct rvcm_link *link,
			   const struct rvcm_shake *shake);
/* A peer's request: NONE, if we have the conn that it means, or have not heard of it yet. */
enum rvcm_wire_reason rvcm_reopen_judge(const struct rvcm_contact *contact,
					const struct rvcm_shake *shake);
/*
 * The contact's peer has closed, and what is known of it will be forgotten: but that its conn was
 * heard of.
 */
void rvcm_reopen_forget(const struct rvcm_contact *contact);
rvcm_hash_eq rvcm_reopen_former_eq;
void rvcm_reopen_fini(struct rvcm_carrier *carrier);
/* GONE: the peer does not have the conn any more. */
void rvcm_reopen_gone(struct rvcm_link *link, const struct rvcm_dev_event *ev);
/* The data side wants the parked conn to have a link again; or has given it up. */
void rvcm_reopen_wake(struct rvcm_contact *contact, struct rvcm_conn *conn);
void rvcm_reopen_forget_parked(struct rvcm_contact *contact, struct rvcm_conn *conn);
/* Is there a parked conn with that carrier, of another contact? */
bool rvcm_reopen_has_parked(const struct rvcm_contact *contact, uint32_t incarnation);
/* BUSY: it has it, and computes, perhaps for longer than there is time. */
void rvcm_reopen_put_off(struct rvcm_contact *contact);
/* Does another contact wait for another link to that carrier? */
bool rvcm_reopen_has_kin(const struct rvcm_contact *contact, uint32_t incarnation);

/* -- rail.c: control's -- */
/* The contact has lost the link, and is to have another. */
void rvcm_rail_begin(struct rvcm_contact *contact, const struct rvcm_link *link);
/*
 * Our attempt did not find the peer: if the conn goes on, the next attempt goes by another way.
 * True: it went by a rail, and what was heard there is not final.
 */
bool rvcm_rail_turn(struct rvcm_contact *contact);
/* The way that a request from there came by. */
uint32_t rvcm_rail_from(const struct rvcm_contact *contact, const struct rvcm_addr *from);
/* Where the way leads to. */
const struct rvcm_addr *rvcm_rail_addr(const struct rvcm_contact *contact, uint32_t way);
/* A link for our next attempt. */
int rvcm_rail_open(struct rvcm_contact *contact, uint16_t dev, struct rvcm_link **link);

/* -- claim.c: control's -- */
/* Is there room for another claim, and is it newer than those there are? */
enum rvcm_wire_reason rvcm_claim_judge(const struct rvcm_contact *contact,
				       const struct rvcm_shake *shake);
/* Accept the request that is being judged. */
void rvcm_claim_accept(struct rvcm_contact *contact);
void rvcm_claim_established(struct rvcm_link *link);
/* The device says that it is gone. */
void rvcm_claim_lost(struct rvcm_link *link, enum rvcm_status status, int err);
/* The data side's mail: WATCHED, FAILED, RELEASED, TAKEN. */
void rvcm_claim_watched(struct rvcm_link *link);
void rvcm_claim_broken(struct rvcm_link *link);
void rvcm_claim_released(struct rvcm_link *link);
void rvcm_claim_proven(struct rvcm_link *link);
void rvcm_claim_drop_all(struct rvcm_contact *contact);

/* -- request.c: control's -- */
/* A peer's request: judge it, then accept, reject or park it. */
void rvcm_request_handle(struct rvcm_slot *slot, uint16_t dev, const struct rvcm_dev_event *ev);
/* request: what is answered; NULL if reason is not SHARED. */
int rvcm_request_reject(struct rvcm_slot *slot, uint16_t dev, struct rvcm_dev_req *req,
			enum rvcm_wire_reason reason, const struct rvcm_wire_handshake *request);
/* Is there another contact's link, or claim, of that carrier? */
bool rvcm_request_has_kin(const struct rvcm_contact *contact, uint32_t incarnation, bool claim);
rvcm_hash_eq rvcm_request_kin_eq;

/* -- control.c -- */
uint64_t rvcm_control_run(struct rvcm_carrier *carrier);

/* -- conn.c: the data side's -- */
void rvcm_conn_mail(struct rvcm_carrier *carrier, struct rvcm_mail *mail);
void rvcm_conn_schedule(struct rvcm_conn *conn);
/* Have its messages counted as its device's. */
void rvcm_conn_count(struct rvcm_conn *conn);
/* How lines about it begin: rvcm_cause_who. */
const char *rvcm_conn_who(const struct rvcm_conn *conn, char *buf);
/* Ask control to connect. */
void rvcm_conn_want(struct rvcm_conn *conn);
/* The same for what is wished, whatever there is. */
void rvcm_conn_wish(struct rvcm_conn *conn, enum rvcm_conn_wish wish);
/*
 * End the conn, or if it is recovering that: detach when the stack is unwound, tell control. What
 * was pending is lost.
 */
void rvcm_conn_fail(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail);
/* The link is lost: the same, or the conn goes on with another. */
void rvcm_conn_lose(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail);
/* Likewise for what its device completed with an error. */
void rvcm_conn_fail_completed(struct rvcm_conn *conn, const struct rvcm_dev_wc *wc);
/* NULL: there is none. */
struct rvcm_conn *rvcm_conn_find(struct rvcm_slot *slot, const struct rvcm_addr *peer);
/* Find it, or make it; NULL: no memory. */
struct rvcm_conn *rvcm_conn_obtain(struct rvcm_slot *slot, const struct rvcm_addr *peer);
/* The conn has a link now. */
void rvcm_conn_start(struct rvcm_conn *conn, struct rvcm_link *link);
/* Free it; it has no link. */
void rvcm_conn_free(struct rvcm_conn *conn);
/* It goes on, but not under the name of its peer, which has closed. */
void rvcm_conn_unname(struct rvcm_conn *conn);
/* Our HELLO has left: the opener may go on. */
void rvcm_conn_greeted(struct rvcm_conn *conn);
/* From here on messages may be sent, or not. */
void rvcm_conn_set_up(struct rvcm_conn *conn, bool up);
/*
 * Has the device all that was committed, and BYE, out of its hands, and does the peer look, or see
 * it later? True without a link.
 */
bool rvcm_conn_is_handed_over(const struct rvcm_conn *conn);
/* Is its link lost, and everything with it? */
static inline bool rvcm_conn_is_lost(const struct rvcm_conn *conn)
{
	return (conn->failing || conn->failed) && !conn->recovering;
}
/* Has it a link, or will it have one? */
static inline bool rvcm_conn_is_there(const struct rvcm_conn *conn)
{
	return conn->link || conn->recovering;
}
/* May anything begin on it? */
static inline bool rvcm_conn_is_usable(const struct rvcm_conn *conn)
{
	return conn && rvcm_conn_is_there(conn) && !rvcm_conn_is_lost(conn) && !conn->ending &&
	       !conn->bye_due && !conn->bye_ordinal && !conn->peer_bye;
}
/* Does the link belong to a conn that lasts, if we can recover? */
static inline bool rvcm_link_lasts(const struct rvcm_link *link)
{
	return link->request.flags & link->reply.flags & RVCM_WIRE_RECOVERY;
}
/* Have we opened the first link of its conn? */
static inline bool rvcm_link_own(const struct rvcm_link *link)
{
	bool openers = link->request.flags & RVCM_WIRE_OWN || !rvcm_le32_get(link->request.begun);

	return openers == link->opener;
}
/* Which conn the link is for: rvcm_conn.begun. */
static inline uint32_t rvcm_link_begun(const struct rvcm_link *link)
{
	uint32_t begun = rvcm_le32_get(link->request.begun);

	return begun ? begun : rvcm_le32_get(link->reply.epoch);
}
/* What the device has yet to be through with: rvcm_conn_is_through(conn, ordinal). */
static inline bool rvcm_conn_is_through(const struct rvcm_conn *conn, uint64_t ordinal)
{
	if (conn->recovering)
		return false;
	return !conn->link || conn->failed || conn->link->completed >= ordinal;
}

/* -- recover.c: the data side's -- */

/* Can both sides, on the link that the conn has? (Not with ourselves.) */
bool rvcm_recover_agreed(const struct rvcm_conn *conn);
/* The link is lost, for conn.cause: is the conn recovering? Then by when it is to have another. */
void rvcm_recover_judge(struct rvcm_conn *conn);
/* Its link is detached and reaped: keep what is to be sent, and read, again. */
void rvcm_recover_keep(struct rvcm_conn *conn);
/* Its link goes back to control, which is to open another. */
void rvcm_recover_ask(struct rvcm_conn *conn, struct rvcm_link *link);
/* The link, proven or our own, goes on with the conn. */
bool rvcm_recover_continues(const struct rvcm_conn *conn, const struct rvcm_link *link);
/* The same, of a conn that its opener has never heard of: it goes on as what begins there. */
bool rvcm_recover_joins(const struct rvcm_conn *conn, const struct rvcm_link *link);
/* It is attached, and the conn's from now on. */
void rvcm_recover_resume(struct rvcm_conn *conn, struct rvcm_link *link);
#define RVCM_RECOVER_LIES "tells of other messages than there were"

/* The peer's HELLO: all before ack has arrived. False: that cannot be. */
bool rvcm_recover_counts(struct rvcm_conn *conn, uint32_t ack, uint16_t window);
/* Both sides have told: go on, with what is left to be sent again. */
void rvcm_recover_done(struct rvcm_conn *conn);
/* There is no link, and will be none: conn.cause says why. It may be freed. */
void rvcm_recover_give_up(struct rvcm_conn *conn);
/* The same, for the peer has something else with us now. */
void rvcm_recover_outdo(struct rvcm_conn *conn, enum rvcm_status status);
/* Control's answer: no. */
void rvcm_recover_answered(struct rvcm_conn *conn);
/* Nobody will open another for the slot's conns. */
void rvcm_recover_shut(struct rvcm_slot *slot);

/* -- park.c: the data side's, but for the first -- */

/* Control has opened a link: are there more than there may be? */
void rvcm_park_count(struct rvcm_link *link);
/* Whoever has it: it is about to be closed. Once or more. */
void rvcm_park_uncount(struct rvcm_link *link);
/* May so many more be opened, that could be done without? Either side's. */
bool rvcm_park_has_room(const struct rvcm_carrier *carrier, uint32_t n);
/* Ask peers whether links may be closed, while there are too many. */
void rvcm_park_look(struct rvcm_carrier *carrier);
/* The same, now and then, when something has come; and see which are in use. */
void rvcm_park_watch(struct rvcm_carrier *carrier);
/* PARK, PARKED, STAYS or KEPT has come. NULL, or what is wrong with it. */
const char *rvcm_park_heard(struct rvcm_conn *conn, enum rvcm_wire_kind kind);
/* Answer, or close. False: try again. */
bool rvcm_park_serve(struct rvcm_conn *conn);
/* Nothing of that is under way, on a fresh link or on none. */
void rvcm_park_reset(struct rvcm_conn *conn);
/* It is parked: have it opened again if anything is to be sent. */
void rvcm_park_rouse(struct rvcm_conn *conn);
/* The same, whether or not. */
void rvcm_park_wake(struct rvcm_conn *conn);
/* It is parked, and given up: tell control, which answers. */
void rvcm_park_give_up(struct rvcm_conn *conn);
/* The slot closes: is there a conn of it that others use, and that is to have a link before? */
bool rvcm_park_holds(const struct rvcm_slot *slot);
/* It should have had a link by now, to say BYE. */
bool rvcm_park_is_overdue(const struct rvcm_conn *conn);

/* -- slot.c -- */

/* Under the control lock: rvcm_carrier_listen. */
int rvcm_slot_open(struct rvcm_carrier *carrier, uint16_t index, struct rvcm_addr *addr);
/* Control's: nobody connects to it any more. */
void rvcm_slot_deafen(struct rvcm_slot *slot);
/* The data side's: rvcm_carrier_unlisten_by. */
void rvcm_slot_shut(struct rvcm_slot *slot, uint64_t deadline_ns);
/* The data side's: go on with that. True: the slot is no more. */
bool rvcm_slot_end(struct rvcm_slot *slot);
/* Control's: nothing but links in use is left of it. */
bool rvcm_slot_is_over(const struct rvcm_slot *slot);
/* Under the control lock: the slot is closed, and no contact is left. */
void rvcm_slot_free(struct rvcm_slot *slot);
/* The number's slot, if it is open. The data side's. */
struct rvcm_slot *rvcm_slot_of(struct rvcm_carrier *carrier, uint16_t number);

/* -- confirm.c: the owner wants to know when messages have been accepted -- */

/* Nothing is wanted, on a fresh link. */
void rvcm_confirm_reset(struct rvcm_conn *conn);
/* The link is lost, and the conn goes on: what was asked is asked again. */
void rvcm_confirm_pause(struct rvcm_conn *conn);
/* The same, when the link is lost; and what END was said there is said where it was waited for. */
void rvcm_confirm_lost(struct rvcm_conn *conn);

/* Want everything committed confirmed; returns the mark. */
uint32_t rvcm_confirm_want(struct rvcm_path_full *path);

/* Ask the peer, if that is owed. False: try again. */
bool rvcm_confirm_ask(struct rvcm_conn *conn);

/* An ACK has come, perhaps an answer. NULL, or what is wrong with it. */
const char *rvcm_confirm_answered(struct rvcm_conn *conn, const uint8_t *body, size_t bytes);

/* The message that has just come for the path was dropped, for its endpoint closes. */
void rvcm_confirm_dropped(struct rvcm_path_full *path);
/*
 * The body of an END on that link, to the peer's dst, with or without a path: how far we vouch to
 * it. Returns its length, 0 if there is nothing to vouch for.
 */
size_t rvcm_confirm_part(const struct rvcm_path_full *path, const struct rvcm_conn *on,
			 uint16_t dst, uint8_t *body);
/* That of the peer's END, from its src; down follows. NULL, or what is wrong with it. */
const char *rvcm_confirm_parted(struct rvcm_path_full *path, uint16_t src, const uint8_t *body,
				size_t bytes);
/* The path is freed: what it has to say, or has said on another link, is still to be heard. */
void rvcm_confirm_gone(struct rvcm_path_full *path);
/* Say END to the peer's src, for our dst, when the one under way on end_conn has been answered. */
void rvcm_confirm_later(struct rvcm_conn *conn, uint16_t src, uint16_t dst,
			const struct rvcm_conn *end_conn);
/* The peer's endpoint src has heard that our dst is closed. */
void rvcm_confirm_ended(struct rvcm_conn *conn, uint16_t src, uint16_t dst);
/* The message that has just come is kept for another time; one is not any more. */
void rvcm_confirm_kept(struct rvcm_conn *conn);
void rvcm_confirm_unkept(struct rvcm_conn *conn);
/* Likewise, for an endpoint that is gone. */
void rvcm_confirm_stray(struct rvcm_conn *conn);
/* END may have been posted: see whether there is more to vouch for. */
void rvcm_confirm_review(struct rvcm_conn *conn);
/* BYE, and how far we vouch. False: try again. */
bool rvcm_confirm_bye(struct rvcm_conn *conn);
/* Answer a HEARTBEAT. False: try again. */
bool rvcm_confirm_answer(struct rvcm_conn *conn);

/* -- work.c: what is owed to a conn, outside of any callback -- */
int rvcm_work_run(struct rvcm_carrier *carrier);

/* -- loan.c -- */

/* There are loans. Returns whether that is to be looked at no more, or owners have been told. */
bool rvcm_loan_serve(struct rvcm_conn *conn);

/* -- tx.c -- */
/* A link that is opened: what all posts have in common. */
void rvcm_tx_prepare(struct rvcm_link *link);
void rvcm_tx_start(struct rvcm_conn *conn, uint32_t window);
/* Send what is in buf, so many bytes behind the header, as that kind of numbered frame. */
void rvcm_tx_commit(struct rvcm_conn *conn, struct rvcm_buf *buf, enum rvcm_wire_kind kind,
		    uint16_t src, uint16_t dst, size_t bytes);
/* Send what is reserved, as DATA of the path. */
void rvcm_tx_send(struct rvcm_path_full *path, size_t bytes, enum rvcm_path_when when);
/* At once, with its tail. */
void rvcm_tx_send_tail(struct rvcm_path_full *path, size_t bytes,
		       const struct rvcm_path_tail *tail);
/* Post a control frame with that payload; -EAGAIN: later. */
int rvcm_tx_control(struct rvcm_conn *conn, enum rvcm_wire_kind kind, const void *payload,
		    size_t bytes);
/* The same for HELLO, of so many bytes with its rails, which says what we take: see wire.h. */
int rvcm_tx_hello(struct rvcm_conn *conn, const struct rvcm_wire_hello *hello, size_t bytes,
		  uint32_t message_max);
/* Post what is pending; true when nothing is any more. */
bool rvcm_tx_drain(struct rvcm_conn *conn);
/* The device is through with sends up to that ordinal. */
void rvcm_tx_completed(struct rvcm_link *link, uint64_t ordinal);
/* The link is detached and reaped, or there is none: forget everything. */
void rvcm_tx_reset(struct rvcm_conn *conn);
/* The link is detached and reaped: all that is not acknowledged is to be sent again. */
void rvcm_tx_keep(struct rvcm_conn *conn);
/* Of that, let go of what is before ack. Returns how many. */
uint32_t rvcm_tx_spare(struct rvcm_conn *conn, uint32_t ack);
/* Tell the owners of tails that have been acknowledged. */
void rvcm_tx_give_back(struct rvcm_conn *conn);

/* HELLO of a side link, which has no conn's numbers. 0, or why not. */
int rvcm_tx_alone(struct rvcm_carrier *carrier, struct rvcm_link *link,
		  const struct rvcm_wire_hello *hello);

/* -- hold.c -- */

/* A frame of that size, which rvcm_hold_may (hold.h) has said may wait, was posted with MORE. */
void rvcm_hold_add(struct rvcm_conn *conn, size_t bytes);
/* Something was posted without MORE, or the link is gone: nothing is held any more. */
void rvcm_hold_drop(struct rvcm_conn *conn);
/* Send what every conn holds. */
void rvcm_hold_flush_all(struct rvcm_carrier *carrier);

/* -- rx.c -- */
/* A frame; its end may be where rvcm_rx_head had it put. */
void rvcm_rx_message(struct rvcm_conn *conn, const uint8_t *data, size_t bytes);
/* Likewise one with an immediate, which only bare messages have (bare.h). */
void rvcm_rx_bare(struct rvcm_conn *conn, const uint8_t *data, size_t bytes, uint32_t imm);
/* A numbered frame, with bytes behind its header. */
void rvcm_rx_numbered(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes);
/* The first bytes of one that comes next. */
void rvcm_rx_head(struct rvcm_conn *conn, const uint8_t *data, size_t bytes);

/* -- hello.c -- */
int rvcm_hello_send(struct rvcm_conn *conn);
/* The same on a side link. */
int rvcm_hello_send_side(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* The link's first frame. NULL: it proves the peer; else what is wrong, and *status. */
const char *rvcm_hello_judge(struct rvcm_carrier *carrier, struct rvcm_link *link,
			     const uint8_t *data, size_t bytes, enum rvcm_status *status);

/* What may be sent to the peer whose HELLO was judged: what both take. */
size_t rvcm_hello_message_max(const struct rvcm_carrier *carrier, const struct rvcm_link *link);
/* Tell the opener why its claim ends, if that is its doing or may pass. False: nothing was said. */
bool rvcm_hello_refuse(struct rvcm_carrier *carrier, struct rvcm_link *link,
		       enum rvcm_status status);
/* The opener's: what it is told in the place of HELLO; NONE: that is something else. */
enum rvcm_wire_reason rvcm_hello_refused(const uint8_t *data, size_t bytes);

/* -- proof.c: the data side's half of claims -- */
void rvcm_proof_up(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* HELLO should have come by now. */
void rvcm_proof_due(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* Let go of it: it is no conn's. */
void rvcm_proof_down(struct rvcm_carrier *carrier, struct rvcm_link *link);
void rvcm_proof_message(struct rvcm_carrier *carrier, struct rvcm_link *link, const uint8_t *data,
			size_t bytes);
/* A completion said so. */
void rvcm_proof_fail(struct rvcm_carrier *carrier, struct rvcm_link *link, enum rvcm_status status);
/* End what failed: say why, or detach it. Returns how many. */
int rvcm_proof_run(struct rvcm_carrier *carrier);
/* It has proved itself: it becomes a conn's, at once, or when that has let go of what it has. */
void rvcm_proof_adopt(struct rvcm_carrier *carrier, struct rvcm_link *link);

/* -- read.c -- */
int rvcm_read_start(struct rvcm_conn *conn, struct rvcm_path_full *path,
		    const struct rvcm_path_read *op);
/* Post what the links take; true when nothing is left to be posted. */
bool rvcm_read_drain(struct rvcm_conn *conn);
/*
 * A piece is done. One that failed has lost its link, and is read again; or, when the conn is let
 * go, its read is told so, just before down: who heard of it earlier could send again, to a link
 * that is broken and not yet replaced.
 */
void rvcm_read_completed(struct rvcm_carrier *carrier, struct rvcm_read_piece *piece,
			 enum rvcm_status status);
/* The link is detached, and its conn lost: what the device still says of it means nobody. */
void rvcm_read_disown(struct rvcm_link *link);
/* The conn is lost, and its link reaped. The side links go with it. */
void rvcm_read_abort(struct rvcm_conn *conn, enum rvcm_status status);

/* -- side.c: the data side's half of side links -- */

/* The conn has that to move: if it is much have its side links made, if it is to have any. */
void rvcm_side_want(struct rvcm_conn *conn, uint64_t bytes);
/* May anything be posted on it? */
static inline bool rvcm_side_is_up(const struct rvcm_link *link)
{
	return link->proven && link->side_of && !link->failing;
}
/* The mail: UP, DOWN. */
void rvcm_side_up(struct rvcm_carrier *carrier, struct rvcm_link *link);
void rvcm_side_down(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* A message on it, which is HELLO; or a completion that says that it is lost. */
void rvcm_side_message(struct rvcm_carrier *carrier, struct rvcm_link *link, const uint8_t *data,
		       size_t bytes);
void rvcm_side_failed(struct rvcm_link *link, const struct rvcm_dev_wc *wc);
/* Let go of it when the stack is unwound. */
void rvcm_side_lose(struct rvcm_link *link, enum rvcm_status status, int err, const char *detail);
/* Do so, and take those that have proved themselves. Returns how many there were. */
int rvcm_side_run(struct rvcm_carrier *carrier);
/* The conn is no more. */
void rvcm_side_end_all(struct rvcm_conn *conn);

/* -- branch.c: control's half of side links -- */

/* The data side wants them, beside link, its conn's first. */
void rvcm_branch_want(const struct rvcm_link *link);
/* Link 0 may go another way. */
void rvcm_branch_moved(struct rvcm_contact *contact);
/* None is wanted any more: end those that there are. */
void rvcm_branch_stop(struct rvcm_contact *contact);
/* A peer's request for one: NONE, or why not. */
enum rvcm_wire_reason rvcm_branch_judge(const struct rvcm_contact *contact,
					const struct rvcm_slot *slot,
					const struct rvcm_shake *shake);
/* It was judged: accept it. */
void rvcm_branch_accept(struct rvcm_contact *contact, uint16_t dev, const struct rvcm_dev_event *ev,
			const struct rvcm_shake *shake);
/* What its device says of one. */
void rvcm_branch_event(struct rvcm_link *link, const struct rvcm_dev_event *ev);
/* The data side's mail: TAKEN, FAILED, RELEASED; WATCHED is as of a claim. */
void rvcm_branch_taken(struct rvcm_link *link);
void rvcm_branch_broken(struct rvcm_link *link);
void rvcm_branch_released(struct rvcm_link *link);

/* -- poll.c -- */
int rvcm_poll_dev(struct rvcm_carrier_dev *dev);
/* wr_id of the n-th send of a link, and of a read's piece. */
#define RVCM_POLL_READ 1u

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control's half of a conn: link_fsm.def says when, the actions here say what. An action that fails
 * feeds the failure back as an event, so there is one way to deal with it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

#define MS                    1000000u
#define ATTEMPT_NS            (2000u * (uint64_t)MS)
#define CROSSED_NS            (2000u * (uint64_t)MS) /* how long the winner may take */
#define SETTLED_NS            (200u * (uint64_t)MS)
#define BACKOFF_FIRST_NS      (10u * (uint64_t)MS)
#define BACKOFF_DOUBLINGS_MAX 6u
#define FALLBACKS_NS          (10000u * (uint64_t)MS)
#define MISSES_MAX            4u /* then it is not true that there is a link */

/* -- helpers ------------------------------------------------------------------------------ */

static void arm(struct rvcm_contact *contact, uint64_t delay_ns)
{
	rvcm_timer_set(&contact->carrier->timers, &contact->timer,
		       rvcm_carrier_now(contact->carrier) + delay_ns);
}

static void drop_link(struct rvcm_contact *contact)
{
	if (contact->link)
		rvcm_link_close(contact->link);
	contact->link = NULL;
}

void rvcm_contact_reject(struct rvcm_contact *contact, enum rvcm_wire_reason reason)
{
	struct rvcm_dev_req *req = contact->req;

	contact->req = NULL;
	if (req)
		rvcm_request_reject(contact->slot, contact->req_dev, req, reason, NULL);
}

void rvcm_contact_shake(struct rvcm_contact *contact, struct rvcm_shake *shake,
			enum rvcm_wire_role role)
{
	struct rvcm_carrier *carrier = contact->carrier;

	memset(shake, 0, sizeof(*shake));
	shake->role = role;
	shake->name = contact->slot->name;
	shake->slot = contact->slot->number;
	shake->incarnation = carrier->incarnation;
	shake->epoch = contact->epoch;
	if (carrier->attr.reconnect_timeout_ns)
		shake->flags = RVCM_WIRE_RECOVERY;
}

/* -- actions ------------------------------------------------------------------------------ */

static void do_nothing(struct rvcm_contact *contact)
{
	(void)contact;
}

/*
 * Above every epoch that either side has used here, and above all that this incarnation has used at
 * all: a slot that is opened again under the same name must not look stale to a peer that
 * remembers.
 */
static void next_epoch(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;

	if (rvcm_seq_before(contact->epoch, carrier->epoch))
		contact->epoch = carrier->epoch;
	carrier->epoch = ++contact->epoch;
}

bool rvcm_contact_falls_through(const struct rvcm_contact *contact)
{
	uint16_t had = (uint16_t)(contact->attempts % contact->carrier->attr.n_devs);

	return !contact->reopening && had != 0 &&
	       rvcm_removed_skip(contact->carrier, had) < contact->carrier->attr.n_devs;
}

/* A device that is gone stays so, and memory that may not be locked hardly comes with time. */
static bool is_worth_another(const struct rvcm_contact *contact, int rc)
{
	uint32_t most = RVCM_CONN_REFUSALS_MAX * contact->carrier->attr.n_devs;

	if (rvcm_contact_falls_through(contact))
		return true;
	return rc != -ENODEV && (rc != -ENOMEM || contact->attempts < most);
}

/* The devices take turns, in order of preference; who was removed has none. n_devs: all were. */
static uint16_t next_dev(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	uint32_t n = carrier->attr.n_devs, had = contact->attempts % n;
	uint16_t dev = rvcm_removed_skip(carrier, (uint16_t)had);

	if (contact->reopening) {
		contact->attempts++;
		return carrier->devs[contact->dev].removed ? (uint16_t)n : contact->dev;
	}
	if (dev == n) { /* the next round begins */
		contact->attempts += n - had;
		had = 0;
		dev = rvcm_removed_skip(carrier, 0);
	}
	contact->attempts += dev - had + 1;
	return dev;
}

/* Send our request. */
static void do_open(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	uint16_t dev = next_dev(contact);
	struct rvcm_shake shake;
	int rc;

	drop_link(contact);
	if (dev == carrier->attr.n_devs) {
		rvcm_contact_failed(contact, RVCM_STATUS_DEVICE_REMOVED, 0, false,
				    "no other is left");
		return;
	}
	next_epoch(contact);
	rvcm_contact_shake(contact, &shake, RVCM_WIRE_REQUEST);
	rvcm_reopen_shake(contact, &shake);
	shake.caps = (uint16_t)carrier->devs[dev].dev->attr.caps;
	if (contact->misses >= MISSES_MAX &&
	    !rvcm_request_has_kin(contact, contact->missed, false) &&
	    !rvcm_request_has_kin(contact, contact->missed, true))
		shake.flags |= RVCM_WIRE_ANEW;
	rc = rvcm_rail_open(contact, dev, &contact->link);
	if (!rc) {
		if (!contact->reopening)
			shake.window = (uint16_t)contact->link->window;
		rvcm_shake_encode(&shake, carrier->attr.job_key, NULL, &contact->link->request);
		rc = carrier->devs[dev].dev->ops->connect(
			contact->link->qp, rvcm_rail_addr(contact, contact->link->way),
			&contact->link->request, sizeof(contact->link->request));
	}
	if (!rc) {
		arm(contact, carrier->attr.attempt_timeout_ns ? carrier->attr.attempt_timeout_ns
							      : ATTEMPT_NS);
		return;
	}
	rvcm_rail_turn(contact);
	rvcm_contact_failed(contact, rvcm_status_from_errno(-rc), -rc,
			    is_worth_another(contact, rc), "the connection could not be started");
}

void rvcm_contact_incarnation(struct rvcm_contact *contact, uint32_t incarnation)
{
	if (contact->peer_incarnation == incarnation)
		return;
	contact->n_rails = 0;
	if (contact->peer_incarnation != 0) {
		memmove(&contact->dead[1], &contact->dead[0],
			sizeof(contact->dead) - sizeof(contact->dead[0]));
		contact->dead[0] = contact->peer_incarnation;
	}
	contact->taken = 0;
	contact->peer_incarnation = incarnation;
}

/* Our own attempts wait until the claim has been proven, or not. */
static void do_accept(struct rvcm_contact *contact)
{
	if (contact->state == RVCM_LINK_ACCEPTING)
		rvcm_timer_cancel(&contact->carrier->timers, &contact->timer);
	rvcm_claim_accept(contact);
}

static void do_switch(struct rvcm_contact *contact)
{
	rvcm_stat_inc(&contact->carrier->stats.crossed);
	drop_link(contact);
	do_accept(contact);
}

static void do_cross(struct rvcm_contact *contact)
{
	rvcm_stat_inc(&contact->carrier->stats.crossed);
	rvcm_contact_reject(contact, RVCM_WIRE_REASON_CROSSED);
}

static void do_wait(struct rvcm_contact *contact)
{
	rvcm_stat_inc(&contact->carrier->stats.crossed);
	drop_link(contact);
	arm(contact, CROSSED_NS);
}

/*
 * The next device at once. When all had their turn back off, doubling, with jitter of half the
 * time: peers that failed together do not return so.
 */
static void do_retry(struct rvcm_contact *contact)
{
	uint32_t n = contact->reopening ? 1 + contact->n_rails : contact->carrier->attr.n_devs;
	uint32_t rounds = contact->attempts / n;
	uint32_t doublings = rounds < BACKOFF_DOUBLINGS_MAX ? rounds : BACKOFF_DOUBLINGS_MAX;
	uint64_t delay = BACKOFF_FIRST_NS << doublings;

	drop_link(contact);
	if (rvcm_contact_falls_through(contact))
		arm(contact, 0);
	else
		arm(contact, delay / 2 + rvcm_rng_below(&contact->carrier->rng, delay / 2));
}

static void settle(struct rvcm_contact *contact)
{
	rvcm_timer_cancel(&contact->carrier->timers, &contact->timer);
	contact->attempts = 0;
	contact->misses = 0;
	contact->wanted = false;
	rvcm_reopen_end(contact);
}

static void do_give_up(struct rvcm_contact *contact)
{
	bool wanted = contact->wanted, reopening = contact->reopening;

	drop_link(contact);
	if (contact->parked && !wanted) /* a claim came to nothing; it goes on lying there */
		return;
	settle(contact);
	contact->begun = 0;
	rvcm_branch_stop(contact);
	if (!wanted)
		return;
	rvcm_stat_add(&contact->carrier->stats.connect_fails, !reopening);
	rvcm_log(reopening ? RVCM_LOG_INFO : RVCM_LOG_WARN, RVCM_LOG_EP_CTRL, "%s",
		 contact->cause.text);
	contact->conn->answer_reopened = reopening;
	contact->conn->answer_cause = contact->cause;
	contact->conn->answer_incarnation = 0;
	rvcm_carrier_mail_data(contact->carrier, &contact->conn->answer);
}

/* There is a link to that process, which the data side knows. */
static void do_share(struct rvcm_contact *contact)
{
	bool wanted = contact->wanted;

	drop_link(contact);
	settle(contact);
	if (wanted) {
		contact->conn->answer_reopened = false;
		rvcm_carrier_mail_data(contact->carrier, &contact->conn->answer);
	}
	rvcm_contact_tidy(contact);
}

/* Why by this device, and not by the one that comes first. */
static const char *why_not_first(const struct rvcm_contact *contact)
{
	if (contact->link->dev == 0)
		return contact->carrier->attr.n_devs > 1 ? "it comes first" : "there is no other";
	if (!contact->link->opener)
		return "the peer connected by that";
	return contact->cause.text[0] ? rvcm_cause_why(&contact->cause) : "that failed before";
}

/* Which device was chosen; that it is not the one that comes first is worth a warning. */
static void say_chosen(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	uint16_t dev = contact->link->dev;
	char name[RVCM_ADDR_STRLEN], more[40] = "";
	uint32_t missed = 0;
	bool loud = dev != 0 && rvcm_throttle_pass(&carrier->fallbacks, rvcm_carrier_now(carrier),
						   FALLBACKS_NS, &missed);

	if (missed)
		snprintf(more, sizeof(more), " (and %u more peers)", missed);
	rvcm_log(loud ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL,
		 "peer %s%s is reached by %s%s%s: %s",
		 rvcm_addr_format(&contact->peer, name, sizeof(name)), more,
		 carrier->devs[dev].dev->attr.name, dev ? ", not by " : "",
		 dev ? carrier->devs[0].dev->attr.name : "", why_not_first(contact));
}

static void do_hand_over(struct rvcm_contact *contact)
{
	say_chosen(contact);
	settle(contact);
	rvcm_stat_inc(&contact->carrier->devs[contact->link->dev].stats.connects);
	rvcm_carrier_mail_data(contact->carrier, &contact->link->up);
}

static void do_take(struct rvcm_contact *contact)
{
	say_chosen(contact);
	settle(contact);
	rvcm_stat_inc(&contact->carrier->devs[contact->link->dev].stats.accepts);
}

static void do_break(struct rvcm_contact *contact)
{
	struct rvcm_link *link = contact->link;

	rvcm_timer_cancel(&contact->carrier->timers, &contact->timer);
	if (!link->down_posted)
		link->cause = contact->cause;
	rvcm_link_recall(link);
}

static void do_drop(struct rvcm_contact *contact)
{
	drop_link(contact);
}

/*
 * The peer ends its side when it gets to that. Where the device is through with all that was sent,
 * BYE included, it arrives whatever becomes of us: then the peer is not waited for long.
 */
static void do_disconnect(struct rvcm_contact *contact)
{
	struct rvcm_carrier *carrier = contact->carrier;
	struct rvcm_link *link = contact->link;
	uint64_t by_ns = carrier->deadline_ns;
	uint64_t settled_ns = rvcm_carrier_now(carrier) + SETTLED_NS;

	rvcm_claim_drop_all(contact);
	rvcm_branch_stop(contact);
	rvcm_cause_set(&contact->cause, &contact->peer, RVCM_STATUS_CLOSED, 0, NULL);
	if (link->settled && settled_ns < by_ns)
		by_ns = settled_ns;
	rvcm_timer_set(&carrier->timers, &contact->timer, by_ns);
	if (link->qp->dev->ops->disconnect(link->qp))
		do_break(contact);
}

/* The contact itself goes when the stack is unwound: see rvcm_control_run. */
static void do_finish(struct rvcm_contact *contact)
{
	rvcm_reopen_end(contact);
	rvcm_timer_cancel(&contact->carrier->timers, &contact->timer);
	rvcm_contact_reject(contact, RVCM_WIRE_REASON_CLOSING);
	drop_link(contact);
	rvcm_claim_drop_all(contact);
	rvcm_branch_stop(contact);
	rvcm_contact_tidy(contact);
}

/* -- the machine -------------------------------------------------------------------------- */

void rvcm_contact_feed(struct rvcm_contact *contact, enum rvcm_link_event event)
{
	static void (*const actions[RVCM_LINK_ACTIONS])(struct rvcm_contact *) = {
		[RVCM_LINK_DO_NOTHING] = do_nothing, [RVCM_LINK_DO_OPEN] = do_open,
		[RVCM_LINK_DO_ACCEPT] = do_accept,   [RVCM_LINK_DO_SWITCH] = do_switch,
		[RVCM_LINK_DO_CROSS] = do_cross,     [RVCM_LINK_DO_WAIT] = do_wait,
		[RVCM_LINK_DO_RETRY] = do_retry,     [RVCM_LINK_DO_GIVE_UP] = do_give_up,
		[RVCM_LINK_DO_SHARE] = do_share,     [RVCM_LINK_DO_HAND_OVER] = do_hand_over,
		[RVCM_LINK_DO_BREAK] = do_break,     [RVCM_LINK_DO_TAKE] = do_take,
		[RVCM_LINK_DO_DROP] = do_drop,       [RVCM_LINK_DO_DISCONNECT] = do_disconnect,
		[RVCM_LINK_DO_FINISH] = do_finish,
	};
	struct rvcm_link_fsm_step step = rvcm_link_fsm_next(contact->state, event);

	rvcm_debug(RVCM_LOG_EP_CTRL, "%s + %s -> %s", rvcm_link_fsm_state_name(contact->state),
		   rvcm_link_fsm_event_name(event), rvcm_link_fsm_state_name(step.next));
	contact->state = step.next;
	actions[step.action](contact);
	if (contact->req) /* the table did not answer it */
		rvcm_contact_reject(contact, RVCM_WIRE_REASON_CLOSING);
}

/* That of the attempt, or NULL. */
static const struct rvcm_dev *dev_of(const struct rvcm_contact *contact)
{
	return contact->link ? contact->carrier->devs[contact->link->dev].dev : NULL;
}

void rvcm_contact_failed(struct rvcm_contact *contact, enum rvcm_status status, int err, bool retry,
			 const char *detail)
{
	bool in_time = rvcm_carrier_now(contact->carrier) < contact->deadline_ns;

	rvcm_cause_by(&contact->cause, &contact->peer, dev_of(contact), status, err, detail);
	rvcm_info(RVCM_LOG_EP_CTRL, "attempt %u: %s", contact->attempts, contact->cause.text);
	rvcm_contact_feed(contact, retry && in_time && contact->wanted ? RVCM_LINK_EV_FAIL
								       : RVCM_LINK_EV_FATAL);
}

void rvcm_contact_want(struct rvcm_contact *contact, struct rvcm_conn *conn)
{
	if (contact->state == RVCM_LINK_UP || contact->state == RVCM_LINK_CLOSING)
		return; /* an UP mail that crossed this one answers it; or nobody waits */
	rvcm_reopen_end(contact);
	contact->conn = conn;
	contact->wanted = true;
	contact->deadline_ns =
		rvcm_carrier_now(contact->carrier) + contact->carrier->attr.connect_timeout_ns;
	rvcm_contact_feed(contact, RVCM_LINK_EV_WANT);
}

void rvcm_contact_released(struct rvcm_contact *contact)
{
	rvcm_reopen_begin(contact);
	if (!contact->reopening || contact->parked)
		rvcm_branch_stop(contact);
	if (contact->n_claims)
		rvcm_contact_feed(contact, RVCM_LINK_EV_RELEASED_CLAIM);
	else if (contact->parked)
		rvcm_contact_feed(contact, RVCM_LINK_EV_RELEASED);
	else if (rvcm_reopen_waits(contact))
		rvcm_contact_feed(contact, RVCM_LINK_EV_RELEASED_LATER);
	else if (contact->wanted)
		rvcm_contact_feed(contact, RVCM_LINK_EV_RELEASED_WANT);
	else
		rvcm_contact_feed(contact, RVCM_LINK_EV_RELEASED);
	rvcm_contact_tidy(contact);
}

void rvcm_contact_take(struct rvcm_contact *contact, struct rvcm_link *link)
{
	contact->link = link;
	contact->peer_epoch = link->epoch;
	rvcm_contact_incarnation(contact, link->peer_incarnation);
	rvcm_reopen_note(contact, link);
	rvcm_contact_feed(contact, RVCM_LINK_EV_PROVEN);
	if (link->down_posted) /* it has been lost meanwhile */
		rvcm_contact_feed(contact, RVCM_LINK_EV_LOST);
}

void rvcm_contact_unclaimed(struct rvcm_contact *contact, enum rvcm_status status, int err,
			    const char *detail)
{
	if (contact->state == RVCM_LINK_ACCEPTING && contact->n_claims == 0)
		rvcm_contact_failed(contact, status, err, true, detail);
	rvcm_contact_tidy(contact);
}

bool rvcm_contact_is_over(const struct rvcm_contact *contact)
{
	/* Who comes to a name that nobody has any more, or to a slot that is shut, is another. */
	bool forget = contact->peer_incarnation == 0 || !contact->named || contact->slot->shut;
	bool idle = contact->state == RVCM_LINK_IDLE && forget;

	return (idle || contact->state == RVCM_LINK_CLOSED) && contact->n_claims == 0 &&
	       rvcm_list_empty(&contact->sides);
}

void rvcm_contact_tidy(struct rvcm_contact *contact)
{
	if (rvcm_contact_is_over(contact) && rvcm_list_empty(&contact->ended))
		rvcm_list_add_tail(&contact->carrier->ended, &contact->ended);
}

static void expired(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_contact *contact = rvcm_container_of(timer, struct rvcm_contact, timer);

	if (contact->state == RVCM_LINK_OPENING) {
		rvcm_cause_by(&contact->cause, &contact->peer, dev_of(contact),
			      RVCM_STATUS_CONNECT_TIMEOUT, 0, NULL);
		rvcm_rail_turn(contact);
	} else if (contact->state == RVCM_LINK_CROSSED) {
		rvcm_cause_set(&contact->cause, &contact->peer, RVCM_STATUS_CONNECT_TIMEOUT, 0,
			       "it promised to connect, and did not");
	}
	rvcm_contact_feed(contact, contact->wanted && now_ns < contact->deadline_ns
					   ? RVCM_LINK_EV_TIMER
					   : RVCM_LINK_EV_EXPIRED);
}

/* -- life --------------------------------------------------------------------------------- */

struct rvcm_contact *rvcm_contact_find(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_hash_node *node =
		rvcm_hash_find(&carrier->contacts, rvcm_conn_key_hash(carrier, &key), &key);

	return node ? rvcm_container_of(node, struct rvcm_contact, node) : NULL;
}

struct rvcm_contact *rvcm_contact_get(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_contact *contact = rvcm_contact_find(slot, peer);

	if (contact)
		return contact;
	contact = rvcm_mem_zalloc(sizeof(*contact));
	if (!contact)
		return NULL;
	contact->carrier = carrier;
	contact->slot = slot;
	contact->peer = *peer;
	contact->named = true;
	contact->state = RVCM_LINK_IDLE;
	rvcm_timer_init(&contact->timer, expired);
	rvcm_list_init(&contact->ended);
	rvcm_list_init(&contact->of_reopening);
	rvcm_list_init(&contact->claims);
	rvcm_list_init(&contact->sides);
	rvcm_list_add_tail(&slot->contacts, &contact->of_slot);
	rvcm_hash_insert(&carrier->contacts, &contact->node, rvcm_conn_key_hash(carrier, &key));
	return contact;
}

void rvcm_contact_free(struct rvcm_contact *contact)
{
	rvcm_list_del(&contact->of_slot);
	rvcm_list_del(&contact->ended);
	rvcm_list_del(&contact->of_reopening);
	if (contact->named)
		rvcm_hash_del(&contact->carrier->contacts, &contact->node);
	rvcm_mem_free(contact->branches);
	rvcm_mem_free(contact);
}

/* What is being proven under that name belongs to whoever has it now. */
void rvcm_contact_unname(struct rvcm_contact *contact)
{
	struct rvcm_contact *heir = NULL;
	struct rvcm_list *pos;

	if (!contact->named)
		return;
	rvcm_hash_del(&contact->carrier->contacts, &contact->node);
	contact->named = false;
	rvcm_reopen_forget(contact);
	if (contact->n_claims == 0)
		return;
	heir = rvcm_contact_get(contact->slot, &contact->peer);
	if (!heir) {
		rvcm_claim_drop_all(contact);
		return;
	}
	rvcm_list_for_each (pos, &contact->claims)
		rvcm_list_entry(pos, struct rvcm_link, of_contact)->contact = heir;
	rvcm_list_splice_tail(&heir->claims, &contact->claims);
	heir->n_claims = contact->n_claims;
	contact->n_claims = 0;
	heir->epoch = contact->epoch;
	heir->state = RVCM_LINK_ACCEPTING;
}

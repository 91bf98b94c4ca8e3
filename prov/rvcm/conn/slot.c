/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots: an endpoint's listener, from listen to quiet.
 *
 * A slot that closes takes its paths along, not the links: those are its carrier's, and other slots
 * use them. It stays behind them, retired, without listener or index, until the last of them is
 * gone. When no other slot is open the links end too: BYE says that of all endpoints at once.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

#define HEARD_NS     200000000u
#define OPENINGS_MAX 64u /* in a number, beside the index: 16 bits in all */

_Static_assert(RVCM_CONN_SLOTS_MAX *OPENINGS_MAX == 1u << 16, "a number tells both");

/* -- opening --------------------------------------------------------------------------------- */

static struct rvcm_slot *slot_new(struct rvcm_carrier *carrier, uint16_t index)
{
	struct rvcm_slot *slot = rvcm_mem_zalloc(sizeof(*slot));

	if (!slot)
		return NULL;
	slot->carrier = carrier;
	slot->index = index;
	slot->number =
		(uint16_t)(index + carrier->openings[index] % OPENINGS_MAX * RVCM_CONN_SLOTS_MAX);
	slot->serial = ++carrier->serials;
	rvcm_list_init(&slot->node);
	rvcm_list_init(&slot->contacts);
	rvcm_list_init(&slot->conns);
	rvcm_list_init(&slot->paths);
	slot->shut_mail.kind = RVCM_MAIL_SHUT;
	slot->closed_mail.kind = RVCM_MAIL_CLOSED;
	rvcm_list_init(&slot->shut_mail.node);
	rvcm_list_init(&slot->closed_mail.node);
	return slot;
}

/*
 * The first device decides the port, and the name; a further one that cannot listen there is left
 * out, with a word. Those that were removed are none.
 */
static int slot_listen(struct rvcm_slot *slot, struct rvcm_addr *addr)
{
	struct rvcm_carrier *carrier = slot->carrier;
	uint16_t first = rvcm_removed_skip(carrier, 0), n = (uint16_t)carrier->attr.n_devs;

	if (first == n)
		return -ENODEV;
	for (uint16_t i = first; i < n; i = rvcm_removed_skip(carrier, (uint16_t)(i + 1))) {
		struct rvcm_dev *dev = carrier->devs[i].dev;
		struct rvcm_addr at = i == first && addr->family ? *addr : dev->attr.addr;
		int rc;

		at.port = i == first ? addr->port : slot->name.port;
		slot->listen[i].slot = slot;
		slot->listen[i].dev = i;
		rc = dev->ops->listen(dev, &at, 1024, &slot->listen[i], &slot->listener[i]);
		if (rc && i == first)
			return rc;
		if (rc)
			rvcm_warn(RVCM_LOG_EP_CTRL, "%s cannot listen on port %u: %s",
				  dev->attr.name, at.port, strerrordesc_np(-rc));
		if (i == first)
			slot->name = at;
	}
	*addr = slot->name;
	return 0;
}

/* And where further links may come; a rail that is not there is left out, with a word. */
static void listen_on_rails(struct rvcm_slot *slot)
{
	const struct rvcm_carrier *carrier = slot->carrier;
	uint16_t index = carrier->attr.rails_dev;
	struct rvcm_dev *dev = carrier->devs[index].dev;

	if (!slot->listener[index])
		return;
	for (uint32_t i = 0; i < carrier->attr.n_rails; i++) {
		struct rvcm_addr *at = &slot->rails[slot->n_rails];
		char name[RVCM_ADDR_STRLEN];
		int rc;

		*at = carrier->attr.rails[i];
		rc = dev->ops->listen(dev, at, 64, &slot->listen[index],
				      &slot->rail_listener[slot->n_rails]);
		if (rc)
			rvcm_warn(RVCM_LOG_EP_CTRL, "%s cannot listen on the rail %s: %s",
				  dev->attr.name,
				  rvcm_addr_format(&carrier->attr.rails[i], name, sizeof(name)),
				  strerrordesc_np(-rc));
		else
			slot->n_rails++;
	}
}

void rvcm_slot_deafen(struct rvcm_slot *slot)
{
	const struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_dev *rails_dev = carrier->devs[carrier->attr.rails_dev].dev;

	for (uint32_t i = 0; i < carrier->attr.n_devs; i++) {
		if (slot->listener[i])
			carrier->devs[i].dev->ops->listener_close(slot->listener[i]);
		slot->listener[i] = NULL;
	}
	for (uint32_t i = 0; i < slot->n_rails; i++)
		rails_dev->ops->listener_close(slot->rail_listener[i]);
}

static void enter(struct rvcm_carrier *carrier, struct rvcm_slot *slot)
{
	slot->listening = true;
	carrier->openings[slot->index]++;
	carrier->slots[slot->index] = slot;
	atomic_fetch_add(&carrier->slots_open, 1);
	if (carrier->slots_end <= slot->index)
		carrier->slots_end = slot->index + 1;
}

int rvcm_slot_open(struct rvcm_carrier *carrier, uint16_t index, struct rvcm_addr *addr)
{
	struct rvcm_slot *slot;
	int rc;

	if (carrier->slots[index])
		return -EBUSY;
	slot = slot_new(carrier, index);
	rc = slot ? slot_listen(slot, addr) : -ENOMEM;
	if (rc) {
		rvcm_mem_free(slot);
		return rc;
	}
	listen_on_rails(slot);
	enter(carrier, slot);
	return 0;
}

/* -- closing --------------------------------------------------------------------------------- */

/* What the slot's endpoint owes to each peer. Who still reads from a peer leaves it later. */
static void leave_all(struct rvcm_slot *slot)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &slot->paths) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_slot);

		if (slot->last)
			rvcm_part_forget(path);
		if (slot->last)
			path->leave = RVCM_PATH_GONE;
		else if (path->reads == 0)
			rvcm_part_leave(path);
	}
}

/* Is it to end with the last slot? One that was opened since has conns of its own. */
static bool ends(const struct rvcm_conn *conn)
{
	return conn->slot->closing;
}

static void bye_to_all(struct rvcm_carrier *carrier)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (!ends(conn))
			continue;
		conn->bye_due = conn->up || conn->recovering;
		conn->lent_mark = conn->tx_seq; /* for what it has is to be told */
		rvcm_conn_schedule(conn);
	}
}

/* Others use them, and could not open them again when nobody listens any more. */
static void wake_all(struct rvcm_slot *slot)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &slot->conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_slot);

		if (conn->parked && !conn->link && !conn->failing)
			rvcm_park_wake(conn);
	}
}

void rvcm_slot_shut(struct rvcm_slot *slot, uint64_t deadline_ns)
{
	struct rvcm_carrier *carrier = slot->carrier;
	uint64_t half_ns = rvcm_carrier_now(carrier) + carrier->attr.linger_ns / 2;

	slot->closing = true;
	slot->last = atomic_fetch_sub(&carrier->slots_open, 1) == 1;
	slot->deadline_ns = deadline_ns;
	/* Time for END and its answer: to break a link that others use is the last resort. */
	if (!slot->last && deadline_ns < half_ns)
		slot->deadline_ns = half_ns;
	leave_all(slot);
	if (!slot->last) {
		wake_all(slot);
		return;
	}
	/* Those that were about to leave the others alone need not any more. */
	for (uint16_t i = 0; i < carrier->slots_end; i++) {
		struct rvcm_slot *other = carrier->slots[i];

		if (!other || !other->closing || other->shut_posted)
			continue;
		other->last = true;
		leave_all(other);
	}
	bye_to_all(carrier);
}

/* END, and so all before it, is out of the device's hands; and who reads has answered. */
static bool has_left(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn;

	if (path->reads)
		return false; /* of memory that the peer gives up when it hears END */
	if (path->leave == RVCM_PATH_STAYS)
		rvcm_part_leave(path);
	if (rvcm_path_in_use(path))
		return false;
	if (path->leave == RVCM_PATH_GONE)
		return true;
	conn = path->end_conn;
	if (path->leave != RVCM_PATH_LEFT || conn->pending.first)
		return false;
	if (!conn->link) /* it is recovering */
		return false;
	if (path->end_ordinal == 0)
		path->end_ordinal = conn->link->posted;
	return rvcm_conn_is_through(conn, path->end_ordinal) && !path->pub.exposed;
}

static bool paths_have_left(struct rvcm_slot *slot)
{
	struct rvcm_list *pos;
	bool all = true;

	rvcm_list_for_each (pos, &slot->paths)
		all &= has_left(rvcm_list_entry(pos, struct rvcm_path_full, of_slot));
	return all;
}

static bool conns_are_handed_over(struct rvcm_carrier *carrier)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (ends(conn) && !rvcm_conn_is_handed_over(conn))
			return false;
	}
	return true;
}

static void break_conn(struct rvcm_conn *conn)
{
	if (conn)
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0,
			       "an endpoint closes, and its memory is in use");
}

/* Time is up: memory that is still in use is taken from those who use it. True: there was some. */
static bool break_users(struct rvcm_slot *slot)
{
	struct rvcm_list *pos;
	bool any = false;

	rvcm_list_for_each (pos, &slot->paths) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_slot);

		bool exposed = path->pub.exposed && path->leave != RVCM_PATH_GONE;

		if (path->reads || path->placing)
			break_conn(path->in);
		if (path->reads || path->tails)
			break_conn(path->out);
		if (exposed)
			break_conn(path->end_conn);
		any |= rvcm_path_in_use(path) || exposed;
	}
	return any;
}

static void settle_all(struct rvcm_carrier *carrier)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (!ends(conn))
			continue;
		conn->ending = true;
		if (conn->link)
			conn->link->settled = rvcm_conn_is_handed_over(conn);
	}
}

/* Does the peer of every conn that goes with the slot know all that was sent? */
static bool is_heard(const struct rvcm_slot *slot)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &slot->carrier->all_conns) {
		const struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if ((slot->last ? ends(conn) : conn->slot == slot) && conn->lasts && conn->link &&
		    !conn->failed && conn->tx_acked != conn->tx_seq)
			return false;
	}
	return true;
}

/*
 * All is through the devices, which may yet lose it with a link; and then nobody is left to send it
 * again. So peers are given a moment to say what they have; who computes does not.
 */
static bool is_settled(struct rvcm_slot *slot, bool through)
{
	uint64_t now = rvcm_carrier_now(slot->carrier);

	if (!through)
		slot->through_ns = 0;
	else if (slot->through_ns == 0)
		slot->through_ns = now;
	return through && (is_heard(slot) || now - slot->through_ns >= HEARD_NS);
}

static bool may_shut(struct rvcm_slot *slot)
{
	bool late = rvcm_carrier_now(slot->carrier) >= slot->deadline_ns;

	if (slot->last)
		return late || is_settled(slot, conns_are_handed_over(slot->carrier));
	return is_settled(slot, paths_have_left(slot) && !rvcm_park_holds(slot)) ||
	       (late && !break_users(slot));
}

/* The index is free again; what was connected through it may go on. */
static void retire(struct rvcm_slot *slot)
{
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &slot->paths)
		rvcm_path_free(rvcm_list_entry(pos, struct rvcm_path_full, of_slot));
	rvcm_list_for_each_safe (pos, tmp, &slot->conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_slot);

		if (!conn->link)
			rvcm_conn_free(conn);
	}
	rvcm_lock_acquire(&carrier->control_lock);
	carrier->slots[slot->index] = NULL;
	slot->retired = true;
	if (rvcm_list_empty(&slot->contacts))
		rvcm_slot_free(slot);
	else
		rvcm_list_add_tail(&carrier->retired, &slot->node);
	rvcm_lock_release(&carrier->control_lock);
}

static void post_shut(struct rvcm_slot *slot)
{
	slot->shut_posted = true;
	rvcm_recover_shut(slot);
	rvcm_carrier_mail_control(slot->carrier, &slot->shut_mail);
}

/*
 * All that close end together, or one would be over while a link that came from another's listener
 * is not. Control does not run between the first and the last.
 */
static void post_last(struct rvcm_carrier *carrier)
{
	settle_all(carrier);
	rvcm_lock_acquire(&carrier->control_lock);
	for (uint16_t i = 0; i < carrier->slots_end; i++) {
		struct rvcm_slot *slot = carrier->slots[i];

		if (slot && slot->last && !slot->shut_posted)
			post_shut(slot);
	}
	rvcm_lock_release(&carrier->control_lock);
}

bool rvcm_slot_end(struct rvcm_slot *slot)
{
	if (atomic_load(&slot->closed)) {
		retire(slot);
		return true;
	}
	if (slot->shut_posted || !may_shut(slot))
		return false;
	if (slot->last)
		post_last(slot->carrier);
	else
		post_shut(slot);
	return false;
}

/* -- for others ------------------------------------------------------------------------------ */

static bool everything_is_over(const struct rvcm_carrier *carrier)
{
	for (uint16_t i = 0; i < carrier->slots_end; i++) {
		const struct rvcm_slot *slot = carrier->slots[i];

		if (slot && slot->shut && !rvcm_list_empty(&slot->contacts))
			return false;
	}
	return rvcm_list_empty(&carrier->retired);
}

bool rvcm_slot_is_over(const struct rvcm_slot *slot)
{
	struct rvcm_list *pos;

	if (slot->last)
		return everything_is_over(slot->carrier);
	rvcm_list_for_each (pos, &slot->contacts) {
		const struct rvcm_contact *contact =
			rvcm_list_entry(pos, struct rvcm_contact, of_slot);

		if (contact->state != RVCM_LINK_UP || contact->n_claims)
			return false;
	}
	return true;
}

void rvcm_slot_free(struct rvcm_slot *slot)
{
	rvcm_list_del(&slot->node);
	rvcm_mem_free(slot);
}

struct rvcm_slot *rvcm_slot_of(struct rvcm_carrier *carrier, uint16_t number)
{
	struct rvcm_slot *slot = carrier->slots[number % RVCM_CONN_SLOTS_MAX];

	return slot && slot->number == number && !slot->closing ? slot : NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's end of its connections: opening and closing it, and its two sides. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/hold.h"
#include "conn/path.h"
#include "conn/poll.h"

#define STRIPE_BYTES ((size_t)128 << 10)
#define CQ_DEPTH     4096u

/* -- mail --------------------------------------------------------------------------------- */

void rvcm_carrier_mail_data(struct rvcm_carrier *carrier, struct rvcm_mail *mail)
{
	if (rvcm_mailbox_post(&carrier->to_data, &mail->node))
		carrier->attr.env.wake_data(carrier->attr.env.ctx);
}

void rvcm_carrier_mail_control(struct rvcm_carrier *carrier, struct rvcm_mail *mail)
{
	if (rvcm_mailbox_post(&carrier->to_control, &mail->node))
		carrier->attr.env.wake_control(carrier->attr.env.ctx);
}

/* -- open and close ----------------------------------------------------------------------- */

static bool conn_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_conn *conn =
		rvcm_container_of((struct rvcm_hash_node *)node, struct rvcm_conn, node);
	const struct rvcm_conn_key *key = arg;

	return conn->slot == key->slot && rvcm_addr_equal(&conn->peer, key->peer);
}

static bool contact_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_contact *contact =
		rvcm_container_of((struct rvcm_hash_node *)node, struct rvcm_contact, node);
	const struct rvcm_conn_key *key = arg;

	return contact->slot == key->slot && rvcm_addr_equal(&contact->peer, key->peer);
}

static void dev_close(struct rvcm_carrier_dev *dev)
{
	if (dev->pool)
		dev->dev->ops->pool_close(dev->pool);
	if (dev->cq)
		dev->dev->ops->cq_close(dev->cq);
}

size_t rvcm_carrier_takes(const struct rvcm_carrier *carrier, const struct rvcm_dev *dev)
{
	size_t most = dev->attr.pool_message_bytes ? dev->attr.pool_message_bytes
						   : (size_t)dev->attr.message_bytes_max;

	most -= sizeof(struct rvcm_wire_frame);
	return most < carrier->attr.message_bytes_max ? most : carrier->attr.message_bytes_max;
}

static int dev_open(struct rvcm_carrier *carrier, struct rvcm_carrier_dev *dev)
{
	struct rvcm_dev_pool_attr pool = {
		.message_bytes_max =
			rvcm_carrier_takes(carrier, dev->dev) + sizeof(struct rvcm_wire_frame),
		.count = rvcm_carrier_pool_count(carrier, dev->dev),
	};
	int rc = dev->dev->ops->cq_open(dev->dev, CQ_DEPTH, &dev->cq);

	if (carrier->attr.head_bytes)
		pool.head_bytes = carrier->attr.head_bytes + sizeof(struct rvcm_wire_frame);
	return rc ? rc : dev->dev->ops->pool_open(dev->dev, &pool, &dev->pool);
}

static int check(const struct rvcm_carrier_attr *attr)
{
	if (attr->n_devs == 0 || attr->n_devs > RVCM_CONN_DEVS_MAX || attr->window_max == 0 ||
	    attr->window_max > RVCM_CONN_WINDOW_MAX || attr->n_links > RVCM_CONN_LINKS_MAX ||
	    attr->n_rails > RVCM_CONN_RAILS_MAX || attr->rails_dev >= attr->n_devs ||
	    attr->message_bytes_max < RVCM_CONN_MESSAGE_FLOOR)
		return -EINVAL;
	for (uint32_t i = 0; i < attr->n_devs; i++) {
		const struct rvcm_dev_attr *dev = &attr->devs[i]->attr;
		size_t most = dev->pool_message_bytes ? dev->pool_message_bytes : SIZE_MAX;

		if (attr->message_bytes_max + sizeof(struct rvcm_wire_frame) >
			    dev->message_bytes_max ||
		    most < RVCM_CONN_MESSAGE_FLOOR + sizeof(struct rvcm_wire_frame) ||
		    dev->private_data_bytes < sizeof(struct rvcm_wire_handshake))
			return -EINVAL;
	}
	return 0;
}

static void draw(struct rvcm_carrier *carrier)
{
	const struct rvcm_carrier_env *env = &carrier->attr.env;
	uint64_t seed;

	do
		env->random(env->ctx, &carrier->incarnation, sizeof(carrier->incarnation));
	while (carrier->incarnation == 0);
	env->random(env->ctx, &carrier->hash_seed, sizeof(carrier->hash_seed));
	env->random(env->ctx, &seed, sizeof(seed));
	rvcm_rng_init(&carrier->rng, seed);
}

static void hashes_init(struct rvcm_carrier *carrier)
{
	rvcm_hash_init(&carrier->conns, conn_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->trunks, rvcm_route_trunk_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->paths, rvcm_path_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->ins, rvcm_path_in_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->routes, rvcm_route_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->contacts, contact_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->kin, rvcm_request_kin_eq, carrier->hash_seed);
	rvcm_hash_init(&carrier->former, rvcm_reopen_former_eq, carrier->hash_seed);
}

static void hashes_fini(struct rvcm_carrier *carrier)
{
	rvcm_hash_fini(&carrier->conns);
	rvcm_hash_fini(&carrier->trunks);
	rvcm_hash_fini(&carrier->paths);
	rvcm_hash_fini(&carrier->ins);
	rvcm_hash_fini(&carrier->routes);
	rvcm_hash_fini(&carrier->contacts);
	rvcm_hash_fini(&carrier->kin);
	rvcm_reopen_fini(carrier);
	rvcm_hash_fini(&carrier->former);
}

int rvcm_carrier_open(const struct rvcm_carrier_attr *attr, struct rvcm_carrier **out)
{
	struct rvcm_carrier *carrier;
	int rc = check(attr);

	if (rc)
		return rc;
	carrier = rvcm_mem_zalloc(sizeof(*carrier));
	if (!carrier)
		return -ENOMEM;
	carrier->attr = *attr;
	if (carrier->attr.stripe_bytes == 0)
		carrier->attr.stripe_bytes = STRIPE_BYTES;
	carrier->waits = rvcm_hold_outside(carrier);
	carrier->due = attr->max_links != 0;
	draw(carrier);
	for (uint32_t i = 0; i < attr->n_devs; i++) {
		carrier->devs[i].carrier = carrier;
		carrier->devs[i].dev = attr->devs[i];
		carrier->devs[i].removed_mail.kind = RVCM_MAIL_REMOVED;
		rvcm_list_init(&carrier->devs[i].removed_mail.node);
		atomic_init(&carrier->devs[i].receives,
			    rvcm_carrier_pool_count(carrier, attr->devs[i]));
	}
	atomic_init(&carrier->pinched, false);
	atomic_init(&carrier->n_links, 0);
	rvcm_mailbox_init(&carrier->to_data);
	rvcm_mailbox_init(&carrier->to_control);
	rvcm_lock_init(&carrier->control_lock, true);
	hashes_init(carrier);
	rvcm_timer_queue_init(&carrier->timers);
	rvcm_list_init(&carrier->all_conns);
	rvcm_list_init(&carrier->backlogs);
	rvcm_list_init(&carrier->path_work);
	rvcm_list_init(&carrier->waiting_self);
	rvcm_list_init(&carrier->retired);
	rvcm_list_init(&carrier->work);
	rvcm_list_init(&carrier->held);
	rvcm_list_init(&carrier->claims_failing);
	rvcm_list_init(&carrier->sides_due);
	rvcm_list_init(&carrier->ended);
	rvcm_list_init(&carrier->reopening);
	rvcm_buf_pool_init(&carrier->bufs, carrier);
	rvcm_pool_init(&carrier->reads, sizeof(struct rvcm_read), 0, 64, 0);
	rvcm_pool_init(&carrier->pieces, sizeof(struct rvcm_read_piece), 0, 64, 0);
	for (uint32_t i = 0; i < attr->n_devs && !rc; i++)
		rc = dev_open(carrier, &carrier->devs[i]);
	if (rc) {
		rvcm_carrier_close(carrier);
		return rc;
	}
	*out = carrier;
	return 0;
}

void rvcm_carrier_close(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&carrier->retired)))
		rvcm_slot_free(rvcm_list_entry(node, struct rvcm_slot, node));
	rvcm_buf_pool_fini(&carrier->bufs);
	rvcm_pool_fini(&carrier->reads);
	rvcm_pool_fini(&carrier->pieces);
	for (uint32_t i = 0; i < carrier->attr.n_devs; i++)
		dev_close(&carrier->devs[i]);
	rvcm_timer_queue_fini(&carrier->timers);
	hashes_fini(carrier);
	rvcm_mailbox_fini(&carrier->to_data);
	rvcm_mailbox_fini(&carrier->to_control);
	rvcm_lock_fini(&carrier->control_lock);
	rvcm_mem_free(carrier);
}

/* -- slots -------------------------------------------------------------------------------- */

int rvcm_carrier_listen(struct rvcm_carrier *carrier, uint16_t index, struct rvcm_addr *addr)
{
	int rc;

	if (index >= RVCM_CONN_SLOTS_MAX)
		return -EINVAL;
	rvcm_lock_acquire(&carrier->control_lock);
	rc = rvcm_slot_open(carrier, index, addr);
	rvcm_lock_release(&carrier->control_lock);
	return rc;
}

void rvcm_carrier_unlisten_by(struct rvcm_carrier *carrier, uint16_t index, uint64_t deadline_ns)
{
	rvcm_slot_shut(carrier->slots[index], deadline_ns);
}

void rvcm_carrier_unlisten(struct rvcm_carrier *carrier, uint16_t index)
{
	rvcm_carrier_unlisten_by(carrier, index,
				 rvcm_carrier_now(carrier) + carrier->attr.linger_ns);
}

bool rvcm_carrier_quiet(struct rvcm_carrier *carrier, uint16_t index)
{
	struct rvcm_slot *slot = carrier->slots[index];

	return !slot || rvcm_slot_end(slot);
}

/* -- the two sides ------------------------------------------------------------------------ */

bool rvcm_carrier_shed(struct rvcm_carrier *carrier)
{
	const struct rvcm_carrier_attr *attr = &carrier->attr;

	return attr->sink->shed && attr->sink->shed(attr->sink_ctx);
}

void rvcm_carrier_pinch(struct rvcm_carrier *carrier)
{
	atomic_store_explicit(&carrier->pinched, true, memory_order_release);
	rvcm_mailbox_poke(&carrier->to_data);
	carrier->attr.env.wake_data(carrier->attr.env.ctx);
}

static __attribute__((noinline)) int read_mail(struct rvcm_carrier *carrier)
{
	struct rvcm_list mail;
	struct rvcm_list *node;
	int n = 0;

	rvcm_list_init(&mail);
	rvcm_mailbox_take_all(&carrier->to_data, &mail);
	if (atomic_exchange_explicit(&carrier->pinched, false, memory_order_acq_rel))
		(void)rvcm_carrier_shed(carrier);
	while ((node = rvcm_list_pop(&mail))) {
		rvcm_conn_mail(carrier, rvcm_container_of(node, struct rvcm_mail, node));
		n++;
	}
	if (carrier->attr.max_links)
		rvcm_park_look(carrier);
	return n;
}

void rvcm_carrier_flush(struct rvcm_carrier *carrier)
{
	carrier->turn++;
	if (carrier->n_held)
		rvcm_hold_flush_all(carrier);
}

/* What is not finished, or comes of this, is scheduled again. */
static __attribute__((noinline)) int run_due(struct rvcm_carrier *carrier)
{
	int n;

	carrier->due = carrier->attr.max_links != 0; /* so that who has no limit is asked nothing */
	if (carrier->due && !carrier->idle)
		rvcm_park_watch(carrier);
	n = rvcm_proof_run(carrier);
	n += rvcm_side_run(carrier);
	n += rvcm_path_run(carrier);
	return n + rvcm_work_run(carrier);
}

int rvcm_carrier_progress(struct rvcm_carrier *carrier)
{
	int n;

	/* What waits leaves before the polling, what comes of that behind it. */
	rvcm_carrier_flush(carrier);
	carrier->waits = RVCM_HOLD_PROGRESSING;
	n = rvcm_poll_inline(&carrier->devs[0]);
	if (carrier->attr.n_devs > 1)
		n += rvcm_poll_others(carrier);
	if (rvcm_mailbox_pending(&carrier->to_data))
		n += read_mail(carrier);
	carrier->idle = n == 0;
	if (carrier->due)
		n += run_due(carrier);
	carrier->waits = rvcm_hold_outside(carrier);
	if (carrier->n_held)
		rvcm_hold_flush_all(carrier);
	return n;
}

bool rvcm_carrier_arm(struct rvcm_carrier *carrier)
{
	bool quiet;

	for (uint32_t i = 0; i < carrier->attr.n_devs; i++)
		if (carrier->devs[i].dev->ops->cq_arm(carrier->devs[i].cq, false))
			return false;
	carrier->sleepy = true;
	quiet = rvcm_carrier_progress(carrier) == 0;
	carrier->sleepy = false;
	return quiet && !rvcm_mailbox_pending(&carrier->to_data);
}

int rvcm_carrier_data_fds(struct rvcm_carrier *carrier, int *fds, int n)
{
	int i;

	for (i = 0; i < n && (uint32_t)i < carrier->attr.n_devs; i++)
		fds[i] = carrier->devs[i].dev->ops->cq_fd(carrier->devs[i].cq);
	return i;
}

int rvcm_carrier_control_fds(struct rvcm_carrier *carrier, int *fds, int n)
{
	int i;

	for (i = 0; i < n && (uint32_t)i < carrier->attr.n_devs; i++)
		fds[i] = carrier->devs[i].dev->ops->cm_fd(carrier->devs[i].dev);
	return i;
}

uint64_t rvcm_carrier_control(struct rvcm_carrier *carrier)
{
	uint64_t next;

	rvcm_lock_acquire(&carrier->control_lock);
	next = rvcm_control_run(carrier);
	rvcm_lock_release(&carrier->control_lock);
	return next;
}

/* -- counters ----------------------------------------------------------------------------- */

static void count_conns(struct rvcm_carrier *carrier)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (conn->link)
			rvcm_conn_count(conn);
	}
}

const char *rvcm_carrier_dev_name(const struct rvcm_carrier *carrier, uint32_t dev)
{
	return dev < carrier->attr.n_devs ? carrier->devs[dev].dev->attr.name : NULL;
}

void rvcm_carrier_dev_stats(struct rvcm_carrier *carrier, uint32_t dev,
			    struct rvcm_carrier_dev_stats *stats)
{
	count_conns(carrier);
	rvcm_stat_copy((uint64_t *)stats, (const uint64_t *)&carrier->devs[dev].stats,
		       sizeof(*stats) / sizeof(uint64_t));
}

void rvcm_carrier_stats(struct rvcm_carrier *carrier, struct rvcm_carrier_stats *stats)
{
	rvcm_stat_copy((uint64_t *)stats, (const uint64_t *)&carrier->stats,
		       sizeof(*stats) / sizeof(uint64_t));
	for (uint32_t i = 0; i < carrier->attr.n_devs; i++) {
		struct rvcm_carrier_dev_stats of_dev;

		rvcm_carrier_dev_stats(carrier, i, &of_dev);
		stats->connects += of_dev.connects;
		stats->accepts += of_dev.accepts;
		stats->downs += of_dev.downs;
		stats->tx_messages += of_dev.tx_messages;
		stats->rx_messages += of_dev.rx_messages;
		stats->reads += of_dev.reads;
		stats->read_bytes += of_dev.read_bytes;
		stats->writes += of_dev.writes;
		stats->write_bytes += of_dev.write_bytes;
	}
}

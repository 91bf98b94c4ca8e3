/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine: one carrier, its endpoints, and the sink that hands each event to its peer. */
#include <errno.h>

#include "base/mem.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

/* The longest control message, an announcement with CQ data. */
_Static_assert(sizeof(struct rvcm_message_hdr) + RVCM_PUT_DATA_BYTES +
			       sizeof(struct rvcm_message_rts) + sizeof(struct rvcm_message_rail) <=
		       RVCM_CONN_MESSAGE_FLOOR,
	       "every peer takes it");

/* Long messages that go without registration when locked memory has run short. */
#define LEAN 64u

/* What tells where an eager message belongs. */
#define HEAD_BYTES (sizeof(struct rvcm_message_hdr) + RVCM_PUT_DATA_BYTES + RVCM_MESSAGE_PAD_MAX)

static void incoming(void *ctx, struct rvcm_path *path)
{
	struct rvcm_engine *engine = ctx;
	struct rvcm_ep *ep = engine->eps[path->slot];
	struct rvcm_peer *peer;

	path->user = NULL;
	if (!ep || ep->closing)
		return;
	if (rvcm_peer_get(ep, &path->peer, &peer)) {
		rvcm_path_fault(path, RVCM_STATUS_NO_MEMORY, "no memory for another peer");
		return;
	}
	peer->path = path;
	path->user = peer;
	rvcm_peer_renumber(peer, ep->sink->source(ep->sink_ctx, &path->peer));
}

static void ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	if (path->user)
		rvcm_peer_flush(path->user);
}

static bool place(void *ctx, struct rvcm_path *path, const uint8_t *head, size_t head_bytes,
		  struct rvcm_conn_place *place)
{
	(void)ctx;
	return path->user && rvcm_lend_place(path->user, head, head_bytes, place);
}

static void placed(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	(void)ctx;
	if (path->user)
		rvcm_recv_placed(path->user, data, bytes);
	else
		rvcm_path_dropped(path);
}

static void sent(void *ctx, struct rvcm_path *path, void *cookie)
{
	(void)ctx;
	(void)path;
	rvcm_lend_back(cookie);
}

static void confirmed(void *ctx, struct rvcm_path *path, uint32_t mark)
{
	(void)ctx;
	if (path->user)
		rvcm_send_confirmed(path->user, mark);
}

static void read_done(void *ctx, struct rvcm_path *path, void *cookie, enum rvcm_status status)
{
	struct rvcm_reader *reader = cookie;

	(void)ctx;
	(void)path;
	reader->done(reader, status);
}

static void down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	(void)ctx;
	if (path->user)
		rvcm_peer_down(path->user, cause);
}

static void deaf(void *ctx, const struct rvcm_conn_cause *cause)
{
	rvcm_deaf_begin(ctx, cause);
}

/*
 * What conn cannot have, for its messages or for a link, long messages have: they can do without,
 * and do, until what they use now has been given back.
 */
static bool shed(void *ctx)
{
	struct rvcm_engine *engine = ctx;

	engine->lean = LEAN;
	return rvcm_mr_shed(engine->mr) != 0;
}

int rvcm_engine_register(struct rvcm_engine *engine, struct rvcm_mr *mr, uint16_t dev,
			 struct rvcm_dev_mr **dev_mr)
{
	if (engine->lean && !rvcm_mr_made(mr, dev)) {
		engine->lean--;
		return -ENOMEM;
	}
	return rvcm_mr_dev(mr, dev, dev_mr);
}

static const struct rvcm_conn_sink sink = {
	.incoming = incoming,
	.ready = ready,
	.recv = rvcm_recv_message,
	.place = place,
	.placed = placed,
	.sent = sent,
	.confirmed = confirmed,
	.read_done = read_done,
	.down = down,
	.deaf = deaf,
	.shed = shed,
};

/*
 * A peer may be ahead of EAGER_OFF by what it had credit for when we exceeded the budget, and by
 * another window until it has read what we said; both ends of that are rounded up.
 */
static size_t hard_limit(const struct rvcm_engine_attr *attr)
{
	size_t most = attr->carrier.message_bytes_max + sizeof(struct rvcm_held);

	return attr->unexpected_bytes_max + 4 * (size_t)attr->carrier.window_max * most;
}

static void init(struct rvcm_engine *engine, const struct rvcm_engine_attr *attr)
{
	size_t room = rvcm_put_room(attr->carrier.message_bytes_max);
	size_t common = rvcm_put_room(RVCM_CONN_MESSAGE_FLOOR);

	engine->env = attr->carrier.env;
	engine->linger_ns = attr->carrier.linger_ns;
	engine->eager_max = attr->eager_bytes_max < room ? attr->eager_bytes_max : room;
	engine->eager_lone_max =
		attr->eager_lone_bytes_max < room ? attr->eager_lone_bytes_max : room;
	engine->lend_min = attr->lend_bytes_min ? attr->lend_bytes_min : SIZE_MAX;
	engine->short_max = engine->eager_max < common ? engine->eager_max : common;
	if (engine->short_max >= engine->lend_min)
		engine->short_max = engine->lend_min - 1;
	engine->unexpected_max = attr->unexpected_bytes_max;
	engine->unexpected_hard = hard_limit(attr);
	engine->announced_max = RVCM_MESSAGE_ANNOUNCED_MAX;
	engine->env.random(engine->env.ctx, &engine->seed, sizeof(engine->seed));
	rvcm_store_init(&engine->store);
	rvcm_hash_init(&engine->regions, rvcm_region_eq, engine->seed);
}

int rvcm_engine_open(const struct rvcm_engine_attr *attr, struct rvcm_engine **engine)
{
	struct rvcm_carrier_attr carrier = attr->carrier;
	struct rvcm_engine *e;
	int rc;

	if (carrier.message_bytes_max < RVCM_CONN_MESSAGE_FLOOR)
		return -EINVAL;
	e = rvcm_mem_zalloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	init(e, attr);
	rc = rvcm_mr_domain_open(carrier.devs, carrier.n_devs, &attr->mr, &e->mr);
	if (rc)
		goto err_free;
	carrier.head_bytes = HEAD_BYTES;
	carrier.sink = &sink;
	carrier.sink_ctx = e;
	rc = rvcm_carrier_open(&carrier, &e->carrier);
	if (rc)
		goto err_close_mr;
	*engine = e;
	return 0;

err_close_mr:
	rvcm_mr_domain_close(e->mr);
err_free:
	rvcm_mem_free(e);
	return rc;
}

void rvcm_engine_close(struct rvcm_engine *engine)
{
	rvcm_carrier_close(engine->carrier);
	rvcm_hash_fini(&engine->regions);
	rvcm_mr_domain_close(engine->mr);
	rvcm_store_fini(&engine->store);
	rvcm_mem_free(engine);
}

struct rvcm_carrier *rvcm_engine_carrier(struct rvcm_engine *engine)
{
	return engine->carrier;
}

const struct rvcm_conn_cause *rvcm_engine_deaf(const struct rvcm_engine *engine)
{
	return engine->deaf.status == RVCM_STATUS_OK ? NULL : &engine->deaf;
}

struct rvcm_mr_domain *rvcm_engine_mr(struct rvcm_engine *engine)
{
	return engine->mr;
}

void rvcm_engine_flush(struct rvcm_engine *engine)
{
	rvcm_carrier_flush(engine->carrier);
}

int rvcm_engine_progress(struct rvcm_engine *engine)
{
	return rvcm_carrier_progress(engine->carrier);
}

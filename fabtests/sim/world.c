/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/env.h"
#include "sim/world.h"

#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/watch.h"

#define BUSY_NS  SIM_MS        /* the longest turn while somebody has something to do */
#define IDLE_NS  (20 * SIM_MS) /* and when nobody has */
#define RACE_NS  (20 * SIM_US)
#define CLOSE_NS (5 * SIM_S) /* how long closing may take */

/* -- what the engines stand on --------------------------------------------------------------- */

static uint64_t env_now(void *ctx)
{
	return sim_now(((struct world_engine *)ctx)->world->net);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	sim_env_random(((struct world_engine *)ctx)->world->net, buf, bytes);
}

static void wake_data(void *ctx)
{
	((struct world_engine *)ctx)->data_wake = true;
}

static void wake_control(void *ctx)
{
	((struct world_engine *)ctx)->control_wake = true;
}

/* -- opening --------------------------------------------------------------------------------- */

/* Devices as there are: RoCE's, iWARP's that are through before anything has arrived, short ones.
 */
static struct rvcm_dev *dev_open(struct world *w, uint64_t seed, struct rvcm_addr *addr)
{
	struct sim_dev_conf conf;

	sim_dev_conf_init(w->net, &conf, false);
	if (addr->family)
		conf.attr.addr = *addr;
	*addr = conf.attr.addr;
	if (seed % 3) {
		conf.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
		conf.early = seed % 3 == 1 ? SIM_EARLY_ALWAYS : SIM_EARLY_RANDOM;
	}
	if (seed % 5 == 0)
		conf.attr.sq_depth_max = 2 + (uint32_t)(seed / 5 % 16);
	if (seed % 7 < 2)
		conf.attr.message_bytes_max = WORLD_LONE_MAX + 100;
	if (seed % 11 < 3)
		conf.attr.inline_bytes_max = 0;
	else if (seed % 11 < 6)
		conf.attr.inline_bytes_max = 64;
	if (seed % 29 < 4)
		conf.attr.sge_max = 1;
	if (seed % 13 < 5) {
		conf.attr.caps ^= RVCM_DEV_CAP_HEAD | RVCM_DEV_CAP_FOREROOM;
		conf.attr.mtu_bytes = 64; /* so that most may go bare */
	}
	conf.attr.pushes = seed / 31 % 2;
	conf.attr.shares = conf.attr.pushes && seed / 62 % 2;
	if (seed % 19 == 7)
		conf.attr.pool_message_bytes = 640 + (size_t)(seed % 200);
	return sim_dev_open(w->net, &conf);
}

static struct world_engine *engine_open(struct world *w, int index)
{
	static const uint32_t windows[] = { 1, 3, 5, 16, 64 };
	/* What each takes is its own affair; what it calls short is cut down to that. */
	static const size_t limits[] = { WORLD_LONE_MAX + 24, 700, RVCM_CONN_MESSAGE_FLOOR };
	struct world_engine *engine = calloc(1, sizeof(*engine));
	uint64_t seed = world_below(w, 1u << 30);
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = engine->devs,
			.n_devs = seed % 17 < 4 ? 2 : 1,
			.message_bytes_max = limits[seed % 23 < 18 ? 0 : seed % 2 + 1],
			.window_max = windows[seed % 5],
			.n_links = seed / 7 % 3 ? (uint32_t)(1 + seed / 21 % 4) : 1,
			.stripe_bytes = 50 + seed % 300,
			.max_links = w->max_links,
			.hold = seed % 13 < 9,
			.connect_timeout_ns = 8 * SIM_S,
			.reconnect_timeout_ns = w->reconnect_ns,
			.linger_ns = SIM_S,
			.rnr_timeout_ns = SIM_S,
			.env = { env_now, env_random, wake_data, wake_control, engine },
		},
		.eager_bytes_max = WORLD_EAGER_MAX,
		.eager_lone_bytes_max = seed % 2 ? WORLD_LONE_MAX : 0,
		.lend_bytes_min = seed % 7 < 4 ? WORLD_LEND_MIN : 0,
		.unexpected_bytes_max = seed % 3 ? 1 << 20 : 4000,
	};

	engine->world = w;
	engine->n_devs = attr.carrier.n_devs;
	for (uint32_t i = 0; i < engine->n_devs; i++)
		engine->devs[i] = dev_open(w, seed, &w->dev_addrs[index][i]);
	engine->data_wake = engine->control_wake = true;
	assert_int_equal(rvcm_engine_open(&attr, &engine->engine), 0);
	return engine;
}

static void ep_open(struct world_ep *ep)
{
	struct rvcm_ep_attr attr = {
		.engine = ep->engine->engine,
		.name = ep->name,
		.tx_max = 24,
		.rx_max = 64,
		.inject_bytes_max = WORLD_INJECT_MAX,
		.sink = &world_sink,
		.sink_ctx = ep,
	};

	rvcm_list_init(&ep->receives);
	rvcm_list_init(&ep->sends);
	world_rma_begin(ep);
	assert_int_equal(rvcm_ep_open(&attr, &ep->ep), 0);
	ep->name = *rvcm_ep_name(ep->ep);
	ep->sends_open = ep->receives_open = ep->claims_open = 0;
	ep->any_open[0] = ep->any_open[1] = 0;
	memset(ep->sent, 0, sizeof(ep->sent));
}

static void learn_peers(struct world_ep *ep)
{
	struct world *w = ep->world;

	for (int i = 0; i < w->n_eps; i++)
		assert_int_equal(
			rvcm_ep_peer(ep->ep, &w->eps[i].name, 100 + (uint64_t)i, &ep->peers[i]), 0);
}

static void populate(struct world *w, uint64_t seed, enum world_churn churn)
{
	if (churn != WORLD_STAYS) {
		w->n_engines = 2 + (int)(seed % 2);
		w->n_eps = w->n_engines * (w->n_engines == 2 ? 4 : 2);
		w->n_stable = w->n_eps / 2;
	} else {
		w->n_engines = 2 + (int)(seed % 3);
		w->n_eps = w->n_engines * (world_below(w, 3) ? 1 : 2);
	}
}

struct world *world_open(const struct sim_conf *conf, enum world_churn churn, uint64_t reconnect_ns,
			 uint32_t max_links, bool rma)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t seed = conf->seed;

	w->reconnect_ns = reconnect_ns;
	w->max_links = max_links;
	w->rma = rma;
	w->net = sim_net_open(conf);
	w->rng = sim_net_rng(w->net);
	rvcm_list_init(&w->ghosts);
	rvcm_list_init(&w->old);
	w->receives_max = world_below(w, 5) < 2 ? 40 : 3;
	populate(w, seed, churn);
	for (int i = 0; i < w->n_engines; i++) {
		w->engines[i] = engine_open(w, i);
		if (churn == WORLD_MOVES && i + 1 < w->n_engines)
			w->dev_addrs[i + 1][0] = w->dev_addrs[0][0];
	}
	for (int i = 0; i < w->n_eps; i++) {
		w->eps[i].world = w;
		w->eps[i].index = i;
		w->eps[i].engine = w->engines[i % w->n_engines];
		ep_open(&w->eps[i]);
	}
	for (int i = 0; i < w->n_eps; i++)
		learn_peers(&w->eps[i]);
	return w;
}

/* -- time ------------------------------------------------------------------------------------ */

void world_each_dev(struct world_engine *engine, void (*fn)(struct rvcm_dev *dev))
{
	for (uint32_t i = 0; i < engine->n_devs; i++)
		fn(engine->devs[i]);
}

bool world_any_dev(const struct world_engine *engine, bool (*is)(const struct rvcm_dev *dev))
{
	for (uint32_t i = 0; i < engine->n_devs; i++)
		if (is(engine->devs[i]))
			return true;
	return false;
}

/* Returns how much there was to do. */
static int look(struct world_engine *engine)
{
	struct rvcm_carrier *carrier = rvcm_engine_carrier(engine->engine);
	struct world *w = engine->world;
	int n;

	if (engine->asleep && !engine->data_wake && !world_any_dev(engine, sim_dev_fired))
		return 0;
	engine->asleep = false;
	engine->data_wake = false;
	n = rvcm_engine_progress(engine->engine);
	if (!w->sleepy)
		return n;
	/* Something may come between looking and going to sleep. */
	if (n == 0 && world_below(w, 4) == 0)
		sim_step_by(w->net, sim_now(w->net) + RACE_NS);
	if (n == 0)
		engine->asleep = rvcm_carrier_arm(carrier);
	return !engine->asleep;
}

/* When it must be looked at again; 0 = at once. */
static uint64_t serve(struct world_engine *engine)
{
	struct world *w = engine->world;
	uint64_t now = sim_now(w->net), at = UINT64_MAX;
	bool control = !w->sleepy || engine->control_wake || world_any_dev(engine, sim_dev_busy) ||
		       engine->control_next <= now;

	if (now < engine->control_until) {
		at = engine->control_until;
	} else {
		if (control) {
			engine->control_wake = false;
			engine->control_next =
				rvcm_carrier_control(rvcm_engine_carrier(engine->engine));
		}
		at = engine->control_next;
	}
	if (now < engine->data_until)
		return engine->data_until < at ? engine->data_until : at;
	return look(engine) || engine->control_wake ? 0 : at;
}

static void watch(struct world *w)
{
	struct world_ep *ep = &w->eps[w->turns % (uint64_t)w->n_eps];

	for (int i = 0; i < w->n_engines; i++)
		if (w->engines[i])
			watch_conns(rvcm_engine_carrier(w->engines[i]->engine));
	watch_links(w->net);
	if (ep->ep)
		watch_ep(ep->ep);
}

static void bury(struct world_engine *ghost);

void world_turn(struct world *w)
{
	uint64_t now = sim_now(w->net), at = now + IDLE_NS;
	struct rvcm_list *pos, *next;

	for (int i = 0; i < w->n_engines; i++) {
		uint64_t due = w->engines[i] ? serve(w->engines[i]) : UINT64_MAX;

		if (due == 0)
			due = now + BUSY_NS;
		at = due < at ? due : at;
	}
	rvcm_list_for_each_safe (pos, next, &w->ghosts) {
		struct world_engine *ghost = rvcm_container_of(pos, struct world_engine, node);

		rvcm_carrier_control(rvcm_engine_carrier(ghost->engine));
		rvcm_engine_progress(ghost->engine);
		bury(ghost);
	}
	sim_step_by(w->net, at > now ? at : now);
	w->turns++;
	watch(w);
}

/* -- ends ------------------------------------------------------------------------------------ */

/* What an endpoint had posted may be in use until it is closed. */
static void retire_ops(struct world *w, struct rvcm_list *ops)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(ops)))
		rvcm_list_add_tail(&w->old, &rvcm_container_of(node, struct world_op, node)->old);
}

static void retire(struct world_ep *ep)
{
	ep->ep = NULL;
	retire_ops(ep->world, &ep->receives);
	retire_ops(ep->world, &ep->sends);
	retire_ops(ep->world, &ep->rmas);
	for (int i = 0; i < WORLD_EPS_MAX; i++)
		for (uint32_t life = 0; life < WORLD_LIVES_MAX; life++) {
			free(ep->got[i][life]);
			ep->got[i][life] = NULL;
			ep->got_room[i][life] = 0;
		}
}

static void add_stats(struct world *w, struct rvcm_ep *ep)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(ep, &stats);
	w->tx_rndv += stats.tx_rndv;
	w->tx_written += stats.tx_written;
	w->tx_copied += stats.tx_copied;
	w->rx_copied += stats.rx_copied;
	w->tx_eager += stats.tx_eager;
	w->rx_unexpected += stats.rx_unexpected;
	w->tx_lent += stats.tx_lent;
	w->rx_placed += stats.rx_placed;
	assert_int_equal(stats.malformed, 0);
}

/* Each as its own thread would: one that closes meanwhile keeps nobody from it. */
static void look_who_closes(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++) {
		struct world_ep *ep = &w->eps[i];

		if (!ep->closing)
			continue;
		ep->engine->data_wake = true; /* who waits for quiet looks */
		rvcm_ep_quiet(ep->closing);
	}
}

void world_ep_close(struct world_ep *ep)
{
	struct world *w = ep->world;
	uint64_t limit = sim_now(w->net) + CLOSE_NS;
	struct rvcm_ep *closing = ep->ep;

	for (int i = 0; i < w->n_eps; i++)
		ep->proven[i] = watch_peer_proven(ep->peers[i]);
	world_note_taken(ep);
	world_rma_close(ep);
	ep->ep = NULL; /* nothing is reported any more */
	ep->closing = closing;
	rvcm_ep_shutdown(closing);
	while (!rvcm_ep_quiet(closing)) {
		look_who_closes(w);
		if (w->meanwhile)
			w->meanwhile(w->meanwhile_ctx);
		world_turn(w);
		assert_true(sim_now(w->net) < limit);
	}
	add_stats(w, closing);
	rvcm_ep_close(closing);
	if (w->orderly)
		world_note_owed(ep);
	retire(ep);
	ep->closing = NULL;
}

static void spare(struct rvcm_dev *dev)
{
	sim_dev_fail_call(dev, 0, 0);
}

void world_ep_reopen(struct world_ep *ep)
{
	ep->life++;
	world_each_dev(ep->engine, spare); /* the failure was meant for another call */
	ep_open(ep);
	learn_peers(ep);
}

static void engine_close(struct world_engine *engine)
{
	watch_engine_empty(engine->engine);
	rvcm_engine_close(engine->engine);
	for (uint32_t i = 0; i < engine->n_devs; i++)
		engine->devs[i]->ops->close(engine->devs[i]);
	free(engine);
}

/* A ghost goes when all its endpoints are quiet. */
static void bury(struct world_engine *ghost)
{
	for (int i = 0; i < 2; i++)
		if (ghost->eps[i] && !rvcm_ep_quiet(ghost->eps[i]))
			return;
	for (int i = 0; i < 2; i++)
		if (ghost->eps[i])
			rvcm_ep_close(ghost->eps[i]);
	rvcm_list_del(&ghost->node);
	engine_close(ghost);
}

void world_kill(struct world *w, int index, enum sim_kill how)
{
	struct world_engine *engine = w->engines[index];
	int n = 0;

	world_each_dev(engine, sim_dev_resume);
	for (uint32_t i = 0; i < engine->n_devs; i++)
		sim_dev_kill(engine->devs[i], how);
	w->engines[index] = NULL;
	for (int i = 0; i < w->n_eps; i++) {
		struct world_ep *ep = &w->eps[i];

		if (ep->engine != engine)
			continue;
		if (ep->ep) {
			engine->eps[n++] = ep->ep;
			world_note_taken(ep);
			world_rma_close(ep);
			rvcm_ep_shutdown(ep->ep);
			retire(ep);
		}
		ep->engine = NULL;
	}
	rvcm_list_add_tail(&w->ghosts, &engine->node);
}

void world_restart(struct world *w, int index)
{
	struct world_engine *engine = engine_open(w, index);

	w->engines[index] = engine;
	for (int i = index; i < w->n_eps; i += w->n_engines) {
		w->eps[i].engine = engine;
		world_ep_reopen(&w->eps[i]);
	}
}

static void free_old(struct world *w)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&w->old))) {
		struct world_op *op = rvcm_container_of(node, struct world_op, old);

		free(op->buf);
		free(op->marks);
		free(op);
	}
}

static void forget_taken(struct world_ep *ep)
{
	for (int from = 0; from < WORLD_EPS_MAX; from++)
		for (uint32_t life = 0; life < WORLD_LIVES_MAX; life++)
			free(ep->taken[from][life]);
}

void world_close(struct world *w)
{
	uint64_t limit;

	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep)
			world_ep_close(&w->eps[i]);
	limit = sim_now(w->net) + CLOSE_NS;
	while (!rvcm_list_empty(&w->ghosts)) {
		world_turn(w);
		assert_true(sim_now(w->net) < limit);
	}
	for (int i = 0; i < w->n_engines; i++)
		if (w->engines[i])
			engine_close(w->engines[i]);
	for (int i = 0; i < w->n_eps; i++) {
		assert_int_equal(w->eps[i].reserved, 0);
		forget_taken(&w->eps[i]);
	}
	free_old(w);
	world_rma_free(w);
	while (w->owed) {
		struct world_owed *owed = w->owed;

		w->owed = owed->next;
		free(owed);
	}
	sim_net_close(w->net);
	free(w);
}

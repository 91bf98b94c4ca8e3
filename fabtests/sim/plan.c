/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/plan.h"

#include "unit/unit.h"

#include "sim/seeds.h"
#include "sim/watch.h"

#define RECONNECT_NS  (20 * SIM_S)
#define DRAIN_NS      (60 * SIM_S) /* in which everything must be over */
#define ANY_OPEN      10u          /* receives for whatever comes, tagged or not, while draining */
#define TRIES_MAX     100          /* to post them, in a turn */
#define MEANWHILE_MAX 400u         /* closing may take seconds, of some million turns */
#define QUIET_NS      (100 * SIM_MS) /* in which nothing has come: then nothing will */

struct run {
	const struct plan *plan;
	struct plan_sums *sums;
	struct world *w;
	uint64_t silent_until; /* all links; 0 = they are not */
	uint64_t paused_until[WORLD_ENGINES_MAX];
	uint32_t restarts;
	int closing;         /* endpoints */
	uint32_t meanwhiles; /* turns that others were busy in, while the last of these closed */
};

struct plan plan_of(uint64_t seed)
{
	struct plan plan = { .seed = seed, .steps = 150 + (int)(seed / 16 % 4) * 150 };

	plan.unkind = seed & 1;
	plan.faults = seed & 2;
	plan.deaths = seed & 4 && seed % 3;
	plan.closes = seed & 4;
	plan.lulls = seed & 8;
	plan.sleepy = seed / 16 & 1;
	plan.churn = plan.closes && !plan.faults && !plan.deaths && seed & 8;
	plan.moves = plan.churn && seed / 32 % 3 == 0;
	plan.full = seed / 32 % 4 == 3;
	plan.recovers = seed % 5 != 0;
	plan.max_links = seeds_max_links(seed);
	plan.end = seed % 23 == 0 ? PLAN_ABANDON : PLAN_DRAIN;
	return plan;
}

static bool one_in(struct run *r, uint64_t n)
{
	return world_below(r->w, n) == 0;
}

/* -- faults ---------------------------------------------------------------------------------- */

/* Of an engine that lives, or NULL. */
static struct rvcm_dev *any_dev(struct run *r)
{
	struct world_engine *engine = r->w->engines[world_below(r->w, (uint64_t)r->w->n_engines)];

	return engine ? engine->devs[world_below(r->w, engine->n_devs)] : NULL;
}

static void fault(struct run *r)
{
	struct rvcm_dev *dev = any_dev(r);

	if (!dev)
		return;
	if (one_in(r, 4))
		sim_dev_invalidate(dev);
	else if (one_in(r, 4))
		sim_dev_fail_call(dev, 1 + (uint32_t)world_below(r->w, 3), -12);
	else
		sim_links_break(r->w->net, dev, NULL);
}

/* -- full devices ---------------------------------------------------------------------------- */

/*
 * Of what is read from, or into, or of all, where something can be sent all the same. Now and then,
 * or always; or there is room again.
 */
static void fill(struct run *r)
{
	static const uint32_t kinds[] = { RVCM_DEV_ACCESS_REMOTE_READ, RVCM_DEV_ACCESS_LOCAL_WRITE,
					  0 };
	static const uint32_t chances[] = { 0, 300000, 1000000 };
	struct rvcm_dev *dev = any_dev(r);

	if (dev)
		sim_dev_full(dev, kinds[world_below(r->w, dev->attr.inline_bytes_max ? 3 : 2)],
			     chances[world_below(r->w, 3)]);
}

/* -- lulls ----------------------------------------------------------------------------------- */

/* Mostly shorter than any time-out; without faults always. */
static uint64_t lull_ns(struct run *r)
{
	bool longer = r->plan->faults && one_in(r, 8);

	return world_below(r->w, longer ? 3 * SIM_S : 100 * SIM_MS);
}

static void lull(struct run *r)
{
	struct world *w = r->w;
	uint64_t until = sim_now(w->net) + lull_ns(r);
	uint64_t i = world_below(w, (uint64_t)w->n_engines);

	if (!w->engines[i])
		return;
	r->sums->lulls++;
	switch (world_below(w, r->plan->churn ? 2 : 4)) {
	case 0:
		w->engines[i]->data_until = until;
		break;
	case 1:
		w->engines[i]->control_until = until;
		break;
	case 2:
		world_each_dev(w->engines[i], sim_dev_pause);
		r->paused_until[i] = until;
		break;
	default:
		sim_links_silence(w->net, w->engines[i]->devs[0], NULL);
		r->silent_until = until;
	}
}

static void end_lulls(struct run *r, uint64_t now)
{
	struct world *w = r->w;

	if (r->silent_until && r->silent_until <= now) {
		sim_links_heal(w->net, NULL, NULL);
		r->silent_until = 0;
	}
	for (int i = 0; i < w->n_engines; i++) {
		if (!r->paused_until[i] || r->paused_until[i] > now)
			continue;
		r->paused_until[i] = 0;
		if (w->engines[i])
			world_each_dev(w->engines[i], sim_dev_resume);
	}
}

/* -- deaths ---------------------------------------------------------------------------------- */

static void close_or_reopen(struct run *r, struct world_ep *ep)
{
	if (ep->closing || ep->index < r->w->n_stable)
		return;
	if (ep->ep) {
		r->closing++;
		r->meanwhiles = 0;
		world_ep_close(ep);
		r->closing--;
		r->sums->closes++;
	} else if (ep->life + 1 < WORLD_LIVES_MAX) {
		if (r->plan->moves)
			ep->engine = r->w->engines[world_below(r->w, (uint64_t)r->w->n_engines)];
		world_ep_reopen(ep);
	}
}

static void death(struct run *r)
{
	struct world *w = r->w;
	int i = (int)world_below(w, (uint64_t)w->n_engines);
	struct world_ep *ep = &w->eps[world_below(w, (uint64_t)w->n_eps)];

	if (!r->plan->deaths || one_in(r, 2)) {
		if (ep->engine)
			close_or_reopen(r, ep);
	} else if (w->engines[i]) {
		r->paused_until[i] = 0;
		world_kill(w, i, one_in(r, 2) ? SIM_KILL_HOST : SIM_KILL_PROCESS);
		r->sums->kills++;
	} else if (r->restarts < WORLD_LIVES_MAX / 2) {
		r->restarts++;
		world_restart(w, i);
	}
}

/* -- talking --------------------------------------------------------------------------------- */

static size_t some_room(struct world *w)
{
	return world_below(w, 20) ? WORLD_LENGTH_MAX : world_below(w, WORLD_LENGTH_MAX);
}

static void act(struct run *r)
{
	struct world *w = r->w;
	struct world_ep *ep = &w->eps[world_below(w, (uint64_t)w->n_eps)];
	int other = (int)world_below(w, (uint64_t)w->n_eps);

	if (!ep->ep)
		return;
	ep->engine->data_wake = true;
	if (r->plan->rma && one_in(r, 3)) {
		world_rma(ep, other);
		return;
	}
	switch (world_below(w, 16)) {
	case 0:
		world_peek(ep);
		break;
	case 1:
		world_fetch_claimed(ep);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		if (ep->receives_open < w->receives_max && one_in(r, 8))
			world_receive_multi(ep, other);
		else if (ep->receives_open < w->receives_max)
			world_receive(ep, one_in(r, 4) ? -1 : other, some_room(w));
		break;
	default:
		world_send(ep, other);
	}
}

static void trouble(struct run *r)
{
	end_lulls(r, sim_now(r->w->net));
	if (r->plan->faults && one_in(r, 100))
		fault(r);
	if (r->plan->full && one_in(r, 10))
		fill(r);
	if (r->plan->lulls && one_in(r, 50))
		lull(r);
	if ((r->plan->deaths || r->plan->closes) && one_in(r, r->plan->churn ? 15 : 80))
		death(r);
}

/* While an endpoint closes, in another thread. */
static void meanwhile(void *ctx)
{
	struct run *r = ctx;

	end_lulls(r, sim_now(r->w->net));
	if (++r->meanwhiles > MEANWHILE_MAX)
		return;
	for (uint64_t i = world_below(r->w, 3); i > 0; i--)
		act(r);
	if (r->closing < 2 && one_in(r, 20))
		death(r);
}

static uint64_t receive_all(struct world *w);

/* Whatever there is is received, and nothing is sent: so some links have no use. */
static void rest(struct run *r)
{
	for (uint64_t i = world_below(r->w, 400); i > 0; i--) {
		(void)receive_all(r->w);
		world_turn(r->w);
		end_lulls(r, sim_now(r->w->net));
	}
}

static void talk(struct run *r)
{
	for (int step = 0; step < r->plan->steps; step++) {
		for (uint64_t i = world_below(r->w, 6); i > 0; i--)
			act(r);
		trouble(r);
		if (r->plan->max_links && one_in(r, 20))
			rest(r);
		/* Bursts, and pauses in which the engines keep up. */
		for (uint64_t i = 1 + world_below(r->w, one_in(r, 20) ? 40 : 4); i > 0; i--)
			world_turn(r->w);
	}
}

/* -- the end --------------------------------------------------------------------------------- */

static void spare(struct rvcm_dev *dev)
{
	sim_dev_fail_call(dev, 0, 0);
}

static void all_is_well(struct run *r)
{
	struct world *w = r->w;

	sim_unkind_end(w->net);
	end_lulls(r, UINT64_MAX - 1);
	for (int i = 0; i < w->n_engines; i++) {
		if (!w->engines[i])
			continue;
		w->engines[i]->data_until = w->engines[i]->control_until = 0;
		world_each_dev(w->engines[i], spare);
	}
}

static bool pending(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep && (w->eps[i].sends_open || w->eps[i].claims_open ||
				     watch_ep_reading(w->eps[i].ep)))
			return true;
	/* What was injected may wait for its connection still. */
	return !world_all_got(w);
}

/* As many as there should be; but those that are being fetched may leave no room for them. */
static void post_any(struct world_ep *ep, bool tagged)
{
	for (int tries = 0; tries < TRIES_MAX && ep->any_open[tagged] < ANY_OPEN; tries++)
		world_receive_any(ep, tagged);
}

static uint64_t receive_all(struct world *w)
{
	uint64_t sum = 0;

	for (int i = 0; i < w->n_eps; i++) {
		struct world_ep *ep = &w->eps[i];
		struct rvcm_ep_stats stats;

		if (!ep->ep)
			continue;
		/* Who calls looks; nobody else wakes it, or a wake-up that is lost is not missed.
		 */
		ep->engine->data_wake |=
			ep->claims_open || ep->any_open[0] < ANY_OPEN || ep->any_open[1] < ANY_OPEN;
		post_any(ep, false);
		post_any(ep, true);
		world_fetch_claimed(ep);
		rvcm_ep_stats(ep->ep, &stats);
		sum += stats.rx_msgs + stats.rx_errors + stats.self_msgs;
	}
	return sum;
}

static void say_pending(struct world *w)
{
	struct rvcm_list *pos;

	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep)
			rvcm_list_for_each (pos, &w->eps[i].sends) {
				struct world_op *op = rvcm_container_of(pos, struct world_op, node);

				if (!op->ended && op->flags & RVCM_EP_COMPLETION)
					print_message("# pending: %d to %d, %llx, %zu bytes\n", i,
						      op->to, (unsigned long long)op->data,
						      op->length);
			}
}

/* Receive whatever there is until nothing is pending and nothing comes any more. */
static void drain(struct run *r)
{
	struct world *w = r->w;
	uint64_t limit = sim_now(w->net) + DRAIN_NS, quiet = sim_now(w->net) + QUIET_NS;
	uint64_t received = 0;

	while (pending(w) || sim_now(w->net) < quiet) {
		uint64_t sum = receive_all(w);

		if (sum != received || pending(w))
			quiet = sim_now(w->net) + QUIET_NS;
		received = sum;
		world_turn(w);
		if (sim_now(w->net) < limit)
			continue;
		say_pending(w);
		fail_msg("something does not end");
	}
}

static bool any_open(const struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep && (w->eps[i].sends_open || w->eps[i].receives_open))
			return true;
	return false;
}

/* All that is posted ends by itself; who has claimed a message has to fetch it. */
static void remove_all(struct world *w)
{
	uint64_t limit = sim_now(w->net) + DRAIN_NS;

	for (int i = 0; i < w->n_engines; i++)
		if (w->engines[i])
			world_each_dev(w->engines[i], sim_dev_remove);
	while (any_open(w)) {
		for (int i = 0; i < w->n_eps; i++)
			if (w->eps[i].ep)
				world_fetch_claimed(&w->eps[i]);
		world_turn(w);
		if (sim_now(w->net) < limit)
			continue;
		say_pending(w);
		fail_msg("something does not end");
	}
}

static void abandon(struct world *w)
{
	for (int i = 0; i < w->n_eps; i++)
		if (w->eps[i].ep)
			rvcm_ep_shutdown(w->eps[i].ep);
}

static void finish(struct run *r)
{
	struct world *w = r->w;

	all_is_well(r);
	w->meanwhile = NULL;
	if (r->plan->end == PLAN_REMOVE)
		remove_all(w);
	if (r->plan->end != PLAN_DRAIN) {
		abandon(w);
		return;
	}
	drain(r);
	for (int i = 0; i < w->n_eps; i++) {
		if (!w->eps[i].ep)
			continue;
		world_cancel(&w->eps[i]);
		assert_int_equal(w->eps[i].receives_open, 0);
		if (!w->faulty)
			watch_ep_idle(w->eps[i].ep);
	}
	world_check_all(w);
}

/* Two processes have one link, or two if both connected at once; and one each with itself. */
static void check_links(struct run *r)
{
	struct world *w = r->w;
	bool calm = !w->faulty && !r->plan->lulls;
	uint64_t links = 0, again = 0, n = (uint64_t)w->n_engines;

	for (int i = 0; i < w->n_engines; i++) {
		struct rvcm_carrier_stats stats;

		if (!w->engines[i])
			continue;
		rvcm_carrier_stats(rvcm_engine_carrier(w->engines[i]->engine), &stats);
		links += stats.connects;
		again += stats.unparked;
		r->sums->shared += stats.shared;
	}
	if (calm)
		assert_in_range(links, 1, n * (n - 1) + n + again);
}

static void add_up_links(const struct world *w, struct plan_sums *sums)
{
	struct rvcm_carrier_stats stats;

	for (int i = 0; i < w->n_engines; i++) {
		if (!w->engines[i])
			continue;
		rvcm_carrier_stats(rvcm_engine_carrier(w->engines[i]->engine), &stats);
		sums->side_links += stats.side_links;
		sums->side_losses += stats.side_losses;
		sums->side_pieces += stats.side_pieces;
		sums->pieces_again += stats.pieces_again;
		sums->parked += stats.parked;
		sums->unparked += stats.unparked;
	}
}

static void add_up(struct run *r)
{
	const struct sim_stats *stats = sim_net_stats(r->w->net);
	struct plan_sums *sums = r->sums;

	add_up_links(r->w, sums);
	sums->completions += r->w->completions;
	sums->errors += r->w->errors;
	sums->rma_done += r->w->rma_done;
	sums->rma_data += r->w->rma_data;
	sums->breaks += stats->breaks;
	sums->replays += stats->replays;
	sums->garbled += stats->garbled;
	sums->late += stats->late;
	for (int i = 0; i < r->w->n_eps; i++)
		if (r->w->eps[i].ep && r->plan->end == PLAN_DRAIN)
			world_ep_close(&r->w->eps[i]);
	sums->tx_eager += r->w->tx_eager;
	sums->tx_rndv += r->w->tx_rndv;
	sums->tx_written += r->w->tx_written;
	sums->tx_copied += r->w->tx_copied;
	sums->rx_copied += r->w->rx_copied;
	sums->rx_unexpected += r->w->rx_unexpected;
	sums->tx_lent += r->w->tx_lent;
	sums->rx_placed += r->w->rx_placed;
}

void plan_run(const struct plan *plan, struct plan_sums *sums)
{
	struct sim_conf conf = { .seed = plan->seed, .no_rnr = true, .live_keys = true };
	struct run r = { .plan = plan, .sums = sums };

	if (plan->unkind)
		sim_unkind(&conf, plan->seed);
	if (plan->faults) {
		conf.break_ppm = 1000;
		conf.op_error_ppm = 1000;
		conf.connect_fail_ppm = 50000;
	} else {
		conf.garble_ppm = 0;
		conf.retry_timeout_ns = 30 * SIM_S; /* lulls may add up */
	}
	r.w = world_open(&conf,
			 !plan->churn  ? WORLD_STAYS
			 : plan->moves ? WORLD_MOVES
				       : WORLD_COMES,
			 plan->recovers ? RECONNECT_NS : 0, plan->max_links, plan->rma);
	if (plan->churn) {
		r.w->meanwhile = meanwhile;
		r.w->meanwhile_ctx = &r;
	}
	r.w->faulty = plan->faults || plan->deaths || plan->closes || plan->end != PLAN_DRAIN;
	r.w->orderly = plan->closes && !plan->faults && !plan->deaths && !plan->lulls;
	r.w->sleepy = plan->sleepy;
	talk(&r);
	finish(&r);
	check_links(&r);
	add_up(&r);
	world_close(r.w);
}

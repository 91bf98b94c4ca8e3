/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated network: N devices of dev/dev.h in one process, on virtual time, from one seed.
 *
 * Time stands still until somebody steps. A step takes the earliest event (a packet arrives, a
 * timer is due), moves the clock there and handles it; ties keep their order. So the same seed and
 * the same calls give the same schedule, to the last byte.
 *
 * What the devices may do is what dev.h allows, at its worst: completions early or late, a SEND
 * flagged MORE that waits for a flush, messages at odd addresses that are scribbled on release, a
 * broken link that still delivers for a while, both sides noticing at different times, a slot of
 * the send queue that is free again only when a completion behind it was polled.
 *
 * What the caller may not do is watched (enum sim_misuse); a breach fails the running cmocka test
 * with the seed and the time, or goes to conf.misuse.
 *
 * Usage:
 *	struct sim_conf conf = { .seed = 42 };
 *	struct sim_net *net = sim_net_open(&conf);
 *	struct rvcm_dev *a = sim_dev_open(net, NULL), *b = sim_dev_open(net, NULL);
 *	... drive a and b through a->ops, b->ops ...
 *	assert_true(sim_run_until(net, done, arg, SIM_S));
 *	a->ops->close(a); b->ops->close(b);
 *	sim_net_close(net);
 *
 * One thread. Memory is the C library's own, so that a test that fails the n-th allocation of the
 * code under test does not fail the simulator's.
 */
#ifndef RVCM_FABTESTS_SIM_H
#define RVCM_FABTESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "dev/dev.h"

#define SIM_US 1000ull
#define SIM_MS (1000 * SIM_US)
#define SIM_S  (1000 * SIM_MS)

struct sim_net;

/* What the caller did wrong. */
enum sim_misuse {
	SIM_MISUSE_STATE, /* call that the QP's state forbids: post before attach, twice attached */
	SIM_MISUSE_SQ_FULL,  /* post on a full send queue (it also gets -EAGAIN) */
	SIM_MISUSE_RQ_FULL,  /* receive posted on a full queue (it also gets -EAGAIN) */
	SIM_MISUSE_SGE,      /* local memory outside its registration, or without the access */
	SIM_MISUSE_ARGUMENT, /* too long, too many pieces, an operation the link does not have */
	SIM_MISUSE_REUSE,    /* memory of a WR changed before its completion */
	SIM_MISUSE_DEREG,    /* memory deregistered while a WR uses it */
	SIM_MISUSE_RELEASE,  /* rx released twice, or to another pool */
	SIM_MISUSE_CREDIT,   /* a SEND found no receive (watched only if conf.no_rnr) */
	SIM_MISUSE_CQ_FULL,  /* more completions than the CQ has room for */
	SIM_MISUSE_CLOSED,   /* use after close */
	SIM_MISUSE_LEAK,     /* close while objects are open that need it, or messages held */
	SIM_MISUSE_REQUEST,  /* a connect request answered twice */
	SIM_MISUSE_KEY,      /* a remote key was used after it was dropped (conf.live_keys) */
	SIM_MISUSE_COUNT,
};

/* Zero means the default in brackets. Chances are in parts per million. */
struct sim_conf {
	uint64_t seed;
	uint64_t delay_ns_min;     /* of a packet, one way [1 us] */
	uint64_t delay_ns_max;     /* [20 us] */
	uint64_t cm_timeout_ns;    /* of a request that nobody answers [2 s] */
	uint64_t retry_timeout_ns; /* of an operation on a path that has fallen silent [500 ms] */
	uint64_t notice_ns_max;    /* how long a side may not notice a broken link [1 ms] */
	uint64_t late_ns_max;      /* how long a broken link may still deliver [1 ms] */
	bool no_rnr;    /* a SEND that finds no receive, or a QP with rq_depth held, is a misuse */
	bool live_keys; /* an access with a key that was dropped is a misuse */
	bool eager_polls;      /* cq_poll gives all there is; else it may give fewer */
	bool quiet_queues;     /* SQ_FULL and RQ_FULL are no misuse, just -EAGAIN */
	uint32_t break_ppm;    /* chance of each packet to break its link */
	uint32_t op_error_ppm; /* chance of each posted WR to fail */
	uint32_t
		connect_fail_ppm; /* chance of each connect to fail, in one of the ways there are */
	/* What no kind network does, see sim_unkind; zero means never. */
	uint64_t drift_ns_max;   /* by how much one link may be slower than another, for good */
	uint64_t stall_ns_max;   /* by how much a packet that stalls comes later */
	uint32_t stall_ppm;      /* chance of each packet to stall */
	uint64_t cm_late_ns_max; /* of a CM event; those of different QPs overtake each other */
	uint64_t replay_ns_max;  /* how much later a connect request may be seen again */
	uint32_t replay_ppm;     /* chance of each connect request to be seen once more */
	uint32_t garble_ppm;     /* chance of private data to arrive as something else */
	uint32_t batch_max;      /* completions that one poll gives */
	bool pad_private;        /* private data arrives padded with zeros, as on IB */
	/* NULL: fail the cmocka test. Otherwise the call that misused goes on as best it can. */
	void (*misuse)(void *arg, enum sim_misuse what, const char *text);
	void *misuse_arg;
};

enum sim_early {
	SIM_EARLY_RANDOM, /* with CAP_PLACED: never; else by chance */
	SIM_EARLY_NEVER,
	SIM_EARLY_ALWAYS, /* handed to the stream; not with CAP_PLACED */
};

struct sim_dev_conf {
	struct rvcm_dev_attr attr; /* from sim_dev_conf_init, then changed at will */
	enum sim_early early;
	uint32_t fabric; /* a device reaches those of its own fabric, as RoCE does RoCE [0] */
};

/* How a connect fails. */
enum sim_refuse {
	SIM_REFUSE_NOT_LISTENING,
	SIM_REFUSE_STALE,
	SIM_REFUSE_PROTOCOL,
	SIM_REFUSE_LOST,  /* UNREACHABLE after cm_timeout_ns */
	SIM_REFUSE_ERROR, /* CONNECT_ERROR */
	SIM_REFUSE_ADDR,
	SIM_REFUSE_ROUTE,
	SIM_REFUSE_COUNT,
};

enum sim_kill {
	SIM_KILL_PROCESS, /* the kernel lives: links are reset, connects find nobody listening */
	SIM_KILL_HOST,    /* silence */
};

/* Since the net was opened. */
struct sim_stats {
	uint64_t events;
	uint64_t packets;
	uint64_t connects; /* links that were established */
	uint64_t breaks;   /* links broken, whoever did it */
	uint64_t rnr;      /* SENDs that found no receive */
	uint64_t misuses;
	uint64_t replays; /* connect requests that were seen again */
	uint64_t garbled; /* CM messages whose private data was changed */
	uint64_t late;    /* packets that a broken link delivered */
};

/* -- net ------------------------------------------------------------------------------------ */

/* conf is copied; NULL = all defaults. Never fails: the simulator aborts when memory is out. */
struct sim_net *sim_net_open(const struct sim_conf *conf);

/* After every device is closed. What is still under way is dropped. */
void sim_net_close(struct sim_net *net);

/* The configuration may be changed at any time, but for the seed. */
struct sim_conf *sim_net_conf(struct sim_net *net);
const struct sim_stats *sim_net_stats(const struct sim_net *net);
struct rvcm_rng *sim_net_rng(struct sim_net *net);
uint64_t sim_now(const struct sim_net *net);

/* When the next event is due, UINT64_MAX = there is none. */
uint64_t sim_next(const struct sim_net *net);

/* Handle the next event. false: there is none, and time stood still. */
bool sim_step(struct sim_net *net);

/*
 * Handle the next event if it is due by at_ns; if not, move the clock to at_ns and return false.
 * This is how timers of the code under test are served: step to the earliest of theirs.
 */
bool sim_step_by(struct sim_net *net, uint64_t at_ns);

/* Handle every event of the next ns nanoseconds and move the clock there. */
void sim_run(struct sim_net *net, uint64_t ns);

/* Step until pred is true; false when ns have passed, or nothing is left to happen, before. */
bool sim_run_until(struct sim_net *net, bool (*pred)(void *arg), void *arg, uint64_t ns);

/* Call fn after ns nanoseconds. */
void sim_after(struct sim_net *net, uint64_t ns, void (*fn)(void *arg), void *arg);

/* Add every unkindness to conf, drawn from a seed of its own. */
void sim_unkind(struct sim_conf *conf, uint64_t seed);

/* No fault by chance, and no unkindness that loses anything, from now on. */
void sim_unkind_end(struct sim_net *net);

/* -- devices -------------------------------------------------------------------------------- */

/* Address 10.0.0.x with x counting up (fd00::x if v6), every capability, 56 bytes of private data.
 */
void sim_dev_conf_init(struct sim_net *net, struct sim_dev_conf *conf, bool v6);

/* conf NULL = as sim_dev_conf_init leaves it, IPv4. The caller closes it through its ops. */
struct rvcm_dev *sim_dev_open(struct sim_net *net, const struct sim_dev_conf *conf);

/* Is there an event or a completion to poll for? So a harness runs only who has work. */
bool sim_dev_busy(const struct rvcm_dev *dev);

/* Has a CQ of dev that was armed something to poll for? So a harness wakes who sleeps. */
bool sim_dev_fired(const struct rvcm_dev *dev);

/* -- faults --------------------------------------------------------------------------------- */

/* The next n connects that arrive at dev (or leave for its address) fail like this. */
void sim_dev_refuse(struct rvcm_dev *dev, enum sim_refuse how, uint32_t n);

/* From now on connects to that port of dev get lost, all of them that were told so; or none. */
void sim_dev_cut(struct rvcm_dev *dev, uint16_t port);
void sim_dev_mend(struct rvcm_dev *dev);

/* vendor_err of what fails so: every cause has a code of the device's own, a flush has none. */
static inline uint32_t sim_vendor(enum rvcm_status status)
{
	bool wc = status > RVCM_STATUS_OK && status <= RVCM_STATUS_GENERAL;

	return wc && status != RVCM_STATUS_FLUSHED ? 0x500u + (uint32_t)status : 0;
}

/* The n-th WR posted on dev from now (1 = next) fails with status, and its QP with it. */
void sim_dev_fail_op(struct rvcm_dev *dev, uint32_t n, enum rvcm_status status);

/*
 * The n-th call from now (1 = next) that may fail and takes resources (listen, qp_open, connect,
 * accept, mr_reg, cq_open, pool_open, srq_open) returns err, negative. 0 calls it off.
 */
void sim_dev_fail_call(struct rvcm_dev *dev, uint32_t n, int err);

/*
 * From now on dev refuses registrations that ask for this access (0 = any), each by this chance,
 * with -ENOMEM: what may be locked is. ppm 0: not any more.
 */
void sim_dev_full(struct rvcm_dev *dev, uint32_t access, uint32_t ppm);

/* Registrations that dev has, and how many it has room for: then -ENOMEM. */
uint32_t sim_dev_registered(const struct rvcm_dev *dev);
void sim_dev_room(struct rvcm_dev *dev, uint32_t n);

/* Resource calls so far, to know how far n may go. */
uint32_t sim_dev_calls(const struct rvcm_dev *dev);

/* The caller is gone: no call on dev but those that close may follow. */
void sim_dev_kill(struct rvcm_dev *dev, enum sim_kill how);

/* The device is pulled out: DEVICE_REMOVAL, its links break, and its resource calls fail: ENODEV.
 */
void sim_dev_remove(struct rvcm_dev *dev);

/* Nothing arrives at dev and none of its timers runs until resumed; what arrived is kept. */
void sim_dev_pause(struct rvcm_dev *dev);
void sim_dev_resume(struct rvcm_dev *dev);

/* The keys that dev has given out become invalid, as when the memory behind them goes away. */
void sim_dev_invalidate(struct rvcm_dev *dev);

/* Links between two devices (either may be NULL = any): break them, or make them silent. */
void sim_links_break(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b);
void sim_links_silence(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b);
void sim_links_heal(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b);
/* The acceptor's device ends them in order, as if that were what its owner wants. */
void sim_links_end(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b);
/* How many links stand between them. */
uint32_t sim_links_count(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b);

/*
 * The QPs of each link that both sides are attached to, a the opener's; broken: what is on its way
 * may be lost.
 */
void sim_links_each(struct sim_net *net,
		    void (*fn)(void *arg, struct rvcm_dev_qp *a, struct rvcm_dev_qp *b,
			       bool broken),
		    void *arg);

/* SENDs on their way to qp, or in its CQ, whose bytes the caller recognises; imm: with immediate.
 */
uint32_t sim_qp_coming(const struct rvcm_dev_qp *qp,
		       bool (*is)(const void *data, size_t bytes, bool imm));

/* WRs of qp that were posted and have not left. */
uint32_t sim_qp_unsent(const struct rvcm_dev_qp *qp);

/* One link, by either end. */
void sim_qp_break(struct rvcm_dev_qp *qp);
void sim_qp_silence(struct rvcm_dev_qp *qp);
void sim_qp_heal(struct rvcm_dev_qp *qp);

#endif

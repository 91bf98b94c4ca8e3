/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens in one schedule of the engines: a seed is a plan, and a plan always the same run. */
#ifndef RVCM_FABTESTS_SIM_PLAN_H
#define RVCM_FABTESTS_SIM_PLAN_H

#include "sim/world.h"

enum plan_end {
	PLAN_DRAIN,   /* faults stop, everything finishes, then all close */
	PLAN_ABANDON, /* all close at once, with everything pending */
	PLAN_REMOVE,  /* every device is removed, with everything pending; then all close */
};

struct plan {
	uint64_t seed;
	bool unkind; /* the network: sim_unkind */
	bool faults; /* links break, operations and connects fail, memory is unmapped */
	bool closes; /* endpoints close, and are opened again */
	bool deaths; /* the same, and processes die and come back */
	bool churn; /* some endpoints close, and are opened again, while others talk: world.n_stable
		     */
	bool moves; /* churn: and they are opened in any process of their host */
	bool lulls; /* threads, peers and links fall silent for a while */
	bool sleepy;        /* world.sleepy */
	bool recovers;      /* what has lost its link, if it can */
	bool rma;           /* memory is written and read too */
	bool full;          /* devices refuse registrations for a while */
	uint32_t max_links; /* of a process; 0 = any number */
	int steps;
	enum plan_end end;
};

/* What the plans that were run came to, to see that they are worth something. */
struct plan_sums {
	uint64_t tx_eager, tx_rndv, tx_written, tx_copied, rx_copied, rx_unexpected, tx_lent,
		rx_placed, completions, errors, rma_done, rma_data;
	uint64_t breaks, kills, closes, lulls, replays, garbled, late, shared;
	uint64_t side_links, side_losses, side_pieces, pieces_again;
	uint64_t parked, unparked;
};

/* A plan of any kind. */
struct plan plan_of(uint64_t seed);

/* Run it; what it came to is added to sums. */
void plan_run(const struct plan *plan, struct plan_sums *sums);

#endif

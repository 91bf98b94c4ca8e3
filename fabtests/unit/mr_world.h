/* SPDX-License-Identifier: BSD-2-Clause */
/* A registration cache over devices that count, and a monitor that says what it is told to. */
#ifndef RVCM_FABTESTS_MR_WORLD_H
#define RVCM_FABTESTS_MR_WORLD_H

#include "unit/unit.h"
#include "mr/monitor.h"
#include "mr/mr.h"

#define MR_DEVS 2u

struct mr_world_dev {
	struct rvcm_dev dev;
	int fail;     /* what mr_reg says, 0 = success */
	int room;     /* registrations that there is room for, then -ENOMEM; -1 = for any number */
	int regs;     /* that succeeded */
	int refusals; /* that did not */
	int live;     /* not deregistered */
	struct rvcm_dev_mr_attr last;
};

struct mr_world {
	struct mr_world_dev devs[MR_DEVS];
	struct rvcm_monitor monitor;
	int watch_rc; /* what watch says */
	uintptr_t watched_start;
	size_t watched_bytes;
	struct rvcm_mr_domain *domain;
};

/* A cache for so many regions and bytes. */
void mr_world_open(struct mr_world *w, size_t count, size_t bytes);

/* The same without one. */
void mr_world_open_plain(struct mr_world *w);

/* Nothing is left registered. */
void mr_world_close(struct mr_world *w);

/* Get a region and register it with device 0. The addresses are made up: nobody looks at memory. */
struct rvcm_mr *mr_world_get(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access);

/* The same, and put it: afterwards it is cached, if it can be. */
void mr_world_touch(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access);

/* Would a get be a hit? Changes what was used last, and counts. */
bool mr_world_holds(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access);

/* The pages of these addresses go away. */
void mr_world_vanish(struct mr_world *w, uintptr_t start, uintptr_t end);

struct rvcm_mr_stats mr_world_stats(struct mr_world *w);

#define assert_stat(w, name, value) assert_int_equal(mr_world_stats(w).name, value)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two carriers over real sockets: the victim of whatever a bare peer does, and a third peer, which
 * must not notice. One thread drives both, wherever it waits.
 */
#ifndef RVCM_FABTESTS_HOSTILE_SCENE_H
#define RVCM_FABTESTS_HOSTILE_SCENE_H

#include "unit/unit.h"

#include "base/clock.h"
#include "conn/conn_impl.h"

#define SCENE_PATIENCE_NS (30 * RVCM_CLOCK_NS_PER_S)

struct scene_side {
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_path *path; /* to the other one */
	const struct rvcm_addr *other;
	uint32_t received, downs; /* of conn */
	struct rvcm_conn_cause cause;
	uint32_t strange_received, strange_downs;
	struct rvcm_conn_cause strange_cause;
};

extern struct scene_side victim, honest;
extern const uint8_t scene_key[RVCM_CONN_KEY_BYTES]; /* of their job */

/* For the next scene; a test that changes them puts them back. */
struct scene_times {
	uint64_t linger_ns;
	uint32_t close_timeout_ms; /* the device's */
};

extern struct scene_times scene_times;

/*
 * Set-up and teardown of a test: both are there, and connected; what the test has opened and closed
 * has cost no descriptor, and closing leaves nothing.
 */
int scene_open(void **state);
int scene_close(void **state);
/* One of them, alone. */
void scene_side_open(struct scene_side *side, const struct scene_side *other);
void scene_side_close(struct scene_side *side);

/* The third peer's message arrives, over the link that it has had all the time. */
void scene_check_third(void);

/* Drive both; fails the test if what it waits for takes too long. */
void scene_pump(void);
void scene_pump_one(struct scene_side *side);
void scene_wait_begin(void);

#define UNTIL(condition)              \
	do {                          \
		scene_wait_begin();   \
		while (!(condition))  \
			scene_pump(); \
	} while (0)

#endif

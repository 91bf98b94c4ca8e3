/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/contract_real.h"

#include <poll.h>
#include <time.h>

#define SETTLE_NS (10 * CONTRACT_MS)
#define FDS_MAX   16

uint64_t contract_real_now_ns(struct contract *c)
{
	struct timespec now;

	(void)c;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CONTRACT_S + (uint64_t)now.tv_nsec;
}

/* Arms what is polled; beyond FDS_MAX the time-out does. */
static void wait_fds(struct contract *c, int timeout_ms)
{
	struct pollfd fds[FDS_MAX];
	nfds_t n = 0;

	for (int i = 0; i < 2; i++)
		if (c->side[i].dev)
			fds[n++].fd = c->side[i].ops->cm_fd(c->side[i].dev);
	for (size_t i = 0; i < c->n_objects && n < FDS_MAX; i++) {
		const struct contract_object *o = &c->objects[i];

		if (o->kind != CONTRACT_CQ || o->held)
			continue;
		assert_int_equal(c->side[o->side].ops->cq_arm(o->object, false), 0);
		fds[n++].fd = c->side[o->side].ops->cq_fd(o->object);
	}
	for (nfds_t i = 0; i < n; i++) {
		assert_true(fds[i].fd >= 0);
		fds[i].events = POLLIN;
	}
	poll(fds, n, timeout_ms);
}

bool contract_real_turn(struct contract *c)
{
	wait_fds(c, 10);
	return true;
}

void contract_real_settle(struct contract *c)
{
	uint64_t end = contract_real_now_ns(c) + SETTLE_NS;

	while (contract_real_now_ns(c) < end) {
		if (contract_pump(c))
			end = contract_real_now_ns(c) + SETTLE_NS;
		wait_fds(c, 3);
	}
}

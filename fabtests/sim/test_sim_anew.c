/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who says ANEW knows of no link between the two processes: the other one's gives way, whichever
 * endpoint it is with; but not one that has come while the request was on its way.
 */
#include "unit/unit.h"

#include <string.h>

#include "sim/liar.h"
#include "sim/watch.h"

#define ASKS_MAX 20 /* requests, until one says ANEW */

/* Two endpoints of a process: one that gets a link with the victim, and another one. */
struct process {
	struct victim victim;
	struct liar linked, other;
};

static void pass(struct process *p, uint64_t ns)
{
	liar_pass(&p->linked, ns / 2);
	liar_pass(&p->other, ns - ns / 2);
}

static void process_open(struct process *p)
{
	memset(p, 0, sizeof(*p));
	victim_open(&p->victim, 1);
	liar_open(&p->linked, &p->victim);
	liar_open(&p->other, &p->victim);
	p->other.slot = 34;
}

static void link_one(struct process *p)
{
	liar_connect(&p->linked);
	liar_hello(&p->linked, true);
	liar_data(&p->linked, 0);
	assert_int_equal(p->victim.received, 1);
}

/* -- a link of an endpoint that has closed --------------------------------------------------- */

static void close_slot(struct process *p, uint16_t slot)
{
	rvcm_carrier_unlisten(p->victim.carrier, slot);
	for (int i = 0; !rvcm_carrier_quiet(p->victim.carrier, slot); i++) {
		pass(p, SIM_MS);
		assert_true(i < 5000);
	}
}

/* It is gone when what comes in its place is taken; and so is all that was kept for it. */
static void a_link_makes_way_whose_endpoint_has_closed(void **state)
{
	struct rvcm_addr second = { 0 };
	struct process p;

	(void)state;
	process_open(&p);
	link_one(&p);
	assert_int_equal(rvcm_carrier_listen(p.victim.carrier, 1, &second), 0);
	close_slot(&p, 0);
	p.victim.name = second;
	p.other.flags = RVCM_WIRE_ANEW;
	liar_claim(&p.other, p.linked.incarnation, 2);
	liar_hello(&p.other, true);
	pass(&p, 20 * SIM_MS);
	assert_int_equal(p.other.heard.kind, RVCM_WIRE_HELLO);
	assert_int_equal(p.linked.last, RVCM_DEV_EVENT_DISCONNECTED);
	close_slot(&p, 1);
	watch_carrier_empty(p.victim.carrier);
	liar_close(&p.linked);
	liar_close(&p.other);
	rvcm_carrier_close(p.victim.carrier);
	p.victim.dev->ops->close(p.victim.dev);
	sim_net_close(p.victim.net);
	rvcm_log_set_sink(NULL);
}

/* -- a link that has come meanwhile ---------------------------------------------------------- */

static void refuse(struct process *p)
{
	struct rvcm_shake shake = liar_shake(&p->other, RVCM_WIRE_REJECT);
	struct rvcm_wire_handshake reject;

	shake.caps = RVCM_WIRE_REASON_SHARED;
	rvcm_shake_encode(&shake, liar_job_key, &p->other.request, &reject);
	assert_int_equal(p->other.dev->ops->reject(p->other.req, &reject, sizeof(reject)), 0);
	p->other.req = NULL;
}

static void await_request(struct process *p)
{
	for (int i = 0; !p->other.req; i++) {
		pass(p, 10 * SIM_MS);
		assert_true(i < 200);
	}
}

/* The victim calls the other endpoint, and hears that there is a link, until it knows better. */
static void call_anew(struct process *p)
{
	assert_int_equal(rvcm_path_get(p->victim.carrier, 0, &p->other.name, &p->victim.path), 0);
	assert_null(rvcm_path_reserve(p->victim.path, 10));
	await_request(p);
	for (int i = 0; !(p->other.request.flags & RVCM_WIRE_ANEW); i++) {
		refuse(p);
		await_request(p);
		assert_true(i < ASKS_MAX);
	}
}

static void accept_late(struct process *p)
{
	struct rvcm_shake shake = liar_shake(&p->other, RVCM_WIRE_REPLY);

	shake.epoch = UINT16_MAX;
	rvcm_shake_encode(&shake, liar_job_key, &p->other.request, &p->other.reply);
	liar_qp(&p->other);
	assert_int_equal(p->other.dev->ops->accept(p->other.req, p->other.qp, &p->other.reply,
						   sizeof(p->other.reply)),
			 0);
	p->other.req = NULL;
}

/* To say HELLO would be to say: let go of what you have. The victim takes that itself. */
static void a_link_stays_that_has_come_meanwhile(void **state)
{
	struct process p;
	struct rvcm_path *path;

	(void)state;
	process_open(&p);
	call_anew(&p);
	path = p.victim.path;
	link_one(&p);
	accept_late(&p);
	await_request(&p);
	assert_int_equal(p.other.frames, 0);
	assert_false(p.other.request.flags & RVCM_WIRE_ANEW);
	refuse(&p);
	pass(&p, 20 * SIM_MS);
	assert_int_equal(p.linked.heard.kind, RVCM_WIRE_WHO);
	liar_data(&p.linked, 1);
	assert_int_equal(p.victim.received, 2);
	assert_int_equal(p.victim.downs, 0);
	assert_false(path->up);
	liar_close(&p.other);
	victim_close(&p.victim, &p.linked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_makes_way_whose_endpoint_has_closed),
		cmocka_unit_test(a_link_stays_that_has_come_meanwhile),
	};

	return cmocka_run_group_tests_name("sim_anew", tests, NULL, NULL);
}

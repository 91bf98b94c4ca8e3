/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network and its devices may do and seldom do: links that drift apart, so that what left
 * later by one arrives before what left earlier by another; links that deliver long after they
 * broke; completions that come before anything has arrived; CM events that come late and overtake
 * each other; connect requests that are seen again; private data that somebody has written into.
 */
#include "sim/sim_impl.h"

#include <stdlib.h>
#include <string.h>

void sim_unkind(struct sim_conf *conf, uint64_t seed)
{
	struct rvcm_rng rng;

	rvcm_rng_init(&rng, seed ^ 0x756e6b696e64);
	conf->drift_ns_max = rvcm_rng_below(&rng, 2) ? SIM_MS : 30 * SIM_US;
	conf->stall_ns_max = rvcm_rng_below(&rng, 30 * SIM_MS);
	conf->stall_ppm = 3000;
	conf->notice_ns_max = 1 + rvcm_rng_below(&rng, 40 * SIM_MS);
	conf->late_ns_max = 1 + rvcm_rng_below(&rng, 60 * SIM_MS);
	conf->cm_late_ns_max = rvcm_rng_below(&rng, 3) ? rvcm_rng_below(&rng, 20 * SIM_MS) : 0;
	conf->replay_ns_max = SIM_S;
	conf->replay_ppm = 200000;
	conf->garble_ppm = rvcm_rng_below(&rng, 2) ? 30000 : 0;
	conf->batch_max = rvcm_rng_below(&rng, 2) ? 1 + (uint32_t)rvcm_rng_below(&rng, 3) : 0;
	conf->pad_private = rvcm_rng_below(&rng, 2);
}

void sim_unkind_end(struct sim_net *net)
{
	net->conf.break_ppm = 0;
	net->conf.op_error_ppm = 0;
	net->conf.connect_fail_ppm = 0;
	net->conf.garble_ppm = 0;
	net->conf.replay_ppm = 0;
}

/* -- private data ---------------------------------------------------------------------------- */

static void scramble(struct sim_net *net, uint8_t *data, size_t bytes)
{
	uint64_t how = sim_upto(net, 2);

	if (how == 0 && bytes) /* one bit */
		data[sim_upto(net, bytes - 1)] ^= (uint8_t)(1u << sim_upto(net, 7));
	else if (how == 1)
		memset(data, 0, bytes);
	else
		for (size_t i = 0; i < bytes; i++)
			data[i] = (uint8_t)rvcm_rng_next(&net->rng);
}

struct sim_payload *sim_unkind_private(struct sim_dev *from, struct sim_payload *payload)
{
	struct sim_net *net = from ? from->net : NULL;
	size_t bytes = payload->bytes, most;
	struct sim_payload *other;
	bool garble;

	if (!net)
		return payload;
	garble = sim_chance(net, net->conf.garble_ppm);
	if (!garble && !net->conf.pad_private)
		return payload;
	most = from->base.attr.private_data_bytes;
	if (garble && sim_chance(net, 300000))
		bytes = sim_upto(net, most);
	other = sim_payload_new(NULL, most > bytes ? most : bytes);
	memset(other->data, 0, other->bytes);
	memcpy(other->data, payload->data, bytes < payload->bytes ? bytes : payload->bytes);
	if (garble) {
		scramble(net, other->data, bytes);
		net->stats.garbled++;
	}
	if (!net->conf.pad_private)
		other->bytes = bytes;
	sim_payload_put(payload);
	return other;
}

/* -- requests that are seen again ------------------------------------------------------------ */

struct ghost {
	struct sim_event event;
	struct rvcm_addr from, target;
	uint32_t fabric;
	struct sim_payload *request;
};

void sim_unkind_forget(struct sim_event *event)
{
	struct ghost *ghost = rvcm_container_of(event, struct ghost, event);

	sim_payload_put(ghost->request);
	free(ghost);
}

/* It has no opener: what is answered to it goes nowhere. */
void sim_unkind_appear(struct sim_net *net, struct sim_event *event)
{
	struct ghost *ghost = rvcm_container_of(event, struct ghost, event);
	struct sim_dev *from = sim_dev_find(net, ghost->fabric, &ghost->from);
	struct sim_dev *to = sim_dev_find(net, ghost->fabric, &ghost->target);

	if (from && to) {
		struct sim_wire *wire = sim_wire_new(from, NULL, &ghost->target);
		struct sim_packet *packet;

		wire->ghost = true;
		wire->dev[1] = to;
		packet = sim_wire_packet(wire, 1, SIM_PACKET_REQUEST);
		packet->payload = ghost->request;
		ghost->request->refs++;
		sim_wire_send(packet);
		sim_wire_put(wire);
		net->stats.replays++;
	}
	sim_unkind_forget(event);
}

void sim_unkind_replay(struct sim_wire *wire, struct sim_payload *request)
{
	struct sim_net *net = wire->net;
	struct ghost *ghost;
	uint64_t later;

	if (!sim_chance(net, net->conf.replay_ppm))
		return;
	ghost = sim_alloc(sizeof(*ghost));
	ghost->from = wire->from;
	ghost->target = wire->target;
	ghost->fabric = wire->dev[0]->fabric;
	ghost->request = request;
	request->refs++;
	later = sim_chance(net, 500000) ? net->conf.delay_ns_max : net->conf.replay_ns_max;
	sim_event_at(net, &ghost->event, net->now + sim_upto(net, later), sim_unkind_appear);
}

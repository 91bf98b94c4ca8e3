/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: a binary heap of events by (time, order of scheduling). The heap holds the keys
 * itself, so that sifting touches only the heap's memory and the moved events' slot.
 */
#include "sim/sim_impl.h"

#include <stdio.h>
#include <stdlib.h>

void *sim_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	if (!p) {
		fprintf(stderr, "sim: out of memory\n");
		abort();
	}
	return p;
}

uint64_t sim_upto(struct sim_net *net, uint64_t max)
{
	return max ? rvcm_rng_below(&net->rng, max + 1) : 0;
}

uint64_t sim_delay(struct sim_net *net)
{
	const struct sim_conf *conf = &net->conf;

	return conf->delay_ns_min + sim_upto(net, conf->delay_ns_max - conf->delay_ns_min);
}

bool sim_chance(struct sim_net *net, uint32_t ppm)
{
	return ppm && rvcm_rng_below(&net->rng, 1000000) < ppm;
}

static bool before(const struct sim_heap_entry *a, const struct sim_heap_entry *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void put(struct sim_net *net, uint32_t i, const struct sim_heap_entry *entry)
{
	net->heap[i] = *entry;
	entry->event->slot = i + 1;
}

static void sift_up(struct sim_net *net, uint32_t i, struct sim_heap_entry entry)
{
	while (i > 0) {
		uint32_t up = (i - 1) / 2;

		if (!before(&entry, &net->heap[up]))
			break;
		put(net, i, &net->heap[up]);
		i = up;
	}
	put(net, i, &entry);
}

static void sift_down(struct sim_net *net, uint32_t i, struct sim_heap_entry entry)
{
	uint32_t child;

	while ((child = 2 * i + 1) < net->n_heap) {
		if (child + 1 < net->n_heap && before(&net->heap[child + 1], &net->heap[child]))
			child++;
		if (!before(&net->heap[child], &entry))
			break;
		put(net, i, &net->heap[child]);
		i = child;
	}
	put(net, i, &entry);
}

void sim_event_cancel(struct sim_net *net, struct sim_event *event)
{
	uint32_t i = event->slot - 1;
	struct sim_heap_entry last;

	if (!event->slot)
		return;
	event->slot = 0;
	last = net->heap[--net->n_heap];
	if (i == net->n_heap)
		return;
	if (i > 0 && before(&last, &net->heap[(i - 1) / 2]))
		sift_up(net, i, last);
	else
		sift_down(net, i, last);
}

void sim_event_at(struct sim_net *net, struct sim_event *event, uint64_t at_ns,
		  void (*fn)(struct sim_net *net, struct sim_event *event))
{
	struct sim_heap_entry entry = { at_ns, net->seq++, event };

	sim_event_cancel(net, event);
	if (net->n_heap == net->heap_room) {
		net->heap_room = net->heap_room ? 2 * net->heap_room : 64;
		net->heap = realloc(net->heap, net->heap_room * sizeof(*net->heap));
		if (!net->heap)
			abort();
	}
	event->fn = fn;
	sift_up(net, net->n_heap++, entry);
}

uint64_t sim_now(const struct sim_net *net)
{
	return net->now;
}

uint64_t sim_next(const struct sim_net *net)
{
	return net->n_heap ? net->heap[0].at : SIM_NEVER;
}

bool sim_step(struct sim_net *net)
{
	struct sim_event *event;

	if (!net->n_heap)
		return false;
	event = net->heap[0].event;
	net->now = net->heap[0].at;
	net->stats.events++;
	sim_event_cancel(net, event);
	event->fn(net, event);
	return true;
}

bool sim_step_by(struct sim_net *net, uint64_t at_ns)
{
	if (sim_next(net) <= at_ns)
		return sim_step(net);
	if (at_ns != SIM_NEVER && at_ns > net->now)
		net->now = at_ns;
	return false;
}

void sim_run(struct sim_net *net, uint64_t ns)
{
	uint64_t end = net->now + ns;

	while (sim_step_by(net, end))
		;
}

bool sim_run_until(struct sim_net *net, bool (*pred)(void *arg), void *arg, uint64_t ns)
{
	uint64_t end = net->now + ns;

	while (!pred(arg))
		if (!sim_step_by(net, end))
			return pred(arg);
	return true;
}

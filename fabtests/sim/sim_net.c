/* SPDX-License-Identifier: BSD-2-Clause */
/* The net as a whole: configuration, misuse, calls at a time, the end. */
#include "sim/sim_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void set_default(uint64_t *value, uint64_t standard)
{
	if (!*value)
		*value = standard;
}

struct sim_net *sim_net_open(const struct sim_conf *conf)
{
	struct sim_net *net = sim_alloc(sizeof(*net));

	if (conf)
		net->conf = *conf;
	set_default(&net->conf.delay_ns_min, SIM_US);
	set_default(&net->conf.delay_ns_max, 20 * SIM_US);
	if (net->conf.delay_ns_max < net->conf.delay_ns_min)
		net->conf.delay_ns_max = net->conf.delay_ns_min;
	set_default(&net->conf.cm_timeout_ns, 2 * SIM_S);
	set_default(&net->conf.retry_timeout_ns, 500 * SIM_MS);
	set_default(&net->conf.notice_ns_max, SIM_MS);
	set_default(&net->conf.late_ns_max, SIM_MS);
	rvcm_rng_init(&net->rng, net->conf.seed);
	rvcm_list_init(&net->wires);
	return net;
}

struct sim_conf *sim_net_conf(struct sim_net *net)
{
	return &net->conf;
}

const struct sim_stats *sim_net_stats(const struct sim_net *net)
{
	return &net->stats;
}

struct rvcm_rng *sim_net_rng(struct sim_net *net)
{
	return &net->rng;
}

void sim_misuse(struct sim_net *net, enum sim_misuse what, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	net->stats.misuses++;
	if (net->conf.misuse)
		net->conf.misuse(net->conf.misuse_arg, what, text);
	else
		fail_msg("misuse of the device, seed %llu, %llu ns: %s",
			 (unsigned long long)net->conf.seed, (unsigned long long)net->now, text);
}

/* -- calls ----------------------------------------------------------------------------------- */

struct sim_call {
	struct sim_event event;
	void (*fn)(void *arg);
	void *arg;
};

static void call_due(struct sim_net *net, struct sim_event *event)
{
	struct sim_call *call = rvcm_container_of(event, struct sim_call, event);
	void (*fn)(void *arg) = call->fn;
	void *arg = call->arg;

	(void)net;
	free(call);
	fn(arg);
}

void sim_after(struct sim_net *net, uint64_t ns, void (*fn)(void *arg), void *arg)
{
	struct sim_call *call = sim_alloc(sizeof(*call));

	call->fn = fn;
	call->arg = arg;
	sim_event_at(net, &call->event, net->now + ns, call_due);
}

/* -- the end --------------------------------------------------------------------------------- */

/* With every device closed, what is left are packets on their way and calls. */
static void drop_events(struct sim_net *net)
{
	while (net->n_heap) {
		struct sim_event *event = net->heap[net->n_heap - 1].event;

		sim_event_cancel(net, event);
		if (event->fn == call_due)
			free(rvcm_container_of(event, struct sim_call, event));
		else if (event->fn == sim_wire_arrive)
			sim_wire_drop(rvcm_container_of(event, struct sim_packet, event));
		else if (event->fn == sim_unkind_appear)
			sim_unkind_forget(event);
	}
}

void sim_net_close(struct sim_net *net)
{
	struct rvcm_list *pos, *next;

	if (net->devs)
		sim_misuse(net, SIM_MISUSE_LEAK, "net closed with a device open");
	drop_events(net);
	rvcm_list_for_each_safe (pos, next, &net->wires) {
		sim_wire_clear(rvcm_container_of(pos, struct sim_wire, node));
	}
	free(net->heap);
	free(net);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariants of conn/ and proto/, looked at from outside while a simulation runs. Each call is
 * made between two calls of the code under test, and fails the cmocka test where something is off.
 */
#ifndef RVCM_FABTESTS_SIM_WATCH_H
#define RVCM_FABTESTS_SIM_WATCH_H

#include "conn/conn.h"
#include "proto/proto.h"
#include "sim/sim.h"

/*
 * Each conn by itself: a message has its buffer until it is acknowledged, in order and without a
 * gap; no more are sent than granted, granted than there is room for, posted than the queue holds.
 */
void watch_conns(struct rvcm_carrier *carrier);

/*
 * Both ends of each link: what one has sent and the other not accepted is on its way, message by
 * message; nobody acknowledges what did not arrive, or counts on credit that was not granted. The
 * carriers' devices must be of that net, and nobody else's.
 */
void watch_links(struct sim_net *net);

/* Every slot of the carrier is quiet: no buffer and no read is in use. */
void watch_carrier_empty(struct rvcm_carrier *carrier);

/* Each operation is where the lists say, and is counted once. */
void watch_ep(struct rvcm_ep *ep);

/* Receives that have matched and are being fetched, or filled. */
size_t watch_ep_reading(struct rvcm_ep *ep);

/* Tell of each message that has been taken and not been completed: held, or matched. */
void watch_ep_taken(struct rvcm_ep *ep, void (*tell)(void *ctx, uint64_t source, uint64_t data),
		    void *ctx);

/* Is the peer connected, and has it shown on that link who it is? */
bool watch_peer_proven(const struct rvcm_peer *peer);

/* Is it known where the peer is, and is it the endpoint there, not a former one? */
bool watch_peer_current(const struct rvcm_peer *peer, const struct rvcm_ep *there);

/* Nothing is under way, posted or held. */
void watch_ep_idle(struct rvcm_ep *ep);

/* Every endpoint is closed: nothing of the engine's store is in use. */
void watch_engine_empty(struct rvcm_engine *engine);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a message travels: one pure function of what is known when it can be sent.
 *
 * Eager carries the payload with it and is over for the sender at once. Rendezvous announces the
 * message, and the receiver fetches it when it has a place for it; the memory must stay until then,
 * and must be one piece, since an announcement names one address per rail. Where either does not
 * hold, a copy is announced instead. To oneself the same: eager keeps a copy, rendezvous lets the
 * send wait for its receive, which can then take it from any number of pieces.
 */
#ifndef RVCM_PROTO_CHOOSE_H
#define RVCM_PROTO_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rvcm_choose {
	RVCM_CHOOSE_EAGER,
	RVCM_CHOOSE_RNDV,
	RVCM_CHOOSE_RNDV_COPY,
};

struct rvcm_choose_in {
	size_t length;    /* bytes of payload */
	size_t eager_max; /* longest payload that fits a message */
	uint32_t pieces;  /* that the payload lies in, empty ones not counted */
	bool eager_off;   /* the receiver holds all that it wants to */
	bool inject;      /* the memory is the caller's again when the send returns */
	bool self;        /* to our own endpoint */
};

enum rvcm_choose rvcm_choose(const struct rvcm_choose_in *in);

#endif

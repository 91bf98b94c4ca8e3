/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake: building and judging REQUEST, REPLY, REJECT and HELLO (conn/wire.h). Pure: bytes
 * in, a verdict out; who may connect when is control's business.
 */
#ifndef RVCM_CONN_SHAKE_H
#define RVCM_CONN_SHAKE_H

#include "base/addr.h"
#include "conn/conn.h"
#include "conn/wire.h"

/* A handshake structure in host order. */
struct rvcm_shake {
	enum rvcm_wire_role role;
	uint8_t flags; /* enum rvcm_wire_flag */
	uint8_t link;
	uint16_t caps; /* a REJECT's: enum rvcm_wire_reason */
	struct rvcm_addr name;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES]; /* REPLY only, instead of name.ip */
	uint32_t incarnation;
	uint32_t peer_incarnation;
	uint32_t epoch;
	uint32_t begun;
	uint32_t heard;
	uint16_t window;
	uint16_t slot;
};

/* Encode; the MAC of a REPLY or REJECT runs on over the request it answers (else NULL). */
void rvcm_shake_encode(const struct rvcm_shake *shake, const uint8_t key[RVCM_CONN_KEY_BYTES],
		       const struct rvcm_wire_handshake *request, struct rvcm_wire_handshake *out);

/*
 * Decode what a peer sent as role. NONE, or why not: MALFORMED (too short, another role, a bad
 * field), VERSION, KEY. *shake is set when NONE or KEY is returned.
 */
enum rvcm_wire_reason rvcm_shake_decode(const void *data, size_t bytes, enum rvcm_wire_role role,
					const uint8_t key[RVCM_CONN_KEY_BYTES],
					const struct rvcm_wire_handshake *request,
					struct rvcm_shake *shake);

/* The reason in the private data of a REJECT; NONE if it is not one of ours. */
enum rvcm_wire_reason rvcm_shake_reason(const void *data, size_t bytes);

/* What a reason means to the application of the side that was refused. */
enum rvcm_status rvcm_shake_status(enum rvcm_wire_reason reason);

/* HELLO's MAC for the side with that role (REQUEST: the opener). */
void rvcm_shake_hello_mac(enum rvcm_wire_role role, const uint8_t key[RVCM_CONN_KEY_BYTES],
			  const struct rvcm_wire_handshake *request,
			  const struct rvcm_wire_handshake *reply,
			  const uint8_t nonce[RVCM_WIRE_NONCE_BYTES],
			  uint8_t mac[RVCM_WIRE_MAC_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare TCP socket that speaks MPA and our handshake to the victim of a scene, from either side,
 * step by step, and as wrongly as a test likes. Whatever waits drives the scene.
 */
#ifndef RVCM_FABTESTS_HOSTILE_BARE_H
#define RVCM_FABTESTS_HOSTILE_BARE_H

#include "hostile/scene.h"

#include "conn/shake.h"
#include "dev/soft/mpa.h"

struct bare {
	int fd;
	int server; /* -1: it dials */
	struct rvcm_addr name;
	uint32_t incarnation, epoch;
	uint32_t msn;
	struct rvcm_wire_handshake request, reply;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES];
};

/* It listens where an honest peer of that life would; nothing is connected. */
void bare_open(struct bare *b, uint32_t incarnation);
void bare_close(struct bare *b);
/* Its socket closes, or resets the connection. */
void bare_end(struct bare *b, bool reset);

void bare_write(struct bare *b, const void *data, size_t bytes);
/* So many bytes are there; the stream has ended, whatever came before. */
bool bare_readable(const struct bare *b, size_t bytes);
bool bare_ended(const struct bare *b);

/* All that is in the stream is a BYE, and its end: why. */
enum rvcm_wire_reason bare_take_bye(struct bare *b);

/* An MPA frame with that private data; returns its length. */
size_t bare_mpa(enum rvcm_soft_mpa_kind kind, const void *data, size_t bytes, uint8_t *buf);

/* What an honest peer would say in a handshake. */
struct rvcm_shake bare_shake_of(const struct bare *b, enum rvcm_wire_role role);

/* As opener: connect; make the request; send it, or other private data. */
void bare_dial(struct bare *b);
void bare_request(struct bare *b);
void bare_send_request(struct bare *b, const void *data, size_t bytes);
/* The acceptor's answer; false: it is a reject, with that reason. */
bool bare_take_reply(struct bare *b, enum rvcm_wire_reason *reason);

/* As acceptor: is there a connection? Then its request, and its HELLO's nonce. */
bool bare_accepted(struct bare *b);
void bare_take_request(struct bare *b);
void bare_take_nonce(struct bare *b);

/* A SEND of these bytes; HELLO, with or without proof; a message. */
void bare_send_frame(struct bare *b, const void *data, size_t bytes);
void bare_send_hello(struct bare *b, enum rvcm_wire_role role, uint16_t rails, bool true_mac);
void bare_send_data(struct bare *b);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that breaks the rules, against one carrier: the liar is a bare device that writes its own
 * handshakes and frames; it can also behave, and then break off.
 */
#ifndef RVCM_FABTESTS_SIM_LIAR_H
#define RVCM_FABTESTS_SIM_LIAR_H

#include "conn/conn.h"
#include "conn/shake.h"
#include "sim/sim.h"
#include "unit/warned.h"

extern const uint8_t liar_job_key[RVCM_CONN_KEY_BYTES];

#define VICTIM_HELLO_NS (500 * SIM_MS) /* its hello_timeout */

#define LIAR_OUT   64u
#define LIAR_BYTES 512u

struct victim {
	struct sim_net *net;
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_path *path;
	uint32_t received, downs;
	struct rvcm_conn_cause cause;
	bool woken; /* one of its sides has mail */
	bool lazy;  /* computes: its data side does not move */
	struct test_warned warned;
};

struct liar {
	struct victim *victim;
	struct rvcm_dev *dev;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_qp *qp;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr name;
	struct rvcm_wire_handshake request, reply;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES];
	uint32_t incarnation, epoch;
	uint16_t slot;  /* the number of its endpoint */
	uint32_t takes; /* bytes of a message, as its HELLO says */
	uint8_t flags;  /* of its handshakes: enum rvcm_wire_flag */
	uint32_t begun; /* the conn that its REQUEST goes on with */
	uint32_t hello_ack;
	enum rvcm_dev_event_type last;
	enum rvcm_wire_reason reason;
	struct rvcm_dev_req *req;
	struct rvcm_wire_frame heard;       /* the last frame that arrived */
	struct rvcm_wire_frame hello_frame; /* the last HELLO, and its body */
	struct rvcm_wire_hello hello;
	uint32_t confirmed; /* by the last ACK that was an answer */
	uint16_t bye;       /* what the last BYE said: enum rvcm_wire_reason */
	uint32_t frames;
	struct rvcm_dev_mr *mr; /* of out */
	uint32_t n_out;
	uint8_t out[LIAR_OUT][LIAR_BYTES]; /* what it posted; the oldest is overwritten */
};

/* A carrier that listens on slot 0. */
void victim_open(struct victim *victim, uint64_t seed);
/* That recovers. */
void victim_open_lasting(struct victim *victim, uint64_t seed, uint64_t reconnect_ns);
/* Closes both. */
void victim_close(struct victim *victim, struct liar *liar);

void liar_open(struct liar *liar, struct victim *victim);
/* Let ns of virtual time pass for both. */
void liar_pass(struct liar *liar, uint64_t ns);
void liar_qp(struct liar *liar);
void liar_hang_up(struct liar *liar);
/* Without its victim, which has another. */
void liar_close(struct liar *liar);

/* What an honest peer would put into a handshake. */
struct rvcm_shake liar_shake(const struct liar *liar, enum rvcm_wire_role role);
struct rvcm_wire_frame liar_frame(enum rvcm_wire_kind kind, uint32_t seq, uint32_t ack);
/* A REQUEST as one of another job sends it. */
struct rvcm_wire_handshake liar_stranger(const struct liar *liar);

/* Send a request on a QP of its own, and let the answer come. */
void liar_request(struct liar *liar, const struct rvcm_wire_handshake *request);
/* Connect as an honest peer would, up to HELLO. */
void liar_connect(struct liar *liar);
/* Likewise, as that life, up to REPLY, if there is one: liar->last and reason tell. */
void liar_claim(struct liar *liar, uint32_t incarnation, uint32_t epoch);
/* The victim opens, and the liar accepts as an honest peer would that has used liar->epoch before.
 */
void liar_accept(struct liar *liar);
/* The same in two steps: accept, and say HELLO. */
void liar_take(struct liar *liar);
void liar_take_hello(struct liar *liar);

void liar_post(struct liar *liar, const void *bytes, size_t n);
/* Post, and let it arrive. */
void liar_say(struct liar *liar, const void *bytes, size_t n);
void liar_post_hello(struct liar *liar, bool true_mac);
void liar_hello(struct liar *liar, bool true_mac);
void liar_data(struct liar *liar, uint32_t seq);

/* The link was ended once, as a breach by the peer, with this status and these words. */
void victim_assert_ended(struct victim *victim, enum rvcm_status status, const char *why);
/* The opener was not believed: its link ended, with these words, and nobody else noticed. */
void victim_assert_unproven(struct victim *victim, uint32_t protocol_errors, const char *why);
/* Contacts that control remembers. */
uint32_t victim_contacts(const struct victim *victim);
/* After whatever it did, an honest peer of the same name is served. */
void liar_assert_served(struct liar *liar);

#endif

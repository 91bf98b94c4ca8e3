/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer of conn's that says anything: its request, HELLO and frames, against a carrier on the
 * simulated device. What the fuzzer cannot guess, the MAC over its own bytes, it is given.
 *
 * It must end in a refusal or a link that is ended, once; an honest peer of the same name is
 * served afterwards; closing ends in time.
 */
#include "unit/unit.h"

#include "base/le.h"
#include "conn/mac.h"
#include "fuzz/fuzz.h"
#include "sim/liar.h"

#define STEPS_MAX 24

/* First byte of the input. */
enum {
	MODE_ACCEPT = 1 << 0,  /* the victim opens */
	MODE_REQUEST = 1 << 1, /* the request is the input's */
	MODE_MAC = 1 << 2,     /* with a right MAC */
	MODE_HELLO = 1 << 3,   /* an honest HELLO first */
	MODE_SERVE = 1 << 4,   /* and at the end, an honest peer, unless REQUEST */
	MODE_CROSS = 1 << 5,   /* the victim has something to send when the request comes */
};

/* First byte of a step. */
enum {
	STEP_SEQ = 1 << 0,  /* with the right sequence number */
	STEP_ACK = 1 << 1,  /* acknowledging nothing */
	STEP_PASS = 1 << 2, /* let it arrive before the next */
	STEP_SEND = 1 << 3, /* the victim sends something instead, or, with STEP_MAC, */
	STEP_MAC = 1 << 4, /* the peer connects anew; without STEP_SEND: a HELLO with a right MAC */
	STEP_KIND = 7 << 5, /* kind of the frame, if not 0 */
};

struct run {
	struct fuzz_input in;
	struct victim victim;
	struct liar liar;
	uint32_t next;           /* sequence number of an honest peer */
	struct rvcm_dev_qp *old; /* of the liar's, before it connected anew */
};

static bool up(const struct run *r)
{
	return r->liar.qp && r->liar.last == RVCM_DEV_EVENT_ESTABLISHED;
}

static void victim_send(struct run *r)
{
	struct rvcm_path *path;
	void *buf = NULL;

	if (!rvcm_path_get(r->victim.carrier, 0, &r->liar.name, &path))
		buf = rvcm_path_reserve(path, 20);
	if (!buf)
		return;
	memset(buf, 1, 20);
	rvcm_path_commit(path, 20, false);
}

static void sign(struct rvcm_wire_handshake *wire)
{
	struct rvcm_mac mac;

	memset(wire->mac, 0, sizeof(wire->mac));
	rvcm_mac_init(&mac, liar_job_key);
	rvcm_mac_update(&mac, wire, sizeof(*wire));
	rvcm_mac_final(&mac, wire->mac);
}

/* The request: honest, or the input's, with or without a right MAC. */
static void request(struct run *r, uint8_t mode)
{
	struct rvcm_shake shake = liar_shake(&r->liar, RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake wire;

	rvcm_shake_encode(&shake, liar_job_key, NULL, &wire);
	if (mode & MODE_REQUEST) {
		fuzz_bytes(&r->in, (uint8_t *)&wire, sizeof(wire));
		if (mode & MODE_MAC)
			sign(&wire);
	}
	r->liar.last = RVCM_DEV_EVENT_SRQ_LIMIT;
	liar_request(&r->liar, &wire);
	if (up(r))
		assert_int_equal(r->liar.dev->ops->attach(r->liar.qp), 0);
	else
		liar_hang_up(&r->liar);
}

static void sign_hello(struct run *r, uint8_t *message, size_t n)
{
	struct rvcm_wire_hello *hello = (void *)(message + sizeof(struct rvcm_wire_frame));
	bool opener = !r->liar.req;

	if (n < sizeof(struct rvcm_wire_frame) + sizeof(*hello))
		return;
	if (!opener)
		memcpy(hello->nonce, r->liar.nonce, sizeof(hello->nonce));
	rvcm_shake_hello_mac(opener ? RVCM_WIRE_REQUEST : RVCM_WIRE_REPLY, liar_job_key,
			     &r->liar.request, &r->liar.reply, hello->nonce, hello->mac);
}

/* A request while the last link still stands: an ASK, a restart, or something stale. */
static void request_again(struct run *r)
{
	if (r->old)
		return;
	r->old = r->liar.qp;
	r->liar.qp = NULL;
	r->liar.epoch += fuzz_byte(&r->in);
	r->liar.incarnation += fuzz_byte(&r->in);
	r->next = 0;
	request(r, fuzz_byte(&r->in));
}

static void step(struct run *r)
{
	uint8_t how = fuzz_byte(&r->in), message[LIAR_BYTES] = { 0 };
	struct rvcm_wire_frame *frame = (void *)message;
	size_t n;

	if (how & STEP_SEND && how & STEP_MAC) {
		request_again(r);
		return;
	}
	if (how & STEP_SEND) {
		victim_send(r);
		return;
	}
	n = fuzz_bytes(&r->in, message, fuzz_byte(&r->in));
	if (how & STEP_KIND)
		frame->kind = how >> 5;
	if (how & STEP_SEQ)
		rvcm_le32_put(frame->seq, r->next);
	if (how & STEP_ACK)
		rvcm_le32_put(frame->ack, 0);
	if (how & STEP_MAC)
		sign_hello(r, message, n);
	r->next += frame->kind == RVCM_WIRE_DATA;
	if (r->liar.qp && r->liar.dev->ops->qp_state(r->liar.qp) == RVCM_DEV_QP_RTS)
		liar_post(&r->liar, message, n);
	if (how & STEP_PASS)
		liar_pass(&r->liar, SIM_MS);
}

static void converse(struct run *r, uint8_t mode)
{
	if (mode & MODE_HELLO && !(mode & MODE_ACCEPT))
		liar_hello(&r->liar, true);
	for (int i = 0; i < STEPS_MAX && r->in.left; i++)
		step(r);
	liar_pass(&r->liar, 10 * SIM_MS);
}

/* Of the same name, but another life: it is to be believed whatever was said before. */
static void serve_an_honest_one(struct run *r)
{
	r->liar.incarnation = 0x600d;
	r->liar.req = NULL;
	liar_hang_up(&r->liar);
	for (int i = 0; i < 5; i++) /* time for an attempt of the victim's to be given up */
		liar_pass(&r->liar, SIM_S);
	liar_assert_served(&r->liar);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r = { .in = { data, size } };
	uint8_t mode = fuzz_byte(&r.in);

	victim_open(&r.victim, 1);
	liar_open(&r.liar, &r.victim);
	if (mode & MODE_ACCEPT) {
		victim_send(&r);
		liar_pass(&r.liar, 10 * SIM_MS);
		liar_accept(&r.liar);
	} else {
		if (mode & MODE_CROSS)
			victim_send(&r);
		request(&r, mode);
	}
	if (up(&r))
		converse(&r, mode);
	fuzz_require(r.victim.downs <= STEPS_MAX);
	if (r.old)
		r.liar.dev->ops->qp_close(r.old);
	if (mode & MODE_SERVE && !(mode & MODE_REQUEST))
		serve_an_honest_one(&r);
	victim_close(&r.victim, &r.liar);
	return 0;
}

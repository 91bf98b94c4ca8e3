/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/liar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn_impl.h"
#include "sim/env.h"
#include "unit/unit.h"

const uint8_t liar_job_key[RVCM_CONN_KEY_BYTES] = "a job's own key";

static uint64_t env_now(void *ctx)
{
	return sim_now(((struct victim *)ctx)->net);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	sim_env_random(((struct victim *)ctx)->net, buf, bytes);
}

static void env_wake(void *ctx)
{
	((struct victim *)ctx)->woken = true;
}

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	((struct victim *)ctx)->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void on_recv(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	(void)path;
	(void)data;
	(void)bytes;
	((struct victim *)ctx)->received++;
}

static void on_read_done(void *ctx, struct rvcm_path *path, void *cookie, enum rvcm_status status)
{
	(void)ctx;
	(void)path;
	(void)cookie;
	(void)status;
}

static void on_down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	struct victim *victim = ctx;

	(void)path;
	victim->downs++;
	victim->cause = *cause;
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.read_done = on_read_done,
	.down = on_down,
};

void victim_open_lasting(struct victim *victim, uint64_t seed, uint64_t reconnect_ns)
{
	struct sim_conf conf = { .seed = seed };
	struct rvcm_carrier_attr attr = {
		.devs = &victim->dev,
		.n_devs = 1,
		.message_bytes_max = 1000,
		.window_max = 8,
		.connect_timeout_ns = SIM_S,
		.hello_timeout_ns = VICTIM_HELLO_NS,
		.reconnect_timeout_ns = reconnect_ns,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = { env_now, env_random, env_wake, env_wake, victim },
		.sink = &sink,
		.sink_ctx = victim,
	};

	memset(victim, 0, sizeof(*victim));
	test_warned_begin(&victim->warned);
	victim->net = sim_net_open(&conf);
	victim->dev = sim_dev_open(victim->net, NULL);
	memcpy(attr.job_key, liar_job_key, sizeof(liar_job_key));
	assert_int_equal(rvcm_carrier_open(&attr, &victim->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(victim->carrier, 0, &victim->name), 0);
}

void victim_open(struct victim *victim, uint64_t seed)
{
	victim_open_lasting(victim, seed, 0);
}

static void liar_event(struct liar *liar, const struct rvcm_dev_event *ev)
{
	if (ev->type == RVCM_DEV_EVENT_ESTABLISHED && ev->private_bytes >= sizeof(liar->reply))
		memcpy(&liar->reply, ev->private_data, sizeof(liar->reply));
	if (ev->type == RVCM_DEV_EVENT_CONNECT_REQUEST) {
		memcpy(&liar->request, ev->private_data, sizeof(liar->request));
		liar->req = ev->req;
	}
	if (ev->type == RVCM_DEV_EVENT_REJECTED)
		liar->reason = rvcm_shake_reason(ev->private_data, ev->private_bytes);
	if (ev->type != RVCM_DEV_EVENT_ADDR_RESOLVED && ev->type != RVCM_DEV_EVENT_ROUTE_RESOLVED &&
	    ev->type != RVCM_DEV_EVENT_CONNECT_RESPONSE)
		liar->last = ev->type;
}

static void liar_poll(struct liar *liar)
{
	struct rvcm_dev_event ev;
	struct rvcm_dev_wc wc;

	while (liar->dev->ops->cm_poll(liar->dev, &ev) > 0)
		liar_event(liar, &ev);
	while (liar->dev->ops->cq_poll(liar->cq, &wc, 1) > 0) {
		if (wc.op != RVCM_DEV_OP_RECV || wc.status != RVCM_STATUS_OK)
			continue;
		memcpy(&liar->heard, wc.data, sizeof(liar->heard));
		if (liar->heard.kind == RVCM_WIRE_HELLO)
			liar->hello_frame = liar->heard;
		if (liar->heard.kind == RVCM_WIRE_HELLO)
			memcpy(&liar->hello, (const uint8_t *)wc.data + sizeof(liar->heard),
			       sizeof(liar->hello));
		if (liar->heard.kind == RVCM_WIRE_BYE && wc.length > sizeof(liar->heard))
			liar->bye = rvcm_le16_get((const uint8_t *)wc.data + sizeof(liar->heard));
		if (liar->heard.kind == RVCM_WIRE_ACK &&
		    wc.length == sizeof(liar->heard) + sizeof(struct rvcm_wire_ack))
			liar->confirmed =
				rvcm_le32_get((const uint8_t *)wc.data + sizeof(liar->heard) + 4);
		liar->frames++;
		liar->dev->ops->rx_release(liar->pool, wc.rx);
	}
}

/* Let ns of virtual time pass for both. */
void liar_pass(struct liar *liar, uint64_t ns)
{
	struct victim *victim = liar->victim;
	uint64_t end = sim_now(victim->net) + ns;

	while (sim_now(victim->net) < end) {
		uint64_t next;

		do {
			victim->woken = false;
			next = rvcm_carrier_control(victim->carrier);
			if (!victim->lazy)
				rvcm_carrier_progress(victim->carrier);
		} while (victim->woken);
		liar_poll(liar);
		sim_step_by(victim->net, next < end ? next : end);
	}
}

void liar_open(struct liar *liar, struct victim *victim)
{
	struct rvcm_dev_pool_attr pool = { .message_bytes_max = 2000, .count = 64 };
	struct rvcm_dev_mr_attr mr = { .addr = liar->out, .length = sizeof(liar->out) };

	memset(liar, 0, sizeof(*liar));
	liar->victim = victim;
	liar->dev = sim_dev_open(victim->net, NULL);
	liar->incarnation = 77;
	liar->epoch = 1;
	liar->name = liar->dev->attr.addr;
	liar->last = RVCM_DEV_EVENT_SRQ_LIMIT;
	assert_int_equal(liar->dev->ops->cq_open(liar->dev, 256, &liar->cq), 0);
	assert_int_equal(liar->dev->ops->pool_open(liar->dev, &pool, &liar->pool), 0);
	assert_int_equal(liar->dev->ops->pool_grow(liar->pool, pool.count), 0);
	assert_int_equal(liar->dev->ops->mr_reg(liar->dev, &mr, &liar->mr), 0);
	assert_int_equal(liar->dev->ops->listen(liar->dev, &liar->name, 8, liar, &liar->listener),
			 0);
}

void liar_qp(struct liar *liar)
{
	struct rvcm_dev_qp_attr attr = { .cq = liar->cq,
					 .pool = liar->pool,
					 .sq_depth = 64,
					 .rq_depth = 64,
					 .sge_max = 1,
					 .rnr_timeout_ns = SIM_S,
					 .ctx = liar };

	assert_int_equal(liar->dev->ops->qp_open(liar->dev, &attr, &liar->qp), 0);
}

void liar_hang_up(struct liar *liar)
{
	if (liar->qp)
		liar->dev->ops->qp_close(liar->qp);
	liar->qp = NULL;
}

void liar_close(struct liar *liar)
{
	liar_hang_up(liar);
	liar->dev->ops->listener_close(liar->listener);
	liar->dev->ops->pool_close(liar->pool);
	liar->dev->ops->cq_close(liar->cq);
	liar->dev->ops->mr_dereg(liar->mr);
	liar->dev->ops->close(liar->dev);
}

void victim_close(struct victim *victim, struct liar *liar)
{
	rvcm_carrier_unlisten(victim->carrier, 0);
	for (int i = 0; !rvcm_carrier_quiet(victim->carrier, 0); i++) {
		liar_pass(liar, SIM_MS);
		assert_true(i < 5000);
	}
	rvcm_carrier_close(victim->carrier);
	victim->dev->ops->close(victim->dev);
	liar_close(liar);
	sim_net_close(victim->net);
	rvcm_log_set_sink(NULL);
}

struct rvcm_shake liar_shake(const struct liar *liar, enum rvcm_wire_role role)
{
	struct rvcm_shake shake = {
		.role = role,
		.caps = (uint16_t)liar->dev->attr.caps,
		.name = liar->name,
		.incarnation = liar->incarnation,
		.epoch = liar->epoch,
		.window = 4,
		.slot = liar->slot,
		.flags = liar->flags,
	};

	if (role == RVCM_WIRE_REPLY) {
		shake.begun = rvcm_le32_get(liar->request.begun);
		shake.peer_incarnation = rvcm_le32_get(liar->request.incarnation);
	}
	if (role != RVCM_WIRE_REQUEST || !liar->begun)
		return shake;
	shake.begun = liar->begun;
	shake.peer_incarnation = rvcm_le32_get(liar->reply.incarnation);
	shake.window = rvcm_le16_get(liar->reply.slot);
	return shake;
}

struct rvcm_wire_handshake liar_stranger(const struct liar *liar)
{
	static const uint8_t other_key[RVCM_CONN_KEY_BYTES] = "another job's";
	struct rvcm_shake shake = liar_shake(liar, RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake request;

	rvcm_shake_encode(&shake, other_key, NULL, &request);
	return request;
}

void liar_request(struct liar *liar, const struct rvcm_wire_handshake *request)
{
	liar->request = *request;
	liar_qp(liar);
	assert_int_equal(liar->dev->ops->connect(liar->qp, &liar->victim->name, &liar->request,
						 sizeof(liar->request)),
			 0);
	liar_pass(liar, 10 * SIM_MS);
}

/* Connect as an honest peer would. */
void liar_connect(struct liar *liar)
{
	struct rvcm_shake shake = liar_shake(liar, RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake request;

	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_request(liar, &request);
	assert_int_equal(liar->last, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(liar->dev->ops->attach(liar->qp), 0);
}

void liar_claim(struct liar *liar, uint32_t incarnation, uint32_t epoch)
{
	struct rvcm_wire_handshake request;
	struct rvcm_shake shake;

	liar->incarnation = incarnation;
	liar->epoch = epoch;
	shake = liar_shake(liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar->last = RVCM_DEV_EVENT_SRQ_LIMIT;
	liar->reason = RVCM_WIRE_REASON_NONE;
	liar_request(liar, &request);
	if (liar->last == RVCM_DEV_EVENT_ESTABLISHED)
		assert_int_equal(liar->dev->ops->attach(liar->qp), 0);
}

void liar_post(struct liar *liar, const void *bytes, size_t n)
{
	struct rvcm_dev_sge sge = { .addr = liar->out[liar->n_out++ % LIAR_OUT],
				    .length = n,
				    .mr = liar->mr };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .n_sge = 1, .sge = &sge };

	assert_true(n <= LIAR_BYTES);
	memcpy(sge.addr, bytes, n);

	assert_int_equal(liar->dev->ops->post(liar->qp, &wr), 0);
}

void liar_say(struct liar *liar, const void *bytes, size_t n)
{
	liar_post(liar, bytes, n);
	liar_pass(liar, 5 * SIM_MS);
}

struct rvcm_wire_frame liar_frame(enum rvcm_wire_kind kind, uint32_t seq, uint32_t ack)
{
	struct rvcm_wire_frame f = { .kind = (uint8_t)kind };

	rvcm_le32_put(f.seq, seq);
	rvcm_le32_put(f.ack, ack);
	rvcm_le16_put(f.window, 4);
	return f;
}

/* HELLO's frame. */
static struct rvcm_wire_frame hello_frame(const struct liar *liar)
{
	struct rvcm_wire_frame frame = liar_frame(RVCM_WIRE_HELLO, 0, liar->hello_ack);

	rvcm_le16_put(frame.src_slot, (uint16_t)liar->takes);
	rvcm_le16_put(frame.dst_slot, (uint16_t)(liar->takes >> 16));
	return frame;
}

void liar_post_hello(struct liar *liar, bool true_mac)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = hello_frame(liar) };

	memcpy(message.hello.nonce, liar->nonce, sizeof(liar->nonce));
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, liar_job_key, &liar->request, &liar->reply,
			     liar->nonce, message.hello.mac);
	message.hello.mac[0] ^= !true_mac;
	liar_post(liar, &message, sizeof(message));
}

void liar_hello(struct liar *liar, bool true_mac)
{
	liar_post_hello(liar, true_mac);
	liar_pass(liar, 5 * SIM_MS);
}

void liar_data(struct liar *liar, uint32_t seq)
{
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_DATA, seq, 0);

	liar_say(liar, &f, sizeof(f));
}

void victim_assert_ended(struct victim *victim, enum rvcm_status status, const char *why)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(victim->carrier, &stats);
	assert_int_equal(stats.protocol_errors, 1);
	assert_int_equal(victim->downs, 1);
	assert_int_equal(victim->cause.status, status);
	assert_non_null(strstr(victim->cause.text, why));
	assert_false(victim->path->up);
}

void victim_assert_unproven(struct victim *victim, uint32_t protocol_errors, const char *why)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(victim->carrier, &stats);
	assert_int_equal(stats.protocol_errors, protocol_errors);
	assert_int_equal(stats.unproven, 1);
	assert_int_equal(victim->received, 0);
	assert_int_equal(victim->downs, 0);
	assert_non_null(strstr(victim->warned.text, why));
}

uint32_t victim_contacts(const struct victim *victim)
{
	struct rvcm_hash_node *node = NULL;
	uint32_t n = 0;

	while ((node = rvcm_hash_next(&victim->carrier->contacts, node)))
		n++;
	return n;
}

/* After whatever it did, an honest peer of the same name is served. */
void liar_assert_served(struct liar *liar)
{
	struct victim *victim = liar->victim;
	uint32_t before = victim->received;

	liar_hang_up(liar);
	liar_pass(liar, 100 * SIM_MS);
	liar->epoch += 10;
	liar_connect(liar);
	liar_hello(liar, true);
	liar_data(liar, 0);
	assert_int_equal(victim->received, before + 1);
}

void liar_take(struct liar *liar)
{
	struct rvcm_shake shake = liar_shake(liar, RVCM_WIRE_REPLY);

	assert_int_equal(liar->last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	if (shake.epoch < rvcm_le32_get(liar->request.epoch))
		shake.epoch = rvcm_le32_get(liar->request.epoch);
	rvcm_shake_encode(&shake, liar_job_key, &liar->request, &liar->reply);
	liar_qp(liar);
	assert_int_equal(
		liar->dev->ops->accept(liar->req, liar->qp, &liar->reply, sizeof(liar->reply)), 0);
	liar_pass(liar, 10 * SIM_MS);
	assert_int_equal(liar->dev->ops->attach(liar->qp), 0);
	liar_pass(liar, 10 * SIM_MS);
	/* PATH is behind it, if the victim had a path to us before. */
	assert_true(liar->heard.kind == RVCM_WIRE_HELLO || liar->heard.kind == RVCM_WIRE_PATH);
}

void liar_take_hello(struct liar *liar)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = hello_frame(liar) };

	memcpy(liar->nonce, liar->hello.nonce, sizeof(liar->nonce));
	memcpy(message.hello.nonce, liar->nonce, sizeof(liar->nonce));
	rvcm_shake_hello_mac(RVCM_WIRE_REPLY, liar_job_key, &liar->request, &liar->reply,
			     liar->nonce, message.hello.mac);
	liar_say(liar, &message, sizeof(message));
}

void liar_accept(struct liar *liar)
{
	liar_take(liar);
	liar_take_hello(liar);
}

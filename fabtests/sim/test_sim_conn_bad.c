/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that breaks the rules, against one carrier: the liar is a bare device that writes its own
 * handshakes and frames. Whatever it says, the carrier ends that link with a reason and goes on.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn.h"
#include "conn/shake.h"
#include "sim/sim.h"

static const uint8_t job_key[RVCM_CONN_KEY_BYTES] = "a job's own key";

struct victim {
	struct sim_net *net;
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_conn *conn;
	uint32_t received, downs;
	struct rvcm_conn_cause cause;
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
	enum rvcm_dev_event_type last;
	enum rvcm_wire_reason reason;
	struct rvcm_dev_req *req;
	struct rvcm_wire_frame heard; /* the last frame that arrived */
	struct rvcm_wire_hello hello; /* and the last HELLO's body */
	uint32_t frames;
};

static uint64_t env_now(void *ctx)
{
	return sim_now(((struct victim *)ctx)->net);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	struct rvcm_rng *rng = sim_net_rng(((struct victim *)ctx)->net);

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)rvcm_rng_next(rng);
}

static void env_wake(void *ctx)
{
	(void)ctx;
}

static void on_incoming(void *ctx, struct rvcm_conn *conn)
{
	((struct victim *)ctx)->conn = conn;
}

static void on_ready(void *ctx, struct rvcm_conn *conn)
{
	(void)ctx;
	(void)conn;
}

static void on_recv(void *ctx, struct rvcm_conn *conn, const struct rvcm_conn_rx *rx)
{
	(void)conn;
	(void)rx;
	((struct victim *)ctx)->received++;
}

static void on_read_done(void *ctx, struct rvcm_conn *conn, void *cookie, enum rvcm_status status)
{
	(void)ctx;
	(void)conn;
	(void)cookie;
	(void)status;
}

static void on_down(void *ctx, struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	struct victim *victim = ctx;

	(void)conn;
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

static void victim_open(struct victim *victim, uint64_t seed)
{
	struct sim_conf conf = { .seed = seed };
	struct rvcm_carrier_attr attr = {
		.devs = &victim->dev,
		.n_devs = 1,
		.message_bytes_max = 1000,
		.window_max = 8,
		.connect_timeout_ns = SIM_S,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = { env_now, env_random, env_wake, env_wake, victim },
		.sink = &sink,
		.sink_ctx = victim,
	};

	memset(victim, 0, sizeof(*victim));
	victim->net = sim_net_open(&conf);
	victim->dev = sim_dev_open(victim->net, NULL);
	memcpy(attr.job_key, job_key, sizeof(job_key));
	assert_int_equal(rvcm_carrier_open(&attr, &victim->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(victim->carrier, 0, &victim->name), 0);
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
			memcpy(&liar->hello, (const uint8_t *)wc.data + sizeof(liar->heard),
			       sizeof(liar->hello));
		liar->frames++;
		liar->dev->ops->rx_release(liar->pool, wc.rx);
	}
}

/* Let ns of virtual time pass for both. */
static void pass(struct liar *liar, uint64_t ns)
{
	struct victim *victim = liar->victim;
	uint64_t end = sim_now(victim->net) + ns;

	while (sim_now(victim->net) < end) {
		uint64_t next = rvcm_carrier_control(victim->carrier);

		rvcm_carrier_progress(victim->carrier);
		liar_poll(liar);
		sim_step_by(victim->net, next < end ? next : end);
	}
}

static void liar_open(struct liar *liar, struct victim *victim)
{
	struct rvcm_dev_pool_attr pool = { .message_bytes_max = 2000, .count = 64 };

	memset(liar, 0, sizeof(*liar));
	liar->victim = victim;
	liar->dev = sim_dev_open(victim->net, NULL);
	liar->incarnation = 77;
	liar->epoch = 1;
	liar->name = liar->dev->attr.addr;
	liar->last = RVCM_DEV_EVENT_SRQ_LIMIT;
	assert_int_equal(liar->dev->ops->cq_open(liar->dev, 256, &liar->cq), 0);
	assert_int_equal(liar->dev->ops->pool_open(liar->dev, &pool, &liar->pool), 0);
	assert_int_equal(liar->dev->ops->listen(liar->dev, &liar->name, 8, liar, &liar->listener),
			 0);
}

static void liar_qp(struct liar *liar)
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

static void liar_hang_up(struct liar *liar)
{
	if (liar->qp)
		liar->dev->ops->qp_close(liar->qp);
	liar->qp = NULL;
}

static void liar_close(struct liar *liar)
{
	liar_hang_up(liar);
	liar->dev->ops->listener_close(liar->listener);
	liar->dev->ops->pool_close(liar->pool);
	liar->dev->ops->cq_close(liar->cq);
	liar->dev->ops->close(liar->dev);
}

static void victim_close(struct victim *victim, struct liar *liar)
{
	rvcm_carrier_unlisten(victim->carrier, 0);
	for (int i = 0; !rvcm_carrier_quiet(victim->carrier, 0); i++) {
		pass(liar, SIM_MS);
		assert_true(i < 5000);
	}
	rvcm_carrier_close(victim->carrier);
	victim->dev->ops->close(victim->dev);
	liar_close(liar);
	sim_net_close(victim->net);
}

static struct rvcm_shake honest(const struct liar *liar, enum rvcm_wire_role role)
{
	struct rvcm_shake shake = {
		.role = role,
		.name = liar->name,
		.incarnation = liar->incarnation,
		.epoch = liar->epoch,
		.window = 4,
	};

	return shake;
}

static void send_request(struct liar *liar, const struct rvcm_wire_handshake *request)
{
	liar->request = *request;
	liar_qp(liar);
	assert_int_equal(liar->dev->ops->connect(liar->qp, &liar->victim->name, &liar->request,
						 sizeof(liar->request)),
			 0);
	pass(liar, 10 * SIM_MS);
}

/* Connect as an honest peer would. */
static void connect_honestly(struct liar *liar)
{
	struct rvcm_shake shake = honest(liar, RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake request;

	rvcm_shake_encode(&shake, job_key, NULL, &request);
	send_request(liar, &request);
	assert_int_equal(liar->last, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(liar->dev->ops->attach(liar->qp), 0);
}

static void post(struct liar *liar, const void *bytes, size_t n)
{
	struct rvcm_dev_sge sge = { .addr = (void *)bytes, .length = n };
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_INLINE, .n_sge = 1, .sge = &sge
	};

	assert_int_equal(liar->dev->ops->post(liar->qp, &wr), 0);
}

static void say(struct liar *liar, const void *bytes, size_t n)
{
	post(liar, bytes, n);
	pass(liar, 5 * SIM_MS);
}

static struct rvcm_wire_frame frame(enum rvcm_wire_kind kind, uint32_t seq, uint32_t ack)
{
	struct rvcm_wire_frame f = { .kind = (uint8_t)kind };

	rvcm_le32_put(f.seq, seq);
	rvcm_le32_put(f.ack, ack);
	rvcm_le16_put(f.window, 4);
	return f;
}

static void post_hello(struct liar *liar, bool true_mac)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = frame(RVCM_WIRE_HELLO, 0, 0) };

	memcpy(message.hello.nonce, liar->nonce, sizeof(liar->nonce));
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, job_key, &liar->request, &liar->reply, liar->nonce,
			     message.hello.mac);
	message.hello.mac[0] ^= !true_mac;
	post(liar, &message, sizeof(message));
}

static void say_hello(struct liar *liar, bool true_mac)
{
	post_hello(liar, true_mac);
	pass(liar, 5 * SIM_MS);
}

static void say_data(struct liar *liar, uint32_t seq)
{
	struct rvcm_wire_frame f = frame(RVCM_WIRE_DATA, seq, 0);

	say(liar, &f, sizeof(f));
}

static void assert_ended(struct victim *victim, enum rvcm_status status, const char *why)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(victim->carrier, &stats);
	assert_int_equal(stats.protocol_errors, 1);
	assert_int_equal(victim->downs, 1);
	assert_int_equal(victim->cause.status, status);
	assert_non_null(strstr(victim->cause.text, why));
	assert_false(victim->conn->up);
}

/* After whatever it did, an honest peer of the same name is served. */
static void assert_goes_on(struct liar *liar)
{
	struct victim *victim = liar->victim;
	uint32_t before = victim->received;

	liar_hang_up(liar);
	pass(liar, 100 * SIM_MS);
	liar->epoch += 10;
	connect_honestly(liar);
	say_hello(liar, true);
	say_data(liar, 0);
	assert_int_equal(victim->received, before + 1);
}

#define WITH_LINK(hello)           \
	struct victim victim;      \
	struct liar liar;          \
	(void)state;               \
	victim_open(&victim, 1);   \
	liar_open(&liar, &victim); \
	connect_honestly(&liar);   \
	if (hello)                 \
	say_hello(&liar, true)

static void an_honest_peer_is_served(void **state)
{
	WITH_LINK(true);
	say_data(&liar, 0);
	say_data(&liar, 1);
	assert_int_equal(victim.received, 2);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

static void data_before_hello(void **state)
{
	WITH_LINK(false);
	say_data(&liar, 0);
	assert_int_equal(victim.received, 0);
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "HELLO");
	assert_goes_on(&liar);
	victim_close(&victim, &liar);
}

static void hello_without_the_key(void **state)
{
	WITH_LINK(false);
	say_hello(&liar, false);
	assert_ended(&victim, RVCM_STATUS_REJECTED_KEY, "proof");
	assert_goes_on(&liar);
	victim_close(&victim, &liar);
}

static void a_gap_in_sequence(void **state)
{
	WITH_LINK(true);
	say_data(&liar, 1);
	assert_int_equal(victim.received, 0);
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "sequence");
	assert_goes_on(&liar);
	victim_close(&victim, &liar);
}

static void a_repeated_message(void **state)
{
	WITH_LINK(true);
	say_data(&liar, 0);
	say_data(&liar, 0);
	assert_int_equal(victim.received, 1);
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "sequence");
	victim_close(&victim, &liar);
}

static void an_acknowledgement_of_nothing(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = frame(RVCM_WIRE_ACK, 0, 1);

	say(&liar, &f, sizeof(f));
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "acknowledges");
	victim_close(&victim, &liar);
}

static void an_unknown_kind(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = frame((enum rvcm_wire_kind)99, 0, 0);

	say(&liar, &f, sizeof(f));
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "kind");
	assert_goes_on(&liar);
	victim_close(&victim, &liar);
}

static void half_a_header(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = frame(RVCM_WIRE_DATA, 0, 0);

	say(&liar, &f, sizeof(f) - 1);
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "header");
	victim_close(&victim, &liar);
}

static void reserved_flags(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = frame(RVCM_WIRE_DATA, 0, 0);

	f.flags = 1;
	say(&liar, &f, sizeof(f));
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "header");
	victim_close(&victim, &liar);
}

/*
 * The first grant is of 4. When all arrive in one batch nothing acknowledges in between, but half
 * of the grant being used up doubles it: that is 8, the most there is here.
 */
static void more_than_its_credit(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f[12];
	struct rvcm_dev_sge sge = { .length = sizeof(f[0]) };
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_INLINE, .n_sge = 1, .sge = &sge
	};

	sim_net_conf(victim.net)->eager_polls = true;
	for (uint32_t i = 0; i < 12; i++) {
		f[i] = frame(RVCM_WIRE_DATA, i, 0);
		sge.addr = &f[i];
		assert_int_equal(liar.dev->ops->post(liar.qp, &wr), 0);
	}
	sim_run(victim.net, 10 * SIM_MS);
	pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.received, 8);
	assert_ended(&victim, RVCM_STATUS_PROTOCOL, "credit");
	victim_close(&victim, &liar);
}

/* An acknowledgement on another frame is no answer, even where it tells all there is to tell. */
static void a_heartbeat_is_answered_by_an_ack(void **state)
{
	WITH_LINK(false);
	struct rvcm_wire_frame f = frame(RVCM_WIRE_HEARTBEAT, 0, 0);

	sim_net_conf(victim.net)->eager_polls = true;
	post_hello(&liar, true);
	post(&liar, &f, sizeof(f));
	sim_run(victim.net,
		10 * SIM_MS); /* both are there when the victim looks, and HELLO is due */
	pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.frames, 2);
	assert_int_equal(liar.heard.kind, RVCM_WIRE_ACK);
	victim_close(&victim, &liar);
}

/* What somebody recorded of an honest connection proves nothing. */
static void a_recorded_exchange(void **state)
{
	struct rvcm_wire_handshake request, reply;
	WITH_LINK(true);

	request = liar.request;
	reply = liar.reply;
	liar_hang_up(&liar);
	pass(&liar, 100 * SIM_MS);
	send_request(&liar, &request);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	liar_hang_up(&liar);
	/* Even where the request is believed, the acceptor's nonce is another: HELLO fails. */
	liar.epoch = 9;
	connect_honestly(&liar);
	assert_memory_not_equal(reply.address, liar.reply.address, sizeof(reply.address));
	liar.reply = reply;
	victim.downs = 0; /* one was for hanging up */
	say_hello(&liar, true);
	assert_ended(&victim, RVCM_STATUS_REJECTED_KEY, "proof");
	victim_close(&victim, &liar);
}

static void requests_that_are_refused(void **state)
{
	static const uint8_t other_key[RVCM_CONN_KEY_BYTES] = "another job's";
	struct rvcm_wire_handshake request;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	shake = honest(&liar, RVCM_WIRE_REQUEST);

	rvcm_shake_encode(&shake, other_key, NULL, &request);
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_KEY);
	liar_hang_up(&liar);

	rvcm_shake_encode(&shake, job_key, NULL, &request);
	request.version[0]++;
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_VERSION);
	liar_hang_up(&liar);

	memset(&request, 0x47, sizeof(request));
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_MALFORMED);
	liar_hang_up(&liar);

	shake.peer_incarnation = 12345;
	rvcm_shake_encode(&shake, job_key, NULL, &request);
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	liar_hang_up(&liar);

	shake = honest(&liar, RVCM_WIRE_REQUEST);
	shake.name = victim.name;
	rvcm_shake_encode(&shake, job_key, NULL, &request);
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_NAME);
	assert_goes_on(&liar);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/* The victim opens, and the acceptor's reply is not one. */
static void a_reply_that_is_not_valid(void **state)
{
	struct rvcm_wire_handshake reply;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	assert_int_equal(rvcm_conn_get(victim.carrier, 0, &liar.name, &victim.conn), 0);
	assert_null(rvcm_conn_reserve(victim.conn, 10));
	pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	shake = honest(&liar, RVCM_WIRE_REPLY);
	shake.epoch = 1;
	rvcm_shake_encode(&shake, job_key, NULL, &reply); /* not bound to the request */
	liar_qp(&liar);
	assert_int_equal(liar.dev->ops->accept(liar.req, liar.qp, &reply, sizeof(reply)), 0);
	pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.downs, 1);
	assert_int_equal(victim.cause.status, RVCM_STATUS_REJECTED_KEY);
	assert_false(victim.conn->up);
	victim_close(&victim, &liar);
}

/* The victim opens, and the liar accepts as an honest peer would that has used liar->epoch before.
 */
static void accept_honestly(struct liar *liar)
{
	struct rvcm_shake shake = honest(liar, RVCM_WIRE_REPLY);
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = frame(RVCM_WIRE_HELLO, 0, 0) };

	assert_int_equal(liar->last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	if (shake.epoch < rvcm_le32_get(liar->request.epoch))
		shake.epoch = rvcm_le32_get(liar->request.epoch);
	rvcm_shake_encode(&shake, job_key, &liar->request, &liar->reply);
	liar_qp(liar);
	assert_int_equal(
		liar->dev->ops->accept(liar->req, liar->qp, &liar->reply, sizeof(liar->reply)), 0);
	pass(liar, 10 * SIM_MS);
	assert_int_equal(liar->dev->ops->attach(liar->qp), 0);
	pass(liar, 10 * SIM_MS);
	assert_int_equal(liar->heard.kind, RVCM_WIRE_HELLO);
	memcpy(liar->nonce, liar->hello.nonce, sizeof(liar->nonce));
	memcpy(message.hello.nonce, liar->nonce, sizeof(liar->nonce));
	rvcm_shake_hello_mac(RVCM_WIRE_REPLY, job_key, &liar->request, &liar->reply, liar->nonce,
			     message.hello.mac);
	say(liar, &message, sizeof(message));
}

/*
 * Two attempts crossed, the victim's won; the loser's request has the higher epoch, and lay in the
 * queue until the winner's link was up.
 */
static void a_request_that_lost_and_comes_late(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_dev_qp *link;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	liar.epoch = 9;
	assert_int_equal(rvcm_conn_get(victim.carrier, 0, &liar.name, &victim.conn), 0);
	assert_null(rvcm_conn_reserve(victim.conn, 10));
	pass(&liar, 10 * SIM_MS);
	accept_honestly(&liar);
	assert_true(victim.conn->up);
	link = liar.qp;
	shake = honest(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, job_key, NULL, &request);
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	assert_int_equal(victim.downs, 0);
	assert_true(victim.conn->up);
	liar_hang_up(&liar);
	liar.qp = link;
	say_data(&liar, 0);
	assert_int_equal(victim.received, 1);
	victim_close(&victim, &liar);
}

static void a_reply_tells_the_epochs_used(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	sim_dev_refuse(liar.dev, SIM_REFUSE_NOT_LISTENING, 3);
	assert_int_equal(rvcm_conn_get(victim.carrier, 0, &liar.name, &victim.conn), 0);
	assert_null(rvcm_conn_reserve(victim.conn, 10));
	while (liar.last != RVCM_DEV_EVENT_CONNECT_REQUEST)
		pass(&liar, SIM_MS);
	assert_int_equal(rvcm_le32_get(liar.request.epoch), 4);
	assert_int_equal(liar.dev->ops->reject(liar.req, NULL, 0), 0);
	pass(&liar, 10 * SIM_MS);
	connect_honestly(&liar);
	assert_int_equal(rvcm_le32_get(liar.request.epoch), 1);
	assert_in_range(rvcm_le32_get(liar.reply.epoch), 4, 5);
	victim_close(&victim, &liar);
}

/* What we have to send waits out an attempt that its opener has abandoned. */
static void an_abandoned_attempt_loses_nothing(void **state)
{
	WITH_LINK(false);
	pass(&liar, SIM_MS);
	assert_null(rvcm_conn_reserve(victim.conn, 10));
	liar_hang_up(&liar);
	pass(&liar, 5 * SIM_MS);
	assert_int_equal(victim.downs, 0);
	/* It does not come back by itself: so the victim opens. */
	pass(&liar, 100 * SIM_MS);
	accept_honestly(&liar);
	assert_true(victim.conn->up);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/* The peer died, and came back with another incarnation; then a request of its former life arrives.
 */
static void a_request_from_a_former_life(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_dev_qp *link;
	struct rvcm_shake shake;
	WITH_LINK(true);

	liar.epoch = 50;
	shake = honest(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, job_key, NULL, &request);
	liar_hang_up(&liar);
	pass(&liar, 100 * SIM_MS);
	assert_int_equal(victim.downs, 1);
	liar.incarnation++;
	liar.epoch = 1;
	assert_null(rvcm_conn_reserve(victim.conn, 10));
	pass(&liar, 100 * SIM_MS);
	accept_honestly(&liar);
	assert_true(victim.conn->up);
	link = liar.qp;
	send_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	assert_int_equal(victim.downs, 1);
	assert_true(victim.conn->up);
	liar_hang_up(&liar);
	liar.qp = link;
	victim_close(&victim, &liar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_peer_is_served),
		cmocka_unit_test(data_before_hello),
		cmocka_unit_test(hello_without_the_key),
		cmocka_unit_test(a_gap_in_sequence),
		cmocka_unit_test(a_repeated_message),
		cmocka_unit_test(an_acknowledgement_of_nothing),
		cmocka_unit_test(an_unknown_kind),
		cmocka_unit_test(half_a_header),
		cmocka_unit_test(reserved_flags),
		cmocka_unit_test(more_than_its_credit),
		cmocka_unit_test(a_heartbeat_is_answered_by_an_ack),
		cmocka_unit_test(a_recorded_exchange),
		cmocka_unit_test(requests_that_are_refused),
		cmocka_unit_test(a_reply_that_is_not_valid),
		cmocka_unit_test(a_request_that_lost_and_comes_late),
		cmocka_unit_test(a_reply_tells_the_epochs_used),
		cmocka_unit_test(an_abandoned_attempt_loses_nothing),
		cmocka_unit_test(a_request_from_a_former_life),
	};

	return cmocka_run_group_tests_name("sim_conn_bad", tests, NULL, NULL);
}

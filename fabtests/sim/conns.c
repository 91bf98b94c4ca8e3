/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "sim/conns.h"
#include "sim/env.h"
#include "sim/watch.h"

#define CLOSE_NS (5 * SIM_S)
#define BUSY_NS  SIM_MS
#define IDLE_NS  (20 * SIM_MS)

static uint64_t below(struct conns *c, uint64_t n)
{
	return rvcm_rng_below(sim_net_rng(c->net), n);
}

/* -- what they tell -------------------------------------------------------------------------- */

/* NULL: the host is a ghost, and nobody listens. */
static struct conns_peer *peer_of(struct conns_host *host, const struct rvcm_path *path)
{
	struct conns *c = host->conns;
	struct conns_node *node = &c->nodes[host->index];

	if (node->host != host)
		return NULL;
	for (int i = 0; i < c->n; i++)
		if (rvcm_addr_equal(&c->nodes[i].name, &path->peer))
			return &node->peers[i];
	fail_msg("a conn to nobody");
	return NULL;
}

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	struct conns_peer *peer = peer_of(ctx, path);

	if (!peer)
		return;
	assert_null(peer->path);
	peer->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	struct conns_peer *peer = peer_of(ctx, path);

	if (!peer)
		return;
	assert_ptr_equal(peer->path, path);
	assert_true(path->up);
}

static uint64_t word_of(uint32_t session, uint32_t number, size_t i)
{
	return ((uint64_t)session << 32 | number) * 0x9e3779b97f4a7c15 + i;
}

static void fill(uint8_t *buf, size_t bytes, uint32_t session, uint32_t number)
{
	rvcm_le32_put(buf, session);
	rvcm_le32_put(buf + 4, number);
	for (size_t i = 8; i < bytes; i += 8) {
		uint64_t word = word_of(session, number, i);

		memcpy(buf + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static void check_bytes(const uint8_t *data, size_t bytes, uint32_t session, uint32_t number)
{
	for (size_t i = 8; i < bytes; i += 8) {
		uint64_t word = word_of(session, number, i);

		assert_memory_equal(data + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static void send_one(struct conns *c, struct conns_peer *peer, int to);

static void on_recv(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct conns_peer *peer = peer_of(ctx, path);
	struct conns *c = ((struct conns_host *)ctx)->conns;
	uint32_t session, number;

	if (!peer)
		return;
	assert_true(bytes >= 8);
	session = rvcm_le32_get(data);
	number = rvcm_le32_get(data + 4);
	check_bytes(data, bytes, session, number);
	assert_false((int32_t)(session - peer->rx_session) < 0);
	if (session != peer->rx_session)
		peer->rx_number = 0;
	peer->rx_session = session;
	assert_int_equal(number, peer->rx_number);
	peer->rx_number++;
	peer->rx_total++;
	c->messages++;
	/* An answer from here may meet what a full queue has put off, and is not to overtake it. */
	if (c->conf.answers && peer->tx_left && below(c, 2))
		send_one(c, peer, (int)(peer - c->nodes[((struct conns_host *)ctx)->index].peers));
}

/* What is confirmed has been received. */
static void on_confirmed(void *ctx, struct rvcm_path *path, uint32_t mark)
{
	struct conns_host *host = ctx;
	struct conns *c = host->conns;
	struct conns_peer *peer = peer_of(host, path);
	const struct conns_peer *there;
	int to;

	if (!peer)
		return;
	to = (int)(peer - c->nodes[host->index].peers);
	there = &c->nodes[to].peers[host->index];
	while (peer->confirmed < peer->tx_number &&
	       (int32_t)(mark - peer->marks[peer->confirmed]) >= 0)
		peer->confirmed++;
	if (peer->confirmed == 0 || !c->nodes[to].host || peer->tx_life != c->nodes[to].life)
		return;
	assert_int_equal(there->rx_session, peer->tx_session);
	assert_true(there->rx_number >= peer->confirmed);
}

static void on_read_done(void *ctx, struct rvcm_path *path, void *cookie, enum rvcm_status status)
{
	struct conns_host *host = ctx;
	struct conns_peer *peer = peer_of(host, path);
	int from;

	if (!peer)
		return;
	from = (int)(peer - host->conns->nodes[host->index].peers);
	assert_ptr_equal(cookie, peer);
	assert_true(peer->reads > peer->reads_ok + peer->reads_failed);
	if (status != RVCM_STATUS_OK) {
		peer->reads_failed++;
		return;
	}
	assert_memory_equal(host->read_buf[from], host->conns->nodes[from].source,
			    CONNS_READ_BYTES);
	memset(host->read_buf[from], 0, CONNS_READ_BYTES);
	peer->reads_ok++;
}

static void end_session(struct conns *c, struct conns_peer *peer)
{
	peer->tx_session++;
	peer->tx_number = 0;
	peer->wanted = peer->confirmed = 0;
	c->sessions++;
}

static void on_down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	struct conns_host *host = ctx;
	struct conns_peer *peer = peer_of(host, path);

	if (!peer)
		return;
	assert_false(path->up);
	assert_int_not_equal(cause->status, RVCM_STATUS_OK);
	assert_int_equal(peer->reads, peer->reads_ok + peer->reads_failed);
	peer->downs++;
	peer->cause = *cause;
	end_session(host->conns, peer);
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.confirmed = on_confirmed,
	.read_done = on_read_done,
	.down = on_down,
};

/* -- opening --------------------------------------------------------------------------------- */

static struct rvcm_dev *dev_open(struct conns *c, const struct rvcm_addr *name)
{
	struct sim_dev_conf conf;

	sim_dev_conf_init(c->net, &conf, false);
	if (name->port) {
		conf.attr.addr = *name;
		conf.attr.addr.port = 0;
	}
	if (c->conf.sq_depth)
		conf.attr.sq_depth_max = c->conf.sq_depth;
	if (c->conf.sim.seed % 2) /* a read takes two pieces */
		conf.attr.message_bytes_max = CONNS_MESSAGE_MAX + 16;
	if (c->conf.sim.seed % 3 == 1) {
		conf.attr.caps ^= RVCM_DEV_CAP_HEAD | RVCM_DEV_CAP_FOREROOM;
		conf.attr.mtu_bytes = 64; /* so that most may go bare */
	}
	if (c->conf.early) {
		conf.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
		conf.early = below(c, 2) ? SIM_EARLY_ALWAYS : SIM_EARLY_RANDOM;
	}
	return sim_dev_open(c->net, &conf);
}

static void host_register(struct conns_host *host)
{
	struct rvcm_dev_mr_attr mr = { .addr = host->conns->nodes[host->index].source,
				       .length = CONNS_READ_BYTES,
				       .access = RVCM_DEV_ACCESS_REMOTE_READ };

	assert_int_equal(host->dev->ops->mr_reg(host->dev, &mr, &host->source_mr), 0);
	mr.access = RVCM_DEV_ACCESS_LOCAL_WRITE;
	for (int i = 0; i < host->conns->n; i++) {
		mr.addr = host->read_buf[i] = calloc(1, CONNS_READ_BYTES);
		assert_int_equal(host->dev->ops->mr_reg(host->dev, &mr, &host->read_mr[i]), 0);
	}
}

static void node_open(struct conns *c, int index)
{
	struct conns_node *node = &c->nodes[index];
	struct conns_host *host = calloc(1, sizeof(*host));
	struct rvcm_carrier_attr attr = {
		.devs = &host->dev,
		.n_devs = 1,
		.message_bytes_max = index % 3 == 2 ? 600 : CONNS_MESSAGE_MAX,
		.window_max = c->conf.window_max,
		.pool_count = c->conf.pool_count,
		.hold = index % 2,
		.connect_timeout_ns = 8 * SIM_S,
		.reconnect_timeout_ns = c->conf.reconnect_ns,
		.n_links = c->conf.n_links,
		.stripe_bytes = c->conf.n_links ? 1000 : 0,
		.n_rails = c->conf.railed >> index & 1,
		.max_links = index && c->conf.first_only ? 0 : c->conf.max_links,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = sim_env(c->net),
		.sink = &sink,
		.sink_ctx = host,
	};

	if (index == c->n - 1)
		attr.job_key[0] = c->conf.key_of_last;
	host->conns = c;
	host->index = index;
	host->dev = dev_open(c, &node->name);
	attr.rails[0] = host->dev->attr.addr; /* and another port */
	assert_int_equal(rvcm_carrier_open(&attr, &host->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(host->carrier, 0, &node->name), 0);
	host_register(host);
	node->host = host;
}

struct conns *conns_open(const struct conns_conf *conf)
{
	struct conns *c = calloc(1, sizeof(*c));

	c->net = sim_net_open(&conf->sim);
	c->conf = *conf;
	c->n = conf->n;
	rvcm_list_init(&c->ghosts);
	for (int i = 0; i < c->n; i++) {
		c->nodes[i].source = malloc(CONNS_READ_BYTES);
		for (size_t k = 0; k < CONNS_READ_BYTES; k++)
			c->nodes[i].source[k] = (uint8_t)(k * 13 + (size_t)i);
		node_open(c, i);
	}
	return c;
}

/* -- time ------------------------------------------------------------------------------------ */

/* When it must be looked at again; 0 = at once. */
static uint64_t serve(struct conns *c, struct conns_host *host)
{
	uint64_t now = sim_now(c->net), at = host->control_until;

	if (at <= now)
		at = rvcm_carrier_control(host->carrier);
	if (host->data_until > now)
		return host->data_until < at ? host->data_until : at;
	return rvcm_carrier_progress(host->carrier) ? 0 : at;
}

static void host_close(struct conns_host *host)
{
	struct rvcm_dev *dev = host->dev;

	dev->ops->mr_dereg(host->source_mr);
	for (int i = 0; i < host->conns->n; i++) {
		dev->ops->mr_dereg(host->read_mr[i]);
		free(host->read_buf[i]);
	}
	watch_carrier_empty(host->carrier);
	rvcm_carrier_close(host->carrier);
	dev->ops->close(dev);
	free(host);
}

static void serve_ghosts(struct conns *c)
{
	struct rvcm_list *pos, *next;

	rvcm_list_for_each_safe (pos, next, &c->ghosts) {
		struct conns_host *host = rvcm_container_of(pos, struct conns_host, node);

		rvcm_carrier_control(host->carrier);
		rvcm_carrier_progress(host->carrier);
		if (!rvcm_carrier_quiet(host->carrier, 0))
			continue;
		rvcm_list_del(&host->node);
		host_close(host);
	}
}

static void watch(struct conns *c)
{
	for (int i = 0; i < c->n; i++)
		if (c->nodes[i].host)
			watch_conns(c->nodes[i].host->carrier);
	watch_links(c->net);
}

void conns_turn(struct conns *c)
{
	uint64_t now = sim_now(c->net), at = now + IDLE_NS;

	for (int i = 0; i < c->n; i++) {
		uint64_t due = c->nodes[i].host ? serve(c, c->nodes[i].host) : UINT64_MAX;

		if (due == 0)
			due = now + BUSY_NS;
		at = due < at ? due : at;
	}
	serve_ghosts(c);
	sim_step_by(c->net, at > now ? at : now);
	watch(c);
}

/* -- ends ------------------------------------------------------------------------------------ */

static void forget(struct conns *c, int index)
{
	for (int i = 0; i < c->n; i++) {
		struct conns_peer *peer = &c->nodes[index].peers[i];

		peer->path = NULL;
		peer->reads = peer->reads_ok = peer->reads_failed = 0;
		peer->rx_session = peer->rx_number = 0;
		end_session(c, peer);
	}
}

void conns_node_close(struct conns *c, int index)
{
	struct conns_host *host = c->nodes[index].host;
	uint64_t limit = sim_now(c->net) + CLOSE_NS;

	host->data_until = host->control_until = 0;
	rvcm_carrier_unlisten(host->carrier, 0);
	while (!rvcm_carrier_quiet(host->carrier, 0)) {
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
	c->nodes[index].host = NULL;
	host_close(host);
	forget(c, index);
}

void conns_node_kill(struct conns *c, int index, enum sim_kill how)
{
	struct conns_host *host = c->nodes[index].host;

	sim_dev_resume(host->dev);
	sim_dev_kill(host->dev, how);
	rvcm_carrier_unlisten(host->carrier, 0);
	c->nodes[index].host = NULL;
	rvcm_list_add_tail(&c->ghosts, &host->node);
	forget(c, index);
}

void conns_node_reopen(struct conns *c, int index)
{
	c->nodes[index].life++;
	node_open(c, index);
}

void conns_close(struct conns *c)
{
	uint64_t limit = sim_now(c->net) + CLOSE_NS;

	for (int i = 0; i < c->n; i++)
		if (c->nodes[i].host)
			conns_node_close(c, i);
	while (!rvcm_list_empty(&c->ghosts)) {
		conns_turn(c);
		assert_true(sim_now(c->net) < limit + CLOSE_NS);
	}
	for (int i = 0; i < c->n; i++)
		free(c->nodes[i].source);
	sim_net_close(c->net);
	free(c);
}

/* -- talking --------------------------------------------------------------------------------- */

static void send_one(struct conns *c, struct conns_peer *peer, int to)
{
	size_t bytes = 8 + below(c, below(c, 4) ? 200 : CONNS_MESSAGE_MAX - 8);
	size_t most = rvcm_path_message_max(peer->path);
	uint8_t *buf;

	if (bytes > most)
		bytes = most;
	buf = rvcm_path_reserve(peer->path, bytes);
	if (!buf)
		return;
	if (below(c, 30) == 0) { /* it thinks better of it */
		rvcm_path_cancel(peer->path);
		return;
	}
	if (peer->tx_number == 0)
		peer->tx_life = c->nodes[to].life;
	fill(buf, bytes, peer->tx_session, peer->tx_number);
	peer->tx_number++;
	peer->tx_left--;
	rvcm_path_commit(peer->path, bytes, (enum rvcm_path_when)below(c, 3));
	assert_true(peer->tx_number <= CONNS_SESSION_MAX);
	peer->marks[peer->tx_number - 1] = rvcm_path_mark(peer->path);
	if (below(c, 4))
		return;
	peer->wanted = peer->tx_number;
	assert_int_equal(rvcm_path_confirm(peer->path), rvcm_path_mark(peer->path));
}

static void read_one(struct conns *c, int at, int from)
{
	struct conns_host *host = c->nodes[at].host, *there = c->nodes[from].host;
	struct conns_peer *peer = &c->nodes[at].peers[from];
	struct rvcm_path_read op = {
		.addr = host->read_buf[from],
		.bytes = CONNS_READ_BYTES,
		.mr = host->read_mr[from],
		.raddr = (uintptr_t)c->nodes[from].source,
		.cookie = peer,
	};

	if (!there || peer->reads != peer->reads_ok + peer->reads_failed)
		return;
	op.rkey = there->source_mr->rkey;
	if (rvcm_path_read(peer->path, &op) == 0)
		peer->reads++;
}

static void talk_to(struct conns *c, int at, int to)
{
	struct conns_node *node = &c->nodes[at];
	struct conns_peer *peer = &node->peers[to];

	if (!peer->path)
		assert_int_equal(
			rvcm_path_get(node->host->carrier, 0, &c->nodes[to].name, &peer->path), 0);
	if (below(c, 4) == 0)
		send_one(c, peer, to);
	if (below(c, 8) == 0)
		read_one(c, at, to);
}

void conns_send(struct conns *c, int at, int to, uint32_t n)
{
	struct conns_peer *peer = &c->nodes[at].peers[to];
	uint32_t last = peer->tx_number + n;

	/* Not at each try: send_one may think better of it, or find no room. */
	peer->tx_left += n;
	for (int tries = 0; tries < 100 && peer->tx_number < last; tries++)
		send_one(c, peer, to);
}

bool conns_talk(struct conns *c)
{
	bool left = false;

	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++) {
			if (i == j || !c->nodes[i].host || c->nodes[i].peers[j].tx_left == 0)
				continue;
			left = true;
			talk_to(c, i, j);
		}
	return left;
}

void conns_give(struct conns *c, uint32_t messages)
{
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++) {
			bool both = i != j && c->nodes[i].host && c->nodes[j].host;

			c->nodes[i].peers[j].tx_left = both ? messages : 0;
			c->nodes[i].peers[j].rx_total = 0;
		}
}

bool conns_received(struct conns *c, uint32_t messages)
{
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			if (i != j && c->nodes[i].host && c->nodes[j].host &&
			    c->nodes[i].peers[j].rx_total != messages)
				return false;
	return true;
}

bool conns_confirmed(struct conns *c)
{
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			if (c->nodes[i].peers[j].confirmed < c->nodes[i].peers[j].wanted)
				return false;
	return true;
}

void conns_until(struct conns *c, bool (*done)(struct conns *c, uint32_t messages),
		 uint32_t messages, uint64_t ns)
{
	uint64_t limit = sim_now(c->net) + ns;

	while (conns_talk(c) || !done(c, messages)) {
		conns_turn(c);
		if (sim_now(c->net) >= limit)
			fail_msg("something does not end");
	}
}

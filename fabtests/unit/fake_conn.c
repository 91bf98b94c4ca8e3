/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"
#include "unit/fake_conn.h"

struct rvcm_carrier {
	struct rvcm_carrier_attr attr;
	struct fake_net *net;
	struct rvcm_list node;
	struct rvcm_list conns;
	struct rvcm_addr names[RVCM_CONN_SLOTS_MAX]; /* family 0 = not listening */
	bool closing[RVCM_CONN_SLOTS_MAX];
};

struct fake_conn {
	struct rvcm_path pub;
	struct rvcm_carrier *carrier;
	struct rvcm_list node;
	struct rvcm_list rx;    /* messages to be delivered */
	struct rvcm_list reads; /* in flight */
	struct fake_conn *other;
	uint8_t *reserved;
	size_t reserved_bytes;
	uint32_t under_way; /* sent and not delivered */
	uint32_t sent;
	uint32_t accepted; /* of sent */
	uint32_t mark;     /* of the last confirm */
	bool confirm;
	bool wanting;
	bool blocked;
	bool faulted;
	bool down_due; /* after rx has been delivered */
	bool shown;    /* the head of the first message in rx */
	bool placed;   /* its owner has said where it goes */
	struct rvcm_conn_place place;
	struct rvcm_list tails; /* not given back */
	struct rvcm_conn_cause cause;
};

struct message {
	struct rvcm_list node;
	bool counted; /* against the sender's credit */
	size_t bytes;
	uint8_t *data; /* exactly bytes, so that a sanitizer sees who reads on */
};

struct tail {
	struct rvcm_list node;
	void *cookie;
};

struct read {
	struct rvcm_list node;
	struct rvcm_path_read op;
};

struct fake_mr {
	struct rvcm_dev_mr mr;
	struct rvcm_list node;
};

static struct fake_conn *full(struct rvcm_path *conn)
{
	return rvcm_container_of(conn, struct fake_conn, pub);
}

/* -- the device --------------------------------------------------------------------------- */

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **out)
{
	struct fake_net *net = rvcm_container_of(dev, struct fake_net, dev);
	struct fake_mr *mr;

	if (net->fail_reg)
		return net->fail_reg;
	mr = calloc(1, sizeof(*mr));
	mr->mr.dev = dev;
	mr->mr.addr = attr->addr;
	mr->mr.length = attr->length;
	mr->mr.access = attr->access;
	mr->mr.lkey = net->next_key;
	mr->mr.rkey = net->next_key++;
	rvcm_list_add_tail(&net->mrs, &mr->node);
	net->n_mrs++;
	net->regs++;
	*out = &mr->mr;
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *dev_mr)
{
	struct fake_mr *mr = rvcm_container_of(dev_mr, struct fake_mr, mr);

	rvcm_container_of(dev_mr->dev, struct fake_net, dev)->n_mrs--;
	rvcm_list_del(&mr->node);
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

void fake_random(void *ctx, void *buf, size_t bytes)
{
	(void)ctx;
	memset(buf, 0x42, bytes);
}

void fake_wake(void *ctx)
{
	(void)ctx;
}

void fake_net_init(struct fake_net *net)
{
	memset(net, 0, sizeof(*net));
	net->dev.ops = &ops;
	net->next_port = 1000;
	net->next_key = 77;
	net->credit = 4;
	rvcm_list_init(&net->carriers);
	rvcm_list_init(&net->mrs);
}

void fake_net_fini(struct fake_net *net)
{
	assert_true(rvcm_list_empty(&net->carriers));
	assert_int_equal(net->n_mrs, 0);
}

static bool inside(const struct rvcm_dev_mr *mr, uint64_t addr, size_t bytes, uint32_t access)
{
	uint64_t base = (uintptr_t)mr->addr;

	return addr >= base && addr + bytes <= base + mr->length && (mr->access & access);
}

static enum rvcm_status do_read(struct fake_net *net, const struct rvcm_path_read *op)
{
	struct rvcm_list *pos;

	assert_true(op->bytes > 0);
	assert_true(inside(op->mr, (uintptr_t)op->addr, op->bytes, RVCM_DEV_ACCESS_LOCAL_WRITE));
	if (net->fail_read)
		return net->fail_read;
	rvcm_list_for_each (pos, &net->mrs) {
		struct fake_mr *mr = rvcm_container_of(pos, struct fake_mr, node);

		if (mr->mr.rkey != op->rkey)
			continue;
		if (!inside(&mr->mr, op->raddr, op->bytes, RVCM_DEV_ACCESS_REMOTE_READ))
			return RVCM_STATUS_REMOTE_ACCESS;
		memcpy(op->addr, (const void *)(uintptr_t)op->raddr, op->bytes);
		return RVCM_STATUS_OK;
	}
	return RVCM_STATUS_REMOTE_ACCESS;
}

/* -- carriers ----------------------------------------------------------------------------- */

void rvcm_carrier_flush(struct rvcm_carrier *carrier)
{
	(void)carrier;
}

int rvcm_carrier_open(const struct rvcm_carrier_attr *attr, struct rvcm_carrier **carrier)
{
	struct rvcm_carrier *c = calloc(1, sizeof(*c));

	c->attr = *attr;
	c->net = rvcm_container_of(attr->devs[0], struct fake_net, dev);
	rvcm_list_init(&c->conns);
	rvcm_list_add_tail(&c->net->carriers, &c->node);
	*carrier = c;
	return 0;
}

int rvcm_carrier_listen(struct rvcm_carrier *carrier, uint16_t slot, struct rvcm_addr *addr)
{
	if (carrier->names[slot].family)
		return -EBUSY;
	if (!addr->family)
		addr->family = RVCM_ADDR_V4;
	if (!addr->port)
		addr->port = carrier->net->next_port++;
	carrier->names[slot] = *addr;
	return 0;
}

static struct fake_conn *conn_new(struct rvcm_carrier *carrier, uint16_t slot,
				  const struct rvcm_addr *peer)
{
	struct fake_conn *conn = calloc(1, sizeof(*conn));

	conn->pub.peer = *peer;
	conn->pub.slot = slot;
	conn->carrier = carrier;
	rvcm_list_init(&conn->rx);
	rvcm_list_init(&conn->reads);
	rvcm_list_init(&conn->tails);
	rvcm_list_add_tail(&carrier->conns, &conn->node);
	return conn;
}

static void rx_drop(struct fake_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->rx))) {
		struct message *msg = rvcm_container_of(node, struct message, node);

		free(msg->data);
		free(msg);
	}
	conn->shown = conn->placed = false;
}

static void tails_drop(struct fake_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->tails)))
		free(rvcm_container_of(node, struct tail, node));
}

static enum rvcm_status cut_status(struct fake_net *net, const struct rvcm_path_read *op)
{
	if (net->finish_reads)
		return do_read(net, op);
	return net->cut_read ? net->cut_read : RVCM_STATUS_FLUSHED;
}

static void end_reads(struct fake_conn *conn, bool tell)
{
	const struct rvcm_conn_sink *sink = conn->carrier->attr.sink;
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->reads))) {
		struct read *read = rvcm_container_of(node, struct read, node);

		if (tell)
			sink->read_done(conn->carrier->attr.sink_ctx, &conn->pub, read->op.cookie,
					cut_status(conn->carrier->net, &read->op));
		free(read);
	}
}

/* The link is no more; down is told when what has arrived is delivered. */
static void part(struct fake_conn *conn, enum rvcm_status status, const char *text)
{
	conn->other = NULL;
	conn->down_due = true;
	conn->cause.status = status;
	conn->cause.err = rvcm_status_errno(status);
	snprintf(conn->cause.text, sizeof(conn->cause.text), "%s", text);
}

void fake_conn_break(struct rvcm_path *pub, enum rvcm_status status, const char *text)
{
	struct fake_conn *conn = full(pub);

	assert_non_null(conn->other);
	rx_drop(conn);
	rx_drop(conn->other);
	part(conn->other, status, text);
	part(conn, status, text);
}

void rvcm_carrier_unlisten(struct rvcm_carrier *carrier, uint16_t slot)
{
	struct rvcm_list *pos;

	carrier->closing[slot] = true;
	rvcm_list_for_each (pos, &carrier->conns) {
		struct fake_conn *conn = rvcm_container_of(pos, struct fake_conn, node);

		if (conn->pub.slot != slot || !conn->other)
			continue;
		part(conn->other, RVCM_STATUS_PEER_CLOSED, "closed by the peer");
		conn->other = NULL;
		conn->pub.up = false;
	}
}

void rvcm_carrier_unlisten_by(struct rvcm_carrier *carrier, uint16_t slot, uint64_t deadline_ns)
{
	(void)deadline_ns;
	rvcm_carrier_unlisten(carrier, slot);
}

bool rvcm_carrier_quiet(struct rvcm_carrier *carrier, uint16_t slot)
{
	struct rvcm_list *pos, *tmp;

	assert_true(carrier->closing[slot]);
	rvcm_list_for_each_safe (pos, tmp, &carrier->conns) {
		struct fake_conn *conn = rvcm_container_of(pos, struct fake_conn, node);

		if (conn->pub.slot != slot)
			continue;
		rx_drop(conn);
		end_reads(conn, false);
		tails_drop(conn);
		free(conn->reserved);
		rvcm_list_del(&conn->node);
		free(conn);
	}
	carrier->names[slot].family = 0;
	return true;
}

void rvcm_carrier_close(struct rvcm_carrier *carrier)
{
	assert_true(rvcm_list_empty(&carrier->conns));
	rvcm_list_del(&carrier->node);
	free(carrier);
}

/* -- progress ----------------------------------------------------------------------------- */

struct rvcm_path *fake_conn_find(struct rvcm_carrier *carrier, uint16_t slot,
				 const struct rvcm_addr *peer)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &carrier->conns) {
		struct fake_conn *conn = rvcm_container_of(pos, struct fake_conn, node);

		if (conn->pub.slot == slot && rvcm_addr_equal(&conn->pub.peer, peer))
			return &conn->pub;
	}
	return NULL;
}

static struct rvcm_carrier *listener(struct fake_net *net, const struct rvcm_addr *name,
				     uint16_t *slot)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &net->carriers) {
		struct rvcm_carrier *c = rvcm_container_of(pos, struct rvcm_carrier, node);

		for (*slot = 0; *slot < RVCM_CONN_SLOTS_MAX; (*slot)++)
			if (!c->closing[*slot] && c->names[*slot].family &&
			    rvcm_addr_equal(&c->names[*slot], name))
				return c;
	}
	return NULL;
}

static void join(struct fake_conn *conn, struct rvcm_carrier *to, uint16_t slot)
{
	struct rvcm_addr *name = &conn->carrier->names[conn->pub.slot];
	struct rvcm_path *found = fake_conn_find(to, slot, name);
	struct fake_conn *other = found ? full(found) : conn_new(to, slot, name);

	if (!found)
		to->attr.sink->incoming(to->attr.sink_ctx, &other->pub);
	conn->other = other;
	other->other = conn;
	conn->under_way = other->under_way = 0;
	conn->sent = other->sent = 0;
	conn->accepted = other->accepted = 0;
	conn->confirm = other->confirm = false;
	conn->wanting = other->wanting = false;
	conn->faulted = other->faulted = false;
	conn->pub.up = other->pub.up = true;
}

static int connect(struct fake_conn *conn)
{
	struct rvcm_carrier *to;
	uint16_t slot;

	if (!conn->wanting || conn->carrier->net->hold_connects)
		return 0;
	conn->wanting = false;
	to = listener(conn->carrier->net, &conn->pub.peer, &slot);
	if (!to) {
		part(conn, RVCM_STATUS_REFUSED, "nobody listens there");
		return 1;
	}
	/* The other side has not heard of the end of the last link yet. */
	if (fake_conn_find(to, slot, &conn->carrier->names[conn->pub.slot]) &&
	    full(fake_conn_find(to, slot, &conn->carrier->names[conn->pub.slot]))->down_due) {
		conn->wanting = true;
		return 0;
	}
	join(conn, to, slot);
	return 1;
}

static bool has_credit(const struct fake_conn *conn)
{
	const struct fake_net *net = conn->carrier->net;

	return conn->pub.up && !conn->faulted && !conn->down_due && !net->fail_reserve &&
	       conn->under_way < net->credit;
}

/* Show the head of the message that is next, and nothing behind it. */
static void show(struct fake_conn *conn, const struct message *msg)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	uint8_t *data = malloc(attr->head_bytes);
	struct rvcm_conn_rx head = { .data = data, .bytes = attr->head_bytes };

	conn->shown = true;
	memcpy(data, msg->data, attr->head_bytes);
	conn->placed = attr->sink->place(attr->sink_ctx, &conn->pub, &head, &conn->place);
	free(data);
}

/* All but the head goes to its place, and is not where messages are otherwise. */
static void put_in_place(struct fake_conn *conn, struct message *msg)
{
	size_t at = conn->place.offset;

	for (uint32_t i = 0; i < conn->place.n; i++) {
		const struct rvcm_dev_sge *to = &conn->place.pieces[i];
		size_t n = msg->bytes - at < to->length ? msg->bytes - at : to->length;

		if (n)
			memcpy(to->addr, msg->data + at, n);
		at += n;
	}
	memset(msg->data + conn->place.offset, 0xdb, msg->bytes - conn->place.offset);
}

static int deliver(struct fake_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct fake_net *net = carrier->net;
	struct rvcm_list *node;
	int n = 0;

	if (net->hold_messages)
		return 0;
	while (!conn->faulted && (node = rvcm_list_first(&conn->rx))) {
		struct message *msg = rvcm_container_of(node, struct message, node);
		struct rvcm_conn_rx rx = { .data = msg->data, .bytes = msg->bytes };

		if (net->show_heads && !conn->shown && msg->bytes >= 2 * carrier->attr.head_bytes)
			show(conn, msg);
		if (conn->shown && net->hold_rests)
			return n;
		rvcm_list_del(node);
		rx.placed = conn->placed;
		if (conn->placed)
			put_in_place(conn, msg);
		conn->shown = conn->placed = false;
		if (conn->other) {
			conn->other->under_way -= msg->counted;
			conn->other->accepted += msg->counted;
		}
		carrier->attr.sink->recv(carrier->attr.sink_ctx, &conn->pub, &rx);
		free(msg->data);
		free(msg);
		n++;
	}
	return n;
}

static int give_back_tails(struct fake_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_list *node;
	int n = 0;

	while (!carrier->net->hold_tails && !conn->down_due &&
	       (node = rvcm_list_pop(&conn->tails))) {
		struct tail *tail = rvcm_container_of(node, struct tail, node);

		carrier->attr.sink->sent(carrier->attr.sink_ctx, &conn->pub, tail->cookie);
		free(tail);
		n++;
	}
	return n;
}

static int complete_reads(struct fake_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_list *node;
	int n = 0;

	if (carrier->net->hold_reads || conn->down_due)
		return 0;
	while ((node = rvcm_list_pop(&conn->reads))) {
		struct read *read = rvcm_container_of(node, struct read, node);
		enum rvcm_status status = do_read(carrier->net, &read->op);

		carrier->attr.sink->read_done(carrier->attr.sink_ctx, &conn->pub, read->op.cookie,
					      status);
		free(read);
		n++;
	}
	return n;
}

static int go_down(struct fake_conn *conn)
{
	if (conn->faulted && conn->other)
		fake_conn_break(&conn->pub, RVCM_STATUS_PROTOCOL, conn->carrier->net->fault_text);
	if (!conn->down_due || !rvcm_list_empty(&conn->rx))
		return 0;
	conn->pub.up = !conn->carrier->net->finish_reads && !conn->carrier->net->cut_read;
	end_reads(conn, true);
	tails_drop(conn);
	conn->pub.up = false;
	conn->down_due = false;
	conn->blocked = false;
	conn->wanting = false;
	conn->carrier->attr.sink->down(conn->carrier->attr.sink_ctx, &conn->pub, &conn->cause);
	return 1;
}

static int tell_confirmed(struct fake_conn *conn)
{
	if (!conn->confirm || !conn->pub.up || !conn->accepted || conn->carrier->net->hold_confirms)
		return 0;
	conn->confirm = conn->accepted != conn->mark;
	conn->carrier->attr.sink->confirmed(conn->carrier->attr.sink_ctx, &conn->pub,
					    conn->accepted);
	return !conn->confirm;
}

static int tell_ready(struct fake_conn *conn)
{
	if (!conn->blocked || !has_credit(conn))
		return 0;
	conn->blocked = false;
	conn->carrier->attr.sink->ready(conn->carrier->attr.sink_ctx, &conn->pub);
	return 1;
}

int rvcm_carrier_progress(struct rvcm_carrier *carrier)
{
	struct rvcm_list *pos;
	int n = 0;

	rvcm_list_for_each (pos, &carrier->conns) {
		struct fake_conn *conn = rvcm_container_of(pos, struct fake_conn, node);

		if (carrier->closing[conn->pub.slot]) { /* what had arrived still comes */
			n += deliver(conn);
			continue;
		}
		n += connect(conn);
		n += deliver(conn);
		n += give_back_tails(conn);
		n += complete_reads(conn);
		n += tell_confirmed(conn);
		n += go_down(conn);
		n += tell_ready(conn);
	}
	return n;
}

/* -- conns -------------------------------------------------------------------------------- */

int rvcm_path_get(struct rvcm_carrier *carrier, uint16_t slot, const struct rvcm_addr *peer,
		  struct rvcm_path **conn)
{
	assert_true(carrier->names[slot].family);
	assert_false(carrier->closing[slot]);
	if (rvcm_addr_equal(&carrier->names[slot], peer))
		return -EINVAL;
	*conn = fake_conn_find(carrier, slot, peer);
	if (!*conn)
		*conn = &conn_new(carrier, slot, peer)->pub;
	return 0;
}

void *rvcm_path_reserve(struct rvcm_path *pub, size_t bytes)
{
	struct fake_conn *conn = full(pub);

	assert_false(conn->carrier->closing[pub->slot]);
	assert_null(conn->reserved);
	assert_true(bytes <= conn->carrier->attr.message_bytes_max);
	if (!has_credit(conn)) {
		conn->blocked = true;
		conn->wanting = !conn->other && !conn->down_due;
		return NULL;
	}
	conn->reserved = malloc(bytes);
	conn->reserved_bytes = bytes;
	return conn->reserved;
}

static void push(struct fake_conn *to, const void *data, size_t bytes, bool counted)
{
	struct message *msg = calloc(1, sizeof(*msg));

	msg->data = malloc(bytes ? bytes : 1);
	if (bytes)
		memcpy(msg->data, data, bytes);
	msg->bytes = bytes;
	msg->counted = counted;
	rvcm_list_add_tail(&to->rx, &msg->node);
}

void rvcm_path_commit(struct rvcm_path *pub, size_t bytes, enum rvcm_path_when when)
{
	struct fake_conn *conn = full(pub);
	struct fake_net *net = conn->carrier->net;

	assert_non_null(conn->reserved);
	assert_true(bytes <= conn->reserved_bytes);
	net->more = when == RVCM_PATH_MORE;
	if (net->tap)
		net->tap(net->tap_ctx, pub, conn->reserved, bytes);
	push(conn->other, conn->reserved, bytes, true);
	conn->under_way++;
	conn->sent++;
	free(conn->reserved);
	conn->reserved = NULL;
}

void rvcm_path_commit_tail(struct rvcm_path *pub, size_t bytes, const struct rvcm_path_tail *tail)
{
	struct fake_conn *conn = full(pub);
	struct tail *copy = calloc(1, sizeof(*copy));

	assert_true(tail->bytes > 0);
	assert_true(bytes + tail->bytes <= conn->carrier->attr.message_bytes_max);
	assert_non_null(tail->mr);
	assert_true((uint8_t *)tail->addr >= (uint8_t *)tail->mr->addr &&
		    (uint8_t *)tail->addr + tail->bytes <=
			    (uint8_t *)tail->mr->addr + tail->mr->length);
	conn->reserved = realloc(conn->reserved, bytes + tail->bytes);
	memcpy(conn->reserved + bytes, tail->addr, tail->bytes);
	conn->reserved_bytes = bytes + tail->bytes;
	copy->cookie = tail->cookie;
	rvcm_list_add_tail(&conn->tails, &copy->node);
	rvcm_path_commit(pub, bytes + tail->bytes, RVCM_PATH_NOW);
}

void rvcm_path_cancel(struct rvcm_path *pub)
{
	struct fake_conn *conn = full(pub);

	assert_non_null(conn->reserved);
	free(conn->reserved);
	conn->reserved = NULL;
}

uint32_t rvcm_path_mark(const struct rvcm_path *pub)
{
	return full((struct rvcm_path *)(uintptr_t)pub)->sent;
}

bool rvcm_path_accepted(const struct rvcm_path *pub, uint32_t mark)
{
	const struct fake_conn *conn = full((struct rvcm_path *)(uintptr_t)pub);

	return conn->sent - conn->under_way >= mark;
}

uint32_t rvcm_path_confirm(struct rvcm_path *pub)
{
	struct fake_conn *conn = full(pub);

	conn->confirm = true;
	conn->mark = conn->sent;
	return conn->mark;
}

int rvcm_path_read(struct rvcm_path *pub, const struct rvcm_path_read *op)
{
	struct fake_conn *conn = full(pub);
	struct read *read;

	if (!pub->up || conn->faulted || conn->down_due)
		return -ENOTCONN;
	if (conn->carrier->net->fail_post)
		return conn->carrier->net->fail_post;
	read = calloc(1, sizeof(*read));
	read->op = *op;
	rvcm_list_add_tail(&conn->reads, &read->node);
	return 0;
}

void rvcm_path_fault(struct rvcm_path *pub, enum rvcm_status status, const char *why)
{
	struct fake_conn *conn = full(pub);
	struct fake_net *net = conn->carrier->net;

	conn->faulted = true;
	net->faults++;
	net->fault_status = status;
	snprintf(net->fault_text, sizeof(net->fault_text), "%s", why);
}

void fake_conn_inject(struct rvcm_path *pub, const void *data, size_t bytes)
{
	push(full(pub), data, bytes, false);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fake_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"

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

struct fake_conn *fake_conn_new(struct rvcm_carrier *carrier, uint16_t slot,
				const struct rvcm_addr *peer)
{
	struct fake_conn *conn = calloc(1, sizeof(*conn));

	conn->pub.peer = *peer;
	conn->pub.slot = slot;
	conn->pub.way = &rvcm_way_none;
	conn->carrier = carrier;
	rvcm_list_init(&conn->rx);
	rvcm_list_init(&conn->reads);
	rvcm_list_init(&conn->tails);
	rvcm_list_add_tail(&carrier->conns, &conn->node);
	return conn;
}

static struct message *push(struct fake_conn *to, const void *data, size_t bytes, bool counted)
{
	struct message *msg = calloc(1, sizeof(*msg));

	msg->data = malloc(bytes ? bytes : 1);
	if (bytes)
		memcpy(msg->data, data, bytes);
	msg->bytes = bytes;
	msg->counted = counted;
	rvcm_list_add_tail(&to->rx, &msg->node);
	return msg;
}

void fake_conn_push(struct fake_conn *to, const void *data, size_t bytes, bool counted)
{
	push(to, data, bytes, counted);
}

void fake_conn_push_written(struct fake_conn *to, const void *data, size_t bytes,
			    const struct rvcm_path_tail *write)
{
	struct message *msg = push(to, data, bytes, true);

	msg->write = *write;
	if (!write->bytes)
		return;
	msg->write.addr = malloc(write->bytes);
	memcpy(msg->write.addr, write->addr, write->bytes);
}

static void message_free(struct message *msg)
{
	if (msg->write.bytes)
		free(msg->write.addr);
	free(msg->data);
	free(msg);
}

void fake_conn_inject(struct rvcm_path *pub, const void *data, size_t bytes)
{
	fake_conn_push(fake_conn_of(pub), data, bytes, false);
}

static void rx_drop(struct fake_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->rx)))
		message_free(rvcm_container_of(node, struct message, node));
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
		return fake_net_read(net, op);
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
	conn->cause.vendor_err = FAKE_CONN_VENDOR;
	snprintf(conn->cause.text, sizeof(conn->cause.text), "%s", text);
}

void fake_conn_break(struct rvcm_path *pub, enum rvcm_status status, const char *text)
{
	struct fake_conn *conn = fake_conn_of(pub);

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
	struct fake_conn *other = found ? fake_conn_of(found) : fake_conn_new(to, slot, name);

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
	conn->pub.tails = other->pub.tails = true;
	conn->pub.lead_bytes = other->pub.lead_bytes = conn->carrier->net->lead_bytes;
	conn->pub.write_max = other->pub.write_max = conn->carrier->net->write_max;
	conn->pub.shares = other->pub.shares = conn->carrier->net->shares;
	conn->pub.write_most = other->pub.write_most =
		conn->pub.write_max ? conn->pub.write_max : conn->carrier->net->write_most;
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
	    fake_conn_of(fake_conn_find(to, slot, &conn->carrier->names[conn->pub.slot]))
		    ->down_due) {
		conn->wanting = true;
		return 0;
	}
	join(conn, to, slot);
	return 1;
}

bool fake_conn_has_credit(const struct fake_conn *conn)
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

	conn->shown = true;
	memcpy(data, msg->data, attr->head_bytes);
	conn->placed =
		attr->sink->place(attr->sink_ctx, &conn->pub, data, attr->head_bytes, &conn->place);
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
		const struct rvcm_carrier_attr *attr = &carrier->attr;
		bool placed;

		if (net->show_heads && !conn->shown && msg->bytes >= 2 * carrier->attr.head_bytes)
			show(conn, msg);
		if (conn->shown && net->hold_rests)
			return n;
		rvcm_list_del(node);
		if (msg->write.bytes && fake_net_write(net, &msg->write)) {
			message_free(msg);
			fake_conn_break(&conn->pub, RVCM_STATUS_REMOTE_ACCESS, "a bad key");
			return n;
		}
		placed = conn->placed;
		if (placed)
			put_in_place(conn, msg);
		conn->shown = conn->placed = false;
		if (conn->other) {
			conn->other->under_way -= msg->counted;
			conn->other->accepted += msg->counted;
		}
		if (placed)
			attr->sink->placed(attr->sink_ctx, &conn->pub, msg->data, msg->bytes);
		else
			attr->sink->recv(attr->sink_ctx, &conn->pub, msg->data, msg->bytes);
		message_free(msg);
		n++;
	}
	return n;
}

/* The device is through with a write when it is done. */
static bool is_sent(const struct fake_conn *conn, const struct rvcm_list *node)
{
	const struct tail *tail = rvcm_container_of(node, const struct tail, node);

	return !tail->written || conn->accepted > tail->number;
}

static int give_back_tails(struct fake_conn *conn)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_list *node;
	int n = 0;

	while (!carrier->net->hold_tails && !conn->down_due &&
	       (node = rvcm_list_first(&conn->tails)) && is_sent(conn, node)) {
		struct tail *tail = rvcm_container_of(node, struct tail, node);

		rvcm_list_del(node);
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
		enum rvcm_status status = fake_net_read(carrier->net, &read->op);

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
	if (conn->other && conn->other->dropped)
		return 0;
	conn->confirm = conn->accepted != conn->mark;
	conn->carrier->attr.sink->confirmed(conn->carrier->attr.sink_ctx, &conn->pub,
					    conn->accepted);
	return !conn->confirm;
}

static int tell_ready(struct fake_conn *conn)
{
	if (!conn->blocked || !fake_conn_has_credit(conn))
		return 0;
	conn->blocked = false;
	conn->carrier->attr.sink->ready(conn->carrier->attr.sink_ctx, &conn->pub);
	return 1;
}

void fake_carrier_deafen(struct rvcm_carrier *carrier)
{
	carrier->deaf_due = true;
}

static int go_deaf(struct rvcm_carrier *carrier)
{
	const struct rvcm_conn_cause cause = { .status = RVCM_STATUS_DEVICE_REMOVED,
					       .text = "device fake0 was removed" };

	if (!carrier->deaf_due)
		return 0;
	carrier->deaf_due = false;
	carrier->attr.sink->deaf(carrier->attr.sink_ctx, &cause);
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
	return n + go_deaf(carrier);
}

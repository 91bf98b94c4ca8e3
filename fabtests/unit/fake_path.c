/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fake_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"

int rvcm_path_get(struct rvcm_carrier *carrier, uint16_t slot, const struct rvcm_addr *peer,
		  struct rvcm_path **conn)
{
	assert_true(carrier->names[slot].family);
	assert_false(carrier->closing[slot]);
	if (rvcm_addr_equal(&carrier->names[slot], peer))
		return -EINVAL;
	*conn = fake_conn_find(carrier, slot, peer);
	if (!*conn)
		*conn = &fake_conn_new(carrier, slot, peer)->pub;
	return 0;
}

const struct rvcm_way rvcm_way_none;

void *rvcm_path_reserve_any(struct rvcm_path *pub, size_t bytes)
{
	struct fake_conn *conn = fake_conn_of(pub);

	assert_false(conn->carrier->closing[pub->slot]);
	assert_null(conn->reserved);
	assert_true(bytes <= rvcm_path_message_max(pub));
	if (!fake_conn_has_credit(conn)) {
		conn->blocked = true;
		conn->wanting = !conn->other && !conn->down_due;
		return NULL;
	}
	conn->reserved = malloc(bytes);
	conn->reserved_bytes = bytes;
	return conn->reserved;
}

bool rvcm_path_may_await(struct rvcm_path *pub)
{
	(void)pub;
	return true;
}

void *rvcm_path_reserve_head(struct rvcm_path *pub, size_t bytes)
{
	return rvcm_path_reserve_any(pub, bytes);
}

static void commit(struct fake_conn *conn, size_t bytes, const struct rvcm_path_tail *write)
{
	struct fake_net *net = conn->carrier->net;

	assert_non_null(conn->reserved);
	assert_true(bytes <= conn->reserved_bytes);
	if (net->tap)
		net->tap(net->tap_ctx, &conn->pub, conn->reserved, bytes);
	fake_conn_push_written(conn->other, conn->reserved, bytes, write);
	conn->under_way++;
	conn->sent++;
	free(conn->reserved);
	conn->reserved = NULL;
}

void rvcm_path_commit(struct rvcm_path *pub, size_t bytes, enum rvcm_path_when when)
{
	struct rvcm_path_tail none = { .bytes = 0 };

	fake_conn_of(pub)->carrier->net->more = when == RVCM_PATH_MORE;
	commit(fake_conn_of(pub), bytes, &none);
}

void rvcm_path_commit_tail(struct rvcm_path *pub, size_t bytes, const struct rvcm_path_tail *tail)
{
	struct fake_conn *conn = fake_conn_of(pub);
	struct tail *copy = calloc(1, sizeof(*copy));

	assert_true(tail->bytes > 0);
	assert_non_null(tail->mr);
	assert_true(fake_net_inside(tail->mr, (uintptr_t)tail->addr, tail->bytes, 0));
	copy->cookie = tail->cookie;
	copy->number = conn->sent;
	copy->written = tail->written;
	rvcm_list_add_tail(&conn->tails, &copy->node);
	if (tail->written) {
		assert_true(tail->bytes <= pub->write_most);
		commit(conn, bytes, tail);
		return;
	}
	assert_true(pub->tails);
	assert_true(bytes + tail->bytes <= rvcm_path_message_max(pub));
	conn->reserved = realloc(conn->reserved, bytes + tail->bytes);
	memcpy(conn->reserved + bytes, tail->addr, tail->bytes);
	conn->reserved_bytes = bytes + tail->bytes;
	rvcm_path_commit(pub, bytes + tail->bytes, RVCM_PATH_NOW);
}

void rvcm_path_cancel(struct rvcm_path *pub)
{
	struct fake_conn *conn = fake_conn_of(pub);

	assert_non_null(conn->reserved);
	free(conn->reserved);
	conn->reserved = NULL;
}

size_t rvcm_path_message_max(const struct rvcm_path *pub)
{
	const struct rvcm_carrier *carrier =
		fake_conn_of((struct rvcm_path *)(uintptr_t)pub)->carrier;
	size_t takes = carrier->net->peers_take;

	return takes ? takes : carrier->attr.message_bytes_max;
}

uint32_t rvcm_path_mark(const struct rvcm_path *pub)
{
	return fake_conn_of((struct rvcm_path *)(uintptr_t)pub)->sent;
}

bool rvcm_path_accepted(const struct rvcm_path *pub, uint32_t mark)
{
	const struct fake_conn *conn = fake_conn_of((struct rvcm_path *)(uintptr_t)pub);

	return conn->sent - conn->under_way >= mark;
}

uint32_t rvcm_path_confirm(struct rvcm_path *pub)
{
	struct fake_conn *conn = fake_conn_of(pub);

	conn->confirm = true;
	conn->mark = conn->sent;
	return conn->mark;
}

void rvcm_path_dropped(struct rvcm_path *pub)
{
	fake_conn_of(pub)->dropped = true;
}

int rvcm_path_read(struct rvcm_path *pub, const struct rvcm_path_read *op)
{
	struct fake_conn *conn = fake_conn_of(pub);
	struct fake_net *net = conn->carrier->net;
	struct read *read;

	if (!pub->up || conn->faulted || conn->down_due)
		return -ENOTCONN;
	if (net->fail_post && net->posts_before == 0)
		return net->fail_post;
	if (net->posts_before)
		net->posts_before--;
	read = calloc(1, sizeof(*read));
	read->op = *op;
	net->read_bytes += op->bytes;
	rvcm_list_add_tail(&conn->reads, &read->node);
	return 0;
}

void rvcm_path_bulk(struct rvcm_path *pub, uint64_t bytes)
{
	(void)pub;
	(void)bytes;
}

void rvcm_path_fault(struct rvcm_path *pub, enum rvcm_status status, const char *why)
{
	struct fake_conn *conn = fake_conn_of(pub);
	struct fake_net *net = conn->carrier->net;

	conn->faulted = true;
	net->faults++;
	net->fault_status = status;
	snprintf(net->fault_text, sizeof(net->fault_text), "%s", why);
}

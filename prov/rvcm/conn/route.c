/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which conn leads to an endpoint of a certain name. A name says nothing about the process behind
 * it; what has been learnt from handshakes and PATH frames is kept here, until the endpoint says
 * END or the conn is lost.
 */
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

bool rvcm_route_eq(const struct rvcm_hash_node *node, const void *name)
{
	return rvcm_addr_equal(&rvcm_container_of(node, const struct rvcm_route, node)->name, name);
}

static uint64_t hash_of(const struct rvcm_carrier *carrier, const struct rvcm_addr *name)
{
	return rvcm_addr_hash(name, carrier->hash_seed);
}

struct rvcm_route *rvcm_route_find(struct rvcm_carrier *carrier, const struct rvcm_addr *name)
{
	struct rvcm_hash_node *node =
		rvcm_hash_find(&carrier->routes, hash_of(carrier, name), name);

	return node ? rvcm_container_of(node, struct rvcm_route, node) : NULL;
}

static void end(struct rvcm_route *route)
{
	rvcm_hash_del(&route->conn->carrier->routes, &route->node);
	rvcm_list_del(&route->of_conn);
	route->conn->n_routes--;
	rvcm_mem_free(route);
}

bool rvcm_route_set(struct rvcm_conn *conn, const struct rvcm_addr *name, uint16_t slot)
{
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_route *route = rvcm_route_find(carrier, name);

	if (route && route->conn == conn) {
		route->slot = slot;
		return true;
	}
	if (conn->n_routes >= RVCM_CONN_SLOTS_MAX)
		return false;
	if (route)
		end(route);
	route = rvcm_mem_zalloc(sizeof(*route));
	if (!route)
		return true; /* who looks for it connects, and hears that there is a link */
	route->name = *name;
	route->conn = conn;
	route->slot = slot;
	conn->n_routes++;
	rvcm_list_add_tail(&conn->routes, &route->of_conn);
	rvcm_hash_insert(&carrier->routes, &route->node, hash_of(carrier, name));
	return true;
}

void rvcm_route_end(struct rvcm_conn *conn, uint16_t slot)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->routes) {
		struct rvcm_route *route = rvcm_list_entry(pos, struct rvcm_route, of_conn);

		if (route->slot == slot)
			end(route);
	}
}

void rvcm_route_end_all(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->routes)))
		end(rvcm_list_entry(node, struct rvcm_route, of_conn));
}

struct trunk_key {
	uint32_t incarnation;
	bool out;
};

bool rvcm_route_trunk_eq(const struct rvcm_hash_node *node, const void *arg)
{
	const struct rvcm_conn *conn = rvcm_container_of(node, const struct rvcm_conn, trunk);
	const struct trunk_key *key = arg;

	return conn->incarnation == key->incarnation &&
	       (!key->out || (conn->is_out && rvcm_conn_is_usable(conn)));
}

static struct rvcm_conn *find_trunk(struct rvcm_carrier *carrier, uint32_t incarnation, bool out)
{
	const struct trunk_key key = { .incarnation = incarnation, .out = out };
	struct rvcm_hash_node *node = rvcm_hash_find(
		&carrier->trunks, rvcm_hash_u64(carrier->hash_seed, incarnation), &key);

	return node ? rvcm_container_of(node, struct rvcm_conn, trunk) : NULL;
}

struct rvcm_conn *rvcm_route_trunk(struct rvcm_carrier *carrier, uint32_t incarnation)
{
	return find_trunk(carrier, incarnation, false);
}

struct rvcm_conn *rvcm_route_out(struct rvcm_conn *conn)
{
	struct rvcm_conn *out = NULL;

	if (conn && conn->incarnation != conn->carrier->incarnation)
		out = find_trunk(conn->carrier, conn->incarnation, true);
	return out ? out : conn;
}

bool rvcm_route_is_higher(const struct rvcm_conn *self)
{
	return self->slot->index > self->peer_slot % RVCM_CONN_SLOTS_MAX;
}

struct rvcm_conn *rvcm_route_self(const struct rvcm_conn *lost, bool higher)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &lost->carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (conn != lost && rvcm_conn_is_usable(conn) &&
		    conn->incarnation == conn->carrier->incarnation &&
		    rvcm_route_is_higher(conn) == higher)
			return conn;
	}
	return NULL;
}

struct rvcm_slot *rvcm_route_own(struct rvcm_carrier *carrier, const struct rvcm_addr *name)
{
	for (uint16_t i = 0; i < carrier->slots_end; i++) {
		struct rvcm_slot *slot = carrier->slots[i];

		if (slot && slot->name.port == name->port && !slot->closing &&
		    rvcm_addr_equal(&slot->name, name))
			return slot;
	}
	return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_setname, fi_getname of fi_cm(3): what an endpoint is called, before and after it is enabled.
 */
#include "conf/conf.h"

#include <netinet/in.h>
#include <stdlib.h>

static const struct conf_options plain;

/* An endpoint of the node's domain that is not enabled. */
static struct fid_ep *another(struct conf_node *node)
{
	struct fid_ep *ep;

	conf_ok(fi_endpoint(node->domain, node->info, &ep, NULL));
	conf_ok(fi_ep_bind(ep, &node->av->fid, 0));
	conf_ok(fi_ep_bind(ep, &node->txcq->fid, FI_TRANSMIT | FI_RECV));
	return ep;
}

static uint16_t *port_of(void *name)
{
	struct sockaddr_in *in = name; /* where IPv6 has it too */

	return &in->sin_port;
}

/* A port that was free a moment ago. */
static uint16_t free_port(struct conf_node *node)
{
	struct fid_ep *ep = another(node);
	uint8_t name[64];
	size_t len = sizeof(name);

	conf_ok(fi_enable(ep));
	conf_ok(fi_getname(&ep->fid, name, &len));
	conf_ok(fi_close(&ep->fid));
	return *port_of(name);
}

static void an_enabled_endpoint_has_a_port(void **state)
{
	struct conf_node node;
	struct sockaddr *name;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	name = (struct sockaddr *)node.name;
	assert_int_equal(node.name_size, name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								     : sizeof(struct sockaddr_in));
	assert_int_not_equal(*port_of(name), 0);
	if (name->sa_family == AF_INET6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)node.name;

		assert_int_equal(!!in6->sin6_scope_id, IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr));
	}
	conf_close(&node);
}

static void too_little_room_is_said(void **state)
{
	struct conf_node node;
	uint8_t name[64];

	(void)state;
	conf_open(&node, &plain);
	for (size_t room = 0; room < node.name_size; room++) {
		size_t len = room;

		memset(name, 0xee, sizeof(name));
		assert_int_equal(fi_getname(&node.ep->fid, name, &len), -FI_ETOOSMALL);
		assert_int_equal(len, node.name_size);
		assert_int_equal(name[room], 0xee);
	}
	conf_close(&node);
}

static void the_room_can_be_asked_for(void **state)
{
	struct conf_node node;
	size_t len = 0;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(fi_getname(&node.ep->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(len, node.name_size);
	conf_close(&node);
}

static void a_name_can_be_set_before(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 sent, received;
	struct conf_node node;
	struct fid_ep *ep;
	uint8_t want[64], name[64];
	size_t len = sizeof(name);
	uint64_t deadline = conf_deadline();
	fi_addr_t addr;
	ssize_t rc;
	char in;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	memcpy(want, node.name, sizeof(want));
	*port_of(want) = free_port(&node);
	ep = another(&node);
	conf_ok(fi_setname(&ep->fid, want, node.name_size));
	conf_ok(fi_getname(&ep->fid, name, &len));
	assert_memory_equal(name, want, node.name_size);
	conf_ok(fi_enable(ep));
	len = sizeof(name);
	conf_ok(fi_getname(&ep->fid, name, &len));
	assert_int_equal(len, node.name_size);
	assert_memory_equal(name, want, node.name_size);
	/* it is reached there */
	assert_int_equal(fi_av_insert(node.av, want, 1, &addr, 0, NULL), 1);
	conf_ok(fi_trecv(ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	while ((rc = fi_tsend(node.ep, "n", 1, NULL, addr, 1, &sent)) == -FI_EAGAIN) {
		fi_cq_read(node.txcq, NULL, 0);
		conf_not_late(deadline);
	}
	conf_ok(rc);
	for (int n = 0; n < 2;) {
		rc = fi_cq_read(node.txcq, &entry, 1);
		conf_not_late(deadline);
		assert_true(rc == 1 || rc == -FI_EAGAIN);
		n += rc == 1;
	}
	assert_int_equal(in, 'n');
	conf_ok(fi_close(&ep->fid));
	conf_close(&node);
}

/* What fi_getname gives can be inserted, looked up, and printed with its scope. */
static void names_go_through_vectors(void **state)
{
	struct conf_node node;
	uint8_t name[64];
	char text[128];
	size_t len = sizeof(name);
	fi_addr_t addr;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	addr = conf_insert(&node, &node);
	conf_ok(fi_av_lookup(node.av, addr, name, &len));
	assert_int_equal(len, node.name_size);
	assert_memory_equal(name, node.name, len);
	len = sizeof(text);
	assert_non_null(fi_av_straddr(node.av, name, text, &len));
	assert_true(len <= sizeof(text));
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_enabled_endpoint_has_a_port),
		cmocka_unit_test(too_little_room_is_said),
		cmocka_unit_test(the_room_can_be_asked_for),
		cmocka_unit_test(a_name_can_be_set_before),
		cmocka_unit_test(names_go_through_vectors),
	};

	conf_provider();
	return conf_run_tests("name", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic classes (fi_endpoint(3), "Traffic Class"): what was asked for is on every socket that
 * carries a domain's packets, which is read back from the sockets themselves.
 */
#include "conf/conf.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

struct row {
	uint32_t tclass;
	int dscp;
};

static const struct row rows[] = {
	{ FI_TC_UNSPEC, 0 },        { FI_TC_BEST_EFFORT, 0 },
	{ FI_TC_LOW_LATENCY, 18 },  { FI_TC_DEDICATED_ACCESS, 46 },
	{ FI_TC_BULK_DATA, 10 },    { FI_TC_SCAVENGER, 1 },
	{ FI_TC_NETWORK_CTRL, 48 }, { FI_TC_DSCP | 33, 33 },
	{ FI_TC_DSCP | 0, 0 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* How many TCP sockets of this process send with that DSCP. */
static int sockets_with(int dscp)
{
	int n = 0, tos, type;
	socklen_t len;

	for (int fd = 0; fd < 256; fd++) {
		len = sizeof(type);
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_STREAM)
			continue;
		len = sizeof(tos);
		if (getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &len) == 0)
			n += tos >> 2 == dscp;
	}
	return n;
}

static struct conf_node open_as(uint32_t tx, uint32_t domain)
{
	const struct conf_options options = { .tclass = tx, .domain_tclass = domain };
	struct conf_node node;

	conf_open(&node, &options);
	return node;
}

static void say_hello(struct conf_pair *pair)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	char in;

	CONF_RETRY(pair, fi_recv(pair->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &received));
	CONF_RETRY(pair, fi_send(pair->a.ep, "x", 1, NULL, pair->to_b, &sent));
	conf_wait(pair, pair->b.rxcq, &entry, NULL);
	conf_wait(pair, pair->a.txcq, &entry, NULL);
}

/* Each end has a listening socket and one for the connection. */
static void packets_have_the_class(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		int before = sockets_with(rows[i].dscp);
		struct conf_pair pair = {
			.a = open_as(rows[i].tclass, 0),
			.b = open_as(0, rows[i].tclass),
		};

		assert_int_equal(pair.a.info->tx_attr->tclass, rows[i].tclass);
		assert_int_equal(pair.b.info->tx_attr->tclass, rows[i].tclass);
		pair.to_b = conf_insert(&pair.a, &pair.b);
		pair.to_a = conf_insert(&pair.b, &pair.a);
		say_hello(&pair);
		assert_int_equal(sockets_with(rows[i].dscp) - before, 4);
		conf_pair_close(&pair);
	}
}

static int ask(uint32_t tx, uint32_t domain)
{
	struct fi_info *hints = conf_hints(), *info = NULL;
	int rc;

	hints->tx_attr->tclass = tx;
	hints->domain_attr->tclass = domain;
	rc = fi_getinfo(CONF_VERSION, NULL, NULL, 0, hints, &info);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static void classes_that_nobody_knows_are_refused(void **state)
{
	static const uint32_t unknown[] = { 1, 63, FI_TC_DSCP | 64, FI_TC_NETWORK_CTRL + 1,
					    1u << 31 };

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert_int_equal(ask(unknown[i], 0), -FI_ENODATA);
		assert_int_equal(ask(0, unknown[i]), -FI_ENODATA);
	}
	conf_ok(ask(FI_TC_BULK_DATA, FI_TC_BULK_DATA));
	assert_int_equal(ask(FI_TC_BULK_DATA, FI_TC_SCAVENGER), -FI_ENODATA);
}

static void a_domain_has_one_class(void **state)
{
	struct conf_node node = open_as(FI_TC_BULK_DATA, 0);
	struct fi_info *info = fi_dupinfo(node.info);
	struct fid_domain *domain;
	struct fid_ep *ep;

	(void)state;
	info->tx_attr->tclass = FI_TC_SCAVENGER;
	assert_int_equal(fi_endpoint(node.domain, info, &ep, NULL), -FI_EINVAL);
	info->tx_attr->tclass = FI_TC_UNSPEC;
	conf_ok(fi_endpoint(node.domain, info, &ep, NULL));
	conf_ok(fi_close(&ep->fid));
	info->tx_attr->tclass = 12345;
	assert_int_equal(fi_domain(node.fabric, info, &domain, NULL), -FI_EINVAL);
	fi_freeinfo(info);
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_have_the_class),
		cmocka_unit_test(classes_that_nobody_knows_are_refused),
		cmocka_unit_test(a_domain_has_one_class),
	};

	conf_provider();
	return conf_run_tests("tclass", tests);
}

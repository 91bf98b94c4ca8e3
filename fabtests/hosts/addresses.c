/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which address an endpoint has, and which way leads to it: through a router, of two addresses or
 * two interfaces the one asked for, by a route that changes, and out of ports. To be run by
 * addresses.sh; an argument chooses tests by name, "*" stands for anything.
 *
 * Hosts 1 and 2 have a wire of their own, besides the network of all hosts (eth0): eth1, where they
 * are 10.78.0.1 and 10.78.0.2.
 */
#include "hosts/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS     5
#define EXCHANGED  (ROUNDS * (uint64_t)CONF_LONG_BYTES) /* at least, each way */
#define STRAY_MOST 100000                               /* bytes of what is not a message's */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };
static const struct conf_options anywhere = { .caps = FI_SOURCE | FI_DIRECTED_RECV,
					      .source = "0.0.0.0" };

static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, ROUNDS);
}

/* When we are told. */
static void role_late(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	host_await(from);
	conf_exchange(node, peer, 0, ROUNDS);
}

/* Twice, and in between what the test is about. */
static void role_twice(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	conf_exchange(node, peer, 0, ROUNDS);
	conf_put(to, "!", 1);
	host_await(from);
	conf_exchange(node, peer, 0, ROUNDS);
}

static const struct conf_role roles[] = { { "exchange", role_exchange },
					  { "late", role_late },
					  { "twice", role_twice } };

/* -- what is seen ----------------------------------------------------------------------------- */

/* Bytes that this host has sent from an interface. */
static uint64_t sent_from(const char *iface)
{
	unsigned long long sent;
	char line[512], name[32];
	FILE *file = fopen("/proc/net/dev", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " %31[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %llu", name, &sent) !=
			    2 ||
		    strcmp(name, iface))
			continue;
		fclose(file);
		return sent;
	}
	fail_msg("no interface %s", iface);
	return 0;
}

static void check_name(const struct conf_node *node, const char *address)
{
	const struct sockaddr_in *name = (const struct sockaddr_in *)node->name;
	char text[INET_ADDRSTRLEN];

	assert_string_equal(inet_ntop(AF_INET, &name->sin_addr, text, sizeof(text)), address);
}

/* An exchange that goes through one interface of ours, and not the other. */
static void exchange_through(struct host_pair *p, const char *iface, const char *other)
{
	uint64_t used = sent_from(iface), unused = sent_from(other);

	conf_exchange(&p->node, p->peer, 0, ROUNDS);
	assert_in_range(sent_from(iface) - used, EXCHANGED, 2 * EXCHANGED);
	assert_in_range(sent_from(other) - unused, 0, STRAY_MOST);
}

/* -- one interface ---------------------------------------------------------------------------- */

static void hosts_exchange_through_a_router(void **state)
{
	struct host_pair p;

	(void)state;
	host_pair_open(&p, 2, "exchange", &plain);
	exchange_through(&p, "eth0", "lo");
	host_pair_close(&p, 0);
}

/* A host with two addresses: the one asked for is bound, told, and what packets come from. */
static void an_explicit_source_wins(void **state)
{
	const struct conf_options second = { .caps = plain.caps, .source = "10.77.1.2" };
	struct host_pair p;

	(void)state;
	host_shell("ip -n @-1 addr add 10.77.1.2/24 dev eth0");
	host_pair_open(&p, 2, "exchange", &second);
	check_name(&p.node, "10.77.1.2");
	conf_exchange(&p.node, p.peer, 0, ROUNDS);
	host_shell("ip netns exec @-1 ss -Htn src 10.77.1.2 dst 10.77.2.1 | grep -q .");
	host_pair_close(&p, 0);
	host_shell("ip -n @-1 addr del 10.77.1.2/24 dev eth0");
}

/* -- two interfaces --------------------------------------------------------------------------- */

static void add_wire(void)
{
	host_shell("ip link add eth1 netns @-1 type veth peer name eth1 netns @-2 && "
		   "ip -n @-1 addr add 10.78.0.1/24 dev eth1 && ip -n @-1 link set eth1 up && "
		   "ip -n @-2 addr add 10.78.0.2/24 dev eth1 && ip -n @-2 link set eth1 up");
}

static void remove_wire(void)
{
	host_shell("ip -n @-1 link del eth1");
}

static void an_interface_is_chosen_by_its_name(void **state)
{
	static const struct {
		const char *iface, *other, *address;
	} cases[] = {
		{ "eth0", "eth1", "10.77.1.1" },
		{ "eth1", "eth0", "10.78.0.1" },
	};

	(void)state;
	add_wire();
	for (int i = 0; i < 2; i++) {
		struct host_pair p;

		setenv("FI_RVCM_IFACE", cases[i].iface, 1);
		host_pair_open(&p, 2, "exchange", &plain);
		check_name(&p.node, cases[i].address);
		assert_null(p.node.info->next);
		exchange_through(&p, cases[i].iface, cases[i].other);
		host_pair_close(&p, 0);
	}
	setenv("FI_RVCM_IFACE", "eth0", 1);
	remove_wire();
}

/* Nobody chooses: both are offered, and first the one that is on the destination's network. */
static void the_near_interface_is_offered_first(void **state)
{
	static const char *const ways[][2] = { { "10.77.1.254", "10.77.1.1" },
					       { "10.78.0.2", "10.78.0.1" } };
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	add_wire();
	unsetenv("FI_RVCM_IFACE");
	for (int i = 0; i < 2; i++) {
		struct conf_node node = { 0 };

		conf_ok(fi_getinfo(CONF_VERSION, ways[i][0], "1", FI_NUMERICHOST, hints, &info));
		memcpy(node.name, info->src_addr, info->src_addrlen);
		check_name(&node, ways[i][1]);
		assert_non_null(info->next);
		assert_null(info->next->next);
		fi_freeinfo(info);
	}
	setenv("FI_RVCM_IFACE", "eth0", 1);
	fi_freeinfo(hints);
	remove_wire();
}

/*
 * Who asks for any address has one name, and is reached by it through whichever interface leads
 * there: first through the router; then that way is closed, and the other is the route.
 */
static void a_wildcard_has_one_name_on_two_wires(void **state)
{
	struct host_pair p;

	(void)state;
	add_wire();
	host_pair_open(&p, 2, "twice", &anywhere);
	check_name(&p.node, "10.77.1.1");
	exchange_through(&p, "eth0", "eth1");
	host_hear(&p);
	host_shell("ip -n @-r link set to2 down && "
		   "ip -n @-1 route add 10.77.2.1/32 via 10.78.0.2 && "
		   "ip -n @-2 route add 10.77.1.1/32 via 10.78.0.1");
	host_say(&p.other);
	exchange_through(&p, "eth1", "eth0");
	host_pair_close(&p, 0);
	remove_wire();
	host_shell("ip -n @-r link set to2 up");
}

/* -- out of ports ---------------------------------------------------------------------------- */

static void port_range(const char *range)
{
	host_shell("ip netns exec @-1 sh -c 'echo %s >/proc/sys/net/ipv4/ip_local_port_range'",
		   range);
}

static int take_port(uint16_t port)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	conf_ok(bind(fd, (const struct sockaddr *)&any, sizeof(any)));
	conf_ok(listen(fd, 1));
	return fd;
}

static int enable_another(struct conf_node *node)
{
	struct fid_ep *ep;
	int rc;

	conf_ok(fi_endpoint(node->domain, node->info, &ep, NULL));
	conf_ok(fi_ep_bind(ep, &node->av->fid, 0));
	conf_ok(fi_ep_bind(ep, &node->txcq->fid, FI_TRANSMIT | FI_RECV));
	rc = fi_enable(ep);
	conf_ok(fi_close(&ep->fid));
	return rc;
}

static void ports_run_out(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct host_pair p;
	int fds[2];

	(void)state;
	host_pair_open(&p, 2, "late", &plain);
	fds[0] = take_port(20000);
	fds[1] = take_port(20001);
	port_range("20000 20001");
	assert_int_equal(enable_another(&p.node), -FI_EADDRINUSE);
	CONF_TRY(&p.node, fi_tsend(p.node.ep, "x", 1, NULL, p.peer, 1, &context));
	conf_expect_error(&p.node, &error);
	assert_int_equal(error.err, FI_EADDRNOTAVAIL);
	host_check_text(&p.node, &error, "ip_local_port_range");
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(enable_another(&p.node), 0);
	host_say(&p.other);
	conf_exchange(&p.node, p.peer, 0, ROUNDS);
	host_pair_close(&p, 0);
	port_range("32768 60999");
}

/* What a test that failed has left; most of it is not there. */
static int restore(void **state)
{
	(void)state;
	setenv("FI_RVCM_IFACE", "eth0", 1);
	port_range("32768 60999");
	host_shell("exec 2>/dev/null; ip -n @-1 addr del 10.77.1.2/24 dev eth0; "
		   "ip -n @-1 link del eth1; ip -n @-r link set to2 up; exit 0");
	return 0;
}

#define PLACE(test) cmocka_unit_test_teardown(test, restore)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACE(hosts_exchange_through_a_router),
		PLACE(an_explicit_source_wins),
		PLACE(an_interface_is_chosen_by_its_name),
		PLACE(the_near_interface_is_offered_first),
		PLACE(a_wildcard_has_one_name_on_two_wires),
		PLACE(ports_run_out),
	};

	setenv("FI_RVCM_CONNECT_TIMEOUT", "10000", 1);
	setenv("FI_RVCM_IFACE", "eth0", argc != 4); /* the other has what its test has set */
	conf_provider();
	return host_main(argc, argv, roles, &plain, "addresses", tests);
}

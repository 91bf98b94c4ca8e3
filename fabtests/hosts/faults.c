/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to connections between hosts: cut, silenced, gone, stopped, out of ports. To be run
 * by faults.sh on host 1 of hosts.sh, whose namespaces' names begin with RVCM_HOSTS. An argument
 * chooses tests by name, "*" stands for anything.
 *
 * Time passes where a host has to be silent for a while, and nothing is expected sooner or later
 * than before the test's own, far longer, time-out.
 */
#include "conf/proc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_TIMEOUT_MS 600
#define CONNECT_TIMEOUT_MS 1500
#define BULK_BYTES         (64u << 20) /* far more than the sockets hold */
#define BULK_TAG           500
#define BULK_SEED          1 /* its first byte is not 0 */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };

/* -- hosts ---------------------------------------------------------------------------------- */

/* Run a command; "@" in it stands for what the namespaces' names begin with. */
static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
	char command[512], text[512];
	const char *net = getenv("RVCM_HOSTS");
	size_t n = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	for (const char *c = command; *c; c++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", *c == '@' ? 64 : 1,
				      *c == '@' ? net : c);
	assert_int_equal(system(text), 0);
}

static const char *host(int number, char name[64])
{
	snprintf(name, 64, "%s-%d", getenv("RVCM_HOSTS"), number);
	return name;
}

/* The wire to host 2. */
static void cut(void)
{
	shell("ip -n @-r link set to2 down");
}

/* Its address and routes go when a device goes down, for IPv6 alone. */
static void mend(void)
{
	shell("ip -n @-r link set to2 up");
}

/* -- the two sides --------------------------------------------------------------------------- */

struct pair {
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
};

static void open_pair(struct pair *p, int number, const char *role)
{
	char name[64];

	conf_other_start(&p->other, host(number, name), role);
	conf_open(&p->node, &plain);
	p->peer = conf_meet(&p->node, p->other.to, p->other.from);
}

static void close_pair(struct pair *p, int status)
{
	conf_close(&p->node);
	conf_other_end(&p->other, status);
}

static void say(const struct conf_other *other)
{
	conf_put(other->to, "!", 1);
}

/* Wait for the other's word, and make progress meanwhile. */
static void hear(struct pair *p)
{
	struct pollfd at = { .fd = p->other.from, .events = POLLIN };
	uint64_t deadline = conf_deadline();
	char c;

	while (poll(&at, 1, 0) == 0) {
		conf_drive(&p->node);
		conf_not_late(deadline);
	}
	conf_get(at.fd, &c, 1);
}

/* What an application reads about a failure. */
static void check_text(struct conf_node *node, const struct fi_cq_err_entry *error,
		       const char *expected)
{
	char buf[256];
	const char *text =
		fi_cq_strerror(node->txcq, error->prov_errno, error->err_data, buf, sizeof(buf));

	if (!strstr(text, expected))
		fail_msg("\"%s\" says nothing of \"%s\"", text, expected);
}

static void expect(struct conf_node *node, int err)
{
	struct fi_cq_err_entry error;

	conf_expect_error(node, &error);
	assert_int_equal(error.err, err);
	check_text(node, &error, "peer ");
}

/* Receive a long message until some of it is there, and then look away. */
static uint8_t *begin_bulk(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context)
{
	uint8_t *in = calloc(1, BULK_BYTES);
	uint64_t deadline = conf_deadline();

	CONF_TRY(node, fi_trecv(node->ep, in, BULK_BYTES, NULL, peer, BULK_TAG, 0, context));
	while (!*(volatile uint8_t *)in) {
		conf_drive(node);
		conf_not_late(deadline);
	}
	return in;
}

static uint8_t *send_bulk(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context)
{
	uint8_t *out = malloc(BULK_BYTES);

	conf_fill(out, BULK_BYTES, BULK_SEED);
	CONF_TRY(node, fi_tsend(node->ep, out, BULK_BYTES, NULL, peer, BULK_TAG, context));
	return out;
}

/* -- roles ----------------------------------------------------------------------------------- */

static void await(int from)
{
	char c;

	conf_get(from, &c, 1);
}

static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 5);
}

/* When we are told. */
static void role_late(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	await(from);
	conf_exchange(node, peer, 0, 5);
}

/* A connection, a receive that waits, its failure, and all well again. */
static void role_lose(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	uint8_t byte;

	conf_exchange(node, peer, 0, 1);
	CONF_TRY(node, fi_trecv(node->ep, &byte, 1, NULL, peer, BULK_TAG + 1, 0, &context));
	conf_put(to, "!", 1);
	conf_expect_error(node, &error);
	conf_put(to, "!", 1);
	await(from);
	conf_exchange(node, peer, 1, 5);
}

/* Half of a long message, then what the test is about; it may be the end. */
static void role_half(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	uint8_t *in;

	conf_exchange(node, peer, 0, 1);
	in = begin_bulk(node, peer, &context);
	conf_put(to, "!", 1);
	await(from);
	conf_expect_error(node, &error);
	assert_ptr_equal(error.op_context, &context);
	conf_put(to, "!", 1);
	await(from);
	free(in);
	conf_exchange(node, peer, 1, 5);
}

/* Half of it, a rest of any length, and the whole. */
static void role_pause(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 context;
	uint8_t *in;

	(void)from;
	conf_exchange(node, peer, 0, 1);
	in = begin_bulk(node, peer, &context);
	conf_put(to, "!", 1);
	raise(SIGSTOP);
	conf_wait_for(node, 1);
	conf_check(in, BULK_BYTES, BULK_SEED);
	free(in);
	conf_exchange(node, peer, 1, 5);
}

/* Send it, until the end. */
static void role_sender(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 context;

	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 1);
	send_bulk(node, peer, &context);
	for (;;)
		conf_drive(node);
}

static const struct conf_role roles[] = {
	{ "exchange", role_exchange }, { "late", role_late },   { "lose", role_lose },
	{ "half", role_half },         { "pause", role_pause }, { "sender", role_sender },
};

/* -- between hosts --------------------------------------------------------------------------- */

static void hosts_exchange_through_a_router(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, 2, "exchange");
	conf_exchange(&p.node, p.peer, 0, 5);
	close_pair(&p, 0);
}

/* A host with two addresses: the one asked for is bound, told, and what packets come from. */
static void an_explicit_source_wins(void **state)
{
	const struct conf_options second = { .caps = plain.caps, .source = "10.77.1.2" };
	const struct sockaddr_in *name;
	struct pair p;
	char text[32];

	(void)state;
	shell("ip -n @-1 addr add 10.77.1.2/24 dev eth0");
	conf_other_start(&p.other, host(2, (char[64]) { 0 }), "exchange");
	conf_open(&p.node, &second);
	name = (const struct sockaddr_in *)p.node.name;
	assert_string_equal(inet_ntop(AF_INET, &name->sin_addr, text, sizeof(text)), "10.77.1.2");
	p.peer = conf_meet(&p.node, p.other.to, p.other.from);
	conf_exchange(&p.node, p.peer, 0, 5);
	shell("ip netns exec @-1 ss -Htn src 10.77.1.2 dst 10.77.2.1 | grep -q .");
	close_pair(&p, 0);
	shell("ip -n @-1 addr del 10.77.1.2/24 dev eth0");
}

/* -- cut ------------------------------------------------------------------------------------- */

/* "lose" at the other side: it and we wait for each other; then fault; both learn, and go on. */
static void lose(void (*fault)(void), void (*repair)(void), int err)
{
	struct fi_context2 contexts[2];
	struct pair p, third;
	uint8_t *out, byte;

	open_pair(&p, 2, "lose");
	open_pair(&third, 3, "exchange");
	conf_exchange(&p.node, p.peer, 0, 1);
	hear(&p);
	CONF_TRY(&p.node, fi_trecv(p.node.ep, &byte, 1, NULL, p.peer, BULK_TAG, 0, &contexts[0]));
	out = send_bulk(&p.node, p.peer, &contexts[1]);
	fault();
	expect(&p.node, err);
	expect(&p.node, err);
	conf_exchange(&third.node, third.peer, 0, 5);
	hear(&p);
	repair();
	say(&p.other);
	conf_exchange(&p.node, p.peer, 1, 5);
	free(out);
	close_pair(&third, 0);
	close_pair(&p, 0);
}

static void kill_sockets(void)
{
	shell("ip netns exec @-1 ss -tK dst 10.77.2.1 >/dev/null");
}

static void nothing(void)
{
}

/* sock_destroy(9): ECONNABORTED here, a reset there. */
static void a_destroyed_socket_is_reported(void **state)
{
	(void)state;
	lose(kill_sockets, nothing, FI_ECONNABORTED);
}

/* No segment gets through any more, and nothing says so. */
static void a_silent_host_is_given_up(void **state)
{
	(void)state;
	lose(cut, mend, FI_ETIMEDOUT);
}

static void lose_address(void)
{
	shell("ip -n @-2 addr del 10.77.2.1/24 dev eth0");
}

static void regain_address(void)
{
	shell("ip -n @-2 addr add 10.77.2.1/24 dev eth0 && ip -n @-2 route add default via 10.77.2.254");
}

static void a_lost_address_is_silence(void **state)
{
	(void)state;
	lose(lose_address, regain_address, FI_ETIMEDOUT);
}

/* Nobody sends anything: only the probes of an idle connection can tell. */
static void an_idle_connection_is_probed(void **state)
{
	struct fi_context2 context;
	struct pair p;
	uint8_t byte;

	(void)state;
	open_pair(&p, 2, "lose");
	conf_exchange(&p.node, p.peer, 0, 1);
	CONF_TRY(&p.node, fi_trecv(p.node.ep, &byte, 1, NULL, p.peer, BULK_TAG, 0, &context));
	hear(&p);
	cut();
	expect(&p.node, FI_ETIMEDOUT);
	hear(&p);
	mend();
	say(&p.other);
	conf_exchange(&p.node, p.peer, 1, 5);
	close_pair(&p, 0);
}

/* With a long message half there. */
static void silence_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct pair p;
	uint8_t *out;

	(void)state;
	open_pair(&p, 2, "half");
	conf_exchange(&p.node, p.peer, 0, 1);
	out = send_bulk(&p.node, p.peer, &context);
	hear(&p);
	cut();
	say(&p.other);
	expect(&p.node, FI_ETIMEDOUT);
	hear(&p);
	mend();
	say(&p.other);
	conf_exchange(&p.node, p.peer, 1, 5);
	free(out);
	close_pair(&p, 0);
}

/* Not even a connection: within FI_RVCM_CONNECT_TIMEOUT, and another attempt finds the host again.
 */
static void silence_in_connect(void **state)
{
	struct fi_context2 context;
	struct pair p;

	(void)state;
	open_pair(&p, 2, "late");
	cut();
	CONF_TRY(&p.node, fi_tsend(p.node.ep, "x", 1, NULL, p.peer, BULK_TAG, &context));
	expect(&p.node, FI_ETIMEDOUT);
	mend();
	say(&p.other);
	conf_exchange(&p.node, p.peer, 0, 5);
	close_pair(&p, 0);
}

/* A router that says so. */
static void an_unreachable_host_is_named(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct pair p;

	(void)state;
	open_pair(&p, 2, "late");
	shell("ip netns exec @-r sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'");
	shell("ip -n @-r route add unreachable 10.77.2.1/32");
	CONF_TRY(&p.node, fi_tsend(p.node.ep, "x", 1, NULL, p.peer, BULK_TAG, &context));
	conf_expect_error(&p.node, &error);
	assert_int_equal(error.err, FI_EHOSTUNREACH);
	check_text(&p.node, &error, "10.77.2.1");
	shell("ip -n @-r route del unreachable 10.77.2.1/32");
	say(&p.other);
	conf_exchange(&p.node, p.peer, 0, 5);
	close_pair(&p, 0);
}

/* -- killed and stopped ---------------------------------------------------------------------- */

/* The name that a process had who is gone may be another's: it is met anew. */
static void again(struct pair *p)
{
	char name[64];

	conf_other_start(&p->other, host(2, name), "exchange");
	p->peer = conf_meet(&p->node, p->other.to, p->other.from);
	conf_exchange(&p->node, p->peer, 0, 5);
	close_pair(p, 0);
}

static void a_receiver_is_killed_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct pair p;
	uint8_t *out;

	(void)state;
	open_pair(&p, 2, "half");
	conf_exchange(&p.node, p.peer, 0, 1);
	out = send_bulk(&p.node, p.peer, &context);
	hear(&p);
	conf_ok(kill(p.other.pid, SIGKILL));
	expect(&p.node, FI_ECONNRESET);
	conf_other_end(&p.other, SIGKILL);
	free(out);
	again(&p);
}

static void a_sender_is_killed_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct pair p;
	uint8_t *in;

	(void)state;
	open_pair(&p, 2, "sender");
	conf_exchange(&p.node, p.peer, 0, 1);
	in = begin_bulk(&p.node, p.peer, &context);
	conf_ok(kill(p.other.pid, SIGKILL));
	expect(&p.node, FI_ECONNRESET);
	conf_other_end(&p.other, SIGKILL);
	free(in);
	again(&p);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * A process that is stopped, or computes, is alive: its host answers, and its window is shut. For
 * several times FI_RVCM_SILENCE_TIMEOUT.
 */
static void a_stopped_process_loses_nothing(void **state)
{
	struct fi_context2 context;
	struct pair p;
	uint64_t until;
	uint8_t *out;
	int status;

	(void)state;
	open_pair(&p, 2, "pause");
	conf_exchange(&p.node, p.peer, 0, 1);
	out = send_bulk(&p.node, p.peer, &context);
	hear(&p);
	assert_int_equal(waitpid(p.other.pid, &status, WUNTRACED), p.other.pid);
	assert_true(WIFSTOPPED(status));
	for (until = now_ms() + 5 * SILENCE_TIMEOUT_MS; now_ms() < until;)
		conf_drive(&p.node);
	conf_ok(kill(p.other.pid, SIGCONT));
	conf_wait_for(&p.node, 1);
	conf_exchange(&p.node, p.peer, 1, 5);
	free(out);
	close_pair(&p, 0);
}

/* -- out of ports ---------------------------------------------------------------------------- */

static void port_range(const char *range)
{
	shell("ip netns exec @-1 sh -c 'echo %s >/proc/sys/net/ipv4/ip_local_port_range'", range);
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
	struct pair p;
	int fds[2];

	(void)state;
	open_pair(&p, 2, "late");
	fds[0] = take_port(20000);
	fds[1] = take_port(20001);
	port_range("20000 20001");
	assert_int_equal(enable_another(&p.node), -FI_EADDRINUSE);
	CONF_TRY(&p.node, fi_tsend(p.node.ep, "x", 1, NULL, p.peer, BULK_TAG, &context));
	conf_expect_error(&p.node, &error);
	assert_int_equal(error.err, FI_EADDRNOTAVAIL);
	check_text(&p.node, &error, "ip_local_port_range");
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(enable_another(&p.node), 0);
	say(&p.other);
	conf_exchange(&p.node, p.peer, 0, 5);
	close_pair(&p, 0);
	port_range("32768 60999");
}

/* What a test that failed has left; most of it is not there. */
static int restore(void **state)
{
	(void)state;
	port_range("32768 60999");
	shell("exec 2>/dev/null; ip -n @-r link set to2 up; ip -n @-r route del unreachable 10.77.2.1/32; "
	      "ip -n @-1 addr del 10.77.1.2/24 dev eth0; ip -n @-2 addr add 10.77.2.1/24 dev eth0; "
	      "ip -n @-2 route add default via 10.77.2.254; exit 0");
	return 0;
}

#define FAULT(test) cmocka_unit_test_teardown(test, restore)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAULT(hosts_exchange_through_a_router),
		FAULT(an_explicit_source_wins),
		FAULT(a_destroyed_socket_is_reported),
		FAULT(a_silent_host_is_given_up),
		FAULT(a_lost_address_is_silence),
		FAULT(an_idle_connection_is_probed),
		FAULT(silence_in_mid_transfer),
		FAULT(silence_in_connect),
		FAULT(an_unreachable_host_is_named),
		FAULT(a_receiver_is_killed_in_mid_transfer),
		FAULT(a_sender_is_killed_in_mid_transfer),
		FAULT(a_stopped_process_loses_nothing),
		FAULT(ports_run_out),
	};
	char number[16];

	snprintf(number, sizeof(number), "%d", SILENCE_TIMEOUT_MS);
	setenv("FI_RVCM_SILENCE_TIMEOUT", number, 1);
	setenv("FI_RVCM_KEEPALIVE", "1", 1);
	snprintf(number, sizeof(number), "%d", CONNECT_TIMEOUT_MS);
	setenv("FI_RVCM_CONNECT_TIMEOUT", number, 1);
	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	if (argc == 4)
		return conf_play(roles, sizeof(roles) / sizeof(roles[0]), &plain, argv);
	if (!getenv("RVCM_HOSTS")) {
		fprintf(stderr, "faults: to be run by fabtests/hosts/faults.sh\n");
		return 2;
	}
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}

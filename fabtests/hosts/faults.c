/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to connections between hosts: cut, silenced, gone, stopped. To be run by faults.sh;
 * an argument chooses tests by name, "*" stands for anything.
 *
 * Time passes where a host has to be silent for a while, and nothing is expected sooner or later
 * than before the test's own, far longer, time-out.
 */
#include "hosts/bulk.h"
#include "hosts/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define SILENCE_TIMEOUT_MS 600
#define CONNECT_TIMEOUT_MS 1500

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };

/* -- roles ----------------------------------------------------------------------------------- */

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
	host_await(from);
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
	host_await(from);
	conf_exchange(node, peer, 1, 5);
}

/* Half of a long message, then what the test is about; it may be the end. */
static void role_half(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	bulk_in_vain(node, peer, to, from, "peer ");
}

/* Half of it, a rest of any length, and the whole. */
static void role_pause(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 context;
	uint8_t *in;

	conf_exchange(node, peer, 0, 1);
	in = bulk_begin(node, peer, &context);
	conf_put(to, "!", 1);
	raise(SIGSTOP);
	conf_wait_for(node, 1);
	conf_check(in, BULK_BYTES, BULK_SEED);
	free(in);
	host_await(from);
	conf_exchange(node, peer, 1, 5);
}

/* Send it, until the end. */
static void role_sender(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 context;

	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 1);
	bulk_send(node, peer, &context);
	for (;;)
		conf_drive(node);
}

static const struct conf_role roles[] = {
	{ "exchange", role_exchange }, { "late", role_late },   { "lose", role_lose },
	{ "half", role_half },         { "pause", role_pause }, { "sender", role_sender },
};

/* -- cut ------------------------------------------------------------------------------------- */

/* "lose" at the other side: it and we wait for each other; then fault; both learn, and go on. */
static void lose(void (*fault)(void), void (*repair)(void), int err)
{
	struct fi_context2 contexts[2];
	struct host_pair p, third;
	uint8_t *out, byte;

	host_pair_open(&third, 3, "exchange", &plain);
	out = bulk_half(&p, "lose", &plain, &contexts[0]);
	CONF_TRY(&p.node, fi_trecv(p.node.ep, &byte, 1, NULL, p.peer, BULK_TAG, 0, &contexts[1]));
	fault();
	host_expect(&p.node, err);
	host_expect(&p.node, err);
	conf_exchange(&third.node, third.peer, 0, 5);
	host_hear(&p);
	repair();
	free(out);
	host_pair_close(&third, 0);
	bulk_go_on(&p, 1);
}

/* sock_destroy(9): ECONNABORTED here, a reset there. */
static void a_destroyed_socket_is_reported(void **state)
{
	(void)state;
	lose(wire_destroy, wire_nothing, FI_ECONNABORTED);
}

/* No segment gets through any more, and nothing says so. */
static void a_silent_host_is_given_up(void **state)
{
	(void)state;
	lose(wire_cut, wire_mend, FI_ETIMEDOUT);
}

static void a_lost_address_is_silence(void **state)
{
	(void)state;
	lose(wire_lose_address, wire_regain_address, FI_ETIMEDOUT);
}

/* Nobody sends anything: only the probes of an idle connection can tell. */
static void an_idle_connection_is_probed(void **state)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t byte;

	(void)state;
	host_pair_open(&p, 2, "lose", &plain);
	conf_exchange(&p.node, p.peer, 0, 1);
	CONF_TRY(&p.node, fi_trecv(p.node.ep, &byte, 1, NULL, p.peer, BULK_TAG, 0, &context));
	host_hear(&p);
	wire_cut();
	host_expect(&p.node, FI_ETIMEDOUT);
	host_hear(&p);
	wire_mend();
	bulk_go_on(&p, 1);
}

/* With a long message half there. */
static void silence_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *out = bulk_half(&p, "half", &plain, &context);

	(void)state;
	wire_cut();
	host_say(&p.other);
	host_expect(&p.node, FI_ETIMEDOUT);
	host_hear(&p);
	wire_mend();
	free(out);
	bulk_go_on(&p, 1);
}

/* What cannot be sent now, for this reason. */
static void send_in_vain(struct host_pair *p, int err, const char *text)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;

	CONF_TRY(&p->node, fi_tsend(p->node.ep, "x", 1, NULL, p->peer, BULK_TAG, &context));
	conf_expect_error(&p->node, &error);
	assert_int_equal(error.err, err);
	host_check_text(&p->node, &error, text);
}

/* Not even a connection: within FI_RVCM_CONNECT_TIMEOUT, and another attempt finds the host again.
 */
static void silence_in_connect(void **state)
{
	struct host_pair p;

	(void)state;
	host_pair_open(&p, 2, "late", &plain);
	wire_cut();
	send_in_vain(&p, FI_ETIMEDOUT, "peer ");
	wire_mend();
	bulk_go_on(&p, 0);
}

/* A router that says so. */
static void an_unreachable_host_is_named(void **state)
{
	struct host_pair p;

	(void)state;
	host_pair_open(&p, 2, "late", &plain);
	host_shell("ip netns exec @-r sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'");
	host_shell("ip -n @-r route add unreachable 10.77.2.1/32");
	send_in_vain(&p, FI_EHOSTUNREACH, "10.77.2.1");
	host_shell("ip -n @-r route del unreachable 10.77.2.1/32");
	bulk_go_on(&p, 0);
}

/* -- killed and stopped ---------------------------------------------------------------------- */

/* The other is killed, and we learn it. The name that it had may be another's: it is met anew. */
static void kill_other(struct host_pair *p)
{
	char name[64];

	conf_ok(kill(p->other.pid, SIGKILL));
	host_expect(&p->node, FI_ECONNRESET);
	conf_other_end(&p->other, SIGKILL);
	conf_other_start(&p->other, host_name(2, name), "late");
	p->peer = conf_meet(&p->node, p->other.to, p->other.from);
	bulk_go_on(p, 0);
}

static void a_receiver_is_killed_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *out = bulk_half(&p, "half", &plain, &context);

	(void)state;
	kill_other(&p);
	free(out);
}

static void a_sender_is_killed_in_mid_transfer(void **state)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *in;

	(void)state;
	host_pair_open(&p, 2, "sender", &plain);
	conf_exchange(&p.node, p.peer, 0, 1);
	in = bulk_begin(&p.node, p.peer, &context);
	kill_other(&p);
	free(in);
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
	struct host_pair p;
	uint8_t *out = bulk_half(&p, "pause", &plain, &context);
	uint64_t until;
	int status;

	(void)state;
	assert_int_equal(waitpid(p.other.pid, &status, WUNTRACED), p.other.pid);
	assert_true(WIFSTOPPED(status));
	for (until = now_ms() + 5 * SILENCE_TIMEOUT_MS; now_ms() < until;)
		conf_drive(&p.node);
	conf_ok(kill(p.other.pid, SIGCONT));
	conf_wait_for(&p.node, 1);
	free(out);
	bulk_go_on(&p, 1);
}

#define FAULT(test) cmocka_unit_test_teardown(test, wire_restore)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
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
	};
	char number[16];

	snprintf(number, sizeof(number), "%d", SILENCE_TIMEOUT_MS);
	setenv("FI_RVCM_SILENCE_TIMEOUT", number, 1);
	setenv("FI_RVCM_HEARTBEAT", "1", 1);
	setenv("FI_RVCM_RECONNECT_TIMEOUT", "0", 1); /* what is lost is lost */
	snprintf(number, sizeof(number), "%d", CONNECT_TIMEOUT_MS);
	setenv("FI_RVCM_CONNECT_TIMEOUT", number, 1);
	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	return host_main(argc, argv, roles, &plain, "faults", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between hosts that are lost, and come again, with half of a long message under way:
 * nothing fails, and every byte is right. To be run by recovery.sh; an argument chooses tests by
 * name, "*" stands for anything.
 *
 * FABTEST_OUT_MS: for how long the wire is cut where it is waited for; FABTEST_UP_MS: how long is
 * tried in vain. The real thing is 20000 and 30000.
 */
#include "hosts/bulk.h"
#include "hosts/wire.h"

#include <signal.h>
#include <stdlib.h>

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV, .source = "" };

/* -- the other side -------------------------------------------------------------------------- */

/* Half of a long message, and when the test says so the rest of it. */
static void role_receive(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	struct fi_context2 context;
	uint8_t *in;

	conf_exchange(node, peer, 0, 1);
	in = bulk_begin(node, peer, &context);
	conf_put(to, "!", 1);
	host_await(from);
	conf_wait_for(node, 1);
	conf_check(in, BULK_BYTES, BULK_SEED);
	free(in);
	conf_exchange(node, peer, 1, 5);
}

/* The same, and it does not come. */
static void role_in_vain(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	bulk_in_vain(node, peer, to, from, "; tried for ");
}

static const struct conf_role roles[] = {
	{ "receive", role_receive },
	{ "in_vain", role_in_vain },
};

/* -- what happens ---------------------------------------------------------------------------- */

static const char *ms(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	return value ? value : otherwise;
}

/* Both sides have let go of the connection: nothing but a new one will do. */
static void cut_and_destroy(void)
{
	wire_cut();
	wire_destroy();
	wire_destroy_there();
}

static void lose_address_and_destroy(void)
{
	wire_lose_address();
	wire_destroy();
	wire_destroy_there();
}

/* Node 2 has half of it; then this happens, and is over again after out_ms; and the whole arrives.
 */
static void survive(void (*fault)(void), void (*repair)(void), const char *out_ms)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *out = bulk_half(&p, "receive", &plain, &context);
	uint64_t until;

	fault();
	host_say(&p.other);
	until = conf_deadline() + strtoull(out_ms, NULL, 10);
	while (conf_deadline() < until)
		conf_drive(&p.node);
	repair();
	conf_wait_for(&p.node, 1);
	free(out);
	conf_exchange(&p.node, p.peer, 1, 5);
	host_pair_close(&p, 0);
}

static void a_destroyed_socket_is_replaced(void **state)
{
	(void)state;
	survive(wire_destroy, wire_nothing, "0");
}

static void a_socket_that_is_destroyed_there_is_replaced(void **state)
{
	(void)state;
	survive(wire_destroy_there, wire_nothing, "0");
}

static void a_cut_wire_is_waited_for(void **state)
{
	(void)state;
	survive(cut_and_destroy, wire_mend, ms("FABTEST_OUT_MS", "1000"));
}

static void an_address_that_comes_back_is_found(void **state)
{
	(void)state;
	survive(lose_address_and_destroy, wire_regain_address, "0");
}

/* Too long: one error for each operation, with a text, and something new goes well. */
static void time_is_up(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *out;

	(void)state;
	setenv("FI_RVCM_RECONNECT_TIMEOUT", ms("FABTEST_UP_MS", "1500"), 1);
	out = bulk_half(&p, "in_vain", &plain, &context);
	cut_and_destroy();
	host_say(&p.other);
	conf_expect_error(&p.node, &error);
	assert_ptr_equal(error.op_context, &context);
	host_check_text(&p.node, &error, "peer 10.77.2.1:");
	host_check_text(&p.node, &error, ": connection lost: ");
	host_check_text(&p.node, &error, "; tried for ");
	host_check_text(&p.node, &error, "to connect again");
	host_hear(&p);
	wire_mend();
	free(out);
	bulk_go_on(&p, 1);
}

/* A process that is gone is not waited for, however long one would wait for its host. */
static void a_dead_process_is_told_of_at_once(void **state)
{
	struct fi_context2 context;
	struct host_pair p;
	uint8_t *out;

	(void)state;
	setenv("FI_RVCM_RECONNECT_TIMEOUT", "3600000", 1);
	out = bulk_half(&p, "receive", &plain, &context);
	conf_ok(kill(p.other.pid, SIGKILL));
	host_expect(&p.node, FI_ECONNRESET);
	conf_other_end(&p.other, SIGKILL);
	conf_close(&p.node);
	free(out);
}

static int restore(void **state)
{
	unsetenv("FI_RVCM_RECONNECT_TIMEOUT");
	return wire_restore(state);
}

#define FAULT(test) cmocka_unit_test_teardown(test, restore)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAULT(a_destroyed_socket_is_replaced),
		FAULT(a_socket_that_is_destroyed_there_is_replaced),
		FAULT(a_cut_wire_is_waited_for),
		FAULT(an_address_that_comes_back_is_found),
		FAULT(time_is_up),
		FAULT(a_dead_process_is_told_of_at_once),
	};

	unsetenv("FI_RVCM_RECONNECT_TIMEOUT");
	setenv("FI_RVCM_ATTEMPT_TIMEOUT", "500", 1);
	setenv("FI_RVCM_IFACE", "eth0", 1);
	conf_provider();
	return host_main(argc, argv, roles, &plain, "recovery", tests);
}

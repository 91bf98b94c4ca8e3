/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apart ROLE IN OUT: one of two processes that need not be on one machine, with descriptors to hear
 * the other from and to talk to it. Without arguments: start the other one, in the network
 * namespace FABTEST_OTHER_NETNS (see proc.h), and exchange messages with it.
 *
 *   exchange       messages of many sizes each way at once, every byte checked
 *   cut, suffer    the same with long messages, and the wire is cut by the first of the two while
 *                  they are under way, for FABTEST_CUT_MS [3000]. Every operation must end, at most
 *                  FABTEST_FAILED_MOST [all] of them in an error, and afterwards messages must go
 *                  through again. Who is done first drives its node for the other.
 *
 * VM_WIRE names the file that turns the wire off and on: see vm-pair.sh.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vm/longs.h"

#define TICK_MS   20
#define UNTIL_CUT 2 /* completions */

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static uint64_t cut_ms(void)
{
	return (uint64_t)number("FABTEST_CUT_MS", 3000);
}

/* -- the wire -------------------------------------------------------------------------------- */

/* "off" or "on"; returns when it is. */
static void wire(const char *word)
{
	const char *path = getenv("VM_WIRE");
	uint64_t deadline = conf_deadline();
	char draft[256];
	FILE *file;

	assert_non_null(path);
	snprintf(draft, sizeof(draft), "%s.draft", path);
	file = fopen(draft, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", word);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(draft, path), 0);
	while (access(path, F_OK) == 0) {
		conf_not_late(deadline);
		poll(NULL, 0, TICK_MS);
	}
}

/* -- roles ------------------------------------------------------------------------------------ */

static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 5);
}

/* Both have come so far. */
static void in_step(struct conf_node *node, int to, int from)
{
	char c;

	conf_put(to, "!", 1);
	conf_get_driving(node, from, &c, 1);
}

static void afterwards(struct longs *l, struct conf_node *node, fi_addr_t peer, int to, int from)
{
	fprintf(stderr, "%d operations ended, %d of them in an error, the last: %s\n", l->done,
		l->failed, l->text);
	assert_true(l->failed <= number("FABTEST_FAILED_MOST", LONGS_OPERATIONS));
	longs_free(l);
	in_step(node, to, from);
	conf_exchange(node, peer, 1, 3);
}

static void role_cut(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	static struct longs l;
	uint64_t deadline, mend;
	bool cut = true;

	conf_exchange(node, peer, 0, 1);
	longs_post(&l, node, peer);
	deadline = conf_deadline();
	for (; l.done < UNTIL_CUT; conf_not_late(deadline))
		longs_read(&l, node);
	assert_int_equal(l.failed, 0);
	assert_true(l.done < LONGS_OPERATIONS);
	wire("off");
	mend = conf_deadline() - CONF_TIMEOUT_MS + cut_ms();
	for (; l.done < LONGS_OPERATIONS; conf_not_late(deadline + cut_ms())) {
		longs_read(&l, node);
		if (cut && conf_deadline() - CONF_TIMEOUT_MS >= mend) {
			wire("on");
			cut = false;
		}
	}
	if (cut)
		wire("on");
	afterwards(&l, node, peer, to, from);
}

static void role_suffer(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	static struct longs l;
	uint64_t deadline;

	conf_exchange(node, peer, 0, 1);
	longs_post(&l, node, peer);
	deadline = conf_deadline() + 2 * cut_ms();
	for (; l.done < LONGS_OPERATIONS; conf_not_late(deadline))
		longs_read(&l, node);
	afterwards(&l, node, peer, to, from);
}

static const struct conf_role roles[] = {
	{ "exchange", role_exchange },
	{ "cut", role_cut },
	{ "suffer", role_suffer },
};

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

/* -- alone ------------------------------------------------------------------------------------ */

static void two_processes_exchange(void **state)
{
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;

	(void)state;
	peer = conf_other_meet(&other, NULL, "exchange", &node, &plain);
	conf_exchange(&node, peer, 0, 5);
	conf_close(&node);
	conf_other_end(&other, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_exchange),
	};

	conf_provider();
	if (argc == 4)
		return conf_play(roles, sizeof(roles) / sizeof(roles[0]), &plain, argv);
	return conf_run_tests("apart", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apart ROLE IN OUT: one of two processes that need not be on one machine, with descriptors to hear
 * the other from and to talk to it. Without arguments: start the other one, in the network
 * namespace FABTEST_OTHER_NETNS (see proc.h), and exchange messages with it.
 *
 *   exchange       messages of many sizes each way at once, every byte checked
 *   cut, suffer    the same with long messages, and the wire is cut by the first of the two while
 *                  they are under way, for CUT_MS. Every operation must end, and afterwards
 * messages must go through again.
 *
 * VM_WIRE names the file that turns the wire off and on: see vm-pair.sh.
 */
#include "conf/proc.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CUT_MS    3000
#define LONG_TAG  800
#define LONGS     32
#define TICK_MS   20
#define UNTIL_CUT 2 /* completions */

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

/* -- long messages both ways ------------------------------------------------------------------ */

struct longs {
	struct fi_context2 recvs[LONGS], sends[LONGS];
	uint8_t *in[LONGS], *out;
	bool over[2 * LONGS]; /* receives, then sends */
	int done;
	int failed;
};

static void longs_post(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	l->out = malloc(CONF_LONG_BYTES);
	conf_fill(l->out, CONF_LONG_BYTES, 1);
	for (uint32_t i = 0; i < LONGS; i++) {
		l->in[i] = calloc(1, CONF_LONG_BYTES);
		CONF_TRY(node, fi_trecv(node->ep, l->in[i], CONF_LONG_BYTES, NULL, peer,
					LONG_TAG + i, 0, &l->recvs[i]));
	}
	for (uint32_t i = 0; i < LONGS; i++)
		CONF_TRY(node, fi_tsend(node->ep, l->out, CONF_LONG_BYTES, NULL, peer, LONG_TAG + i,
					&l->sends[i]));
}

/* Which of over[] it is; each ends once. */
static int longs_number(const struct longs *l, const void *context)
{
	const struct fi_context2 *c = context;

	if (c >= l->recvs && c < l->recvs + LONGS)
		return (int)(c - l->recvs);
	assert_true(c >= l->sends && c < l->sends + LONGS);
	return LONGS + (int)(c - l->sends);
}

static void longs_read(struct longs *l, struct conf_node *node)
{
	struct fi_cq_tagged_entry entry = { 0 };
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc = fi_cq_read(node->txcq, &entry, 1);
	int number;

	if (rc == -FI_EAGAIN)
		return;
	if (rc == -FI_EAVAIL)
		assert_int_equal(fi_cq_readerr(node->txcq, &error, 0), 1);
	else
		assert_int_equal(rc, 1);
	number = longs_number(l, rc == 1 ? entry.op_context : error.op_context);
	assert_false(l->over[number]);
	l->over[number] = true;
	l->done++;
	l->failed += rc != 1;
	if (rc == 1 && number < LONGS)
		conf_check(l->in[number], CONF_LONG_BYTES, 1);
}

static void longs_free(struct longs *l)
{
	for (int i = 0; i < LONGS; i++)
		free(l->in[i]);
	free(l->out);
}

/* -- roles ------------------------------------------------------------------------------------ */

static void role_exchange(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	(void)to;
	(void)from;
	conf_exchange(node, peer, 0, 5);
}

/* Both have come so far; nothing is sent meanwhile. */
static void in_step(int to, int from)
{
	char c;

	conf_put(to, "!", 1);
	conf_get(from, &c, 1);
}

static void afterwards(struct longs *l, struct conf_node *node, fi_addr_t peer, int to, int from)
{
	fprintf(stderr, "%d operations ended, %d of them in an error\n", l->done, l->failed);
	longs_free(l);
	in_step(to, from);
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
	assert_true(l.done < 2 * LONGS);
	wire("off");
	mend = conf_deadline() - CONF_TIMEOUT_MS + CUT_MS;
	for (; l.done < 2 * LONGS; conf_not_late(deadline + CUT_MS)) {
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
	deadline = conf_deadline() + 2 * CUT_MS;
	for (; l.done < 2 * LONGS; conf_not_late(deadline))
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
	conf_other_start(&other, NULL, "exchange");
	conf_open(&node, &plain);
	peer = conf_meet(&node, other.to, other.from);
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

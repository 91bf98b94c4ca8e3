/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * back MOST CUT MEND: two processes exchange long messages on one device, and CUT, which a
 * shell runs, takes its interface away, or the address. Every operation of either must end, at most
 * MOST of each one's in an error. Then MEND, unless it is empty, brings it back, and both exchange
 * messages again from the same endpoints. Whoever is done before the other drives its node until
 * then: what it has said last may have been lost with the connection, and is to be said again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/longs.h"

#define UNTIL_CUT 2 /* completions */

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };
static int most;
static const char *cut, *mend;

/* It goes: so much is through. (Or has failed: with the peer that may be where it is cut.) */
static void begin(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	uint64_t deadline;

	conf_exchange(node, peer, 0, 1);
	longs_post(l, node, peer);
	deadline = conf_deadline();
	for (; l->done < UNTIL_CUT; conf_not_late(deadline))
		longs_read(l, node);
}

static void end(struct longs *l, struct conf_node *node, const char *who)
{
	uint64_t deadline = conf_deadline() + CONF_TIMEOUT_MS;

	for (; l->done < LONGS_OPERATIONS; conf_not_late(deadline))
		longs_read(l, node);
	print_message("# %s: %d operations ended, %d of them in an error, the last: %s\n", who,
		      l->done, l->failed, l->text);
	longs_free(l);
}

static void role_peer(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	static struct longs l;
	bool mended;

	begin(&l, node, peer);
	end(&l, node, "the peer");
	conf_put(to, &l.failed, sizeof(l.failed));
	conf_get_driving(node, from, &mended, sizeof(mended));
	if (mended)
		conf_exchange(node, peer, 1, 2);
}

static const struct conf_role roles[] = { { "peer", role_peer } };

static void it_is_back(void **state)
{
	static struct longs l;
	bool mended = *mend;
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
	int failed;

	(void)state;
	peer = conf_other_meet(&other, NULL, "peer", &node, &plain);
	begin(&l, &node, peer);
	assert_int_equal(l.failed, 0);
	assert_int_equal(system(cut), 0);
	end(&l, &node, "we");
	conf_get_driving(&node, other.from, &failed, sizeof(failed));
	assert_true(l.failed <= most && failed <= most);
	if (mended)
		assert_int_equal(system(mend), 0);
	conf_put(other.to, &mended, sizeof(mended));
	if (mended)
		conf_exchange(&node, peer, 1, 2);
	conf_close(&node);
	conf_other_end(&other, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_back),
	};

	conf_provider();
	if (argc == 4 && strcmp(argv[1], roles[0].name) == 0)
		return conf_play(roles, sizeof(roles) / sizeof(roles[0]), &plain, argv);
	if (argc != 4) {
		fprintf(stderr, "usage: back MOST CUT MEND\n");
		return 2;
	}
	most = atoi(argv[1]);
	cut = argv[2];
	mend = argv[3];
	return conf_run_tests("back", tests);
}

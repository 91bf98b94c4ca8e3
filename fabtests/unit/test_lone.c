/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that go eagerly because they go alone. */
#include "unit/proto_world.h"

#define DONE     ((uint32_t)RVCM_EP_TAGGED | (uint32_t)RVCM_EP_COMPLETION)
#define CTX(n)   ((void *)(uintptr_t)(0x1000 + (n)))
#define OK       RVCM_STATUS_OK
#define EAGER    256u /* world_new's */
#define LONE     600u
#define ANY      RVCM_EP_SOURCE_NONE
#define ALL_BITS UINT64_MAX

static uint8_t from[2 * LONE], to[2 * LONE];

static struct world *open_world(void)
{
	struct world *w = world_new();

	w->eager_lone_bytes_max = LONE;
	world_open(w);
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	world_fill(from, sizeof(from), 1);
	return w;
}

/* How node 0 sent what it has sent so far, the byte that connected it not counted. */
static void expect_sent(struct world *w, uint64_t eager, uint64_t rndv)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_eager, eager + 1);
	assert_int_equal(stats.tx_rndv, rndv);
}

static void send_one(struct world *w, size_t bytes)
{
	assert_int_equal(world_send(w, 0, 1, from, bytes, 1, DONE, CTX(1)), 0);
}

/* Receive it, and let everything that belongs to it arrive. */
static void receive_one(struct world *w, size_t bytes)
{
	memset(to, 0, sizeof(to));
	assert_int_equal(world_recv(w, 1, to, sizeof(to), ANY, 0, ALL_BITS, CTX(2)), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, bytes);
	world_check(to, bytes, 1);
}

static void one_after_the_other_goes_eagerly(void **state)
{
	struct world *w = open_world();

	(void)state;
	for (uint32_t i = 1; i < 5; i++) {
		send_one(w, LONE);
		expect_sent(w, i, 0);
		receive_one(w, LONE);
	}
	world_close(w);
}

static void a_longer_one_is_announced(void **state)
{
	struct world *w = open_world();

	(void)state;
	send_one(w, LONE + 1);
	expect_sent(w, 0, 1);
	receive_one(w, LONE + 1);
	world_close(w);
}

static void of_two_the_second_is_announced(void **state)
{
	struct world *w = open_world();

	(void)state;
	send_one(w, LONE);
	send_one(w, EAGER + 1);
	expect_sent(w, 1, 1);
	/* Short ones are eager whatever is under way. */
	send_one(w, EAGER);
	expect_sent(w, 2, 1);
	receive_one(w, LONE);
	receive_one(w, EAGER + 1);
	receive_one(w, EAGER);
	send_one(w, LONE);
	expect_sent(w, 3, 1);
	receive_one(w, LONE);
	world_close(w);
}

/* What is announced is under way until its FIN, though the announcement has been accepted. */
static void behind_an_announced_one_it_is_announced(void **state)
{
	struct world *w = open_world();

	(void)state;
	send_one(w, LONE + 1);
	world_run(w);
	send_one(w, LONE);
	expect_sent(w, 0, 2);
	receive_one(w, LONE + 1);
	receive_one(w, LONE);
	send_one(w, LONE);
	expect_sent(w, 1, 2);
	receive_one(w, LONE);
	world_close(w);
}

/* What the peer has accepted is not under way any more, received or not. */
static void behind_an_accepted_one_it_goes_eagerly(void **state)
{
	struct world *w = open_world();

	(void)state;
	send_one(w, LONE);
	world_run(w);
	send_one(w, LONE);
	expect_sent(w, 2, 0);
	receive_one(w, LONE);
	receive_one(w, LONE);
	world_close(w);
}

static void short_ones_under_way_do_not_matter(void **state)
{
	struct world *w = open_world();

	(void)state;
	send_one(w, EAGER);
	send_one(w, LONE);
	expect_sent(w, 2, 0);
	receive_one(w, EAGER);
	receive_one(w, LONE);
	world_close(w);
}

static void each_peer_has_its_own(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 0, 2);
	send_one(w, LONE);
	assert_int_equal(world_send(w, 0, 2, from, LONE, 1, DONE, CTX(1)), 0);
	expect_sent(w, 3, 0); /* one of them connected */
	assert_int_equal(world_recv(w, 2, to, sizeof(to), ANY, 0, ALL_BITS, CTX(3)), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 2, CTX(3), OK, LONE);
	receive_one(w, LONE);
	world_close(w);
}

/* What the peer does not take is announced, however short we call it. */
static void a_peer_that_takes_little(void **state)
{
	struct world *w = world_new();

	(void)state;
	w->message_bytes_max = 4096;
	w->eager_bytes_max = LONE;
	w->eager_lone_bytes_max = 2 * LONE;
	world_open(w);
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	world_fill(from, sizeof(from), 1);
	w->net.peers_take = LONE; /* 24 of these are header */
	send_one(w, LONE - 24);
	expect_sent(w, 1, 0);
	receive_one(w, LONE - 24);
	send_one(w, LONE - 23);
	expect_sent(w, 1, 1);
	receive_one(w, LONE - 23);
	send_one(w, 2 * LONE);
	expect_sent(w, 1, 2);
	receive_one(w, 2 * LONE);
	w->net.peers_take = 0; /* now it takes more */
	send_one(w, 2 * LONE);
	expect_sent(w, 2, 2);
	receive_one(w, 2 * LONE);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_after_the_other_goes_eagerly),
		cmocka_unit_test(a_longer_one_is_announced),
		cmocka_unit_test(of_two_the_second_is_announced),
		cmocka_unit_test(behind_an_announced_one_it_is_announced),
		cmocka_unit_test(behind_an_accepted_one_it_goes_eagerly),
		cmocka_unit_test(short_ones_under_way_do_not_matter),
		cmocka_unit_test(each_peer_has_its_own),
		cmocka_unit_test(a_peer_that_takes_little),
	};

	return cmocka_run_group_tests_name("lone", tests, NULL, NULL);
}

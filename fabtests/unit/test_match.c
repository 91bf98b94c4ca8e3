/* SPDX-License-Identifier: BSD-2-Clause */
/* The matcher against lists that are searched from the oldest on. */
#include <string.h>

#include "unit/unit.h"
#include "unit/failmem.h"
#include "base/rng.h"
#include "proto/match.h"

#define POOL 512

struct model_recv {
	struct rvcm_match_recv recv;
	bool posted;
	uint64_t age;
};

struct model_msg {
	struct rvcm_match_msg msg;
	bool held;
	uint64_t age;
};

struct world {
	struct rvcm_match match;
	struct rvcm_rng rng;
	struct model_recv recvs[POOL];
	struct model_msg msgs[POOL];
	uint64_t age;
	const uint64_t *masks;
	uint32_t n_masks;
	uint32_t matched;
	uint32_t overflowed;
};

static bool matches(const struct rvcm_match_recv *recv, uint64_t tag, uint64_t source)
{
	return (recv->item.tag | recv->ignore) == (tag | recv->ignore) &&
	       (recv->item.source == RVCM_MATCH_SOURCE_ANY || recv->item.source == source);
}

/* The oldest posted receive for a message, by looking at all of them. */
static struct model_recv *oldest_recv(struct world *w, uint64_t tag, uint64_t source)
{
	struct model_recv *best = NULL;

	for (int i = 0; i < POOL; i++) {
		struct model_recv *r = &w->recvs[i];

		if (r->posted && matches(&r->recv, tag, source) && (!best || r->age < best->age))
			best = r;
	}
	return best;
}

static struct model_msg *oldest_msg(struct world *w, const struct rvcm_match_recv *recv)
{
	struct model_msg *best = NULL;

	for (int i = 0; i < POOL; i++) {
		struct model_msg *m = &w->msgs[i];

		if (m->held && matches(recv, m->msg.item.tag, m->msg.item.source) &&
		    (!best || m->age < best->age))
			best = m;
	}
	return best;
}

static uint64_t random_source(struct world *w)
{
	return rvcm_rng_below(&w->rng, 3);
}

static void post(struct world *w)
{
	struct model_recv *r = &w->recvs[rvcm_rng_below(&w->rng, POOL)];
	struct rvcm_match_msg *got;
	struct model_msg *want;

	if (r->posted)
		return;
	memset(&r->recv, 0x5a, sizeof(r->recv));
	r->recv.item.tag = rvcm_rng_below(&w->rng, 64);
	r->recv.ignore = w->masks[rvcm_rng_below(&w->rng, w->n_masks)];
	r->recv.stays = false;
	r->recv.item.source = rvcm_rng_below(&w->rng, 2) ? RVCM_MATCH_SOURCE_ANY : random_source(w);
	want = oldest_msg(w, &r->recv);
	got = rvcm_match_post(&w->match, &r->recv);
	assert_ptr_equal(got, want ? &want->msg : NULL);
	w->matched += want != NULL;
	w->overflowed += r->recv.class == &w->match.none;
	if (want)
		want->held = false;
	else
		r->posted = true;
	r->age = ++w->age;
}

static void arrive(struct world *w)
{
	struct model_msg *m = &w->msgs[rvcm_rng_below(&w->rng, POOL)];
	uint64_t tag = rvcm_rng_below(&w->rng, 64), source = random_source(w);
	struct rvcm_match_recv *got;
	struct model_recv *want;

	if (m->held)
		return;
	want = oldest_recv(w, tag, source);
	got = rvcm_match_arrive(&w->match, tag, source);
	assert_ptr_equal(got, want ? &want->recv : NULL);
	w->matched += want != NULL;
	if (want) {
		want->posted = false;
		return;
	}
	memset(&m->msg, 0xa5, sizeof(m->msg));
	m->msg.item.tag = tag;
	m->msg.item.source = source;
	rvcm_match_hold(&w->match, &m->msg);
	m->held = true;
	m->age = ++w->age;
}

static void take_back(struct world *w)
{
	struct model_recv *r = &w->recvs[rvcm_rng_below(&w->rng, POOL)];
	struct model_msg *m = &w->msgs[rvcm_rng_below(&w->rng, POOL)];

	if (r->posted)
		rvcm_match_unpost(&w->match, &r->recv);
	r->posted = false;
	if (m->held)
		rvcm_match_drop(&w->match, &m->msg);
	m->held = false;
}

static void move(struct world *w)
{
	struct model_msg *m = &w->msgs[rvcm_rng_below(&w->rng, POOL)];
	uint64_t source = random_source(w);
	struct rvcm_match_recv *got;
	struct model_recv *want;

	if (!m->held)
		return;
	want = oldest_recv(w, m->msg.item.tag, source);
	got = rvcm_match_move(&w->match, &m->msg, source);
	assert_ptr_equal(got, want ? &want->recv : NULL);
	if (!want)
		return;
	want->posted = false;
	m->held = false;
}

static void check_lists(struct world *w)
{
	struct rvcm_list *pos;
	int posted = 0, held = 0;

	for (int i = 0; i < POOL; i++) {
		posted += w->recvs[i].posted;
		held += w->msgs[i].held;
	}
	rvcm_list_for_each (pos, &w->match.posted)
		posted--;
	rvcm_list_for_each (pos, &w->match.held)
		held--;
	assert_int_equal(posted, 0);
	assert_int_equal(held, 0);
}

/* post_weight of 100 steps are posts: few leave messages unexpected, many leave receives posted. */
static void play(struct world *w, uint32_t steps, uint32_t post_weight)
{
	for (uint32_t i = 0; i < steps; i++) {
		uint64_t dice = rvcm_rng_below(&w->rng, 100);

		if (dice < post_weight)
			post(w);
		else if (dice < 92)
			arrive(w);
		else if (dice < 96)
			take_back(w);
		else
			move(w);
	}
	check_lists(w);
}

static const uint64_t masks[] = {
	0,    0x1,  0x3f, 0x8000000000000001, 0x7,        0x38, 0x30,
	0x15, 0x2a, 0x3,  0xfffffffffffffff0, UINT64_MAX, 0x1f,
};

static void run(uint64_t seed, uint32_t n_masks, uint32_t *matched, uint32_t *overflowed)
{
	struct world *w = test_calloc(1, sizeof(*w));

	rvcm_rng_init(&w->rng, seed);
	rvcm_match_init(&w->match, seed);
	w->masks = masks;
	w->n_masks = n_masks;
	for (int round = 0; round < 10; round++) {
		play(w, 2000, 30);
		play(w, 2000, 46);
		play(w, 2000, 60);
	}
	*matched = w->matched;
	*overflowed = w->overflowed;
	rvcm_match_fini(&w->match);
	test_free(w);
}

static void like_the_model_with_few_classes(void **state)
{
	uint32_t matched, overflowed;

	(void)state;
	run(1, 1, &matched, &overflowed);
	assert_true(matched > 10000);
	run(2, 4, &matched, &overflowed);
	assert_true(matched > 10000);
	assert_int_equal(overflowed, 0);
}

static void like_the_model_with_more_classes_than_there_are(void **state)
{
	uint32_t matched, overflowed;

	(void)state;
	run(3, sizeof(masks) / sizeof(masks[0]), &matched, &overflowed);
	assert_true(matched > 10000);
	assert_true(overflowed > 1000);
}

static void like_the_model_without_memory_to_grow(void **state)
{
	uint32_t matched, overflowed;

	(void)state;
	failmem_fail_from(1);
	run(4, 3, &matched, &overflowed);
	assert_true(failmem_failed());
	failmem_fail_nth(0);
	assert_true(matched > 10000);
}

static struct rvcm_match_recv recv_of(uint64_t tag, uint64_t ignore, uint64_t source)
{
	return (struct rvcm_match_recv) { .item.tag = tag,
					  .item.source = source,
					  .ignore = ignore };
}

/* An exact receive posted after a wildcard does not overtake it, nor the other way round. */
static void posting_order_holds_across_classes(void **state)
{
	struct rvcm_match match;
	struct rvcm_match_recv any = recv_of(0, UINT64_MAX, RVCM_MATCH_SOURCE_ANY);
	struct rvcm_match_recv exact = recv_of(7, 0, 1);
	struct rvcm_match_recv tag_only = recv_of(7, 0, RVCM_MATCH_SOURCE_ANY);

	(void)state;
	rvcm_match_init(&match, 0);
	assert_null(rvcm_match_post(&match, &exact));
	assert_null(rvcm_match_post(&match, &any));
	assert_null(rvcm_match_post(&match, &tag_only));
	assert_ptr_equal(rvcm_match_arrive(&match, 7, 1), &exact);
	assert_ptr_equal(rvcm_match_arrive(&match, 7, 1), &any);
	assert_ptr_equal(rvcm_match_arrive(&match, 7, 1), &tag_only);
	assert_null(rvcm_match_arrive(&match, 7, 1));
	rvcm_match_fini(&match);
}

/* Messages held before a class existed are found by it, oldest first. */
static void an_index_made_late_is_complete(void **state)
{
	struct rvcm_match match;
	struct rvcm_match_msg msgs[3] = { { .item.tag = 0x10 },
					  { .item.tag = 0x20 },
					  { .item.tag = 0x11 } };
	struct rvcm_match_recv low = recv_of(1, 0xf0, RVCM_MATCH_SOURCE_ANY);
	struct rvcm_match_recv any = recv_of(0, UINT64_MAX, RVCM_MATCH_SOURCE_ANY);
	struct rvcm_match_recv zero = recv_of(0, 0xf0, 0);

	(void)state;
	rvcm_match_init(&match, 0);
	rvcm_match_hold(&match, &msgs[0]);
	rvcm_match_hold(&match, &msgs[1]);
	rvcm_match_hold(&match, &msgs[2]);
	assert_ptr_equal(rvcm_match_post(&match, &low), &msgs[2]);
	assert_ptr_equal(rvcm_match_post(&match, &any), &msgs[0]);
	assert_ptr_equal(rvcm_match_post(&match, &zero), &msgs[1]);
	assert_null(rvcm_match_post(&match, &zero));
	rvcm_match_fini(&match);
}

/* A class that nobody uses makes room for another one; only while all are in use is the list. */
static void classes_are_reused(void **state)
{
	struct rvcm_match match;
	struct rvcm_match_recv recvs[RVCM_MATCH_CLASSES + 1];

	(void)state;
	rvcm_match_init(&match, 0);
	for (uint32_t i = 0; i <= RVCM_MATCH_CLASSES; i++) {
		recvs[i] = recv_of(0, (uint64_t)1 << i, RVCM_MATCH_SOURCE_ANY);
		assert_null(rvcm_match_post(&match, &recvs[i]));
	}
	assert_ptr_equal(recvs[RVCM_MATCH_CLASSES].class, &match.none);
	rvcm_match_unpost(&match, &recvs[RVCM_MATCH_CLASSES]);
	rvcm_match_unpost(&match, &recvs[3]);
	assert_null(rvcm_match_post(&match, &recvs[RVCM_MATCH_CLASSES]));
	assert_ptr_equal(recvs[RVCM_MATCH_CLASSES].class, &match.classes[3]);
	rvcm_match_fini(&match);
}

/* Many keys do not share chains: the tables have grown with them, on both sides. */
static void tables_grow_with_their_keys(void **state)
{
	enum {
		N = 4096
	};
	struct rvcm_match match;
	struct rvcm_match_recv *recvs = test_calloc(N, sizeof(*recvs));
	struct rvcm_match_msg *msgs = test_calloc(N, sizeof(*msgs));

	(void)state;
	rvcm_match_init(&match, 0);
	for (uint32_t i = 0; i < N; i++) {
		recvs[i] = recv_of((uint64_t)i << 8, 0xff, 5);
		assert_null(rvcm_match_post(&match, &recvs[i]));
	}
	assert_true(match.classes[0].recvs.mask + 1 >= N / 2);
	for (uint32_t i = N; i-- > 0;)
		assert_ptr_equal(rvcm_match_arrive(&match, (uint64_t)i << 8 | 3, 5), &recvs[i]);
	for (uint32_t i = 0; i < N; i++) {
		msgs[i].item.tag = (uint64_t)i << 8;
		msgs[i].item.source = 5;
		rvcm_match_hold(&match, &msgs[i]);
	}
	for (uint32_t i = N; i-- > 0;)
		assert_ptr_equal(rvcm_match_post(&match, &recvs[i]), &msgs[i]);
	assert_true(match.classes[0].msgs.mask + 1 >= N / 2);
	rvcm_match_fini(&match);
	test_free(msgs);
	test_free(recvs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posting_order_holds_across_classes),
		cmocka_unit_test(an_index_made_late_is_complete),
		cmocka_unit_test(classes_are_reused),
		cmocka_unit_test(tables_grow_with_their_keys),
		cmocka_unit_test(like_the_model_with_few_classes),
		cmocka_unit_test(like_the_model_with_more_classes_than_there_are),
		cmocka_unit_test(like_the_model_without_memory_to_grow),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}

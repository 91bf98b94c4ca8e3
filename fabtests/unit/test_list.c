/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/list.h"
#include "base/rng.h"

#define N 32

struct item {
	int before;
	struct rvcm_list node;
	int id;
};

/* The naive list: an array of ids. */
struct model {
	int ids[N];
	int n;
};

static void remove_at(struct model *m, int at)
{
	for (m->n--; at < m->n; at++)
		m->ids[at] = m->ids[at + 1];
}

static void insert_first(struct model *m, int id)
{
	for (int i = m->n++; i > 0; i--)
		m->ids[i] = m->ids[i - 1];
	m->ids[0] = id;
}

static int find(const struct model *m, int id)
{
	for (int i = 0; i < m->n; i++)
		if (m->ids[i] == id)
			return i;
	return -1;
}

static void assert_same(const struct rvcm_list *head, const struct model *m)
{
	struct rvcm_list *pos;
	int i = 0;

	rvcm_list_for_each (pos, head) {
		assert_true(i < m->n);
		assert_int_equal(rvcm_list_entry(pos, struct item, node)->id, m->ids[i]);
		assert_ptr_equal(pos->next->prev, pos);
		i++;
	}
	assert_int_equal(i, m->n);
	assert_int_equal(rvcm_list_empty(head), m->n == 0);
}

static void step(struct rvcm_list *head, struct item *items, struct model *m, struct rvcm_rng *rng)
{
	int id = (int)rvcm_rng_below(rng, N);
	int at = find(m, id);
	struct rvcm_list *first;

	assert_int_equal(rvcm_list_empty(&items[id].node), at < 0);
	if (at >= 0) {
		rvcm_list_del(&items[id].node);
		remove_at(m, at);
	} else if (rvcm_rng_below(rng, 2)) {
		rvcm_list_add_tail(head, &items[id].node);
		m->ids[m->n++] = id;
	} else {
		rvcm_list_add_head(head, &items[id].node);
		insert_first(m, id);
	}
	if (rvcm_rng_below(rng, 4))
		return;
	first = rvcm_list_pop(head);
	assert_ptr_equal(first, m->n ? &items[m->ids[0]].node : NULL);
	if (first)
		remove_at(m, 0);
}

static void behaves_like_an_array(void **state)
{
	struct item items[N];
	struct rvcm_list head;
	struct model m = { .n = 0 };
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 1);
	rvcm_list_init(&head);
	for (int i = 0; i < N; i++) {
		items[i].id = i;
		rvcm_list_init(&items[i].node);
	}
	for (int i = 0; i < 5000; i++) {
		step(&head, items, &m, &rng);
		assert_same(&head, &m);
	}
}

static void deleting_twice_does_no_harm(void **state)
{
	struct rvcm_list head, node;

	(void)state;
	rvcm_list_init(&head);
	rvcm_list_init(&node);
	rvcm_list_del(&node);
	rvcm_list_add_tail(&head, &node);
	assert_ptr_equal(rvcm_list_first(&head), &node);
	rvcm_list_del(&node);
	rvcm_list_del(&node);
	assert_true(rvcm_list_empty(&head));
	assert_null(rvcm_list_first(&head));
	assert_null(rvcm_list_pop(&head));
}

static void safe_walk_may_delete(void **state)
{
	struct item items[N];
	struct rvcm_list head, *pos, *tmp;
	struct model m = { .n = 0 };

	(void)state;
	rvcm_list_init(&head);
	for (int i = 0; i < N; i++) {
		items[i].id = i;
		rvcm_list_add_tail(&head, &items[i].node);
		if (i % 3)
			m.ids[m.n++] = i;
	}
	rvcm_list_for_each_safe (pos, tmp, &head) {
		if (rvcm_list_entry(pos, struct item, node)->id % 3 == 0)
			rvcm_list_del(pos);
	}
	assert_same(&head, &m);
}

static void splice_appends_and_empties(void **state)
{
	struct item items[4] = { { .id = 0 }, { .id = 1 }, { .id = 2 }, { .id = 3 } };
	struct model m = { .ids = { 0, 1, 2, 3 }, .n = 2 };
	struct rvcm_list a, b;

	(void)state;
	rvcm_list_init(&a);
	rvcm_list_init(&b);
	rvcm_list_splice_tail(&a, &b);
	assert_true(rvcm_list_empty(&a));
	rvcm_list_add_tail(&b, &items[0].node);
	rvcm_list_add_tail(&b, &items[1].node);
	rvcm_list_splice_tail(&a, &b);
	assert_same(&a, &m);
	assert_true(rvcm_list_empty(&b));
	rvcm_list_splice_tail(&a, &b);
	assert_same(&a, &m);
	rvcm_list_add_tail(&b, &items[2].node);
	rvcm_list_add_tail(&b, &items[3].node);
	rvcm_list_splice_tail(&a, &b);
	m.n = 4;
	assert_same(&a, &m);
	assert_true(rvcm_list_empty(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behaves_like_an_array),
		cmocka_unit_test(deleting_twice_does_no_harm),
		cmocka_unit_test(safe_walk_may_delete),
		cmocka_unit_test(splice_appends_and_empties),
	};

	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}

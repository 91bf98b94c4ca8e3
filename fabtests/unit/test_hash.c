/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/hash.h"

#include "base/list.h"
#include "base/rng.h"
#include "unit/failmem.h"

#define N 300

struct item {
	int key;
	int in_table;
	int walked;
	struct rvcm_hash_node node;
};

static int asked;

static bool same_key(const struct rvcm_hash_node *node, const void *key)
{
	asked++;
	return rvcm_container_of(node, struct item, node)->key == *(const int *)key;
}

static uint64_t good_hash(int key)
{
	return rvcm_hash_u64(17, (uint64_t)key);
}

/* All 64 bits collide most of the time. */
static uint64_t bad_hash(int key)
{
	return (uint64_t)key % 3;
}

static struct item *item_of(struct rvcm_hash_node *node)
{
	return rvcm_container_of(node, struct item, node);
}

static void assert_walk_sees_each_once(struct rvcm_hash *hash, struct item *items, int n)
{
	struct rvcm_hash_node *node;
	int walked = 0;

	for (node = rvcm_hash_next(hash, NULL); node; node = rvcm_hash_next(hash, node)) {
		item_of(node)->walked++;
		walked++;
	}
	assert_int_equal(walked, n);
	for (int i = 0; i < N; i++) {
		assert_int_equal(items[i].walked, items[i].in_table);
		items[i].walked = 0;
	}
}

/* Inserts, finds and deletes at random, beside an array that says who is in the table. */
static void run(uint64_t (*hash_of)(int key), int steps)
{
	static struct item items[N];
	struct rvcm_hash hash;
	struct rvcm_rng rng;
	int n = 0;

	rvcm_rng_init(&rng, 5);
	rvcm_hash_init(&hash, same_key, 17);
	for (int i = 0; i < N; i++)
		items[i] = (struct item) { .key = i };
	for (int i = 0; i < steps; i++) {
		int key = (int)rvcm_rng_below(&rng, N);
		struct item *item = &items[key];
		struct rvcm_hash_node *found = rvcm_hash_find(&hash, hash_of(key), &key);

		assert_ptr_equal(found, item->in_table ? &item->node : NULL);
		if (found)
			rvcm_hash_del(&hash, found);
		else
			rvcm_hash_insert(&hash, &item->node, hash_of(key));
		item->in_table = !found;
		n += found ? -1 : 1;
		assert_int_equal(rvcm_hash_count(&hash), n);
		if (i % 16 == 0)
			assert_walk_sees_each_once(&hash, items, n);
	}
	rvcm_hash_fini(&hash);
	assert_int_equal(rvcm_hash_count(&hash), 0);
	assert_null(rvcm_hash_next(&hash, NULL));
	assert_int_equal(failmem_outstanding(), 0);
}

static void behaves_like_an_array(void **state)
{
	(void)state;
	run(good_hash, 10000);
}

static void equal_hashes_are_told_apart(void **state)
{
	(void)state;
	run(bad_hash, 3000);
}

static void keys_are_compared_under_the_same_hash_only(void **state)
{
	struct item items[2] = { { .key = 4 }, { .key = 4 } };
	struct rvcm_hash hash;
	int key = 4;

	(void)state;
	rvcm_hash_init(&hash, same_key, 0);
	rvcm_hash_insert(&hash, &items[0].node, 1);
	rvcm_hash_insert(&hash, &items[1].node, 1 + (1ull << 40));
	asked = 0;
	assert_ptr_equal(rvcm_hash_find(&hash, 1, &key), &items[0].node);
	assert_int_equal(asked, 1);
	assert_null(rvcm_hash_find(&hash, 1ull << 40, &key));
	assert_int_equal(asked, 1);
	rvcm_hash_fini(&hash);
}

static void works_without_memory_to_grow(void **state)
{
	(void)state;
	failmem_fail_from(1);
	run(good_hash, 1000);
	assert_true(failmem_failed());
	failmem_fail_from(3);
	run(good_hash, 1000);
	assert_true(failmem_failed());
	failmem_fail_nth(0);
}

static void grows_with_its_nodes(void **state)
{
	static struct item items[1000];
	struct rvcm_hash hash;

	(void)state;
	rvcm_hash_init(&hash, same_key, 0);
	for (int i = 0; i < 1000; i++)
		rvcm_hash_insert(&hash, &items[i].node, good_hash(i));
	assert_int_equal(hash.mask, 1023);
	rvcm_hash_fini(&hash);
}

static void of_equal_keys_the_newest_is_found(void **state)
{
	static struct item items[100];
	struct rvcm_hash hash;
	int key = 4;

	(void)state;
	rvcm_hash_init(&hash, same_key, 0);
	for (int i = 0; i < 100; i++) {
		items[i].key = key;
		rvcm_hash_insert(&hash, &items[i].node, good_hash(key));
		assert_ptr_equal(rvcm_hash_find(&hash, good_hash(key), &key), &items[i].node);
	}
	for (int i = 99; i >= 0; i--) {
		assert_ptr_equal(rvcm_hash_find(&hash, good_hash(key), &key), &items[i].node);
		rvcm_hash_del(&hash, &items[i].node);
	}
	rvcm_hash_fini(&hash);
}

static void walk_may_delete_behind_itself(void **state)
{
	static struct item items[100];
	struct rvcm_hash_node *node, *next;
	struct rvcm_hash hash;
	int n = 0;

	(void)state;
	rvcm_hash_init(&hash, same_key, 0);
	for (int i = 0; i < 100; i++)
		rvcm_hash_insert(&hash, &items[i].node, good_hash(i));
	for (node = rvcm_hash_next(&hash, NULL); node; node = next) {
		next = rvcm_hash_next(&hash, node);
		rvcm_hash_del(&hash, node);
		n++;
	}
	assert_int_equal(n, 100);
	assert_int_equal(rvcm_hash_count(&hash), 0);
	rvcm_hash_fini(&hash);
}

/*
 * Of bytes 0, 1, 2, ...; from another implementation of SipHash, checked against the vectors of its
 * paper (2-4) and against CPython's hash of bytes (1-3), under this table's expansion of the seed.
 */
static void bytes_are_hashed_as_published(void **state)
{
	static const struct {
		uint64_t seed;
		size_t n;
		uint64_t hash;
	} vectors[] = {
		{ 0, 0, 0x1653806f2353e1d6 },
		{ 0, 1, 0x8d0be5549ad65dcd },
		{ 0, 7, 0xcdbc0410a35ffad1 },
		{ 0, 8, 0x89c6a2168c8b2506 },
		{ 0, 15, 0xeb6809566bf0b708 },
		{ 0, 63, 0x06c3d1c2e382fc5a },
		{ 0x0123456789abcdef, 0, 0x9a3b57b173a4c571 },
		{ 0x0123456789abcdef, 1, 0xb2a99df932916554 },
		{ 0x0123456789abcdef, 7, 0xeaa670272d833eb3 },
		{ 0x0123456789abcdef, 8, 0x8989fc50172bbdc2 },
		{ 0x0123456789abcdef, 15, 0x5ea6788cebad0a8e },
		{ 0x0123456789abcdef, 63, 0x07b7b16b44f7f550 },
	};
	unsigned char bytes[64];

	(void)state;
	/* From an odd address. */
	for (size_t i = 0; i < 63; i++)
		bytes[i + 1] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_int_equal(rvcm_hash_bytes(vectors[i].seed, bytes + 1, vectors[i].n),
				 vectors[i].hash);
}

/* Consecutive numbers and pairs, as ids and ports are, fill the low bits evenly. */
static void numbers_spread(void **state)
{
	int by_number[64] = { 0 }, by_pair[64] = { 0 }, by_fold[3][64] = { 0 };
	uint64_t seed = 9, other = rvcm_hash_mix(seed);

	(void)state;
	for (uint64_t i = 0; i < 6400; i++) {
		by_number[rvcm_hash_u64(9, i << 16) & 63]++;
		by_pair[rvcm_hash_pair(9, i & 63, i >> 6) & 63]++;
		by_fold[0][rvcm_hash_fold(i ^ seed, other) & 63]++;
		by_fold[1][rvcm_hash_fold(i << 32 ^ seed, other) & 63]++;
		by_fold[2][rvcm_hash_fold((i & 63) ^ seed, i >> 6 ^ other) & 63]++;
	}
	for (int i = 0; i < 64; i++) {
		assert_in_range(by_number[i], 50, 150);
		assert_in_range(by_pair[i], 50, 150);
		for (int k = 0; k < 3; k++)
			assert_in_range(by_fold[k][i], 50, 150);
	}
	assert_int_not_equal(rvcm_hash_pair(9, 1, 2), rvcm_hash_pair(9, 2, 1));
	assert_int_not_equal(rvcm_hash_u64(9, 1), rvcm_hash_u64(8, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behaves_like_an_array),
		cmocka_unit_test(equal_hashes_are_told_apart),
		cmocka_unit_test(keys_are_compared_under_the_same_hash_only),
		cmocka_unit_test(works_without_memory_to_grow),
		cmocka_unit_test(grows_with_its_nodes),
		cmocka_unit_test(of_equal_keys_the_newest_is_found),
		cmocka_unit_test(walk_may_delete_behind_itself),
		cmocka_unit_test(bytes_are_hashed_as_published),
		cmocka_unit_test(numbers_spread),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}

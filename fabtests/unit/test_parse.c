/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of peers' messages: what it reads, and that it reads nothing else. */
#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"
#include "base/le.h"
#include "base/rng.h"
#include "conn/conn.h"
#include "proto/parse.h"

static const uint8_t eager[] = {
	1,   3,   0,   0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, /* tagged, CQ data */
	9,   0,   0,   0, 0, 0, 0, 1,                         /* data */
	'a', 'b', 'c',
};

static const uint8_t padded[] = {
	1, 1, 5, 0, 0, 0,   0,   0, 1, 2, 3, 4, 5, 6, 7, 8, /* tagged */
	0, 9, 0, 0, 7, 'x', 'y',
};

static const uint8_t rts[] = {
	2,   1,   0,   0,   5,   0,   0,   1,   1, 0, 0, 0, 0, 0, 0, 0, /* op_id, tag */
	0,   1,   0,   0,   0,   0,   0,   0,   2, 0, 0, 0, 0, 0, 0, 0, /* length, rails */
	1,   2,   3,   4,   5,   6,   7,   8,   4, 3, 2, 1, 0, 0, 0, 0, /* address, rkey */
	255, 254, 255, 255, 255, 255, 255, 255, 4, 3, 2, 1, 7, 0, 0, 0, /* as high as it goes */
};

static const uint8_t fin[] = {
	3, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0,
};

static const uint8_t off[] = { 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t ask[] = {
	6, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
};
static const uint8_t piece[] = {
	7, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b',
};
static const uint8_t bare_rts[] = {
	2, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, /* op_id */
	0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* length, no rails */
};
static const uint8_t early_rts[] = {
	2,   0,   0,   0,   5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, /* op_id */
	4,   0,   0,   0,   0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, /* length, no rails, writes */
	'a', 'b', 'c', 'd',
};
static const uint8_t
	placed_ask[] = {
		6,   0, 0, 0, 5, 0, 0, 1, 0,   0,   0,   0,   0,   0,   0,   0,
		0,   1, 0, 0, 0, 0, 0, 0, /* 256 */
		1,   2, 3, 4, 5, 6, 7, 8, 8,   0,   0,   0,   0,   0,   0,   0,
		4,   3, 2, 1, 7, 0, 0, 0, 255, 254, 255, 255, 255, 255, 255, 255,
		248, 0, 0, 0, 0, 0, 0, 0, 4,   3,   2,   1,   0,   0,   0,   0,
	};
static const uint8_t written[] = {
	8, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
};
static const uint8_t key_get[] = {
	9, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
};
static const uint8_t key[] = {
	10, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0,    0, 0, 0, 0, 0,
	0,  0, 0, 0, 2, 0, 1, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, /* 1 MiB */
	0,  1, 0, 0, 0, 0, 0, 0, 1, 2, 3,    4, 5, 6, 7, 8, /* 256 */
	8,  0, 0, 0, 7, 0, 0, 0,
};
static const uint8_t no_key[] = {
	10, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0,
	0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0,
};
static const uint8_t key_gone[] = { 14, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t key_left[] = { 15, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t write_data[] = {
	11, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	9,  0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0,
};
static const uint8_t on[] = { 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

static const struct {
	const uint8_t *bytes;
	size_t n;
	size_t n_min; /* a prefix that long or longer is a message too */
	size_t step;  /* by a multiple of that */
} good[] = {
	{ eager, sizeof(eager), 24, 1 },
	{ padded, sizeof(padded), 21, 1 },
	{ rts, sizeof(rts), sizeof(rts), 1 },
	{ fin, sizeof(fin), sizeof(fin), 1 },
	{ off, sizeof(off), sizeof(off), 1 },
	{ on, sizeof(on), sizeof(on), 1 },
	{ ask, sizeof(ask), sizeof(ask), 1 },
	{ piece, sizeof(piece), 17, 1 },
	{ bare_rts, sizeof(bare_rts), sizeof(bare_rts), 1 },
	{ early_rts, sizeof(early_rts), 32, 1 },
	{ placed_ask, sizeof(placed_ask), 24, 24 },
	{ written, sizeof(written), sizeof(written), 1 },
	{ key_get, sizeof(key_get), sizeof(key_get), 1 },
	{ key, sizeof(key), sizeof(key), 1 },
	{ no_key, sizeof(no_key), sizeof(no_key), 1 },
	{ key_gone, sizeof(key_gone), sizeof(key_gone), 1 },
	{ key_left, sizeof(key_left), sizeof(key_left), 1 },
	{ write_data, sizeof(write_data), sizeof(write_data), 1 },
};

static void fields_are_read(void **state)
{
	struct rvcm_parse out;

	(void)state;
	assert_null(rvcm_parse_message(eager, sizeof(eager), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_EAGER);
	assert_int_equal(out.flags, RVCM_MESSAGE_TAGGED | RVCM_MESSAGE_CQ_DATA);
	assert_int_equal(out.tag, 0x0807060504030201);
	assert_int_equal(out.data, 0x0100000000000009);
	assert_int_equal(out.length, 3);
	assert_ptr_equal(out.payload, eager + 24);

	assert_null(rvcm_parse_message(padded, sizeof(padded), &out));
	assert_int_equal(out.length, 2);
	assert_ptr_equal(out.payload, padded + 21);

	assert_null(rvcm_parse_message(rts, sizeof(rts), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_RTS);
	assert_int_equal(out.op_id, 0x01000005);
	assert_int_equal(out.length, 256);
	assert_int_equal(out.n_rails, 2);
	assert_ptr_equal(out.rails, rts + 32);
	assert_int_equal(out.data, 0);

	assert_null(rvcm_parse_message(fin, sizeof(fin), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_FIN);
	assert_int_equal(out.status, RVCM_STATUS_TRUNCATED);

	assert_null(rvcm_parse_message(off, sizeof(off), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_EAGER_OFF);
	assert_null(rvcm_parse_message(on, sizeof(on), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_EAGER_ON);
}

static void fields_of_copies_are_read(void **state)
{
	struct rvcm_parse out;

	(void)state;
	assert_null(rvcm_parse_message(bare_rts, sizeof(bare_rts), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_RTS);
	assert_int_equal(out.length, 256);
	assert_int_equal(out.n_rails, 0);

	assert_null(rvcm_parse_message(ask, sizeof(ask), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_ASK);
	assert_int_equal(out.op_id, 0x01000005);
	assert_int_equal(out.length, 256);

	assert_null(rvcm_parse_message(piece, sizeof(piece), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_PIECE);
	assert_int_equal(out.op_id, 0x01000005);
	assert_int_equal(out.length, 2);
	assert_ptr_equal(out.payload, piece + 16);
}

static void fields_of_what_is_written_are_read(void **state)
{
	struct rvcm_parse out;

	(void)state;
	assert_null(rvcm_parse_message(early_rts, sizeof(early_rts), &out));
	assert_true(out.writes);
	assert_int_equal(out.length, 4);
	assert_int_equal(out.n_rails, 0);
	assert_int_equal(out.early, 4);
	assert_ptr_equal(out.payload, early_rts + 32);

	assert_null(rvcm_parse_message(placed_ask, sizeof(placed_ask), &out));
	assert_int_equal(out.length, 256);
	assert_int_equal(out.n_places, 2);
	assert_ptr_equal(out.places, placed_ask + 24);

	assert_null(rvcm_parse_message(written, sizeof(written), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_WRITTEN);
	assert_int_equal(out.op_id, 0x01000005);
	assert_int_equal(out.length, 256);
}

static void fields_of_keys_are_read(void **state)
{
	struct rvcm_parse out;

	(void)state;
	assert_null(rvcm_parse_message(key_get, sizeof(key_get), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_KEY_GET);
	assert_int_equal(out.key, 0x0807060504030201);
	assert_null(rvcm_parse_message(key, sizeof(key), &out));
	assert_int_equal(out.op_id, 0x01000005);
	assert_int_equal(out.status, RVCM_STATUS_OK);
	assert_int_equal(out.access, RVCM_MESSAGE_WRITE);
	assert_int_equal(out.base, 0x100000);
	assert_int_equal(out.length, 256);
	assert_int_equal(out.n_rails, 1);
	assert_ptr_equal(out.rails, key + 40);
	assert_null(rvcm_parse_message(no_key, sizeof(no_key), &out));
	assert_int_equal(out.status, RVCM_STATUS_KEY_REJECTED);
	assert_null(rvcm_parse_message(write_data, sizeof(write_data), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_WRITE_DATA);
	assert_int_equal(out.data, 0x0100000000000009);
	assert_int_equal(out.length, 256);
	assert_null(rvcm_parse_message(key_gone, sizeof(key_gone), &out));
	assert_int_equal(out.op, RVCM_MESSAGE_KEY_GONE);
}

/* From a newer peer. */
static void an_unknown_status_is_general(void **state)
{
	uint8_t msg[sizeof(fin)];
	struct rvcm_parse out;

	(void)state;
	memcpy(msg, fin, sizeof(fin));
	rvcm_le32_put(msg + 16, 0xfffffff0);
	assert_null(rvcm_parse_message(msg, sizeof(msg), &out));
	assert_int_equal(out.status, RVCM_STATUS_GENERAL);
}

/* What is called plain is what the whole parser makes of it, and all that is plain is: unpadded. */
static void check_plain(const uint8_t *bytes, size_t n, const struct rvcm_parse *whole)
{
	struct rvcm_parse_plain plain;
	bool is = whole && whole->op == RVCM_MESSAGE_EAGER && whole->flags & RVCM_MESSAGE_TAGGED &&
		  !whole->pad;
	bool has_data = is && whole->flags & RVCM_MESSAGE_CQ_DATA;

	assert_int_equal(rvcm_parse_is_plain(bytes, n, RVCM_PARSE_PLAIN), is && !has_data);
	assert_int_equal(rvcm_parse_is_plain(bytes, n, RVCM_PARSE_DATA), has_data);
	if (!is)
		return;
	rvcm_parse_plain(bytes, n, has_data ? RVCM_PARSE_DATA : RVCM_PARSE_PLAIN, &plain);
	assert_int_equal(plain.flags, whole->flags);
	assert_int_equal(plain.tag, whole->tag);
	assert_int_equal(plain.data, whole->data);
	assert_int_equal(plain.length, whole->length);
	assert_ptr_equal(plain.payload, whole->payload);
}

static bool is_good(size_t i, size_t n)
{
	return n >= good[i].n_min && (n - good[i].n_min) % good[i].step == 0;
}

/* Each length on a piece of memory of its own, so that a sanitizer sees reading beyond it. */
static void no_prefix_is_taken_for_the_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		for (size_t n = 0; n < good[i].n; n++) {
			uint8_t *copy = malloc(n ? n : 1);
			struct rvcm_parse out;
			const char *why;

			if (n)
				memcpy(copy, good[i].bytes, n);
			why = rvcm_parse_message(copy, n, &out);
			check_plain(copy, n, why ? NULL : &out);
			assert_int_equal(why == NULL, is_good(i, n));
			free(copy);
		}
}

static void check_places(const uint8_t *bytes, size_t n, const struct rvcm_parse *out)
{
	uint64_t sum = 0;

	assert_in_range(out->n_places, 0, RVCM_MESSAGE_PLACES_MAX);
	assert_ptr_equal(out->places + out->n_places, bytes + n);
	for (uint32_t i = 0; i < out->n_places; i++) {
		uint64_t of = rvcm_le64_get(out->places[i].bytes);

		assert_true(of && of <= out->length - sum);
		assert_true(rvcm_le64_get(out->places[i].address) <= UINT64_MAX - of);
		sum += of;
	}
}

static void check_key(const struct rvcm_parse *out)
{
	assert_int_equal(out->status == RVCM_STATUS_OK, out->n_rails != 0);
	assert_in_range(out->n_rails, 0, RVCM_CONN_DEVS_MAX);
	assert_in_range(out->access, 0, 3);
	assert_true(out->base <= UINT64_MAX - out->length);
	for (uint32_t i = 0; i < out->n_rails; i++)
		assert_true(rvcm_le64_get(out->rails[i].address) <= UINT64_MAX - out->length);
}

static void check_promises(const uint8_t *bytes, size_t n, const struct rvcm_parse *out)
{
	assert_in_range(out->op, RVCM_MESSAGE_EAGER, RVCM_MESSAGE_KEY_LEFT);
	assert_true((out->flags & ~3u) == 0);
	if (out->op == RVCM_MESSAGE_KEY)
		check_key(out);
	if (out->op >= RVCM_MESSAGE_ASK && out->op <= RVCM_MESSAGE_WRITTEN)
		assert_int_not_equal(out->length, 0);
	if (out->op == RVCM_MESSAGE_ASK)
		check_places(bytes, n, out);
	if (out->op == RVCM_MESSAGE_EAGER || out->op == RVCM_MESSAGE_PIECE)
		assert_true(out->payload >= bytes && out->payload + out->length == bytes + n);
	if (out->op != RVCM_MESSAGE_RTS)
		return;
	assert_in_range(out->n_rails, 0, RVCM_CONN_DEVS_MAX);
	assert_ptr_equal((const uint8_t *)(out->rails + out->n_rails) + out->early, bytes + n);
	assert_true(out->early <= out->length && !(out->n_rails && out->early && !out->writes));
	for (uint32_t i = 0; i < out->n_rails; i++)
		assert_true(rvcm_le64_get(out->rails[i].address) <= UINT64_MAX - out->length);
}

static void mutations_keep_the_promises(void **state)
{
	struct rvcm_rng rng;
	uint32_t accepted = 0;

	(void)state;
	rvcm_rng_init(&rng, 11);
	for (int i = 0; i < 200000; i++) {
		size_t which = rvcm_rng_below(&rng, sizeof(good) / sizeof(good[0]));
		size_t n = good[which].n - rvcm_rng_below(&rng, 3);
		uint8_t *copy = malloc(n + 16);
		struct rvcm_parse out;

		memset(copy, 0, n + 16);
		memcpy(copy, good[which].bytes, n);
		n += rvcm_rng_below(&rng, 17);
		for (uint64_t k = rvcm_rng_below(&rng, 4); k > 0; k--)
			copy[rvcm_rng_below(&rng, n)] = (uint8_t)rvcm_rng_next(&rng);
		if (rvcm_parse_message(copy, n, &out)) {
			check_plain(copy, n, NULL);
		} else {
			check_promises(copy, n, &out);
			check_plain(copy, n, &out);
			accepted++;
		}
		free(copy);
	}
	assert_in_range(accepted, 10000, 190000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read),
		cmocka_unit_test(fields_of_copies_are_read),
		cmocka_unit_test(fields_of_what_is_written_are_read),
		cmocka_unit_test(fields_of_keys_are_read),
		cmocka_unit_test(an_unknown_status_is_general),
		cmocka_unit_test(no_prefix_is_taken_for_the_whole),
		cmocka_unit_test(mutations_keep_the_promises),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}

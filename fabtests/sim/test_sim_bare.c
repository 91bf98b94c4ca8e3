/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages leave without their head, as the device sees it, and that they arrive as any
 * other. Two carriers send to each other; the first one's device is behind a table that counts.
 */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "conn/wire.h"
#include "sim/talk.h"

#define PACKET 1024u /* what a packet holds */
#define LONG   3000u
#define WINDOW 64u

/* A message: 16 bytes of which the last 8 are a number whose low 21 bits may vary; then a pattern.
 */
#define VARY_AT 8u
#define HEAD    16u

static struct world {
	struct talk talk;
	struct {
		uint64_t word;
		size_t bytes;
		uint8_t first;
	} last[2];       /* message that either got */
	uint32_t refuse; /* so many posts more, for want of room */
	uint32_t bare, kept, whole;
} w;

static int counting_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr)
{
	const struct rvcm_wire_frame *frame = wr->sge[0].addr;

	if (w.refuse) {
		w.refuse--;
		return -EAGAIN;
	}
	if (wr->flags & RVCM_DEV_WR_IMM)
		w.bare++;
	else if (frame->kind == RVCM_WIRE_DATA)
		(frame->flags & RVCM_WIRE_KEEP ? &w.kept : &w.whole)[0]++;
	return w.talk.below->post(qp, wr);
}

/* -- the world ---------------------------------------------------------------------------- */

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 13 + i / 256);
}

static void got(struct talk_node *node, const uint8_t *data, size_t bytes)
{
	long index = node - w.talk.nodes;

	assert_true(bytes >= HEAD);
	w.last[index].first = data[0];
	w.last[index].word = rvcm_le64_get(data + VARY_AT);
	w.last[index].bytes = bytes;
	for (size_t i = 1; i < bytes; i++)
		if (i < VARY_AT || i >= HEAD)
			assert_int_equal(data[i], byte_at(i));
}

/* One message, which arrives as it was sent. */
static void exchange(int from, size_t bytes, uint8_t first, uint64_t word)
{
	struct rvcm_path *path = w.talk.nodes[from].path;
	const struct talk_node *to = &w.talk.nodes[!from];
	uint32_t before = to->received;
	uint8_t *buf;

	while (!(buf = rvcm_path_reserve(path, bytes)))
		talk_turn(&w.talk);
	for (size_t i = 1; i < bytes; i++)
		buf[i] = byte_at(i);
	buf[0] = first;
	rvcm_le64_put(buf + VARY_AT, word);
	rvcm_path_commit(path, bytes, RVCM_PATH_NOW);
	for (int turns = 0; to->received == before && turns < 1000; turns++)
		talk_turn(&w.talk);
	assert_int_equal(to->received, before + 1);
	assert_int_equal(w.last[!from].bytes, bytes);
	assert_int_equal(w.last[!from].first, first);
	assert_true(w.last[!from].word == word);
}

static void assert_left(uint32_t whole, uint32_t kept, uint32_t bare)
{
	assert_int_equal(w.whole, whole);
	assert_int_equal(w.kept, kept);
	assert_int_equal(w.bare, bare);
	w.whole = w.kept = w.bare = 0;
}

static void node_open(int index, bool has_room)
{
	struct sim_dev_conf conf;

	sim_dev_conf_init(w.talk.net, &conf, false);
	conf.attr.mtu_bytes = PACKET;
	if (has_room)
		conf.attr.caps ^= RVCM_DEV_CAP_HEAD | RVCM_DEV_CAP_FOREROOM;
	talk_node_open(&w.talk, index, &conf);
}

/* Connected, and the first one's device counted. */
static void world_open(bool peer_has_room)
{
	memset(&w, 0, sizeof(w));
	w.talk.message_bytes_max = LONG;
	w.talk.window_max = WINDOW;
	w.talk.recv = got;
	talk_open(&w.talk);
	node_open(0, true);
	node_open(1, peer_has_room);
	talk_connect(&w.talk);
	/* Windows grow while only one side talks. */
	for (uint32_t i = 0; i < 4 * WINDOW; i++)
		exchange(0, HEAD, 0, 0);
	talk_count(&w.talk, counting_post, NULL);
}

static void world_close(void)
{
	for (int i = 0; i < 2; i++)
		talk_node_end(&w.talk.nodes[i]);
	talk_close(&w.talk);
}

/* -- tests -------------------------------------------------------------------------------- */

static void what_is_like_the_one_before_goes_bare(void **state)
{
	(void)state;
	world_open(true);
	exchange(0, HEAD + PACKET, 1, 77);
	assert_left(0, 1, 0);
	for (int i = 0; i < 3; i++)
		exchange(0, HEAD + PACKET, 1, 77);
	assert_left(0, 0, 3);
	/* Whatever comes between, and with another length: two packets, not three. */
	exchange(0, HEAD, 2, 5);
	exchange(0, HEAD + 2 * PACKET, 1, 77);
	assert_left(1, 0, 1);
	world_close();
}

static void a_few_bits_may_vary(void **state)
{
	static const uint64_t high = UINT64_C(0xfedcba9876400000);

	(void)state;
	world_open(true);
	exchange(0, HEAD + PACKET, 1, high);
	assert_left(0, 1, 0);
	exchange(0, HEAD + PACKET, 1, high | 1);
	exchange(0, HEAD + PACKET, 1, high | 0x1fffff);
	assert_left(0, 0, 2);
	exchange(0, HEAD + PACKET, 1, high | 0x200000);
	assert_left(0, 1, 0);
	exchange(0, HEAD + PACKET, 1, high | 0x200001);
	assert_left(0, 0, 1);
	world_close();
}

static void another_head_is_kept_instead(void **state)
{
	(void)state;
	world_open(true);
	exchange(0, HEAD + PACKET, 1, 0);
	exchange(0, HEAD + PACKET, 2, 0);
	assert_left(0, 2, 0);
	exchange(0, HEAD + PACKET, 2, 0);
	assert_left(0, 0, 1);
	exchange(0, HEAD + PACKET, 1, 0);
	assert_left(0, 1, 0);
	world_close();
}

/* With the frame's header: 32 bytes are spared, so the last 32 before a packet's end count. */
static void where_no_packet_is_saved_it_is_whole(void **state)
{
	static const size_t header = sizeof(struct rvcm_wire_frame);

	(void)state;
	world_open(true);
	for (int i = 0; i < 2; i++) {
		exchange(0, PACKET - header, 1, 0);
		exchange(0, PACKET + 33 - header, 1, 0);
		assert_left(2, 0, 0);
	}
	exchange(0, PACKET + 1 - header, 1, 0);
	exchange(0, PACKET + 32 - header, 1, 0);
	assert_left(0, 1, 1);
	world_close();
}

static void not_with_a_peer_that_has_no_room(void **state)
{
	(void)state;
	world_open(false);
	exchange(0, HEAD + PACKET, 1, 0);
	exchange(0, HEAD + PACKET, 1, 0);
	assert_left(2, 0, 0);
	world_close();
}

/* Its head has not been said, so it says it when it is posted again; and what was bare stays so. */
static void what_was_refused_has_not_been_kept(void **state)
{
	(void)state;
	world_open(true);
	w.refuse = 1;
	exchange(0, HEAD + PACKET, 1, 0);
	assert_left(0, 1, 0);
	w.refuse = 1;
	exchange(0, HEAD + PACKET, 1, 0);
	assert_left(0, 0, 1);
	world_close();
}

/* Far beyond a window, and beyond what the bits of an acknowledgement hold: credit comes back. */
static void bare_messages_acknowledge(void **state)
{
	(void)state;
	world_open(true);
	for (uint32_t i = 0; i < 5000; i++)
		for (int from = 0; from < 2; from++)
			exchange(from, HEAD + PACKET, 1, i % 100);
	assert_true(w.bare > 4900);
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_like_the_one_before_goes_bare),
		cmocka_unit_test(a_few_bits_may_vary),
		cmocka_unit_test(another_head_is_kept_instead),
		cmocka_unit_test(where_no_packet_is_saved_it_is_whole),
		cmocka_unit_test(not_with_a_peer_that_has_no_room),
		cmocka_unit_test(what_was_refused_has_not_been_kept),
		cmocka_unit_test(bare_messages_acknowledge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

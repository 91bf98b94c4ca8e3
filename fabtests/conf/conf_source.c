/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_DIRECTED_RECV and FI_SOURCE of fi_getinfo(3): receives that name a sender and receives that do
 * not, in one order; who sent is told, and strangers are told apart. The second sender at b is b.
 */
#include "conf/conf.h"

static const struct conf_options plain;
static const struct conf_options sourced = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

enum {
	ANY,
	FROM_A,
	FROM_SELF
};

struct scene {
	struct conf_pair pair;
	fi_addr_t self;
	struct fi_context2 received[8], sent;
	char in[8];
	bool tagged;
};

static void scene_open(struct scene *s, bool tagged)
{
	conf_pair_open(&s->pair, &sourced);
	s->self = conf_insert(&s->pair.b, &s->pair.b);
	s->tagged = tagged;
}

static void post(struct scene *s, int i, int from)
{
	const fi_addr_t addrs[] = { FI_ADDR_UNSPEC, s->pair.to_a, s->self };
	struct fid_ep *ep = s->pair.b.ep;

	if (s->tagged)
		CONF_RETRY(&s->pair,
			   fi_trecv(ep, &s->in[i], 1, NULL, addrs[from], 1, 0, &s->received[i]));
	else
		CONF_RETRY(&s->pair, fi_recv(ep, &s->in[i], 1, NULL, addrs[from], &s->received[i]));
}

static void say(struct scene *s, int from, char what)
{
	struct fid_ep *ep = from == FROM_A ? s->pair.a.ep : s->pair.b.ep;
	fi_addr_t to = from == FROM_A ? s->pair.to_b : s->self;

	if (s->tagged)
		CONF_RETRY(&s->pair, fi_tinject(ep, &what, 1, to, 1));
	else
		CONF_RETRY(&s->pair, fi_inject(ep, &what, 1, to));
}

static void expect(struct scene *s, int i, int from, char what)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source = FI_ADDR_NOTAVAIL;

	conf_wait(&s->pair, s->pair.b.rxcq, &entry, &source);
	assert_ptr_equal(entry.op_context, &s->received[i]);
	assert_int_equal(source, from == FROM_A ? s->pair.to_a : s->self);
	assert_int_equal(s->in[i], what);
}

static void the_oldest_that_matches_takes_it(void **state)
{
	(void)state;
	for (int tagged = 0; tagged < 2; tagged++) {
		struct scene s;

		scene_open(&s, tagged);
		post(&s, 0, ANY);
		post(&s, 1, FROM_A);
		post(&s, 2, FROM_SELF);
		post(&s, 3, ANY);
		post(&s, 4, FROM_A);
		say(&s, FROM_A, 'a');
		expect(&s, 0, FROM_A, 'a');
		say(&s, FROM_A, 'b');
		expect(&s, 1, FROM_A, 'b');
		say(&s, FROM_A, 'c');
		expect(&s, 3, FROM_A, 'c');
		say(&s, FROM_SELF, 'd');
		expect(&s, 2, FROM_SELF, 'd');
		say(&s, FROM_A, 'e');
		expect(&s, 4, FROM_A, 'e');
		conf_pair_close(&s.pair);
	}
}

/* There is no order between senders. */
static void the_oldest_message_that_matches_is_taken(void **state)
{
	(void)state;
	for (int tagged = 0; tagged < 2; tagged++) {
		struct scene s;

		scene_open(&s, tagged);
		/* connected, and nothing under way any more */
		post(&s, 7, FROM_A);
		say(&s, FROM_A, 'z');
		expect(&s, 7, FROM_A, 'z');
		say(&s, FROM_SELF, 'a');
		say(&s, FROM_SELF, 'b');
		say(&s, FROM_A, 'c');
		say(&s, FROM_A, 'd');
		post(&s, 0, FROM_A);
		expect(&s, 0, FROM_A, 'c');
		post(&s, 1, FROM_SELF);
		expect(&s, 1, FROM_SELF, 'a');
		post(&s, 2, FROM_A);
		expect(&s, 2, FROM_A, 'd');
		post(&s, 3, ANY);
		expect(&s, 3, FROM_SELF, 'b');
		conf_pair_close(&s.pair);
	}
}

static void without_the_capability_the_source_does_not_count(void **state)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	fi_addr_t self;
	char in;

	(void)state;
	conf_pair_open(&pair, &plain);
	self = conf_insert(&pair.b, &pair.b);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, self, 1, 0, &received));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, 1, &sent));
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &received);
	conf_pair_close(&pair);
}

static void sources_fill_an_array(void **state)
{
	struct fi_cq_tagged_entry entries[4];
	fi_addr_t sources[4];
	uint64_t deadline = conf_deadline();
	struct scene s;
	ssize_t n = 0;

	(void)state;
	scene_open(&s, true);
	for (int i = 0; i < 4; i++)
		post(&s, i, ANY);
	say(&s, FROM_A, 'a');
	expect(&s, 0, FROM_A, 'a');
	for (int i = 1; i < 4; i++)
		say(&s, FROM_SELF, 'b');
	while (n < 3) {
		ssize_t rc =
			fi_cq_readfrom(s.pair.b.rxcq, entries + n, (size_t)(4 - n), sources + n);

		conf_not_late(deadline);
		if (rc == -FI_EAGAIN)
			continue;
		assert_in_range(rc, 1, 3);
		n += rc;
	}
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(entries[i].op_context, &s.received[1 + i]);
		assert_int_equal(sources[i], s.self);
	}
	conf_pair_close(&s.pair);
}

/* FI_SOURCE_ERR: who is in no vector is told by name, with the message. */
static void strangers_introduce_themselves(void **state)
{
	const struct conf_options named = { .caps = FI_SOURCE | FI_SOURCE_ERR };
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	struct fi_context2 received[2];
	struct conf_pair pair;
	fi_addr_t source;
	char in = 0;

	(void)state;
	conf_open(&pair.a, &named);
	conf_open(&pair.b, &named);
	pair.to_b = conf_insert(&pair.a, &pair.b);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 7, 0, &received[0]));
	CONF_RETRY(&pair, fi_tinject(pair.a.ep, "x", 1, pair.to_b, 7));
	conf_wait_error(&pair, pair.b.rxcq, &error);
	assert_ptr_equal(error.op_context, &received[0]);
	assert_int_equal(error.err, FI_EADDRNOTAVAIL);
	assert_int_equal(error.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	assert_int_equal(error.len, 1);
	assert_int_equal(error.tag, 7);
	assert_int_equal(in, 'x');
	assert_int_equal(error.err_data_size, pair.a.name_size);
	assert_memory_equal(error.err_data, pair.a.name, pair.a.name_size);
	assert_non_null(fi_cq_strerror(pair.b.rxcq, error.prov_errno, error.err_data, NULL, 0));
	/* so it can be inserted, and is known from then on */
	assert_int_equal(fi_av_insert(pair.b.av, error.err_data, 1, &pair.to_a, 0, NULL), 1);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 8, 0, &received[1]));
	CONF_RETRY(&pair, fi_tinject(pair.a.ep, "y", 1, pair.to_b, 8));
	conf_wait(&pair, pair.b.rxcq, &entry, &source);
	assert_int_equal(source, pair.to_a);
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_that_matches_takes_it),
		cmocka_unit_test(the_oldest_message_that_matches_is_taken),
		cmocka_unit_test(without_the_capability_the_source_does_not_count),
		cmocka_unit_test(sources_fill_an_array),
		cmocka_unit_test(strangers_introduce_themselves),
	};

	conf_provider();
	return conf_run_tests("source", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that goes wrong at any step of connecting, over real sockets: a bare TCP socket speaks
 * MPA and our handshake to a carrier, from either side, up to some step, and then lies, hangs up,
 * resets the connection, or says nothing more. The carrier ends that with the right error or
 * without a word, goes on taking others, and a third peer does not notice; nothing is left.
 */
#include "hostile/bare.h"

#include <string.h>
#include <unistd.h>

#include "base/le.h"
#include "unit/fds.h"

/* -- the bare peer opens ---------------------------------------------------------------------- */

enum step {
	TCP,
	HALF,
	REQUEST,
	REPLY,
	HELLO,
	DATA,
	STEPS
};

/* So far, as it should be. */
static void open_up_to(struct bare *b, enum step step)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	enum rvcm_wire_reason reason;

	bare_request(b);
	bare_dial(b);
	if (step == HALF)
		bare_write(b, buf,
			   bare_mpa(RVCM_SOFT_MPA_REQUEST, &b->request, sizeof(b->request), buf) /
				   2);
	if (step < REQUEST)
		return;
	bare_send_request(b, &b->request, sizeof(b->request));
	if (step < REPLY)
		return;
	assert_true(bare_take_reply(b, &reason));
	if (step < HELLO)
		return;
	bare_send_hello(b, RVCM_WIRE_REQUEST, 0, true);
	if (step == DATA)
		bare_send_data(b);
}

static uint32_t contacts(void)
{
	struct rvcm_hash_node *node = NULL;
	uint32_t n = 0;

	while ((node = rvcm_hash_next(&victim.carrier->contacts, node)))
		n++;
	return n;
}

static uint64_t links(void)
{
	return victim.carrier->n_claims;
}

/* Killed at each step: its socket closes, or resets the connection. */
static void an_opener_dies_at_every_step(void **state)
{
	(void)state;
	for (int step = TCP; step < STEPS; step++) {
		for (int reset = 0; reset < 2; reset++) {
			uint32_t downs = victim.strange_downs;
			struct bare b;

			bare_open(&b, 100 + (uint32_t)step * 2 + (uint32_t)reset);
			open_up_to(&b, step);
			if (step >= HELLO) /* it has been taken: an end is a loss */
				UNTIL(bare_readable(&b, 1));
			if (step >= HELLO) /* a socket with bytes unread is reset by close(2) */
				(void)bare_ended(&b);
			bare_end(&b, reset);
			if (step >= HELLO) {
				UNTIL(victim.strange_downs == downs + 1);
				assert_int_equal(victim.strange_cause.status,
						 reset ? RVCM_STATUS_CONNECTION_LOST
						       : RVCM_STATUS_PEER_DEAD);
			}
			scene_check_third();
			UNTIL(links() == 0 && (scene_pump(), true));
			bare_close(&b);
		}
	}
	assert_int_equal(victim.strange_received, 2);
}

/* It stays, and says nothing more. */
static void an_opener_falls_silent_at_every_step(void **state)
{
	(void)state;
	for (int step = TCP; step < HELLO; step++) {
		struct bare b;

		bare_open(&b, 200 + (uint32_t)step);
		open_up_to(&b, step);
		UNTIL(bare_ended(&b));
		scene_check_third();
		bare_close(&b);
	}
	UNTIL(links() == 0);
}

/* What the private data of a request may be, and what it gets for it. */
static void private_data_that_is_refused(void **state)
{
	static const uint8_t other_key[RVCM_CONN_KEY_BYTES] = "another job's";
	struct row {
		const char *name;
		enum rvcm_wire_reason reason;
	} rows[] = {
		{ "none", RVCM_WIRE_REASON_MALFORMED },  { "short", RVCM_WIRE_REASON_MALFORMED },
		{ "magic", RVCM_WIRE_REASON_MALFORMED }, { "version", RVCM_WIRE_REASON_VERSION },
		{ "role", RVCM_WIRE_REASON_MALFORMED },  { "mac", RVCM_WIRE_REASON_KEY },
		{ "key", RVCM_WIRE_REASON_KEY },         { "name", RVCM_WIRE_REASON_NAME },
		{ "life", RVCM_WIRE_REASON_GONE },       { "long noise", RVCM_WIRE_REASON_VERSION },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t data[512] = { 0 };
		size_t bytes = sizeof(struct rvcm_wire_handshake);
		enum rvcm_wire_reason reason;
		struct rvcm_shake shake;
		struct bare b;

		bare_open(&b, 300);
		shake = bare_shake_of(&b, i == 4 ? RVCM_WIRE_REPLY : RVCM_WIRE_REQUEST);
		if (i == 7)
			shake.name = victim.name;
		if (i == 8) {
			shake.flags = RVCM_WIRE_RECOVERY;
			shake.begun = 1;
			shake.peer_incarnation = 12345;
		}
		rvcm_shake_encode(&shake, i == 6 ? other_key : scene_key, NULL, (void *)data);
		if (i == 0)
			bytes = 0;
		if (i == 1)
			bytes--;
		if (i == 2)
			data[1] ^= 1;
		if (i == 3)
			data[0]++;
		if (i == 5)
			data[26] ^= 0x10;
		if (i == 9)
			memset(data, 0xac, bytes = 512);
		bare_dial(&b);
		bare_send_request(&b, data, bytes);
		assert_false(bare_take_reply(&b, &reason));
		if (reason != rows[i].reason)
			fail_msg("%s: reason %d", rows[i].name, (int)reason);
		UNTIL(bare_ended(&b));
		scene_check_third();
		bare_close(&b);
	}
	assert_int_equal(links(), 0);
	assert_int_equal(contacts(), 1);
}

/* Longer than ours is how some connection managers pad. */
static void padding_is_no_harm(void **state)
{
	uint8_t data[512] = { 0 };
	enum rvcm_wire_reason reason;
	uint32_t before = victim.strange_received;
	struct bare b;

	(void)state;
	bare_open(&b, 400);
	bare_request(&b);
	memcpy(data, &b.request, sizeof(b.request));
	bare_dial(&b);
	bare_send_request(&b, data, sizeof(data));
	assert_true(bare_take_reply(&b, &reason));
	bare_send_hello(&b, RVCM_WIRE_REQUEST, 0, true);
	bare_send_data(&b);
	UNTIL(victim.strange_received == before + 1);
	bare_close(&b);
	UNTIL(victim.strange_downs);
}

/* After the acceptance: whatever it is, it is not HELLO. */
static void lies_after_the_acceptance(void **state)
{
	static const enum rvcm_wire_reason told[] = {
		RVCM_WIRE_REASON_NONE,      RVCM_WIRE_REASON_MALFORMED, RVCM_WIRE_REASON_MALFORMED,
		RVCM_WIRE_REASON_MALFORMED, RVCM_WIRE_REASON_KEY,
	};

	(void)state;
	for (int lie = 0; lie < 5; lie++) {
		uint32_t received = victim.strange_received;
		uint8_t noise[600];
		struct bare b;

		bare_open(&b, 500 + (uint32_t)lie);
		open_up_to(&b, REPLY);
		memset(noise, 0x5a, sizeof(noise));
		if (lie == 0)
			bare_write(&b, noise, sizeof(noise)); /* not even a frame */
		else if (lie == 1)
			bare_send_frame(&b, noise, sizeof(noise));
		else if (lie == 2)
			bare_send_data(&b);
		else
			bare_send_hello(&b, RVCM_WIRE_REQUEST, lie == 3 ? 65535 : 0, lie == 3);
		if (lie > 0) /* the device has its own words for what is no frame */
			assert_int_equal(bare_take_bye(&b), told[lie]);
		UNTIL(bare_ended(&b));
		scene_check_third();
		assert_int_equal(victim.strange_received, received);
		bare_close(&b);
	}
	UNTIL(links() == 0);
	assert_int_equal(contacts(), 1);
}

/* Everything an honest opener sent, once more, byte by byte. */
static void a_replay_of_all_of_it(void **state)
{
	uint32_t received = victim.strange_received, downs = victim.strange_downs;
	enum rvcm_wire_reason reason;
	struct bare b, replay;

	(void)state;
	bare_open(&b, 600);
	open_up_to(&b, DATA);
	UNTIL(victim.strange_received == received + 1);
	/* While the link stands, ... */
	replay = b;
	bare_dial(&replay);
	bare_send_request(&replay, &b.request, sizeof(b.request));
	assert_false(bare_take_reply(&replay, &reason));
	assert_int_equal(reason, RVCM_WIRE_REASON_STALE);
	bare_end(&replay, false);
	assert_int_equal(victim.strange_downs, downs);
	/* ... and to an acceptor that has forgotten that life: its nonce is another. */
	bare_end(&b, false);
	UNTIL(victim.strange_downs == downs + 1);
	bare_close(&b);
	bare_open(&replay, 601);
	replay.request = b.request;
	open_up_to(&replay, REPLY);
	replay.reply = b.reply;
	bare_send_hello(&replay, RVCM_WIRE_REQUEST, 0, true);
	UNTIL(bare_ended(&replay));
	assert_int_equal(victim.strange_received, received + 1);
	scene_check_third();
	bare_close(&replay);
	UNTIL(links() == 0);
}

/* -- the bare peer accepts -------------------------------------------------------------------- */

enum answer {
	A_TCP,     /* accept(2), and the end */
	A_REQUEST, /* the request is read, and the end */
	A_HALF,    /* half of a reply */
	A_NOISE,   /* what no RNIC says */
	A_EMPTY,   /* MPA, and no private data */
	A_REFLECT, /* the opener's own request */
	A_REPLY,   /* a true reply, and the end */
	A_LIE,     /* then a HELLO without the key */
	A_EARLY,   /* then DATA without HELLO */
	A_HELLO,   /* then a true HELLO, and the end */
	ANSWERS
};

static void answer(struct bare *b, enum answer how)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX], noise[100];
	struct rvcm_shake shake = bare_shake_of(b, RVCM_WIRE_REPLY);
	size_t n;

	UNTIL(bare_accepted(b));
	if (how == A_TCP)
		return;
	bare_take_request(b);
	shake.epoch = rvcm_le32_get(b->request.epoch);
	rvcm_shake_encode(&shake, scene_key, &b->request, &b->reply);
	if (how == A_REFLECT)
		b->reply = b->request;
	memset(noise, 'x', sizeof(noise));
	n = bare_mpa(RVCM_SOFT_MPA_REPLY, &b->reply, how == A_EMPTY ? 0 : sizeof(b->reply), buf);
	if (how == A_NOISE)
		bare_write(b, noise, sizeof(noise));
	else if (how != A_REQUEST)
		bare_write(b, buf, how == A_HALF ? n / 2 : n);
	if (how <= A_REPLY)
		return;
	bare_take_nonce(b);
	if (how == A_EARLY)
		bare_send_data(b);
	else
		bare_send_hello(b, RVCM_WIRE_REPLY, 0, how == A_HELLO);
}

/* The victim connects, to whatever answers; it is told why that did not work, and tries no longer.
 */
static void an_acceptor_goes_wrong_at_every_step(void **state)
{
	(void)state;
	for (int how = 0; how < ANSWERS; how++) {
		uint32_t downs = victim.strange_downs;
		struct rvcm_path *path;
		struct bare b;

		bare_open(&b, 700 + (uint32_t)how);
		assert_int_equal(rvcm_path_get(victim.carrier, 0, &b.name, &path), 0);
		assert_null(rvcm_path_reserve(path, 8));
		answer(&b, how);
		if (how != A_LIE && how != A_EARLY && how != A_NOISE)
			bare_end(&b, false);
		close(b.server); /* it is not there for another attempt either */
		b.server = -1;
		UNTIL(victim.strange_downs == downs + 1);
		assert_false(path->up);
		assert_true(rvcm_status_errno(victim.strange_cause.status) > 0);
		assert_true(strlen(victim.strange_cause.text) > 20);
		if (how == A_REFLECT || how == A_EMPTY)
			assert_int_equal(victim.strange_cause.status, RVCM_STATUS_PROTOCOL);
		if (how == A_LIE)
			assert_int_equal(victim.strange_cause.status, RVCM_STATUS_REJECTED_KEY);
		if (how == A_EARLY)
			assert_int_equal(victim.strange_cause.status, RVCM_STATUS_PROTOCOL);
		if (how == A_HELLO)
			assert_int_equal(victim.strange_cause.status, RVCM_STATUS_PEER_DEAD);
		scene_check_third();
		bare_end(&b, false);
	}
}

/* -- an opener that stops --------------------------------------------------------------------- */

static bool commit_one(struct rvcm_path *path)
{
	void *buf = rvcm_path_reserve(path, 8);

	if (!buf)
		return false;
	memset(buf, 0, 8);
	rvcm_path_commit(path, 8, RVCM_PATH_NOW);
	return true;
}

/* The opener stands between REQUEST and HELLO: the reply is on its way, or its data side's mail. */
static void stop_before_hello(bool answered)
{
	scene_side_close(&honest);
	scene_side_open(&honest, &victim);
	assert_int_equal(rvcm_path_get(honest.carrier, 0, &victim.name, &honest.path), 0);
	assert_null(rvcm_path_reserve(honest.path, 8));
	scene_wait_begin();
	while (victim.carrier->n_claims == 0) {
		rvcm_carrier_control(honest.carrier);
		scene_pump_one(&victim);
	}
	while (answered && !rvcm_mailbox_pending(&honest.carrier->to_data))
		rvcm_carrier_control(honest.carrier);
}

/*
 * A process is stopped there for longer than the acceptor waits, and goes on when that has closed:
 * it is served, or it hears why not. Which of the two depends on what it sees first, the link or
 * its end.
 */
static void an_opener_is_stopped(bool answered)
{
	struct rvcm_carrier *stopped;
	unsigned int fds = test_open_fds();
	uint32_t received;

	stop_before_hello(answered);
	stopped = honest.carrier;
	honest.carrier = NULL;
	UNTIL(victim.carrier->n_claims == 0 && test_open_fds() < fds);
	honest.carrier = stopped;
	if (answered)
		rvcm_carrier_progress(honest.carrier);
	received = victim.received;
	UNTIL(honest.downs || commit_one(honest.path));
	UNTIL(honest.downs || victim.received == received + 1);
	if (honest.downs)
		assert_int_equal(honest.cause.status, RVCM_STATUS_REJECTED_LATE);
	/* That was expected, as was the end of its link to the one before. */
	honest.downs = 0;
	victim.downs = 0;
	scene_check_third();
}

static void an_opener_is_stopped_before_the_reply(void **state)
{
	(void)state;
	an_opener_is_stopped(false);
}

static void an_opener_is_stopped_before_hello(void **state)
{
	(void)state;
	an_opener_is_stopped(true);
}

/* -- a peer that computes --------------------------------------------------------------------- */

/* The other one computes, and has not taken all: that does not keep us, and nothing is lost. */
static void closing_does_not_wait_for_who_computes(void **state)
{
	struct rvcm_carrier *computing;
	struct scene_times before_it = scene_times;
	uint32_t before;
	uint8_t *buf;

	scene_times.linger_ns = 10 * SCENE_PATIENCE_NS;
	scene_times.close_timeout_ms = (uint32_t)(scene_times.linger_ns / RVCM_CLOCK_NS_PER_MS);
	assert_int_equal(scene_open(state), 0);
	before = victim.received;
	computing = victim.carrier;
	victim.carrier = NULL;
	for (int i = 0; i < 2; i++) {
		buf = rvcm_path_reserve(honest.path, 8);
		assert_non_null(buf);
		memset(buf, 0, 8);
		rvcm_path_commit(honest.path, 8, RVCM_PATH_NOW);
	}
	scene_side_close(&honest);
	victim.carrier = computing;
	UNTIL(victim.received == before + 2);
	scene_side_close(&victim);
	scene_times = before_it;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_opener_dies_at_every_step),
		TEST(an_opener_falls_silent_at_every_step),
		TEST(private_data_that_is_refused),
		TEST(padding_is_no_harm),
		TEST(lies_after_the_acceptance),
		TEST(a_replay_of_all_of_it),
		TEST(an_acceptor_goes_wrong_at_every_step),
		TEST(an_opener_is_stopped_before_the_reply),
		TEST(an_opener_is_stopped_before_hello),
		cmocka_unit_test(closing_does_not_wait_for_who_computes),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that goes wrong at any step of connecting, over real sockets: a bare TCP socket speaks
 * MPA and our handshake to a carrier, from either side, up to some step, and then lies, hangs up,
 * resets the connection, or says nothing more. The carrier ends that with the right error or
 * without a word, goes on taking others, and a third peer does not notice; nothing is left.
 */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/le.h"
#include "conn/conn_impl.h"
#include "conn/shake.h"
#include "dev/soft/mpa.h"
#include "dev/soft/soft.h"
#include "dev/soft/wire.h"
#include "unit/failmem.h"
#include "unit/fds.h"
#include "unit/loopback.h"

#define PATIENCE_NS (30 * RVCM_CLOCK_NS_PER_S)

static const uint8_t key[RVCM_CONN_KEY_BYTES] = "0123456789abcde";

/* -- two carriers --------------------------------------------------------------------------------
 */

struct side {
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_path *path; /* to the other one */
	const struct rvcm_addr *other;
	uint32_t received, downs; /* of conn */
	uint32_t strange_received, strange_downs;
	struct rvcm_conn_cause strange_cause;
};

static struct side victim, honest;
static uint64_t linger_ns = RVCM_CLOCK_NS_PER_S;
static uint32_t close_timeout_ms = 300; /* the device's */
static uint64_t since_ns;

static uint64_t env_now(void *ctx)
{
	(void)ctx;
	return rvcm_clock_ns();
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	(void)ctx;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)random();
}

static void env_wake(void *ctx)
{
	(void)ctx;
}

static bool is_other(const struct side *side, const struct rvcm_path *path)
{
	return rvcm_addr_equal(&path->peer, side->other);
}

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	struct side *side = ctx;

	if (is_other(side, path))
		side->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void on_recv(void *ctx, struct rvcm_path *path, const struct rvcm_conn_rx *rx)
{
	struct side *side = ctx;

	(void)rx;
	if (is_other(side, path))
		side->received++;
	else
		side->strange_received++;
}

static void on_down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	struct side *side = ctx;

	if (is_other(side, path)) {
		side->downs++;
		return;
	}
	side->strange_downs++;
	side->strange_cause = *cause;
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.down = on_down,
};

static void side_open(struct side *side, const struct side *other)
{
	struct rvcm_carrier_attr attr = {
		.devs = &side->dev,
		.n_devs = 1,
		.message_bytes_max = 1000,
		.window_max = 8,
		.connect_timeout_ns = RVCM_CLOCK_NS_PER_S,
		.hello_timeout_ns = 200 * RVCM_CLOCK_NS_PER_MS,
		.linger_ns = linger_ns,
		.rnr_timeout_ns = RVCM_CLOCK_NS_PER_S,
		.env = { env_now, env_random, env_wake, env_wake, side },
		.sink = &sink,
		.sink_ctx = side,
	};
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.connect_timeout_ms = 300;
	tun.handshake_timeout_ms = 300;
	tun.close_timeout_ms = close_timeout_ms;
	memset(side, 0, sizeof(*side));
	side->other = &other->name;
	memcpy(attr.job_key, key, sizeof(key));
	side->dev = test_loopback_open(&tun);
	assert_int_equal(rvcm_carrier_open(&attr, &side->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(side->carrier, 0, &side->name), 0);
}

static void pump(void)
{
	struct side *sides[2] = { &victim, &honest };

	for (int i = 0; i < 2; i++) {
		if (!sides[i]->carrier)
			continue;
		rvcm_carrier_control(sides[i]->carrier);
		rvcm_carrier_progress(sides[i]->carrier);
	}
	poll(NULL, 0, 0);
	assert_true(rvcm_clock_ns() - since_ns < PATIENCE_NS);
}

#define UNTIL(condition)                    \
	do {                                \
		since_ns = rvcm_clock_ns(); \
		while (!(condition))        \
			pump();             \
	} while (0)

static void side_close(struct side *side)
{
	rvcm_carrier_unlisten(side->carrier, 0);
	UNTIL(rvcm_carrier_quiet(side->carrier, 0));
	rvcm_carrier_close(side->carrier);
	side->carrier = NULL;
	side->dev->ops->close(side->dev);
}

static void *reserve(struct rvcm_path *path)
{
	pump();
	return rvcm_path_reserve(path, 8);
}

/* The third peer's message arrives, over the link that it has had all the time. */
static void check_third(void)
{
	uint32_t before = victim.received;
	void *buf = NULL;

	if (!honest.path)
		assert_int_equal(rvcm_path_get(honest.carrier, 0, &victim.name, &honest.path), 0);
	UNTIL((buf = reserve(honest.path)));
	memset(buf, 0, 8);
	rvcm_path_commit(honest.path, 8, RVCM_PATH_NOW);
	UNTIL(victim.received == before + 1);
	assert_int_equal(victim.downs + honest.downs, 0);
}

/* -- the bare peer -------------------------------------------------------------------------------
 */

struct bare {
	int fd;
	int server; /* -1: it dials */
	struct rvcm_addr name;
	uint32_t incarnation, epoch;
	uint32_t msn;
	struct rvcm_wire_handshake request, reply;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES];
};

static void sockaddr_of(const struct rvcm_addr *addr, struct sockaddr_in *sin)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(addr->port);
	memcpy(&sin->sin_addr, addr->ip, 4);
}

static void bare_open(struct bare *b, uint32_t incarnation)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	memset(b, 0, sizeof(*b));
	b->fd = -1;
	b->incarnation = incarnation;
	b->epoch = 1;
	b->msn = 1;
	b->name = victim.name;
	b->name.port = 0;
	b->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_of(&b->name, &sin);
	assert_int_equal(bind(b->server, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(b->server, 8), 0);
	assert_int_equal(getsockname(b->server, (struct sockaddr *)&sin, &len), 0);
	b->name.port = ntohs(sin.sin_port);
}

static void bare_end(struct bare *b, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (b->fd < 0)
		return;
	if (reset)
		assert_int_equal(setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(b->fd);
	b->fd = -1;
}

static void bare_close(struct bare *b)
{
	bare_end(b, false);
	close(b->server);
}

static void bare_write(struct bare *b, const void *data, size_t bytes)
{
	assert_int_equal(send(b->fd, data, bytes, MSG_NOSIGNAL), bytes);
}

static bool readable(const struct bare *b, size_t bytes)
{
	static uint8_t buf[4096];
	ssize_t n;

	pump();
	n = recv(b->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
	assert_true(n > 0 || (n < 0 && errno == EAGAIN));
	return n >= (ssize_t)bytes;
}

static bool ended(const struct bare *b)
{
	uint8_t buf[256];
	ssize_t n;

	pump();
	while ((n = recv(b->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

/* An MPA frame with that private data. */
static size_t mpa(enum rvcm_soft_mpa_kind kind, const void *data, size_t bytes, uint8_t *buf)
{
	const struct rvcm_soft_mpa_frame frame = {
		.kind = kind, .revision = 1, .private_bytes = (uint16_t)bytes, .private_data = data
	};
	int n = rvcm_soft_mpa_encode(&frame, buf);

	assert_true(n > 0);
	return (size_t)n;
}

static void dial(struct bare *b)
{
	struct sockaddr_in sin;

	b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_of(&victim.name, &sin);
	assert_int_equal(connect(b->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
}

static struct rvcm_shake shake_of(const struct bare *b, enum rvcm_wire_role role)
{
	struct rvcm_shake shake = { .role = role,
				    .name = b->name,
				    .incarnation = b->incarnation,
				    .epoch = b->epoch,
				    .window = 4 };

	return shake;
}

static void request(struct bare *b)
{
	struct rvcm_shake shake = shake_of(b, RVCM_WIRE_REQUEST);

	rvcm_shake_encode(&shake, key, NULL, &b->request);
}

static void send_request(struct bare *b, const void *data, size_t bytes)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];

	bare_write(b, buf, mpa(RVCM_SOFT_MPA_REQUEST, data, bytes, buf));
}

/* The acceptor's answer; false: it is a reject, with that reason. */
static bool take_reply(struct bare *b, enum rvcm_wire_reason *reason)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	struct rvcm_soft_mpa_frame frame;
	ssize_t n;
	int used = 0;

	UNTIL(readable(b, RVCM_SOFT_MPA_FRAME_BYTES_MIN + sizeof(b->reply)));
	n = recv(b->fd, buf, sizeof(buf), MSG_PEEK);
	used = rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, buf, (size_t)n, &frame);
	assert_true(used > 0);
	assert_int_equal(recv(b->fd, buf, (size_t)used, 0), used);
	assert_true(frame.private_bytes >= sizeof(b->reply));
	memcpy(&b->reply, frame.private_data, sizeof(b->reply));
	*reason = rvcm_shake_reason(frame.private_data, frame.private_bytes);
	return !frame.reject;
}

static void send_frame(struct bare *b, const void *data, size_t bytes)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_SEND,
						.last = true,
						.msn = b->msn++ };
	uint8_t buf[2048];
	size_t ulpdu = rvcm_soft_wire_encode(&hdr, buf + 2);

	memcpy(buf + 2 + ulpdu, data, bytes);
	ulpdu += bytes;
	rvcm_soft_mpa_header_encode((uint16_t)ulpdu, buf);
	bare_write(b, buf,
		   2 + ulpdu + rvcm_soft_mpa_trailer_encode(ulpdu, false, 0, buf + 2 + ulpdu));
}

static void send_hello(struct bare *b, enum rvcm_wire_role role, uint16_t rails, bool true_mac)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = { .kind = RVCM_WIRE_HELLO } };

	rvcm_le16_put(message.frame.window, 4);
	rvcm_le16_put(message.hello.n_rails, rails);
	memcpy(message.hello.nonce, b->nonce, sizeof(b->nonce));
	rvcm_shake_hello_mac(role, key, &b->request, &b->reply, b->nonce, message.hello.mac);
	message.hello.mac[3] ^= !true_mac;
	send_frame(b, &message, sizeof(message));
}

static void send_data(struct bare *b)
{
	struct {
		struct rvcm_wire_frame frame;
		uint8_t payload[8];
	} message = { .frame = { .kind = RVCM_WIRE_DATA } };

	rvcm_le16_put(message.frame.window, 4);
	send_frame(b, &message, sizeof(message));
}

/* -- the bare peer opens
 * --------------------------------------------------------------------------- */

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

	request(b);
	dial(b);
	if (step == HALF)
		bare_write(b, buf,
			   mpa(RVCM_SOFT_MPA_REQUEST, &b->request, sizeof(b->request), buf) / 2);
	if (step < REQUEST)
		return;
	send_request(b, &b->request, sizeof(b->request));
	if (step < REPLY)
		return;
	assert_true(take_reply(b, &reason));
	if (step < HELLO)
		return;
	send_hello(b, RVCM_WIRE_REQUEST, 0, true);
	if (step == DATA)
		send_data(b);
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
				UNTIL(readable(&b, 1));
			if (step >= HELLO) /* a socket with bytes unread is reset by close(2) */
				(void)ended(&b);
			bare_end(&b, reset);
			if (step >= HELLO) {
				UNTIL(victim.strange_downs == downs + 1);
				assert_int_equal(victim.strange_cause.status,
						 reset ? RVCM_STATUS_CONNECTION_LOST
						       : RVCM_STATUS_PEER_DEAD);
			}
			check_third();
			UNTIL(links() == 0 && (pump(), true));
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
		UNTIL(ended(&b));
		check_third();
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
		{ "life", RVCM_WIRE_REASON_STALE },      { "long noise", RVCM_WIRE_REASON_VERSION },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t data[512] = { 0 };
		size_t bytes = sizeof(struct rvcm_wire_handshake);
		enum rvcm_wire_reason reason;
		struct rvcm_shake shake;
		struct bare b;

		bare_open(&b, 300);
		shake = shake_of(&b, i == 4 ? RVCM_WIRE_REPLY : RVCM_WIRE_REQUEST);
		if (i == 7)
			shake.name = victim.name;
		if (i == 8)
			shake.peer_incarnation = 12345;
		rvcm_shake_encode(&shake, i == 6 ? other_key : key, NULL, (void *)data);
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
		dial(&b);
		send_request(&b, data, bytes);
		assert_false(take_reply(&b, &reason));
		if (reason != rows[i].reason)
			fail_msg("%s: reason %d", rows[i].name, (int)reason);
		UNTIL(ended(&b));
		check_third();
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
	request(&b);
	memcpy(data, &b.request, sizeof(b.request));
	dial(&b);
	send_request(&b, data, sizeof(data));
	assert_true(take_reply(&b, &reason));
	send_hello(&b, RVCM_WIRE_REQUEST, 0, true);
	send_data(&b);
	UNTIL(victim.strange_received == before + 1);
	bare_close(&b);
	UNTIL(victim.strange_downs);
}

/* After the acceptance: whatever it is, it is not HELLO. */
static void lies_after_the_acceptance(void **state)
{
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
			send_frame(&b, noise, sizeof(noise));
		else if (lie == 2)
			send_data(&b);
		else
			send_hello(&b, RVCM_WIRE_REQUEST, lie == 3 ? 65535 : 0, lie == 3);
		UNTIL(ended(&b));
		check_third();
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
	dial(&replay);
	send_request(&replay, &b.request, sizeof(b.request));
	assert_false(take_reply(&replay, &reason));
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
	send_hello(&replay, RVCM_WIRE_REQUEST, 0, true);
	UNTIL(ended(&replay));
	assert_int_equal(victim.strange_received, received + 1);
	check_third();
	bare_close(&replay);
	UNTIL(links() == 0);
}

/* -- the bare peer accepts
 * ------------------------------------------------------------------------- */

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

static bool accepted(struct bare *b)
{
	pump();
	b->fd = accept4(b->server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return b->fd >= 0;
}

static void take_request(struct bare *b)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	struct rvcm_soft_mpa_frame frame;
	ssize_t n;

	UNTIL(readable(b, RVCM_SOFT_MPA_FRAME_BYTES_MIN + sizeof(b->request)));
	n = recv(b->fd, buf, sizeof(buf), 0);
	assert_true(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REQUEST, buf, (size_t)n, &frame) > 0);
	assert_int_equal(frame.private_bytes, sizeof(b->request));
	memcpy(&b->request, frame.private_data, sizeof(b->request));
}

/* The opener's HELLO, for its nonce; behind an empty FPDU, perhaps. */
static void take_nonce(struct bare *b)
{
	uint8_t buf[512];
	size_t at = 0;
	ssize_t n;

	UNTIL(readable(b,
		       2 + 18 + sizeof(struct rvcm_wire_frame) + sizeof(struct rvcm_wire_hello)));
	n = recv(b->fd, buf, sizeof(buf), 0);
	while (rvcm_soft_mpa_header_decode(buf + at) == 0)
		at += rvcm_soft_mpa_fpdu_len(0);
	at += 2 + 18 + sizeof(struct rvcm_wire_frame);
	assert_true(at + sizeof(b->nonce) <= (size_t)n);
	memcpy(b->nonce, buf + at, sizeof(b->nonce));
}

static void answer(struct bare *b, enum answer how)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX], noise[100];
	struct rvcm_shake shake = shake_of(b, RVCM_WIRE_REPLY);
	size_t n;

	UNTIL(accepted(b));
	if (how == A_TCP)
		return;
	take_request(b);
	shake.epoch = rvcm_le32_get(b->request.epoch);
	rvcm_shake_encode(&shake, key, &b->request, &b->reply);
	if (how == A_REFLECT)
		b->reply = b->request;
	memset(noise, 'x', sizeof(noise));
	n = mpa(RVCM_SOFT_MPA_REPLY, &b->reply, how == A_EMPTY ? 0 : sizeof(b->reply), buf);
	if (how == A_NOISE)
		bare_write(b, noise, sizeof(noise));
	else if (how != A_REQUEST)
		bare_write(b, buf, how == A_HALF ? n / 2 : n);
	if (how <= A_REPLY)
		return;
	take_nonce(b);
	if (how == A_EARLY)
		send_data(b);
	else
		send_hello(b, RVCM_WIRE_REPLY, 0, how == A_HELLO);
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
		check_third();
		bare_end(&b, false);
	}
}

/* -- what is left
 * ---------------------------------------------------------------------------------- */

static unsigned int fds_before;
static size_t allocations_before;
static unsigned int fds_up;

static int open_both(void **state)
{
	(void)state;
	fds_before = test_open_fds();
	allocations_before = failmem_outstanding();
	side_open(&honest, &victim);
	side_open(&victim, &honest);
	check_third();
	fds_up = test_open_fds();
	return 0;
}

/* What a test has opened and closed has cost no descriptor, and closing leaves nothing. */
static int close_both(void **state)
{
	(void)state;
	UNTIL(test_open_fds() == fds_up);
	side_close(&victim);
	side_close(&honest);
	assert_int_equal(test_open_fds(), fds_before);
	assert_int_equal(failmem_outstanding(), allocations_before);
	return 0;
}

/* The other one computes, and has not taken all: that does not keep us, and nothing is lost. */
static void closing_does_not_wait_for_who_computes(void **state)
{
	struct rvcm_carrier *computing;
	uint32_t before;
	uint8_t *buf;

	linger_ns = 10 * PATIENCE_NS;
	close_timeout_ms = (uint32_t)(linger_ns / RVCM_CLOCK_NS_PER_MS);
	assert_int_equal(open_both(state), 0);
	before = victim.received;
	computing = victim.carrier;
	victim.carrier = NULL;
	for (int i = 0; i < 2; i++) {
		buf = rvcm_path_reserve(honest.path, 8);
		assert_non_null(buf);
		memset(buf, 0, 8);
		rvcm_path_commit(honest.path, 8, RVCM_PATH_NOW);
	}
	side_close(&honest);
	victim.carrier = computing;
	UNTIL(victim.received == before + 2);
	side_close(&victim);
	linger_ns = RVCM_CLOCK_NS_PER_S;
	close_timeout_ms = 300;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

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
		cmocka_unit_test(closing_does_not_wait_for_who_computes),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "hostile/bare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/le.h"
#include "dev/soft/wire.h"

static void sockaddr_of(const struct rvcm_addr *addr, struct sockaddr_in *sin)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(addr->port);
	memcpy(&sin->sin_addr, addr->ip, 4);
}

void bare_open(struct bare *b, uint32_t incarnation)
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

void bare_end(struct bare *b, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (b->fd < 0)
		return;
	if (reset)
		assert_int_equal(setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(b->fd);
	b->fd = -1;
}

void bare_close(struct bare *b)
{
	bare_end(b, false);
	close(b->server);
}

void bare_write(struct bare *b, const void *data, size_t bytes)
{
	assert_int_equal(send(b->fd, data, bytes, MSG_NOSIGNAL), bytes);
}

bool bare_readable(const struct bare *b, size_t bytes)
{
	static uint8_t buf[4096];
	ssize_t n;

	scene_pump();
	n = recv(b->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
	assert_true(n > 0 || (n < 0 && errno == EAGAIN));
	return n >= (ssize_t)bytes;
}

bool bare_ended(const struct bare *b)
{
	uint8_t buf[256];
	ssize_t n;

	scene_pump();
	while ((n = recv(b->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

enum rvcm_wire_reason bare_take_bye(struct bare *b)
{
	const size_t at = RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_UNTAGGED_BYTES;
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_bye bye;
	} words;
	size_t ulpdu = RVCM_SOFT_WIRE_UNTAGGED_BYTES + sizeof(words);
	uint8_t buf[256];
	ssize_t n;

	UNTIL(bare_readable(b, rvcm_soft_mpa_fpdu_len(ulpdu)));
	n = recv(b->fd, buf, sizeof(buf), 0);
	assert_int_equal(n, rvcm_soft_mpa_fpdu_len(ulpdu));
	assert_int_equal(rvcm_soft_mpa_header_decode(buf), ulpdu);
	memcpy(&words, buf + at, sizeof(words));
	assert_int_equal(words.frame.kind, RVCM_WIRE_BYE);
	UNTIL(bare_ended(b));
	return (enum rvcm_wire_reason)rvcm_le16_get(words.bye.reason);
}

size_t bare_mpa(enum rvcm_soft_mpa_kind kind, const void *data, size_t bytes, uint8_t *buf)
{
	const struct rvcm_soft_mpa_frame frame = {
		.kind = kind, .revision = 1, .private_bytes = (uint16_t)bytes, .private_data = data
	};
	int n = rvcm_soft_mpa_encode(&frame, buf);

	assert_true(n > 0);
	return (size_t)n;
}

void bare_dial(struct bare *b)
{
	struct sockaddr_in sin;

	b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_of(&victim.name, &sin);
	assert_int_equal(connect(b->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
}

struct rvcm_shake bare_shake_of(const struct bare *b, enum rvcm_wire_role role)
{
	struct rvcm_shake shake = { .role = role,
				    .name = b->name,
				    .incarnation = b->incarnation,
				    .epoch = b->epoch,
				    .window = 4 };

	return shake;
}

void bare_request(struct bare *b)
{
	struct rvcm_shake shake = bare_shake_of(b, RVCM_WIRE_REQUEST);

	rvcm_shake_encode(&shake, scene_key, NULL, &b->request);
}

void bare_send_request(struct bare *b, const void *data, size_t bytes)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];

	bare_write(b, buf, bare_mpa(RVCM_SOFT_MPA_REQUEST, data, bytes, buf));
}

bool bare_take_reply(struct bare *b, enum rvcm_wire_reason *reason)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	struct rvcm_soft_mpa_frame frame;
	ssize_t n;
	int used = 0;

	UNTIL(bare_readable(b, RVCM_SOFT_MPA_FRAME_BYTES_MIN + sizeof(b->reply)));
	n = recv(b->fd, buf, sizeof(buf), MSG_PEEK);
	used = rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REPLY, buf, (size_t)n, &frame);
	assert_true(used > 0);
	assert_int_equal(recv(b->fd, buf, (size_t)used, 0), used);
	assert_true(frame.private_bytes >= sizeof(b->reply));
	memcpy(&b->reply, frame.private_data, sizeof(b->reply));
	*reason = rvcm_shake_reason(frame.private_data, frame.private_bytes);
	return !frame.reject;
}

void bare_send_frame(struct bare *b, const void *data, size_t bytes)
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

void bare_send_hello(struct bare *b, enum rvcm_wire_role role, uint16_t rails, bool true_mac)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
	} message = { .frame = { .kind = RVCM_WIRE_HELLO } };

	rvcm_le16_put(message.frame.window, 4);
	rvcm_le16_put(message.hello.n_rails, rails);
	memcpy(message.hello.nonce, b->nonce, sizeof(b->nonce));
	rvcm_shake_hello_mac(role, scene_key, &b->request, &b->reply, b->nonce, message.hello.mac);
	message.hello.mac[3] ^= !true_mac;
	bare_send_frame(b, &message, sizeof(message));
}

void bare_send_data(struct bare *b)
{
	struct {
		struct rvcm_wire_frame frame;
		uint8_t payload[8];
	} message = { .frame = { .kind = RVCM_WIRE_DATA } };

	rvcm_le16_put(message.frame.window, 4);
	bare_send_frame(b, &message, sizeof(message));
}

bool bare_accepted(struct bare *b)
{
	scene_pump();
	b->fd = accept4(b->server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return b->fd >= 0;
}

void bare_take_request(struct bare *b)
{
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
	struct rvcm_soft_mpa_frame frame;
	ssize_t n;

	UNTIL(bare_readable(b, RVCM_SOFT_MPA_FRAME_BYTES_MIN + sizeof(b->request)));
	n = recv(b->fd, buf, sizeof(buf), 0);
	assert_true(rvcm_soft_mpa_decode(RVCM_SOFT_MPA_REQUEST, buf, (size_t)n, &frame) > 0);
	assert_int_equal(frame.private_bytes, sizeof(b->request));
	memcpy(&b->request, frame.private_data, sizeof(b->request));
}

/* The opener's HELLO, for its nonce; behind an empty FPDU, perhaps. */
void bare_take_nonce(struct bare *b)
{
	uint8_t buf[512];
	size_t at = 0;
	ssize_t n;

	UNTIL(bare_readable(b, 2 + 18 + sizeof(struct rvcm_wire_frame) +
				       sizeof(struct rvcm_wire_hello)));
	n = recv(b->fd, buf, sizeof(buf), 0);
	while (rvcm_soft_mpa_header_decode(buf + at) == 0)
		at += rvcm_soft_mpa_fpdu_len(0);
	at += 2 + 18 + sizeof(struct rvcm_wire_frame);
	assert_true(at + sizeof(b->nonce) <= (size_t)n);
	memcpy(b->nonce, buf + at, sizeof(b->nonce));
}

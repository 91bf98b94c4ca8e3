/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshake's bytes: what is written, what is believed, what is refused and why. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conn/shake.h"

static const uint8_t key[RVCM_CONN_KEY_BYTES] = "0123456789abcde";
static const uint8_t other_key[RVCM_CONN_KEY_BYTES] = "0123456789abcdf";

static struct rvcm_shake sample(enum rvcm_wire_role role)
{
	struct rvcm_shake shake = {
		.role = role,
		.flags = RVCM_WIRE_RECOVERY,
		.link = 3,
		.caps = 0x1234,
		.incarnation = 0xa1b2c3d4,
		.peer_incarnation = 0x55667788,
		.epoch = 9,
		.begun = 0x01020304,
		.heard = 0x0a0b0c0d,
		.window = 0x0405,
	};

	assert_int_equal(rvcm_addr_parse("10.1.2.3:4660", &shake.name), 0);
	for (size_t i = 0; i < sizeof(shake.nonce); i++)
		shake.nonce[i] = role == RVCM_WIRE_REPLY ? (uint8_t)(0x80 + i) : 0;
	return shake;
}

/* conn/wire.h, offset by offset; the MAC (24..31) is checked by decoding. */
static void request_bytes(void **state)
{
	static const uint8_t head[24] = {
		0x01, 0xac, /* version 1, magic */
		0x05,       /* REQUEST | RECOVERY */
		0x03,       /* link */
		0x34, 0x12, /* caps */
		0x34, 0x12, /* port 4660 */
		0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3, /* v4-mapped */
	};
	static const uint8_t tail[22] = {
		0xd4, 0xc3, 0xb2, 0xa1, 0x88, 0x77, 0x66, 0x55, 0x09, 0x00, 0x00,
		0x00, 0x04, 0x03, 0x02, 0x01, 0x0d, 0x0c, 0x0b, 0x0a, 0x05, 0x04,
	};
	struct rvcm_shake shake = sample(RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake wire;

	(void)state;
	rvcm_shake_encode(&shake, key, NULL, &wire);
	assert_memory_equal(&wire, head, sizeof(head));
	assert_memory_equal((const uint8_t *)&wire + 32, tail, sizeof(tail));
}

static void round_trip(void **state)
{
	struct rvcm_shake in = sample(RVCM_WIRE_REQUEST), out;
	struct rvcm_wire_handshake request, reply;

	(void)state;
	rvcm_shake_encode(&in, key, NULL, &request);
	assert_int_equal(
		rvcm_shake_decode(&request, sizeof(request), RVCM_WIRE_REQUEST, key, NULL, &out),
		RVCM_WIRE_REASON_NONE);
	assert_memory_equal(&in.name, &out.name, sizeof(in.name));
	assert_int_equal(out.flags, RVCM_WIRE_RECOVERY);
	assert_int_equal(out.epoch, 9);
	assert_int_equal(out.window, 0x0405);

	in = sample(RVCM_WIRE_REPLY);
	rvcm_shake_encode(&in, key, &request, &reply);
	assert_int_equal(
		rvcm_shake_decode(&reply, sizeof(reply), RVCM_WIRE_REPLY, key, &request, &out),
		RVCM_WIRE_REASON_NONE);
	assert_memory_equal(out.nonce, in.nonce, sizeof(in.nonce));
}

static void every_bit_is_under_the_mac(void **state)
{
	struct rvcm_shake in = sample(RVCM_WIRE_REQUEST), out;
	struct rvcm_wire_handshake wire, bad;

	(void)state;
	rvcm_shake_encode(&in, key, NULL, &wire);
	for (size_t bit = 0; bit < sizeof(wire) * 8; bit++) {
		bad = wire;
		((uint8_t *)&bad)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(
			rvcm_shake_decode(&bad, sizeof(bad), RVCM_WIRE_REQUEST, key, NULL, &out),
			RVCM_WIRE_REASON_NONE);
	}
}

static void reply_is_bound_to_its_request(void **state)
{
	struct rvcm_shake in = sample(RVCM_WIRE_REPLY), out;
	struct rvcm_shake asked = sample(RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake request, other, reply;

	(void)state;
	rvcm_shake_encode(&asked, key, NULL, &request);
	asked.epoch++;
	rvcm_shake_encode(&asked, key, NULL, &other);
	rvcm_shake_encode(&in, key, &request, &reply);
	assert_int_equal(
		rvcm_shake_decode(&reply, sizeof(reply), RVCM_WIRE_REPLY, key, &other, &out),
		RVCM_WIRE_REASON_KEY);
}

static enum rvcm_wire_reason judge(const void *data, size_t bytes)
{
	struct rvcm_shake out;

	return rvcm_shake_decode(data, bytes, RVCM_WIRE_REQUEST, key, NULL, &out);
}

static void refusals_name_their_reason(void **state)
{
	struct rvcm_shake in = sample(RVCM_WIRE_REQUEST);
	struct rvcm_wire_handshake wire, bad;

	(void)state;
	rvcm_shake_encode(&in, other_key, NULL, &wire);
	assert_int_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_KEY);
	rvcm_shake_encode(&in, key, NULL, &wire);
	bad = wire;
	bad.version[0] = RVCM_WIRE_VERSION + 1;
	assert_int_equal(judge(&bad, sizeof(bad)), RVCM_WIRE_REASON_VERSION);
	bad = wire;
	bad.version[1] = 0;
	assert_int_equal(judge(&bad, sizeof(bad)), RVCM_WIRE_REASON_MALFORMED);
	for (size_t n = 0; n < sizeof(wire); n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, &wire, n);
		assert_int_equal(judge(exact, n), RVCM_WIRE_REASON_MALFORMED);
		free(exact);
	}
	in.role = RVCM_WIRE_REPLY;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_MALFORMED);
}

static void fields_that_must_not_be_zero(void **state)
{
	struct rvcm_wire_handshake wire;
	struct rvcm_shake in = sample(RVCM_WIRE_REQUEST);

	(void)state;
	in.incarnation = 0;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_MALFORMED);
	in = sample(RVCM_WIRE_REQUEST);
	in.epoch = 0;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_MALFORMED);
	in = sample(RVCM_WIRE_REQUEST);
	in.name.port = 0;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_MALFORMED);
}

static void reject_carries_its_reason(void **state)
{
	struct rvcm_shake in = sample(RVCM_WIRE_REJECT);
	struct rvcm_wire_handshake wire;

	(void)state;
	in.caps = RVCM_WIRE_REASON_CROSSED;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(rvcm_shake_reason(&wire, sizeof(wire)), RVCM_WIRE_REASON_CROSSED);
	assert_int_equal(rvcm_shake_reason(&wire, sizeof(wire) - 1), RVCM_WIRE_REASON_NONE);
	in.caps = 4711;
	rvcm_shake_encode(&in, key, NULL, &wire);
	assert_int_equal(rvcm_shake_reason(&wire, sizeof(wire)), RVCM_WIRE_REASON_NONE);
	wire.version[0] = 7;
	assert_int_equal(rvcm_shake_reason(&wire, sizeof(wire)), RVCM_WIRE_REASON_VERSION);
	assert_int_equal(rvcm_shake_status(RVCM_WIRE_REASON_KEY), RVCM_STATUS_REJECTED_KEY);
}

static void random_bytes_are_never_believed(void **state)
{
	struct rvcm_wire_handshake wire;
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		for (size_t b = 0; b < sizeof(wire); b++)
			((uint8_t *)&wire)[b] = (uint8_t)rvcm_rng_next(&rng);
		wire.version[0] = RVCM_WIRE_VERSION;
		wire.version[1] = RVCM_WIRE_MAGIC;
		wire.flags = RVCM_WIRE_REQUEST;
		assert_int_not_equal(judge(&wire, sizeof(wire)), RVCM_WIRE_REASON_NONE);
	}
}

static void hello_depends_on_all_its_inputs(void **state)
{
	struct rvcm_wire_handshake request, reply;
	struct rvcm_shake shake = sample(RVCM_WIRE_REQUEST);
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES] = { 1 };
	uint8_t a[8], b[8];

	(void)state;
	rvcm_shake_encode(&shake, key, NULL, &request);
	shake = sample(RVCM_WIRE_REPLY);
	rvcm_shake_encode(&shake, key, &request, &reply);
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, key, &request, &reply, nonce, a);
	rvcm_shake_hello_mac(RVCM_WIRE_REPLY, key, &request, &reply, nonce, b);
	assert_memory_not_equal(a, b, 8);
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, other_key, &request, &reply, nonce, b);
	assert_memory_not_equal(a, b, 8);
	nonce[0] = 2;
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, key, &request, &reply, nonce, b);
	assert_memory_not_equal(a, b, 8);
	nonce[0] = 1;
	reply.address[5] ^= 1;
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, key, &request, &reply, nonce, b);
	assert_memory_not_equal(a, b, 8);
}

/* "A worked example" of DESIGN.md, for whoever writes a peer from it. */
static void the_worked_example(void **state)
{
	static const uint8_t wire[2][56] = {
		{
			0x01, 0xac, 0x01, 0x00, 0x18, 0x00, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00,
			0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xc0, 0x00, 0x02, 0x01,
			0xce, 0x5d, 0x9b, 0xa2, 0x13, 0xa7, 0x7d, 0xc4, 0x04, 0x03, 0x02, 0x01,
			0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x07, 0x00,
		},
		{
			0x01, 0xac, 0x02, 0x00, 0x18, 0x00, 0x78, 0x56, 0x10, 0x11, 0x12, 0x13,
			0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
			0x99, 0x36, 0x56, 0x95, 0x66, 0x81, 0xad, 0xde, 0x08, 0x07, 0x06, 0x05,
			0x04, 0x03, 0x02, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x09, 0x00,
		},
	};
	static const uint8_t mac[2][8] = {
		{ 0x34, 0x4f, 0x01, 0x21, 0x30, 0x7a, 0xe7, 0xc0 },
		{ 0x09, 0x5c, 0xab, 0xd4, 0x31, 0xc9, 0xea, 0x19 },
	};
	uint8_t job[RVCM_CONN_KEY_BYTES], nonce[RVCM_WIRE_NONCE_BYTES], tag[8];
	struct rvcm_shake shake = { .role = RVCM_WIRE_REQUEST,
				    .caps = 0x18,
				    .incarnation = 0x01020304,
				    .epoch = 1,
				    .window = 4,
				    .slot = 7 };
	struct rvcm_wire_handshake request, reply;

	(void)state;
	for (uint8_t i = 0; i < 16; i++) {
		job[i] = i;
		nonce[i] = 0x20 + i;
	}
	assert_int_equal(rvcm_addr_parse("192.0.2.1:4660", &shake.name), 0);
	rvcm_shake_encode(&shake, job, NULL, &request);
	assert_memory_equal(&request, wire[0], sizeof(request));
	shake.role = RVCM_WIRE_REPLY;
	shake.incarnation = 0x05060708;
	shake.peer_incarnation = 0x01020304;
	shake.name.port = 22136;
	shake.slot = 9;
	for (uint8_t i = 0; i < 16; i++)
		shake.nonce[i] = 0x10 + i;
	rvcm_shake_encode(&shake, job, &request, &reply);
	assert_memory_equal(&reply, wire[1], sizeof(reply));
	rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, job, &request, &reply, nonce, tag);
	assert_memory_equal(tag, mac[0], 8);
	rvcm_shake_hello_mac(RVCM_WIRE_REPLY, job, &request, &reply, nonce, tag);
	assert_memory_equal(tag, mac[1], 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_bytes),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(every_bit_is_under_the_mac),
		cmocka_unit_test(reply_is_bound_to_its_request),
		cmocka_unit_test(refusals_name_their_reason),
		cmocka_unit_test(fields_that_must_not_be_zero),
		cmocka_unit_test(reject_carries_its_reason),
		cmocka_unit_test(random_bytes_are_never_believed),
		cmocka_unit_test(hello_depends_on_all_its_inputs),
		cmocka_unit_test(the_worked_example),
	};

	return cmocka_run_group_tests_name("shake", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Proto's messages: what the parser lets through must keep what parse.h promises. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/le.h"
#include "conn/conn.h"
#include "proto/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int promise)
{
	if (!promise)
		abort();
}

static void check_rts(const struct rvcm_parse *msg, const uint8_t *end)
{
	require(msg->op_id != 0);
	require(msg->n_rails <= RVCM_CONN_DEVS_MAX);
	require((const uint8_t *)(msg->rails + msg->n_rails) + msg->early == end);
	require(msg->early <= msg->length);
	require(!msg->early || !msg->n_rails || msg->writes);
	for (uint32_t i = 0; i < msg->n_rails; i++) {
		require(rvcm_le64_get(msg->rails[i].address) <= UINT64_MAX - msg->length);
		require(rvcm_le16_get(msg->rails[i].rail) < RVCM_CONN_DEVS_MAX);
	}
}

static void check_ask(const struct rvcm_parse *msg, const uint8_t *end)
{
	uint64_t rest = msg->length;

	require(msg->op_id != 0 && msg->length != 0);
	require(msg->n_places <= RVCM_MESSAGE_PLACES_MAX);
	require((const uint8_t *)(msg->places + msg->n_places) == end);
	for (uint32_t i = 0; i < msg->n_places; i++) {
		uint64_t bytes = rvcm_le64_get(msg->places[i].bytes);

		require(bytes && bytes <= rest);
		require(rvcm_le64_get(msg->places[i].address) <= UINT64_MAX - bytes);
		require(rvcm_le16_get(msg->places[i].rail) < RVCM_CONN_DEVS_MAX);
		rest -= bytes;
	}
}

static void check_key(const struct rvcm_parse *msg, const uint8_t *end)
{
	require(rvcm_status_known(msg->status));
	require((msg->status == RVCM_STATUS_OK) == (msg->n_rails != 0));
	require(msg->n_rails <= RVCM_CONN_DEVS_MAX && msg->access <= 3);
	require((const uint8_t *)(msg->rails + msg->n_rails) == end);
	require(msg->base <= UINT64_MAX - msg->length);
	for (uint32_t i = 0; i < msg->n_rails; i++)
		require(rvcm_le64_get(msg->rails[i].address) <= UINT64_MAX - msg->length);
}

/* What is called plain is what the whole parser makes of it. */
static void check_plain_of(const uint8_t *data, size_t size, size_t front,
			   const struct rvcm_parse *msg)
{
	struct rvcm_parse_plain plain;

	if (!rvcm_parse_is_plain(data, size, front))
		return;
	rvcm_parse_plain(data, size, front, &plain);
	require(msg && msg->op == RVCM_MESSAGE_EAGER && msg->flags == plain.flags);
	require(msg->tag == plain.tag && msg->data == plain.data);
	require(msg->length == plain.length && msg->payload == plain.payload);
}

static void check_plain(const uint8_t *data, size_t size, const struct rvcm_parse *msg)
{
	check_plain_of(data, size, RVCM_PARSE_PLAIN, msg);
	check_plain_of(data, size, RVCM_PARSE_DATA, msg);
}

static void check_body(const struct rvcm_parse *msg, const uint8_t *end)
{
	switch (msg->op) {
	case RVCM_MESSAGE_PIECE:
		require(msg->op_id != 0 && msg->length != 0);
		require(msg->payload + msg->length == end);
		break;
	case RVCM_MESSAGE_EAGER:
		require(msg->payload + msg->length == end);
		break;
	case RVCM_MESSAGE_RTS:
		check_rts(msg, end);
		break;
	case RVCM_MESSAGE_ASK:
		check_ask(msg, end);
		break;
	case RVCM_MESSAGE_WRITTEN:
		require(msg->op_id != 0 && msg->length != 0);
		break;
	case RVCM_MESSAGE_KEY:
		check_key(msg, end);
		break;
	case RVCM_MESSAGE_KEY_GET:
	case RVCM_MESSAGE_KEY_GONE:
	case RVCM_MESSAGE_KEY_LEFT:
		require(msg->op_id != 0);
		break;
	case RVCM_MESSAGE_FIN:
		require(rvcm_status_known(msg->status));
		break;
	default:
		require(msg->op_id == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rvcm_parse msg;

	if (rvcm_parse_message(data, size, &msg)) {
		check_plain(data, size, NULL);
		return 0;
	}
	check_plain(data, size, &msg);
	require(msg.op >= RVCM_MESSAGE_EAGER && msg.op <= RVCM_MESSAGE_KEY_LEFT);
	require((msg.flags & RVCM_MESSAGE_TAGGED) || msg.tag == 0);
	require((msg.flags & RVCM_MESSAGE_CQ_DATA) || msg.data == 0);
	check_body(&msg, data + size);
	return 0;
}

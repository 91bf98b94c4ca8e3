/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of peers: one row per op says what its header may hold, one function reads its body. */
#include <stdbool.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn.h"
#include "proto/parse.h"

struct op_rules {
	uint32_t flags; /* that may be set */
	bool has_id;
	uint8_t pad_max;
	const char *(*body)(const uint8_t *body, size_t n, struct rvcm_parse *out);
};

/* The application's 8 bytes, if the flags say so; they precede the rest of the body. */
static bool take_data(const uint8_t **body, size_t *n, struct rvcm_parse *out)
{
	if (!(out->flags & RVCM_MESSAGE_CQ_DATA))
		return true;
	if (*n < sizeof(out->data))
		return false;
	out->data = rvcm_le64_get(*body);
	*body += sizeof(out->data);
	*n -= sizeof(out->data);
	return true;
}

static const char *parse_eager(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	if (!take_data(&body, &n, out) || n < out->pad)
		return "short EAGER";
	out->payload = body + out->pad;
	out->length = n - out->pad;
	return NULL;
}

static const char *check_rail(const struct rvcm_message_rail *rail, uint64_t length)
{
	if (rvcm_le16_get(rail->rail) >= RVCM_CONN_DEVS_MAX)
		return "rail out of range";
	if (rvcm_le16_get(rail->reserved) != 0)
		return "reserved bits of a rail are set";
	if (length > UINT64_MAX - rvcm_le64_get(rail->address))
		return "a rail's address and length overflow";
	return NULL;
}

/* Of so many bytes behind the fixed part of an RTS, its rails are the first. */
static const char *take_early(size_t n, struct rvcm_parse *out)
{
	out->payload = (const void *)(out->rails + out->n_rails);
	out->early = n - out->n_rails * sizeof(*out->rails);
	if (out->early && out->n_rails && !out->writes)
		return "RTS: length does not fit its number of rails";
	return out->early > out->length ? "RTS: more payload than there is" : NULL;
}

static const char *parse_rts(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	static const uint8_t zero[sizeof(((struct rvcm_message_rts *)0)->reserved)];
	const struct rvcm_message_rts *rts;
	const char *why = NULL;

	if (!take_data(&body, &n, out) || n < sizeof(*rts))
		return "short RTS";
	rts = (const void *)body;
	out->length = rvcm_le64_get(rts->length);
	out->n_rails = rvcm_le16_get(rts->n_rails);
	out->writes = rts->writes;
	out->rails = (const void *)(body + sizeof(*rts));
	if (rts->writes > 1 || memcmp(rts->reserved, zero, sizeof(zero)) != 0)
		return "RTS: reserved bits are set";
	if (out->n_rails > RVCM_CONN_DEVS_MAX)
		return "RTS: bad number of rails";
	if (n < sizeof(*rts) + out->n_rails * sizeof(*out->rails))
		return "RTS: length does not fit its number of rails";
	for (uint32_t i = 0; i < out->n_rails && !why; i++)
		why = check_rail(&out->rails[i], out->length);
	return why ? why : take_early(n - sizeof(*rts), out);
}

static const char *parse_fin(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_fin *fin = (const void *)body;
	uint32_t status;

	if (n != sizeof(*fin))
		return "FIN: bad length";
	if (rvcm_le32_get(fin->reserved) != 0)
		return "FIN: reserved bits are set";
	status = rvcm_le32_get(fin->status);
	out->status = rvcm_status_known(status) ? (enum rvcm_status)status : RVCM_STATUS_GENERAL;
	return NULL;
}

static const char *check_place(const struct rvcm_message_place *place, uint64_t *rest)
{
	uint64_t bytes = rvcm_le64_get(place->bytes);

	if (rvcm_le16_get(place->rail) >= RVCM_CONN_DEVS_MAX)
		return "ASK: rail out of range";
	if (rvcm_le16_get(place->reserved) != 0)
		return "ASK: reserved bits of a place are set";
	if (bytes == 0 || bytes > *rest)
		return "ASK: places for more than is asked for, or for nothing";
	if (bytes > UINT64_MAX - rvcm_le64_get(place->address))
		return "ASK: address and bytes overflow";
	*rest -= bytes;
	return NULL;
}

static const char *parse_ask(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_ask *ask = (const void *)body;
	const char *why = NULL;
	uint64_t rest;

	if (n < sizeof(*ask) || (n - sizeof(*ask)) % sizeof(*out->places) != 0 ||
	    (n - sizeof(*ask)) / sizeof(*out->places) > RVCM_MESSAGE_PLACES_MAX)
		return "ASK: bad length";
	out->length = rvcm_le64_get(ask->bytes);
	out->n_places = (uint32_t)((n - sizeof(*ask)) / sizeof(*out->places));
	out->places = (const void *)(ask + 1);
	rest = out->length;
	for (uint32_t i = 0; i < out->n_places && !why; i++)
		why = check_place(&out->places[i], &rest);
	if (out->length == 0)
		why = "ASK: for nothing";
	return why;
}

static const char *parse_written(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_written *written = (const void *)body;

	if (n != sizeof(*written))
		return "WRITTEN: bad length";
	out->length = rvcm_le64_get(written->bytes);
	return out->length ? NULL : "WRITTEN: nothing";
}

static const char *parse_key_get(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_key_get *get = (const void *)body;

	if (n != sizeof(*get))
		return "KEY_GET: bad length";
	out->key = rvcm_le64_get(get->key);
	return NULL;
}

/* It is not told: then there is nothing but the reason. */
static const char *check_refusal(const struct rvcm_parse *out)
{
	if (out->n_rails || out->access || out->base || out->length)
		return "KEY: a reason why not, and memory";
	return NULL;
}

static const char *check_key(const struct rvcm_parse *out)
{
	const char *why = NULL;

	if (out->n_rails == 0 || out->n_rails > RVCM_CONN_DEVS_MAX)
		return "KEY: bad number of rails";
	if (out->access & ~((uint32_t)RVCM_MESSAGE_READ | (uint32_t)RVCM_MESSAGE_WRITE))
		return "KEY: unknown rights";
	if (out->length > UINT64_MAX - out->base)
		return "KEY: base and length overflow";
	for (uint32_t i = 0; i < out->n_rails && !why; i++)
		why = check_rail(&out->rails[i], out->length);
	return why;
}

static const char *parse_key(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_key *key = (const void *)body;
	uint32_t status;

	if (n < sizeof(*key))
		return "short KEY";
	status = rvcm_le32_get(key->status);
	out->status = rvcm_status_known(status) ? (enum rvcm_status)status : RVCM_STATUS_GENERAL;
	out->access = key->access;
	out->base = rvcm_le64_get(key->base);
	out->length = rvcm_le64_get(key->length);
	out->n_rails = rvcm_le16_get(key->n_rails);
	out->rails = (const void *)(key + 1);
	if (key->reserved != 0)
		return "KEY: reserved bits are set";
	if (n != sizeof(*key) + out->n_rails * sizeof(*out->rails))
		return "KEY: length does not fit its number of rails";
	return out->status == RVCM_STATUS_OK ? check_key(out) : check_refusal(out);
}

static const char *parse_write_data(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_write_data *write;

	if (!take_data(&body, &n, out) || n != sizeof(*write))
		return "WRITE_DATA: bad length";
	write = (const void *)body;
	out->length = rvcm_le64_get(write->bytes);
	return NULL;
}

static const char *parse_piece(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	out->payload = body;
	out->length = n;
	return n ? NULL : "PIECE: empty";
}

static const char *parse_empty(const uint8_t *body, size_t n, struct rvcm_parse *out)
{
	(void)body;
	(void)out;
	return n == 0 ? NULL : "a message without a body has one";
}

#define ANY_FLAG ((uint32_t)RVCM_MESSAGE_TAGGED | (uint32_t)RVCM_MESSAGE_CQ_DATA)

static const struct op_rules rules[] = {
	[RVCM_MESSAGE_EAGER] = { ANY_FLAG, false, RVCM_MESSAGE_PAD_MAX, parse_eager },
	[RVCM_MESSAGE_RTS] = { ANY_FLAG, true, 0, parse_rts },
	[RVCM_MESSAGE_FIN] = { 0, true, 0, parse_fin },
	[RVCM_MESSAGE_EAGER_OFF] = { 0, false, 0, parse_empty },
	[RVCM_MESSAGE_EAGER_ON] = { 0, false, 0, parse_empty },
	[RVCM_MESSAGE_ASK] = { 0, true, 0, parse_ask },
	[RVCM_MESSAGE_PIECE] = { 0, true, 0, parse_piece },
	[RVCM_MESSAGE_WRITTEN] = { 0, true, 0, parse_written },
	[RVCM_MESSAGE_KEY_GET] = { 0, true, 0, parse_key_get },
	[RVCM_MESSAGE_KEY] = { 0, true, 0, parse_key },
	[RVCM_MESSAGE_WRITE_DATA] = { RVCM_MESSAGE_CQ_DATA, false, 0, parse_write_data },
	[RVCM_MESSAGE_KEY_GONE] = { 0, true, 0, parse_empty },
	[RVCM_MESSAGE_KEY_LEFT] = { 0, true, 0, parse_empty },
};

const char *rvcm_parse_message(const uint8_t *bytes, size_t n, struct rvcm_parse *out)
{
	const struct rvcm_message_hdr *hdr = (const void *)bytes;
	const struct op_rules *rule;

	if (n < sizeof(*hdr))
		return "short message";
	if (hdr->op >= sizeof(rules) / sizeof(rules[0]) || !rules[hdr->op].body)
		return "unknown op";
	rule = &rules[hdr->op];
	*out = (struct rvcm_parse) {
		.op = (enum rvcm_message_op)hdr->op,
		.flags = hdr->flags,
		.pad = hdr->pad,
		.op_id = rvcm_le32_get(hdr->op_id),
		.tag = rvcm_le64_get(hdr->tag),
	};
	if (out->flags & ~rule->flags)
		return "flags that the op does not have";
	if (hdr->pad > rule->pad_max || hdr->reserved != 0)
		return "reserved bits are set";
	if ((out->op_id != 0) != rule->has_id)
		return "operation id where there is none, or none where there is one";
	if (!(out->flags & RVCM_MESSAGE_TAGGED) && out->tag != 0)
		return "a tag without the flag";
	return rule->body(bytes + sizeof(*hdr), n - sizeof(*hdr), out);
}

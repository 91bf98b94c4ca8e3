/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/shake.h"

#include <string.h>

#include "base/le.h"
#include "conn/mac.h"

#define ROLE_MASK   3u
#define FLAGS_KNOWN (ROLE_MASK | RVCM_WIRE_RECOVERY | RVCM_WIRE_OWN | RVCM_WIRE_ANEW)

static void handshake_mac(struct rvcm_wire_handshake shake, const uint8_t *key,
			  const struct rvcm_wire_handshake *request, uint8_t *tag)
{
	struct rvcm_mac mac;

	memset(shake.mac, 0, sizeof(shake.mac));
	rvcm_mac_init(&mac, key);
	rvcm_mac_update(&mac, &shake, sizeof(shake));
	if (request)
		rvcm_mac_update(&mac, request, sizeof(*request));
	rvcm_mac_final(&mac, tag);
}

void rvcm_shake_encode(const struct rvcm_shake *shake, const uint8_t key[RVCM_CONN_KEY_BYTES],
		       const struct rvcm_wire_handshake *request, struct rvcm_wire_handshake *out)
{
	memset(out, 0, sizeof(*out));
	rvcm_le16_put(out->version, RVCM_WIRE_VERSION | RVCM_WIRE_MAGIC << 8);
	out->flags = (uint8_t)(shake->role | shake->flags);
	out->link = shake->link;
	rvcm_le16_put(out->caps, shake->caps);
	rvcm_le16_put(out->port, shake->name.port);
	if (shake->role == RVCM_WIRE_REPLY)
		memcpy(out->address, shake->nonce, sizeof(out->address));
	else
		rvcm_addr_to_v6(&shake->name, out->address);
	rvcm_le32_put(out->incarnation, shake->incarnation);
	rvcm_le32_put(out->peer_incarnation, shake->peer_incarnation);
	rvcm_le32_put(out->epoch, shake->epoch);
	rvcm_le32_put(out->begun, shake->begun);
	rvcm_le32_put(out->heard, shake->heard);
	rvcm_le16_put(out->window, shake->window);
	rvcm_le16_put(out->slot, shake->slot);
	handshake_mac(*out, key, request, out->mac);
}

static void decode_fields(const struct rvcm_wire_handshake *in, struct rvcm_shake *shake)
{
	memset(shake, 0, sizeof(*shake));
	shake->role = (enum rvcm_wire_role)(in->flags & ROLE_MASK);
	shake->flags = (uint8_t)(in->flags & ~ROLE_MASK);
	shake->link = in->link;
	shake->caps = rvcm_le16_get(in->caps);
	if (shake->role == RVCM_WIRE_REPLY)
		memcpy(shake->nonce, in->address, sizeof(shake->nonce));
	else
		rvcm_addr_from_v6(&shake->name, in->address, 0);
	shake->name.port = rvcm_le16_get(in->port);
	shake->incarnation = rvcm_le32_get(in->incarnation);
	shake->peer_incarnation = rvcm_le32_get(in->peer_incarnation);
	shake->epoch = rvcm_le32_get(in->epoch);
	shake->begun = rvcm_le32_get(in->begun);
	shake->heard = rvcm_le32_get(in->heard);
	shake->window = rvcm_le16_get(in->window);
	shake->slot = rvcm_le16_get(in->slot);
}

/* Is the first field ours, and of this version? */
static enum rvcm_wire_reason judge_version(const struct rvcm_wire_handshake *in)
{
	uint16_t version = rvcm_le16_get(in->version);

	if (version >> 8 != RVCM_WIRE_MAGIC)
		return RVCM_WIRE_REASON_MALFORMED;
	if ((version & 0xff) != RVCM_WIRE_VERSION)
		return RVCM_WIRE_REASON_VERSION;
	return RVCM_WIRE_REASON_NONE;
}

/* Who goes on with a conn can, and knows with whom; who has a side link for it, too. */
static bool means_a_conn(const struct rvcm_shake *shake)
{
	return (shake->link != 0 || shake->flags & RVCM_WIRE_RECOVERY) &&
	       shake->peer_incarnation != 0;
}

enum rvcm_wire_reason rvcm_shake_decode(const void *data, size_t bytes, enum rvcm_wire_role role,
					const uint8_t key[RVCM_CONN_KEY_BYTES],
					const struct rvcm_wire_handshake *request,
					struct rvcm_shake *shake)
{
	struct rvcm_wire_handshake in;
	enum rvcm_wire_reason reason;
	uint8_t tag[RVCM_WIRE_MAC_BYTES];

	if (bytes < sizeof(in)) /* more is allowed: IB pads private data with zeros */
		return RVCM_WIRE_REASON_MALFORMED;
	memcpy(&in, data, sizeof(in));
	reason = judge_version(&in);
	if (reason != RVCM_WIRE_REASON_NONE)
		return reason;
	if ((in.flags & ROLE_MASK) != (uint8_t)role || (in.flags & ~FLAGS_KNOWN) != 0)
		return RVCM_WIRE_REASON_MALFORMED;
	decode_fields(&in, shake);
	if (shake->incarnation == 0 || shake->epoch == 0 || shake->name.port == 0)
		return RVCM_WIRE_REASON_MALFORMED;
	if (shake->begun != 0 && !means_a_conn(shake))
		return RVCM_WIRE_REASON_MALFORMED;
	if (shake->link >= RVCM_CONN_LINKS_MAX || (shake->link != 0 && shake->begun == 0))
		return RVCM_WIRE_REASON_MALFORMED;
	handshake_mac(in, key, request, tag);
	return rvcm_mac_equal(tag, in.mac) ? RVCM_WIRE_REASON_NONE : RVCM_WIRE_REASON_KEY;
}

enum rvcm_wire_reason rvcm_shake_reason(const void *data, size_t bytes)
{
	struct rvcm_wire_handshake in;

	if (bytes < sizeof(in))
		return RVCM_WIRE_REASON_NONE;
	memcpy(&in, data, sizeof(in));
	/* A peer of another version says so in its own format: only the first field is shared. */
	if (judge_version(&in) == RVCM_WIRE_REASON_VERSION)
		return RVCM_WIRE_REASON_VERSION;
	if (judge_version(&in) != RVCM_WIRE_REASON_NONE ||
	    (in.flags & ROLE_MASK) != RVCM_WIRE_REJECT)
		return RVCM_WIRE_REASON_NONE;
	if (rvcm_le16_get(in.caps) >= RVCM_WIRE_REASONS)
		return RVCM_WIRE_REASON_NONE;
	return (enum rvcm_wire_reason)rvcm_le16_get(in.caps);
}

enum rvcm_status rvcm_shake_status(enum rvcm_wire_reason reason)
{
	static const enum rvcm_status status[] = {
		[RVCM_WIRE_REASON_NONE] = RVCM_STATUS_REJECTED,
		[RVCM_WIRE_REASON_VERSION] = RVCM_STATUS_REJECTED_VERSION,
		[RVCM_WIRE_REASON_KEY] = RVCM_STATUS_REJECTED_KEY,
		[RVCM_WIRE_REASON_CROSSED] = RVCM_STATUS_REJECTED_CROSSED,
		[RVCM_WIRE_REASON_STALE] = RVCM_STATUS_REJECTED_STALE,
		[RVCM_WIRE_REASON_NAME] = RVCM_STATUS_REJECTED_NAME,
		[RVCM_WIRE_REASON_RESOURCE] = RVCM_STATUS_REJECTED_RESOURCE,
		[RVCM_WIRE_REASON_CLOSING] = RVCM_STATUS_REJECTED_CLOSING,
		[RVCM_WIRE_REASON_MALFORMED] = RVCM_STATUS_PROTOCOL,
		[RVCM_WIRE_REASON_SHARED] = RVCM_STATUS_REJECTED,
		[RVCM_WIRE_REASON_BUSY] = RVCM_STATUS_REJECTED,
		[RVCM_WIRE_REASON_LATE] = RVCM_STATUS_REJECTED_LATE,
		[RVCM_WIRE_REASON_GONE] = RVCM_STATUS_GIVEN_UP,
	};

	return (size_t)reason < sizeof(status) / sizeof(status[0]) ? status[reason]
								   : RVCM_STATUS_PROTOCOL;
}

void rvcm_shake_hello_mac(enum rvcm_wire_role role, const uint8_t key[RVCM_CONN_KEY_BYTES],
			  const struct rvcm_wire_handshake *request,
			  const struct rvcm_wire_handshake *reply,
			  const uint8_t nonce[RVCM_WIRE_NONCE_BYTES],
			  uint8_t tag[RVCM_WIRE_MAC_BYTES])
{
	uint8_t who = (uint8_t)role;
	struct rvcm_mac mac;

	rvcm_mac_init(&mac, key);
	rvcm_mac_update(&mac, &who, sizeof(who));
	rvcm_mac_update(&mac, request, sizeof(*request));
	rvcm_mac_update(&mac, reply, sizeof(*reply));
	rvcm_mac_update(&mac, nonce, RVCM_WIRE_NONCE_BYTES);
	rvcm_mac_final(&mac, tag);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HELLO, the first message in each direction: proof that the peer holds the job key and takes part
 * in this very handshake, since the MAC runs over both sides' nonces. An acceptor that does not
 * believe its opener says BYE instead, with the reason, which is for people and changes nothing:
 * the link ends either way.
 */
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/mac.h"

static void hello_mac(const struct rvcm_carrier *carrier, const struct rvcm_link *link,
		      bool of_opener, uint8_t *mac)
{
	rvcm_shake_hello_mac(of_opener ? RVCM_WIRE_REQUEST : RVCM_WIRE_REPLY, carrier->attr.job_key,
			     &link->request, &link->reply, link->nonce, mac);
}

/* What we take, and what the peer says that it does: see wire.h. */
static uint32_t takes(const struct rvcm_carrier *carrier, const struct rvcm_link *link)
{
	size_t max = rvcm_carrier_takes(carrier, link->qp->dev);

	return max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
}

static uint32_t peer_takes(const struct rvcm_wire_frame *frame)
{
	uint32_t max = rvcm_le16_get(frame->src_slot) | (uint32_t)rvcm_le16_get(frame->dst_slot)
								<< 16;

	return max ? max : RVCM_CONN_MESSAGE_FLOOR;
}

static void fill(const struct rvcm_carrier *carrier, struct rvcm_link *link,
		 struct rvcm_wire_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	if (link->opener)
		carrier->attr.env.random(carrier->attr.env.ctx, link->nonce, sizeof(link->nonce));
	memcpy(hello->nonce, link->nonce, sizeof(hello->nonce));
	hello_mac(carrier, link, link->opener, hello->mac);
	rvcm_le32_put(hello->pid, carrier->attr.pid);
}

/* Where further links may come to, if it is the device that has those ways. Returns how many. */
static uint16_t put_rails(const struct rvcm_link *link, struct rvcm_wire_rail *rails)
{
	const struct rvcm_slot *slot = link->slot;

	if (link->dev != slot->carrier->attr.rails_dev)
		return 0;
	memset(rails, 0, slot->n_rails * sizeof(*rails));
	for (uint32_t i = 0; i < slot->n_rails; i++) {
		rvcm_addr_to_v6(&slot->rails[i], rails[i].address);
		rvcm_le16_put(rails[i].port, slot->rails[i].port);
	}
	return (uint16_t)slot->n_rails;
}

int rvcm_hello_send(struct rvcm_conn *conn)
{
	struct {
		struct rvcm_wire_hello hello;
		struct rvcm_wire_rail rails[RVCM_CONN_RAILS_MAX];
	} words;
	uint16_t n;

	fill(conn->carrier, conn->link, &words.hello);
	n = put_rails(conn->link, words.rails);
	rvcm_le16_put(words.hello.n_rails, n);
	return rvcm_tx_hello(conn, &words.hello, sizeof(words.hello) + n * sizeof(words.rails[0]),
			     takes(conn->carrier, conn->link));
}

int rvcm_hello_send_side(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_wire_hello hello;

	fill(carrier, link, &hello);
	return rvcm_tx_alone(carrier, link, &hello);
}

/* Its form, whoever sent it. */
static const char *judge_form(const struct rvcm_wire_frame *frame, size_t bytes,
			      struct rvcm_wire_hello *hello)
{
	if (frame->kind != RVCM_WIRE_HELLO)
		return "does not begin with HELLO";
	if (rvcm_le32_get(frame->seq) != 0)
		return "sequence number out of order";
	if (peer_takes(frame) < RVCM_CONN_MESSAGE_FLOOR)
		return "HELLO of who takes no messages of a common length";
	bytes -= sizeof(*frame);
	if (bytes < sizeof(*hello))
		return "HELLO of a wrong length";
	memcpy(hello, frame + 1, sizeof(*hello));
	if (rvcm_le16_get(hello->n_rails) > RVCM_CONN_RAILS_MAX)
		return "HELLO with too many rails";
	if (bytes - sizeof(*hello) != rvcm_le16_get(hello->n_rails) * sizeof(struct rvcm_wire_rail))
		return "HELLO of a wrong length";
	return NULL;
}

static const char *take_rails(struct rvcm_link *link, const struct rvcm_wire_rail *rails,
			      uint32_t n)
{
	static const uint8_t zero[4];

	for (uint32_t i = 0; i < n; i++) {
		struct rvcm_addr *rail = &link->rails[i];

		rvcm_addr_from_v6(rail, rails[i].address, 0);
		rail->port = rvcm_le16_get(rails[i].port);
		if (rail->port == 0 || rvcm_le16_get(rails[i].reserved) != 0 ||
		    memcmp(rails[i].scope, zero, sizeof(zero)) != 0)
			return "HELLO with a malformed rail";
	}
	link->n_rails = n;
	return NULL;
}

static const char *judge_proof(const struct rvcm_carrier *carrier, struct rvcm_link *link,
			       const struct rvcm_wire_hello *hello)
{
	uint8_t mac[RVCM_WIRE_MAC_BYTES];

	if (link->opener && memcmp(hello->nonce, link->nonce, sizeof(link->nonce)) != 0)
		return "HELLO answers another connection";
	if (!link->opener)
		memcpy(link->nonce, hello->nonce, sizeof(link->nonce));
	hello_mac(carrier, link, !link->opener, mac);
	return rvcm_mac_equal(mac, hello->mac) ? NULL : "HELLO without proof of the job key";
}

const char *rvcm_hello_judge(struct rvcm_carrier *carrier, struct rvcm_link *link,
			     const uint8_t *data, size_t bytes, enum rvcm_status *status)
{
	const struct rvcm_wire_frame *frame = (const void *)data;
	struct rvcm_wire_hello hello;
	const char *why = judge_form(frame, bytes, &hello);

	*status = RVCM_STATUS_PROTOCOL;
	if (why)
		return why;
	/* We have sent nothing to an opener yet. */
	if (!link->opener && !rvcm_le32_get(link->request.begun) && rvcm_le32_get(frame->ack) != 0)
		return "acknowledges what was not sent";
	*status = RVCM_STATUS_REJECTED_KEY;
	why = judge_proof(carrier, link, &hello);
	if (why)
		return why;
	*status = RVCM_STATUS_PROTOCOL;
	why = take_rails(link, (const void *)(data + sizeof(*frame) + sizeof(hello)),
			 rvcm_le16_get(hello.n_rails));
	if (why)
		return why;
	link->peer_takes = peer_takes(frame);
	link->hello_ack = rvcm_le32_get(frame->ack);
	link->hello_window = rvcm_le16_get(frame->window);
	if (link->peer_window < rvcm_le16_get(frame->window))
		link->peer_window = rvcm_le16_get(frame->window);
	return NULL;
}

size_t rvcm_hello_message_max(const struct rvcm_carrier *carrier, const struct rvcm_link *link)
{
	size_t ours = rvcm_carrier_takes(carrier, link->qp->dev);

	return ours < link->peer_takes ? ours : link->peer_takes;
}

/* By how a claim ended. What the device found, or what we do, is not told. */
static enum rvcm_wire_reason reason_of(enum rvcm_status status)
{
	static const enum rvcm_wire_reason reasons[] = {
		[RVCM_STATUS_CONNECT_TIMEOUT] = RVCM_WIRE_REASON_LATE,
		[RVCM_STATUS_REJECTED_KEY] = RVCM_WIRE_REASON_KEY,
		[RVCM_STATUS_REJECTED_STALE] = RVCM_WIRE_REASON_STALE,
		[RVCM_STATUS_PROTOCOL] = RVCM_WIRE_REASON_MALFORMED,
		[RVCM_STATUS_NO_MEMORY] = RVCM_WIRE_REASON_RESOURCE,
		[RVCM_STATUS_GIVEN_UP] = RVCM_WIRE_REASON_GONE,
	};

	return (size_t)status < sizeof(reasons) / sizeof(reasons[0]) ? reasons[status]
								     : RVCM_WIRE_REASON_NONE;
}

bool rvcm_hello_refuse(struct rvcm_carrier *carrier, struct rvcm_link *link,
		       enum rvcm_status status)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_bye bye;
	} words = { .frame.kind = RVCM_WIRE_BYE };
	struct rvcm_dev *dev = carrier->devs[link->dev].dev;
	struct rvcm_dev_sge sge = { .addr = &words, .length = sizeof(words) };
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND,
		.flags = RVCM_DEV_WR_SOLICITED | RVCM_DEV_WR_INLINE,
		.n_sge = 1,
		.sge = &sge,
	};

	if (reason_of(status) == RVCM_WIRE_REASON_NONE ||
	    sizeof(words) > dev->attr.inline_bytes_max)
		return false;
	rvcm_le16_put(words.bye.reason, (uint16_t)reason_of(status));
	return dev->ops->post(link->qp, &wr) == 0;
}

enum rvcm_wire_reason rvcm_hello_refused(const uint8_t *data, size_t bytes)
{
	const struct rvcm_wire_frame *frame = (const void *)data;
	struct rvcm_wire_bye bye;
	uint16_t reason;

	if (frame->kind != RVCM_WIRE_BYE || bytes < sizeof(*frame) + sizeof(bye))
		return RVCM_WIRE_REASON_NONE;
	memcpy(&bye, frame + 1, sizeof(bye));
	reason = rvcm_le16_get(bye.reason);
	return reason < RVCM_WIRE_REASONS ? (enum rvcm_wire_reason)reason : RVCM_WIRE_REASON_NONE;
}

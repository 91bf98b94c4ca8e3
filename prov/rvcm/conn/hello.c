/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HELLO, the first message in each direction: proof that the peer holds the job key and takes part
 * in this very handshake, since the MAC runs over both sides' nonces.
 */
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/mac.h"

static void hello_mac(struct rvcm_conn_full *conn, bool of_opener, uint8_t *mac)
{
	rvcm_shake_hello_mac(of_opener ? RVCM_WIRE_REQUEST : RVCM_WIRE_REPLY,
			     conn->carrier->attr.job_key, &conn->link->request, &conn->link->reply,
			     conn->nonce, mac);
}

int rvcm_hello_send(struct rvcm_conn_full *conn)
{
	struct rvcm_wire_hello hello = { .reserved = { 0 } };

	if (conn->link->opener)
		conn->carrier->attr.env.random(conn->carrier->attr.env.ctx, conn->nonce,
					       sizeof(conn->nonce));
	memcpy(hello.nonce, conn->nonce, sizeof(hello.nonce));
	hello_mac(conn, conn->link->opener, hello.mac);
	rvcm_le32_put(hello.pid, conn->carrier->attr.pid);
	return rvcm_tx_control(conn, RVCM_WIRE_HELLO, &hello, sizeof(hello));
}

/* Its form, whoever sent it. */
static const char *judge_form(const uint8_t *data, size_t bytes, struct rvcm_wire_hello *hello)
{
	if (bytes < sizeof(*hello))
		return "HELLO of a wrong length";
	memcpy(hello, data, sizeof(*hello));
	if (rvcm_le16_get(hello->n_rails) > RVCM_CONN_DEVS_MAX)
		return "HELLO with too many rails";
	if (bytes - sizeof(*hello) != rvcm_le16_get(hello->n_rails) * RVCM_WIRE_RAIL_BYTES)
		return "HELLO of a wrong length";
	return NULL;
}

static const char *judge_proof(struct rvcm_conn_full *conn, const struct rvcm_wire_hello *hello)
{
	uint8_t mac[RVCM_WIRE_MAC_BYTES];

	if (conn->link->opener && memcmp(hello->nonce, conn->nonce, sizeof(conn->nonce)) != 0)
		return "HELLO answers another connection";
	if (!conn->link->opener)
		memcpy(conn->nonce, hello->nonce, sizeof(conn->nonce));
	hello_mac(conn, !conn->link->opener, mac);
	return rvcm_mac_equal(mac, hello->mac) ? NULL : "HELLO without proof of the job key";
}

void rvcm_hello_receive(struct rvcm_conn_full *conn, const uint8_t *data, size_t bytes)
{
	enum rvcm_status status = RVCM_STATUS_PROTOCOL;
	struct rvcm_wire_hello hello;
	const char *why = judge_form(data, bytes, &hello);

	if (!why) {
		status = RVCM_STATUS_REJECTED_KEY;
		why = judge_proof(conn, &hello);
	}
	if (why) {
		rvcm_stat_inc(&conn->carrier->stats.protocol_errors);
		rvcm_conn_fail(conn, status, 0, why);
		return;
	}
	conn->hello_seen = true;
	if (conn->link->opener)
		return;
	conn->hello_due = true;
	rvcm_conn_schedule(conn);
}

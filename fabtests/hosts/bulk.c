/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts/bulk.h"

#include <stdlib.h>

uint8_t *bulk_begin(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context)
{
	uint8_t *in = calloc(1, BULK_BYTES);
	uint64_t deadline = conf_deadline();

	CONF_TRY(node, fi_trecv(node->ep, in, BULK_BYTES, NULL, peer, BULK_TAG, 0, context));
	while (!*(volatile uint8_t *)in) {
		conf_drive(node);
		conf_not_late(deadline);
	}
	return in;
}

uint8_t *bulk_send(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context)
{
	uint8_t *out = malloc(BULK_BYTES);

	conf_fill(out, BULK_BYTES, BULK_SEED);
	CONF_TRY(node, fi_tsend(node->ep, out, BULK_BYTES, NULL, peer, BULK_TAG, context));
	return out;
}

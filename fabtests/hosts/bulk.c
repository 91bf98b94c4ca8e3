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

void bulk_in_vain(struct conf_node *node, fi_addr_t peer, int to, int from, const char *text)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	uint8_t *in;

	conf_exchange(node, peer, 0, 1);
	in = bulk_begin(node, peer, &context);
	conf_put(to, "!", 1);
	host_await(from);
	conf_expect_error(node, &error);
	assert_ptr_equal(error.op_context, &context);
	host_check_text(node, &error, text);
	conf_put(to, "!", 1);
	host_await(from);
	free(in);
	conf_exchange(node, peer, 1, 5);
}

uint8_t *bulk_half(struct host_pair *p, const char *role, const struct conf_options *options,
		   struct fi_context2 *context)
{
	uint8_t *out;

	host_pair_open(p, 2, role, options);
	conf_exchange(&p->node, p->peer, 0, 1);
	out = bulk_send(&p->node, p->peer, context);
	host_hear(p);
	return out;
}

void bulk_go_on(struct host_pair *p, uint32_t round)
{
	host_say(&p->other);
	conf_exchange(&p->node, p->peer, round, 5);
	host_pair_close(p, 0);
}

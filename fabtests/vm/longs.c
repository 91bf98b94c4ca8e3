/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/longs.h"

#include <stdlib.h>

void longs_post(struct longs *l, struct conf_node *node, fi_addr_t peer)
{
	l->out = malloc(CONF_LONG_BYTES);
	conf_fill(l->out, CONF_LONG_BYTES, 1);
	for (uint32_t i = 0; i < LONGS; i++) {
		l->in[i] = calloc(1, CONF_LONG_BYTES);
		CONF_TRY(node, fi_trecv(node->ep, l->in[i], CONF_LONG_BYTES, NULL, peer,
					LONGS_TAG + i, 0, &l->recvs[i]));
	}
	for (uint32_t i = 0; i < LONGS; i++)
		CONF_TRY(node, fi_tsend(node->ep, l->out, CONF_LONG_BYTES, NULL, peer,
					LONGS_TAG + i, &l->sends[i]));
}

/* Which of over[] it is; each ends once. */
static int longs_number(const struct longs *l, const void *context)
{
	const struct fi_context2 *c = context;

	if (c >= l->recvs && c < l->recvs + LONGS)
		return (int)(c - l->recvs);
	if (c >= l->extra && c < l->extra + LONGS_EXTRA)
		return LONGS_OPERATIONS + (int)(c - l->extra);
	assert_true(c >= l->sends && c < l->sends + LONGS);
	return LONGS + (int)(c - l->sends);
}

void longs_read(struct longs *l, struct conf_node *node)
{
	struct fi_cq_tagged_entry entry = { 0 };
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc = fi_cq_read(node->txcq, &entry, 1);
	int number;

	if (rc == -FI_EAGAIN)
		return;
	if (rc == -FI_EAVAIL)
		assert_int_equal(fi_cq_readerr(node->txcq, &error, 0), 1);
	else
		assert_int_equal(rc, 1);
	number = longs_number(l, rc == 1 ? entry.op_context : error.op_context);
	assert_false(l->over[number]);
	l->over[number] = true;
	l->done++;
	if (rc != 1) {
		l->failed++;
		l->error = error.err;
		(void)fi_cq_strerror(node->txcq, error.prov_errno, error.err_data, l->text,
				     sizeof(l->text));
	}
	if (rc == 1 && number < LONGS)
		conf_check(l->in[number], CONF_LONG_BYTES, 1);
}

void longs_free(struct longs *l)
{
	for (int i = 0; i < LONGS; i++)
		free(l->in[i]);
	free(l->out);
}

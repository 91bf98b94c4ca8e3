/* SPDX-License-Identifier: BSD-2-Clause */
/* One long message: what is under way when something happens to a connection. */
#ifndef RVCM_FABTESTS_BULK_H
#define RVCM_FABTESTS_BULK_H

#include "hosts/host.h"

#define BULK_BYTES (64u << 20) /* far more than the sockets hold */
#define BULK_TAG   500
#define BULK_SEED  1 /* its first byte is not 0 */

/* Receive it until some of it is there, and then look away. The caller frees what it returns. */
uint8_t *bulk_begin(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context);
/* Send it; likewise. */
uint8_t *bulk_send(struct conf_node *node, fi_addr_t peer, struct fi_context2 *context);

/*
 * For a role: half of the message has come, the test has its way, and it fails, with that in the
 * error's text; then all is well again.
 */
void bulk_in_vain(struct conf_node *node, fi_addr_t peer, int to, int from, const char *text);

/* The other plays role, and has half of the message; returns what it is sent from. */
uint8_t *bulk_half(struct host_pair *p, const char *role, const struct conf_options *options,
		   struct fi_context2 *context);
/* All is well again, from that round of the exchange on; the end. */
void bulk_go_on(struct host_pair *p, uint32_t round);

#endif

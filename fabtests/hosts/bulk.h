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

#endif

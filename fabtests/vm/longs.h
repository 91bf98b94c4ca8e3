/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages both ways at once between two processes, which something is about to happen to:
 * every operation ends just once, well (and then its bytes are right) or in an error.
 */
#ifndef RVCM_FABTESTS_VM_LONGS_H
#define RVCM_FABTESTS_VM_LONGS_H

#include "conf/proc.h"

#define LONGS            32 /* of CONF_LONG_BYTES, each way */
#define LONGS_OPERATIONS (2 * LONGS)
#define LONGS_TAG        800
#define LONGS_EXTRA      3 /* receives that the user may post beside them, of LONGS_ROOM bytes */
#define LONGS_ROOM       4096

struct longs {
	struct fi_context2 recvs[LONGS], sends[LONGS], extra[LONGS_EXTRA];
	uint8_t *in[LONGS], *out, room[LONGS_EXTRA][LONGS_ROOM];
	bool over[LONGS_OPERATIONS + LONGS_EXTRA]; /* receives, sends, extra ones */
	int done;
	int failed;     /* of these */
	int error;      /* the last failure's, as fi_cq_readerr(3) has it; 0 = none */
	char text[256]; /* and in words */
};

void longs_post(struct longs *l, struct conf_node *node, fi_addr_t peer);
/* Takes a completion, if there is one. */
void longs_read(struct longs *l, struct conf_node *node);
void longs_free(struct longs *l);

#endif

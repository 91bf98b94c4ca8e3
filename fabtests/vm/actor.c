/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/actor.h"

#include <stdlib.h>

#include "vm/side.h"

#define SEED_REQUEST 1001
#define SEED_ANSWER  1002

void actor_play(struct peers *p, peers_fn *fn)
{
	struct actor a = {
		.ops = p->soft ? &actor_soft_ops : &actor_siw_ops,
		.p = p,
		.buf = aligned_alloc(4096, ACTOR_BUF_BYTES),
	};

	a.ops->open(&a);
	fn(&a);
	a.ops->close(&a);
	free(a.buf);
}

void actor_connect(struct actor *a, size_t request_bytes, size_t answer_bytes)
{
	uint8_t request[512], answer[512];

	side_fill(request, request_bytes, SEED_REQUEST);
	side_fill(answer, answer_bytes, SEED_ANSWER);
	if (a->p->opener) {
		peers_sync(a->p);
		a->ops->dial(a, request, request_bytes);
		a->ops->established(a, answer, answer_bytes);
	} else {
		a->ops->listen(a);
		peers_sync(a->p);
		a->ops->request(a, request, request_bytes);
		a->ops->accept(a, answer, answer_bytes);
	}
	peers_tell(a->p, &a->here, sizeof(a->here));
	a->ops->idle(a); /* the device may have something to say before the other side is there */
	peers_hear(a->p, &a->there, sizeof(a->there));
}

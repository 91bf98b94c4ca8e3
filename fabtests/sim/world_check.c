/* SPDX-License-Identifier: BSD-2-Clause */
/* What messages arrived, and in which order. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/watch.h"
#include "sim/world.h"

#define LOOK_MAX 200 /* receives on either side */

static bool would_take(const struct world_op *op, int from, uint32_t tagged, uint64_t tag)
{
	if ((op->flags & RVCM_EP_TAGGED) != tagged)
		return false;
	if (op->source != RVCM_EP_SOURCE_NONE && op->source != 100 + (uint64_t)from)
		return false;
	return !tagged || ((op->tag ^ tag) & ~op->ignore) == 0;
}

static bool has_message(const struct world_op *op)
{
	return op->from >= 0;
}

/* Was late, posted after early, given an earlier message that early would have taken? */
static void check_pair(struct world_ep *ep, const struct world_op *early,
		       const struct world_op *late)
{
	uint64_t seed, tag;
	uint32_t tagged;

	/* An endpoint, and another one that has its name later, owe each other no order. */
	if (early->from != late->from || early->data < late->data ||
	    early->data >> 32 != late->data >> 32)
		return;
	if (early->data == late->data)
		fail_msg("message %llx from %d to %d came twice", (unsigned long long)early->data,
			 early->from, ep->index);
	seed = world_message_seed(late->from, ep->index, late->data);
	tagged = world_message_tag(seed, late->from, &tag);
	if (would_take(early, late->from, tagged, tag))
		fail_msg("message %llx from %d to %d went to a receive posted later than that "
			 "which got %llx",
			 (unsigned long long)late->data, late->from, ep->index,
			 (unsigned long long)early->data);
}

void world_check_order(struct world_ep *ep, const struct world_op *op)
{
	const struct rvcm_list *pos = op->node.prev;

	for (int i = 0; i < LOOK_MAX && pos != &ep->receives; i++, pos = pos->prev) {
		const struct world_op *other = rvcm_container_of(pos, struct world_op, node);

		if (has_message(other))
			check_pair(ep, other, op);
	}
	pos = op->node.next;
	for (int i = 0; i < LOOK_MAX && pos != &ep->receives; i++, pos = pos->next) {
		const struct world_op *other = rvcm_container_of(pos, struct world_op, node);

		if (has_message(other))
			check_pair(ep, op, other);
	}
}

/* -- which have arrived ---------------------------------------------------------------------- */

/* Where message data of from is noted. */
static uint8_t *note_of(uint8_t *notes[WORLD_LIVES_MAX], uint32_t room[WORLD_LIVES_MAX],
			uint64_t data)
{
	uint32_t life = (uint32_t)(data >> 32), number = (uint32_t)data;

	assert_in_range(life, 0, WORLD_LIVES_MAX - 1);
	assert_in_range(number, 0, 100000);
	if (number >= room[life]) {
		uint32_t more = number + 64;

		notes[life] = realloc(notes[life], more);
		assert_non_null(notes[life]);
		memset(notes[life] + room[life], 0, more - room[life]);
		room[life] = more;
	}
	return &notes[life][number];
}

void world_got(struct world_ep *ep, int from, uint64_t data)
{
	uint8_t *got = note_of(ep->got[from], ep->got_room[from], data);

	if (*got)
		fail_msg("message %llx from %d to %d came twice", (unsigned long long)data, from,
			 ep->index);
	*got = 1;
}

bool world_has(const struct world_ep *ep, int from, uint64_t data)
{
	uint32_t life = (uint32_t)(data >> 32), number = (uint32_t)data;

	return number < ep->got_room[from][life] && ep->got[from][life][number];
}

static void took(void *ctx, uint64_t source, uint64_t data)
{
	struct world_ep *ep = ctx;
	int from = (int)(source - 100);

	*note_of(ep->taken[from], ep->taken_room[from], data) = 1;
}

void world_note_taken(struct world_ep *ep)
{
	watch_ep_taken(ep->ep, took, ep);
	for (int from = 0; from < ep->world->n_eps; from++)
		for (uint64_t life = 0; life < WORLD_LIVES_MAX; life++)
			for (uint32_t n = 0; n < ep->got_room[from][life]; n++)
				if (ep->got[from][life][n])
					took(ep, 100 + (uint64_t)from, life << 32 | n);
}

static bool has_taken(const struct world_ep *ep, int from, uint64_t data)
{
	uint32_t life = (uint32_t)(data >> 32), number = (uint32_t)data;

	return number < ep->taken_room[from][life] && ep->taken[from][life][number];
}

/* By an endpoint that was open: one that closes takes nothing. */
void world_check_received(struct world *w, int from, const struct world_op *op)
{
	const struct world_ep *to = &w->eps[op->to];

	if (!world_has(to, from, op->data) && !has_taken(to, from, op->data))
		fail_msg("message %llx from %d to %d was not received, but its sender was told so",
			 (unsigned long long)op->data, from, op->to);
}

static bool all_got_from(struct world_ep *ep, int from)
{
	const struct world_ep *sender = &ep->world->eps[from];

	for (uint32_t n = 0; n < sender->sent[ep->index]; n++)
		if (!world_has(ep, from, (uint64_t)sender->life << 32 | n))
			return false;
	return true;
}

bool world_all_got(struct world *w)
{
	int n = w->faulty ? w->n_stable : w->n_eps;

	for (int to = 0; to < n; to++)
		for (int from = 0; from < n; from++)
			if (!all_got_from(&w->eps[to], from))
				return false;
	return true;
}

static void check_confirmed(struct world *w, int from)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &w->eps[from].sends) {
		const struct world_op *op = rvcm_container_of(pos, struct world_op, node);

		if (op->ended && op->status == RVCM_STATUS_OK && op->flags & RVCM_EP_DELIVERED)
			world_check_received(w, from, op);
	}
}

void world_note_owed(struct world_ep *ep)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->sends) {
		const struct world_op *op = rvcm_container_of(pos, struct world_op, node);
		struct world_owed *owed;

		/* What was injected may have waited for its receiver, and the closing does not. */
		if (op->to == ep->index || op->astray || !op->ended || op->status != RVCM_STATUS_OK)
			continue;
		owed = calloc(1, sizeof(*owed));
		*owed = (struct world_owed) { .next = ep->world->owed,
					      .from = ep->index,
					      .to = op->to,
					      .to_life = op->to_life,
					      .data = op->data };
		ep->world->owed = owed;
	}
}

static void check_owed(struct world *w)
{
	for (const struct world_owed *owed = w->owed; owed; owed = owed->next) {
		const struct world_ep *to = &w->eps[owed->to];

		if (to->ep && to->life == owed->to_life && !world_has(to, owed->from, owed->data))
			fail_msg("message %llx from %d to %d was sent before its sender closed, "
				 "and has not come",
				 (unsigned long long)owed->data, owed->from, owed->to);
	}
}

void world_check_all(struct world *w)
{
	check_owed(w);
	for (int i = 0; i < w->n_eps; i++)
		check_confirmed(w, i);
	assert_true(world_all_got(w));
}

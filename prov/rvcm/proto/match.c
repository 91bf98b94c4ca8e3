/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching by classes; match.h has the idea.
 *
 * Invariants. A posted receive is in posted, and either in the recvs table of its class or in
 * overflow. A held message is in held, and in the msgs table of exactly those classes that have
 * indexes set. A class without receives may be given to another mask; its index is dissolved then.
 * Chains and lists are sorted by seq.
 *
 * A class's index is made when a receive of that class is posted while messages are held, and it is
 * forgotten (not kept up) when the last held message has gone: an application that posts its
 * receives in time pays nothing for it.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "proto/match.h"

static inline struct rvcm_match_item *item_of(const struct rvcm_match_table *table,
					      struct rvcm_list *link)
{
	return (struct rvcm_match_item *)((char *)link - table->offset);
}

static size_t msg_offset(uint32_t class)
{
	return offsetof(struct rvcm_match_msg, links) + class * sizeof(struct rvcm_list);
}

static struct rvcm_match_msg *msg_of_item(struct rvcm_match_item *item)
{
	return rvcm_container_of(item, struct rvcm_match_msg, item);
}

/* Does a posted receive match a message? The definition; the tables only find it faster. */
static bool recv_matches(const struct rvcm_match_recv *recv, uint64_t tag, uint64_t source)
{
	return ((recv->item.tag ^ tag) & ~recv->ignore) == 0 &&
	       (recv->item.source == RVCM_MATCH_SOURCE_ANY || recv->item.source == source);
}

/* -- tables ------------------------------------------------------------------------------- */

static void table_init(struct rvcm_match_table *table, size_t offset)
{
	rvcm_list_init(&table->first);
	table->buckets = &table->first;
	table->mask = 0;
	table->count = 0;
	table->offset = offset;
}

static void table_fini(struct rvcm_match_table *table)
{
	if (table->buckets != &table->first)
		rvcm_mem_free(table->buckets);
}

/* Insert by age: at the end, but for a message that moves to another source. */
static void chain_insert(const struct rvcm_match_table *table, struct rvcm_list *head,
			 struct rvcm_list *link)
{
	uint64_t seq = item_of(table, link)->seq;
	struct rvcm_list *pos = head->prev;

	while (pos != head && item_of(table, pos)->seq > seq)
		pos = pos->prev;
	rvcm_list_add_head(pos, link);
}

static __attribute__((noinline)) void table_grow(struct rvcm_match *match,
						 const struct rvcm_match_class *class,
						 struct rvcm_match_table *table)
{
	uint64_t n = table->mask ? 2 * (table->mask + 1) : 32;
	struct rvcm_list *buckets = rvcm_mem_calloc(n, sizeof(*buckets));

	if (!buckets)
		return;
	for (uint64_t i = 0; i < n; i++)
		rvcm_list_init(&buckets[i]);
	/* Equal keys come out of one old chain, in order; so appending keeps them sorted. */
	for (uint64_t i = 0; i <= table->mask; i++) {
		struct rvcm_list *link;

		while ((link = rvcm_list_pop(&table->buckets[i]))) {
			struct rvcm_match_item *item = item_of(table, link);
			uint64_t h = rvcm_match_hash(match, class, item->tag, item->source);

			chain_insert(table, &buckets[h & (n - 1)], link);
		}
	}
	table_fini(table);
	table->buckets = buckets;
	table->mask = n - 1;
}

static void table_insert(struct rvcm_match *match, const struct rvcm_match_class *class,
			 struct rvcm_match_table *table, struct rvcm_list *link)
{
	const struct rvcm_match_item *item = item_of(table, link);

	if (table->count++ > table->mask)
		table_grow(match, class, table);
	chain_insert(table, rvcm_match_bucket(match, class, table, item->tag, item->source), link);
}

static void table_remove(struct rvcm_match_table *table, struct rvcm_list *link)
{
	rvcm_list_del(link);
	table->count--;
}

/* The oldest item with that key, or NULL. */
static inline struct rvcm_match_item *table_find(const struct rvcm_match *match,
						 const struct rvcm_match_class *class,
						 const struct rvcm_match_table *table, uint64_t tag,
						 uint64_t source)
{
	struct rvcm_list *head = rvcm_match_bucket(match, class, table, tag, source), *pos;

	rvcm_list_for_each (pos, head) {
		struct rvcm_match_item *item = item_of(table, pos);

		if (rvcm_match_equal(class, item, tag, source))
			return item;
	}
	return NULL;
}

/* -- classes ------------------------------------------------------------------------------ */

static void index_add(struct rvcm_match *match, uint32_t c, struct rvcm_match_msg *msg)
{
	struct rvcm_match_class *class = &match->classes[c];

	msg->indexed |= 1u << c;
	table_insert(match, class, &class->msgs, &msg->links[c]);
}

static void index_del(struct rvcm_match *match, uint32_t c, struct rvcm_match_msg *msg)
{
	msg->indexed &= ~(1u << c);
	table_remove(&match->classes[c].msgs, &msg->links[c]);
}

static void index_build(struct rvcm_match *match, uint32_t c)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &match->held)
		index_add(match, c, rvcm_match_msg_of(pos));
	match->classes[c].indexes = true;
}

static void index_dissolve(struct rvcm_match *match, uint32_t c)
{
	struct rvcm_list *pos;

	if (match->classes[c].indexes)
		rvcm_list_for_each (pos, &match->held)
			index_del(match, c, rvcm_match_msg_of(pos));
	match->classes[c].indexes = false;
}

/* A class that nobody needs: never used, or without receives. */
static uint32_t class_claim(struct rvcm_match *match)
{
	if (match->n_classes < RVCM_MATCH_CLASSES)
		return match->n_classes++;
	for (uint32_t c = 0; c < RVCM_MATCH_CLASSES; c++)
		if (match->classes[c].recvs.count == 0)
			return c;
	return RVCM_MATCH_CLASSES;
}

/* A class for the first receive of its kind; none: there are too many. */
static struct rvcm_match_class *class_new(struct rvcm_match *match,
					  const struct rvcm_match_recv *recv)
{
	uint32_t c = class_claim(match);
	struct rvcm_match_class *class = &match->classes[c];

	if (c == RVCM_MATCH_CLASSES)
		return &match->none;
	index_dissolve(match, c);
	class->care = ~recv->ignore;
	class->directed = recv->item.source != RVCM_MATCH_SOURCE_ANY;
	return class;
}

/* The class of a receive, or NULL: there is none yet. */
static struct rvcm_match_class *class_find(struct rvcm_match *match,
					   const struct rvcm_match_recv *recv)
{
	for (uint32_t c = 0; c < match->n_classes; c++)
		if (rvcm_match_is_of(&match->classes[c], recv))
			return &match->classes[c];
	return NULL;
}

/* The same, made if need be; none: there are too many. */
static struct rvcm_match_class *class_of(struct rvcm_match *match,
					 const struct rvcm_match_recv *recv)
{
	struct rvcm_match_class *class = class_find(match, recv);

	return class ? class : class_new(match, recv);
}

/* -- the door ----------------------------------------------------------------------------- */

void rvcm_match_init(struct rvcm_match *match, uint64_t seed)
{
	memset(match, 0, sizeof(*match));
	match->seeds[0] = seed;
	match->seeds[1] = rvcm_hash_mix(seed + 0x9e3779b97f4a7c15u) | 1;
	match->none.recvs.count = 1;
	match->recent = &match->none;
	rvcm_list_init(&match->overflow);
	rvcm_list_init(&match->posted);
	rvcm_list_init(&match->held);
	for (uint32_t c = 0; c < RVCM_MATCH_CLASSES; c++) {
		table_init(&match->classes[c].recvs, offsetof(struct rvcm_match_recv, link));
		table_init(&match->classes[c].msgs, msg_offset(c));
	}
}

void rvcm_match_fini(struct rvcm_match *match)
{
	for (uint32_t c = 0; c < RVCM_MATCH_CLASSES; c++) {
		table_fini(&match->classes[c].recvs);
		table_fini(&match->classes[c].msgs);
	}
}

static struct rvcm_match_msg *find_indexed(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	struct rvcm_match_class *class = recv->class;
	struct rvcm_match_item *item;

	if (!class->indexes)
		index_build(match, (uint32_t)(class - match->classes));
	item = table_find(match, class, &class->msgs, recv->item.tag, recv->item.source);
	return item ? msg_of_item(item) : NULL;
}

static struct rvcm_match_msg *find_held(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	struct rvcm_list *pos;

	if (rvcm_list_empty(&match->held))
		return NULL;
	if (recv->class != &match->none)
		return find_indexed(match, recv);
	rvcm_list_for_each (pos, &match->held) {
		struct rvcm_match_msg *msg = rvcm_match_msg_of(pos);

		if (recv_matches(recv, msg->item.tag, msg->item.source))
			return msg;
	}
	return NULL;
}

struct rvcm_match_msg *rvcm_match_peek(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	recv->class = class_of(match, recv);
	return find_held(match, recv);
}

struct rvcm_match_msg *rvcm_match_post_late(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	struct rvcm_match_msg *msg;

	recv->class = class_of(match, recv);
	match->recent = rvcm_list_empty(&match->held) ? recv->class : &match->none;
	msg = find_held(match, recv);
	if (msg) {
		rvcm_match_drop(match, msg);
		return msg;
	}
	rvcm_match_note(match, recv);
	if (recv->class != &match->none) {
		table_insert(match, recv->class, &recv->class->recvs, &recv->link);
		return NULL;
	}
	rvcm_list_add_tail(&match->overflow, &recv->link);
	match->none.recvs.count++;
	return NULL;
}

/* The oldest receive without a class that matches and is older than best. */
static __attribute__((noinline)) struct rvcm_match_recv *find_overflow(
	const struct rvcm_match *match, struct rvcm_match_recv *best, uint64_t tag, uint64_t source)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &match->overflow) {
		struct rvcm_match_recv *recv;

		recv = rvcm_container_of(pos, struct rvcm_match_recv, link);
		if (best && best->item.seq < recv->item.seq)
			break;
		if (recv_matches(recv, tag, source))
			return recv;
	}
	return best;
}

struct rvcm_match_recv *rvcm_match_find(const struct rvcm_match *match, uint64_t tag,
					uint64_t source)
{
	struct rvcm_match_recv *best = NULL;

	for (uint32_t c = 0; c < match->n_classes; c++) {
		struct rvcm_match_recv *recv;

		if (match->classes[c].recvs.count == 0)
			continue;
		recv = rvcm_match_first(match, &match->classes[c], tag, source);
		if (recv && (!best || recv->item.seq < best->item.seq))
			best = recv;
	}
	return rvcm_list_empty(&match->overflow) ? best : find_overflow(match, best, tag, source);
}

void rvcm_match_hold(struct rvcm_match *match, struct rvcm_match_msg *msg)
{
	match->recent = &match->none; /* no receive passes it by */
	msg->item.seq = ++match->seq;
	msg->indexed = 0;
	rvcm_list_add_tail(&match->held, &msg->item.all);
	for (uint32_t c = 0; c < match->n_classes; c++)
		if (match->classes[c].indexes)
			index_add(match, c, msg);
}

void rvcm_match_unpost(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	(void)match;
	rvcm_list_del(&recv->item.all);
	rvcm_list_del(&recv->link);
	recv->class->recvs.count--;
}

void rvcm_match_drop(struct rvcm_match *match, struct rvcm_match_msg *msg)
{
	for (uint32_t c = 0; c < match->n_classes; c++)
		if (msg->indexed & 1u << c)
			index_del(match, c, msg);
	rvcm_list_del(&msg->item.all);
	if (!rvcm_list_empty(&match->held))
		return;
	for (uint32_t c = 0; c < match->n_classes; c++)
		match->classes[c].indexes = false;
}

struct rvcm_match_recv *rvcm_match_move(struct rvcm_match *match, struct rvcm_match_msg *msg,
					uint64_t source)
{
	struct rvcm_match_recv *recv = rvcm_match_arrive(match, msg->item.tag, source);
	uint32_t indexed = msg->indexed;

	if (recv) {
		rvcm_match_drop(match, msg);
		return recv;
	}
	for (uint32_t c = 0; c < match->n_classes; c++)
		if (indexed & 1u << c)
			index_del(match, c, msg);
	msg->item.source = source;
	for (uint32_t c = 0; c < match->n_classes; c++)
		if (indexed & 1u << c)
			index_add(match, c, msg);
	return NULL;
}

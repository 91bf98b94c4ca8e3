/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked list, circular through its head. Head and node are the same struct; an
 * initialised node that is on no list points at itself, so rvcm_list_empty(&obj->node) tells
 * whether it is on one, and deleting it again does no harm. O(1) all of it, no allocation, no
 * locking.
 */
#ifndef RVCM_BASE_LIST_H
#define RVCM_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rvcm_list {
	struct rvcm_list *next;
	struct rvcm_list *prev;
};

/*
 * The object that ptr, pointing at its member, is embedded in. The conditional is never decided for
 * its second half: it makes the compiler refuse a ptr of another type.
 */
#define rvcm_container_of(ptr, type, member) \
	((type *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#define rvcm_list_entry(ptr, type, member) rvcm_container_of(ptr, type, member)

/* pos is a struct rvcm_list *. The body must not delete pos, or see for_each_safe. */
#define rvcm_list_for_each(pos, head) \
	for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)

/* The body may delete pos, but no other node. */
#define rvcm_list_for_each_safe(pos, tmp, head)                          \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

static inline void rvcm_list_init(struct rvcm_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool rvcm_list_empty(const struct rvcm_list *head)
{
	return head->next == head;
}

/* Insert node, which is on no list, between two neighbours. */
static inline void rvcm_list_add_between(struct rvcm_list *node, struct rvcm_list *prev,
					 struct rvcm_list *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}

static inline void rvcm_list_add_head(struct rvcm_list *head, struct rvcm_list *node)
{
	rvcm_list_add_between(node, head, head->next);
}

static inline void rvcm_list_add_tail(struct rvcm_list *head, struct rvcm_list *node)
{
	rvcm_list_add_between(node, head->prev, head);
}

/* Take node off its list. It is as if it had never been initialised. */
static inline void rvcm_list_cut(struct rvcm_list *node)
{
	struct rvcm_list *next = node->next, *prev = node->prev;

	prev->next = next;
	next->prev = prev;
}

/* Take node off its list, if it is on one, and initialise it. */
static inline void rvcm_list_del(struct rvcm_list *node)
{
	rvcm_list_cut(node);
	rvcm_list_init(node);
}

/* The first node, or NULL if the list is empty. */
static inline struct rvcm_list *rvcm_list_first(const struct rvcm_list *head)
{
	return rvcm_list_empty(head) ? NULL : head->next;
}

/* Take the first node off, or return NULL if the list is empty. */
static inline struct rvcm_list *rvcm_list_pop(struct rvcm_list *head)
{
	struct rvcm_list *node = rvcm_list_first(head);

	if (node)
		rvcm_list_del(node);
	return node;
}

/* Move all of from behind the last node of head, in order; from is empty afterwards. */
static inline void rvcm_list_splice_tail(struct rvcm_list *head, struct rvcm_list *from)
{
	if (rvcm_list_empty(from))
		return;
	from->next->prev = head->prev;
	head->prev->next = from->next;
	from->prev->next = head;
	head->prev = from->prev;
	rvcm_list_init(from);
}

#endif

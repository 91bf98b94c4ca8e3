/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: posted receives against messages that arrived, both in order.
 *
 * A receive says {tag, ignore, source or any}; a message has {tag, source}. It matches if the bits
 * of the tags that the receive does not ignore are equal and the source is the same or any. Of
 * several posted receives that match a message the oldest takes it; of several held messages that
 * match a receive the oldest is taken (MPI 3.1, 3.5; FI_ORDER_SAS of fi_endpoint(3)).
 *
 * Receives that ignore the same bits, and name a source or do not, are a class. Within a class
 * equality of the remaining bits decides, so a hash finds the oldest match; an arrival asks each
 * class and takes the oldest of the answers. Real applications use a handful of masks, but rarely
 * none at all: Open MPI's MTL ignores a bit in every receive, so that hashing exact receives only
 * would hash nothing. Held messages are indexed for a class when it first asks while there are any;
 * from then on each new one is. The ninth class at the same time lives in a list that is searched.
 *
 * Everything is intrusive and the memory is the caller's; only the tables grow, and if the memory
 * for that is not there the chains get longer. So nothing here can fail.
 */
#ifndef RVCM_PROTO_MATCH_H
#define RVCM_PROTO_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"

#define RVCM_MATCH_CLASSES    8u
#define RVCM_MATCH_SOURCE_ANY UINT64_MAX

/* What receives and messages have in common. */
struct rvcm_match_item {
	uint64_t tag;
	uint64_t source; /* a receive's may be RVCM_MATCH_SOURCE_ANY */
	uint64_t seq;    /* age: of a receive when posted, of a message when held */
	struct rvcm_list all;
};

struct rvcm_match_class;

/* Part of a receive. The caller sets item.tag, item.source, ignore and stays. */
struct rvcm_match_recv {
	struct rvcm_match_item item;
	uint64_t ignore;
	struct rvcm_list link;
	struct rvcm_match_class *class; /* match.none: in the list */
	bool stays; /* matching does not take it: the caller unposts it when it is used up */
};

/* Part of a message that no receive has matched. The caller sets item.tag and item.source. */
struct rvcm_match_msg {
	struct rvcm_match_item item;
	struct rvcm_list links[RVCM_MATCH_CLASSES];
	uint32_t indexed; /* bit c: links[c] is in use */
};

/* Queues by key: chains are in order of age, so the first that is equal is the oldest. */
struct rvcm_match_table {
	struct rvcm_list *buckets; /* mask + 1 of them; &first until the first growth */
	struct rvcm_list first;
	uint64_t mask;
	uint64_t count;
	size_t offset; /* from a link back to its struct rvcm_match_item */
};

struct rvcm_match_class {
	uint64_t care; /* the bits of a tag that are not ignored */
	bool directed;
	bool indexes; /* every held message is in msgs */
	struct rvcm_match_table recvs;
	struct rvcm_match_table msgs;
};

struct rvcm_match {
	struct rvcm_match_class classes[RVCM_MATCH_CLASSES];
	uint32_t n_classes; /* classes[n_classes ..] have never been used */
	/* Of receives in the list, and of none: full, so that nothing is posted to it at once. */
	struct rvcm_match_class none;
	/* Of the last receive, a guess at the next one's; none if messages are held. */
	struct rvcm_match_class *recent;
	struct rvcm_list overflow; /* receives without a class, oldest first, by link */
	struct rvcm_list posted;   /* all receives, oldest first, by item.all */
	struct rvcm_list held;     /* all messages, oldest first, by item.all */
	uint64_t seq;
	uint64_t seeds[2]; /* of the hash: base/hash.h, fold */
};

/* seed: see base/hash.h. The struct must not be moved while initialised. */
void rvcm_match_init(struct rvcm_match *match, uint64_t seed);

/* Forgets what is posted and held; that memory is the caller's. */
void rvcm_match_fini(struct rvcm_match *match);

/* Find the oldest held message that recv, which is not posted, would match, or NULL. */
struct rvcm_match_msg *rvcm_match_peek(struct rvcm_match *match, struct rvcm_match_recv *recv);

/* Hold a message for which rvcm_match_arrive gave NULL. */
void rvcm_match_hold(struct rvcm_match *match, struct rvcm_match_msg *msg);

/* Take back a posted receive. */
void rvcm_match_unpost(struct rvcm_match *match, struct rvcm_match_recv *recv);

/* Take back a held message. */
void rvcm_match_drop(struct rvcm_match *match, struct rvcm_match_msg *msg);

/*
 * The source of a held message has another number now. If a posted receive matches it, both are
 * taken and the receive is returned; else NULL, and the message keeps its age.
 */
struct rvcm_match_recv *rvcm_match_move(struct rvcm_match *match, struct rvcm_match_msg *msg,
					uint64_t source);

/* -- the common case --------------------------------------------------------------------- */

static inline uint64_t rvcm_match_hash(const struct rvcm_match *match,
				       const struct rvcm_match_class *class, uint64_t tag,
				       uint64_t source)
{
	return rvcm_hash_fold((tag & class->care) ^ match->seeds[0],
			      (class->directed ? source : 0) ^ match->seeds[1]);
}

/* A table with one item has one bucket, and needs no hash. */
static inline struct rvcm_list *rvcm_match_bucket(const struct rvcm_match *match,
						  const struct rvcm_match_class *class,
						  const struct rvcm_match_table *table,
						  uint64_t tag, uint64_t source)
{
	if (!table->mask)
		return table->buckets;
	return &table->buckets[rvcm_match_hash(match, class, tag, source) & table->mask];
}

static inline bool rvcm_match_equal(const struct rvcm_match_class *class,
				    const struct rvcm_match_item *item, uint64_t tag,
				    uint64_t source)
{
	return ((item->tag ^ tag) & class->care) == 0 &&
	       (!class->directed || item->source == source);
}

static inline bool rvcm_match_is_of(const struct rvcm_match_class *class,
				    const struct rvcm_match_recv *recv)
{
	bool directed = recv->item.source != RVCM_MATCH_SOURCE_ANY;

	return class->care == ~recv->ignore && class->directed == directed;
}

/* It is the youngest receive of all. */
static inline void rvcm_match_note(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	recv->item.seq = ++match->seq;
	rvcm_list_add_tail(&match->posted, &recv->item.all);
}

/* rvcm_match_post, whatever there is. */
struct rvcm_match_msg *rvcm_match_post_late(struct rvcm_match *match, struct rvcm_match_recv *recv);

/* Post recv, if no message is held, it is of the class of the last one, and its table not full. */
static inline bool rvcm_match_post_at_once(struct rvcm_match *match, struct rvcm_match_recv *recv)
{
	struct rvcm_match_class *class = match->recent;
	uint64_t tag = recv->item.tag, source = recv->item.source;

	if (!rvcm_match_is_of(class, recv) || class->recvs.count > class->recvs.mask)
		return false;
	recv->class = class;
	rvcm_match_note(match, recv);
	class->recvs.count++;
	rvcm_list_add_tail(rvcm_match_bucket(match, class, &class->recvs, tag, source),
			   &recv->link);
	return true;
}

/* Take the oldest held message that recv matches, or post recv and return NULL. */
static inline struct rvcm_match_msg *rvcm_match_post(struct rvcm_match *match,
						     struct rvcm_match_recv *recv)
{
	return rvcm_match_post_at_once(match, recv) ? NULL : rvcm_match_post_late(match, recv);
}

/* The oldest posted receive of the class that matches, or NULL. */
static inline struct rvcm_match_recv *rvcm_match_first(const struct rvcm_match *match,
						       const struct rvcm_match_class *class,
						       uint64_t tag, uint64_t source)
{
	struct rvcm_list *head = rvcm_match_bucket(match, class, &class->recvs, tag, source);
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, head) {
		struct rvcm_match_recv *recv = rvcm_container_of(pos, struct rvcm_match_recv, link);

		if (rvcm_match_equal(class, &recv->item, tag, source))
			return recv;
	}
	return NULL;
}

/* The same of all classes. */
struct rvcm_match_recv *rvcm_match_find(const struct rvcm_match *match, uint64_t tag,
					uint64_t source);

/* Are all posted receives of classes[0]? Those that are of none are there only after eight. */
static inline bool rvcm_match_is_simple(const struct rvcm_match *match)
{
	return match->n_classes == 1;
}

/* The oldest posted receive that matches, or NULL. */
static inline struct rvcm_match_recv *rvcm_match_look(const struct rvcm_match *match, uint64_t tag,
						      uint64_t source)
{
	if (rvcm_match_is_simple(match))
		return rvcm_match_first(match, &match->classes[0], tag, source);
	return rvcm_match_find(match, tag, source);
}

/* Take a posted receive. */
static inline void rvcm_match_take(struct rvcm_match_recv *recv)
{
	rvcm_list_cut(&recv->item.all);
	rvcm_list_cut(&recv->link);
	recv->class->recvs.count--;
}

/* Take the oldest posted receive that matches, unless it stays, or return NULL. */
static inline struct rvcm_match_recv *rvcm_match_arrive(const struct rvcm_match *match,
							uint64_t tag, uint64_t source)
{
	struct rvcm_match_recv *recv = rvcm_match_look(match, tag, source);

	if (recv && !recv->stays)
		rvcm_match_take(recv);
	return recv;
}

static inline struct rvcm_match_recv *rvcm_match_recv_of(struct rvcm_list *all)
{
	return rvcm_container_of(all, struct rvcm_match_recv, item.all);
}

static inline struct rvcm_match_msg *rvcm_match_msg_of(struct rvcm_list *all)
{
	return rvcm_container_of(all, struct rvcm_match_msg, item.all);
}

#endif

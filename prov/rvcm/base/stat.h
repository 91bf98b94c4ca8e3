/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: plain uint64_t fields of a struct, described by a table, both made from one .def file:
 *
 *   RVCM_STAT(tx_msgs, COUNTER, "messages sent")            in foo_stat.def
 *
 *   struct foo_stat {                                       in foo.h
 *   #define RVCM_STAT RVCM_STAT_FIELD
 *   #include "conn/foo_stat.def"
 *   #undef RVCM_STAT
 *   };
 *
 *   static const struct rvcm_stat_desc descs[] = {          in foo.c
 *   #define RVCM_STAT RVCM_STAT_DESC
 *   ...
 *
 * So the struct is an array of uint64_t in the order of its table.
 *
 * One thread writes a field (or writers are serialised); any thread may read it at any time. Stores
 * and loads are relaxed atomics: a plain add, an untorn value, no order between fields.
 */
#ifndef RVCM_BASE_STAT_H
#define RVCM_BASE_STAT_H

#include <stddef.h>
#include <stdint.h>

enum rvcm_stat_kind {
	RVCM_STAT_COUNTER, /* only grows */
	RVCM_STAT_GAUGE,   /* a level: goes up and down */
	RVCM_STAT_MAX,     /* the highest value so far */
};

struct rvcm_stat_desc {
	const char *name;
	enum rvcm_stat_kind kind;
	const char *help;
};

#define RVCM_STAT_FIELD(name, kind, help) uint64_t name;
#define RVCM_STAT_DESC(name, kind, help)  { #name, RVCM_STAT_##kind, help },

static inline uint64_t rvcm_stat_get(const uint64_t *stat)
{
	return __atomic_load_n(stat, __ATOMIC_RELAXED);
}

static inline void rvcm_stat_set(uint64_t *stat, uint64_t value)
{
	__atomic_store_n(stat, value, __ATOMIC_RELAXED);
}

/* Only the writer changes the field, so that its own plain read is no race. */
static inline void rvcm_stat_add(uint64_t *stat, uint64_t n)
{
	rvcm_stat_set(stat, *stat + n);
}

static inline void rvcm_stat_sub(uint64_t *stat, uint64_t n)
{
	rvcm_stat_set(stat, *stat - n);
}

static inline void rvcm_stat_inc(uint64_t *stat)
{
	rvcm_stat_add(stat, 1);
}

static inline void rvcm_stat_dec(uint64_t *stat)
{
	rvcm_stat_sub(stat, 1);
}

static inline void rvcm_stat_max(uint64_t *stat, uint64_t value)
{
	if (value > *stat)
		rvcm_stat_set(stat, value);
}

/* Read n fields, while their writer goes on. */
void rvcm_stat_copy(uint64_t *to, const uint64_t *from, size_t n);

/* Add from to total, field by field: counters and gauges add up, of a MAX the greater stays. */
void rvcm_stat_sum(uint64_t *total, const uint64_t *from, const struct rvcm_stat_desc *descs,
		   size_t n);

/*
 * "name value\n" for each field, NUL-terminated if len > 0. Returns the length without NUL that all
 * of it has; it was cut if that is >= len.
 */
size_t rvcm_stat_format(char *buf, size_t len, const uint64_t *stats,
			const struct rvcm_stat_desc *descs, size_t n);

#endif

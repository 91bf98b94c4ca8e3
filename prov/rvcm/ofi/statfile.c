/* SPDX-License-Identifier: BSD-2-Clause */
/* The totals are of the process and outlive its domains, so they are the one state of this file. */
#include "config.h"

#include "ofi/statfile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

struct row {
	const char *name;
	size_t offset;
};

static const struct row ep_rows[] = {
#define RVCM_STAT_EP(name, meaning) { #name, offsetof(struct rvcm_ep_stats, name) },
#define RVCM_STAT_CARRIER(name, meaning)
#define RVCM_STAT_DEV(name)
#include "ofi/stats.def"
#undef RVCM_STAT_EP
#undef RVCM_STAT_CARRIER
#undef RVCM_STAT_DEV
};

static const struct row carrier_rows[] = {
#define RVCM_STAT_EP(name, meaning)
#define RVCM_STAT_CARRIER(name, meaning) { #name, offsetof(struct rvcm_carrier_stats, name) },
#define RVCM_STAT_DEV(name)
#include "ofi/stats.def"
#undef RVCM_STAT_EP
#undef RVCM_STAT_CARRIER
#undef RVCM_STAT_DEV
};

static const struct row dev_rows[] = {
#define RVCM_STAT_EP(name, meaning)
#define RVCM_STAT_CARRIER(name, meaning)
#define RVCM_STAT_DEV(name) { #name, offsetof(struct rvcm_carrier_dev_stats, name) },
#include "ofi/stats.def"
#undef RVCM_STAT_EP
#undef RVCM_STAT_CARRIER
#undef RVCM_STAT_DEV
};

#define EP_COUNT      (sizeof(ep_rows) / sizeof(ep_rows[0]))
#define CARRIER_COUNT (sizeof(carrier_rows) / sizeof(carrier_rows[0]))
#define DEV_COUNT     (sizeof(dev_rows) / sizeof(dev_rows[0]))

_Static_assert(EP_COUNT == sizeof(struct rvcm_ep_stats) / sizeof(uint64_t), "one is left out");
_Static_assert(CARRIER_COUNT == sizeof(struct rvcm_carrier_stats) / sizeof(uint64_t),
	       "one is left out");
_Static_assert(DEV_COUNT == sizeof(struct rvcm_carrier_dev_stats) / sizeof(uint64_t),
	       "one is left out");

#define NAME_BYTES sizeof(((struct rvcm_dev_attr *)NULL)->name)
#define DEVS_MAX   32 /* by name, in a process; further ones are counted together */

struct dev_total {
	char name[NAME_BYTES];
	uint64_t of[DEV_COUNT];
};

static struct {
	pthread_mutex_t lock;
	uint64_t ep[EP_COUNT];
	uint64_t carrier[CARRIER_COUNT];
	uint64_t mr[RVCM_MR_STATS];
	struct dev_total devs[DEVS_MAX];
	uint32_t n_devs;
	bool told; /* that they cannot be written: every endpoint and domain would find that */
} totals = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static uint64_t field(const void *stats, const struct row *row)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + row->offset, sizeof(value));
	return value;
}

/* The device of that name: the same one, should it be opened again. */
static struct dev_total *dev_total(const char *name)
{
	uint32_t i = 0;

	while (i < totals.n_devs && strcmp(totals.devs[i].name, name))
		i++;
	if (i == DEVS_MAX) {
		i = DEVS_MAX - 1;
		name = "others";
	}
	snprintf(totals.devs[i].name, sizeof(totals.devs[i].name), "%s", name);
	if (i == totals.n_devs)
		totals.n_devs++;
	return &totals.devs[i];
}

static void count_devs(struct rvcm_carrier *carrier, struct rvcm_carrier_dev_stats *counted)
{
	const char *name;

	for (uint32_t i = 0; (name = rvcm_carrier_dev_name(carrier, i)); i++) {
		struct dev_total *total = dev_total(name);
		struct rvcm_carrier_dev_stats now;

		rvcm_carrier_dev_stats(carrier, i, &now);
		for (size_t k = 0; k < DEV_COUNT; k++)
			total->of[k] +=
				field(&now, &dev_rows[k]) - field(&counted[i], &dev_rows[k]);
		counted[i] = now;
	}
}

static void count_carrier(struct rvcm_carrier *carrier, struct rvcm_carrier_stats *counted)
{
	struct rvcm_carrier_stats now;

	rvcm_carrier_stats(carrier, &now);
	for (size_t i = 0; i < CARRIER_COUNT; i++)
		totals.carrier[i] +=
			field(&now, &carrier_rows[i]) - field(counted, &carrier_rows[i]);
	*counted = now;
}

/* A level is counted by how it has changed, so that of all domains they add up; a maximum stays. */
static void count_mr(struct rvcm_mr_domain *mr, struct rvcm_mr_stats *counted)
{
	struct rvcm_mr_stats now;
	uint64_t *from = (uint64_t *)counted, *to = (uint64_t *)&now;

	rvcm_mr_stats(mr, &now);
	for (size_t i = 0; i < RVCM_MR_STATS; i++) {
		if (rvcm_mr_stat_descs[i].kind == RVCM_STAT_MAX)
			rvcm_stat_max(&totals.mr[i], to[i]);
		else
			totals.mr[i] += to[i] - from[i];
	}
	*counted = now;
}

/* Add to the totals what the engine has done since it was last counted. Under lock. */
static void count_engine(struct rvcm_engine *engine, struct rvcm_statfile_counted *counted)
{
	count_carrier(rvcm_engine_carrier(engine), &counted->carrier);
	count_devs(rvcm_engine_carrier(engine), counted->devs);
	count_mr(rvcm_engine_mr(engine), &counted->mr);
}

static bool print_mr(FILE *file)
{
	for (size_t i = 0; i < RVCM_MR_STATS; i++) {
		if (fprintf(file, "mr_%s %" PRIu64 "\n", rvcm_mr_stat_descs[i].name, totals.mr[i]) <
		    0)
			return false;
	}
	return true;
}

/* of: whose they are, with a point behind; "" = of all. */
static bool print(FILE *file, const char *of, const uint64_t *total, const struct row *rows,
		  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fprintf(file, "%s%s %" PRIu64 "\n", of, rows[i].name, total[i]) < 0)
			return false;
	}
	return true;
}

static bool print_devs(FILE *file)
{
	bool good = true;

	for (uint32_t i = 0; i < totals.n_devs && good; i++) {
		char of[NAME_BYTES + 1];

		snprintf(of, sizeof(of), "%s.", totals.devs[i].name);
		good = print(file, of, totals.devs[i].of, dev_rows, DEV_COUNT);
	}
	return good;
}

/* Write it beside and rename it: whoever reads sees the old file or the new one. */
static int write_file(const char *name, const char *beside)
{
	FILE *file = fopen(beside, "we");
	bool good;

	if (!file)
		return -errno;
	good = print(file, "", totals.ep, ep_rows, EP_COUNT) &&
	       print(file, "", totals.carrier, carrier_rows, CARRIER_COUNT) && print_mr(file) &&
	       print_devs(file);
	if (fclose(file) || !good || rename(beside, name)) {
		int rc = -errno;

		unlink(beside);
		return rc;
	}
	return 0;
}

/* Under lock. */
static void publish(const char *prefix)
{
	char name[PATH_MAX], beside[PATH_MAX + 8];
	int rc = -ENAMETOOLONG;

	if (snprintf(name, sizeof(name), "%s.%d", prefix, (int)getpid()) < (int)sizeof(name)) {
		snprintf(beside, sizeof(beside), "%s.tmp", name);
		rc = write_file(name, beside);
	}
	if (rc && !totals.told)
		rvcm_warn(RVCM_LOG_CORE, "FI_RVCM_STATS: %s.%d cannot be written: %s", prefix,
			  (int)getpid(), strerror(-rc));
	totals.told = rc != 0;
}

void rvcm_statfile_endpoint(const struct rvcm_ep *ep, struct rvcm_engine *engine,
			    struct rvcm_statfile_counted *counted, const char *prefix)
{
	struct rvcm_ep_stats stats;

	if (!prefix)
		return;
	rvcm_ep_stats(ep, &stats);
	pthread_mutex_lock(&totals.lock);
	for (size_t i = 0; i < EP_COUNT; i++)
		totals.ep[i] += field(&stats, &ep_rows[i]);
	count_engine(engine, counted);
	publish(prefix);
	pthread_mutex_unlock(&totals.lock);
}

void rvcm_statfile_domain(struct rvcm_engine *engine, struct rvcm_statfile_counted *counted,
			  const char *prefix)
{
	if (!prefix)
		return;
	pthread_mutex_lock(&totals.lock);
	count_engine(engine, counted);
	publish(prefix);
	pthread_mutex_unlock(&totals.lock);
}

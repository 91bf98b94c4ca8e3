/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_domain: one device, perhaps another that stands in for it, one engine, and the lock
 * that serialises its data side.
 *
 * Locks, in the order in which they may be taken: domain.lock (off if the application serialises,
 * FI_THREAD_DOMAIN, and there is no progress thread); what conn locks inside; control.c's list lock
 * is never taken under either.
 *
 * Sleeping. Who sleeps on the data side arms the devices first, and whoever makes progress takes
 * their events away: so it wakes all sleepers, who look again. wake_data (mail from the control
 * side) is an eventfd in everybody's epoll set.
 */
#ifndef RVCM_OFI_DOMAIN_H
#define RVCM_OFI_DOMAIN_H

#include <stdatomic.h>

#include <rdma/fi_domain.h>

#include "base/list.h"
#include "base/lock.h"
#include "ofi/control.h"
#include "ofi/fabric.h"
#include "ofi/mrkey.h"
#include "ofi/offer.h"
#include "ofi/statfile.h"
#include "proto/proto.h"

#define RVCM_DOMAIN_DEVS_MAX 2

struct rvcm_progress;

struct rvcm_domain {
	struct fid_domain fid;
	struct rvcm_fabric *fabric;
	atomic_uint refs; /* endpoints, queues, vectors, registrations */
	struct rvcm_lock lock;
	struct rvcm_engine *engine;   /* under lock */
	struct rvcm_carrier *carrier; /* the engine's */
	struct rvcm_dev *devs[RVCM_DOMAIN_DEVS_MAX];
	uint32_t n_devs;           /* the second is for peers that the first does not reach */
	struct rvcm_device device; /* what the first was opened as */
	struct rvcm_offer offer;   /* all that it can do */
	struct rvcm_control control;
	struct rvcm_progress *progress; /* FI_PROGRESS_AUTO, or NULL */
	struct rvcm_list sleepers;      /* struct rvcm_sleeper, under lock */
	int wake_event;                 /* eventfd: mail for the data side */
	int data_epoll;                 /* wake_event and the devices' data fds */
	uint32_t addr_format;
	uint32_t tclass; /* FI_TC_*, of all its packets */
	size_t tx_size;
	size_t rx_size;
	struct rvcm_mrkey_table keys;         /* of memory registrations, under lock */
	bool register_early;                  /* FI_MR_ALLOCATED: their pages are there */
	bool by_address;                      /* FI_MR_VIRT_ADDR: that is what peers call them */
	struct rvcm_statfile_counted counted; /* statfile.c's */
	struct rvcm_monitor *monitor;         /* mrcache.c's */
	char *stats;                          /* FI_RVCM_STATS, or NULL */
};

/* Somebody who waits for completions. On domain.sleepers while asleep. */
struct rvcm_sleeper {
	struct rvcm_list link;
	int event; /* eventfd that wakes it */
};

/* fi_domain(3). */
int rvcm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		     void *context);

/*
 * Does an info that the application hands in, to open an object called what, ask for no more than
 * is offered? -FI_EINVAL, with the reason at warn level, if it does: it may not be what fi_getinfo
 * gave.
 */
int rvcm_domain_check(const struct rvcm_domain *domain, const struct fi_info *info,
		      const char *what);

/* Wake one sleeper; it is off the list then. Under lock. */
void rvcm_domain_wake(struct rvcm_sleeper *sleeper);

/* Wake everybody; they look again. Under lock. */
void rvcm_domain_wake_sleepers(struct rvcm_domain *domain);

/*
 * Arm the devices before sleeping. False: there is something to do already, do not sleep. Under
 * lock.
 */
bool rvcm_domain_arm(struct rvcm_domain *domain);

/* Sleep until there is something to do, at most so long. The lock is released meanwhile. */
void rvcm_domain_sleep(struct rvcm_domain *domain, int timeout_ms);

static inline struct rvcm_domain *rvcm_domain_of(struct fid_domain *fid)
{
	return (struct rvcm_domain *)fid;
}

/* Move the engine on once. Under lock. */
static inline void rvcm_domain_progress(struct rvcm_domain *domain)
{
	if (rvcm_engine_progress(domain->engine) > 0 && !rvcm_list_empty(&domain->sleepers))
		rvcm_domain_wake_sleepers(domain);
}

#endif

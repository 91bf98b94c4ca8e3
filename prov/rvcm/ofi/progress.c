/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/progress.h"

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "ofi/control.h"
#include "ofi/cqwait.h"

struct rvcm_progress {
	struct rvcm_domain *domain;
	struct rvcm_cqwait wait;
	pthread_t id;
	bool stop; /* under domain.lock */
};

static void *progress_main(void *arg)
{
	struct rvcm_progress *progress = arg;
	struct rvcm_domain *domain = progress->domain;

	rvcm_lock_acquire(&domain->lock);
	while (!progress->stop) {
		rvcm_domain_progress(domain);
		rvcm_cqwait_nap(&progress->wait, -1);
	}
	rvcm_lock_release(&domain->lock);
	return NULL;
}

int rvcm_progress_start(struct rvcm_domain *domain, struct rvcm_progress **out)
{
	struct rvcm_progress *progress = rvcm_mem_zalloc(sizeof(*progress));
	int rc;

	if (!progress)
		return -ENOMEM;
	progress->domain = domain;
	rc = rvcm_cqwait_open(&progress->wait, domain);
	if (rc)
		goto err_free;
	rc = rvcm_control_thread(&progress->id, progress_main, progress, "rvcm-progress");
	if (rc) {
		rvcm_warn(RVCM_LOG_DOMAIN, "cannot start a progress thread: %s", strerror(-rc));
		goto err_close;
	}
	*out = progress;
	return 0;

err_close:
	rvcm_cqwait_close(&progress->wait);
err_free:
	rvcm_mem_free(progress);
	return rc;
}

void rvcm_progress_forget(struct rvcm_progress *progress)
{
	if (!progress)
		return;
	rvcm_cqwait_close(&progress->wait);
	rvcm_mem_free(progress);
}

void rvcm_progress_stop(struct rvcm_progress *progress)
{
	if (!progress)
		return;
	rvcm_lock_acquire(&progress->domain->lock);
	progress->stop = true;
	rvcm_domain_wake_sleepers(progress->domain);
	rvcm_lock_release(&progress->domain->lock);
	pthread_join(progress->id, NULL);
	rvcm_progress_forget(progress);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PROGRESS_AUTO for data (fi_domain(3)): a thread of the domain's that moves it on when the
 * application does not. It sleeps in epoll while there is nothing to do; an application that makes
 * progress itself as well wakes it, so that the devices are armed again.
 */
#ifndef RVCM_OFI_PROGRESS_H
#define RVCM_OFI_PROGRESS_H

#include "ofi/domain.h"

/* Start the domain's thread. -ENOMEM, -EMFILE, -EAGAIN (no thread). */
int rvcm_progress_start(struct rvcm_domain *domain, struct rvcm_progress **progress);

/* Stop it and wait for its end. NULL is fine. Nobody else uses the domain any more. */
void rvcm_progress_stop(struct rvcm_progress *progress);

/* In a child of a fork, where the thread is not: give back what is its. NULL is fine. */
void rvcm_progress_forget(struct rvcm_progress *progress);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux's siw gives each queue a place in its context's file, to be mapped, and the place 0x90000
 * means "none" to its library (rdma/siw-abi.h, SIW_INVAL_UOBJ_KEY). Places are pages, lowest first:
 * so whatever queue comes to begin at page 0x90 cannot be had, and as its page is free again
 * afterwards, nor can the next. That was a context's 71st queue pair of its own 16 receives, the
 * 141st with a shared queue. A completion queue that is opened first, and lies across that page,
 * leaves all that comes later beyond it.
 *
 * And of a receive it does not remember that it was solicited (siw_qp.c, siw_rqe_complete): who
 * sleeps for such ones only would not be woken.
 */
#include <errno.h>

#include <rdma/siw-abi.h>

#include "dev/verbs/verbs_impl.h"

#define SIW_VENDOR_ID 0x626d74 /* "bmt": linux/drivers/infiniband/sw/siw/siw.h */
#define SIW_CQES      32768

_Static_assert(SIW_CQES * sizeof(struct siw_cqe) > SIW_INVAL_UOBJ_KEY + 4096,
	       "it lies across that page");

int rvcm_verbs_siw_pass(struct rvcm_verbs_dev *dev)
{
	if (!dev->iwarp || dev->limits.vendor_id != SIW_VENDOR_ID)
		return 0;
	dev->wakes_all = true;
	dev->across = ibv_create_cq(dev->ctx, SIW_CQES, NULL, NULL, 0);
	return dev->across ? 0 : -ENOMEM;
}

void rvcm_verbs_siw_release(struct rvcm_verbs_dev *dev)
{
	if (dev->across)
		(void)ibv_destroy_cq(dev->across); /* nobody uses it */
	dev->across = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that make a call which waits. Linux's siw connects its TCP socket within rdma_connect: to
 * a host that answers nothing that takes two minutes, and control has others to see to. So on iWARP
 * devices a thread calls, a few at most, each as long as there is something to call; control hears
 * of it by dev->wake, and goes on as if it had called.
 *
 * While a call is under way its id and its ibv_qp must stay, whatever becomes of the attempt: they
 * are orphans then (orphan.c). And so must the device: of one that is closed meanwhile the last
 * thread releases what is left, as nobody else sees it any more.
 *
 * Who waits so can be woken by a signal only, and those are the application's: so a process that
 * ends takes its threads along, and rvcm is never unloaded (-z nodelete).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "dev/verbs/verbs_impl.h"

#define CALLERS_MAX 32u /* of a device; more attempts wait for their turn, or their time-out */

struct rvcm_verbs_call {
	struct rvcm_list node; /* dev->calls or dev->called, under dev->lock; or on none */
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t private_data[RVCM_VERBS_PRIVATE_BYTES_MAX];
	bool begun; /* under dev->lock */
	int rc;

	/* Control's. */
	struct rvcm_verbs_qp *qp;         /* whose attempt it is; or */
	struct rvcm_verbs_orphan *orphan; /* what is left of it; NULL both: nothing */
};

/* The next; NULL: there is none, and this thread does not count any more. */
static struct rvcm_verbs_call *caller_next(struct rvcm_verbs_dev *dev, bool *last)
{
	struct rvcm_verbs_call *call = NULL;
	struct rvcm_list *node;

	rvcm_lock_acquire(&dev->lock);
	node = rvcm_list_pop(&dev->calls);
	if (node) {
		call = rvcm_list_entry(node, struct rvcm_verbs_call, node);
		call->begun = true;
	} else {
		dev->callers--;
		*last = dev->closed && !dev->callers;
	}
	rvcm_lock_release(&dev->lock);
	return call;
}

static void *caller_main(void *arg)
{
	struct rvcm_verbs_dev *dev = arg;
	struct rvcm_verbs_call *call;
	bool last = false;

	while ((call = caller_next(dev, &last))) {
		call->rc = rdma_connect(call->id, &call->param) ? -errno : 0;
		rvcm_lock_acquire(&dev->lock);
		rvcm_list_add_tail(&dev->called, &call->node);
		rvcm_lock_release(&dev->lock);
		rvcm_verbs_cm_wake(dev);
	}
	if (last)
		rvcm_verbs_close_rest(dev);
	return NULL;
}

/* The application's signals are not for it. */
static int caller_start(struct rvcm_verbs_dev *dev)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, caller_main, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	pthread_setname_np(thread, "rvcm-connect");
	pthread_detach(thread);
	return 0;
}

/* One more, unless there are enough: a call waits. The last error counts if there is none at all.
 */
static int caller_more(struct rvcm_verbs_dev *dev)
{
	bool enough;
	int rc;

	rvcm_lock_acquire(&dev->lock);
	enough = dev->callers == CALLERS_MAX;
	if (!enough)
		dev->callers++;
	rvcm_lock_release(&dev->lock);
	if (enough)
		return 0;
	rc = caller_start(dev);
	if (!rc)
		return 0;
	rvcm_lock_acquire(&dev->lock);
	dev->callers--;
	if (dev->callers)
		rc = 0;
	rvcm_lock_release(&dev->lock);
	return rc;
}

int rvcm_verbs_caller_connect(struct rvcm_verbs_qp *qp, const struct rdma_conn_param *param)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct rvcm_verbs_call *call = rvcm_mem_zalloc(sizeof(*call));
	int rc;

	if (!call)
		return -ENOMEM;
	call->id = qp->id;
	call->qp = qp;
	call->param = *param;
	if (param->private_data_len)
		memcpy(call->private_data, param->private_data, param->private_data_len);
	call->param.private_data = call->private_data;
	qp->call = call;
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->calls, &call->node);
	rvcm_lock_release(&dev->lock);
	rc = caller_more(dev);
	if (rc)
		rvcm_verbs_caller_withdraw(qp); /* nobody has begun it */
	return rc;
}

void rvcm_verbs_caller_withdraw(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct rvcm_verbs_call *call = qp->call;
	bool begun;

	if (!call)
		return;
	rvcm_lock_acquire(&dev->lock);
	begun = call->begun;
	if (!begun)
		rvcm_list_del(&call->node);
	rvcm_lock_release(&dev->lock);
	if (begun)
		return;
	qp->call = NULL;
	qp->unanswered = false;
	rvcm_mem_free(call);
}

bool rvcm_verbs_caller_hand_over(struct rvcm_verbs_qp *qp, struct rvcm_verbs_orphan *orphan)
{
	struct rvcm_verbs_call *call = qp->call;

	if (!call)
		return false;
	qp->call = NULL;
	call->qp = NULL;
	call->orphan = orphan;
	return true;
}

static void caller_result(struct rvcm_verbs_call *call)
{
	if (call->orphan)
		rvcm_verbs_orphan_called(call->orphan, call->rc);
	if (call->qp)
		call->qp->call = NULL;
	if (call->qp && call->rc)
		rvcm_verbs_handle_refused(call->qp, -call->rc);
	rvcm_mem_free(call);
}

void rvcm_verbs_caller_results(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	do {
		rvcm_lock_acquire(&dev->lock);
		node = rvcm_list_pop(&dev->called);
		rvcm_lock_release(&dev->lock);
		if (node)
			caller_result(rvcm_list_entry(node, struct rvcm_verbs_call, node));
	} while (node);
}

bool rvcm_verbs_caller_leave(struct rvcm_verbs_dev *dev)
{
	bool busy;

	rvcm_lock_acquire(&dev->lock);
	busy = dev->callers != 0;
	dev->closed = busy;
	rvcm_lock_release(&dev->lock);
	return busy;
}

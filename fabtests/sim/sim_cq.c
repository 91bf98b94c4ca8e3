/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. The ring grows beyond the depth that was asked for, so that an overrun can be
 * reported as the misuse it is and the run can go on.
 */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int sim_cq_open(struct rvcm_dev *base, uint32_t depth, struct rvcm_dev_cq **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_cq *cq;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	cq = sim_alloc(sizeof(*cq));
	sim_dev_keep(dev, &cq->shell, SIM_SHELL_CQ);
	cq->base.dev = base;
	cq->depth = depth < base->attr.cq_depth_max ? depth : base->attr.cq_depth_max;
	cq->room = 16;
	cq->ring = sim_alloc(cq->room * sizeof(*cq->ring));
	cq->fd = -1;
	*out = &cq->base;
	return 0;
}

void sim_cq_close(struct rvcm_dev_cq *base)
{
	struct sim_cq *cq = (struct sim_cq *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &cq->shell))
		return;
	for (struct sim_shell *shell = dev->shells; shell; shell = shell->next)
		if (shell->kind == SIM_SHELL_QP && !shell->closed &&
		    rvcm_container_of(shell, struct sim_qp, shell)->cq == cq)
			sim_misuse(dev->net, SIM_MISUSE_LEAK, "cq_close while a QP uses it");
	dev->n_wce -= cq->tail - cq->head;
	if (cq->fd >= 0)
		close(cq->fd);
	free(cq->ring);
	cq->ring = NULL;
	cq->shell.closed = true;
}

static struct sim_wce *wce_at(struct sim_cq *cq, uint32_t index)
{
	return &cq->ring[index & (cq->room - 1)];
}

static void grow(struct sim_cq *cq)
{
	struct sim_wce *ring = sim_alloc(2 * cq->room * sizeof(*ring));

	for (uint32_t i = cq->head; i != cq->tail; i++)
		ring[i & (2 * cq->room - 1)] = *wce_at(cq, i);
	free(cq->ring);
	cq->ring = ring;
	cq->room *= 2;
}

struct rvcm_dev_wc *sim_cq_push(struct sim_qp *qp, enum rvcm_dev_op op, uint64_t freed)
{
	struct sim_cq *cq = qp->cq;
	struct sim_dev *dev = sim_dev_of(cq->base.dev);
	struct sim_wce *wce;

	if (qp->closing)
		return &qp->unseen;
	if (cq->tail - cq->head == cq->depth)
		sim_misuse(dev->net, SIM_MISUSE_CQ_FULL, "%u completions wait in a CQ",
			   cq->depth + 1);
	if (cq->tail - cq->head == cq->room)
		grow(cq);
	wce = wce_at(cq, cq->tail++);
	*wce = (struct sim_wce) { .qp = qp, .freed = freed };
	wce->wc.qp_ctx = qp->base.ctx;
	wce->wc.op = op;
	dev->n_wce++;
	return &wce->wc;
}

static void signal_fd(struct sim_cq *cq)
{
	uint64_t one = 1;

	if (cq->fd >= 0 && !cq->signalled && write(cq->fd, &one, sizeof(one)) == sizeof(one))
		cq->signalled = true;
}

void sim_cq_wake(struct sim_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed_solicited && !solicited))
		return;
	cq->armed = false;
	cq->fired = true;
	signal_fd(cq);
}

int sim_cq_poll(struct rvcm_dev_cq *base, struct rvcm_dev_wc *wc, int n)
{
	struct sim_cq *cq = (struct sim_cq *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	uint32_t most = cq->tail - cq->head;

	if (!sim_dev_live(dev, &cq->shell) || n <= 0)
		return 0;
	if (most > (uint32_t)n)
		most = (uint32_t)n;
	if (dev->net->conf.batch_max && most > dev->net->conf.batch_max)
		most = dev->net->conf.batch_max;
	if (most > 1 && !dev->net->conf.eager_polls)
		most = 1 + (uint32_t)rvcm_rng_below(&dev->net->rng, most);
	cq->polls++;
	for (uint32_t i = 0; i < most; i++) {
		struct sim_wce *wce = wce_at(cq, cq->head++);

		wc[i] = wce->wc;
		if (wc[i].op == RVCM_DEV_OP_RECV_HEAD)
			sim_head_polled(wce->qp);
		if (wce->freed > wce->qp->sq_freed)
			wce->qp->sq_freed = wce->freed;
	}
	dev->n_wce -= most;
	return (int)most;
}

int sim_cq_fd(struct rvcm_dev_cq *base)
{
	struct sim_cq *cq = (struct sim_cq *)base;

	if (!sim_dev_live(sim_dev_of(base->dev), &cq->shell))
		return -EINVAL;
	if (cq->fd < 0)
		cq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return cq->fd < 0 ? -errno : cq->fd;
}

int sim_cq_arm(struct rvcm_dev_cq *base, bool solicited_only)
{
	struct sim_cq *cq = (struct sim_cq *)base;
	uint64_t count;

	if (!sim_dev_live(sim_dev_of(base->dev), &cq->shell))
		return -EINVAL;
	if (cq->signalled && read(cq->fd, &count, sizeof(count)) == sizeof(count))
		cq->signalled = false;
	cq->armed = true;
	cq->fired = false;
	cq->armed_solicited = solicited_only;
	return 0;
}

bool sim_dev_fired(const struct rvcm_dev *base)
{
	const struct sim_dev *dev = (const struct sim_dev *)base;

	for (struct sim_shell *shell = dev->shells; shell; shell = shell->next)
		if (shell->kind == SIM_SHELL_CQ && !shell->closed &&
		    rvcm_container_of(shell, struct sim_cq, shell)->fired)
			return true;
	return false;
}

uint32_t sim_qp_unsent(const struct rvcm_dev_qp *base)
{
	const struct sim_qp *qp = (const struct sim_qp *)base;

	return (uint32_t)(qp->sq_tail - qp->sq_start);
}

uint32_t sim_qp_coming(const struct rvcm_dev_qp *base,
		       bool (*is)(const void *data, size_t bytes, bool imm))
{
	const struct sim_qp *qp = (const struct sim_qp *)base;
	struct rvcm_list *pos;
	uint32_t n = 0;

	for (uint32_t i = qp->cq->head; i != qp->cq->tail; i++) {
		const struct sim_wce *wce = wce_at(qp->cq, i);

		n += wce->qp == qp && wce->wc.op == RVCM_DEV_OP_RECV && wce->wc.rx &&
		     is(wce->wc.data, wce->wc.length, wce->wc.flags & RVCM_DEV_WC_IMM);
	}
	rvcm_list_for_each (pos, &qp->wire->packets[qp->end]) {
		const struct sim_packet *packet =
			rvcm_container_of(pos, struct sim_packet, of_wire);

		n += packet->kind == SIM_PACKET_SEND &&
		     is(packet->payload->data, packet->payload->bytes,
			packet->flags & RVCM_DEV_WR_IMM);
	}
	return n;
}

/* Completions of a closed QP are not reported; its messages go back to the pool. */
void sim_cq_forget(struct sim_cq *cq, const struct sim_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++) {
		struct sim_wce *wce = wce_at(cq, i);

		if (wce->qp != qp)
			*wce_at(cq, to++) = *wce;
		else if (wce->wc.rx)
			sim_pool_release(&qp->pool->base, wce->wc.rx);
	}
	sim_dev_of(cq->base.dev)->n_wce -= cq->tail - to;
	cq->tail = to;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues, and with them the progress of the data side: polling a CQ serves its QPs.
 *
 * Which QPs? With few (tunable poll_direct_max) all of them: a recv that finds nothing costs less
 * than asking epoll first. With more, those that an epoll_wait without time-out names, and those on
 * the busy list, which have something to do though their socket be silent.
 *
 * Room. Normal completions stop at depth: a receive then stays in the socket, a send in its queue.
 * A flush cannot wait, so the ring is large enough for every attached QP to be flushed on top
 * (promised): all that its two queues hold, and one more for a receive that was under way. It grows
 * when a QP is attached, when a send queue does, and when there are more completions than fit
 * beside what is promised (limit).
 *
 * Sleeping. fd is the epoll set itself: arm puts the sockets in if they are not, and brings their
 * events up to date, as does the poll between arm and sleep; so it is readable when one has news.
 * What one thread does while another sleeps (a post that completes, a receive for a parked message,
 * disconnect on the control side) is told through an eventfd in the set. The time that a parked
 * message may wait for a receive is kept by a timerfd there, made when first needed.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dev/soft/soft_impl.h"

#define CQ_READY_MAX 32

static struct rvcm_soft_cq *cq_of(struct rvcm_dev_cq *base)
{
	return (struct rvcm_soft_cq *)base;
}

static void cq_set_limit(struct rvcm_soft_cq *cq)
{
	uint32_t left = rvcm_ring_size(&cq->index) - cq->promised;

	cq->limit = left < cq->depth ? left : cq->depth;
}

/* Make the ring hold at least need completions. */
static int cq_grow(struct rvcm_soft_cq *cq, uint32_t need)
{
	struct rvcm_soft_cqe *ring;
	uint32_t size = 64;
	uint32_t n = rvcm_ring_count(&cq->index);

	while (size < need)
		size *= 2;
	if (cq->ring && size <= rvcm_ring_size(&cq->index))
		return 0;
	ring = rvcm_mem_calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[rvcm_ring_at(&cq->index, i)];
	rvcm_mem_free(cq->ring);
	cq->ring = ring;
	rvcm_ring_init(&cq->index, size);
	for (uint32_t i = 0; i < n; i++)
		(void)rvcm_ring_push(&cq->index);
	return 0;
}

bool rvcm_soft_cq_more(struct rvcm_soft_cq *cq)
{
	uint32_t used = rvcm_ring_count(&cq->index);

	if (used >= cq->depth || cq_grow(cq, cq->promised + used + 1))
		return false;
	cq_set_limit(cq);
	return used < cq->limit;
}

int rvcm_soft_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **out)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	struct rvcm_soft_cq *cq = rvcm_mem_zalloc(sizeof(*cq));
	int rc = -ENOMEM;

	if (!cq)
		return rc;
	cq->base.dev = dev;
	cq->depth = depth < 1 ? 1 : depth > dev->attr.cq_depth_max ? dev->attr.cq_depth_max : depth;
	rvcm_list_init(&cq->qps);
	rvcm_list_init(&cq->busy);
	rvcm_list_init(&cq->asked);
	atomic_init(&cq->kicked, false);
	cq->epfd = -1;
	cq->kick_fd = -1;
	cq->timer_fd = -1;
	if (cq_grow(cq, 1))
		goto err;
	cq_set_limit(cq);
	cq->epfd = epoll_create1(EPOLL_CLOEXEC);
	cq->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (cq->epfd < 0 || cq->kick_fd < 0 ||
	    epoll_ctl(cq->epfd, EPOLL_CTL_ADD, cq->kick_fd, &ev) < 0) {
		rc = -errno;
		goto err;
	}
	*out = &cq->base;
	return 0;

err:
	rvcm_soft_cq_close(&cq->base);
	return rc;
}

/* The oldest completion whose QP is not closed. */
static bool cq_pop(struct rvcm_soft_cq *cq, struct rvcm_dev_wc *wc)
{
	while (!rvcm_ring_empty(&cq->index)) {
		struct rvcm_soft_cqe *cqe = &cq->ring[rvcm_ring_pop(&cq->index)];
		struct rvcm_soft_qp *qp = cqe->qp;
		bool closed = atomic_load_explicit(&qp->closed, memory_order_acquire);

		if (!closed)
			*wc = cqe->wc;
		else if (cqe->wc.rx)
			rvcm_soft_pool_release(&qp->pool->base, cqe->wc.rx);
		if (--qp->in_cq == 0 && RVCM_SOFT_UNLIKELY(!qp->bound))
			rvcm_soft_qp_put(qp);
		if (RVCM_SOFT_LIKELY(!closed))
			return true;
	}
	return false;
}

/* Completions that nobody polled go with it, and what they kept of their QPs. */
void rvcm_soft_cq_close(struct rvcm_dev_cq *base)
{
	struct rvcm_soft_cq *cq = cq_of(base);
	struct rvcm_dev_wc wc;

	cq->n_qps = 0;
	while (cq->ring && cq_pop(cq, &wc))
		;
	if (cq->timer_fd >= 0)
		close(cq->timer_fd);
	if (cq->kick_fd >= 0)
		close(cq->kick_fd);
	if (cq->epfd >= 0)
		close(cq->epfd);
	rvcm_mem_free(cq->ring);
	rvcm_mem_free(cq);
}

int rvcm_soft_cq_fd(struct rvcm_dev_cq *base)
{
	return cq_of(base)->epfd;
}

void rvcm_soft_cq_kick(struct rvcm_soft_cq *cq)
{
	uint64_t one = 1;
	ssize_t rc = write(cq->kick_fd, &one, sizeof(one));

	(void)rc;
	/*
	 * The flag last: who finds it set can empty the eventfd, which would otherwise stay
	 * readable without it. Who wakes before it is set finds the eventfd readable again.
	 */
	atomic_store_explicit(&cq->kicked, true, memory_order_release);
}

struct rvcm_dev_wc *rvcm_soft_cq_push(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_cqe *cqe = &cq->ring[rvcm_ring_push(&cq->index)];

	memset(&cqe->wc, 0, sizeof(cqe->wc));
	cqe->wc.qp_ctx = qp->base.ctx;
	cqe->qp = qp;
	qp->in_cq++;
	if (RVCM_SOFT_UNLIKELY(cq->armed && !cq->polling))
		rvcm_soft_cq_kick(cq);
	return &cqe->wc;
}

/* -- which sockets are watched -------------------------------------------------------------- */

static void cq_watch(struct rvcm_soft_qp *qp)
{
	uint32_t want = (qp->rx.stalled ? 0 : (uint32_t)EPOLLIN) |
			(qp->tx.blocked ? (uint32_t)EPOLLOUT : 0);
	struct epoll_event ev = { .events = want, .data.ptr = qp };

	if (!qp->cq->epolled || qp->dead || want == qp->watched)
		return;
	(void)epoll_ctl(qp->cq->epfd, EPOLL_CTL_MOD, qp->fd, &ev);
	qp->watched = want;
}

static int cq_enrol(struct rvcm_soft_qp *qp)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = qp };

	if (epoll_ctl(qp->cq->epfd, EPOLL_CTL_ADD, qp->fd, &ev) < 0)
		return -errno;
	qp->enrolled = true;
	qp->watched = EPOLLIN;
	return 0;
}

/* From now on the sockets are in the set. */
static int cq_epoll_on(struct rvcm_soft_cq *cq)
{
	struct rvcm_list *node;
	int rc = 0;

	if (cq->epolled)
		return 0;
	rvcm_list_for_each (node, &cq->qps) {
		struct rvcm_soft_qp *qp = rvcm_list_entry(node, struct rvcm_soft_qp, cq_node);

		if (!rc && !qp->dead && !qp->enrolled)
			rc = cq_enrol(qp);
	}
	cq->epolled = !rc;
	return rc;
}

void rvcm_soft_cq_quiet(struct rvcm_soft_qp *qp)
{
	if (qp->enrolled)
		(void)epoll_ctl(qp->cq->epfd, EPOLL_CTL_DEL, qp->fd, NULL);
	qp->enrolled = false;
}

void rvcm_soft_cq_busy(struct rvcm_soft_qp *qp)
{
	if (rvcm_list_empty(&qp->busy_node))
		rvcm_list_add_tail(&qp->cq->busy, &qp->busy_node);
}

/* From now on epoll is asked: what the QPs wait for besides readable is to be told to it. */
static void cq_all_busy(struct rvcm_soft_cq *cq)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &cq->qps)
		rvcm_soft_cq_busy(rvcm_list_entry(node, struct rvcm_soft_qp, cq_node));
}

/* Keeps room for one that is no flush, too. */
int rvcm_soft_cq_promise(struct rvcm_soft_qp *qp, uint32_t n)
{
	struct rvcm_soft_cq *cq = qp->cq;
	int rc = cq_grow(cq, cq->promised + n + rvcm_ring_count(&cq->index) + 1);

	if (rc)
		return rc;
	qp->promised += n;
	cq->promised += n;
	cq_set_limit(cq);
	return 0;
}

int rvcm_soft_cq_attach(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp)
{
	int rc = 0;

	if (cq->n_qps >= qp->dev->tun.poll_direct_max)
		rc = cq_epoll_on(cq);
	if (!rc && cq->epolled && qp->fd >= 0)
		rc = cq_enrol(qp);
	if (rc)
		return rc;
	rc = rvcm_soft_cq_promise(qp, qp->sq.room + qp->rq.depth + 1);
	if (rc) {
		rvcm_soft_cq_quiet(qp);
		return rc;
	}
	cq->n_qps++;
	rvcm_list_add_tail(&cq->qps, &qp->cq_node);
	if (cq->n_qps == qp->dev->tun.poll_direct_max + 1)
		cq_all_busy(cq);
	return 0;
}

void rvcm_soft_cq_detach(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp)
{
	rvcm_soft_cq_quiet(qp);
	rvcm_list_del(&qp->cq_node);
	rvcm_list_del(&qp->busy_node);
	cq->promised -= qp->promised;
	qp->promised = 0;
	cq_set_limit(cq);
	cq->n_qps--;
}

void rvcm_soft_cq_rouse(struct rvcm_soft_qp *qp)
{
	rvcm_soft_cq_busy(qp);
	if (qp->cq->armed && !qp->cq->polling)
		rvcm_soft_cq_kick(qp->cq);
}

/* -- progress ------------------------------------------------------------------------------- */

/* Must it be served again, whatever its socket says? */
static bool cq_still_busy(const struct rvcm_soft_qp *qp)
{
	return !qp->dead &&
	       (qp->rx.stalled || qp->rx.park.head || (qp->tx.finish && !qp->tx.finished) ||
		(rvcm_soft_tx_pending(qp) && !qp->tx.blocked));
}

static void cq_serve(struct rvcm_soft_qp *qp)
{
	rvcm_soft_qp_service(qp);
	if (RVCM_SOFT_UNLIKELY(cq_still_busy(qp)))
		rvcm_soft_cq_busy(qp);
	cq_watch(qp);
}

static void cq_serve_busy(struct rvcm_soft_cq *cq)
{
	struct rvcm_list batch;
	struct rvcm_list *node;

	rvcm_list_init(&batch);
	rvcm_list_splice_tail(&batch, &cq->busy);
	while ((node = rvcm_list_pop(&batch)))
		cq_serve(rvcm_list_entry(node, struct rvcm_soft_qp, busy_node));
}

static void cq_serve_ready(struct rvcm_soft_cq *cq)
{
	struct epoll_event ready[CQ_READY_MAX];
	int n = epoll_wait(cq->epfd, ready, CQ_READY_MAX, 0);

	for (int i = 0; i < n; i++) {
		if (ready[i].data.ptr)
			cq_serve(ready[i].data.ptr);
	}
}

/* Control wants something. */
static void cq_take_kick(struct rvcm_soft_cq *cq)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(cq->base.dev);
	struct rvcm_list *node;
	uint64_t count;
	ssize_t rc = read(cq->kick_fd, &count, sizeof(count));

	(void)rc;
	/* Cleared after the eventfd and before looking: a kick from now on sets both again. */
	atomic_exchange_explicit(&cq->kicked, false, memory_order_acq_rel);
	rvcm_lock_acquire(&dev->lock);
	while ((node = rvcm_list_pop(&cq->asked))) {
		struct rvcm_soft_qp *qp = rvcm_list_entry(node, struct rvcm_soft_qp, asked_node);

		if (qp->asked & RVCM_SOFT_ASK_FINISH)
			qp->tx.finish = true;
		if (qp->asked & RVCM_SOFT_ASK_RTR)
			rvcm_soft_rtr_repeat(qp);
		qp->asked = 0;
		rvcm_soft_cq_busy(qp);
	}
	rvcm_lock_release(&dev->lock);
}

/* Few enough to serve all, whatever epoll says? */
static bool cq_direct(const struct rvcm_soft_cq *cq)
{
	return cq->n_qps <= rvcm_soft_dev_of(cq->base.dev)->tun.poll_direct_max;
}

static void cq_progress(struct rvcm_soft_cq *cq)
{
	struct rvcm_list *node;

	cq->polling = true;
	if (RVCM_SOFT_UNLIKELY(atomic_load_explicit(&cq->kicked, memory_order_relaxed)))
		cq_take_kick(cq);
	if (cq_direct(cq)) {
		rvcm_list_for_each (node, &cq->qps)
			rvcm_soft_qp_service(rvcm_list_entry(node, struct rvcm_soft_qp, cq_node));
	} else {
		cq_serve_busy(cq);
		cq_serve_ready(cq);
	}
	cq->polling = false;
}

/* Have epoll told what the QP waits for; *first: when its parked message will have waited too long.
 */
static void cq_prepare_qp(struct rvcm_soft_qp *qp, uint64_t *first)
{
	uint64_t when = rvcm_soft_park_deadline(qp);

	cq_watch(qp);
	if (when < *first)
		*first = when;
}

/* Have the sleeper woken then. Setting the timerfd also takes back an expiry that was not read. */
static int cq_set_timer(struct rvcm_soft_cq *cq, uint64_t when)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	struct itimerspec at = { 0 };

	if (cq->timer_fd < 0 && when == UINT64_MAX)
		return 0;
	if (cq->timer_fd < 0) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

		if (fd < 0)
			return -errno;
		if (epoll_ctl(cq->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
			close(fd);
			return -errno;
		}
		cq->timer_fd = fd;
	}
	if (when != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(when / RVCM_CLOCK_NS_PER_S);
		at.it_value.tv_nsec = (long)(when % RVCM_CLOCK_NS_PER_S);
	}
	return timerfd_settime(cq->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0 ? -errno : 0;
}

/*
 * Bring what fd reports up to date: sockets, and the timer. Of many QPs only the busy ones are
 * looked at, for the others have been watched since they were served, and whoever has a parked
 * message is busy.
 */
static int cq_prepare(struct rvcm_soft_cq *cq)
{
	uint64_t first = UINT64_MAX;
	struct rvcm_list *node;

	if (cq_direct(cq)) {
		rvcm_list_for_each (node, &cq->qps)
			cq_prepare_qp(rvcm_list_entry(node, struct rvcm_soft_qp, cq_node), &first);
	} else {
		rvcm_list_for_each (node, &cq->busy)
			cq_prepare_qp(rvcm_list_entry(node, struct rvcm_soft_qp, busy_node),
				      &first);
	}
	return cq_set_timer(cq, first);
}

int rvcm_soft_cq_arm(struct rvcm_dev_cq *base, bool solicited_only)
{
	struct rvcm_soft_cq *cq = cq_of(base);
	int rc = cq_epoll_on(cq);

	(void)solicited_only; /* the socket says that bytes are there, not what they are */
	if (!rc)
		rc = cq_prepare(cq);
	cq->armed = !rc;
	/* Who goes to sleep a few times in a row, and is woken for nothing, is quiet as well. */
	if (cq->idle < RVCM_SOFT_CQ_QUIET - RVCM_SOFT_CQ_QUIET / 8)
		cq->idle += RVCM_SOFT_CQ_QUIET / 8 - 1;
	return rc;
}

/* It has been quiet: a device that is not used needs no buffers. */
static __attribute__((noinline)) void cq_trim(struct rvcm_soft_cq *cq)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &cq->qps) {
		struct rvcm_soft_qp *qp = rvcm_list_entry(node, struct rvcm_soft_qp, cq_node);

		rvcm_soft_rx_trim(qp);
		if (qp->pool)
			rvcm_soft_pool_trim(qp->pool);
	}
	rvcm_soft_buf_trim(&rvcm_soft_dev_of(cq->base.dev)->bufs);
}

int rvcm_soft_cq_poll(struct rvcm_dev_cq *base, struct rvcm_dev_wc *wc, int n)
{
	struct rvcm_soft_cq *cq = cq_of(base);
	int got = 0;

	if (rvcm_ring_count(&cq->index) < (uint32_t)n)
		cq_progress(cq);
	while (got < n && cq_pop(cq, &wc[got]))
		got++;
	if (got) {
		cq->armed = false;
		cq->idle = 0;
		return got;
	}
	if (RVCM_SOFT_UNLIKELY(cq->armed))
		(void)cq_prepare(cq); /* this poll may have found what to wait for */
	if (RVCM_SOFT_UNLIKELY(++cq->idle == RVCM_SOFT_CQ_QUIET))
		cq_trim(cq);
	return got;
}

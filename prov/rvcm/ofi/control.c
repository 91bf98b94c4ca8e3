/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of carriers is process-wide, since the thread is; so this file has the state that others
 * may not have.
 *
 * Locks. list.lock orders everything here; the thread holds it while it serves, so that a carrier
 * that was removed is not being served. Waking takes no lock: it writes the thread's eventfd, which
 * lives as long as any carrier that may write it.
 *
 * A thousand carriers cost a flag each when one of them has something to do: only those are served
 * that were woken, have a descriptor ready, or are due. What is ready is asked for under the lock,
 * for an event points at its carrier's place, which may be gone when the thread has just woken up.
 *
 * Fork. The child has no thread. list.lock is held across fork, so the child's copy is consistent;
 * there the list is emptied and the thread forgotten with its descriptors closed, and a domain that
 * the child opens starts a thread of its own. What the parent had added is not "ours" in the child.
 * The locks of all data sides are held as well (nobody takes list.lock under one): the child could
 * otherwise not even close what it inherited while another thread of the parent's was busy there.
 */
#include "config.h"

#include "ofi/control.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"

#define FDS_MAX    64
#define EVENTS_MAX 16

struct rvcm_control_thread {
	pthread_t id;
	int epoll;
	int event;
	bool stop; /* under list.lock */
};

static struct {
	pthread_mutex_t lock;
	pthread_once_t fork_once;
	struct rvcm_control_thread *thread; /* NULL = none */
	struct rvcm_list carriers;          /* valid while there is a thread */
} list = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fork_once = PTHREAD_ONCE_INIT,
};

static void wake(struct rvcm_control_thread *thread)
{
	uint64_t one = 1;
	ssize_t n = write(thread->event, &one, sizeof(one));

	(void)n; /* EAGAIN: the counter is full, so it is readable */
}

static void mark_ready(struct rvcm_control_thread *thread)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(thread->epoll, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++) {
		struct rvcm_control *c = events[i].data.ptr;

		if (c)
			c->ready = true;
	}
}

/* Serve the carrier if there is a reason to; returns when there will be. */
static uint64_t serve_one(struct rvcm_control *c, uint64_t now_ns)
{
	bool woken = atomic_exchange_explicit(&c->woken, false, memory_order_acq_rel);

	if (woken || c->ready || c->due_ns <= now_ns) {
		c->ready = false;
		c->due_ns = rvcm_carrier_control(c->carrier);
	}
	if (woken && c->chore)
		c->chore(c->chore_ctx);
	return c->due_ns;
}

/* Serve the carriers; returns when to do so again at the latest, or sets *stop. */
static uint64_t serve(struct rvcm_control_thread *thread, bool *stop)
{
	uint64_t next = UINT64_MAX, now = rvcm_clock_ns();
	struct rvcm_list *pos;

	pthread_mutex_lock(&list.lock);
	*stop = thread->stop;
	if (!*stop) {
		mark_ready(thread);
		rvcm_list_for_each (pos, &list.carriers) {
			uint64_t due =
				serve_one(rvcm_list_entry(pos, struct rvcm_control, link), now);

			if (due < next)
				next = due;
		}
	}
	pthread_mutex_unlock(&list.lock);
	return next;
}

/* Milliseconds until then, rounded up so as not to spin; -1 = for ever. */
static int timeout_until(uint64_t when_ns)
{
	uint64_t now, ms;

	if (when_ns == UINT64_MAX)
		return -1;
	now = rvcm_clock_ns();
	if (when_ns <= now)
		return 0;
	ms = (when_ns - now + RVCM_CLOCK_NS_PER_MS - 1) / RVCM_CLOCK_NS_PER_MS;
	return ms > 3600000 ? 3600000 : (int)ms;
}

static void *thread_main(void *arg)
{
	struct rvcm_control_thread *thread = arg;
	struct epoll_event event;
	uint64_t next, count;
	bool stop;

	for (;;) {
		next = serve(thread, &stop);
		if (stop)
			return NULL;
		epoll_wait(thread->epoll, &event, 1, timeout_until(next));
		/* Before serving: what is announced from here on wakes us again. */
		while (read(thread->event, &count, sizeof(count)) > 0)
			;
	}
}

/* control: whose descriptor it is, NULL = the thread's own. */
static int epoll_add(int epoll, int fd, struct rvcm_control *control)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = control };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int rvcm_control_thread(pthread_t *id, void *(*fn)(void *), void *arg, const char *name)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(id, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		pthread_setname_np(*id, name);
	return -rc;
}

static void thread_free(struct rvcm_control_thread *thread)
{
	close(thread->event);
	close(thread->epoll);
	rvcm_mem_free(thread);
}

static int thread_start(struct rvcm_control_thread **out)
{
	struct rvcm_control_thread *thread = rvcm_mem_zalloc(sizeof(*thread));
	char text[RVCM_LIMIT_TEXT_MAX];
	int rc;

	if (!thread)
		return -ENOMEM;
	thread->epoll = epoll_create1(EPOLL_CLOEXEC);
	thread->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = thread->epoll < 0 || thread->event < 0 ? -errno
						    : epoll_add(thread->epoll, thread->event, NULL);
	if (!rc)
		rc = rvcm_control_thread(&thread->id, thread_main, thread, "rvcm-control");
	if (rc) {
		rvcm_warn(RVCM_LOG_DOMAIN, "cannot start the control thread: %s",
			  rvcm_limit_text(-rc, text));
		thread_free(thread);
		return rc;
	}
	*out = thread;
	return 0;
}

static void before_fork(void)
{
	struct rvcm_list *pos;

	pthread_mutex_lock(&list.lock);
	if (list.thread)
		rvcm_list_for_each (pos, &list.carriers)
			rvcm_lock_acquire(
				rvcm_list_entry(pos, struct rvcm_control, link)->data_lock);
}

static void release_data_sides(void)
{
	struct rvcm_list *pos;

	if (list.thread)
		rvcm_list_for_each (pos, &list.carriers)
			rvcm_lock_release(
				rvcm_list_entry(pos, struct rvcm_control, link)->data_lock);
}

static void after_fork_parent(void)
{
	release_data_sides();
	pthread_mutex_unlock(&list.lock);
}

static void after_fork_child(void)
{
	release_data_sides();
	if (list.thread)
		thread_free(list.thread);
	list.thread = NULL;
	pthread_mutex_unlock(&list.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static int watch_carrier(struct rvcm_control_thread *thread, struct rvcm_control *control,
			 struct rvcm_carrier *carrier)
{
	int fds[FDS_MAX];
	int n = rvcm_carrier_control_fds(carrier, fds, FDS_MAX);

	if (n > FDS_MAX)
		return -EMFILE;
	for (int i = 0; i < n; i++) {
		int rc = epoll_add(thread->epoll, fds[i], control);

		if (rc)
			return rc;
	}
	return 0;
}

static void unwatch_carrier(struct rvcm_control_thread *thread, struct rvcm_carrier *carrier)
{
	int fds[FDS_MAX];
	int n = rvcm_carrier_control_fds(carrier, fds, FDS_MAX);

	for (int i = 0; i < n && i < FDS_MAX; i++)
		epoll_ctl(thread->epoll, EPOLL_CTL_DEL, fds[i], NULL);
}

/* Detach the thread from the list if it has nobody to serve; the caller joins it, unlocked. */
static struct rvcm_control_thread *retire(void)
{
	struct rvcm_control_thread *thread = list.thread;

	if (!thread || !rvcm_list_empty(&list.carriers))
		return NULL;
	list.thread = NULL;
	thread->stop = true;
	wake(thread);
	return thread;
}

static void join(struct rvcm_control_thread *thread)
{
	if (!thread)
		return;
	pthread_join(thread->id, NULL);
	thread_free(thread);
}

int rvcm_control_add(struct rvcm_control *control, struct rvcm_carrier *carrier,
		     struct rvcm_lock *data_lock)
{
	struct rvcm_control_thread *retired = NULL;
	int rc = 0;

	pthread_once(&list.fork_once, watch_forks);
	pthread_mutex_lock(&list.lock);
	if (!list.thread) {
		rvcm_list_init(&list.carriers);
		rc = thread_start(&list.thread);
	}
	if (!rc) {
		rc = watch_carrier(list.thread, control, carrier);
		if (rc) {
			unwatch_carrier(list.thread, carrier);
			retired = retire();
		}
	}
	if (!rc) {
		control->carrier = carrier;
		control->data_lock = data_lock;
		control->thread = list.thread;
		control->pid = getpid();
		control->due_ns = 0; /* at once */
		rvcm_list_add_tail(&list.carriers, &control->link);
		wake(list.thread);
	}
	pthread_mutex_unlock(&list.lock);
	join(retired);
	return rc;
}

bool rvcm_control_ours(const struct rvcm_control *control)
{
	return control->pid == getpid();
}

void rvcm_control_remove(struct rvcm_control *control)
{
	struct rvcm_control_thread *retired;

	if (!rvcm_control_ours(control))
		return;
	pthread_mutex_lock(&list.lock);
	unwatch_carrier(control->thread, control->carrier);
	rvcm_list_del(&control->link);
	control->thread = NULL;
	retired = retire();
	pthread_mutex_unlock(&list.lock);
	join(retired);
}

void rvcm_control_wake(struct rvcm_control *control)
{
	/* Before the eventfd: who reads that finds it. */
	atomic_store_explicit(&control->woken, true, memory_order_release);
	if (control->thread)
		wake(control->thread);
}

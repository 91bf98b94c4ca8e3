/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor that is told by the kernel: userfaultfd(2), one for the process, with one thread that
 * reads its events. That there is one is the process's and not a domain's, so this file has the
 * state that others may not have; its lock comes before all others of mr/.
 *
 * Ranges are registered for write protection, and nothing is ever protected: all that is wanted of
 * it are the events REMOVE (MADV_DONTNEED, MADV_REMOVE), UNMAP (munmap, a mapping put in the place
 * of another, a brk that shrinks, the end of a mapping that mremap makes smaller) and REMAP (mremap
 * that moves). Registered for missing pages instead, it would make system calls that write into
 * pages that were dropped fail with EFAULT.
 *
 * Who unmaps waits until the event has been read, in the kernel. So there must never be a moment at
 * which the descriptor is open and nobody reads it: the thread closes it itself, as the last thing
 * it does, and that lets go of everybody who waits. A child made by fork(2) has neither the thread
 * nor watched memory of its own (without UFFD_FEATURE_EVENT_FORK its mappings are let go); it
 * closes its copy of the descriptor, which would otherwise keep the parent's mappings watched after
 * the parent's last close, and takes what it inherited for dead, and never uses its lock again.
 *
 * Not noticed: pages of a file in memory (memfd, /dev/shm) that are taken out of the file through a
 * descriptor, by ftruncate(2) or fallocate(2), under a mapping that stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "mr/monitor.h"
#include "mr/mr.h"

#define FEATURES                                                                                 \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP | \
	 UFFD_FEATURE_EVENT_REMAP)
#define BATCH 16 /* events read at once */

struct watcher {
	struct rvcm_monitor monitor;
	pthread_t thread;
	int fd;   /* the thread's to close */
	int stop; /* eventfd: it is to */
	unsigned int users;
};

static struct {
	pthread_mutex_t lock;
	pthread_once_t fork_once;
	struct watcher *watcher; /* NULL = none */
	bool told;               /* that there cannot be one */
} process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fork_once = PTHREAD_ONCE_INIT,
};

/* -- events --------------------------------------------------------------------------------- */

static void note(struct rvcm_monitor *monitor, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		rvcm_monitor_note(monitor, msg->arg.remove.start, msg->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		rvcm_monitor_note(monitor, msg->arg.remap.from,
				  msg->arg.remap.from + msg->arg.remap.len);
		rvcm_monitor_note(monitor, msg->arg.remap.to,
				  msg->arg.remap.to + msg->arg.remap.len);
		break;
	default:
		break; /* of pages that are touched nothing is asked for */
	}
}

static void read_events(struct watcher *w)
{
	struct uffd_msg msgs[BATCH];
	ssize_t n;

	rvcm_monitor_begin(&w->monitor);
	while ((n = read(w->fd, msgs, sizeof(msgs))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(msgs[0]); i++)
			note(&w->monitor, &msgs[i]);
	}
	rvcm_monitor_end(&w->monitor);
}

static void *watch_main(void *arg)
{
	struct watcher *w = arg;
	struct pollfd fds[] = {
		{ .fd = w->fd, .events = POLLIN },
		{ .fd = w->stop, .events = POLLIN },
	};

	while (!fds[1].revents) {
		poll(fds, 2, -1);
		if (fds[0].revents)
			read_events(w);
	}
	close(w->fd);
	return NULL;
}

/* -- ranges --------------------------------------------------------------------------------- */

static int watch_pages(int fd, uintptr_t start, size_t length, uintptr_t page)
{
	uintptr_t first = start & ~(page - 1);
	struct uffdio_register reg = {
		.range.start = first,
		.range.len = (start + length - first + page - 1) & ~(page - 1),
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

/*
 * A range of huge pages must be one of whole huge pages, and which size they have cannot be asked;
 * of what cannot be watched at all a larger piece cannot either.
 */
static int watch(struct rvcm_monitor *monitor, uintptr_t start, size_t length)
{
	struct watcher *w = rvcm_container_of(monitor, struct watcher, monitor);
	const uintptr_t pages[] = { (uintptr_t)sysconf(_SC_PAGESIZE), 2u << 20, 1u << 30 };
	int rc = -EINVAL;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]) && rc == -EINVAL; i++)
		rc = watch_pages(w->fd, start, length, pages[i]);
	return rc;
}

/* -- the one of the process ------------------------------------------------------------------ */

/* Kernels before 5.11 do not know UFFD_USER_MODE_ONLY, without which others ask for privileges. */
static int open_fd(void)
{
	int flags = O_CLOEXEC | O_NONBLOCK;
	int fd = (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_userfaultfd, flags);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -EOPNOTSUPP;
	}
	return fd;
}

static int start_thread(struct watcher *w)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, NULL, watch_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		pthread_setname_np(w->thread, "rvcm-memory");
	return -rc;
}

static int start(struct watcher **out)
{
	struct watcher *w = rvcm_mem_zalloc(sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	rvcm_monitor_init(&w->monitor, watch);
	w->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = w->fd = w->stop < 0 ? -errno : open_fd();
	if (rc >= 0)
		rc = start_thread(w);
	if (!rc) {
		*out = w;
		return 0;
	}
	if (w->fd >= 0)
		close(w->fd);
	if (w->stop >= 0)
		close(w->stop);
	rvcm_monitor_fini(&w->monitor);
	rvcm_mem_free(w);
	return rc;
}

static void stop(struct watcher *w)
{
	uint64_t one = 1;
	ssize_t n = write(w->stop, &one, sizeof(one));

	(void)n; /* the counter is 0: there is room */
	pthread_join(w->thread, NULL);
	close(w->stop);
	rvcm_monitor_fini(&w->monitor);
	rvcm_mem_free(w);
}

static void before_fork(void)
{
	pthread_mutex_lock(&process.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&process.lock);
}

/* The memory of what the parent had stays: its domains point there. */
static void after_fork_child(void)
{
	if (process.watcher) {
		atomic_store(&process.watcher->monitor.seq, RVCM_MONITOR_DEAD);
		close(process.watcher->fd);
		close(process.watcher->stop);
	}
	process.watcher = NULL;
	pthread_mutex_unlock(&process.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static const char *hint(int rc)
{
	switch (-rc) {
	case EPERM:
		return ": not permitted here, by a container's seccomp profile as a rule";
	case ENOSYS:
		return ": the kernel has none";
	case EOPNOTSUPP:
		return ": the kernel's cannot watch for what is unmapped (it does since Linux 5.7)";
	default:
		return "";
	}
}

int rvcm_uffd_get(struct rvcm_monitor **monitor)
{
	char text[RVCM_LIMIT_TEXT_MAX];
	int rc = 0;

	pthread_once(&process.fork_once, watch_forks);
	pthread_mutex_lock(&process.lock);
	if (!process.watcher)
		rc = start(&process.watcher);
	if (!rc) {
		process.watcher->users++;
		*monitor = &process.watcher->monitor;
	} else if (!process.told) {
		process.told = true;
		rvcm_warn(RVCM_LOG_MR,
			  "registrations are not cached, each transfer of a long message makes its "
			  "own: userfaultfd: %s%s",
			  rvcm_limit_text(-rc, text), hint(rc));
	}
	pthread_mutex_unlock(&process.lock);
	return rc;
}

void rvcm_uffd_put(struct rvcm_monitor *monitor)
{
	struct watcher *w = rvcm_container_of(monitor, struct watcher, monitor);

	pthread_mutex_lock(&process.lock);
	if (w == process.watcher && --w->users == 0) {
		process.watcher = NULL;
		stop(w);
	}
	pthread_mutex_unlock(&process.lock);
}

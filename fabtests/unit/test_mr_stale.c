/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real memory whose pages go away in every way that there is, and the kernel's word for it: what
 * was registered before is never given afterwards. The device is one that counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/warned.h"
#include "unit/unit.h"
#include "mr/mr.h"

#define BYTES       ((size_t)64 * 1024)
#define HUGE        ((size_t)2 << 20)
#define PATIENCE_MS 10000 /* until a hang is one */

struct counting_dev {
	struct rvcm_dev dev;
	int regs, deregs;
	void *unmap; /* done by the next mr_dereg */
};

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **mr)
{
	((struct counting_dev *)dev)->regs++;
	*mr = calloc(1, sizeof(**mr));
	assert_non_null(*mr);
	**mr = (struct rvcm_dev_mr) { .dev = dev, .addr = attr->addr, .length = attr->length };
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *mr)
{
	struct counting_dev *d = (struct counting_dev *)mr->dev;

	d->deregs++;
	if (d->unmap)
		assert_int_equal(munmap(d->unmap, BYTES), 0);
	d->unmap = NULL;
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

struct scene {
	struct counting_dev dev;
	struct rvcm_monitor *monitor;
	struct rvcm_mr_domain *domain;
};

static void scene_open(struct scene *s)
{
	struct rvcm_dev *devs[] = { &s->dev.dev };
	struct rvcm_mr_attr attr = { .cache_bytes = (size_t)1 << 30, .cache_count = 100 };

	*s = (struct scene) { .dev.dev.ops = &ops };
	if (rvcm_uffd_get(&attr.monitor)) {
		print_message("# no userfaultfd here\n");
		skip();
	}
	s->monitor = attr.monitor;
	assert_int_equal(rvcm_mr_domain_open(devs, 1, &attr, &s->domain), 0);
}

static void scene_close(struct scene *s)
{
	rvcm_mr_domain_close(s->domain);
	rvcm_uffd_put(s->monitor);
	assert_int_equal(s->dev.regs, s->dev.deregs);
}

/* Get it with its registration, and put it; was it registered before? */
static bool held(struct scene *s, void *addr, size_t bytes)
{
	struct rvcm_dev_mr *dev_mr;
	int regs = s->dev.regs;
	struct rvcm_mr *mr;

	assert_int_equal(rvcm_mr_get(s->domain, addr, bytes, RVCM_DEV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), 0);
	rvcm_mr_put(mr);
	return s->dev.regs == regs;
}

static void *map_at(void *at, size_t bytes, int flags)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | flags | (at ? MAP_FIXED : 0), -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 1, bytes);
	return p;
}

static void *map(size_t bytes)
{
	return map_at(NULL, bytes, MAP_PRIVATE);
}

/* Memory that is cached. */
static void *cached(struct scene *s, void *p, size_t bytes)
{
	assert_false(held(s, p, bytes));
	assert_true(held(s, p, bytes));
	return p;
}

/*
 * Write to pages that went away, by a system call: where somebody was to supply them it fails, and
 * we would wait for ever.
 */
static void rewrite(void *p, size_t bytes)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, p, bytes), bytes);
	close(fd);
}

/* -- the ways ------------------------------------------------------------------------------- */

static void unmapped_and_mapped_again(void **state)
{
	struct scene s;
	void *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(munmap(p, BYTES), 0);
		assert_ptr_equal(map_at(p, BYTES, MAP_PRIVATE), p);
		assert_false(held(&s, p, BYTES));
		assert_true(held(&s, p, BYTES));
	}
	munmap(p, BYTES);
	scene_close(&s);
}

static void mapped_over(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	map_at(p + BYTES / 2, 4096, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES));
	assert_true(held(&s, p, BYTES)); /* watched anew, both mappings of it */
	map_at(p + BYTES / 2, 4096, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	scene_close(&s);
}

static void moved(void **state)
{
	struct scene s;
	char *p, *q;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	q = cached(&s, map(BYTES), BYTES);
	assert_ptr_equal(mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, q), q);
	map_at(p, BYTES, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES));
	assert_false(held(&s, q, BYTES));
	assert_true(held(&s, q, BYTES));
	assert_int_equal(munmap(q, BYTES), 0); /* it is watched in its new place */
	map_at(q, BYTES, MAP_PRIVATE);
	assert_false(held(&s, q, BYTES));
	munmap(p, BYTES);
	munmap(q, BYTES);
	scene_close(&s);
}

static void moved_and_left(void **state)
{
	struct scene s;
	char *p;
	void *q;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	q = mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
	if (q == MAP_FAILED) {
		munmap(p, BYTES);
		scene_close(&s);
		print_message("# no MREMAP_DONTUNMAP here\n");
		return;
	}
	rewrite(p, BYTES);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	munmap(q, BYTES);
	scene_close(&s);
}

static void made_smaller(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	assert_ptr_equal(mremap(p, BYTES, BYTES / 2, 0), p);
	map_at(p + BYTES / 2, BYTES / 2, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	scene_close(&s);
}

/* In its place: the pages are the same, and what is behind them is new. */
static void made_larger(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	scene_open(&s);
	p = map(2 * BYTES);
	munmap(p + BYTES, BYTES);
	cached(&s, p, BYTES);
	assert_ptr_equal(mremap(p, BYTES, 2 * BYTES, 0), p);
	assert_true(held(&s, p, BYTES));
	assert_false(held(&s, p, 2 * BYTES));
	munmap(p, 2 * BYTES);
	scene_close(&s);
}

static void dropped(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	assert_int_equal(madvise(p + 4096, 4096, MADV_DONTNEED), 0);
	rewrite(p + 4096, 4096);
	assert_false(held(&s, p, BYTES));
	assert_true(held(&s, p, BYTES));
	assert_int_equal(madvise(p, BYTES, MADV_DONTNEED), 0);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	scene_close(&s);
}

static void removed_from_shared_memory(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	scene_open(&s);
	p = map_at(NULL, BYTES, MAP_SHARED);
	if (held(&s, p, BYTES) || !held(&s, p, BYTES)) {
		print_message("# shared memory is not watched here, and so not cached\n");
	} else {
		assert_int_equal(madvise(p, 4096, MADV_REMOVE), 0);
		rewrite(p, 4096);
		assert_false(held(&s, p, BYTES));
		assert_true(held(&s, p, BYTES));
		assert_int_equal(madvise(p, 4096, MADV_DONTNEED), 0);
		assert_false(held(&s, p, BYTES));
	}
	munmap(p, BYTES);
	scene_close(&s);
}

/* Nothing may be allocated behind it meanwhile: it would go with it. */
static void given_back_to_the_heap(void **state)
{
	struct scene s;
	char *p, *top;

	(void)state;
	scene_open(&s);
	assert_false(held(&s, &s, 1)); /* what has to be allocated is, and there is room for more */
	free(malloc(64 * 1024));
	p = sbrk((intptr_t)BYTES);
	assert_ptr_not_equal(p, (void *)-1);
	memset(p, 1, BYTES);
	top = sbrk(0);
	cached(&s, p, BYTES);
	assert_ptr_equal(sbrk(0), top);
	assert_ptr_equal(sbrk(-(intptr_t)BYTES), top);
	assert_ptr_equal(sbrk((intptr_t)BYTES), p);
	memset(p, 2, BYTES);
	assert_false(held(&s, p, BYTES));
	scene_close(&s);
}

static void *map_huge(void)
{
	void *p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Only a machine that is a test's own may have its huge pages changed. */
static void make_huge_pages(void)
{
	int fd = getenv("FABTEST_GUEST") ? open("/proc/sys/vm/nr_hugepages", O_WRONLY) : -1;

	if (fd < 0)
		return;
	assert_int_equal(write(fd, "8", 1), 1);
	close(fd);
}

static void huge_pages(void **state)
{
	struct scene s;
	char *p;

	(void)state;
	make_huge_pages();
	p = map_huge();
	if (!p) {
		print_message("# no huge pages here (vm.nr_hugepages): not tried\n");
		return;
	}
	scene_open(&s);
	memset(p, 1, HUGE);
	if (!held(&s, p + 5000, BYTES) && held(&s, p + 5000, BYTES)) {
		assert_int_equal(madvise(p, HUGE, MADV_DONTNEED), 0);
		rewrite(p, HUGE);
		assert_false(held(&s, p + 5000, BYTES));
	} else {
		print_message("# huge pages are not watched here, and so not cached\n");
	}
	munmap(p, HUGE);
	scene_close(&s);
}

/* Is the file memory by another name, and so watched? What is below an overlay cannot be told. */
static bool may_be_memory(FILE *file)
{
	struct statfs fs;

	assert_int_equal(fstatfs(fileno(file), &fs), 0);
	return fs.f_type == TMPFS_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Pages of a file are not watched: its memory is registered anew each time. */
static void files_are_not_cached(void **state)
{
	FILE *file = tmpfile();
	struct scene s;
	void *p;

	(void)state;
	scene_open(&s);
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)BYTES), 0);
	for (int i = 0; i < 2; i++) {
		p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, i ? MAP_SHARED : MAP_PRIVATE,
			 fileno(file), 0);
		assert_ptr_not_equal(p, MAP_FAILED);
		assert_false(held(&s, p, BYTES));
		if (!may_be_memory(file))
			assert_false(held(&s, p, BYTES));
		munmap(p, BYTES);
		map_at(p, BYTES, MAP_PRIVATE);
		assert_false(held(&s, p, BYTES));
		munmap(p, BYTES);
	}
	fclose(file);
	scene_close(&s);
}

/* -- what could get stuck ------------------------------------------------------------------- */

/* A device that unmaps watched memory while it deregisters, under the cache's lock. */
static void a_device_may_unmap(void **state)
{
	struct scene s;
	void *p, *q;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	q = cached(&s, map(BYTES), BYTES);
	s.dev.unmap = q;
	assert_int_equal(munmap(p, BYTES), 0);
	map_at(p, BYTES, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES)); /* deregisters p's old one, which unmaps q */
	assert_null(s.dev.unmap);
	map_at(q, BYTES, MAP_PRIVATE);
	assert_false(held(&s, q, BYTES));
	munmap(p, BYTES);
	munmap(q, BYTES);
	scene_close(&s);
}

/* More than can be noted, and nobody who looks. */
static void nobody_looks_for_long(void **state)
{
	struct scene s;
	void *p, *q;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	q = cached(&s, map(BYTES), BYTES);
	assert_int_equal(munmap(p, BYTES), 0);
	map_at(p, BYTES, MAP_PRIVATE);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(madvise(q, BYTES, MADV_DONTNEED), 0);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	munmap(q, BYTES);
	scene_close(&s);
}

/* Memory stays what it is to system calls: write-protect mode, and nothing protected. */
static void system_calls_write_into_dropped_pages(void **state)
{
	struct scene s;
	int fds[2];
	char *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	assert_int_equal(madvise(p, BYTES, MADV_DONTNEED), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "message", 8), 8);
	assert_int_equal(read(fds[0], p + 100, 8), 8);
	assert_string_equal(p + 100, "message");
	close(fds[0]);
	close(fds[1]);
	munmap(p, BYTES);
	scene_close(&s);
}

/* Nobody waits for a monitor that has gone, and the next one works. */
static void after_the_last_user_nobody_waits(void **state)
{
	struct scene s;
	void *p = map(BYTES);

	(void)state;
	for (int i = 0; i < 20; i++) {
		scene_open(&s);
		cached(&s, p, BYTES);
		scene_close(&s);
		assert_int_equal(madvise(p, BYTES, MADV_DONTNEED), 0);
	}
	assert_int_equal(munmap(p, BYTES), 0);
}

/* -- fork ----------------------------------------------------------------------------------- */

static int in_child(void (*fn)(struct scene *s, void *p), struct scene *s, void *p)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		fn(s, p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define CHILD_EXPECT(condition, code) \
	do {                          \
		if (!(condition))     \
			_exit(code);  \
	} while (0)

/* What it inherited is no hit, unmapping does not hang, and a cache of its own works. */
static void child(struct scene *s, void *p)
{
	struct scene own;

	CHILD_EXPECT(!held(s, p, BYTES), 1);
	CHILD_EXPECT(!held(s, p, BYTES), 2);
	CHILD_EXPECT(munmap(p, BYTES) == 0, 3);
	p = map(BYTES);
	scene_open(&own);
	CHILD_EXPECT(!held(&own, p, BYTES), 4);
	CHILD_EXPECT(held(&own, p, BYTES), 5);
	CHILD_EXPECT(madvise(p, BYTES, MADV_DONTNEED) == 0, 6);
	CHILD_EXPECT(!held(&own, p, BYTES), 7);
	scene_close(&own);
}

static void parent_and_child_survive_fork(void **state)
{
	struct scene s;
	void *p;

	(void)state;
	scene_open(&s);
	p = cached(&s, map(BYTES), BYTES);
	assert_int_equal(in_child(child, &s, p), 0);
	assert_true(held(&s, p, BYTES)); /* what the child did was in its own memory */
	assert_int_equal(munmap(p, BYTES), 0);
	map_at(p, BYTES, MAP_PRIVATE);
	assert_false(held(&s, p, BYTES));
	munmap(p, BYTES);
	scene_close(&s);
}

/* The parent, if it is held up, is so for as long as this child lives. */
static void wait_for_eof(const int *fds)
{
	struct pollfd pfd = { .fd = fds[0], .events = POLLIN };
	char c;

	close(fds[1]);
	CHILD_EXPECT(poll(&pfd, 1, PATIENCE_MS) == 1, 1);
	CHILD_EXPECT(read(fds[0], &c, 1) == 0, 2);
}

/* A child that lives on keeps nobody from unmapping when the parent's monitor has gone. */
static void a_child_holds_nobody_up(void **state)
{
	struct scene s;
	void *p = map(BYTES);
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	scene_open(&s);
	cached(&s, p, BYTES);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		wait_for_eof(fds);
		_exit(0);
	}
	close(fds[0]);
	scene_close(&s);
	assert_int_equal(munmap(p, BYTES), 0);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* -- refused -------------------------------------------------------------------------------- */

/* As in a container whose seccomp profile does not allow it. */
static void refuse(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	CHILD_EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, 1);
	CHILD_EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, 2);
}

static void refused_child(struct scene *s, void *p)
{
	struct rvcm_monitor *monitor = NULL;
	static struct test_warned warned;

	(void)s;
	(void)p;
	refuse();
	test_warned_begin(&warned);
	CHILD_EXPECT(rvcm_uffd_get(&monitor) == -EPERM && !monitor, 3);
	CHILD_EXPECT(warned.n == 1 && strstr(warned.text, "userfaultfd"), 4);
	CHILD_EXPECT(strstr(warned.text, "seccomp"), 5);
	CHILD_EXPECT(rvcm_uffd_get(&monitor) == -EPERM, 6);
	CHILD_EXPECT(warned.n == 1, 7);
}

static void a_refusal_is_told_once(void **state)
{
	(void)state;
	assert_int_equal(in_child(refused_child, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmapped_and_mapped_again),
		cmocka_unit_test(mapped_over),
		cmocka_unit_test(moved),
		cmocka_unit_test(moved_and_left),
		cmocka_unit_test(made_smaller),
		cmocka_unit_test(made_larger),
		cmocka_unit_test(dropped),
		cmocka_unit_test(removed_from_shared_memory),
		cmocka_unit_test(given_back_to_the_heap),
		cmocka_unit_test(huge_pages),
		cmocka_unit_test(files_are_not_cached),
		cmocka_unit_test(a_device_may_unmap),
		cmocka_unit_test(nobody_looks_for_long),
		cmocka_unit_test(system_calls_write_into_dropped_pages),
		cmocka_unit_test(after_the_last_user_nobody_waits),
		cmocka_unit_test(parent_and_child_survive_fork),
		cmocka_unit_test(a_child_holds_nobody_up),
		cmocka_unit_test(a_refusal_is_told_once),
	};

	return cmocka_run_group_tests_name("mr_stale", tests, NULL, NULL);
}

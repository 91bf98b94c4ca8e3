/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages from and into memory whose pages are changed between two of them, in every way that
 * there is. A provider that keeps memory registered, and does not notice, sends what the memory had
 * before, or receives into pages that nobody sees any more: so the bytes are compared. Where
 * nothing is registered this holds by itself.
 */
#include "conf/conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES  ((size_t)1 << 20)
#define HALF   (BYTES / 2)
#define HUGE   ((size_t)2 << 20)
#define ROUNDS 1 /* more only take longer where a machine is emulated */

static const struct conf_options plain;

/* Two nodes, and a buffer at each. */
struct scene {
	struct conf_pair pair;
	uint8_t *out, *in;
	uint32_t seed;
};

/* -- messages ------------------------------------------------------------------------------- */

static void exchange(struct scene *s, uint8_t *out, uint8_t *in, size_t bytes)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;

	s->seed++;
	conf_fill(out, bytes, s->seed);
	memset(in, 0xee, bytes);
	CONF_RETRY(&s->pair,
		   fi_trecv(s->pair.b.ep, in, bytes, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(&s->pair, fi_tsend(s->pair.a.ep, out, bytes, NULL, s->pair.to_b, 1, &sent));
	conf_wait(&s->pair, s->pair.b.rxcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &received);
	conf_wait(&s->pair, s->pair.a.txcq, &entry, NULL);
	assert_ptr_equal(entry.op_context, &sent);
	conf_check(in, bytes, s->seed);
}

/* Whatever is kept of the two is kept now. */
static void use(struct scene *s)
{
	exchange(s, s->out, s->in, BYTES);
	exchange(s, s->out, s->in, BYTES);
}

static void scene_open(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	/* Where registering costs nothing it is not kept unasked: ask. */
	if (conf_is_rvcm())
		setenv("FI_RVCM_MR_CACHE_MONITOR", "userfaultfd", 0);
	conf_pair_open(&s->pair, &plain);
}

static void scene_close(struct scene *s)
{
	conf_pair_close(&s->pair);
}

/* -- memory --------------------------------------------------------------------------------- */

static uint8_t *map_at(void *at, size_t bytes, int flags)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | flags | (at ? MAP_FIXED : 0), -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static uint8_t *map(size_t bytes)
{
	return map_at(NULL, bytes, MAP_PRIVATE);
}

/* A way to change the pages of a buffer, which stays where it is. */
typedef void change_fn(uint8_t *buf);

/* Change the sender's buffer, the receiver's, and both. */
static void messages_after(change_fn *change, uint8_t *(*make)(size_t bytes))
{
	struct scene s;

	scene_open(&s);
	s.out = make(BYTES);
	s.in = make(BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		for (int which = 1; which <= 3; which++) {
			use(&s);
			if (which & 1)
				change(s.out);
			if (which & 2)
				change(s.in);
			exchange(&s, s.out, s.in, BYTES);
		}
	}
	munmap(s.out, BYTES);
	munmap(s.in, BYTES);
	scene_close(&s);
}

static void unmap_and_map(uint8_t *buf)
{
	assert_int_equal(munmap(buf, BYTES), 0);
	assert_ptr_equal(map_at(buf, BYTES, MAP_PRIVATE), buf);
}

static void unmapped_and_mapped_again(void **state)
{
	(void)state;
	messages_after(unmap_and_map, map);
}

static void map_over(uint8_t *buf)
{
	map_at(buf + HALF, HALF, MAP_PRIVATE);
}

static void mapped_over(void **state)
{
	(void)state;
	messages_after(map_over, map);
}

/* Its pages go elsewhere, with what was in them, and others come. */
static void move_away(uint8_t *buf)
{
	void *elsewhere = mremap(buf, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, map(BYTES));

	assert_ptr_not_equal(elsewhere, MAP_FAILED);
	map_at(buf, BYTES, MAP_PRIVATE);
	munmap(elsewhere, BYTES);
}

static void moved_away(void **state)
{
	(void)state;
	messages_after(move_away, map);
}

/* Another's pages come, from where they were registered. */
static void move_in(uint8_t *buf)
{
	uint8_t *other = map(BYTES);

	memset(other, 3, BYTES);
	assert_ptr_equal(mremap(other, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, buf), buf);
}

static void moved_in(void **state)
{
	(void)state;
	messages_after(move_in, map);
}

static void shrink(uint8_t *buf)
{
	assert_ptr_equal(mremap(buf, BYTES, HALF, 0), buf);
	map_at(buf + HALF, HALF, MAP_PRIVATE);
}

static void made_smaller(void **state)
{
	(void)state;
	messages_after(shrink, map);
}

static void drop(uint8_t *buf)
{
	assert_int_equal(madvise(buf, BYTES, MADV_DONTNEED), 0);
}

static void dropped(void **state)
{
	(void)state;
	messages_after(drop, map);
}

static uint8_t *map_shared(size_t bytes)
{
	return map_at(NULL, bytes, MAP_SHARED);
}

static void remove_pages(uint8_t *buf)
{
	assert_int_equal(madvise(buf + HALF, HALF, MADV_REMOVE), 0);
}

static void removed_from_shared_memory(void **state)
{
	(void)state;
	messages_after(remove_pages, map_shared);
}

/* In its place or elsewhere, as the kernel likes. */
static void made_larger(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	s.in = map(BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		s.out = map(HALF);
		exchange(&s, s.out, s.in, HALF);
		exchange(&s, s.out, s.in, HALF);
		s.out = mremap(s.out, HALF, BYTES, MREMAP_MAYMOVE);
		assert_ptr_not_equal(s.out, MAP_FAILED);
		use(&s);
		munmap(s.out, BYTES);
	}
	munmap(s.in, BYTES);
	scene_close(&s);
}

/* As free does with large pieces: the next one is where the last one was. */
static void freed_and_allocated(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	for (int i = 0; i < 5 * ROUNDS; i++) {
		s.out = malloc(BYTES);
		s.in = malloc(BYTES);
		use(&s);
		free(s.out);
		free(s.in);
	}
	scene_close(&s);
}

/*
 * The end of the heap is given back and taken again. malloc may have taken what lies behind it:
 * then it is not ours to give.
 */
static void given_back_to_the_heap(void **state)
{
	struct scene s;
	int done = 0;

	(void)state;
	scene_open(&s);
	s.in = map(BYTES);
	for (int i = 0; i < 20 && done < ROUNDS; i++) {
		s.out = sbrk((intptr_t)BYTES);
		assert_ptr_not_equal(s.out, (void *)-1);
		use(&s);
		if (sbrk(0) != s.out + BYTES)
			continue;
		done++;
		assert_ptr_not_equal(sbrk(-(intptr_t)BYTES), (void *)-1);
		assert_ptr_equal(sbrk((intptr_t)BYTES), s.out);
		exchange(&s, s.out, s.in, BYTES);
	}
	assert_int_equal(done, ROUNDS);
	munmap(s.in, BYTES);
	scene_close(&s);
}

/* -- fork ----------------------------------------------------------------------------------- */

/* A child that shares the pages until somebody writes, and lives until it is told. */
static pid_t start_child(int *told)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 0 ? 0 : 1);
	}
	close(fds[0]);
	*told = fds[1];
	return pid;
}

static void shared_with_a_child(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	s.out = map(BYTES);
	s.in = map(BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		int told, status;
		pid_t pid;

		use(&s);
		pid = start_child(&told);
		use(&s); /* the first to write gets pages of its own */
		close(told);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		use(&s);
		drop(s.in);
		exchange(&s, s.out, s.in, BYTES);
	}
	munmap(s.out, BYTES);
	munmap(s.in, BYTES);
	scene_close(&s);
}

/* -- other kinds of memory ------------------------------------------------------------------ */

/* Only a machine that is a test's own may have its huge pages changed. */
static void make_huge_pages(void)
{
	int fd = getenv("FABTEST_GUEST") ? open("/proc/sys/vm/nr_hugepages", O_WRONLY) : -1;

	if (fd < 0)
		return;
	assert_int_equal(write(fd, "8", 1), 1);
	close(fd);
}

static uint8_t *map_huge(void)
{
	void *p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void huge_pages(void **state)
{
	struct scene s;

	(void)state;
	make_huge_pages();
	scene_open(&s);
	s.in = map(BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		s.out = map_huge();
		assert_false(!s.out && getenv("FABTEST_GUEST"));
		if (!s.out) {
			print_message("# no huge pages here (vm.nr_hugepages): not tried\n");
			break;
		}
		use(&s);
		exchange(&s, s.in, s.out + 12345, BYTES);
		assert_int_equal(munmap(s.out, HUGE), 0);
	}
	munmap(s.in, BYTES);
	scene_close(&s);
}

/* Mapped so and so, and then other memory in its place. */
static void files(void **state)
{
	FILE *file = tmpfile();
	struct scene s;

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)BYTES), 0);
	scene_open(&s);
	s.in = map(BYTES);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		s.out = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, i % 2 ? MAP_SHARED : MAP_PRIVATE,
			     fileno(file), 0);
		assert_ptr_not_equal(s.out, MAP_FAILED);
		use(&s);
		exchange(&s, s.in, s.out, BYTES);
		unmap_and_map(s.out);
		use(&s);
		munmap(s.out, BYTES);
	}
	munmap(s.in, BYTES);
	scene_close(&s);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmapped_and_mapped_again),
		cmocka_unit_test(mapped_over),
		cmocka_unit_test(moved_away),
		cmocka_unit_test(moved_in),
		cmocka_unit_test(made_smaller),
		cmocka_unit_test(made_larger),
		cmocka_unit_test(dropped),
		cmocka_unit_test(removed_from_shared_memory),
		cmocka_unit_test(freed_and_allocated),
		cmocka_unit_test(given_back_to_the_heap),
		cmocka_unit_test(shared_with_a_child),
		cmocka_unit_test(huge_pages),
		cmocka_unit_test(files),
	};

	return conf_run_tests("conf_stale", tests);
}

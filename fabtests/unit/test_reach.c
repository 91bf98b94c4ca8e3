/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is there, that is not, and that may only be read. */
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reach.h"

#define PAGES 5

struct pages {
	size_t size; /* of one */
	uint8_t *at;
	size_t bytes;
};

static struct pages pages_open(void)
{
	struct pages p = { .size = (size_t)sysconf(_SC_PAGESIZE) };

	p.bytes = PAGES * p.size;
	p.at = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p.at, MAP_FAILED);
	return p;
}

static void pages_close(const struct pages *p)
{
	assert_int_equal(munmap(p->at, p->bytes), 0);
}

static void protect(const struct pages *p, size_t page, int prot)
{
	assert_int_equal(mprotect(p->at + page * p->size, p->size, prot), 0);
}

/* Of all but the first and the last byte; both ways of asking say the same. */
static bool there(const struct pages *p, bool write)
{
	bool ends = rvcm_reach_ends(p->at + 1, p->bytes - 2, write);

	assert_int_equal(rvcm_reach(p->at + 1, p->bytes - 2, write), ends);
	return ends;
}

static void what_is_there_is_there(void **state)
{
	struct pages p = pages_open();

	(void)state;
	assert_true(there(&p, false));
	assert_true(there(&p, true));
	for (size_t i = 0; i < p.bytes; i++)
		assert_int_equal(p.at[i], 0);
	assert_true(rvcm_reach_ends(p.at, 1, true));
	assert_true(rvcm_reach_ends(p.at + p.bytes - 1, 1, true));
	assert_true(rvcm_reach_ends(p.at, p.size + 1, true));
	pages_close(&p);
}

static void a_hole_is_found(void **state)
{
	struct pages p = pages_open();

	(void)state;
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(munmap(p.at + i * p.size, p.size), 0);
		assert_false(there(&p, false));
		assert_false(there(&p, true));
		assert_ptr_equal(mmap(p.at + i * p.size, p.size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 p.at + i * p.size);
	}
	assert_true(there(&p, true));
	pages_close(&p);
}

static void ends_that_may_only_be_read(void **state)
{
	struct pages p = pages_open();

	(void)state;
	for (size_t i = 0; i < PAGES; i += PAGES - 1) {
		protect(&p, i, PROT_READ);
		assert_true(there(&p, false));
		assert_false(there(&p, true));
		protect(&p, i, PROT_NONE);
		assert_false(there(&p, false));
		assert_false(there(&p, true));
		protect(&p, i, PROT_READ | PROT_WRITE);
	}
	pages_close(&p);
}

/* What costs nothing does not see that. */
static void a_middle_that_may_only_be_read(void **state)
{
	struct pages p = pages_open();

	(void)state;
	protect(&p, PAGES / 2, PROT_READ);
	assert_false(rvcm_reach(p.at, p.bytes, true));
	assert_true(rvcm_reach_ends(p.at, p.bytes, true));
	pages_close(&p);
}

static void no_addresses_at_all(void **state)
{
	static char here;

	(void)state;
	assert_false(rvcm_reach_ends(NULL, 1, false));
	assert_false(rvcm_reach_ends((void *)-(uintptr_t)2, 1, false));
	assert_false(rvcm_reach_ends(&here, SIZE_MAX / 2, false));
	assert_false(rvcm_reach_ends(&here, SIZE_MAX, false));
}

/* The kernel's clock: it has no pages as other memory has them, as a device's has not. */
static void what_has_no_pages(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	void *from = NULL, *to = NULL;
	char line[512];

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]"))
			assert_int_equal(sscanf(line, "%p-%p", &from, &to), 2);
	fclose(maps);
	if (!from)
		skip();
	assert_true(rvcm_reach_ends(from, 1, false));
	assert_false(rvcm_reach_ends(from, 1, true));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_there),
		cmocka_unit_test(a_hole_is_found),
		cmocka_unit_test(ends_that_may_only_be_read),
		cmocka_unit_test(a_middle_that_may_only_be_read),
		cmocka_unit_test(no_addresses_at_all),
		cmocka_unit_test(what_has_no_pages),
	};

	return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}

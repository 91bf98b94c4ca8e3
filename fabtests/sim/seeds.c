/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/seeds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "unit/logged.h"

#define HANG_S 60u /* of one schedule, which takes milliseconds */

static struct {
	const char *program;
	uint64_t first, count; /* of the command line; count 0 = none given */
	volatile uint64_t current;
	volatile sig_atomic_t running;
} seeds;

static void say(void)
{
	char line[120];
	int n = snprintf(line, sizeof(line), "# failed: %s %llu\n", seeds.program,
			 (unsigned long long)seeds.current);

	if (n > 0 && seeds.running && write(STDERR_FILENO, line, (size_t)n) != n)
		seeds.running = 0;
}

/* An assertion of the code under test, or a loop that does not end. */
static void struck(int signo)
{
	say();
	signal(signo, SIG_DFL);
	raise(signo);
}

void seeds_each(uint64_t count, void (*run)(uint64_t seed))
{
	uint64_t first = seeds.count ? seeds.first : 1, n = seeds.count ? seeds.count : count;

	seeds.running = 1;
	for (seeds.current = first; seeds.current - first < n; seeds.current++) {
		alarm(HANG_S);
		run(seeds.current);
	}
	alarm(0);
	seeds.running = 0;
}

uint32_t seeds_max_links(uint64_t seed)
{
	uint64_t drawn = rvcm_hash_mix(seed ^ 0x6c696e6b73);

	return drawn % 3 ? 0 : 1 + (uint32_t)(drawn >> 32) % 3;
}

int seeds_report(void **state)
{
	(void)state;
	alarm(0);
	say();
	seeds.running = 0;
	return 0;
}

int seeds_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
	const char *slash = strrchr(argv[0], '/');

	seeds.program = slash ? slash + 1 : argv[0];
	if (argc > 1) {
		seeds.first = strtoull(argv[1], NULL, 0);
		seeds.count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
		tests += n - 1;
		n = 1;
	}
	if (getenv("SEEDS_LOG"))
		test_logged_begin(RVCM_LOG_DEBUG);
	signal(SIGABRT, struck);
	signal(SIGALRM, struck);
	return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}

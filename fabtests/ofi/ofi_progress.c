/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rvcm's threads, as the kernel sees them: one for connections while there is a domain, one more
 * for each domain with automatic progress, all asleep when there is nothing to do, none left
 * behind.
 */
#include "conf/conf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Threads of that name; *switches becomes how often they have gone to sleep, altogether. */
static int count_threads(const char *name, unsigned long *switches)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	*switches = 0;
	while ((entry = readdir(dir))) {
		char path[300], line[128], word[64] = "";
		unsigned long value = 0;
		bool ours = false;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "Name: %63s", word) == 1)
				ours = strcmp(word, name) == 0;
			if (ours && sscanf(line, "voluntary_ctxt_switches: %lu", &value) == 1)
				*switches += value;
		}
		n += ours;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

static int threads(const char *name)
{
	unsigned long switches;

	return count_threads(name, &switches);
}

static void threads_come_and_go_with_domains(void **state)
{
	const struct conf_options manual = { .progress = FI_PROGRESS_MANUAL },
				  automatic = { .progress = FI_PROGRESS_AUTO };
	struct conf_node nodes[3];

	(void)state;
	assert_int_equal(threads("rvcm-control"), 0);
	conf_open(&nodes[0], &manual);
	assert_int_equal(threads("rvcm-control"), 1);
	assert_int_equal(threads("rvcm-progress"), 0);
	conf_open(&nodes[1], &automatic);
	conf_open(&nodes[2], &automatic);
	assert_int_equal(threads("rvcm-control"), 1);
	assert_int_equal(threads("rvcm-progress"), 2);
	conf_close(&nodes[0]);
	conf_close(&nodes[1]);
	assert_int_equal(threads("rvcm-control"), 1);
	assert_int_equal(threads("rvcm-progress"), 1);
	conf_close(&nodes[2]);
	assert_int_equal(threads("rvcm-control"), 0);
	assert_int_equal(threads("rvcm-progress"), 0);
}

/* Connected and idle: whoever polls, or wakes by a clock, is seen here. */
static void idle_threads_are_asleep(void **state)
{
	static const char *const names[] = { "rvcm-control", "rvcm-progress" };
	const struct conf_options automatic = { .progress = FI_PROGRESS_AUTO };
	const struct timespec moment = { .tv_nsec = 200 * 1000 * 1000 };
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	char in;

	(void)state;
	conf_pair_open(&pair, &automatic);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, 1, &sent));
	conf_wait(&pair, pair.b.rxcq, &entry, NULL);
	conf_wait(&pair, pair.a.txcq, &entry, NULL);
	for (int i = 0; i < 2; i++) {
		unsigned long before, after;
		uint64_t deadline = conf_deadline();

		/* what is left of the exchange may take a moment; then there is silence */
		do {
			conf_not_late(deadline);
			count_threads(names[i], &before);
			nanosleep(&moment, NULL);
			assert_int_equal(count_threads(names[i], &after), i ? 2 : 1);
		} while (after != before);
	}
	conf_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_come_and_go_with_domains),
		cmocka_unit_test(idle_threads_are_asleep),
	};

	conf_provider();
	return conf_run_tests("progress", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer without libFuzzer: each input of its corpus once, so that every build compiles it and
 * every make check runs what it has found. The corpus is corpus/NAME.hex with an input a line, or a
 * folder corpus/NAME of files.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "fuzz/fuzz.h"

#include "unit/unit.h"

/* The longest input, see max_len of fuzz.sh. */
#define INPUT_MAX 1000

static char corpus[4096];

static size_t replay_line(const char *line)
{
	uint8_t input[INPUT_MAX];
	size_t n = 0;

	for (unsigned int byte; sscanf(line + 2 * n, "%2x", &byte) == 1; n++) {
		assert_in_range(n, 0, INPUT_MAX - 1);
		input[n] = (uint8_t)byte;
	}
	LLVMFuzzerTestOneInput(input, n);
	return 1;
}

static size_t replay_lines(FILE *file)
{
	char line[2 * INPUT_MAX + 2];
	size_t n = 0;

	while (fgets(line, sizeof(line), file))
		n += replay_line(line);
	fclose(file);
	return n;
}

static size_t replay_file(const char *folder, const char *name)
{
	uint8_t input[INPUT_MAX];
	char path[sizeof(corpus) + 256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof(input), file));
	fclose(file);
	return 1;
}

static size_t replay_folder(DIR *dir)
{
	size_t n = 0;

	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			n += replay_file(corpus, entry->d_name);
	closedir(dir);
	return n;
}

static void the_corpus_keeps_every_promise(void **state)
{
	DIR *dir = opendir(corpus);
	FILE *file;

	(void)state;
	if (dir) {
		assert_int_not_equal(replay_folder(dir), 0);
		return;
	}
	strcat(corpus, ".hex");
	file = fopen(corpus, "r");
	assert_non_null(file);
	assert_int_not_equal(replay_lines(file), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_corpus_keeps_every_promise) };
	const char *top = getenv("top_srcdir");
	const char *name = strrchr(argv[0], '_');

	(void)argc;
	if (!name)
		return EXIT_FAILURE;
	snprintf(corpus, sizeof(corpus) - sizeof(".hex"), "%s/fabtests/fuzz/corpus/%s",
		 top ? top : ".", name + 1);
	return cmocka_run_group_tests_name(argv[0], tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi/caught.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/conf.h"

#define TEXT_MAX   (1 << 16)
#define LINE_CHARS 4096

static int stderr_fd = -1;
static char log_name[] = "/tmp/rvcm-ofi.XXXXXX";

int caught_setup(void **state)
{
	int fd = mkstemp(log_name);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

int caught_teardown(void **state)
{
	(void)state;
	return unlink(log_name);
}

void caught_begin(void)
{
	int fd = open(log_name, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	fflush(stderr);
	stderr_fd = dup(2);
	dup2(fd, 2);
	close(fd);
}

char *caught_read(FILE *file)
{
	char *text = calloc(1, TEXT_MAX), *line = malloc(LINE_CHARS);

	assert_non_null(file);
	while (fgets(line, LINE_CHARS, file))
		if (strstr(line, ":rvcm:"))
			strncat(text, line, TEXT_MAX - strlen(text) - 1);
	free(line);
	return text;
}

char *caught_end(void)
{
	FILE *file;
	char *text;

	fflush(stderr);
	dup2(stderr_fd, 2);
	close(stderr_fd);
	file = fopen(log_name, "r");
	text = caught_read(file);
	fclose(file);
	return text;
}

int caught_lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

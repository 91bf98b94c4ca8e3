/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES     15
#define SAMPLES_MAX 4096
#define ACK_BYTES   8

enum kind {
	LAT,
	BW,
	RATE
};

#define KINDS (RATE + 1)

static const char *const kinds[KINDS] = { "lat", "bw", "rate" };

/* What is measured: turns of a sample, each a round trip or a window of messages. By kind, and
 * size. */
static const struct row {
	enum kind kind;
	size_t bytes;
	int turns;
	int window;
} plan[] = {
	{ LAT, 8, 300, 0 },       { LAT, 64, 300, 0 },       { LAT, 1 << 10, 300, 0 },
	{ LAT, 4 << 10, 200, 0 }, { LAT, 16 << 10, 100, 0 }, { LAT, 32 << 10, 100, 0 },
	{ LAT, 64 << 10, 50, 0 }, { LAT, 128 << 10, 30, 0 }, { LAT, 256 << 10, 20, 0 },
	{ LAT, 1 << 20, 5, 0 },   { BW, 1 << 10, 4, 64 },    { BW, 4 << 10, 4, 64 },
	{ BW, 16 << 10, 4, 64 },  { BW, 64 << 10, 2, 64 },   { BW, 256 << 10, 1, 64 },
	{ BW, 1 << 20, 1, 16 },   { BW, 4 << 20, 1, 8 },     { RATE, 8, 40, BENCH_WINDOW_MAX },
};

/* Before the first: caches, windows and clocks find their way. */
static const struct row warm_up = { LAT, 8, 5000, 0 };

static bool first;     /* this is the process that prints */
static int divide = 1; /* so many times fewer turns */
static int samples = SAMPLES;

void bench_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

void bench_ok(long rc, const char *what)
{
	if (rc < 0)
		bench_die("%s: %ld (errno %d: %s)", what, rc, errno, strerror(errno));
}

/* -- measuring ----------------------------------------------------------------------------- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t byte_of(size_t i, unsigned int sample, bool of_first)
{
	return (uint8_t)(i * 7 + i / 251 + sample * 16 + of_first);
}

static void fill(uint8_t *buf, size_t bytes, unsigned int sample)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = byte_of(i, sample, first);
}

static void check(const uint8_t *buf, size_t bytes, unsigned int sample)
{
	for (size_t i = 0; i < bytes; i++)
		if (buf[i] != byte_of(i, sample, !first))
			bench_die("byte %zu of %zu is wrong", i, bytes);
}

static int turns_of(const struct row *row)
{
	return row->turns > divide ? row->turns / divide : 1;
}

static void round_trips(const struct bench_ops *ops, const struct row *row, void *out, void *in)
{
	for (int i = 0; i < turns_of(row); i++) {
		if (first)
			ops->send(out, row->bytes);
		ops->recv(in, row->bytes);
		if (!first)
			ops->send(out, row->bytes);
	}
}

static void windows(const struct bench_ops *ops, const struct row *row, void *out, void *in)
{
	for (int i = 0; i < turns_of(row); i++) {
		if (first) {
			ops->stream(out, row->bytes, row->window);
			ops->recv(in, ACK_BYTES);
		} else {
			ops->sink(in, row->bytes, row->window);
			ops->send(out, ACK_BYTES);
		}
	}
}

static double sample(const struct bench_ops *ops, const struct row *row, uint8_t *out, uint8_t *in,
		     unsigned int number)
{
	size_t due = row->kind == LAT || !first ? row->bytes : ACK_BYTES;
	double start;

	fill(out, row->bytes, number);
	memset(in, 0, row->bytes);
	ops->meet();
	start = now_s();
	if (row->kind == LAT)
		round_trips(ops, row, out, in);
	else
		windows(ops, row, out, in);
	start = now_s() - start;
	check(in, due, number);
	return start;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double result(const struct row *row, double seconds)
{
	double messages = (double)turns_of(row) * row->window;

	switch (row->kind) {
	case LAT:
		return seconds / turns_of(row) / 2 * 1e6;
	case BW:
		return messages * (double)row->bytes / seconds * 1e-6;
	default:
		return messages / seconds * 1e-6;
	}
}

static void measure(const struct bench_ops *ops, const struct row *row, void *out, void *in)
{
	double seconds[SAMPLES_MAX];

	for (int i = 0; i < samples; i++)
		seconds[i] = sample(ops, row, out, in, (unsigned int)i);
	qsort(seconds, (size_t)samples, sizeof(seconds[0]), by_value);
	if (first)
		printf("%s %zu %.3f %.3f\n", kinds[row->kind], row->bytes,
		       result(row, seconds[samples / 2]), result(row, seconds[0]));
	fflush(stdout);
}

/* -- the plan ------------------------------------------------------------------------------ */

#define ROWS (sizeof(plan) / sizeof(plan[0]))

/* As the plan's next longer one; beyond the longest, with as many fewer turns. */
static struct row row_of(enum kind kind, size_t bytes)
{
	const struct row *like = NULL;
	struct row row;

	for (size_t i = 0; i < ROWS; i++)
		if (plan[i].kind == kind && (!like || like->bytes < bytes))
			like = &plan[i];
	row = *like;
	row.bytes = bytes;
	if (bytes > like->bytes)
		row.turns = (int)((size_t)row.turns * like->bytes / bytes);
	if (row.turns < 1)
		row.turns = 1;
	return row;
}

static enum kind kind_of(const char *name, size_t length)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (strlen(kinds[kind]) == length && !memcmp(kinds[kind], name, length))
			return (enum kind)kind;
	bench_die("\"%s\" is no row: lat, bw or rate, or one of them with a size, lat:8", name);
}

/* All rows of that kind, or the one that it names. */
static void measure_named(const struct bench_ops *ops, const char *name, void *out, void *in)
{
	size_t length = strcspn(name, ":");
	enum kind kind = kind_of(name, length);
	unsigned long bytes;
	struct row row;
	char *end;

	if (!name[length]) {
		for (size_t i = 0; i < ROWS; i++)
			if (plan[i].kind == kind)
				measure(ops, &plan[i], out, in);
		return;
	}
	bytes = strtoul(name + length + 1, &end, 10);
	if (*end || bytes == 0 || bytes > BENCH_BYTES_MAX)
		bench_die("\"%s\": a size is 1 to %zu bytes", name, BENCH_BYTES_MAX);
	row = row_of(kind, bytes);
	measure(ops, &row, out, in);
}

/* What an environment variable says, or that. */
static int number_of(const char *variable, int otherwise, int most)
{
	const char *text = getenv(variable);
	long number;
	char *end;

	if (!text)
		return otherwise;
	number = strtol(text, &end, 10);
	if (*end || number < 1 || number > most)
		bench_die("%s is \"%s\", not a number from 1 to %d", variable, text, most);
	return (int)number;
}

static void *buffer(void)
{
	void *buf = aligned_alloc(4096, BENCH_BYTES_MAX);

	if (!buf)
		bench_die("no memory");
	memset(buf, 0, BENCH_BYTES_MAX);
	return buf;
}

void bench_run(const struct bench_ops *ops, int is_first, int argc, char **argv)
{
	void *out = buffer(), *in = buffer();

	first = is_first;
	divide = number_of("BENCH_DIVIDE", 1, INT_MAX);
	samples = number_of("BENCH_SAMPLES", SAMPLES, SAMPLES_MAX);
	ops->open(first);
	round_trips(ops, &warm_up, out, in);
	for (int i = 0; i < argc; i++)
		measure_named(ops, argv[i], out, in);
	for (int kind = 0; kind < KINDS && argc == 0; kind++)
		measure_named(ops, kinds[kind], out, in);
	ops->close();
	free(in);
	free(out);
}

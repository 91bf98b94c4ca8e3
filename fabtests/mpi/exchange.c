/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange [-t] [-m BYTES] [-l] [PHASE...]: MPI messages of every kind, every byte checked.
 *
 * Runs the phases (all of them, or those named) one after the other on every rank.  A wrong byte, a
 * wrong status or a call that breaks MPI's rules ends the job with MPI_Abort.  At the end rank 0
 *prints one line for each rank:
 *
 *	exchange: rank R of N: C checks, B bytes sent point to point
 *
 * B is payload to other ranks (not to itself, not of collectives): what a transport has to have
 *carried at the least.
 */
#include "exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((size_t)16 << 20)

static const struct exchange_phase *const parts[] = { exchange_p2p_phases, exchange_match_phases,
						      exchange_coll_phases,
						      exchange_thread_phases };
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

struct payload_key exchange_send_key(struct exchange *x, int dest, int tag, size_t size,
				     unsigned int serial)
{
	if (dest != x->rank)
		x->bytes_sent += size;
	return (struct payload_key) { x->rank, dest, tag, serial };
}

void exchange_prepare(struct exchange *x, void *buf, size_t size, int dest, int tag,
		      unsigned int serial)
{
	payload_fill(buf, size, exchange_send_key(x, dest, tag, size, serial));
}

void exchange_expect(struct exchange *x, int holds, const char *condition)
{
	x->checks++;
	if (holds)
		return;
	fprintf(stderr, "%s: rank %d: not true: %s\n", x->phase, x->rank, condition);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

void exchange_verify(struct exchange *x, const void *buf, size_t size, int source, int tag,
		     unsigned int serial, const MPI_Status *status)
{
	int count;

	payload_check(buf, size, (struct payload_key) { source, x->rank, tag, serial }, x->phase);
	x->checks++;
	if (!status)
		return;
	EXPECT(x, MPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS);
	EXPECT(x, (size_t)count == size);
	EXPECT(x, status->MPI_TAG == tag);
}

static int by_size(const void *a, const void *b)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;

	return (left > right) - (left < right);
}

/*
 * Powers of two and their neighbours; below them by a few header sizes where eager limits are usual
 * (a limit is often a power of two less a header); some that divide by nothing.
 */
static void make_sizes(struct exchange *x)
{
	static const size_t odd[] = {
		0, 1, 2, 3, 5, 13, 1000, 1500, 9000, 100003, 1000003, 10000019
	};
	static const size_t header[] = { 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128 };
	size_t n = 0, unique = 0;

	x->sizes = payload_alloc(1024 * sizeof(size_t));
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		x->sizes[n++] = odd[i];
	for (size_t power = 4; power <= BYTES_MAX; power *= 2) {
		for (size_t d = 0; d < 3; d++)
			x->sizes[n++] = power - 1 + d;
	}
	for (size_t power = 1024; power <= 65536; power *= 2) {
		for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
			x->sizes[n++] = power - header[i];
	}
	qsort(x->sizes, n, sizeof(size_t), by_size);
	for (size_t i = 0; i < n; i++) {
		if (x->sizes[i] <= x->bytes_max && (i == 0 || x->sizes[i] != x->sizes[i - 1]))
			x->sizes[unique++] = x->sizes[i];
	}
	x->n_sizes = unique;
}

static int wanted(const char *name, char **names, int n)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return 1;
	}
	return n == 0;
}

static int run_phases(struct exchange *x, char **names, int n)
{
	int run = 0;

	for (size_t i = 0; i < N_PARTS; i++) {
		if (parts[i] == exchange_thread_phases && !x->threads)
			continue;
		for (const struct exchange_phase *p = parts[i]; p->name; p++) {
			if (!wanted(p->name, names, n))
				continue;
			if (x->rank == 0)
				fprintf(stderr, "# %s\n", p->name);
			x->phase = p->name;
			p->run(x);
			MPI_Barrier(MPI_COMM_WORLD);
			run++;
		}
	}
	return run;
}

static void list_phases(void)
{
	for (size_t i = 0; i < N_PARTS; i++) {
		for (const struct exchange_phase *p = parts[i]; p->name; p++)
			puts(p->name);
	}
}

static void summary(const struct exchange *x)
{
	uint64_t mine[2] = { x->checks, x->bytes_sent };
	uint64_t *all = payload_alloc(sizeof(mine) * (size_t)x->ranks);

	MPI_Gather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	for (int r = 0; x->rank == 0 && r < x->ranks; r++)
		printf("exchange: rank %d of %d: %" PRIu64 " checks, %" PRIu64
		       " bytes sent point to point\n",
		       r, x->ranks, all[2 * r], all[2 * r + 1]);
	fflush(stdout);
	free(all);
}

static int parse(struct exchange *x, int argc, char **argv)
{
	int c;

	x->bytes_max = BYTES_MAX;
	while ((c = getopt(argc, argv, "lm:t")) != -1) {
		switch (c) {
		case 'l':
			list_phases();
			exit(0);
		case 'm':
			x->bytes_max = strtoul(optarg, NULL, 0);
			break;
		case 't':
			x->threads = 1;
			break;
		default:
			return -1;
		}
	}
	return x->bytes_max <= BYTES_MAX ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct exchange x = { 0 };
	int run, level;

	if (parse(&x, argc, argv)) {
		fprintf(stderr, "usage: exchange [-t] [-m BYTES (up to 16 MiB)] [-l] [PHASE...]\n");
		return 2;
	}
	MPI_Init_thread(&argc, &argv, x.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
	if (x.ranks < 2) {
		fprintf(stderr, "exchange: needs at least two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	x.phase = "start";
	EXPECT(&x, !x.threads || level == MPI_THREAD_MULTIPLE);
	make_sizes(&x);
	run = run_phases(&x, argv + optind, argc - optind);
	if (run == 0) {
		fprintf(stderr, "exchange: no such phase: -l lists them\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	summary(&x);
	free(x.sizes);
	MPI_Finalize();
	return 0;
}

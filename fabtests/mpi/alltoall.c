/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alltoall DIRECTORY: every rank sends to every other one, round after round, and checks every byte
 * that comes.  Not by MPI_Alltoall, which would leave out pairs of ranks that it does not need.
 *
 * After the first round the file "connected" is in DIRECTORY; when "over" is there the next round
 *is the last.  Rank 0 prints
 *
 *	alltoall: N ranks, R rounds in S s, B bytes sent by each rank
 */
#include "payload.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const size_t sizes[] = { 8, 3000, 20000 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST 20000

struct world {
	int rank;
	int ranks;
	void **in; /* by rank; our own is not used */
	void **out;
	MPI_Request *requests;
};

static void open_world(struct world *w)
{
	MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
	w->in = calloc((size_t)w->ranks, sizeof(*w->in));
	w->out = calloc((size_t)w->ranks, sizeof(*w->out));
	w->requests = calloc(2 * (size_t)w->ranks, sizeof(MPI_Request));
	for (int i = 0; i < w->ranks; i++) {
		w->in[i] = payload_alloc(LARGEST);
		w->out[i] = payload_alloc(LARGEST);
	}
}

static void close_world(struct world *w)
{
	for (int i = 0; i < w->ranks; i++) {
		free(w->in[i]);
		free(w->out[i]);
	}
	free(w->in);
	free(w->out);
	free(w->requests);
}

/* Returns what was sent. */
static uint64_t exchange(struct world *w, unsigned int round)
{
	size_t size = sizes[round % N_SIZES];
	int n = 0;

	/* Each begins with the rank behind it: not all with the same. */
	for (int i = 1; i < w->ranks; i++) {
		int peer = (w->rank + i) % w->ranks;

		payload_poison(w->in[peer], size);
		MPI_Irecv(w->in[peer], (int)size, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
			  &w->requests[n++]);
	}
	for (int i = 1; i < w->ranks; i++) {
		int peer = (w->rank + i) % w->ranks;

		payload_fill(w->out[peer], size, (struct payload_key) { w->rank, peer, 1, round });
		MPI_Isend(w->out[peer], (int)size, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
			  &w->requests[n++]);
	}
	MPI_Waitall(n, w->requests, MPI_STATUSES_IGNORE);
	for (int i = 1; i < w->ranks; i++) {
		int peer = (w->rank + i) % w->ranks;

		payload_check(w->in[peer], size, (struct payload_key) { peer, w->rank, 1, round },
			      "alltoall");
	}
	return (uint64_t)size * (uint64_t)(w->ranks - 1);
}

static const char *path(const char *directory, const char *name)
{
	static char buf[512];

	snprintf(buf, sizeof(buf), "%s/%s", directory, name);
	return buf;
}

static void connected(const char *directory)
{
	FILE *file = fopen(path(directory, "connected"), "w");

	if (!file || fclose(file)) {
		perror(path(directory, "connected"));
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

/* As rank 0 sees it, and all must: it is asked before the last round. */
static int is_over(const struct world *w, const char *directory)
{
	int over = w->rank == 0 && access(path(directory, "over"), F_OK) == 0;

	MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return over;
}

int main(int argc, char **argv)
{
	unsigned int round = 0;
	struct world world;
	uint64_t bytes;
	double began;
	int over = 0;

	MPI_Init(&argc, &argv);
	if (argc != 2) {
		fprintf(stderr, "usage: alltoall DIRECTORY\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	open_world(&world);
	began = MPI_Wtime();
	bytes = exchange(&world, round++);
	MPI_Barrier(MPI_COMM_WORLD);
	if (world.rank == 0)
		connected(argv[1]);
	while (!over) {
		over = is_over(&world, argv[1]);
		bytes += exchange(&world, round++);
	}
	if (world.rank == 0)
		printf("alltoall: %d ranks, %u rounds in %.3f s, %" PRIu64
		       " bytes sent by each rank\n",
		       world.ranks, round, MPI_Wtime() - began, bytes);
	close_world(&world);
	MPI_Finalize();
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent RANK SECONDS: that rank computes for so long without a call of MPI, while messages to it
 * and from it are under way; the others wait for them, and make progress all the time. Every byte
 * is checked. Each rank prints
 *
 *	absent: rank R: B bytes sent
 */
#include "payload.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS   3 /* it is absent in the second */
#define MESSAGES (sizeof(sizes) / sizeof(sizes[0]))

static const size_t sizes[] = { 0, 8, 5000, 70000, 600000, 3000001 };

/* All the messages between two ranks, both ways. */
struct talk {
	int peer;
	void *in[MESSAGES];
	void *out[MESSAGES];
	MPI_Request requests[2 * MESSAGES];
};

static void begin(struct talk *talk, int rank, int round)
{
	for (size_t i = 0; i < MESSAGES; i++) {
		struct payload_key key = { rank, talk->peer, (int)i, (unsigned int)round };

		talk->in[i] = payload_alloc(sizes[i]);
		talk->out[i] = payload_alloc(sizes[i]);
		payload_poison(talk->in[i], sizes[i]);
		payload_fill(talk->out[i], sizes[i], key);
		MPI_Irecv(talk->in[i], (int)sizes[i], MPI_BYTE, talk->peer, (int)i, MPI_COMM_WORLD,
			  &talk->requests[2 * i]);
		MPI_Isend(talk->out[i], (int)sizes[i], MPI_BYTE, talk->peer, (int)i, MPI_COMM_WORLD,
			  &talk->requests[2 * i + 1]);
	}
}

static uint64_t end(struct talk *talk, int rank, int round)
{
	uint64_t bytes = 0;

	MPI_Waitall(2 * (int)MESSAGES, talk->requests, MPI_STATUSES_IGNORE);
	for (size_t i = 0; i < MESSAGES; i++) {
		struct payload_key key = { talk->peer, rank, (int)i, (unsigned int)round };

		payload_check(talk->in[i], sizes[i], key, "absent");
		bytes += sizes[i];
		free(talk->in[i]);
		free(talk->out[i]);
	}
	return bytes;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(int rank, double seconds)
{
	double until = now() + seconds;
	uint64_t steps = 0;

	while (now() < until)
		steps++;
	printf("absent: rank %d computed for %.1f s, %" PRIu64 " steps\n", rank, seconds, steps);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 0;
	struct talk *talks;
	int rank, ranks, absent, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	absent = argc == 3 ? atoi(argv[1]) : -1;
	if (absent < 0 || absent >= ranks || ranks < 2) {
		fprintf(stderr, "usage: absent RANK SECONDS, with two ranks or more\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	n = rank == absent ? ranks - 1 : 1;
	talks = calloc((size_t)n, sizeof(*talks));
	for (int i = 0; i < n; i++)
		talks[i].peer = rank != absent ? absent : i < absent ? i : i + 1;
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			begin(&talks[i], rank, round);
		if (round == 1 && rank == absent)
			compute(rank, strtod(argv[2], NULL));
		for (int i = 0; i < n; i++)
			bytes += end(&talks[i], rank, round);
	}
	free(talks);
	printf("absent: rank %d: %" PRIu64 " bytes sent\n", rank, bytes);
	MPI_Finalize();
	return 0;
}

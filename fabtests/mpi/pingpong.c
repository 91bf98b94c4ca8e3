/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pingpong [BYTES]: how long a message takes one way, by size, between two MPI ranks; up to this
 * size, or 4 MiB.
 *
 * Each line is the median of SAMPLES samples; a sample is a number of round trips timed together,
 *of which the last message each way is checked byte by byte outside the timing.  The last line
 *tells the payload, so that it can be compared with what a transport says it carried:
 *
 *	pingpong: B bytes sent by each rank
 */
#include "payload.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES   9
#define BYTES_MAX ((size_t)4 << 20)

/* Round trips of one sample: enough to time, few enough for large messages on a slow machine. */
static int round_trips(size_t size)
{
	return size <= 1024 ? 200 : size <= 65536 ? 50 : 5;
}

/* One sample: seconds for one message one way, as rank 0 sees it. */
static double sample(int rank, void *out, void *in, size_t size)
{
	int n = round_trips(size), peer = 1 - rank, count = (int)size;
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < n; i++) {
		if (rank == 0)
			MPI_Send(out, count, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in, count, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, count, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - start) / n / 2;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Returns the payload sent. */
static uint64_t measure(int rank, void *out, void *in, size_t size)
{
	double times[SAMPLES], median;

	for (unsigned int i = 0; i < SAMPLES; i++) {
		payload_fill(out, size, (struct payload_key) { rank, 1 - rank, 1, i });
		payload_poison(in, size);
		times[i] = sample(rank, out, in, size);
		payload_check(in, size, (struct payload_key) { 1 - rank, rank, 1, i }, "pingpong");
	}
	qsort(times, SAMPLES, sizeof(times[0]), by_value);
	median = times[SAMPLES / 2];
	if (rank == 0)
		printf("%9zu %11.2f %11.1f\n", size, median * 1e6, (double)size / median / 1e6);
	fflush(stdout);
	return (uint64_t)size * SAMPLES * (uint64_t)round_trips(size);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 0;
	size_t most = BYTES_MAX;
	void *out, *in;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	if (argc > 1)
		most = strtoul(argv[1], NULL, 10);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2 || most > BYTES_MAX) {
		fprintf(stderr, "pingpong: needs two ranks and messages of at most 4 MiB\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	out = payload_alloc(BYTES_MAX);
	in = payload_alloc(BYTES_MAX);
	if (rank == 0)
		printf("%9s %11s %11s\n", "bytes", "us one way", "MB/s");
	bytes += measure(rank, out, in, 0);
	for (size_t size = 1; size <= most; size *= 2)
		bytes += measure(rank, out, in, size);
	if (rank == 0)
		printf("pingpong: %" PRIu64 " bytes sent by each rank\n", bytes);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}

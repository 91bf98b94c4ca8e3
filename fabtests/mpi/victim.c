/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * victim [RANK]: this rank (none if not given) kills itself with SIGKILL in the middle of traffic.
 *
 * Every rank exchanges large and small messages with every other, round after round; the victim
 * dies with its own sends and receives posted and those of the others under way. The others go on:
 * they end because MPI ends them, or their watchdog does. Without a victim the program ends by
 * itself, so a test can tell that the death, and nothing else, ended the job.
 *
 *	victim: N rounds done		printed by rank 0 when nobody died
 *	victim: rank R got an error: T	printed by who is told of the death by an operation's error
 */
#include "payload.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS      60
#define ROUND_FATAL 20
#define LARGE       ((size_t)1 << 20)
#define WATCHDOG_S  120

/* Post everything of a round: to and from each rank one large message and one of 8 bytes. */
static int post(int rank, int ranks, unsigned char *out, unsigned char *in, MPI_Request *request)
{
	int n = 0;

	for (int r = 0; r < ranks; r++) {
		unsigned char *at = in + (size_t)r * 2 * LARGE, *from = out + (size_t)r * 2 * LARGE;

		if (r == rank)
			continue;
		MPI_Irecv(at, (int)LARGE, MPI_BYTE, r, 0, MPI_COMM_WORLD, &request[n++]);
		MPI_Irecv(at + LARGE, 8, MPI_BYTE, r, 1, MPI_COMM_WORLD, &request[n++]);
		MPI_Isend(from, (int)LARGE, MPI_BYTE, r, 0, MPI_COMM_WORLD, &request[n++]);
		MPI_Isend(from + LARGE, 8, MPI_BYTE, r, 1, MPI_COMM_WORLD, &request[n++]);
	}
	return n;
}

/* Say it ourselves: what Open MPI's own handler says goes a way that the job's end may cut off. */
static void got_error(MPI_Comm *comm, int *code, ...)
{
	char text[MPI_MAX_ERROR_STRING];
	int rank, length;

	MPI_Comm_rank(*comm, &rank);
	MPI_Error_string(*code, text, &length);
	fprintf(stderr, "victim: rank %d got an error: %s\n", rank, text);
	MPI_Abort(*comm, 3);
}

int main(int argc, char **argv)
{
	int victim = argc > 1 ? atoi(argv[1]) : -1, rank, ranks, n;
	unsigned char *out, *in;
	MPI_Errhandler handler;
	MPI_Request *request;

	alarm(WATCHDOG_S);
	MPI_Init(&argc, &argv);
	MPI_Comm_create_errhandler(got_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = payload_alloc((size_t)ranks * 2 * LARGE);
	in = payload_alloc((size_t)ranks * 2 * LARGE);
	request = payload_alloc((size_t)ranks * 4 * sizeof(*request));
	payload_fill(out, (size_t)ranks * 2 * LARGE, (struct payload_key) { rank, 0, 0, 0 });
	for (int round = 0; round < ROUNDS; round++) {
		n = post(rank, ranks, out, in, request);
		if (rank == victim && round == ROUND_FATAL) {
			MPI_Testall(n, request, &(int) { 0 }, MPI_STATUSES_IGNORE);
			raise(SIGKILL);
		}
		MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	}
	if (rank == 0)
		printf("victim: %d rounds done\n", ROUNDS);
	free(request);
	free(in);
	free(out);
	MPI_Errhandler_free(&handler);
	MPI_Finalize();
	return 0;
}

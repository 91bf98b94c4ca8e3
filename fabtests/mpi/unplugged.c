/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unplugged RANK PREFIX: the host of that rank is cut off, for longer than is waited for. Each rank
 * has a message for each other; those to or from that rank end in an error, the others arrive.
 *
 * Who runs it cuts and mends, and is talked to by files, for mpirun's own connections may be cut
 * too: a rank makes PREFIX.ready.R, waits until PREFIX.cut is there, sends, writes a line to
 * PREFIX.done.R, and waits until PREFIX.mended is there. The line:
 *
 *	F of N sends failed, G receives are good
 */
#include "payload.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BYTES   100000
#define TAG     1
#define PATIENT 6000 /* turns of 10 ms */

static void name_file(char *buf, const char *prefix, const char *word, int rank)
{
	if (rank < 0)
		snprintf(buf, PATH_MAX, "%s.%s", prefix, word);
	else
		snprintf(buf, PATH_MAX, "%s.%s.%d", prefix, word, rank);
}

/* At once, or not at all. */
static void tell(const char *prefix, const char *word, int rank, const char *line)
{
	char path[PATH_MAX], draft[PATH_MAX];
	FILE *file;

	name_file(path, prefix, word, rank);
	name_file(draft, prefix, "draft", rank);
	file = fopen(draft, "w");
	if (!file || fprintf(file, "%s\n", line) < 0 || fclose(file) || rename(draft, path)) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
}

static void await(const char *prefix, const char *word)
{
	const struct timespec turn = { 0, 10000000 };
	char path[PATH_MAX];

	name_file(path, prefix, word, -1);
	for (int i = 0; access(path, F_OK); i++) {
		if (i == PATIENT) {
			fprintf(stderr, "unplugged: nobody made %s\n", path);
			MPI_Abort(MPI_COMM_WORLD, 4);
		}
		nanosleep(&turn, NULL);
	}
}

static void greet(int rank, int ranks)
{
	char in, out = 0;

	for (int i = 1; i < ranks; i++)
		MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + i) % ranks, 0, &in, 1, MPI_CHAR,
			     (rank + ranks - i) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Returns whether it went well. */
static int wait_for(MPI_Request *request)
{
	return MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

struct talk {
	void *in, *out;
	MPI_Request recv, send;
};

static void begin(struct talk *talk, int rank, int peer)
{
	const struct payload_key key = { rank, peer, TAG, 0 };

	talk->in = payload_alloc(BYTES);
	talk->out = payload_alloc(BYTES);
	payload_poison(talk->in, BYTES);
	payload_fill(talk->out, BYTES, key);
	MPI_Irecv(talk->in, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &talk->recv);
	MPI_Isend(talk->out, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &talk->send);
}

int main(int argc, char **argv)
{
	int rank, ranks, lost, failed = 0, good = 0;
	struct talk *talks;
	char line[100];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	lost = argc == 3 ? atoi(argv[1]) : -1;
	if (lost < 0 || lost >= ranks || ranks < 3) {
		fprintf(stderr, "usage: unplugged RANK PREFIX, with three ranks or more\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	greet(rank, ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	tell(argv[2], "ready", rank, "ready");
	await(argv[2], "cut");
	talks = calloc((size_t)ranks, sizeof(*talks));
	for (int i = 0; i < ranks; i++)
		if (i != rank)
			begin(&talks[i], rank, i);
	for (int i = 0; i < ranks; i++) {
		const struct payload_key key = { i, rank, TAG, 0 };

		if (i == rank)
			continue;
		failed += !wait_for(&talks[i].send);
		if (i == lost || rank == lost || !wait_for(&talks[i].recv))
			continue;
		payload_check(talks[i].in, BYTES, key, "unplugged");
		good++;
	}
	snprintf(line, sizeof(line), "%d of %d sends failed, %d receives are good", failed,
		 ranks - 1, good);
	tell(argv[2], "done", rank, line);
	await(argv[2], "mended");
	/* Receives of what failed are still there, and MPI has no end for a job like this. */
	fflush(NULL);
	_exit(0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_mpi [ROW...]: the same rows between two MPI ranks. Which transport carries them is the
 * launcher's business (bench.sh --mpi).
 */
#include "bench/bench.h"

#include <mpi.h>
#include <stddef.h>

#define TAG 1

static int peer;

static void mpi_open(int first)
{
	peer = first ? 1 : 0;
}

static void mpi_send(const void *buf, size_t bytes)
{
	MPI_Send(buf, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static void mpi_recv(void *buf, size_t bytes)
{
	MPI_Recv(buf, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void mpi_stream(const void *buf, size_t bytes, int n)
{
	MPI_Request requests[BENCH_WINDOW_MAX];

	for (int i = 0; i < n; i++)
		MPI_Isend(buf, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void mpi_sink(void *buf, size_t bytes, int n)
{
	MPI_Request requests[BENCH_WINDOW_MAX];

	for (int i = 0; i < n; i++)
		MPI_Irecv(buf, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void mpi_close(void)
{
}

static void mpi_meet(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct bench_ops ops = {
	.open = mpi_open,
	.send = mpi_send,
	.recv = mpi_recv,
	.stream = mpi_stream,
	.sink = mpi_sink,
	.close = mpi_close,
	.meet = mpi_meet,
};

int main(int argc, char **argv)
{
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		bench_die("needs two ranks");
	bench_run(&ops, rank == 0, argc - 1, argv + 1);
	MPI_Finalize();
	return 0;
}

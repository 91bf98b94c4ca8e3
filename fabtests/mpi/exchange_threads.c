/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads of a rank in MPI at once: each has a communicator, a tag and a count of its own.
 */
#include "exchange.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	THREADS = 4,
	ROUNDS = 100,
	BURST = 6
};

struct worker {
	struct exchange x; /* a copy: its counters are added to the original's at the end */
	pthread_t thread;
	MPI_Comm comm;
	int tag;
};

static size_t size_of(unsigned int serial)
{
	return serial % 11 == 10 ? 100000 + serial : (size_t)serial * 977 % 9000;
}

/* To the next rank, from the one before: a burst of messages, received in order by one wildcard. */
static void round_of(struct worker *w, unsigned int first, unsigned char *out, unsigned char *in)
{
	int to = (w->x.rank + 1) % w->x.ranks, from = (w->x.rank + w->x.ranks - 1) % w->x.ranks;
	MPI_Request request[BURST];
	size_t slot = 110000;
	MPI_Status status;

	for (unsigned int i = 0; i < BURST; i++) {
		size_t size = size_of(first + i);

		exchange_prepare(&w->x, out + i * slot, size, to, w->tag, first + i);
		MPI_Isend(out + i * slot, (int)size, MPI_BYTE, to, w->tag, w->comm, &request[i]);
	}
	for (unsigned int i = 0; i < BURST; i++) {
		payload_poison(in, slot);
		MPI_Recv(in, (int)slot, MPI_BYTE, MPI_ANY_SOURCE, w->tag, w->comm, &status);
		exchange_verify(&w->x, in, size_of(first + i), from, w->tag, first + i, &status);
	}
	MPI_Waitall(BURST, request, MPI_STATUSES_IGNORE);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned char *out = payload_alloc(BURST * 110000), *in = payload_alloc(110000);
	int sum;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		round_of(w, round * BURST, out, in);
		if (round % 10)
			continue;
		MPI_Allreduce(&w->x.rank, &sum, 1, MPI_INT, MPI_SUM, w->comm);
		EXPECT(&w->x, sum == w->x.ranks * (w->x.ranks - 1) / 2);
	}
	free(in);
	free(out);
	return NULL;
}

static void threads(struct exchange *x)
{
	struct worker worker[THREADS];

	for (int i = 0; i < THREADS; i++) {
		worker[i].x = *x;
		worker[i].x.checks = worker[i].x.bytes_sent = 0;
		worker[i].tag = 300 + i;
		MPI_Comm_dup(MPI_COMM_WORLD, &worker[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT(x, pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		EXPECT(x, pthread_join(worker[i].thread, NULL) == 0);
		x->checks += worker[i].x.checks;
		x->bytes_sent += worker[i].x.bytes_sent;
		MPI_Comm_free(&worker[i].comm);
	}
}

const struct exchange_phase exchange_thread_phases[] = {
	{ "threads", threads },
	{ NULL, NULL },
};

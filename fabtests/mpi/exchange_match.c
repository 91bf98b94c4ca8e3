/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who matches whom: wildcards, messages that arrive before their receive, the order of equal
 * messages and of equal receives, probes, cancelled receives, communicators.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

/* A batch of messages from every rank to every other: number i of a batch has tag i and size_of(i).
 */
struct batch {
	int n;                    /* messages to each peer */
	unsigned int serial;      /* tells batches apart */
	size_t (*size_of)(int i); /* bytes of message i */
	unsigned char *out;       /* all outgoing messages, one after the other */
	MPI_Request *request;     /* n for each rank of the job */
	int requests;             /* started */
	void *in;                 /* room for the largest */
	size_t in_size;
};

static void batch_open(const struct exchange *x, struct batch *b)
{
	size_t total = 0;

	b->in_size = 0;
	b->requests = 0;
	for (int i = 0; i < b->n; i++) {
		total += b->size_of(i);
		if (b->size_of(i) > b->in_size)
			b->in_size = b->size_of(i);
	}
	b->out = payload_alloc(total * (size_t)x->ranks);
	b->request = payload_alloc((size_t)(b->n * x->ranks) * sizeof(*b->request));
	b->in = payload_alloc(b->in_size);
}

/* Start every send; peers take turns, so that each has messages from all. */
static void batch_send(struct exchange *x, struct batch *b)
{
	unsigned char *at = b->out;

	for (int i = 0; i < b->n; i++) {
		for (int r = 0; r < x->ranks; r++) {
			size_t size = b->size_of(i);

			if (r == x->rank)
				continue;
			exchange_prepare(x, at, size, r, i, b->serial);
			MPI_Isend(at, (int)size, MPI_BYTE, r, i, MPI_COMM_WORLD,
				  &b->request[b->requests++]);
			at += size;
		}
	}
}

/* Receive message i of source, and look at it; source and tag are as given to MPI_Recv. */
static void batch_recv(struct exchange *x, struct batch *b, int source, int tag, MPI_Status *status)
{
	payload_poison(b->in, b->in_size);
	MPI_Recv(b->in, (int)b->in_size, MPI_BYTE, source, tag, MPI_COMM_WORLD, status);
	EXPECT(x, source == MPI_ANY_SOURCE || status->MPI_SOURCE == source);
	EXPECT(x, tag == MPI_ANY_TAG || status->MPI_TAG == tag);
	EXPECT(x, status->MPI_TAG >= 0 && status->MPI_TAG < b->n);
	exchange_verify(x, b->in, b->size_of(status->MPI_TAG), status->MPI_SOURCE, status->MPI_TAG,
			b->serial, status);
}

static void batch_close(struct batch *b)
{
	MPI_Waitall(b->requests, b->request, MPI_STATUSES_IGNORE);
	free(b->in);
	free(b->request);
	free(b->out);
}

static size_t mixed_size(int i)
{
	return i % 16 == 15 ? 70000 + (size_t)i : (size_t)i * 331 % 6000;
}

static size_t small_size(int i)
{
	return (size_t)i % 65;
}

static size_t page_size(int i)
{
	return 4096 + (size_t)(i % 3);
}

/* Wildcards: messages of one source must come in the order of their sending, that is of their tags.
 */
static void any_source(struct exchange *x)
{
	struct batch b = { .n = 128, .serial = 10, .size_of = mixed_size };
	int *next = calloc((size_t)x->ranks, sizeof(*next));
	MPI_Status status;

	batch_open(x, &b);
	batch_send(x, &b);
	for (int i = 0; i < b.n * (x->ranks - 1); i++) {
		batch_recv(x, &b, MPI_ANY_SOURCE, MPI_ANY_TAG, &status);
		EXPECT(x, status.MPI_SOURCE != x->rank);
		EXPECT(x, status.MPI_TAG == next[status.MPI_SOURCE]++);
	}
	batch_close(&b);
	free(next);
}

static void any_tag(struct exchange *x)
{
	struct batch b = { .n = 64, .serial = 11, .size_of = mixed_size };
	MPI_Status status;

	batch_open(x, &b);
	batch_send(x, &b);
	for (int r = x->ranks - 1; r >= 0; r--) {
		for (int i = 0; r != x->rank && i < b.n; i++) {
			batch_recv(x, &b, r, MPI_ANY_TAG, &status);
			EXPECT(x, status.MPI_TAG == i);
		}
	}
	batch_close(&b);
}

/* All is sent before anything is received; then taken by tag, in an order that jumps about. */
static void unexpected(struct exchange *x)
{
	struct batch b = { .n = 251, .serial = 12, .size_of = mixed_size };
	MPI_Status status;

	batch_open(x, &b);
	batch_send(x, &b);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < b.n; i++) {
		for (int k = 1; k < x->ranks; k++)
			batch_recv(x, &b, (x->rank + k) % x->ranks, i * 77 % b.n, &status);
	}
	batch_close(&b);
}

/* Thousands of small ones at once, taken last first. */
static void flood(struct exchange *x)
{
	struct batch b = { .n = 4000, .serial = 13, .size_of = small_size };
	MPI_Status status;

	batch_open(x, &b);
	batch_send(x, &b);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = b.n - 1; i >= 0; i--) {
		for (int k = 1; k < x->ranks; k++)
			batch_recv(x, &b, MPI_ANY_SOURCE, i, &status);
	}
	batch_close(&b);
}

/* More unexpected bytes than a receiver should have to hold: 4 MiB of pages from every peer. */
static void flood_of_pages(struct exchange *x)
{
	struct batch b = { .n = 1024, .serial = 14, .size_of = page_size };
	MPI_Status status;

	batch_open(x, &b);
	batch_send(x, &b);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 1; k < x->ranks; k++) {
		for (int i = 0; i < b.n; i++)
			batch_recv(x, &b, (x->rank + k) % x->ranks, i, &status);
	}
	batch_close(&b);
}

/* Many messages of one tag are told apart by nothing but their order. */
static void same_tag(struct exchange *x)
{
	enum {
		N = 200,
		SIZE = 3000,
		TAG = 9
	};
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	unsigned char *out = payload_alloc(N * SIZE), *in = payload_alloc(SIZE);
	MPI_Request request[N];
	MPI_Status status;

	for (unsigned int i = 0; i < N; i++) {
		exchange_prepare(x, out + i * SIZE, i % 7 * 400, to, TAG, 100 + i);
		MPI_Isend(out + i * SIZE, (int)(i % 7 * 400), MPI_BYTE, to, TAG, MPI_COMM_WORLD,
			  &request[i]);
	}
	for (unsigned int i = 0; i < N; i++) {
		payload_poison(in, SIZE);
		MPI_Recv(in, SIZE, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &status);
		exchange_verify(x, in, i % 7 * 400, from, TAG, 100 + i, &status);
	}
	MPI_Waitall(N, request, MPI_STATUSES_IGNORE);
	free(in);
	free(out);
}

/*
 * Four receives that overlap, in this order: by source and tag, by source, by tag, any.  The
 * messages' tags are 6, 5, 5, 7.  Posted first: a message takes the oldest receive that fits.  Sent
 * first: a receive takes the oldest message that fits.  Both end alike: receive 0 gets message 1,
 * and so on.
 */
static void overlapping(struct exchange *x, int posted_first)
{
	enum {
		N = 4,
		SIZE = 20000
	};
	static const int tags[N] = { 6, 5, 5, 7 }, gets[N] = { 1, 0, 2, 3 };
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	const int sources[N] = { from, from, MPI_ANY_SOURCE, MPI_ANY_SOURCE };
	static const int wants[N] = { 5, MPI_ANY_TAG, 5, MPI_ANY_TAG };
	unsigned char *out = payload_alloc(N * SIZE), *in[N];
	unsigned int serial = posted_first ? 20 : 30;
	MPI_Request recvs[N], sends[N];
	MPI_Comm comm;
	MPI_Status status[N];

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int step = 0; step < 2; step++) {
		for (int i = 0; i < N && step == !posted_first; i++) {
			in[i] = payload_alloc(SIZE);
			payload_poison(in[i], SIZE);
			MPI_Irecv(in[i], SIZE, MPI_BYTE, sources[i], wants[i], comm, &recvs[i]);
		}
		for (int i = 0; i < N && step == posted_first; i++) {
			exchange_prepare(x, out + i * SIZE, SIZE, to, tags[i],
					 serial + (unsigned int)i);
			MPI_Isend(out + i * SIZE, SIZE, MPI_BYTE, to, tags[i], comm, &sends[i]);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Waitall(N, recvs, status);
	MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		EXPECT(x, status[i].MPI_SOURCE == from);
		exchange_verify(x, in[i], SIZE, from, tags[gets[i]], serial + (unsigned int)gets[i],
				&status[i]);
		free(in[i]);
	}
	free(out);
	MPI_Comm_free(&comm);
}

static void overlapping_posted(struct exchange *x)
{
	overlapping(x, 1);
}

static void overlapping_sent(struct exchange *x)
{
	overlapping(x, 0);
}

/* What is probed: its size is known before it is received, and it is the one that is then received.
 */
static void probe(struct exchange *x)
{
	static const size_t sizes[] = { 0, 1, 3000, 100000 };
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	void *out = payload_alloc(100000), *in = payload_alloc(100000);
	MPI_Request request;
	MPI_Status status;
	int flag, count;

	MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &status);
	EXPECT(x, !flag);
	for (unsigned int i = 0; i < 8; i++) {
		size_t size = sizes[i / 2];

		exchange_prepare(x, out, size, to, 3, 40 + i);
		MPI_Isend(out, (int)size, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request);
		if (i % 2)
			MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
		for (flag = i % 2; !flag;)
			MPI_Iprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		EXPECT(x, (size_t)count == size);
		EXPECT(x, status.MPI_SOURCE == from && status.MPI_TAG == 3);
		payload_poison(in, size);
		MPI_Recv(in, count, MPI_BYTE, from, 3, MPI_COMM_WORLD, &status);
		exchange_verify(x, in, size, from, 3, 40 + i, &status);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	free(in);
	free(out);
}

/* A message taken by MPI_Mprobe is nobody else's: the next receive gets the one behind it. */
static void matched_probe(struct exchange *x)
{
	static const size_t sizes[] = { 5, 2000, 90000 };
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	void *out[2] = { payload_alloc(90000), payload_alloc(90000) };
	void *in = payload_alloc(90000);
	MPI_Request request[2];
	MPI_Message message;
	MPI_Status status;

	for (unsigned int i = 0; i < 6; i++) {
		size_t size = sizes[i / 2];
		int flag = 0;

		for (unsigned int k = 0; k < 2; k++) {
			exchange_prepare(x, out[k], size, to, 4, 60 + 2 * i + k);
			MPI_Isend(out[k], (int)size, MPI_BYTE, to, 4, MPI_COMM_WORLD, &request[k]);
		}
		if (i % 2)
			MPI_Mprobe(from, 4, MPI_COMM_WORLD, &message, &status);
		while (i % 2 == 0 && !flag)
			MPI_Improbe(from, 4, MPI_COMM_WORLD, &flag, &message, &status);
		payload_poison(in, size);
		MPI_Recv(in, (int)size, MPI_BYTE, from, 4, MPI_COMM_WORLD, &status);
		exchange_verify(x, in, size, from, 4, 61 + 2 * i, &status);
		payload_poison(in, size);
		MPI_Mrecv(in, (int)size, MPI_BYTE, &message, &status);
		exchange_verify(x, in, size, from, 4, 60 + 2 * i, &status);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	}
	free(in);
	free(out[1]);
	free(out[0]);
}

/* A cancelled receive takes no message, and its buffer is not written when one comes that fits. */
static void cancel(struct exchange *x)
{
	enum {
		SIZE = 1000,
		TAG = 8
	};
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	void *out = payload_alloc(SIZE);
	unsigned char *cancelled = payload_alloc(SIZE), *in = payload_alloc(SIZE);
	MPI_Request request;
	MPI_Status status;
	int flag;

	for (unsigned int i = 0; i < 20; i++) {
		payload_poison(cancelled, SIZE);
		payload_poison(in, SIZE);
		MPI_Irecv(cancelled, SIZE, MPI_BYTE, i % 2 ? from : MPI_ANY_SOURCE, TAG,
			  MPI_COMM_WORLD, &request);
		MPI_Cancel(&request);
		MPI_Wait(&request, &status);
		MPI_Test_cancelled(&status, &flag);
		EXPECT(x, flag);
		MPI_Barrier(MPI_COMM_WORLD);
		exchange_prepare(x, out, SIZE, to, TAG, 80 + i);
		MPI_Sendrecv(out, SIZE, MPI_BYTE, to, TAG, in, SIZE, MPI_BYTE, from, TAG,
			     MPI_COMM_WORLD, &status);
		exchange_verify(x, in, SIZE, from, TAG, 80 + i, &status);
		payload_poison(in, SIZE);
		EXPECT(x, memcmp(in, cancelled, SIZE) == 0);
	}
	free(in);
	free(cancelled);
	free(out);
}

/* The same source and tag in two communicators: the message sent first is received last. */
static void communicators(struct exchange *x)
{
	enum {
		SIZE = 500,
		TAG = 1
	};
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	void *out[2] = { payload_alloc(SIZE), payload_alloc(SIZE) };
	void *in = payload_alloc(SIZE);
	MPI_Request request[2];
	MPI_Comm comm[2] = { MPI_COMM_WORLD, MPI_COMM_NULL };
	MPI_Status status;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
	for (int k = 0; k < 2; k++) {
		exchange_prepare(x, out[k], SIZE, to, TAG, 200 + (unsigned int)k);
		MPI_Isend(out[k], SIZE, MPI_BYTE, to, TAG, comm[k], &request[k]);
	}
	for (int k = 1; k >= 0; k--) {
		payload_poison(in, SIZE);
		MPI_Recv(in, SIZE, MPI_BYTE, k ? MPI_ANY_SOURCE : from, MPI_ANY_TAG, comm[k],
			 &status);
		exchange_verify(x, in, SIZE, from, TAG, 200 + (unsigned int)k, &status);
	}
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&comm[1]);
	free(in);
	free(out[1]);
	free(out[0]);
}

/* Odd and even ranks apart, in reverse order: ranks of a communicator are not those of the world.
 */
static void split(struct exchange *x)
{
	enum {
		SIZE = 5000,
		TAG = 2
	};
	void *out = payload_alloc(SIZE), *in = payload_alloc(SIZE);
	int rank, ranks, to, from, sum, expected = 0;
	MPI_Status status;
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, x->rank % 2, -x->rank, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	EXPECT(x, ranks == (x->ranks + 1 - x->rank % 2) / 2);
	EXPECT(x, x->rank == 2 * (ranks - 1 - rank) + x->rank % 2);
	to = (rank + 1) % ranks;
	from = (rank + ranks - 1) % ranks;
	payload_poison(in, SIZE);
	exchange_prepare(x, out, SIZE, 2 * (ranks - 1 - to) + x->rank % 2, TAG, 210);
	MPI_Sendrecv(out, SIZE, MPI_BYTE, to, TAG, in, SIZE, MPI_BYTE, from, TAG, comm, &status);
	EXPECT(x, status.MPI_SOURCE == from);
	exchange_verify(x, in, SIZE, 2 * (ranks - 1 - from) + x->rank % 2, TAG, 210, &status);
	MPI_Allreduce(&x->rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	for (int r = x->rank % 2; r < x->ranks; r += 2)
		expected += r;
	EXPECT(x, sum == expected);
	MPI_Comm_free(&comm);
	free(in);
	free(out);
}

const struct exchange_phase exchange_match_phases[] = {
	{ "any_source", any_source },
	{ "any_tag", any_tag },
	{ "unexpected", unexpected },
	{ "flood", flood },
	{ "flood_of_pages", flood_of_pages },
	{ "same_tag", same_tag },
	{ "overlapping_posted", overlapping_posted },
	{ "overlapping_sent", overlapping_sent },
	{ "probe", probe },
	{ "matched_probe", matched_probe },
	{ "cancel", cancel },
	{ "communicators", communicators },
	{ "split", split },
	{ NULL, NULL },
};

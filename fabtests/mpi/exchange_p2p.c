/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in every size and every mode of sending: blocking, non-blocking, synchronous, to
 * oneself, persistent, of a datatype with holes.  Who matches whom is simple here; exchange_match.c
 * is about that.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

struct ring {
	int to;
	int from;
	void *out;
	void *in;
};

static void ring_open(const struct exchange *x, struct ring *r, size_t bytes)
{
	r->to = (x->rank + 1) % x->ranks;
	r->from = (x->rank + x->ranks - 1) % x->ranks;
	r->out = payload_alloc(bytes);
	r->in = payload_alloc(bytes);
}

static void ring_close(struct ring *r)
{
	free(r->out);
	free(r->in);
}

/* MPI_Send round a ring; even ranks send first, so that a send that waits for its receive ends too.
 */
static void blocking(struct exchange *x)
{
	MPI_Status status;
	struct ring r;

	ring_open(x, &r, x->bytes_max);
	for (size_t i = 0; i < x->n_sizes; i++) {
		int tag = (int)i, count = (int)x->sizes[i];

		exchange_prepare(x, r.out, x->sizes[i], r.to, tag, 0);
		payload_poison(r.in, x->sizes[i]);
		if (x->rank % 2 == 0)
			MPI_Send(r.out, count, MPI_BYTE, r.to, tag, MPI_COMM_WORLD);
		MPI_Recv(r.in, count, MPI_BYTE, r.from, tag, MPI_COMM_WORLD, &status);
		if (x->rank % 2 != 0)
			MPI_Send(r.out, count, MPI_BYTE, r.to, tag, MPI_COMM_WORLD);
		exchange_verify(x, r.in, x->sizes[i], r.from, tag, 0, &status);
	}
	ring_close(&r);
}

/* MPI_Sendrecv round the other way, into a receive larger than the message. */
static void sendrecv(struct exchange *x)
{
	MPI_Status status;
	struct ring r;

	ring_open(x, &r, x->bytes_max);
	for (size_t i = 0; i < x->n_sizes; i++) {
		int tag = (int)i, count = (int)x->sizes[i];

		exchange_prepare(x, r.out, x->sizes[i], r.from, tag, 1);
		payload_poison(r.in, x->sizes[i]);
		MPI_Sendrecv(r.out, count, MPI_BYTE, r.from, tag, r.in, count + PAYLOAD_GUARD,
			     MPI_BYTE, r.to, tag, MPI_COMM_WORLD, &status);
		exchange_verify(x, r.in, x->sizes[i], r.to, tag, 1, &status);
	}
	ring_close(&r);
}

static void to_self(struct exchange *x)
{
	MPI_Status status;
	struct ring r;

	ring_open(x, &r, x->bytes_max);
	for (size_t i = 0; i < x->n_sizes; i++) {
		int tag = (int)i, count = (int)x->sizes[i];

		exchange_prepare(x, r.out, x->sizes[i], x->rank, tag, 2);
		payload_poison(r.in, x->sizes[i]);
		MPI_Sendrecv(r.out, count, MPI_BYTE, x->rank, tag, r.in, count, MPI_BYTE, x->rank,
			     tag, MPI_COMM_WORLD, &status);
		exchange_verify(x, r.in, x->sizes[i], x->rank, tag, 2, &status);
	}
	ring_close(&r);
}

/* The receives are posted before anybody sends, so all of it is expected and in both directions at
 * once. */
static void non_blocking(struct exchange *x)
{
	MPI_Request request[2];
	MPI_Status status[2];
	struct ring r;

	ring_open(x, &r, x->bytes_max);
	for (size_t i = 0; i < x->n_sizes; i++) {
		int tag = (int)i, count = (int)x->sizes[i];

		payload_poison(r.in, x->sizes[i]);
		MPI_Irecv(r.in, count, MPI_BYTE, r.from, tag, MPI_COMM_WORLD, &request[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		exchange_prepare(x, r.out, x->sizes[i], r.to, tag, 3);
		MPI_Isend(r.out, count, MPI_BYTE, r.to, tag, MPI_COMM_WORLD, &request[1]);
		MPI_Waitall(2, request, status);
		exchange_verify(x, r.in, x->sizes[i], r.from, tag, 3, &status[0]);
	}
	ring_close(&r);
}

static size_t at_most(const struct exchange *x, size_t bytes)
{
	return bytes < x->bytes_max ? bytes : x->bytes_max;
}

/* Everybody to everybody, eight messages each way in flight, sizes that mix eager and large. */
static void everybody(struct exchange *x)
{
	enum {
		DEPTH = 8
	};
	size_t slot = (at_most(x, 300001) + PAYLOAD_GUARD + 4095) / 4096 * 4096;
	int n = x->ranks * DEPTH;
	unsigned char *out = payload_alloc(slot * (size_t)n), *in = payload_alloc(slot * (size_t)n);
	MPI_Request *request = payload_alloc(2 * (size_t)n * sizeof(*request));
	MPI_Status *status = payload_alloc(2 * (size_t)n * sizeof(*status));

	for (int i = 0; i < n; i++) {
		size_t size = at_most(x, (size_t)(i % DEPTH) * 42857 + 2);

		payload_poison(in + slot * (size_t)i, size);
		MPI_Irecv(in + slot * (size_t)i, (int)size, MPI_BYTE, i / DEPTH, i % DEPTH,
			  MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; i < n; i++) {
		size_t size = at_most(x, (size_t)(i % DEPTH) * 42857 + 2);

		exchange_prepare(x, out + slot * (size_t)i, size, i / DEPTH, i % DEPTH, 4);
		MPI_Isend(out + slot * (size_t)i, (int)size, MPI_BYTE, i / DEPTH, i % DEPTH,
			  MPI_COMM_WORLD, &request[n + i]);
	}
	MPI_Waitall(2 * n, request, status);
	for (int i = 0; i < n; i++)
		exchange_verify(x, in + slot * (size_t)i,
				at_most(x, (size_t)(i % DEPTH) * 42857 + 2), i / DEPTH, i % DEPTH,
				4, &status[i]);
	free(status);
	free(request);
	free(in);
	free(out);
}

/* A synchronous send is not complete before its receive is posted, whatever its size. */
static void synchronous(struct exchange *x)
{
	MPI_Request request;
	MPI_Status status;
	struct ring r;
	int done;

	ring_open(x, &r, at_most(x, 1 << 20));
	for (size_t i = 0; i < x->n_sizes && x->sizes[i] <= 1 << 20; i += 3) {
		int tag = (int)i, count = (int)x->sizes[i];

		exchange_prepare(x, r.out, x->sizes[i], r.to, tag, 5);
		payload_poison(r.in, x->sizes[i]);
		MPI_Issend(r.out, count, MPI_BYTE, r.to, tag, MPI_COMM_WORLD, &request);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		EXPECT(x, !done);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Recv(r.in, count, MPI_BYTE, r.from, tag, MPI_COMM_WORLD, &status);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		exchange_verify(x, r.in, x->sizes[i], r.from, tag, 5, &status);
	}
	ring_close(&r);
}

/* Three pairs of persistent requests, started again and again with new data. */
static void persistent(struct exchange *x)
{
	static const size_t sizes[] = { 7, 5000, 250001 };
	enum {
		N = sizeof(sizes) / sizeof(sizes[0]),
		ROUNDS = 20
	};
	MPI_Request request[2 * N];
	MPI_Status status[2 * N];
	struct ring r[N];

	for (int i = 0; i < N; i++) {
		ring_open(x, &r[i], sizes[i]);
		MPI_Recv_init(r[i].in, (int)sizes[i], MPI_BYTE, r[i].from, i, MPI_COMM_WORLD,
			      &request[i]);
		MPI_Send_init(r[i].out, (int)sizes[i], MPI_BYTE, r[i].to, i, MPI_COMM_WORLD,
			      &request[N + i]);
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++) {
			exchange_prepare(x, r[i].out, sizes[i], r[i].to, i, round);
			payload_poison(r[i].in, sizes[i]);
		}
		MPI_Startall(2 * N, request);
		MPI_Waitall(2 * N, request, status);
		for (int i = 0; i < N; i++)
			exchange_verify(x, r[i].in, sizes[i], r[i].from, i, round, &status[i]);
	}
	for (int i = 0; i < N; i++) {
		MPI_Request_free(&request[i]);
		MPI_Request_free(&request[N + i]);
		ring_close(&r[i]);
	}
}

/* Every second block of 24 bytes: what lies between the blocks is not sent and not written. */
static void with_holes(struct exchange *x)
{
	enum {
		BLOCK = 24,
		STRIDE = 48
	};
	static const int blocks[] = { 1, 10, 1000, 20000 };

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		size_t size = (size_t)blocks[i] * BLOCK, extent = (size_t)blocks[i] * STRIDE;
		unsigned char *flat, *packed = payload_alloc(size);
		MPI_Datatype type;
		struct ring r;

		ring_open(x, &r, extent);
		flat = payload_alloc(extent);
		exchange_prepare(x, packed, size, r.to, (int)i, 6);
		payload_poison(flat, extent);
		payload_poison(r.in, extent);
		for (size_t b = 0; b < (size_t)blocks[i]; b++)
			memcpy(flat + b * STRIDE, packed + b * BLOCK, BLOCK);
		MPI_Type_vector(blocks[i], BLOCK, STRIDE, MPI_BYTE, &type);
		MPI_Type_commit(&type);
		MPI_Sendrecv(flat, 1, type, r.to, (int)i, r.in, 1, type, r.from, (int)i,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		payload_poison(packed, size);
		payload_poison(flat, extent);
		for (size_t b = 0; b < (size_t)blocks[i]; b++) {
			unsigned char *block = (unsigned char *)r.in + b * STRIDE;

			memcpy(packed + b * BLOCK, block, BLOCK);
			memcpy(block, flat, BLOCK);
		}
		exchange_verify(x, packed, size, r.from, (int)i, 6, NULL);
		EXPECT(x, memcmp(r.in, flat, extent) == 0);
		MPI_Type_free(&type);
		free(flat);
		free(packed);
		ring_close(&r);
	}
}

const struct exchange_phase exchange_p2p_phases[] = {
	{ "blocking", blocking },
	{ "sendrecv", sendrecv },
	{ "to_self", to_self },
	{ "everybody", everybody },
	{ "non_blocking", non_blocking },
	{ "synchronous", synchronous },
	{ "persistent", persistent },
	{ "with_holes", with_holes },
	{ NULL, NULL },
};

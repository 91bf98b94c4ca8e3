/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: what they move is checked byte by byte, what they compute is computed again. */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

static const int counts[] = { 1, 2, 17, 1000, 8192, 100003 };
#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))

/* Element i of rank's operand in a reduction: sums wrap alike everywhere. */
static uint64_t operand(int rank, int i)
{
	return ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)i * 0xd6e8feb86659fd93u;
}

static uint64_t sum_of(int ranks, int i)
{
	uint64_t sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += operand(r, i);
	return sum;
}

static uint64_t *operands(const struct exchange *x, int n)
{
	uint64_t *v = payload_alloc((size_t)n * sizeof(*v));

	for (int i = 0; i < n; i++)
		v[i] = operand(x->rank, i);
	return v;
}

/* n results at v are the sums over ranks 0 .. ranks-1 of elements first .. */
static void check_sums(struct exchange *x, const uint64_t *v, int n, int first, int ranks)
{
	int right = 0;

	while (right < n && v[right] == sum_of(ranks, first + right))
		right++;
	EXPECT(x, right == n);
}

/* Look at a block of a larger buffer that came from source to dest. */
static void check_block(struct exchange *x, const void *block, size_t size, int source, int dest,
			int tag)
{
	void *copy = payload_alloc(size);

	payload_poison(copy, size);
	memcpy(copy, block, size);
	payload_check(copy, size, (struct payload_key) { source, dest, tag, 0 }, x->phase);
	x->checks++;
	free(copy);
}

static void fill_block(void *block, size_t size, int source, int dest, int tag)
{
	payload_fill(block, size, (struct payload_key) { source, dest, tag, 0 });
}

static void barrier(struct exchange *x)
{
	(void)x;
	for (int i = 0; i < 200; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(struct exchange *x)
{
	static const size_t sizes[] = { 0, 1, 1000, 65537, 3000001 };

	for (int root = 0; root < x->ranks; root++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct payload_key key = { root, root, (int)i, 0 };
			void *buf = payload_alloc(sizes[i]);

			payload_poison(buf, sizes[i]);
			if (x->rank == root)
				payload_fill(buf, sizes[i], key);
			MPI_Bcast(buf, (int)sizes[i], MPI_BYTE, root, MPI_COMM_WORLD);
			payload_check(buf, sizes[i], key, x->phase);
			x->checks++;
			free(buf);
		}
	}
}

static void reduce(struct exchange *x)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		int n = counts[i], root = (int)i % x->ranks;
		uint64_t *mine = operands(x, n), *all = payload_alloc((size_t)n * sizeof(*all));

		MPI_Reduce(mine, all, n, MPI_UINT64_T, MPI_SUM, root, MPI_COMM_WORLD);
		if (x->rank == root)
			check_sums(x, all, n, 0, x->ranks);
		free(all);
		free(mine);
	}
}

static void allreduce(struct exchange *x)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		int n = counts[i];
		uint64_t *mine = operands(x, n);

		MPI_Allreduce(MPI_IN_PLACE, mine, n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		check_sums(x, mine, n, 0, x->ranks);
		free(mine);
	}
}

static void scan(struct exchange *x)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		int n = counts[i];
		uint64_t *mine = operands(x, n), *all = payload_alloc((size_t)n * sizeof(*all));

		MPI_Scan(mine, all, n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		check_sums(x, all, n, 0, x->rank + 1);
		free(all);
		free(mine);
	}
}

/* Rank r gets counts[i] + r sums. */
static void reduce_scatter(struct exchange *x)
{
	int *shares = payload_alloc((size_t)x->ranks * sizeof(*shares));

	for (size_t i = 0; i < N_COUNTS; i++) {
		int first = 0, total = 0;
		uint64_t *mine, *part;

		for (int r = 0; r < x->ranks; r++) {
			shares[r] = counts[i] + r;
			first += r < x->rank ? shares[r] : 0;
			total += shares[r];
		}
		mine = operands(x, total);
		part = payload_alloc((size_t)shares[x->rank] * sizeof(*part));
		MPI_Reduce_scatter(mine, part, shares, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		check_sums(x, part, shares[x->rank], first, x->ranks);
		free(part);
		free(mine);
	}
	free(shares);
}

static void alltoall(struct exchange *x)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		size_t block = (size_t)counts[i], all = block * (size_t)x->ranks;
		unsigned char *out = payload_alloc(all), *in = payload_alloc(all);

		payload_poison(in, all);
		for (int r = 0; r < x->ranks; r++)
			fill_block(out + block * (size_t)r, block, x->rank, r, (int)i);
		MPI_Alltoall(out, counts[i], MPI_BYTE, in, counts[i], MPI_BYTE, MPI_COMM_WORLD);
		for (int r = 0; r < x->ranks; r++)
			check_block(x, in + block * (size_t)r, block, r, x->rank, (int)i);
		free(in);
		free(out);
	}
}

/* Bytes from one rank to another: none between some of them. */
static int uneven(int source, int dest, int unit)
{
	return (source * 7 + dest * 13) % 5 * unit;
}

static void alltoallv(struct exchange *x)
{
	size_t n = (size_t)x->ranks;
	int *counts_out = payload_alloc(n * sizeof(int)),
	    *counts_in = payload_alloc(n * sizeof(int));
	int *at_out = payload_alloc(n * sizeof(int)), *at_in = payload_alloc(n * sizeof(int));

	for (int unit = 1; unit < 100000; unit *= 17) {
		size_t slot = (size_t)unit * 5;
		unsigned char *out = payload_alloc(slot * n), *in = payload_alloc(slot * n);

		payload_poison(in, slot * n);
		for (int r = 0; r < x->ranks; r++) {
			counts_out[r] = uneven(x->rank, r, unit);
			counts_in[r] = uneven(r, x->rank, unit);
			at_out[r] = at_in[r] = (int)slot * r;
			fill_block(out + at_out[r], (size_t)counts_out[r], x->rank, r, unit);
		}
		MPI_Alltoallv(out, counts_out, at_out, MPI_BYTE, in, counts_in, at_in, MPI_BYTE,
			      MPI_COMM_WORLD);
		for (int r = 0; r < x->ranks; r++)
			check_block(x, in + at_in[r], (size_t)counts_in[r], r, x->rank, unit);
		free(in);
		free(out);
	}
	free(at_in);
	free(at_out);
	free(counts_in);
	free(counts_out);
}

static void allgather(struct exchange *x)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		size_t block = (size_t)counts[i], all = block * (size_t)x->ranks;
		unsigned char *out = payload_alloc(block), *in = payload_alloc(all);

		payload_poison(in, all);
		fill_block(out, block, x->rank, 0, (int)i);
		MPI_Allgather(out, counts[i], MPI_BYTE, in, counts[i], MPI_BYTE, MPI_COMM_WORLD);
		for (int r = 0; r < x->ranks; r++)
			check_block(x, in + block * (size_t)r, block, r, 0, (int)i);
		free(in);
		free(out);
	}
}

/* Out from every root in turn, and back to it. */
static void scatter_gather(struct exchange *x)
{
	for (int root = 0; root < x->ranks; root++) {
		size_t block = (size_t)counts[(size_t)root % N_COUNTS] + 4000;
		size_t all = block * (size_t)x->ranks;
		unsigned char *whole = payload_alloc(all), *mine = payload_alloc(block);

		payload_poison(mine, block);
		for (int r = 0; r < x->ranks; r++)
			fill_block(whole + block * (size_t)r, block, root, r, 0);
		MPI_Scatter(whole, (int)block, MPI_BYTE, mine, (int)block, MPI_BYTE, root,
			    MPI_COMM_WORLD);
		check_block(x, mine, block, root, x->rank, 0);
		payload_poison(whole, all);
		MPI_Gather(mine, (int)block, MPI_BYTE, whole, (int)block, MPI_BYTE, root,
			   MPI_COMM_WORLD);
		for (int r = 0; x->rank == root && r < x->ranks; r++)
			check_block(x, whole + block * (size_t)r, block, root, r, 0);
		free(mine);
		free(whole);
	}
}

/* Collectives in flight together, with messages among them. */
static void non_blocking_collectives(struct exchange *x)
{
	enum {
		N = 20000,
		SIZE = 70000,
		TAG = 5
	};
	int to = (x->rank + 1) % x->ranks, from = (x->rank + x->ranks - 1) % x->ranks;
	struct payload_key key = { 0, 0, TAG, 1 };
	uint64_t *mine = operands(x, N), *sums = payload_alloc(N * sizeof(*sums));
	void *shared = payload_alloc(SIZE), *out = payload_alloc(SIZE), *in = payload_alloc(SIZE);
	MPI_Request request[5];

	payload_poison(shared, SIZE);
	payload_poison(in, SIZE);
	if (x->rank == 0)
		payload_fill(shared, SIZE, key);
	exchange_prepare(x, out, SIZE, to, TAG, 2);
	MPI_Irecv(in, SIZE, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &request[0]);
	MPI_Iallreduce(mine, sums, N, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request[1]);
	MPI_Ibcast(shared, SIZE, MPI_BYTE, 0, MPI_COMM_WORLD, &request[2]);
	MPI_Isend(out, SIZE, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &request[3]);
	MPI_Ibarrier(MPI_COMM_WORLD, &request[4]);
	MPI_Waitall(5, request, MPI_STATUSES_IGNORE);
	payload_check(shared, SIZE, key, x->phase);
	exchange_verify(x, in, SIZE, from, TAG, 2, NULL);
	check_sums(x, sums, N, 0, x->ranks);
	free(in);
	free(out);
	free(shared);
	free(sums);
	free(mine);
}

const struct exchange_phase exchange_coll_phases[] = {
	{ "barrier", barrier },
	{ "bcast", bcast },
	{ "reduce", reduce },
	{ "allreduce", allreduce },
	{ "scan", scan },
	{ "reduce_scatter", reduce_scatter },
	{ "alltoall", alltoall },
	{ "alltoallv", alltoallv },
	{ "allgather", allgather },
	{ "scatter_gather", scatter_gather },
	{ "non_blocking_collectives", non_blocking_collectives },
	{ NULL, NULL },
};

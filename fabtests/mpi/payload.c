/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight bytes at a time: word i of a message is a mix of the key's hash and i, cheap enough that
 * checking a message costs less than sending it.  The size is part of the hash: a message cut short
 * or merged with its neighbour does not pass for another.
 */
#include "payload.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xa5

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t key_hash(size_t size, struct payload_key key)
{
	uint64_t h = mix((uint64_t)(unsigned int)key.source << 32 | (unsigned int)key.dest);

	h = mix(h ^ ((uint64_t)(unsigned int)key.tag << 32 | key.serial));
	return mix(h ^ size);
}

static uint64_t word(uint64_t hash, size_t i)
{
	uint64_t x = hash + i * 0x9e3779b97f4a7c15u;

	return (x ^ x >> 32) * 0xd6e8feb86659fd93u;
}

void payload_fill(void *buf, size_t size, struct payload_key key)
{
	uint64_t hash = key_hash(size, key);
	unsigned char *at = buf;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		uint64_t w = word(hash, i);

		memcpy(at + 8 * i, &w, 8);
	}
	if (size % 8) {
		uint64_t w = word(hash, i);

		memcpy(at + 8 * i, &w, size % 8);
	}
}

void payload_poison(void *buf, size_t size)
{
	memset(buf, POISON, size + PAYLOAD_GUARD);
}

static void print_bytes(const char *name, const unsigned char *at, size_t n)
{
	fprintf(stderr, "  %s:", name);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %02x", at[i]);
	fprintf(stderr, "\n");
}

static void mismatch(const unsigned char *got, const unsigned char *want, size_t size,
		     struct payload_key key, const char *what)
{
	size_t at = 0, bad = 0, n;

	for (size_t i = size; i-- > 0;) {
		if (got[i] == want[i])
			continue;
		at = i;
		bad++;
	}
	n = size - at < 16 ? size - at : 16;
	fprintf(stderr,
		"%s: wrong data: source %d dest %d tag %d serial %u size %zu: %zu bytes differ, "
		"the first at offset %zu\n",
		what, key.source, key.dest, key.tag, key.serial, size, bad, at);
	print_bytes("want", want + at, n);
	print_bytes("got ", got + at, n);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_guard(const unsigned char *buf, size_t size, const char *what)
{
	for (size_t i = size; i < size + PAYLOAD_GUARD; i++) {
		if (buf[i] == POISON)
			continue;
		fprintf(stderr, "%s: byte %zu written, behind a message of %zu\n", what, i, size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

void payload_check(const void *buf, size_t size, struct payload_key key, const char *what)
{
	const unsigned char *got = buf;
	unsigned char want[4096];
	uint64_t hash = key_hash(size, key);

	for (size_t done = 0; done < size; done += sizeof(want)) {
		size_t n = size - done < sizeof(want) ? size - done : sizeof(want);

		for (size_t i = 0; i < sizeof(want) / 8; i++) {
			uint64_t w = word(hash, done / 8 + i);

			memcpy(want + 8 * i, &w, 8);
		}
		if (memcmp(got + done, want, n) != 0) {
			unsigned char *all = payload_alloc(size);

			payload_fill(all, size, key);
			mismatch(got, all, size, key, what);
		}
	}
	check_guard(got, size, what);
}

void *payload_alloc(size_t size)
{
	size_t length = (size + PAYLOAD_GUARD + 4095) / 4096 * 4096;
	void *buf = aligned_alloc(4096, length);

	if (buf)
		return buf;
	fprintf(stderr, "no memory for %zu bytes\n", length);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return NULL;
}

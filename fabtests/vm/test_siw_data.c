/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data in both directions, every byte compared. Who has opened sends first (RFC 5044 section 7.1.2:
 * the other one may not), so each test begins with a message of the opener's.
 */
#include <string.h>

#include "vm/actor.h"
#include "vm/side.h"
#include "vm/test_siw.h"

#define HALF         (ACTOR_BUF_BYTES / 2)
#define BATCH        100u
#define BATCHES      20u
#define READS        12u
#define READ_BYTES   (256u << 10)
#define SLOT_BYTES   128u
#define SEED_THERE   5
#define SEED_BACK    6
#define REQUEST_DATA 56
#define ANSWER_DATA  21

/* Around what either side cuts at: siw's frames end where TCP's segments do, ours at 65472. */
static const size_t lengths[] = { 0,    1,     3,     4,     63,    1024,   1400,    1448,
				  4095, 16384, 65471, 65472, 65473, 131072, 1048579, 4194304 };
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
/* Where WRITEs go, one byte further each time. */
#define WRITTEN (HALF - N_LENGTHS)

static void up(struct actor *a)
{
	actor_connect(a, REQUEST_DATA, ANSWER_DATA);
}

/* The opener hangs up in good order. */
static void down(struct actor *a)
{
	peers_sync(a->p);
	if (a->p->opener)
		a->ops->disconnect(a);
	a->ops->disconnected(a, ACTOR_END_ORDERLY);
}

static void send_filled(struct actor *a, size_t bytes, uint32_t seed)
{
	side_fill(a->buf, bytes, seed);
	a->ops->post(a, ACTOR_SEND, 0, bytes, 0, 0);
	a->ops->expect(a, ACTOR_SEND);
}

/* A receive for the upper half of the buffer was posted. */
static void receive_filled(struct actor *a, size_t bytes, uint32_t seed)
{
	size_t n = a->ops->expect(a, ACTOR_RECV);

	if (n != bytes)
		side_die("%zu bytes arrived where %zu are due", n, bytes);
	side_check(a->buf + HALF, bytes, seed, "SEND");
}

/* -- SEND, back and forth ------------------------------------------------------------------- */

static void send_opener(struct actor *a)
{
	up(a);
	for (size_t i = 0; i < N_LENGTHS; i++) {
		a->ops->recv(a, HALF, HALF);
		peers_sync(a->p);
		send_filled(a, lengths[i], (uint32_t)i);
		receive_filled(a, lengths[i], (uint32_t)i + 100);
	}
	down(a);
}

static void send_listener(struct actor *a)
{
	up(a);
	for (size_t i = 0; i < N_LENGTHS; i++) {
		a->ops->recv(a, HALF, HALF);
		peers_sync(a->p);
		receive_filled(a, lengths[i], (uint32_t)i);
		send_filled(a, lengths[i], (uint32_t)i + 100);
	}
	down(a);
}

/* -- many small ones ------------------------------------------------------------------------ */

static size_t small_bytes(uint32_t batch, uint32_t i)
{
	return (batch * 7 + i * 13) % SLOT_BYTES;
}

static void batch_out(struct actor *a, uint32_t batch)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		side_fill(a->buf + (size_t)i * SLOT_BYTES, SLOT_BYTES, batch + i);
		a->ops->post(a, ACTOR_SEND, (size_t)i * SLOT_BYTES, small_bytes(batch, i), 0, 0);
	}
	for (uint32_t i = 0; i < BATCH; i++)
		a->ops->expect(a, ACTOR_SEND);
}

static void batch_posted(struct actor *a)
{
	for (uint32_t i = 0; i < BATCH; i++)
		a->ops->recv(a, HALF + (size_t)i * SLOT_BYTES, SLOT_BYTES);
}

static void batch_in(struct actor *a, uint32_t batch)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		size_t n = a->ops->expect(a, ACTOR_RECV);

		if (n != small_bytes(batch, i))
			side_die("message %u has %zu bytes", i, n);
		side_check(a->buf + HALF + (size_t)i * SLOT_BYTES, n, batch + i, "small SEND");
	}
}

static void many_opener(struct actor *a)
{
	up(a);
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		batch_posted(a);
		peers_sync(a->p);
		batch_out(a, batch);
		batch_in(a, batch);
	}
	down(a);
}

static void many_listener(struct actor *a)
{
	up(a);
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		batch_posted(a);
		peers_sync(a->p);
		batch_in(a, batch);
		batch_out(a, batch);
	}
	down(a);
}

/* -- WRITE ---------------------------------------------------------------------------------- */

/* Writes of all lengths to where the peer looks, then word of it. */
static void write_out(struct actor *a, uint32_t seed)
{
	for (size_t i = 0; i < N_LENGTHS; i++) {
		side_fill(a->buf, lengths[i], seed + (uint32_t)i);
		a->ops->post(a, ACTOR_WRITE, 0, lengths[i], a->there.addr + WRITTEN + i,
			     a->there.rkey);
		a->ops->post(a, ACTOR_SEND, 0, 1, 0, 0);
		a->ops->expect(a, ACTOR_WRITE);
		a->ops->expect(a, ACTOR_SEND);
		peers_sync(a->p);
	}
}

static void write_in(struct actor *a, uint32_t seed)
{
	for (size_t i = 0; i < N_LENGTHS; i++) {
		a->ops->expect(a, ACTOR_RECV);
		side_check(a->buf + WRITTEN + i, lengths[i], seed + (uint32_t)i, "WRITE");
		memset(a->buf + WRITTEN, 0, HALF);
		a->ops->recv(a, 0, 1);
		peers_sync(a->p);
	}
}

static void write_opener(struct actor *a)
{
	up(a);
	a->ops->recv(a, 0, 1);
	peers_sync(a->p);
	write_out(a, SEED_THERE);
	write_in(a, SEED_BACK);
	down(a);
}

static void write_listener(struct actor *a)
{
	up(a);
	a->ops->recv(a, 0, 1);
	peers_sync(a->p);
	write_in(a, SEED_THERE);
	write_out(a, SEED_BACK);
	down(a);
}

/* -- READ ----------------------------------------------------------------------------------- */

/*
 * One of each length but 0, then many at a time. siw answers a READ of 0 bytes with what it sent
 * last, and with a length that is not 0, if it was still at that when the READ came.
 */
static void read_in(struct actor *a, uint32_t seed)
{
	for (size_t i = 1; i < N_LENGTHS; i++) {
		memset(a->buf + HALF, 0, lengths[i]);
		a->ops->post(a, ACTOR_READ, HALF, lengths[i], a->there.addr, a->there.rkey);
		a->ops->expect(a, ACTOR_READ);
		side_check(a->buf + HALF, lengths[i], seed, "READ");
	}
	memset(a->buf + HALF, 0, HALF);
	for (size_t i = 0; i < READS; i++)
		a->ops->post(a, ACTOR_READ, HALF + i * READ_BYTES, READ_BYTES, a->there.addr,
			     a->there.rkey);
	for (size_t i = 0; i < READS; i++) {
		a->ops->expect(a, ACTOR_READ);
		side_check(a->buf + HALF + i * READ_BYTES, READ_BYTES, seed, "READ of many");
	}
}

/*
 * Our device moves bytes only while it is polled, so the side that is read from waits for a message
 * and not for the socket between the two.
 */
static void read_opener(struct actor *a)
{
	up(a);
	side_fill(a->buf, HALF, SEED_THERE);
	a->ops->recv(a, HALF, 1);
	peers_sync(a->p);
	a->ops->post(a, ACTOR_READ, HALF, 0, a->there.addr, a->there.rkey);
	a->ops->expect(a, ACTOR_READ);
	read_in(a, SEED_BACK);
	a->ops->post(a, ACTOR_SEND, 0, 1, 0, 0);
	a->ops->expect(a, ACTOR_SEND);
	a->ops->expect(a, ACTOR_RECV);
	down(a);
}

static void read_listener(struct actor *a)
{
	up(a);
	side_fill(a->buf, HALF, SEED_BACK);
	a->ops->recv(a, HALF, 1);
	peers_sync(a->p);
	a->ops->expect(a, ACTOR_RECV);
	read_in(a, SEED_THERE);
	a->ops->post(a, ACTOR_SEND, 0, 1, 0, 0);
	a->ops->expect(a, ACTOR_SEND);
	down(a);
}

const struct peers_test test_siw_data[] = {
	{ .name = "SENDs from 0 bytes to 4 MiB, back and forth",
	  .opener = send_opener,
	  .listener = send_listener },
	{ .name = "4000 small SENDs", .opener = many_opener, .listener = many_listener },
	{ .name = "WRITEs from 0 bytes to 4 MiB, both ways",
	  .opener = write_opener,
	  .listener = write_listener },
	{ .name = "READs from 0 bytes to 4 MiB, both ways, many at a time",
	  .opener = read_opener,
	  .listener = read_listener },
};
const size_t test_siw_data_count = sizeof(test_siw_data) / sizeof(test_siw_data[0]);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends that are not orderly: keys that are wrong, and sides that die. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vm/actor.h"
#include "vm/side.h"
#include "vm/test_siw.h"

#define BIG_BYTES (2u << 20)

/* -- wrong keys ----------------------------------------------------------------------------- */

/*
 * What siw understands of a TERMINATE it says in the kernel's log; nothing of it reaches the
 * consumer. It says the layer (0 RDMAP, 1 DDP) where it means the error type, and the reverse.
 */
#define SAYS_DDP_TAGGED_STAG   "got TERMINATE. layer 1, type 1, code 0"
#define SAYS_DDP_TAGGED_BOUNDS "got TERMINATE. layer 1, type 1, code 1"
#define SAYS_RDMAP_PROT_STAG   "got TERMINATE. layer 1, type 0, code 0"

static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
		side_die("no kernel log");
	return fd;
}

/* The log has this text since. */
static void log_expect(int fd, const char *text)
{
	char line[8192];
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
		line[n] = '\0';
		if (strstr(line, text)) {
			close(fd);
			return;
		}
	}
	side_die("siw did not say \"%s\"", text);
}

/* The culprit is the opener. */
static void culprit(struct actor *a, enum actor_op op, uint64_t raddr, uint32_t rkey,
		    const char *siw_says)
{
	int log = a->p->soft ? -1 : log_open();

	a->ops->post(a, op, 0, 64, raddr, rkey);
	if (op == ACTOR_READ)
		a->ops->expect_failure(a);
	else
		a->ops->expect(a, op); /* handed to the stream, no more */
	/* siw finds a wrong READ when it is about to answer, and calls that a catastrophe. */
	a->ops->disconnected(a,
			     op == ACTOR_READ ? ACTOR_END_REMOTE_ABORTED : ACTOR_END_REMOTE_ACCESS);
	if (log >= 0)
		log_expect(log, siw_says);
	peers_sync(a->p);
}

static void victim(struct actor *a)
{
	side_fill(a->buf, BIG_BYTES, 3);
	peers_sync(a->p);
	a->ops->disconnected(a, ACTOR_END_OWN_TERMINATE);
	side_check(a->buf, BIG_BYTES, 3, "memory that nobody may write");
	peers_sync(a->p);
}

static void key_opener(struct actor *a, enum actor_op op, const char *siw_says)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	culprit(a, op, a->there.addr, a->there.rkey ^ 0x5a5a5a00, siw_says);
}

static void key_write_opener(struct actor *a)
{
	key_opener(a, ACTOR_WRITE, SAYS_DDP_TAGGED_STAG);
}

static void key_read_opener(struct actor *a)
{
	key_opener(a, ACTOR_READ, SAYS_RDMAP_PROT_STAG);
}

static void key_listener(struct actor *a)
{
	actor_connect(a, 0, 0);
	victim(a);
}

static void bounds_opener(struct actor *a)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	culprit(a, ACTOR_WRITE, a->there.addr + ACTOR_BUF_BYTES - 32, a->there.rkey,
		SAYS_DDP_TAGGED_BOUNDS);
}

static void guarded_opener(struct actor *a)
{
	struct peers_memory guarded;

	actor_connect(a, 0, 0);
	peers_hear(a->p, &guarded, sizeof(guarded));
	peers_sync(a->p);
	culprit(a, ACTOR_WRITE, guarded.addr, guarded.rkey, SAYS_DDP_TAGGED_STAG);
}

static void guarded_listener(struct actor *a)
{
	struct peers_memory guarded;

	actor_connect(a, 0, 0);
	a->ops->guard(a, BIG_BYTES, &guarded);
	peers_tell(a->p, &guarded, sizeof(guarded));
	victim(a);
}

/* -- death ---------------------------------------------------------------------------------- */

/* Dies while its message of 4 MiB is on the way: nobody takes the rest of it. */
static void die_sending(struct actor *a)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	a->ops->post(a, ACTOR_SEND, 0, 64, 0, 0);
	a->ops->expect(a, ACTOR_SEND);
	for (int i = 0; i < 8; i++)
		a->ops->post(a, ACTOR_WRITE, 0, BIG_BYTES, a->there.addr, a->there.rkey);
	peers_die();
}

static void survive_sending(struct actor *a)
{
	actor_connect(a, 0, 0);
	a->ops->recv(a, 0, 64);
	a->ops->recv(a, 0, 64);
	peers_sync(a->p);
	a->ops->expect(a, ACTOR_RECV);
	a->ops->expect_failure(a); /* the second one is flushed */
	a->ops->disconnected(a, ACTOR_END_ANY);
}

/* Dies while it is read from. */
static void die_read(struct actor *a)
{
	char word;

	actor_connect(a, 0, 0);
	peers_sync(a->p);
	a->ops->idle(a);
	peers_hear(a->p, &word, 1);
	peers_die();
}

/* Of many READs not all can succeed, and each of the rest ends in an error. */
static void survive_reading(struct actor *a)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	for (int i = 0; i < 64; i++)
		a->ops->post(a, ACTOR_READ, 0, BIG_BYTES, a->there.addr, a->there.rkey);
	peers_tell(a->p, "!", 1);
	a->ops->expect_death(a, 64);
	a->ops->disconnected(a, ACTOR_END_ANY);
}

/* -- a request that cannot be ---------------------------------------------------------------- */

/*
 * siw adds the 4 bytes of RFC 6581 to an 8-bit length: of 252 bytes of private data the request
 * says that there are none, and not even those four.
 */
#define WRAPPED_BYTES 252

static void wrapped_opener(struct actor *a)
{
	uint8_t data[WRAPPED_BYTES] = { 0 };

	peers_sync(a->p);
	a->ops->dial(a, data, sizeof(data));
	a->ops->rejected(a, NULL, 0);
	peers_sync(a->p);
}

static void wrapped_listener(struct actor *a)
{
	a->ops->listen(a);
	peers_sync(a->p);
	a->ops->idle(a);
	peers_sync(a->p);
}

const struct peers_test test_siw_end[] = {
	{ .name = "a request with a wrapped length is rejected",
	  .opener = wrapped_opener,
	  .listener = wrapped_listener,
	  .only = PEERS_SIW_OPENS },
	{ .name = "WRITE with a wrong key", .opener = key_write_opener, .listener = key_listener },
	{ .name = "READ with a wrong key", .opener = key_read_opener, .listener = key_listener },
	{ .name = "WRITE past the end", .opener = bounds_opener, .listener = key_listener },
	{ .name = "WRITE to memory that may only be read",
	  .opener = guarded_opener,
	  .listener = guarded_listener },
	{ .name = "the opener dies while it sends",
	  .opener = die_sending,
	  .listener = survive_sending,
	  .death = PEERS_OPENER_DIES },
	{ .name = "the listener dies while it is read from",
	  .opener = survive_reading,
	  .listener = die_read,
	  .death = PEERS_LISTENER_DIES },
};
const size_t test_siw_end_count = sizeof(test_siw_end) / sizeof(test_siw_end[0]);

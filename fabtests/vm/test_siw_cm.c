/* SPDX-License-Identifier: BSD-2-Clause */
/* Setting up and taking down; in RFC 5044 and 6581 what comes before and after the frames. */
#include <errno.h>
#include <string.h>

#include "vm/actor.h"
#include "vm/side.h"
#include "vm/test_siw.h"

/*
 * rdma_cm has 8 bits for a length, and siw for its own, to which it adds the 4 bytes of RFC 6581:
 * it sends no more than 251 with them (252 wrap to 0), and takes 256 in all.
 */
#define PRIVATE_MAX          255
#define PRIVATE_MAX_ENHANCED 251

static void private_max(struct actor *a)
{
	bool siw_opens = a->p->opener != a->p->soft;
	bool enhanced = !siw_opens || a->p->conf->siw_revision > 1;
	size_t bytes = enhanced ? PRIVATE_MAX_ENHANCED : PRIVATE_MAX;

	actor_connect(a, bytes, bytes);
	peers_sync(a->p);
	if (a->p->opener)
		a->ops->disconnect(a);
	a->ops->disconnected(a, ACTOR_END_ORDERLY);
}

static void private_none(struct actor *a)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	if (!a->p->opener)
		a->ops->disconnect(a);
	a->ops->disconnected(a, ACTOR_END_ORDERLY);
}

/* -- reject --------------------------------------------------------------------------------- */

static const char no[] = "no, thank you";

static void reject_opener(struct actor *a)
{
	peers_sync(a->p);
	a->ops->dial(a, "please", 6);
	a->ops->rejected(a, no, sizeof(no));
	peers_sync(a->p);
}

static void reject_listener(struct actor *a)
{
	a->ops->listen(a);
	peers_sync(a->p);
	a->ops->request(a, "please", 6);
	a->ops->reject(a, no, sizeof(no));
	peers_sync(a->p);
}

/* -- nobody there --------------------------------------------------------------------------- */

static void refused_opener(struct actor *a)
{
	a->ops->dial(a, "please", 6);
	a->ops->refused(a);
}

static void refused_listener(struct actor *a)
{
	(void)a;
}

/* -- one port for both ----------------------------------------------------------------------- */

/* On one address siw has the port that it listens on to itself. */
static void port_listener(struct actor *a)
{
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	struct side side;
	int rc;

	a->ops->listen(a);
	side_open(&side, PEERS_SIW_ADDR, NULL);
	addr = side.dev->attr.addr;
	addr.port = a->p->port;
	rc = side.ops->listen(side.dev, &addr, 1, NULL, &listener);
	if (rc != -EADDRINUSE)
		side_die("listening on siw's port gave %d", rc);
	side_close(&side);
	peers_sync(a->p);
}

static void port_opener(struct actor *a)
{
	peers_sync(a->p);
}

/* -- an end with work on the way ------------------------------------------------------------ */

#define LAST_BYTES (4u << 20)

/* What was posted before a disconnect arrives before it. */
static void last_words_opener(struct actor *a)
{
	actor_connect(a, 0, 0);
	peers_sync(a->p);
	side_fill(a->buf, LAST_BYTES, 9);
	a->ops->post(a, ACTOR_SEND, 0, LAST_BYTES, 0, 0);
	a->ops->expect(a, ACTOR_SEND);
	a->ops->disconnect(a);
	a->ops->disconnected(a, ACTOR_END_ORDERLY);
	peers_sync(a->p);
}

static void last_words_listener(struct actor *a)
{
	actor_connect(a, 0, 0);
	a->ops->recv(a, 0, LAST_BYTES);
	peers_sync(a->p);
	if (a->ops->expect(a, ACTOR_RECV) != LAST_BYTES)
		side_die("a message was cut");
	side_check(a->buf, LAST_BYTES, 9, "the last SEND");
	a->ops->disconnected(a, ACTOR_END_ORDERLY);
	peers_sync(a->p);
}

const struct peers_test test_siw_cm[] = {
	{ .name = "as much private data as can be",
	  .opener = private_max,
	  .listener = private_max },
	{ .name = "no private data; the listener ends it",
	  .opener = private_none,
	  .listener = private_none },
	{ .name = "rejected, with private data",
	  .opener = reject_opener,
	  .listener = reject_listener },
	{ .name = "refused: nobody listens",
	  .opener = refused_opener,
	  .listener = refused_listener },
	{ .name = "where siw listens, soft does not",
	  .opener = port_opener,
	  .listener = port_listener,
	  .only = PEERS_SOFT_OPENS },
	{ .name = "a long SEND just before the end",
	  .opener = last_words_opener,
	  .listener = last_words_listener },
};
const size_t test_siw_cm_count = sizeof(test_siw_cm) / sizeof(test_siw_cm[0]);

/* -- the first frame, ready to receive ------------------------------------------------------- */

/* Nobody says anything: the connection stands for siw by what our device says of itself. */
static void rtr_opener(struct actor *a)
{
	peers_sync(a->p);
	a->ops->dial(a, NULL, 0);
	a->ops->established(a, NULL, 0);
	a->ops->idle(a);
	peers_sync(a->p);
}

static void rtr_listener(struct actor *a)
{
	a->ops->listen(a);
	peers_sync(a->p);
	a->ops->request(a, NULL, 0);
	a->ops->accept(a, NULL, 0);
	peers_sync(a->p);
}

const struct peers_test test_siw_rtr[] = {
	{ .name = "siw is established by our first frame, or the next",
	  .opener = rtr_opener,
	  .listener = rtr_listener,
	  .only = PEERS_SOFT_OPENS },
};
const size_t test_siw_rtr_count = sizeof(test_siw_rtr) / sizeof(test_siw_rtr[0]);

/* -- CRCs asked for by us and forbidden by siw ---------------------------------------------- */

static void strict_opener(struct actor *a)
{
	peers_sync(a->p);
	a->ops->dial(a, NULL, 0);
	a->ops->rejected(a, NULL, 0);
	peers_sync(a->p);
}

/* siw refuses the request in its consumer's place, or our answer. */
static void strict_listener(struct actor *a)
{
	a->ops->listen(a);
	peers_sync(a->p);
	if (a->p->soft) {
		a->ops->request(a, NULL, 0);
		a->ops->accept(a, NULL, 0);
		a->ops->disconnected(a, ACTOR_END_ANY);
	}
	peers_sync(a->p);
}

const struct peers_test test_siw_strict[] = {
	{ .name = "no connection without agreement on CRCs",
	  .opener = strict_opener,
	  .listener = strict_listener },
};
const size_t test_siw_strict_count = sizeof(test_siw_strict) / sizeof(test_siw_strict[0]);

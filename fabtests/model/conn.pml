/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshake, epochs, claims, replay and restart, as they were built (prov/rvcm/DESIGN.md), as a spin model.
 *
 * Two peers, LOW and HIGH by name, and link 0. LOW has FROM_LOW messages for the other, HIGH has FROM_HIGH, numbered per
 * conn, with a window of W and cumulative acknowledgements. A conn is known by begun, the epoch of its first link, and
 * outlives its links. If it goes down after all, its messages have failed, and the application begins anew.
 *
 * The network: a REQUEST lies in the acceptor's listen queue until taken, in any order, even when its sender has long
 * abandoned the attempt, or is dead. What follows flows through one FIFO for each direction of a connection. A failure
 * is a side's queue pair, or claim, going to error at any time: what is still in its FIFO is lost. The other side goes on,
 * sending into nothing, until it notices, or is told by HELLO on another link. There are at most FAULTS failures; what
 * follows from them is free. At most GIVE_UPS times a side that recovers runs out of time; RESTARTS says whether AGAIN
 * may die and begin anew, at any time, once.
 *
 * Control and data side are one here, and what both know changes at once. MACs and nonces are not modelled, nor are
 * BUSY, SHARED and what else comes of several endpoints, nor orderly closing.
 *
 * Checked in every reachable state:
 *   delivery   a message is delivered once and in order, none of a conn that is no more behind those of another
 *   counts     no HELLO acknowledges what was not sent, or has been acknowledged and dropped
 *   loss       a conn goes down only if a side was restarted or gave up
 *   stale      no REQUEST is accepted whose epoch is not above that of a link that came up
 *   progress   epochs stay within EMAX: nothing but a failure costs attempts
 *   budget     a FIFO of W messages and CONTROL other frames never overflows
 *   the end    when nothing can happen any more, everything is delivered and acknowledged, on a link that both have
 * And the graph of states has no cycle (searched for as a non-progress cycle), so every run comes to that end.
 *
 * Each BROKEN_* macro takes one rule away; each must be found out:
 *   BROKEN_EPOCH        a late REQUEST of an older epoch is accepted
 *   BROKEN_REAP         HELLO is said before the old queue pair is reaped
 *   BROKEN_ACK          a message is forgotten when the device has completed it
 *   BROKEN_COUNTS       only what was not posted yet is sent on the new link
 *   BROKEN_EARLY        what is to be sent again follows HELLO at once, and does not wait for the peer's
 *   BROKEN_FRESH        an attempt that has carried DATA is repeated as if it had not
 *   BROKEN_CROSSED      both sides reject a crossing REQUEST
 *   BROKEN_REPLY        the REPLY does not tell the epochs that the acceptor has used itself
 *   BROKEN_JOIN         two conns that both sides have begun, and lost, do not become one
 *   BROKEN_HEARD        who has opened a conn is believed that it was never heard of
 *   BROKEN_INCARNATION  a REQUEST that goes on with a former life of ours is not told from others
 *   BROKEN_LEFT         incarnations that the peer has left are forgotten
 *   BROKEN_UNHEARD      begun is looked at without the incarnation
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef AGAIN
#define AGAIN HIGH
#endif
#ifndef FROM_LOW
#define FROM_LOW 2
#endif
#ifndef FROM_HIGH
#define FROM_HIGH 1
#endif
#ifndef W
#define W 1
#endif
#ifndef CONTROL
#define CONTROL 2
#endif
#ifndef EMAX
#define EMAX (1 + 2 * (FAULTS + GIVE_UPS + RESTARTS)) /* each costs an attempt, at most of either side */
#endif

#define LOW  0
#define HIGH 1
#define N(p) ((p) == LOW -> FROM_LOW : FROM_HIGH)

/* A link, as its side sees it. */
#define IDLE	0
#define OPENING 1
#define CROSSED 2
#define HELLO	3 /* opener: REPLY came, own HELLO sent */
#define UP	4

mtype = { reply, crossed, stale, gone, hello, bye, data, ack };

#define o		   (1 - p)
#define TAG(e, opener, life) (1 + (((e) - 1) * 2 + (opener)) * 2 + (life))
#define MAX(a, b)	   ((a) > (b) -> (a) : (b))

bool life[2]; /* of each side: the incarnation */

/* What is known of the peer. */
byte st[2];
byte cur[2];	/* which connection, 0 = none */
byte epoch[2];	/* the newest that was used, or asked for */
byte seen[2];	/* the newest that was proven */
byte inc[2];	/* 1 + the life that was proven, 0 = none */
byte heard[2];	/* the newest epoch of a link of the peer's that was proven here */

/* The conn. */
bool has[2];
bool lost[2]; /* it recovers */
byte with[2]; /* 1 + the life of the peer */
byte begun[2];
bool own[2];
byte next[2];	      /* the next message expected */
byte una[2], snd[2];  /* the first message not acknowledged; the next one to be sent */
byte told[2];	      /* the last ack sent */
bool granted[2];      /* by REPLY */
byte gen[2];	      /* how many conns went down */

/* REQUESTs, by sender, life and epoch. */
#define RQ(p, life, e) (((p) * 2 + (life)) * EMAX + (e) - 1)
bool rq[4 * EMAX];
byte rq_begun[4 * EMAX];
bool rq_own[4 * EMAX];
byte rq_heard[4 * EMAX];
byte rq_inc[4 * EMAX]; /* peer_incarnation: 1 + life, 0 = unknown */

/* Claims, by acceptor and the opener's life. */
#define C(p, life) ((p) * 2 + (life))
byte claim[4]; /* which connection, 0 = none */
byte claim_epoch[4], claim_request[4];
byte claim_begun[4];
bool claim_own[4], claim_unheard[4];
byte claim_heard[4];

/* Frames on their way: to the link, to a claim. */
chan in[2] = [W + CONTROL] of { mtype, byte, byte };
chan cin[4] = [W + 1] of { mtype, byte, byte };

hidden byte a, b, x, y;
hidden byte goes_on;
hidden mtype k;

byte faults, give_ups, restarts;
bool loss;		 /* ghost: a conn may go down */
byte d_life[2], d_gen[2], d_n[2]; /* ghost: of what was delivered last, d_n is one more */
byte est[2];		 /* ghost: by opener's side: highest epoch of the present life that was proven */

inline drain(q)
{
	do
	:: nempty(q) -> q?k, x, y
	:: empty(q) -> break
	od;
	k = 0; x = 0; y = 0
}

/* Send on this connection: into the void if the other end is gone. */
inline send(kind, v, w)
{
	if
	:: cur[o] == cur[p] -> assert(nfull(in[o])); in[o]!kind, v, w
	:: cur[o] != cur[p] && claim[C(o, life[p])] == cur[p] ->
		assert(nfull(cin[C(o, life[p])]));
		cin[C(o, life[p])]!kind, v, w
	:: else
	fi
}

/* To whoever has opened that. */
inline reply_to(tag, kind, v, w)
{
	if
	:: cur[o] == tag -> assert(nfull(in[o])); in[o]!kind, v, w
	:: else
	fi
}

/* To error, and reaped. */
inline drop_link()
{
	cur[p] = 0;
	st[p] = IDLE;
	granted[p] = 0;
	drain(in[p])
}

inline drop_claim(c)
{
	claim[c] = 0;
	claim_epoch[c] = 0;
	claim_request[c] = 0;
	claim_begun[c] = 0;
	claim_own[c] = 0;
	claim_unheard[c] = 0;
	claim_heard[c] = 0;
	drain(cin[c])
}

/* The conn's messages have failed. */
inline down()
{
	assert(loss || with[p] != 1 + life[o]); /* loss */
	has[p] = 0;
	lost[p] = 0;
	with[p] = 0;
	begun[p] = 0;
	own[p] = 0;
	next[p] = 0;
	una[p] = 0;
	snd[p] = 0;
	told[p] = 0;
	gen[p]++
}

/* The link is lost, or the attempt. */
inline lose()
{
	if
#ifdef BROKEN_FRESH
	:: st[p] == HELLO && una[p] == 0 && !lost[p] ->
		has[p] = 0; begun[p] = 0; own[p] = 0; with[p] = 0; snd[p] = 0
#endif
	:: else -> lost[p] = has[p]
	fi;
	drop_link()
}

inline attempt()
{
	epoch[p]++;
	assert(epoch[p] <= EMAX); /* progress */
	cur[p] = TAG(epoch[p], p, life[p]);
	st[p] = OPENING;
	a = RQ(p, life[p], epoch[p]);
	rq[a] = 1;
	rq_begun[a] = begun[p];
	rq_own[a] = own[p];
	rq_heard[a] = heard[p];
	rq_inc[a] = inc[p];
	a = 0
}

inline meet(l)
{
	if
	:: inc[p] != 1 + (l) -> inc[p] = 1 + (l); heard[p] = 0
	:: else
	fi
}

/* The peer's HELLO says what it has: the rest is sent again. */
inline counts(n)
{
	assert(n >= una[p] && n <= snd[p]); /* counts */
	una[p] = n;
#ifndef BROKEN_COUNTS
	snd[p] = n;
#endif
	lost[p] = 0
}

#define HEARD_OF(l) (inc[p] == 1 + (l) -> heard[p] : 0)

#ifdef BROKEN_EPOCH
#define OLD(l, e) 0
#else
#define OLD(l, e) (inc[p] == 1 + (l) && e <= seen[p])
#endif
#ifdef BROKEN_LEFT
#define LEFT(l) 0
#else
#define LEFT(l) (inc[p] == 2 && (l) == 0)
#endif
#ifdef BROKEN_HEARD
#define NEVER_HEARD(l, r) rq_own[r]
#else
#define NEVER_HEARD(l, r) (rq_own[r] && HEARD_OF(l) < rq_begun[r])
#endif
#ifdef BROKEN_INCARNATION
#define OURS(r) 1
#else
#define OURS(r) (rq_inc[r] == 1 + life[p])
#endif
#define IS_GONE(l, r)                                                                              \
	(rq_begun[r] != 0 && (!OURS(r) ||                                                          \
			      !(inc[p] == 1 + (l) && begun[p] == rq_begun[r]) && !NEVER_HEARD(l, r)))
#ifdef BROKEN_CROSSED
#define CROSSES (st[p] == OPENING)
#else
#define CROSSES (st[p] == OPENING && p == LOW)
#endif
#define GRANTS (st[p] < HELLO && claim[C(p, 0)] == 0 && claim[C(p, 1)] == 0 && rq_begun[b] == 0)

/* Of that life and epoch, b. */
inline accept(l, e)
{
	assert(!(l == life[o]) || e > est[o]); /* stale */
	if
	:: st[p] == OPENING || st[p] == CROSSED -> drop_link()
	:: else
	fi;
	drop_claim(C(p, l));
	x = GRANTS;
	epoch[p] = MAX(epoch[p], e);
	claim[C(p, l)] = TAG(e, o, l);
	claim_request[C(p, l)] = e;
	claim_epoch[C(p, l)] = epoch[p];
	claim_begun[C(p, l)] = rq_begun[b];
	claim_own[C(p, l)] = rq_own[b] || rq_begun[b] == 0;
#ifdef BROKEN_UNHEARD
	claim_unheard[C(p, l)] = begun[p] != rq_begun[b];
#else
	claim_unheard[C(p, l)] = !(inc[p] == 1 + (l) && begun[p] == rq_begun[b]);
#endif
	claim_heard[C(p, l)] = (rq_inc[b] == 1 + life[p] -> rq_heard[b] : 0);
#ifdef BROKEN_REPLY
	y = e;
#else
	y = epoch[p];
#endif
	reply_to(TAG(e, o, l), reply, y, x + 2 * life[p]);
	x = 0; y = 0
}

inline request(l, e)
{
	b = RQ(o, l, e);
	rq[b] = 0;
	if
	:: LEFT(l) || OLD(l, e) || claim_request[C(p, l)] >= e -> reply_to(TAG(e, o, l), stale, 0, 0)
	:: else ->
		if
		:: IS_GONE(l, b) -> reply_to(TAG(e, o, l), gone, 0, 0)
		:: !IS_GONE(l, b) && CROSSES -> reply_to(TAG(e, o, l), crossed, 0, 0)
		:: else -> accept(l, e)
		fi
	fi;
	rq_begun[b] = 0;
	rq_own[b] = 0;
	rq_heard[b] = 0;
	rq_inc[b] = 0;
	b = 0
}

#define CONTINUES(c, l) (has[p] && with[p] == 1 + (l) && claim_begun[c] == begun[p])
#ifdef BROKEN_JOIN
#define JOINS(c, l) 0
#else
#define JOINS(c, l)                                                                                \
	(has[p] && with[p] == 1 + (l) && own[p] && (claim_begun[c] == 0 || claim_unheard[c]) &&    \
	 a == 0 && claim_heard[c] < begun[p])
#endif

/* Its link is the conn's. */
inline become(c, l)
{
	cur[p] = claim[c];
	st[p] = UP;
	begun[p] = (claim_begun[c] != 0 -> claim_begun[c] : claim_epoch[c]);
	own[p] = !claim_own[c];
	with[p] = 1 + (l);
	has[p] = 1;
	seen[p] = claim_epoch[c];
	meet(l);
	heard[p] = claim_epoch[c];
	est[o] = (l == life[o] -> MAX(est[o], claim_request[c]) : est[o]);
	do
	:: nempty(cin[c]) -> cin[c]?k, x, y; in[p]!k, x, y
	:: empty(cin[c]) -> break
	od;
	drop_claim(c)
}

/* The opener's HELLO: whose conn is it? */
inline prove(l)
{
	cin[C(p, l)]?hello, a, b;
	b = 0;
	if
	:: LEFT(l) -> drop_claim(C(p, l))
	:: else ->
		goes_on = CONTINUES(C(p, l), l) || JOINS(C(p, l), l);
		if
		:: !goes_on && claim_begun[C(p, l)] != 0 && (!claim_unheard[C(p, l)] || a != 0) ->
			reply_to(claim[C(p, l)], bye, 0, 0);
			drop_claim(C(p, l))
		:: else ->
#ifdef BROKEN_REAP
			st[p] = IDLE;
#else
			lose();
#endif
			if
			:: !goes_on && has[p] -> down()
			:: else
			fi;
			become(C(p, l), l);
			counts(a);
			send(hello, next[p], 0);
			told[p] = next[p]
		fi
	fi;
	goes_on = 0;
	a = 0
}

/* REPLY: the opener proves itself. */
inline established()
{
	assert(st[p] == OPENING && (!has[p] || with[p] == 1 + b / 2));
	epoch[p] = a;
	seen[p] = a;
	meet(b / 2);
	st[p] = HELLO;
	if
	:: has[p]
	:: else ->
		has[p] = 1;
		with[p] = 1 + b / 2;
		begun[p] = a;
		own[p] = 1;
		granted[p] = b % 2
	fi;
	send(hello, next[p], 0);
	told[p] = next[p]
}

/* Number, how many conns of the sender's had gone down, its life. */
#define CONTENT(n) ((n) + 4 * gen[p] + 32 * life[p])

inline deliver()
{
	x = a / 32;
	y = (a / 4) % 8;
	a = a % 4;
	assert(a == next[p]); /* delivery */
	if
	:: x == d_life[p] && y == d_gen[p] -> assert(a == d_n[p]) /* delivery */
	:: else -> assert((x > d_life[p] || x == d_life[p] && y > d_gen[p]) && a == 0) /* delivery */
	fi;
	d_life[p] = x;
	d_gen[p] = y;
	d_n[p] = a + 1;
	next[p]++;
	x = 0; y = 0
}

inline frame()
{
	in[p]?k, a, b;
	if
	:: k == reply -> established()
	:: k == crossed -> drop_link(); st[p] = CROSSED
	:: k == stale -> drop_link()
	:: k == gone || k == bye ->
		drop_link();
		if
		:: has[p] -> down()
		:: else
		fi
	:: k == hello ->
		assert(st[p] == HELLO);
		st[p] = UP;
		granted[p] = 1;
		if
		:: lost[p] -> counts(a)
		:: else -> una[p] = MAX(una[p], a)
		fi
	:: k == data -> una[p] = MAX(una[p], b); deliver()
	:: k == ack -> una[p] = MAX(una[p], b)
	fi;
	k = 0; a = 0; b = 0
}

inline forget()
{
	drop_link();
	drop_claim(C(p, 0));
	drop_claim(C(p, 1));
	epoch[p] = 0;
	seen[p] = 0;
	inc[p] = 0;
	heard[p] = 0;
	has[p] = 0; lost[p] = 0; with[p] = 0; begun[p] = 0; own[p] = 0;
	next[p] = 0; una[p] = 0; snd[p] = 0; told[p] = 0; gen[p] = 0;
	d_life[p] = 0; d_gen[p] = 0; d_n[p] = 0;
	est[p] = 0;
	/* its listen queue */
	a = 0;
	do
	:: a < 2 * EMAX ->
		rq[RQ(o, 0, 1) + a] = 0;
		rq_begun[RQ(o, 0, 1) + a] = 0;
		rq_own[RQ(o, 0, 1) + a] = 0;
		rq_heard[RQ(o, 0, 1) + a] = 0;
		rq_inc[RQ(o, 0, 1) + a] = 0;
		a++
	:: else -> break
	od;
	a = 0
}

#define NO_CLAIM (claim[C(p, 0)] == 0 && claim[C(p, 1)] == 0)
#define TAKES(l, e) :: d_step { rq[RQ(o, l, e)] -> request(l, e) }
#define THERE(c) (cur[o] == claim[c])
/* Does the other side have the other end? */
#define ENDS (cur[o] == cur[p] || claim[C(o, life[p])] == cur[p])
#ifdef BROKEN_EARLY
#define MAY_SEND (st[p] == UP || st[p] == HELLO)
#else
#define MAY_SEND (st[p] == UP || st[p] == HELLO && granted[p] && !lost[p])
#endif

proctype Peer(byte p)
{
end:
	do
	:: d_step { st[p] == IDLE && NO_CLAIM && (has[p] || N(p) > 0) -> attempt() }

	TAKES(0, 1)
	TAKES(0, 2)
#if EMAX > 2
	TAKES(0, 3)
#endif
#if EMAX > 3
	TAKES(0, 4)
#endif
#if EMAX > 4
	TAKES(0, 5)
#endif
#if EMAX > 5
	TAKES(0, 6)
#endif
#if EMAX > 6
	TAKES(0, 7)
#endif
#if EMAX > 7
	TAKES(0, 8)
#endif
#if RESTARTS
	TAKES(1, 1)
	TAKES(1, 2)
#if EMAX > 2
	TAKES(1, 3)
#endif
#if EMAX > 3
	TAKES(1, 4)
#endif
#if EMAX > 4
	TAKES(1, 5)
#endif
#if EMAX > 5
	TAKES(1, 6)
#endif
#if EMAX > 6
	TAKES(1, 7)
#endif
#if EMAX > 7
	TAKES(1, 8)
#endif
#endif

	:: d_step { nempty(in[p]) -> frame() }
	:: d_step { nempty(cin[C(p, 0)]) -> prove(0) }
#if RESTARTS
	:: d_step { nempty(cin[C(p, 1)]) -> prove(1) }
#endif

	:: d_step {
		MAY_SEND && snd[p] < N(p) && snd[p] < una[p] + W ->
		send(data, CONTENT(snd[p]), next[p]);
		told[p] = next[p];
		snd[p]++;
#ifdef BROKEN_ACK
		una[p] = snd[p]
#endif
	   }
	:: d_step { st[p] == UP && told[p] != next[p] -> send(ack, 0, next[p]); told[p] = next[p] }

	/* A queue pair fails. */
	:: d_step { faults > 0 && cur[p] != 0 -> faults--; lose() }
	:: d_step { faults > 0 && claim[C(p, 0)] != 0 -> faults--; drop_claim(C(p, 0)) }

	/* The other end is gone. LOW, once up, is deaf. */
	:: d_step { (st[p] == HELLO || st[p] == UP && (p == HIGH || !has[o])) && !ENDS -> lose() }
	:: d_step {
		st[p] == OPENING && !ENDS && !rq[RQ(p, life[p], epoch[p])] && empty(in[p]) -> drop_link()
	   }
	:: d_step { claim[C(p, 0)] != 0 && !THERE(C(p, 0)) -> drop_claim(C(p, 0)) }
#if RESTARTS
	:: d_step { claim[C(p, 1)] != 0 && !THERE(C(p, 1)) -> drop_claim(C(p, 1)) }
#endif
	/* The winner has died, or given up. */
	:: d_step {
		st[p] == CROSSED && NO_CLAIM && st[o] != OPENING ->
		drop_link()
	   }

#if GIVE_UPS
	:: d_step { give_ups > 0 && lost[p] && st[p] < HELLO -> give_ups--; loss = 1; drop_link(); down() }
#endif
#if RESTARTS
	:: d_step { p == AGAIN && restarts > 0 -> restarts--; forget(); life[p] = 1 }
#endif
	od
}

init
{
	atomic {
		select(faults : 0 .. FAULTS);
		give_ups = GIVE_UPS;
		restarts = RESTARTS;
		run Peer(LOW);
		run Peer(HIGH)
	};
	timeout -> assert(st[LOW] == UP && st[HIGH] == UP && una[LOW] == FROM_LOW && una[HIGH] == FROM_HIGH &&
			  next[HIGH] == FROM_LOW && next[LOW] == FROM_HIGH)
}

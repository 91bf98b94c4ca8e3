/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshake, epochs and replay of prov/rvcm/DESIGN.md, as a spin model.
 *
 * Two peers, LOW and HIGH by name, and one conn of two links. Link 0 carries N messages each way, numbered
 * per conn, with a window of W and cumulative acknowledgements. Link 1 carries M immediates from IMM_FROM to the
 * other; they bear no number and are only counted, as on real queue pairs.
 *
 * The network: a REQUEST lies in the acceptor's listen queue until taken, in any order, even when its sender
 * has long abandoned the attempt (rq). What follows it, from the REPLY on, flows through one FIFO for each
 * direction of a connection (in). A failure is a side's queue pair going to error at any time: what is still in
 * its FIFO is lost. The other side goes on, sending into nothing, until it notices, or is told by the next REQUEST.
 * That covers cuts (any prefix of what was sent arrives), abandoned attempts and late REQUESTs. There are at most
 * FAULTS failures; what follows from them (noticing that the other end is gone) is free.
 *
 * MACs and nonces are not modelled: what they keep out does not occur here. Nobody restarts or gives the conn up, so
 * incarnations do not change, and every REQUEST continues whatever there is.
 *
 * Checked in every reachable state:
 *   delivery      a message or immediate is delivered once and in order (ghost: del)
 *   stale         no REQUEST is accepted whose epoch is not above that of a link that came up (ghost: est)
 *   progress      a link's epoch stays within EMAX: nothing but a failure costs an attempt
 *   budget        a FIFO of W messages and CONTROL other frames never overflows
 *   the end       when nothing can happen any more, both links are up, everything delivered and acknowledged
 * And the graph of states has no cycle (searched for as a non-progress cycle), so every run comes to that end.
 *
 * Each BROKEN_* macro takes one rule away; each must be found out:
 *   BROKEN_EPOCH    a late REQUEST of an older epoch is accepted
 *   BROKEN_REAP     counts are exchanged before the old queue pair is reaped
 *   BROKEN_ACK      a message is forgotten when the device has completed it
 *   BROKEN_FRESH    an attempt that has carried DATA is repeated as if it had not, under a new incarnation
 *   BROKEN_CROSSED  both sides reject a crossing REQUEST
 *   BROKEN_REPLY    the REPLY does not tell the epochs that the acceptor has used itself
 *   BROKEN_ASK      the higher name waits without asking
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef N
#define N 2
#endif
#ifndef M
#define M 1
#endif
#ifndef W
#define W 1
#endif
#define EMAX (1 + FAULTS) /* epochs: a failure costs one attempt, no more */
#ifndef CONTROL
#define CONTROL 2
#endif
#define E	(EMAX + 1)

#define LOW  0
#define HIGH 1
#ifndef IMM_FROM
#define IMM_FROM HIGH
#endif

/* Of a link, as in DESIGN.md; DRAINING takes no time here. */
#define IDLE	  0
#define OPENING	  1
#define WAITING	  2
#define ACCEPTING 3
#define HELLO	  4 /* opener: REPLY came, own HELLO sent */
#define UP	  5

mtype = { reply, crossed, stale, hello, data, ack, imm };

/* Index by peer p and link l: X(p, l). */
#define X(p, l) ((p) * 2 + (l))
#define i	X(p, l)
#define o	X(1 - p, l)

byte st[4];
byte cur[4];   /* which connection: TAG(epoch, opener), 0 = none */
byte used[4];  /* highest epoch in our own REQUESTs */
byte seen[4];  /* highest epoch of the peer's REQUESTs and of links that came up */
byte rnext[4]; /* counts of the REQUEST that is being accepted */
byte rimm[4];
#define TAG(e, opener) ((e) * 2 + (opener))
#define NEWEST(x)      (used[x] > seen[x] -> used[x] : seen[x])

bool known[2];		/* the opener has sent HELLO, or the acceptor got it: HIGH asks from now on */
byte next[2];		/* the next message expected */
byte una[2], snd[2];	/* first message not acknowledged; next one to be sent */
byte told[2];		/* the last ack sent */
byte icount[2];		/* immediates seen */
byte isnd[2];		/* next immediate to be sent */

/* REQUESTs not taken yet, by sender, link and epoch: 0 = none. asks likewise, from HIGH only. */
byte rq[4 * E];
bool asks[2 * E];
#define RQ(n, m)   (1 + (n) + (N + 1) * (m))
#define RQ_NEXT(r) (((r) - 1) % (N + 1))
#define RQ_IMM(r)  ((((r) - 1) / (N + 1)) % (M + 1))
#define RQ_FRESH   128 /* BROKEN_FRESH */

/* Frames on their way to X(p, l): kind, number or count, ack or epoch. */
chan in[4] = [W + CONTROL] of { mtype, byte, byte };

/* What a step needs while it lasts; not part of the state. */
hidden byte e, r, a, b;
hidden mtype k;

byte faults;
byte del[2];	 /* ghost: delivered so far */
byte est[2];	      /* ghost: highest epoch with which a side was up */

/* Send on this connection: into the void if the other end is gone. */
inline send(kind, a, b)
{
	if
	:: cur[o] == cur[i] -> assert(nfull(in[o])); in[o]!kind, a, b
	:: else
	fi
}

/* The queue pair goes to error and is reaped: nothing of it comes any more. */
inline break_link()
{
	cur[i] = 0;
	st[i] = IDLE;
#ifdef BROKEN_REAP
	do
	:: in[i]?[hello, a, b] -> in[i]?hello, a, b
	:: in[i]?[reply, a, b] -> in[i]?reply, a, b
	:: in[i]?[crossed, a, b] -> in[i]?crossed, a, b
	:: else -> break
	od
#else
	do
	:: nempty(in[i]) -> in[i]?k, a, b
	:: empty(in[i]) -> break
	od
#endif
}

inline attempt()
{
	used[i] = NEWEST(i) + 1;
	assert(used[i] <= EMAX); /* progress */
	cur[i] = TAG(used[i], p);
	st[i] = OPENING;
	rq[i * E + used[i]] = RQ(next[p], icount[p]);
#ifdef BROKEN_FRESH
	if
	:: l == 0 && snd[p] > 0 && una[p] == 0 -> rq[i * E + used[i]] = RQ(0, 0) + RQ_FRESH
	:: else
	fi;
#endif
	told[p] = (l == 0 -> next[p] : told[p])
}

/* After a break: the lower name opens, the higher asks, or starts again if there is no conn. */
inline reopen()
{
	if
	:: p == LOW -> attempt()
	:: p == HIGH && known[p] ->
		st[i] = WAITING;
#ifndef BROKEN_ASK
		asks[l * E + seen[i]] = 1
#endif
	:: else -> st[i] = IDLE
	fi
}

/* The peer's counts: what it has is acknowledged, the rest will be sent again. */
inline replay(n, m)
{
	if
	:: l == 0 ->
		assert(n >= una[p] && n <= N); /* delivery: we still have what it lacks */
		una[p] = n;
		snd[p] = n
	:: else -> isnd[p] = m
	fi
}

inline up()
{
	st[i] = UP;
	est[l] = (est[l] > seen[i] -> est[l] : seen[i])
}

inline accept()
{
	assert(e > est[l]); /* stale */
	break_link();
	seen[i] = e;
	cur[i] = TAG(e, 1 - p);
	st[i] = ACCEPTING;
#ifdef BROKEN_FRESH
	if
	:: r >= RQ_FRESH -> r = r - RQ_FRESH; next[p] = 0; una[p] = 0
	:: else
	fi;
#endif
	rnext[i] = RQ_NEXT(r);
	rimm[i] = RQ_IMM(r);
	told[p] = (l == 0 -> next[p] : told[p]);
#ifdef BROKEN_REPLY
	b = e;
#else
	b = NEWEST(i);
#endif
	if
	:: l == 0 -> send(reply, next[p], b)
	:: else -> send(reply, icount[p], b)
	fi
}

inline reject(why)
{
	if
	:: cur[o] == TAG(e, 1 - p) -> assert(nfull(in[o])); in[o]!why, 0, 0
	:: else
	fi
}

#ifdef BROKEN_EPOCH
#define STALE false
#else
#define STALE (e <= seen[i])
#endif
#ifdef BROKEN_CROSSED
#define CROSSED (st[i] == OPENING || st[i] == HELLO)
#else
#define CROSSED (p == LOW && (st[i] == OPENING || st[i] == HELLO))
#endif

inline request()
{
	r = rq[o * E + e];
	rq[o * E + e] = 0;
	if
	:: STALE -> reject(stale)
	:: !STALE && CROSSED -> reject(crossed)
	:: else -> accept()
	fi
}

inline frame()
{
	in[i]?k, a, b;
	if
	:: k == reply ->
		assert(st[i] == OPENING);
		seen[i] = b;
		known[p] = 1;
		replay(a, a);
		st[i] = HELLO;
		send(hello, 0, 0)
	:: k == crossed -> assert(st[i] == OPENING); cur[i] = 0; st[i] = WAITING
	:: k == stale -> assert(false) /* a living attempt is never stale */
	:: k == hello && st[i] == ACCEPTING ->
		seen[i] = NEWEST(i);
		known[p] = 1;
		replay(rnext[i], rimm[i]);
		send(hello, 0, 0);
		up()
	:: k == hello && st[i] != ACCEPTING -> assert(st[i] == HELLO); up()
	:: k == data ->
		assert(a == next[p] && a == del[p]); /* delivery */
		next[p]++;
		del[p]++;
		una[p] = (b > una[p] -> b : una[p])
	:: k == ack -> una[p] = (b > una[p] -> b : una[p])
	:: k == imm ->
		assert(a == icount[p]); /* delivery */
		icount[p]++
	fi
}

#define CARRIES (st[i] == UP || st[i] == HELLO)

proctype Link(byte p; byte l)
{
end:
	do
	/* Something to send, and nothing under way. */
	:: d_step { st[i] == IDLE && l == 0 -> attempt() }
	:: d_step { st[i] == IDLE && l == 1 && p == LOW && st[X(p, 0)] == UP -> attempt() }

	/* Any REQUEST in the queue is taken. */
	:: d_step { rq[o * E + 1] != 0 -> e = 1; request() }
	:: d_step { rq[o * E + 2] != 0 -> e = 2; request() }
#if FAULTS > 1
	:: d_step { rq[o * E + 3] != 0 -> e = 3; request() }
#endif
#if FAULTS > 2
	:: d_step { rq[o * E + 4] != 0 -> e = 4; request() }
#endif

	/* HIGH has lost the link of our newest epoch. An older one is served by the attempt that made ours. */
	:: d_step {
		p == LOW && asks[l * E + NEWEST(i)] ->
		asks[l * E + NEWEST(i)] = 0;
		break_link();
		attempt()
	   }

	:: d_step { nempty(in[i]) -> frame() }

	:: d_step {
		l == 0 && CARRIES && snd[p] < N && snd[p] < una[p] + W ->
		send(data, snd[p], next[p]);
		told[p] = next[p];
		snd[p]++;
#ifdef BROKEN_ACK
		una[p] = snd[p]
#endif
	   }
	:: d_step { l == 0 && st[i] == UP && told[p] != next[p] -> send(ack, 0, next[p]); told[p] = next[p] }
	:: d_step { l == 1 && p == IMM_FROM && CARRIES && isnd[p] < M -> send(imm, isnd[p], 0); isnd[p]++ }

	/* The queue pair fails; or, while waiting, the time is up. */
	:: d_step { faults > 0 && st[i] != IDLE -> faults--; break_link(); reopen() }

	/* The other end is gone, or the attempt's time is up. LOW, once up, is deaf: it must be asked. */
	:: d_step {
		cur[o] != cur[i] && (st[i] == ACCEPTING || st[i] == HELLO || st[i] == UP && p == HIGH ||
		st[i] == OPENING && rq[i * E + used[i]] == 0 && empty(in[i])) ->
		break_link(); reopen()
	   }
	od
}

#define DONE(p) (st[X(p, 0)] == UP && st[X(p, 1)] == UP && del[p] == N && una[p] == N)

init
{
	atomic {
		select(faults : 0 .. FAULTS);
		run Link(LOW, 0);
		run Link(LOW, 1);
		run Link(HIGH, 0);
		run Link(HIGH, 1)
	};
	timeout -> assert(DONE(LOW) && DONE(HIGH) && icount[1 - IMM_FROM] == M)
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes over several links, as a spin model: when may the target be told?
 *
 * An initiator I writes P parts into the memory of a target T, and then tells it, by a message on link 0. Each part
 * goes over any link that is up. A posted *copy* of a part lands when it likes, for as long as the target's end of
 * that connection lives: what the initiator's device was given it may hand to the network, and the network keep, long
 * after the initiator's queue pair is gone. What has been told is the target's: if anything lands then, it lands on what
 * the target has written there itself.
 *
 * Link 0 is ordered: the message is taken behind the copies before it. On the others (side links) evidence must come
 * back, by what is posted behind the copy: the answer to a READ of no bytes (on IB: the completion).
 *
 * A link is a pair of queue pairs, and has an epoch; the opener's REQUEST and the acceptor's claim are as in conn.pml,
 * and so are HELLOs. Messages on link 0 are delivered once and in order, as is shown there; so REAPED is a set of bits
 * here. A failure is an end going to error at any time; with it a side link may be lost for good. T may give up the
 * conn (over), and I may be restarted: then T learns that at some time, and its operations fail.
 *
 * The rules:
 *   wait     T is told when of each copy there is evidence, or it is in front of the message on the same queue pair,
 *            or T's end of its connection is known to be dead. A lost part is posted again at once.
 *   reaped   an end that is lost is reaped, and says so on link 0: REAPED, its link and epoch. Who hears it reaps its own
 *            of that epoch or an older one, claims too, and says so as well. Or HELLO of a newer epoch says it.
 *   unsure   when link 0 is lost behind the message, nothing is posted again before HELLO has told what became of it.
 *   hello    nothing is written before the other side's HELLO.
 *   down     all ends are reaped before the conn's operations fail.
 *
 * Checked in every reachable state:
 *   late      nothing lands when the target has been told, or its operation has failed
 *   there     who is told has all
 *   progress  a failure costs one attempt
 *   the end   when nothing can happen any more, all links that are not lost for good are up, and the target was told
 *
 * Each BROKEN_* macro takes one rule away; each must be found out:
 *   BROKEN_WAIT      T is told when the newest copies are there
 *   BROKEN_EVIDENCE  the local completion counts as evidence, as if iWARP were IB
 *   BROKEN_LINK      link 0's HELLO counts as news of the other links
 *   BROKEN_REAP      HELLO is said before the old end is reaped
 *   BROKEN_ANSWER    REAPED is not said: only HELLO tells
 *   BROKEN_UNSURE    a part is posted again though T may have been told of it
 *   BROKEN_AGAIN     a copy that went over link 0 is not posted again when that was lost before the message
 *   BROKEN_CLAIM     who hears REAPED does not look at claims; and writes do not wait for HELLO (either alone is harmless)
 *   BROKEN_DOWN      a conn goes down when link 0 is reaped
 */
#ifndef LINKS
#define LINKS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef OPENER
#define OPENER I
#endif
#define ACCEPTOR (1 - OPENER)
#define P	 2
#define E	 (1 + FAULTS) /* epochs */

#define I 0
#define T 1

/* Of an end, but for a claim. */
#define IDLE	0
#define OPENING 1
#define HELLO	2 /* the opener has sent it */
#define UP	3

#define S(p, l)	 ((p) * LINKS + (l))
#define AT(l, e) ((l) * E + (e) - 1)

byte cur[2 * LINKS]; /* epoch of the end, 0: there is none */
byte st[2 * LINKS];
byte claim[LINKS]; /* the acceptor's: its epoch */
byte used[LINKS];
byte seen[LINKS];
bool gone[LINKS]; /* for good */

/* What is on its way, by epoch. */
bool rq[LINKS * E];	   /* REQUEST */
byte from_opener[LINKS * E]; /* HELLO: 1, and 1 more if T has been told */
byte from_acceptor[LINKS * E];
byte copies[LINKS * E];	 /* a bit for each part */
byte behind[LINKS * E];	 /* the READ behind it */
byte answers[LINKS * E];
bool i_reaped[LINKS * E]; /* REAPED of I's */
bool t_reaped[LINKS * E];
bool message[E], ack[E]; /* on link 0 */

byte on[P];	   /* 1 + the link of the newest copy; 0: to be posted */
bool evident[P];
byte grave[LINKS]; /* the newest epoch with a lost copy */
byte dead[LINKS];  /* T's end of that is dead */
bool telling;
bool unsure; /* told on a link 0 that was lost */
bool done;

bool restarted;
bool over;	/* T's operations have failed */
bool told;
bool landed[P]; /* ghost */
byte faults;
bool may_restart;

/* What a step needs while it lasts; not part of the state. */
hidden byte c, x;

#ifdef BROKEN_REAP
byte zombie[LINKS]; /* T's old end */
#define IS_ZOMBIE(p, l, e) ((p) == T && zombie[l] == (e))
#else
#define IS_ZOMBIE(p, l, e) 0
#endif
#define HAS(p, l, e) (cur[S(p, l)] == e || (p) == ACCEPTOR && claim[l] == e || IS_ZOMBIE(p, l, e))
#define BIT(part)    (1 << (part))
#define MAX(a, b)    ((a) > (b) -> (a) : (b))

/* I's end is lost, and with it what is not evident. */
inline bury(l)
{
	x = 0;
	do
	:: x < P && on[x] == 1 + l && !evident[x] ->
		grave[l] = cur[S(I, l)];
#ifdef BROKEN_AGAIN
		on[x] = (l == 0 -> on[x] : 0);
#else
		on[x] = 0;
#endif
		x++
	:: x < P && !(on[x] == 1 + l && !evident[x]) -> x++
	:: x == P -> break
	od;
	x = 0;
#ifdef BROKEN_UNSURE
	telling = (l == 0 -> 0 : telling)
#else
	unsure = (l == 0 && telling -> 1 : unsure)
#endif
}

/* Nothing of that epoch comes to p any more. */
inline dry(p, l, e)
{
	if
	:: p == OPENER -> from_acceptor[AT(l, e)] = 0
	:: else -> from_opener[AT(l, e)] = 0
	fi;
	if
	:: p == T ->
		copies[AT(l, e)] = 0;
		behind[AT(l, e)] = 0;
		message[e - 1] = (l == 0 -> 0 : message[e - 1])
	:: else ->
		answers[AT(l, e)] = 0;
		ack[e - 1] = (l == 0 -> 0 : ack[e - 1])
	fi
}

/* To error, and reaped; which is said, unless it never was a link. */
inline reap(p, l)
{
	if
	:: cur[S(p, l)] != 0 ->
		dry(p, l, cur[S(p, l)]);
		if
		:: p == I -> bury(l)
		:: else
		fi;
		if
#ifndef BROKEN_ANSWER
		:: l > 0 && st[S(p, l)] >= HELLO && p == I -> i_reaped[AT(l, cur[S(p, l)])] = 1
		:: l > 0 && st[S(p, l)] >= HELLO && p == T -> t_reaped[AT(l, cur[S(p, l)])] = 1
#endif
		:: else
		fi;
		cur[S(p, l)] = 0;
		st[S(p, l)] = IDLE
	:: else
	fi
}

inline drop_claim(l)
{
	if
	:: claim[l] != 0 -> dry(ACCEPTOR, l, claim[l]); claim[l] = 0
	:: else
	fi
}

inline accept(l, e)
{
	rq[AT(l, e)] = 0;
	if
	:: e > seen[l] && e > claim[l] -> drop_claim(l); claim[l] = e
	:: else
	fi
}

#define COUNT(p) (1 + ((p) == T && told))

/* The other side's HELLO has come, c. */
inline proven(p, l)
{
	if
	:: p == I ->
#ifdef ONLY_ANSWERS
		dead[0] = (l == 0 -> cur[S(I, l)] - 1 : dead[0]);
#else
		dead[l] = MAX(dead[l], cur[S(I, l)] - 1);
#endif
#ifdef BROKEN_LINK
		dead[1] = (l == 0 -> grave[1] : dead[1]);
#endif
		done = ((l == 0 && c == 2) -> 1 : done);
		telling = ((l == 0 && unsure) -> 0 : telling);
		unsure = (l == 0 -> 0 : unsure)
	:: else
	fi;
	c = 0
}

/* The opener's HELLO makes the claim the link. */
inline take(l)
{
	c = from_opener[AT(l, claim[l])];
	from_opener[AT(l, claim[l])] = 0;
#ifdef BROKEN_REAP
	zombie[l] = cur[S(T, l)];
	cur[S(T, l)] = 0;
#endif
	reap(ACCEPTOR, l);
	cur[S(ACCEPTOR, l)] = claim[l];
	claim[l] = 0;
	seen[l] = cur[S(ACCEPTOR, l)];
	st[S(ACCEPTOR, l)] = UP;
	from_acceptor[AT(l, seen[l])] = (cur[S(OPENER, l)] == seen[l] -> COUNT(ACCEPTOR) : 0);
	proven(ACCEPTOR, l)
}

/* REAPED. */
inline hear(p, l, e)
{
	if
	:: cur[S(p, l)] != 0 && cur[S(p, l)] <= e -> reap(p, l)
	:: else
	fi;
#ifndef BROKEN_CLAIM
	if
	:: p == ACCEPTOR && claim[l] != 0 && claim[l] <= e -> drop_claim(l)
	:: else
	fi;
#endif
	if
	:: p == I -> dead[l] = MAX(dead[l], e)
	:: else -> t_reaped[AT(l, e)] = 1
	fi
}

#if defined(BROKEN_CLAIM) || defined(EARLY)
#define MAY_WRITE(l) (st[S(I, l)] >= HELLO)
#else
#define MAY_WRITE(l) (st[S(I, l)] == UP)
#endif

inline post(l, part)
{
	on[part] = 1 + l;
	if
	:: HAS(T, l, cur[S(I, l)]) ->
		copies[AT(l, cur[S(I, l)])] = copies[AT(l, cur[S(I, l)])] | BIT(part);
		behind[AT(l, cur[S(I, l)])] = (l == 0 -> 0 : behind[AT(l, cur[S(I, l)])] | BIT(part))
	:: else
	fi;
#ifdef BROKEN_EVIDENCE
	evident[part] = (l > 0)
#endif
}

/* The device's doing: it does not ask whether its end is a claim. */
inline land(l, e, part)
{
	assert(!told && !over); /* late */
	copies[AT(l, e)] = copies[AT(l, e)] & ~BIT(part);
	landed[part] = 1
}

inline answer(l, e, part)
{
	behind[AT(l, e)] = behind[AT(l, e)] & ~BIT(part);
	answers[AT(l, e)] = (HAS(I, l, e) -> answers[AT(l, e)] | BIT(part) : 0)
}

inline see(l, part)
{
	answers[AT(l, cur[S(I, l)])] = answers[AT(l, cur[S(I, l)])] & ~BIT(part);
	evident[part] = 1
}

/* All operations of the conn fail at T. */
inline down()
{
	reap(T, 0);
	drop_claim(0);
	c = 1;
	do
#ifndef BROKEN_DOWN
	:: c < LINKS -> reap(T, c); drop_claim(c); c++
#endif
	:: else -> break
	od;
	c = 0;
	over = 1
}

#define COPY(l, e, part)   (HAS(T, l, e) && copies[AT(l, e)] & BIT(part))
#define BEHIND(l, e, part) (HAS(T, l, e) && behind[AT(l, e)] & ~copies[AT(l, e)] & BIT(part))
#define ANSWER(l, part)	   (cur[S(I, l)] != 0 && answers[AT(l, cur[S(I, l)])] & BIT(part))

#define STEPS(e)                                                                                   \
	:: d_step { rq[AT(l, e)] && !over && !(restarted && ACCEPTOR == I) -> accept(l, e) }       \
	:: d_step { COPY(l, e, 0) -> land(l, e, 0) }                                               \
	:: d_step { COPY(l, e, 1) -> land(l, e, 1) }                                               \
	:: d_step { BEHIND(l, e, 0) -> answer(l, e, 0) }                                           \
	:: d_step { BEHIND(l, e, 1) -> answer(l, e, 1) }                                           \
	:: d_step { i_reaped[AT(l, e)] && !over -> i_reaped[AT(l, e)] = 0; hear(T, l, e) }         \
	:: d_step { t_reaped[AT(l, e)] && !restarted -> t_reaped[AT(l, e)] = 0; hear(I, l, e) }

proctype Link(byte l)
{
end:
	do
	:: d_step {
		st[S(OPENER, l)] == IDLE && !gone[l] && !over && !restarted ->
		used[l]++;
		assert(used[l] <= E); /* progress */
		cur[S(OPENER, l)] = used[l];
		st[S(OPENER, l)] = OPENING;
		rq[AT(l, used[l])] = 1
	   }
	/* REPLY */
	:: d_step {
		st[S(OPENER, l)] == OPENING && claim[l] == cur[S(OPENER, l)] ->
		st[S(OPENER, l)] = HELLO;
		from_opener[AT(l, claim[l])] = COUNT(OPENER)
	   }
	:: d_step { claim[l] != 0 && from_opener[AT(l, claim[l])] -> take(l) }
	:: d_step {
		st[S(OPENER, l)] == HELLO && from_acceptor[AT(l, cur[S(OPENER, l)])] ->
		c = from_acceptor[AT(l, cur[S(OPENER, l)])];
		from_acceptor[AT(l, cur[S(OPENER, l)])] = 0;
		st[S(OPENER, l)] = UP;
		proven(OPENER, l)
	   }
	STEPS(1)
	STEPS(2)
#if FAULTS > 1
	STEPS(3)
#endif
	:: d_step { ANSWER(l, 0) -> see(l, 0) }
	:: d_step { ANSWER(l, 1) -> see(l, 1) }
	:: d_step { MAY_WRITE(l) && !done && !unsure && on[0] == 0 -> post(l, 0) }
	:: d_step { MAY_WRITE(l) && !done && !unsure && on[1] == 0 -> post(l, 1) }

	/* An end fails. */
	:: d_step { faults > 0 && cur[S(I, l)] != 0 -> faults--; reap(I, l) }
	:: d_step { faults > 0 && cur[S(T, l)] != 0 -> faults--; reap(T, l) }
	:: d_step { faults > 0 && cur[S(I, l)] != 0 && l > 0 -> faults--; gone[l] = 1; reap(I, l) }

	/* The other end is gone, or an attempt will not be answered any more. */
	:: d_step { st[S(I, l)] >= HELLO && !HAS(T, l, cur[S(I, l)]) -> reap(I, l) }
	:: d_step { st[S(T, l)] >= HELLO && !HAS(I, l, cur[S(T, l)]) -> reap(T, l) }
	:: d_step {
		st[S(OPENER, l)] == OPENING && claim[l] != cur[S(OPENER, l)] &&
		(!rq[AT(l, cur[S(OPENER, l)])] || gone[l] || over) ->
		reap(OPENER, l)
	   }
	:: d_step { claim[l] != 0 && cur[S(OPENER, l)] != claim[l] -> drop_claim(l) }
	od
}

#ifdef BROKEN_WAIT
#define HAUNTS(l) 0
#else
#define HAUNTS(l) (grave[l] > dead[l])
#endif
#if LINKS > 2
#define HAUNTED (HAUNTS(0) || HAUNTS(1) || HAUNTS(2))
#else
#define HAUNTED (HAUNTS(0) || HAUNTS(1))
#endif
#define READY(part) (evident[part] || on[part] == 1)

proctype Operation()
{
end:
	do
	:: d_step {
		st[S(I, 0)] == UP && !telling && !done && READY(0) && READY(1) && !HAUNTED ->
		telling = 1;
		message[cur[S(I, 0)] - 1] = HAS(T, 0, cur[S(I, 0)])
	   }
	:: d_step {
		st[S(T, 0)] == UP && message[cur[S(T, 0)] - 1] && copies[AT(0, cur[S(T, 0)])] == 0 ->
		message[cur[S(T, 0)] - 1] = 0;
		assert(landed[0] && landed[1] && !told); /* there */
		told = 1;
		ack[cur[S(T, 0)] - 1] = (cur[S(I, 0)] == cur[S(T, 0)])
	   }
	:: d_step { cur[S(I, 0)] != 0 && ack[cur[S(I, 0)] - 1] -> ack[cur[S(I, 0)] - 1] = 0; done = 1 }

	/* T's time is up. */
	:: d_step { faults > 0 && !over && st[S(T, 0)] != UP -> faults--; down() }
	/* I is gone, and what it has handed to the network is not. T learns of it sooner or later. */
	:: d_step {
		may_restart && !over ->
		may_restart = 0;
		restarted = 1;
		c = 0;
		do
		:: c < LINKS ->
			if
			:: cur[S(I, c)] != 0 -> dry(I, c, cur[S(I, c)]); cur[S(I, c)] = 0; st[S(I, c)] = IDLE
			:: else
			fi;
			if
			:: ACCEPTOR == I && claim[c] != 0 -> drop_claim(c)
			:: else
			fi;
			c++
		:: c == LINKS -> break
		od;
		c = 0
	   }
	:: d_step { restarted && !over -> down() }
	od
}

#define STANDS(l) (gone[l] || st[S(I, l)] == UP && st[S(T, l)] == UP)

init
{
	atomic {
		select(faults : 0 .. FAULTS);
		select(may_restart : 0 .. 1);
		c = 0;
		do
		:: c < LINKS ->
			cur[S(I, c)] = 1;
			cur[S(T, c)] = 1;
			st[S(I, c)] = UP;
			st[S(T, c)] = UP;
			used[c] = 1;
			seen[c] = 1;
			c++
		:: c == LINKS -> break
		od;
		c = 0;
		run Link(0);
		run Link(1);
#if LINKS > 2
		run Link(2);
#endif
		run Operation()
	};
	timeout -> assert(over || STANDS(0) && STANDS(1) && STANDS(LINKS - 1) && done && told)
}

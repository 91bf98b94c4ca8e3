/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the benchmark programs share: two processes on two cores, a plan of rows to measure, and the
 * loop that measures them. A program supplies the calls of struct bench_ops.
 *
 * A row is measured in samples, and printed by the first process: their median, then the best.
 *
 *	lat BYTES US US     half of a round trip
 *	bw BYTES MB/S ...   a window of messages, then one of 8 bytes back
 *	rate BYTES M/S ...  the same, in millions of messages
 *
 * Both sides use one buffer for every message of a row, and the last message of each sample is
 * compared byte by byte outside the time that is measured.
 */
#ifndef RVCM_FABTESTS_BENCH_H
#define RVCM_FABTESTS_BENCH_H

#include <stddef.h>

#define BENCH_BYTES_MAX  ((size_t)4 << 20)
#define BENCH_WINDOW_MAX 64

/* Calls end the program with a message when something fails. bytes <= BENCH_BYTES_MAX. */
struct bench_ops {
	/* Connect with the other process. first: this is the process that prints. */
	void (*open)(int first);
	void (*send)(const void *buf, size_t bytes); /* returns when buf may be used again */
	void (*recv)(void *buf, size_t bytes);
	/* n messages from the same buffer, or into it: as many as possible at a time. */
	void (*stream)(const void *buf, size_t bytes, int n);
	void (*sink)(void *buf, size_t bytes, int n);
	void (*close)(void);
	void (*meet)(void); /* returns when both processes are there */
};

/* End this process, and thereby the other, with a message. */
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Die unless rc is 0 or more; what says which call it came from. */
void bench_ok(long rc, const char *what);

/*
 * Measure the rows that argv names (the plan's if it names none): "lat", "bw", "rate", for those of
 * the plan, or a kind and any size, "lat:8". BENCH_DIVIDE=N: each sample has 1/N of the messages it
 * has else. BENCH_SAMPLES=N: so many samples, not 15. Many short ones, of which the best counts,
 * are for where whatever else the machine does would spoil most of them.
 */
void bench_run(const struct bench_ops *ops, int first, int argc, char **argv);

/* -- pair.c: two processes on this machine -- */

/*
 * Fork, pin each process to a core of its own (BENCH_CORES=A,B; default 0,1), and bench_run.
 * Returns the program's exit status.
 */
int bench_main(const struct bench_ops *ops, int argc, char **argv);

/* A poll has found nothing: gives the other process its turn, if both have one core (A,A). */
void bench_idle(void);

/* Swap a few bytes with the other process, out of band. */
void bench_swap(const void *mine, void *theirs, size_t bytes);

/* A struct bench_ops' meet. */
void bench_meet(void);

#endif

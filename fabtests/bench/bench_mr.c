/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a hit in the registration cache costs, over a device whose registrations cost nothing.
 *
 *   bench_mr [-r rounds]
 *
 * Each thread gets regions in an order that no cache of the CPU's can guess, 64 at a time, with
 * their registrations, and puts them again; every other time it asks for a part from the middle. So
 * "get" is what a transfer waits for before it can be posted, and "put" what its end costs.
 * "apart": each thread has regions of its own, as threads with buffers of their own do; "one": all
 * threads get the same one. The best of the rounds counts, since what disturbs a round only makes
 * it longer.
 *
 * A line is: regions, threads, apart or one, nanoseconds for a get, nanoseconds for a put. With
 * more threads than CPUs a thread's time includes the others' turns; it is divided by how many
 * there are to a CPU. The last line compares with the goal, and the exit status is 1 if it is
 * missed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mr/monitor.h"
#include "mr/mr.h"

#define BATCH       64u
#define BATCHES     2000u
#define ORDER       (256u * BATCH) /* after which it begins again */
#define THREADS_MAX 4u
#define REGION      4096u
#define STRIDE      8192u
#define GOAL_NS     60.0
#define GOAL_COUNT  10000u

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **mr)
{
	*mr = calloc(1, sizeof(**mr));
	if (!*mr)
		return -ENOMEM;
	(*mr)->dev = dev;
	(*mr)->addr = attr->addr;
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *mr)
{
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

struct bench {
	struct rvcm_mr_domain *domain;
	char *memory;
	uint32_t regions;
	uint32_t threads;
	bool one;
	pthread_barrier_t start;
};

struct worker {
	struct bench *bench;
	pthread_t thread;
	uint32_t id;
	uint16_t *order;
	double get_ns, put_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "bench_mr: %s: %s\n", what, strerror(rc < 0 ? -rc : rc));
	exit(2);
}

/* skip: bytes left out at either end. */
static void get(struct bench *b, uint32_t region, size_t skip, struct rvcm_mr **mr)
{
	struct rvcm_dev_mr *dev_mr;

	must(rvcm_mr_get(b->domain, b->memory + (size_t)region * STRIDE + skip, REGION - 2 * skip,
			 RVCM_DEV_ACCESS_LOCAL_WRITE, mr),
	     "rvcm_mr_get");
	must(rvcm_mr_dev(*mr, 0, &dev_mr), "rvcm_mr_dev");
}

/* Regions of its own, if there are enough to go round; any order is as good as another. */
static void shuffle(struct worker *w)
{
	const struct bench *b = w->bench;
	uint32_t share = b->regions / b->threads, random = 2463534242u + w->id;

	for (uint32_t i = 0; i < ORDER; i++) {
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		w->order[i] = (uint16_t)(share == 0 || b->one ? 0 : w->id * share + random % share);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rvcm_mr *mrs[BATCH];
	uint64_t get_ns = 0, put_ns = 0, t0, t1, t2;

	shuffle(w);
	pthread_barrier_wait(&w->bench->start);
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		const uint16_t *order = w->order + (size_t)batch * BATCH % ORDER;

		t0 = now_ns();
		for (uint32_t i = 0; i < BATCH; i++)
			get(w->bench, order[i], i % 2 * 100, &mrs[i]);
		t1 = now_ns();
		for (uint32_t i = 0; i < BATCH; i++)
			rvcm_mr_put(mrs[i]);
		t2 = now_ns();
		get_ns += t1 - t0;
		put_ns += t2 - t1;
	}
	w->get_ns = (double)get_ns / (BATCH * BATCHES);
	w->put_ns = (double)put_ns / (BATCH * BATCHES);
	return NULL;
}

/* The slowest thread's times. */
static void round_of(struct bench *b, double *get_ns, double *put_ns)
{
	static uint16_t orders[THREADS_MAX][ORDER];
	struct worker workers[THREADS_MAX];
	double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
	double turns = b->threads > cpus ? b->threads / cpus : 1;

	*get_ns = *put_ns = 0;
	must(pthread_barrier_init(&b->start, NULL, b->threads), "barrier");
	for (uint32_t i = 0; i < b->threads; i++) {
		workers[i] = (struct worker) { .bench = b, .id = i, .order = orders[i] };
		must(pthread_create(&workers[i].thread, NULL, work, &workers[i]), "thread");
	}
	for (uint32_t i = 0; i < b->threads; i++) {
		must(pthread_join(workers[i].thread, NULL), "join");
		*get_ns = workers[i].get_ns > *get_ns ? workers[i].get_ns : *get_ns;
		*put_ns = workers[i].put_ns > *put_ns ? workers[i].put_ns : *put_ns;
	}
	*get_ns /= turns;
	*put_ns /= turns;
	pthread_barrier_destroy(&b->start);
}

static double measure(struct bench *b, uint32_t threads, bool one, uint32_t rounds)
{
	double best_get = 1e9, best_put = 1e9, get_ns, put_ns;

	b->threads = threads;
	b->one = one;
	for (uint32_t i = 0; i < rounds; i++) {
		round_of(b, &get_ns, &put_ns);
		best_get = get_ns < best_get ? get_ns : best_get;
		best_put = put_ns < best_put ? put_ns : best_put;
	}
	printf("%7u regions %u threads %-5s get %6.1f ns  put %6.1f ns\n", b->regions, threads,
	       one ? "one" : "apart", best_get, best_put);
	return best_get;
}

static void expect_hits(struct bench *b)
{
	struct rvcm_mr_stats stats;

	rvcm_mr_stats(b->domain, &stats);
	if (stats.miss == b->regions && stats.full == 0 && stats.failed == 0)
		return;
	fprintf(stderr, "bench_mr: these were no hits\n");
	exit(2);
}

static double measure_all(struct rvcm_monitor *monitor, char *memory, uint32_t regions,
			  uint32_t rounds)
{
	struct rvcm_dev dev = { .ops = &ops }, *devs[] = { &dev };
	struct rvcm_mr_attr attr = {
		.monitor = monitor,
		.cache_bytes = RVCM_MR_CACHE_BYTES_MAX,
		.cache_count = regions,
	};
	struct bench b = { .memory = memory, .regions = regions };
	double first;

	must(rvcm_mr_domain_open(devs, 1, &attr, &b.domain), "rvcm_mr_domain_open");
	for (uint32_t i = 0; i < regions; i++) {
		struct rvcm_mr *mr;

		get(&b, i, 0, &mr);
		rvcm_mr_put(mr);
	}
	first = measure(&b, 1, false, rounds);
	for (uint32_t threads = 2; threads <= THREADS_MAX; threads *= 2) {
		measure(&b, threads, false, rounds);
		measure(&b, threads, true, rounds);
	}
	expect_hits(&b);
	rvcm_mr_domain_close(b.domain);
	return first;
}

static int watch_nothing(struct rvcm_monitor *monitor, uintptr_t start, size_t length)
{
	(void)monitor;
	(void)start;
	(void)length;
	return 0;
}

int main(int argc, char **argv)
{
	static struct rvcm_monitor silent;
	struct rvcm_monitor *monitor;
	uint32_t rounds = 5;
	double ns = 0;
	char *memory;
	int opt;

	while ((opt = getopt(argc, argv, "r:")) != -1) {
		if (opt != 'r' || atoi(optarg) < 1) {
			fprintf(stderr, "usage: bench_mr [-r rounds]\n");
			return 2;
		}
		rounds = (uint32_t)atoi(optarg);
	}
	memory = mmap(NULL, (size_t)GOAL_COUNT * STRIDE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		must(errno, "mmap");
	rvcm_monitor_init(&silent, watch_nothing);
	if (rvcm_uffd_get(&monitor)) {
		printf("no userfaultfd here: a monitor that never has anything to tell\n");
		monitor = &silent;
	}
	for (uint32_t regions = 1; regions <= GOAL_COUNT; regions *= 10)
		ns = measure_all(monitor, memory, regions, rounds);
	printf("a hit among %u regions: %.1f ns; the goal is %.0f\n", GOAL_COUNT, ns, GOAL_NS);
	if (monitor != &silent)
		rvcm_uffd_put(monitor);
	return ns > GOAL_NS;
}

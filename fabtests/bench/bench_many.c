/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many endpoints in one process, each talking to some others: how fast they connect, what they cost
 * while idle, how fast they close. Public libfabric calls only.
 *
 *   bench_many [-e endpoints] [-p peers] [-d domains] [-s bytes] [-r rounds]
 *
 * Endpoints stand in a ring, and each exchanges a message with its peers/2 neighbours on either
 * side. They are dealt out to the domains in turn, so that with two domains or more neighbours are
 * in different ones: a provider may let the endpoints of a domain share, or short-cut, connections.
 *
 * Closing an endpoint waits for its peers to notice, and progress is manual: so each domain's
 * endpoints are closed by a thread of their own.
 *
 * Prints one "name value unit" a line. A link end is one endpoint's half of a connection, so there
 * are endpoints * peers of them. Memory is what malloc has given out (mallinfo2), and beside it the
 * growth of the resident set; the kernel's own memory for sockets is in neither.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define NAME_MAX_BYTES 64
#define CQ_BATCH       64
#define IDLE_POLLS     5000
#define TIMEOUT_S      600.0

struct bench;

struct domain {
	struct bench *bench;
	struct fid_domain *fid;
	struct fid_cq *cq;
	struct fid_av *av;
	uint32_t index;
	pthread_t closer;
};

struct endpoint {
	struct fid_ep *fid;
	struct domain *domain;
	uint8_t name[NAME_MAX_BYTES];
	size_t name_bytes;
};

struct memory {
	double malloced;
	double resident;
};

struct bench {
	uint32_t n_eps, n_peers, n_domains, rounds;
	size_t bytes;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct domain *domains;
	struct endpoint *eps;
	struct fi_context *contexts; /* one for each message on its way: sent, then received */
	uint8_t *buf;                /* what is sent, and a place for each message received */
	uint64_t sent, received;
	rlim_t files;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const struct bench *b, const char *what, long rc)
{
	fprintf(stderr, "bench_many: %s: %s\n", what, fi_strerror((int)-rc));
	if (rc == -EMFILE || rc == -ENFILE)
		fprintf(stderr,
			"bench_many: the limit is RLIMIT_NOFILE (ulimit -n), whose hard limit is "
			"%llu\n",
			(unsigned long long)b->files);
	exit(1);
}

static void check(const struct bench *b, const char *what, long rc)
{
	if (rc < 0)
		fail(b, what, rc);
}

static struct memory memory_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct memory memory = { .malloced = (double)(info.uordblks + info.hblkhd) };
	unsigned long long total, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	memory.resident = (double)resident * (double)sysconf(_SC_PAGESIZE);
	return memory;
}

static void print_memory(const char *name, struct memory from, struct memory to, double n)
{
	printf("%s_malloc %.0f bytes\n", name, (to.malloced - from.malloced) / n);
	printf("%s_rss %.0f bytes\n", name, (to.resident - from.resident) / n);
}

/* -- opening ------------------------------------------------------------------------------- */

static void raise_files(struct bench *b)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail(b, "getrlimit", -errno);
	limit.rlim_cur = limit.rlim_max;
	b->files = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail(b, "setrlimit", -errno);
}

static void find_provider(struct bench *b)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		fail(b, "fi_allocinfo", -ENOMEM);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	check(b, "fi_getinfo", fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &b->info));
	fi_freeinfo(hints);
	printf("provider %s %s\n", b->info->fabric_attr->prov_name, b->info->domain_attr->name);
	check(b, "fi_fabric", fi_fabric(b->info->fabric_attr, &b->fabric, NULL));
}

static void open_domain(struct bench *b, struct domain *d)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .size = (size_t)(b->n_eps / b->n_domains + 1) * b->n_peers * 2 };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = b->n_eps };

	d->bench = b;
	d->index = (uint32_t)(d - b->domains);
	check(b, "fi_domain", fi_domain(b->fabric, b->info, &d->fid, NULL));
	check(b, "fi_cq_open", fi_cq_open(d->fid, &cq, &d->cq, NULL));
	check(b, "fi_av_open", fi_av_open(d->fid, &av, &d->av, NULL));
}

static void open_endpoint(struct bench *b, uint32_t i)
{
	struct endpoint *ep = &b->eps[i];

	ep->domain = &b->domains[i % b->n_domains];
	ep->name_bytes = sizeof(ep->name);
	check(b, "fi_endpoint", fi_endpoint(ep->domain->fid, b->info, &ep->fid, NULL));
	check(b, "fi_ep_bind", fi_ep_bind(ep->fid, &ep->domain->cq->fid, FI_TRANSMIT | FI_RECV));
	check(b, "fi_ep_bind", fi_ep_bind(ep->fid, &ep->domain->av->fid, 0));
	check(b, "fi_enable", fi_enable(ep->fid));
	check(b, "fi_getname", fi_getname(&ep->fid->fid, ep->name, &ep->name_bytes));
}

/* All names in every address vector, in the same order: a number is the same everywhere. */
static void insert_names(struct bench *b, const struct domain *d)
{
	for (uint32_t i = 0; i < b->n_eps; i++) {
		fi_addr_t number;

		if (fi_av_insert(d->av, b->eps[i].name, 1, &number, 0, NULL) != 1 || number != i)
			fail(b, "fi_av_insert", -FI_EINVAL);
	}
}

static void open_all(struct bench *b)
{
	struct memory start = memory_now(), end;
	double t = now_s();

	for (uint32_t i = 0; i < b->n_domains; i++)
		open_domain(b, &b->domains[i]);
	end = memory_now();
	print_memory("domain", start, end, b->n_domains);
	start = end;
	for (uint32_t i = 0; i < b->n_eps; i++)
		open_endpoint(b, i);
	end = memory_now();
	printf("open %.2f s\n", now_s() - t);
	print_memory("endpoint_unconnected", start, end, b->n_eps);
	for (uint32_t i = 0; i < b->n_domains; i++)
		insert_names(b, &b->domains[i]);
}

/* -- exchanging ---------------------------------------------------------------------------- */

static uint32_t neighbour(const struct bench *b, uint32_t i, uint32_t peer)
{
	uint32_t half = b->n_peers / 2;
	uint32_t step = peer < half ? peer + 1 : b->n_eps - (peer - half + 1);

	return (i + step) % b->n_eps;
}

static void poll_domain(struct bench *b, const struct domain *d)
{
	struct fi_cq_tagged_entry entries[CQ_BATCH];
	ssize_t n = fi_cq_read(d->cq, entries, CQ_BATCH);

	if (n == -FI_EAGAIN)
		return;
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry e = { 0 };
		char text[200] = "";

		n = fi_cq_readerr(d->cq, &e, 0);
		fi_cq_strerror(d->cq, e.prov_errno, e.err_data, text, sizeof(text));
		fprintf(stderr, "bench_many: %s\n", text);
		fail(b, "completion", -e.err);
	}
	check(b, "fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++) {
		b->sent += !!(entries[i].flags & FI_SEND);
		b->received += !!(entries[i].flags & FI_RECV);
	}
}

static void poll_all(struct bench *b)
{
	for (uint32_t i = 0; i < b->n_domains; i++)
		poll_domain(b, &b->domains[i]);
}

/* Endpoint i: a receive from each peer, and a message to each. The tag is the sender's number. */
static void post(struct bench *b, uint32_t i)
{
	uint64_t total = (uint64_t)b->n_eps * b->n_peers;

	for (uint32_t p = 0; p < b->n_peers; p++) {
		uint64_t m = (uint64_t)i * b->n_peers + p;
		uint32_t peer = neighbour(b, i, p);
		ssize_t rc;

		check(b, "fi_trecv",
		      fi_trecv(b->eps[i].fid, b->buf + (m + 1) * b->bytes, b->bytes, NULL,
			       FI_ADDR_UNSPEC, peer, 0, &b->contexts[total + m]));
		while ((rc = fi_tsend(b->eps[i].fid, b->buf, b->bytes, NULL, peer, i,
				      &b->contexts[m])) == -FI_EAGAIN)
			poll_all(b);
		check(b, "fi_tsend", rc);
	}
}

static double exchange(struct bench *b)
{
	uint64_t total = (uint64_t)b->n_eps * b->n_peers;
	double start = now_s();

	b->sent = 0;
	b->received = 0;
	for (uint32_t i = 0; i < b->n_eps; i++)
		post(b, i);
	while (b->sent < total || b->received < total) {
		poll_all(b);
		if (now_s() - start > TIMEOUT_S)
			fail(b, "exchange", -ETIMEDOUT);
	}
	return now_s() - start;
}

/* Nothing happens any more: what is kept now is what being connected costs. */
static void poll_idle(struct bench *b)
{
	for (int i = 0; i < IDLE_POLLS; i++)
		for (uint32_t d = 0; d < b->n_domains; d++)
			poll_domain(b, &b->domains[d]);
}

static void run(struct bench *b)
{
	double ends = (double)b->n_eps * b->n_peers;
	double best = TIMEOUT_S, t;
	struct memory before = memory_now();

	t = exchange(b);
	printf("connect %.2f s\n", t);
	printf("connects_per_s %.0f 1/s\n", ends / 2 / t);
	for (uint32_t i = 0; i < b->rounds; i++) {
		t = exchange(b);
		best = t < best ? t : best;
	}
	if (b->rounds)
		printf("exchange %.3f us per message\n", best / ends * 1e6);
	poll_idle(b);
	t = now_s();
	poll_idle(b);
	printf("idle_poll %.3f us\n", (now_s() - t) / IDLE_POLLS / b->n_domains * 1e6);
	print_memory("peer", before, memory_now(), ends);
}

static void *close_endpoints(void *arg)
{
	struct domain *d = arg;
	struct bench *b = d->bench;

	for (uint32_t i = d->index; i < b->n_eps; i += b->n_domains)
		check(b, "fi_close", fi_close(&b->eps[i].fid->fid));
	return NULL;
}

static void close_all(struct bench *b)
{
	double start = now_s();

	for (uint32_t i = 0; i < b->n_domains; i++)
		check(b, "pthread_create",
		      -pthread_create(&b->domains[i].closer, NULL, close_endpoints,
				      &b->domains[i]));
	for (uint32_t i = 0; i < b->n_domains; i++)
		pthread_join(b->domains[i].closer, NULL);
	for (uint32_t i = 0; i < b->n_domains; i++) {
		check(b, "fi_close", fi_close(&b->domains[i].av->fid));
		check(b, "fi_close", fi_close(&b->domains[i].cq->fid));
		check(b, "fi_close", fi_close(&b->domains[i].fid->fid));
	}
	check(b, "fi_close", fi_close(&b->fabric->fid));
	printf("close %.2f s\n", now_s() - start);
	fi_freeinfo(b->info);
}

/* -- arguments ----------------------------------------------------------------------------- */

static void usage(void)
{
	fprintf(stderr, "usage: bench_many [-e endpoints] [-p peers, even] [-d domains] [-s bytes] "
			"[-r rounds]\n");
	exit(2);
}

static void arguments(struct bench *b, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "e:p:d:s:r:")) != -1) {
		unsigned long n = optarg ? strtoul(optarg, NULL, 0) : 0;

		if (c == 'e')
			b->n_eps = (uint32_t)n;
		else if (c == 'p')
			b->n_peers = (uint32_t)n;
		else if (c == 'd')
			b->n_domains = (uint32_t)n;
		else if (c == 's')
			b->bytes = n;
		else if (c == 'r')
			b->rounds = (uint32_t)n;
		else
			usage();
	}
	if (!b->n_peers || b->n_peers % 2 || b->n_eps <= b->n_peers || !b->n_domains ||
	    b->n_domains > b->n_eps || optind != argc)
		usage();
}

int main(int argc, char **argv)
{
	struct bench b = { .n_eps = 1000, .n_peers = 8, .n_domains = 1, .rounds = 5, .bytes = 64 };
	size_t messages;

	arguments(&b, argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	raise_files(&b);
	messages = (size_t)b.n_eps * b.n_peers;
	b.domains = calloc(b.n_domains, sizeof(*b.domains));
	b.eps = calloc(b.n_eps, sizeof(*b.eps));
	b.contexts = calloc(messages * 2, sizeof(*b.contexts));
	b.buf = malloc((messages + 1) * b.bytes + 1);
	if (!b.domains || !b.eps || !b.contexts || !b.buf)
		fail(&b, "memory", -ENOMEM);
	/* Resident before anything is measured. */
	memset(b.buf, 1, (messages + 1) * b.bytes + 1);
	memset(b.contexts, 1, messages * 2 * sizeof(*b.contexts));
	printf("endpoints %u\npeers %u\ndomains %u\n", b.n_eps, b.n_peers, b.n_domains);
	find_provider(&b);
	open_all(&b);
	run(&b);
	close_all(&b);
	free(b.buf);
	free(b.contexts);
	free(b.eps);
	free(b.domains);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory as the counters show it, on a device on which it is kept only because we ask
 * for that (FI_RVCM_MR_CACHE_MONITOR).
 */
#include "conf/conf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)

static const struct conf_options plain;

static char stats[64]; /* FI_RVCM_STATS */

/* A counter of this process's, as of the last endpoint that was closed. */
static unsigned long counter(const char *name)
{
	char path[96], line[128], word[64];
	unsigned long value, found = ~0ul;
	FILE *file;

	snprintf(path, sizeof(path), "%s.%d", stats, (int)getpid());
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %lu", word, &value) == 2 && strcmp(word, name) == 0)
			found = value;
	fclose(file);
	assert_int_not_equal(found, ~0ul);
	return found;
}

static uint8_t *map(void)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void exchange(struct conf_pair *pair, uint8_t *out, uint8_t *in)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;

	conf_fill(out, BYTES, 1);
	CONF_RETRY(pair, fi_trecv(pair->b.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(pair, fi_tsend(pair->a.ep, out, BYTES, NULL, pair->to_b, 1, &sent));
	conf_wait(pair, pair->b.rxcq, &entry, NULL);
	conf_wait(pair, pair->a.txcq, &entry, NULL);
	conf_check(in, BYTES, 1);
}

/* The counters of a process add up over its tests: what they were before. */
struct before {
	unsigned long hit, miss, remove, full, evict;
};

static struct before begin(const char *monitor)
{
	struct conf_node node;

	setenv("FI_RVCM_MR_CACHE_MONITOR", monitor, 1);
	conf_open(&node, &plain);
	conf_close(&node);
	return (struct before) { counter("mr_hit"), counter("mr_miss"), counter("mr_remove"),
				 counter("mr_full"), counter("mr_evict") };
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%31s", name) == 1)
			n += strcmp(name, "rvcm-memory") == 0;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

static void what_is_used_again_is_a_hit(void **state)
{
	uint8_t *out = map(), *in = map();
	struct conf_pair pair;
	struct before before;

	(void)state;
	before = begin("userfaultfd");
	conf_pair_open(&pair, &plain);
	for (int i = 0; i < 10; i++)
		exchange(&pair, out, in);
	conf_pair_close(&pair);
	assert_int_equal(counter("mr_miss") - before.miss, 2);
	assert_int_equal(counter("mr_hit") - before.hit, 18);
	assert_int_equal(counter("mr_remove") - before.remove, 2);
	assert_int_equal(counter("mr_count"), 0);
	munmap(out, BYTES);
	munmap(in, BYTES);
}

/* What the application registers is the first user, and the messages are hits. */
static void a_region_serves_messages(void **state)
{
	uint8_t *out = map(), *in = map();
	struct conf_pair pair;
	struct before before;
	struct fid_mr *mr;

	(void)state;
	before = begin("userfaultfd");
	conf_pair_open(&pair, &plain);
	conf_ok(fi_mr_reg(pair.a.domain, out, BYTES, FI_SEND, 0, 0, 0, &mr, NULL));
	exchange(&pair, out, in);
	conf_ok(fi_close(&mr->fid));
	conf_pair_close(&pair);
	assert_int_equal(counter("mr_miss") - before.miss, 2);
	assert_int_equal(counter("mr_hit") - before.hit, 1);
	munmap(out, BYTES);
	munmap(in, BYTES);
}

/* It is held, so that nobody takes its place, though there is room for one only. */
static void a_region_is_not_evicted(void **state)
{
	uint8_t *out = map(), *other = map(), *in = map();
	struct conf_pair pair;
	struct before before;
	struct fid_mr *mr;

	(void)state;
	before = begin("userfaultfd");
	setenv("FI_RVCM_MR_CACHE_COUNT", "1", 1);
	conf_pair_open(&pair, &plain);
	unsetenv("FI_RVCM_MR_CACHE_COUNT");
	conf_ok(fi_mr_reg(pair.a.domain, out, BYTES, FI_SEND, 0, 0, 0, &mr, NULL));
	exchange(&pair, other, in);
	exchange(&pair, out, in);
	conf_ok(fi_close(&mr->fid));
	exchange(&pair, other, in);
	conf_pair_close(&pair);
	assert_int_equal(counter("mr_full") - before.full, 1);
	assert_int_equal(counter("mr_evict") - before.evict, 1);
	assert_int_equal(counter("mr_miss") - before.miss, 3);
	assert_int_equal(counter("mr_hit") - before.hit, 3);
	munmap(out, BYTES);
	munmap(other, BYTES);
	munmap(in, BYTES);
}

/* Without another message: endpoints that are opened and closed publish the counters. */
static void what_has_gone_is_let_go_by_itself(void **state)
{
	uint64_t deadline = conf_deadline();
	uint8_t *out = map(), *in = map();
	struct conf_pair pair;
	struct before before;

	(void)state;
	before = begin("userfaultfd");
	conf_pair_open(&pair, &plain);
	exchange(&pair, out, in);
	munmap(out, BYTES);
	do {
		struct fid_ep *ep;

		conf_not_late(deadline);
		conf_ok(fi_endpoint(pair.a.domain, pair.a.info, &ep, NULL));
		conf_ok(fi_ep_bind(ep, &pair.a.av->fid, 0));
		conf_ok(fi_ep_bind(ep, &pair.a.txcq->fid, FI_TRANSMIT | FI_RECV));
		conf_ok(fi_enable(ep));
		conf_ok(fi_close(&ep->fid));
	} while (counter("mr_remove") == before.remove);
	conf_pair_close(&pair);
	munmap(in, BYTES);
}

static void it_can_be_switched_off(void **state)
{
	static const char *const off[][2] = {
		{ "FI_RVCM_MR_CACHE_MONITOR", "none" },
		{ "FI_RVCM_MR_CACHE_MONITOR", "auto" }, /* registering costs nothing here */
		{ "FI_RVCM_MR_CACHE_SIZE", "0" },
		{ "FI_RVCM_MR_CACHE_COUNT", "0" },
	};
	uint8_t *out = map(), *in = map();

	(void)state;
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		struct before before = begin("userfaultfd");
		struct conf_pair pair;

		setenv(off[i][0], off[i][1], 1);
		conf_pair_open(&pair, &plain);
		assert_int_equal(threads(), 0);
		exchange(&pair, out, in);
		exchange(&pair, out, in);
		conf_pair_close(&pair);
		unsetenv(off[i][0]);
		assert_int_equal(counter("mr_hit"), before.hit);
		assert_int_equal(counter("mr_miss"), before.miss);
	}
	munmap(out, BYTES);
	munmap(in, BYTES);
}

/* One for all domains, and none when they are closed. */
static void the_monitor_comes_and_goes_with_domains(void **state)
{
	struct conf_node nodes[2];

	(void)state;
	begin("userfaultfd");
	assert_int_equal(threads(), 0);
	conf_open(&nodes[0], &plain);
	conf_open(&nodes[1], &plain);
	assert_int_equal(threads(), 1);
	conf_close(&nodes[0]);
	assert_int_equal(threads(), 1);
	conf_close(&nodes[1]);
	assert_int_equal(threads(), 0);
}

/* -- what is not there ---------------------------------------------------------------------- */

static void expect_error(struct conf_pair *pair, struct fid_cq *cq, const void *context, int err)
{
	struct fi_cq_err_entry entry;

	conf_wait_error(pair, cq, &entry);
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.err, err);
}

/* The receive fails, and whoever sent is told; the connection carries on. */
static void who_receives_into_what_may_only_be_read(void **state)
{
	uint8_t *out = map(), *in = map(), *fixed = map();
	struct fi_context2 sent, received;
	struct conf_pair pair;

	(void)state;
	assert_int_equal(mprotect(fixed, BYTES, PROT_READ), 0);
	conf_pair_open(&pair, &plain);
	exchange(&pair, out, in);
	CONF_RETRY(&pair, fi_trecv(pair.b.ep, fixed, BYTES, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, BYTES, NULL, pair.to_b, 1, &sent));
	expect_error(&pair, pair.b.rxcq, &received, FI_EFAULT);
	expect_error(&pair, pair.a.txcq, &sent, FI_EREMOTEIO);
	exchange(&pair, out, in);
	conf_pair_close(&pair);
	munmap(fixed, BYTES);
	munmap(out, BYTES);
	munmap(in, BYTES);
}

static void who_sends_what_may_not_be_read(void **state)
{
	uint8_t *out = map(), *in = map(), *none = map();
	struct fi_context2 sent;
	struct conf_pair pair;

	(void)state;
	assert_int_equal(mprotect(none, BYTES, PROT_NONE), 0);
	conf_pair_open(&pair, &plain);
	exchange(&pair, out, in);
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, none, BYTES, NULL, pair.to_b, 1, &sent));
	expect_error(&pair, pair.a.txcq, &sent, FI_EFAULT);
	exchange(&pair, out, in);
	conf_pair_close(&pair);
	munmap(none, BYTES);
	munmap(out, BYTES);
	munmap(in, BYTES);
}

static int setup(void **state)
{
	(void)state;
	snprintf(stats, sizeof(stats), "/tmp/ofi_memory.%d", (int)getpid());
	return setenv("FI_RVCM_STATS", stats, 1);
}

static int teardown(void **state)
{
	char path[96];

	(void)state;
	snprintf(path, sizeof(path), "%s.%d", stats, (int)getpid());
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_used_again_is_a_hit),
		cmocka_unit_test(a_region_serves_messages),
		cmocka_unit_test(a_region_is_not_evicted),
		cmocka_unit_test(what_has_gone_is_let_go_by_itself),
		cmocka_unit_test(it_can_be_switched_off),
		cmocka_unit_test(the_monitor_comes_and_goes_with_domains),
		cmocka_unit_test(who_receives_into_what_may_only_be_read),
		cmocka_unit_test(who_sends_what_may_not_be_read),
	};

	conf_provider();
	return cmocka_run_group_tests_name("memory", tests, setup, teardown);
}

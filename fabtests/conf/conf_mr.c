/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_mr(3), as far as it is about messages: regions, their keys and descriptors, and the modes. */
#include "conf/conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define LONG_BYTES ((size_t)2 << 20)
#define LOCAL      (FI_SEND | FI_RECV)

/* enum fi_mr_mode's old values, which later headers deprecate. */
#define BASIC    1
#define SCALABLE 2

static const struct conf_options plain;

/* The application chooses keys. */
static const struct conf_options choosing = {
	.mr_mode_given = true,
	.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
};

static struct fid_mr *reg(struct conf_node *node, const void *buf, size_t len, uint64_t key)
{
	struct fid_mr *mr = NULL;

	conf_ok(fi_mr_reg(node->domain, buf, len, LOCAL, 0, key, 0, &mr, NULL));
	assert_non_null(mr);
	assert_int_equal(mr->fid.fclass, FI_CLASS_MR);
	return mr;
}

static bool keys_are_the_providers(const struct conf_node *node)
{
	int mode = node->info->domain_attr->mr_mode;

	return mode == BASIC || (mode & FI_MR_PROV_KEY);
}

/* A key is for peers: a region that is for messages only need not have one. */
static void need_key(struct fid_mr *mr)
{
	if (fi_mr_key(mr) == FI_KEY_NOTAVAIL)
		conf_not_offered("keys of regions to which peers have no access");
}

/* -- messages ------------------------------------------------------------------------------- */

static void send_with(struct conf_pair *pair, uint8_t *out, struct fid_mr *from, uint8_t *in,
		      struct fid_mr *into, size_t bytes, uint32_t seed)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;

	conf_fill(out, bytes, seed);
	memset(in, 0xee, bytes);
	CONF_RETRY(pair, fi_trecv(pair->b.ep, in, bytes, into ? fi_mr_desc(into) : NULL,
				  FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(pair, fi_tsend(pair->a.ep, out, bytes, from ? fi_mr_desc(from) : NULL,
				  pair->to_b, 1, &sent));
	conf_wait(pair, pair->b.rxcq, &entry, NULL);
	conf_wait(pair, pair->a.txcq, &entry, NULL);
	conf_check(in, bytes, seed);
}

/* Every size, with the descriptors of the whole buffers, and from the middle of them. */
static void messages_take_descriptors(void **state)
{
	static const size_t sizes[] = { 1, 100, 5000, 20000, 300000, LONG_BYTES / 2 };
	uint8_t *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
	struct fid_mr *from, *into;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	from = reg(&pair.a, out, LONG_BYTES, 1);
	into = reg(&pair.b, in, LONG_BYTES, 1);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_with(&pair, out, from, in, into, sizes[i], i);
		send_with(&pair, out + 777, from, in + 333, into, sizes[i], i + 100);
	}
	conf_ok(fi_close(&from->fid));
	conf_ok(fi_close(&into->fid));
	free(out);
	free(in);
	conf_pair_close(&pair);
}

/* Without FI_MR_LOCAL nothing need be registered: some is, some is not, some is no more. */
static void messages_need_no_region(void **state)
{
	uint8_t *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
	struct fid_mr *from;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	if (pair.a.info->domain_attr->mr_mode & FI_MR_LOCAL)
		conf_not_offered("messages without registration");
	for (uint32_t i = 0; i < 5; i++) {
		send_with(&pair, out, NULL, in, NULL, LONG_BYTES, i);
		from = reg(&pair.a, out, LONG_BYTES / 2, 1);
		send_with(&pair, out, NULL, in, NULL, LONG_BYTES, i + 10);
		send_with(&pair, out, from, in, NULL, LONG_BYTES / 2, i + 20);
		conf_ok(fi_close(&from->fid));
		send_with(&pair, out, NULL, in, NULL, LONG_BYTES, i + 30);
	}
	free(out);
	free(in);
	conf_pair_close(&pair);
}

static void regions_overlap(void **state)
{
	enum {
		N = 20
	};
	uint8_t *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
	struct fid_mr *from[N], *into;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	into = reg(&pair.b, in, LONG_BYTES, 1);
	for (uint32_t i = 0; i < N; i++)
		from[i] = reg(&pair.a, out + (size_t)i * 10000, LONG_BYTES / 2, i);
	for (uint32_t i = 0; i < N; i++)
		send_with(&pair, out + (size_t)i * 10000, from[i], in, into, LONG_BYTES / 2, i);
	for (uint32_t i = 0; i < N; i += 2)
		conf_ok(fi_close(&from[i]->fid));
	for (uint32_t i = 1; i < N; i += 2)
		send_with(&pair, out + (size_t)i * 10000, from[i], in, into, LONG_BYTES / 2, i);
	for (uint32_t i = 1; i < N; i += 2)
		conf_ok(fi_close(&from[i]->fid));
	conf_ok(fi_close(&into->fid));
	free(out);
	free(in);
	conf_pair_close(&pair);
}

static void regions_of_several_pieces(void **state)
{
	struct fi_mr_attr attr = { .iov_count = 2, .access = LOCAL, .requested_key = 5 };
	uint8_t bytes[4000];
	struct iovec iov[2] = { { bytes, 1000 }, { bytes + 2000, 1000 } };
	struct fid_mr *mr;
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	if (node.info->domain_attr->mr_iov_limit < 2)
		conf_not_offered("regions of several pieces");
	conf_ok(fi_mr_regv(node.domain, iov, 2, LOCAL, 0, 4, 0, &mr, NULL));
	conf_ok(fi_close(&mr->fid));
	attr.mr_iov = iov;
	conf_ok(fi_mr_regattr(node.domain, &attr, 0, &mr));
	conf_ok(fi_close(&mr->fid));
	conf_close(&node);
}

/* -- memory that is not registered ---------------------------------------------------------- */

/* A file of so many bytes, filled, that is mapped shared and can only be read. */
static void *map_file(size_t bytes, uint32_t seed)
{
	const char *folder = getenv("TMPDIR");
	uint8_t *content = malloc(bytes);
	char name[256];
	void *map;
	int fd;

	conf_fill(content, bytes, seed);
	snprintf(name, sizeof(name), "%s/conf_mr.XXXXXX", folder ? folder : "/tmp");
	fd = mkstemp(name);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, bytes), bytes);
	free(content);
	close(fd);
	fd = open(name, O_RDONLY);
	assert_true(fd >= 0);
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	unlink(name);
	return map;
}

/* Not every device takes such memory; but it can be read. */
static void files_are_sent_from_where_they_are_mapped(void **state)
{
	uint8_t *in = malloc(LONG_BYTES);
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;
	void *map = map_file(LONG_BYTES, 3);

	(void)state;
	conf_pair_open(&pair, &plain);
	if (pair.a.info->domain_attr->mr_mode & FI_MR_LOCAL)
		conf_not_offered("messages without registration");
	for (size_t bytes = 1000; bytes <= LONG_BYTES; bytes *= 10) {
		memset(in, 0, LONG_BYTES);
		CONF_RETRY(&pair,
			   fi_trecv(pair.b.ep, in, bytes, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, map, bytes, NULL, pair.to_b, 1, &sent));
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
		conf_check(in, bytes, 3);
	}
	munmap(map, LONG_BYTES);
	free(in);
	conf_pair_close(&pair);
}

/* Several long messages, each of which is longer than what may be locked from now on. */
static void little_may_be_locked(void **state)
{
	enum {
		N = 4
	};
	struct rlimit before, little;
	uint8_t *out = malloc(LONG_BYTES), *in[N];
	struct fi_context2 sent[N], received[N];
	struct fi_cq_tagged_entry entry;
	struct conf_pair pair;

	(void)state;
	conf_pair_open(&pair, &plain);
	if (pair.a.info->domain_attr->mr_mode & FI_MR_LOCAL)
		conf_not_offered("messages without registration");
	in[0] = malloc(LONG_BYTES);
	send_with(&pair, out, NULL, in[0], NULL, 1000, 1); /* they are connected */
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	little = before;
	little.rlim_cur = LONG_BYTES / 4;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	conf_fill(out, LONG_BYTES, 9);
	for (int i = 0; i < N; i++) {
		in[i] = i ? malloc(LONG_BYTES) : in[i];
		memset(in[i], 0, LONG_BYTES);
		CONF_RETRY(&pair, fi_trecv(pair.b.ep, in[i], LONG_BYTES, NULL, FI_ADDR_UNSPEC,
					   (uint64_t)i, 0, &received[i]));
		CONF_RETRY(&pair, fi_tsend(pair.a.ep, out, LONG_BYTES, NULL, pair.to_b, (uint64_t)i,
					   &sent[i]));
	}
	for (int i = 0; i < N; i++) {
		conf_wait(&pair, pair.b.rxcq, &entry, NULL);
		conf_wait(&pair, pair.a.txcq, &entry, NULL);
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	for (int i = 0; i < N; i++) {
		conf_check(in[i], LONG_BYTES, 9);
		free(in[i]);
	}
	free(out);
	conf_pair_close(&pair);
}

/* -- keys ----------------------------------------------------------------------------------- */

static void keys_are_told(void **state)
{
	enum {
		N = 300
	};
	static uint8_t bytes[N];
	struct fid_mr *mrs[N];
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	for (uint32_t i = 0; i < N; i++)
		mrs[i] = reg(&node, &bytes[i], 1, keys_are_the_providers(&node) ? 0 : 1000 + i);
	for (uint32_t i = 0; i < N; i++) {
		need_key(mrs[i]);
		if (!keys_are_the_providers(&node))
			assert_int_equal(fi_mr_key(mrs[i]), 1000 + i);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(fi_mr_key(mrs[i]), fi_mr_key(mrs[j]));
	}
	for (uint32_t i = 0; i < N; i++)
		conf_ok(fi_close(&mrs[i]->fid));
	conf_close(&node);
}

/* Who does not agree to FI_MR_PROV_KEY gets the keys that it asks for, each of them once. */
static void keys_are_the_applications(void **state)
{
	struct fid_mr *first, *second = NULL;
	struct conf_node node;
	uint8_t bytes[2];

	(void)state;
	conf_open(&node, &choosing);
	assert_false(keys_are_the_providers(&node));
	first = reg(&node, &bytes[0], 1, 77);
	need_key(first);
	assert_int_equal(fi_mr_key(first), 77);
	assert_int_equal(fi_mr_reg(node.domain, &bytes[1], 1, LOCAL, 0, 77, 0, &second, NULL),
			 -FI_ENOKEY);
	second = reg(&node, &bytes[1], 1, 78);
	conf_ok(fi_close(&first->fid));
	first = reg(&node, &bytes[1], 1, 77);
	assert_int_equal(fi_mr_key(first), 77);
	conf_ok(fi_close(&first->fid));
	conf_ok(fi_close(&second->fid));
	conf_close(&node);
}

/* -- modes ---------------------------------------------------------------------------------- */

/* No more is required than what was agreed to, and a message goes through. */
static void try_mode(int mode)
{
	struct conf_options options = { .mr_mode_given = true, .mr_mode = mode };
	uint8_t *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
	struct fid_mr *from, *into;
	struct conf_pair pair;
	int given;

	conf_pair_open(&pair, &options);
	given = pair.a.info->domain_attr->mr_mode;
	if (mode == BASIC || mode == SCALABLE)
		assert_int_equal(given, mode);
	else
		assert_int_equal(given & ~mode, 0);
	from = reg(&pair.a, out, LONG_BYTES, 1);
	into = reg(&pair.b, in, LONG_BYTES, 1);
	send_with(&pair, out, from, in, into, LONG_BYTES, (uint32_t)mode);
	conf_ok(fi_close(&from->fid));
	conf_ok(fi_close(&into->fid));
	free(out);
	free(in);
	conf_pair_close(&pair);
}

static void no_mode_at_all(void **state)
{
	(void)state;
	try_mode(0);
}

static void every_mode(void **state)
{
	(void)state;
	try_mode(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
}

static void mode_basic(void **state)
{
	(void)state;
	try_mode(BASIC);
}

static void mode_scalable(void **state)
{
	(void)state;
	try_mode(SCALABLE);
}

/* -- lives ---------------------------------------------------------------------------------- */

static void a_domain_with_regions_stays(void **state)
{
	struct conf_node node;
	struct fid_mr *mr;

	(void)state;
	conf_open(&node, &plain);
	mr = reg(&node, &node, sizeof(node), 3);
	conf_ok(fi_close(&node.ep->fid));
	conf_ok(fi_close(&node.txcq->fid));
	conf_ok(fi_close(&node.av->fid));
	assert_int_equal(fi_close(&node.domain->fid), -FI_EBUSY);
	conf_ok(fi_close(&mr->fid));
	conf_ok(fi_close(&node.domain->fid));
	conf_ok(fi_close(&node.fabric->fid));
	fi_freeinfo(node.info);
}

/* A page a thousand times, and a thousand pages, which is more than some tables have room for. */
static void many_regions(void **state)
{
	enum {
		N = 1000
	};
	static struct fid_mr *mrs[N];
	uint8_t *bytes = malloc((size_t)N * 4096);
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++)
			mrs[i] = reg(&node, bytes + (size_t)(round ? i : 0) * 4096, 4096, i);
		for (uint32_t i = 0; i < N; i++)
			conf_ok(fi_close(&mrs[i]->fid));
	}
	free(bytes);
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_take_descriptors),
		cmocka_unit_test(messages_need_no_region),
		cmocka_unit_test(regions_overlap),
		cmocka_unit_test(regions_of_several_pieces),
		cmocka_unit_test(files_are_sent_from_where_they_are_mapped),
		cmocka_unit_test(little_may_be_locked),
		cmocka_unit_test(keys_are_told),
		cmocka_unit_test(keys_are_the_applications),
		cmocka_unit_test(no_mode_at_all),
		cmocka_unit_test(every_mode),
		cmocka_unit_test(mode_basic),
		cmocka_unit_test(mode_scalable),
		cmocka_unit_test(a_domain_with_regions_stays),
		cmocka_unit_test(many_regions),
	};

	/* Where registering costs nothing it is not kept unasked: ask. */
	if (conf_is_rvcm())
		setenv("FI_RVCM_MR_CACHE_MONITOR", "userfaultfd", 0);
	return conf_run_tests("conf_mr", tests);
}

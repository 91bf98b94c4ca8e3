/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/conf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *conf_provider(void)
{
	static bool done; /* tests may change the environment afterwards */
	const char *provider = getenv("FABTEST_PROV");
	const char *top = getenv("top_builddir");
	char path[1024];

	if (provider)
		return provider;
	if (done)
		return "rvcm";
	done = true;
	snprintf(path, sizeof(path), "%s/.libs", top ? top : ".");
	setenv("FI_PROVIDER_PATH", path, 0);
	setenv("FI_RVCM_IFACE", "lo", 0);
	setenv("FI_RVCM_JOB_KEY", "00112233445566778899aabbccddeeff", 0);
	return "rvcm";
}

bool conf_is_rvcm(void)
{
	return strcmp(conf_provider(), "rvcm") == 0;
}

const char *conf_node_name(void)
{
	const char *node = getenv("FABTEST_NODE");

	return node ? node : "127.0.0.1";
}

const char *conf_host_name(void)
{
	const char *name = getenv("FABTEST_HOST");

	return name ? name : "localhost";
}

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += len) {
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	}
	return false;
}

/* The name alone, or with the major version of the libfabric that runs in front: "2:name". */
static bool is_left_out(const char *name)
{
	const char *list = getenv("FABTEST_LEFT_OUT");
	char versioned[256];

	if (!list)
		return false;
	snprintf(versioned, sizeof(versioned), "%u:%s", FI_MAJOR(fi_version()), name);
	return listed(list, name) || listed(list, versioned);
}

static void left_out(void **state)
{
	(void)state;
	skip();
}

int conf_run(const char *name, const struct CMUnitTest *tests, size_t n)
{
	struct CMUnitTest *chosen = calloc(n, sizeof(*chosen));
	int rc;

	if (!chosen)
		abort();
	memcpy(chosen, tests, n * sizeof(*tests));
	for (size_t i = 0; i < n; i++) {
		if (is_left_out(tests[i].name))
			chosen[i].test_func = left_out;
	}
	rc = _cmocka_run_group_tests(name, chosen, n, NULL, NULL);
	free(chosen);
	return rc;
}

void conf_not_offered(const char *what)
{
	if (conf_is_rvcm())
		fail_msg("not offered: %s", what);
	print_message("# not offered by %s: %s\n", conf_provider(), what);
	skip();
}

static struct fi_info *hints_of(uint32_t format)
{
	const char *provider = conf_provider();
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	hints->caps = FI_MSG | FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = format;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/* IP addresses, if the provider knows such; else what it likes best. */
uint32_t conf_format(void)
{
	uint32_t ip = strchr(conf_node_name(), ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	struct fi_info *hints, *info = NULL;
	uint32_t format = ip;
	int rc;

	if (conf_is_rvcm())
		return ip;
	hints = hints_of(ip);
	rc = fi_getinfo(CONF_VERSION, NULL, NULL, 0, hints, &info);
	if (rc == -FI_ENODATA) {
		hints->addr_format = FI_FORMAT_UNSPEC;
		conf_ok(fi_getinfo(CONF_VERSION, NULL, NULL, 0, hints, &info));
		format = info->addr_format;
	} else {
		conf_ok(rc);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return format;
}

bool conf_names_are_ip(void)
{
	uint32_t format = conf_format();

	return format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

void conf_need_ip_names(void)
{
	if (!conf_names_are_ip())
		conf_not_offered("names that are IP addresses");
}

struct fi_info *conf_hints(void)
{
	return hints_of(conf_format());
}

static void open_queues(struct conf_node *node, const struct conf_options *options)
{
	struct fi_cq_attr attr = {
		.format = options->format ? options->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = options->wait_obj,
	};

	int rc = fi_cq_open(node->domain, &attr, &node->txcq, node);

	if (rc == -FI_ENOSYS && attr.wait_obj)
		conf_not_offered("completion queues to wait on");
	conf_ok(rc);
	node->rxcq = node->txcq;
	if (options->separate_cqs)
		conf_ok(fi_cq_open(node->domain, &attr, &node->rxcq, node));
}

static void open_endpoint(struct conf_node *node, const struct conf_options *options)
{
	conf_ok(fi_endpoint(node->domain, node->info, &node->ep, node));
	conf_ok(fi_ep_bind(node->ep, &node->av->fid, 0));
	if (options->separate_cqs) {
		conf_ok(fi_ep_bind(node->ep, &node->txcq->fid, FI_TRANSMIT | options->bind_flags));
		conf_ok(fi_ep_bind(node->ep, &node->rxcq->fid, FI_RECV | options->bind_flags));
	} else {
		conf_ok(fi_ep_bind(node->ep, &node->txcq->fid,
				   FI_TRANSMIT | FI_RECV | options->bind_flags));
	}
	conf_ok(fi_enable(node->ep));
	node->name_size = sizeof(node->name);
	conf_ok(fi_getname(&node->ep->fid, node->name, &node->name_size));
}

void conf_open(struct conf_node *node, const struct conf_options *options)
{
	struct fi_av_attr av_attr = {
		.type = options->av_type ? options->av_type : FI_AV_TABLE,
	};
	const char *source = options->source ? options->source : conf_node_name();
	struct fi_info *hints = conf_hints();
	int rc;

	memset(node, 0, sizeof(*node));
	hints->caps |= options->caps;
	hints->domain_attr->threading = options->threading;
	hints->domain_attr->data_progress = options->progress;
	hints->domain_attr->av_type = options->av_type;
	hints->domain_attr->tclass = options->domain_tclass;
	hints->tx_attr->tclass = options->tclass;
	if (options->mr_mode_given)
		hints->domain_attr->mr_mode = options->mr_mode;
	if (!conf_names_are_ip())
		source = "";
	rc = fi_getinfo(CONF_VERSION, *source ? source : NULL, NULL, *source ? FI_SOURCE : 0, hints,
			&node->info);
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA &&
	    (options->caps || options->progress || options->av_type || options->mr_mode_given))
		conf_not_offered("capabilities, progress, address vectors or registration as asked "
				 "for");
	conf_ok(rc);
	conf_ok(fi_fabric(node->info->fabric_attr, &node->fabric, node));
	conf_ok(fi_domain(node->fabric, node->info, &node->domain, node));
	conf_ok(fi_av_open(node->domain, &av_attr, &node->av, node));
	open_queues(node, options);
	open_endpoint(node, options);
}

fi_addr_t conf_insert(struct conf_node *node, const struct conf_node *peer)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insert(node->av, peer->name, 1, &addr, 0, NULL), 1);
	assert_int_not_equal(addr, FI_ADDR_NOTAVAIL);
	return addr;
}

void conf_pair_open(struct conf_pair *pair, const struct conf_options *options)
{
	conf_open(&pair->a, options);
	conf_open(&pair->b, options);
	pair->to_b = conf_insert(&pair->a, &pair->b);
	pair->to_a = conf_insert(&pair->b, &pair->a);
}

/* Only the endpoint's close talks to the peer; assertions are the test's own thread's. */
static void *close_endpoint(void *arg)
{
	struct conf_node *node = arg;

	return (void *)(intptr_t)fi_close(&node->ep->fid);
}

static void close_rest(struct conf_node *node)
{
	if (node->rxcq != node->txcq)
		conf_ok(fi_close(&node->rxcq->fid));
	conf_ok(fi_close(&node->txcq->fid));
	conf_ok(fi_close(&node->av->fid));
	conf_ok(fi_close(&node->domain->fid));
	conf_ok(fi_close(&node->fabric->fid));
	fi_freeinfo(node->info);
}

void conf_close(struct conf_node *node)
{
	assert_null(close_endpoint(node));
	close_rest(node);
}

/* Both ends close at once, as processes do: an end that nobody drives would be waited for. */
void conf_pair_close_endpoints(struct conf_pair *pair)
{
	pthread_t thread;
	void *rc;

	conf_ok(pthread_create(&thread, NULL, close_endpoint, &pair->b));
	assert_null(close_endpoint(&pair->a));
	conf_ok(pthread_join(thread, &rc));
	assert_null(rc);
}

void conf_pair_close_rest(struct conf_pair *pair)
{
	close_rest(&pair->a);
	close_rest(&pair->b);
}

void conf_pair_close(struct conf_pair *pair)
{
	conf_pair_close_endpoints(pair);
	conf_pair_close_rest(pair);
}

uint64_t conf_deadline(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + CONF_TIMEOUT_MS;
}

void conf_not_late(uint64_t deadline)
{
	if (conf_deadline() - CONF_TIMEOUT_MS > deadline)
		fail_msg("no progress for %d ms", CONF_TIMEOUT_MS);
}

static void progress_cq(struct fid_cq *cq)
{
	ssize_t rc = fi_cq_read(cq, NULL, 0);

	assert_true(rc == 0 || rc == -FI_EAGAIN || rc == -FI_EAVAIL);
}

void conf_progress(struct conf_pair *pair)
{
	progress_cq(pair->a.txcq);
	progress_cq(pair->a.rxcq);
	progress_cq(pair->b.txcq);
	progress_cq(pair->b.rxcq);
}

static ssize_t next(struct conf_pair *pair, struct fid_cq *cq, struct fi_cq_tagged_entry *entry,
		    fi_addr_t *source)
{
	uint64_t deadline = conf_deadline();
	fi_addr_t ignored;
	ssize_t rc;

	memset(entry, 0, sizeof(*entry));
	while ((rc = fi_cq_readfrom(cq, entry, 1, source ? source : &ignored)) == -FI_EAGAIN) {
		conf_progress(pair);
		conf_not_late(deadline);
	}
	return rc;
}

void conf_wait(struct conf_pair *pair, struct fid_cq *cq, struct fi_cq_tagged_entry *entry,
	       fi_addr_t *source)
{
	ssize_t rc = next(pair, cq, entry, source);

	if (rc == -FI_EAVAIL) {
		struct fi_cq_err_entry error = { 0 };
		char text[256];

		assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
		fail_msg("an operation failed: %s: %s", fi_strerror(error.err),
			 fi_cq_strerror(cq, error.prov_errno, error.err_data, text, sizeof(text)));
	}
	assert_int_equal(rc, 1);
}

void conf_wait_error(struct conf_pair *pair, struct fid_cq *cq, struct fi_cq_err_entry *entry)
{
	struct fi_cq_tagged_entry success;

	assert_int_equal(next(pair, cq, &success, NULL), -FI_EAVAIL);
	memset(entry, 0, sizeof(*entry));
	assert_int_equal(fi_cq_readerr(cq, entry, 0), 1);
}

static uint8_t pattern(size_t i, uint32_t seed)
{
	return (uint8_t)((i * 167 + (i >> 8) * 13 + seed * 101) ^ (i >> 16));
}

void conf_fill(void *buf, size_t len, uint32_t seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

void conf_check(const void *buf, size_t len, uint32_t seed)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < len; i++) {
		if (p[i] != pattern(i, seed))
			fail_msg("byte %zu of %zu is wrong", i, len);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only rvcm has: its choice of devices, its job key, its statistics file, and what it says
 * when it offers nothing. Through libfabric's public interface, with its log caught.
 */
#include "conf/conf.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ofi/caught.h"

/* Set by providers that layer themselves over others. */
#define LAYERED_QUERY (1ull << 59)

static const struct conf_options plain;

static int ask(const struct fi_info *hints, uint64_t flags, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(CONF_VERSION, NULL, NULL, flags, hints, info);
}

/* -- devices ------------------------------------------------------------------------------- */

static int ask_quietly(const struct fi_info *hints)
{
	struct fi_info *info;
	int rc;

	caught_begin();
	rc = ask(hints, 0, &info);
	free(caught_end());
	fi_freeinfo(info);
	return rc;
}

static char *ask_caught(const struct fi_info *hints)
{
	struct fi_info *info;
	char *text;

	caught_begin();
	ask(hints, 0, &info);
	text = caught_end();
	fi_freeinfo(info);
	return text;
}

static void iface_and_device_choose(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	char *name, *text;

	(void)state;
	conf_ok(ask(hints, 0, &info));
	name = strdup(info->domain_attr->name);
	assert_null(info->next);
	fi_freeinfo(info);

	setenv("FI_RVCM_DEVICE", name, 1);
	conf_ok(ask(hints, 0, &info));
	assert_string_equal(info->domain_attr->name, name);
	fi_freeinfo(info);
	setenv("FI_RVCM_DEVICE", "nonesuch", 1);
	assert_int_equal(ask_quietly(hints), -FI_ENODATA);
	unsetenv("FI_RVCM_DEVICE");

	setenv("FI_RVCM_IFACE", "127.0.0.1", 1);
	conf_ok(ask(hints, 0, &info));
	assert_string_equal(info->domain_attr->name, name);
	fi_freeinfo(info);
	setenv("FI_RVCM_IFACE", "nonesuch", 1);
	text = ask_caught(hints);
	assert_int_equal(caught_lines(text), 1);
	assert_non_null(strstr(text, "FI_RVCM_IFACE=nonesuch"));
	assert_non_null(strstr(text, name)); /* what there is */
	assert_non_null(strstr(text, "soft-lo on lo (127.0.0.1)"));
	free(text);
	setenv("FI_RVCM_IFACE", "127.0.0.1:80", 1);
	text = ask_caught(hints);
	assert_int_equal(caught_lines(text), 1);
	assert_non_null(strstr(text, "FI_RVCM_IFACE=127.0.0.1:80: has a port"));
	free(text);
	setenv("FI_RVCM_IFACE", "127.0.0.1%lo", 1);
	assert_int_equal(ask_quietly(hints), -FI_ENODATA);
	setenv("FI_RVCM_IFACE", "lo", 1);
	free(name);
	fi_freeinfo(hints);
}

static void plain_rvcm_and_nothing_layered(void **state)
{
	static const char *const names[] = { "rvcm;ofi_rxm", "ofi_rxm;rvcm", "rvcm;", "rvc" };
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	assert_int_equal(ask(hints, LAYERED_QUERY, &info), -FI_ENODATA);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup(names[i]);
		if (ask(hints, 0, &info) == 0) /* libfabric itself may take "rvcm;" for rvcm */
			assert_string_equal(info->fabric_attr->prov_name, "rvcm");
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void refusals_are_explained_to_who_asked(void **state)
{
	struct fi_info *hints = conf_hints();
	char *text;

	(void)state;
	hints->caps |= FI_ATOMIC;
	text = ask_caught(hints);
	assert_non_null(strstr(text, "soft-lo"));
	assert_non_null(strstr(text, "FI_ATOMIC"));
	free(text);

	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_MSG;
	text = ask_caught(hints);
	assert_non_null(strstr(text, "FI_EP_MSG"));
	free(text);

	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = 77;
	text = ask_caught(hints);
	assert_non_null(strstr(text, "data_progress"));
	free(text);

	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	hints->domain_attr->name = strdup("soft-nonesuch");
	text = ask_caught(hints);
	assert_non_null(strstr(text, "domain_attr->name: soft-nonesuch is asked for"));
	free(text);
	free(hints->domain_attr->name);
	hints->domain_attr->name = NULL;

	/* Nobody asked for rvcm: nobody wants to know. */
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	hints->caps = FI_ATOMIC | FI_MULTICAST;
	text = ask_caught(hints);
	assert_string_equal(text, "");
	free(text);
	fi_freeinfo(hints);
}

/* None of these is looked up in a network. */
static void what_names_no_address_is_said(void **state)
{
	static const struct {
		const char *node, *service;
		int err;
	} rows[] = {
		{ "nosuchhost.invalid", NULL, EAI_NONAME },
		{ "192.0.2.2", "notaport", EAI_SERVICE },
		{ "192.0.2.2", "65536", 0 },
	};
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = rows[i].err ? gai_strerror(rows[i].err) : "ports end at 65535";
		char *text;
		int rc;

		caught_begin();
		rc = fi_getinfo(CONF_VERSION, rows[i].node, rows[i].service, FI_NUMERICHOST, hints,
				&info);
		text = caught_end();
		assert_int_equal(rc, -FI_ENODATA);
		if (caught_lines(text) != 1 || !strstr(text, why) ||
		    !strstr(text, rows[i].service ? rows[i].service : rows[i].node))
			fail_msg("row %zu says: %s", i, text);
		free(text);
	}
	fi_freeinfo(hints);
}

/* -- the job key --------------------------------------------------------------------------- */

/* What becomes of a message from a to b: 0, or the sender's error. */
static int one_message(struct conf_pair *pair)
{
	struct fi_context2 sent, received;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	uint64_t deadline = conf_deadline();
	char in;

	CONF_RETRY(pair, fi_trecv(pair->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received));
	CONF_RETRY(pair, fi_tsend(pair->a.ep, "k", 1, NULL, pair->to_b, 1, &sent));
	for (;;) {
		conf_not_late(deadline);
		if (fi_cq_read(pair->a.txcq, &entry, 1) == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(pair->a.txcq, &error, 0), 1);
			assert_ptr_equal(error.op_context, &sent);
			return error.err;
		}
		if (fi_cq_read(pair->b.rxcq, &entry, 1) == 1)
			return 0;
	}
}

static int message_caught(struct conf_pair *pair)
{
	int err;

	caught_begin();
	err = one_message(pair);
	free(caught_end());
	return err;
}

static void other_jobs_are_kept_out(void **state)
{
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));
	struct conf_pair pair;

	(void)state;
	conf_open(&pair.a, &plain);
	setenv("FI_RVCM_JOB_KEY", "ffffffffffffffffffffffffffffffff", 1);
	conf_open(&pair.b, &plain);
	setenv("FI_RVCM_JOB_KEY", old, 1);
	pair.to_b = conf_insert(&pair.a, &pair.b);
	assert_int_equal(message_caught(&pair), FI_EACCES);
	conf_pair_close(&pair);
	free(old);
}

/* A receive that names one of another job will not be answered, and says so. */
static void receives_from_other_jobs_end(void **state)
{
	const struct conf_options directed = { .caps = FI_DIRECTED_RECV };
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));
	struct fi_context2 sent, received[2];
	struct fi_cq_err_entry error;
	struct conf_pair pair;
	char in[2];

	(void)state;
	conf_open(&pair.a, &directed);
	setenv("FI_RVCM_JOB_KEY", "ffffffffffffffffffffffffffffffff", 1);
	conf_open(&pair.b, &directed);
	setenv("FI_RVCM_JOB_KEY", old, 1);
	pair.to_b = conf_insert(&pair.a, &pair.b);
	CONF_RETRY(&pair, fi_trecv(pair.a.ep, &in[0], 1, NULL, pair.to_b, 1, 0, &received[0]));
	CONF_RETRY(&pair, fi_trecv(pair.a.ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &received[1]));
	caught_begin();
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "k", 1, NULL, pair.to_b, 1, &sent));
	conf_wait_error(&pair, pair.a.txcq, &error);
	free(caught_end());
	assert_ptr_equal(error.op_context, &sent);
	assert_int_equal(error.err, FI_EACCES);
	conf_wait_error(&pair, pair.a.rxcq, &error);
	assert_ptr_equal(error.op_context, &received[0]);
	assert_int_equal(error.err, FI_EACCES);
	/* somebody else may answer the other one */
	conf_ok(fi_cancel(&pair.a.ep->fid, &received[1]));
	conf_wait_error(&pair, pair.a.rxcq, &error);
	assert_int_equal(error.err, FI_ECANCELED);
	conf_pair_close(&pair);
	free(old);
}

/* From the launcher's variables; the same for the same job, another for another. */
static void launchers_give_keys(void **state)
{
	static const struct {
		const char *name, *a, *b;
		int err;
	} cases[] = {
		{ "PMIX_NAMESPACE", "job-1", "job-1", 0 },
		{ "PMIX_NAMESPACE", "job-1", "job-2", FI_EACCES },
		{ "SLURM_JOB_ID", "17", "17", 0 },
		{ "SLURM_JOB_ID", "17", "18", FI_EACCES },
		{ "OMPI_MCA_orte_precondition_transports", "0123456789abcdef-0123456789abcdef",
		  "0123456789abcdef-0123456789abcdef", 0 },
		{ "OMPI_MCA_orte_precondition_transports", "0123456789abcdef-0123456789abcdef",
		  "0123456789abcdef-0123456789abcdee", FI_EACCES },
	};
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));

	(void)state;
	unsetenv("FI_RVCM_JOB_KEY");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct conf_pair pair;
		int err;

		setenv(cases[i].name, cases[i].a, 1);
		conf_open(&pair.a, &plain);
		setenv(cases[i].name, cases[i].b, 1);
		conf_open(&pair.b, &plain);
		unsetenv(cases[i].name);
		pair.to_b = conf_insert(&pair.a, &pair.b);
		err = message_caught(&pair);
		if (err != cases[i].err)
			fail_msg("%s %s %s: %s", cases[i].name, cases[i].a, cases[i].b,
				 fi_strerror(err));
		conf_pair_close(&pair);
	}
	setenv("FI_RVCM_JOB_KEY", old, 1);
	free(old);
}

static void without_a_key_there_is_one_warning(void **state)
{
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));
	struct conf_node node;
	char *text;

	(void)state;
	unsetenv("FI_RVCM_JOB_KEY");
	caught_begin();
	conf_open(&node, &plain);
	text = caught_end();
	setenv("FI_RVCM_JOB_KEY", old, 1);
	assert_int_equal(caught_lines(text), 1);
	assert_non_null(strstr(text, "FI_RVCM_JOB_KEY"));
	conf_close(&node);
	free(text);
	free(old);
}

static void auth_key_comes_first(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	char *text;

	(void)state;
	unsetenv("FI_RVCM_JOB_KEY"); /* which would be warned about */
	hints->domain_attr->auth_key = malloc(16);
	memset(hints->domain_attr->auth_key, 7, 16);
	hints->domain_attr->auth_key_size = 16;
	conf_ok(ask(hints, 0, &info));
	assert_int_equal(info->domain_attr->auth_key_size, 16);
	assert_memory_equal(info->domain_attr->auth_key, hints->domain_attr->auth_key, 16);
	conf_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	caught_begin();
	conf_ok(fi_domain(fabric, info, &domain, NULL));
	text = caught_end();
	setenv("FI_RVCM_JOB_KEY", old, 1);
	assert_string_equal(text, "");
	free(text);
	conf_ok(fi_close(&domain->fid));
	conf_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
	hints->domain_attr->auth_key_size = 15;
	assert_int_equal(ask_quietly(hints), -FI_ENODATA);
	fi_freeinfo(hints);
	free(old);
}

/* 0 or an error: a domain, with these rails. */
static int open_with_rails(const char *rails)
{
	struct fi_info *hints = conf_hints(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int rc;

	setenv("FI_RVCM_RAILS", rails, 1);
	conf_ok(ask(hints, 0, &info));
	conf_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	rc = fi_domain(fabric, info, &domain, NULL);
	unsetenv("FI_RVCM_RAILS");
	if (!rc)
		conf_ok(fi_close(&domain->fid));
	conf_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static void rails_that_are_not_there_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "nonesuch", "\"nonesuch\" is no" },
		{ "127.0.0.2, another", "\"another\" is no" },
		{ "127.0.0.2:80", "\"127.0.0.2:80\" is no" },
		{ "192.0.2.199", "\"192.0.2.199\" is no" }, /* RFC 5737: nobody's */
		{ ",,", "\"\" is no" },
		{ "lo,", "\"\" is no" },
	};
	struct fi_info *hints = conf_hints();
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("FI_RVCM_RAILS", bad[i][0], 1);
		text = ask_caught(hints);
		assert_int_equal(ask_quietly(hints), -FI_ENODATA);
		unsetenv("FI_RVCM_RAILS");
		assert_non_null(strstr(text, "FI_RVCM_RAILS=\""));
		assert_non_null(strstr(text, bad[i][1]));
		free(text);
	}
	fi_freeinfo(hints);
	assert_int_equal(open_with_rails("127.0.0.1,127.0.0.2 , 127.0.0.3"), 0);
	assert_int_equal(open_with_rails("lo"), 0);
}

/* There it is, but the device of the domain cannot use it. */
static void a_rail_of_another_ip_version_is_refused(void **state)
{
	char *text;

	(void)state;
	caught_begin();
	assert_int_equal(open_with_rails("::1"), -FI_EINVAL);
	text = caught_end();
	assert_non_null(strstr(text, "\"::1\" is no network interface with an IPv4 address"));
	free(text);
}

/* -- statistics ---------------------------------------------------------------------------- */

static char stat_prefix[] = "/tmp/rvcm-ofi-stat.XXXXXX";

static uint64_t counter(const char *name)
{
	char path[128], word[64];
	unsigned long long value;
	FILE *file;

	snprintf(path, sizeof(path), "%s/s.%d", stat_prefix, (int)getpid());
	file = fopen(path, "r");
	assert_non_null(file);
	while (fscanf(file, "%63s %llu", word, &value) == 2) {
		if (strcmp(word, name))
			continue;
		fclose(file);
		return value;
	}
	fail_msg("no %s", name);
	return 0;
}

static void statistics_are_written(void **state)
{
	struct conf_pair pair;
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(stat_prefix));
	snprintf(path, sizeof(path), "%s/s", stat_prefix);
	setenv("FI_RVCM_STATS", path, 1);
	conf_pair_open(&pair, &plain);
	assert_int_equal(one_message(&pair), 0);
	conf_pair_close_endpoints(&pair);
	/* MPI may never close its domain */
	assert_int_equal(counter("connects"), 1);
	assert_int_equal(counter("accepts"), 1);
	conf_pair_close_rest(&pair);
	assert_int_equal(counter("tx_msgs"), 1);
	assert_int_equal(counter("tx_bytes"), 1);
	assert_int_equal(counter("rx_msgs"), 1);
	assert_int_equal(counter("rx_bytes"), 1);
	assert_int_equal(counter("connects"), 1);
	assert_int_equal(counter("accepts"), 1);
	/* and of the device, by name */
	assert_int_equal(counter("soft-lo.connects"), 1);
	assert_int_equal(counter("soft-lo.accepts"), 1);
	assert_int_equal(counter("soft-lo.tx_messages"), counter("tx_messages"));
	assert_int_equal(counter("soft-lo.rx_messages"), counter("rx_messages"));
	assert_true(counter("rx_messages") > 0);
	/* of the whole process, and not of the last domain */
	conf_pair_open(&pair, &plain);
	assert_int_equal(one_message(&pair), 0);
	conf_pair_close(&pair);
	assert_int_equal(counter("tx_msgs"), 2);
	assert_int_equal(counter("connects"), 2);
	assert_int_equal(counter("soft-lo.connects"), 2);
	unsetenv("FI_RVCM_STATS");
	snprintf(path, sizeof(path), "%s/s.%d", stat_prefix, (int)getpid());
	conf_ok(unlink(path));
	conf_ok(rmdir(stat_prefix)); /* nothing else was left there */
}

static void statistics_that_cannot_be_written_do_no_harm(void **state)
{
	struct conf_node nodes[2];
	char *text;

	(void)state;
	setenv("FI_RVCM_STATS", "/nonesuch/stats", 1);
	conf_open(&nodes[0], &plain);
	conf_open(&nodes[1], &plain);
	unsetenv("FI_RVCM_STATS");
	caught_begin();
	conf_close(&nodes[0]);
	conf_close(&nodes[1]);
	text = caught_end();
	/* by two endpoints and two domains, and said once */
	assert_int_equal(caught_lines(text), 1);
	assert_non_null(strstr(text, "/nonesuch/stats"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iface_and_device_choose),
		cmocka_unit_test(plain_rvcm_and_nothing_layered),
		cmocka_unit_test(refusals_are_explained_to_who_asked),
		cmocka_unit_test(what_names_no_address_is_said),
		cmocka_unit_test(other_jobs_are_kept_out),
		cmocka_unit_test(receives_from_other_jobs_end),
		cmocka_unit_test(launchers_give_keys),
		cmocka_unit_test(without_a_key_there_is_one_warning),
		cmocka_unit_test(auth_key_comes_first),
		cmocka_unit_test(rails_that_are_not_there_are_refused),
		cmocka_unit_test(a_rail_of_another_ip_version_is_refused),
		cmocka_unit_test(statistics_are_written),
		cmocka_unit_test(statistics_that_cannot_be_written_do_no_harm),
	};

	conf_provider();
	unsetenv("FI_PROVIDER");
	setenv("FI_LOG_LEVEL", "warn", 1);
	return cmocka_run_group_tests_name("env", tests, caught_setup, caught_teardown);
}

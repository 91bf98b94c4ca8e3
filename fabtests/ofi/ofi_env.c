/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only rvcm has: its tunables, its choice of devices, its job key, its statistics file, and
 * what it says when it offers nothing. Through libfabric's public interface, with its log caught.
 */
#include "conf/conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Set by providers that layer themselves over others. */
#define LAYERED_QUERY (1ull << 59)

static const struct conf_options plain;

static int ask(const struct fi_info *hints, uint64_t flags, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(CONF_VERSION, NULL, NULL, flags, hints, info);
}

/* -- the log ------------------------------------------------------------------------------- */

static int stderr_fd = -1;
static char log_name[] = "/tmp/rvcm-ofi-env.XXXXXX";

static void log_begin(void)
{
	int fd = open(log_name, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	fflush(stderr);
	stderr_fd = dup(2);
	dup2(fd, 2);
	close(fd);
}

/* Stop catching; returns what rvcm said, to be freed. */
static char *log_end(void)
{
	char *text = calloc(1, 1 << 16), *line = malloc(4096);
	FILE *file;

	fflush(stderr);
	dup2(stderr_fd, 2);
	close(stderr_fd);
	file = fopen(log_name, "r");
	while (fgets(line, 4096, file))
		if (strstr(line, ":rvcm:"))
			strncat(text, line, 4095);
	fclose(file);
	free(line);
	return text;
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* -- tunables ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *value;
} malformed[] = {
	{ "FI_RVCM_EAGER_SIZE", "abc" },
	{ "FI_RVCM_EAGER_SIZE", "16k" },
	{ "FI_RVCM_EAGER_SIZE", "-1" },
	{ "FI_RVCM_EAGER_SIZE", " 1" },
	{ "FI_RVCM_EAGER_SIZE", "0x" },
	{ "FI_RVCM_EAGER_SIZE", "010" },
	{ "FI_RVCM_WINDOW", "00" },
	{ "FI_RVCM_EAGER_SIZE", "99999999999999999999999" },
	{ "FI_RVCM_WINDOW", "0" },
	{ "FI_RVCM_WINDOW", "" },
	{ "FI_RVCM_TX_SIZE", "0" },
	{ "FI_RVCM_RX_SIZE", "1e3" },
	{ "FI_RVCM_CONNECT_TIMEOUT", "0" },
	{ "FI_RVCM_LINGER", "forever" },
	{ "FI_RVCM_STATS", "" },
	{ "FI_RVCM_SILENCE_TIMEOUT", "99" },
	{ "FI_RVCM_KEEPALIVE", "0" },
	{ "FI_RVCM_CRC", "2" },
};

static void malformed_values_are_named_and_refused(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		char *text;
		int rc;

		setenv(malformed[i].name, malformed[i].value, 1);
		log_begin();
		rc = ask(hints, 0, &info);
		text = log_end();
		unsetenv(malformed[i].name);
		assert_int_equal(rc, -FI_ENODATA);
		assert_int_equal(lines(text), 1);
		assert_non_null(strstr(text, malformed[i].name));
		assert_non_null(strstr(text, malformed[i].value));
		free(text);
	}
	conf_ok(ask(hints, 0, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void good_values_are_taken(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	setenv("FI_RVCM_TX_SIZE", "0x80", 1);
	setenv("FI_RVCM_RX_SIZE", "77", 1);
	conf_ok(ask(hints, 0, &info));
	assert_int_equal(info->tx_attr->size, 128);
	assert_int_equal(info->rx_attr->size, 77);
	fi_freeinfo(info);
	hints->rx_attr->size = 78;
	log_begin();
	assert_int_equal(ask(hints, 0, &info), -FI_ENODATA);
	free(log_end());
	unsetenv("FI_RVCM_TX_SIZE");
	unsetenv("FI_RVCM_RX_SIZE");
	fi_freeinfo(hints);
}

static void a_malformed_key_is_refused_and_not_shown(void **state)
{
	static const char *const keys[] = { "00112233445566778899aabbccddeef",
					    "00112233445566778899aabbccddeeff0",
					    "00112233445566778899aabbccddeefg" };
	struct fi_info *hints = conf_hints(), *info;
	char *old = strdup(getenv("FI_RVCM_JOB_KEY"));

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *text;
		int rc;

		setenv("FI_RVCM_JOB_KEY", keys[i], 1);
		log_begin();
		rc = ask(hints, 0, &info);
		text = log_end();
		assert_int_equal(rc, -FI_ENODATA);
		assert_int_equal(lines(text), 1);
		assert_non_null(strstr(text, "FI_RVCM_JOB_KEY"));
		assert_null(strstr(text, keys[i]));
		free(text);
	}
	setenv("FI_RVCM_JOB_KEY", old, 1);
	free(old);
	fi_freeinfo(hints);
}

/* -- devices ------------------------------------------------------------------------------- */

static int ask_quietly(const struct fi_info *hints)
{
	struct fi_info *info;
	int rc;

	log_begin();
	rc = ask(hints, 0, &info);
	free(log_end());
	fi_freeinfo(info);
	return rc;
}

static void iface_and_device_choose(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	char *name;

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

static char *ask_caught(const struct fi_info *hints)
{
	struct fi_info *info;
	char *text;

	log_begin();
	ask(hints, 0, &info);
	text = log_end();
	fi_freeinfo(info);
	return text;
}

static void refusals_are_explained_to_who_asked(void **state)
{
	struct fi_info *hints = conf_hints();
	char *text;

	(void)state;
	hints->caps |= FI_RMA;
	text = ask_caught(hints);
	assert_non_null(strstr(text, "soft-lo"));
	assert_non_null(strstr(text, "FI_RMA"));
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

	/* Nobody asked for rvcm: nobody wants to know. */
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	hints->caps = FI_RMA | FI_MULTICAST;
	text = ask_caught(hints);
	assert_string_equal(text, "");
	free(text);
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

	log_begin();
	err = one_message(pair);
	free(log_end());
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
	log_begin();
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "k", 1, NULL, pair.to_b, 1, &sent));
	conf_wait_error(&pair, pair.a.txcq, &error);
	free(log_end());
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
	log_begin();
	conf_open(&node, &plain);
	text = log_end();
	setenv("FI_RVCM_JOB_KEY", old, 1);
	assert_int_equal(lines(text), 1);
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
	log_begin();
	conf_ok(fi_domain(fabric, info, &domain, NULL));
	text = log_end();
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
	/* of the whole process, and not of the last domain */
	conf_pair_open(&pair, &plain);
	assert_int_equal(one_message(&pair), 0);
	conf_pair_close(&pair);
	assert_int_equal(counter("tx_msgs"), 2);
	assert_int_equal(counter("connects"), 2);
	unsetenv("FI_RVCM_STATS");
	snprintf(path, sizeof(path), "%s/s.%d", stat_prefix, (int)getpid());
	conf_ok(unlink(path));
	conf_ok(rmdir(stat_prefix)); /* nothing else was left there */
}

static void statistics_that_cannot_be_written_do_no_harm(void **state)
{
	struct conf_node node;
	char *text;

	(void)state;
	setenv("FI_RVCM_STATS", "/nonesuch/stats", 1);
	conf_open(&node, &plain);
	unsetenv("FI_RVCM_STATS");
	log_begin();
	conf_close(&node);
	text = log_end();
	assert_non_null(strstr(text, "/nonesuch/stats"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_values_are_named_and_refused),
		cmocka_unit_test(good_values_are_taken),
		cmocka_unit_test(a_malformed_key_is_refused_and_not_shown),
		cmocka_unit_test(iface_and_device_choose),
		cmocka_unit_test(plain_rvcm_and_nothing_layered),
		cmocka_unit_test(refusals_are_explained_to_who_asked),
		cmocka_unit_test(other_jobs_are_kept_out),
		cmocka_unit_test(receives_from_other_jobs_end),
		cmocka_unit_test(launchers_give_keys),
		cmocka_unit_test(without_a_key_there_is_one_warning),
		cmocka_unit_test(auth_key_comes_first),
		cmocka_unit_test(statistics_are_written),
		cmocka_unit_test(statistics_that_cannot_be_written_do_no_harm),
	};
	int fd = mkstemp(log_name), rc;

	close(fd);
	conf_provider();
	unsetenv("FI_PROVIDER");
	setenv("FI_LOG_LEVEL", "warn", 1);
	rc = cmocka_run_group_tests_name("env", tests, NULL, NULL);
	unlink(log_name);
	return rc;
}

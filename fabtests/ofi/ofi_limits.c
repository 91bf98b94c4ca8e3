/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out of file descriptors: whatever needs one more says which limit it is, how much there is and
 * what to do; nothing is lost or left, and all is well when there are some again.
 */
#include "conf/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

/* -- the log: standard error is a file in memory --------------------------------------------- */

static int real_stderr;

static void catch_log(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	real_stderr = fcntl(2, F_DUPFD_CLOEXEC, 3);
	dup2(fd, 2);
	close(fd);
}

static char *log_text(void)
{
	off_t bytes = lseek(2, 0, SEEK_END);
	char *text = calloc(1, (size_t)bytes + 1);

	if (pread(2, text, (size_t)bytes, 0) != bytes)
		abort();
	return text;
}

static void forget_log(void)
{
	assert_int_equal(ftruncate(2, 0), 0);
	lseek(2, 0, SEEK_SET);
}

static int log_count(const char *words)
{
	char *text = log_text();
	int n = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	free(text);
	return n;
}

/* -- descriptors ------------------------------------------------------------------------------ */

static struct rlimit before;

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Leave room for so many more. */
static void leave(int n)
{
	struct rlimit limit = before;
	int fd = 0;

	for (int found = 0; found < n || fcntl(fd, F_GETFD) >= 0; fd++)
		found += fcntl(fd, F_GETFD) < 0;
	limit.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void relax(void)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* -- tests ------------------------------------------------------------------------------------ */

static void close_some(struct fid **fids, int n)
{
	while (n--)
		assert_int_equal(fi_close(fids[n]), 0);
}

/* Open all that a program needs, and close it again: 0, or what the first call that failed said. */
static int open_all(struct fi_info *info, struct fid_fabric *fabric)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_domain *domain;
	struct fid *fids[4];
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int n = 0, rc;

	rc = fi_domain(fabric, info, &domain, NULL);
	if (rc)
		goto out;
	fids[n++] = &domain->fid;
	rc = fi_av_open(domain, &av_attr, &av, NULL);
	if (rc)
		goto out;
	fids[n++] = &av->fid;
	rc = fi_cq_open(domain, &cq_attr, &cq, NULL);
	if (rc)
		goto out;
	fids[n++] = &cq->fid;
	rc = fi_endpoint(domain, info, &ep, NULL);
	if (rc)
		goto out;
	fids[n++] = &ep->fid;
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	rc = fi_enable(ep);
out:
	close_some(fids, n);
	return rc;
}

static void opening_names_the_limit(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	struct fid_fabric *fabric;
	int room = 0, open, rc;

	(void)state;
	conf_ok(fi_getinfo(CONF_VERSION, conf_node_name(), NULL, FI_SOURCE, hints, &info));
	conf_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	conf_ok(open_all(info, fabric));
	open = descriptors();
	for (;; room++) {
		forget_log();
		leave(room);
		rc = open_all(info, fabric);
		relax();
		assert_int_equal(descriptors(), open);
		if (!rc)
			break;
		assert_int_equal(rc, -FI_EMFILE);
		assert_true(log_count("(RLIMIT_NOFILE): raise it with ulimit -n") > 0);
	}
	assert_in_range(room, 5, 50);
	conf_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void a_message(struct conf_pair *pair)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 contexts[2];
	char byte = 0;

	CONF_RETRY(pair, fi_trecv(pair->b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	CONF_RETRY(pair, fi_tsend(pair->a.ep, "y", 1, NULL, pair->to_b, 1, &contexts[1]));
	conf_wait(pair, pair->b.rxcq, &entry, NULL);
	assert_int_equal(byte, 'y');
	conf_wait(pair, pair->a.txcq, &entry, NULL);
}

static void connecting_names_the_limit(void **state)
{
	struct fi_cq_err_entry error;
	struct fi_context2 context;
	struct conf_pair pair;
	char buf[256];

	(void)state;
	setenv("FI_RVCM_CONNECT_TIMEOUT", "200", 1);
	conf_pair_open(&pair, &plain);
	leave(0);
	CONF_RETRY(&pair, fi_tsend(pair.a.ep, "x", 1, NULL, pair.to_b, 1, &context));
	conf_wait_error(&pair, pair.a.txcq, &error);
	assert_int_equal(error.err, FI_EMFILE);
	assert_non_null(strstr(
		fi_cq_strerror(pair.a.txcq, error.prov_errno, error.err_data, buf, sizeof(buf)),
		"raise the limit"));
	relax();
	a_message(&pair);
	conf_pair_close(&pair);
	unsetenv("FI_RVCM_CONNECT_TIMEOUT");
}

/* The other has no descriptor for our connection; says so, once; and has it when it has one. */
static void accepting_waits_for_a_descriptor(void **state)
{
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;

	(void)state;
	conf_other_start(&other, NULL, "starve");
	conf_open(&node, &plain);
	peer = conf_meet(&node, other.to, other.from);
	conf_get(other.from, &(char) { 0 }, 1);
	conf_exchange(&node, peer, 0, 2);
	conf_close(&node);
	conf_other_end(&other, 0);
}

static void role_starve(struct conf_node *node, fi_addr_t peer, int to, int from)
{
	uint64_t deadline = conf_deadline();

	(void)from;
	leave(0);
	conf_put(to, "!", 1);
	while (!log_count("a connection cannot be accepted for now: one more file descriptor")) {
		conf_drive(node);
		conf_not_late(deadline);
	}
	relax();
	conf_exchange(node, peer, 0, 2);
	assert_int_equal(log_count("cannot be accepted"), 1);
}

static const struct conf_role roles[] = { { "starve", role_starve } };

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening_names_the_limit),
		cmocka_unit_test(connecting_names_the_limit),
		cmocka_unit_test(accepting_waits_for_a_descriptor),
	};

	return conf_run_tests("limits", tests);
}

/* What was caught, for people. */
static void show_log(void)
{
	char *text = log_text();

	dup2(real_stderr, 2);
	fputs(text, stderr);
	free(text);
}

int main(int argc, char **argv)
{
	int rc;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_PROV", "rvcm", 1);
	getrlimit(RLIMIT_NOFILE, &before);
	conf_provider();
	catch_log();
	rc = argc == 4 ? conf_play(roles, 1, &plain, argv) : run();
	if (rc)
		show_log();
	return rc;
}

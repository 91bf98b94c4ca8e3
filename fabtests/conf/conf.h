/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conformance suite: what an application may expect of FI_EP_RDM endpoints, through libfabric's
 * public interface only. So the same programs judge any provider, and the other providers judge the
 * programs:
 *
 *   FABTEST_PROV="tcp;ofi_rxm" fabtests/conf/conf_msg
 *
 * Without FABTEST_PROV it is rvcm, as built here, on the loopback device. FABTEST_NODE is the
 * address to be at instead of 127.0.0.1; one with a colon makes it IPv6. FABTEST_HOST is a name of
 * that address, instead of localhost. FABTEST_LEFT_OUT names tests that are not run, with blanks in
 * between; "2:name" is meant for libfabric 2 alone.
 *
 * What another provider does not offer is skipped, which fi_getinfo or an error code tells, never
 * the provider's name; what it offers and gets wrong is listed in peers.txt, and left out by
 * peers.sh (make check-conf-peers).
 */
#ifndef RVCM_FABTESTS_CONF_H
#define RVCM_FABTESTS_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "unit/unit.h"

#define CONF_VERSION FI_VERSION(1, 15)

/* Long enough for a loaded machine under a sanitizer; nothing waits for it to pass. */
#define CONF_TIMEOUT_MS 60000

/* The provider under test; once, before the first fi_getinfo. */
const char *conf_provider(void);
bool conf_is_rvcm(void);
const char *conf_node_name(void);
const char *conf_host_name(void);

/*
 * Run a table of tests as a program; returns the exit status. The same as
 * cmocka_run_group_tests_name, but for FABTEST_LEFT_OUT.
 */
int conf_run(const char *name, const struct CMUnitTest *tests, size_t n);
#define conf_run_tests(name, tests) conf_run(name, tests, sizeof(tests) / sizeof((tests)[0]))

/*
 * The provider does not offer this: skip the rest of the test, and say why. rvcm offers all that is
 * tested here: there it is a failure.
 */
void conf_not_offered(const char *what);

/* The format of names; skipped as above if they are not IP addresses and ports. */
uint32_t conf_format(void);
bool conf_names_are_ip(void);
void conf_need_ip_names(void);

/* Hints that every reliable datagram provider can meet; fi_freeinfo them. */
struct fi_info *conf_hints(void);

/* What to open; zero is a fair choice everywhere. */
struct conf_options {
	uint64_t caps;               /* beyond messages and tagged messages */
	enum fi_cq_format format;    /* UNSPEC = tagged */
	enum fi_wait_obj wait_obj;   /* UNSPEC is not possible: 0 = none */
	enum fi_av_type av_type;     /* UNSPEC = table */
	enum fi_threading threading; /* UNSPEC = safe */
	enum fi_progress progress;   /* for data; UNSPEC = any */
	uint32_t tclass;             /* of endpoints; UNSPEC = any */
	uint32_t domain_tclass;      /* of domains */
	uint64_t bind_flags;         /* FI_SELECTIVE_COMPLETION */
	bool separate_cqs;           /* rxcq is another */
	bool mr_mode_given;          /* mr_mode is what is agreed to, else it is conf_hints' */
	int mr_mode;
	const char *source; /* address; NULL = conf_node_name(), "" = the provider's choice */
};

/* One endpoint with all that it needs. */
struct conf_node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *txcq;
	struct fid_cq *rxcq; /* txcq, unless separate_cqs */
	struct fid_ep *ep;
	uint8_t name[64];
	size_t name_size;
};

void conf_open(struct conf_node *node, const struct conf_options *options);
void conf_close(struct conf_node *node);

/* node's number for peer. */
fi_addr_t conf_insert(struct conf_node *node, const struct conf_node *peer);

/*
 * Two nodes that know each other. Waiting for either one drives both, since progress is manual.
 */
struct conf_pair {
	struct conf_node a, b;
	fi_addr_t to_b; /* at a */
	fi_addr_t to_a; /* at b */
};

void conf_pair_open(struct conf_pair *pair, const struct conf_options *options);
void conf_pair_close(struct conf_pair *pair);

/* The same in two steps. */
void conf_pair_close_endpoints(struct conf_pair *pair);
void conf_pair_close_rest(struct conf_pair *pair);

/* The next completion of cq, which must be a success, while both nodes progress. */
void conf_wait(struct conf_pair *pair, struct fid_cq *cq, struct fi_cq_tagged_entry *entry,
	       fi_addr_t *source);

/* The next completion of cq, which must be a failure. */
void conf_wait_error(struct conf_pair *pair, struct fid_cq *cq, struct fi_cq_err_entry *entry);

/* Call until it does not say -FI_EAGAIN, and then it must have said 0. */
#define CONF_RETRY(pair, call)                         \
	do {                                           \
		ssize_t rc_;                           \
		uint64_t end_ = conf_deadline();       \
                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN) { \
			conf_progress(pair);           \
			conf_not_late(end_);           \
		}                                      \
		assert_int_equal(rc_, 0);              \
	} while (0)

/* Drive both nodes without taking completions. */
void conf_progress(struct conf_pair *pair);

uint64_t conf_deadline(void);
void conf_not_late(uint64_t deadline);

/* A pattern that differs from place to place and from seed to seed, and its check. */
void conf_fill(void *buf, size_t len, uint32_t seed);
void conf_check(const void *buf, size_t len, uint32_t seed);

#define conf_ok(call) assert_int_equal((call), 0)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation of the provider, and every socket call, through libfabric's interface: from
 * fi_getinfo to the last fi_close. Calls return a negative fi_errno, completions come or are
 * errors, and after the failure all of it works, with nothing left behind.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/conf.h"
#include "everyn/failmalloc.h"
#include "everyn/failsys.h"
#include "unit/fds.h"

#define LONG      100000u
#define FAILED_IN 20000u
#define QUIET_MS  200 /* a lost message's receive is not waited for longer */

struct side {
	struct conf_node node;
	fi_addr_t peer;
	uint32_t sent, received, errors;
	uint8_t out[LONG], in[LONG], small;
};

static struct side sides[2];

/* True: it went well. What it gives otherwise is an error that fi_errno(3) knows. */
static bool went_well(ssize_t rc)
{
	assert_true(rc <= 0 && rc > -FI_ERRNO_MAX);
	return rc == 0;
}

/* -- opening, as far as it goes ---------------------------------------------------------------- */

static bool open_info(struct conf_node *node)
{
	struct fi_info *hints = conf_hints();
	int rc = fi_getinfo(CONF_VERSION, conf_node_name(), NULL, FI_SOURCE, hints, &node->info);

	fi_freeinfo(hints);
	if (!went_well(rc))
		node->info = NULL;
	return rc == 0;
}

static bool open_objects(struct conf_node *node)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	return went_well(fi_fabric(node->info->fabric_attr, &node->fabric, node)) &&
	       went_well(fi_domain(node->fabric, node->info, &node->domain, node)) &&
	       went_well(fi_av_open(node->domain, &av_attr, &node->av, node)) &&
	       went_well(fi_cq_open(node->domain, &cq_attr, &node->txcq, node)) &&
	       went_well(fi_endpoint(node->domain, node->info, &node->ep, node));
}

static bool open_endpoint(struct conf_node *node)
{
	node->name_size = sizeof(node->name);
	return went_well(fi_ep_bind(node->ep, &node->av->fid, 0)) &&
	       went_well(fi_ep_bind(node->ep, &node->txcq->fid, FI_TRANSMIT | FI_RECV)) &&
	       went_well(fi_enable(node->ep)) &&
	       went_well(fi_getname(&node->ep->fid, node->name, &node->name_size));
}

static bool open_both(void)
{
	memset(sides, 0, sizeof(sides));
	for (int i = 0; i < 2; i++)
		if (!open_info(&sides[i].node) || !open_objects(&sides[i].node) ||
		    !open_endpoint(&sides[i].node))
			return false;
	for (int i = 0; i < 2; i++) {
		int n = fi_av_insert(sides[i].node.av, sides[!i].node.name, 1, &sides[i].peer, 0,
				     NULL);

		assert_true(n == 1 || n == 0 || n < 0);
		if (n != 1)
			return false;
	}
	return true;
}

static void close_one(struct fid *fid)
{
	if (fid)
		assert_int_equal(fi_close(fid), 0);
}

static void *close_endpoint(void *arg)
{
	struct conf_node *node = arg;

	return (void *)(intptr_t)(node->ep ? fi_close(&node->ep->fid) : 0);
}

static void close_both(void)
{
	pthread_t thread;
	void *rc;

	assert_int_equal(pthread_create(&thread, NULL, close_endpoint, &sides[0].node), 0);
	assert_null(close_endpoint(&sides[1].node));
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_null(rc);
	for (int i = 0; i < 2; i++) {
		struct conf_node *node = &sides[i].node;

		close_one(node->txcq ? &node->txcq->fid : NULL);
		close_one(node->av ? &node->av->fid : NULL);
		close_one(node->domain ? &node->domain->fid : NULL);
		close_one(node->fabric ? &node->fabric->fid : NULL);
		if (node->info)
			fi_freeinfo(node->info);
	}
}

/* -- talking ----------------------------------------------------------------------------------- */

static void take(struct side *side)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(side->node.txcq, &entry, 1);

	if (n == 1) {
		side->sent += !!(entry.flags & FI_SEND);
		side->received += !!(entry.flags & FI_RECV);
	} else if (n == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(side->node.txcq, &err, 0), 1);
		assert_true(err.err > 0);
		side->errors++;
		side->sent += !!(err.flags & FI_SEND);
		side->received += !!(err.flags & FI_RECV);
	} else {
		assert_int_equal(n, -FI_EAGAIN);
	}
}

static void take_both(void)
{
	take(&sides[0]);
	take(&sides[1]);
}

/* Again while there is no room for it. */
#define POST(call)                                     \
	do {                                           \
		uint64_t late_ = conf_deadline();      \
		ssize_t rc_;                           \
                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN) { \
			take_both();                   \
			conf_not_late(late_);          \
		}                                      \
		assert_int_equal(rc_, 0);              \
	} while (0)

static bool all(uint32_t sent, uint32_t received)
{
	return sides[0].sent >= sent && sides[1].sent >= sent && sides[0].received >= received &&
	       sides[1].received >= received;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A short and a long message each way. True: nothing went wrong. patient: nothing may. */
static bool talk(bool patient)
{
	uint64_t late = conf_deadline(), quiet;

	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		s->sent = s->received = s->errors = 0;
		conf_fill(s->out, LONG, (uint32_t)i);
		memset(s->in, 0, LONG);
		POST(fi_trecv(s->node.ep, s->in, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, &s->in));
		POST(fi_trecv(s->node.ep, &s->small, 1, NULL, FI_ADDR_UNSPEC, 2, 0, &s->small));
	}
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		POST(fi_tsend(s->node.ep, s->out, LONG, NULL, s->peer, 1, &s->out));
		POST(fi_tsend(s->node.ep, s->out, 1, NULL, s->peer, 2, &s->out[1]));
	}
	for (; !all(2, 0); conf_not_late(late))
		take_both();
	for (quiet = now_ms() + QUIET_MS; !all(2, 2) && (patient || now_ms() < quiet);
	     conf_not_late(late))
		take_both();
	if (!all(2, 2) || sides[0].errors || sides[1].errors)
		return false;
	for (int i = 0; i < 2; i++)
		conf_check(sides[i].in, LONG, (uint32_t)!i);
	return true;
}

/* -- the runs ---------------------------------------------------------------------------------- */

static bool run(void (*arm)(unsigned long), unsigned long n)
{
	bool well;

	arm(n);
	well = open_both() && talk(n == 0);
	close_both();
	return well;
}

static bool sys_failed(void)
{
	return failsys_failed();
}

static void every_n(void (*arm)(unsigned long), bool (*failed)(void), unsigned long least)
{
	unsigned long n = 1;
	unsigned int fds;
	size_t allocations;

	assert_true(run(arm, 0));
	fds = test_open_fds();
	allocations = failmalloc_outstanding();
	for (;; n++) {
		bool well = run(arm, n), was = failed();

		assert_true(n < FAILED_IN);
		if (!well && !was)
			fail_msg("run %lu went wrong, and nothing had failed", n);
		assert_int_equal(test_open_fds(), fds);
		assert_int_equal(failmalloc_outstanding(), allocations);
		if (!was)
			break;
		if (!run(arm, 0))
			fail_msg("run %lu has left harm", n);
	}
	arm(0);
	printf("# %lu runs\n", n);
	assert_true(n > least);
}

#if FAILMALLOC_CAN
static void every_allocation(void **state)
{
	(void)state;
	every_n(failmalloc_fail_nth, failmalloc_failed, 60);
}
#endif

static void every_socket_call(void **state)
{
	(void)state;
	every_n(failsys_fail_nth, sys_failed, 60);
}

/* The provider is loaded by the first fi_getinfo. */
static int load(void **state)
{
	struct conf_node node = { 0 };

	(void)state;
	setenv("FI_RVCM_LINGER", "1000", 1);
	setenv("FI_RVCM_CONNECT_TIMEOUT", "5000", 1);
	if (!open_info(&node))
		return -1;
	fi_freeinfo(node.info);
	return failmalloc_watch("librvcm-fi.so") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if FAILMALLOC_CAN
		cmocka_unit_test(every_allocation),
#endif
		cmocka_unit_test(every_socket_call),
	};

	return cmocka_run_group_tests_name("everyn_fi", tests, load, NULL);
}

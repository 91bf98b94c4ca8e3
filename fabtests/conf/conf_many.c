/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several domains in a process, many endpoints in each, which share its vector and its queue: every
 * endpoint writes to every one, itself included.
 */
#include "conf/conf.h"

#include <stdlib.h>

enum {
	DOMAINS = 3,
	ENDPOINTS = 5,
	ALL = DOMAINS * ENDPOINTS,
	SIZE = 20000 /* the longest: more than eager */
};

/* Endpoint i is of domain i / ENDPOINTS, and known everywhere as i. */
struct crowd {
	struct conf_node domains[DOMAINS];
	struct fid_ep *eps[ALL];
	uint8_t names[ALL][64];
};

static void open_endpoint(struct crowd *crowd, int i)
{
	struct conf_node *node = &crowd->domains[i / ENDPOINTS];
	size_t len = sizeof(crowd->names[i]);

	if (i % ENDPOINTS) {
		conf_ok(fi_endpoint(node->domain, node->info, &crowd->eps[i], NULL));
		conf_ok(fi_ep_bind(crowd->eps[i], &node->av->fid, 0));
		conf_ok(fi_ep_bind(crowd->eps[i], &node->txcq->fid, FI_TRANSMIT | FI_RECV));
		conf_ok(fi_enable(crowd->eps[i]));
	} else {
		const struct conf_options sourced = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

		conf_open(node, &sourced);
		crowd->eps[i] = node->ep;
	}
	conf_ok(fi_getname(&crowd->eps[i]->fid, crowd->names[i], &len));
}

static void crowd_open(struct crowd *crowd)
{
	for (int i = 0; i < ALL; i++)
		open_endpoint(crowd, i);
	for (int d = 0; d < DOMAINS; d++)
		for (int i = 0; i < ALL; i++) {
			fi_addr_t addr;

			assert_int_equal(fi_av_insert(crowd->domains[d].av, crowd->names[i], 1,
						      &addr, 0, NULL),
					 1);
			assert_int_equal(addr, i);
		}
}

static void crowd_progress(struct crowd *crowd)
{
	for (int d = 0; d < DOMAINS; d++)
		fi_cq_read(crowd->domains[d].txcq, NULL, 0);
}

static void crowd_close(struct crowd *crowd)
{
	for (int i = 0; i < ALL; i++)
		if (i % ENDPOINTS)
			conf_ok(fi_close(&crowd->eps[i]->fid));
	for (int d = 0; d < DOMAINS; d++)
		conf_close(&crowd->domains[d]);
}

#define CROWD_RETRY(crowd, call)                       \
	do {                                           \
		uint64_t end_ = conf_deadline();       \
		ssize_t rc_;                           \
                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN) { \
			crowd_progress(crowd);         \
			conf_not_late(end_);           \
		}                                      \
		assert_int_equal(rc_, 0);              \
	} while (0)

struct letter {
	struct fi_context2 sent, received;
	uint8_t out[SIZE], in[SIZE];
	int ends;
};

static size_t size_of(int from, int to)
{
	return (from + to) % 7 ? (size_t)(1 + from * 40 + to) : SIZE;
}

/* One completion: of a send or a receive of letters[from * ALL + to]. */
static void take(struct letter *letters, int domain, const struct fi_cq_tagged_entry *entry,
		 fi_addr_t source)
{
	ptrdiff_t at = (char *)entry->op_context - (char *)letters;
	int n = (int)(at / (ptrdiff_t)sizeof(*letters)), from = n / ALL, to = n % ALL;
	bool received = entry->op_context == &letters[n].received;

	assert_in_range(n, 0, ALL * ALL - 1);
	assert_int_equal((received ? to : from) / ENDPOINTS, domain);
	letters[n].ends++;
	if (!received)
		return;
	assert_int_equal(source, from);
	assert_int_equal(entry->tag, from);
	assert_int_equal(entry->len, size_of(from, to));
	conf_check(letters[n].in, entry->len, (uint32_t)n);
}

static void everybody_writes_to_everybody(void **state)
{
	struct letter *letters = calloc(ALL * ALL, sizeof(*letters));
	uint64_t deadline = conf_deadline();
	struct crowd crowd;
	int left = 2 * ALL * ALL;

	(void)state;
	crowd_open(&crowd);
	for (int n = 0; n < ALL * ALL; n++)
		CROWD_RETRY(&crowd, fi_trecv(crowd.eps[n % ALL], letters[n].in, SIZE, NULL,
					     (fi_addr_t)(n / ALL), (uint64_t)(n / ALL), 0,
					     &letters[n].received));
	for (int n = 0; n < ALL * ALL; n++) {
		conf_fill(letters[n].out, SIZE, (uint32_t)n);
		CROWD_RETRY(&crowd, fi_tsend(crowd.eps[n / ALL], letters[n].out,
					     size_of(n / ALL, n % ALL), NULL, (fi_addr_t)(n % ALL),
					     (uint64_t)(n / ALL), &letters[n].sent));
	}
	while (left > 0) {
		for (int d = 0; d < DOMAINS; d++) {
			struct fi_cq_tagged_entry entry;
			fi_addr_t source;
			ssize_t rc;

			rc = fi_cq_readfrom(crowd.domains[d].txcq, &entry, 1, &source);
			conf_not_late(deadline);
			if (rc == -FI_EAGAIN)
				continue;
			assert_int_equal(rc, 1);
			take(letters, d, &entry, source);
			left--;
		}
	}
	for (int n = 0; n < ALL * ALL; n++)
		assert_int_equal(letters[n].ends, 2);
	crowd_close(&crowd);
	free(letters);
}

/* One endpoint's end is not its siblings'. */
static void siblings_go_on(void **state)
{
	struct crowd crowd;
	struct fi_cq_tagged_entry entry;
	struct fi_context2 sent, received;
	uint64_t deadline = conf_deadline();
	char in;

	(void)state;
	crowd_open(&crowd);
	for (int gone = 1; gone < ENDPOINTS; gone++) {
		int from = gone + 1 < ENDPOINTS ? gone + 1 : 0, to = ENDPOINTS;

		conf_ok(fi_close(&crowd.eps[gone]->fid));
		CROWD_RETRY(&crowd, fi_trecv(crowd.eps[to], &in, 1, NULL, (fi_addr_t)from, 1, 0,
					     &received));
		CROWD_RETRY(&crowd,
			    fi_tsend(crowd.eps[from], "s", 1, NULL, (fi_addr_t)to, 1, &sent));
		for (int n = 0; n < 2;) {
			struct conf_node *node = &crowd.domains[n];
			ssize_t rc = fi_cq_read(node->txcq, &entry, 1);

			crowd_progress(&crowd);
			conf_not_late(deadline);
			assert_true(rc == 1 || rc == -FI_EAGAIN);
			n += rc == 1;
		}
	}
	for (int i = ENDPOINTS + 1; i < ALL; i++)
		if (i % ENDPOINTS)
			conf_ok(fi_close(&crowd.eps[i]->fid));
	for (int d = 0; d < DOMAINS; d++)
		conf_close(&crowd.domains[d]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_writes_to_everybody),
		cmocka_unit_test(siblings_go_on),
	};

	conf_provider();
	setenv("FI_RVCM_LINGER", "100", 0); /* ms: peers in this very thread cannot answer */
	return conf_run_tests("many", tests);
}

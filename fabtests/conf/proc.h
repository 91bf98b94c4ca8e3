/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process, for tests that need two: the same program again, told by its arguments what to
 * be, with a pipe each way. It may live in another network namespace, which makes it another host.
 */
#ifndef RVCM_FABTESTS_PROC_H
#define RVCM_FABTESTS_PROC_H

#include <sys/types.h>

#include "conf/conf.h"

#define CONF_LONG_BYTES (3u << 20)

struct conf_other {
	pid_t pid;
	int to, from;
};

struct conf_role {
	const char *name;
	void (*run)(struct conf_node *node, fi_addr_t peer, int to, int from);
};

/*
 * netns: the name of a namespace of ip-netns(8), or NULL = FABTEST_OTHER_NETNS, or ours. If
 * FABTEST_OTHER_NODE is set it is the other's FABTEST_NODE; and FABTEST_OTHER_DEVICE and _IFACE are
 * its FI_RVCM_DEVICE and _IFACE.
 */
void conf_other_start(struct conf_other *other, const char *netns, const char *role);
/* Start it, open our node, and meet; returns the other's number. */
fi_addr_t conf_other_meet(struct conf_other *other, const char *netns, const char *role,
			  struct conf_node *node, const struct conf_options *options);
/* It must have ended with this status of wait(2). */
void conf_other_end(struct conf_other *other, int status);

/*
 * Be the other: main's way out when argc is 4. Opens a node, meets the one that started us, runs
 * the role of that name, closes the node. Returns the exit status.
 */
int conf_play(const struct conf_role *roles, size_t n, const struct conf_options *options,
	      char **argv);

/* All of it; the test fails if the other has hung up. */
void conf_put(int fd, const void *buf, size_t len);
void conf_get(int fd, void *buf, size_t len);

/* Tell each other the names; returns the other's number. */
fi_addr_t conf_meet(struct conf_node *node, int to, int from);

/* What one process does alone: progress, without taking completions. */
void conf_drive(struct conf_node *node);

/* conf_get, of what may be long in coming: the other may need our progress for it. */
void conf_get_driving(struct conf_node *node, int fd, void *buf, size_t len);

/* Call until it does not say -FI_EAGAIN, and then it must have said 0. */
#define CONF_TRY(node, call)                           \
	do {                                           \
		uint64_t end_ = conf_deadline();       \
		ssize_t rc_;                           \
                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN) { \
			conf_drive(node);              \
			conf_not_late(end_);           \
		}                                      \
		assert_int_equal(rc_, 0);              \
	} while (0)

/* The next n completions, which must be successes. */
void conf_wait_for(struct conf_node *node, int n);

/* The next completion, which must be a failure. */
void conf_expect_error(struct conf_node *node, struct fi_cq_err_entry *error);
/* The same, read into *error as it is. */
void conf_next_error(struct conf_node *node, struct fi_cq_err_entry *error);

/* Both run this: messages of many sizes each way at once, every byte checked. */
void conf_exchange(struct conf_node *node, fi_addr_t peer, uint32_t first, uint32_t last);

#endif

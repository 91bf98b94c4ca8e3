/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs that run on host 1 of hosts.sh, whose namespaces' names begin with RVCM_HOSTS, and
 * start other processes on the others.
 */
#ifndef RVCM_FABTESTS_HOST_H
#define RVCM_FABTESTS_HOST_H

#include "conf/proc.h"

/* Run a command; "@" in it stands for what the namespaces' names begin with. */
void host_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The namespace of a host. */
const char *host_name(int number, char name[64]);

/* One of two processes that talk to each other, and the other, which plays a role elsewhere. */
struct host_pair {
	struct conf_node node;
	struct conf_other other;
	fi_addr_t peer;
};

void host_pair_open(struct host_pair *p, int number, const char *role,
		    const struct conf_options *options);
/* The other must end with this status of wait(2). */
void host_pair_close(struct host_pair *p, int status);

/* A word to the other; and its word, while we make progress. */
void host_say(const struct conf_other *other);
void host_hear(struct host_pair *p);
/* The other side's: wait for the word, without progress. */
void host_await(int from);

/* The next completion is this failure, and its text names the peer. */
void host_expect(struct conf_node *node, int err);
/* What an application reads about a failure has this in it. */
void host_check_text(struct conf_node *node, const struct fi_cq_err_entry *error,
		     const char *expected);

/*
 * The rest of main: plays a role with options if that is asked for; else runs the tests with the
 * name in argv[1], "*" stands for anything, or all.
 */
#define host_main(argc, argv, roles, options, name, tests)                                 \
	((argc) == 4 ? conf_play(roles, sizeof(roles) / sizeof((roles)[0]), options, argv) \
		     : (host_choose(argc, argv),                                           \
			cmocka_run_group_tests_name(name, tests, NULL, NULL)))
/* Ends the process if there are no hosts. */
void host_choose(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plans that the engines are run under: each fault at the n-th operation of each kind, on
 * either side, for n = 1, 2, ... until there is no n-th any more; each every so often; and several
 * at random.
 *
 *   PROGRAM                          a share of them: n = 1, 3, 7, 15, ...
 *   FAULT_ALL=1 PROGRAM              all of them
 *   PROGRAM well|calm|recovers|fails PLAN [PLAN [LINKS]]
 *                                    the plans of both sides; what may become of it: see engines.h;
 *                                    calm: nothing is recovered, for no link is lost
 *   FAULT_LOG=LEVEL PROGRAM ...      what is logged goes to stderr, up to this level (base/log.h)
 */
#include "fault/engines.h"

#include "unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/logged.h"

#define PLAN_BYTES 400

static int (*dev_open)(int side, struct rvcm_dev **dev);

struct sweep {
	const char *point, *fault;
	unsigned long least; /* there are at least so many, on either side */
};

static struct engines_conf conf_of(bool recovers, bool all_well)
{
	return (struct engines_conf) {
		.dev_open = dev_open, .recovers = recovers, .all_well = all_well, .n_links = 1
	};
}

static unsigned long next(unsigned long n)
{
	return getenv("FAULT_ALL") ? n + 1 : 2 * n + 1;
}

/* On one side; returns the first n that is not there any more. */
static unsigned long sweep_side(const struct engines_conf *base, const struct sweep *sweep,
				int side, struct engines_sums *sums)
{
	struct engines_conf conf = *base;
	char plan[PLAN_BYTES];
	unsigned long n = 1;

	conf.plans[side] = plan;
	conf.plans[!side] = NULL;
	for (;; n = next(n)) {
		snprintf(plan, sizeof(plan), "%s:%lu=%s", sweep->point, n, sweep->fault);
		engines_run(&conf, sums);
		if (!sums->faults[side])
			return n;
	}
}

static void sweep_all(const struct engines_conf *conf, const struct sweep *sweeps, size_t n)
{
	struct engines_sums sums = { .runs = 0 };

	for (size_t i = 0; i < n; i++)
		for (int side = 0; side < 2; side++)
			assert_true(sweep_side(conf, &sweeps[i], side, &sums) > sweeps[i].least);
	printf("# %llu runs, %llu faults, %llu recoveries, %llu errors\n",
	       (unsigned long long)sums.runs, (unsigned long long)sums.all_faults,
	       (unsigned long long)sums.recoveries, (unsigned long long)sums.errors);
	assert_true(!conf->recovers || sums.recoveries > 0);
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* -- what is recovered from ------------------------------------------------------------------- */

static const struct sweep links[] = {
	{ "post", "break", 20 },    { "post", "lost", 20 }, { "post", "blind:5ms", 20 },
	{ "post", "ENOTCONN", 20 }, { "sent", "error", 1 }, { "recv", "error:RETRY_EXCEEDED", 20 },
	{ "recv", "break", 20 },    { "recv", "lost", 20 }, { "wc", "blind:5ms", 20 },
	{ "read", "break", 1 },
};

static void lost_links_are_made_again(void **state)
{
	struct engines_conf conf = conf_of(true, true);

	(void)state;
	sweep_all(&conf, links, COUNT(links));
}

static void with_side_links_too(void **state)
{
	static const struct sweep some[] = {
		{ "post", "break", 20 },
		{ "wc", "error", 20 },
	};
	struct engines_conf conf = conf_of(true, true);

	(void)state;
	conf.n_links = 3;
	sweep_all(&conf, some, COUNT(some));
}

/* Nothing is lost by these, so there is nothing to recover from. */
static void what_is_late_or_full_costs_nothing(void **state)
{
	static const struct sweep some[] = {
		{ "post", "EAGAIN", 20 },
		{ "wc", "delay:1ms", 20 },
		{ "recv", "delay:7", 20 },
		{ "event", "delay:3ms", 0 },
	};
	struct engines_conf conf = conf_of(false, true);
	struct engines_sums sums = { .runs = 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(some); i++)
		for (int side = 0; side < 2; side++)
			assert_true(sweep_side(&conf, &some[i], side, &sums) > some[i].least);
	assert_int_equal(sums.errors, 0);
}

/* -- what is not ------------------------------------------------------------------------------ */

static void without_recovery_everything_ends(void **state)
{
	struct engines_conf conf = conf_of(false, false);

	(void)state;
	sweep_all(&conf, links, COUNT(links));
}

static void what_is_not_recovered_from_ends(void **state)
{
	static const struct sweep some[] = {
		{ "post", "ENOMEM", 20 },      { "post", "EIO", 20 },
		{ "recv", "error:FATAL", 20 }, { "sent", "error:REMOTE_ACCESS", 1 },
		{ "post", "gone", 20 },        { "recv", "gone", 20 },
		{ "mr_reg", "ENOMEM", 2 },     { "flush", "EIO", 0 },
		{ "mr_reg", "EFAULT", 2 },     { "accept", "ECONNRESET", 0 },
	};
	struct engines_conf conf = conf_of(true, false);
	struct engines_sums sums = { .runs = 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(some); i++)
		for (int side = 0; side < 2; side++)
			assert_true(sweep_side(&conf, &some[i], side, &sums) > some[i].least);
}

/* -- connecting, and everything at once ------------------------------------------------------- */

static void run(bool recovers, bool all_well, const char *first, const char *second)
{
	struct engines_conf conf = conf_of(recovers, all_well);
	struct engines_sums sums = { .runs = 0 };

	conf.plans[0] = first;
	conf.plans[1] = second;
	engines_run(&conf, &sums);
	assert_true(!first || sums.faults[0] > 0);
}

static void first_contacts_are_tried_again(void **state)
{
	static const char *const plans[] = {
		"connect:1=refuse",
		"connect:1=stale;connect:2=stale",
		"connect:1=timeout:5ms;connect:2=unreachable;connect:3=refuse",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(plans); i++)
		run(true, true, plans[i], plans[i]);
}

static void lost_links_do_not_come_again_at_once(void **state)
{
	(void)state;
	run(true, true, "post:30=break;connect:2=timeout:20ms;connect:3=stale",
	    "connect:1=unreachable;connect:2=unreachable");
	run(true, true, "recv:10=lost;post:60=break;event:every:3=delay:2ms",
	    "recv:15=break;post:80=lost");
}

static void polling_pauses(void **state)
{
	(void)state;
	run(true, true, "poll:every:10=pause:1ms", "poll:every:25=pause:5ms");
}

static void whatever_happens_at_random(void **state)
{
	char first[PLAN_BYTES], second[PLAN_BYTES];
	static const char faults[] =
		"seed=%d;post:1/150=break;recv:1/150=lost;wc:1/300=error;post:1/300=blind:3ms;"
		"wc:1/50=delay:500us;poll:1/500=pause:1ms;connect:1/4=timeout:5ms";
	int n = getenv("FAULT_ALL") ? 300 : 8;

	(void)state;
	for (int seed = 1; seed <= n; seed++) {
		struct engines_conf conf = conf_of(true, true);
		struct engines_sums sums = { .runs = 0 };

		snprintf(first, sizeof(first), faults, seed);
		snprintf(second, sizeof(second), faults, seed + 1000);
		conf.plans[0] = first;
		conf.plans[1] = second;
		conf.n_links = 1 + (uint32_t)(seed % 2) * 2;
		engines_run(&conf, &sums);
	}
}

/* -- one ------------------------------------------------------------------------------------- */

static char **words;

static void the_plans_given(void **state)
{
	bool all_well = strcmp(words[0], "well") == 0, calm = strcmp(words[0], "calm") == 0;
	struct engines_conf conf =
		conf_of(all_well || strcmp(words[0], "recovers") == 0, all_well || calm);
	struct engines_sums sums = { .runs = 0 };

	(void)state;
	conf.plans[0] = words[1];
	conf.plans[1] = words[1] ? words[2] : NULL;
	if (conf.plans[1] && words[3])
		conf.n_links = (uint32_t)atoi(words[3]);
	engines_run(&conf, &sums);
	printf("# %llu and %llu faults, %llu recoveries, %llu errors\n",
	       (unsigned long long)sums.faults[0], (unsigned long long)sums.faults[1],
	       (unsigned long long)sums.recoveries, (unsigned long long)sums.errors);
	assert_true(!calm || sums.losses == 0);
}

int engines_main(int argc, char **argv, const char *group,
		 int (*open)(int side, struct rvcm_dev **dev))
{
	const struct CMUnitTest one[] = { cmocka_unit_test(the_plans_given) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_links_are_made_again),
		cmocka_unit_test(with_side_links_too),
		cmocka_unit_test(what_is_late_or_full_costs_nothing),
		cmocka_unit_test(without_recovery_everything_ends),
		cmocka_unit_test(what_is_not_recovered_from_ends),
		cmocka_unit_test(first_contacts_are_tried_again),
		cmocka_unit_test(lost_links_do_not_come_again_at_once),
		cmocka_unit_test(polling_pauses),
		cmocka_unit_test(whatever_happens_at_random),
	};

	dev_open = open;
	test_logged_by("FAULT_LOG");
	words = argv + 1;
	if (argc > 1)
		return cmocka_run_group_tests_name(group, one, NULL, NULL);
	return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

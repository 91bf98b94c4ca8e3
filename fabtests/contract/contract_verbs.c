/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract on RDMA devices: the kernel's soft ones in a guest, or real ones. CONTRACT_DEVICES
 * names them ("rxe0,siw0"); each is a target, with both sides at its address. With CONTRACT_FAULT
 * they are behind dev/fault.
 */
#include "contract/contract_fault.h"
#include "contract/contract_real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/verbs/verbs.h"
#include "unit/logged.h"

#define DEVICES_MAX 16
#define TARGETS_MAX 8

static int open_pair(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	int rc = 0;

	*ctx = NULL;
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = rvcm_verbs_open(target->arg, NULL, &dev[i]);
	return rc;
}

static void close_pair(void *ctx)
{
	(void)ctx;
}

static const struct rvcm_dev_attr *find(const struct rvcm_dev_attr *attrs, int n, const char *name)
{
	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		if (strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
	fprintf(stderr, "there is no device %s\n", name);
	exit(1);
}

/*
 * A sender counts how often it found no receive, and the receiver knows nothing of it. iWARP has
 * nothing of the kind, and the kernel's siw keeps to itself what a TERMINATE says, and asks for no
 * right before it answers a READ.
 */
static uint32_t lacks(const struct rvcm_dev_attr *attr)
{
	return attr->caps & RVCM_DEV_CAP_PLACED
		       ? CONTRACT_COUNTS
		       : CONTRACT_COUNTS | CONTRACT_WAITS | CONTRACT_TELLS | CONTRACT_RIGHTS;
}

/* Each behind dev/fault. */
static void decorate(struct contract_target *targets, size_t n)
{
	static struct contract_target inner[TARGETS_MAX];
	static char names[TARGETS_MAX][80];

	for (size_t i = 0; i < n; i++) {
		inner[i] = targets[i];
		snprintf(names[i], sizeof(names[i]), "decorated %s", targets[i].name);
		targets[i] = contract_fault(&inner[i], names[i]);
	}
}

/* An argument is a pattern of the tests to be run. */
int main(int argc, char **argv)
{
	static struct rvcm_dev_attr attrs[DEVICES_MAX];
	struct contract_target targets[TARGETS_MAX];
	char *names = getenv("CONTRACT_DEVICES"), *name;
	size_t n_targets = 0;
	int n;

	if (!names) {
		fprintf(stderr, "CONTRACT_DEVICES=rxe0,siw0 names the devices\n");
		return 1;
	}
	test_logged_begin(RVCM_LOG_WARN);
	test_logged_by("CONTRACT_LOG");
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	n = rvcm_verbs_class.enumerate(attrs, DEVICES_MAX);
	for (name = strtok(names, ", "); name && n_targets < TARGETS_MAX; name = strtok(NULL, ", "))
		targets[n_targets++] = (struct contract_target) {
			.name = name,
			.open = open_pair,
			.close = close_pair,
			.turn = contract_real_turn,
			.settle = contract_real_settle,
			.now_ns = contract_real_now_ns,
			.real = true,
			.lacks = lacks(find(attrs, n, name)),
			.arg = find(attrs, n, name),
		};
	if (getenv("CONTRACT_FAULT"))
		decorate(targets, n_targets);
	return contract_main("contract_verbs", targets, n_targets);
}

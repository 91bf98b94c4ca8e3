/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract on the software RNIC, over real sockets of the loopback interface. */
#include "contract/contract_fault.h"
#include "contract/contract_real.h"
#include "unit/loopback.h"

struct shape {
	bool v6;
	bool crc;
	bool many; /* take the path of many QPs */
	bool tiny; /* segments and thresholds as small as they get */
	bool cut;  /* long messages are of many segments, and are shown */
};

static const struct shape v4 = { .v6 = false };
static const struct shape v6 = { .v6 = true };
static const struct shape crc = { .crc = true };
static const struct shape many = { .many = true };
static const struct shape tiny = { .tiny = true, .crc = true };
static const struct shape cut = { .cut = true };

static bool find(const struct shape *shape, struct rvcm_dev_attr *attr)
{
	return test_loopback(shape->v6 ? RVCM_ADDR_V6 : RVCM_ADDR_V4, attr);
}

static int open_pair(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	const struct shape *shape = target->arg;
	struct rvcm_soft_tunables tun;
	struct rvcm_dev_attr attr;
	int rc = 0;

	rvcm_soft_tunables_init(&tun);
	tun.crc = shape->crc;
	if (shape->many)
		tun.poll_direct_max = 0;
	if (shape->tiny) {
		tun.segment_bytes_max = 512;
		tun.copy_bytes_max = 256;
		tun.direct_bytes_min = 1;
		tun.bulk_read_bytes = 64;
	}
	if (shape->cut) {
		tun.segment_bytes_max = 4096;
		tun.head_bytes_min = 512;
		tun.direct_bytes_min = 64;
		tun.bulk_read_bytes = 64;
	}
	*ctx = NULL;
	assert_true(find(shape, &attr));
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = rvcm_soft_open(&attr, &tun, &dev[i]);
	return rc;
}

static void close_pair(void *ctx)
{
	(void)ctx;
}

#define SOFT_TARGET(shape)                                                     \
	{                                                                      \
		.name = #shape, .open = open_pair, .close = close_pair,        \
		.turn = contract_real_turn, .settle = contract_real_settle,    \
		.now_ns = contract_real_now_ns, .real = true, .arg = &(shape), \
	}

static const struct contract_target targets[] = {
	SOFT_TARGET(v4),   SOFT_TARGET(v6),   SOFT_TARGET(crc),
	SOFT_TARGET(many), SOFT_TARGET(tiny), SOFT_TARGET(cut),
};

#define N_TARGETS (sizeof(targets) / sizeof(targets[0]))

int main(void)
{
	struct rvcm_dev_attr attr;
	size_t n = 0;
	struct contract_target have[N_TARGETS + 1];

	for (size_t i = 0; i < N_TARGETS; i++) {
		const struct shape *shape = targets[i].arg;

		if (find(shape, &attr))
			have[n++] = targets[i];
	}
	have[n++] = contract_fault(&targets[N_TARGETS - 1], "decorated cut");
	return contract_main("contract_soft", have, n);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions over two devices that count. */
#include <errno.h>
#include <stdlib.h>

#include "unit/unit.h"
#include "unit/failmem.h"
#include "mr/mr.h"

struct counting_dev {
	struct rvcm_dev dev;
	int fail;
	int regs, deregs;
	struct rvcm_dev_mr_attr last;
};

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **mr)
{
	struct counting_dev *d = (struct counting_dev *)dev;

	if (d->fail)
		return d->fail;
	d->regs++;
	d->last = *attr;
	*mr = calloc(1, sizeof(**mr));
	(*mr)->dev = dev;
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *mr)
{
	((struct counting_dev *)mr->dev)->deregs++;
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

static struct counting_dev a, b;

static struct rvcm_mr_domain *open_domain(void)
{
	struct rvcm_dev *devs[] = { &a.dev, &b.dev };
	struct rvcm_mr_domain *domain;

	a = (struct counting_dev) { .dev.ops = &ops };
	b = (struct counting_dev) { .dev.ops = &ops };
	assert_int_equal(rvcm_mr_domain_open(devs, 2, NULL, &domain), 0);
	return domain;
}

static void a_device_is_used_when_asked_for(void **state)
{
	struct rvcm_mr_domain *domain = open_domain();
	struct rvcm_dev_mr *first, *again;
	struct rvcm_mr *mr;
	char buf[10];

	(void)state;
	assert_int_equal(rvcm_mr_get(domain, buf, 10, RVCM_DEV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(a.regs + b.regs, 0);
	assert_int_equal(rvcm_mr_dev(mr, 1, &first), 0);
	assert_int_equal(rvcm_mr_dev(mr, 1, &again), 0);
	assert_ptr_equal(first, again);
	assert_ptr_equal(first->dev, &b.dev);
	assert_int_equal(a.regs, 0);
	assert_int_equal(b.regs, 1);
	assert_ptr_equal(b.last.addr, buf);
	assert_int_equal(b.last.length, 10);
	assert_int_equal(b.last.access, RVCM_DEV_ACCESS_LOCAL_WRITE);
	assert_int_equal(b.deregs, 0);
	rvcm_mr_put(mr);
	assert_int_equal(a.deregs, 0);
	assert_int_equal(b.deregs, 1);
	rvcm_mr_put(NULL);
	rvcm_mr_domain_close(domain);
}

static void a_refusal_is_not_kept(void **state)
{
	struct rvcm_mr_domain *domain = open_domain();
	struct rvcm_dev_mr *dev_mr = NULL;
	struct rvcm_mr *mr;

	(void)state;
	assert_int_equal(rvcm_mr_get(domain, NULL, 0, RVCM_DEV_ACCESS_REMOTE_READ, &mr), 0);
	a.fail = -ENOMEM;
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), -ENOMEM);
	assert_null(dev_mr);
	a.fail = 0;
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), 0);
	assert_non_null(dev_mr);
	rvcm_mr_put(mr);
	assert_int_equal(a.deregs, 1);
	rvcm_mr_domain_close(domain);
}

static void a_domain_has_one_to_eight_devices(void **state)
{
	struct rvcm_dev *devs[RVCM_MR_DEVS_MAX + 1];
	struct rvcm_mr_domain *domain = NULL;

	(void)state;
	for (uint32_t i = 0; i <= RVCM_MR_DEVS_MAX; i++)
		devs[i] = &a.dev;
	assert_int_equal(rvcm_mr_domain_open(devs, 0, NULL, &domain), -EINVAL);
	assert_int_equal(rvcm_mr_domain_open(devs, RVCM_MR_DEVS_MAX + 1, NULL, &domain), -EINVAL);
	assert_null(domain);
	assert_int_equal(rvcm_mr_domain_open(devs, RVCM_MR_DEVS_MAX, NULL, &domain), 0);
	rvcm_mr_domain_close(domain);
}

static void memory_runs_out(void **state)
{
	struct rvcm_mr_domain *domain = NULL;
	struct rvcm_dev *devs[] = { &a.dev };
	struct rvcm_mr *mr = NULL;

	(void)state;
	failmem_fail_nth(1);
	assert_int_equal(rvcm_mr_domain_open(devs, 1, NULL, &domain), -ENOMEM);
	assert_null(domain);
	domain = open_domain();
	failmem_fail_nth(1);
	assert_int_equal(rvcm_mr_get(domain, NULL, 0, 0, &mr), -ENOMEM);
	assert_null(mr);
	failmem_fail_nth(0);
	rvcm_mr_domain_close(domain);
	assert_int_equal(failmem_outstanding(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_used_when_asked_for),
		cmocka_unit_test(a_refusal_is_not_kept),
		cmocka_unit_test(a_domain_has_one_to_eight_devices),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests_name("mr", tests, NULL, NULL);
}

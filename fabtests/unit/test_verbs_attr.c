/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device is said to be: its limits, its adapter. */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "dev/verbs/limits.h"
#include "dev/verbs/nic.h"

static void limits_are_the_devices_and_not_more(void **state)
{
	struct ibv_device_attr device = { .max_qp_wr = 100,
					  .max_sge = 32,
					  .max_cqe = 1000,
					  .max_qp = 7,
					  .max_mr = 9,
					  .max_srq = 1,
					  .max_srq_wr = 50,
					  .max_qp_rd_atom = 16,
					  .max_qp_init_rd_atom = 4,
					  .atomic_cap = IBV_ATOMIC_HCA };
	struct ibv_port_attr port = { .max_msg_sz = 1u << 20, .active_mtu = IBV_MTU_1024 };
	struct rvcm_dev_attr attr;

	(void)state;
	memset(&attr, 0, sizeof(attr));
	rvcm_verbs_limits_attr(&attr, &device, &port, false, 128);
	assert_int_equal(attr.sq_depth_max, 99); /* one is our own */
	assert_int_equal(attr.rq_depth_max, 50);
	assert_int_equal(attr.cq_depth_max, 1000);
	assert_int_equal(attr.sge_max, RVCM_VERBS_SGE_MAX);
	assert_int_equal(attr.qp_max, 7);
	assert_int_equal(attr.mr_max, 9);
	assert_int_equal(attr.message_bytes_max, 1u << 20);
	assert_int_equal(attr.inline_bytes_max, 128);
	assert_int_equal(attr.mtu_bytes, 1024);
	assert_int_equal(attr.private_data_bytes, 56);
	assert_int_equal(attr.caps, RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_READ |
					    RVCM_DEV_CAP_PLACED | RVCM_DEV_CAP_IMM32 |
					    RVCM_DEV_CAP_FOREROOM | RVCM_DEV_CAP_ATOMIC);
	assert_int_equal(rvcm_verbs_limits_reads(&device), 4);
	rvcm_verbs_limits_attr(&attr, &device, &port, true, 0);
	assert_int_equal(attr.caps, RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_READ);
	assert_true(attr.private_data_bytes > 56);
}

/* Whose READs are answered by the CPU of who posts them: and it takes shorter messages eagerly. */
static void who_moves_what_it_posts_shares(void **state)
{
	struct ibv_device_attr rxe = { .vendor_id = 0xffffff,
				       .max_qp_rd_atom = 128,
				       .max_qp_init_rd_atom = 128 };
	struct ibv_device_attr siw = rxe, dumb = rxe;
	struct ibv_port_attr port = { .active_mtu = IBV_MTU_1024 };
	struct rvcm_dev_attr attr, other;

	(void)state;
	siw.vendor_id = 0x626d74;
	dumb.max_qp_rd_atom = 0;
	rvcm_verbs_limits_attr(&attr, &rxe, &port, false, 128);
	assert_true(attr.pushes && attr.shares);
	rvcm_verbs_limits_attr(&other, &siw, &port, true, 0);
	assert_true(other.pushes && !other.shares);
	assert_true(attr.pool_message_bytes < other.pool_message_bytes);
	rvcm_verbs_limits_attr(&other, &dumb, &port, false, 128);
	assert_true(other.pushes && !other.shares);
}

/* Zero, negative and enormous numbers: a device that says nothing, or all that an int holds. */
static void limits_of_a_strange_device_are_usable(void **state)
{
	static const int numbers[] = { 0, -1, 1, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int n = numbers[i];
		struct ibv_device_attr device = { .max_qp_wr = n,
						  .max_sge = n,
						  .max_cqe = n,
						  .max_qp = n,
						  .max_mr = n,
						  .max_srq_wr = n,
						  .max_qp_rd_atom = n,
						  .max_qp_init_rd_atom = n };
		struct ibv_port_attr port = { .max_msg_sz = 0, .active_mtu = IBV_MTU_256 };
		struct rvcm_dev_attr attr;

		memset(&attr, 0, sizeof(attr));
		rvcm_verbs_limits_attr(&attr, &device, &port, false, 0);
		assert_in_range(attr.sq_depth_max, 1, 1u << 16);
		assert_in_range(attr.rq_depth_max, 1, 1u << 16);
		assert_in_range(attr.cq_depth_max, 1, 1u << 20);
		assert_in_range(attr.sge_max, 1, RVCM_VERBS_SGE_MAX);
		assert_true(attr.qp_max >= 1);
		assert_true(attr.message_bytes_max > 0);
		assert_int_equal(!!(attr.caps & RVCM_DEV_CAP_READ), n > 0);
		assert_false(attr.caps & RVCM_DEV_CAP_ATOMIC);
	}
}

static uint64_t waits_us(struct rvcm_verbs_rnr rnr)
{
	/* IBTA volume 1, table 46: some of it. */
	static const uint32_t us[32] = { [1] = 10, [12] = 640, [23] = 30720, [31] = 491520 };

	return (uint64_t)us[rnr.timer] * rnr.retries;
}

static void a_receiver_is_waited_for_as_long_as_it_says(void **state)
{
	struct rvcm_verbs_rnr rnr = rvcm_verbs_limits_rnr(0);
	uint64_t last = 0;

	(void)state;
	assert_int_equal(rnr.retries, 0);
	assert_int_equal(rvcm_verbs_limits_rnr(UINT64_MAX).retries, 7);
	assert_int_equal(rvcm_verbs_limits_rnr(60000000000ull).retries, 7);
	for (uint64_t ns = 1; ns < 2900000000ull; ns = ns * 3 / 2 + 1) {
		rnr = rvcm_verbs_limits_rnr(ns);
		assert_in_range(rnr.timer, 1, 31);
		assert_in_range(rnr.retries, 1, 6);
		if (waits_us(rnr))
			assert_true(waits_us(rnr) * 1000 >= ns && waits_us(rnr) >= last);
		last = waits_us(rnr) ? waits_us(rnr) : last;
	}
}

static void a_device_gives_up_after_its_retries(void **state)
{
	struct rvcm_verbs_tunables tun;

	(void)state;
	rvcm_verbs_tunables_init(&tun);
	tun.ack_timeout = 17; /* 0.54 s, 4 times at most, and 7 tries: 15 s */
	tun.retry_count = 6;
	tun.keepalive_ms = 10000;
	assert_int_equal(rvcm_verbs_limits_doubts(&tun), 3);
	tun.keepalive_ms = 1000;
	assert_int_equal(rvcm_verbs_limits_doubts(&tun), 17);
	tun.keepalive_ms = 0;
	assert_int_equal(rvcm_verbs_limits_doubts(&tun), 0);
	tun.keepalive_ms = 1000;
	tun.ack_timeout = 0; /* never */
	assert_int_equal(rvcm_verbs_limits_doubts(&tun), 0);
}

static void no_memory_names_the_limit(void **state)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	struct rlimit was, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	low = was;
	low.rlim_cur = 64 * 1024 < was.rlim_max ? 64 * 1024 : was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	assert_non_null(strstr(rvcm_verbs_limits_text(ENOMEM, text), "ulimit -l"));
	assert_non_null(strstr(text, "64 KiB"));
	assert_null(strstr(rvcm_verbs_limits_text(EINVAL, text), "ulimit"));
	assert_non_null(strstr(text, "errno 22"));
	assert_int_equal(rvcm_verbs_limits_locked(EPERM), EPERM);
	low.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	assert_int_equal(rvcm_verbs_limits_locked(EPERM), ENOMEM);
	assert_int_equal(rvcm_verbs_limits_locked(EINVAL), EINVAL);
	assert_int_equal(rvcm_verbs_limits_locked(0), ENOMEM);
	assert_non_null(strstr(rvcm_verbs_limits_text(ENOMEM, text), "0 KiB"));
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
}

static void places_on_pci_are_read(void **state)
{
	struct rvcm_dev_nic nic;

	(void)state;
	memset(&nic, 0, sizeof(nic));
	assert_true(rvcm_verbs_nic_pci("../../../0000:3b:1f.7", &nic));
	assert_true(nic.on_pci);
	assert_int_equal(nic.pci_domain, 0);
	assert_int_equal(nic.pci_bus, 0x3b);
	assert_int_equal(nic.pci_device, 0x1f);
	assert_int_equal(nic.pci_function, 7);
	memset(&nic, 0, sizeof(nic));
	assert_false(rvcm_verbs_nic_pci("../../virtio0", &nic));
	assert_false(rvcm_verbs_nic_pci("", &nic));
	assert_false(rvcm_verbs_nic_pci("0000:3b:1f.7x", &nic));
	assert_false(nic.on_pci);
}

static void what_is_down_is_named(void **state)
{
	char text[RVCM_VERBS_NIC_DOWN_MAX];

	(void)state;
	assert_non_null(strstr(rvcm_verbs_nic_down("eth0", text), "(ip link set eth0 up)"));
	assert_non_null(strstr(text, "link?")); /* not cut */
	assert_non_null(strstr(rvcm_verbs_nic_down(NULL, text), "rdma link"));
	assert_non_null(strstr(text, "link?"));
}

static void rates_are_read(void **state)
{
	(void)state;
	assert_int_equal(rvcm_verbs_nic_rate("100 Gb/sec (4X EDR)"), 100000000000);
	assert_int_equal(rvcm_verbs_nic_rate("2.5 Gb/sec (1X SDR)"), 2500000000);
	assert_int_equal(rvcm_verbs_nic_rate(""), 0);
	assert_int_equal(rvcm_verbs_nic_rate("fast"), 0);
	assert_int_equal(rvcm_verbs_nic_rate("-1 Gb/sec"), 0);
	assert_int_equal(rvcm_verbs_nic_rate("inf Gb/sec"), 0);
	assert_int_equal(rvcm_verbs_nic_rate("nan Gb/sec"), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_the_devices_and_not_more),
		cmocka_unit_test(limits_of_a_strange_device_are_usable),
		cmocka_unit_test(who_moves_what_it_posts_shares),
		cmocka_unit_test(a_receiver_is_waited_for_as_long_as_it_says),
		cmocka_unit_test(a_device_gives_up_after_its_retries),
		cmocka_unit_test(no_memory_names_the_limit),
		cmocka_unit_test(places_on_pci_are_read),
		cmocka_unit_test(what_is_down_is_named),
		cmocka_unit_test(rates_are_read),
	};

	return cmocka_run_group_tests_name("verbs_attr", tests, NULL, NULL);
}

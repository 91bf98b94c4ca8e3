/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the contract has no words for: ports that go down, addresses that change, peers that never
 * answer, devices that are removed under us. In a guest, as root: each test makes an interface and
 * an RDMA device of its own on it, one of the kernel's software devices.
 *
 *   test_verbs_cm [PATTERN]   of the tests' names
 */
#include "contract/contract_real.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "dev/verbs/verbs.h"

#define DEVICES_MAX 16

/* A kind of device, and how its interface is made. */
struct kind {
	const char *type;
	const char *setup;
	const char *teardown;
};

#define MAKE(type) "rdma link add cm0 type " type " netdev cmif"
#define GONE       "rdma link delete cm0 2>/dev/null; ip link delete cmif"

/* Of two slaves, whose address is the bond's while they are active. */
static const struct kind rxe = {
	"rxe",
	"modprobe bonding max_bonds=0 && "
	"ip link add cmif type bond mode active-backup fail_over_mac active && "
	"ip link add cma type dummy && ip link add cmb type dummy && "
	"ip link set cma master cmif && ip link set cmb master cmif && "
	"ip addr add 10.77.5.1/24 dev cmif && ip link set cmif up && "
	"ip link set cmif type bond active_slave cma && " MAKE("rxe"),
	GONE "; ip link delete cma; ip link delete cmb",
};

static const struct kind siw = {
	"siw",
	"ip link add cmif type dummy && ip addr add 10.77.5.1/24 dev cmif && "
	"ip link set cmif up && " MAKE("siw"),
	GONE,
};

static int run(const char *command)
{
	int rc = system(command);

	if (rc)
		print_error("%s: status %d\n", command, rc);
	return rc;
}

/* The device is there some time after its interface is up. */
static bool find(struct rvcm_dev_attr *attr)
{
	static struct rvcm_dev_attr attrs[DEVICES_MAX];

	for (int tries = 0; tries < 100; tries++) {
		int n = rvcm_verbs_class.enumerate(attrs, DEVICES_MAX);

		for (int i = 0; i < n && i < DEVICES_MAX; i++)
			if (strcmp(attrs[i].name, "cm0") == 0) {
				*attr = attrs[i];
				return true;
			}
		poll(NULL, 0, 50);
	}
	return false;
}

static int open_pair(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	struct rvcm_verbs_tunables tun;
	const struct kind *kind = target->arg;
	struct rvcm_dev_attr attr;
	int rc = 0;

	*ctx = (void *)(uintptr_t)kind;
	if (run(kind->setup))
		return -EIO;
	if (!find(&attr))
		return -ENODEV;
	rvcm_verbs_tunables_init(&tun);
	tun.connect_timeout_ms = 500;
	tun.resolve_timeout_ms = 200;
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = rvcm_verbs_open(&attr, &tun, &dev[i]);
	return rc;
}

static pid_t remove_device(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("sh", "sh", "-c", "rdma link delete cm0 2>/dev/null", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static bool ended(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WNOHANG) == pid;
}

/* librdmacm keeps the device open, since it was used with it. */
static void let_go(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	int fd = open("/dev/null", O_RDWR);

	for (int i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]->device), "cm0") == 0) {
			dup2(fd, list[i]->cmd_fd);
			dup2(fd, list[i]->async_fd);
		}
	close(fd);
	if (list)
		rdma_free_devices(list);
}

static void close_pair(void *ctx)
{
	const struct kind *kind = ctx;

	let_go();
	(void)system("rdma link delete cm0 2>/dev/null"); /* unless the test did it */
	(void)run(kind->teardown);
}

/* -- tests ------------------------------------------------------------------------------------ */

/* Of the device. How its port is may be told late: of when it was made, or before it is removed. */
static const struct contract_event *device_event(struct contract *c, int side,
						 enum rvcm_dev_event_type type)
{
	const struct contract_event *event;

	do
		event = contract_any_event(c, side, NULL);
	while (event->ev.type != type && (event->ev.type == RVCM_DEV_EVENT_PORT_UP ||
					  event->ev.type == RVCM_DEV_EVENT_PORT_DOWN));
	assert_int_equal(event->ev.type, type);
	return event;
}

static void a_port_goes_down_and_up(struct contract *c)
{
	assert_int_equal(run("ip link set cmif down"), 0);
	for (int i = 0; i < 2; i++)
		device_event(c, i, RVCM_DEV_EVENT_PORT_DOWN);
	assert_int_equal(run("ip link set cmif up"), 0);
	for (int i = 0; i < 2; i++)
		device_event(c, i, RVCM_DEV_EVENT_PORT_UP);
}

static void a_device_without_a_port_is_not_offered(struct contract *c)
{
	struct rvcm_dev_attr attrs[DEVICES_MAX];
	int n;

	(void)c;
	assert_int_equal(run("ip link set cmif down"), 0);
	n = rvcm_verbs_class.enumerate(attrs, DEVICES_MAX);
	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		assert_string_not_equal(attrs[i].name, "cm0");
	assert_int_equal(run("ip link set cmif up"), 0);
}

/* Who listens does not poll. */
static void a_peer_that_never_answers_is_unreachable(struct contract *c)
{
	const struct contract_event *event;
	struct contract_link link;

	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, "x", 1), 0);
	event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(event->ev.status, RVCM_STATUS_CONNECT_TIMEOUT);
	assert_int_equal(event->ev.err, ETIMEDOUT);
	assert_int_equal(c->side[0].ops->qp_state(link.qp[0]), RVCM_DEV_QP_ERROR);
	contract_close(c, link.qp[0]);
	/* The request is there, and answering it leads to nothing. */
	event = contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
	(void)c->side[1].ops->reject(event->ev.req, NULL, 0);
	contract_settle(c);
}

static bool no_queue_pairs(void)
{
	return system("! rdma resource show qp link cm0/1 | grep -q 'type RC'") == 0;
}

/*
 * Nothing answers on this interface, and siw's connect waits for two minutes. Then the address
 * comes to be this host's, where nobody listens, so that the kernel gives up.
 */
static void a_host_that_answers_nothing_holds_up_nobody(struct contract *c)
{
	const struct contract_event *event;
	struct contract_link dead, link;
	struct rvcm_addr away;

	assert_int_equal(rvcm_addr_parse("10.77.5.9:5000", &away), 0);
	assert_int_equal(run("ip link set cmif arp off"), 0); /* it is not asked for either */
	contract_link_open(c, &dead, NULL);
	assert_int_equal(c->side[0].ops->connect(dead.qp[0], &away, NULL, 0), 0);
	contract_event(c, 0, &dead.ctx[0], RVCM_DEV_EVENT_ADDR_RESOLVED);
	contract_event(c, 0, &dead.ctx[0], RVCM_DEV_EVENT_ROUTE_RESOLVED);
	contract_link_up(c, &link, NULL);
	event = contract_event(c, 0, &dead.ctx[0], RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(event->ev.status, RVCM_STATUS_CONNECT_TIMEOUT);
	for (int i = 0; i < 2; i++) {
		contract_detach(c, link.qp[i]);
		contract_close(c, link.qp[i]);
		contract_close(c, dead.qp[i]);
	}
	assert_int_equal(run("ip addr add 10.77.5.9/32 dev cmif"), 0);
	CONTRACT_WAIT(c, no_queue_pairs());
}

static void an_address_that_no_route_leads_to(struct contract *c)
{
	const struct contract_event *event;
	struct rvcm_addr away;
	struct contract_link link;

	assert_int_equal(rvcm_addr_parse("203.0.113.1:5000", &away), 0); /* RFC 5737 */
	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &away, NULL, 0), 0);
	event = contract_any_event(c, 0, &link.ctx[0]);
	/* rdma_cm finds it out, or siw when it connects. */
	assert_true(event->ev.type == RVCM_DEV_EVENT_ADDR_ERROR ||
		    event->ev.type == RVCM_DEV_EVENT_UNREACHABLE);
	assert_int_equal(event->ev.status, RVCM_STATUS_UNREACHABLE);
	assert_int_not_equal(event->ev.err, 0);
}

static void an_address_of_another_family(struct contract *c)
{
	struct rvcm_addr away;
	struct contract_link link;

	assert_int_equal(rvcm_addr_parse("[2001:db8::1]:5000", &away), 0); /* RFC 3849 */
	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &away, NULL, 0), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ADDR_ERROR);
}

/* IB's time-wait: later than all else of a connection. */
static void a_connection_leaves_time_wait(struct contract *c)
{
	struct contract_link link;

	contract_link_up(c, &link, NULL);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0);
	for (int i = 0; i < 2; i++)
		contract_event(c, i, &link.ctx[i], RVCM_DEV_EVENT_DISCONNECTED);
	CONTRACT_WAIT(c, contract_count(c, 0, &link.ctx[0], RVCM_DEV_EVENT_TIMEWAIT_EXIT) ||
				 contract_count(c, 1, &link.ctx[1], RVCM_DEV_EVENT_TIMEWAIT_EXIT));
}

static void an_address_changes(struct contract *c)
{
	struct contract_link link;
	size_t n = 0;

	contract_link_up(c, &link, NULL);
	assert_int_equal(run("ip link set cmif type bond active_slave cmb"), 0);
	CONTRACT_WAIT(c, (n = contract_count(c, 0, &link.ctx[0], RVCM_DEV_EVENT_ADDR_CHANGE) +
			      contract_count(c, 0, NULL, RVCM_DEV_EVENT_ADDR_CHANGE)) != 0);
	/* It is a hint: the connection stands. */
	assert_int_equal(c->side[0].ops->qp_state(link.qp[0]), RVCM_DEV_QP_RTS);
}

/* -- removal ---------------------------------------------------------------------------------- */

/* One end may hear of the other's goodbye first, whose device it is too. */
static void removed(struct contract *c, struct contract_link *link)
{
	int told = 0;

	for (int i = 0; i < 2; i++) {
		const struct contract_event *event =
			device_event(c, i, RVCM_DEV_EVENT_DEVICE_REMOVAL);

		assert_int_equal(event->ev.status, RVCM_STATUS_DEVICE_REMOVED);
		event = contract_event(c, i, &link->ctx[i], RVCM_DEV_EVENT_DISCONNECTED);
		if (event->ev.status == RVCM_STATUS_OK)
			continue;
		assert_int_equal(event->ev.status, RVCM_STATUS_DEVICE_REMOVED);
		assert_int_equal(event->ev.err, ENODEV);
		told++;
	}
	assert_int_not_equal(told, 0);
}

/* Everything but the QPs stays open, and the kernel gets it back all the same. */
static void a_device_is_removed_in_use(struct contract *c)
{
	const struct rvcm_dev_mr_attr attr = { .addr = c, .length = 1 };
	struct rvcm_dev_listener *listener;
	struct rvcm_dev_mr *mr;
	struct contract_link link;
	struct contract_buf buf;
	struct rvcm_dev_qp *qp;
	pid_t pid;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 4096, 0);
	contract_hold(c, link.cq[0], true);
	for (uint32_t i = 0; i < 16; i++)
		contract_send(c, link.qp[0], &buf, 0, 4096, i);
	pid = remove_device();
	removed(c, &link);
	contract_hold(c, link.cq[0], false);
	for (int i = 0; i < 2; i++)
		contract_detach(c, link.qp[i]);
	contract_check_flushed(c, 0, 16, false);
	for (int i = 0; i < 2; i++)
		contract_close(c, link.qp[i]);
	CONTRACT_WAIT(c, ended(pid));
	/* What is left is empty. */
	assert_int_equal(c->side[0].ops->qp_open(c->side[0].dev, &link.attr[0], &qp), -ENODEV);
	assert_int_equal(c->side[0].ops->mr_reg(c->side[0].dev, &attr, &mr), -ENODEV);
	link.addr.port = 0;
	assert_int_equal(c->side[0].ops->listen(c->side[0].dev, &link.addr, 8, NULL, &listener),
			 -ENODEV);
	assert_int_equal(contract_count(c, 0, NULL, RVCM_DEV_EVENT_DEVICE_REMOVAL), 1);
}

static void a_device_is_removed_while_it_connects(struct contract *c)
{
	const struct contract_event *event;
	struct rvcm_dev_req *req;
	struct contract_link link;
	pid_t pid;

	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, "x", 1), 0);
	event = contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
	req = event->ev.req;
	pid = remove_device();
	device_event(c, 1, RVCM_DEV_EVENT_DEVICE_REMOVAL);
	assert_true(c->side[1].ops->accept(req, link.qp[1], NULL, 0) < 0);
	event = contract_any_event(c, 0, &link.ctx[0]);
	assert_int_not_equal(event->ev.type, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_not_equal(event->ev.status, RVCM_STATUS_OK);
	for (int i = 0; i < 2; i++)
		contract_close(c, link.qp[i]);
	CONTRACT_WAIT(c, ended(pid));
}

static void an_idle_device_is_removed(struct contract *c)
{
	pid_t pid = remove_device();

	for (int i = 0; i < 2; i++)
		device_event(c, i, RVCM_DEV_EVENT_DEVICE_REMOVAL);
	CONTRACT_WAIT(c, ended(pid));
}

static const struct contract_test common_tests[] = {
	CONTRACT_TEST(a_port_goes_down_and_up),
	CONTRACT_TEST(a_device_without_a_port_is_not_offered),
	CONTRACT_TEST(a_peer_that_never_answers_is_unreachable),
	CONTRACT_TEST(a_host_that_answers_nothing_holds_up_nobody),
	CONTRACT_TEST(an_address_that_no_route_leads_to),
	CONTRACT_TEST(an_address_of_another_family),
	CONTRACT_TEST_CAPS(a_connection_leaves_time_wait, RVCM_DEV_CAP_PLACED),
	CONTRACT_TEST_CAPS(an_address_changes, RVCM_DEV_CAP_PLACED),
	CONTRACT_TEST(an_idle_device_is_removed),
	CONTRACT_TEST(a_device_is_removed_while_it_connects),
	CONTRACT_TEST(a_device_is_removed_in_use),
};

static const struct contract_list common = { common_tests,
					     sizeof(common_tests) / sizeof(common_tests[0]) };

#define TARGET(name_, kind_)                                                                       \
	{                                                                                          \
		.name = name_, .open = open_pair, .close = close_pair, .turn = contract_real_turn, \
		.settle = contract_real_settle, .now_ns = contract_real_now_ns, .real = true,      \
		.arg = &(kind_),                                                                   \
	}

int main(int argc, char **argv)
{
	static const struct contract_target targets[] = { TARGET("rxe", rxe), TARGET("siw", siw) };
	static const struct contract_list *const lists[] = { &common };

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return contract_run_lists("test_verbs_cm", targets, 2, lists, 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alone COMMAND MEND: an endpoint that nobody has connected to, on one device, which COMMAND takes
 * away and MEND brings back; a shell runs them. What is posted must end in an error that names the
 * device, whoever is asleep must wake, and COMMAND must end while the endpoint is open yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/proc.h"

#define TAG   7
#define ROOM  4096
#define POSTS 3

static const char *take_away, *mend;
static char room[POSTS][ROOM];
static struct fi_context2 contexts[POSTS];

static pid_t start(const char *command)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return pid;
}

static void await(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int bring_back(void **state)
{
	(void)state;
	await(start(mend));
	return 0;
}

/* One of each kind; the last is a buffer for many messages. */
static void post(struct conf_node *node)
{
	struct iovec iov = { room[2], ROOM };
	const struct fi_msg many = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &contexts[2]
	};

	conf_ok(fi_trecv(node->ep, room[0], ROOM, NULL, FI_ADDR_UNSPEC, TAG, 0, &contexts[0]));
	conf_ok(fi_recv(node->ep, room[1], ROOM, NULL, FI_ADDR_UNSPEC, &contexts[1]));
	conf_ok(fi_recvmsg(node->ep, &many, FI_MULTI_RECV | FI_COMPLETION));
}

/* The next entry is an error with the device by name; returns whose it is. */
static const void *expect_gone(struct conf_node *node)
{
	struct fi_cq_err_entry error = { 0 };
	const char *text;

	assert_int_equal(fi_cq_readerr(node->txcq, &error, 0), 1);
	assert_int_equal(error.err, FI_ENODEV);
	text = fi_cq_strerror(node->txcq, error.prov_errno, error.err_data, NULL, 0);
	assert_non_null(strstr(text, "removed"));
	assert_non_null(strstr(text, getenv("FI_RVCM_DEVICE")));
	print_message("# %s\n", text);
	return error.op_context;
}

static void expect_all_gone(struct conf_node *node)
{
	struct fi_cq_tagged_entry entry;

	bool over[POSTS] = { false };

	for (int i = 0; i < POSTS; i++) {
		const struct fi_context2 *whose = expect_gone(node);

		assert_true(whose >= contexts && whose < contexts + POSTS);
		assert_false(over[whose - contexts]);
		over[whose - contexts] = true;
	}
	assert_int_equal(fi_cq_read(node->txcq, &entry, 1), -FI_EAGAIN);
}

/* Nothing that is posted now waits, and no other endpoint of the domain can be used. */
static void expect_no_more(struct conf_node *node)
{
	struct fi_context2 sent;
	struct fid_ep *another;
	fi_addr_t self;

	conf_ok(fi_endpoint(node->domain, node->info, &another, NULL));
	conf_ok(fi_ep_bind(another, &node->av->fid, 0));
	conf_ok(fi_ep_bind(another, &node->txcq->fid, FI_TRANSMIT | FI_RECV));
	assert_int_equal(fi_enable(another), -FI_ENODEV);
	conf_ok(fi_close(&another->fid));
	assert_int_equal(fi_av_insert(node->av, node->name, 1, &self, 0, NULL), 1);
	post(node);
	expect_all_gone(node);
	conf_ok(fi_tsend(node->ep, room[0], 1, NULL, self, TAG, &sent));
	assert_ptr_equal(expect_gone(node), &sent);
}

static void who_sleeps_is_woken(void **state)
{
	const struct conf_options options = { .caps = FI_MULTI_RECV, .wait_obj = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct conf_node node;
	pid_t pid;

	(void)state;
	conf_open(&node, &options);
	post(&node);
	pid = start(take_away);
	assert_int_equal(fi_cq_sread(node.txcq, &entry, 1, NULL, CONF_TIMEOUT_MS), -FI_EAVAIL);
	await(pid);
	expect_all_gone(&node);
	expect_no_more(&node);
	conf_close(&node);
}

/* And nobody calls the provider until the device has gone. */
static void progress_by_itself_does_it(void **state)
{
	const struct conf_options options = { .caps = FI_MULTI_RECV, .progress = FI_PROGRESS_AUTO };
	struct fi_cq_tagged_entry entry;
	uint64_t deadline;
	struct conf_node node;

	(void)state;
	conf_open(&node, &options);
	post(&node);
	await(start(take_away));
	deadline = conf_deadline();
	while (fi_cq_read(node.txcq, &entry, 1) == -FI_EAGAIN)
		conf_not_late(deadline);
	expect_all_gone(&node);
	expect_no_more(&node);
	conf_close(&node);
}

/* Who only looks must not look for ever. */
static void who_polls_is_told(void **state)
{
	const struct conf_options options = { .caps = FI_MULTI_RECV };
	const struct fi_msg_tagged look = { .addr = FI_ADDR_UNSPEC,
					    .tag = TAG,
					    .context = &contexts[0] };
	struct fi_cq_tagged_entry entry;
	uint64_t deadline = conf_deadline();
	struct fi_cq_err_entry error;
	struct conf_node node;
	pid_t pid;

	(void)state;
	conf_open(&node, &options);
	pid = start(take_away);
	do {
		memset(&error, 0, sizeof(error));
		conf_not_late(deadline);
		conf_ok(fi_trecvmsg(node.ep, &look, FI_PEEK | FI_COMPLETION));
		assert_int_equal(fi_cq_read(node.txcq, &entry, 1), -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(node.txcq, &error, 0), 1);
	} while (error.err == FI_ENOMSG);
	assert_int_equal(error.err, FI_ENODEV);
	await(pid);
	expect_no_more(&node);
	conf_close(&node);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(who_sleeps_is_woken, bring_back),
		cmocka_unit_test_teardown(progress_by_itself_does_it, bring_back),
		cmocka_unit_test_teardown(who_polls_is_told, bring_back),
	};

	conf_provider();
	if (argc != 3 || !getenv("FI_RVCM_DEVICE")) {
		fprintf(stderr, "usage: FI_RVCM_DEVICE=... alone COMMAND MEND\n");
		return 2;
	}
	take_away = argv[1];
	mend = argv[2];
	return conf_run_tests("alone", tests);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/proc.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void conf_put(int fd, const void *buf, size_t len)
{
	assert_int_equal(write(fd, buf, len), len);
}

void conf_get(int fd, void *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t rc = read(fd, (char *)buf + n, len - n);

		assert_true(rc > 0);
		n += (size_t)rc;
	}
}

/* In the child: be where the other process is to be. */
static void move(const char *netns)
{
	static const struct {
		const char *from, *to;
	} others[] = {
		{ "FABTEST_OTHER_NODE", "FABTEST_NODE" },
		{ "FABTEST_OTHER_DEVICE", "FI_RVCM_DEVICE" },
		{ "FABTEST_OTHER_IFACE", "FI_RVCM_IFACE" },
	};
	char path[256];
	int fd;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (getenv(others[i].from))
			setenv(others[i].to, getenv(others[i].from), 1);
	}
	if (!netns)
		netns = getenv("FABTEST_OTHER_NETNS");
	if (!netns)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		perror(path);
		_exit(126);
	}
}

void conf_other_start(struct conf_other *other, const char *netns, const char *role)
{
	char in[16], out[16];
	int down[2], up[2];

	conf_ok(pipe(down));
	conf_ok(pipe(up));
	other->pid = fork();
	assert_true(other->pid >= 0);
	if (other->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		close(up[0]);
		move(netns);
		snprintf(in, sizeof(in), "%d", down[0]);
		snprintf(out, sizeof(out), "%d", up[1]);
		execl("/proc/self/exe", "other", role, in, out, NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	other->to = down[1];
	other->from = up[0];
}

void conf_other_end(struct conf_other *other, int status)
{
	int got;

	assert_int_equal(waitpid(other->pid, &got, 0), other->pid);
	assert_int_equal(got, status);
	close(other->to);
	close(other->from);
}

/*
 * The scope of a link-local address is the number that an interface has here: the other's means
 * nothing to us (RFC 4007, section 6).
 */
static void adopt_scope(const struct conf_node *node, struct conf_node *peer)
{
	struct sockaddr_in6 ours, theirs;

	memcpy(&ours, node->name, sizeof(ours));
	memcpy(&theirs, peer->name, sizeof(theirs));
	if (theirs.sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&theirs.sin6_addr))
		return;
	assert_int_not_equal(ours.sin6_scope_id, 0);
	assert_int_not_equal(theirs.sin6_scope_id, 0);
	theirs.sin6_scope_id = ours.sin6_scope_id;
	memcpy(peer->name, &theirs, sizeof(theirs));
}

fi_addr_t conf_meet(struct conf_node *node, int to, int from)
{
	struct conf_node peer = { .name_size = 0 };

	conf_put(to, node->name, sizeof(node->name));
	conf_get(from, peer.name, sizeof(peer.name));
	adopt_scope(node, &peer);
	return conf_insert(node, &peer);
}

fi_addr_t conf_other_meet(struct conf_other *other, const char *netns, const char *role,
			  struct conf_node *node, const struct conf_options *options)
{
	conf_other_start(other, netns, role);
	conf_open(node, options);
	return conf_meet(node, other->to, other->from);
}

void conf_drive(struct conf_node *node)
{
	ssize_t rc = fi_cq_read(node->txcq, NULL, 0);

	assert_true(rc == 0 || rc == -FI_EAGAIN || rc == -FI_EAVAIL);
}

void conf_get_driving(struct conf_node *node, int fd, void *buf, size_t len)
{
	struct pollfd from = { .fd = fd, .events = POLLIN };

	while (poll(&from, 1, 0) == 0)
		conf_drive(node);
	conf_get(fd, buf, len);
}

static void fail_with_error(struct conf_node *node)
{
	struct fi_cq_err_entry error = { 0 };
	char text[256];

	assert_int_equal(fi_cq_readerr(node->txcq, &error, 0), 1);
	fail_msg("an operation failed: %s: %s", fi_strerror(error.err),
		 fi_cq_strerror(node->txcq, error.prov_errno, error.err_data, text, sizeof(text)));
}

void conf_wait_for(struct conf_node *node, int n)
{
	struct fi_cq_tagged_entry entry;
	uint64_t deadline = conf_deadline();

	while (n > 0) {
		ssize_t rc = fi_cq_read(node->txcq, &entry, 1);

		conf_not_late(deadline);
		if (rc == -FI_EAGAIN)
			continue;
		if (rc == -FI_EAVAIL)
			fail_with_error(node);
		assert_int_equal(rc, 1);
		n--;
	}
}

void conf_next_error(struct conf_node *node, struct fi_cq_err_entry *error)
{
	struct fi_cq_tagged_entry entry;
	uint64_t deadline = conf_deadline();
	ssize_t rc;

	while ((rc = fi_cq_read(node->txcq, &entry, 1)) == -FI_EAGAIN)
		conf_not_late(deadline);
	assert_int_equal(rc, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(node->txcq, error, 0), 1);
}

void conf_expect_error(struct conf_node *node, struct fi_cq_err_entry *error)
{
	memset(error, 0, sizeof(*error));
	conf_next_error(node, error);
}

void conf_exchange(struct conf_node *node, fi_addr_t peer, uint32_t first, uint32_t last)
{
	static const size_t sizes[] = { 0, 1, 900, 16384, 20000, 300000, CONF_LONG_BYTES };
	enum {
		COUNT = sizeof(sizes) / sizeof(sizes[0])
	};
	struct fi_context2 contexts[2 * COUNT];
	uint8_t *out[COUNT], *in[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) {
		out[i] = malloc(sizes[i] + 1);
		in[i] = malloc(sizes[i] + 1);
	}
	for (uint32_t r = first; r < last; r++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			conf_fill(out[i], sizes[i], r + i);
			memset(in[i], 0, sizes[i] + 1);
			CONF_TRY(node, fi_trecv(node->ep, in[i], sizes[i], NULL, peer, i, 0,
						&contexts[i]));
		}
		for (uint32_t i = 0; i < COUNT; i++)
			CONF_TRY(node, fi_tsend(node->ep, out[i], sizes[i], NULL, peer, i,
						&contexts[COUNT + i]));
		conf_wait_for(node, 2 * COUNT);
		for (uint32_t i = 0; i < COUNT; i++)
			conf_check(in[i], sizes[i], r + i);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		free(out[i]);
		free(in[i]);
	}
}

int conf_play(const struct conf_role *roles, size_t n, const struct conf_options *options,
	      char **argv)
{
	int from = atoi(argv[2]), to = atoi(argv[3]);
	struct conf_node node;
	fi_addr_t peer;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(argv[1], roles[i].name))
			continue;
		conf_open(&node, options);
		peer = conf_meet(&node, to, from);
		roles[i].run(&node, peer, to, from);
		conf_close(&node);
		return 0;
	}
	return 126;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/peers.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/actor.h"

#define NAMESPACE "/run/netns/soft"
#define LIMIT_MS  300000
#define PORT_BASE 7200

static int n_tests;
static int n_failed;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* -- between the two ------------------------------------------------------------------------ */

void peers_tell(struct peers *p, const void *data, size_t bytes)
{
	if (send(p->fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		die("telling the other side");
}

void peers_hear(struct peers *p, void *data, size_t bytes)
{
	if (recv(p->fd, data, bytes, MSG_WAITALL) != (ssize_t)bytes)
		die("the other side says nothing more");
}

void peers_sync(struct peers *p)
{
	char c = 0;

	peers_tell(p, &c, 1);
	peers_hear(p, &c, 1);
}

void peers_die(void)
{
	raise(SIGKILL);
	abort();
}

/* -- siw's parameters ----------------------------------------------------------------------- */

static void set_parameter(const char *name, int value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/siw/parameters/%s", name);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d\n", value) < 0 || fclose(f))
		die(path);
}

static void set_parameters(const struct peers_conf *conf)
{
	set_parameter("mpa_crc_required", conf->siw_crc);
	set_parameter("mpa_crc_strict", conf->siw_strict);
	set_parameter("mpa_version", conf->siw_revision);
	set_parameter("peer_to_peer", conf->siw_p2p);
}

/* -- one test ------------------------------------------------------------------------------- */

static void enter_namespace(void)
{
	int fd = open(NAMESPACE, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(NAMESPACE);
	close(fd);
}

/* The process of one of the two; returns its pid. */
static pid_t start(const struct peers_test *test, const struct peers *p, const int fds[2])
{
	struct timeval patience = { .tv_sec = LIMIT_MS / 1000 };
	struct peers own = *p;
	pid_t pid = fork();

	if (pid)
		return pid;
	own.fd = fds[own.opener];
	close(fds[!own.opener]);
	if (setsockopt(own.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("SO_RCVTIMEO");
	if (own.soft)
		enter_namespace();
	actor_play(&own, own.opener ? test->opener : test->listener);
	exit(0);
}

/* How the process ended, in words; NULL = as it should. killed: it was to be. */
static const char *ending(pid_t pid, bool killed, int timeout_ms)
{
	struct pollfd fd = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int n = poll(&fd, 1, timeout_ms);
	int status;

	if (n != 1)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd.fd);
	if (n != 1)
		return "hangs";
	if (WIFSIGNALED(status))
		return killed && WTERMSIG(status) == SIGKILL ? NULL : "was killed by a signal";
	if (killed)
		return "did not die";
	return WEXITSTATUS(status) ? "failed" : NULL;
}

static void report(const struct peers_conf *conf, const struct peers_test *test, bool soft_opens,
		   const char *const ends[2])
{
	static const char *const names[2] = { "listener", "opener" };

	n_tests++;
	if (ends[0] || ends[1]) {
		n_failed++;
		printf("not ");
	}
	printf("ok %d - %s, %s opens: %s\n", n_tests, conf->name, soft_opens ? "soft" : "siw",
	       test->name);
	for (int i = 0; i < 2; i++)
		if (ends[i])
			printf("# the %s %s\n", names[i], ends[i]);
	fflush(stdout);
}

static void run_one(const struct peers_conf *conf, const struct peers_test *test, bool soft_opens)
{
	int fds[2];
	pid_t pids[2];
	const char *ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	fflush(stdout);
	for (int opener = 0; opener < 2; opener++) {
		struct peers p = { .conf = conf,
				   .soft = opener == soft_opens,
				   .opener = opener,
				   .port = (uint16_t)(PORT_BASE + n_tests) };

		pids[opener] = start(test, &p, fds);
	}
	close(fds[0]);
	close(fds[1]);
	ends[0] = ending(pids[0], test->death == PEERS_LISTENER_DIES, LIMIT_MS);
	/* Who is left alone by the other's failure need not be waited for for long. */
	ends[1] = ending(pids[1], test->death == PEERS_OPENER_DIES, ends[0] ? 2000 : LIMIT_MS);
	report(conf, test, soft_opens, ends);
}

int peers_run(const struct peers_conf *conf, const struct peers_test *tests, size_t n,
	      const char *filter)
{
	int before = n_failed;

	set_parameters(conf);
	for (size_t i = 0; i < n; i++) {
		if (filter && !strstr(tests[i].name, filter))
			continue;
		if (tests[i].only != PEERS_SIW_OPENS)
			run_one(conf, &tests[i], true);
		if (tests[i].only != PEERS_SOFT_OPENS)
			run_one(conf, &tests[i], false);
	}
	return n_failed - before;
}

int peers_done(void)
{
	printf("1..%d\n", n_tests);
	return n_failed || !n_tests;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes on two cores of this machine, and a wire between them that is not measured. */
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int wire;      /* to the other process */
static bool together; /* both on one core */

void bench_swap(const void *mine, void *theirs, size_t bytes)
{
	bench_ok(write(wire, mine, bytes), "write");
	for (size_t n = 0; n < bytes;) {
		ssize_t rc = read(wire, (char *)theirs + n, bytes - n);

		if (rc <= 0)
			bench_die("the other process is gone");
		n += (size_t)rc;
	}
}

void bench_meet(void)
{
	char mine = 0, theirs;

	bench_swap(&mine, &theirs, 1);
}

void bench_idle(void)
{
	if (together)
		(void)sched_yield(); /* on Linux it always succeeds */
}

static void pin(int first)
{
	const char *cores = getenv("BENCH_CORES");
	int core[2] = { 0, 1 };
	cpu_set_t set;

	if (cores && sscanf(cores, "%d,%d", &core[0], &core[1]) != 2)
		bench_die("BENCH_CORES is \"%s\", not two numbers with a comma between", cores);
	together = core[0] == core[1];
	CPU_ZERO(&set);
	CPU_SET((size_t)core[!first], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("no core %d to run on: %s", core[!first], strerror(errno));
}

int bench_main(const struct bench_ops *ops, int argc, char **argv)
{
	int wires[2], status;
	pid_t child;
	int first;

	bench_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, wires), "socketpair");
	child = fork();
	bench_ok(child, "fork");
	first = child != 0;
	wire = wires[first];
	close(wires[!first]);
	/* Who is left alone in the middle of a row would wait for ever. */
	if (!first)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(first);
	bench_run(ops, first, argc, argv);
	if (!first)
		return 0;
	bench_ok(waitpid(child, &status, 0), "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

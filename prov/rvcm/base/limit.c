/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void files_text(char *buf)
{
	struct rlimit limit = { 0 };
	char how[RVCM_LIMIT_TEXT_MAX / 2];

	(void)getrlimit(RLIMIT_NOFILE, &limit); /* fails for bad arguments only: getrlimit(2) */
	if (limit.rlim_cur < limit.rlim_max)
		snprintf(how, sizeof(how), "raise it with ulimit -n, up to %llu",
			 (unsigned long long)limit.rlim_max);
	else
		snprintf(how, sizeof(how),
			 "that is the hard limit, raise it in limits.conf(5), or a service's by "
			 "LimitNOFILE=");
	snprintf(buf, RVCM_LIMIT_TEXT_MAX,
		 "one more file descriptor, and the process has all of its %llu (RLIMIT_NOFILE): "
		 "%s, or close some",
		 (unsigned long long)limit.rlim_cur, how);
}

#define NO_PORT "no local port is free: see ip_local_port_range in ip(7) and widen it"

/* For those whose limit has no number that belongs to the process. */
static const struct {
	int err;
	const char *text;
} rows[] = {
	{ ENFILE, "one more open file, and the system has all it may have: raise fs.file-max" },
	{ EADDRNOTAVAIL, NO_PORT },
	{ EADDRINUSE, NO_PORT },
	{ ENOSPC, "the kernel watches no more with epoll(7): a domain can have about 100 queues to "
		  "wait on, a user fs.epoll.max_user_watches descriptors" },
};

const char *rvcm_limit_text(int err, char *buf)
{
	const char *text = strerrordesc_np(err);

	if (err == EMFILE) {
		files_text(buf);
		return buf;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].err == err)
			text = rows[i].text;
	snprintf(buf, RVCM_LIMIT_TEXT_MAX, "%s", text ? text : "unknown error");
	return buf;
}

const char *rvcm_limit_locked_text(int err, char *buf)
{
	const char *text = strerrordesc_np(err);
	struct rlimit limit = { 0 };

	(void)getrlimit(RLIMIT_MEMLOCK, &limit); /* as above */
	if (err == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf, RVCM_LIMIT_TEXT_MAX,
			 "no memory, or too much of it is locked: this process may lock %llu KiB "
			 "(RLIMIT_MEMLOCK): raise it with ulimit -l, best to unlimited",
			 (unsigned long long)limit.rlim_cur / 1024);
	else
		snprintf(buf, RVCM_LIMIT_TEXT_MAX, "%s", text ? text : "unknown error");
	return buf;
}

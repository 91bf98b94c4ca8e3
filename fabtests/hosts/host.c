/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts/host.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void host_shell(const char *format, ...)
{
	char command[512], text[512];
	const char *net = getenv("RVCM_HOSTS");
	size_t n = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	for (const char *c = command; *c; c++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", *c == '@' ? 64 : 1,
				      *c == '@' ? net : c);
	assert_int_equal(system(text), 0);
}

const char *host_name(int number, char name[64])
{
	snprintf(name, 64, "%s-%d", getenv("RVCM_HOSTS"), number);
	return name;
}

void host_pair_open(struct host_pair *p, int number, const char *role,
		    const struct conf_options *options)
{
	char name[64];

	p->peer = conf_other_meet(&p->other, host_name(number, name), role, &p->node, options);
}

void host_pair_close(struct host_pair *p, int status)
{
	conf_close(&p->node);
	conf_other_end(&p->other, status);
}

void host_say(const struct conf_other *other)
{
	conf_put(other->to, "!", 1);
}

void host_hear(struct host_pair *p)
{
	struct pollfd at = { .fd = p->other.from, .events = POLLIN };
	uint64_t deadline = conf_deadline();

	while (poll(&at, 1, 0) == 0) {
		conf_drive(&p->node);
		conf_not_late(deadline);
	}
	host_await(at.fd);
}

void host_await(int from)
{
	char c;

	conf_get(from, &c, 1);
}

void host_check_text(struct conf_node *node, const struct fi_cq_err_entry *error,
		     const char *expected)
{
	char buf[256];
	const char *text =
		fi_cq_strerror(node->txcq, error->prov_errno, error->err_data, buf, sizeof(buf));

	if (!strstr(text, expected))
		fail_msg("\"%s\" says nothing of \"%s\"", text, expected);
}

void host_expect(struct conf_node *node, int err)
{
	struct fi_cq_err_entry error;

	conf_expect_error(node, &error);
	assert_int_equal(error.err, err);
	host_check_text(node, &error, "peer ");
}

void host_choose(int argc, char **argv)
{
	if (!getenv("RVCM_HOSTS")) {
		fprintf(stderr, "to be run by a script of fabtests/hosts\n");
		exit(2);
	}
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/status.h"

#include <errno.h>
#include <stddef.h>

struct row {
	int err;
	const char *name;
	const char *text;
};

static const struct row rows[] = {
#define RVCM_STATUS(value, name, err, text) [value] = { err, #name, text },
#include "base/status.def"
#undef RVCM_STATUS
};

/*
 * Several statuses share an errno, so the way back has a table of its own: what a system call under
 * a connection or an operation meant by it.
 */
static const struct {
	int err;
	enum rvcm_status status;
} from_errno[] = {
	{ 0, RVCM_STATUS_OK },
	{ ECONNRESET, RVCM_STATUS_CONNECTION_LOST },
	{ ECONNABORTED, RVCM_STATUS_CONNECTION_LOST },
	{ EPIPE, RVCM_STATUS_CONNECTION_LOST },
	{ ENOTCONN, RVCM_STATUS_CONNECTION_LOST },
	{ ESHUTDOWN, RVCM_STATUS_CONNECTION_LOST },
	{ ENETRESET, RVCM_STATUS_CONNECTION_LOST },
	{ ECONNREFUSED, RVCM_STATUS_REFUSED },
	{ ETIMEDOUT, RVCM_STATUS_RETRY_EXCEEDED },
	{ EHOSTUNREACH, RVCM_STATUS_UNREACHABLE },
	{ ENETUNREACH, RVCM_STATUS_UNREACHABLE },
	{ EHOSTDOWN, RVCM_STATUS_UNREACHABLE },
	{ ENETDOWN, RVCM_STATUS_UNREACHABLE },
	{ EADDRNOTAVAIL, RVCM_STATUS_UNREACHABLE },
	{ EPROTO, RVCM_STATUS_PROTOCOL },
	{ EBADMSG, RVCM_STATUS_PROTOCOL },
	{ EPROTONOSUPPORT, RVCM_STATUS_REJECTED_VERSION },
	{ ESTALE, RVCM_STATUS_REJECTED_STALE },
	{ EMSGSIZE, RVCM_STATUS_TRUNCATED },
	{ ECANCELED, RVCM_STATUS_CANCELED },
	{ ENOMEM, RVCM_STATUS_NO_MEMORY },
	{ ENOBUFS, RVCM_STATUS_NO_MEMORY },
	{ EMFILE, RVCM_STATUS_NO_DESCRIPTOR },
	{ ENFILE, RVCM_STATUS_NO_DESCRIPTOR },
	{ ENOSPC, RVCM_STATUS_NO_MEMORY },
	{ EACCES, RVCM_STATUS_LOCAL_PROTECTION },
	{ EFAULT, RVCM_STATUS_LOCAL_PROTECTION },
	{ EINVAL, RVCM_STATUS_INVALID },
	{ EOPNOTSUPP, RVCM_STATUS_UNSUPPORTED },
	{ EADDRINUSE, RVCM_STATUS_ADDRESS_IN_USE },
	{ ENODEV, RVCM_STATUS_DEVICE_REMOVED },
};

static const struct row *find(unsigned int value)
{
	if (value >= sizeof(rows) / sizeof(rows[0]) || !rows[value].name)
		return NULL;
	return &rows[value];
}

bool rvcm_status_known(unsigned int value)
{
	return find(value) != NULL;
}

int rvcm_status_errno(enum rvcm_status status)
{
	const struct row *row = find(status);

	return row ? row->err : EIO;
}

const char *rvcm_status_name(enum rvcm_status status)
{
	const struct row *row = find(status);

	return row ? row->name : "UNKNOWN";
}

const char *rvcm_status_text(enum rvcm_status status)
{
	const struct row *row = find(status);

	return row ? row->text : "unknown status";
}

enum rvcm_status rvcm_status_from_errno(int err)
{
	for (size_t i = 0; i < sizeof(from_errno) / sizeof(from_errno[0]); i++)
		if (from_errno[i].err == err || from_errno[i].err == -err)
			return from_errno[i].status;
	return RVCM_STATUS_GENERAL;
}

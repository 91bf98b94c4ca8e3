/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/eq.h"

#include <inttypes.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "ofi/fabric.h"
#include "ofi/nosys.h"
#include "rvcm/fi_ext_rvcm.h"

struct eq {
	struct fid_eq fid;
	struct rvcm_fabric *fabric;
	int event; /* never readable; -1 = FI_WAIT_NONE */
};

static int eq_close(struct fid *fid)
{
	struct eq *eq = (struct eq *)fid;

	if (eq->event >= 0)
		close(eq->event);
	atomic_fetch_sub(&eq->fabric->refs, 1);
	rvcm_mem_free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct eq *eq = (struct eq *)fid;

	switch (command) {
	case FI_GETWAIT:
		if (eq->event < 0)
			return -FI_EINVAL;
		*(int *)arg = eq->event;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->event < 0 ? FI_WAIT_NONE : FI_WAIT_FD;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	(void)eq;
	(void)event;
	(void)buf;
	(void)len;
	(void)flags;
	return -FI_EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	(void)eq;
	(void)buf;
	(void)flags;
	return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	(void)eq;
	(void)event;
	(void)buf;
	(void)len;
	(void)flags;
	return -FI_ENOSYS;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct eq *eq = (struct eq *)fid;
	struct pollfd pollfd = { .fd = eq->event, .events = POLLIN };

	(void)event;
	(void)buf;
	(void)len;
	(void)flags;
	if (eq->event < 0)
		return -FI_EINVAL;
	return poll(&pollfd, 1, timeout) < 0 ? -errno : -FI_EAGAIN;
}

static const char *eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	const char *text = rvcm_status_text((enum rvcm_status)FI_RVCM_ERRNO_STATUS(prov_errno));

	(void)eq;
	(void)err_data;
	if (buf && len) {
		snprintf(buf, len, "%s", text);
		text = buf;
	}
	return text;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = eq_close,
	.bind = rvcm_nosys_bind,
	.control = eq_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static const struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int rvcm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
		 void *context)
{
	enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_NONE;
	struct eq *eq;

	if (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_EQ, "fi_eq_open: flags %#" PRIx64,
				   attr->flags);
	if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_EQ,
				   "fi_eq_open: wait object %d is not offered: FI_WAIT_FD is",
				   (int)wait);
	eq = rvcm_mem_zalloc(sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->event = wait == FI_WAIT_NONE ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait != FI_WAIT_NONE && eq->event < 0) {
		int err = errno;
		char text[RVCM_LIMIT_TEXT_MAX];

		rvcm_warn(RVCM_LOG_EQ, "an event queue cannot be opened: %s",
			  rvcm_limit_text(err, text));
		rvcm_mem_free(eq);
		return -err;
	}
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = (struct fi_ops *)&fid_ops;
	eq->fid.ops = (struct fi_ops_eq *)&eq_ops;
	eq->fabric = rvcm_fabric_of(fabric);
	atomic_fetch_add(&eq->fabric->refs, 1);
	*fid = &eq->fid;
	return 0;
}

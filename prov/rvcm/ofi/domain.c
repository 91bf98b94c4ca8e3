/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "ofi/av.h"
#include "ofi/cq.h"
#include "ofi/devices.h"
#include "ofi/endpoint.h"
#include "ofi/hints.h"
#include "ofi/jobkey.h"
#include "ofi/mrcache.h"
#include "ofi/region.h"
#include "ofi/nosys.h"
#include "ofi/params.h"
#include "ofi/progress.h"
#include "ofi/rails.h"
#include "ofi/sockaddr.h"
#include "ofi/tclass.h"

#define DATA_FDS_MAX 64

/* What conn and proto put in front of an eager payload, with room to spare. */
#define MESSAGE_OVERHEAD 128u

/* -- what the engine gets from below ------------------------------------------------------- */

static uint64_t env_now(void *ctx)
{
	(void)ctx;
	return rvcm_clock_ns();
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	int rc = rvcm_rng_secure(buf, bytes);

	(void)ctx;
	if (rc) /* getrandom(2) does not fail with these arguments on a kernel that has it */
		rvcm_warn(RVCM_LOG_DOMAIN, "no random numbers: %s", strerror(-rc));
}

static void env_wake_data(void *ctx)
{
	struct rvcm_domain *domain = ctx;
	uint64_t one = 1;
	ssize_t n = write(domain->wake_event, &one, sizeof(one));

	(void)n; /* EAGAIN: it is readable already */
}

static void env_wake_control(void *ctx)
{
	struct rvcm_domain *domain = ctx;

	rvcm_control_wake(&domain->control);
}

/* -- sleeping ------------------------------------------------------------------------------ */

void rvcm_domain_wake(struct rvcm_sleeper *sleeper)
{
	uint64_t one = 1;
	ssize_t n;

	rvcm_list_del(&sleeper->link);
	n = write(sleeper->event, &one, sizeof(one));
	(void)n; /* EAGAIN: it is readable already */
}

void rvcm_domain_wake_sleepers(struct rvcm_domain *domain)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&domain->sleepers)))
		rvcm_domain_wake(rvcm_list_entry(node, struct rvcm_sleeper, link));
}

bool rvcm_domain_arm(struct rvcm_domain *domain)
{
	uint64_t count;
	ssize_t n = read(domain->wake_event, &count, sizeof(count));

	(void)n; /* emptied before looking for mail: what comes later makes it readable again */
	if (rvcm_carrier_arm(domain->carrier))
		return true;
	/* It took events, and the others' devices are not armed any more. */
	rvcm_domain_wake_sleepers(domain);
	return false;
}

void rvcm_domain_sleep(struct rvcm_domain *domain, int timeout_ms)
{
	struct epoll_event event;

	if (!rvcm_domain_arm(domain))
		return;
	rvcm_lock_release(&domain->lock);
	epoll_wait(domain->data_epoll, &event, 1, timeout_ms);
	rvcm_lock_acquire(&domain->lock);
}

static int epoll_add(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_data(struct rvcm_domain *domain)
{
	int fds[DATA_FDS_MAX];
	int n = rvcm_carrier_data_fds(domain->carrier, fds, DATA_FDS_MAX);
	int rc;

	if (n > DATA_FDS_MAX)
		return -EMFILE;
	rc = epoll_add(domain->data_epoll, domain->wake_event);
	for (int i = 0; !rc && i < n; i++)
		rc = epoll_add(domain->data_epoll, fds[i]);
	return rc;
}

/* -- life ---------------------------------------------------------------------------------- */

static void close_devices(struct rvcm_domain *domain)
{
	while (domain->n_devs > 0) {
		struct rvcm_dev *dev = domain->devs[--domain->n_devs];

		dev->ops->close(dev);
	}
}

static int domain_close(struct fid *fid)
{
	struct rvcm_domain *domain = (struct rvcm_domain *)fid;

	if (atomic_load(&domain->refs))
		return -FI_EBUSY;
	/* What a forked child inherited stays as it is: connections are the parent's. */
	if (!rvcm_control_ours(&domain->control)) {
		rvcm_progress_forget(domain->progress);
	} else {
		rvcm_progress_stop(domain->progress);
		rvcm_mrcache_stop(domain);
		rvcm_control_remove(&domain->control);
		rvcm_mr_flush(rvcm_engine_mr(domain->engine)); /* to be counted */
		rvcm_statfile_domain(domain->engine, &domain->counted, domain->stats);
		rvcm_engine_close(domain->engine);
		rvcm_mrcache_close(domain->monitor);
		close_devices(domain);
	}
	close(domain->data_epoll);
	close(domain->wake_event);
	rvcm_mrkey_fini(&domain->keys);
	rvcm_lock_fini(&domain->lock);
	atomic_fetch_sub(&domain->fabric->refs, 1);
	rvcm_mem_free(domain->stats);
	rvcm_mem_free(domain);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return flags ? -FI_EOPNOTSUPP : 0; /* FI_REG_MR: registration is synchronous */
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	if (command == FI_MAP_RAW_MR || command == FI_UNMAP_KEY)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "%s: keys are numbers, to be used as they are (no FI_MR_RAW)",
				   command == FI_MAP_RAW_MR ? "fi_mr_map_raw" : "fi_mr_unmap_key");
	return -FI_ENOSYS;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static const struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = rvcm_av_open,
	.cq_open = rvcm_cq_open,
	.endpoint = rvcm_endpoint_open,
	.scalable_ep = rvcm_nosys_scalable_ep,
	.cntr_open = rvcm_nosys_cntr_open,
	.poll_open = rvcm_nosys_poll_open,
	.stx_ctx = rvcm_nosys_stx_ctx,
	.srx_ctx = rvcm_nosys_srx_ctx,
	.query_atomic = rvcm_nosys_query_atomic,
	.query_collective = rvcm_nosys_query_collective,
	.endpoint2 = rvcm_nosys_endpoint2,
};

int rvcm_domain_check(const struct rvcm_domain *domain, const struct fi_info *info,
		      const char *what)
{
	char why[RVCM_HINTS_WHY_MAX];

	if (rvcm_hints_met(info, &domain->offer.info, why))
		return 0;
	rvcm_warn(RVCM_LOG_DOMAIN, "%s on device %s: %s", what, domain->device.attr.name, why);
	return -FI_EINVAL;
}

static int open_one(struct rvcm_domain *domain, const struct rvcm_device *device,
		    const struct rvcm_params *params)
{
	int rc = rvcm_devices_open(device, params, rvcm_tclass_dscp(domain->tclass),
				   &domain->devs[domain->n_devs]);

	if (!rc)
		domain->n_devs++;
	return rc;
}

/* The device, and one to stand in for it; that one may be missing. */
static int open_devices(struct rvcm_domain *domain, const struct rvcm_device *stand_in,
			const struct rvcm_params *params)
{
	const char *name = domain->device.attr.name;
	char text[RVCM_LIMIT_TEXT_MAX];
	int rc = open_one(domain, &domain->device, params);

	if (rc)
		return rc;
	rc = stand_in ? open_one(domain, stand_in, params) : 0;
	if (rc)
		rvcm_warn(RVCM_LOG_DOMAIN,
			  "device %s cannot be opened (%s): peers that %s does not reach are lost",
			  stand_in->attr.name, rvcm_limit_text(-rc, text), name);
	rvcm_info(RVCM_LOG_DOMAIN, "device %s: opened%s%s%s", name,
		  domain->n_devs > 1 ? "; peers that it does not reach are reached by " : "",
		  domain->n_devs > 1 ? stand_in->attr.name : "",
		  !stand_in && params->device ? ", and no other: FI_RVCM_DEVICE" : "");
	return 0;
}

static int choose_devices(struct rvcm_domain *domain, const struct fi_info *info,
			  const struct rvcm_params *params)
{
	struct rvcm_device *devices = rvcm_mem_calloc(RVCM_DEVICES_MAX, sizeof(*devices));
	const struct rvcm_device *device = NULL;
	struct rvcm_addr src = { 0 };
	int rc = 0;

	if (!devices)
		return -ENOMEM;
	if (info->src_addr)
		rc = rvcm_sockaddr_get(info->addr_format, info->src_addr, info->src_addrlen, &src);
	if (!rc) {
		int n = rvcm_devices_list(params, devices, RVCM_DEVICES_MAX);

		device = rvcm_devices_find(devices, n, info->domain_attr->name, &src);
		rc = n < 0 ? n : -ENODEV;
		if (device) {
			domain->device = *device;
			rvcm_offer_init(&domain->offer, &domain->device, params);
			rc = rvcm_domain_check(domain, info, "domain");
		}
		if (!rc)
			rc = open_devices(domain, rvcm_devices_stand_in(devices, n, device),
					  params);
	}
	rvcm_mem_free(devices);
	return rc;
}

/* What is eager here is taken from others as well; and never less than they may count on. */
static size_t message_most(const struct rvcm_params *params)
{
	size_t eager = params->eager_size > params->eager_lone_size ? params->eager_size
								    : params->eager_lone_size;
	size_t most = eager + MESSAGE_OVERHEAD;

	return most < RVCM_CONN_MESSAGE_FLOOR ? RVCM_CONN_MESSAGE_FLOOR : most;
}

static int open_engine(struct rvcm_domain *domain, const struct fi_info *info,
		       const struct rvcm_params *params)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = domain->devs,
			.n_devs = domain->n_devs,
			.message_bytes_max = message_most(params),
			.window_max = (uint32_t)params->window,
			.n_links = (uint32_t)params->num_links,
			.stripe_bytes = params->stripe_size,
			.max_links = (uint32_t)params->max_links,
			/* With manual progress the application comes back. */
			.hold = info->domain_attr->data_progress != FI_PROGRESS_AUTO,
			.attempt_timeout_ns = params->attempt_timeout * RVCM_CLOCK_NS_PER_MS,
			.connect_timeout_ns = params->connect_timeout * RVCM_CLOCK_NS_PER_MS,
			.hello_timeout_ns = params->hello_timeout * RVCM_CLOCK_NS_PER_MS,
			.reconnect_timeout_ns = params->reconnect_timeout * RVCM_CLOCK_NS_PER_MS,
			.linger_ns = params->linger * RVCM_CLOCK_NS_PER_MS,
			.rnr_timeout_ns = params->rnr_timeout * RVCM_CLOCK_NS_PER_MS,
			.pid = (uint32_t)getpid(),
			.env = {
				.now_ns = env_now,
				.random = env_random,
				.wake_data = env_wake_data,
				.wake_control = env_wake_control,
				.ctx = domain,
			},
		},
		.eager_bytes_max = params->eager_size,
		.eager_lone_bytes_max = params->eager_size ? params->eager_lone_size : 0,
		.lend_bytes_min = params->copy_size + 1,
		.unexpected_bytes_max = params->unexpected_size,
	};
	int rc =
		rvcm_rails_list(params, &domain->device, attr.carrier.rails, &attr.carrier.n_rails);

	if (rc)
		return rc;
	/* The engine clamps its eager limits to that. */
	for (uint32_t i = 0; i < domain->n_devs; i++) {
		size_t most = (size_t)domain->devs[i]->attr.message_bytes_max;

		if (attr.carrier.message_bytes_max > most)
			attr.carrier.message_bytes_max = most;
	}
	rc = rvcm_jobkey_find(params,
			      info->domain_attr->auth_key_size ? info->domain_attr->auth_key : NULL,
			      attr.carrier.job_key);
	if (rc)
		return rc;
	rvcm_mrcache_open(&domain->devs[0]->attr, params, &attr.mr);
	rc = rvcm_engine_open(&attr, &domain->engine);
	if (rc) {
		rvcm_mrcache_close(attr.mr.monitor);
		return rc;
	}
	domain->monitor = attr.mr.monitor;
	domain->carrier = rvcm_engine_carrier(domain->engine);
	return 0;
}

static int check_info(const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	if (!attr || !attr->name)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_DOMAIN, "fi_domain: without a name");
	if (!rvcm_tclass_known(rvcm_tclass_of(info)))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_DOMAIN, "fi_domain: no traffic class %u",
				   rvcm_tclass_of(info));
	if (attr->auth_key_size && (attr->auth_key_size != RVCM_JOBKEY_BYTES || !attr->auth_key))
		return rvcm_refuse(
			-FI_EINVAL, RVCM_LOG_DOMAIN, "fi_domain: a key of %zu bytes: it has %u",
			attr->auth_key ? attr->auth_key_size : 0, (unsigned int)RVCM_JOBKEY_BYTES);
	return 0;
}

static struct rvcm_domain *domain_new(struct fid_fabric *fabric, const struct fi_info *info,
				      const struct rvcm_params *params, void *context)
{
	struct rvcm_domain *domain = rvcm_mem_zalloc(sizeof(*domain));

	if (!domain)
		return NULL;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = (struct fi_ops *)&fid_ops;
	domain->fid.ops = (struct fi_ops_domain *)&domain_ops;
	domain->fid.mr = (struct fi_ops_mr *)&rvcm_region_ops;
	domain->fabric = rvcm_fabric_of(fabric);
	domain->addr_format = info->addr_format;
	domain->tclass = rvcm_tclass_of(info);
	rvcm_mrkey_init(&domain->keys, info->domain_attr->mr_mode, info->domain_attr->mr_key_size);
	domain->register_early = info->domain_attr->mr_mode == RVCM_OFFER_MR_BASIC ||
				 (info->domain_attr->mr_mode & FI_MR_ALLOCATED);
	domain->by_address = info->domain_attr->mr_mode == RVCM_OFFER_MR_BASIC ||
			     (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR);
	domain->tx_size = params->tx_size;
	domain->rx_size = params->rx_size;
	rvcm_list_init(&domain->sleepers);
	rvcm_lock_init(&domain->lock, info->domain_attr->threading != FI_THREAD_DOMAIN ||
					      info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	return domain;
}

/* Everything that a domain has; on failure what there was is closed again. */
static int start(struct rvcm_domain *domain, const struct fi_info *info,
		 const struct rvcm_params *params)
{
	int rc;

	domain->wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (domain->wake_event < 0)
		return -errno;
	domain->data_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (domain->data_epoll < 0) {
		rc = -errno;
		goto err_close_event;
	}
	rc = choose_devices(domain, info, params);
	if (rc)
		goto err_close_epoll;
	rc = open_engine(domain, info, params);
	if (rc)
		goto err_close_devices;
	rc = watch_data(domain);
	if (rc)
		goto err_close_engine;
	rvcm_mrcache_prepare(domain);
	rc = rvcm_control_add(&domain->control, domain->carrier, &domain->lock);
	if (rc)
		goto err_close_engine;
	rvcm_mrcache_start(domain);
	if (info->domain_attr->data_progress == FI_PROGRESS_AUTO)
		rc = rvcm_progress_start(domain, &domain->progress);
	if (rc)
		goto err_remove;
	return 0;

err_remove:
	rvcm_mrcache_stop(domain);
	rvcm_control_remove(&domain->control);
err_close_engine:
	rvcm_engine_close(domain->engine);
	rvcm_mrcache_close(domain->monitor);
err_close_devices:
	close_devices(domain);
err_close_epoll:
	close(domain->data_epoll);
err_close_event:
	close(domain->wake_event);
	return rc;
}

int rvcm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid,
		     void *context)
{
	char text[RVCM_LIMIT_TEXT_MAX];
	struct rvcm_params params;
	struct rvcm_domain *domain;
	int rc = check_info(info);

	if (rc)
		return rc;
	if (rvcm_params_read(&params))
		return -FI_EINVAL;
	domain = domain_new(fabric, info, &params, context);
	if (!domain)
		return -FI_ENOMEM;
	rc = -FI_ENOMEM;
	if (params.stats && !(domain->stats = rvcm_mem_strdup(params.stats)))
		goto err_free;
	rc = start(domain, info, &params);
	if (rc)
		goto err_free;
	atomic_fetch_add(&domain->fabric->refs, 1);
	*fid = &domain->fid;
	return 0;

err_free:
	rvcm_warn(RVCM_LOG_DOMAIN, "domain %s cannot be opened: %s", info->domain_attr->name,
		  rvcm_limit_text(-rc, text));
	rvcm_lock_fini(&domain->lock);
	rvcm_mem_free(domain->stats);
	rvcm_mem_free(domain);
	return rc;
}

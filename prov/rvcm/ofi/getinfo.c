/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo: one fi_info per device that meets the hints and has or reaches the addresses, best
 * first: devices on the destination's own network, then in the order of rvcm_devices_list.
 *
 * A bare -FI_ENODATA helps nobody. Each device that is not offered is said at info level with the
 * reason; if nothing at all is offered to a user who named rvcm, or an address that was asked for
 * is none, at warn level.
 */
#include "config.h"

#include "ofi/getinfo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "ofi/devices.h"
#include "ofi/hints.h"
#include "ofi/jobkey.h"
#include "ofi/offer.h"
#include "ofi/params.h"
#include "ofi/rails.h"
#include "ofi/sockaddr.h"

/*
 * Set by a provider that looks for others to layer itself over. ofi_rxm does so over anything with
 * connected endpoints, and would be listed before us.
 */
#define LAYERED_QUERY (1ull << 59)

#define ADDRS_MAX 16

/* Where from and where to; no addresses = anywhere. */
struct request {
	const struct fi_info *hints;
	struct rvcm_addr src[ADDRS_MAX];
	struct rvcm_addr dest[ADDRS_MAX];
	int n_src;
	int n_dest;
};

struct answer {
	struct fi_info *first;
	struct fi_info *last;
	int refused;
};

/* How loud a refusal is. */
static enum rvcm_log_level loudness(const struct fi_info *hints)
{
	bool named = rvcm_params_chosen();

	if (hints && hints->fabric_attr && hints->fabric_attr->prov_name)
		named = rvcm_hints_prov_name_met(hints->fabric_attr->prov_name);
	return named ? RVCM_LOG_WARN : RVCM_LOG_INFO;
}

/* An address among the hints: one, or none. */
static int hinted(const struct fi_info *hints, const void *p, size_t len, struct rvcm_addr *addr)
{
	if (!hints || !p)
		return 0;
	if (rvcm_sockaddr_get(hints->addr_format, p, len, addr)) {
		rvcm_log(loudness(hints), RVCM_LOG_FABRIC,
			 "an address among the hints is malformed");
		return -EINVAL;
	}
	return 1;
}

/*
 * fi_getinfo(3): node and service are the source with FI_SOURCE, else the destination; hints fill
 * in what they do not say.
 */
static int request_init(struct request *req, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints)
{
	bool source = flags & FI_SOURCE, numeric = flags & FI_NUMERICHOST;
	enum rvcm_log_level loud = loudness(hints);

	memset(req, 0, sizeof(*req));
	req->hints = hints;
	if (source && !node && !service)
		return -EINVAL;
	if (source)
		req->n_src = rvcm_sockaddr_resolve(node, service, numeric, true, req->src,
						   ADDRS_MAX, loud);
	else
		req->n_src = hinted(hints, hints ? hints->src_addr : NULL,
				    hints ? hints->src_addrlen : 0, req->src);
	if (!source && (node || service))
		req->n_dest = rvcm_sockaddr_resolve(node, service, numeric, false, req->dest,
						    ADDRS_MAX, loud);
	else
		req->n_dest = hinted(hints, hints ? hints->dest_addr : NULL,
				     hints ? hints->dest_addrlen : 0, req->dest);
	if (req->n_src < 0)
		return req->n_src;
	return req->n_dest < 0 ? req->n_dest : 0;
}

/* The device's address with the port asked for; false if another address was asked for. */
static bool choose_src(const struct request *req, const struct rvcm_device *device,
		       struct rvcm_addr *src)
{
	*src = device->attr.addr;
	for (int i = 0; i < req->n_src; i++) {
		const struct rvcm_addr *want = &req->src[i];

		if (want->family != src->family ||
		    (!rvcm_addr_is_any(want) && !rvcm_devices_same_ip(want, src)))
			continue;
		src->port = want->port;
		return true;
	}
	return !req->n_src;
}

/* The first destination within reach, or NULL and why there is none. */
static const struct rvcm_addr *choose_dest(const struct request *req,
					   const struct rvcm_device *device, const char **why)
{
	for (int i = 0; i < req->n_dest; i++) {
		if (rvcm_devices_reaches(device, &req->dest[i], why))
			return &req->dest[i];
	}
	return NULL;
}

static bool consider(const struct request *req, const struct rvcm_device *device,
		     struct rvcm_offer *offer, char why[RVCM_HINTS_WHY_MAX])
{
	const struct rvcm_addr *dest;
	const char *text = NULL;
	struct rvcm_addr src;

	if (!rvcm_hints_met(req->hints, &offer->info, why))
		return false;
	if (!choose_src(req, device, &src)) {
		snprintf(why, RVCM_HINTS_WHY_MAX, "it does not have the source address asked for");
		return false;
	}
	dest = choose_dest(req, device, &text);
	if (req->n_dest && !dest) {
		snprintf(why, RVCM_HINTS_WHY_MAX, "%s", text);
		return false;
	}
	rvcm_offer_narrow(offer, req->hints);
	rvcm_offer_address(offer, &src, dest);
	return true;
}

static int answer_add(struct answer *answer, const struct fi_info *offer)
{
	struct fi_info *info = fi_dupinfo(offer);

	if (!info)
		return -ENOMEM;
	if (answer->last)
		answer->last->next = info;
	else
		answer->first = info;
	answer->last = info;
	return 0;
}

/* Is it this pass's turn? Near devices come in the first one. */
static bool in_pass(const struct request *req, const struct rvcm_device *device, bool near_pass)
{
	for (int i = 0; i < req->n_dest; i++) {
		if (rvcm_devices_near(device, &req->dest[i]))
			return near_pass;
	}
	return !near_pass;
}

static int ask_devices(const struct request *req, const struct rvcm_params *params,
		       const struct rvcm_device *devices, int n, enum rvcm_log_level level,
		       struct answer *answer)
{
	char why[RVCM_HINTS_WHY_MAX];
	struct rvcm_offer offer;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < n; i++) {
			if (!in_pass(req, &devices[i], pass == 0))
				continue;
			rvcm_offer_init(&offer, &devices[i], params);
			if (!consider(req, &devices[i], &offer, why))
				rvcm_log(level, RVCM_LOG_FABRIC, "device %s is not offered: %s",
					 devices[i].attr.name, why);
			else if (answer_add(answer, &offer.info))
				return -ENOMEM;
		}
	}
	return 0;
}

#define NAMES_MAX 768

/* What there is: "soft-eth0 on eth0 (192.0.2.2), soft-lo on lo (127.0.0.1)"; as many as fit. */
static const char *list_names(const struct rvcm_device *devices, int n, char names[NAMES_MAX])
{
	char ip[RVCM_ADDR_STRLEN];
	size_t used = 0;

	snprintf(names, NAMES_MAX, "none");
	for (int i = 0; i < n && used < NAMES_MAX; i++)
		used += (size_t)snprintf(
			names + used, NAMES_MAX - used, "%s%s on %s (%s)", i ? ", " : "",
			devices[i].attr.name, devices[i].iface,
			rvcm_addr_format_ip(&devices[i].attr.addr, ip, sizeof(ip)));
	return names;
}

/* Nothing is left of the devices; devices has room for RVCM_DEVICES_MAX. */
static void explain_none(enum rvcm_log_level level, const struct rvcm_params *params,
			 struct rvcm_device *devices)
{
	const char *iface = params->iface, *device = params->device;
	const struct rvcm_params all = { 0 };
	char names[NAMES_MAX];
	int n;

	if (!iface && !device) {
		rvcm_log(level, RVCM_LOG_FABRIC, "there is no device to offer");
		return;
	}
	n = rvcm_devices_list(&all, devices, RVCM_DEVICES_MAX);
	rvcm_log(level, RVCM_LOG_FABRIC, "no device is left by%s%s%s%s; there are: %s",
		 iface ? " FI_RVCM_IFACE=" : "", iface ? iface : "",
		 device ? " FI_RVCM_DEVICE=" : "", device ? device : "",
		 list_names(devices, n, names));
}

/* Best first, as they are listed. */
static void say_offered(const struct fi_info *info)
{
	char names[NAMES_MAX];
	size_t used = 0;

	for (; info && used < NAMES_MAX; info = info->next)
		used += (size_t)snprintf(names + used, NAMES_MAX - used, "%s%s", used ? ", " : "",
					 info->domain_attr->name);
	rvcm_info(RVCM_LOG_FABRIC,
		  "offered, those on the destination's network first, most programs take the "
		  "first: %s",
		  names);
}

static int answer_request(const struct request *req, const struct rvcm_params *params,
			  struct fi_info **info)
{
	struct rvcm_device *devices = rvcm_mem_calloc(RVCM_DEVICES_MAX, sizeof(*devices));
	enum rvcm_log_level loud = loudness(req->hints);
	struct answer answer = { 0 };
	int n, rc;

	if (!devices)
		return -ENOMEM;
	n = rvcm_devices_list(params, devices, RVCM_DEVICES_MAX);
	rc = ask_devices(req, params, devices, n, RVCM_LOG_INFO, &answer);
	if (!rc && !answer.first) {
		/* Say it again, so that it is seen. */
		if (loud == RVCM_LOG_WARN)
			ask_devices(req, params, devices, n, loud, &answer);
		if (n <= 0)
			explain_none(loud, params, devices);
		rc = -ENODATA;
	}
	rvcm_mem_free(devices);
	if (rc) {
		fi_freeinfo(answer.first);
		return rc;
	}
	say_offered(answer.first);
	*info = answer.first;
	return 0;
}

/* Who we are and nothing else, FI_PROV_ATTR_ONLY; libfabric adds the name. */
static int introduce(struct fi_info **info)
{
	*info = fi_allocinfo();
	if (!*info)
		return -ENOMEM;
	(*info)->fabric_attr->prov_version = FI_VERSION(0, 1);
	return 0;
}

int rvcm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	struct rvcm_params params;
	struct request req;
	int rc;

	(void)version;
	if (flags & LAYERED_QUERY)
		return -FI_ENODATA;
	if (flags & FI_PROV_ATTR_ONLY)
		return introduce(info);
	if (hints && hints->fabric_attr && !rvcm_hints_prov_name_met(hints->fabric_attr->prov_name))
		return -FI_ENODATA;
	if (rvcm_params_read(&params) || rvcm_jobkey_check(&params) ||
	    rvcm_devices_check(&params) || rvcm_rails_check(&params))
		return -FI_ENODATA;
	rc = request_init(&req, node, service, flags, hints);
	if (rc)
		return rc;
	return answer_request(&req, &params, info);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/av.h"

#include <inttypes.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "ofi/endpoint.h"
#include "ofi/nosys.h"
#include "ofi/sockaddr.h"

#define SIZE_FIRST  64u
#define CHUNK_COUNT 64u

#define INSERT_FLAGS (FI_MORE | FI_SYNC_ERR)

struct rvcm_av_entry {
	struct rvcm_hash_node node;
	struct rvcm_addr name;
	fi_addr_t number;
	uint32_t refs; /* times it was inserted */
};

static struct rvcm_av *av_of(struct fid_av *fid)
{
	return (struct rvcm_av *)fid;
}

static struct rvcm_av_entry *entry_of(const struct rvcm_hash_node *node)
{
	return (struct rvcm_av_entry *)node; /* its first member */
}

static bool same_name(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_addr_equal(&entry_of(node)->name, key);
}

static struct rvcm_av_entry *find(const struct rvcm_av *av, const struct rvcm_addr *name)
{
	uint64_t hash = rvcm_addr_hash(name, av->names.seed);

	return entry_of(rvcm_hash_find(&av->names, hash, name));
}

const struct rvcm_addr *rvcm_av_name(const struct rvcm_av *av, fi_addr_t fi_addr)
{
	if (fi_addr >= av->size || !av->entries[fi_addr])
		return NULL;
	return &av->entries[fi_addr]->name;
}

fi_addr_t rvcm_av_number(const struct rvcm_av *av, const struct rvcm_addr *name)
{
	const struct rvcm_av_entry *entry = find(av, name);

	return entry ? entry->number : FI_ADDR_NOTAVAIL;
}

/* -- insert and remove --------------------------------------------------------------------- */

/* Make sure that there is a free number, and find the lowest. */
static int find_free(struct rvcm_av *av)
{
	size_t size = av->size ? 2 * av->size : SIZE_FIRST;
	struct rvcm_av_entry **entries;

	while (av->lowest_free < av->size && av->entries[av->lowest_free])
		av->lowest_free++;
	if (av->lowest_free < av->size)
		return 0;
	entries = rvcm_mem_realloc(av->entries, size * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	memset(entries + av->size, 0, (size - av->size) * sizeof(*entries));
	av->entries = entries;
	av->size = size;
	return 0;
}

/* Endpoints know peers that connected first by their name only: tell them the number. */
static void tell_endpoints(struct rvcm_av *av, const struct rvcm_addr *name, fi_addr_t number)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &av->endpoints)
		rvcm_endpoint_source(rvcm_list_entry(pos, struct rvcm_endpoint, av_link), name,
				     number);
}

static int insert_name(struct rvcm_av *av, const struct rvcm_addr *name, fi_addr_t *number)
{
	struct rvcm_av_entry *entry = find(av, name);

	if (entry) {
		entry->refs++;
		*number = entry->number;
		return 0;
	}
	if (!name->port || rvcm_addr_is_any(name))
		return -FI_EINVAL; /* nobody can be reached there */
	if (find_free(av))
		return -FI_ENOMEM;
	entry = rvcm_pool_get(&av->pool);
	if (!entry)
		return -FI_ENOMEM;
	*entry = (struct rvcm_av_entry) { .name = *name, .number = av->lowest_free, .refs = 1 };
	av->entries[entry->number] = entry;
	rvcm_hash_insert(&av->names, &entry->node, rvcm_addr_hash(name, av->names.seed));
	tell_endpoints(av, name, entry->number);
	*number = entry->number;
	return 0;
}

static void remove_entry(struct rvcm_av *av, struct rvcm_av_entry *entry)
{
	struct rvcm_list *pos;

	if (--entry->refs)
		return;
	rvcm_list_for_each (pos, &av->endpoints)
		rvcm_endpoint_forget(rvcm_list_entry(pos, struct rvcm_endpoint, av_link),
				     entry->number);
	tell_endpoints(av, &entry->name, FI_ADDR_NOTAVAIL);
	av->entries[entry->number] = NULL;
	if (entry->number < av->lowest_free)
		av->lowest_free = entry->number;
	rvcm_hash_del(&av->names, &entry->node);
	rvcm_pool_put(&av->pool, entry);
}

#define INSERT "fi_av_insert: " /* begins what is said of that, and of its relatives */

/* What one call to insert is to report, address by address (fi_av(3), FI_SYNC_ERR). */
struct report {
	fi_addr_t *numbers; /* or NULL */
	int *errors;        /* or NULL */
	size_t done;
	int inserted;
};

static int report_init(struct report *report, fi_addr_t *numbers, uint64_t flags, void *context)
{
	if (flags & ~INSERT_FLAGS)
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_AV, INSERT "flags %#" PRIx64, flags);
	if (flags & FI_SYNC_ERR && !context)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV,
				   INSERT "FI_SYNC_ERR without a place for the errors");
	*report = (struct report) { .numbers = numbers };
	if (flags & FI_SYNC_ERR)
		report->errors = context;
	return 0;
}

/* One address was inserted, or not. */
static void report_one(struct report *report, int rc, fi_addr_t number)
{
	if (report->numbers)
		report->numbers[report->done] = rc ? FI_ADDR_NOTAVAIL : number;
	if (report->errors)
		report->errors[report->done] = -rc;
	report->inserted += !rc;
	report->done++;
}

static void insert_one(struct rvcm_av *av, const struct rvcm_addr *name, struct report *report)
{
	fi_addr_t number = FI_ADDR_NOTAVAIL;
	int rc = insert_name(av, name, &number);
	char text[RVCM_ADDR_STRLEN];

	if (rc)
		rvcm_warn(RVCM_LOG_AV, "address %s cannot be inserted: %s",
			  rvcm_addr_format(name, text, sizeof(text)), strerror(-rc));
	report_one(report, rc, number);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct rvcm_av *av = av_of(fid);
	uint32_t format = av->domain->addr_format;
	const char *p = addr;
	struct report report;
	struct rvcm_addr name;
	int rc = report_init(&report, fi_addr, flags, context);

	if (rc)
		return rc;
	if ((count && !addr) || count > INT_MAX)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV, INSERT "%zu addresses%s", count,
				   addr ? "" : " at NULL");
	rvcm_lock_acquire(&av->domain->lock);
	while (report.done < count) {
		size_t size = rvcm_sockaddr_size(format, p);

		/* Without a size it is not known where the next one begins. */
		if (!size || rvcm_sockaddr_get(format, p, size, &name))
			break;
		insert_one(av, &name, &report);
		p += size;
	}
	if (report.done < count)
		rvcm_warn(RVCM_LOG_AV,
			  INSERT
			  "address %zu of %zu is none of the domain's format; the rest is left",
			  report.done, count);
	for (int err = -FI_EINVAL; report.done < count; err = -FI_ECANCELED)
		report_one(&report, err, 0);
	rvcm_lock_release(&av->domain->lock);
	return report.inserted;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct rvcm_av *av = av_of(fid);
	struct rvcm_addr found[16], *name = NULL;
	struct report report;
	int rc = report_init(&report, fi_addr, flags, context);
	int n;

	if (rc)
		return rc;
	if (!node || !service)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV, "fi_av_insertsvc: without %s",
				   node ? "a service" : "a node");
	n = rvcm_sockaddr_resolve(node, service, false, false, found, 16, RVCM_LOG_WARN);
	for (int i = 0; i < n && !name; i++) {
		if (rvcm_sockaddr_fits(av->domain->addr_format, found[i].family))
			name = &found[i];
	}
	rvcm_lock_acquire(&av->domain->lock);
	if (name)
		insert_one(av, name, &report);
	else if (n < 0)
		report_one(&report, n, 0);
	else
		report_one(&report,
			   rvcm_refuse(
				   -FI_ENODATA, RVCM_LOG_AV,
				   "fi_av_insertsvc: %s %s names no address of the domain's format",
				   node, service),
			   0);
	rvcm_lock_release(&av->domain->lock);
	return report.inserted;
}

/* Add to an IP address as to one big-endian number. */
static void ip_add(struct rvcm_addr *name, size_t n)
{
	size_t bytes = name->family == RVCM_ADDR_V4 ? 4 : 16;

	for (size_t i = bytes; i-- && n; n >>= 8) {
		n += name->ip[i];
		name->ip[i] = (uint8_t)n;
	}
}

/* Numeric nodes only: what host names with numbers in them mean is not for us to guess. */
static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct rvcm_av *av = av_of(fid);
	struct rvcm_addr first, name;
	struct report report;
	int rc = report_init(&report, fi_addr, flags, context);

	if (rc)
		return rc;
	if (!node || !service || (svccnt && nodecnt > INT_MAX / svccnt))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV,
				   "fi_av_insertsym: no node, no service, or %zu times %zu of them",
				   nodecnt, svccnt);
	if (rvcm_sockaddr_resolve(node, service, true, false, &first, 1, RVCM_LOG_INFO) != 1 ||
	    !rvcm_sockaddr_fits(av->domain->addr_format, first.family) ||
	    first.port + svccnt > UINT16_MAX + 1u)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV,
				   "fi_av_insertsym: %s %s and %zu ports from there on are no "
				   "numeric addresses of the domain's format",
				   node, service, svccnt);
	rvcm_lock_acquire(&av->domain->lock);
	for (size_t i = 0; svccnt && i < nodecnt; i++) {
		name = first;
		ip_add(&name, i);
		for (size_t j = 0; j < svccnt; j++, name.port++)
			insert_one(av, &name, &report);
	}
	rvcm_lock_release(&av->domain->lock);
	return report.inserted;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct rvcm_av *av = av_of(fid);
	int rc = 0;

	if (flags)
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_AV, "fi_av_remove: flags %#" PRIx64,
				   flags);
	if (count && !fi_addr)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV, "fi_av_remove: %zu numbers at NULL",
				   count);
	rvcm_lock_acquire(&av->domain->lock);
	for (size_t i = 0; i < count; i++) {
		if (rvcm_av_name(av, fi_addr[i]))
			remove_entry(av, av->entries[fi_addr[i]]);
		else
			rc = rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV,
					 "fi_av_remove: %#" PRIx64 " is no address", fi_addr[i]);
	}
	rvcm_lock_release(&av->domain->lock);
	return rc;
}

/* -- lookup -------------------------------------------------------------------------------- */

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct rvcm_av *av = av_of(fid);
	const struct rvcm_addr *name;
	union rvcm_sockaddr out;
	size_t size = 0;

	rvcm_lock_acquire(&av->domain->lock);
	name = rvcm_av_name(av, fi_addr);
	if (name)
		size = rvcm_sockaddr_put(av->domain->addr_format, name, &out);
	rvcm_lock_release(&av->domain->lock);
	if (!name)
		return -FI_EINVAL;
	if (*addrlen)
		memcpy(addr, &out, *addrlen < size ? *addrlen : size);
	*addrlen = size;
	return 0;
}

/* As libfabric writes addresses, FI_ADDR_STR (fi_getinfo(3)). */
static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	uint32_t format = av_of(fid)->domain->addr_format;
	struct rvcm_addr name;
	char text[RVCM_ADDR_STRLEN] = "malformed";
	const char *scheme = "fi_sockaddr";
	int n;

	if (rvcm_sockaddr_get(format, addr, rvcm_sockaddr_size(format, addr), &name) == 0) {
		rvcm_addr_format(&name, text, sizeof(text));
		scheme = name.family == RVCM_ADDR_V6 ? "fi_sockaddr_in6" : "fi_sockaddr_in";
	}
	n = snprintf(buf, *len, "%s://%s", scheme, text);
	*len = (size_t)n + 1;
	return buf;
}

/* -- life ---------------------------------------------------------------------------------- */

static int av_close(struct fid *fid)
{
	struct rvcm_av *av = (struct rvcm_av *)fid;

	if (atomic_load(&av->refs))
		return -FI_EBUSY;
	for (size_t i = 0; i < av->size; i++)
		rvcm_pool_put(&av->pool, av->entries[i]);
	rvcm_pool_fini(&av->pool);
	rvcm_hash_fini(&av->names);
	atomic_fetch_sub(&av->domain->refs, 1);
	rvcm_mem_free(av->entries);
	rvcm_mem_free(av);
	return 0;
}

/* An event queue is of no use without FI_EVENT, but does no harm. */
static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : 0;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = av_close,
	.bind = av_bind,
	.control = rvcm_nosys_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static const struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = rvcm_nosys_av_set,
};

/* Shared, read-only and asynchronous vectors, and receive contexts in addresses, are not offered.
 */
static int check_attr(const struct fi_av_attr *attr)
{
	int rc = attr->flags & (FI_EVENT | FI_READ) ? -FI_ENOSYS : -FI_EBADFLAGS;

	if (attr->type > FI_AV_TABLE)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_AV, "fi_av_open: no type %d",
				   (int)attr->type);
	if (attr->rx_ctx_bits || attr->name)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_AV, "fi_av_open: %s is not offered",
				   attr->name ? "a name, to share it by" : "rx_ctx_bits");
	if (attr->flags & ~FI_SYMMETRIC)
		return rvcm_refuse(rc, RVCM_LOG_AV, "fi_av_open: flags %#" PRIx64, attr->flags);
	return 0;
}

int rvcm_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
		 void *context)
{
	struct rvcm_av *av;
	uint64_t seed = 0;
	int rc;

	if (!attr)
		return -FI_EINVAL;
	rc = check_attr(attr);
	if (rc)
		return rc;
	rc = rvcm_rng_secure(&seed, sizeof(seed));
	if (rc)
		return rc;
	av = rvcm_mem_zalloc(sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = (struct fi_ops *)&fid_ops;
	av->fid.ops = (struct fi_ops_av *)&av_ops;
	av->domain = rvcm_domain_of(domain);
	rvcm_list_init(&av->endpoints);
	rvcm_hash_init(&av->names, same_name, seed);
	rvcm_pool_init(&av->pool, sizeof(struct rvcm_av_entry), 0, CHUNK_COUNT, 0);
	atomic_fetch_add(&av->domain->refs, 1);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	*fid = &av->fid;
	return 0;
}

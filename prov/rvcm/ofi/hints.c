/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(3): a hint that is zero is a wildcard, any other must be supported or the offer does
 * not count; an offer may exceed what was asked for. Most attributes are plain numbers or sets of
 * bits and are rows of a table; the others have a function each.
 */
#include "config.h"

#include "ofi/hints.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ofi/sockaddr.h"
#include "ofi/tclass.h"
#include "rvcm/fi_ext_rvcm.h"

/* fi_domain(3) of later versions: a promise of the application's that we do not need. */
#define CONTROL_UNIFIED 3

enum part {
	PART_INFO,
	PART_TX,
	PART_RX,
	PART_EP,
	PART_DOMAIN,
	PART_FABRIC,
};

static const char *const part_names[] = {
	[PART_INFO] = "info",  [PART_TX] = "tx_attr",         [PART_RX] = "rx_attr",
	[PART_EP] = "ep_attr", [PART_DOMAIN] = "domain_attr", [PART_FABRIC] = "fabric_attr",
};

enum rule {
	RULE_SUBSET,  /* the hint's bits are among the offer's */
	RULE_NEEDED,  /* the offer's bits, which are demands, are among the hint's */
	RULE_EQUAL,   /* the hint is zero, or the offer's value */
	RULE_AT_MOST, /* the hint is not more than the offer's */
};

struct row {
	enum part part;
	const char *name;
	size_t offset;
	size_t width;
	enum rule rule;
	enum fi_type type; /* how to print bits */
};

#define ROW(part_, struct_, field_, rule_, type_)                                                \
	{                                                                                        \
		.part = (part_), .name = #field_, .offset = offsetof(struct struct_, field_),    \
		.width = sizeof(((struct struct_ *)0)->field_), .rule = (rule_), .type = (type_) \
	}

static const struct row table[] = {
	ROW(PART_INFO, fi_info, caps, RULE_SUBSET, FI_TYPE_CAPS),
	ROW(PART_INFO, fi_info, mode, RULE_NEEDED, FI_TYPE_MODE),
	ROW(PART_EP, fi_ep_attr, type, RULE_EQUAL, FI_TYPE_EP_TYPE),
	ROW(PART_EP, fi_ep_attr, protocol, RULE_EQUAL, FI_TYPE_PROTOCOL),
	ROW(PART_EP, fi_ep_attr, protocol_version, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, max_msg_size, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, max_order_raw_size, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, max_order_war_size, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, max_order_waw_size, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, tx_ctx_cnt, RULE_AT_MOST, 0),
	ROW(PART_EP, fi_ep_attr, rx_ctx_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, mr_key_size, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, cq_data_size, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, cq_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, ep_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, tx_ctx_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, rx_ctx_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, max_ep_tx_ctx, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, max_ep_rx_ctx, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, max_ep_stx_ctx, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, max_ep_srx_ctx, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, cntr_cnt, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, mr_iov_limit, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, caps, RULE_SUBSET, FI_TYPE_CAPS),
	ROW(PART_DOMAIN, fi_domain_attr, mode, RULE_NEEDED, FI_TYPE_MODE),
	ROW(PART_DOMAIN, fi_domain_attr, max_err_data, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, mr_cnt, RULE_AT_MOST, 0),
#if FI_MAJOR_VERSION >= 2
	ROW(PART_DOMAIN, fi_domain_attr, max_ep_auth_key, RULE_AT_MOST, 0),
	ROW(PART_DOMAIN, fi_domain_attr, max_group_id, RULE_AT_MOST, 0),
#endif
	ROW(PART_TX, fi_tx_attr, caps, RULE_SUBSET, FI_TYPE_CAPS),
	ROW(PART_TX, fi_tx_attr, mode, RULE_NEEDED, FI_TYPE_MODE),
	ROW(PART_TX, fi_tx_attr, op_flags, RULE_SUBSET, FI_TYPE_OP_FLAGS),
	ROW(PART_TX, fi_tx_attr, msg_order, RULE_SUBSET, FI_TYPE_MSG_ORDER),
	ROW(PART_TX, fi_tx_attr, comp_order, RULE_SUBSET, FI_TYPE_MSG_ORDER),
	ROW(PART_TX, fi_tx_attr, inject_size, RULE_AT_MOST, 0),
	ROW(PART_TX, fi_tx_attr, size, RULE_AT_MOST, 0),
	ROW(PART_TX, fi_tx_attr, iov_limit, RULE_AT_MOST, 0),
	ROW(PART_TX, fi_tx_attr, rma_iov_limit, RULE_AT_MOST, 0),
	ROW(PART_RX, fi_rx_attr, caps, RULE_SUBSET, FI_TYPE_CAPS),
	ROW(PART_RX, fi_rx_attr, mode, RULE_NEEDED, FI_TYPE_MODE),
	ROW(PART_RX, fi_rx_attr, op_flags, RULE_SUBSET, FI_TYPE_OP_FLAGS),
	ROW(PART_RX, fi_rx_attr, msg_order, RULE_SUBSET, FI_TYPE_MSG_ORDER),
	ROW(PART_RX, fi_rx_attr, comp_order, RULE_SUBSET, FI_TYPE_MSG_ORDER),
	ROW(PART_RX, fi_rx_attr, size, RULE_AT_MOST, 0),
	ROW(PART_RX, fi_rx_attr, iov_limit, RULE_AT_MOST, 0),
	ROW(PART_FABRIC, fi_fabric_attr, prov_version, RULE_AT_MOST, 0),
};

static const void *part_of(const struct fi_info *info, enum part part)
{
	switch (part) {
	case PART_TX:
		return info->tx_attr;
	case PART_RX:
		return info->rx_attr;
	case PART_EP:
		return info->ep_attr;
	case PART_DOMAIN:
		return info->domain_attr;
	case PART_FABRIC:
		return info->fabric_attr;
	case PART_INFO:
	default:
		return info;
	}
}

static uint64_t value_of(const struct row *row, const void *part)
{
	const char *field = (const char *)part + row->offset;
	uint32_t narrow;
	uint64_t wide;

	if (row->width == sizeof(narrow)) {
		memcpy(&narrow, field, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, field, sizeof(wide));
	return wide;
}

/* Bits as fi_tostr(3) names them; a number where it knows no names. */
static const char *name_value(const struct row *row, uint64_t value, char *buf, size_t len)
{
	uint32_t narrow = (uint32_t)value;

	snprintf(buf, len, "%llu", (unsigned long long)value);
	if (row->type)
		fi_tostr_r(buf, len, row->width == sizeof(narrow) ? (void *)&narrow : &value,
			   row->type);
	return buf;
}

static bool row_met(const struct row *row, uint64_t hint, uint64_t offer, char *why)
{
	char text[128];

	switch (row->rule) {
	case RULE_SUBSET:
		if (!(hint & ~offer))
			return true;
		snprintf(why, RVCM_HINTS_WHY_MAX, "%s->%s: %s is not offered",
			 part_names[row->part], row->name,
			 name_value(row, hint & ~offer, text, sizeof(text)));
		return false;
	case RULE_NEEDED:
		if (!(offer & ~hint))
			return true;
		snprintf(why, RVCM_HINTS_WHY_MAX, "%s->%s: %s is needed", part_names[row->part],
			 row->name, name_value(row, offer & ~hint, text, sizeof(text)));
		return false;
	case RULE_EQUAL:
		if (!hint || hint == offer)
			return true;
		snprintf(why, RVCM_HINTS_WHY_MAX, "%s->%s: %s is not offered",
			 part_names[row->part], row->name,
			 name_value(row, hint, text, sizeof(text)));
		return false;
	case RULE_AT_MOST:
	default:
		if (hint <= offer)
			return true;
		snprintf(why, RVCM_HINTS_WHY_MAX, "%s->%s: %llu is asked for, the most is %llu",
			 part_names[row->part], row->name, (unsigned long long)hint,
			 (unsigned long long)offer);
		return false;
	}
}

bool rvcm_hints_prov_name_met(const char *prov_name)
{
	return !prov_name || strcasecmp(prov_name, FI_RVCM_PROV_NAME) == 0;
}

static const char *check_format(const struct fi_info *hints, const struct fi_info *offer)
{
	if (!hints->addr_format || hints->addr_format == FI_SOCKADDR ||
	    hints->addr_format == offer->addr_format)
		return NULL;
	if (!rvcm_sockaddr_format_known(hints->addr_format))
		return "info->addr_format: only FI_SOCKADDR, FI_SOCKADDR_IN and FI_SOCKADDR_IN6 "
		       "are offered";
	return "info->addr_format: the device has an address of the other IP version";
}

static const char *check_provider(const struct fi_info *hints, const struct fi_info *offer)
{
	const struct fi_fabric_attr *fabric = hints->fabric_attr;

	(void)offer;
	if (fabric && !rvcm_hints_prov_name_met(fabric->prov_name))
		return "fabric_attr->prov_name: names another provider, or one layered over rvcm";
	return NULL;
}

/* NULL, the offer's name, or another one. */
static bool name_met(const char *part, const char *hint, const char *offer, char *why)
{
	if (!hint || strcmp(hint, offer) == 0)
		return true;
	snprintf(why, RVCM_HINTS_WHY_MAX, "%s->name: %s is asked for", part, hint);
	return false;
}

static bool names_met(const struct fi_info *hints, const struct fi_info *offer, char *why)
{
	const struct fi_fabric_attr *fabric = hints->fabric_attr;
	const struct fi_domain_attr *domain = hints->domain_attr;

	return name_met("fabric_attr", fabric ? fabric->name : NULL, offer->fabric_attr->name,
			why) &&
	       name_met("domain_attr", domain ? domain->name : NULL, offer->domain_attr->name, why);
}

static const char *check_models(const struct fi_info *hints, const struct fi_info *offer)
{
	const struct fi_domain_attr *domain = hints->domain_attr;

	(void)offer;
	if (!domain)
		return NULL;
	if (domain->threading > FI_THREAD_ENDPOINT)
		return "domain_attr->threading: unknown model";
	if (domain->control_progress > CONTROL_UNIFIED)
		return "domain_attr->control_progress: unknown model";
	if (domain->data_progress > FI_PROGRESS_MANUAL)
		return "domain_attr->data_progress: unknown model";
	if (domain->resource_mgmt > FI_RM_ENABLED)
		return "domain_attr->resource_mgmt: unknown model";
	if (domain->av_type > FI_AV_TABLE)
		return "domain_attr->av_type: only FI_AV_MAP and FI_AV_TABLE are offered";
	return NULL;
}

static bool key_met(const uint8_t *key, size_t size)
{
	return !size || (size == FI_RVCM_AUTH_KEY_SIZE && key);
}

static const char *check_keys(const struct fi_info *hints, const struct fi_info *offer)
{
	const struct fi_domain_attr *domain = hints->domain_attr;
	const struct fi_ep_attr *ep = hints->ep_attr;

	(void)offer;
	if (domain && !key_met(domain->auth_key, domain->auth_key_size))
		return "domain_attr->auth_key: a key has 16 bytes";
	if (!ep || !ep->auth_key_size)
		return NULL;
	if (!domain || !domain->auth_key_size || ep->auth_key_size != domain->auth_key_size ||
	    !ep->auth_key || memcmp(ep->auth_key, domain->auth_key, ep->auth_key_size))
		return "ep_attr->auth_key: endpoints have the key of their domain";
	return NULL;
}

static const char *check_tclass(const struct fi_info *hints, const struct fi_info *offer)
{
	uint32_t domain = hints->domain_attr ? hints->domain_attr->tclass : FI_TC_UNSPEC;
	uint32_t tx = hints->tx_attr ? hints->tx_attr->tclass : FI_TC_UNSPEC;

	(void)offer;
	if (!rvcm_tclass_known(domain))
		return "domain_attr->tclass: neither a DSCP nor a known label";
	if (!rvcm_tclass_known(tx))
		return "tx_attr->tclass: neither a DSCP nor a known label";
	if (domain && tx && domain != tx)
		return "tx_attr->tclass: endpoints have the traffic class of their domain";
	return NULL;
}

static const char *(*const checks[])(const struct fi_info *hints, const struct fi_info *offer) = {
	check_provider, check_format, check_models, check_keys, check_tclass,
};

bool rvcm_hints_met(const struct fi_info *hints, const struct fi_info *offer,
		    char why[RVCM_HINTS_WHY_MAX])
{
	if (!hints)
		return true;
	if (!names_met(hints, offer, why))
		return false;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		const char *text = checks[i](hints, offer);

		if (text) {
			snprintf(why, RVCM_HINTS_WHY_MAX, "%s", text);
			return false;
		}
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *row = &table[i];
		const void *part = part_of(hints, row->part);

		if (part && !row_met(row, value_of(row, part),
				     value_of(row, part_of(offer, row->part)), why))
			return false;
	}
	return true;
}

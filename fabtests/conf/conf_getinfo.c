/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo(3): hints are met or refused, never ignored; addresses are those asked for. */
#include "conf/conf.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static int ask(const struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(CONF_VERSION, NULL, NULL, 0, hints, info);
}

static void plain_hints_are_met(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	conf_ok(ask(hints, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		/* fi_fabric(3): what is layered over a provider bears its name too */
		assert_non_null(strstr(i->fabric_attr->prov_name, conf_provider()));
		assert_non_null(i->fabric_attr->name);
		assert_non_null(i->domain_attr->name);
		assert_int_equal(i->ep_attr->type, FI_EP_RDM);
		assert_int_equal(i->caps & hints->caps, hints->caps);
		assert_int_equal(i->mode & ~hints->mode, 0);
		assert_int_equal(i->domain_attr->mr_mode & ~hints->domain_attr->mr_mode, 0);
		assert_non_null(i->src_addr);
		assert_true(i->ep_attr->max_msg_size > 1 << 20);
		assert_true(i->tx_attr->iov_limit >= 1);
		assert_true(i->rx_attr->iov_limit >= 1);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* fi_nic(3): is it the same adapter, in memory of its own? */
static void check_nic(const struct fid_nic *nic, const struct fid_nic *copy)
{
	assert_int_equal(!nic, !copy);
	if (!nic)
		return;
	assert_ptr_not_equal(nic, copy);
	assert_int_equal(copy->fid.fclass, FI_CLASS_NIC);
	if (nic->device_attr && nic->device_attr->name) {
		assert_ptr_not_equal(nic->device_attr->name, copy->device_attr->name);
		assert_string_equal(nic->device_attr->name, copy->device_attr->name);
	}
	if (nic->link_attr)
		assert_int_equal(nic->link_attr->state, copy->link_attr->state);
}

/* fi_getinfo(3), fi_dupinfo, and fi_tostr(3): a copy outlives what it was made from. */
static void infos_can_be_copied_and_shown(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	conf_ok(ask(hints, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		struct fi_info *copy = fi_dupinfo(i), *again = fi_dupinfo(copy);
		static char text[1 << 16];

		assert_non_null(copy);
		assert_non_null(again);
		check_nic(i->nic, copy->nic);
		fi_freeinfo(copy);
		check_nic(i->nic, again->nic);
		snprintf(text, sizeof(text), "%s", fi_tostr(again, FI_TYPE_INFO));
		assert_non_null(strstr(text, i->domain_attr->name));
		assert_non_null(strstr(text, "fi_tx_attr"));
		if (i->nic && i->nic->device_attr && i->nic->device_attr->name)
			assert_non_null(strstr(text, i->nic->device_attr->name));
		fi_freeinfo(again);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void the_address_format_is_honoured(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	conf_need_ip_names();
	conf_ok(ask(hints, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		assert_int_equal(i->addr_format, hints->addr_format);
		assert_int_equal(i->src_addrlen, sizeof(struct sockaddr_in));
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void no_hints_are_met(void **state)
{
	struct fi_info *info;

	(void)state;
	conf_ok(ask(NULL, &info));
	fi_freeinfo(info);
}

static void only_what_was_asked_for(void **state)
{
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	hints->caps = FI_TAGGED;
	conf_ok(ask(hints, &info));
	assert_true(info->caps & FI_TAGGED);
	assert_false(info->caps & FI_MSG);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* fi_getinfo(3), "Capabilities": without a modifier all of them, with some only these. */
static void modifiers_restrict_rma(void **state)
{
	const uint64_t modifiers = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	hints->caps = FI_RMA;
	if (ask(hints, &info) == -FI_ENODATA)
		conf_not_offered("FI_RMA");
	assert_true(info->caps & FI_RMA);
	assert_true((info->caps & modifiers) == modifiers);
	assert_false(info->caps & FI_TAGGED);
	fi_freeinfo(info);
	hints->caps = FI_RMA | FI_WRITE;
	conf_ok(ask(hints, &info));
	assert_true(info->caps & FI_WRITE);
	assert_false(info->caps & (FI_READ | FI_REMOTE_WRITE));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Each change alone must make the hints impossible. */
static void bad_prov_name(struct fi_info *h)
{
	free(h->fabric_attr->prov_name);
	h->fabric_attr->prov_name = strdup("nonesuch");
}

static void bad_fabric_name(struct fi_info *h)
{
	h->fabric_attr->name = strdup("nonesuch");
}

static void bad_domain_name(struct fi_info *h)
{
	h->domain_attr->name = strdup("nonesuch");
}

static void bad_ep_type(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_DGRAM;
}

static void bad_protocol(struct fi_info *h)
{
	h->ep_attr->protocol = FI_PROTO_GNI;
}

static void bad_format(struct fi_info *h)
{
	h->addr_format = FI_ADDR_GNI;
}

static void bad_caps(struct fi_info *h)
{
	h->caps |= FI_MULTICAST;
}

static void bad_tx_size(struct fi_info *h)
{
	h->tx_attr->size = SIZE_MAX / 2;
}

static void bad_rx_size(struct fi_info *h)
{
	h->rx_attr->size = SIZE_MAX / 2;
}

static void bad_tx_iov(struct fi_info *h)
{
	h->tx_attr->iov_limit = 1 << 20;
}

static void bad_rx_iov(struct fi_info *h)
{
	h->rx_attr->iov_limit = 1 << 20;
}

static void bad_inject(struct fi_info *h)
{
	h->tx_attr->inject_size = SIZE_MAX / 2;
}

static void bad_cq_data(struct fi_info *h)
{
	h->domain_attr->cq_data_size = 64;
}

static void bad_contexts(struct fi_info *h)
{
	h->ep_attr->tx_ctx_cnt = 1 << 20;
}

struct change {
	const char *what;
	void (*make)(struct fi_info *hints);
};

static const struct change impossible[] = {
	{ "prov_name", bad_prov_name },
	{ "ep type", bad_ep_type },
	{ "protocol", bad_protocol },
	{ "addr_format", bad_format },
	{ "caps", bad_caps },
	{ "tx size", bad_tx_size },
	{ "rx size", bad_rx_size },
	{ "tx iov_limit", bad_tx_iov },
	{ "rx iov_limit", bad_rx_iov },
	{ "inject_size", bad_inject },
	{ "cq_data_size", bad_cq_data },
	{ "tx_ctx_cnt", bad_contexts },
};

static const struct change nowhere[] = {
	{ "fabric name", bad_fabric_name },
	{ "domain name", bad_domain_name },
};

static void all_are_refused(const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fi_info *hints = conf_hints(), *info;

		changes[i].make(hints);
		if (ask(hints, &info) != -FI_ENODATA)
			fail_msg("%s: not refused", changes[i].what);
		assert_null(info);
		fi_freeinfo(hints);
	}
}

static void impossible_hints_are_refused(void **state)
{
	(void)state;
	all_are_refused(impossible, sizeof(impossible) / sizeof(impossible[0]));
}

static void names_that_nobody_has_are_refused(void **state)
{
	(void)state;
	all_are_refused(nowhere, sizeof(nowhere) / sizeof(nowhere[0]));
}

static void names_lead_back(void **state)
{
	struct fi_info *hints = conf_hints(), *info, *again;

	(void)state;
	conf_ok(ask(hints, &info));
	hints->fabric_attr->name = strdup(info->fabric_attr->name);
	hints->domain_attr->name = strdup(info->domain_attr->name);
	conf_ok(ask(hints, &again));
	assert_string_equal(again->domain_attr->name, info->domain_attr->name);
	assert_string_equal(again->fabric_attr->name, info->fabric_attr->name);
	fi_freeinfo(again);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void what_was_given_can_be_asked_for(void **state)
{
	struct fi_info *hints = conf_hints(), *info, *again;

	(void)state;
	conf_ok(ask(hints, &info));
	conf_ok(ask(info, &again));
	assert_int_equal(again->caps, info->caps);
	fi_freeinfo(again);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* conf_node_name(), as sockets have it. */
static in_addr_t own_address(void)
{
	struct in_addr addr;

	assert_int_equal(inet_pton(AF_INET, conf_node_name(), &addr), 1);
	return addr.s_addr;
}

static void node_and_service_are_the_source(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	const struct sockaddr_in *sin;

	(void)state;
	conf_need_ip_names();
	conf_ok(fi_getinfo(CONF_VERSION, conf_node_name(), "5017", FI_SOURCE, hints, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		sin = i->src_addr;
		assert_int_equal(sin->sin_family, AF_INET);
		assert_int_equal(sin->sin_addr.s_addr, own_address());
		assert_int_equal(ntohs(sin->sin_port), 5017);
		assert_null(i->dest_addr);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void node_and_service_are_the_destination(void **state)
{
	struct fi_info *hints = conf_hints(), *info;
	const struct sockaddr_in *sin;

	(void)state;
	conf_need_ip_names();
	conf_ok(fi_getinfo(CONF_VERSION, conf_node_name(), "5018", FI_NUMERICHOST, hints, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		sin = i->dest_addr;
		assert_int_equal(i->dest_addrlen, sizeof(*sin));
		assert_int_equal(sin->sin_addr.s_addr, own_address());
		assert_int_equal(ntohs(sin->sin_port), 5018);
		sin = i->src_addr;
		assert_int_equal(sin->sin_addr.s_addr, own_address());
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void addresses_may_be_hints(void **state)
{
	struct sockaddr_in *sin = calloc(2, sizeof(*sin));
	struct fi_info *hints = conf_hints(), *info;

	(void)state;
	conf_need_ip_names();
	sin[0].sin_family = sin[1].sin_family = AF_INET;
	sin[0].sin_addr.s_addr = sin[1].sin_addr.s_addr = own_address();
	sin[0].sin_port = htons(5019);
	sin[1].sin_port = htons(5020);
	hints->src_addr = &sin[0];
	hints->dest_addr = &sin[1];
	hints->src_addrlen = hints->dest_addrlen = sizeof(*sin);
	conf_ok(ask(hints, &info));
	assert_memory_equal(info->src_addr, &sin[0], 8);
	assert_memory_equal(info->dest_addr, &sin[1], 8);
	fi_freeinfo(info);
	hints->src_addr = hints->dest_addr = NULL;
	fi_freeinfo(hints);
	free(sin);
}

static void a_source_that_nobody_has_is_refused(void **state)
{
	struct fi_info *hints = conf_hints(), *info = NULL;

	(void)state;
	conf_need_ip_names();
	/* TEST-NET-3, RFC 5737 */
	assert_int_equal(fi_getinfo(CONF_VERSION, "203.0.113.77", NULL, FI_SOURCE | FI_NUMERICHOST,
				    hints, &info),
			 -FI_ENODATA);
	assert_null(info);
	fi_freeinfo(hints);
}

static void names_are_not_resolved_if_numeric_is_asked_for(void **state)
{
	struct fi_info *hints = conf_hints(), *info = NULL;

	(void)state;
	conf_need_ip_names();
	assert_int_not_equal(fi_getinfo(CONF_VERSION, conf_host_name(), NULL,
					FI_SOURCE | FI_NUMERICHOST, hints, &info),
			     0);
	conf_ok(fi_getinfo(CONF_VERSION, conf_host_name(), NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void av_types_and_threading_are_honoured(void **state)
{
	static const enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };
	static const enum fi_threading models[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fi_info *hints = conf_hints(), *info;

		hints->domain_attr->av_type = types[i];
		hints->domain_attr->threading = models[i];
		conf_ok(ask(hints, &info));
		assert_int_equal(info->domain_attr->av_type, types[i]);
		/* SAFE promises more than DOMAIN */
		assert_true(info->domain_attr->threading == models[i] ||
			    info->domain_attr->threading == FI_THREAD_SAFE);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* A class is given as it was asked for, left to the network (UNSPEC), or refused. */
static void no_other_traffic_class_is_given(void **state)
{
	static const uint32_t classes[] = { FI_TC_LOW_LATENCY, FI_TC_BULK_DATA, FI_TC_DSCP | 10 };

	(void)state;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		struct fi_info *hints = conf_hints(), *info;
		int rc;

		hints->tx_attr->tclass = classes[i];
		rc = ask(hints, &info);
		if (rc)
			assert_int_equal(rc, -FI_ENODATA);
		else if (info->tx_attr->tclass)
			assert_int_equal(info->tx_attr->tclass, classes[i]);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

static void providers_introduce_themselves(void **state)
{
	struct fi_info *info = NULL;
	bool found = false;

	(void)state;
	conf_ok(fi_getinfo(CONF_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info));
	for (struct fi_info *i = info; i; i = i->next)
		found |= strncmp(conf_provider(), i->fabric_attr->prov_name,
				 strlen(i->fabric_attr->prov_name)) == 0;
	assert_true(found);
	fi_freeinfo(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_hints_are_met),
		cmocka_unit_test(infos_can_be_copied_and_shown),
		cmocka_unit_test(the_address_format_is_honoured),
		cmocka_unit_test(no_hints_are_met),
		cmocka_unit_test(only_what_was_asked_for),
		cmocka_unit_test(modifiers_restrict_rma),
		cmocka_unit_test(impossible_hints_are_refused),
		cmocka_unit_test(names_that_nobody_has_are_refused),
		cmocka_unit_test(names_lead_back),
		cmocka_unit_test(what_was_given_can_be_asked_for),
		cmocka_unit_test(node_and_service_are_the_source),
		cmocka_unit_test(node_and_service_are_the_destination),
		cmocka_unit_test(addresses_may_be_hints),
		cmocka_unit_test(a_source_that_nobody_has_is_refused),
		cmocka_unit_test(names_are_not_resolved_if_numeric_is_asked_for),
		cmocka_unit_test(av_types_and_threading_are_honoured),
		cmocka_unit_test(no_other_traffic_class_is_given),
		cmocka_unit_test(providers_introduce_themselves),
	};

	conf_provider();
	return conf_run_tests("getinfo", tests);
}

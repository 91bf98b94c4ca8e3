/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/offer.h"

#include <limits.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include "ofi/tclass.h"
#include "proto/proto.h"
#include "rvcm/fi_ext_rvcm.h"

#define TAG_FORMAT_ANY 0xaaaaaaaaaaaaaaaau /* FI_TAG_GENERIC: every bit is a field of its own */
#define OBJECTS_MAX    1024u               /* what no table limits, but a number must be given */

static void init_contexts(struct rvcm_offer *offer, const struct rvcm_params *params)
{
	offer->tx = (struct fi_tx_attr) {
		.caps = RVCM_OFFER_TX_CAPS,
		.op_flags = RVCM_OFFER_TX_FLAGS,
		.msg_order = RVCM_OFFER_ORDER,
		.inject_size = RVCM_OFFER_INJECT_MAX,
		.size = params->tx_size,
		.iov_limit = RVCM_OFFER_IOV_MAX,
		.rma_iov_limit = 1,
	};
	offer->rx = (struct fi_rx_attr) {
		.caps = RVCM_OFFER_RX_CAPS,
		.op_flags = RVCM_OFFER_RX_FLAGS,
		.msg_order = RVCM_OFFER_ORDER,
		.size = params->rx_size,
		.iov_limit = RVCM_OFFER_IOV_MAX,
	};
}

static void init_endpoint(struct rvcm_offer *offer)
{
	offer->ep = (struct fi_ep_attr) {
		.type = FI_EP_RDM,
		.protocol = FI_RVCM_PROTO,
		.protocol_version = FI_RVCM_PROTO_VERSION,
		.max_msg_size = RVCM_EP_MESSAGE_MAX,
		.max_order_waw_size = RVCM_EP_MESSAGE_MAX,
		.mem_tag_format = TAG_FORMAT_ANY,
		.tx_ctx_cnt = 1,
		.rx_ctx_cnt = 1,
	};
}

static void init_domain(struct rvcm_offer *offer, const struct rvcm_device *device)
{
	offer->domain = (struct fi_domain_attr) {
		.name = (char *)device->attr.name,
		.threading = FI_THREAD_SAFE,
		.control_progress = FI_PROGRESS_AUTO,
		.data_progress = FI_PROGRESS_MANUAL,
		.resource_mgmt = FI_RM_ENABLED,
		.av_type = FI_AV_UNSPEC, /* either one is as good */
		.mr_mode = 0,
		.mr_key_size = sizeof(uint64_t),
		.cq_data_size = sizeof(uint64_t),
		.cq_cnt = OBJECTS_MAX,
		.ep_cnt = OBJECTS_MAX,
		.tx_ctx_cnt = OBJECTS_MAX,
		.rx_ctx_cnt = OBJECTS_MAX,
		.max_ep_tx_ctx = 1,
		.max_ep_rx_ctx = 1,
		.mr_iov_limit = RVCM_OFFER_IOV_MAX,
		.caps = RVCM_OFFER_DOMAIN_CAPS,
		.max_err_data = RVCM_OFFER_ERR_DATA_MAX,
		.mr_cnt = SIZE_MAX,
	};
}

void rvcm_offer_init(struct rvcm_offer *offer, const struct rvcm_device *device,
		     const struct rvcm_params *params)
{
	memset(offer, 0, sizeof(*offer));
	offer->pins = !device->attr.mr_free;
	init_contexts(offer, params);
	init_endpoint(offer);
	init_domain(offer, device);
	offer->fabric = (struct fi_fabric_attr) {
		/* No prov_name: libfabric fills it in, and would append to one. */
		.name = (char *)device->network,
		.prov_version = FI_VERSION(0, 1),
	};
	offer->info = (struct fi_info) {
		.caps = RVCM_OFFER_CAPS,
		.addr_format =
			device->attr.addr.family == RVCM_ADDR_V6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN,
		.tx_attr = &offer->tx,
		.rx_attr = &offer->rx,
		.ep_attr = &offer->ep,
		.domain_attr = &offer->domain,
		.fabric_attr = &offer->fabric,
	};
	if (rvcm_nic_init(&offer->nic, &device->attr))
		offer->info.nic = &offer->nic.fid;
}

#define RMA_MODIFIERS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * Primary capabilities are given as asked for, their modifiers (FI_SEND and FI_RECV; of FI_RMA
 * four) restrict them, and of the secondary ones those that cost nothing come along (fi_getinfo(3),
 * "Capabilities").
 */
static uint64_t narrow_caps(uint64_t want)
{
	if (!want)
		return RVCM_OFFER_CAPS;
	if (!(want & (FI_MSG | FI_TAGGED | FI_RMA)))
		want |= FI_MSG | FI_TAGGED;
	if (want & (FI_MSG | FI_TAGGED) && !(want & (FI_SEND | FI_RECV)))
		want |= FI_SEND | FI_RECV;
	if (want & FI_RMA && !(want & RMA_MODIFIERS))
		want |= RMA_MODIFIERS;
	return want | RVCM_OFFER_DOMAIN_CAPS;
}

/*
 * What is required of an application that registers memory, of what it has agreed to (fi_mr(3)):
 * keys are ours rather than its, and peers call memory by its address, if it takes that; and where
 * registering pins pages, they had better be there. Applications from before version 1.5 name one
 * of two models.
 */
static int narrow_mr_mode(const struct rvcm_offer *offer, int want)
{
	if (want == RVCM_OFFER_MR_BASIC || want == RVCM_OFFER_MR_SCALABLE)
		return want;
	return want & (FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | (offer->pins ? FI_MR_ALLOCATED : 0));
}

static void narrow_domain(struct rvcm_offer *offer, const struct fi_domain_attr *want)
{
	struct fi_domain_attr *domain = &offer->domain;

	/* Fewer promises from the application than DOMAIN's are worth nothing to us. */
	if (want->threading == FI_THREAD_DOMAIN)
		domain->threading = FI_THREAD_DOMAIN;
	if (want->data_progress == FI_PROGRESS_AUTO)
		domain->data_progress = FI_PROGRESS_AUTO;
	if (want->av_type)
		domain->av_type = want->av_type;
	domain->mr_mode = narrow_mr_mode(offer, want->mr_mode);
	domain->auth_key = want->auth_key;
	domain->auth_key_size = want->auth_key_size;
}

static void narrow_endpoint(struct fi_ep_attr *ep, const struct fi_ep_attr *want)
{
	if (want->mem_tag_format)
		ep->mem_tag_format = want->mem_tag_format;
	ep->auth_key = want->auth_key;
	ep->auth_key_size = want->auth_key_size;
}

void rvcm_offer_narrow(struct rvcm_offer *offer, const struct fi_info *hints)
{
	offer->tx.op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
	offer->rx.op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;
	if (!hints)
		return;
	offer->info.caps = narrow_caps(hints->caps);
	offer->tx.caps = offer->info.caps & RVCM_OFFER_TX_CAPS;
	offer->rx.caps = offer->info.caps & RVCM_OFFER_RX_CAPS;
	if (hints->tx_attr && hints->tx_attr->caps)
		offer->tx.caps = hints->tx_attr->caps;
	if (hints->rx_attr && hints->rx_attr->caps)
		offer->rx.caps = hints->rx_attr->caps;
	offer->tx.tclass = offer->domain.tclass = rvcm_tclass_of(hints);
	if (hints->addr_format)
		offer->info.addr_format = hints->addr_format;
	if (hints->domain_attr)
		narrow_domain(offer, hints->domain_attr);
	if (hints->ep_attr)
		narrow_endpoint(&offer->ep, hints->ep_attr);
}

void rvcm_offer_address(struct rvcm_offer *offer, const struct rvcm_addr *src,
			const struct rvcm_addr *dest)
{
	struct fi_info *info = &offer->info;

	info->src_addrlen = rvcm_sockaddr_put(info->addr_format, src, &offer->src);
	info->src_addr = &offer->src;
	if (!dest)
		return;
	info->dest_addrlen = rvcm_sockaddr_put(info->addr_format, dest, &offer->dest);
	info->dest_addr = &offer->dest;
}

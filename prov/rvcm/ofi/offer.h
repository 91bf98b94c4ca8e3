/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device offers, as a struct fi_info (fi_getinfo(3)) whose parts are all in one place. To
 * hand it to an application, fi_dupinfo it.
 */
#ifndef RVCM_OFI_OFFER_H
#define RVCM_OFI_OFFER_H

#include <stdbool.h>

#include <rdma/fabric.h>

#include "ofi/devices.h"
#include "ofi/nic.h"
#include "ofi/params.h"
#include "ofi/sockaddr.h"

#define RVCM_OFFER_INJECT_MAX   4096u
#define RVCM_OFFER_IOV_MAX      4u
#define RVCM_OFFER_ERR_DATA_MAX 160u

#define RVCM_OFFER_TX_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | FI_WRITE)
#define RVCM_OFFER_RX_CAPS                                                          \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
	 FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_MULTI_RECV)
#define RVCM_OFFER_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define RVCM_OFFER_CAPS        (RVCM_OFFER_TX_CAPS | RVCM_OFFER_RX_CAPS | RVCM_OFFER_DOMAIN_CAPS)

/* Messages to a peer arrive in order, writes to its memory too, and what is sent behind these. */
#define RVCM_OFFER_ORDER (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RMA_WAW)

/*
 * Flags that sends and receives know. Without a completion level, a send is complete when its
 * memory can be reused.
 */
#define RVCM_OFFER_TX_FLAGS                                                      \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE)
#define RVCM_OFFER_RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* enum fi_mr_mode, whose first two later versions deprecate; each stands alone. */
#define RVCM_OFFER_MR_BASIC    1
#define RVCM_OFFER_MR_SCALABLE 2

/* Points into itself: do not copy. */
struct rvcm_offer {
	bool pins; /* the device pins what is registered */
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
	struct rvcm_nic nic;
	union rvcm_sockaddr src;
	union rvcm_sockaddr dest;
};

/* All that the device can do; it outlives the offer. No addresses yet. */
void rvcm_offer_init(struct rvcm_offer *offer, const struct rvcm_device *device,
		     const struct rvcm_params *params);

/* Of what was asked for and what can be done, make what is given. */
void rvcm_offer_narrow(struct rvcm_offer *offer, const struct fi_info *hints);

/* Set src_addr, and dest_addr unless it is NULL, in the format chosen. */
void rvcm_offer_address(struct rvcm_offer *offer, const struct rvcm_addr *src,
			const struct rvcm_addr *dest);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/nic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "ofi/nosys.h"

static const enum fi_link_state states[] = {
	[RVCM_DEV_LINK_UNKNOWN] = FI_LINK_UNKNOWN,
	[RVCM_DEV_LINK_DOWN] = FI_LINK_DOWN,
	[RVCM_DEV_LINK_UP] = FI_LINK_UP,
};

/* A copy that fi_dupinfo(3) has made, from the C library's memory. */
static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *)fid;

	if (nic->device_attr) {
		free(nic->device_attr->name);
		free(nic->device_attr->device_id);
		free(nic->device_attr->device_version);
		free(nic->device_attr->vendor_id);
		free(nic->device_attr->driver);
		free(nic->device_attr->firmware);
	}
	if (nic->link_attr) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

static const char *text(const char *s)
{
	return s ? s : "?";
}

static size_t print(char *buf, size_t len, size_t used, const char *name, const char *value)
{
	int n = used < len ? snprintf(buf + used, len - used, "    %s: %s\n", name, text(value))
			   : 0;

	return used + (n > 0 ? (size_t)n : 0);
}

static const char *bus_text(const struct fi_bus_attr *bus, char place[24])
{
	if (!bus || bus->bus_type != FI_BUS_PCI)
		return "not on PCI";
	snprintf(place, 24, "PCI %04x:%02x:%02x.%x", bus->attr.pci.domain_id, bus->attr.pci.bus_id,
		 bus->attr.pci.device_id, bus->attr.pci.function_id);
	return place;
}

/* As fi_info shows it, below the rest of a struct fi_info. */
static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = (const struct fid_nic *)fid;
	const struct fi_device_attr *device = nic->device_attr;
	const struct fi_link_attr *link = nic->link_attr;
	char place[24], number[48];
	size_t used = 0;

	if (!device || !link || !len)
		return -FI_ENODATA;
	snprintf(buf, len, "%s", "");
	used = print(buf, len, used, "device", device->name);
	used = print(buf, len, used, "driver", device->driver);
	used = print(buf, len, used, "firmware", device->firmware);
	used = print(buf, len, used, "bus", bus_text(nic->bus_attr, place));
	used = print(buf, len, used, "network", link->network_type);
	used = print(buf, len, used, "address", link->address);
	snprintf(number, sizeof(number), "%zu bytes", link->mtu);
	used = print(buf, len, used, "MTU", number);
	snprintf(number, sizeof(number), "%zu bit/s", link->speed);
	used = print(buf, len, used, "speed", link->speed ? number : "not known");
	print(buf, len, used, "link",
	      link->state == FI_LINK_UP     ? "up"
	      : link->state == FI_LINK_DOWN ? "down"
					    : "not known");
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = nic_close,
	.bind = rvcm_nosys_bind,
	.control = rvcm_nosys_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = nic_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static char *known(const char *s)
{
	return s[0] ? (char *)s : NULL;
}

static void put_number(uint32_t value, char to[RVCM_NIC_NUMBER_MAX])
{
	snprintf(to, RVCM_NIC_NUMBER_MAX, "0x%04" PRIx32, value);
}

bool rvcm_nic_init(struct rvcm_nic *nic, const struct rvcm_dev_attr *attr)
{
	const struct rvcm_dev_nic *from = &attr->nic;

	*nic = (struct rvcm_nic) {
		.fid = {
			.fid.fclass = FI_CLASS_NIC,
			.fid.ops = (struct fi_ops *)&fid_ops,
			.device_attr = &nic->device,
			.bus_attr = &nic->bus,
			.link_attr = &nic->link,
		},
		.device = {
			.name = known(from->device),
			.device_id = nic->part_id,
			.device_version = nic->version,
			.vendor_id = nic->vendor_id,
			.driver = known(from->driver),
			.firmware = known(from->firmware),
		},
		.bus.bus_type = from->on_pci ? FI_BUS_PCI : FI_BUS_UNKNOWN,
		.bus.attr.pci = {
			.domain_id = from->pci_domain,
			.bus_id = from->pci_bus,
			.device_id = from->pci_device,
			.function_id = from->pci_function,
		},
		.link = {
			.address = known(from->link_address),
			.mtu = attr->mtu_bytes,
			.speed = attr->link_bits_per_s,
			.state = states[from->link_state],
			.network_type = known(from->link_type),
		},
	};
	put_number(from->part_id, nic->part_id);
	put_number(from->version, nic->version);
	put_number(from->vendor_id, nic->vendor_id);
	return from->device[0] != '\0';
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/nic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/mem.h"
#include "ofi/nosys.h"

static const enum fi_link_state states[] = {
	[RVCM_DEV_LINK_UNKNOWN] = FI_LINK_UNKNOWN,
	[RVCM_DEV_LINK_DOWN] = FI_LINK_DOWN,
	[RVCM_DEV_LINK_UP] = FI_LINK_UP,
};

static struct rvcm_nic *nic_of(struct fid *fid)
{
	return (struct rvcm_nic *)fid;
}

/* Of copies only: fi_freeinfo(3). */
static int nic_close(struct fid *fid)
{
	rvcm_mem_free(nic_of(fid));
	return 0;
}

static char *known(char *s)
{
	return s[0] ? s : NULL;
}

/* The pointers, once the rest is there. */
static void point(struct rvcm_nic *nic)
{
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	nic->device.name = known(nic->texts.device);
	nic->device.driver = known(nic->texts.driver);
	nic->device.firmware = known(nic->texts.firmware);
	nic->device.device_id = nic->part_id;
	nic->device.device_version = nic->version;
	nic->device.vendor_id = nic->vendor_id;
	nic->link.address = known(nic->texts.link_address);
	nic->link.network_type = known(nic->texts.link_type);
}

/* fi_dupinfo(3) asks for a copy with FI_DUP. */
static int nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic **dup = arg;
	struct rvcm_nic *copy;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	copy = rvcm_mem_alloc(sizeof(*copy));
	if (!copy)
		return -FI_ENOMEM;
	*copy = *nic_of(fid);
	point(copy);
	*dup = &copy->fid;
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

/* Behind what is in buf: fi_tostr(3) of a struct fi_info puts its other parts before it. */
static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = (const struct fid_nic *)fid;
	const struct fi_device_attr *device = nic->device_attr;
	const struct fi_link_attr *link = nic->link_attr;
	char place[24], number[48];
	size_t used = strnlen(buf, len);

	if (!device || !link)
		return -FI_ENODATA;
	used = print(buf, len, used, "device", device->name);
	used = print(buf, len, used, "vendor", device->vendor_id);
	used = print(buf, len, used, "part", device->device_id);
	used = print(buf, len, used, "version", device->device_version);
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
	.control = nic_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = nic_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static void put_number(uint32_t value, char to[RVCM_NIC_NUMBER_MAX])
{
	snprintf(to, RVCM_NIC_NUMBER_MAX, "0x%04" PRIx32, value);
}

bool rvcm_nic_init(struct rvcm_nic *nic, const struct rvcm_dev_attr *attr)
{
	const struct rvcm_dev_nic *from = &attr->nic;

	*nic = (struct rvcm_nic) {
		.fid.fid.fclass = FI_CLASS_NIC,
		.fid.fid.ops = (struct fi_ops *)&fid_ops,
		.texts = *from,
		.bus.bus_type = from->on_pci ? FI_BUS_PCI : FI_BUS_UNKNOWN,
		.bus.attr.pci = {
			.domain_id = from->pci_domain,
			.bus_id = from->pci_bus,
			.device_id = from->pci_device,
			.function_id = from->pci_function,
		},
		.link = {
			.mtu = attr->mtu_bytes,
			.speed = attr->link_bits_per_s,
			.state = states[from->link_state],
		},
	};
	put_number(from->part_id, nic->part_id);
	put_number(from->version, nic->version);
	put_number(from->vendor_id, nic->vendor_id);
	point(nic);
	return from->device[0] != '\0';
}

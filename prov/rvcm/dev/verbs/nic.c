/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/verbs/nic.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NIC_TEXT_MAX 128

/* A line of a file of the device; false if it cannot be had. */
static bool nic_read(const char *device, const char *file, char *text)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, NIC_TEXT_MAX - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* Where a link of the device leads; false if there is none. */
static bool nic_link(const char *device, const char *link, char target[PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, link);
	n = readlink(path, target, PATH_MAX - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	return true;
}

static const char *nic_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool rvcm_verbs_nic_pci(const char *path, struct rvcm_dev_nic *nic)
{
	unsigned int domain, bus, device, function;
	char end;

	if (sscanf(nic_last(path), "%4x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &end) !=
	    4)
		return false;
	nic->on_pci = true;
	nic->pci_domain = (uint16_t)domain;
	nic->pci_bus = (uint8_t)bus;
	nic->pci_device = (uint8_t)device;
	nic->pci_function = (uint8_t)function;
	return true;
}

uint64_t rvcm_verbs_nic_rate(const char *text)
{
	char *end;
	double rate = strtod(text, &end);

	if (end == text || strncmp(end, " Gb/sec", 7) != 0 || !(rate > 0 && rate < 1e6))
		return 0;
	return (uint64_t)(rate * 1e9);
}

static void nic_place(struct rvcm_dev_attr *attr, const char *device)
{
	char target[PATH_MAX], text[NIC_TEXT_MAX], file[32];

	if (nic_link(device, "device", target))
		(void)rvcm_verbs_nic_pci(target, &attr->nic);
	if (nic_link(device, "device/driver/module", target))
		snprintf(attr->nic.driver, sizeof(attr->nic.driver), "%.31s", nic_last(target));
	attr->numa_node = nic_read(device, "device/numa_node", text) ? atoi(text) : -1;
	snprintf(file, sizeof(file), "ports/%u/rate", attr->nic.port);
	attr->link_bits_per_s = nic_read(device, file, text) ? rvcm_verbs_nic_rate(text) : 0;
}

void rvcm_verbs_nic_gid(struct rvcm_dev_nic *nic, const union ibv_gid *gid)
{
	if (!nic->link_address[0]) /* a LID is there */
		(void)inet_ntop(AF_INET6, gid, nic->link_address, sizeof(nic->link_address));
}

void rvcm_verbs_nic_fill(struct rvcm_dev_attr *attr, const char *name, uint8_t number,
			 const struct ibv_device_attr *device, const struct ibv_port_attr *port)
{
	struct rvcm_dev_nic *nic = &attr->nic;

	snprintf(nic->device, sizeof(nic->device), "%.31s", name);
	snprintf(nic->firmware, sizeof(nic->firmware), "%.63s", device->fw_ver);
	nic->vendor_id = device->vendor_id;
	nic->part_id = device->vendor_part_id;
	nic->version = device->hw_ver;
	nic->port = number;
	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
		snprintf(nic->link_address, sizeof(nic->link_address), "lid 0x%x", port->lid);
	snprintf(nic->link_type, sizeof(nic->link_type), "%s",
		 port->link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
	nic->link_state = port->state == IBV_PORT_ACTIVE ? RVCM_DEV_LINK_UP : RVCM_DEV_LINK_DOWN;
	nic_place(attr, name);
}

const char *rvcm_verbs_nic_down(const char *interface, char text[RVCM_VERBS_NIC_DOWN_MAX])
{
	if (interface)
		snprintf(text, RVCM_VERBS_NIC_DOWN_MAX,
			 "is its network interface up (ip link set %s up), and has that a link?",
			 interface);
	else
		snprintf(text, RVCM_VERBS_NIC_DOWN_MAX,
			 "is its network interface up (rdma link names it, ip link set up), and "
			 "has that a link?");
	return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator's device: its table of operations, its life, and the objects it still knows. */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void dev_close(struct rvcm_dev *base);

const struct rvcm_dev_ops sim_dev_ops = {
	.close = dev_close,
	.cm_fd = sim_cm_fd,
	.cm_poll = sim_cm_poll,
	.listen = sim_cm_listen,
	.listener_close = sim_cm_listener_close,
	.qp_open = sim_qp_open,
	.qp_close = sim_qp_close,
	.qp_state = sim_qp_state,
	.connect = sim_cm_connect,
	.accept = sim_cm_accept,
	.reject = sim_cm_reject,
	.disconnect = sim_cm_disconnect,
	.mr_reg = sim_mem_reg,
	.mr_dereg = sim_mem_dereg,
	.cq_open = sim_cq_open,
	.cq_close = sim_cq_close,
	.cq_poll = sim_cq_poll,
	.cq_arm = sim_cq_arm,
	.cq_fd = sim_cq_fd,
	.pool_open = sim_pool_open,
	.pool_close = sim_pool_close,
	.pool_grow = sim_pool_grow,
	.rx_release = sim_pool_release,
	.rx_place = sim_head_place,
	.srq_open = sim_rx_srq_open,
	.srq_close = sim_rx_srq_close,
	.srq_post = sim_rx_srq_post,
	.post_recv = sim_rx_post_recv,
	.attach = sim_qp_attach,
	.detach = sim_qp_detach,
	.post = sim_tx_post,
	.flush = sim_tx_flush,
};

static void next_address(struct sim_net *net, bool v6, struct rvcm_addr *addr)
{
	uint32_t host = ++net->next_host;

	memset(addr, 0, sizeof(*addr));
	addr->family = v6 ? RVCM_ADDR_V6 : RVCM_ADDR_V4;
	addr->ip[0] = v6 ? 0xfd : 10;
	addr->ip[v6 ? 13 : 1] = (uint8_t)(host >> 16);
	addr->ip[v6 ? 14 : 2] = (uint8_t)(host >> 8);
	addr->ip[v6 ? 15 : 3] = (uint8_t)host;
}

void sim_dev_conf_init(struct sim_net *net, struct sim_dev_conf *conf, bool v6)
{
	struct rvcm_dev_attr *attr = &conf->attr;

	memset(conf, 0, sizeof(*conf));
	next_address(net, v6, &attr->addr);
	snprintf(attr->name, sizeof(attr->name), "sim%u", net->next_host);
	attr->caps = RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_ATOMIC | RVCM_DEV_CAP_PLACED |
		     RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_READ | RVCM_DEV_CAP_IMM32 |
		     RVCM_DEV_CAP_HEAD;
	attr->private_data_bytes = 56;
	attr->sge_max = SIM_SGE_MAX;
	attr->inline_bytes_max = 128;
	attr->sq_depth_max = 4096;
	attr->rq_depth_max = 4096;
	attr->cq_depth_max = 65536;
	attr->qp_max = 65536;
	attr->mr_max = 1u << 20;
	attr->message_bytes_max = 1u << 30;
	attr->lead_bytes = 20;
	attr->mtu_bytes = 4096;
	attr->numa_node = -1;
}

struct rvcm_dev *sim_dev_open(struct sim_net *net, const struct sim_dev_conf *conf)
{
	struct sim_dev *dev = sim_alloc(sizeof(*dev));
	struct sim_dev_conf standard;

	if (!conf) {
		sim_dev_conf_init(net, &standard, false);
		conf = &standard;
	}
	dev->base.ops = &sim_dev_ops;
	dev->base.attr = conf->attr;
	if (dev->base.attr.sge_max > SIM_SGE_MAX)
		dev->base.attr.sge_max = SIM_SGE_MAX;
	dev->early = conf->early;
	dev->fabric = conf->fabric;
	dev->net = net;
	dev->cm_tail = &dev->cm_head;
	dev->cm_fd = -1;
	dev->room = UINT32_MAX;
	dev->parked_tail = &dev->parked;
	dev->next = net->devs;
	net->devs = dev;
	return &dev->base;
}

void sim_dev_keep(struct sim_dev *dev, struct sim_shell *shell, enum sim_shell_kind kind)
{
	shell->kind = (uint8_t)kind;
	shell->next = dev->shells;
	dev->shells = shell;
}

static const char *const shell_name[] = { "listener", "QP", "MR", "CQ", "pool", "SRQ", "request" };

bool sim_dev_live(struct sim_dev *dev, const struct sim_shell *shell)
{
	if (!shell->closed)
		return true;
	sim_misuse(dev->net, SIM_MISUSE_CLOSED, "a closed %s is used", shell_name[shell->kind]);
	return false;
}

int sim_dev_call(struct sim_dev *dev)
{
	dev->n_calls++;
	if (dev->dead || dev->removed)
		return -ENODEV;
	return dev->fail_call && --dev->fail_call == 0 ? dev->fail_call_err : 0;
}

static bool same_ip(const struct rvcm_addr *a, const struct rvcm_addr *b)
{
	return a->family == b->family && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

/*
 * A dead device is found only if none took its address over. Where several live ones share it, as
 * those of the processes of a host do: who listens on the port.
 */
struct sim_dev *sim_dev_find(struct sim_net *net, uint32_t fabric, const struct rvcm_addr *addr)
{
	struct sim_dev *dead = NULL, *idle = NULL;

	for (struct sim_dev *dev = net->devs; dev; dev = dev->next) {
		if (dev->removed || dev->fabric != fabric || !same_ip(&dev->base.attr.addr, addr))
			continue;
		if (!dev->dead && sim_dev_listener(dev, addr))
			return dev;
		if (dev->dead)
			dead = dev;
		else if (!idle)
			idle = dev;
	}
	return idle ? idle : dead;
}

bool sim_dev_port_taken(const struct sim_dev *from, const struct rvcm_addr *addr)
{
	struct sim_dev *dev = sim_dev_find(from->net, from->fabric, addr);

	return dev && !dev->dead && sim_dev_listener(dev, addr);
}

struct sim_listener *sim_dev_listener(struct sim_dev *dev, const struct rvcm_addr *addr)
{
	struct sim_listener *listener = dev->listeners;

	while (listener && listener->addr.port != addr->port)
		listener = listener->next;
	return listener;
}

/* -- close ----------------------------------------------------------------------------------- */

static void close_object(struct sim_shell *shell, enum sim_shell_kind kind)
{
	if (shell->closed || shell->kind != kind)
		return;
	switch (kind) {
	case SIM_SHELL_LISTENER:
		sim_cm_listener_close((struct rvcm_dev_listener *)rvcm_container_of(
			shell, struct sim_listener, shell));
		break;
	case SIM_SHELL_QP:
		sim_qp_close(&rvcm_container_of(shell, struct sim_qp, shell)->base);
		break;
	case SIM_SHELL_MR:
		sim_mem_dereg(&rvcm_container_of(shell, struct sim_mr, shell)->base);
		break;
	case SIM_SHELL_CQ:
		sim_cq_close(&rvcm_container_of(shell, struct sim_cq, shell)->base);
		break;
	case SIM_SHELL_POOL:
		sim_pool_close(&rvcm_container_of(shell, struct sim_pool, shell)->base);
		break;
	case SIM_SHELL_SRQ:
		sim_rx_srq_close(&rvcm_container_of(shell, struct sim_srq, shell)->base);
		break;
	default:
		break;
	}
}

static void close_objects(struct sim_dev *dev)
{
	static const enum sim_shell_kind order[] = {
		SIM_SHELL_LISTENER, SIM_SHELL_QP,  SIM_SHELL_CQ,
		SIM_SHELL_POOL,     SIM_SHELL_SRQ, SIM_SHELL_MR,
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (struct sim_shell *shell = dev->shells; shell; shell = shell->next) {
			if (!dev->dead && !shell->closed && shell->kind == order[i])
				sim_misuse(dev->net, SIM_MISUSE_LEAK,
					   "device closed with a %s open", shell_name[shell->kind]);
			close_object(shell, order[i]);
		}
}

static void *object_of(struct sim_shell *shell)
{
	switch (shell->kind) {
	case SIM_SHELL_LISTENER:
		return rvcm_container_of(shell, struct sim_listener, shell);
	case SIM_SHELL_QP:
		return rvcm_container_of(shell, struct sim_qp, shell);
	case SIM_SHELL_MR:
		return rvcm_container_of(shell, struct sim_mr, shell);
	case SIM_SHELL_CQ:
		return rvcm_container_of(shell, struct sim_cq, shell);
	case SIM_SHELL_POOL:
		return rvcm_container_of(shell, struct sim_pool, shell);
	case SIM_SHELL_SRQ:
		return rvcm_container_of(shell, struct sim_srq, shell);
	default:
		return rvcm_container_of(shell, struct sim_req, shell);
	}
}

static void free_objects(struct sim_dev *dev)
{
	struct sim_shell *shell;

	while ((shell = dev->shells)) {
		dev->shells = shell->next;
		/* Resuming may have set those of a closed QP again. */
		if (shell->kind == SIM_SHELL_QP)
			sim_qp_cancel_events(rvcm_container_of(shell, struct sim_qp, shell));
		free(object_of(shell));
	}
}

static void unlink_dev(struct sim_dev *dev)
{
	struct sim_dev **at = &dev->net->devs;
	struct rvcm_list *pos;

	while (*at != dev)
		at = &(*at)->next;
	*at = dev->next;
	rvcm_list_for_each (pos, &dev->net->wires) {
		struct sim_wire *wire = rvcm_container_of(pos, struct sim_wire, node);

		for (int i = 0; i < 2; i++)
			if (wire->dev[i] == dev)
				wire->dev[i] = NULL;
	}
}

static void dev_close(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);

	close_objects(dev);
	sim_cm_drop_requests(dev, NULL);
	sim_cm_forget(dev, NULL, NULL);
	sim_event_cancel(dev->net, &dev->cm_due);
	unlink_dev(dev);
	free_objects(dev);
	if (dev->cm_fd >= 0)
		close(dev->cm_fd);
	free(dev->mrs);
	free(dev);
}

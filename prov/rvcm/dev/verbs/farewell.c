/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goodbyes that wait. When an interface goes down, or its address, the connections over it break,
 * and ending one sends a packet of the connection manager (DREQ). It would not arrive; and rxe,
 * finding no route for it, breaks the queue pair that carries all those packets, so that nobody
 * connects over the device any more until it is made anew. So on RoCE, where packets are routed, an
 * id whose peer no route leads to is kept until one does. A device that is closed does not wait for
 * that, and who ends without closing cannot.
 */
#include "base/mem.h"
#include "dev/verbs/netlink.h"
#include "dev/verbs/verbs_impl.h"

#define FAREWELL_LOOK_MS 500u

struct rvcm_verbs_farewell {
	struct rvcm_verbs_src src;
	struct rvcm_list node; /* dev->farewells */
	struct rdma_cm_id *id;
};

bool rvcm_verbs_farewell_possible(const struct rvcm_verbs_dev *dev, struct rdma_cm_id *id)
{
	return !dev->asks_routes ||
	       rvcm_verbs_netlink_routed(rdma_get_local_addr(id), rdma_get_peer_addr(id),
					 dev->interface);
}

enum rvcm_status rvcm_verbs_farewell_status(const struct rvcm_verbs_qp *qp, enum rvcm_status status)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct sockaddr_storage local, peer;

	if (!dev->asks_routes ||
	    (status != RVCM_STATUS_LOCAL_QP_OP && status != RVCM_STATUS_RETRY_EXCEEDED))
		return status;
	rvcm_verbs_sockaddr_put(&dev->base.attr.addr, &local);
	rvcm_verbs_sockaddr_put(&qp->peer, &peer);
	return rvcm_verbs_netlink_routed((struct sockaddr *)&local, (struct sockaddr *)&peer,
					 dev->interface)
		       ? status
		       : RVCM_STATUS_UNREACHABLE;
}

void rvcm_verbs_farewell_init(struct rvcm_verbs_dev *dev, bool ethernet)
{
	const struct sockaddr *at = rdma_get_local_addr(dev->anchor);

	dev->interface = rvcm_verbs_netlink_interface(at);
	/* Where it does not find the way to itself, it would find none. */
	dev->asks_routes = !dev->iwarp && ethernet && dev->interface &&
			   rvcm_verbs_netlink_routed(at, at, dev->interface);
}

static void farewell_end(struct rvcm_verbs_farewell *farewell)
{
	rvcm_list_del(&farewell->node);
	(void)rdma_disconnect(farewell->id); /* fails where the peer was first */
	rdma_destroy_id(farewell->id);
	rvcm_mem_free(farewell);
}

static void farewell_look(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_dev *dev = rvcm_container_of(timer, struct rvcm_verbs_dev, farewell);
	struct rvcm_list *node, *next;

	(void)now_ns;
	rvcm_list_for_each_safe (node, next, &dev->farewells) {
		struct rvcm_verbs_farewell *farewell =
			rvcm_list_entry(node, struct rvcm_verbs_farewell, node);

		if (rvcm_verbs_farewell_possible(dev, farewell->id))
			farewell_end(farewell);
	}
	if (!rvcm_list_empty(&dev->farewells))
		rvcm_alarm_set(&dev->alarm, &dev->farewell, FAREWELL_LOOK_MS);
}

void rvcm_verbs_farewell_keep(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct rvcm_verbs_farewell *farewell;

	if (!qp->id || !qp->was_established || rvcm_verbs_farewell_possible(dev, qp->id))
		return;
	farewell = rvcm_mem_zalloc(sizeof(*farewell));
	if (!farewell)
		return;
	farewell->src.kind = RVCM_VERBS_SRC_FAREWELL;
	farewell->id = qp->id;
	farewell->id->context = &farewell->src;
	qp->id = NULL;
	rvcm_list_add_tail(&dev->farewells, &farewell->node);
	if (dev->farewell.set)
		return;
	rvcm_timer_init(&dev->farewell, farewell_look);
	rvcm_alarm_set(&dev->alarm, &dev->farewell, FAREWELL_LOOK_MS);
}

void rvcm_verbs_farewell_all(struct rvcm_verbs_dev *dev)
{
	rvcm_timer_cancel(&dev->alarm.timers, &dev->farewell);
	while (!rvcm_list_empty(&dev->farewells))
		farewell_end(rvcm_list_entry(rvcm_list_first(&dev->farewells),
					     struct rvcm_verbs_farewell, node));
}

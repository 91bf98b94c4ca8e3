/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management. A connect goes through address, route and request, each a while apart;
 * the request waits at the listener until answered or timed out. A reply makes the opener's end
 * ready, and READY the acceptor's: READY comes from the opener (IB's RTU) or, by chance, from the
 * acceptor's own device at once (iWARP), so that callers learn to live with both.
 */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- a connect that fails -------------------------------------------------------------------- */

void sim_cm_failed(struct sim_qp *qp, enum rvcm_dev_event_type type, enum rvcm_status status,
		   int err)
{
	struct sim_dev *dev = sim_dev_of(qp->base.dev);
	struct sim_cm *cm = sim_cm_push(dev, qp, type);

	cm->event.status = status;
	cm->event.err = err;
	qp->state = RVCM_DEV_QP_ERROR;
	sim_event_cancel(dev->net, &qp->cm);
	sim_wire_leave(qp);
}

static const enum rvcm_status reject_status[] = {
	[RVCM_DEV_REJECT_CONSUMER] = RVCM_STATUS_REJECTED,
	[RVCM_DEV_REJECT_NOT_LISTENING] = RVCM_STATUS_REFUSED,
	[RVCM_DEV_REJECT_STALE] = RVCM_STATUS_REJECTED_STALE,
	[RVCM_DEV_REJECT_PROTOCOL] = RVCM_STATUS_NOT_RNIC,
};

static void rejected(struct sim_qp *qp, enum rvcm_dev_reject how, struct sim_payload *payload)
{
	struct sim_cm *cm;

	/* Leaving the wire is the last thing that happens: the payload may be its packet's. */
	cm = sim_cm_push(sim_dev_of(qp->base.dev), qp, RVCM_DEV_EVENT_REJECTED);
	cm->event.status = reject_status[how];
	cm->event.err = ECONNREFUSED;
	cm->event.reject = how;
	cm->payload = payload;
	if (payload)
		payload->refs++;
	qp->state = RVCM_DEV_QP_ERROR;
	sim_event_cancel(sim_dev_of(qp->base.dev)->net, &qp->cm);
	sim_wire_leave(qp);
}

static void timed_out(struct sim_net *net, struct sim_event *event)
{
	struct sim_qp *qp = rvcm_container_of(event, struct sim_qp, cm);
	bool opener = qp->end == 0;

	(void)net;
	if (qp->shell.closed || sim_wire_park(sim_dev_of(qp->base.dev), event))
		return;
	if (qp->state == RVCM_DEV_QP_CONNECTING)
		sim_cm_failed(qp,
			      opener ? RVCM_DEV_EVENT_UNREACHABLE : RVCM_DEV_EVENT_CONNECT_ERROR,
			      RVCM_STATUS_CONNECT_TIMEOUT, ETIMEDOUT);
	else
		sim_wire_break(qp->wire, qp, RVCM_STATUS_RETRY_EXCEEDED);
}

static void time_out_after(struct sim_qp *qp, uint64_t ns)
{
	struct sim_net *net = sim_dev_of(qp->base.dev)->net;

	sim_event_at(net, &qp->cm, net->now + ns, timed_out);
}

/* -- connect --------------------------------------------------------------------------------- */

static void send_reject(struct sim_wire *wire, enum rvcm_dev_reject how, const void *data,
			size_t bytes)
{
	struct sim_packet *packet = sim_wire_packet(wire, 0, SIM_PACKET_REJECT);

	packet->reject = how;
	if (bytes)
		packet->payload = sim_unkind_private(wire->dev[1], sim_payload_new(data, bytes));
	sim_wire_send(packet);
}

static void send_request(struct sim_qp *qp)
{
	struct sim_wire *wire = qp->wire;
	struct sim_dev *dev = sim_dev_of(qp->base.dev);
	struct sim_packet *packet;

	time_out_after(qp, dev->net->conf.cm_timeout_ns);
	wire->dev[1] = sim_dev_find(dev->net, dev->fabric, &qp->peer);
	switch (qp->refuse) {
	case SIM_REFUSE_NOT_LISTENING:
		send_reject(wire, RVCM_DEV_REJECT_NOT_LISTENING, NULL, 0);
		break;
	case SIM_REFUSE_STALE:
		send_reject(wire, RVCM_DEV_REJECT_STALE, NULL, 0);
		break;
	case SIM_REFUSE_PROTOCOL:
		send_reject(wire, RVCM_DEV_REJECT_PROTOCOL, NULL, 0);
		break;
	case SIM_REFUSE_ERROR:
		sim_qp_notice_after(qp, sim_delay(dev->net), RVCM_STATUS_CONNECTION_LOST);
		break;
	case SIM_REFUSE_LOST:
		break;
	default:
		packet = sim_wire_packet(wire, 1, SIM_PACKET_REQUEST);
		qp->request->refs++;
		packet->payload = sim_unkind_private(dev, qp->request);
		sim_wire_send(packet);
		sim_unkind_replay(wire, qp->request);
	}
}

static void next_stage(struct sim_net *net, struct sim_event *event)
{
	struct sim_qp *qp = rvcm_container_of(event, struct sim_qp, cm);
	struct sim_dev *dev = sim_dev_of(qp->base.dev);

	if (qp->shell.closed || sim_wire_park(dev, event))
		return;
	if (qp->stage == 0 && qp->refuse == SIM_REFUSE_ADDR) {
		sim_cm_failed(qp, RVCM_DEV_EVENT_ADDR_ERROR, RVCM_STATUS_UNREACHABLE, EHOSTUNREACH);
		return;
	}
	if (qp->stage == 1 && qp->refuse == SIM_REFUSE_ROUTE) {
		sim_cm_failed(qp, RVCM_DEV_EVENT_ROUTE_ERROR, RVCM_STATUS_UNREACHABLE,
			      EHOSTUNREACH);
		return;
	}
	sim_cm_push(dev, qp,
		    qp->stage == 0 ? RVCM_DEV_EVENT_ADDR_RESOLVED : RVCM_DEV_EVENT_ROUTE_RESOLVED);
	if (qp->stage++ == 0)
		sim_event_at(net, event, net->now + sim_delay(net), next_stage);
	else
		send_request(qp);
}

static bool is_cut(const struct sim_dev *target, uint16_t port)
{
	for (uint32_t i = 0; i < target->n_cut; i++)
		if (target->cut[i] == port)
			return true;
	return false;
}

static enum sim_refuse draw_refusal(struct sim_dev *dev, const struct rvcm_addr *peer)
{
	struct sim_net *net = dev->net;
	struct sim_dev *target = sim_dev_find(net, dev->fabric, peer);

	if (target && is_cut(target, peer->port))
		return SIM_REFUSE_LOST;
	if (target && target->n_refuse) {
		target->n_refuse--;
		return target->refuse;
	}
	if (sim_chance(net, net->conf.connect_fail_ppm))
		return (enum sim_refuse)rvcm_rng_below(&net->rng, SIM_REFUSE_COUNT);
	return SIM_REFUSE_COUNT;
}

int sim_cm_connect(struct rvcm_dev_qp *base, const struct rvcm_addr *peer, const void *private_data,
		   size_t private_bytes)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	int rc;

	if (!sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (qp->state != RVCM_DEV_QP_INIT) {
		sim_misuse(dev->net, SIM_MISUSE_STATE, "connect in state %d", qp->state);
		return -EINVAL;
	}
	if (private_bytes > dev->base.attr.private_data_bytes)
		return -EINVAL;
	rc = sim_dev_call(dev);
	if (rc)
		return rc;
	qp->request = sim_payload_new(private_data, private_bytes);
	qp->peer = *peer;
	qp->refuse = draw_refusal(dev, peer);
	qp->wire = sim_wire_new(dev, qp, peer);
	qp->state = RVCM_DEV_QP_CONNECTING;
	sim_event_at(dev->net, &qp->cm, dev->net->now + sim_delay(dev->net), next_stage);
	return 0;
}

/* -- the listener's side --------------------------------------------------------------------- */

static void request_arrives(struct sim_packet *packet)
{
	struct sim_wire *wire = packet->wire;
	struct sim_dev *dev = wire->dev[1];
	struct sim_listener *listener;
	struct sim_req *req;
	struct sim_cm *cm;

	if (!dev || (!wire->end[0] && !wire->ghost) || (dev->dead && dev->how == SIM_KILL_HOST))
		return;
	listener = dev->dead ? NULL : sim_dev_listener(dev, &wire->target);
	if (!listener) {
		send_reject(wire, RVCM_DEV_REJECT_NOT_LISTENING, NULL, 0);
		return;
	}
	if (listener->pending >= (listener->backlog > 0 ? listener->backlog : 1))
		return;
	listener->pending++;
	req = sim_alloc(sizeof(*req));
	sim_dev_keep(dev, &req->shell, SIM_SHELL_REQ);
	req->dev = dev;
	req->listener = listener;
	req->wire = wire;
	wire->req = req;
	wire->refs++;
	cm = sim_cm_push(dev, NULL, RVCM_DEV_EVENT_CONNECT_REQUEST);
	cm->event.ctx = listener->ctx;
	cm->event.req = (struct rvcm_dev_req *)req;
	cm->event.peer = wire->from;
	cm->event.peer.port = (uint16_t)(32768 + wire->net->next_port++ % 28000);
	cm->req = req;
	cm->payload = packet->payload;
	packet->payload->refs++;
}

/* The wire of a request that is now answered, with the request's reference to it; or NULL. */
static struct sim_wire *take_request(struct sim_req *req)
{
	struct sim_wire *wire = req->wire;

	if (!wire) {
		sim_misuse(req->dev->net, SIM_MISUSE_REQUEST, "request answered twice");
		return NULL;
	}
	req->wire = NULL;
	req->shell.closed = true;
	wire->req = NULL;
	if (req->listener)
		req->listener->pending--;
	return wire;
}

/* What the acceptor of an abandoned request gets: an error, or a connection that is lost at once.
 */
static void accept_orphan(struct sim_qp *qp, struct sim_wire *wire)
{
	struct sim_net *net = wire->net;

	if (sim_chance(net, 500000)) {
		struct sim_packet *ready = sim_wire_packet(wire, 1, SIM_PACKET_READY);

		wire->cut_at[1] = SIM_NEVER;
		ready->local = true;
		sim_wire_send(ready);
	}
	/* Who replays may hold on to what it gets for a while. */
	sim_qp_notice_after(qp,
			    net->conf.delay_ns_min + 1 + sim_delay(net) +
				    (wire->ghost ? sim_upto(net, net->conf.replay_ns_max) : 0),
			    RVCM_STATUS_CONNECTION_LOST);
}

static void send_reply(struct sim_qp *qp, struct sim_wire *wire, const void *data, size_t bytes)
{
	struct sim_packet *packet = sim_wire_packet(wire, 0, SIM_PACKET_REPLY);

	packet->payload =
		sim_unkind_private(sim_dev_of(qp->base.dev), sim_payload_new(data, bytes));
	sim_wire_send(packet);
	time_out_after(qp, wire->net->conf.cm_timeout_ns);
	if (sim_chance(wire->net, 500000)) {
		packet = sim_wire_packet(wire, 1, SIM_PACKET_READY);
		packet->local = true;
		sim_wire_send(packet);
	}
}

int sim_cm_accept(struct rvcm_dev_req *base, struct rvcm_dev_qp *qp_base, const void *private_data,
		  size_t private_bytes)
{
	struct sim_req *req = (struct sim_req *)base;
	struct sim_qp *qp = (struct sim_qp *)qp_base;
	struct sim_wire *wire = take_request(req);
	struct sim_dev *dev = req->dev;
	int rc = -EINVAL;

	if (!wire || !sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (qp->state != RVCM_DEV_QP_INIT) {
		sim_misuse(dev->net, SIM_MISUSE_STATE, "accept in state %d", qp->state);
		goto err_reject;
	}
	if (private_bytes > dev->base.attr.private_data_bytes)
		goto err_reject;
	rc = sim_dev_call(dev);
	if (rc)
		goto err_reject;
	qp->wire = wire;
	qp->end = 1;
	wire->end[1] = qp;
	qp->state = RVCM_DEV_QP_CONNECTING;
	if (wire->broken || !wire->end[0])
		accept_orphan(qp, wire);
	else
		send_reply(qp, wire, private_data, private_bytes);
	return 0;
err_reject:
	send_reject(wire, RVCM_DEV_REJECT_CONSUMER, NULL, 0);
	sim_wire_put(wire);
	return rc;
}

int sim_cm_reject(struct rvcm_dev_req *base, const void *private_data, size_t private_bytes)
{
	struct sim_req *req = (struct sim_req *)base;
	struct sim_wire *wire = take_request(req);
	bool fits = private_bytes <= req->dev->base.attr.private_data_bytes;

	if (!wire)
		return -EINVAL;
	send_reject(wire, RVCM_DEV_REJECT_CONSUMER, private_data, fits ? private_bytes : 0);
	sim_wire_put(wire);
	return fits ? 0 : -EINVAL;
}

/* A closed listener's requests that the caller has not seen are refused; listener NULL: all are. */
void sim_cm_drop_requests(struct sim_dev *dev, struct sim_listener *listener)
{
	for (struct sim_shell *shell = dev->shells; shell; shell = shell->next) {
		struct sim_req *req = rvcm_container_of(shell, struct sim_req, shell);
		struct sim_wire *wire;

		if (shell->kind != SIM_SHELL_REQ || !req->wire ||
		    (listener && req->listener != listener))
			continue;
		if (listener && req->seen) {
			req->listener = NULL;
			continue;
		}
		wire = take_request(req);
		send_reject(wire, RVCM_DEV_REJECT_NOT_LISTENING, NULL, 0);
		sim_wire_put(wire);
	}
}

/* -- established, and the end ---------------------------------------------------------------- */

static void established(struct sim_qp *qp, struct sim_payload *payload)
{
	struct sim_dev *dev = sim_dev_of(qp->base.dev);
	struct sim_wire *wire = qp->wire;
	struct sim_cm *cm;

	if (qp->established || qp->state != RVCM_DEV_QP_CONNECTING)
		return;
	sim_event_cancel(dev->net, &qp->cm);
	qp->state = RVCM_DEV_QP_RTS;
	qp->established = true;
	qp->base.caps = dev->base.attr.caps;
	if (wire->dev[!qp->end])
		qp->base.caps &= wire->dev[!qp->end]->base.attr.caps;
	cm = sim_cm_push(dev, qp, RVCM_DEV_EVENT_ESTABLISHED);
	cm->payload = payload;
	if (payload)
		payload->refs++;
}

static void reply_arrives(struct sim_packet *packet)
{
	struct sim_wire *wire = packet->wire;
	struct sim_qp *qp = wire->end[0];

	if (!qp || qp->state != RVCM_DEV_QP_CONNECTING)
		return;
	wire->up = true;
	wire->net->stats.connects++;
	established(qp, packet->payload);
	sim_wire_send(sim_wire_packet(wire, 1, SIM_PACKET_READY));
}

void sim_cm_disconnected(struct sim_qp *qp, enum rvcm_status status)
{
	struct sim_cm *cm;

	if (!qp->established || qp->disconnected)
		return;
	qp->disconnected = true;
	cm = sim_cm_push(sim_dev_of(qp->base.dev), qp, RVCM_DEV_EVENT_DISCONNECTED);
	cm->event.status = status;
	cm->event.err = rvcm_status_errno(status);
	cm->event.vendor_err = sim_vendor(status);
}

void sim_cm_fin_seen(struct sim_qp *qp)
{
	if (!qp || qp->state == RVCM_DEV_QP_ERROR)
		return;
	/* FIN may overtake READY's loss: what was sent on the wire proves it is up. */
	established(qp, NULL);
	qp->state = RVCM_DEV_QP_CLOSING;
	sim_event_cancel(sim_dev_of(qp->base.dev)->net, &qp->cm);
	sim_cm_disconnected(qp, RVCM_STATUS_OK);
}

static void fin_arrives(struct sim_packet *packet)
{
	struct sim_qp *qp = packet->wire->end[packet->to];

	sim_cm_fin_seen(qp);
	if (!qp || qp->state != RVCM_DEV_QP_CLOSING)
		return;
	qp->fin_wanted = true;
	sim_tx_start(qp);
}

void sim_cm_packet(struct sim_packet *packet)
{
	struct sim_qp *qp = packet->wire->end[packet->to];

	switch (packet->kind) {
	case SIM_PACKET_REQUEST:
		request_arrives(packet);
		break;
	case SIM_PACKET_REPLY:
		reply_arrives(packet);
		break;
	case SIM_PACKET_REJECT:
		if (qp && qp->state == RVCM_DEV_QP_CONNECTING)
			rejected(qp, packet->reject, packet->payload);
		break;
	case SIM_PACKET_READY:
		if (qp)
			established(qp, NULL);
		break;
	default:
		fin_arrives(packet);
	}
}

int sim_cm_disconnect(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (!qp->reported) {
		/* Established or not, as far as the caller knows this is still an attempt. */
		qp->state = RVCM_DEV_QP_ERROR;
		qp->established = false;
		sim_event_cancel(dev->net, &qp->cm);
		sim_cm_forget(dev, qp, NULL);
		sim_wire_leave(qp);
	} else if (qp->state == RVCM_DEV_QP_RTS) {
		qp->state = RVCM_DEV_QP_CLOSING;
		qp->fin_wanted = true;
		time_out_after(qp, dev->net->conf.cm_timeout_ns);
		sim_tx_start(qp);
	}
	return 0;
}

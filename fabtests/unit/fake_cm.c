/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fake_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define PATIENCE_S 10
#define INTERFACE  3 /* a number */

struct event {
	struct rdma_cm_event event;
	uint8_t private_data[256];
	struct fake_cm_id *owner; /* whose destruction waits for it */
	bool taken;
	bool dropped; /* the id was destroyed before it was taken */
};

struct fake_cm fake_cm;

static struct rdma_event_channel channel;
static struct event events[EVENTS_MAX];
static uint32_t n_events, n_taken;
static struct ibv_async_event asyncs[EVENTS_MAX];
static uint32_t n_asyncs, n_asyncs_taken;

/* Of rdma_connect, which threads call. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t n_calls;
static pthread_t tester;
static bool let_go;
static int let_go_with;

static int answer(int err)
{
	errno = err;
	return err ? -1 : 0;
}

struct fake_cm_id *fake_cm_of(struct rdma_cm_id *id)
{
	return rvcm_container_of(id, struct fake_cm_id, id);
}

/* -- events ----------------------------------------------------------------------------------- */

static void announce(int fd)
{
	uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

/* False: nothing has been announced. */
static bool heard(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one);
}

static struct fake_cm_id *make_id(void *context)
{
	struct fake_cm_id *made = calloc(1, sizeof(*made));

	made->id.context = context;
	made->id.channel = &channel;
	rvcm_list_add_tail(&fake_cm.ids, &made->node);
	fake_cm.n_ids++;
	fake_cm.n_created++;
	return made;
}

struct rdma_cm_id *fake_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
				 const void *private_data, uint8_t private_bytes)
{
	struct event *e = &events[n_events++];
	struct rdma_cm_id *request = NULL;

	assert_true(n_events <= EVENTS_MAX);
	memset(e, 0, sizeof(*e));
	e->owner = fake_cm_of(id);
	e->event = (struct rdma_cm_event) { .id = id, .event = type, .status = status };
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) { /* what listens has to wait for it */
		request = &make_id(id->context)->id;
		request->route.addr.dst_addr.sa_family = AF_INET;
		e->event.id = request;
		e->event.listen_id = id;
	} else if (type > RDMA_CM_EVENT_CONNECT_REQUEST && type != RDMA_CM_EVENT_ADDR_CHANGE) {
		e->owner->unanswered = false;
	}
	memcpy(e->private_data, private_data ? private_data : "", private_bytes);
	e->event.param.conn.private_data = private_bytes ? e->private_data : NULL;
	e->event.param.conn.private_data_len = private_bytes;
	e->event.param.conn.initiator_depth = 1;
	announce(channel.fd);
	return request;
}

int rdma_get_cm_event(struct rdma_event_channel *from, struct rdma_cm_event **event)
{
	assert_ptr_equal(from, &channel);
	do {
		if (!heard(channel.fd))
			return answer(EAGAIN);
		assert_true(n_taken < n_events);
	} while (events[n_taken].dropped && ++n_taken);
	events[n_taken].taken = true;
	events[n_taken].owner->unacked++;
	fake_cm.unacked++;
	*event = &events[n_taken++].event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct event *e = rvcm_container_of(event, struct event, event);

	assert_true(e->taken);
	e->taken = false;
	assert_true(e->owner->unacked > 0);
	e->owner->unacked--;
	fake_cm.unacked--;
	fake_cm.acked++;
	memset(e->private_data, 0xee, sizeof(e->private_data)); /* it is the library's again */
	return 0;
}

void fake_cm_async(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event *e = &asyncs[n_asyncs++];

	assert_true(n_asyncs <= EVENTS_MAX);
	*e = (struct ibv_async_event) { .event_type = type };
	if (qp)
		e->element.qp = qp;
	else
		e->element.port_num = 1;
	announce(fake_ibv.ctx.async_fd);
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	if (!heard(ctx->async_fd))
		return answer(EAGAIN);
	assert_true(n_asyncs_taken < n_asyncs);
	*event = asyncs[n_asyncs_taken++];
	fake_cm.unacked++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	assert_true(fake_cm.unacked > 0);
	fake_cm.unacked--;
	fake_cm.acked++;
}

/* -- the connection manager's calls ------------------------------------------------------------ */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	channel.fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	fake_cm.channels++;
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *gone)
{
	assert_ptr_equal(gone, &channel);
	assert_int_equal(fake_cm.n_ids, 0);
	close(channel.fd);
	pthread_mutex_lock(&mutex);
	fake_cm.channels--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

int rdma_create_id(struct rdma_event_channel *of, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	assert_ptr_equal(of, &channel);
	assert_int_equal(ps, RDMA_PS_TCP);
	*id = &make_id(context)->id;
	return 0;
}

static void free_id(struct fake_cm_id *gone)
{
	rvcm_list_del(&gone->node);
	fake_cm.n_ids--;
	free(gone);
}

/* With what came for it and was not taken; requests have an id. */
static void drop_events(struct fake_cm_id *gone)
{
	for (uint32_t i = n_taken; i < n_events; i++) {
		if (events[i].owner != gone || events[i].dropped)
			continue;
		events[i].dropped = true;
		if (events[i].event.id != &gone->id)
			free_id(fake_cm_of(events[i].event.id));
	}
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fake_cm_id *gone = fake_cm_of(id);

	assert_int_equal(gone->unacked, 0); /* rdma_destroy_id(3): it waits for that */
	assert_false(gone->calling);
	assert_false(gone->unanswered);
	drop_events(gone);
	free_id(gone);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (fake_cm.bind_fails)
		return answer(fake_cm.bind_fails);
	id->verbs = &fake_ibv.ctx;
	id->port_num = 1;
	id->route.addr.src_sin = *(struct sockaddr_in *)addr;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	(void)src;
	assert_true(ms > 0);
	id->route.addr.dst_sin = *(struct sockaddr_in *)dst;
	return answer(fake_cm.resolve_fails);
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)id;
	assert_true(ms > 0);
	return answer(fake_cm.route_fails);
}

/* As siw's: it may take its time. */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct fake_cm_id *f = fake_cm_of(id);
	int err = fake_cm.connect_fails;

	assert_int_not_equal(param->qp_num, 0);
	/* Who is to let it go would wait itself. */
	assert_false(fake_cm.connect_waits && pthread_equal(pthread_self(), tester));
	pthread_mutex_lock(&mutex);
	f->connects++;
	f->calling = true;
	f->unanswered = fake_cm.iwarp;
	n_calls++;
	pthread_cond_broadcast(&changed);
	if (fake_cm.connect_waits) {
		while (!let_go)
			pthread_cond_wait(&changed, &mutex);
		err = let_go_with;
	}
	f->calling = false;
	if (err)
		f->unanswered = false;
	pthread_mutex_unlock(&mutex);
	return answer(err);
}

void fake_cm_let_go(int err)
{
	pthread_mutex_lock(&mutex);
	let_go_with = err;
	let_go = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

void fake_cm_await_calls(uint32_t n)
{
	pthread_mutex_lock(&mutex);
	while (n_calls < n)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	assert_true(backlog > 0);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	assert_int_not_equal(param->qp_num, 0);
	fake_cm_of(id)->accepts++;
	fake_cm_of(id)->unanswered = fake_cm.iwarp;
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_bytes)
{
	(void)private_data;
	(void)private_bytes;
	fake_cm_of(id)->rejects++;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	fake_cm_of(id)->disconnects++;
	fake_cm.disconnects++;
	return 0;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	assert_int_equal(event, IBV_EVENT_COMM_EST);
	fake_cm_of(id)->notified++;
	return 0;
}

int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
	(void)id;
	(void)value;
	(void)size;
	assert_int_equal(level, RDMA_OPTION_ID);
	return fake_cm.iwarp && name == RDMA_OPTION_ID_ACK_TIMEOUT ? answer(EINVAL) : 0;
}

/* -- the device's ----------------------------------------------------------------------------- */

#undef ibv_query_port

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	assert_ptr_equal(device, &fake_ibv.device);
	fake_ibv.ctx.async_fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	fake_cm.contexts++;
	return &fake_ibv.ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	close(ctx->async_fd);
	ctx->async_fd = -1;
	fake_cm.contexts--;
	return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = (struct ibv_device_attr) { .max_qp_wr = 64,
					   .max_cqe = 256,
					   .max_srq_wr = FAKE_IBV_DEPTH,
					   .max_sge = 4,
					   .max_sge_rd = 2,
					   .max_qp_rd_atom = 4,
					   .max_qp_init_rd_atom = 4,
					   .max_qp = 4 };
	return 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *full = (struct ibv_port_attr *)attr;

	(void)ctx;
	assert_int_equal(port, 1);
	full->state = fake_cm.port_state;
	full->active_mtu = IBV_MTU_1024;
	full->link_layer = IBV_LINK_LAYER_ETHERNET;
	full->max_msg_sz = 1u << 30;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = ctx;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)qp;
	(void)mask;
	(void)init;
	attr->qp_state = fake_cm.qp_state;
	return 0;
}

/* -- this host's IP stack ---------------------------------------------------------------------- */

int rvcm_verbs_netlink_tcp(const struct sockaddr *local, const struct sockaddr *peer,
			   struct tcp_info *info)
{
	(void)local;
	(void)peer;
	assert_true(fake_cm.iwarp);
	*info = fake_cm.tcp;
	return fake_cm.tcp_fails;
}

bool rvcm_verbs_netlink_routed(const struct sockaddr *local, const struct sockaddr *peer,
			       uint32_t interface)
{
	(void)local;
	(void)peer;
	assert_false(fake_cm.iwarp);
	assert_int_equal(interface, INTERFACE);
	return !fake_cm.unrouted;
}

uint32_t rvcm_verbs_netlink_interface(const struct sockaddr *local)
{
	(void)local;
	return INTERFACE;
}

/* -- life ------------------------------------------------------------------------------------- */

struct rvcm_dev *fake_cm_open(bool iwarp, const struct rvcm_verbs_tunables *tunables)
{
	struct rvcm_dev_attr attr = { .name = "fake0" };
	struct rvcm_dev *dev;

	fake_ibv_open();
	memset(&fake_cm, 0, sizeof(fake_cm));
	fake_cm.iwarp = iwarp;
	fake_cm.qp_state = IBV_QPS_RTS;
	fake_cm.port_state = IBV_PORT_ACTIVE;
	rvcm_list_init(&fake_cm.ids);
	fake_ibv.ctx.cmd_fd = -1;
	fake_ibv.device.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	n_events = n_taken = n_asyncs = n_asyncs_taken = n_calls = 0;
	tester = pthread_self();
	let_go = false;
	assert_int_equal(rvcm_addr_parse("192.0.2.1", &attr.addr), 0);
	assert_int_equal(rvcm_verbs_open(&attr, tunables, &dev), 0);
	return dev;
}

/* A thread of the device's may be the one that closes it. */
static void await_close(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&mutex);
	while (fake_cm.channels)
		if (pthread_cond_timedwait(&changed, &mutex, &until))
			break;
	pthread_mutex_unlock(&mutex);
}

void fake_cm_close(void)
{
	await_close();
	assert_int_equal(fake_cm.n_ids, 0);
	assert_int_equal(fake_cm.unacked, 0);
	assert_int_equal(fake_cm.contexts, 0);
	assert_int_equal(fake_cm.channels, 0);
	fake_ibv_close();
}

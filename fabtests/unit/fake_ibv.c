/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fake_ibv.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_ibv fake_ibv;

struct fake_cq {
	struct ibv_cq cq;
};

/* -- what post and poll are ------------------------------------------------------------------ */

static struct fake_ibv_qp *fake_of(struct ibv_qp *qp)
{
	return (struct fake_ibv_qp *)qp;
}

struct fake_ibv_qp *fake_ibv_qp(const struct rvcm_verbs_qp *qp)
{
	return fake_of(qp->qp);
}

static void keep(struct fake_ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct fake_ibv_send *send = &qp->sends[qp->n_sends++ % FAKE_IBV_DEPTH];

	memset(send, 0, sizeof(*send));
	send->wr = *wr;
	if (wr->num_sge)
		memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(send->sge[0]));
	send->wr.sg_list = send->sge;
	for (int i = 0; i < wr->num_sge && wr->send_flags & IBV_SEND_INLINE; i++) {
		assert_true(send->n_bytes + wr->sg_list[i].length <= FAKE_IBV_BYTES);
		memcpy(send->bytes + send->n_bytes, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		send->n_bytes += wr->sg_list[i].length;
	}
}

static bool refused(void)
{
	return fake_ibv.refuse_nth && --fake_ibv.refuse_nth == 0;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	fake_ibv.doorbells++;
	fake_ibv.listed++;
	for (; wr; wr = wr->next) {
		if (refused()) {
			*bad = wr;
			return fake_ibv.refuse_with;
		}
		keep(fake_of(base), wr);
	}
	return 0;
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_ibv_qp *qp = fake_of(base);

	*bad = wr;
	if (qp->n_recvs == FAKE_IBV_DEPTH)
		return ENOMEM;
	qp->recvs[qp->n_recvs++] = wr->wr_id;
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	assert_null(wr->next);
	if (fake_ibv.n_srq == FAKE_IBV_DEPTH)
		return ENOMEM;
	fake_ibv.srq[fake_ibv.n_srq++] = wr->wr_id;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = n < (int)fake_ibv.n_wcs ? n : (int)fake_ibv.n_wcs;

	(void)cq;
	memcpy(wc, fake_ibv.wcs, (size_t)got * sizeof(*wc));
	fake_ibv.n_wcs -= (uint32_t)got;
	memmove(fake_ibv.wcs, fake_ibv.wcs + got, fake_ibv.n_wcs * sizeof(*wc));
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	fake_ibv.notify_solicited = solicited_only;
	fake_ibv.notify = true;
	fake_ibv.n_notified++;
	return 0;
}

/* -- ibv_wr_post(3) --------------------------------------------------------------------------- */

static struct fake_ibv_send *writing(struct ibv_qp_ex *ex)
{
	struct fake_ibv_qp *qp = fake_of(&ex->qp_base);

	return &qp->sends[(qp->n_sends - 1) % FAKE_IBV_DEPTH];
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	const struct ibv_send_wr wr = { .wr_id = ex->wr_id,
					.opcode = opcode,
					.send_flags = ex->wr_flags };

	keep(fake_of(&ex->qp_base), &wr);
	return &writing(ex)->wr;
}

static void ex_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void ex_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = begin(ex, op);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
}

static void ex_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void ex_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	writing(ex)->wr.imm_data = imm;
}

static void ex_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void ex_atomic(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t a, uint64_t b)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = a;
	wr->wr.atomic.swap = b;
}

static void ex_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t a)
{
	ex_atomic(ex, rkey, addr, a, 0);
	writing(ex)->wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void ex_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct fake_ibv_send *send = writing(ex);

	send->sge[0] = (struct ibv_sge) { .addr = addr, .length = length, .lkey = lkey };
	send->wr.num_sge = 1;
}

static void ex_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	(void)list;
	assert_int_equal(n, 0); /* rxe's library does it wrong */
	writing(ex)->wr.num_sge = 0;
}

static void ex_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct fake_ibv_send *send = writing(ex);

	assert_true(length <= FAKE_IBV_BYTES);
	memcpy(send->bytes, addr, length);
	send->n_bytes = (uint32_t)length;
	send->wr.num_sge = 1;
}

static void ex_start(struct ibv_qp_ex *ex)
{
	(void)ex;
}

static int ex_complete(struct ibv_qp_ex *ex)
{
	(void)ex;
	fake_ibv.doorbells++;
	return refused() ? fake_ibv.refuse_with : 0;
}

static void make_ex(struct ibv_qp_ex *ex)
{
	ex->wr_send = ex_send;
	ex->wr_send_imm = ex_send_imm;
	ex->wr_rdma_write = ex_write;
	ex->wr_rdma_write_imm = ex_write_imm;
	ex->wr_rdma_read = ex_read;
	ex->wr_atomic_cmp_swp = ex_atomic;
	ex->wr_atomic_fetch_add = ex_add;
	ex->wr_set_sge = ex_set_sge;
	ex->wr_set_sge_list = ex_set_sge_list;
	ex->wr_set_inline_data = ex_set_inline;
	ex->wr_start = ex_start;
	ex->wr_complete = ex_complete;
}

/* -- what the device does --------------------------------------------------------------------- */

void fake_ibv_push(const struct ibv_wc *wc)
{
	assert_true(fake_ibv.n_wcs < FAKE_IBV_DEPTH);
	fake_ibv.wcs[fake_ibv.n_wcs++] = *wc;
	if (!fake_ibv.notify)
		return;
	fake_ibv.notify = false;
	assert_int_equal(write(fake_ibv.event_pipe[1], "e", 1), 1);
}

static struct fake_ibv_send *next_send(struct fake_ibv_qp *qp)
{
	assert_true(qp->n_completed < qp->n_sends);
	return &qp->sends[qp->n_completed++ % FAKE_IBV_DEPTH];
}

static void end_send(struct fake_ibv_qp *qp, enum ibv_wc_status status, uint32_t vendor_err)
{
	const struct fake_ibv_send *send = next_send(qp);
	const struct ibv_wc wc = { .wr_id = send->wr.wr_id,
				   .status = status,
				   .vendor_err = vendor_err,
				   .qp_num = qp->qp.qp_num };

	if (status != IBV_WC_SUCCESS || send->wr.send_flags & IBV_SEND_SIGNALED)
		fake_ibv_push(&wc);
}

void fake_ibv_complete(struct rvcm_verbs_qp *qp, uint32_t n)
{
	while (n--)
		end_send(fake_ibv_qp(qp), IBV_WC_SUCCESS, 0);
}

void fake_ibv_fail(struct rvcm_verbs_qp *qp, enum ibv_wc_status status, uint32_t vendor_err)
{
	end_send(fake_ibv_qp(qp), status, vendor_err);
}

static uint64_t take_oldest(uint64_t *ids, uint32_t *n)
{
	uint64_t id = ids[0];

	assert_true(*n > 0);
	memmove(ids, ids + 1, --*n * sizeof(*ids));
	return id;
}

void fake_ibv_receive(uint32_t number, struct fake_ibv_qp *own, uint32_t bytes)
{
	const struct ibv_wc wc = { .wr_id = own ? take_oldest(own->recvs, &own->n_recvs)
						: take_oldest(fake_ibv.srq, &fake_ibv.n_srq),
				   .status = IBV_WC_SUCCESS,
				   .opcode = IBV_WC_RECV,
				   .byte_len = bytes,
				   .qp_num = number };

	fake_ibv_push(&wc);
}

static void flush(struct fake_ibv_qp *qp)
{
	while (qp->n_completed < qp->n_sends)
		end_send(qp, IBV_WC_WR_FLUSH_ERR, 0);
	while (qp->n_recvs) {
		const struct ibv_wc wc = { .wr_id = take_oldest(qp->recvs, &qp->n_recvs),
					   .status = IBV_WC_WR_FLUSH_ERR,
					   .qp_num = qp->qp.qp_num };

		fake_ibv_push(&wc);
	}
}

/* -- the library ------------------------------------------------------------------------------ */

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static bool fails(void)
{
	if (!fake_ibv.fail_nth || --fake_ibv.fail_nth)
		return false;
	errno = ENOMEM;
	return true;
}

static void *make(size_t size)
{
	void *p = fails() ? NULL : calloc(1, size);

	fake_ibv.n_made += p != NULL;
	return p;
}

static int unmake(void *p)
{
	fake_ibv.n_made--;
	free(p);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = make(sizeof(*cq));

	(void)vector;
	if (!cq)
		return NULL;
	cq->context = ctx;
	cq->cq_context = cq_context;
	cq->channel = channel;
	cq->cqe = cqe;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return unmake(cq);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if ((uint32_t)cqe > fake_ibv.cqe_max)
		return EINVAL;
	cq->cqe = cqe;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel));

	if (!channel)
		return NULL;
	assert_int_equal(pipe(fake_ibv.event_pipe), 0);
	channel->context = ctx;
	channel->fd = fake_ibv.event_pipe[0];
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(fake_ibv.event_pipe[0]);
	close(fake_ibv.event_pipe[1]);
	return unmake(channel);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	char byte;

	*cq = NULL;
	*cq_context = NULL;
	return read(channel->fd, &byte, 1) == 1 ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = make(sizeof(*srq));

	(void)attr;
	if (srq)
		srq->context = pd->context;
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	fake_ibv.n_srq = 0;
	return unmake(srq);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static uint32_t key = 100;
	struct ibv_mr *mr = make(sizeof(*mr));

	(void)access;
	if (!mr)
		return NULL;
	mr->context = pd->context;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = key++;
	mr->rkey = mr->lkey;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return unmake(mr);
}

static uint32_t free_number(uint32_t number)
{
	const struct fake_ibv_qp *end =
		fake_ibv.qps + sizeof(fake_ibv.qps) / sizeof(fake_ibv.qps[0]);

	for (const struct fake_ibv_qp *qp = fake_ibv.qps; qp < end; qp++)
		if (qp->taken && qp->qp.qp_num == number)
			return free_number(number + 1);
	return number;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_ibv_qp *qp = fake_ibv.qps;

	if (fails())
		return NULL;
	while (qp->taken)
		qp++;
	assert_true(qp < fake_ibv.qps + sizeof(fake_ibv.qps) / sizeof(fake_ibv.qps[0]));
	memset(qp, 0, sizeof(*qp));
	qp->qp.qp_num = free_number(fake_ibv.number_next);
	qp->taken = true;
	qp->qp.context = pd->context;
	qp->qp.srq = attr->srq;
	qp->qp.qp_context = attr->qp_context;
	make_ex(&qp->ex);
	fake_ibv.n_made++;
	return &qp->qp;
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	void (*then)(void *ctx) = fake_ibv.on_destroyed;
	uint32_t kept = 0;

	if (fake_ibv.flushes_late)
		flush(fake_of(base));
	if (fake_ibv.takes_along && fake_ibv.n_srq)
		(void)take_oldest(fake_ibv.srq, &fake_ibv.n_srq);
	for (uint32_t i = 0; i < fake_ibv.n_wcs; i++)
		if (fake_ibv.keeps_stale || fake_ibv.wcs[i].qp_num != base->qp_num)
			fake_ibv.wcs[kept++] = fake_ibv.wcs[i];
	fake_ibv.n_wcs = kept;
	fake_of(base)->taken = false;
	fake_ibv.n_made--;
	fake_ibv.on_destroyed = NULL;
	if (then)
		then(fake_ibv.on_destroyed_ctx);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)mask;
	if (attr->qp_state == IBV_QPS_ERR && fake_ibv.flushes)
		flush(fake_of(qp));
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return &fake_of(qp)->ex;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	(void)attr;
	*mask = 0;
	return 0;
}

/* -- life ------------------------------------------------------------------------------------- */

static bool same_number(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_container_of((struct rvcm_hash_node *)node, struct rvcm_verbs_qp, by_number)
		       ->number == *(const uint32_t *)key;
}

static void open_dev(struct rvcm_verbs_dev *dev)
{
	static struct ibv_pd pd;

	pd.context = &fake_ibv.ctx;
	dev->ctx = &fake_ibv.ctx;
	dev->pd = &pd;
	dev->wake = -1;
	dev->cq_resizes = true;
	dev->limits.max_srq_wr = FAKE_IBV_DEPTH;
	dev->limits.max_sge_rd = 2;
	dev->base.attr = (struct rvcm_dev_attr) {
		.name = "fake0",
		.caps = RVCM_DEV_CAP_PLACED | RVCM_DEV_CAP_READ | RVCM_DEV_CAP_SRQ |
			RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_ATOMIC,
		.sge_max = 4,
		.inline_bytes_max = 64,
		.sq_depth_max = 64,
		.rq_depth_max = 64,
		.cq_depth_max = 256,
		.message_bytes_max = 1 << 20,
	};
	rvcm_list_init(&dev->qps);
	rvcm_list_init(&dev->mail);
	rvcm_list_init(&dev->mrs);
	rvcm_list_init(&dev->pools);
	rvcm_list_init(&dev->srqs);
	rvcm_list_init(&dev->cqs);
	rvcm_timer_queue_init(&dev->alarm.timers);
	rvcm_hash_init(&dev->by_number, same_number, 1);
	rvcm_lock_init(&dev->lock, true);
}

void fake_ibv_open(void)
{
	memset(&fake_ibv, 0, sizeof(fake_ibv));
	fake_ibv.ctx.device = &fake_ibv.device;
	fake_ibv.ctx.ops.post_send = post_send;
	fake_ibv.ctx.ops.post_recv = post_recv;
	fake_ibv.ctx.ops.post_srq_recv = post_srq_recv;
	fake_ibv.ctx.ops.poll_cq = poll_cq;
	fake_ibv.ctx.ops.req_notify_cq = req_notify_cq;
	fake_ibv.number_next = 17;
	fake_ibv.keeps_stale = true;
	fake_ibv.flushes = true;
	fake_ibv.cqe_max = 256;
	open_dev(&fake_ibv.dev);
}

void fake_ibv_close(void)
{
	rvcm_timer_queue_fini(&fake_ibv.dev.alarm.timers);
	rvcm_hash_fini(&fake_ibv.dev.by_number);
	rvcm_lock_fini(&fake_ibv.dev.lock);
	assert_int_equal(fake_ibv.n_made, 0);
}

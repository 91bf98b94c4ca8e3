/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handing work requests to the device. ibv_post_send(3) takes a list of them; where a queue pair
 * was made for ibv_wr_post(3) the requests are written straight into its queue, and the doorbell is
 * rung once in the end: all of them are taken or none.
 *
 * What waits for company is kept in a batch. Memory that the caller has back when post returns
 * (INLINE) is copied there, for a device copies it only when it gets the request.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"

/* 0, or what a verbs function answered as -errno: siw gives a negative one, others -1 and errno. */
static int batch_rc(int rc)
{
	if (rc == 0)
		return 0;
	if (rc == -1)
		return errno ? -errno : -EIO;
	return rc < 0 ? rc : -rc;
}

static int plain_post(struct rvcm_verbs_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return batch_rc(ibv_post_send(qp->qp, wr, bad));
}

const struct rvcm_verbs_poster rvcm_verbs_batch_plain = { .post = plain_post };

/* -- ibv_wr_post(3) ------------------------------------------------------------------------- */

static void ex_send(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	(void)wr;
	ibv_wr_send(qp);
}

static void ex_send_imm(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_send_imm(qp, wr->imm_data);
}

static void ex_write(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
}

static void ex_write_imm(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
}

static void ex_read(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
}

static void ex_cmp_swap(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static void ex_fetch_add(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				wr->wr.atomic.compare_add);
}

static void (*const ex_ops[])(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr) = {
	[IBV_WR_RDMA_WRITE] = ex_write,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = ex_write_imm,
	[IBV_WR_SEND] = ex_send,
	[IBV_WR_SEND_WITH_IMM] = ex_send_imm,
	[IBV_WR_RDMA_READ] = ex_read,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = ex_cmp_swap,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = ex_fetch_add,
};

/* The flag follows from the setter, but rxe's library does not set it. */
static void ex_put(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags;
	ex_ops[wr->opcode](qp, wr);
	if (!wr->num_sge)
		ibv_wr_set_sge_list(qp, 0, NULL);
	else if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)sge->addr, sge->length);
	else
		ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
}

static bool ex_of_one_piece(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->num_sge > 1)
			return false;
	return true;
}

/*
 * Requests of several pieces take the other way (the two may alternate): rxe's library does not
 * count the bytes of a list of pieces.
 */
static int ex_post(struct rvcm_verbs_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp->qp);

	if (RVCM_VERBS_UNLIKELY(!ex_of_one_piece(wr)))
		return plain_post(qp, wr, bad);
	*bad = wr;
	ibv_wr_start(ex);
	for (; wr; wr = wr->next)
		ex_put(ex, wr);
	return batch_rc(ibv_wr_complete(ex));
}

const struct rvcm_verbs_poster rvcm_verbs_batch_ex = { .post = ex_post };

/* -- waiting for company -------------------------------------------------------------------- */

bool rvcm_verbs_batch_open(struct rvcm_verbs_qp *qp)
{
	size_t bytes = (size_t)RVCM_VERBS_BATCH_MAX * qp->inline_bytes_max;

	if (!qp->batch)
		qp->batch = rvcm_mem_zalloc(sizeof(*qp->batch) + bytes);
	return qp->batch;
}

/* The bytes of the i-th one's pieces move into the batch, as one piece. */
static void batch_copy(struct rvcm_verbs_qp *qp, uint32_t i)
{
	struct ibv_send_wr *wr = &qp->batch->work[i].wr;
	uint8_t *to = qp->batch->bytes + (size_t)i * qp->inline_bytes_max;
	uint32_t bytes = 0;

	for (int s = 0; s < wr->num_sge; s++) {
		memcpy(to + bytes, (void *)(uintptr_t)wr->sg_list[s].addr, wr->sg_list[s].length);
		bytes += wr->sg_list[s].length;
	}
	wr->sg_list[0].addr = (uintptr_t)to;
	wr->sg_list[0].length = bytes;
	wr->num_sge = bytes ? 1 : 0;
}

struct rvcm_verbs_work *rvcm_verbs_batch_next(struct rvcm_verbs_qp *qp)
{
	return &qp->batch->work[qp->batch->n];
}

bool rvcm_verbs_batch_add(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_batch *batch = qp->batch;
	uint32_t i = batch->n++;

	if (batch->work[i].wr.send_flags & IBV_SEND_INLINE)
		batch_copy(qp, i);
	if (i)
		batch->work[i - 1].wr.next = &batch->work[i].wr;
	return batch->n == RVCM_VERBS_BATCH_MAX;
}

int rvcm_verbs_batch_post(struct rvcm_verbs_qp *qp)
{
	struct ibv_send_wr *bad;

	qp->batch->n = 0;
	return qp->poster->post(qp, &qp->batch->work[0].wr, &bad);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/verbs_world.h"

#include <string.h>

struct rvcm_verbs_qp *verbs_world_qp(struct verbs_world *w)
{
	struct rvcm_dev_qp *base;

	assert_int_equal(rvcm_verbs_qp_open(w->dev, &w->attr, &base), 0);
	rvcm_verbs_qp_advance(rvcm_verbs_qp_of(base), RVCM_DEV_QP_RTS);
	return rvcm_verbs_qp_of(base);
}

static void open_pool(struct verbs_world *w)
{
	const struct rvcm_dev_pool_attr attr = { .message_bytes_max = 256,
						 .count = VERBS_WORLD_POOL };

	assert_int_equal(rvcm_verbs_pool_open(w->dev, &attr, &w->pool), 0);
	assert_int_equal(rvcm_verbs_pool_grow(w->pool, VERBS_WORLD_POOL), 0);
}

void verbs_world_open(struct verbs_world *w, bool posted)
{
	struct rvcm_dev_mr_attr mr = { .addr = w->bytes,
				       .length = sizeof(w->bytes),
				       .access = RVCM_DEV_ACCESS_LOCAL_WRITE };

	memset(w, 0, sizeof(*w));
	fake_ibv_open();
	w->dev = &fake_ibv.dev.base;
	assert_int_equal(rvcm_verbs_cq_open(w->dev, 64, &w->cq), 0);
	if (!posted)
		open_pool(w);
	assert_int_equal(rvcm_verbs_mr_reg(w->dev, &mr, &w->mr), 0);
	w->attr = (struct rvcm_dev_qp_attr) {
		.cq = w->cq,
		.pool = w->pool,
		.sq_depth = VERBS_WORLD_DEPTH,
		.rq_depth = VERBS_WORLD_DEPTH,
		.sge_max = 4,
		.ctx = &w->ctx,
	};
	w->qp = verbs_world_qp(w);
	assert_int_equal(rvcm_verbs_attach(&w->qp->base), 0);
}

void verbs_world_close(struct verbs_world *w)
{
	if (w->qp) {
		rvcm_verbs_attach_end(&w->qp->base);
		rvcm_verbs_qp_close(&w->qp->base);
	}
	rvcm_verbs_cq_close(w->cq);
	if (w->pool)
		rvcm_verbs_pool_close(w->pool);
	rvcm_verbs_mr_dereg(w->mr);
	fake_ibv_close();
}

int verbs_world_post(struct verbs_world *w, struct rvcm_dev_wr wr, size_t bytes)
{
	const struct rvcm_dev_sge sge = { .addr = w->bytes, .length = bytes, .mr = w->mr };

	wr.n_sge = 1;
	wr.sge = &sge;
	return rvcm_verbs_sq_post(&w->qp->base, &wr);
}

struct rvcm_dev_wc verbs_world_wc(struct verbs_world *w)
{
	struct rvcm_dev_wc wc;

	assert_int_equal(rvcm_verbs_cq_poll(w->cq, &wc, 1), 1);
	assert_ptr_equal(wc.qp_ctx, &w->ctx);
	return wc;
}

void verbs_world_quiet(struct verbs_world *w)
{
	struct rvcm_dev_wc wc;

	assert_int_equal(rvcm_verbs_cq_poll(w->cq, &wc, 1), 0);
}

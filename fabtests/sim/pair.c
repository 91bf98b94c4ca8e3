/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pair.h"

#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"

static void count_misuse(void *arg, enum sim_misuse what, const char *text)
{
	struct pair *pair = arg;

	assert_int_not_equal(text[0], 0);
	pair->seen[what]++;
}

static void open_side(struct pair *pair, int side, const struct pair_conf *conf)
{
	struct sim_dev_conf dev_conf;
	struct rvcm_dev_pool_attr pool_attr = { .message_bytes_max = PAIR_BYTES,
						.count = conf->count ? conf->count : 16 };
	struct rvcm_dev_mr_attr mr_attr = { .addr = pair->data[side],
					    .length = PAIR_BYTES,
					    .access = 0xf };
	struct rvcm_dev_qp_attr attr = {
		.sq_depth = conf->sq_depth ? conf->sq_depth : 16,
		.rq_depth = 16,
		.sge_max = 4,
		.rnr_timeout_ns = conf->rnr_timeout_ns ? conf->rnr_timeout_ns : SIM_S,
		.ctx = &pair->qp[side],
	};
	struct rvcm_dev *dev;

	sim_dev_conf_init(pair->net, &dev_conf, false);
	dev_conf.early = conf->early;
	dev_conf.attr.caps &= ~conf->drop_caps;
	dev = sim_dev_open(pair->net, &dev_conf);
	pair->dev[side] = dev;
	assert_int_equal(
		dev->ops->cq_open(dev, conf->cq_depth ? conf->cq_depth : 256, &pair->cq[side]), 0);
	if (!conf->posted) {
		assert_int_equal(dev->ops->pool_open(dev, &pool_attr, &pair->pool[side]), 0);
		assert_int_equal(dev->ops->pool_grow(pair->pool[side], pool_attr.count), 0);
	}
	assert_int_equal(dev->ops->mr_reg(dev, &mr_attr, &pair->mr[side]), 0);
	attr.cq = pair->cq[side];
	attr.pool = pair->pool[side];
	assert_int_equal(dev->ops->qp_open(dev, &attr, &pair->qp[side]), 0);
}

struct pair *pair_open(const struct pair_conf *conf)
{
	static const struct pair_conf standard;
	struct pair *pair = calloc(1, sizeof(*pair));
	struct sim_conf sim_conf;

	assert_non_null(pair);
	if (!conf)
		conf = &standard;
	sim_conf = conf->sim;
	if (conf->watch) {
		sim_conf.misuse = count_misuse;
		sim_conf.misuse_arg = pair;
	}
	pair->net = sim_net_open(&sim_conf);
	for (int side = 0; side < 2; side++)
		open_side(pair, side, conf);
	pair->addr = pair->dev[1]->attr.addr;
	assert_int_equal(pair->dev[1]->ops->listen(pair->dev[1], &pair->addr, 4, &pair->listener,
						   &pair->listener),
			 0);
	return pair;
}

void pair_poll_cm(struct pair *pair)
{
	struct rvcm_dev_event ev;

	for (int side = 0; side < 2; side++)
		while (pair->dev[side]->ops->cm_poll(pair->dev[side], &ev) == 1)
			if (ev.type != RVCM_DEV_EVENT_ADDR_RESOLVED &&
			    ev.type != RVCM_DEV_EVENT_ROUTE_RESOLVED) {
				pair->last[side] = ev;
				pair->events[side]++;
			}
}

void pair_until(struct pair *pair, int side, enum rvcm_dev_event_type type)
{
	for (;;) {
		pair_poll_cm(pair);
		if (pair->events[side] && pair->last[side].type == type)
			return;
		if (!sim_step(pair->net))
			fail_msg("event %d does not come", type);
	}
}

void pair_connect(struct pair *pair, bool attach)
{
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;

	assert_int_equal(ops->connect(pair->qp[0], &pair->addr, "hello", 5), 0);
	pair_until(pair, 1, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(ops->accept(pair->last[1].req, pair->qp[1], NULL, 0), 0);
	pair_until(pair, 0, RVCM_DEV_EVENT_ESTABLISHED);
	pair_until(pair, 1, RVCM_DEV_EVENT_ESTABLISHED);
	if (!attach)
		return;
	assert_int_equal(ops->attach(pair->qp[0]), 0);
	assert_int_equal(ops->attach(pair->qp[1]), 0);
}

void pair_close(struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		const struct rvcm_dev_ops *ops = pair->dev[side]->ops;

		if (pair->qp[side])
			ops->qp_close(pair->qp[side]);
		if (side == 1 && pair->listener)
			ops->listener_close(pair->listener);
		if (pair->cq[side])
			ops->cq_close(pair->cq[side]);
		if (pair->pool[side])
			ops->pool_close(pair->pool[side]);
		if (pair->mr[side])
			ops->mr_dereg(pair->mr[side]);
		ops->close(pair->dev[side]);
	}
	sim_net_close(pair->net);
	free(pair);
}

struct rvcm_dev_wc pair_wc(struct pair *pair, int side)
{
	struct rvcm_dev_wc wc;

	while (pair->dev[side]->ops->cq_poll(pair->cq[side], &wc, 1) != 1)
		if (!sim_step(pair->net))
			fail_msg("side %d: no completion comes", side);
	return wc;
}

void pair_quiet(struct pair *pair)
{
	struct rvcm_dev_wc wc;

	sim_run(pair->net, 10 * SIM_S);
	for (int side = 0; side < 2; side++)
		assert_int_equal(pair->dev[side]->ops->cq_poll(pair->cq[side], &wc, 1), 0);
}

int pair_post(struct pair *pair, int side, enum rvcm_dev_op op, size_t bytes, uint64_t wr_id,
	      uint32_t flags)
{
	const struct rvcm_dev_sge sge = { pair->data[side], bytes, pair->mr[side] };
	const struct rvcm_dev_wr wr = {
		.wr_id = wr_id,
		.op = op,
		.flags = flags,
		.n_sge = 1,
		.sge = &sge,
		.raddr = (uintptr_t)pair->data[!side],
		.rkey = pair->mr[!side] ? pair->mr[!side]->rkey : 0,
	};

	return pair->dev[side]->ops->post(pair->qp[side], &wr);
}

int pair_recv(struct pair *pair, int side, size_t bytes, uint64_t wr_id)
{
	const struct rvcm_dev_sge sge = { pair->data[side], bytes, pair->mr[side] };
	const struct rvcm_dev_recv recv = { .wr_id = wr_id, .n_sge = 1, .sge = &sge };

	return pair->dev[side]->ops->post_recv(pair->qp[side], &recv);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What an ibv_wc says, in dev.h's words. */
#include <arpa/inet.h>
#include <string.h>

#include "dev/verbs/data_impl.h"

/*
 * ibv_poll_cq(3) and IBTA volume 1, 11.6.2. What reliable connections cannot report (EE contexts,
 * reliable datagrams, tag matching) is a device gone wrong: GENERAL.
 */
static const uint8_t statuses[] = {
	[IBV_WC_SUCCESS] = RVCM_STATUS_OK,
	[IBV_WC_LOC_LEN_ERR] = RVCM_STATUS_LOCAL_LENGTH,
	[IBV_WC_LOC_QP_OP_ERR] = RVCM_STATUS_LOCAL_QP_OP,
	[IBV_WC_LOC_EEC_OP_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_LOC_PROT_ERR] = RVCM_STATUS_LOCAL_PROTECTION,
	[IBV_WC_WR_FLUSH_ERR] = RVCM_STATUS_FLUSHED,
	[IBV_WC_MW_BIND_ERR] = RVCM_STATUS_LOCAL_QP_OP,
	[IBV_WC_BAD_RESP_ERR] = RVCM_STATUS_BAD_RESPONSE,
	[IBV_WC_LOC_ACCESS_ERR] = RVCM_STATUS_LOCAL_PROTECTION,
	[IBV_WC_REM_INV_REQ_ERR] = RVCM_STATUS_REMOTE_INVALID,
	[IBV_WC_REM_ACCESS_ERR] = RVCM_STATUS_REMOTE_ACCESS,
	[IBV_WC_REM_OP_ERR] = RVCM_STATUS_REMOTE_OP,
	[IBV_WC_RETRY_EXC_ERR] = RVCM_STATUS_RETRY_EXCEEDED,
	[IBV_WC_RNR_RETRY_EXC_ERR] = RVCM_STATUS_RNR_EXCEEDED,
	[IBV_WC_LOC_RDD_VIOL_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_REM_INV_RD_REQ_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_REM_ABORT_ERR] = RVCM_STATUS_REMOTE_ABORTED,
	[IBV_WC_INV_EECN_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_INV_EEC_STATE_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_FATAL_ERR] = RVCM_STATUS_FATAL,
	[IBV_WC_RESP_TIMEOUT_ERR] = RVCM_STATUS_RESPONSE_TIMEOUT,
	[IBV_WC_GENERAL_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_TM_ERR] = RVCM_STATUS_GENERAL,
	[IBV_WC_TM_RNDV_INCOMPLETE] = RVCM_STATUS_GENERAL,
};

enum rvcm_status rvcm_verbs_wc_status(enum ibv_wc_status status)
{
	if ((unsigned int)status >= sizeof(statuses))
		return RVCM_STATUS_GENERAL;
	return statuses[status];
}

/* Whether a message was solicited is not among what an ibv_wc says. */
void rvcm_verbs_wc_got(struct rvcm_verbs_got *got, const struct ibv_wc *wc)
{
	got->status = (uint8_t)rvcm_verbs_wc_status(wc->status);
	got->vendor_err = wc->status == IBV_WC_SUCCESS ? 0 : wc->vendor_err;
	got->length = 0;
	got->imm = 0;
	got->flags = 0;
	got->op = RVCM_DEV_OP_RECV;
	if (wc->status != IBV_WC_SUCCESS)
		return;
	got->length = wc->byte_len;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		got->op = RVCM_DEV_OP_RECV_WRITE;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		got->flags = RVCM_DEV_WC_IMM;
		got->imm = ntohl(wc->imm_data);
	}
}

void rvcm_verbs_wc_fill(const struct rvcm_verbs_qp *qp, const struct rvcm_verbs_got *got,
			struct rvcm_dev_wc *wc)
{
	wc->wr_id = got->wr_id;
	wc->qp_ctx = qp->base.ctx;
	wc->op = got->op;
	wc->flags = got->flags;
	wc->status = got->status;
	wc->vendor_err = got->vendor_err;
	wc->length = got->length;
	wc->imm = got->imm;
	wc->data = NULL;
	wc->rx = NULL;
}

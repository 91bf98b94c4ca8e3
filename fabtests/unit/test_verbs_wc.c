/* SPDX-License-Identifier: BSD-2-Clause */
/* What an ibv_wc says, over all that it may say. */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>

#include "dev/verbs/data_impl.h"

#define LAST IBV_WC_TM_RNDV_INCOMPLETE

static void each_status_has_a_meaning(void **state)
{
	(void)state;
	for (int s = -2; s <= LAST + 4; s++) {
		enum rvcm_status status = rvcm_verbs_wc_status((enum ibv_wc_status)s);

		assert_true(rvcm_status_known(status));
		assert_int_equal(status == RVCM_STATUS_OK, s == IBV_WC_SUCCESS);
		assert_int_equal(status == RVCM_STATUS_FLUSHED, s == IBV_WC_WR_FLUSH_ERR);
		/* Work completions say nothing of connections. */
		assert_true(status <= RVCM_STATUS_GENERAL);
		if (s < 0 || s > LAST)
			assert_int_equal(status, RVCM_STATUS_GENERAL);
	}
}

/* Every one of them, and the error number that an application gets for it. */
static void causes_are_told_apart(void **state)
{
	static const struct {
		enum ibv_wc_status ibv;
		enum rvcm_status status;
		int err;
	} rows[] = {
		{ IBV_WC_LOC_LEN_ERR, RVCM_STATUS_LOCAL_LENGTH, EINVAL },
		{ IBV_WC_LOC_QP_OP_ERR, RVCM_STATUS_LOCAL_QP_OP, EINVAL },
		{ IBV_WC_LOC_EEC_OP_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_LOC_PROT_ERR, RVCM_STATUS_LOCAL_PROTECTION, EACCES },
		{ IBV_WC_WR_FLUSH_ERR, RVCM_STATUS_FLUSHED, ECANCELED },
		{ IBV_WC_MW_BIND_ERR, RVCM_STATUS_LOCAL_QP_OP, EINVAL },
		{ IBV_WC_BAD_RESP_ERR, RVCM_STATUS_BAD_RESPONSE, EBADMSG },
		{ IBV_WC_LOC_ACCESS_ERR, RVCM_STATUS_LOCAL_PROTECTION, EACCES },
		{ IBV_WC_REM_INV_REQ_ERR, RVCM_STATUS_REMOTE_INVALID, EREMOTEIO },
		{ IBV_WC_REM_ACCESS_ERR, RVCM_STATUS_REMOTE_ACCESS, EACCES },
		{ IBV_WC_REM_OP_ERR, RVCM_STATUS_REMOTE_OP, EREMOTEIO },
		{ IBV_WC_RETRY_EXC_ERR, RVCM_STATUS_RETRY_EXCEEDED, ETIMEDOUT },
		{ IBV_WC_RNR_RETRY_EXC_ERR, RVCM_STATUS_RNR_EXCEEDED, ENOBUFS },
		{ IBV_WC_LOC_RDD_VIOL_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_REM_INV_RD_REQ_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_REM_ABORT_ERR, RVCM_STATUS_REMOTE_ABORTED, ECONNABORTED },
		{ IBV_WC_INV_EECN_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_INV_EEC_STATE_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_FATAL_ERR, RVCM_STATUS_FATAL, EIO },
		{ IBV_WC_RESP_TIMEOUT_ERR, RVCM_STATUS_RESPONSE_TIMEOUT, ETIMEDOUT },
		{ IBV_WC_GENERAL_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_TM_ERR, RVCM_STATUS_GENERAL, EIO },
		{ IBV_WC_TM_RNDV_INCOMPLETE, RVCM_STATUS_GENERAL, EIO },
	};

	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), LAST);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(rows[i].ibv, i + 1);
		assert_int_equal(rvcm_verbs_wc_status(rows[i].ibv), rows[i].status);
		assert_int_equal(rvcm_status_errno(rows[i].status), rows[i].err);
	}
}

/* Over status, opcode and flags: what is not valid is not looked at. */
static void a_receive_says_what_is_valid(void **state)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM };

	(void)state;
	for (int s = IBV_WC_SUCCESS; s <= LAST; s++)
		for (int i = 0; i < 4; i++) {
			bool ok = s == IBV_WC_SUCCESS, imm = i & 2;
			const struct ibv_wc wc = { .status = (enum ibv_wc_status)s,
						   .opcode = opcodes[i & 1],
						   .byte_len = 77,
						   .vendor_err = 5,
						   .imm_data = htonl(0x01020304),
						   .wc_flags = imm ? IBV_WC_WITH_IMM : 0 };
			struct rvcm_verbs_got got = { .wr_id = 9 };

			rvcm_verbs_wc_got(&got, &wc);
			assert_int_equal(got.wr_id, 9);
			assert_int_equal(got.status, rvcm_verbs_wc_status(wc.status));
			assert_int_equal(got.vendor_err, ok ? 0 : 5);
			assert_int_equal(got.length, ok ? 77 : 0);
			assert_int_equal(got.imm, ok && imm ? 0x01020304 : 0);
			assert_int_equal(got.flags, ok && imm ? RVCM_DEV_WC_IMM : 0);
			assert_int_equal(got.op,
					 ok && i & 1 ? RVCM_DEV_OP_RECV_WRITE : RVCM_DEV_OP_RECV);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_has_a_meaning),
		cmocka_unit_test(causes_are_told_apart),
		cmocka_unit_test(a_receive_says_what_is_valid),
	};

	return cmocka_run_group_tests_name("verbs_wc", tests, NULL, NULL);
}

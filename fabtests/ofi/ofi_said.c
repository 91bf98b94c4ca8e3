/* SPDX-License-Identifier: BSD-2-Clause */
/* Each call with a bad argument has an errno of its own, and one line at warn level that says why.
 */
#include "conf/conf.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "ofi/caught.h"

static const struct conf_options plain = { .caps = FI_RMA };

static struct conf_node node;
static struct fid_ep *bare; /* nothing is bound to it */

/* -- calls ------------------------------------------------------------------------------------ */

static int mr_reg(const void *buf, size_t len, uint64_t access, uint64_t flags)
{
	struct fid_mr *mr;

	return fi_mr_reg(node.domain, buf, len, access, 0, 0, flags, &mr, NULL);
}

static int mr_access(void)
{
	return mr_reg(&node, 1, FI_COLLECTIVE, 0);
}

static int mr_flags(void)
{
	return mr_reg(&node, 1, FI_SEND, FI_RMA_EVENT);
}

static int mr_beyond(void)
{
	return mr_reg(&node, SIZE_MAX, FI_SEND, 0);
}

static int mr_offset(void)
{
	struct fid_mr *mr;

	return fi_mr_reg(node.domain, &node, 1, FI_SEND, 8, 0, 0, &mr, NULL);
}

static int mr_auth_key(void)
{
	struct iovec iov = { &node, 1 };
	uint8_t key[16] = { 0 };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_SEND,
				   .auth_key_size = 16,
				   .auth_key = key };
	struct fid_mr *mr;

	return fi_mr_regattr(node.domain, &attr, 0, &mr);
}

static int mr_remote_pieces(void)
{
	struct iovec iov[2] = { { &node, 1 }, { &node, 1 } };
	struct fid_mr *mr;

	return fi_mr_regv(node.domain, iov, 2, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL);
}

static int rma(size_t count, size_t len, uint64_t flags, bool read)
{
	struct iovec iov = { &node, 1 };
	struct fi_rma_iov there[2] = { { 0, len, 1 }, { 0, len, 1 } };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = there, .rma_iov_count = count
	};

	return (int)(read ? fi_readmsg(node.ep, &msg, flags) : fi_writemsg(node.ep, &msg, flags));
}

static int rma_pieces(void)
{
	return rma(2, 1, 0, false);
}

static int rma_lengths(void)
{
	return rma(1, 5, 0, true);
}

static int rma_fence(void)
{
	return rma(1, 1, FI_FENCE, false);
}

static int rma_read_data(void)
{
	return rma(1, 1, FI_REMOTE_CQ_DATA, true);
}

/* What is asked of a region that there is. */
static int mr_with(int (*ask)(struct fid_mr *mr))
{
	struct fid_mr *mr;
	int rc;

	conf_ok(fi_mr_reg(node.domain, &node, 1, FI_SEND, 0, 0, 0, &mr, NULL));
	rc = ask(mr);
	conf_ok(fi_close(&mr->fid));
	return rc;
}

static int ask_bind(struct fid_mr *mr)
{
	return fi_mr_bind(mr, &node.ep->fid, 0);
}

static int mr_bind(void)
{
	return mr_with(ask_bind);
}

static int ask_refresh(struct fid_mr *mr)
{
	struct iovec iov = { &node, 1 };

	return fi_mr_refresh(mr, &iov, 1, 0);
}

static int mr_refresh(void)
{
	return mr_with(ask_refresh);
}

static int ask_raw(struct fid_mr *mr)
{
	uint8_t key[64];
	size_t size = sizeof(key);
	uint64_t base;

	return fi_mr_raw_attr(mr, &base, key, &size, 0);
}

static int mr_raw(void)
{
	return mr_with(ask_raw);
}

static int mr_map_raw(void)
{
	uint8_t raw[8] = { 0 };
	uint64_t key;

	return fi_mr_map_raw(node.domain, 0, raw, sizeof(raw), &key, 0);
}

static int mr_unmap(void)
{
	return fi_mr_unmap_key(node.domain, 1);
}

static int mr_pieces(void)
{
	struct iovec iov[64] = { { NULL, 0 } };
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 64, .access = FI_SEND };
	struct fid_mr *mr;

	return fi_mr_regattr(node.domain, &attr, 0, &mr);
}

static int mr_no_iov(void)
{
	struct fi_mr_attr attr = { .iov_count = 1, .access = FI_SEND };
	struct fid_mr *mr;

	return fi_mr_regattr(node.domain, &attr, 0, &mr);
}

static int insert(const void *addr, size_t count, uint64_t flags)
{
	fi_addr_t numbers[2];

	return fi_av_insert(node.av, addr, count, numbers, flags, NULL);
}

static int insert_flags(void)
{
	return insert(node.name, 1, FI_AV_USER_ID);
}

static int insert_errors(void)
{
	return insert(node.name, 1, FI_SYNC_ERR);
}

static int insert_null(void)
{
	return insert(NULL, 2, 0);
}

static int insert_family(void)
{
	struct sockaddr_storage none = { .ss_family = 99 };

	return insert(&none, 1, 0);
}

static int insert_service(void)
{
	fi_addr_t number;

	return fi_av_insertsvc(node.av, "127.0.0.1", "no-such-service", &number, 0, NULL);
}

static int insert_no_service(void)
{
	fi_addr_t number;

	return fi_av_insertsvc(node.av, "127.0.0.1", NULL, &number, 0, NULL);
}

static int insert_many(void)
{
	fi_addr_t numbers[2];

	return fi_av_insertsym(node.av, "127.0.0.1", 1, "65535", 2, numbers, 0, NULL);
}

static int insert_no_ports(void)
{
	return fi_av_insertsym(node.av, "127.0.0.1", SIZE_MAX, "1000", 0, NULL, 0, NULL);
}

static int remove_none(void)
{
	fi_addr_t number = 12345;

	return fi_av_remove(node.av, &number, 1, 0);
}

static int av_open(enum fi_av_type type, const char *name, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .name = name, .flags = flags };
	struct fid_av *av;

	return fi_av_open(node.domain, &attr, &av, NULL);
}

static int av_type(void)
{
	return av_open(99, NULL, 0);
}

static int av_name(void)
{
	return av_open(FI_AV_TABLE, "shared", 0);
}

static int av_flags(void)
{
	return av_open(FI_AV_TABLE, NULL, FI_EVENT);
}

static int cq_open(struct fi_cq_attr attr)
{
	struct fid_cq *cq;

	return fi_cq_open(node.domain, &attr, &cq, NULL);
}

static int cq_wait(void)
{
	return cq_open((struct fi_cq_attr) { .wait_obj = FI_WAIT_MUTEX_COND });
}

static int cq_format(void)
{
	return cq_open((struct fi_cq_attr) { .format = 99 });
}

static int cq_size(void)
{
	return cq_open((struct fi_cq_attr) { .size = SIZE_MAX });
}

static int cq_flags(void)
{
	return cq_open((struct fi_cq_attr) { .flags = FI_TRIGGER });
}

/* Until the kernel lets no more watch the domain. */
static int cq_many(void)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_cq *cqs[300];
	size_t n = 0;
	int rc = 0;

	while (!rc && n < sizeof(cqs) / sizeof(cqs[0]))
		rc = fi_cq_open(node.domain, &attr, &cqs[n++], NULL);
	n -= rc != 0;
	while (n > 0)
		conf_ok(fi_close(&cqs[--n]->fid));
	return rc;
}

static int eq_wait(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fid_eq *eq;

	return fi_eq_open(node.fabric, &attr, &eq, NULL);
}

static int setopt_unknown(void)
{
	size_t value = 1;

	return fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value,
			 sizeof(value));
}

static int setopt_short(void)
{
	return fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, "x", 1);
}

static int bind_late(void)
{
	return fi_ep_bind(node.ep, &node.av->fid, 0);
}

static int bind_flags(void)
{
	return fi_ep_bind(bare, &node.txcq->fid, FI_TRANSMIT | FI_TRIGGER);
}

static int bind_no_side(void)
{
	return fi_ep_bind(bare, &node.txcq->fid, 0);
}

static int bind_stranger(void)
{
	return fi_ep_bind(bare, &node.fabric->fid, 0);
}

static int enable_bare(void)
{
	return fi_enable(bare);
}

static int bind_av(void)
{
	return fi_ep_bind(bare, &node.av->fid, 0);
}

static int bind_tx(void)
{
	return fi_ep_bind(bare, &node.txcq->fid, FI_TRANSMIT);
}

/* At this name: one that another endpoint has, or that of another host. */
static int enable_at(const void *name)
{
	struct fi_info *info = fi_dupinfo(node.info);
	struct fid_ep *ep;
	int rc;

	memcpy(info->src_addr, name, info->src_addrlen);
	conf_ok(fi_endpoint(node.domain, info, &ep, NULL));
	conf_ok(fi_ep_bind(ep, &node.av->fid, 0));
	conf_ok(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT | FI_RECV));
	rc = fi_enable(ep);
	conf_ok(fi_close(&ep->fid));
	fi_freeinfo(info);
	return rc;
}

static int enable_taken(void)
{
	return enable_at(node.name);
}

/* 198.51.100.0/24 and 2001:db8::/32 are for documentation: RFC 5737, RFC 3849. */
static int enable_elsewhere(void)
{
	uint8_t name[sizeof(node.name)];
	bool is_v6 = node.info->addr_format == FI_SOCKADDR_IN6;

	memcpy(name, node.name, sizeof(name));
	if (is_v6)
		inet_pton(AF_INET6, "2001:db8::1", &((struct sockaddr_in6 *)name)->sin6_addr);
	else
		inet_pton(AF_INET, "198.51.100.1", &((struct sockaddr_in *)name)->sin_addr);
	return enable_at(name);
}

static int enable_again(void)
{
	return fi_enable(node.ep);
}

static const struct {
	int (*call)(void);
	int rc;
	const char *why; /* NULL: not a word */
} rows[] = {
	{ mr_access, -FI_ENOSYS, "access" },
	{ mr_remote_pieces, -FI_ENOSYS, "what peers use is one" },
	{ rma_pieces, -FI_EINVAL, "2 pieces at the peer" },
	{ rma_lengths, -FI_EINVAL, "1 bytes here, and 5 at the peer" },
	{ rma_fence, -FI_EOPNOTSUPP, "fi_writemsg: flags" },
	{ rma_read_data, -FI_EOPNOTSUPP, "fi_readmsg: flags" },
	{ mr_flags, -FI_EBADFLAGS, "fi_mr_reg: flags" },
	{ mr_beyond, -FI_EINVAL, "end of the address space" },
	{ mr_pieces, -FI_EINVAL, "64 pieces" },
	{ mr_offset, -FI_EINVAL, "offset 8" },
	{ mr_auth_key, -FI_ENOSYS, "authorization key" },
	{ mr_bind, -FI_ENOSYS, "fi_mr_bind" },
	{ mr_refresh, -FI_ENOSYS, "fi_mr_refresh" },
	{ mr_raw, -FI_ENOSYS, "fi_mr_raw_attr" },
	{ mr_map_raw, -FI_ENOSYS, "fi_mr_map_raw" },
	{ mr_unmap, -FI_ENOSYS, "fi_mr_unmap_key" },
	{ mr_no_iov, -FI_EINVAL, "without an iov" },
	{ insert_flags, -FI_EBADFLAGS, "fi_av_insert: flags" },
	{ insert_errors, -FI_EINVAL, "FI_SYNC_ERR" },
	{ insert_null, -FI_EINVAL, "2 addresses at NULL" },
	{ insert_family, 0, "address 0 of 1" },
	{ insert_service, 0, "service no-such-service: Servname not supported" },
	{ insert_no_service, -FI_EINVAL, "without a service" },
	{ insert_many, -FI_EINVAL, "65535 and 2 ports" },
	{ insert_no_ports, 0, NULL },
	{ remove_none, -FI_EINVAL, "0x3039" },
	{ av_type, -FI_EINVAL, "type 99" },
	{ av_name, -FI_ENOSYS, "name" },
	{ av_flags, -FI_ENOSYS, "fi_av_open: flags" },
	{ cq_wait, -FI_ENOSYS, "fi_cq_open: wait object" },
	{ cq_format, -FI_EINVAL, "format 99" },
	{ cq_size, -FI_EINVAL, "size" },
	{ cq_flags, -FI_EBADFLAGS, "fi_cq_open: flags" },
	{ cq_many, -FI_ENOSPC, "about 100 queues to wait on" },
	{ eq_wait, -FI_ENOSYS, "fi_eq_open: wait object" },
	{ setopt_unknown, -FI_ENOPROTOOPT, "fi_setopt: option" },
	{ setopt_short, -FI_EINVAL, "FI_OPT_MIN_MULTI_RECV" },
	{ bind_late, -FI_EOPBADSTATE, "enabled" },
	{ bind_flags, -FI_EBADFLAGS, "with flags" },
	{ bind_no_side, -FI_EINVAL, "neither FI_TRANSMIT nor FI_RECV" },
	{ bind_stranger, -FI_EINVAL, "class" },
	{ enable_bare, -FI_ENOAV, "no address vector" },
	{ bind_av, 0, NULL },
	{ bind_av, -FI_EINVAL, "second address vector" },
	{ enable_bare, -FI_ENOCQ, "for FI_TRANSMIT" },
	{ bind_tx, 0, NULL },
	{ bind_tx, -FI_EINVAL, "second completion queue" },
	{ enable_bare, -FI_ENOCQ, "for FI_RECV" },
	{ enable_again, -FI_EOPBADSTATE, "second time" },
	{ enable_taken, -FI_EADDRINUSE, ": the port is taken\n" },
	{ enable_elsewhere, -FI_EADDRNOTAVAIL, ": this host has no such address\n" },
};

static void what_is_refused_is_said_once(void **state)
{
	(void)state;
	conf_open(&node, &plain);
	conf_ok(fi_endpoint(node.domain, node.info, &bare, NULL));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text;
		int rc;

		caught_begin();
		rc = rows[i].call();
		text = caught_end();
		if (rc != rows[i].rc || caught_lines(text) != (rows[i].why ? 1 : 0) ||
		    (rows[i].why && !strstr(text, rows[i].why)))
			fail_msg("row %zu: %d, and said: %s", i, rc, text);
		free(text);
	}
	conf_ok(fi_close(&bare->fid));
	conf_close(&node);
}

/* An application that tries again and again does not fill its log. */
static void what_is_refused_again_is_not(void **state)
{
	char *text;

	(void)state;
	conf_open(&node, &plain);
	caught_begin();
	for (int i = 0; i < 100; i++)
		assert_int_equal(mr_reg(&node, 1, FI_SEND, 1ull << 50), -FI_EBADFLAGS);
	text = caught_end();
	assert_int_equal(caught_lines(text), 1);
	free(text);
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused_is_said_once),
		cmocka_unit_test(what_is_refused_again_is_not),
	};

	setenv("FI_LOG_LEVEL", "warn", 1);
	conf_provider();
	return cmocka_run_group_tests_name("ofi_said", tests, caught_setup, caught_teardown);
}

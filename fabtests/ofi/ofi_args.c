/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments that are wrong, or at the edge: attributes that fi_getinfo never gave, ports that do
 * not exist, buffers that are too small. Each is refused by the call that gets it, or harmless.
 */
#include "conf/conf.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct conf_options plain = { .caps = FI_SOURCE | FI_DIRECTED_RECV };

/* -- infos ------------------------------------------------------------------------------------ */

static void set_threading(struct fi_info *i)
{
	i->domain_attr->threading = 99;
}

static void set_progress(struct fi_info *i)
{
	i->domain_attr->data_progress = 99;
}

static void set_av_type(struct fi_info *i)
{
	i->domain_attr->av_type = 99;
}

static void set_caps(struct fi_info *i)
{
	i->caps |= FI_ATOMIC;
}

static void set_format(struct fi_info *i)
{
	i->addr_format = 99;
}

static void set_tx_size(struct fi_info *i)
{
	i->tx_attr->size = SIZE_MAX;
}

static void set_rx_size(struct fi_info *i)
{
	i->rx_attr->size = SIZE_MAX;
}

static void set_inject(struct fi_info *i)
{
	i->tx_attr->inject_size = 1 << 20;
}

static void set_tx_iov(struct fi_info *i)
{
	i->tx_attr->iov_limit = 1000;
}

static void set_order(struct fi_info *i)
{
	i->tx_attr->msg_order |= FI_ORDER_RAW;
}

static void set_flags(struct fi_info *i)
{
	i->rx_attr->op_flags = FI_INJECT;
}

static void set_shared_tx(struct fi_info *i)
{
	i->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
}

static void set_shared_rx(struct fi_info *i)
{
	i->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
}

static void set_protocol(struct fi_info *i)
{
	i->ep_attr->protocol = FI_PROTO_GNI;
}

static void set_message(struct fi_info *i)
{
	i->ep_attr->max_msg_size = SIZE_MAX;
}

struct change {
	const char *what;
	void (*make)(struct fi_info *info);
};

static const struct change changes[] = {
	{ "threading", set_threading },  { "data_progress", set_progress },
	{ "av_type", set_av_type },      { "caps", set_caps },
	{ "addr_format", set_format },   { "tx size", set_tx_size },
	{ "rx size", set_rx_size },      { "inject_size", set_inject },
	{ "tx iov_limit", set_tx_iov },  { "msg_order", set_order },
	{ "rx op_flags", set_flags },    { "tx_ctx_cnt", set_shared_tx },
	{ "rx_ctx_cnt", set_shared_rx }, { "protocol", set_protocol },
	{ "max_msg_size", set_message },
};

/* Who opens something with more than is offered must not get less without a word. */
static void infos_ask_for_no_more_than_there_is(void **state)
{
	struct fid_domain *domain;
	struct conf_node node;
	struct fid_ep *ep;

	(void)state;
	conf_open(&node, &plain);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct fi_info *info = fi_dupinfo(node.info);
		int rc;

		changes[i].make(info);
		if (fi_domain(node.fabric, info, &domain, NULL) != -FI_EINVAL)
			fail_msg("%s: a domain was opened", changes[i].what);
		rc = fi_endpoint(node.domain, info, &ep, NULL);
		if (rc != -FI_EINVAL && rc != -FI_EOPNOTSUPP)
			fail_msg("%s: an endpoint was opened", changes[i].what);
		fi_freeinfo(info);
	}
	conf_close(&node);
}

/* -- services --------------------------------------------------------------------------------- */

static void ports_end_at_65535(void **state)
{
	static const char *const beyond[] = { "65536", "65537", "99999", "4294967297",
					      "99999999999999999999" };
	struct fi_info *hints = conf_hints(), *info;
	struct conf_node node;
	fi_addr_t number;

	(void)state;
	conf_open(&node, &plain);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		assert_int_equal(fi_getinfo(CONF_VERSION, conf_node_name(), beyond[i], FI_SOURCE,
					    hints, &info),
				 -FI_ENODATA);
		assert_int_equal(
			fi_av_insertsvc(node.av, conf_node_name(), beyond[i], &number, 0, NULL), 0);
		assert_int_equal(number, FI_ADDR_NOTAVAIL);
		assert_int_equal(fi_av_insertsym(node.av, conf_node_name(), 1, beyond[i], 1,
						 &number, 0, NULL),
				 -FI_EINVAL);
	}
	conf_ok(fi_getinfo(CONF_VERSION, conf_node_name(), "65535", FI_SOURCE, hints, &info));
	fi_freeinfo(info);
	assert_int_equal(fi_av_insertsvc(node.av, conf_node_name(), "65535", &number, 0, NULL), 1);
	fi_freeinfo(hints);
	conf_close(&node);
}

/* -- what an error says ----------------------------------------------------------------------- */

static void cancel_one(struct conf_pair *pair)
{
	struct fi_context2 context;
	struct fi_cq_tagged_entry entry;

	conf_ok(fi_trecv(pair->a.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, &context));
	conf_ok(fi_cancel(&pair->a.ep->fid, &context));
	assert_int_equal(fi_cq_read(pair->a.rxcq, &entry, 1), -FI_EAVAIL);
}

/* Where nobody listens, and nobody can: a socket has the port. */
static int nobody(struct conf_pair *pair)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(&name, pair->a.name, sizeof(name));
	name.sin_port = 0;
	conf_ok(bind(fd, (struct sockaddr *)&name, len));
	conf_ok(getsockname(fd, (struct sockaddr *)&name, &len));
	assert_int_equal(fi_av_insert(pair->a.av, &name, 1, &pair->to_b, 0, NULL), 1);
	return fd;
}

/* A send to nobody: its error has a text of its own. */
static void lose_one(struct conf_pair *pair)
{
	struct fi_context2 context;
	uint64_t deadline = conf_deadline();
	struct fi_cq_tagged_entry entry;

	CONF_RETRY(pair, fi_tsend(pair->a.ep, "x", 1, NULL, pair->to_b, 1, &context));
	while (fi_cq_read(pair->a.txcq, &entry, 1) == -FI_EAGAIN)
		conf_not_late(deadline);
}

/* fi_cq(3), err_data_size: in the application's buffer, of any size, and then printed from there.
 */
static void texts_fit_any_buffer(void **state)
{
	static const size_t rooms[] = { 1, 2, 7, 40, 200 };
	void (*const fail[])(struct conf_pair * pair) = { cancel_one, lose_one };
	struct conf_pair pair;
	int fd;

	(void)state;
	conf_pair_open(&pair, &plain);
	fd = nobody(&pair);
	for (size_t i = 0; i < 2 * sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct fi_cq_err_entry error = { .err_data_size = rooms[i / 2] };
		char *room = malloc(error.err_data_size + 1), text[200];
		const char *why;

		memset(room, 0x7e, error.err_data_size + 1);
		error.err_data = room;
		fail[i % 2](&pair);
		assert_int_equal(fi_cq_readerr(pair.a.txcq, &error, 0), 1);
		assert_ptr_equal(error.err_data, room);
		assert_in_range(error.err_data_size, 0, rooms[i / 2]);
		assert_int_equal(room[rooms[i / 2]], 0x7e);
		/* without a text nothing is written, and what was there is none */
		if (error.err_data_size)
			assert_int_equal(room[error.err_data_size - 1], 0);
		else
			assert_int_equal(room[0], 0x7e);
		why = fi_cq_strerror(pair.a.txcq, error.prov_errno, error.err_data, text,
				     sizeof(text));
		assert_in_range(strlen(why), 1, sizeof(text) - 1);
		assert_null(strchr(why, 0x7e));
		assert_string_equal(why, text);
		free(room);
	}
	conf_pair_close(&pair);
	close(fd);
}

/* As applications do that know only the fields of old: an entry on the stack that nobody cleared.
 */
static void what_nobody_set_is_left_alone(void **state)
{
	struct fi_cq_err_entry error;
	struct conf_pair pair;
	char text[200];

	(void)state;
	memset(&error, 0x7e, sizeof(error));
	conf_pair_open(&pair, &plain);
	cancel_one(&pair);
	assert_int_equal(fi_cq_readerr(pair.a.txcq, &error, 0), 1);
	assert_int_equal(error.err_data_size, 0);
	fi_cq_strerror(pair.a.txcq, error.prov_errno, error.err_data, text, sizeof(text));
	assert_in_range(strlen(text), 1, sizeof(text) - 1);
	conf_pair_close(&pair);
}

/* -- limits ----------------------------------------------------------------------------------- */

static void a_domain_has_so_many_endpoints(void **state)
{
	struct rlimit files;
	struct conf_node node;
	struct fid_ep **eps;
	size_t most, n;
	int rc = 0;

	(void)state;
	conf_ok(getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max; /* each of them listens */
	conf_ok(setrlimit(RLIMIT_NOFILE, &files));
	conf_open(&node, &plain);
	most = node.info->domain_attr->ep_cnt;
	eps = calloc(most, sizeof(*eps));
	for (n = 0; !rc && n < most; n++) {
		conf_ok(fi_endpoint(node.domain, node.info, &eps[n], NULL));
		conf_ok(fi_ep_bind(eps[n], &node.av->fid, 0));
		conf_ok(fi_ep_bind(eps[n], &node.txcq->fid, FI_TRANSMIT | FI_RECV));
		rc = fi_enable(eps[n]);
	}
	/* node's own is one of them */
	assert_int_equal(n, most);
	assert_int_equal(rc, -FI_ENOSPC);
	while (n--)
		conf_ok(fi_close(&eps[n]->fid));
	free(eps);
	conf_close(&node);
}

/* -- event queues ----------------------------------------------------------------------------- */

static void event_queues_know_their_attributes(void **state)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD, .flags = FI_WRITE };
	enum fi_wait_obj kind = FI_WAIT_NONE;
	struct conf_node node;
	struct fid_eq *eq;

	(void)state;
	conf_open(&node, &plain);
	conf_ok(fi_eq_open(node.fabric, &attr, &eq, NULL));
	conf_ok(fi_control(&eq->fid, FI_GETWAITOBJ, &kind));
	assert_int_equal(kind, FI_WAIT_FD);
	conf_ok(fi_close(&eq->fid));
	conf_ok(fi_eq_open(node.fabric, NULL, &eq, NULL));
	conf_ok(fi_control(&eq->fid, FI_GETWAITOBJ, &kind));
	assert_int_equal(kind, FI_WAIT_NONE);
	conf_ok(fi_close(&eq->fid));
	attr.flags = 1ull << 60;
	assert_int_equal(fi_eq_open(node.fabric, &attr, &eq, NULL), -FI_EBADFLAGS);
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(infos_ask_for_no_more_than_there_is),
		cmocka_unit_test(ports_end_at_65535),
		cmocka_unit_test(texts_fit_any_buffer),
		cmocka_unit_test(what_nobody_set_is_left_alone),
		cmocka_unit_test(a_domain_has_so_many_endpoints),
		cmocka_unit_test(event_queues_know_their_attributes),
	};

	conf_provider();
	return conf_run_tests("args", tests);
}

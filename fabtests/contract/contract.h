/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable specification of dev/dev.h: one list of tests that every device must pass. A
 * target says how to open two devices that can reach each other and how to let time go on; each
 * test program runs the list on one or more targets.
 *
 * A test gets a struct contract: two sides (0 opens, 1 listens), each with its device. What it
 * opens through the helpers is closed for it, also when it fails. Events and completions are
 * collected while it waits, and taken in order; what a test leaves untaken is its own business, but
 * contract_quiet fails when something comes that nobody waits for.
 */
#ifndef RVCM_FABTESTS_CONTRACT_H
#define RVCM_FABTESTS_CONTRACT_H

#include "unit/unit.h"

#include <stdbool.h>

#include "dev/dev.h"

#define CONTRACT_S  1000000000ull
#define CONTRACT_MS 1000000ull

#define CONTRACT_AT_ONCE 1ull /* see contract_link_conf */

struct contract;

/*
 * What dev.h promises and a NIC's hardware (or kernel) may not keep; beside enum rvcm_dev_cap in
 * what a test needs.
 */
#define CONTRACT_WAITS  (1u << 28) /* a message that finds no receive waits for one */
#define CONTRACT_COUNTS (1u << 29) /* ... as long as the receiver says */
#define CONTRACT_TELLS  (1u << 30) /* each side of a connection that failed is told why */
#define CONTRACT_RIGHTS (1u << 31) /* a READ needs the right to read */

struct contract_target {
	const char *name;
	/* Open both devices; 0 or a negative errno. ctx is the target's for this test. */
	int (*open)(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx);
	/* After both devices are closed. */
	void (*close)(void *ctx);
	/* Let a little time pass. False: nothing will ever happen any more. */
	bool (*turn)(struct contract *c);
	/* Let so much time pass that whatever is under way arrives. */
	void (*settle)(struct contract *c);
	uint64_t (*now_ns)(struct contract *c);
	bool real;                               /* threads and fds work */
	uint32_t lacks;                          /* of the above */
	const void *arg;                         /* the target's */
	const struct contract_target *decorates; /* contract_fault's */
};

/* What a test needs of the link's capabilities. */
struct contract_test {
	const char *name;
	void (*fn)(struct contract *c);
	uint32_t caps; /* needed */
	uint32_t lack; /* must be missing */
	bool real;     /* on real devices only */
};

#define CONTRACT_TEST(fn)            \
	{                            \
#fn, fn, 0, 0, false \
	}
#define CONTRACT_TEST_CAPS(fn, caps)    \
	{                               \
#fn, fn, caps, 0, false \
	}
#define CONTRACT_TEST_LACK(fn, caps)    \
	{                               \
#fn, fn, 0, caps, false \
	}
#define CONTRACT_TEST_REAL(fn)      \
	{                           \
#fn, fn, 0, 0, true \
	}

struct contract_list {
	const struct contract_test *tests;
	size_t n;
};

extern const struct contract_list contract_life_tests, contract_cm_tests, contract_end_tests,
	contract_send_tests, contract_head_tests, contract_queue_tests, contract_posted_tests,
	contract_rdma_tests, contract_access_tests, contract_atomic_tests, contract_wake_tests,
	contract_many_tests, contract_threads_tests;

/* Run all lists on all targets as one group; returns what main returns. */
int contract_main(const char *group, const struct contract_target *targets, size_t n);
/* As main, with lists of the caller's. */
int contract_run_lists(const char *group, const struct contract_target *targets, size_t n,
		       const struct contract_list *const *lists, size_t n_lists);

/* -- inside a test --------------------------------------------------------------------------- */

struct contract_event {
	struct rvcm_dev_event ev;
	uint8_t data[512]; /* its private data */
	bool taken;
};

struct contract_side {
	struct rvcm_dev *dev; /* NULL once closed */
	const struct rvcm_dev_ops *ops;
	struct contract_event *events;
	size_t n_events;
	struct rvcm_dev_wc *wcs; /* of all CQs of the side */
	size_t n_wcs;
	size_t n_taken; /* wcs that were taken */
};

enum contract_kind {
	CONTRACT_QP,
	CONTRACT_LISTENER,
	CONTRACT_CQ,
	CONTRACT_POOL,
	CONTRACT_SRQ,
	CONTRACT_MR,
	CONTRACT_MEMORY,
};

struct contract_object {
	enum contract_kind kind;
	uint8_t side;
	bool attached;
	bool held; /* CQ: not polled by contract_pump */
	void *object;
};

struct contract {
	const struct contract_target *target;
	const struct contract_test *test;
	void *ctx; /* the target's */
	struct contract_side side[2];
	struct contract_object *objects;
	size_t n_objects;
	uint64_t deadline_ns;
};

/* The array with room for one more than n elements. */
void *contract_grown(void *array, size_t n, size_t size);

/* Wait until the condition holds; fails the test when that takes too long. */
#define CONTRACT_WAIT(c, cond)                                            \
	do {                                                              \
		contract_wait_begin(c);                                   \
		while (!(cond))                                           \
			contract_wait_turn(c, #cond, __FILE__, __LINE__); \
	} while (0)

void contract_wait_begin(struct contract *c);
void contract_wait_turn(struct contract *c, const char *what, const char *file, int line);

/* Poll everything once. Returns how much there was. */
size_t contract_pump(struct contract *c);

/* Let everything arrive, then fail if there is an untaken event or completion. */
void contract_quiet(struct contract *c);

/* Does the target keep this promise? */
bool contract_keeps(const struct contract *c, uint32_t promise);

/* Let everything arrive. */
void contract_settle(struct contract *c);

/* Wait for the next event of a QP (or listener) with this ctx; it must be of that type.
   ADDR_RESOLVED, ROUTE_RESOLVED and TIMEWAIT_EXIT are passed over unless asked for. */
const struct contract_event *contract_event(struct contract *c, int side, const void *ctx,
					    enum rvcm_dev_event_type type);
/* The next event with this ctx, of any type but the two. */
const struct contract_event *contract_any_event(struct contract *c, int side, const void *ctx);
/*
 * DISCONNECTED must be next, with this status; OK stands for any error. Where the target does not
 * keep the promise the status may be another.
 */
void contract_failed(struct contract *c, int side, const void *ctx, enum rvcm_status status,
		     uint32_t promise);
/* How many such events there were so far, taken or not. */
size_t contract_count(const struct contract *c, int side, const void *ctx,
		      enum rvcm_dev_event_type type);

/* Wait for the next completion of a side. Valid until the next call of any helper that waits. */
struct rvcm_dev_wc contract_wc(struct contract *c, int side);
/* It must be this one, and OK. */
struct rvcm_dev_wc contract_wc_ok(struct contract *c, int side, uint64_t wr_id,
				  enum rvcm_dev_op op);

/*
 * The send queue after a failure, n WRs numbered from 0: some OK, then (at least one, if
 * need_error) errors, every WR once and in order.
 */
void contract_check_flushed(struct contract *c, int side, uint32_t n, bool need_error);

/* Opening; each fails the test when it fails. */
struct rvcm_dev_cq *contract_cq(struct contract *c, int side, uint32_t depth);
struct rvcm_dev_pool *contract_pool(struct contract *c, int side, size_t bytes, uint32_t count);
struct rvcm_dev_pool *contract_pool_open(struct contract *c, int side,
					 const struct rvcm_dev_pool_attr *attr);
struct rvcm_dev_srq *contract_srq(struct contract *c, int side, uint32_t depth);
struct rvcm_dev_mr *contract_mr(struct contract *c, int side, void *addr, size_t length,
				uint32_t access);
struct rvcm_dev_qp *contract_qp(struct contract *c, int side, const struct rvcm_dev_qp_attr *attr);
/* Listens at the device's address, any port; *addr says where. */
struct rvcm_dev_listener *contract_listen(struct contract *c, int side, void *ctx,
					  struct rvcm_addr *addr);
void contract_attach(struct contract *c, struct rvcm_dev_qp *qp);
void contract_detach(struct contract *c, struct rvcm_dev_qp *qp);
void contract_close(struct contract *c, void *object);
/* Close a side's objects and its device, as if its process ended in order. */
void contract_side_close(struct contract *c, int side);
/* Do not poll this CQ any more (or again). */
void contract_hold(struct contract *c, struct rvcm_dev_cq *cq, bool hold);

/* -- links ------------------------------------------------------------------------------------ */

enum contract_receive {
	CONTRACT_POOLED,
	CONTRACT_POSTED,
	CONTRACT_SHARED,
};

/* Zero means the default in brackets. */
struct contract_link_conf {
	enum contract_receive receive;
	size_t message_bytes;    /* pool [8192] */
	uint32_t count;          /* pool, per side [64] */
	size_t head_bytes;       /* of long messages that pools show [0] */
	uint32_t sq_depth;       /* [64] */
	uint32_t rq_depth;       /* [64] */
	uint64_t rnr_timeout_ns; /* [60 s]; CONTRACT_AT_ONCE stands for 0 */
};

struct contract_link {
	struct rvcm_dev_cq *cq[2];
	struct rvcm_dev_pool *pool[2];
	struct rvcm_dev_srq *srq[2];
	struct rvcm_dev_qp *qp[2];
	struct rvcm_dev_qp_attr attr[2];
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	char ctx[2]; /* their addresses are the QPs' ctx */
	char listener_ctx;
	void *listener_id; /* the listener's ctx, for links that share it */
};

/* CQs, receive side, QPs and the listener, but no connection. */
void contract_link_open(struct contract *c, struct contract_link *link,
			const struct contract_link_conf *conf);
/* Connect qp[0] to the listener and accept with qp[1]; both ESTABLISHED, not attached. */
void contract_link_connect(struct contract *c, struct contract_link *link);
/* All of it, attached. conf may be NULL. */
void contract_link_up(struct contract *c, struct contract_link *link,
		      const struct contract_link_conf *conf);

/* -- data ------------------------------------------------------------------------------------- */

/* Memory of a side, registered, with its own pattern. */
struct contract_buf {
	uint8_t *data;
	size_t bytes;
	struct rvcm_dev_mr *mr;
};

void contract_buf(struct contract *c, int side, struct contract_buf *buf, size_t bytes,
		  uint32_t access);
/* Bytes that depend on the seed and the position. */
void contract_fill(void *data, size_t bytes, uint32_t seed);
/* Fails the test unless data is what fill put there. */
void contract_check(const void *data, size_t bytes, uint32_t seed);

/* A signalled operation on the other side's memory, from offset on. */
struct rvcm_dev_wr contract_remote(enum rvcm_dev_op op, const struct contract_buf *target,
				   size_t offset, uint64_t wr_id);
/* The next completion is of a message, which is given back to the link's pool. */
void contract_take(struct contract *c, struct contract_link *link, int side);

/* Post bytes of buf from offset on; returns post's answer. */
int contract_post(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
		  size_t offset, size_t bytes, struct rvcm_dev_wr wr);
/*
 * Post n messages like wr, numbered from 0, each all of buf, where the other side has receives for
 * some only, which it does not replace. The connection may end at the first that finds none, and
 * on a slow host that is before the last is posted. Returns how many were posted.
 */
uint32_t contract_flood(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
			struct rvcm_dev_wr wr, uint32_t receives, uint32_t n);
/* A signalled SEND; must succeed. */
void contract_send(struct contract *c, struct rvcm_dev_qp *qp, const struct contract_buf *buf,
		   size_t offset, size_t bytes, uint64_t wr_id);
/* Post a receive to the QP, or to the SRQ if srq is set; returns the answer. */
int contract_recv(struct contract *c, struct rvcm_dev_qp *qp, struct rvcm_dev_srq *srq,
		  const struct contract_buf *buf, size_t offset, size_t bytes, uint64_t wr_id);
void contract_release(struct contract *c, int side, struct rvcm_dev_pool *pool, void *rx);

#endif

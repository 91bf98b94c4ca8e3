/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device interface: verbs in spirit, ours in type. A device is a table of operations; verbs,
 * soft and shm implement it, fault decorates it, the tests' sim replaces it. fabtests/contract is
 * its executable specification.
 *
 * Objects embed the structs below as their first member; a device allocates and frees its own.
 *
 * Threads. Two callers exist for each device, and each is serialised by whoever owns the device:
 *   control   open, close, listen, qp_open, connect, accept, reject, disconnect, cm_poll, qp_close
 *   data      mr_reg, mr_dereg, pools, srqs, cqs, attach, detach, post, flush, recv, poll, arm
 * Between qp_open and attach, and after detach, a QP belongs to control alone; from attach to
 * detach its data operations belong to data, and control may only call disconnect on it. So the
 * data path needs no lock, and a CM event can be answered while the data side computes. A device
 * that needs more than that locks inside. (Before attach, post_recv is control's.)
 *
 * Nothing here blocks. Every function returns 0 (or a count) or a negative errno.
 */
#ifndef RVCM_DEV_DEV_H
#define RVCM_DEV_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct rvcm_dev;
struct rvcm_dev_listener;
struct rvcm_dev_req;

/* What a link can do. A link's capabilities are the intersection of both sides'. */
enum rvcm_dev_cap {
	RVCM_DEV_CAP_SRQ = 1u << 0,      /* shared receive queues in posted mode */
	RVCM_DEV_CAP_ATOMIC = 1u << 1,   /* 64-bit fetch-add and compare-swap; see rvcm_dev_wr */
	RVCM_DEV_CAP_PLACED = 1u << 2,   /* completion = placed at the peer (IB, RoCE); unset =
					    handed to the stream (iWARP, soft) */
	RVCM_DEV_CAP_LOSSY = 1u << 3,    /* connections may be lost (shm's are not) */
	RVCM_DEV_CAP_READ = 1u << 4,     /* RDMA read */
	RVCM_DEV_CAP_IMM32 = 1u << 5,    /* immediates of 4 bytes, with SEND and WRITE */
	RVCM_DEV_CAP_IMM64 = 1u << 6,    /* immediates of 8 bytes */
	RVCM_DEV_CAP_DMABUF = 1u << 7,   /* registers a dmabuf fd */
	RVCM_DEV_CAP_HEAD = 1u << 8,     /* shows the head of a long message: RECV_HEAD, rx_place */
	RVCM_DEV_CAP_FOREROOM = 1u << 9, /* RECV of pools: see below. Not together with HEAD */
};

/* So many bytes before the data of a pool's RECV may be written until its release. */
#define RVCM_DEV_FOREROOM 32u

/* What a device speaks; those of one wire reach each other, whatever they are made of. */
enum rvcm_dev_wire {
	RVCM_DEV_WIRE_OTHER,
	RVCM_DEV_WIRE_IB,    /* InfiniBand's transport, on InfiniBand or as RoCE v2 */
	RVCM_DEV_WIRE_IWARP, /* on TCP: it occupies the TCP ports that it listens on */
};

enum rvcm_dev_link_state {
	RVCM_DEV_LINK_UNKNOWN,
	RVCM_DEV_LINK_DOWN,
	RVCM_DEV_LINK_UP,
};

/* The adapter behind a device, for people. Empty or zero = not known. */
struct rvcm_dev_nic {
	char device[32]; /* "mlx5_0" */
	char driver[32]; /* the kernel's module: "mlx5_core" */
	char firmware[64];
	uint32_t vendor_id; /* IEEE OUI, or PCI vendor */
	uint32_t part_id;
	uint32_t version;
	bool on_pci;
	uint16_t pci_domain;
	uint8_t pci_bus;
	uint8_t pci_device;
	uint8_t pci_function;
	uint8_t port;          /* of the adapter, from 1 */
	char link_type[16];    /* "InfiniBand", "Ethernet" */
	char link_address[64]; /* GID, or LID on InfiniBand */
	enum rvcm_dev_link_state link_state;
};

/* Limits of a device. Queue sizes asked above them are clamped by the device, never refused. */
struct rvcm_dev_attr {
	char name[64];               /* as users know it: "mlx5_0", "soft-lo" */
	struct rvcm_addr addr;       /* where it listens and connects from; port 0 */
	uint32_t caps;               /* enum rvcm_dev_cap */
	uint32_t private_data_bytes; /* that every CM message can carry: 56 on IB and RoCE */
	uint32_t sge_max;
	uint32_t inline_bytes_max;
	uint32_t sq_depth_max;
	uint32_t rq_depth_max;
	uint32_t cq_depth_max;
	uint32_t qp_max;
	bool mr_free; /* registering costs nothing and cannot go stale: nothing is pinned */
	uint32_t mr_max;
	uint64_t message_bytes_max; /* longest SEND, WRITE or READ; longer ones are cut by conn */
	size_t pool_message_bytes;  /* longest SEND that a pool should be made for: each receive
				       costs so much locked memory; 0 = as long as one likes */
	bool pool_waits;    /* what finds a pool empty waits in the stream: no receive is used up by
			       what has arrived and was not polled */
	bool pushes;        /* a long message is better written by its sender than read by its
			       receiver: reads cost more, or few may be under way */
	bool shares;        /* pushes, and the CPU that posts moves the bytes: both ends at once
			       move them faster than either, a part each */
	uint8_t lead_bytes; /* of the stream, before a SEND's first byte; 0 = there is no stream */
	uint32_t mtu_bytes;
	uint64_t link_bits_per_s; /* 0 = unknown */
	int numa_node;            /* -1 = unknown */
	enum rvcm_dev_wire wire;
	struct rvcm_dev_nic nic;
};

enum rvcm_dev_mem_kind {
	RVCM_DEV_MEM_HOST,
	RVCM_DEV_MEM_DMABUF,
};

enum rvcm_dev_access {
	RVCM_DEV_ACCESS_LOCAL_WRITE = 1u << 0,
	RVCM_DEV_ACCESS_REMOTE_READ = 1u << 1,
	RVCM_DEV_ACCESS_REMOTE_WRITE = 1u << 2,
	RVCM_DEV_ACCESS_REMOTE_ATOMIC = 1u << 3,
};

struct rvcm_dev_mr_attr {
	void *addr;
	size_t length; /* bytes; 0 is allowed and never matches an access of 1 byte or more */
	uint32_t access;
	enum rvcm_dev_mem_kind kind;
	int dmabuf_fd; /* kind DMABUF only */
};

/* Registered memory of one device. Remote sides address it by virtual address and rkey. */
struct rvcm_dev_mr {
	struct rvcm_dev *dev;
	void *addr;
	size_t length;
	uint32_t access;
	uint32_t lkey;
	uint32_t rkey;
};

/* Local memory of a work request. mr may be NULL with RVCM_DEV_WR_INLINE. */
struct rvcm_dev_sge {
	void *addr;
	size_t length;
	struct rvcm_dev_mr *mr;
};

enum rvcm_dev_op {
	RVCM_DEV_OP_SEND,       /* wr, wc */
	RVCM_DEV_OP_WRITE,      /* wr, wc */
	RVCM_DEV_OP_READ,       /* wr, wc */
	RVCM_DEV_OP_FETCH_ADD,  /* wr, wc */
	RVCM_DEV_OP_CMP_SWAP,   /* wr, wc */
	RVCM_DEV_OP_RECV,       /* wc: a SEND arrived */
	RVCM_DEV_OP_RECV_WRITE, /* wc: a WRITE with immediate arrived; it consumed a receive */
	RVCM_DEV_OP_RECV_HEAD,  /* wc: a long SEND begins to arrive; see rx_place */
};

enum rvcm_dev_wr_flag {
	RVCM_DEV_WR_SIGNALED = 1u << 0,  /* yields a wc; unset = only on error */
	RVCM_DEV_WR_SOLICITED = 1u << 1, /* wakes a peer that armed for solicited events only */
	RVCM_DEV_WR_INLINE = 1u << 2,    /* the memory may be reused as soon as post returns */
	RVCM_DEV_WR_FENCE = 1u << 3,     /* starts after earlier READs and atomics are done */
	RVCM_DEV_WR_IMM = 1u << 4,       /* SEND or WRITE carries imm */
	RVCM_DEV_WR_MORE = 1u << 5,      /* more posts or a flush follow at once: may be delayed */
};

/*
 * Atomics: the pieces are 8 bytes in all and get what was there before; raddr is a multiple of 8,
 * else REMOTE_INVALID; the word is a number in the target's byte order. An atomic is atomic against
 * those of every QP of the target's device. Against other devices and the target's own CPUs it is
 * atomic on soft (CPU instructions do it), and on a NIC only if the NIC says so: who needs that
 * asks the device. Like a READ it takes part of the link's depth and is ordered by a fence only.
 */
struct rvcm_dev_wr {
	uint64_t wr_id;
	enum rvcm_dev_op op;
	uint32_t flags;
	uint32_t n_sge;
	const struct rvcm_dev_sge *sge; /* the array may be reused when post returns */
	uint64_t imm;                   /* host order; the low 32 bits on a 4-byte link */
	uint64_t raddr;                 /* remote virtual address */
	uint32_t rkey;
	uint64_t compare; /* CMP_SWAP; FETCH_ADD: the addend */
	uint64_t swap;
};

struct rvcm_dev_recv {
	uint64_t wr_id;
	uint32_t n_sge;
	const struct rvcm_dev_sge *sge;
};

enum rvcm_dev_wc_flag {
	RVCM_DEV_WC_IMM = 1u << 0,       /* imm is valid */
	RVCM_DEV_WC_SOLICITED = 1u << 1, /* where the device tells: verbs has no word for it */
	RVCM_DEV_WC_PLACED = 1u << 2,    /* RECV: data has the head only, the rest is where rx_place
					    said */
};

/*
 * A completion. Completions of one QP's send queue come in posting order, and one that is reported
 * vouches for the unsignalled ones before it. status other than OK: only wr_id, qp_ctx, op, status
 * and vendor_err are valid.
 */
struct rvcm_dev_wc {
	uint64_t wr_id; /* of the wr, or of the posted receive; 0 in pool mode */
	void *qp_ctx;
	enum rvcm_dev_op op;
	uint32_t flags;
	enum rvcm_status status;
	uint32_t vendor_err; /* the device's own code, 0 = none; soft: 0x10000 + a TERMINATE's */
	size_t length;       /* bytes received or read; RECV_HEAD: bytes of the message at data */
	uint64_t imm;
	const void *data; /* pool mode: the message, until rx_release(rx); RECV_WRITE: NULL */
	void *rx;         /* pool mode, RECV, RECV_WRITE and RECV_HEAD: what to release */
};

struct rvcm_dev_cq {
	struct rvcm_dev *dev;
};

/*
 * A receive pool (pool mode): the device owns the buffers; see rx_release. Each RECV, RECV_WRITE
 * and RECV_HEAD takes one message of it from its arrival, polled or not, until its release, or
 * until its QP is closed if it was not polled. While all are taken the QPs that use it find no
 * receive.
 */
struct rvcm_dev_pool {
	struct rvcm_dev *dev;
};

/* A shared receive queue (posted mode). */
struct rvcm_dev_srq {
	struct rvcm_dev *dev;
};

#define RVCM_DEV_PLACE_MAX 4u /* pieces of rx_place */

struct rvcm_dev_pool_attr {
	size_t message_bytes_max; /* longest SEND that will be received; a longer one is an error */
	uint32_t count;           /* messages that may be held at once, over all QPs */
	/*
	 * Where the device can (CAP_HEAD) and finds it worth it, it shows so many bytes of a SEND,
	 * or more, before the rest has come: RECV_HEAD, and the RECV is the QP's next. 0 = never.
	 */
	size_t head_bytes;
};

struct rvcm_dev_qp_attr {
	struct rvcm_dev_cq *cq;     /* completions of both queues */
	struct rvcm_dev_pool *pool; /* pool mode, or NULL */
	struct rvcm_dev_srq *srq;   /* posted mode with a shared queue, or NULL */
	uint32_t sq_depth;
	uint32_t rq_depth;
	uint32_t sge_max;
	/*
	 * How long the oldest SEND or WRITE with immediate that came may find no receive (posted
	 * mode: none is posted; pool mode: the pool is exhausted) before this QP fails, with
	 * NO_RECEIVE here and RNR_EXCEEDED at the sender: 0 = not at all, UINT64_MAX = it waits for
	 * ever. The receiver's value counts. (An IB NIC lets the sender count: give both sides the
	 * same. One for iWARP may end the connection at once, whatever the value.)
	 */
	uint64_t rnr_timeout_ns;
	bool routed; /* connect from whichever of the host's addresses leads to the peer, where the
			device can choose; else from its own */
	void *ctx;   /* given back in events and completions */
};

/* The states of IBTA volume 1, 10.3.1 that can be seen from here. */
enum rvcm_dev_qp_state {
	RVCM_DEV_QP_INIT,
	RVCM_DEV_QP_CONNECTING,
	RVCM_DEV_QP_RTS,
	RVCM_DEV_QP_CLOSING, /* disconnect called, or the peer's seen; no new work */
	RVCM_DEV_QP_ERROR,
};

/* A queue pair and its CM identity (an rdma_cm_id with a QP): one RC connection. */
struct rvcm_dev_qp {
	struct rvcm_dev *dev;
	void *ctx;
	uint32_t caps; /* of this connection, after ESTABLISHED: both sides' intersection */
	int err;       /* data: it was lost with this errno (positive), 0 = none is known */
};

/* rdma_cm's events (rdma_cma.h), then ibv's asynchronous ones. */
enum rvcm_dev_event_type {
	RVCM_DEV_EVENT_ADDR_RESOLVED,
	RVCM_DEV_EVENT_ADDR_ERROR,
	RVCM_DEV_EVENT_ROUTE_RESOLVED,
	RVCM_DEV_EVENT_ROUTE_ERROR,
	RVCM_DEV_EVENT_CONNECT_REQUEST,
	RVCM_DEV_EVENT_CONNECT_RESPONSE,
	RVCM_DEV_EVENT_CONNECT_ERROR,
	RVCM_DEV_EVENT_UNREACHABLE,
	RVCM_DEV_EVENT_REJECTED,
	RVCM_DEV_EVENT_ESTABLISHED,
	RVCM_DEV_EVENT_DISCONNECTED,
	RVCM_DEV_EVENT_DEVICE_REMOVAL,
	RVCM_DEV_EVENT_ADDR_CHANGE,
	RVCM_DEV_EVENT_TIMEWAIT_EXIT,
	RVCM_DEV_EVENT_PORT_DOWN,
	RVCM_DEV_EVENT_PORT_UP,
	RVCM_DEV_EVENT_QP_FATAL,
	RVCM_DEV_EVENT_CQ_ERROR,
	RVCM_DEV_EVENT_SRQ_LIMIT,
};

enum rvcm_dev_reject {
	RVCM_DEV_REJECT_CONSUMER,      /* the peer called reject: private data is its */
	RVCM_DEV_REJECT_NOT_LISTENING, /* nobody at that port */
	RVCM_DEV_REJECT_STALE,         /* the peer's CM knows an older connection: retry */
	RVCM_DEV_REJECT_PROTOCOL,      /* the peer is no RNIC, or of another version */
};

/*
 * One CM or asynchronous event. ctx is the QP's, or the listener's for CONNECT_REQUEST, or NULL for
 * device events. After CONNECT_ERROR, UNREACHABLE, REJECTED, ADDR_ERROR, ROUTE_ERROR or
 * DISCONNECTED a QP carries nothing any more and waits for qp_close; DISCONNECTED comes once for
 * each QP that was ESTABLISHED, whichever side ended it. private_data lives until the next cm_poll.
 * Only TIMEWAIT_EXIT may follow those, on IB and RoCE, until qp_close; DEVICE_REMOVAL, ADDR_CHANGE,
 * PORT_DOWN and PORT_UP tell of the device (ADDR_CHANGE of a QP as well), whose QPs end, if they
 * do, by events of their own.
 *
 * What OK in DISCONNECTED tells: the connection ended between two messages, and no side found
 * fault. Not that the peer meant it: where a connection is a TCP stream the kernel ends that of a
 * process that was killed just so, if it happens to stand there. Who has to know says goodbye
 * above, in a message.
 */
struct rvcm_dev_event {
	enum rvcm_dev_event_type type;
	void *ctx;
	enum rvcm_status status; /* why, for errors and DISCONNECTED (OK = orderly) */
	int err;                 /* positive errno from below, 0 = none */
	uint32_t vendor_err;     /* DISCONNECTED: as in rvcm_dev_wc */
	const char *words;       /* for people: what was heard from below; NULL = nothing, static */
	int number;              /* that came with it */
	enum rvcm_dev_reject reject;
	struct rvcm_dev_req *req; /* CONNECT_REQUEST: to be accepted or rejected, once */
	struct rvcm_addr peer;    /* CONNECT_REQUEST: where it comes from */
	const void *private_data; /* CONNECT_REQUEST, ESTABLISHED (opener), REJECTED */
	size_t private_bytes;
};

struct rvcm_dev_ops {
	/*
	 * Life. close: every object of the device has been closed before; requests not answered
	 * yet are dropped.
	 */
	void (*close)(struct rvcm_dev *dev);

	/*
	 * Connection management (control). cm_fd is readable when cm_poll may have something to do
	 * (its own time-outs included); cm_poll fills *ev and returns 1, or returns 0 when there
	 * is nothing.
	 *
	 * listen: addr->port 0 lets the system choose; *addr is set to what was bound. At least
	 * backlog requests may wait to be seen. Errors: EADDRINUSE, EADDRNOTAVAIL.
	 * connect: asynchronous; address, route and the connection follow as events. Private data
	 * beyond private_data_bytes is -EINVAL at once.
	 * accept: consumes req even on failure; ESTABLISHED follows on qp, opened for it before.
	 * reject: consumes req.
	 * disconnect: what was posted before is sent, then the connection ends in order;
	 * DISCONNECTED follows. On a QP that is not established yet it abandons the attempt, and
	 * no event follows.
	 * qp_close: in any state; no event or completion of the QP is reported afterwards.
	 */
	int (*cm_fd)(struct rvcm_dev *dev);
	int (*cm_poll)(struct rvcm_dev *dev, struct rvcm_dev_event *ev);
	int (*listen)(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
		      struct rvcm_dev_listener **listener);
	void (*listener_close)(struct rvcm_dev_listener *listener);
	int (*qp_open)(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **qp);
	void (*qp_close)(struct rvcm_dev_qp *qp);
	enum rvcm_dev_qp_state (*qp_state)(const struct rvcm_dev_qp *qp);
	int (*connect)(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
		       const void *private_data, size_t private_bytes);
	int (*accept)(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp, const void *private_data,
		      size_t private_bytes);
	int (*reject)(struct rvcm_dev_req *req, const void *private_data, size_t private_bytes);
	int (*disconnect)(struct rvcm_dev_qp *qp);

	/*
	 * Memory (data if the device is mr_free; if not, any thread at any time). -EFAULT: it is
	 * not there, or not for this access; where nothing is pinned that is seen of its ends.
	 */
	int (*mr_reg)(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		      struct rvcm_dev_mr **mr);
	void (*mr_dereg)(struct rvcm_dev_mr *mr);

	/*
	 * Completions (data). poll returns how many of n it filled; it is also what moves the
	 * bytes of a device that has no hardware to do so. To sleep: arm, poll once more, then
	 * wait until fd is readable. Arming for solicited events only may wake for others.
	 */
	int (*cq_open)(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq);
	void (*cq_close)(struct rvcm_dev_cq *cq);
	int (*cq_poll)(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
	int (*cq_arm)(struct rvcm_dev_cq *cq, bool solicited_only);
	int (*cq_fd)(struct rvcm_dev_cq *cq);

	/*
	 * Receive side (data). srq_open is -EOPNOTSUPP where the device has no SRQ. Before
	 * pool_close every message that was polled has been released, and the QPs that use the pool
	 * are closed; their CQs may be closed before it or after.
	 * pool_grow: from now on receives for so many messages, at most attr's count, are there;
	 * less does nothing. From both sides. -ENOMEM: memory, or what may be locked of it. A pool
	 * begins with none that one may count on.
	 */
	int (*pool_open)(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			 struct rvcm_dev_pool **pool);
	void (*pool_close)(struct rvcm_dev_pool *pool);
	int (*pool_grow)(struct rvcm_dev_pool *pool, uint32_t count);
	void (*rx_release)(struct rvcm_dev_pool *pool, void *rx);
	/*
	 * Between a RECV_HEAD of the QP and the next cq_poll (CAP_HEAD only): from byte offset on,
	 * which is among those shown, the message goes into n pieces (at most PLACE_MAX; mr is not
	 * looked at), and its RECV will have PLACED. What they have no room for is counted, and
	 * dropped. The pieces are the device's until that RECV or detach. Without this call the
	 * message comes as any other.
	 */
	void (*rx_place)(struct rvcm_dev_qp *qp, size_t offset, const struct rvcm_dev_sge *sge,
			 uint32_t n);
	int (*srq_open)(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
			struct rvcm_dev_srq **srq);
	void (*srq_close)(struct rvcm_dev_srq *srq);
	int (*srq_post)(struct rvcm_dev_srq *srq, const struct rvcm_dev_recv *recv);
	int (*post_recv)(struct rvcm_dev_qp *qp, const struct rvcm_dev_recv *recv);

	/*
	 * Send side (data). attach: from now on this QP's completions come out of its cq. detach:
	 * what was posted is flushed into the cq (FLUSHED, or why the QP failed) before it
	 * returns, so that polling until 0 reaps all of it; nothing is placed into local memory
	 * any more, and the connection, if it still stood, is broken off. post: -EAGAIN when the
	 * queue is full, -ENOTCONN unless in RTS.
	 */
	int (*attach)(struct rvcm_dev_qp *qp);
	void (*detach)(struct rvcm_dev_qp *qp);
	int (*post)(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
	int (*flush)(struct rvcm_dev_qp *qp);
};

struct rvcm_dev {
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_attr attr;
};

/*
 * A kind of device. enumerate: fills at most n attrs with what could be opened, best first, and
 * returns how many there are; why one is not offered is logged at warn level.
 */
struct rvcm_dev_class {
	const char *name;
	int (*enumerate)(struct rvcm_dev_attr *attrs, int n);
	int (*open)(const struct rvcm_dev_attr *attr, struct rvcm_dev **dev);
};

/*
 * For enumerate: name attr, which has its address, and put it among the have that were offered
 * before, of which attrs holds the n best. It is called as its stem, "-v6" behind it if the address
 * is one, and from the second of a kind on a number: "rxe0", "rxe0-v6", "rxe0.1". IPv4 comes before
 * IPv6, link-local addresses behind those, loopback last.
 */
void rvcm_dev_offer(struct rvcm_dev_attr *attr, const char *stem, struct rvcm_dev_attr *attrs,
		    int have, int n);

#endif

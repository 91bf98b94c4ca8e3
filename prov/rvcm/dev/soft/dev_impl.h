/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soft device, its buffers and the control side: sockets, MPA set-up, events, listening and
 * dialling. Its other half, the data side, is in soft_impl.h, where the ownership of both is told.
 */
#ifndef RVCM_DEV_SOFT_DEV_IMPL_H
#define RVCM_DEV_SOFT_DEV_IMPL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alarm.h"
#include "base/complain.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/ring.h"
#include "dev/dev.h"
#include "dev/soft/fsm.h"
#include "dev/soft/key.h"
#include "dev/soft/mpa.h"
#include "dev/soft/soft.h"
#include "dev/soft/wire.h"

#define RVCM_SOFT_BUF_BYTES    (68u * 1024u) /* holds any FPDU */
#define RVCM_SOFT_BUFS_IDLE    64u           /* that a device keeps */
#define RVCM_SOFT_SGE_MAX      8u
#define RVCM_SOFT_INLINE_BYTES 256u
#define RVCM_SOFT_IOV_MAX      64u /* pieces of one sendmsg */
#define RVCM_SOFT_BATCH_MAX    64u /* frames that WR_MORE may hold back */

#define RVCM_SOFT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RVCM_SOFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct rvcm_soft_dev;
struct rvcm_soft_qp;

/* -- buffers (buf.c): data ------------------------------------------------------------------ */

struct rvcm_soft_buf {
	struct rvcm_soft_buf *next;  /* in a free list, or behind this one in a park */
	struct rvcm_soft_pool *pool; /* of a reassembled message: where it goes back; else NULL */
	uint32_t refs;               /* its reader, and each message that points into it */
	uint32_t fill;               /* park, open: bytes used */
	alignas(64) uint8_t data[];
};

struct rvcm_soft_bufs {
	struct rvcm_soft_buf *free;
	struct rvcm_soft_buf *open; /* no QP's, with held messages, and room to read behind them */
	uint32_t n_free;
};

/* One reference; NULL = no memory. */
struct rvcm_soft_buf *rvcm_soft_buf_get(struct rvcm_soft_bufs *bufs);
void rvcm_soft_buf_put(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf);
/* The reader has taken all of buf and gives it up, while messages in it are held. */
void rvcm_soft_buf_leave(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf, uint32_t fill);
/* A message in buf was released. */
void rvcm_soft_buf_released(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf);
/* The open buffer, to be read into from fill on; NULL = there is none. */
struct rvcm_soft_buf *rvcm_soft_buf_reopen(struct rvcm_soft_bufs *bufs);
/* Give back what is not in use; at the end that is all. */
void rvcm_soft_buf_trim(struct rvcm_soft_bufs *bufs);

/* -- the device (soft.c) -------------------------------------------------------------------- */

/* What an entry of the control side's epoll set points at. */
enum rvcm_soft_src_kind {
	RVCM_SOFT_SRC_TIMER,
	RVCM_SOFT_SRC_MAIL,
	RVCM_SOFT_SRC_LISTENER,
	RVCM_SOFT_SRC_REQ,
	RVCM_SOFT_SRC_QP,
	RVCM_SOFT_SRC_LINGER,
};

struct rvcm_soft_src {
	enum rvcm_soft_src_kind kind;
	int fd; /* -1 = none */
};

/* What is said at warn level now and then, however often it happens (complain.c). */
enum rvcm_soft_complaint {
	RVCM_SOFT_COMPLAINT_STRANGER, /* who connects and is no peer */
	RVCM_SOFT_COMPLAINT_CROWD,    /* too many of them */
	RVCM_SOFT_COMPLAINT_ACCEPT,   /* limits: of descriptors, ports, memory */
	RVCM_SOFT_COMPLAINT_CONNECT,
	RVCM_SOFT_COMPLAINT_SILENCE, /* a host takes many connections along */
	RVCM_SOFT_COMPLAINTS,
};

/* Memory that was there when it was registered; in units of 4 KiB. */
struct rvcm_soft_seen {
	uintptr_t first, last; /* first 0: none */
	bool written;          /* it could be */
};

#define RVCM_SOFT_SEEN 256u

struct rvcm_soft_dev {
	struct rvcm_dev base;
	struct rvcm_soft_tunables tun;

	/* control */
	int cm_epfd;
	struct rvcm_soft_src timer_src;
	struct rvcm_soft_src mail_src; /* an eventfd: events is not empty */
	struct rvcm_alarm alarm;
	struct rvcm_list standing; /* connections: struct rvcm_soft_qp */
	struct rvcm_timer silence;
	struct rvcm_list listeners;
	struct rvcm_list reqs; /* being read, reported or waiting for an answer */
	uint32_t n_reqs;
	struct rvcm_throttle complaints[RVCM_SOFT_COMPLAINTS];
	struct rvcm_list lingering; /* sockets that are over here: linger.c */
	uint32_t n_lingering;
	uint8_t private_data[RVCM_SOFT_MPA_PRIVATE_BYTES_MAX]; /* of the event last reported */

	/* both */
	struct rvcm_lock lock;
	struct rvcm_list events; /* struct rvcm_soft_note */

	/* data */
	struct rvcm_soft_bufs bufs;
	struct rvcm_soft_key_table keys;
	uint64_t key_drops; /* keys dropped so far: what was checked before must be checked again */
	struct rvcm_soft_seen seen[RVCM_SOFT_SEEN]; /* by first */
};

static inline struct rvcm_soft_dev *rvcm_soft_dev_of(struct rvcm_dev *dev)
{
	return (struct rvcm_soft_dev *)dev;
}

/* -- interface addresses (ifaddr.c) --------------------------------------------------------- */

int rvcm_soft_ifaddr_enumerate(struct rvcm_dev_attr *attrs, int n);

/* -- sockets (sock.c): any side ------------------------------------------------------------- */

socklen_t rvcm_soft_sock_from_addr(const struct rvcm_addr *addr, struct sockaddr_storage *ss);
void rvcm_soft_sock_to_addr(const struct sockaddr_storage *ss, struct rvcm_addr *addr);
/* A TCP socket of that family: non-blocking, close-on-exec. Or a negative errno. */
int rvcm_soft_sock_open(const struct rvcm_addr *addr);
/* Packets carry that DSCP; on a listening socket, those of what it accepts too. */
void rvcm_soft_sock_mark(int fd, uint8_t dscp);
/* No delay, the DSCP, probes of an idle connection; best effort. */
void rvcm_soft_sock_tune(int fd, const struct rvcm_soft_tunables *tun);
/* Ends the connection at once, with a reset; the descriptor stays. */
void rvcm_soft_sock_break(int fd);
/*
 * Throws away what the peer sent: Linux resets a connection that is closed with bytes unread, and
 * forgets what it had to send. False: nothing more can come.
 */
bool rvcm_soft_sock_drain(int fd);
/* Closes it in order or, if it may still stand, with a reset. -1 is allowed. */
void rvcm_soft_sock_close(int fd, bool reset);
int rvcm_soft_sock_name(int fd, struct rvcm_addr *addr);
int rvcm_soft_sock_error(int fd); /* SO_ERROR, positive */

/* -- MPA set-up (shake.c): control ---------------------------------------------------------- */

/* An MPA frame as it comes in. */
struct rvcm_soft_shake {
	size_t have;
	uint8_t buf[RVCM_SOFT_MPA_FRAME_BYTES_MAX];
};

/* What both sides agreed on. */
struct rvcm_soft_link {
	bool crc;
	bool own_kind; /* the peer is one of us: RFC 7306 */
	uint8_t rtr;   /* enum rvcm_soft_mpa_rtr: how the opener begins; 0 = as it likes */
	uint16_t ird;  /* READs we serve at a time */
	uint16_t ord;  /* READs we may have open */
	uint16_t term; /* not 0: it is to be terminated so at once */
};

/*
 * Reads no byte behind the frame. 1: it is whole, *frame and *marked (the peer's mark of our kind)
 * are set; 0: more is due; negative: rvcm_soft_mpa_decode's, -ECONNRESET or another of recv's.
 */
int rvcm_soft_shake_read(struct rvcm_soft_shake *shake, int fd, enum rvcm_soft_mpa_kind kind,
			 struct rvcm_soft_mpa_frame *frame, bool *marked);
/* The whole frame or an error: a fresh socket has room for it. */
int rvcm_soft_shake_write(int fd, const struct rvcm_soft_mpa_frame *frame, bool mark);
/*
 * Set-up is a request and a reply, and both sides know from the two what was agreed (RFC 6581
 * section 9). request: ours, to open. answer: ours to a peer's request; its reject and private data
 * are the caller's. agree: ours and the peer's.
 */
void rvcm_soft_shake_request(const struct rvcm_soft_tunables *tun,
			     struct rvcm_soft_mpa_frame *frame);
void rvcm_soft_shake_answer(const struct rvcm_soft_tunables *tun,
			    const struct rvcm_soft_mpa_frame *peer, bool marked,
			    struct rvcm_soft_mpa_frame *frame);
void rvcm_soft_shake_agree(const struct rvcm_soft_mpa_frame *own,
			   const struct rvcm_soft_mpa_frame *peer, bool marked,
			   const struct rvcm_soft_tunables *tun, struct rvcm_soft_link *link);
/* The opener's first frame: the ready-to-receive message, or a TERMINATE. 0 or a negative errno. */
int rvcm_soft_shake_begin(int fd, const struct rvcm_soft_link *link);

/* -- events (event.c) ----------------------------------------------------------------------- */

/* Something to report, in dev->events while there is. */
struct rvcm_soft_note {
	struct rvcm_list node;
	bool is_req;
};

/* Of a QP, reported in this order. */
enum rvcm_soft_note_bit {
	RVCM_SOFT_NOTE_ADDR = 1u << 0,
	RVCM_SOFT_NOTE_ROUTE = 1u << 1,
	RVCM_SOFT_NOTE_ESTABLISHED = 1u << 2,
	RVCM_SOFT_NOTE_FAILED = 1u << 3,
	RVCM_SOFT_NOTE_ENDED = 1u << 4,
};

/* Under dev->lock. */
void rvcm_soft_event_post_locked(struct rvcm_soft_dev *dev, struct rvcm_soft_note *note);
void rvcm_soft_event_note(struct rvcm_soft_qp *qp, uint32_t bit);
void rvcm_soft_event_forget(struct rvcm_soft_dev *dev, struct rvcm_soft_note *note);
/* Control: 1 and *ev, or 0. */
int rvcm_soft_event_next(struct rvcm_soft_dev *dev, struct rvcm_dev_event *ev);

/* -- sockets that are over (linger.c): control --------------------------------------------- */

/* Takes fd; -1 is allowed. What was sent on it still arrives, if the peer ends its side in time. */
void rvcm_soft_linger_close(struct rvcm_soft_dev *dev, int fd);
void rvcm_soft_linger_ready(struct rvcm_soft_src *src);
void rvcm_soft_linger_fini(struct rvcm_soft_dev *dev);

/* -- peers that do not answer (silence.c): control ------------------------------------------- */

void rvcm_soft_silence_init(struct rvcm_soft_dev *dev);
void rvcm_soft_silence_fini(struct rvcm_soft_dev *dev);
/* Its connection stands; until it is closed, it is looked at. */
void rvcm_soft_silence_watch(struct rvcm_soft_qp *qp);

/* -- the ready-to-receive message, again (rtr.c) -------------------------------------------- */

/* Control: our first frame was such a message. */
void rvcm_soft_rtr_watch(struct rvcm_soft_qp *qp);
/* Data, asked by control: if nothing came from the peer yet, say it again. */
void rvcm_soft_rtr_repeat(struct rvcm_soft_qp *qp);

/* -- connection management (cm.c, listen.c, dial.c): control -------------------------------- */

struct rvcm_dev_listener {
	struct rvcm_soft_src src;
	struct rvcm_soft_dev *dev;
	struct rvcm_list node;   /* dev->listeners */
	struct rvcm_timer retry; /* accept again after descriptors ran out */
	struct rvcm_addr addr;
	void *ctx;
};

struct rvcm_dev_req {
	struct rvcm_soft_src src;
	struct rvcm_soft_dev *dev;
	struct rvcm_dev_listener *listener; /* until reported */
	struct rvcm_list node;              /* dev->reqs */
	struct rvcm_soft_note note;
	struct rvcm_timer timer; /* while the request is being read */
	struct rvcm_addr peer;
	struct rvcm_soft_shake shake;
	struct rvcm_soft_mpa_frame frame; /* valid once whole; its private data is in shake */
	bool marked;
};

int rvcm_soft_cm_fd(struct rvcm_dev *dev);
/* As dev.h says; it may return 0 early, and then rvcm_soft_cm_fd is readable still. */
int rvcm_soft_cm_poll(struct rvcm_dev *dev, struct rvcm_dev_event *ev);
int rvcm_soft_cm_watch(struct rvcm_soft_dev *dev, struct rvcm_soft_src *src, uint32_t events);
void rvcm_soft_cm_rewatch(struct rvcm_soft_dev *dev, struct rvcm_soft_src *src, uint32_t events);
/*
 * Before fd is closed, too, whoever watched it: a socket that a fork has given a child lives on
 * when we close ours, and would be reported for ever. -1, and one that nobody watches, are allowed.
 */
void rvcm_soft_cm_unwatch(struct rvcm_soft_dev *dev, int fd);

int rvcm_soft_listen_open(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
			  struct rvcm_dev_listener **listener);
void rvcm_soft_listen_close(struct rvcm_dev_listener *listener);
void rvcm_soft_listen_ready(struct rvcm_dev_listener *listener);
void rvcm_soft_listen_req_ready(struct rvcm_dev_req *req);
void rvcm_soft_listen_req_free(struct rvcm_dev_req *req);
int rvcm_soft_listen_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp,
			    const void *private_data, size_t private_bytes);
int rvcm_soft_listen_reject(struct rvcm_dev_req *req, const void *private_data,
			    size_t private_bytes);

int rvcm_soft_dial_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
			   const void *private_data, size_t private_bytes);
/* The socket of a QP that control watches has something to say. */
void rvcm_soft_dial_ready(struct rvcm_soft_qp *qp);
/* A connection is there; its socket is qp's. */
void rvcm_soft_dial_established(struct rvcm_soft_qp *qp, const struct rvcm_soft_link *link);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: the door of conn/.
 *
 * A carrier is a process's end of its connections: devices, listeners, the job key. A path joins
 * an endpoint of this carrier (a slot) with one of another, named by address and port; the caller
 * sees messages and RDMA reads, in order, exactly once. What it runs on, conns and their links, is
 * conn/'s business.
 *
 * Pure: time, randomness and I/O come from below (struct rvcm_carrier_env, struct rvcm_dev), what
 * happens goes up through the sink. So N carriers run in one process in the simulator.
 *
 * Threads. Two sides, each serialised by the caller and never blocking the other:
 *   data     everything but what is named control. Takes no lock on the path of a message.
 *   control  rvcm_carrier_control*: connection management, timers, destruction. It locks inside.
 * They talk through mailboxes; env->wake_* tells the other side's sleeper that there is mail.
 *
 * Life of a path as the caller sees it:
 *   rvcm_path_get, or sink->incoming   the path exists; nothing is connected yet
 *   rvcm_path_reserve = NULL           connecting starts, or there is no credit: wait for ready
 *   sink->ready                        up, or credit is there again
 *   sink->down                         whatever was pending is lost: fail it; a later reserve
 *                                      starts anew ("a first failed connect does not poison").
 *                                      A link that is lost and comes again in time is no such end
 *   sink->deaf                         no device is left: nothing comes any more, on any path
 */
#ifndef RVCM_CONN_CONN_H
#define RVCM_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"
#include "dev/dev.h"

#define RVCM_CONN_DEVS_MAX      8u
#define RVCM_CONN_LINKS_MAX     16u
#define RVCM_CONN_RAILS_MAX     7u
#define RVCM_CONN_SLOTS_MAX     1024u
#define RVCM_CONN_KEY_BYTES     16u
#define RVCM_CONN_MESSAGE_FLOOR 512u /* bytes of a message that every peer takes */

struct rvcm_carrier;

/* Where the next message goes while nothing stands in its way: way.h. */
struct rvcm_way {
	uint8_t *next;
	size_t end; /* bytes: of messages that are shorter; 0 = of none */
};

/* Of all paths that have none. */
extern const struct rvcm_way rvcm_way_none;

/* The public head of a path; the rest is conn/'s. Read-only, but for what is the caller's. */
struct rvcm_path {
	void *user;                 /* the caller's */
	const struct rvcm_way *way; /* rvcm_path_reserve's */
	struct rvcm_addr peer;      /* its name */
	uint16_t slot;              /* our endpoint */
	uint16_t dev;               /* index of link 0's device, valid while up */
	bool up;
	bool tails;        /* its device takes them (two pieces): rvcm_path_commit_tail, while up */
	size_t write_max;  /* bytes of a message's written tail, while up; 0 = its device would
			      rather be read from */
	size_t write_most; /* bytes of any written tail, since its connection; 0 = it has none */
	bool shares;       /* it writes, and would be read from as well: a part each, while up */
	uint8_t lead_bytes; /* before a message in the device's stream, while up; 0 = it has none */
	uint16_t read_dev;  /* where what is read, or written, into is to be registered: since its
			       message */
	bool exposed; /* the caller's, cleared with down: the peer may read our memory, or write */
};

/* Why a path went down. */
struct rvcm_conn_cause {
	enum rvcm_status status;
	int err;             /* positive errno from below, 0 = none */
	uint32_t vendor_err; /* the device's own code: rvcm_dev_wc, 0 = none */
	char text[192];      /* one line for people: who, what, why */
};

/* Where a message goes from byte offset on: to pieces that are written to until placed or down. */
struct rvcm_conn_place {
	size_t offset;
	uint32_t n;
	struct rvcm_dev_sge pieces[RVCM_DEV_PLACE_MAX]; /* without mr */
};

/* What a path tells its owner. Called on the data side, from rvcm_carrier_progress only. */
struct rvcm_conn_sink {
	/* A peer that was not known connected to our slot. Set path->user. */
	void (*incoming)(void *ctx, struct rvcm_path *path);
	/* Messages can be sent: up, or credit after rvcm_path_reserve gave NULL. */
	void (*ready)(void *ctx, struct rvcm_path *path);
	/* A message taken from the link; data is valid during the call only. */
	void (*recv)(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes);
	/*
	 * attr.head_bytes is not 0: the path's next message is long and has begun to arrive; head
	 * is what there is of it, so many bytes at least. True: *place is set, and that message
	 * comes with placed, which is this path's next call: data has the head of bytes only.
	 */
	bool (*place)(void *ctx, struct rvcm_path *path, const uint8_t *head, size_t head_bytes,
		      struct rvcm_conn_place *place);
	void (*placed)(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes);
	/* The memory of a tail (rvcm_path_commit_tail) is its owner's again. */
	void (*sent)(void *ctx, struct rvcm_path *path, void *cookie);
	/* After rvcm_path_confirm: the peer's endpoint has taken every message before mark. */
	void (*confirmed)(void *ctx, struct rvcm_path *path, uint32_t mark);
	/* A rvcm_path_read ended; exactly one per read, always before down. */
	void (*read_done)(void *ctx, struct rvcm_path *path, void *cookie, enum rvcm_status status);
	void (*down)(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause);
	/*
	 * The carrier's last device was removed. Once; what had arrived has been told before. Paths
	 * that are up go down as after any loss, before or behind it; no other will ever be up.
	 */
	void (*deaf)(void *ctx, const struct rvcm_conn_cause *cause);
	/*
	 * A device cannot lock the memory that a message or a link needs: deregister what is not in
	 * use, and leave some for a while. True: it is worth trying again. From rvcm_path_reserve
	 * too. NULL: there is never any.
	 */
	bool (*shed)(void *ctx);
};

/* Time and wake-ups. now_ns may be called from both sides; wake_* from the other side. */
struct rvcm_carrier_env {
	uint64_t (*now_ns)(void *ctx);
	void (*random)(void *ctx, void *buf, size_t bytes); /* unpredictable bytes */
	void (*wake_data)(void *ctx);
	void (*wake_control)(void *ctx);
	void *ctx;
};

struct rvcm_carrier_attr {
	struct rvcm_dev *const *devs; /* in order of preference; they outlive the carrier */
	uint32_t n_devs;
	uint8_t job_key[RVCM_CONN_KEY_BYTES];
	size_t message_bytes_max; /* longest message that we take: MESSAGE_FLOOR or more */
	size_t head_bytes;   /* of a message that sink->place wants to see; 0 = it is not asked */
	uint32_t window_max; /* messages in flight to one peer */
	uint32_t pool_count; /* messages that a device's pool holds; 0 = 4096 */
	uint32_t n_links;    /* of a conn, at most 16; 0 = 1. They carry parts of long reads: */
	size_t stripe_bytes; /* so long, where there are several; 0 = 128 KiB */
	uint32_t max_links;  /* of all conns: beyond that unused ones are closed; 0 = any number */
	/* Addresses of the host by which further links may come, to the device of that index. */
	struct rvcm_addr rails[RVCM_CONN_RAILS_MAX];
	uint32_t n_rails;
	uint16_t rails_dev;
	bool hold; /* rvcm_carrier_progress or _flush is called again after the last message */
	uint64_t connect_timeout_ns; /* for all attempts together */
	uint64_t attempt_timeout_ns; /* for one, then another is made; 0 = 2 s */
	uint64_t hello_timeout_ns;   /* for who connected to prove itself; 0 = connect_timeout_ns */
	uint64_t reconnect_timeout_ns; /* a lost link's, to come again; 0 = what is lost is lost */
	uint64_t linger_ns;            /* how long shutdown waits for peers */
	uint64_t rnr_timeout_ns;
	uint32_t pid; /* of this process; peers tell it to people */
	struct rvcm_carrier_env env;
	const struct rvcm_conn_sink *sink;
	void *sink_ctx;
};

/* Counters of one device; those of all are in rvcm_carrier_stats as well. */
struct rvcm_carrier_dev_stats {
	uint64_t connects;    /* links established that we opened */
	uint64_t accepts;     /* links established that a peer opened */
	uint64_t downs;       /* links lost other than by an orderly close */
	uint64_t tx_messages; /* DATA frames posted */
	uint64_t rx_messages; /* DATA frames accepted */
	uint64_t reads;       /* RDMA reads posted */
	uint64_t read_bytes;
	uint64_t writes; /* RDMA writes posted */
	uint64_t write_bytes;
};

struct rvcm_carrier_stats {
	uint64_t connects;      /* links established that we opened */
	uint64_t accepts;       /* links established that a peer opened */
	uint64_t connect_fails; /* attempts to reach a peer that ended in an error */
	uint64_t crossed;       /* requests answered or received CROSSED */
	uint64_t shared;        /* paths that took a link which was there, asked for or found */
	uint64_t rejects;       /* requests refused for key, version, name or state */
	uint64_t unproven;      /* links of peers that ended before they had proved themselves */
	uint64_t downs;         /* conns lost other than by an orderly close */
	uint64_t tx_messages;   /* DATA frames posted */
	uint64_t rx_messages;   /* DATA frames accepted */
	uint64_t rx_strays;     /* DATA frames for endpoints that are gone, dropped */
	uint64_t tx_acks;       /* ACK frames posted */
	uint64_t heartbeats;    /* and HEARTBEATs */
	uint64_t no_credit;     /* times a reserve found no credit */
	uint64_t reads;         /* RDMA reads posted */
	uint64_t read_bytes;
	uint64_t writes; /* RDMA writes posted */
	uint64_t write_bytes;
	uint64_t protocol_errors; /* links ended because the peer broke the format */
	uint64_t recoveries;      /* conns that have got another link, and went on */
	uint64_t recovery_fails;  /* and that have not */
	uint64_t replayed;        /* messages sent again */
	uint64_t parked;          /* conns whose link was closed for want of use: attr.max_links */
	uint64_t unparked;        /* and that have got one again */
	uint64_t spared;       /* messages that the peer had, though its acknowledgement was lost */
	uint64_t loans_copied; /* tails that had left, and were not acknowledged soon */
	uint64_t recovery_us;  /* how long the last recovery took */
	uint64_t recovery_us_max; /* and the longest */
	uint64_t side_links;      /* links beside a conn's first that could be used */
	uint64_t side_losses;     /* and that were lost while the conn was there */
	uint64_t side_pieces;     /* of RDMA reads, posted on them */
	uint64_t pieces_again;    /* posted again, for their link was lost */
};

/* -- carrier ------------------------------------------------------------------------------ */

/*
 * -ENOMEM, -EINVAL (no device, message_bytes_max above the device's or below the floor), or the
 * device's error.
 */
int rvcm_carrier_open(const struct rvcm_carrier_attr *attr, struct rvcm_carrier **carrier);

/*
 * Listen for slot on addr (address of the first device if family is 0; port 0 = any); *addr becomes
 * the endpoint's name. Devices that were removed are left out. From any thread. -EADDRINUSE,
 * -EADDRNOTAVAIL, -EBUSY (slot in use), -ENODEV (no device is left).
 */
int rvcm_carrier_listen(struct rvcm_carrier *carrier, uint16_t slot, struct rvcm_addr *addr);

/*
 * Close slot's listener and its paths; rvcm_carrier_quiet says when that is done. down is not
 * called for them any more. The links stay, for the other slots; with the last slot they go too.
 * Data side.
 */
void rvcm_carrier_unlisten(struct rvcm_carrier *carrier, uint16_t slot);

/*
 * The same, but by deadline_ns it has ended, whatever became of what was sent; where others use the
 * links half of linger_ns from now is always granted.
 */
void rvcm_carrier_unlisten_by(struct rvcm_carrier *carrier, uint16_t slot, uint64_t deadline_ns);

/*
 * Has all that was sent left, and does nobody use the slot's memory any more? linger_ns bounds it,
 * and where the device is through with all that was sent it does not wait for a peer that does not
 * move, unless that may be reading (path.exposed); in the end the links to such peers are broken.
 * Call rvcm_carrier_progress until true. After that the slot's paths are gone.
 */
bool rvcm_carrier_quiet(struct rvcm_carrier *carrier, uint16_t slot);

/* After every slot is unlistened, quiet, and the control side has stopped running. */
void rvcm_carrier_close(struct rvcm_carrier *carrier);

/* Send what waits for company (rvcm_path_commit). Calls no sink. */
void rvcm_carrier_flush(struct rvcm_carrier *carrier);

/* Poll devices and mail once, calling the sink. Returns the number of events, 0 = nothing to do. */
int rvcm_carrier_progress(struct rvcm_carrier *carrier);

/*
 * Before sleeping on the data side: arm every CQ. Returns true if the caller may sleep on
 * rvcm_carrier_data_fds (plus its own wake_data); false if there was something to do: progress.
 */
bool rvcm_carrier_arm(struct rvcm_carrier *carrier);

/* The fds to sleep on, at most n; returns how many there are. */
int rvcm_carrier_data_fds(struct rvcm_carrier *carrier, int *fds, int n);
int rvcm_carrier_control_fds(struct rvcm_carrier *carrier, int *fds, int n);

/*
 * Control: handle CM events, mail and timers that are due. Returns when to call again at the latest
 * (ns, UINT64_MAX = only when an fd is readable or wake_control was called).
 */
uint64_t rvcm_carrier_control(struct rvcm_carrier *carrier);

/* What there has been until now. Data side. */
void rvcm_carrier_stats(struct rvcm_carrier *carrier, struct rvcm_carrier_stats *stats);
/* What attr.devs[dev] is called; NULL: there are not so many. Any side. */
const char *rvcm_carrier_dev_name(const struct rvcm_carrier *carrier, uint32_t dev);
/* The counters of that one. Data side. */
void rvcm_carrier_dev_stats(struct rvcm_carrier *carrier, uint32_t dev,
			    struct rvcm_carrier_dev_stats *stats);

/* -- paths -------------------------------------------------------------------------------- */

/* Find the path from slot to the peer of that name, or make it. -ENOMEM; -EINVAL: own name. */
int rvcm_path_get(struct rvcm_carrier *carrier, uint16_t slot, const struct rvcm_addr *peer,
		  struct rvcm_path **path);

/*
 * Longest message that may be sent now: what both sides take, which the peer tells in its HELLO;
 * MESSAGE_FLOOR before that. It may change whenever reserve gives NULL, or up to the next reserve.
 * While no memory can be locked to send from it is what the device copies, which may be less than
 * MESSAGE_FLOOR.
 */
size_t rvcm_path_message_max(const struct rvcm_path *path);

/*
 * Take a buffer for one message of at most bytes (<= rvcm_path_message_max); NULL: not connected
 * yet (connecting starts), no credit or no memory: sink->ready will be called. The buffer belongs
 * to the caller until commit or cancel; one at a time.
 */
static inline void *rvcm_path_reserve(struct rvcm_path *path, size_t bytes);

/* The same of one that is to have a tail, and whose length is that without it. */
void *rvcm_path_reserve_head(struct rvcm_path *path, size_t bytes);

/* When a message leaves. Order is kept whatever they say: the later takes the earlier along. */
enum rvcm_path_when {
	RVCM_PATH_NOW = 0,
	RVCM_PATH_SOON = 1, /* it may wait for others if it is one of many: see attr.hold */
	RVCM_PATH_MORE = 2, /* another commit, progress or flush follows at once */
};

/*
 * Send the reserved buffer's first bytes. From here it is delivered exactly once and in order, or
 * sink->down is called.
 */
void rvcm_path_commit(struct rvcm_path *path, size_t bytes, enum rvcm_path_when when);
void rvcm_path_cancel(struct rvcm_path *path);

/*
 * The end of a message that is sent from where it lies. Or, written, no part of the message, but
 * what is in the peer's memory when the message is accepted there: an RDMA write in front of it.
 */
struct rvcm_path_tail {
	void *addr;
	size_t bytes;           /* not 0 */
	struct rvcm_dev_mr *mr; /* on the device of path->dev */
	void *cookie;           /* not NULL */
	bool written;           /* at most path->write_most */
	bool awaited;           /* and the owner waits for nothing else: after path_may_await */
	uint32_t rkey;          /* then: where to */
	uint64_t raddr;
};

/*
 * Where path->tails, or the tail is written: as commit at once, but with the tail behind the
 * buffer's bytes; together they are no longer than rvcm_path_message_max, if it is not written.
 * sink->sent, from progress, or sink->down ends the loan of its memory.
 */
void rvcm_path_commit_tail(struct rvcm_path *path, size_t bytes, const struct rvcm_path_tail *tail);

/*
 * May an awaited tail be committed? The peer says at once that it has it, and only few such words
 * may be under way. False: sink->ready will be called.
 */
bool rvcm_path_may_await(struct rvcm_path *path);

/*
 * Behind what has been committed so far. Marks are serial numbers of 32 bits: a is before b if
 * (int32_t)(a - b) < 0. They begin anew with each connection.
 */
uint32_t rvcm_path_mark(const struct rvcm_path *path);

/* Is it known that the peer has accepted every message before mark? */
bool rvcm_path_accepted(const struct rvcm_path *path, uint32_t mark);

/*
 * Have the peer confirm that the endpoint has taken what has been committed so far, and was open.
 * The mark that is returned, or a later one, comes with sink->confirmed, from progress; or
 * sink->down does.
 */
uint32_t rvcm_path_confirm(struct rvcm_path *path);

/* From sink->recv or placed: the message is for an endpoint that closes, and was dropped. */
void rvcm_path_dropped(struct rvcm_path *path);

/* An RDMA read, any length; the path tells which registration to use. */
struct rvcm_path_read {
	void *addr;
	size_t bytes;
	struct rvcm_dev_mr *mr; /* LOCAL_WRITE, on the device of path->read_dev; out: path->dev */
	uint64_t raddr;
	uint32_t rkey;
	void *cookie;
	bool out; /* on the conn that we send on, not the one that we hear on: see path.h */
};

/*
 * Queue an RDMA read; read_done follows (never from inside the call). It may be called from recv,
 * even before up. -ENOTCONN: there is no link, or it is failing and down follows. -ENOMEM.
 */
int rvcm_path_read(struct rvcm_path *path, const struct rvcm_path_read *read);

/*
 * So many bytes are to be moved between the two sides, by either, with RDMA: where that is much a
 * conn that is to have further links gets them now.
 */
void rvcm_path_bulk(struct rvcm_path *path, uint64_t bytes);

/*
 * The peer broke proto's format: end the path with this cause (a protocol error), as soon as the
 * call from the sink has returned.
 */
void rvcm_path_fault(struct rvcm_path *path, enum rvcm_status status, const char *why);

/* -- the common case ---------------------------------------------------------------------- */

/* rvcm_path_reserve, whatever there is. */
void *rvcm_path_reserve_any(struct rvcm_path *path, size_t bytes);

static inline void *rvcm_path_reserve(struct rvcm_path *path, size_t bytes)
{
	const struct rvcm_way *way = path->way;

	if (bytes >= way->end)
		return rvcm_path_reserve_any(path, bytes);
	if (!way->next)
		__builtin_unreachable(); /* it is there while the way is open */
	return way->next;
}

#endif

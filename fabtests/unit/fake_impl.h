/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the fake of conn/: fake_net.c is the device, fake_conn.c the carriers and what moves
 * between their conns, fake_path.c what proto calls.
 */
#ifndef RVCM_FABTESTS_FAKE_IMPL_H
#define RVCM_FABTESTS_FAKE_IMPL_H

#include "unit/fake_conn.h"

struct rvcm_carrier {
	struct rvcm_carrier_attr attr;
	struct fake_net *net;
	struct rvcm_list node;
	struct rvcm_list conns;
	struct rvcm_addr names[RVCM_CONN_SLOTS_MAX]; /* family 0 = not listening */
	bool closing[RVCM_CONN_SLOTS_MAX];
	bool deaf_due;
};

struct fake_conn {
	struct rvcm_path pub;
	struct rvcm_carrier *carrier;
	struct rvcm_list node;
	struct rvcm_list rx;    /* messages to be delivered */
	struct rvcm_list reads; /* in flight */
	struct fake_conn *other;
	uint8_t *reserved;
	size_t reserved_bytes;
	uint32_t under_way; /* sent and not delivered */
	uint32_t sent;
	uint32_t accepted; /* of sent */
	uint32_t mark;     /* of the last confirm */
	bool confirm;
	bool wanting;
	bool blocked;
	bool faulted;
	bool down_due; /* after rx has been delivered */
	bool shown;    /* the head of the first message in rx */
	bool placed;   /* its owner has said where it goes */
	bool dropped;  /* a message, for its endpoint closes: nothing is confirmed any more */
	struct rvcm_conn_place place;
	struct rvcm_list tails; /* not given back */
	struct rvcm_conn_cause cause;
};

struct message {
	struct rvcm_list node;
	bool counted;                /* against the sender's credit */
	struct rvcm_path_tail write; /* is done just before; bytes 0 = none; addr is a copy */
	size_t bytes;
	uint8_t *data; /* exactly bytes, so that a sanitizer sees who reads on */
};

struct tail {
	struct rvcm_list node;
	void *cookie;
	uint32_t number; /* of its message */
	bool written;
};

struct read {
	struct rvcm_list node;
	struct rvcm_path_read op;
};

static inline struct fake_conn *fake_conn_of(struct rvcm_path *path)
{
	return rvcm_container_of(path, struct fake_conn, pub);
}

struct fake_conn *fake_conn_new(struct rvcm_carrier *carrier, uint16_t slot,
				const struct rvcm_addr *peer);
bool fake_conn_has_credit(const struct fake_conn *conn);
/* One more message for to; counted: against its sender's credit. */
void fake_conn_push(struct fake_conn *to, const void *data, size_t bytes, bool counted);
/* The same behind that write. */
void fake_conn_push_written(struct fake_conn *to, const void *data, size_t bytes,
			    const struct rvcm_path_tail *write);

/* What a device makes of a READ. */
enum rvcm_status fake_net_read(struct fake_net *net, const struct rvcm_path_read *op);
/* And of a WRITE. */
enum rvcm_status fake_net_write(struct fake_net *net, const struct rvcm_path_tail *op);
/* Is that memory registered, with one of these rights, or any (0)? */
bool fake_net_inside(const struct rvcm_dev_mr *mr, uint64_t addr, size_t bytes, uint32_t access);

#endif

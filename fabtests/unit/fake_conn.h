/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers and conns for proto's tests, linked in place of conn/: several carriers in one process,
 * joined by a net. A message is delivered when the receiver's carrier progresses, and what was
 * written before it just before it; a read or a write is a memcpy that checks key, bounds and
 * rights. What goes wrong is up to the test.
 *
 * A carrier belongs to the net whose device it was opened with.
 */
#ifndef RVCM_FABTESTS_FAKE_CONN_H
#define RVCM_FABTESTS_FAKE_CONN_H

#include "base/list.h"
#include "conn/conn.h"

#define FAKE_CONN_VENDOR 0x51u /* the device's own code for why a path went down */

struct fake_net {
	struct rvcm_dev dev; /* the only one; for rvcm_carrier_attr.devs */
	struct rvcm_list carriers;
	struct rvcm_list mrs;
	uint16_t next_port;
	uint32_t next_key;

	/* The test's. */
	uint8_t lead_bytes;         /* of every path, from its connection on */
	uint32_t credit;            /* messages under way per conn and direction */
	size_t peers_take;          /* bytes of a message, if not 0; else what the sender does */
	bool hold_connects;         /* attempts stay pending */
	bool hold_messages;         /* nothing is delivered */
	bool hold_reads;            /* reads stay in flight */
	size_t write_max;           /* of every path, from its connection on */
	bool shares;                /* the same */
	size_t write_most;          /* the same, if write_max is 0; 1 MiB */
	bool show_heads;            /* of messages twice as long as what is to be shown */
	bool hold_rests;            /* of messages whose head was shown */
	bool hold_tails;            /* nobody gets lent memory back */
	bool hold_confirms;         /* nobody says what it has accepted */
	enum rvcm_status fail_read; /* how reads end, if not OK */
	int fail_reg;               /* what mr_reg returns, if not 0 */
	uint32_t fail_access;       /* only if this is asked for; 0 = whatever is */
	int fail_post;              /* what rvcm_path_read returns, if not 0 */
	uint32_t posts_before;      /* reads that are posted nevertheless */
	bool finish_reads;          /* reads in flight end well when the link breaks */
	enum rvcm_status cut_read;  /* or with this; 0 = FLUSHED, while the conn still seems up */
	bool fail_reserve;          /* no credit at all */
	void (*tap)(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes);
	void *tap_ctx; /* sees every message that is committed */

	/* For the test to look at. */
	uint32_t n_mrs;       /* registered now */
	bool more;            /* of the last commit */
	uint64_t regs;        /* ever */
	uint64_t read_bytes;  /* begun to be, ever */
	uint64_t faults;      /* rvcm_path_fault calls */
	char fault_text[160]; /* of the last one */
	enum rvcm_status fault_status;
};

/* Of an engine's surroundings: what is random, always the same, and a wake for one who is awake. */
void fake_random(void *ctx, void *buf, size_t bytes);
void fake_wake(void *ctx);

void fake_net_init(struct fake_net *net);
/* Everything has been closed and deregistered. */
void fake_net_fini(struct fake_net *net);

/* The conn from slot to that name, or NULL. */
struct rvcm_path *fake_conn_find(struct rvcm_carrier *carrier, uint16_t slot,
				 const struct rvcm_addr *peer);

/* Deliver bytes to conn's owner as if its peer had sent them, at its next progress. */
void fake_conn_inject(struct rvcm_path *conn, const void *data, size_t bytes);

/* The link breaks: reads in flight are flushed, and both sides hear of it at their next progress.
 */
void fake_conn_break(struct rvcm_path *conn, enum rvcm_status status, const char *text);

/* Its last device is removed, which its owner hears at its next progress; links break apart from
 * it.
 */
void fake_carrier_deafen(struct rvcm_carrier *carrier);

#endif

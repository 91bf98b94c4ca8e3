/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of two processes, one on either side of a wire: the kernel's siw through rdma_cm and verbs
 * on one, our software RNIC on the other, in a network namespace of its own. The two talk to each
 * other through a socket of their own too, so that neither has to guess when the other is ready.
 * Results are TAP on stdout.
 */
#ifndef RVCM_FABTESTS_VM_PEERS_H
#define RVCM_FABTESTS_VM_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How both sides are set up for a run of tests. */
struct peers_conf {
	const char *name;
	bool crc;         /* ours asks for CRCs */
	bool p2p;         /* ours asks for peer-to-peer mode */
	bool siw_crc;     /* siw's mpa_crc_required */
	bool siw_strict;  /* siw's mpa_crc_strict: no CRCs, or no connection */
	int siw_revision; /* siw's mpa_version, for the requests it sends */
	bool siw_p2p;     /* siw's peer_to_peer */
};

/* What one of the two knows. */
struct peers {
	const struct peers_conf *conf;
	bool soft;     /* is this the soft one? */
	bool opener;   /* or the listener */
	uint16_t port; /* where the listener listens */
	int fd;        /* to the other process */
};

/* Who ends by SIGKILL, and must. */
enum peers_death {
	PEERS_BOTH_LIVE,
	PEERS_OPENER_DIES,
	PEERS_LISTENER_DIES,
};

enum peers_only {
	PEERS_SOFT_OPENS = 1u << 0,
	PEERS_SIW_OPENS = 1u << 1,
};

struct actor;
typedef void peers_fn(struct actor *a);

struct peers_test {
	const char *name;
	peers_fn *opener; /* returns = passed; a failure ends the process */
	peers_fn *listener;
	enum peers_death death;
	uint32_t only; /* enum peers_only */
};

/* Addresses of the wire's ends. */
#define PEERS_SIW_ADDR  "10.9.0.1"
#define PEERS_SOFT_ADDR "10.9.0.2"

/* Waits until the other side has come to its sync, too. */
void peers_sync(struct peers *p);
void peers_tell(struct peers *p, const void *data, size_t bytes);
void peers_hear(struct peers *p, void *data, size_t bytes);

/* Where memory lies, for the other side's RDMA. */
struct peers_memory {
	uint64_t addr;
	uint32_t rkey;
	uint32_t pad;
};

/* SIGKILL to oneself. */
void peers_die(void) __attribute__((noreturn));

/* Runs tests under conf, both ways where they can be; filter: those with this in their name only,
 * NULL = all. Returns how many failed. */
int peers_run(const struct peers_conf *conf, const struct peers_test *tests, size_t n,
	      const char *filter);
/* TAP's plan; returns the exit status. */
int peers_done(void);

#endif

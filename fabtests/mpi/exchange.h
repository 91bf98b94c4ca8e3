/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the exchange program share: who we are, the sizes to try, what was counted. */
#ifndef RVCM_FABTESTS_MPI_EXCHANGE_H
#define RVCM_FABTESTS_MPI_EXCHANGE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include "payload.h"

struct exchange {
	int rank;            /* in MPI_COMM_WORLD */
	int ranks;           /* of MPI_COMM_WORLD, at least 2 */
	size_t bytes_max;    /* largest message */
	int threads;         /* MPI_THREAD_MULTIPLE is asked for */
	const char *phase;   /* what runs now, for messages */
	uint64_t checks;     /* messages and results compared */
	uint64_t bytes_sent; /* payload sent by point-to-point calls to other ranks */
	size_t *sizes;       /* ascending, 0 .. bytes_max */
	size_t n_sizes;
};

/* One thing to try: run by every rank of MPI_COMM_WORLD together. */
struct exchange_phase {
	const char *name;
	void (*run)(struct exchange *x);
};

extern const struct exchange_phase exchange_p2p_phases[];    /* ends with a NULL name */
extern const struct exchange_phase exchange_match_phases[];  /* ends with a NULL name */
extern const struct exchange_phase exchange_coll_phases[];   /* ends with a NULL name */
extern const struct exchange_phase exchange_thread_phases[]; /* ends with a NULL name */

/* Count a message of ours: the key of what rank sends to dest; dest's rank is that of
 * MPI_COMM_WORLD. */
struct payload_key exchange_send_key(struct exchange *x, int dest, int tag, size_t size,
				     unsigned int serial);

/* Fill buf and count it as sent: what MPI_Send and its kin are given. */
void exchange_prepare(struct exchange *x, void *buf, size_t size, int dest, int tag,
		      unsigned int serial);

/* The message in buf came from source with this tag and size, and status (unless NULL) says the
 * same. */
void exchange_verify(struct exchange *x, const void *buf, size_t size, int source, int tag,
		     unsigned int serial, const MPI_Status *status);

/* A condition that is not about payload bytes; MPI_Abort when it does not hold. */
void exchange_expect(struct exchange *x, int holds, const char *condition);

#define EXPECT(x, condition) exchange_expect((x), (condition), #condition)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What an InfiniBand port's subnet manager has made of it, by libibumad, for people. */
#ifndef RVCM_DEV_VERBS_UMAD_H
#define RVCM_DEV_VERBS_UMAD_H

#include <stdint.h>

#include <infiniband/umad.h>

#define RVCM_VERBS_UMAD_TEXT_MAX 128

/*
 * "InfiniBand, state Initialize, physical state LinkUp, LID 0, SM LID 0 (no subnet manager has been
 * here), rate 100 Gb/s"; or that it cannot be known.
 */
const char *rvcm_verbs_umad_text(const char *device, uint8_t port,
				 char text[RVCM_VERBS_UMAD_TEXT_MAX]);

/* The same, of a port that was read. */
const char *rvcm_verbs_umad_format(const umad_port_t *port, char text[RVCM_VERBS_UMAD_TEXT_MAX]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What can happen to hosts 1 and 2 of hosts.sh, and to what is between them; and its end. */
#ifndef RVCM_FABTESTS_WIRE_H
#define RVCM_FABTESTS_WIRE_H

/* The wire to host 2. Its routes go when a device goes down, for IPv6 alone. */
void wire_cut(void);
void wire_mend(void);
/* The address of host 2, and with it its routes. */
void wire_lose_address(void);
void wire_regain_address(void);
/* sock_destroy(9) of host 1's connections to host 2: ECONNABORTED there, a reset at the other. */
void wire_destroy(void);
/* The same of host 2's. */
void wire_destroy_there(void);
void wire_nothing(void);

/* A teardown: what a test that failed has left; most of it is not there. */
int wire_restore(void **state);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment says: the tunables of params.def, and what a job launcher gives its
 * processes. The only file that reads the environment. Nothing is cached: each call says what holds
 * now.
 */
#ifndef RVCM_OFI_PARAMS_H
#define RVCM_OFI_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

struct fi_provider;

/* Texts belong to the environment: copy what is kept. */
struct rvcm_params {
#define RVCM_PARAM_TEXT(name, help)                              const char *name;
#define RVCM_PARAM_SIZE(name, default_, least, most, unit, help) size_t name;
#define RVCM_PARAM_CHOICE(name, default_, choices, help)         const char *name;
#include "ofi/params.def"
#undef RVCM_PARAM_CHOICE
#undef RVCM_PARAM_TEXT
#undef RVCM_PARAM_SIZE
};

/* Tell libfabric about them, so that "fi_info -e" shows them. Once, from fi_prov_ini. */
void rvcm_params_define(const struct fi_provider *provider);

/*
 * Say at warn level, a line for each, which variables named FI_RVCM_ are no tunables, and what may
 * have been meant. Once, from fi_prov_ini: a wrong name would be said with every call otherwise.
 */
void rvcm_params_check_names(void);

/*
 * Read them all. -EINVAL if any is malformed; then a line at warn level has named the variable, its
 * value and what is allowed.
 */
int rvcm_params_read(struct rvcm_params *params);

/* Has the user chosen this provider by name with FI_PROVIDER? */
bool rvcm_params_chosen(void);

/* A variable that launchers set for all processes of a job alike; NULL if not set or empty. */
const char *rvcm_params_launcher(const char *name);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A launcher's name for a job is no secret, but differs from job to job: hashed, it keeps jobs
 * apart that meet by mistake. Open MPI's transport key is random and is used as it is.
 */
#include "config.h"

#include "ofi/jobkey.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/le.h"
#include "base/log.h"

#define NAME_MAX_BYTES 512

/* Jobs by name: what says which job this is, and what tells its steps apart. */
static const struct {
	const char *job;
	const char *step;
} launchers[] = {
	{ "PMIX_NAMESPACE", NULL },
	{ "SLURM_JOB_ID", "SLURM_STEP_ID" },
	{ "PBS_JOBID", NULL },
	{ "LSB_JOBID", NULL },
};

/* n hexadecimal digits of text, which may end early. */
static int parse_hex(const char *text, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned int byte;

		if (!isxdigit((unsigned char)text[2 * i]) ||
		    !isxdigit((unsigned char)text[2 * i + 1]) ||
		    sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		bytes[i] = (uint8_t)byte;
	}
	return 0;
}

static int from_digits(const char *text, uint8_t key[RVCM_JOBKEY_BYTES])
{
	if (strlen(text) != 2 * RVCM_JOBKEY_BYTES)
		return -EINVAL;
	return parse_hex(text, key, RVCM_JOBKEY_BYTES);
}

/* 16 digits, a hyphen, 16 digits. */
static int from_open_mpi(const char *text, uint8_t key[RVCM_JOBKEY_BYTES])
{
	if (strlen(text) != 33 || text[16] != '-')
		return -EINVAL;
	if (parse_hex(text, key, RVCM_JOBKEY_BYTES / 2))
		return -EINVAL;
	return parse_hex(text + 17, key + RVCM_JOBKEY_BYTES / 2, RVCM_JOBKEY_BYTES / 2);
}

static void from_name(const char *name, uint8_t key[RVCM_JOBKEY_BYTES])
{
	rvcm_le64_put(key, rvcm_hash_bytes(0x7276636d2d6a6f62u, name, strlen(name)));
	rvcm_le64_put(key + 8, rvcm_hash_bytes(0x7276636d2d6b6579u, name, strlen(name)));
}

static const char *find_launcher(uint8_t key[RVCM_JOBKEY_BYTES])
{
	const char *transport = rvcm_params_launcher("OMPI_MCA_orte_precondition_transports");
	char name[NAME_MAX_BYTES];

	if (transport && from_open_mpi(transport, key) == 0)
		return "OMPI_MCA_orte_precondition_transports";
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *job = rvcm_params_launcher(launchers[i].job);
		const char *step = NULL;

		if (!job)
			continue;
		if (launchers[i].step)
			step = rvcm_params_launcher(launchers[i].step);
		snprintf(name, sizeof(name), "%s=%s.%s", launchers[i].job, job, step ? step : "");
		from_name(name, key);
		return launchers[i].job;
	}
	return NULL;
}

#define STRAY_MAX 64

/* The first character that is no digit, such as that of 0x; "" = none. */
static const char *stray(const char *key, char text[STRAY_MAX])
{
	size_t digits = strspn(key, "0123456789abcdefABCDEF");
	unsigned char c = (unsigned char)key[digits];

	text[0] = '\0';
	if (c)
		snprintf(text, STRAY_MAX,
			 isprint(c) ? ", and '%c' is no hexadecimal digit"
				    : ", and byte 0x%02x is no hexadecimal digit",
			 c);
	return text;
}

int rvcm_jobkey_check(const struct rvcm_params *params)
{
	uint8_t key[RVCM_JOBKEY_BYTES];
	char text[STRAY_MAX];

	if (!params->job_key || from_digits(params->job_key, key) == 0)
		return 0;
	/* Not its value: it is meant to be a secret. */
	rvcm_warn(RVCM_LOG_CORE,
		  "FI_RVCM_JOB_KEY has %zu characters%s: allowed are %u hexadecimal digits",
		  strlen(params->job_key), stray(params->job_key, text), 2 * RVCM_JOBKEY_BYTES);
	return -EINVAL;
}

int rvcm_jobkey_find(const struct rvcm_params *params, const uint8_t *auth_key,
		     uint8_t key[RVCM_JOBKEY_BYTES])
{
	const char *source = "auth_key of the domain";
	char name[64];

	if (auth_key) {
		memcpy(key, auth_key, RVCM_JOBKEY_BYTES);
	} else if (params->job_key) {
		if (from_digits(params->job_key, key))
			return rvcm_jobkey_check(params);
		source = "FI_RVCM_JOB_KEY";
	} else {
		source = find_launcher(key);
	}
	if (source) {
		rvcm_info(RVCM_LOG_DOMAIN, "job key from %s", source);
		return 0;
	}
	snprintf(name, sizeof(name), "uid=%u", (unsigned int)getuid());
	from_name(name, key);
	rvcm_warn(RVCM_LOG_DOMAIN,
		  "no job key from a launcher, and FI_RVCM_JOB_KEY is not set: using one made from "
		  "user id %u, which others can guess",
		  (unsigned int)getuid());
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* One line for people: who, what, why. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conn/conn_impl.h"

/* A limit has a name, and somebody can raise it. NO_MEMORY's text has it already. */
static const char *limit_of(enum rvcm_status status, int err)
{
	if (err == EMFILE)
		return " (RLIMIT_NOFILE, ulimit -n)";
	return err == ENOMEM && status != RVCM_STATUS_NO_MEMORY
		       ? " (or locked memory: RLIMIT_MEMLOCK, ulimit -l)"
		       : "";
}

void rvcm_cause_deaf(struct rvcm_conn_cause *cause, const struct rvcm_carrier *carrier)
{
	size_t n = 0;

	cause->status = RVCM_STATUS_DEVICE_REMOVED;
	cause->err = 0;
	cause->vendor_err = 0;
	cause->text[0] = 0;
	for (uint32_t i = 0; i < carrier->attr.n_devs && n < sizeof(cause->text); i++)
		n += (size_t)snprintf(cause->text + n, sizeof(cause->text) - n, "%sdevice %s",
				      i ? ", " : "", carrier->devs[i].dev->attr.name);
	if (n < sizeof(cause->text))
		snprintf(cause->text + n, sizeof(cause->text) - n,
			 " %s removed, and no other is left",
			 carrier->attr.n_devs > 1 ? "were" : "was");
}

void rvcm_cause_set(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		    enum rvcm_status status, int err, const char *detail)
{
	char name[RVCM_ADDR_STRLEN];

	cause->status = status;
	cause->err = err;
	cause->vendor_err = 0;
	snprintf(cause->text, sizeof(cause->text), "peer %s: %s%s%s%s%s%s",
		 rvcm_addr_format(peer, name, sizeof(name)), rvcm_status_text(status),
		 detail ? ": " : "", detail ? detail : "", err ? ": " : "",
		 err ? strerrordesc_np(err) : "", limit_of(status, err));
}

const char *rvcm_cause_detail(const struct rvcm_cause_report *report, char *buf)
{
	char words[64] = "", code[40] = "";

	if (report->words)
		snprintf(words, sizeof(words), ", %s %d", report->words, report->number);
	if (report->vendor_err)
		snprintf(code, sizeof(code), ", the device's code is 0x%" PRIx32,
			 report->vendor_err);
	snprintf(buf, RVCM_CAUSE_DETAIL_MAX, "%s%s%s", report->dev->attr.name, words, code);
	return buf;
}

void rvcm_cause_of_device(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
			  const struct rvcm_cause_report *report)
{
	char detail[RVCM_CAUSE_DETAIL_MAX];

	rvcm_cause_set(cause, peer, report->status, report->err, rvcm_cause_detail(report, detail));
	cause->vendor_err = report->vendor_err;
}

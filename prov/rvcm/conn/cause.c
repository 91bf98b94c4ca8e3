/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line for people: who, what, why. Who comes first, up to the first ": ", so that lines of one
 * link can be told from others by their beginnings; no fact is said twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
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

const char *rvcm_cause_who(const struct rvcm_addr *peer, const struct rvcm_dev *dev, uint8_t index,
			   char *buf)
{
	char name[RVCM_ADDR_STRLEN], link[16] = "";

	if (index)
		snprintf(link, sizeof(link), ", link %u", index);
	snprintf(buf, RVCM_CAUSE_WHO_MAX, "peer %s%s%s%s",
		 rvcm_addr_format(peer, name, sizeof(name)), dev ? " by " : "",
		 dev ? dev->attr.name : "", link);
	return buf;
}

const char *rvcm_cause_why(const struct rvcm_conn_cause *cause)
{
	const char *colon = strstr(cause->text, ": ");

	return colon ? colon + 2 : cause->text;
}

/* What the errno adds to the status; NULL: nothing. */
static const char *words_of(enum rvcm_status status, int err)
{
	const char *words = err ? strerrordesc_np(err) : NULL;

	return words && !strcasestr(rvcm_status_text(status), words) ? words : NULL;
}

/* What is too long is cut. */
__attribute__((format(printf, 4, 5))) static void put(struct rvcm_conn_cause *cause,
						      enum rvcm_status status, int err,
						      const char *fmt, ...)
{
	va_list ap;

	cause->status = status;
	cause->err = err;
	cause->vendor_err = 0;
	va_start(ap, fmt);
	(void)vsnprintf(cause->text, sizeof(cause->text), fmt, ap);
	va_end(ap);
}

void rvcm_cause_by(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		   const struct rvcm_dev *dev, enum rvcm_status status, int err, const char *detail)
{
	const char *words = words_of(status, err);
	char who[RVCM_CAUSE_WHO_MAX];

	put(cause, status, err, "%s: %s%s%s%s%s%s", rvcm_cause_who(peer, dev, 0, who),
	    rvcm_status_text(status), detail ? ": " : "", detail ? detail : "", words ? ": " : "",
	    words ? words : "", limit_of(status, err));
}

void rvcm_cause_set(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		    enum rvcm_status status, int err, const char *detail)
{
	rvcm_cause_by(cause, peer, NULL, status, err, detail);
}

/* Of a conn that has got no other link. */
static enum rvcm_status status_of(const struct rvcm_conn_cause *answer)
{
	if (answer->status == RVCM_STATUS_REFUSED)
		return RVCM_STATUS_PEER_DEAD;
	if (answer->status == RVCM_STATUS_GIVEN_UP || answer->status == RVCM_STATUS_PEER_RESTARTED)
		return answer->status;
	return RVCM_STATUS_CONNECTION_LOST;
}

void rvcm_cause_tried(struct rvcm_conn_cause *cause, const struct rvcm_conn_cause *answer,
		      const struct rvcm_addr *peer, const struct rvcm_dev *dev, uint64_t ms)
{
	const struct rvcm_conn_cause first = *cause;
	enum rvcm_status status = status_of(answer);
	bool dead = status == RVCM_STATUS_PEER_DEAD;
	bool news = dead && first.status != RVCM_STATUS_PEER_DEAD;
	char who[RVCM_CAUSE_WHO_MAX];

	put(cause, status, dead ? 0 : answer->err,
	    "%s: %s%s%s; tried for %" PRIu64 ".%03" PRIu64 " s to connect again: %s",
	    rvcm_cause_who(peer, dev, 0, who), news ? rvcm_status_text(status) : "",
	    news ? ": " : "", rvcm_cause_why(&first), ms / 1000, ms % 1000,
	    dead ? rvcm_status_text(answer->status) : rvcm_cause_why(answer));
}

const char *rvcm_cause_detail(const struct rvcm_cause_report *report, char *buf)
{
	char words[64] = "", code[40] = "";

	if (!report->words && !report->vendor_err)
		return NULL;
	if (report->words)
		snprintf(words, sizeof(words), "%s %d", report->words, report->number);
	if (report->vendor_err)
		snprintf(code, sizeof(code), "the device's code is 0x%" PRIx32, report->vendor_err);
	snprintf(buf, RVCM_CAUSE_DETAIL_MAX, "%s%s%s", words, *words && *code ? ", " : "", code);
	return buf;
}

void rvcm_cause_of_device(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
			  const struct rvcm_cause_report *report)
{
	char detail[RVCM_CAUSE_DETAIL_MAX];

	rvcm_cause_by(cause, peer, report->dev, report->status, report->err,
		      rvcm_cause_detail(report, detail));
	cause->vendor_err = report->vendor_err;
}

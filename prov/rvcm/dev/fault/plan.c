/* SPDX-License-Identifier: BSD-2-Clause */
/* The words are tables; a rule is read from left to right, and the first wrong word is told. */
#include "dev/fault/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BIT(kind) (1u << RVCM_FAULT_##kind)

#define POST_FAULTS (BIT(ERRNO) | BIT(BREAK) | BIT(LOST) | BIT(BLIND) | BIT(GONE))
#define WC_FAULTS   (BIT(ERROR) | BIT(BREAK) | BIT(LOST) | BIT(BLIND) | BIT(DELAY) | BIT(GONE))
#define CALL_FAULTS (BIT(ERRNO) | BIT(GONE))
#define CONNECT_FAULTS \
	(BIT(ERRNO) | BIT(REFUSE) | BIT(STALE) | BIT(TIMEOUT) | BIT(UNREACHABLE) | BIT(GONE))

#define POST_ERRNOS "EAGAIN ENOMEM ENOTCONN EIO"
#define CALL_ERRNOS "ENOMEM EMFILE"

struct plan_point {
	const char *name;
	uint32_t faults;
	const char *errnos; /* that dev.h allows there */
};

static const struct plan_point points[] = {
	[RVCM_FAULT_POST] = { "post", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_SEND] = { "send", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_WRITE] = { "write", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_READ] = { "read", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_ATOMIC] = { "atomic", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_IMM] = { "imm", POST_FAULTS, POST_ERRNOS },
	[RVCM_FAULT_WC] = { "wc", WC_FAULTS, "" },
	[RVCM_FAULT_SENT] = { "sent", WC_FAULTS, "" },
	[RVCM_FAULT_RECV] = { "recv", WC_FAULTS, "" },
	[RVCM_FAULT_POLL] = { "poll", BIT(PAUSE) | BIT(GONE), "" },
	[RVCM_FAULT_EVENT] = { "event", BIT(DELAY) | BIT(GONE), "" },
	[RVCM_FAULT_CONNECT] = { "connect", CONNECT_FAULTS, "ENOMEM EMFILE EADDRNOTAVAIL" },
	[RVCM_FAULT_LISTEN] = { "listen", CALL_FAULTS, "ENOMEM EMFILE EADDRINUSE EADDRNOTAVAIL" },
	[RVCM_FAULT_QP_OPEN] = { "qp_open", CALL_FAULTS, CALL_ERRNOS },
	[RVCM_FAULT_ACCEPT] = { "accept", CALL_FAULTS, "ENOMEM EMFILE ECONNRESET" },
	[RVCM_FAULT_REJECT] = { "reject", CALL_FAULTS, "ENOMEM EIO" },
	[RVCM_FAULT_DISCONNECT] = { "disconnect", CALL_FAULTS, "ENOMEM EIO" },
	[RVCM_FAULT_ATTACH] = { "attach", CALL_FAULTS, CALL_ERRNOS },
	[RVCM_FAULT_FLUSH] = { "flush", CALL_FAULTS, "ENOMEM EIO" },
	[RVCM_FAULT_MR_REG] = { "mr_reg", CALL_FAULTS, "ENOMEM EFAULT" },
	[RVCM_FAULT_CQ_OPEN] = { "cq_open", CALL_FAULTS, CALL_ERRNOS },
	[RVCM_FAULT_POOL_OPEN] = { "pool_open", CALL_FAULTS, CALL_ERRNOS },
	[RVCM_FAULT_POOL_GROW] = { "pool_grow", CALL_FAULTS, "ENOMEM" },
	[RVCM_FAULT_SRQ_OPEN] = { "srq_open", CALL_FAULTS, CALL_ERRNOS },
};

enum plan_arg {
	ARG_NONE,
	ARG_STATUS, /* may be left out */
	ARG_TIME,
	ARG_TIME_OR_NONE,
	ARG_TIME_OR_POLLS,
};

static const struct {
	const char *name;
	enum plan_arg arg;
	enum rvcm_status status;
} kinds[] = {
	[RVCM_FAULT_ERRNO] = { "errno", ARG_NONE, RVCM_STATUS_OK },
	[RVCM_FAULT_BREAK] = { "break", ARG_STATUS, RVCM_STATUS_CONNECTION_LOST },
	[RVCM_FAULT_LOST] = { "lost", ARG_STATUS, RVCM_STATUS_CONNECTION_LOST },
	[RVCM_FAULT_BLIND] = { "blind", ARG_TIME, RVCM_STATUS_CONNECTION_LOST },
	[RVCM_FAULT_ERROR] = { "error", ARG_STATUS, RVCM_STATUS_GENERAL },
	[RVCM_FAULT_DELAY] = { "delay", ARG_TIME_OR_POLLS, RVCM_STATUS_OK },
	[RVCM_FAULT_PAUSE] = { "pause", ARG_TIME_OR_POLLS, RVCM_STATUS_OK },
	[RVCM_FAULT_REFUSE] = { "refuse", ARG_NONE, RVCM_STATUS_OK },
	[RVCM_FAULT_STALE] = { "stale", ARG_NONE, RVCM_STATUS_OK },
	[RVCM_FAULT_TIMEOUT] = { "timeout", ARG_TIME_OR_NONE, RVCM_STATUS_OK },
	[RVCM_FAULT_UNREACHABLE] = { "unreachable", ARG_NONE, RVCM_STATUS_OK },
	[RVCM_FAULT_GONE] = { "gone", ARG_NONE, RVCM_STATUS_DEVICE_REMOVED },
};

static const struct {
	const char *name;
	int err;
} errnos[] = {
	{ "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM },
	{ "ENOTCONN", ENOTCONN },
	{ "EIO", EIO },
	{ "EMFILE", EMFILE },
	{ "EFAULT", EFAULT },
	{ "ECONNRESET", ECONNRESET },
	{ "EADDRINUSE", EADDRINUSE },
	{ "EADDRNOTAVAIL", EADDRNOTAVAIL },
};

static const struct {
	const char *name;
	enum rvcm_status status;
} statuses[] = {
#define RVCM_STATUS(value, name, err, text) { #name, RVCM_STATUS_##name },
#include "base/status.def"
#undef RVCM_STATUS
};

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *rvcm_fault_plan_point(enum rvcm_fault_point point)
{
	return points[point].name;
}

const char *rvcm_fault_plan_kind(enum rvcm_fault_kind kind)
{
	return kinds[kind].name;
}

/* -- reading ---------------------------------------------------------------------------------- */

struct plan_text {
	const char *begin, *p;
	struct rvcm_fault_complaint *complaint;
};

struct plan_word {
	const char *p;
	size_t bytes;
};

static int bad(struct plan_text *t, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(struct plan_text *t, const char *at, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	t->complaint->at = (size_t)(at - t->begin);
	vsnprintf(t->complaint->text, sizeof(t->complaint->text), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* Up to the next mark. */
static struct plan_word read_word(struct plan_text *t)
{
	struct plan_word word = { t->p, strcspn(t->p, ":;=/") };

	t->p += word.bytes;
	return word;
}

static bool is(const struct plan_word *word, const char *text)
{
	return strlen(text) == word->bytes && memcmp(word->p, text, word->bytes) == 0;
}

static int bad_word(struct plan_text *t, const struct plan_word *word, const char *what)
{
	if (!word->bytes)
		return bad(t, word->p, "%s is missing", what);
	return bad(t, word->p, "%.*s is no %s", (int)(word->bytes < 40 ? word->bytes : 40), word->p,
		   what);
}

static int take(struct plan_text *t, char mark, const char *behind)
{
	if (*t->p != mark)
		return bad(t, t->p, "'%c' is missing behind %s", mark, behind);
	t->p++;
	return 0;
}

/* Digits, and as many bytes of the word as they are. */
static int digits(struct plan_text *t, const struct plan_word *word, uint64_t *n, size_t *bytes)
{
	size_t i = 0;

	*n = 0;
	for (; i < word->bytes && word->p[i] >= '0' && word->p[i] <= '9'; i++) {
		if (*n > UINT64_MAX / 100)
			return bad(t, word->p, "this number is too large");
		*n = *n * 10 + (uint64_t)(word->p[i] - '0');
	}
	*bytes = i;
	return 0;
}

static int read_number(struct plan_text *t, uint64_t least, uint64_t *n)
{
	struct plan_word word = read_word(t);
	size_t bytes;
	int rc = digits(t, &word, n, &bytes);

	if (rc)
		return rc;
	if (!bytes || bytes != word.bytes)
		return bad_word(t, &word, "number");
	if (*n < least)
		return bad(t, word.p, "this number is too small");
	return 0;
}

/* -- rules ------------------------------------------------------------------------------------ */

static int read_chance(struct plan_text *t, struct rvcm_fault_rule *rule)
{
	const char *at = t->p + 1;
	int rc;

	t->p++;
	rule->when = RVCM_FAULT_CHANCE;
	rc = read_number(t, 1, &rule->out_of);
	if (!rc && rule->n > rule->out_of)
		rc = bad(t, at, "a chance is not above one");
	return rc;
}

static int read_when(struct plan_text *t, struct rvcm_fault_rule *rule)
{
	static const char every[] = "every:";
	int rc;

	rule->when = RVCM_FAULT_ONCE;
	if (strncmp(t->p, every, sizeof(every) - 1) == 0) {
		rule->when = RVCM_FAULT_EVERY;
		t->p += sizeof(every) - 1;
	}
	rc = read_number(t, 1, &rule->n);
	if (!rc && rule->when == RVCM_FAULT_ONCE && *t->p == '/')
		rc = read_chance(t, rule);
	return rc;
}

static int read_status(struct plan_text *t, struct rvcm_fault_rule *rule)
{
	struct plan_word word = read_word(t);

	for (size_t i = 0; i < COUNT(statuses); i++) {
		if (!is(&word, statuses[i].name) || statuses[i].status == RVCM_STATUS_OK)
			continue;
		rule->status = statuses[i].status;
		return 0;
	}
	return bad_word(t, &word, "status of a failure");
}

static int read_time(struct plan_text *t, bool or_polls, struct rvcm_fault_rule *rule)
{
	struct plan_word word = read_word(t), unit = word;
	const char *what = or_polls ? "time, and no number of polls" : "time";
	uint64_t n;
	size_t bytes;
	int rc = digits(t, &word, &n, &bytes);

	if (rc)
		return rc;
	if (!bytes || !n)
		return bad_word(t, &word, what);
	unit.p += bytes;
	unit.bytes -= bytes;
	if (!unit.bytes && or_polls) {
		rule->polls = n;
		return 0;
	}
	for (size_t i = 0; i < COUNT(units); i++) {
		if (!is(&unit, units[i].name))
			continue;
		if (n > 3600 * units[COUNT(units) - 1].ns / units[i].ns)
			return bad(t, word.p, "this is more than an hour");
		rule->ns = n * units[i].ns;
		return 0;
	}
	return bad_word(t, &word, what);
}

static int read_arg(struct plan_text *t, struct rvcm_fault_rule *rule)
{
	enum plan_arg arg = kinds[rule->kind].arg;
	const char *name = kinds[rule->kind].name;
	bool optional = arg != ARG_TIME && arg != ARG_TIME_OR_POLLS;

	rule->status = kinds[rule->kind].status;
	if (rule->kind == RVCM_FAULT_TIMEOUT)
		rule->ns = 100000000;
	if (*t->p != ':')
		return optional ? 0 : bad(t, t->p, "how long %s takes is missing", name);
	if (arg == ARG_NONE)
		return bad(t, t->p, "nothing can follow %s", name);
	t->p++;
	if (arg == ARG_STATUS)
		return read_status(t, rule);
	/* No queue is polled for events. */
	return read_time(t, arg == ARG_TIME_OR_POLLS && rule->point != RVCM_FAULT_EVENT, rule);
}

/* Is word one of those, with spaces between? */
static bool among(const struct plan_word *word, const char *list)
{
	for (const char *p = list; *p;) {
		struct plan_word one = { p, strcspn(p, " ") };

		if (one.bytes == word->bytes && memcmp(one.p, word->p, one.bytes) == 0)
			return true;
		p += one.bytes;
		p += *p == ' ';
	}
	return false;
}

static int not_there(struct plan_text *t, const struct plan_word *word,
		     const struct plan_point *point)
{
	return bad(t, word->p, "%.*s cannot happen at %s", (int)word->bytes, word->p, point->name);
}

static int read_errno(struct plan_text *t, const struct plan_word *word,
		      const struct plan_point *point, struct rvcm_fault_rule *rule)
{
	for (size_t i = 0; i < COUNT(errnos); i++) {
		if (!is(word, errnos[i].name))
			continue;
		if (!among(word, point->errnos))
			return not_there(t, word, point);
		rule->kind = RVCM_FAULT_ERRNO;
		rule->err = errnos[i].err;
		return 0;
	}
	return bad_word(t, word, "fault");
}

static int read_fault(struct plan_text *t, struct rvcm_fault_rule *rule)
{
	const struct plan_point *point = &points[rule->point];
	struct plan_word word = read_word(t);

	for (int i = RVCM_FAULT_ERRNO + 1; i < RVCM_FAULT_KINDS; i++) {
		if (!is(&word, kinds[i].name))
			continue;
		if (!(point->faults & 1u << i))
			return not_there(t, &word, point);
		rule->kind = (enum rvcm_fault_kind)i;
		return read_arg(t, rule);
	}
	return read_errno(t, &word, point, rule);
}

static int read_rule(struct plan_text *t, const struct plan_word *word,
		     struct rvcm_fault_plan *plan)
{
	struct rvcm_fault_rule rule = { 0 };
	int i = 0, rc;

	while (i < RVCM_FAULT_POINTS && !is(word, points[i].name))
		i++;
	if (i == RVCM_FAULT_POINTS)
		return bad_word(t, word, "operation");
	if (plan->n_rules == RVCM_FAULT_RULES_MAX)
		return bad(t, word->p, "there are more than %u rules", RVCM_FAULT_RULES_MAX);
	rule.point = (enum rvcm_fault_point)i;
	rc = take(t, ':', "the operation");
	if (!rc)
		rc = read_when(t, &rule);
	if (!rc)
		rc = take(t, '=', "the number");
	if (!rc)
		rc = read_fault(t, &rule);
	if (!rc)
		plan->rules[plan->n_rules++] = rule;
	return rc;
}

static int read_item(struct plan_text *t, struct rvcm_fault_plan *plan)
{
	struct plan_word word = read_word(t);
	uint64_t seed;
	int rc;

	if (!is(&word, "seed"))
		return read_rule(t, &word, plan);
	rc = take(t, '=', "seed");
	if (!rc)
		rc = read_number(t, 0, &seed);
	if (!rc)
		rvcm_rng_init(&plan->rng, seed);
	return rc;
}

int rvcm_fault_plan_parse(const char *text, struct rvcm_fault_plan *plan,
			  struct rvcm_fault_complaint *complaint)
{
	struct plan_text t = { text, text, complaint };
	int rc = 0;

	memset(plan, 0, sizeof(*plan));
	rvcm_rng_init(&plan->rng, 1);
	if (!text || !*text)
		return 0;
	for (;;) {
		rc = read_item(&t, plan);
		if (rc || !*t.p)
			return rc;
		if (*t.p != ';')
			return bad(&t, t.p, "';' or the end should be here");
		t.p++;
	}
}

/* -- asking ----------------------------------------------------------------------------------- */

static bool applies(struct rvcm_fault_plan *plan, const struct rvcm_fault_rule *rule)
{
	uint64_t count = plan->counts[rule->point];

	switch (rule->when) {
	case RVCM_FAULT_ONCE:
		return count == rule->n;
	case RVCM_FAULT_EVERY:
		return count % rule->n == 0;
	case RVCM_FAULT_CHANCE:
		break;
	}
	return rvcm_rng_below(&plan->rng, rule->out_of) < rule->n;
}

const struct rvcm_fault_rule *rvcm_fault_plan_ask(struct rvcm_fault_plan *plan, uint32_t at)
{
	for (uint32_t i = 0; i < RVCM_FAULT_POINTS; i++)
		plan->counts[i] += at >> i & 1;
	for (uint32_t i = 0; i < plan->n_rules; i++)
		if (at >> plan->rules[i].point & 1 && applies(plan, &plan->rules[i]))
			return &plan->rules[i];
	return NULL;
}

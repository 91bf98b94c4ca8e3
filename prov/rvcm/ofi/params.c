/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malformed value is an error and never a default: who sets a tunable wants to see its effect.
 * libfabric's fi_param_get turns "16k" or "abc" into a number silently, so values are parsed here
 * and libfabric is told of the tunables only.
 */
#include "config.h"

#include "ofi/params.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/providers/fi_prov.h>

#include "base/log.h"

#define PREFIX       "FI_RVCM_"
#define PREFIX_CHARS (sizeof(PREFIX) - 1)
#define VARIABLE_MAX 64

struct param {
	const char *name;
	const char *help;
	const char *unit;    /* NULL = a text */
	const char *choices; /* of a text: the words that it may be, NULL = anything */
	const char *word;    /* and its default */
	size_t offset;       /* in struct rvcm_params */
	size_t standard;     /* its default */
	size_t least;
	size_t most;
};

static const struct param table[] = {
#define RVCM_PARAM_TEXT(name_, help_) \
	{ .name = #name_, .help = (help_), .offset = offsetof(struct rvcm_params, name_) },
#define RVCM_PARAM_SIZE(name_, standard_, least_, most_, unit_, help_) \
	{ .name = #name_,                                              \
	  .help = (help_),                                             \
	  .unit = (unit_),                                             \
	  .offset = offsetof(struct rvcm_params, name_),               \
	  .standard = (standard_),                                     \
	  .least = (least_),                                           \
	  .most = (most_) },
#define RVCM_PARAM_CHOICE(name_, word_, choices_, help_) \
	{ .name = #name_,                                \
	  .help = (help_),                               \
	  .choices = (choices_),                         \
	  .word = (word_),                               \
	  .offset = offsetof(struct rvcm_params, name_) },
#include "ofi/params.def"
#undef RVCM_PARAM_CHOICE
#undef RVCM_PARAM_TEXT
#undef RVCM_PARAM_SIZE
};

#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

static const char *variable(const struct param *param, char name[VARIABLE_MAX])
{
	int n = snprintf(name, VARIABLE_MAX, PREFIX "%s", param->name);

	for (int i = 0; i < n; i++)
		name[i] = (char)toupper((unsigned char)name[i]);
	return name;
}

void rvcm_params_define(const struct fi_provider *provider)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct param *p = &table[i];

		if (p->unit)
			fi_param_define(provider, p->name, FI_PARAM_SIZE_T,
					"%s (%s, %zu to %zu, default %zu)", p->help, p->unit,
					p->least, p->most, p->standard);
		else if (p->choices)
			fi_param_define(provider, p->name, FI_PARAM_STRING,
					"%s (one of: %s; default %s)", p->help, p->choices,
					p->word);
		else
			fi_param_define(provider, p->name, FI_PARAM_STRING, "%s", p->help);
	}
}

/*
 * Decimal digits, or 0x and hexadecimal ones, and nothing else: 010 is ten to some and eight to
 * others.
 */
static bool parse_size(const char *text, size_t *value)
{
	uintmax_t number;
	char *end;

	if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && isdigit((unsigned char)text[1])))
		return false;
	errno = 0;
	number = strtoumax(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	if (errno || *end || number > SIZE_MAX)
		return false;
	*value = (size_t)number;
	return true;
}

static int read_size(const struct param *p, const char *text, size_t *value)
{
	char name[VARIABLE_MAX];

	if (!text) {
		*value = p->standard;
		return 0;
	}
	if (parse_size(text, value) && *value >= p->least && *value <= p->most)
		return 0;
	rvcm_warn(RVCM_LOG_CORE,
		  "%s=%s: a number%s%s from %zu to %zu, decimal or after 0x hexadecimal",
		  variable(p, name), text, *p->unit ? " of " : "", p->unit, p->least, p->most);
	return -EINVAL;
}

static int read_text(const struct param *p, const char *text, const char **value)
{
	char name[VARIABLE_MAX];

	if (text && !*text) {
		rvcm_warn(RVCM_LOG_CORE, "%s is set to nothing: unset it, or give a value",
			  variable(p, name));
		return -EINVAL;
	}
	*value = text;
	return 0;
}

/* The words are taken as they are written. */
static int read_choice(const struct param *p, const char *text, const char **value)
{
	size_t n = text ? strlen(text) : 0;
	char name[VARIABLE_MAX];

	*value = text ? text : p->word;
	for (const char *at = p->choices; text && *at;) {
		size_t len = strcspn(at, " ");

		if (len == n && memcmp(at, text, n) == 0)
			return 0;
		at += len;
		at += *at == ' ';
	}
	if (!text)
		return 0;
	rvcm_warn(RVCM_LOG_CORE, "%s=%s: one of the words: %s", variable(p, name), text,
		  p->choices);
	return -EINVAL;
}

static int read_one(const struct param *p, const char *text, void *field)
{
	if (p->unit)
		return read_size(p, text, field);
	return p->choices ? read_choice(p, text, field) : read_text(p, text, field);
}

int rvcm_params_read(struct rvcm_params *params)
{
	int rc = 0;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct param *p = &table[i];
		void *field = (char *)params + p->offset;
		char name[VARIABLE_MAX];
		const char *text = getenv(variable(p, name));
		int err = read_one(p, text, field);

		if (err)
			rc = err;
	}
	return rc;
}

/* -- names that are nobody's ---------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters are to be changed, put in or left out to make b of the n letters at a, in
 * capitals (Levenshtein's distance, row by row); names from VARIABLE_MAX letters on are far from
 * all.
 */
static size_t distance(const char *a, size_t n, const char *b)
{
	size_t row[VARIABLE_MAX + 1], m = strlen(b);

	if (n >= VARIABLE_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++)
		row[i] = i;
	for (size_t j = 1; j <= m; j++) {
		size_t corner = row[0];

		row[0] = j;
		for (size_t i = 1; i <= n; i++) {
			size_t above = row[i];
			bool other = toupper((unsigned char)a[i - 1]) != b[j - 1];

			row[i] = least(corner + other, least(above, row[i - 1]) + 1);
			corner = above;
		}
	}
	return row[n];
}

/* The tunable whose variable is most like the n letters at text; *far: how unlike they are. */
static const struct param *nearest(const char *text, size_t n, size_t *far)
{
	const struct param *best = NULL;
	char name[VARIABLE_MAX];

	*far = SIZE_MAX;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		size_t d = distance(text, n, variable(&table[i], name));

		if (best && d >= *far)
			continue;
		best = &table[i];
		*far = d;
	}
	return best;
}

/* text: NAME=VALUE. Half the letters may be wrong, and it is still worth a guess. */
static void check_name(const char *text)
{
	size_t n = strcspn(text, "="), far;
	const struct param *like = nearest(text, n, &far);
	char name[VARIABLE_MAX];

	variable(like, name);
	if (strlen(name) == n && memcmp(name, text, n) == 0)
		return;
	if (far <= (n - PREFIX_CHARS) / 2)
		rvcm_warn(RVCM_LOG_CORE, "%.*s is no tunable of rvcm: did you mean %s?", (int)n,
			  text, name);
	else
		rvcm_warn(RVCM_LOG_CORE, "%.*s is no tunable of rvcm: fi_rvcm(7) lists them",
			  (int)n, text);
}

void rvcm_params_check_names(void)
{
	for (char **p = environ; p && *p; p++) {
		if (strncmp(*p, PREFIX, PREFIX_CHARS) == 0)
			check_name(*p);
	}
}

/* -- what others set ------------------------------------------------------------------------ */

/* FI_PROVIDER is a list of names, separated by commas, or with ^ in front of those not wanted. */
bool rvcm_params_chosen(void)
{
	const char *list = getenv("FI_PROVIDER");

	if (!list || *list == '^')
		return false;
	while (*list) {
		size_t n = strcspn(list, ",");

		if (n == 4 && strncasecmp(list, "rvcm", 4) == 0)
			return true;
		list += n;
		list += *list == ',';
	}
	return false;
}

const char *rvcm_params_launcher(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

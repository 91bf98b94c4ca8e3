/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/repeat.h"

/* The line's entry; or, if it has none, the one to give it: free, or of who came longest ago. */
static struct rvcm_repeat_line *find(struct rvcm_repeat *repeat, uint64_t hash)
{
	struct rvcm_repeat_line *oldest = &repeat->lines[0];

	for (uint32_t i = 0; i < RVCM_REPEAT_LINES; i++) {
		struct rvcm_repeat_line *line = &repeat->lines[i];

		if (line->while_ns && line->hash == hash)
			return line;
		if (oldest->while_ns && (!line->while_ns || line->last_ns < oldest->last_ns))
			oldest = line;
	}
	*oldest = (struct rvcm_repeat_line) { .hash = hash };
	return oldest;
}

bool rvcm_repeat_pass(struct rvcm_repeat *repeat, uint64_t hash, uint64_t now_ns, uint32_t *missed)
{
	struct rvcm_repeat_line *line = find(repeat, hash);
	bool quiet = now_ns - line->last_ns >= line->while_ns;

	line->last_ns = now_ns;
	if (now_ns < line->open_ns) {
		line->missed += line->missed < UINT32_MAX;
		return false;
	}
	*missed = line->missed;
	line->missed = 0;
	if (quiet)
		line->while_ns = RVCM_REPEAT_FIRST_NS;
	else if (line->while_ns < RVCM_REPEAT_MOST_NS / 2)
		line->while_ns *= 2;
	else
		line->while_ns = RVCM_REPEAT_MOST_NS;
	line->open_ns = now_ns + line->while_ns;
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/rails.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn.h"
#include "dev/soft/soft.h"

/* What a walk over the words is about. */
struct walk {
	const struct rvcm_params *params;
	const struct rvcm_addr *own; /* NULL: of either IP version */
	struct rvcm_device *devices; /* all that there are */
	int n_devices;
	struct rvcm_addr *addrs; /* room for RVCM_CONN_RAILS_MAX */
	uint32_t n;
};

static bool is_version(const struct walk *walk, const struct rvcm_addr *addr)
{
	return !walk->own || walk->own->family == addr->family;
}

/* Any of 127.0.0.0/8 is this host's, though only one is listed. */
static bool is_here(const struct walk *walk, const struct rvcm_addr *addr)
{
	return (addr->family == RVCM_ADDR_V4 && rvcm_addr_is_loopback(addr)) ||
	       rvcm_devices_find(walk->devices, walk->n_devices, NULL, addr);
}

static bool find_rail(const struct walk *walk, const char *word, struct rvcm_addr *rail)
{
	if (rvcm_addr_parse(word, rail) == 0)
		return rail->port == 0 && is_version(walk, rail) && is_here(walk, rail);
	for (int i = 0; i < walk->n_devices; i++) {
		*rail = walk->devices[i].attr.addr;
		if (strcmp(walk->devices[i].iface, word) == 0 && is_version(walk, rail) &&
		    !rvcm_addr_is_linklocal(rail))
			return true;
	}
	return false;
}

static const char *version_name(const struct walk *walk)
{
	if (!walk->own)
		return "IP";
	return walk->own->family == RVCM_ADDR_V4 ? "IPv4" : "IPv6";
}

static int refuse(const struct walk *walk, const char *word)
{
	rvcm_warn(RVCM_LOG_CORE,
		  "FI_RVCM_RAILS=\"%s\": \"%s\" is no network interface with an %s address, and no "
		  "%s address of this host",
		  walk->params->rails, word, version_name(walk), version_name(walk));
	return -EINVAL;
}

static int take(struct walk *walk, const char *word)
{
	struct rvcm_addr rail;

	if (!find_rail(walk, word, &rail))
		return refuse(walk, word);
	if (walk->own && rvcm_devices_same_ip(&rail, walk->own))
		return 0;
	if (walk->n == RVCM_CONN_RAILS_MAX) {
		rvcm_warn(RVCM_LOG_CORE, "FI_RVCM_RAILS=\"%s\": more than %u", walk->params->rails,
			  RVCM_CONN_RAILS_MAX);
		return -EINVAL;
	}
	walk->addrs[walk->n++] = rail;
	return 0;
}

/* Blanks around a word are none of it. The words end up apart. */
static int take_all(struct walk *walk, char *words)
{
	int rc = 0;

	for (char *word = words, *next; word && !rc; word = next) {
		size_t bytes;

		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		word += strspn(word, " \t");
		for (bytes = strlen(word); bytes && strchr(" \t", word[bytes - 1]); bytes--)
			word[bytes - 1] = '\0';
		rc = take(walk, word);
	}
	return rc;
}

static int read_all(struct walk *walk)
{
	const struct rvcm_params all = { 0 };
	char *words = rvcm_mem_strdup(walk->params->rails);
	int rc = -ENOMEM;

	walk->devices = rvcm_mem_calloc(RVCM_DEVICES_MAX, sizeof(*walk->devices));
	if (words && walk->devices) {
		walk->n_devices = rvcm_devices_list(&all, walk->devices, RVCM_DEVICES_MAX);
		rc = take_all(walk, words);
	}
	rvcm_mem_free(words);
	rvcm_mem_free(walk->devices);
	return rc;
}

int rvcm_rails_check(const struct rvcm_params *params)
{
	struct rvcm_addr addrs[RVCM_CONN_RAILS_MAX];
	struct walk walk = { .params = params, .addrs = addrs };

	return params->rails ? read_all(&walk) : 0;
}

int rvcm_rails_list(const struct rvcm_params *params, const struct rvcm_device *device,
		    struct rvcm_addr *addrs, uint32_t *n)
{
	struct walk walk = { .params = params, .own = &device->attr.addr, .addrs = addrs };
	int rc;

	*n = 0;
	if (!params->rails)
		return 0;
	if (device->attr.nic.device[0]) {
		rvcm_warn(RVCM_LOG_DOMAIN, "FI_RVCM_RAILS is for the software RNIC, and not for %s",
			  device->attr.name);
		return 0;
	}
	rc = read_all(&walk);
	*n = walk.n;
	return rc;
}

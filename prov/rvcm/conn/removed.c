/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that are removed. Their links end by themselves, each with its cause. What else there is
 * to it: control opens nothing on them any more, and when the last one goes the data side tells its
 * owner, who may have waited for peers that no link leads to.
 */
#include "base/log.h"
#include "conn/conn_impl.h"

void rvcm_removed_see(struct rvcm_carrier_dev *dev)
{
	if (dev->removed)
		return;
	dev->removed = true;
	rvcm_carrier_mail_data(dev->carrier, &dev->removed_mail);
}

uint16_t rvcm_removed_skip(const struct rvcm_carrier *carrier, uint16_t from)
{
	while (from < carrier->attr.n_devs && carrier->devs[from].removed)
		from++;
	return from;
}

static bool all_gone(const struct rvcm_carrier *carrier)
{
	for (uint32_t i = 0; i < carrier->attr.n_devs; i++)
		if (!carrier->devs[i].gone)
			return false;
	return true;
}

/* What arrived before the end is taken before the end: somebody may have waited for it. */
void rvcm_removed_hear(struct rvcm_carrier_dev *dev)
{
	struct rvcm_carrier *carrier = dev->carrier;
	struct rvcm_conn_cause cause;

	while (rvcm_poll_dev(dev) > 0)
		;
	dev->gone = true;
	if (!all_gone(carrier))
		return;
	rvcm_cause_deaf(&cause, carrier);
	rvcm_warn(RVCM_LOG_EP_CTRL, "%s", cause.text);
	carrier->attr.sink->deaf(carrier->attr.sink_ctx, &cause);
}

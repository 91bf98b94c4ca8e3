/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/verbs/umad.h"

#include <stdio.h>

/* IBTA volume 1, 14.2.5.6, PortInfo: PortState and PortPhysicalState. */
static const char *const states[] = { "?", "Down", "Initialize", "Armed", "Active" };
static const char *const physical[] = { "?",
					"Sleep",
					"Polling",
					"Disabled",
					"PortConfigurationTraining",
					"LinkUp",
					"LinkErrorRecovery",
					"PhyTest" };

static const char *umad_name(const char *const *names, size_t n, unsigned int value)
{
	return value < n ? names[value] : "?";
}

const char *rvcm_verbs_umad_format(const umad_port_t *port, char text[RVCM_VERBS_UMAD_TEXT_MAX])
{
	snprintf(text, RVCM_VERBS_UMAD_TEXT_MAX,
		 "InfiniBand, state %s, physical state %s, LID %u, SM LID %u%s, rate %u Gb/s",
		 umad_name(states, sizeof(states) / sizeof(states[0]), port->state),
		 umad_name(physical, sizeof(physical) / sizeof(physical[0]), port->phys_state),
		 port->base_lid, port->sm_lid,
		 port->sm_lid ? "" : " (no subnet manager has been here)", port->rate);
	return text;
}

const char *rvcm_verbs_umad_text(const char *device, uint8_t port,
				 char text[RVCM_VERBS_UMAD_TEXT_MAX])
{
	umad_port_t found;

	if (umad_get_port(device, port, &found)) {
		snprintf(text, RVCM_VERBS_UMAD_TEXT_MAX, "libibumad knows nothing of it");
		return text;
	}
	rvcm_verbs_umad_format(&found, text);
	umad_release_port(&found);
	return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siw [NAME]: the kernel's software iWARP RNIC and ours, against each other, in every set-up in
 * which the two can meet. To be run as root where siw is on an interface with PEERS_SIW_ADDR, has
 * its constants as module parameters (util/vm-setup.sh), and the network namespace "soft" has an
 * interface with PEERS_SOFT_ADDR on the other end of the wire. With NAME only those tests are run
 * that have it in theirs.
 */
#include "vm/test_siw.h"

struct round {
	struct peers_conf conf;
	const struct peers_test *tests;
	const size_t *n;
};

#define DATA   test_siw_data, &test_siw_data_count
#define CM     test_siw_cm, &test_siw_cm_count
#define END    test_siw_end, &test_siw_end_count
#define RTR    test_siw_rtr, &test_siw_rtr_count
#define STRICT test_siw_strict, &test_siw_strict_count

static const struct round rounds[] = {
	{ { .name = "no CRC", .siw_revision = 2 }, DATA },
	{ { .name = "no CRC", .siw_revision = 2 }, CM },
	{ { .name = "no CRC", .siw_revision = 2 }, END },
	{ { .name = "CRC wanted by soft", .crc = true, .siw_revision = 2 }, DATA },
	{ { .name = "CRC wanted by siw", .siw_crc = true, .siw_revision = 2 }, DATA },
	{ { .name = "CRC wanted by both", .crc = true, .siw_crc = true, .siw_revision = 2 }, END },
	{ { .name = "MPA revision 1", .siw_revision = 1 }, DATA },
	{ { .name = "MPA revision 1", .siw_revision = 1 }, CM },
	{ { .name = "peer-to-peer", .siw_revision = 2, .siw_p2p = true }, DATA },
	{ { .name = "peer-to-peer", .siw_revision = 2, .siw_p2p = true }, CM },
	{ { .name = "peer-to-peer wanted by soft", .p2p = true, .siw_revision = 2 }, DATA },
	{ { .name = "peer-to-peer wanted by soft", .p2p = true, .siw_revision = 2 }, RTR },
	{ { .name = "CRC wanted and forbidden",
	    .crc = true,
	    .siw_strict = true,
	    .siw_revision = 2 },
	  STRICT },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
		(void)peers_run(&rounds[i].conf, rounds[i].tests, *rounds[i].n,
				argc > 1 ? argv[1] : NULL);
	return peers_done();
}

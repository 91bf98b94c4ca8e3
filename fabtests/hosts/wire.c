/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts/wire.h"

#include "hosts/host.h"

void wire_cut(void)
{
	host_shell("ip -n @-r link set to2 down");
}

void wire_mend(void)
{
	host_shell("ip -n @-r link set to2 up");
}

void wire_lose_address(void)
{
	host_shell("ip -n @-2 addr del 10.77.2.1/24 dev eth0");
}

void wire_regain_address(void)
{
	host_shell(
		"ip -n @-2 addr add 10.77.2.1/24 dev eth0 && ip -n @-2 route add default via 10.77.2.254");
}

void wire_destroy(void)
{
	host_shell("ip netns exec @-1 ss -tK dst 10.77.2.1 >/dev/null");
}

void wire_destroy_there(void)
{
	host_shell("ip netns exec @-2 ss -tK dst 10.77.1.1 >/dev/null");
}

void wire_nothing(void)
{
}

int wire_restore(void **state)
{
	(void)state;
	host_shell("exec 2>/dev/null; ip -n @-r link set to2 up; "
		   "ip -n @-r route del unreachable 10.77.2.1/32; "
		   "ip -n @-2 addr add 10.77.2.1/24 dev eth0; "
		   "ip -n @-2 route add default via 10.77.2.254; exit 0");
	return 0;
}

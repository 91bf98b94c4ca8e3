/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the host of a TCP peer counts as gone. TCP itself gives up after a quarter of an hour;
 * TCP_USER_TIMEOUT also ends a connection whose peer answers each probe but has no room (Linux
 * counts from the first probe of a window that is shut), and that is what a process that computes,
 * or is stopped, looks like. So TCP is asked every now and then what it has heard: a peer is given
 * up if something of ours is unanswered, bytes or a probe, it was tried again, and nothing at all
 * has come from the peer for a while. Once is not enough: Linux answers at most one segment in 500
 * ms that does not fit (tcp_invalid_ratelimit). Bytes that wait to be sent again because the peer
 * had no room are not unanswered: it did answer the last attempt. Pure functions, any thread.
 */
#ifndef RVCM_BASE_SILENCE_H
#define RVCM_BASE_SILENCE_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

/* How often was something sent that is unanswered? TCP_INFO (tcp(7)) has it. */
uint32_t rvcm_silence_attempts(const struct tcp_info *info);

/*
 * At now_ns, something was sent so many times and is unanswered (0: all is answered), and the peer
 * was last heard heard_ns ago. True: nothing was heard from it in the last limit_ns although
 * something was due all the while. *since_ns belongs to the connection, and starts as 0.
 */
bool rvcm_silence_judge(uint64_t *since_ns, uint32_t attempts, uint64_t heard_ns, uint64_t now_ns,
			uint64_t limit_ns);

#endif

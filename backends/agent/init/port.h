/* SPDX-License-Identifier: Apache-2.0 */
/* What a hypervisor asks of process 1 of its machine, apart from all commands: lines on a stream of its own (--port-fd),
 * each answered by one line, "ok" or "error ERRNO".
 *
 *     freeze        what was written is on the disks, and nothing more is written to them until
 *     thaw          or until ten seconds have passed
 *     name NAME     the host name, now and in /etc/hostname
 *     time NS       the clock, since 1970: the machine stood still, or is another one's memory
 *     seed HEX      at most 64 bytes for the kernel's randomness, which two machines must not have in common
 *
 * The disks are those of --disk-fd, one directory of each. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_PORT_H
#define CUBEFS_BACKENDS_AGENT_INIT_PORT_H

#include <stdbool.h>

#define INIT_PORT_DISKS 4

/* One more disk; false: there are too many. */
bool init_port_disk(int fd);
/* 0 or -errno. The descriptor is the port's. */
int init_port_open(int fd);

#endif

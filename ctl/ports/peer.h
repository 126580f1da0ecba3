/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a TCP connection. */
#ifndef CUBEFS_CTL_PORTS_PEER_H
#define CUBEFS_CTL_PORTS_PEER_H

#include <stdbool.h>

/* Does the other end of the accepted connection @fd belong to a process of this machine that runs as the user whom
 * we run as? By the kernel's own table; only of connections over the loopback device, since others may come
 * through somebody who passes them on. False also where the kernel does not tell. Does not block. */
bool cube_peer_is_own(int fd);

#endif

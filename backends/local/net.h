/* SPDX-License-Identifier: Apache-2.0 */
/* net=open: a helper outside (pasta, else slirp4netns) passes the connections that begin in a sandbox's
 * network namespace on as its own. It runs as the sandbox's root, which is nobody outside, with the
 * capabilities of the sandbox's own user namespace alone. This machine's loopback is not reached through it,
 * and nothing comes in. */
#ifndef CUBEFS_BACKENDS_LOCAL_NET_H
#define CUBEFS_BACKENDS_LOCAL_NET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"
#include "backends/local/cgroup.h"

struct cube_local_net_kind;

struct cube_local_net {
	const struct cube_local_net_kind *kind; /* NULL: there is none, see why */
	char path[PATH_MAX];
	int tun; /* a tmpfs with a device `tun` that anyone may open; -1: /dev/net's */
	char why[160];
};

/* Finds a helper and looks whether it could work. @trusted: devices can be made. */
void cube_local_net_open(struct cube_local_net *n, bool trusted);
void cube_local_net_close(struct cube_local_net *n);

/* What /etc/resolv.conf says inside. */
const char *cube_local_net_resolv(const struct cube_local_net *n);

/* Connects the network namespace of process @init of sandbox @id and waits until it is connected; the helper runs on in the
 * sandbox's groups, as a child of this process, *ret_pid. -EIO with what it said. */
int cube_local_net_start(const struct cube_local_net *n, pid_t init, const struct cube_local_cgroups *groups,
			 const char *id, struct cube_cancel *cancel, pid_t *ret_pid, struct cube_err *err);

#endif

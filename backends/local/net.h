/* SPDX-License-Identifier: Apache-2.0 */
/* net=open: a helper outside (pasta or slirp4netns) passes the connections of a sandbox's network namespace
 * on as its own, without privileges. This machine's own addresses are not reached through it, and nothing
 * comes in. */
#ifndef CUBEFS_BACKENDS_LOCAL_NET_H
#define CUBEFS_BACKENDS_LOCAL_NET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"

struct cube_local_net_helper {
	bool pasta;          /* else slirp4netns */
	char path[PATH_MAX]; /* "": neither is installed */
};

void cube_local_net_find(struct cube_local_net_helper *h);

/* What /etc/resolv.conf says inside with this helper. */
const char *cube_local_net_resolv(const struct cube_local_net_helper *h);

/* Connects the network namespace of process @init; the helper runs on. *ret_pid is its process. */
int cube_local_net_open(const struct cube_local_net_helper *h, pid_t init, bool trusted,
			struct cube_cancel *cancel, pid_t *ret_pid, struct cube_err *err);

#endif

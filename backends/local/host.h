/* SPDX-License-Identifier: Apache-2.0 */
/* What all local sandboxes of this process share: the namespaces that it lives in, the range of ids,
 * cube-init's binary, this machine's files as a layer.
 *
 * It is made once, by the supervisor while it has one thread (the table's prepare), and inherited: state
 * of the process, not of an instance. */
#ifndef CUBEFS_BACKENDS_LOCAL_HOST_H
#define CUBEFS_BACKENDS_LOCAL_HOST_H

#include <stdbool.h>

#include "backends/base/conf.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

struct cube_local_host {
	char why[200];   /* why no sandbox can run in this process; "" if they can */
	bool trusted;    /* root of the machine itself: idmapped mounts, trusted.* marks */
	bool swap_owner; /* an ordinary user's namespace: its 0 is that user */
	struct cube_ns_ids ids;
	int agent; /* a detached mount with the file `cube-init`; -1: not found */
	char agent_why[200];
	int slash;           /* / with the ids' owners, detached; -1: cannot be had, or not needed */
	char slash_why[200]; /* why the template `host` cannot be used; "" if it can */
	bool hybrid;         /* cgroup v2 lies beside v1 hierarchies, which crun refuses */
};

/* File name of cube-init in `agent`. */
#define CUBE_LOCAL_AGENT "cube-init"

/* The table's prepare. Idempotent: the first call decides. */
int cube_local_host_prepare(const char *state_dir, const struct cube_conf_section *conf,
			    struct cube_err *err);

/* The table's entered. */
void cube_local_host_entered(bool user);

/* What prepare made; NULL before. */
const struct cube_local_host *cube_local_host(void);

#endif

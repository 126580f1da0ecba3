/* SPDX-License-Identifier: Apache-2.0 */
/* The OCI configuration of a sandbox, as crun reads it. */
#ifndef CUBEFS_BACKENDS_LOCAL_BUNDLE_H
#define CUBEFS_BACKENDS_LOCAL_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

#define CUBE_BUNDLE_MAX   (1u << 20)
#define CUBE_BUNDLE_BINDS 26

struct cube_local_bundle {
	const char *hostname;
	const struct cube_ns_ids *ids;
	bool cgroup_fd;     /* descriptor 4 is the directory of its groups */
	uint32_t nproc;     /* RLIMIT_NPROC; 0: none */
	const char *root;   /* where the root file system is attached, for crun */
	const char *agent;  /* cube-init's file, there */
	const char *filter; /* the compiled filter of system calls (filter.h); NULL: crun compiles it */
	unsigned n_binds;   /* what is bound besides */
	struct {
		const char *source, *target;
		bool read_only;
	} binds[CUBE_BUNDLE_BINDS];
};

/* The text of config.json. */
int cube_local_bundle_write(const struct cube_local_bundle *b, struct cube_buf *out, struct cube_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks: for the error log, for host paths that are opened with the asker's rights. */
#ifndef CUBEFS_CTL_CALLER_H
#define CUBEFS_CTL_CALLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

struct cube_caller {
	pid_t pid; /* thread or process as our pid namespace sees it; 0: not visible */
	uid_t uid;
	gid_t gid;
	uint64_t client; /* 0: a process of this machine's kernel; else a connection, which stands for one */
	bool local;      /* a process of this machine (FUSE, unix socket peer): may name host paths */
	bool owner;      /* the user who mounted: has the daemon's own rights on this machine */
};

/* "bash[123]", or "pid 123", "remote". Returns @out. */
const char *cube_caller_text(const struct cube_caller *c, char out[64]);

/* Opens an absolute path with the caller's rights (uid, gid, supplementary groups of its process), never
 * with the daemon's: -EACCES, also where the daemon cannot take on the caller's rights, and for /proc, whose
 * files would be the daemon's own; -EPERM for a remote one; -EINVAL for a relative path. Blocks: not under the
 * lock. Changes the calling thread's file system ids meanwhile. */
int cube_caller_open(const struct cube_caller *c, const char *path, int flags, int *ret_fd,
		     struct cube_err *err);

/* Opens @path below the directory @dir, with the caller's rights, as openat2 does with @resolve: a descriptor, or
 * -errno. Blocks. */
int cube_caller_openat(const struct cube_caller *c, int dir, const char *path, int flags, uint64_t resolve);

/* Between the two this thread has the caller's rights on files, and the daemon's own no more, as cube_caller_open
 * has. Nothing happens for the owner (or NULL). -EACCES: they cannot be had; then leave does nothing. */
#define CUBE_CALLER_GROUPS 1024
struct cube_caller_rights {
	bool entered;
	uid_t uid;
	gid_t gid;
	long n_groups;
	gid_t groups[CUBE_CALLER_GROUPS];
};
int cube_caller_enter(const struct cube_caller *c, struct cube_caller_rights *ours);
void cube_caller_leave(struct cube_caller_rights *ours);

#endif

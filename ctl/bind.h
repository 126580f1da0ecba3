/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of this machine in a sandbox: what is remembered of them, and how they get there. Under the domain
 * lock unless said otherwise.
 *
 * A bind is on disk before the backend is told of it, with who asked for it: a daemon that was restarted opens
 * the directory again with the rights of the same user (not of his other groups), and tells the backend before
 * the sandbox is started or its files are looked at. */
#ifndef CUBEFS_CTL_BIND_H
#define CUBEFS_CTL_BIND_H

#include "backends/base/json.h"
#include "ctl/caller.h"
#include "ctl/cube.h"

struct cube_bind_use {
	char *source; /* the directory here */
	char *path;   /* inside */
	bool read_only;
	uid_t uid; /* who asked */
	gid_t gid;
	bool owner; /* cube_caller.owner */
};

struct cube_binds {
	struct cube_bind_use *list;
	size_t n;
};

/* A copy for a thread without the lock, to be freed; -ENOMEM. */
int cube_binds_copy(const struct cube_binds *from, struct cube_binds *ret);
void cube_binds_free(struct cube_binds *b);

/* No lock, on the sandbox's queue: opens each as who asked for it and tells the backend. The first failure, after
 * all were tried. */
int cube_binds_tell(struct cube_backend *b, const char *id, const struct cube_binds *binds,
		    struct cube_cancel *cancel, struct cube_err *err);
/* Those that the backend has not been told of since the daemon's start: a copy; none: n 0. */
int cube_binds_untold(struct cube_cube *c, struct cube_binds *ret);
/* It has been told of all of them. */
void cube_binds_told(struct cube_cube *c);

/* What a user asks to have bound; read before the call returns. */
struct cube_bind_wanted {
	const struct cube_caller *by;
	const char *source, *path;
	bool read_only;
};

/* The verbs. @done comes under the lock, exactly once; -errno: it does not come. */
struct cube_bind_call;
int cube_bind_begin(struct cube_cube *c, const struct cube_bind_wanted *wanted,
		    void (*done)(void *ctx, int code, const struct cube_err *err), void *ctx,
		    struct cube_bind_call **ret, struct cube_err *err);
int cube_unbind_begin(struct cube_cube *c, const char *path,
		      void (*done)(void *ctx, int code, const struct cube_err *err), void *ctx,
		      struct cube_bind_call **ret, struct cube_err *err);
/* Who asked is gone: it is called off if it can be, and done does not come. */
void cube_bind_leave(struct cube_bind_call *call);

json_t *cube_binds_save(const struct cube_cube *c);
int cube_binds_load(struct cube_cube *c, const json_t *list);

#endif

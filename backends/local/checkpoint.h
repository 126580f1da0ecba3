/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: sets of layers that no sandbox has mounted (store.h), each with a record beside it.
 *
 * Volumes are in one that a fork takes, as sets CHECKPOINT.VOLUME, for as long as it is under way.
 *
 * STATE/backends/NAME/checkpoints/ID.json is written when the set is whole, and removed before the set is: a set
 * without a record is swept at the next start. A checkpoint from which a sandbox was restored stays as the *base* of
 * that sandbox's changes after it was deleted, unlisted, as `.ID.json`, until no sandbox needs it. */
#ifndef CUBEFS_BACKENDS_LOCAL_CHECKPOINT_H
#define CUBEFS_BACKENDS_LOCAL_CHECKPOINT_H

#include "backends/local/local_priv.h"

/* What its files are: whose they were, and what they lie over. */
struct cube_local_checkpoint {
	char of[CUBE_ID_MAX + 1];
	char template[CUBE_ID_MAX + 1];
	char hostname[CUBE_ID_MAX + 1];
	bool no_files; /* volumes alone */
	unsigned n_volumes;
	char volumes[CUBE_LOCAL_MOUNTS][CUBE_ID_MAX + 1]; /* uids; each is in a set of its own */
};

#define CUBE_LOCAL_CHECKPOINT_SET (2 * CUBE_ID_MAX + 2)
/* The set of a volume of the checkpoint @cp. Returns @out. */
const char *cube_local_checkpoint_volume(char out[CUBE_LOCAL_CHECKPOINT_SET], const char *cp,
					 const char *volume);

/* -ENOENT: there is no such checkpoint (@hidden: also where it is only a base); -EINVAL: damaged. */
int cube_local_checkpoint_read(const struct cube_local *b, const char *cp, bool hidden,
			       struct cube_local_checkpoint *ret, struct cube_err *err);
/* Is there a checkpoint, or a base, whose files or one of whose volumes are in the set @id? */
bool cube_local_checkpoint_knows(const struct cube_local *b, const char *id);
/* Is there one over that template? */
bool cube_local_checkpoints_use(const struct cube_local *b, const char *template);
/* A sandbox does not need the base @cp any more ("" is harmless): where nobody does and it was deleted, its files
 * go. */
void cube_local_checkpoint_release(struct cube_local *b, const char *cp);
/* At the start, before anything is swept: the records of sandboxes whose restore was cut by the daemon's end say what
 * their files are of. */
void cube_local_restore_finish(struct cube_local *b);
/* At the start: what a daemon that was killed did not let go goes, all but its sets (cube_local_set_sweep). */
void cube_local_checkpoint_sweep(const struct cube_local *b);

/* A sandbox that a daemon left standing still when it was killed goes on. */
void cube_local_checkpoint_thaw(struct cube_local *b, struct local_cube *c);

/* A read only view of its root and its workspace, mounted once and kept until the checkpoint goes; descriptors are
 * borrowed until then. */
int cube_local_view_get(struct cube_local *b, const char *cp, int *ret_root, int *ret_workspace,
			struct cube_err *err);
void cube_local_view_drop(struct cube_local *b, const char *cp);
void cube_local_views_close(struct cube_local *b);

/* ---- the table's ---- */

int cube_local_checkpoint_take(struct cube_backend *b, const char *id, const struct cube_take *take,
			       struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
int cube_local_checkpoint_list(struct cube_backend *b,
			       void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
			       struct cube_err *err);
int cube_local_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err);
int cube_local_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
			       struct cube_err *err);
int cube_local_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_local_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
int cube_local_changes(struct cube_backend *b, const struct cube_changes *what, struct cube_cancel *cancel,
		       struct cube_err *err);

/* ---- for create: the fresh sandbox @c gets the files of @cp, and is told its own name ---- */

int cube_local_create_from(struct cube_local *b, struct local_cube *c, const char *cp,
			   struct cube_cancel *cancel, struct cube_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the upper layers of sandboxes and checkpoints live.
 *
 * A *set* is a directory with the layers of both parts of a sandbox, its root and its /workspace, named by an
 * id: of a sandbox, or of a checkpoint. All sets of an instance are in one directory of one file system, and a
 * store is the way to make, copy and remove them there:
 *
 *   snapshots  btrfs: a set is a subvolume, and a copy shares everything with its origin. Where the state is on
 *              btrfs, or (root) in an image of it that lies in the state directory (image.h)
 *   reflinks   other file systems that share blocks (xfs): copied file by file, data shared
 *   copies     everything else
 *
 * Which one it is is decided when the state directory is first used, and written down there, since a set can be
 * read only where it was made.
 *
 * The parts are kept apart, since a reset takes one and keeps the other; they are one set, since a copy of both
 * must be of one moment. */
#ifndef CUBEFS_BACKENDS_LOCAL_STORE_H
#define CUBEFS_BACKENDS_LOCAL_STORE_H

#include <stdbool.h>

#include "backends/base/cancel.h"
#include "backends/base/conf.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"
#include "backends/local/quota.h"

enum cube_local_part { CUBE_PART_ROOT, CUBE_PART_WORKSPACE };
#define CUBE_PART_COUNT 2

/* O_PATH descriptors of the two directories that an overlay wants. */
struct cube_local_layer {
	int upper, work;
};
#define CUBE_LOCAL_LAYER_NONE                                                                                \
	{                                                                                                    \
		-1, -1                                                                                       \
	}
void cube_local_layer_close(struct cube_local_layer *l);

/* The file system's side of it. @name and @to are entries of the directory @sets. What stops half-way leaves
 * something under the name that remove takes away. */
struct cube_local_store_ops {
	const char *name;
	bool flat; /* a copy costs nothing that grows with what is in the set */
	int (*make)(int sets, const char *name, struct cube_err *err); /* an empty directory, mode 0700 */
	/* @to, which is not there, becomes what @from is; nobody writes to @from meanwhile, or both are of one
	 * moment all the same (flat). Copies owners, modes, times, xattrs, hard links, holes, whiteouts.
	 * -ETIMEDOUT: it would take longer than @limit_ms (0: none; one that is flat has none). */
	int (*copy)(int sets, const char *from, const char *to, uint32_t limit_ms, struct cube_cancel *cancel,
		    struct cube_err *err);
	int (*remove)(int sets, const char *name, struct cube_err *err); /* not there is success */
};
extern const struct cube_local_store_ops cube_local_store_snapshots, cube_local_store_reflinks,
	cube_local_store_copies;

struct cube_local_image;

struct cube_local_store {
	const struct cube_local_store_ops *ops; /* NULL: not open */
	int sets;
	struct cube_local_image *image; /* in which the sets are; NULL: in the state directory */
	char what[200];                 /* one line for people */
	struct cube_local_quota *quota; /* by which a set can be limited; NULL: it cannot */
	char quota_why[160];            /* and why */
};
#define CUBE_LOCAL_STORE_NONE                                                                                \
	{                                                                                                    \
		.ops = NULL, .sets = -1                                                                      \
	}

/* Opens the store of the instance's directory @state (absolute: @path), which is made and chosen at the first
 * use: by the key `store` of @conf (may be NULL), else the best that works. May run mkfs.btrfs. Close with
 * cube_local_store_close, also after a failure. */
enum cube_local_store_how {
	CUBE_STORE_PLAIN, /* without an image: mounting it needs root */
	CUBE_STORE_ANY,
	CUBE_STORE_LOOK, /* only find out which it would be: `what` says so, sets are plain directories */
};
int cube_local_store_open(struct cube_local_store *s, int state, const char *path,
			  const struct cube_conf_section *conf, enum cube_local_store_how how,
			  struct cube_err *err);
void cube_local_store_close(struct cube_local_store *s);

/* ---- Sets. Not two calls for one id at once. ---- */

/* A fresh set of empty layers owned by the ids' 0, mode 0755. */
int cube_local_set_make(const struct cube_local_store *s, const char *id, const struct cube_ns_ids *ids,
			struct cube_err *err);
/* The set @to, which is not there yet, as a copy of @from, fit to be mounted: whole, or nothing. -EINTR; -ETIMEDOUT:
 * not within @limit_ms (0: none), as the store's copy has it. What a failed one within a time has copied stays aside
 * until cube_local_set_discard: to remove it may take longer than something can stand still. */
int cube_local_set_copy_within(const struct cube_local_store *s, const char *from, const char *to,
			       uint32_t limit_ms, struct cube_cancel *cancel, struct cube_err *err);
int cube_local_set_copy(const struct cube_local_store *s, const char *from, const char *to,
			struct cube_cancel *cancel, struct cube_err *err);
/* The same in the place of the set @to, in three steps: a copy is made aside; it takes the place of the set, which is
 * not mounted any more, in one step; what lies aside goes, be it a copy that was not wanted or the old set. */
int cube_local_set_stage(const struct cube_local_store *s, const char *from, const char *to,
			 struct cube_cancel *cancel, struct cube_err *err);
int cube_local_set_switch(const struct cube_local_store *s, const char *to, struct cube_err *err);
/* Before the second: the copy has a mark, the set has none. After it: has it been taken? And the mark goes. */
int cube_local_set_mark(const struct cube_local_store *s, const char *to, struct cube_err *err);
bool cube_local_set_marked(const struct cube_local_store *s, const char *to);
void cube_local_set_unmark(const struct cube_local_store *s, const char *to);
void cube_local_set_discard(const struct cube_local_store *s, const char *to);
/* Puts an empty layer in the place of one part, which is not mounted any more, in one step. */
int cube_local_set_empty(const struct cube_local_store *s, const char *id, enum cube_local_part part,
			 const struct cube_ns_ids *ids, struct cube_err *err);
/* The set @from is the set @to from now on, fit to be a layer below others; it is not mounted. */
int cube_local_set_give(const struct cube_local_store *s, const char *from, const char *to,
			struct cube_err *err);
/* Away with it in one step; not there is success. Interrupted, it can be repeated. */
int cube_local_set_remove(const struct cube_local_store *s, const char *id, struct cube_err *err);
/* What it takes may be @bytes, 0: anything; nothing else is limited by that, and a copy has no limit. -EOPNOTSUPP where
 * the store has no quotas; without a limit that is success. */
int cube_local_set_limit(const struct cube_local_store *s, const char *id, uint64_t bytes,
			 struct cube_err *err);
bool cube_local_set_there(const struct cube_local_store *s, const char *id);
/* Has it the layers of both parts? */
bool cube_local_set_whole(const struct cube_local_store *s, const char *id);
/* -ENOENT: there is no such set. */
int cube_local_set_open(const struct cube_local_store *s, const char *id, enum cube_local_part part,
			struct cube_local_layer *ret, struct cube_err *err);
/* Removes what was left half-way by a process that was killed, and the sets that nobody knows. At the start,
 * while nothing else is done with the store. */
void cube_local_set_sweep(const struct cube_local_store *s, bool (*known)(void *ctx, const char *id),
			  void *ctx);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of the worker before, under their numbers. */
#include <unistd.h>

#include "backends/base/log.h"
#include "fs/fuse/priv.h"

#define RESTORE_FILES_MS 20000 /* for backends to give the files of their sandboxes */
#define RESTORE_JOBS_MS  5000  /* for agents to say how what they run stands */

static void restore_adopted(void *ctx, uint32_t record, struct cube_handle *h)
{
	struct cube_fuse *f = ctx;

	cube_fh_adopt(&f->fh, record, h);
}

int cube_fuse_restore(struct cube_fuse *f, struct cube_tree *tree)
{
	return cube_tree_restore(tree, restore_adopted, f);
}

static bool restore_file(struct cube_fuse *f, uint32_t i, const struct cube_keep_handle *k)
{
	struct cube_files_handle *h = NULL;
	uint64_t id = atomic_load(&k->key);

	if (k->fd < 0 || cube_files_adopt(f->files, id, k->fd, k->flags, false, &h) < 0)
		return false;
	if (cube_fuse_pass_adopt(&f->pass, id, k->backing) < 0) {
		cube_files_release(h);
		return false;
	}
	cube_fh_adopt(&f->fh, i, h);
	return true;
}

static bool restore_dir(struct cube_fuse *f, uint32_t i, const struct cube_keep_handle *k)
{
	struct cube_files_handle *h = NULL;
	struct cube_fuse_dir *d;
	uint64_t id = atomic_load(&k->key);

	if (k->fd == CUBE_KEEP_LOST) /* without one it would be the empty directory of one that removes */
		return false;
	if (k->fd >= 0 && cube_files_adopt(f->files, id, k->fd, k->flags, true, &h) < 0)
		return false;
	d = cube_fuse_dir_new(h, k->shown_ino);
	if (d == NULL) {
		cube_files_release(h);
		return false;
	}
	cube_fh_adopt(&f->fh, i, d);
	return true;
}

void cube_fuse_restore_files(struct cube_fuse *f)
{
	const struct cube_keep_table *t = &f->o.keep->handles;
	unsigned lost = 0;

	cube_tree_restore_jobs(f->tree, RESTORE_JOBS_MS);
	cube_tree_restore_files(f->tree, RESTORE_FILES_MS);
	for (uint32_t i = 0; i < cube_keep_used(t); i++) {
		const struct cube_keep_handle *k = cube_keep_at(t, i);
		bool ok = true;

		if (atomic_load(&k->key) == 0 || k->kind == CUBE_KEEP_TREE)
			continue;
		ok = k->kind == CUBE_KEEP_FILE ? restore_file(f, i, k) : restore_dir(f, i, k);
		if (ok)
			continue;
		lost++;
		cube_keep_give(&f->o.keep->handles, i);
	}
	if (lost > 0)
		cube_log(CUBE_LOG_INFO, "fuse", "%u open files were of what is gone", lost);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where templates grow, and what is left of those that did not end. */
#include "backends/local/import_tmp.h"
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/base/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP_SUFFIX ".tmp"
#define TMP_GONE   ".gone"
#define TMP_KEPT   "download." /* and its checksum */
#define TMP_ASIDE  "image"
#define TMP_TREE   "tree"

struct tmp_keep {
	const char *name; /* NULL: of any checksum */
	bool found;
};

static int tmp_remove(void *ctx, int dir, const char *name)
{
	struct tmp_keep *k = ctx;

	if (k->name ? strcmp(name, k->name) == 0 : strncmp(name, TMP_KEPT, strlen(TMP_KEPT)) == 0)
		k->found = true;
	else
		(void)cube_file_remove_tree(dir, name);
	return 0;
}

/* Removes all in @dir but the file @kept (of any checksum where it is NULL). Says whether that is there. */
static bool tmp_clear(int dir, const char *kept)
{
	struct tmp_keep k = {.name = kept};

	(void)cube_file_each(dir, ".", tmp_remove, &k);
	return k.found;
}

static int tmp_lock(struct cube_local *b, struct cube_local_import_tmp *t)
{
	cube_auto_fd dir = openat(b->templates, t->entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	t->dir = cube_steal_fd(&dir);
	return 0;
}

static void tmp_names(struct cube_local_import_tmp *t, const char *name)
{
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	(void)snprintf(t->entry, sizeof(t->entry), ".%s" TMP_SUFFIX, name);
}

static int tmp_root(struct cube_local_import_tmp *t, const struct cube_ns_ids *ids, int *ret_root,
		    struct cube_err *err)
{
	cube_auto_fd tree = -1;
	int rc = cube_file_mkdir(t->dir, TMP_TREE, 0755, &tree);

	if (rc == 0)
		rc = cube_file_mkdir(tree, CUBE_LOCAL_ROOT_DIR, 0755, ret_root);
	if (rc == 0 && (fchmodat(tree, CUBE_LOCAL_ROOT_DIR, 0755, 0) < 0 ||
			fchownat(tree, CUBE_LOCAL_ROOT_DIR, ids->uid, ids->gid, 0) < 0))
		rc = -errno;
	return rc < 0 ? cube_fail(err, rc, "cannot make a directory for template %s: %s", t->name,
				  cube_errno_text(rc))
		      : 0;
}

int cube_local_import_tmp_begin(struct cube_local *b, const struct cube_template_order *o,
				struct cube_local_import_tmp *ret, int *ret_root, struct cube_err *err)
{
	int rc;

	tmp_names(ret, o->name);
	if (o->fd < 0 && o->sha256 != NULL)
		(void)snprintf(ret->kept, sizeof(ret->kept), TMP_KEPT "%s", o->sha256);
	if (mkdirat(b->templates, ret->entry, 0700) < 0 && errno != EEXIST)
		return cube_fail_errno(err, "cannot make a directory for template %s", o->name);
	rc = tmp_lock(b, ret);
	if (rc == -EWOULDBLOCK)
		return cube_fail(err, -EBUSY, "template %s is being imported", o->name);
	if (rc < 0)
		return cube_fail(err, rc, "cannot lock template %s: %s", o->name, cube_errno_text(rc));
	(void)tmp_clear(ret->dir, ret->kept);
	return tmp_root(ret, &b->host->ids, ret_root, err);
}

int cube_local_import_tmp_aside(struct cube_local_import_tmp *t, const struct cube_ns_ids *ids, int *ret_root,
				struct cube_err *err)
{
	if (renameat(t->dir, TMP_TREE, t->dir, TMP_ASIDE) < 0)
		return cube_fail_errno(err, "cannot move the image of template %s", t->name);
	return tmp_root(t, ids, ret_root, err);
}

int cube_local_import_tmp_name(struct cube_local *b, struct cube_local_import_tmp *t, struct cube_err *err)
{
	int rc = cube_local_template_unused(b, t->name, err);

	if (rc < 0)
		return rc;
	(void)cube_file_remove_tree(t->dir, TMP_ASIDE);
	if (t->kept[0] != '\0')
		(void)unlinkat(t->dir, t->kept, 0);
	if (syncfs(t->dir) < 0)
		return cube_fail_errno(err, "cannot write template %s", t->name);
	rc = cube_local_template_remove(&b->base, t->name, err);
	if (rc < 0)
		return rc;
	if (renameat(b->templates, t->entry, b->templates, t->name) < 0)
		return cube_fail_errno(err, "cannot name template %s", t->name);
	return 0;
}

void cube_local_import_tmp_drop(struct cube_local *b, struct cube_local_import_tmp *t, bool keep)
{
	if (t->dir < 0)
		return;
	if (!keep)
		(void)cube_file_remove_tree(b->templates, t->entry);
	else if (!tmp_clear(t->dir, t->kept))
		(void)unlinkat(b->templates, t->entry, AT_REMOVEDIR);
}

void cube_local_import_tmp_end(struct cube_local_import_tmp *t)
{
	if (t->dir >= 0)
		close(cube_steal_fd(&t->dir));
}

/* ---- what is left over ---- */

void cube_local_import_forget(struct cube_local *b, const char *name)
{
	struct cube_local_import_tmp t = CUBE_LOCAL_IMPORT_TMP;

	tmp_names(&t, name);
	if (tmp_lock(b, &t) == 0)
		cube_local_import_tmp_drop(b, &t, false);
	cube_local_import_tmp_end(&t);
}

static bool sweep_ends(const char *entry, const char *suffix)
{
	size_t n = strlen(entry), k = strlen(suffix);

	return entry[0] == '.' && n > k + 1 && strcmp(entry + n - k, suffix) == 0;
}

static int sweep_one(void *ctx, int dir, const char *entry)
{
	struct cube_local_import_tmp t = CUBE_LOCAL_IMPORT_TMP;

	if (sweep_ends(entry, TMP_GONE))
		(void)cube_file_remove_tree(dir, entry);
	if (!sweep_ends(entry, TMP_SUFFIX))
		return 0;
	(void)snprintf(t.entry, sizeof(t.entry), "%s", entry);
	if (tmp_lock(ctx, &t) == 0 && !tmp_clear(t.dir, NULL))
		(void)unlinkat(dir, entry, AT_REMOVEDIR);
	cube_local_import_tmp_end(&t);
	return 0;
}

void cube_local_import_sweep(struct cube_local *b)
{
	if (!atomic_exchange(&b->swept, true))
		(void)cube_file_each(b->templates, ".", sweep_one, b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's root is made of: the template `host`, and those that were imported.
 *
 * Another one is TEMPLATES/NAME/ with the file info.json and the directory `tree` (in it the root,
 * CUBE_LOCAL_ROOT_DIR), which lies over those of the templates that info.json names; a template that was built
 * has none of its own, and one of a checkpoint has them in a set of the store. A name that begins with a dot is no
 * template: what is being imported or removed. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "backends/local/hidden.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"
#include "backends/local/overlay.h"
#include "backends/local/template_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATE_HOST CUBE_LOCAL_TEMPLATE_HOST

const char *cube_local_template_default(const struct cube_local *b)
{
	(void)b;
	return TEMPLATE_HOST;
}

void cube_local_base_close(struct cube_local_base *base)
{
	for (unsigned i = 0; i < base->n_lower; i++)
		if (base->stacked && i + 1 == base->n_lower)
			cube_local_keep_end(base->lower[i]);
		else
			close(base->lower[i]);
	base->n_lower = 0;
	base->stacked = false;
}

/* Where marks can be written, all of this machine's root lies below and the mask points into it; else
 * the mask is alone and usr and opt are bound. */
static int template_open_host(struct cube_local *b, struct cube_local_base *ret, struct cube_err *err)
{
	int rc, slash;

	if (!b->mask)
		return cube_fail(err, -EOPNOTSUPP, "the template host cannot be used: %s", b->host_why);
	rc = cube_local_mask_get(b->mask, &ret->lower[ret->n_lower], err);
	if (rc < 0)
		return rc;
	ret->n_lower++;
	if (b->host->slash < 0)
		return 0;
	slash = fcntl(b->host->slash, F_DUPFD_CLOEXEC, 3);
	if (slash < 0) {
		rc = cube_fail_errno(err, "out of descriptors");
		cube_local_base_close(ret);
		return rc;
	}
	ret->lower[ret->n_lower++] = slash;
	return 0;
}

static bool template_shows_host(const struct cube_local *b, const char *name)
{
	char bottom[CUBE_ID_MAX + 1];

	cube_local_template_bottom(b->templates, name, bottom);
	return strcmp(bottom, TEMPLATE_HOST) == 0;
}

void cube_local_template_binds(const struct cube_local *b, const char *name, struct cube_local_shown *ret)
{
	ret->n = 0;
	if (b->host->slash < 0 && template_shows_host(b, name))
		cube_local_mask_shown(ret);
}

int cube_local_template_wait(const struct cube_local *b, const char *name, struct cube_cancel *cancel,
			     struct cube_err *err)
{
	int rc = b->host->slash >= 0 && template_shows_host(b, name) ? cube_local_hidden_wait(cancel) : 0;

	return rc < 0 ? cube_fail(err, rc, "interrupted") : 0;
}

/* The set of the store in which its own files are: a layer's, or what was kept of a checkpoint. False: none. */
static bool template_set(const struct cube_local *b, const char *name, char ret[CUBE_ID_MAX + 1])
{
	struct cube_local_template t;
	bool layer = cube_name_layer_ok(name);

	(void)snprintf(ret, CUBE_ID_MAX + 1, "%s", layer ? name : "");
	if (layer || strcmp(name, TEMPLATE_HOST) == 0)
		return layer;
	if (cube_local_template_read(b->templates, name, &t))
		memcpy(ret, t.set, sizeof(t.set));
	cube_local_template_done(&t);
	return *ret;
}

/* A part of a set as one more layer below. */
static int template_add_set(struct cube_local *b, const char *set, enum cube_local_part part,
			    struct cube_local_base *ret, struct cube_err *err)
{
	struct cube_local_layer layer = CUBE_LOCAL_LAYER_NONE;
	int rc = cube_local_set_open(&b->store, set, part, &layer, err);

	if (rc == 0)
		ret->lower[ret->n_lower++] = cube_steal_fd(&layer.upper);
	cube_local_layer_close(&layer);
	return rc;
}

bool cube_local_template_own(const struct cube_local *b, const char *name)
{
	char path[CUBE_ID_MAX + 8], set[CUBE_ID_MAX + 1];

	if (template_set(b, name, set))
		return cube_local_set_there(&b->store, set);
	(void)snprintf(path, sizeof(path), "%s/tree", name);
	return faccessat(b->templates, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* -ENOENT: it has no files of its own. */
static int template_open_tree(struct cube_local *b, const char *name, struct cube_local_base *ret,
			      struct cube_err *err)
{
	char path[CUBE_ID_MAX + 8], set[CUBE_ID_MAX + 1];
	int fd = -1;

	if (template_set(b, name, set))
		return template_add_set(b, set, CUBE_PART_ROOT, ret, err);
	(void)snprintf(path, sizeof(path), "%s/tree", name);
	fd = openat(b->templates, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cube_fail(err, errno == ENOENT ? -ENOENT : -errno,
				 "no template %s: see backends/%s/templates, or import one", name,
				 b->base.name);
	ret->lower[ret->n_lower++] = fd;
	return 0;
}

/* Does this machine's root, as a layer, have the directories of the store inside? */
static bool template_holds_store(const struct cube_local *b)
{
	struct stat slash, sets;

	return b->host->slash >= 0 && fstat(b->host->slash, &slash) == 0 &&
	       fstat(b->store.sets, &sets) == 0 && slash.st_dev == sets.st_dev;
}

/* Overlayfs takes no layer below that lies inside another one. So where layers of the store lie over this machine's
 * root and inside it, that root is below them as a file system of its own: an overlay, which is a layer then. (What is
 * mounted over two cannot be passed through by FUSE, hence only there.) */
static int template_add_host(struct cube_local *b, struct cube_local_base *ret, struct cube_err *err)
{
	struct cube_local_base host = {.n_lower = 0};
	struct cube_local_overlay o = {.source = TEMPLATE_HOST, .n_lower = 2, .upper = -1, .work = -1};
	int rc;

	if (ret->n_lower == 0 || !template_holds_store(b))
		return template_open_host(b, ret, err);
	rc = template_open_host(b, &host, err);
	if (rc < 0)
		return rc;
	o.flags = b->overlay_flags & (unsigned)(CUBE_OVERLAY_USERXATTR | CUBE_OVERLAY_XINO);
	memcpy(o.lower, host.lower, 2 * sizeof(host.lower[0]));
	rc = cube_local_overlay_mount(&o, "", &ret->lower[ret->n_lower], err);
	if (rc == 0) {
		ret->n_lower++;
		ret->stacked = true;
	}
	cube_local_base_close(&host);
	return rc;
}

static int template_open_below(struct cube_local *b, const struct cube_local_template *t,
			       struct cube_local_base *ret, struct cube_err *err)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < t->n_below; i++) {
		if (strcmp(t->below[i], TEMPLATE_HOST) == 0) {
			ret->index = false;
			rc = template_add_host(b, ret, err);
		} else {
			rc = template_open_tree(b, t->below[i], ret, err);
		}
	}
	return rc;
}

int cube_local_template_open(struct cube_local *b, const char *name, struct cube_local_base *ret,
			     struct cube_err *err)
{
	struct cube_local_template t;
	int rc;

	*ret = (struct cube_local_base){.n_lower = 0};
	if (strcmp(name, TEMPLATE_HOST) == 0)
		return template_open_host(b, ret, err);
	if (!cube_local_template_name_ok(name))
		return cube_fail(err, -ENOENT, "no template '%.64s'", name);
	ret->index = true;
	(void)cube_local_template_read(b->templates, name, &t);
	rc = template_open_tree(b, name, ret, err);
	if (rc == 0 || (rc == -ENOENT && t.n_below > 0))
		rc = template_open_below(b, &t, ret, err);
	cube_local_template_done(&t);
	if (rc < 0)
		cube_local_base_close(ret);
	return rc;
}

/* A layer of a build has no /workspace: it was the build's. */
static int template_add_workspace(struct cube_local *b, const char *name, struct cube_local_base *ret,
				  struct cube_err *err)
{
	char set[CUBE_ID_MAX + 1];

	if (cube_name_layer_ok(name) || !template_set(b, name, set))
		return 0;
	return template_add_set(b, set, CUBE_PART_WORKSPACE, ret, err);
}

int cube_local_template_workspace(struct cube_local *b, const char *name, struct cube_local_base *ret,
				  struct cube_err *err)
{
	struct cube_local_template t;
	int rc;

	*ret = (struct cube_local_base){.index = true};
	if (strcmp(name, TEMPLATE_HOST) == 0 || !cube_local_template_name_ok(name))
		return 0;
	(void)cube_local_template_read(b->templates, name, &t);
	rc = template_add_workspace(b, name, ret, err);
	for (unsigned i = 0; rc == 0 && i < t.n_below; i++)
		rc = template_add_workspace(b, t.below[i], ret, err);
	cube_local_template_done(&t);
	if (rc < 0)
		cube_local_base_close(ret);
	return rc;
}

int cube_local_template_check_run(struct cube_local *b, const char *name, struct cube_err *err)
{
	struct cube_local_template t;
	bool ok;

	if (strcmp(name, TEMPLATE_HOST) == 0 || !cube_local_template_name_ok(name))
		return 0;
	ok = !cube_local_template_read(b->templates, name, &t) || !*t.t.reason;
	cube_local_template_done(&t);
	return ok ? 0 : cube_fail(err, -EOPNOTSUPP, "template %s runs no sandbox: %s", name, t.t.reason);
}

/* ---- list ---- */

static void list_host(const struct cube_local *b, void (*each)(void *ctx, const struct cube_template *t),
		      void *ctx)
{
	struct cube_template t = {.name = TEMPLATE_HOST, .source = "this machine", .size = UINT64_MAX};

	(void)snprintf(t.state, sizeof(t.state), "%s", b->mask ? "ready" : "error");
	if (!b->mask)
		(void)snprintf(t.reason, sizeof(t.reason), "%.199s", b->host_why);
	each(ctx, &t);
}

/* .NAME.tmp: locked by who imports it; without a lock it was left behind. */
static bool list_growing(int templates, const char *entry, struct cube_template *ret)
{
	size_t n = strlen(entry);
	cube_auto_fd dir = -1;

	*ret = (struct cube_template){.size = UINT64_MAX};
	if (n < 6 || entry[0] != '.' || strcmp(entry + n - 4, ".tmp") != 0)
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(n - 5), entry + 1);
	dir = openat(templates, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || !cube_name_template_ok(ret->name) || faccessat(templates, ret->name, F_OK, 0) == 0)
		return false;
	if (flock(dir, LOCK_SH | LOCK_NB) < 0) {
		(void)snprintf(ret->state, sizeof(ret->state), "importing");
	} else {
		(void)snprintf(ret->state, sizeof(ret->state), "error");
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "its import was interrupted: import it again");
	}
	return true;
}

int cube_local_template_list(struct cube_backend *base,
			     void (*each)(void *ctx, const struct cube_template *t), void *ctx,
			     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	int fd = openat(b->templates, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct cube_local_template t;
	const struct dirent *e;

	if (!d) {
		rc = cube_fail_errno(err, "cannot list the templates");
		if (fd >= 0)
			close(fd);
		return rc;
	}
	cube_local_import_sweep(b);
	list_host(b, each, ctx);
	while ((e = readdir(d)) != NULL) {
		if (cube_local_template_name_ok(e->d_name)) {
			(void)cube_local_template_read(b->templates, e->d_name, &t);
			cube_local_template_done(&t);
		} else if (!list_growing(b->templates, e->d_name, &t.t)) {
			continue;
		}
		each(ctx, &t.t);
	}
	closedir(d);
	return 0;
}

/* ---- remove ---- */

int cube_local_template_remove(struct cube_backend *base, const char *name, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	char gone[CUBE_ID_MAX + 16], set[CUBE_ID_MAX + 1];
	bool has;
	int rc;

	if (strcmp(name, TEMPLATE_HOST) == 0)
		return cube_fail(err, -EPERM,
				 "the template host is this machine itself and cannot be removed");
	if (!cube_local_template_name_ok(name))
		return cube_fail(err, -ENOENT, "no template '%.64s'", name);
	rc = cube_local_template_unused(b, name, err);
	if (rc < 0)
		return rc;
	cube_local_import_forget(b, name);
	has = template_set(b, name, set);
	(void)snprintf(gone, sizeof(gone), ".%s.gone", name);
	(void)cube_file_remove_tree(b->templates, gone);
	if (renameat(b->templates, name, b->templates, gone) < 0)
		return errno == ENOENT ? 0 : cube_fail_errno(err, "cannot remove template %s", name);
	if (has) {
		rc = cube_local_set_remove(&b->store, set, err);
		if (rc < 0)
			return rc;
	}
	rc = cube_file_remove_tree(b->templates, gone);
	return rc < 0 ? cube_fail(err, rc, "cannot remove template %s: %s", name, cube_errno_text(rc)) : 0;
}

int cube_local_template_config(struct cube_backend *base, const char *name, struct cube_template_config *ret,
			       struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_local_template t;
	int rc = 0;

	if (strcmp(name, TEMPLATE_HOST) == 0)
		return 0;
	if (!cube_local_template_read(b->templates, name, &t))
		rc = -ENOENT;
	if (rc == 0)
		rc = cube_template_config_copy(ret, &t.config);
	cube_local_template_done(&t);
	return rc < 0 ? cube_fail(err, rc, "template %s: %s", name, cube_errno_text(rc)) : 0;
}

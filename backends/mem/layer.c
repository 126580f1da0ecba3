/* SPDX-License-Identifier: Apache-2.0 */
/* Templates made of sandboxes and of other templates: copies, as all templates here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define FOLDER "templates"
#define PART   FOLDER "/.made"

/* An empty directory beside, which takes its place when it is complete. */
static int made_begin(struct mem *m, int *ret)
{
	int r = cube_file_remove_tree(m->dir, PART);

	if (r == 0 && mkdirat(m->dir, PART, 0755) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret = openat(m->dir, PART, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static int made_name(struct mem *m, const char *name)
{
	cube_auto_str path = cube_asprintf(FOLDER "/%s", name);
	int r = path != NULL ? cube_file_remove_tree(m->dir, path) : -ENOMEM;

	if (r == 0 && renameat(m->dir, PART, m->dir, path) < 0)
		r = -errno;
	return r;
}

/* Under the lock. */
static int made_enlist(struct mem *m, const struct cube_template *t,
		       const struct cube_template_config *config)
{
	struct mem_template *e = mem_template_find(m, t->name);
	struct cube_template_config copy;

	cube_template_config_init(&copy);
	if (config != NULL && cube_template_config_copy(&copy, config) < 0)
		return -ENOMEM;
	if (e == NULL)
		e = mem_template_add(m, t->name);
	if (e == NULL) {
		cube_template_config_done(&copy);
		return -ENOMEM;
	}
	cube_template_config_done(&e->config);
	e->config = copy;
	e->t = *t;
	(void)snprintf(e->t.state, sizeof(e->t.state), "ready");
	return 0;
}

int mem_template_commit(struct cube_backend *b, const char *id, const char *name, struct cube_cancel *cancel,
			struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct cube_template t = {.source = "a step of a build", .size = UINT64_MAX};
	cube_auto_str root = cube_asprintf("%s/root", id);
	cube_auto_fd from = root != NULL ? openat(m->dir, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	cube_auto_fd to = -1;
	struct mem_copied copied;
	int r;

	if (from < 0)
		return cube_fail(err, -ENOENT, "no sandbox %s", id);
	(void)snprintf(t.name, sizeof(t.name), "%s", name);
	pthread_mutex_lock(&m->lock);
	r = mem_template_find(m, name) != NULL ? 1 : made_begin(m, &to);
	if (r == 0)
		r = mem_copy_tree(from, to, cancel, &copied, err);
	if (r == 0)
		r = made_name(m, name);
	if (r == 0)
		r = made_enlist(m, &t, NULL);
	pthread_mutex_unlock(&m->lock);
	return r < 0 ? cube_fail(err, r, "make layer %s: %s", name, cube_errno_text(r)) : 0;
}

/* Under the lock. 1: it is there already. */
static int derive_may(struct mem *m, const char *base, const struct cube_template *t, struct cube_err *err)
{
	const struct mem_template *old = mem_template_find(m, t->name);

	if (mem_template_find(m, base) == NULL)
		return cube_fail(err, -ENOENT, "no template %s", base);
	if (old == NULL)
		return 0;
	if (strcmp(old->t.fingerprint, t->fingerprint) == 0)
		return 1;
	return mem_template_unused(m, t->name, err);
}

/* ---- of a checkpoint ---- */

#define WORKSPACE     FOLDER "/.%s.workspace" /* what sandboxes made of it begin with; none: nothing */
#define WORKSPACE_NEW FOLDER "/.workspace"    /* of one that is being made */

int mem_template_drop_workspace(struct mem *m, const char *name)
{
	cube_auto_str path = cube_asprintf(WORKSPACE, name);

	return path != NULL ? cube_file_remove_tree(m->dir, path) : -ENOMEM;
}

int mem_template_fill_workspace(struct mem *m, const char *name, int to, struct cube_cancel *cancel,
				struct cube_err *err)
{
	cube_auto_str path = cube_asprintf(WORKSPACE, name);
	cube_auto_fd from =
		path != NULL ? openat(m->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct mem_copied copied;

	if (path == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	if (from < 0)
		return errno == ENOENT ? 0 : cube_fail_errno(err, "template %s", name);
	return mem_copy_tree(from, to, cancel, &copied, err);
}

/* Under the lock. */
static int keep_workspace(struct mem *m, const char *name, int *ret, struct cube_err *err)
{
	int r = cube_file_remove_tree(m->dir, WORKSPACE_NEW);

	if (r == 0 && mkdirat(m->dir, WORKSPACE_NEW, 0755) < 0)
		r = -errno;
	if (r < 0)
		return cube_fail(err, r, "make template %s: %s", name, cube_errno_text(r));
	*ret = openat(m->dir, WORKSPACE_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? cube_fail_errno(err, "make template %s", name) : 0;
}

/* Both copies get the name, in the place of those of an earlier one. */
static int keep_name(struct mem *m, const char *name)
{
	cube_auto_str path = cube_asprintf(WORKSPACE, name);
	int r = path != NULL ? made_name(m, name) : -ENOMEM;

	if (r == 0)
		r = cube_file_remove_tree(m->dir, path);
	return r == 0 && renameat(m->dir, WORKSPACE_NEW, m->dir, path) < 0 ? -errno : r;
}

/* Under the lock: the copies, then the name. */
static int keep_make(struct mem *m, const char *cp, const struct cube_template *t,
		     const struct cube_template_config *config, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	cube_auto_fd root = -1;
	cube_auto_fd workspace = -1;
	int r = made_begin(m, &root);

	if (r < 0)
		return cube_fail(err, r, "make template %s: %s", t->name, cube_errno_text(r));
	r = keep_workspace(m, t->name, &workspace, err);
	if (r == 0)
		r = mem_checkpoint_fill(m, cp, root, workspace, cancel, err);
	if (r == 0) {
		r = keep_name(m, t->name);
		if (r == 0)
			r = made_enlist(m, t, config);
		if (r < 0)
			(void)cube_fail(err, r, "make template %s: %s", t->name, cube_errno_text(r));
	}
	if (r < 0)
		(void)cube_file_remove_tree(m->dir, WORKSPACE_NEW);
	return r;
}

int mem_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	char of[CUBE_ID_MAX + 1];
	const struct mem_template *old, *source;
	int r = mem_checkpoint_template(m, cp, of, err);

	if (r < 0)
		return r;
	if (strcmp(t->name, MEM_TEMPLATE_BASE) == 0)
		return cube_fail(err, -EBUSY, "template %s is built in: take another name", t->name);
	pthread_mutex_lock(&m->lock);
	source = mem_template_find(m, of);
	old = mem_template_find(m, t->name);
	if (old == NULL || strcmp(old->t.fingerprint, t->fingerprint) != 0) {
		r = old != NULL ? mem_template_unused(m, t->name, err) : 0;
		if (r == 0)
			r = keep_make(m, cp, t, source != NULL ? &source->config : NULL, cancel, err);
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* ---- of another template ---- */

int mem_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
			const struct cube_template_config *config, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	cube_auto_fd to = -1;
	int r;

	if (strcmp(t->name, MEM_TEMPLATE_BASE) == 0)
		return cube_fail(err, -EBUSY, "template %s is built in: take another name", t->name);
	pthread_mutex_lock(&m->lock);
	r = derive_may(m, base, t, err);
	if (r != 0) {
		pthread_mutex_unlock(&m->lock);
		return r < 0 ? r : 0;
	}
	r = made_begin(m, &to);
	if (r == 0)
		r = mem_tree_fill(m, base, to, NULL, err);
	if (r == 0)
		r = made_name(m, t->name);
	if (r == 0)
		r = made_enlist(m, t, config);
	pthread_mutex_unlock(&m->lock);
	return r < 0 ? cube_fail(err, r, "make template %s: %s", t->name, cube_errno_text(r)) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of layers: SETS/ID/{root,workspace}/{upper,work}. A name with a dot in front is half-way: `.ID.new` is
 * being made, `.ID.gone` is being removed. */
#include "backends/local/store.h"

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SET_NAME 96 /* bytes of a name here, with NUL */
#define SET_MARK "restored"

static const char *const set_parts[CUBE_PART_COUNT] = {
	[CUBE_PART_ROOT] = "root",
	[CUBE_PART_WORKSPACE] = "workspace",
};

void cube_local_layer_close(struct cube_local_layer *l)
{
	if (l->upper >= 0)
		close(cube_steal_fd(&l->upper));
	if (l->work >= 0)
		close(cube_steal_fd(&l->work));
}

static const char *set_name(char out[SET_NAME], const char *id, const char *suffix)
{
	(void)snprintf(out, SET_NAME, ".%.64s.%s", id, suffix);
	return out;
}

/* ---- make ---- */

static int set_owned(int dir, const char *name, const struct cube_ns_ids *ids)
{
	if (mkdirat(dir, name, 0700) < 0)
		return -errno;
	if (fchownat(dir, name, ids->uid, ids->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dir, name, 0755, 0) < 0)
		return -errno;
	return 0;
}

/* An empty layer under the name @name of the set @set. */
static int set_layer(int set, const char *name, const struct cube_ns_ids *ids)
{
	cube_auto_fd dir = -1;
	int rc = cube_file_mkdir(set, name, 0700, &dir);

	if (rc == 0)
		rc = set_owned(dir, "upper", ids);
	if (rc == 0)
		rc = set_owned(dir, "work", ids);
	return rc;
}

int cube_local_set_make(const struct cube_local_store *s, const char *id, const struct cube_ns_ids *ids,
			struct cube_err *err)
{
	cube_auto_fd set = -1;
	int rc = s->ops->make(s->sets, id, err);

	if (rc < 0)
		return rc;
	set = openat(s->sets, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = set < 0 ? -errno : 0;
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(set_parts); i++)
		rc = set_layer(set, set_parts[i], ids);
	if (rc == 0)
		return 0;
	(void)s->ops->remove(s->sets, id, NULL);
	return cube_fail(err, rc, "cannot make the layers of %s: %s", id, cube_errno_text(rc));
}

int cube_local_set_open(const struct cube_local_store *s, const char *id, enum cube_local_part part,
			struct cube_local_layer *ret, struct cube_err *err)
{
	struct cube_local_layer l = CUBE_LOCAL_LAYER_NONE;
	char path[SET_NAME + 16];
	cube_auto_fd dir = -1;
	int rc = 0;

	(void)snprintf(path, sizeof(path), "%.64s/%s", id, set_parts[part]);
	dir = openat(s->sets, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0) {
		l.upper = openat(dir, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		l.work = openat(dir, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (l.upper < 0 || l.work < 0) {
		rc = cube_fail_errno(err, "cannot open the layer %s", path);
		cube_local_layer_close(&l);
		return rc;
	}
	*ret = l;
	return 0;
}

bool cube_local_set_there(const struct cube_local_store *s, const char *id)
{
	return faccessat(s->sets, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool cube_local_set_whole(const struct cube_local_store *s, const char *id)
{
	bool whole = true;

	for (unsigned part = 0; whole && part < CUBE_PART_COUNT; part++) {
		struct cube_local_layer l = CUBE_LOCAL_LAYER_NONE;

		whole = cube_local_set_open(s, id, (enum cube_local_part)part, &l, NULL) == 0;
		cube_local_layer_close(&l);
	}
	return whole;
}

/* ---- copy ---- */

/* Marks of overlayfs that bind a layer to the place where it was mounted. They are made anew at the next mount;
 * with those of the origin it would be refused. What the index (the hard links of layers below) says stays. */
static int set_unbind(int layer)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{"upper", "overlay.origin"},
		{"upper", "overlay.uuid"},
		{"work/index", "overlay.upper"},
		{"work/index", "overlay.origin"},
	};
	static const char *const spaces[] = {"trusted", "user"};

	for (size_t i = 0; i < CUBE_COUNT(marks); i++) {
		cube_auto_fd fd =
			openat(layer, marks[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char name[48];

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return -errno;
		for (size_t k = 0; k < CUBE_COUNT(spaces); k++) {
			(void)snprintf(name, sizeof(name), "%s.%s", spaces[k], marks[i].name);
			if (fremovexattr(fd, name) < 0 && errno != ENODATA && errno != EOPNOTSUPP &&
			    errno != EPERM)
				return -errno;
		}
	}
	return 0;
}

static int set_unbind_all(const struct cube_local_store *s, const char *name, struct cube_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(set_parts); i++) {
		char path[SET_NAME + 16];
		cube_auto_fd layer = -1;

		(void)snprintf(path, sizeof(path), "%s/%s", name, set_parts[i]);
		layer = openat(s->sets, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = layer < 0 ? -errno : set_unbind(layer);
	}
	return rc < 0 ? cube_fail(err, rc, "cannot prepare the layers in %s: %s", name, cube_errno_text(rc))
		      : 0;
}

/* A copy under the name of one that is being made. */
static int set_copy_aside(const struct cube_local_store *s, const char *from, const char *aside,
			  uint32_t limit_ms, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = s->ops->remove(s->sets, aside, err);

	if (rc == 0)
		rc = s->ops->copy(s->sets, from, aside, limit_ms, cancel, err);
	if (rc == 0)
		rc = set_unbind_all(s, aside, err);
	return rc;
}

int cube_local_set_copy_within(const struct cube_local_store *s, const char *from, const char *to,
			       uint32_t limit_ms, struct cube_cancel *cancel, struct cube_err *err)
{
	char aside[SET_NAME];
	int rc = set_copy_aside(s, from, set_name(aside, to, "new"), limit_ms, cancel, err);

	if (rc == 0 && renameat2(s->sets, aside, s->sets, to, RENAME_NOREPLACE) < 0)
		rc = cube_fail_errno(err, "cannot put the copy of %s in its place", from);
	return rc;
}

int cube_local_set_copy(const struct cube_local_store *s, const char *from, const char *to,
			struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = cube_local_set_copy_within(s, from, to, 0, cancel, err);

	if (rc < 0)
		cube_local_set_discard(s, to);
	return rc;
}

int cube_local_set_stage(const struct cube_local_store *s, const char *from, const char *to,
			 struct cube_cancel *cancel, struct cube_err *err)
{
	char aside[SET_NAME];
	int rc = set_copy_aside(s, from, set_name(aside, to, "new"), 0, cancel, err);

	if (rc < 0)
		cube_local_set_discard(s, to);
	return rc;
}

int cube_local_set_give(const struct cube_local_store *s, const char *from, const char *to,
			struct cube_err *err)
{
	int rc = set_unbind_all(s, from, err);

	if (rc == 0 && renameat2(s->sets, from, s->sets, to, RENAME_NOREPLACE) < 0)
		rc = cube_fail_errno(err, "cannot give the layers of %s away", from);
	return rc;
}

int cube_local_set_switch(const struct cube_local_store *s, const char *to, struct cube_err *err)
{
	char aside[SET_NAME];

	if (renameat2(s->sets, set_name(aside, to, "new"), s->sets, to, RENAME_EXCHANGE) < 0)
		return cube_fail_errno(err, "cannot put the copy in the place of %s", to);
	return 0;
}

static const char *set_mark(char out[SET_NAME + 16], const char *name)
{
	(void)snprintf(out, SET_NAME + 16, "%s/" SET_MARK, name);
	return out;
}

int cube_local_set_mark(const struct cube_local_store *s, const char *to, struct cube_err *err)
{
	char aside[SET_NAME], path[SET_NAME + 16];
	cube_auto_fd fd = -1;

	if (unlinkat(s->sets, set_mark(path, to), 0) < 0 && errno != ENOENT)
		return cube_fail_errno(err, "cannot remove a mark of %s", to);
	fd = openat(s->sets, set_mark(path, set_name(aside, to, "new")),
		    O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? cube_fail_errno(err, "cannot mark the copy for %s", to) : 0;
}

bool cube_local_set_marked(const struct cube_local_store *s, const char *to)
{
	char path[SET_NAME + 16];

	return faccessat(s->sets, set_mark(path, to), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void cube_local_set_unmark(const struct cube_local_store *s, const char *to)
{
	char path[SET_NAME + 16];

	(void)unlinkat(s->sets, set_mark(path, to), 0); /* the next mark finds it, if it is there still */
}

void cube_local_set_discard(const struct cube_local_store *s, const char *to)
{
	struct cube_err err = {0};
	char aside[SET_NAME];

	if (s->ops->remove(s->sets, set_name(aside, to, "new"), &err) < 0)
		cube_log(CUBE_LOG_WARNING, "local", "%s; the next start removes it", err.text);
	else if (s->quota)
		cube_local_quota_removed(s->quota);
}

/* ---- empty, remove ---- */

int cube_local_set_empty(const struct cube_local_store *s, const char *id, enum cube_local_part part,
			 const struct cube_ns_ids *ids, struct cube_err *err)
{
	cube_auto_fd set = openat(s->sets, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char aside[SET_NAME];
	int rc = set < 0 ? -errno : 0;

	(void)set_name(aside, set_parts[part], "new");
	if (rc == 0)
		rc = cube_file_remove_tree(set, aside);
	if (rc == 0)
		rc = set_layer(set, aside, ids);
	if (rc == 0 && renameat2(set, aside, set, set_parts[part], RENAME_EXCHANGE) < 0)
		rc = -errno;
	if (rc < 0)
		return cube_fail(err, rc, "cannot empty the layer of %s: %s", id, cube_errno_text(rc));
	if (cube_file_remove_tree(set, aside) < 0)
		cube_log(CUBE_LOG_WARNING, "local", "%s/%s could not be removed yet", id, aside);
	return 0;
}

int cube_local_set_remove(const struct cube_local_store *s, const char *id, struct cube_err *err)
{
	char gone[SET_NAME];
	int rc = s->ops->remove(s->sets, set_name(gone, id, "gone"), err);

	if (rc < 0)
		return rc;
	if (renameat(s->sets, id, s->sets, gone) < 0)
		return errno == ENOENT ? 0 : cube_fail_errno(err, "cannot remove the layers of %s", id);
	rc = s->ops->remove(s->sets, gone, err);
	if (rc == 0 && s->quota)
		cube_local_quota_removed(s->quota);
	return rc;
}

/* ---- sweep ---- */

/* What a reset that was killed did not take away. */
static void set_sweep_inside(const struct cube_local_store *s, const char *id)
{
	cube_auto_fd set = openat(s->sets, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char aside[SET_NAME];

	for (size_t i = 0; set >= 0 && i < CUBE_COUNT(set_parts); i++)
		if (cube_file_remove_tree(set, set_name(aside, set_parts[i], "new")) < 0)
			cube_log(CUBE_LOG_WARNING, "local", "%s/%s could not be removed", id, aside);
}

void cube_local_set_sweep(const struct cube_local_store *s, bool (*known)(void *ctx, const char *id),
			  void *ctx)
{
	int fd = openat(s->sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		struct cube_err err = {0};

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (e->d_name[0] != '.' && known(ctx, e->d_name)) {
			set_sweep_inside(s, e->d_name);
			continue;
		}
		if (s->ops->remove(s->sets, e->d_name, &err) < 0)
			cube_log(CUBE_LOG_WARNING, "local", "%s", err.text);
	}
	closedir(d);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: copies of a sandbox's two directories, in STATE/checkpoints/ID/{root,workspace}, and the name of its
 * template in a file `of` beside them, which is written last. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define FOLDER "checkpoints"
#define PATH   (sizeof(FOLDER) + CUBE_ID_MAX + 16)

static const char *cp_path(char out[PATH], const char *cp, const char *rest)
{
	(void)snprintf(out, PATH, FOLDER "/%.*s%s", CUBE_ID_MAX, cp, rest);
	return out;
}

int mem_checkpoints_load(struct mem *m, struct cube_err *err)
{
	int r = cube_file_remove_tree(m->dir, FOLDER);

	if (r == 0 && mkdirat(m->dir, FOLDER, 0700) < 0)
		r = -errno;
	return r < 0 ? cube_fail(err, r, "make %s/" FOLDER ": %s", m->env->state_dir, cube_errno_text(r)) : 0;
}

/* "ID TEMPLATE" of a whole checkpoint. */
static int cp_read(struct mem *m, const char *cp, char of[CUBE_ID_MAX + 1], char template[CUBE_ID_MAX + 1],
		   struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(4096);
	char path[PATH];
	int r = cube_file_read(m->dir, cp_path(path, cp, "/of"), &text);

	if (r == 0 && sscanf(cube_buf_str(&text), "%64s %64s", of, template) != 2)
		r = -EIO;
	cube_buf_done(&text);
	return r < 0 ? cube_fail(err, r, r == -ENOENT ? "no checkpoint %s" : "checkpoint %s cannot be read",
				 cp)
		     : 0;
}

static int cp_open(struct mem *m, const char *cp, const char *rest, int *ret, struct cube_err *err)
{
	char path[PATH];

	*ret = openat(m->dir, cp_path(path, cp, rest), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret < 0 ? cube_fail_errno(err, "checkpoint %s", cp) : 0;
}

/* ---- Taking ---- */

static int cp_copy_in(struct mem *m, const char *cp, const char *rest, int from, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct mem_copied copied;
	cube_auto_fd to = -1;
	char path[PATH];
	int r = mkdirat(m->dir, cp_path(path, cp, rest), 0755) < 0 ? cube_fail_errno(err, "make %s", path)
								   : 0;

	if (r == 0)
		r = cp_open(m, cp, rest, &to, err);
	return r == 0 ? mem_copy_tree(from, to, cancel, &copied, err) : r;
}

static const char *cp_volume(char out[CUBE_ID_MAX + 16], const char *uid)
{
	(void)snprintf(out, CUBE_ID_MAX + 16, "/volume-%.*s", CUBE_ID_MAX, uid);
	return out;
}

static int cp_volumes(struct mem *m, const struct cube_take *take, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	char name[CUBE_ID_MAX + 16];
	int r = 0;

	for (unsigned i = 0; r == 0 && i < take->n_volumes; i++) {
		cube_auto_fd from = mem_volume_open(m, take->volumes[i]);

		r = from < 0 ? cube_fail(err, -ENOENT, "no volume %s", take->volumes[i])
			     : cp_copy_in(m, take->cp, cp_volume(name, take->volumes[i]), from, cancel, err);
	}
	return r;
}

static int cp_make(struct mem *m, const struct mem_box *box, const struct cube_take *take,
		   struct cube_cancel *cancel, struct cube_err *err)
{
	const char *cp = take->cp;
	char path[PATH], text[2 * CUBE_ID_MAX + 8];
	cube_auto_fd dir = -1;
	int r = cube_file_remove_tree(m->dir, cp_path(path, cp, ""));

	if (r == 0 && mkdirat(m->dir, path, 0700) < 0)
		r = -errno;
	if (r < 0)
		return cube_fail(err, r, "make checkpoint %s: %s", cp, cube_errno_text(r));
	r = cp_volumes(m, take, cancel, err);
	if (r == 0 && take->files)
		r = cp_copy_in(m, cp, "/root", box->root, cancel, err);
	if (r == 0 && take->files)
		r = cp_copy_in(m, cp, "/workspace", box->workspace, cancel, err);
	if (r == 0)
		r = cp_open(m, cp, "", &dir, err);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%s %s\n", box->id, box->template);
	r = cube_file_replace(dir, "of", text, strlen(text), 0600);
	return r < 0 ? cube_fail(err, r, "keep checkpoint %s: %s", cp, cube_errno_text(r)) : 0;
}

int mem_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
		   struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	const char *cp = take->cp;
	char of[CUBE_ID_MAX + 1], template[CUBE_ID_MAX + 1], path[PATH];
	struct mem_box *box;
	int r;

	if (cp_read(m, cp, of, template, err) == 0)
		return 0;
	pthread_mutex_lock(&m->lock); /* nothing moves meanwhile */
	box = mem_box_find(m, id, err);
	r = box == NULL ? -ENOENT : mem_tree_open_box(box);
	if (r == 0)
		r = cp_make(m, box, take, cancel, err);
	else if (box != NULL)
		(void)cube_fail(err, r, "open the files of %s: %s", id, cube_errno_text(r));
	pthread_mutex_unlock(&m->lock);
	if (r < 0)
		(void)cube_file_remove_tree(m->dir, cp_path(path, cp, ""));
	else
		*ret_still_ms = 0;
	return r;
}

int mem_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
		    struct cube_cancel *cancel, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	char name[CUBE_ID_MAX + 16];
	struct mem_copied copied;
	cube_auto_fd old = -1;
	cube_auto_fd new = mem_volume_open(m, to);
	int r;

	if (new >= 0)
		return 0;
	r = cp_open(m, cp, cp_volume(name, from), &old, err);
	if (r == 0)
		r = mem_volume_make(b, to, NULL, cancel, err);
	if (r < 0)
		return r;
	new = mem_volume_open(m, to);
	r = new < 0 ? cube_fail(err, -ENOENT, "no volume %s", to)
		    : mem_copy_tree(old, new, cancel, &copied, err);
	if (r < 0)
		(void)mem_volume_remove(b, to, NULL);
	return r;
}

/* ---- Looking ---- */

int mem_checkpoint_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_checkpoint *c),
			void *ctx, struct cube_err *err)
{
	int fd = openat(mem_of(b)->dir, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (dir == NULL) {
		int r = cube_fail_errno(err, "list the checkpoints");

		cube_close_auto(&fd);
		return r;
	}
	while ((e = readdir(dir)) != NULL) {
		struct cube_checkpoint c = {.size = UINT64_MAX};
		char template[CUBE_ID_MAX + 1];

		if (e->d_name[0] == '.' || cp_read(mem_of(b), e->d_name, c.of, template, NULL) < 0)
			continue;
		(void)snprintf(c.id, sizeof(c.id), "%.*s", CUBE_ID_MAX, e->d_name);
		each(ctx, &c);
	}
	(void)closedir(dir);
	return 0;
}

int mem_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err)
{
	char path[PATH];
	int r = cube_file_remove_tree(mem_of(b)->dir, cp_path(path, cp, ""));

	return r < 0 ? cube_fail(err, r, "remove checkpoint %s: %s", cp, cube_errno_text(r)) : 0;
}

int mem_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret, struct cube_err *err)
{
	struct cube_root root = {.fd = -1, .generation = 1, .read_only = true};
	char of[CUBE_ID_MAX + 1], template[CUBE_ID_MAX + 1];
	int r = cp_read(mem_of(b), cp, of, template, err);

	if (r == 0)
		r = cp_open(mem_of(b), cp, "/root", &root.fd, err);
	if (r == 0)
		r = cp_open(mem_of(b), cp, "/workspace", &root.mounts[0].fd, err);
	if (r < 0) {
		cube_root_close(&root);
		return r;
	}
	(void)snprintf(root.mounts[0].path, sizeof(root.mounts[0].path), "/workspace");
	root.mounts[0].read_only = true;
	root.n_mounts = 1;
	mem_root_owners(&root);
	*ret = root;
	return 0;
}

/* ---- Restoring ---- */

int mem_checkpoint_fill(struct mem *m, const char *cp, int root, int workspace, struct cube_cancel *cancel,
			struct cube_err *err)
{
	struct mem_copied copied;
	cube_auto_fd from_root = -1;
	cube_auto_fd from_workspace = -1;
	int r = cp_open(m, cp, "/root", &from_root, err);

	if (r == 0)
		r = cp_open(m, cp, "/workspace", &from_workspace, err);
	if (r == 0)
		r = mem_copy_tree(from_root, root, cancel, &copied, err);
	return r == 0 ? mem_copy_tree(from_workspace, workspace, cancel, &copied, err) : r;
}

int mem_checkpoint_template(struct mem *m, const char *cp, char template[CUBE_ID_MAX + 1],
			    struct cube_err *err)
{
	char of[CUBE_ID_MAX + 1];

	return cp_read(m, cp, of, template, err);
}

/* The directories that the sandbox gets are made aside; then it has them. */
static int restore_swap(struct mem_box *box, int root, int workspace, const char *template)
{
	bool ran = box->state == CUBE_IS_RUNNING || box->state == CUBE_IS_PAUSED;

	mem_box_halt(box, CUBE_IS_STOPPED, "stopped", "the sandbox was restored");
	if (root >= 0) {
		cube_close_auto(&box->root);
		box->root = root;
	}
	if (workspace >= 0) {
		cube_close_auto(&box->workspace);
		box->workspace = workspace;
	}
	(void)snprintf(box->template, sizeof(box->template), "%s", template);
	box->boot = box->generation = ++box->mem->boots;
	if (ran) {
		box->state = CUBE_IS_RUNNING;
		box->reason[0] = '\0';
	}
	return 0;
}

/* STATE/ID.PART becomes STATE/ID/PART. */
static int restore_place(struct mem *m, const char *id, const char *part, int *ret_fd, struct cube_err *err)
{
	cube_auto_str from = cube_asprintf("%s.%s", id, part);
	cube_auto_str to = cube_asprintf("%s/%s", id, part);

	if (from == NULL || to == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	if (cube_file_remove_tree(m->dir, to) < 0 || renameat(m->dir, from, m->dir, to) < 0)
		return cube_fail_errno(err, "restore %s", id);
	*ret_fd = openat(m->dir, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? cube_fail_errno(err, "restore %s", id) : 0;
}

static int restore_aside(struct mem *m, const char *id, const char *part, int *ret_fd, struct cube_err *err)
{
	cube_auto_str path = cube_asprintf("%s.%s", id, part);

	if (path == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	if (cube_file_remove_tree(m->dir, path) < 0 || mkdirat(m->dir, path, 0755) < 0)
		return cube_fail_errno(err, "restore %s", id);
	*ret_fd = openat(m->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? cube_fail_errno(err, "restore %s", id) : 0;
}

static void restore_clean(struct mem *m, const char *id)
{
	static const char *const parts[] = {"root", "workspace"};

	for (size_t i = 0; i < CUBE_COUNT(parts); i++) {
		cube_auto_str path = cube_asprintf("%s.%s", id, parts[i]);

		if (path != NULL)
			(void)cube_file_remove_tree(m->dir, path);
	}
}

/* With what lies aside: the root alone, or both. */
static int restore_take(struct mem *m, const char *id, bool both, const char *template, struct cube_err *err)
{
	int root = -1, workspace = -1, r;
	struct mem_box *box;

	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	r = box == NULL ? -ENOENT : restore_place(m, id, "root", &root, err);
	if (r == 0 && both)
		r = restore_place(m, id, "workspace", &workspace, err);
	if (r == 0)
		r = restore_swap(box, root, workspace, template);
	pthread_mutex_unlock(&m->lock);
	return r;
}

int mem_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		struct cube_err *err)
{
	struct mem *m = mem_of(b);
	char template[CUBE_ID_MAX + 1];
	cube_auto_fd root = -1;
	cube_auto_fd workspace = -1;
	struct mem_box *box;
	int r = mem_checkpoint_template(m, cp, template, err);

	pthread_mutex_lock(&m->lock);
	box = r == 0 ? mem_box_find(m, id, err) : NULL;
	pthread_mutex_unlock(&m->lock);
	if (box == NULL)
		return -ENOENT;
	r = restore_aside(m, id, "root", &root, err);
	if (r == 0)
		r = restore_aside(m, id, "workspace", &workspace, err);
	if (r == 0)
		r = mem_checkpoint_fill(m, cp, root, workspace, cancel, err);
	if (r == 0)
		r = restore_take(m, id, true, template, err);
	restore_clean(m, id);
	return r;
}

int mem_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	char template[CUBE_ID_MAX + 1] = "";
	cube_auto_fd root = -1;
	struct mem_box *box;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	if (box != NULL)
		(void)snprintf(template, sizeof(template), "%s", box->template);
	pthread_mutex_unlock(&m->lock);
	if (box == NULL)
		return -ENOENT;
	r = restore_aside(m, id, "root", &root, err);
	if (r == 0)
		r = mem_tree_fill(m, template, root, cancel, err);
	if (r == 0 && mkdirat(root, "workspace", 0755) < 0 && errno != EEXIST)
		r = cube_fail_errno(err, "reset %s", id);
	if (r == 0)
		r = restore_take(m, id, false, template, err);
	restore_clean(m, id);
	return r;
}

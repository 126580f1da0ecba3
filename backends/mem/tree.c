/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of a sandbox, and names inside it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define WORKSPACE "/workspace"

/* ---- Making ---- */

/* What the built-in template has. */
static const struct {
	const char *name;
	mode_t mode;
} base_dirs[] = {
	{"bin", 0755},  {"dev", 0755}, {"etc", 0755},  {"home", 0755}, {"proc", 0755},
	{"root", 0700}, {"sys", 0755}, {"tmp", 01777}, {"usr", 0755},  {"var", 0755},
};

static int make_dir(int at, const char *name, mode_t mode)
{
	if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
		return -errno;
	return fchmodat(at, name, mode, 0) < 0 ? -errno : 0;
}

static int fill_base(int root)
{
	static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
				     "daemon:x:1:1:daemon:/:/usr/sbin/nologin\n"
				     "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
	cube_auto_fd file = -1;
	int r = 0;

	for (size_t i = 0; i < CUBE_COUNT(base_dirs) && r == 0; i++)
		r = make_dir(root, base_dirs[i].name, base_dirs[i].mode);
	if (r < 0)
		return r;
	file = openat(root, "etc/passwd", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return file < 0 ? -errno : cube_file_write_all(file, passwd, sizeof(passwd) - 1);
}

static int fill_from(int dir, const char *template, int root, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	cube_auto_str path = cube_asprintf("templates/%s", template);
	cube_auto_fd from =
		path != NULL ? openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct mem_copied copied;

	if (from < 0)
		return cube_fail_errno(err, "template %s", template);
	return mem_copy_tree(from, root, cancel, &copied, err);
}

int mem_tree_fill(struct mem *m, const char *template, int root, struct cube_cancel *cancel,
		  struct cube_err *err)
{
	int r;

	if (strcmp(template, MEM_TEMPLATE_BASE) != 0)
		return fill_from(m->dir, template, root, cancel, err);
	r = fill_base(root);
	return r < 0 ? cube_fail(err, r, "template %s: %s", template, cube_errno_text(r)) : 0;
}

static int open_dir(int at, const char *name, int *ret)
{
	*ret = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret < 0 ? -errno : 0;
}

static int make_two(int dir, const char *id, int *ret_root, int *ret_workspace)
{
	cube_auto_fd box = -1;
	int r = make_dir(dir, id, 0700);

	if (r == 0)
		r = open_dir(dir, id, &box);
	if (r == 0)
		r = make_dir(box, "root", 0755);
	if (r == 0)
		r = make_dir(box, "workspace", 0755);
	if (r == 0)
		r = open_dir(box, "root", ret_root);
	if (r == 0)
		r = open_dir(box, "workspace", ret_workspace);
	return r;
}

int mem_tree_open_box(struct mem_box *b)
{
	cube_auto_fd dir = -1;
	int r = 0;

	if (b->root >= 0 && b->workspace >= 0)
		return 0;
	r = open_dir(b->mem->dir, b->id, &dir);
	if (r == 0 && b->root < 0)
		r = open_dir(dir, "root", &b->root);
	if (r == 0 && b->workspace < 0)
		r = open_dir(dir, "workspace", &b->workspace);
	return r;
}

int mem_tree_make(struct mem *m, const char *id, const char *template, const char *from,
		  struct cube_cancel *cancel, int *ret_root, int *ret_workspace, struct cube_err *err)
{
	cube_auto_fd root = -1;
	cube_auto_fd workspace = -1;
	int r = make_two(m->dir, id, &root, &workspace);

	if (r < 0)
		return cube_fail(err, r, "make the directories of %s: %s", id, cube_errno_text(r));
	r = from != NULL ? mem_checkpoint_fill(m, from, root, workspace, cancel, err)
			 : mem_tree_fill(m, template, root, cancel, err);
	if (r == 0 && from == NULL)
		r = mem_template_fill_workspace(m, template, workspace, cancel, err);
	if (r < 0)
		return cube_fail_in(err, "create %s", id);
	r = make_dir(root, "workspace", 0755); /* where the other directory is mounted */
	if (r < 0)
		return cube_fail(err, r, "make the directories of %s: %s", id, cube_errno_text(r));
	*ret_root = cube_steal_fd(&root);
	*ret_workspace = cube_steal_fd(&workspace);
	return 0;
}

/* ---- Names inside ---- */

/* Removes the last component of @out; of "/" there is none. */
static void drop_component(char *out)
{
	char *slash = strrchr(out, '/');

	if (slash != NULL)
		*slash = '\0';
}

char *mem_tree_normal(const char *cwd, const char *path)
{
	cube_auto_str all = path[0] == '/' ? cube_strdup(path) : cube_asprintf("%s/%s", cwd, path);
	char *out = all != NULL ? cube_malloc(strlen(all) + 2) : NULL;
	size_t used = 0;

	if (out == NULL)
		return NULL;
	out[0] = '\0';
	for (const char *p = all; *p != '\0';) {
		size_t n = strcspn(p, "/");

		if (n == 2 && strncmp(p, "..", 2) == 0) {
			drop_component(out);
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			used = strlen(out);
			out[used] = '/';
			memcpy(out + used + 1, p, n);
			out[used + 1 + n] = '\0';
		}
		p += n + (p[n] == '/' ? 1 : 0);
	}
	if (out[0] == '\0')
		memcpy(out, "/", 2);
	return out;
}

int mem_tree_split(const struct mem_box *b, const char *normal, const char **rest, bool *read_only)
{
	const struct mem_mount *m = mem_mount_of(b, normal);
	size_t n = m != NULL ? strlen(m->path) : sizeof(WORKSPACE) - 1;
	bool inside =
		m != NULL || (strncmp(normal, WORKSPACE, n) == 0 && (normal[n] == '\0' || normal[n] == '/'));

	*rest = inside ? normal + n : normal;
	*rest += **rest == '/' ? 1 : 0;
	if (**rest == '\0')
		*rest = ".";
	if (read_only != NULL)
		*read_only = m != NULL && m->read_only;
	if (m != NULL)
		return m->fd;
	return inside ? b->workspace : b->root;
}

int mem_tree_open(const struct mem_box *b, const char *normal, int flags, unsigned mode)
{
	bool read_only;
	const char *rest;
	int dir = mem_tree_split(b, normal, &rest, &read_only);
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = (flags & O_CREAT) != 0 ? mode : 0,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (read_only && ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0))
		return -EROFS;
	fd = syscall(SYS_openat2, dir, rest, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int mem_tree_unlink(const struct mem_box *b, const char *normal)
{
	cube_auto_str parent = mem_tree_normal(normal, "..");
	cube_auto_fd dir = parent != NULL ? mem_tree_open(b, parent, O_PATH | O_DIRECTORY, 0) : -ENOMEM;
	const struct mem_mount *m = mem_mount_of(b, normal);

	if (dir < 0)
		return dir;
	if (m != NULL && (m->read_only || strcmp(m->path, normal) == 0))
		return m->read_only ? -EROFS : -EBUSY;
	return unlinkat(dir, strrchr(normal, '/') + 1, 0) < 0 ? -errno : 0;
}

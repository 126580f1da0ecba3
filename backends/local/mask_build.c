/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the upper layer of the template `host`. */
#include "backends/local/mask.h"
#include "backends/local/mask_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"
#include "backends/local/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MASK_ETC_MAX      (64u << 20)
#define MASK_ETC_FILE_MAX (8u << 20)
#define MASK_SIZE         "96m"

/* Empty directories that every sandbox has. */
static const struct {
	const char *path;
	mode_t mode;
} mask_dirs[] = {
	{"dev", 0755},
	{"etc", 0755},
	{"home", 0755},
	{"media", 0755},
	{"mnt", 0755},
	{"proc", 0555},
	{"root", 0700},
	{"run", 0755},
	{"run/lock", 01777},
	{"srv", 0755},
	{"sys", 0555},
	{"tmp", 01777},
	{"var", 0755},
	{"var/cache", 0755},
	{"var/cache/apt", 0755},
	{"var/cache/apt/archives", 0755},
	{"var/cache/apt/archives/partial", 0700},
	{"var/lib", 0755},
	{"var/lib/apt", 0755},
	{"var/lib/apt/lists", 0755},
	{"var/lib/apt/lists/partial", 0700},
	{"var/lib/dpkg", 0755},
	{"var/lib/dpkg/alternatives", 0755},
	{"var/lib/dpkg/info", 0755},
	{"var/lib/dpkg/parts", 0755},
	{"var/lib/dpkg/triggers", 0755},
	{"var/lib/dpkg/updates", 0755},
	{"var/lib/misc", 0755},
	{"var/local", 0755},
	{"var/log", 0755},
	{"var/log/apt", 0755},
	{"var/mail", 0755},
	{"var/opt", 0755},
	{"var/spool", 0755},
	{"var/tmp", 01777},
	{"workspace", 0755},
};

static const struct {
	const char *path, *target;
} mask_links[] = {
	{"var/run", "../run"},
	{"var/lock", "../run/lock"},
};

static const char *const mask_files[] = {"var/lib/dpkg/status", "var/lib/dpkg/available"};

struct mask_maker {
	const struct cube_ns_ids *ids;
	bool redirect;
	int root; /* the directory r */
};

static int maker_own(const struct mask_maker *k, const char *path)
{
	return fchownat(k->root, path, k->ids->uid, k->ids->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int maker_dir(const struct mask_maker *k, const char *path, mode_t mode)
{
	if (mkdirat(k->root, path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (fchmodat(k->root, path, mode, 0) < 0)
		return -errno;
	return maker_own(k, path);
}

static int maker_link(const struct mask_maker *k, const char *path, const char *target)
{
	return symlinkat(target, k->root, path) < 0 ? -errno : maker_own(k, path);
}

static int maker_file(const struct mask_maker *k, const char *path, const void *data, size_t len, mode_t mode)
{
	cube_auto_fd fd = openat(k->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = cube_file_write_all(fd, data, len);
	if (rc == 0 && (fchown(fd, k->ids->uid, k->ids->gid) < 0 || fchmod(fd, mode) < 0))
		rc = -errno;
	return rc;
}

/* ---- what of the host is shown ---- */

/* bin, sbin, lib, lib32, ... : links into usr, or directories where the two are not merged. */
static bool mask_is_program_dir(const char *name)
{
	return strcmp(name, "bin") == 0 || strcmp(name, "sbin") == 0 || strncmp(name, "lib", 3) == 0;
}

static bool mask_is_shown(const char *name)
{
	return mask_is_program_dir(name) || strcmp(name, "usr") == 0 || strcmp(name, "opt") == 0;
}

static void mask_each_shown(void (*fn)(void *ctx, const char *name, const struct stat *st), void *ctx)
{
	DIR *d = opendir("/");
	const struct dirent *e;
	struct stat st;

	if (!d)
		return;
	while ((e = readdir(d)) != NULL)
		if (mask_is_shown(e->d_name) && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			fn(ctx, e->d_name, &st);
	closedir(d);
}

static void shown_add(void *ctx, const char *name, const struct stat *st)
{
	struct cube_local_shown *s = ctx;

	if (S_ISDIR(st->st_mode) && (st->st_mode & 05) == 05 && s->n < CUBE_MASK_SHOWN &&
	    strlen(name) < sizeof(s->name[0]))
		(void)snprintf(s->name[s->n++], sizeof(s->name[0]), "%s", name);
}

void cube_local_mask_shown(struct cube_local_shown *ret)
{
	ret->n = 0;
	mask_each_shown(shown_add, ret);
}

struct mask_top {
	const struct mask_maker *k;
	int rc;
};

static void mask_top_entry(void *ctx, const char *name, const struct stat *st)
{
	struct mask_top *t = ctx;
	char target[PATH_MAX], path[NAME_MAX + 2];
	ssize_t n;

	if (t->rc < 0 || !S_ISLNK(st->st_mode))
		return;
	(void)snprintf(path, sizeof(path), "/%s", name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = 0;
	t->rc = maker_link(t->k, name, target);
}

static int maker_show(const struct mask_maker *k)
{
	struct mask_top top = {.k = k};
	struct cube_local_shown shown;
	char path[32], real[64];

	mask_each_shown(mask_top_entry, &top);
	cube_local_mask_shown(&shown);
	for (unsigned i = 0; top.rc == 0 && i < shown.n; i++) {
		top.rc = maker_dir(k, shown.name[i], 0755);
		if (top.rc < 0 || !k->redirect)
			continue;
		/* By way of /proc, since there is no call for a name below a descriptor. */
		(void)snprintf(real, sizeof(real), "/proc/self/fd/%d/%s", k->root, shown.name[i]);
		(void)snprintf(path, sizeof(path), "/%s", shown.name[i]);
		if (setxattr(real, "trusted.overlay.redirect", path, strlen(path), 0) < 0)
			top.rc = -errno;
	}
	return top.rc;
}

/* ---- whiteouts ---- */

/* A directory on the way to a whiteout is merged with the host's and shows this layer's owner and mode. */
static int maker_like_host(const struct mask_maker *k, const char *path)
{
	char real[PATH_MAX];
	struct stat st;
	int rc;

	if ((size_t)snprintf(real, sizeof(real), "/%s", path) >= sizeof(real) || stat(real, &st) < 0)
		return -errno;
	if (mkdirat(k->root, path, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	rc = fchownat(k->root, path, k->ids->uid + (st.st_uid < k->ids->count ? st.st_uid : 0),
		      k->ids->gid + (st.st_gid < k->ids->count ? st.st_gid : 0), 0);
	return rc < 0 || fchmodat(k->root, path, st.st_mode & 07777, 0) < 0 ? -errno : 0;
}

static int maker_hide(const struct mask_maker *k, const char *absolute)
{
	char path[PATH_MAX];
	int rc = 0;

	if (strlen(absolute) > sizeof(path) || absolute[0] != '/')
		return -EINVAL;
	memcpy(path, absolute + 1, strlen(absolute));
	for (char *slash = strchr(path, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		rc = maker_like_host(k, path);
		*slash = '/';
	}
	if (rc == 0 && mknodat(k->root, path, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
		rc = -errno;
	return rc == -ENOENT ? 0 : rc; /* the host's directory is gone meanwhile, and with it the secret */
}

static int maker_hide_all(const struct mask_maker *k, const struct cube_buf *hidden)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < hidden->len; at += strlen(hidden->data + at) + 1)
		rc = maker_hide(k, hidden->data + at);
	return rc;
}

/* ---- /etc ---- */

/* Locked entries for every user: tools that write there (useradd, passwd, PAM) want the file. */
static int maker_shadow(const struct mask_maker *k, const char *of, const char *path, const char *fields)
{
	struct cube_buf in = CUBE_BUF(1u << 20), out = CUBE_BUF(2u << 20);
	const char *line;
	size_t len;
	int rc = cube_file_read(k->root, of, &in);

	for (line = cube_buf_str(&in); rc == 0 && *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		rc = cube_buf_add(&out, line, strcspn(line, ":\n"));
		if (rc == 0)
			rc = cube_buf_adds(&out, fields);
	}
	if (rc == 0)
		rc = maker_file(k, path, cube_buf_str(&out), out.len, 0640);
	cube_buf_done(&in);
	cube_buf_done(&out);
	return rc == -ENOENT ? 0 : rc;
}

static int maker_etc(const struct mask_maker *k, struct cube_err *err)
{
	struct cube_local_tree t = {
		.ids = k->ids,
		.public_only = true,
		.max_file = MASK_ETC_FILE_MAX,
		.max_total = MASK_ETC_MAX,
	};
	cube_auto_fd from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd to = openat(k->root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (from < 0 || to < 0)
		return cube_fail_errno(err, "cannot open /etc");
	rc = cube_local_tree_copy(&t, from, to, err);
	if (rc < 0)
		return cube_fail_in(err, "cannot copy the public part of /etc");
	rc = maker_shadow(k, "etc/passwd", "etc/shadow", ":*:19000:0:99999:7:::\n");
	if (rc == 0)
		rc = maker_shadow(k, "etc/group", "etc/gshadow", ":*::\n");
	return rc < 0 ? cube_fail(err, rc, "cannot write /etc/shadow: %s", cube_errno_text(rc)) : 0;
}

static int maker_skeleton(const struct mask_maker *k)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(mask_dirs); i++)
		rc = maker_dir(k, mask_dirs[i].path, mask_dirs[i].mode);
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(mask_links); i++)
		rc = maker_link(k, mask_links[i].path, mask_links[i].target);
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(mask_files); i++)
		rc = maker_file(k, mask_files[i], "", 0, 0644);
	return rc;
}

static int maker_make(struct mask_maker *k, int layer, const struct cube_buf *hidden, struct cube_err *err)
{
	int rc = cube_file_mkdir(layer, CUBE_LOCAL_ROOT_DIR, 0755, &k->root);

	if (rc == 0)
		rc = maker_dir(k, ".", 0755);
	if (rc == 0)
		rc = maker_skeleton(k);
	if (rc == 0)
		rc = maker_show(k);
	if (rc == 0)
		rc = maker_hide_all(k, hidden);
	if (rc < 0)
		return cube_fail(err, rc, "cannot make the layer over this machine's files: %s",
				 cube_errno_text(rc));
	return maker_etc(k, err);
}

int cube_local_mask_build(const struct cube_ns_ids *ids, bool redirect, const struct cube_buf *hidden,
			  int *ret_fd, struct cube_err *err)
{
	struct mask_maker k = {.ids = ids, .redirect = redirect, .root = -1};
	cube_auto_fd layer = cube_local_mnt_tmpfs(MASK_SIZE, err);
	int rc;

	if (layer < 0)
		return layer;
	rc = maker_make(&k, layer, hidden, err);
	if (k.root >= 0)
		close(k.root);
	if (rc == 0)
		rc = cube_local_mnt_set(layer, MOUNT_ATTR_RDONLY, -1);
	if (rc == 0)
		rc = cube_local_keep(layer);
	if (rc == 0)
		*ret_fd = cube_steal_fd(&layer);
	return rc;
}

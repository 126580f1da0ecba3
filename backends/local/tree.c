/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of directory trees into a sandbox's range of ids. */
#include "backends/local/tree.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_DEPTH 128
#define TREE_CHUNK 65536

static void tree_saw(const struct cube_local_tree *t, const void *data, size_t len)
{
	if (t->saw)
		t->saw(t->ctx, data, len);
}

static uid_t tree_id(const struct cube_local_tree *t, uint32_t base, uint32_t id)
{
	return base + (t->keep_owners && id < t->ids->count ? id : 0);
}

/* Owner before mode: chown takes setuid away. */
static int tree_own(const struct cube_local_tree *t, int dir, const char *name, const struct stat *st)
{
	mode_t mode = st->st_mode & (t->public_only ? 0777 : 07777);

	if (fchownat(dir, name, tree_id(t, t->ids->uid, st->st_uid), tree_id(t, t->ids->gid, st->st_gid),
		     AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st->st_mode))
		return 0;
	return fchmodat(dir, name, mode, 0) < 0 ? -errno : 0;
}

static int tree_times(int dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {st->st_mtim, st->st_mtim};

	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int tree_pour(struct cube_local_tree *t, int in, int out)
{
	char *chunk = cube_malloc(TREE_CHUNK);
	int rc = chunk ? 0 : -ENOMEM;

	while (rc == 0) {
		ssize_t n = read(in, chunk, TREE_CHUNK);

		if (n <= 0) {
			rc = n < 0 ? -errno : 0;
			break;
		}
		tree_saw(t, chunk, (size_t)n);
		t->bytes += (uint64_t)n;
		if (t->max_total && t->bytes > t->max_total)
			rc = -EFBIG;
		else if (cube_cancel_fired(t->cancel))
			rc = -EINTR;
		else
			rc = cube_file_write_all(out, chunk, (size_t)n);
	}
	cube_free(chunk);
	return rc;
}

static int tree_open(const struct cube_local_tree *t, int dir, const char *name, int flags)
{
	int fd;

	if (t->open != NULL)
		return t->open(t->ctx, dir, name, flags | O_NOFOLLOW);
	fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opened by "." too: that wants the right to pass through it, which looking at what is in it takes. */
static int tree_open_dir(const struct cube_local_tree *t, int dir, const char *name)
{
	cube_auto_fd fd = tree_open(t, dir, name, O_PATH | O_DIRECTORY);

	return fd < 0 ? fd : tree_open(t, fd, ".", O_RDONLY | O_DIRECTORY);
}

static int tree_file(struct cube_local_tree *t, int from, int to, const char *name, const struct stat *st)
{
	cube_auto_fd in = -1, out = -1;
	struct stat now;

	if (t->max_file && (uint64_t)st->st_size > t->max_file) {
		t->skipped++;
		return 0;
	}
	in = tree_open(t, from, name, O_RDONLY | O_NONBLOCK);
	if (in < 0 || fstat(in, &now) < 0)
		return in < 0 ? in : -errno;
	if (!S_ISREG(now.st_mode) || (t->public_only && !(now.st_mode & S_IROTH)))
		return 0; /* changed since it was looked at */
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	return tree_pour(t, in, out);
}

static int tree_link(struct cube_local_tree *t, int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	tree_saw(t, target, (size_t)n);
	return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int tree_level(struct cube_local_tree *t, int from, int to, unsigned depth, struct cube_err *err);

static int tree_dir(struct cube_local_tree *t, int from, int to, const char *name, unsigned depth,
		    struct cube_err *err)
{
	cube_auto_fd in = tree_open_dir(t, from, name), out = -1;

	if (in < 0)
		return in;
	if (mkdirat(to, name, 0700) < 0)
		return -errno;
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return -errno;
	return tree_level(t, in, out, depth + 1, err);
}

static bool tree_wanted(struct cube_local_tree *t, const struct stat *st, dev_t dev)
{
	mode_t all = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode)) {
		t->skipped++;
		return false;
	}
	if (S_ISDIR(st->st_mode) && st->st_dev != dev)
		return false;
	return !t->public_only || S_ISLNK(st->st_mode) || (st->st_mode & all) == all;
}

static int tree_entry(struct cube_local_tree *t, int from, int to, const char *name, dev_t dev,
		      unsigned depth, struct cube_err *err)
{
	struct stat st;
	int rc;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!tree_wanted(t, &st, dev))
		return 0;
	t->files++;
	tree_saw(t, name, strlen(name) + 1);
	tree_saw(t, &st.st_mode, sizeof(st.st_mode));
	if (S_ISDIR(st.st_mode))
		rc = tree_dir(t, from, to, name, depth, err);
	else if (S_ISREG(st.st_mode))
		rc = tree_file(t, from, to, name, &st);
	else
		rc = tree_link(t, from, to, name);
	if (rc == 0 && faccessat(to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		rc = tree_own(t, to, name, &st);
		if (rc == 0)
			rc = tree_times(to, name, &st);
	}
	if (rc < 0 && err && err->code == 0)
		(void)cube_fail(err, rc, "cannot copy %s: %s", name, cube_errno_text(rc));
	return rc;
}

static int tree_level(struct cube_local_tree *t, int from, int to, unsigned depth, struct cube_err *err)
{
	struct cube_names names = CUBE_NAMES;
	struct stat st;
	int rc = depth > TREE_DEPTH ? -ELOOP : 0;

	if (rc == 0 && fstat(from, &st) < 0)
		rc = -errno;
	if (rc == 0)
		rc = cube_names_list(&names, from);
	cube_names_sort(&names);
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = tree_entry(t, from, to, names.at[i], st.st_dev, depth, err);
	cube_names_done(&names);
	return rc;
}

int cube_local_tree_copy(struct cube_local_tree *t, int from, int to, struct cube_err *err)
{
	struct cube_err inner = {0};
	int rc = tree_level(t, from, to, 0, &inner);

	if (rc < 0)
		(void)cube_fail(err, rc, "%s", inner.code ? inner.text : cube_errno_text(rc));
	return rc;
}

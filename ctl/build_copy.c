/* SPDX-License-Identifier: Apache-2.0 */
/* What a step copies: gathered with the rights of who builds, put into a sandbox's files.
 *
 * Gathering walks by names, each opened anew with the builder's rights, so that a link that is swapped in
 * meanwhile leads nowhere that he could not go himself. Placing resolves each name in the sandbox's root, as a
 * process in there would see it. Directories, files and links; no owners: all belongs to root inside. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/names.h"
#include "ctl/build.h"

#define COPY_DEPTH 128
#define COPY_CHUNK 65536

static int names_read(int dir, struct cube_names *ret)
{
	int r = cube_names_list(ret, dir);

	cube_names_sort(ret);
	return r;
}

static int copy_bytes(int in, int out, struct cube_digest *digest, struct cube_cancel *cancel)
{
	char *chunk = cube_malloc(COPY_CHUNK);
	ssize_t n = 1;
	int r = chunk != NULL ? 0 : -ENOMEM;

	while (r == 0 && n > 0) {
		n = read(in, chunk, COPY_CHUNK);
		if (n < 0)
			r = -errno;
		else if (cube_cancel_fired(cancel))
			r = -EINTR;
		else
			r = cube_file_write_all(out, chunk, (size_t)n);
		if (r == 0 && digest != NULL && n > 0)
			cube_digest_add(digest, chunk, (size_t)n);
	}
	cube_free(chunk);
	return r;
}

/* ---- gathering ---- */

struct gather {
	struct cube_build *b;
	struct cube_digest *digest;
	struct cube_err *err;
};

static int gather_entry(struct gather *g, const char *path, int flags, int to, const char *name,
			unsigned depth);

static int gather_failed(struct gather *g, const char *path, int code)
{
	return cube_fail(g->err, code, "%.200s: %s", path,
			 code == -EINTR ? "the build was interrupted" : cube_errno_text(code));
}

static int gather_dir(struct gather *g, const char *path, int fd, int to, unsigned depth)
{
	struct cube_names names = CUBE_NAMES;
	int r = depth < COPY_DEPTH ? names_read(fd, &names) : -ELOOP;

	if (r < 0)
		(void)gather_failed(g, path, r);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		char below[PATH_MAX];

		if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, names.at[i]) >= sizeof(below))
			r = gather_failed(g, path, -ENAMETOOLONG);
		else
			r = gather_entry(g, below, O_NOFOLLOW, to, names.at[i], depth + 1);
	}
	cube_names_done(&names);
	return r;
}

static int gather_link(struct gather *g, const char *path, int fd, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return gather_failed(g, path, -errno);
	target[n] = '\0';
	cube_digest_add(g->digest, target, (size_t)n + 1);
	return symlinkat(target, to, name) < 0 ? gather_failed(g, path, -errno) : 0;
}

static int gather_file(struct gather *g, const char *path, int flags, int to, const char *name, mode_t mode)
{
	cube_auto_fd in = -1;
	cube_auto_fd out = -1;
	struct stat st;
	int r = cube_caller_open(&g->b->by, path, O_RDONLY | O_NONBLOCK | flags, &in, g->err);

	if (r < 0)
		return r;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0 || fstat(in, &st) < 0)
		return gather_failed(g, path, -errno);
	r = S_ISREG(st.st_mode) ? copy_bytes(in, out, g->digest, g->b->cancel) : -EINVAL;
	if (r == 0 && fchmod(out, mode & 0777) < 0)
		r = -errno;
	return r < 0 ? gather_failed(g, path, r) : 0;
}

static int gather_directory(struct gather *g, const char *path, int flags, int to, const char *name,
			    mode_t mode, unsigned depth)
{
	cube_auto_fd in = -1;
	cube_auto_fd out = -1;
	int r = cube_caller_open(&g->b->by, path, O_RDONLY | O_DIRECTORY | flags, &in, g->err);

	if (r < 0)
		return r;
	if (mkdirat(to, name, 0700) < 0)
		return gather_failed(g, path, -errno);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = out < 0 ? gather_failed(g, path, -errno) : gather_dir(g, path, in, out, depth);
	/* Ours to remove again: the owner's bits stay. */
	if (r == 0 && fchmod(out, (mode & 0777) | 0700) < 0)
		r = gather_failed(g, path, -errno);
	return r;
}

static int gather_entry(struct gather *g, const char *path, int flags, int to, const char *name,
			unsigned depth)
{
	cube_auto_fd fd = -1;
	struct stat st;
	int r = cube_caller_open(&g->b->by, path, O_PATH | flags, &fd, g->err);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return gather_failed(g, path, -errno);
	cube_digest_add(g->digest, depth > 0 ? name : "", depth > 0 ? strlen(name) + 1 : 1);
	cube_digest_add(g->digest, &st.st_mode, sizeof(st.st_mode));
	if (S_ISDIR(st.st_mode))
		return gather_directory(g, path, flags, to, name, st.st_mode, depth);
	if (S_ISREG(st.st_mode))
		return gather_file(g, path, flags, to, name, st.st_mode);
	if (S_ISLNK(st.st_mode))
		return gather_link(g, path, fd, to, name);
	return 0; /* a device, a fifo, a socket: no part of a template */
}

/* A source of a Dockerfile is beneath its directory; links in its path are the builder's own matter. */
static int gather_path(const struct gather *g, const char *source, char path[PATH_MAX])
{
	int n;

	if (!g->b->recipe.docker)
		n = snprintf(path, PATH_MAX, "%s", source);
	else
		n = snprintf(path, PATH_MAX, "%s/%s", g->b->context, source + strspn(source, "/"));
	if (g->b->recipe.docker &&
	    (strcmp(source, "..") == 0 || strncmp(source, "../", 3) == 0 || strstr(source, "/../") != NULL))
		return cube_fail(g->err, -EINVAL, "'%.200s' leads out of the directory of the build", source);
	return n < PATH_MAX ? 0 : cube_fail(g->err, -ENAMETOOLONG, "'%.200s' is too long", source);
}

int cube_build_gather(struct cube_build *b, const struct cube_step *s, int to, struct cube_digest *digest,
		      struct cube_err *err)
{
	struct gather g = {.b = b, .digest = digest, .err = err};
	char path[PATH_MAX], name[PATH_MAX];
	unsigned n = 0;
	int r = 0;

	for (size_t at = 0; r == 0 && at < s->text.len; at += strlen(s->text.data + at) + 1, n++) {
		const char *source = s->text.data + at;
		const char *slash = strrchr(source, '/');
		cube_auto_fd dir = -1;

		/* Under its own name: what it is called is a part of what it is. */
		(void)snprintf(name, sizeof(name), "%u", n);
		r = cube_file_mkdir(to, name, 0700, &dir);
		if (r == 0)
			r = gather_path(&g, source, path);
		slash = slash != NULL && slash[1] != '\0' ? slash + 1 : source;
		if (strchr(slash, '/') != NULL || strcmp(slash, ".") == 0 || strcmp(slash, "..") == 0)
			slash = "all";
		if (r == 0)
			r = gather_entry(&g, path, 0, dir, slash, 0);
		if (r < 0)
			(void)cube_fail_in(err, "line %u", s->line);
	}
	return r;
}

/* ---- placing ---- */

struct place {
	const struct cube_root *root;
	struct cube_err *err;
};

static int place_failed(const struct place *p, const char *path, int code)
{
	return cube_fail(p->err, code, "%.200s in the template: %s", path, cube_errno_text(code));
}

static int place_open(const struct place *p, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, p->root->fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int place_own(const struct place *p, int dir, const char *name)
{
	if (p->root->id_count == UINT32_MAX)
		return 0;
	return fchownat(dir, name, p->root->uid_base, p->root->gid_base, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
												  : 0;
}

/* The directory @path with all above it, links as they are inside. */
static int place_dirs(const struct place *p, const char *path, int *ret)
{
	char part[PATH_MAX];
	size_t n = 0;

	for (;;) {
		int fd;

		n += strspn(path + n, "/");
		n += strcspn(path + n, "/");
		(void)snprintf(part, sizeof(part), "%.*s", (int)n, path);
		fd = place_open(p, n > 0 ? part : "/");
		if (fd == -ENOENT && n > 0) {
			char *slash = strrchr(part, '/');
			cube_auto_fd above = -1;
			int r;

			*slash = '\0';
			above = place_open(p, slash > part ? part : "/");
			if (above < 0)
				return above;
			r = mkdirat(above, slash + 1, 0755) < 0 ? -errno : place_own(p, above, slash + 1);
			if (r < 0)
				return r;
			*slash = '/';
			fd = place_open(p, part);
		}
		if (fd < 0)
			return fd;
		if (path[n + strspn(path + n, "/")] == '\0') {
			*ret = fd;
			return 0;
		}
		(void)close(fd);
	}
}

static int place_entry(const struct place *p, int from, const char *name, const char *dir, const char *as);

static int place_all(const struct place *p, int from, const char *dir)
{
	struct cube_names names = CUBE_NAMES;
	int r = names_read(from, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = place_entry(p, from, names.at[i], dir, names.at[i]);
	cube_names_done(&names);
	return r;
}

static int place_file(const struct place *p, int from, const char *name, int to, const char *as, mode_t mode)
{
	cube_auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	cube_auto_fd out = -1;
	int r;

	if (in < 0)
		return -errno;
	if (unlinkat(to, as, 0) < 0 && errno != ENOENT)
		return -errno;
	out = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_bytes(in, out, NULL, NULL);
	if (r == 0)
		r = place_own(p, to, as);
	if (r == 0 && fchmod(out, mode & 0777) < 0)
		r = -errno;
	return r;
}

static int place_link(const struct place *p, int from, const char *name, int to, const char *as)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (unlinkat(to, as, 0) < 0 && errno != ENOENT)
		return -errno;
	return symlinkat(target, to, as) < 0 ? -errno : place_own(p, to, as);
}

static int place_directory(const struct place *p, int from, const char *name, const char *path, mode_t mode)
{
	cube_auto_fd in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cube_auto_fd out = -1;
	bool there;
	int r, fd = -1;

	if (in < 0)
		return -errno;
	out = place_open(p, path);
	there = out >= 0;
	r = place_dirs(p, path, &fd);
	cube_close_auto(&fd);
	if (r == 0 && !there) {
		char proc[64];

		out = place_open(p, path);
		(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", out);
		if (out < 0 || chmod(proc, mode & 0777) < 0)
			r = -errno;
	}
	return r == 0 ? place_all(p, in, path) : r;
}

static int place_entry(const struct place *p, int from, const char *name, const char *dir, const char *as)
{
	char path[PATH_MAX];
	cube_auto_fd to = -1;
	struct stat st;
	int r, fd = -1;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, as) >=
	    sizeof(path))
		return place_failed(p, dir, -ENAMETOOLONG);
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return place_failed(p, path, -errno);
	if (S_ISDIR(st.st_mode)) {
		r = place_directory(p, from, name, path, st.st_mode);
	} else {
		r = place_dirs(p, dir, &fd);
		to = fd;
		if (r == 0)
			r = S_ISLNK(st.st_mode) ? place_link(p, from, name, to, as)
						: place_file(p, from, name, to, as, st.st_mode);
	}
	if (r < 0 && p->err->code == 0)
		(void)place_failed(p, path, r);
	return r;
}

/* A directory's contents appear at the path; a file at the path, or below it where that is a directory or ends
 * in a slash. */
static int place_source(const struct place *p, int from, const char *name, const char *to)
{
	char dir[PATH_MAX], *slash;
	size_t n = strlen(to);
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return place_failed(p, to, -errno);
	while (n > 1 && to[n - 1] == '/')
		n--;
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)n, to);
	if (S_ISDIR(st.st_mode)) {
		int r = place_directory(p, from, name, dir, 0755);

		return r < 0 && p->err->code == 0 ? place_failed(p, dir, r) : r;
	}
	cube_auto_fd there = place_open(p, dir);
	if (to[strlen(to) - 1] == '/' || there >= 0)
		return place_entry(p, from, name, dir, name);
	slash = strrchr(dir, '/');
	*slash = '\0';
	return place_entry(p, from, name, slash > dir ? dir : "/", slash + 1);
}

int cube_build_place(const struct cube_step *s, int from, const struct cube_root *root, struct cube_err *err)
{
	struct cube_err inner = {0};
	const struct place p = {.root = root, .err = &inner};
	struct cube_names sources = CUBE_NAMES;
	int r = names_read(from, &sources);

	for (size_t i = 0; r == 0 && i < sources.n; i++) {
		cube_auto_fd dir =
			openat(from, sources.at[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct cube_names one = CUBE_NAMES;

		r = dir < 0 ? -errno : names_read(dir, &one);
		for (size_t k = 0; r == 0 && k < one.n; k++)
			r = place_source(&p, dir, one.at[k], s->to);
		cube_names_done(&one);
	}
	cube_names_done(&sources);
	if (r < 0)
		(void)cube_fail(err, r, "line %u: %s", s->line,
				inner.text[0] != '\0' ? inner.text : cube_errno_text(r));
	return r;
}

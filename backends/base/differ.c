/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/base/differ.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DIFFER_DEPTH 256 /* a directory below that is M, and not looked into */
#define DIFFER_CHUNK 65536

/* One directory, as it is now, as it was, and in the layers. */
struct differ_dir {
	int now, was; /* CUBE_DIFFER_NONE: there is none */
	int *layers;  /* CUBE_DIFFER_NONE: has nothing here */
	bool all;     /* look at all names of both */
};

struct differ_walk {
	const struct cube_differ *what;
	struct cube_cancel *cancel;
	struct cube_buf path;
	unsigned depth;
};

static int differ_level(struct differ_walk *w, const struct differ_dir *d);

static void differ_say(struct differ_walk *w, char kind)
{
	w->what->each(w->what->ctx, kind, cube_buf_str(&w->path));
}

/* ---- one name ---- */

static bool differ_same_content(int a, int b, const char *name)
{
	cube_auto_fd fa = openat(a, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cube_auto_fd fb = openat(b, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *block = cube_malloc(2 * DIFFER_CHUNK);
	bool same = fa >= 0 && fb >= 0 && block;
	ssize_t n = 1;

	while (same && n > 0) {
		n = read(fa, block, DIFFER_CHUNK);
		same = n >= 0 && read(fb, block + DIFFER_CHUNK, DIFFER_CHUNK) == n &&
		       memcmp(block, block + DIFFER_CHUNK, (size_t)n) == 0;
	}
	cube_free(block);
	return same;
}

static bool differ_same_link(int a, int b, const char *name)
{
	char ta[PATH_MAX], tb[PATH_MAX];
	ssize_t na = readlinkat(a, name, ta, sizeof(ta)), nb = readlinkat(b, name, tb, sizeof(tb));

	return na >= 0 && na == nb && memcmp(ta, tb, (size_t)na) == 0;
}

static bool differ_same_rights(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static bool differ_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Neither is a directory; both are of one type. The same inode with the same time of its last change is the same file
 * in two snapshots; else the content decides, since any program can set the other times. */
static bool differ_same(const struct differ_walk *w, const struct differ_dir *d, const char *name,
			const struct stat *now, const struct stat *was)
{
	if (!differ_same_rights(now, was) || now->st_size != was->st_size || now->st_rdev != was->st_rdev)
		return false;
	if (S_ISLNK(now->st_mode))
		return differ_same_link(d->now, d->was, name);
	if (w->what->whole_seconds ? now->st_mtim.tv_sec != was->st_mtim.tv_sec
				   : !differ_same_time(now->st_mtim, was->st_mtim))
		return false;
	if (!S_ISREG(now->st_mode) ||
	    (now->st_ino == was->st_ino && differ_same_time(now->st_ctim, was->st_ctim)))
		return true;
	return differ_same_content(d->now, d->was, name);
}

/* *ret is CUBE_DIFFER_NONE where there is no such directory (any more). */
static int differ_open(int dir, const char *name, int *ret)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = fd < 0 ? CUBE_DIFFER_NONE : fd;
	return fd >= 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
}

static bool differ_marked(int layer, const char *mark)
{
	static const char *const spaces[] = {"trusted", "user"};
	char name[48], value[2];

	for (size_t i = 0; i < CUBE_COUNT(spaces); i++) {
		(void)snprintf(name, sizeof(name), "%s.overlay.%s", spaces[i], mark);
		if (fgetxattr(layer, name, value, 0) >= 0)
			return true;
	}
	return false;
}

static void differ_close(struct differ_dir *d, unsigned n)
{
	for (unsigned i = 0; d->layers != NULL && i < n; i++)
		cube_close_auto(&d->layers[i]);
	cube_free(d->layers);
	cube_close_auto(&d->now);
	cube_close_auto(&d->was);
}

static int differ_layers(struct differ_dir *in, const int *layers, unsigned n, const char *name)
{
	int rc = 0;

	in->layers = cube_calloc(n + 1, sizeof(*in->layers));
	if (in->layers == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		in->layers[i] = CUBE_DIFFER_NONE;
		if (rc == 0 && layers[i] != CUBE_DIFFER_NONE)
			rc = differ_open(layers[i], name, &in->layers[i]);
		if (in->layers[i] >= 0 &&
		    (differ_marked(in->layers[i], "opaque") || differ_marked(in->layers[i], "redirect")))
			in->all = true;
	}
	return rc;
}

/* The directory @name of both views; those that are there are opened. */
static int differ_enter(struct differ_walk *w, const struct differ_dir *d, const char *name, bool now,
			bool was)
{
	struct differ_dir in = {
		.now = CUBE_DIFFER_NONE, .was = CUBE_DIFFER_NONE, .all = d->all || !now || !was};
	int rc = now ? differ_open(d->now, name, &in.now) : 0;

	if (rc == 0 && was)
		rc = differ_open(d->was, name, &in.was);
	if (rc == 0)
		rc = differ_layers(&in, d->layers, w->what->n_layers, name);
	if (rc == 0 && now == (in.now >= 0) && was == (in.was >= 0)) /* else it went while we looked */
		rc = differ_level(w, &in);
	differ_close(&in, w->what->n_layers);
	return rc;
}

/* Files below a directory that is new are A, each; of one that is gone only its own name is told. */
static int differ_pair(struct differ_walk *w, const struct differ_dir *d, const char *name,
		       const struct stat *now, const struct stat *was)
{
	bool dirs = S_ISDIR(now->st_mode) && S_ISDIR(was->st_mode);

	if ((now->st_mode & S_IFMT) != (was->st_mode & S_IFMT)) {
		differ_say(w, 'T');
		return S_ISDIR(now->st_mode) ? differ_enter(w, d, name, true, false) : 0;
	}
	if (dirs ? !differ_same_rights(now, was) : !differ_same(w, d, name, now, was))
		differ_say(w, 'M');
	return dirs ? differ_enter(w, d, name, true, true) : 0;
}

static int differ_name(struct differ_walk *w, const struct differ_dir *d, const char *name)
{
	struct stat now, was;
	bool is = d->now != CUBE_DIFFER_NONE && fstatat(d->now, name, &now, AT_SYMLINK_NOFOLLOW) == 0;
	bool had = d->was != CUBE_DIFFER_NONE && fstatat(d->was, name, &was, AT_SYMLINK_NOFOLLOW) == 0;

	if ((is || had) && w->what->skip != NULL &&
	    w->what->skip(w->what->ctx, d->now, cube_buf_str(&w->path), name))
		return 0;
	if (is && had)
		return differ_pair(w, d, name, &now, &was);
	if (is || had)
		differ_say(w, is ? 'A' : 'D');
	return is && S_ISDIR(now.st_mode) ? differ_enter(w, d, name, true, false) : 0;
}

/* ---- one directory ---- */

static int differ_names(const struct differ_walk *w, const struct differ_dir *d, struct cube_names *ret)
{
	const int both[] = {d->now, d->was};
	const int *from = d->all ? both : d->layers;
	unsigned n = d->all ? CUBE_COUNT(both) : w->what->n_layers;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		if (from[i] != CUBE_DIFFER_NONE)
			rc = cube_names_list(ret, from[i]);
	if (rc == 0)
		cube_names_sort(ret);
	return rc;
}

static int differ_level(struct differ_walk *w, const struct differ_dir *d)
{
	struct cube_names names = CUBE_NAMES;
	size_t len = w->path.len;
	int rc;

	if (w->depth >= DIFFER_DEPTH)
		return 0;
	w->depth++;
	rc = differ_names(w, d, &names);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		if (i > 0 && strcmp(names.at[i], names.at[i - 1]) == 0)
			continue;
		if (cube_cancel_fired(w->cancel)) {
			rc = -EINTR;
			break;
		}
		if (cube_buf_printf(&w->path, "/%s", names.at[i]) < 0)
			rc = -ENOMEM;
		else
			rc = differ_name(w, d, names.at[i]);
		cube_buf_cut(&w->path, len);
	}
	cube_names_done(&names);
	w->depth--;
	return rc;
}

int cube_differ_run(const struct cube_differ *what, struct cube_cancel *cancel)
{
	struct differ_walk w = {.what = what, .cancel = cancel, .path = CUBE_BUF(SIZE_MAX)};
	struct differ_dir d = {.now = CUBE_DIFFER_NONE, .was = CUBE_DIFFER_NONE};
	int rc = cube_buf_adds(&w.path, what->path);

	if (rc == 0 && what->now != CUBE_DIFFER_NONE)
		rc = differ_open(what->now, ".", &d.now);
	if (rc == 0 && what->was != CUBE_DIFFER_NONE)
		rc = differ_open(what->was, ".", &d.was);
	if (rc == 0)
		rc = differ_layers(&d, what->layers, what->n_layers, ".");
	if (rc == 0 && d.now >= 0)
		rc = differ_level(&w, &d);
	differ_close(&d, what->n_layers);
	cube_buf_done(&w.path);
	return rc;
}

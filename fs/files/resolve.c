/* SPDX-License-Identifier: Apache-2.0 */
/* What a link means whose target has a ".." behind a name: a walk inside the tree, as the kernel inside would
 * do it.
 *
 * It stands at `path`, which has neither links nor ".." in it, and takes one component of `rest` after the
 * other: a ".." takes the last name off `path` (at the root: nothing), a directory's name is put behind it, a
 * link's text in front of `rest`. It ends when no ".." is left: then `path` and the rest together are the
 * answer. When a component is not there (or is no directory), the link is broken inside; then the answer
 * keeps that component and the names behind it, without "..", and so fails in the same way.
 *
 * Hostile trees: each walk has a limit of steps and of links. Beyond them, and where links lead round in
 * circles, the answer is ELOOP. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

#define RESOLVE_STEPS 1024 /* names looked at */
#define RESOLVE_LINKS 39   /* the kernel follows 40, of which the link that is shown is one */
#define RESOLVE_REST  (4 * PATH_MAX)

struct resolve {
	struct cube_files *f;
	char *path; /* PATH_MAX */
	char rest[RESOLVE_REST];
	unsigned steps, links;
	/* where `path` leads, unless `fd` is NULL */
	struct cube_ffd *fd;
	const struct cube_fmount *mount;
	const struct cube_fpoint *point;
	bool is_void; /* an empty directory: nothing to open */
};

static void resolve_leave(struct resolve *w)
{
	cube_ffd_unref(cube_steal(w->fd));
	w->is_void = false;
}

/* To the directory @seen, which is @name here. */
static int resolve_descend(struct resolve *w, const char *name, const struct cube_fpeek *seen)
{
	struct cube_ffd *down = NULL;
	int fd, r;

	if (seen->is_top) {
		down = cube_fstep_top(w->f, seen->mount);
		if (down == NULL)
			return -ESTALE;
	} else if (!seen->is_void) {
		r = cube_fstep_open(w->f->space, w->fd->fd, name, &fd);
		if (r < 0)
			return r;
		down = cube_ffd_new(fd);
		if (down == NULL)
			return -ENOMEM;
	}
	cube_ffd_unref(w->fd);
	w->fd = down;
	w->mount = seen->mount;
	w->point = seen->point;
	w->is_void = seen->is_void;
	return 0;
}

static int resolve_peek(struct resolve *w, const char *name, struct cube_fpeek *seen)
{
	if (++w->steps > RESOLVE_STEPS)
		return -ELOOP;
	if (w->is_void)
		return -ENOENT;
	return cube_fstep_peek_at(w->f, w->mount, w->point, w->fd->fd, name, seen);
}

/* Opens where `path` leads, from the root again. */
static int resolve_enter(struct resolve *w)
{
	char name[NAME_MAX + 1];
	struct cube_fpeek seen;
	size_t len;
	int r = 0;

	if (w->fd != NULL || w->is_void)
		return 0;
	w->mount = &w->f->mounts[0];
	w->point = w->f->points;
	w->fd = cube_fstep_top(w->f, w->mount);
	if (w->fd == NULL)
		return -ESTALE;
	for (const char *s = w->path; r == 0 && *s != '\0'; s += len) {
		s += *s == '/';
		len = strcspn(s, "/");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, s);
		r = resolve_peek(w, name, &seen);
		if (r == 0)
			r = S_ISDIR(seen.st.st_mode) ? resolve_descend(w, name, &seen) : -ENOTDIR;
	}
	return r;
}

static void resolve_up(struct resolve *w)
{
	char *slash = strrchr(w->path, '/');

	*(slash != NULL ? slash : w->path) = '\0';
	resolve_leave(w);
}

static int resolve_append(struct resolve *w, const char *text)
{
	size_t len = strlen(w->path);
	int n = snprintf(w->path + len, PATH_MAX - len, "%s%s", len > 0 ? "/" : "", text);

	return n < 0 || (size_t)n >= PATH_MAX - len ? -ENAMETOOLONG : 0;
}

/* The link @name: its text comes in front of the rest. */
static int resolve_link(struct resolve *w, const char *name)
{
	char target[PATH_MAX];
	size_t rest = strlen(w->rest), len;
	ssize_t n = readlinkat(w->fd->fd, name, target, sizeof(target) - 1);

	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	len = (size_t)n;
	if (++w->links > RESOLVE_LINKS || len + 1 + rest >= sizeof(w->rest))
		return -ELOOP;
	memmove(w->rest + len + 1, w->rest, rest + 1);
	memcpy(w->rest, target, len);
	w->rest[len] = '/';
	if (target[0] == '/') {
		*w->path = '\0';
		resolve_leave(w);
	}
	return 0;
}

static int resolve_name(struct resolve *w, const char *name)
{
	struct cube_fpeek seen;
	int r = strlen(name) > NAME_MAX ? -ENAMETOOLONG : resolve_enter(w);

	if (r == 0)
		r = resolve_peek(w, name, &seen);
	if (r != 0)
		return r;
	if (S_ISLNK(seen.st.st_mode))
		return resolve_link(w, name);
	if (!S_ISDIR(seen.st.st_mode))
		return -ENOTDIR;
	r = resolve_descend(w, name, &seen);
	return r < 0 ? r : resolve_append(w, name);
}

/* Takes the first component off the rest; "" when there is none. */
static void resolve_take(struct resolve *w, char name[PATH_MAX])
{
	const char *s = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(s, "/");

	(void)snprintf(name, PATH_MAX, "%.*s", (int)len, s);
	s += len;
	s += strspn(s, "/");
	memmove(w->rest, s, strlen(s) + 1);
}

static bool resolve_is_up(const char *name)
{
	return strcmp(name, "..") == 0;
}

static bool resolve_needed(const struct resolve *w)
{
	struct cube_flink_text t;

	cube_flink_parse(w->rest, &t);
	return t.up > 0 || t.later_up;
}

/* The link is broken at @name: that and the names behind it are put on the path. With a "." where there are
 * none, since something follows inside too: it may be a file, and must not be made by who creates through the
 * link. */
static int resolve_broken(struct resolve *w, char *name)
{
	int r = resolve_append(w, name);
	bool last = true;

	for (resolve_take(w, name); r == 0 && *name != '\0'; resolve_take(w, name)) {
		if (resolve_is_up(name) || strcmp(name, ".") == 0)
			continue;
		r = resolve_append(w, name);
		last = false;
	}
	return r == 0 && last ? resolve_append(w, ".") : r;
}

static int resolve_walk(struct resolve *w)
{
	char name[PATH_MAX] = "";
	int r = 0;

	while (r == 0 && resolve_needed(w)) {
		resolve_take(w, name);
		if (resolve_is_up(name))
			resolve_up(w);
		else if (*name != '\0' && strcmp(name, ".") != 0)
			r = resolve_name(w, name);
	}
	if (r == -ESTALE || r == -ENOMEM || r == -ELOOP)
		return r;
	if (r < 0)
		return resolve_broken(w, name);
	return w->rest[0] != '\0' ? resolve_append(w, w->rest) : 0;
}

int cube_fresolve(struct cube_files *f, char *path, const char *rest)
{
	struct resolve *w = cube_calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->f = f;
	w->path = path;
	(void)snprintf(w->rest, sizeof(w->rest), "%s", rest);
	r = resolve_walk(w);
	cube_ffd_unref(w->fd);
	cube_free(w);
	return r;
}

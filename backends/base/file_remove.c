/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of a tree whose shape is not ours: a sandbox's files. It may be deeper than any path is long, hold
 * unreadable directories and links to anywhere, and have other file systems mounted in it.
 *
 * A level is held by descriptor and entered with RESOLVE_NO_XDEV and without following links, so that neither
 * a link nor a mount leads out. At most TREE_LEVELS of them are open: a directory that lies deeper is moved
 * up into the first one and removed from there. */
#include "backends/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define TREE_LEVELS 32

struct tree_level {
	DIR *dir;
	char *name;   /* in the level above; owned */
	bool removed; /* something, since the last look from its start */
	bool failed;  /* something in it cannot be removed: do not try again */
};

struct tree {
	struct tree_level levels[TREE_LEVELS];
	unsigned depth;
	unsigned moved; /* names given out for moved directories */
	int error;      /* the first; the rest is removed all the same */
};

static void tree_fail(struct tree *t, int error)
{
	if (t->error == 0)
		t->error = error;
	if (t->depth > 0)
		t->levels[t->depth - 1].failed = true;
}

/* A directory for reading, not through a link and not across a mount (-EXDEV). */
static int tree_open_dir(int dirfd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* An owner who took away the right to write (go's module cache does) can give it back. */
static void tree_make_writable(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* not ours: unlinkat will say so */
}

static int tree_push(struct tree *t, int dirfd, const char *name)
{
	struct tree_level *level = &t->levels[t->depth];
	int fd = tree_open_dir(dirfd, name);

	if (fd < 0)
		return fd;
	tree_make_writable(fd);
	*level = (struct tree_level){.dir = fdopendir(fd), .name = cube_strdup(name)};
	if (level->dir == NULL || level->name == NULL) {
		int r = level->dir == NULL ? -errno : -ENOMEM;

		if (level->dir != NULL)
			(void)closedir(level->dir);
		else
			(void)close(fd);
		cube_free(level->name);
		return r;
	}
	t->depth++;
	return 0;
}

static void tree_pop(struct tree *t)
{
	struct tree_level *level = &t->levels[--t->depth];

	(void)closedir(level->dir);
	cube_free(level->name);
}

/* Moves a directory from the deepest level to the first, under a name that is free there. */
static int tree_move_up(struct tree *t, const char *name)
{
	int from = dirfd(t->levels[t->depth - 1].dir), to = dirfd(t->levels[0].dir);

	for (;;) {
		char free_name[64];

		(void)snprintf(free_name, sizeof(free_name), ".cubefs-removed-%u", t->moved++);
		if (renameat2(from, name, to, free_name, RENAME_NOREPLACE) == 0) {
			t->levels[0].removed = true; /* something to look for again */
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
}

static int tree_unlink(int dirfd, const char *name, int flags)
{
	if (unlinkat(dirfd, name, flags) == 0 || errno == ENOENT)
		return 0;
	return errno == EBUSY ? -EXDEV : -errno; /* EBUSY: something is mounted on it */
}

/* A directory of the deepest level. 0: it is gone from there; 1: entered instead. */
static int tree_enter(struct tree *t, const char *name)
{
	int fd = dirfd(t->levels[t->depth - 1].dir);
	int r = tree_unlink(fd, name, AT_REMOVEDIR); /* enough where it is empty */

	if (r != -ENOTEMPTY && r != -EEXIST)
		return r;
	if (t->depth == TREE_LEVELS)
		return tree_move_up(t, name);
	r = tree_push(t, fd, name);
	return r < 0 ? r : 1;
}

static void tree_entry(struct tree *t, const char *name)
{
	struct tree_level *level = &t->levels[t->depth - 1];
	int plain = tree_unlink(dirfd(level->dir), name, 0), r = plain;

	if (plain == -EISDIR || plain == -EPERM) /* EPERM is what POSIX says for a directory */
		r = tree_enter(t, name);
	if (r == -ENOTDIR)
		r = plain; /* not allowed to remove it */
	if (r < 0)
		tree_fail(t, r);
	else if (r == 0)
		level->removed = true;
}

/* The deepest level was read to its end. Deleting while reading may hide entries, and moved ones may have
 * come: look again as long as that removes something, then remove the directory itself. */
static void tree_end_of_level(struct tree *t, int topfd)
{
	struct tree_level *level = &t->levels[t->depth - 1];
	int above = t->depth > 1 ? dirfd(t->levels[t->depth - 2].dir) : topfd;
	int r = level->failed ? -ENOTEMPTY : tree_unlink(above, level->name, AT_REMOVEDIR);

	if ((r == -ENOTEMPTY || r == -EEXIST) && level->removed) {
		level->removed = false;
		level->failed = false; /* tried again with the rest */
		rewinddir(level->dir);
		return;
	}
	tree_pop(t);
	if (r < 0)
		tree_fail(t, r); /* after the pop: the level above cannot be removed either */
	else if (t->depth > 0)
		t->levels[t->depth - 1].removed = true;
}

static void tree_step(struct tree *t, int topfd)
{
	struct tree_level *level = &t->levels[t->depth - 1];
	const struct dirent *e;

	errno = 0;
	e = readdir(level->dir);
	if (e == NULL) {
		if (errno != 0)
			tree_fail(t, -errno);
		tree_end_of_level(t, topfd);
	} else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
		tree_entry(t, e->d_name);
	}
}

int cube_file_remove_tree(int dirfd, const char *name)
{
	struct tree t = {.depth = 0};
	int r = tree_unlink(dirfd, name, 0);

	if (r != -EISDIR && r != -EPERM)
		return r;
	r = tree_unlink(dirfd, name, AT_REMOVEDIR);
	if (r != -ENOTEMPTY && r != -EEXIST)
		return r == -ENOTDIR ? -EPERM : r;
	r = tree_push(&t, dirfd, name);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while (t.depth > 0)
		tree_step(&t, dirfd);
	return t.error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names that go or move: unlink, rmdir, rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

static int remove_open(struct cube_files_space *s, uint64_t parent, const char *name, struct cube_fdoor *ret)
{
	int r = cube_fstep_name(name);

	return r < 0 ? r : cube_fdoor_open(s, parent, CUBE_DOOR_DIR | CUBE_DOOR_WRITE, ret);
}

/* May @name go? Mounts stay where they are, as inside (-EBUSY): ours, the directories above them, and what is
 * mounted inside, which the kernel would unmount, since it is not mounted in *our* namespace. -ENOENT:
 * nothing is there. */
static int remove_check(const struct cube_fdoor *d, const char *name, struct cube_fpeek *ret)
{
	int r;

	if (cube_fpoint_find(d->n->point, name) != NULL)
		return -EBUSY;
	r = cube_fstep_peek(d->n, d->fd->fd, name, ret);
	return r == 0 && ret->is_void ? -EBUSY : r;
}

static int remove_name(struct cube_files_space *s, uint64_t parent, const char *name, int flags)
{
	cube_auto_fdoor d = {.n = NULL};
	struct cube_fpeek seen;
	int r = remove_open(s, parent, name, &d);

	if (r == 0)
		r = remove_check(&d, name, &seen);
	if (r == 0 && unlinkat(d.fd->fd, name, flags) < 0)
		r = -errno;
	if (r == 0 && (flags & AT_REMOVEDIR) != 0)
		cube_fnode_set_gone(d.n, name, &seen.st);
	if (r == 0)
		cube_fnode_drop_name(d.n, name, true);
	return r;
}

int cube_files_unlink(struct cube_files_space *s, uint64_t parent, const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? -EISDIR : remove_name(s, parent, name, 0);
}

int cube_files_rmdir(struct cube_files_space *s, uint64_t parent, const char *name)
{
	if (strcmp(name, ".") == 0)
		return -EINVAL;
	return strcmp(name, "..") == 0 ? -ENOTEMPTY : remove_name(s, parent, name, AT_REMOVEDIR);
}

static int rename_run(const struct cube_fdoor *from, const char *name, const struct cube_fdoor *to,
		      const char *new_name, unsigned flags)
{
	struct cube_fmove move;
	int r;

	if (from->n->tree != to->n->tree || from->n->mount != to->n->mount)
		return -EXDEV;
	r = cube_fmove_init(&move, from->n, name, to->n, new_name, (flags & RENAME_EXCHANGE) != 0);
	if (r < 0)
		return r;
	if (renameat2(from->fd->fd, name, to->fd->fd, new_name, flags) == 0)
		cube_fmove_commit(&move);
	else
		r = -errno;
	cube_fmove_done(&move);
	return r;
}

int cube_files_renamed(struct cube_files_space *s, uint64_t parent, const char *name, uint64_t new_parent,
		       const char *new_name)
{
	cube_auto_fdoor from = {.n = NULL}, to = {.n = NULL};
	struct cube_fmove move;
	int r = remove_open(s, parent, name, &from);

	if (r == 0)
		r = remove_open(s, new_parent, new_name, &to);
	if (r == 0 && from.n->tree != to.n->tree)
		r = -EXDEV;
	if (r == 0)
		r = cube_fmove_init(&move, from.n, name, to.n, new_name, false);
	if (r < 0)
		return r;
	cube_fmove_commit(&move);
	cube_fmove_done(&move);
	return 0;
}

int cube_files_rename(struct cube_files_space *s, uint64_t parent, const char *name, uint64_t new_parent,
		      const char *new_name, unsigned flags)
{
	static const char *const fixed[] = {".", ".."};
	cube_auto_fdoor from = {.n = NULL}, to = {.n = NULL};
	struct cube_fpeek seen;
	int r;

	if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0)
		return -EINVAL;
	for (size_t i = 0; i < CUBE_COUNT(fixed); i++) {
		if (strcmp(name, fixed[i]) == 0 || strcmp(new_name, fixed[i]) == 0)
			return -EBUSY;
	}
	r = remove_open(s, parent, name, &from);
	if (r == 0)
		r = remove_open(s, new_parent, new_name, &to);
	if (r == 0)
		r = remove_check(&from, name, &seen);
	if (r != 0)
		return r;
	r = remove_check(&to, new_name, &seen);
	if (r != 0 && r != -ENOENT)
		return r;
	return rename_run(&from, name, &to, new_name, flags);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Listing directories. The kernel's records are kept with the handle, so that a caller who takes a few at a
 * time does not have them read again; offsets are the file system's own. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

#define DIR_BUFFER (32 << 10)

struct cube_fdirbuf {
	off_t next; /* offset of what stands at `at`, or of the descriptor when all is taken */
	size_t at, end;
	_Alignas(struct dirent64) char data[DIR_BUFFER];
};

void cube_fdirbuf_free(struct cube_fdirbuf *b)
{
	cube_free(b);
}

/* One listing under way. */
struct dir_walk {
	struct cube_fdoor d; /* borrowed from the handle */
	bool plus;
	int (*add)(void *ctx, const char *name, const struct cube_files_entry *e, off_t next);
	void *ctx;
};

static mode_t dir_type(unsigned char d_type)
{
	return DTTOIF(d_type);
}

/* "." and "..": without a count. */
static void dir_dot(struct cube_fnode *n, const char *name, struct cube_files_entry *e)
{
	cube_auto_fnode up = NULL;
	char own[NAME_MAX + 1];

	if (name[1] == '\0' || cube_fnode_place(n, 0, &up, own) < 0)
		up = (cube_fnode_pin_more(n), n);
	if (up->is_void)
		(void)cube_fattr_get(up, &e->st); /* makes it up: cannot fail */
	else
		e->st.st_ino = cube_fattr_node_ino(up);
	e->st.st_mode = S_IFDIR;
}

/* Number and type, without a node. 0: as the kernel's record says. */
static int dir_numbers(struct dir_walk *w, const struct dirent64 *record, struct cube_files_entry *e)
{
	struct cube_fnode *n = w->d.n;
	struct cube_fpeek seen;
	int r;

	if (n->mount->d_ino_true && record->d_type != DT_DIR && record->d_type != DT_UNKNOWN) {
		e->st.st_ino = cube_fattr_ino(n->tree, n->mount, cube_fnode_object(n).dev, record->d_ino);
		e->st.st_mode = dir_type(record->d_type);
		return 0;
	}
	r = cube_fstep_peek(n, w->d.fd->fd, record->d_name, &seen);
	if (r < 0)
		return r;
	e->st.st_mode = seen.st.st_mode & S_IFMT;
	e->st.st_ino = seen.is_void ? cube_fattr_void_ino(n, record->d_name)
				    : cube_fattr_ino(n->tree, seen.mount, seen.st.st_dev, seen.st.st_ino);
	return 0;
}

static int dir_entry(struct dir_walk *w, const struct dirent64 *record, struct cube_files_entry *e)
{
	int r;

	*e = (struct cube_files_entry){.id = 0};
	if (strcmp(record->d_name, ".") == 0 || strcmp(record->d_name, "..") == 0) {
		dir_dot(w->d.n, record->d_name, e);
		return 0;
	}
	r = w->plus ? cube_fname_entry(&w->d, record->d_name, e) : dir_numbers(w, record, e);
	if (r == 0 || r == -ENOENT || r == -ESTALE)
		return r;
	/* there, but its attributes cannot be had */
	e->id = 0;
	e->st.st_ino =
		cube_fattr_ino(w->d.n->tree, w->d.n->mount, cube_fnode_object(w->d.n).dev, record->d_ino);
	e->st.st_mode = dir_type(record->d_type);
	return 0;
}

/* 1: @add wants no more. What has vanished since the record was made is passed over. */
static int dir_give(struct dir_walk *w, const struct dirent64 *record)
{
	struct cube_files_entry e;
	int r = dir_entry(w, record, &e);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (w->add(w->ctx, record->d_name, &e, record->d_off) == 0)
		return 0;
	if (e.id != 0)
		cube_fnode_uncount(w->d.n->tree->space, e.id, 1);
	return 1;
}

/* More records; 0: the end. */
static ssize_t dir_fill(const struct cube_files_handle *h, struct cube_fdirbuf *b)
{
	ssize_t n = cube_fhandle_result(h, syscall(SYS_getdents64, h->fd->fd, b->data, sizeof(b->data)));

	b->at = 0;
	b->end = n > 0 ? (size_t)n : 0;
	return n;
}

static int dir_seek(const struct cube_files_handle *h, struct cube_fdirbuf *b, off_t offset)
{
	if (offset != 0 && offset == b->next)
		return 0;
	b->at = b->end = 0;
	b->next = offset;
	return (int)cube_fhandle_result(h, lseek(h->fd->fd, offset, SEEK_SET) < 0 ? -1 : 0);
}

static int dir_list(struct cube_files_handle *h, off_t offset, struct dir_walk *w)
{
	struct cube_fdirbuf *b = h->dir;
	ssize_t r;

	if (b == NULL)
		b = h->dir = cube_calloc(1, sizeof(*b));
	if (b == NULL)
		return -ENOMEM;
	r = dir_seek(h, b, offset);
	while (r == 0) {
		const struct dirent64 *record;

		if (b->at == b->end) {
			r = dir_fill(h, b);
			if (r <= 0)
				break;
		}
		record = (const struct dirent64 *)(const void *)(b->data + b->at);
		r = dir_give(w, record);
		if (r == 0) {
			b->at += record->d_reclen;
			b->next = record->d_off;
		}
	}
	return r < 0 ? (int)r : 0;
}

/* An empty one: "." and "..", at 0 and 1. */
static int dir_list_void(off_t offset, struct dir_walk *w)
{
	static const char *const names[] = {".", ".."};

	for (off_t i = offset; i >= 0 && i < (off_t)CUBE_COUNT(names); i++) {
		struct cube_files_entry e = {.id = 0};

		dir_dot(w->d.n, names[i], &e);
		if (w->add(w->ctx, names[i], &e, i + 1) != 0)
			break;
	}
	return 0;
}

int cube_files_readdir(struct cube_files_space *s, struct cube_files_handle *h, off_t offset, bool plus,
		       int (*add)(void *ctx, const char *name, const struct cube_files_entry *e, off_t next),
		       void *ctx)
{
	struct dir_walk w = {.d = {.n = h->n, .fd = h->fd}, .plus = plus, .add = add, .ctx = ctx};
	int r = cube_fhandle_ok(h);

	(void)s;
	if (r == 0 && !h->is_dir)
		r = -ENOTDIR;
	if (r < 0)
		return r;
	if (h->fd == NULL)
		return dir_list_void(offset, &w);
	(void)pthread_mutex_lock(&h->mutex);
	r = dir_list(h, offset, &w);
	(void)pthread_mutex_unlock(&h->mutex);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, open files and locks as the process before had them (fs/keep). A name is believed as it was written down:
 * whoever goes there checks what he finds. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/map.h"
#include "fs/files/files_priv.h"

struct restore {
	struct cube_files_space *s;
	struct cube_keep *k;
	struct cube_imap *records; /* id -> record, plus 1 */
	uint64_t *path;            /* ids on the way up */
	size_t n_path, room;
	size_t found;
};

static struct cube_keep_file *restore_record(const struct restore *r, uint64_t id)
{
	uint64_t i = (uintptr_t)cube_imap_get(r->records, id);

	return i == 0 ? NULL : cube_keep_at(&r->k->files, (uint32_t)i - 1);
}

static const char *restore_name(const struct restore *r, const struct cube_keep_file *rec)
{
	const struct cube_keep_name *l;

	if (rec->long_name == CUBE_KEEP_NONE)
		return rec->name;
	l = cube_keep_at(&r->k->names, rec->long_name);
	return l->name;
}

static struct cube_files *restore_tree(const struct restore *r, uint32_t root)
{
	return cube_imap_get(r->s->again, (uint64_t)root + 1);
}

static void restore_where(struct cube_fnode *n, struct cube_fnode *parent, const char *name)
{
	const struct cube_fpoint *point = parent != NULL ? cube_fpoint_find(parent->point, name) : NULL;

	n->mount = parent != NULL ? parent->mount : &n->tree->mounts[0];
	n->point = point;
	if (point != NULL && point->mount != NULL) {
		n->mount = point->mount;
		n->is_top = true;
	}
}

static void restore_one_locked(struct restore *r, struct cube_keep_file *rec, uint32_t record)
{
	struct cube_files *f = restore_tree(r, rec->root);
	struct cube_fobject object = {.dev = rec->dev, .ino = rec->ino, .type = (mode_t)rec->type << 12};
	struct cube_fnode *parent = rec->parent != 0 ? cube_fnode_find_id_locked(r->s, rec->parent) : NULL;
	const char *name = restore_name(r, rec);
	struct cube_fplace *place;
	struct cube_fnode *n;

	if (f == NULL || (rec->parent != 0 && (parent == NULL || parent->tree != f)))
		return;
	n = cube_fnode_make_locked(f, &object, atomic_load(&rec->key));
	place = n == NULL || parent == NULL ? NULL : cube_fplace_new(parent, name);
	if (n == NULL)
		return;
	restore_where(n, parent, name);
	n->is_void = rec->is_void != 0;
	atomic_store(&n->mapped, S_ISREG(object.type)); /* for all we know */
	n->kept = record;
	n->kept_seq = rec->seq;
	atomic_store(&n->lookups, atomic_load(&rec->lookups));
	if (parent != NULL)
		cube_fnode_set_object_locked(n, &object);
	if (place != NULL)
		cube_fplace_attach_locked(place, n);
	r->found++;
}

static int restore_push(struct restore *r, uint64_t id)
{
	size_t room = r->room > 0 ? 2 * r->room : 64;
	uint64_t *more;

	if (r->n_path == r->room) {
		more = cube_realloc(r->path, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		r->path = more;
		r->room = room;
	}
	r->path[r->n_path++] = id;
	return 0;
}

/* Those above it first. */
static int restore_node_locked(struct restore *r, uint64_t id)
{
	struct cube_keep_file *rec;

	r->n_path = 0;
	while (id != 0 && cube_fnode_find_id_locked(r->s, id) == NULL &&
	       (rec = restore_record(r, id)) != NULL) {
		if (r->n_path > cube_imap_count(r->records))
			return 0; /* a circle: no honest record makes one */
		if (restore_push(r, id) < 0)
			return -ENOMEM;
		id = rec->parent;
	}
	while (r->n_path > 0) {
		id = r->path[--r->n_path];
		rec = restore_record(r, id);
		restore_one_locked(r, rec, (uint32_t)(uintptr_t)cube_imap_get(r->records, id) - 1);
	}
	return 0;
}

static int restore_index(struct restore *r)
{
	for (uint32_t i = 0; i < cube_keep_used(&r->k->files); i++) {
		const struct cube_keep_file *rec = cube_keep_at(&r->k->files, i), *other;
		uint64_t id = atomic_load(&rec->key);

		if (id == 0)
			continue;
		other = restore_record(r, id);
		if (other != NULL && other->seq > rec->seq)
			continue;
		(void)cube_imap_take(r->records, id);
		if (cube_imap_put(r->records, id, (void *)(uintptr_t)(i + 1)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Records of what was not found, and the older ones of those that have two. */
static void restore_clear_locked(struct restore *r)
{
	for (uint32_t i = 0; i < cube_keep_used(&r->k->files); i++) {
		const struct cube_keep_file *rec = cube_keep_at(&r->k->files, i);
		uint64_t id = atomic_load(&rec->key);
		const struct cube_fnode *n = id == 0 ? NULL : cube_fnode_find_id_locked(r->s, id);

		if (id != 0 && (n == NULL || n->kept != i))
			cube_fkept_give(r->s, i);
	}
	for (uint32_t i = 0; i < cube_keep_used(&r->k->names); i++) {
		const struct cube_keep_name *l = cube_keep_at(&r->k->names, i);
		uint64_t id = atomic_load(&l->key);
		const struct cube_fnode *n = id == 0 ? NULL : cube_fnode_find_id_locked(r->s, id);
		const struct cube_keep_file *rec = n == NULL ? NULL : cube_keep_at(&r->k->files, n->kept);

		if (id != 0 && (rec == NULL || rec->long_name != i))
			cube_keep_give(&r->k->names, i);
	}
}

static int restore_nodes(struct restore *r)
{
	int code = restore_index(r);

	(void)pthread_rwlock_wrlock(&r->s->lock);
	r->s->restoring = true;
	for (uint32_t i = 0; code == 0 && i < cube_keep_used(&r->k->files); i++) {
		const struct cube_keep_file *rec = cube_keep_at(&r->k->files, i);
		uint64_t id = atomic_load(&rec->key);

		if (id != 0)
			code = restore_node_locked(r, id);
	}
	restore_clear_locked(r);
	r->s->restoring = false;
	(void)pthread_rwlock_unlock(&r->s->lock);
	return code;
}

static void restore_locks(struct restore *r)
{
	for (uint32_t i = 0; i < cube_keep_used(&r->k->locks); i++) {
		const struct cube_keep_lock *rec = cube_keep_at(&r->k->locks, i);
		uint64_t id = atomic_load(&rec->key);
		cube_auto_fnode n = NULL;

		if (id == 0)
			continue;
		if (rec->fd >= 0 && cube_fnode_pin(r->s, id, &n) == 0 &&
		    cube_flock_restore(n, rec->owner, rec->writes != 0, rec->fd, i) == 0)
			continue;
		if (rec->fd >= 0)
			(void)close(rec->fd);
		cube_keep_give(&r->k->locks, i);
	}
}

int cube_files_restore(struct cube_files_space *s)
{
	struct restore r = {.s = s, .k = s->options.keep, .records = cube_imap_new()};
	int code = -ENOMEM;

	if (s->again == NULL)
		s->again = cube_imap_new(); /* no sandbox had files */
	if (r.records != NULL && s->again != NULL)
		code = restore_nodes(&r);
	if (code == 0) {
		restore_locks(&r);
		cube_log(CUBE_LOG_INFO, "files", "%zu files are known to the kernel", r.found);
	}
	cube_imap_free(r.records);
	cube_free(r.path);
	cube_imap_free(cube_steal(s->again));
	return code;
}

int cube_files_adopt(struct cube_files_space *s, uint64_t id, int fd, int flags, bool is_dir,
		     struct cube_files_handle **ret)
{
	cube_auto_fnode n = NULL;
	struct cube_ffd *f;
	int r = cube_fnode_pin(s, id, &n);

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	f = cube_ffd_new(fd);
	return f == NULL ? -ENOMEM : cube_fhandle_new(n, f, flags, is_dir, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and locks for the process that comes after this one (fs/keep): written down as they change. */
#include <string.h>

#include "fs/files/files_priv.h"

static struct cube_keep *kept_in(const struct cube_fnode *n)
{
	return n->tree->kept == CUBE_KEEP_NONE ? NULL : n->tree->space->options.keep;
}

static void kept_give(struct cube_keep *k, uint32_t i)
{
	const struct cube_keep_file *rec;
	uint32_t name;

	if (i == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&k->files, i);
	name = rec->long_name;
	cube_keep_give(&k->files, i);
	cube_keep_give(&k->names, name);
}

void cube_fkept_give(struct cube_files_space *s, uint32_t record)
{
	kept_give(s->options.keep, record);
}

/* False: no room. */
static bool kept_name(struct cube_keep *k, struct cube_keep_file *rec, uint64_t id, const char *name)
{
	size_t size = strlen(name) + 1;
	struct cube_keep_name *l;

	rec->long_name = CUBE_KEEP_NONE;
	if (size <= sizeof(rec->name)) {
		memcpy(rec->name, name, size);
		return true;
	}
	rec->long_name = cube_keep_take(&k->names);
	if (rec->long_name == CUBE_KEEP_NONE)
		return false;
	l = cube_keep_at(&k->names, rec->long_name);
	memcpy(l->name, name, size);
	atomic_store_explicit(&l->key, id, memory_order_release);
	return true;
}

/* Whatever holds of a node is written anew, and then what held before is given up. */
void cube_fkept_node_locked(struct cube_fnode *n)
{
	struct cube_keep *k = kept_in(n);
	uint32_t i = k == NULL || n->tree->space->restoring ? CUBE_KEEP_NONE : cube_keep_take(&k->files), old;
	struct cube_keep_file *rec;

	if (i == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&k->files, i);
	if (!kept_name(k, rec, n->id, n->places != NULL ? n->places->name : "")) {
		cube_keep_give(&k->files, i);
		return;
	}
	rec->parent = n->places != NULL ? n->places->parent->id : 0;
	rec->ino = n->object.ino;
	rec->dev = n->object.dev;
	rec->root = n->tree->kept;
	rec->seq = ++n->kept_seq;
	rec->type = (uint16_t)(n->object.type >> 12);
	rec->is_void = n->is_void;
	atomic_store(&rec->lookups, atomic_load(&n->lookups));
	old = n->kept;
	n->kept = i;
	atomic_store_explicit(&rec->key, n->id, memory_order_release);
	kept_give(k, old);
}

/* With the lock for reading at least: the record is exchanged by who has it for writing. */
void cube_fkept_counted_locked(struct cube_fnode *n, uint64_t by)
{
	struct cube_keep *k = kept_in(n);
	struct cube_keep_file *rec;

	if (k == NULL || n->kept == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&k->files, n->kept);
	atomic_fetch_add(&rec->lookups, by);
}

void cube_fkept_node_gone_locked(struct cube_fnode *n)
{
	struct cube_keep *k = kept_in(n);

	if (k != NULL)
		kept_give(k, n->kept);
}

uint32_t cube_fkept_lock(struct cube_fnode *n, uint64_t owner, int fd, bool writes)
{
	struct cube_keep *k = kept_in(n);
	uint32_t i = k == NULL ? CUBE_KEEP_NONE : cube_keep_take(&k->locks);
	struct cube_keep_lock *rec;

	if (i == CUBE_KEEP_NONE)
		return i;
	rec = cube_keep_at(&k->locks, i);
	rec->owner = owner;
	rec->fd = fd;
	rec->writes = writes;
	atomic_store_explicit(&rec->key, n->id, memory_order_release);
	return i;
}

void cube_fkept_lock_gone(struct cube_files_space *s, uint32_t record)
{
	if (s->options.keep != NULL)
		cube_keep_give(&s->options.keep->locks, record);
}

void cube_files_keep_as(struct cube_files *f, uint32_t record)
{
	f->kept = record;
}

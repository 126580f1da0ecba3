/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel that is told has asked for itself: names that it takes away or makes. It knows as soon as it is
 * answered. Told late, it would take out of its table what is there by then, under whoever is in it.
 *
 * Each is noted before the system call, so its event finds the note, whoever reads it and when; and the note is gone
 * when the answer is given, behind the reading of whatever event there was, so it finds no other. Only what somebody
 * else does to the same name in between may find it instead; that says the same, or (the call is refused) it is told
 * behind it. */
#include <string.h>

#include "fs/files/files_priv.h"

void cube_fowns_init(struct cube_fowns *o)
{
	cube_list_init(&o->notes);
	(void)pthread_mutex_init(&o->lock, NULL);
}

void cube_fowns_done(struct cube_fowns *o)
{
	(void)pthread_mutex_destroy(&o->lock);
}

static bool own_is_watched(struct cube_files_space *s, uint64_t dir)
{
	const struct cube_fnode *n;
	bool is;

	if (s->watch == NULL)
		return false;
	(void)pthread_rwlock_rdlock(&s->lock);
	n = cube_fnode_find_id_locked(s, dir);
	is = n != NULL && atomic_load(&n->watched) != NULL;
	(void)pthread_rwlock_unlock(&s->lock);
	return is;
}

void cube_files_own_begin(struct cube_files_space *s, struct cube_files_own *own, uint64_t dir,
			  const char *name, bool comes)
{
	*own = (struct cube_files_own){.dir = dir, .name = name, .comes = comes};
	cube_list_init(&own->link);
	own->is_noted = own_is_watched(s, dir);
	if (!own->is_noted)
		return;
	(void)pthread_mutex_lock(&s->owns.lock);
	cube_list_push(&s->owns.notes, &own->link);
	(void)pthread_mutex_unlock(&s->owns.lock);
}

static bool own_seen(struct cube_files_space *s, struct cube_files_own *own, bool ends)
{
	bool seen;

	(void)pthread_mutex_lock(&s->owns.lock);
	seen = own->is_seen;
	if (ends)
		cube_list_remove(&own->link);
	(void)pthread_mutex_unlock(&s->owns.lock);
	return seen;
}

void cube_files_own_end(struct cube_files_space *s, struct cube_files_own *own, bool done)
{
	if (!own->is_noted)
		return;
	if (done && !own_seen(s, own, false))
		cube_files_tell(s);
	if (own_seen(s, own, true) && !done)
		cube_fwatch_tell_name(s, own->dir, own->name); /* that was another's event */
}

bool cube_fowns_event(struct cube_fowns *o, uint64_t dir, const char *name, bool comes)
{
	bool found = false;

	(void)pthread_mutex_lock(&o->lock);
	cube_list_each (l, &o->notes) {
		struct cube_files_own *own = cube_list_entry(l, struct cube_files_own, link);

		if (found || own->dir != dir || own->comes != comes || strcmp(own->name, name) != 0)
			continue;
		found = own->is_seen = true;
		cube_list_remove(&own->link);
	}
	(void)pthread_mutex_unlock(&o->lock);
	return found;
}

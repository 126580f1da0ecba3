/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes that sandboxes have: from a create line to the backend, and over a restart of the daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/bytes.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/stock.h"
#include "ctl/volume_priv.h"

#define USES_MAX (CUBE_MOUNTS_MAX - 1)

static struct cube_volume_use *use_grow(struct cube_own *own)
{
	struct cube_volume_use *grown = cube_realloc(own->volumes, (own->n_volumes + 1) * sizeof(*grown));

	if (grown == NULL)
		return NULL;
	own->volumes = grown;
	grown[own->n_volumes] = (struct cube_volume_use){0};
	return &grown[own->n_volumes++];
}

/* "KEY", "KEY,ro", "KEY,rw". */
static int use_value(const char *value, char name[CUBE_NAME_MAX + 1], bool *read_only)
{
	size_t n = strcspn(value, ",");

	if (n > CUBE_NAME_MAX)
		return -EINVAL;
	memcpy(name, value, n);
	name[n] = '\0';
	*read_only = strcmp(value + n, ",ro") == 0;
	return value[n] == '\0' || *read_only || strcmp(value + n, ",rw") == 0 ? 0 : -EINVAL;
}

int cube_use_add(struct cube_cube *c, const char *path, const char *value, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	char name[CUBE_NAME_MAX + 1];
	struct cube_volume_use *u;
	bool read_only;
	int r = 0;

	if (!cube_name_inside_ok(path))
		return cube_fail(
			err, -EINVAL,
			"volume.%s: an absolute path inside is wanted, without '.', '..' or '//', and not "
			"of /proc, /sys or /dev",
			path);
	if (use_value(value, name, &read_only) < 0)
		return cube_fail(err, -EINVAL, "volume %s at %s: KEY or KEY,ro", value, path);
	for (size_t i = 0; i < own->n_volumes; i++)
		if (strcmp(own->volumes[i].path, path) == 0)
			return cube_fail(err, -EINVAL, "two volumes at %s", path);
	if (own->n_volumes == USES_MAX)
		return cube_fail(err, -EINVAL, "a sandbox has %d volumes at most", USES_MAX);
	r = cube_backend_need(c->service->backend, CUBE_CAP_VOLUMES, err);
	if (r == 0)
		r = cube_volume_check(c->service, name, err);
	if (r < 0)
		return r;
	u = use_grow(own);
	if (u == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	u->name = cube_strdup(name);
	u->path = cube_strdup(path);
	u->read_only = read_only;
	return u->name != NULL && u->path != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

int cube_use_accept(struct cube_cube *c, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++) {
		struct cube_volume_use *u = &own->volumes[i];
		int r = cube_volume_for(c->service, u->name, &u->volume, err);

		if (r < 0) {
			cube_use_undo(c);
			return r;
		}
		u->fresh = r == 1;
	}
	return 0;
}

int cube_use_save_volumes(struct cube_cube *c, struct cube_err *err)
{
	const struct cube_own *own = cube_own(c);
	int r = 0;

	for (size_t i = 0; r == 0 && i < own->n_volumes; i++)
		if (own->volumes[i].fresh)
			r = cube_volume_save(own->volumes[i].volume, err);
	return r;
}

int cube_use_make(struct cube_service *s, const struct cube_spec_parts *p, struct cube_cancel *cancel,
		  struct cube_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->spec.n_volumes; i++) {
		const struct cube_spec_volume *v = &p->volumes[i];
		const struct cube_use_copy *copy = &p->copies[i];

		cube_volume_sync(s->domain, v->volume);
		r = copy->cp[0] != '\0'
			    ? cube_backend_volume_copy(s->backend, copy->cp, copy->of, v->volume, cancel, err)
			    : cube_backend_volume_make(s->backend, v->volume, v->name, cancel, err);
	}
	return r;
}

/* An array, to be freed; NULL: memory or none. */
struct cube_use_copy *cube_use_copies(const struct cube_cube *c)
{
	const struct cube_own *own = cube_own((struct cube_cube *)(uintptr_t)c);
	struct cube_use_copy *list = own->n_volumes > 0 ? cube_calloc(own->n_volumes, sizeof(*list)) : NULL;

	for (size_t i = 0; list != NULL && i < own->n_volumes; i++)
		list[i] = own->volumes[i].copy;
	return list;
}

/* ---- What a fork's child gets of its parent ---- */

static bool uids_have(char (*list)[17], unsigned n, const char *uid)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(list[i], uid) == 0)
			return true;
	return false;
}

int cube_use_writable(struct cube_cube *c, char (**ret)[17], unsigned *ret_n)
{
	const struct cube_own *own = cube_own(c);
	char(*list)[17] = own->n_volumes > 0 ? cube_calloc(own->n_volumes, sizeof(*list)) : NULL;
	unsigned n = 0;

	if (list == NULL && own->n_volumes > 0)
		return -ENOMEM;
	for (size_t i = 0; i < own->n_volumes; i++) {
		const struct cube_volume_use *u = &own->volumes[i];

		if (u->volume != NULL && !u->read_only && !uids_have(list, n, u->volume->uid))
			memcpy(list[n++], u->volume->uid, sizeof(list[0]));
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static struct cube_volume_use *use_at(struct cube_cube *c, const char *path)
{
	struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++)
		if (strcmp(own->volumes[i].path, path) == 0)
			return &own->volumes[i];
	return NULL;
}

static bool use_named(struct cube_cube *c, const char *name)
{
	const struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++)
		if (strcmp(own->volumes[i].name, name) == 0)
			return true;
	return false;
}

/* What becomes the copy of the volume @uid; NULL: nothing yet. */
static const struct cube_volume_use *use_copy_of(struct cube_cube *c, const char *uid)
{
	const struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++)
		if (strcmp(own->volumes[i].copy.of, uid) == 0)
			return &own->volumes[i];
	return NULL;
}

/* "VOLUME-SANDBOX", or with a number behind where that is taken. What is too long is cut. */
static void inherit_name(struct cube_cube *c, const char *volume, char name[CUBE_NAME_MAX + 1])
{
	unsigned n = 1;

	(void)snprintf(name, CUBE_NAME_MAX + 1, "%.40s-%s", volume, c->name);
	while (cube_volume_taken(c->domain, name) || use_named(c, name))
		(void)snprintf(name, CUBE_NAME_MAX + 1, "%.30s-%.20s-%u", volume, c->name, ++n);
}

/* Where nothing was asked for: what its parent has at several places the child has there too. */
static int inherit_add(struct cube_cube *c, const struct cube_volume_use *old,
		       const struct cube_volume_use *copy, struct cube_err *err)
{
	char name[CUBE_NAME_MAX + 1], value[CUBE_NAME_MAX + 4];

	if (copy != NULL || old->read_only)
		(void)snprintf(name, sizeof(name), "%s", copy != NULL ? copy->name : old->volume->name);
	else
		inherit_name(c, old->volume->name, name);
	(void)snprintf(value, sizeof(value), "%s%s", name, old->read_only ? ",ro" : "");
	return cube_use_add(c, old->path, value, err);
}

static int inherit_one(struct cube_cube *c, const struct cube_volume_use *old,
		       const struct cube_checkpoint_entry *e, bool fork, struct cube_err *err)
{
	const struct cube_volume_use *copy = use_copy_of(c, old->volume->uid);
	struct cube_volume_use *u = use_at(c, old->path);
	bool is_shared = old->read_only && copy == NULL;
	int r = 0;

	if (u != NULL && (old->read_only || (!fork && cube_volume_taken(c->domain, u->name))))
		return 0; /* another one was asked for */
	if (u != NULL && cube_volume_taken(c->domain, u->name))
		return cube_fail(err, -EEXIST,
				 "volume '%s' is there already, and the fork's at %s would be a copy of '%s'",
				 u->name, old->path, old->name);
	if (u == NULL) {
		r = inherit_add(c, old, copy, err);
		u = use_at(c, old->path);
	}
	if (r < 0 || u == NULL || is_shared)
		return r;
	memcpy(u->copy.cp, e->id, sizeof(u->copy.cp));
	memcpy(u->copy.of, old->volume->uid, sizeof(u->copy.of));
	return 0;
}

/* First those that are copied: where one is read only beside, it is the copy. */
int cube_use_inherit(struct cube_cube *c, struct cube_cube *parent, const struct cube_checkpoint_entry *e,
		     bool fork, struct cube_err *err)
{
	const struct cube_own *old = cube_own(parent);
	int r = 0;

	for (int read_only = 0; read_only <= 1; read_only++)
		for (size_t i = 0; r == 0 && i < old->n_volumes; i++)
			if (old->volumes[i].volume != NULL && old->volumes[i].read_only == (read_only != 0))
				r = inherit_one(c, &old->volumes[i], e, fork, err);
	return r;
}

static bool use_has(struct cube_cube *c, const struct cube_volume_entry *v)
{
	const struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++)
		if (own->volumes[i].volume == v)
			return true;
	return false;
}

static void use_each_of(struct cube_list *cubes, const struct cube_volume_entry *v,
			void (*each)(void *ctx, struct cube_cube *c), void *ctx)
{
	cube_list_each (i, cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (use_has(c, v))
			each(ctx, c);
	}
}

void cube_volume_users(struct cube_volume_entry *v, void (*each)(void *ctx, struct cube_cube *c), void *ctx)
{
	use_each_of(&v->service->domain->cubes, v, each, ctx);
	cube_list_each (i, &v->service->stocks)
		use_each_of(&cube_list_entry(i, struct cube_stock, link)->cubes, v, each, ctx);
}

struct use_others {
	const struct cube_cube *but;
	bool any;
};

static void use_other(void *ctx, struct cube_cube *c)
{
	struct use_others *o = ctx;

	o->any = o->any || c != o->but;
}

static bool use_elsewhere(struct cube_volume_entry *v, const struct cube_cube *but)
{
	struct use_others o = {.but = but};

	cube_volume_users(v, use_other, &o);
	return o.any;
}

void cube_use_undo(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++) {
		struct cube_volume_use *u = &own->volumes[i];
		struct cube_volume_entry *v = u->volume;

		if (v == NULL || !u->fresh || use_elsewhere(v, c))
			continue;
		u->fresh = false;
		u->volume = NULL;
		(void)cube_volume_remove(v, NULL);
		cube_volume_unref(v);
	}
}

void cube_use_free(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++) {
		cube_volume_unref(own->volumes[i].volume);
		cube_free(own->volumes[i].name);
		cube_free(own->volumes[i].path);
	}
	cube_free(own->volumes);
}

/* Before they are accepted they have no uid, and the check of a create line wants one. */
struct cube_spec_volume *cube_use_spec(const struct cube_cube *c)
{
	const struct cube_own *own = cube_own((struct cube_cube *)(uintptr_t)c);
	struct cube_spec_volume *list =
		own->n_volumes > 0 ? cube_calloc(own->n_volumes, sizeof(*list)) : NULL;

	for (size_t i = 0; list != NULL && i < own->n_volumes; i++) {
		const struct cube_volume_use *u = &own->volumes[i];

		list[i] = (struct cube_spec_volume){.volume = u->volume != NULL ? u->volume->uid
										: "0000000000000000",
						    .name = u->name,
						    .path = u->path,
						    .read_only = u->read_only};
	}
	return list;
}

/* ---- On disk ---- */

json_t *cube_use_save(const struct cube_cube *c)
{
	const struct cube_own *own = cube_own((struct cube_cube *)(uintptr_t)c);
	json_t *list = json_array();

	for (size_t i = 0; list != NULL && i < own->n_volumes; i++) {
		const struct cube_volume_use *u = &own->volumes[i];

		if (u->volume != NULL)
			(void)json_array_append_new(
				list, json_pack("{s:s,s:o,s:b,s:b}", "volume", u->volume->uid, "path",
						cube_bytes_json(u->path, strlen(u->path)), "read_only",
						(int)u->read_only, "fresh", (int)u->fresh));
	}
	return list;
}

/* One that is being destroyed has no volumes any more, and those that went with it are not to come back; but what was
 * accepted for a creation that was cut off is still to go. */
static bool use_is_past(struct cube_cube *c, const json_t *o, const char *uid)
{
	const struct cube_own *own = cube_own(c);

	return own->leaving &&
	       (own->keep || !cube_json_bool(o, "fresh", false) || !cube_volume_known(c->domain, uid));
}

int cube_use_load(struct cube_cube *c, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		const char *uid = cube_json_str(o, "volume", "");
		struct cube_volume_use *u;

		if (use_is_past(c, o, uid))
			continue;
		u = strlen(uid) == 16 ? use_grow(cube_own(c)) : NULL;

		if (u == NULL)
			return -EINVAL;
		u->path = cube_bytes_dup(o, "path");
		u->read_only = cube_json_bool(o, "read_only", false);
		u->fresh = cube_json_bool(o, "fresh", false);
		u->volume = cube_volume_again(c->service, uid);
		u->name = u->volume != NULL ? cube_strdup(u->volume->name) : NULL;
		if (u->path == NULL || u->name == NULL)
			return -EINVAL;
	}
	return 0;
}

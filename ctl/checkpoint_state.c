/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in cube.json. One that is being taken is an intention: a daemon that finds it there removes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/bytes.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"

static json_t *save_text(const char *text)
{
	return text != NULL ? cube_bytes_json(text, strlen(text)) : json_null();
}

static int save_label(void *ctx, const char *key, void *value)
{
	return json_object_set_new(ctx, key, save_text(value));
}

static json_t *save_one(const struct cube_checkpoint_entry *e)
{
	bool there = e->phase == CUBE_CHECKPOINT_THERE && e->name != NULL;
	json_t *labels = json_object();

	if (labels != NULL)
		(void)cube_map_each(e->labels, save_label, labels);
	return json_pack("{s:s,s:o,s:s,s:o,s:s,s:I,s:o}", "id", e->id, "name", save_text(e->name), "state",
			 there ? "there" : "going", "template", save_text(e->template), "parent", e->parent,
			 "created", (json_int_t)e->created_wall, "labels", labels);
}

static void save_list(json_t *to, const struct cube_list *list)
{
	cube_list_each (i, list)
		(void)json_array_append_new(to,
					    save_one(cube_list_entry(i, struct cube_checkpoint_entry, link)));
}

json_t *cube_checkpoints_save(struct cube_cube *c)
{
	json_t *to = json_array();

	if (to == NULL)
		return NULL;
	save_list(to, &c->checkpoints);
	save_list(to, &cube_own(c)->checkpoints_gone);
	return to;
}

static int load_labels(struct cube_checkpoint_entry *e, json_t *labels)
{
	for (void *at = json_object_iter(labels); at != NULL; at = json_object_iter_next(labels, at)) {
		cube_auto_str value = cube_bytes_dup(labels, json_object_iter_key(at));

		if (value == NULL || cube_labels_set(e->labels, json_object_iter_key(at), value, NULL) < 0)
			return -EINVAL;
	}
	return 0;
}

static int load_one(struct cube_cube *c, const json_t *o)
{
	const char *id = cube_json_str(o, "id", "");
	cube_auto_str name = cube_bytes_dup(o, "name");
	bool there = strcmp(cube_json_str(o, "state", ""), "there") == 0 && name != NULL;
	struct cube_checkpoint_entry *e;

	if (strlen(id) != 16 || strspn(id, "0123456789abcdef") != 16 ||
	    (there && (!cube_name_entry_ok(name) || cube_checkpoint_find(c, name) != NULL)))
		return -EINVAL;
	e = cube_checkpoint_new(c, name);
	if (e == NULL)
		return -ENOMEM;
	(void)snprintf(e->id, sizeof(e->id), "%s", id);
	(void)snprintf(e->parent, sizeof(e->parent), "%s", cube_json_str(o, "parent", ""));
	cube_free(e->template);
	e->template = cube_bytes_dup(o, "template");
	e->created_wall = (uint64_t)cube_json_int(o, "created", 0);
	e->recovered = true;
	e->phase = CUBE_CHECKPOINT_THERE;
	if (!there)
		cube_checkpoint_go(e, CUBE_CHECKPOINT_REMOVED);
	return load_labels(e, json_object_get(o, "labels"));
}

int cube_checkpoints_load(struct cube_cube *c, const json_t *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = load_one(c, json_array_get(list, i));
	return r;
}

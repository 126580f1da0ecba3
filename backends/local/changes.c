/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two states of a sandbox's files: their merged views, and the upper layers. */
#include "backends/local/checkpoint.h"

#include "backends/base/differ.h"
#include "backends/base/macros.h"
#include "backends/local/keep.h"
#include "backends/local/overlay.h"
#include "backends/local/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* What a call looks at; views are borrowed, the rest is closed by changes_done. */
struct changes_sides {
	int now[CUBE_PART_COUNT], was[CUBE_PART_COUNT];
	int own[CUBE_PART_COUNT];                           /* of was: kept mounts that are ours */
	struct cube_local_layer layers[2][CUBE_PART_COUNT]; /* of now, of was */
	struct cube_local_seed seed;
	char template[CUBE_ID_MAX + 1];
	char base[CUBE_ID_MAX + 1]; /* "": the template */
	struct cube_local_checkpoint cp;
};

/* The template alone, merged, with the /workspace that it may bring along. */
static int changes_template(struct cube_local *b, struct changes_sides *s, struct cube_err *err)
{
	int rc = cube_local_mount_template(b, s->template, &s->own[CUBE_PART_ROOT], err);

	if (rc == 0)
		rc = cube_local_mount_template_workspace(b, s->template, &s->own[CUBE_PART_WORKSPACE], err);
	s->was[CUBE_PART_ROOT] = s->own[CUBE_PART_ROOT];
	s->was[CUBE_PART_WORKSPACE] = s->own[CUBE_PART_WORKSPACE];
	return rc;
}

static int changes_layers(struct cube_local *b, const char *set, struct cube_local_layer *ret,
			  struct cube_err *err)
{
	int rc = cube_local_set_open(&b->store, set, CUBE_PART_ROOT, &ret[CUBE_PART_ROOT], err);

	return rc == 0 ? cube_local_set_open(&b->store, set, CUBE_PART_WORKSPACE, &ret[CUBE_PART_WORKSPACE],
					     err)
		       : rc;
}

static int changes_of_cube(struct cube_local *b, const struct cube_changes *what, struct changes_sides *s,
			   struct cube_err *err)
{
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, what->id, &c, err);

	if (rc == 0)
		rc = cube_local_cube_mount(b, c, NULL, err);
	if (rc == 0)
		rc = changes_layers(b, c->id, s->layers[0], err);
	if (rc < 0)
		return rc;
	s->now[CUBE_PART_ROOT] = c->root;
	s->now[CUBE_PART_WORKSPACE] =
		cube_local_mounts_workspace(c) ? CUBE_DIFFER_NONE : c->workspace; /* else a volume */
	(void)snprintf(s->template, sizeof(s->template), "%s", c->rec.template);
	(void)snprintf(s->base, sizeof(s->base), "%s", what->base ? what->base : c->rec.base);
	s->seed = cube_local_seed_of(b, c);
	return 0;
}

static int changes_of_checkpoint(struct cube_local *b, const struct cube_changes *what,
				 struct changes_sides *s, struct cube_err *err)
{
	int rc = cube_local_checkpoint_read(b, what->cp, false, &s->cp, err);

	if (rc == 0)
		rc = cube_local_view_get(b, what->cp, &s->now[CUBE_PART_ROOT], &s->now[CUBE_PART_WORKSPACE],
					 err);
	if (rc == 0)
		rc = changes_layers(b, what->cp, s->layers[0], err);
	(void)snprintf(s->template, sizeof(s->template), "%s", s->cp.template);
	(void)snprintf(s->base, sizeof(s->base), "%s", what->base ? what->base : "");
	s->seed = (struct cube_local_seed){
		.id = s->cp.of, .hostname = s->cp.hostname, .resolv = "", .ids = &b->host->ids};
	return rc;
}

static int changes_base(struct cube_local *b, struct changes_sides *s, struct cube_err *err)
{
	int rc;

	if (!*s->base || !cube_local_checkpoint_knows(b, s->base))
		return changes_template(b, s, err);
	rc = cube_local_view_get(b, s->base, &s->was[CUBE_PART_ROOT], &s->was[CUBE_PART_WORKSPACE], err);
	return rc == 0 ? changes_layers(b, s->base, s->layers[1], err) : rc;
}

struct changes_each {
	const struct cube_changes *what;
	const struct cube_local_seed *seed;
};

static void changes_tell(void *ctx, char kind, const char *path)
{
	const struct changes_each *e = ctx;

	e->what->each(e->what->ctx, kind, path);
}

/* What cubefs itself wrote. */
static bool changes_seeded(void *ctx, int dir, const char *path, const char *name)
{
	const struct changes_each *e = ctx;

	return dir != CUBE_DIFFER_NONE && cube_local_seed_wrote(dir, path, name, e->seed);
}

static int changes_part(const struct cube_changes *what, struct changes_sides *s, enum cube_local_part part,
			struct cube_cancel *cancel)
{
	const char *in_layer = part == CUBE_PART_ROOT ? CUBE_LOCAL_ROOT_DIR : ".";
	int layers[] = {CUBE_DIFFER_NONE, CUBE_DIFFER_NONE}, rc = 0;
	struct changes_each each = {what, &s->seed};
	struct cube_differ d = {
		.now = s->now[part],
		.was = s->was[part],
		.layers = layers,
		.n_layers = CUBE_COUNT(layers),
		.path = part == CUBE_PART_ROOT ? "" : "/workspace",
		.each = changes_tell,
		.skip = part == CUBE_PART_ROOT ? changes_seeded : NULL,
		.ctx = &each,
	};

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(layers); i++) {
		if (s->layers[i][part].upper < 0)
			continue;
		layers[i] = openat(s->layers[i][part].upper, in_layer,
				   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = layers[i] < 0 && errno != ENOENT ? -errno : 0;
	}
	if (rc == 0)
		rc = cube_differ_run(&d, cancel);
	for (size_t i = 0; i < CUBE_COUNT(layers); i++)
		cube_close_auto(&layers[i]);
	return rc;
}

static void changes_done(struct changes_sides *s)
{
	for (unsigned p = 0; p < CUBE_PART_COUNT; p++) {
		cube_local_keep_end(s->own[p]);
		cube_local_layer_close(&s->layers[0][p]);
		cube_local_layer_close(&s->layers[1][p]);
	}
}

int cube_local_changes(struct cube_backend *base, const struct cube_changes *what, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct changes_sides s = {.template = ""};
	int rc;

	for (unsigned p = 0; p < CUBE_PART_COUNT; p++) {
		s.now[p] = s.was[p] = s.own[p] = CUBE_DIFFER_NONE;
		s.layers[0][p] = s.layers[1][p] = (struct cube_local_layer)CUBE_LOCAL_LAYER_NONE;
	}
	rc = what->cp ? changes_of_checkpoint(b, what, &s, err) : changes_of_cube(b, what, &s, err);
	if (rc == 0)
		rc = changes_base(b, &s, err);
	for (unsigned p = 0; rc == 0 && p < CUBE_PART_COUNT; p++) {
		rc = changes_part(what, &s, (enum cube_local_part)p, cancel);
		if (rc < 0)
			(void)cube_fail(err, rc, "cannot tell what changed in %s: %s",
					what->cp ? what->cp : what->id,
					rc == -EINTR ? "interrupted" : cube_errno_text(rc));
	}
	changes_done(&s);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints are images cubefs/checkpoint:ID, commits of a container; what volumes hold is in volumes ID.VOLUME.
 *
 * One without files of the sandbox's own has, instead of the image, an empty volume ID, made when its copies are whole.
 * A checkpoint that was deleted while something is made of it has the tag cubefs/kept:ID until that has gone. */
#include "backends/docker/docker_priv.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINT_MS 1000000

void docker_checkpoint_ref(const char *cp, char out[DOCKER_CP_REF])
{
	(void)snprintf(out, DOCKER_CP_REF, DOCKER_CHECKPOINT ":%.*s", CUBE_ID_MAX, cp);
}

int docker_checkpoint_get(struct cube_docker *d, const char *cp, struct cube_cancel *cancel, json_t **ret,
			  struct cube_err *err)
{
	char ref[DOCKER_CP_REF];
	int rc;

	docker_checkpoint_ref(cp, ref);
	rc = docker_image_get(d, ref, cancel, ret, err);
	return rc == -ENOENT ? cube_fail(err, rc, "there is no checkpoint %s", cp) : rc;
}

/* ---- volumes ---- */

static int checkpoint_volume(struct cube_docker *d, const char *method, const char *name, json_t *body,
			     struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *sent = body;
	struct cube_buf path = CUBE_BUF(512);
	int rc;

	(void)cube_buf_printf(&path, "/volumes/%s", name);
	rc = docker_ask(d,
			&(struct docker_ask){.method = method,
					     .path = cube_buf_str(&path),
					     .body = body,
					     .what = "keep a volume of the checkpoint"},
			NULL, err);
	cube_buf_done(&path);
	return rc;
}

static int checkpoint_volume_make(struct cube_docker *d, const char *name, const struct cube_take *take,
				  const char *of, struct cube_err *err)
{
	json_t *body = json_pack("{s:s,s:{s:s,s:s,s:s}}", "Name", name, "Labels", DOCKER_LABEL_CP, take->cp,
				 DOCKER_LABEL_OF, of, DOCKER_LABEL_HOME, d->home);

	return body != NULL ? checkpoint_volume(d, "POST", "create", body, err)
			    : cube_fail(err, -ENOMEM, "out of memory");
}

static void checkpoint_volume_name(const char *cp, const char *volume, char out[DOCKER_CP_VOLUME])
{
	(void)snprintf(out, DOCKER_CP_VOLUME, DOCKER_NAME "%.*s%s%.*s", CUBE_ID_MAX, cp,
		       volume != NULL ? "." : "", CUBE_ID_MAX, volume != NULL ? volume : "");
}

/* Each volume that is a part of a checkpoint, by its label. */
static int checkpoint_volumes(struct cube_docker *d, json_t **ret, struct cube_err *err)
{
	return docker_ask(
		d,
		&(struct docker_ask){.method = "GET",
				     .path = "/volumes?filters=%7B%22label%22%3A%5B%22" DOCKER_LABEL_CP
					     "%22%5D%7D",
				     .what = "list the volumes of checkpoints",
				     .ret = ret},
		NULL, err);
}

static int checkpoint_volumes_gone(struct cube_docker *d, const char *cp, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *one;
	size_t i;
	int rc = checkpoint_volumes(d, &all, err);

	json_array_foreach(json_object_get(all, "Volumes"), i, one)
	{
		const char *of = cube_json_str(json_object_get(one, "Labels"), DOCKER_LABEL_CP, "");

		if (rc == 0 && strcmp(of, cp) == 0)
			rc = checkpoint_volume(d, "DELETE", cube_json_str(one, "Name", "-"), NULL, err);
		if (rc == -ENOENT)
			rc = 0;
	}
	return rc;
}

/* Half of a copy is told by a file of ours that says that it is being made. */
static int copy_again(struct cube_docker *d, const char *note, const char *dest, bool *ret_done,
		      struct cube_err *err)
{
	bool half = faccessat(d->state, note, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int rc = checkpoint_volume(d, half ? "DELETE" : "GET", dest, NULL, err);

	*ret_done = rc == 0 && !half;
	return rc == -ENOENT ? 0 : rc;
}

static int copy_make(struct cube_docker *d, const char *source, const char *to, const char *dest,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = docker_volume_make(&d->base, to, NULL, cancel, err);

	if (rc == 0)
		rc = docker_copy_volume(d, source, dest, cancel, err);
	if (rc < 0)
		(void)docker_volume_remove(&d->base, to, NULL);
	return rc;
}

int docker_volume_copy(struct cube_backend *base, const char *cp, const char *from, const char *to,
		       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	char source[DOCKER_CP_VOLUME], dest[DOCKER_REF], note[DOCKER_REF + 8];
	bool done = false;
	int rc;

	(void)snprintf(dest, sizeof(dest), DOCKER_NAME "%s", to);
	(void)snprintf(note, sizeof(note), "copying.%s", to);
	rc = copy_again(d, note, dest, &done, err);
	if (rc < 0 || done)
		return rc;
	checkpoint_volume_name(cp, from, source);
	rc = checkpoint_volume(d, "GET", source, NULL, err);
	if (rc == -ENOENT)
		return cube_fail(err, rc, "checkpoint %s has nothing of volume %s", cp, from);
	if (rc < 0)
		return rc;
	rc = cube_file_replace(d->state, note, "", 0, 0600);
	if (rc < 0)
		return cube_fail(err, rc, "cannot note the copy in %.150s: %s", d->path, cube_errno_text(rc));
	rc = copy_make(d, source, to, dest, cancel, err);
	(void)unlinkat(d->state, note, 0);
	return rc;
}

/* ---- take ---- */

/* @to is made anew each time: half of one is nobody's. */
static int take_volume(struct cube_docker *d, const char *id, const struct cube_take *take,
		       const char *volume, struct cube_cancel *cancel, struct cube_err *err)
{
	char from[DOCKER_REF], to[DOCKER_CP_VOLUME];
	int rc;

	(void)snprintf(from, sizeof(from), DOCKER_NAME "%s", volume);
	checkpoint_volume_name(take->cp, volume, to);
	rc = checkpoint_volume(d, "DELETE", to, NULL, err);
	if (rc == 0 || rc == -ENOENT)
		rc = checkpoint_volume_make(d, to, take, id, err);
	return rc == 0 ? docker_copy_volume(d, from, to, cancel, err) : rc;
}

static int take_commit(struct cube_docker *d, const char *id, const json_t *is, const struct cube_take *take,
		       bool pause, struct cube_err *err)
{
	const struct cube_pair labels[] = {{DOCKER_LABEL_CP, take->cp},
					   {DOCKER_LABEL_OF, id},
					   {DOCKER_LABEL_IMAGE, docker_box_template(is)}};
	char ref[DOCKER_CP_REF], box[DOCKER_REF];
	int rc = docker_ref(id, box, err);

	docker_checkpoint_ref(take->cp, ref);
	return rc == 0 ? docker_commit(d, box, ref, pause, labels, CUBE_COUNT(labels), err) : rc;
}

/* The engine's part is not interrupted: it would go on with it, and nobody could tell when it is done. */
static int take_parts(struct cube_docker *d, const char *id, const json_t *box, const struct cube_take *take,
		      bool pause, struct cube_cancel *cancel, struct cube_err *err)
{
	char mark[DOCKER_CP_VOLUME];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < take->n_volumes; i++)
		rc = take_volume(d, id, take, take->volumes[i], cancel, err);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc == 0 && take->files)
		rc = take_commit(d, id, box, take, pause, err);
	checkpoint_volume_name(take->cp, NULL, mark);
	if (rc == 0 && !take->files)
		rc = checkpoint_volume_make(d, mark, take, id, err);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	return rc;
}

/* Volumes are copied by us, so that it is we who have it stand still meanwhile; the intention is noted before. */
static int take_still(struct cube_docker *d, const char *id, const json_t *box, const struct cube_take *take,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_err thaw = {0};
	int rc = docker_note(d, id, DOCKER_NOTE_TAKING, err);

	if (rc == 0)
		rc = docker_box_do(d, id, "pause", NULL, err);
	if (rc == 0) {
		rc = take_parts(d, id, box, take, false, cancel, err);
		if (docker_box_do(d, id, "unpause", NULL, &thaw) < 0) {
			cube_log(CUBE_LOG_ERROR, "docker", "sandbox %s does not go on after a checkpoint: %s",
				 id, thaw.text);
			return rc; /* the note stays: a later look tries again */
		}
	}
	docker_note_gone(d, id, DOCKER_NOTE_TAKING);
	return rc;
}

static bool take_is_there(struct cube_docker *d, const struct cube_take *take)
{
	cube_auto(cube_json_auto) json_t *image = NULL;
	char mark[DOCKER_CP_VOLUME];

	if (take->files)
		return docker_checkpoint_get(d, take->cp, NULL, &image, NULL) == 0;
	checkpoint_volume_name(take->cp, NULL, mark);
	return checkpoint_volume(d, "GET", mark, NULL, NULL) == 0;
}

int docker_checkpoint(struct cube_backend *base, const char *id, const struct cube_take *take,
		      struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	uint64_t since;
	bool runs;
	int rc = docker_settle(d, id, err);

	if (rc == 0)
		rc = docker_box_get(d, id, cancel, &box, err);
	if (rc < 0 || take_is_there(d, take))
		return rc;
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	since = cube_clock_mono();
	runs = docker_box_state(box) == CUBE_IS_RUNNING;
	rc = runs && take->n_volumes > 0 ? take_still(d, id, box, take, cancel, err)
					 : take_parts(d, id, box, take, runs, cancel, err);
	if (rc < 0)
		(void)docker_checkpoint_remove(base, take->cp, NULL);
	else
		*ret_still_ms = runs ? (uint32_t)((cube_clock_mono() - since) / CHECKPOINT_MS) : 0;
	return rc;
}

/* ---- list ---- */

/* What an image has that the one it is made of has not; lists have both. */
static uint64_t list_size(const json_t *all, const json_t *image)
{
	const char *parent = cube_json_str(image, "ParentId", "");
	int64_t size = cube_json_int(image, "Size", -1);
	const json_t *one;
	size_t i;

	if (size < 0 || *parent == '\0')
		return UINT64_MAX;
	json_array_foreach(all, i, one)
	{
		int64_t below = cube_json_int(one, "Size", -1);

		if (strcmp(cube_json_str(one, "Id", ""), parent) == 0 && below >= 0 && below <= size)
			return (uint64_t)(size - below);
	}
	return UINT64_MAX;
}

static void list_one(const json_t *labels, const char *cp, uint64_t size,
		     void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx)
{
	struct cube_checkpoint c = {.size = size};

	if (!docker_is_ours(cp))
		return;
	(void)snprintf(c.id, sizeof(c.id), "%s", cp);
	(void)snprintf(c.of, sizeof(c.of), "%.*s", CUBE_ID_MAX, cube_json_str(labels, DOCKER_LABEL_OF, ""));
	each(ctx, &c);
}

/* Those of this state directory: another one's are its own business. */
static bool list_ours(const struct cube_docker *d, const json_t *labels)
{
	return strcmp(cube_json_str(labels, DOCKER_LABEL_HOME, ""), d->home) == 0;
}

int docker_checkpoint_list(struct cube_backend *base,
			   void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
			   struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *images = NULL, *volumes = NULL, *told = json_object();
	const json_t *one;
	size_t i;
	int rc = docker_images(d, true, NULL, &images, err);

	if (rc == 0)
		rc = checkpoint_volumes(d, &volumes, err);
	if (rc < 0)
		return rc;
	json_array_foreach(images, i, one)
	{
		const json_t *labels = json_object_get(one, "Labels");
		const char *cp;

		for (size_t n = 0;
		     list_ours(d, labels) && (cp = docker_tag(one, DOCKER_CHECKPOINT, n)) != NULL; n++) {
			(void)json_object_set_new(told, cp, json_true());
			list_one(labels, cp, list_size(images, one), each, ctx);
		}
	}
	json_array_foreach(json_object_get(volumes, "Volumes"), i, one)
	{
		const json_t *labels = json_object_get(one, "Labels");
		const char *cp = cube_json_str(labels, DOCKER_LABEL_CP, "");

		if (!list_ours(d, labels) || json_object_get(told, cp) != NULL)
			continue;
		(void)json_object_set_new(told, cp, json_true());
		list_one(labels, cp, UINT64_MAX, each, ctx);
	}
	return 0;
}

/* ---- remove ---- */

/* The engine lets go of a tag that is not the last one, whatever is made of the image. */
static int remove_image(struct cube_docker *d, const char *cp, struct cube_err *err)
{
	char ref[DOCKER_CP_REF], path[DOCKER_CP_REF + 96];
	int rc;

	(void)snprintf(path, sizeof(path), "/images/" DOCKER_CHECKPOINT ":%s/tag?repo=" DOCKER_KEPT "&tag=%s",
		       cp, cp);
	rc = docker_ask(
		d, &(struct docker_ask){.method = "POST", .path = path, .what = "let go of the checkpoint"},
		NULL, err);
	docker_checkpoint_ref(cp, ref);
	if (rc == 0)
		rc = docker_image_delete(d, ref, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	docker_images_sweep(d);
	return 0;
}

int docker_checkpoint_remove(struct cube_backend *base, const char *cp, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	int rc = remove_image(d, cp, err);

	return rc == 0 ? checkpoint_volumes_gone(d, cp, err) : rc;
}

/* ---- files ---- */

int docker_checkpoint_root(struct cube_backend *base, const char *cp, struct cube_root *ret,
			   struct cube_err *err)
{
	struct cube_root root = {.fd = -1, .generation = 1, .id_count = UINT32_MAX, .read_only = true};
	cube_auto(cube_json_auto) json_t *image = NULL;
	int rc = docker_checkpoint_get(docker_of(base), cp, NULL, &image, err);

	if (rc < 0)
		return rc;
	root.fd = docker_layers_view(image);
	rc = root.fd < 0 ? root.fd : docker_root_workspace(&root, true);
	if (rc < 0) {
		cube_root_close(&root);
		return cube_fail(err, rc, "cannot open the files of checkpoint %s: %s", cp,
				 cube_errno_text(rc));
	}
	*ret = root;
	return 0;
}

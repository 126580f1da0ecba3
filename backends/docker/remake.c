/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox gets other files: another container, made like the one it has but of another image, takes its place and its
 * name. Up to the last step the old one is there and can be put back (settle.c). */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMAKE_SLOW_S 300

struct remake {
	struct cube_docker *d;
	const char *id;
	const char *image;    /* the engine's id of the image */
	const char *template; /* the files are over it; NULL: as before */
	const char *base;     /* the checkpoint that they are; "": none */
	bool keep_workspace;
	json_t *old, *next; /* as the engine has them */
	bool ran;
};

uint64_t docker_box_generation(const json_t *box)
{
	uint64_t n = strtoull(docker_image_label(box, DOCKER_LABEL_GENERATION), NULL, 10);

	return n > 0 ? n : 1;
}

const char *docker_box_template(const json_t *box)
{
	const char *name = docker_image_label(box, DOCKER_LABEL_IMAGE);

	return *name != '\0' ? name : cube_json_str(json_object_get(box, "Config"), "Image", "");
}

static json_t *remake_labels(const struct remake *r)
{
	json_t *labels = json_deep_copy(json_object_get(json_object_get(r->old, "Config"), "Labels"));
	char generation[24];

	(void)snprintf(generation, sizeof(generation), "%" PRIu64, docker_box_generation(r->old) + 1);
	if (labels == NULL)
		labels = json_object();
	(void)json_object_set_new(labels, DOCKER_LABEL_GENERATION, json_string(generation));
	(void)json_object_set_new(labels, DOCKER_LABEL_BASE, json_string(r->base));
	if (r->template != NULL)
		(void)json_object_set_new(labels, DOCKER_LABEL_IMAGE, json_string(r->template));
	return labels;
}

/* All that the old one was told, and what was changed of it since. */
static json_t *remake_body(const struct remake *r)
{
	json_t *body = json_deep_copy(json_object_get(r->old, "Config"));
	json_t *host = json_deep_copy(json_object_get(r->old, "HostConfig"));

	if (body == NULL || host == NULL) {
		json_decref(body);
		json_decref(host);
		return NULL;
	}
	(void)json_object_del(body, "Volumes"); /* the image says which */
	(void)json_object_set_new(body, "Image", json_string(r->image));
	(void)json_object_set_new(body, "Labels", remake_labels(r));
	(void)json_object_set_new(body, "HostConfig", host);
	return body;
}

static int remake_make(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = remake_body(r);
	char path[DOCKER_REF + 64];
	int rc = body != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");

	(void)snprintf(path, sizeof(path), "/containers/create?name=" DOCKER_NAME "%s" DOCKER_NEXT, r->id);
	if (rc == 0)
		rc = docker_ask(r->d,
				&(struct docker_ask){.method = "POST",
						     .path = path,
						     .body = body,
						     .what = "create the other container",
						     .timeout_s = REMAKE_SLOW_S},
				NULL, err);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	return rc == 0 ? docker_other_get(r->d, r->id, DOCKER_NEXT, &r->next, err) : rc;
}

static bool remake_has_volume(const json_t *box)
{
	const json_t *mounts = json_object_get(box, "Mounts"), *one;
	size_t i;

	json_array_foreach(mounts, i, one) if (strcmp(cube_json_str(one, "Destination", ""), "/workspace") ==
					       0) return true;
	return false;
}

/* Nothing runs in it any more from here on. */
static int remake_switch(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = docker_stop(&r->d->base, r->id, 0, NULL, err);

	if (rc == 0 && r->keep_workspace && !remake_has_volume(r->old))
		rc = docker_copy_workspace(r->d, r->old, r->next, cancel, err);
	if (rc == 0)
		rc = docker_other_name(r->d, r->id, "", DOCKER_OLD, err);
	if (rc == 0)
		rc = docker_other_name(r->d, r->id, DOCKER_NEXT, "", err);
	if (rc == 0 && r->ran)
		rc = docker_box_start(r->d, r->id, NULL, err);
	return rc == 0 ? docker_other_name(r->d, r->id, DOCKER_OLD, DOCKER_GONE, err) : rc;
}

/* What can fail or be interrupted comes first, while the old one still runs. */
static int remake_run(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_err why = {0};
	int rc = docker_note(r->d, r->id, DOCKER_NOTE_REMAKING, err);

	if (rc < 0)
		return rc;
	rc = remake_make(r, cancel, err);
	if (rc == 0)
		rc = remake_switch(r, cancel, err);
	if (rc == 0) {
		if (docker_others_gone(r->d, r->id, &why) == 0)
			docker_note_gone(r->d, r->id, DOCKER_NOTE_REMAKING);
		docker_images_sweep(r->d);
		return 0;
	}
	if (docker_put_back(r->d, r->id, &why) < 0)
		cube_log(CUBE_LOG_WARNING, "docker", "sandbox %s is put back later: %s", r->id, why.text);
	else if (r->ran)
		(void)docker_box_start(r->d, r->id, NULL, NULL);
	return rc;
}

static int remake(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc;

	if (!docker_is_ours(r->id))
		return cube_fail(
			err, -EOPNOTSUPP,
			"the container was made by others, and no other one takes its place: fork it, "
			"or create one from=NAME/CHECKPOINT");
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	r->ran = docker_box_state(r->old) != CUBE_IS_STOPPED;
	rc = remake_run(r, cancel, err);
	json_decref(r->next);
	return rc;
}

int docker_restore(struct cube_backend *base, const char *id, const char *cp, struct cube_cancel *cancel,
		   struct cube_err *err)
{
	struct remake r = {.d = docker_of(base), .id = id, .base = cp};
	cube_auto(cube_json_auto) json_t *image = NULL;
	int rc = docker_settle(r.d, id, err);

	if (rc == 0)
		rc = docker_box_get(r.d, id, cancel, &r.old, err);
	if (rc == 0)
		rc = docker_checkpoint_get(r.d, cp, cancel, &image, err);
	if (rc == 0) {
		r.image = cube_json_str(image, "Id", "-");
		r.template = docker_image_label(image, DOCKER_LABEL_IMAGE);
		rc = remake(&r, cancel, err);
	}
	json_decref(r.old);
	return rc;
}

int docker_reset(struct cube_backend *base, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct remake r = {.d = docker_of(base), .id = id, .base = "", .keep_workspace = true};
	cube_auto(cube_json_auto) json_t *image = NULL;
	char ref[DOCKER_IMAGE];
	int rc = docker_settle(r.d, id, err);

	if (rc == 0)
		rc = docker_box_get(r.d, id, cancel, &r.old, err);
	if (rc == 0)
		rc = docker_template_find(r.d, docker_box_template(r.old), ref, &image, cancel, err);
	if (rc == 0) {
		r.image = cube_json_str(image, "Id", "-");
		rc = remake(&r, cancel, err);
	}
	json_decref(r.old);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, end, start and stop, pause and limits. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIFE_SLOW_S  300 /* the engine copies an image's files where it has no layers */
#define LIFE_GRACE_S 86400
#define LIFE_GONE_NS UINT64_C(60000000000)
#define LIFE_LOOK_MS 50

/* ---- the end ---- */

static int life_delete(struct cube_docker *d, const char *id, struct cube_err *err)
{
	if (d->engine.podman) /* else it has the grace of a stop */
		(void)docker_box_do(d, id, "kill", NULL, NULL);
	return docker_box_ask(d, id,
			      &(struct docker_ask){.method = "DELETE",
						   .path = "?force=1&v=1",
						   .what = "destroy",
						   .timeout_s = LIFE_SLOW_S},
			      NULL, err);
}

/* Its removal may be under way already, by an earlier call or by somebody else. */
static int life_await_gone(struct cube_docker *d, const char *id, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + LIFE_GONE_NS;
	int rc;

	do {
		cube_auto(cube_json_auto) json_t *box = NULL;

		rc = docker_box_get(d, id, NULL, &box, err);
		if (rc == 0)
			(void)poll(NULL, 0, LIFE_LOOK_MS);
	} while (rc == 0 && cube_clock_mono() < end);
	if (rc == 0)
		return cube_fail(err, -EBUSY, "sandbox %s is still being removed by the engine", id);
	return rc;
}

int docker_destroy(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	int rc = life_delete(d, id, err);

	if (rc == -EBUSY)
		rc = life_await_gone(d, id, err);
	if (rc == 0 || rc == -ENOENT)
		rc = docker_is_ours(id) ? docker_others_gone(d, id, err) : 0;
	if (rc < 0)
		return rc;
	docker_images_sweep(d);
	return docker_box_forget(d, id, err);
}

/* ---- create ---- */

/* The mark of a container; "": cubefs did not make it. */
static const char *life_uid(const json_t *box)
{
	return cube_json_str(json_object_get(json_object_get(box, "Config"), "Labels"), DOCKER_LABEL_UID, "");
}

/* An earlier attempt whose answer was lost: one that was started is the answer, half of one is removed. */
static int create_again(struct cube_docker *d, const char *uid, bool *ret_done, struct cube_cancel *cancel,
			struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, uid, cancel, &box, err);

	*ret_done = false;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	if (strcmp(life_uid(box), uid) != 0)
		return cube_fail(err, -EEXIST,
				 "the engine at %.100s has a container " DOCKER_NAME
				 "%s that cubefs did not make: remove or rename it",
				 d->where, uid);
	if (docker_box_state(box) != CUBE_IS_STOPPED) {
		*ret_done = true;
		return 0;
	}
	return docker_destroy(&d->base, uid, err);
}

static int create_box(struct cube_docker *d, const struct cube_spec *spec, const char *image,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = NULL;
	char path[DOCKER_REF + 40];
	cube_auto_fd dir = docker_box_dir(d, spec->uid, true, err);
	int rc = dir < 0 ? dir : docker_spec(d, spec, image, &body, err);

	(void)snprintf(path, sizeof(path), "/containers/create?name=" DOCKER_NAME "%s", spec->uid);
	if (rc == 0)
		rc = docker_ask(d,
				&(struct docker_ask){.method = "POST",
						     .path = path,
						     .body = body,
						     .what = "create the container",
						     .timeout_s = LIFE_SLOW_S},
				cancel, err);
	return rc;
}

/* The engine goes on with what was cancelled, or with what it was too slow for. */
static void create_undo(struct cube_docker *d, const char *uid, int code)
{
	struct cube_err err = {0};
	bool late = (code == -EINTR || code == -ETIMEDOUT) && docker_late_mark(d, uid, &err) == 0;
	int rc = life_delete(d, uid, &err);

	if (rc == -EBUSY)
		rc = life_await_gone(d, uid, &err);
	if (rc == 0 || !late)
		(void)docker_box_forget(d, uid, &err);
}

static int create_new(struct cube_docker *d, const struct cube_spec *spec, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *found = NULL;
	struct cube_spec from = *spec;
	char image[DOCKER_IMAGE];
	int rc;

	if (spec->n_volumes > DOCKER_MOUNTS)
		return cube_fail(err, -ENOSPC, "a container has %d volumes and binds at most", DOCKER_MOUNTS);
	if (from.template == NULL)
		from.template = d->base.template;
	if (spec->from != NULL) {
		rc = docker_checkpoint_get(d, spec->from, cancel, &found, err);
		docker_checkpoint_ref(spec->from, image);
		from.template = docker_image_label(found, DOCKER_LABEL_IMAGE);
	} else {
		rc = docker_template_find(d, from.template, image, &found, cancel, err);
	}
	if (rc == 0)
		rc = docker_volumes_there(d, spec, cancel, err);
	if (rc == 0 && !d->local)
		rc = docker_plant(d, image, cancel, err);
	if (rc < 0)
		return rc;
	docker_late_clear(d, spec->uid);
	rc = create_box(d, &from, image, cancel, err);
	if (rc == 0)
		rc = docker_box_start(d, spec->uid, cancel, err);
	if (rc < 0)
		create_undo(d, spec->uid, rc);
	return rc;
}

int docker_create(struct cube_backend *base, const struct cube_spec *spec, struct cube_cancel *cancel,
		  char **ret_id, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto_str id = cube_strdup(spec->uid);
	bool done = false;
	int rc = id != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");

	if (rc == 0 && *d->agent == '\0')
		rc = cube_fail(err, -EOPNOTSUPP, "%s", d->agent_why);
	if (rc == 0)
		rc = create_again(d, spec->uid, &done, cancel, err);
	if (rc == 0 && !done)
		rc = create_new(d, spec, cancel, err);
	if (rc == 0)
		*ret_id = cube_steal(id);
	return rc;
}

/* ---- start, stop ----
 *
 * The engine goes on with what was cancelled; that it is done then is told by its events. */

int docker_box_start(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, cancel, &box, err);

	if (rc < 0 || docker_box_state(box) != CUBE_IS_STOPPED)
		return rc;
	if (docker_is_ours(id)) {
		cube_auto_fd dir = docker_box_dir(d, id, true, err); /* what it binds must be there */

		if (dir < 0)
			return dir;
	}
	rc = docker_box_do(d, id, "start", cancel, err);
	if (rc == 0)
		rc = docker_enter(d, id, cancel, err);
	if (rc < 0)
		(void)docker_box_do(d, id, "kill", NULL, NULL);
	return rc;
}

int docker_start(struct cube_backend *base, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	int rc = docker_settle(d, id, err);

	return rc == 0 ? docker_box_start(d, id, cancel, err) : rc;
}

int docker_stop(struct cube_backend *base, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, cancel, &box, err);
	char path[32];

	if (rc < 0 || docker_box_state(box) == CUBE_IS_STOPPED)
		return rc;
	if (docker_box_state(box) == CUBE_IS_PAUSED)
		rc = docker_resume(base, id, cancel, err);
	if (rc < 0)
		return rc;
	if (grace_s == 0)
		return docker_box_do(d, id, "kill", cancel, err);
	if (grace_s > LIFE_GRACE_S)
		grace_s = LIFE_GRACE_S;
	(void)snprintf(path, sizeof(path), "/stop?t=%u", grace_s);
	return docker_box_ask(
		d, id,
		&(struct docker_ask){
			.method = "POST", .path = path, .what = "stop", .timeout_s = grace_s + LIFE_SLOW_S},
		cancel, err);
}

/* ---- pause, limits ---- */

static int life_move(struct cube_docker *d, const char *id, enum cube_state to, const char *verb,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, cancel, &box, err);

	if (rc < 0 || docker_box_state(box) == to)
		return rc;
	if (docker_box_state(box) == CUBE_IS_STOPPED)
		return cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	return docker_box_do(d, id, verb, cancel, err);
}

int docker_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_move(docker_of(b), id, CUBE_IS_PAUSED, "pause", cancel, err);
}

int docker_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_move(docker_of(b), id, CUBE_IS_RUNNING, "unpause", cancel, err);
}

/* Podman 4 has this in its own interface alone, in the terms of the runtime. */
static int limit_podman(struct cube_docker *d, const char *id, const struct cube_limits *limits,
			struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_object();
	char ref[DOCKER_REF], path[DOCKER_REF + 64];
	int rc = docker_ref(id, ref, err);

	if (rc < 0)
		return rc;
	docker_spec_resources(body, limits);
	(void)snprintf(path, sizeof(path), "/v4.0.0/libpod/containers/%s/update", ref);
	return docker_ask(d,
			  &(struct docker_ask){.method = "POST",
					       .path = path,
					       .plain = true,
					       .body = body,
					       .what = "change the limits of a sandbox"},
			  NULL, err);
}

int docker_limit(struct cube_backend *base, const char *id, const struct cube_limits *limits,
		 struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_object();

	if (docker_of(base)->engine.podman)
		return limit_podman(docker_of(base), id, limits, err);
	docker_spec_limits(body, limits);
	return docker_box_ask(
		docker_of(base), id,
		&(struct docker_ask){
			.method = "POST", .path = "/update", .body = body, .what = "change the limits of"},
		NULL, err);
}

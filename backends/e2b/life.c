/* SPDX-License-Identifier: Apache-2.0 */
/* From create to destroy. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIFE_TRIES   40 /* while another change of the sandbox is under way */
#define LIFE_WAIT_MS 250

/* ---- creations whose answer was lost ---- */

void e2b_doubt(struct cube_e2b *e, const char *uid, bool on)
{
	pthread_mutex_lock(&e->lock);
	if (on)
		(void)cube_map_put(e->doubtful, uid, e);
	else
		(void)cube_map_take(e->doubtful, uid);
	pthread_mutex_unlock(&e->lock);
}

bool e2b_doubts(struct cube_e2b *e, const char *uid)
{
	bool does;

	pthread_mutex_lock(&e->lock);
	does = cube_map_get(e->doubtful, uid) != NULL || cube_map_get(e->boxes, uid) != NULL;
	pthread_mutex_unlock(&e->lock);
	return does;
}

/* ---- create ---- */

static int create_set(json_t *o, const char *key, const char *value)
{
	json_t *text = cube_json_bytes(value, strlen(value));

	return text != NULL ? json_object_set_new(o, key, text) : -1;
}

static json_t *create_metadata(const struct cube_e2b *e, const struct cube_spec *spec)
{
	json_t *meta = json_object();
	int bad = meta == NULL ? -1 : 0;

	bad |= create_set(meta, E2B_META_UID, spec->uid);
	bad |= create_set(meta, E2B_META_NAME, spec->name);
	bad |= create_set(meta, E2B_META_TEMPLATE, spec->template != NULL ? spec->template : e->template);
	bad |= create_set(meta, E2B_META_NET, spec->net == CUBE_NET_OPEN ? "open" : "none");
	for (size_t i = 0; bad == 0 && i < spec->n_labels; i++) {
		cube_auto_str key = cube_asprintf(E2B_META_LABEL "%s", spec->labels[i].key);

		bad |= key == NULL ? -1 : create_set(meta, key, spec->labels[i].value);
	}
	if (bad != 0)
		json_decref(cube_steal(meta));
	return meta;
}

static json_t *create_env(const struct cube_spec *spec)
{
	json_t *env = json_object();
	int bad = env == NULL ? -1 : 0;

	for (size_t i = 0; bad == 0 && i < spec->n_env; i++)
		bad |= create_set(env, spec->env[i].key, spec->env[i].value);
	if (bad != 0)
		json_decref(cube_steal(env));
	return env;
}

/* When its time is over it is paused, not ended: whoever comes back finds it. */
static json_t *create_body(const struct cube_e2b *e, const struct cube_spec *spec)
{
	return json_pack("{s:s, s:i, s:o, s:o, s:b, s:b}", "templateID",
			 spec->template != NULL ? spec->template : e->template, "timeout", (int)e->lease_s,
			 "metadata", create_metadata(e, spec), "envVars", create_env(spec), "autoPause", 1,
			 "allow_internet_access", spec->net == CUBE_NET_OPEN);
}

static int create_ask(struct cube_e2b *e, const char *path, const json_t *body, const char *what,
		      struct cube_cancel *cancel, json_t **ret, long *status, struct cube_err *err)
{
	return e2b_ask(e,
		       &(struct e2b_ask){.method = "POST",
					 .path = path,
					 .body = body,
					 .what = what,
					 .ret = ret,
					 .ret_status = status,
					 .timeout_s = 180},
		       cancel, err);
}

/* The second generation of the call, or the first where that is all that there is. */
static int create_either(struct cube_e2b *e, json_t *body, const char *what, struct cube_cancel *cancel,
			 json_t **ret, long *status, struct cube_err *err)
{
	bool old;
	int rc = 0;

	pthread_mutex_lock(&e->lock);
	old = e->old_create;
	pthread_mutex_unlock(&e->lock);
	if (!old) {
		rc = create_ask(e, "/v2/sandboxes", body, what, cancel, ret, status, err);
		if (*status != 404 && *status != 405)
			return rc;
	}
	*status = 0;
	if (json_object_set_new(body, "secure", json_true()) < 0)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = create_ask(e, "/sandboxes", body, what, cancel, ret, status, err);
	pthread_mutex_lock(&e->lock);
	e->old_create = rc == 0;
	pthread_mutex_unlock(&e->lock);
	return rc;
}

/* Is it there already, out of an attempt whose answer was lost? 1 yes. */
static int create_found(struct cube_e2b *e, const char *uid, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc;

	if (!e2b_doubts(e, uid))
		return 0;
	rc = e2b_box_get(e, uid, cancel, NULL, NULL, err);
	return rc == 0 ? 1 : rc == -ENOENT ? 0 : rc;
}

static int create_new(struct cube_e2b *e, const struct cube_spec *spec, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = create_body(e, spec), *made = NULL;
	char what[CUBE_ID_MAX + 64];
	long status = 0;
	int rc;

	if (body == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	(void)snprintf(what, sizeof(what), "make sandbox %s", spec->name);
	rc = create_either(e, body, what, cancel, &made, &status, err);
	if (rc == 0)
		rc = e2b_box_note(e, spec->uid, made, NULL, err);
	if (rc < 0 && (status == 0 || status >= 500)) {
		e2b_doubt(e, spec->uid, true); /* it may come about yet */
		(void)e2b_destroy(&e->base, spec->uid, &(struct cube_err){0});
	}
	if (rc < 0)
		return rc;
	e2b_box_fresh(e, spec->uid, true);
	e2b_lease_begin(e, spec->uid);
	return 0;
}

int e2b_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
	       char **ret_id, struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	char *id = cube_strdup(spec->uid);
	int rc;

	if (id == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = cube_cancel_fired(cancel) ? cube_fail(err, -EINTR, "interrupted")
				       : create_found(e, spec->uid, cancel, err);
	if (rc == 0)
		rc = create_new(e, spec, cancel, err);
	if (rc < 0) {
		cube_free(id);
		return rc;
	}
	e2b_doubt(e, spec->uid, false);
	*ret_id = id;
	return 0;
}

int e2b_destroy(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	char sid[CUBE_ID_MAX + 1], path[CUBE_ID_MAX + 32], what[CUBE_ID_MAX + 32];
	int rc = e2b_box_sid(e, id, NULL, sid, err);

	(void)snprintf(path, sizeof(path), "/sandboxes/%s", sid);
	(void)snprintf(what, sizeof(what), "end sandbox %s", id);
	if (rc == 0)
		rc = e2b_ask(
			e, &(struct e2b_ask){.method = "DELETE", .path = path, .what = what, .repeat = true},
			NULL, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	e2b_box_forget(e, id);
	return 0;
}

/* ---- running, paused, stopped ---- */

/* 0 and whether it is so already; while it is in the middle of something it is waited for. */
static int life_state(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, bool *ret_paused,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	int rc = e2b_box_get(e, id, cancel, &o, NULL, err);

	if (rc == 0)
		*ret_paused = strcmp(cube_json_str(o, "state", ""), "paused") == 0;
	return rc;
}

/* @body to @path, until it is taken or the sandbox is as wanted. */
static int life_move(struct cube_e2b *e, const char *id, const char *path, const json_t *body, bool paused,
		     const char *verb, struct cube_cancel *cancel, struct cube_err *err)
{
	for (unsigned tries = 0;; tries++) {
		cube_auto(cube_json_auto) json_t *o = NULL;
		int rc = e2b_box_post(e, id, path, body, verb, cancel, paused ? NULL : &o, err);
		bool is_paused = !paused;

		if (rc == 0)
			return o != NULL ? e2b_box_note(e, id, o, NULL, err) : 0;
		if (rc == -ENOENT)
			e2b_box_forget(e, id);
		if (rc != -EBUSY || tries == LIFE_TRIES)
			return rc;
		rc = life_state(e, id, cancel, &is_paused, err);
		if (rc < 0 || is_paused == paused)
			return rc;
		rc = e2b_wait(LIFE_WAIT_MS, cancel, err);
		if (rc < 0)
			return rc;
	}
}

static int life_up(struct cube_e2b *e, const char *id, const char *verb, struct cube_cancel *cancel,
		   struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_pack("{s:i}", "timeout", (int)e->lease_s);
	int rc = body != NULL ? life_move(e, id, "/connect", body, false, verb, cancel, err)
			      : cube_fail(err, -ENOMEM, "out of memory");

	if (rc == 0)
		rc = e2b_box_stopped_set(e, id, false, err);
	if (rc == 0)
		e2b_lease_begin(e, id);
	return rc;
}

int e2b_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_up(e2b_of(b), id, "start", cancel, err);
}

/* To the service one that was stopped is as good as paused. */
static int life_not_stopped(const struct cube_e2b *e, const char *id, struct cube_err *err)
{
	return e2b_box_stopped(e, id) ? cube_fail(err, -EHOSTDOWN, "sandbox %s is stopped: start it", id) : 0;
}

int e2b_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = life_not_stopped(e2b_of(b), id, err);

	return rc < 0 ? rc : life_up(e2b_of(b), id, "resume", cancel, err);
}

int e2b_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_object();
	int rc = life_not_stopped(e2b_of(b), id, err);

	if (rc == 0 && body == NULL)
		rc = cube_fail(err, -ENOMEM, "out of memory");
	return rc < 0 ? rc : life_move(e2b_of(b), id, "/pause", body, true, "pause", cancel, err);
}

/* Without its memory: what starts next finds the files alone. One that is paused runs for a moment before. */
int e2b_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
	     struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	cube_auto(cube_json_auto) json_t *body = json_pack("{s:b}", "memory", 0);
	struct e2b_box box;
	bool paused = false;
	int rc = body == NULL ? cube_fail(err, -ENOMEM, "out of memory")
			      : life_state(e, id, cancel, &paused, err);

	if (rc == 0 && paused && e2b_box_stopped(e, id))
		return 0;
	if (rc == 0 && paused)
		rc = life_up(e, id, "stop", cancel, err);
	if (rc == 0)
		rc = e2b_box_known(e, id, cancel, &box, err);
	if (rc == 0)
		e2b_agent_end(e, &box, grace_s, cancel);
	if (rc == 0)
		rc = e2b_box_stopped_set(e, id, true, err);
	if (rc < 0)
		return rc;
	rc = life_move(e, id, "/pause", body, true, "stop", cancel, err);
	if (rc < 0)
		(void)e2b_box_stopped_set(e, id, false, NULL);
	return rc;
}

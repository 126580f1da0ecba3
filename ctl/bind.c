/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of this machine in a sandbox. */
#include "ctl/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"

/* ---- What is remembered ---- */

static void bind_free(struct cube_bind_use *u)
{
	cube_free(u->source);
	cube_free(u->path);
}

void cube_binds_free(struct cube_binds *b)
{
	for (size_t i = 0; i < b->n; i++)
		bind_free(&b->list[i]);
	cube_free(b->list);
	*b = (struct cube_binds){0};
}

/* A copy of @from at the end. */
static int binds_add(struct cube_binds *b, const struct cube_bind_use *from)
{
	struct cube_bind_use *grown = cube_realloc(b->list, (b->n + 1) * sizeof(*grown));
	struct cube_bind_use u = *from;

	if (grown == NULL)
		return -ENOMEM;
	b->list = grown;
	u.source = cube_strdup(from->source);
	u.path = cube_strdup(from->path);
	if (u.source == NULL || u.path == NULL) {
		bind_free(&u);
		return -ENOMEM;
	}
	grown[b->n++] = u;
	return 0;
}

int cube_binds_copy(const struct cube_binds *from, struct cube_binds *ret)
{
	struct cube_binds copy = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = binds_add(&copy, &from->list[i]);
	if (r < 0)
		cube_binds_free(&copy);
	else
		*ret = copy;
	return r;
}

static struct cube_bind_use *binds_find(struct cube_binds *b, const char *path)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].path, path) == 0)
			return &b->list[i];
	return NULL;
}

static void binds_remove(struct cube_binds *b, const char *path)
{
	struct cube_bind_use *u = binds_find(b, path);

	if (u == NULL)
		return;
	bind_free(u);
	*u = b->list[--b->n];
}

int cube_binds_untold(struct cube_cube *c, struct cube_binds *ret)
{
	struct cube_own *own = cube_own(c);

	*ret = (struct cube_binds){0};
	return own->binds_told ? 0 : cube_binds_copy(&own->binds, ret);
}

void cube_binds_told(struct cube_cube *c)
{
	cube_own(c)->binds_told = true;
}

json_t *cube_binds_save(const struct cube_cube *c)
{
	const struct cube_binds *b = &cube_own((struct cube_cube *)(uintptr_t)c)->binds;
	json_t *list = json_array();

	for (size_t i = 0; list != NULL && i < b->n; i++) {
		const struct cube_bind_use *u = &b->list[i];

		(void)json_array_append_new(list,
					    json_pack("{s:o,s:o,s:b,s:I,s:I,s:b}", "source",
						      cube_bytes_json(u->source, strlen(u->source)), "path",
						      cube_bytes_json(u->path, strlen(u->path)), "read_only",
						      (int)u->read_only, "uid", (json_int_t)u->uid, "gid",
						      (json_int_t)u->gid, "owner", (int)u->owner));
	}
	return list;
}

int cube_binds_load(struct cube_cube *c, const json_t *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct cube_bind_use u = {
			.source = cube_bytes_dup(o, "source"),
			.path = cube_bytes_dup(o, "path"),
			.read_only = cube_json_bool(o, "read_only", false),
			.uid = (uid_t)cube_json_int(o, "uid", -1),
			.gid = (gid_t)cube_json_int(o, "gid", -1),
			.owner = cube_json_bool(o, "owner", false),
		};

		r = u.source != NULL && u.path != NULL ? binds_add(&cube_own(c)->binds, &u) : -EINVAL;
		bind_free(&u);
	}
	return r;
}

/* ---- At the backend: no lock ---- */

static int bind_tell(struct cube_backend *b, const char *id, const struct cube_bind_use *u, pid_t pid,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	const struct cube_caller by = {
		.pid = pid, .uid = u->uid, .gid = u->gid, .local = true, .owner = u->owner};
	struct cube_bind bind = {.path = u->path,
				 .read_only = u->read_only,
				 .owner_uid = u->owner ? geteuid() : u->uid,
				 .owner_gid = u->owner ? getegid() : u->gid};
	cube_auto_fd fd = -1;
	int r = cube_caller_open(&by, u->source, O_PATH | O_DIRECTORY, &fd, err);

	if (r == 0) {
		bind.fd = fd;
		r = cube_backend_bind(b, id, &bind, cancel, err);
	}
	return r;
}

int cube_binds_tell(struct cube_backend *b, const char *id, const struct cube_binds *binds,
		    struct cube_cancel *cancel, struct cube_err *err)
{
	int r = 0;

	for (size_t i = 0; i < binds->n; i++) {
		struct cube_err why = {0};
		int code = bind_tell(b, id, &binds->list[i], 0, cancel, &why);

		if (code == 0 || r < 0)
			continue;
		r = cube_fail(err, code, "bind %s: %s", binds->list[i].path, why.text);
	}
	return r;
}

/* ---- The verbs ---- */

struct cube_bind_call {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	struct cube_cancel *cancel;
	char id[CUBE_ID_MAX + 1];
	struct cube_bind_use use; /* owned; source NULL: unbind */
	pid_t pid;
	bool fresh;                                                    /* was not there before */
	void (*done)(void *ctx, int code, const struct cube_err *err); /* NULL: nobody waits */
	void *ctx;
};

static void call_free(struct cube_bind_call *call)
{
	bind_free(&call->use);
	cube_cancel_unref(call->cancel);
	cube_cube_unref(call->cube);
	cube_free(call);
}

static void call_mounts_changed(struct cube_cube *c, const char *gone)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	if (w->mounts_changed != NULL)
		w->mounts_changed(w->ctx, c, gone);
}

static int call_end(struct cube_bind_call *call, int code, struct cube_err *err)
{
	struct cube_cube *c = call->cube;
	bool unbind = call->use.source == NULL;

	if (unbind ? code == 0 : code < 0 && call->fresh)
		binds_remove(&cube_own(c)->binds, call->use.path);
	if (c->phase != CUBE_REMOVED && (unbind || code < 0)) {
		int r = cube_state_save(c, code == 0 ? err : NULL);

		code = code == 0 ? r : code;
	}
	if (code == 0)
		call_mounts_changed(c, unbind ? call->use.path : NULL);
	return code;
}

static void call_run(struct cube_work *w)
{
	struct cube_bind_call *call = cube_container_of(w, struct cube_bind_call, work);
	struct cube_domain *d = call->cube->domain;
	struct cube_backend *b = call->cube->service->backend;
	struct cube_err err = {0};
	int code = call->use.source == NULL
			   ? cube_backend_unbind(b, call->id, call->use.path, &err)
			   : bind_tell(b, call->id, &call->use, call->pid, call->cancel, &err);

	cube_domain_enter(d);
	code = call_end(call, code, &err);
	if (call->done != NULL)
		call->done(call->ctx, code, code < 0 ? &err : NULL);
	call_free(call);
	cube_task_end(d);
	cube_domain_leave(d);
}

static struct cube_bind_call *call_new(struct cube_cube *c, const char *path,
				       void (*done)(void *ctx, int code, const struct cube_err *err),
				       void *ctx)
{
	struct cube_bind_call *call = cube_calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->cube = cube_cube_ref(c);
	call->cancel = cube_cancel_new();
	call->use.path = cube_strdup(path);
	call->done = done;
	call->ctx = ctx;
	call->work.run = call_run;
	call->work.key = cube_backend_queue_key(c->service->backend, c);
	(void)snprintf(call->id, sizeof(call->id), "%s", c->id != NULL ? c->id : "");
	if (call->cancel != NULL && call->use.path != NULL)
		return call;
	call_free(call);
	return NULL;
}

static int bind_check(const struct cube_cube *c, const char *verb, const char *path, struct cube_err *err)
{
	if (!cube_name_inside_ok(path))
		return cube_fail(
			err, -EINVAL,
			"%s %s: an absolute path inside is wanted, without '.', '..' or '//', and not of "
			"/proc, /sys or /dev",
			verb, path);
	if (c->id == NULL)
		return cube_fail(err, -EHOSTDOWN, "%s: sandbox '%s' is not there", verb, c->name);
	return 0;
}

/* The intention is on disk before anything is opened. */
static int bind_note(struct cube_bind_call *call, struct cube_err *err)
{
	struct cube_cube *c = call->cube;
	int r = binds_add(&cube_own(c)->binds, &call->use);

	if (r < 0)
		return cube_fail(err, r, "bind %s: out of memory", call->use.path);
	call->fresh = true;
	r = cube_state_save(c, err);
	if (r < 0)
		binds_remove(&cube_own(c)->binds, call->use.path);
	return r;
}

/* Whether it may be asked for at all. */
static int bind_may(struct cube_cube *c, const struct cube_bind_wanted *w, struct cube_err *err)
{
	int r = bind_check(c, "bind", w->path, err);

	if (r < 0)
		return r;
	if (!w->by->local)
		return cube_fail(err, -EPERM, "bind %s: a remote client cannot name a path of this machine",
				 w->source);
	if (w->source[0] != '/')
		return cube_fail(err, -EINVAL, "bind %s: a path of this machine must be absolute", w->source);
	if (binds_find(&cube_own(c)->binds, w->path) != NULL)
		return cube_fail(err, -EEXIST,
				 "bind %s: there is one at %s already; `unbind %s` takes it away", w->source,
				 w->path, w->path);
	return 0;
}

int cube_bind_begin(struct cube_cube *c, const struct cube_bind_wanted *wanted,
		    void (*done)(void *ctx, int code, const struct cube_err *err), void *ctx,
		    struct cube_bind_call **ret, struct cube_err *err)
{
	struct cube_bind_call *call;
	int r = bind_may(c, wanted, err);

	if (r < 0)
		return r;
	call = call_new(c, wanted->path, done, ctx);
	if (call != NULL)
		call->use.source = cube_strdup(wanted->source);
	if (call == NULL || call->use.source == NULL) {
		if (call != NULL)
			call_free(call);
		return cube_fail(err, -ENOMEM, "bind: out of memory");
	}
	call->use.read_only = wanted->read_only;
	call->use.uid = wanted->by->uid;
	call->use.gid = wanted->by->gid;
	call->use.owner = wanted->by->owner;
	call->pid = wanted->by->pid;
	r = bind_note(call, err);
	if (r < 0) {
		call_free(call);
		return r;
	}
	*ret = call;
	cube_task_submit(c->domain, &call->work);
	return 0;
}

int cube_unbind_begin(struct cube_cube *c, const char *path,
		      void (*done)(void *ctx, int code, const struct cube_err *err), void *ctx,
		      struct cube_bind_call **ret, struct cube_err *err)
{
	struct cube_bind_call *call;
	int r = bind_check(c, "unbind", path, err);

	if (r == 0 && binds_find(&cube_own(c)->binds, path) == NULL)
		r = cube_fail(err, -ENOENT, "unbind %s: nothing is bound there", path);
	if (r < 0)
		return r;
	call = call_new(c, path, done, ctx);
	if (call == NULL)
		return cube_fail(err, -ENOMEM, "unbind: out of memory");
	*ret = call;
	cube_task_submit(c->domain, &call->work);
	return 0;
}

void cube_bind_leave(struct cube_bind_call *call)
{
	call->done = NULL;
	cube_cancel_fire(call->cancel);
}

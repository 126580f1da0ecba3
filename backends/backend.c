/* SPDX-License-Identifier: Apache-2.0 */
/* The checked wrappers: the only code that calls through a backend's table. */
#include "backends/backend.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "backends/call.h"
#include "backends/check.h"

/* ---- Instances ---- */

/* Whatever the kind can do and the instance cannot has a reason, even where the backend forgot it. */
static void fill_missing(struct cube_backend *b)
{
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		bool lacks = (b->ops->caps & ~b->caps & (1u << i)) != 0;

		if (lacks && b->missing[i][0] == '\0')
			(void)snprintf(b->missing[i], sizeof(b->missing[i]), "not available here");
	}
}

/* NULL: @err says why. */
static struct cube_backend *open_checked(const struct cube_backend_ops *ops,
					 const struct cube_backend_env *env, struct cube_err *err)
{
	struct cube_backend *b = NULL;
	int r;

	if (cube_check_ops(ops, err) < 0)
		return NULL;
	if (env->name == NULL || !cube_name_ok(env->name)) {
		(void)cube_fail(err, -EINVAL, "'%s' is no name for a backend",
				env->name != NULL ? env->name : "");
		return NULL;
	}
	r = ops->open(env, &b, err);
	if (r < 0) {
		if (err->code != r)
			(void)cube_fail(err, r, "%s", cube_errno_text(r));
		(void)cube_fail_in(err, "backend %s", env->name);
		return NULL;
	}
	if (b == NULL || (b->caps & ~b->ops->caps) != 0) {
		(void)cube_fail(err, -EINVAL, "backend %s %s", env->name,
				b == NULL ? "opened without an instance"
					  : "claims capabilities that its kind does not have");
		cube_backend_close(b);
		return NULL;
	}
	return b;
}

int cube_backend_open(const struct cube_backend_ops *ops, const struct cube_backend_env *env,
		      struct cube_backend **ret, struct cube_err *err)
{
	struct cube_err why = {.code = 0};
	struct cube_backend *b = open_checked(ops, env, &why);

	if (b == NULL) {
		if (err != NULL)
			*err = why;
		return why.code;
	}
	fill_missing(b);
	*ret = b;
	return 0;
}

void cube_backend_close(struct cube_backend *b)
{
	if (b != NULL)
		b->ops->close(b);
}

int cube_backend_need(const struct cube_backend *b, enum cube_cap cap, struct cube_err *err)
{
	unsigned n = (unsigned)__builtin_ctz(cap);

	if ((b->caps & cap) != 0)
		return 0;
	if ((b->ops->caps & cap) == 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "backend %s cannot %s: its kind, %s, has no such operation", b->name,
				 cube_cap_cannot(n), b->ops->kind);
	return cube_fail(err, -EOPNOTSUPP, "backend %s cannot %s: %s", b->name, cube_cap_cannot(n),
			 b->missing[n]);
}

int cube_backend_check_spec(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err)
{
	return cube_check_spec(b, spec, err);
}

const void *cube_backend_queue_key(const struct cube_backend *b, const void *per_cube)
{
	switch (b->par) {
	case CUBE_PAR_FULL:
		return NULL;
	case CUBE_PAR_PER_CUBE:
		return per_cube;
	case CUBE_PAR_NONE:
		break;
	}
	return b;
}

/* ---- One call (call.h) ---- */

int cube_call_begin(struct cube_call *c, uint32_t cap)
{
	return cap == 0 ? 0 : cube_backend_need(c->b, (enum cube_cap)cap, &c->why);
}

int cube_call_begin_id(struct cube_call *c, uint32_t cap)
{
	int r = cube_call_begin(c, cap);

	if (r == 0 && !cube_check_id(c->on))
		return cube_fail(&c->why, -EINVAL, "backend %s: no sandbox can have this id", c->b->name);
	return r;
}

int cube_call_nonsense(struct cube_call *c, const char *what)
{
	return cube_fail(&c->why, -EREMOTEIO, "backend %s answered %s with %s", c->b->name, c->op, what);
}

int cube_call_end(struct cube_call *c, int r, struct cube_err *err)
{
	if (r == 0)
		return 0;
	if (r > 0)
		r = cube_call_nonsense(c, "neither success nor an error");
	if (c->why.code != r || c->why.text[0] == '\0')
		(void)cube_fail(&c->why, r, "backend %s: %s %s: %s", c->b->name, c->op,
				c->on != NULL ? c->on : "", cube_errno_text(r));
	cube_log(CUBE_LOG_DEBUG, "backend", "%s: %s %s: %s: %s", c->b->name, c->op,
		 c->on != NULL ? c->on : "", cube_errno_name(r), c->why.text);
	if (err != NULL)
		*err = c->why;
	return r;
}

/* ---- Operations ---- */

int cube_backend_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
			struct cube_err *err)
{
	struct cube_call c = CALL("status", NULL);
	struct cube_status st = {.caps = b->caps};
	int r = b->ops->status(b, cancel, &st, &c.why);

	if (r == 0) {
		cube_check_status(b, &st);
		*ret = st;
	}
	return cube_call_end(&c, r, err);
}

int cube_backend_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
			char **ret_id, struct cube_err *err)
{
	struct cube_call c = CALL("create", spec->name);
	struct cube_err ignored = {.code = 0};
	cube_auto_str id = NULL;
	int r = cube_check_mark(spec, &c.why);

	if (r == 0)
		r = cube_check_spec(b, spec, &c.why);
	if (r == 0)
		r = b->ops->create(b, spec, cancel, &id, &c.why);
	if (r == 0 && !cube_check_id(id)) {
		/* It cannot be used, so nothing of it may stay. */
		if (id != NULL)
			(void)b->ops->destroy(b, id, &ignored);
		r = cube_call_nonsense(&c, "an id that is none");
	}
	if (r == 0)
		*ret_id = cube_steal(id);
	return cube_call_end(&c, r, err);
}

int cube_backend_destroy(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct cube_call c = CALL("destroy", id);
	int r = cube_call_begin_id(&c, 0);

	if (r == 0)
		r = b->ops->destroy(b, id, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct cube_call c = CALL("inspect", id);
	struct cube_info info = {.state = CUBE_IS_GONE};
	int r = cube_call_begin_id(&c, 0);

	if (r == 0)
		r = b->ops->inspect(b, id, &info, &c.why);
	if (r == 0 && (!cube_check_info(&info) || strcmp(info.id, id) != 0))
		r = cube_call_nonsense(&c, "something that is not this sandbox");
	info.labels = NULL;
	if (r == 0)
		*ret = info;
	return cube_call_end(&c, r, err);
}

struct list_call {
	const struct cube_backend *b;
	void (*each)(void *ctx, const struct cube_info *info);
	void *ctx;
};

static void list_each(void *ctx, const struct cube_info *info)
{
	const struct list_call *l = ctx;
	struct cube_info copy = *info;

	if (cube_check_info(&copy))
		l->each(l->ctx, &copy);
	else
		cube_log(CUBE_LOG_WARNING, "backend", "%s: lists a sandbox with an unusable id: %s",
			 l->b->name, copy.id);
}

int cube_backend_list(struct cube_backend *b, struct cube_cancel *cancel,
		      void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct cube_call c = CALL("list", NULL);
	struct list_call l = {.b = b, .each = each, .ctx = ctx};

	return cube_call_end(&c, b->ops->list(b, cancel, list_each, &l, &c.why), err);
}

bool cube_backend_watches(const struct cube_backend *b)
{
	return b->ops->watch != NULL;
}

int cube_backend_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_call c = CALL("watch", NULL);
	int r = b->ops->watch != NULL
			? b->ops->watch(b, news, cancel, &c.why)
			: cube_fail(&c.why, -EOPNOTSUPP, "backend %s tells nothing by itself", b->name);

	if (r == 0)
		r = cube_fail(&c.why, -EREMOTEIO, "backend %s has ended what it tells", b->name);
	return cube_call_end(&c, r, err);
}

int cube_spec_labels(const struct cube_spec *spec, struct cube_buf *out)
{
	for (size_t i = 0; i < spec->n_labels; i++)
		(void)cube_buf_printf(out, "%s=%s\n", spec->labels[i].key, spec->labels[i].value);
	return out->error;
}

bool cube_backend_id_ok(const char *id)
{
	return cube_check_id(id);
}

int cube_backend_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_call c = CALL("adopt", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_ADOPT);

	if (r == 0)
		r = b->ops->adopt(b, id, uid, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_let_go(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct cube_call c = CALL("let_go", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_ADOPT);

	if (r == 0)
		r = b->ops->let_go(b, id, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_call c = CALL("start", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_STOP);

	if (r == 0)
		r = b->ops->start(b, id, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_call c = CALL("stop", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_STOP);

	if (r == 0)
		r = b->ops->stop(b, id, grace_s, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_call c = CALL("pause", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_PAUSE);

	if (r == 0)
		r = b->ops->pause(b, id, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			struct cube_err *err)
{
	struct cube_call c = CALL("resume", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_PAUSE);

	if (r == 0)
		r = b->ops->resume(b, id, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		       struct cube_err *err)
{
	struct cube_call c = CALL("limit", id);
	int r = cube_call_begin_id(&c, 0);

	if (r == 0)
		r = cube_check_limits(b, limits, &c.why);
	if (r == 0 && b->ops->limit != NULL) /* NULL: then nothing was asked for */
		r = b->ops->limit(b, id, limits, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err)
{
	struct cube_call c = CALL("rename", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_RENAME);

	if (r == 0 && (name == NULL || !cube_name_ok(name)))
		r = cube_fail(&c.why, -EINVAL, "rename: the name is no sandbox name");
	if (r == 0)
		r = b->ops->rename(b, id, name, &c.why);
	return cube_call_end(&c, r, err);
}

bool cube_backend_expires(const struct cube_backend *b)
{
	return b->ops->expire != NULL;
}

int cube_backend_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
			struct cube_err *err)
{
	struct cube_call c = CALL("expire", id);
	int r = cube_call_begin_id(&c, 0);

	if (r == 0 && b->ops->expire == NULL)
		r = cube_fail(&c.why, -EOPNOTSUPP, "backend %s ends no sandbox by itself", b->name);
	else if (r == 0)
		r = b->ops->expire(b, id, wall_ns, what, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
		      void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_call c = CALL("link", id);
	struct cube_link *l = NULL;
	int r = cube_call_begin_id(&c, CUBE_CAP_EXEC);

	assert(handler->up != NULL && handler->synced != NULL && handler->started != NULL &&
	       handler->output != NULL);
	assert(handler->input != NULL && handler->session != NULL && handler->ended != NULL);
	assert(handler->down != NULL);
	if (r == 0)
		r = b->ops->link(b, id, handler, ctx, cancel, &l, &c.why);
	if (r == 0 && l == NULL)
		r = cube_call_nonsense(&c, "no link");
	if (r == 0)
		*ret = l;
	return cube_call_end(&c, r, err);
}

void cube_root_close(struct cube_root *root)
{
	cube_close_auto(&root->fd);
	root->fd = -1;
	for (unsigned i = 0; i < root->n_mounts && i < CUBE_MOUNTS_MAX; i++) {
		cube_close_auto(&root->mounts[i].fd);
		root->mounts[i].fd = -1;
	}
}

int cube_backend_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct cube_call c = CALL("root", id);
	struct cube_root root = {.fd = -1};
	int r = cube_call_begin_id(&c, CUBE_CAP_FILES);

	if (r == 0)
		r = b->ops->root(b, id, &root, &c.why);
	if (r == 0 && !cube_check_root(&root)) {
		cube_root_close(&root);
		r = cube_call_nonsense(&c, "a root that is none");
	}
	if (r == 0)
		*ret = root;
	return cube_call_end(&c, r, err);
}

int cube_backend_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct cube_call c = CALL("usage", id);
	struct cube_usage u = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
			       UINT64_MAX, UINT64_MAX, UINT64_MAX};
	int r = cube_call_begin_id(&c, CUBE_CAP_USAGE);

	if (r == 0)
		r = b->ops->usage(b, id, &u, &c.why);
	if (r == 0)
		*ret = u;
	return cube_call_end(&c, r, err);
}

int cube_backend_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err)
{
	struct cube_call c = CALL("written", id);
	uint64_t n = 0;
	int r = cube_call_begin_id(&c, CUBE_CAP_USAGE);

	if (r == 0 && b->ops->written == NULL)
		r = cube_fail(&c.why, -EOPNOTSUPP, "backend %s does not write on this machine's disk",
			      b->name);
	else if (r == 0)
		r = b->ops->written(b, id, &n, &c.why);
	if (r == 0)
		*ret = n;
	return cube_call_end(&c, r, err);
}

/* ---- Ports ---- */

int cube_backend_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
		      struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	struct cube_call c = CALL("dial", id);
	cube_auto_fd fd = -1;
	int r = cube_call_begin_id(&c, CUBE_CAP_PORTS);

	if (r == 0 && !cube_check_target(target))
		r = cube_fail(&c.why, -EINVAL, "backend %s: nothing can listen there", b->name);
	if (r == 0)
		r = b->ops->dial(b, id, target, cancel, &fd, &c.why);
	if (r == 0 && fd < 0)
		r = cube_call_nonsense(&c, "no connection");
	if (r == 0)
		*ret_fd = cube_steal_fd(&fd);
	return cube_call_end(&c, r, err);
}

struct listening_call {
	void (*each)(void *ctx, const struct cube_listener *l);
	void *ctx;
	unsigned n;
};

static void listening_each(void *ctx, const struct cube_listener *l)
{
	struct listening_call *lc = ctx;
	struct cube_listener copy = *l;

	if (cube_check_listener(&copy) && lc->n < CUBE_LISTENERS_MAX) {
		lc->n++;
		lc->each(lc->ctx, &copy);
	}
}

int cube_backend_listening(struct cube_backend *b, const char *id,
			   void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			   struct cube_err *err)
{
	struct cube_call c = CALL("listening", id);
	struct listening_call lc = {.each = each, .ctx = ctx};
	int r = cube_call_begin_id(&c, CUBE_CAP_PORTS);

	if (r == 0)
		r = b->ops->listening(b, id, listening_each, &lc, &c.why);
	return cube_call_end(&c, r, err);
}

struct access_call {
	void (*each)(void *ctx, const char *line);
	void *ctx;
};

/* One line each, whatever it holds. */
static void access_each(void *ctx, const char *line)
{
	const struct access_call *ac = ctx;
	struct cube_buf text = CUBE_BUF(4096);

	if (cube_buf_add_escaped(&text, line, strlen(line), false) == 0 && text.len > 0)
		ac->each(ac->ctx, cube_buf_str(&text));
	cube_buf_done(&text);
}

int cube_backend_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
			void *ctx, struct cube_err *err)
{
	struct cube_call c = CALL("access", id);
	struct access_call ac = {.each = each, .ctx = ctx};
	int r = cube_call_begin_id(&c, CUBE_CAP_ACCESS);

	if (r == 0)
		r = b->ops->access(b, id, access_each, &ac, &c.why);
	return cube_call_end(&c, r, err);
}

/* ---- Binds ---- */

static int call_begin_bind(struct cube_call *c, const char *path)
{
	int r = cube_call_begin_id(c, CUBE_CAP_BIND);

	if (r == 0 && !cube_name_inside_ok(path))
		return cube_fail(&c->why, -EINVAL, "'%s' is no path for a bind", path != NULL ? path : "");
	return r;
}

int cube_backend_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("bind", id);
	int r = call_begin_bind(&c, bind->path);

	if (r == 0)
		r = b->ops->bind(b, id, bind, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err)
{
	struct cube_call c = CALL("unbind", id);
	int r = call_begin_bind(&c, path);

	if (r == 0)
		r = b->ops->unbind(b, id, path, &c.why);
	return cube_call_end(&c, r, err);
}

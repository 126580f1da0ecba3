/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs: the tables, the way of a line from text to done, ` &`, usage. */
#include "ctl/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/stock.h"
#include "ctl/verbs/verbs.h"
#include "ctl/words.h"

static const struct cube_verb *const root_verbs[] = {
	&cube_verb_create, &cube_verb_destroy, &cube_verb_rename, &cube_verb_root_fork, &cube_verb_mkdir,
	&cube_verb_rmdir,  &cube_verb_mv,      &cube_verb_sweep,  &cube_verb_root_set,  NULL};
static const struct cube_verb *const backend_verbs[] = {&cube_verb_refresh, NULL};
static const struct cube_verb *const template_verbs[] = {
	&cube_verb_template_import, &cube_verb_template_build, &cube_verb_template_cancel, NULL};
static const struct cube_verb *const pool_verbs[] = {&cube_verb_pool_drain, &cube_verb_pool_refill, NULL};
static const struct cube_verb *const cube_verbs_of_cube[] = {&cube_verb_life_start,
							     &cube_verb_life_stop,
							     &cube_verb_life_restart,
							     &cube_verb_life_pause,
							     &cube_verb_life_resume,
							     &cube_verb_life_reset,
							     &cube_verb_checkpoint,
							     &cube_verb_restore,
							     &cube_verb_fork,
							     &cube_verb_kill,
							     &cube_verb_bind,
							     &cube_verb_unbind,
							     &cube_verb_put,
							     &cube_verb_get,
							     &cube_verb_wait,
							     &cube_verb_mkdir,
							     &cube_verb_rmdir,
							     &cube_verb_mv,
							     &cube_verb_hold,
							     &cube_verb_renew,
							     &cube_verb_lease,
							     &cube_verb_set,
							     NULL};
static const struct cube_verb *const session_verbs[] = {&cube_verb_session_kill, &cube_verb_session_reset,
							&cube_verb_session_set, NULL};
static const struct cube_verb *const job_verbs[] = {&cube_verb_job_kill,    &cube_verb_job_eof,
						    &cube_verb_job_wait,    &cube_verb_job_timeout,
						    &cube_verb_job_stdin,   &cube_verb_job_merge,
						    &cube_verb_job_session, &cube_verb_job_tty,
						    &cube_verb_job_winsize, NULL};

static const struct cube_verb *const port_verbs[] = {&cube_verb_port_sign,   &cube_verb_port_revoke,
						     &cube_verb_port_name,   &cube_verb_port_public,
						     &cube_verb_port_listen, NULL};

static const struct cube_verb *const checkpoint_verbs[] = {
	&cube_verb_checkpoint_restore, &cube_verb_checkpoint_fork, &cube_verb_checkpoint_template,
	&cube_verb_checkpoint_set, NULL};

static const struct cube_verb *const *const verb_tables[CUBE_SCOPE_COUNT] = {
	[CUBE_SCOPE_ROOT] = root_verbs,
	[CUBE_SCOPE_BACKEND] = backend_verbs,
	[CUBE_SCOPE_TEMPLATE] = template_verbs,
	[CUBE_SCOPE_CUBE] = cube_verbs_of_cube,
	[CUBE_SCOPE_SESSION] = session_verbs,
	[CUBE_SCOPE_JOB] = job_verbs,
	[CUBE_SCOPE_POOL] = pool_verbs,
	[CUBE_SCOPE_PORT] = port_verbs,
	[CUBE_SCOPE_CHECKPOINT] = checkpoint_verbs,
};

const struct cube_verb *const *cube_verbs(enum cube_scope scope)
{
	return verb_tables[scope];
}

/* ---- What a verb works on ---- */

static struct cube_cube *object_cube(enum cube_scope scope, void *object)
{
	switch (scope) {
	case CUBE_SCOPE_CUBE:
		return object;
	case CUBE_SCOPE_SESSION:
		return ((struct cube_session *)object)->cube;
	case CUBE_SCOPE_JOB:
		return ((struct cube_job *)object)->cube;
	case CUBE_SCOPE_PORT:
		return ((struct cube_port *)object)->cube;
	case CUBE_SCOPE_CHECKPOINT:
		return ((struct cube_checkpoint_entry *)object)->cube;
	default:
		return NULL;
	}
}

static const struct cube_backend *object_backend(enum cube_scope scope, void *object)
{
	const struct cube_cube *c = object_cube(scope, object);

	if (c != NULL)
		return c->service->backend;
	if (scope == CUBE_SCOPE_BACKEND)
		return ((struct cube_service *)object)->backend;
	if (scope == CUBE_SCOPE_TEMPLATE)
		return ((struct cube_template_entry *)object)->service->backend;
	if (scope == CUBE_SCOPE_POOL)
		return ((struct cube_stock *)object)->service->backend;
	return NULL;
}

/* Where the end of what was left to itself is told. */
static struct cube_buf *object_done(struct cube_domain *d, enum cube_scope scope, void *object)
{
	struct cube_cube *c = object_cube(scope, object);

	if (c != NULL)
		return &c->done;
	if (scope == CUBE_SCOPE_BACKEND)
		return &((struct cube_service *)object)->done;
	if (scope == CUBE_SCOPE_TEMPLATE)
		return &((struct cube_template_entry *)object)->service->done;
	return &d->done;
}

static void object_ref(enum cube_scope scope, void *object)
{
	if (scope == CUBE_SCOPE_TEMPLATE)
		cube_template_ref(object);
	else if (scope == CUBE_SCOPE_CUBE)
		cube_cube_ref(object);
	else if (scope == CUBE_SCOPE_SESSION)
		cube_session_ref(object);
	else if (scope == CUBE_SCOPE_JOB)
		cube_job_ref(object);
	else if (scope == CUBE_SCOPE_POOL)
		cube_stock_ref(object);
	else if (scope == CUBE_SCOPE_PORT)
		cube_port_ref(object);
	else if (scope == CUBE_SCOPE_CHECKPOINT)
		cube_checkpoint_ref(object);
}

static void object_unref(enum cube_scope scope, void *object)
{
	if (scope == CUBE_SCOPE_TEMPLATE)
		cube_template_unref(object);
	else if (scope == CUBE_SCOPE_CUBE)
		cube_cube_unref(object);
	else if (scope == CUBE_SCOPE_SESSION)
		cube_session_unref(object);
	else if (scope == CUBE_SCOPE_JOB)
		cube_job_unref(object);
	else if (scope == CUBE_SCOPE_POOL)
		cube_stock_unref(object);
	else if (scope == CUBE_SCOPE_PORT)
		cube_port_unref(object);
	else if (scope == CUBE_SCOPE_CHECKPOINT)
		cube_checkpoint_unref(object);
}

/* ---- Words for implementations ---- */

char *cube_verb_value(const char *verb, char *word, struct cube_err *err)
{
	char *eq = strchr(word, '=');

	if (eq == NULL || eq == word) {
		(void)cube_fail(err, -EINVAL, "%s: '%s' is no key=value", verb, word);
		return NULL;
	}
	*eq = '\0';
	return eq + 1;
}

#define VERB_LABEL "label."

bool cube_verb_is_label(const char *word)
{
	return strncmp(word, VERB_LABEL, strlen(VERB_LABEL)) == 0 && strchr(word, '=') != NULL;
}

int cube_verb_label(const char *verb, char *word, struct cube_pair *ret, struct cube_err *err)
{
	char *value = cube_verb_value(verb, word, err);

	if (value == NULL)
		return -EINVAL;
	*ret = (struct cube_pair){.key = word + strlen(VERB_LABEL), .value = value};
	if (!cube_name_ok(ret->key) || value[0] == '\0')
		return cube_fail(err, -EINVAL, "%s: %s=%s: label.NAME=VALUE, neither of them empty", verb,
				 word, value);
	return 0;
}

int cube_verb_seconds(const char *verb, const char *word, uint32_t *ret, struct cube_err *err)
{
	uint64_t n;

	if (cube_num_u64(word, UINT32_MAX / 1000, &n) < 0)
		return cube_fail(err, -EINVAL, "%s: '%s' is no number of seconds", verb, word);
	*ret = (uint32_t)n;
	return 0;
}

/* ---- The way of a line ---- */

static const struct cube_verb *verb_find(enum cube_scope scope, const char *name)
{
	for (const struct cube_verb *const *v = cube_verbs(scope); *v != NULL; v++)
		if (strcmp((*v)->name, name) == 0)
			return *v;
	return NULL;
}

static int verb_unknown(enum cube_scope scope, const char *name, struct cube_err *err)
{
	struct cube_buf known = CUBE_BUF(300);

	for (const struct cube_verb *const *v = cube_verbs(scope); *v != NULL; v++)
		cube_buf_printf(&known, "%s%s", known.len > 0 ? ", " : "", (*v)->name);
	int r = cube_fail(err, -EINVAL, "no verb '%.64s' here; known: %s", name, cube_buf_str(&known));
	cube_buf_done(&known);
	return r;
}

static int verb_phase(const struct cube_verb *v, const struct cube_cube *c, struct cube_err *err)
{
	if (c == NULL || v->phases == 0 || v->phases & (1u << c->phase))
		return 0;
	if (c->phase == CUBE_CREATING)
		return cube_fail(err, -EBUSY, "%s: sandbox '%s' is being created; `wait` waits for it",
				 v->name, c->name);
	if (c->phase == CUBE_STOPPED || c->phase >= CUBE_ERROR)
		return cube_fail(err, -EHOSTDOWN, "%s: sandbox '%s' is %s%s%s", v->name, c->name,
				 cube_cube_is(c), cube_cube_why(c)[0] != '\0' ? ": " : "", cube_cube_why(c));
	return cube_fail(err, -EINVAL, "%s: sandbox '%s' is %s", v->name, c->name, cube_phase_name(c->phase));
}

static int verb_needs(const struct cube_verb *v, const struct cube_backend *b, struct cube_err *err)
{
	for (unsigned bit = 0; b != NULL && bit < CUBE_CAP_COUNT; bit++) {
		if (!(v->needs & (1u << bit)))
			continue;
		int r = cube_backend_need(b, (enum cube_cap)(1u << bit), err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Everything that can be refused without the verb's own knowledge. */
static int verb_check(struct cube_verb_call *call)
{
	unsigned args = call->n_words - 1;
	const struct cube_verb *v = verb_find(call->scope, call->words[0]);

	if (v == NULL)
		return verb_unknown(call->scope, call->words[0], &call->err);
	call->verb = v;
	if (args < v->min || args > v->max)
		return cube_fail(&call->err, -EINVAL, "usage: %s%s%s", v->name, v->args[0] != '\0' ? " " : "",
				 v->args);
	if (call->domain->closing)
		return cube_fail(&call->err, -EHOSTDOWN, "%s: the daemon is ending", v->name);
	int r = verb_needs(v, object_backend(call->scope, call->object), &call->err);
	return r < 0 ? r : verb_phase(v, object_cube(call->scope, call->object), &call->err);
}

void cube_verb_finish(struct cube_verb_call *call, int code)
{
	if (call->finished)
		return;
	call->finished = true;
	if (code < 0 && call->err.code == 0)
		(void)cube_fail(&call->err, code, "%s: %s", call->verb != NULL ? call->verb->name : "verb",
				cube_errno_text(code));
	cube_wait_remove(&call->waiter);
	cube_free(cube_steal(call->words));
	call->n_words = 0;
	call->done(call, code);
}

static void verb_run(struct cube_verb_call *call)
{
	int r = call->verb->run(call, &call->err);

	if (r <= 0)
		cube_verb_finish(call, r);
}

/* ---- Left to itself ---- */

struct verb_behind {
	struct cube_verb_call call;
	char name[32];
	bool refused; /* at once: told to the writer */
	bool running; /* cube_verb_start's caller is still on the stack */
};

/* "done VERB ok" in `status`: the last lines that fit. */
static void behind_note(struct cube_buf *done, const char *line, size_t len)
{
	while (done->len + len > done->max && done->len > 0) {
		const char *end = memchr(done->data, '\n', done->len);

		cube_buf_drop(done, end != NULL ? (size_t)(end + 1 - done->data) : done->len);
	}
	(void)cube_buf_add(done, line, len); /* a line is far below the ceiling */
}

static void behind_report(struct verb_behind *b, int code)
{
	struct cube_verb_call *call = &b->call;
	struct cube_cube *c = object_cube(call->scope, call->object);
	char line[CUBE_ERR_TEXT + 64];
	int n;

	if (code < 0)
		n = snprintf(line, sizeof(line), "done %s %s %s\n", b->name, cube_errno_name(code),
			     call->err.text);
	else
		n = snprintf(line, sizeof(line), "done %s ok\n", b->name);
	if (n > 0)
		behind_note(object_done(call->domain, call->scope, call->object), line,
			    (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	cube_event(call->domain->events, c != NULL ? c->name : NULL, "verb", "%s %s%s%s", b->name,
		   code < 0 ? cube_errno_name(code) : "ok", code < 0 ? " " : "",
		   code < 0 ? call->err.text : "");
	if (code < 0)
		cube_errlog_add(c != NULL ? c->errors : call->domain->errors, &call->by, b->name, &call->err);
}

static void behind_done(struct cube_verb_call *call, int code)
{
	struct verb_behind *b = cube_container_of(call, struct verb_behind, call);

	if (b->running) {
		b->refused = code < 0;
		if (b->refused)
			return;
	}
	behind_report(b, code);
	if (b->running)
		return;
	object_unref(call->scope, call->object);
	cube_free(b);
}

/* The words go over to a call of its own; the writer's is answered when it was accepted. */
static void verb_behind(struct cube_verb_call *call)
{
	struct verb_behind *b = cube_calloc(1, sizeof(*b));
	bool ended, refused;

	if (b == NULL) {
		cube_verb_finish(call, -ENOMEM);
		return;
	}
	b->call = (struct cube_verb_call){.domain = call->domain,
					  .scope = call->scope,
					  .object = call->object,
					  .by = call->by,
					  .done = behind_done,
					  .words = cube_steal(call->words),
					  .n_words = call->n_words,
					  .verb = call->verb};
	cube_list_init(&b->call.waiter.link);
	(void)snprintf(b->name, sizeof(b->name), "%s", call->verb->name);
	object_ref(call->scope, call->object);
	b->running = true;
	verb_run(&b->call);
	b->running = false;
	ended = b->call.finished;
	refused = b->refused;
	if (refused)
		call->err = b->call.err;
	if (ended) {
		object_unref(call->scope, b->call.object);
		cube_free(b);
	}
	cube_verb_finish(call, refused ? call->err.code : 0);
}

/* A last word `&` that is no quoted one. */
static bool verb_take_behind(struct cube_verb_call *call, const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (call->n_words < 2 || len < 2 || line[len - 1] != '&' ||
	    (line[len - 2] != ' ' && line[len - 2] != '\t') ||
	    strcmp(call->words[call->n_words - 1], "&") != 0)
		return false;
	call->words[--call->n_words] = NULL;
	return true;
}

void cube_verb_start(struct cube_verb_call *call, const char *line, size_t len)
{
	bool behind;
	int r;

	call->finished = false;
	call->err = (struct cube_err){0};
	call->answer[0] = '\0';
	call->words = NULL;
	call->n_words = 0;
	call->verb = NULL;
	call->state = NULL;
	call->cancel = NULL;
	cube_list_init(&call->waiter.link);
	r = cube_words_split(line, len, &call->words, &call->n_words, &call->err);
	if (r < 0 || call->n_words == 0) {
		cube_verb_finish(call, r < 0 ? r : 0);
		return;
	}
	behind = verb_take_behind(call, line, len);
	r = verb_check(call);
	if (r < 0)
		cube_verb_finish(call, r);
	else if (behind)
		verb_behind(call);
	else
		verb_run(call);
}

int cube_verb_once(struct cube_verb_call *call, struct cube_err *err)
{
	if (call->noted != 0)
		return cube_fail(
			err, -EIO,
			"%s: the worker ended at this very moment: whether it was done cannot be told; "
			"look, and say it again if it was not",
			call->verb->name);
	if (call->note != NULL)
		call->note(call, 1);
	return 0;
}

void cube_verb_cancel(struct cube_verb_call *call)
{
	if (call->finished)
		return;
	if (call->cancel != NULL)
		call->cancel(call);
	if (call->finished)
		return;
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted", call->verb->name);
	cube_verb_finish(call, -EINTR);
}

/* ---- Usage ---- */

int cube_verb_usage(enum cube_scope scope, void *object, struct cube_buf *out)
{
	const struct cube_backend *b = object != NULL ? object_backend(scope, object) : NULL;
	const struct cube_cube *c = object != NULL ? object_cube(scope, object) : NULL;

	for (const struct cube_verb *const *i = cube_verbs(scope); *i != NULL; i++) {
		const struct cube_verb *v = *i;
		int width;

		if ((b != NULL && (v->needs & b->caps) != v->needs) ||
		    (c != NULL && v->phases != 0 && !(v->phases & (1u << c->phase))))
			continue;
		width = 34 - (int)strlen(v->name) - (v->args[0] != '\0' ? 1 : 0);
		cube_buf_printf(out, "%s%s%-*s  %s\n", v->name, v->args[0] != '\0' ? " " : "",
				width > 0 ? width : 0, v->args, v->summary);
	}
	return out->error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: the queue of commands behind a shell, what the shell reports, what a write sets for the next
 * command. */
#include "ctl/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/exports.h"

#define SESSION_EXPORTS_MAX ((size_t)4 << 20)

/* ---- The object ---- */

struct cube_session *cube_session_new(struct cube_cube *c, const char *name, uint64_t number)
{
	struct cube_session_own *own = cube_calloc(1, sizeof(*own));

	if (own == NULL)
		return NULL;
	own->s.refs = 1;
	own->s.cube = c;
	own->s.number = number;
	own->s.seq = number;
	own->s.name = cube_strdup(name);
	if (own->s.name == NULL) {
		cube_free(own);
		return NULL;
	}
	cube_list_init(&own->s.queue);
	cube_waitq_init(&own->s.changed);
	cube_buf_init(&own->s.exports, SESSION_EXPORTS_MAX);
	cube_buf_init(&own->s.env_set, CUBE_ENV_MAX);
	cube_list_push(&c->sessions, &own->s.link);
	return &own->s;
}

struct cube_session *cube_session_ref(struct cube_session *s)
{
	s->refs++;
	return s;
}

void cube_session_unref(struct cube_session *s)
{
	struct cube_session_own *own;

	if (s == NULL || --s->refs > 0)
		return;
	own = cube_session_own(s);
	cube_env_text_unref(own->env_base);
	cube_free(own->new_cwd);
	cube_buf_done(&s->exports);
	cube_buf_done(&s->env_set);
	cube_free(s->cwd);
	cube_free(s->user);
	cube_free(s->name);
	cube_free(own);
}

void cube_session_delist(struct cube_session *s)
{
	struct cube_job *latest = s->latest;

	cube_list_remove(&s->link);
	s->removed = true;
	s->latest = NULL;
	while (!cube_list_empty(&s->queue))
		cube_list_remove(s->queue.next);
	cube_job_unref(latest);
	cube_session_unref(s);
}

struct cube_session *cube_session_find(struct cube_cube *c, const char *name)
{
	cube_list_each (i, &c->sessions) {
		struct cube_session *s = cube_list_entry(i, struct cube_session, link);

		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

struct cube_session *cube_session_next(struct cube_cube *c, uint64_t seq)
{
	cube_list_each (i, &c->sessions) {
		struct cube_session *s = cube_list_entry(i, struct cube_session, link);

		if (s->seq > seq)
			return s;
	}
	return NULL;
}

struct cube_session *cube_session_main(struct cube_cube *c)
{
	return cube_list_entry(c->sessions.next, struct cube_session, link);
}

struct cube_session *cube_session_by_number(struct cube_cube *c, uint64_t number)
{
	cube_list_each (i, &c->sessions) {
		struct cube_session *s = cube_list_entry(i, struct cube_session, link);

		if (s->number == number)
			return s;
	}
	return NULL;
}

static void session_entry_changed(struct cube_session *s)
{
	const struct cube_domain_watcher *w = &s->cube->domain->watcher;

	if (w->entry_changed != NULL)
		w->entry_changed(w->ctx, s->cube, "sessions", s->name);
}

static void session_file(const struct cube_session *s, char out[40])
{
	(void)snprintf(out, 40, "jobs/session.%llu", (unsigned long long)s->number);
}

/* ---- mkdir, rmdir ---- */

static int session_check_name(struct cube_cube *c, const char *name, struct cube_err *err)
{
	if (!cube_name_entry_ok(name))
		return cube_fail(err, -EINVAL, "no name for a session: 1 to %d bytes, no /", CUBE_ENTRY_MAX);
	if (strcmp(name, "clone") == 0 || strcmp(name, "last") == 0)
		return cube_fail(err, -EINVAL, "'%s' is no name for a session: it is taken", name);
	if (cube_session_find(c, name) != NULL)
		return cube_fail(err, -EEXIST, "sandbox '%s' has a session '%s' already", c->name, name);
	return 0;
}

int cube_session_create(struct cube_cube *c, const char *name, struct cube_session **ret,
			struct cube_err *err)
{
	struct cube_session *s;
	int r = session_check_name(c, name, err);

	if (r == 0)
		r = cube_cube_usable(c, false, err);
	if (r < 0)
		return r;
	s = cube_session_new(c, name, cube_own(c)->next_session);
	if (s == NULL)
		return cube_fail(err, -ENOMEM, "session '%s': out of memory", name);
	cube_own(c)->next_session++;
	r = cube_state_save(c, err);
	if (r < 0) {
		cube_session_delist(s);
		return r;
	}
	session_entry_changed(s);
	*ret = s;
	return 0;
}

/* Everything in its queue ends; who waits for it is released. */
static void session_end_commands(struct cube_session *s, const struct cube_err *why)
{
	while (!cube_list_empty(&s->queue)) {
		struct cube_job *j = cube_list_entry(s->queue.next, struct cube_job, in_session);

		cube_job_ref(j);
		cube_job_end_without(j, CUBE_END_KILLED, 9, why);
		cube_job_unref(j);
	}
	cube_jobs_settle(s->cube);
}

int cube_session_remove(struct cube_session *s, struct cube_err *err)
{
	static const struct cube_err ended = {.text = "its session was removed"};
	struct cube_cube *c = s->cube;

	if (s == cube_session_main(c))
		return cube_fail(
			err, -EBUSY,
			"the main session belongs to the sandbox; `reset` in its ctl makes a fresh shell");
	if (s->removed)
		return cube_fail(err, -ENOENT, "session '%s' is removed already", s->name);
	s->removed = true; /* nothing of its queue starts any more */
	session_end_commands(s, &ended);
	if (c->agent != NULL && s->open)
		cube_link_session_close(c->agent, s->number, false);
	cube_wake(&s->changed);
	cube_session_ref(s);
	cube_session_delist(s);
	session_entry_changed(s); /* news of a name that went: it must be gone */
	if (cube_state_save(c, NULL) < 0)
		cube_log(CUBE_LOG_WARNING, "ctl", "sandbox '%s': the end of session '%s' is not on disk",
			 c->name, s->name);
	cube_session_unref(s);
	return 0;
}

/* ---- Commands ---- */

int cube_session_run(struct cube_session *s, const char *text, size_t len, struct cube_job **ret,
		     struct cube_err *err)
{
	struct cube_job *j;

	if (s->removed)
		return cube_fail(err, -ENOENT, "session '%s' is removed", s->name);
	int r = cube_job_check_text(false, text, len, err);
	if (r == 0)
		r = cube_cube_usable(s->cube, true, err);
	if (r < 0)
		return r;
	j = cube_job_new(s->cube, NULL, s->cube->next_job, false);
	if (j == NULL)
		return cube_fail(err, -ENOMEM, "session '%s': out of memory", s->name);
	s->cube->next_job++;
	j->of_exec = true;
	j->merge = true;
	j->session = cube_session_ref(s);
	r = cube_job_submit(j, false, text, len, err);
	if (r < 0) {
		cube_job_forget(j);
		return r;
	}
	*ret = cube_job_ref(j);
	return 0;
}

void cube_session_show(struct cube_session *s, struct cube_job *j)
{
	struct cube_job *old = s->latest;

	if (old == j)
		return;
	s->latest = cube_job_ref(j);
	cube_job_unref(old);
	cube_wake(&s->changed);
}

void cube_session_kick(struct cube_session *s)
{
	if (!cube_list_empty(&s->queue))
		cube_job_try(cube_list_entry(s->queue.next, struct cube_job, in_session));
}

void cube_session_dequeue(struct cube_job *j)
{
	struct cube_session *s = j->session;
	bool was_first = s->queue.next == &j->in_session;

	cube_list_remove(&j->in_session);
	/* It never ran, and nothing else did: the first that waits is the one to show. */
	if (s->latest == j && j->started_wall == 0 && !cube_list_empty(&s->queue))
		cube_session_show(s, cube_list_entry(s->queue.next, struct cube_job, in_session));
	if (was_first)
		cube_session_kick(s);
}

int cube_session_reset(struct cube_session *s, struct cube_err *err)
{
	struct cube_cube *c = s->cube;

	if (!s->open)
		return 0; /* the next command finds a fresh shell anyway */
	if (c->agent == NULL)
		return cube_fail(err, -EHOSTDOWN, "reset: the agent of sandbox '%s' is not connected",
				 c->name);
	cube_link_session_close(c->agent, s->number, true);
	return 0;
}

int cube_session_kill(struct cube_session *s, int sig, struct cube_err *err)
{
	if (cube_list_empty(&s->queue))
		return 0; /* nothing runs: as for a job that has ended */
	return cube_job_kill(cube_list_entry(s->queue.next, struct cube_job, in_session), sig, err);
}

void cube_session_anew(struct cube_session *s)
{
	char file[40];

	if (s->exports.len > 0 && s->cube->dir_fd >= 0) {
		session_file(s, file);
		(void)unlinkat(s->cube->dir_fd, file, 0);
	}
	s->open = false;
	cube_session_own(s)->boot = 0;
	cube_env_text_unref(cube_steal(cube_session_own(s)->env_base));
	cube_free(cube_steal(s->cwd));
	cube_buf_done(&s->exports);
	cube_buf_done(&s->env_set);
}

void cube_cube_sessions_anew(struct cube_cube *c)
{
	cube_list_each (i, &c->sessions)
		cube_session_anew(cube_list_entry(i, struct cube_session, link));
}

/* ---- What the shell reports ---- */

/* So that `env` tells the truth after the daemon's death as well. */
static void session_keep_exports(struct cube_session *s)
{
	char name[40];

	session_file(s, name);
	(void)cube_state_replace(s->cube->dir_fd, name, s->exports.data, s->exports.len);
}

void cube_session_load_exports(struct cube_session *s)
{
	char name[40];

	session_file(s, name);
	if (cube_file_read(s->cube->dir_fd, name, &s->exports) < 0)
		cube_buf_done(&s->exports);
}

void cube_session_news(struct cube_session *s, const struct cube_link_session *n)
{
	if (n->cwd != NULL && (s->cwd == NULL || strcmp(s->cwd, n->cwd) != 0)) {
		char *cwd = cube_strdup(n->cwd);

		if (cwd != NULL) {
			cube_free(s->cwd);
			s->cwd = cwd;
			cube_journal_session(s);
		}
	}
	if (n->exports == NULL || (n->exports_len == s->exports.len &&
				   memcmp(n->exports, cube_buf_str(&s->exports), n->exports_len) == 0))
		return;
	cube_buf_reset(&s->exports);
	if (cube_buf_add(&s->exports, n->exports, n->exports_len) < 0)
		cube_buf_done(&s->exports);
	else
		session_keep_exports(s);
}

/* ---- What is set from outside ---- */

/* NUL separated: what the shell has exported, as far as it is known, with what a write has changed since. */
static int session_env_now(struct cube_session *s, struct cube_buf *out)
{
	struct cube_buf base = CUBE_BUF(SESSION_EXPORTS_MAX);
	int r = s->exports.len > 0 ? cube_exports_parse(s->exports.data, s->exports.len, &base)
				   : cube_buf_add(&base, cube_own(s->cube)->env_text->data,
						  cube_own(s->cube)->env_text->len);

	if (r == 0)
		r = cube_env_apply(cube_buf_str(&base), base.len, cube_buf_str(&s->env_set), s->env_set.len,
				   out);
	cube_buf_done(&base);
	return r;
}

int cube_session_env(struct cube_session *s, struct cube_buf *out)
{
	struct cube_buf env = CUBE_BUF(SESSION_EXPORTS_MAX);
	int r = session_env_now(s, &env);

	if (r == 0)
		r = cube_env_lines(cube_buf_str(&env), env.len, out);
	cube_buf_done(&env);
	return r;
}

int cube_session_set_env(struct cube_session *s, const char *env, size_t len, struct cube_err *err)
{
	struct cube_buf now = CUBE_BUF(SESSION_EXPORTS_MAX), changes = CUBE_BUF(CUBE_ENV_MAX),
			all = CUBE_BUF(CUBE_ENV_MAX);
	int r = session_env_now(s, &now);

	if (r == 0)
		r = cube_env_diff(cube_buf_str(&now), now.len, env, len, &changes);
	if (r == 0)
		r = cube_env_merge(&s->env_set, &changes, &all);
	if (r == 0) {
		cube_buf_done(&s->env_set);
		s->env_set = all;
		r = cube_state_save(s->cube, NULL);
	} else
		cube_buf_done(&all);
	cube_buf_done(&now);
	cube_buf_done(&changes);
	return r < 0 ? cube_fail(err, r == -EMSGSIZE ? -EFBIG : r, "session '%s': the environment: %s",
				 s->name, r == -EMSGSIZE ? "too large" : cube_errno_text(r))
		     : 0;
}

int cube_session_set_cwd(struct cube_session *s, const char *cwd, struct cube_err *err)
{
	if (cwd[0] != '/' || strlen(cwd) >= 4096 || strchr(cwd, '\n') != NULL)
		return cube_fail(err, -EINVAL, "session '%s': a directory is an absolute path on one line",
				 s->name);
	cube_auto_str shown = cube_strdup(cwd);
	cube_auto_str sent = cube_strdup(cwd);
	if (shown == NULL || sent == NULL)
		return cube_fail(err, -ENOMEM, "session '%s': out of memory", s->name);
	cube_free(s->cwd);
	cube_free(cube_session_own(s)->new_cwd);
	s->cwd = cube_steal(shown);
	cube_session_own(s)->new_cwd = cube_steal(sent);
	return cube_state_save(s->cube, err);
}

int cube_user_check(const char *user, struct cube_err *err)
{
	size_t len = strlen(user);

	if (len == 0 || len > 64 ||
	    strspn(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:$") != len ||
	    user[0] == '-' || user[0] == ':')
		return cube_fail(err, -EINVAL, "a user is NAME, UID or UID:GID");
	return 0;
}

int cube_session_set_user(struct cube_session *s, const char *user, struct cube_err *err)
{
	if (cube_session_own(s)->begun)
		return cube_fail(err, -EBUSY,
				 "session '%s' has run a command: its user is fixed; open another session",
				 s->name);
	int r = cube_user_check(user, err);
	if (r == 0)
		r = cube_backend_need(s->cube->service->backend, CUBE_CAP_USERS, err);
	if (r < 0)
		return r;
	cube_auto_str copy = cube_strdup(user);
	if (copy == NULL)
		return cube_fail(err, -ENOMEM, "session '%s': out of memory", s->name);

	char *old = s->user;

	s->user = copy;
	r = cube_state_save(s->cube, err);
	if (r < 0) {
		s->user = old;
		return r;
	}
	copy = old;
	return 0;
}

int cube_session_set(struct cube_session *s, const char *key, const char *value, struct cube_err *err)
{
	uint32_t *field = strcmp(key, "patience") == 0  ? &s->patience_s
			  : strcmp(key, "timeout") == 0 ? &s->timeout_s
							: NULL;
	uint64_t n;

	if (field == NULL)
		return cube_fail(err, -EINVAL, "no setting '%s' of a session; known: patience, timeout", key);
	if (cube_num_u64(value, UINT32_MAX / 1000, &n) < 0)
		return cube_fail(err, -EINVAL, "%s=%s: seconds, 0 for ever", key, value);

	uint32_t old = *field;

	*field = (uint32_t)n;
	int r = cube_state_save(s->cube, err);
	if (r < 0)
		*field = old;
	return r;
}

/* ---- What a start brings along ---- */

/* A shell that lives: what has changed since its last command. A new one: everything. */
int cube_session_start_env(struct cube_session *s, struct cube_buf *out)
{
	const struct cube_env_text *base = cube_session_own(s)->env_base;
	const struct cube_env_text *env = cube_own(s->cube)->env_text;
	struct cube_buf changes = CUBE_BUF(CUBE_ENV_MAX);
	int r = 0;

	if (!s->open)
		return cube_env_apply(env->data, env->len, cube_buf_str(&s->env_set), s->env_set.len, out);
	if (s->env_seen == s->cube->env_version && s->env_set.len == 0)
		return 0;
	if (s->env_seen != s->cube->env_version)
		r = cube_env_diff(base != NULL ? base->data : "", base != NULL ? base->len : 0, env->data,
				  env->len, &changes);
	if (r == 0)
		r = cube_env_merge(&changes, &s->env_set, out);
	cube_buf_done(&changes);
	return r;
}

void cube_session_started(struct cube_session *s)
{
	struct cube_session_own *own = cube_session_own(s);
	struct cube_own *cube = cube_own(s->cube);
	bool news = own->boot != cube->boot || s->env_seen != s->cube->env_version;
	bool written = s->env_set.len > 0 || own->new_cwd != NULL || !own->begun;

	s->open = true;
	own->begun = true;
	own->boot = cube->boot;
	if (own->env_base != cube->env_text) {
		cube_env_text_unref(own->env_base);
		own->env_base = cube_env_text_ref(cube->env_text);
	}
	s->env_seen = s->cube->env_version;
	cube_buf_done(&s->env_set);
	cube_free(cube_steal(own->new_cwd));
	if (news)
		cube_journal_session(s);
	if (written) /* else what was written for one command would be said again after a recovery */
		(void)cube_state_save(s->cube, NULL);
}

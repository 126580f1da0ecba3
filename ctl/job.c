/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the objects and their names, the text of the command, what is forgotten. */
#include "ctl/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/name.h"
#include "ctl/ctl_priv.h"

/* ---- The object ---- */

static struct cube_job *job_alloc(struct cube_cube *c, const char *name, uint64_t number)
{
	struct cube_job_own *own = cube_calloc(1, sizeof(*own));
	struct cube_job *j;

	if (own == NULL)
		return NULL;
	j = &own->j;
	j->refs = 1;
	j->cube = c;
	j->number = number;
	j->seq = number;
	j->name = name != NULL ? cube_strdup(name) : cube_asprintf("%llu", (unsigned long long)number);
	cube_list_init(&j->link);
	cube_list_init(&j->in_session);
	cube_list_init(&own->in_ended);
	cube_waitq_init(&j->changed);
	cube_buf_init(&j->env, CUBE_ENV_MAX);
	own->slot = CUBE_NO_SLOT;
	own->in_fd = -1;
	if (j->name == NULL) {
		cube_free(own);
		return NULL;
	}
	return j;
}

static void job_entry_changed(struct cube_job *j, const char *name)
{
	const struct cube_domain_watcher *w = &j->cube->domain->watcher;

	if (w->entry_changed != NULL)
		w->entry_changed(w->ctx, j->cube, "jobs", name);
}

struct cube_job *cube_job_new(struct cube_cube *c, const char *name, uint64_t number, bool named)
{
	struct cube_job *j = job_alloc(c, name, number);

	if (j == NULL)
		return NULL;
	if (cube_map_put(c->jobs_by_name, j->name, j) < 0) {
		cube_job_unref(j);
		return NULL;
	}
	if (cube_job_index_add(&cube_own(c)->index, j) < 0) {
		(void)cube_map_take(c->jobs_by_name, j->name);
		cube_job_unref(j);
		return NULL;
	}
	j->named = named;
	j->created_wall = cube_clock_wall();
	cube_list_push(&c->jobs, &j->link);
	cube_job_unref(c->last_job);
	c->last_job = cube_job_ref(j);
	job_entry_changed(j, j->name);
	job_entry_changed(j, "last");
	cube_wake(&c->job_added);
	return j;
}

struct cube_job *cube_job_ref(struct cube_job *j)
{
	j->refs++;
	return j;
}

void cube_job_unref(struct cube_job *j)
{
	struct cube_job_own *own;

	if (j == NULL || --j->refs > 0)
		return;
	own = cube_job_own(j);
	cube_session_unref(j->session);
	cube_output_unref(j->output);
	cube_close_auto(&own->in_fd);
	cube_buf_done(&j->env);
	cube_free(own->text);
	cube_free(j->cwd);
	cube_free(j->user);
	cube_free(j->name);
	cube_free(own);
}

struct cube_job *cube_job_find(struct cube_cube *c, const char *name)
{
	return cube_map_get(c->jobs_by_name, name);
}

/* ---- mkdir, rmdir ---- */

static int job_check_name(struct cube_cube *c, const char *name, struct cube_err *err)
{
	if (!cube_name_entry_ok(name))
		return cube_fail(err, -EINVAL, "no name for a job: 1 to %d bytes, no /", CUBE_ENTRY_MAX);
	if (strcmp(name, "last") == 0 || strcmp(name, "clone") == 0)
		return cube_fail(err, -EINVAL, "'%s' is no name for a job: it is taken", name);
	if (name[strspn(name, "0123456789")] == '\0')
		return cube_fail(err, -EINVAL,
				 "'%s' is no name for a job: numbers are given by cubefs (jobs/clone)", name);
	if (cube_job_find(c, name) != NULL)
		return cube_fail(err, -EEXIST, "sandbox '%s' has a job '%s' already", c->name, name);
	return 0;
}

int cube_job_create(struct cube_cube *c, const char *name, struct cube_job **ret, struct cube_err *err)
{
	struct cube_job *j;
	int r = name != NULL ? job_check_name(c, name, err) : 0;

	if (r == 0 && (c->domain->closing || c->phase == CUBE_REMOVED))
		r = cube_cube_usable(c, false, err);
	if (r == 0)
		r = cube_backend_need(c->service->backend, CUBE_CAP_EXEC, err);
	if (r < 0)
		return r;
	j = cube_job_new(c, name, c->next_job, name != NULL);
	if (j == NULL)
		return cube_fail(err, -ENOMEM, "a new job: out of memory");
	c->next_job++;
	cube_journal_job(j);
	r = cube_journal_flush(c, err);
	if (r < 0) {
		cube_job_unlist(j);
		return r;
	}
	*ret = cube_job_ref(j);
	return 0;
}

void cube_job_unlist(struct cube_job *j)
{
	struct cube_cube *c = j->cube;

	(void)cube_map_take(c->jobs_by_name, j->name);
	cube_job_index_take(&cube_own(c)->index, j);
	cube_job_ended_take(j);
	cube_list_remove(&j->link);
	if (c->last_job == j) {
		c->last_job = NULL;
		if (!cube_list_empty(&c->jobs))
			c->last_job = cube_job_ref(cube_list_entry(c->jobs.prev, struct cube_job, link));
		job_entry_changed(j, "last");
		cube_job_unref(j);
	}
	j->forgotten = true;
	job_entry_changed(j, j->name);
	cube_job_unref(j);
}

void cube_job_forget(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	char file[32];

	if (j->forgotten)
		return;
	cube_journal_gone(j);
	cube_output_release(j);
	if (own->text_on_disk && cube_job_text_file(j, file) == 0)
		(void)unlinkat(j->cube->dir_fd, file, 0);
	if (own->in_size > 0) {
		cube_job_input_file(j, file);
		(void)unlinkat(j->cube->dir_fd, file, 0);
	}
	cube_wake(&j->changed);
	cube_job_unlist(j);
}

int cube_job_remove(struct cube_job *j, struct cube_err *err)
{
	static const struct cube_err removed = {.text = "it was removed"};
	struct cube_cube *c = j->cube;

	if (j->forgotten)
		return cube_fail(err, -ENOENT, "job '%s' is removed already", j->name);
	cube_job_ref(j);
	if (j->state == CUBE_JOB_RUNNING && c->agent != NULL)
		cube_link_kill(c->agent, j->number, 9);
	if (j->state == CUBE_JOB_RUNNING || j->state == CUBE_JOB_WAITING)
		cube_job_end_without(j, CUBE_END_KILLED, 9, &removed);
	cube_job_settle(j);
	cube_job_forget(j);
	int r = cube_journal_flush(c, err);
	cube_job_unref(j);
	return r;
}

/* What a session's `exec` shows is still needed. */
static bool job_can_go(const struct cube_job *j)
{
	return j->session == NULL || j->session->latest != j;
}

/* Output of the oldest ended ones is given up until the sandbox is below its limit. */
static void jobs_trim_spool(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		if (own->spool_bytes <= c->domain->spool_limit)
			return;
		if (j->state != CUBE_JOB_ENDED || cube_job_own(j)->slot == CUBE_NO_SLOT)
			continue;
		cube_output_release(j);
		cube_job_own(j)->spool_dropped = true;
		cube_journal_job(j);
		cube_journal_end(j);
		cube_wake(&j->changed);
	}
}

void cube_jobs_trim(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (own->spool_bytes > c->domain->spool_limit)
		jobs_trim_spool(c);
	cube_list_each (i, &own->ended) {
		struct cube_job *j = cube_job_of_ended(i);

		if (own->ended_numbered <= c->domain->jobs_kept)
			return;
		if (job_can_go(j) && !cube_job_own(j)->unsettled)
			cube_job_forget(j);
	}
}

int cube_job_keep(struct cube_job *j, struct cube_err *err)
{
	if (j->state == CUBE_JOB_ENDED || j->forgotten)
		return 0;
	cube_journal_job(j);
	return cube_journal_flush(j->cube, err);
}

/* ---- The text ---- */

int cube_job_text_file(const struct cube_job *j, char out[32])
{
	int n = snprintf(out, 32, "jobs/cmd.%llu", (unsigned long long)j->number);

	return n < 32 ? 0 : -ENAMETOOLONG;
}

int cube_job_check_text(bool argv, const char *text, size_t len, struct cube_err *err)
{
	if (len > CUBE_TEXT_MAX)
		return cube_fail(err, -EFBIG, "a command of %zu bytes: at most %llu", len,
				 (unsigned long long)CUBE_TEXT_MAX);
	if (argv) {
		if (len == 0 || text[0] == '\0')
			return cube_fail(err, -EINVAL,
					 "argv: the first word names the program and cannot be empty");
		return 0;
	}
	if (len > 0 && memchr(text, '\0', len) != NULL)
		return cube_fail(err, -EINVAL,
				 "a command with a NUL byte in it cannot reach a shell; argv takes words "
				 "separated by NUL");
	return 0;
}

int cube_job_text(struct cube_job *j, bool argv, struct cube_buf *out)
{
	const struct cube_job_own *own = cube_job_own(j);
	char file[32];

	if (j->argv != argv || j->state == CUBE_JOB_NEW)
		return 0;
	if (!own->text_on_disk)
		return cube_buf_add(out, own->text != NULL ? own->text : "",
				    own->text != NULL ? own->text_len : 0);
	int r = cube_job_text_file(j, file);
	return r < 0 ? r : cube_file_read(j->cube->dir_fd, file, out);
}

/* Long ones are on disk from the start; none is in memory longer than it takes to send it. */
static int job_keep_text(struct cube_job *j, const char *text, size_t len)
{
	struct cube_job_own *own = cube_job_own(j);
	char file[32];

	if (len <= CUBE_TEXT_INLINE) {
		own->text = cube_malloc(len + 1);
		if (own->text == NULL)
			return -ENOMEM;
		if (len > 0)
			memcpy(own->text, text, len);
		own->text[len] = '\0';
		own->text_len = len;
		return 0;
	}
	int r = cube_job_text_file(j, file);
	if (r == 0)
		r = cube_output_dir(j->cube);
	if (r == 0)
		r = cube_state_replace(j->cube->dir_fd, file, text, len);
	own->text_on_disk = r == 0;
	return r;
}

static void job_drop_text(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	char file[32];

	if (own->text_on_disk && cube_job_text_file(j, file) == 0)
		(void)unlinkat(j->cube->dir_fd, file, 0);
	cube_free(cube_steal(own->text));
	own->text_on_disk = false;
}

/* ---- The command ---- */

/* It starts at once (and is in the journal then) or is kept for later. */
static int job_accept(struct cube_job *j, const char *text, size_t len, struct cube_err *err)
{
	int r = 0;

	j->state = CUBE_JOB_WAITING;
	if (j->session != NULL) {
		cube_list_push(&j->session->queue, &j->in_session);
		if (j->of_exec && j->session->latest == NULL)
			cube_session_show(j->session, j);
	}
	cube_job_start(j, text, len);
	if (j->state == CUBE_JOB_WAITING) {
		cube_journal_job(j);
		r = cube_journal_flush(j->cube, err);
	}
	if (r < 0) {
		j->state = CUBE_JOB_NEW;
		if (j->session != NULL)
			cube_session_dequeue(j);
	}
	return r;
}

int cube_job_submit(struct cube_job *j, bool argv, const char *text, size_t len, struct cube_err *err)
{
	int r;

	if (j->state != CUBE_JOB_NEW)
		return cube_fail(err, -EBUSY, "job '%s' has its command; a job runs once", j->name);
	if (j->forgotten || (j->session != NULL && j->session->removed))
		return cube_fail(err, -ENOENT, "job '%s' %s removed", j->name,
				 j->forgotten ? "is" : "has a session that is");
	r = cube_job_check_text(argv, text, len, err);
	if (r == 0 && argv && j->session != NULL)
		r = cube_fail(err, -EINVAL,
			      "job '%s' runs in a session, which takes text for its shell: write to cmd",
			      j->name);
	if (r == 0 && j->user != NULL && j->user[0] != '\0')
		r = cube_backend_need(j->cube->service->backend, CUBE_CAP_USERS, err);
	if (r == 0)
		r = cube_cube_usable(j->cube, true, err);
	if (r < 0)
		return r;
	r = job_keep_text(j, text, len);
	if (r < 0)
		return cube_fail(err, r, "job '%s': its command: %s", j->name, cube_errno_text(r));
	j->argv = argv;
	r = job_accept(j, text, len, err);
	if (r < 0 && j->state == CUBE_JOB_NEW)
		job_drop_text(j);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a sandbox: birth and death in memory, its directory on disk, its name. */
#include "ctl/cube.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/stock_priv.h"
#include "ctl/transcript.h"
#include "ctl/transfer.h"
#include "ctl/volume_priv.h"

/* What stands beside the sandboxes in the root, now or later (interface.md). */
static const char *const reserved_names[] = {
	"README", "ctl", "list", "clone",   "events", "error",  "backends", "volumes", "secrets",   "chat",
	"help",   "log", "logs", "metrics", "jobs",   "doctor", "pools",    "plugins", "sandboxes",
};

static const char *const phase_names[] = {
	[CUBE_CREATING] = "creating", [CUBE_RUNNING] = "running", [CUBE_PAUSED] = "paused",
	[CUBE_STOPPED] = "stopped",   [CUBE_ERROR] = "error",     [CUBE_REMOVED] = "removed",
};

const char *cube_cube_template(const struct cube_cube *c)
{
	return c->template != NULL ? c->template : c->service->backend->template;
}

const char *cube_phase_name(enum cube_phase p)
{
	return phase_names[p];
}

/* ---- The object ---- */

static void cube_destroy_again(struct cube_alarm *a)
{
	struct cube_own *own = cube_container_of(a, struct cube_own, destroy_again);

	if (!own->c.domain->closing)
		(void)cube_op_begin(&own->c, CUBE_OP_DESTROY, 0, NULL, NULL);
}

static void cube_relink(struct cube_alarm *a)
{
	struct cube_own *own = cube_container_of(a, struct cube_own, relink);

	cube_cube_inspect(&own->c);
}

static void cube_init(struct cube_cube *c, struct cube_domain *d)
{
	struct cube_own *own = cube_own(c);

	c->refs = 1;
	c->domain = d;
	c->dir_fd = -1;
	c->resume = true;
	c->phase = CUBE_CREATING;
	c->next_job = 1;
	cube_list_init(&c->link);
	cube_list_init(&c->sessions);
	cube_list_init(&c->jobs);
	cube_waitq_init(&c->changed);
	cube_waitq_init(&c->job_added);
	cube_ports_init(c);
	cube_checkpoints_init(c);
	cube_metrics_init(c);
	cube_access_init(c);
	cube_buf_init(&c->env, CUBE_ENV_MAX);
	cube_buf_init(&c->done, CUBE_DONE_MAX);
	cube_buf_init(&own->env_keys, CUBE_ENV_MAX);
	cube_inside_init(&own->inside);
	cube_buf_init(&own->journal, (size_t)64 << 20);
	cube_alarm_init(&own->relink, cube_relink);
	cube_alarm_init(&own->destroy_again, cube_destroy_again);
	cube_times_init(c);
	cube_list_init(&own->template_wait.link);
	cube_list_init(&own->stock_wait.link);
	cube_list_init(&own->unsynced);
	cube_list_init(&own->ended);
	cube_list_init(&own->transfers);
	own->journal_fd = -1;
	own->written = UINT64_MAX;
	own->next_session = 1;
	own->next_slot = 1;
}

struct cube_cube *cube_cube_new(struct cube_domain *d)
{
	struct cube_own *own = cube_calloc(1, sizeof(*own));
	struct cube_cube *c;

	if (own == NULL)
		return NULL;
	c = &own->c;
	cube_init(c, d);
	c->jobs_by_name = cube_map_new();
	c->labels = cube_map_new();
	c->errors = cube_errlog_new();
	if (c->jobs_by_name == NULL || c->labels == NULL || c->errors == NULL ||
	    cube_session_new(c, "main", own->next_session++) == NULL) {
		cube_cube_unref(c);
		return NULL;
	}
	return c;
}

struct cube_cube *cube_cube_ref(struct cube_cube *c)
{
	c->refs++;
	return c;
}

static void cube_free_lists(struct cube_cube *c)
{
	while (!cube_list_empty(&c->sessions))
		cube_session_delist(cube_list_entry(c->sessions.next, struct cube_session, link));
	for (struct cube_list *i = cube_list_pop(&c->jobs); i != NULL; i = cube_list_pop(&c->jobs)) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		cube_output_unref(j->output);
		j->output = NULL;
		cube_job_unref(j);
	}
	cube_job_unref(c->last_job);
}

static void cube_free_keys(struct cube_own *own)
{
	for (size_t i = 0; i < own->n_extra; i++) {
		cube_free((void *)(uintptr_t)own->extra[i].key);
		cube_free((void *)(uintptr_t)own->extra[i].value);
	}
	cube_free(own->extra);
	cube_use_free(&own->c);
	cube_checkpoint_unref(own->from);
	cube_binds_free(&own->binds);
	cube_transfers_free(&own->c);
	cube_buf_done(&own->env_keys);
	cube_inside_done(&own->inside);
	cube_env_text_unref(own->env_text);
	cube_labels_free(own->c.labels);
}

void cube_cube_unref(struct cube_cube *c)
{
	struct cube_own *own;

	if (c == NULL || --c->refs > 0)
		return;
	own = cube_own(c);
	cube_alarm_off(&own->relink);
	cube_alarm_off(&own->destroy_again);
	cube_alarm_off(&own->due);
	cube_wait_remove(&own->template_wait);
	cube_wait_remove(&own->stock_wait);
	cube_ports_free(c);
	cube_checkpoints_free(c);
	cube_metrics_close(c);
	cube_buf_done(&c->access.text);
	cube_free_lists(c);
	cube_free_keys(own);
	cube_map_free(c->jobs_by_name);
	cube_job_index_free(&own->index);
	cube_errlog_free(c->errors);
	cube_transcript_close(c->log);
	cube_output_unref(own->spare);
	cube_free(own->free_slots);
	cube_close_auto(&own->journal_fd);
	cube_close_auto(&c->dir_fd);
	cube_buf_done(&own->journal);
	cube_buf_done(&c->env);
	cube_buf_done(&c->done);
	cube_free(c->name);
	cube_free(c->id);
	cube_free(c->template);
	cube_free(c->pool);
	cube_free(c->parent);
	cube_free(c->adopted);
	cube_free(own);
}

/* ---- Tables ---- */

int cube_cube_enlist(struct cube_cube *c, struct cube_err *err)
{
	struct cube_domain *d = c->domain;
	int r = cube_map_put(d->by_name, c->name, c);

	if (r == -EEXIST)
		return cube_fail(err, -EEXIST, "a sandbox named '%s' is there already", c->name);
	if (r < 0)
		return cube_fail(err, r, "sandbox '%s': out of memory", c->name);
	c->seq = d->next_seq++;
	cube_list_push(&d->cubes, &c->link);
	if (d->watcher.cube_added != NULL)
		d->watcher.cube_added(d->watcher.ctx, c);
	cube_wake(&d->changed);
	return 0;
}

void cube_cube_delist(struct cube_cube *c)
{
	struct cube_domain *d = c->domain;

	if (cube_own(c)->stock != NULL)
		cube_stock_let_go(c);
	if (!cube_own(c)->unseen)
		(void)cube_map_take(d->by_name, c->name);
	cube_list_remove(&c->link);
	cube_list_push(&cube_domain_own(d)->dying, &c->link);
	if (cube_own(c)->unseen)
		return;
	if (d->watcher.cube_removed != NULL)
		d->watcher.cube_removed(d->watcher.ctx, c, c->name);
	cube_wake(&d->changed);
}

int cube_cube_open_log(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_transcript_open(c->dir_fd, &c->log, err);

	if (r == 0)
		cube_transcript_share(c->log, &cube_domain_own(c->domain)->logs);
	return r;
}

int cube_cube_open_dir(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_file_mkdir(cube_domain_own(c->domain)->cubes_fd, c->uid, 0700, &c->dir_fd);

	if (r < 0)
		return cube_fail(err, r, "sandbox '%s': its state directory: %s", c->name,
				 cube_errno_text(r));
	return cube_cube_open_log(c, err);
}

/* ---- State ---- */

const char *cube_cube_why(const struct cube_cube *c)
{
	if (c->phase == CUBE_ERROR && c->failure.text[0] != '\0')
		return c->failure.text;
	return strcmp(c->reason, cube_phase_name(c->phase)) == 0 ? "" : c->reason;
}

const char *cube_cube_is(const struct cube_cube *c)
{
	return c->phase == CUBE_ERROR ? "in state error" : cube_phase_name(c->phase);
}

void cube_cube_changed(struct cube_cube *c)
{
	cube_wake(&c->changed);
	cube_wake(&c->domain->changed);
}

static void cube_say_life(struct cube_cube *c)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%s%s%s\n", cube_phase_name(c->phase),
			 c->reason[0] != '\0' ? ": " : "", c->reason);

	if (n > 0 && c->log != NULL)
		cube_transcript_add(c->log, "life", line,
				    (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1, true);
}

/* The backend shows its files by another mount from now on. */
static void cube_root_anew(struct cube_cube *c, enum cube_phase from)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	if (!c->service->backend->ops->root_by_run || w->files_replaced == NULL)
		return;
	if (c->phase == CUBE_STOPPED || (c->phase == CUBE_RUNNING && from != CUBE_PAUSED))
		w->files_replaced(w->ctx, c);
}

void cube_cube_enter(struct cube_cube *c, enum cube_phase phase, const char *reason, const char *event)
{
	enum cube_phase from = c->phase;
	struct cube_err err;

	c->phase = phase;
	cube_root_anew(c, from);
	(void)snprintf(c->reason, sizeof(c->reason), "%s", reason != NULL ? reason : "");
	if (phase == CUBE_RUNNING && c->started_wall == 0)
		c->started_wall = cube_clock_wall();
	if (cube_state_save(c, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
	if (phase == CUBE_RUNNING || phase == CUBE_PAUSED)
		cube_guard_wake(c->domain);
	if (phase == CUBE_RUNNING)
		cube_metrics_begin(c->domain);
	cube_say_life(c);
	if (phase == CUBE_STOPPED || phase == CUBE_ERROR)
		cube_journal_rest(c);
	if (event != NULL)
		cube_cube_event(c, event, c->reason);
	cube_cube_changed(c);
}

void cube_cube_event(struct cube_cube *c, const char *event, const char *detail)
{
	if (!cube_own(c)->unseen)
		cube_event(c->domain->events, c->name, event, "%s", detail);
}

/* ---- Names ---- */

int cube_cube_check_name(const char *name, struct cube_err *err)
{
	if (!cube_name_ok(name))
		return cube_fail(
			err, -EINVAL,
			"'%s' is no name for a sandbox: 1 to %d of A-Z a-z 0-9 . _ -, no . or - in front",
			name, CUBE_NAME_MAX);
	for (size_t i = 0; i < CUBE_COUNT(reserved_names); i++)
		if (strcmp(name, reserved_names[i]) == 0)
			return cube_fail(err, -EINVAL,
					 "'%s' is kept for an entry of the root: choose another name", name);
	return 0;
}

void cube_cube_fresh_name(struct cube_domain *d, char out[CUBE_NAME_MAX + 1])
{
	do
		(void)snprintf(out, CUBE_NAME_MAX + 1, "sandbox-%llu",
			       (unsigned long long)++cube_domain_own(d)->fresh);
	while (cube_domain_find(d, out) != NULL);
}

/* The new name on disk, else the old one again. */
static int cube_take_name(struct cube_cube *c, char *name, struct cube_err *err)
{
	char *old = c->name;

	c->name = name;
	int r = cube_state_save(c, err);
	if (r < 0) {
		c->name = old;
		(void)cube_map_take(c->domain->by_name, name);
		return r;
	}
	(void)cube_map_take(c->domain->by_name, old);
	if (c->domain->watcher.cube_removed != NULL)
		c->domain->watcher.cube_removed(c->domain->watcher.ctx, c, old);
	if (c->domain->watcher.cube_added != NULL)
		c->domain->watcher.cube_added(c->domain->watcher.ctx, c);
	cube_free(old);
	cube_cube_changed(c);
	return 0;
}

int cube_cube_rename(struct cube_cube *c, const char *name, struct cube_err *err)
{
	int r = cube_cube_check_name(name, err);

	if (r < 0)
		return r;
	if (c->phase == CUBE_REMOVED || c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is being destroyed", c->name);
	if (strcmp(name, c->name) == 0)
		return 0;
	cube_auto_str copy = cube_strdup(name);
	r = copy == NULL ? -ENOMEM : cube_map_put(c->domain->by_name, copy, c);
	if (r == -EEXIST)
		return cube_fail(err, r, "rename '%s': a sandbox named '%s' is there already", c->name, name);
	if (r < 0)
		return cube_fail(err, r, "rename '%s': out of memory", c->name);
	r = cube_take_name(c, copy, err);
	if (r == 0)
		copy = NULL;
	return r;
}

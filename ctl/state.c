/* SPDX-License-Identifier: Apache-2.0 */
/* cube.json: what a sandbox is, replaced as a whole.
 *
 * A save is written and renamed before it returns, so that a daemon killed at any instruction has the old or
 * the new one. That needs no fsync, which would hold the domain's lock for as long as the disk likes; the
 * medium follows behind, and before a backend elsewhere is told to make something (cube_state_sync). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/bytes.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/transfer.h"
#include "ctl/volume_priv.h"

#define STATE_VERSION 1
#define STATE_MAX     ((size_t)16 << 20)
#define STATE_FILE    "cube.json"
#define STATE_OTHER   "cube.json.old"

/* ---- Files ---- */

int cube_state_replace(int dir_fd, const char *name, const void *data, size_t len)
{
	char temporary[80];
	int r;

	(void)snprintf(temporary, sizeof(temporary), "%s.new", name);
	cube_auto_fd fd =
		openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = cube_file_write_all(fd, data, len);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0);
	return r;
}

static void state_sync_file(int dir_fd, const char *name)
{
	cube_auto_fd fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0)
		(void)fsync(fd); /* an error here is one of the disk: the next write says so */
}

void cube_state_sync(int dir_fd)
{
	state_sync_file(dir_fd, STATE_FILE);
	state_sync_file(dir_fd, ".");
	state_sync_file(dir_fd, "..");
}

/* ---- Behind ---- */

/* One thread for all, a moment later: a sandbox that is made saves its state several times in that moment,
 * and a hundred of them would keep the disk busy with nothing else. The references are those of the list. */
#define SYNC_MS   1000u
#define SYNC_LAST 100u

static struct cube_cube *sync_take(struct cube_domain_own *own)
{
	struct cube_list *i = cube_list_pop(&own->unsynced);
	struct cube_own *c = i != NULL ? cube_list_entry(i, struct cube_own, unsynced) : NULL;

	if (c == NULL)
		return NULL;
	c->sync_due = false;
	return &c->c;
}

static void sync_one(struct cube_domain_own *own, struct cube_cube *c)
{
	cube_domain_leave(&own->d);
	state_sync_file(c->dir_fd, STATE_FILE);
	state_sync_file(c->dir_fd, "env");
	cube_domain_enter(&own->d);
	cube_cube_unref(c);
}

static void sync_run(struct cube_work *w)
{
	struct cube_domain_own *own = cube_container_of(w, struct cube_domain_own, sync_work);
	struct cube_cube *c;
	unsigned last = 0;

	cube_domain_enter(&own->d);
	/* The end of the daemon does not wait for a thousand of them: the kernel writes them out soon as
	 * well. */
	while ((!own->d.closing || last++ < SYNC_LAST) && (c = sync_take(own)) != NULL)
		sync_one(own, c);
	own->syncing = false;
	cube_task_end(&own->d);
	cube_domain_leave(&own->d);
}

void cube_state_sync_drop(struct cube_domain *d)
{
	struct cube_cube *c;

	while ((c = sync_take(cube_domain_own(d))) != NULL)
		cube_cube_unref(c);
}

void cube_state_sync_now(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);

	cube_alarm_off(&own->sync);
	if (own->syncing || cube_list_empty(&own->unsynced))
		return;
	own->syncing = true;
	own->sync_work = (struct cube_work){.run = sync_run};
	cube_task_submit(d, &own->sync_work);
}

static void state_sync_behind(struct cube_cube *c)
{
	struct cube_domain_own *own = cube_domain_own(c->domain);

	if (cube_own(c)->sync_due || c->domain->closing)
		return;
	cube_own(c)->sync_due = true;
	cube_list_push(&own->unsynced, &cube_own(cube_cube_ref(c))->unsynced);
	if (!own->syncing && !cube_alarm_is_on(&own->sync))
		cube_alarm_set(c->domain, &own->sync, SYNC_MS);
}

/* ---- Saving ---- */

static json_t *state_str(const char *s)
{
	return s != NULL ? cube_bytes_json(s, strlen(s)) : json_null();
}

static int state_label(void *ctx, const char *key, void *value)
{
	return json_object_set_new(ctx, key, state_str(value));
}

static json_t *state_labels(const struct cube_cube *c)
{
	json_t *o = json_object();

	if (o != NULL)
		(void)cube_map_each(c->labels, state_label, o);
	return o;
}

static json_t *state_extra(const struct cube_own *own)
{
	json_t *list = json_array();

	for (size_t i = 0; list != NULL && i < own->n_extra; i++)
		(void)json_array_append_new(list, json_pack("[o,o]", state_str(own->extra[i].key),
							    state_str(own->extra[i].value)));
	return list;
}

static json_t *state_session(struct cube_session *s)
{
	return json_pack("{s:I,s:o,s:o,s:o,s:o,s:i,s:i,s:b}", "number", (json_int_t)s->number, "name",
			 state_str(s->name), "user", state_str(s->user), "cwd",
			 state_str(cube_session_own(s)->new_cwd), "set",
			 cube_bytes_list(cube_buf_str(&s->env_set), s->env_set.len), "patience",
			 (int)s->patience_s, "timeout", (int)s->timeout_s, "begun",
			 (int)cube_session_own(s)->begun);
}

static json_t *state_sessions(const struct cube_cube *c)
{
	json_t *list = json_array();

	cube_list_each (i, &c->sessions)
		if (list != NULL)
			(void)json_array_append_new(
				list, state_session(cube_list_entry(i, struct cube_session, link)));
	return list;
}

static json_t *state_limits(const struct cube_limits *l)
{
	return json_pack("{s:I,s:I,s:I,s:I}", "memory", (json_int_t)l->memory, "disk", (json_int_t)l->disk,
			 "pids", (json_int_t)l->pids, "cpus", (json_int_t)l->cpus_milli);
}

static json_t *state_pool(struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);

	if (c->pool == NULL)
		return json_null();
	return json_pack("{s:o,s:b,s:b,s:I}", "name", state_str(c->pool), "cold", (int)c->pool_cold, "kept",
			 (int)own->unseen, "revision", (json_int_t)own->stock_revision);
}

static json_t *state_times(struct cube_cube *c)
{
	const struct cube_times *t = &c->times;

	return json_pack("{s:I,s:b,s:I,s:s,s:I,s:I,s:I}", "idle", (json_int_t)t->idle_s, "idle_background",
			 (int)t->idle_background, "lifetime", (json_int_t)t->lifetime_s, "at_end",
			 cube_at_end_name(t->at_end), "ends", (json_int_t)t->ends_wall, "lease",
			 (json_int_t)t->lease_wall, "paused", (json_int_t)cube_own(c)->paused_wall);
}

static json_t *state_json(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	char boot[17];
	json_t *o;

	(void)snprintf(boot, sizeof(boot), "%llx", (unsigned long long)own->boot);
	o = json_pack("{s:i,s:o,s:o,s:o,s:o,s:s,s:o,s:b,s:o,s:b,s:b,s:o}", "version", STATE_VERSION, "uid",
		      state_str(c->uid), "name", state_str(c->name), "backend",
		      state_str(c->service->backend->name), "id", state_str(c->id), "phase",
		      cube_phase_name(c->phase), "reason", state_str(c->reason), "terminal", (int)c->terminal,
		      "doing", state_str(c->doing), "keep", (int)own->keep, "held", (int)own->held, "adopted",
		      state_str(c->adopted));
	if (o == NULL || json_object_set_new(o, "pool", state_pool(c)) < 0 ||
	    json_object_update_new(
		    o, json_pack("{s:I,s:I,s:I,s:i,s:s,s:b,s:b,s:i,s:I}", "created",
				 (json_int_t)c->created_wall, "started", (json_int_t)c->started_wall,
				 "idle_since", (json_int_t)c->used_wall, "generation", (int)c->generation,
				 "net", c->net == CUBE_NET_OPEN ? "open" : "none", "privileged",
				 (int)c->privileged, "resume", (int)c->resume, "command_timeout",
				 (int)c->command_timeout_s, "env_version", (json_int_t)c->env_version)) < 0 ||
	    json_object_update_new(
		    o,
		    json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:s,s:i,s:o}", "template", state_str(c->template),
			      "limits", state_limits(&c->limits), "labels", state_labels(c), "extra",
			      state_extra(own), "env_keys",
			      cube_bytes_list(cube_buf_str(&own->env_keys), own->env_keys.len), "sessions",
			      state_sessions(c), "next_session", (json_int_t)own->next_session, "boot", boot,
			      "failure", c->failure.code, "failure_text", state_str(c->failure.text))) < 0 ||
	    json_object_set_new(o, "fork", json_string(own->fork)) < 0 ||
	    json_object_set_new(o, "volumes", cube_use_save(c)) < 0 ||
	    json_object_set_new(o, "binds", cube_binds_save(c)) < 0 ||
	    json_object_set_new(o, "checkpoints", cube_checkpoints_save(c)) < 0 ||
	    json_object_set_new(o, "parent", state_str(c->parent)) < 0 ||
	    json_object_set_new(o, "checkpoint_base", json_string(own->checkpoint_base)) < 0 ||
	    json_object_set_new(o, "inside", cube_inside_save(own)) < 0 ||
	    json_object_set_new(o, "transfers", cube_transfers_save(c)) < 0 ||
	    json_object_set_new(o, "ports", cube_ports_state(c)) < 0 ||
	    json_object_set_new(o, "times", state_times(c)) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* The older copy's file takes the newer text and then its name: two files for ever, since making and freeing
 * one costs several times as much as all the rest. cube.json is whole at any moment; should the machine (not
 * the daemon) die before the text is on the medium, the other one is the state before (state_read). */
static int state_swap(int dir_fd, const struct cube_buf *text)
{
	int r;

	cube_auto_fd fd = openat(dir_fd, STATE_OTHER, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = cube_file_write_all(fd, text->data, text->len);
	if (r == 0 && ftruncate(fd, (off_t)text->len) < 0)
		r = -errno;
	if (r < 0)
		return r;
	if (renameat2(dir_fd, STATE_OTHER, dir_fd, STATE_FILE, RENAME_EXCHANGE) == 0)
		return 0;
	/* The first time, or a file system that cannot exchange. */
	return renameat(dir_fd, STATE_OTHER, dir_fd, STATE_FILE) == 0 ? 0 : -errno;
}

int cube_state_save(struct cube_cube *c, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = state_json(c);
	struct cube_buf text = CUBE_BUF(STATE_MAX);
	int r = o != NULL ? cube_json_write(o, &text) : -ENOMEM;

	if (r == 0)
		r = cube_buf_addc(&text, '\n');
	if (r == 0)
		r = state_swap(c->dir_fd, &text);
	cube_buf_done(&text);
	if (r < 0)
		return cube_fail(err, r, "sandbox '%s': its state: %s", c->name, cube_errno_text(r));
	state_sync_behind(c);
	return 0;
}

int cube_state_save_env(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_state_replace(c->dir_fd, "env", cube_buf_str(&c->env), c->env.len);

	if (r < 0)
		return cube_fail(err, r, "sandbox '%s': its environment: %s", c->name, cube_errno_text(r));
	state_sync_behind(c);
	return 0;
}

int cube_state_mark_removed(struct cube_cube *c, struct cube_err *err)
{
	int dir = cube_domain_own(c->domain)->cubes_fd;
	char name[sizeof(c->uid) + sizeof(CUBE_STATE_REMOVED)];

	(void)snprintf(name, sizeof(name), "%s" CUBE_STATE_REMOVED, c->uid);
	if (renameat(dir, c->uid, dir, name) < 0)
		return cube_fail_errno(err, "sandbox '%s': its state directory", c->name);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the state directory has: every sandbox is read, what was being made or destroyed goes on when the
 * domain starts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "ctl/bytes.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/stock_priv.h"
#include "ctl/transcript.h"
#include "ctl/transfer.h"
#include "ctl/volume_priv.h"

#define STATE_MAX ((size_t)16 << 20)

/* ---- cube.json ---- */

static int load_phase(const char *name, enum cube_phase *ret)
{
	for (unsigned p = CUBE_CREATING; p < CUBE_REMOVED; p++) {
		if (strcmp(name, cube_phase_name((enum cube_phase)p)) == 0) {
			*ret = (enum cube_phase)p;
			return 0;
		}
	}
	return -EINVAL;
}

static int load_strings(struct cube_cube *c, const json_t *o, struct cube_err *err)
{
	cube_auto_str backend = cube_bytes_dup(o, "backend");
	const char *failure;

	(void)snprintf(c->uid, sizeof(c->uid), "%s", cube_json_str(o, "uid", ""));
	c->name = cube_bytes_dup(o, "name");
	c->id = cube_bytes_dup(o, "id");
	c->template = cube_bytes_dup(o, "template");
	c->adopted = cube_bytes_dup(o, "adopted");
	c->parent = cube_bytes_dup(o, "parent");
	c->service = backend != NULL ? cube_domain_service(c->domain, backend) : NULL;
	(void)snprintf(c->reason, sizeof(c->reason), "%s", cube_json_str(o, "reason", ""));
	c->failure.code = (int)cube_json_int(o, "failure", 0);
	failure = cube_json_str(o, "failure_text", "");
	(void)snprintf(c->failure.text, sizeof(c->failure.text), "%s", failure);
	if (c->name == NULL || cube_cube_check_name(c->name, NULL) < 0)
		return cube_fail(err, -EINVAL, "it has no name");
	if (c->service == NULL)
		return cube_fail(err, -ENOENT, "its backend '%s' is not configured any more",
				 backend != NULL ? backend : "");
	return load_phase(cube_json_str(o, "phase", ""), &c->phase);
}

static void load_times(struct cube_times *t, const json_t *o)
{
	const char *at_end = cube_json_str(o, "at_end", "");

	t->idle_s = (uint32_t)cube_json_int(o, "idle", 0);
	t->idle_background = cube_json_bool(o, "idle_background", false);
	t->lifetime_s = (uint32_t)cube_json_int(o, "lifetime", 0);
	t->ends_wall = (uint64_t)cube_json_int(o, "ends", 0);
	t->lease_wall = (uint64_t)cube_json_int(o, "lease", 0);
	for (unsigned e = 0; e < CUBE_AT_ENDS; e++)
		if (strcmp(at_end, cube_at_end_name((enum cube_at_end)e)) == 0)
			t->at_end = (enum cube_at_end)e;
}

static void load_numbers(struct cube_cube *c, const json_t *o)
{
	struct cube_own *own = cube_own(c);
	const json_t *limits = json_object_get(o, "limits");

	c->created_wall = (uint64_t)cube_json_int(o, "created", 0);
	c->started_wall = (uint64_t)cube_json_int(o, "started", 0);
	c->used_wall = (uint64_t)cube_json_int(o, "idle_since", 0);
	load_times(&c->times, json_object_get(o, "times"));
	own->paused_wall = (uint64_t)cube_json_int(json_object_get(o, "times"), "paused", 0);
	c->generation = (uint32_t)cube_json_int(o, "generation", 0);
	c->command_timeout_s = (uint32_t)cube_json_int(o, "command_timeout", 0);
	c->env_version = (uint64_t)cube_json_int(o, "env_version", 0);
	c->terminal = cube_json_bool(o, "terminal", false);
	c->privileged = cube_json_bool(o, "privileged", false);
	c->resume = cube_json_bool(o, "resume", true);
	c->net = strcmp(cube_json_str(o, "net", "none"), "open") == 0 ? CUBE_NET_OPEN : CUBE_NET_NONE;
	c->limits.memory = (uint64_t)cube_json_int(limits, "memory", 0);
	c->limits.disk = (uint64_t)cube_json_int(limits, "disk", 0);
	c->limits.pids = (uint32_t)cube_json_int(limits, "pids", 0);
	c->limits.cpus_milli = (uint32_t)cube_json_int(limits, "cpus", 0);
	cube_create_limits(c); /* saved by a daemon that did not name them */
	(void)snprintf(own->checkpoint_base, sizeof(own->checkpoint_base), "%s",
		       cube_json_str(o, "checkpoint_base", ""));
	own->keep = cube_json_bool(o, "keep", true);
	(void)snprintf(own->fork, sizeof(own->fork), "%s", cube_json_str(o, "fork", ""));
	own->held = cube_json_bool(o, "held", false);
	own->next_session = (uint64_t)cube_json_int(o, "next_session", 2);
	own->boot = strtoull(cube_json_str(o, "boot", "0"), NULL, 16);
}

static void load_pool(struct cube_cube *c, const json_t *o)
{
	c->pool = cube_bytes_dup(o, "name");
	c->pool_cold = cube_json_bool(o, "cold", false);
	cube_own(c)->unseen = cube_json_bool(o, "kept", false);
	cube_own(c)->stock_revision = (uint64_t)cube_json_int(o, "revision", 0);
	cube_own(c)->stock_told = cube_own(c)->stock_old = true;
}

static int load_labels(struct cube_cube *c, const json_t *o)
{
	void *at = json_object_iter((json_t *)(uintptr_t)json_object_get(o, "labels"));

	for (; at != NULL;
	     at = json_object_iter_next((json_t *)(uintptr_t)json_object_get(o, "labels"), at)) {
		cube_auto_str value = cube_bytes_dup(json_object_get(o, "labels"), json_object_iter_key(at));

		if (value == NULL || cube_label_set(c, json_object_iter_key(at), value, NULL) < 0)
			return -EINVAL;
	}
	return 0;
}

static char *load_at(const json_t *pair, size_t i)
{
	struct cube_buf text = CUBE_BUF(STATE_MAX);
	char *copy = NULL;

	if (cube_bytes_read(json_array_get(pair, i), &text) == 0)
		copy = cube_strdup(cube_buf_str(&text));
	cube_buf_done(&text);
	return copy;
}

static int load_extra(struct cube_own *own, const json_t *list)
{
	size_t n = json_array_size(list);

	if (n == 0)
		return 0;
	own->extra = cube_calloc(n, sizeof(*own->extra));
	for (size_t i = 0; own->extra != NULL && i < n; i++) {
		struct cube_create_key *k = &own->extra[own->n_extra++];

		k->key = load_at(json_array_get(list, i), 0);
		k->value = load_at(json_array_get(list, i), 1);
		if (k->key == NULL || k->value == NULL)
			return -EINVAL;
	}
	return own->extra != NULL ? 0 : -ENOMEM;
}

static int load_session(struct cube_cube *c, const json_t *o)
{
	uint64_t number = (uint64_t)cube_json_int(o, "number", 0);
	cube_auto_str name = cube_bytes_dup(o, "name");
	struct cube_session *s = cube_session_by_number(c, number);

	if (number == 0 || name == NULL)
		return -EINVAL;
	if (s == NULL && strcmp(name, "main") == 0) { /* it was made with the sandbox; of an adopted one */
		s = cube_session_main(c);
		s->number = s->seq = number;
	}
	if (s == NULL)
		s = cube_session_new(c, name, number);
	if (s == NULL)
		return -ENOMEM;
	s->user = cube_bytes_dup(o, "user");
	s->patience_s = (uint32_t)cube_json_int(o, "patience", 0);
	s->timeout_s = (uint32_t)cube_json_int(o, "timeout", 0);
	cube_session_own(s)->new_cwd = cube_bytes_dup(o, "cwd");
	cube_session_own(s)->begun = cube_json_bool(o, "begun", false);
	cube_session_load_exports(s);
	return cube_bytes_read_list(json_object_get(o, "set"), &s->env_set);
}

static int load_sessions(struct cube_cube *c, const json_t *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = load_session(c, json_array_get(list, i));
	return r;
}

static int load_env(struct cube_cube *c, const json_t *o)
{
	struct cube_own *own = cube_own(c);
	int r = cube_bytes_read_list(json_object_get(o, "env_keys"), &own->env_keys);

	if (r == 0) {
		r = cube_file_read(c->dir_fd, "env", &c->env);
		if (r == -ENOENT) /* never written: as it was made */
			r = cube_create_default_env(c);
	}
	if (r == 0) {
		own->env_text = cube_create_env_text(cube_buf_str(&c->env), c->env.len);
		r = own->env_text != NULL ? 0 : -ENOMEM;
	}
	return r;
}

static int state_read(struct cube_cube *c, const char *name, json_t **ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(STATE_MAX);
	int r = cube_file_read(c->dir_fd, name, &text);

	if (r < 0)
		(void)cube_fail(err, r, "%s: %s", name, cube_errno_text(r));
	else
		r = cube_json_parse(cube_buf_str(&text), text.len, name, ret, err);
	cube_buf_done(&text);
	return r;
}

int cube_state_load(struct cube_cube *c, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	int r = state_read(c, "cube.json", &o, err);

	if (r < 0 && state_read(c, "cube.json.old", &o, NULL) == 0)
		r = 0; /* the machine stopped before the newer one was on the medium */
	if (r == 0)
		r = load_strings(c, o, err);
	if (r < 0)
		return r;
	load_numbers(c, o);
	load_pool(c, json_object_get(o, "pool"));
	r = load_labels(c, o);
	if (r == 0)
		r = load_extra(cube_own(c), json_object_get(o, "extra"));
	if (r == 0)
		r = cube_use_load(c, json_object_get(o, "volumes"));
	if (r == 0)
		r = cube_binds_load(c, json_object_get(o, "binds"));
	if (r == 0)
		r = cube_checkpoints_load(c, json_object_get(o, "checkpoints"));
	if (r == 0)
		r = cube_inside_load(cube_own(c), json_object_get(o, "inside"));
	if (r == 0)
		r = cube_transfers_load(c, json_object_get(o, "transfers"));
	if (r == 0)
		r = load_sessions(c, json_object_get(o, "sessions"));
	if (r == 0)
		r = cube_ports_load(c, json_object_get(o, "ports"));
	if (r == 0)
		r = load_env(c, o);
	return r < 0 ? cube_fail(err, r, "cube.json: %s", cube_errno_text(r)) : 0;
}

/* ---- The directory ---- */

static bool load_is_removed(const char *entry, char uid[17])
{
	size_t len = strlen(entry), suffix = strlen(CUBE_STATE_REMOVED);

	(void)snprintf(uid, 17, "%.16s", entry);
	return len == 16 + suffix && strcmp(entry + 16, CUBE_STATE_REMOVED) == 0;
}

static struct cube_cube *load_open(struct cube_domain *d, const char *entry, struct cube_err *err)
{
	struct cube_cube *c = cube_cube_new(d);
	char uid[17];

	if (c == NULL) {
		(void)cube_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	cube_own(c)->leaving = load_is_removed(entry, uid);
	c->dir_fd =
		openat(cube_domain_own(d)->cubes_fd, entry, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int r = c->dir_fd < 0 ? cube_fail_errno(err, "its directory") : cube_state_load(c, err);
	if (r < 0) {
		cube_cube_unref(c);
		return NULL;
	}
	return c;
}

static void load_dying(struct cube_cube *c)
{
	c->phase = CUBE_REMOVED;
	(void)snprintf(c->reason, sizeof(c->reason), "destroyed");
	cube_list_push(&cube_domain_own(c->domain)->dying, &c->link);
}

/* Of a pool that was removed meanwhile: it goes too. */
static int load_kept(struct cube_cube *c, struct cube_err *err)
{
	struct cube_stock *p = c->pool != NULL ? cube_stock_find(c->service, c->pool) : NULL;

	if (p != NULL) {
		cube_stock_keep(p, c);
		return 0;
	}
	int r = cube_state_mark_removed(c, err);
	if (r == 0)
		load_dying(c);
	return r;
}

static int load_living(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_cube_open_log(c, err);

	if (r == 0)
		r = cube_journal_load(c, err);
	if (r == 0)
		r = cube_own(c)->unseen ? load_kept(c, err) : cube_cube_enlist(c, err);
	return r;
}

/* Its acceptance was cut off before the intention was written, or its destruction after all else was gone. */
static bool load_is_nothing(struct cube_domain *d, const char *entry)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%.40s/cube.json", entry);
	return faccessat(cube_domain_own(d)->cubes_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

/* One that cannot be read is named and left alone: its data is not ours to throw away. */
static void load_failed(struct cube_domain *d, const char *entry, struct cube_err *err)
{
	(void)cube_fail_in(err, "sandbox %s in the state directory is left out", entry);
	cube_log(CUBE_LOG_ERROR, "ctl", "%s", err->text);
	cube_errlog_add(d->errors, NULL, "load", err);
	cube_domain_own(d)->load_failed = true;
}

static void load_one(struct cube_domain *d, const char *entry)
{
	struct cube_err err = {0};
	char uid[17];
	bool removed = load_is_removed(entry, uid);
	struct cube_cube *c;

	if (load_is_nothing(d, entry)) {
		(void)cube_file_remove_tree(cube_domain_own(d)->cubes_fd, entry);
		return;
	}
	c = load_open(d, entry, &err);
	if (c != NULL && strcmp(c->uid, uid) != 0) {
		(void)cube_fail(&err, -EINVAL, "its cube.json says it is %s", c->uid);
		cube_cube_unref(c);
		c = NULL;
	}
	if (c == NULL) {
		load_failed(d, entry, &err);
		return;
	}
	cube_own(c)->recovered = true;
	if (removed)
		load_dying(c);
	else if (load_living(c, &err) < 0) {
		load_failed(d, entry, &err);
		cube_cube_unref(c);
	}
}

static int load_by_age(const void *a, const void *b)
{
	const struct cube_cube *x = *(struct cube_cube *const *)a, *y = *(struct cube_cube *const *)b;

	return x->created_wall < y->created_wall ? -1 : x->created_wall > y->created_wall;
}

/* A directory has no order; listings have that in which they were made, as before. */
static int load_sort(struct cube_domain *d, struct cube_err *err)
{
	size_t n = 0, count = cube_map_count(d->by_name);
	struct cube_cube **all = cube_calloc(count + 1, sizeof(void *));

	if (all == NULL)
		return cube_fail(err, -ENOMEM, "state directory '%s': out of memory", d->state_dir);
	for (struct cube_list *i = cube_list_pop(&d->cubes); i != NULL; i = cube_list_pop(&d->cubes))
		all[n++] = cube_list_entry(i, struct cube_cube, link);
	qsort(all, n, sizeof(void *), load_by_age);
	for (size_t i = 0; i < n; i++) {
		all[i]->seq = d->next_seq++;
		cube_list_push(&d->cubes, &all[i]->link);
	}
	cube_free(all);
	return 0;
}

static bool load_first_kept(const struct cube_list *cubes, const char *uid)
{
	cube_list_each (i, cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (strcmp(c->uid, uid) == 0)
			return cube_own(c)->keep;
	}
	return false;
}

/* A fork that was complete, and whose end was cut off before each of them said so. */
static void load_forks(struct cube_domain *d)
{
	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);
		struct cube_own *own = cube_own(c);
		struct cube_err err;

		if (own->keep || own->fork[0] == '\0' || !load_first_kept(&d->cubes, own->fork))
			continue;
		own->keep = true;
		own->fork[0] = '\0';
		if (cube_state_save(c, &err) < 0)
			cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
	}
}

int cube_load_all(struct cube_domain *d, struct cube_err *err)
{
	int fd = openat(cube_domain_own(d)->cubes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return cube_fail_errno(err, "state directory '%s'", d->state_dir);
	}
	while ((e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (e->d_name[0] != '.')
			load_one(d, e->d_name);
	(void)closedir(dir);
	load_forks(d);
	return load_sort(d, err);
}

/* ---- What became of it ---- */

void cube_cube_adopt(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (!own->recovered)
		return;
	own->recovered = false;
	if (own->held && own->holders == 0 && c->phase != CUBE_REMOVED &&
	    cube_cube_remove(c, NULL, NULL) == 0)
		return; /* whoever held it had his end with the daemon's */
	if (c->phase != CUBE_REMOVED) {
		cube_job_inputs_end(c);
		cube_ports_resume(c);
		cube_checkpoints_resume(c);
	}
	switch (c->phase) {
	case CUBE_REMOVED:
		if (!own->keep)
			cube_use_undo(c);
		(void)cube_op_begin(c, CUBE_OP_DESTROY, 0, NULL, NULL);
		return;
	case CUBE_CREATING:
	case CUBE_ERROR:
		/* mkdir had promised it; who wrote `create` has been cut off, and nothing is left. */
		if (!own->keep)
			(void)cube_cube_remove(c, NULL, NULL);
		else if (c->phase == CUBE_CREATING)
			cube_create_go(c);
		return;
	case CUBE_RUNNING:
	case CUBE_PAUSED:
	case CUBE_STOPPED:
		if (!own->keep) { /* of a fork that was cut off */
			(void)cube_cube_remove(c, NULL, NULL);
			return;
		}
		cube_cube_inspect(c);
		cube_transfers_clean(c);
		return;
	}
}

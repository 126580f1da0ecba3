/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: the objects, their names, what is on disk of them.
 *
 * STATE/volumes/UID says name, backend and time; UID.removed is one whose name is free and that the backend may
 * still have. */
#include "ctl/volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/volume_priv.h"

#define VOLUME_FILE_MAX 4096
#define VOLUME_REMOVED  ".removed"

/* ---- The object ---- */

static void volume_again(struct cube_alarm *a)
{
	struct cube_volume_entry *v = cube_container_of(a, struct cube_volume_entry, again);

	if (!v->service->domain->closing)
		cube_volume_work_remove(v);
}

static struct cube_volume_entry *volume_new(struct cube_service *s, const char *name)
{
	struct cube_volume_entry *v = cube_calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->refs = 1;
	v->service = s;
	v->seq = s->domain->next_seq++;
	v->size = UINT64_MAX;
	v->created_wall = cube_clock_wall();
	(void)snprintf(v->name, sizeof(v->name), "%s", name);
	cube_waitq_init(&v->changed);
	cube_list_init(&v->link);
	cube_alarm_init(&v->again, volume_again);
	return v;
}

struct cube_volume_entry *cube_volume_ref(struct cube_volume_entry *v)
{
	v->refs++;
	return v;
}

void cube_volume_unref(struct cube_volume_entry *v)
{
	if (v == NULL || --v->refs > 0)
		return;
	cube_alarm_off(&v->again);
	cube_free(v);
}

void cube_volume_delist(struct cube_volume_entry *v)
{
	cube_list_remove(&v->link);
	cube_wake(&v->changed);
	cube_volume_unref(v);
}

void cube_volumes_close(struct cube_domain *d)
{
	struct cube_list *const heads[] = {&d->volumes, &cube_domain_own(d)->volumes_dying};

	for (size_t i = 0; i < CUBE_COUNT(heads); i++)
		while (!cube_list_empty(heads[i]))
			cube_volume_delist(cube_list_entry(heads[i]->next, struct cube_volume_entry, link));
}

static struct cube_volume_entry *volume_named(struct cube_domain *d, const char *name)
{
	cube_list_each (i, &d->volumes) {
		struct cube_volume_entry *v = cube_list_entry(i, struct cube_volume_entry, link);

		if (strcmp(v->name, name) == 0)
			return v;
	}
	return NULL;
}

struct cube_volume_entry *cube_volume_find(struct cube_domain *d, const char *name)
{
	struct cube_volume_entry *v = volume_named(d, name);

	return v != NULL && v->phase == CUBE_VOLUME_THERE ? v : NULL;
}

bool cube_volume_taken(struct cube_domain *d, const char *name)
{
	return volume_named(d, name) != NULL;
}

struct cube_volume_entry *cube_volume_next(struct cube_domain *d, uint64_t seq)
{
	cube_list_each (i, &d->volumes) {
		struct cube_volume_entry *v = cube_list_entry(i, struct cube_volume_entry, link);

		if (v->seq > seq && v->phase == CUBE_VOLUME_THERE)
			return v;
	}
	return NULL;
}

static struct cube_volume_entry *volume_by_uid(struct cube_domain *d, const char *uid)
{
	cube_list_each (i, &d->volumes) {
		struct cube_volume_entry *v = cube_list_entry(i, struct cube_volume_entry, link);

		if (strcmp(v->uid, uid) == 0)
			return v;
	}
	return NULL;
}

/* ---- On disk ---- */

bool cube_volume_known(struct cube_domain *d, const char *uid)
{
	return volume_by_uid(d, uid) != NULL;
}

int cube_volume_save(struct cube_volume_entry *v, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o =
		json_pack("{s:i,s:s,s:s,s:I}", "version", 1, "name", v->name, "backend",
			  v->service->backend->name, "created", (json_int_t)v->created_wall);
	struct cube_buf text = CUBE_BUF(VOLUME_FILE_MAX);
	int r = o != NULL ? cube_json_write(o, &text) : -ENOMEM;

	if (r == 0)
		r = cube_state_replace(cube_domain_own(v->service->domain)->volumes_fd, v->uid, text.data,
				       text.len);
	cube_buf_done(&text);
	return r < 0 ? cube_fail(err, r, "volume '%s': its state: %s", v->name, cube_errno_text(r)) : 0;
}

void cube_volume_sync(struct cube_domain *d, const char *uid)
{
	int dir = cube_domain_own(d)->volumes_fd;
	const char *const names[] = {uid, "."};

	for (size_t i = 0; i < CUBE_COUNT(names); i++) {
		cube_auto_fd fd = openat(dir, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0)
			(void)fsync(fd); /* an error here is one of the disk: the next write says so */
	}
}

void cube_volume_unsave(const struct cube_volume_entry *v)
{
	int dir = cube_domain_own(v->service->domain)->volumes_fd;
	char name[sizeof(v->uid) + sizeof(VOLUME_REMOVED)];

	(void)snprintf(name, sizeof(name), "%s" VOLUME_REMOVED, v->uid);
	(void)unlinkat(dir, v->uid, 0);
	(void)unlinkat(dir, name, 0);
}

static int volume_read(struct cube_domain *d, const char *file, json_t **ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(VOLUME_FILE_MAX);
	int r = cube_file_read(cube_domain_own(d)->volumes_fd, file, &text);

	if (r < 0)
		(void)cube_fail(err, r, "%s: %s", file, cube_errno_text(r));
	else
		r = cube_json_parse(cube_buf_str(&text), text.len, file, ret, err);
	cube_buf_done(&text);
	return r;
}

static int volume_load(struct cube_domain *d, const char *file, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	bool removed = strlen(file) > 16;
	struct cube_service *s;
	struct cube_volume_entry *v;
	int r = volume_read(d, file, &o, err);

	if (r < 0)
		return r;
	s = cube_domain_service(d, cube_json_str(o, "backend", ""));
	if (s == NULL)
		return cube_fail(err, -ENOENT, "its backend '%s' is not configured any more",
				 cube_json_str(o, "backend", ""));
	if (!cube_name_ok(cube_json_str(o, "name", "")))
		return cube_fail(err, -EINVAL, "it has no name");
	v = volume_new(s, cube_json_str(o, "name", ""));
	if (v == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	(void)snprintf(v->uid, sizeof(v->uid), "%.16s", file);
	v->created_wall = (uint64_t)cube_json_int(o, "created", 0);
	v->phase = removed ? CUBE_VOLUME_REMOVED : CUBE_VOLUME_THERE;
	cube_list_push(removed ? &cube_domain_own(d)->volumes_dying : &d->volumes, &v->link);
	return 0;
}

static bool volume_is_file(const char *name)
{
	size_t n = strspn(name, "0123456789abcdef");

	return n == 16 && (name[n] == '\0' || strcmp(name + n, VOLUME_REMOVED) == 0);
}

/* One that cannot be read is named and left alone: its data is not ours to throw away. */
int cube_volumes_load(struct cube_domain *d, struct cube_err *err)
{
	int fd = openat(cube_domain_own(d)->volumes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return cube_fail_errno(err, "state directory '%s': volumes", d->state_dir);
	}
	while ((e = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		struct cube_err why = {0};

		if (!volume_is_file(e->d_name) || volume_load(d, e->d_name, &why) == 0)
			continue;
		(void)cube_fail_in(&why, "volume %s in the state directory is left out", e->d_name);
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", why.text);
		cube_errlog_add(d->errors, NULL, "load", &why);
	}
	(void)closedir(dir);
	return 0;
}

void cube_volumes_start(struct cube_domain *d)
{
	cube_list_each (i, &cube_domain_own(d)->volumes_dying)
		cube_volume_work_remove(cube_list_entry(i, struct cube_volume_entry, link));
}

/* ---- Making ---- */

static int volume_accept(struct cube_service *s, const char *name, struct cube_volume_entry **ret,
			 struct cube_err *err)
{
	struct cube_volume_entry *v = volume_new(s, name);
	uint64_t n;
	int r;

	if (v == NULL)
		return cube_fail(err, -ENOMEM, "volume '%s': out of memory", name);
	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
		r = cube_fail_errno(err, "random numbers");
		cube_volume_unref(v);
		return r;
	}
	(void)snprintf(v->uid, sizeof(v->uid), "%016llx", (unsigned long long)n);
	cube_list_push(&s->domain->volumes, &v->link);
	*ret = v;
	return 0;
}

int cube_volume_check_name(const char *name, struct cube_err *err)
{
	if (cube_name_ok(name))
		return 0;
	return cube_fail(err, -EINVAL,
			 "'%s' is no name for a volume: 1 to %d of A-Z a-z 0-9 . _ -, no . or - in front",
			 name, CUBE_NAME_MAX);
}

int cube_volume_create(struct cube_domain *d, const char *name, struct cube_volume_entry **ret,
		       struct cube_err *err)
{
	struct cube_service *s = d->default_service;
	struct cube_volume_entry *v = volume_named(d, name);
	int r = cube_volume_check_name(name, err);

	if (r == 0 && d->closing)
		r = cube_fail(err, -EHOSTDOWN, "volume '%s': the daemon is ending", name);
	if (r == 0 && v != NULL && v->phase == CUBE_VOLUME_MAKING) {
		*ret = cube_volume_ref(v);
		return cube_fail(err, -EBUSY, "volume '%s' is being made", name);
	}
	if (r == 0 && v != NULL)
		r = cube_fail(err, -EEXIST, "a volume named '%s' is there already", name);
	if (r == 0)
		r = cube_backend_need(s->backend, CUBE_CAP_VOLUMES, err);
	if (r < 0)
		return r;
	r = volume_accept(s, name, &v, err);
	if (r < 0)
		return r;
	r = cube_volume_save(v, err);
	if (r < 0) {
		cube_volume_delist(v);
		return r;
	}
	*ret = cube_volume_ref(v);
	cube_volume_work_make(v);
	return 0;
}

int cube_volume_for(struct cube_service *s, const char *name, struct cube_volume_entry **ret,
		    struct cube_err *err)
{
	struct cube_volume_entry *v = volume_named(s->domain, name);
	int r;

	if (v != NULL) {
		*ret = cube_volume_ref(v);
		return 0;
	}
	r = volume_accept(s, name, &v, err);
	if (r < 0)
		return r;
	v->phase = CUBE_VOLUME_THERE;
	*ret = cube_volume_ref(v);
	return 1;
}

int cube_volume_check(struct cube_service *s, const char *name, struct cube_err *err)
{
	const struct cube_volume_entry *v = volume_named(s->domain, name);
	int r = cube_volume_check_name(name, err);

	if (r == 0 && v != NULL && v->service != s)
		r = cube_fail(err, -EINVAL,
			      "volume '%s' belongs to backend '%s', the sandbox would be on '%s'", name,
			      v->service->backend->name, s->backend->name);
	return r;
}

struct cube_volume_entry *cube_volume_again(struct cube_service *s, const char *uid)
{
	struct cube_volume_entry *v = volume_by_uid(s->domain, uid);
	struct cube_err err;

	if (v != NULL)
		return cube_volume_ref(v);
	v = volume_new(s, uid);
	if (v == NULL)
		return NULL;
	(void)snprintf(v->uid, sizeof(v->uid), "%.16s", uid);
	v->phase = CUBE_VOLUME_THERE;
	if (cube_volume_save(v, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
	cube_list_push(&s->domain->volumes, &v->link);
	return cube_volume_ref(v);
}

/* ---- Removing, renaming ---- */

struct volume_names {
	struct cube_buf text;
	unsigned n;
};

static void volume_add_name(void *ctx, struct cube_cube *c)
{
	struct volume_names *names = ctx;

	if (names->n++ < 5)
		cube_buf_printf(&names->text, "%s%s", names->n > 1 ? ", " : "", c->name);
	else if (names->n == 7)
		cube_buf_adds(&names->text, ", ...");
}

int cube_volume_remove(struct cube_volume_entry *v, struct cube_err *err)
{
	struct cube_domain *d = v->service->domain;
	int dir = cube_domain_own(d)->volumes_fd;
	struct volume_names names = {.text = CUBE_BUF(512)};
	char removed[sizeof(v->uid) + sizeof(VOLUME_REMOVED)];
	int r = 0;

	if (v->phase != CUBE_VOLUME_THERE)
		return cube_fail(err, -ENOENT, "volume '%s' is removed already", v->name);
	cube_volume_users(v, volume_add_name, &names);
	if (names.n > 0)
		r = cube_fail(err, -EBUSY, "volume '%s' is used by %s", v->name, cube_buf_str(&names.text));
	cube_buf_done(&names.text);
	if (r < 0)
		return r;
	(void)snprintf(removed, sizeof(removed), "%s" VOLUME_REMOVED, v->uid);
	if (renameat(dir, v->uid, dir, removed) < 0)
		return cube_fail_errno(err, "volume '%s': its state", v->name);
	v->phase = CUBE_VOLUME_REMOVED;
	cube_list_remove(&v->link);
	cube_list_push(&cube_domain_own(d)->volumes_dying, &v->link);
	if (d->watcher.volume_removed != NULL)
		d->watcher.volume_removed(d->watcher.ctx, v, v->name);
	cube_volume_work_remove(v);
	return 0;
}

int cube_volume_rename(struct cube_volume_entry *v, const char *name, struct cube_err *err)
{
	struct cube_domain *d = v->service->domain;
	char old[sizeof(v->name)];
	int r = cube_volume_check_name(name, err);

	if (r < 0 || strcmp(name, v->name) == 0)
		return r;
	if (volume_named(d, name) != NULL)
		return cube_fail(err, -EEXIST, "a volume named '%s' is there already", name);
	memcpy(old, v->name, sizeof(old));
	(void)snprintf(v->name, sizeof(v->name), "%s", name);
	r = cube_volume_save(v, err);
	if (r < 0) {
		memcpy(v->name, old, sizeof(old));
		return r;
	}
	if (d->watcher.volume_removed != NULL)
		d->watcher.volume_removed(d->watcher.ctx, v, old);
	return 0;
}

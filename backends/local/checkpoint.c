/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: records, taking, removing. */
#include "backends/local/checkpoint.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/names.h"
#include "backends/local/dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINT_MAX     4096
#define CHECKPOINT_VERSION 1
#define CHECKPOINT_NAME    (CUBE_ID_MAX + 8)

static const char *checkpoint_name(char out[CHECKPOINT_NAME], const char *cp, bool hidden)
{
	(void)snprintf(out, CHECKPOINT_NAME, "%s%.*s.json", hidden ? "." : "", CUBE_ID_MAX, cp);
	return out;
}

/* ---- records ---- */

const char *cube_local_checkpoint_volume(char out[CUBE_LOCAL_CHECKPOINT_SET], const char *cp,
					 const char *volume)
{
	(void)snprintf(out, CUBE_LOCAL_CHECKPOINT_SET, "%.*s.%.*s", CUBE_ID_MAX, cp, CUBE_ID_MAX, volume);
	return out;
}

static int checkpoint_parse(const json_t *o, struct cube_local_checkpoint *ret)
{
	const json_t *volumes = json_object_get(o, "volumes");

	ret->no_files = cube_json_bool(o, "no_files", false);
	ret->n_volumes = 0;
	for (size_t i = 0; i < json_array_size(volumes) && i < CUBE_LOCAL_MOUNTS; i++) {
		const char *uid = json_string_value(json_array_get(volumes, i));

		if (uid)
			(void)snprintf(ret->volumes[ret->n_volumes++], sizeof(ret->volumes[0]), "%s", uid);
	}
	(void)snprintf(ret->of, sizeof(ret->of), "%s", cube_json_str(o, "of", ""));
	(void)snprintf(ret->template, sizeof(ret->template), "%s", cube_json_str(o, "template", ""));
	(void)snprintf(ret->hostname, sizeof(ret->hostname), "%s", cube_json_str(o, "hostname", ""));
	return cube_json_int(o, "version", 0) == CHECKPOINT_VERSION && *ret->of && *ret->template ? 0
												  : -EINVAL;
}

static int checkpoint_load(const struct cube_local *b, const char *name, struct cube_local_checkpoint *ret)
{
	struct cube_buf text = CUBE_BUF(CHECKPOINT_MAX);
	cube_auto(cube_json_auto) json_t *o = NULL;
	int rc = cube_file_read(b->checkpoints, name, &text);

	if (rc == 0)
		rc = cube_json_parse(cube_buf_str(&text), text.len, name, &o, NULL);
	cube_buf_done(&text);
	return rc == 0 ? checkpoint_parse(o, ret) : rc;
}

int cube_local_checkpoint_read(const struct cube_local *b, const char *cp, bool hidden,
			       struct cube_local_checkpoint *ret, struct cube_err *err)
{
	char name[CHECKPOINT_NAME];
	int rc = checkpoint_load(b, checkpoint_name(name, cp, false), ret);

	if (rc == -ENOENT && hidden)
		rc = checkpoint_load(b, checkpoint_name(name, cp, true), ret);
	if (rc == 0 && ret->no_files)
		rc = -ENOENT;
	if (rc == 0 && !cube_local_set_whole(&b->store, cp))
		rc = -EINVAL;
	if (rc == -ENOENT)
		return cube_fail(err, rc, "there is no checkpoint %s", cp);
	return rc < 0 ? cube_fail(err, -EIO, "checkpoint %s is damaged: it can only be deleted", cp) : 0;
}

static json_t *checkpoint_volumes(const struct cube_local_checkpoint *c)
{
	json_t *list = json_array();

	for (unsigned i = 0; list && i < c->n_volumes; i++)
		(void)json_array_append_new(list, json_string(c->volumes[i]));
	return list;
}

static int checkpoint_write(const struct cube_local *b, const char *cp, const struct cube_local_checkpoint *c,
			    struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o =
		json_pack("{s:i,s:s,s:s,s:s,s:b,s:o}", "version", CHECKPOINT_VERSION, "of", c->of, "template",
			  c->template, "hostname", c->hostname, "no_files", (int)c->no_files, "volumes",
			  checkpoint_volumes(c));
	struct cube_buf text = CUBE_BUF(CHECKPOINT_MAX);
	char name[CHECKPOINT_NAME];
	int rc = o ? cube_json_write(o, &text) : -ENOMEM;

	if (rc == 0)
		rc = cube_file_replace(b->checkpoints, checkpoint_name(name, cp, false), text.data, text.len,
				       0600);
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "cannot note checkpoint %s: %s", cp, cube_errno_text(rc)) : 0;
}

bool cube_local_checkpoint_knows(const struct cube_local *b, const char *set)
{
	char name[CHECKPOINT_NAME], id[CUBE_ID_MAX + 1];

	(void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(set, "."), set);
	return faccessat(b->checkpoints, checkpoint_name(name, id, false), F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(b->checkpoints, checkpoint_name(name, id, true), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Calls @fn for each record with the checkpoint's id; a result other than 0 ends it and is returned. */
static int checkpoint_each(const struct cube_local *b, bool hidden, int (*fn)(void *ctx, const char *cp),
			   void *ctx)
{
	int fd = openat(b->checkpoints, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0 && (e = readdir(d)) != NULL) {
		const char *name = e->d_name + (hidden && e->d_name[0] == '.');
		size_t n = strspn(name, "0123456789abcdef");
		char cp[CUBE_ID_MAX + 1];

		if (n == 0 || n > CUBE_ID_MAX || strcmp(name + n, ".json") != 0)
			continue;
		(void)snprintf(cp, sizeof(cp), "%.*s", (int)n, name);
		rc = fn(ctx, cp);
	}
	closedir(d);
	return rc;
}

struct checkpoint_use {
	const struct cube_local *b;
	const char *template;
};

static int checkpoint_is_over(void *ctx, const char *cp)
{
	const struct checkpoint_use *u = ctx;
	struct cube_local_checkpoint c;

	return cube_local_checkpoint_read(u->b, cp, true, &c, NULL) == 0 &&
	       strcmp(c.template, u->template) == 0;
}

bool cube_local_checkpoints_use(const struct cube_local *b, const char *template)
{
	struct checkpoint_use u = {b, template};

	return checkpoint_each(b, true, checkpoint_is_over, &u) > 0;
}

/* ---- list ---- */

struct checkpoint_list {
	const struct cube_local *b;
	void (*each)(void *ctx, const struct cube_checkpoint *c);
	void *ctx;
};

static int checkpoint_tell(void *ctx, const char *cp)
{
	const struct checkpoint_list *l = ctx;
	struct cube_checkpoint out = {.size = cube_local_disk_get(l->b->disk, cp)};
	struct cube_local_checkpoint c = {.of = ""};
	struct cube_err why = {0};

	if (cube_local_checkpoint_read(l->b, cp, false, &c, &why) < 0)
		(void)snprintf(out.reason, sizeof(out.reason), "%.*s", (int)sizeof(out.reason) - 1, why.text);
	(void)snprintf(out.id, sizeof(out.id), "%s", cp);
	(void)snprintf(out.of, sizeof(out.of), "%s", c.of);
	l->each(l->ctx, &out);
	return 0;
}

int cube_local_checkpoint_list(struct cube_backend *base,
			       void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
			       struct cube_err *err)
{
	struct checkpoint_list l = {cube_local_of(base), each, ctx};
	int rc = checkpoint_each(l.b, false, checkpoint_tell, &l);

	return rc < 0 ? cube_fail(err, rc, "cannot list the checkpoints: %s", cube_errno_text(rc)) : 0;
}

/* ---- take ---- */

/* What is in memory is written before anything stands still, so that the snapshot has little left to write. */
static void take_sync(const struct cube_local *b)
{
	cube_auto_fd fd =
		b->store.ops->flat ? openat(b->store.sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void)syncfs(fd);
}

/* The intention stands in the record before: a daemon that is killed meanwhile leaves a sandbox that stands still,
 * and the next one has it go on. *ret_at: when it was told to stand still, or went on; writing the record is before and
 * behind that. */
static int take_still(struct cube_local *b, struct local_cube *c, bool on, struct cube_cancel *cancel,
		      uint64_t *ret_at, struct cube_err *err)
{
	int rc = 0;

	c->rec.taking = true;
	if (on)
		rc = cube_local_cube_save(c, err);
	if (on && rc == 0)
		take_sync(b);
	*ret_at = cube_clock_mono();
	if (rc == 0)
		rc = cube_local_cube_freeze(b, c, on, cancel, err);
	if (!on)
		*ret_at = cube_clock_mono();
	if (on == (rc == 0))
		return rc; /* it stands still; or does not go on, and the next look tries again */
	c->rec.taking = false;
	(void)cube_local_cube_save(c, NULL);
	return rc;
}

void cube_local_checkpoint_thaw(struct cube_local *b, struct local_cube *c)
{
	uint64_t at;

	if (!c->rec.taking)
		return;
	if (cube_local_cube_runs(c)) {
		(void)take_still(b, c, false, NULL, &at, NULL);
		return;
	}
	c->rec.taking = false;
	(void)cube_local_cube_save(c, NULL);
}

/* All that it is to hold, one after the other; what is left of the time is for the next. */
static int take_sets(struct cube_local *b, struct local_cube *c, const struct cube_take *take, uint64_t until,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	char set[CUBE_LOCAL_CHECKPOINT_SET];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i <= take->n_volumes; i++) {
		uint64_t now = cube_clock_mono();
		uint32_t left_ms = until == 0 ? 0 : until > now ? (uint32_t)((until - now) / 1000000) + 1 : 1;

		if (i < take->n_volumes)
			rc = cube_local_set_copy_within(
				&b->store, take->volumes[i],
				cube_local_checkpoint_volume(set, take->cp, take->volumes[i]), left_ms,
				cancel, err);
		else if (take->files)
			rc = cube_local_set_copy_within(&b->store, c->id, take->cp, left_ms, cancel, err);
	}
	return rc == -ETIMEDOUT
		       ? cube_fail(
				 err, rc,
				 "sandbox %s would stand still for more than %u s while its files are copied "
				 "(freeze_limit): stop it before, or have the state directory on btrfs",
				 c->id, b->freeze_limit_ms / 1000)
		       : rc;
}

static int take_copy(struct cube_local *b, struct local_cube *c, const struct cube_take *take,
		     struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	bool moves = cube_local_cube_runs(c) && !c->rec.still && !cube_local_group_frozen(&b->cgroups, c->id);
	struct cube_err thaw = {0};
	uint64_t since = 0, until = 0, on_again = 0;
	int rc = 0;

	if (moves) {
		rc = take_still(b, c, true, cancel, &since, err);
		until = b->freeze_limit_ms ? since + b->freeze_limit_ms * UINT64_C(1000000) : 0;
		if (rc < 0)
			return rc;
	}
	rc = take_sets(b, c, take, until, cancel, err);
	if (moves && take_still(b, c, false, NULL, &on_again, &thaw) < 0)
		cube_log(CUBE_LOG_ERROR, "local", "sandbox %s does not go on after a checkpoint: %s", c->id,
			 thaw.text);
	*ret_still_ms = moves ? (uint32_t)((on_again - since) / 1000000) : 0;
	return rc;
}

/* Of one that is not, or not any more, on record: @volumes as it says, or would have said. */
static int take_sets_gone(struct cube_local *b, const char *cp, const struct cube_local_checkpoint *rec,
			  struct cube_err *err)
{
	char set[CUBE_LOCAL_CHECKPOINT_SET];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < rec->n_volumes; i++)
		rc = cube_local_set_remove(&b->store, cube_local_checkpoint_volume(set, cp, rec->volumes[i]),
					   err);
	return rc;
}

/* What it stood still for is over. */
static void take_undo(struct cube_local *b, const char *cp, const struct cube_local_checkpoint *rec)
{
	char set[CUBE_LOCAL_CHECKPOINT_SET];

	(void)cube_local_set_remove(&b->store, cp, NULL);
	(void)take_sets_gone(b, cp, rec, NULL);
	cube_local_set_discard(&b->store, cp);
	for (unsigned i = 0; i < rec->n_volumes; i++)
		cube_local_set_discard(&b->store, cube_local_checkpoint_volume(set, cp, rec->volumes[i]));
}

static int take_record(const struct local_cube *c, const struct cube_take *take,
		       struct cube_local_checkpoint *rec, struct cube_err *err)
{
	if (take->n_volumes > CUBE_LOCAL_MOUNTS)
		return cube_fail(err, -EINVAL, "a sandbox has %d volumes at most", CUBE_LOCAL_MOUNTS);
	*rec = (struct cube_local_checkpoint){.no_files = !take->files, .n_volumes = take->n_volumes};
	(void)snprintf(rec->of, sizeof(rec->of), "%s", c->id);
	(void)snprintf(rec->template, sizeof(rec->template), "%s", c->rec.template);
	(void)snprintf(rec->hostname, sizeof(rec->hostname), "%s", c->rec.hostname);
	for (unsigned i = 0; i < take->n_volumes; i++)
		(void)snprintf(rec->volumes[i], sizeof(rec->volumes[0]), "%s", take->volumes[i]);
	return 0;
}

/* An earlier attempt whose answer was lost has made it. */
static bool take_is_there(const struct cube_local *b, const struct cube_take *take)
{
	struct cube_local_checkpoint rec;
	char name[CHECKPOINT_NAME];

	return take->files ? cube_local_checkpoint_read(b, take->cp, false, &rec, NULL) == 0
			   : checkpoint_load(b, checkpoint_name(name, take->cp, false), &rec) == 0;
}

int cube_local_checkpoint_take(struct cube_backend *base, const char *id, const struct cube_take *take,
			       struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_local_checkpoint rec;
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc < 0 || take_is_there(b, take))
		return rc;
	rc = take_record(c, take, &rec, err);
	if (rc < 0)
		return rc;
	rc = take_sets_gone(b, take->cp, &rec, err);
	if (rc == 0)
		rc = cube_local_set_remove(&b->store, take->cp, err);
	if (rc == 0)
		rc = take_copy(b, c, take, cancel, ret_still_ms, err);
	if (rc == 0)
		rc = checkpoint_write(b, take->cp, &rec, err);
	if (rc < 0)
		take_undo(b, take->cp, &rec);
	return rc;
}

/* ---- remove ---- */

static int checkpoint_is_base(void *ctx, int dir, const char *id)
{
	struct cube_local_record r;

	(void)id;
	return cube_local_record_read(dir, &r, NULL) == 0 && strcmp(r.base, ctx) == 0;
}

static bool checkpoint_needed(const struct cube_local *b, const char *cp)
{
	char name[CUBE_ID_MAX + 1];

	(void)snprintf(name, sizeof(name), "%s", cp);
	return cube_local_dirs_each(b->cubes, ".", checkpoint_is_base, name) > 0;
}

static int checkpoint_files_gone(struct cube_local *b, const char *cp, struct cube_err *err)
{
	cube_local_view_drop(b, cp);
	cube_local_disk_forget(b->disk, cp);
	return cube_local_set_remove(&b->store, cp, err);
}

int cube_local_checkpoint_remove(struct cube_backend *base, const char *cp, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	char name[CHECKPOINT_NAME], hidden[CHECKPOINT_NAME];
	bool needed = checkpoint_needed(b, cp);
	struct cube_local_checkpoint rec = {.n_volumes = 0};
	int rc;

	if (checkpoint_load(b, checkpoint_name(name, cp, false), &rec) < 0)
		rec.n_volumes = 0; /* what a damaged one does not tell is swept at the next start */
	if (needed ? renameat(b->checkpoints, name, b->checkpoints, checkpoint_name(hidden, cp, true)) < 0
		   : unlinkat(b->checkpoints, name, 0) < 0) {
		if (errno != ENOENT)
			return cube_fail_errno(err, "cannot delete checkpoint %s", cp);
		needed = needed || cube_local_checkpoint_knows(b, cp);
	}
	rc = take_sets_gone(b, cp, &rec, err);
	return rc < 0 || needed ? rc : checkpoint_files_gone(b, cp, err);
}

/* A record of one that is only a base and that nobody needs, or half of any. */
static bool checkpoint_is_left(const struct cube_local *b, const char *name)
{
	size_t n = strspn(name + 1, "0123456789abcdef");
	char cp[CUBE_ID_MAX + 1];

	if (name[0] != '.' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (n == 0 || n > CUBE_ID_MAX || strcmp(name + 1 + n, ".json") != 0)
		return true;
	(void)snprintf(cp, sizeof(cp), "%.*s", (int)n, name + 1);
	return !checkpoint_needed(b, cp);
}

void cube_local_checkpoint_sweep(const struct cube_local *b)
{
	struct cube_names names = CUBE_NAMES;
	cube_auto_fd dir = openat(b->checkpoints, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0 && cube_names_list(&names, dir) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (checkpoint_is_left(b, names.at[i]))
				(void)unlinkat(b->checkpoints, names.at[i], 0);
	cube_names_done(&names);
}

void cube_local_checkpoint_release(struct cube_local *b, const char *cp)
{
	char hidden[CHECKPOINT_NAME];
	struct cube_err err = {0};

	if (!*cp || checkpoint_needed(b, cp) ||
	    unlinkat(b->checkpoints, checkpoint_name(hidden, cp, true), 0) < 0)
		return;
	if (checkpoint_files_gone(b, cp, &err) < 0)
		cube_log(CUBE_LOG_WARNING, "local", "%s", err.text);
}

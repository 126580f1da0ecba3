/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox gets other files: those of a checkpoint, or those of its template. */
#include "backends/local/checkpoint.h"

#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/local/dirs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- in place ---- */

/* Nothing runs in it and nothing of it is mounted afterwards. *ret_ran: it ran. On a disk that has no room for its record
 * it runs on: the record is written as it is, which leaves room for the next one. */
static int restore_halt(struct cube_local *b, struct local_cube *c, bool *ret_ran, struct cube_err *err)
{
	int rc = cube_local_cube_save(c, err);

	*ret_ran = cube_local_cube_runs(c);
	if (rc == 0)
		rc = cube_local_cube_end(b, c, err);
	if (rc < 0)
		return rc;
	c->rec.stage = CUBE_STAGE_STOPPED;
	(void)snprintf(c->rec.reason, sizeof(c->rec.reason), "stopped");
	cube_local_cube_unmount(c);
	return cube_local_cube_save(c, err);
}

/* With the next record: what the files will be of. */
static void restore_announce(struct local_cube *c, const char *template, const char *base)
{
	(void)snprintf(c->rec.next_template, sizeof(c->rec.next_template), "%s", template);
	(void)snprintf(c->rec.next_base, sizeof(c->rec.next_base), "%s", base);
}

/* The record says what the files are now; @template NULL: over the same one. */
static int restore_note(struct cube_local *b, struct local_cube *c, const char *template, const char *base,
			struct cube_err *err)
{
	char old[CUBE_ID_MAX + 1];
	int rc;

	(void)snprintf(old, sizeof(old), "%s", c->rec.base);
	if (template)
		(void)snprintf(c->rec.template, sizeof(c->rec.template), "%s", template);
	(void)snprintf(c->rec.base, sizeof(c->rec.base), "%s", base);
	restore_announce(c, "", "");
	c->rec.generation++;
	rc = cube_local_cube_save(c, err);
	if (rc == 0 && strcmp(old, base) != 0)
		cube_local_checkpoint_release(b, old);
	return rc;
}

/* The files may have been another sandbox's: its name in /etc becomes ours. */
static int restore_identity(struct cube_local *b, struct local_cube *c,
			    const struct cube_local_checkpoint *cp, struct cube_err *err)
{
	int rc = cube_local_cube_mount(b, c, NULL, err);

	return rc == 0 && strcmp(cp->of, c->id) != 0
		       ? cube_local_identity(c, cp->hostname, c->rec.hostname, err)
		       : rc;
}

/* The copy takes the place of the set. Killed meanwhile: cube_local_restore_finish. */
static int restore_switch(struct cube_local *b, struct local_cube *c, const char *template, const char *cp,
			  bool *ret_ran, struct cube_err *err)
{
	int rc = cube_local_set_mark(&b->store, c->id, err);

	if (rc == 0) {
		restore_announce(c, template, cp);
		rc = restore_halt(b, c, ret_ran, err);
	}
	if (rc == 0) {
		rc = cube_local_set_switch(&b->store, c->id, err);
		if (rc < 0)
			restore_announce(c, "", "");
		if (rc < 0 && *ret_ran) /* nothing has changed: it runs again */
			(void)cube_local_cube_start(b, c, NULL, NULL);
	} else {
		restore_announce(c, "", "");
	}
	return rc;
}

int cube_local_restore(struct cube_backend *base, const char *id, const char *cp, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_local_checkpoint rec;
	struct local_cube *c;
	bool ran = false;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc == 0)
		rc = cube_local_checkpoint_read(b, cp, false, &rec, err);
	if (rc == 0)
		rc = cube_local_template_check_run(b, rec.template, err);
	/* What can fail or be interrupted comes first, while it still runs. */
	if (rc == 0)
		rc = cube_local_set_stage(&b->store, cp, c->id, cancel, err);
	if (rc < 0)
		return rc;
	rc = restore_switch(b, c, rec.template, cp, &ran, err);
	if (rc == 0)
		rc = restore_note(b, c, rec.template, cp, err);
	if (rc == 0)
		cube_local_set_unmark(&b->store, c->id);
	if (rc == 0)
		rc = restore_identity(b, c, &rec, err);
	if (rc == 0 && ran)
		rc = cube_local_cube_start(b, c, NULL, err);
	cube_local_set_discard(&b->store, c->id);
	return rc;
}

int cube_local_reset(struct cube_backend *base, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	bool ran = false;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc == 0)
		rc = restore_halt(b, c, &ran, err);
	if (rc == 0) /* it may be full; the next mount limits it again */
		rc = cube_local_cube_quota(b, c, false, err);
	if (rc == 0)
		rc = cube_local_set_empty(&b->store, c->id, CUBE_PART_ROOT, &b->host->ids, err);
	if (rc == 0)
		rc = restore_note(b, c, NULL, "", err);
	if (rc == 0)
		rc = cube_local_cube_mount_fresh(b, c, err);
	return rc == 0 && ran ? cube_local_cube_start(b, c, NULL, err) : rc;
}

/* ---- a fresh one ---- */

int cube_local_create_from(struct cube_local *b, struct local_cube *c, const char *cp,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local_checkpoint rec;
	int rc = cube_local_checkpoint_read(b, cp, false, &rec, err);

	if (rc == 0)
		rc = cube_local_set_copy(&b->store, cp, c->id, cancel, err);
	return rc == 0 ? restore_identity(b, c, &rec, err) : rc;
}

/* ---- after a kill ---- */

static int finish_one(void *ctx, int dir, const char *id)
{
	const struct cube_local *b = ctx;
	struct cube_local_record r;
	struct cube_err err = {0};

	if (cube_local_record_read(dir, &r, NULL) < 0 || r.next_base[0] == '\0')
		return 0;
	if (cube_local_set_marked(&b->store, id)) {
		memcpy(r.template, r.next_template, sizeof(r.template));
		memcpy(r.base, r.next_base, sizeof(r.base));
		r.generation++;
	}
	r.next_template[0] = r.next_base[0] = '\0';
	if (cube_local_record_write(dir, &r, &err) < 0)
		cube_log(CUBE_LOG_WARNING, "local", "sandbox %s: %s", id, err.text);
	else
		cube_local_set_unmark(&b->store, id);
	return 0;
}

void cube_local_restore_finish(struct cube_local *b)
{
	(void)cube_local_dirs_each(b->cubes, ".", finish_one, b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is under way is noted in a sandbox's directory here, so that what was cut off is ended: by a later daemon, or by
 * this one where the engine went away in the middle.
 *
 *   taking    it stands still for a checkpoint                        it goes on
 *   remaking  another container takes the place of the one it has     the one that it had is put back
 *
 * Names of the engine tell how far a remaking got: cubefs-ID.next is to be the new one; the old one is cubefs-ID.old from
 * the moment when the new one takes its name, until it is done with, and cubefs-ID.gone then. */
#include "backends/docker/docker_priv.h"

#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const settle_notes[] = {
	[DOCKER_NOTE_TAKING] = "taking", [DOCKER_NOTE_REMAKING] = "remaking"};

int docker_note(const struct cube_docker *d, const char *id, enum docker_note note, struct cube_err *err)
{
	cube_auto_fd dir = docker_box_dir(d, id, true, err);
	int rc = dir < 0 ? dir
			 : cube_file_replace(dir, settle_notes[note], d->instance, strlen(d->instance), 0600);

	return dir >= 0 && rc < 0 ? cube_fail(err, rc, "cannot note what is done to sandbox %s: %s", id,
					      cube_errno_text(rc))
				  : rc;
}

void docker_note_gone(const struct cube_docker *d, const char *id, enum docker_note note)
{
	cube_auto_fd dir = openat(d->cubes, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir >= 0)
		(void)unlinkat(dir, settle_notes[note], 0);
}

static bool settle_noted(const struct cube_docker *d, const char *id, enum docker_note note)
{
	cube_auto_fd dir = openat(d->cubes, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir >= 0 && faccessat(dir, settle_notes[note], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- containers by their other names ---- */

int docker_other_get(struct cube_docker *d, const char *id, const char *suffix, json_t **ret,
		     struct cube_err *err)
{
	char path[DOCKER_REF + 64];

	(void)snprintf(path, sizeof(path), "/containers/" DOCKER_NAME "%s%s/json", id, suffix);
	return docker_ask(
		d,
		&(struct docker_ask){
			.method = "GET", .path = path, .what = "look for what was cut off", .ret = ret},
		NULL, err);
}

int docker_other_gone(struct cube_docker *d, const char *id, const char *suffix, struct cube_err *err)
{
	char path[DOCKER_REF + 64];
	int rc;

	(void)snprintf(path, sizeof(path), "/containers/" DOCKER_NAME "%s%s?force=1&v=1", id, suffix);
	rc = docker_ask(d,
			&(struct docker_ask){.method = "DELETE",
					     .path = path,
					     .what = "remove a container of the sandbox"},
			NULL, err);
	return rc == -ENOENT ? 0 : rc;
}

int docker_other_name(struct cube_docker *d, const char *id, const char *from, const char *to,
		      struct cube_err *err)
{
	char path[2 * DOCKER_REF + 64];

	(void)snprintf(path, sizeof(path), "/containers/" DOCKER_NAME "%s%s/rename?name=" DOCKER_NAME "%s%s",
		       id, from, id, to);
	return docker_ask(d,
			  &(struct docker_ask){.method = "POST",
					       .path = path,
					       .what = "rename a container of the sandbox"},
			  NULL, err);
}

int docker_others_gone(struct cube_docker *d, const char *id, struct cube_err *err)
{
	static const char *const suffixes[] = {DOCKER_NEXT, DOCKER_OLD, DOCKER_GONE};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(suffixes); i++)
		rc = docker_other_gone(d, id, suffixes[i], err);
	return rc;
}

/* ---- the end of what was cut off ---- */

int docker_put_back(struct cube_docker *d, const char *id, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *old = NULL;
	int rc = docker_other_get(d, id, DOCKER_OLD, &old, err);

	if (rc == 0)
		rc = docker_other_gone(d, id, "", err);
	if (rc == 0)
		rc = docker_other_name(d, id, DOCKER_OLD, "", err);
	if (rc == -ENOENT)
		rc = 0;
	if (rc == 0)
		rc = docker_others_gone(d, id, err);
	if (rc == 0)
		docker_note_gone(d, id, DOCKER_NOTE_REMAKING);
	return rc;
}

static int settle_thaw(struct cube_docker *d, const char *id, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, NULL, &box, err);

	if (rc == 0 && docker_box_state(box) == CUBE_IS_PAUSED)
		rc = docker_box_do(d, id, "unpause", NULL, err);
	if (rc == 0)
		docker_note_gone(d, id, DOCKER_NOTE_TAKING);
	return rc;
}

int docker_settle(struct cube_docker *d, const char *id, struct cube_err *err)
{
	int rc = 0;

	if (settle_noted(d, id, DOCKER_NOTE_REMAKING))
		rc = docker_put_back(d, id, err);
	if (rc == 0 && settle_noted(d, id, DOCKER_NOTE_TAKING))
		rc = settle_thaw(d, id, err);
	return rc;
}

/* ---- containers that never run, of daemons that were killed ---- */

bool docker_maker_stale(const struct cube_docker *d, const char *name)
{
	const size_t len = strlen(DOCKER_MAKER), home = strlen(d->home);

	return strncmp(name, DOCKER_MAKER, len) == 0 && strncmp(name + len, d->home, home) == 0 &&
	       name[len + home] == '.' &&
	       strncmp(name + len + home + 1, d->instance, strlen(d->instance)) != 0;
}

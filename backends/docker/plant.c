/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init at an engine that does not see this machine's files: in a volume of the engine's, named by the content, that
 * each container there has read only. It is filled once, through a container that never runs; `whole` in it is written
 * behind the agent, so that a volume whose filling was cut off is told from one that is done. */
#include "backends/docker/docker_priv.h"

#include "backends/agent/file.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLANT_DIR     "/agent" /* in the container that never runs */
#define PLANT_SLOW_S  300
#define PLANT_LOOK_MS 20

void docker_plant_name(const struct cube_docker *d, char out[DOCKER_PLANT_MAX])
{
	const char *digest = strrchr(d->agent, '.');

	(void)snprintf(out, DOCKER_PLANT_MAX, DOCKER_NAME "agent-%.16s", digest != NULL ? digest + 1 : "");
}

/* ---- its archive ---- */

static bool plant_member(struct archive *a, const char *name, mode_t mode, int fd, int64_t size)
{
	struct archive_entry *e = archive_entry_new();
	char chunk[16384];
	ssize_t n = 0;
	bool ok;

	if (e == NULL)
		return false;
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, mode);
	archive_entry_set_size(e, size);
	ok = archive_write_header(a, e) == ARCHIVE_OK;
	archive_entry_free(e);
	while (ok && fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		ok = archive_write_data(a, chunk, (size_t)n) == n;
	return ok && n == 0;
}

static int plant_archive(const struct cube_docker *d, int to)
{
	cube_auto_fd from = open(d->agent, O_RDONLY | O_CLOEXEC);
	struct archive *a = archive_write_new();
	struct stat st;
	bool ok = from >= 0 && fstat(from, &st) == 0 && a != NULL &&
		  archive_write_set_format_ustar(a) == ARCHIVE_OK &&
		  archive_write_open_fd(a, to) == ARCHIVE_OK &&
		  plant_member(a, "init", 0555, from, st.st_size) && plant_member(a, "whole", 0444, -1, 0) &&
		  archive_write_close(a) == ARCHIVE_OK;

	(void)archive_write_free(a);
	return ok && lseek(to, 0, SEEK_SET) == 0 ? 0 : -EIO;
}

/* ---- the volume ---- */

/* Is all of it there? */
static int plant_whole(struct cube_docker *d, const char *maker, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	char path[DOCKER_MAKER_MAX + 64];

	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=" PLANT_DIR "/whole", maker);
	return docker_ask(d,
			  &(struct docker_ask){.method = "GET", .path = path, .what = "look for the agent"},
			  cancel, err);
}

static int plant_put(struct cube_docker *d, const char *maker, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	cube_auto_fd tmp = openat(d->state, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[DOCKER_MAKER_MAX + 64];
	int rc = tmp < 0 ? -errno : plant_archive(d, tmp);

	if (rc < 0)
		return cube_fail(err, rc, "the agent cannot be packed: %s", cube_errno_text(rc));
	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=" PLANT_DIR, maker);
	return docker_ask(d,
			  &(struct docker_ask){.method = "PUT",
					       .path = path,
					       .what = "copy the agent to the engine",
					       .timeout_s = PLANT_SLOW_S,
					       .body_fd = tmp,
					       .has_fd = true},
			  cancel, err);
}

static int plant_volume(struct cube_docker *d, const char *name, struct cube_cancel *cancel,
			struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body =
		json_pack("{s:s,s:{s:s}}", "Name", name, "Labels", DOCKER_LABEL "agent", name);

	return docker_ask(d,
			  &(struct docker_ask){.method = "POST",
					       .path = "/volumes/create",
					       .body = body,
					       .what = "make a volume for the agent"},
			  cancel, err);
}

static int plant_fill(struct cube_docker *d, const char *name, const char *image, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body =
		json_pack("{s:s,s:[s],s:{s:s,s:[{s:s,s:s,s:s,s:{s:b}}]}}", "Image", image, "Cmd",
			  DOCKER_NO_COMMAND, "HostConfig", "NetworkMode", "none", "Mounts", "Type", "volume",
			  "Source", name, "Target", PLANT_DIR, "VolumeOptions", "NoCopy", 1);
	char maker[DOCKER_MAKER_MAX];
	int rc = body != NULL ? docker_maker(d, body, cancel, maker, err)
			      : cube_fail(err, -ENOMEM, "out of memory");

	if (rc < 0)
		return rc;
	rc = plant_whole(d, maker, cancel, err);
	if (rc == -ENOENT)
		rc = plant_put(d, maker, cancel, err);
	docker_maker_gone(d, maker);
	return rc;
}

enum { PLANT_NOT_KNOWN, PLANT_BUSY, PLANT_DONE };

/* One fills it, and the others wait: what lies in it already is written over. */
static int plant_turn(struct cube_docker *d, int was, struct cube_cancel *cancel, struct cube_err *err)
{
	struct pollfd p = {.fd = cube_cancel_fd(cancel), .events = POLLIN};

	for (;;) {
		int state = was;

		if (atomic_compare_exchange_strong(&d->planting, &state, PLANT_BUSY))
			return PLANT_BUSY;
		if (state == PLANT_DONE)
			return PLANT_DONE;
		was = PLANT_NOT_KNOWN;
		if (poll(&p, 1, PLANT_LOOK_MS) > 0)
			return cube_fail(err, -EINTR, "interrupted");
	}
}

static int plant_look(struct cube_docker *d, const char *name, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	char path[DOCKER_PLANT_MAX + 16];

	(void)snprintf(path, sizeof(path), "/volumes/%s", name);
	return docker_ask(d, &(struct docker_ask){.method = "GET", .path = path, .what = "find the agent"},
			  cancel, err);
}

/* It is looked for each time: somebody there may tidy up. */
int docker_plant(struct cube_docker *d, const char *image, struct cube_cancel *cancel, struct cube_err *err)
{
	char name[DOCKER_PLANT_MAX];
	int rc, found;

	docker_plant_name(d, name);
	found = plant_look(d, name, cancel, err);
	if (found < 0 && found != -ENOENT)
		return found;
	rc = plant_turn(d, found == 0 ? PLANT_NOT_KNOWN : PLANT_DONE, cancel, err);
	if (rc != PLANT_BUSY)
		return rc == PLANT_DONE ? 0 : rc;
	rc = plant_volume(d, name, cancel, err);
	if (rc == 0)
		rc = plant_fill(d, name, image, cancel, err);
	atomic_store(&d->planting, rc == 0 ? PLANT_DONE : PLANT_NOT_KNOWN);
	return rc;
}

bool docker_planted(const json_t *box)
{
	const json_t *mounts = json_object_get(box, "Mounts"), *one;
	size_t i;

	json_array_foreach(mounts, i, one) if (strcmp(cube_json_str(one, "Destination", ""), DOCKER_PLANT) ==
					       0) return true;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init in a container: its binary, its listener, the link to it.
 *
 * The binary is bound into each container from a copy in our directory, named by its content, so that what is installed
 * can be replaced while containers run. The listener is made here and handed to process 1 through the door; any later
 * daemon connects to it. A container that somebody else started again has an agent without one, which knocks at the
 * door until it is linked to. */
#include "backends/docker/docker_priv.h"

#include "backends/agent/door.h"
#include "backends/agent/file.h"
#include "backends/agent/link.h"
#include "backends/agent/listener.h"
#include "backends/base/clock.h"
#include "backends/base/digest.h"
#include "backends/base/file.h"
#include "backends/ns/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTER_SLICE_MS 500
#define ENTER_NS       UINT64_C(20000000000)

/* ---- the binary ---- */

static int agent_copy(const struct cube_docker *d, int from, const char *name)
{
	char part[160];
	cube_auto_fd to = -1;
	int rc;

	(void)snprintf(part, sizeof(part), "%s.part", name);
	(void)unlinkat(d->state, part, 0);
	to = openat(d->state, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (to < 0 || lseek(from, 0, SEEK_SET) < 0)
		return -errno;
	rc = cube_agent_file_copy(from, to);
	if (rc == 0 && fchmod(to, 0555) < 0)
		rc = -errno;
	if (rc == 0 && fsync(to) < 0)
		rc = -errno;
	if (rc == 0 && renameat(d->state, part, d->state, name) < 0)
		rc = -errno;
	return rc;
}

/* The digest of what is in @fd. */
static int agent_digest(int fd, char out[CUBE_DIGEST_TEXT])
{
	struct cube_digest *digest = cube_digest_new();
	char chunk[16384];
	ssize_t n;

	if (digest == NULL)
		return -ENOMEM;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		cube_digest_add(digest, chunk, (size_t)n);
	if (n == 0)
		(void)cube_digest_end(digest, out);
	cube_digest_free(digest);
	return n < 0 ? -EIO : 0;
}

void docker_agent_prepare(struct cube_docker *d)
{
	struct cube_err why = {0};
	cube_auto_fd from = cube_agent_file_open(&why);
	char digest[CUBE_DIGEST_TEXT], name[64];
	int rc = from < 0 ? from : agent_digest(from, digest);

	if (rc == 0) {
		(void)snprintf(name, sizeof(name), "cube-init.%.16s", digest + strlen("sha256:"));
		if (faccessat(d->state, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			rc = agent_copy(d, from, name);
	}
	if (rc < 0)
		(void)snprintf(d->agent_why, sizeof(d->agent_why), "%.159s",
			       why.code != 0 ? why.text : cube_errno_text(rc));
	else
		(void)snprintf(d->agent, sizeof(d->agent), "%s/%s", d->path, name);
}

/* ---- the listener ---- */

/* Why a container that was started runs no more, as far as the engine knows. */
static int enter_ended(const char *id, const json_t *box, struct cube_err *err)
{
	const json_t *state = json_object_get(box, "State");
	const char *why = cube_json_str(state, "Error", "");

	return cube_fail(err, -EHOSTDOWN, "sandbox %s has ended at once, with code %d%s%.200s", id,
			 (int)cube_json_int(state, "ExitCode", -1), *why != '\0' ? ": " : "", why);
}

static int enter_wait(struct cube_docker *d, const char *id, int door, int listener,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + ENTER_NS;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && cube_clock_mono() < end) {
		cube_auto(cube_json_auto) json_t *box = NULL;

		rc = docker_box_get(d, id, cancel, &box, err);
		if (rc == 0 && docker_box_pid(box) == 0)
			rc = enter_ended(id, box, err);
		if (rc == 0)
			rc = cube_agent_door_hand(door, docker_box_pid(box), listener, ENTER_SLICE_MS, cancel,
						  err);
	}
	return rc == -ETIMEDOUT
		       ? cube_fail(err, rc,
				   "sandbox %s: the agent inside does not report: does its image run on this "
				   "machine, and does the engine at %.100s see its files?",
				   id, d->where)
		       : rc;
}

static int enter_by_door(struct cube_docker *d, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	cube_auto_fd dir = docker_box_dir(d, id, true, err), inside = -1, listener = -1;
	int door = -1, rc = dir < 0 ? dir : 0;

	if (rc == 0)
		inside = openat(dir, "door", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rc == 0 && inside < 0)
		rc = cube_fail_errno(err, "the door of sandbox %s", id);
	if (rc == 0)
		rc = cube_agent_listener_make(dir, &listener, err);
	if (rc == 0)
		rc = cube_agent_door_open(inside, &door, err);
	if (rc == 0)
		rc = enter_wait(d, id, door, listener, cancel, err);
	cube_agent_door_close(inside, door);
	return rc;
}

/* Has it the door in our directory? */
static bool enter_has_door(const struct cube_docker *d, const char *id, const json_t *box)
{
	const json_t *mounts = json_object_get(box, "Mounts"), *one;
	char door[PATH_MAX];
	size_t i;

	(void)snprintf(door, sizeof(door), "%s/cubes/%s/door", d->path, id);
	json_array_foreach(mounts, i,
			   one) if (strcmp(cube_json_str(one, "Source", ""), door) == 0) return true;
	return false;
}

int docker_enter(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, cancel, &box, err);

	if (rc == 0)
		rc = docker_binds_started(d, id, cancel, err);
	if (rc < 0 || docker_planted(box)) /* that one waits for whoever attaches */
		return rc;
	if (!enter_has_door(d, id, box))
		return docker_enter_beside(d, id, cancel, err);
	rc = docker_seed(d, id, box, cancel, err);
	return rc == 0 ? enter_by_door(d, id, cancel, err) : rc;
}

/* ---- the link ---- */

static int link_connect(struct cube_docker *d, const char *id, struct cube_cancel *cancel, int *ret_fd,
			bool *ret_fds, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	cube_auto_fd dir = -1;
	int rc = docker_box_get(d, id, cancel, &box, err);

	if (rc == 0 && docker_box_state(box) == CUBE_IS_STOPPED)
		rc = cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (rc < 0)
		return rc;
	*ret_fds = !docker_planted(box);
	if (!*ret_fds)
		return docker_stream_attach(d, id, cancel, ret_fd, err);
	dir = docker_box_dir(d, id, true, err);
	if (dir < 0)
		return dir;
	rc = cube_agent_listener_connect(dir, cancel, ret_fd, err);
	if (rc != -EHOSTDOWN || docker_box_state(box) != CUBE_IS_RUNNING)
		return rc;
	rc = docker_enter(d, id, cancel, err);
	return rc == 0 ? cube_agent_listener_connect(dir, cancel, ret_fd, err) : rc;
}

int docker_link(struct cube_backend *base, const char *id, const struct cube_link_handler *handler, void *ctx,
		struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	struct cube_agent_oom oom = {.count = cube_ns_oom_count, .probe = cube_ns_oom_probe};
	struct cube_link *link;
	int fd = -1, rc = docker_settle(d, id, err);
	bool fds = false;

	if (rc == 0)
		rc = link_connect(d, id, cancel, &fd, &fds, err);
	if (rc < 0)
		return rc;
	oom.ctx = docker_proc_oom(d, id);
	rc = cube_agent_link_new(d->loop, fd, fds, handler, ctx, &link, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	cube_agent_link_set_oom(link, &oom);
	*ret = link;
	return 0;
}

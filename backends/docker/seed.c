/* SPDX-License-Identifier: Apache-2.0 */
/* What is a sandbox's own in its container: a machine id, an account, another host name than the one it was made with.
 *
 * Written while process 1 waits for its listener, so that nothing has run that could have seen the container without it:
 * once in each container, but for the host name, which the engine sets at each start to what it was made with. */
#include "backends/docker/docker_priv.h"

#include "backends/base/file.h"
#include "backends/base/num.h"
#include "backends/ns/account.h"
#include "backends/ns/hostname.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEED_DONE "seeded"   /* the engine's id of the container that has it */
#define SEED_NAME "hostname" /* where it is another one than the engine's */
#define SEED_TEXT 128

const char *docker_seed_why(const struct cube_docker *d)
{
	if (docker_proc_why(d) != NULL)
		return docker_proc_why(d);
	return d->engine.user_ns ? "the engine gives its containers other user ids" : NULL;
}

/* The line of a file here; "": there is none. */
static void seed_read(int dir, const char *name, char *out, size_t size)
{
	struct cube_buf text = CUBE_BUF(SEED_TEXT);

	*out = '\0';
	if (cube_file_read(dir, name, &text) == 0)
		(void)snprintf(out, size, "%s", cube_buf_str(&text));
	cube_buf_done(&text);
}

/* ---- once ---- */

/* An image whose /etc is none, or has something else there, stays as it is. */
static int seed_machine_id(int root, const char *id)
{
	cube_auto_fd etc = cube_ns_open(root, "etc", O_RDONLY | O_DIRECTORY), fd = -1;
	char text[2 * CUBE_ID_MAX];
	struct stat st;

	if (etc < 0)
		return 0;
	fd = openat(etc, "machine-id", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0444);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CUBE_NS_FILE_MAX)
		return 0;
	(void)snprintf(text, sizeof(text), CUBE_NS_MACHINE_ID, id, id);
	return cube_ns_line(fd, text);
}

/* NAME:UID, as the label has it. */
static int seed_account(int root, const char *label, struct cube_err *err)
{
	const struct cube_ns_ids ids = {.count = UINT32_MAX};
	cube_auto_fd workspace = -1;
	const char *colon = strrchr(label, ':');
	char name[CUBE_ID_MAX + 1];
	uint64_t uid;

	if (colon == NULL || (size_t)(colon - label) >= sizeof(name) ||
	    cube_num_u64(colon + 1, UINT32_MAX, &uid) < 0)
		return 0;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(colon - label), label);
	workspace = openat(root, "workspace", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (workspace < 0)
		return cube_fail_errno(err, "user=%s: /workspace", name);
	return cube_ns_account(root, workspace, name, (uint32_t)uid, &ids, err);
}

static int seed_once(int dir, int root, const char *id, const json_t *box, struct cube_err *err)
{
	const char *whole = cube_json_str(box, "Id", ""), *user;
	char done[SEED_TEXT];
	int rc;

	seed_read(dir, SEED_DONE, done, sizeof(done));
	if (strcmp(done, whole) == 0)
		return 0;
	user = cube_json_str(json_object_get(json_object_get(box, "Config"), "Labels"), DOCKER_LABEL_USER,
			     "");
	rc = seed_machine_id(root, id);
	if (rc < 0)
		return cube_fail(err, rc, "sandbox %s: its machine id: %s", id, cube_errno_text(rc));
	rc = seed_account(root, user, err);
	if (rc < 0)
		return rc;
	rc = cube_file_replace(dir, SEED_DONE, whole, strlen(whole), 0600);
	return rc < 0 ? cube_fail(err, rc, "cannot note what sandbox %s has: %s", id, cube_errno_text(rc))
		      : 0;
}

/* ---- the host name ---- */

/* The engine's own files, which it has mounted inside. */
static int seed_open(const json_t *box, const char *key)
{
	const char *path = cube_json_str(box, key, "");

	return *path == '/' ? open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
}

static int seed_rename(int proc, const json_t *box, const char *old, const char *name)
{
	cube_auto_fd hosts = seed_open(box, "HostsPath"), hostname = seed_open(box, "HostnamePath");
	int rc = cube_ns_hostname(proc, name);

	if (rc == 0 && hostname >= 0)
		rc = cube_ns_line(hostname, name);
	if (rc == 0 && hosts >= 0)
		rc = cube_ns_hosts_rename(hosts, old, name);
	return rc;
}

static const char *seed_made_name(const json_t *box)
{
	return cube_json_str(json_object_get(box, "Config"), "Hostname", "");
}

int docker_rename(struct cube_backend *base, const char *id, const char *name, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	cube_auto_fd dir = -1, proc = -1;
	char old[SEED_TEXT];
	int rc = docker_box_get(d, id, NULL, &box, err);

	if (rc < 0 || !docker_is_ours(id)) /* the name of a container that others made is theirs */
		return rc;
	dir = docker_box_dir(d, id, true, err);
	if (dir < 0)
		return dir;
	seed_read(dir, SEED_NAME, old, sizeof(old));
	rc = cube_file_replace(dir, SEED_NAME, name, strlen(name), 0600);
	if (rc < 0 || docker_box_pid(box) == 0)
		return rc < 0 ? cube_fail(err, rc, "cannot note the host name of sandbox %s: %s", id,
					  cube_errno_text(rc))
			      : 0;
	proc = docker_proc(d, id, NULL, err);
	if (proc < 0)
		return proc;
	rc = seed_rename(proc, box, *old != '\0' ? old : seed_made_name(box), name);
	return rc < 0 ? cube_fail(err, rc, "sandbox %s: its host name cannot be set: %s", id,
				  cube_errno_text(rc))
		      : 0;
}

int docker_seed(struct cube_docker *d, const char *id, const json_t *box, struct cube_cancel *cancel,
		struct cube_err *err)
{
	cube_auto_fd dir = -1, proc = -1, root = -1;
	char name[SEED_TEXT];
	int rc;

	if (docker_seed_why(d) != NULL)
		return 0;
	dir = docker_box_dir(d, id, true, err);
	proc = dir < 0 ? dir : docker_proc(d, id, cancel, err);
	if (proc < 0)
		return proc;
	root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return cube_fail_errno(err, "the files of sandbox %s", id);
	rc = seed_once(dir, root, id, box, err);
	seed_read(dir, SEED_NAME, name, sizeof(name));
	if (rc < 0 || *name == '\0')
		return rc;
	rc = seed_rename(proc, box, seed_made_name(box), name);
	return rc < 0 ? cube_fail(err, rc, "sandbox %s: its host name: %s", id, cube_errno_text(rc)) : 0;
}

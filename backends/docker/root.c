/* SPDX-License-Identifier: Apache-2.0 */
/* files/: the root of a container on this machine.
 *
 * While it runs, its root mount is cloned out of its mount namespace, without what is mounted on it. When it is stopped,
 * nobody has its overlay mounted, and it is mounted here from the layers that the engine names. The two never stand for
 * each other: the overlay of an earlier run is given up when the state changes (root_by_run). */
#include "backends/docker/docker_priv.h"

#include "backends/base/child.h"
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT_ATTRS   (MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID)
#define ROOT_TRIES   40
#define ROOT_LOOK_MS 50

/* ---- of what runs: in the child, system calls only ---- */

static _Noreturn void root_child(int ns, int sock)
{
	struct mount_attr attr = {.attr_set = ROOT_ATTRS};
	long fd;

	if (!cube_child_enter(ns, CLONE_NEWNS))
		cube_child_exit(errno);
	fd = syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		cube_child_exit(errno);
	cube_child_exit(cube_child_send(sock, (int)fd));
}

/* The process may have ended, and its number be another's: the caller asks the engine again. */
static int root_of_process(int pid)
{
	cube_auto_fd ns = -1, in = -1, out = -1;
	int pair[2], fd = -1, status = 0;
	unsigned n = 0;
	char path[64], byte;
	pid_t child;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	in = pair[0];
	out = pair[1];
	child = cube_child(0);
	if (child == 0)
		root_child(ns, out);
	if (child < 0)
		return -errno;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -EIO;
	if (WEXITSTATUS(status) != 0)
		return -WEXITSTATUS(status);
	return cube_fd_recv(in, &byte, 1, &fd, 1, &n) == 1 && n == 1 ? fd : -EIO;
}

/* ---- whether, and how ---- */

const char *docker_root_why(const struct cube_docker *d)
{
	if (!d->local)
		return "the engine may be another machine";
	if (geteuid() != 0)
		return "only root reaches the files of a container from outside";
	if (d->engine.user_ns)
		return "the engine gives its containers other user ids";
	if (strcmp(d->engine.driver, "overlay2") != 0 && strcmp(d->engine.driver, "overlay") != 0)
		return "the engine keeps its images without overlayfs, so that a stopped container has no "
		       "files here";
	if (!docker_layers_can())
		return "Linux 6.8 or later is needed, for layers that are named one by one";
	return NULL;
}

int docker_root_workspace(struct cube_root *root, bool read_only)
{
	unsigned n = root->n_mounts;
	int fd;

	if (n >= CUBE_MOUNTS_MAX)
		return -ENOSPC;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(root->mounts[i].path, "/workspace") == 0)
			return 0;
	fd = openat(root->fd, "workspace", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	(void)snprintf(root->mounts[n].path, sizeof(root->mounts[n].path), "/workspace");
	root->mounts[n].fd = fd;
	root->mounts[n].read_only = read_only;
	root->n_mounts++;
	return 0;
}

/* The engine leaves names in /dev below what it mounts there. */
static int root_devices(const struct cube_docker *d, struct cube_root *root)
{
	char path[sizeof(d->path) + 16];
	unsigned n = root->n_mounts;
	struct stat st;

	if (fstatat(root->fd, "dev", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (n >= CUBE_MOUNTS_MAX)
		return -ENOSPC;
	(void)snprintf(path, sizeof(path), "%s/" DOCKER_EMPTY, d->path);
	root->mounts[n].fd = docker_tree_open(path, true);
	if (root->mounts[n].fd < 0)
		return root->mounts[n].fd;
	(void)snprintf(root->mounts[n].path, sizeof(root->mounts[n].path), "/dev");
	root->mounts[n].read_only = true;
	root->n_mounts++;
	return 0;
}

/* Its mounts are torn down before the engine knows that it has ended. */
static bool root_is_going(int pid, int rc)
{
	return pid != 0 && (rc == -EINVAL || rc == -ENOENT || rc == -ESRCH);
}

/* -EBUSY: it was started or stopped meanwhile. */
static int root_open(struct cube_docker *d, const char *id, int *ret_fd, json_t **ret_box,
		     struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL, *again = NULL;
	cube_auto_fd fd = -1;
	int rc = docker_box_get(d, id, NULL, &box, err), pid, code;

	if (rc < 0)
		return rc;
	pid = docker_box_pid(box);
	fd = pid != 0 ? root_of_process(pid) : docker_layers_mount(box);
	code = fd < 0 ? fd : 0;
	rc = docker_box_get(d, id, NULL, &again, err);
	if (rc < 0)
		return rc;
	if (docker_box_pid(again) != pid || root_is_going(pid, code))
		return cube_fail(err, -EBUSY, "the files of sandbox %s: it is just being started or stopped",
				 id);
	if (code < 0)
		return cube_fail(err, code, "the files of sandbox %s cannot be reached: %s", id,
				 cube_errno_text(code));
	*ret_fd = cube_steal_fd(&fd);
	*ret_box = cube_steal(box);
	return 0;
}

int docker_root(struct cube_backend *base, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	/* Its engine's other clients run commands in it, and copy files to it while it is stopped. */
	struct cube_root root = {.fd = -1, .generation = 1, .id_count = UINT32_MAX, .shared = true};
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_settle(d, id, err);

	if (rc < 0)
		return rc;
	for (int i = 0; (rc = root_open(d, id, &root.fd, &box, err)) == -EBUSY && i < ROOT_TRIES; i++)
		(void)poll(NULL, 0, ROOT_LOOK_MS);
	if (rc < 0)
		return rc;
	root.generation = docker_box_generation(box);
	rc = docker_volume_mounts(box, &root);
	if (rc == 0)
		rc = root_devices(d, &root);
	if (rc == 0)
		rc = docker_root_workspace(&root, false);
	if (rc == 0)
		rc = docker_binds_show(d, id, &root);
	if (rc < 0) {
		cube_root_close(&root);
		return cube_fail(err, rc, "the files of sandbox %s cannot be reached: %s", id,
				 cube_errno_text(rc));
	}
	*ret = root;
	return 0;
}

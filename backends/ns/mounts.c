/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts in the namespace of a running sandbox. */
#include "backends/ns/mounts.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSIDE_MAX (4u << 20) /* of mountinfo */

/* ---- mountinfo ---- */

struct inside_line {
	struct cube_ns_point point;
	char type[16], source[80];
};

/* Blanks, newlines and backslashes in it are octal. In place. */
static void inside_unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

/* ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE ... */
static bool inside_parse(const char *text, struct inside_line *l)
{
	const char *dash = strstr(text, " - "), *at = text;
	size_t n;

	if (!dash || sscanf(dash + 3, "%15s %79s", l->type, l->source) != 2)
		return false;
	l->point.id = strtoull(text, NULL, 10);
	for (int field = 0; field < 4 && at; field++)
		at = strchr(at + 1, ' ');
	if (!at || at >= dash)
		return false;
	n = strcspn(++at, " ");
	if (n >= sizeof(l->point.path))
		return false;
	memcpy(l->point.path, at, n);
	l->point.path[n] = 0;
	inside_unescape(l->point.path);
	return true;
}

/* What is wanted: NULL and 0 is whatever it may be. */
struct inside_want {
	const char *source, *path;
	uint64_t id;
	bool last; /* of several the last */
};

static bool inside_is_wanted(const struct inside_want *w, const struct inside_line *l)
{
	if (w->source && (strcmp(l->type, "overlay") != 0 || strcmp(l->source, w->source) != 0))
		return false;
	return (!w->path || strcmp(l->point.path, w->path) == 0) && (!w->id || l->point.id == w->id);
}

static int inside_find(pid_t init, const struct inside_want *want, struct cube_ns_point *ret)
{
	struct cube_buf text = CUBE_BUF(INSIDE_MAX);
	struct inside_line line;
	char path[64], *save = NULL;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)init);
	rc = cube_file_read(AT_FDCWD, path, &text);
	if (rc == 0)
		rc = -ENOENT;
	if (text.len > 0)
		for (char *l = strtok_r(text.data, "\n", &save); l && (rc < 0 || want->last);
		     l = strtok_r(NULL, "\n", &save)) {
			if (!inside_parse(l, &line) || !inside_is_wanted(want, &line))
				continue;
			*ret = line.point;
			rc = 0;
		}
	cube_buf_done(&text);
	return rc;
}

bool cube_ns_mount_is(pid_t init, const char *id)
{
	struct cube_ns_point p;

	return cube_ns_mount_overlay(init, id, "/", &p) == 0;
}

int cube_ns_mount_overlay(pid_t init, const char *source, const char *path, struct cube_ns_point *ret)
{
	return inside_find(init, &(struct inside_want){.source = source, .path = path}, ret);
}

int cube_ns_mount_at(pid_t init, const char *path, struct cube_ns_point *ret)
{
	return inside_find(init, &(struct inside_want){.path = path, .last = true}, ret);
}

int cube_ns_mount_number(pid_t init, uint64_t id, struct cube_ns_point *ret)
{
	return inside_find(init, &(struct inside_want){.id = id}, ret);
}

/* ---- in the child: system calls only ----
 *
 * A child, since the other namespace's root becomes the process's; other threads may have held locks at the
 * fork. Its exit code is the errno. */

struct inside_call {
	int ns;
	const char *path;
	uint64_t id; /* the mount that must be there; 0: any directory ... */
	bool unused; /* ... on which nothing is mounted */
	int fd;      /* attach: the mount; take: the socket on which it goes out */
	int (*act)(const struct inside_call *c, int at);
};

static int act_take(const struct inside_call *c, int at)
{
	int mount = open_tree(at, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	return mount < 0 ? errno : cube_child_send(c->fd, mount);
}

static int act_attach(const struct inside_call *c, int at)
{
	return move_mount(c->fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? errno
												    : 0;
}

/* By the directory itself: a path could be another one by now. */
static int act_detach(const struct inside_call *c, int at)
{
	(void)c;
	if (syscall(SYS_fchdir, at) < 0 || syscall(SYS_umount2, ".", MNT_DETACH) < 0)
		return errno;
	return 0;
}

static _Noreturn void inside_child(const struct inside_call *c)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	struct statx stx;
	long at;

	if (!cube_child_enter(c->ns, CLONE_NEWNS))
		cube_child_exit(errno);
	at = syscall(SYS_openat2, AT_FDCWD, c->path, &how, sizeof(how));
	if (at < 0)
		cube_child_exit(errno);
	if (c->id != 0 && (syscall(SYS_statx, at, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0 ||
			   stx.stx_mnt_id != c->id || !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)))
		cube_child_exit(EBUSY);
	cube_child_exit(c->act(c, (int)at));
}

/* @in: where act_take's mount arrives, and *ret is it; else -1. */
static int inside_run(pid_t init, struct inside_call *c, int in, int *ret)
{
	cube_auto_fd ns = -1;
	unsigned n = 0;
	int status = 0;
	char path[64], byte;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)init);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return -errno;
	c->ns = ns;
	pid = cube_child(0);
	if (pid == 0)
		inside_child(c);
	if (pid < 0)
		return -errno;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -EIO;
	if (WEXITSTATUS(status) != 0)
		return -WEXITSTATUS(status);
	if (in >= 0 && (cube_fd_recv(in, &byte, 1, ret, 1, &n) != 1 || n != 1))
		return -EIO;
	return 0;
}

int cube_ns_mount_take(pid_t init, const struct cube_ns_point *p, int *ret_fd)
{
	struct inside_call c = {.path = p->path, .id = p->id, .act = act_take};
	cube_auto_fd in = -1, out = -1;
	int pair[2], fd = -1, rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	in = pair[0];
	out = c.fd = pair[1];
	rc = inside_run(init, &c, in, &fd);
	if (rc == 0)
		*ret_fd = fd;
	return rc;
}

int cube_ns_mount_attach(pid_t init, int fd, const char *path, uint64_t *ret_id)
{
	struct inside_call c = {.path = path, .unused = true, .fd = fd, .act = act_attach};
	struct statx stx;
	int rc;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0)
		return -errno;
	rc = inside_run(init, &c, -1, NULL);
	if (rc == 0)
		*ret_id = stx.stx_mnt_id; /* a mount keeps its number where it is moved */
	return rc;
}

int cube_ns_mount_detach(pid_t init, const struct cube_ns_point *p)
{
	struct inside_call c = {.path = p->path, .id = p->id, .fd = -1, .act = act_detach};

	return inside_run(init, &c, -1, NULL);
}

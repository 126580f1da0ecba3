/* SPDX-License-Identifier: Apache-2.0 */
/* Containers that were not made with a door for cube-init: adopted ones.
 *
 * The agent's binary and a door are put into a directory of the container's root for the moment in which the engine
 * executes the agent there, with what the container itself may do, beside its own first process. After that nothing of
 * it is left in the files. It has its listener like any other agent, so later daemons find it; `exec` in the sandbox's
 * directory here has the engine's name of it, by which it is ended when the container is let go. */
#include "backends/docker/docker_priv.h"

#include "backends/agent/door.h"
#include "backends/agent/file.h"
#include "backends/agent/listener.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADOPT_EXEC     "exec" /* in its directory here */
#define ADOPT_EXEC_ID  64
#define ADOPT_SLICE_MS 500
#define ADOPT_NS       UINT64_C(20000000000)
#define ADOPT_TERM_MS  2000
#define ADOPT_KILL_MS  5000

/* The directory inside, for the moment. */
struct adopt_place {
	struct cube_root root;
	int dir;
	char name[32]; /* "" : none was made */
};

static void place_done(struct adopt_place *p)
{
	cube_close_auto(&p->dir);
	if (p->name[0] != '\0')
		(void)cube_file_remove_tree(p->root.fd, p->name);
	cube_root_close(&p->root);
}

/* A name that nobody inside can have waited for. */
static int place_make(struct adopt_place *p)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -EIO;
	(void)snprintf(p->name, sizeof(p->name), ".cube-%016llx", (unsigned long long)n);
	if (mkdirat(p->root.fd, p->name, 0700) < 0) {
		p->name[0] = '\0';
		return -errno;
	}
	p->dir = openat(p->root.fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return p->dir < 0 ? -errno : 0;
}

static int place_fill(const struct cube_docker *d, const struct adopt_place *p)
{
	cube_auto_fd from = open(d->agent, O_RDONLY | O_CLOEXEC), to = -1;

	if (from < 0)
		return -errno;
	to = openat(p->dir, "init", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
	if (to < 0)
		return -errno;
	return cube_agent_file_copy(from, to);
}

static int place_open(struct cube_docker *d, const char *id, struct adopt_place *p, struct cube_err *err)
{
	int rc = docker_root(&d->base, id, &p->root, err);

	if (rc < 0)
		return rc;
	rc = place_make(p);
	if (rc == 0)
		rc = place_fill(d, p);
	return rc < 0 ? cube_fail(err, rc, "the agent cannot be put into container %.12s: %s", id,
				  cube_errno_text(rc))
		      : 0;
}

/* ---- the engine executes it ---- */

static int adopt_exec_ask(struct cube_docker *d, const char *exec, const char *method, const char *verb,
			  const json_t *body, struct cube_cancel *cancel, json_t **ret, struct cube_err *err)
{
	char path[ADOPT_EXEC_ID + 32];

	(void)snprintf(path, sizeof(path), "/exec/%s/%s", exec, verb);
	return docker_ask(d,
			  &(struct docker_ask){.method = method,
					       .path = path,
					       .body = body,
					       .what = "execute the agent in a container",
					       .ret = ret},
			  cancel, err);
}

static int adopt_exec_make(struct cube_docker *d, const char *id, const char *inside,
			   char ret_exec[ADOPT_EXEC_ID + 1], struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = NULL, *made = NULL;
	char init[64], door[64], run[64];
	const char *exec;
	int rc;

	(void)snprintf(init, sizeof(init), "/%s/init", inside);
	(void)snprintf(door, sizeof(door), "/%s/" CUBE_AGENT_DOOR, inside);
	(void)snprintf(run, sizeof(run), "/dev/%s", inside);
	body = json_pack("{s:[s,s,s,s,s],s:s,s:s}", "Cmd", init, "--door", door, "--run-dir", run, "User",
			 "0:0", "WorkingDir", "/");
	if (body == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = docker_box_ask(
		d, id,
		&(struct docker_ask){
			.method = "POST", .path = "/exec", .body = body, .what = "enter", .ret = &made},
		cancel, err);
	if (rc < 0)
		return rc;
	exec = cube_json_str(made, "Id", "");
	if (strlen(exec) != ADOPT_EXEC_ID || strspn(exec, "0123456789abcdef") != ADOPT_EXEC_ID)
		return cube_fail(err, -EREMOTEIO, "the engine at %.100s gave no name for what it executes",
				 d->where);
	(void)snprintf(ret_exec, ADOPT_EXEC_ID + 1, "%s", exec);
	return 0;
}

/* Its number here; 0: not yet. -EHOSTDOWN: it has ended. */
static int adopt_exec_pid(struct cube_docker *d, const char *exec, struct cube_cancel *cancel,
			  struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	int rc = adopt_exec_ask(d, exec, "GET", "json", NULL, cancel, &o, err);
	int64_t pid;

	if (rc < 0)
		return rc;
	pid = cube_json_int(o, "Pid", 0);
	if (!cube_json_bool(o, "Running", false))
		return cube_fail(err, -EHOSTDOWN, "the agent has ended at once, with code %d",
				 (int)cube_json_int(o, "ExitCode", -1));
	return pid > 0 && pid < INT_MAX ? (int)pid : 0;
}

static int adopt_hand(struct cube_docker *d, const char *exec, int door, int listener,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + ADOPT_NS;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && cube_clock_mono() < end) {
		rc = adopt_exec_pid(d, exec, cancel, err);
		if (rc >= 0)
			rc = cube_agent_door_hand(door, rc, listener, ADOPT_SLICE_MS, cancel, err);
	}
	return rc;
}

static int adopt_run(struct cube_docker *d, const char *id, const struct adopt_place *p, int dir,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *how = json_pack("{s:b,s:b}", "Detach", 1, "Tty", 0);
	char exec[ADOPT_EXEC_ID + 1];
	cube_auto_fd listener = -1;
	int door = -1, rc = adopt_exec_make(d, id, p->name, exec, cancel, err);

	if (rc == 0 && cube_file_replace(dir, ADOPT_EXEC, exec, strlen(exec), 0600) < 0)
		rc = cube_fail(err, -EIO, "cannot note what is executed there");
	if (rc == 0)
		rc = cube_agent_listener_make(dir, &listener, err);
	if (rc == 0)
		rc = cube_agent_door_open(p->dir, &door, err);
	if (rc == 0)
		rc = adopt_exec_ask(d, exec, "POST", "start", how, cancel, NULL, err);
	if (rc == 0)
		rc = adopt_hand(d, exec, door, listener, cancel, err);
	cube_agent_door_close(p->dir, door);
	return rc;
}

int docker_enter_beside(struct cube_docker *d, const char *id, struct cube_cancel *cancel,
			struct cube_err *err)
{
	cube_auto_fd dir = docker_box_dir(d, id, true, err);
	struct adopt_place p = {.root = {.fd = -1}, .dir = -1};
	int rc = dir < 0 ? dir : place_open(d, id, &p, err);

	if (rc == 0)
		rc = adopt_run(d, id, &p, dir, cancel, err);
	place_done(&p);
	return rc < 0 ? cube_fail_in(err, "container %.12s", id) : 0;
}

/* ---- adopt, let go ---- */

/* By its name it is not taken, since a name may be another's tomorrow. */
static int adopt_named(struct cube_docker *d, const char *name, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	char path[CUBE_ID_MAX + 32];
	int rc;

	(void)snprintf(path, sizeof(path), "/containers/%s/json", name);
	rc = docker_ask(d,
			&(struct docker_ask){
				.method = "GET", .path = path, .what = "find the container", .ret = &box},
			cancel, err);
	if (rc < 0)
		return rc;
	return cube_fail(err, -ENOENT, "'%s' is not the whole id of that container: adopt=%.64s", name,
			 cube_json_str(box, "Id", ""));
}

int docker_adopt(struct cube_backend *base, const char *id, const char *uid, struct cube_cancel *cancel,
		 struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	char ref[DOCKER_REF];

	(void)uid; /* the engine has no place for another mark */
	if (docker_ref(id, ref, NULL) < 0)
		return adopt_named(d, id, cancel, err);
	return docker_box_get(d, id, cancel, &box, err);
}

/* TERM, and then TERM again, which is KILL for all that it runs. */
static void adopt_end_agent(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
	if (poll(&p, 1, ADOPT_TERM_MS) > 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
	if (poll(&p, 1, ADOPT_KILL_MS) == 0)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Asked for its number again once that is held fast: it may have been another's by then. */
static int adopt_leave(struct cube_docker *d, const char *exec, struct cube_err *err)
{
	int pid = adopt_exec_pid(d, exec, NULL, err);
	cube_auto_fd fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd >= 0 && adopt_exec_pid(d, exec, NULL, err) == pid)
		adopt_end_agent(fd);
	return pid == -ENOENT || pid == -EHOSTDOWN || pid == -EBUSY ? 0 : pid < 0 ? pid : 0;
}

int docker_let_go(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	struct cube_buf exec = CUBE_BUF(ADOPT_EXEC_ID);
	char ref[DOCKER_REF];
	cube_auto_fd dir = docker_ref(id, ref, NULL) == 0 ? docker_box_dir(d, id, false, NULL) : -1;
	int rc = 0;

	if (dir < 0)
		return 0;
	rc = docker_binds_leave(d, id, err);
	if (rc == -ENOENT)
		rc = 0;
	if (rc == 0 && cube_file_read(dir, ADOPT_EXEC, &exec) == 0 && exec.len == ADOPT_EXEC_ID)
		rc = adopt_leave(d, cube_buf_str(&exec), err);
	if (rc == 0 && (exec.len > 0 || !docker_is_ours(id))) /* else its door is in there, and it goes on */
		rc = docker_box_forget(d, id, err);
	cube_buf_done(&exec);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keeper, supervisor and worker. */
#include "fs/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/registry.h"
#include "fs/canary.h"
#include "fs/hung.h"
#include "fs/process.h"
#include "fs/takeover.h"
#include "fs/keep/keep.h"
#include "fs/tree/proc.h"

#define SUPERVISE_LOOK_MS  200
#define SUPERVISE_STUCK_NS UINT64_C(2000000000)
#define SUPERVISE_SILENT   CUBE_REVIVE_SILENT

/* ---- telling who started us ---- */

void cube_process_say(const struct cube_start *s, const char *text)
{
	if (s->ready_fd >= 0)
		(void)cube_file_write_all(s->ready_fd, text, strlen(text));
}

int cube_process_fail(const struct cube_start *s, const struct cube_err *err)
{
	cube_log(CUBE_LOG_ERROR, "start", "%s", err->text);
	if (s->ready_fd >= 0)
		cube_process_say(s, err->text);
	else
		(void)fprintf(stderr, "cubefs: %s\n", err->text);
	return CUBE_PROCESS_FAILED;
}

int cube_supervise_wait(int ready_fd, const struct cube_state_dir *state, struct cube_err *err)
{
	char text[CUBE_ERR_TEXT];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(text) - 1 && (n = read(ready_fd, text + len, sizeof(text) - 1 - len)) != 0) {
		if (n > 0)
			len += (size_t)n;
		else if (errno != EINTR)
			break;
		if (len == strlen(CUBE_PROCESS_READY) && memcmp(text, CUBE_PROCESS_READY, len) == 0)
			return 0;
	}
	text[len] = '\0';
	if (len == 0)
		return cube_fail(err, -EIO,
				 "the daemon ended before the mount could be used; %s/cubefs.log may say why",
				 state->path);
	return cube_fail(err, -EIO, "%s", text);
}

/* ---- signals ---- */

static int supervise_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SUPERVISE_SILENT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The signals as a child finds them that watches its own. */
static void supervise_unblock_child(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* A child that gets SIGTERM when its parent ends, or -1. */
static pid_t supervise_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(CUBE_PROCESS_FAILED);
	}
	return pid;
}

static void supervise_note_end(const char *who, int status)
{
	if (WIFSIGNALED(status))
		cube_log(CUBE_LOG_ERROR, "supervise", "the %s ended by signal %d", who, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		cube_log(CUBE_LOG_ERROR, "supervise", "the %s ended with code %d", who, WEXITSTATUS(status));
}

static void keeper_unmount(struct cube_start *s)
{
	struct cube_err err = {0};
	bool busy;

	if (cube_mount_detach(&s->mount, &busy, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "keeper", "%s", err.text);
	else if (busy)
		cube_log(CUBE_LOG_WARNING, "keeper",
			 "%s was in use and is detached: it ends for who uses it (fuser -vm %s)",
			 s->mount.path, s->mount.path);
}

/* One request of the worker; false when there is none. */
static bool keeper_hear(int line, struct cube_canary *canary, struct cube_start *s)
{
	struct cube_keeper_ask ask;
	int32_t signal;

	if (recv(line, &ask, sizeof(ask), MSG_DONTWAIT) != sizeof(ask))
		return false;
	if (ask.what == CUBE_KEEPER_UNMOUNT) {
		cube_canary_done(canary);
		keeper_unmount(s);
	}
	if (ask.what == CUBE_KEEPER_EXIT) {
		signal = cube_proc_exit_signal(ask.pid);
		(void)send(line, &signal, sizeof(signal), MSG_NOSIGNAL);
	}
	return true;
}

/* What a watching process reacts to besides signals; -1: none of that. */
struct supervise_eyes {
	int signal_fd;
	int line;                   /* requests of the worker */
	int mounts;                 /* mountinfo: polled, tells of every change */
	struct cube_canary *canary; /* the keeper's; NULL */
	struct cube_revive *revive; /* the supervisor's, of the worker; NULL */
	struct cube_process *p;
};

/* Has @child ended? What else ended, a holder of open files, is nobody's. */
static bool supervise_reap(pid_t child, struct cube_canary *canary, int *status)
{
	pid_t pid;

	while ((pid = waitpid(-1, status, WNOHANG)) > 0) {
		if (pid == child)
			return true;
		if (canary != NULL)
			cube_canary_ended(canary, pid);
	}
	return false;
}

/* It was killed, and one of its threads is in the kernel, waiting for a lock that only an answer of the next worker
 * frees (the notifier, behind a mkdir): then its end is not told before that one serves. One that ends by itself looks the
 * same while its threads end one after the other, but not for long. */
static bool supervise_gone(pid_t child)
{
	char path[32], text[256];
	siginfo_t info = {0};
	cube_auto_fd fd = -1;
	const char *at;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strrchr(text, ')');
	return at != NULL && at[1] == ' ' && at[2] == 'Z' &&
	       waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* @since: when it was first seen so; 0. */
static bool supervise_stuck(pid_t child, uint64_t *since)
{
	uint64_t now = cube_clock_mono();

	if (!supervise_gone(child))
		*since = 0;
	else if (*since == 0)
		*since = now;
	return *since != 0 && now - *since > SUPERVISE_STUCK_NS;
}

/* The keeper says, each second, how long the mount has been silent. The worker that does not serve is ended. */
static void supervise_silence(pid_t worker, const struct supervise_eyes *eyes,
			      const struct signalfd_siginfo *info, const struct cube_start *s)
{
	unsigned seconds = (unsigned)info->ssi_int;

	if (eyes->revive == NULL || info->ssi_code != SI_QUEUE || (pid_t)info->ssi_pid != getppid() ||
	    !cube_revive_hung(eyes->revive, seconds))
		return;
	cube_log(CUBE_LOG_WARNING, "supervise",
		 "the worker has not answered for %u seconds and is ended: %s/hung.1 says what it was at",
		 seconds, s->state.path);
	cube_hung_write(s->state.path, worker, seconds);
	(void)kill(worker, SIGKILL);
}

static void supervise_care(pid_t child, const struct supervise_eyes *eyes)
{
	unsigned silent;

	if (eyes->revive != NULL) {
		cube_revive_look(eyes->revive);
		cube_upgrade_look(eyes->p, eyes->revive, child);
	}
	if (eyes->canary == NULL)
		return;
	silent = cube_canary_look(eyes->canary);
	if (silent > 0)
		(void)sigqueue(child, SUPERVISE_SILENT, (union sigval){.sival_int = (int)silent});
}

static void supervise_signalled(pid_t child, const struct supervise_eyes *eyes, bool *ret_told)
{
	struct signalfd_siginfo info;

	while (read(eyes->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SUPERVISE_SILENT)
			supervise_silence(child, eyes, &info, eyes->p->start);
		if (info.ssi_signo == SIGCHLD || info.ssi_signo == SUPERVISE_SILENT)
			continue;
		*ret_told = true;
		(void)kill(child, SIGTERM);
	}
}

/* What others say: the worker, the keeper or the supervisor, who wants to upgrade. False: nothing. */
static bool supervise_hear(pid_t child, const struct supervise_eyes *eyes, int fd)
{
	struct cube_process *p = eyes->p;

	if (fd == eyes->line)
		return keeper_hear(fd, eyes->canary, p->start);
	if (fd == p->door_fd)
		return cube_upgrade_knock(p);
	if (eyes->canary != NULL)
		return cube_upgrade_follow(p, eyes->line, child, eyes->canary);
	return cube_upgrade_hear(p);
}

/* Waits for @child, handing signals on to it; *ret_told: one of them told us to end. Its wait status. */
static int supervise_watch(pid_t child, const struct supervise_eyes *eyes, bool *ret_told)
{
	struct cube_start *s = eyes->p->start;
	struct pollfd p[] = {{.fd = eyes->signal_fd, .events = POLLIN},
			     {.fd = eyes->mounts, .events = POLLPRI},
			     {.fd = eyes->line, .events = POLLIN},
			     {.fd = eyes->p->boss_fd, .events = POLLIN},
			     {.fd = eyes->p->door_fd, .events = POLLIN}};
	uint64_t gone = 0;
	int status;

	for (;;) {
		if (poll(p, CUBE_COUNT(p), SUPERVISE_LOOK_MS) < 0)
			continue;
		if (supervise_stuck(child, &gone))
			return SIGKILL;
		supervise_signalled(child, eyes, ret_told);
		/* Unmounted by others; who holds it elsewhere (another namespace, an open file) does not
		 * matter. */
		if (p[1].revents != 0 && s->mount.path != NULL && !cube_mount_there(&s->mount)) {
			(void)kill(child, SIGTERM);
			p[1].fd = -1;
		}
		for (size_t i = 2; i < CUBE_COUNT(p); i++)
			if (p[i].revents != 0 && !supervise_hear(child, eyes, p[i].fd) &&
			    p[i].revents & (POLLHUP | POLLERR))
				p[i].fd = -1;
		if (supervise_reap(child, eyes->canary, &status))
			return status;
		supervise_care(child, eyes);
	}
}

static int supervise_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : CUBE_PROCESS_FAILED;
}

/* ---- supervisor ---- */

static int supervisor_prepare_one(const struct cube_start *s, const char *name, const char *kind,
				  const struct cube_conf_section *section, struct cube_err *err)
{
	const struct cube_backend_ops *ops = cube_backend_find(kind);
	cube_auto_str dir = cube_asprintf("%s/backends/%s", s->state.path, name);
	int r;

	if (ops == NULL || ops->prepare == NULL)
		return 0; /* a kind that does not exist is reported when the backend is opened */
	if (dir == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = cube_file_mkdir_path(dir, 0700);
	if (r < 0)
		return cube_fail(err, r, "%s: %s", dir, cube_errno_text(r));
	return ops->prepare(dir, section, err);
}

int cube_supervisor_prepare(const struct cube_process *p, bool entered, struct cube_err *err)
{
	const struct cube_start *s = p->start;
	const struct cube_conf_section *section;
	bool any = false;
	int r = 0;

	for (size_t i = 0; entered && cube_backend_kinds[i] != NULL; i++)
		if (cube_backend_kinds[i]->entered != NULL)
			cube_backend_kinds[i]->entered(p->uid != 0);

	for (size_t i = 0; r == 0 && (section = cube_conf_at(s->conf, i)) != NULL; i++) {
		const char *name = cube_conf_section_name(section), *kind = cube_conf_get(section, "kind");

		if (strncmp(name, "backend ", strlen("backend ")) != 0)
			continue;
		any = true;
		name += strlen("backend ");
		r = supervisor_prepare_one(s, name, kind != NULL ? kind : name, section, err);
	}
	if (!any)
		r = supervisor_prepare_one(s, cube_backend_kinds[0]->kind, cube_backend_kinds[0]->kind, NULL,
					   err);
	return r;
}

static int supervisor_worker(struct cube_process *p, struct cube_revive *v)
{
	(void)prctl(PR_SET_NAME, "cubefs");
	supervise_unblock_child();
	cube_revive_done(v);
	cube_upgrade_drop(&p->upgrade);
	cube_hung_listen();
	return cube_worker_run(p);
}

/* Is there to be another worker? Where another program takes over there is another supervisor. */
static bool supervisor_again(struct cube_process *p, struct cube_revive *v, int status, bool told,
			     int signal_fd)
{
	bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if (!told && !ended && cube_upgrade_ended(p, v))
		return true;
	return cube_revive_again(v, status, told, signal_fd);
}

/* Workers, one after the other, as long as they die and nobody has told us to end. The exit code. */
static int supervisor_serve(struct cube_process *p, struct cube_revive *v, int signal_fd)
{
	struct supervise_eyes eyes = {.signal_fd = signal_fd, .line = -1, .mounts = -1, .revive = v, .p = p};
	struct cube_err err = {0};
	bool told = false;
	int status;
	pid_t worker;

	do {
		cube_revive_begin(v);
		worker = supervise_fork();
		if (worker == 0)
			return supervisor_worker(p, v);
		if (worker < 0) {
			cube_fail_errno(&err, "the worker cannot be started");
			return cube_process_fail(p->start, &err);
		}
		cube_close_auto(&p->start->ready_fd);
		p->start->ready_fd = -1;
		status = supervise_watch(worker, &eyes, &told);
	} while (supervisor_again(p, v, status, told, signal_fd));
	cube_takeover_end(v->keep);
	cube_revive_done(v);
	supervise_note_end("worker", status);
	return supervise_code(status);
}

int cube_supervisor_go(struct cube_process *p)
{
	struct cube_revive v;
	struct cube_err err = {0};
	int signal_fd, code;

	cube_hung_init();
	signal_fd = supervise_signals();
	if (signal_fd < 0) {
		cube_fail_errno(&err, "signalfd");
		return cube_process_fail(p->start, &err);
	}
	code = cube_revive_init(&v, p->keep_fd, &err) < 0 ? cube_process_fail(p->start, &err)
							  : supervisor_serve(p, &v, signal_fd);
	cube_upgrade_drop(&p->upgrade);
	cube_close_auto(&p->boss_fd);
	cube_close_auto(&p->keeper_fd);
	cube_close_auto(&p->keep_fd);
	(void)close(signal_fd);
	return code;
}

static int supervisor_run(struct cube_process *p)
{
	struct cube_err err = {0};

	(void)prctl(PR_SET_NAME, "cubefs-super");
	if (cube_supervisor_prepare(p, false, &err) < 0 || cube_keep_make(&p->keep_fd, &err) < 0)
		return cube_process_fail(p->start, &err);
	cube_mount_let_go(&p->start->mount);
	return cube_supervisor_go(p);
}

/* ---- keeper ---- */

int cube_keeper_go(struct cube_process *p, int line, pid_t supervisor)
{
	struct cube_canary canary;
	struct supervise_eyes eyes = {.signal_fd = supervise_signals(),
				      .line = line,
				      .mounts = p->mounts_fd,
				      .canary = &canary,
				      .p = p};
	bool told = false;
	int status;

	cube_canary_init(&canary, p->start->mount.path);
	status = supervise_watch(supervisor, &eyes, &told);
	cube_canary_done(&canary);
	supervise_note_end("supervisor", status);
	if (WIFEXITED(status)) /* after its workers; else one may serve until its own end */
		cube_mount_abort(&p->start->mount);
	keeper_unmount(p->start);
	cube_close_auto(&p->door_fd);
	cube_close_auto(&p->boss_fd);
	cube_close_auto(&p->mounts_fd);
	(void)close(line);
	cube_close_auto(&eyes.signal_fd);
	return supervise_code(status);
}

static int keeper_run(struct cube_process *p, int line[2], int boss[2])
{
	struct cube_start *s = p->start;
	int signal_fd = supervise_signals(), status;
	struct cube_err err = {0};
	pid_t supervisor = signal_fd < 0 ? -1 : supervise_fork();

	if (supervisor == 0) {
		supervise_unblock_child();
		(void)close(signal_fd);
		(void)close(line[0]);
		(void)close(boss[0]);
		cube_close_auto(&p->mounts_fd);
		p->keeper_fd = line[1];
		p->boss_fd = boss[1];
		status = supervisor_run(p);
		cube_close_auto(&p->fuse_fd);
		return status;
	}
	(void)close(signal_fd); /* they stay blocked, and wait for the next one */
	(void)close(line[1]);
	(void)close(boss[1]);
	p->boss_fd = boss[0];
	cube_close_auto(&p->fuse_fd);
	p->fuse_fd = -1;
	if (supervisor < 0) {
		cube_fail_errno(&err, "the supervisor cannot be started");
		status = cube_process_fail(s, &err);
		keeper_unmount(s);
		return status;
	}
	cube_close_auto(&s->ready_fd);
	s->ready_fd = -1;
	if (s->mount.path != NULL)
		p->door_fd = cube_upgrade_door(s->state.path);
	if (s->mount.path != NULL && p->door_fd < 0)
		cube_log(CUBE_LOG_WARNING, "keeper", "%s/upgrade: %s: nobody can upgrade this mount",
			 s->state.path, cube_errno_text(p->door_fd));
	return cube_keeper_go(p, line[0], supervisor);
}

static int supervise_pairs(int line[2], int boss[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, boss) == 0)
		return 0;
	(void)close(line[0]);
	(void)close(line[1]);
	return -errno;
}

int cube_supervise(struct cube_start *s)
{
	struct cube_process p = {.start = s,
				 .fuse_fd = -1,
				 .keeper_fd = -1,
				 .keep_fd = -1,
				 .mounts_fd = -1,
				 .boss_fd = -1,
				 .door_fd = -1,
				 .uid = geteuid(),
				 .gid = getegid()};
	struct cube_err err = {0};
	int line[2] = {-1, -1}, boss[2] = {-1, -1};

	cube_upgrade_init(&p.upgrade);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	cube_state_dir_sign(&s->state, getpid());
	if (supervise_pairs(line, boss) < 0) {
		cube_fail_errno(&err, "socket pair");
		return cube_process_fail(s, &err);
	}
	p.mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (cube_mount_attach(&s->mount, s->opts->allow_other, &p.fuse_fd, &err) < 0) {
		cube_close_auto(&p.mounts_fd);
		for (int i = 0; i < 2; i++) {
			(void)close(line[i]);
			(void)close(boss[i]);
		}
		return cube_process_fail(s, &err);
	}
	return keeper_run(&p, line, boss);
}

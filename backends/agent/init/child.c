/* SPDX-License-Identifier: Apache-2.0 */
/* Between fork and exec. */
#include "backends/agent/init/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <grp.h>

#include "backends/agent/init/child_exec.h"
#include "backends/agent/init/error.h"
#include "backends/agent/init/session_files.h"
#include "backends/agent/init/user.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define CODE_SETUP  126
#define FD_TEXT     3
#define FD_ERR      4
#define FD_SAFE     10 /* above all that the child's own descriptors become */
#define SIGNALS_END 65

static struct rlimit child_nofile;
static bool child_protected;

void init_child_setup(void)
{
	char text[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		child_protected = read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-';
		(void)close(fd);
	}
	if (getrlimit(RLIMIT_NOFILE, &child_nofile) == 0) {
		struct rlimit all = {child_nofile.rlim_max, child_nofile.rlim_max};

		(void)setrlimit(RLIMIT_NOFILE, &all);
	}
}

void init_child_fail(int fd, int code, int err, const char *fmt, ...)
{
	struct init_child_failure f = {.code = code, .err = err};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	(void)(write(fd, &f, sizeof(f)) < 0);
	_exit(code);
}

static void close_from(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && fd < 65536; fd++)
		(void)close((int)fd);
}

void init_child_close_all_but(int keep)
{
	if (keep > 0)
		close_from(0, (unsigned)keep - 1);
	close_from((unsigned)(keep + 1), ~0u);
}

/* A failed dup shows in dup2 or write as EBADF. */
static int child_move(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_SAFE);
}

/* The slave side, as the terminal that this session of processes is controlled by. */
static int child_terminal(const struct init_child *c, int err)
{
	int fd = ioctl(c->tty, TIOCGPTPEER, O_RDWR | O_NOCTTY);

	if (fd < 0)
		init_child_fail(err, CODE_SETUP, -errno, "the terminal could not be opened: %s",
				init_error(errno));
	if (ioctl(fd, TIOCSCTTY, 0) < 0)
		init_child_fail(err, CODE_SETUP, -errno, "the terminal could not be taken: %s",
				init_error(errno));
	return child_move(fd);
}

/* Puts everything in its place; gives where failures go from then on. */
static int child_descriptors(const struct init_child *c)
{
	int moved = child_move(c->err);
	int err = moved >= 0 ? moved : c->err;
	int text = child_move(c->text);
	int session = child_move(c->session);
	int tty = c->tty >= 0 ? child_terminal(c, err) : -1;
	int io[3];

	for (int i = 0; i < 3; i++) {
		io[i] = tty >= 0 ? tty : child_move(c->io[i]);
		if (io[i] < 0)
			io[i] = child_move(open("/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
	}
	for (int i = 0; i < 3; i++) {
		if (io[i] < 0 || dup2(io[i], i) < 0)
			init_child_fail(err, CODE_SETUP, -errno, "descriptor %d could not be opened: %s", i,
					init_error(errno));
	}
	if (text >= 0 && dup2(text, FD_TEXT) < 0)
		init_child_fail(err, CODE_SETUP, -errno, "the text could not be given: %s",
				init_error(errno));
	if (dup3(err, FD_ERR, O_CLOEXEC) < 0)
		init_child_fail(err, CODE_SETUP, -errno, "no descriptor: %s", init_error(errno));
	if (session >= 0 && dup3(session, FD_ERR + 1, O_CLOEXEC) < 0)
		init_child_fail(err, CODE_SETUP, -errno, "no descriptor: %s", init_error(errno));
	close_from(FD_ERR + 1 + (session >= 0), ~0u);
	if (text < 0)
		(void)close(FD_TEXT);
	return FD_ERR;
}

static void child_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig < SIGNALS_END; sig++)
		(void)sigaction(sig, &dfl, NULL);
	(void)sigemptyset(&none);
	(void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void child_limits(void)
{
	int fd;

	if (child_nofile.rlim_max > 0)
		(void)setrlimit(RLIMIT_NOFILE, &child_nofile);
	if (!child_protected)
		return;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)(write(fd, "0", 1) < 0);
		(void)close(fd);
	}
}

/* Becomes the user: groups, group, user, in this order, since each step takes away the right to the others.
 */
static void child_user(const struct init_child *c, int err)
{
	struct init_user u;
	char why[200];
	int r;

	if (c->user[0] == '\0')
		return;
	r = init_user_find(c->user, &u, why, sizeof(why));
	if (r < 0)
		init_child_fail(err, CODE_SETUP, r, "%s", why);
	if (c->tty >= 0)
		(void)(fchown(0, u.uid, u.gid) < 0); /* a terminal of a devpts that has none: as it is */
	if (c->session >= 0)
		init_session_files_give(FD_ERR + 1, u.uid, u.gid);
	if (u.uid == geteuid() && u.gid == getegid() && u.n_groups == 1)
		return;
	if (setgroups(u.n_groups, u.groups) < 0 || setresgid(u.gid, u.gid, u.gid) < 0 ||
	    setresuid(u.uid, u.uid, u.uid) < 0)
		init_child_fail(err, CODE_SETUP, -errno, "user %s cannot be taken here: %s", c->user,
				init_error(errno));
}

static void child_directory(const struct init_child *c, int err)
{
	if (chdir(c->cwd) == 0 || (!c->cwd_must && chdir("/") == 0))
		return;
	init_child_fail(err, CODE_SETUP, -errno, "directory %.150s: %s", c->cwd, init_error(errno));
}

_Noreturn void init_child_run(const struct init_child *c)
{
	int err;

	(void)setsid();
	child_limits(); /* first: the agent's own limit may be too low for what follows */
	err = child_descriptors(c);
	child_user(c, err);
	if (c->session >= 0)
		(void)close(FD_ERR + 1);
	child_directory(c, err);
	(void)umask(022);
	child_signals();
	init_child_exec(c, err);
}

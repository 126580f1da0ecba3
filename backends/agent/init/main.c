/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: process 1 of a sandbox. It runs commands for the cubefs daemon and outlives it.
 *
 *   main.c      options, start-up                   ev.c         the loop
 *   conn.c      the connection                      dispatch.c   messages to functions
 *   actions.c   what they do                        report.c     what the daemon is told
 *   door.c      a listener that is handed over
 *   job*.c      jobs                                session*.c   shells that live on
 *   output.c    pipes into spools                   stream.c     spools into DATA
 *   input.c     stdin                               pty.c        terminals
 *   child*.c    between fork and exec               user.c       users
 *   group*.c    everything that a job started       procs.c      /proc
 *   everyone.c  all processes at once               shell.c      which shell
 *   times.c     the end of its life, and what ended commands left
 *   machine.c   as process 1 of a virtual machine     port.c       what its hypervisor asks
 *
 * The protocol is in docs/cube-init-protocol.md. Everything inside the sandbox is hostile: the agent is not
 * dumpable, waits for nothing but the loop, and takes nothing that it reads from inside to be well formed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/agent/init/actions.h"
#include "backends/agent/init/child.h"
#include "backends/agent/init/conn.h"
#include "backends/agent/init/door.h"
#include "backends/agent/init/error.h"
#include "backends/agent/init/ev.h"
#include "backends/agent/init/group.h"
#include "backends/agent/init/machine.h"
#include "backends/agent/init/port.h"
#include "backends/agent/init/procs.h"
#include "backends/agent/init/pty.h"
#include "backends/agent/init/session.h"
#include "backends/agent/init/shell.h"

#define RUN_DIR  "/dev/.cube"
#define PATIENCE (UINT64_C(86400000) * INIT_MS)

struct options {
	int listen_fd, stream_fd, cgroup_fd, port_fd;
	bool stdio, machine;
	const char *door;
	const char *run_dir;
	const char *shell;
};

static const char usage[] = "usage: cube-init (--listen-fd N | --door PATH | --stream-fd N | --stdio) "
			    "[--cgroup-fd N] [--run-dir DIR] [--shell PATH] [--machine] "
			    "[--port-fd N] [--disk-fd N]...\n";

static const struct option long_options[] = {
	{"listen-fd", required_argument, NULL, 'l'},
	{"door", required_argument, NULL, 'd'},
	{"stream-fd", required_argument, NULL, 's'},
	{"stdio", no_argument, NULL, 'i'},
	{"cgroup-fd", required_argument, NULL, 'c'},
	{"run-dir", required_argument, NULL, 'r'},
	{"shell", required_argument, NULL, 'S'},
	{"machine", no_argument, NULL, 'm'},
	{"port-fd", required_argument, NULL, 'p'},
	{"disk-fd", required_argument, NULL, 'k'},
	{NULL, 0, NULL, 0},
};

static bool option_fd(const char *text, int *ret)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end != '\0' || v < 0 || v > 1 << 20 || fcntl((int)v, F_GETFD) < 0)
		return false;
	*ret = (int)v;
	return true;
}

/* It stands in shell text without quotes. */
static bool option_dir(const char *text, const char **ret)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";

	if (text[0] != '/' || strlen(text) >= INIT_RUN_DIR_MAX || text[strspn(text, plain)] != '\0')
		return false;
	*ret = text;
	return true;
}

static int option_next(int argc, char **argv)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	return getopt_long(argc, argv, "", long_options, NULL);
}

/* What only a virtual machine has. */
static bool option_machine(int c, struct options *o)
{
	int disk;

	if (c == 'm')
		o->machine = true;
	return c == 'm' || (c == 'p' && option_fd(optarg, &o->port_fd)) ||
	       (c == 'k' && option_fd(optarg, &disk) && init_port_disk(disk));
}

static bool options_parse(int argc, char **argv, struct options *o)
{
	bool ok = true;
	int c;

	*o = (struct options){
		.listen_fd = -1, .stream_fd = -1, .cgroup_fd = -1, .port_fd = -1, .run_dir = RUN_DIR};
	while (ok && (c = option_next(argc, argv)) != -1) {
		switch (c) {
		case 'l':
			ok = option_fd(optarg, &o->listen_fd);
			break;
		case 's':
			ok = option_fd(optarg, &o->stream_fd);
			break;
		case 'd':
			o->door = optarg;
			break;
		case 'i':
			o->stdio = true;
			break;
		case 'c':
			ok = option_fd(optarg, &o->cgroup_fd);
			break;
		case 'r':
			ok = option_dir(optarg, &o->run_dir);
			break;
		case 'S':
			o->shell = optarg;
			break;
		default:
			ok = option_machine(c, o);
		}
	}
	return ok && optind == argc &&
	       (o->listen_fd >= 0) + (o->stream_fd >= 0) + o->stdio + (o->door != NULL) == 1;
}

/* How long they may take is known to whoever sent it, and who loses patience sends another. */
static void main_signal(int sig)
{
	static bool asked;

	/* The others have no meaning for process 1, and must not end it. */
	if (sig != SIGTERM && sig != SIGINT && sig != SIGPWR)
		return;
	init_actions_shutdown(asked ? 0 : PATIENCE);
	asked = true;
}

static void main_button(void)
{
	main_signal(SIGTERM);
}

/* What waits until nobody waits for us. */
static void main_after(void)
{
	init_conn_flush();
	init_session_idle_work();
}

static int main_connect(const struct options *o, int listener)
{
	if (listener >= 0)
		return init_conn_listen(listener);
	if (o->stream_fd >= 0) {
		(void)fcntl(o->stream_fd, F_SETFD, FD_CLOEXEC);
		return init_conn_stream(o->stream_fd, o->stream_fd);
	}
	return init_conn_stream(STDIN_FILENO, STDOUT_FILENO);
}

static int main_setup(const struct options *o)
{
	int listener = o->listen_fd, r;

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)umask(0);
	if (o->door != NULL) {
		listener = init_door_enter(o->door);
		if (listener < 0)
			return listener;
	}
	if (o->cgroup_fd >= 0)
		(void)fcntl(o->cgroup_fd, F_SETFD, FD_CLOEXEC);
	init_child_setup();
	init_pty_setup();
	init_shell_force(o->shell);
	init_actions_setup();
	init_conn_setup(&init_actions);
	r = init_procs_open();
	if (r < 0)
		return r;
	/* Without it there are no sessions; what is missing is said when one is asked for. */
	(void)init_session_files_setup(o->run_dir);
	r = init_ev_open(init_group_reap, main_signal);
	if (r < 0)
		return r;
	init_group_setup(o->cgroup_fd);
	if (o->machine)
		init_machine_setup(main_button);
	if (o->port_fd >= 0) {
		r = init_port_open(o->port_fd);
		if (r < 0)
			return r;
	}
	return main_connect(o, listener);
}

int main(int argc, char **argv)
{
	struct options o;
	int r;

	if (!options_parse(argc, argv, &o)) {
		(void)fputs(usage, stderr);
		return 2;
	}
	r = main_setup(&o);
	if (r < 0) {
		(void)fprintf(stderr, "cube-init: %s\n", init_error(r));
		return 1;
	}
	init_ev_run(main_after);
	init_session_files_teardown();
	if (o.machine)
		init_machine_off();
	return 0;
}

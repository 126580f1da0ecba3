/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs: the program. What it is asked for, and the order of start and end; nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/cli/cli.h"
#include "ctl/paths.h"
#include "ctl/version.h"
#include "fs/fuse/fuse.h"
#include "fs/p9/listen.h"
#include "fs/supervise.h"
#include "fs/upgrade.h"

#define MAIN_USAGE 2

struct main_command {
	const char *name;
	int (*run)(int argc, char **argv);
};

static void main_doctor_fronts(const struct cube_conf *conf, const struct cube_cli_9p *given,
			       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	cube_fuse_doctor(conf, say, ctx);
	cube_p9_doctor(conf, given->token_file, given->addresses, given->n, say, ctx);
}

static int main_doctor(int argc, char **argv)
{
	return cube_cli_doctor(argc, argv, main_doctor_fronts);
}

static const struct main_command main_commands[] = {
	{"umount", cube_cli_umount}, {"upgrade", cube_cli_upgrade}, {"takeover", cube_upgrade_enter},
	{"doctor", main_doctor},     {"sh", cube_cli_sh},           {"top", cube_cli_top},
};

/* Everything that can be wrong and is known without mounting. */
static int main_prepare(const struct cube_opts *o, struct cube_start *s, struct cube_err *err)
{
	int r = cube_paths_config(o->config, &s->conf, err);

	if (r == 0)
		r = cube_state_dir_open(o->state, &s->state, err);
	if (r == 0 && o->mount_point != NULL)
		r = cube_mount_point(o->mount_point, o->nonempty, &s->mount, err);
	return r;
}

static void main_done(struct cube_start *s)
{
	cube_conf_free(s->conf);
	cube_state_dir_close(&s->state);
	cube_free(s->mount.path);
}

/* Nothing of the terminal is kept; what goes wrong from now on, down to a failed assertion, goes to the log.
 */
static void main_leave_terminal(const struct cube_start *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)close(null);
	}
	(void)dup2(s->state.log_fd, STDERR_FILENO);
}

static int main_foreground(struct cube_start *s)
{
	if (chdir("/") < 0)
		return 1;
	return cube_supervise(s);
}

/* Goes to the background; whoever started us is told when the mount can be used, or why not. */
static int main_background(struct cube_start *s)
{
	struct cube_err err = {0};
	int ready[2], code;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0) {
		cube_fail_errno(&err, "pipe");
		return cube_cli_fail(&err);
	}
	pid = fork();
	if (pid == 0) {
		(void)close(ready[0]);
		s->ready_fd = ready[1];
		main_leave_terminal(s);
		return main_foreground(s);
	}
	(void)close(ready[1]);
	if (pid < 0)
		code = cube_fail_errno(&err, "fork");
	else
		code = cube_supervise_wait(ready[0], &s->state, &err);
	(void)close(ready[0]);
	if (code == 0)
		return 0;
	if (pid > 0)
		(void)waitpid(pid, NULL, 0); /* it has unmounted and let go of the state directory then */
	return cube_cli_fail(&err);
}

static int main_mount(int argc, char **argv)
{
	struct cube_start s = {.state = {.lock_fd = -1, .log_fd = -1}, .ready_fd = -1};
	struct cube_err err = {0};
	struct cube_opts o;
	int code;

	if (cube_opts_parse(argc, argv, &o, &err) < 0) {
		(void)cube_cli_fail(&err);
		return MAIN_USAGE;
	}
	if (o.help || o.version) {
		if (o.help)
			cube_opts_usage(stdout);
		else
			(void)printf("cubefs %s\n", CUBEFS_VERSION);
		return 0;
	}
	s.opts = &o;
	if (main_prepare(&o, &s, &err) < 0) {
		main_done(&s);
		return cube_cli_fail(&err);
	}
	cube_log_setup(s.state.log_fd, o.debug ? CUBE_LOG_DEBUG : CUBE_LOG_INFO);
	code = o.foreground || cube_opts_stdio(&o) ? main_foreground(&s) : main_background(&s);
	main_done(&s);
	return code;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < CUBE_COUNT(main_commands); i++) {
		if (strcmp(argv[1], main_commands[i].name) == 0)
			return main_commands[i].run(argc - 1, argv + 1);
	}
	return main_mount(argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The few commands around a mount. They use the mounted files like anyone else. */
#ifndef CUBEFS_CTL_CLI_CLI_H
#define CUBEFS_CTL_CLI_CLI_H

#include <stdbool.h>

#include "backends/base/conf.h"
#include "backends/base/err.h"

/* What 9P is to be looked at with, as on the daemon's command line: NULL, none where it is not given. */
#define CUBE_CLI_9P 8
struct cube_cli_9p {
	const char *token_file;
	const char *addresses[CUBE_CLI_9P];
	unsigned n;
};

/* Each takes the words behind `cubefs` (argv[0] is the command's name), prints what is wrong on stderr, and
 * gives the exit code of the program: 0, 1 for a failure, 2 for a usage error; `sh` the shell's own. */
int cube_cli_umount(int argc, char **argv);
int cube_cli_upgrade(int argc, char **argv);
/* The socket in the state directory at which the daemon is asked to upgrade, and what is said there, with a descriptor of
 * the program. The answer: "ok", or "no SENTENCE". */
#define CUBE_CLI_UPGRADE_DOOR "upgrade"
#define CUBE_CLI_UPGRADE_ASK  "cubefs upgrade 1"
/* @fronts says what the front ends have to say, as backends do: ok, what, what to do. */
int cube_cli_doctor(int argc, char **argv,
		    void (*fronts)(const struct cube_conf *conf, const struct cube_cli_9p *given,
				   void (*say)(void *ctx, bool ok, const char *what, const char *fix),
				   void *ctx));
int cube_cli_sh(int argc, char **argv);
int cube_cli_top(int argc, char **argv);

/* The mount point @given without links in it, into @out (PATH_MAX): only its parent is looked at where the mount itself
 * does not answer. -EINVAL: no cubefs is mounted there. */
int cube_cli_mount(const char *given, char *out, struct cube_err *err);
/* The daemon's state directory, from the mount's own `ctl`, the caller's; NULL when it does not answer. */
char *cube_cli_state(const char *mount);

/* "cubefs: SENTENCE" on stderr; returns 1. */
int cube_cli_fail(const struct cube_err *err);

#endif

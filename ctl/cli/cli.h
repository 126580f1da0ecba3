/* SPDX-License-Identifier: Apache-2.0 */
/* The few commands around a mount. They use the mounted files like anyone else. */
#ifndef CUBEFS_CTL_CLI_CLI_H
#define CUBEFS_CTL_CLI_CLI_H

#include "backends/base/err.h"

/* Each takes the words behind `cubefs` (argv[0] is the command's name), prints what is wrong on stderr, and
 * gives the exit code of the program: 0, 1 for a failure, 2 for a usage error; `sh` the shell's own. */
int cube_cli_umount(int argc, char **argv);
int cube_cli_doctor(int argc, char **argv);
int cube_cli_sh(int argc, char **argv);
int cube_cli_top(int argc, char **argv);

/* "cubefs: SENTENCE" on stderr; returns 1. */
int cube_cli_fail(const struct cube_err *err);

#endif

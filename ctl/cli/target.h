/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandbox a command line means. */
#ifndef CUBEFS_CTL_CLI_TARGET_H
#define CUBEFS_CTL_CLI_TARGET_H

#include "backends/base/err.h"

/* The directory of a sandbox: @given if it has a '/', else below CUBEFS_MOUNT, else below the user's only mount.
 * Checked to be one (it has a `ctl` and a `jobs`). *ret_fd is the caller's. */
int cube_cli_target(const char *given, int *ret_fd, struct cube_err *err);

#endif

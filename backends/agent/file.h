/* SPDX-License-Identifier: Apache-2.0 */
/* Where cube-init's binary is on this machine. */
#ifndef CUBEFS_BACKENDS_AGENT_FILE_H
#define CUBEFS_BACKENDS_AGENT_FILE_H

#include "backends/base/err.h"

/* $CUBEFS_AGENT, else beside the running program (./, ../, ../libexec/cubefs/), else
 * /usr/libexec/cubefs/. A descriptor for reading, or -ENOENT with a sentence. */
int cube_agent_file_open(struct cube_err *err);

/* Copies a file's content. */
int cube_agent_file_copy(int from, int to);

#endif

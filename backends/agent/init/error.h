/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an errno. The agent is linked without backends/base/err.c, whose functions its C library lacks.
 */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_ERROR_H
#define CUBEFS_BACKENDS_AGENT_INIT_ERROR_H

/* @code may be negative. Valid until the next call. */
const char *init_error(int code);

#endif

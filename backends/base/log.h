/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's own log: one line an event, `TIME LEVEL MODULE text`. Not for users' output. */
#ifndef CUBEFS_BACKENDS_BASE_LOG_H
#define CUBEFS_BACKENDS_BASE_LOG_H

enum cube_log_level { CUBE_LOG_ERROR, CUBE_LOG_WARNING, CUBE_LOG_INFO, CUBE_LOG_DEBUG };

/* Lines go to @fd (borrowed; stderr until called) when at or above @level. Thread safe. */
void cube_log_setup(int fd, enum cube_log_level level);

/* Control bytes are escaped, a line is cut at 1 KiB. Never fails, keeps errno, never for secrets. Before
 * cube_log_setup: at CUBE_LOG_INFO. */
void cube_log(enum cube_log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif

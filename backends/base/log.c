/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's own log. */
#include "backends/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/escape.h"
#include "backends/base/macros.h"

#define LOG_LINE 1024 /* bytes, newline included */

static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_level = CUBE_LOG_INFO;

static const char *const level_names[] = {
	[CUBE_LOG_ERROR] = "error",
	[CUBE_LOG_WARNING] = "warning",
	[CUBE_LOG_INFO] = "info",
	[CUBE_LOG_DEBUG] = "debug",
};

void cube_log_setup(int fd, enum cube_log_level level)
{
	atomic_store(&log_fd, fd);
	atomic_store(&log_level, (int)level);
}

void cube_log(enum cube_log_level level, const char *module, const char *fmt, ...)
{
	char raw[LOG_LINE], line[LOG_LINE], when[CUBE_TIME_TEXT];
	int saved = errno;
	size_t len;
	va_list ap;

	if ((int)level > atomic_load(&log_level) || (unsigned)level >= CUBE_COUNT(level_names))
		return;
	len = (size_t)snprintf(line, sizeof(line) / 2, "%s %s %.64s ",
			       cube_clock_text(cube_clock_wall(), when), level_names[level], module);
	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	len += cube_escape_into(line + len, sizeof(line) - len, raw);
	line[len] = '\n'; /* in the place of the NUL: lines are written, not printed */
	/* One write, so that lines of several threads do not mix. There is nobody to tell that it failed. */
	if (write(atomic_load(&log_fd), line, len + 1) < 0)
		errno = saved;
	errno = saved;
}

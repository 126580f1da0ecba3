/* SPDX-License-Identifier: Apache-2.0 */
/* A log of lines in memory. */
#include "ctl/linelog.h"

#include <string.h>

#include "backends/base/clock.h"

#define LINELOG_ROOM (5u * CUBE_LINELOG_LINE) /* each byte may be escaped as four */

void cube_linelog_init(struct cube_buf *log, size_t max)
{
	cube_buf_init(log, max + LINELOG_ROOM);
}

void cube_linelog_add(struct cube_buf *log, const char *line)
{
	char time[CUBE_TIME_TEXT];

	while (log->len > log->max - LINELOG_ROOM) {
		const char *end = memchr(log->data, '\n', log->len);

		cube_buf_drop(log, end != NULL ? (size_t)(end + 1 - log->data) : log->len);
	}
	cube_buf_printf(log, "%s ", cube_clock_text(cube_clock_wall(), time));
	cube_buf_add_escaped(log, line, strnlen(line, CUBE_LINELOG_LINE - CUBE_TIME_TEXT), false);
	cube_buf_addc(log, '\n');
}

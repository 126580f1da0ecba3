/* SPDX-License-Identifier: Apache-2.0 */
/* The last failures of a sandbox or of the daemon: a ring of finished lines. */
#include "ctl/errlog.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"

#define ERRLOG_KEPT 64
#define ERRLOG_LINE 2048

struct cube_errlog {
	char *lines[ERRLOG_KEPT];
	unsigned next; /* where the next line goes: the oldest there is */
};

struct cube_errlog *cube_errlog_new(void)
{
	return cube_calloc(1, sizeof(struct cube_errlog));
}

void cube_errlog_free(struct cube_errlog *e)
{
	if (e == NULL)
		return;
	for (unsigned i = 0; i < ERRLOG_KEPT; i++)
		cube_free(e->lines[i]);
	cube_free(e);
}

void cube_errlog_add(struct cube_errlog *e, const struct cube_caller *by, const char *operation,
		     const struct cube_err *err)
{
	struct cube_buf line = CUBE_BUF(ERRLOG_LINE);
	char time[CUBE_TIME_TEXT], who[64];

	if (e == NULL)
		return;
	cube_buf_printf(&line, "%s %s ", cube_clock_text(cube_clock_wall(), time),
			by != NULL ? cube_caller_text(by, who) : "cubefs");
	/* A verb line is quoted without its newline. */
	cube_buf_add_escaped(&line, operation, strcspn(operation, "\n"), false);
	cube_buf_printf(&line, ": %s: %s\n", cube_errno_name(err->code), err->text);
	if (line.error == 0) {
		cube_free(e->lines[e->next]);
		e->lines[e->next] = cube_buf_steal(&line, NULL);
		e->next = (e->next + 1) % ERRLOG_KEPT;
	}
	cube_buf_done(&line);
}

int cube_errlog_text(const struct cube_errlog *e, struct cube_buf *out)
{
	for (unsigned i = 0; i < ERRLOG_KEPT; i++) {
		const char *line = e->lines[(e->next + i) % ERRLOG_KEPT];

		if (line != NULL)
			cube_buf_adds(out, line);
	}
	return out->error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of each call when it has come back. */
#include "backends/decor/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/decor/forward.h"

struct trace {
	struct cube_forward fw;
	void (*line)(void *ctx, const char *line);
	void *ctx;
};

static int trace_before(struct cube_forward *fw, struct cube_call *call, struct cube_err *err)
{
	(void)fw;
	(void)err;
	call->since = cube_clock_mono();
	return 0;
}

static int trace_after(struct cube_forward *fw, struct cube_call *call, int r, struct cube_err *err)
{
	struct trace *t = cube_container_of(fw, struct trace, fw);
	uint64_t us = (cube_clock_mono() - call->since) / 1000;
	bool why = r < 0 && err != NULL && err->text[0] != '\0';
	char line[CUBE_ERR_TEXT + 256];

	(void)snprintf(line, sizeof(line), "%s %s %s: %s, %" PRIu64 " us%s%s", fw->base.name, call->op,
		       call->on != NULL ? call->on : "-", r < 0 ? cube_errno_name(r) : "0", us,
		       why ? ": " : "", why ? err->text : "");
	t->line(t->ctx, line);
	return r;
}

static void to_log(void *ctx, const char *line)
{
	(void)ctx;
	cube_log(CUBE_LOG_DEBUG, "trace", "%s", line);
}

static void trace_close(struct cube_backend *b)
{
	struct trace *t = cube_container_of(cube_forward_of(b), struct trace, fw);

	cube_forward_done(&t->fw);
	cube_free(t);
}

int cube_trace_wrap(struct cube_backend *inner, void (*line)(void *ctx, const char *line), void *ctx,
		    struct cube_backend **ret, struct cube_err *err)
{
	struct trace *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_forward_init(&t->fw, inner);
	t->fw.ops.close = trace_close;
	t->fw.before = trace_before;
	t->fw.after = trace_after;
	t->line = line != NULL ? line : to_log;
	t->ctx = ctx;
	*ret = &t->fw.base;
	return 0;
}

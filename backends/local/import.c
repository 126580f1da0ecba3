/* SPDX-License-Identifier: Apache-2.0 */
/* Import of templates. */
#include "backends/local/local_priv.h"
#include "backends/local/template_priv.h"

#include <errno.h>

int cube_local_template_import(struct cube_backend *b, const char *name, const char *source, int source_fd,
			       void (*log)(void *ctx, const char *line), void *ctx,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	(void)b;
	(void)name;
	(void)source;
	(void)source_fd;
	(void)log;
	(void)ctx;
	(void)cancel;
	return cube_fail(err, -EIO, "wip");
}

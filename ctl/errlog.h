/* SPDX-License-Identifier: Apache-2.0 */
/* The `error` files: the last failures, newest last: time, process, operation, errno name, sentence.
 * In memory, the last 64. Under the domain lock. */
#ifndef CUBEFS_CTL_ERRLOG_H
#define CUBEFS_CTL_ERRLOG_H

#include "backends/base/buf.h"
#include "backends/base/err.h"
#include "ctl/caller.h"

struct cube_errlog;

struct cube_errlog *cube_errlog_new(void);
void cube_errlog_free(struct cube_errlog *e);
/* @operation: "write ctl: stop now", "open exec"; @by may be NULL (the daemon itself). */
void cube_errlog_add(struct cube_errlog *e, const struct cube_caller *by, const char *operation,
		     const struct cube_err *err);
int cube_errlog_text(const struct cube_errlog *e, struct cube_buf *out);

#endif

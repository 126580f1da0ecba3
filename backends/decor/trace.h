/* SPDX-License-Identifier: Apache-2.0 */
/* A decorator that tells of each call: operation, object, result, duration. */
#ifndef CUBEFS_BACKENDS_DECOR_TRACE_H
#define CUBEFS_BACKENDS_DECOR_TRACE_H

#include "backends/backend.h"

/* Wraps @inner and takes it over. @line gets one line a call, "NAME create mem-01: 0, 120 us" or
 * "NAME create -: EDQUOT, 3 us: sentence"; on the thread that called, several at once perhaps; NULL: the
 * daemon's log, at debug level. -ENOMEM; then @inner is still the caller's. */
int cube_trace_wrap(struct cube_backend *inner, void (*line)(void *ctx, const char *line), void *ctx,
		    struct cube_backend **ret, struct cube_err *err);

#endif

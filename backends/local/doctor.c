/* SPDX-License-Identifier: Apache-2.0 */
/* What `cubefs doctor` says of this machine. */
#include "backends/local/local_priv.h"

void cube_local_doctor(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	(void)b;
	(void)say;
	(void)ctx;
}

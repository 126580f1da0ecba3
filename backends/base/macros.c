/* SPDX-License-Identifier: Apache-2.0 */
/* The one cleanup of macros.h that is too long to be inline. */
#include "backends/base/macros.h"

#include <errno.h>
#include <unistd.h>

void cube_close_auto(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* nothing to do about it: the descriptor is gone in any case */
	*fd = -1;
	errno = saved;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory. */
#include "backends/agent/init/memfile.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* Linux 6.3 wants to be told whether it may be executed (and can be set to refuse who does not say); earlier
 * ones do not know the word. */
int init_memfile(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC);
}

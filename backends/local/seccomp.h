/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls a sandbox may make: an allow list, everything else is EPERM. */
#ifndef CUBEFS_BACKENDS_LOCAL_SECCOMP_H
#define CUBEFS_BACKENDS_LOCAL_SECCOMP_H

#include "backends/base/json.h"

/* The `linux.seccomp` object of an OCI configuration; NULL when out of memory. New reference. */
json_t *cube_local_seccomp(void);

#endif

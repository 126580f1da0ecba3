/* SPDX-License-Identifier: Apache-2.0 */
/* The list of backend kinds. Adding one is its line here. */
#include "backends/registry.h"

#include <string.h>

extern const struct cube_backend_ops cube_backend_local;
extern const struct cube_backend_ops cube_backend_mem;
extern const struct cube_backend_ops cube_backend_docker;
#ifdef CUBEFS_LIBVIRT /* the build has its library */
extern const struct cube_backend_ops cube_backend_libvirt;
#endif
extern const struct cube_backend_ops cube_backend_e2b;

const struct cube_backend_ops *const cube_backend_kinds[] = {
	&cube_backend_local,   &cube_backend_mem,
	&cube_backend_docker,
#ifdef CUBEFS_LIBVIRT
	&cube_backend_libvirt,
#endif
	&cube_backend_e2b,     NULL,
};

const struct cube_backend_ops *cube_backend_find(const char *kind)
{
	for (const struct cube_backend_ops *const *ops = cube_backend_kinds; *ops != NULL; ops++) {
		if (strcmp((*ops)->kind, kind) == 0)
			return *ops;
	}
	return NULL;
}

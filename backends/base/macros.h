/* SPDX-License-Identifier: Apache-2.0 */
/* Small macros that everything uses. */
#ifndef CUBEFS_BACKENDS_BASE_MACROS_H
#define CUBEFS_BACKENDS_BASE_MACROS_H

#include <stddef.h>
#include <unistd.h>

#define CUBE_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The object that embeds @member at address @p. */
#define cube_container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/* Release @fn(&variable) when the variable leaves its scope. `unused`, since clang warns about
 * variables that exist only for their release. */
#define cube_auto(fn) __attribute__((cleanup(fn), unused))

/* Give a pointer away: the old value, leaving NULL behind for the cleanup attached to it. */
#define cube_steal(p)                                                                                        \
	(__extension__({                                                                                     \
		__typeof__(p) cube_old_ = (p);                                                               \
		(p) = NULL;                                                                                  \
		cube_old_;                                                                                   \
	}))

/* The same for a descriptor: leaves -1 behind. */
static inline int cube_steal_fd(int *fd)
{
	int old = *fd;

	*fd = -1;
	return old;
}

/* Closes what is open and leaves -1, keeps errno. Also the cleanup for `int fd = -1`. */
void cube_close_auto(int *fd);

#define cube_auto_fd cube_auto(cube_close_auto) int

#define CUBE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CUBE_MUST_CHECK        __attribute__((warn_unused_result))

#endif

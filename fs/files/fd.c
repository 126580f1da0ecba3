/* SPDX-License-Identifier: Apache-2.0 */
/* Counted descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

struct cube_ffd *cube_ffd_wrap(int fd)
{
	struct cube_ffd *f = cube_malloc(sizeof(*f));

	if (f == NULL)
		return NULL;
	atomic_init(&f->refs, 1);
	f->fd = fd;
	return f;
}

struct cube_ffd *cube_ffd_new(int fd)
{
	struct cube_ffd *f = cube_ffd_wrap(fd);

	if (f == NULL)
		(void)close(fd);
	return f;
}

struct cube_ffd *cube_ffd_ref(struct cube_ffd *f)
{
	if (f != NULL)
		atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
	return f;
}

void cube_ffd_unref(struct cube_ffd *f)
{
	int saved = errno;

	/* acq_rel: what any user did with it is done before the last one closes it */
	if (f == NULL || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1)
		return;
	(void)close(f->fd);
	cube_free(f);
	errno = saved;
}

void cube_ffd_auto(struct cube_ffd **f)
{
	cube_ffd_unref(*f);
}

/* The number stays taken, so that a call that has just fetched it cannot meet a stranger's file; it is now an
 * O_PATH descriptor, on which reads, writes and the rest fail. Calls already in the kernel have their own
 * hold on the file. */
void cube_ffd_void(struct cube_ffd *f, int nothing_fd)
{
	while (dup3(nothing_fd, f->fd, O_CLOEXEC) < 0 && (errno == EINTR || errno == EBUSY))
		continue;
}

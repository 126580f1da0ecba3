/* SPDX-License-Identifier: Apache-2.0 */
/* The cancel flag: an atomic for who looks, an eventfd for who waits. */
#include "backends/base/cancel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/alloc.h"

struct cube_cancel {
	atomic_uint refs;
	atomic_bool fired;
	int fd;
};

struct cube_cancel *cube_cancel_new(void)
{
	struct cube_cancel *c = cube_malloc(sizeof(*c));

	if (c == NULL)
		return NULL;
	atomic_init(&c->refs, 1);
	atomic_init(&c->fired, false);
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0) {
		cube_free(c);
		return NULL;
	}
	return c;
}

struct cube_cancel *cube_cancel_ref(struct cube_cancel *c)
{
	if (c != NULL)
		atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void cube_cancel_unref(struct cube_cancel *c)
{
	/* acq_rel: what any holder did with it is done before the last one frees it */
	if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return;
	(void)close(c->fd);
	cube_free(c);
}

void cube_cancel_fire(struct cube_cancel *c)
{
	const uint64_t one = 1;
	int saved = errno;

	if (c == NULL || atomic_exchange(&c->fired, true))
		return;
	if (write(c->fd, &one, sizeof(one)) < 0) /* the first write to an eventfd of 0 always fits */
		errno = saved;
}

bool cube_cancel_fired(const struct cube_cancel *c)
{
	return c != NULL && atomic_load(&c->fired);
}

int cube_cancel_fd(const struct cube_cancel *c)
{
	return c != NULL ? c->fd : -1;
}

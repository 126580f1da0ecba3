/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the kernel and us. */
#include "fs/fuse/wire.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/macros.h"

void cube_wire_add(struct cube_wire *w, const struct cube_wire_hook *hook)
{
	assert(w->n < CUBE_WIRE_HOOKS);
	w->hooks[w->n++] = *hook;
}

/* Does libfuse get it? */
static bool wire_in(struct cube_wire *w, void *buf, ssize_t *len, size_t size)
{
	struct cube_wire_in m = {.head = buf, .len = (size_t)*len, .size = size};

	if (m.len < sizeof(*m.head))
		return true;
	for (unsigned i = 0; i < w->n; i++)
		if (w->hooks[i].in != NULL && !w->hooks[i].in(w->hooks[i].ctx, &m))
			return false;
	*len = (ssize_t)m.len;
	return true;
}

/* The kernel gives it once: it has no answer that would be missed. */
static bool wire_only_once(const void *request, size_t len)
{
	const struct fuse_in_header *h = request;

	return len >= sizeof(*h) && (h->opcode == FUSE_FORGET || h->opcode == FUSE_BATCH_FORGET);
}

/* Busy first: whoever parks them sees it, or is seen here. */
static bool wire_begin(struct cube_wire *w, const void *request, size_t len)
{
	atomic_fetch_add(&w->busy, 1);
	if (!atomic_load(&w->parked) || wire_only_once(request, len))
		return true;
	atomic_fetch_sub(&w->busy, 1);
	(void)pause();
	errno = EINTR;
	return false;
}

void cube_wire_served(struct cube_wire *w)
{
	atomic_fetch_sub(&w->busy, 1);
}

bool cube_wire_park(struct cube_wire *w)
{
	atomic_store(&w->parked, true);
	return atomic_load(&w->busy) == 0;
}

ssize_t cube_wire_read(struct cube_wire *w, int fd, void *buf, size_t size)
{
	ssize_t n;

	do {
		n = w->first != NULL ? w->first(w->first_ctx, buf, size) : 0;
		if (n == 0)
			n = read(fd, buf, size);
		if (n <= 0)
			return n;
		if (!wire_begin(w, buf, (size_t)n))
			return -1;
		if (wire_in(w, buf, &n, size))
			return n;
		cube_wire_served(w);
	} while (true);
}

/* Is it to be written? */
static bool wire_out(struct cube_wire *w, struct cube_wire_out *m)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->hooks[i].out != NULL && !w->hooks[i].out(w->hooks[i].ctx, m))
			return false;
	return true;
}

static void wire_written(struct cube_wire *w, const struct cube_wire_out *m, int code)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->hooks[i].written != NULL)
			w->hooks[i].written(w->hooks[i].ctx, m, code);
}

static size_t wire_sum(const struct iovec *iov, int count)
{
	size_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* libfuse compares what was written with what it wanted to write. */
ssize_t cube_wire_writev(struct cube_wire *w, int fd, const struct iovec *iov, int count)
{
	struct fuse_out_header head;
	struct cube_wire_out m = {.head = &head, .count = count};
	size_t wanted = wire_sum(iov, count);
	ssize_t n;
	int error;

	if (count < 1 || count > CUBE_WIRE_IOV || iov[0].iov_len != sizeof(head))
		return writev(fd, iov, count);
	memcpy(&head, iov[0].iov_base, sizeof(head));
	memcpy(m.iov, iov, sizeof(*iov) * (size_t)count);
	m.iov[0].iov_base = &head;
	if (!wire_out(w, &m))
		return (ssize_t)wanted;
	n = writev(fd, m.iov, m.count);
	error = n < 0 ? errno : 0;
	wire_written(w, &m, -error);
	errno = error;
	return n < 0 ? n : (ssize_t)wanted;
}

struct fuse_init_out *cube_wire_init_answer(struct cube_wire_out *m, _Atomic uint64_t *unique,
					    char body[CUBE_WIRE_INIT])
{
	struct fuse_init_out *out = (void *)body;

	_Static_assert(sizeof(*out) <= CUBE_WIRE_INIT, "the answer to INIT");
	if (m->head->unique == 0 || m->head->unique != atomic_load(unique))
		return NULL;
	atomic_store(unique, 0);
	if (m->head->error != 0 || m->count != 2 || m->iov[1].iov_len != sizeof(*out))
		return NULL;
	memcpy(out, m->iov[1].iov_base, sizeof(*out));
	m->iov[1].iov_base = out;
	return out;
}

int cube_wire_send(int fd, uint64_t unique, int error, const void *body, size_t len)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + len), .error = error, .unique = unique};
	union {
		const void *in;
		void *out;
	} b = {.in = body};
	struct iovec iov[] = {{.iov_base = &head, .iov_len = sizeof(head)},
			      {.iov_base = b.out, .iov_len = len}};

	return writev(fd, iov, len > 0 ? 2 : 1) < 0 ? -errno : 0;
}

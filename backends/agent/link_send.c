/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: at once on the caller's thread where the socket takes it, the rest from the loop. */
#include "backends/agent/link_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"

/* The other side is gone: reading finds out on the loop's thread, where `down` belongs. */
static void send_broken(struct agent_link *l)
{
	l->dead = true;
	cube_agent_send_drop(l);
	(void)shutdown(l->fd, SHUT_RDWR);
	if (!l->posted) {
		l->posted = true;
		cube_loop_post(l->loop, &l->post);
	}
}

/* Bytes that went, 0 when it would block, -errno. */
static ssize_t send_some(const struct agent_link *l, const void *data, size_t len, const int fds[2])
{
	unsigned n = fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2;
	ssize_t r = cube_fd_send(l->fd, data, len, fds, n);

	if (r == -ENOTSOCK) {
		do
			r = write(l->fd, data, len);
		while (r < 0 && errno == EINTR);
		r = r < 0 ? -errno : r;
	}
	return r == -EAGAIN ? 0 : r;
}

static void chunk_free(struct agent_chunk *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->fds[i] >= 0)
			(void)close(c->fds[i]);
	}
	cube_free(c);
}

static int chunk_fds(struct agent_chunk *c, const int fds[2])
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] < 0)
			continue;
		c->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (c->fds[i] < 0)
			return -errno;
	}
	return 0;
}

static int send_queue(struct agent_link *l, const void *data, size_t len, const int fds[2])
{
	struct agent_chunk *c = cube_malloc(sizeof(*c) + len);
	int r;

	if (c == NULL)
		return -ENOMEM;
	*c = (struct agent_chunk){.fds = {-1, -1}, .len = len};
	memcpy(c->data, data, len);
	r = chunk_fds(c, fds);
	if (r < 0) {
		chunk_free(c);
		return r;
	}
	cube_list_push(&l->queue, &c->link);
	if (!l->posted) { /* the loop's thread alone may watch for room */
		l->posted = true;
		cube_loop_post(l->loop, &l->post);
	}
	return 0;
}

int cube_agent_send(struct agent_link *l, const void *data, size_t len, const int fds[2])
{
	static const int none[2] = {-1, -1};
	ssize_t n = 0;
	int r;

	if (l->dead || l->closed)
		return -EHOSTDOWN;
	if (cube_list_empty(&l->queue)) {
		n = send_some(l, data, len, fds);
		if (n < 0) {
			send_broken(l);
			return -EHOSTDOWN;
		}
	}
	if ((size_t)n == len)
		return 0;
	r = send_queue(l, (const unsigned char *)data + n, len - (size_t)n, n > 0 ? none : fds);
	if (r < 0 && n > 0) { /* half a message is out, and the rest cannot be kept */
		send_broken(l);
		return -EHOSTDOWN;
	}
	return r;
}

void cube_agent_send_queued(struct agent_link *l)
{
	while (!l->dead && !cube_list_empty(&l->queue)) {
		struct agent_chunk *c = cube_list_entry(l->queue.next, struct agent_chunk, link);
		ssize_t n = send_some(l, c->data + c->off, c->len - c->off, c->fds);

		if (n < 0) {
			send_broken(l);
			return;
		}
		if (n == 0)
			return;
		for (int i = 0; i < 2; i++) {
			if (c->fds[i] >= 0)
				(void)close(c->fds[i]);
			c->fds[i] = -1;
		}
		c->off += (size_t)n;
		if (c->off == c->len) {
			cube_list_remove(&c->link);
			chunk_free(c);
		}
	}
}

void cube_agent_send_drop(struct agent_link *l)
{
	struct cube_list *e;

	while ((e = cube_list_pop(&l->queue)) != NULL)
		chunk_free(cube_list_entry(e, struct agent_chunk, link));
}

int cube_agent_send_number(struct agent_link *l, enum cube_wire_type type, uint64_t id, uint64_t v)
{
	static const int none[2] = {-1, -1};
	unsigned char data[CUBE_WIRE_HEADER + 8];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	(void)cube_wire_put_number(&out, type, id, v);
	return cube_agent_send(l, data, out.len, none);
}

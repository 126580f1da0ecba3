/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: port N of a sandbox is whoever listens at the unix socket /run/ports/N in its files, an abstract name
 * the one at /run/abstract/NAME, a path that path. So a test listens by itself, from outside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "backends/mem/mem_priv.h"

static char *ports_path(const struct cube_target *t)
{
	switch (t->kind) {
	case CUBE_TARGET_TCP:
		return cube_asprintf("/run/ports/%u", t->port);
	case CUBE_TARGET_UNIX:
		return mem_tree_normal("/", t->path);
	case CUBE_TARGET_ABSTRACT:
		break;
	}
	return strchr(t->path, '/') == NULL ? cube_asprintf("/run/abstract/%s", t->path) : NULL;
}

/* By its descriptor: a path of this machine may be too long for an address. */
static int ports_connect(int at)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	cube_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return cube_steal_fd(&fd);
}

/* The sandbox, with the lock, when it has processes that could listen. */
static struct mem_box *ports_box(struct mem *m, const char *id, struct cube_err *err)
{
	struct mem_box *box;

	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	if (box != NULL && box->state == CUBE_IS_STOPPED) {
		(void)cube_fail(err, -EHOSTDOWN, "%s does not run", id);
		box = NULL;
	}
	if (box == NULL)
		pthread_mutex_unlock(&m->lock);
	return box;
}

int mem_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
	     struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	cube_auto_str path = ports_path(target);
	cube_auto_fd at = -1;
	struct mem_box *box;
	int r;

	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "the connection was cancelled");
	box = ports_box(m, id, err);
	if (box == NULL)
		return err->code;
	at = path != NULL ? mem_tree_open(box, path, O_PATH, 0) : -ENOENT;
	pthread_mutex_unlock(&m->lock);
	r = at < 0 ? at : ports_connect(at);
	if (r == -ENOENT)
		r = -ECONNREFUSED;
	if (r < 0)
		return cube_fail(err, r, "nothing listens at %s in %s: %s",
				 path != NULL ? path : target->path, id, cube_errno_text(r));
	*ret_fd = r;
	return 0;
}

static void ports_each(int dir, void (*each)(void *ctx, const struct cube_listener *l), void *ctx)
{
	DIR *d = fdopendir(dir);

	if (d == NULL) {
		cube_close_auto(&dir);
		return;
	}
	for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		struct cube_listener l = {.address = "127.0.0.1", .program = "mem"};
		uint64_t port;

		if (cube_num_u64(e->d_name, UINT16_MAX, &port) == 0) {
			l.target.port = (uint16_t)port;
			each(ctx, &l);
		}
	}
	(void)closedir(d);
}

int mem_listening(struct cube_backend *b, const char *id,
		  void (*each)(void *ctx, const struct cube_listener *l), void *ctx, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_box *box = ports_box(m, id, err);
	int dir;

	if (box == NULL)
		return err->code;
	dir = mem_tree_open(box, "/run/ports", O_RDONLY | O_DIRECTORY, 0);
	pthread_mutex_unlock(&m->lock);
	if (dir >= 0)
		ports_each(dir, each, ctx);
	return 0;
}

int mem_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line), void *ctx,
	       struct cube_err *err)
{
	struct mem *m = mem_of(b);
	bool there;

	pthread_mutex_lock(&m->lock);
	there = mem_box_find(m, id, err) != NULL;
	pthread_mutex_unlock(&m->lock);
	if (!there)
		return err->code;
	each(ctx, "os mem");
	return 0;
}

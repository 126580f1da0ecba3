/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE passthrough. */
#include "fs/fuse/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/err.h"
#include "backends/base/log.h"
#include "fs/fuse/raw.h"

#define PASS_INIT_EXT (1u << 30)
#define PASS_FLAGS2   (1u << 5) /* FUSE_PASSTHROUGH, bit 37 of all */
#define PASS_DEPTH    2         /* an overlay behind is one */

enum { PASS_UNKNOWN, PASS_YES, PASS_NO };

struct pass_inode {
	int32_t id; /* 0: served */
	unsigned opens;
};

/* ---- the kernel's side ---- */

static int pass_register(int dev, int fd, int32_t *ret_id)
{
	struct cube_fuse_backing_map map = {.fd = fd};
	int id = ioctl(dev, CUBE_FUSE_BACKING_OPEN, &map);

	if (id <= 0)
		return id < 0 ? -errno : -EIO;
	*ret_id = id;
	return 0;
}

static void pass_unregister(int dev, int32_t id)
{
	uint32_t n = (uint32_t)id;

	if (ioctl(dev, CUBE_FUSE_BACKING_CLOSE, &n) < 0 && errno != ENOTCONN)
		cube_log(CUBE_LOG_WARNING, "fuse", "backing id %u: %s", n, cube_errno_text(errno));
}

/* ---- the beginning of the connection ---- */

static bool pass_in(void *ctx, struct cube_wire_in *m)
{
	struct cube_fuse_pass *p = ctx;
	const struct fuse_init_in *in = (const void *)(m->head + 1);
	size_t need = sizeof(*m->head) + offsetof(struct fuse_init_in, flags2) + sizeof(in->flags2);

	if (m->head->opcode != FUSE_INIT)
		return true;
	if (m->len >= need && (in->flags & PASS_INIT_EXT) != 0 && (in->flags2 & PASS_FLAGS2) != 0) {
		atomic_store(&p->init, m->head->unique);
	} else {
		p->why = "this kernel has no FUSE passthrough (Linux 6.9)";
		atomic_store(&p->state, PASS_NO);
	}
	return true;
}

static bool pass_out(void *ctx, struct cube_wire_out *m)
{
	struct cube_fuse_pass *p = ctx;
	struct fuse_init_out *out = cube_wire_init_answer(m, &p->init, p->body);

	if (out == NULL)
		return true;
	out->flags |= PASS_INIT_EXT;
	out->flags2 |= PASS_FLAGS2;
	out->unused[0] = PASS_DEPTH; /* max_stack_depth */
	return true;
}

/* A file of ours is registered, to see whether we may. Not before the kernel has the answer to INIT; and by a worker
 * that takes a connection over, whose answer nobody gets, too. */
static void pass_try_locked(struct cube_fuse_pass *p)
{
	int fd = memfd_create("passthrough", MFD_CLOEXEC), code;
	int32_t id = 0;

	code = fd < 0 ? -errno : pass_register(p->fd, fd, &id);
	if (code == 0)
		pass_unregister(p->fd, id);
	else if (code == -EPERM)
		p->why = "it needs root (CAP_SYS_ADMIN outside of user namespaces)";
	else
		p->why = strerrordesc_np(-code);
	if (fd >= 0)
		(void)close(fd);
	atomic_store(&p->state, code == 0 ? PASS_YES : PASS_NO);
	cube_log(CUBE_LOG_INFO, "fuse", "passthrough: %s", code == 0 ? "yes" : p->why);
}

static bool pass_able(struct cube_fuse_pass *p)
{
	if (atomic_load(&p->state) == PASS_UNKNOWN) {
		(void)pthread_mutex_lock(&p->lock);
		if (atomic_load(&p->state) == PASS_UNKNOWN)
			pass_try_locked(p);
		(void)pthread_mutex_unlock(&p->lock);
	}
	return atomic_load(&p->state) == PASS_YES;
}

const char *cube_fuse_pass_why_not(struct cube_fuse_pass *p)
{
	return pass_able(p) ? NULL : p->why;
}

int cube_fuse_pass_init(struct cube_fuse_pass *p, struct cube_wire *w, int fd)
{
	const struct cube_wire_hook hook = {.ctx = p, .in = pass_in, .out = pass_out};

	*p = (struct cube_fuse_pass){.fd = fd, .why = "", .open = cube_imap_new()};
	if (p->open == NULL)
		return -ENOMEM;
	(void)pthread_mutex_init(&p->lock, NULL);
	cube_wire_add(w, &hook);
	return 0;
}

static int pass_drop(void *ctx, uint64_t node, void *value)
{
	(void)ctx;
	(void)node;
	cube_free(value);
	return 0;
}

/* The ids end with the connection. */
void cube_fuse_pass_done(struct cube_fuse_pass *p)
{
	if (p->open == NULL)
		return;
	(void)cube_imap_each(p->open, pass_drop, NULL);
	cube_imap_free(p->open);
	(void)pthread_mutex_destroy(&p->lock);
}

/* ---- opens ---- */

/* By a descriptor of O_PATH: one that is open for writing would count as a writer as long as it is registered, and
 * the file could not be run. */
static int32_t pass_id_of(const struct cube_fuse_pass *p, int fd)
{
	char name[32];
	int32_t id = 0;
	int path;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	path = open(name, O_PATH | O_CLOEXEC);
	if (path < 0)
		return 0;
	if (pass_register(p->fd, path, &id) < 0)
		id = 0;
	(void)close(path);
	return id;
}

static struct pass_inode *pass_add_locked(struct cube_fuse_pass *p, uint64_t node)
{
	struct pass_inode *i = cube_calloc(1, sizeof(*i));

	if (i == NULL || cube_imap_put(p->open, node, i) < 0) {
		cube_free(i);
		return NULL;
	}
	return i;
}

int cube_fuse_pass_adopt(struct cube_fuse_pass *p, uint64_t node, int32_t id)
{
	struct pass_inode *i;

	if (!pass_able(p))
		return 0;
	(void)pthread_mutex_lock(&p->lock);
	i = cube_imap_get(p->open, node);
	if (i == NULL)
		i = pass_add_locked(p, node);
	if (i != NULL) {
		i->id = id;
		i->opens++;
	}
	(void)pthread_mutex_unlock(&p->lock);
	return i != NULL ? 0 : -ENOMEM;
}

int cube_fuse_pass_open(struct cube_fuse_pass *p, uint64_t node, int fd, int32_t *ret_id)
{
	struct pass_inode *i;

	*ret_id = 0;
	if (!pass_able(p))
		return 0;
	(void)pthread_mutex_lock(&p->lock);
	i = cube_imap_get(p->open, node);
	if (i == NULL) {
		i = pass_add_locked(p, node);
		if (i != NULL)
			i->id = pass_id_of(p, fd);
	}
	if (i != NULL) {
		i->opens++;
		*ret_id = i->id;
	}
	(void)pthread_mutex_unlock(&p->lock);
	return i != NULL ? 0 : -ENOMEM;
}

void cube_fuse_pass_close(struct cube_fuse_pass *p, uint64_t node)
{
	struct pass_inode *i;

	if (atomic_load(&p->state) != PASS_YES)
		return;
	(void)pthread_mutex_lock(&p->lock);
	i = cube_imap_get(p->open, node);
	if (i != NULL && --i->opens == 0) {
		(void)cube_imap_take(p->open, node);
		if (i->id != 0)
			pass_unregister(p->fd, i->id);
		cube_free(i);
	}
	(void)pthread_mutex_unlock(&p->lock);
}

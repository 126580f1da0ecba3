/* SPDX-License-Identifier: Apache-2.0 */
/* The upper layer of the template `host`: kept, and made anew when the machine has changed. */
#include "backends/local/mask.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/local/hidden.h"
#include "backends/local/keep.h"
#include "backends/local/mask_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MASK_LOOK_NS     UINT64_C(10000000000)
#define MASK_ETC_DEPTH   16
#define MASK_SHOWN_DEPTH 2 /* /usr/local/lib changes when something is put there; deeper is not looked at */

struct cube_local_mask {
	struct cube_ns_ids ids;
	bool redirect;

	pthread_mutex_t lock; /* of what follows; held while a layer is built */
	int before;           /* the one that it replaced: somebody may be about to mount it */
	int fd;               /* -1: none yet */
	uint64_t print;       /* of the machine when it was built */
	uint64_t looked;      /* when the machine was last looked at */
};

struct cube_local_mask *cube_local_mask_new(const struct cube_ns_ids *ids, bool redirect)
{
	struct cube_local_mask *m = cube_calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->ids = *ids;
	m->redirect = redirect;
	m->fd = m->before = -1;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void cube_local_mask_free(struct cube_local_mask *m)
{
	if (!m)
		return;
	cube_local_keep_end(m->before);
	cube_local_keep_end(m->fd);
	pthread_mutex_destroy(&m->lock);
	cube_free(m);
}

/* ---- has the machine changed? ---- */

static void print_add(uint64_t *print, uint64_t what)
{
	*print = (*print ^ what) * UINT64_C(0x100000001b3); /* FNV-1a, by words */
	*print ^= *print >> 29;
}

static void print_stat(uint64_t *print, const char *name, const struct stat *st)
{
	const uint64_t what[] = {st->st_ino,
				 st->st_mode,
				 st->st_uid,
				 (uint64_t)st->st_size,
				 (uint64_t)st->st_ctim.tv_sec,
				 (uint64_t)st->st_ctim.tv_nsec};

	for (; *name; name++)
		print_add(print, (unsigned char)*name);
	for (size_t i = 0; i < CUBE_COUNT(what); i++)
		print_add(print, what[i]);
}

/* All entries below @name down to @depth levels; of the last level and with @dirs everywhere only
 * directories count. */
static void print_dir(uint64_t *print, int parent, const char *name, unsigned depth, bool dirs)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st = {.st_mode = 0};

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, "..") == 0 || (dirs && e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		print_stat(print, e->d_name, &st);
		if (S_ISDIR(st.st_mode) && depth > 0 && strcmp(e->d_name, ".") != 0)
			print_dir(print, dirfd(d), e->d_name, depth - 1, dirs);
	}
	closedir(d);
}

static uint64_t mask_print(const struct cube_local_mask *m)
{
	uint64_t print = UINT64_C(0xcbf29ce484222325);

	print_dir(&print, AT_FDCWD, "/etc", MASK_ETC_DEPTH, false);
	for (size_t i = 0; m->redirect && cube_local_hidden_roots[i]; i++)
		print_dir(&print, AT_FDCWD, cube_local_hidden_roots[i], MASK_SHOWN_DEPTH, true);
	return print;
}

/* ---- the layer ---- */

static int mask_build_locked(struct cube_local_mask *m, uint64_t print, struct cube_err *err)
{
	struct cube_buf hidden = CUBE_BUF(CUBE_HIDDEN_MAX);
	int fd = -1, rc = 0;

	if (m->redirect)
		rc = cube_local_hidden_get(m->fd >= 0, &hidden, err);
	if (rc == 0)
		rc = cube_local_mask_build(&m->ids, m->redirect, &hidden, &fd, err);
	cube_buf_done(&hidden);
	if (rc < 0)
		return rc;
	cube_local_keep_end(m->before);
	m->before = m->fd;
	m->fd = fd;
	m->print = print;
	return 0;
}

static int mask_refresh_locked(struct cube_local_mask *m, struct cube_err *err)
{
	uint64_t now = cube_clock_mono(), print;

	if (m->fd >= 0 && now - m->looked < MASK_LOOK_NS)
		return 0;
	print = mask_print(m); /* before it is built: what changes meanwhile is seen the next time */
	m->looked = now;
	return m->fd >= 0 && print == m->print ? 0 : mask_build_locked(m, print, err);
}

int cube_local_mask_get(struct cube_local_mask *m, int *ret_fd, struct cube_err *err)
{
	int rc, fd;

	pthread_mutex_lock(&m->lock);
	rc = mask_refresh_locked(m, err);
	if (rc == 0) {
		fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			rc = cube_fail_errno(err, "out of descriptors");
		else
			*ret_fd = fd;
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

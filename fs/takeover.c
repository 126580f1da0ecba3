/* SPDX-License-Identifier: Apache-2.0 */
/* A worker comes after another. */
#include "fs/takeover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/heir.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "fs/keep/holder.h"

#define TAKEOVER_ABOVE 64 /* from the highest number that may be had */

static uint64_t takeover_pair(pid_t holder, pid_t other)
{
	return (uint32_t)holder | (uint64_t)(uint32_t)other << 32;
}

/* Where the number stands of one that is about to have the descriptors. */
static pid_t *takeover_other(struct cube_keep *k)
{
	size_t upper = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? sizeof(pid_t) : 0;

	return (pid_t *)(void *)((char *)k->head + offsetof(struct cube_keep_head, holders) + upper);
}

/* Out of the way of what is about to get its old number. */
static int takeover_open(pid_t holder)
{
	int fd = (int)syscall(SYS_pidfd_open, holder, 0), above;
	struct rlimit r;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &r) < 0)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, (int)r.rlim_cur - TAKEOVER_ABOVE);
	if (above < 0)
		return fd;
	(void)close(fd);
	return above;
}

static void takeover_one(int pidfd, int32_t *fd, unsigned *lost)
{
	if (*fd < 0)
		return;
	if (pidfd >= 0 && cube_holder_take(pidfd, *fd) == 0)
		return;
	*fd = CUBE_KEEP_LOST;
	++*lost;
}

static void takeover_all(struct cube_keep *k, int pidfd)
{
	unsigned lost = 0;

	for (uint32_t i = 0; i < cube_keep_used(&k->handles); i++) {
		struct cube_keep_handle *h = cube_keep_at(&k->handles, i);

		if (atomic_load(&h->key) == 0)
			continue;
		takeover_one(pidfd, &h->fd, &lost);
		takeover_one(pidfd, &h->in.fd, &lost);
		takeover_one(pidfd, &h->text.fd, &lost);
	}
	for (uint32_t i = 0; i < cube_keep_used(&k->locks); i++) {
		struct cube_keep_lock *l = cube_keep_at(&k->locks, i);

		if (atomic_load(&l->key) != 0)
			takeover_one(pidfd, &l->fd, &lost);
	}
	for (uint32_t i = 0; i < cube_keep_used(&k->marks); i++) {
		struct cube_keep_mark *m = cube_keep_at(&k->marks, i);

		if (atomic_load(&m->key) != 0)
			takeover_one(pidfd, &m->pidfd, &lost);
	}
	if (lost > 0)
		cube_log(CUBE_LOG_ERROR, "takeover", "%u open files of the worker before are lost", lost);
}

/* Nobody who connects meanwhile shall be refused, and the one before may need a while to end. */
static void takeover_listeners(pid_t holder, int pidfd)
{
	char path[64], to[16];
	const struct dirent *e;
	uint64_t number;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", holder);
	d = opendir(path);
	while (d != NULL && (e = readdir(d)) != NULL) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof(to));
		int fd = -1;

		if (n > 7 && memcmp(to, "socket:", 7) == 0 &&
		    cube_num_u64(e->d_name, INT32_MAX, &number) == 0)
			fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
		if (fd >= 0)
			cube_heir_add(fd);
	}
	if (d != NULL)
		(void)closedir(d);
}

int cube_takeover(struct cube_keep *k, struct cube_err *err)
{
	pid_t before = (pid_t)(uint32_t)atomic_load(&k->head->holders), own;
	cube_auto_fd pidfd = -1;
	int r = cube_holder_start(takeover_other(k), err);

	if (r < 0)
		return r;
	own = *takeover_other(k);
	if (before == 0) {
		atomic_store(&k->head->holders, takeover_pair(own, 0));
		return 0;
	}
	pidfd = takeover_open(before);
	takeover_all(k, pidfd);
	if (pidfd >= 0)
		takeover_listeners(before, pidfd);
	atomic_store(&k->head->holders, takeover_pair(own, before));
	if (pidfd >= 0)
		cube_holder_end(pidfd);
	atomic_store(&k->head->holders, takeover_pair(own, 0));
	return 0;
}

void cube_takeover_tidy(struct cube_keep *k)
{
	uint64_t pair = atomic_load(&k->head->holders);
	pid_t other = (pid_t)(pair >> 32);

	if (other > 0)
		(void)kill(other, SIGKILL);
	atomic_store(&k->head->holders, pair & UINT32_MAX);
}

void cube_takeover_end(struct cube_keep *k)
{
	pid_t holder = (pid_t)(uint32_t)atomic_load(&k->head->holders);

	cube_takeover_tidy(k);
	if (holder <= 0 || kill(holder, SIGKILL) < 0)
		return;
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What of /usr and /opt not everyone may read. */
#include "backends/local/hidden.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIDDEN_DEPTH   64
#define HIDDEN_WAIT_MS 120000

const char *const cube_local_hidden_roots[] = {"/usr", "/opt", NULL};

/* Of the walk that was started: its result, and the pipe that ends when the walker does. Written by
 * cube_local_hidden_start alone, while there is one thread. */
static int hidden_result = -1;
static int hidden_done = -1;

struct hidden_walk {
	struct cube_buf *list;
	char path[PATH_MAX];
	size_t len;
	dev_t dev;
};

static int hidden_note(struct hidden_walk *w)
{
	return cube_buf_add(w->list, w->path, w->len + 1);
}

static bool hidden_private(const struct stat *st)
{
	mode_t all = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return !S_ISLNK(st->st_mode) && (st->st_mode & all) != all;
}

static int hidden_dir(struct hidden_walk *w, int parent, const char *name, unsigned depth);

static int hidden_entry(struct hidden_walk *w, int dir, const struct dirent *e, unsigned depth)
{
	size_t before = w->len, n = strlen(e->d_name);
	struct stat st;
	int rc = 0;

	if (e->d_type == DT_LNK || w->len + n + 2 > sizeof(w->path))
		return 0;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	w->path[w->len] = '/';
	memcpy(w->path + w->len + 1, e->d_name, n + 1);
	w->len += n + 1;
	if (hidden_private(&st))
		rc = hidden_note(w);
	else if (S_ISDIR(st.st_mode) && st.st_dev == w->dev)
		rc = hidden_dir(w, dir, e->d_name, depth + 1);
	w->len = before;
	w->path[before] = 0;
	return rc;
}

static int hidden_dir(struct hidden_walk *w, int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct dirent *e;
	DIR *d;
	int rc = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	d = depth < HIDDEN_DEPTH ? fdopendir(fd) : NULL;
	if (!d) { /* too deep to look at: hidden as a whole */
		close(fd);
		return hidden_note(w);
	}
	while (rc == 0 && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = hidden_entry(w, dirfd(d), e, depth);
	closedir(d);
	return rc;
}

int cube_local_hidden_walk(const char *root, struct cube_buf *list)
{
	struct hidden_walk w = {.list = list};
	struct stat st;

	if (lstat(root, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode) || strlen(root) >= sizeof(w.path))
		return 0;
	w.dev = st.st_dev;
	w.len = strlen(root);
	memcpy(w.path, root, w.len + 1);
	return hidden_dir(&w, AT_FDCWD, root, 0);
}

static int hidden_walk_all(struct cube_buf *list)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && cube_local_hidden_roots[i]; i++)
		rc = cube_local_hidden_walk(cube_local_hidden_roots[i], list);
	return rc;
}

/* The walk may outlive the daemon for a moment: nothing else of it may, least of all the lock on the state
 * directory and the kernel's end of the mount. */
static void hidden_keep_only(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if (low > 3)
		(void)close_range(3, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low + 1, high - 1, 0);
	(void)close_range(high + 1, ~0u, 0);
}

/* An empty path behind the last one says that the walk came to its end. */
static _Noreturn void hidden_walker(int result, int done)
{
	struct cube_buf list = CUBE_BUF(CUBE_HIDDEN_MAX);

	hidden_keep_only(result, done);
	if (hidden_walk_all(&list) == 0 && cube_buf_addc(&list, 0) == 0)
		(void)cube_file_write_all(result, list.data, list.len);
	_exit(0);
}

void cube_local_hidden_start(void)
{
	cube_auto_fd result = -1;
	int ends[2];
	pid_t pid;

	if (hidden_result >= 0)
		return;
	result = memfd_create("cubefs-hidden", MFD_CLOEXEC);
	if (result < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) { /* its child belongs to nobody here, so nobody has to reap it */
		close(ends[0]);
		if (fork() == 0)
			hidden_walker(result, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return;
	}
	(void)waitpid(pid, NULL, 0);
	hidden_result = cube_steal_fd(&result);
	hidden_done = ends[0];
}

int cube_local_hidden_wait(struct cube_cancel *cancel)
{
	struct pollfd p[] = {{.fd = hidden_done, .events = POLLIN},
			     {.fd = cube_cancel_fd(cancel), .events = POLLIN}};

	if (hidden_done >= 0)
		(void)poll(p, CUBE_COUNT(p), HIDDEN_WAIT_MS);
	return cube_cancel_fired(cancel) ? -EINTR : 0;
}

/* False where there is no whole result. */
static bool hidden_collect(struct cube_buf *list)
{
	size_t before = list->len;
	struct stat st;
	char *to;

	if (hidden_result < 0 || cube_local_hidden_wait(NULL) < 0 || fstat(hidden_result, &st) < 0 ||
	    st.st_size < 1)
		return false;
	to = cube_buf_reserve(list, (size_t)st.st_size);
	if (!to || pread(hidden_result, to, (size_t)st.st_size, 0) != st.st_size)
		return false;
	list->len += (size_t)st.st_size - 1; /* without the mark of the end */
	if (to[st.st_size - 1] == 0 && (st.st_size == 1 || to[st.st_size - 2] == 0))
		return true;
	list->len = before;
	return false;
}

int cube_local_hidden_get(bool fresh, struct cube_buf *list, struct cube_err *err)
{
	uint64_t start = cube_clock_mono();
	int rc;

	if (!fresh && hidden_collect(list))
		return 0;
	cube_buf_reset(list);
	rc = hidden_walk_all(list);
	if (rc < 0)
		return cube_fail(err, rc, "cannot look for private files in /usr and /opt: %s",
				 cube_errno_text(rc));
	cube_log(CUBE_LOG_DEBUG, "local", "looked for private files in /usr and /opt: %llu ms",
		 (unsigned long long)((cube_clock_mono() - start) / 1000000));
	return 0;
}

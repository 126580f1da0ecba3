/* SPDX-License-Identifier: Apache-2.0 */
/* The private directory of a session's shell. */
#include "backends/agent/init/session_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/agent/init/dir.h"
#include "backends/agent/wire.h"
#include "backends/base/macros.h"

static char run_path[INIT_RUN_DIR_MAX];
static int run_dir = -1;
static unsigned run_next;

/* All that may be in a session's directory. */
static const char *const file_names[] = {"c", "s", "o", "i", "d", "D", "t", "x", "n", "e", "v", "r"};
/* Of these what is there when a shell starts. */
static const char *const file_given[] = {"c", "s", "o", "i", "d", "D", "t", "x", "n", "e", "v", "r", "q"};

static int run_open(void)
{
	if (run_dir >= 0)
		(void)close(run_dir);
	run_dir = open(run_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run_dir < 0 && errno == ENOENT && mkdir(run_path, 0711) == 0) {
		(void)chmod(run_path, 0711);
		run_dir = open(run_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return run_dir < 0 ? -errno : 0;
}

int init_session_files_setup(const char *path)
{
	(void)snprintf(run_path, sizeof(run_path), "%s", path);
	return run_open();
}

void init_session_files_teardown(void)
{
	if (run_dir >= 0)
		(void)rmdir(run_path);
}

void init_session_files_init(struct init_session_files *f)
{
	*f = (struct init_session_files){.dir = -1,
					 .command = -1,
					 .status = -1,
					 .driver = {-1, -1},
					 .text = -1,
					 .exports = -1,
					 .output = -1};
}

/* The agent may be restarted beside what an earlier one left, so numbers are tried until one is free. */
static int files_mkdir(struct init_session_files *f)
{
	char name[16];

	for (int tries = 0; tries < 1000; tries++) {
		(void)snprintf(name, sizeof(name), "%u", ++run_next);
		if (mkdirat(run_dir, name, 0711) == 0) {
			(void)snprintf(f->path, sizeof(f->path), "%s/%s", run_path, name);
			f->dir = openat(run_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			return f->dir < 0 ? -errno : fchmod(f->dir, 0711) < 0 ? -errno : 0;
		}
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

static void files_give(const struct init_session_files *f, const char *name)
{
	if (f->given)
		(void)(fchownat(f->dir, name, f->uid, f->gid, AT_SYMLINK_NOFOLLOW) < 0);
}

static int files_fifo(struct init_session_files *f, const char *name, int flags)
{
	int fd;

	(void)unlinkat(f->dir, name, 0);
	if (mkfifoat(f->dir, name, 0600) < 0)
		return -errno;
	files_give(f, name);
	fd = openat(f->dir, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

static int files_plain(struct init_session_files *f, const char *name)
{
	int fd;

	(void)unlinkat(f->dir, name, 0);
	fd = openat(f->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	files_give(f, name);
	return fd;
}

static int files_fill(struct init_session_files *f)
{
	struct {
		int *fd;
		const char *name;
		bool fifo;
	} const wanted[] = {
		{&f->command, "c", true},    {&f->status, "s", true}, {&f->driver[0], "d", false},
		{&f->driver[1], "D", false}, {&f->text, "t", false},  {&f->exports, "x", false},
	};

	for (unsigned i = 0; i < CUBE_COUNT(wanted); i++) {
		*wanted[i].fd = wanted[i].fifo ? files_fifo(f, wanted[i].name, O_RDWR)
					       : files_plain(f, wanted[i].name);
		if (*wanted[i].fd < 0)
			return *wanted[i].fd;
	}
	if (mkdirat(f->dir, "q", 0700) < 0)
		return -errno;
	return init_session_files_output(f);
}

int init_session_files_open(struct init_session_files *f)
{
	int r;

	init_session_files_init(f);
	r = run_dir < 0 ? -ENOENT : files_mkdir(f);
	if (r < 0) { /* somebody removed it, or it could not be made before */
		r = run_open();
		if (r == 0)
			r = files_mkdir(f);
	}
	if (r == 0)
		r = files_fill(f);
	if (r < 0)
		init_session_files_close(f);
	return r;
}

static void files_empty_probe(struct init_session_files *f)
{
	char name[64];

	for (int i = 0; i < 10000 && init_session_files_probe(f, name, sizeof(name)); i++)
		;
}

void init_session_files_close(struct init_session_files *f)
{
	const int fds[] = {f->command, f->status, f->driver[0], f->driver[1], f->text, f->exports, f->output};

	if (f->dir < 0)
		return;
	for (unsigned i = 0; i < CUBE_COUNT(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	files_empty_probe(f);
	for (unsigned i = 0; i < CUBE_COUNT(file_names); i++)
		(void)unlinkat(f->dir, file_names[i], 0);
	(void)unlinkat(f->dir, "q", AT_REMOVEDIR);
	(void)close(f->dir);
	(void)unlinkat(run_dir, strrchr(f->path, '/') + 1, AT_REMOVEDIR);
	init_session_files_init(f);
}

/* One for all: what removes them takes the whole directory, and a shell that misses one of the others is
 * found out by session_watch.c. */
bool init_session_files_intact(const struct init_session_files *f)
{
	struct stat st;

	return fstat(f->driver[0], &st) == 0 && st.st_nlink > 0;
}

void init_session_files_give(int dir, uid_t uid, gid_t gid)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "u %u %u\n", (unsigned)uid, (unsigned)gid);
	int fd = openat(dir, "s", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	for (unsigned i = 0; i < CUBE_COUNT(file_given); i++)
		(void)(fchownat(dir, file_given[i], uid, gid, AT_SYMLINK_NOFOLLOW) < 0);
	if (fd >= 0) {
		(void)(write(fd, text, (size_t)n) < 0);
		(void)close(fd);
	}
}

void init_session_files_given(struct init_session_files *f, uid_t uid, gid_t gid)
{
	if (f->given)
		return;
	f->given = true;
	f->uid = uid;
	f->gid = gid;
}

int init_session_files_put(int fd, const struct iovec *parts, int n)
{
	size_t len = 0;
	ssize_t done;

	for (int i = 0; i < n; i++)
		len += parts[i].iov_len;
	done = pwritev(fd, parts, n, 0);
	if (done < 0)
		return -errno;
	return (size_t)done < len ? -ENOSPC : ftruncate(fd, (off_t)len) < 0 ? -errno : 0;
}

int init_session_files_make(struct init_session_files *f, const char *name, const struct iovec *parts, int n)
{
	int fd = files_plain(f, name);
	int r;

	if (fd < 0)
		return fd;
	r = init_session_files_put(fd, parts, n);
	(void)close(fd);
	return r;
}

int init_session_files_output(struct init_session_files *f)
{
	if (f->output < 0)
		f->output = files_fifo(f, "o", O_RDONLY);
	return f->output < 0 ? f->output : 0;
}

/* A fifo can be opened for writing without waiting only while somebody reads, and forgets what was written
 * once nobody has it open: hence a reading end, until the shell has its own. */
int init_session_files_input(struct init_session_files *f, int *ret_write, int *ret_keep)
{
	int keep = files_fifo(f, "i", O_RDONLY);
	int fd;

	if (keep < 0)
		return keep;
	fd = openat(f->dir, "i", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		(void)close(keep);
		return fd;
	}
	*ret_write = fd;
	*ret_keep = keep;
	return 0;
}

char *init_session_files_exports(struct init_session_files *f, size_t *ret_len)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(f->exports, &st) < 0 || st.st_size <= 0 || st.st_size > (off_t)CUBE_WIRE_EXPORTS_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	n = text != NULL ? pread(f->exports, text, (size_t)st.st_size, 0) : -1;
	if (n <= 0 || memchr(text, 0, (size_t)n) != NULL) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_len = (size_t)n;
	return text;
}

bool init_session_files_probe(struct init_session_files *f, char *name, size_t size)
{
	int fd = openat(f->dir, "q", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = init_dir_open(fd);
	const char *e;
	bool found = false;

	while (dir != NULL && !found && (e = init_dir_next(dir)) != NULL) {
		if (e[0] == '.' || unlinkat(fd, e, 0) < 0)
			continue;
		found = true;
		(void)snprintf(name, size, "%s", e);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

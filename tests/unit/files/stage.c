/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch trees for the tests of real files. */
#include "tests/unit/files/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "backends/base/err.h"
#include "backends/base/file.h"

const struct cube_files_cred stage_cred = {.uid = 0, .gid = 0, .pid = 1};

void stage_main(void)
{
	(void)umask(0);
	if (geteuid() != 0)
		return;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		perror("private mounts");
}

void stage_need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void must(int r, const char *what)
{
	if (r < 0)
		fail_msg("%s: %s", what, cube_errno_text(errno));
}

static void stage_make_layers(struct stage *s)
{
	char data[256];

	must(mkdirat(s->top_fd, "lower", 0755), "lower");
	must(mkdirat(s->top_fd, "over", 0755), "over");
	(void)snprintf(data, sizeof(data), "%s/lower", s->top);
	must(mount("lower", data, "tmpfs", 0, NULL), "lower");
	(void)snprintf(data, sizeof(data), "%s/over", s->top);
	must(mount("over", data, "tmpfs", 0, NULL), "over");
	must(mkdirat(s->top_fd, "over/upper", 0755), "upper");
	must(mkdirat(s->top_fd, "over/work", 0755), "work");
}

/* The overlay itself comes with attach, after the test has filled `lower`. */
static void stage_mount_overlay(struct stage *s)
{
	char data[512], root[96];

	(void)snprintf(data, sizeof(data),
		       "lowerdir=%s/lower,upperdir=%s/over/upper,workdir=%s/over/work,xino=off", s->top,
		       s->top, s->top);
	(void)snprintf(root, sizeof(root), "%s/root", s->top);
	must(mount("overlay", root, "overlay", 0, data), "overlay");
	(void)close(s->fd);
	s->fd = openat(s->top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(s->fd, "root");
}

void stage_prepare(struct stage *s, enum stage_kind kind)
{
	*s = (struct stage){.seed = 42, .root = {.fd = -1}};
	(void)snprintf(s->top, sizeof(s->top), "/tmp/cubefs-files-XXXXXX");
	if (mkdtemp(s->top) == NULL)
		fail_msg("mkdtemp: %s", cube_errno_text(errno));
	if (geteuid() == 0 && kind != STAGE_DISK)
		must(mount("stage", s->top, "tmpfs", 0, "mode=755"), "tmpfs");
	s->top_fd = open(s->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(s->top_fd, "top");
	must(mkdirat(s->top_fd, "root", 0755), "root");
	s->fd = openat(s->top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(s->fd, "root");
	if (kind == STAGE_OVERLAY)
		stage_make_layers(s);
}

void stage_attach(struct stage *s)
{
	struct stat st;

	if (fstatat(s->top_fd, "over", &st, 0) == 0)
		stage_mount_overlay(s);
	s->root.fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	s->space = cube_files_space_new(&s->options);
	assert_non_null(s->space);
	assert_int_equal(cube_files_attach(s->space, &s->root, s->seed, &s->owner, &s->tree), 0);
	assert_int_equal(s->root.fd, -1);
	s->id = cube_files_root(s->tree);
}

void stage_open(struct stage *s)
{
	stage_prepare(s, STAGE_PLAIN);
	stage_attach(s);
}

void stage_detach(struct stage *s)
{
	if (s->tree != NULL)
		cube_files_detach(s->tree);
	s->tree = NULL;
}

void stage_close(struct stage *s)
{
	stage_detach(s);
	cube_files_space_free(s->space);
	(void)close(s->fd);
	(void)close(s->top_fd);
	if (geteuid() == 0) {
		while (umount2(s->top, MNT_DETACH) == 0)
			continue;
	}
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, s->top), 0);
}

void stage_mount(struct stage *s, const char *path, const char *from, bool read_only)
{
	unsigned i = s->root.n_mounts++;

	if (mkdirat(s->top_fd, from, 0755) < 0 && errno != EEXIST)
		fail_msg("%s: %s", from, cube_errno_text(errno));
	(void)snprintf(s->root.mounts[i].path, sizeof(s->root.mounts[i].path), "%s", path);
	s->root.mounts[i].fd = openat(s->top_fd, from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(s->root.mounts[i].fd, from);
	s->root.mounts[i].read_only = read_only;
}

void stage_mkdir(const struct stage *s, const char *path)
{
	must(mkdirat(s->fd, path, 0755), path);
}

void stage_write(const struct stage *s, const char *path, const char *text)
{
	int fd = openat(s->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd, path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

void stage_symlink(const struct stage *s, const char *target, const char *path)
{
	must(symlinkat(target, s->fd, path), path);
}

void stage_stat(const struct stage *s, const char *path, struct stat *st)
{
	must(fstatat(s->fd, path, st, AT_SYMLINK_NOFOLLOW), path);
}

int stage_lookup(struct stage *s, const char *path, struct cube_files_entry *ret)
{
	char name[256];
	size_t len;
	int r;

	*ret = (struct cube_files_entry){.id = s->id};
	for (; *path != '\0'; path += len) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, path);
		r = cube_files_lookup(s->space, ret->id, name, ret);
		if (r < 0)
			return r;
	}
	return 0;
}

uint64_t stage_node(struct stage *s, const char *path)
{
	struct cube_files_entry e;
	int r = stage_lookup(s, path, &e);

	if (r < 0)
		fail_msg("%s: %s", path, cube_errno_text(-r));
	return e.id;
}

const char *stage_read(struct stage *s, const char *path, char *buf, size_t size)
{
	struct cube_files_handle *h;
	ssize_t n = cube_files_open(s->space, stage_node(s, path), O_RDONLY, &h);

	if (n < 0)
		fail_msg("%s: %s", path, cube_errno_text((int)-n));
	n = cube_files_read(h, buf, size - 1, 0);
	assert_true(n >= 0);
	buf[n] = '\0';
	cube_files_release(h);
	return buf;
}

const char *stage_readlink(struct stage *s, const char *path, char *buf, size_t size)
{
	ssize_t n = cube_files_readlink(s->space, stage_node(s, path), buf, size);

	if (n < 0)
		(void)snprintf(buf, size, "-%s", strerrorname_np((int)-n));
	else
		assert_int_equal(n, strlen(buf));
	return buf;
}

struct stage_names {
	char names[64][256];
	unsigned n;
};

static int names_add(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct stage_names *l = ctx;

	(void)e;
	(void)next;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	assert_true(l->n < 64);
	(void)snprintf(l->names[l->n++], sizeof(l->names[0]), "%s", name);
	return 0;
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *stage_list(struct stage *s, const char *path, char *buf, size_t size)
{
	struct stage_names l = {.n = 0};
	struct cube_files_handle *h;
	size_t at = 0;

	assert_int_equal(cube_files_opendir(s->space, stage_node(s, path), &h), 0);
	assert_int_equal(cube_files_readdir(s->space, h, 0, false, names_add, &l), 0);
	cube_files_release(h);
	qsort(l.names, l.n, sizeof(l.names[0]), names_compare);
	*buf = '\0';
	for (unsigned i = 0; i < l.n; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s ", l.names[i]);
	return buf;
}

unsigned stage_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of its own */
		n++;
	(void)closedir(d);
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations through the files API and, with plain system calls, on a second directory: results,
 * errors, contents and whole trees must be the same. Reproducible: CUBEFS_SEED=N, CUBEFS_ROUNDS=N. */
#include "tests/unit/files/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backends/base/macros.h"

enum { OPEN_MAX_FILES = 4 };

struct differ {
	struct stage s;
	int plain; /* the second directory */
	bool overlay;
	unsigned seed;
	unsigned long step;
	char what[160]; /* the operation, for messages */
	/* files that are open on both sides */
	struct {
		struct cube_files_handle *h;
		uint64_t id;
		int fd;
	} open[OPEN_MAX_FILES];
};

static unsigned pick(struct differ *d, unsigned below)
{
	d->seed = d->seed * 1103515245u + 12345u;
	return (d->seed >> 16) % below;
}

/* One of the names that are used: directories and files share them, links have their own, since a link on the
 * way is the kernel's to follow. */
static void pick_name(struct differ *d, char out[16])
{
	(void)snprintf(out, 16, "n%u", pick(d, 5));
}

/* A directory (it may be missing, or a file): its path and, for the API, its node. */
struct place {
	char path[32]; /* "." or "n1/n2" */
	uint64_t id;
	int error; /* of the walk there */
	int fd;    /* of the second directory, or -1 */
	char name[16];
	char full[64];
};

static void pick_place(struct differ *d, struct place *p)
{
	char a[16], b[16];
	unsigned depth = pick(d, 3);
	struct cube_files_entry e = {.id = d->s.id};

	pick_name(d, a);
	pick_name(d, b);
	(void)snprintf(p->path, sizeof(p->path), depth == 0 ? "." : depth == 1 ? "%s" : "%s/%s", a, b);
	p->error = depth > 0 ? cube_files_lookup(d->s.space, e.id, a, &e) : 0;
	if (p->error == 0 && depth > 1)
		p->error = cube_files_lookup(d->s.space, e.id, b, &e);
	p->id = e.id;
	p->fd = openat(d->plain, p->path, O_PATH | O_CLOEXEC);
	assert_int_equal(p->error, p->fd < 0 ? -errno : 0);
	pick_name(d, p->name);
	(void)snprintf(p->full, sizeof(p->full), "%s/%s", p->path, p->name);
}

static void drop_place(struct place *p)
{
	if (p->fd >= 0)
		(void)close(p->fd);
}

static void compare(const struct differ *d, ssize_t api, ssize_t plain)
{
	ssize_t want = plain < 0 ? -errno : plain;

	if (api != want)
		fail_msg("step %lu, %s: %s, not %s", d->step, d->what,
			 api < 0 ? strerrorname_np((int)-api) : "success",
			 want < 0 ? strerrorname_np((int)-want) : "success");
}

/* The two expressions one after the other, so that errno is that of the plain one. */
#define same(d, api, plain)                                                                                  \
	do {                                                                                                 \
		ssize_t same_api = (api), same_plain;                                                        \
                                                                                                             \
		errno = 0;                                                                                   \
		same_plain = (plain);                                                                        \
		compare(d, same_api, same_plain);                                                            \
	} while (false)

static void same_stat(const struct differ *d, const struct stat *a, const struct stat *b)
{
	bool links = a->st_nlink == b->st_nlink || (d->overlay && S_ISDIR(a->st_mode)); /* overlayfs says 1 */

	if (a->st_mode != b->st_mode || !links || a->st_uid != b->st_uid ||
	    (!S_ISDIR(a->st_mode) && a->st_size != b->st_size))
		fail_msg("step %lu, %s: mode %o %o, links %lu %lu, owner %u %u, size %ld %ld", d->step,
			 d->what, a->st_mode, b->st_mode, (unsigned long)a->st_nlink,
			 (unsigned long)b->st_nlink, a->st_uid, b->st_uid, (long)a->st_size,
			 (long)b->st_size);
}

/* ---- operations: each on both sides ---- */

static void do_mkdir(struct differ *d, struct place *p)
{
	struct cube_files_entry e;

	same(d, cube_files_mkdir(d->s.space, &stage_cred, p->id, p->name, 0755, &e),
	     mkdirat(p->fd, p->name, 0755));
}

static void do_mknod(struct differ *d, struct place *p)
{
	const mode_t mode = (pick(d, 4) == 0 ? S_IFIFO : S_IFREG) | 0640;
	struct cube_files_entry e;

	same(d, cube_files_mknod(d->s.space, &stage_cred, p->id, p->name, mode, 0, &e),
	     mknodat(p->fd, p->name, mode, 0));
}

static void do_symlink(struct differ *d, struct place *p)
{
	struct cube_files_entry e;

	p->name[0] = 'l';
	same(d, cube_files_symlink(d->s.space, &stage_cred, p->id, p->name, "n0", &e),
	     symlinkat("n0", p->fd, p->name));
}

static void do_unlink(struct differ *d, struct place *p)
{
	p->name[0] = pick(d, 4) == 0 ? 'l' : 'n';
	same(d, cube_files_unlink(d->s.space, p->id, p->name), unlinkat(p->fd, p->name, 0));
}

static void do_rmdir(struct differ *d, struct place *p)
{
	same(d, cube_files_rmdir(d->s.space, p->id, p->name), unlinkat(p->fd, p->name, AT_REMOVEDIR));
}

static void do_rename(struct differ *d, struct place *p)
{
	static const unsigned flags[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	unsigned flag = flags[pick(d, CUBE_COUNT(flags))];
	struct place to = {.fd = -1};

	pick_place(d, &to);
	if (to.fd >= 0)
		same(d, cube_files_rename(d->s.space, p->id, p->name, to.id, to.name, flag),
		     renameat2(p->fd, p->name, to.fd, to.name, flag));
	drop_place(&to);
}

static void do_link(struct differ *d, struct place *p)
{
	struct cube_files_entry e;
	struct place to = {.fd = -1};
	int r = cube_files_lookup(d->s.space, p->id, p->name, &e);

	pick_place(d, &to);
	if (r == 0 && to.fd >= 0)
		same(d, cube_files_link(d->s.space, e.id, to.id, to.name, &e),
		     linkat(p->fd, p->name, to.fd, to.name, 0));
	drop_place(&to);
}

static void do_stat(struct differ *d, struct place *p)
{
	struct cube_files_entry e;
	struct stat st = {0};
	int r;

	p->name[0] = pick(d, 4) == 0 ? 'l' : 'n';
	r = cube_files_lookup(d->s.space, p->id, p->name, &e);
	same(d, r, fstatat(p->fd, p->name, &st, AT_SYMLINK_NOFOLLOW));
	if (r < 0)
		return;
	same_stat(d, &e.st, &st);
	assert_int_equal(cube_files_getattr(d->s.space, e.id, NULL, &e.st), 0);
	same_stat(d, &e.st, &st);
}

static void do_setattr(struct differ *d, struct place *p)
{
	const struct stat want = {
		.st_mode = pick(d, 2) ? 0600 : 04755, .st_size = pick(d, 9000), .st_uid = pick(d, 3)};
	const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = (time_t)pick(d, 1000), .tv_nsec = 7}};
	struct cube_files_entry e;
	unsigned kind = pick(d, 4);
	struct stat st = want;
	char path[64];
	int r = cube_files_lookup(d->s.space, p->id, p->name, &e);

	if (r < 0 || S_ISFIFO(e.st.st_mode)) /* truncate(2) of a fifo fails elsewhere in the kernel */
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", p->fd, p->name);
	st.st_atim = times[0];
	st.st_mtim = times[1];
	if (kind == 0)
		same(d, cube_files_setattr(d->s.space, e.id, NULL, &st, CUBE_SET_MODE, &e.st),
		     fchmodat(p->fd, p->name, want.st_mode, 0));
	else if (kind == 1)
		same(d, cube_files_setattr(d->s.space, e.id, NULL, &st, CUBE_SET_SIZE, &e.st),
		     truncate(path, want.st_size));
	else if (kind == 2)
		same(d, cube_files_setattr(d->s.space, e.id, NULL, &st, CUBE_SET_UID, &e.st),
		     fchownat(p->fd, p->name, want.st_uid, (gid_t)-1, 0));
	else
		same(d,
		     cube_files_setattr(d->s.space, e.id, NULL, &st, CUBE_SET_ATIME | CUBE_SET_MTIME, &e.st),
		     utimensat(p->fd, p->name, times, 0));
}

static void do_xattr(struct differ *d, struct place *p)
{
	struct cube_files_entry e;
	char path[64], a[64], b[64];
	ssize_t n;

	if (cube_files_lookup(d->s.space, p->id, p->name, &e) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", p->fd, p->name);
	switch (pick(d, 3)) {
	case 0:
		same(d, cube_files_setxattr(d->s.space, e.id, "user.a", p->full, strlen(p->full), 0),
		     lsetxattr(path, "user.a", p->full, strlen(p->full), 0));
		break;
	case 1:
		same(d, cube_files_removexattr(d->s.space, e.id, "user.a"), lremovexattr(path, "user.a"));
		break;
	default:
		n = cube_files_getxattr(d->s.space, e.id, "user.a", a, sizeof(a));
		same(d, n, lgetxattr(path, "user.a", b, sizeof(b)));
		if (n > 0)
			assert_memory_equal(a, b, n);
	}
}

static void close_slot(struct differ *d, unsigned i)
{
	if (d->open[i].h == NULL)
		return;
	cube_files_release(d->open[i].h);
	(void)close(d->open[i].fd);
	d->open[i].h = NULL;
}

static void do_open(struct differ *d, struct place *p)
{
	static const int all[] = {O_RDONLY,
				  O_WRONLY,
				  O_RDWR,
				  O_RDWR | O_TRUNC,
				  O_WRONLY | O_APPEND,
				  O_RDWR | O_CREAT,
				  O_RDWR | O_CREAT | O_EXCL,
				  O_RDWR | O_CREAT | O_TRUNC};
	int flags = all[pick(d, CUBE_COUNT(all))];
	unsigned i = pick(d, OPEN_MAX_FILES);
	struct cube_files_entry e;
	struct stat st = {0};
	int r;

	if (fstatat(p->fd, p->name, &st, 0) == 0 && S_ISFIFO(st.st_mode))
		return; /* ours refuses what would wait there */
	close_slot(d, i);
	if (flags & O_CREAT) {
		r = cube_files_create(d->s.space, &stage_cred, p->id, p->name, flags, 0640, &e,
				      &d->open[i].h);
	} else {
		r = cube_files_lookup(d->s.space, p->id, p->name, &e);
		if (r == 0 && S_ISDIR(e.st.st_mode) && (flags & O_ACCMODE) == O_RDONLY)
			return; /* a directory is opened by opendir */
		if (r == 0)
			r = cube_files_open(d->s.space, e.id, flags, &d->open[i].h);
	}
	d->open[i].id = e.id;
	same(d, r,
	     (d->open[i].fd = openat(p->fd, p->name, flags | O_NOFOLLOW | O_CLOEXEC, 0640)) < 0 ? -1 : 0);
	if (r < 0)
		d->open[i].h = NULL;
}

static void do_io(struct differ *d, struct place *p)
{
	unsigned i = pick(d, OPEN_MAX_FILES), len = pick(d, 5000);
	off_t at = pick(d, 9000);
	static char data[5000], a[5000], b[5000];
	struct stat sa, sb;
	ssize_t n;

	(void)p;
	if (d->open[i].h == NULL)
		return;
	memset(data, 'a' + (char)pick(d, 26), len);
	switch (pick(d, 5)) {
	case 0:
	case 1:
		same(d, cube_files_write(d->open[i].h, data, len, at), pwrite(d->open[i].fd, data, len, at));
		break;
	case 2:
		n = cube_files_read(d->open[i].h, a, len, at);
		same(d, n, pread(d->open[i].fd, b, len, at));
		if (n > 0)
			assert_memory_equal(a, b, n);
		break;
	case 3:
		same(d,
		     cube_files_fallocate(d->open[i].h, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len),
		     fallocate(d->open[i].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len));
		break;
	default:
		same(d, cube_files_lseek(d->open[i].h, at, SEEK_HOLE), lseek(d->open[i].fd, at, SEEK_HOLE));
	}
	assert_int_equal(cube_files_getattr(d->s.space, d->open[i].id, d->open[i].h, &sa), 0);
	assert_int_equal(fstat(d->open[i].fd, &sb), 0);
	same_stat(d, &sa, &sb);
	assert_int_equal(cube_files_getattr(d->s.space, d->open[i].id, NULL, &sa), 0); /* removed or not */
	same_stat(d, &sa, &sb);
}

static void do_close(struct differ *d, struct place *p)
{
	(void)p;
	close_slot(d, pick(d, OPEN_MAX_FILES));
}

static const struct {
	const char *name;
	void (*fn)(struct differ *d, struct place *p);
	unsigned weight;
} ops[] = {
	{"mkdir", do_mkdir, 6},   {"mknod", do_mknod, 4}, {"symlink", do_symlink, 3},
	{"unlink", do_unlink, 5}, {"rmdir", do_rmdir, 3}, {"rename", do_rename, 8},
	{"link", do_link, 4},     {"stat", do_stat, 5},   {"setattr", do_setattr, 6},
	{"xattr", do_xattr, 4},   {"open", do_open, 8},   {"io", do_io, 12},
	{"close", do_close, 2},
};

static void one_step(struct differ *d)
{
	unsigned total = 0, at, i;
	struct place p = {.fd = -1};

	for (i = 0; i < CUBE_COUNT(ops); i++)
		total += ops[i].weight;
	at = pick(d, total);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	pick_place(d, &p);
	(void)snprintf(d->what, sizeof(d->what), "%s %s", ops[i].name, p.full);
	if (p.fd >= 0)
		ops[i].fn(d, &p);
	drop_place(&p);
}

/* ---- whole trees ---- */

struct listing {
	char names[32][16];
	unsigned n;
};

static int listing_add(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct listing *l = ctx;

	(void)e;
	(void)next;
	if (name[0] == '.')
		return 0;
	assert_true(l->n < CUBE_COUNT(l->names));
	(void)snprintf(l->names[l->n++], sizeof(l->names[0]), "%s", name);
	return 0;
}

static void compare_content(const struct differ *d, uint64_t id, int dirfd, const char *name)
{
	static char a[20000], b[20000];
	struct cube_files_handle *h;
	ssize_t n;
	int fd;

	assert_int_equal(cube_files_open(d->s.space, id, O_RDONLY, &h), 0);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	n = cube_files_read(h, a, sizeof(a), 0);
	same(d, n, pread(fd, b, sizeof(b), 0));
	assert_memory_equal(a, b, n);
	(void)close(fd);
	cube_files_release(h);
}

static unsigned count_names(int fd)
{
	DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of its own */
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static void compare_trees(const struct differ *d, uint64_t id, int fd, int depth)
{
	struct listing l = {.n = 0};
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stat st = {0};

	if (depth > 200) /* what lies below has been compared at some step on its way there */
		return;
	assert_int_equal(cube_files_opendir(d->s.space, id, &h), 0);
	assert_int_equal(cube_files_readdir(d->s.space, h, 0, false, listing_add, &l), 0);
	cube_files_release(h);
	assert_int_equal(l.n, count_names(fd));
	for (unsigned i = 0; i < l.n; i++) {
		assert_int_equal(fstatat(fd, l.names[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(cube_files_lookup(d->s.space, id, l.names[i], &e), 0);
		same_stat(d, &e.st, &st);
		if (S_ISREG(st.st_mode)) {
			compare_content(d, e.id, fd, l.names[i]);
		} else if (S_ISDIR(st.st_mode)) {
			int sub = openat(fd, l.names[i], O_PATH | O_CLOEXEC);

			compare_trees(d, e.id, sub, depth + 1);
			(void)close(sub);
		}
	}
}

static unsigned long from_env(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): before any thread */

	return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

static void run(enum stage_kind kind)
{
	static struct differ d;
	unsigned long rounds = from_env("CUBEFS_ROUNDS", 20000);

	d = (struct differ){.seed = (unsigned)from_env("CUBEFS_SEED", 4711),
			    .overlay = kind == STAGE_OVERLAY};
	stage_need_root(); /* as anyone else most of it fails, on both sides */
	stage_prepare(&d.s, kind);
	assert_int_equal(mkdirat(d.s.top_fd, "plain", 0755), 0);
	d.plain = openat(d.s.top_fd, "plain", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_attach(&d.s);
	for (d.step = 0; d.step < rounds; d.step++) {
		one_step(&d);
		if (d.step % 500 == 0)
			compare_trees(&d, d.s.id, d.plain, 0);
	}
	compare_trees(&d, d.s.id, d.plain, 0);
	for (unsigned i = 0; i < OPEN_MAX_FILES; i++)
		close_slot(&d, i);
	(void)close(d.plain);
	stage_close(&d.s);
}

static void test_tmpfs(void **state)
{
	(void)state;
	run(STAGE_PLAIN);
}

static void test_disk(void **state)
{
	(void)state;
	stage_need_root(); /* as another one's user chown fails, on both sides, in too many ways to be of use
			    */
	run(STAGE_DISK);
}

static void test_overlay(void **state)
{
	(void)state;
	run(STAGE_OVERLAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tmpfs),
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_overlay),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

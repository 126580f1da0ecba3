/* SPDX-License-Identifier: Apache-2.0 */
/* mknod, fifos, sockets, devices; stat, statx, statfs; ioctl; what both sides see of one file. */
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>

#include "tests/posix/suite.h"

static void nodes_mknod(void)
{
	OK(mknod("f", S_IFREG | 0640, 0));
	IS(suite_stat("f").st_mode, S_IFREG | 0640);
	OK(mknod("g", 0600, 0));
	IS(S_ISREG(suite_stat("g").st_mode), 1);
	OK(mknod("p", S_IFIFO | 0600, 0));
	IS(suite_stat("p").st_mode, S_IFIFO | 0600);
	OK(mknod("s", S_IFSOCK | 0600, 0));
	IS(suite_stat("s").st_mode, S_IFSOCK | 0600);
	FAILS(EEXIST, mknod("f", S_IFREG | 0640, 0));
	FAILS(EEXIST, mkfifo("p", 0600));
	FAILS(ENOENT, mkfifo("nothing/p", 0600));
	FAILS(ENOTDIR, mkfifo("f/p", 0600));
	FAILS(EPERM, mknod("d", S_IFDIR | 0700, 0));
	FAILS(EINVAL, mknod("l", S_IFLNK | 0700, 0));
}

static void nodes_device(void)
{
	OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
	IS(suite_stat("null").st_rdev, makedev(1, 3));
}

static int nodes_fifo_writer(void)
{
	int fd = open("p", O_WRONLY);

	return write(fd, "through", 7) == 7 ? 0 : 1;
}

static void nodes_fifo(void)
{
	char buf[16];
	pid_t pid;
	int fd;

	OK(mkfifo("p", 0600));
	FAILS(ENXIO, open("p", O_WRONLY | O_NONBLOCK));
	pid = suite_start(nodes_fifo_writer);
	fd = open("p", O_RDONLY);
	OK(fd);
	IS(read(fd, buf, sizeof(buf)), 7);
	IS(suite_end(pid), 0);
	IS(read(fd, buf, sizeof(buf)), 0);
	FAILS(ESPIPE, lseek(fd, 0, SEEK_SET));
	OK(close(fd));
}

static void nodes_socket(void)
{
	const struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "s"};
	int a = socket(AF_UNIX, SOCK_STREAM, 0), b = socket(AF_UNIX, SOCK_STREAM, 0);

	OK(bind(a, (const struct sockaddr *)&at, sizeof(at)));
	IS(S_ISSOCK(suite_stat("s").st_mode), 1);
	FAILS(ECONNREFUSED, connect(b, (const struct sockaddr *)&at, sizeof(at)));
	OK(listen(a, 1));
	OK(connect(b, (const struct sockaddr *)&at, sizeof(at)));
	FAILS(ENXIO, open("s", O_RDWR));
	OK(close(a) + close(b));
	OK(unlink("s"));
}

static void nodes_stat(void)
{
	struct stat a, b;
	int fd;

	(void)suite_file("f", "text");
	OK(symlink("f", "link"));
	fd = open("f", O_RDONLY);
	OK(stat("link", &a));
	OK(fstat(fd, &b));
	IS(a.st_ino == b.st_ino && a.st_dev == b.st_dev, true);
	IS(a.st_size, 4);
	OK(lstat("link", &a));
	IS(a.st_ino != b.st_ino, true);
	IS(a.st_size, 1);
	OK(fstatat(fd, "", &a, AT_EMPTY_PATH));
	IS(a.st_ino == b.st_ino, true);
	IS(a.st_dev == suite_stat(".").st_dev, true);
	FAILS(EBADF, fstat(-1, &a));
	OK(close(fd));
}

static void nodes_statx(void)
{
	struct statx x;

	(void)suite_file("f", "text");
	OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
	IS(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
	IS(x.stx_size, 4);
	IS(x.stx_ino == suite_stat("f").st_ino, true);
	IS(x.stx_mode, suite_stat("f").st_mode);
	IS(x.stx_mtime.tv_nsec == suite_stat("f").st_mtim.tv_nsec, true);
	OK(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_SIZE, &x));
	IS(x.stx_size, 4);
	OK(statx(AT_FDCWD, "f", AT_STATX_DONT_SYNC, STATX_SIZE, &x));
	FAILS(EINVAL, statx(AT_FDCWD, "f", 0, STATX__RESERVED, &x));
	FAILS(ENOENT, statx(AT_FDCWD, "nothing", 0, STATX_SIZE, &x));
}

/* When it was made, which overlayfs tells where the file system below does. */
static void nodes_birth(void)
{
	const long long begin = time(NULL);
	struct statx x, y;

	(void)suite_file("f", "text");
	OK(statx(AT_FDCWD, "f", 0, STATX_BTIME | STATX_BASIC_STATS, &x));
	IS(x.stx_mask & (STATX_BTIME | STATX_BASIC_STATS), STATX_BTIME | STATX_BASIC_STATS);
	IS(x.stx_btime.tv_sec >= begin - 1 && x.stx_btime.tv_sec <= begin + 600, true);
	IS(x.stx_size, 4);
	IS(x.stx_nlink, 1);
	IS(x.stx_mode, suite_stat("f").st_mode);
	IS(x.stx_ino == suite_stat("f").st_ino, true);
	IS(x.stx_mtime.tv_nsec == suite_stat("f").st_mtim.tv_nsec, true);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_sec = 7}, {.tv_sec = 9}}, 0));
	OK(statx(AT_FDCWD, "f", 0, STATX_BTIME, &y));
	IS(y.stx_btime.tv_sec == x.stx_btime.tv_sec && y.stx_btime.tv_nsec == x.stx_btime.tv_nsec, true);
	OK(statx(AT_FDCWD, ".", 0, STATX_BTIME, &y));
	IS(y.stx_mask & STATX_BTIME, STATX_BTIME);
}

static void nodes_statfs(void)
{
	struct statvfs v;

	OK(statvfs(".", &v));
	IS(v.f_namemax, 255);
	IS(v.f_blocks > 0 && v.f_bavail <= v.f_bfree && v.f_bfree <= v.f_blocks, true);
	IS(v.f_bsize, 4096);
	IS(v.f_flag & ST_RDONLY, 0);
	FAILS(ENOENT, statvfs("nothing", &v));
}

static void nodes_ioctl(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), other = open("g", O_RDWR | O_CREAT, 0600), n = -1;

	IS(write(fd, "text", 4), 4);
	FAILS(ENOTTY, ioctl(fd, TIOCGWINSZ, &n));
	IS(isatty(fd), 0);
	IS(ioctl(other, FICLONE, fd) == 0 || errno == EOPNOTSUPP, true); /* where blocks are not shared */
	OK(close(fd) + close(other));
}

/* The bytes that can be read. */
static void nodes_readable(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), n = -1;

	IS(write(fd, "text", 4), 4);
	IS(lseek(fd, 1, SEEK_SET), 1);
	OK(ioctl(fd, FIONREAD, &n));
	IS(n, 3);
	OK(close(fd));
}

static void nodes_flags(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	long flags = 0;

	OK(ioctl(fd, FS_IOC_GETFLAGS, &flags));
	OK(close(fd));
}

/* Nobody has said that anything is done inside: it is seen outside a moment later. */
static bool nodes_goes(const char *name)
{
	struct stat st;

	for (unsigned i = 0; i < 1000; i++) {
		if (stat(name, &st) < 0)
			return errno == ENOENT;
		(void)usleep(10000);
	}
	return false;
}

static void nodes_both_sides(void)
{
	struct stat a, b;

	(void)suite_file("f", "text");
	OK(link(suite_inner("f"), suite_inner("g")));
	IS(suite_stat("f").st_ino == suite_stat("g").st_ino, true);
	IS(suite_stat("g").st_nlink, 2);
	OK(link("g", "h"));
	OK(stat(suite_inner("f"), &a));
	OK(stat(suite_inner("h"), &b));
	IS(a.st_ino == b.st_ino, true);
	IS(b.st_nlink, 3);
	IS(a.st_mtim.tv_nsec == suite_stat("f").st_mtim.tv_nsec, true);
	OK(rename(suite_inner("f"), suite_inner("moved")));
	IS(suite_has("moved", "text"), true);
	OK(unlink(suite_inner("h")));
	IS(nodes_goes("h"), true);
	FAILS(ENOENT, open("h", O_RDONLY));
	OK(mkdir(suite_inner("d"), 0755));
	(void)suite_file("d/in", "in");
	IS(suite_has(suite_inner("d/in"), "in"), true);
}

const struct suite_case suite_nodes[] = {
	{"nodes.mknod", nodes_mknod, 0},
	{"nodes.device", nodes_device, SUITE_ROOT},
	{"nodes.fifo", nodes_fifo, 0},
	{"nodes.socket", nodes_socket, 0},
	{"nodes.stat", nodes_stat, 0},
	{"nodes.statx", nodes_statx, 0},
	{"nodes.birth", nodes_birth, 0},
	{"nodes.statfs", nodes_statfs, 0},
	{"nodes.ioctl", nodes_ioctl, 0},
	{"nodes.readable", nodes_readable, 0},
	{"nodes.flags", nodes_flags, 0},
	{"nodes.both_sides", nodes_both_sides, SUITE_INNER},
	{NULL, NULL, 0},
};

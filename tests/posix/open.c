/* SPDX-License-Identifier: Apache-2.0 */
/* open, creat, close, unlinked files. */
#include <stdio.h>
#include <string.h>

#include "tests/posix/suite.h"

static void open_create(void)
{
	int fd = open("new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	OK(fd);
	IS(suite_mode("new"), 0644);
	IS(suite_stat("new").st_size, 0);
	IS(suite_stat("new").st_nlink, 1);
	IS(S_ISREG(suite_stat("new").st_mode), 1);
	IS(suite_stat("new").st_uid, geteuid());
	FAILS(EEXIST, open("new", O_RDWR | O_CREAT | O_EXCL, 0666));
	OK(close(fd));
	FAILS(EBADF, close(fd));
	FAILS(ENOENT, open("nothing", O_RDONLY));
	FAILS(ENOENT, open("nothing/below", O_RDWR | O_CREAT, 0666));
	FAILS(ENOTDIR, open("new/below", O_RDWR | O_CREAT, 0666));
	FAILS(ENOTDIR, open("new", O_RDONLY | O_DIRECTORY));
	FAILS(ENOTDIR, open("new/", O_RDONLY));
	FAILS(EISDIR, open("nothing/", O_RDWR | O_CREAT, 0666));
	FAILS(ENOENT, open("", O_RDONLY));
}

static void open_modes(void)
{
	static const mode_t masks[] = {0, 022, 077, 0777};

	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		(void)umask(masks[i]);
		OK(close(creat("f", 0777)));
		IS(suite_mode("f"), 0777 & ~masks[i]);
		OK(mkdir("d", 0777));
		IS(suite_mode("d"), 0777 & ~masks[i]);
		OK(mknod("n", S_IFREG | 0666, 0));
		IS(suite_mode("n"), 0666 & ~masks[i]);
		OK(mkfifo("p", 0666));
		IS(suite_mode("p"), 0666 & ~masks[i]);
		OK(rmdir("d"));
		OK(unlink("f") + unlink("n") + unlink("p"));
	}
}

static void open_special_bits(void)
{
	(void)umask(0);
	OK(close(open("suid", O_WRONLY | O_CREAT, 06755)));
	IS(suite_mode("suid"), 06755);
	OK(mkdir("sticky", 01777));
	IS(suite_mode("sticky"), 01777);
}

static void open_no_rights(void)
{
	char byte;
	int fd = open("none", O_RDWR | O_CREAT | O_EXCL, 0);

	OK(fd);
	IS(suite_mode("none"), 0);
	IS(write(fd, "x", 1), 1);
	IS(pread(fd, &byte, 1, 0), 1);
	OK(close(fd));
	fd = open("readonly", O_WRONLY | O_CREAT | O_EXCL, 0444);
	IS(write(fd, "x", 1), 1);
	FAILS(EBADF, read(fd, &byte, 1));
	OK(close(fd));
}

static void open_access_modes(void)
{
	char byte;
	int fd;

	(void)suite_file("f", "text");
	fd = open("f", O_RDONLY);
	FAILS(EBADF, write(fd, "x", 1));
	FAILS(EINVAL, ftruncate(fd, 0));
	FAILS(EBADF, fallocate(fd, 0, 0, 1));
	OK(close(fd));
	fd = open("f", O_WRONLY);
	FAILS(EBADF, read(fd, &byte, 1));
	OK(close(fd));
	fd = open("f", O_PATH);
	FAILS(EBADF, read(fd, &byte, 1));
	FAILS(EBADF, write(fd, "x", 1));
	FAILS(EBADF, fchmod(fd, 0600));
	OK(fstat(fd, &(struct stat){0}));
	OK(close(fd));
	IS(suite_has("f", "text"), true);
}

static void open_truncates(void)
{
	struct stat before, after;
	int fd;

	(void)suite_file("f", "some text");
	before = suite_stat("f");
	fd = open("f", O_WRONLY | O_TRUNC);
	OK(fd);
	IS(suite_stat("f").st_size, 0);
	OK(close(fd));
	after = suite_stat("f");
	IS(before.st_ino == after.st_ino, true);
	IS(after.st_mtim.tv_sec >= before.st_mtim.tv_sec, true);
	(void)suite_file("f", "again");
	OK(close(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600)));
	IS(suite_stat("f").st_size, 0);
	IS(suite_mode("f"), 0644);
	(void)suite_file("f", "kept");
	FAILS(EEXIST, open("f", O_RDWR | O_CREAT | O_TRUNC | O_EXCL, 0600));
	IS(suite_has("f", "kept"), true);
}

static void open_directories(void)
{
	char byte;
	int fd;

	OK(mkdir("d", 0755));
	FAILS(EISDIR, open("d", O_WRONLY));
	FAILS(EISDIR, open("d", O_RDWR));
	FAILS(EISDIR, open("d", O_RDONLY | O_CREAT, 0666));
	FAILS(EISDIR, open("d", O_RDONLY | O_TRUNC | O_WRONLY));
	fd = open("d", O_RDONLY);
	OK(fd);
	FAILS(EISDIR, read(fd, &byte, 1));
	FAILS(EBADF, write(fd, "x", 1));
	OK(fsync(fd));
	OK(fdatasync(fd));
	FAILS(EINVAL, ftruncate(fd, 0));
	OK(close(openat(fd, "f", O_CREAT | O_WRONLY, 0666)));
	OK(access("d/f", F_OK));
	FAILS(ENOTDIR, openat(open("d/f", O_RDONLY), "x", O_RDONLY));
	OK(close(fd));
}

static void open_links(void)
{
	(void)suite_file("f", "text");
	OK(symlink("f", "link"));
	OK(symlink("nothing", "dangling"));
	OK(symlink("loop", "loop"));
	OK(symlink("a", "b") + symlink("b", "a"));
	IS(suite_has("link", "text"), true);
	FAILS(ELOOP, open("link", O_RDONLY | O_NOFOLLOW));
	FAILS(ELOOP, open("loop", O_RDONLY));
	FAILS(ELOOP, open("a", O_RDONLY));
	FAILS(ENOENT, open("dangling", O_RDONLY));
	FAILS(EEXIST, open("dangling", O_RDWR | O_CREAT | O_EXCL, 0666));
	FAILS(EEXIST, open("link", O_RDWR | O_CREAT | O_EXCL, 0666));
	OK(close(open("link", O_PATH | O_NOFOLLOW)));
	OK(close(open("dangling", O_RDWR | O_CREAT, 0666)));
	IS(suite_stat("nothing").st_size, 0);
}

static void open_unlinked(void)
{
	struct stat st;
	char buf[16];
	int fd = open("f", O_RDWR | O_CREAT | O_EXCL, 0644);

	IS(write(fd, "unlinked", 8), 8);
	OK(unlink("f"));
	FAILS(ENOENT, access("f", F_OK));
	OK(fstat(fd, &st));
	IS(st.st_nlink, 0);
	IS(st.st_size, 8);
	IS(pread(fd, buf, sizeof(buf), 0), 8);
	IS(memcmp(buf, "unlinked", 8), 0);
	IS(pwrite(fd, "more", 4, 8), 4);
	OK(ftruncate(fd, 10));
	OK(fstat(fd, &st));
	IS(st.st_size, 10);
	OK(fchmod(fd, 0600));
	OK(fstat(fd, &st));
	IS(st.st_mode & 07777, 0600);
	OK(futimens(fd, (struct timespec[2]){{.tv_sec = 7}, {.tv_sec = 9}}));
	OK(fstat(fd, &st));
	IS(st.st_mtim.tv_sec, 9);
	OK(fsync(fd));
	(void)suite_file("f", "another");
	IS(pread(fd, buf, sizeof(buf), 0), 10);
	IS(suite_has("f", "another"), true);
	OK(close(fd));
}

static void open_replaced(void)
{
	struct stat st;
	char buf[16];
	int fd;

	(void)suite_file("f", "old");
	(void)suite_file("g", "new text");
	fd = open("f", O_RDWR);
	OK(rename("g", "f"));
	IS(pread(fd, buf, sizeof(buf), 0), 3);
	OK(fstat(fd, &st));
	IS(st.st_nlink, 0);
	IS(st.st_size, 3);
	IS(suite_has("f", "new text"), true);
	OK(close(fd));
}

static void open_unlinked_directory(void)
{
	struct stat st;
	int fd;

	OK(mkdir("d", 0755));
	fd = open("d", O_RDONLY | O_DIRECTORY);
	OK(rmdir("d"));
	OK(fstat(fd, &st));
	IS(st.st_nlink, 0);
	FAILS(ENOENT, openat(fd, "f", O_CREAT | O_WRONLY, 0666));
	FAILS(ENOENT, mkdirat(fd, "d", 0777));
	OK(close(fd));
}

static void open_tmpfile(void)
{
	char path[64];
	struct stat st;
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);

	OK(fd);
	OK(fstat(fd, &st));
	IS(st.st_nlink, 0);
	IS(write(fd, "x", 1), 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	IS(suite_has("named", "x"), true);
	IS(suite_stat("named").st_ino == st.st_ino, true);
	IS(suite_stat("named").st_nlink, 1);
	IS(suite_mode("named"), 0600);
	IS(write(fd, "y", 1), 1);
	OK(close(fd));
	IS(suite_has("named", "xy"), true);
	fd = open(".", O_TMPFILE | O_WRONLY | O_EXCL, 0666);
	OK(fd);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FAILS(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "never", AT_SYMLINK_FOLLOW));
	OK(fstat(fd, &st));
	IS(st.st_mode & 07777, 0644);
	OK(close(fd));
	FAILS(EINVAL, open(".", O_TMPFILE | O_RDONLY, 0600));
	FAILS(ENOTDIR, open("named", O_TMPFILE | O_RDWR, 0600));
}

static void open_self(void)
{
	char path[64];
	int fd = open("f", O_RDWR | O_CREAT, 0600), again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	IS(write(fd, "text", 4), 4);
	again = open(path, O_RDONLY);
	OK(again);
	IS(read(again, path, sizeof(path)), 4);
	OK(close(again));
	OK(close(fd));
}

/* By unlinked file: a second open by way of /proc works too. */
static void open_self_unlinked(void)
{
	char path[64];
	int fd = open("f", O_RDWR | O_CREAT, 0600), again;

	IS(write(fd, "text", 4), 4);
	OK(unlink("f"));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY);
	OK(again);
	IS(read(again, path, sizeof(path)), 4);
	OK(close(again));
	OK(close(fd));
}

static void open_flags(void)
{
	int fd = open("f", O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_SYNC, 0600);

	IS(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC),
	   O_RDWR | O_APPEND | O_NONBLOCK | O_SYNC);
	OK(fcntl(fd, F_SETFL, 0));
	IS(fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK), 0);
	OK(close(fd));
	OK(close(open("f", O_RDONLY | O_NOATIME)));
	OK(close(open("f", O_RDONLY | O_NOCTTY | O_LARGEFILE)));
}

static void open_append_taken(void)
{
	int fd = open("f", O_RDWR | O_CREAT | O_APPEND, 0600);

	IS(write(fd, "text", 4), 4);
	OK(fcntl(fd, F_SETFL, 0));
	IS(lseek(fd, 0, SEEK_SET), 0);
	IS(write(fd, "T", 1), 1);
	OK(close(fd));
	IS(suite_has("f", "Text"), true);
}

static void open_append_given(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	IS(write(fd, "text", 4), 4);
	OK(fcntl(fd, F_SETFL, O_APPEND));
	IS(lseek(fd, 0, SEEK_SET), 0);
	IS(write(fd, "more", 4), 4);
	OK(close(fd));
	IS(suite_has("f", "textmore"), true);
}

/* Blocks of 4096 at an aligned address. */
static void open_direct(void)
{
	static char block[4096] __attribute__((aligned(4096)));
	int fd = open("f", O_RDWR | O_CREAT | O_DIRECT, 0600);

	OK(fd);
	memset(block, 'd', sizeof(block));
	IS(write(fd, block, sizeof(block)), sizeof(block));
	memset(block, 0, sizeof(block));
	IS(pread(fd, block, sizeof(block), 0), sizeof(block));
	IS(block[4095], 'd');
	OK(close(fd));
}

static void open_others_files(void)
{
	FAILS(EACCES, open("mine", O_RDONLY));
	FAILS(EACCES, open("shown", O_WRONLY));
	FAILS(EACCES, open("shown", O_RDWR | O_CREAT, 0666));
	FAILS(EACCES, open("shown", O_RDONLY | O_TRUNC));
	FAILS(EACCES, open("closed/f", O_RDONLY));
	FAILS(EACCES, open("new", O_WRONLY | O_CREAT, 0666));
	FAILS(EACCES, open("listed/new", O_WRONLY | O_CREAT, 0666));
	FAILS(EPERM, open("shown", O_RDONLY | O_NOATIME));
	OK(close(open("shown", O_RDONLY)));
	OK(close(open("public", O_RDWR)));
	OK(close(open("public", O_RDWR | O_TRUNC)));
	OK(close(open("drop/new", O_WRONLY | O_CREAT | O_EXCL, 0400)));
	IS(suite_stat("drop/new").st_uid, SUITE_USER);
	IS(suite_stat("drop/new").st_gid, SUITE_GROUP);
	FAILS(EACCES, open("drop/new", O_WRONLY));
	FAILS(EACCES, mkdir("d", 0777));
	FAILS(EACCES, unlink("public"));
	FAILS(EACCES, rename("public", "drop/public"));
	FAILS(EACCES, link("public", "other"));
	FAILS(EACCES, symlink("public", "other"));
	FAILS(EACCES, rmdir("drop"));
}

static void open_rights(void)
{
	(void)umask(0);
	(void)suite_file("mine", "secret");
	(void)suite_file("shown", "text");
	(void)suite_file("public", "text");
	OK(chmod("mine", 0600) + chmod("shown", 0644) + chmod("public", 0666));
	OK(mkdir("closed", 0700) + mkdir("listed", 0755) + mkdir("drop", 0777));
	(void)suite_file("closed/f", "text");
	suite_as_user(open_others_files);
	IS(suite_has("shown", "text"), true);
	OK(open("mine", O_RDWR));
}

const struct suite_case suite_open[] = {
	{"open.create", open_create, 0},
	{"open.modes", open_modes, 0},
	{"open.special_bits", open_special_bits, 0},
	{"open.no_rights", open_no_rights, 0},
	{"open.access_modes", open_access_modes, 0},
	{"open.truncates", open_truncates, 0},
	{"open.directories", open_directories, 0},
	{"open.links", open_links, 0},
	{"open.unlinked", open_unlinked, 0},
	{"open.replaced", open_replaced, 0},
	{"open.unlinked_directory", open_unlinked_directory, 0},
	{"open.tmpfile", open_tmpfile, 0},
	{"open.self", open_self, 0},
	{"open.self_unlinked", open_self_unlinked, 0},
	{"open.flags", open_flags, 0},
	{"open.append_taken", open_append_taken, 0},
	{"open.append_given", open_append_given, 0},
	{"open.direct", open_direct, 0},
	{"open.rights", open_rights, SUITE_ROOT},
	{NULL, NULL, 0},
};

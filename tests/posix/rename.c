/* SPDX-License-Identifier: Apache-2.0 */
/* rename, renameat2. */
#include <linux/fs.h>
#include <stdio.h>

#include "tests/posix/suite.h"

static void rename_files(void)
{
	ino_t f;

	(void)suite_file("f", "text");
	f = suite_stat("f").st_ino;
	OK(rename("f", "g"));
	FAILS(ENOENT, access("f", F_OK));
	IS(suite_stat("g").st_ino == f, true);
	IS(suite_has("g", "text"), true);
	(void)suite_file("h", "other");
	OK(rename("g", "h"));
	FAILS(ENOENT, access("g", F_OK));
	IS(suite_has("h", "text"), true);
	IS(suite_stat("h").st_ino == f, true);
	IS(suite_stat("h").st_nlink, 1);
	OK(rename("h", "h"));
	IS(suite_has("h", "text"), true);
	OK(link("h", "same"));
	OK(rename("h", "same"));
	OK(access("h", F_OK));
	OK(access("same", F_OK));
	FAILS(ENOENT, rename("nothing", "x"));
	FAILS(ENOENT, rename("h", "nothing/x"));
	FAILS(ENOENT, rename("h", ""));
	FAILS(ENOTDIR, rename("h", "same/x"));
	FAILS(ENOTDIR, rename("h/", "x"));
	FAILS(ENOTDIR, rename("h", "x/"));
}

static void rename_directories(void)
{
	ino_t d;

	OK(mkdir("d", 0755) + mkdir("d/sub", 0755) + mkdir("e", 0755) + mkdir("full", 0755));
	(void)suite_file("full/f", "");
	(void)suite_file("f", "");
	d = suite_stat("d").st_ino;
	FAILS(EINVAL, rename("d", "d/sub/x"));
	FAILS(EINVAL, rename("d", "d/x"));
	FAILS(ENOTEMPTY, rename("d", "full"));
	FAILS(ENOTEMPTY, rename("d/sub", "d"));
	FAILS(ENOTDIR, rename("d", "f"));
	FAILS(EISDIR, rename("f", "d"));
	FAILS(EBUSY, rename(".", "x"));
	FAILS(EBUSY, rename("d", "."));
	FAILS(EBUSY, rename("d/.", "x"));
	FAILS(EBUSY, rename("d/sub/..", "x"));
	OK(rename("d", "e"));
	IS(suite_stat("e").st_ino == d, true);
	OK(access("e/sub", F_OK));
	OK(rename("e/sub", "sub"));
	OK(rename("e/", "moved/"));
	OK(rename("sub", "moved/sub"));
	IS(suite_stat("moved/sub/../../moved").st_ino == d, true);
	OK(symlink("moved", "link"));
	FAILS(ENOTDIR, rename("link/", "x"));
	FAILS(ENOTDIR, rename("moved", "link"));
	OK(rename("link", "link2"));
	OK(access("link2/sub", F_OK));
}

static void rename_open(void)
{
	char byte;
	int fd, dir;

	OK(mkdir("d", 0755));
	(void)suite_file("d/f", "x");
	fd = open("d/f", O_RDWR);
	dir = open("d", O_RDONLY | O_DIRECTORY);
	OK(rename("d", "e"));
	OK(rename("e/f", "g"));
	IS(read(fd, &byte, 1), 1);
	IS(write(fd, "y", 1), 1);
	IS(suite_has("g", "xy"), true);
	OK(close(openat(dir, "new", O_CREAT | O_WRONLY, 0666)));
	OK(access("e/new", F_OK));
	OK(close(fd) + close(dir));
}

static void rename_noreplace(void)
{
	(void)suite_file("f", "f");
	(void)suite_file("g", "g");
	OK(mkdir("d", 0755));
	FAILS(EEXIST, renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE));
	FAILS(EEXIST, renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_NOREPLACE));
	FAILS(EEXIST, renameat2(AT_FDCWD, "f", AT_FDCWD, "f", RENAME_NOREPLACE));
	IS(suite_has("g", "g"), true);
	OK(renameat2(AT_FDCWD, "f", AT_FDCWD, "h", RENAME_NOREPLACE));
	IS(suite_has("h", "f"), true);
	OK(renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_NOREPLACE));
	FAILS(ENOENT, renameat2(AT_FDCWD, "f", AT_FDCWD, "i", RENAME_NOREPLACE));
}

static void rename_exchange(void)
{
	ino_t f, d;

	(void)suite_file("f", "f");
	OK(mkdir("d", 0755));
	(void)suite_file("d/in", "in");
	f = suite_stat("f").st_ino;
	d = suite_stat("d").st_ino;
	OK(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE));
	IS(suite_stat("d").st_ino == f, true);
	IS(suite_stat("f").st_ino == d, true);
	IS(suite_has("f/in", "in"), true);
	IS(suite_has("d", "f"), true);
	FAILS(ENOENT, renameat2(AT_FDCWD, "f", AT_FDCWD, "nothing", RENAME_EXCHANGE));
	FAILS(EINVAL, renameat2(AT_FDCWD, "f", AT_FDCWD, "f/in", RENAME_EXCHANGE));
	FAILS(EINVAL, renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE | RENAME_NOREPLACE));
	FAILS(EINVAL, renameat2(AT_FDCWD, "f", AT_FDCWD, "d", 0x80));
	OK(mkdir("e", 0755));
	(void)suite_file("e/x", "x");
	OK(renameat2(AT_FDCWD, "f", AT_FDCWD, "e", RENAME_EXCHANGE));
	IS(suite_has("f/x", "x"), true);
	IS(suite_has("e/in", "in"), true);
}

/* Whiteouts are what overlayfs itself is made of: it makes none for others. */
static void rename_whiteout(void)
{
	(void)suite_file("f", "f");
	FAILS(EINVAL, renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_WHITEOUT));
	IS(suite_has("f", "f"), true);
	FAILS(ENOENT, access("g", F_OK));
}

static void rename_between_mounts(void)
{
	(void)suite_file("f", "f");
	FAILS(EXDEV, rename("f", "/proc/self/f"));
	FAILS(EXDEV, rename("/proc/self/status", "g"));
	FAILS(EXDEV, link("/proc/self/status", "g"));
}

static void rename_moves_parent_times(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	OK(mkdir("a", 0755) + mkdir("b", 0755));
	(void)suite_file("a/f", "");
	OK(utimensat(AT_FDCWD, "a", old, 0) + utimensat(AT_FDCWD, "b", old, 0));
	OK(rename("a/f", "b/f"));
	IS(suite_stat("a").st_mtim.tv_sec > 1000, true);
	IS(suite_stat("b").st_mtim.tv_sec > 1000, true);
	OK(utimensat(AT_FDCWD, "b", old, 0));
	OK(unlink("b/f"));
	IS(suite_stat("b").st_mtim.tv_sec > 1000, true);
}

const struct suite_case suite_rename[] = {
	{"rename.files", rename_files, 0},
	{"rename.directories", rename_directories, 0},
	{"rename.open", rename_open, 0},
	{"rename.noreplace", rename_noreplace, 0},
	{"rename.exchange", rename_exchange, 0},
	{"rename.whiteout", rename_whiteout, 0},
	{"rename.between_mounts", rename_between_mounts, 0},
	{"rename.parent_times", rename_moves_parent_times, 0},
	{NULL, NULL, 0},
};

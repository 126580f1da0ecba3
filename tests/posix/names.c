/* SPDX-License-Identifier: Apache-2.0 */
/* Names: link, unlink, mkdir, rmdir, symlink, readlink, what a name may be. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/posix/suite.h"

static void names_link(void)
{
	struct stat a, b;

	(void)suite_file("f", "text");
	a = suite_stat("f");
	OK(link("f", "g"));
	b = suite_stat("g");
	IS(a.st_ino == b.st_ino, true);
	IS(b.st_nlink, 2);
	IS(suite_stat("f").st_nlink, 2);
	IS(b.st_ctim.tv_sec > a.st_ctim.tv_sec ||
		   (b.st_ctim.tv_sec == a.st_ctim.tv_sec && b.st_ctim.tv_nsec >= a.st_ctim.tv_nsec),
	   true);
	FAILS(EEXIST, link("f", "g"));
	FAILS(ENOENT, link("nothing", "h"));
	FAILS(ENOENT, link("f", "nothing/h"));
	FAILS(ENOTDIR, link("f", "g/h"));
	FAILS(ENOTDIR, link("f/x", "h"));
	(void)suite_file("g", "changed");
	IS(suite_has("f", "changed"), true);
	OK(unlink("f"));
	IS(suite_stat("g").st_nlink, 1);
	IS(suite_has("g", "changed"), true);
	OK(mkdir("d", 0755));
	FAILS(EPERM, link("d", "e"));
	OK(link("g", "d/g"));
	IS(suite_stat("d/g").st_ino == b.st_ino, true);
}

static void names_link_of_link(void)
{
	(void)suite_file("f", "text");
	OK(symlink("f", "link"));
	OK(link("link", "hard"));
	IS(S_ISLNK(suite_stat("hard").st_mode), 1);
	IS(suite_stat("hard").st_nlink, 2);
	IS(suite_stat("hard").st_ino == suite_stat("link").st_ino, true);
	OK(linkat(AT_FDCWD, "link", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
	IS(S_ISREG(suite_stat("followed").st_mode), 1);
	FAILS(EINVAL, linkat(AT_FDCWD, "f", AT_FDCWD, "x", 0x40000));
}

static void names_link_many(void)
{
	char name[16];

	(void)suite_file("f", "text");
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "l%d", i);
		if (link("f", name) < 0)
			OK(-1);
	}
	IS(suite_stat("f").st_nlink, 501);
	IS(suite_stat("l499").st_ino == suite_stat("f").st_ino, true);
}

static void names_unlink(void)
{
	FAILS(ENOENT, unlink("nothing"));
	FAILS(ENOENT, unlink(""));
	OK(mkdir("d", 0755));
	FAILS(EISDIR, unlink("d"));
	FAILS(EISDIR, unlink("d/"));
	FAILS(EISDIR, unlink("."));
	FAILS(EISDIR, unlink(".."));
	(void)suite_file("f", "");
	FAILS(ENOTDIR, unlink("f/"));
	FAILS(ENOTDIR, unlink("f/x"));
	OK(symlink("d", "link"));
	OK(unlink("link"));
	OK(access("d", F_OK));
	OK(unlink("f"));
	FAILS(ENOENT, unlink("f"));
	FAILS(EINVAL, unlinkat(AT_FDCWD, "d", 0x40000));
	FAILS(EBADF, unlinkat(-1, "d", 0));
}

static void names_mkdir(void)
{
	OK(mkdir("d", 0755));
	IS(S_ISDIR(suite_stat("d").st_mode), 1);
	FAILS(EEXIST, mkdir("d", 0755));
	FAILS(EEXIST, mkdir("d/", 0755));
	FAILS(EEXIST, mkdir(".", 0755));
	FAILS(EEXIST, mkdir("..", 0755));
	FAILS(EEXIST, mkdir("d/.", 0755));
	FAILS(ENOENT, mkdir("", 0755));
	FAILS(ENOENT, mkdir("nothing/d", 0755));
	OK(mkdir("e/", 0700));
	IS(suite_mode("e"), 0700);
	(void)suite_file("f", "");
	FAILS(EEXIST, mkdir("f", 0755));
	FAILS(ENOTDIR, mkdir("f/d", 0755));
	OK(symlink("nothing", "dangling"));
	FAILS(EEXIST, mkdir("dangling", 0755));
}

static void names_rmdir(void)
{
	OK(mkdir("d", 0755) + mkdir("d/e", 0755));
	(void)suite_file("f", "");
	FAILS(ENOTEMPTY, rmdir("d"));
	FAILS(EINVAL, rmdir("d/."));
	FAILS(ENOTEMPTY, rmdir("d/e/.."));
	FAILS(EINVAL, rmdir("."));
	FAILS(ENOTEMPTY, rmdir(".."));
	FAILS(ENOTDIR, rmdir("f"));
	FAILS(ENOENT, rmdir("nothing"));
	OK(symlink("d/e", "link"));
	FAILS(ENOTDIR, rmdir("link"));
	FAILS(ENOTDIR, rmdir("link/"));
	OK(rmdir("d/e/"));
	OK(rmdir("d"));
	FAILS(ENOENT, rmdir("d"));
}

static void names_nlink(void)
{
	const nlink_t before = suite_stat(".").st_nlink;

	OK(mkdir("d", 0755));
	/* one more for its "..", or always 1 where the file system does not count */
	IS(suite_stat(".").st_nlink == before + 1 || before == 1, true);
	OK(rmdir("d"));
	IS(suite_stat(".").st_nlink, before);
}

static void names_readlink(void)
{
	char buf[64];

	OK(symlink("some/target", "link"));
	memset(buf, 'x', sizeof(buf));
	IS(readlink("link", buf, sizeof(buf)), 11);
	IS(memcmp(buf, "some/targetx", 12), 0);
	IS(readlink("link", buf, 4), 4);
	IS(suite_stat("link").st_size, 11);
	IS(suite_mode("link"), 0777);
	FAILS(EINVAL, readlink("link", buf, 0));
	(void)suite_file("f", "");
	FAILS(EINVAL, readlink("f", buf, sizeof(buf)));
	FAILS(EINVAL, readlink(".", buf, sizeof(buf)));
	FAILS(ENOENT, readlink("nothing", buf, sizeof(buf)));
	FAILS(ENOTDIR, readlink("f/x", buf, sizeof(buf)));
	FAILS(EEXIST, symlink("x", "f"));
	FAILS(EEXIST, symlink("x", "link"));
	FAILS(ENOENT, symlink("", "empty"));
	FAILS(ENOENT, symlink("x", "nothing/link"));
	FAILS(ENOENT, symlink("x", ""));
}

/* A link that leads out of where one is: nothing forbids it. */
static void names_absolute_link(void)
{
	char buf[64];

	OK(symlink("/tmp/nothing", "link"));
	IS(readlink("link", buf, sizeof(buf)), 12);
	IS(memcmp(buf, "/tmp/nothing", 12), 0);
}

static void names_long_link(void)
{
	static char target[PATH_MAX + 1], got[PATH_MAX + 1];

	memset(target, 't', PATH_MAX);
	for (size_t i = 100; i < PATH_MAX; i += 100)
		target[i] = '/';
	FAILS(ENAMETOOLONG, symlink(target, "long"));
	target[PATH_MAX - 1] = '\0';
	OK(symlink(target, "long"));
	IS(readlink("long", got, sizeof(got)), PATH_MAX - 1);
	IS(memcmp(target, got, PATH_MAX - 1), 0);
	IS(suite_stat("long").st_size, PATH_MAX - 1);
}

static void names_longest(void)
{
	static char name[NAME_MAX + 2], path[PATH_MAX + 16];

	memset(name, 'n', NAME_MAX);
	(void)suite_file(name, "text");
	IS(suite_has(name, "text"), true);
	OK(link(name, "short"));
	OK(unlink(name));
	OK(mkdir(name, 0755));
	OK(rmdir(name));
	OK(symlink("x", name));
	OK(rename("short", name));
	OK(unlink(name));
	name[NAME_MAX] = 'n';
	FAILS(ENAMETOOLONG, open(name, O_RDWR | O_CREAT, 0666));
	FAILS(ENAMETOOLONG, mkdir(name, 0777));
	FAILS(ENAMETOOLONG, rmdir(name));
	FAILS(ENAMETOOLONG, unlink(name));
	FAILS(ENAMETOOLONG, symlink("x", name));
	FAILS(ENAMETOOLONG, mkfifo(name, 0666));
	FAILS(ENAMETOOLONG, access(name, F_OK));
	FAILS(ENAMETOOLONG, stat(name, &(struct stat){0}));
	FAILS(ENAMETOOLONG, truncate(name, 0));
	(void)suite_file("f", "");
	FAILS(ENAMETOOLONG, rename("f", name));
	FAILS(ENAMETOOLONG, rename(name, "f"));
	FAILS(ENAMETOOLONG, link("f", name));
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 == 0 ? '.' : '/';
	FAILS(ENAMETOOLONG, open(path, O_RDONLY));
	FAILS(ENAMETOOLONG, mkdir(path, 0777));
	IS(pathconf(".", _PC_NAME_MAX), NAME_MAX);
}

static void names_any_byte(void)
{
	char name[] = {'b', 0, 'e', 0};

	for (int c = 1; c < 256; c++) {
		name[1] = (char)c;
		if (c == '/')
			continue;
		if (suite_file(name, "x") < 0 || !suite_has(name, "x") || unlink(name) < 0)
			IS(c, 0);
	}
	(void)suite_file("\377\376\300", "not UTF-8");
	IS(suite_has("\377\376\300", "not UTF-8"), true);
	OK(mkdir("new\nline", 0755));
	(void)suite_file("new\nline/\t", "tab");
	IS(suite_has("new\nline/\t", "tab"), true);
	(void)suite_file("A", "upper");
	(void)suite_file("a", "lower");
	IS(suite_has("A", "upper"), true);
	(void)suite_file("\303\244", "composed");
	FAILS(ENOENT, access("a\314\210", F_OK));
}

static void names_deep(void)
{
	int top = open(".", O_RDONLY | O_DIRECTORY), made = 0;

	for (int i = 0; i < 300; i++)
		made += mkdir("directory", 0755) == 0 && chdir("directory") == 0;
	IS(made, 300);
	(void)suite_file("f", "deep");
	IS(suite_has("f", "deep"), true);
	for (int i = 0; i < 300; i++)
		made -= chdir("..") == 0;
	IS(made, 0);
	IS(suite_stat("directory").st_ino != 0, true);
	OK(fchdir(top));
	OK(close(top));
	for (; chdir("directory") == 0; made++)
		continue;
	OK(unlink("f"));
	for (; made > 0; made--) {
		if (chdir("..") < 0 || rmdir("directory") < 0)
			OK(-1);
	}
}

static void names_dots(void)
{
	struct stat here = suite_stat("."), st;

	OK(mkdir("d", 0755));
	OK(stat("d/..", &st));
	IS(st.st_ino == here.st_ino, true);
	OK(stat("d/./../d/.", &st));
	IS(st.st_ino == suite_stat("d").st_ino, true);
	OK(stat("d////", &st));
	FAILS(EEXIST, symlink("x", "d/.."));
	(void)suite_file("f", "");
	FAILS(ENOTDIR, stat("f/.", &st));
	FAILS(ENOTDIR, stat("f/..", &st));
}

static void names_sticky_others(void)
{
	FAILS(EPERM, unlink("sticky/mine"));
	FAILS(EPERM, rename("sticky/mine", "sticky/other"));
	FAILS(EPERM, rmdir("sticky/dir"));
	FAILS(EPERM, rename("sticky/dir", "sticky/other"));
	(void)suite_file("sticky/own", "");
	FAILS(EPERM, rename("sticky/own", "sticky/mine"));
	OK(rename("sticky/own", "sticky/own2"));
	OK(unlink("sticky/own2"));
	OK(mkdir("sticky/d", 0755));
	OK(rmdir("sticky/d"));
}

static void names_sticky(void)
{
	(void)umask(0);
	OK(mkdir("sticky", 0777));
	OK(chmod("sticky", 01777));
	(void)suite_file("sticky/mine", "");
	OK(mkdir("sticky/dir", 0777));
	suite_as_user(names_sticky_others);
	OK(unlink("sticky/mine"));
}

const struct suite_case suite_names[] = {
	{"names.link", names_link, 0},
	{"names.link_of_link", names_link_of_link, 0},
	{"names.link_many", names_link_many, 0},
	{"names.unlink", names_unlink, 0},
	{"names.mkdir", names_mkdir, 0},
	{"names.rmdir", names_rmdir, 0},
	{"names.nlink", names_nlink, 0},
	{"names.readlink", names_readlink, 0},
	{"names.absolute_link", names_absolute_link, 0},
	{"names.long_link", names_long_link, 0},
	{"names.longest", names_longest, 0},
	{"names.any_byte", names_any_byte, 0},
	{"names.deep", names_deep, 0},
	{"names.dots", names_dots, 0},
	{"names.sticky", names_sticky, SUITE_ROOT},
	{NULL, NULL, 0},
};

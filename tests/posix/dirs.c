/* SPDX-License-Identifier: Apache-2.0 */
/* readdir, seekdir, telldir, large directories, inode numbers. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/posix/suite.h"

/* A directory of @count files, "0" and so on; what could not be made. */
static int dirs_fill(const char *name, int count)
{
	char path[64];
	int fd, bad = 0;

	OK(mkdir(name, 0755));
	for (int i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", name, i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		bad += fd < 0 || close(fd) < 0;
	}
	return bad;
}

/* Counts the names seen in @seen, which has room for @count; what is no number of these. */
static int dirs_note(const struct dirent *e, unsigned char *seen, int count)
{
	const long n = strtol(e->d_name, NULL, 10);

	if (e->d_name[0] == '.')
		return 0;
	if (n < 0 || n >= count)
		return 1;
	seen[n]++;
	return 0;
}

static void dirs_read(void)
{
	const struct dirent *e;
	struct stat here = suite_stat(".");
	int dots = 0, others = 0;
	DIR *d;

	OK(mkdir("d", 0755) + symlink("x", "l") + mkfifo("p", 0644));
	(void)suite_file("f", "");
	d = opendir(".");
	IS(d != NULL, true);
	while ((e = readdir(d)) != NULL) {
		struct stat st = suite_stat(e->d_name);

		if (strcmp(e->d_name, ".") == 0)
			dots += e->d_ino == here.st_ino ? 1 : 100;
		else if (strcmp(e->d_name, "..") == 0)
			dots += 10;
		else
			others += e->d_ino == st.st_ino && (mode_t)DTTOIF(e->d_type) == (st.st_mode & S_IFMT)
					  ? 1
					  : 1000;
	}
	IS(dots, 11);
	IS(others, 4);
	OK(closedir(d));
	FAILS(ENOENT, opendir("nothing") == NULL ? -1 : 0);
	FAILS(ENOTDIR, opendir("f") == NULL ? -1 : 0);
	FAILS(ENOTDIR, opendir("f/") == NULL ? -1 : 0);
}

#define DIRS_SOME 1000

static void dirs_all_once(void)
{
	static unsigned char seen[DIRS_SOME];
	const struct dirent *e;
	int bad = 0;
	DIR *d;

	IS(dirs_fill("d", DIRS_SOME), 0);
	d = opendir("d");
	while ((e = readdir(d)) != NULL)
		bad += dirs_note(e, seen, DIRS_SOME);
	for (int i = 0; i < DIRS_SOME; i++)
		bad += seen[i] != 1;
	IS(bad, 0);
	OK(closedir(d));
}

/* What is there all the time is seen once, whatever is taken away and added meanwhile. */
static void dirs_changed_meanwhile(void)
{
	static unsigned char seen[DIRS_SOME];
	const struct dirent *e;
	char path[64];
	int bad = 0, read = 0;
	DIR *d;

	IS(dirs_fill("d", DIRS_SOME), 0);
	d = opendir("d");
	while ((e = readdir(d)) != NULL) {
		bad += dirs_note(e, seen, DIRS_SOME);
		(void)snprintf(path, sizeof(path), "d/%d", read);
		if (read % 2 == 1 && read < DIRS_SOME)
			bad += unlink(path) < 0;
		(void)snprintf(path, sizeof(path), "d/.new%d", read++);
		if (read < DIRS_SOME)
			(void)suite_file(path, "");
	}
	for (int i = 0; i < DIRS_SOME; i += 2)
		bad += seen[i] != 1;
	for (int i = 1; i < DIRS_SOME; i += 2)
		bad += seen[i] > 1;
	IS(bad, 0);
	OK(closedir(d));
}

/* rm -r: each is taken away as it is read. */
static void dirs_emptied(void)
{
	const struct dirent *e;
	int bad = 0;
	DIR *d;

	IS(dirs_fill("d", DIRS_SOME), 0);
	d = opendir("d");
	while ((e = readdir(d)) != NULL)
		bad += e->d_name[0] != '.' && unlinkat(dirfd(d), e->d_name, 0) < 0;
	IS(bad, 0);
	OK(closedir(d));
	OK(rmdir("d"));
}

static void dirs_positions(void)
{
	static char names[DIRS_SOME + 2][16];
	static long places[DIRS_SOME + 2];
	const struct dirent *e;
	int n = 0, bad = 0;
	DIR *d;

	IS(dirs_fill("d", DIRS_SOME), 0);
	d = opendir("d");
	for (long at = telldir(d); (e = readdir(d)) != NULL && n < DIRS_SOME + 2; at = telldir(d)) {
		(void)snprintf(names[n], sizeof(names[n]), "%.15s", e->d_name);
		places[n++] = at;
	}
	IS(n, DIRS_SOME + 2);
	for (int i = n - 1; i >= 0; i -= 37) {
		seekdir(d, places[i]);
		e = readdir(d);
		bad += e == NULL || strcmp(e->d_name, names[i]) != 0;
	}
	IS(bad, 0);
	rewinddir(d);
	e = readdir(d);
	IS(e != NULL && strcmp(e->d_name, names[0]) == 0, true);
	OK(closedir(d));
}

/* After rewinddir what is new is there. */
static void dirs_rewind(void)
{
	const struct dirent *e;
	int seen = 0;
	DIR *d;

	OK(mkdir("d", 0755));
	d = opendir("d");
	while (readdir(d) != NULL)
		continue;
	(void)suite_file("d/new", "");
	rewinddir(d);
	while ((e = readdir(d)) != NULL)
		seen += strcmp(e->d_name, "new") == 0;
	IS(seen, 1);
	OK(closedir(d));
}

#define DIRS_MANY 100000

/* A hundred thousand, unless CUBEFS_POSIX_DIRECTORY says fewer. */
static void dirs_many(void)
{
	static unsigned char seen[DIRS_MANY];
	const char *wanted = getenv("CUBEFS_POSIX_DIRECTORY");
	const long given = wanted == NULL ? 0 : strtol(wanted, NULL, 10);
	const int count = given > 0 && given < DIRS_MANY ? (int)given : DIRS_MANY;
	const struct dirent *e;
	char path[64];
	int bad = 0, n = 0;
	DIR *d;

	IS(dirs_fill("d", count), 0);
	d = opendir("d");
	while ((e = readdir(d)) != NULL) {
		bad += dirs_note(e, seen, count);
		n += e->d_name[0] != '.';
	}
	for (int i = 0; i < count; i++)
		bad += seen[i] != 1;
	IS(bad, 0);
	IS(n, count);
	OK(closedir(d));
	FAILS(ENOTEMPTY, rmdir("d"));
	for (int i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "d/%d", i);
		bad += unlink(path) < 0;
	}
	IS(bad, 0);
	OK(rmdir("d"));
}

static void dirs_inodes(void)
{
	enum { COUNT = 300 };
	static ino_t all[COUNT];
	char path[32];
	int same = 0, changed = 0;

	IS(dirs_fill("d", COUNT), 0);
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(path, sizeof(path), "d/%d", i);
		all[i] = suite_stat(path).st_ino;
		for (int k = 0; k < i; k++)
			same += all[k] == all[i];
	}
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(path, sizeof(path), "d/%d", i);
		(void)suite_file(path, "x");
		changed += chmod(path, 0600) < 0;
		changed += suite_stat(path).st_ino != all[i];
	}
	IS(same, 0);
	IS(changed, 0);
	IS(suite_stat("d").st_dev == suite_stat("d/0").st_dev, true);
}

static void dirs_working_directory(void)
{
	char path[4096], again[4096];

	OK(mkdir("d", 0755) + mkdir("d/e", 0755));
	OK(chdir("d/e"));
	IS(getcwd(path, sizeof(path)) != NULL, true);
	IS(strcmp(path + strlen(path) - 4, "/d/e"), 0);
	OK(rename("../../d", "../../moved"));
	IS(getcwd(again, sizeof(again)) != NULL, true);
	IS(strcmp(again + strlen(again) - 8, "/moved/e"), 0);
	OK(rmdir("../e"));
	FAILS(ENOENT, getcwd(again, sizeof(again)) == NULL ? -1 : 0);
	FAILS(ENOENT, open("f", O_WRONLY | O_CREAT, 0600));
	IS(suite_stat(".").st_nlink, 0);
	OK(chdir("../.."));
	FAILS(ENOTDIR, chdir("/proc/self/status"));
	FAILS(ENOENT, chdir("nothing"));
}

static void dirs_list_user(void)
{
	FAILS(EACCES, opendir("mine") == NULL ? -1 : 0);
	FAILS(EACCES, opendir("walked") == NULL ? -1 : 0);
	OK(access("walked/f", F_OK));
	OK(closedir(opendir("listed")));
	FAILS(EACCES, access("listed/f", F_OK));
}

static void dirs_list_rights(void)
{
	(void)umask(0);
	OK(mkdir("mine", 0700) + mkdir("walked", 0711) + mkdir("listed", 0744));
	(void)suite_file("walked/f", "");
	(void)suite_file("listed/f", "");
	suite_as_user(dirs_list_user);
}

const struct suite_case suite_dirs[] = {
	{"dirs.read", dirs_read, 0},
	{"dirs.all_once", dirs_all_once, 0},
	{"dirs.changed_meanwhile", dirs_changed_meanwhile, 0},
	{"dirs.emptied", dirs_emptied, 0},
	{"dirs.positions", dirs_positions, 0},
	{"dirs.rewind", dirs_rewind, 0},
	{"dirs.many", dirs_many, 0},
	{"dirs.inodes", dirs_inodes, 0},
	{"dirs.working_directory", dirs_working_directory, 0},
	{"dirs.list_rights", dirs_list_rights, SUITE_ROOT},
	{NULL, NULL, 0},
};

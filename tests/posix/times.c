/* SPDX-License-Identifier: Apache-2.0 */
/* utimensat, and what moves which time. */
#include <stdio.h>
#include <time.h>

#include "tests/posix/suite.h"

static const struct timespec old[2] = {{.tv_sec = 1000, .tv_nsec = 123456789},
				       {.tv_sec = 2000, .tv_nsec = 987654321}};

static bool recent(struct timespec t)
{
	return t.tv_sec > 1000000;
}

static void times_set(void)
{
	struct stat st;

	(void)suite_file("f", "text");
	OK(utimensat(AT_FDCWD, "f", old, 0));
	st = suite_stat("f");
	IS(st.st_atim.tv_sec, 1000);
	IS(st.st_atim.tv_nsec, 123456789);
	IS(st.st_mtim.tv_sec, 2000);
	IS(st.st_mtim.tv_nsec, 987654321);
	IS(recent(st.st_ctim), true);
	OK(utimensat(AT_FDCWD, "f", NULL, 0));
	st = suite_stat("f");
	IS(recent(st.st_atim) && recent(st.st_mtim), true);
	FAILS(ENOENT, utimensat(AT_FDCWD, "nothing", old, 0));
	FAILS(ENOTDIR, utimensat(AT_FDCWD, "f/x", old, 0));
	FAILS(EINVAL,
	      utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = 1000000000}, {.tv_nsec = 0}}, 0));
	FAILS(EINVAL, utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = -5}, {.tv_nsec = 0}}, 0));
	FAILS(EINVAL, utimensat(AT_FDCWD, "f", old, 0x40000));
}

static void times_now_and_omit(void)
{
	struct stat st;

	(void)suite_file("f", "text");
	OK(utimensat(AT_FDCWD, "f", old, 0));
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {.tv_sec = 3000}}, 0));
	st = suite_stat("f");
	IS(st.st_atim.tv_sec, 1000);
	IS(st.st_mtim.tv_sec, 3000);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_sec = 4000}, {.tv_nsec = UTIME_OMIT}}, 0));
	st = suite_stat("f");
	IS(st.st_atim.tv_sec, 4000);
	IS(st.st_mtim.tv_sec, 3000);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}},
		     0));
	st = suite_stat("f");
	IS(st.st_atim.tv_sec, 4000);
	IS(recent(st.st_mtim), true);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_sec = 5000}}, 0));
	st = suite_stat("f");
	IS(recent(st.st_atim), true);
	IS(st.st_mtim.tv_sec, 5000);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}},
		     0));
	IS(suite_stat("f").st_mtim.tv_sec, 5000);
}

static void times_extremes(void)
{
	static const time_t seconds[] = {
		-1, 0, 1, 0x7fffffff, 0x80000000LL, 0xffffffffLL, 0x100000000LL, 0x300000000LL};

	(void)suite_file("f", "");
	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		const struct timespec t[2] = {{.tv_sec = seconds[i]},
					      {.tv_sec = seconds[i], .tv_nsec = 999999999}};

		OK(utimensat(AT_FDCWD, "f", t, 0));
		IS(suite_stat("f").st_mtim.tv_sec, seconds[i]);
		IS(suite_stat("f").st_mtim.tv_nsec, 999999999);
		IS(suite_stat("f").st_atim.tv_sec, seconds[i]);
	}
}

static void times_other_kinds(void)
{
	int fd;

	OK(mkdir("d", 0755));
	OK(symlink("nothing", "link"));
	OK(mkfifo("p", 0644));
	OK(utimensat(AT_FDCWD, "d", old, 0));
	IS(suite_stat("d").st_mtim.tv_nsec, 987654321);
	OK(utimensat(AT_FDCWD, "link", old, AT_SYMLINK_NOFOLLOW));
	IS(suite_stat("link").st_mtim.tv_nsec, 987654321);
	FAILS(ENOENT, utimensat(AT_FDCWD, "link", old, 0));
	OK(utimensat(AT_FDCWD, "p", old, 0));
	IS(suite_stat("p").st_mtim.tv_sec, 2000);
	fd = open("f", O_RDWR | O_CREAT, 0600);
	OK(futimens(fd, old));
	IS(suite_stat("f").st_atim.tv_nsec, 123456789);
	OK(close(fd));
	fd = open("f", O_RDONLY);
	OK(futimens(fd, NULL));
	OK(close(fd));
	fd = open("d", O_RDONLY);
	OK(futimens(fd, old));
	OK(close(fd));
}

static void times_moved_by(void)
{
	struct stat st;
	int fd;

	(void)suite_file("f", "text");
	OK(utimensat(AT_FDCWD, "f", old, 0));
	fd = open("f", O_WRONLY);
	IS(write(fd, "x", 1), 1);
	OK(fstat(fd, &st));
	IS(recent(st.st_mtim), true);
	IS(st.st_atim.tv_sec, 1000);
	OK(futimens(fd, old));
	IS(write(fd, "", 0), 0);
	OK(fstat(fd, &st));
	IS(st.st_mtim.tv_sec, 2000);
	OK(ftruncate(fd, 2));
	OK(fstat(fd, &st));
	IS(recent(st.st_mtim), true);
	OK(futimens(fd, old));
	OK(close(fd));
	IS(suite_stat("f").st_mtim.tv_sec, 2000); /* the close has no late news */
	IS(suite_stat("f").st_mtim.tv_nsec, 987654321);
	OK(truncate("f", 10));
	IS(recent(suite_stat("f").st_mtim), true);
	OK(utimensat(AT_FDCWD, "f", old, 0));
	OK(link("f", "g"));
	IS(suite_stat("f").st_mtim.tv_sec, 2000);
	OK(rename("g", "h"));
	IS(suite_stat("h").st_mtim.tv_sec, 2000);
}

static void times_of_parents(void)
{
	OK(mkdir("d", 0755));
	OK(utimensat(AT_FDCWD, "d", old, 0));
	(void)suite_file("d/f", "");
	IS(recent(suite_stat("d").st_mtim), true);
	OK(utimensat(AT_FDCWD, "d", old, 0));
	(void)suite_file("d/f", "more");
	OK(chmod("d/f", 0600));
	IS(suite_stat("d").st_mtim.tv_sec, 2000);
	OK(mkdir("d/e", 0755));
	IS(recent(suite_stat("d").st_mtim), true);
	OK(utimensat(AT_FDCWD, "d", old, 0));
	OK(rmdir("d/e"));
	IS(recent(suite_stat("d").st_mtim), true);
	OK(utimensat(AT_FDCWD, "d", old, 0));
	OK(symlink("x", "d/l"));
	IS(recent(suite_stat("d").st_mtim), true);
	OK(utimensat(AT_FDCWD, "d", old, 0));
	OK(link("d/f", "d/g"));
	IS(recent(suite_stat("d").st_mtim), true);
}

static void times_clock(void)
{
	(void)suite_file("f", "");
	IS(suite_stat("f").st_mtim.tv_sec <= time(NULL), true);
	IS(suite_stat("f").st_mtim.tv_sec >= time(NULL) - 60, true);
}

static void times_user(void)
{
	FAILS(EPERM, utimensat(AT_FDCWD, "f", old, 0));
	FAILS(EACCES, utimensat(AT_FDCWD, "f", NULL, 0));
	OK(utimensat(AT_FDCWD, "public", NULL, 0));
	FAILS(EPERM, utimensat(AT_FDCWD, "public", old, 0));
	OK(utimensat(AT_FDCWD, "own", old, 0));
	IS(suite_stat("own").st_mtim.tv_sec, 2000);
}

static void times_rights(void)
{
	(void)umask(0);
	(void)suite_file("f", "");
	(void)suite_file("public", "");
	(void)suite_file("own", "");
	OK(chmod("f", 0644) + chmod("public", 0666));
	OK(chown("own", SUITE_USER, SUITE_GROUP));
	suite_as_user(times_user);
}

const struct suite_case suite_times[] = {
	{"times.set", times_set, 0},
	{"times.now_and_omit", times_now_and_omit, 0},
	{"times.extremes", times_extremes, 0},
	{"times.other_kinds", times_other_kinds, 0},
	{"times.moved_by", times_moved_by, 0},
	{"times.of_parents", times_of_parents, 0},
	{"times.clock", times_clock, 0},
	{"times.rights", times_rights, SUITE_ROOT},
	{NULL, NULL, 0},
};

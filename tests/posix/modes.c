/* SPDX-License-Identifier: Apache-2.0 */
/* chmod, chown, access, setuid, setgid and sticky bits. */
#include "tests/posix/suite.h"

static void modes_chmod(void)
{
	int fd;

	(void)suite_file("f", "");
	for (unsigned mode = 0; mode <= 07777; mode += 0111) {
		if (chmod("f", mode) < 0 || suite_mode("f") != mode)
			IS(suite_mode("f"), mode);
	}
	OK(chmod("f", 0640));
	fd = open("f", O_RDWR);
	OK(fchmod(fd, 0604));
	IS(suite_mode("f"), 0604);
	OK(close(fd));
	FAILS(ENOENT, chmod("nothing", 0600));
	FAILS(ENOTDIR, chmod("f/x", 0600));
	FAILS(EBADF, fchmod(-1, 0600));
	OK(mkdir("d", 0755));
	OK(chmod("d", 03711));
	IS(suite_mode("d"), 03711);
	OK(symlink("f", "link"));
	OK(chmod("link", 0612));
	IS(suite_mode("f"), 0612);
	OK(symlink("nothing", "dangling"));
	FAILS(ENOENT, chmod("dangling", 0600));
	FAILS(EOPNOTSUPP, fchmodat(AT_FDCWD, "link", 0600, AT_SYMLINK_NOFOLLOW));
	IS(suite_mode("link"), 0777);
}

static void modes_chmod_time(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000, .tv_nsec = 1}, {.tv_sec = 2000, .tv_nsec = 2}};
	struct stat before, after;

	(void)suite_file("f", "");
	OK(utimensat(AT_FDCWD, "f", old, 0));
	before = suite_stat("f");
	OK(chmod("f", 0600));
	after = suite_stat("f");
	IS(after.st_mtim.tv_sec, 2000);
	IS(after.st_atim.tv_nsec, 1);
	IS(after.st_ctim.tv_sec > before.st_ctim.tv_sec || after.st_ctim.tv_nsec >= before.st_ctim.tv_nsec,
	   true);
	IS(after.st_ctim.tv_sec > 2000, true);
}

static void modes_chown(void)
{
	int fd;

	(void)suite_file("f", "");
	OK(chown("f", 1234, 4321));
	IS(suite_stat("f").st_uid, 1234);
	IS(suite_stat("f").st_gid, 4321);
	OK(chown("f", (uid_t)-1, 99));
	IS(suite_stat("f").st_uid, 1234);
	IS(suite_stat("f").st_gid, 99);
	OK(chown("f", 77, (gid_t)-1));
	IS(suite_stat("f").st_uid, 77);
	IS(suite_stat("f").st_gid, 99);
	OK(symlink("f", "link"));
	OK(lchown("link", 5, 6));
	IS(suite_stat("link").st_uid, 5);
	IS(suite_stat("f").st_uid, 77);
	OK(chown("link", 8, 9));
	IS(suite_stat("f").st_gid, 9);
	fd = open("f", O_RDONLY);
	OK(fchown(fd, 0, 0));
	IS(suite_stat("f").st_uid, 0);
	OK(close(fd));
	FAILS(ENOENT, chown("nothing", 1, 1));
	OK(chown("f", (uid_t)-1, (gid_t)-1));
	OK(mkdir("d", 0755));
	OK(chown("d", 3, 4));
	IS(suite_stat("d").st_gid, 4);
	OK(mkfifo("p", 0600));
	OK(chown("p", 3, 4));
	IS(suite_stat("p").st_uid, 3);
}

static void modes_chown_clears(void)
{
	(void)suite_file("f", "");
	OK(chmod("f", 06755));
	OK(chown("f", 1, 1));
	IS(suite_mode("f"), 0755);
	OK(chmod("f", 02644)); /* mandatory locking, once: not a program's */
	OK(chown("f", 2, 2));
	IS(suite_mode("f"), 02644);
	OK(mkdir("d", 0755));
	OK(chmod("d", 06755));
	OK(chown("d", 1, 1));
	IS(suite_mode("d"), 06755);
}

static void modes_owner_alone(void)
{
	FAILS(EPERM, chmod("f", 0777));
	FAILS(EPERM, chown("f", SUITE_USER, (gid_t)-1));
	FAILS(EPERM, chown("f", (uid_t)-1, SUITE_GROUP));
	FAILS(EPERM, lchown("link", SUITE_USER, (gid_t)-1));
	(void)suite_file("d/own", "");
	OK(chmod("d/own", 0700));
	OK(chown("d/own", SUITE_USER, SUITE_GROUP));
	FAILS(EPERM, chown("d/own", 0, (gid_t)-1));
	FAILS(EPERM, chown("d/own", (uid_t)-1, 0));
	OK(chmod("d/own", 04755));
	IS(suite_mode("d/own"), 04755);
	/* a group that one is not in: the bit is left out */
	OK(chmod("foreign", 02755));
	IS(suite_mode("foreign"), 0755);
}

static void modes_owner(void)
{
	(void)umask(0);
	(void)suite_file("f", "");
	(void)suite_file("foreign", "");
	OK(symlink("f", "link"));
	OK(chown("foreign", SUITE_USER, 3000));
	OK(mkdir("d", 0777));
	suite_as_user(modes_owner_alone);
}

static void modes_write_clears_suid_user(void)
{
	int fd = open("program", O_WRONLY);

	IS(write(fd, "x", 1), 1);
	OK(close(fd));
	IS(suite_mode("program"), 0777);
	OK(truncate("other", 2));
	IS(suite_mode("other"), 0777);
	fd = open("third", O_WRONLY | O_TRUNC);
	OK(close(fd));
	IS(suite_mode("third"), 0777);
	fd = open("fourth", O_WRONLY);
	OK(fallocate(fd, 0, 0, 10));
	OK(close(fd));
	IS(suite_mode("fourth"), 0777);
}

static void modes_write_clears_suid(void)
{
	static const char *const names[] = {"program", "other", "third", "fourth"};

	(void)umask(0);
	for (size_t i = 0; i < 4; i++) {
		(void)suite_file(names[i], "text");
		OK(chmod(names[i], 06777));
	}
	suite_as_user(modes_write_clears_suid_user);
}

static int modes_opened;

static void modes_write_clears_suid_later_user(void)
{
	IS(write(modes_opened, "x", 1), 1);
	IS(suite_mode("program"), 0777);
}

/* Bits that came after the file was opened and written. */
static void modes_write_clears_suid_later(void)
{
	(void)umask(0);
	(void)suite_file("program", "text");
	OK(chmod("program", 0777));
	modes_opened = open("program", O_WRONLY);
	IS(write(modes_opened, "x", 1), 1);
	OK(chmod("program", 06777));
	suite_as_user(modes_write_clears_suid_later_user);
	OK(close(modes_opened));
}

static void modes_setgid_directory(void)
{
	(void)umask(022);
	OK(mkdir("d", 0755));
	OK(chown("d", (uid_t)-1, 3000));
	OK(chmod("d", 02775));
	(void)suite_file("d/f", "");
	IS(suite_stat("d/f").st_gid, 3000);
	IS(suite_mode("d/f"), 0644);
	OK(mkdir("d/sub", 0755));
	IS(suite_stat("d/sub").st_gid, 3000);
	IS(suite_mode("d/sub"), 02755);
	OK(mkfifo("d/p", 0644));
	IS(suite_stat("d/p").st_gid, 3000);
	OK(symlink("x", "d/l"));
	IS(suite_stat("d/l").st_gid, 3000);
	OK(mkdir("plain", 0755));
	(void)suite_file("plain/f", "");
	IS(suite_stat("plain/f").st_gid, getegid());
}

static void modes_setgid_user(void)
{
	(void)umask(0);
	OK(close(open("d/f", O_CREAT | O_EXCL | O_WRONLY, 02777)));
	IS(suite_stat("d/f").st_gid, 3000);
	IS(suite_mode("d/f"), 0777); /* in a foreign group no program of it is made */
	OK(mkdir("d/sub", 0777));
	IS(suite_mode("d/sub"), 02777);
}

static void modes_setgid_others(void)
{
	(void)umask(0);
	OK(mkdir("d", 0777));
	OK(chown("d", 0, 3000));
	OK(chmod("d", 02777));
	suite_as_user(modes_setgid_user);
}

static void modes_access(void)
{
	(void)suite_file("f", "");
	OK(chmod("f", 0400));
	OK(access("f", F_OK));
	OK(access("f", R_OK));
	FAILS(EACCES, access("f", X_OK));
	FAILS(EINVAL, access("f", 8));
	FAILS(ENOENT, access("nothing", F_OK));
	FAILS(ENOTDIR, access("f/x", F_OK));
	OK(chmod("f", 0001));
	OK(access("f", X_OK));
	OK(mkdir("d", 0000));
	OK(access("d", R_OK | W_OK | X_OK)); /* who is the superuser here */
	OK(symlink("loop", "loop"));
	FAILS(ELOOP, access("loop", F_OK));
	OK(symlink("nothing", "dangling"));
	FAILS(ENOENT, access("dangling", F_OK));
	OK(faccessat(AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW));
}

static void modes_access_user(void)
{
	FAILS(EACCES, access("mine", R_OK));
	OK(access("mine", F_OK));
	OK(access("shown", R_OK));
	FAILS(EACCES, access("shown", W_OK));
	FAILS(EACCES, access("shown", R_OK | W_OK));
	OK(access("group", R_OK | W_OK));
	FAILS(EACCES, access("group", X_OK));
	OK(access("own", R_OK));
	FAILS(EACCES, access("own", W_OK));
	FAILS(EACCES, access("closed/f", F_OK));
	FAILS(EACCES, chdir("closed"));
	FAILS(EACCES, access("listed", W_OK));
}

static void modes_access_others(void)
{
	(void)umask(0);
	(void)suite_file("mine", "");
	(void)suite_file("shown", "");
	(void)suite_file("group", "");
	(void)suite_file("own", "");
	OK(chmod("mine", 0600) + chmod("shown", 0644));
	OK(chown("group", 0, SUITE_GROUP));
	OK(chmod("group", 0060));
	OK(chown("own", SUITE_USER, SUITE_GROUP));
	OK(chmod("own", 0466)); /* who owns it is not looked for in the group */
	OK(mkdir("closed", 0700) + mkdir("listed", 0755));
	(void)suite_file("closed/f", "");
	suite_as_user(modes_access_user);
}

const struct suite_case suite_modes[] = {
	{"modes.chmod", modes_chmod, 0},
	{"modes.chmod_time", modes_chmod_time, 0},
	{"modes.chown", modes_chown, SUITE_ROOT},
	{"modes.chown_clears", modes_chown_clears, SUITE_ROOT},
	{"modes.owner", modes_owner, SUITE_ROOT},
	{"modes.write_clears_suid", modes_write_clears_suid, SUITE_ROOT},
	{"modes.write_clears_suid_later", modes_write_clears_suid_later, SUITE_ROOT},
	{"modes.setgid_directory", modes_setgid_directory, SUITE_ROOT},
	{"modes.setgid_others", modes_setgid_others, SUITE_ROOT},
	{"modes.access", modes_access, SUITE_ROOT},
	{"modes.access_others", modes_access_others, SUITE_ROOT},
	{NULL, NULL, 0},
};

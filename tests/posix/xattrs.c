/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes and access control lists. */
#include <linux/capability.h>
#include <linux/limits.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "tests/posix/suite.h"

static void xattrs_set(void)
{
	char value[64];

	(void)suite_file("f", "");
	OK(setxattr("f", "user.a", "value", 5, 0));
	IS(getxattr("f", "user.a", NULL, 0), 5);
	IS(getxattr("f", "user.a", value, sizeof(value)), 5);
	IS(memcmp(value, "value", 5), 0);
	FAILS(ERANGE, getxattr("f", "user.a", value, 3));
	FAILS(EEXIST, setxattr("f", "user.a", "x", 1, XATTR_CREATE));
	OK(setxattr("f", "user.a", "x", 1, XATTR_REPLACE));
	IS(getxattr("f", "user.a", value, sizeof(value)), 1);
	FAILS(ENODATA, setxattr("f", "user.b", "x", 1, XATTR_REPLACE));
	OK(setxattr("f", "user.b", "", 0, XATTR_CREATE));
	IS(getxattr("f", "user.b", value, sizeof(value)), 0);
	OK(removexattr("f", "user.b"));
	FAILS(ENODATA, removexattr("f", "user.b"));
	FAILS(ENODATA, getxattr("f", "user.b", value, sizeof(value)));
	FAILS(ENOENT, getxattr("nothing", "user.a", value, sizeof(value)));
	FAILS(ENOENT, setxattr("nothing", "user.a", "x", 1, 0));
	FAILS(EINVAL, setxattr("f", "user.a", "x", 1, 0x40));
	FAILS(EOPNOTSUPP, setxattr("f", "nonsense", "x", 1, 0));
	FAILS(EOPNOTSUPP, setxattr("f", "unknown.a", "x", 1, 0));
	FAILS(EINVAL, setxattr("f", "user.", "x", 1, 0));
	FAILS(ERANGE, setxattr("f", "", "x", 1, 0));
	IS(suite_has("f", ""), true);
}

static void xattrs_list(void)
{
	char list[1024], name[32];
	ssize_t n;
	int seen = 0;

	(void)suite_file("f", "");
	IS(listxattr("f", NULL, 0), 0);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "user.number%d", i);
		OK(setxattr("f", name, name, 13, 0));
	}
	n = listxattr("f", list, sizeof(list));
	IS(n, 130);
	IS(listxattr("f", NULL, 0), 130);
	for (const char *at = list; at < list + n; at += strlen(at) + 1)
		seen += strncmp(at, "user.number", 11) == 0;
	IS(seen, 10);
	FAILS(ERANGE, listxattr("f", list, 100));
}

static void xattrs_long(void)
{
	static char name[XATTR_NAME_MAX + 2], value[XATTR_SIZE_MAX + 1];

	(void)suite_file("f", "");
	memset(name, 'n', XATTR_NAME_MAX + 1);
	memcpy(name, "user.", 5);
	FAILS(ERANGE, setxattr("f", name, "x", 1, 0));
	FAILS(ERANGE, getxattr("f", name, value, 1));
	name[XATTR_NAME_MAX] = '\0';
	OK(setxattr("f", name, "x", 1, 0));
	IS(getxattr("f", name, value, sizeof(value)), 1);
	memset(value, 'v', sizeof(value));
	OK(setxattr("f", "user.a", value, 2000, 0));
	IS(getxattr("f", "user.a", value, sizeof(value)), 2000);
	FAILS(E2BIG, setxattr("f", "user.a", value, XATTR_SIZE_MAX + 1, 0));
	FAILS(ENOSPC, setxattr("f", "user.a", value, XATTR_SIZE_MAX, 0)); /* ext4: a block for all */
	IS(getxattr("f", "user.a", value, sizeof(value)), 2000);
}

static void xattrs_kinds(void)
{
	char value[8];
	int fd;

	OK(mkdir("d", 0755));
	OK(setxattr("d", "user.a", "x", 1, 0));
	IS(getxattr("d", "user.a", value, sizeof(value)), 1);
	OK(symlink("nothing", "link"));
	FAILS(ENOENT, setxattr("link", "user.a", "x", 1, 0));
	FAILS(EPERM, lsetxattr("link", "user.a", "x", 1, 0));
	OK(mkfifo("p", 0644));
	FAILS(EPERM, setxattr("p", "user.a", "x", 1, 0));
	fd = open("f", O_RDWR | O_CREAT, 0600);
	OK(fsetxattr(fd, "user.a", "x", 1, 0));
	IS(fgetxattr(fd, "user.a", value, sizeof(value)), 1);
	OK(fremovexattr(fd, "user.a"));
	FAILS(ENODATA, fgetxattr(fd, "user.a", value, sizeof(value)));
	OK(close(fd));
	FAILS(EBADF, fgetxattr(fd, "user.a", value, sizeof(value)));
}

static void xattrs_kept(void)
{
	char value[8];

	(void)suite_file("f", "");
	OK(setxattr("f", "user.a", "x", 1, 0));
	OK(rename("f", "g"));
	IS(getxattr("g", "user.a", value, sizeof(value)), 1);
	OK(link("g", "h"));
	IS(getxattr("h", "user.a", value, sizeof(value)), 1);
	OK(truncate("g", 0));
	OK(chmod("g", 0600));
	IS(getxattr("g", "user.a", value, sizeof(value)), 1);
}

static void xattrs_unlinked(void)
{
	char value[8];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	OK(unlink("f"));
	OK(fsetxattr(fd, "user.a", "x", 1, 0));
	IS(fgetxattr(fd, "user.a", value, sizeof(value)), 1);
	OK(close(fd));
}

static void xattrs_capability(void)
{
	struct vfs_cap_data cap = {.magic_etc = VFS_CAP_REVISION_2};
	char value[64];

	cap.data[0].permitted = 1u << CAP_NET_RAW;
	(void)suite_file("f", "text");
	OK(setxattr("f", "security.capability", &cap, sizeof(cap), 0));
	IS(getxattr("f", "security.capability", value, sizeof(value)), sizeof(cap));
	IS(memcmp(value, &cap, sizeof(cap)), 0);
	(void)suite_file("f", "other"); /* a write takes it away */
	FAILS(ENODATA, getxattr("f", "security.capability", value, sizeof(value)));
	FAILS(EINVAL, setxattr("f", "security.capability", "x", 1, 0));
}

/* What is the host's own; who is the sandbox's root has nothing there. */
static void xattrs_trusted(void)
{
	(void)suite_file("f", "");
	OK(setxattr("f", "trusted.a", "x", 1, 0));
}

static void xattrs_acl(void)
{
	/* version 2: owner rw-, user 5 r--, group ---, mask r--, others --- */
	static const unsigned char acl[] = {2,    0,    0,    0,    1,    0,    6,    0,    0xff, 0xff, 0xff,
					    0xff, 2,    0,    4,    0,    5,    0,    0,    0,    4,    0,
					    0,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    4,    0,    0xff,
					    0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
	char value[64];

	(void)suite_file("f", "");
	OK(setxattr("f", "system.posix_acl_access", acl, sizeof(acl), 0));
	IS(getxattr("f", "system.posix_acl_access", value, sizeof(value)), sizeof(acl));
	IS(suite_mode("f"), 0640);
}

static void xattrs_user(void)
{
	char value[8];

	FAILS(EACCES, setxattr("f", "user.b", "x", 1, 0));
	FAILS(EACCES, removexattr("f", "user.a"));
	FAILS(EACCES, getxattr("mine", "user.a", value, sizeof(value)));
	IS(getxattr("f", "user.a", value, sizeof(value)), 1);
	OK(setxattr("public", "user.b", "x", 1, 0));
}

static void xattrs_rights(void)
{
	(void)umask(0);
	(void)suite_file("f", "");
	(void)suite_file("mine", "");
	(void)suite_file("public", "");
	OK(chmod("f", 0644) + chmod("mine", 0600) + chmod("public", 0666));
	OK(setxattr("f", "user.a", "x", 1, 0));
	OK(setxattr("mine", "user.a", "x", 1, 0));
	suite_as_user(xattrs_user);
}

const struct suite_case suite_xattrs[] = {
	{"xattrs.set", xattrs_set, 0},
	{"xattrs.list", xattrs_list, 0},
	{"xattrs.long", xattrs_long, 0},
	{"xattrs.kinds", xattrs_kinds, 0},
	{"xattrs.kept", xattrs_kept, 0},
	{"xattrs.unlinked", xattrs_unlinked, 0},
	{"xattrs.capability", xattrs_capability, SUITE_ROOT},
	{"xattrs.trusted", xattrs_trusted, SUITE_ROOT},
	{"xattrs.acl", xattrs_acl, 0},
	{"xattrs.rights", xattrs_rights, SUITE_ROOT},
	{NULL, NULL, 0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: what passes, what is not shown, what is refused. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backends/base/macros.h"

static void test_user(void **state)
{
	struct stage s;
	uint64_t ids[2];
	char buf[256];

	(void)state;
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_write(&s, "f", "");
	stage_mkdir(&s, "d");
	ids[0] = stage_node(&s, "f");
	ids[1] = stage_node(&s, "d");
	for (size_t i = 0; i < CUBE_COUNT(ids); i++) {
		assert_int_equal(cube_files_listxattr(s.space, ids[i], NULL, 0), 0);
		assert_int_equal(cube_files_getxattr(s.space, ids[i], "user.x", buf, sizeof(buf)), -ENODATA);
		assert_int_equal(cube_files_setxattr(s.space, ids[i], "user.x", "value", 5, 0), 0);
		assert_int_equal(cube_files_setxattr(s.space, ids[i], "user.x", "v", 1, XATTR_CREATE),
				 -EEXIST);
		assert_int_equal(cube_files_setxattr(s.space, ids[i], "user.y", "v", 1, XATTR_REPLACE),
				 -ENODATA);
		assert_int_equal(cube_files_getxattr(s.space, ids[i], "user.x", NULL, 0), 5);
		assert_int_equal(cube_files_getxattr(s.space, ids[i], "user.x", buf, 4), -ERANGE);
		assert_int_equal(cube_files_getxattr(s.space, ids[i], "user.x", buf, sizeof(buf)), 5);
		assert_memory_equal(buf, "value", 5);
		assert_int_equal(cube_files_listxattr(s.space, ids[i], NULL, 0), 7);
		assert_int_equal(cube_files_listxattr(s.space, ids[i], buf, 6), -ERANGE);
		assert_int_equal(cube_files_listxattr(s.space, ids[i], buf, sizeof(buf)), 7);
		assert_memory_equal(buf, "user.x", 7);
		assert_int_equal(cube_files_removexattr(s.space, ids[i], "user.x"), 0);
		assert_int_equal(cube_files_removexattr(s.space, ids[i], "user.x"), -ENODATA);
	}
	stage_close(&s);
}

/* On the link itself, which the kernel refuses: not on what it leads to. */
static void test_link(void **state)
{
	struct stage s;

	(void)state;
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_write(&s, "f", "");
	stage_symlink(&s, "f", "l");
	assert_int_equal(cube_files_setxattr(s.space, stage_node(&s, "l"), "user.x", "1", 1, 0), -EPERM);
	assert_int_equal(cube_files_getxattr(s.space, stage_node(&s, "f"), "user.x", NULL, 0), -ENODATA);
	stage_close(&s);
}

static void test_policy(void **state)
{
	static const struct {
		const char *name;
		int get, set;
	} cases[] = {
		{"trusted.x", -ENODATA, -EOPNOTSUPP},
		{"trusted.overlay.opaque", -ENODATA, -EOPNOTSUPP},
		{"security.selinux", -ENODATA, -EOPNOTSUPP},
		{"security.capabilityx", -ENODATA, -EOPNOTSUPP},
		{"user.overlay.opaque", -ENODATA, -EOPNOTSUPP},
		{"system.posix_acl_access", -EOPNOTSUPP, -EOPNOTSUPP},
		{"system.posix_acl_default", -EOPNOTSUPP, -EOPNOTSUPP},
		{"system.nfs4_acl", -EOPNOTSUPP, -EOPNOTSUPP},
		{"nothing", -EOPNOTSUPP, -EOPNOTSUPP},
		{"", -EOPNOTSUPP, -EOPNOTSUPP},
	};
	struct stage s;
	uint64_t f;

	(void)state;
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_write(&s, "f", "");
	f = stage_node(&s, "f");
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		assert_int_equal(cube_files_getxattr(s.space, f, cases[i].name, NULL, 0), cases[i].get);
		assert_int_equal(cube_files_setxattr(s.space, f, cases[i].name, "y", 1, 0), cases[i].set);
		assert_int_equal(cube_files_removexattr(s.space, f, cases[i].name), cases[i].set);
	}
	assert_int_equal(cube_files_getxattr(s.space, 1, "user.x", NULL, 0), -ESTALE);
	stage_close(&s);
}

static void test_hidden(void **state)
{
	struct stage s;
	uint64_t f;
	char buf[256];
	int fd;

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_write(&s, "f", "");
	fd = openat(s.fd, "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "trusted.overlay.origin", "x", 1, 0), 0);
	assert_int_equal(fsetxattr(fd, "user.a", "x", 1, 0), 0);
	assert_int_equal(fsetxattr(fd, "user.overlay.origin", "x", 1, 0), 0);
	assert_int_equal(fsetxattr(fd, "user.b", "x", 1, 0), 0);
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_listxattr(s.space, f, NULL, 0), 14);
	assert_int_equal(cube_files_listxattr(s.space, f, buf, sizeof(buf)), 14);
	assert_true(memcmp(buf, "user.a\0user.b", 14) == 0 || memcmp(buf, "user.b\0user.a", 14) == 0);
	(void)close(fd);
	stage_close(&s);
}

/* ---- file capabilities ---- */

/* cap_net_raw+ep, version 2. */
static const struct vfs_cap_data cap_v2 = {
	.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
	.data = {{.permitted = 1u << CAP_NET_RAW}},
};

static void test_capability(void **state)
{
	struct vfs_ns_cap_data v;
	struct stage s;
	uint64_t f;
	char buf[64];
	int fd;

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_DISK);
	s.root.uid_base = s.root.gid_base = 100000;
	s.root.id_count = 65536;
	stage_attach(&s);
	stage_write(&s, "f", "");
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_setxattr(s.space, f, "security.capability", &cap_v2, sizeof(cap_v2), 0),
			 0);
	/* as kept: good in the sandbox's user namespace alone, never on the host */
	fd = openat(s.fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "security.capability", &v, sizeof(v)), XATTR_CAPS_SZ_3);
	assert_int_equal(v.magic_etc & VFS_CAP_REVISION_MASK, VFS_CAP_REVISION_3);
	assert_int_equal(v.rootid, 100000);
	/* as shown: as it was set */
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", NULL, 0), sizeof(cap_v2));
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", buf, 19), -ERANGE);
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", buf, sizeof(buf)),
			 sizeof(cap_v2));
	assert_memory_equal(buf, &cap_v2, sizeof(cap_v2));
	assert_int_equal(cube_files_listxattr(s.space, f, buf, sizeof(buf)), sizeof("security.capability"));
	/* version 3 of another root, or of a wrong size */
	assert_int_equal(cube_files_setxattr(s.space, f, "security.capability", &v, sizeof(v), 0), -EINVAL);
	assert_int_equal(cube_files_setxattr(s.space, f, "security.capability", &v, 3, 0), -EINVAL);
	v.rootid = 0;
	assert_int_equal(cube_files_setxattr(s.space, f, "security.capability", &v, sizeof(v), 0), 0);
	assert_int_equal(cube_files_setxattr(s.space, f, "security.capability", &v, sizeof(cap_v2), 0),
			 -EINVAL);
	assert_int_equal(cube_files_removexattr(s.space, f, "security.capability"), 0);
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", NULL, 0), -ENODATA);
	/* the host's own, and those of others, do not count inside and are not seen */
	v.rootid = 777;
	(void)close(fd);
	fd = openat(s.fd, "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "security.capability", &cap_v2, sizeof(cap_v2), 0), 0);
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(fsetxattr(fd, "security.capability", &v, sizeof(v), 0), 0);
	assert_int_equal(cube_files_getxattr(s.space, f, "security.capability", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(cube_files_listxattr(s.space, f, buf, sizeof(buf)), 0);
	(void)close(fd);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),       cmocka_unit_test(test_link),
		cmocka_unit_test(test_policy),     cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_capability),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

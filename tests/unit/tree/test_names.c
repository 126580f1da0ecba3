/* SPDX-License-Identifier: Apache-2.0 */
/* Names: looked up, listed, made, removed, renamed, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tree/rig.h"

static void check_listings(void **state)
{
	(void)state;
	rig_cube("dev");
	assert_string_equal(rig_ls(""), ". .. README ctl list clone events error backends volumes dev ");
	assert_string_equal(
		rig_ls("dev"),
		". .. ctl exec exit workspace logs metrics status info.json error access env files "
		"checkpoints sessions jobs ports ");
	assert_string_equal(rig_ls("dev/jobs"), ". .. clone ");
	assert_string_equal(rig_ls("dev/sessions"), ". .. main ");
	assert_string_equal(rig_ls("dev/sessions/main"), ". .. exec exit env cwd user status ctl ");
	assert_string_equal(rig_ls("backends"), ". .. mem ");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "build"), 0);
	assert_string_equal(rig_ls("dev/jobs/build"),
			    ". .. cmd argv stdin stdout stderr output exit status ctl env cwd user ");
	rig_gone("dev");
	assert_string_equal(rig_ls(""), ". .. README ctl list clone events error backends volumes ");
}

/* A listing in pieces, while others come and go: each that stays is there once. */
static void check_cursor(void **state)
{
	static struct rig_call c;
	char name[16], all[4096] = "";
	uint64_t at = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "s%02d", i);
		rig_cube(name);
	}
	do {
		rig_fill(&c, CUBE_REQ_READDIR, CUBE_TREE_ROOT);
		c.r.offset = at;
		c.r.size = 24;
		assert_int_equal(rig_run(&c), 0);
		(void)strncat(all, c.list, sizeof(all) - strlen(all) - 1);
		at = c.r.offset;
		if (strstr(all, "s05 ") != NULL && rig_lookup("s03") == 0) {
			rig_gone("s03"); /* behind the cursor */
			rig_gone("s15"); /* before it */
		}
	} while (c.list[0] != '\0');
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "s%02d ", i);
		assert_int_equal(strstr(all, name) != NULL, i != 15);
		if (i != 15)
			assert_null(strstr(strstr(all, name) + 1, name));
	}
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "s%02d", i);
		if (i != 3 && i != 15)
			rig_gone(name);
	}
}

static uint64_t ctl_for(pid_t pid)
{
	static struct rig_call c;

	rig_fill(&c, CUBE_REQ_LOOKUP, rig_node("dev"));
	c.r.name = "ctl";
	c.r.caller.pid = pid;
	assert_int_equal(rig_run(&c), 0);
	return c.r.entry.id;
}

static void check_numbers(void **state)
{
	static struct rig_call a, b;
	uint64_t ctl, other;

	(void)state;
	rig_cube("dev");
	/* One node for what holds still, another for each that looks up what a write may wait in; one inode
	 * number. */
	assert_int_equal(rig_node("dev/status"), rig_node("dev/status"));
	ctl = ctl_for(getpid());
	other = ctl_for(1);
	assert_int_not_equal(ctl, other);
	rig_fill(&a, CUBE_REQ_GETATTR, ctl);
	rig_fill(&b, CUBE_REQ_GETATTR, other);
	assert_int_equal(rig_run(&a), 0);
	assert_int_equal(rig_run(&b), 0);
	assert_int_equal(a.r.entry.st.st_ino, b.r.entry.st.st_ino);
	assert_int_equal(a.r.entry.st.st_nlink, 1);
	/* Forgotten, a number means nothing, and never anything else again. */
	cube_tree_forget(rig.tree, ctl, 1);
	rig_fill(&a, CUBE_REQ_GETATTR, ctl);
	assert_int_equal(rig_run(&a), -ESTALE);
	assert_int_not_equal(rig_node("dev/ctl"), ctl);
	rig_gone("dev");
}

static int rename_to(const char *from, const char *dir, const char *to, unsigned flags)
{
	static struct rig_call c;

	rig_fill(&c, CUBE_REQ_RENAME, CUBE_TREE_ROOT);
	c.r.name = from;
	c.r.new_parent = rig_node(dir);
	c.r.new_name = to;
	c.r.flags = flags;
	return rig_run(&c);
}

/* The node is the sandbox's, not its name's. */
static void check_rename(void **state)
{
	uint64_t before;

	(void)state;
	rig_cube("a");
	rig_cube("b");
	before = rig_node("a");
	assert_int_equal(rename_to("a", "", "b", 0), -EEXIST);
	assert_int_equal(rename_to("a", "b", "a", 0), -EPERM); /* what `mv a b` asks for */
	assert_int_equal(rename_to("a", "", "bad name", 0), -EINVAL);
	assert_int_equal(rename_to("a", "", "b", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(rename_to("README", "", "x", 0), -EPERM);
	assert_int_equal(rename_to("nothing", "", "x", 0), -ENOENT);
	assert_int_equal(rename_to("a", "", "c", 0), 0);
	assert_int_equal(rig_node("c"), before);
	assert_int_equal(rig_lookup("a"), -ENOENT);
	rig_gone("c");
	rig_gone("b");
}

struct refused {
	enum cube_req_op op;
	const char *dir, *name;
	int code;
};

static void check_refusals(void **state)
{
	static const struct refused table[] = {
		{CUBE_REQ_MKDIR, "", "README", -EEXIST},
		{CUBE_REQ_MKDIR, "", "-x", -EINVAL},
		{CUBE_REQ_MKDIR, "", ".x", -EINVAL},
		{CUBE_REQ_MKDIR, "", "help", -EINVAL},
		{CUBE_REQ_MKDIR, "dev", "desktop", -ENOENT},
		{CUBE_REQ_MKDIR, "dev/jobs", "7", -EINVAL},
		{CUBE_REQ_MKDIR, "dev/jobs", "last", -EINVAL},
		{CUBE_REQ_MKDIR, "backends", "x", -ENOENT},
		{CUBE_REQ_CREATE, "", "x", -ENOENT},
		{CUBE_REQ_CREATE, "dev", "ctl.swp", -ENOENT},
		{CUBE_REQ_CREATE, "dev", "ctl", -EEXIST},
		{CUBE_REQ_MKNOD, "dev", "fifo", -ENOENT},
		{CUBE_REQ_SYMLINK, "dev", "link", -EPERM},
		{CUBE_REQ_UNLINK, "", "README", -EPERM},
		{CUBE_REQ_UNLINK, "", "dev", -EISDIR},
		{CUBE_REQ_UNLINK, "", "nothing", -ENOENT},
		{CUBE_REQ_UNLINK, "dev/jobs", "clone", -EPERM},
		{CUBE_REQ_RMDIR, "", "backends", -EPERM},
		{CUBE_REQ_RMDIR, "", "README", -ENOTDIR},
		{CUBE_REQ_RMDIR, "dev", "jobs", -EPERM},
		{CUBE_REQ_RMDIR, "dev/sessions", "main", -EBUSY},
		{CUBE_REQ_RMDIR, "backends", "mem", -EPERM},
	};

	(void)state;
	rig_cube("dev");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int code = rig_on(table[i].op, table[i].dir, table[i].name);

		if (code != table[i].code)
			fail_msg("%zu: %s in '%s' gave %d, not %d", i, table[i].name, table[i].dir, code,
				 table[i].code);
	}
	rig_gone("dev");
}

/* Whatever is refused says why, in the sandbox's file and the root's. */
static void check_sentences(void **state)
{
	struct cube_handle *h;

	(void)state;
	rig_cube("dev");
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "dev", "jobs"), -EPERM);
	assert_non_null(strstr(rig_cat("dev/error"), "rmdir dev/jobs: EPERM: "));
	assert_non_null(strstr(rig_cat("error"), "rmdir dev/jobs: EPERM: "));
	assert_int_equal(rig_open("dev/status", O_RDWR, &h), -EACCES);
	assert_non_null(strstr(rig_cat("dev/error"), "open dev/status: EACCES: 'status' is read only"));
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "", "bad name"), -EINVAL);
	assert_non_null(strstr(rig_cat("error"), "mkdir /bad name: EINVAL: "));
	assert_int_equal(rig_echo("stop now please", "dev/ctl"), -EINVAL);
	assert_non_null(strstr(rig_cat("dev/error"), "write dev/ctl: stop now please"));
	/* To look for what is not there is no failure. */
	assert_int_equal(rig_lookup("dev/.git"), -ENOENT);
	assert_null(strstr(rig_cat("error"), ".git"));
	rig_gone("dev");
}

/* Ours have no extended attributes, as on a file system that knows of none. */
static void check_xattr(void **state)
{
	static const char *const paths[] = {"", "README", "dev", "dev/jobs", "dev/exec"};
	static struct rig_call c;

	(void)state;
	rig_cube("dev");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		rig_fill(&c, CUBE_REQ_XATTR, rig_node(paths[i]));
		assert_int_equal(rig_run(&c), 0);
		rig_fill(&c, CUBE_REQ_XATTR, rig_node(paths[i]));
		c.r.name = "user.x";
		assert_int_equal(rig_run(&c), -EOPNOTSUPP);
		rig_fill(&c, CUBE_REQ_XATTR, rig_node(paths[i]));
		c.r.name = "user.x";
		c.r.set = 1;
		assert_int_equal(rig_run(&c), -EOPNOTSUPP);
	}
	rig_gone("dev");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_listings),  cmocka_unit_test(check_cursor),
		cmocka_unit_test(check_xattr),     cmocka_unit_test(check_numbers),
		cmocka_unit_test(check_rename),    cmocka_unit_test(check_refusals),
		cmocka_unit_test(check_sentences),
	};

	return cmocka_run_group_tests(tests, rig_up, rig_down);
}

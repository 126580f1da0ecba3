/* SPDX-License-Identifier: Apache-2.0 */
/* volumes/: making, showing, renaming, removing, and who removes more than he should. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tree/rig.h"

static struct rig_call call;

static int on_by(pid_t pid, enum cube_req_op op, const char *dir, const char *name)
{
	rig_fill(&call, op, rig_node(dir));
	call.r.caller.pid = pid;
	call.r.name = name;
	return rig_run(&call);
}

static int move(const char *from, const char *to)
{
	rig_fill(&call, CUBE_REQ_RENAME, rig_node("volumes"));
	call.r.name = from;
	call.r.new_parent = call.r.node;
	call.r.new_name = to;
	return rig_run(&call);
}

static const char *info(const char *path, const char *key)
{
	static char value[256];
	const char *text = rig_cat(path), *at = strstr(text, key);

	if (at == NULL)
		return NULL;
	(void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
	return value;
}

static void check_life(void **state)
{
	(void)state;
	assert_string_equal(rig_ls("volumes"), ". .. ");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes", "k"), 0);
	assert_string_equal(rig_ls("volumes"), ". .. k ");
	assert_string_equal(rig_ls("volumes/k"), ". .. info files ");
	assert_string_equal(info("volumes/k/info", "backend"), "backend mem");
	assert_string_equal(info("volumes/k/info", "used_by"), "used_by -");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes", "k"), -EEXIST);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes", ".k"), -EINVAL);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes/k", "x"), -ENOENT);
	assert_int_equal(rig_on(CUBE_REQ_CREATE, "volumes", "file"), -ENOENT);
	assert_int_equal(rig_on(CUBE_REQ_UNLINK, "volumes", "k"), -EISDIR);
	assert_int_equal(move("k", "l"), 0);
	assert_int_equal(rig_lookup("volumes/k"), -ENOENT);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes", "m"), 0);
	assert_int_equal(move("l", "m"), -EEXIST);
	assert_int_equal(move("l", "-"), -EINVAL);
	assert_int_equal(move("none", "x"), -ENOENT);
	assert_string_equal(rig_ls("volumes"), ". .. l m ");
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "l"), 0);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "l"), -ENOENT);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "m"), 0);
	assert_string_equal(rig_ls("volumes"), ". .. ");
}

static void check_in_use(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("create dev volume=k", "ctl"), 0);
	assert_string_equal(info("volumes/k/info", "used_by"), "used_by dev");
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "k"), -EBUSY);
	assert_int_equal(rig_lookup("volumes/k"), 0);
	assert_string_equal(info("dev/status", "volume."), "volume./workspace k");
	assert_int_equal(move("k", "l"), 0);
	assert_string_equal(info("dev/status", "volume."), "volume./workspace l");
	rig_gone("dev");
	assert_string_equal(info("volumes/l/info", "used_by"), "used_by -");
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "l"), 0);
}

/* 1: its real directory is opened, 0: it looks empty. */
static int files_by(pid_t pid)
{
	rig_fill(&call, CUBE_REQ_OPENDIR, rig_node("volumes/k/files"));
	call.r.caller.pid = pid;
	assert_int_equal(rig_run(&call), 0);
	return call.real;
}

static void check_guarded(void **state)
{
	pid_t rm = rig_person();

	(void)state;
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "volumes", "k"), 0);
	assert_int_equal(files_by(rm), 1);
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "volumes/k", "info"), -EPERM);
	assert_int_equal(files_by(rm), 0);
	assert_int_equal(files_by(getpid()), 1);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "volumes/k", "files"), -EPERM);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "volumes", "k"), -EPERM);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "", "volumes"), -EPERM);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes/k", "files"), -EPERM);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "volumes", "k"), 0); /* by somebody else */
	rig_person_end(rm, 0);
	rig_person_bury(rm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_life),
		cmocka_unit_test(check_in_use),
		cmocka_unit_test(check_guarded),
	};

	return cmocka_run_group_tests(tests, rig_up, rig_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rm -r: who unlinks a fixed entry of a sandbox sees all below it as empty, and its rmdir destroys. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

static const char *ls_by(pid_t pid, const char *path)
{
	rig_fill(&call, CUBE_REQ_READDIR, rig_node(path));
	call.r.caller.pid = pid;
	assert_int_equal(rig_run(&call), 0);
	return call.list;
}

/* 1: its real directory is opened, 0: it looks empty. */
static int files_by(pid_t pid)
{
	rig_fill(&call, CUBE_REQ_OPENDIR, rig_node("dev/files"));
	call.r.caller.pid = pid;
	assert_int_equal(rig_run(&call), 0);
	return call.real;
}

static void check_walk(void **state)
{
	pid_t rm = rig_person();

	(void)state;
	rig_cube("dev");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "j"), 0);
	assert_int_equal(files_by(rm), 1);
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "dev", "ctl"), 0);
	assert_int_equal(rig_lookup("dev/ctl"), 0); /* nothing has happened */
	assert_string_equal(ls_by(rm, "dev/jobs"), ". .. ");
	assert_string_equal(ls_by(rm, "dev/jobs/j"), ". .. ");
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. ");
	assert_int_equal(files_by(rm), 0);
	assert_int_equal(files_by(getpid()), 1); /* to others all is as it was */
	assert_string_equal(rig_ls("dev/jobs"), ". .. clone last j ");
	/* What it had listed before, it removes without effect. */
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "dev/jobs", "j"), 0);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "dev", "jobs"), 0);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "dev", "files"), 0);
	assert_int_equal(rig_lookup("dev/jobs/j"), 0);
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "", "dev"), 0);
	assert_int_equal(rig_lookup("dev"), -ENOENT);
	/* The mark went with it: one of the same name is whole. */
	rig_cube("dev");
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. main ");
	rig_gone("dev");
	rig_person_end(rm, SIGKILL);
	rig_person_bury(rm);
}

/* It ends with the process, and with its first open or mkdir there. */
static void check_end_of_mark(void **state)
{
	pid_t rm = rig_person();
	struct cube_handle *h;

	(void)state;
	rig_cube("dev");
	rig_cube("other");
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "dev", "exec"), 0);
	assert_string_equal(ls_by(rm, "other/sessions"), ". .. main "); /* that directory alone */
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. ");
	assert_int_equal(rig_open_by(rm, "dev/status", O_RDONLY, &h), 0);
	rig_release(h);
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. main ");
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "dev", "exec"), 0);
	assert_int_equal(on_by(rm, CUBE_REQ_MKDIR, "dev/jobs", "made"), 0);
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. main ");
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "dev", "exec"), 0);
	rig_person_end(rm, SIGKILL);
	assert_string_equal(ls_by(rm, "dev/sessions"), ". .. main "); /* its number now is nobody's */
	rig_person_bury(rm);
	rig_gone("dev other");
}

static void check_backends(void **state)
{
	pid_t rm = rig_person();

	(void)state;
	assert_int_equal(on_by(rm, CUBE_REQ_UNLINK, "backends/mem", "status"), -EPERM);
	assert_string_equal(ls_by(rm, "backends"), ". .. ");
	assert_string_equal(ls_by(rm, "backends/mem"), ". .. ");
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "", "backends"), -EPERM);
	rig_cube("dev");
	assert_int_equal(on_by(rm, CUBE_REQ_RMDIR, "", "dev"), 0); /* sandboxes are another matter */
	rig_person_end(rm, SIGKILL);
	rig_person_bury(rm);
}

static void check_job_and_session(void **state)
{
	(void)state;
	rig_cube("dev");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "j"), 0);
	assert_int_equal(rig_on(CUBE_REQ_UNLINK, "dev/jobs/j", "cmd"), 0);
	assert_string_equal(rig_ls("dev/sessions"), ". .. main "); /* marks nobody */
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "dev/jobs", "j"), 0);
	assert_int_equal(rig_lookup("dev/jobs/j"), -ENOENT);
	rig_gone("dev");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_walk),
		cmocka_unit_test(check_end_of_mark),
		cmocka_unit_test(check_backends),
		cmocka_unit_test(check_job_and_session),
	};

	return cmocka_run_group_tests(tests, rig_up, rig_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bind and unbind as verbs: what is refused, what is remembered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/unit/ctl/stage.h"

static void host_make(const struct stage *s, char path[96], const char *name)
{
	cube_auto_fd fd = -1;
	char file[128];

	(void)snprintf(path, 96, "%s.%s", s->dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(file, sizeof(file), "%s/f", path);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "here\n", 5), 5);
}

static void host_remove(const char *path)
{
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, path), 0);
}

static int bind_verb(struct stage *s, struct cube_cube *c, const char *path, const char *rest)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "bind %s%s", path, rest);
	return stage_cube(s, c, line);
}

static void expect_file(struct stage *s, struct cube_cube *c, const char *command)
{
	char *out = NULL;

	assert_int_equal(stage_exec(s, c, NULL, command, &out), 0);
	assert_string_equal(out, "here\n");
	cube_free(out);
}

static void bound(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	char host[96];

	host_make(s, host, "h");
	assert_int_equal(bind_verb(s, c, host, " /mnt ro"), 0);
	expect_file(s, c, "cat /mnt/f");
	assert_int_not_equal(stage_exec(s, c, NULL, "write /mnt/g x", NULL), 0);
	assert_int_equal(bind_verb(s, c, host, " /mnt"), -EEXIST);
	assert_int_equal(stage_cube(s, c, "unbind /mnt"), 0);
	assert_int_not_equal(stage_exec(s, c, NULL, "cat /mnt/f", NULL), 0);
	assert_int_equal(stage_cube(s, c, "unbind /mnt"), -ENOENT);
	assert_int_equal(stage_cube(s, c, "stop"), 0);
	assert_int_equal(bind_verb(s, c, host, " /later"), 0);
	assert_int_equal(stage_cube(s, c, "start"), 0);
	expect_file(s, c, "cat /later/f");
	host_remove(host);
}

static void refused(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev volume./v=v");
	char host[96], file[112];

	host_make(s, host, "h");
	(void)snprintf(file, sizeof(file), "%s/f", host);
	assert_int_equal(bind_verb(s, c, host, ""), -EINVAL);
	assert_int_equal(bind_verb(s, c, host, " mnt"), -EINVAL);
	assert_int_equal(bind_verb(s, c, host, " /"), -EINVAL);
	assert_int_equal(bind_verb(s, c, host, " /proc/x"), -EINVAL);
	assert_int_equal(bind_verb(s, c, host, " /mnt rw"), -EINVAL);
	assert_int_equal(bind_verb(s, c, host, " /v"), -EBUSY);
	assert_int_equal(bind_verb(s, c, host, "/none /mnt"), -ENOENT);
	assert_int_equal(bind_verb(s, c, file, " /mnt"), -ENOTDIR);
	assert_int_equal(stage_cube(s, c, "bind relative /mnt"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "unbind /v"), -ENOENT);
	assert_int_equal(bind_verb(s, c, host, " /mnt"), 0); /* nothing of it is left in the way */
	host_remove(host);
}

static void not_here(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ncaps=-bind\n");
	c = stage_make(&s, "dev");
	assert_int_equal(stage_cube(&s, c, "bind /tmp /mnt"), -EOPNOTSUPP);
	stage_close(&s);
}

/* The backend fails: it is not there, and not remembered. */
static void backend_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\nfail=bind:ENOSPC:1 unbind:EREMOTEIO:1\n");
	c = stage_make(&s, "dev");
	assert_int_equal(stage_cube(&s, c, "bind /tmp /mnt"), -ENOSPC);
	assert_int_equal(stage_cube(&s, c, "unbind /mnt"), -ENOENT);
	assert_int_equal(stage_cube(&s, c, "bind /tmp /mnt"), 0);
	assert_int_equal(stage_cube(&s, c, "unbind /mnt"), -EREMOTEIO);
	assert_int_equal(stage_cube(&s, c, "unbind /mnt"), 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bound, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(refused, stage_setup, stage_teardown),
		cmocka_unit_test(not_here),
		cmocka_unit_test(backend_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

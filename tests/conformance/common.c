/* SPDX-License-Identifier: Apache-2.0 */
/* What most checks begin and end with. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "tests/conformance/conformance.h"

static void bed_destroy(struct subject *s, char *id)
{
	struct cube_err err;

	if (id != NULL && cube_backend_destroy(s->stage.b, id, &err) < 0)
		fail_msg("destroy: %s", err.text);
	cube_free(id);
}

struct bed bed_open(struct subject *s)
{
	struct bed b = {.subject = s, .id = cube_steal(s->kept)};

	if (b.id == NULL)
		b.id = stage_create(&s->stage, NULL);
	b.ear = ear_open(&s->stage, b.id);
	s->sessions += 2;
	b.session = s->sessions;
	return b;
}

void bed_close(struct bed *b)
{
	struct subject *s = b->subject;
	struct cube_info info;

	if (s->slow && s->kept == NULL && cube_backend_inspect(s->stage.b, b->id, &info, NULL) == 0 &&
	    info.state == CUBE_IS_RUNNING) {
		cube_link_kill_all(b->ear->link, SIGKILL);
		s->kept = cube_steal(b->id);
	}
	ear_close(b->ear);
	bed_destroy(s, b->id);
}

void bed_last(struct subject *s)
{
	bed_destroy(s, cube_steal(s->kept));
}

struct run cat_start(struct bed *b)
{
	struct run r;

	run_init(&r, b->ear, "cat");
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	(void)ear_wait(b->ear, HEARD_STARTED, r.start.job);
	return r;
}

void expect_output(struct bed *b, uint64_t session, const char *text, const char *out)
{
	struct run r;

	run_init(&r, b->ear, text);
	r.start.session = session;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, out);
	run_done(&r);
}

void expect_failure(int r, int code, const struct cube_err *err)
{
	if (r != code || err->code != code || err->text[0] == '\0')
		fail_msg("expected %s, got %s (%s: '%s')", cube_errno_name(code), cube_errno_name(r),
			 cube_errno_name(err->code), err->text);
}

struct cube_root expect_root(struct subject *s, const char *id)
{
	struct cube_root root;
	struct cube_err err;

	if (cube_backend_root(s->stage.b, id, &root, &err) < 0)
		fail_msg("root: %s", err.text);
	return root;
}

void put_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

void expect_file(int dir, const char *name, const char *text)
{
	char data[64] = "";
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, data, sizeof(data) - 1) >= 0);
	assert_string_equal(data, text);
	assert_int_equal(close(fd), 0);
}

void put_shell(int dir)
{
	cube_auto_fd in = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	cube_auto_fd out = openat(dir, "bin/sh", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	do {
		n = sendfile(out, in, NULL, 1 << 20);
		assert_true(n >= 0);
	} while (n > 0);
	assert_int_equal(fchmod(out, 0755), 0);
}

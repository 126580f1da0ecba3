/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of tests: with a spool in memory, waited for, their output as strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/spool.h"
#include "tests/unit/backends/stage.h"

#define LIMIT (UINT64_C(64) << 20)

static uint64_t next_job = 100;

void run_init(struct run *r, struct ear *e, const char *text)
{
	*r = (struct run){.ear = e};
	r->start = (struct cube_link_start){
		.job = next_job++,
		.text = text,
		.text_len = strlen(text),
		.out_fd = memfd_create("out", MFD_CLOEXEC),
		.order_fd = memfd_create("order", MFD_CLOEXEC),
		.limit = LIMIT,
	};
	assert_true(r->start.out_fd >= 0 && r->start.order_fd >= 0);
}

void run_init_argv(struct run *r, struct ear *e, const char *words, size_t len)
{
	run_init(r, e, "");
	r->start.argv = true;
	r->start.text = words;
	r->start.text_len = len;
}

/* A terminal is one pipe, and so is what a session's command has. */
static bool run_merged(const struct run *r)
{
	return r->start.merge || r->start.tty || r->start.session != 0;
}

void run_start(struct run *r)
{
	struct cube_link_start start = r->start;
	struct cube_err err;

	if (run_merged(r))
		start.order_fd = -1;
	if (cube_link_start(r->ear->link, &start, &err) < 0)
		fail_msg("start: %s", err.text);
}

static char *run_stream(const struct run *r, enum cube_stream stream, size_t *ret_len)
{
	const struct cube_spool_view v = {
		.out_fd = r->start.out_fd,
		.order_fd = run_merged(r) ? -1 : r->start.order_fd,
		.total = r->ended->end.total,
		.err_total = r->ended->end.err_total,
		.limit = r->start.limit,
	};
	uint64_t size = cube_spool_size(&v, stream);
	char *text = cube_calloc(1, size + 1);

	assert_non_null(text);
	*ret_len = size;
	for (uint64_t at = 0; at < size;) {
		ssize_t n = cube_spool_pread(&v, stream, text + at, size - at, at);

		assert_true(n > 0);
		at += (uint64_t)n;
	}
	return text;
}

void run_adopt(struct run *r, struct ear *e)
{
	struct stat st;

	r->ear = e;
	(void)ear_wait(e, HEARD_STARTED, r->start.job);
	assert_int_equal(fstat(r->start.out_fd, &st), 0);
	assert_int_equal(cube_link_adopt(e->link, r->start.job, r->start.out_fd,
					 run_merged(r) ? -1 : r->start.order_fd, (uint64_t)st.st_size, 0),
			 0);
}

void run_wait(struct run *r)
{
	size_t ignored;

	r->ended = ear_wait(r->ear, HEARD_ENDED, r->start.job);
	r->out = run_stream(r, CUBE_STREAM_STDOUT, &ignored);
	r->err_out = run_stream(r, CUBE_STREAM_STDERR, &ignored);
	r->all = run_stream(r, CUBE_STREAM_OUTPUT, &r->all_len);
}

void run_expect(struct run *r, enum cube_end how, int code)
{
	run_start(r);
	run_wait(r);
	if (r->ended->end.how != how || r->ended->end.code != code)
		fail_msg("'%s' ended %s %d (%s): %s", r->start.text, cube_end_name(r->ended->end.how),
			 r->ended->end.code, r->ended->err.text, r->all);
}

void run_done(struct run *r)
{
	if (r->ended != NULL)
		cube_link_forget(r->ear->link, r->start.job);
	cube_free(r->out);
	cube_free(r->err_out);
	cube_free(r->all);
	(void)close(r->start.out_fd);
	(void)close(r->start.order_fd);
}

char *run_text(struct ear *e, const char *text)
{
	struct run r;
	char *out;

	run_init(&r, e, text);
	run_expect(&r, CUBE_END_EXIT, 0);
	out = cube_steal(r.out);
	run_done(&r);
	return out;
}

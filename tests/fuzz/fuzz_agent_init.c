/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init's side: what comes from outside (any bytes as the daemon's messages) and what comes from inside
 * (any bytes as the report of a session's shell), without the effects. The first byte of an input says which.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/agent/init/dispatch.h"
#include "backends/agent/init/session_driver.h"
#include "backends/agent/init/session_report.h"
#include "backends/agent/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* ---- messages: each value that arrives is one that the agent can act on ---- */

static bool greeted;

static int on_hello(const struct cube_wire_hello *m)
{
	must(cube_wire_version(m) > 0);
	greeted = true;
	return 0;
}

static int on_start(uint64_t job, const struct cube_wire_start *m, void *message, int out_fd, int order_fd)
{
	(void)job;
	must(greeted && m->text_len <= CUBE_WIRE_TEXT_MAX && m->env_len <= CUBE_WIRE_ENV_MAX);
	must(m->cwd_len == 0 || memchr(m->cwd, 0, m->cwd_len) == NULL);
	must(m->user_len == 0 || memchr(m->user, 0, m->user_len) == NULL);
	must(order_fd < 0 || out_fd >= 0);
	if (out_fd >= 0)
		(void)close(out_fd);
	if (order_fd >= 0)
		(void)close(order_fd);
	free(message);
	return 0;
}

static int on_input(uint64_t job, const void *data, size_t len)
{
	(void)job;
	(void)data;
	must(greeted && len <= CUBE_WIRE_INPUT_MAX);
	return 0;
}

static int on_job(uint64_t job)
{
	(void)job;
	must(greeted);
	return 0;
}

static int on_kill(uint64_t job, int sig)
{
	(void)job;
	must(greeted && sig >= 1 && sig <= 64);
	return 0;
}

static int on_winsize(uint64_t job, uint16_t rows, uint16_t cols)
{
	(void)job;
	(void)rows;
	(void)cols;
	must(greeted);
	return 0;
}

static int on_timeout(uint64_t job, uint32_t seconds)
{
	(void)job;
	(void)seconds;
	must(greeted);
	return 0;
}

static int on_session_close(uint64_t session, bool reset)
{
	(void)session;
	(void)reset;
	must(greeted);
	return 0;
}

static int on_kill_all(int sig)
{
	return on_kill(0, sig);
}

static int on_freeze(bool on)
{
	(void)on;
	must(greeted);
	return 0;
}

static int on_paused(uint64_t ms)
{
	must(greeted && ms <= UINT64_MAX / 1000000);
	return 0;
}

static int on_offset(uint64_t job, uint64_t at)
{
	(void)job;
	(void)at;
	must(greeted);
	return 0;
}

static int on_look(void)
{
	must(greeted);
	return 0;
}

static int on_deadline(uint64_t ms, enum cube_wire_end what)
{
	must(greeted && what < CUBE_WIRE_END_COUNT && ms <= UINT64_MAX / 1000000);
	return 0;
}

static const struct init_handler handler = {
	.hello = on_hello,
	.start = on_start,
	.input = on_input,
	.eof = on_job,
	.kill = on_kill,
	.interrupt = on_job,
	.winsize = on_winsize,
	.timeout = on_timeout,
	.forget = on_job,
	.session_close = on_session_close,
	.kill_all = on_kill_all,
	.freeze = on_freeze,
	.paused = on_paused,
	.ack = on_offset,
	.resume = on_offset,
	.look = on_look,
	.deadline = on_deadline,
};

static struct cube_wire_feed feed;

static void fuzz_messages(const uint8_t *data, size_t size, bool again)
{
	struct init_dispatch d;
	struct cube_wire_head head;
	const void *body;
	int r = 0;

	greeted = false;
	init_dispatch_init(&d, &handler);
	d.again = again;
	cube_wire_feed_init(&feed);
	for (int i = 0; i < 3; i++) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)init_dispatch_fds(&d, &fd, 1, i == 2);
	}
	while (r >= 0 && size > 0) {
		size_t space;
		void *to = cube_wire_feed_space(&feed, &space);
		size_t n = size < space ? size : space;

		if (n > 977)
			n = 977; /* in pieces, as a socket gives them */
		memcpy(to, data, n);
		feed.len += n;
		data += n;
		size -= n;
		if (again && !d.greeted && !cube_wire_feed_sync(&feed))
			continue;
		while ((r = cube_wire_feed_next(&feed, &head, &body)) > 0 && r >= 0) {
			r = init_dispatch_frame(&d, &head, body);
			if (r < 0)
				break;
		}
	}
	init_dispatch_done(&d);
}

/* ---- the shell's report ---- */

static void fuzz_report(const uint8_t *data, size_t size)
{
	struct init_report_in *in = calloc(1, sizeof(*in));
	struct init_report r;

	must(in != NULL);
	while (size > 0) {
		size_t space;
		char *to = init_report_space(in, &space);
		size_t n = size < space ? size : space;

		must(space > 0);
		if (n > 100)
			n = 100;
		memcpy(to, data, n);
		in->len += n;
		data += n;
		size -= n;
		while (init_report_next(in, 7, &r)) {
			must(strchr("uivdx", r.kind) != NULL && r.kind != 0);
			must(r.kind != 'd' || (r.seq == 7 && r.a <= 255));
			must(r.pwd[0] == '\0' || r.pwd[0] == '/');
		}
	}
	free(in);
}

/* ---- what is written for a shell: no value can leave its quotes ---- */

/* Walks one quoted word as a shell reads it and gives its value's length; NULL where it is not closed. */
static const char *fuzz_word(const char *at, const char *end, size_t *len)
{
	*len = 0;
	while (at < end && (*at == '\'' || (*at == '\\' && at + 1 < end))) {
		if (*at == '\\') {
			at += 2;
			++*len;
			continue;
		}
		for (at++; at < end && *at != '\''; at++)
			++*len;
		if (at == end)
			return NULL;
		at++;
	}
	return at;
}

static void fuzz_quote(const uint8_t *data, size_t size)
{
	struct init_text t = {0};
	const struct init_driver d = {.path = "/p", .bash = size % 2 == 0};
	size_t len;

	init_text_quote(&t, (const char *)data, size);
	must(!t.bad && fuzz_word(t.data, t.data + t.len, &len) == t.data + t.len && len == size);
	init_text_done(&t);
	init_driver_vars(&t, &d, 1, (const char *)data, size, NULL);
	must(!t.bad && t.len > 0 && t.data[t.len - 1] == '\n');
	init_text_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] & 3) {
	case 0:
		fuzz_messages(data + 1, size - 1, false);
		break;
	case 1:
		fuzz_messages(data + 1, size - 1, true);
		break;
	case 2:
		fuzz_report(data + 1, size - 1);
		break;
	default:
		fuzz_quote(data + 1, size - 1);
		break;
	}
	return 0;
}

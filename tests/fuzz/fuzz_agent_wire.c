/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of the agent protocol: a link whose agent says any bytes. Whatever comes, what the caller
 * is told holds together: `up` first, totals that only grow and that the spool has, one end for a job that is
 * not called gone, one `down`.
 *
 * The first byte of an input says how the link is made: bit 0 passes descriptors, bit 1 puts a greeting in
 * front. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/agent/link.h"
#include "backends/agent/wire.h"
#include "backends/base/loop.h"

#define JOBS  3
#define SPOOL 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
	bool up, down;
	bool ended[JOBS];
	uint64_t total[JOBS], err_total[JOBS];
};

static struct cube_loop *loop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static struct told *told(void *ctx)
{
	struct told *t = ctx;

	must(t->up && !t->down);
	return t;
}

static void on_up(void *ctx, uint64_t boot)
{
	struct told *t = ctx;

	(void)boot;
	must(!t->up && !t->down);
	t->up = true;
}

static void on_synced(void *ctx)
{
	(void)told(ctx);
}

static void on_started(void *ctx, uint64_t job, int pid)
{
	(void)told(ctx);
	(void)job;
	must(pid > 0);
}

static void on_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	struct told *t = told(ctx);

	must(err_total <= total && total <= INT64_MAX);
	if (job < 1 || job > JOBS || t->ended[job - 1])
		return; /* what it calls gone it may call by the same number again */
	must(total >= t->total[job - 1] && err_total >= t->err_total[job - 1]);
	t->total[job - 1] = total;
	t->err_total[job - 1] = err_total;
}

static void on_input(void *ctx, uint64_t job, uint64_t got)
{
	(void)told(ctx);
	(void)job; /* of what it reports, whatever it says */
	(void)got;
}

static void on_session(void *ctx, const struct cube_link_session *s)
{
	(void)told(ctx);
	must(s->cwd[0] == '/' && strlen(s->cwd) <= CUBE_WIRE_CWD_MAX);
	if (s->exports != NULL)
		must(strlen(s->exports) == s->exports_len);
}

static void on_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct told *t = told(ctx);

	must(end->code >= -1 && end->code <= 255 && (end->code >= 0) == (end->how != CUBE_END_LOST));
	must(end->err_total <= end->total);
	if (err != NULL)
		must(err->code < 0);
	if (job < 1 || job > JOBS || t->ended[job - 1])
		return;
	must(end->total >= t->total[job - 1]);
	t->ended[job - 1] = true;
}

static void on_left(void *ctx, uint64_t n, bool still)
{
	(void)told(ctx);
	(void)n;
	(void)still;
}

static void on_down(void *ctx, const struct cube_err *err)
{
	struct told *t = ctx;

	must(!t->down && err->code < 0 && err->text[0] != '\0');
	pthread_mutex_lock(&lock);
	t->down = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static const struct cube_link_handler handler = {
	.up = on_up,
	.synced = on_synced,
	.started = on_started,
	.output = on_output,
	.input = on_input,
	.session = on_session,
	.ended = on_ended,
	.left = on_left,
	.down = on_down,
};

static void *run(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

static void fuzz_setup(void)
{
	pthread_t thread;

	(void)signal(SIGPIPE, SIG_IGN);
	loop = cube_loop_new();
	must(loop != NULL);
	must(pthread_create(&thread, NULL, run, loop) == 0);
	(void)pthread_detach(thread);
}

static bool is_down(struct told *t)
{
	bool down;

	pthread_mutex_lock(&lock);
	down = t->down;
	pthread_mutex_unlock(&lock);
	return down;
}

/* All of it, unless the link has had enough. */
static void fuzz_send(int fd, struct told *t, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0 && !is_down(t)) {
		ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else {
			(void)usleep(50);
		}
	}
}

static void fuzz_hello(int fd, struct told *t)
{
	const struct cube_wire_hello m = {.min = 1, .max = 1, .boot = 1};
	unsigned char data[64];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	must(cube_wire_put_hello(&out, &m));
	fuzz_send(fd, t, data, out.len);
}

static void fuzz_start(struct cube_link *l)
{
	static const char input[CUBE_WIRE_WINDOW + 1];

	for (uint64_t job = 1; job <= JOBS; job++) {
		int out_fd = memfd_create("spool", MFD_CLOEXEC),
		    order_fd = job == 3 ? memfd_create("order", MFD_CLOEXEC) : -1;
		const struct cube_link_start s = {
			.job = job,
			.session = job == 2 ? 5 : 0,
			.text = "x",
			.text_len = 1,
			.in = CUBE_STDIN_PIPE,
			.out_fd = out_fd,
			.order_fd = order_fd,
		};

		must(out_fd >= 0 && ftruncate(out_fd, SPOOL) == 0);
		(void)cube_link_start(l, &s, NULL);
		(void)close(out_fd);
		if (order_fd >= 0)
			(void)close(order_fd);
	}
	(void)cube_link_input(l, 1, input, sizeof(input)); /* the whole window */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told t = {0};
	struct cube_link *l;
	int fds[2];

	if (loop == NULL)
		fuzz_setup();
	if (size == 0)
		return 0;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	must(cube_agent_link_new(loop, fds[0], (data[0] & 1) != 0, &handler, &t, &l, NULL) == 0);
	fuzz_start(l);
	if ((data[0] & 2) != 0)
		fuzz_hello(fds[1], &t);
	fuzz_send(fds[1], &t, data + 1, size - 1);
	(void)shutdown(fds[1], SHUT_WR);
	pthread_mutex_lock(&lock);
	while (!t.down)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	cube_link_close(l);
	(void)close(fds[1]);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes into spools. */
#include "backends/agent/init/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/agent/init/memfile.h"
#include "backends/base/macros.h"
#include "backends/base/spool.h"

#define PIPE_SIZE  (1 << 20) /* once a pipe was found nearly full at the size it is made with */
#define PIPE_FULL  (48 << 10)
#define MOVE_MAX   ((size_t)1 << 20)   /* in one step */
#define ROUND_MAX  ((size_t)4 << 20)   /* from one pipe before others have their turn */
#define CHECK_STEP ((uint64_t)4 << 20) /* how often the limit and the file's links are looked at */

static unsigned char output_buffer[64 << 10];

void init_output_init(struct init_output *o, int out_fd, int order_fd, uint64_t limit,
		      void (*changed)(struct init_output *))
{
	*o = (struct init_output){
		.out_fd = out_fd,
		.order_fd = order_fd,
		.limit = limit,
		.last = -1,
		.changed = changed,
	};
	for (unsigned i = 0; i < CUBE_COUNT(o->pipes); i++) {
		o->pipes[i].ev.fd = -1;
		o->pipes[i].output = o;
	}
}

/* An unlinked file, on a disk rather than in memory where there is one. */
static int output_temporary(void)
{
	static const char *const places[] = {"/var/tmp", "/tmp"};
	int fd = -1;

	for (unsigned i = 0; i < CUBE_COUNT(places) && fd < 0; i++)
		fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : init_memfile("spool");
}

int init_output_own(struct init_output *o, bool separate)
{
	o->own = true;
	o->out_fd = output_temporary();
	if (o->out_fd >= 0 && separate)
		o->order_fd = output_temporary();
	return o->out_fd < 0 || (separate && o->order_fd < 0) ? -errno : 0;
}

/* Beyond twice the limit the middle is given back: while a daemon is there it does so itself, and earlier. A
 * spool that was unlinked has no reader any more. */
static void output_check(struct init_output *o)
{
	struct stat st;

	if (o->count.total < o->checked + CHECK_STEP)
		return;
	o->checked = o->count.total;
	if (!o->own && fstat(o->out_fd, &st) == 0 && st.st_nlink == 0)
		o->discard = true;
	if (o->limit > 0 && o->count.total / 2 > o->limit)
		cube_spool_punch(o->out_fd, o->count.total, o->limit, UINT64_MAX, &o->punched);
}

/* @n bytes of a stream were stored at the end. Where the index cannot say so they do not count, and what
 * comes next takes their place. */
static void output_stored(struct init_output *o, bool err, size_t n)
{
	uint64_t before = err ? o->count.err_total : o->count.total - o->count.err_total;

	if (o->order_fd >= 0 && cube_spool_note(o->order_fd, &o->last, err, o->count.total, before) < 0) {
		o->count.lost += n;
		return;
	}
	o->count.total += n;
	if (err && o->order_fd >= 0)
		o->count.err_total += n;
	output_check(o);
}

static void output_store_buffer(struct init_output *o, bool err, size_t n)
{
	size_t done = 0;

	while (done < n && !o->discard) {
		ssize_t w = pwrite(o->out_fd, output_buffer + done, n - done, (off_t)o->count.total);

		if (w <= 0)
			break;
		output_stored(o, err, (size_t)w);
		done += (size_t)w;
	}
	o->count.lost += n - done;
}

/* By way of our memory: terminals, spools that take no splice, and what a full disk will not take. Gives what
 * read(2) gave. */
static ssize_t output_copy(struct init_pipe *p, size_t max)
{
	size_t size = max < sizeof(output_buffer) ? max : sizeof(output_buffer);
	ssize_t n = read(p->ev.fd, output_buffer, size);

	if (n > 0)
		output_store_buffer(p->output, p->err, (size_t)n);
	return n;
}

/* Moves up to @max bytes: how many, 0 at the end, -1 with errno (EAGAIN: nothing there). */
static ssize_t output_move(struct init_pipe *p, size_t max)
{
	struct init_output *o = p->output;
	loff_t at = (loff_t)o->count.total;
	ssize_t n;

	if (p->tty || p->file || o->discard)
		return output_copy(p, max);
	n = splice(p->ev.fd, NULL, o->out_fd, &at, max, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		output_stored(o, p->err, (size_t)n);
	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return n;
	p->file = errno == EINVAL;
	return output_copy(p, max);
}

/* Small pipes for the many that write little: the kernel counts their pages by user and is mean above a sum.
 */
static void output_grow(struct init_pipe *p, size_t moved)
{
	if (p->grown || p->tty || moved < PIPE_FULL)
		return;
	p->grown = true;
	(void)fcntl(p->ev.fd, F_SETPIPE_SZ, PIPE_SIZE);
}

static void output_close_pipe(struct init_pipe *p)
{
	int fd = p->ev.fd;

	if (fd < 0)
		return;
	init_ev_del(&p->ev);
	(void)close(fd);
	p->ev.fd = -1;
}

/* Up to @max bytes, until there is nothing more or the end. */
static void output_take(struct init_pipe *p, size_t max)
{
	size_t moved = 0;

	while (moved < max) {
		ssize_t n = output_move(p, max - moved < MOVE_MAX ? max - moved : MOVE_MAX);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			output_close_pipe(p); /* a terminal ends with EIO */
			break;
		}
		if (n < 0)
			break;
		moved += (size_t)n;
		output_grow(p, (size_t)n);
	}
}

static void output_ready(struct init_ev *ev, uint32_t events)
{
	struct init_pipe *p = cube_container_of(ev, struct init_pipe, ev);
	struct init_output *o = p->output;

	(void)events;
	output_take(p, ROUND_MAX);
	o->changed(o);
}

int init_output_attach(struct init_output *o, int fd, bool err, bool tty)
{
	struct init_pipe *p = &o->pipes[err];
	int r = init_ev_add(&p->ev, fd, EPOLLIN, output_ready);

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	p->err = err;
	p->tty = tty;
	return 0;
}

void init_output_drain(struct init_output *o)
{
	for (unsigned i = 0; i < CUBE_COUNT(o->pipes); i++) {
		struct init_pipe *p = &o->pipes[i];
		int ready = 0;

		if (p->ev.fd < 0)
			continue;
		/* A terminal hands over what is on its way only to a read. */
		if (p->tty)
			ready = PIPE_SIZE;
		else if (ioctl(p->ev.fd, FIONREAD, &ready) < 0)
			ready = 0;
		output_take(p, (size_t)ready);
	}
}

bool init_output_open(const struct init_output *o)
{
	return o->pipes[0].ev.fd >= 0 || o->pipes[1].ev.fd >= 0;
}

void init_output_done(struct init_output *o)
{
	output_close_pipe(&o->pipes[0]);
	output_close_pipe(&o->pipes[1]);
	if (o->out_fd >= 0)
		(void)close(o->out_fd);
	if (o->order_fd >= 0)
		(void)close(o->order_fd);
	o->out_fd = o->order_fd = -1;
}

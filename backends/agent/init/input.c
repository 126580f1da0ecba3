/* SPDX-License-Identifier: Apache-2.0 */
/* stdin of jobs. */
#include "backends/agent/init/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>

#include "backends/agent/wire.h"
#include "backends/base/macros.h"

void init_input_init(struct init_input *in, void (*changed)(struct init_input *))
{
	*in = (struct init_input){.ev = {.fd = -1}, .keep_fd = -1, .changed = changed};
}

static void input_drop(struct init_input *in)
{
	free(in->data);
	in->data = NULL;
	in->head = in->len = 0;
}

static void input_close(struct init_input *in)
{
	int fd = in->ev.fd;

	if (fd < 0)
		return;
	init_ev_del(&in->ev);
	(void)close(fd);
	in->ev.fd = -1;
	in->taken = in->received;
	input_drop(in);
	in->changed(in);
}

/* The end of file of a terminal is the character for it, where lines are being edited. */
static void input_end_tty(struct init_input *in)
{
	struct termios t;

	if (tcgetattr(in->ev.fd, &t) == 0 && (t.c_lflag & ICANON) != 0)
		(void)(write(in->ev.fd, &t.c_cc[VEOF], 1) < 0);
	input_close(in);
}

static void input_write(struct init_input *in)
{
	uint64_t before = in->taken;
	ssize_t n = 0;

	while (in->head < in->len) {
		n = write(in->ev.fd, in->data + in->head, in->len - in->head);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		in->head += (size_t)n;
		in->taken += (size_t)n;
	}
	if (n < 0 && errno != EAGAIN) {
		input_close(in); /* the reader is gone */
		return;
	}
	init_ev_mod(&in->ev, in->head < in->len ? EPOLLOUT : 0);
	if (in->head == in->len) {
		input_drop(in);
		if (in->ended && in->tty)
			input_end_tty(in);
		else if (in->ended && in->keep_fd < 0)
			input_close(in);
	}
	if (in->taken != before)
		in->changed(in);
}

static void input_ready(struct init_ev *ev, uint32_t events)
{
	struct init_input *in = cube_container_of(ev, struct init_input, ev);

	/* An error with nothing to write: nobody reads it any more. A terminal says so by a hang-up. */
	if ((events & (EPOLLERR | EPOLLHUP)) != 0 && in->head == in->len)
		input_close(in);
	else
		input_write(in);
}

int init_input_attach(struct init_input *in, int fd, bool tty)
{
	int r = init_ev_add(&in->ev, fd, 0, input_ready);

	if (r < 0) {
		(void)close(fd);
		in->ev.fd = -1;
		return r;
	}
	in->tty = tty;
	in->expected = false;
	input_write(in);
	return 0;
}

int init_input_add(struct init_input *in, const void *data, size_t len)
{
	if (in->received - in->taken + len > CUBE_WIRE_WINDOW)
		return -EMSGSIZE;
	in->received += len;
	if ((in->ev.fd < 0 && !in->expected) || in->ended) {
		in->taken = in->received;
		in->changed(in);
		return 0;
	}
	if (in->data == NULL)
		in->data = malloc(CUBE_WIRE_WINDOW);
	if (in->data == NULL) {
		in->taken = in->received;
		input_close(in);
		return 0;
	}
	if (in->head > 0 && in->len + len > CUBE_WIRE_WINDOW) {
		memmove(in->data, in->data + in->head, in->len - in->head);
		in->len -= in->head;
		in->head = 0;
	}
	memcpy(in->data + in->len, data, len);
	in->len += len;
	if (in->ev.fd >= 0)
		input_write(in);
	return 0;
}

void init_input_end(struct init_input *in)
{
	if (in->ended || (in->ev.fd < 0 && !in->expected))
		return;
	in->ended = true;
	if (in->ev.fd >= 0)
		input_write(in);
}

void init_input_opened(struct init_input *in)
{
	if (in->keep_fd >= 0)
		(void)close(in->keep_fd);
	in->keep_fd = -1;
	if (in->ev.fd >= 0)
		input_write(in);
}

void init_input_done(struct init_input *in)
{
	int fd = in->ev.fd;

	init_ev_del(&in->ev);
	if (fd >= 0)
		(void)close(fd);
	if (in->keep_fd >= 0)
		(void)close(in->keep_fd);
	in->ev.fd = in->keep_fd = -1;
	input_drop(in);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to functions, by a table. */
#include "backends/agent/init/dispatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/macros.h"

#define SECONDS_MAX UINT32_MAX
#define PAUSE_MAX   (UINT64_C(1) << 40) /* milliseconds: some thirty years */
#define LIFE_MAX    (UINT64_C(1) << 43) /* milliseconds: more than a daemon counts */

void init_dispatch_init(struct init_dispatch *d, const struct init_handler *handler)
{
	*d = (struct init_dispatch){.handler = handler, .out_fd = -1, .order_fd = -1};
	cube_wire_join_init(&d->join, CUBE_WIRE_LONG_MAX, malloc, free);
}

static void dispatch_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void set_close(struct init_fd_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		dispatch_close(&set->fds[i]);
	set->n = 0;
}

void init_dispatch_done(struct init_dispatch *d)
{
	for (unsigned i = 0; i < d->n_sets; i++)
		set_close(&d->sets[i]);
	dispatch_close(&d->out_fd);
	dispatch_close(&d->order_fd);
	cube_wire_join_done(&d->join);
	d->n_sets = 0;
	d->greeted = false;
}

int init_dispatch_fds(struct init_dispatch *d, const int *fds, unsigned n, bool lost)
{
	struct init_fd_set set = {.fds = {-1, -1}, .lost = lost};

	for (unsigned i = 0; i < n; i++) {
		if (i < CUBE_COUNT(set.fds))
			set.fds[set.n++] = fds[i];
		else
			(void)close(fds[i]);
	}
	if (lost)
		set_close(&set);
	if (n > CUBE_COUNT(set.fds) || d->n_sets == INIT_SETS_MAX) {
		set_close(&set);
		return -EPROTO;
	}
	d->sets[d->n_sets++] = set;
	return 0;
}

/* The first frame of a START says how many descriptors are its own. */
static int dispatch_start_fds(struct init_dispatch *d, unsigned flags)
{
	unsigned wanted = ((flags & CUBE_WIRE_FD_OUT) != 0) + ((flags & CUBE_WIRE_FD_ORDER) != 0);
	struct init_fd_set set;

	if (wanted == 0)
		return 0;
	if ((flags & CUBE_WIRE_FD_OUT) == 0 || d->n_sets == 0)
		return -EPROTO;
	set = d->sets[0];
	d->n_sets--;
	memmove(d->sets, d->sets + 1, d->n_sets * sizeof(d->sets[0]));
	if (!set.lost && set.n != wanted) {
		set_close(&set);
		return -EPROTO;
	}
	d->out_fd = set.lost ? INIT_FD_LOST : set.fds[0];
	d->order_fd = set.fds[1];
	return 0;
}

static int on_hello(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	struct cube_wire_hello m;

	if (!cube_wire_get_hello(body, head->len, &m) || cube_wire_version(&m) == 0)
		return -EPROTO;
	init_dispatch_done(d);
	d->greeted = true;
	return d->handler->hello(&m);
}

static int on_start(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	struct cube_wire_start m;
	int r = d->join.open ? 0 : dispatch_start_fds(d, head->flags);

	if (r == 0)
		r = cube_wire_join_add(&d->join, head, body);
	if (r <= 0)
		return r;
	if (!cube_wire_get_start(d->join.data, d->join.len, &m))
		return -EPROTO;
	return d->handler->start(head->id, &m, cube_steal(d->join.data), cube_steal_fd(&d->out_fd),
				 cube_steal_fd(&d->order_fd));
}

static int on_input(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	return head->len <= CUBE_WIRE_INPUT_MAX ? d->handler->input(head->id, body, head->len) : -EPROTO;
}

static int on_eof(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	(void)body;
	return head->len == 0 ? d->handler->eof(head->id) : -EPROTO;
}

static int on_interrupt(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	(void)body;
	return head->len == 0 ? d->handler->interrupt(head->id) : -EPROTO;
}

static int on_forget(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	(void)body;
	return head->len == 0 ? d->handler->forget(head->id) : -EPROTO;
}

static int on_kill(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t sig;

	if (!cube_wire_get_number(body, head->len, &sig) || sig < 1 || sig > 64)
		return -EPROTO;
	return d->handler->kill(head->id, (int)sig);
}

static int on_winsize(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t rows, cols;

	if (!cube_wire_get_pair(body, head->len, &rows, &cols) || rows > UINT16_MAX || cols > UINT16_MAX)
		return -EPROTO;
	return d->handler->winsize(head->id, (uint16_t)rows, (uint16_t)cols);
}

static int on_timeout(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t seconds;

	if (!cube_wire_get_number(body, head->len, &seconds) || seconds > SECONDS_MAX)
		return -EPROTO;
	return d->handler->timeout(head->id, (uint32_t)seconds);
}

static int on_session_close(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t reset;

	if (!cube_wire_get_number(body, head->len, &reset) || reset > 1)
		return -EPROTO;
	return d->handler->session_close(head->id, reset == 1);
}

static int on_kill_all(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t sig;

	if (!cube_wire_get_number(body, head->len, &sig) || sig < 1 || sig > 64)
		return -EPROTO;
	return d->handler->kill_all((int)sig);
}

static int on_freeze(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t on;

	if (!cube_wire_get_number(body, head->len, &on) || on > 1)
		return -EPROTO;
	return d->handler->freeze(on == 1);
}

static int on_paused(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t ms;

	if (!cube_wire_get_number(body, head->len, &ms) || ms > PAUSE_MAX)
		return -EPROTO;
	return d->handler->paused(ms);
}

static int on_ack(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t upto;

	return cube_wire_get_number(body, head->len, &upto) ? d->handler->ack(head->id, upto) : -EPROTO;
}

static int on_resume(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t from;

	return cube_wire_get_number(body, head->len, &from) ? d->handler->resume(head->id, from) : -EPROTO;
}

static int on_look(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	(void)body;
	return head->len == 0 ? d->handler->look() : -EPROTO;
}

static int on_deadline(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	uint64_t ms, what;

	if (!cube_wire_get_pair(body, head->len, &ms, &what) || ms > LIFE_MAX || what >= CUBE_WIRE_END_COUNT)
		return -EPROTO;
	return d->handler->deadline(ms, (enum cube_wire_end)what);
}

static const struct {
	enum cube_wire_type type;
	int (*fn)(struct init_dispatch *d, const struct cube_wire_head *head, const void *body);
} dispatch_table[] = {
	{CUBE_WIRE_HELLO, on_hello},       {CUBE_WIRE_START, on_start},
	{CUBE_WIRE_INPUT, on_input},       {CUBE_WIRE_EOF, on_eof},
	{CUBE_WIRE_KILL, on_kill},         {CUBE_WIRE_INTERRUPT, on_interrupt},
	{CUBE_WIRE_WINSIZE, on_winsize},   {CUBE_WIRE_TIMEOUT, on_timeout},
	{CUBE_WIRE_FORGET, on_forget},     {CUBE_WIRE_SESSION_CLOSE, on_session_close},
	{CUBE_WIRE_KILL_ALL, on_kill_all}, {CUBE_WIRE_FREEZE, on_freeze},
	{CUBE_WIRE_PAUSED, on_paused},     {CUBE_WIRE_ACK, on_ack},
	{CUBE_WIRE_RESUME, on_resume},     {CUBE_WIRE_LOOK, on_look},
	{CUBE_WIRE_DEADLINE, on_deadline},
};

int init_dispatch_frame(struct init_dispatch *d, const struct cube_wire_head *head, const void *body)
{
	bool hello = head->type == CUBE_WIRE_HELLO;

	/* Nothing may come before HELLO, nor between the frames of one message. */
	if (d->greeted == hello && !(hello && d->again))
		return -EPROTO;
	if (d->join.open && !hello && (head->type != d->join.type || head->id != d->join.id))
		return -EPROTO;
	for (unsigned i = 0; i < CUBE_COUNT(dispatch_table); i++) {
		if (dispatch_table[i].type == head->type)
			return dispatch_table[i].fn(d, head, body);
	}
	return (head->flags & CUBE_WIRE_OPTIONAL) != 0 ? 0 : -EPROTO;
}

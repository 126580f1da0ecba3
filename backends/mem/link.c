/* SPDX-License-Identifier: Apache-2.0 */
/* The process interface (backends/link.h): every method changes the sandbox at once, under the lock. */
#include <errno.h>
#include <signal.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/mem/mem_priv.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static struct mem_link *link_lock(struct cube_link *l)
{
	struct mem_link *ml = cube_container_of(l, struct mem_link, base);

	pthread_mutex_lock(&ml->mem->lock);
	return ml;
}

static void link_unlock(struct mem_link *l)
{
	pthread_mutex_unlock(&l->mem->lock);
}

/* The job while it runs; NULL: it does not, or the connection is broken. */
static struct mem_proc *link_proc(const struct mem_link *l, uint64_t job)
{
	struct mem_proc *p = l->box != NULL ? mem_proc_find(l->box, job) : NULL;

	return p != NULL && !p->ended ? p : NULL;
}

static int link_start(struct cube_link *link, const struct cube_link_start *s, struct cube_err *err)
{
	struct mem_link *l = link_lock(link);
	int r = l->box != NULL ? mem_proc_start(l->box, s, err)
			       : cube_fail(err, -EHOSTDOWN, "%s", l->why.text);

	link_unlock(l);
	return r;
}

static ptrdiff_t link_input(struct cube_link *link, uint64_t job, const void *data, size_t len)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);
	size_t room = p != NULL && p->in_open ? MEM_INPUT_WINDOW - p->in.len : 0;
	size_t n = len < room ? len : room;

	if (n > 0 && cube_buf_add(&p->in, data, n) < 0)
		n = 0;
	if (n > 0) {
		p->in_got += n;
		mem_kick(l->mem);
	}
	link_unlock(l);
	return (ptrdiff_t)n;
}

static void link_eof(struct cube_link *link, uint64_t job)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);

	if (p != NULL)
		p->in_open = false;
	mem_kick(l->mem);
	link_unlock(l);
}

static void link_kill(struct cube_link *link, uint64_t job, int sig)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);

	if (p != NULL)
		mem_proc_signal(p, sig);
	mem_kick(l->mem);
	link_unlock(l);
}

static void link_interrupt(struct cube_link *link, uint64_t job)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);

	if (p != NULL)
		mem_proc_interrupt(p);
	mem_kick(l->mem);
	link_unlock(l);
}

static void link_winsize(struct cube_link *link, uint64_t job, uint16_t rows, uint16_t cols)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);

	if (p != NULL && p->tty) {
		p->rows = rows;
		p->cols = cols;
	}
	link_unlock(l);
}

static void link_timeout(struct cube_link *link, uint64_t job, uint32_t seconds)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = link_proc(l, job);

	if (p != NULL)
		p->deadline = seconds != 0 ? cube_clock_mono() + seconds * NS_PER_S : 0;
	mem_kick(l->mem);
	link_unlock(l);
}

static void link_forget(struct cube_link *link, uint64_t job)
{
	struct mem_link *l = link_lock(link);
	struct mem_proc *p = l->box != NULL ? mem_proc_find(l->box, job) : NULL;

	if (p != NULL && p->ended)
		mem_proc_free(p);
	link_unlock(l);
}

static void session_close(struct mem_box *b, struct mem_session *s, bool reset)
{
	if (s->proc != NULL)
		mem_proc_end(s->proc, CUBE_END_KILLED, 128 + SIGKILL, SIGKILL);
	if (!reset) {
		mem_session_free(s);
		return;
	}
	mem_shell_renew(&s->shell);
	s->fresh = true;
	mem_tell_session(b, s, s->shell.changed);
}

static void link_session_close(struct cube_link *link, uint64_t session, bool reset)
{
	struct mem_link *l = link_lock(link);
	struct mem_session *s = l->box != NULL ? mem_box_session(l->box, session) : NULL;

	if (s != NULL)
		session_close(l->box, s, reset);
	link_unlock(l);
}

/* Shells are processes as well. */
static void kill_shells(struct mem_box *b)
{
	cube_list_each (i, &b->sessions) {
		struct mem_session *s = cube_list_entry(i, struct mem_session, link);

		mem_shell_renew(&s->shell);
		s->fresh = true;
		if (s->proc == NULL)
			mem_tell_session(b, s, s->shell.changed);
	}
}

static void link_kill_all(struct cube_link *link, int sig)
{
	struct mem_link *l = link_lock(link);

	if (l->box != NULL && mem_signal_action(sig) == MEM_SIG_END)
		kill_shells(l->box);
	if (l->box != NULL) {
		cube_list_each (i, &l->box->procs)
			mem_proc_signal(cube_list_entry(i, struct mem_proc, all), sig);
	}
	mem_kick(l->mem);
	link_unlock(l);
}

static void link_freeze(struct cube_link *link, bool on)
{
	struct mem_link *l = link_lock(link);

	if (l->box != NULL) {
		bool was_still = mem_box_still(l->box);

		l->box->frozen = on;
		mem_box_settle(l->box, was_still);
	}
	link_unlock(l);
}

/* A pause that this backend made itself is counted already (mem_box_settle). */
static void link_paused(struct cube_link *link, uint64_t ms)
{
	struct mem_link *l = link_lock(link);
	uint64_t known;

	if (l->box != NULL) {
		known = ms < l->box->credit_ms ? ms : l->box->credit_ms;
		l->box->credit_ms -= known;
		cube_list_each (i, &l->box->procs)
			mem_proc_shift(cube_list_entry(i, struct mem_proc, all), (ms - known) * NS_PER_MS,
				       true);
	}
	mem_kick(l->mem);
	link_unlock(l);
}

static int link_look(struct cube_link *link)
{
	struct mem_link *l = link_lock(link);

	if (l->box != NULL)
		mem_tell_left(l->box);
	link_unlock(l);
	return 0;
}

static void link_detach(struct mem_link *l)
{
	if (l->box != NULL && l->box->link == l)
		l->box->link = NULL;
	l->box = NULL;
}

void mem_link_free(struct mem_link *l)
{
	cube_free(l);
}

static void link_close(struct cube_link *link)
{
	struct mem_link *l = link_lock(link);
	struct mem *m = l->mem;

	link_detach(l);
	mem_events_drop(l);
	l->closed = true;
	if (!l->calling)
		mem_link_free(l);
	pthread_mutex_unlock(&m->lock);
}

static const struct cube_link_ops link_ops = {
	.start = link_start,
	.input = link_input,
	.eof = link_eof,
	.kill = link_kill,
	.interrupt = link_interrupt,
	.winsize = link_winsize,
	.timeout = link_timeout,
	.forget = link_forget,
	.session_close = link_session_close,
	.kill_all = link_kill_all,
	.freeze = link_freeze,
	.paused = link_paused,
	.look = link_look,
	.close = link_close,
};

/* ---- Making and breaking ---- */

void mem_link_break(struct mem_box *b, int code, const char *why)
{
	struct mem_link *l = b->link;

	if (l == NULL)
		return;
	link_detach(l);
	l->broken = true;
	(void)cube_fail(&l->why, code, "%s: %s", b->id, why);
	if (cube_list_empty(&l->ready))
		cube_list_push(&l->mem->ready, &l->ready);
	mem_kick(l->mem);
}

/* All that is known here, for who may have missed some of it. */
static void link_report(struct mem_box *b)
{
	mem_tell_up(b);
	cube_list_each (i, &b->procs) {
		struct mem_proc *p = cube_list_entry(i, struct mem_proc, all);
		struct mem_session *s = p->ended ? mem_box_session(b, p->session_number) : NULL;

		if (p->why.text[0] == '\0') {
			mem_tell_started(p);
			mem_tell_input(p);
		}
		if (p->out.total > 0)
			mem_tell_output(p);
		if (s != NULL)
			mem_tell_session(b, s, true);
		if (p->ended)
			mem_tell_ended(p);
	}
	mem_tell_synced(b);
}

static int link_usable(const struct mem_box *b, struct cube_cancel *cancel, struct cube_err *err)
{
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "%s: connecting was cancelled", b->id);
	if (b->state != CUBE_IS_RUNNING)
		return cube_fail(err, -EHOSTDOWN, "%s does not run: %s it first", b->id,
				 b->state == CUBE_IS_PAUSED ? "resume" : "start");
	return 0;
}

int mem_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
	     struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_link *l = cube_calloc(1, sizeof(*l));
	struct mem_box *box;
	int r;

	if (l == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_list_init(&l->ready);
	cube_list_init(&l->events);
	l->base.ops = &link_ops;
	l->mem = m;
	l->handler = handler;
	l->ctx = ctx;
	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	r = box != NULL ? link_usable(box, cancel, err) : -ENOENT;
	if (r == 0) {
		mem_link_break(box, -ECONNRESET, "another connection took the place of this one");
		l->box = box;
		box->link = l;
		*ret = &l->base;
		link_report(box);
	}
	pthread_mutex_unlock(&m->lock);
	if (r < 0)
		mem_link_free(l);
	return r;
}

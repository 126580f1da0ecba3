/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a command: from start to its end record, a step at a time. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/name.h"
#include "backends/mem/mem_priv.h"

#define STEPS_A_TURN 64
#define ESCALATE_NS  UINT64_C(2000000000) /* from INT to TERM, and from TERM to KILL */

struct mem_proc *mem_proc_find(const struct mem_box *b, uint64_t job)
{
	for (struct cube_list *i = b->procs.next; i != &b->procs; i = i->next) {
		struct mem_proc *p = cube_list_entry(i, struct mem_proc, all);

		if (p->job == job)
			return p;
	}
	return NULL;
}

/* ---- Output ---- */

void mem_proc_print(struct mem_proc *p, bool to_stderr, const void *data, size_t len)
{
	if (mem_out_write(&p->out, to_stderr, data, len) == 0 && len > 0)
		mem_tell_output(p);
}

void mem_proc_printf(struct mem_proc *p, bool to_stderr, const char *fmt, ...)
{
	struct cube_buf text = CUBE_BUF(2 * MEM_TEXT_MAX);
	va_list ap;

	va_start(ap, fmt);
	if (cube_buf_vprintf(&text, fmt, ap) == 0)
		mem_proc_print(p, to_stderr, text.data, text.len);
	va_end(ap);
	cube_buf_done(&text);
}

/* ---- The end ---- */

/* What only a living one needs. */
static void proc_release(struct mem_proc *p)
{
	mem_out_close(&p->out);
	mem_args_done(&p->args);
	mem_shell_done(&p->own);
	cube_buf_done(&p->in);
	cube_free(p->text);
	p->text = NULL;
	p->shell = NULL;
	p->word = NULL;
	p->eaten = 0;
}

void mem_proc_free(struct mem_proc *p)
{
	if (!p->ended)
		proc_release(p);
	cube_list_remove(&p->active);
	cube_list_remove(&p->all);
	cube_free(p);
}

static void proc_left(struct mem_box *b)
{
	uint64_t one = 1;

	b->n_active--;
	if (b->n_active == 0 && b->idle_fd >= 0)
		(void)!write(b->idle_fd, &one, sizeof(one));
}

void mem_proc_end(struct mem_proc *p, enum cube_end how, int code, int sig)
{
	struct mem_session *s = p->session;

	p->ended = true;
	p->end = (struct cube_end_record){
		.how = how,
		.code = code,
		.signal = sig,
		.total = p->out.total,
		.err_total = p->out.err_total,
		.wall_ns = cube_clock_wall(),
	};
	if (s != NULL) {
		s->proc = NULL;
		s->shell.status = code;
		mem_tell_session(p->box, s, s->shell.changed);
	}
	p->session = NULL;
	proc_release(p);
	cube_list_remove(&p->active);
	proc_left(p->box);
	mem_tell_ended(p);
}

/* ---- Signals ---- */

static void proc_deliver(struct mem_proc *p, int sig)
{
	bool ignored = (p->ignored & (UINT64_C(1) << sig)) != 0;

	switch (mem_signal_action(sig)) {
	case MEM_SIG_NOTHING:
		break;
	case MEM_SIG_CONTINUE:
		p->suspended = false;
		break;
	case MEM_SIG_STOP:
		p->suspended = p->suspended || !ignored || sig == SIGSTOP;
		break;
	case MEM_SIG_END:
		if (!ignored || sig == SIGKILL)
			mem_proc_end(p, CUBE_END_KILLED, 128 + sig, sig);
		break;
	}
}

void mem_proc_signal(struct mem_proc *p, int sig)
{
	if (p->ended || sig < 1 || sig > 31)
		return;
	if (mem_box_still(p->box))
		p->pending |= UINT64_C(1) << sig;
	else
		proc_deliver(p, sig);
}

static void proc_take_pending(struct mem_proc *p)
{
	while (!p->ended && p->pending != 0) {
		int sig = __builtin_ctzll(p->pending);

		p->pending &= ~(UINT64_C(1) << sig);
		proc_deliver(p, sig);
	}
}

void mem_proc_interrupt(struct mem_proc *p)
{
	if (p->ended || p->escalate_sig != 0)
		return;
	p->escalate_sig = SIGTERM;
	p->escalate_at = cube_clock_mono() + ESCALATE_NS;
	mem_proc_signal(p, SIGINT);
}

static void proc_escalate(struct mem_proc *p, uint64_t now)
{
	int sig = p->escalate_sig;

	if (p->escalate_at == 0 || now < p->escalate_at)
		return;
	p->escalate_sig = SIGKILL;
	p->escalate_at = now + ESCALATE_NS;
	proc_deliver(p, sig);
}

/* ---- Its turn ---- */

static void add_time(uint64_t *at, uint64_t ns)
{
	if (*at != 0)
		*at += ns;
}

void mem_proc_shift(struct mem_proc *p, uint64_t ns, bool deadline_only)
{
	add_time(&p->deadline, ns);
	if (deadline_only)
		return;
	add_time(&p->wake_at, ns);
	add_time(&p->escalate_at, ns);
}

uint64_t mem_proc_when(const struct mem_proc *p)
{
	const uint64_t times[] = {p->suspended ? 0 : p->wake_at, p->deadline, p->escalate_at};
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < CUBE_COUNT(times); i++) {
		if (times[i] != 0 && times[i] < first)
			first = times[i];
	}
	return first;
}

/* `NAME=VALUE` alone is an assignment. */
static bool proc_assign(struct mem_proc *p)
{
	const char *arg = p->args.v[0];
	const char *equals = strchr(arg, '=');
	size_t len = equals != NULL ? (size_t)(equals - arg) : 0;

	if (p->args.n != 1 || equals == NULL || !cube_name_env_ok(arg, len))
		return false;
	p->shell->status = mem_shell_set(p->shell, arg, len, equals + 1, false) < 0 ? 1 : 0;
	return true;
}

/* Looks the command up; what is no command is a message and a status. */
static void proc_find_word(struct mem_proc *p)
{
	const struct mem_word *word = mem_word_find(p->args.v[0]);
	unsigned n = p->args.n - 1;

	p->any = true;
	p->progress = 0;
	if (word == NULL && proc_assign(p))
		return;
	if (word == NULL) {
		mem_proc_printf(p, true, "mem: %s: no such word\n", p->args.v[0]);
		p->shell->status = 127;
	} else if (n < word->min || n > word->max) {
		mem_proc_printf(p, true, "mem: usage: %s %s\n", word->name, word->usage);
		p->shell->status = 2;
	} else {
		p->word = word;
	}
}

/* The next command of its text; false: it ended. */
static bool proc_next(struct mem_proc *p)
{
	struct cube_err err = {.code = 0};
	int r;

	mem_args_done(&p->args);
	r = p->argv ? 0 : mem_parse(p->text, p->len, &p->pos, p->shell, &p->args, &err);
	if (r > 0) {
		proc_find_word(p);
		return true;
	}
	if (r < 0)
		mem_proc_printf(p, true, "mem: %s\n", r == -EINVAL ? err.text : cube_errno_text(r));
	mem_proc_end(p, CUBE_END_EXIT, r < 0 ? 2 : p->any ? p->shell->status : 0, 0);
	return false;
}

static bool proc_steps(struct mem_proc *p)
{
	for (unsigned n = 0; n < STEPS_A_TURN; n++) {
		enum mem_step step;

		if (p->word == NULL) {
			if (!proc_next(p))
				return false;
			continue;
		}
		step = p->word->run(p);
		if (step == MEM_WAIT || step == MEM_OVER)
			return false;
		if (step == MEM_DONE)
			p->word = NULL;
	}
	return true;
}

bool mem_proc_run(struct mem_proc *p)
{
	uint64_t now = cube_clock_mono();

	proc_take_pending(p);
	if (!p->ended)
		proc_escalate(p, now);
	if (!p->ended && p->deadline != 0 && now >= p->deadline)
		mem_proc_end(p, CUBE_END_TIMEOUT, 124, 0);
	if (p->ended || p->suspended)
		return false;
	return proc_steps(p);
}

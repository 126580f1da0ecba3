/* SPDX-License-Identifier: Apache-2.0 */
/* The callers' side of backends/link.h: one place through which every implementation is reached. */
#include "backends/link.h"

#include <errno.h>

#include "backends/base/macros.h"

const char *cube_end_name(enum cube_end how)
{
	static const char *const names[] = {
		[CUBE_END_EXIT] = "exit", [CUBE_END_SIGNAL] = "signal", [CUBE_END_TIMEOUT] = "timeout",
		[CUBE_END_OOM] = "oom",   [CUBE_END_KILLED] = "killed", [CUBE_END_LOST] = "lost",
	};

	return (unsigned)how < CUBE_COUNT(names) ? names[how] : "lost";
}

int cube_link_start(struct cube_link *l, const struct cube_link_start *s, struct cube_err *err)
{
	if (s->out_fd < 0)
		return cube_fail(err, -EINVAL, "a job needs a file for its output");
	return l->ops->start(l, s, err);
}

ptrdiff_t cube_link_input(struct cube_link *l, uint64_t job, const void *data, size_t len)
{
	return l->ops->input(l, job, data, len);
}

void cube_link_eof(struct cube_link *l, uint64_t job)
{
	l->ops->eof(l, job);
}

void cube_link_kill(struct cube_link *l, uint64_t job, int sig)
{
	if (sig >= 1 && sig <= 64)
		l->ops->kill(l, job, sig);
}

void cube_link_interrupt(struct cube_link *l, uint64_t job)
{
	l->ops->interrupt(l, job);
}

void cube_link_winsize(struct cube_link *l, uint64_t job, uint16_t rows, uint16_t cols)
{
	l->ops->winsize(l, job, rows, cols);
}

void cube_link_timeout(struct cube_link *l, uint64_t job, uint32_t seconds)
{
	l->ops->timeout(l, job, seconds);
}

void cube_link_forget(struct cube_link *l, uint64_t job)
{
	l->ops->forget(l, job);
}

void cube_link_session_close(struct cube_link *l, uint64_t session, bool reset)
{
	l->ops->session_close(l, session, reset);
}

void cube_link_kill_all(struct cube_link *l, int sig)
{
	if (sig >= 1 && sig <= 64)
		l->ops->kill_all(l, sig);
}

void cube_link_freeze(struct cube_link *l, bool on)
{
	l->ops->freeze(l, on);
}

void cube_link_paused(struct cube_link *l, uint64_t ms)
{
	l->ops->paused(l, ms);
}

int cube_link_look(struct cube_link *l)
{
	return l->ops->look != NULL ? l->ops->look(l) : -EOPNOTSUPP;
}

void cube_link_deadline(struct cube_link *l, uint64_t ms, enum cube_link_end what)
{
	if (l->ops->deadline != NULL)
		l->ops->deadline(l, ms, what);
}

int cube_link_adopt(struct cube_link *l, uint64_t job, int out_fd, int order_fd, uint64_t total,
		    uint64_t err_total)
{
	return l->ops->adopt != NULL ? l->ops->adopt(l, job, out_fd, order_fd, total, err_total) : 0;
}

void cube_link_close(struct cube_link *l)
{
	if (l != NULL)
		l->ops->close(l);
}

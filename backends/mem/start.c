/* SPDX-License-Identifier: Apache-2.0 */
/* How a command begins: what is refused, what becomes a job that could not be started. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/mem/mem_priv.h"

#define CODE_CANNOT  126 /* as a shell says it: found, but it cannot be run */
#define CODE_UNKNOWN 127

/* ---- Refused: nothing has happened ---- */

static int start_capable(const struct mem_box *b, const struct cube_link_start *s, struct cube_err *err)
{
	int r = s->tty ? cube_backend_need(&b->mem->base, CUBE_CAP_TTY, err) : 0;

	if (r == 0 && s->user != NULL && s->user[0] != '\0')
		r = cube_backend_need(&b->mem->base, CUBE_CAP_USERS, err);
	return r;
}

static int start_check(const struct mem_box *b, const struct cube_link_start *s, struct cube_err *err)
{
	const struct mem_session *session = s->session != 0 ? mem_box_session(b, s->session) : NULL;

	if (s->text_len > MEM_TEXT_MAX || s->env_len > MEM_TEXT_MAX)
		return cube_fail(err, -EMSGSIZE, "a command and its environment may have 4 MiB each");
	if (!s->argv && memchr(s->text, '\0', s->text_len) != NULL)
		return cube_fail(err, -EINVAL, "a command cannot have a NUL in it");
	if (mem_proc_find(b, s->job) != NULL)
		return cube_fail(err, -EEXIST, "job %llu was started before", (unsigned long long)s->job);
	if (session != NULL && session->proc != NULL)
		return cube_fail(err, -EBUSY, "the session has a command that runs");
	return start_capable(b, s, err);
}

/* ---- Accepted: whatever goes wrong is the job's end ---- */

static void session_free_new(struct mem_proc *p)
{
	mem_session_free(p->session);
	p->session = NULL;
	p->shell = &p->own;
}

static struct mem_session *session_new(struct mem_box *b, uint64_t number)
{
	struct mem_session *s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->number = number;
	mem_shell_init(&s->shell);
	cube_list_push(&b->sessions, &s->link);
	return s;
}

/* 0, an exit code with p->why set, or -ENOMEM. */
static int start_in(struct mem_proc *p, const char *cwd)
{
	cube_auto_str normal = mem_tree_normal("/", cwd);
	cube_auto_fd fd = -1;

	if (normal == NULL)
		return -ENOMEM;
	fd = mem_tree_open(p->box, normal, O_PATH | O_DIRECTORY, 0);
	if (fd < 0) {
		(void)cube_fail(&p->why, fd, "cannot start in %s: %s", normal, cube_errno_text(fd));
		return CODE_CANNOT;
	}
	return mem_shell_cd(p->shell, normal);
}

static int start_as(struct mem_proc *p, const char *user, bool opens)
{
	int r;

	if (!opens) {
		p->uid = p->session->uid;
		p->gid = p->session->gid;
		return 0;
	}
	r = mem_user_parse(user != NULL ? user : "", &p->uid, &p->gid);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		(void)cube_fail(&p->why, -EINVAL, "there is no user '%s' in the sandbox", user);
		return CODE_CANNOT;
	}
	if (p->session != NULL) {
		p->session->uid = p->uid;
		p->session->gid = p->gid;
	}
	return 0;
}

static int start_argv(struct mem_proc *p)
{
	p->any = true;
	if (mem_args_split(&p->args, p->text, p->len) < 0)
		return -ENOMEM;
	p->word = p->args.n > 0 ? mem_word_find(p->args.v[0]) : NULL;
	if (p->word == NULL) {
		(void)cube_fail(&p->why, -ENOENT, "%s: no such word", p->args.n > 0 ? p->args.v[0] : "''");
		return CODE_UNKNOWN;
	}
	if (p->args.n - 1 < p->word->min || p->args.n - 1 > p->word->max) {
		(void)cube_fail(&p->why, -EINVAL, "usage: %s %s", p->word->name, p->word->usage);
		return 2;
	}
	return 0;
}

static int start_limit(struct mem_proc *p)
{
	uint32_t limit = p->box->limits.pids != 0 ? p->box->limits.pids : MEM_PROCS_DEFAULT;

	if (p->box->n_active < limit)
		return 0;
	(void)cube_fail(&p->why, -EAGAIN, "the sandbox runs %u processes, its limit", limit);
	return CODE_CANNOT;
}

static int start_setup(struct mem_proc *p, const struct cube_link_start *s, bool opens)
{
	const char *cwd = s->cwd != NULL ? s->cwd : opens ? "/workspace" : NULL;
	int r = start_limit(p);

	if (r == 0)
		r = start_as(p, s->user, opens);
	if (r == 0 && cwd != NULL)
		r = start_in(p, cwd);
	if (r == 0 && mem_shell_apply(p->shell, s->env, s->env_len) < 0)
		r = -ENOMEM;
	if (r == 0 && s->argv)
		r = start_argv(p);
	return r;
}

static struct mem_proc *proc_new(struct mem_box *b, const struct cube_link_start *s)
{
	struct mem_proc *p = cube_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	cube_list_init(&p->all);
	cube_list_init(&p->active);
	mem_shell_init(&p->own);
	cube_buf_init(&p->in, MEM_INPUT_WINDOW);
	p->box = b;
	p->job = s->job;
	p->argv = s->argv;
	p->session_number = s->session;
	p->in_open = s->in == CUBE_STDIN_PIPE;
	p->tty = s->tty;
	p->rows = s->rows;
	p->cols = s->cols;
	p->deadline = s->timeout_s != 0 ? cube_clock_mono() + s->timeout_s * UINT64_C(1000000000) : 0;
	p->len = s->text_len;
	p->out = (struct mem_out){.fd = -1, .order_fd = -1};
	p->text = cube_memdup(s->text_len > 0 ? s->text : "", s->text_len > 0 ? s->text_len : 1);
	if (p->text == NULL || mem_out_open(&p->out, s) < 0) {
		mem_proc_free(p);
		return NULL;
	}
	return p;
}

/* The shell that runs it; true: it is a new one. */
static bool start_shell(struct mem_proc *p)
{
	struct mem_session *s = p->session_number != 0 ? mem_box_session(p->box, p->session_number) : NULL;

	p->session = s;
	if (p->session_number == 0) {
		p->shell = &p->own;
		return true;
	}
	if (s == NULL)
		p->session = session_new(p->box, p->session_number);
	p->shell = p->session != NULL ? &p->session->shell : NULL;
	return s == NULL;
}

int mem_proc_start(struct mem_box *b, const struct cube_link_start *s, struct cube_err *err)
{
	int r = start_check(b, s, err);
	struct mem_proc *p = r == 0 ? proc_new(b, s) : NULL;
	bool opens = p != NULL && start_shell(p);

	if (r < 0)
		return r;
	if (p != NULL && p->shell != NULL)
		r = start_setup(p, s, opens);
	if (p == NULL || p->shell == NULL || r < 0) {
		if (p != NULL && p->session != NULL && opens)
			session_free_new(p);
		if (p != NULL)
			mem_proc_free(p);
		return cube_fail(err, -ENOMEM, "out of memory or descriptors for another job");
	}
	if (r > 0 && p->session != NULL && opens)
		session_free_new(p);
	p->pid = b->next_pid++;
	cube_list_push(&b->procs, &p->all);
	cube_list_push(&b->mem->active, &p->active);
	b->n_active++;
	if (p->session != NULL) {
		p->session->proc = p;
		p->session->fresh = false;
	}
	if (r > 0)
		mem_proc_end(p, CUBE_END_EXIT, r, 0);
	else
		mem_tell_started(p);
	mem_kick(b->mem);
	return 0;
}

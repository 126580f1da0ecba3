/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the command language: the shell's own, and what tests need to make things go wrong.
 *
 * A function gets its arguments in p->args.v[1] and so on, their number checked by the table. One that
 * waits is called again, from the start, whenever something may have changed; p->progress (0 at first)
 * is its memory. cubefs-mem.7 documents each of them, and a test compares. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "backends/mem/mem_priv.h"

#define MANY      4096  /* arguments */
#define CHUNK     65536 /* bytes of output a step */
#define NS_PER_MS UINT64_C(1000000)
#define AWAIT_MS  5 /* between two looks for a file */

/* ---- How a word ends ---- */

static enum mem_step done(struct mem_proc *p, int status)
{
	p->shell->status = status;
	return MEM_DONE;
}

/* "mem: WORD: ARG: reason", status 1. */
static enum mem_step complain(struct mem_proc *p, const char *arg, const char *reason)
{
	mem_proc_printf(p, true, "mem: %s: %s: %s\n", p->args.v[0], arg, reason);
	return done(p, 1);
}

/* Ends the process; in a session its shell ends with it. */
static enum mem_step over(struct mem_proc *p, enum cube_end how, int code, int sig)
{
	if (p->session != NULL) {
		mem_shell_renew(p->shell);
		p->session->fresh = true;
	}
	mem_proc_end(p, how, code, sig);
	return MEM_OVER;
}

/* ---- Output ---- */

/* The arguments from @first on with blanks between, and a newline. */
static void print_words(struct mem_proc *p, bool to_stderr, unsigned first)
{
	struct cube_buf line = CUBE_BUF(2 * MEM_TEXT_MAX);

	for (unsigned i = first; i < p->args.n; i++) {
		(void)cube_buf_adds(&line, p->args.v[i]);
		(void)cube_buf_addc(&line, i + 1 < p->args.n ? ' ' : '\n');
	}
	if (p->args.n <= first)
		(void)cube_buf_addc(&line, '\n');
	if (line.error == 0)
		mem_proc_print(p, to_stderr, line.data, line.len);
	cube_buf_done(&line);
}

static enum mem_step word_echo(struct mem_proc *p)
{
	print_words(p, false, 1);
	return done(p, 0);
}

static enum mem_step word_err(struct mem_proc *p)
{
	print_words(p, true, 1);
	return done(p, 0);
}

/* Byte n: lines of 63 characters from '0' on. */
static void fill_pattern(char *data, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++) {
		unsigned column = (unsigned)((at + i) % 64);

		data[i] = column == 63 ? '\n' : (char)('0' + column);
	}
}

static enum mem_step word_bytes(struct mem_proc *p)
{
	char data[CHUNK];
	uint64_t n, len;

	if (cube_num_size(p->args.v[1], &n) < 0)
		return complain(p, p->args.v[1], "not a size");
	len = n - p->progress < sizeof(data) ? n - p->progress : sizeof(data);
	fill_pattern(data, len, p->progress);
	mem_proc_print(p, false, data, len);
	p->progress += len;
	return p->progress < n ? MEM_AGAIN : done(p, 0);
}

/* ---- Files ---- */

/* A regular file below the shell's directory; descriptor or -errno. */
static int open_file(struct mem_proc *p, const char *path, int flags)
{
	cube_auto_str normal = mem_tree_normal(p->shell->cwd, path);
	cube_auto_fd fd = normal != NULL ? mem_tree_open(p->box, normal, flags | O_NONBLOCK, 0644) : -ENOMEM;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	return cube_steal_fd(&fd);
}

static enum mem_step cat_file(struct mem_proc *p)
{
	char data[CHUNK];
	cube_auto_fd fd = open_file(p, p->args.v[1], O_RDONLY);
	ssize_t n = fd < 0 ? fd : pread(fd, data, sizeof(data), (off_t)p->progress);

	if (n < 0)
		return complain(p, p->args.v[1], cube_errno_text(fd < 0 ? fd : errno));
	mem_proc_print(p, false, data, (size_t)n);
	p->progress += (uint64_t)n;
	return n > 0 ? MEM_AGAIN : done(p, 0);
}

static enum mem_step word_cat(struct mem_proc *p)
{
	if (p->args.n > 1)
		return cat_file(p);
	if (p->in.len > 0) {
		mem_proc_print(p, false, p->in.data, p->in.len);
		cube_buf_reset(&p->in);
		mem_tell_input(p);
		return MEM_AGAIN;
	}
	return p->in_open ? MEM_WAIT : done(p, 0);
}

static enum mem_step write_file(struct mem_proc *p, int flags)
{
	struct cube_buf line = CUBE_BUF(2 * MEM_TEXT_MAX);
	cube_auto_fd fd = open_file(p, p->args.v[1], O_WRONLY | O_CREAT | flags);
	ssize_t n;

	if (fd < 0)
		return complain(p, p->args.v[1], cube_errno_text(fd));
	for (unsigned i = 2; i < p->args.n; i++)
		(void)cube_buf_printf(&line, "%s%s", i > 2 ? " " : "", p->args.v[i]);
	(void)cube_buf_addc(&line, '\n');
	n = line.error != 0 ? -1 : write(fd, line.data, line.len);
	cube_buf_done(&line);
	if (n > 0)
		p->box->written += (uint64_t)n;
	return n < 0 ? complain(p, p->args.v[1], cube_errno_text(errno)) : done(p, 0);
}

static enum mem_step word_write(struct mem_proc *p)
{
	return write_file(p, O_TRUNC);
}

static enum mem_step word_append(struct mem_proc *p)
{
	return write_file(p, O_APPEND);
}

static enum mem_step word_rm(struct mem_proc *p)
{
	cube_auto_str normal = mem_tree_normal(p->shell->cwd, p->args.v[1]);
	int r = normal != NULL ? mem_tree_unlink(p->box, normal) : -ENOMEM;

	return r < 0 ? complain(p, p->args.v[1], cube_errno_text(r)) : done(p, 0);
}

/* ---- The shell ---- */

static enum mem_step word_cd(struct mem_proc *p)
{
	const char *home = mem_shell_get(p->shell, "HOME", 4);
	const char *to = p->args.n > 1 ? p->args.v[1] : home != NULL ? home : "/";
	cube_auto_str normal = mem_tree_normal(p->shell->cwd, to);
	cube_auto_fd fd = normal != NULL ? mem_tree_open(p->box, normal, O_PATH | O_DIRECTORY, 0) : -ENOMEM;

	if (fd < 0)
		return complain(p, to, cube_errno_text(fd));
	return mem_shell_cd(p->shell, normal) < 0 ? complain(p, to, cube_errno_text(-ENOMEM)) : done(p, 0);
}

static enum mem_step word_pwd(struct mem_proc *p)
{
	mem_proc_printf(p, false, "%s\n", p->shell->cwd);
	return done(p, 0);
}

static enum mem_step word_env(struct mem_proc *p)
{
	for (struct cube_list *i = p->shell->vars.next; i != &p->shell->vars; i = i->next) {
		const struct mem_var *v = cube_list_entry(i, struct mem_var, link);

		if (v->exported)
			mem_proc_printf(p, false, "%s=%s\n", v->name, v->value);
	}
	return done(p, 0);
}

static enum mem_step print_exports(struct mem_proc *p)
{
	struct cube_buf text = CUBE_BUF(2 * MEM_TEXT_MAX);

	if (mem_shell_exports(p->shell, &text) == 0)
		mem_proc_print(p, false, text.data, text.len);
	cube_buf_done(&text);
	return done(p, 0);
}

static enum mem_step word_export(struct mem_proc *p)
{
	if (p->args.n == 1)
		return print_exports(p);
	for (unsigned i = 1; i < p->args.n; i++) {
		const char *arg = p->args.v[i];
		size_t len = strcspn(arg, "=");

		if (!cube_name_env_ok(arg, len))
			return complain(p, arg, "not a name");
		if (mem_shell_set(p->shell, arg, len, arg[len] == '=' ? arg + len + 1 : NULL, true) < 0)
			return complain(p, arg, cube_errno_text(-ENOMEM));
	}
	return done(p, 0);
}

static enum mem_step word_unset(struct mem_proc *p)
{
	for (unsigned i = 1; i < p->args.n; i++)
		mem_shell_unset(p->shell, p->args.v[i]);
	return done(p, 0);
}

static enum mem_step word_true(struct mem_proc *p)
{
	return done(p, 0);
}

static enum mem_step word_false(struct mem_proc *p)
{
	return done(p, 1);
}

static enum mem_step word_exit(struct mem_proc *p)
{
	uint64_t code = (uint64_t)p->shell->status;

	if (p->args.n > 1 && cube_num_u64(p->args.v[1], UINT32_MAX, &code) < 0)
		return complain(p, p->args.v[1], "not a number");
	return over(p, CUBE_END_EXIT, (int)(code & 255), 0);
}

static enum mem_step word_id(struct mem_proc *p)
{
	const char *what = p->args.n > 1 ? p->args.v[1] : "";

	if (strcmp(what, "-u") == 0)
		mem_proc_printf(p, false, "%" PRIu32 "\n", p->uid);
	else if (strcmp(what, "-g") == 0)
		mem_proc_printf(p, false, "%" PRIu32 "\n", p->gid);
	else
		mem_proc_printf(p, false, "uid=%" PRIu32 " gid=%" PRIu32 "\n", p->uid, p->gid);
	return done(p, 0);
}

static enum mem_step word_hostname(struct mem_proc *p)
{
	mem_proc_printf(p, false, "%s\n", p->box->hostname);
	return done(p, 0);
}

static enum mem_step word_stty(struct mem_proc *p)
{
	if (strcmp(p->args.v[1], "size") != 0)
		return complain(p, p->args.v[1], "only size is known");
	if (!p->tty)
		return complain(p, "stdin", "not a terminal");
	mem_proc_printf(p, false, "%u %u\n", p->rows, p->cols);
	return done(p, 0);
}

/* ---- Time and signals ---- */

/* Whoever makes the file says when it goes on: so nothing that is tested depends on how long something takes. */
static enum mem_step word_await(struct mem_proc *p)
{
	cube_auto_fd fd = open_file(p, p->args.v[1], O_RDONLY);

	if (fd == -ENOENT) {
		p->wake_at = cube_clock_mono() + AWAIT_MS * NS_PER_MS;
		return MEM_WAIT;
	}
	p->wake_at = 0;
	return fd < 0 ? complain(p, p->args.v[1], cube_errno_text(fd)) : done(p, 0);
}

static enum mem_step word_sleep(struct mem_proc *p)
{
	uint64_t now = cube_clock_mono();
	uint64_t ms;

	if (cube_num_u64(p->args.v[1], UINT32_MAX, &ms) < 0)
		return complain(p, p->args.v[1], "not a number of milliseconds");
	if (p->progress == 0) {
		p->progress = 1;
		p->wake_at = now + ms * NS_PER_MS;
	}
	if (now < p->wake_at)
		return MEM_WAIT;
	p->wake_at = 0;
	return done(p, 0);
}

static enum mem_step word_hang(struct mem_proc *p)
{
	(void)p;
	return MEM_WAIT;
}

static enum mem_step word_kill(struct mem_proc *p)
{
	int sig = mem_signal_number(p->args.v[1]);
	bool ignored = (p->ignored & (UINT64_C(1) << sig)) != 0;

	if (sig == 0)
		return complain(p, p->args.v[1], "no such signal");
	if (p->progress != 0 || ignored)
		return done(p, 0);
	switch (mem_signal_action(sig)) {
	case MEM_SIG_END:
		return over(p, CUBE_END_SIGNAL, 128 + sig, sig);
	case MEM_SIG_STOP:
		p->progress = 1;
		p->suspended = true;
		return MEM_WAIT;
	case MEM_SIG_NOTHING:
	case MEM_SIG_CONTINUE:
		break;
	}
	return done(p, 0);
}

static enum mem_step word_ignore(struct mem_proc *p)
{
	for (unsigned i = 1; i < p->args.n; i++) {
		int sig = mem_signal_number(p->args.v[i]);

		if (sig == 0)
			return complain(p, p->args.v[i], "no such signal");
		p->ignored |= UINT64_C(1) << sig;
	}
	return done(p, 0);
}

/* ---- What goes wrong ---- */

/* The last of them goes: who had asked hears of it. */
static enum mem_step word_linger(struct mem_proc *p)
{
	uint64_t before = p->box->lingering, n;

	if (cube_num_u64(p->args.v[1], UINT32_MAX, &n) < 0)
		return complain(p, p->args.v[1], "not a number");
	p->box->lingering = n;
	if (before > 0 && n == 0)
		mem_tell_left(p->box);
	return done(p, 0);
}

static enum mem_step word_oom(struct mem_proc *p)
{
	p->box->oom_kills++;
	return over(p, CUBE_END_OOM, 137, 9);
}

static enum mem_step word_eat(struct mem_proc *p)
{
	uint64_t n;

	if (cube_num_size(p->args.v[1], &n) < 0 || n > UINT64_MAX / 4 || p->eaten > UINT64_MAX / 4)
		return complain(p, p->args.v[1], "not a size");
	p->eaten += n;
	if (p->box->limits.memory != 0 && mem_box_eaten(p->box) > p->box->limits.memory)
		return word_oom(p);
	return done(p, 0);
}

static enum mem_step word_drop(struct mem_proc *p)
{
	mem_link_break(p->box, -ECONNRESET, "the connection was dropped by a command");
	return done(p, 0);
}

static enum mem_step word_crash(struct mem_proc *p)
{
	p->box->crashing = true;
	return MEM_WAIT;
}

static const struct mem_word words[] = {
	{"append", 1, MANY, "FILE [WORD ...]", word_append},
	{"await", 1, 1, "FILE", word_await},
	{"bytes", 1, 1, "SIZE", word_bytes},
	{"cat", 0, 1, "[FILE]", word_cat},
	{"cd", 0, 1, "[DIR]", word_cd},
	{"crash", 0, 0, "", word_crash},
	{"drop", 0, 0, "", word_drop},
	{"eat", 1, 1, "SIZE", word_eat},
	{"echo", 0, MANY, "[WORD ...]", word_echo},
	{"env", 0, 0, "", word_env},
	{"err", 0, MANY, "[WORD ...]", word_err},
	{"exit", 0, 1, "[CODE]", word_exit},
	{"export", 0, MANY, "[NAME[=VALUE] ...]", word_export},
	{"false", 0, MANY, "", word_false},
	{"hang", 0, 0, "", word_hang},
	{"hostname", 0, 0, "", word_hostname},
	{"id", 0, 1, "[-u|-g]", word_id},
	{"ignore", 1, MANY, "SIGNAL ...", word_ignore},
	{"kill", 1, 1, "SIGNAL", word_kill},
	{"linger", 1, 1, "N", word_linger},
	{"oom", 0, 0, "", word_oom},
	{"pwd", 0, 0, "", word_pwd},
	{"rm", 1, 1, "FILE", word_rm},
	{"sleep", 1, 1, "MILLISECONDS", word_sleep},
	{"stty", 1, 1, "size", word_stty},
	{"true", 0, MANY, "", word_true},
	{"unset", 1, MANY, "NAME ...", word_unset},
	{"write", 1, MANY, "FILE [WORD ...]", word_write},
};

const struct mem_word *mem_word_at(size_t n)
{
	return n < CUBE_COUNT(words) ? &words[n] : NULL;
}

const struct mem_word *mem_word_find(const char *name)
{
	for (size_t i = 0; i < CUBE_COUNT(words); i++) {
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	}
	return NULL;
}

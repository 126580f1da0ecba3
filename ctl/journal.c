/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a sandbox's jobs: one JSON line a fact, appended with one write(2) and no fsync, so that
 * starting a command costs a microsecond here and a daemon that is killed at any instruction has lost nothing
 * that was promised.
 *
 *     {"job":7,...}              what is known before the end; a later line of the same job replaces it
 *     {"end":7,"how":"exit",...}
 *     {"gone":7}                 forgotten, with its output
 *     {"session":1,"cwd":"/x"}
 *     {"next":9}                 numbers below were used
 *
 * Written anew, without what is gone, at a load and when it has grown (journal_load.c reads it). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"

#define JOURNAL_COMPACT_AT ((uint64_t)1 << 20)

/* ---- Lines ---- */

static void journal_num(struct cube_buf *b, const char *key, uint64_t n)
{
	if (n != 0)
		cube_buf_printf(b, ",\"%s\":%llu", key, (unsigned long long)n);
}

static void journal_str(struct cube_buf *b, const char *key, const char *s)
{
	if (s == NULL)
		return;
	cube_buf_printf(b, ",\"%s\":", key);
	cube_bytes_quote(b, s, strlen(s));
}

static void journal_list(struct cube_buf *b, const char *key, const struct cube_buf *text)
{
	cube_buf_printf(b, ",\"%s\":[", key);
	for (size_t at = 0; at < text->len;) {
		size_t n = strnlen(text->data + at, text->len - at);

		if (at > 0)
			cube_buf_addc(b, ',');
		cube_bytes_quote(b, text->data + at, n);
		at += n + 1;
	}
	cube_buf_addc(b, ']');
}

static void journal_input(struct cube_job_own *own, struct cube_buf *b)
{
	journal_num(b, "in", own->j.in_mode);
	journal_num(b, "pipe", own->in_pipe);
	journal_num(b, "eof", own->in_eof);
}

static void journal_text(struct cube_job_own *own, struct cube_buf *b)
{
	journal_num(b, "file", own->text_on_disk);
	if (own->text == NULL)
		return;
	cube_buf_adds(b, ",\"text\":");
	cube_bytes_quote(b, own->text, own->text_len);
}

static void journal_job_line(struct cube_job *j, struct cube_buf *b)
{
	struct cube_job_own *own = cube_job_own(j);

	cube_buf_printf(b, "{\"job\":%llu", (unsigned long long)j->number);
	if (j->named)
		journal_str(b, "name", j->name);
	journal_num(b, "session", j->session != NULL ? j->session->number : 0);
	journal_num(b, "exec", j->of_exec);
	journal_num(b, "merge", j->merge);
	if (j->tty)
		cube_buf_printf(b, ",\"tty\":1,\"rows\":%u,\"cols\":%u", j->rows, j->cols);
	journal_num(b, "argv", j->argv);
	journal_str(b, "cwd", j->cwd);
	journal_str(b, "user", j->user);
	if (j->has_env)
		journal_list(b, "env", &j->env);
	journal_num(b, "timeout", j->timeout_s);
	journal_input(own, b);
	journal_num(b, "state", j->state == CUBE_JOB_ENDED ? CUBE_JOB_RUNNING : j->state);
	journal_num(b, "created", j->created_wall);
	journal_num(b, "started", j->started_wall);
	if (own->boot != 0) /* 64 bits are too many for a JSON number */
		cube_buf_printf(b, ",\"boot\":\"%llx\"", (unsigned long long)own->boot);
	if (own->slot != CUBE_NO_SLOT)
		journal_num(b, "slot", own->slot);
	journal_num(b, "order", own->has_order);
	journal_num(b, "limit", own->limit);
	journal_num(b, "dropped", own->spool_dropped);
	journal_text(own, b);
	cube_buf_adds(b, "}\n");
}

static void journal_end_line(struct cube_job *j, struct cube_buf *b)
{
	const struct cube_end_record *end = &j->end;

	cube_buf_printf(b, "{\"end\":%llu,\"how\":%d,\"code\":%d", (unsigned long long)j->number,
			(int)end->how, end->code);
	journal_num(b, "signal", (uint64_t)end->signal);
	journal_num(b, "total", end->total);
	journal_num(b, "err_total", end->err_total);
	journal_num(b, "at", end->wall_ns);
	journal_num(b, "finished", j->finished_wall);
	journal_num(b, "pid", (uint64_t)j->pid);
	if (j->why.text[0] != '\0') {
		journal_num(b, "errno", (uint64_t)-j->why.code);
		journal_str(b, "why", j->why.text);
	}
	cube_buf_adds(b, "}\n");
}

static void journal_session_line(struct cube_session *s, struct cube_buf *b)
{
	cube_buf_printf(b, "{\"session\":%llu", (unsigned long long)s->number);
	journal_str(b, "cwd", s->cwd);
	journal_num(b, "seen", s->env_seen);
	cube_buf_printf(b, ",\"boot\":\"%llx\"}\n", (unsigned long long)cube_session_own(s)->boot);
}

static bool journal_off(const struct cube_cube *c)
{
	return c->phase == CUBE_REMOVED || c->dir_fd < 0;
}

void cube_journal_job(struct cube_job *j)
{
	if (!journal_off(j->cube))
		journal_job_line(j, &cube_own(j->cube)->journal);
}

void cube_journal_end(struct cube_job *j)
{
	if (!journal_off(j->cube))
		journal_end_line(j, &cube_own(j->cube)->journal);
}

void cube_journal_gone(struct cube_job *j)
{
	if (!journal_off(j->cube))
		cube_buf_printf(&cube_own(j->cube)->journal, "{\"gone\":%llu}\n",
				(unsigned long long)j->number);
}

void cube_journal_session(struct cube_session *s)
{
	if (!journal_off(s->cube))
		journal_session_line(s, &cube_own(s->cube)->journal);
}

/* ---- The file ---- */

static int journal_open(struct cube_own *own)
{
	off_t end;

	if (own->journal_fd >= 0)
		return 0;
	own->journal_fd = openat(own->c.dir_fd, "journal",
				 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (own->journal_fd < 0)
		return -errno;
	end = lseek(own->journal_fd, 0, SEEK_END);
	own->journal_size = end > 0 ? (uint64_t)end : 0;
	return 0;
}

/* All of it or nothing: half a line would swallow the next one. */
static int journal_append(struct cube_own *own)
{
	ssize_t n = write(own->journal_fd, own->journal.data, own->journal.len);

	if (n == (ssize_t)own->journal.len) {
		own->journal_size += (uint64_t)n;
		cube_buf_reset(&own->journal);
		return 0;
	}
	int code = n < 0 ? -errno : -ENOSPC;
	if (n > 0)
		(void)!ftruncate(own->journal_fd, (off_t)own->journal_size);
	return code;
}

void cube_journal_rest(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	cube_close_auto(&own->journal_fd);
	own->journal_fd = -1;
}

int cube_journal_flush(struct cube_cube *c, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	int r;

	if (journal_off(c) || (own->journal.len == 0 && own->journal.error == 0))
		return 0;
	if (own->journal.error !=
	    0) { /* a line is missing for want of memory: all of them are written anew */
		r = cube_journal_compact(c, err);
		if (r == 0)
			cube_buf_reset(&own->journal);
		return r;
	}
	r = journal_open(own);
	if (r == 0)
		r = journal_append(own);
	if (r < 0)
		return cube_fail(err, r, "sandbox '%s': the journal of its jobs: %s", c->name,
				 cube_errno_text(r));
	if (own->journal_size > JOURNAL_COMPACT_AT && own->journal_size > 2 * own->journal_base &&
	    cube_journal_compact(c, NULL) < 0)
		own->journal_base = own->journal_size; /* tried again when it has doubled */
	return 0;
}

int cube_journal_compact(struct cube_cube *c, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	struct cube_buf all = CUBE_BUF((size_t)256 << 20);
	int r;

	cube_buf_printf(&all, "{\"next\":%llu}\n", (unsigned long long)c->next_job);
	cube_list_each (i, &c->sessions)
		journal_session_line(cube_list_entry(i, struct cube_session, link), &all);
	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		journal_job_line(j, &all);
		if (j->state == CUBE_JOB_ENDED && !cube_job_own(j)->unsettled)
			journal_end_line(j, &all);
	}
	r = all.error;
	if (r == 0)
		r = cube_state_replace(c->dir_fd, "journal", all.data, all.len);
	if (r == 0) {
		cube_journal_rest(c);
		own->journal_size = own->journal_base = all.len;
	}
	cube_buf_done(&all);
	return r < 0 ? cube_fail(err, r, "sandbox '%s': the journal of its jobs: %s", c->name,
				 cube_errno_text(r))
		     : 0;
}

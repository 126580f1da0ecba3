/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of jobs read back, line by line; a last line that was cut off is none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"

#define JOURNAL_MAX   ((size_t)1 << 30)
#define JOURNAL_STALE ((size_t)16) /* lines that say nothing any more before it is written anew */

static uint64_t line_num(const json_t *o, const char *key)
{
	return (uint64_t)cube_json_int(o, key, 0);
}

static uint64_t line_hex(const json_t *o, const char *key)
{
	return strtoull(cube_json_str(o, key, "0"), NULL, 16);
}

static struct cube_job *line_find(struct cube_cube *c, const json_t *o, uint64_t number)
{
	struct cube_job *j = cube_job_by_number(c, number);
	cube_auto_str name = NULL;

	if (j != NULL)
		return j;
	name = cube_bytes_dup(o, "name");
	if (name != NULL && (!cube_name_entry_ok(name) || cube_job_find(c, name) != NULL))
		return NULL;
	return cube_job_new(c, name, number, name != NULL);
}

static void line_text(struct cube_job_own *own, const json_t *o)
{
	struct cube_buf text = CUBE_BUF(CUBE_TEXT_INLINE);

	own->text_on_disk = line_num(o, "file") != 0;
	if (cube_bytes_read(json_object_get(o, "text"), &text) == 0) {
		cube_free(own->text);
		own->text = cube_buf_steal(&text, &own->text_len);
	}
	cube_buf_done(&text);
}

static void line_settings(struct cube_job *j, const json_t *o)
{
	struct cube_session *s = cube_session_by_number(j->cube, line_num(o, "session"));

	if (j->session == NULL && s != NULL)
		j->session = cube_session_ref(s);
	j->of_exec = line_num(o, "exec") != 0;
	j->merge = line_num(o, "merge") != 0;
	j->tty = line_num(o, "tty") != 0;
	j->rows = (uint16_t)line_num(o, "rows");
	j->cols = (uint16_t)line_num(o, "cols");
	j->argv = line_num(o, "argv") != 0;
	j->timeout_s = (uint32_t)line_num(o, "timeout");
	cube_free(j->cwd);
	cube_free(j->user);
	j->cwd = cube_bytes_dup(o, "cwd");
	j->user = cube_bytes_dup(o, "user");
	cube_buf_reset(&j->env);
	j->has_env = json_object_get(o, "env") != NULL &&
		     cube_bytes_read_list(json_object_get(o, "env"), &j->env) == 0;
}

static void line_spool(struct cube_job_own *own, const json_t *o)
{
	uint64_t slot = line_num(o, "slot");

	own->slot = slot != 0 && slot < CUBE_NO_SLOT ? (uint32_t)slot : CUBE_NO_SLOT;
	own->has_order = line_num(o, "order") != 0;
	own->limit = line_num(o, "limit");
	own->spool_dropped = line_num(o, "dropped") != 0;
	own->boot = line_hex(o, "boot");
	if (own->slot != CUBE_NO_SLOT && own->slot >= cube_own(own->j.cube)->next_slot)
		cube_own(own->j.cube)->next_slot = own->slot + 1;
}

static int line_job(struct cube_cube *c, const json_t *o)
{
	uint64_t number = line_num(o, "job");
	struct cube_job *j = number != 0 ? line_find(c, o, number) : NULL;
	uint64_t state = line_num(o, "state");

	if (j == NULL || state > CUBE_JOB_RUNNING)
		return -EINVAL;
	if (number >= c->next_job)
		c->next_job = number + 1;
	line_settings(j, o);
	line_spool(cube_job_own(j), o);
	line_text(cube_job_own(j), o);
	j->state = (enum cube_job_state)state;
	j->in_mode = (enum cube_job_stdin)line_num(o, "in");
	cube_job_own(j)->in_pipe = line_num(o, "pipe") != 0;
	cube_job_own(j)->in_eof = line_num(o, "eof") != 0;
	j->created_wall = line_num(o, "created");
	j->started_wall = line_num(o, "started");
	return 0;
}

static int line_end(struct cube_cube *c, const json_t *o)
{
	struct cube_job *j = cube_job_by_number(c, line_num(o, "end"));
	int64_t how = cube_json_int(o, "how", -1);

	if (j == NULL || how < CUBE_END_EXIT || how > CUBE_END_LOST)
		return -EINVAL;
	j->state = CUBE_JOB_ENDED;
	j->end = (struct cube_end_record){
		.how = (enum cube_end)how,
		.code = (int)cube_json_int(o, "code", -1),
		.signal = (int)cube_json_int(o, "signal", 0),
		.total = line_num(o, "total"),
		.err_total = line_num(o, "err_total"),
		.wall_ns = line_num(o, "at"),
	};
	j->total = j->end.total;
	j->err_total = j->end.err_total;
	j->finished_wall = line_num(o, "finished");
	j->pid = (int)line_num(o, "pid");
	j->why.code = -(int)line_num(o, "errno");
	(void)snprintf(j->why.text, sizeof(j->why.text), "%s", cube_json_str(o, "why", ""));
	return 0;
}

static int line_gone(struct cube_cube *c, const json_t *o)
{
	struct cube_job *j = cube_job_by_number(c, line_num(o, "gone"));

	if (j != NULL)
		cube_job_unlist(j);
	return 0;
}

static int line_session(struct cube_cube *c, const json_t *o)
{
	struct cube_session *s = cube_session_by_number(c, line_num(o, "session"));

	if (s == NULL)
		return 0; /* removed since */
	cube_free(s->cwd);
	s->cwd = cube_bytes_dup(o, "cwd");
	s->env_seen = line_num(o, "seen");
	cube_session_own(s)->boot = line_hex(o, "boot");
	s->open = cube_session_own(s)->boot != 0 && cube_session_own(s)->boot == cube_own(c)->boot;
	cube_env_text_unref(cube_steal(cube_session_own(s)->env_base));
	if (s->env_seen == c->env_version) /* an older one is not kept: then all of it counts as changed */
		cube_session_own(s)->env_base = cube_env_text_ref(cube_own(c)->env_text);
	return 0;
}

static int line_next(struct cube_cube *c, const json_t *o)
{
	if (line_num(o, "next") > c->next_job)
		c->next_job = line_num(o, "next");
	return 0;
}

static const struct {
	const char *key;
	int (*take)(struct cube_cube *c, const json_t *o);
} line_kinds[] = {
	{"job", line_job},   {"end", line_end},         {"gone", line_gone},
	{"next", line_next}, {"session", line_session}, /* behind "job", which has a session as well */
};

static int line_take(struct cube_cube *c, const char *line, size_t len)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	int r = cube_json_parse(line, len, "journal", &o, NULL);

	if (r < 0)
		return r;
	for (size_t i = 0; i < CUBE_COUNT(line_kinds); i++)
		if (json_object_get(o, line_kinds[i].key) != NULL)
			return line_kinds[i].take(c, o);
	return -EINVAL;
}

/* ---- After the last line ---- */

/* What `exec` shows: the latest to start, else the first that waits. */
static void journal_show(struct cube_job *j)
{
	struct cube_session *s = j->session;

	if (s != NULL && j->of_exec && (s->latest == NULL || j->started_wall != 0))
		cube_session_show(s, j);
}

static void journal_finish_job(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	if (j->state != CUBE_JOB_ENDED) {
		if (j->session != NULL && j->state != CUBE_JOB_NEW)
			cube_list_push(&j->session->queue, &j->in_session);
		cube_job_input_adopt(j);
	} else {
		own->unforgotten = true; /* it may be that the far side was not told */
		cube_job_ended_add(j);
	}
	if (j->state == CUBE_JOB_RUNNING)
		cube_output_reopen(j);
	cube_output_account(j);
	journal_show(j);
}

/* How many lines there are; SIZE_MAX where something is damaged or cut off. */
static size_t journal_lines(struct cube_cube *c, const char *text, size_t len)
{
	const char *end;
	size_t lines = 0;
	unsigned bad = 0;

	while ((end = memchr(text, '\n', len)) != NULL) {
		if (line_take(c, text, (size_t)(end - text)) < 0)
			bad++;
		lines++;
		len -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	if (bad > 0)
		cube_log(CUBE_LOG_WARNING, "ctl", "sandbox '%s': %u lines of its journal are damaged",
			 c->name, bad);
	return len > 0 || bad > 0 ? SIZE_MAX : lines;
}

/* How many lines say all that is known: below that and a few more it is not worth the writing. */
static size_t journal_needed(const struct cube_cube *c)
{
	size_t n = 1;

	cube_list_each (i, &c->sessions)
		n++;
	cube_list_each (i, &c->jobs)
		n += 2;
	return n;
}

int cube_journal_load(struct cube_cube *c, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(JOURNAL_MAX);
	size_t lines = 0;
	int r = cube_file_read(c->dir_fd, "journal", &text);

	if (r == -ENOENT) /* nothing was ever run */
		r = 0;
	if (r == 0)
		lines = journal_lines(c, cube_buf_str(&text), text.len);
	cube_buf_done(&text);
	if (r < 0)
		return cube_fail(err, r, "journal: %s", cube_errno_text(r));
	cube_list_each (i, &c->jobs)
		journal_finish_job(cube_list_entry(i, struct cube_job, link));
	cube_jobs_dir_clean(c);
	return lines > 2 * journal_needed(c) + JOURNAL_STALE ? cube_journal_compact(c, err) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `exec` of a sandbox and of a session: text in, a command run, its output out.
 *
 * Opened for writing: the text is run at the close of whoever opened it (collect.c), and that close waits for
 * the command. Opened for both it is a private conversation: the first read runs what was written. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "fs/tree/tree_priv.h"

static struct cube_session *exec_session(const struct cube_node *n)
{
	return n->obj->type == &cube_type_session ? n->obj->p : cube_session_main(n->obj->p);
}

static int exec_check(struct cube_req *r)
{
	struct cube_cube *c = r->n->obj->type->cube(r->n->obj->p);
	int code;

	if ((r->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	code = cube_cube_usable(c, true, &r->err);
	return code > 0 ? cube_req_wait(r, &c->changed) : code;
}

static int exec_write(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (memchr(r->data, '\0', r->size) != NULL)
		return cube_fail(&r->err, -EINVAL, "a command is text: there is a NUL in it");
	if (cube_kept_written(r))
		return (int)r->size;
	code = cube_collect_add(r, h, r->data, r->size);
	r->progress = code < 0 ? 0 : r->size;
	return code < 0 ? code : (int)r->size;
}

/* Hands over what was collected. */
static int exec_run(struct cube_handle *h, uint64_t unique, struct cube_job **ret, struct cube_err *err)
{
	struct cube_session *s = exec_session(h->node);
	int code;

	cube_kept_intent(h, unique, s->cube->next_job);
	code = cube_session_run(s, h->in.data, h->in.len, ret, err);
	if (code == 0)
		h->ran = (*ret)->number;
	else
		cube_kept_intent(h, 0, 0);
	cube_collect_drop(h);
	return code;
}

/* ---- write, then close ---- */

static int exec_wait(struct cube_req *r)
{
	struct cube_err err;

	if (r->job->state == CUBE_JOB_ENDED || r->job->forgotten)
		return 0;
	if (!r->late)
		return cube_req_wait(r, &r->job->changed);
	if (r->proc.exiting) {
		cube_fail(
			&err, -ETIMEDOUT,
			"the writer ended with '%s' open and was let go; job %s goes on: read its exit later",
			r->handle->node->entry->name, r->job->name);
		cube_tree_note(r->tree, r->n->obj, &r->caller, "close", &err);
	}
	return 0;
}

static void exec_call_off(struct cube_req *r, bool interrupted)
{
	if (interrupted)
		cube_job_interrupt(r->job);
}

/* How long the close waits at most, in seconds; 0: for ever. */
static uint32_t exec_patience(const struct cube_req *r, const struct cube_handle *h)
{
	uint32_t patience = exec_session(h->node)->patience_s;
	uint32_t exiting = r->tree->domain->exit_patience_s;

	if (r->proc.exiting && (patience == 0 || exiting < patience))
		return exiting;
	return patience;
}

static int exec_flush(struct cube_req *r, struct cube_handle *h)
{
	struct cube_job *started;
	uint32_t patience;
	int code;

	started = h->channel ? NULL : cube_kept_started(r);
	if (started == NULL && (h->channel || h->in.len == 0))
		return 0;
	code = started != NULL ? 1 : cube_collect_closes(r, h);
	if (code != 1)
		return code;
	if (started != NULL)
		r->job = cube_job_ref(started);
	else
		code = exec_run(h, r->unique, &r->job, &r->err);
	if (code < 0)
		return code;
	patience = exec_patience(r, h);
	if (patience > 0)
		cube_req_timeout(r, (uint64_t)patience * 1000);
	r->on_cancel = exec_call_off;
	r->step = exec_wait;
	return exec_wait(r);
}

static struct cube_cube *exec_cube(const struct cube_handle *h)
{
	return h->node->obj->type->cube(h->node->obj->p);
}

/* The last close. What is left runs with nobody waiting; a conversation's command is over with it. */
static void exec_release(struct cube_handle *h)
{
	struct cube_job *j = NULL;
	struct cube_err err;

	if (h->channel)
		cube_use_end(exec_cube(h));
	if (h->tree->closing)
		return; /* the daemon ends, commands go on */
	if (h->talks && h->job != NULL && h->job->state != CUBE_JOB_ENDED)
		cube_job_interrupt(h->job);
	if (h->in.len == 0)
		return;
	if (exec_run(h, 0, &j, &err) < 0)
		cube_tree_note(h->tree, h->node->obj, &h->by, "close exec", &err);
	else
		cube_job_unref(j);
}

/* ---- one descriptor for both ---- */

/* What the next read is about: what was written since the last end, or (nothing ever written) the latest
 * command. */
static int exec_begin(struct cube_handle *h, struct cube_err *err)
{
	struct cube_job *j = NULL;
	int code;

	if (h->job != NULL && !h->ended)
		return 0;
	if (h->in.len > 0) {
		code = exec_run(h, 0, &j, err);
		if (code < 0)
			return code;
		h->talks = true;
	} else if (!h->talks && !h->ended) {
		j = exec_session(h->node)->latest;
		if (j != NULL)
			cube_job_ref(j);
	}
	if (j == NULL)
		return 0;
	if (h->job != NULL)
		cube_job_unref(h->job);
	h->job = j;
	h->pos = 0;
	h->ended = false;
	return 0;
}

static int exec_read(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (!h->channel)
		return cube_class_output.read(r, h);
	if (h->busy)
		return cube_req_wait(r, &h->idle);
	code = exec_begin(h, &r->err);
	if (code < 0)
		return code;
	if (h->job == NULL || h->ended)
		return 0;
	return cube_output_follow(r, h);
}

/* Who polls for input is about to read. */
static unsigned exec_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	struct cube_err err;

	if (events & (POLLIN | POLLRDNORM)) {
		if (!h->busy && exec_begin(h, &err) < 0)
			return POLLIN | POLLOUT | POLLERR;
		if (h->job != NULL && !h->ended)
			return cube_class_output.poll(h, events, wait);
	}
	return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
}

static int exec_open(struct cube_req *r, struct cube_handle *h)
{
	if (!h->channel)
		return cube_class_output.open(r, h);
	cube_use_begin(exec_cube(h));
	return 0;
}

/* What was collected was run, and there was no time to say so. What was only about to be is forgotten: its number is
 * the next job's, whosever that will be. */
static bool exec_had_run(struct cube_handle *h)
{
	uint64_t number = atomic_load(&h->kept->intent);

	if (number != 0 && cube_job_by_number(exec_cube(h), number) == NULL) {
		cube_kept_intent(h, 0, 0);
		return false;
	}
	return h->in.len > 0 && number != 0 && number != h->ran;
}

static int exec_adopt(struct cube_handle *h)
{
	if (h->channel)
		cube_use_begin(exec_cube(h));
	if (exec_had_run(h)) {
		h->ran = atomic_load(&h->kept->intent);
		cube_collect_drop(h);
		if (h->channel) {
			cube_job_unref(h->job);
			h->job = cube_job_ref(cube_job_by_number(exec_cube(h), h->ran));
			h->pos = h->skip = 0;
			h->ended = false;
			h->talks = true;
		}
	}
	return h->channel ? 0 : cube_class_output.adopt(h);
}

static void exec_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	cube_class_output.stat(n, size, mtime);
}

const struct cube_class cube_class_exec = {
	.channel = true,
	.collects = true,
	.stat = exec_stat,
	.check = exec_check,
	.open = exec_open,
	.read = exec_read,
	.write = exec_write,
	.flush = exec_flush,
	.release = exec_release,
	.adopt = exec_adopt,
	.poll = exec_poll,
};

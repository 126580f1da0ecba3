/* SPDX-License-Identifier: Apache-2.0 */
/* `cmd` and `argv` of a job: one text, accepted at the close of whoever opened it, run in the background. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/tree/tree_priv.h"

static int command_check(struct cube_req *r)
{
	struct cube_job *j = r->n->obj->p;
	int code;

	if ((r->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	if (j->state != CUBE_JOB_NEW)
		return cube_fail(&r->err, -EBUSY, "job '%s' has a command already: a job runs once", j->name);
	code = cube_cube_usable(j->cube, true, &r->err);
	return code > 0 ? cube_req_wait(r, &j->cube->changed) : code;
}

static int command_write(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (!h->arg && memchr(r->data, '\0', r->size) != NULL)
		return cube_fail(&r->err, -EINVAL,
				 "a command is text: there is a NUL in it (argv takes them)");
	if (cube_kept_written(r))
		return (int)r->size;
	code = cube_collect_add(r, h, r->data, r->size);
	r->progress = code < 0 ? 0 : r->size;
	return code < 0 ? code : (int)r->size;
}

static int command_submit(struct cube_handle *h, struct cube_err *err)
{
	int code = cube_job_submit(h->node->obj->p, h->arg != 0, h->in.data, h->in.len, err);

	cube_collect_drop(h);
	return code;
}

static int command_flush(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (h->in.len == 0)
		return 0;
	code = cube_collect_closes(r, h);
	return code == 1 ? command_submit(h, &r->err) : code;
}

static void command_release(struct cube_handle *h)
{
	struct cube_err err;

	if (h->in.len > 0 && !h->tree->closing && command_submit(h, &err) < 0)
		cube_tree_note(h->tree, h->node->obj, &h->by, "close cmd", &err);
}

/* What was collected was accepted, and there was no time to say so. */
static int command_adopt(struct cube_handle *h)
{
	const struct cube_job *j = h->node->obj->p;

	if (j->state != CUBE_JOB_NEW)
		cube_collect_drop(h);
	return 0;
}

const struct cube_class cube_class_command = {
	.adopt = command_adopt,
	.collects = true,
	.check = command_check,
	.write = command_write,
	.flush = command_flush,
	.release = command_release,
};

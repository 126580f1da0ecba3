/* SPDX-License-Identifier: Apache-2.0 */
/* `stdin` of a job: bytes for its command. A write waits while the command has too much unread. */
#include <errno.h>
#include <fcntl.h>

#include "fs/tree/tree_priv.h"

static int stdin_check(struct cube_req *r)
{
	const struct cube_job *j = r->n->obj->p;

	if ((r->flags & O_ACCMODE) != O_RDONLY && j->state == CUBE_JOB_ENDED)
		return cube_fail(&r->err, -EPIPE, "job '%s' has ended", j->name);
	return 0;
}

static int stdin_open(struct cube_req *r, struct cube_handle *h)
{
	if (h->writes)
		cube_job_input_open(r->n->obj->p);
	return 0;
}

/* How much of it was taken before, by this worker or by the one before it, which was killed in the middle. */
static void stdin_begin(struct cube_req *r, struct cube_handle *h, struct cube_job *j)
{
	uint64_t total = cube_job_input_total(j), taken;

	if (r->progress > 0 || r->was_parked)
		return;
	if (r->again && h->last_unique != 0 && h->last_unique == r->unique && total >= h->pos) {
		taken = total - h->pos;
		r->progress = taken < r->size ? (size_t)taken : r->size;
		return;
	}
	h->pos = total;
	cube_kept_save(h, r);
}

static int stdin_write(struct cube_req *r, struct cube_handle *h)
{
	struct cube_job *j = h->node->obj->p;

	stdin_begin(r, h, j);
	while (r->progress < r->size) {
		ssize_t n = cube_job_input(j, r->data + r->progress, r->size - r->progress, &r->err);

		if (n < 0)
			return r->progress > 0 ? (int)r->progress : (int)n;
		if (n == 0)
			return cube_req_wait(r, &j->changed);
		r->progress += (size_t)n;
	}
	return (int)r->size;
}

static void stdin_release(struct cube_handle *h)
{
	if (h->writes)
		cube_job_input_close(h->node->obj->p);
}

static void stdin_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	*size = 0;
	*mtime = n->obj->type->born(n->obj->p);
}

static int stdin_adopt(struct cube_handle *h)
{
	if (h->writes)
		cube_job_input_open(h->node->obj->p);
	return 0;
}

const struct cube_class cube_class_stdin = {
	.adopt = stdin_adopt,
	.stat = stdin_stat,
	.check = stdin_check,
	.open = stdin_open,
	.write = stdin_write,
	.release = stdin_release,
};

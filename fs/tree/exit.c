/* SPDX-License-Identifier: Apache-2.0 */
/* `exit`: the code of a command; as a channel, once it has ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "ctl/show.h"
#include "fs/tree/tree_priv.h"

/* The job that it is about is the one of the first read. */
static void exit_begin(struct cube_handle *h)
{
	struct cube_job *j = h->job == NULL && h->text.len == 0 ? cube_output_job(h->node) : NULL;

	if (j != NULL)
		h->job = cube_job_ref(j);
}

static bool exit_known(const struct cube_handle *h)
{
	return h->text.len > 0 || h->job == NULL || h->job->state == CUBE_JOB_ENDED || h->job->forgotten;
}

static int exit_read(struct cube_req *r, struct cube_handle *h)
{
	int n;

	if (!h->channel)
		return cube_handle_give(r, &h->text, r->offset);
	exit_begin(h);
	if (!exit_known(h))
		return r->flags & O_NONBLOCK ? -EAGAIN : cube_req_wait(r, &h->job->changed);
	if (h->text.len == 0 && cube_show_job_exit(h->job, &h->text) < 0)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	n = cube_handle_give(r, &h->text, h->pos);
	h->pos += (uint64_t)n;
	return n;
}

static unsigned exit_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	(void)events;
	exit_begin(h);
	if (exit_known(h))
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	*wait = &h->job->changed;
	return POLLOUT | POLLWRNORM;
}

const struct cube_class cube_class_exit = {.channel = true, .read = exit_read, .poll = exit_poll};

/* SPDX-License-Identifier: Apache-2.0 */
/* `clone` of the root and of jobs/: opened for both it makes the thing, and a read gives its name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/words.h"
#include "fs/tree/tree_priv.h"

static int clone_cube(struct cube_req *r, struct cube_handle *h)
{
	char name[CUBE_NAME_MAX + 1];
	struct cube_cube *c;
	int code;

	cube_cube_fresh_name(r->tree->domain, name);
	cube_kept_making(h, name);
	code = cube_cube_create(r->tree->domain, &r->caller, name, NULL, 0, &c, &r->err);
	if (code < 0)
		return code;
	h->made = cube_cube_ref(c);
	return cube_buf_printf(&h->text, "%s\n", c->name);
}

static int clone_job(struct cube_req *r, struct cube_handle *h)
{
	struct cube_job *j;
	int code;

	cube_kept_intent(h, r->unique, ((struct cube_cube *)r->n->obj->p)->next_job);
	code = cube_job_create(r->n->obj->p, NULL, &j, &r->err);
	if (code < 0)
		return code;
	h->job = j;
	return cube_buf_printf(&h->text, "%s\n", j->name);
}

static int clone_open(struct cube_req *r, struct cube_handle *h)
{
	if (!h->channel)
		return 0;
	return r->n->obj->type == &cube_type_cube ? clone_job(r, h) : clone_cube(r, h);
}

/* ---- hold ---- */

/* What is in h->in: a verb line, of which there is one. */
static int clone_line(struct cube_req *r, struct cube_handle *h)
{
	size_t len = strcspn(cube_buf_str(&h->in), "\n");
	unsigned n = 0;
	char **words = NULL;
	int code = cube_words_split(cube_buf_str(&h->in), len, &words, &n, &r->err);

	cube_collect_drop(h);
	if (code == 0 && n == 1 && strcmp(words[0], "hold") == 0)
		code = cube_hold_take(&h->hold, h->made, &r->err);
	else if (code == 0 && n > 0)
		code = cube_fail(&r->err, -EINVAL,
				 "clone takes `hold` and nothing else: other verbs go into NAME/ctl");
	cube_free(words);
	return code;
}

static int clone_write(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (h->made == NULL)
		return cube_fail(&r->err, -EPERM, "'clone' takes no text here");
	code = cube_collect_add(r, h, r->data, r->size);
	if (code == 0 && memchr(h->in.data, '\n', h->in.len) != NULL)
		code = clone_line(r, h);
	return code < 0 ? code : (int)r->size;
}

static int clone_read(struct cube_req *r, struct cube_handle *h)
{
	int n = h->in.len > 0 ? clone_line(r, h) : 0;

	if (n < 0)
		return n;
	n = cube_handle_give(r, &h->text, h->channel ? h->pos : r->offset);
	if (h->channel)
		h->pos += (uint64_t)n;
	return n;
}

/* A job that got no command meanwhile has nothing to be kept for. */
static void clone_release(struct cube_handle *h)
{
	struct cube_err err;

	if (h->job != NULL && h->job->state == CUBE_JOB_NEW && !h->job->forgotten && !h->tree->closing)
		(void)cube_job_remove(h->job, &err);
}

/* The worker before has made it, or was about to: then the open comes again, and finds nothing here. */
static int clone_adopt(struct cube_handle *h)
{
	struct cube_obj *o = h->node->obj;
	uint64_t number = atomic_load(&h->kept->intent);

	if (!h->channel)
		return 0;
	if (o->type == &cube_type_cube) {
		if (h->job == NULL && number != 0 && (h->job = cube_job_by_number(o->p, number)) != NULL)
			cube_job_ref(h->job);
		return h->job == NULL ? -ENOENT : cube_buf_printf(&h->text, "%s\n", h->job->name);
	}
	h->made = cube_domain_find(h->tree->domain, h->kept->making);
	if (h->made == NULL)
		return -ENOENT;
	cube_cube_ref(h->made);
	return cube_buf_printf(&h->text, "%s\n", h->made->name);
}

const struct cube_class cube_class_clone = {
	.adopt = clone_adopt,
	.channel = true,
	.makes = true,
	.open = clone_open,
	.read = clone_read,
	.write = clone_write,
	.release = clone_release,
};

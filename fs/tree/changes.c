/* SPDX-License-Identifier: Apache-2.0 */
/* `changes`: made at each open, which is answered when the whole text is there; then a plain file. Its size, for who
 * only looks, is that of the latest. */
#include "ctl/changes.h"

#include "ctl/checkpoint.h"

#include <errno.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/tree/tree_priv.h"

static void changes_answered(void *ctx, int code, struct cube_changes_text *text, const struct cube_err *err)
{
	struct cube_req *r = ctx;

	r->on_cancel = NULL;
	r->changes = text;
	cube_req_unpark(r);
	if (code < 0) {
		r->err = *err;
		cube_req_finish(r, code);
		return;
	}
	cube_req_run(r);
}

static void changes_called_off(struct cube_req *r, bool interrupted)
{
	(void)interrupted;
	cube_changes_leave(cube_steal(r->state));
}

/* Of a sandbox that is not there (yet) nothing differs. */
static int changes_check(struct cube_req *r)
{
	struct cube_obj *o = r->n->obj;
	struct cube_cube *c = o->type->cube(o->p);
	const struct cube_checkpoint_entry *e = o->type == &cube_type_checkpoint ? o->p : NULL;
	const char *base = e != NULL && e->parent[0] != '\0' ? e->parent : NULL;
	struct cube_changes_ask *ask = NULL;
	int code;

	if (r->changes != NULL || c->id == NULL)
		return 0;
	code = cube_req_park(r);
	if (code == CUBE_PARK) {
		int refused = cube_changes_begin(c, e != NULL ? e->id : NULL, base, changes_answered, r, &ask,
						 &r->err);

		if (refused < 0) {
			cube_req_unpark(r);
			return refused;
		}
		r->state = ask;
		r->on_cancel = changes_called_off;
	}
	return code;
}

static int changes_open(struct cube_req *r, struct cube_handle *h)
{
	struct cube_text_mark *mark = &r->n->obj->texts[r->n->entry->slot];
	const struct cube_changes_text *t = h->changes = cube_steal(r->changes);
	uint64_t size = t != NULL ? t->size : 0, hash = t != NULL ? t->hash : 0;

	if (mark->changed == 0 || mark->hash != hash || mark->size != size)
		*mark = (struct cube_text_mark){.hash = hash, .size = size, .changed = cube_clock_wall()};
	return 0;
}

static void changes_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	const struct cube_text_mark *mark = &n->obj->texts[n->entry->slot];

	*size = mark->size;
	*mtime = mark->changed != 0 ? mark->changed : n->obj->type->born(n->obj->p);
}

/* No lock. */
static void changes_read_file(struct cube_req *r)
{
	ssize_t n = pread(r->handle->changes->fd, r->own, r->size, (off_t)r->offset);
	int code = n < 0 ? -errno : (int)n;

	cube_domain_enter(r->tree->domain);
	r->out = r->own;
	r->out_len = n > 0 ? (size_t)n : 0;
	cube_req_finish(r, code);
	cube_domain_leave(r->tree->domain);
}

static int changes_read(struct cube_req *r, struct cube_handle *h)
{
	const struct cube_changes_text *t = h->changes;

	if (t == NULL || r->offset >= t->size)
		return cube_handle_give(r, &h->text, 0);
	r->own = cube_malloc(r->size);
	if (r->own == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	return cube_req_unlock(r, changes_read_file);
}

const struct cube_class cube_class_changes = {
	.stat = changes_stat,
	.check = changes_check,
	.open = changes_open,
	.read = changes_read,
};

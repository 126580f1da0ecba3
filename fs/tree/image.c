/* SPDX-License-Identifier: Apache-2.0 */
/* `env`, `cwd`, `user` and the texts of templates: texts that are written as a whole. `>` begins with nothing, `>>` and plain writes
 * with what there is; the close of whoever opened it puts all of it in force, or nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/stock.h"
#include "ctl/template.h"
#include "fs/tree/tree_priv.h"

#define IMAGE_SHORT 4096 /* bytes that programs write at once */

/* ---- what they are about ---- */

static int image_job_fixed(const struct cube_job *j, struct cube_err *err)
{
	if (j->state == CUBE_JOB_NEW)
		return 0;
	return cube_fail(err, -EBUSY, "job '%s' has its command already", j->name);
}

static int image_session_begun(const struct cube_session *s, struct cube_err *err)
{
	if (!s->open && s->latest == NULL && cube_list_empty(&s->queue))
		return 0;
	return cube_fail(err, -EBUSY, "session '%s' has had a command: its user is fixed", s->name);
}

static int image_check(struct cube_req *r)
{
	const struct cube_obj *o = r->n->obj;

	if ((r->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	if (o->type == &cube_type_job)
		return image_job_fixed(o->p, &r->err);
	if (o->type == &cube_type_session && r->n->entry->arg == CUBE_IMAGE_USER)
		return image_session_begun(o->p, &r->err);
	return 0;
}

static int image_set_string(char **at, const char *value, struct cube_err *err)
{
	char *copy = value[0] == '\0' ? NULL : cube_strdup(value);

	if (value[0] != '\0' && copy == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_free(*at);
	*at = copy;
	return 0;
}

static int image_set_job(struct cube_job *j, int kind, const struct cube_buf *text, struct cube_err *err)
{
	if (kind == CUBE_IMAGE_CWD)
		return image_set_string(&j->cwd, cube_buf_str(text), err);
	if (kind == CUBE_IMAGE_USER)
		return image_set_string(&j->user, cube_buf_str(text), err);
	cube_buf_reset(&j->env);
	j->env.max = text->max;
	j->has_env = true;
	return cube_buf_add(&j->env, text->data, text->len) < 0 ? cube_fail(err, -ENOMEM, "out of memory")
								: 0;
}

static int image_store_job(struct cube_job *j, int kind, const struct cube_buf *text, struct cube_err *err)
{
	int code = image_job_fixed(j, err);

	if (code == 0)
		code = image_set_job(j, kind, text, err);
	return code < 0 ? code : cube_job_keep(j, err);
}

static int image_store_stock(struct cube_stock *p, int kind, const char *text, struct cube_err *err)
{
	return kind == CUBE_IMAGE_STOCK_SIZE ? cube_stock_set_size(p, text, err)
					     : cube_stock_set_template(p, text, err);
}

static int image_store(struct cube_obj *o, int kind, const struct cube_buf *text, struct cube_err *err)
{
	if (o->type == &cube_type_template)
		return cube_template_set_text(o->p, (enum cube_template_text)(kind - CUBE_IMAGE_TEMPLATE),
					      cube_buf_str(text), text->len, err);
	if (o->type == &cube_type_cube)
		return cube_cube_set_env(o->p, text->data, text->len, err);
	if (o->type == &cube_type_job)
		return image_store_job(o->p, kind, text, err);
	if (o->type == &cube_type_stock)
		return image_store_stock(o->p, kind, cube_buf_str(text), err);
	if (kind == CUBE_IMAGE_CWD)
		return cube_session_set_cwd(o->p, cube_buf_str(text), err);
	if (kind == CUBE_IMAGE_USER)
		return cube_session_set_user(o->p, cube_buf_str(text), err);
	return cube_session_set_env(o->p, text->data, text->len, err);
}

/* ---- what may be in them ---- */

/* One line; its newline is not part of it. */
static int image_word(const struct cube_handle *h, struct cube_buf *ret, struct cube_err *err)
{
	const char *name = h->node->entry->name;
	size_t len = h->in.len;

	if (len > 0 && h->in.data[len - 1] == '\n')
		len--;
	if (len > 0 && (memchr(h->in.data, '\n', len) != NULL || memchr(h->in.data, '\0', len) != NULL))
		return cube_fail(err, -EINVAL, "'%s' takes one line", name);
	if (h->arg == CUBE_IMAGE_CWD && len > 0 && h->in.data[0] != '/')
		return cube_fail(err, -EINVAL, "'%s' takes an absolute path", name);
	return cube_buf_add(ret, h->in.data, len) < 0 ? cube_fail(err, -ENOMEM, "out of memory") : 0;
}

/* A short write is taken for all of a line, so that it is refused itself and not the close, of which shells say
 * nothing. The end of a long line may still be under way. */
static int image_stock(const struct cube_handle *h, bool final, struct cube_buf *ret, struct cube_err *err)
{
	uint32_t min, max;
	int code = image_word(h, ret, err);

	if (code < 0 || (!final && h->in.len >= IMAGE_SHORT && h->in.data[h->in.len - 1] != '\n'))
		return code;
	if (h->arg == CUBE_IMAGE_STOCK_SIZE)
		return cube_stock_check_size(cube_buf_str(ret), &min, &max, err);
	return cube_stock_check_template(h->node->obj->p, cube_buf_str(ret), err);
}

/* The same of the last line of several. */
static int image_lines(const struct cube_handle *h, bool final, struct cube_buf *ret, struct cube_err *err)
{
	const char *text = h->in.len > 0 ? h->in.data : "";
	int code = cube_template_check_text(h->node->obj->p,
					    (enum cube_template_text)(h->arg - CUBE_IMAGE_TEMPLATE), text,
					    h->in.len, final || h->in.len < IMAGE_SHORT, err);

	if (code == 0 && cube_buf_add(ret, text, h->in.len) < 0)
		code = cube_fail(err, -ENOMEM, "out of memory");
	return code;
}

static int image_parse(const struct cube_handle *h, bool final, struct cube_buf *ret, struct cube_err *err)
{
	if (h->node->obj->type == &cube_type_stock)
		return image_stock(h, final, ret, err);
	if (h->arg >= CUBE_IMAGE_TEMPLATE)
		return image_lines(h, final, ret, err);
	if (h->arg != CUBE_IMAGE_ENV)
		return image_word(h, ret, err);
	return cube_env_parse(h->in.len > 0 ? h->in.data : "", h->in.len, final, ret, err);
}

/* ---- writing ---- */

static int image_open(struct cube_req *r, struct cube_handle *h)
{
	struct cube_buf text = CUBE_BUF(CUBE_COLLECT_ONE);
	int code = 0;

	if (!h->writes || h->truncated)
		return 0;
	code = h->node->entry->render(h->node->obj->p, &text);
	if (code == 0 && text.len > 0)
		code = cube_collect_add(r, h, text.data, text.len);
	cube_buf_done(&text);
	h->touched = false;
	h->owner_known = false;
	return code;
}

/* Bytes in the middle or behind the end, as pwrite would place them. */
static int image_place(struct cube_req *r, struct cube_handle *h, size_t at)
{
	size_t inside = at < h->in.len ? h->in.len - at : 0;
	int code;

	if (at > h->in.len)
		return cube_fail(&r->err, -EINVAL, "'%s' is text: it cannot have a hole",
				 h->node->entry->name);
	if (inside > r->size)
		inside = r->size;
	code = cube_collect_add(r, h, r->data + inside, r->size - inside);
	if (code == 0)
		memcpy(h->in.data + at, r->data, inside);
	return code;
}

static int image_write(struct cube_req *r, struct cube_handle *h)
{
	struct cube_buf parsed = CUBE_BUF(CUBE_COLLECT_ONE);
	size_t at = h->appends || r->offset > h->in.len ? h->in.len : (size_t)r->offset;
	int code;

	if (r->size == 0)
		return 0;
	code = image_place(r, h, at);
	if (code < 0)
		return code;
	h->touched = true;
	cube_kept_in(h, at, r->data, r->size);
	code = image_parse(h, false, &parsed, &r->err);
	cube_buf_done(&parsed);
	if (code < 0) {
		h->failed = true; /* all of it or none */
		return code;
	}
	return (int)r->size;
}

static int image_apply(struct cube_handle *h, struct cube_err *err)
{
	struct cube_buf parsed = CUBE_BUF(CUBE_COLLECT_ONE);
	int code = image_parse(h, true, &parsed, err);

	if (code == 0)
		code = image_store(h->node->obj, h->arg, &parsed, err);
	cube_buf_done(&parsed);
	h->touched = false;
	h->applied = true;
	return code;
}

static bool image_empty(const struct cube_handle *h)
{
	return h->truncated && !h->applied &&
	       (h->arg == CUBE_IMAGE_ENV || h->arg == CUBE_IMAGE_STOCK_TEMPLATE ||
		h->arg >= CUBE_IMAGE_TEMPLATE);
}

/* `: > env` is a new whole too: an empty one. A shell closes a copy before it writes, so the first close with
 * nothing written may yet be followed by the text. */
static bool image_emptied(struct cube_handle *h)
{
	return image_empty(h) && ++h->closes > 1;
}

static int image_flush(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (h->failed || (!h->touched && !h->truncated))
		return 0;
	code = cube_collect_closes(r, h);
	if (code != 1)
		return code;
	return h->touched || image_emptied(h) ? image_apply(h, &r->err) : 0;
}

static void image_release(struct cube_handle *h)
{
	struct cube_err err;
	bool empty = image_empty(h);

	if (h->failed || h->tree->closing || (!h->touched && !empty))
		return;
	if (image_apply(h, &err) < 0)
		cube_tree_note(h->tree, h->node->obj, &h->by, "close", &err);
}

static int image_resize(struct cube_req *r, struct cube_handle *h, uint64_t size)
{
	struct cube_buf kept = CUBE_BUF(CUBE_COLLECT_ONE);
	int code;

	if (!h->writes || size > h->in.len)
		return cube_fail(&r->err, -EINVAL, "'%s' is text: it cannot have a hole",
				 h->node->entry->name);
	code = cube_buf_add(&kept, h->in.data, (size_t)size);
	cube_collect_drop(h);
	if (code == 0)
		code = cube_collect_add(r, h, cube_buf_str(&kept), kept.len);
	cube_buf_done(&kept);
	h->touched = true;
	return code;
}

const struct cube_class cube_class_image = {
	.collects = true,
	.check = image_check,
	.open = image_open,
	.write = image_write,
	.flush = image_flush,
	.release = image_release,
	.resize = image_resize,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Txattrwalk, Txattrcreate: an extended attribute, or the list of them, becomes a file of its own. What was
 * written is set at the clunk (fid.c). */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

static struct p9_xattr *xattr_new(const struct cube_p9_str *name)
{
	struct p9_xattr *x = cube_calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	memcpy(x->name, name->s, name->len);
	cube_buf_init(&x->value, P9_XATTR_MAX);
	return x;
}

static void xattr_free(struct p9_xattr *x)
{
	cube_buf_done(&x->value);
	cube_free(x);
}

static int xattr_name(const struct p9_call *c, bool list)
{
	const struct cube_p9_str *s = &c->m.name;

	if (s->len > P9_NAME_MAX)
		return -ERANGE;
	if ((s->len == 0 && !list) || memchr(s->s, '\0', s->len) != NULL)
		return -EINVAL;
	return 0;
}

/* ---- reading ---- */

static int walk_add(struct p9_call *c, struct p9_xattr *x)
{
	struct p9_fid *f;
	int code;

	(void)pthread_mutex_lock(&c->conn->lock);
	c->place = cube_p9_place_ref(c->fid->place);
	(void)pthread_mutex_unlock(&c->conn->lock);
	code = cube_p9_fid_add(c, c->m.newfid, c->place, &f);
	if (code < 0)
		return code;
	c->place = NULL;
	c->reply.size = x->value.len;
	f->xattr = x;
	cube_p9_fid_open_end(c->conn, f, P9_XATTR_READ);
	cube_p9_fid_put(c->conn, f);
	return 0;
}

static void walk_got(struct p9_call *c, int code)
{
	struct p9_xattr *x = cube_steal(c->xattr);

	if (code >= 0)
		code = walk_add(c, x);
	if (code < 0)
		xattr_free(x);
	cube_p9_end(c, code);
}

static void walk_asked(struct p9_call *c, int result)
{
	walk_got(c, result);
}

static void walk_real(struct p9_call *c)
{
	struct p9_xattr *x = c->xattr;
	char *to = cube_malloc(P9_XATTR_MAX);
	ssize_t n = -ENOMEM;

	if (to != NULL && x->name[0] == '\0')
		n = cube_files_listxattr(c->conn->files, c->node, to, P9_XATTR_MAX);
	else if (to != NULL)
		n = cube_files_getxattr(c->conn->files, c->node, x->name, to, P9_XATTR_MAX);
	if (n >= 0)
		n = cube_buf_add(&x->value, to, (size_t)n);
	cube_free(to);
	walk_got(c, (int)n);
}

void cube_p9_op_xattrwalk(struct p9_call *c)
{
	int code = xattr_name(c, true);

	if (code == 0) {
		c->xattr = xattr_new(&c->m.name);
		code = c->xattr == NULL ? -ENOMEM : 0;
	}
	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	cube_p9_begin(c);
	c->r.name = c->m.name.len > 0 ? c->m.name.s : NULL;
	cube_p9_go(c, CUBE_REQ_XATTR, c->fid->place->id, walk_asked, walk_real);
}

/* ---- writing ---- */

void cube_p9_op_xattrcreate(struct p9_call *c)
{
	struct p9_fid *f = c->fid;
	int code = xattr_name(c, false);
	struct p9_xattr *x;

	if (code == 0 && c->m.size > P9_XATTR_MAX)
		code = -E2BIG;
	if (code == 0 && (c->m.flags & ~(CUBE_P9_XATTR_CREATE | CUBE_P9_XATTR_REPLACE)))
		code = -EINVAL;
	if (code == 0)
		code = cube_p9_fid_open_begin(c->conn, f);
	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	x = xattr_new(&c->m.name);
	if (x == NULL) {
		cube_p9_fid_open_end(c->conn, f, P9_WALKED);
		cube_p9_fail(c, -ENOMEM);
		return;
	}
	x->size = c->m.size;
	x->flags = (int)c->m.flags;
	f->xattr = x;
	cube_p9_fid_open_end(c->conn, f, P9_XATTR_WRITE);
	cube_p9_reply(c);
}

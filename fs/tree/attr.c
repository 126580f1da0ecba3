/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, access, extended attributes, links: what can be asked of a node without opening it. */
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fs/tree/tree_priv.h"

int cube_attr_get(struct cube_req *r)
{
	cube_node_attr(r->n, &r->entry);
	if (r->n->entry->files)
		return cube_attach_peek(r); /* the front end keeps the number of ours */
	/* Who has it open reads the text of the open. */
	if (r->handle != NULL && r->handle->class->stat == NULL && r->handle->reads && !r->handle->channel) {
		r->entry.st.st_size = (off_t)r->handle->text.len;
		r->entry.st.st_blocks = (r->entry.st.st_size + 511) / 512;
	}
	return 0;
}

static int attr_resize(struct cube_req *r)
{
	const struct cube_entry *e = r->n->entry;

	if (!(e->mode & S_IWUSR))
		return cube_fail(&r->err, -EACCES, "'%s' is read only", e->name);
	if (r->handle != NULL && r->handle->class->resize != NULL)
		return r->handle->class->resize(r, r->handle, (uint64_t)r->set_st->st_size);
	return 0; /* a control file has no length of its own */
}

int cube_attr_set(struct cube_req *r)
{
	int code = 0;

	if (r->n->entry->files) {
		cube_node_attr(r->n, &r->entry);
		return cube_attach_step(r);
	}
	if (r->set & (CUBE_SET_MODE | CUBE_SET_UID | CUBE_SET_GID))
		return cube_fail(&r->err, -EPERM, "'%s' has a fixed owner and mode",
				 r->n->entry->name[0] ? r->n->entry->name : r->n->obj->type->what);
	if (r->set & CUBE_SET_SIZE)
		code = attr_resize(r);
	if (code < 0)
		return code;
	cube_node_attr(r->n, &r->entry); /* times are accepted and mean nothing */
	return 0;
}

int cube_attr_access(struct cube_req *r)
{
	mode_t mode = r->n->entry->mode;

	if (r->n->entry->files)
		return cube_attach_peek(r);
	if ((r->flags & W_OK) && !(mode & S_IWUSR))
		return -EACCES;
	if ((r->flags & R_OK) && !(mode & S_IRUSR))
		return -EACCES;
	return (r->flags & X_OK) && !(mode & S_IXUSR) ? -EACCES : 0;
}

int cube_attr_statfs(struct cube_req *r)
{
	if (r->n->entry->files) {
		int code = cube_attach_peek(r);

		if (code == CUBE_REAL)
			return code;
	}
	return fstatvfs(r->tree->domain->state_fd, &r->vfs) < 0 ? -errno : 0;
}

/* Ours have none, and say so as a file system does that knows of none: the list is empty, and to ask for one is
 * refused. ls, which would ask for three of each entry, asks no more then. `files` without a root yet is a file
 * that has none just now. */
int cube_attr_xattr(struct cube_req *r)
{
	int code;

	if (!r->n->entry->files)
		return r->name == NULL ? 0 : -EOPNOTSUPP;
	code = r->set ? cube_attach_step(r) : cube_attach_peek(r);
	if (code != 0)
		return code;
	return r->name == NULL ? 0 : -ENODATA;
}

int cube_attr_readlink(struct cube_req *r)
{
	struct cube_buf text = CUBE_BUF(CUBE_RENDER_MAX);
	int code;

	if (!S_ISLNK(r->n->entry->mode))
		return -EINVAL;
	code = r->n->entry->render(r->n->obj->p, &text);
	r->own = code < 0 ? NULL : cube_buf_steal(&text, &r->out_len);
	cube_buf_done(&text);
	r->out = r->own;
	return r->own == NULL ? -ENOMEM : 0;
}

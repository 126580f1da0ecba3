/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is written in pieces, by one process or several, and means something when it is complete.
 *
 * Complete is it at a close. Which one is the matter here: shells close copies before they write anything,
 * and children that inherited the descriptor close theirs when they end. The close that counts is one by the
 * process (the thread group) that opened the file, and only if that process is not dying of a signal
 * half-way. */
#include <errno.h>

#include "fs/tree/tree_priv.h"

static void collect_count(struct cube_handle *h, size_t before)
{
	h->tree->collected += h->in.len;
	h->tree->collected -= before;
}

int cube_collect_add(struct cube_req *r, struct cube_handle *h, const char *data, size_t len)
{
	size_t before = h->in.len;
	int code;

	if (len > CUBE_COLLECT_ONE - before)
		return cube_fail(&r->err, -EFBIG, "'%s' takes at most %u MiB", h->node->entry->name,
				 CUBE_COLLECT_ONE >> 20);
	if (h->tree->collected + len > CUBE_COLLECT_MAX)
		return cube_fail(&r->err, -EBUSY,
				 "too much text waits to be completed: close other writers first");
	code = cube_buf_add(&h->in, data, len);
	collect_count(h, before);
	if (code < 0)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	cube_kept_in(h, before, data, len);
	h->touched = true;
	if (!h->owner_known) {
		h->owner_known = true;
		h->owner = r->lock_owner;
	}
	return 0;
}

void cube_collect_drop(struct cube_handle *h)
{
	size_t before = h->in.len;

	cube_buf_done(&h->in); /* a command of megabytes must not stay until the descriptor is closed */
	collect_count(h, before);
	h->touched = false;
}

static bool collect_by_opener(const struct cube_req *r, const struct cube_handle *h)
{
	if (h->tgid > 0 && r->proc.visible)
		return r->proc.tgid == h->tgid;
	return h->owner_known && h->owner == r->lock_owner;
}

int cube_collect_closes(struct cube_req *r, struct cube_handle *h)
{
	struct cube_err err;

	if (r->caller.client != 0)
		return 1; /* it says when it closes, once */
	if (!r->proc.known)
		return CUBE_PROC;
	if (!collect_by_opener(r, h))
		return 0;
	if (!r->proc.exiting || r->proc.exit_signal == 0)
		return 1;
	cube_fail(&err, -EINTR,
		  "the writer was killed before it closed '%s' (signal %d): what it had written is dropped",
		  h->node->entry->name, r->proc.exit_signal);
	cube_tree_note(r->tree, h->node->obj, &r->caller, "close", &err);
	cube_collect_drop(h);
	h->failed = true;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Does a front end's copy of a file's data outlive the open that it was made for?
 *
 * A change that moves the attributes is found by them, as that of any network's file. What moves nothing is a store to
 * a page that is mapped and dirty already: only somebody who runs inside can do that. So a copy holds from an open while
 * nothing runs to the next while the same nothing runs. */
#include "fs/files/files_priv.h"

/* Others than the sandbox change it, or other ways lead there. */
static bool pages_are_ours(const struct cube_fnode *n)
{
	return n->mount->watchable && !n->is_void && !atomic_load(&n->tree->detached) &&
	       !atomic_load(&n->tree->unkept);
}

/* The number first: what begins to run behind it has one more. */
static uint64_t pages_since(const struct cube_fnode *n)
{
	uint64_t runs = atomic_load(&n->tree->runs);

	if (n->mount->constant)
		return 1;
	return pages_are_ours(n) && atomic_load(&n->tree->quiet) ? runs + 1 : 0;
}

bool cube_files_holds_pages(struct cube_files_space *s, uint64_t id)
{
	cube_auto_fnode n = NULL;
	uint64_t since;

	if (cube_fnode_pin(s, id, &n) < 0)
		return false;
	since = pages_since(n);
	return atomic_exchange(&n->pages, since) == since && since != 0 && since == pages_since(n);
}

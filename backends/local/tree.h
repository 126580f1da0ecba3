/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of directory trees into a sandbox's range of ids: directories, files and links, never devices,
 * sockets, fifos, extended attributes or what is mounted below. */
#ifndef CUBEFS_BACKENDS_LOCAL_TREE_H
#define CUBEFS_BACKENDS_LOCAL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

struct cube_local_tree {
	const struct cube_ns_ids *ids;
	bool public_only;   /* only what everyone may read, all the way down; owned by the sandbox's root; no
			       setuid */
	bool keep_owners;   /* n of the source becomes n inside (where the range has it); else the sandbox's
			       root */
	uint64_t max_file;  /* larger files are left out; 0: none is */
	uint64_t max_total; /* -EFBIG above; 0: no bound */
	struct cube_cancel *cancel;
	void (*saw)(void *ctx, const void *data,
		    size_t len); /* all that was copied, in order, for a fingerprint; may be NULL */
	/* Opens beneath a directory of the source, no link followed where O_NOFOLLOW is set; NULL: with our own
	 * rights. */
	int (*open)(void *ctx, int dir, const char *path, int flags);
	void *ctx;

	uint64_t bytes, files; /* result: copied, links and directories too; start with 0 */
	uint64_t skipped;      /* devices, sockets, fifos, files too large */
};

/* Copies what is in the directory @from into the directory @to, which is there and has its owner and
 * mode. Entries are taken in the order of their names. */
int cube_local_tree_copy(struct cube_local_tree *t, int from, int to, struct cube_err *err);

#endif

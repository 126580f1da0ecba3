/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of objects (root.c, cube.c, job.c) share. */
#ifndef CUBEFS_FS_TREE_TYPE_H
#define CUBEFS_FS_TREE_TYPE_H

#include "backends/base/macros.h"
#include "fs/tree/tree_priv.h"

/* NAME_text: a text of ctl/show.h (or the like) as an entry's render. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses. */
#define CUBE_RENDER(name, type, call)                                                                        \
	static int name##_text(void *p, struct cube_buf *out)                                                \
	{                                                                                                    \
		type *o = p;                                                                                 \
                                                                                                             \
		return call;                                                                                 \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

#define CUBE_DIR_MODE   (S_IFDIR | 0755)
#define CUBE_READ_MODE  (S_IFREG | 0444)
#define CUBE_BOTH_MODE  (S_IFREG | 0644)
#define CUBE_WRITE_MODE (S_IFREG | 0200)

#define CUBE_LEVEL(list) .entries = (list), .count = CUBE_COUNT(list)

/* Directories of one object that another one's type refers to (cube_type.within). */
extern const struct cube_entry cube_entry_root, cube_entry_backends, cube_entry_templates, cube_entry_stocks,
	cube_entry_sessions, cube_entry_jobs, cube_entry_ports, cube_entry_volumes, cube_entry_checkpoints;

extern const struct cube_level cube_level_backends, cube_level_stocks, cube_level_ports, cube_level_volumes,
	cube_level_checkpoints;
#define CUBE_SLOT_PORTS_OPEN (CUBE_SLOTS - 1) /* of a sandbox; port.c */

#endif

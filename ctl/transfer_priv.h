/* SPDX-License-Identifier: Apache-2.0 */
/* How put and get copy: between transfer.c, which is under the lock, and transfer_run.c, transfer_tree.c and
 * transfer_unpack.c, which are not: threads of the pool. */
#ifndef CUBEFS_CTL_TRANSFER_PRIV_H
#define CUBEFS_CTL_TRANSFER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/cancel.h"
#include "ctl/caller.h"
#include "ctl/transfer.h"

/* What a copy leaves free on a disk, so that others find room: the larger of a size and a share. */
struct cube_copy_room {
	int fd; /* of the disk; borrowed */
	uint64_t reserve;
	uint32_t percent;
	uint64_t looked_bytes, looked_files; /* when it was last looked at */
};

struct cube_copying {
	const struct cube_caller *from, *to; /* whose rights are used on that side; NULL: the daemon's */
	bool own;                            /* everything belongs to @uid and @gid ... */
	uid_t uid;                           /* ... as this process sees ids; else to who makes it */
	gid_t gid;
	int mode;                    /* of files, -1: their own; directories get x where that has r */
	mode_t keep;                 /* bits of a mode that are kept */
	bool links_stay;             /* links that lead out of what is copied are left out */
	struct cube_copy_room *room; /* NULL: all that there is may be used up */
	struct cube_cancel *cancel;
	uint64_t files, bytes, skipped; /* result; start with 0 */
};

/* Copies what is in the directory @from into the empty directory @to, which nobody else knows: directories, files
 * with their holes, links. Devices, fifos, sockets, extended attributes and what is mounted below are left out. Each
 * step is one name beneath a descriptor, never through a link. */
int cube_copy_tree(struct cube_copying *c, int from, int to, struct cube_err *err);
/* The regular file @from, open for reading, as @name in @to. */
int cube_copy_file(struct cube_copying *c, int from, int to, const char *name);
/* Unpacks the archive @from (tar, also compressed; zip). -EINVAL: none, damaged, or with names that are absolute or
 * have "..", or that lie beyond a link. */
int cube_copy_archive(struct cube_copying *c, int from, int to, struct cube_err *err);

/* -ENOSPC: the rest of the disk is for others. -EINTR: called off. To be asked at each piece and entry. */
int cube_copy_go_on(struct cube_copying *c);
/* Owner, mode and time of what was just made; @fd is open on it. */
int cube_copy_finish(const struct cube_copying *c, int fd, bool dir, mode_t mode,
		     const struct timespec *mtime);
/* A new file of which nobody but us knows; its descriptor. */
int cube_copy_create(const struct cube_copying *c, int to, const char *name);
int cube_copy_mkdir(const struct cube_copying *c, int to, const char *name);
int cube_copy_symlink(struct cube_copying *c, int to, const char *name, const char *target, unsigned depth);

/* ---- One put or get ---- */

#define STAGE_NAME ".cubefs-" /* and 16 hexadecimal digits: what grows beside its place */

struct cube_transfer {
	struct cube_work work;
	struct cube_list link;  /* cube_own.transfers */
	struct cube_cube *cube; /* referenced */
	struct cube_caller by;
	struct cube_transfer_order order; /* strings owned */
	struct cube_cancel *cancel;
	struct cube_root root;
	struct cube_copying copying;
	struct cube_copy_room room; /* put: the disk that holds the state */
	char stage[sizeof(STAGE_NAME) + 16];
	char *note; /* put: the stage's path inside, as it is in the state */
	bool clean; /* only remove what @note names */
	int code;
	struct cube_err err;
};

/* transfer_run.c: 0, or t->err. */
int cube_transfer_put(struct cube_transfer *t);
int cube_transfer_get(struct cube_transfer *t);
int cube_transfer_clean(struct cube_transfer *t); /* removes what @note names */

#endif

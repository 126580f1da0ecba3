/* SPDX-License-Identifier: Apache-2.0 */
/* put and get: a directory, a file or an archive of this machine into a sandbox, and out of it, whole or not at
 * all. Under the domain lock; the work is done on threads of the pool, by the sandbox's directory descriptors, so
 * that every backend with native files has it, running or not.
 *
 * What is put grows beside its place under a name of ours and takes the place in one step; what was there is removed
 * then. The name is in the sandbox's state meanwhile: what a daemon that was killed left there is removed by the
 * next one. */
#ifndef CUBEFS_CTL_TRANSFER_H
#define CUBEFS_CTL_TRANSFER_H

#include "backends/base/json.h"
#include "ctl/caller.h"
#include "ctl/cube.h"

struct cube_transfer;

struct cube_transfer_order {
	bool get;
	const char *host, *path;   /* of this machine; inside */
	uint32_t uid, gid;         /* put: inside */
	int mode;                  /* put: of files; -1: their own */
	const char *const *remove; /* put: paths inside that go with it */
	size_t n_remove;
	/* Under the lock, exactly once. */
	void (*done)(void *ctx, int code, uint64_t files, uint64_t bytes, uint64_t skipped,
		     const struct cube_err *err);
	void *ctx;
};

/* Everything that can be refused is, with nothing changed; the order is copied. */
int cube_transfer_begin(struct cube_cube *c, const struct cube_caller *by,
			const struct cube_transfer_order *o, struct cube_transfer **ret,
			struct cube_err *err);
/* Who asked is gone: it is called off, and done does not come. */
void cube_transfer_leave(struct cube_transfer *t);
/* The sandbox goes, or the daemon ends: all of its are called off. */
void cube_transfers_cancel(struct cube_cube *c);
/* After a load: what was left half-way is removed, behind. */
void cube_transfers_clean(struct cube_cube *c);

json_t *cube_transfers_save(const struct cube_cube *c);
int cube_transfers_load(struct cube_cube *c, const json_t *list);
void cube_transfers_free(struct cube_cube *c);

#endif

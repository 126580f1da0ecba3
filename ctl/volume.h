/* SPDX-License-Identifier: Apache-2.0 */
/* A volume as `volumes/KEY` shows it: a directory of a backend that outlives sandboxes. Under the domain lock.
 *
 * It is told by its uid, at the backend too; the name is ours alone and may change while it is in use. It
 * belongs to one backend: the default one (mkdir), or that of the sandbox whose creation named it first. */
#ifndef CUBEFS_CTL_VOLUME_H
#define CUBEFS_CTL_VOLUME_H

#include "backends/backend.h"
#include "backends/base/name.h"
#include "ctl/alarm.h"
#include "ctl/domain.h"

enum cube_volume_phase {
	CUBE_VOLUME_MAKING, /* mkdir is under way: it has no name yet */
	CUBE_VOLUME_THERE,
	CUBE_VOLUME_FAILED,  /* mkdir failed; `failure` says why */
	CUBE_VOLUME_REMOVED, /* its name is free; being removed behind */
};

struct cube_volume_entry {
	unsigned refs;
	struct cube_list link; /* domain.volumes, or those that are being removed */
	struct cube_service *service;
	uint64_t seq;
	char uid[17];
	char name[CUBE_NAME_MAX + 1];
	enum cube_volume_phase phase;
	uint64_t created_wall;
	uint64_t size; /* bytes, as of the last look; UINT64_MAX: not known */
	struct cube_err failure;
	struct cube_waitq changed;
	struct cube_alarm again; /* the removal is tried again */
	bool removing;           /* the backend is at it */
	unsigned tries;
	void *tree_data;
};

struct cube_volume_entry *cube_volume_ref(struct cube_volume_entry *v);
void cube_volume_unref(struct cube_volume_entry *v);
/* Those that are there; NULL: none. */
struct cube_volume_entry *cube_volume_find(struct cube_domain *d, const char *name);
struct cube_volume_entry *cube_volume_next(struct cube_domain *d, uint64_t seq);

/* mkdir. Accepts it (on disk on return) and makes it behind; then, in phase THERE or FAILED, `changed` is
 * woken. *ret: one reference. -EEXIST, -EINVAL the name, -EOPNOTSUPP; -EBUSY: the same is being made, wait on
 * (*ret)->changed. */
int cube_volume_create(struct cube_domain *d, const char *name, struct cube_volume_entry **ret,
		       struct cube_err *err);
/* rmdir: the name is free on return. -EBUSY with the names of the sandboxes that have it. */
int cube_volume_remove(struct cube_volume_entry *v, struct cube_err *err);
/* mv, also while it is in use. -EEXIST, -EINVAL. */
int cube_volume_rename(struct cube_volume_entry *v, const char *name, struct cube_err *err);

/* Its files: cube_backend_volume_root on the pool; as cube_cube_root_async. */
int cube_volume_root_async(struct cube_volume_entry *v,
			   void (*done)(void *ctx, int code, struct cube_root *root,
					const struct cube_err *err),
			   void *ctx);
/* Somebody looks at it: sizes are asked for behind. */
void cube_volume_look(struct cube_volume_entry *v);

/* Does anything run (cube_use_runs) in a sandbox that has it? */
bool cube_volume_runs(struct cube_volume_entry *v);

/* Calls @each for the sandboxes that have it, those that pools keep among them. */
void cube_volume_users(struct cube_volume_entry *v, void (*each)(void *ctx, struct cube_cube *c), void *ctx);

#endif

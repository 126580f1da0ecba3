/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint as `checkpoints/NAME` shows it: one state of a sandbox's files, kept by its backend under an id that
 * is ours and is never used again. Under the domain lock.
 *
 * It is on disk, in the sandbox's state, as an intention before the backend is told and as a fact after. What a daemon
 * that was killed left half made is removed by the next one; what is being removed goes on being removed. Volumes and
 * binds are no part of it. One without a name (a fork's) is shown to nobody and goes when its last user is done. */
#ifndef CUBEFS_CTL_CHECKPOINT_H
#define CUBEFS_CTL_CHECKPOINT_H

#include "ctl/alarm.h"
#include "ctl/cube.h"

enum cube_checkpoint_phase {
	CUBE_CHECKPOINT_TAKING, /* has no name yet for who looks */
	CUBE_CHECKPOINT_THERE,
	CUBE_CHECKPOINT_FAILED,  /* `failure` says why; nothing is left of it */
	CUBE_CHECKPOINT_REMOVED, /* its name is free; being removed behind */
};

struct cube_checkpoint_entry {
	unsigned refs;
	struct cube_list link;  /* cube.checkpoints, or those of it that go */
	struct cube_cube *cube; /* borrowed; NULL: it is no more */
	uint64_t seq;
	char id[17];
	char *name; /* NULL: of a fork */
	enum cube_checkpoint_phase phase;
	char *template;          /* of its files; NULL: the backend's default one */
	char parent[17];         /* the checkpoint that the files came from, "": none */
	struct cube_map *labels; /* name -> char * */
	uint64_t created_wall;
	uint64_t size;       /* bytes of its own, as of the last look; UINT64_MAX: not known */
	bool no_files;       /* of a fork that needs volumes alone */
	char (*volumes)[17]; /* uids of those in it; NULL: none */
	unsigned n_volumes;
	unsigned uses;  /* restores and creations from it that are under way */
	bool unwanted;  /* who asked for it gave up */
	bool recovered; /* of an earlier daemon, and the backend was not asked yet */
	struct cube_err failure;
	struct cube_waitq changed; /* phase */
	struct cube_life_call call;
	struct cube_alarm again; /* the removal is tried again */
	unsigned tries;
	void *tree_data;
};

struct cube_checkpoint_entry *cube_checkpoint_ref(struct cube_checkpoint_entry *e);
void cube_checkpoint_unref(struct cube_checkpoint_entry *e);
/* Those that are there and have a name; NULL: none. */
struct cube_checkpoint_entry *cube_checkpoint_find(struct cube_cube *c, const char *name);
struct cube_checkpoint_entry *cube_checkpoint_next(struct cube_cube *c, uint64_t seq);
/* "CHECKPOINT" of @c (may be NULL), or "SANDBOX/CHECKPOINT": -ENOENT, -EINVAL. */
int cube_checkpoint_named(struct cube_domain *d, struct cube_cube *c, const char *text,
			  struct cube_checkpoint_entry **ret, struct cube_err *err);

/* Takes one (@name NULL: without a name) behind; then, in phase THERE or FAILED, `changed` is woken. *ret: one
 * reference. -EINVAL the name, -EEXIST, -EBUSY another operation is under way, -EHOSTDOWN, -EOPNOTSUPP. */
int cube_checkpoint_take(struct cube_cube *c, const char *name, struct cube_checkpoint_entry **ret,
			 struct cube_err *err);
/* One without a name, for a fork: with the sandbox's own files or (@files false) without, and with the volumes that it
 * may write to. */
int cube_checkpoint_take_fork(struct cube_cube *c, bool files, struct cube_checkpoint_entry **ret,
			      struct cube_err *err);
/* Who asked for it gives up: it is called off, and if it is too late for that it is removed. */
void cube_checkpoint_leave(struct cube_checkpoint_entry *e);
/* The name is free on return. -EBUSY: a restore or a creation uses it. */
int cube_checkpoint_remove(struct cube_checkpoint_entry *e, struct cube_err *err);
/* -EEXIST, -EINVAL. */
int cube_checkpoint_rename(struct cube_checkpoint_entry *e, const char *name, struct cube_err *err);
/* `set label.NAME=VALUE`; an empty value takes it away. */
int cube_checkpoint_label(struct cube_checkpoint_entry *e, const char *name, const char *value,
			  struct cube_err *err);
/* Somebody uses it, and is done: one that nobody wants any more goes then. */
void cube_checkpoint_pin(struct cube_checkpoint_entry *e);
void cube_checkpoint_unpin(struct cube_checkpoint_entry *e);
/* The one who had it taken is done: unpin, and one without a name is wanted by nobody then. NULL is harmless. */
void cube_checkpoint_let_go(struct cube_checkpoint_entry *e);

/* memory=yes where @s is asked for it: -EOPNOTSUPP with the reason. */
int cube_checkpoint_memory(const struct cube_service *s, struct cube_err *err);

/* Its files: as cube_cube_root_async. */
int cube_checkpoint_root_async(struct cube_checkpoint_entry *e,
			       void (*done)(void *ctx, int code, struct cube_root *root,
					    const struct cube_err *err),
			       void *ctx);
/* Somebody looks at it: sizes are asked for behind. */
void cube_checkpoint_look(struct cube_checkpoint_entry *e);

/* Of the domain, by its id; NULL: none of that id has a name (any more). */
const struct cube_checkpoint_entry *cube_checkpoint_by_id(const struct cube_domain *d, const char *id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints within ctl: between the objects (checkpoint.c), what is on disk (checkpoint_state.c) and the work at
 * backends (checkpoint_work.c). Under the domain lock. */
#ifndef CUBEFS_CTL_CHECKPOINT_PRIV_H
#define CUBEFS_CTL_CHECKPOINT_PRIV_H

#include "backends/base/json.h"
#include "ctl/checkpoint.h"

/* checkpoint.c */
void cube_checkpoints_init(struct cube_cube *c);
void cube_checkpoints_free(struct cube_cube *c);
/* In the list of @c, phase TAKING; the list's reference. NULL: memory. */
struct cube_checkpoint_entry *cube_checkpoint_new(struct cube_cube *c, const char *name);
/* Nothing of it is left: the list's reference ends. */
void cube_checkpoint_forget(struct cube_checkpoint_entry *e);
/* It goes: from the list of those that are there to that of those that are removed; nothing is on disk yet. */
void cube_checkpoint_go(struct cube_checkpoint_entry *e, enum cube_checkpoint_phase phase);
/* The files of @c are those of @e now. */
int cube_checkpoint_restored(struct cube_cube *c, const struct cube_checkpoint_entry *e);

/* checkpoint_state.c */
json_t *cube_checkpoints_save(struct cube_cube *c);
int cube_checkpoints_load(struct cube_cube *c, const json_t *list);

/* checkpoint_work.c */
void cube_checkpoint_work_remove(struct cube_checkpoint_entry *e); /* until the backend has done it */
void cube_checkpoints_resume(struct cube_cube *c);                 /* after a load: removals go on */
/* What backends have and nobody here knows is removed; what they lost is dropped, with a note. */
void cube_checkpoints_compare(struct cube_domain *d);
/* For the destruction of @c: all their ids, an array to be freed; NULL: memory, or *ret_n is 0. */
char (*cube_checkpoints_ids(struct cube_cube *c, size_t *ret_n))[17];

#endif

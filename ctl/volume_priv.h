/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes within ctl: between the objects (volume.c), the work at backends (volume_work.c) and the sandboxes
 * that have them (volume_use.c). Under the domain lock. */
#ifndef CUBEFS_CTL_VOLUME_PRIV_H
#define CUBEFS_CTL_VOLUME_PRIV_H

#include "backends/base/json.h"
#include "ctl/cube.h"
#include "ctl/volume.h"

struct cube_checkpoint_entry;
struct cube_spec_parts;

/* ---- volume.c ---- */

int cube_volume_check_name(const char *name, struct cube_err *err);
bool cube_volume_known(struct cube_domain *d, const char *uid);
bool cube_volume_taken(struct cube_domain *d, const char *name); /* there, or being made */
/* Can a sandbox of this backend have the volume @name, which may be missing? -EINVAL. */
int cube_volume_check(struct cube_service *s, const char *name, struct cube_err *err);
int cube_volume_save(struct cube_volume_entry *v, struct cube_err *err); /* what it is called, on disk */
/* The one of that name, accepted where it is missing (result 1), to be saved and made by who needs it; one
 * reference. */
int cube_volume_for(struct cube_service *s, const char *name, struct cube_volume_entry **ret,
		    struct cube_err *err);
/* The one with that uid, of which a sandbox knows; one reference, NULL: memory. */
struct cube_volume_entry *cube_volume_again(struct cube_service *s, const char *uid);
void cube_volume_delist(struct cube_volume_entry *v);          /* the list's reference ends */
void cube_volume_sync(struct cube_domain *d, const char *uid); /* no lock: what was saved is on the medium */
void cube_volume_unsave(const struct cube_volume_entry *v);
int cube_volumes_load(struct cube_domain *d, struct cube_err *err);
void cube_volumes_start(struct cube_domain *d); /* removals that were cut off go on */
void cube_volumes_close(struct cube_domain *d);

/* ---- volume_work.c ---- */

void cube_volume_work_make(struct cube_volume_entry *v);   /* of mkdir: sets the phase */
void cube_volume_work_remove(struct cube_volume_entry *v); /* until the backend has done it */

/* ---- volume_use.c: the volumes of a sandbox ---- */

/* It is made as another volume was when a checkpoint was taken; "": it is not. */
struct cube_use_copy {
	char cp[17], of[17];
};

struct cube_volume_use {
	struct cube_volume_entry *volume; /* referenced; NULL: not accepted yet */
	char *name;                       /* as it was asked for */
	char *path;                       /* inside */
	bool read_only;
	bool fresh; /* accepted for this sandbox: goes with a creation that fails */
	struct cube_use_copy copy;
};

/* `volume=KEY[,ro]` (@path "/workspace"), `volume.PATH=KEY[,ro]`. */
int cube_use_add(struct cube_cube *c, const char *path, const char *value, struct cube_err *err);
/* The creation is accepted: its volumes are there, or are accepted too. */
int cube_use_accept(struct cube_cube *c, struct cube_err *err);
/* They are on disk: after the sandbox, so that what is there for one that nobody knows is never left. */
int cube_use_save_volumes(struct cube_cube *c, struct cube_err *err);
/* No lock: makes those of @p at the backend, as copies where they are such. */
int cube_use_make(struct cube_service *s, const struct cube_spec_parts *p, struct cube_cancel *cancel,
		  struct cube_err *err);
/* Those that @c may write to: an array of uids to be freed, NULL where there are none. -ENOMEM. */
int cube_use_writable(struct cube_cube *c, char (**ret)[17], unsigned *ret_n);
/* The fresh sandbox @c gets what its parent has, where its own create line names no other: of a volume that the parent
 * may write to a copy as of @e, under the name that the line gives or a free one; one that it only reads is the same
 * one. @fork: a name that the line gives such a copy must be free (-EEXIST); else what is there is taken. */
int cube_use_inherit(struct cube_cube *c, struct cube_cube *parent, const struct cube_checkpoint_entry *e,
		     bool fork, struct cube_err *err);
/* The creation failed: what was accepted for it goes. */
void cube_use_undo(struct cube_cube *c);
void cube_use_free(struct cube_cube *c);
/* An array for cube_spec, to be freed; NULL: memory or none. */
struct cube_spec_volume *cube_use_spec(const struct cube_cube *c);
struct cube_use_copy *cube_use_copies(const struct cube_cube *c); /* the same for where they come from */
json_t *cube_use_save(const struct cube_cube *c);
int cube_use_load(struct cube_cube *c, const json_t *list);

#endif

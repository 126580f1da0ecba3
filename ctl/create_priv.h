/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: what a create line says, and the making of sandboxes. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_CREATE_PRIV_H
#define CUBEFS_CTL_CREATE_PRIV_H

#include "backends/base/json.h"
#include "ctl/cube.h"
#include "ctl/cube_priv.h"

#define CUBE_KEYS_MAX 256u /* keys of one create line */

/* keys.c: parses a create line into @c; all refusals happen here. */
int cube_keys_apply(struct cube_cube *c, const struct cube_create_key *keys, size_t n, struct cube_err *err);
/* The same keys of the backend as @from has. */
int cube_keys_copy(struct cube_cube *c, struct cube_cube *from, struct cube_err *err);
/* adopt.c: may @c take over the one that it names? What it is made of cannot be said with it. */
int cube_adopt_check(struct cube_cube *c, struct cube_err *err);
/* On a pool thread, no lock: takes it over and lets it run; op->info is what was found. */
int cube_adopt_run(struct cube_op *op);
/* Under the lock: what @c is, as the backend said it. */
int cube_adopt_take(struct cube_cube *c, const struct cube_info *info);
/* inside.c: the keys; then for the backend, the environment, the disk. */
int cube_inside_user(struct cube_cube *c, const char *value, struct cube_err *err);
int cube_inside_host(struct cube_cube *c, const char *name, const char *value, struct cube_err *err);
int cube_inside_gpu(struct cube_cube *c, const char *value, struct cube_err *err);
int cube_inside_require(struct cube_cube *c, const char *value, struct cube_err *err);
struct cube_spec_parts;
int cube_inside_spec(struct cube_cube *c, struct cube_spec_parts *p);
int cube_inside_env(struct cube_cube *c);
const char *cube_inside_default_user(const struct cube_cube *c); /* "": the first */
json_t *cube_inside_save(const struct cube_own *own);
int cube_inside_load(struct cube_own *own, const json_t *o);
void cube_inside_init(struct cube_inside *in);
void cube_inside_done(struct cube_inside *in);
/* A limit: 1 and its capability, 0 another key, -EINVAL. */
int cube_keys_limit(const char *key, const char *value, struct cube_limits *limits, enum cube_cap *ret_cap,
		    struct cube_err *err);
int cube_label_set(struct cube_cube *c, const char *name, const char *value, struct cube_err *err);
int cube_labels_set(struct cube_map *labels, const char *name, const char *value, struct cube_err *err);
bool cube_label_is(const struct cube_cube *c, const struct cube_pair *label); /* has just this value */
void cube_labels_free(struct cube_map *labels);
/* create.c. @keep: cube_own.keep. */
int cube_create_as(struct cube_domain *d, const struct cube_caller *by, const char *name,
		   const struct cube_create_key *keys, size_t n_keys, bool keep, struct cube_cube **ret,
		   struct cube_err *err);
/* The same with files of a checkpoint and with all that was said of its parent but its binds and ports; keys come on
 * top. */
struct cube_fork_source {
	struct cube_cube *parent;
	struct cube_checkpoint_entry *files;
	struct cube_checkpoint_entry *volumes; /* NULL: it has none to be copied */
	bool fork;                     /* else it is a creation, which may take volumes that are there */
	const struct cube_cube *first; /* that was made of it; NULL: none yet */
};
int cube_create_from(const struct cube_fork_source *from, const char *name,
		     const struct cube_create_key *keys, size_t n_keys, struct cube_cube **ret,
		     struct cube_err *err);
/* Would it be accepted? Nothing is made. */
int cube_create_check(struct cube_domain *d, const struct cube_create_key *keys, size_t n,
		      struct cube_err *err);
/* Accepts one that a pool keeps, of the pool's template. */
int cube_create_kept(struct cube_stock *p, struct cube_err *err);
int cube_create_default_env(struct cube_cube *c);
void cube_create_limits(struct cube_cube *c); /* the backend's defaults for those that nobody gave */
void cube_create_go(struct cube_cube *c);     /* as soon as its template is there */
/* spec.c. A cube_spec of @c, to be used without the lock: what may change is copied; cube_spec_done releases. */
struct cube_spec_parts {
	struct cube_spec spec;
	struct cube_pair *pairs;
	struct cube_pair *hosts;
	char *hosts_text; /* what hosts point into */
	struct cube_spec_volume *volumes;
	struct cube_use_copy *copies; /* as many, of what they are copies */
	char **strings;
	size_t n_strings;
};
int cube_spec_make(struct cube_cube *c, struct cube_spec_parts *ret);
void cube_spec_done(struct cube_spec_parts *p);

#endif

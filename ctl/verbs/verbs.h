/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs: each file of this folder exports its constants, verb.c puts them into tables. */
#ifndef CUBEFS_CTL_VERBS_VERBS_H
#define CUBEFS_CTL_VERBS_VERBS_H

#include "ctl/verb.h"

/* root */
extern const struct cube_verb cube_verb_create, cube_verb_destroy, cube_verb_rename, cube_verb_sweep,
	cube_verb_root_set, cube_verb_root_fork;
/* root and sandbox */
extern const struct cube_verb cube_verb_mkdir, cube_verb_rmdir, cube_verb_mv;
/* backend */
extern const struct cube_verb cube_verb_refresh;
/* template */
extern const struct cube_verb cube_verb_template_import, cube_verb_template_build, cube_verb_template_cancel;
/* pool */
extern const struct cube_verb cube_verb_pool_drain, cube_verb_pool_refill;
/* sandbox */
extern const struct cube_verb cube_verb_life_start, cube_verb_life_stop, cube_verb_life_restart,
	cube_verb_life_pause, cube_verb_life_resume, cube_verb_life_reset;
extern const struct cube_verb cube_verb_bind, cube_verb_unbind, cube_verb_put, cube_verb_get;
extern const struct cube_verb cube_verb_kill, cube_verb_wait, cube_verb_hold, cube_verb_set;
extern const struct cube_verb cube_verb_renew, cube_verb_lease;
extern const struct cube_verb cube_verb_checkpoint, cube_verb_restore, cube_verb_fork;
/* checkpoint */
extern const struct cube_verb cube_verb_checkpoint_restore, cube_verb_checkpoint_set,
	cube_verb_checkpoint_fork, cube_verb_checkpoint_template;
/* session */
extern const struct cube_verb cube_verb_session_kill, cube_verb_session_reset, cube_verb_session_set;
/* job */
extern const struct cube_verb cube_verb_job_kill, cube_verb_job_eof, cube_verb_job_wait,
	cube_verb_job_timeout, cube_verb_job_stdin, cube_verb_job_merge, cube_verb_job_session,
	cube_verb_job_tty, cube_verb_job_winsize;
/* port */
extern const struct cube_verb cube_verb_port_sign, cube_verb_port_revoke, cube_verb_port_name,
	cube_verb_port_public, cube_verb_port_listen;

/* template.c: the call waits for the import that it began. Its result is that of a verb's run. */
struct cube_import;
int cube_verb_import_wait(struct cube_verb_call *call, struct cube_import *i);

/* destroy.c: sandboxes that a verb is to destroy, as many as have a name. Each is picked once. */
struct cube_destroy;
struct cube_destroy *cube_destroy_new(struct cube_domain *d); /* NULL: memory */
void cube_destroy_pick(struct cube_destroy *s, struct cube_cube *c);
/* Destroys them; takes @s over. The verb, which uses neither state nor waiter any more, ends when they are gone. */
void cube_destroy_go(struct cube_verb_call *call, struct cube_destroy *s);

/* life.c: an operation on the life of @c; as a verb's run. @checkpoint: restore. */
int cube_verb_life(struct cube_verb_call *call, struct cube_cube *c, enum cube_life what,
		   struct cube_checkpoint_entry *checkpoint, struct cube_err *err);

/* fork.c: a creation of @parent, or of its checkpoint @e (may be NULL): the sandbox that the words from the second on
 * tell; as a verb's run. */
int cube_verb_create_from(struct cube_verb_call *call, struct cube_cube *parent,
			  struct cube_checkpoint_entry *e, struct cube_err *err);

/* Splits "key=value" in place: the value, or NULL with the sentence. */
char *cube_verb_value(const char *verb, char *word, struct cube_err *err);
/* "label.NAME=VALUE", as a word that selects. Splits it in place; -EINVAL for no name of a label or no value. */
bool cube_verb_is_label(const char *word);
int cube_verb_label(const char *verb, char *word, struct cube_pair *ret, struct cube_err *err);
/* Whole seconds; -EINVAL. */
int cube_verb_seconds(const char *verb, const char *word, uint32_t *ret, struct cube_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: what is on disk of a sandbox and its jobs, and how environments differ. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_STATE_PRIV_H
#define CUBEFS_CTL_STATE_PRIV_H

#include "ctl/cube.h"
#include "ctl/job.h"
#include "ctl/session.h"

/* state.c: cube.json. Save writes and renames at once (a daemon that is killed has it) and syncs behind. */
int cube_state_save(struct cube_cube *c, struct cube_err *err);
int cube_state_save_env(struct cube_cube *c, struct cube_err *err);
/* On a pool thread, no lock: what was saved is on the medium. */
void cube_state_sync(int dir_fd);
void cube_state_sync_now(struct cube_domain *d); /* what was saved, behind */
void cube_state_sync_drop(struct cube_domain *d);
int cube_state_replace(int dir_fd, const char *name, const void *data, size_t len);
/* The intention to destroy it: its directory's name. Needs no room on the disk. */
#define CUBE_STATE_REMOVED ".removed"
int cube_state_mark_removed(struct cube_cube *c, struct cube_err *err);
/* Reads cube.json and env of the directory c->dir_fd. */
int cube_state_load(struct cube_cube *c, struct cube_err *err);
/* load.c: all sandboxes of the state directory. */
int cube_load_all(struct cube_domain *d, struct cube_err *err);

/* journal.c: facts about jobs, one line each. Add to the pending lines, then flush with one write. */
void cube_journal_job(struct cube_job *j); /* all that is known before the end */
void cube_journal_end(struct cube_job *j);
void cube_journal_gone(struct cube_job *j);
void cube_journal_session(struct cube_session *s); /* where its shell is, what it has */
int cube_journal_flush(struct cube_cube *c, struct cube_err *err);
void cube_journal_rest(struct cube_cube *c); /* not needed for a while: its file is closed until then */
int cube_journal_load(struct cube_cube *c, struct cube_err *err);
int cube_journal_compact(struct cube_cube *c, struct cube_err *err);

/* ---- Environment (envset.c) ---- */

/* What turns @old into @new: NAME=VALUE to set, NAME alone to unset; both NUL separated. */
int cube_env_diff(const char *old, size_t old_len, const char *new, size_t new_len, struct cube_buf *out);
int cube_env_apply(const char *base, size_t base_len, const char *changes, size_t changes_len,
		   struct cube_buf *out);
/* Two lots of changes as one: @then counts. */
int cube_env_merge(const struct cube_buf *first, const struct cube_buf *then, struct cube_buf *out);
/* NUL separated text as NAME=VALUE lines. */
int cube_env_lines(const char *env, size_t len, struct cube_buf *out);

#endif

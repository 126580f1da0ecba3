/* SPDX-License-Identifier: Apache-2.0 */
/* A session: one shell that lives on, and the queue of its commands. Under the domain lock. */
#ifndef CUBEFS_CTL_SESSION_H
#define CUBEFS_CTL_SESSION_H

#include "ctl/job.h"

struct cube_session {
	unsigned refs;
	struct cube_cube *cube;
	struct cube_list link; /* cube.sessions */
	uint64_t seq;
	uint64_t number; /* for the link */
	char *name;
	bool removed;
	struct cube_list queue;    /* jobs: the first runs, the others wait, first come first served */
	struct cube_job *latest;   /* the command that `exec` and `exit` show; NULL: none */
	struct cube_waitq changed; /* another latest */
	bool open;                 /* the far side has it */
	char *cwd;                 /* after the last command; what a write set, from the next */
	char *user;                /* fixed by the first command */
	struct cube_buf exports;   /* as the shell printed them; empty until known */
	struct cube_buf env_set;   /* NUL-separated changes that the next command brings along */
	uint64_t env_seen;         /* cube.env_version that it has */
	uint32_t patience_s, timeout_s;
	void *tree_data;
};

struct cube_session *cube_session_find(struct cube_cube *c, const char *name);
struct cube_session *cube_session_next(struct cube_cube *c, uint64_t seq);
struct cube_session *cube_session_main(struct cube_cube *c);
struct cube_session *cube_session_ref(struct cube_session *s);
void cube_session_unref(struct cube_session *s);

/* mkdir, rmdir. -EEXIST, -EINVAL ("clone", "last"), -EBUSY for main, -EHOSTDOWN. */
int cube_session_create(struct cube_cube *c, const char *name, struct cube_session **ret,
			struct cube_err *err);
int cube_session_remove(struct cube_session *s, struct cube_err *err);

/* A command of its exec: a numbered, merged job that runs when those before it have ended; the reference
 * is the caller's. Errors as cube_job_submit. */
int cube_session_run(struct cube_session *s, const char *text, size_t len, struct cube_job **ret,
		     struct cube_err *err);

/* `reset`: ends what runs, the next command finds a fresh shell. `kill`: a signal to what it runs now. */
int cube_session_reset(struct cube_session *s, struct cube_err *err);
int cube_session_kill(struct cube_session *s, int sig, struct cube_err *err);
int cube_session_set(struct cube_session *s, const char *key, const char *value, struct cube_err *err);
int cube_session_set_cwd(struct cube_session *s, const char *cwd, struct cube_err *err);
int cube_session_set_user(struct cube_session *s, const char *user,
			  struct cube_err *err); /* -EBUSY after the first command */
int cube_session_set_env(struct cube_session *s, const char *env, size_t len, struct cube_err *err);
/* NAME=VALUE lines: the exports after the last command (parsed from the shell's own quoting), else the cube's env. */
int cube_session_env(struct cube_session *s, struct cube_buf *out);

#endif

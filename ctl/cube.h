/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox: identity, state machine, what belongs to it.
 *
 * Everything here is under the domain lock. A cube is reference counted: the domain holds one until it
 * is removed, open handles and works under way hold others; identity is the uid, names change. */
#ifndef CUBEFS_CTL_CUBE_H
#define CUBEFS_CTL_CUBE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/name.h"
#include "ctl/caller.h"
#include "ctl/domain.h"
#include "ctl/metrics.h"
#include "ctl/ports/port.h"
#include "ctl/wait.h"

enum cube_phase {
	CUBE_CREATING,
	CUBE_RUNNING,
	CUBE_PAUSED,
	CUBE_STOPPED,
	CUBE_ERROR,
	CUBE_REMOVED, /* its name is free; being destroyed behind */
};
const char *cube_phase_name(enum cube_phase p); /* "creating", ... */

/* What becomes of it when its life time is over. */
enum cube_at_end { CUBE_AT_END_DESTROY, CUBE_AT_END_STOP, CUBE_AT_END_PAUSE };
#define CUBE_AT_ENDS 3
const char *cube_at_end_name(enum cube_at_end e); /* "destroy", ... */

/* How long it may be there, and how long without use (ctl/times.c). Wall clock: suspend and a daemon that is away
 * count. On disk. */
struct cube_times {
	uint32_t idle_s; /* paused after so long without use; 0: never */
	uint32_t
		lifetime_s; /* from its first run, and anew when it runs again after the end of a life; 0: none */
	enum cube_at_end at_end;
	bool idle_background; /* processes of ended commands are no use */
	uint64_t ends_wall;   /* of the present life; 0: none */
	uint64_t lease_wall;  /* in use until then; 0: no lease */
};

struct cube_checkpoint_entry;
struct cube_job;
struct cube_session;
struct cube_transcript;

/* How other tools reach it, as its backend said when it was last asked. */
struct cube_access {
	struct cube_buf text;
	struct cube_asked asked;
};

struct cube_cube {
	unsigned refs;
	struct cube_domain *domain;
	struct cube_list link; /* domain.cubes */
	uint64_t seq;
	char uid[17]; /* 16 hex digits, ours */
	char *name;
	struct cube_service *service;
	char *id; /* at the backend; NULL until created */
	enum cube_phase phase;
	char reason[64];           /* why it does not run */
	bool terminal;             /* cannot run again */
	const char *doing;         /* the operation under way ("create", "stop", ...), NULL: none */
	struct cube_err failure;   /* of the creation, in phase error */
	struct cube_waitq changed; /* phase or doing changed */
	uint64_t created_wall, started_wall;
	uint64_t used_wall; /* the end of the latest use that was told; who asks wants cube_use_idle_since */
	struct cube_times times;
	uint32_t generation;
	/* what it was made with (create keys), owned strings */
	char *adopted; /* the id at the backend of what it took over, and lets go at its end; NULL: made here */
	char *template;
	char *pool; /* that it is from; NULL: none */
	char *parent; /* what it was forked from: "SANDBOX" or "SANDBOX/CHECKPOINT", as these were called; NULL: nothing */
	bool pool_cold; /* and none was ready there: it was made */
	struct cube_limits limits;
	enum cube_net net;
	bool privileged;
	uint32_t command_timeout_s;
	bool resume;             /* using it resumes it when paused (default) */
	struct cube_buf env;     /* NUL-separated NAME=VALUE of jobs and new sessions */
	uint64_t env_version;    /* one more at each write */
	struct cube_map *labels; /* name -> char * */
	/* running */
	struct cube_link *agent; /* NULL while not connected */
	struct cube_usage usage;
	uint64_t usage_wall;
	/* commands */
	struct cube_list sessions; /* struct cube_session, by seq; "main" always */
	struct cube_list jobs;     /* struct cube_job, by seq */
	struct cube_map *jobs_by_name;
	uint64_t next_job;         /* number */
	struct cube_job *last_job; /* jobs/last; NULL: none */
	struct cube_waitq job_added;
	struct cube_ports ports;
	struct cube_list checkpoints; /* struct cube_checkpoint_entry, by seq */
	struct cube_metrics metrics;
	struct cube_access access;
	struct cube_errlog *errors;
	struct cube_transcript *log;
	int dir_fd; /* STATE/cubes/UID */
	struct cube_buf
		done; /* lines "done VERB ok", "done VERB ERRNO sentence": the last ends of ` &` verbs */
	/* for fs/tree: its node of this cube and the attached files; opaque here */
	void *tree_data;
};

/* The name of its template, the backend's default one included; NULL: nobody knows. */
const char *cube_cube_template(const struct cube_cube *c);
struct cube_cube *cube_cube_ref(struct cube_cube *c);
void cube_cube_unref(struct cube_cube *c);

/* A parsed `create` line: keys and values as words. */
struct cube_create_key {
	const char *key, *value;
};

/* Accepts a sandbox (phase creating) and creates it behind. -EINVAL name, key or value, -EEXIST, -EOPNOTSUPP
 * a limit or mode this backend cannot keep, -ENOENT no such backend or template: all before anything exists.
 * The creation's failure leaves it in phase error with c->failure. The intention is on disk on return. */
int cube_cube_create(struct cube_domain *d, const struct cube_caller *by, const char *name,
		     const struct cube_create_key *keys, size_t n_keys, struct cube_cube **ret,
		     struct cube_err *err);
/* A fresh name ("sandbox-1" ...) for the root's clone. */
void cube_cube_fresh_name(struct cube_domain *d, char out[CUBE_NAME_MAX + 1]);
/* Is it a name for a sandbox? -EINVAL with the reason. */
int cube_cube_check_name(const char *name, struct cube_err *err);

/* The name is free when it returns, destruction goes on behind (what waits on it is woken: -EHOSTDOWN).
 * The intention is on disk on return. */
int cube_cube_remove(struct cube_cube *c, const struct cube_caller *by, struct cube_err *err);
/* -EEXIST, -EINVAL. Open files, jobs and channels go on. */
int cube_cube_rename(struct cube_cube *c, const char *name, struct cube_err *err);

/* Keeping a sandbox alive: whoever holds it (an open channel that has written `hold`) gives it up at his end,
 * and with the last one it is destroyed. What is held when the daemon ends is destroyed at its next start. */
struct cube_hold {
	struct cube_cube *cube; /* referenced; NULL: holds nothing */
};
/* Once for each: to hold it again changes nothing. On disk on return. -EHOSTDOWN: it is being destroyed. */
int cube_hold_take(struct cube_hold *h, struct cube_cube *c, struct cube_err *err);
/* The end of @h, which may hold nothing. */
void cube_hold_end(struct cube_hold *h);

/* Can it run a command now? 0; 1: not yet, wait on c->changed and ask again (creating, being resumed, linking);
 * -EHOSTDOWN with the reason. With @use, a paused one is resumed if it may (that is what makes 1 become 0). */
int cube_cube_usable(struct cube_cube *c, bool use, struct cube_err *err);
/* The same for its files: where they are a directory of this machine they do not need it to run. */
int cube_cube_files_usable(struct cube_cube *c, struct cube_err *err);
/* Its files on this machine: takes no time under the lock; *ret_work-style: runs cube_backend_root on the pool and
 * calls @done on the pool thread, no lock held (code 0: *root is the receiver's). @ctx must live until then. -ENOMEM:
 * @done will not be called. */
int cube_cube_root_async(struct cube_cube *c,
			 void (*done)(void *ctx, int code, struct cube_root *root,
				      const struct cube_err *err),
			 void *ctx);

/* An operation on its life; all answer through @done (under the lock, exactly once, maybe before return). */
enum cube_life {
	CUBE_LIFE_START,
	CUBE_LIFE_STOP,
	CUBE_LIFE_RESTART,
	CUBE_LIFE_PAUSE,
	CUBE_LIFE_RESUME,
	CUBE_LIFE_RESET,      /* the template's files; /workspace stays */
	CUBE_LIFE_RESTORE,    /* those of a checkpoint */
	CUBE_LIFE_CHECKPOINT, /* one is taken (ctl/checkpoint.h) */
};
struct cube_life_call {
	enum cube_life what;
	uint32_t grace_s;                         /* stop, restart */
	struct cube_checkpoint_entry *checkpoint; /* restore, checkpoint: borrowed until the return */
	void (*done)(struct cube_life_call *call, int code, const struct cube_err *err);
	bool cancelled; /* set by who no longer waits: the operation goes on, done is not called. The memory must
			     stay until then, unless it is taken back with cube_cube_life_leave */
};
/* 0: done comes, or came. -EBUSY another operation is under way; -EHOSTDOWN, -EINVAL not in this state; -EOPNOTSUPP. */
int cube_cube_life(struct cube_cube *c, struct cube_life_call *call, struct cube_err *err);
void cube_cube_life_leave(struct cube_cube *c,
			  struct cube_life_call *call); /* nobody waits any more: forget @call */

/* The new environment, already checked (NUL-separated NAME=VALUE). Written to disk before it returns. */
int cube_cube_set_env(struct cube_cube *c, const char *env, size_t len, struct cube_err *err);
/* `set key=value` of a sandbox's ctl. */
int cube_cube_set(struct cube_cube *c, const char *key, const char *value, struct cube_err *err);
/* Use (interface.md, below States). begin and end bracket what lasts: an input that is open, a channel on exec, a
 * connection on a port; at each end the time without use begins anew. Jobs, leases, open files below files/ and
 * what ended commands left running are known without being told. Neither resumes anything: that does
 * cube_cube_usable. */
void cube_use_begin(struct cube_cube *c);
void cube_use_end(struct cube_cube *c);
/* Since when nobody has used it (wall clock, ns); 0: it is in use. */
uint64_t cube_use_idle_since(struct cube_cube *c);
/* Does a command or a job run in it, or what one left running as far as that is known, or in one that shares a volume
 * with it? */
bool cube_use_runs(struct cube_cube *c);
/* Somebody wants to know whether anything runs in it: files_quiet of the domain's watcher is the answer, if it is none. */
void cube_use_ask(struct cube_cube *c);

/* `renew SECONDS`: its life ends so long from now. -EHOSTDOWN. */
int cube_cube_renew(struct cube_cube *c, uint32_t seconds, struct cube_err *err);
/* `lease SECONDS`: in use for so long from now; 0: no longer. */
int cube_cube_lease(struct cube_cube *c, uint32_t seconds, struct cube_err *err);

/* Asks its backend how other tools reach it, behind; the answer wakes c->access.asked.answered, also one that could
 * not be had. */
void cube_access_ask(struct cube_cube *c);
void cube_access_init(struct cube_cube *c);
/* Somebody looks at its counters: they are kept fresh (behind, every 5 s) for a while. */
void cube_cube_look(struct cube_cube *c);
/* `kill SIGNAL`: every process but the first. */
int cube_cube_kill(struct cube_cube *c, int sig, struct cube_err *err);

/* NAME=VALUE lines, or NUL-separated (a NUL anywhere decides), into NUL-separated form. Gives the number of the
 * first bad line in the sentence: -EINVAL. @final: an unfinished last line counts. */
int cube_env_parse(const char *text, size_t len, bool final, struct cube_buf *ret, struct cube_err *err);

#endif

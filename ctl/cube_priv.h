/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: the private half of a sandbox, its use and its times. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_CUBE_PRIV_H
#define CUBEFS_CTL_CUBE_PRIV_H

#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "ctl/alarm.h"
#include "ctl/bind.h"
#include "ctl/cube.h"
#include "ctl/job_priv.h"

#define CUBE_ENV_MAX  (UINT64_C(1) << 20) /* bytes of an environment */
#define CUBE_DONE_MAX (UINT64_C(8) << 10) /* bytes of `done` lines that are kept */

struct cube_op;
struct cube_conn;
struct cube_stock;
struct cube_volume_use;

/* An environment that sessions compare with the newer one: shared, reference counted. */
struct cube_env_text {
	unsigned refs;
	size_t len;
	char data[];
};
struct cube_env_text *cube_env_text_new(const char *data, size_t len);
struct cube_env_text *cube_env_text_ref(struct cube_env_text *e);
void cube_env_text_unref(struct cube_env_text *e);
/* @env with the defaults (PATH, HOME, ...) for the names that it lacks. NULL: out of memory. */
struct cube_env_text *cube_create_env_text(const char *env, size_t len);

/* inside.c: what a create line wants to find inside. */
struct cube_inside {
	char *user;   /* of sessions and jobs that name none; NULL: root */
	uint32_t uid; /* its number; 0: any */
	bool gpu;
	struct cube_buf hosts; /* NUL-separated NAME=ADDRESS */
};

struct cube_own {
	struct cube_cube c;
	struct cube_op *op; /* under way at the backend */
	struct cube_op
		*next_op; /* waits for it: anything behind the adoption, the destruction behind anything */
	struct cube_conn *conn;   /* the link, or the attempt to make one; NULL: none */
	struct cube_alarm relink; /* the next attempt */
	unsigned relink_tries;
	bool heard; /* while an operation was under way: that it is ... */
	enum cube_state heard_state;
	uint64_t boot;        /* of the agent at the last link; 0: never linked */
	uint64_t paused_mono; /* since when it is paused; 0: it is not, or since before this daemon */
	uint64_t paused_wall; /* the same by the wall clock, on disk: for a pause that outlives a daemon */
	uint64_t paused_owed; /* milliseconds of such a pause, of which the agent has not heard yet */
	bool keep;    /* a failed creation keeps the directory (mkdir), else nothing is left (create) */
	bool leaving; /* read from the disk as one that is being destroyed */
	/* Of a fork that is not complete: the uid of its first sandbox, with which all of them are kept, and until then
	 * none is though it runs; "": it is of none. */
	char fork[17];
	unsigned holders;         /* open channels that keep it alive (cube_hold) */
	bool held;                /* of the state on disk: somebody has held it, and it goes with him */
	bool picked;              /* of `destroy` while it selects */
	bool unseen;              /* it has no name in the root: kept in a pool, or destroyed out of one */
	struct cube_stock *stock; /* that keeps it; NULL: none */
	uint64_t stock_revision;  /* of its template when this was made */
	struct cube_waiter stock_wait; /* on changed */
	bool stock_told;               /* that it is ready */
	bool stock_old; /* of an earlier daemon, and not seen ready by this one: its end is no failure */
	bool gone;      /* removed, and the backend has nothing left */
	bool wanted;    /* a use waits for the resume that is to follow the pause under way */
	uint64_t resume_failed_mono; /* when a use could not resume it: told for a moment, then tried again */
	struct cube_err resume_err;
	bool recovered;              /* loaded from disk and not looked at yet */
	struct cube_err destroy_err; /* the latest failure of the destruction, which is tried again */
	struct cube_alarm destroy_again;
	unsigned destroy_tries;
	struct cube_waiter boot_wait;     /* boot.c */
	struct cube_job *boot_ready;      /* what it waits for at its boot; NULL: nothing */
	struct cube_waiter template_wait; /* a creation that waits for its template's import */
	struct cube_limits
		limits_said; /* by the create line; the others are the template's or the backend's */
	struct cube_create_key *extra; /* the backend's own create keys */
	size_t n_extra;
	struct cube_volume_use *volumes; /* volumes (volume_priv.h) */
	size_t n_volumes;
	struct cube_list checkpoints_gone;  /* checkpoints that are being removed */
	struct cube_checkpoint_entry *from; /* it is made of that one; referenced; NULL: of its template */
	char checkpoint_base[17];           /* id of the one that its files came from; "": none */
	struct cube_binds binds;            /* bind.h */
	struct cube_list transfers;         /* struct cube_transfer: put and get under way (transfer.c) */
	bool binds_told;                    /* the backend knows all of them since the daemon's start */
	struct cube_env_text
		*env_text; /* c.env over the defaults, shared with the sessions that have seen it */
	struct cube_inside inside;
	struct cube_buf env_keys; /* env.NAME of the create line, NUL separated */
	/* journal */
	int journal_fd; /* -1: not open */
	uint64_t journal_size;
	uint64_t journal_base;   /* its size when it was last written anew */
	struct cube_buf journal; /* lines that go out with the next flush */
	/* spools */
	uint64_t spool_bytes; /* what all jobs' output takes on the disk */
	unsigned next_slot;
	unsigned *free_slots; /* of forgotten jobs, to be used again */
	size_t n_free, cap_free;
	struct cube_output *spare; /* made ahead for the next merged job */
	bool spare_busy, have_dir;
	bool sync_due; /* in domain_own.unsynced, or its creation will see to it */
	struct cube_list unsynced;
	struct cube_job_index index; /* of c.jobs, by number */
	struct cube_list ended;      /* job_own.in_ended: numbered ones that may be forgotten */
	unsigned ended_numbered;     /* how many these are */
	uint64_t next_session;
	uint64_t written; /* bytes, as guard.c was last told; UINT64_MAX: never */
	/* use and life times (use.c, times.c) */
	unsigned uses;           /* begun and not ended */
	uint64_t left;           /* processes of ended commands, as was last told */
	bool left_asked;         /* the far side was asked, and has not answered yet */
	bool left_known;         /* it has, and nothing was used since */
	bool end_told;           /* the event of the end of its life is out */
	uint64_t end_tried;      /* when that end was last tried to be made so (wall); 0: not yet */
	struct cube_alarm due;   /* something of its times */
	uint64_t looked_mono;    /* when somebody last looked at the counters */
	bool usage_busy, sample; /* asked for; and wanted for its metrics */
};

static inline struct cube_own *cube_own(struct cube_cube *c)
{
	return cube_container_of(c, struct cube_own, c);
}

/* use.c */
bool cube_use_busy(struct cube_cube *c);
void cube_use_note(
	struct cube_cube *c); /* a use ended, or was one for a moment: the time without begins anew */
void cube_use_ended(struct cube_cube *c); /* a command or a job has ended */
/* From the link: as its `left`. */
void cube_use_left(struct cube_cube *c, uint64_t n, bool still);
void cube_use_starts(struct cube_cube *c);   /* something is about to be started in it */
void cube_use_unlinked(struct cube_cube *c); /* who would tell is gone */

/* guard.c */
extern const char cube_guard_reason[];       /* of a sandbox that it paused */
void cube_guard_look(struct cube_domain *d); /* now */
void cube_guard_wake(struct cube_domain *d); /* something runs */
/* -EHOSTDOWN for one that it paused: use does not resume it. */
int cube_guard_refuse(const struct cube_cube *c, struct cube_err *err);

/* times.c */
void cube_times_init(struct cube_cube *c);
void cube_times_look(struct cube_cube *c);    /* does what is due; may remove it */
void cube_times_begin(struct cube_cube *c);   /* it runs: a life begins, unless one is under way */
void cube_times_found(struct cube_cube *c);   /* it was found running, by a daemon that comes back */
void cube_times_changed(struct cube_cube *c); /* by its user: whoever has a clock of its own is told */
void cube_times_tell_backend(struct cube_cube *c);
void cube_times_tell(struct cube_cube *c);  /* the far side, when its life ends */
void cube_times_failed(struct cube_op *op); /* an operation of ours failed: not at once again */
/* Does its life end by itself where no daemon is: it was found ended, and this is why. */
bool cube_times_over(const struct cube_cube *c);
int cube_times_set(struct cube_cube *c, const char *key, const char *value,
		   struct cube_err *err); /* 1; 0: no key of times; negative */

/* cube.c */
struct cube_cube *cube_cube_new(struct cube_domain *d); /* one reference; NULL: memory */
/* Into the tables of the domain, under its name. */
int cube_cube_enlist(struct cube_cube *c, struct cube_err *err);
/* Makes or opens STATE/cubes/UID and the logs in it. */
int cube_cube_open_dir(struct cube_cube *c, struct cube_err *err);
int cube_cube_open_log(struct cube_cube *c, struct cube_err *err);
/* Why it does not run, for a sentence: the failure or the reason, "" where that says no more than the state.
 */
const char *cube_cube_why(const struct cube_cube *c);
/* "stopped", "in state error". */
const char *cube_cube_is(const struct cube_cube *c);
void cube_cube_changed(struct cube_cube *c); /* wakes who waits for its state */
/* The phase and the reason, with event, transcript line and state on disk. @event NULL: none. */
void cube_cube_enter(struct cube_cube *c, enum cube_phase phase, const char *reason, const char *event);
/* For the root's `events`; none of one that has no name there. */
void cube_cube_event(struct cube_cube *c, const char *event, const char *detail);
void cube_cube_end_jobs(struct cube_cube *c, enum cube_end how, const struct cube_err *why);
void cube_cube_sessions_anew(struct cube_cube *c);
/* Out of the tables; the name is free. */
void cube_cube_delist(struct cube_cube *c);
void cube_cube_finish_gone(struct cube_cube *c); /* nothing is left of it anywhere */
void cube_cube_adopt(struct cube_cube *c);       /* after a load: find out what became of it */

#endif

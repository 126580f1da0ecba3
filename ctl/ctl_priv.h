/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ctl/ share and nobody else sees: the private halves of domain, sandbox, session and job,
 * and the calls between them. Everything under the domain lock unless said otherwise. */
#ifndef CUBEFS_CTL_CTL_PRIV_H
#define CUBEFS_CTL_CTL_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "ctl/alarm.h"
#include "ctl/bind.h"
#include "ctl/cube.h"
#include "ctl/domain.h"
#include "ctl/job.h"
#include "ctl/ring.h"
#include "ctl/session.h"
#include "ctl/template.h"

#define CUBE_TEXT_MAX     (UINT64_C(4) << 20) /* bytes of a command */
#define CUBE_TEXT_INLINE  1024u               /* a longer text is kept on disk alone */
#define CUBE_ENV_MAX      (UINT64_C(1) << 20) /* bytes of an environment */
#define CUBE_DONE_MAX     (UINT64_C(8) << 10) /* bytes of `done` lines that are kept */
#define CUBE_KEYS_MAX     256u                /* keys of one create line */
#define CUBE_POOL_THREADS 64u
#define CUBE_LOGS_OPEN    1024u /* transcripts of which the file is open */

/* ---- Domain ---- */

struct cube_domain_own {
	struct cube_domain d;
	struct cube_alarms *alarms;
	struct cube_list dying;         /* removed sandboxes whose destruction is under way */
	struct cube_list conns;         /* struct cube_conn, all that have a link to close */
	struct cube_list port_conns;    /* connections through exposed ports (ctl/ports/conn.c) */
	unsigned works;                 /* works at the pool that will come back into the domain */
	pthread_cond_t quiet;           /* works became 0; with the lock */
	uint64_t fresh;                 /* the last number given by cube_cube_fresh_name */
	int cubes_fd;                   /* STATE/cubes */
	int templates_fd;               /* STATE/templates */
	int volumes_fd;                 /* STATE/volumes */
	struct cube_list volumes_dying; /* removed volumes that the backend may still have */
	struct cube_list unsynced;      /* cube_own.unsynced: saved, and not yet on the medium */
	struct cube_alarm metrics;      /* samples are due */
	uint64_t metrics_at;            /* seq of the sandbox that was asked for last */
	struct cube_alarm sync;
	struct cube_work sync_work;
	bool syncing;
	struct cube_ring_set logs; /* of the sandboxes: open files */
	bool stocks_go;            /* pools may begin to make sandboxes */
	unsigned sweeps;           /* that are under way */
	struct cube_alarm usage;   /* counters are due */
	struct cube_alarm guard;   /* guard.c looks at the disk */
	bool guarding;             /* it does */
	bool load_failed;          /* a sandbox of the state directory could not be read */
};

static inline struct cube_domain_own *cube_domain_own(struct cube_domain *d)
{
	return cube_container_of(d, struct cube_domain_own, d);
}

/* A call on a pool thread that works for the domain: counted, so that a shutdown can wait for it. The last
 * thing that @run does is cube_task_end, under the lock. */
void cube_task_submit(struct cube_domain *d, struct cube_work *w);
void cube_task_end(struct cube_domain *d);

/* service.c */
int cube_services_open(struct cube_domain *d, struct cube_err *err);
void cube_services_close(struct cube_domain *d);
/* Asks for status and templates behind. @done (may be NULL) comes under the lock. */
struct cube_refresh {
	struct cube_work work;
	struct cube_service *service;
	struct cube_domain *domain;
	struct cube_status status;
	struct cube_buf templates; /* struct cube_template_known after struct cube_template_known */
	struct cube_there there;
	bool has_there;
	uint64_t stamp;
	int code;
	struct cube_err err;
	void (*done)(struct cube_refresh *r); /* owns *r; NULL: it is freed */
	void *ctx;
};
bool cube_service_listed(struct cube_service *s); /* its templates are known */
void cube_service_set_listed(struct cube_service *s);
uint64_t cube_service_stamp(struct cube_service *s); /* the next of a clock that only counts */
int cube_service_refresh(struct cube_domain *d, struct cube_service *s, struct cube_refresh **ret,
			 struct cube_err *err);

/* template.c. load: those that mkdir made and that still wait for an import; take: what the backend lists. */
int cube_templates_load(struct cube_domain *d, struct cube_service *s, struct cube_err *err);
struct cube_template_known {
	struct cube_template t;
	struct cube_template_config config;
};
void cube_templates_take(struct cube_domain *d, struct cube_service *s, struct cube_template_known *list,
			 size_t n, uint64_t stamp);
void cube_templates_close(struct cube_service *s);
/* template_record.c: keys, texts and layers, STATE/templates/BACKEND/NAME/record.json. */
int cube_template_record_save(struct cube_template_entry *t, struct cube_err *err);
void cube_template_record_load(struct cube_template_entry *t);
/* build.c: layers of @old that @now has not are removed, where nothing else is made of them; no lock. */
void cube_build_prune(struct cube_backend *backend, const struct cube_buf *old, const struct cube_buf *now);
void cube_builds_recover(struct cube_domain *d); /* what builds left that were cut off is destroyed behind */
/* A line in its log, with the time. */
void cube_template_say(struct cube_template_entry *t, const char *line);

/* Is it there to be used (NULL: the default)? 0 and, where it is known here, *ret; -ENOENT; 1: its import is
 * under way, wait on *ret->changed. */
int cube_template_usable(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err);
/* Starts an import; its end comes to @done under the lock. */
struct cube_import {
	struct cube_work work;
	struct cube_template_entry *entry;
	struct cube_domain *domain;
	struct cube_cancel *cancel;
	struct cube_caller by;
	char *source, *sha256; /* sha256 NULL: not said */
	struct cube_template_keys keys;
	bool uefi, tpm, specialized;
	int code;
	struct cube_err err;
	void (*done)(struct cube_import *i); /* NULL: nobody waits */
	void *ctx;
};
int cube_template_import(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			 const char *source, const struct cube_create_key *keys, size_t n_keys,
			 struct cube_import **ret, struct cube_err *err);

/* usage.c: asks for the counters of every running sandbox that somebody looked at lately; false: none. */
#define CUBE_USAGE_MS 5000u
bool cube_usage_round(struct cube_domain *d);
/* Asks for those of one, and adds them to its metrics. */
void cube_usage_sample(struct cube_cube *c);
void cube_metrics_due(struct cube_alarm *a);

/* settings.c: the [daemon] section */
int cube_settings_load(struct cube_domain *d, struct cube_err *err);

/* ---- Sandbox ---- */

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

/* c.jobs in the order of their numbers (job_index.c). */
struct cube_job_index {
	struct cube_job **jobs;
	size_t n, cap;
};

struct cube_own {
	struct cube_cube c;
	struct cube_op *op; /* under way at the backend */
	struct cube_op
		*next_op; /* waits for it: anything behind the adoption, the destruction behind anything */
	struct cube_conn *conn;   /* the link, or the attempt to make one; NULL: none */
	struct cube_alarm relink; /* the next attempt */
	unsigned relink_tries;
	uint64_t boot;        /* of the agent at the last link; 0: never linked */
	uint64_t paused_mono; /* since when it is paused; 0: it is not, or since before this daemon */
	uint64_t paused_wall; /* the same by the wall clock, on disk: for a pause that outlives a daemon */
	uint64_t paused_owed; /* milliseconds of such a pause, of which the agent has not heard yet */
	bool keep;        /* a failed creation keeps the directory (mkdir), else nothing is left (create) */
	bool pending;     /* of a fork that is not complete: it is not kept yet though it runs */
	unsigned holders; /* open channels that keep it alive (cube_hold) */
	bool held;        /* of the state on disk: somebody has held it, and it goes with him */
	bool picked;      /* of `destroy` while it selects */
	bool unseen;      /* it has no name in the root: kept in a pool, or destroyed out of one */
	struct cube_stock *stock;      /* that keeps it; NULL: none */
	uint64_t stock_revision;       /* of its template when this was made */
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
/* From the link: so many processes of ended commands are there. */
void cube_use_left(struct cube_cube *c, uint64_t n);
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
/* The same with the files of @from, a checkpoint of @parent, and with all that was said of @parent but its volumes and
 * ports; keys come on top. */
int cube_create_from(struct cube_cube *parent, struct cube_checkpoint_entry *from, const char *name,
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
/* A cube_spec of @c, to be used without the lock: what may change is copied; cube_spec_done releases. */
struct cube_spec_parts {
	struct cube_spec spec;
	struct cube_pair *pairs;
	struct cube_pair *hosts;
	char *hosts_text; /* what hosts point into */
	struct cube_spec_volume *volumes;
	char **strings;
	size_t n_strings;
};
int cube_spec_make(struct cube_cube *c, struct cube_spec_parts *ret);
void cube_spec_done(struct cube_spec_parts *p);

/* ---- Operations (life.c) ---- */

enum cube_op_kind {
	CUBE_OP_CREATE,
	CUBE_OP_TAKE, /* from a pool */
	CUBE_OP_ADOPT,
	CUBE_OP_START,
	CUBE_OP_STOP,
	CUBE_OP_RESTART,
	CUBE_OP_PAUSE,
	CUBE_OP_RESUME,
	CUBE_OP_RESET,
	CUBE_OP_RESTORE,
	CUBE_OP_CHECKPOINT,
	CUBE_OP_DESTROY,
};

struct cube_op {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	enum cube_op_kind kind;
	uint32_t grace_s;
	struct cube_cancel *cancel;
	struct cube_life_call *call; /* who waits; NULL: nobody */
	const char *reason;          /* why, if it was not asked for: "idle", "lifetime"; NULL */
	/* taken under the lock for the thread that runs it */
	enum cube_phase from;
	char *id; /* owned */
	struct cube_spec_parts spec;
	struct cube_checkpoint_entry *checkpoint; /* pinned; NULL: it is about none */
	char (*checkpoints)[17];                  /* destroy: ids of all that it has; owned */
	size_t n_checkpoints;
	bool halfway;            /* a restart has stopped it */
	struct cube_binds binds; /* of what starts it: to be told first */
	bool booted;             /* what its template asks for was begun */
	bool waits_boot;         /* linked, and what its template asks for at a boot is under way */
	bool waits_link;         /* done at the backend; the agent has not answered yet */
	/* what came out */
	int code;
	struct cube_err err;
	struct cube_info info;
	struct cube_alarm late; /* the agent does not answer */
};

int cube_op_begin(struct cube_cube *c, enum cube_op_kind kind, uint32_t grace_s, struct cube_life_call *call,
		  struct cube_err *err);
/* boot.c: its template's `start` and `ready`. 0: nothing to wait for; 1: cube_op_booted will be called; negative: it
 * cannot boot. drop: nobody waits any more. check: is @text fit to be `ready`? */
#define CUBE_BOOT_S 300u /* so long `ready` may take */
int cube_boot_begin(struct cube_cube *c, struct cube_err *err);
void cube_boot_drop(struct cube_cube *c);
int cube_boot_check(const char *text, size_t len, struct cube_err *err);
/* services.c: may it be a template's `services`? -EINVAL with the line's number; the last line counts where it is
 * @final or ended. Then for a sandbox that is made of it, under its state directory. */
int cube_services_check(const char *text, size_t len, bool final, struct cube_err *err);
int cube_services_start(struct cube_cube *c, const struct cube_template_entry *t, struct cube_err *err);
void cube_op_booted(struct cube_cube *c, int code, const struct cube_err *err);
/* From conn.c: the link that the operation waits for is ready (code 0), or will not be. */
void cube_op_linked(struct cube_cube *c, int code, const struct cube_err *err);
void cube_op_cancel(struct cube_cube *c); /* the destruction comes, or the end of the daemon */
void cube_op_leave_all(struct cube_cube *c,
		       const struct cube_err *err); /* who waits is answered; it goes on */
void cube_op_abandon(struct cube_cube *c);          /* no thread has it any more: closing */
void cube_op_stopped(struct cube_cube *c);          /* nothing runs in it any more */
/* life_done.c: what is so when it has come back. */
void cube_op_create_failed(struct cube_op *op);
void cube_op_created(struct cube_op *op);
void cube_op_destroy_failed(struct cube_op *op);
void cube_op_destroyed(struct cube_op *op);
void cube_op_inspect_failed(struct cube_op *op);
void cube_op_inspected(struct cube_op *op);
void cube_op_paused(struct cube_op *op);
void cube_op_restart_failed(struct cube_op *op);
void cube_op_resume_failed(struct cube_op *op);
void cube_op_resuming(struct cube_cube *c);
void cube_op_resumed(struct cube_op *op);
void cube_op_runs(struct cube_op *op);
void cube_op_started(struct cube_op *op);
void cube_op_stop_done(struct cube_op *op);
void cube_op_checkpoint_taken(struct cube_op *op);
void cube_op_replaced(struct cube_op *op); /* it has other files */
void cube_op_replace_failed(struct cube_op *op);
/* life_run.c: what runs on the pool's thread, without the lock. */
void cube_op_run_create(struct cube_op *op);
void cube_op_run_take(struct cube_op *op);
void cube_op_run_inspect(struct cube_op *op);
void cube_op_run_start(struct cube_op *op);
void cube_op_run_stop(struct cube_op *op);
void cube_op_run_restart(struct cube_op *op);
void cube_op_run_pause(struct cube_op *op);
void cube_op_run_resume(struct cube_op *op);
void cube_op_run_reset(struct cube_op *op);
void cube_op_run_restore(struct cube_op *op);
void cube_op_run_checkpoint(struct cube_op *op);
void cube_op_run_destroy(struct cube_op *op);
void cube_op_run_undo(struct cube_op *op);
const char *cube_op_name(enum cube_op_kind kind);

/* ---- Link (conn.c) ---- */

struct cube_conn {
	struct cube_list link; /* domain_own.conns */
	struct cube_post post; /* closes it on the loop's thread */
	struct cube_domain *domain;
	struct cube_cube *cube;  /* borrowed: a live connection ends before its sandbox */
	struct cube_link *agent; /* NULL until the backend gave it */
	struct cube_cancel *cancel;
	bool synced;
	bool dead;    /* abandoned: what still comes is dropped */
	bool closing; /* posted */
	uint64_t boot;
	uint64_t ready_mono; /* since when it is usable; 0: not yet */
};

/* Starts making a link (behind). */
int cube_conn_begin(struct cube_cube *c, struct cube_err *err);
/* Gives up the link or the attempt. */
void cube_conn_drop(struct cube_cube *c);
bool cube_conn_ready(const struct cube_cube *c);
/* If it runs, has no link and nothing is about to make one: start. */
void cube_conn_settle(struct cube_cube *c);
/* Later: look at the backend what became of it, and make a link if it runs. */
void cube_conn_again(struct cube_cube *c);
void cube_cube_inspect(struct cube_cube *c);  /* now */
void cube_conns_close(struct cube_domain *d); /* after the loop ended */

/* ---- State on disk ---- */

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

/* ---- Sessions ---- */

struct cube_session_own {
	struct cube_session s;
	struct cube_env_text *env_base; /* the sandbox's environment as this session has it */
	char *new_cwd;                  /* written; goes with the next command */
	uint64_t boot;                  /* of the agent that has it */
	bool begun;                     /* had a command: user is fixed */
};

static inline struct cube_session_own *cube_session_own(struct cube_session *s)
{
	return cube_container_of(s, struct cube_session_own, s);
}

struct cube_session *cube_session_new(struct cube_cube *c, const char *name,
				      uint64_t number); /* in the list */
struct cube_session *cube_session_by_number(struct cube_cube *c, uint64_t number);
void cube_session_delist(struct cube_session *s);
void cube_session_kick(struct cube_session *s); /* start the head if it can be */
void cube_session_news(struct cube_session *s, const struct cube_link_session *n);
void cube_session_show(struct cube_session *s, struct cube_job *j); /* the latest */
void cube_session_dequeue(struct cube_job *j);                      /* it ended: the next one's turn */
/* The environment that a start of @s brings along. */
int cube_session_start_env(struct cube_session *s, struct cube_buf *out);
void cube_session_started(struct cube_session *s);
void cube_session_load_exports(struct cube_session *s);
int cube_user_check(const char *user, struct cube_err *err);
void cube_session_anew(struct cube_session *s); /* the far side has nothing of it */

/* ---- Jobs ---- */

#define CUBE_NO_SLOT UINT32_MAX

struct cube_job_own {
	struct cube_job j;
	struct cube_list in_ended; /* own.ended */
	char *text;                /* up to CUBE_TEXT_INLINE bytes; NULL: none, or on disk */
	size_t text_len;
	bool text_on_disk;    /* jobs/N.cmd */
	uint32_t slot;        /* of its spool; CUBE_NO_SLOT: none */
	bool has_order;       /* two pipes: an index beside it */
	bool spool_dropped;   /* its output was given up for spool_limit */
	uint64_t spool_bytes; /* counted in the sandbox */
	uint64_t limit;       /* output_limit at its start */
	uint64_t boot;        /* of the agent it was sent to; 0: not sent */
	bool at_boot;         /* its template's: runs before the sandbox is usable */
	bool reported;        /* the far side spoke of it on this link */
	bool unforgotten;     /* the far side keeps its end record until told */
	bool unsettled;       /* ended, and its end is not in the journal yet */
	bool interrupted;     /* its writer was interrupted: sent again if the link was down */
	int fatal;            /* the last fatal signal that cubefs sent; 0: none */
	/* stdin */
	int in_fd;        /* jobs/in.N while needed; -1 */
	uint64_t in_size; /* bytes that were written: each is in the file until the far side has it */
	uint64_t in_fed;  /* of these, handed to the present link */
	uint64_t in_got;  /* of these, safe at the far side */
	uint64_t in_base; /* of these, given back to the disk */
	bool in_pipe;     /* the running command has an open stdin */
	bool in_eof;      /* end of input after what is on disk */
	bool eof_sent;
	/* transcript */
	uint64_t said_out, said_err;
};

static inline struct cube_job_own *cube_job_own(struct cube_job *j)
{
	return cube_container_of(j, struct cube_job_own, j);
}

struct cube_job *cube_job_new(struct cube_cube *c, const char *name, uint64_t number,
			      bool named); /* in the lists */
struct cube_job *cube_job_by_number(struct cube_cube *c, uint64_t number);
/* Cursor over those that have not ended, as cube_job_next: the walk bears that any of them ends or goes. */
struct cube_job *cube_job_next_live(struct cube_cube *c, uint64_t seq);
int cube_job_index_add(struct cube_job_index *x, struct cube_job *j); /* -ENOMEM */
void cube_job_index_take(struct cube_job_index *x, const struct cube_job *j);
void cube_job_index_free(struct cube_job_index *x);
static inline struct cube_job *cube_job_of_ended(struct cube_list *i)
{
	return &cube_list_entry(i, struct cube_job_own, in_ended)->j;
}
/* It has ended (finished_wall is known), and goes when there are too many; nothing for a named one. Not any more. */
void cube_job_ended_add(struct cube_job *j);
void cube_job_ended_take(struct cube_job *j);
int cube_job_check_text(bool argv, const char *text, size_t len, struct cube_err *err);
void cube_job_unlist(struct cube_job *j);
int cube_job_text_file(const struct cube_job *j, char out[32]);
void cube_job_forget(struct cube_job *j); /* out of the lists, files gone */
void cube_jobs_trim(struct cube_cube *c); /* jobs_kept, spool_limit */
/* job_run.c */
void cube_job_start(struct cube_job *j, const char *text,
		    size_t len);          /* if it can start now; else it waits on */
void cube_job_try(struct cube_job *j);    /* the same with the text that was kept */
void cube_job_again(struct cube_job *j);  /* what was sent never arrived */
void cube_jobs_kick(struct cube_cube *c); /* everything that waits for the sandbox */
/* job_end.c. Ending wakes; what is slower and nobody waits for (journal, transcript, events, trimming)
 * follows in settle, after the answers went out where that is possible. */
void cube_job_ended(struct cube_job *j, const struct cube_end_record *end, const struct cube_err *why);
/* Ends one of which there is no record: what the spool holds is its output. */
void cube_job_end_without(struct cube_job *j, enum cube_end how, int sig, const struct cube_err *why);
void cube_job_output(struct cube_job *j, uint64_t total, uint64_t err_total);
void cube_job_settle(struct cube_job *j);
void cube_jobs_settle(struct cube_cube *c); /* all that have ended */
void cube_job_transcribe(struct cube_job *j);
/* job_input.c */
int cube_job_input_file(const struct cube_job *j, char out[32]);
void cube_job_feed(struct cube_job *j); /* pass on what is on disk, as far as the far side takes it */
void cube_job_input_got(struct cube_job *j, uint64_t got); /* the far side has so much in all */
void cube_job_input_again(struct cube_job *j);             /* it has nothing: the start never arrived */
void cube_job_input_start(struct cube_job *j);             /* decides whether it has one */
void cube_job_input_done(struct cube_job *j);              /* it ended: nothing is read any more */
void cube_job_input_adopt(struct cube_job *j);             /* after a load: its writers are gone */

/* jobs_dir.c: after a load: files that belong to nothing go, slots that are taken are known. */
void cube_jobs_dir_clean(struct cube_cube *c);

/* output.c */
struct cube_output {
	atomic_uint refs;
	uint32_t slot;
	int out_fd, order_fd;
	uint64_t punched;
	/* pins, under the lock */
	uint64_t *pins; /* lowest offset that each keeps */
	size_t n_pins, cap_pins;
};
/* An empty spool for a job that starts. */
int cube_output_start(struct cube_job *j, struct cube_err *err);
void cube_output_reopen(struct cube_job *j); /* a job that was found running again */
int cube_output_dir(struct cube_cube *c);    /* STATE/cubes/UID/jobs is there */
void cube_output_ahead(struct cube_cube *c); /* make one ready for the next (behind) */
void cube_output_prepare(
	struct cube_cube *c); /* on the creating thread, no lock: the directory, the first spool */
void cube_output_release(struct cube_job *j); /* its files are given up (forgotten, or for spool_limit) */
void cube_output_punch(struct cube_job *j);
void cube_output_account(struct cube_job *j);
/* Totals by the files themselves. */
void cube_output_measure(struct cube_job *j, uint64_t *total, uint64_t *err_total);

#endif

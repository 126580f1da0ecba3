/* SPDX-License-Identifier: Apache-2.0 */
/* The domain: all that the daemon knows of sandboxes, sessions and jobs, behind one lock.
 *
 * A monitor. Whichever thread brings a request (FUSE worker, 9P), an event (the loop) or a result (pool)
 * takes the lock at the door with cube_domain_enter and gives it back with cube_domain_leave. Inside
 * there are no other locks and no waits. The lock is never held across a backend call, a system call on
 * a sandbox's files, an answer to the kernel or a notification: what must happen outside is *deferred*
 * and run by cube_domain_leave on the same thread, after the lock was given back. */
#ifndef CUBEFS_CTL_DOMAIN_H
#define CUBEFS_CTL_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/base/conf.h"
#include "backends/base/list.h"
#include "backends/base/loop.h"
#include "backends/base/map.h"
#include "backends/base/pool.h"
#include "ctl/there.h"
#include "ctl/wait.h"

struct cube_cube;
struct cube_checkpoint_entry;
struct cube_follow;
struct cube_volume_entry;
struct cube_events;
struct cube_errlog;

struct cube_deferred {
	struct cube_deferred *next;
	void (*fn)(struct cube_deferred *d); /* no lock held; owns *d */
};

/* One configured backend. */
struct cube_service {
	struct cube_list link; /* in domain.services, order of the configuration; the default first */
	struct cube_backend *backend;
	struct cube_status status; /* latest answer */
	uint64_t status_wall;      /* when; 0: never asked */
	struct cube_there there;   /* what the backend said it has, at the same time */
	struct cube_domain *domain;
	struct cube_list templates;  /* struct cube_template_entry (ctl/template.h) */
	struct cube_list removals;   /* of templates, under way (ctl/template.c) */
	struct cube_waitq removed;   /* one of them has ended */
	struct cube_list stocks;     /* struct cube_stock (ctl/stock.h): pools */
	uint64_t volumes_looked;     /* when the sizes of volumes were asked for; monotonic, 0: never */
	uint64_t checkpoints_looked; /* the same of checkpoints */
	uint64_t seq;                /* stable cursor for listings */
	struct cube_buf done; /* as cube_cube.done, of the backend and of its templates; shown in `status` */
	struct cube_follow *follow; /* what it tells by itself (ctl/follow.h); NULL: nothing */
};

/* News for whoever shows the tree (fs/): names that came and went, so that caches can be dropped. Called
 * under the lock; must only queue. Pointers may be NULL functions. */
struct cube_domain_watcher {
	void *ctx;
	void (*cube_added)(void *ctx, struct cube_cube *c);
	void (*cube_removed)(void *ctx, struct cube_cube *c,
			     const char *name); /* also under its old name at a rename */
	/* What is mounted in it: @gone, where it is not NULL, is no more. Its files are to be asked for anew. */
	void (*mounts_changed)(void *ctx, struct cube_cube *c, const char *gone);
	void (*volume_removed)(void *ctx, struct cube_volume_entry *v,
			       const char *name); /* also under its old name at a rename */
	void (*checkpoint_removed)(void *ctx, struct cube_checkpoint_entry *e,
				   const char *name); /* also under its old name at a rename */
	void (*entry_changed)(void *ctx, struct cube_cube *c, const char *dir,
			      const char *name); /* "jobs", "build" */
	/* It has other files: what is open in the old ones is stale, and they are to be asked for anew. */
	void (*files_replaced)(void *ctx, struct cube_cube *c);
	/* When a file below its files/ was last open (wall clock, ns): UINT64_MAX one is, 0 never. */
	uint64_t (*files_used)(void *ctx, struct cube_cube *c);
	/* Nothing runs in it; or (before anything is started, and behind its end) something may. */
	void (*files_quiet)(void *ctx, struct cube_cube *c, bool quiet);
	/* NULL: the data of files below files/ passes through the kernel alone; else why it is served. */
	const char *(*files_served)(void *ctx);
	/* Does the kernel keep names and attributes below files/? "yes", "some: WHY NOT ALL", "no: WHY". */
	const char *(*files_kept)(void *ctx);
};

/* What the verbs mkdir, rmdir and mv do: the operations of the tree that is shown, on the paths in
 * call->words[1] and [2], beneath the directory of the root or of the sandbox call->object. As a verb's run:
 * under the lock, 1 and cube_verb_finish later, or a refusal. */
enum cube_path_act { CUBE_PATH_MKDIR, CUBE_PATH_RMDIR, CUBE_PATH_MV };
struct cube_verb_call;
struct cube_domain_paths {
	void *ctx;
	/* NULL: no tree is shown */
	int (*start)(void *ctx, enum cube_path_act act, struct cube_verb_call *call, struct cube_err *err);
};

/* Who keeps what `set` has changed for the worker that follows: under the lock. */
struct cube_domain_keeper {
	void *ctx;
	void (*set)(void *ctx, const char *key, uint64_t value); /* NULL: nobody */
};

struct cube_domain {
	pthread_mutex_t lock;
	struct cube_loop *loop;
	struct cube_pool *pool;
	const struct cube_conf *conf;
	char *state_dir; /* absolute */
	int state_fd;
	struct cube_list services;
	struct cube_service *default_service;
	struct cube_map *by_name;  /* cubes with a name in the root */
	struct cube_list cubes;    /* all of these, by seq */
	struct cube_list volumes;  /* struct cube_volume_entry (ctl/volume.h) */
	struct cube_waitq changed; /* a cube came, went or changed its state */
	struct cube_events *events;
	struct cube_errlog *errors;
	struct cube_buf done; /* as cube_cube.done, of the root's verbs; shown in its `ctl` */
	struct cube_domain_watcher watcher;
	struct cube_domain_keeper keeper; /* from when the domain is open */
	struct cube_domain_paths paths;
	struct cube_deferred *deferred, **deferred_tail;
	uint64_t next_seq;
	uint64_t started_wall;
	uid_t uid; /* who mounted */
	gid_t gid;
	bool closing; /* shutting down: nothing new is accepted (-EHOSTDOWN) */
	/* settings changed by the root verb `set`, or given in the configuration's [daemon] */
	uint64_t output_limit;     /* 256 MiB */
	uint64_t spool_limit;      /* 1 GiB */
	uint32_t jobs_kept;        /* 128 */
	uint32_t exit_patience_s;  /* 30 */
	uint32_t ready_timeout_s;  /* 300: so long a template's `ready` may take */
	uint32_t port_connections; /* 4096: through exposed ports, at a time */
	uint64_t disk_reserve;     /* 1 GiB: kept free on the disk that holds the state, ... */
	uint32_t disk_percent;     /* 5: ... or so much of it, whichever is larger (guard.c) */
	uint32_t canary_s;         /* 10: so long a mount may be silent; 0: for ever */
	_Atomic uint32_t *canary;  /* where that is to be seen by the supervisor; NULL */
};

struct cube_domain_options {
	const char *state_dir; /* exists, 0700, locked by the caller (one daemon a state directory) */
	const struct cube_conf *conf;
	struct cube_loop *loop;
	uid_t uid;
	gid_t gid;
	_Atomic uint32_t *canary; /* the setting of that name is shown there; NULL */
};

/* Opens the configured backends (or the embedded default alone), loads and recovers what the state
 * directory has: intentions are finished or undone, what runs is linked again, what is gone is `lost`.
 * Returns before sandboxes are reconnected (that goes on behind). Called before threads are started;
 * cube_domain_start afterwards, when the process is in the background. */
int cube_domain_open(const struct cube_domain_options *o, struct cube_domain **ret, struct cube_err *err);
int cube_domain_start(struct cube_domain *d, struct cube_err *err);
/* Refuses new work, wakes whoever waits (they get -EHOSTDOWN or -EINTR), waits for what is at backends (at
 * most @ms), closes links; sandboxes and their commands go on. */
void cube_domain_shutdown(struct cube_domain *d, uint32_t ms);
/* Waits until nothing is at backends, at most @ms: then nothing is half done there. Not a lock: what others begin meanwhile
 * is begun. */
void cube_domain_settle(struct cube_domain *d, uint32_t ms);
void cube_domain_close(struct cube_domain *d); /* after the loop ended; frees */

void cube_domain_enter(struct cube_domain *d);
void cube_domain_leave(struct cube_domain *d);
/* Under the lock: have @x run after it. In order. */
void cube_domain_defer(struct cube_domain *d, struct cube_deferred *x);

/* Under the lock, after a start: in how many sandboxes commands ran when they were last heard of, that nobody has told
 * of yet. */
unsigned cube_domain_unheard(struct cube_domain *d);

/* Under the lock: by name, NULL if there is none. */
struct cube_cube *cube_domain_find(struct cube_domain *d, const char *name);
/* The first with seq above @seq, NULL at the end: a cursor that stands still while others come and go. */
struct cube_cube *cube_domain_next(struct cube_domain *d, uint64_t seq);
/* The one behind @c, which is one of them; NULL: it is the last. */
struct cube_cube *cube_domain_after(struct cube_domain *d, const struct cube_cube *c);
struct cube_service *cube_domain_service(struct cube_domain *d, const char *name); /* NULL: none */

/* The cube of this service that @info is about, one that a pool keeps or that is being destroyed too; NULL: nobody
 * here has it. */
struct cube_cube *cube_service_has(struct cube_service *s, const struct cube_info *info);
/* The cube of this service whose mark is @uid, one that a pool keeps too; NULL: none. */
struct cube_cube *cube_service_cube(struct cube_service *s, const char *uid);

/* Root verb `set` and the configuration's [daemon] section share one table of settings. */
int cube_domain_set(struct cube_domain *d, const char *key, const char *value, struct cube_err *err);

#endif

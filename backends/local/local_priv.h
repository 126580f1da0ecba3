/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the local backend and its sandboxes, for the files of this folder.
 *
 *   local.c      the table, opening, capabilities, status
 *   cube.c       the sandboxes that are known; their records, descriptors and mounts
 *   life.c       create, destroy, start, stop, pause, resume, limit
 *   look.c       inspect, list, usage, root; way_in.c: the link
 *   reach.c                ports: connections into it, what listens in it
 *   volume.c     volumes; mount.c: which volumes and binds a sandbox has
 *   bind.c       directories of this machine in a sandbox
 *   end.c        the end of processes, and what is cleaned up behind them
 *   launch.c     crun: from two mounts and a group to a running process 1; leftover.c: where that was cut off
 *   checkpoint.c, restore.c, view.c, changes.c  other states of its files
 *   template*.c  what a sandbox's root is made of; import*.c: how templates get here; layer.c: how they are
 *                built
 *   mask*.c, hidden.c, tree.c   the template `host`
 *   host.c, ids.c, agentfile.c  what is made once, before there are threads
 *   overlay.c, mnt.c, cgroup*.c, bundle.c, seccomp.c, filter.c, net.c   the kernel's side of it
 *   store*.c, set.c, image*.c   the layers on disk; record.c, disk.c, quota.c: what is noted, how much there is
 *                and may be
 *   probe.c      what this machine can do; doctor.c tells it
 *
 * Locks: `lock` guards the table of sandboxes, nothing else; it is held for look-ups only. A sandbox belongs
 * to the one call that is under way for it (CUBE_PAR_PER_CUBE). */
#ifndef CUBEFS_BACKENDS_LOCAL_LOCAL_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_LOCAL_PRIV_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/backend.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"
#include "backends/local/cgroup.h"
#include "backends/local/disk.h"
#include "backends/local/filter.h"
#include "backends/local/host.h"
#include "backends/local/mask.h"
#include "backends/local/net.h"
#include "backends/local/overlay.h"
#include "backends/local/record.h"
#include "backends/local/seed.h"
#include "backends/local/store.h"

extern const struct cube_backend_ops cube_backend_local;

/* What an archive may become, however small it is itself. 0: no bound but the disk. */
struct cube_local_bounds {
	uint64_t bytes, files;
};

struct cube_local {
	struct cube_backend base;
	struct cube_local_bounds bounds; /* of templates */
	uint32_t freeze_limit_ms; /* so long a sandbox may stand still while its files are copied; 0: any */
	struct cube_loop *loop;
	const struct cube_local_host *host;
	struct cube_local_store store; /* of the layers */
	char store_why[200];           /* why there is none; "" */
	struct cube_local_cgroups cgroups;
	struct cube_local_mask *mask; /* NULL: the template `host` is not to be had */
	char host_why[200];           /* and why */
	unsigned overlay_flags;
	char crun[PATH_MAX];      /* "": not installed */
	char crun_exec[PATH_MAX]; /* what is executed: crun, or a sealed copy of it */
	int crun_copy;
	struct cube_local_filter filter;
	const char *stage; /* where a launch attaches its mounts, in its own namespace */
	char version[64];
	struct cube_local_net net;
	int checkpoints; /* directory of their records */
	pthread_mutex_t view_lock;
	struct cube_map *views; /* checkpoint to struct local_view; by view_lock */
	struct cube_local_disk *disk;
	int state, cubes, templates, volumes; /* directories */
	atomic_bool swept;                    /* what imports left there before is removed */

	pthread_mutex_t lock;
	struct cube_map *map; /* id to struct local_cube */

	pthread_mutex_t volume_lock; /* held while one is mounted */
	struct cube_map *volume_map; /* uid to struct local_volume (volume.c) */
};

struct local_cube {
	char id[CUBE_ID_MAX + 1];
	int dir;
	bool damaged; /* its record cannot be read: it can only be destroyed */
	struct cube_local_record rec;
	int root, workspace;          /* its mounts, O_PATH or detached; -1: not mounted yet */
	int binds[CUBE_LOCAL_MOUNTS]; /* kept mounts of those of rec.mounts that are binds, else -1 */
	void *oom;                    /* watch of its memory limit (ns/oom.h), NULL: none */
};

static inline struct cube_local *cube_local_of(struct cube_backend *b)
{
	return cube_container_of(b, struct cube_local, base);
}

/* ---- cube.c ---- */

/* The sandbox, read from the disk when it was not known. -ENOENT. Belongs to the backend. */
int cube_local_cube_get(struct cube_local *b, const char *id, struct local_cube **ret, struct cube_err *err);
/* A new one with its directory and record (stage starting); -EEXIST. */
int cube_local_cube_new(struct cube_local *b, const char *id, const struct cube_local_record *rec,
			struct local_cube **ret, struct cube_err *err);
/* Forgets it and closes what it holds; its directory stays. */
void cube_local_cube_drop(struct cube_local *b, struct local_cube *c);
/* Does its process 1 live? */
bool cube_local_cube_runs(const struct local_cube *c);
/* Its two mounts, made or taken from its running process. @seed: its root layer is fresh and gets this; else
 * NULL. */
int cube_local_cube_mount(struct cube_local *b, struct local_cube *c, const struct cube_local_seed *seed,
			  struct cube_err *err);
/* An overlay of the root layer of the set @id over @template, kept; mountinfo shows the id. @seed as above. */
int cube_local_mount_root(struct cube_local *b, const char *id, const char *template,
			  const struct cube_local_seed *seed, int *ret_fd, struct cube_err *err);
/* The template alone, read only. */
int cube_local_mount_template(struct cube_local *b, const char *template, int *ret_fd, struct cube_err *err);
/* The /workspace that it brings along; *ret_fd -1: none. */
int cube_local_mount_template_workspace(struct cube_local *b, const char *template, int *ret_fd,
					struct cube_err *err);
/* An overlay of the workspace layer of the set @id over the /workspace of @template (NULL: over nothing), kept;
 * mountinfo shows the id. */
int cube_local_mount_workspace(struct cube_local *b, const char *id, const char *template, int *ret_fd,
			       struct cube_err *err);
/* What it takes of the disk is limited as its record says, or (@on false) not at all: for what cubefs itself has to
 * write into one that is full. Nothing where it has no limit. */
int cube_local_cube_quota(struct cube_local *b, const struct local_cube *c, bool on, struct cube_err *err);
/* Closes the mounts. */
void cube_local_cube_unmount(struct local_cube *c);
/* Writes the record. */
int cube_local_cube_save(struct local_cube *c, struct cube_err *err);
/* Is there a sandbox of this template? */
bool cube_local_cubes_use(struct cube_local *b, const char *template);

/* ---- template.c ---- */

#define CUBE_LOCAL_LAYERS (CUBE_OVERLAY_LAYERS - 2) /* of a template; `host` takes two more */

/* What a root overlay is mounted over. Close with cube_local_base_close. */
struct cube_local_base {
	int lower[CUBE_OVERLAY_LAYERS]; /* topmost first */
	unsigned n_lower;
	bool index;   /* layers that can be told again after a restart */
	bool stacked; /* the last one is a kept mount */
};
int cube_local_template_open(struct cube_local *b, const char *name, struct cube_local_base *ret,
			     struct cube_err *err);
/* The same for the /workspace that it brings along; n_lower may be 0. */
int cube_local_template_workspace(struct cube_local *b, const char *name, struct cube_local_base *ret,
				  struct cube_err *err);
void cube_local_base_close(struct cube_local_base *base);
/* Directories of this machine that are bound read only in it. */
void cube_local_template_binds(const struct cube_local *b, const char *name, struct cube_local_shown *ret);
/* Waits for what has to be found out before it can be opened; that again waits otherwise, without being
 * interrupted. -EINTR. */
int cube_local_template_wait(const struct cube_local *b, const char *name, struct cube_cancel *cancel,
			     struct cube_err *err);
/* Of a create line without one. */
const char *cube_local_template_default(const struct cube_local *b);
/* -EOPNOTSUPP: it is there and can run no sandbox. */
int cube_local_template_check_run(struct cube_local *b, const char *name, struct cube_err *err);

int cube_local_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
			     void *ctx, struct cube_err *err);
int cube_local_template_remove(struct cube_backend *b, const char *name, struct cube_err *err);
int cube_local_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
			       struct cube_err *err);

/* ---- import.c, layer.c ---- */

int cube_local_template_check(struct cube_backend *b, const struct cube_template_order *o,
			      struct cube_err *err);
int cube_local_template_import(struct cube_backend *b, const struct cube_template_order *o,
			       struct cube_cancel *cancel, struct cube_err *err);
/* What a daemon that was killed left of imports is removed, but for what was downloaded. Once. */
void cube_local_import_sweep(struct cube_local *b);
/* What is left of one that nobody is about to go on with. */
void cube_local_import_forget(struct cube_local *b, const char *name);
int cube_local_template_commit(struct cube_backend *b, const char *id, const char *name,
			       struct cube_cancel *cancel, struct cube_err *err);
int cube_local_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
			       const struct cube_template_config *config, struct cube_err *err);

/* ---- template_keep.c ---- */

int cube_local_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
			     struct cube_cancel *cancel, struct cube_err *err);

/* ---- mount.c: volumes and binds of a sandbox ---- */

/* The volumes of a create line become its record's. */
int cube_local_mounts_set(struct cube_local_record *r, const struct cube_spec *spec, struct cube_err *err);
/* The volume at /workspace; NULL: it has its own. */
const struct cube_local_mount *cube_local_mounts_workspace(const struct local_cube *c);
/* One more, at its place in the order; @fd (taken over) is a bind's, else -1. Its index. */
unsigned cube_local_mounts_add(struct local_cube *c, const struct cube_local_mount *m, int fd);
void cube_local_mounts_take(struct local_cube *c, unsigned i); /* one less */
/* The directory on which the @i-th is mounted is there, made where it was missing. @c is mounted. */
int cube_local_mounts_point(struct cube_local *b, struct local_cube *c, unsigned i, struct cube_err *err);
/* A detached mount of the @i-th, to be attached in it; the directory for it is there. @c is mounted. */
int cube_local_mounts_clone(struct cube_local *b, struct local_cube *c, unsigned i, int *ret_fd,
			    struct cube_err *err);
/* Adds them to what is shown of it. */
int cube_local_mounts_root(struct cube_local *b, struct local_cube *c, struct cube_root *root,
			   struct cube_err *err);

/* ---- bind.c ---- */

/* Is what the @i-th mount, a bind, shows known to this daemon? Looks into what runs. */
bool cube_local_bind_known(struct local_cube *c, unsigned i);
/* It has just been started: which mounts inside are its binds. */
void cube_local_binds_started(struct local_cube *c);
int cube_local_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
		    struct cube_cancel *cancel, struct cube_err *err);
int cube_local_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err);

/* ---- life.c ---- */

/* As cube_local_cube_get, and what ended by itself is noted, what stands still for nothing goes on. -EIO: its record
 * is damaged. */
int cube_local_cube_sound(struct cube_local *b, const char *id, struct local_cube **ret,
			  struct cube_err *err);
/* All its processes stand still, or go on. -EBUSY: they cannot be had to within seconds. */
int cube_local_cube_freeze(const struct cube_local *b, struct local_cube *c, bool on,
			   struct cube_cancel *cancel, struct cube_err *err);
/* Starts one that is stopped; on failure it stays so. */
int cube_local_cube_start(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
			  struct cube_err *err);
/* The files that cubefs writes into its fresh root; borrows from both. */
struct cube_local_seed cube_local_seed_of(const struct cube_local *b, const struct local_cube *c);
/* Mounts it with an empty root layer, which gets them. */
int cube_local_cube_mount_fresh(struct cube_local *b, struct local_cube *c, struct cube_err *err);
/* In its mounted root, where files of cubefs are: another host name, and a machine id of its own. */
int cube_local_identity(const struct local_cube *c, const char *old, const char *name, struct cube_err *err);

int cube_local_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		      char **ret_id, struct cube_err *err);
int cube_local_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
int cube_local_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
int cube_local_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		    struct cube_err *err);
int cube_local_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
int cube_local_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		      struct cube_err *err);
int cube_local_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		     struct cube_err *err);

/* ---- rename.c ---- */

int cube_local_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);

/* ---- look.c ---- */

int cube_local_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int cube_local_list(struct cube_backend *b, struct cube_cancel *cancel,
		    void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);
int cube_local_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err);
int cube_local_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
/* Ids as all of this machine's sandboxes have them; no descriptors. */
struct cube_root cube_local_root_of(const struct cube_local *b);
int cube_local_root_add(struct cube_root *r, const char *path, int fd, bool read_only, bool shared);
/* What of this machine is bound in it. */
int cube_local_root_binds(const struct cube_local *b, const char *template, struct cube_root *r);
int cube_local_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err);
int cube_local_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
		    void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);

/* ---- reach.c ---- */

/* The directory in /proc of its process 1, which no other process can take over; -EHOSTDOWN. */
int cube_local_cube_proc(const struct local_cube *c, struct cube_err *err);
int cube_local_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
		    struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);
int cube_local_listening(struct cube_backend *b, const char *id,
			 void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			 struct cube_err *err);
int cube_local_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
		      void *ctx, struct cube_err *err);

/* ---- end.c ---- */

/* Ends everything that runs of it and what was made for it: processes, groups, helper. The files stay. */
int cube_local_cube_end(struct cube_local *b, struct local_cube *c, struct cube_err *err);
/* Notes the end of a process 1 that is gone (reason) and cleans up behind it; nothing where it runs. */
int cube_local_cube_reap(struct cube_local *b, struct local_cube *c, struct cube_err *err);

/* ---- launch.c ---- */

/* Starts its process 1; @c is mounted. On success the record says `running`; on failure nothing runs. */
int cube_local_launch(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
		      struct cube_err *err);

/* ---- probe.c, doctor.c ---- */

/* Finds programs and capabilities; fills base.caps and base.missing. */
void cube_local_probe(struct cube_local *b);
void cube_local_doctor(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx);

#endif

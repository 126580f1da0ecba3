/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a sandbox. */
#include <errno.h>
#include <stdlib.h>

#include "ctl/errlog.h"
#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

CUBE_RENDER(ctl, struct cube_cube, cube_show_ctl(o, out))
CUBE_RENDER(info, struct cube_cube, cube_show_info(o, out))
CUBE_RENDER(access, struct cube_cube, cube_buf_add(out, o->access.text.data, o->access.text.len))
CUBE_RENDER(error, struct cube_cube, cube_errlog_text(o->errors, out))
CUBE_RENDER(env, struct cube_cube, cube_show_env(o, out))
CUBE_RENDER(exit, struct cube_cube, cube_show_job_exit(cube_session_main(o)->latest, out))

/* Who reads it wants the counters; they are asked for behind. */
static int status_text(void *p, struct cube_buf *out)
{
	cube_cube_look(p);
	return cube_show_status(p, out);
}

static int workspace_text(void *p, struct cube_buf *out)
{
	(void)p;
	return cube_buf_adds(out, "files/workspace");
}

static int clone_text(void *p, struct cube_buf *out)
{
	(void)p;
	return cube_buf_adds(
		out, "open for reading and writing (exec 3<>clone; read name <&3): makes a numbered job and "
		     "gives its name; without a command it is forgotten at the close\n");
}

/* ---- jobs/ ---- */

static void *job_find(void *p, const char *name)
{
	return cube_job_find(p, name);
}

static void *job_next(void *p, uint64_t seq)
{
	return cube_job_next(p, seq);
}

static int job_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_job *j;
	int code = cube_job_create(p, name, &j, &r->err);

	if (code < 0)
		return code;
	*ret = j;
	cube_job_unref(j); /* the sandbox keeps it */
	return 0;
}

static int job_drop(struct cube_req *r, void *child)
{
	return cube_job_remove(child, &r->err);
}

static bool last_present(void *p)
{
	return ((struct cube_cube *)p)->last_job != NULL;
}

static int last_text(void *p, struct cube_buf *out)
{
	const struct cube_cube *c = p;

	return cube_buf_adds(out, c->last_job != NULL ? c->last_job->name : "");
}

enum cube_slot {
	SLOT_SELF,
	SLOT_CTL,
	SLOT_EXEC,
	SLOT_EXIT,
	SLOT_WORKSPACE,
	SLOT_LOGS,
	SLOT_STATUS,
	SLOT_INFO,
	SLOT_ERROR,
	SLOT_ENV,
	SLOT_JOBS_CLONE,
	SLOT_JOBS_LAST,
	SLOT_FILES,
	SLOT_SESSIONS,
	SLOT_JOBS,
	SLOT_PORTS,
	SLOT_METRICS,
	SLOT_ACCESS,
	SLOT_CHANGES,
	SLOT_CHECKPOINTS,
};

static const struct cube_entry jobs_entries[] = {
	{.name = "clone",
	 .slot = SLOT_JOBS_CLONE,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_clone,
	 .render = clone_text,
	 .fresh = true},
	{.name = "last",
	 .slot = SLOT_JOBS_LAST,
	 .mode = S_IFLNK | 0777,
	 .present = last_present,
	 .render = last_text},
};

static const struct cube_level jobs_level = {
	CUBE_LEVEL(jobs_entries), .child = &cube_type_job, .find = job_find,
	.next = job_next,         .make = job_make,        .drop = job_drop,
};

/* ---- sessions/ ---- */

static void *session_find(void *p, const char *name)
{
	return cube_session_find(p, name);
}

static void *session_next(void *p, uint64_t seq)
{
	return cube_session_next(p, seq);
}

/* A session needs the sandbox running: it waits for one that is being made or resumed. */
static int session_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_cube *c = p;
	struct cube_session *s;
	int code = cube_cube_usable(c, true, &r->err);

	if (code > 0)
		return cube_req_wait(r, &c->changed);
	if (code == 0)
		code = cube_session_create(c, name, &s, &r->err);
	if (code == 0)
		*ret = s;
	return code;
}

static int session_drop(struct cube_req *r, void *child)
{
	return cube_session_remove(child, &r->err);
}

static const struct cube_level sessions_level = {
	.child = &cube_type_session,
	.find = session_find,
	.next = session_next,
	.make = session_make,
	.drop = session_drop,
};

/* ---- the sandbox ---- */

#define SESSIONS_ENTRY                                                                                       \
	{                                                                                                    \
		.name = "sessions", .slot = SLOT_SESSIONS, .mode = CUBE_DIR_MODE, .level = &sessions_level,  \
		.needs = CUBE_CAP_EXEC                                                                       \
	}
#define JOBS_ENTRY                                                                                           \
	{                                                                                                    \
		.name = "jobs", .slot = SLOT_JOBS, .mode = CUBE_DIR_MODE, .level = &jobs_level,              \
		.needs = CUBE_CAP_EXEC                                                                       \
	}
#define PORTS_ENTRY                                                                                          \
	{                                                                                                    \
		.name = "ports", .slot = SLOT_PORTS, .mode = CUBE_DIR_MODE, .level = &cube_level_ports,      \
		.needs = CUBE_CAP_PORTS                                                                      \
	}

#define CHECKPOINTS_ENTRY                                                                                    \
	{                                                                                                    \
		.name = "checkpoints", .slot = SLOT_CHECKPOINTS, .mode = CUBE_DIR_MODE,                      \
		.level = &cube_level_checkpoints, .needs = CUBE_CAP_CHECKPOINTS                              \
	}

const struct cube_entry cube_entry_checkpoints = CHECKPOINTS_ENTRY;
const struct cube_entry cube_entry_sessions = SESSIONS_ENTRY;
const struct cube_entry cube_entry_jobs = JOBS_ENTRY;
const struct cube_entry cube_entry_ports = PORTS_ENTRY;

/* Files before directories: who removes meets them first (mark.c). */
static const struct cube_entry cube_entries[] = {
	{.name = "ctl",
	 .slot = SLOT_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = ctl_text,
	 .fresh = true},
	{.name = "exec",
	 .slot = SLOT_EXEC,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_exec,
	 .fresh = true,
	 .needs = CUBE_CAP_EXEC},
	{.name = "exit",
	 .slot = SLOT_EXIT,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_exit,
	 .render = exit_text,
	 .needs = CUBE_CAP_EXEC},
	{.name = "workspace",
	 .slot = SLOT_WORKSPACE,
	 .mode = S_IFLNK | 0777,
	 .render = workspace_text,
	 .constant = true,
	 .needs = CUBE_CAP_FILES},
	{.name = "logs", .slot = SLOT_LOGS, .mode = CUBE_BOTH_MODE, .class = &cube_class_ring},
	{.name = "metrics",
	 .slot = SLOT_METRICS,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ring,
	 .needs = CUBE_CAP_USAGE,
	 .arg = CUBE_RING_METRICS},
	{.name = "status",
	 .slot = SLOT_STATUS,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = status_text},
	{.name = "info.json",
	 .slot = SLOT_INFO,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = info_text},
	{.name = "error",
	 .slot = SLOT_ERROR,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = error_text},
	{.name = "access",
	 .slot = SLOT_ACCESS,
	 .mode = S_IFREG | 0400,
	 .class = &cube_class_asked,
	 .render = access_text,
	 .needs = CUBE_CAP_ACCESS,
	 .arg = CUBE_ASKED_ACCESS},
	{.name = "changes",
	 .slot = SLOT_CHANGES,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_changes,
	 .needs = CUBE_CAP_CHANGES},
	{.name = "env",
	 .slot = SLOT_ENV,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .render = env_text,
	 .arg = CUBE_IMAGE_ENV,
	 .fresh = true,
	 .needs = CUBE_CAP_EXEC},
	{.name = "files", .slot = SLOT_FILES, .mode = CUBE_DIR_MODE, .files = true, .needs = CUBE_CAP_FILES},
	CHECKPOINTS_ENTRY,
	SESSIONS_ENTRY,
	JOBS_ENTRY,
	PORTS_ENTRY,
};

static const struct cube_level cube_level = {CUBE_LEVEL(cube_entries), .removal = CUBE_REMOVAL_MARKS};
static const struct cube_entry cube_self = {
	.name = "", .slot = SLOT_SELF, .mode = CUBE_DIR_MODE, .level = &cube_level};

/* ---- type ---- */

static void type_ref(void *p)
{
	(void)cube_cube_ref(p);
}

static void type_unref(void *p)
{
	cube_cube_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_cube *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_cube *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_cube *)p)->seq;
}

static uint64_t type_seed(void *p)
{
	return strtoull(((struct cube_cube *)p)->uid, NULL, 16);
}

static bool type_gone(void *p)
{
	return ((struct cube_cube *)p)->phase == CUBE_REMOVED;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_cube *)p)->created_wall;
}

static struct cube_cube *type_cube(void *p)
{
	return p;
}

static struct cube_service *type_service(void *p)
{
	return ((struct cube_cube *)p)->service;
}

static void *type_parent(void *p)
{
	return ((struct cube_cube *)p)->domain;
}

static const char *real_uid(void *p)
{
	return ((struct cube_cube *)p)->uid;
}

static uint32_t real_generation(void *p)
{
	return ((struct cube_cube *)p)->generation;
}

static int real_usable(void *p, struct cube_waitq **changed, struct cube_err *err)
{
	struct cube_cube *c = p;

	*changed = &c->changed;
	return cube_cube_files_usable(c, err);
}

static int real_fetch(void *p,
		      void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err),
		      void *ctx)
{
	return cube_cube_root_async(p, done, ctx);
}

static const struct cube_real cube_real_files = {
	.uid = real_uid, .generation = real_generation, .usable = real_usable, .fetch = real_fetch};

const struct cube_type cube_type_cube = {
	.what = "sandbox",
	.self = &cube_self,
	.ref = type_ref,
	.unref = type_unref,
	.slot = type_slot,
	.name = type_name,
	.seq = type_seq,
	.seed = type_seed,
	.gone = type_gone,
	.born = type_born,
	.cube = type_cube,
	.service = type_service,
	.parent = &cube_type_root,
	.within = &cube_entry_root,
	.parent_of = type_parent,
	.real = &cube_real_files,
};

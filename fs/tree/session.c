/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a session. */
#include "ctl/show.h"
#include "fs/tree/type.h"

CUBE_RENDER(ctl, struct cube_session, cube_show_session_ctl(o, out))
CUBE_RENDER(status, struct cube_session, cube_show_session_status(o, out))
CUBE_RENDER(exit, struct cube_session, cube_show_job_exit(o->latest, out))
CUBE_RENDER(env, struct cube_session, cube_session_env(o, out))
CUBE_RENDER(cwd, struct cube_session, cube_buf_printf(out, "%s\n", o->cwd != NULL ? o->cwd : "/workspace"))
CUBE_RENDER(user, struct cube_session, o->user != NULL ? cube_buf_printf(out, "%s\n", o->user) : 0)

enum session_slot { SLOT_SELF, SLOT_EXEC, SLOT_EXIT, SLOT_ENV, SLOT_CWD, SLOT_USER, SLOT_STATUS, SLOT_CTL };

static const struct cube_entry session_entries[] = {
	{.name = "exec", .slot = SLOT_EXEC, .mode = CUBE_BOTH_MODE, .class = &cube_class_exec, .fresh = true},
	{.name = "exit",
	 .slot = SLOT_EXIT,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_exit,
	 .render = exit_text},
	{.name = "env",
	 .slot = SLOT_ENV,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .render = env_text,
	 .arg = CUBE_IMAGE_ENV,
	 .fresh = true},
	{.name = "cwd",
	 .slot = SLOT_CWD,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .render = cwd_text,
	 .arg = CUBE_IMAGE_CWD,
	 .fresh = true},
	{.name = "user",
	 .slot = SLOT_USER,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .render = user_text,
	 .arg = CUBE_IMAGE_USER,
	 .fresh = true},
	{.name = "status",
	 .slot = SLOT_STATUS,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = status_text},
	{.name = "ctl",
	 .slot = SLOT_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = ctl_text,
	 .fresh = true},
};

static const struct cube_level session_level = {CUBE_LEVEL(session_entries), .removal = CUBE_REMOVAL_IGNORED};
static const struct cube_entry session_self = {
	.name = "", .slot = SLOT_SELF, .mode = CUBE_DIR_MODE, .level = &session_level};

static void type_ref(void *p)
{
	(void)cube_session_ref(p);
}

static void type_unref(void *p)
{
	cube_session_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_session *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_session *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_session *)p)->seq;
}

/* Even: jobs of the same sandbox are odd. */
static uint64_t type_seed(void *p)
{
	return ((struct cube_session *)p)->number << 1;
}

static bool type_gone(void *p)
{
	return ((struct cube_session *)p)->removed;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_session *)p)->cube->created_wall;
}

static struct cube_cube *type_cube(void *p)
{
	return ((struct cube_session *)p)->cube;
}

static struct cube_service *type_service(void *p)
{
	return type_cube(p)->service;
}

static void *type_parent(void *p)
{
	return ((struct cube_session *)p)->cube;
}

const struct cube_type cube_type_session = {
	.what = "session",
	.self = &session_self,
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
	.parent = &cube_type_cube,
	.within = &cube_entry_sessions,
	.parent_of = type_parent,
};

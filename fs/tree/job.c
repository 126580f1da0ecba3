/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a job. */
#include "ctl/show.h"
#include "fs/tree/type.h"

CUBE_RENDER(ctl, struct cube_job, cube_show_job_ctl(o, out))
CUBE_RENDER(status, struct cube_job, cube_show_job_status(o, out))
CUBE_RENDER(exit, struct cube_job, cube_show_job_exit(o, out))
CUBE_RENDER(cmd, struct cube_job, o->argv ? 0 : cube_job_text(o, false, out))
CUBE_RENDER(argv, struct cube_job, o->argv ? cube_job_text(o, true, out) : 0)
CUBE_RENDER(cwd, struct cube_job, o->cwd != NULL ? cube_buf_printf(out, "%s\n", o->cwd) : 0)
CUBE_RENDER(user, struct cube_job, o->user != NULL ? cube_buf_printf(out, "%s\n", o->user) : 0)

/* As lines, like everywhere: kept are NUL separated words. */
static int env_text(void *p, struct cube_buf *out)
{
	const struct cube_job *j = p;
	size_t before = out->len;

	if (!j->has_env)
		return cube_show_env(j->cube, out);
	if (cube_buf_add(out, j->env.data, j->env.len) < 0)
		return out->error;
	for (size_t i = before; i < out->len; i++)
		out->data[i] = out->data[i] == '\0' ? '\n' : out->data[i];
	return 0;
}

enum job_slot {
	SLOT_SELF,
	SLOT_CMD,
	SLOT_ARGV,
	SLOT_STDIN,
	SLOT_STDOUT,
	SLOT_STDERR,
	SLOT_OUTPUT,
	SLOT_EXIT,
	SLOT_STATUS,
	SLOT_CTL,
	SLOT_ENV,
	SLOT_CWD,
	SLOT_USER,
};

static const struct cube_entry job_entries[] = {
	{.name = "cmd",
	 .slot = SLOT_CMD,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_command,
	 .render = cmd_text,
	 .arg = 0,
	 .fresh = true},
	{.name = "argv",
	 .slot = SLOT_ARGV,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_command,
	 .render = argv_text,
	 .arg = 1,
	 .fresh = true},
	{.name = "stdin",
	 .slot = SLOT_STDIN,
	 .mode = CUBE_WRITE_MODE,
	 .class = &cube_class_stdin,
	 .fresh = true},
	{.name = "stdout",
	 .slot = SLOT_STDOUT,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_output,
	 .arg = CUBE_STREAM_STDOUT},
	{.name = "stderr",
	 .slot = SLOT_STDERR,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_output,
	 .arg = CUBE_STREAM_STDERR},
	{.name = "output",
	 .slot = SLOT_OUTPUT,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_output,
	 .arg = CUBE_STREAM_OUTPUT},
	{.name = "exit",
	 .slot = SLOT_EXIT,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_exit,
	 .render = exit_text},
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
};

static const struct cube_level job_level = {CUBE_LEVEL(job_entries), .removal = CUBE_REMOVAL_IGNORED};
static const struct cube_entry job_self = {
	.name = "", .slot = SLOT_SELF, .mode = CUBE_DIR_MODE, .level = &job_level};

static void type_ref(void *p)
{
	(void)cube_job_ref(p);
}

static void type_unref(void *p)
{
	cube_job_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_job *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_job *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_job *)p)->seq;
}

/* Odd: sessions of the same sandbox are even. */
static uint64_t type_seed(void *p)
{
	return ((struct cube_job *)p)->number << 1 | 1;
}

static bool type_gone(void *p)
{
	return ((struct cube_job *)p)->forgotten;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_job *)p)->created_wall;
}

static struct cube_cube *type_cube(void *p)
{
	return ((struct cube_job *)p)->cube;
}

static struct cube_service *type_service(void *p)
{
	return type_cube(p)->service;
}

static void *type_parent(void *p)
{
	return ((struct cube_job *)p)->cube;
}

const struct cube_type cube_type_job = {
	.what = "job",
	.self = &job_self,
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
	.within = &cube_entry_jobs,
	.parent_of = type_parent,
};

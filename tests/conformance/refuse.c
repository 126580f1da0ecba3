/* SPDX-License-Identifier: Apache-2.0 */
/* What is not claimed: -EOPNOTSUPP with a sentence, and nothing has changed. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

/* An operation on a sandbox that must not happen. */
static void expect_refusal(struct subject *s,
			   int (*call)(struct subject *s, const char *id, struct cube_err *err))
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	expect_failure(call(s, id, &err), -EOPNOTSUPP, &err);
	assert_non_null(strstr(err.text, s->stage.b->name));
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static int call_pause(struct subject *s, const char *id, struct cube_err *err)
{
	return cube_backend_pause(s->stage.b, id, NULL, err);
}

static int call_resume(struct subject *s, const char *id, struct cube_err *err)
{
	return cube_backend_resume(s->stage.b, id, NULL, err);
}

static int call_stop(struct subject *s, const char *id, struct cube_err *err)
{
	return cube_backend_stop(s->stage.b, id, 0, NULL, err);
}

static int call_start(struct subject *s, const char *id, struct cube_err *err)
{
	return cube_backend_start(s->stage.b, id, NULL, err);
}

static int call_link(struct subject *s, const char *id, struct cube_err *err)
{
	struct ear *e;

	return ear_try(&s->stage, id, &e, err);
}

static int call_root(struct subject *s, const char *id, struct cube_err *err)
{
	struct cube_root root;

	return cube_backend_root(s->stage.b, id, &root, err);
}

static int call_usage(struct subject *s, const char *id, struct cube_err *err)
{
	struct cube_usage usage;

	return cube_backend_usage(s->stage.b, id, &usage, err);
}

static int call_dial(struct subject *s, const char *id, struct cube_err *err)
{
	const struct cube_target t = {.kind = CUBE_TARGET_TCP, .port = 1};
	int fd;

	return cube_backend_dial(s->stage.b, id, &t, NULL, &fd, err);
}

static void no_ports(struct subject *s)
{
	expect_refusal(s, call_dial);
}

static void no_exec(struct subject *s)
{
	expect_refusal(s, call_link);
}

static void no_files(struct subject *s)
{
	expect_refusal(s, call_root);
}

static void no_pause(struct subject *s)
{
	expect_refusal(s, call_pause);
	expect_refusal(s, call_resume);
}

static void no_stop(struct subject *s)
{
	expect_refusal(s, call_stop);
	expect_refusal(s, call_start);
}

static void no_usage(struct subject *s)
{
	expect_refusal(s, call_usage);
}

static void template_none(void *ctx, const struct cube_template *t)
{
	(void)ctx;
	fail_msg("listed %s", t->name);
}

static void log_none(void *ctx, const char *line)
{
	(void)ctx;
	fail_msg("logged %s", line);
}

static void percent_none(void *ctx, unsigned percent)
{
	(void)ctx;
	fail_msg("at %u percent", percent);
}

static void no_templates(struct subject *s)
{
	const struct cube_template_order o = {
		.name = "t", .source = "/", .fd = -1, .log = log_none, .progress = percent_none};
	struct cube_err err;

	expect_failure(cube_backend_template_list(s->stage.b, template_none, NULL, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_template_import(s->stage.b, &o, NULL, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_template_remove(s->stage.b, "t", &err), -EOPNOTSUPP, &err);
}

static void volume_none(void *ctx, const struct cube_volume *v)
{
	(void)ctx;
	fail_msg("listed %s", v->uid);
}

static void no_volumes(struct subject *s)
{
	static const struct cube_spec_volume volume = {.volume = "00000000000000aa", .path = "/data"};
	struct cube_root root;
	struct cube_err err;

	expect_failure(cube_backend_volume_make(s->stage.b, volume.volume, "v", NULL, &err), -EOPNOTSUPP,
		       &err);
	expect_failure(cube_backend_volume_list(s->stage.b, volume_none, NULL, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_volume_root(s->stage.b, volume.volume, &root, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_volume_remove(s->stage.b, volume.volume, &err), -EOPNOTSUPP, &err);
}

static int call_bind(struct subject *s, const char *id, struct cube_err *err)
{
	const struct cube_bind bind = {.path = "/mnt", .fd = -1};

	return cube_backend_bind(s->stage.b, id, &bind, NULL, err);
}

static int call_unbind(struct subject *s, const char *id, struct cube_err *err)
{
	return cube_backend_unbind(s->stage.b, id, "/mnt", err);
}

static void no_bind(struct subject *s)
{
	expect_refusal(s, call_bind);
	expect_refusal(s, call_unbind);
}

static void count_each(void *ctx, const struct cube_info *info)
{
	(void)info;
	(*(unsigned *)ctx)++;
}

/* A create line that asks for what cannot be kept makes nothing. */
static void expect_no_create(struct subject *s, const struct cube_spec *spec)
{
	unsigned before = 0, after = 0;
	struct cube_err err;
	char *id = NULL;

	assert_int_equal(cube_backend_list(s->stage.b, NULL, count_each, &before, NULL), 0);
	expect_failure(cube_backend_check_spec(s->stage.b, spec, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_create(s->stage.b, spec, NULL, &id, &err), -EOPNOTSUPP, &err);
	assert_null(id);
	assert_int_equal(cube_backend_list(s->stage.b, NULL, count_each, &after, NULL), 0);
	assert_int_equal(before, after);
}

static void expect_no_limit(struct subject *s, const struct cube_limits *limits)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	spec.limits = *limits;
	expect_no_create(s, &spec);
	expect_failure(cube_backend_limit(s->stage.b, id, limits, &err), -EOPNOTSUPP, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void no_volume_at_creation(struct subject *s)
{
	static const struct cube_spec_volume volume = {.volume = "00000000000000aa", .path = "/data"};
	char uid[17];
	struct cube_spec spec = stage_spec(uid);

	spec.volumes = &volume;
	spec.n_volumes = 1;
	expect_no_create(s, &spec);
}

static void no_net(struct subject *s)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);

	spec.net = CUBE_NET_OPEN;
	expect_no_create(s, &spec);
}

static void no_cpus(struct subject *s)
{
	expect_no_limit(s, &(struct cube_limits){.cpus_milli = 500});
}

static void no_memory(struct subject *s)
{
	expect_no_limit(s, &(struct cube_limits){.memory = 1 << 30});
}

static void no_pids(struct subject *s)
{
	expect_no_limit(s, &(struct cube_limits){.pids = 50});
}

static void no_disk(struct subject *s)
{
	expect_no_limit(s, &(struct cube_limits){.disk = 1 << 30});
}

/* A job that asks for what cannot be had is refused at its start. */
static void expect_no_job(struct subject *s, void (*ask)(struct cube_link_start *start))
{
	struct bed b = bed_open(s);
	struct cube_err err;
	struct run r;

	run_init(&r, b.ear, "true");
	ask(&r.start);
	expect_failure(cube_link_start(b.ear->link, &r.start, &err), -EOPNOTSUPP, &err);
	assert_null(ear_listen(b.ear, HEARD_STARTED, r.start.job, 50));
	run_done(&r);
	cube_free(run_text(b.ear, "true"));
	bed_close(&b);
}

static void ask_tty(struct cube_link_start *start)
{
	start->tty = true;
	start->rows = start->cols = 10;
}

static void ask_user(struct cube_link_start *start)
{
	start->user = "nobody";
}

static void no_tty(struct subject *s)
{
	expect_no_job(s, ask_tty);
}

static void no_users(struct subject *s)
{
	expect_no_job(s, ask_user);
}

static void no_rename(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	expect_failure(cube_backend_rename(s->stage.b, id, "other", &err), -EOPNOTSUPP, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void no_adopt(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	expect_failure(cube_backend_adopt(s->stage.b, id, "00000000000000aa", NULL, &err), -EOPNOTSUPP, &err);
	expect_failure(cube_backend_let_go(s->stage.b, id, &err), -EOPNOTSUPP, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

const struct check checks_refuse[] = {
	{"no exec", 0, CUBE_CAP_EXEC, no_exec},
	{"no files", 0, CUBE_CAP_FILES, no_files},
	{"no pause", 0, CUBE_CAP_PAUSE, no_pause},
	{"no stop", 0, CUBE_CAP_STOP, no_stop},
	{"no rename", 0, CUBE_CAP_RENAME, no_rename},
	{"no adoption", 0, CUBE_CAP_ADOPT, no_adopt},
	{"no usage", 0, CUBE_CAP_USAGE, no_usage},
	{"no templates", 0, CUBE_CAP_TEMPLATES, no_templates},
	{"no volumes", 0, CUBE_CAP_VOLUMES, no_volumes},
	{"no volume at creation", 0, CUBE_CAP_VOLUMES, no_volume_at_creation},
	{"no binds", 0, CUBE_CAP_BIND, no_bind},
	{"no open network", 0, CUBE_CAP_NET_OPEN, no_net},
	{"no limit on cpus", 0, CUBE_CAP_CPUS, no_cpus},
	{"no limit on memory", 0, CUBE_CAP_MEMORY, no_memory},
	{"no limit on pids", 0, CUBE_CAP_PIDS, no_pids},
	{"no limit on disk", 0, CUBE_CAP_DISK, no_disk},
	{"no terminal", CUBE_CAP_EXEC, CUBE_CAP_TTY, no_tty},
	{"no ports", 0, CUBE_CAP_PORTS, no_ports},
	{"no other users", CUBE_CAP_EXEC, CUBE_CAP_USERS, no_users},
	{.name = NULL},
};

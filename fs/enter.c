/* SPDX-License-Identifier: Apache-2.0 */
/* A program that takes the place of another one: `cubefs takeover`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "ctl/version.h"
#include "fs/handover.h"
#include "fs/process.h"
#include "fs/state_format.h"

#define ENTER_TRY_NS UINT64_C(60000000000)

struct enter {
	struct cube_handover h;
	struct cube_opts opts;
	struct cube_start start;
	struct cube_process p;
};

struct enter_role {
	const char *name;
	int (*run)(struct enter *e);
};

static int enter_fd(const struct enter *e, enum cube_hand_number which)
{
	return (int)e->h.n[which];
}

static void enter_options(struct enter *e)
{
	struct cube_opts *o = &e->opts;

	o->allow_other = e->h.n[CUBE_HAND_ALLOW_OTHER] == 1;
	o->symlinks_raw = e->h.n[CUBE_HAND_SYMLINKS_RAW] == 1;
	o->owners_raw = e->h.n[CUBE_HAND_OWNERS_RAW] == 1;
	o->debug = e->h.n[CUBE_HAND_DEBUG] == 1;
	o->p9_token_file = e->h.s[CUBE_HAND_TOKEN_FILE];
	o->mount_point = e->h.s[CUBE_HAND_MOUNT];
	while (o->n_p9 < CUBE_OPTS_9P && e->h.s[CUBE_HAND_9P + o->n_p9] != NULL) {
		o->p9[o->n_p9] = e->h.s[CUBE_HAND_9P + o->n_p9];
		o->n_p9++;
	}
}

static int enter_conf(struct enter *e, struct cube_err *err)
{
	const char *text = e->h.s[CUBE_HAND_CONF];

	return cube_conf_parse(text != NULL ? text : "", text != NULL ? strlen(text) : 0,
			       "the configuration of the mount", &e->start.conf, err);
}

static int enter_fill(struct enter *e, struct cube_err *err)
{
	const char *state = e->h.s[CUBE_HAND_STATE], *mount = e->h.s[CUBE_HAND_MOUNT];

	if (state == NULL || mount == NULL)
		return cube_fail(err, -EPROTO, "what is handed over is not whole");
	enter_options(e);
	e->start = (struct cube_start){
		.opts = &e->opts,
		.state = {.path = cube_strdup(state),
			  .lock_fd = enter_fd(e, CUBE_HAND_LOCK),
			  .log_fd = enter_fd(e, CUBE_HAND_LOG)},
		.mount = {.path = cube_strdup(mount), .id = (int)e->h.n[CUBE_HAND_MOUNT_ID]},
		.ready_fd = -1};
	if (e->start.state.path == NULL || e->start.mount.path == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	e->p = (struct cube_process){.start = &e->start,
				     .fuse_fd = enter_fd(e, CUBE_HAND_FUSE),
				     .keep_fd = enter_fd(e, CUBE_HAND_KEEP),
				     .keeper_fd = enter_fd(e, CUBE_HAND_LINE),
				     .mounts_fd = enter_fd(e, CUBE_HAND_MOUNTS),
				     .boss_fd = enter_fd(e, CUBE_HAND_BOSS),
				     .door_fd = enter_fd(e, CUBE_HAND_DOOR),
				     .uid = (uid_t)e->h.n[CUBE_HAND_UID],
				     .gid = (gid_t)e->h.n[CUBE_HAND_GID]};
	cube_upgrade_init(&e->p.upgrade);
	return enter_conf(e, err);
}

static void enter_done(struct enter *e)
{
	cube_conf_free(e->start.conf);
	cube_free(e->start.state.path);
	cube_free(e->start.mount.path);
	cube_handover_done(&e->h);
}

/* Can the state, and what outlives a worker, be read by this program? */
static int enter_check(struct enter *e)
{
	struct cube_err err = {0};
	struct cube_keep *keep;

	if (cube_state_format_check(e->start.state.path, &err) < 0) {
		(void)printf("%s\n", err.text);
		return 1;
	}
	if (cube_keep_open(e->p.keep_fd, &keep, &err) < 0) {
		(void)printf("%s: unmount, and mount with this one (cubefs %s)\n", err.text, CUBEFS_VERSION);
		return 1;
	}
	cube_keep_close(keep);
	(void)printf("ok\n");
	return 0;
}

static int enter_supervisor(struct enter *e, enum cube_upgrade_stage stage)
{
	struct cube_upgrade *u = &e->p.upgrade;
	struct cube_err err = {0};

	(void)prctl(PR_SET_NAME, "cubefs-super");
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	cube_upgrade_init(u);
	u->stage = stage;
	u->program = enter_fd(e, CUBE_HAND_PROGRAM);
	u->before = enter_fd(e, CUBE_HAND_BEFORE);
	u->client = enter_fd(e, CUBE_HAND_CLIENT);
	u->until = cube_clock_mono() + ENTER_TRY_NS;
	if (cube_supervisor_prepare(&e->p, true, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "upgrade", "%s",
			 err.text); /* the worker will not serve, and say so */
	return cube_supervisor_go(&e->p);
}

static int enter_serve(struct enter *e)
{
	return enter_supervisor(e, CUBE_UPGRADE_TRIED);
}

/* The program before, again: it says why. */
static int enter_back(struct enter *e)
{
	const char *why = e->h.s[CUBE_HAND_WHY];
	int client = enter_fd(e, CUBE_HAND_CLIENT);

	cube_log(CUBE_LOG_WARNING, "upgrade", "%s", why != NULL ? why : "the program before goes on");
	(void)dprintf(client, "no %s", why != NULL ? why : "");
	for (enum cube_hand_number i = CUBE_HAND_PROGRAM; i <= CUBE_HAND_CLIENT; i++) {
		cube_close_auto(&(int){enter_fd(e, i)});
		e->h.n[i] = -1;
	}
	return enter_supervisor(e, CUBE_UPGRADE_NONE);
}

static int enter_keep(struct enter *e)
{
	int client = enter_fd(e, CUBE_HAND_CLIENT);

	(void)prctl(PR_SET_NAME, "cubefs");
	(void)dprintf(client, "ok");
	cube_close_auto(&client);
	return cube_keeper_go(&e->p, enter_fd(e, CUBE_HAND_LINE), (pid_t)e->h.n[CUBE_HAND_CHILD]);
}

static const struct enter_role enter_roles[] = {
	{"check", enter_check}, {"serve", enter_serve}, {"back", enter_back}, {"keep", enter_keep}};

static int enter_run(struct enter *e, int memory, int (*run)(struct enter *e))
{
	struct cube_err err = {0};
	int code, r = cube_handover_read(memory, &e->h, &err);

	(void)close(memory);
	for (size_t i = 0; r == 0 && i < CUBE_HAND_FDS; i++)
		if (e->h.n[i] >= 0)
			(void)fcntl((int)e->h.n[i], F_SETFD, FD_CLOEXEC);
	if (r == 0)
		r = enter_fill(e, &err);
	if (r < 0) {
		(void)printf("%s\n", err.text);
		code = 1;
	} else {
		cube_log_setup(e->start.state.log_fd, e->opts.debug ? CUBE_LOG_DEBUG : CUBE_LOG_INFO);
		code = run(e);
	}
	enter_done(e);
	return code;
}

int cube_upgrade_enter(int argc, char **argv)
{
	struct enter e = {.start = {.ready_fd = -1}};
	uint64_t memory;

	cube_handover_init(&e.h);
	for (size_t i = 0; argc >= 3 && i < CUBE_COUNT(enter_roles); i++)
		if (strcmp(argv[1], enter_roles[i].name) == 0 &&
		    cube_num_u64(argv[2], 1 << 20, &memory) == 0 && fcntl((int)memory, F_GETFD) >= 0)
			return enter_run(&e, (int)memory, enter_roles[i].run);
	(void)fprintf(stderr,
		      "cubefs: `cubefs takeover` is what an upgrade begins with; see cubefs upgrade\n");
	return 2;
}

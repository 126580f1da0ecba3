/* SPDX-License-Identifier: Apache-2.0 */
/* Another program takes over: what supervisor and keeper do. */
#include "fs/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/cli/cli.h"
#include "ctl/version.h"
#include "fs/canary.h"
#include "fs/daemon.h"
#include "fs/handover.h"
#include "fs/process.h"
#include "fs/state_format.h"
#include "fs/takeover.h"

#define UPGRADE_BEGIN    'b'
#define UPGRADE_FOLLOW   'k'
#define UPGRADE_DRAIN_NS UINT64_C(15000000000)
#define UPGRADE_KNOCK_MS 1000
#define UPGRADE_KNOCKERS 8
#define UPGRADE_TEXT_MAX 1024

void cube_upgrade_init(struct cube_upgrade *u)
{
	*u = (struct cube_upgrade){.program = -1, .before = -1, .client = -1};
	cube_handover_check_init(&u->check);
}

/* Who asked is told, once; he may be gone. */
static void upgrade_tell(int *client, const char *what, const char *why)
{
	char text[UPGRADE_TEXT_MAX];
	int n = snprintf(text, sizeof(text), "%s %s", what, why);

	if (*client < 0)
		return;
	(void)send(*client, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, MSG_NOSIGNAL);
	cube_close_auto(client);
	*client = -1;
}

void cube_upgrade_drop(struct cube_upgrade *u)
{
	cube_close_auto(&u->program);
	cube_close_auto(&u->before);
	cube_close_auto(&u->client);
	cube_handover_check_drop(&u->check);
	cube_upgrade_init(u);
}

static void upgrade_refuse(struct cube_upgrade *u, const struct cube_err *err)
{
	cube_log(CUBE_LOG_INFO, "upgrade", "refused: %s", err->text);
	upgrade_tell(&u->client, "no", err->text);
	cube_upgrade_drop(u);
}

/* ---- the supervisor ---- */

bool cube_upgrade_hear(struct cube_process *p)
{
	struct cube_upgrade *u = &p->upgrade;
	int fds[2] = {-1, -1};
	unsigned n = 0;
	char what;

	if (cube_fd_recv(p->boss_fd, &what, 1, fds, 2, &n) != 1)
		return false;
	if (n == 2 && what == UPGRADE_BEGIN && u->stage == CUBE_UPGRADE_NONE) {
		cube_upgrade_init(u);
		u->stage = CUBE_UPGRADE_ASKED;
		u->program = fds[0];
		u->client = fds[1];
		return true;
	}
	if (n == 2)
		upgrade_tell(&fds[1], "no", "another upgrade is under way");
	cube_close_auto(&fds[0]);
	cube_close_auto(&fds[1]);
	return true;
}

static void upgrade_flags(struct cube_handover *h, const struct cube_opts *o)
{
	h->n[CUBE_HAND_ALLOW_OTHER] = o->allow_other;
	h->n[CUBE_HAND_SYMLINKS_RAW] = o->symlinks_raw;
	h->n[CUBE_HAND_OWNERS_RAW] = o->owners_raw;
	h->n[CUBE_HAND_DEBUG] = o->debug;
	h->s[CUBE_HAND_TOKEN_FILE] = o->p9_token_file;
	for (unsigned i = 0; i < o->n_p9; i++)
		h->s[CUBE_HAND_9P + i] = o->p9[i];
}

static void upgrade_fill(struct cube_handover *h, const struct cube_process *p)
{
	const struct cube_start *s = p->start;

	cube_handover_init(h);
	h->n[CUBE_HAND_BOSS] = p->boss_fd;
	h->n[CUBE_HAND_LOCK] = s->state.lock_fd;
	h->n[CUBE_HAND_LOG] = s->state.log_fd;
	h->n[CUBE_HAND_UID] = p->uid;
	h->n[CUBE_HAND_GID] = p->gid;
	h->n[CUBE_HAND_MOUNT_ID] = s->mount.id;
	h->s[CUBE_HAND_STATE] = s->state.path;
	h->s[CUBE_HAND_MOUNT] = s->mount.path;
	h->s[CUBE_HAND_VERSION] = CUBEFS_VERSION;
	upgrade_flags(h, s->opts);
}

/* @conf: where the configuration's text goes. */
static void upgrade_fill_supervisor(struct cube_handover *h, const struct cube_process *p,
				    struct cube_buf *conf)
{
	upgrade_fill(h, p);
	(void)cube_handover_conf(p->start->conf, conf);
	h->s[CUBE_HAND_CONF] = cube_buf_str(conf);
	h->n[CUBE_HAND_FUSE] = p->fuse_fd;
	h->n[CUBE_HAND_KEEP] = p->keep_fd;
	h->n[CUBE_HAND_LINE] = p->keeper_fd;
	h->n[CUBE_HAND_PROGRAM] = p->upgrade.program;
	h->n[CUBE_HAND_BEFORE] = p->upgrade.before;
	h->n[CUBE_HAND_CLIENT] = p->upgrade.client;
}

static void upgrade_check(struct cube_process *p)
{
	struct cube_upgrade *u = &p->upgrade;
	struct cube_buf conf = CUBE_BUF(1 << 20);
	struct cube_handover h;
	struct cube_err err = {0};
	int r;

	u->before = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	upgrade_fill_supervisor(&h, p, &conf);
	r = u->before < 0 ? cube_fail_errno(&err, "the program that runs") : 0;
	if (r == 0 && conf.error != 0)
		r = cube_fail(&err, conf.error, "the configuration: %s", cube_errno_text(conf.error));
	if (r == 0)
		r = cube_handover_check_start(&h, u->program, &u->check, &err);
	cube_buf_done(&conf);
	if (r < 0)
		upgrade_refuse(u, &err);
	else
		u->stage = CUBE_UPGRADE_CHECKS;
}

static void upgrade_hear_check(struct cube_upgrade *u)
{
	struct cube_err err = {0};
	int r = cube_handover_check_look(&u->check, &err);

	if (r < 0)
		upgrade_refuse(u, &err);
	else if (r == 0)
		u->stage = CUBE_UPGRADE_CHECKED;
}

static void upgrade_begin(struct cube_upgrade *u, pid_t worker)
{
	cube_log(CUBE_LOG_INFO, "upgrade", "another program takes over from cubefs %s", CUBEFS_VERSION);
	u->stage = CUBE_UPGRADE_DRAINS;
	u->until = cube_clock_mono() + UPGRADE_DRAIN_NS;
	(void)kill(worker, CUBE_DAEMON_DRAIN);
}

static void upgrade_done(struct cube_process *p)
{
	struct cube_upgrade *u = &p->upgrade;
	struct cube_err err = {0};

	if (cube_state_format_mark(p->start->state.path, &err) < 0)
		cube_log(CUBE_LOG_WARNING, "upgrade", "%s", err.text);
	cube_log(CUBE_LOG_INFO, "upgrade", "cubefs %s has taken over", CUBEFS_VERSION);
	(void)cube_fd_send(p->boss_fd, &(char){UPGRADE_FOLLOW}, 1, (int[]){u->program, u->client}, 2);
	cube_upgrade_drop(u);
}

void cube_upgrade_look(struct cube_process *p, struct cube_revive *v, pid_t worker)
{
	struct cube_upgrade *u = &p->upgrade;
	bool serves = v->serves != 0 && v->serves != UINT64_MAX;

	if (u->stage == CUBE_UPGRADE_ASKED)
		upgrade_check(p);
	else if (u->stage == CUBE_UPGRADE_CHECKS)
		upgrade_hear_check(u);
	else if (u->stage == CUBE_UPGRADE_CHECKED && serves)
		upgrade_begin(u, worker);
	else if (u->stage == CUBE_UPGRADE_TRIED && serves)
		upgrade_done(p);
	else if (u->stage >= CUBE_UPGRADE_DRAINS && cube_clock_mono() > u->until)
		(void)kill(worker, SIGKILL);
}

static void upgrade_become(struct cube_process *p, int program, const char *role, const char *why,
			   struct cube_err *err)
{
	struct cube_buf conf = CUBE_BUF(1 << 20);
	struct cube_handover h;

	upgrade_fill_supervisor(&h, p, &conf);
	h.s[CUBE_HAND_WHY] = why;
	(void)cube_handover_exec(&h, program, role, err);
	cube_buf_done(&conf);
}

bool cube_upgrade_ended(struct cube_process *p, struct cube_revive *v)
{
	static const char why[] =
		"the new program's worker ended before it served (the log in the state directory "
		"may say why); the one before goes on";
	struct cube_upgrade *u = &p->upgrade;
	struct cube_err err = {0};

	if (u->stage < CUBE_UPGRADE_DRAINS)
		return false;
	cube_takeover_tidy(v->keep);
	atomic_store(&v->keep->head->handed, 1);
	if (u->stage == CUBE_UPGRADE_DRAINS)
		upgrade_become(p, u->program, "serve", NULL, &err);
	else
		upgrade_become(p, u->before, "back", why, &err);
	cube_log(CUBE_LOG_ERROR, "upgrade", "%s", err.text);
	upgrade_refuse(u, &err);
	return true;
}

/* ---- the keeper ---- */

int cube_upgrade_door(const char *state_dir)
{
	cube_auto_fd dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (dir < 0 || door < 0)
		return -errno;
	/* Of a daemon that was killed: the directory is ours. */
	(void)unlinkat(dir, CUBE_CLI_UPGRADE_DOOR, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" CUBE_CLI_UPGRADE_DOOR, dir);
	if (bind(door, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchmodat(dir, CUBE_CLI_UPGRADE_DOOR, 0600, 0) < 0 || listen(door, UPGRADE_KNOCKERS) < 0)
		return -errno;
	return cube_steal_fd(&door);
}

/* Its descriptor of the program, or -errno. */
static int upgrade_listen(int client)
{
	struct pollfd poll_in = {.fd = client, .events = POLLIN};
	char text[sizeof(CUBE_CLI_UPGRADE_ASK)] = "";
	int program = -1;
	unsigned n = 0;

	if (poll(&poll_in, 1, UPGRADE_KNOCK_MS) != 1 ||
	    cube_fd_recv(client, text, sizeof(text) - 1, &program, 1, &n) <= 0 || n != 1)
		return -EINVAL;
	if (strcmp(text, CUBE_CLI_UPGRADE_ASK) == 0)
		return program;
	cube_close_auto(&program);
	return -EINVAL;
}

static bool upgrade_may(const struct cube_process *p, int client)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == 0 || who.uid == p->uid);
}

bool cube_upgrade_knock(struct cube_process *p)
{
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	int client = accept4(p->door_fd, NULL, NULL, SOCK_CLOEXEC);
	int program = -1;

	if (client < 0)
		return false;
	if (!upgrade_may(p, client))
		upgrade_tell(&client, "no", "only who mounted it and root may upgrade a mount");
	else if ((program = upgrade_listen(client)) < 0)
		upgrade_tell(&client, "no", "the question was not understood");
	else if (cube_fd_send(p->boss_fd, &(char){UPGRADE_BEGIN}, 1, (int[]){program, client}, 2) != 1)
		upgrade_tell(&client, "no", "the daemon is about to end");
	cube_close_auto(&client);
	cube_close_auto(&program);
	return true;
}

bool cube_upgrade_follow(struct cube_process *p, int line, pid_t supervisor, struct cube_canary *canary)
{
	struct cube_handover h;
	struct cube_err err = {0};
	int fds[2] = {-1, -1};
	unsigned n = 0;
	char what;

	if (cube_fd_recv(p->boss_fd, &what, 1, fds, 2, &n) != 1)
		return false;
	cube_canary_done(canary);
	upgrade_fill(&h, p);
	h.n[CUBE_HAND_LINE] = line;
	h.n[CUBE_HAND_MOUNTS] = p->mounts_fd;
	h.n[CUBE_HAND_DOOR] = p->door_fd;
	h.n[CUBE_HAND_CHILD] = supervisor;
	h.n[CUBE_HAND_CLIENT] = fds[1];
	(void)cube_handover_exec(&h, fds[0], "keep", &err);
	cube_log(CUBE_LOG_WARNING, "upgrade", "the keeper stays what it was: %s", err.text);
	upgrade_tell(&fds[1], "ok", "");
	cube_close_auto(&fds[0]);
	cube_canary_init(canary, p->start->mount.path);
	return true;
}

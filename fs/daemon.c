/* SPDX-License-Identifier: Apache-2.0 */
/* The worker.
 *
 * Threads: the caller's becomes the loop; one serves FUSE, with more of libfuse's; the end has one of its
 * own, since it waits for both of them. */
#include "fs/daemon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/heir.h"
#include "backends/base/log.h"
#include "backends/base/loop.h"
#include "backends/base/macros.h"
#include "ctl/domain.h"
#include "fs/fuse/fuse.h"
#include "fs/p9/listen.h"
#include "fs/takeover.h"

#define DAEMON_SHUTDOWN_MS 5000 /* for what is under way at backends */
#define DAEMON_9P_MS       5000 /* for what connections were about */
#define DAEMON_UNMOUNT_MS  300  /* for the kernel to let go */
#define DAEMON_STOP_TRIES  50   /* to get the FUSE threads out of it */
#define DAEMON_PARK_MS     3000 /* for what threads are at, before another program takes over */
#define DAEMON_SETTLE_MS   1000 /* for what is at backends then */
#define DAEMON_STOP_MS     100
#define DAEMON_FILES       1048576 /* descriptors wanted */

struct daemon {
	const struct cube_daemon_options *o;
	struct cube_loop *loop;
	struct cube_domain *domain;
	struct cube_files_space *files;
	struct cube_fuse *fuse; /* NULL: there is no mount */
	struct cube_p9 *p9;     /* NULL: not asked for */
	struct cube_tree *tree;
	struct cube_keep *keep;
	struct cube_watch *signals;
	int signal_fd;
	struct cube_post post; /* FUSE has ended */
	struct cube_post stop_p9;
	pthread_t fuse_thread, end_thread;
	int fuse_code;
	bool ending; /* end_thread was started */
	bool held;   /* somebody has the file system still: open files and all */
};

/* ---- the end ---- */

static bool daemon_joined(struct daemon *d, unsigned ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(d->fuse_thread, NULL, &t) == 0;
}

/* The kernel lets go when nobody has the mount any more. Where it was in use, or is held in a mount namespace
 * of others, that may be never: then we leave, and they lose it. True: nothing of FUSE is left. */
static bool daemon_end_fuse(struct daemon *d)
{
	if (daemon_joined(d, DAEMON_UNMOUNT_MS))
		return true;
	cube_log(CUBE_LOG_INFO, "daemon", "the file system is still held somewhere: it ends there now");
	cube_fuse_stop(d->fuse);
	for (unsigned i = 0; i < DAEMON_STOP_TRIES; i++) {
		(void)pthread_kill(d->fuse_thread, SIGUSR2);
		if (daemon_joined(d, DAEMON_STOP_MS))
			return false;
	}
	cube_log(CUBE_LOG_WARNING, "daemon",
		 "a request is still being served: a sandbox's file system hangs");
	return false;
}

static void *daemon_end(void *arg)
{
	struct daemon *d = arg;

	cube_tree_shutdown(d->tree);
	if (d->p9 != NULL) {
		cube_loop_post(d->loop, &d->stop_p9);
		d->held = !cube_p9_idle(d->p9, DAEMON_9P_MS);
	}
	cube_domain_shutdown(d->domain, DAEMON_SHUTDOWN_MS);
	if (d->fuse != NULL) {
		d->o->unmount(d->o->ctx);
		d->held = !daemon_end_fuse(d) || d->held;
	}
	cube_loop_stop(d->loop);
	return NULL;
}

/* On the loop's thread. */
static void daemon_begin_end(struct daemon *d, const char *why)
{
	if (d->ending)
		return;
	cube_log(CUBE_LOG_INFO, "daemon", "ending: %s", why);
	d->ending = pthread_create(&d->end_thread, NULL, daemon_end, d) == 0;
	if (!d->ending)
		cube_log(CUBE_LOG_ERROR, "daemon", "no thread for the end: out of memory");
}

/* What waits for something stays as it is: it is in what outlives this process, as after a death. */
static void *daemon_drain(void *arg)
{
	struct daemon *d = arg;

	cube_fuse_park(d->fuse, DAEMON_PARK_MS);
	cube_domain_settle(d->domain, DAEMON_SETTLE_MS);
	_exit(CUBE_DAEMON_DRAINED);
}

static void daemon_begin_drain(struct daemon *d)
{
	pthread_t thread;

	cube_log(CUBE_LOG_INFO, "daemon", "another program takes over");
	if (d->fuse != NULL && pthread_create(&thread, NULL, daemon_drain, d) != 0)
		_exit(CUBE_DAEMON_DRAINED);
}

static void daemon_signal(void *ctx, unsigned events)
{
	struct daemon *d = ctx;
	struct signalfd_siginfo s;

	(void)events;
	if (read(d->signal_fd, &s, sizeof(s)) != sizeof(s))
		return;
	if (s.ssi_signo == CUBE_DAEMON_DRAIN)
		daemon_begin_drain(d);
	else
		daemon_begin_end(d, s.ssi_signo == SIGINT ? "interrupted" : "told to");
}

static void daemon_unmounted(struct cube_post *post)
{
	struct daemon *d = cube_container_of(post, struct daemon, post);

	daemon_begin_end(d, "unmounted");
}

static void daemon_stop_p9(struct cube_post *post)
{
	cube_p9_stop(cube_container_of(post, struct daemon, stop_p9)->p9);
}

static void daemon_hung_up(void *ctx)
{
	struct daemon *d = ctx;

	if (d->fuse == NULL)
		daemon_begin_end(d, "its client has hung up");
}

static void *daemon_serve(void *arg)
{
	struct daemon *d = arg;

	d->fuse_code = cube_fuse_run(d->fuse, d->tree);
	cube_loop_post(d->loop, &d->post);
	return NULL;
}

/* ---- the start ---- */

static void daemon_nudged(int sig)
{
	(void)sig; /* it interrupts a system call, that is all */
}

static void daemon_catch_nudges(void)
{
	struct sigaction sa = {.sa_handler = daemon_nudged};

	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGUSR2, &sa, NULL);
}

/* Every open file of a sandbox is one of ours, and each of them has a directory or two. */
static void daemon_raise_limits(void)
{
	struct rlimit r = {.rlim_cur = DAEMON_FILES, .rlim_max = DAEMON_FILES};

	if (setrlimit(RLIMIT_NOFILE, &r) == 0 || getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		cube_log(CUBE_LOG_WARNING, "daemon", "no more than %llu open files",
			 (unsigned long long)r.rlim_cur);
}

static int daemon_watch_signals(struct daemon *d, struct cube_err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, CUBE_DAEMON_DRAIN);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signal_fd < 0)
		return cube_fail_errno(err, "signalfd");
	d->signals = cube_watch_new(d->loop, d->signal_fd, CUBE_WATCH_IN, daemon_signal, d);
	return d->signals == NULL ? cube_fail(err, -ENOMEM, "out of memory") : 0;
}

static int daemon_open_p9(struct daemon *d, const struct cube_files_options *files, struct cube_err *err)
{
	struct cube_p9_access access = {.token_file = d->o->p9_token_file};
	struct cube_p9_options o = {.loop = d->loop, .tree = d->tree, .files = *files};
	int r;

	o.files.keep = NULL; /* its connections end with this process */
	r = cube_p9_conf(d->o->conf, &o.limits, &access, err);

	if (r == 0)
		r = cube_p9_new(&o, &d->p9, err);
	for (unsigned i = 0; r == 0 && i < d->o->n_p9; i++)
		r = cube_p9_listen(d->p9, d->o->p9[i], &access, daemon_hung_up, d, err);
	return r;
}

static int daemon_open_fs(struct daemon *d, struct cube_err *err)
{
	const struct cube_daemon_options *o = d->o;
	struct cube_files_options fo = {.symlinks_raw = o->symlinks_raw,
					.owners_raw = o->owners_raw,
					.uid = o->uid,
					.gid = o->gid,
					.keep = d->keep};
	struct cube_fuse_options fuse = {.loop = d->loop,
					 .fd = o->fuse_fd,
					 .keep = d->keep,
					 .uid = o->uid,
					 .debug = o->debug,
					 .ready = o->ready,
					 .ctx = o->ctx};
	struct cube_tree_options to = {.domain = d->domain, .keep = d->keep};
	int r;

	d->files = cube_files_space_new(&fo);
	if (d->files == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	fuse.files = to.files = d->files;
	if (o->fuse_fd >= 0) {
		r = cube_fuse_conf(o->conf, &fuse.keeps, err);
		if (r == 0)
			r = cube_fuse_new(&fuse, &d->fuse, err);
		if (r < 0)
			return r;
		to.watcher = cube_fuse_watcher(d->fuse);
	}
	d->tree = cube_tree_new(&to);
	if (d->tree == NULL || (d->fuse != NULL && cube_fuse_restore(d->fuse, d->tree) < 0))
		return cube_fail(err, -ENOMEM, "out of memory");
	return o->n_p9 > 0 ? daemon_open_p9(d, &fo, err) : 0;
}

static void daemon_setting(void *ctx, const char *key, uint64_t value)
{
	cube_keep_set(ctx, key, value);
}

/* What was set since the daemon's start holds until its end, whichever worker it is. */
static void daemon_settings(struct daemon *d)
{
	char value[24];
	struct cube_err err;

	if (d->keep == NULL)
		return;
	cube_domain_enter(d->domain);
	for (size_t i = 0; i < CUBE_KEEP_SETTINGS; i++) {
		const struct cube_keep_setting *s = &d->keep->head->settings[i];

		if (atomic_load(&s->there) == 0)
			continue;
		(void)snprintf(value, sizeof(value), "%llu", (unsigned long long)atomic_load(&s->value));
		if (cube_domain_set(d->domain, s->key, value, &err) < 0) /* another version's */
			cube_log(CUBE_LOG_INFO, "daemon", "set %s=%s: %s", s->key, value, err.text);
	}
	d->domain->keeper = (struct cube_domain_keeper){.ctx = d->keep, .set = daemon_setting};
	cube_domain_leave(d->domain);
}

static int daemon_open(struct daemon *d, struct cube_err *err)
{
	struct cube_domain_options o = {
		.state_dir = d->o->state_dir, .conf = d->o->conf, .uid = d->o->uid, .gid = d->o->gid};
	int r;

	d->loop = cube_loop_new();
	if (d->loop == NULL)
		return cube_fail(err, -ENOMEM, "the event loop cannot be made");
	o.loop = d->loop;
	o.canary = d->keep != NULL ? &d->keep->head->canary : NULL;
	r = daemon_watch_signals(d, err);
	if (r == 0)
		r = cube_domain_open(&o, &d->domain, err);
	if (r == 0) {
		daemon_settings(d);
		r = daemon_open_fs(d, err);
	}
	cube_heir_drop();
	return r;
}

/* What outlives this process, and what it has from the one before. First of all: open files have their numbers. */
static int daemon_keep(struct daemon *d, struct cube_err *err)
{
	int r;

	if (d->o->keep_fd < 0)
		return 0;
	r = cube_keep_open(d->o->keep_fd, &d->keep, err);
	return r == 0 ? cube_takeover(d->keep, err) : r;
}

static int daemon_start(struct daemon *d, struct cube_err *err)
{
	int r = cube_domain_start(d->domain, err);

	if (r < 0)
		return r;
	if (d->fuse == NULL) {
		d->o->ready(d->o->ctx);
		return 0;
	}
	r = -pthread_create(&d->fuse_thread, NULL, daemon_serve, d);
	return r < 0 ? cube_fail(err, r, "no thread for FUSE: %s", cube_errno_text(r)) : 0;
}

static void daemon_close(struct daemon *d)
{
	if (d->signals != NULL)
		cube_watch_free(d->signals);
	cube_close_auto(&d->signal_fd);
	cube_p9_free(d->p9);
	cube_tree_free(d->tree);
	if (d->domain != NULL)
		cube_domain_close(d->domain);
	if (d->fuse != NULL)
		cube_fuse_free(d->fuse);
	if (d->files != NULL)
		cube_files_space_free(d->files);
	cube_loop_free(d->loop);
	cube_keep_close(d->keep);
}

int cube_daemon_run(const struct cube_daemon_options *o, struct cube_err *err)
{
	struct daemon d = {
		.o = o, .signal_fd = -1, .post = {.fn = daemon_unmounted}, .stop_p9 = {.fn = daemon_stop_p9}};
	int r;

	daemon_raise_limits();
	daemon_catch_nudges();
	(void)umask(0); /* the kernel applied the caller's */
	r = daemon_keep(&d, err);
	if (r == 0)
		r = daemon_open(&d, err);
	if (r == 0)
		r = daemon_start(&d, err);
	if (r < 0) {
		daemon_close(&d);
		return r;
	}
	cube_loop_run(d.loop);
	if (d.ending)
		(void)pthread_join(d.end_thread, NULL);
	if (d.held)
		_exit(0); /* what is open will never be closed; all that matters is on disk */
	daemon_close(&d);
	return d.fuse_code < 0 ? cube_fail(err, d.fuse_code, "FUSE: %s", cube_errno_text(d.fuse_code)) : 0;
}

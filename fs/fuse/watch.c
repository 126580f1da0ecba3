/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel keeps of real files, and how it is told that it is old: the other end of fs/files/watch.c.
 *
 * Attributes are told at once, by whoever finds the event: to take them back the kernel waits for nothing. That of a
 * name needs the lock of its directory, which who waits for an answer of ours may hold: the notifier does it, and who is
 * to be told that something is done is answered behind it (call.c).
 *
 * Why no older answer can come behind the news. Names: the kernel holds the directory while it looks a name up that it
 * did not know; where it asks again for one that it knew, a name that has gone is taken out of its table for good.
 * Attributes: it throws away those that it had asked for before it was told, if it has the file; if it has not, the
 * name is told too. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "fs/fuse/priv.h"

#define WATCH_MINOR 44      /* of the kernel's protocol: Linux 6.16, all names can be taken back at once */
#define WATCH_EPOCH 8       /* ... by this notification */
#define WATCH_REST  2000000 /* ns for which events gather, unless somebody is to be told before */

static void watch_name(void *ctx, uint64_t dir, const char *name, bool again)
{
	struct cube_fuse *f = ctx;

	cube_fuse_notify_real(f->notify, dir, name, again);
}

static void watch_old_name(void *ctx, uint64_t dir, const char *name)
{
	watch_name(ctx, dir, name, true);
}

static void watch_attr(void *ctx, uint64_t id)
{
	struct cube_fuse *f = ctx;

	if (fuse_lowlevel_notify_inval_inode(f->se, id, -1, 0) == -ENOENT)
		cube_files_names(f->files, id, watch_old_name, f);
}

void cube_fuse_watch_epoch(struct cube_fuse *f)
{
	(void)cube_wire_send(f->o.fd, 0, WATCH_EPOCH, NULL, 0);
}

static void watch_all(void *ctx)
{
	cube_fuse_watch_epoch(ctx);
}

/* Who asks may hold what must not be held where that is known: the notifier goes there. */
static void watch_ask(void *ctx, uint64_t id)
{
	struct cube_fuse *f = ctx;

	cube_fuse_notify_ask(f->notify, id);
}

/* Events are gathered for a moment: whoever writes inside pays less then, and nobody outside is told later than that
 * that they are done. */
static void *watch_thread(void *arg)
{
	struct cube_fuse_watch *w = arg;
	const struct timespec rest = {.tv_nsec = WATCH_REST};
	struct pollfd p[] = {{.fd = w->fd, .events = POLLIN}, {.fd = w->stop, .events = POLLIN}};

	for (;;) {
		if (poll(p, CUBE_COUNT(p), -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents != 0)
			break;
		(void)nanosleep(&rest, NULL);
		cube_files_tell(w->f->files);
	}
	return NULL;
}

int cube_fuse_conf(const struct cube_conf *conf, enum cube_fuse_keeps *ret, struct cube_err *err)
{
	static const char *const known[] = {"keep", NULL};
	const struct cube_conf_section *s = conf != NULL ? cube_conf_find(conf, "files") : NULL;
	const char *word = cube_conf_get(s, "keep");
	int keep = 1, r = cube_conf_check(s, known, err);

	if (r == 0 && word != NULL && cube_num_bool(word, &keep) < 0)
		r = cube_fail(err, -EINVAL, "configuration: [files] keep=%s: yes or no", word);
	*ret = keep == 0      ? CUBE_FUSE_KEEPS_NOTHING
	       : word != NULL ? CUBE_FUSE_KEEPS_ASKED
			      : CUBE_FUSE_KEEPS_IF_IT_CAN;
	return r;
}

void cube_fuse_watch_init(struct cube_fuse_watch *w, struct cube_fuse *f)
{
	*w = (struct cube_fuse_watch){.f = f, .fd = -1, .stop = -1};
}

void cube_fuse_watch_start(struct cube_fuse_watch *w, unsigned minor)
{
	const struct cube_files_watcher to = {
		.ctx = w->f, .name = watch_name, .attr = watch_attr, .all = watch_all, .ask = watch_ask};

	if (w->f->o.keeps == CUBE_FUSE_KEEPS_NOTHING) {
		w->why = "no: [files] keep=no";
	} else if (minor < WATCH_MINOR) {
		w->why = "no: this kernel cannot be told what is old (Linux 6.16)";
	} else {
		w->stop = eventfd(0, EFD_CLOEXEC);
		w->fd = w->stop < 0 ? -1 : cube_files_watch(w->f->files, &to);
		w->started = w->fd >= 0 && pthread_create(&w->thread, NULL, watch_thread, w) == 0;
		w->why = w->started ? NULL : "no: this user has no inotify instance left";
	}
	if (w->why != NULL && w->f->o.keeps != CUBE_FUSE_KEEPS_NOTHING)
		cube_log(w->f->o.keeps == CUBE_FUSE_KEEPS_ASKED ? CUBE_LOG_WARNING : CUBE_LOG_INFO, "fuse",
			 "keep=yes: %s", w->why + strlen("no: "));
}

bool cube_fuse_watch_keeps(const struct cube_fuse_watch *w)
{
	return w->started;
}

const char *cube_fuse_watch_kept(const struct cube_fuse_watch *w)
{
	if (w->why != NULL)
		return w->why;
	return cube_files_watch_short(w->f->files)
		       ? "some: this user has no inotify watches left (fs.inotify.max_user_watches)"
		       : "yes";
}

void cube_fuse_watch_stop(struct cube_fuse_watch *w)
{
	const uint64_t one = 1;

	if (w->started && write(w->stop, &one, sizeof(one)) == sizeof(one))
		(void)pthread_join(w->thread, NULL);
	w->started = false;
	cube_close_auto(&w->stop);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE session: set up, run, ended. */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "fs/fuse/loop.h"
#include "fs/fuse/priv.h"
#include "fs/fuse/room.h"

#define SESSION_THREADS    256
#define SESSION_BACKGROUND 64
#define SESSION_PARK_MS    2

void cube_fuse_init_conn(void *userdata, struct fuse_conn_info *conn)
{
	struct cube_fuse *f = userdata;

	conn->max_background = SESSION_BACKGROUND;
	conn->max_write = CUBE_ROOM_DATA;
	/* Not wanted: the inside writes to the same files, and their setuid bits are our matter in another way
	 * (newer.h). */
	conn->want &=
		~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_EXPORT_SUPPORT);
	cube_log(CUBE_LOG_INFO, "fuse", "protocol %u.%u", conn->proto_major, conn->proto_minor);
	cube_fuse_watch_start(&f->watch, conn->proto_minor);
	atomic_store(&f->o.keep->head->ready, 1);
	if (f->o.ready != NULL)
		f->o.ready(f->o.ctx);
}

/* The descriptor is the supervisor's: requests and replies pass through these. */
static ssize_t session_read(int fd, void *buf, size_t len, void *userdata)
{
	struct cube_fuse *f = userdata;

	return cube_wire_read(&f->wire, fd, buf, len < CUBE_ROOM_SIZE ? len : CUBE_ROOM_SIZE);
}

static ssize_t session_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct cube_fuse *f = userdata;

	return cube_wire_writev(&f->wire, fd, iov, count);
}

static const struct fuse_custom_io session_io = {.read = session_read, .writev = session_writev};

static int session_new(struct cube_fuse *f)
{
	char name[] = "cubefs", debug[] = "-d";
	char *argv[] = {name, debug, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(f->o.debug ? 2 : 1, argv);
	int fd;

	f->se = fuse_session_new(&args, &cube_fuse_ops, sizeof(cube_fuse_ops), f);
	fuse_opt_free_args(&args);
	if (f->se == NULL)
		return -ENOMEM;
	fd = dup(f->o.fd); /* the session closes what it is given */
	if (fd < 0)
		return -errno;
	return fuse_session_custom_io(f->se, &session_io, fd);
}

static int session_locks(struct cube_fuse *f)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&f->answering, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	return cube_fuse_locks_init(f);
}

/* A worker that nobody follows. */
static int session_keep(struct cube_fuse *f, struct cube_err *err)
{
	int r = cube_keep_make(&f->own_keep_fd, err);

	if (r == 0)
		r = cube_keep_open(f->own_keep_fd, &f->own_keep, err);
	if (r < 0)
		cube_close_auto(&f->own_keep_fd);
	f->o.keep = f->own_keep;
	return r;
}

int cube_fuse_new(const struct cube_fuse_options *o, struct cube_fuse **ret, struct cube_err *err)
{
	struct cube_fuse *f = cube_calloc(1, sizeof(*f));
	int code = -ENOMEM;

	if (f == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	f->o = *o;
	f->files = o->files;
	f->own_keep_fd = -1;
	if (f->o.keep == NULL && session_keep(f, err) < 0) {
		cube_free(f);
		return err->code;
	}
	cube_fh_init(&f->fh, f->o.keep);
	cube_list_init(&f->watched);
	cube_fuse_watch_init(&f->watch, f);
	f->notify = cube_fuse_notify_new(f);
	if (f->notify != NULL)
		code = session_locks(f);
	if (code == 0)
		code = cube_fuse_interrupts_init(f);
	if (code == 0)
		code = cube_fuse_pass_init(&f->pass, &f->wire, o->fd);
	if (code == 0) {
		cube_fuse_newer_add(&f->newer, &f->wire);
		code = session_new(f);
	}
	if (code != 0) {
		cube_fuse_free(f);
		return cube_fail(err, code < 0 ? code : -EIO, "the FUSE session cannot be set up: %s",
				 cube_errno_text(code));
	}
	*ret = f;
	return 0;
}

static void session_entry_changed(void *ctx, uint64_t parent, const char *name)
{
	const struct cube_fuse *f = ctx;

	cube_fuse_notify_entry(f->notify, parent, name);
}

static const char *session_served(void *ctx)
{
	struct cube_fuse *f = ctx;

	return cube_fuse_pass_why_not(&f->pass);
}

static const char *session_kept(void *ctx)
{
	const struct cube_fuse *f = ctx;

	return cube_fuse_watch_kept(&f->watch);
}

static bool session_behind(void *ctx, void (*told)(void *arg), void *arg)
{
	struct cube_fuse *f = ctx;

	cube_files_tell(f->files);
	return cube_fuse_notify_first(f->notify, told, arg);
}

struct cube_tree_watcher cube_fuse_watcher(struct cube_fuse *f)
{
	return (struct cube_tree_watcher){.ctx = f,
					  .entry = session_entry_changed,
					  .served = session_served,
					  .behind = session_behind,
					  .kept = session_kept,
					  .keeps = f->o.keeps != CUBE_FUSE_KEEPS_NOTHING};
}

/* What the kernel keeps of it was found by the worker before, who is not there to say that it is old. */
static void session_forgotten(void *ctx, uint64_t id)
{
	const struct cube_fuse *f = ctx;

	(void)fuse_lowlevel_notify_inval_inode(f->se, id, -1, 0);
}

/* What the first worker agreed with the kernel; then all that it has no answer for. */
static int session_go_on(struct cube_fuse *f)
{
	struct fuse_buf buf = {0};
	int r;

	if (!f->life.replays)
		return 0;
	cube_fuse_restore_files(f);
	r = fuse_session_receive_buf(f->se, &buf);
	if (r <= 0)
		return r < 0 ? r : -EIO;
	fuse_session_process_buf(f->se, &buf);
	cube_wire_served(&f->wire);
	if (f->o.keeps != CUBE_FUSE_KEEPS_NOTHING)
		cube_files_each(f->files, session_forgotten, f);
	cube_free(buf.mem); /* libfuse has it from malloc, as we do */
	r = cube_fuse_life_go_on(&f->life);
	if (r < 0)
		cube_log(CUBE_LOG_ERROR, "fuse", "the kernel cannot send its requests again: %s",
			 cube_errno_text(r));
	return r;
}

int cube_fuse_run(struct cube_fuse *f, struct cube_tree *tree)
{
	int code;

	f->tree = tree;
	cube_fuse_journal_add(&f->journal, f->o.keep, f->o.fd, &f->wire);
	cube_fuse_life_add(&f->life, f->o.keep, f->o.fd, &f->wire);
	code = cube_fuse_notify_start(f->notify);
	if (code == 0)
		code = session_go_on(f);
	if (code == 0)
		code = cube_fuse_loop(f->se, &f->wire, SESSION_THREADS);
	cube_fuse_locks_done(f);
	return code;
}

void cube_fuse_stop(struct cube_fuse *f)
{
	fuse_session_exit(f->se);
}

void cube_fuse_park(struct cube_fuse *f, unsigned ms)
{
	struct timespec step = {.tv_nsec = SESSION_PARK_MS * 1000000L};

	for (unsigned at = 0; !cube_wire_park(&f->wire) && at < ms; at += SESSION_PARK_MS)
		(void)nanosleep(&step, NULL);
}

void cube_fuse_free(struct cube_fuse *f)
{
	if (f == NULL)
		return;
	cube_fuse_watch_stop(&f->watch);
	cube_fuse_notify_free(f->notify);
	cube_fuse_interrupts_done(f);
	if (f->se != NULL)
		fuse_session_destroy(f->se);
	cube_fuse_pass_done(&f->pass);
	cube_imap_free(f->locks);
	cube_fh_done(&f->fh);
	cube_keep_close(f->own_keep);
	cube_close_auto(&f->own_keep_fd);
	cube_free(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fs/fuse share. */
#ifndef CUBEFS_FS_FUSE_PRIV_H
#define CUBEFS_FS_FUSE_PRIV_H

#include <fuse_lowlevel.h>
#include <pthread.h>

#include "backends/base/list.h"
#include "backends/base/map.h"
#include "fs/fuse/fh.h"
#include "fs/fuse/fuse.h"
#include "fs/fuse/journal.h"
#include "fs/fuse/life.h"
#include "fs/fuse/newer.h"
#include "fs/fuse/passthrough.h"
#include "fs/fuse/wire.h"

struct cube_fuse_notify;

/* watch.c */
struct cube_fuse_watch {
	struct cube_fuse *f;
	int fd; /* readable: there is something to be told; that of fs/files. -1: nothing is kept */
	int stop;
	pthread_t thread;
	bool started;
	const char *why; /* nothing is kept; NULL: something is */
};

struct cube_fuse {
	struct cube_fuse_options o;
	struct cube_files_space *files;
	struct cube_tree *tree;
	struct fuse_session *se;
	struct cube_wire wire;
	struct cube_fuse_pass pass;
	struct cube_fuse_newer newer;
	struct cube_keep *own_keep; /* where nothing outlives us, what is kept is our own */
	int own_keep_fd;
	struct cube_fh fh;
	struct cube_fuse_journal journal;
	struct cube_fuse_life life;
	struct cube_fuse_notify *notify;
	struct cube_fuse_watch watch;
	/* Held for reading by whoever looks a name up and answers; passed by the notifier before it tells the
	 * kernel, so that no older answer can arrive behind the news. */
	pthread_rwlock_t answering;
	/* interrupt.c */
	struct cube_list watched; /* requests whose callers have a signal that means nothing; the loop's */
	struct cube_timer *timer;
	/* lock.c */
	pthread_mutex_t locks_lock;
	struct cube_imap *locks; /* key -> struct cube_cancel */
	uint64_t next_lock;
	unsigned lock_threads;
	pthread_cond_t locks_idle;
};

/* The arguments of a request, for whichever side carries it out. Strings and data are libfuse's while its
 * handler runs, the request's own when it had to wait. */
struct cube_fuse_args {
	struct cube_fuse *f;
	fuse_req_t req;
	uint64_t node, new_node;
	const char *name, *new_name;
	mode_t mode;
	dev_t rdev;
	unsigned flags, set;
	struct stat st;
	size_t size;
	off_t off;
	const char *data;
	struct fuse_file_info fi;
	bool has_fi;
	struct cube_poller *poller;
	uint64_t unique;    /* of the request */
	uint32_t asked;     /* the kernel's word for it (newer.h) */
	bool again;         /* it was begun by a worker before, and may have been done */
	uint64_t shown_ino; /* 0, or the number that our own node has for a real directory */
};

/* A kind of request: what it is for the tree, how its result is answered, and what to do when it is about
 * real files. */
struct cube_fuse_op {
	enum cube_req_op op;
	bool names; /* answers with names the kernel will keep: before the notifier, see above */
	void (*real)(const struct cube_fuse_args *a);
};

/* A request on its way through the tree. */
struct cube_fuse_call {
	struct cube_req r;
	struct cube_fuse_args a;
	const struct cube_fuse_op *op;
	uint64_t fh; /* of an open: the number that it will have */
	char *buf;   /* a listing that is being filled */
	size_t len;
};

/* call.c: carries out @a, here or through the tree. */
void cube_fuse_dispatch(const struct cube_fuse_args *a, const struct cube_fuse_op *op);
void cube_fuse_call_end(struct cube_fuse_call *c); /* answers with its result, and frees it */
struct cube_fuse_args cube_fuse_args_of(fuse_req_t req, uint64_t node);
struct cube_caller cube_fuse_caller(fuse_req_t req);
struct cube_files_cred cube_fuse_cred(const struct cube_fuse_args *a);
/* What is open under the request's number; NULL: nothing, or nothing any more. */
void *cube_fuse_open_of(const struct cube_fuse_args *a);
/* answer.c: what the tree said, in the kernel's words. */
void cube_fuse_answer(struct cube_fuse_call *c, int result);
int cube_fuse_list_entry(struct cube_req *r, const char *name, const struct cube_tree_entry *e,
			 uint64_t next);
/* The reply to an open, with flags that libfuse has no field for. */
int cube_fuse_reply_open(fuse_req_t req, uint64_t fh, uint32_t flags);
/* The attributes, for whichever request asked; @birth NULL: nobody knows when it was made. */
int cube_fuse_reply_attr(const struct cube_fuse_args *a, const struct stat *st, double timeout,
			 const struct timespec *birth);
/* An open file more: its number, and how its data goes. */
struct cube_fuse_real_open {
	uint64_t fh;
	int32_t id;  /* 0: it is served, else its data passes through */
	bool direct; /* nothing of it is cached, and so no shared mapping can be made */
	bool keep;   /* what is cached already still holds */
};
/* The reply for a real file. */
int cube_fuse_reply_real(fuse_req_t req, const struct cube_fuse_real_open *o);
int cube_fuse_reply_created(fuse_req_t req, const struct fuse_entry_param *e,
			    const struct cube_fuse_real_open *o);
/* What the worker before had opened for this very request, and had no time to tell: answered, and true. */
bool cube_fuse_opened_before(const struct cube_fuse_args *a);

/* real.c, realdir.c: real files, one function a request. */
void cube_fuse_real_lookup(const struct cube_fuse_args *a);
void cube_fuse_real_getattr(const struct cube_fuse_args *a);
void cube_fuse_real_setattr(const struct cube_fuse_args *a);
void cube_fuse_real_readlink(const struct cube_fuse_args *a);
void cube_fuse_real_mknod(const struct cube_fuse_args *a);
void cube_fuse_real_mkdir(const struct cube_fuse_args *a);
void cube_fuse_real_symlink(const struct cube_fuse_args *a);
void cube_fuse_real_link(const struct cube_fuse_args *a);
void cube_fuse_real_unlink(const struct cube_fuse_args *a);
void cube_fuse_real_rmdir(const struct cube_fuse_args *a);
void cube_fuse_real_rename(const struct cube_fuse_args *a);
void cube_fuse_real_create(const struct cube_fuse_args *a);
void cube_fuse_real_access(const struct cube_fuse_args *a);
void cube_fuse_real_statfs(const struct cube_fuse_args *a);
void cube_fuse_real_xattr(const struct cube_fuse_args *a);
void cube_fuse_real_open(const struct cube_fuse_args *a);
void cube_fuse_real_read(const struct cube_fuse_args *a);
void cube_fuse_real_write(const struct cube_fuse_args *a);
void cube_fuse_real_flush(const struct cube_fuse_args *a);
void cube_fuse_real_release(const struct cube_fuse_args *a);
void cube_fuse_real_lseek(const struct cube_fuse_args *a);
void cube_fuse_real_opendir(const struct cube_fuse_args *a);

/* @h is released where that fails: -ENOMEM, -ENFILE. */
int cube_fuse_real_opened(const struct cube_fuse_args *a, uint64_t node, struct cube_files_handle *h,
			  struct cube_fuse_real_open *ret);
/* Would a shared writable mapping of it be another file than the inside has? (One that is served is mapped by way of the
 * kernel's cache of this mount.) As of now: @id as in cube_fuse_real_open. */
bool cube_fuse_real_direct(struct cube_fuse *f, uint64_t node, int flags, int32_t id);
void cube_fuse_real_closed(struct cube_fuse *f, uint64_t node, uint64_t fh); /* releases what is open */

/* dir.c: an open directory, whoever's it is. */
struct cube_fuse_dir {
	struct cube_files_handle *real; /* NULL: the tree's, or one that looks empty */
	uint64_t shown_ino;
};
int cube_fuse_dir_open(const struct cube_fuse_args *a, struct cube_files_handle *real);
/* The same without an answer; NULL: memory. */
struct cube_fuse_dir *cube_fuse_dir_new(struct cube_files_handle *real, uint64_t shown_ino);
void cube_fuse_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cube_fuse_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cube_fuse_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void cube_fuse_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* lock.c: locks on real files; waiting ones on threads of their own. */
int cube_fuse_locks_init(struct cube_fuse *f);
void cube_fuse_locks_done(struct cube_fuse *f); /* gives up those that wait */
void cube_fuse_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void cube_fuse_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
		     int sleep);
void cube_fuse_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op);

/* interrupt.c: the kernel says that a caller has a signal. */
int cube_fuse_interrupts_init(struct cube_fuse *f);
void cube_fuse_interrupts_done(struct cube_fuse *f); /* the loop has ended */
void cube_fuse_parked(struct cube_req *r);

/* restore.c: real files that a worker before had open */
void cube_fuse_restore_files(struct cube_fuse *f);

/* notify.c */
struct cube_fuse_notify *cube_fuse_notify_new(struct cube_fuse *f); /* NULL: memory */
int cube_fuse_notify_start(struct cube_fuse_notify *n);
void cube_fuse_notify_free(struct cube_fuse_notify *n);
/* Is something to be told yet? Then the notifier calls @told(@arg) behind it; else false, and nothing is done. */
bool cube_fuse_notify_first(struct cube_fuse_notify *n, void (*told)(void *arg), void *arg);
void cube_fuse_notify_entry(struct cube_fuse_notify *n, uint64_t parent, const char *name); /* never blocks */
/* The same of a real directory. @again: it is enough if it is asked for again. */
void cube_fuse_notify_real(struct cube_fuse_notify *n, uint64_t dir, const char *name, bool again);
/* Asks whether anything runs in the tree of that real node. */
void cube_fuse_notify_ask(struct cube_fuse_notify *n, uint64_t id);

/* watch.c: what the kernel keeps of real files */
#define CUBE_FUSE_KEEP 86400.0 /* seconds: until it is told */
void cube_fuse_watch_init(struct cube_fuse_watch *w, struct cube_fuse *f);
void cube_fuse_watch_start(struct cube_fuse_watch *w, unsigned minor); /* with INIT, of that protocol */
void cube_fuse_watch_stop(struct cube_fuse_watch *w);
bool cube_fuse_watch_keeps(const struct cube_fuse_watch *w);
/* "yes", "some: WHY NOT ALL" or "no: WHY"; of static memory. */
const char *cube_fuse_watch_kept(const struct cube_fuse_watch *w);
/* No name that the kernel has is believed any more: it asks again. */
void cube_fuse_watch_epoch(struct cube_fuse *f);

/* ops.c */
extern const struct fuse_lowlevel_ops cube_fuse_ops;
void cube_fuse_init_conn(void *userdata, struct fuse_conn_info *conn);

#endif

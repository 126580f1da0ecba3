/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE front end: the tree as a file system of this machine. */
#ifndef CUBEFS_FS_FUSE_FUSE_H
#define CUBEFS_FS_FUSE_FUSE_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/conf.h"
#include "backends/base/err.h"
#include "backends/base/loop.h"
#include "fs/keep/keep.h"
#include "fs/tree/tree.h"

struct cube_fuse;

/* What the kernel keeps of real files (watch.c). */
enum cube_fuse_keeps {
	CUBE_FUSE_KEEPS_NOTHING,
	CUBE_FUSE_KEEPS_IF_IT_CAN, /* where nothing is set */
	CUBE_FUSE_KEEPS_ASKED,     /* for: where it cannot, that is worth a warning */
};

struct cube_fuse_options {
	struct cube_loop *loop;
	struct cube_files_space *files;
	int fd;                     /* /dev/fuse, mounted; stays the caller's */
	struct cube_keep *keep;     /* what outlives this worker; stays the caller's. NULL: nothing does */
	uid_t uid;                  /* who mounted */
	enum cube_fuse_keeps keeps; /* cube_fuse_conf */
	bool debug;                 /* libfuse's trace of requests */
	void (*ready)(void *ctx);   /* the kernel and we agree: the mount can be used. On a worker thread */
	void *ctx;
};

/* The section [files] of the configuration (NULL: none): are names and attributes of real files left to the kernel's
 * cache until it is told that they are old? Else it asks each time. -EINVAL. */
int cube_fuse_conf(const struct cube_conf *conf, enum cube_fuse_keeps *ret, struct cube_err *err);

/* What `cubefs doctor` says about that section: nothing where it asks for nothing. */
void cube_fuse_doctor(const struct cube_conf *conf,
		      void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx);

/* Starts no thread. What the tree has to tell goes to cube_fuse_watcher. */
int cube_fuse_new(const struct cube_fuse_options *o, struct cube_fuse **ret, struct cube_err *err);
struct cube_tree_watcher cube_fuse_watcher(struct cube_fuse *f);

/* As a worker before this one had it, if there was one: nodes and open files of @tree, before the domain is started.
 * -ENOMEM. */
int cube_fuse_restore(struct cube_fuse *f, struct cube_tree *tree);
/* Serves @tree, on threads of its own and the caller's, until the file system is unmounted (0) or the
 * connection breaks. The loop must be running on another thread. */
int cube_fuse_run(struct cube_fuse *f, struct cube_tree *tree);
/* Makes run return soon though the file system is still mounted: the thread that called it must get a signal
 * that interrupts system calls, again and again until it has. */
void cube_fuse_stop(struct cube_fuse *f);
/* No request is begun any more, for the rest of this process. Waits, @ms at most, until those that threads serve have been
 * served; those that wait for something remain, as after a sudden end. */
void cube_fuse_park(struct cube_fuse *f, unsigned ms);
/* After run returned and the loop ended. */
void cube_fuse_free(struct cube_fuse *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the tree, whatever protocol brought it.
 *
 * The front end fills the first part, calls cube_tree_submit, and gets exactly one answer, on any thread and
 * with no lock held, maybe before submit returns, maybe much later:
 *
 *   done   with the result: 0 or a count, or a negative errno (the sentence is in `err` and was noted in the
 *          `error` files);
 *   real   the request is about real files after all (a name below `files/`): the front end carries it out
 * with fs/files, with real_id in place of `node` and real_new_id in place of `new_parent`, and then calls
 *          cube_req_fini. The thread may block on the sandbox's files.
 *
 * A request that has to wait is *parked*: `parked` is called once, under the domain lock, and from then on
 * cube_tree_cancel(tree, key) ends it with -EINTR. What `name`, `new_name` and `data` point to must live
 * until the answer. */
#ifndef CUBEFS_FS_TREE_REQ_H
#define CUBEFS_FS_TREE_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "ctl/alarm.h"
#include "ctl/caller.h"
#include "ctl/domain.h"
#include "ctl/job.h"
#include "fs/keep/keep.h"

enum cube_req_op {
	CUBE_REQ_LOOKUP,   /* node, name -> entry */
	CUBE_REQ_GETATTR,  /* node -> entry.st */
	CUBE_REQ_SETATTR,  /* node, [handle], set_st, set -> entry.st */
	CUBE_REQ_READLINK, /* node -> out */
	CUBE_REQ_MKNOD,    /* node, name */
	CUBE_REQ_MKDIR,    /* node, name -> entry */
	CUBE_REQ_SYMLINK,
	CUBE_REQ_LINK,
	CUBE_REQ_UNLINK,
	CUBE_REQ_RMDIR,
	CUBE_REQ_RENAME, /* node, name, new_parent, new_name, flags (renameat2) */
	CUBE_REQ_CREATE,
	CUBE_REQ_ACCESS,  /* node, flags: R_OK ... */
	CUBE_REQ_STATFS,  /* node -> vfs */
	CUBE_REQ_XATTR,   /* node, name (NULL: list), set: 1 to change; -> result only */
	CUBE_REQ_OPEN,    /* node, flags (open(2)) -> opened */
	CUBE_REQ_READ,    /* handle, size, offset, flags -> out */
	CUBE_REQ_WRITE,   /* handle, data, size, offset, flags -> count */
	CUBE_REQ_FLUSH,   /* handle, lock_owner: a copy of the descriptor was closed */
	CUBE_REQ_RELEASE, /* handle: the last one was; frees it */
	CUBE_REQ_LSEEK,   /* handle, offset, flags: SEEK_DATA, SEEK_HOLE -> offset */
	CUBE_REQ_POLL,    /* handle, flags: events asked for; poll_notify -> events that hold */
	CUBE_REQ_OPENDIR, /* node */
	CUBE_REQ_READDIR, /* node, offset, plus, add */
};
#define CUBE_REQ_COUNT (CUBE_REQ_READDIR + 1)

struct cube_tree;
struct cube_tree_view;
struct cube_node;
struct cube_handle;
struct cube_files;
struct cube_changes_text;

struct cube_tree_entry {
	uint64_t id;
	struct stat st;
	double entry_timeout, attr_timeout; /* how long the name and the attributes may be believed */
};

/* Somebody polls: called once, no lock held, when the events may have changed, or (@news false) when nobody
 * waits any more. Owns *p. */
struct cube_poller {
	struct cube_deferred deferred;
	bool news;
	void (*fn)(struct cube_poller *p);
};

/* What the tree finds out about a process of this machine (proc.h). */
struct cube_proc {
	bool known;   /* the rest is filled */
	bool visible; /* it could be looked at */
	pid_t tgid;
	bool exiting;    /* it is on its way out ... */
	int exit_signal; /* ... and this signal ended it; 0: it exits by itself */
};

/* Where a read of a channel begins. */
struct cube_kept_place {
	uint64_t pos, used, job;
	uint32_t text;
	bool ended;
};

struct cube_req {
	/* ---- the front end's ---- */
	enum cube_req_op op;
	struct cube_caller caller;
	struct cube_tree_view *files_view; /* whose real files; NULL: the tree's own */
	uint64_t node, new_parent;
	const char *name, *new_name;
	unsigned flags;
	struct cube_handle *handle;
	uint64_t offset;
	const char *data;
	size_t size;
	uint64_t lock_owner;
	const struct stat *set_st;
	unsigned set;                  /* CUBE_SET_* of fs/files */
	uint64_t unique;               /* the front end's number of it */
	bool again;                    /* it may have been done by a worker before this one */
	struct cube_keep_handle *kept; /* open: where the next worker finds it; NULL: nowhere */
	bool caches;                   /* rmdir, rename: the front end's caches know it without being told */
	bool lost;                     /* release: whoever had it open went without a close */
	bool plus;                     /* readdir: with attributes, each counted as a lookup */
	struct cube_poller *poller;    /* poll: taken over, or NULL */
	/* One entry; under the lock, must not block. Non-zero: no room, stop. */
	int (*add)(struct cube_req *r, const char *name, const struct cube_tree_entry *e, uint64_t next);
	void (*done)(struct cube_req *r, int result);
	void (*real)(struct cube_req *r);
	void (*parked)(struct cube_req *r); /* may be NULL */
	/* ---- answers ---- */
	struct cube_tree_entry entry;
	struct cube_handle *opened;
	bool stream;     /* opened: no position, reads may wait */
	bool constant;   /* opened: the content never changes */
	bool flushes;    /* opened: FLUSH means something */
	const char *out; /* read, readlink; valid until cube_req_fini */
	size_t out_len;
	struct statvfs vfs;
	struct cube_err err;
	uint64_t key; /* for cube_tree_cancel; set by submit */
	/* ---- the tree's ---- */
	struct cube_tree *tree;
	struct cube_node *n;
	int (*step)(struct cube_req *r);
	/* Parked, and called off by its caller or (@interrupted false) because the daemon ends: what else to
	 * do. */
	void (*on_cancel)(struct cube_req *r, bool interrupted);
	void (*unlocked)(struct cube_req *r);
	struct cube_waiter waiter;
	struct cube_deferred deferred;
	struct cube_work work;
	struct cube_proc proc;
	struct cube_files *files; /* real: held until fini */
	char *own;                /* out, when it is the request's own */
	void *state;              /* of the step */
	struct cube_job *job;     /* waited for or read; referenced */
	struct cube_output *output;
	struct cube_changes_text *changes; /* of an open; owned */
	struct cube_spool_view view;
	struct cube_kept_place before; /* read */
	size_t progress;               /* write: bytes that are dealt with */
	struct cube_alarm alarm;       /* of cube_req_timeout */
	bool late;                     /* it went off */
	uint64_t real_id, real_new_id;
	int result;
	bool is_parked, was_parked, finished, noted;
};

/* After done or real: releases what the tree keeps with the request. */
void cube_req_fini(struct cube_req *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a worker: the numbers that the kernel has of nodes and open files, and what is half done.
 *
 * A worker may be killed at any instruction; the memory here is shared with the supervisor, so that the next one
 * finds it as it was. It is no file system's disk: a reboot takes the mount away, and this with it.
 *
 * Tables of records. A record whose key is 0 is free. Whoever makes one fills it first and sets its key last; whoever
 * ends it sets the key to 0 first. So each record is there in whole or not at all, whenever this process ends. What
 * changes in a living record either fits one store, or is written beside what holds now and then made to hold
 * by one store. Tables are sparse: what is not used takes no memory. A full table is no failure: what found no room is
 * not known to the next worker, and stale for who has it.
 *
 * Who does not survive (tests, a 9P server) has none: every user takes NULL for it. */
#ifndef CUBEFS_FS_KEEP_KEEP_H
#define CUBEFS_FS_KEEP_KEEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

#define CUBE_KEEP_NONE UINT32_MAX
#define CUBE_KEEP_LOST (-2) /* in place of a descriptor: the next worker could not have it */

/* ---- records: each begins with its key ---- */

/* A node of the tree: an entry of an object. */
struct cube_keep_node {
	_Atomic uint64_t key; /* node id */
	uint64_t obj;         /* inode number of the object's directory */
	uint32_t slot;
	uint32_t fresh;
	_Atomic uint64_t
		lookups; /* of the kernel's; never too few: what is left when it forgets would be stale for it */
};

/* A node of fs/files. Names above the 15 bytes that fit are in `names`. */
#define CUBE_KEEP_NAME 16
struct cube_keep_file {
	_Atomic uint64_t key; /* node id */
	uint64_t parent;
	uint64_t ino, dev;
	uint32_t root; /* record of its tree */
	uint32_t seq;  /* of two with one key the higher one holds */
	uint32_t long_name;
	uint16_t type; /* mode >> 12 */
	uint16_t is_void;
	_Atomic uint64_t lookups; /* as a node's */
	char name[CUBE_KEEP_NAME];
};

struct cube_keep_name {
	_Atomic uint64_t key; /* of the node */
	char name[256];
};

/* Files of a sandbox, a volume or a checkpoint that are shown. */
struct cube_keep_root {
	_Atomic uint64_t key; /* id of their root node */
	uint64_t obj;
	uint32_t generation;
	uint32_t pad;
};

/* A lock owner's description of a real file. */
struct cube_keep_lock {
	_Atomic uint64_t key; /* node id */
	uint64_t owner;
	int32_t fd;
	uint32_t writes;
};

/* Who removes. */
struct cube_keep_mark {
	_Atomic uint64_t key; /* the thread group's number */
	uint64_t obj;
	int32_t pidfd;
	uint32_t pad;
};

/* Text that a handle has: the first bytes here, or all of it in the file @fd. */
#define CUBE_KEEP_SMALL 160
struct cube_keep_text {
	int32_t fd; /* -1: it fits; CUBE_KEEP_LOST */
	char small[CUBE_KEEP_SMALL];
};

enum cube_keep_kind { CUBE_KEEP_TREE, CUBE_KEEP_FILE, CUBE_KEEP_DIR };

/* What of an open file of the tree changes, and changes as one. */
struct cube_keep_state {
	uint64_t unique; /* the request that it changed by last */
	uint64_t progress;
	uint32_t in_len, text_off, text_len, closes;
	bool touched, failed, applied, owner_known, ended, talks, hold;
	uint64_t owner, pos, used, job, ran;
	/* before that request, for a read that has to be done again */
	uint64_t before_pos, before_used, before_job;
	uint32_t before_text;
	bool before_ended;
};

struct cube_keep_handle {
	_Atomic uint64_t key; /* node id */
	uint64_t opened;      /* by the request of that number */
	uint32_t kind;
	uint32_t use;    /* how often the record was taken: part of the number that the kernel has */
	int32_t flags;   /* open(2)'s */
	int32_t fd;      /* of a real one; -1, CUBE_KEEP_LOST */
	int32_t backing; /* the kernel's id of what is behind it; 0: it is served */
	_Atomic uint32_t which;
	_Atomic uint32_t whole; /* its open came to its end */
	_Atomic uint64_t poll;  /* the kernel's number of who polls; 0: nobody */
	uint64_t shown_ino;
	/* the tree's */
	int32_t pid, tgid;
	uint32_t uid, gid;
	bool local, owner, truncated;
	char making[72];         /* clone: the name it is about to give */
	uint64_t base;           /* where reading began */
	_Atomic uint64_t intent; /* the number of a job that is about to be made, or was; how far a verb is */
	_Atomic uint64_t intent_unique;
	struct cube_keep_text in, text;
	struct cube_keep_state state[2];
};

/* A request that must not be done twice. */
#define CUBE_KEEP_REPLY 208
enum cube_keep_stage { CUBE_KEEP_STARTED = 1, CUBE_KEEP_DONE };
struct cube_keep_call {
	_Atomic uint64_t key; /* unique */
	_Atomic uint32_t stage;
	uint32_t life; /* of the worker that began it */
	uint64_t aux;
	uint32_t has_aux;
	uint32_t len;
	char reply[CUBE_KEEP_REPLY];
};

/* A setting of the daemon that was changed since its start. */
#define CUBE_KEEP_SETTINGS 32
struct cube_keep_setting {
	_Atomic uint32_t there;
	char key[28];
	_Atomic uint64_t value;
};

/* ---- the whole ---- */

#define CUBE_KEEP_INIT 256

/* One more with each change of what stands in this memory: a program that does not have the number refuses to take
 * over from one that has it. */
#define CUBE_KEEP_VERSION 3

struct cube_keep_head {
	uint64_t magic;
	uint32_t version, head_size;
	_Atomic uint32_t lives; /* how many workers there were */
	_Atomic uint32_t ready; /* this one serves */
	/* The process that has the descriptors, and (above it) one that is about to have them or has them no more. */
	_Atomic uint64_t holders;
	_Atomic uint32_t deaths; /* in a row, to be told by the next */
	_Atomic int32_t signal;  /* how the last one ended */
	_Atomic uint32_t canary; /* the setting of that name: seconds, 0: never */
	_Atomic uint32_t handed; /* the last one ended since another program takes over */
	_Atomic uint32_t
		hung; /* the last one was ended after so many seconds without an answer; 0: it was not */
	_Atomic uint64_t next_node, last_file;
	_Atomic uint32_t init_len, answer_len;
	char init[CUBE_KEEP_INIT], answer[CUBE_KEEP_INIT]; /* the first request and its reply */
	_Atomic uint32_t used[16];                         /* of each table: records that were ever in use */
	struct cube_keep_setting settings[CUBE_KEEP_SETTINGS];
};

struct cube_keep_table {
	char *base;
	size_t size;
	uint32_t max;
	_Atomic uint32_t *used;
	pthread_mutex_t lock;
	uint32_t *gaps; /* free records below `used` */
	uint32_t n_gaps, room;
};

struct cube_keep {
	struct cube_keep_head *head;
	size_t size;
	int fd;
	struct cube_keep_table nodes, files, names, roots, locks, marks, handles, calls;
};

/* The memory, empty: a descriptor that children inherit. */
int cube_keep_make(int *ret_fd, struct cube_err *err);
/* Maps it; @fd stays the caller's. -EPROTO: it is another version's. */
int cube_keep_open(int fd, struct cube_keep **ret, struct cube_err *err);
void cube_keep_close(struct cube_keep *k); /* NULL is harmless */

/* A free record, key 0, other bytes undefined; CUBE_KEEP_NONE: none. Any thread. */
uint32_t cube_keep_take(struct cube_keep_table *t);
void cube_keep_give(struct cube_keep_table *t, uint32_t i); /* NONE is harmless */
void *cube_keep_at(const struct cube_keep_table *t, uint32_t i);
uint32_t cube_keep_used(const struct cube_keep_table *t);

/* Is as good as not said where there is no room. One thread at a time. */
void cube_keep_set(struct cube_keep *k, const char *key, uint64_t value);

/* @len bytes at @at of a text. What is behind them stays. 0 or -errno. */
int cube_keep_text_put(struct cube_keep_text *t, size_t at, const void *data, size_t len);
int cube_keep_text_get(const struct cube_keep_text *t, size_t at, void *data, size_t len);
void cube_keep_text_drop(struct cube_keep_text *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic tree of interface.md, for the front ends (FUSE, 9P).
 *
 * Names, nodes, open handles and requests; what they mean is ctl's matter. A front end translates its
 * protocol's messages into requests (req.h) and decides nothing. Node ids are never used twice and never have
 * CUBE_FILES_ID set; those that have it belong to fs/files and never come here. */
#ifndef CUBEFS_FS_TREE_TREE_H
#define CUBEFS_FS_TREE_TREE_H

#include "fs/files/files.h"
#include "fs/tree/req.h"

#define CUBE_TREE_ROOT 1 /* node id of the root; needs no lookup count */

/* News for the front end's caches. Called under the domain lock: must only queue. */
struct cube_tree_watcher {
	void *ctx;
	void (*entry)(void *ctx, uint64_t parent,
		      const char *name); /* the name came, went, or is another thing now */
	/* NULL: the data of real files does not come by; else why it does (constant). May be asked under the lock,
	 * blocks on nothing. */
	const char *(*served)(void *ctx);
	/* Likewise: does the kernel keep names and attributes of real files? "yes", "some: WHY NOT ALL", "no: WHY". */
	const char *(*kept)(void *ctx);
	/* Has something been queued by `entry` that is not told yet? Then @told(@arg) is called behind it, on a thread
	 * of the front end's; else false, and it is not. No lock held. NULL: never. */
	bool (*behind)(void *ctx, void (*told)(void *arg), void *arg);
	bool keeps; /* names and attributes of real files are kept too: what the inside does may be news to `behind` */
};

struct cube_tree_options {
	struct cube_domain *domain;
	struct cube_files_space *files;
	struct cube_keep *keep; /* what outlives this worker; NULL: nothing does */
	struct cube_tree_watcher watcher;
};

/* Before threads are started; takes the domain's watcher. NULL: memory. */
struct cube_tree *cube_tree_new(const struct cube_tree_options *o);
/* Nodes and open files as a worker before this one had told the kernel, if there was one: before the domain is started
 * and the first request. @adopted gets each open file with the number of its record in fs/keep. -ENOMEM. */
int cube_tree_restore(struct cube_tree *t, void (*adopted)(void *ctx, uint32_t record, struct cube_handle *h),
		      void *ctx);
/* After the domain was started: the real files that were shown are fetched again, and their nodes and locks get their
 * numbers. Waits for the backends, @ms at most; what is not there by then is stale for who has it. The loop runs on
 * another thread. */
void cube_tree_restore_files(struct cube_tree *t, unsigned ms);
/* Likewise: what is said of commands is again what was said of them before. @ms at most: a sandbox whose agent is silent
 * keeps nobody longer. */
void cube_tree_restore_jobs(struct cube_tree *t, unsigned ms);
/* No request is under way and no loop runs. */
void cube_tree_free(struct cube_tree *t);

void cube_tree_submit(struct cube_tree *t, struct cube_req *r);
/* The request with that key is not wanted any more: done comes with -EINTR, unless it was answered. Any
 * thread; a key that is not there is harmless. False: it is being served this moment and may go on waiting;
 * ask again. */
bool cube_tree_cancel(struct cube_tree *t, uint64_t key);
/* Is it still parked? *ret_pid: who waits; *ret_lasting: it stands for something that must be stopped for
 * good reason only (a command, a verb), so a mere wake-up of the caller is none. */
bool cube_tree_waiting(struct cube_tree *t, uint64_t key, pid_t *ret_pid, bool *ret_lasting);
/* Ends all that is parked with -EHOSTDOWN, and whatever would park from now on. Commands go on. */
void cube_tree_shutdown(struct cube_tree *t);

/* A look at the real files that is not the tree's own. How a link is shown goes by the path on which its reader
 * came to it, so each client that may move directories has one (files.h). Takes @files over. NULL: memory. */
struct cube_tree_view *cube_tree_view_new(struct cube_tree *t, struct cube_files_space *files);
/* No request of it is under way, none will come, all its nodes are forgotten and its files closed. */
void cube_tree_view_end(struct cube_tree *t, struct cube_tree_view *v);

/* The connection @client (struct cube_caller) is no more. */
void cube_tree_client_ends(struct cube_tree *t, uint64_t client);

/* Does anything run in the sandbox of which @id is a real node? When nothing does, its files are told (cube_files_quiet).
 */
void cube_tree_ask(struct cube_tree *t, uint64_t id);

/* Does anything run that has the file of that real node, too (cube_use_runs)? */
bool cube_tree_runs(struct cube_tree *t, uint64_t id);

/* Another front end is about to say that something is done: are there caches that do not know yet? Then
 * @told(@arg) is called when they do, on any thread; else false, and it is not. */
bool cube_tree_behind(struct cube_tree *t, void (*told)(void *arg), void *arg);

bool cube_tree_keeps(const struct cube_tree *t); /* `keeps` of the watcher */

/* Takes back @n lookups of @id. */
void cube_tree_forget(struct cube_tree *t, uint64_t id, uint64_t n);

/* Is the caller one that removes (interface.md, "rm -r"), so that the directory @id of fs/files looks empty
 * to it? @v: whose id it is; NULL: the tree's own. */
bool cube_tree_removes(struct cube_tree *t, struct cube_tree_view *v, const struct cube_caller *by,
		       uint64_t id);
/* The caller opens or makes something below the real directory @id: it is no remover there. */
void cube_tree_uses(struct cube_tree *t, struct cube_tree_view *v, const struct cube_caller *by, uint64_t id);

#endif

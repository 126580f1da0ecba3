/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fs/tree share: the tree itself, handles, classes of files, waiting. Under the domain
 * lock. */
#ifndef CUBEFS_FS_TREE_TREE_PRIV_H
#define CUBEFS_FS_TREE_TREE_PRIV_H

#include <stdatomic.h>

#include "backends/base/map.h"
#include "ctl/job.h"
#include "ctl/session.h"
#include "ctl/verb.h"
#include "fs/tree/node.h"

/* Results of a step besides 0, counts and errors. */
#define CUBE_PARK (-100000) /* it waits: somebody or something will run the step again, or finish */
#define CUBE_PROC (-100001) /* look at the caller's process first (r->proc), then run the step again */
#define CUBE_REAL (-100002) /* it is about the real node r->real_id */

#define CUBE_COLLECT_ONE (4u << 20)   /* bytes of a command, a verb line, an environment */
#define CUBE_RENDER_MAX  (64u << 20)  /* of a text that is read */
#define CUBE_COLLECT_MAX (256u << 20) /* of all handles together */

/* Lives while its maker has it, or one of its trees is on its way out. */
struct cube_tree_view {
	unsigned refs;
	struct cube_domain *domain;
	struct cube_files_space *files;
	bool own; /* the space is freed with it */
	struct cube_deferred deferred;
};

struct cube_tree {
	struct cube_domain *domain;
	struct cube_tree_view *view; /* its own */
	struct cube_keep *keep;
	struct cube_tree_watcher watcher;
	struct cube_imap *nodes;    /* id -> struct cube_node */
	struct cube_imap *parked;   /* key -> struct cube_req */
	struct cube_imap *services; /* struct cube_service * -> struct cube_obj */
	struct cube_obj *root;
	struct cube_node *root_node;
	struct cube_list marks;    /* mark.c */
	atomic_uint n_marks;       /* of them, for a look without the lock */
	struct cube_list attached; /* attach.c */
	struct cube_list again;    /* restore_files.c: what is to be attached again */
	struct cube_list handles;
	uint64_t next_id, next_key;
	size_t collected; /* bytes in handles that have not run yet */
	bool silent;      /* what happens now the front end's caches follow by themselves */
	bool closing;
};

/* An open file. Freed by RELEASE, after which no request uses it. */
struct cube_handle {
	struct cube_list link; /* tree.handles */
	struct cube_tree *tree;
	struct cube_node *node; /* referenced */
	const struct cube_class *class;
	struct cube_caller by;       /* who opened it */
	bool reads, writes, appends; /* how it was opened */
	bool truncated;
	bool channel; /* reads may wait */
	/* collecting (collect.h) */
	struct cube_buf in;
	pid_t tgid;       /* thread group that opened it; 0: not visible */
	bool owner_known; /* ... then the lock owner of the first write stands for it */
	uint64_t owner;
	bool touched, failed, applied;
	unsigned closes; /* of the opener's, with nothing to apply */
	/* what it reads */
	struct cube_buf text;
	uint64_t pos;
	bool busy;                  /* a read is under way outside the lock */
	bool ended;                 /* a channel that has given its end */
	bool talks;                 /* it has run a command of its own */
	struct cube_waitq idle;     /* busy became false; a verb of this handle ended */
	struct cube_job *job;       /* referenced */
	struct cube_output *output; /* pinned by a plain reader */
	struct cube_spool_view view;
	uint64_t base;                     /* ring position at which offset 0 lies */
	struct cube_changes_text *changes; /* owned */
	unsigned verbs;                    /* of this handle, running */
	struct cube_cube *made;            /* referenced: the sandbox that a clone made */
	struct cube_hold hold;             /* of a channel that has written `hold` */
	/* the newest poll, and what it waits on */
	struct cube_poller *poller;
	struct cube_waiter poll_waiter;
	int arg; /* the entry's */
	/* kept.c */
	struct cube_keep_handle *kept; /* NULL: nobody takes it over */
	uint64_t ran;                  /* the number of the last job that it started */
	bool rests;                    /* text is what was read of the output, from rest_at, and not given */
	uint64_t rest_at, rest_used;
	uint64_t skip;                       /* of what is read next: was given already */
	uint32_t text_off, text_end;         /* of answers: what of them is not given */
	uint64_t last_unique, last_progress; /* of the worker before: the request that changed it last */
};

/* How a file behaves when it is opened. Any of them may be NULL: nothing to check, reads are of h->text,
 * writes are refused, the rest does nothing. check, read, write and flush may return CUBE_PARK and CUBE_PROC.
 */
struct cube_class {
	bool channel;  /* opened for both it is one: reads may wait, no position */
	bool collects; /* text for whoever opened it: the opener's thread group must be known */
	bool makes; /* its open makes something: adopt is called even if the open did not come to its end */
	/* Size and time of the last change (wall clock); NULL: of the rendered text. */
	void (*stat)(struct cube_node *n, uint64_t *size, uint64_t *mtime);
	int (*check)(struct cube_req *r);                       /* may it be opened with r->flags? */
	int (*open)(struct cube_req *r, struct cube_handle *h); /* may refuse, must not wait */
	int (*read)(struct cube_req *r, struct cube_handle *h);
	int (*write)(struct cube_req *r, struct cube_handle *h);
	int (*flush)(struct cube_req *r, struct cube_handle *h);
	void (*release)(struct cube_handle *h);
	int (*adopt)(struct cube_handle *h); /* in the place of open, for one that a worker before had open */
	int (*resize)(struct cube_req *r, struct cube_handle *h, uint64_t size);
	/* The events that hold; *wait is where a change is told. NULL: always ready. */
	unsigned (*poll)(struct cube_handle *h, unsigned events, struct cube_waitq **wait);
};

/* entry.arg of cube_class_asked */
enum cube_asked_what { CUBE_ASKED_PORTS, CUBE_ASKED_ACCESS };

/* entry.arg of cube_class_ring */
enum cube_ring_what { CUBE_RING_LOG, CUBE_RING_EVENTS, CUBE_RING_METRICS };

/* entry.arg of cube_class_image */
enum cube_image {
	CUBE_IMAGE_ENV,
	CUBE_IMAGE_CWD,
	CUBE_IMAGE_USER,
	CUBE_IMAGE_STOCK_TEMPLATE,
	CUBE_IMAGE_STOCK_SIZE,
	CUBE_IMAGE_TEMPLATE, /* and the text's number behind it (enum cube_template_text) */
};

extern const struct cube_class cube_class_text, cube_class_ctl, cube_class_exec, cube_class_exit,
	cube_class_output, cube_class_ring, cube_class_image, cube_class_command, cube_class_stdin,
	cube_class_clone, cube_class_asked, cube_class_changes;

/* ---- requests (req.c) ---- */

/* cube_tree_submit and cube_tree_cancel for who is under the lock already. Who is served this moment is not
 * called off. */
void cube_req_submit(struct cube_tree *t, struct cube_req *r);
void cube_req_call_off(struct cube_req *r, int code);
/* Runs r->step and does what it says. */
void cube_req_run(struct cube_req *r);
/* Wait for @q and run the step again. Returns CUBE_PARK, or -EHOSTDOWN when the daemon is closing. */
int cube_req_wait(struct cube_req *r, struct cube_waitq *q);
/* The same without a queue: somebody keeps the request and will run or finish it. */
int cube_req_park(struct cube_req *r);
/* Out of whatever queue, for one that is parked: about to be finished or run. */
void cube_req_unpark(struct cube_req *r);
void cube_req_finish(struct cube_req *r, int result);
/* Run @fn(r) without the lock; it ends in cube_req_run or cube_req_finish under it. Returns CUBE_PARK. */
int cube_req_unlock(struct cube_req *r, void (*fn)(struct cube_req *r));
/* The request, when it is parked, is run again after @ms at the latest. Once for each request. */
void cube_req_timeout(struct cube_req *r, uint64_t ms);
/* Notes a refusal in the `error` files; @operation as in "write ctl: stop now". */
void cube_tree_note(struct cube_tree *t, struct cube_obj *o, const struct cube_caller *by,
		    const char *operation, const struct cube_err *err);

/* The front end's caches: @name in @parent went. */
void cube_tree_tell(struct cube_tree *t, struct cube_node *parent, const char *name);

/* ---- operations (one table in req.c) ---- */
int cube_dir_lookup(struct cube_req *r);
int cube_dir_mkdir(struct cube_req *r);
int cube_dir_refuse(struct cube_req *r); /* mknod, create, symlink, link */
int cube_dir_unlink(struct cube_req *r);
int cube_dir_rmdir(struct cube_req *r);
int cube_dir_rename(struct cube_req *r);
int cube_dir_opendir(struct cube_req *r);
int cube_dir_readdir(struct cube_req *r);
/* The directory @name in the directory @n, a reference: -ENOENT, -ENOTDIR, -ELOOP (a link), -ENOMEM. */
int cube_dir_enter(struct cube_node *n, const char *name, struct cube_node **ret);
int cube_attr_get(struct cube_req *r);
int cube_attr_set(struct cube_req *r);
int cube_attr_access(struct cube_req *r);
int cube_attr_statfs(struct cube_req *r);
int cube_attr_xattr(struct cube_req *r);
int cube_attr_readlink(struct cube_req *r);
int cube_handle_open(struct cube_req *r);
int cube_handle_read(struct cube_req *r);
int cube_handle_write(struct cube_req *r);
int cube_handle_flush(struct cube_req *r);
int cube_handle_release(struct cube_req *r);
int cube_handle_lseek(struct cube_req *r);
int cube_handle_poll(struct cube_req *r);
void cube_handle_free(struct cube_handle *h);

/* A handle of r->n for r->caller and r->flags, nothing done yet; NULL: memory. */
struct cube_handle *cube_handle_new(struct cube_req *r);
int cube_handle_render(struct cube_handle *h);

/* ---- kept.c: for the next worker ---- */

#define CUBE_KEPT_TEXT (64u << 10)
void cube_kept_node(struct cube_node *n);
void cube_kept_node_counted(const struct cube_node *n);
void cube_kept_node_gone(struct cube_node *n);
void cube_kept_open(struct cube_handle *h, const struct cube_req *r);
void cube_kept_opened(struct cube_handle *h);
void cube_kept_closed(struct cube_handle *h);
struct cube_kept_place cube_kept_place(const struct cube_handle *h);
/* All that changes, at once; @r: what changed it, or NULL. */
void cube_kept_save(struct cube_handle *h, const struct cube_req *r);
void cube_kept_in(struct cube_handle *h, size_t at, const char *data, size_t len);
void cube_kept_answer(struct cube_handle *h, const char *data, size_t len);
void cube_kept_intent(struct cube_handle *h, uint64_t unique, uint64_t number);
/* The number that the worker before noted so for this request; 0: none. */
uint64_t cube_kept_noted(const struct cube_req *r);
void cube_kept_making(struct cube_handle *h, const char *name);
/* The worker before has collected all of this write. */
bool cube_kept_written(const struct cube_req *r);
struct cube_job *cube_kept_started(const struct cube_req *r);
void cube_kept_read_text(struct cube_handle *h);
/* A read that a worker before had done, and not answered, begins where that one did. */
void cube_kept_rewind(struct cube_req *r, struct cube_handle *h);

/* ---- restore_files.c ---- */
/* The files of record @record were those of @p. */
void cube_restore_root(struct cube_tree *t, const struct cube_type *type, void *p, uint32_t record);

/* What a read of @text at @offset gives: sets r->out. */
int cube_handle_give(struct cube_req *r, const struct cube_buf *text, uint64_t offset);

/* ---- collect.c: text that is written in pieces ---- */

/* Adds to h->in: all or nothing. */
int cube_collect_add(struct cube_req *r, struct cube_handle *h, const char *data, size_t len);
void cube_collect_drop(struct cube_handle *h);
/* Is this FLUSH the close of whoever opened it, and does it count? 1 yes, 0 no (a child's; or the writer was
 * killed: then the text is dropped and noted), CUBE_PROC. */
int cube_collect_closes(struct cube_req *r, struct cube_handle *h);

/* ---- output.c: the output of a job ---- */

/* The job that the node's `exec` or `exit` is about now; NULL: none. */
struct cube_job *cube_output_job(const struct cube_node *n);
/* A channel's read of h->job from h->pos on. */
int cube_output_follow(struct cube_req *r, struct cube_handle *h);
bool cube_output_more(const struct cube_job *j, enum cube_stream stream, uint64_t pos);
extern const struct cube_class cube_class_output;

/* ---- attach.c: the real files of a sandbox or a volume ---- */

/* For a request on the node `files`: CUBE_REAL with r->real_id, CUBE_PARK, or an error. */
int cube_attach_step(struct cube_req *r);
/* A getattr, which waits for nothing: CUBE_REAL, or 0 (not attached: what the tree knows). */
int cube_attach_peek(struct cube_req *r);
/* When one of its files was last open (wall clock, ns): UINT64_MAX one is, 0 none ever. */
uint64_t cube_attach_used(const struct cube_obj *o);
/* Something is mounted in it now, or (@gone) no more: it is fetched anew. Who has a place in the old one keeps it,
 * but for what is gone. */
void cube_attach_again(struct cube_obj *o, const char *gone);
/* It has other files: places in those before are stale. */
void cube_attach_replaced(struct cube_obj *o);
/* Nothing runs in the sandbox, or something may. */
void cube_attach_quiet(const struct cube_obj *o, bool quiet);
/* One that a worker before had shown: false, it is another thing now, and @files is the caller's still. */
bool cube_attach_adopt(struct cube_obj *o, struct cube_files *files, uint32_t generation);
void cube_attach_drop(struct cube_obj *o);
void cube_attach_drop_all(struct cube_tree *t);
/* Those of that view. */
void cube_attach_drop_view(struct cube_tree *t, const struct cube_tree_view *v);

/* ---- view.c ---- */
struct cube_tree_view *cube_view_new(struct cube_domain *d, struct cube_files_space *files, bool own);
struct cube_tree_view *cube_view_ref(struct cube_tree_view *v);
void cube_view_unref(struct cube_tree_view *v);

/* ---- path.c: mkdir, rmdir and mv as verbs ---- */
int cube_path_start(void *tree, enum cube_path_act act, struct cube_verb_call *call, struct cube_err *err);

/* ---- mark.c: who removes ---- */
/* What a mark at @o covers: its sandbox, or (the root's object) all of backends/ and volumes/. */
struct cube_obj *cube_mark_scope(struct cube_obj *o);
int cube_mark_add(struct cube_tree *t, struct cube_obj *scope, const struct cube_caller *by,
		  struct cube_err *err);
/* Does the caller remove, and does @n lie below what it removes? */
bool cube_mark_has(struct cube_tree *t, const struct cube_node *n, const struct cube_caller *by);
void cube_mark_end(struct cube_tree *t, struct cube_obj *scope, const struct cube_caller *by);
void cube_mark_restore(struct cube_tree *t);
void cube_mark_drop(struct cube_tree *t, const struct cube_obj *scope); /* whoever it was; NULL: all */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, their entries, and nodes. Private to fs/tree; under the domain lock.
 *
 * An object is a thing of ctl that has a directory: the root, a backend, a template, a sandbox, a session, a
 * job. Its directories are tables of entries. A node is what a front end has a number for: an entry of an
 * object. It lives while the front end counts lookups of it or something is open; the object's side of it
 * (struct cube_obj) lives while it has nodes, objects below or attached files, and holds a reference on the
 * thing itself. */
#ifndef CUBEFS_FS_TREE_NODE_H
#define CUBEFS_FS_TREE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "backends/base/buf.h"
#include "ctl/domain.h"
#include "fs/tree/tree.h"

#define CUBE_SLOTS 24 /* entries of one object, over all its directories */

struct cube_class;
struct cube_level;
struct cube_type;
struct cube_attach;

struct cube_entry {
	const char *name;
	uint8_t slot;                   /* its number in the object; 0 is the object's own directory */
	mode_t mode;                    /* with the type */
	const struct cube_class *class; /* of a file */
	const struct cube_level *level; /* of a directory */
	bool fresh;               /* a lookup gives another node (a write to it may wait, see ARCHITECTURE) */
	bool constant;            /* never changes in the object's life */
	bool files;               /* the sandbox's own files begin here */
	uint32_t needs;           /* capabilities of the backend without which it is absent */
	bool (*present)(void *p); /* NULL: always */
	int (*render)(void *p, struct cube_buf *out); /* text of a plain read; target of a link */
	int arg;                                      /* the class's */
};

/* What unlink and rmdir of fixed entries of a directory do (interface.md, "rm -r"). */
enum cube_removal {
	CUBE_REMOVAL_REFUSED, /* -EPERM */
	CUBE_REMOVAL_IGNORED, /* succeeds without effect */
	CUBE_REMOVAL_MARKS,   /* succeeds without effect and marks the caller */
	CUBE_REMOVAL_GUARDED, /* -EPERM and marks the caller */
};

struct cube_level {
	const struct cube_entry *entries;
	size_t count;
	enum cube_removal removal;
	/* What comes and goes here; NULL: nothing. */
	const struct cube_type *child;
	void *(*find)(void *p, const char *name);
	void *(*next)(void *p, uint64_t seq);
	void *(*after)(void *p, void *child); /* the same for one that is at hand; NULL: by its place */
	/* mkdir: the new thing, no reference; may park. NULL: refused, -ENOENT. */
	int (*make)(struct cube_req *r, void *p, const char *name, void **ret);
	/* rmdir of a child; rename within. NULL: -EPERM. */
	int (*drop)(struct cube_req *r, void *child);
	int (*rename)(struct cube_req *r, void *child, const char *name);
};

/* The real files that begin at an entry with `files`. */
struct cube_real {
	bool shared;                 /* shown in other places too: nothing of it may be kept */
	const char *(*uid)(void *p); /* hexadecimal, unique: makes inode numbers */
	uint32_t (*generation)(void *p);
	/* 0; 1: not yet, wait on *changed; or why not. */
	int (*usable)(void *p, struct cube_waitq **changed, struct cube_err *err);
	/* As cube_cube_root_async. */
	int (*fetch)(void *p,
		     void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err),
		     void *ctx);
};

struct cube_type {
	const char *what;              /* "sandbox" */
	const struct cube_entry *self; /* its directory, slot 0 */
	void (*ref)(void *p);
	void (*unref)(void *p);
	void **(*slot)(void *p); /* where it keeps our side of it; NULL: in tree->services */
	const char *(*name)(void *p);
	uint64_t (*seq)(void *p);           /* its place in its parent's listing */
	uint64_t (*seed)(void *p);          /* stable and unique among its siblings, for inode numbers */
	bool (*gone)(void *p);              /* it has no name any more */
	uint64_t (*born)(void *p);          /* wall clock */
	struct cube_cube *(*cube)(void *p); /* the sandbox it belongs to; NULL: none */
	struct cube_service *(*service)(void *p); /* the backend it is on; NULL: none */
	const struct cube_type *parent;           /* NULL: the root has none */
	const struct cube_entry *within;          /* the parent's directory that lists it */
	void *(*parent_of)(void *p);
	const struct cube_real *real; /* NULL: no entry of it has `files` */
};

/* What a text was when it was last looked at, and since when. */
struct cube_text_mark {
	uint64_t hash;
	uint64_t size;    /* of one that is made at its open alone (changes.c) */
	uint64_t changed; /* wall clock */
};

struct cube_obj {
	const struct cube_type *type;
	void *p;
	unsigned refs;
	struct cube_tree *tree;
	struct cube_obj *parent;    /* referenced */
	uint64_t ino;               /* of its directory; entries' are derived */
	struct cube_attach *attach; /* its real files, once they were asked for: one for each view of them */
	struct cube_node *nodes[CUBE_SLOTS];
	struct cube_text_mark texts[CUBE_SLOTS];
};

struct cube_node {
	uint64_t id;
	uint64_t lookups;
	unsigned refs; /* handles, requests under way */
	bool fresh;
	pid_t given;          /* fresh: the thread that looked it up; 0: it is not of this machine */
	struct cube_obj *obj; /* referenced */
	const struct cube_entry *entry;
	uint32_t kept; /* its record (kept.c) */
};

extern const struct cube_type cube_type_root, cube_type_service, cube_type_template, cube_type_stock,
	cube_type_cube, cube_type_session, cube_type_job, cube_type_port, cube_type_volume,
	cube_type_checkpoint;

/* The object of a thing of ctl, made when needed; one reference for the caller. NULL: memory. */
struct cube_obj *cube_obj_get(struct cube_tree *t, const struct cube_type *type, void *p);
/* The same if there is one already; no reference. */
struct cube_obj *cube_obj_peek(struct cube_tree *t, const struct cube_type *type, void *p);
struct cube_obj *cube_obj_ref(struct cube_obj *o);
void cube_obj_unref(struct cube_obj *o);

/* The node of an entry of @o; one reference for the caller. NULL: memory. */
struct cube_node *cube_node_get(struct cube_obj *o, const struct cube_entry *e);
/* The same for a lookup by the thread @to (0: not known). Of a fresh entry another one each time, but that a thread
 * gets the last again that it alone was given and nobody has open: the kernel keeps it then, and need not ask
 * twice at its next open. */
struct cube_node *cube_node_give(struct cube_obj *o, const struct cube_entry *e, pid_t to);
/* The number of the directory of @p, whose parent's has @parent. */
uint64_t cube_obj_ino(uint64_t parent, const struct cube_type *type, void *p);
/* The node that a worker before had told the kernel of. -ENOMEM. */
struct cube_keep_node;
int cube_node_restore(struct cube_obj *o, const struct cube_entry *e, const struct cube_keep_node *rec,
		      uint32_t record);
struct cube_node *cube_node_find(struct cube_tree *t, uint64_t id); /* NULL: not there; no reference */
struct cube_node *cube_node_ref(struct cube_node *n);
void cube_node_unref(struct cube_node *n);
void cube_node_count(struct cube_node *n); /* one look-up more; of who has a reference */
void cube_node_forget(struct cube_node *n, uint64_t lookups);
uint64_t cube_node_ino(const struct cube_obj *o, const struct cube_entry *e);

/* Is the entry there, on this backend, now? */
bool cube_entry_present(const struct cube_obj *o, const struct cube_entry *e);

static inline const struct cube_level *cube_node_level(const struct cube_node *n)
{
	return n->entry->level;
}

/* Attributes and timeouts as lookup gives them. */
void cube_node_attr(struct cube_node *n, struct cube_tree_entry *ret);

#endif

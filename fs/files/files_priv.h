/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this module share. Bottom up:
 *
 *   hash     chained hash tables with the links inside their elements
 *   fd       counted descriptors
 *   mount    what of the sandbox's tree has a descriptor of its own, and where
 *   owner    owners as shown, and the rights under which files are made
 *   step     one name beneath one directory descriptor: the only place that resolves names
 *   node     the table of nodes; lru: which directories stay open
 *   reach    from a node to a descriptor or to attributes
 *   watch    what a kernel may keep, and until when
 *   own      what it does itself
 *   links    link targets as shown; resolve: what a link with ".." behind a name means
 *   attr     attributes as shown
 *   the rest one file for each group of calls of files.h
 *
 * Locks. `space.lock` (a read-write lock) covers the node table: every field of a node, place and LRU that is
 * not marked otherwise. It is held for look-ups and list work, never for a system call on a sandbox's files.
 * `space.locks` covers the lists of lock owners, `handle.mutex` a directory stream. None of them is taken
 * inside another; those of watch.c say themselves how they are. */
#ifndef CUBEFS_FS_FILES_FILES_PRIV_H
#define CUBEFS_FS_FILES_FILES_PRIV_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "backends/base/list.h"
#include "backends/base/map.h"
#include "fs/files/files.h"
#include "fs/files/hash.h"

/* ---- fd.c ---- */

/* A descriptor that is closed when its last user is done. */
struct cube_ffd {
	atomic_uint refs;
	int fd;
};

/* Takes @fd over (also on failure, NULL: memory). */
struct cube_ffd *cube_ffd_new(int fd);
struct cube_ffd *cube_ffd_wrap(int fd); /* takes it over on success only */
struct cube_ffd *cube_ffd_ref(struct cube_ffd *f);
void cube_ffd_unref(struct cube_ffd *f); /* NULL is harmless */
void cube_ffd_auto(struct cube_ffd **f);
#define cube_auto_ffd cube_auto(cube_ffd_auto) struct cube_ffd *
/* The file behind is let go at once, whoever still has the number: it means nothing from now on (EBADF). */
void cube_ffd_void(struct cube_ffd *f, int nothing_fd);

/* ---- mount.c ---- */

/* A part of the tree that has a descriptor of its own. Constant but for `fd`. */
struct cube_fmount {
	struct cube_ffd *fd; /* under space.lock; NULL once detached */
	bool read_only;
	bool local; /* on a known file system of this machine: its attributes need no request to anyone */
	bool d_ino_true; /* what readdir gives is what stat gives */
	bool constant;   /* nothing in it ever changes */
	bool watchable;  /* nobody but the sandbox changes it, and this machine is told when */
	uint64_t key;    /* of its path; goes into inode numbers */
	dev_t dev;
	ino_t ino;
};

/* The paths of the mounts as a tree of names: a directory node that has one is at or above a mount. */
struct cube_fpoint {
	struct cube_fpoint *next, *children;
	struct cube_fmount *mount; /* NULL: only on the way to one */
	char name[NAME_MAX + 1];
};

/* Fills @f's mounts and points from @root; its descriptors are taken over on success only. */
int cube_fmount_setup(struct cube_files *f, const struct cube_root *root);
void cube_fmount_clear(struct cube_files *f);
/* What is mounted at the absolute @path; NULL: nothing. */
struct cube_fmount *cube_fmount_find(struct cube_files *f, const char *path);
/* After a failure: the descriptors are the caller's again. */
void cube_fmount_give_back(struct cube_files *f);
/* The point of that name below @p (which may be NULL), or NULL. */
const struct cube_fpoint *cube_fpoint_find(const struct cube_fpoint *p, const char *name);

/* ---- the tree and the space ---- */

struct cube_files {
	struct cube_files_space *space;
	atomic_uint refs; /* each node has one */
	atomic_bool detached;
	atomic_bool quiet;            /* nothing runs in it; cleared under watch.lock */
	atomic_ulong runs;            /* how often it was quiet no more */
	atomic_bool asked;            /* whether it is quiet, since it was last said */
	atomic_bool unkept;           /* nothing of it may be kept any more */
	atomic_bool keeps;            /* something of it was to be kept */
	atomic_ulong n_open;          /* files; directories are only looked at */
	_Atomic uint64_t closed_wall; /* when the latest of them was closed; 0: never */
	uint64_t seed;
	void *owner;
	uint32_t uid_base, gid_base, id_count; /* id_count 0: no translation */
	bool swap_owner;
	bool other_rights; /* files are made under other ids than the process's */
	unsigned n_mounts;
	struct cube_fmount mounts[1 + CUBE_MOUNTS_MAX]; /* the first is the root */
	struct cube_fpoint *points;                     /* that of "/" */
	struct cube_fnode *root;
	uint64_t root_id;
	uint32_t kept;            /* its record; CUBE_KEEP_NONE: it is not written down */
	struct cube_list handles; /* open ones that are not void yet; under space.lock */
};

/* What the kernel is about to do itself (own.c). `lock` is taken inside of all others. */
struct cube_fowns {
	pthread_mutex_t lock;
	struct cube_list notes; /* whoever ends them has their memory */
};

struct cube_files_space {
	struct cube_files_options options;
	mode_t umask; /* of the process */
	int fds_dir;  /* /proc/self/fd */
	int nothing;  /* O_PATH of nothing: what the descriptors of detached trees become */
	uint64_t key; /* secret, so that names cannot be chosen to collide */
	pthread_rwlock_t lock;
	struct cube_fhash by_id, by_place, by_object;
	uint64_t last_id;
	struct cube_imap
		*again; /* trees that were attached again, by record plus 1, until they are restored */
	bool restoring;
	struct cube_list lru; /* directories that are open, the next to be closed first */
	unsigned n_lru, max_lru;
	pthread_mutex_t locks;
	pthread_cond_t released;               /* with `locks`: n_released went on */
	unsigned long n_releasing, n_released; /* handles whose release has begun, and is done */
	struct cube_flockwait *lockwait;       /* started when needed; under `locks` */
	struct cube_fwatch *_Atomic watch;     /* NULL: nothing is kept. Set once, before the first request */
	struct cube_fowns owns;
};

/* ---- node.c ---- */

/* What an object is told by. */
struct cube_fobject {
	dev_t dev;
	ino_t ino;
	mode_t type;
};

struct cube_fnode {
	uint64_t id;
	struct cube_files *tree;         /* counted */
	const struct cube_fmount *mount; /* in which it lies */
	const struct cube_fpoint *point; /* directories: what of the mounts is at or below it, or NULL */
	bool is_top;                     /* the root of `mount` */
	bool is_void;                    /* something is mounted here inside: empty */
	bool in_objects;
	bool is_dead; /* on its way out */
	struct cube_fhash_link by_id, by_object;
	struct cube_fobject object;
	struct cube_fplace *places;    /* directories and links: one, for ever; the tree's root: none */
	unsigned n_places, n_children; /* places below it, which keep it */
	atomic_uint pins;              /* calls and handles that use it */
	atomic_ullong lookups;
	struct cube_list handles;     /* open ones */
	struct cube_list lock_owners; /* under space.locks */
	struct cube_ffd *dir;         /* directories: open, in the LRU */
	struct cube_list lru;
	atomic_bool used; /* `dir` was, since the LRU last looked */
	struct stat
		*gone; /* directories: removed through us; as it was at its end. Under space.lock, set once */
	uint32_t kept, kept_seq;               /* its record (kept.c) */
	struct cube_fwatched *_Atomic watched; /* set under watch.lock; NULL: it is not watched */
	_Atomic uint64_t pages; /* files: while what ran last is this, the front end's copy holds (pages.c) */
	atomic_bool mapped;     /* files: somebody outside may write pages of it, for ever */
};

/* A name of a node. Found by (parent, name) while `hashed`; when it turned out to belong to another object
 * now, a directory's or link's stays, unhashed, since it says where the caller's path leads up. */
struct cube_fplace {
	struct cube_fhash_link link;
	bool hashed;
	struct cube_fnode *parent;
	struct cube_fnode *node;
	struct cube_fplace *next; /* of the node */
	char name[];
};

struct cube_fpeek; /* step.c */

/* The node of that id, which stays until unpin; -ESTALE: unknown, or its tree was detached. */
int cube_fnode_pin(struct cube_files_space *s, uint64_t id, struct cube_fnode **ret);
void cube_fnode_pin_more(struct cube_fnode *n); /* one that the caller keeps already */
void cube_fnode_unpin(struct cube_fnode *n);    /* NULL is harmless */
void cube_fnode_auto(struct cube_fnode **n);
#define cube_auto_fnode cube_auto(cube_fnode_auto) struct cube_fnode *

/* The node of what was seen as @name in @parent: pinned, and with one look-up more if @count. */
int cube_fnode_intern(struct cube_fnode *parent, const char *name, const struct cube_fpeek *seen, bool count,
		      struct cube_fnode **ret);
/* The node of a file in the mount of @dir that has no name: pinned, and with one look-up. */
int cube_fnode_nameless(struct cube_fnode *dir, const struct cube_fpeek *seen, struct cube_fnode **ret);
/* The root's node of a new tree. */
int cube_fnode_new_root(struct cube_files *f);
void cube_fnode_count(struct cube_fnode *n); /* one look-up more of one that is pinned */
void cube_fnode_uncount(struct cube_files_space *s, uint64_t id, uint64_t n);
/* Is what was seen there the node that has the name? */
bool cube_fnode_is_at(struct cube_fnode *parent, const char *name, const struct cube_fpeek *seen);
/* The name is gone: by our doing, or as a look-up found. */
void cube_fnode_drop_name(struct cube_fnode *parent, const char *name, bool removed);
/* The directory of that name has been removed, and was like this (as the kernel has it): who is in it still may ask. */
void cube_fnode_set_gone(struct cube_fnode *parent, const char *name, const struct stat *st);
/* It was; @ret may be NULL. */
bool cube_fnode_gone(struct cube_fnode *n, struct stat *ret);
/* A rename, whose memory is had before the system call: what was from's is to's now, or both have changed
 * places. */
struct cube_fmove {
	struct cube_fplace *from, *to; /* not in the table; what is left is freed by done */
	bool exchange;
};
int cube_fmove_init(struct cube_fmove *m, struct cube_fnode *parent, const char *name,
		    struct cube_fnode *new_parent, const char *new_name, bool exchange);
void cube_fmove_commit(struct cube_fmove *m);
void cube_fmove_done(struct cube_fmove *m);
/* The same object has got another number (overlayfs copied it up). */
void cube_fnode_renumber(struct cube_fnode *n, const struct stat *st);

/* The @index-th name of a node: the parent pinned, the name copied. -ENOENT: it has no more. */
int cube_fnode_place(struct cube_fnode *n, unsigned index, struct cube_fnode **ret_parent,
		     char name[NAME_MAX + 1]);
/* How many directories are above it, up to and with the tree's root: 0 for that. */
unsigned cube_fnode_depth(struct cube_fnode *n);
/* The path from the root, "a/b", "" for the root; -ENAMETOOLONG. */
int cube_fnode_path(struct cube_fnode *n, char *path, size_t size);
bool cube_fnode_same(struct cube_fnode *n, const struct stat *st);
struct cube_fobject cube_fnode_object(struct cube_fnode *n);

static inline bool cube_fnode_is_dir(const struct cube_fnode *n)
{
	return S_ISDIR(n->object.type); /* the type never changes */
}

/* node_table.c: those of node.c that need the lock held. */
struct cube_fplace *cube_fnode_find_locked(struct cube_fnode *parent, const char *name);
struct cube_fplace *cube_fplace_new(struct cube_fnode *parent, const char *name);
void cube_fplace_attach_locked(struct cube_fplace *p, struct cube_fnode *n);
void cube_fplace_free_locked(struct cube_fplace *p); /* whatever it is a name of */
/* The name is not its node's any more: because it was @removed through us, or because it turned out so. */
void cube_fplace_drop_locked(struct cube_fplace *p, bool removed);
struct cube_fnode *cube_fnode_find_id_locked(const struct cube_files_space *s, uint64_t id);
struct cube_fnode *cube_fnode_make_locked(struct cube_files *f, const struct cube_fobject *object,
					  uint64_t id);
struct cube_fnode *cube_fnode_new_locked(struct cube_files *f, const struct cube_fobject *object);
struct cube_fnode *cube_fnode_by_object_locked(const struct cube_fmount *m, struct cube_files *f,
					       const struct cube_fobject *object);
void cube_fnode_set_object_locked(struct cube_fnode *n, const struct cube_fobject *object);
/* Frees it, and then what only it kept, where nobody knows or uses it any more. */
void cube_fnode_collect_locked(struct cube_fnode *n);
/* All that is in no use, whatever was not forgotten. */
void cube_fnode_collect_all_locked(struct cube_files_space *s);

/* ---- lru.c ---- */

/* A counted descriptor of the directory if it is open; NULL. Needs the lock, shared or not. */
struct cube_ffd *cube_flru_get_locked(struct cube_fnode *n);
/* Keeps @fd for the next one. */
void cube_flru_put(struct cube_fnode *n, struct cube_ffd *fd);
void cube_flru_drop_locked(struct cube_fnode *n);
/* Closes all that nobody uses just now; for when descriptors are out. */
void cube_flru_shrink(struct cube_files_space *s);
unsigned cube_flru_limit(void);

/* ---- step.c ---- */

/* What is seen at a name. */
struct cube_fpeek {
	struct stat st;
	const struct cube_fmount *mount; /* in which it lies */
	const struct cube_fpoint *point;
	bool is_top;  /* the root of `mount` */
	bool is_void; /* something is mounted here inside; st has the type and nothing else */
};

/* 0, -ENAMETOOLONG, or -EINVAL for what is no name ("", or with a slash); "." and ".." are not. */
int cube_fstep_name(const char *name);
/* An O_PATH descriptor of @name beneath @dirfd, never of what it links to, never in another mount (-EXDEV).
 */
int cube_fstep_open(struct cube_files_space *s, int dirfd, const char *name, int *ret_fd);
/* Attributes of @name in directory node @dir, whose descriptor is @dirfd. Asks nobody but the file system of
 * @dir. */
int cube_fstep_peek(struct cube_fnode *dir, int dirfd, const char *name, struct cube_fpeek *ret);
/* The same without a node, for a walk. */
int cube_fstep_peek_at(struct cube_files *f, const struct cube_fmount *m, const struct cube_fpoint *point,
		       int dirfd, const char *name, struct cube_fpeek *ret);
/* Opens again, with other flags, what @fd (O_PATH) is. */
int cube_fstep_reopen(struct cube_files_space *s, int fd, int flags, int *ret_fd);
#define CUBE_FD_PATH 32
/* "/proc/self/fd/N", for calls that know paths only. */
const char *cube_fstep_path(int fd, char out[CUBE_FD_PATH]);
/* The descriptor of a mount, or NULL when detached. */
struct cube_ffd *cube_fstep_top(const struct cube_files *f, const struct cube_fmount *m);

/* ---- reach.c ---- */

/* A descriptor (of an open handle, or O_PATH) of the node's object; -ESTALE if it is not there any more, -ENOENT if it
 * is a directory that was removed through us. Not for void ones. */
int cube_freach(struct cube_fnode *n, struct cube_ffd **ret);
/* Its attributes as they are, without opening where that can be. */
int cube_freach_stat(struct cube_fnode *n, struct stat *ret);

/* A pinned node with a descriptor: how most calls begin. */
struct cube_fdoor {
	struct cube_fnode *n;
	struct cube_ffd *fd; /* NULL for a void one, and for a directory that was removed */
};
#define CUBE_DOOR_DIR   1u /* -ENOTDIR for others */
#define CUBE_DOOR_WRITE 2u /* -EROFS where nothing can be changed */
int cube_fdoor_open(struct cube_files_space *s, uint64_t id, unsigned need, struct cube_fdoor *ret);
void cube_fdoor_close(struct cube_fdoor *d);
#define cube_auto_fdoor cube_auto(cube_fdoor_close) struct cube_fdoor

/* ---- owner.c ---- */

uid_t cube_fowner_show_uid(const struct cube_files *f, uid_t kernel);
gid_t cube_fowner_show_gid(const struct cube_files *f, gid_t kernel);
/* The other way; false: no such owner inside. */
bool cube_fowner_uid(const struct cube_files *f, uid_t shown, uid_t *ret);
bool cube_fowner_gid(const struct cube_files *f, gid_t shown, gid_t *ret);
/* Between the two, this thread makes files that belong to the sandbox's root, or to @c where that is another user
 * than who mounted. -errno, else what leave wants. */
int cube_fowner_enter(const struct cube_files *f, const struct cube_files_cred *c);
void cube_fowner_leave(int entered);

/* ---- links.c, resolve.c ---- */

/* What is shown of a link in directory @dir with target @raw (NUL ended, @len bytes), with @nlink names. @out
 * has room for PATH_MAX. Length, -ENAMETOOLONG, -ELOOP, -ENOENT (no target). */
ssize_t cube_flink_show(struct cube_fnode *dir, const char *raw, size_t len, nlink_t nlink, char *out);
/* What the parts of a target that do not lead up before the first name: links.c. */
struct cube_flink_text {
	bool absolute;
	unsigned up;      /* ".." before the first name */
	const char *rest; /* from the first name on */
	bool later_up;    /* a ".." in rest */
};
void cube_flink_parse(const char *raw, struct cube_flink_text *ret);
/* The path from the root, without "..", that means what @rest means from the directory @path (from the root).
 * @path is PATH_MAX large, in and out. */
int cube_fresolve(struct cube_files *f, char *path, const char *rest);

/* ---- setattr.c ---- */

/* The mode of a file with these attributes after @c wrote to it. */
mode_t cube_fattr_written(const struct cube_files *f, const struct cube_files_cred *c, const struct stat *st);

/* ---- attr.c ---- */

uint64_t cube_fattr_ino(const struct cube_files *f, const struct cube_fmount *m, dev_t dev, ino_t ino);
uint64_t cube_fattr_node_ino(struct cube_fnode *n); /* of one that is not void */
/* st_ino of a void entry @name of @dir. */
uint64_t cube_fattr_void_ino(struct cube_fnode *dir, const char *name);
/* As shown, of @n, whose attributes are @raw; the length of a link's answer too. */
int cube_fattr_show(struct cube_fnode *n, const struct stat *raw, struct stat *ret);
/* What getattr gives. */
int cube_fattr_get(struct cube_fnode *n, struct stat *ret);

/* ---- names.c ---- */

/* Look-up of @name beneath an open door; counted. */
int cube_fname_entry(const struct cube_fdoor *d, const char *name, struct cube_files_entry *ret);
/* A door to the directory in which @name is to be made: -EEXIST for what cannot be. */
int cube_fname_new(struct cube_files_space *s, uint64_t parent, const char *name, struct cube_fdoor *ret);

/* ---- open.c ---- */

struct cube_files_handle {
	struct cube_fnode *n; /* pinned */
	struct cube_ffd *fd;  /* NULL: a void directory */
	int flags;            /* those it was opened with */
	bool is_dir;
	atomic_bool closing; /* a descriptor of it was closed, which may have been the last */
	struct cube_list in_node, in_tree;
	struct cube_fdirbuf *dir; /* under `mutex` */
	pthread_mutex_t mutex;    /* directories */
};

/* 0, or -ESTALE once the tree is gone. */
int cube_fhandle_ok(const struct cube_files_handle *h);
/* What a call on the handle returns: @r, or -errno where it is negative, or -ESTALE. */
ssize_t cube_fhandle_result(const struct cube_files_handle *h, ssize_t r);
/* A new handle; takes @fd over, also on failure. */
int cube_fhandle_new(struct cube_fnode *n, struct cube_ffd *fd, int flags, bool is_dir,
		     struct cube_files_handle **ret);

/* ---- dir.c ---- */
void cube_fdirbuf_free(struct cube_fdirbuf *b);

/* ---- lock.c ---- */
/* Those of the owners that came through this handle, which is closed. */
void cube_flock_drop_of(const struct cube_files_handle *h);
/* A handle is about to be released ... */
void cube_flock_releasing(struct cube_files_space *s);
/* ... and is, and whatever was locked through it. */
void cube_flock_released(struct cube_files_space *s);
/* All lock owners' descriptors of a node; for its end (detached: voided). */
void cube_flock_drop_all(struct cube_fnode *n);

/* The owner's description as the process before had it; @fd is taken over on success. */
int cube_flock_restore(struct cube_fnode *n, uint64_t owner, bool writes, int fd, uint32_t record);

/* ---- kept.c: for the next process ---- */
void cube_fkept_node_locked(struct cube_fnode *n); /* it is new, or something of it has changed */
void cube_fkept_counted_locked(struct cube_fnode *n, uint64_t by); /* look-ups more; modulo 2^64 */
void cube_fkept_node_gone_locked(struct cube_fnode *n);
void cube_fkept_give(struct cube_files_space *s, uint32_t record);
uint32_t cube_fkept_lock(struct cube_fnode *n, uint64_t owner, int fd, bool writes);
void cube_fkept_lock_gone(struct cube_files_space *s, uint32_t record);

/* ---- watch.c ---- */

/* Names of this directory, open at @fd, may be kept if they are looked at from now on. */
bool cube_fwatch_names(struct cube_fnode *dir, int fd);
/* 1: the attributes of @n may be kept, as they are in *ret (for what is constant: as they are anywhere). 0: not. */
int cube_fwatch_stat(struct cube_fnode *n, struct stat *ret);
/* That name of @dir is another's, or nobody's. */
void cube_fwatch_tell_name(struct cube_files_space *s, uint64_t dir, const char *name);
/* The node is about to be freed. */
void cube_fwatch_gone_locked(struct cube_fnode *n);
/* Nothing of the tree is to be kept any more: it was marked so before. */
void cube_fwatch_tree_gone(struct cube_files *f);
/* All that is kept of a tree is old; NULL: of all trees. */
void cube_fwatch_tell_all(struct cube_files_space *s, const struct cube_files *f);
void cube_fwatch_free(struct cube_fwatch *w); /* NULL is harmless */

/* ---- own.c ---- */

/* A name of @dir has gone or (@comes) come, so says an event: did the kernel do it? Each note answers once. */
bool cube_fowns_event(struct cube_fowns *o, uint64_t dir, const char *name, bool comes);
void cube_fowns_init(struct cube_fowns *o);
void cube_fowns_done(struct cube_fowns *o);

/* ---- lockwait.c ---- */

/* Calls @try (a system call that may wait) until it is done or @cancel fires (-EINTR). */
int cube_flockwait(struct cube_files_space *s, struct cube_cancel *cancel, int (*try)(void *ctx), void *ctx);
void cube_flockwait_free(struct cube_flockwait *w); /* NULL is harmless */

#endif
